"""What the tests of packages share: folders, runs with a limit, the environment of a user."""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
SKIPPED = 77


def environment(**changes):
    """Ours, without what points to some MPI library or to a job around the test."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("HEADWAY_", "PMI", "PMIX", "OMPI_", "SLURM_", "MPI", "CMAKE_"))
            and name not in ("LD_LIBRARY_PATH", "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS",
                             "PYTHONPATH", "PKG_CONFIG_PATH", "DESTDIR", "MAKEFLAGS")}
    for name in ("HEADWAY_CACHE",):
        if name in os.environ:
            kept[name] = os.environ[name]
    kept.update({name: str(value) for name, value in changes.items() if value is not None})
    return kept


def run(*words, limit=120, env=None, cwd=None, code=0):
    """Runs a command; another exit code than `code` is an error, with all that was said."""
    done = subprocess.run([str(word) for word in words], env=env or environment(), cwd=cwd,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=limit,
                          check=False)
    if code is not None and done.returncode != code:
        raise AssertionError(f"{' '.join(map(str, words))}: code {done.returncode}\n"
                             f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done


def cached(name):
    """A variable of the build's CMake cache."""
    text = (BUILD / "CMakeCache.txt").read_text()
    found = re.search(rf"^{name}(?:-\w+)?:\w+=(.*)$", text, re.M)
    return found[1] if found else ""


def install(where, prefix="/opt/headway"):
    """Installs the build below `where` and returns the prefix in it."""
    run("cmake", "--install", BUILD, "--prefix", prefix, env=environment(DESTDIR=where))
    return pathlib.Path(f"{where}{prefix}")


class Case(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="headway-package-test-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name).resolve()


def main():
    """PROGRAM [--build BUILD] [names of tests]; 77 where nothing could be tested."""
    global BUILD  # pylint: disable=global-statement
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=BUILD)
    options, rest = parser.parse_known_args()
    BUILD = options.build.resolve()
    if cached("HEADWAY_SANITIZE"):
        print("skipped: packages are tested in builds without sanitizers")
        return SKIPPED
    program = unittest.main(module="__main__", argv=[sys.argv[0], *rest], verbosity=2, exit=False)
    result = program.result
    if not result.wasSuccessful():
        return 1
    return SKIPPED if result.testsRun == len(result.skipped) else 0
