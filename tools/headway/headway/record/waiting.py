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

Memory. What calls completed is put on shelves, one a chunk of the time line; then one chunk after the other is split.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from headway.record import classes, columns, model, transfer_time
from headway.record.columns import Shelves, find, rest, room, table, take
from headway.record.cover import Cover
from headway.record.entries import START, UNKNOWN, Rows, entries
from headway.record.model import Run
from headway.record.timeline import Timeline
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

    def rows(self, events: np.ndarray) -> np.ndarray:
        """Where these events stand here; -1 for those that do not."""
        at = find(self.event, events) - 1
        if not len(self.event):
            return at
        return np.where((at >= 0) & (take(self.event, np.maximum(at, 0)) == events), at, -1)

    def rest(self) -> None:
        rest(*(getattr(self, name) for name in self.__dataclass_fields__))


@dataclass
class Waiting:
    line: Timeline
    waits: Waits
    classes: np.ndarray  # uint8, of each event (see `largest`); completions as their wait
    transfer: Transfer
    messages: Messages
    rows: Rows  # of collectives
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

    @cached_property
    def waited(self) -> np.ndarray:
        """ns in calls that may wait, of all ranks, by class."""
        found = np.zeros(classes.COUNT, np.int64)
        for low in range(0, len(self.waits.event), columns.CHUNK):
            found += self.waits.parts[low : low + columns.CHUNK].sum(axis=0)
            self.waits.rest()
        return found

    def total(self) -> np.ndarray:
        """ns of all ranks, by class."""
        found = self.waited.copy()
        for low, high in self.line.chunks:
            alone = self.line.call[low:high] & ~self.line.blocking[low:high]
            found[classes.IN_MPI] += self.line.spent[low:high][alone].sum()
            self.line.rest()
        return found


# What a call completed: a row each.
OPERATION = np.dtype(
    [
        ("event", "<i8"),
        ("key", "<i8"),  # when it would have been complete
        ("begin", "<i8"),  # until when the other side was late
        ("both", "<i8"),  # X
        ("need", "<i8"),  # T
        ("late", "<i8"),  # event
        ("size", "<i8"),
        ("of", "<i8"),  # the message, into Run.messages; or the collective, into Run.collectives
        ("peer", "<i4"),  # place
        ("kind", "u1"),
        ("reason", "u1"),
        ("rule", "u1"),  # of a collective
    ]
)


class Operations:
    """These as columns."""

    event: np.ndarray
    key: np.ndarray
    begin: np.ndarray
    both: np.ndarray
    need: np.ndarray
    late: np.ndarray
    size: np.ndarray
    of: np.ndarray
    peer: np.ndarray
    kind: np.ndarray
    reason: np.ndarray
    rule: np.ndarray

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows
        for name in rows.dtype.names:
            setattr(self, name, np.ascontiguousarray(rows[name]))

    def take(self, which: np.ndarray) -> Operations:
        return Operations(self.rows[which])


def classify(run: Run, known: tuple[Line | None, Line | None] = (None, None)) -> Waiting:
    """`known`: what a transfer needs on one host and between hosts, where the run does not tell it."""
    line = Timeline(run)
    m = messages(line)
    transfer = transfer_time.learn(line, m, known)
    rows = entries(line)
    waits = split(line, transfer, operations(line, m, transfer, rows))
    return Waiting(line, waits, largest(line, waits), transfer, m, rows, list(transfer.notes))


# ---- what calls completed -----------------------------------------------------------------------
def operations(line: Timeline, m: Messages, transfer: Transfer, rows: Rows) -> Shelves:
    """By chunk of the call."""
    found = Shelves(len(line.chunks), OPERATION, line.run.spill)

    def add(**fields: np.ndarray | int) -> None:
        made = np.zeros(len(fields["event"]), OPERATION)
        for name, values in fields.items():
            made[name] = values
        made = made[take(line.blocking, made["event"])]
        found.add(made, line.chunk_of(made["event"]))

    for low in range(0, len(m), columns.CHUNK):
        some = m.take(slice(low, low + columns.CHUNK))
        for fields in of_messages(line, some, transfer):
            add(**fields)
        m.rest()
        line.rest()
    for low in range(0, len(rows), columns.CHUNK):
        some = rows.take(slice(low, low + columns.CHUNK))
        add(**of_collectives(line, some.take(np.flatnonzero(some.end >= 0))))
        rows.rest()
        line.rest()
    asked = probing(line)
    received = by_target(line, m, list(asked)) if asked else None
    for place, events in asked.items():
        add(**probes(line, m.take(received[place]["row"]), transfer, place, events))
    return found


