"""What our library did by itself, as its events in a recording tell: receives that returned early, who touched their
pages too soon, messages that were asked for before they were sent, the message thread's work. By call site and whole.

A release lasts from the return of its receive until its data were whole; without it the receive would have waited as
long. Of that time is hidden what its thread spent outside of MPI and not stopped at a closed page. Where several
releases of a thread last at once, that is shared among them: what they hide together is there once. System calls that
wait for closed pages count as computing: no event tells of them.

A prefetch hid what its bytes would have taken on the wire, as the library knows the link's rate, and no more than it
stood. What it brought in vain, and messages fetched before their receive, are not in that.

Memory: a part of a rank's calls (see cuts), and with it the releases and faults that last at once. What is open for
so long that more than columns.CHUNK of them come together is parted: what such releases share, and faults behind the
place, are then not seen.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headway.record import columns, model
from headway.record.cuts import cuts
from headway.record.model import FAULT, HELP, PREFETCH, RELEASE, Rank, Run, Site
from headway.record.words import bytes_text, clean, count_text, share_text, time_text

THREADS = 256  # that a record can name
NESTED = 8  # calls in calls, in which one is looked for
SLACK = 1_000_000  # ns: a fault may be noted so long after its release
MOST_TOUCHES = 1 << 14  # of a row, of which the median is known; of more, of some of them
LATEST = np.iinfo(np.int64).max


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


OWN = np.dtype(
    [("kind", "<u2"), ("thread", "<i8"), ("number", "<u4"), ("bytes", "<i8"), ("begin", "<i8"), ("end", "<i8")]
)


def _own(rank: Rank, kinds: tuple[int, ...]) -> np.ndarray:
    """Events of these kinds. `thread`: in whose call it began, -1 unknown."""
    some = np.flatnonzero(np.isin(rank.events["kind"], kinds))
    events = rank.events[some]
    found = np.empty(len(some), OWN)
    told = events["tag"].astype(np.int64)
    found["kind"], found["number"] = events["kind"], events["request"]
    found["thread"] = np.where((told >= 0) & (told < THREADS), told, -1)
    found["bytes"] = np.minimum(events["bytes"], np.uint64(1 << 60))
    found["begin"], found["end"] = rank.begin[some], rank.end[some]
    return found


class _Calls:
    """The calls of a part of a rank, by thread and time."""

    def __init__(self, rank: Rank) -> None:
        events = rank.events
        some = (events["kind"] < min(len(rank.families), model.COMPLETION)) & (events["flags"] & model.IN_VAIN == 0)
        some = np.flatnonzero(some)
        self.place = events["kind"][some].astype(np.int64) << 32 | events["site"][some]
        self.thread = events["thread"][some].astype(np.int64)
        self.begin = np.maximum(rank.begin[some], 0)
        self.end = np.maximum(rank.end[some], self.begin)
        self.span = int(self.end.max(initial=0)) + 1
        key = self.thread * self.span + self.begin
        self.order = np.argsort(key, kind="stable")
        self.key = key[self.order]

    def holding(self, thread: np.ndarray, time: np.ndarray) -> np.ndarray:
        """The call of that thread, or of any (-1), in which that time lies, the last one of several; -1 for none."""
        found = np.full(len(time), -1, np.int64)
        told, asked = np.flatnonzero(thread >= 0), np.flatnonzero(thread < 0)
        if not len(self.begin):
            return found
        found[told] = self._holding(thread[told], time[told])
        for one in np.unique(self.thread).tolist() if len(asked) else ():
            which = self._holding(np.full(len(asked), one), time[asked])
            old = found[asked]
            better = (which >= 0) & ((old < 0) | (self.begin[which] >= self.begin[old]))
            found[asked[better]] = which[better]
        return found

    def _holding(self, thread: np.ndarray, time: np.ndarray) -> np.ndarray:
        found = np.full(len(time), -1, np.int64)
        at = np.searchsorted(self.key, thread * self.span + np.clip(time, 0, self.span - 1), "right") - 1
        for back in range(NESTED):
            which = self.order[np.maximum(at - back, 0)]
            good = (found < 0) & (at >= back) & (self.thread[which] == thread) & (self.end[which] >= time)
            found[good] = which[good]
        return found


class _Parts:
    """A rank, part by part."""

    def __init__(self, rank: Rank) -> None:
        edges = cuts(rank, columns.CHUNK)
        self.rank, self.spans = rank, [slice(low, high) for low, high in zip(edges, edges[1:])]
        self.first = np.full(len(self.spans), LATEST)  # begin of the first call of each, and end of the last one
        self.last = np.full(len(self.spans), -1)
        self.least = np.full(len(self.spans), LATEST)  # begin of the first release or fault
        self.made: dict[int, _Calls] = {}
        for number, some in enumerate(self.spans):
            begin, kind = rank.begin[some], rank.events["kind"][some]
            called, own = kind < model.COMPLETION, np.isin(kind, (RELEASE, FAULT))
            self.first[number] = begin[called].min(initial=LATEST)
            self.last[number] = rank.end[some][called].max(initial=-1)
            self.least[number] = begin[own].min(initial=LATEST)
            self.rest()

    def rest(self) -> None:
        columns.rest(self.rank.events, self.rank.begin, self.rank.end)

    def of(self, number: int) -> Rank:
        some, rank = self.spans[number], self.rank
        return replace(rank, events=rank.events[some], begin=rank.begin[some], end=rank.end[some])

    def calls(self, begin: int, end: int) -> Iterator[_Calls]:
        """Of the parts that touch that time."""
        for number in np.flatnonzero((self.first <= end) & (self.last >= begin)).tolist():
            if number not in self.made:
                while len(self.made) > 1:
                    del self.made[next(iter(self.made))]
                self.made[number] = _Calls(self.of(number))
                self.rest()
            yield self.made[number]

    def holding(self, thread: np.ndarray, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The call of that thread in which that time lies: what and where it is, -1 for none, and its end."""
        place, begin, end, by = (np.full(len(time), -1, np.int64) for _ in range(4))
        for calls in self.calls(int(time.min(initial=0)), int(time.max(initial=0))):
            which = calls.holding(thread, time)
            there = np.flatnonzero(which >= 0)
            new, one = calls.begin[which[there]], calls.thread[which[there]]
            there = there[(new > begin[there]) | (new == begin[there]) & (one >= by[there])]
            which = which[there]
            place[there], begin[there] = calls.place[which], calls.begin[which]
            end[there], by[there] = calls.end[which], calls.thread[which]
        return place, end

    def busy(self, thread: int, points: np.ndarray, stops: np.ndarray) -> np.ndarray:
        """ns up to each of these times in which that thread was in MPI or stopped; -1: any thread."""
        alone = time_in(points, stops["begin"], stops["end"])
        found = alone.copy()
        for calls in self.calls(int(points[0]), int(points[-1])):
            some = slice(None) if thread < 0 else calls.thread == thread
            begin = np.concatenate([calls.begin[some], stops["begin"]])
            found += time_in(points, begin, np.concatenate([calls.end[some], stops["end"]])) - alone
        return found

    def prefetches(self) -> Iterator[np.ndarray]:
        for number in range(len(self.spans)):
            yield _own(self.of(number), (PREFETCH,))
            self.rest()

    def releases(self) -> Iterator[np.ndarray]:
        """With their faults, in time. What lasts at once comes at once."""
        later = np.append(np.minimum.accumulate(self.least[::-1])[::-1][1:], LATEST).tolist()
        held = np.zeros(0, OWN)
        for number, limit in enumerate(later):
            held = np.concatenate([held, _own(self.of(number), (RELEASE, FAULT))])
            self.rest()
            held = held[np.argsort(held["begin"], kind="stable")]
            behind = np.minimum(np.append(held["begin"][1:], LATEST)[: len(held)], limit)
            count, reach = 0, np.maximum.accumulate(held["end"])
            for slack in (SLACK, 0):
                ready = np.flatnonzero(reach + slack < behind)
                count = int(ready[-1]) + 1 if len(ready) else 0
                if len(held) - count <= columns.CHUNK:
                    break
            if len(held) - count > columns.CHUNK or limit == LATEST:
                count = len(held)
            if count:
                yield held[:count]
            held = held[count:]


