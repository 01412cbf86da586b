#!/usr/bin/env python3
"""The measuring library on figures made up for it: no MPI runs here."""

import json
import os
import resource
import signal
import sqlite3
import sys
import time
import unittest
from pathlib import Path

from support import Folder, need_packages

need_packages()

import numpy as np  # noqa: E402

from headway.measure import contestants, hosts, plan, programs, validity  # noqa: E402
from headway.measure import statistics as stats  # noqa: E402
from headway.measure.processes import Failure, execute  # noqa: E402
from headway.measure.store import Store  # noqa: E402


class Statistics(unittest.TestCase):
    def test_median_and_quartiles(self):
        s = stats.make_stats([5, 1, 3, 2, 4], "us")
        self.assertEqual((s.median, s.q25, s.q75, s.count, s.largest), (3, 2, 4, 5, 5))
        self.assertEqual(stats.make_stats([0.5, 12.25], "us").text(), "6.38 [3.44, 9.31]")

    def test_slope_of_a_line_and_of_one_with_a_point_that_was_hit(self):
        self.assertAlmostEqual(stats.slope([(0, 7), (2, 8), (4, 9)]), 0.5)
        self.assertAlmostEqual(stats.slope([(x, 3 + x if x != 4 else 90) for x in range(9)]), 1.0)
        with self.assertRaises(ValueError):
            stats.slope([(1, 2), (1, 3)])

    def test_interval_of_a_ratio_holds_the_truth(self):
        random = np.random.default_rng(5)
        pairs = [(random.normal(150, 5, 40), random.normal(100, 5, 40)) for _ in range(4)]
        low, high = stats.interval(pairs, np.mean)
        self.assertTrue(1.45 < low < 1.5 < high < 1.55, (low, high))
        low, high = stats.interval_of_median(random.normal(10, 1, 400))
        self.assertTrue(9.7 < low < 10 < high < 10.3, (low, high))

    def test_texts(self):
        self.assertEqual([stats.short(v) for v in (0, 0.01234, 1.234, 12345)], ["0", "0.0123", "1.23", "12,345"])
        self.assertEqual([stats.human_size(v) for v in (1, 1024, 1 << 20, 1500)], ["1 B", "1 KB", "1 MB", "1500 B"])


class Validity(unittest.TestCase):
    def test_placements(self):
        self.assertEqual(
            [validity.placement_of(p) for p in ([26, 30], [60, 70], [200, 300], [26, 60], [60, 200], [0, 60], [])],
            ["close", "near", "far", "mixed", "mixed", "unknown", "unknown"],
        )

    def test_a_moved_l0_does_not_count(self):
        self.assertTrue(validity.steady(100, 114))
        self.assertFalse(validity.steady(100, 116))
        self.assertTrue(validity.steady(None, 3))

    def test_reasons(self):
        runs = [
            {"verdict": {"valid": False, "others": 0.5, "reasons": ["processors saturated (3 % idle)"]}},
            {"verdict": {"valid": False, "reasons": ["3 packets dropped (h0)"]}},
            {"verdict": {"valid": True}},
        ]
        self.assertEqual(validity.reasons_of(runs), ["others used this machine", "3 packets dropped"])
        self.assertEqual([validity.may_count(r["verdict"]) for r in runs], [False, True, True])
        self.assertEqual(validity.verdict_of(["a", "b"]), "INVALID: a; b")


class Plan(unittest.TestCase):
    def test_turns(self):
        self.assertEqual(plan.rotated("abc", 4), list("bca"))
        self.assertEqual(plan.rotated([], 4), [])
        self.assertEqual(plan.paired(("x", "y"), 2), tuple("xyyxxyyx"))

    def test_only(self):
        self.assertEqual(plan.patterns(" a/b, ,c/"), ["a/b", "c"])
        self.assertTrue(plan.wanted("a/b/c", ["*/b"]))
        self.assertFalse(plan.wanted("a/b/c", ["a/c"]))


class Processes(Folder):
    def test_a_time_limit_ends_the_whole_group(self):
        mark = self.folder / "child"
        script = self.script("start", f"sleep 100 & echo $! > {mark}; wait")
        began = time.monotonic()
        done = execute([str(script)], dict(os.environ), 0.5)
        self.assertTrue(done.timed_out)
        self.assertIn("time limit", done.failure)
        self.assertLess(time.monotonic() - began, 8)
        for _ in range(50):
            try:
                os.kill(int(mark.read_text()), 0)
            except ProcessLookupError:
                return
            state = Path(f"/proc/{mark.read_text().strip()}/stat")
            if state.exists() and state.read_text().split()[2] == "Z":
                return
            time.sleep(0.05)
        self.fail("the child lives on")

    def test_failures_are_told(self):
        self.assertIn("cannot start /nowhere/x", execute(["/nowhere/x"], {}, 5).failure)
        self.assertEqual(
            execute([str(self.script("x", "echo why >&2; exit 4"))], dict(os.environ), 5).failure, "exit code 4: why"
        )

    def test_lines_of_programs(self):
        text = 'noise\n[1] @@{"measure":"a","samples":[1]}\n@@{"cut sho\n'
        self.assertEqual(programs.parse_lines(text), [{"measure": "a", "samples": [1]}])


