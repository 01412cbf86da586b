#!/usr/bin/env python3
"""What was measured of an MPI, judged: against simulated MPIs whose behaviour is known, and files that make no sense."""

import copy
import json
import random
import sqlite3
import unittest
from pathlib import Path

from support import Folder, drawn_seed, main, need_packages

need_packages("numpy", "rich", "typer")

import calibrated_made  # noqa: E402
import numpy as np  # noqa: E402
from headway.measure.store import Store  # noqa: E402
from headway.record import asking, calibration, facts, study_facts  # noqa: E402
from headway.record.asking import Asked  # noqa: E402
from headway.record.format import BadRecording  # noqa: E402
from headway.record.model import MESSAGE, Rank, Run  # noqa: E402
from headway.record.transport import ALWAYS, BEGUN, PULL, PUSH, Model, Rule  # noqa: E402
from headway.shown import BadLine  # noqa: E402

SEED = drawn_seed()
MPI = "MPICH Version: 5.0.2"


def run_of(sizes=(100_000,), arguments=("./prog", "3"), mpi=MPI + "\nmore"):
    none = np.zeros(0)
    header = {"arguments": list(arguments), "mpi": mpi}
    rank = Rank(0, "h", "b", header, none, none, none, [], [])
    messages = np.zeros(len(sizes), MESSAGE)
    messages["bytes"] = sizes
    return Run("headway-run-1", [rank], messages=messages)