class _Sample:
    """Values, or some of very many."""

    def __init__(self) -> None:
        self.values, self.count, self.step = np.zeros(0, np.int64), 0, 1

    def add(self, values: np.ndarray) -> None:
        self.values = np.concatenate([self.values, values[-self.count % self.step :: self.step]])
        self.count += len(values)
        while len(self.values) > MOST_TOUCHES:
            self.values, self.step = self.values[::2], 2 * self.step


class _Rows:
    """What is known of each call at each place."""

    def __init__(self) -> None:
        self.known: dict[tuple[Site, str], Row] = {}
        self.touches: dict[tuple[Site, str], _Sample] = {}

    def add(self, rank: Rank, place: np.ndarray, first: np.ndarray | None = None, **sums: np.ndarray) -> None:
        """Of releases or prefetches in these calls. `first`: touches, -1 for none."""
        different, which = np.unique(place, return_inverse=True)
        totals = {}
        for name, values in sums.items():
            totals[name] = np.zeros(len(different), np.int64)
            np.add.at(totals[name], which, values)
        for at, one in enumerate(different.tolist()):
            key = (rank.sites.get(one & 0xFFFFFFFF, Site()), rank.name(one >> 32)) if one >= 0 else (Site(), "")
            row = self.known.setdefault(key, Row(*key))
            for name, total in totals.items():
                setattr(row, name, getattr(row, name) + int(total[at]))
            if first is not None:
                self.touches.setdefault(key, _Sample()).add(first[(which == at) & (first >= 0)])

    def rows(self) -> list[Row]:
        """Most hidden first."""
        for key, touches in self.touches.items():
            if len(touches.values):
                self.known[key].first_touch = int(np.median(touches.values))
        return sorted(
            self.known.values(), key=lambda row: (-row.hidden - row.spared, -row.lasted, row.site.text, row.call)
        )


