"""The C programs: plain MPI, compiled by each contestant's own wrapper, so that nothing but the library
differs; and the lines of JSON that they print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Iterable

from .contestants import Contestant
from .processes import execute

FOLDER = Path(__file__).resolve().parents[1] / "programs"  # common.h and what studies and benchmarks share
MARK = "@@"


def parse_lines(text: str) -> list[dict]:
    """Result lines of a program; launchers may put a tag before them."""
    found = []
    for line in text.splitlines():
        at = line.find(MARK + "{")
        if at < 0:
            continue
        try:
            found.append(json.loads(line[at + len(MARK) :]))
        except json.JSONDecodeError:
            continue
    return found


def source_of(name: str, folders: Iterable[Path]) -> Path:
    for folder in folders:
        if (folder / f"{name}.c").exists():
            return folder / f"{name}.c"
    raise FileNotFoundError(f"there is no {name}.c in {', '.join(map(str, folders))}")


def compile_program(contestant: Contestant, sources: list[Path], program: Path, flags: Iterable[str] = ()) -> str:
    """Compiles what is older than its sources, headers or compiler. Returns what went wrong, or ""."""
    named = {Path(o.removeprefix("-I")) for o in contestant.compiler_options if o.startswith("-I")}
    headers = [h for folder in {FOLDER, *(s.parent for s in sources), *named} for h in folder.glob("*.h")]
    inputs = [*sources, *headers, contestant.compiler.resolve()]
    if program.exists() and program.stat().st_mtime > max(i.stat().st_mtime for i in inputs):
        return ""
    program.parent.mkdir(parents=True, exist_ok=True)
    command = [
        str(contestant.compiler),
        "-std=gnu11",
        "-O2",
        *contestant.compiler_options,
        f"-I{FOLDER}",
        *flags,
        *map(str, sources),
        "-o",
        str(program),
        "-lm",
    ]
    failure = execute(command, contestant.full_environment(), 120).failure
    return f"{sources[0].name} does not compile: {failure}" if failure else ""


def compile_programs(contestant: Contestant, names: Iterable[str], folders: list[Path], out: Path) -> str:
    for name in names:
        problem = compile_program(contestant, [source_of(name, folders)], out / name)
        if problem:
            return problem
    return ""
