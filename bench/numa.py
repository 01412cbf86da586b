"""The machine's NUMA nodes: a core of each of two, or why there are not two."""

from __future__ import annotations

import os
from pathlib import Path

NODES = Path("/sys/devices/system/node")


def numbers_of(text: str) -> list[int]:
    """What the system's lists stand for: "0-2,8" is 0, 1, 2 and 8."""
    found: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first:
            found += range(int(first), int(last or first) + 1)
    return found


def first_cores(folder: Path, allowed: set[int]) -> list[int]:
    """Of each node that has one this process may use, in the order of the nodes."""
    nodes = sorted(folder.glob("node[0-9]*"), key=lambda n: int(n.name.removeprefix("node")))
    usable = ([c for c in numbers_of((n / "cpulist").read_text()) if c in allowed] for n in nodes)
    return [cores[0] for cores in usable if cores]


def two_cores(folder: Path = NODES, allowed: set[int] | None = None) -> tuple[str, str]:
    """The cores as BENCH_CORES has them, or an empty text and the reason."""
    cores = first_cores(folder, os.sched_getaffinity(0) if allowed is None else allowed)
    if len(cores) >= 2:
        return f"{cores[0]},{cores[1]}", ""
    return "", "this machine has one NUMA node" if cores else "this machine does not tell its NUMA nodes"
