#!/usr/bin/env python3
"""`headway advise --try N`: real programs, whose change is carried out from outside. Each form of programs/tried.c
prints, ends and receives the same as without; what cannot be tried is refused by name; what it gives is what the
program gives that is changed by hand.

    try_test.py             what is quick
    try_test.py Slow...     all forms under each MPI that is here, and gains within 3 %
"""

import json
import os
import subprocess
import tempfile
import unittest
import unittest.mock
from pathlib import Path
from types import SimpleNamespace

from support import BUILD, HEADWAY, headway, need_packages

need_packages("numpy", "rich", "typer", "elftools")
os.environ["CLUSTER_MPIEXEC"] = str(BUILD / "bin" / "mpiexec")

import record_made  # noqa: E402
from headway.measure.contestants import cache  # noqa: E402
from headway.record import advise, edits, lines, reading, tried_words, trying  # noqa: E402
from headway.record.advise import Advice  # noqa: E402
from headway.record.edits import Change  # noqa: E402
from headway.record.facts import Facts  # noqa: E402
from headway.record.model import Site  # noqa: E402
from recording import fortran_compiler  # noqa: E402

SOURCE = Path(__file__).resolve().parent / "programs" / "tried.c"
ROOT_USER = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
ROUNDS, MS = 3, 20  # of a form
TRIES = 3  # of what others on this machine can spoil
# With what a put-off wait of each form ends: every one of them, or at least one.
WAIT, WRITE, CALL, FREE, BESIDE = "wait", "write", "call", "free", "beside"
FORMS = {
    "wait": WAIT, "all": WAIT, "send": WAIT, "forks": WAIT, "writes": WRITE, "halves": WRITE, "reads": CALL,
    "frees": FREE, "static": BESIDE, "handles": BESIDE, "handler": CALL,
}  # fmt: skip
REFUSED = {
    "receiving": "receiving", "ibarrier": "collective", "stack": "stack", "mapped": "unknown", "thread": "threads",
    "window": "windows",
}  # fmt: skip
MARKS = {"all": "all", "halves": "all", "send": "send", "many": "many", "tests": "tests"}  # of the call that is changed; else "wait"


def clean(**more):
    dropped = ("PMI", "OMPI_", "PRTE_", "MPIR_", "HEADWAY_RECORD", "LD_PRELOAD")
    return {k: v for k, v in os.environ.items() if not k.startswith(dropped)} | ROOT_USER | more


