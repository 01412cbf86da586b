#!/usr/bin/env python3
"""Runs mpi4py's own tests on this library, a module and a number of ranks at a time.

A test may meet a function that this library does not have: the call raises
MPI_ERR_UNSUPPORTED_OPERATION, and `mpiexec --check` lists the function. Every other failure must stand
in known.txt with its reason, and what stands there must fail; else this ends with 1. Exit code 77:
mpi4py cannot be downloaded (scripts/mpi4py.sh)."""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
# pylint: disable=wrong-import-position
import page  # noqa: E402
import results  # noqa: E402
from ranks import ENDS  # noqa: E402

SKIPPED = 77
STALL = 45  # seconds for a test
TRIES = 10  # of one module, each without the tests that ended before


def environment(**changes):
    """Without what a launcher, another MPI or a tester's shell might have left."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("PMI", "OMPI_", "MPI4PY", "HEADWAY_", "LD_LIBRARY_PATH"))}
    if "HEADWAY_CACHE" in os.environ:
        kept["HEADWAY_CACHE"] = os.environ["HEADWAY_CACHE"]
    return kept | changes


class Mpi4py:
    """mpi4py as scripts/mpi4py.sh makes it, and a build of ours to run it on."""

    def __init__(self, build, folder):
        self.mpiexec = build / "bin" / "mpiexec"
        self.python = folder / "venv" / "bin" / "python"
        self.tests = folder / "source" / "test"
        self.version = next((folder / "venv").glob("lib/*/site-packages/mpi4py-*.dist-info")) \
            .name.removeprefix("mpi4py-").removesuffix(".dist-info")
        self.module = next((folder / "venv").glob("lib/*/site-packages/mpi4py/MPI.*.so"))
        self.needs = self.check()

    def check(self):
        """What mpiexec --check says of the module: functions that it needs, and those missing."""
        said = subprocess.run([self.mpiexec, "--check", self.module], env=environment(),
                              capture_output=True, text=True, timeout=60, check=False)
        return results.Needs.parse(said.stdout)

    def modules(self):
        return sorted(path.stem for path in self.tests.glob("test_*.py"))

    def run(self, module, ranks, limit):
        """What became of each test of a module: name -> (end, story)."""
        ends = {}
        for attempt in range(TRIES):
            code, said, found = self.start(module, ranks, limit, ends)
            ends.update(found)
            if code == 0:
                break
            # What took the job with it has its end: the others run without it.
            if not found or attempt == TRIES - 1:
                ends[f"{module} as a whole"] = ("failed", f"code {code}: {said[-300:].strip()}")
                return ends
        if any(end == "missing" for end, _ in ends.values()):
            # A rank that meets a missing function leaves the others behind, who then fail in the tests
            # after it: those come again, each in a job of its own.
            for name in [name for name, (end, _) in ends.items() if end == "failed"]:
                *_, found = self.start(module, ranks, limit, ends.keys() - {name})
                ends.update(found)
        return ends

    def start(self, module, ranks, limit, finished):
        """Runs the tests of a module that are not among `finished`: the job's exit code, what it said,
        and what became of the tests."""
        with tempfile.TemporaryDirectory() as folder:
            list_of_finished = pathlib.Path(folder) / "finished"
            list_of_finished.write_text("\n".join(finished))
            files = pathlib.Path(folder) / "results"
            code, said = self.launch(module, ranks, limit, files, list_of_finished)
            return code, said, results.read(files, ranks, code)

    def launch(self, module, ranks, limit, files, finished):
        # Who waits for processes that cannot be started waits for ever.
        spawn = {"MPI4PY_TEST_SPAWN": "no"} if "MPI_Comm_spawn" in self.needs.missing else {}
        command = [self.mpiexec, "-n", str(ranks), self.python, HERE / "ranks.py", self.tests, files,
                   module, finished]
        with open(files.parent / "said", "w+", encoding="utf-8", errors="replace") as said:
            # Processes that a test spawns look for its functions, too.
            with subprocess.Popen(command, env=environment(PYTHONPATH=str(self.tests), **spawn),
                                  stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT) as process:
                code = wait(process, files, limit)
            said.seek(0)
            return code, said.read()


def wait(process, files, limit):
    """The exit code, or 124 if it was ended: it took too long, or there was no news from any test."""
    started = news = time.monotonic()
    size = 0
    while True:
        try:
            return process.wait(timeout=0.1)
        except subprocess.TimeoutExpired:
            pass
        now = time.monotonic()
        size_now = sum(path.stat().st_size for path in files.parent.glob(f"{files.name}.*"))
        if size_now != size:
            size, news = size_now, now
        if now - started < limit and now - news < STALL:
            continue
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
        return 124


def prepare(build, how):
    """The folder of mpi4py, or None where it cannot be had."""
    made = subprocess.run([ROOT / "scripts" / "mpi4py.sh", *how, build], stdout=subprocess.PIPE, text=True,
                          env=environment(), timeout=3000, check=False)
    if made.returncode == SKIPPED:
        return None
    if made.returncode != 0:
        raise SystemExit("mpi4py cannot be built with our mpicc")
    return pathlib.Path(made.stdout.strip())


def run_all(mpi4py, options):
    """ranks -> module -> test -> (end, story)"""
    tables = {}
    for ranks in options.ranks:
        for module in options.module or mpi4py.modules():
            key = f"{ranks} {module}"
            ends = options.before.get(key)
            if ends is None:
                ends = options.before[key] = mpi4py.run(module, ranks, options.limit)
                if options.resume:
                    options.resume.write_text(json.dumps(options.before))
            tables.setdefault(ranks, {})[module] = ends
            count = collections.Counter(end for end, _ in ends.values())
            print(f"{ranks} rank{'s' * (ranks > 1)}, {module}: "
                  + ", ".join(f"{count[end]} {end}" for end in ENDS if count[end]), flush=True)
            for name, (end, story) in ends.items():
                if end == "failed":
                    print(f"    {name}: {story}", flush=True)
    return tables


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--module", nargs="+", help="only these")
    parser.add_argument("--limit", type=float, default=300, help="seconds for a module")
    parser.add_argument("--write", action="store_true", help="write docs/mpi4py.md")
    parser.add_argument("--if-built", action="store_true", help="do not build mpi4py: rather skip")
    parser.add_argument("--resume", type=pathlib.Path, metavar="FILE",
                        help="keep results in FILE, and begin with those that are there")
    options = parser.parse_args()
    there = options.resume and options.resume.exists()
    options.before = json.loads(options.resume.read_text()) if there else {}
    build = options.build.resolve()
    folder = prepare(build, ["--if-built"] if options.if_built else [])
    if folder is None:
        print("skipped: there is no mpi4py")
        return SKIPPED
    mpi4py = Mpi4py(build, folder)
    needs = mpi4py.needs
    print(f"mpi4py {mpi4py.version} needs {needs.count} functions, {len(needs.missing)} are missing")
    tables = run_all(mpi4py, options)
    known = results.Known.read(HERE / "known.txt")
    problems = results.problems(tables, known, needs)
    for problem in problems:
        print(f"PROBLEM: {problem}")
    if options.write:
        page.write(ROOT / "docs" / "mpi4py.md", mpi4py.version, needs, tables, known)
    elif not options.module and not page.has(ROOT / "docs" / "mpi4py.md", needs):
        problems.append("docs/mpi4py.md lists other functions: run tests/mpi4py/run.py --write")
        print(f"PROBLEM: {problems[-1]}")
    passed = sum(end == "passed" for modules in tables.values() for ends in modules.values()
                 for end, _ in ends.values())
    print(f"{passed} tests passed, {len(problems)} problems")
    return 1 if problems or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
