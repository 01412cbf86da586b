"""What a page shows of a run, in bounded size: shares of time by rank, time and class, the longest waits, tables.

Made rank by rank, and of a large one part by part, so that only these calls are in memory at once. Rows are the run's
ranks in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from headway.record import calls, classes, columns, library, model
from headway.record.calls import Calls, Ends, Track, arrange, comm_text, site_text, world_ranks
from headway.record.model import Rank, Run
from headway.record.words import clean

if TYPE_CHECKING:
    from headway.record.detail import Stretch

CELLS = 1 << 22  # of time bins, all ranks together
MOST_BINS = 4096
LEAST_BINS = 64
ALL_UP_TO = 200_000  # events of a run of which all are kept
MOST_WAITS = 50_000  # else the longest
MOST_MESSAGES = 20_000
MESSAGES_SEEN = 1_000_000  # of which the longest-waiting are looked for
MOST_TEXT = 1_000_000  # characters of all names
MATRIX = 256  # rows at most; ranks beside each other share one where there are more
# Families that may wait, where nobody has told the classes.
MAY_WAIT = ("send", "recv", "sendrecv", "wait", "probe", "coll", "comm", "finalize", "rma")

KEPT = np.dtype(
    [
        ("row", "<i4"),
        ("thread", "u1"),
        ("depth", "u1"),
        ("what", "u1"),  # the track's kind
        ("class", "u1"),
        ("waits", "u1"),
        ("name", "<u4"),
        ("site", "<u4"),
        ("comm", "<u4"),
        ("peer", "<i4"),
        ("world", "<i4"),  # rank of the peer there, -1 unknown
        ("tag", "<i4"),
        ("bytes", "<f8"),
        ("begin", "<i8"),
        ("time", "<i8"),
    ]
)
ARROW = np.dtype(
    [
        ("source", "<i4"),  # rows
        ("target", "<i4"),
        ("sent", "<i8"),  # begin of the send's call
        ("came", "<i8"),  # end of the call in which it was received
        ("waited", "<i8"),  # of the longer one of the two calls
        ("bytes", "<f8"),
        ("tag", "<i4"),
        ("comm", "<u4"),
    ]
)


class Texts:
    """Strings by number; 0 is none. Of too many, the rest are one."""

    def __init__(self, room: int = MOST_TEXT) -> None:
        self.all: list[str] = [""]
        self.numbers: dict[str, int] = {"": 0}
        self.room = room

    def number(self, text: str) -> int:
        text = clean(text)
        found = self.numbers.get(text)
        if found is None:
            if len(text) + 1 > self.room:
                text = "others"
                if text in self.numbers:
                    return self.numbers[text]
            self.room -= len(text) + 1
            found = self.numbers[text] = len(self.all)
            self.all.append(text)
        return found


@dataclass
class Site:
    """One call at one place in the program, all ranks together."""

    name: int
    site: int
    count: int = 0
    time: int = 0
    bytes: int = 0
    longest: int = 0
    row: int = 0  # of the longest one
    begin: int = 0
    by_class: np.ndarray = field(default_factory=lambda: np.zeros(classes.COUNT))


@dataclass
class Summary:
    duration: int
    size: int  # of the world, as far as recorded
    ranks: np.ndarray  # of the world, by row
    hosts: list[str]
    bins: int
    told: bool  # classes are known
    shares: np.ndarray  # uint8, by class (but computing), row and bin: of 255
    totals: np.ndarray  # ns by row and class, all threads; computing is what is left
    threads: np.ndarray  # by row
    calls: np.ndarray  # by row
    events: int
    all_kept: bool
    kept: np.ndarray  # of KEPT, by row and begin
    arrows: np.ndarray  # of ARROW, the longest-waiting first
    messages: int
    matrix: np.ndarray  # messages, bytes, ns waited: by sender and receiver
    group: int  # ranks in one row of it
    sites: list[Site]  # most time first
    texts: Texts
    notes: list[str]
    library: library.Library | None  # what our library did by itself
    detail: list[Stretch] = field(default_factory=list)  # where each call is held, if not all are
    of_run: list[str] = field(default_factory=list)  # sentences on hidden communication and efficiency (by_site), if made

    @property
    def in_mpi(self) -> float:
        """Share of all time."""
        whole = float(self.threads.sum()) * self.duration
        return float(self.totals[:, classes.IN_MPI : classes.REST + 1].sum()) / whole if whole else 0.0

    def by_class(self) -> np.ndarray:
        """ns of all ranks."""
        return self.totals.sum(axis=0)

    def waits(self, most: int = 100) -> np.ndarray:
        """The longest ones, of those that are kept."""
        found = self.kept[self.kept["waits"] > 0]
        return found[np.argsort(-found["time"], kind="stable")[:most]]


def bins_for(rows: int) -> int:
    bins = MOST_BINS
    while bins > LEAST_BINS and bins * rows > CELLS:
        bins //= 2
    return bins


def in_bins(begin: np.ndarray, end: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """How much of each bin the calls cover, which are sorted and do not overlap."""
    at = np.searchsorted(begin, edges, "right") - 1
    before = np.concatenate(([0], np.cumsum(end - begin)))
    safe = np.maximum(at, 0)
    covered = np.where(at < 0, 0, before[safe] + np.clip(edges - begin[safe], 0, end[safe] - begin[safe]))
    return np.diff(covered)


def longest(time: np.ndarray, most: int) -> np.ndarray:
    """Where the longest ones are, in order; of equal ones the first."""
    if len(time) <= most:
        return np.arange(len(time))
    least = np.partition(time, len(time) - most)[len(time) - most]
    longer = np.flatnonzero(time > least)
    return np.sort(np.concatenate((longer, np.flatnonzero(time == least)[: most - len(longer)])))


def may_wait(rank: Rank, track: Track, what: np.ndarray, told: bool) -> np.ndarray:
    """Of a track's calls, of these classes."""
    if track.what not in (calls.CALLS, calls.CROSSING):
        return np.zeros(len(what), bool)
    return what >= classes.LATE_SENDER if told else calls.with_family(rank, *MAY_WAIT)[rank.events["kind"][track.index]]