class Words(unittest.TestCase):
    def found(self, kind, name, site=Site("/x/prog", 4711, "/x/prog.c", 12, "main")):
        world = SimpleNamespace(site=lambda key: site, name=lambda key: name)
        one = Advice(Change(kind, 0, 1), 1000, 2000)
        return SimpleNamespace(program=SimpleNamespace(world=world), advice=[one], why=""), one

    def refusal(self, *words, **more):
        return trying.refusal(*self.found(*words, **more))

    def test_the_line_that_measures_the_first_one_that_can_be_tried(self):
        found, first = self.found(edits.EARLY, "MPI_Irecv")
        rank = SimpleNamespace(header={"arguments": ["./prog", "a b"]})
        found.line = SimpleNamespace(run=SimpleNamespace(ranks=[rank, rank]))
        folder = Path("headway-run-1")
        self.assertEqual(trying.hint(found, folder, []), "")
        world, wait = found.program.world, Advice(Change(edits.PUT_OFF, 1, 2), 1000, 2000)
        world.name = lambda key: "MPI_Irecv" if key == 0 else "MPI_Wait"
        found.advice = [first, wait]
        said = "Measure number 2 without an edit: headway advise headway-run-1 --try 2 -- mpirun -n 2 ./prog 'a b'"
        self.assertEqual(trying.hint(found, folder, []), said)
        self.assertEqual(trying.hint(found, folder, ["srun", "./prog"]), said.split("mpirun")[0] + "srun ./prog")

    def test_each_refused_kind_says_why_and_what_else(self):
        for kind, name, why in (
            (edits.EARLY, "MPI_Irecv", "still uses the receive's buffer"),
            (edits.PAIR, "MPI_Send", "before the program says where they go"),
            (edits.PUT_OFF, "MPI_Ssend", "that its receive has begun"),
            (edits.PUT_OFF, "MPI_Ssend_c", "that its receive has begun"),
            (edits.PUT_OFF, "MPI_Rsend", "it promises"),
            (edits.PUT_OFF, "MPI_Test", "is not MPI_Wait, MPI_Waitall or MPI_Send"),
            (edits.PACK, "MPI_Send", "from outside"),
        ):
            told = self.refusal(kind, name)
            self.assertIn(f"{name} at prog.c:12: ", told)
            self.assertIn(why, told)
            self.assertIn("headway compare", told)

    def test_python(self):
        site = Site(file="solver.py", line=3, function="f")
        self.assertIn("Python", trying.refusal(*self.found(edits.PUT_OFF, "MPI_Wait", site)))

    def test_what_can_be_tried(self):
        for kind, name in ((edits.PUT_OFF, "MPI_Wait"), (edits.PUT_OFF, "MPI_Send"), (edits.TEST, "MPI_Wait")):
            self.assertEqual(self.refusal(kind, name), "")

    def test_numbers(self):
        found, _ = self.found(edits.PUT_OFF, "MPI_Wait")
        self.assertIs(trying.chosen(found, 1), found.advice[0])
        for number in (0, 2, -1):
            with self.assertRaisesRegex(trying.BadLine, "the advice has number 1 alone"):
                trying.chosen(found, number)
        found.advice = []
        with self.assertRaisesRegex(trying.BadLine, "there is no advice to try"):
            trying.chosen(found, 1)

    def test_the_interval(self):
        pairs = [(200, 100), (202, 98), (198, 102)]
        tried = trying.Tried(1, Advice(Change(edits.PUT_OFF, 0), 90, 100), "x", pairs=pairs)
        gain = tried.gain
        self.assertEqual(gain.value, 100)
        self.assertAlmostEqual(gain.high - gain.value, 4.303 * 4 / 3**0.5, 1)
        self.assertIn("100 ns", tried_words.gain_text(tried))

    def test_a_runs_time_is_without_the_watching(self):
        told = "size 2\ntime 90\nwatching 9\n", "size 2\ntime 95\nwatching 20\n"
        ranks = [trying.read_rank(f"rank {n}\n{text}") for n, text in enumerate(told)]
        self.assertEqual(trying.Ran(0, "", ranks).time, 81)

    def test_every_name_of_an_end_and_a_refusal_has_words(self):
        text = (SOURCE.parents[3] / "tools" / "try" / "plan.c").read_text()
        for table, words in (("try_end_names", trying.ENDED), ("try_refusal_names", trying.REFUSED | {"may": ""})):
            names = text.split(f"{table}[")[1].split("{")[1].split("}")[0]
            self.assertEqual({name.strip(' \n"') for name in names.split(",")}, set(words))