def of_messages(line: Timeline, m: Messages, transfer: Transfer) -> tuple[dict, dict]:
    """Receives, then sends."""
    need = transfer.time(m.size, m.between)
    receives = dict(
        kind=RECEIVE, event=m.came, key=m.both + need, begin=m.begun, both=m.both, need=need, peer=m.source,
        late=take(line.owner, m.sent), reason=classes.LATE_SENDER, size=m.size, of=m.index,
    )  # fmt: skip
    left = np.flatnonzero(m.left >= 0)
    m, need = m.take(left), need[left]
    copied = m.gone < m.asked
    both = np.where(copied, m.begun, m.both)
    sends = dict(
        kind=SEND, event=m.left, key=both + need, begin=np.where(copied, 0, m.asked), both=both,
        need=np.where(copied, line.span, need), peer=m.target,
        late=np.where(copied, -1, take(line.owner, m.posted)), reason=classes.LATE_RECEIVER, size=m.size, of=m.index,
    )  # fmt: skip
    return receives, sends


def of_collectives(line: Timeline, rows: Rows) -> dict:
    late, end = rows.late, rows.end
    begin, peer = np.zeros(len(rows), np.int64), np.full(len(rows), -1, np.int64)
    known = late >= 0
    begin[known], peer[known] = take(line.begin, late[known]), take(line.place, late[known])
    return dict(
        kind=TOGETHER, event=end, key=np.maximum(begin, take(line.begin, end)), begin=begin, both=begin, need=0,
        peer=peer, late=late, reason=rows.reason, size=0, of=rows.collective, rule=rows.rule,
    )  # fmt: skip


def probing(line: Timeline) -> dict[int, np.ndarray]:
    """By place: the rank's probes that may wait, if it has any."""
    found: dict[int, list[np.ndarray]] = {}
    for low, high in line.chunks:
        some = low + np.flatnonzero(line.blocking[low:high] & line.of("probe", among=slice(low, high)))
        place = line.place[some]
        for one in np.unique(place).tolist():
            found.setdefault(one, []).append(some[place == one])
        line.rest()
    return {place: np.concatenate(some) for place, some in found.items()}


def by_target(line: Timeline, m: Messages, places: list[int]) -> Shelves:
    """The messages that came to these ranks."""
    found = Shelves(len(line.world), np.dtype([("row", "<i8")]), line.run.spill)
    for low in range(0, len(m), columns.CHUNK):
        target = m.target[low : low + columns.CHUNK]
        some = np.flatnonzero(np.isin(target, places))
        found.add((low + some).astype(np.int64).view(found.dtype), target[some])
        rest(m.target)
    return found