class Judged(unittest.TestCase):
    def test_simulated_mpis(self):
        for progress, way, busy in (("thread", ALWAYS, False), ("calls", BEGUN, False), ("pull", PULL, True)):
            seen = calibrated_made.facts_of(progress).seen["near"]
            self.assertEqual([one.size for one in seen], list(calibrated_made.SIZES))
            self.assertEqual([one.copied for one in seen], [True] * 4 + [False] * 4, progress)
            self.assertEqual([one.together for one in seen], [8 * size for size in calibrated_made.SIZES[:4]] + [-1] * 4)
            for one in seen[4:]:
                self.assertEqual((one.moves, one.busy, one.acked), ((way,), busy, False), (progress, one.size))
                self.assertAlmostEqual(one.least, 3000 * (2 if way != PULL else 1) + 0.1 * one.size, delta=0.04 * one.least)
        self.assertIs(calibrated_made.facts_of("pull").begins, False)

    def test_sends_that_end_at_their_receivers_next_call(self):
        """As a late receiver with a call before: the times of the sender alone change."""
        rows = list(calibrated_made.rows("thread", (1000,)))
        for row in rows:
            if row.get("what") in ("late", "late, a call before", "receiver away"):
                row["sender"]["all"] = [row["delay_us"] + 1] * 3
        one = facts.read_rows(rows).seen["near"][0]
        self.assertEqual((one.copied, one.acked), (True, True))
        self.assertIn("their sends end when the receiver is in a call", one.text)

    def test_how_much_is_copied_together(self):
        one = facts.read_rows(calibrated_made.rows("calls", (30_000,), together=100_000)).seen["near"][0]
        self.assertEqual((one.copied, one.together), (True, 30_000))

    def test_waits_that_let_go_and_sends_that_push(self):
        """What is copied aside because a wait lasted too long is no message that is copied."""
        for one in calibrated_made.facts_of("pushed").seen["near"]:
            if one.copied:
                self.assertEqual((one.lets_go, one.pushed), (None, False), one.size)
                continue
            self.assertEqual((one.copied, one.acked, one.moves, one.busy), (False, False, (ALWAYS,), False), one.size)
            self.assertTrue(one.pushed)
            self.assertAlmostEqual(one.lets_go, 150_000 + 0.05 * one.size, delta=5_000)
            self.assertIn("whoever waits for a send alone goes on after", one.text)
            self.assertIn("a blocking send brings them itself", one.text)
        for rule in calibrated_made.facts_of("pushed").rules:
            self.assertEqual(rule.pushed and rule.lets_go is not None, rule.copied is not True, rule)
        for progress in ("thread", "calls", "pull", "matching", "acked"):
            for one in calibrated_made.facts_of(progress).seen["near"]:
                self.assertEqual((one.lets_go, one.pushed), (None, False), (progress, one.size))

    def test_who_sleeps_between_two_looks_is_let_go_late(self):
        """In one of both experiments only when the receiver came: the other one tells. Of a file without it nobody knows."""
        for slow, times in ((facts.LONG_LATE, 3), ("late", 1)):
            rows = list(calibrated_made.rows("pushed", (300_000,)))
            late = next(row for row in rows if row.get("what") == slow)
            late["sender"]["wait"] = [times * late["delay_us"]] * 3
            late["sender"]["all"] = [(times + (times > 1)) * late["delay_us"]] * 3
            one = facts.read_rows(rows).seen["near"][0]
            self.assertEqual(one.copied, False, slow)
            self.assertAlmostEqual(one.lets_go, 165_000, delta=5_000, msg=slow)
        rows = [row for row in rows if row.get("what") not in (facts.LONG_LATE, facts.BLOCKING)]
        one = facts.read_rows(rows).seen["near"][0]
        self.assertEqual((one.lets_go, one.pushed), (None, False))

    def test_who_pays_for_what_cores_copy(self):
        """Computation that is slower, an MPI_Isend that lasts longer, or a rest that is left for the waits."""

        def steals(sender=(0.0, 0.0), receiver=(0.0, 0.0)):
            rows = list(calibrated_made.rows("pushed", (1_000_000,)))
            for row in rows:
                if row["measure"] == "moves":
                    away = row["what"] == "both away"
                    for name, (all_us, lost) in (("sender", sender), ("receiver", receiver)):
                        row[name]["lost"] = [3.0 + lost * away] * 3
                        row[name]["all"] = [us + all_us * away for us in row[name]["all"]]
            return facts.read_rows(rows).seen["near"][0].steals

        before = steals()
        self.assertLess(max(before), 0.01)
        for name, at in (("sender", 0), ("receiver", 1)):
            for paid in ((80.0, 0.0), (0.0, 80.0), (30.0, 50.0)):
                self.assertAlmostEqual(steals(**{name: paid})[at], before[at] + 0.08, delta=1e-6, msg=(name, paid))

    def test_what_both_copy_takes_one_alone_longer(self):
        rows = list(calibrated_made.rows("pushed", (1_000_000,)))
        for row in rows:
            if row.get("what") == "late":
                row["receiver"]["wait"] = [us / 2 for us in row["receiver"]["wait"]]
        one = facts.read_rows(rows).seen["near"][0]
        self.assertAlmostEqual(one.by_one, 2.0, delta=0.1)
        self.assertEqual(facts.read_rows(row | {"place": "far"} for row in rows).seen["far"][0].by_one, 1.0, "a wire does not")

    def test_a_sender_that_pushes(self):
        """A pull with the sides exchanged."""
        rows = {row.get("what"): row for row in calibrated_made.rows("pull", (1_000_000,))}
        changed = copy.deepcopy(rows)
        for one, other in (("receiver away", "sender away"), ("receiver tests", "sender tests")):
            for a, b in ((one, other), (other, one)):
                changed[a]["sender"], changed[a]["receiver"] = rows[b]["receiver"], rows[b]["sender"]
        one = facts.read_rows(changed.values()).seen["near"][0]
        self.assertEqual((one.moves, one.busy), ((PUSH,), True))

    def test_a_test_that_copies_a_piece(self):
        for size, piece in ((1_000_000, 400_000), (3_000_000, 400_000), (1_000_000, 700_000), (300_000, 400_000)):
            one = facts.read_rows(calibrated_made.rows("pull", (size,), piece=piece)).seen["near"][0]
            self.assertEqual((one.moves, one.busy), ((PULL,), True), size)
            if piece < size:
                self.assertAlmostEqual(one.piece, 0.9 * piece, delta=0.05 * piece)
                self.assertIn("of them in a test", one.text)
            else:
                self.assertIsNone(one.piece)

    def test_a_test_that_copies_a_small_piece(self):
        """Of 3 MB a test copies one part in fifteen, which no wait shows; of 1 MB one in five."""
        rows = list(calibrated_made.rows("pull", (1_000_000, 3_000_000), piece=200_000))
        small, large = facts.read_rows(rows).seen["near"]
        self.assertEqual((large.moves, large.busy, large.piece), ((PULL,), True, small.piece))
        for row in rows:
            if row["size"] > 1_000_000 and row.get("what") == "sender away":
                row["receiver"]["all"] = [time + row["delay_us"] for time in row["receiver"]["all"]]
        self.assertIsNone(facts.read_rows(rows).seen["near"][1].piece, "its sender is needed")

    def test_tests_that_cost_and_move_nothing(self):
        rows = list(calibrated_made.rows("matching", (1_000_000,)))
        wanted = facts.read_rows(rows).seen["near"][0]
        for row in rows:
            if row.get("what") == "receiver tests":
                row["receiver"]["one"] = [0.2 * time for time in row["receiver"]["wait"]]
        one = facts.read_rows(rows).seen["near"][0]
        self.assertEqual((one.moves, one.piece), (wanted.moves, None))
        self.assertNotIn(PULL, one.moves)

    def test_what_computation_loses(self):
        rows = list(calibrated_made.rows("thread", (1_000_000,)))
        for row in rows:
            if row["measure"] == "moves":
                away = row["what"] == "both away"
                row["sender"]["lost"], row["receiver"]["lost"] = [3.0] * 3, [103.0 if away else 3.0] * 3
        one = facts.read_rows(rows).seen["near"][0]
        self.assertEqual(one.steals, (0.0, 0.1), "ns a byte; 3 us is what is lost without any message")
        self.assertIn("and take 100 µs from computation", one.text)
        self.assertEqual(calibrated_made.facts_of("thread").seen["near"][-1].steals, (0.0, 0.0))

    def test_slow_transfers_decide_nothing(self):
        """There and back takes several times as long where cores are taken, or caches are cold: not so what is left."""
        for progress in ("thread", "calls", "pull"):
            wanted = calibrated_made.facts_of(progress).seen["near"]
            for factor in (0.5, 2, 6):
                rows = list(calibrated_made.rows(progress))
                for row in rows:
                    if row["measure"] == "transfer":
                        row["samples"] = [factor * time for time in row["samples"]]
                for one, other in zip(facts.read_rows(rows).seen["near"], wanted):
                    what = progress, factor, one.size
                    self.assertEqual(one.copied, other.copied, what)
                    if not one.copied:
                        self.assertEqual((one.moves, one.busy, one.begins), (other.moves, other.busy, other.begins), what)

    def test_a_transfer_may_be_as_short_as_in_any_experiment(self):
        """There and back the buffers were written by the other core each time; a program's may lie still."""
        rows = list(calibrated_made.rows("pull", (1_000_000,)))
        known = facts.read_rows(rows).seen["near"][0].least
        for row in rows:
            if row["measure"] == "transfer":
                row["samples"] = [6 * time for time in row["samples"]]
        one = facts.read_rows(rows).seen["near"][0]
        self.assertAlmostEqual(one.least, known, delta=0.05 * known)
        self.assertGreater(one.usual, 5 * known)

    def test_one_slow_run_of_three_decides_nothing(self):
        for progress in ("thread", "calls", "pull"):
            wanted = calibrated_made.facts_of(progress).seen["near"]
            rows = list(calibrated_made.rows(progress))
            for row in rows:
                for side in ("sender", "receiver") if row["measure"] == "moves" else ():
                    for times in row[side].values():
                        times[1] += 4000  # a time slice
                if row["measure"] == "transfer":
                    row["samples"][2] += 4000
            seen = facts.read_rows(rows).seen["near"]
            self.assertEqual([(s.copied, s.moves) for s in seen], [(s.copied, s.moves) for s in wanted], progress)

    def test_what_was_not_asked_is_not_known(self):
        rows = [row for row in calibrated_made.rows("pull", (1_000_000,)) if row.get("what") != "both away"]
        found = facts.read_rows(rows)
        self.assertEqual((found.seen["near"][0].copied, found.rules, found.moves), (None, (), ()))
        self.assertEqual(facts.read_rows([]).lines, (None, None))

    def test_rules_reach_from_size_to_size(self):
        rules = calibrated_made.facts_of("pull").rules
        model = Model(BEGUN, -1, rules=rules)
        for size, copied in ((0, True), (64, True), (40_000, True), (60_000, True), (100_000, False), (11_000_000, False)):
            self.assertEqual(model.way(size, False).copied, copied, size)
        for eager in (60_000, 70_000):  # between two answers the model counts
            self.assertEqual(Model(BEGUN, eager, rules=rules).way(65_000, False).copied, eager == 70_000)
        self.assertEqual(model.way(65_000, False).moves, PULL)
        self.assertEqual(model.way(100_000, False).moves, PULL)
        self.assertEqual(model.way(100_000_000, False).moves, BEGUN, "so large ones were not asked")
        self.assertEqual(model.way(100_000, True), Rule(True, 0, 100_000, False, BEGUN, ahead=0), "nor between hosts")
        for one, other in zip(rules, rules[1:]):
            self.assertGreater(other.low, one.high)

    def test_times_between_sizes(self):
        line = calibrated_made.facts_of("pull").lines[0]
        sizes = np.array([0, 64, 550_000, 1_000_000, 6_000_000])
        true = np.where(sizes == 0, 3006, 3000 + 0.1 * sizes)
        np.testing.assert_allclose(line.time(sizes), true, rtol=0.05)


