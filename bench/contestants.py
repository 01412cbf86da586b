"""Who is measured: how each one is compiled for, started, and configured.

A contestant that is not there is not an error: `missing()` says why, and the run goes on without
it. Every start goes through `execute()`, which ends the whole process group at the time limit.
"""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = ("latency", "bandwidth", "overlap", "progress", "slowdown", "collective", "crowd", "start")


@dataclass
class Contestant:
    """One library with one configuration."""

    name: str  # as in the result file
    label: str  # as in tables and plots
    library: str  # headway, mpich or openmpi: whose compiler, launcher and cluster mode
    compiler: Path
    launcher: Path
    launcher_options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    peer: bool = False  # counts when "the best peer" is looked for

    def missing(self) -> str:
        for path in (self.compiler, self.launcher):
            if not path.exists():
                return f"{path} does not exist"
        return ""

    def local_command(self, ranks: int, program: Path, arguments: list[str]) -> list[str]:
        return [str(self.launcher), *self.launcher_options, "-n", str(ranks), str(program), *arguments]

    def full_environment(self) -> dict[str, str]:
        # No option of the user's shell may reach one contestant and not the others.
        drop = ("HEADWAY_", "MPIR_", "MPICH_", "OMPI_", "PRTE_", "PMIX_", "PMI_", "UCX_")
        keep = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(drop) or k in ("HEADWAY_CACHE",)
        }
        return keep | self.environment


def all_contestants(build: Path) -> dict[str, Contestant]:
    cache_root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    cache = Path(os.environ.get("HEADWAY_CACHE") or Path(cache_root) / "headway")
    mpich, openmpi = cache / "mpich" / "bin", cache / "openmpi" / "bin"
    ours = {"compiler": build / "bin" / "mpicc", "launcher": build / "bin" / "mpiexec"}
    # The programs pin themselves, alike for all, so every launcher is told to leave that alone.
    unbound = ("--bind-to", "none")
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    entries = [
        Contestant("headway", "Headway", "headway", **ours, launcher_options=unbound),
        Contestant(
            "headway-off",
            "Headway, progress off",
            "headway",
            **ours,
            launcher_options=unbound,
            environment={"HEADWAY_PROGRESS": "off"},
        ),
        Contestant("mpich", "MPICH", "mpich", mpich / "mpicc", mpich / "mpiexec", peer=True),
        Contestant(
            "mpich-async",
            "MPICH, async thread",
            "mpich",
            mpich / "mpicc",
            mpich / "mpiexec",
            environment={"MPIR_CVAR_ASYNC_PROGRESS": "1"},
        ),
        Contestant(
            "openmpi",
            "Open MPI",
            "openmpi",
            openmpi / "mpicc",
            openmpi / "mpiexec",
            launcher_options=(*unbound, "--map-by", ":OVERSUBSCRIBE"),
            environment=root,
            peer=True,
        ),
    ]
    return {c.name: c for c in entries}


@dataclass
class Outcome:
    """How one start ended."""

    code: int
    out: str
    err: str
    timed_out: bool = False

    @property
    def failure(self) -> str:
        if self.timed_out:
            return "ended at its time limit"
        if self.code != 0:
            tail = " | ".join((self.err.strip() or self.out.strip()).splitlines()[-3:])
            return f"exit code {self.code}: {tail[-400:]}"
        return ""


def end_group(process: subprocess.Popen) -> None:
    """TERM lets a launcher end its ranks on other hosts; KILL follows."""
    for sign, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        try:
            os.killpg(process.pid, sign)
            process.wait(patience)
            return
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def execute(command: list[str], environment: dict[str, str], seconds: float) -> Outcome:
    try:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as problem:
        return Outcome(127, "", f"cannot start {command[0]}: {problem}")
    try:
        out, err = process.communicate(timeout=seconds)
        return Outcome(process.returncode, out, err)
    except subprocess.TimeoutExpired:
        end_group(process)
        try:
            out, err = process.communicate(timeout=5)
        except subprocess.TimeoutExpired:  # a lost grandchild still holds the pipe
            out, err = "", ""
        return Outcome(-1, out or "", err or "", timed_out=True)
    except BaseException:
        end_group(process)
        raise


def compile_programs(contestant: Contestant, sources: Path, folder: Path) -> str:
    """Compiles what is older than its sources. Returns what went wrong, or an empty text."""
    folder.mkdir(parents=True, exist_ok=True)
    newest_input = max(
        (sources / "common.h").stat().st_mtime, contestant.compiler.resolve().stat().st_mtime
    )
    for name in PROGRAMS:
        source, program = sources / f"{name}.c", folder / name
        newest = max(newest_input, source.stat().st_mtime)
        if program.exists() and program.stat().st_mtime > newest:
            continue
        command = [str(contestant.compiler), "-std=gnu11", "-O2", str(source), "-o", str(program)]
        done = execute(command, contestant.full_environment(), 120)
        if done.failure:
            return f"{name}.c does not compile: {done.failure}"
    return ""
