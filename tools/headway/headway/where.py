"""`headway where`: where the ranks of a running job stand, and who waits for whom. Asks the job's mpiexec, or looks at
the ranks of a recording that is being made (record/looks.py); neither these nor mpiexec stop for it. Standard library
only, but for the lines of calls, which need pyelftools.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import sys
import time
from pathlib import Path

MOST_LINES = 20
NAME = re.compile(r"@headway-mpiexec-(\d+)$", re.M)
PATIENCE = 5.0  # seconds for an answer
RUN = re.compile(r"headway-run-(\d+)")
BAD_LINE, NOTHING_RECORDED = 2, 4


class Unknown(Exception):
    """There is no such job, in a sentence; a bad line."""


def jobs(everyone: bool = False) -> list[int]:
    """mpiexec's processes of this user, or of everyone; the oldest first."""
    try:
        found = {int(pid) for pid in NAME.findall(Path("/proc/net/unix").read_text())}
    except OSError:
        return []
    return sorted(pid for pid in found if (owner := owner_of(pid)) is not None and (everyone or owner == os.geteuid()))


def owner_of(pid: int) -> int | None:
    """None: there is no such process."""
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None


def ask(pid: int) -> dict:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
        asked.settimeout(PATIENCE)
        told = b""
        try:
            asked.connect(f"\0headway-mpiexec-{pid}")
            told, files, _, _ = socket.recv_fds(asked, 1, 1)
            if files:
                with open(files[0], "rb") as answer:
                    answer.seek(0)
                    told = answer.read()
            elif told:  # there was no memory for it
                told += b"".join(iter(lambda: asked.recv(1 << 16), b""))
            return json.loads(told.decode("utf-8", "surrogateescape"))
        except (OSError, ValueError) as problem:
            reason = str(problem)
            if isinstance(problem, ValueError):
                reason = "its answer was cut" if told else "it belongs to another user, or has just ended"
            raise Unknown(f"mpiexec {pid} does not answer: {reason}") from None


def numbers(ranks: list[int]) -> str:
    """0-3, 7"""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)


def who(ranks: list[int]) -> str:
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {numbers(ranks)}"


def awaited(group: dict) -> str:
    if not group["waits_for"]:
        return ""
    many = len(group["waits_for"])
    whom = f"any of {many} ranks" if group["any"] and many > 1 else who(group["waits_for"])
    return f"{'waits' if len(group['ranks']) == 1 else 'wait'} for {whom}"


def name_calls(told: dict) -> None:
    """Writes behind each place where in the program its call stands: a line, where one can be told."""
    wanted: dict[str, set[int]] = {}
    for group in told["groups"]:
        if "module" in group:
            wanted.setdefault(group["module"], set()).add(group["offset"])
    known = {module: names_of(module, sorted(offsets)) for module, offsets in wanted.items()}
    for group in told["groups"]:
        if "module" in group:
            group["place"] += f" at {known[group['module']][group['offset']]}"
        elif "line" in group:
            group["place"] += f" at {group['line']}"


def names_of(module: str, offsets: list[int]) -> dict[int, str]:
    file = module.rsplit("/", 1)[-1]
    names = {offset: f"{file}+0x{offset:x}" for offset in offsets}
    try:
        from .record import lines as debug

        found, _ = debug.of_module(module, offsets)
    except ImportError:
        return names
    for offset, place in found.items():
        if place.file:
            names[offset] = f"{place.file.rsplit('/', 1)[-1]}:{place.line}"
        elif place.function:
            names[offset] = f"{place.function} ({names[offset]})"
    return names


