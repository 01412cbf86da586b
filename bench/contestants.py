"""Who is measured: Headway, MPICH and Open MPI, some with several configurations, and the limit: what processes
of this machine can do at most by two copies."""

from __future__ import annotations

import shutil
from pathlib import Path

import shared  # noqa: F401
from headway.measure import contestants
from headway.measure.contestants import Contestant, cache

PROGRAMS = ("latency", "bandwidth", "overlap", "progress", "slowdown", "collective", "crowd", "peers", "start")

# Those that the limit's few calls are enough for.
LIMITED = ("latency", "bandwidth", "peers", "collective")
LIMIT = "limit"
HEADERS_OF_LIMIT = Path(__file__).resolve().parent / "limit"


class Limit(Contestant):
    """No MPI: bench/limit/mpi.h stands in, and its process makes the other ones by itself."""

    def local_command(self, ranks: int, program: Path, arguments: list[str]) -> list[str]:
        return [str(program), *arguments, "--limit-ranks", str(ranks)]


def limit() -> Contestant:
    compiler = Path(shutil.which("cc") or "cc")
    return Limit(LIMIT, "limit", LIMIT, compiler, compiler, compiler_options=(f"-I{HEADERS_OF_LIMIT}",))


def programs_of(contestant: Contestant) -> tuple[str, ...]:
    return LIMITED if contestant.name == LIMIT else PROGRAMS


def all_contestants(build: Path) -> dict[str, Contestant]:
    ours, mpich, openmpi = build / "bin", cache() / "mpich", cache() / "openmpi"
    entries = [
        contestants.headway(ours),
        contestants.headway(ours, name="headway-off", label="Headway, progress off",
                            environment={"HEADWAY_PROGRESS": "off"}),
        contestants.mpich(mpich, peer=True),
        contestants.mpich(mpich, name="mpich-async", label="MPICH, async thread",
                          environment={"MPIR_CVAR_ASYNC_PROGRESS": "1"}),
        contestants.openmpi(openmpi, peer=True),
        limit(),
    ]
    return {c.name: c for c in entries}
