"""Who caused a wait, and where: the stretch of the causing rank's code, beside the same stretch on other ranks.

A rank comes late to a call because of what it did since the call before that may wait (posting a receive in between
takes no time and explains nothing): that stretch is from there to the late call, its length is the time outside of
MPI in it. Progress is missing while a rank computes between two calls of any kind: that stretch is from the last call
to the one with which progress came back. Of the same stretch (the same two call sites) the mean over the run is given,
of that rank and of all others: late is who was slow this time; who does more work has the longer mean.

Who comes late because it waited itself for a third one only passes that on: where the call before the stretch waited
for somebody late during more than half of the time that is to be explained, that one is taken instead, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headway.record import classes, columns
from headway.record.columns import rest, room, take
from headway.record.timeline import Timeline
from headway.record.waiting import Waiting

FAR = 100  # ranks that pass a delay on


@dataclass
class Causes:
    """One element a wait that somebody caused."""

    row: np.ndarray  # into Waiting.waits
    waited: np.ndarray  # ns
    reason: np.ndarray  # class
    rank: np.ndarray  # of the world
    through: np.ndarray  # how many ranks passed it on
    event: np.ndarray  # the call that came late, or brought progress back
    start: np.ndarray  # the call where the stretch begins, -1: with the recording
    length: np.ndarray  # ns
    mean: np.ndarray  # ns of the same stretch on that rank, over the run
    others: np.ndarray  # the same on all other ranks; nan: nobody else has it


class Stretches:
    """From the last call before each call: any (`which` 0), or the last that may wait (1)."""

    def __init__(self, line: Timeline) -> None:
        self.line = line
        count, spill = len(line.begin), line.run.spill
        self.start = [room(count, np.int64, spill) for _ in (0, 1)]
        self.length = [room(count, np.int64, spill) for _ in (0, 1)]
        self.carried = np.zeros((3, len(line.thread_place)), np.int64)  # by thread: see _fill
        self.carried[[0, 2]] = -1
        self.may = np.zeros(len(line.thread_place), np.int64)
        for low, high in line.chunks:
            self._fill(low, high)
            self.rest()
            line.rest()

    def _fill(self, low: int, high: int) -> None:
        """Carried on by thread: its last call, the time outside of MPI up to that one's end, its last call that may
        wait (and, in `may`, the time outside up to that one's begin). Time before a thread's first call is outside."""
        line = self.line
        for start, length in zip(self.start, self.length):
            start[low:high], length[low:high] = -1, 0
        calls, first = line.chained(low, high)
        if not len(calls):
            return
        thread, begin, end = line.thread[calls], line.begin[calls], line.end[calls]
        last_call, outside_then, last_may = self.carried
        before, known = last_call[thread[first]], last_call[thread[first]] >= 0
        ended, worked = np.concatenate(([0], end[:-1])), np.zeros(len(before), np.int64)
        worked[known] = self._within(before[known])
        ended[first] = 0
        ended[np.flatnonzero(first)[known]] = take(line.end, before[known])
        gap = np.maximum(begin - ended, 0)
        within = end - begin - line.spent[calls]  # rows of tests compute in between
        # Outside up to each call's begin, from its thread's first moment.
        total = np.cumsum(gap) + np.concatenate(([0], np.cumsum(within)[:-1]))
        at = np.arange(len(calls))
        head = np.maximum.accumulate(np.where(first, at, 0))
        outside = total - (total - gap)[head] + outside_then[thread]
        previous, since = np.concatenate(([-1], calls[:-1])), np.concatenate(([0], outside[:-1]))
        previous[first], since[first] = before, np.where(known, outside_then[thread[first]] - worked, 0)
        self.start[0][calls], self.length[0][calls] = previous, outside - since
        waits = np.maximum.accumulate(np.where(line.blocking[calls], at, -1))
        waits = np.concatenate(([-1], waits[:-1]))
        here = waits >= head
        safe = np.maximum(waits, 0)
        self.start[1][calls] = start = np.where(here, calls[safe], last_may[thread])
        since = np.where(here, outside[safe], self.may[thread])
        self.length[1][calls] = outside - np.where(start < 0, 0, since)
        ends = np.flatnonzero(np.append(first[1:], True))
        last_call[thread[ends]] = calls[ends]
        outside_then[thread[ends]] = outside[ends] + within[ends]
        waits = np.maximum.accumulate(np.where(line.blocking[calls], at, -1))[ends]
        some = waits >= head[ends]
        last_may[thread[ends[some]]], self.may[thread[ends[some]]] = calls[waits[some]], outside[waits[some]]

    def _within(self, calls: np.ndarray) -> np.ndarray:
        """What was computed within these calls."""
        line = self.line
        return take(line.end, calls) - take(line.begin, calls) - take(line.spent, calls)

    def rest(self) -> None:
        rest(*self.start, *self.length)

    def key(self, which: int, event: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
        """The same for the same stretch, of any rank."""
        site = self.line.site
        start = take(self.start[which], event) if start is None else start
        begun = np.zeros(len(event), np.int64)
        known = start >= 0
        begun[known] = 1 + take(site, start[known])
        return begun * (1 + len(self.line.sites)) + take(site, event)

    def means(self, which: int, keys: list[np.ndarray]) -> Means:
        """Of the stretches with these keys, over the run."""
        return Means(self, which, np.unique(np.concatenate([np.zeros(0, np.int64), *keys])))


class Means:
    """Mean lengths of stretches, by rank and over all ranks."""

    def __init__(self, stretches: Stretches, which: int, wanted: np.ndarray) -> None:
        self.line, self.wanted = stretches.line, wanted
        line, self.places = stretches.line, max(1, len(stretches.line.world))
        kept = []
        for low, high in line.chunks if len(wanted) else ():
            calls = low + np.flatnonzero(line.call[low:high])
            key = stretches.key(which, calls)
            at = np.searchsorted(wanted, key)
            good = wanted[np.minimum(at, len(wanted) - 1)] == key
            calls, at = calls[good], at[good]
            cell, back = np.unique(at * self.places + line.place[calls], return_inverse=True)
            length = stretches.length[which][calls].astype(float)
            kept.append((cell, np.bincount(back, length, len(cell)), np.bincount(back, minlength=len(cell))))
            stretches.rest()
            line.rest()
        cell, length, count = (np.concatenate([np.zeros(0, np.int64), *c]) for c in (zip(*kept) if kept else ((),) * 3))
        self.cell, back = np.unique(cell, return_inverse=True)
        self.of_rank = np.bincount(back, length, len(self.cell)), np.bincount(back, count, len(self.cell))
        at = self.cell // self.places
        self.of_all = tuple(np.bincount(at, column, len(wanted)) for column in self.of_rank)

    def of(self, key: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """On the rank, and on all others."""
        if not len(key):
            return np.zeros(0), np.zeros(0)
        mine = np.searchsorted(self.wanted, key)
        own = np.minimum(np.searchsorted(self.cell, mine * self.places + place), len(self.cell) - 1)
        count = self.of_all[1][mine] - self.of_rank[1][own]
        total = self.of_all[0][mine] - self.of_rank[0][own]
        mean = self.of_rank[0][own] / np.maximum(self.of_rank[1][own], 1)
        return mean, np.where(count > 0, total / np.maximum(count, 1), np.nan)


def origin(
    waiting: Waiting, stretches: Stretches, late: np.ndarray, begin: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of calls that came late, for which somebody waited from begin to end: those that made them late; and through how
    many ranks it came."""
    waits, line = waiting.waits, waiting.line
    found, through = late.copy(), np.zeros(len(late), np.int64)
    going = np.arange(len(late))
    for _ in range(FAR):
        if not len(going):
            break
        before = take(stretches.start[1], found[going])
        row = np.where(before < 0, -1, waits.rows(before))
        going, before, row = (column[row >= 0] for column in (going, before, row))
        there, late_event = take(line.begin, before), take(waits.late_event, row)
        reason = np.maximum(take(waits.late_reason, row), 0)
        parts = take(waits.parts, row)
        waited = np.where(late_event < 0, 0, parts[np.arange(len(row)), reason])
        both = np.minimum(end[going], there + waited) - np.maximum(begin[going], there)
        passed = 2 * both > end[going] - begin[going]
        going = going[passed]
        found[going] = late_event[passed]
        through[going] += 1
    return found, through


def pieces(waiting: Waiting) -> Iterator[tuple[Causes, Causes]]:
    """Of lateness, and of missing progress: of some calls at a time, in their order."""
    waits, stretches = waiting.waits, Stretches(waiting.line)
    keys: list[list[np.ndarray]] = [[], []]
    steps = [slice(low, low + columns.CHUNK) for low in range(0, len(waits.event), columns.CHUNK)]
    # What came late is looked for twice rather than kept: it is as much as all waits.
    for some in steps:
        for which in (0, 1):
            keys[which] = [np.unique(np.concatenate([*keys[which], _late(waiting, stretches, which, some)[-1]]))]
    means = [stretches.means(which, keys[which]) for which in (0, 1)]
    for some in steps:
        made = []
        for which in (1, 0):
            row, waited, why, late, through, start, key = _late(waiting, stretches, which, some)
            place = take(waiting.line.place, late)
            made.append(
                Causes(
                    row, waited, why, waiting.line.world[place], through, late, start,
                    take(stretches.length[which], late), *means[which].of(key, place),
                )
            )  # fmt: skip
        yield made[0], made[1]


def _late(waiting: Waiting, stretches: Stretches, which: int, some: slice) -> tuple[np.ndarray, ...]:
    """Of some waits, those that somebody caused: row, ns, class, call, through how many, start and key of its
    stretch."""
    waits, line = waiting.waits, waiting.line
    event = (waits.late_event if which else waits.missing_event)[some]
    row = np.flatnonzero(event >= 0)
    late, through = event[row], np.zeros(len(row), np.int64)
    row += some.start
    why = take(waits.late_reason, row).astype(np.int64) if which else np.full(len(row), classes.MISSING_PROGRESS)
    waited = take(waits.parts, row)[np.arange(len(row)), why]
    if which and len(row):
        begin = take(line.begin, take(waits.event, row))
        late, through = origin(waiting, stretches, late, begin, begin + waited)
    start = take(stretches.start[which], late)
    key = stretches.key(which, late, start)
    waits.rest()
    stretches.rest()
    line.rest()
    return row, waited, why, late, through, start, key


def causes(waiting: Waiting) -> tuple[Causes, Causes]:
    """Of lateness, and of missing progress."""
    names = list(Causes.__dataclass_fields__)
    both: tuple[list[Causes], list[Causes]] = tuple(map(list, zip(*pieces(waiting)))) or ([], [])
    nothing = Causes(*(np.zeros(0, np.int64) for _ in names))
    return tuple(Causes(*(np.concatenate([getattr(c, n) for c in (nothing, *some)]) for n in names)) for some in both)
