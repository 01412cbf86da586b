"""An engine and the machines of four_hosts.sh: how a job is started there, what its ranks told, and what it left."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

from harness import library
from harness.cases import Skip, Wrong, expect

HOSTS = [f"h{i}" for i in range(4)]
PLACE = re.compile(r"rank (\d+) of (\d+) on (\S+) beside (\d+) in (\S*)(.*) told (.*)$", re.M)
# Engine: the kinds of machines that it can be tried on, the best first.
KINDS = {"srun": ["slurm"], "srun-pmix": ["slurm"], "hydra": ["sshd", "agent"], "prterun": ["sshd", "agent"], "flux": []}
PEERS = {"hydra": ("mpich", "mpiexec.hydra"), "prterun": ("openmpi", "prterun")}
LEFT_BY_JOBS = ("spread", "hydra_pmi_proxy", "prted", "prterun", "srun", "mpiexec.hydra")
TIMES = 10.0  # seconds in which a job must end after a rank has


class Bench:
    """One engine, and its machines."""

    engine = ""

    def __init__(self, mpi):
        self.mpi = mpi
        self.command = []
        self.output = ""
        self.ranks_left = True  # of a job that did not end, but for those that have
        self.spread = str(mpi.build / "tests" / "engines" / "spread")
        if not os.path.exists(self.spread):
            raise SystemExit(f"{self.spread} is missing: build the project first")

    @property
    def is_slurm(self):
        return self.engine.startswith("srun")

    def is_not(self, *engines):
        if self.engine in engines:
            raise Skip(f"{self.engine} refuses it by its name (tests/launcher/cases_engines.py)")

    def environment(self, **variables):
        env = {**self.mpi.environment(), "T_HERE": "1"}
        if self.engine in PEERS:
            env["HEADWAY_ENGINE"] = self.engine
            folder = library.CACHE / PEERS[self.engine][0] / "bin"
            env["PATH"] = f"{env['PATH']}:{folder}"
        if self.engine == "srun-pmix":
            env["HEADWAY_ENGINE_OPTIONS"] = "--mpi=pmix"
        return {**env, **{k: str(v) for k, v in variables.items()}}

    def around(self):
        """The words before mpiexec: Slurm's jobs are made by salloc."""
        return ["salloc", "-Q", "-N4", "--ntasks-per-node=4"] if self.is_slurm else []

    def words(self, *words, hosts=True):
        named = ["--hosts", ",".join(HOSTS)] if hosts and not self.is_slurm and self.engine != "flux" else []
        return [*self.around(), str(self.mpi.mpiexec), *named, *map(str, words)]

    def run(self, *words, code=0, hosts=True, stdin=subprocess.DEVNULL, timeout=60, cwd=None, **variables):
        """A code of None is any but 0."""
        self.command = self.words(*words, hosts=hosts)
        begun = time.monotonic()
        with subprocess.Popen(self.command, env=self.environment(**variables), text=True, cwd=cwd or work(),
                              stdin=subprocess.PIPE if isinstance(stdin, str) else stdin, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, errors="replace", start_new_session=True) as process:
            try:
                self.out, self.err = process.communicate(stdin if isinstance(stdin, str) else None, timeout)
            except subprocess.TimeoutExpired:
                self.ranks_left = any(name_of(pid) == "spread" for pid in os.listdir("/proc") if pid.isdigit())
                os.killpg(process.pid, signal.SIGKILL)
                end_all()
                self.out, self.err = process.communicate()
                self.output = self.out + self.err
                raise Wrong(f"no end within {timeout} s") from None
        self.seconds = time.monotonic() - begun
        self.output = self.out + self.err
        expect(process.returncode == code or (code is None and process.returncode != 0),
               f"exit code {process.returncode} instead of {code if code is not None else 'any but 0'}")
        return process.returncode

    def places(self):
        """What each rank told: machine, ranks beside it, folder, variables, last word; checked to be whole."""
        found = {}
        for rank, _size, host, beside, folder, variables, told in PLACE.findall(self.out):
            values = dict(word.split("=", 1) for word in variables.split() if "=" in word)
            found[int(rank)] = (host, int(beside), folder, values, told)
        sizes = {int(size) for _, size, *_ in PLACE.findall(self.out)}
        expect(len(sizes) == 1 and sorted(found) == list(range(max(sizes))), f"not all ranks told their place: {sorted(found)}")
        return found

    def on_hosts(self):
        """Ranks by machine, in order."""
        by_host = {}
        for rank, (host, *_) in sorted(self.places().items()):
            by_host.setdefault(host, []).append(rank)
        return by_host

    def says(self, text):
        expect(text in self.output, f"it does not say {text!r}")

    def gone(self):
        """No process of the job is left on any machine: they share the numbers of processes."""
        deadline = time.monotonic() + TIMES
        names = ("spread",) if "FOUR_HOSTS" not in os.environ else LEFT_BY_JOBS
        while left := [pid for pid in os.listdir("/proc") if pid.isdigit() and name_of(pid) in names]:
            expect(time.monotonic() < deadline, f"processes left: {', '.join(left)}")
            time.sleep(0.1)


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def end_all():
    """What a job that does not end has left: engines' helpers and ranks, which would hold our pipes."""
    if "FOUR_HOSTS" not in os.environ:
        return  # whose processes they are is known among machines of our own alone
    for pid in os.listdir("/proc"):
        if pid.isdigit() and name_of(pid) in LEFT_BY_JOBS:
            with contextlib.suppress(OSError):
                os.kill(int(pid), signal.SIGKILL)


def work():
    """A folder that all machines see."""
    folder = os.path.join(os.environ.get("FOUR_HOSTS", tempfile.gettempdir()), "work")
    os.makedirs(folder, exist_ok=True)
    return folder


def four_machines(bench):
    if bench.engine == "flux":
        raise Skip("Flux's brokers all run on this one machine")
