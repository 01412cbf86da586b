#!/usr/bin/env python3
"""`headway study`: what it makes of answers that were made up, and a short study of ours from end to end,
stopped and resumed."""

import json
import re
import signal
import sqlite3
import subprocess
import sys
import time
import unittest
from dataclasses import replace
from pathlib import Path

from support import BUILD, HEADWAY, Folder, headway
from study_made import K, M, Made, found_row, kernel_row, overlap_row, progress_row, stays_row

from headway.measure import contestants
from headway.measure.contestants import headway as ours
from headway.measure.processes import Outcome
from headway.study import blocking, command, compare, findings, mpis, plan, verdicts
from headway.study.blocking import Blocking
from headway.study.run import Settings, Study
from headway.study.value import Value


class Kernel(unittest.TestCase):
    def test_kinds(self):
        self.assertEqual(blocking.kind_of_row(kernel_row([1010, 3010, 5010])), "blocks")
        self.assertEqual(blocking.kind_of_row(kernel_row([9, 9, 9])), "free")
        self.assertEqual(blocking.kind_of_row(kernel_row([900, 905, 900], transfer=950)), "wire")

    def test_a_wait_behind_a_call_that_blocks_is_not_blamed(self):
        row = kernel_row([1012, 3012, 5012], sent=[1010, 3010, 5010])
        self.assertEqual(blocking.kind_of_row(row), "free")

    def test_find(self):
        rows = [kernel_row([9, 9, 9], size=32 * K), kernel_row([1010, 3010, 5010]), found_row(60000)]
        answer = blocking.read_find(rows, "ws")
        self.assertEqual((answer.size, answer.looked_to, answer.kind_below), (60000, 64 * K, "free"))
        self.assertTrue(answer.held)

    def test_find_that_contradicts_itself(self):
        rows = [kernel_row([9, 9, 9], size=32 * K), kernel_row([1010, 3010, 5010]), found_row(0, held=0)]
        answer = blocking.read_find(rows, "ws")
        self.assertEqual((answer.size, answer.held), (0, False))
        self.assertEqual(verdicts.needs(answer), "not found")
        (said,) = verdicts.of_calls(findings.Of(calls={"ws": answer}))
        self.assertIn("an MPI_Wait for a send needs the receiver was not found: answers", said.seen)
        self.assertEqual(said.do, "", "nothing is advised on what is not known")

    def test_releases(self):
        self.assertEqual(blocking.read_release(kernel_row([1010, 3010, 5010]), "test", 30000), (True, 0))
        self.assertEqual(blocking.read_release(kernel_row([30010, 30010, 30010]), "test", 30000), (False, 0))
        gone, after = blocking.read_release(kernel_row([40001, 40001, 40001]), "timeout", 150000)
        self.assertTrue(gone)
        self.assertAlmostEqual(after, 40000)
        self.assertFalse(blocking.read_release(kernel_row([150020] * 3), "timeout", 150000)[0])

    def test_scripts_are_within_the_programs_limits(self):
        for n in blocking.TESTS:
            self.assertLessEqual(len(blocking.tests_script(1000, n).split()), 48)
        self.assertEqual(blocking.tests_script(100, 1, 0.25), "r c25 T c75 wr")
        self.assertEqual(blocking.scaled("s @100 ws @9000", 2), "s @200 ws @18000")


