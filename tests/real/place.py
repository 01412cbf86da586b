"""Where a real code is built and run: one MPI, one folder of the cache."""

import dataclasses
import hashlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "headway"))
# pylint: disable=wrong-import-position
from headway.measure import contestants  # noqa: E402


class Failed(Exception):
    """A step that did not end well: what the page and the log say of it."""


@dataclasses.dataclass
class Ends:
    """How the tests of one command ended."""

    passed: int = 0
    skipped: int = 0
    failed: list = dataclasses.field(default_factory=list)

    def add(self, other):
        self.passed += other.passed
        self.skipped += other.skipped
        self.failed += other.failed


@dataclasses.dataclass
class Test:
    """One command of a code's own tests. `read`: what it printed and its exit code -> Ends."""

    name: str
    command: list
    folder: pathlib.Path
    read: Callable[[str, int], Ends]
    limit: float = 600
    environment: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Timed:
    """A run whose own report of its time, or else the time around it, stands beside the other MPIs'."""

    words: str  # for the page
    command: list
    folder: pathlib.Path
    seconds: Callable[[str], float]
    limit: float = 60
    environment: dict = dataclasses.field(default_factory=dict)


class Mpi:
    """Headway of a build folder, or a peer of scripts/peers.sh. "mpich-abi": what was built with our mpicc, over
    MPICH's library of the standard ABI and its mpiexec; a judge that needs no build."""

    NAMES = ("headway", "mpich", "mpich-abi", "openmpi")

    def __init__(self, name, build):
        cache = contestants.cache()
        make = {"headway": lambda: contestants.headway(build / "bin"),
                "mpich": lambda: contestants.mpich(cache / "mpich"),
                "mpich-abi": lambda: contestants.mpich(cache / "mpich"),
                "openmpi": lambda: contestants.openmpi(cache / "openmpi")}
        self.contestant = make[name]()
        self.name = name
        self.build = build
        self.label = self.contestant.label
        self.bin = self.contestant.launcher.parent
        self.missing = self.contestant.missing()
        self.launcher = [str(self.contestant.launcher), *self.contestant.launcher_options]

    def environment(self, **more):
        kept = {key: value for key, value in self.contestant.full_environment().items()
                if not key.startswith(("LD_LIBRARY_PATH", "MPI4PY", "MAKE", "MFLAGS"))}
        if self.name == "mpich-abi":
            more["LD_LIBRARY_PATH"] = f"{self.bin.parent / 'lib'}:{more.get('LD_LIBRARY_PATH', '')}".rstrip(":")
        return kept | {"PATH": f"{self.bin}:{kept['PATH']}"} | more

    def run(self, ranks, *words):
        return [*self.launcher, "-n", str(ranks), *map(str, words)]

    def key(self):
        """One build of a code serves every build of ours with the same mpi.h: it is all that it sees."""
        if self.name not in ("headway", "mpich-abi"):
            return self.name
        header = (self.build / "include" / "mpi.h").read_bytes()
        return "headway-" + hashlib.sha256(header).hexdigest()[:12]


class Place:
    """The folder of one code built for one MPI: source/ (unpacked), and what its build makes."""

    def __init__(self, root, name, mpi, options):
        self.root = root  # of all codes
        self.mpi = mpi
        self.downloads = root / "downloads"
        self.folder = root / name / mpi.key()
        self.source = self.folder / "source"
        self.jobs = options.jobs
        self.downloads.mkdir(parents=True, exist_ok=True)

    def fresh(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def is_ready(self):
        """Built, with an mpicc that is still there: a code's tests may compile by it."""
        ready = self.folder / ".ready"
        return ready.exists() and pathlib.Path(ready.read_text()).exists()

    def set_ready(self):
        (self.folder / ".ready").write_text(str(self.mpi.bin / "mpicc"))

    @property
    def tests_ready(self):
        return self.folder / ".ready-tests"

    def step(self, name, command, folder=None, limit=1800, environment=None):
        """A step of a build; what it printed is kept in NAME.log."""
        code, said, seconds = self.execute(name, command, folder or self.source, limit, environment or {})
        if code != 0:
            raise Failed(f"{name} ended with {code}, see {self.folder / name}.log: {said[-1500:]}")
        return said, seconds

    def make(self, name, *words, folder=None, limit=3000, environment=None):
        return self.step(name, ["make", f"-j{self.jobs}", *words], folder, limit, environment)

    def execute(self, name, command, folder, limit, environment):
        """Runs a command with an end to every wait: (exit code or 124, what it printed, seconds)."""
        log = self.folder / f"{name}.log"
        started = time.monotonic()
        with open(log, "w", encoding="utf-8") as out, subprocess.Popen(
                [str(word) for word in command], cwd=folder, env=self.mpi.environment(**environment),
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True) as process:
            try:
                code = process.wait(timeout=limit)
            except subprocess.TimeoutExpired:
                code = 124
            finally:  # also when this process is told to end
                end(process)
        return code, log.read_text(encoding="utf-8", errors="replace"), time.monotonic() - started


def end(process):
    """Ends what a command has started: politely, so that mpiexec takes its ranks with it, then for good."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, how)
            process.wait(timeout=20)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def leave_nothing_behind():
    """A signal to end is an exception, so that what runs is ended first."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
