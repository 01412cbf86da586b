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

from dataclasses import dataclass

import numpy as np

from headway.record.entries import ALL, FROM_ROOT, LOWER, TO_ROOT, Rows, entries
from headway.record.waiting import Waiting

SYNCHRONOUS = ("MPI_Ssend", "MPI_Ssend_c", "MPI_Issend", "MPI_Issend_c")


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
    calls = line.chain
    if not len(calls):
        return Efficiency(0, 0, np.zeros(len(line.world)))
    thread, begin, end = line.thread[calls], line.begin[calls], line.end[calls]
    is_init, is_last = line.of("init")[calls], line.of("finalize")[calls]
    origin = int(end[is_init].min()) if is_init.any() else int(begin.min())
    end = np.where(is_last, begin, end)
    first = np.concatenate(([True], thread[1:] != thread[:-1]))
    previous = np.where(first, origin, np.concatenate(([0], end[:-1])))
    gap = np.maximum(begin - np.maximum(previous, origin), 0)
    within = np.where(is_init | is_last, 0, line.end[calls] - line.begin[calls] - line.spent[calls])
    of_thread = np.bincount(thread, gap + within, len(line.thread_place))
    useful = np.bincount(line.thread_place, of_thread, len(line.world)) / np.maximum(line.threads, 1)
    keep = within.copy()
    kept = line.of("file", "rma")[calls]
    keep[kept] = (end - begin)[kept]
    keep[is_init] = np.maximum(end[is_init] - origin, 0)
    before = np.where(first, -1, np.arange(len(calls)) - 1)
    position = np.full(len(line.begin), -1, np.int64)
    position[calls] = np.arange(len(calls))
    rows = entries(line)
    ptr, needs = dependencies(waiting, rows, position)
    enters = np.full(len(calls), -1, np.int64)
    groups = np.flatnonzero(np.isin(rows.rule, (ALL, TO_ROOT)))
    entry = position[line.owner[rows.event[groups]]]
    enters[entry[entry >= 0]] = rows.collective[groups[entry >= 0]]
    waits = np.diff(ptr) > 0
    some = np.flatnonzero(waits)
    when = np.concatenate((begin, end[some]))
    what = np.concatenate((np.arange(len(calls)), len(calls) + some))
    order = what[np.lexsort((what, when))]
    done = replay(order, before, gap, keep, waits, enters, ptr, needs, int(rows.collective.max(initial=-1)) + 1)
    last = np.flatnonzero(np.append(first[1:], True))
    time = int(end.max()) - origin
    return Efficiency(time, min(time, max(done[at] for at in last.tolist())), useful)


def dependencies(waiting: Waiting, rows: Rows, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each call (by position in the chain) those whose beginning it needs; -1 - c: all that enter collective c."""
    line, m = waiting.line, waiting.messages
    needs = [(m.came, line.owner[m.sent])]
    names = np.array([name in SYNCHRONOUS for name in line.names] + [False])
    strict = (m.size > waiting.transfer.buffered) | names[line.name[m.sent]] if len(m.sent) else np.zeros(0, bool)
    strict &= (m.left >= 0) & (m.gone >= m.asked)
    needs.append((m.left[strict], line.owner[m.posted[strict]]))
    ended = rows.end >= 0
    one = ended & np.isin(rows.rule, (FROM_ROOT, LOWER)) & (rows.late >= 0)
    needs.append((rows.end[one], line.owner[rows.late[one]]))
    who = position[np.concatenate([a for a, _ in needs])]
    what = position[np.concatenate([b for _, b in needs])]
    every = np.flatnonzero(ended & ((rows.rule == ALL) | ((rows.rule == TO_ROOT) & (rows.late >= 0))))
    who = np.append(who, position[rows.end[every]])
    good = np.append(what >= 0, np.ones(len(every), bool)) & (who >= 0)
    what = np.append(what, -1 - rows.collective[every])[good]
    who = who[good]
    order = np.argsort(who, kind="stable")
    return np.searchsorted(who[order], np.arange(len(line.chain) + 1)), what[order]


def replay(
    order: np.ndarray, before: np.ndarray, gap: np.ndarray, keep: np.ndarray, waits: np.ndarray, enters: np.ndarray,
    ptr: np.ndarray, needs: np.ndarray, collectives: int,
) -> list[int]:  # fmt: skip
    """When each call ends. `order`: begins of calls, and len(calls) + call for the end of those that need others."""
    count = len(before)
    begun, ended, entered = [0] * count, [-1] * count, [0] * max(1, collectives)
    befores, gaps, keeps, enter = before.tolist(), gap.tolist(), keep.tolist(), enters.tolist()
    needing, starts, need = waits.tolist(), ptr.tolist(), needs.tolist()

    def finish(call: int) -> int:
        time = begun[call]
        for other in need[starts[call] : starts[call + 1]]:
            then = begun[other] if other >= 0 else entered[-1 - other]
            if then > time:
                time = then
        time += keeps[call]
        ended[call] = time
        return time

    for at in order.tolist():
        if at < count:
            previous = befores[at]
            time = gaps[at]
            if previous >= 0:
                last = ended[previous]
                time += last if last >= 0 else finish(previous)
            begun[at] = time
            collective = enter[at]
            if collective >= 0 and time > entered[collective]:
                entered[collective] = time
            if not needing[at]:
                ended[at] = time + keeps[at]
        elif ended[at - count] < 0:
            finish(at - count)
    return ended
