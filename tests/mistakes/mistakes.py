"""Runs the mistakes of table.py and makes what they print the same everywhere: hosts, processes,
folders."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))
from harness import job, library  # noqa: E402
from table import ALL, SECTIONS, Mistake  # noqa: E402, F401

LIMIT = 30.0


class Wrong(Exception):
    """A mistake did not print or return what it must."""


def source(mistake: Mistake) -> str:
    """The wrong lines of its program, or "" if it is a command."""
    path = HERE / "programs" / f"{mistake.name}.c"
    if not path.exists():
        return ""
    found = re.search(r"/\* mistake \*/\n(.*?) */\* end \*/\n", path.read_text(), re.DOTALL)
    if not found:
        raise Wrong(f"{path.name} has no lines between 'mistake' and 'end'")
    lines = found.group(1).splitlines()
    return "\n".join(line.removeprefix("  ") for line in lines)


def steady(text: str, folder: str) -> str:
    """What does not depend on where and when it ran."""
    host = os.uname().nodename
    text = text.replace(folder, "/tmp/run")
    text = re.sub(rf"\b{re.escape(host)}\b", "laptop", text)
    text = re.sub(r"process \d+ on", "process 4711 on", text)
    text = re.sub(r"for \d+\.\d s\.", "for 0.5 s.", text)
    text = re.sub(r"\d+ times in this time", "1000000 times in this time", text)
    text = re.sub(r"\b(core dumped)", r"\1", text).replace(", core dumped", "")
    # A rank that ends says its line through mpiexec, which may tell of the end before it.
    lines = text.splitlines(keepends=True)
    return "".join(sorted(lines, key=lambda line: line.startswith("mpiexec:")))


def run(mistake: Mistake, mpi: library.Headway) -> str:
    """What it prints, made steady. Raises Wrong."""
    programs = mpi.build / "tests" / "mistakes"
    with tempfile.TemporaryDirectory(prefix="headway-mistake-") as folder:
        environment = {**mpi.environment(), **dict(mistake.environment), "DIR": folder,
                       "PATH": f"{mpi.build / 'bin'}:{mistake.path or os.environ['PATH']}", "LC_ALL": "C"}
        for name in ("NO_COLOR", "MPIEXEC_TIMEOUT", "TERM"):
            environment.pop(name, None)
        if mistake.before:
            subprocess.run(["sh", "-c", mistake.before], env=environment, check=True, timeout=10)
        done = job.run(["/bin/sh", "-c", f"cd '{programs}' && ulimit -c 0 && {mistake.line}"], environment,
                       LIMIT, mistake.program or mistake.name)
        text = steady(done.output, folder)
    problems = []
    if done.code != mistake.code:
        problems.append(f"exit code {done.code}, expected {mistake.code}")
    if done.left_behind:
        problems.append(f"left behind: {', '.join(done.left_behind)}")
    for pattern in mistake.says:
        if not re.search(pattern, text, re.MULTILINE):
            problems.append(f"it does not say '{pattern}'")
    if problems:
        raise Wrong(f"{mistake.name}: {'; '.join(problems)}\n{text}{done.story}")
    return text
