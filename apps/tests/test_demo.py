#!/usr/bin/env python3
"""Runs the demo on a small field, and makes sure that it notices a wrong one. Ends with 77
(skipped) where the project's Python packages are missing: `make python` installs them."""
import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"

# Stands in for mpiexec: runs the true one, then changes the last bit of what four ranks wrote.
CORRUPTING = """#!/usr/bin/env python3
import subprocess, sys
code = subprocess.call([{mpiexec!r}, *sys.argv[1:]])
if "4" == sys.argv[2]:
    with open(sys.argv[sys.argv.index("--out") + 1], "r+b") as file:
        file.seek(-8, 2)
        last = file.read(1)
        file.seek(-8, 2)
        file.write(bytes([last[0] ^ 1]))
sys.exit(code)
"""

# A launcher that the program does not understand: every rank becomes a job of its own.
SINGLETONS = """#!/bin/sh
shift 2
exec env -i "$@"
"""


class Demo(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def demo(self, build):
        return subprocess.run(
            [sys.executable, ROOT / "apps" / "pes" / "demo.py", "--build", build, "--n", "64",
             "--iterations", "40", "--no-cluster", "--out", self.folder / "out"],
            capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL,
            env={**os.environ, "COLUMNS": "120", "MPLCONFIGDIR": str(self.folder)})

    def build_with_launcher(self, text):
        """A build folder whose mpiexec is this script."""
        build = self.folder / "build"
        (build / "bin").mkdir(parents=True)
        (build / "apps").symlink_to(BUILD / "apps")
        launcher = build / "bin" / "mpiexec"
        launcher.write_text(text)
        launcher.chmod(0o755)
        return build

    def test_draws_and_agrees(self):
        done = self.demo(BUILD)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("All 6 fields agree bit for bit", done.stdout)
        picture = (self.folder / "out" / "pes.png").read_bytes()
        self.assertTrue(picture.startswith(b"\x89PNG"))
        self.assertGreater(len(picture), 20000)
        runs = json.loads((self.folder / "out" / "pes.json").read_text())["runs"]
        self.assertEqual([run["ranks"] for run in runs], [1, 2, 2, 2, 4, 4])
        self.assertEqual([run["message_thread"] for run in runs],
                         [True, True, True, False, True, True])
        self.assertEqual(len({run["checksum"] for run in runs}), 1)

    def test_notices_one_wrong_bit(self):
        mpiexec = str(BUILD / "bin" / "mpiexec")
        done = self.demo(self.build_with_launcher(CORRUPTING.format(mpiexec=mpiexec)))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("DIFFERENT", done.stdout)

    def test_notices_singletons(self):
        done = self.demo(self.build_with_launcher(SINGLETONS))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("became jobs of 1", done.stdout)

    def test_notices_a_failing_program(self):
        done = self.demo(self.build_with_launcher("#!/bin/sh\necho broken >&2\nexit 9\n"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("ended with 9", done.stdout)
        self.assertIn("broken", done.stdout)

    def test_says_that_nothing_is_built(self):
        done = self.demo(self.folder / "nowhere")
        self.assertEqual(done.returncode, 1)
        self.assertIn("run make first", done.stdout)


def main():
    global BUILD
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=BUILD)
    known, rest = parser.parse_known_args()
    BUILD = known.build.resolve()
    for module in ("typer", "rich", "numpy", "matplotlib"):
        if importlib.util.find_spec(module) is None:
            print(f"skipped: {sys.executable} has no {module}; `make python` installs it")
            sys.exit(77)
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)


if __name__ == "__main__":
    main()
