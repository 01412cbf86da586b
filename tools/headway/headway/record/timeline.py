"""A run's events as columns over all ranks, and when each rank was in MPI.

An event's number here is that of its rank's first event plus its place among that rank's; -1 is none. A rank's place is
its position in `Run.ranks`. A call may be several events (a wait and its completions, both halves of a sendrecv, all of
a start): the first of them owns the call's time. All times of all ranks are one row of numbers: each place has a span
of its own, so that one search answers for many ranks. Memory: some 500 bytes an event, with all that waiting makes.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from headway.record import model
from headway.record.model import FAMILIES, Rank, Run, Site

CODE = {name: code for code, name in enumerate(FAMILIES)}
NO_CALL = 255
# Calls that may wait. What one-sided calls and files wait for is not known: they count as work in MPI.
BLOCKING = ("init", "finalize", "send", "recv", "sendrecv", "wait", "probe", "coll", "comm")
AT_ONCE = ("MPI_Iprobe", "MPI_Improbe", "MPI_Comm_idup", "MPI_Comm_idup_with_info")  # of these families, and never wait
SEVERAL = ("sendrecv", "start", "isend")  # families with several records for a call
# A row of tests with less than this between two of them (ns) serves as being in MPI: data move.
OFTEN = 100_000
MOST_STRETCHES = 256  # of being in MPI, up to which two ranks are compared one by one
PIECE = 1 << 20


class Cover:
    """When something was so, by lane: merged intervals. `begin` and `end` need no order."""

    def __init__(self, lane: np.ndarray, begin: np.ndarray, end: np.ndarray, span: int) -> None:
        self.span = span
        first, last = lane.astype(np.int64) * span + begin, lane.astype(np.int64) * span + end
        if len(first) > 1 and (first[1:] < first[:-1]).any():
            order = np.argsort(first, kind="stable")
            first, last = first[order], last[order]
        reach = np.maximum.accumulate(last)
        new = np.ones(len(first), bool)
        new[1:] = first[1:] > reach[:-1]
        start = np.flatnonzero(new)
        self.begin = first[start]
        self.end = reach[np.append(start[1:], len(first)) - 1] if len(first) else first
        self.before = np.concatenate(([0], np.cumsum(self.end - self.begin)))

    def find(self, lane: np.ndarray, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The last interval that begins up to then, of any lane, or -1; and the time as it is kept here."""
        key = np.asarray(lane, np.int64) * self.span + np.clip(time, 0, self.span - 1)
        return np.searchsorted(self.begin, key, "right") - 1, key

    def until(self, lane: np.ndarray, time: np.ndarray) -> np.ndarray:
        """How long it was so up to then, from an origin that is the same for all times of a lane."""
        at, key = self.find(lane, time)
        if not len(self.begin):
            return np.zeros(len(key), np.int64)
        safe = np.maximum(at, 0)
        return np.where(at < 0, 0, self.before[safe] + np.minimum(key, self.end[safe]) - self.begin[safe])

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
        return np.maximum(np.minimum(np.where(at < 0, base, self.end[np.maximum(at, 0)]), key) - base, 0)

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
            gap, base = at[op] + step, lane[op].astype(np.int64) * self.span
            known = np.append(self.end, 0), np.append(self.begin, np.iinfo(np.int64).max)
            low = np.where(gap < 0, begin[op], known[0][gap] - base)
            low = np.clip(low, begin[op], end[op])
            high = np.clip(known[1][gap + 1] - base, begin[op], end[op])
            found[piece] = np.bincount(
                np.repeat(np.arange(len(piece)), more[piece] + 1), self.without(against[op], low, high), len(piece)
            )
        return np.rint(found).astype(np.int64)


