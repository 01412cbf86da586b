"""Each call of some stretches of a run that is too large to be held whole by its page: for whoever zooms in.

The run's time is cut into stretches of about as many calls. Those are held that were asked for, then those with the
longest waits, one after the other, as long as the page has room. The page unpacks one when it is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from headway.record import calls, classes, columns, model
from headway.record.model import Rank, Run
from headway.record.summary import KEPT, Summary, rows_of

A_STRETCH = 20_000, 20  # events, at least so many a rank
MOST = 100, 20_000  # stretches, and ranks in all of them
MOST_EVENTS = 1_500_000  # of all of them
BLOCK = 256  # events whose first begin and last end are known
MARGIN = 4096  # events around a stretch's calls, among which those of the library are


@dataclass
class Stretch:
    begin: int  # ns
    end: int
    rows: np.ndarray  # of KEPT, by row and begin: each call that touches it


class Places:
    """Where in a rank's events a time lies. What our library does may last long: it does not count, and is found near
    the calls of that time."""

    def __init__(self, rank: Rank) -> None:
        count = len(rank.events)
        begins, since, until = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        step = max(1, columns.CHUNK // BLOCK) * BLOCK
        self.margin = 0
        for at in range(0, count, step):
            starts = np.arange(0, min(step, count - at), BLOCK)
            begin, end, kind = (column[at : at + step] for column in (rank.begin, rank.end, rank.events["kind"]))
            begins.append(np.minimum.reduceat(begin, starts))
            ours = (kind >= model.LIBRARY.start) & (kind < model.LIBRARY.stop)
            if ours.any():
                self.margin = MARGIN
                begin, end = np.where(ours, np.iinfo(np.int64).max, begin), np.where(ours, -1, end)
            since.append(np.minimum.reduceat(begin, starts))
            until.append(np.maximum.reduceat(end, starts))
            columns.rest(rank.events, rank.begin, rank.end)
        self.rank, self.count, self.begins = rank, count, np.concatenate(begins)
        self.since = np.minimum.accumulate(np.concatenate(since)[::-1])[::-1]  # no later call begins before
        self.until = np.maximum.accumulate(np.concatenate(until))  # no earlier one ends after

    def of(self, begin: int, end: int) -> tuple[int, int]:
        """Between these are all calls that touch that time."""
        first = int(np.searchsorted(self.until, begin, "left")) * BLOCK
        last = max(first, int(np.searchsorted(self.since, end, "right")) * BLOCK)
        first, last = max(first - self.margin, 0), min(last + self.margin, self.count)
        inside = (self.rank.end[first:last] >= begin) & (self.rank.begin[first:last] <= end)
        some = np.flatnonzero(inside)
        columns.rest(self.rank.begin, self.rank.end)
        return (first + int(some[0]), first + int(some[-1]) + 1) if len(some) else (0, 0)


def stretches(
    run: Run, given: Sequence[np.ndarray] | None, s: Summary, window: tuple[int, int] | None = None
) -> list[Stretch]:
    """Of a run whose calls are not all kept. `window`: the time (ns) that is asked for."""
    if s.all_kept:
        return []
    places = [Places(rank) for rank in run.ranks]
    begins = np.sort(np.concatenate([np.zeros(0, np.int64), *(one.begins for one in places)]))
    count = max(1, s.events // max(A_STRETCH[0], A_STRETCH[1] * len(places)))
    edges = np.unique(np.concatenate(([0], begins[np.arange(1, count) * len(begins) // count], [s.duration])))
    found, left = [], MOST_EVENTS
    for number in chosen(edges, s, window):
        stretch = Stretch(int(edges[number]), int(edges[number + 1]), np.zeros(0, KEPT))
        spans = [one.of(stretch.begin, stretch.end) for one in places]
        left -= sum(last - first for first, last in spans)
        if left < 0 and found:
            break
        parts = [
            of_rank(s, row, rank, span, None if given is None else given[row], stretch)
            for row, (rank, span) in enumerate(zip(run.ranks, spans))
            if span[0] < span[1]
        ]
        stretch.rows = np.concatenate([stretch.rows, *parts])
        found.append(stretch)
    return found


def chosen(edges: np.ndarray, s: Summary, window: tuple[int, int] | None) -> list[int]:
    """Numbers of stretches, the most wanted first."""
    count = len(edges) - 1
    found: list[int] = []
    if window is not None:
        first, last = np.searchsorted(edges, window, "right") - 1
        found += range(max(0, int(first)), min(count, int(last) + 1))
    waits = s.waits(len(s.kept))
    at = np.searchsorted(edges, waits["begin"] + waits["time"], "left") - 1  # where it ends: there is its cause
    found += np.clip(at, 0, count - 1).tolist()
    most = min(MOST[0], max(1, MOST[1] // max(1, len(s.ranks))))
    return list(dict.fromkeys(found))[:most] if count > 0 else []


def of_rank(
    s: Summary, row: int, rank: Rank, span: tuple[int, int], given: np.ndarray | None, stretch: Stretch
) -> np.ndarray:
    some = slice(*span)
    part = replace(rank, events=rank.events[some], begin=rank.begin[some], end=rank.end[some])
    of = calls.arrange(part)
    kind = classes.class_of(part, None if given is None else given[some])
    found = [np.zeros(0, KEPT)]
    for track in of.tracks:
        index = np.flatnonzero((track.end >= stretch.begin) & (track.begin <= stretch.end))
        if len(index):
            found.append(rows_of(s.texts, row, part, track, kind[track.index], s.told, index))
    columns.rest(rank.events, rank.begin, rank.end, *(() if given is None else (given,)))
    rows = np.concatenate(found)
    return rows[np.lexsort((rows["depth"], rows["begin"]))]