class Words(Made):
    """What is found and said."""

    def test_findings(self):
        found = findings.read(self.store())
        a, b = found.of["a", "shm"], found.of["b", "shm"]
        self.assertAlmostEqual(a.curves["overlap_recv"][M].median, 0.96)
        self.assertEqual(a.verdicts["recv"], {64 * K: "completed", M: "completed"})
        self.assertEqual(b.verdicts["recv"][M], "never moved")
        self.assertEqual((a.switch, b.switch), (0, 65300))
        self.assertEqual(a.copied, {M: True})
        self.assertAlmostEqual(a.bound["recv"][M], 1.0)  # l0 is one core's copy
        self.assertIs(b.calls["ws"].cumulative, False)
        self.assertIs(b.calls["ws"].deadlock, True)
        self.assertEqual(b.calls["ws"].released, {"test": False, "other": True, "timeout": False})

    def test_what_its_sender_could_leave_has_gone(self):
        store = self.store()
        store.add(
            "shm/progress/recv|b|9",
            {
                "settings": "",
                "test": "progress/recv",
                "place": "shm",
                "mpi": "b",
                "turn": 9,
                "failure": "",
                "rows": [progress_row(64, 0.02, False)],
                "verdict": {},
            },
        )
        self.assertEqual(findings.read(store).of["b", "shm"].verdicts["recv"][64], "arrived but not completed")

    def test_table(self):
        rows = {r.what: r for r in verdicts.table(findings.read(self.store()), "shm")}
        self.assertEqual(rows["receive overlap, 1 MB"].cells, ["0.96 ±.01", "0.06 ±.01"])
        self.assertEqual(rows["receive overlap, 1 MB"].bound, "1.00")
        self.assertEqual(rows["send overlap, 1 MB"].cells[0], "copied ahead")
        self.assertEqual(rows["a send's wait needs the receiver from"].cells, ["not up to 4 MB", "64 KB, each"])
        self.assertEqual(rows["  what lets it go"].cells, ["-", "any wait"])

    def test_words(self):
        found = findings.read(self.store())
        said = {m: " ".join(f"{s.seen} {s.do}" for s in verdicts.sayings(found.of[m, "shm"], "shm")) for m in "ab"}
        self.assertIn("neither does its wait", said["a"])
        self.assertIn("64 KB to 1 MB is complete when you call MPI again", said["a"])
        self.assertIn("the switch lies at 64 KB", said["b"])
        self.assertIn(
            "An MPI_Wait for a send returns only when the receiver comes, for messages of 64 KB or more", said["b"]
        )
        self.assertIn("Collect the waits for sends behind those for receives (figure 13)", said["b"])
        self.assertIn("wait for ever", said["b"])
        self.assertIn(
            "4 calls of MPI_Testall, evenly spread over the computation, made computation and transfer together 30% shorter",
            said["b"],
        )
        self.assertIn("in 3 or 10 pieces does not", said["b"])
        self.assertIn("with 16, 32 MB with 256, 0.5 GB with 4,096 peers", said["b"])

    def test_where_eager_ends_is_not_where_a_call_blocks(self):
        """Open MPI in shared memory: a wait needs the receiver from 257 B on, but messages leave up to 4 KB."""
        store = self.store()
        self.assertEqual(findings.read(store).of["b", "shm"].switch, 65300, "of an older study")
        entry = {"settings": "", "place": "shm", "mpi": "b", "turn": 0, "failure": "", "verdict": {}}
        rows = [kernel_row([9, 9, 9], size=256), kernel_row([1010, 3010, 5010], size=257), found_row(257)]
        store.add("shm/find/ws|b|0", entry | {"test": "find/ws", "rows": rows})
        rows = [stays_row(2048, 0), stays_row(4051, 1), found_row(4028, "left")]
        store.add("shm/find/left|b|0", entry | {"test": "find/left", "rows": rows})
        of = findings.read(store).of["b", "shm"]
        self.assertEqual((of.blocks, of.switch, set(of.calls)), (257, 4028, {"s", "ws"}))
        said = " ".join(s.seen for s in verdicts.sayings(of, "shm"))
        self.assertIn("the switch lies at 3.93 KB. From 256 B on a send completes only when its receiver calls MPI", said)
        rows = [stays_row(4 * M, 0), found_row(0, "left")]
        store.add("shm/find/left|b|0", entry | {"test": "find/left", "rows": rows})
        self.assertEqual(findings.read(store).of["b", "shm"].switch, 0, "asked, and there is none")

    def test_where_eager_ends_was_not_found(self):
        """A search that failed, that contradicts itself or that was left out is no older study, and its word is said."""
        entry = {"settings": "", "place": "shm", "mpi": "b", "turn": 0, "failure": "", "verdict": {}}
        late = {"failure": "ended at its time limit", "rows": [stays_row(2048, 0)]}
        for changed, why in (
            (late, "the search gave no answer (ended at its time limit)"),
            ({"rows": [stays_row(2048, 0), found_row(0, "left", held=0)]}, "answers to the same question contradicted"),
            ({"rows": [found_row(0, "left", held=0)]}, "or could not be had"),
            ({}, "the search gave no answer (it was left out)"),
        ):
            store = self.store()
            for size in (64, 512):
                rows = [progress_row(size, 0.02, False)]
                store.add(f"shm/progress/recv|b|{size}", entry | {"test": "progress/recv", "turn": size, "rows": rows})
            rows = [kernel_row([9, 9, 9], size=256), kernel_row([1010, 3010, 5010], size=257), found_row(257)]
            store.add("shm/find/ws|b|0", entry | {"test": "find/ws", "rows": rows})
            if changed:
                store.add("shm/find/left|b|0", entry | {"test": "find/left"} | changed)
            else:
                store.tell(finds=["s", "ws", "left"])
            found = findings.read(store)
            of = found.of["b", "shm"]
            self.assertEqual((of.blocks, of.switch, of.switch_is_known), (257, 0, False), why)
            self.assertEqual(set(of.curves), {"latency", "overlap_recv", "progress_recv"}, "its rows are no curve")
            said = " ".join(s.seen for s in verdicts.sayings(of, "shm"))
            self.assertIn("(where eager ends) was not found: ", said)
            self.assertIn(why, said)
            self.assertIn("--resume asks again. Until then small messages and large ones are not told apart", said)
            self.assertNotIn("the switch lies", said)
            words = of.verdicts["recv"]
            self.assertEqual((words[64], words[512]), ("arrived but not completed", "never moved"), "64 B have gone")
            self.assertIsNone(command.as_json(found)["of"][-1]["switch"])
            self.assertTrue(found.of["a", "shm"].switch_is_known or not changed)

    def test_a_search_that_failed_is_not_silent(self):
        store = self.store()
        entry = {"settings": "", "place": "shm", "mpi": "b", "turn": 0, "verdict": {}, "rows": []}
        store.add("shm/find/s|b|0", entry | {"test": "find/s", "failure": "exit code 3: benchmark: no"})
        found = findings.read(store)
        said = [s.seen for s in verdicts.of_calls(found.of["b", "shm"])]
        self.assertIn("MPI_Isend itself needs the receiver was not found: the search gave no answer (exit code 3", said[0])
        rows = {r.what: r.cells for r in verdicts.table(found, "shm")}
        self.assertEqual(rows["MPI_Isend needs the receiver from"], ["not up to 4 MB", "not found"])

    def test_only_who_waits_for_ever_is_in_a_deadlock(self):
        store = self.store()
        entry = {"settings": "", "place": "shm", "mpi": "b", "turn": 0, "verdict": {}, "rows": [], "test": "exchange/ws"}
        for failure, stuck in (
            ("ended at its time limit", True),
            ("exit code 124: cluster: the program is not done after 12 s", True),
            ("exit code 1: no room", None),
        ):
            store.add("shm/exchange/ws|b|0", entry | {"failure": failure})
            of = findings.read(store).of["b", "shm"]
            self.assertIs(of.calls["ws"].deadlock, stuck, failure)
        said = " ".join(s.seen for s in verdicts.of_calls(of))
        self.assertNotIn("Two ranks that send to each other", said)

    def test_numbers_beside_each_overlap(self):
        of = findings.read(self.store()).of["b", "shm"]
        self.assertEqual(
            verdicts.overlap_numbers(of, "recv")[1],
            ["1 MB", "100", "1.00", "49.0", "50.0", "0.06 ±.01", "0.49", "1.00", "-", "never moved"],
        )
        self.assertEqual(verdicts.tests_numbers(of)[0], ["0", "5,000", "0%", "-"])
        self.assertEqual(verdicts.tests_numbers(of)[2], ["4", "3,500", "30%", "1.00"])

    def test_the_papers_strategies(self):
        of = findings.read(self.store()).of["b", "shm"]
        self.assertAlmostEqual(of.strategies["6c"].gain.median, 0.299)
        self.assertAlmostEqual(of.strategies["6c"].calls_gain.median, 0.75)
        rows = verdicts.strategy_numbers(of)
        self.assertEqual(
            [r[2] for r in rows],
            ["-", "10 % (10 to 10)", "30 % (30 to 30)", "25 % (25 to 25)", "-", "0 % (0 to 0)"],
        )
        said = verdicts.of_strategies(of)
        self.assertIn("took 30 % (30 to 30) less time (75 % (75 to 75) less in calls)", said[0].seen)
        stays = "what you compute behind the sends stays there."
        self.assertEqual(said[0].do, f"Put the waits for sends behind those for receives (figure 13); {stays}")
        self.assertIn("is in no other form quicker than with each Isend followed by its wait.", said[1].seen)
        self.assertNotIn("But", said[0].seen + said[1].seen)

    def test_a_form_that_loses_is_told(self):
        of = findings.read(self.store()).of["b", "shm"]
        of.strategies["13"] = replace(of.strategies["13"], gain=Value(-1.11, -1.16, -1.05, 3))
        of.strategies["7"] = replace(of.strategies["7"], gain=Value(-0.11, -0.16, 0.05, 3))
        said = verdicts.of_strategies(of)
        self.assertNotIn("But", said[0].seen, "perhaps it does not")
        self.assertIn(
            "is in no other form quicker than with each Isend followed by its wait. But figure 13's form took 111 % "
            "(105 to 116) more.",
            said[1].seen,
        )

    def test_the_forms_are_the_papers(self):
        forms = {f.name: blocking.form_script(f, 100, 1.5) for f in blocking.FORMS}
        self.assertEqual(forms["6"], "r c150 p c100 wr")
        self.assertEqual(forms["7"], "r c150 p T c100 wr")
        self.assertEqual(forms["12"], "r c150 p wr")
        self.assertEqual(forms["13"], "r c150 s wr ws")

    def test_a_search_that_saw_two_machines_counts_where_there_is_no_other(self):
        store = self.store()
        for turn, after in ((10, 130.0),):
            store.add(
                f"shm/overlap/recv|a|{turn}",
                {
                    "settings": "",
                    "test": "overlap/recv",
                    "place": "shm",
                    "mpi": "a",
                    "turn": turn,
                    "failure": "",
                    "verdict": {},
                    "rows": [overlap_row("recv", M, 0.1, after=after), overlap_row("recv", 16 * K, 0.4, after=after)],
                },
            )
        found = findings.read(store)
        of = found.of["a", "shm"]
        self.assertEqual((found.dropped, of.curves["overlap_recv"][M].count), (1, 3))
        self.assertEqual(of.unsteady["overlap_recv"], {16 * K})
        self.assertEqual([r[5] for r in verdicts.overlap_numbers(of, "recv")], ["0.40 ~", "0.96 ±.01", "0.96 ±.01"])

    def test_parts_of_what_blocks(self):
        settings = Settings(self.folder, [plan.SHM], True)
        study = Study(settings, [], self.store(), print)
        asked = []
        study.attempt = lambda task, *_: asked.append(task.test.split("/")[0])
        seconds = lambda: study.blocking_seconds(plan.SHM, ours(BUILD / "bin"))  # noqa: E731
        whole = seconds()
        for only, kinds in (
            ("*/find", {"find"}),
            ("shm/pieces,shm/tests", {"find", "pieces", "tests"}),
            ("shm/blocking", {"find", "pieces", "tests", "figure", "strategy"}),
            ("shm", {"find", "pieces", "tests", "figure", "strategy"}),
        ):
            settings.only = only
            asked.clear()
            self.assertTrue(study.blocking_wanted(plan.SHM))
            study.block(plan.SHM, ours(BUILD / "bin"), lambda text, seconds: None)
            self.assertEqual(set(asked), kinds, only)
            self.assertEqual(seconds() < whole, only not in ("shm/blocking", "shm"), only)
        settings.only = "shm/latency"
        self.assertFalse(study.blocking_wanted(plan.SHM))

    def test_the_quick_form_ends_within_ten_minutes(self):
        """By its plan with a third to spare, of four MPIs at both places; and whatever happens, nothing begins late."""
        who = [
            ours(BUILD / "bin"),
            *(contestants.mpich(Path("/m"), name=m, environment={"MPIR_CVAR_CH4_NETMOD": m}) for m in ("ofi", "ucx")),
            contestants.openmpi(Path("/o")),
        ]
        notes = []
        study = Study(Settings(self.folder, [plan.SHM, plan.net("1gbit")], True), who, self.store(), notes.append)
        study.usable = who
        self.assertLess(study.seconds(), 510)
        self.assertLess(plan.QUICK_SECONDS + 65 + 15, 600, "the longest start, and the page")
        tasks = [t for p in study.settings.places for t in blocking.find_tasks(p, True) + plan.paper_tasks(p, True, 0)]
        self.assertLessEqual(max(t.time_limit for t in tasks), 65)
        study.until = time.monotonic() - 1
        study.start = lambda *_: self.fail("it is too late")
        steps = []
        study.copy = lambda step: None
        study.run(lambda text, seconds: steps.append(text))
        self.assertIn("starts were left out, since the quick form ends within ten minutes", notes[-1])
        self.assertIn("--resume", notes[-1])
        adds = Study(Settings(self.folder, [], True, adds=True), who, study.store, notes.append)
        self.assertFalse(adds.is_late(), "what is added to a study takes its time")

    def test_what_does_not_stand_is_measured_anew(self):
        """When a study goes on: what others spoilt, and answers that contradict each other."""
        study = Study(Settings(self.folder, [plan.SHM], True), [], self.store(), print)
        started = []
        study.start = lambda *_: started.append(1) or Outcome(0, '@@{"measure":"latency","size":1,"samples":[1]}', "")
        study.cluster.verdict = lambda: {"valid": True}
        mpi, task = ours(BUILD / "bin"), plan.Task(plan.net("1gbit"), "latency", "latency", (), 1)
        good = {"settings": study.settings_of(task, mpi), "test": "latency", "place": "1gbit", "mpi": "headway"}
        good |= {"turn": 0, "failure": "", "rows": [found_row(1)], "verdict": {"valid": True, "others": 0.5}}
        spoilt = {"verdict": {"valid": False, "others": 0.5, "reasons": ["saturated"]}}
        for changed, anew in (
            ({}, False),
            ({"verdict": {"valid": False, "others": 0.02, "reasons": ["saturated"]}}, False),
            (spoilt, True),
            ({"rows": [found_row(0, held=0)]}, True),
            ({"failure": "exit code 1"}, True),
        ):
            started.clear()
            study.store.add(task.key(mpi), good | changed)
            entry = study.take(task, mpi)
            self.assertEqual(len(started), anew, changed)
            self.assertEqual(study.store.find(task.key(mpi), good["settings"]), entry)
            self.assertEqual(entry["rows"][0]["measure"] == "latency", anew, "what is new replaces it")
        study.store.add(task.key(mpi), good | spoilt)
        study.again = 0
        self.assertEqual(study.take(task, mpi)["rows"], good["rows"], "the quick form has a minute for it")
        study.again = 60
        study.start = lambda *_: Outcome(1, "", "no")
        self.assertEqual(study.take(task, mpi)["rows"], good["rows"], "but no result does not")

    def test_a_failure_is_told(self):
        """Once: of a test that is asked once, and of nothing that is there."""
        mpi = ours(BUILD / "bin")
        study = Study(Settings(self.folder, [], True), [mpi], self.store(), print)
        study.usable = [mpi]
        study.copy = lambda step: None
        study.imitate = lambda step: None
        study.start = lambda *_: Outcome(3, "", "benchmark: no")
        for test, turn in (("find/left", 0), ("latency", 0), ("latency", 1)):
            study.attempt(plan.Task(plan.SHM, test, "kernel", (), 1, turn), mpi)
        study.attempt(plan.Task(plan.SHM, "exchange/s", "kernel", (), 1), mpi, may_fail=True)
        study.start = lambda *_: Outcome(3, "", "benchmark: no")
        study.attempt(plan.Task(plan.SHM, "bandwidth", "kernel", (), 1, 1), mpi)
        study.start = lambda *_: Outcome(0, '@@{"measure":"window","size":1,"samples":[1]}', "")
        study.attempt(plan.Task(plan.SHM, "bandwidth", "kernel", (), 1, 0), mpi)
        study.run(lambda text, seconds: None)
        told = [f"Headway gave no result in shm/{t}: exit code 3: benchmark: no" for t in ("latency", "find/left")]
        self.assertEqual(study.notes, told)

    def test_a_verdict_is_of_its_own_run(self):
        """A run that ends before the simulated hosts say anything has none."""
        study = Study(Settings(self.folder, [], True, headway=Path("/none")), [], self.store(), print)
        study.cluster.use = lambda hosts: None
        study.cluster.report.write_text('{"valid": true}')
        done = study.start(plan.Task(plan.net("1gbit"), "latency", "latency", (), 1), ours(BUILD / "bin"))
        self.assertIn("cannot start", done.failure)
        self.assertEqual(study.cluster.verdict(), {})

    def test_runs_that_others_disturb_are_repeated_only_while_that_helps(self):
        study = Study(Settings(self.folder, [plan.net("1gbit")], True), [], self.store(), print)
        starts = []
        study.start = lambda *_: starts.append(1) or Outcome(0, '@@{"measure":"latency","size":1,"samples":[1]}', "")

        def take(turn, **verdict):
            starts.clear()
            study.cluster.verdict = lambda: {"reasons": ["saturated"], "valid": False, "others": 0.0} | verdict
            task = plan.Task(plan.net("1gbit"), "latency", "latency", (), 1, turn)
            study.take(task, ours(BUILD / "bin"))
            return len(starts)

        self.assertEqual(take(0, valid=True), 1)
        self.assertEqual(take(1), 1, "its own fault: again it would be the same")
        self.assertEqual([take(turn, others=0.9) for turn in range(2, 7)], [3, 3, 3, 1, 1])
        self.assertEqual(len([n for n in study.notes if "not repeated any more" in n]), 1)
        self.assertEqual(take(7, valid=True), 1)
        self.assertEqual(take(8, others=0.9), 3, "once they have gone, it helps again")

    def test_eager_and_rendezvous_apart(self):
        of = findings.read(self.store()).of["b", "shm"]
        of.curves["overlap_recv"][1024] = findings.Value(0.9, 0.9, 0.9, 1)
        of.extras["overlap_recv"][1024] = of.extras["overlap_recv"][M]
        said = [s.seen for s in verdicts.of_overlap(of, "shm")]
        self.assertTrue(said[0].startswith("Eager receives of 1 KB can be hidden"), said)
        self.assertTrue(said[1].startswith("Rendezvous receives of 64 KB to 1 MB cannot"), said)

    def test_compare(self):
        a, b = findings.read(self.store()), findings.read(self.store("b.sqlite", scale=2.0))
        self.assertEqual(compare.compare(a, a), [])
        found = compare.compare(a, b)
        self.assertEqual([(d.mpi, d.what, d.better) for d in found], [(m, "latency: 1 B", False) for m in "ab"])
        self.assertEqual((found[0].before, found[0].after), ("1.00 µs", "2.01 µs"))

    def test_what_was_not_found_is_no_better(self):
        a, b = (findings.read(self.store(name)) for name in ("a.sqlite", "b.sqlite"))
        b.of["b", "shm"].calls["ws"] = Blocking("ws", 4 * M, held=False)
        (d,) = compare.compare(a, b)
        self.assertEqual((d.before, d.after, d.better), ("64 KB", "not found", None))
        a.of["b", "shm"].calls["ws"] = Blocking("ws", held=False)
        self.assertEqual(compare.compare(a, b), [])


