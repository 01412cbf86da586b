"""Samples, their placement, and statistics over them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Iterable, NamedTuple

import shared  # noqa: F401
from headway.measure import validity
from headway.measure.statistics import Stats, make_stats

# Shares (overlap, progress) and memory do not scale with the cost of a cache line: all of their
# rounds stand together. Everything else is compared within one placement.
POOLED = ("overlap_", "progress_", "private_memory_", "stretch_", "slowdown_", "start_", "numa_")
# Of these, what a change between near and far in the middle of a round cannot spoil. Two NUMA nodes
# are as far from each other as they are.
UNPLACED = ("private_memory_", "start_", "numa_")
MORE_IS_BETTER = ("window", "stream", "bidir", "rate", "overlap_", "progress_", "numa_window", "numa_rate")


class Key(NamedTuple):
    """What was measured, apart from who."""

    transport: str  # shm or tcp
    measure: str
    size: int
    buffers: str  # hot, many, dirty or cold
    placement: str  # close, near, far, or any


@dataclass
class Sample:
    job: str
    contestant: str
    transport: str
    measure: str
    size: int
    buffers: str
    unit: str
    round: int
    placement: str
    probe: list[float]
    values: list[float]
    extra: dict = field(default_factory=dict)


def steady(sample: Sample) -> bool:
    """Of an overlap search."""
    return validity.steady(sample.extra.get("l0_us"), sample.extra.get("l0_after_us"))


class Results:
    """All samples of a run, and statistics by key and contestant."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.failures: list[dict] = []
        self.not_measured: list[dict] = []  # whole jobs: job, title, transport, and why
        self._table: dict[Key, dict[str, Stats]] | None = None

    def add(self, sample: Sample) -> None:
        self.samples.append(sample)
        self._table = None

    def discarded(self) -> dict[str, int]:
        return {
            "mixed placement": sum(
                s.placement == "mixed" and not s.measure.startswith(UNPLACED) for s in self.samples
            ),
            "l0 moved during an overlap search": sum(
                s.placement != "mixed" and not steady(s) for s in self.samples
            ),
            "send over at once, copied ahead": sum(s.extra.get("copied", 0) for s in self.samples),
            "all": len(self.samples),
        }

    def table(self) -> dict[Key, dict[str, Stats]]:
        if self._table is not None:
            return self._table
        values: dict[Key, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        units: dict[Key, str] = {}
        for s in self.samples:
            pooled = s.measure.startswith(POOLED) or s.placement == "unknown"
            if not s.values or not steady(s) or (s.placement == "mixed" and not s.measure.startswith(UNPLACED)):
                continue
            key = Key(
                s.transport, s.measure, s.size, s.buffers, "any" if pooled else s.placement
            )
            values[key][s.contestant].extend(s.values)
            units[key] = s.unit
        self._table = {
            key: {name: make_stats(v, units[key]) for name, v in by.items()}
            for key, by in sorted(values.items())
        }
        return self._table

    def get(self, key: Key, contestant: str) -> Stats | None:
        return self.table().get(key, {}).get(contestant)

    def best_peer(
        self, key: Key, peers: Iterable[str], more_is_better: bool
    ) -> tuple[str, Stats] | None:
        there = [(n, s) for n in peers if (s := self.get(key, n))]
        if not there:
            return None
        return (max if more_is_better else min)(there, key=lambda pair: pair[1].median)


def more_is_better(measure: str) -> bool:
    return measure.startswith(MORE_IS_BETTER)
