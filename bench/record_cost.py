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
MOST_NS = {OFTEN: 30.0, OF_PYTHON: 120.0}  # a call
MOST_SHARE = 0.01

PYTHON = """
import time
from mpi4py import MPI
comm, out, into = MPI.COMM_SELF, bytearray(8), bytearray(8)
for part in range(2):
    begin, rounds = time.perf_counter(), {rounds} // (10 if part == 0 else 1)
    for i in range(rounds):
        a = comm.Irecv(into, 0, 1)
        b = comm.Isend(out, 0, 1)
        MPI.Request.Waitall([a, b])
    took = time.perf_counter() - begin
print('@@{{"measure":"record_cost","calls":%d,"seconds":%.9f,"steps":0}}' % (3 * {rounds}, took))
"""


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


def judged(kind: str, ns: np.ndarray, share: np.ndarray) -> tuple[str, bool]:
    """A line of a kind of program: its figures with their intervals, what is asked, and whether it is reached. Of ns a
    call the median counts, of the share the upper end of its interval."""
    a, b = interval(ns), interval(share)
    if kind in MOST_NS:
        asked, good = f"{MOST_NS[kind]:.0f} ns a call", a[0] <= MOST_NS[kind]
    else:
        asked, good = f"at most {MOST_SHARE:.0%}", b[2] <= MOST_SHARE
    figures = f"{a[0]:6.1f} ns a call ({a[1]:.1f} to {a[2]:.1f}), {b[0]:+.2%} ({b[1]:+.2%} to {b[2]:+.2%})"
    return f"{kind:28} {figures:64} asked: {asked:16}{'' if good else 'MISSED'}".rstrip(), good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--out", type=Path, help="JSON of all figures")
    arguments = parser.parse_args()
    bin_folder = arguments.build.resolve() / "bin"
    candidates = [headway(bin_folder), mpich(cache() / "mpich"), openmpi(cache() / "openmpi")]
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
            steps = run(contestant, [str(program), "--rate", "100000", "--rounds", "1000"], None, folder)["steps"]
            kinds = {
                OFTEN: [str(program), "--rounds", "1000000"],
                RATE: [str(program), "--rounds", "30000", "--steps", str(steps)],
            }
            if contestant.library == "headway":
                script = folder / "cost.py"
                script.write_text(PYTHON.format(rounds=100000))
                probe = [str(contestant.launcher), "-n", "1", sys.executable, "-c", "from mpi4py import MPI"]
                environment = contestant.full_environment()
                if subprocess.run(probe, check=False, capture_output=True, env=environment).returncode == 0:
                    kinds[OF_PYTHON] = [sys.executable, str(script)]
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
