"""The quick self-check of bench/matching: what does not depend on the machine's mood.

usage: check.py build/bench/matching_bench
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import paper

PROBLEMS: list[str] = []


def run_bench(program: Path, *words: object) -> subprocess.CompletedProcess:
    return subprocess.run([str(program), *map(str, words)], capture_output=True, text=True, timeout=60)


def results(program: Path, *words: object) -> dict[str, dict]:
    run = run_bench(program, *words, "--rounds", 1, "--most-ms", 60000)
    expect(run.returncode == 0, f"{words}: ended with {run.returncode}: {run.stderr}")
    return {row["design"]: row for row in map(json.loads, run.stdout.splitlines())}


def expect(good: bool, story: str) -> None:
    if not good:
        PROBLEMS.append(story)


def traversed(row: dict, kind: str) -> int:
    kinds = ("point", "collective") if kind == "all" else (kind,)
    return sum(row[queue][k]["traversed"] for queue in paper.QUEUES for k in kinds)


def lists(row: dict, queue: str) -> int:
    return row[queue]["point"]["queues"] + row[queue]["collective"]["queues"]


def check_pattern(program: Path, name: str, n: int) -> dict[str, dict]:
    rows = results(program, "pattern", name, "--processes", n, "--steps", 2, "--warmup", 2)
    expect(set(rows) == set(paper.DESIGNS), f"{name}: designs {sorted(rows)}")
    counts = {tuple(row[q][k]["searches"] for q in paper.QUEUES for k in ("point", "collective"))
              for row in rows.values()}
    expect(len(counts) == 1, f"{name}: designs searched differently often: {counts}")
    cap = 16 * math.isqrt(n) + 16
    for design, row in rows.items():
        for queue in paper.QUEUES:
            most = cap if design != "source" else 8 * n
            expect(lists(row, queue) <= most, f"{name}, {design}: {lists(row, queue)} {queue} lists")
        for queue in paper.QUEUES:
            expect(row[queue]["longest"] > 0, f"{name}, {design}: no {queue} entry")
    return rows


def check_fds(program: Path) -> None:
    rows = check_pattern(program, "fds", 512)
    one = rows["list"]
    for design, kind, least in (("col+pnp", "collective", 100), ("col+pnp", "all", 52),
                                ("headway", "all", 100), ("col+list", "collective", 100),
                                ("list+pnp", "collective", 5)):
        gain = traversed(one, kind) / traversed(rows[design], kind)
        expect(gain >= least, f"fds, {design}, {kind}: passes {gain:.1f} times fewer entries, not {least}")
    expect(rows["headway"]["memory"] <= rows["col+pnp"]["memory"],
           f"fds: {rows['headway']['memory']} bytes of headway, {rows['col+pnp']['memory']} of col+pnp")


def check_refusals(program: Path) -> None:
    for words, story in ((("pattern", "fds", "--designs", "hash"), "there is no design hash"),
                         (("pattern", "frobnicate"), "there is no pattern frobnicate"),
                         (("pattern", "fds", "--processes", "many"), "not a number"),
                         (("pattern", "fds", "--processes", "1"), "at least two"),
                         (("length", "--lengths", "0"), "at least one entry"),
                         (("pattern", "fds", "--steps"), "a value is missing")):
        run = run_bench(program, *words)
        expect(run.returncode == 2 and story in run.stderr, f"{words}: {run.returncode}, {run.stderr!r}")


def run(program: Path) -> int:
    for name, n in (("radix", 64), ("short", 16), ("nbody", 256), ("miniamr", 64), ("gather", 100),
                    ("any-source", 50), ("any-tag", 50), ("any", 50), ("reverse", 50), ("radix", 2)):
        check_pattern(program, name, n)
    check_fds(program)
    zero = results(program, "pattern", "nbody", "--processes", 256, "--kc", 0, "--kp", 0, "--steps", 1)
    expect(lists(zero["col+pnp"], "posted") == 0, "caps of zero: lists were made")
    flat = run_bench(program, "length", "--designs", "headway", "--lengths", "1,1000,65536", "--rounds", 1)
    expect(flat.returncode == 0 and len(flat.stdout.splitlines()) == 12, f"length: {flat.stderr}")
    check_refusals(program)
    for problem in PROBLEMS:
        print(problem)
    print(f"matching_bench: {len(PROBLEMS)} problems")
    return 1 if PROBLEMS else 0


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1])))
