#!/usr/bin/env python3
"""`headway advise` as a command: its exit codes, whose recording it reads, and what of a launcher line it starts again to
ask how an MPI moves messages."""

import json
import os
import shlex
import subprocess
import unittest
from pathlib import Path
from unittest import mock

from support import HEADWAY, need_packages

need_packages("numpy", "rich", "typer")

import calibrated_made  # noqa: E402
from advise_asks_test import Asked as WithPrograms  # noqa: E402
from advise_asks_test import clean  # noqa: E402
import facts_test  # noqa: E402
from facts_test import MPI, run_of  # noqa: E402
from headway.measure.contestants import cache  # noqa: E402
from headway.record import advise_command, asking, calibration, fields, format, study_facts, whole  # noqa: E402
from headway.record.asking import Asked  # noqa: E402
from headway.record.format import BadRecording  # noqa: E402
from headway.record.transport import PULL  # noqa: E402
from headway.shown import BadLine  # noqa: E402

# Messages of a size that is worth asking about; ends with the code that is asked for, and tells that it has run.
PROGRAM = """#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
enum { LONG = 1 << 17 };
static char data[LONG];
int main(int argc, char** argv) {
  int rank, ranks;
  FILE* file;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < 20 && ranks > 1 && rank < 2; ++i) {
    if (rank == 0) MPI_Send(data, LONG, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(data, LONG, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  if (rank == 0 && (file = fopen("has-run", "a"))) {
    fprintf(file, "%s %s\\n", argv[0], argc > 1 ? argv[1] : "");
    fclose(file);
  }
  return argc > 1 ? atoi(argv[1]) : 0;
}
"""


class Command(WithPrograms):
    def program(self, name="program"):
        (self.folder / "program.c").write_text(PROGRAM)
        words = [self.bin / "mpicc", "-g", "-O1", "program.c", "-o", name]
        subprocess.run(words, check=True, timeout=60, env=clean(), cwd=self.folder)

    def record_only(self, *program, code=0):
        return self.advise("--no-calibrate", "--json", "--", *program, code=code)

    def folders(self):
        return sorted(path.name for path in self.folder.iterdir() if path.is_dir())

    def files(self, run):
        """But for the page of advice."""
        return sorted(path.name for path in (self.folder / run).iterdir() if path.name != "report.html")


class ExitCodes(Command):
    def test_that_of_the_program(self):
        self.program()
        done = self.record_only(*self.launcher, "./program", "0")
        self.assertEqual(self.data(done)["run"]["program"], "program")
        done = self.record_only(*self.launcher, "./program", "7", code=7)
        self.assertEqual(self.data(done)["run"]["program"], "program", "it is advised all the same")
        words = self.advise("--no-calibrate", "--", *self.launcher, "./program", "7", code=7)
        self.assertIn("waiting", words.stdout)
        self.assertIn("ended with exit code 7; what was recorded until then follows", words.stderr)
        self.assertEqual(self.folders(), ["headway-run-1", "headway-run-2", "headway-run-3"])
        self.advise("headway-run-2", code=0)

    def test_that_of_a_signal_is_a_shells(self):
        self.program()
        launcher = self.script("mpirun", f"{shlex.join(self.launcher)} \"$@\"; kill -9 $$")
        done = self.record_only(str(launcher), "./program", code=137)
        self.assertEqual(self.data(done)["run"]["program"], "program")

    def test_a_bad_line_goes_before_it(self):
        self.program()
        done = self.advise("--facts", "none", "--", *self.launcher, "./program", "7", code=2)
        self.assertIn("--facts", done.stderr)

    def test_a_line_that_does_not_start(self):
        done = self.advise("--", "./no-such-mpirun", "-n", "2", "./program", code=4)
        self.assertIn("./no-such-mpirun cannot be started: No such file", done.stderr)
        self.assertIn("nothing was recorded: ./no-such-mpirun ended with exit code 127", done.stderr)
        launcher = self.script("mpirun", "echo no MPI here >&2; exit 3")
        done = self.advise("--", str(launcher), "-n", "2", "./program", code=4)
        self.assertRegex(done.stderr, "nothing was recorded: .*mpirun ended with exit code 3 before a rank had begun MPI")
        self.assertEqual(self.folders(), [], "no folder stays")

    def test_a_line_that_records_nothing(self):
        done = self.advise("--", "true", code=4)
        self.assertIn("nothing was recorded: true may not pass its environment on", done.stderr)
        self.assertEqual(self.folders(), [])

    def test_no_folder_can_be_made(self):
        disk = self.disk("1M")
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        done = subprocess.run(
            [HEADWAY, "advise", "--", "touch", self.folder / "started"], capture_output=True, text=True, check=False,
            timeout=60, env=clean(), cwd=disk,
        )  # fmt: skip
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("nothing was recorded: there can be no folder for it here", done.stderr)
        self.assertFalse((self.folder / "started").exists())


