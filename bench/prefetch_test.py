#!/usr/bin/env python3
"""Tests of what bench/prefetch.py plans and makes of results. Ends with 77 (skipped) where the
project's Python packages are missing."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

for module in ("typer", "rich", "numpy", "matplotlib"):
    if importlib.util.find_spec(module) is None:
        print(f"skipped: {sys.executable} has no {module}; `make python` installs it")
        sys.exit(77)

import prefetch_bounds  # noqa: E402
import prefetch_plan  # noqa: E402
import prefetch_report  # noqa: E402
from gains import figure_of, sampled_figure  # noqa: E402
from prefetch_bounds import best_seconds  # noqa: E402
from prefetch_runs import COUNTERS, PrefetchRunner  # noqa: E402
from headway.measure.store import Store  # noqa: E402
from starts import Setup  # noqa: E402

ABOUT = {"date": "", "cpu": "", "cores": 2, "kernel": "", "commit": "", "on": "auto", "quick": False}


def by_name(cases: list, name: str):
    return next(c for c in cases if c.name == name)


def verdict(*reasons: str) -> dict:
    return {"valid": not reasons, "others": 0, "reasons": list(reasons), "counters": {name: 8 << 20 for name in COUNTERS}}


def result(mean: float, computing: float, *reasons: str, checksum: str = "abc") -> dict:
    each = {"mean": mean, "median": mean, "warmup_mean": mean, "computing": computing,
            "communicating": mean - computing, "parts": [mean, mean]}
    return {"result": {"iteration": each, "iterations": 10, "late": 0.0, "checksum": checksum, "check": "ok"},
            "verdict": verdict(*reasons), "pace": 733.0}


class Stored(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.store = Store(self.folder / "runs.sqlite", resume=False)
        self.cases = prefetch_plan.physical_cases(False) + prefetch_plan.matched_cases(False)
        self.senders = prefetch_plan.senders(False)

    def put(self, case, side: str, turn: int, entry: dict) -> None:
        self.store.add(f"{case.name}|{side}|{turn}", {"settings": case.settings(), "turn": turn} | entry)

    def put_pairs(self, case, off: dict, on: dict, sides=("off", "on")) -> None:
        one, other = sides
        for turn, side in enumerate((one, other, other, one)):
            self.put(case, side, turn, off if side == one else on)

    def runner(self, early_release: str = "off") -> PrefetchRunner:
        return PrefetchRunner(Setup(self.folder, self.folder, "auto", [], 12), self.store, early_release)


class Plan(unittest.TestCase):
    def test_paper_table(self):
        """The columns of paper-cases: compute, wire, share, gain, hidden part."""
        for program, ranks, compute, wire, share, gain, hidden in (
            ("pes", 64, 0.045, 0.007, 0.227, 0.026, 0.11), ("m3", 8, 2.51, 1.22, 0.326, 0.114, 0.31),
            ("m3", 64, 0.31, 1.37, 0.830, 0.245, 0.24), ("nbody", 32, 1.17, 0.38, 0.516, 0.081, 0.14),
            ("ft", 16, 51.5, 10.4, 0.252, 0.063, 0.24), ("ft", 32, 25.8, 44.5, 0.651, 0.130, 0.18),
            ("is", 8, 8.2, 4.9, 0.372, -0.017, -0.05), ("is", 32, 2.1, 11.1, 0.858, 0.133, 0.14),
        ):
            row = prefetch_plan.paper_row(program, ranks)
            hosts = prefetch_plan.paper_cluster("vplus", ranks, 1)
            with self.subTest(program=program, ranks=ranks):
                self.assertAlmostEqual(row.compute / compute, 1, delta=0.03)
                self.assertAlmostEqual(prefetch_plan.wire_seconds(program, ranks, hosts) / wire, 1, delta=0.04)
                self.assertAlmostEqual(row.share, share, delta=0.002)
                self.assertAlmostEqual(row.gain, gain, delta=0.001)
                self.assertAlmostEqual(row.hidden, hidden, delta=0.006)

    def test_asked_are_the_papers_gains(self):
        for program, asked in prefetch_plan.ASKED.items():
            for ranks, gain in asked.items():
                self.assertAlmostEqual(gain, max(0, prefetch_plan.paper_row(program, ranks).gain), delta=0.006)

    def test_what_can_be_hidden(self):
        self.assertAlmostEqual(best_seconds("pes", 8, 1.0, 0.5), 1.25)
        self.assertAlmostEqual(best_seconds("m3", 8, 1.0, 3.0), 1.5)
        self.assertAlmostEqual(best_seconds("ft", 8, 3.0, 2.0), 4.0)
        # Two pages a message: while the second becomes final, the first travels.
        self.assertAlmostEqual(best_seconds("nbody", 70, 1.0, 1.0), 1.5)
        self.assertAlmostEqual(best_seconds("nbody", 140, 1.0, 1.0), 1.5)  # as good as cut in the middle
        self.assertAlmostEqual(best_seconds("nbody", 1, 1.0, 0.001), 1.0, delta=0.0001)

    def test_what_travels_early(self):
        self.assertAlmostEqual(prefetch_bounds.sent_early([(0.8, 0.5), (0.2, 0.3)], 1.0), 0.3 + 0.2)
        self.assertAlmostEqual(prefetch_bounds.sent_early([(0.2, 0.3), (0.3, 0.3)], 1.0), 0.6)
        self.assertEqual(prefetch_bounds.sent_early([(1.0, 0.3)], 1.0), 0)

    def test_pages_of_is(self):
        self.assertAlmostEqual(sum(prefetch_bounds.is_bucket_parts()), 1.0)
        for ranks in (8, 16):
            pages = prefetch_bounds.is_pages(ranks)
            self.assertAlmostEqual(sum(map(len, pages)) * 4096 * ranks / prefetch_plan.EXCHANGED["is"], 1.0, delta=1e-4)
            late = [sum(when == 1 for when in of) / len(of) for of in pages]
            # At the ends of the bell there are more buckets, and with each a page that is final last.
            self.assertGreater(late[0], 2 * late[ranks // 2])
            self.assertAlmostEqual(late[0], late[-1], delta=0.02)
        # All the moving hides no more than its own time, a part of the wire's; narrow links have work for it.
        moving, wire = 0.419 * 4.0, 20.0
        self.assertAlmostEqual(best_seconds("is", 32, 4.0, wire), 4.0 + wire - moving, delta=0.2 * moving)
        self.assertGreater(best_seconds("is", 32, 4.0, wire), 4.0 + wire - moving)

    def test_cases(self):
        names = [c.name for c in prefetch_plan.physical_cases(False)]
        self.assertEqual(len(names), 14)
        self.assertNotIn("physical/ft/64", names)
        every = names + [s.name for s in prefetch_plan.senders(False)]
        self.assertEqual(len(every), len(set(every)))

    def test_commands(self):
        case = by_name(prefetch_plan.physical_cases(False), "physical/ft/32")
        words = " ".join(case.arguments(733, 2, 6))
        self.assertEqual(words, "--class C --pace 733 --iterations 2 --warmup 6 --thin 64")
        self.assertIn("--hosts 32 --rate 100mbit --dilation 1 --hosts-per-switch 16", case.settings())

    def test_senders(self):
        senders = prefetch_plan.senders(False)
        moving = by_name(senders, "sender/100/1024K/elsewhere")
        self.assertGreaterEqual(int(moving.words()[moving.words().index("--buffers") + 1]),
                                moving.messages + moving.warmup)
        early = by_name(senders, "sender/100/1024K/rewrite-0")
        self.assertAlmostEqual(early.compute_us, 86_900, delta=10)
        self.assertEqual((early.asked, moving.asked), (1.6, 0.995))
        in_vain = by_name(senders, "sender/1000/64K/rewrite-100")
        self.assertEqual((in_vain.asked, in_vain.rounds), (0.995, 3))
        self.assertAlmostEqual(in_vain.compute_us, 543, delta=1)
        self.assertEqual(by_name(senders, "sender/1000/64K/at-once").compute_us, 0)


class Runs(Stored):
    def test_sides(self):
        environment = self.runner("auto").environment("release")
        self.assertEqual((environment["HEADWAY_PREFETCH"], environment["HEADWAY_EARLY_RELEASE"]), ("off", "auto"))
        self.assertIn("alltoallv=direct", environment["HEADWAY_COLL"])
        self.assertEqual(self.runner().turns(1), ("off", "on", "on", "off"))
        self.assertEqual(self.runner("auto").turns(1), ("release", "both", "both", "release"))
        for name, rounds, turns in (("physical/m3/8", 1, ("off", "on", "on", "off")), ("physical/ft/8", 1, ("off", "on")),
                                    ("physical/is/8", 2, ("off", "on", "on", "off"))):
            case = by_name(self.cases, name)
            self.assertEqual(self.runner().turns_of(case, prefetch_plan.PACE, rounds), turns)

    def test_iterations(self):
        def of(name):
            return self.runner().iterations(by_name(self.cases, name), 733)

        self.assertEqual(of("physical/ft/8"), (2, 6))
        self.assertEqual(of("physical/m3/8"), (4, 6))
        self.assertEqual(of("physical/pes/8"), (18, 14))

    def test_pace_for_the_share(self):
        """A stored run at the wanted share ends the search."""
        case = by_name(self.cases, "matched/nbody/32")
        self.put(case, "calibrate", 0, result(10.0, 7.0))
        self.put(case, "calibrate", 1, result(10.0, 4.84) | {"pace": 812.0})
        self.assertEqual(self.runner().find_pace(case), 812.0)
        self.assertAlmostEqual(case.model_at(case.pace_for(0.25)).compute, 0.25)

    def test_counters_are_added_up(self):
        runner = self.runner()
        runner.counters.mkdir()
        for rank in range(3):
            (runner.counters / f"{rank}.json").write_text(json.dumps({name: rank for name in COUNTERS} | {"other": 9}))
        self.assertEqual(runner.sums(), {name: 3 for name in COUNTERS})

    def test_a_run_goes_on_where_it_stopped(self):
        case = by_name(self.cases, "physical/pes/8")
        self.put_pairs(case, result(0.37, 0.362), result(0.365, 0.362))
        self.runner().run_case(case, 1, lambda n: None)  # would fail if it started anything
        self.assertEqual(len(self.store.lines), 4)


class Report(Stored):
    def put_some(self) -> None:
        m3, nbody = by_name(self.cases, "physical/m3/8"), by_name(self.cases, "matched/nbody/64")
        self.put_pairs(m3, result(3.7, 2.5), result(3.0, 2.5))
        self.put_pairs(m3, result(3.5, 2.5), result(3.2, 2.5), ("release", "both"))
        self.put_pairs(nbody, result(8.0, 2.0), result(7.0, 2.0, "3 packets were dropped by full queues"))
        for ranks, mean in ((16, 70.0), (32, 75.0)):
            case = by_name(self.cases, f"physical/ft/{ranks}")
            d = case.hosts.dilation
            self.put_pairs(case, result(mean * d, 40.0 * d), result(65.0 * d, 40.0 * d))
        for name, on in (("sender/100/1024K/rewrite-0", 100e3), ("sender/100/1024K/at-once", 176e3)):
            of = {"verdict": verdict(), "consume_us": 86_900.0}
            self.put_pairs(by_name(self.senders, name), of | {"samples": [174e3] * 9}, of | {"samples": [on] * 9})

    def written(self) -> str:
        self.put_some()
        prefetch_report.write(self.folder, self.store, self.cases, self.senders, ABOUT, ["a note"])
        return (self.folder / "prefetch.md").read_text()

    def test_gain_and_hidden_part(self):
        self.put_some()
        f = figure_of(self.cases[4], self.store)
        self.assertEqual(f.name, "physical/m3/8")
        self.assertAlmostEqual(f.gain, 3.7 / 3.0)
        self.assertAlmostEqual(f.hidden, 0.7 / 1.2)
        s = sampled_figure(by_name(self.senders, "sender/100/1024K/rewrite-0"), self.store)
        self.assertAlmostEqual(s.gain, 1.74)

    def test_tables(self):
        text = self.written()
        self.assertIn("| M3 | 8 | 3.7 | 3 | ✅ 23.3 % |", text)
        self.assertIn("| 3.728 | 11.4 % | 58 % | 31 % | 100 % |", text)
        self.assertIn("2.51 + 1.22", text)
        self.assertIn("✅ FT, off: slower with 32 ranks than with 16", text)
        self.assertIn("agree bit for bit", text)
        self.assertIn("- a note", text)

    def test_marks(self):
        text = self.written()
        self.assertIn("✅ sender, 100 Mbit/s, 1 MB, ready early", text)
        self.assertIn("❌ sender, 100 Mbit/s, 1 MB, sent at once", text)
        self.assertIn("❌ FT, 16 ranks, physical: hidden | 50 % | 17 % |", text)
        self.assertIn("✅ FT, 32 ranks, physical: hidden | 19 % | 29 % |", text)
        self.assertIn("– N-Body, 64 ranks, matched: gain", text)
        self.assertIn("3 packets were dropped", text)
        self.assertIn("❌ physical/m3/8 | 3.7 | 3 | 3.5 | 3.2 | 0.938", text)

    def test_files(self):
        self.written()
        document = json.loads((self.folder / "prefetch.json").read_text())
        self.assertEqual(len(document["cases"]), 4)
        self.assertEqual(len(document["with_early_release"]), 1)
        self.assertEqual(document["counters"]["physical/m3/8"]["prefetch_hits"], 8 << 20)
        for picture in ("programs.png", "sender.png"):
            self.assertGreater((self.folder / picture).stat().st_size, 5000)

    def test_other_bits_are_noticed(self):
        case = by_name(self.cases, "physical/m3/8")
        self.put_pairs(case, result(3.7, 2.5), result(3.0, 2.5, checksum="abd"))
        prefetch_report.write(self.folder, self.store, self.cases, [], ABOUT, [])
        self.assertIn("**Some runs gave different results.**", (self.folder / "prefetch.md").read_text())

    def test_nothing_stored_gives_an_empty_report(self):
        figures, early = prefetch_report.write(self.folder, self.store, self.cases, self.senders, ABOUT, [])
        self.assertEqual((figures, early), ([], []))


class CommandLine(unittest.TestCase):
    def call(self, *words: str) -> subprocess.CompletedProcess:
        program = Path(__file__).resolve().parent / "prefetch.py"
        environment = os.environ | {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "200"}
        return subprocess.run([sys.executable, str(program), *words], capture_output=True, text=True, timeout=50,
                              env=environment)

    def test_list(self):
        done = self.call("--list", "--only", "physical/*/64,sender/100/64K")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.split()[:2], ["physical/pes/64", "physical/m3/64"])
        self.assertEqual(len(done.stdout.split()), 2 + len(prefetch_plan.KINDS))

    def test_bad_options_are_refused(self):
        for words, expected in ((("--only", "physical/lu"), "no case begins with"), (("--rounds", "0"), "--rounds"),
                                (("--early-release", "perhaps"), "--early-release"), (("--on", "off"), "--on")):
            done = self.call(*words)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(expected, done.stderr)

    def test_a_missing_build_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.call("--build", folder, "--only", "physical/m3/8")
        self.assertEqual(done.returncode, 1)
        self.assertIn("run make first", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