def rows_of(
    texts: Texts, row: int, rank: Rank, track: Track, what: np.ndarray, told: bool, index: np.ndarray
) -> np.ndarray:
    """Some calls of a track as a page keeps them. `what`: the class of each call of the track."""
    e = rank.events[track.index[index]]
    found = np.zeros(len(index), KEPT)
    found["row"], found["thread"], found["what"] = row, track.thread, track.what
    found["depth"] = np.minimum(track.depth[index], 255)
    fixed = {calls.NO_CORE: classes.NO_CORE, calls.OFF: classes.OFF}.get(track.what)
    found["class"] = what[index] if fixed is None else fixed
    found["waits"] = may_wait(rank, track, what, told)[index]
    for column, text_of in (("kind", calls.name), ("site", site_text), ("comm", comm_text)):
        different, which = np.unique(e[column], return_inverse=True)
        numbers = np.array([texts.number(text_of(rank, v)) for v in different.tolist()], np.uint32)
        found["name" if column == "kind" else column] = numbers[which]
    found["peer"], found["tag"], found["bytes"] = e["peer"], calls.tags(e), e["bytes"]
    found["world"] = world_ranks(rank, e["comm"], e["peer"].astype(np.int64))
    found["begin"], found["time"] = track.begin[index], track.end[index] - track.begin[index]
    return found