def report(run: Run) -> Library | None:
    """None if the recording has no such event: it is of another MPI, or of a run in which nothing of it happened."""
    rows, found, seen = _Rows(), Library(run.duration * len(run.ranks)), False
    for rank in run.ranks:
        kinds = _counted(rank, found)
        seen |= bool(kinds)
        if not kinds & {RELEASE, PREFETCH}:
            continue
        parts = _Parts(rank)
        if RELEASE in kinds:
            for events in parts.releases():
                releases = events[events["kind"] == RELEASE]
                if len(releases):
                    _add_releases(parts, releases, events[events["kind"] == FAULT], rows)
        if PREFETCH in kinds:
            for events in parts.prefetches():
                if len(events):
                    _add_prefetches(parts, events, rows)
    if not seen:
        return None
    found.rows = rows.rows()
    return found


def _counted(rank: Rank, found: Library) -> set[int]:
    """The library's kinds of events that the rank has; what need not be understood is added up."""
    kinds: set[int] = set()
    for at in range(0, len(rank.events), columns.CHUNK):
        some = slice(at, at + columns.CHUNK)
        kind = rank.events["kind"][some]
        there = np.unique(kind[(kind >= model.LIBRARY.start) & (kind < model.LIBRARY.stop)]).tolist()
        kinds |= set(there)
        for which, count, time in ((FAULT, "faults", "stopped"), (HELP, "helps", "helped")):
            if which in there:
                here = kind == which
                length = int((rank.end[some][here] - rank.begin[some][here]).sum())
                setattr(found, count, getattr(found, count) + int(here.sum()))
                setattr(found, time, getattr(found, time) + length)
        columns.rest(rank.events, rank.begin, rank.end)
    return kinds


