"""Messages that are packed right before their send, or unpacked right behind their receive: told, never promised.

A recording shows no memory. What it shows is how long a rank computes right before a send begins, and right behind the
call that completed receives. If that grows with the bytes, from nothing, at a rate at which memory is copied, over
messages of several sizes, then most likely the program puts together there what it sends, or takes apart what it
received: a derived datatype lets the MPI do that, from where the data are and to where they belong. Of messages of one
size nothing is told, since any computation between two calls would look like that.

With our library a recording knows more of receives that returned early: when their closed pages were touched. A buffer
that is touched at once behind its receive, and to its end while the data still come, is read whole there: then one size
is enough. Sends have no such events.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from headway.record import model
from headway.record.edits import PACK, UNPACK, Change
from headway.record.program import RECEIVE, SEND, SIDES, Program

LEAST = 20  # messages from which a site tells something
SIZES = 3  # different ones
APART = 2.0  # the largest by the smallest of them, leaving out a tenth on each side
RATES = 0.01, 5.0  # ns a byte: a copy within a cache, and one of single numbers far apart
ALIKE = 0.9  # share of the times' variance that bytes explain
FROM_NOTHING = 0.2  # of the mean time that may be left without any bytes
SMALL = 512  # bytes, below which calls cost more than copies
FAULT, RELEASE = 0x8010, 0x8011  # docs/recording-format.md
AT_ONCE = 20_000  # ns from a receive's return to the first touch
WHOLE = 0.8  # of the time in which the data came, behind which a touch had still to wait for them
MOST = 0.8  # of a site's early receives that must be read so
FEW = 10  # early receives from which a site tells something


@dataclass(frozen=True)
class Found:
    change: Change
    most: int  # ns that it takes on the rank that has most of it
    touched: float | None = None  # ns from the receive's return to the first touch, the median, where that is known


@dataclass
class Grown:
    """What was computed at a site, by bytes."""

    size: list[int]
    ns: list[int]

    @property
    def rate(self) -> float:
        """ns a byte; 0 if it does not grow so."""
        size, ns = np.array(self.size, float), np.array(self.ns, float)
        good = size >= SMALL
        size, ns = size[good], ns[good]
        if len(size) < LEAST or len(np.unique(size)) < SIZES:
            return 0.0
        low, high = np.quantile(size, (0.1, 0.9))
        if high < APART * low:
            return 0.0
        # Some were hit by others, which lengthens; the line goes through the medians of each size's quarter octave.
        group = np.rint(4 * np.log2(size)).astype(np.int64)
        x = np.array([np.median(size[group == one]) for one in np.unique(group)])
        y = np.array([np.median(ns[group == one]) for one in np.unique(group)])
        if len(x) < SIZES:
            return 0.0
        rate, base = np.polyfit(x, y, 1)
        spread = float(((y - y.mean()) ** 2).sum())
        missed = float(((y - base - rate * x) ** 2).sum())
        if not RATES[0] <= rate <= RATES[1] or abs(base) > FROM_NOTHING * y.mean() or missed > (1 - ALIKE) * spread:
            return 0.0
        return float(rate)


def packing(program: Program, least: float) -> list[Found]:
    """Most first."""
    grown: dict[tuple[str, int, int], dict[int, Grown]] = defaultdict(dict)

    def add(kind: str, key: int, other: int, rank: int, size: int, ns: int) -> None:
        one = grown[kind, key, other].setdefault(rank, Grown([], []))
        one.size.append(size)
        one.ns.append(ns)

    for rank, lane in zip(program.world.rank_of, program.lanes):
        for before, call in zip(lane, lane[1:]):
            gap, keys = program.gap[call], (program.key[before], program.key[call])
            if sent := volume(program, program.starts[call], SEND):
                add(PACK, keys[1], keys[0], rank, sent, gap)
            if came := volume(program, program.needs[before], RECEIVE):
                add(UNPACK, keys[0], keys[1], rank, came, gap)
    touched = read_whole(program)
    found = []
    for (kind, key, other), by_rank in grown.items():
        every = Grown([s for one in by_rank.values() for s in one.size], [n for one in by_rank.values() for n in one.ns])
        first = touched.get(key) if kind == UNPACK else None
        rate = every.rate
        if not rate and first is not None:
            rate = sum(every.ns) / max(1, sum(every.size))
            rate = rate if RATES[0] <= rate <= RATES[1] else 0.0
        most = max(int(rate * sum(one.size)) for one in by_rank.values())
        if rate and most >= least:
            found.append(Found(Change(kind, key, other, more=rate), most, first))
    return sorted(found, key=lambda one: -one.most)


def read_whole(program: Program) -> dict[int, float]:
    """Calls, by key, whose early receives are touched at once and to their ends: ns to the first touch, the median."""
    line = program.world.line
    keys = {pair: key for key, pair in enumerate(program.world.keys)}
    at_once: dict[int, list[float]] = defaultdict(list)
    early: dict[int, int] = defaultdict(int)
    for place, rank in enumerate(line.run.ranks):
        kind, number = rank.events["kind"], rank.events["request"]
        releases = np.flatnonzero(kind == RELEASE)
        if not len(releases):
            continue
        # Of receives that were closed as one, one number and its faults stand for all; 0 is no number.
        first, last = touches(number, np.flatnonzero((kind == FAULT) & (number > 0)), rank)
        told: set[int] = set()
        call = line.last_call(np.full(len(releases), place), rank.begin[releases])
        for event, at in zip(releases.tolist(), call.tolist()):
            key = keys.get((int(line.site[at]), int(line.name[at])), -1) if at >= 0 else -1
            begin, end, which = int(rank.begin[event]), int(rank.end[event]), int(number[event])
            if which in told:
                continue
            if which:
                told.add(which)
            early[key] += 1
            touched = first.get(which, -1) - begin
            if 0 <= touched <= AT_ONCE and last[which] >= begin + WHOLE * (end - begin):
                at_once[key].append(float(touched))
    return {
        key: float(np.median(some))
        for key, some in at_once.items()
        if key >= 0 and early[key] >= FEW and len(some) >= MOST * early[key]
    }


def touches(number: np.ndarray, faults: np.ndarray, rank: model.Rank) -> tuple[dict[int, int], dict[int, int]]:
    """When each release's closed pages were first touched, and when the last of them was open again."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for event in faults.tolist():
        which = int(number[event])
        first[which] = min(first.get(which, int(rank.begin[event])), int(rank.begin[event]))
        last[which] = max(last.get(which, 0), int(rank.end[event]))
    return first, last


def volume(program: Program, ops: tuple[int, ...], side: int) -> int:
    """Bytes of the messages of which these are that side."""
    messages = [op // SIDES for op in ops if op < program.world.parts and op % SIDES == side]
    return sum(program.world.size[message] for message in messages)
