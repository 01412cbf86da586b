#!/usr/bin/env python3
"""Tests of what bench/early_release.py makes of results. Ends with 77 (skipped) where the project's
Python packages are missing."""

import importlib.util
import json
import sys
import tempfile
import unittest
from pathlib import Path

for module in ("typer", "rich", "numpy", "matplotlib"):
    if importlib.util.find_spec(module) is None:
        print(f"skipped: {sys.executable} has no {module}; `make python` installs it")
        sys.exit(77)

import clusters  # noqa: E402
import release_plan  # noqa: E402
import release_report  # noqa: E402
from release_runs import ReleaseRunner  # noqa: E402
from headway.measure.plan import wanted  # noqa: E402
from headway.measure.store import Store  # noqa: E402
from starts import Setup  # noqa: E402

VALID = {"valid": True, "reasons": []}


def result(mean: float, computing: float, checksum: str = "abc", **other) -> dict:
    each = {"mean": mean, "median": mean, "warmup_mean": mean, "computing": computing,
            "communicating": mean - computing, "parts": [mean, mean]}
    return {"result": {"iteration": each, "iterations": 10, "late": 0.0, "checksum": checksum,
                       "check": "ok"} | other, "verdict": VALID, "pace": 733.0}


class Figures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.store = Store(self.folder / "runs.sqlite", resume=False)
        self.case = next(c for c in release_plan.sweep_cases(False) if c.name == "sweep/nbody/16/50")

    def put(self, mode: str, turn: int, entry: dict) -> None:
        self.store.add(f"{self.case.name}|{mode}|{turn}", {"settings": self.case.settings()} | entry | {"turn": turn})

    def put_all(self) -> None:
        for mode, turn, mean in (("off", 0, 2.0), ("on", 1, 1.25), ("on", 2, 1.0), ("off", 3, 2.0)):
            self.put(mode, turn, result(mean, 1.0))

    def test_gain_share_and_hidden_part(self):
        self.put_all()
        f = release_report.figure_of(self.case, self.store)
        d = self.case.hosts.dilation
        self.assertAlmostEqual(f.off, 2.0 / d)
        self.assertAlmostEqual(f.gain, (2.0 / 1.25 + 2.0) / 2)
        self.assertAlmostEqual(f.share, 0.5)
        self.assertAlmostEqual(f.hidden, (2.0 - 1.125) / (2.0 - 1.0))
        self.assertEqual(f.verdict, "valid")
        self.assertTrue(f.low <= f.gain <= f.high)

    def test_other_bits_are_noticed(self):
        self.put_all()
        self.put("on", 2, result(1.0, 1.0, checksum="abd"))
        f = release_report.figure_of(self.case, self.store)
        self.assertFalse(f.same)
        self.assertIn("DIFFERENT", f.verdict)

    def test_lost_packets_and_a_slow_machine_are_named(self):
        self.put_all()
        entry = result(1.0, 1.0, late=20.0)
        entry["verdict"] = {"valid": False, "reasons": ["3 packets were dropped by full queues"]}
        self.put("on", 2, entry)
        f = release_report.figure_of(self.case, self.store)
        self.assertIn("3 packets were dropped", f.verdict)
        self.assertIn("too slow for the pace", f.verdict)

    def test_results_of_another_case_of_that_name_do_not_count(self):
        self.put_all()
        self.put("on", 2, result(0.1, 0.1) | {"settings": "--hosts 3"})
        f = release_report.figure_of(self.case, self.store)
        self.assertAlmostEqual(f.gain, 2.0 / 1.25)

    def test_no_figure_without_both_modes(self):
        self.put("off", 0, result(2.0, 1.0))
        self.assertIsNone(release_report.figure_of(self.case, self.store))

    def test_a_run_goes_on_where_it_stopped(self):
        self.put_all()
        again = Store(self.store.path, resume=True)
        self.assertEqual(set(again.lines), set(self.store.lines))
        runner = ReleaseRunner(Setup(self.folder, self.folder, "matched", [], 12), again)
        kept = runner.measured(self.case, "off", 3, "off", 733.0, 10, 5)  # would fail if it started
        self.assertEqual(kept["result"]["iteration"]["mean"], 2.0)
        self.assertEqual(len(Store(self.store.path, resume=False).lines), 0)

    def test_report_is_written(self):
        self.put_all()
        about = {"date": "", "cpu": "", "cores": 2, "kernel": "", "commit": "", "on": "matched", "quick": False}
        release_report.write(self.folder, self.store, [self.case], [], about, ["a note"])
        text = (self.folder / "release.md").read_text()
        self.assertIn("| N-Body, 50 % | 16 |", text)
        self.assertIn("agree bit for bit", text)
        document = json.loads((self.folder / "release.json").read_text())
        self.assertEqual(len(document["cases"]), 1)
        self.assertTrue((self.folder / "sweep.png").stat().st_size > 5000)


class Models(unittest.TestCase):
    def test_table_of_the_prefetching_paper(self):
        """One rank a host there: the shares of the model in paper-cases."""
        for ranks, compute in ((8, 0.362), (16, 0.181), (64, 0.045)):
            got = release_plan.compute_seconds("pes", 5120, 5120, ranks, 733)
            self.assertAlmostEqual(got, compute, delta=0.002)
        self.assertAlmostEqual(release_plan.compute_seconds("nbody", 10240, 0, 8, 733), 4.68, delta=0.01)
        self.assertAlmostEqual(release_plan.compute_seconds("m3", 1024, 0, 8, 733), 2.51, delta=0.01)

    def test_uplinks_slow_nbody_beyond_one_switch(self):
        one = release_plan.model("nbody", 10240, 0, 64, 733, clusters.Hosts(32, 100))
        two = release_plan.model("nbody", 10240, 0, 64, 733, release_plan.hosts_of("vplus", 64, "nbody"))
        self.assertGreater(two.wire, 4 * one.wire)

    def test_pace_for(self):
        case = release_plan.sweep_cases(True)[0]
        self.assertAlmostEqual(case.model_at(case.pace_for(0.25)).compute, 0.25)


class Names(unittest.TestCase):
    def test_only(self):
        self.assertTrue(wanted("sweep/pes/16/50", ["sweep/pes"]))
        self.assertTrue(wanted("sweep/pes/16/50", ["stream", "sweep/*/16"]))
        self.assertFalse(wanted("sweep/pes/16/50", ["sweep/nbody", "sweep/pes/8"]))
        self.assertFalse(wanted("sweep/pes/16/50", ["sweep/pes/16/5"]))
        self.assertTrue(wanted("anything", []))

    def test_names_are_unique(self):
        names = [c.name for c in release_plan.sweep_cases(False) + release_plan.physical_cases(False, True)]
        names += [s.name for s in release_plan.streams(False)]
        self.assertEqual(len(names), len(set(names)))


if __name__ == "__main__":
    unittest.main(verbosity=2)
