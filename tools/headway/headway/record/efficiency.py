"""Parallel efficiency = load balance x serialisation x transfer, as the POP centre of excellence defines them.

  parallel efficiency  mean of useful time / time of the run     useful: outside of MPI
  load balance         mean / max of useful time
  transfer             time of the run with an ideal network / time of the run
  serialisation        max of useful time / time of the run with an ideal network: even there ranks wait for each other
The product of the three is the first.

The run with an ideal network is a replay: what is computed between calls keeps its length, messages and collectives
take no time, and a call returns when what it needs has happened: a receive when its send has begun, a send that needs
its receiver when the receive is posted, a collective when the ranks have entered that it waits for (`entries`). A send
needs its receiver if it is synchronous, or larger than any that this run let go before its receive was posted. Calls
on files and one-sided ones keep their length. In time order, so nothing is needed that the run did not have: no call
of the replay is later than in the run.

The run begins when the first rank leaves MPI_Init and ends when the last one enters MPI_Finalize. A rank with several
threads counts with their mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headway.record import columns
from headway.record.columns import Shelves, put, rest, room, take
from headway.record.entries import ALL, FROM_ROOT, LOWER, TO_ROOT
from headway.record.timeline import Timeline
from headway.record.waiting import Waiting

SYNCHRONOUS = ("MPI_Ssend", "MPI_Ssend_c", "MPI_Issend", "MPI_Issend_c")
FAR = 1 << 62
STEP = 64  # of calls, one is looked at to part the run's time


@dataclass
class Efficiency:
    time: int  # ns, of the run
    ideal: int  # ns, with an ideal network
    useful: np.ndarray  # ns, by place

    @property
    def parallel(self) -> float:
        return _share(float(self.useful.mean()) if len(self.useful) else 0.0, self.time)

    @property
    def balance(self) -> float:
        return _share(float(self.useful.mean()) if len(self.useful) else 0.0, float(self.useful.max(initial=0)))

    @property
    def transfer(self) -> float:
        return _share(self.ideal, self.time)

    @property
    def serialisation(self) -> float:
        return _share(float(self.useful.max(initial=0)), self.ideal)


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 1.0


def efficiency(waiting: Waiting) -> Efficiency:
    line = waiting.line
    origin, last = borders(line)
    if origin is None:
        return Efficiency(0, 0, np.zeros(len(line.world)))
    times = Times(line, origin)
    useful = np.bincount(line.thread_place, times.useful, len(line.world)) / np.maximum(line.threads, 1)
    time = last - origin
    return Efficiency(time, min(time, replay(waiting, times)), useful)


def borders(line: Timeline) -> tuple[int | None, int]:
    """When the run begins, none without calls, and when it ends."""
    least = first = None
    last = 0
    for low, high in line.chunks:
        call = line.call[low:high]
        begin, end = line.begin[low:high][call], line.end[low:high][call]
        init, final = line.of("init", among=slice(low, high))[call], line.of("finalize", among=slice(low, high))[call]
        if init.any():
            first = min(int(end[init].min()), FAR if first is None else first)
        if len(begin):
            least = min(int(begin.min()), FAR if least is None else least)
            last = max(last, int(np.where(final, begin, end).max()))
        line.rest()
    return (first if first is not None else least), last


class Times:
    """Of each call: the time outside of MPI before it, what of it keeps its length; the sums outside by thread."""

    def __init__(self, line: Timeline, origin: int) -> None:
        spill, count = line.run.spill, len(line.begin)
        self.gap, self.keep = room(count, np.int64, spill), room(count, np.int64, spill)
        self.useful = np.zeros(len(line.thread_place))
        self.last = np.full(len(line.thread_place), -1, np.int64)  # the last call of each thread
        ended = np.full(len(line.thread_place), origin, np.int64)
        for low, high in line.chunks:
            calls, first = line.chained(low, high)
            if len(calls):
                self._fill(line, origin, ended, calls, first)
            self.rest()
            line.rest()

    def _fill(self, line: Timeline, origin: int, ended: np.ndarray, calls: np.ndarray, first: np.ndarray) -> None:
        thread, begin, end = line.thread[calls], line.begin[calls], line.end[calls]
        is_init, is_last = line.of("init", among=calls), line.of("finalize", among=calls)
        end = np.where(is_last, begin, end)
        previous = np.where(first, ended[thread], np.concatenate(([0], end[:-1])))
        self.gap[calls] = gap = np.maximum(begin - np.maximum(previous, origin), 0)
        within = np.where(is_init | is_last, 0, line.end[calls] - line.begin[calls] - line.spent[calls])
        self.useful += np.bincount(thread, gap + within, len(self.useful))
        keep = within.copy()
        kept = line.of("file", "rma", among=calls)
        keep[kept] = (end - begin)[kept]
        keep[is_init] = np.maximum(end[is_init] - origin, 0)
        self.keep[calls] = keep
        ends = np.append(first[1:], True)
        ended[thread[ends]], self.last[thread[ends]] = end[ends], calls[ends]

    def rest(self) -> None:
        rest(self.gap, self.keep)


NEED = np.dtype([("who", "<i8"), ("what", "<i8")])


class Needs:
    """Of each call those whose beginning it needs; -1 - c: all that enter collective c. And which collective a call
    enters, -1 none."""

    def __init__(self, waiting: Waiting) -> None:
        self.line = line = waiting.line
        spill, count = line.run.spill, len(line.begin)
        self.enters = room(count, np.int64, spill)
        for low, high in line.chunks:
            self.enters[low:high] = -1
            rest(self.enters)
        self.collectives = 0
        shelves = Shelves(len(line.chunks), NEED, spill)
        for who, what in self._all(waiting):
            good = take(line.call, who)
            rows = np.empty(int(good.sum()), NEED)
            rows["who"], rows["what"] = who[good], what[good]
            shelves.add(rows, line.chunk_of(rows["who"]))
            rest(self.enters)
            line.rest()
        self.first, self.what = room(count + 1, np.int64, spill), room(shelves.rows, np.int64, spill)
        at = 0
        for number, (low, high) in enumerate(line.chunks):
            rows = shelves[number]
            rows = rows[np.argsort(rows["who"], kind="stable")]
            self.first[low:high] = at + np.searchsorted(rows["who"], np.arange(low, high))
            self.what[at : at + len(rows)] = rows["what"]
            at += len(rows)
            rest(self.first, self.what)
        self.first[count] = at

    def _all(self, waiting: Waiting) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        line, every = self.line, waiting.messages
        names = np.array([name in SYNCHRONOUS for name in line.names] + [False])
        for low in range(0, len(every), columns.CHUNK):
            m = every.take(slice(low, low + columns.CHUNK))
            yield m.came, take(line.owner, m.sent)
            strict = (m.size > waiting.transfer.buffered) | names[take(line.name, m.sent)]
            strict &= (m.left >= 0) & (m.gone >= m.asked)
            yield m.left[strict], take(line.owner, m.posted[strict])
            every.rest()
        for low in range(0, len(waiting.rows), columns.CHUNK):
            rows = waiting.rows.take(slice(low, low + columns.CHUNK))
            groups = np.flatnonzero(np.isin(rows.rule, (ALL, TO_ROOT)))
            put(self.enters, take(line.owner, rows.event[groups]), rows.collective[groups])
            self.collectives = max(self.collectives, int(rows.collective.max(initial=-1)) + 1)
            ended = rows.end >= 0
            one = ended & np.isin(rows.rule, (FROM_ROOT, LOWER)) & (rows.late >= 0)
            yield rows.end[one], take(line.owner, rows.late[one])
            all_of = ended & ((rows.rule == ALL) | ((rows.rule == TO_ROOT) & (rows.late >= 0)))
            yield rows.end[all_of], -1 - rows.collective[all_of]
            waiting.rows.rest()

    def of(self, calls: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """From where to where in `what`."""
        return take(self.first, calls), take(self.first, calls + 1)


ITEM = np.dtype([("time", "<i8"), ("what", "<i8")])  # the beginning of a call (2 x event), or its end (and 1)


def replay(waiting: Waiting, times: Times) -> int:
    """When the last call ends, in time order: begins of calls, and ends of those that need others."""
    line, needs = waiting.line, Needs(waiting)
    count, spill = len(line.begin), line.run.spill
    begun, ended = room(count, np.int64, spill), room(count, np.int64, spill)
    entered = room(max(1, needs.collectives), np.int64, spill)
    for low in range(0, max(count, len(entered)), columns.CHUNK):
        some = slice(low, low + columns.CHUNK)
        begun[some], ended[some], entered[some] = 0, -1, 0
        rest(begun, ended, entered)
    for items in in_order(line, needs):
        step(line, times, needs, items, begun, ended, entered)
        rest(begun, ended, entered, needs.enters, needs.first, needs.what)
        times.rest()
        line.rest()
    last = times.last[times.last >= 0]
    return int(take(ended, last).max())


def in_order(line: Timeline, needs: Needs) -> Iterator[np.ndarray]:
    """What happens, in parts."""
    shelves = max(1, -(-2 * len(line.begin) // columns.CHUNK))
    sample = [np.zeros(0, np.int64)]
    for low, high in line.chunks:
        sample.append(line.begin[low:high:STEP][line.call[low:high:STEP]])
        rest(line.begin, line.call)
    times = np.sort(np.concatenate(sample))
    edges = times[np.arange(1, shelves) * len(times) // shelves] if len(times) else np.zeros(0, np.int64)
    found = Shelves(len(edges) + 1, ITEM, line.run.spill)
    for low, high in line.chunks:
        calls = low + np.flatnonzero(line.call[low:high])
        first, last = needs.of(calls)
        some = calls[last > first]
        items = np.empty(len(calls) + len(some), ITEM)
        items["time"] = np.concatenate((line.begin[calls], line.end[some]))
        items["what"] = np.concatenate((2 * calls, 2 * some + 1))
        found.add(items, np.searchsorted(edges, items["time"], "right"))
        rest(needs.first)
        line.rest()
    for number in range(found.count):
        items = found[number]
        event = items["what"] // 2
        # Of one time: begins before ends, thread by thread as they began.
        by = event, take(line.begin, event), take(line.thread, event), items["what"] % 2, items["time"]
        yield items["what"][np.lexsort(by)]


def step(
    line: Timeline, times: Times, needs: Needs, items: np.ndarray, begun_: np.ndarray, ended_: np.ndarray,
    entered_: np.ndarray,
) -> None:  # fmt: skip
    """Carries the replay on over these, with numbers of their own: of the calls that are looked at, and of theirs."""
    calls = np.unique(items // 2)
    before = take(line.before, calls)
    own = np.unique(np.concatenate((calls, before[before >= 0])))  # those that may end here
    low, high = needs.of(own)
    wide = high - low
    what = take(needs.what, np.repeat(low - np.cumsum(wide) + wide, wide) + np.arange(int(wide.sum())))
    every = np.unique(np.concatenate((own, what[what >= 0])))
    enters = take(needs.enters, calls)
    groups = np.unique(np.concatenate((enters[enters >= 0], -1 - what[what < 0])))
    begun, ended = take(begun_, every).tolist(), take(ended_, every).tolist()
    entered = take(entered_, groups).tolist()
    need = np.where(what >= 0, np.searchsorted(every, what), -1 - np.searchsorted(groups, -1 - what)).tolist()
    place = np.searchsorted(every, own)
    starts, keeps = np.zeros(len(every) + 1, np.int64), np.zeros(len(every), np.int64)
    starts[place + 1] = wide
    starts = np.cumsum(starts).tolist()
    keeps[place] = take(times.keep, own)
    at = np.searchsorted(every, calls)
    gaps, (befores, enter) = np.zeros(len(every), np.int64), np.full((2, len(every)), -1, np.int64)
    gaps[at] = take(times.gap, calls)
    befores[at] = np.where(before < 0, -1, np.searchsorted(every, before))
    enter[at] = np.where(enters < 0, -1, np.searchsorted(groups, enters))
    what_now = np.searchsorted(every, items // 2) * 2 + items % 2
    play(what_now.tolist(), befores.tolist(), gaps.tolist(), keeps.tolist(), enter.tolist(), starts, need, begun, ended,
         entered)  # fmt: skip
    for column, index, values in ((begun_, every, begun), (ended_, every, ended), (entered_, groups, entered)):
        put(column, index, np.array(values, np.int64))


def play(
    items: list[int], befores: list[int], gaps: list[int], keeps: list[int], enter: list[int], starts: list[int],
    need: list[int], begun: list[int], ended: list[int], entered: list[int],
) -> None:  # fmt: skip
    def finish(call: int) -> int:
        time = begun[call]
        for other in need[starts[call] : starts[call + 1]]:
            then = begun[other] if other >= 0 else entered[-1 - other]
            if then > time:
                time = then
        time += keeps[call]
        ended[call] = time
        return time

    for item in items:
        call = item >> 1
        if item & 1:
            if ended[call] < 0:
                finish(call)
            continue
        previous, time = befores[call], gaps[call]
        if previous >= 0:
            last = ended[previous]
            time += last if last >= 0 else finish(previous)
        begun[call] = time
        collective = enter[call]
        if collective >= 0 and time > entered[collective]:
            entered[collective] = time
        if starts[call] == starts[call + 1]:
            ended[call] = time + keeps[call]