class NoSense(Folder):
    def test_rows(self):
        good = list(calibrated_made.rows("pull", (100_000,), runs=1))
        facts.read_rows(good)
        for path, value in (
            (("place",), "here"), (("size",), -1), (("size",), 1 << 60), (("size",), True), (("size",), "7"),
            (("samples",), []), (("samples",), [-1.0]), (("samples",), [float("nan")]), (("samples",), ["1"]),
            (("samples",), {}), (("samples",), [1e300]), (("delay_us",), None), (("sender",), 7), (("sender", "all"), None),
            (("receiver", "wait"), [None]), (("receiver", "one"), [True]),
        ):  # fmt: skip
            rows = copy.deepcopy(good)
            at = next(i for i, row in enumerate(rows) if path[0] in row)
            inside = rows[at]
            for key in path[:-1]:
                inside = inside[key]
            inside[path[-1]] = value
            with self.assertRaises(ValueError, msg=(path, value)):
                facts.read_rows(rows)

    def test_files(self):
        kept = calibration.Calibration(MPI, list(calibrated_made.rows("pull", (100_000,), runs=1)), ["mpirun", "-n", "2"])
        calibration.write(kept, self.folder)
        path = self.folder / calibration.FILE
        found = calibration.load(self.folder, run_of())
        self.assertEqual((found.moves, found.source), ((PULL,), str(path)))
        self.assertEqual(calibration.read(path), kept)
        data = json.loads(path.read_text())
        for change, says in (
            ({"format": "x"}, "no calibration"), ({"version": 2}, "of version 2"), ({"version": [1]}, "of version"),
            ({"rows": {}}, "holds no rows"), ({"rows": [7]}, "holds no rows"), ({"mpi": "Open MPI v5"}, "another MPI: Open"),
            ({"mpi": None}, "another MPI"), ({"rows": [{"measure": "transfer"}]}, "cannot be used: a row has no place"),
        ):  # fmt: skip
            path.write_text(json.dumps(data | change))
            with self.assertRaisesRegex(BadRecording, says, msg=change):
                calibration.load(path, run_of())
        for text, says in (("", "cannot be read"), ("[", "cannot be read"), ("7", "no calibration"), ("[" * 10**5, "cannot be read")):
            path.write_text(text)
            with self.assertRaisesRegex(BadRecording, says):
                calibration.load(path, run_of())
        with self.assertRaisesRegex(BadRecording, "holds neither"):
            calibration.load(Path("/proc/self/fd"), run_of())

    def test_any_change_of_a_file_is_told_or_does_no_harm(self):
        draw = random.Random(SEED)
        rows = json.dumps(list(calibrated_made.rows("calls", (64, 100_000), runs=1)))
        for _ in range(150):
            text = list(rows)
            for _ in range(draw.randrange(1, 4)):
                text[draw.randrange(len(text))] = draw.choice('0123456789,.:[]{}"-eE')
            try:
                changed = json.loads("".join(text))
                found = facts.read_rows(row for row in changed if isinstance(row, dict))
            except (ValueError, TypeError) as problem:
                self.assertIsInstance(problem, ValueError, "".join(text))
                continue
            for line in found.lines:
                if line is not None:
                    self.assertGreaterEqual(int(line.time(np.array([1 << 40])).min()), 0)


