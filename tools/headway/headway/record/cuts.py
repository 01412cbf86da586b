"""Where a rank's events can be parted, so that no more than one part has to be in memory.

A part is a run of events in their order. No call of any thread reaches over a cut, and the records of one call stay
together: so each part can be understood alone, and those of a thread follow each other in time. Where calls are so
large, or so wrong, that no such place is near, a cut goes through one: what is drawn of that call is then wrong.
"""

from __future__ import annotations

import numpy as np

from headway.record.columns import rest
from headway.record.model import COMPLETION, Rank

LOOK = 64  # events on both sides of a cut that are looked at first
FARTHEST = 1 << 16


def cuts(rank: Rank, most: int) -> list[int]:
    """From 0 to the number of events, about `most` apart."""
    count = len(rank.events)
    found = [0]
    while count - found[-1] > most + most // 2:
        found.append(_cut(rank, found[-1], found[-1] + most))
        # A look at a few events brings whole large pages of their file.
        rest(rank.events, rank.begin, rank.end)
    return [*found, count]


def _cut(rank: Rank, after: int, wanted: int) -> int:
    """The first good place from there on, or the last one before."""
    count, look = len(rank.events), LOOK
    while look <= FARTHEST:
        low, high = max(0, wanted - look), min(count, wanted + look)
        good = low + np.flatnonzero(_good(rank, low, high))
        good = good[(good > after) & (good < count)]
        later = good[good >= wanted]
        if len(later):
            return int(later[0])
        if len(good) and high == count:
            return int(good[-1])
        look *= 4
    return wanted


def _good(rank: Rank, low: int, high: int) -> np.ndarray:
    """Of each event between, whether a cut before it is one."""
    events, begin, end = rank.events[low:high], rank.begin[low:high], rank.end[low:high]
    bad = np.zeros(high - low + 1, np.int64)
    calls = events["kind"] <= COMPLETION
    for thread in np.unique(events["thread"]).tolist():
        mine = np.flatnonzero(calls & (events["thread"] == thread))
        if not len(mine):
            continue
        until = np.maximum.accumulate(end[mine])
        since = np.minimum.accumulate(begin[mine][::-1])[::-1]
        kind, b, e = events["kind"][mine], begin[mine], end[mine]
        over = until[:-1] > since[1:]
        over |= kind[1:] == COMPLETION
        over |= (kind[1:] == kind[:-1]) & (b[1:] == b[:-1]) & (e[1:] == e[:-1])
        # A cut at any place behind the one and up to the other would part them.
        some = np.flatnonzero(over)
        np.add.at(bad, mine[some] + 1, 1)
        np.add.at(bad, mine[some + 1] + 1, -1)
        if kind[0] == COMPLETION:
            bad[0] += 1
            bad[mine[0] + 1] -= 1
    return np.cumsum(bad)[:-1] == 0