class Folders(Command):
    """Which folder it reads, whoever records here meanwhile."""

    def setUp(self):
        super().setUp()
        self.program()

    @property
    def job(self):
        """Of somebody else, in this folder."""
        mine = " ".join(f"-u {name}" for name in ("LD_PRELOAD", "HEADWAY_RECORD", "HEADWAY_RECORD_OUT"))
        return f"env {mine} {shlex.join(self.launcher)} {shlex.quote(str(HEADWAY))} record"

    def test_another_job_that_begins_first(self):
        self.program("other")
        launcher = self.script("mpirun", f'{self.job} ./other 1\nexec {shlex.join(self.launcher)} "$@"')
        done = self.record_only(str(launcher), "./program", "0")
        self.assertEqual(self.data(done)["run"]["program"], "program")
        self.assertEqual(self.folders(), ["headway-run-1", "headway-run-2"])
        self.assertEqual(self.data(self.advise("--json", "headway-run-1"))["run"]["program"], "program")
        self.assertEqual(self.data(self.advise("--json", "headway-run-2"))["run"]["program"], "other")
        for run in self.folders():
            self.assertEqual(self.files(run), ["rank-0.hwr", "rank-1.hwr"])

    def test_two_jobs_of_one_line(self):
        """The first one has the folder; the second one's goes beside it, and mixes with nothing."""
        launcher = self.script("mpirun", f'{shlex.join(self.launcher)} "$@"\n{shlex.join(self.launcher)} "$@"')
        self.record_only(str(launcher), "./program", "0")
        self.assertEqual(self.folders(), ["headway-run-1", "headway-run-1-2"])
        for run in self.folders():
            self.assertEqual(self.files(run), ["rank-0.hwr", "rank-1.hwr"])

    def test_processes_without_a_launcher(self):
        """Each is a world of its own."""
        launcher = self.script("both", "./program 0 & ./program 0; wait")
        self.record_only(str(launcher))
        self.assertEqual(self.folders(), ["headway-run-1", "headway-run-1-2"])
        for run in self.folders():
            self.assertEqual(self.files(run), ["rank-0.hwr"])

    def test_a_note_that_somebody_else_took(self):
        launcher = self.script("mpirun", f'rm headway-run-1/.reserved\nexec {shlex.join(self.launcher)} "$@"')
        done = self.record_only(str(launcher), "./program", "0")
        self.assertEqual(self.data(done)["run"]["program"], "program")
        self.assertEqual(self.folders(), ["headway-run-1-2"])

    def test_what_is_there_is_not_used(self):
        (self.folder / "headway-run-1").mkdir()
        (self.folder / "headway-run-2").write_text("a file")
        os.symlink("nowhere", self.folder / "headway-run-3")
        self.record_only(*self.launcher, "./program")
        self.assertEqual(self.folders(), ["headway-run-1", "headway-run-4"])
        self.assertEqual(self.files("headway-run-1"), [])


class Names(Command):
    def test_no_two_have_one(self):
        os.chdir(self.folder)
        self.addCleanup(os.chdir, "/")
        one, other = advise_command.reserve(), advise_command.reserve()
        self.assertEqual((str(one), str(other)), ("headway-run-1", "headway-run-2"))
        self.assertIsNone(advise_command.recorded_in(one))
        (other / "rank-0.hwr").touch()
        for folder in (one, other):
            advise_command.give_up(folder)
        self.assertFalse(one.exists())
        self.assertEqual(self.files(other), ["rank-0.hwr"])
        self.assertEqual(advise_command.recorded_in(other), other)