class Programs(unittest.TestCase):
    """One MPI, its compiled program, and where its calls stand."""

    mpi, bin, options = "headway", BUILD / "bin", ()
    looks = ("wait", "all", "send", "many", "tests")  # forms whose calls are looked for

    @classmethod
    def setUpClass(cls):
        if cls is Programs or not (cls.bin / "mpicc").exists():
            raise unittest.SkipTest(f"{cls.mpi} is not here")
        # Sends are not copied (send-ahead), and nothing is learned of one run for another.
        held = unittest.mock.patch.dict(os.environ, clean(HEADWAY_SEND_AHEAD="0"), clear=True)
        held.start()
        cls.addClassCleanup(held.stop)
        holder = tempfile.TemporaryDirectory(prefix="headway-try-test-")
        cls.addClassCleanup(holder.cleanup)
        cls.folder = Path(holder.name)
        program = cls.folder / "tried"
        subprocess.run([cls.bin / "mpicc", "-g", "-O1", "-w", SOURCE, "-o", program], check=True, timeout=120)
        cls.launcher = [str(cls.bin / "mpiexec"), *cls.options, "-n", "2", str(program)]
        cls.spots = {}
        for form in cls.looks:
            cls.look(form)

    @classmethod
    def recorded(cls, form):
        folder = cls.folder / f"look-{form}"
        words = [HEADWAY, "record", "--out", folder, *cls.launcher, form, "1", "1"]
        subprocess.run(words, check=True, timeout=60, capture_output=True)
        run = reading.read(folder)
        lines.resolve(run.ranks)
        return run

    @classmethod
    def look(cls, form):
        """A call site for each mark in the program's source."""
        run = cls.recorded(form)
        text = SOURCE.read_text().splitlines()
        for rank in run.ranks:
            for site in rank.sites.values():
                for part in text[site.line - 1].split("/* ")[1:] if site.line else ():
                    cls.spots[part.split()[0]] = f"{site.offset} {site.module}"

    def runs(self, form, mode="put-off", rounds=ROUNDS, ms=MS, plan=None):
        plan = plan or [f"mode {mode}", f"site {self.spots[MARKS.get(form, 'wait')]}"]
        if mode == "test":
            plan += [f"other {self.spots['begins']}", f"period {round(ms * 1e6 / 11)}", "count 10"]
        holder = tempfile.TemporaryDirectory(dir=self.folder)
        self.addCleanup(holder.cleanup)
        return trying.Runs([*self.launcher, form, str(rounds), str(ms)], Path(holder.name), plan, 60)

    def same(self, form):
        """The changed run, which is as the unchanged one."""
        runs = self.runs(form)
        before, after = runs.run(False, True), runs.run(True, True)
        self.assertEqual(trying.other_bytes(before, after), "", form)
        trying.check([before], [after])
        self.assertIn("received", after.out)
        counts = sum(count for rank in after.ranks for count, _ in rank.channels.values())
        self.assertEqual(counts, ROUNDS * (3 if MARKS.get(form) == "all" else 2))
        return next(rank for rank in after.ranks if rank.rank == 0), before, after

    def ends(self, form):
        rank, before, after = self.same(form)
        sends = ROUNDS * (2 if MARKS.get(form) == "all" else 1)
        self.assertEqual(rank.counts["reached"], sends, form)
        self.assertGreaterEqual(rank.counts["put-off"], sends - ("beside" in FORMS[form]), form)
        self.assertEqual(sum(rank.ended.values()), rank.counts["put-off"], form)
        # The linker writes beside static memory, and what is near it, too.
        least = 1 if form in ("static", "handles", "halves") else sends
        self.assertGreaterEqual(rank.ended[FORMS[form]], least, (form, rank.ended))
        return rank

    def refused(self, form):
        rank, _, _ = self.same(form)
        self.assertEqual((rank.counts["put-off"], dict(rank.refused)), (0, {REFUSED[form]: ROUNDS}), form)

    def second_thread(self):
        """A second thread's tests give what tests in the program give; not where data move by themselves."""
        for left in reversed(range(TRIES)):
            runs = self.runs("tests", "test", 6, 30)
            before, after = runs.run(False, True), runs.run(True, True)
            self.assertEqual(trying.other_bytes(before, after), "")
            receiver = after.ranks[1]
            self.assertEqual(receiver.counts["stretches"], 6)
            self.assertGreater(receiver.counts["tests"], 20)
            if after.time < 0.8 * before.time:
                return
        self.fail((before.time, after.time))