class Mpis(unittest.TestCase):
    def test_intels_is_told_where_it_lies(self):
        """Else its ranks end in MPI_Init as soon as they need a network."""
        intel = mpis.of_prefix("intel", "Intel MPI", "intel", Path("/p"), {"I_MPI_PIN": "on"})[0]
        self.assertEqual(intel.environment["LD_LIBRARY_PATH"], "/p/lib")
        self.assertEqual(intel.environment["I_MPI_ROOT"], "/p")
        self.assertEqual(intel.environment["I_MPI_PIN"], "on", "what the user names counts")


class Sizes(unittest.TestCase):
    def test_all_powers_of_two(self):
        self.assertEqual((plan.ALL_SIZES[0], plan.ALL_SIZES[-1], len(plan.ALL_SIZES)), (1, 4 * M, 23))
        tasks = plan.paper_tasks(plan.SHM, False, 0)
        for task in tasks:
            self.assertIn(",".join(str(1 << n) for n in range(23)), task.words)
        self.assertEqual({t.test.split("/")[0] for t in tasks}, {"latency", "bandwidth", "overlap", "progress"})
        self.assertIn("0.6,1.5,2,4,100us", next(t for t in tasks if t.test == "progress/recv").words)

    def test_thresholds_as_people_say_them(self):
        self.assertEqual(
            [verdicts.near(s) for s in (65300, 65536, 61440, 100, 3 << 20)],
            ["64 KB", "64 KB", "60 KB", "100 B", "3.0 MB"],
        )

    def test_ranges(self):
        self.assertEqual(verdicts.ranges({1: "x", 2: "x", 4: "y", 8: "x"}), [(1, 2, "x"), (4, 4, "y"), (8, 8, "x")])

    def test_what_lets_go(self):
        self.assertEqual(
            verdicts.lets_go(
                Blocking("ws", 4 * M, 65536, released={"test": False, "other": False, "timeout": True}, timeout_us=40000)
            ),
            "its receive's wait, 40.0 ms",
        )

    def test_what_lets_go_and_was_not_asked(self):
        call = Blocking("ws", 4 * M, 65536, released={"timeout": False})
        self.assertEqual(
            verdicts.lets_go(call), "its receive's wait (not known: a test of it, a wait for another request)"
        )
        call.released = {}
        self.assertEqual(verdicts.lets_go(call), "its receive's wait (more is not known)")
        call.released = {"other": True}
        self.assertEqual(verdicts.lets_go(call), "any wait (not known: a test of it)")
        (said,) = verdicts.of_calls(findings.Of(calls={"ws": call}))
        self.assertIn("(whether what several take counts together is not known)", said.seen)