class TheLine(unittest.TestCase):
    def test_without_its_program(self):
        launcher = ["mpirun", "-n", "4", "--bind-to", "none"]
        for program in (["./prog", "3"], ["/here/prog", "3"]):
            self.assertEqual(calibration.without_program([*launcher, *program], run_of()), launcher)
        recorded = [*launcher, "/opt/bin/headway", "record", "--out", "x", "./prog", "3"]
        self.assertEqual(calibration.without_program(recorded, run_of()), launcher)
        python = run_of(arguments=("python3", "solver.py"))
        self.assertEqual(calibration.without_program(["srun", "python3", "solver.py"], python), ["srun"])

    def test_where_it_cannot_be_told_from_it(self):
        for words, says in (
            (["mpirun", "./wrapper.sh", "./prog"], "does not end with the program"),
            (["mpirun", "-n", "1", "./prog", "3", ":", "-n", "1", "./prog", "3"], "several programs"),
            (["./prog", "3"], "without a launcher"),
            ([], "does not end"),
        ):
            with self.assertRaisesRegex(BadRecording, says, msg=words):
                calibration.without_program(words, run_of())
        for arguments in ((), (7,)):
            with self.assertRaises(BadRecording):
                calibration.without_program(["mpirun", "./prog"], run_of(arguments=arguments))

    def test_sizes_that_count(self):
        sizes = [8] * 1000 + [70_000] * 100 + [72_000] * 30 + [3_000_000] * 20 + [1 << 40]
        found = calibration.sizes_of(run_of(sizes))
        self.assertEqual(set(found), {70_000, 3_000_000, calibration.LARGEST})
        self.assertEqual(calibration.sizes_of(run_of([8, 8])), [])
        self.assertLessEqual(len(calibration.sizes_of(run_of([1000 * 2**n for n in range(12)]))), calibration.SIZES)

    def test_one_mpi_or_another(self):
        self.assertTrue(calibration.same_mpi('Open MPI v5.0.11, "x"  y', "Open MPI v5.0.11,  x  y"))
        self.assertFalse(calibration.same_mpi("MPICH Version: 5.0.2", "MPICH Version: 5.0.1"))
        self.assertFalse(calibration.same_mpi("", ""))


