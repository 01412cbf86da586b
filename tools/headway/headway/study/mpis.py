"""Which MPIs a study is about: those found, or those named.

Found are ours (beside the command), the peers that scripts/peers.sh installs, and the one whose mpicc is
first on the path. MPICH with both network modules is two contestants: they behave differently.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

from headway.measure import contestants
from headway.measure.contestants import Contestant, cache, clean_environment
from headway.measure.processes import execute
from headway.shown import BadLine


NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
LABELS = {"headway": "Headway", "mpich": "MPICH", "openmpi": "Open MPI", "intel": "Intel MPI"}


def ours() -> Contestant:
    """Beside the wrapper that started us, or in the source tree's build folder."""
    compiler, launcher = os.environ.get("CLUSTER_MPICC"), os.environ.get("CLUSTER_MPIEXEC")
    tree = Path(__file__).resolve().parents[4] / "build" / "bin"
    found = contestants.headway(tree)
    if compiler and launcher:
        found = replace(found, compiler=Path(compiler), launcher=Path(launcher))
    return found


def kind_of(prefix: Path) -> str:
    """By what its launcher says of itself."""
    for name in ("mpiexec", "mpirun"):
        launcher = prefix / "bin" / name
        if launcher.exists():
            done = execute([str(launcher), "--version"], clean_environment() | contestants.AS_ROOT, 20)
            text = done.out + done.err
            for kind, mark in (
                ("intel", r"Intel\(R\) MPI"),
                ("headway", "Headway"),
                ("openmpi", r"Open ?MPI|Open MPI|PRTE|prterun"),
                ("mpich", "HYDRA|MPICH|mpiexec.gforker"),
            ):
                if re.search(mark, text, re.IGNORECASE if kind == "openmpi" else 0):
                    return kind
    return ""


def network_modules(prefix: Path) -> list[str]:
    """Of MPICH: ofi and ucx, if it was built with both."""
    tool = prefix / "bin" / "mpichversion"
    done = execute([str(tool)], clean_environment(), 20) if tool.exists() else None
    found = re.search(r"Device:\s*ch4:(\S+(?: \S+)*)", done.out) if done else None
    modules = sorted(re.split(r"[ ,]+", found[1])) if found else []
    return modules if len(modules) > 1 else []


def of_prefix(name: str, label: str, kind: str, prefix: Path, environment: dict[str, str]) -> list[Contestant]:
    if kind == "headway":
        return [contestants.headway(prefix / "bin", name=name, label=label, environment=environment)]
    if kind == "openmpi":
        return [contestants.openmpi(prefix, name=name, label=label, environment=contestants.AS_ROOT | environment)]
    if kind == "intel":
        # Its wrappers do not know where they lie, nor its library where its libfabric does, without which there is no
        # way to another host; and it binds ranks unless it is told not to.
        there = {"I_MPI_ROOT": str(prefix), "LD_LIBRARY_PATH": str(prefix / "lib"), "I_MPI_PIN": "off"}
        environment = there | environment
    modules = [] if "MPIR_CVAR_CH4_NETMOD" in environment else network_modules(prefix) if kind == "mpich" else []
    if not modules:
        return [contestants.mpich(prefix, name=name, label=label, environment=environment)]
    return [
        contestants.mpich(
            prefix, name=f"{name}-{m}", label=f"{label} {m}", environment=environment | {"MPIR_CVAR_CH4_NETMOD": m}
        )
        for m in modules
    ]


def on_the_path(known: list[Contestant]) -> list[Contestant]:
    compiler = shutil.which("mpicc")
    if not compiler or Path(compiler).resolve() in {c.compiler.resolve() for c in known}:
        return []
    prefix = Path(compiler).parent.parent
    kind = kind_of(prefix)
    if not kind or prefix.resolve() in {c.compiler.parent.parent.resolve() for c in known}:
        return []
    taken = {c.library for c in known} if kind != "intel" else set()
    name = f"{kind}-path" if kind in taken else kind
    label = f"{LABELS[kind]} (path)" if kind in taken else LABELS[kind]
    return of_prefix(name, label, kind, prefix, {})


def found() -> list[Contestant]:
    every = [c for c in [ours()] if not c.missing()]
    for kind, folder in (("mpich", "mpich"), ("openmpi", "openmpi"), ("intel", "impi")):
        prefix = cache() / folder
        if (prefix / "bin" / "mpicc").exists():
            every += of_prefix(kind, LABELS[kind], kind, prefix, {})
    return every + on_the_path(every)


def named(text: str, known: dict[str, Contestant]) -> list[Contestant]:
    """NAME of one that was found (mpich: all its modules), or NAME=PREFIX[,VARIABLE=VALUE]..."""
    name, has_prefix, rest = text.partition("=")
    if not NAME.fullmatch(name):
        raise BadLine(f"--mpi {text}: a name is made of letters, digits and . _ + -")
    if not has_prefix:
        chosen = [c for c in known.values() if c.name == name or c.name.startswith(f"{name}-")]
        if not chosen:
            raise BadLine(
                f"--mpi {name}: no such MPI was found; there are {', '.join(known) or 'none'}. Another one: "
                f"--mpi {name}=PREFIX, where PREFIX/bin/mpicc is"
            )
        return chosen
    folder, *settings = rest.split(",")
    prefix = Path(folder).expanduser().resolve()
    if not (prefix / "bin" / "mpicc").exists():
        raise BadLine(f"--mpi {text}: there is no {prefix}/bin/mpicc")
    environment = {}
    for setting in settings:
        variable, equals, value = setting.partition("=")
        if not equals or not variable:
            raise BadLine(f"--mpi {text}: '{setting}' is no VARIABLE=VALUE")
        environment[variable] = value
    kind = kind_of(prefix)
    if not kind:
        raise BadLine(f"--mpi {text}: {prefix}/bin has no mpiexec of Headway, MPICH, Open MPI or Intel MPI")
    return of_prefix(name, name, kind, prefix, environment)


def choose(asked: list[str]) -> list[Contestant]:
    """Those asked for, or all that were found. Two of one name are a bad line."""
    known = found()
    chosen = [c for text in asked for c in named(text, {k.name: k for k in known})] if asked else known
    names = [c.name for c in chosen]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise BadLine(f"two MPIs are called {twice[0]}: give each a name of its own, as in --mpi {twice[0]}2=PREFIX")
    return chosen
