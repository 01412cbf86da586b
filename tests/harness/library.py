"""Under which MPI the programs run: ours from a build folder, or MPICH 5 as the oracle."""

from __future__ import annotations

import atexit
import os
import pathlib
import re
import shutil
import stat
import subprocess
import tempfile

CACHE = pathlib.Path(
    os.environ.get("HEADWAY_CACHE")
    or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "headway"))
PROGRAMS = pathlib.Path(__file__).resolve().parent.parent / "programs"


class Headway:
    """Programs as CMake built them, under our mpiexec."""

    name = "headway"

    def __init__(self, build: pathlib.Path):
        self.build = build.resolve()
        self.mpiexec = self.build / "bin" / "mpiexec"
        self.library = self.build / "lib"
        self.programs = self.build / "tests" / "programs"
        if not self.mpiexec.exists():
            raise SystemExit(f"{self.mpiexec} is missing: build the project first")

    def environment(self) -> dict[str, str]:
        base = {k: v for k, v in os.environ.items() if not k.startswith(("HEADWAY_", "PMI", "PMIX"))}
        base.pop("LD_LIBRARY_PATH", None)
        # Sanitizers: a finding must show in the exit code, and leaks are not looked for here.
        base.setdefault("ASAN_OPTIONS", "detect_leaks=0")
        base.setdefault("TSAN_OPTIONS", "halt_on_error=1")
        return base

    def sanitizer(self) -> str:
        """What the library was built with, as in -fsanitize=; empty without."""
        cache = self.build / "CMakeCache.txt"
        found = re.search(r"^HEADWAY_SANITIZE:\w+=(.*)$", cache.read_text(), re.M) \
            if cache.exists() else None
        return found.group(1) if found else ""

    def program(self, name: str) -> pathlib.Path:
        path = self.programs / name
        if not path.exists():
            raise SystemExit(f"{path} is missing: build the project first")
        return path

    def command(self, ranks: int, program: str, arguments: list[str]) -> list[str]:
        return [str(self.mpiexec), "-n", str(ranks), str(self.program(program)), *arguments]

    def readable_by_all(self) -> "Headway":
        """A copy in /tmp if an ordinary user could not reach the build folder."""
        for folder in (self.programs, *self.programs.parents):
            if not folder.stat().st_mode & stat.S_IXOTH:
                break
        else:
            return self
        target = pathlib.Path(tempfile.mkdtemp(prefix="headway-user-"))
        atexit.register(shutil.rmtree, target, ignore_errors=True)
        for part in ("bin", "lib", "tests/programs"):
            shutil.copytree(self.build / part, target / part, symlinks=True)
        for path in (target, *target.rglob("*")):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o555)
        return _Copied(target)


class _Copied(Headway):
    def environment(self) -> dict[str, str]:
        return {**super().environment(), "LD_LIBRARY_PATH": str(self.library), "HOME": "/tmp"}


class Mpich:
    """The same sources, compiled by MPICH's mpicxx_abi, under MPICH's mpiexec."""

    name = "mpich"

    def __init__(self):
        self.prefix = CACHE / "mpich"
        self.folder = CACHE / "test-programs-mpich"
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.prefix / "bin" / "mpicxx_abi").exists():
            raise SystemExit(f"no MPICH in {self.prefix}: run scripts/peers.sh")

    def environment(self) -> dict[str, str]:
        return {k: v for k, v in os.environ.items() if not k.startswith(("HEADWAY_", "PMI"))}

    def program(self, name: str) -> pathlib.Path:
        source = next(p for p in (PROGRAMS / f"{name}.cc", PROGRAMS / f"{name}.c") if p.exists())
        path = self.folder / name
        newest = max(p.stat().st_mtime for p in [source, *PROGRAMS.glob("*.h")])
        if not path.exists() or path.stat().st_mtime < newest:
            wrapper = "mpicxx_abi" if source.suffix == ".cc" else "mpicc_abi"
            flags = ["-std=c++20"] if source.suffix == ".cc" else []
            subprocess.run([str(self.prefix / "bin" / wrapper), *flags, "-O1", "-g", str(source),
                            "-o", str(path), "-pthread"], check=True)
        return path

    def command(self, ranks: int, program: str, arguments: list[str]) -> list[str]:
        return [str(self.prefix / "bin" / "mpiexec"), "-n", str(ranks), str(self.program(program)),
                *arguments]

    def readable_by_all(self) -> "Mpich":
        raise SystemExit("--as-uid is for our own library")
