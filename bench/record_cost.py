#!/usr/bin/env python3
"""What `headway record` costs: a program that calls MPI as often as it can, and one with 100,000 calls a second, in
pairs without and with a recording, for each MPI that is there. Asked: at most 30 ns a call (120 with lines of
Python), and the upper end of the 95 % interval of the cost at 100,000 calls a second at most 1 %."""

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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--out", type=Path, help="JSON of all figures")
    arguments = parser.parse_args()
    bin_folder = arguments.build.resolve() / "bin"
    candidates = [headway(bin_folder), mpich(cache() / "mpich"), openmpi(cache() / "openmpi")]
    results: dict[str, dict] = {}
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
                "as often as it can": [str(program), "--rounds", "1000000"],
                "100,000 calls a second": [str(program), "--rounds", "30000", "--steps", str(steps)],
            }
            if contestant.library == "headway":
                script = folder / "cost.py"
                script.write_text(PYTHON.format(rounds=100000))
                if subprocess.run([sys.executable, "-c", "import mpi4py"], check=False, capture_output=True).returncode == 0:
                    kinds["Python, as often as it can"] = [sys.executable, str(script)]
            for kind, words in kinds.items():
                ns, share = pairs(contestant, words, bin_folder / "headway", folder, arguments.pairs)
                a, b = interval(ns), interval(share)
                results[f"{contestant.name}: {kind}"] = {"ns": ns.tolist(), "share": share.tolist()}
                print(
                    f"{contestant.label:10} {kind:28} {a[0]:6.1f} ns a call ({a[1]:.1f} to {a[2]:.1f}), "
                    f"{b[0]:+.2%} ({b[1]:+.2%} to {b[2]:+.2%})",
                    flush=True,
                )
    if arguments.out:
        arguments.out.write_text(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
