"""What the tests of the tools share: the command, and the package on Python's path."""

import importlib.util
import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("HEADWAY_BUILD", ROOT / "build"))
HEADWAY = BUILD / "bin" / "headway"
sys.path.insert(0, str(ROOT / "tools" / "headway"))
sys.path.append(str(ROOT / "tests"))  # for harness
# No option of the caller's shell may reach a test, nor may the build's folder of it.
os.environ.pop("HEADWAY_BUILD", None)
GIVEN_SEED = os.environ.pop("HEADWAY_TEST_SEED", "")


def headway(*words, code=0, timeout=60, **more):
    """Runs the command; checks its exit code unless that is None."""
    done = subprocess.run(
        [HEADWAY, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
        **more,
    )
    if code is not None and done.returncode != code:
        raise AssertionError(
            f"headway {' '.join(map(str, words))}: exit code {done.returncode}, expected {code}\n"
            f"{done.stdout}{done.stderr}"
        )
    return done


def drawn_seed():
    """Of what a test draws: another one each time, or HEADWAY_TEST_SEED, which the quick tests of CMakeLists.txt set."""
    return int(GIVEN_SEED or random.randrange(1 << 30))


def need_packages(*names):
    """Ends with 77 (skipped) where one of the project's Python packages is missing."""
    for name in names or ("typer", "rich", "numpy", "matplotlib"):
        if importlib.util.find_spec(name) is None:
            print(f"skipped: {sys.executable} has no {name}; `make python` installs it")
            sys.exit(77)


def main(names):
    """Runs a module's tests, `names` its globals: test.py [SEED [COUNT]] [TEST...]; SEED may be `drawn`. Says its seed."""
    words = sys.argv[1:]
    for name in ("SEED", "COUNT"):
        if name in names and words and (words[0].isdigit() or (name, words[0]) == ("SEED", "drawn")):
            word = words.pop(0)
            names[name] = names[name] if word == "drawn" else int(word)
    print(f"seed {names['SEED']}", flush=True)
    unittest.main(verbosity=1, argv=[sys.argv[0], *words])


class Folder(unittest.TestCase):
    """A folder of its own for each test, and programs in it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="headway-tools-test-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def script(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def disk(self, size):
        """A small file system of its own."""
        path = self.folder / "disk"
        path.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            self.skipTest("no file system can be made here")
        self.addCleanup(subprocess.run, ["umount", path], check=False)
        return path