def thinned(messages: np.ndarray, step: int, run: Run) -> np.ndarray:
    """Every so many-th."""
    found, at = columns.room(-(-len(messages) // step), messages.dtype, run.spill), 0
    wide = max(1, columns.CHUNK // step) * step
    for low in range(0, len(messages), wide):
        some = messages[low : low + wide : step]
        found[at : at + len(some)] = some
        at += len(some)
        columns.rest(messages, found)
    return found


class _Collector:
    def __init__(self, run: Run, told: bool, all_up_to: int, most_waits: int, bins: int | None):
        ranks = [(r.rank, r.host, len(r.events), columns.largest(r.end)) for r in run.ranks]
        rows = len(ranks)
        self.duration = min(calls.LATEST, max([1, *(end for *_, end in ranks)]))
        self.ranks = np.array([r for r, *_ in ranks], np.int64)
        self.hosts = [clean(h) for _, h, *_ in ranks]
        self.size = int(self.ranks.max()) + 1 if rows else 0
        self.events = sum(n for _, _, n, _ in ranks)
        self.bins = bins or bins_for(max(1, rows))
        self.edges = np.linspace(0, self.duration, self.bins + 1).astype(np.int64)
        self.shares = np.zeros((classes.COUNT - 1, rows, self.bins), np.uint8)
        self.totals = np.zeros((rows, classes.COUNT))
        self.threads = np.ones(rows, np.int64)
        self.calls = np.zeros(rows, np.int64)
        self.told = told
        self.texts = Texts()
        self.sites: dict[tuple[int, int], Site] = {}
        self.all_kept = self.events <= all_up_to
        self.most_waits = most_waits
        self.kept: list[np.ndarray] = []
        self.held = 0
        self.notes = [clean(n, 500) for n in run.notes]

        m = run.messages
        self.step = max(1, -(-len(m) // MESSAGES_SEEN))
        seen = thinned(m, self.step, run) if self.step > 1 else m
        if self.step > 1:
            self.notes.append(f"Arrows and waits by pair are of one in {self.step} of {len(m):,} messages.")
        self.seen = seen
        self.sent_ends, self.came_ends = Ends(run, seen, "source", "sent"), Ends(run, seen, "target", "came")
        self.sent = np.full(len(seen), -1, np.int64)
        self.came = np.full(len(seen), -1, np.int64)
        self.waited = np.zeros(len(seen), np.int64)

    def add(self, row: int, rank: Rank, given: np.ndarray | None) -> None:
        classes.fitting(rank, given)
        time = np.zeros((classes.COUNT, self.bins))
        threads: set[int] = set()
        for first, part in calls.parts(rank):
            of = arrange(part)
            kind = classes.class_of(part, None if given is None else given[first : first + len(part.events)])
            main = [t for t in of.tracks if t.what == calls.CALLS and t.lane == 0]
            off = [t for t in of.tracks if t.what == calls.OFF and t.lane == 0]
            threads |= {t.thread for t in main}
            for track, fixed in [(t, None) for t in main] + [(t, classes.OFF) for t in off]:
                top = track.depth == 0
                begin, end = track.begin[top], track.end[top]
                what = kind[track.index[top]] if fixed is None else np.full(int(top.sum()), fixed, np.uint8)
                for one in np.unique(what).tolist():
                    here = what == one
                    time[one] += in_bins(begin[here], end[here], self.edges)
                    self.totals[row, one] += int((end[here] - begin[here]).sum())
            self._messages(row, part, of, first)
            self._sites(row, part, of, kind)
            self._keep(row, part, of, kind)
            if given is not None:
                columns.rest(given)
        self.threads[row] = max(1, len(threads))
        whole = np.maximum(np.diff(self.edges), 1) * self.threads[row]
        self.shares[:, row] = np.clip(np.rint(time[1:] * 255 / whole), 0, 255).astype(np.uint8)

    def _messages(self, row: int, rank: Rank, of: Calls, first: int) -> None:
        begin, end = calls.times(rank)
        for ends, at, edge in ((self.sent_ends, self.sent, begin), (self.came_ends, self.came, end)):
            owners, flow = ends.of(row, of, first)
            which = flow.astype(np.int64) - 1
            at[which] = edge[owners]
            self.waited[which] = np.maximum(self.waited[which], end[owners] - begin[owners])

    def _sites(self, row: int, rank: Rank, of: Calls, kind: np.ndarray) -> None:
        tracks = [t for t in of.tracks if t.what in (calls.CALLS, calls.CROSSING)]
        if not tracks:
            return
        index = np.concatenate([t.index for t in tracks])
        begin = np.concatenate([t.begin for t in tracks])
        took = np.concatenate([t.end for t in tracks]) - begin
        self.calls[row] += len(index)
        e = rank.events
        key = e["kind"][index].astype(np.int64) << 32 | e["site"][index]
        different, which = np.unique(key, return_inverse=True)
        count = np.bincount(which)
        total = np.bincount(which, took)
        size = np.bincount(
            which, e["bytes"][index].astype(np.float64) * (e["flags"][index] & (model.SEND | model.COLLECTIVE) > 0)
        )
        split = np.bincount(
            which * classes.COUNT + kind[index], took, minlength=len(different) * classes.COUNT
        ).reshape(-1, classes.COUNT)
        order = np.lexsort((begin, took, which))
        top = order[np.searchsorted(which[order], np.arange(len(different)), "right") - 1]
        for at, one in enumerate(different.tolist()):
            name = self.texts.number(calls.name(rank, one >> 32))
            place = self.texts.number(site_text(rank, one & 0xFFFFFFFF))
            site = self.sites.get((name, place))
            if site is None:
                site = self.sites[name, place] = Site(name, place)
            site.count += int(count[at])
            site.time += int(total[at])
            site.bytes += int(size[at])
            site.by_class += split[at]
            most, then = int(took[top[at]]), int(begin[top[at]])
            if (most, row, then) >= (site.longest, site.row, site.begin):
                site.longest, site.row, site.begin = most, row, then

    def _keep(self, row: int, rank: Rank, of: Calls, kind: np.ndarray) -> None:
        for track in of.tracks:
            what = kind[track.index]
            index = np.arange(len(what))
            if not self.all_kept:
                index = index[may_wait(rank, track, what, self.told)]
                index = index[longest(track.end[index] - track.begin[index], self.most_waits)]
            if not len(index):
                continue
            self.kept.append(rows_of(self.texts, row, rank, track, what, self.told, index))
            self.held += len(index)
            if not self.all_kept and self.held > 4 * self.most_waits:
                self._trim()

    def _trim(self) -> None:
        every = np.concatenate(self.kept)
        every = every[longest(every["time"], self.most_waits)]
        self.kept, self.held = [every], len(every)

    def _arrows(self, run: Run) -> np.ndarray:
        known = np.flatnonzero((self.sent >= 0) & (self.came >= 0))
        known = known[longest(self.waited[known], MOST_MESSAGES)]
        known = known[np.argsort(-self.waited[known], kind="stable")]
        m = columns.take(self.seen, known)
        order = np.argsort(self.ranks, kind="stable")
        found = np.zeros(len(known), ARROW)
        for side in ("source", "target"):
            if len(known):
                found[side] = order[np.searchsorted(self.ranks[order], m[side])]
        found["sent"], found["came"], found["waited"] = self.sent[known], self.came[known], self.waited[known]
        found["bytes"], found["tag"] = m["bytes"], m["tag"]
        names = [self.texts.number(c.name or f"communicator {i}") for i, c in enumerate(run.comms)]
        names.append(0)
        found["comm"] = np.array(names, np.uint32)[np.minimum(m["comm"], len(names) - 1)]
        return found

    def _matrix(self, run: Run) -> tuple[np.ndarray, int]:
        group = max(1, -(-self.size // MATRIX))
        wide = max(1, -(-self.size // group))
        found = np.zeros((3, wide * wide))
        for start in range(0, len(run.messages), columns.CHUNK):
            m = run.messages[start : start + columns.CHUNK]
            good = (m["source"] >= 0) & (m["source"] < self.size) & (m["target"] >= 0) & (m["target"] < self.size)
            key = m["source"][good].astype(np.int64) // group * wide + m["target"][good] // group
            found[0] += np.bincount(key, minlength=wide * wide)
            found[1] += np.bincount(key, m["bytes"][good].astype(np.float64), minlength=wide * wide)
            columns.rest(run.messages)
        for some in columns.pieces(self.seen):
            known = np.flatnonzero((self.sent[some] >= 0) & (self.came[some] >= 0))
            m = self.seen[some][known]
            key = m["source"].astype(np.int64) // group * wide + m["target"] // group
            found[2] += np.bincount(key, self.waited[some][known], minlength=wide * wide) * self.step
        return found.reshape(3, wide, wide), group

    def done(self, run: Run) -> Summary:
        if self.kept:
            if self.all_kept:
                self.kept = [np.concatenate(self.kept)]
            else:
                self._trim()
        kept = self.kept[0] if self.kept else np.zeros(0, KEPT)
        kept = kept[np.lexsort((kept["depth"], kept["begin"], kept["row"]))]
        arrows = self._arrows(run)
        matrix, group = self._matrix(run)
        return Summary(
            self.duration,
            self.size,
            self.ranks,
            self.hosts,
            self.bins,
            self.told,
            self.shares,
            self.totals,
            self.threads,
            self.calls,
            self.events,
            self.all_kept,
            kept,
            arrows,
            len(run.messages),
            matrix,
            group,
            sorted(self.sites.values(), key=lambda s: -s.time),
            self.texts,
            self.notes,
            library.report(run),
        )


def summarise(
    run: Run,
    given: Sequence[np.ndarray] | None = None,
    all_up_to: int = ALL_UP_TO,
    most_waits: int = MOST_WAITS,
    bins: int | None = None,
) -> Summary:
    """`given`: for each of the run's ranks, the class of each event."""
    if given is not None and len(given) != len(run.ranks):
        raise ValueError(f"classes of {len(given)} ranks for a run of {len(run.ranks)}")
    collector = _Collector(run, given is not None, all_up_to, most_waits, bins)
    for row, rank in enumerate(run.ranks):
        collector.add(row, rank, None if given is None else given[row])
    return collector.done(run)
