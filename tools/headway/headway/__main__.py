"""`headway COMMAND ...`: says what each command is for, and starts it.

Needs Python's standard library alone, so that `headway cluster` works on a bare machine; a command
that needs more (typer, rich, numpy, matplotlib) says so by itself.
"""

from __future__ import annotations

import importlib
import os
import runpy
import sys
from pathlib import Path
from typing import Callable

PACKAGE = Path(__file__).resolve().parent
sys.path[0] = str(PACKAGE.parent)  # started as a folder: the package's modules are not to be top-level

from headway import commands  # noqa: E402


def cluster(words: list[str]) -> int:
    folder = commands.cluster_folder()
    os.environ.setdefault("CLUSTER_NAME", "headway cluster")
    sys.path[0] = str(folder)
    sys.argv = ["headway cluster", *words]
    runpy.run_path(str(folder / "cluster.py"), run_name="__main__")
    return 0


def tool(name: str, module: str, *packages: str) -> Callable[[list[str]], int]:
    """A command in a module of its own, which needs these packages (a study's, without names)."""

    def start(words: list[str]) -> int:
        missing = commands.missing_packages(*packages)
        if missing:
            print(f"headway {name}: {missing}", file=sys.stderr)
            return 1
        return importlib.import_module(f"headway.{module}").main(words)

    return start


def where(words: list[str]) -> int:
    from headway import where as command

    return command.main(words)


OF_RECORDINGS = ("typer", "rich", "numpy")
STARTS = {
    "trace": tool("trace", "record.command", *OF_RECORDINGS),
    "advise": tool("advise", "record.advise_command", *OF_RECORDINGS),
    "compare": tool("compare", "record.compare_command", *OF_RECORDINGS),
    "where": where,
    "study": tool("study", "study.command"),
    "cluster": cluster,
}
SCRIPTS = ("record",)  # the script in front of this starts it without Python


def main(words: list[str]) -> int:
    if not words:
        print(commands.overview())
        return 0
    if words[0] in ("-h", "--help", "help"):
        print(f"{commands.USAGE}\n\n{commands.overview(whole=True)}")
        return 0
    if words[0] == "--version":
        print(f"headway (Headway MPI) {commands.version()}")
        return 0
    start = STARTS.get(words[0])
    if start is None:
        print(f"headway: {commands.unknown(words[0], [*STARTS, *SCRIPTS])}", file=sys.stderr)
        return 2
    return start(words[1:])


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BrokenPipeError:  # of `headway | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(1)