class Short(Folder):
    """Of ours, end to end."""

    ONLY = "--only=shm/latency,shm/overlap/recv,shm/progress/recv,shm/bandwidth/window"

    def words(self, *more):
        return ("study", "--mpi=headway", "--net=none", "--quick", self.ONLY, f"--out={self.folder / 's'}", *more)

    def test_a_study(self):
        done = headway(*self.words(), timeout=240)
        for what in ("latency, 1 B", "bandwidth, 1 MB", "receive overlap, 1 MB", "receive progress, 1 MB"):
            self.assertRegex(done.stdout, rf"{what} +[\d.,]+")
        for name in (
            "study.html",
            "study.md",
            "study.sqlite",
            "pictures/shm-overlap.png",
            "pictures/shm-overlap.svg",
        ):
            self.assertTrue((self.folder / "s" / name).exists(), name)
        data = json.loads(headway("study", "--again", "--json", f"--out={self.folder / 's'}", timeout=120).stdout)
        curves = data["of"][0]["curves"]
        self.assertEqual([int(s) for s in curves["latency"]], list(plan.QUICK_SIZES))
        self.assertTrue(0 < curves["latency"]["1"][0] < 1000)
        same = headway("study", "compare", self.folder / "s", self.folder / "s").stdout
        self.assertTrue(same.startswith("Nothing differs"), same)
        headway("study", "export", self.folder / "s", self.folder / "a.csv")
        self.assertIn("overlap_recv", (self.folder / "a.csv").read_text())
        again = headway(*self.words(), code=2)
        self.assertIn("holds a study already: --resume goes on", again.stderr)

    def kept(self):
        file = self.folder / "s" / "study.sqlite"
        try:
            with sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=5) as store:
                return dict(store.execute("select key, at from runs"))
        except sqlite3.Error:
            return {}

    def stopped(self, words, sign, at_least):
        """Once it has so many results, unless it ends before. Returns its exit code, what it said, and what is kept."""
        study = subprocess.Popen([HEADWAY, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 120
        while len(self.kept()) < at_least and study.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        study.send_signal(sign)
        _, errors = study.communicate(timeout=60)
        return study.returncode, errors, self.kept()

    def test_stopped_and_resumed(self):
        """By Ctrl-C, then by SIGTERM, then by SIGKILL, each a little later."""
        whole = ["study", "--mpi=headway", "--net=none", "--quick", f"--out={self.folder / 's'}"]
        whole.append("--only=shm/latency,shm/bandwidth,shm/overlap,shm/progress")
        known = {}
        for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            words = [*whole, *(["--resume"] if known else [])]
            code, errors, after = self.stopped(words, sign, max(2, len(known) + 1))
            self.assertEqual({k: after[k] for k in known}, known, "nothing was measured twice")
            self.assertTrue(len(known) < len(after) < 9, after)
            known = after
            if sign == signal.SIGKILL:
                self.assertEqual(code, -signal.SIGKILL)
                continue
            self.assertEqual(code, 130, errors)
            self.assertIn("--resume --out", errors)
            self.assertTrue((self.folder / "s" / "study.html").exists(), "what was gained is shown")
        headway(*whole, "--resume", timeout=240)
        after = self.kept()
        self.assertEqual(len(after), 9)
        self.assertEqual({k: after[k] for k in known}, known, "nothing was measured twice")

    def test_hosts_of_a_study_that_was_killed_are_taken_down(self):
        """Nobody could, then; who goes on does."""

        def clusters():
            return set(re.findall(r"^ +(study\w+) ", headway("cluster", "status").stdout, re.MULTILINE))

        before = clusters()
        words = ["study", "--mpi=headway", "--quick", "--only=1gbit/latency,1gbit/overlap/recv"]
        words.append(f"--out={self.folder / 's'}")
        self.addCleanup(lambda: [headway("cluster", "down", "--name", n) for n in clusters() - before])
        code, errors, _ = self.stopped(words, signal.SIGKILL, 2)  # the machine's copy, and a latency
        if "are left out" in errors:
            self.skipTest(errors)
        self.assertEqual(code, -signal.SIGKILL, errors)
        self.assertEqual(len(clusters() - before), 1)
        headway(*words, "--resume", timeout=240)
        self.assertEqual(clusters(), before)

@unittest.skipUnless("Everybody" in sys.argv, "a slow test: name it")
class Everybody(Folder):
    """All MPIs that are found, also between hosts: what must be so whatever they measure."""

    def test_every_mpi_and_place(self):
        out = self.folder / "s"
        headway("study", "--quick", "--only=*/latency,*/overlap/recv,*/find,*/release", f"--out={out}", timeout=850)
        data = json.loads(headway("study", "--again", "--json", f"--out={out}", timeout=120).stdout)
        names = [line.split()[0] for line in headway("study", "--list").stdout.splitlines()]
        self.assertGreaterEqual(len(names), 1)
        places = dict(data["about"]["places"])
        seen = {(of["mpi"], of["place"]): of for of in data["of"]}
        every = {(m, p) for m in names for p in places}
        self.assertLessEqual(set(seen), every)
        for mpi, place in every - set(seen):  # Intel's messages do not take the simulated hosts' wire
            told = f"{data['about']['labels'][mpi]} is left out on {places[place]}: "
            self.assertTrue(any(told in note for note in data["about"]["notes"]), (mpi, place))
            self.assertEqual((mpi, place == "shm"), ("intel", False), data["about"]["notes"])
        for who, of in seen.items():
            latency = {int(s): v[0] for s, v in of["curves"]["latency"].items()}
            self.assertLess(latency[1], latency[1 << 20], who)
            self.assertTrue(all(-0.5 < v[0] < 1.5 for v in of["curves"]["overlap_recv"].values()), who)
            self.assertEqual(set(of["calls"]), {"s", "ws"}, who)
            for call in of["calls"].values():
                if call["size"]:
                    self.assertIn("test", call["released"], who)
            self.assertTrue(of["sayings"], who)


class Ours(unittest.TestCase):
    def test_the_command_studies_the_library_beside_it(self):
        self.assertIn(str(BUILD.resolve()), headway("study", "--list").stdout)
        self.assertEqual(ours(BUILD / "bin").missing(), "")


if __name__ == "__main__":
    unittest.main(verbosity=1, argv=sys.argv)