class Forms(Programs):
    def test_each_form_ends_as_it_should(self):
        for form in FORMS:
            with self.subTest(form=form):
                self.ends(form)

    def test_the_watching_is_counted(self):
        _, before, after = self.same("wait")
        self.assertEqual([rank.watching for rank in before.ranks], [0, 0])
        self.assertTrue(0 < after.ranks[0].watching < after.ranks[0].time)

    def test_who_writes(self):
        rank = self.ends("writes")
        offset, module = rank.writers["writer"]
        place = lines.of_module(module, [offset])[0][offset]
        self.assertIn("memset(buffer, 99", SOURCE.read_text().splitlines()[place.line - 1])

    def test_a_line_that_the_compiler_made_several_of(self):
        """All places of that call are put off, and no other call of the line; so with tests' second place."""
        _, given = advise.by_facts(self.recorded("twice"), Facts())
        world = given.program.world
        line = 1 + next(at for at, text in enumerate(SOURCE.read_text().splitlines()) if "/* twice */" in text)
        wait, send = (
            next(key for key in range(len(world.keys)) if (world.site(key).line, world.name(key)) == (line, name))
            for name in ("MPI_Wait", "MPI_Isend")
        )
        tests = trying.plan_of(given, Change(edits.TEST, wait, send, 10))
        words = [text.rpartition(" ")[0].split()[0] for text in tests]
        self.assertEqual(words.count("site"), 2, tests)
        self.assertEqual(words.count("other"), 2, tests)
        self.assertEqual(len({text.split(" ", 1)[1] for text in tests[1:5]}), 4)
        runs = self.runs("twice", plan=trying.plan_of(given, Change(edits.PUT_OFF, wait)))
        before, after = runs.run(False, True), runs.run(True, True)
        self.assertEqual(trying.other_bytes(before, after), "")
        trying.check([before], [after])
        self.assertEqual(after.ranks[0].counts["reached"], 2 * ROUNDS)
        self.assertEqual(after.ranks[0].ended["wait"], 2 * ROUNDS)
        with unittest.mock.patch.object(trying, "MOST_SPOTS", 1):
            with self.assertRaisesRegex(trying.TryFailed, "put this call into 2 places of the program, too many"):
                trying.plan_of(given, Change(edits.PUT_OFF, wait))

    def test_a_line_that_sends_again_from_another_place(self):
        """To the user it is one call: sent again to the same rank with the same tag, it needs the buffer that it had."""
        _, given = advise.by_facts(self.recorded("again"), Facts())
        world = given.program.world
        line = 1 + next(at for at, text in enumerate(SOURCE.read_text().splitlines()) if "/* twice */" in text)
        wait = next(k for k in range(len(world.keys)) if (world.site(k).line, world.name(k)) == (line, "MPI_Wait"))
        plan = trying.plan_of(given, Change(edits.PUT_OFF, wait))
        self.assertEqual([text.split()[0] for text in plan], ["mode", "site", "site", "send", "send"])
        self.assertEqual({text.split()[1] for text in plan[3:]}, {"1"}, "one group")
        self.assertEqual(trying.modules_of(plan), [str(self.folder / "tried")])
        runs = self.runs("again", plan=plan)
        before, after = runs.run(False, True), runs.run(True, True)
        self.assertEqual(trying.other_bytes(before, after), "")
        trying.check([before], [after])
        rank = after.ranks[0]
        self.assertEqual((rank.counts["reached"], rank.counts["put-off"]), (2 * ROUNDS, 2 * ROUNDS))
        self.assertEqual(dict(rank.ended), {"send": ROUNDS, "wait": ROUNDS})

    def test_collectives(self):
        """Their kinds, roots and sizes are compared, and not what came of them."""
        runs = self.runs("wait")
        before, after = runs.run(False, True), runs.run(True, True)
        self.assertEqual(trying.other_bytes(before, after), "")
        self.assertEqual([{1: ROUNDS + 1}] * 2, [{c: n for c, (n, _) in rank.collectives.items()} for rank in after.ranks])
        self.assertEqual([rank.collectives for rank in before.ranks], [rank.collectives for rank in after.ranks])
        runs = self.runs("gathers")
        one, other = runs.run(False, True), runs.run(False, True)
        self.assertEqual([rank.channels for rank in one.ranks], [rank.channels for rank in other.ranks])
        why = "rank 0 called other collectives, or with other sizes, on MPI_COMM_WORLD"
        self.assertEqual(trying.other_bytes(one, other), why)
        with self.assertRaisesRegex(trying.TryFailed, f"nothing can be proven: in two unchanged runs {why}"):
            trying.prove(runs)

    def test_an_mpi_that_does_not_let_a_second_thread_call(self):
        """It gives less than is asked for, and the rank is named that was told so."""
        library, program = self.folder / "libless.so", self.folder / "less"
        shared = ["-shared", "-fPIC", SOURCE.with_name("gives_less.c"), "-o", library, "-ldl"]
        linked = [SOURCE, "-o", program, f"-L{self.folder}", f"-Wl,--no-as-needed,-rpath,{self.folder}", "-lless"]
        for words in (shared, linked):
            subprocess.run([self.bin / "mpicc", "-g", "-O1", "-w", *words], check=True, timeout=120)
        runs = self.runs("tests", "test")
        runs.launcher = [str(program) if word == self.launcher[-1] else word for word in runs.launcher]
        runs.run(False, True)
        why = r"^rank [01]: this MPI gives no MPI_THREAD_MULTIPLE, which tests by another thread need\. Make the change"
        with self.assertRaisesRegex(trying.TryFailed, why):
            runs.run(True, True)

    def test_more_at_once_than_there_is_room_for(self):
        runs = self.runs("many")
        before, after = runs.run(False, True), runs.run(True, True)
        self.assertEqual(trying.other_bytes(before, after), "")
        trying.check([before], [after])
        rank, sends = after.ranks[0], 300 * ROUNDS
        self.assertEqual(rank.counts["reached"], sends)
        self.assertEqual(rank.counts["put-off"] + rank.counts["at-once"] + rank.refused["full"], sends)
        self.assertEqual(sum(rank.ended.values()), rank.counts["put-off"])
        if self.mpi == "headway":
            # Of those that were not over before their turn came; a rank that loses its core for long sees some end.
            full, ended = rank.refused["full"], rank.counts["at-once"]
            self.assertTrue(max(0, 44 * ROUNDS - ended) <= full <= 44 * ROUNDS, (full, ended))

    def test_what_cannot_be_watched_stays(self):
        for form in REFUSED:
            if form == "window" and self.mpi == "headway":
                continue  # it has no windows yet
            with self.subTest(form=form):
                self.refused(form)

    def test_a_call_that_nobody_watches_fails_and_is_told(self):
        runs = self.runs("stale")
        before, after = runs.run(False, True), runs.run(True, True)
        with self.assertRaisesRegex(trying.TryFailed, "with the change the standard output is another one"):
            trying.check([before], [after])
        self.assertEqual(trying.other_bytes(before, after), "", "it was not written")


