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

from dataclasses import dataclass

import numpy as np

from headway.record import classes
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
        chain = line.chain
        count = len(line.begin)
        self.start = np.full((2, count), -1, np.int64)
        self.length = np.zeros((2, count), np.int64)
        if not len(chain):
            return
        thread, begin, end = line.thread[chain], line.begin[chain], line.end[chain]
        at = np.arange(len(chain))
        first = np.concatenate(([True], thread[1:] != thread[:-1]))
        head = np.maximum.accumulate(np.where(first, at, 0))
        gap = np.maximum(begin - np.concatenate(([0], end[:-1])), 0)
        gap[first] = begin[first]
        rows = np.flatnonzero(line.spent[chain] < end - begin)  # rows of tests compute in between
        within = np.zeros(len(chain), np.int64)
        within[rows] = (end - begin - line.spent[chain])[rows]
        outside = np.cumsum(gap) + np.concatenate(([0], np.cumsum(within)[:-1]))
        may = np.maximum.accumulate(np.where(line.blocking[chain], at, -1))
        before = np.stack((at - 1, np.concatenate(([-1], may[:-1]))))
        for which in (0, 1):
            known = before[which] >= head
            last = np.where(known, before[which], head)
            self.start[which, chain] = np.where(known, chain[last], -1)
            self.length[which, chain] = outside - outside[last] + np.where(known, 0, gap[head])

    def key(self, which: int, event: np.ndarray) -> np.ndarray:
        """The same for the same stretch, of any rank."""
        site, start = self.line.site, self.start[which, event]
        begun = np.where(start < 0, 0, 1 + site[np.maximum(start, 0)])
        return begun * (1 + len(self.line.sites)) + site[event]

    def means(self, which: int, event: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean length of the same stretch on the event's rank, and on all others."""
        if not len(event):
            return np.zeros(0), np.zeros(0)
        line = self.line
        wanted = np.unique(self.key(which, event))
        calls = line.chain
        key = self.key(which, calls)
        at = np.searchsorted(wanted, key)
        good = wanted[np.minimum(at, len(wanted) - 1)] == key
        calls, at = calls[good], at[good]
        length = self.length[which, calls].astype(float)
        places = max(1, len(line.world))
        cell, back = np.unique(at * places + line.place[calls], return_inverse=True)
        of_rank = np.bincount(back, length), np.bincount(back)
        of_all = np.bincount(at, length, len(wanted)), np.bincount(at, minlength=len(wanted))
        mine = np.searchsorted(wanted, self.key(which, event))
        own = np.minimum(np.searchsorted(cell, mine * places + line.place[event]), len(cell) - 1)
        count = of_all[1][mine] - of_rank[1][own]
        total = of_all[0][mine] - of_rank[0][own]
        mean = of_rank[0][own] / np.maximum(of_rank[1][own], 1)
        return mean, np.where(count > 0, total / np.maximum(count, 1), np.nan)


def origin(
    waiting: Waiting, stretches: Stretches, late: np.ndarray, begin: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of calls that came late, for which somebody waited from begin to end: those that made them late; and through how
    many ranks it came."""
    waits, line = waiting.waits, waiting.line
    row_of = np.full(len(waiting.line.begin), -1, np.int64)
    row_of[waits.event] = np.arange(len(waits.event))
    reason = np.maximum(waits.late_reason, 0)
    waited = np.where(waits.late_event < 0, 0, waits.parts[np.arange(len(reason)), reason])
    found, through = late.copy(), np.zeros(len(late), np.int64)
    going = np.arange(len(late))
    for _ in range(FAR):
        before = stretches.start[1, found[going]]
        row = np.where(before < 0, -1, row_of[before])
        there = line.begin[np.maximum(before, 0)]
        both = np.minimum(end[going], there + waited[row]) - np.maximum(begin[going], there)
        passed = (row >= 0) & (2 * both > end[going] - begin[going])
        going = going[passed]
        if not len(going):
            break
        found[going] = waits.late_event[row[passed]]
        through[going] += 1
    return found, through


def causes(waiting: Waiting) -> tuple[Causes, Causes]:
    """Of lateness, and of missing progress."""
    line, waits = waiting.line, waiting.waits
    stretches = Stretches(line)
    found = []
    for which, event, reason in ((1, waits.late_event, waits.late_reason), (0, waits.missing_event, None)):
        row = np.flatnonzero(event >= 0)
        late, through = event[row], np.zeros(len(row), np.int64)
        if which and len(row):
            begin = line.begin[waits.event[row]]
            late, through = origin(waiting, stretches, late, begin, begin + waits.parts[row, reason[row]])
        why = np.full(len(row), classes.MISSING_PROGRESS) if reason is None else reason[row]
        found.append(
            Causes(
                row, waits.parts[row, why], why, line.world[line.place[late]] if len(late) else late, through,
                late, stretches.start[which, late], stretches.length[which, late], *stretches.means(which, late),
            )
        )  # fmt: skip
    return found[0], found[1]
