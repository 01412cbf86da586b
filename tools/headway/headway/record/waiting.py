"""What each call waited for: its time [b, e], split into the classes of `classes`.

A receive's completion (a receive, or the wait that completed it). S is when its send began, P when it was posted, from
X = max(S, P) on both sides are there, and T is what the transfer needs (`transfer_time`).
  late sender       [b, e] before S
  transfer          then what is left if the data moved from X on: X + T - max(b, S)
  missing progress  then, if that is more than transfers of this run usually take longer, as far as a side was outside
                    of MPI in [X, e]. Of the other side only until it last left MPI
                    before e: what moved after that moved without it.
  transfer          then: congestion
A send's completion: late receiver is [b, e] before P, the rest as above. If e < P the data were copied: all transfer.
A call that completed several: the one with the latest X + T counts. What remains of it may be explained by another one
whose other side was outside of MPI in what remains and then came back (if messages of that size need their sender).
Collectives: until the last entry of those it needs (`entries`), then transfer; of a non-blocking one in its wait.
Of what should have been complete before, a call of up to 2 us did not wait: it is in MPI.
Core taken: what the system says of the call's thread; it is taken out of what nothing explains, then of lateness (a
thread that sleeps wants no core: this one polled), then of transfer. Lock: what nothing else explains, while another
thread of the rank was in a call that ended before this one did. Rest: all of which no cause is known.

Parts of a call add up to its length, and none is negative. Calls that do not wait have no parts: they are in MPI.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from headway.record import classes, model, transfer_time
from headway.record.entries import START, UNKNOWN, Rows, entries
from headway.record.model import Run
from headway.record.timeline import Cover, Timeline
from headway.record.transfer_time import Line, Messages, Transfer, last_of, messages

RECEIVE, SEND, TOGETHER, PROBE = range(4)
A_CALL = 2000  # ns that a call may take which does not wait


@dataclass
class Waits:
    """Calls that may wait, of all ranks, in the order of events; one element, or row, a call."""

    event: np.ndarray  # numbers of the time line
    parts: np.ndarray  # ns, by class
    late_event: np.ndarray  # for whose beginning it waited: of the late sender, receiver, participant, root; -1 none
    late_reason: np.ndarray  # which of these
    missing_event: np.ndarray  # the call with which progress came back, of the rank that was outside; -1 none
    missing_place: np.ndarray
    message: np.ndarray  # that counted, into Run.messages; -1 none
    collective: np.ndarray  # that counted, into Run.collectives; -1 none
    delayed: np.ndarray  # ns for which it lasted longer only because its thread had no core


@dataclass
class Waiting:
    line: Timeline
    waits: Waits
    classes: np.ndarray  # uint8, of each event: the largest part; completions as their wait
    transfer: Transfer
    messages: Messages
    notes: list[str] = field(default_factory=list)

    def of_rank(self, place: int) -> tuple[np.ndarray, np.ndarray]:
        """Of the rank at this place: its events that may wait, and their rows in `waits`."""
        first, last = self.line.first[place], self.line.first[place + 1]
        rows = np.arange(*np.searchsorted(self.waits.event, (first, last)))
        return self.waits.event[rows] - first, rows

    def by_rank(self) -> list[np.ndarray]:
        """The class of each event, rank by rank, as `summary.summarise` and the page take them."""
        return np.split(self.classes, self.line.first[1:-1]) if len(self.line.world) else []

    def dense(self, place: int) -> np.ndarray:
        """ns of each event of a rank, by class; calls that do not wait are in MPI."""
        first, last = self.line.first[place], self.line.first[place + 1]
        found = np.zeros((last - first, classes.COUNT), np.int64)
        found[:, classes.IN_MPI] = np.where(self.line.call[first:last], self.line.spent[first:last], 0)
        events, rows = self.of_rank(place)
        found[events] = self.waits.parts[rows]
        return found

    def total(self) -> np.ndarray:
        """ns of all ranks, by class."""
        found = self.waits.parts.sum(axis=0)
        alone = self.line.call & ~self.line.blocking
        found[classes.IN_MPI] += self.line.spent[alone].sum()
        return found


@dataclass
class Operations:
    """What a call completed: one element each. `begin` is until when the other side was late."""

    kind: np.ndarray
    event: np.ndarray
    key: np.ndarray  # when it would have been complete
    begin: np.ndarray
    both: np.ndarray  # X
    need: np.ndarray  # T
    peer: np.ndarray  # place
    late: np.ndarray  # event
    reason: np.ndarray
    size: np.ndarray
    row: np.ndarray  # of the message or the collective's row

    def take(self, which: np.ndarray) -> Operations:
        return Operations(*(getattr(self, name)[which] for name in self.__dataclass_fields__))


def classify(run: Run, known: tuple[Line | None, Line | None] = (None, None)) -> Waiting:
    """`known`: what a transfer needs on one host and between hosts, where the run does not tell it."""
    line = Timeline(run)
    m = messages(line)
    transfer = transfer_time.learn(line, m, known)
    rows = entries(line)
    operations = of_all(line, m, transfer, rows)
    waits = split(line, m, rows, transfer, operations)
    return Waiting(line, waits, largest(line, waits), transfer, m, list(transfer.notes))


# ---- what calls completed -----------------------------------------------------------------------
def of_all(line: Timeline, m: Messages, transfer: Transfer, rows: Rows) -> Operations:
    need = transfer.time(m.size, m.between)
    count = len(m.index)
    receives = Operations(
        np.full(count, RECEIVE), m.came, m.both + need, m.begun, m.both, need, m.source, line.owner[m.sent],
        np.full(count, classes.LATE_SENDER), m.size, np.arange(count),
    )  # fmt: skip
    left = np.flatnonzero(m.left >= 0)
    copied = m.gone[left] < m.asked[left]
    both = np.where(copied, m.begun[left], m.both[left])
    sends = Operations(
        np.full(len(left), SEND), m.left[left], both + need[left], np.where(copied, 0, m.asked[left]), both,
        np.where(copied, line.span, need[left]),
        m.target[left], np.where(copied, -1, line.owner[m.posted[left]]), np.full(len(left), classes.LATE_RECEIVER),
        m.size[left], left,
    )  # fmt: skip
    some = np.flatnonzero(rows.end >= 0)
    late, end = rows.late[some], rows.end[some]
    begin = np.where(late < 0, 0, line.begin[late]) if len(late) else late
    zero = np.zeros(len(some), np.int64)
    together = Operations(
        zero + TOGETHER, end, np.maximum(begin, line.begin[end]), begin, begin, zero,
        np.where(late < 0, -1, line.place[late]) if len(late) else late, late, rows.reason[some], zero, some,
    )  # fmt: skip
    sets = receives, sends, together, probes(line, m, transfer)
    every = Operations(*(np.concatenate([getattr(s, name) for s in sets]) for name in Operations.__dataclass_fields__))
    return every.take(np.flatnonzero(line.blocking[every.event]))


def probes(line: Timeline, m: Messages, transfer: Transfer) -> Operations:
    """A probe waits for the message that the next receive of its sender and tag took, on its communicator."""
    some = np.flatnonzero(line.blocking & line.of("probe"))
    empty = np.zeros(0, np.int64)
    if not len(some) or not len(m.index):
        return Operations(*(empty,) * 11)
    e = np.concatenate([rank.events[["comm", "peer", "tag"]] for rank in line.run.ranks])
    peer = np.full(len(some), -1, np.int64)
    for place in np.unique(line.place[some]).tolist():
        rank = line.run.ranks[place]
        here = np.flatnonzero(line.place[some] == place)
        for number in np.unique(e["comm"][some[here]]).tolist():
            comm = rank.comms.get(number)
            remote = getattr(comm, "remote", None)
            members = line.world if comm is None else comm.members if remote is None else remote
            told = here[e["comm"][some[here]] == number]
            asked = e["peer"][some[told]]
            good = (asked >= 0) & (asked < len(members))
            peer[told[good]] = line.places(np.asarray(members)[asked[good]])
    tag = line.run.messages["tag"][m.index]
    of_probes = [line.place[some], e["comm"][some], peer, e["tag"][some]]
    of_receives = [m.target, e["comm"][m.posted], m.source, tag]
    keys = [np.concatenate((a, b)).astype(np.int64) for a, b in zip(of_receives, of_probes)]
    time = np.concatenate((line.begin[m.posted], line.begin[some]))
    count = len(time)
    order = np.lexsort((np.arange(count) < len(m.index), time, *keys))  # what a matched probe took stands for itself
    receive = np.where(order < len(m.index), np.arange(count), count)
    following = np.minimum.accumulate(receive[::-1])[::-1]
    same = following < count
    for key in keys:
        same &= key[order] == key[order[np.minimum(following, count - 1)]]
    found = np.full(count, -1, np.int64)
    found[order[same]] = order[following[same]]
    found = found[len(m.index) :]
    good = np.flatnonzero(found >= 0)
    row, event = found[good], some[good]
    begin = m.begun[row]
    both = np.maximum(begin, line.begin[event])
    need = transfer.time(np.zeros(len(row)), m.between[row])
    ones = np.ones(len(row), np.int64)
    return Operations(
        PROBE * ones, event, both + need, begin, both, need, m.source[row], line.owner[m.sent[row]],
        classes.LATE_SENDER * ones, m.size[row], row,
    )  # fmt: skip


# ---- classes ------------------------------------------------------------------------------------
def split(line: Timeline, m: Messages, rows: Rows, transfer: Transfer, every: Operations) -> Waits:
    event = np.flatnonzero(line.blocking)
    where = np.full(len(line.begin), -1, np.int64)
    where[event] = np.arange(len(event))
    chosen = last_of(every.event, every.key, -every.kind)
    op = every.take(chosen)
    begin, end = line.begin[op.event], line.end[op.event]
    from_both = np.clip(op.begin, begin, end)
    late = from_both - begin
    left = end - from_both
    ideal = np.clip(op.both + op.need - from_both, 0, left)
    excess = left - ideal
    no_core = line.no_core[op.event]
    excess, core = _take(excess, no_core)
    delayed = no_core - core
    late, core = _take(late, core)
    ideal, core = _take(ideal, core)
    single = op.kind != TOGETHER
    complete = (op.kind <= SEND) & (op.both + op.need <= begin) & (end - begin <= A_CALL)
    alone = np.where(complete, excess, 0)
    excess = excess - alone
    usual = transfer.usual(np.minimum(op.need, line.span), line.host[line.place[op.event]] != line.host[op.peer])
    may = single & (excess > usual)
    missing, where_from, place = _missing(line, op, begin, end, excess, may)
    several(line, transfer, every, op, may, begin, end, excess, missing, where_from, place)
    unexplained = excess - missing
    lock = _lock(line, op.event, end - unexplained, end, unexplained)
    unexplained = unexplained - lock
    unknown = np.zeros(len(op.event), bool)
    together = np.flatnonzero(~single)
    unknown[together] = np.isin(rows.rule[op.row[together]], (UNKNOWN, START))

    length = line.end[event] - line.begin[event]
    parts = np.zeros((len(event), classes.COUNT), np.int64)
    parts[:, classes.NO_CORE] = line.no_core[event]
    at = where[op.event]
    parts[at, op.reason] = late
    parts[at, classes.IN_MPI] = alone
    parts[at, classes.TRANSFER] += ideal + np.where(unknown, 0, unexplained)
    parts[at, classes.MISSING_PROGRESS] = missing
    parts[at, classes.LOCK] = lock
    parts[:, classes.REST] = length - parts.sum(axis=1)
    # What MPI itself takes to start and to end is no waiting.
    own = line.of("init", "finalize")[event]
    for part in (classes.TRANSFER, classes.MISSING_PROGRESS, classes.REST):
        parts[own, classes.IN_MPI] += parts[own, part]
        parts[own, part] = 0

    none = np.full(len(event), -1, np.int64)
    waits = Waits(event, parts, *(none.copy() for _ in range(6)), np.zeros(len(event), np.int64))
    waits.delayed[at] = delayed
    some = late > 0
    waits.late_event[at[some]], waits.late_reason[at[some]] = op.late[some], op.reason[some]
    some = missing > 0
    waits.missing_event[at[some]], waits.missing_place[at[some]] = where_from[some], place[some]
    waits.message[at[single]] = m.index[op.row[single]]
    waits.collective[at[~single]] = rows.collective[op.row[~single]]
    return waits


def _take(from_what: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    taken = np.minimum(from_what, wanted)
    return from_what - taken, wanted - taken


def _missing(
    line: Timeline, op: Operations, begin: np.ndarray, end: np.ndarray, excess: np.ndarray, may: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Missing progress of the operation that counted: ns, the call that brought it back, the place that was outside."""
    found = np.zeros(len(begin), np.int64)
    call, place = np.full(len(begin), -1, np.int64), np.full(len(begin), -1, np.int64)
    at = np.flatnonzero(may)
    own, peer, both = line.place[op.event[at]], op.peer[at], op.both[at]
    left = line.inside.stop(peer, end[at])
    mine = line.inside.without(own, both, begin[at])
    theirs = line.inside.without(peer, both, left)
    out = mine + theirs
    doubled = np.flatnonzero((mine > 0) & (theirs > 0) & (excess[at] > np.maximum(mine, theirs)))
    if len(doubled):
        until = np.minimum(begin[at][doubled], left[doubled])
        out[doubled] -= line.inside.neither(own[doubled], peer[doubled], both[doubled], until)
    found[at] = np.minimum(excess[at], out)
    back = line.last_call(peer, left)
    call[at] = np.where(theirs > mine, back, op.event[at])
    place[at] = np.where(theirs > mine, peer, own)
    return found, call, place