class Timeline:
    def __init__(self, run: Run) -> None:
        self.run = run
        ranks = run.ranks
        counts = np.array([len(rank.events) for rank in ranks], np.int64)
        self.first = np.concatenate(([0], np.cumsum(counts)))
        self.place = np.repeat(np.arange(len(ranks)), counts)
        self.world = np.array([rank.rank for rank in ranks], np.int64)  # rank of the world, by place
        # Simulated hosts share a kernel, and so the boot id.
        hosts: dict[tuple[str, str], int] = {}
        self.host = np.array([hosts.setdefault((rank.boot, rank.host), len(hosts)) for rank in ranks], np.int64)

        def column(of) -> np.ndarray:
            return np.concatenate([of(rank) for rank in ranks]) if ranks else np.zeros(0, np.int64)

        thread = self.place * 256 + column(lambda rank: rank.events["thread"])
        lanes, self.thread = np.unique(thread, return_inverse=True)
        self.thread_place = lanes // 256
        most = min(1 << 60, (1 << 62) // max(1, len(lanes)))
        self.begin = np.clip(column(lambda rank: rank.begin), 0, most).astype(np.int64)
        self.end = np.clip(column(lambda rank: rank.end), self.begin, most).astype(np.int64)
        self.span = int(self.end.max(initial=0)) + 2
        self.kind = column(lambda rank: rank.events["kind"])
        self.flags = column(lambda rank: rank.events["flags"])
        self.family = column(families)
        self.owner = self._owners()
        self.call = (self.family != NO_CALL) & (self.owner == np.arange(len(self.owner)))
        callers = self.thread_place[np.unique(self.thread[self.call])]
        self.threads = np.bincount(callers, minlength=len(ranks))  # that call MPI, by place: not the library's
        self.blocking = self.call & self.of(*BLOCKING) & (self.flags & model.IN_VAIN == 0) & ~column(at_once)
        self.spent = self.end - self.begin  # in MPI; of a row of tests, in all of them
        rows = np.flatnonzero(self.call & (self.flags & model.IN_VAIN > 0))
        self.often = np.ones(len(self.begin), bool)
        if len(rows):
            events = np.concatenate([rank.events[["begin", "end", "bytes", "tag"]] for rank in ranks])[rows]
            ticks = np.maximum(events["end"].astype(float) - events["begin"].astype(float), 1)
            share = np.clip(events["bytes"].astype(float) / ticks, 0, 1)
            whole = self.spent[rows]
            self.spent[rows] = (whole * share).astype(np.int64)
            self.often[rows] = whole - self.spent[rows] <= OFTEN * np.maximum(events["tag"], 1).astype(np.int64)

    def of(self, *names: str) -> np.ndarray:
        table = np.zeros(256, bool)
        table[[CODE[name] for name in names]] = True
        return table[self.family]

    def number(self, ranks: np.ndarray, events: np.ndarray) -> np.ndarray:
        """Of events of these ranks of the world; -1 where there is no such event."""
        place = self.places(ranks)
        safe = np.maximum(place, 0)
        events = events.astype(np.int64)
        good = (place >= 0) & (events >= 0) & (events < np.diff(self.first)[safe]) if len(self.world) else place >= 0
        return np.where(good, self.first[safe] + events, -1)

    def places(self, ranks: np.ndarray) -> np.ndarray:
        table = np.full(int(self.world.max(initial=-1)) + 2, -1, np.int64)
        table[self.world] = np.arange(len(self.world))
        ranks = np.asarray(ranks, np.int64)
        return table[np.where((ranks < 0) | (ranks >= len(table)), len(table) - 1, ranks)]

    def _owners(self) -> np.ndarray:
        """Of each event, the one that stands for its call."""
        count = len(self.begin)
        order = np.argsort(self.thread, kind="stable")
        thread, at = self.thread[order], np.arange(count)
        asks = self.of("wait", "test")[order] & (self.flags[order] & model.IN_VAIN == 0)
        last = np.maximum.accumulate(np.where(asks, at, -1))
        done = (self.kind[order] == model.COMPLETION) & (last >= 0) & (thread[np.maximum(last, 0)] == thread)
        joined = np.zeros(count, bool)
        before, after = order[:-1], order[1:]
        joined[1:] = self.of(*SEVERAL)[after] & (thread[1:] == thread[:-1]) & (self.kind[before] == self.kind[after])
        joined[1:] &= (self.begin[before] == self.begin[after]) & (self.end[before] == self.end[after])
        pair = self.of("sendrecv", "isend")[order]
        receives = self.flags[order] & model.RECEIVE > 0
        joined[1:] &= ~pair[1:] | (receives[1:] & ~receives[:-1])
        head = np.maximum.accumulate(np.where(joined, -1, at))
        owner = np.empty(count, np.int64)
        owner[order] = order[np.where(done, last, np.where(joined, head, at))]
        return owner

    @cached_property
    def inside(self) -> Cover:
        """When a rank was in MPI, with any thread, or called it often: when its data could move without help."""
        some = np.flatnonzero(self.call & self.often)
        return Cover(self.place[some], self.begin[some], self.end[some], self.span)

    @cached_property
    def _by_begin(self) -> tuple[np.ndarray, np.ndarray]:
        calls = np.flatnonzero(self.call)
        key = self.place[calls] * self.span + self.begin[calls]
        order = np.argsort(key, kind="stable")
        return key[order], calls[order]

    def last_call(self, place: np.ndarray, time: np.ndarray) -> np.ndarray:
        """The call of that rank that began last up to then, or -1."""
        key, calls = self._by_begin
        at = np.searchsorted(key, place * self.span + np.clip(time, 0, self.span - 1), "right") - 1
        found = calls[np.maximum(at, 0)] if len(calls) else at
        return np.where((at >= 0) & (self.place[found] == place), found, -1)

    @cached_property
    def chain(self) -> np.ndarray:
        """All calls, thread by thread in the order in which they began."""
        calls = np.flatnonzero(self.call)
        return calls[np.lexsort((self.begin[calls], self.thread[calls]))]

    @cached_property
    def no_core(self) -> np.ndarray:
        """ns of each event in which its thread had no core, as the records of it tell."""
        found = np.zeros(len(self.begin), np.int64)
        records = np.flatnonzero(self.kind == model.CORE_TAKEN)
        if not len(records):
            return found
        taken = np.concatenate([rank.events["bytes"] for rank in self.run.ranks])[records]
        length = self.end[records] - self.begin[records]
        taken = np.minimum(taken, length.astype(np.uint64)).astype(np.int64)
        key = self.thread[records] * self.span + self.begin[records]
        order = np.argsort(key, kind="stable")
        key, taken, length = key[order], taken[order], np.maximum(length[order], 1)
        before = np.concatenate(([0], np.cumsum(taken)))

        def until(event: np.ndarray, time: np.ndarray) -> np.ndarray:
            now = self.thread[event] * self.span + time
            at = np.searchsorted(key, now, "right") - 1
            safe = np.maximum(at, 0)
            part = np.minimum((now - key[safe]) / length[safe], 1.0) * taken[safe]
            return np.where(at < 0, 0, before[safe] + np.rint(part).astype(np.int64))

        some = np.flatnonzero(self.call)
        ns = until(some, self.end[some]) - until(some, self.begin[some])
        found[some] = np.clip(ns, 0, self.end[some] - self.begin[some])
        return found

    @cached_property
    def _sites(self) -> tuple[np.ndarray, list[Site]]:
        """A compiler makes several places of one line: unrolled loops, both sides of an if. Users have one."""
        sites = [Site()]
        known: dict[Site, int] = {Site(): 0}
        column = []

        def number(site: Site) -> int:
            line = Site(file=site.file, line=site.line, function=site.function) if site.file else site
            if line not in known:
                known[line] = len(sites)
                sites.append(site)
            return known[line]

        for rank in self.run.ranks:
            ids, which = np.unique(rank.events["site"], return_inverse=True)
            numbers = [number(rank.sites.get(i, Site())) for i in ids.tolist()]
            column.append(np.array(numbers, np.int64)[which])
        return np.concatenate(column) if column else np.zeros(0, np.int64), sites

    @property
    def site(self) -> np.ndarray:
        """Of each event, its call site among `sites`, the same on all ranks."""
        return self._sites[0]

    @property
    def sites(self) -> list[Site]:
        return self._sites[1]

    @cached_property
    def _names(self) -> tuple[np.ndarray, list[str]]:
        known: dict[str, int] = {}
        column = []
        for rank in self.run.ranks:
            kinds, which = np.unique(rank.events["kind"], return_inverse=True)
            numbers = [known.setdefault(rank.name(kind), len(known)) for kind in kinds.tolist()]
            column.append(np.array(numbers, np.int64)[which])
        return np.concatenate(column) if column else np.zeros(0, np.int64), list(known)

    @property
    def name(self) -> np.ndarray:
        """Of each event, its function among `names`."""
        return self._names[0]

    @property
    def names(self) -> list[str]:
        return self._names[1]


def families(rank: Rank) -> np.ndarray:
    table = np.full(1 << 16, NO_CALL, np.uint8)
    known = rank.families[: model.COMPLETION]
    table[: len(known)] = [CODE.get(family, NO_CALL) for family in known]
    return table[rank.events["kind"]]


def at_once(rank: Rank) -> np.ndarray:
    table = np.zeros(1 << 16, bool)
    table[[kind for kind, name in enumerate(rank.functions[: model.COMPLETION]) if name in AT_ONCE]] = True
    return table[rank.events["kind"]]
