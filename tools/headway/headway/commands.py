"""What `headway` alone prints, its version, and where its parts lie. Standard library only."""

from __future__ import annotations

import difflib
import importlib.util
import os
import sys
from pathlib import Path

USAGE = "usage: headway COMMAND [OPTIONS]"
# By question, six lines (held by a test).
LINES = (
    ("headway record PROGRAM", "record a program of any MPI: mpirun -n 4 headway record ./prog"),
    ("headway trace RUN", "what did that run do? its time line, its messages, its longest calls"),
    ("headway advise RUN", "what to change, and what does it give? compare RUN RUN: did it help?"),
    ("headway where", "where does my running job stand, and who waits for whom?"),
    ("headway study", "what overlaps, what blocks in my MPIs, and what to do? study compare"),
    ("headway cluster up", "make hosts on this machine, joined by links of a true rate (root)"),
)
LAST = ("headway COMMAND --help", "all options of a command; headway --version")


def overview(whole: bool = False) -> str:
    """`whole`: and how to go on."""
    lines = (*LINES, LAST) if whole else LINES
    wide = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:<{wide}}  {text}" for name, text in lines)


def version() -> str:
    return os.environ.get("CLUSTER_VERSION", "of the source tree")


def unknown(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, 1)
    meant = f"; did you mean '{near[0]}'?" if near else f": there are {', '.join(sorted(known))}"
    return f"no command '{word}'{meant}"


def cluster_folder() -> Path:
    """Two floors up in the source tree and in an installation alike."""
    return Path(__file__).resolve().parents[2] / "cluster"


def script() -> Path:
    """`headway` itself, beside mpiexec: that tells where, or the source tree's build."""
    launcher = os.environ.get("CLUSTER_MPIEXEC", "")
    if not launcher:
        return Path(__file__).resolve().parents[3] / "build" / "bin" / "headway"
    return Path(launcher).with_name(Path(launcher).name.replace("mpiexec", "headway"))


def missing_packages(*names: str) -> str:
    """What a command (a study, without names) needs and this Python has not; empty if nothing."""
    wanted = names or ("typer", "rich", "numpy", "matplotlib")
    missing = [name for name in wanted if importlib.util.find_spec(name) is None]
    if not missing:
        return ""
    return (
        f"{sys.executable} has no {', '.join(missing)}. {sys.executable} -m pip install {' '.join(missing)} brings "
        "them, in the source tree `make python` does; or name another Python in HEADWAY_PYTHON"
    )
