"""When something was so, of many lanes at once: merged intervals on one row of numbers, a span for each lane.

Questions are asked of many lanes and times together. Where the intervals lie in files, little of them is in memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from headway.record import columns
from headway.record.columns import find, rest, room, take

MOST_STRETCHES = 256  # intervals up to which two lanes are compared one by one
PIECE = 1 << 20


class Cover:
    """`begin` and `end` need no order."""

    def __init__(self, lane: np.ndarray, begin: np.ndarray, end: np.ndarray, span: int) -> None:
        lane = np.asarray(lane, np.int64)
        first, last = lane * span + begin, lane * span + end
        if len(first) > 1 and (first[1:] < first[:-1]).any():
            order = np.argsort(first, kind="stable")
            first, last = first[order], last[order]
        self._fill([(first, last)], len(first), span, None)

    @classmethod
    def of(cls, parts: Iterable[tuple[np.ndarray, np.ndarray]], most: int, span: int, spill: Path | None) -> Cover:
        """Of begins and ends on the row of all lanes, by begin, in parts; no more than `most` in all."""
        made = cls.__new__(cls)
        made._fill(parts, most, span, spill)
        return made

    def _fill(
        self, parts: Iterable[tuple[np.ndarray, np.ndarray]], most: int, span: int, spill: Path | None
    ) -> None:
        self.span = span
        begin, end = room(most, np.int64, spill), room(most, np.int64, spill)
        count, reached = 0, -1
        for first, last in parts:
            if not len(first):
                continue
            reach = np.maximum.accumulate(np.concatenate(([reached], last)))
            start = np.flatnonzero(first > reach[:-1])
            begin[count : count + len(start)] = first[start]
            # What was reached before an interval begins is where the one before it ends.
            ends = reach[start] if count else reach[start[1:]]
            at = max(count - 1, 0)
            end[at : at + len(ends)] = ends
            count, reached = count + len(start), int(reach[-1])
            rest(begin, end)
        if count:
            end[count - 1] = reached
        self.begin, self.end = begin[:count], end[:count]
        self.before = room(count + 1, np.int64, spill)
        self.before[0] = total = 0
        for at in range(0, count, columns.CHUNK):
            some = slice(at, min(count, at + columns.CHUNK))
            sums = total + np.cumsum(self.end[some] - self.begin[some])
            self.before[at + 1 : at + 1 + len(sums)] = sums
            total = int(sums[-1])
            rest(self.begin, self.end, self.before)

    def find(self, lane: np.ndarray, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The last interval that begins up to then, of any lane, or -1; and the time as it is kept here."""
        key = np.asarray(lane, np.int64) * self.span + np.clip(time, 0, self.span - 1)
        return find(self.begin, key) - 1, key

    def until(self, lane: np.ndarray, time: np.ndarray) -> np.ndarray:
        """How long it was so up to then, from an origin that is the same for all times of a lane."""
        at, key = self.find(lane, time)
        if not len(self.begin):
            return np.zeros(len(key), np.int64)
        safe = np.maximum(at, 0)
        begin, end, before = (take(column, safe) for column in (self.begin, self.end, self.before))
        return np.where(at < 0, 0, before + np.minimum(key, end) - begin)

    def within(self, lane: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
        return np.where(end > begin, self.until(lane, end) - self.until(lane, begin), 0)

    def without(self, lane: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
        return np.maximum(end - begin, 0) - self.within(lane, begin, end)

    def stop(self, lane: np.ndarray, time: np.ndarray) -> np.ndarray:
        """That time, if it was so then; else when it was last so, 0 if never."""
        at, key = self.find(lane, time)
        if not len(self.begin):
            return np.zeros(len(key), np.int64)
        base = np.asarray(lane, np.int64) * self.span
        last = np.where(at < 0, base, take(self.end, np.maximum(at, 0)))
        return np.maximum(np.minimum(last, key) - base, 0)

    def neither(self, one: np.ndarray, other: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
        """How long it was so on neither of two lanes. Where both have very many intervals: as if by chance."""
        first = [self.find(lane, begin)[0] for lane in (one, other)]
        count = [self.find(lane, end)[0] - at for lane, at in zip((one, other), first)]
        swap = count[1] < count[0]
        lane, against = np.where(swap, other, one), np.where(swap, one, other)
        at, more = np.where(swap, first[1], first[0]), np.where(swap, count[1], count[0])
        length = np.maximum(end - begin, 1).astype(float)
        found = self.without(lane, begin, end) / length * self.without(against, begin, end)
        few = np.flatnonzero((more <= MOST_STRETCHES) & (end > begin))
        for piece in np.array_split(few, 1 + int((more[few] + 1).sum()) // PIECE) if len(few) else ():
            op = np.repeat(piece, more[piece] + 1)
            step = np.arange(len(op)) - np.repeat(np.cumsum(more[piece] + 1) - more[piece] - 1, more[piece] + 1)
            low, high = self._between(at[op] + step, lane[op].astype(np.int64) * self.span, begin[op], end[op])
            found[piece] = np.bincount(
                np.repeat(np.arange(len(piece)), more[piece] + 1), self.without(against[op], low, high), len(piece)
            )
        return np.rint(found).astype(np.int64)

    def _between(
        self, gap: np.ndarray, base: np.ndarray, begin: np.ndarray, end: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """What lies behind interval `gap` and before the next one, from begin to end."""
        count = len(self.begin)
        if not count:
            return begin, end
        low = np.where(gap < 0, begin, take(self.end, np.maximum(gap, 0)) - base)
        high = np.where(gap + 1 < count, take(self.begin, np.minimum(gap + 1, count - 1)) - base, end)
        return np.clip(low, begin, end), np.clip(high, begin, end)
