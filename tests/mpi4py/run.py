#!/usr/bin/env python3
"""Builds mpi4py from its source package with our mpicc and runs its own tests under our mpiexec.

A test may fail because it meets a function that this library does not have yet; every other failure
must be known (tests/mpi4py/known.txt), or this ends with 1. --write makes docs/mpi4py.md from the
result. Where mpi4py cannot be downloaded and was not before, it ends with 77."""

import argparse
import collections
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CACHE = pathlib.Path(os.environ.get("HEADWAY_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "headway"))
VERSION = "4.1.2"
SKIPPED = 77
ENDS = ("passed", "skipped", "missing", "failed")


def environment(**changes):
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("PMI", "OMPI_", "MPI4PY")) and name != "LD_LIBRARY_PATH"
            and (name == "HEADWAY_CACHE" or not name.startswith("HEADWAY_"))}
    kept.update({name: str(value) for name, value in changes.items()})
    return kept


class Mpi4py:
    """mpi4py, built for a build folder of ours: an environment and its tests, kept in the cache."""

    def __init__(self, build):
        self.build = build
        facts = (build / "include" / "mpi.h").read_bytes() + VERSION.encode() + str(build).encode()
        self.folder = CACHE / "mpi4py" / hashlib.sha256(facts).hexdigest()[:16]
        self.python = self.folder / "venv" / "bin" / "python"
        self.tests = self.folder / "source" / "test"

    def make(self):
        """False where it cannot be had."""
        if (self.folder / ".ready").exists():
            return True
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        subprocess.run([sys.executable, "-m", "venv", self.folder / "venv"], check=True)
        pip = [self.python, "-m", "pip", "--disable-pip-version-check", "-q"]
        got = subprocess.run([*pip, "download", "--no-deps", "--no-binary", "mpi4py", "-d",
                              self.folder, f"mpi4py=={VERSION}"],
                             env=environment(MPI4PY_BUILD_MPICC=self.build / "bin" / "mpicc"),
                             capture_output=True, text=True, check=False)
        archive = self.folder / f"mpi4py-{VERSION}.tar.gz"
        if not archive.exists():
            print(f"mpi4py {VERSION} cannot be downloaded:\n{got.stderr[-1000:]}", file=sys.stderr)
            return False
        subprocess.run(["tar", "-xzf", archive, "-C", self.folder], check=True)
        (self.folder / f"mpi4py-{VERSION}").rename(self.folder / "source")
        subprocess.run([*pip, "install", "numpy", self.folder / "source"], check=True, timeout=1800,
                       env=environment(MPI4PY_BUILD_MPICC=self.build / "bin" / "mpicc"))
        (self.folder / ".ready").touch()
        return True

    def module_file(self):
        found = subprocess.run([self.python, "-c", "import mpi4py.MPI; print(mpi4py.MPI.__file__)"],
                               env=environment(), capture_output=True, text=True, check=True)
        return found.stdout.strip()

    def modules(self):
        return sorted(path.stem for path in self.tests.glob("test_*.py"))

    def run(self, module, ranks, limit):
        """What became of each test of a module: name -> (end, story); the worst of all ranks."""
        with tempfile.TemporaryDirectory() as folder:
            results = os.path.join(folder, "results")
            try:
                done = subprocess.run(
                    [self.build / "bin" / "mpiexec", "-n", str(ranks), "--timeout", str(limit),
                     self.python, HERE / "ranks.py", self.tests, results, module],
                    env=environment(MPI4PY_TEST_SPAWN="no"), capture_output=True, text=True,
                    stdin=subprocess.DEVNULL, timeout=limit + 30, check=False)
                code, said = done.returncode, done.stderr.strip()
            except subprocess.TimeoutExpired:
                code, said = 124, "mpiexec did not end"
            ends = {}
            for rank in range(ranks):
                file = f"{results}.{rank}"
                found = json.loads(pathlib.Path(file).read_text()) if os.path.exists(file) else {}
                for name, (end, story) in found.items():
                    if end == "began":
                        why = "hangs" if code == 124 else f"ends the job with code {code}"
                        end, story = "failed", why
                    if name not in ends or ENDS.index(end) > ENDS.index(ends[name][0]):
                        ends[name] = (end, story)
            if code != 0 and all(end != "failed" for end, _ in ends.values()):
                ends[f"{module} as a whole"] = ("failed", f"code {code}: {said[-300:]}")
        return ends