class Answers(facts_test.WhereFrom):
    """A launcher that answers as an MPI would, and notes with what it was started."""

    test_nothing = test_what_lies_in_the_folder = test_what_was_asked_for_by_name_and_cannot_be_had = None
    test_a_launcher_that_does_not_answer_is_told = None

    def setUp(self):
        super().setUp()
        rows = [{"measure": "line", "mpi": MPI, "ranks": 2, "modules": "ucx ofi", "module": "ofi"}]
        rows += calibrated_made.rows("pull", (100_000,), runs=1)
        (self.folder / "rows").write_text("".join(f"@@{json.dumps(row)}\n" for row in rows))
        self.mpicc = self.script("mpicc", 'for word; do [ "$last" = -o ] && echo > "$word"; last=$word; done; exit 0')
        self.mpirun = str(self.script("mpirun", f'printf "%s\\n" "$*" >> {self.folder}/started\ncat {self.folder}/rows'))
        self.header = {"modules": "ucx ofi", "module": "ofi"}

    def ask(self, *words, program=False, folder=None, **more):
        run = run_of()
        run.ranks[0].header.update(self.header)
        asked = Asked(list(words), program, mpicc=self.mpicc, **more)
        return asking.facts_for(run, folder or self.folder, asked, lambda text, _style: self.said.append(text))

    def started(self):
        """What stood before the program that asks."""
        path = self.folder / "started"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return [line.partition(" /")[0] for line in lines]


class TheLine(Answers):
    """Of a line that comes with a recording."""

    def test_a_launcher(self):
        hosts = self.script("hosts", "not a script")
        hosts.write_text("node1\nnode2\n")  # as on a disk where all may be executed
        for words in (
            ["-n", "2"], ["-n", "2", "--hostfile", str(hosts)], ["--bind-to", "none", "-n", "2"],
            ["-n", "2", "taskset", "-c", "0"],
        ):  # fmt: skip
            with self.subTest(words=words):
                self.assertEqual(self.ask(self.mpirun, *words, calibrate=True).moves, (PULL,))
                self.assertEqual(len(self.started()), 1)
        self.ask("env", "A=1", self.mpirun, "-n", "2", calibrate=True)
        self.assertEqual(self.started(), ["-n 2"])

    def test_the_recorded_program_is_not_started(self):
        for words in (
            ["./prog", "3"], ["/elsewhere/prog", "3"], ["headway", "record", "./prog", "3"], ["headway", "record"], [],
        ):  # fmt: skip
            with self.subTest(words=words):
                self.assertEqual(self.ask(self.mpirun, "-n", "2", *words, calibrate=True).moves, (PULL,))
                self.assertEqual(self.started(), ["-n 2"])
        self.assertEqual(calibration.read(self.folder / calibration.FILE).launcher, [self.mpirun, "-n", "2"])

    def test_another_program_is_refused(self):
        other, names = self.script("other", "exit 0"), "does not end with the program and its arguments, and "
        for words, says in (
            (["./prog", "4"], f"{names}./prog would be started"),
            (["prog"], f"{names}prog would be started"),
            (["--", "/a/prog", "3", "more"], f"{names}/a/prog would be started"),
            ([str(other)], f"{names}{other} would be started"),
            (["python3", "solver.py"], f"{names}python3 would be started"),
            (["sh", "-c", "./prog 3"], f"{names}sh would be started"),
            (["headway", "record", "./prog", "4"], f"{names}./prog would be started"),
            ([":", "-n", "1"], "several programs"),
        ):
            for more in ({}, {"calibrate": True}):
                with self.subTest(words=words), self.assertRaises(BadLine) as problem:
                    self.ask(self.mpirun, "-n", "2", *words, **more)
                self.assertIn(says, str(problem.exception))
                self.assertIn("Name the launcher alone, as in headway advise", str(problem.exception))
        with self.assertRaisesRegex(BadLine, "without a launcher"):
            self.ask("./prog", "3")
        self.assertEqual(self.started(), [])

    def test_one_that_is_not_asked_may_have_any(self):
        self.ask(self.mpirun, "./other", calibrate=False)
        self.keep("pull")
        self.assertEqual(self.ask(self.mpirun, "./prog", "4").moves, (PULL,))
        self.assertEqual(self.started(), [])