def several(
    line: Timeline, transfer: Transfer, every: Operations, op: Operations, may: np.ndarray, begin: np.ndarray,
    end: np.ndarray, excess: np.ndarray, missing: np.ndarray, call: np.ndarray, place: np.ndarray,
) -> None:  # fmt: skip
    """What remains of calls that completed several may be missing progress of another one than that which counted."""
    remains = np.flatnonzero(may & (excess > missing) & (op.kind <= SEND))
    if not len(remains):
        return
    index = np.full(len(line.begin), -1, np.int64)
    index[op.event[remains]] = remains
    others = np.flatnonzero((index[every.event] >= 0) & (every.kind <= SEND) & (every.size > transfer.buffered))
    if not len(others):
        return
    of = index[every.event[others]]
    last = end[of]
    # Where what is not explained by being there too late, nor by the wire, begins.
    first = np.maximum(begin[of], last - excess[of])
    left = line.inside.stop(every.peer[others], last)
    away = line.inside.without(every.peer[others], np.maximum(first, every.both[others]), left)
    # Back again, its data still had to move.
    out = np.where(away > 0, np.minimum(away + every.need[others], excess[of]), 0)
    best = last_of(of, out)
    best = best[out[best] > missing[of[best]]]
    which, other = of[best], others[best]
    missing[which] = out[best]
    place[which] = every.peer[other]
    call[which] = line.last_call(every.peer[other], left[best])


