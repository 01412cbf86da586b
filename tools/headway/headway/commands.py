"""What `headway` alone prints, its version, and where its parts lie. Standard library only."""

from __future__ import annotations

import difflib
import importlib.util
import os
import sys
from pathlib import Path

USAGE = "usage: headway COMMAND [OPTIONS]"
# By question, six lines with the last one (held by a test).
LINES = (
    ("headway study", "what overlaps, what blocks in my MPIs, and what should my program do?"),
    ("headway study compare A B", "what differs between two studies?"),
    ("headway study export S FILE", "every sample of a study, as CSV or Parquet"),
    ("headway cluster up", "make hosts on this machine, joined by links of a true rate (root)"),
    ("headway cluster run", "run a program of any MPI on them: was the run true?"),
)
LAST = ("headway COMMAND --help", "all options of a command; headway --version")


def overview() -> str:
    lines = (*LINES, LAST)
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


def missing_packages() -> str:
    """What a study needs and this Python has not; empty if nothing."""
    missing = [name for name in ("typer", "rich", "numpy", "matplotlib") if importlib.util.find_spec(name) is None]
    if not missing:
        return ""
    return (
        f"{sys.executable} has no {', '.join(missing)}. {sys.executable} -m pip install {' '.join(missing)} brings "
        "them, in the source tree `make python` does; or name another Python in HEADWAY_PYTHON"
    )
