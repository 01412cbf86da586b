"""Who is measured: how each MPI is compiled for, started, and configured.

A contestant that is not there is not an error: `missing()` says why, and the run goes on without it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

# No option of the user's shell may reach one contestant and not the others.
OPTIONS_OF_LIBRARIES = ("HEADWAY_", "MPIR_", "MPICH_", "OMPI_", "PRTE_", "PMIX_", "PMI_", "UCX_", "FI_", "I_MPI_")
KEPT = ("HEADWAY_CACHE", "HEADWAY_PYTHON")
# The programs pin themselves, alike for all, so every launcher is told to leave that alone.
UNBOUND = ("--bind-to", "none")
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def cache() -> Path:
    """Where scripts/python-env.sh and scripts/peers.sh put what they install."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(os.environ.get("HEADWAY_CACHE") or Path(root) / "headway")


def clean_environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith(OPTIONS_OF_LIBRARIES) or k in KEPT}


@dataclass
class Contestant:
    """One library with one configuration."""

    name: str  # as in the result file
    label: str  # as in tables and plots
    library: str  # headway, mpich or openmpi: whose launcher it understands, and mode of the cluster
    compiler: Path
    launcher: Path
    launcher_options: tuple[str, ...] = ()
    compiler_options: tuple[str, ...] = ()
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
        return clean_environment() | self.environment


def headway(bin_folder: Path, suffix: str = "", **more) -> Contestant:
    given = {"name": "headway", "label": "Headway"} | more
    return Contestant(
        library="headway",
        compiler=bin_folder / f"mpicc{suffix}",
        launcher=bin_folder / f"mpiexec{suffix}",
        launcher_options=UNBOUND,
        **given,
    )


def mpich(prefix: Path, **more) -> Contestant:
    given = {"name": "mpich", "label": "MPICH"} | more
    return Contestant(
        library="mpich", compiler=prefix / "bin" / "mpicc", launcher=prefix / "bin" / "mpiexec", **given
    )


def openmpi(prefix: Path, **more) -> Contestant:
    given = {"name": "openmpi", "label": "Open MPI", "environment": dict(AS_ROOT)} | more
    return Contestant(
        library="openmpi",
        compiler=prefix / "bin" / "mpicc",
        launcher=prefix / "bin" / "mpiexec",
        launcher_options=(*UNBOUND, "--map-by", ":OVERSUBSCRIBE"),
        **given,
    )