def _lock(line: Timeline, event: np.ndarray, begin: np.ndarray, end: np.ndarray, most: np.ndarray) -> np.ndarray:
    found = np.zeros(len(event), np.int64)
    crowded = line.threads[line.place[event]] > 1
    if not crowded.any():
        return found
    for place in np.unique(line.place[event[crowded]]).tolist():
        calls = np.flatnonzero(line.call & (line.place == place))
        for thread in np.flatnonzero(line.thread_place == place).tolist():
            at = np.flatnonzero((line.thread[event] == thread) & (most > 0))
            if not len(at):
                continue
            others = calls[line.thread[calls] != thread]
            zero = np.zeros(len(others), np.int64)
            cover = Cover(zero, line.begin[others], line.end[others], line.span)
            ends = np.concatenate(([0], np.sort(line.end[others])))
            last = ends[np.searchsorted(ends, end[at], "right") - 1]
            held = cover.within(np.zeros(len(at), np.int64), begin[at], np.minimum(last, end[at]))
            found[at] = np.minimum(most[at], held)
    return found


def largest(line: Timeline, waits: Waits) -> np.ndarray:
    """The class of each event."""
    found = np.full(len(line.begin), classes.IN_MPI, np.uint8)
    some = waits.parts[:, classes.LATE_SENDER : classes.OFF]
    best = classes.LATE_SENDER + some.argmax(axis=1)
    found[waits.event] = np.where(some.max(axis=1, initial=0) > 0, best, classes.IN_MPI)
    found = found[line.owner] if len(found) else found
    found[line.kind == model.CORE_TAKEN] = classes.NO_CORE
    found[line.kind == model.GAP] = classes.OFF
    return found