def _add_releases(parts: _Parts, releases: np.ndarray, faults: np.ndarray, rows: _Rows) -> None:
    begin, end, thread = releases["begin"], releases["end"], releases["thread"]
    place, returned = parts.holding(thread, begin)
    start = np.clip(np.where(place < 0, begin, returned), begin, end)
    hidden = np.zeros(len(releases), np.int64)
    for one in np.unique(thread).tolist():
        mine = np.flatnonzero(thread == one)
        hidden[mine] = free_time(start[mine], end[mine], lambda points, one=one: parts.busy(one, points, faults))
    first, count, stopped = _touches(releases, faults)
    touched = count > 0
    rows.add(
        parts.rank,
        place,
        np.where(touched, np.maximum(first - start, 0), -1),
        released=np.ones(len(releases), np.int64),
        came=releases["bytes"],
        lasted=end - start,
        hidden=hidden,
        touched=touched,
        faults=count,
        stopped=stopped,
    )


def _touches(releases: np.ndarray, faults: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each release: its first fault's begin, how many it has, and how long they lasted. Several receives may have
    their pages closed as one: the first of them has the faults, since nobody knows whose page it was."""
    closing = releases["number"]
    faults = faults[np.lexsort((faults["begin"], faults["number"]))]
    before = np.concatenate(([0], np.cumsum(faults["end"] - faults["begin"])))
    low, high = (np.searchsorted(faults["number"], closing, side) for side in ("left", "right"))
    alone = np.zeros(len(releases), bool)
    alone[np.unique(closing, return_index=True)[1]] = True
    high = np.where(alone & (closing > 0), high, low)
    first = np.append(faults["begin"], 0)[np.minimum(low, len(faults))]
    return first, high - low, before[high] - before[low]


def _add_prefetches(parts: _Parts, events: np.ndarray, rows: _Rows) -> None:
    place, _ = parts.holding(events["thread"], events["begin"])
    late, _ = parts.holding(np.full(len(events), -1, np.int64), events["end"])
    useful = events["bytes"] > 0
    spared = np.minimum(events["number"].astype(np.int64) * 1000, events["end"] - events["begin"])
    rows.add(
        parts.rank,
        np.where(place < 0, late, place),
        prefetches=np.ones(len(events), np.int64),
        useful=useful,
        prefetched=events["bytes"],
        spared=np.where(useful, spared, 0),
    )


def merged(begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same times as intervals that do not meet, in their order."""
    order = np.argsort(begin, kind="stable")
    begin, reach = begin[order], np.maximum.accumulate(end[order])
    new = np.ones(len(begin), bool)
    new[1:] = begin[1:] > reach[:-1]
    first = np.flatnonzero(new)
    return begin[first], reach[np.append(first[1:], len(begin)) - 1] if len(begin) else reach


def time_in(points: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """How much of these intervals lies before each of the points."""
    if not len(begin):
        return np.zeros(len(points), np.int64)
    begin, end = merged(begin, end)
    before = np.concatenate(([0], np.cumsum(end - begin)))
    last = np.searchsorted(begin, points, "right") - 1
    safe = np.maximum(last, 0)
    return np.where(last < 0, 0, before[safe] + np.minimum(points, end[safe]) - begin[safe])


def free_time(begin: np.ndarray, end: np.ndarray, busy: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Of each interval: its time outside of the busy ones, shared with the intervals that lie there, too. `busy`: the
    busy time up to each of some points."""
    points = np.unique(np.concatenate([begin, end]))
    at, until = np.searchsorted(points, begin), np.searchsorted(points, end)
    count = len(points)
    at_once = np.cumsum(np.bincount(at, minlength=count) - np.bincount(until, minlength=count))[:-1]
    free = np.maximum(np.diff(points) - np.diff(busy(points)), 0)
    share = np.where(at_once > 0, free / np.maximum(at_once, 1), 0.0)
    total = np.concatenate(([0.0], np.cumsum(share)))
    return np.minimum(np.rint(total[until] - total[at]).astype(np.int64), end - begin)


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