def known_failures():
    lines = (HERE / "known.txt").read_text().splitlines()
    return {line.split("#")[0].strip() for line in lines} - {""}


def write_page(needs, tables):
    """docs/mpi4py.md."""
    out = [f"""\
<!-- Made by tests/mpi4py/run.py --write. Do not edit. -->
# mpi4py

mpi4py {VERSION}, from its source package, built with our `mpicc` and run by our `mpiexec`:

    MPI4PY_BUILD_MPICC=build/bin/mpicc pip install --no-binary mpi4py mpi4py
    build/bin/mpiexec -n 4 python program.py

(The wheels of mpi4py {VERSION} itself are for MPICH's and Open MPI's own ABI, so they do not run on a
library of the standard ABI.) What `mpiexec --check` says of its module:

```text
{needs}
```

Below, mpi4py's own tests. *Missing* means that a test met a function that this library does not have
yet; such a call raises `MPI_ERR_UNSUPPORTED_OPERATION`. *Skipped* is what mpi4py leaves out by itself.
`ctest -R mpi4py` runs all this (a slow test).
"""]
    for ranks, modules in tables.items():
        total = collections.Counter(end for ends in modules.values() for end, _ in ends.values())
        out.append(f"\n## {ranks} rank{'s' if ranks > 1 else ''}\n\n" + ", ".join(
            f"{total[end]} {end}" for end in ENDS) + ".\n\n| tests | passed | skipped | missing | failed "
            "|\n|---|---|---|---|---|\n")
        for module, ends in modules.items():
            count = collections.Counter(end for end, _ in ends.values())
            out.append(f"| `{module}` | " + " | ".join(str(count[end]) for end in ENDS) + " |\n")
        failed = [(name, story) for ends in modules.values()
                  for name, (end, story) in sorted(ends.items()) if end == "failed"]
        if failed:
            out.append("\nFailed, although the functions are there:\n\n")
            out += [f"* `{name}`: {story.replace('|', '/')}\n" for name, story in failed]
    (ROOT / "docs" / "mpi4py.md").write_text("".join(out))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--ranks", type=int, action="append", help="default: 1 and 2")
    parser.add_argument("--module", action="append", help="only these")
    parser.add_argument("--limit", type=float, default=60, help="seconds for a module")
    parser.add_argument("--write", action="store_true", help="write docs/mpi4py.md")
    options = parser.parse_args()
    mpi4py = Mpi4py(options.build.resolve())
    if not mpi4py.make():
        return SKIPPED
    checked = subprocess.run([mpi4py.build / "bin" / "mpiexec", "--check", mpi4py.module_file()],
                             env=environment(), capture_output=True, text=True, check=False)
    print(checked.stdout.split("\n")[0])
    tables, unknown = {}, []
    known = known_failures()
    for ranks in options.ranks or [1, 2]:
        tables[ranks] = {}
        for module in options.module or mpi4py.modules():
            ends = mpi4py.run(module, ranks, options.limit)
            tables[ranks][module] = ends
            count = collections.Counter(end for end, _ in ends.values())
            print(f"{ranks} ranks, {module}: " + ", ".join(f"{count[e]} {e}" for e in ENDS), flush=True)
            for name, (end, story) in ends.items():
                if end == "failed":
                    news = "" if name in known else "  NOT KNOWN"
                    print(f"  {name}: {story}{news}")
                    unknown += [name] if news else []
    passed = sum(end == "passed" for modules in tables.values() for ends in modules.values()
                 for end, _ in ends.values())
    print(f"{passed} tests passed; failures that are not known: {len(unknown)}")
    if options.write:
        needs = checked.stdout.replace(mpi4py.module_file(), "mpi4py/MPI.so").strip()
        write_page(needs, tables)
    return 1 if unknown or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