def probes(line: Timeline, m: Messages, transfer: Transfer, place: int, asked: np.ndarray) -> dict:
    """A rank's probes, of the messages that came to it. Each waits for the one that the next receive of its sender and
    tag took, on its communicator."""
    rank, first = line.run.ranks[place], int(line.first[place])
    told = take(rank.events, asked - first)
    peer = np.full(len(asked), -1, np.int64)
    for number in np.unique(told["comm"]).tolist():
        comm = rank.comms.get(number)
        remote = getattr(comm, "remote", None)
        members = line.world if comm is None else comm.members if remote is None else remote
        here = np.flatnonzero(told["comm"] == number)
        peers = told["peer"][here]
        good = (peers >= 0) & (peers < len(members))
        peer[here[good]] = line.places(np.asarray(members)[peers[good]])
    of_probes = [told["comm"], peer, told["tag"]]
    of_receives = [take(rank.events, m.posted - first)["comm"], m.source, take(line.run.messages, m.index)["tag"]]
    keys = [np.concatenate((a, b)).astype(np.int64) for a, b in zip(of_receives, of_probes)]
    time = np.concatenate((take(line.begin, m.posted), take(line.begin, asked)))
    count = len(time)
    order = np.lexsort((np.arange(count) < len(m), time, *keys))  # what a matched probe took stands for itself
    receive = np.where(order < len(m), np.arange(count), count)
    following = np.minimum.accumulate(receive[::-1])[::-1]
    same = following < count
    for key in keys:
        same &= key[order] == key[order[np.minimum(following, count - 1)]]
    found = np.full(count, -1, np.int64)
    found[order[same]] = order[following[same]]
    found = found[len(m) :]
    good = np.flatnonzero(found >= 0)
    m, event = m.take(found[good]), asked[good]
    both = np.maximum(m.begun, take(line.begin, event))
    need = transfer.time(np.zeros(len(m)), m.between)
    return dict(
        kind=PROBE, event=event, key=both + need, begin=m.begun, both=both, need=need, peer=m.source,
        late=take(line.owner, m.sent), reason=classes.LATE_SENDER, size=m.size, of=m.index,
    )  # fmt: skip


# ---- classes ------------------------------------------------------------------------------------
def split(line: Timeline, transfer: Transfer, every: Shelves) -> Waits:
    count = 0
    for low, high in line.chunks:
        count += int(np.count_nonzero(line.blocking[low:high]))
        rest(line.blocking)
    spill = line.run.spill
    dtypes = np.int64, np.int8, np.int64, np.int32, np.int64, np.int64, np.int64
    found = Waits(
        room(count, np.int64, spill), table(count, classes.COUNT, np.int64, spill),
        *(room(count, dtype, spill) for dtype in dtypes),
    )  # fmt: skip
    at = 0
    for number, (low, high) in enumerate(line.chunks):
        operations = every[number]
        # Receives first, then sends, and so on: of equal ones the last counts.
        operations = operations[np.argsort(operations["kind"], kind="stable")]
        waits = _split(line, transfer, Operations(operations), low, high)
        for name in Waits.__dataclass_fields__:
            getattr(found, name)[at : at + len(waits.event)] = getattr(waits, name)
        at += len(waits.event)
        found.rest()
        line.rest()
    return found