class WhereFrom(Folder):
    def setUp(self):
        super().setUp()
        self.said = []

    def facts_for(self, **asked):
        return asking.facts_for(run_of(), self.folder, Asked(**asked), lambda text, _style: self.said.append(text))

    def keep(self, progress, mpi=MPI):
        rows = list(calibrated_made.rows(progress, (100_000,), runs=1))
        calibration.write(calibration.Calibration(mpi, rows), self.folder)

    def test_nothing(self):
        self.assertEqual(self.facts_for().seen, {})
        self.assertEqual(self.said, [])

    def test_what_lies_in_the_folder(self):
        self.keep("pull")
        self.assertEqual(self.facts_for().moves, (PULL,))
        self.keep("pull", "Open MPI v4")
        self.assertEqual(self.facts_for().seen, {})
        self.assertRegex(self.said[0], "left out: .* another MPI")

    def test_what_was_asked_for_by_name_and_cannot_be_had(self):
        for asked, says in (
            ({"named": self.folder / "none"}, "--facts: .* cannot be read"),
            ({"calibrate": True}, "--calibrate needs the launcher"),
            ({"calibrate": True, "launcher": ["/none/mpirun"], "mpicc": Path("/none/mpicc")}, "does not compile"),
        ):
            with self.assertRaisesRegex(BadLine, says, msg=asked):
                self.facts_for(**asked)

    def test_a_launcher_that_does_not_answer_is_told(self):
        mpicc = self.script("mpicc", 'for word; do out=$last; last=$word; [ "$out" = -o ] && echo > "$word"; done; exit 0')
        launcher = self.script("mpirun", "echo it broke >&2; exit 3")
        self.assertEqual(self.facts_for(launcher=[str(launcher), "-n", "2"], mpicc=mpicc).seen, {})
        self.assertRegex(self.said[0], "was not asked: .*mpirun -n 2 did not answer: exit code 3: it broke")
        other = self.script("mpirun2", """echo '@@{"measure":"line","mpi":"Other","ranks":2}'
echo '@@{"measure":"transfer","place":"near","size":64,"samples":[1]}'""")
        self.assertEqual(self.facts_for(launcher=[str(other)], mpicc=mpicc).seen, {})
        self.assertRegex(self.said[1], "that is another MPI: Other; the run's is MPICH Version: 5.0.2")
        self.assertFalse([path for path in self.folder.iterdir() if path.name.startswith(".calibrate")])


