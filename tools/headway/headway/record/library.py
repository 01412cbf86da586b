"""What our library did by itself, as its events in a recording tell: receives that returned early, who touched their
pages too soon, messages that were asked for before they were sent, the message thread's work. By call site and whole.

A release lasts from the return of its receive until its data were whole; without it the receive would have waited as
long. Of that time is hidden what its thread spent outside of MPI and not stopped at a closed page. Where several
releases of a thread last at once, that is shared among them: what they hide together is there once. System calls that
wait for closed pages count as computing: no event tells of them.

A prefetch hid what its bytes would have taken on the wire, as the library knows the link's rate, and no more than it
stood. What it brought in vain, and messages fetched before their receive, are not in that.

Memory: some 100 bytes an event of the library and a call, one rank at a time.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headway.record import model
from headway.record.model import FAULT, HELP, PREFETCH, RELEASE, Rank, Run, Site
from headway.record.words import bytes_text, clean, count_text, share_text, time_text

ANY_THREAD = 256  # behind all that a record can name


@dataclass(frozen=True)
class Mark:
    """How an event of the library looks in pictures."""

    name: str
    colour: str
    meaning: str


MARKS = {
    RELEASE: Mark("released", "#c9b458", "a receive had returned early, and its data were still coming"),
    FAULT: Mark("fault", "#b00020", "stopped: a closed page was touched before its data were there"),
    PREFETCH: Mark("prefetch", "#5b8c2a", "a message was asked for before it was sent"),
    HELP: Mark("message thread", "#00838f", "the library's own thread moved data"),
}


@dataclass
class Row:
    """A call at one place in the program, all ranks together. Times in ns."""

    site: Site
    call: str
    released: int = 0  # receives that returned early
    came: int = 0  # bytes that came behind their returns
    lasted: int = 0  # from the returns until all was there
    hidden: int = 0  # of that
    touched: int = 0  # releases of which a page was touched too soon
    first_touch: int | None = None  # of those, from the return to the first touch: the median
    faults: int = 0
    stopped: int = 0  # in faults
    prefetches: int = 0
    useful: int = 0  # of them, those that brought something
    prefetched: int = 0  # bytes
    spared: int = 0  # that those would have taken on the wire


@dataclass
class Library:
    whole: int  # of all ranks
    rows: list[Row] = field(default_factory=list)  # most hidden first
    faults: int = 0  # those that belong to no release of the recording with them
    stopped: int = 0
    helps: int = 0
    helped: int = 0

    def sum(self, name: str) -> int:
        return sum(getattr(row, name) for row in self.rows)


@dataclass
class _Columns:
    """A value for each release, or each prefetch, of all ranks: a list of arrays, one for each rank."""

    names: tuple[str, ...]
    parts: list[tuple[np.ndarray, ...]] = field(default_factory=list)

    def joined(self) -> dict[str, np.ndarray]:
        columns = zip(*self.parts) if self.parts else ([np.zeros(0, np.int64)] for _ in self.names)
        return {name: np.concatenate(list(column)) for name, column in zip(self.names, columns)}


class _Calls:
    """The calls of a rank, by thread and time."""

    def __init__(self, rank: Rank) -> None:
        events = rank.events
        self.rank = rank
        some = (events["kind"] < min(len(rank.families), model.COMPLETION)) & (events["flags"] & model.IN_VAIN == 0)
        self.events = np.flatnonzero(some)
        self.thread = events["thread"][self.events].astype(np.int64)
        self.begin = np.maximum(rank.begin[self.events], 0)
        self.end = np.maximum(rank.end[self.events], self.begin)
        self.span = int(self.end.max(initial=0)) + 1
        key = np.concatenate([self.thread, np.full(len(self.events), ANY_THREAD)]) * self.span
        key += np.concatenate([self.begin, self.begin])
        self.order = np.argsort(key, kind="stable")
        self.key = key[self.order]

    def holding(self, thread: np.ndarray, time: np.ndarray) -> np.ndarray:
        """The call of that thread in which that time lies, among `events`; -1 for none."""
        if not len(self.events):
            return np.full(len(time), -1, np.int64)
        lane = np.where(thread < 0, ANY_THREAD, thread)
        at = np.searchsorted(self.key, lane * self.span + np.clip(time, 0, self.span - 1), "right") - 1
        which = self.order[np.maximum(at, 0)]
        in_lane = np.where(which >= len(self.events), ANY_THREAD, self.thread[which % len(self.events)]) == lane
        which %= len(self.events)
        return np.where((at >= 0) & in_lane & (self.end[which] >= time), which, -1)


def report(run: Run) -> Library | None:
    """None if the recording has no such event: it is of another MPI, or of a run in which nothing of it happened."""
    known: dict[tuple[Site, str], int] = {}
    releases = _Columns(("row", "came", "lasted", "hidden", "first", "faults", "stopped"))
    prefetches = _Columns(("row", "bytes", "spared"))
    found = Library(run.duration * len(run.ranks))
    seen = False
    for rank in run.ranks:
        kind = rank.events["kind"]
        own = np.flatnonzero((kind >= model.LIBRARY.start) & (kind < model.LIBRARY.stop))
        if not len(own):
            continue
        seen = True
        calls = _Calls(rank)
        of = {one: own[kind[own] == one] for one in (FAULT, RELEASE, PREFETCH, HELP)}
        _add_releases(rank, calls, of[RELEASE], of[FAULT], known, releases)
        _add_prefetches(rank, calls, of[PREFETCH], known, prefetches)
        for which, count, time in ((FAULT, "faults", "stopped"), (HELP, "helps", "helped")):
            length = int((rank.end[of[which]] - rank.begin[of[which]]).sum())
            setattr(found, count, getattr(found, count) + len(of[which]))
            setattr(found, time, getattr(found, time) + length)
    if not seen:
        return None
    found.rows = [Row(site, call) for site, call in known]
    _sum_up(found.rows, releases.joined(), prefetches.joined())
    found.rows.sort(key=lambda row: (-row.hidden - row.spared, -row.lasted, row.site.text, row.call))
    return found


def _threads(rank: Rank, events: np.ndarray) -> np.ndarray:
    """Of the thread in whose call something began; -1 unknown."""
    told = rank.events["tag"][events].astype(np.int64)
    return np.where((told >= 0) & (told < ANY_THREAD), told, -1)


def _rows(rank: Rank, calls: _Calls, held: np.ndarray, known: dict[tuple[Site, str], int]) -> np.ndarray:
    """The row of each of these calls."""
    events = rank.events[["kind", "site"]][calls.events[np.maximum(held, 0)]] if len(calls.events) else None
    if events is None:
        return np.full(len(held), known.setdefault((Site(), ""), len(known)))
    key = np.where(held < 0, -1, events["kind"].astype(np.int64) << 32 | events["site"])
    different, which = np.unique(key, return_inverse=True)
    numbers = []
    for one in different.tolist():
        place = (rank.sites.get(one & 0xFFFFFFFF, Site()), rank.name(one >> 32)) if one >= 0 else (Site(), "")
        numbers.append(known.setdefault(place, len(known)))
    return np.array(numbers, np.int64)[which]


def _add_releases(
    rank: Rank, calls: _Calls, releases: np.ndarray, faults: np.ndarray, known: dict, found: _Columns
) -> None:
    if not len(releases):
        return
    begin, end = rank.begin[releases], rank.end[releases]
    thread = _threads(rank, releases)
    held = calls.holding(thread, begin)
    returned = np.where(held < 0, begin, calls.end[np.maximum(held, 0)]) if len(calls.events) else begin
    start = np.clip(returned, begin, end)
    stop_begin, stop_end = rank.begin[faults], rank.end[faults]
    hidden = np.zeros(len(releases), np.int64)
    for one in np.unique(thread).tolist():
        mine = np.flatnonzero(thread == one)
        in_mpi = slice(None) if one < 0 else calls.thread == one
        hidden[mine] = free_time(
            start[mine],
            end[mine],
            np.concatenate([calls.begin[in_mpi], stop_begin]),
            np.concatenate([calls.end[in_mpi], stop_end]),
        )
    first, count, stopped = _touches(rank, releases, faults)
    touched = count > 0
    first = np.where(touched, np.maximum(first - start, 0), -1)
    bytes_ = np.minimum(rank.events["bytes"][releases], np.uint64(1 << 60)).astype(np.int64)
    found.parts.append((_rows(rank, calls, held, known), bytes_, end - start, hidden, first, count, stopped))


def _touches(rank: Rank, releases: np.ndarray, faults: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each release: its first fault's begin, how many it has, and how long they lasted. Several receives may have
    their pages closed as one: the first of them has the faults, since nobody knows whose page it was."""
    closing, of_faults = rank.events["request"][releases], rank.events["request"][faults]
    order = np.lexsort((rank.begin[faults], of_faults))
    number, begin = of_faults[order], rank.begin[faults][order]
    before = np.concatenate(([0], np.cumsum((rank.end[faults] - rank.begin[faults])[order])))
    low, high = np.searchsorted(number, closing, "left"), np.searchsorted(number, closing, "right")
    alone = np.zeros(len(releases), bool)
    alone[np.unique(closing, return_index=True)[1]] = True
    high = np.where(alone & (closing > 0), high, low)
    first = np.append(begin, 0)[np.minimum(low, len(begin))]
    return first, high - low, before[high] - before[low]


