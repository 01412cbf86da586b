"""What `headway` alone prints, its version, and where its parts lie. Standard library only."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

USAGE = "usage: headway COMMAND [OPTIONS]"
# By question, six lines with the last one (held by a test).
LINES = (
    ("headway cluster up", "make hosts on this machine, joined by links of a true rate (root)"),
    ("headway cluster check", "are messages on them as slow as the wire would be?"),
    ("headway cluster run", "run a program of Headway, MPICH or Open MPI on them: was the run true?"),
    ("headway cluster status", "which clusters are up?"),
    ("headway cluster down", "remove one, and put this machine's settings back"),
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