class FewForms(Programs):
    """What would give wrong bytes."""

    looks = ("wait",)
    forms = ("writes", "reads")

    def test_forms(self):
        for form in self.forms:
            with self.subTest(form=form):
                self.ends(form)


class FewFormsMpich(FewForms):
    mpi, bin = "mpich", cache() / "mpich" / "bin"
    looks, forms = ("wait", "all", "tests"), ("writes", "reads", "handles", "halves")

    def test_tests(self):
        self.second_thread()


class FewFormsOpenMpi(FewForms):
    mpi, bin, options = "openmpi", cache() / "openmpi" / "bin", ("--bind-to", "none", "--map-by", ":OVERSUBSCRIBE")


class Sites(dict):
    """What stands of a call site's number in a file that was made up."""

    def __missing__(self, number):
        return {"module": "/made", "offset": 16 * number}


class Asked(Programs):
    """Through the command."""

    looks = ("wait",)
    rounds, ms, wide = 5, 60, 0.1

    def headway(self, *words, code=0, form="wait", timeout=180):
        line = [*self.launcher, form, str(self.rounds), str(self.ms)]
        done = subprocess.run(
            [HEADWAY, "advise", *map(str, words), "--", *line], capture_output=True, text=True, timeout=timeout,
            cwd=self.folder, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def recording(self):
        """As one of the form "wait" is on a machine of its own, whatever else this one does."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        work = ("compute", round(self.ms * 1e6))
        sender, receiver = [], []
        for n in range(self.rounds):
            sender += [("irecv@60", "world", 1, 3, f"a{n}"), ("isend@61", "world", 1, 1, 1 << 20, f"s{n}")]
            sender += [("wait@62", f"s{n}"), work, ("waitall@63", [f"a{n}"]), ("barrier@64", "world")]
            receiver += [work, ("recv@65", "world", 0, 1), ("send@66", "world", 0, 3, 8), ("barrier@64", "world")]
        spots = {62: self.spots["wait"], 63: self.spots["receives"]}
        halves = {n: spot.split(" ", 1) for n, spot in spots.items()}
        sites = Sites({n: {"module": module, "offset": int(offset)} for n, (offset, module) in halves.items()})
        record_made.simulate(folder, [sender, receiver], sites=sites, seed=1, progress="thread")
        os.utime(self.folder / "tried", (1, 1))  # the program is older
        return folder

    def by_hand(self):
        """ns that the changed program is shorter."""
        times = []
        for name in ("wait", "better"):
            line = [*self.launcher, name, str(self.rounds), str(self.ms)]
            done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True)
            times.append(float(done.stdout.split("seconds")[1].split()[0]))
        return 1e9 * (times[0] - times[1])

    def test_gives_what_the_changed_program_gives(self):
        """And the output is JSON alone."""
        folder, said = self.recording(), ""
        for _ in range(TRIES):
            done = self.headway(folder, "--json", "--no-calibrate", "--try", "1", "--pairs", "2")
            told = json.loads(done.stdout)["advice"]
            self.assertEqual((told["advice"][0]["kind"], told["format"]), ("put off", "headway-advice"))
            tried, hand = told["tried"], self.by_hand()
            self.assertEqual((tried["ok"], tried["why"], tried["number"], len(tried["pairs"])), (True, "", 1, 2))
            self.assertEqual(tried["ended"], {"wait": self.rounds})
            self.assertEqual((tried["counts"]["put_off"], tried["messages"]), (self.rounds, 2 * self.rounds))
            self.assertLessEqual(tried["low"], tried["gain"])
            said = f"{tried['gain']} by --try, {hand} by hand, {tried['least']} promised"
            if abs(tried["gain"] - hand) <= self.wide * hand and hand > 0.8e6 * self.rounds * self.ms:
                return
        self.fail(said)

    def test_a_program_that_differs_by_itself(self):
        """One sentence, and exit code 1."""
        done = self.headway(self.recording(), "-q", "--no-calibrate", "--try", "1", form="random", code=1)
        why = "nothing can be proven: in two unchanged runs rank 1 received other bytes from rank 0"
        self.assertIn(f"headway advise: --try 1: {why}", done.stderr)

    def test_lines_that_are_wrong(self):
        folder = self.recording()
        run = subprocess.run(
            [HEADWAY, "advise", folder, "-q", "--try", "1"], capture_output=True, text=True, timeout=60, check=False
        )
        self.assertEqual(run.returncode, 2)
        self.assertIn("--try needs the line that starts the program", run.stderr)
        done = self.headway(folder, "-q", "--no-calibrate", "--try", "7", code=2)
        self.assertIn("--try 7: the advice has number 1 alone", done.stderr)
        done = self.headway("-q", "--no-calibrate", "--pairs", "3", code=2)
        self.assertIn("--pairs belongs to --try", done.stderr)
        os.utime(self.folder / "tried")
        done = self.headway(folder, "-q", "--no-calibrate", "--try", "1", code=1)
        self.assertIn("was built again since this was recorded", done.stderr)

    def test_recorded_now(self):
        """The program's output is not mixed with JSON; a program without a fault has no advice."""
        done = self.headway("--json", "--no-calibrate")
        self.assertIsNone(json.loads(done.stdout)["advice"]["tried"])
        self.assertIn("received", done.stderr)
        done = self.headway("-q", "--no-calibrate", "--try", "1", form="better", code=2)
        self.assertIn("--try 1: there is no advice to try", done.stderr)


class Fortran(unittest.TestCase):
    """Recorded, advised and tried, with the lines of its source."""

    rounds = 12  # of the program

    def test_a_wait_is_put_off(self):
        found = fortran_compiler(own=False)  # ours copies such a send, and nobody waits
        if not found:
            self.skipTest("no MPI here has Fortran: `scripts/peers.sh --intel` brings one, and gfortran is needed")
        before, behind, _, bin_ = found
        source = SOURCE.with_name("waits.f90")
        text = source.read_text().splitlines()
        early, late = (1 + next(n for n, line in enumerate(text) if f"! {mark}" in line) for mark in ("early", "late"))
        options = FewFormsOpenMpi.options if (bin_ / "ompi_info").exists() else ()
        with tempfile.TemporaryDirectory(prefix="headway-try-fortran-") as folder:
            program = Path(folder) / "waits"
            subprocess.run([*before, "-g", "-O1", source, "-o", program, *behind], check=True, timeout=120, cwd=folder)
            line = [bin_ / "mpiexec", *options, "-n", "2", program]
            for run in range(1, TRIES + 1):
                words = [HEADWAY, "advise", "--json", "--no-calibrate", "--try", "1", "--pairs", "2", "--", *line]
                done = subprocess.run(
                    [*map(str, words)], capture_output=True, text=True, timeout=180, cwd=folder, check=False, env=clean()
                )
                if "there is no advice to try" not in done.stderr:
                    break
                words = headway("advise", "--no-calibrate", f"headway-run-{run}", cwd=folder).stdout
                self.assertIn("somebody else had a rank's core", " ".join(words.split()), "else there is advice")
            else:
                self.skipTest("others use this machine: its ranks never had their cores")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        told = json.loads(done.stdout)["advice"]
        first, tried = told["advice"][0], told["tried"]
        self.assertEqual((first["kind"], first["call"]["name"]), ("put off", "MPI_Wait"))
        places = [(Path(first[of]["file"]).name, first[of]["line"]) for of in ("call", "other")]
        self.assertEqual(places, [("waits.f90", early), ("waits.f90", late)])
        self.assertEqual((tried["ok"], tried["messages"]), (True, 2 * self.rounds), tried["why"])
        self.assertEqual(tried["counts"]["put_off"], tried["counts"]["reached"])
        self.assertEqual((tried["counts"]["reached"], tried["ended"]), (self.rounds, {"wait": self.rounds}))
        self.assertGreater(tried["gain"], 0)


class SlowAsked(Asked):
    """Recorded and tried in one line, on a machine that has its cores to itself."""

    rounds, ms, wide = 12, 60, 0.03
    wrong = {
        "ssend": r"MPI_Ssend at tried.c:\d+: its end tells the program",
        "random": "nothing can be proven: in two unchanged runs rank 1 received other bytes from rank 0",
        "prints": "nothing can be proven: the program's own output differs",
    }

    def now(self, form, *words):
        for _ in range(TRIES):
            done = self.headway(*words, "--no-calibrate", "--try", "1", "--pairs", "3", form=form, code=None)
            if "there is no advice to try" not in done.stderr:
                break
        return done

    def test_what_is_refused_or_fails(self):
        for form, why in self.wrong.items():
            with self.subTest(form=form):
                done = self.now(form, "-q")
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                self.assertRegex(done.stderr, f"headway advise: --try 1: {why}")

    def test_words(self):
        done = self.now("wait", "-q")
        self.assertEqual(done.returncode, 0, done.stderr)
        told = " ".join(done.stdout.split())
        self.assertRegex(told, r"Tried 1 \(MPI_Wait at tried.c:\d+\), 3 pairs of runs: .* without, .* with it: ")
        self.assertRegex(told, r"with it: .* m?s \(.* to .*\) shorter")
        self.assertIn("Promised: at least", told)
        n = self.rounds
        self.assertIn(f"{n} of {n} sends were put off: {n} at a wait for receives.", told)
        self.assertIn(f"The same with it as without: {2 * self.rounds} messages received, ", told)
        self.assertIn(f"received, {2 * (n + 1)} calls of collectives, 3 lines printed", told)
        self.assertIn("--try 1: pair 3 of 3", done.stderr)

    def test_sends(self):
        done = self.now("send", "-q")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("sends were put off", done.stdout)


class SlowAskedMpich(SlowAsked):
    mpi, bin = FewFormsMpich.mpi, FewFormsMpich.bin


class SlowAskedOpenMpi(SlowAsked):
    mpi, bin, options = FewFormsOpenMpi.mpi, FewFormsOpenMpi.bin, FewFormsOpenMpi.options


class SlowFormsMpich(Forms):
    mpi, bin = FewFormsMpich.mpi, FewFormsMpich.bin


class SlowFormsOpenMpi(Forms):
    mpi, bin, options = FewFormsOpenMpi.mpi, FewFormsOpenMpi.bin, FewFormsOpenMpi.options

    def test_tests(self):
        self.second_thread()


if __name__ == "__main__":
    QUICK = ("Words", "Forms", "FewFormsMpich", "FewFormsOpenMpi", "Asked", "Fortran")
    unittest.main(verbosity=1, defaultTest=QUICK)
