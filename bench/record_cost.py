#!/usr/bin/env python3
"""What `headway record` costs: a program that calls MPI as often as it can, and one with 100,000 calls a second, in
pairs without and with a recording, for each MPI that is there. Asked: at most 30 ns a call (120 with lines of
Python), and the upper end of the 95 % interval of the cost at 100,000 calls a second at most 1 %. Exit code 1 where
something is missed."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools" / "headway"))
from headway.measure.contestants import Contestant, cache, headway, mpich, openmpi  # noqa: E402
from headway.measure.programs import compile_program, parse_lines  # noqa: E402

OFTEN, RATE, OF_PYTHON = "as often as it can", "100,000 calls a second", "Python, as often as it can"
RATE_OF_PYTHON = "Python, 100,000 calls a second"
MOST_NS = {OFTEN: 30.0, OF_PYTHON: 120.0}  # a call
MOST_SHARE = 0.01

# The same as record_cost.c.
PYTHON = """
import sys
import time
from mpi4py import MPI

told = dict(zip(sys.argv[1::2], map(int, sys.argv[2::2])))
rounds, rate, steps = told["--rounds"], told.get("--rate", 0), told.get("--steps", 0)


def work(steps):
    x = 1.0
    for _ in range(steps):
        x = x * 1.0000001 + 1e-9
    return x


def talk(rounds):
    comm, out, into = MPI.COMM_SELF, bytearray(8), bytearray(8)
    begin = time.perf_counter()
    for _ in range(rounds):
        a = comm.Irecv(into, 0, 1)
        b = comm.Isend(out, 0, 1)
        MPI.Request.Waitall([a, b])
        if steps:
            work(steps)
    return time.perf_counter() - begin


if rate and not steps:  # asked how many steps make that rate: with what the calls take, which is much of it
    spare = 3 / rate - min(talk(1000) for _ in range(10)) / 1000
    begin = time.perf_counter()
    work(1000000)
    steps = max(1, int(1000000 / (time.perf_counter() - begin) * spare))
talk(rounds // 10)
took = talk(rounds)
print('@@{"measure":"record_cost","calls":%d,"seconds":%.9f,"steps":%d}' % (3 * rounds, took, steps))
"""


def python_of(contestant: Contestant, build: Path) -> str:
    """One whose mpi4py runs on ours: this one, or that which scripts/mpi4py.sh has made; empty: there is none."""
    script = [str(ROOT / "scripts" / "mpi4py.sh"), "--if-built", str(build)]
    made = subprocess.run(script, check=False, capture_output=True, text=True).stdout.strip()
    for python in (sys.executable, *([str(Path(made) / "venv" / "bin" / "python")] if made else [])):
        probe = [str(contestant.launcher), "-n", "1", python, "-c", "from mpi4py import MPI"]
        if subprocess.run(probe, check=False, capture_output=True, env=contestant.full_environment()).returncode == 0:
            return python
    return ""


def run(contestant: Contestant, words: list[str], recorder: Path | None, folder: Path) -> dict:
    before = [str(recorder), "record", "--out", str(folder / "run")] if recorder else []
    command = [str(contestant.launcher), *contestant.launcher_options, "-n", "1", *before, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=contestant.full_environment())
    shutil.rmtree(folder / "run", ignore_errors=True)
    rows = parse_lines(done.stdout)
    if done.returncode or not rows:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return rows[0]


def interval(values: np.ndarray) -> tuple[float, float, float]:
    """Median, and 95 % by drawing again."""
    draws = np.random.default_rng(1).choice(values, (4000, len(values)))
    low, high = np.quantile(np.median(draws, axis=1), (0.025, 0.975))
    return float(np.median(values)), float(low), float(high)


def pairs(contestant: Contestant, words: list[str], recorder: Path, folder: Path, count: int) -> tuple[np.ndarray, np.ndarray]:
    off, on = [], []
    for i in range(count):
        sides = ((off, None), (on, recorder))
        for found, with_ in sides if i % 2 == 0 else sides[::-1]:
            found.append(run(contestant, words, with_, folder))
    calls = np.array([r["calls"] for r in off])
    seconds = [np.array([r["seconds"] for r in side]) for side in (off, on)]
    return (seconds[1] - seconds[0]) / calls * 1e9, seconds[1] / seconds[0] - 1


def of_one_language(
    line: list[str], contestant: Contestant, folder: Path, often: tuple[str, int], rate: tuple[str, int]
) -> dict[str, list[str]]:
    """Both kinds of program that are started with that line, with their rounds."""
    steps = run(contestant, [*line, "--rate", "100000", "--rounds", "1000"], None, folder)["steps"]
    return {
        often[0]: [*line, "--rounds", str(often[1])],
        rate[0]: [*line, "--rounds", str(rate[1]), "--steps", str(steps)],
    }


def judged(kind: str, ns: np.ndarray, share: np.ndarray) -> tuple[str, bool]:
    """A line of a kind of program: its figures with their intervals, what is asked, and whether it is reached. Of ns a
    call the median counts, of the share the upper end of its interval."""
    a, b = interval(ns), interval(share)
    if kind in MOST_NS:
        asked, good = f"{MOST_NS[kind]:.0f} ns a call", a[0] <= MOST_NS[kind]
    else:
        asked, good = f"at most {MOST_SHARE:.0%}", b[2] <= MOST_SHARE
    figures = f"{a[0]:6.1f} ns a call ({a[1]:.1f} to {a[2]:.1f}), {b[0]:+.2%} ({b[1]:+.2%} to {b[2]:+.2%})"
    return f"{kind:30} {figures:64} asked: {asked:16}{'' if good else 'MISSED'}".rstrip(), good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--out", type=Path, help="JSON of all figures")
    parser.add_argument("--python", action="store_true", help="only programs in Python, and ours")
    arguments = parser.parse_args()
    bin_folder = arguments.build.resolve() / "bin"
    candidates = [headway(bin_folder), mpich(cache() / "mpich"), openmpi(cache() / "openmpi")][: 1 if arguments.python else 3]
    results: dict[str, dict] = {}
    reached = True
    with tempfile.TemporaryDirectory(prefix="headway-record-cost-") as name:
        folder = Path(name)
        for contestant in candidates:
            program = folder / f"record_cost-{contestant.name}"
            problem = contestant.missing() or compile_program(contestant, [ROOT / "bench" / "record_cost.c"], program, ("-O2",))
            if problem:
                print(f"{contestant.label} is left out: {problem}")
                continue
            kinds = {}
            if not arguments.python:
                kinds |= of_one_language([str(program)], contestant, folder, (OFTEN, 1000000), (RATE, 30000))
            if contestant.library == "headway":
                python = python_of(contestant, arguments.build.resolve())
                script = folder / "cost.py"
                script.write_text(PYTHON)
                if python:
                    line = [python, str(script)]
                    kinds |= of_one_language(line, contestant, folder, (OF_PYTHON, 100000), (RATE_OF_PYTHON, 30000))
                else:
                    print(f"Python is left out: no mpi4py runs on ours (scripts/mpi4py.sh {arguments.build} makes one)")
            for kind, words in kinds.items():
                ns, share = pairs(contestant, words, bin_folder / "headway", folder, arguments.pairs)
                results[f"{contestant.name}: {kind}"] = {"ns": ns.tolist(), "share": share.tolist()}
                line, good = judged(kind, ns, share)
                print(f"{contestant.label:10} {line}", flush=True)
                reached &= good
    if arguments.out:
        arguments.out.write_text(json.dumps(results, indent=1))
    return 0 if results and reached else 1


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
