"""A run's events as columns over all ranks, and when each rank was in MPI.

An event's number here is that of its rank's first event plus its place among that rank's; -1 is none. A rank's place is
its position in `Run.ranks`. A call may be several events (a wait and its completions, both halves of a sendrecv, all of
a start): the first of them owns the call's time. All times of all ranks are one row of numbers: each place has a span
of its own, so that one search answers for many ranks.

Memory. Columns lie in files where the run says so (Run.spill), and are made and read in `chunks`: runs of events that
can be understood alone (see cuts), some ranks together or a part of one. What looks at events all over a column asks
`take` and `find` of columns. A column rests once it is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from headway.record import columns, model
from headway.record.columns import find, rest, room, take
from headway.record.cover import Cover
from headway.record.cuts import cuts
from headway.record.model import FAMILIES, Rank, Run, Site

CODE = {name: code for code, name in enumerate(FAMILIES)}
NO_CALL = 255
# Calls that may wait. What one-sided calls and files wait for is not known: they count as work in MPI.
BLOCKING = ("init", "finalize", "send", "recv", "sendrecv", "wait", "probe", "coll", "comm")
AT_ONCE = ("MPI_Iprobe", "MPI_Improbe", "MPI_Comm_idup", "MPI_Comm_idup_with_info")  # of these families, and never wait
SEVERAL = ("sendrecv", "start", "isend")  # families with several records for a call
# A row of tests with less than this between two of them (ns) serves as being in MPI: data move.
OFTEN = 100_000


class Timeline:
    def __init__(self, run: Run) -> None:
        self.run = run
        ranks, spill = run.ranks, run.spill
        self.first = np.concatenate(([0], np.cumsum([len(rank.events) for rank in ranks], dtype=np.int64)))
        self.world = np.array([rank.rank for rank in ranks], np.int64)  # rank of the world, by place
        # Simulated hosts share a kernel, and so the boot id.
        hosts: dict[tuple[str, str], int] = {}
        self.host = np.array([hosts.setdefault((rank.boot, rank.host), len(hosts)) for rank in ranks], np.int64)
        self.chunks = self._chunks()
        lanes = self._lanes()
        self.thread_place = lanes // 256
        count = int(self.first[-1])
        self.place, self.thread = room(count, np.int32, spill), room(count, np.int32, spill)
        self.begin, self.end = room(count, np.int64, spill), room(count, np.int64, spill)
        self.kind, self.flags = room(count, np.uint16, spill), room(count, np.uint8, spill)
        self.family, self.owner = room(count, np.uint8, spill), room(count, np.int64, spill)
        self.call, self.blocking = room(count, bool, spill), room(count, bool, spill)
        self.spent = room(count, np.int64, spill)  # in MPI; of a row of tests, in all of them
        self.often = room(count, bool, spill)
        most = min(1 << 60, (1 << 62) // max(1, len(lanes)))
        callers = np.zeros(len(lanes), bool)
        for low, high in self.chunks:
            self._fill(low, high, lanes, most)
            callers[np.unique(self.thread[low:high][self.call[low:high]])] = True
            self.rest()
        self.threads = np.bincount(lanes[callers] // 256, minlength=len(ranks))  # that call MPI, by place
        self.span = columns.largest(self.end) + 2

    # ---- parts -------------------------------------------------------------------------------------
    def _chunks(self) -> list[tuple[int, int]]:
        """Events from and to, in order."""
        found: list[tuple[int, int]] = []
        since = 0
        for place, rank in enumerate(self.run.ranks):
            first, last = self.first[place : place + 2].tolist()
            if last - since > columns.CHUNK and since < first:
                found.append((since, first))
                since = first
            parts = cuts(rank, columns.CHUNK)
            rest(rank.events, rank.begin, rank.end)
            if len(parts) > 2:
                found += [(first + a, first + b) for a, b in zip(parts, parts[1:])]
                since = last
        return found if since == self.first[-1] else [*found, (since, int(self.first[-1]))]

    def chunk_of(self, events: np.ndarray) -> np.ndarray:
        return np.searchsorted(np.array([low for low, _ in self.chunks], np.int64), events, "right") - 1

    def parts(self, low: int, high: int) -> Iterator[tuple[int, Rank, slice, slice]]:
        """Of these events: place, its rank, which of the rank's events, and which of these."""
        place = int(np.searchsorted(self.first, low, "right")) - 1
        while place < len(self.run.ranks) and self.first[place] < high:
            first = int(self.first[place])
            a, b = max(low, first), min(high, int(self.first[place + 1]))
            if a < b:
                yield place, self.run.ranks[place], slice(a - first, b - first), slice(a - low, b - low)
            place += 1

    def told(self, low: int, high: int, *names: str) -> np.ndarray:
        """Fields of the records of these events."""
        fields = [rank.events[of][list(names)] for _, rank, of, _ in self.parts(low, high)]
        return np.concatenate(fields) if fields else np.zeros(0, model.EVENT)[list(names)]

    def rest(self) -> None:
        """Nothing is looked at for a while."""
        rest(
            self.place, self.thread, self.begin, self.end, self.kind, self.flags, self.family, self.owner, self.call,
            self.blocking, self.spent, self.often,
        )  # fmt: skip
        for name in ("_sites", "_names", "_by_begin", "before"):
            made = self.__dict__.get(name, ())
            made = made if isinstance(made, tuple) else (made,)
            rest(*(column for column in made if isinstance(column, np.ndarray)))

    # ---- columns -----------------------------------------------------------------------------------
    def _lanes(self) -> np.ndarray:
        """Threads that have events: place x 256 + thread, in order."""
        seen = np.zeros(256 * len(self.run.ranks), bool)
        for low, high in self.chunks:
            for place, rank, of, _ in self.parts(low, high):
                seen[256 * place + np.unique(rank.events["thread"][of]).astype(np.int64)] = True
                rest(rank.events)
        return np.flatnonzero(seen)

    def _fill(self, low: int, high: int, lanes: np.ndarray, most: int) -> None:
        for place, rank, of, to in self.parts(low, high):
            to = slice(low + to.start, low + to.stop)
            events = rank.events[of]
            self.place[to] = place
            self.thread[to] = np.searchsorted(lanes, 256 * place + events["thread"].astype(np.int64))
            self.begin[to] = np.clip(rank.begin[of], 0, most)
            self.end[to] = np.clip(rank.end[of], self.begin[to], most)
            self.kind[to], self.flags[to] = events["kind"], events["flags"]
            self.family[to] = families(rank)[events["kind"]]
            self.blocking[to] = ~at_once(rank)[events["kind"]]
            rest(rank.events, rank.begin, rank.end)
        some = slice(low, high)
        self.owner[some] = low + self._owners(low, high)
        vain = self.flags[some] & model.IN_VAIN > 0
        self.call[some] = call = (self.family[some] != NO_CALL) & (self.owner[some] == np.arange(low, high))
        self.blocking[some] &= call & self.of(*BLOCKING, among=some) & ~vain
        self.spent[some] = self.end[some] - self.begin[some]
        self.often[some] = True
        rows = np.flatnonzero(call & vain)
        if len(rows):
            events = self.told(low, high, "begin", "end", "bytes", "tag")[rows]
            ticks = np.maximum(events["end"].astype(float) - events["begin"].astype(float), 1)
            share = np.clip(events["bytes"].astype(float) / ticks, 0, 1)
            whole = self.spent[low + rows]
            self.spent[low + rows] = spent = (whole * share).astype(np.int64)
            self.often[low + rows] = whole - spent <= OFTEN * np.maximum(events["tag"], 1).astype(np.int64)

    def of(self, *names: str, among: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Which events are of these families."""
        found = np.zeros(256, bool)
        found[[CODE[name] for name in names]] = True
        return found[self.family[among] if isinstance(among, slice) else take(self.family, among)]

    def number(self, ranks: np.ndarray, events: np.ndarray) -> np.ndarray:
        """Of events of these ranks of the world; -1 where there is no such event."""
        place = self.places(ranks)
        safe = np.maximum(place, 0)
        events = events.astype(np.int64)
        good = (place >= 0) & (events >= 0) & (events < np.diff(self.first)[safe]) if len(self.world) else place >= 0
        return np.where(good, self.first[safe] + events, -1)

    def places(self, ranks: np.ndarray) -> np.ndarray:
        return model.places(self.run.ranks, ranks)

    def _owners(self, low: int, high: int) -> np.ndarray:
        """Of each event of a chunk, the one that stands for its call, from the chunk's first."""
        some = slice(low, high)
        order = np.argsort(self.thread[some], kind="stable")
        thread, kind, flags, family = (c[some][order] for c in (self.thread, self.kind, self.flags, self.family))
        begin, end, at = self.begin[some][order], self.end[some][order], np.arange(high - low)

        def of(*names: str) -> np.ndarray:
            return np.isin(family, [CODE[name] for name in names])

        asks = of("wait", "test") & (flags & model.IN_VAIN == 0)
        last = np.maximum.accumulate(np.where(asks, at, -1))
        done = (kind == model.COMPLETION) & (last >= 0) & (thread[np.maximum(last, 0)] == thread)
        joined = np.zeros(high - low, bool)
        joined[1:] = of(*SEVERAL)[1:] & (thread[1:] == thread[:-1]) & (kind[:-1] == kind[1:])
        joined[1:] &= (begin[:-1] == begin[1:]) & (end[:-1] == end[1:])
        pair = of("sendrecv", "isend")
        receives = flags & model.RECEIVE > 0
        joined[1:] &= ~pair[1:] | (receives[1:] & ~receives[:-1])
        head = np.maximum.accumulate(np.where(joined, -1, at))
        owner = np.empty(high - low, np.int64)
        owner[order] = order[np.where(done, last, np.where(joined, head, at))]
        return owner

    # ---- calls in time -----------------------------------------------------------------------------
    def in_time(self) -> Iterator[np.ndarray]:
        """All calls, rank by rank in the order in which they began, in parts."""
        least, of_rank = [], []
        for low, high in self.chunks:
            begin = self.begin[low:high][self.call[low:high]]
            least.append(int(begin.min()) if len(begin) else np.iinfo(np.int64).max)
            of_rank.append(int(self.place[low]))
            rest(self.begin, self.call, self.place)
        # Of a rank in several chunks, threads' blocks lie one behind the other: a call waits here until no later chunk
        # has one that began before.
        later = [np.iinfo(np.int64).max] * len(least)
        for at in range(len(least) - 2, -1, -1):
            if of_rank[at] == of_rank[at + 1]:
                later[at] = min(later[at + 1], least[at + 1])
        held = np.zeros(0, np.int64)
        for (low, high), limit in zip(self.chunks, later):
            calls = np.concatenate([held, low + np.flatnonzero(self.call[low:high])])
            begin = take(self.begin, calls)
            order = np.lexsort((calls, begin, take(self.place, calls)))
            calls, begin = calls[order], begin[order]
            ready = len(calls) if limit == np.iinfo(np.int64).max else int(np.searchsorted(begin, limit, "right"))
            held = calls[ready:]
            yield calls[:ready]
            self.rest()

    def key(self, events: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Times of the ranks of these events on the row of all."""
        return take(self.place, events).astype(np.int64) * self.span + times

    @cached_property
    def inside(self) -> Cover:
        """When a rank was in MPI, with any thread, or called it often: when its data could move without help."""

        def parts() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            for calls in self.in_time():
                some = calls[take(self.often, calls)]
                yield self.key(some, take(self.begin, some)), self.key(some, take(self.end, some))

        return Cover.of(parts(), len(self.call), self.span, self.run.spill)

    @cached_property
    def _by_begin(self) -> tuple[np.ndarray, np.ndarray]:
        keys, calls = (room(len(self.call), np.int64, self.run.spill) for _ in range(2))
        count = 0
        for some in self.in_time():
            keys[count : count + len(some)] = self.key(some, take(self.begin, some))
            calls[count : count + len(some)] = some
            count += len(some)
            rest(keys, calls)
        return keys[:count], calls[:count]

    def last_call(self, place: np.ndarray, time: np.ndarray) -> np.ndarray:
        """The call of that rank that began last up to then, or -1."""
        key, calls = self._by_begin
        at = find(key, np.asarray(place, np.int64) * self.span + np.clip(time, 0, self.span - 1)) - 1
        found = take(calls, np.maximum(at, 0)) if len(calls) else at
        return np.where((at >= 0) & (take(self.place, found) == place), found, -1)

    def overlapping(self, place: int, begin: int, end: int) -> np.ndarray:
        """The calls of a rank that end after the one time, and begin up to the other one."""
        found = [np.zeros(0, np.int64)]
        first, last = self.first[place : place + 2].tolist()
        for number in range(int(self.chunk_of(np.array([first]))[0]), len(self.chunks)):
            low, high = (min(max(at, first), last) for at in self.chunks[number])
            if low >= high:
                break
            if self.reach[number][0] <= end and self.reach[number][1] > begin:
                some = self.call[low:high] & (self.begin[low:high] <= end) & (self.end[low:high] > begin)
                found.append(low + np.flatnonzero(some))
        return np.concatenate(found)

    @cached_property
    def reach(self) -> list[tuple[int, int]]:
        """Of each chunk, when its first event begins and its last one ends."""
        found = []
        for low, high in self.chunks:
            found.append((int(self.begin[low:high].min()), int(self.end[low:high].max())))
            rest(self.begin, self.end)
        return found

    @cached_property
    def chain(self) -> np.ndarray:
        """All calls, thread by thread in the order in which they began."""
        calls = np.flatnonzero(self.call)
        return calls[np.lexsort((self.begin[calls], self.thread[calls]))]

    def chained(self, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
        """The calls of a chunk in that order, and which are the first of their thread in it."""
        calls = low + np.flatnonzero(self.call[low:high])
        calls = calls[np.lexsort((self.begin[calls], self.thread[calls]))]
        thread = self.thread[calls]
        return calls, np.concatenate(([True], thread[1:] != thread[:-1])) if len(calls) else np.zeros(0, bool)

    @cached_property
    def before(self) -> np.ndarray:
        """Of each call, the one before it on its thread; -1 for none."""
        found = room(len(self.call), np.int64, self.run.spill)
        last = np.full(len(self.thread_place), -1, np.int64)
        for low, high in self.chunks:
            calls, first = self.chained(low, high)
            found[low:high] = -1
            if len(calls):
                thread = self.thread[calls]
                found[calls] = np.where(first, last[thread], np.concatenate(([-1], calls[:-1])))
                ends = np.append(first[1:], True)
                last[thread[ends]] = calls[ends]
            rest(found)
            self.rest()
        return found

    # ---- cores -------------------------------------------------------------------------------------
    @cached_property
    def _cores(self) -> tuple[np.ndarray, ...]:
        """Of the records of missing cores, by thread and time: begin on the row of all threads, ns, length, and the
        sum of ns before each."""
        count = 0
        for low, high in self.chunks:
            count += int((self.kind[low:high] == model.CORE_TAKEN).sum())
            rest(self.kind)
        found = tuple(room(count, np.int64, self.run.spill) for _ in range(3))
        sums = room(count + 1, np.int64, self.run.spill)
        sums[0] = at = 0
        kept: list[np.ndarray] = []
        for number, (low, high) in enumerate(self.chunks):
            some = low + np.flatnonzero(self.kind[low:high] == model.CORE_TAKEN)
            if len(some):
                length = self.end[some] - self.begin[some]
                taken = self.told(low, high, "bytes")["bytes"][some - low]
                taken = np.minimum(taken, length.astype(np.uint64)).astype(np.int64)
                key = self.thread[some].astype(np.int64) * self.span + self.begin[some]
                kept.append(np.stack((key, taken, np.maximum(length, 1))))
            more = number + 1 < len(self.chunks)
            if kept and not (more and self.place[self.chunks[number + 1][0]] == self.place[low]):
                rows = np.concatenate(kept, axis=1)
                rows = rows[:, np.argsort(rows[0], kind="stable")]
                here = slice(at, at + rows.shape[1])
                for column, values in zip(found, rows):
                    column[here] = values
                sums[at + 1 : at + 1 + rows.shape[1]] = sums[at] + np.cumsum(rows[1])
                at, kept = here.stop, []
                rest(*found, sums)
            self.rest()
        return *found, sums

    def no_core(self, calls: np.ndarray) -> np.ndarray:
        """ns of each call in which its thread had no core, as the records of it tell."""
        key, taken, length, before = self._cores
        if not len(key):
            return np.zeros(len(calls), np.int64)
        thread, begin, end = (take(column, calls) for column in (self.thread, self.begin, self.end))

        def until(time: np.ndarray) -> np.ndarray:
            now = thread.astype(np.int64) * self.span + time
            at = find(key, now) - 1
            safe = np.maximum(at, 0)
            part = np.minimum((now - take(key, safe)) / take(length, safe), 1.0) * take(taken, safe)
            return np.where(at < 0, 0, take(before, safe) + np.rint(part).astype(np.int64))

        return np.clip(until(end) - until(begin), 0, end - begin)

    # ---- names -------------------------------------------------------------------------------------
    def _numbered(self, field: str, of: Callable[[Rank, int], Any], known: dict) -> np.ndarray:
        """Of each event the number of what its rank calls so; the same on all ranks."""
        ids: list[list[np.ndarray]] = [[] for _ in self.run.ranks]
        for low, high in self.chunks:
            for place, rank, some, _ in self.parts(low, high):
                ids[place].append(np.unique(rank.events[field][some]))
                rest(rank.events)
        different = [np.unique(np.concatenate(some)) if some else np.zeros(0, np.int64) for some in ids]
        numbers = [
            np.array([known.setdefault(of(rank, one), len(known)) for one in some.tolist()], np.int32)
            for rank, some in zip(self.run.ranks, different)
        ]
        found = room(len(self.call), np.int32, self.run.spill)
        for low, high in self.chunks:
            for place, rank, some, to in self.parts(low, high):
                which = np.searchsorted(different[place], rank.events[field][some])
                found[low + to.start : low + to.stop] = numbers[place][which]
                rest(rank.events, found)
        return found

    @cached_property
    def _sites(self) -> tuple[np.ndarray, list[Site]]:
        """A compiler makes several places of one line: unrolled loops, both sides of an if. Users have one."""
        sites = [Site()]
        known: dict[Site, int] = {Site(): 0}

        def line_of(rank: Rank, one: int) -> Site:
            site = rank.sites.get(one, Site())
            line = Site(file=site.file, line=site.line, function=site.function) if site.file else site
            if line not in known:
                sites.append(site)
            return line

        return self._numbered("site", line_of, known), sites

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
        column = self._numbered("kind", Rank.name, known)
        return column, list(known)

    @property
    def name(self) -> np.ndarray:
        """Of each event, its function among `names`."""
        return self._names[0]

    @property
    def names(self) -> list[str]:
        return self._names[1]


def families(rank: Rank) -> np.ndarray:
    """By kind."""
    table = np.full(1 << 16, NO_CALL, np.uint8)
    known = rank.families[: model.COMPLETION]
    table[: len(known)] = [CODE.get(family, NO_CALL) for family in known]
    return table


def at_once(rank: Rank) -> np.ndarray:
    """By kind."""
    table = np.zeros(1 << 16, bool)
    table[[kind for kind, name in enumerate(rank.functions[: model.COMPLETION]) if name in AT_ONCE]] = True
    return table