def _split(line: Timeline, transfer: Transfer, every: Operations, low: int, high: int) -> Waits:
    """Of a chunk."""
    event = low + np.flatnonzero(line.blocking[low:high])
    where = np.full(high - low, -1, np.int64)
    where[event - low] = np.arange(len(event))
    chosen = last_of(every.event, every.key, -every.kind.astype(np.int64))
    op = every.take(chosen)
    own = line.place[op.event]
    begin, end = line.begin[op.event], line.end[op.event]
    from_both = np.clip(op.begin, begin, end)
    late = from_both - begin
    left = end - from_both
    ideal = np.clip(op.both + op.need - from_both, 0, left)
    excess = left - ideal
    no_core = line.no_core(event)
    taken = no_core[where[op.event - low]]
    excess, core = _take(excess, taken)
    delayed = taken - core
    late, core = _take(late, core)
    ideal, core = _take(ideal, core)
    single = op.kind != TOGETHER
    complete = (op.kind <= SEND) & (op.both + op.need <= begin) & (end - begin <= A_CALL)
    alone = np.where(complete, excess, 0)
    excess = excess - alone
    usual = transfer.usual(np.minimum(op.need, line.span), line.host[own] != line.host[op.peer])
    may = single & (excess > usual)
    missing, where_from, place = _missing(line, op, begin, end, excess, may)
    several(line, transfer, every, op, may, begin, end, excess, missing, where_from, place, low)
    unexplained = excess - missing
    lock = _lock(line, op.event, end - unexplained, end, unexplained)
    unexplained = unexplained - lock
    unknown = ~single & np.isin(op.rule, (UNKNOWN, START))

    length = line.end[event] - line.begin[event]
    parts = np.zeros((len(event), classes.COUNT), np.int64)
    parts[:, classes.NO_CORE] = no_core
    at = where[op.event - low]
    parts[at, op.reason] = late
    parts[at, classes.IN_MPI] = alone
    parts[at, classes.TRANSFER] += ideal + np.where(unknown, 0, unexplained)
    parts[at, classes.MISSING_PROGRESS] = missing
    parts[at, classes.LOCK] = lock
    parts[:, classes.REST] = length - parts.sum(axis=1)
    # What MPI itself takes to start and to end is no waiting.
    ends = line.of("init", "finalize", among=event)
    for part in (classes.TRANSFER, classes.MISSING_PROGRESS, classes.REST):
        parts[ends, classes.IN_MPI] += parts[ends, part]
        parts[ends, part] = 0

    none = np.full(len(event), -1, np.int64)
    waits = Waits(event, parts, *(none.copy() for _ in range(6)), np.zeros(len(event), np.int64))
    waits.delayed[at] = delayed
    some = late > 0
    waits.late_event[at[some]], waits.late_reason[at[some]] = op.late[some], op.reason[some]
    some = missing > 0
    waits.missing_event[at[some]], waits.missing_place[at[some]] = where_from[some], place[some]
    waits.message[at[single]] = op.of[single]
    waits.collective[at[~single]] = op.of[~single]
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
    own, peer, both = line.place[op.event[at]].astype(np.int64), op.peer[at].astype(np.int64), op.both[at]
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
    end: np.ndarray, excess: np.ndarray, missing: np.ndarray, call: np.ndarray, place: np.ndarray, low: int,
) -> None:  # fmt: skip
    """What remains of calls that completed several may be missing progress of another one than that which counted."""
    remains = np.flatnonzero(may & (excess > missing) & (op.kind <= SEND))
    if not len(remains):
        return
    index = np.full(int(op.event.max()) - low + 1, -1, np.int64)
    index[op.event[remains] - low] = remains
    others = np.flatnonzero((index[every.event - low] >= 0) & (every.kind <= SEND) & (every.size > transfer.buffered))
    if not len(others):
        return
    of = index[every.event[others] - low]
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
    crowded = (line.threads[line.place[event]] > 1) & (most > 0)
    if not crowded.any():
        return found
    for place in np.unique(line.place[event[crowded]]).tolist():
        mine = np.flatnonzero(crowded & (line.place[event] == place))
        calls = line.overlapping(place, int(begin[mine].min()), int(end[mine].max()))
        of_thread, thread = take(line.thread, calls), line.thread[event[mine]]
        starts, ends = take(line.begin, calls), take(line.end, calls)
        for one in np.unique(thread).tolist():
            at, others = mine[thread == one], of_thread != one
            zero = np.zeros(int(others.sum()), np.int64)
            cover = Cover(zero, starts[others], ends[others], line.span)
            until = np.concatenate(([0], np.sort(ends[others])))
            last = until[np.searchsorted(until, end[at], "right") - 1]
            held = cover.within(np.zeros(len(at), np.int64), begin[at], np.minimum(last, end[at]))
            found[at] = np.minimum(most[at], held)
    return found


def largest(line: Timeline, waits: Waits) -> np.ndarray:
    """The class of each event: that of most of its waiting, if it waited for half of its time or more."""
    found, at = room(len(line.begin), np.uint8, line.run.spill), 0
    for low, high in line.chunks:
        found[low:high] = classes.IN_MPI
        last = at + int(np.count_nonzero(line.blocking[low:high]))
        some = waits.parts[at:last, classes.LATE_SENDER : classes.OFF]
        best = classes.LATE_SENDER + some.argmax(axis=1) if last > at else np.zeros(0, np.int64)
        waited = some.sum(axis=1)
        waits_most = (waited > 0) & (waited >= waits.parts[at:last, classes.IN_MPI])
        found[waits.event[at:last]] = np.where(waits_most, best, classes.IN_MPI)
        found[low:high] = take(found, line.owner[low:high])
        kind = line.kind[low:high]
        found[low:high][kind == model.CORE_TAKEN] = classes.NO_CORE
        found[low:high][kind == model.GAP] = classes.OFF
        at = last
        waits.rest()
        rest(found)
        line.rest()
    return found