class Modules(Answers):
    """MPICH with two network modules is two MPIs."""

    def test_which_one_it_is(self):
        for told, module in (
            ({"modules": "ucx ofi", "module": "ofi"}, "ofi"), ({"modules": "ucx ofi", "module": ""}, "ucx"),
            ({"modules": "ucx,ofi"}, "ucx"), ({"modules": "ofi", "module": "ucx"}, "ofi"), ({"module": "ofi"}, ""), ({}, ""),
            ({"modules": "ucx ofi", "module": "OFI"}, "ofi"), ({"modules": 7, "module": [1]}, ""),
            ({"modules": "ofi", "module": 7}, "ofi"),
        ):  # fmt: skip
            self.assertEqual(calibration.module(told), module, told)

    def test_kept_answers(self):
        self.ask(self.mpirun, "-n", "2")
        self.assertEqual(len(self.started()), 1)
        self.assertEqual(calibration.read(self.folder / calibration.FILE).module, "ofi")
        self.ask(self.mpirun, "-n", "2")
        self.assertEqual(self.ask(named=self.folder).moves, (PULL,))
        self.assertEqual((self.started(), len(self.said)), ([], 1), "not asked again")
        rows = self.folder / "rows"
        rows.write_text(rows.read_text().replace('"module": "ofi"', '"module": ""'))
        self.header = {"modules": "ucx ofi", "module": "ucx"}
        self.assertEqual(self.ask().seen, {})
        self.assertRegex(self.said[-1], "left out: .* is of another network module, ofi; the run's is ucx")
        with self.assertRaisesRegex(BadLine, "--facts: .* of another network module, ofi; the run's is ucx"):
            self.ask(named=self.folder)
        self.assertEqual(self.ask(self.mpirun, "-n", "2").moves, (PULL,), "asked anew")
        self.assertEqual(calibration.read(self.folder / calibration.FILE).module, "ucx")

    def test_a_launcher_with_another_one(self):
        self.header = {"modules": "ucx ofi", "module": ""}
        self.assertEqual(self.ask(self.mpirun, "-n", "2").seen, {})
        self.assertIn("that is of another network module, ofi; the run's is ucx (MPIR_CVAR_CH4_NETMOD=ucx)", self.said[0])
        self.assertFalse((self.folder / calibration.FILE).exists())

    def test_where_it_is_not_known(self):
        self.keep("pull")
        self.assertEqual(self.ask().moves, (PULL,), "answers of an older headway")
        self.header = {}
        self.assertEqual(self.ask(self.mpirun, "-n", "2", calibrate=True).moves, (PULL,), "a recording of an older headway")
        self.assertEqual(self.ask().moves, (PULL,))
        self.assertEqual(self.started(), ["-n 2"])


class StudiedModules(facts_test.OfAStudy):
    test_what_its_verdicts_mean = test_which_mpi_of_it = test_no_study = None

    def run_with(self, module):
        run = run_of()
        run.ranks[0].header.update({"modules": "ucx ofi", "module": module})
        return run

    def test_the_runs_own(self):
        path = self.study(0.0, 1.0, 8192, ("mpich-ofi", "mpich-ucx"))
        with mock.patch.dict(os.environ, {"MPIR_CVAR_CH4_NETMOD": "ofi"}):  # of who asks now
            for module in ("ofi", "ucx"):
                self.assertIn(f"mpich-{module}", calibration.load(path, self.run_with(module)).source)
            self.assertIn("mpich-ofi", calibration.load(path, run_of()).source)

    def test_the_other_one_alone(self):
        path = self.study(0.0, 1.0, 8192, ("mpich-ofi",))
        with self.assertRaisesRegex(BadRecording, "has mpich-ofi, and not the run's network module, ucx"):
            calibration.load(path, self.run_with("ucx"))
        self.assertIn("mpich-ofi", study_facts.read(path, MPI, module="ofi").source)