class Contestants(Folder):
    def test_options_of_the_shell_do_not_reach_them(self):
        os.environ["MPIR_CVAR_X"] = os.environ["HEADWAY_SHM"] = "1"
        self.addCleanup(os.environ.pop, "MPIR_CVAR_X")
        self.addCleanup(os.environ.pop, "HEADWAY_SHM")
        seen = contestants.mpich(self.folder, environment={"MPIR_CVAR_CH4_NETMOD": "ofi"}).full_environment()
        self.assertEqual({k for k in seen if k.startswith(("MPIR", "HEADWAY_SHM"))}, {"MPIR_CVAR_CH4_NETMOD"})

    def test_who_is_not_there_says_so(self):
        self.assertIn("bin/mpicc does not exist", contestants.openmpi(self.folder).missing())

    def test_a_program_is_compiled_once_and_again_after_its_header_changed(self):
        log = self.folder / "log"
        self.script("bin/mpicc", f'echo x >> {log}; while [ "$1" != -o ]; do shift; done; touch "$2"')
        who = contestants.mpich(self.folder)
        source = self.folder / "a.c"
        source.write_text("")
        early = time.time() - 100
        for path in (source, who.compiler):
            os.utime(path, (early, early))
        for _ in range(2):
            self.assertEqual(programs.compile_program(who, [source], self.folder / "out" / "a"), "")
        self.assertEqual(log.read_text(), "x\n")
        (self.folder / "a.h").write_text("")
        os.utime(self.folder / "a.h", (time.time() + 5, time.time() + 5))
        programs.compile_program(who, [source], self.folder / "out" / "a")
        self.assertEqual(log.read_text(), "x\nx\n")

    def test_a_compiler_that_fails_is_told(self):
        self.script("bin/mpicc", "echo no header >&2; exit 1")
        (self.folder / "a.c").write_text("")
        told = programs.compile_program(contestants.mpich(self.folder), [self.folder / "a.c"], self.folder / "a")
        self.assertEqual(told, "a.c does not compile: exit code 1: no header")


class Stores(Folder):
    def test_what_was_written_is_there_after_a_kill(self):
        path = self.folder / "deep" / "a.sqlite"
        child = os.fork()
        if child == 0:
            store = Store(path, resume=False)
            store.add("x|ours|0", {"settings": "s", "rows": [{"measure": "m", "size": 8, "samples": [1.5, 2.5]}]})
            store.tell(cores=2)
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        again = Store(path, resume=True)
        self.assertEqual(again.find("x|ours|0", "s")["rows"][0]["size"], 8)
        self.assertIsNone(again.find("x|ours|0", "other settings"))
        self.assertEqual(again.about(), {"cores": 2})
        again.close()
        rows = sqlite3.connect(path).execute("select measure, size, value from samples").fetchall()
        self.assertEqual(rows, [("m", 8, 1.5), ("m", 8, 2.5)])

    def test_without_resume_it_begins_anew(self):
        path = self.folder / "a.sqlite"
        Store(path, resume=False).add("k", {"settings": "s"})
        self.assertEqual(Store(path, resume=False).lines, {})

    def test_results_of_before_it_was_a_database_are_taken_over(self):
        (self.folder / "runs.jsonl").write_text(
            json.dumps({"key": "k", "settings": "s", "turn": 0}) + '\n{"key": "cut'
        )
        store = Store(self.folder / "runs.sqlite", resume=True)
        self.assertEqual(list(store.lines), ["k"])
        self.assertEqual(store.find("k", "s")["turn"], 0)

    def test_a_file_that_is_no_store(self):
        (self.folder / "a.sqlite").write_text("something else, long enough not to be taken for empty" * 50)
        with self.assertRaisesRegex(Failure, "cannot be used: file is not a database"):
            Store(self.folder / "a.sqlite", resume=True)

    def test_no_room_on_the_disk(self):
        """What was written before stays."""
        path = self.folder / "a.sqlite"
        child = os.fork()
        if child == 0:
            store = Store(path, resume=False)
            store.add("small", {"settings": ""})
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
            try:
                store.add("large", {"settings": "x" * 1_000_000})
            except Failure as failure:
                os._exit(0 if "takes no more results" in str(failure) else 2)
            os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(list(Store(path, resume=True).lines), ["small"])


class Clusters(Folder):
    def cluster(self, text):
        return hosts.Cluster(self.script("headway", text), "test", self.folder / "report.json")

    def test_made_once_and_taken_down(self):
        log = self.folder / "log"
        cluster = self.cluster(f'echo "$@" >> {log}')
        for _ in range(2):
            cluster.use(hosts.Hosts(2, 100))
        cluster.use(hosts.Hosts(32, 100, 2, 16, 100))
        self.assertEqual(cluster.down(), "")
        self.assertEqual(
            log.read_text().splitlines(),
            [
                "cluster down --name test",
                "cluster up --name test --hosts 2 --rate 100mbit --dilation 1",
                "cluster down --name test",
                "cluster down --name test",
                "cluster up --name test --hosts 32 --rate 100mbit --dilation 2 --hosts-per-switch 16 --uplink-rate 100mbit",
                "cluster down --name test",
            ],
        )

    def test_none_can_be_made(self):
        cluster = self.cluster('[ "$2" = down ] || { echo "cluster: no namespaces here" >&2; exit 77; }')
        with self.assertRaisesRegex(Failure, "no namespaces here"):
            cluster.use(hosts.Hosts(2, 100))
        self.assertEqual(cluster.verdict(), {})

    def test_how_a_program_is_run(self):
        words = self.cluster("true").run_words(4, 2, "--mpi", "mpich")
        self.assertEqual(
            words[1:],
            [
                "cluster",
                "run",
                "--name",
                "test",
                "-n",
                "4",
                "--ranks-per-host",
                "2",
                "--mpi",
                "mpich",
                "--quiet",
                "--report",
                str(self.folder / "report.json"),
                "--",
            ],
        )


if __name__ == "__main__":
    unittest.main(verbosity=1, argv=sys.argv)
