#!/usr/bin/env python3
"""make bench-matching: the matching queues of one process that gets messages of 2 to 65,536 virtual
ranks, in all designs, beside the paper's figures 1, 5 to 10 and table 2; and real ranks, beside MPICH
and Open MPI.

Every measurement is written down at once; --resume goes on where a run stopped. --check runs small
cases and judges counts, not times (make test).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

for module in ("matplotlib", "numpy"):
    if importlib.util.find_spec(module) is None:
        print(f"skipped: {sys.executable} has no {module}; `make python` installs it")
        sys.exit(77)

sys.path.append(str(Path(__file__).resolve().parent.parent))

import check  # noqa: E402
import paper  # noqa: E402
import real  # noqa: E402
import report  # noqa: E402
from headway.measure.machine import processor  # noqa: E402
from headway.measure.store import Store as KeptRuns  # noqa: E402

LENGTHS = "1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192,16384,32768,65536"
RANKS = (2, 16, 128, 1024, 8192, 65536)
WILD = ("any-source", "any-tag", "any", "reverse")
KC = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Job:
    name: str  # where the report finds it
    words: tuple[str, ...]

    @property
    def command(self) -> list[str]:
        return list(self.words)


def pattern(name: str, what: str, processes: int, *more: object) -> Job:
    words = ("pattern", what, "--processes", str(processes), *map(str, more))
    return Job(f"{name}/{what}/{processes}", words)


def jobs(quick: bool) -> list[Job]:
    rounds = ("--rounds", 2 if quick else 5)
    out = []
    for program, counts in paper.PROCESSES.items():
        # One list is slow on FDS, and its first step tells as much as many.
        steps = ("--steps", 4 if program == "fds" else 60, "--warmup", 2)
        for n in counts[:1] if quick else counts:
            out.append(pattern("program", program, n, *steps, *rounds))
            if quick:
                continue
            for kc in KC:
                out.append(Job(f"kc/{program}/{n}/{kc}", ("pattern", program, "--processes", str(n), "--kc",
                               str(kc), "--designs", "col+pnp" if program == "fds" else "list,col+pnp",
                               *map(str, steps), *map(str, rounds))))
    out.append(pattern("short", "short", 512, "--steps", 400, "--rounds", 8 if quick else 25))
    for call in ("gather", "allreduce", "iallgather"):
        for n in (1024,) if quick else (1024, 2048, 4096):
            out.append(pattern("call", call, n, "--kc", 1, "--kp", 1, "--steps", 6, "--designs",
                               "list,source,col+pnp,headway", *rounds))
    for what in WILD:
        for n in (128, 8192) if quick else RANKS:
            # One list of 16,384 takes seconds.
            out.append(pattern("wild", what, n, "--steps", max(1, 400 // n), "--warmup", 0, "--rounds", 3))
    lengths = "1,16,1024,16384" if quick else LENGTHS
    for design in paper.DESIGNS:
        for length in lengths.split(","):
            more = ("--rounds", "3" if design != "headway" and int(length) > 4096 else "7")
            out.append(Job(f"length/{design}/{length}", ("length", "--designs", design, "--lengths", length, *more)))
    return out


class Store(KeptRuns):
    """A key is a job; under it stand the lines that its program printed."""

    def __init__(self, path: Path, keep: bool) -> None:
        super().__init__(path, keep)
        self.done = {key: entry["rows"] for key, entry in self.lines.items()}

    def add(self, key: str, entry: list[dict]) -> dict:
        self.done[key] = entry
        return super().add(key, {"rows": entry})


def measure(program: Path, job: Job, before: list[str]) -> list[dict]:
    run = subprocess.run([*before, str(program), *job.command], capture_output=True, text=True, timeout=900)
    if run.returncode != 0:
        raise RuntimeError(f"{job.name}: ended with {run.returncode}: {run.stderr.strip()}")
    return [json.loads(line) for line in run.stdout.splitlines()]


def about() -> dict:
    return {"processor": processor(), "load_before": os.getloadavg()[0], "date": time.strftime("%Y-%m-%d")}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, default=Path("build"), help="build folder of Headway MPI")
    parser.add_argument("--program", type=Path, help="matching_bench; default: that of --build")
    parser.add_argument("--out", type=Path, help="where results go; default BUILD/bench-matching")
    parser.add_argument("--quick", action="store_true", help="few cases, about a minute")
    parser.add_argument("--resume", action="store_true", help="keep what --out holds, measure what is missing")
    parser.add_argument("--again", action="store_true", help="measure nothing, only write the report anew")
    parser.add_argument("--only", default="", help="beginnings of job names, by commas: program/fds,length")
    parser.add_argument("--before", default="", help="put before every measured command")
    parser.add_argument("--check", action="store_true", help="small cases; judge counts, not times")
    parser.add_argument("--list", action="store_true", help="list the jobs and stop")
    arguments = parser.parse_args()
    program = arguments.program or arguments.build / "bench" / "matching_bench"
    if not program.exists() and not arguments.list and not arguments.again:
        print(f"there is no {program}: run make first", file=sys.stderr)
        return 1
    if arguments.check:
        return check.run(program.resolve())
    wanted = [part for part in arguments.only.split(",") if part]
    todo = [j for j in jobs(arguments.quick) if not wanted or any(j.name.startswith(w) for w in wanted)]
    if arguments.list:
        print("\n".join([*(job.name for job in todo), *real.names(arguments.quick)]))
        return 0
    out = (arguments.out or arguments.build / "bench-matching").resolve()
    out.mkdir(parents=True, exist_ok=True)
    machine = about()
    store = Store(out / "runs.sqlite", arguments.resume or arguments.again)
    failed = 0
    for number, job in enumerate([] if arguments.again else todo, 1):
        if job.name in store.done:
            continue
        print(f"[{number}/{len(todo)}] {job.name}", flush=True)
        try:
            store.add(job.name, measure(program.resolve(), job, shlex.split(arguments.before)))
        except (RuntimeError, subprocess.TimeoutExpired) as failure:
            print(f"  no result: {failure}", file=sys.stderr)
            failed += 1
    if not arguments.again:
        failed += real.measure(store, arguments.build.resolve(), out, wanted, arguments.quick)
    report.write(out, store.done, machine)
    print(f"{out / 'matching.md'}, matching.json and pictures beside it")
    return 1 if failed or not store.done else 0


if __name__ == "__main__":
    sys.exit(main())