class OfAStudy(Folder):
    """A store with what a study writes of one MPI in shared memory."""

    def study(self, recv, send, switch, names=("mpich-ofi",)):
        store = Store(self.folder / study_facts.FILE, False)
        store.tell(
            labels={n: n for n in names}, versions={n: "5.0.2" for n in names}, places=[["shm", "shared memory"]], quick=True,
            finds=["s", "ws", "left"], left_out={}, notes=[], machine={}, limits={},
        )  # fmt: skip
        base = {"place": "shm", "turn": 0, "failure": "", "verdict": {}, "settings": "", "title": ""}
        for name in names:
            rows = [{"measure": "latency", "size": s, "unit": "us", "samples": [1 + s * 1e-4] * 3} for s in (1000, 100_000)]
            store.add(f"shm/latency|{name}|0", base | {"test": "latency", "mpi": name, "rows": rows})
            for side, share in (("recv", recv), ("send", send)):
                extra = {"delay": 2.0, "fixed": 0, "delay_us": 20, "l0_us": 10, "l0_after_us": 10, "latency_us": 20}
                extra |= {"left_us": 10 * (1 - share), "arrived_share": float(share > 0.5), "arrived_us": 5}
                rows = [
                    {"measure": f"progress_{side}", "size": s, "samples": [share], "extra": extra, "unit": "share"}
                    for s in (1000, 100_000)
                ]
                store.add(f"shm/progress/{side}|{name}|0", base | {"test": f"progress/{side}", "mpi": name, "rows": rows})
            extra = {"count": 1, "watch": "left", "free_to": switch - 1, "least": 64, "most": 1 << 22, "held": 1, "doubts": 0}
            found = {"measure": "blocks_from", "size": switch, "samples": [switch], "unit": "bytes", "extra": extra}
            look = {"measure": "stays", "size": switch, "samples": [1.0], "unit": "share", "extra": {"count": 1, "runs": 5}}
            store.add(f"shm/find/left|{name}|0", base | {"test": "find/left", "mpi": name, "rows": [look, found]})
        store.close()
        return self.folder / study_facts.FILE

    def test_what_its_verdicts_mean(self):
        for recv, send, way in ((0.0, 1.0, PULL), (1.0, 1.0, ALWAYS), (1.0, 0.0, PUSH)):
            found = study_facts.read(self.study(recv, send, 8192), MPI)
            small, large = found.seen["near"]
            self.assertEqual((small.size, small.copied, large.size, large.copied), (1000, True, 100_000, False))
            self.assertEqual(large.moves, (way,))
            self.assertAlmostEqual(large.least, 11_000, delta=1)
            self.assertIn("mpich-ofi", found.source)

    def test_which_mpi_of_it(self):
        path = self.study(0.0, 1.0, 8192, ("mpich-ofi", "mpich-ucx"))
        with self.assertRaisesRegex(BadRecording, "name one, as in --facts .*:mpich-ofi"):
            study_facts.read(path, MPI)
        self.assertIn("mpich-ucx", study_facts.read(path, MPI, "mpich-ucx").source)
        named = path.with_name(f"{path.name}:mpich-ucx")
        self.assertIn("mpich-ucx", calibration.load(named, run_of()).source)
        with self.assertRaisesRegex(BadRecording, "has no MPI x"):
            study_facts.read(path, MPI, "x")
        for other in ("MPICH Version: 5.0.21", "Open MPI v5.0.2", "something"):
            with self.assertRaisesRegex(BadRecording, "has not the run's MPI"):
                study_facts.read(path, other)

    def test_no_study(self):
        path = self.folder / "x.sqlite"
        path.write_bytes(b"SQLite format 3\0" + bytes(range(200)))
        with self.assertRaises(BadRecording):
            study_facts.read(path, MPI)

    def test_a_foreign_database_stays_as_it_is(self):
        path = self.folder / "foreign.sqlite"
        for about in (None, "[1]", "5", "null"):
            with sqlite3.connect(path) as file:
                file.execute("create table if not exists mine (one)")
                if about is not None:
                    file.execute("create table if not exists about (name text primary key, value text not null)")
                    file.execute("insert or replace into about values ('versions', ?)", (about,))
            file.close()
            before = path.read_bytes()
            with self.assertRaises(BadRecording, msg=about):
                study_facts.read(path, MPI)
            self.assertEqual(path.read_bytes(), before, about)


if __name__ == "__main__":
    main(globals())