class Words(Answers):
    """Words of the environment that choose how messages move make another MPI of it."""

    def setUp(self):
        super().setUp()
        self.answers(["UCX_TLS=tcp", "FI_PROVIDER=tcp"])
        self.header |= {"words": ["FI_PROVIDER=tcp", "UCX_TLS=tcp"]}

    def answers(self, words):
        lines = (self.folder / "rows").read_text().splitlines()
        row = json.loads(lines[0].removeprefix("@@")) | {"words": words}
        (self.folder / "rows").write_text("\n".join([f"@@{json.dumps(row)}", *lines[1:]]) + "\n")

    def test_kept_answers(self):
        self.assertEqual(self.ask(self.mpirun, "-n", "2").moves, (PULL,))
        self.assertEqual(calibration.read(self.folder / calibration.FILE).words, ["FI_PROVIDER=tcp", "UCX_TLS=tcp"])
        self.assertEqual((self.ask().moves, len(self.said)), ((PULL,), 1), "in any order")
        says = r"was made under other words of the environment \(UCX_TLS=tcp\); the run had OMPI_MCA_btl=tcp,self UCX_TLS=shm"
        self.header["words"] = ["UCX_TLS=shm", "OMPI_MCA_btl=tcp,self", "FI_PROVIDER=tcp"]
        self.assertEqual(self.ask().seen, {})
        self.assertRegex(self.said[-1], f"left out: .*{says}")
        self.header["words"] = []
        with self.assertRaisesRegex(BadLine, r"--facts: .* \(FI_PROVIDER=tcp UCX_TLS=tcp\); the run had none of these"):
            self.ask(named=self.folder)

    def test_a_launcher_without_them(self):
        self.answers([])
        self.assertEqual(self.ask(self.mpirun, "-n", "2").seen, {})
        why = "started under other words of the environment (none); the run had FI_PROVIDER=tcp UCX_TLS=tcp"
        self.assertIn(why, self.said[0])
        self.assertFalse((self.folder / calibration.FILE).exists())

    def test_where_they_are_not_known(self):
        self.keep("pull")
        self.assertEqual(self.ask().moves, (PULL,), "answers of an older headway")
        del self.header["words"]
        self.assertEqual(self.ask(self.mpirun, "-n", "2", calibrate=True).moves, (PULL,), "a recording of an older headway")
        for words in (7, [7], None):
            self.assertIsNone(calibration.transport_words({"words": words}))

    def test_what_c_cannot_print(self):
        self.header["words"] = ['UCX_TLS="a\\b"']
        self.answers(["UCX_TLS= a b "])
        self.assertEqual(self.ask(self.mpirun, "-n", "2").moves, (PULL,))

    def test_headers(self):
        good = {"version": 1, "rank": 0, "size": 1, "ticks": "ns", "functions": []}
        fields.check_header(good | {"words": ["UCX_TLS=tcp"]})
        for words in ("UCX_TLS=tcp", [7], {}, ["A=1"] * 2000):
            with self.assertRaisesRegex(BadRecording, "words is no list of texts"):
                fields.check_header(good | {"words": words})


class StudiedWords(facts_test.OfAStudy):
    test_what_its_verdicts_mean = test_which_mpi_of_it = test_no_study = None

    def test_a_study_has_none(self):
        path = self.study(0.0, 1.0, 8192)
        run = run_of()
        run.ranks[0].header["words"] = []
        self.assertIn("mpich-ofi", calibration.load(path, run).source)
        run.ranks[0].header["words"] = ["UCX_TLS=tcp"]
        why = "was measured without UCX_TLS=tcp, which the run had in its environment; --facts .*:mpich-ofi takes it all the same"
        with self.assertRaisesRegex(BadRecording, why):
            calibration.load(path, run)
        self.assertIn("mpich-ofi", calibration.load(path.with_name(f"{path.name}:mpich-ofi"), run).source)
        said = []
        with mock.patch.object(asking, "STUDY", path):
            self.assertEqual(asking.facts_for(run, self.folder / "run", Asked(), lambda text, _: said.append(text)).seen, {})
        self.assertRegex(said[0], f"left out: .* {why}")


