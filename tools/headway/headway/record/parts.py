"""What of a run can be compared with another one: by call site, in parts that could as well have been others.

A part is some consecutive repeats of a site: of r repeats on the rank that has most, there are min(r, MOST_PARTS), each
with the same share of the repeats of each rank, so that what one waits for another stays together. Parts are as
large as each other: where their numbers of calls differ by one, each counts by its mean.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from headway.record import classes, hidden
from headway.record.model import Site
from headway.record.same_sites import Spot
from headway.record.timeline import Timeline
from headway.record.waiting import Waiting

MOST_PARTS = 20
TIME, BLOCKED, SPAN, NEED, LEAST, MOST = range(6)  # columns, ns, all ranks; SPAN: since the call before it ended
FIRST_CLASS = 6
COLUMNS = FIRST_CLASS + len(classes.WAITING)
COLUMN_OF = {classes.NAMES[c]: FIRST_CLASS + n for n, c in enumerate(classes.WAITING)} | {
    "time": TIME,
    "blocked": BLOCKED,
    "duration": SPAN,
}


@dataclass
class Measured:
    """One run."""

    folder: str
    program: str
    mpi: str
    ranks: int
    duration: int
    spots: list[Spot]
    parts: list[np.ndarray]  # of each: rows of COLUMNS, whose sum is the run's
    notes: list[str] = field(default_factory=list)


def of_run(waiting: Waiting) -> Measured:
    line, run = waiting.line, waiting.line.run
    calls = line.chain
    spots, site = _spots(waiting, calls)
    place = line.place[calls]
    part, counts = _cut(site, place, line.begin[calls], len(spots))
    first = np.concatenate(([0], np.cumsum(counts)))
    cell = first[site] + part
    sums = np.zeros((first[-1], COLUMNS))

    def add(column: int, cells: np.ndarray, ns: np.ndarray) -> None:
        sums[:, column] += np.bincount(cells, ns, first[-1])

    add(TIME, cell, line.spent[calls])
    add(SPAN, cell, np.maximum(line.end[calls] - _ready(line, calls), 0))
    cell_of = np.full(len(line.begin), -1, np.int64)
    cell_of[calls] = cell
    waits = cell_of[waiting.waits.event]
    for number, c in enumerate(classes.WAITING):
        add(FIRST_CLASS + number, waits, waiting.waits.parts[:, c])
    sums[:, BLOCKED] = sums[:, FIRST_CLASS:].sum(axis=1)
    event, *ns = hidden.bounds(waiting)
    begun = cell_of[line.owner[event]]
    for column, one in zip((NEED, LEAST, MOST), ns):
        add(column, begun[begun >= 0], one[begun >= 0])
    size = np.bincount(cell, minlength=first[-1])
    parts = [_alike(sums[a:b], size[a:b]) for a, b in zip(first[:-1], first[1:])]
    header = run.ranks[0].header if run.ranks else {}
    program = str(header.get("program", "")).rsplit("/", 1)[-1]
    notes = [*run.notes, *waiting.notes]
    return Measured(run.folder, program, str(header.get("mpi", "")), len(run.ranks), run.duration, spots, parts, notes)


def _spots(waiting: Waiting, calls: np.ndarray) -> tuple[list[Spot], np.ndarray]:
    """The run's sites, and of each call its site among them."""
    line = waiting.line
    names = max(1, len(line.names))
    numbered = line.site[calls] * names + line.name[calls]
    keys, which, counts = np.unique(numbered, return_inverse=True, return_counts=True)
    numbers: dict[Hashable, int] = {}
    sites: list[tuple[Site, str]] = []
    table = np.zeros(len(keys), np.int64)
    for at, key in enumerate(keys.tolist()):
        spot = Spot(line.sites[key // names], line.names[key % names])
        table[at] = numbers.setdefault(spot.key, len(numbers))
        if table[at] == len(sites):
            sites.append((spot.site, spot.call))
    count = np.bincount(table, counts, len(sites)).astype(int).tolist() if len(keys) else []
    return [Spot(site, call, n) for (site, call), n in zip(sites, count)], table[which]


def _ready(line: Timeline, calls: np.ndarray) -> np.ndarray:
    """Of calls thread by thread, when the one before had ended; of a rank's first, when the run began."""
    found = np.roll(line.end[calls], 1)
    first = np.ones(len(calls), bool)
    first[1:] = np.diff(line.thread[calls]) != 0
    found[first] = line.begin[calls][first]
    first[1:] = np.diff(line.place[calls]) != 0
    found[first] = 0
    return found


def _cut(site: np.ndarray, place: np.ndarray, begin: np.ndarray, sites: int) -> tuple[np.ndarray, np.ndarray]:
    """Of each call, its part among its site's; of each site, how many parts it has."""
    counts = np.zeros(sites, np.int64)
    part = np.zeros(len(site), np.int64)
    if not len(site):
        return part, counts
    order = np.lexsort((begin, place, site))
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(site[order]) != 0) | (np.diff(place[order]) != 0)
    start = np.flatnonzero(new)
    repeats = np.diff(np.append(start, len(order)))
    np.maximum.at(counts, site[order[start]], repeats)
    counts = np.minimum(counts, MOST_PARTS)
    index = np.arange(len(order)) - np.repeat(start, repeats)
    part[order] = index * counts[site[order]] // np.repeat(repeats, repeats)
    return part, counts


def _alike(sums: np.ndarray, size: np.ndarray) -> np.ndarray:
    if len(sums) < 2 or (size == size[0]).all():
        return sums
    even = sums / np.maximum(size, 1)[:, None] * (size.sum() / len(size))
    return even + (sums.sum(axis=0) - even.sum(axis=0)) / len(sums)
