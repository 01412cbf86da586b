"""Who is measured: Headway, MPICH and Open MPI, some with several configurations."""

from __future__ import annotations

from pathlib import Path

import shared  # noqa: F401
from headway.measure import contestants
from headway.measure.contestants import Contestant, cache

PROGRAMS = ("latency", "bandwidth", "overlap", "progress", "slowdown", "collective", "crowd", "start")


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
    ]
    return {c.name: c for c in entries}