class NotKept(Answers):
    def test_answers_that_cannot_be_kept_are_used(self):
        (self.folder / calibration.FILE).mkdir()
        found = self.ask(self.mpirun, "-n", "2")
        self.assertEqual((found.moves, found.source), ((PULL,), "not kept"))
        self.assertRegex(self.said[-1], r"^asked how .*; the answers are used, but cannot be kept in .*calibration.json: ")
        self.assertFalse([text for text in self.said if "was not asked" in text])
        self.assertFalse([path.name for path in self.folder.iterdir() if path.name.startswith(".")])
        self.assertEqual(self.ask(self.mpirun, "-n", "2", calibrate=True).moves, (PULL,), "no bad line")

    def test_a_file_is_whole_or_not_there(self):
        self.keep("pull")
        before = (self.folder / calibration.FILE).read_text()

        def half(path, text):
            with open(path, "w") as file:
                file.write(text[: len(text) // 2])
            raise OSError(28, "No space left on device")

        says = r"calibration\.json cannot be written: No space left on device$"
        with mock.patch.object(Path, "write_text", half), self.assertRaisesRegex(whole.NotWritten, says):
            calibration.write(calibration.Calibration(MPI, []), self.folder)
        self.assertEqual((self.folder / calibration.FILE).read_text(), before)
        self.assertEqual([path.name for path in self.folder.iterdir() if path.name.startswith(".")], [])

    def test_a_folder_in_which_nothing_can_be_made(self):
        os.chdir(self.folder)
        self.addCleanup(os.chdir, "/")
        found = self.ask(self.mpirun, "-n", "2", folder=Path("/proc/self"))
        self.assertEqual((found.moves, found.source), ((PULL,), "not kept"))
        with calibration.workplace(Path("/proc/self")) as work:
            self.assertEqual(Path(work).resolve().parent, self.folder.resolve())
        os.chdir("/proc/self")
        with calibration.workplace(Path("/proc/self")) as work:
            self.assertTrue(os.access(work, os.W_OK))


class ReadOnly(Command):
    def test_a_recording_that_may_only_be_read(self):
        self.program()
        self.record_only(*self.launcher, "./program")
        disk = self.disk("4M")
        for path in (self.folder / "headway-run-1").iterdir():
            (disk / path.name).write_bytes(path.read_bytes())
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        done = self.advise(str(disk), "--", *self.launcher)
        if "never had their cores undisturbed" in done.stderr:
            self.skipTest("others use this machine")
        self.assertRegex(done.stderr, "asked how this MPI moves messages: .*; the answers are used, but cannot be kept in ")
        self.assertIn("Measured of this MPI (not kept)", done.stdout)


class WithARecording(Command):
    def test_its_program_is_not_started_again(self):
        self.program()
        self.record_only(*self.launcher, "./program", "0")
        self.assertEqual((self.folder / "has-run").read_text(), "./program 0\n")
        done = self.advise("headway-run-1", "--", *self.launcher, "./program", "0")
        self.assertEqual((self.folder / "has-run").read_text(), "./program 0\n")
        if "never had their cores undisturbed" not in done.stderr:
            kept = calibration.read(self.folder / "headway-run-1" / calibration.FILE)
            self.assertEqual(kept.launcher, self.launcher)
        done = self.advise("--calibrate", "headway-run-1", "--", *self.launcher, "./program", "1", code=2)
        self.assertIn("does not end with the program and its arguments, and ./program would be started", done.stderr)
        self.assertEqual((self.folder / "has-run").read_text(), "./program 0\n")


class RealModules(Command):
    bin = cache() / "mpich" / "bin"

    def test_header_and_answers_tell_them(self):
        self.program()
        told = {}
        for number, module in enumerate(("", "ofi", "ucx"), 1):
            chosen = ["-genv", "MPIR_CVAR_CH4_NETMOD", module] if module else []
            self.advise("--", *self.launcher, *chosen, "./program")
            folder = self.folder / f"headway-run-{number}"
            header = format.read(folder / "rank-0.hwr").rank.header
            told[module] = calibration.module(header)
            if (folder / calibration.FILE).exists():
                self.assertEqual(calibration.read(folder / calibration.FILE).module, told[module])
        if "," not in header["modules"] and " " not in header["modules"].strip():
            self.skipTest("this MPICH has one module")
        self.assertEqual((told["ofi"], told["ucx"]), ("ofi", "ucx"))
        self.assertIn(told[""], ("ofi", "ucx"))
        self.assertTrue(header["mpi"].startswith("MPICH"))
        kept = self.folder / "headway-run-2" / calibration.FILE
        if not kept.exists():
            self.skipTest("others use this machine")
        done = self.advise("--facts", str(kept), "headway-run-3", code=2)
        self.assertIn("is of another network module, ofi; the run's is ucx", done.stderr)


class RealWords(Command):
    """Of our own library: what its mpiexec sets for the ranks."""

    def test_header_and_answers_tell_them(self):
        self.program()
        with_, without = [*self.launcher, "--set", "SEND_AHEAD=0"], self.launcher
        self.advise("--", *with_, "./program")
        self.record_only(*without, "./program")
        one, other = (format.read(self.folder / f"headway-run-{n}" / "rank-0.hwr").rank.header for n in (1, 2))
        self.assertEqual((one["words"], other["words"]), (["HEADWAY_SEND_AHEAD=0"], []))
        kept = self.folder / "headway-run-1" / calibration.FILE
        if not kept.exists():
            self.skipTest("others use this machine")
        self.assertEqual(calibration.read(kept).words, ["HEADWAY_SEND_AHEAD=0"])
        done = self.advise("--facts", str(kept), "headway-run-2", code=2)
        self.assertIn("under other words of the environment (HEADWAY_SEND_AHEAD=0); the run had none of these", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=1)