def _add_prefetches(rank: Rank, calls: _Calls, events: np.ndarray, known: dict, found: _Columns) -> None:
    if not len(events):
        return
    held = calls.holding(_threads(rank, events), rank.begin[events])
    late = calls.holding(np.full(len(events), -1, np.int64), rank.end[events])
    held = np.where(held < 0, late, held)
    size = np.minimum(rank.events["bytes"][events], np.uint64(1 << 60)).astype(np.int64)
    spared = np.minimum(rank.events["request"][events].astype(np.int64) * 1000, rank.end[events] - rank.begin[events])
    found.parts.append((_rows(rank, calls, held, known), size, np.where(size > 0, spared, 0)))


def merged(begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same times as intervals that do not meet, in their order."""
    order = np.argsort(begin, kind="stable")
    begin, reach = begin[order], np.maximum.accumulate(end[order])
    new = np.ones(len(begin), bool)
    new[1:] = begin[1:] > reach[:-1]
    first = np.flatnonzero(new)
    return begin[first], reach[np.append(first[1:], len(begin)) - 1] if len(begin) else reach


def free_time(begin: np.ndarray, end: np.ndarray, busy_begin: np.ndarray, busy_end: np.ndarray) -> np.ndarray:
    """Of each interval: its time outside of the busy ones, shared with the intervals that lie there, too."""
    points = np.unique(np.concatenate([begin, end]))
    at, until = np.searchsorted(points, begin), np.searchsorted(points, end)
    count = len(points)
    at_once = np.cumsum(np.bincount(at, minlength=count) - np.bincount(until, minlength=count))[:-1]
    busy_begin, busy_end = merged(busy_begin, busy_end)
    before = np.concatenate(([0], np.cumsum(busy_end - busy_begin)))
    last = np.searchsorted(busy_begin, points, "right") - 1
    safe = np.maximum(last, 0)
    if len(busy_begin):
        busy = np.where(last < 0, 0, before[safe] + np.minimum(points, busy_end[safe]) - busy_begin[safe])
    else:
        busy = np.zeros(count, np.int64)
    free = np.diff(points) - np.diff(busy)
    share = np.where(at_once > 0, free / np.maximum(at_once, 1), 0.0)
    total = np.concatenate(([0.0], np.cumsum(share)))
    return np.minimum(np.rint(total[until] - total[at]).astype(np.int64), end - begin)


def _sum_up(rows: list[Row], releases: dict[str, np.ndarray], prefetches: dict[str, np.ndarray]) -> None:
    def total(of: dict[str, np.ndarray], column: np.ndarray | None = None) -> list[int]:
        sums = np.zeros(len(rows), np.int64)
        np.add.at(sums, of["row"], 1 if column is None else column)
        return sums.tolist()

    touched = releases["first"] >= 0
    columns = {
        "released": total(releases),
        "came": total(releases, releases["came"]),
        "lasted": total(releases, releases["lasted"]),
        "hidden": total(releases, releases["hidden"]),
        "touched": total(releases, touched),
        "faults": total(releases, releases["faults"]),
        "stopped": total(releases, releases["stopped"]),
        "prefetches": total(prefetches),
        "useful": total(prefetches, prefetches["bytes"] > 0),
        "prefetched": total(prefetches, prefetches["bytes"]),
        "spared": total(prefetches, prefetches["spared"]),
    }
    for name, values in columns.items():
        for row, value in zip(rows, values):
            setattr(row, name, value)
    for number in np.unique(releases["row"][touched]).tolist():
        some = releases["first"][touched & (releases["row"] == number)]
        rows[number].first_touch = int(np.median(some))


# ---- for programs -------------------------------------------------------------------------------
NUMBERS = (
    "released", "came", "lasted", "hidden", "touched", "first_touch", "faults", "stopped", "prefetches", "useful",
    "prefetched", "spared",
)  # fmt: skip
TOTALS = tuple(name for name in NUMBERS if name not in ("first_touch", "faults", "stopped"))


def as_json(found: Library | None) -> dict[str, Any] | None:
    """Part of the formats headway-waiting and headway-advice; names are those of Library and Row, times in ns."""
    if found is None:
        return None
    return {
        **{name: found.sum(name) for name in TOTALS},
        **{name: getattr(found, name) for name in ("faults", "stopped", "helps", "helped")},
        "sites": [
            {
                "file": row.site.file,
                "line": row.site.line,
                "function": row.site.function,
                "module": row.site.module,
                "offset": row.site.offset,
                "call": row.call,
                **{name: getattr(row, name) for name in NUMBERS},
            }
            for row in found.rows
        ],
    }


def write_csv(found: Library, path: Path) -> None:
    """A line a call site; times in ns."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["where", "function", "call", *NUMBERS])
        for row in found.rows:
            names = (clean(text).lstrip("=+-@") for text in (row.site.text, row.site.function, row.call))
            writer.writerow([*names, *("" if (v := getattr(row, name)) is None else v for name in NUMBERS)])


# ---- words --------------------------------------------------------------------------------------
def lines(found: Library) -> list[str]:
    """What it did on all ranks, a sentence each."""
    told = []
    if found.sum("released"):
        told.append(
            f"early release: {_count(found.sum('released'), 'receive')} returned before their data "
            f"({bytes_text(found.sum('came'))}): {_hid(found, 'hidden')}, "
            f"{share_text(found.sum('hidden'), found.sum('lasted'))} of the time until all was there"
        )
    if found.faults:
        told.append(
            f"touched too soon: {_count(found.faults, 'page')}, {time_text(found.stopped)} stopped; of "
            f"{_count(found.sum('released'), 'release')} {count_text(found.sum('touched'))} were touched"
        )
    if found.sum("prefetches"):
        told.append(
            f"prefetching: {_count(found.sum('useful'), 'message')} of {count_text(found.sum('prefetches'))} asked for came in part "
            f"before they were sent ({bytes_text(found.sum('prefetched'))}): {_hid(found, 'spared')}"
        )
    if found.helps:
        told.append(
            f"message thread: moved data for {time_text(found.helped)}, {share_text(found.helped, found.whole)} of all rank time"
        )
    return told


def _hid(found: Library, name: str) -> str:
    return f"{time_text(found.sum(name))} hidden, {share_text(found.sum(name), found.whole)} of all rank time"


def _count(number: int, what: str) -> str:
    return f"{count_text(number)} {what}{'' if number == 1 else 's'}"


def cells(row: Row) -> list[str]:
    """As the columns of HEADS."""
    early = row.released > 0
    return [
        clean(f"{row.site.text} {row.site.function}".strip()) if row.call else "unknown",
        clean(row.call),
        count_text(row.released) if early else "",
        f"{time_text(row.hidden)} ({share_text(row.hidden, row.lasted)})" if early else "",
        "" if not early else "never too soon" if row.first_touch is None else time_text(row.first_touch),
        f"{count_text(row.touched)} of {count_text(row.released)}" if early else "",
        time_text(row.stopped) if row.faults else "",
        f"{count_text(row.useful)} of {count_text(row.prefetches)}" if row.prefetches else "",
        time_text(row.spared) if row.prefetches else "",
    ]


def numbers(row: Row) -> list[float | None]:
    """By which the columns of HEADS are sorted; None for those of words."""
    first = -1 if row.first_touch is None else row.first_touch
    return [None, None, row.released, row.hidden, first, row.touched, row.stopped, row.useful, row.spared]


HEADS = ("where", "call", "early", "hid", "first touch after", "touched", "stopped", "prefetched", "hid")


def words(found: Library | None, most: int = 10) -> RenderableType | None:
    """For a terminal; None where there is nothing to tell."""
    if found is None or not (told := lines(found)):
        return None
    table = Table(box=None, pad_edge=False)
    for number, head in enumerate(HEADS):
        table.add_column(head, justify="left" if number < 2 else "right", overflow="fold")
    for row in found.rows[:most]:
        table.add_row(*map(Text, cells(row)))
    return Group(Text("Our library, by itself:"), *(Text(f"  {text}") for text in told), *([table] if found.rows else []))
