"""bench/run.py that is stopped, and goes on: nothing that was measured is lost or measured twice."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
from contextlib import closing
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.pop("HEADWAY_BUILD", HERE.parent / "build"))

try:
    import matplotlib  # noqa: F401
    import typer  # noqa: F401
except ImportError:
    print("skipped: typer or matplotlib is missing (make python)")
    sys.exit(77)


class Resumed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="headway-bench-test-")
        self.addCleanup(folder.cleanup)
        self.out = Path(folder.name)

    def line(self, *more, rounds=3):
        words = ("--only", "rate", "--contestants", "headway", "--rounds", rounds, "--quick", "--out", self.out)
        return [sys.executable, HERE / "run.py", "--build", BUILD, *map(str, words), *more]

    def run_line(self, *more, **given):
        return subprocess.run(self.line(*more, **given), capture_output=True, text=True, check=False, timeout=100)

    def kept(self):
        try:
            with closing(sqlite3.connect(f"file:{self.out / 'runs.sqlite'}?mode=ro", uri=True, timeout=5)) as store:
                return dict(store.execute("select key, at || rowid from runs"))
        except sqlite3.Error:
            return {}

    def samples(self):
        document = json.loads((self.out / "results.json").read_text())
        return [(s["round"], tuple(s["values"])) for s in document["samples"]], document["notes"]

    def test_stopped_and_resumed(self):
        rounds = 200
        stopped = subprocess.Popen(self.line(rounds=rounds), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        deadline = time.monotonic() + 60
        while len(self.kept()) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        stopped.send_signal(signal.SIGINT)
        told, _ = stopped.communicate(timeout=60)
        self.assertEqual(stopped.returncode, 130, told)
        self.assertIn("--resume goes on", " ".join(told.split()))
        before = self.kept()
        self.assertTrue(2 <= len(before) < rounds, len(before))
        shown, _ = self.samples()
        self.assertEqual({r for r, _ in shown}, set(range(len(before))), "what was measured is shown")
        done = self.run_line("--resume", rounds=len(before) + 1)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        after = self.kept()
        self.assertEqual(len(after), len(before) + 1)
        self.assertEqual({k: after[k] for k in before}, before, "nothing is measured twice")
        whole, notes = self.samples()
        self.assertEqual(whole[: len(shown)], shown)
        self.assertEqual({r for r, _ in whole}, set(range(len(after))))
        self.assertTrue(any("stopped, went on" in n for n in notes), notes)

    def test_what_is_not_the_same_is_measured_anew(self):
        self.assertEqual(self.run_line().returncode, 0)
        before = self.kept()
        with closing(sqlite3.connect(self.out / "runs.sqlite")) as store, store:
            store.execute("update runs set settings = 'another build' where key = 'rate|headway|1'")
            failed = json.dumps({"failure": "ended at its time limit", "rows": [], "lost": 0, "seconds": 1})
            store.execute("update runs set entry = ? where key = 'rate|headway|2'", (failed,))
        self.assertEqual(self.run_line("--resume").returncode, 0)
        after, (first, _) = self.kept(), self.samples()
        self.assertEqual(sorted(k[-1] for k in after if after[k] != before[k]), ["1", "2"])
        self.assertEqual(self.run_line().returncode, 0)
        self.assertEqual(len(self.kept()), 3)
        self.assertFalse(set(self.samples()[0]) & set(first), "without --resume all is measured anew")

    def test_nothing_to_go_on_with(self):
        done = self.run_line("--resume")
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no run in", done.stderr)

    def test_no_room_on_the_disk(self):
        mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", self.out]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            self.skipTest("no file system can be made here")
        self.addCleanup(subprocess.run, ["umount", self.out], check=False)
        self.assertEqual(self.run_line().returncode, 0)
        before = self.kept()
        with self.assertRaises(OSError), (self.out / "full").open("wb", buffering=0) as full:
            while True:
                full.write(bytes(4096))
        done = self.run_line("--resume", rounds=4)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertRegex(" ".join(done.stdout.split()), "No space left on device|disk is full")
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual(self.kept(), before)


if __name__ == "__main__":
    unittest.main()