def lines(told: dict, head: str) -> list[str]:
    """At most MOST_LINES: those that can never go on first, then the largest groups."""
    groups = sorted(told["groups"], key=lambda g: (not g["dead"], -len(g["ranks"])))
    notes = told.get("notes", [])
    likely = told.get("likely", False)
    room = MOST_LINES - 2 - bool(told["hangs"] or likely) - len(notes)
    shown, rest = (groups, []) if len(groups) <= room else (groups[: room - 1], groups[room - 1 :])
    cells = [(who(g["ranks"]), g["place"], awaited(g)) for g in shown]
    wide = [min(most, max((len(c[i]) for c in cells), default=0)) for i, most in ((0, 40), (1, 60))]
    out = [head, *(f"{a:<{wide[0]}}  {b:<{wide[1]}}  {c}".rstrip() for a, b, c in cells)]
    if rest:
        out.append(f"and {sum(len(g['ranks']) for g in rest)} ranks at {len(rest)} other places")
    if told["hangs"]:
        out.append(f"The job hangs{told['verdict'].strip()}")
    elif likely:
        out.append(f"The job hangs, likely, which is not proven{told['verdict'].strip()}")
    return out + notes


def about(pid: int) -> str:
    """mpiexec's own line, and how long it runs."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
        line = " ".join(w.decode(errors="replace") for w in words)
        began = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]) / 100
        up = float(Path("/proc/uptime").read_text().split()[0])
        return f"mpiexec {pid}, for {time.strftime('%H:%M:%S', time.gmtime(max(0, up - began)))}: {line[:120]}"
    except (OSError, ValueError, IndexError):
        return f"mpiexec {pid}"


def choose(pid: int | None) -> int:
    running = jobs(pid is not None)
    if pid is None:
        if not running:
            others = ", ".join(map(str, jobs(True)))
            told = f"; other users' jobs are asked by name: {others}" if others else ""
            none = "no job of yours runs here under Headway's mpiexec, and no recording is being made in this folder"
            away = "; ranks on several machines are seen, on each of them, where headway record stands before their program"
            raise Unknown(f"{none}{told}{away}")
        if len(running) > 1:
            raise Unknown(f"several jobs run here: name one: {', '.join(map(str, running))} (processes of mpiexec)")
        return running[0]
    if pid not in running:
        there = f"; there are {', '.join(map(str, running))}" if running else "; none runs here"
        raise Unknown(f"{pid} is no mpiexec of Headway{there}")
    return pid


def latest_recording() -> Path | None:
    """Of this folder: headway-run-N."""
    found = [(int(m[1]), path) for path in Path().iterdir() if (m := RUN.fullmatch(path.name)) and path.is_dir()]
    return max(found)[1] if found else None


def look(named: str | None) -> tuple[dict, str]:
    """What is told of that job or recording, and a line about it."""
    folder = Path(named) if named is not None and not named.isdigit() else None
    if named is not None and named.isdigit() and int(named) not in jobs(everyone=True) and Path(named).is_dir():
        folder = Path(named)
    if named is None and not jobs():
        folder = latest_recording()
    if folder is None:
        pid = choose(int(named) if named is not None else None)
        return ask(pid), about(pid)
    if not folder.exists():
        raise Unknown(f"{folder} is neither a folder of headway record nor the process id of an mpiexec")
    from .record import looks

    told = looks.look(folder)
    return told, told.pop("head")


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="headway where",
        description="Where do the ranks of a running job stand, and who waits for whom? Nothing is stopped for it. Of a "
        "job of Headway's mpiexec, or of any MPI's that runs under headway record: then RUN is the folder of the recording.",
        epilog="Exit codes: 2 for a line that is wrong or a job that is not there, 4 for a folder with nothing to look at.",
    )
    parser.add_argument(
        "job", nargs="?", metavar="JOB | RUN",
        help="process id of its mpiexec, or folder of its recording. Default: your only job here, or the latest recording",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="the same for programs, version 1")
    return parser


def main(words: list[str]) -> int:
    options = make_parser().parse_args(words)
    from .record.now import Unusable

    try:
        told, head = look(options.job)
    except (Unknown, Unusable) as problem:
        print(f"headway where: {problem}", file=sys.stderr)
        return BAD_LINE if isinstance(problem, Unknown) else NOTHING_RECORDED
    if options.json:
        print(json.dumps(told, indent=1))
    else:
        name_calls(told)
        print("\n".join(lines(told, head)))
    return 0
