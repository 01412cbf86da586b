"""A run as the program that its ranks carried out: what a replay runs, and what a change edits.

A lane is a thread of a rank: a row of calls, each behind a stretch of computation (`gap`). A call begins operations
(`starts`), waits for operations (`needs`), or only asks for them (`asks`: a test), and takes at least `own` ns. An
operation is a side of a message (3 * message + SEND, RECEIVE or ENVELOPE; the last is what a probe waits for) or, from
`World.parts` on, a rank's part of a collective.

What a call of the run took itself: all its time, if nothing is known that it waited for, or if what it waited for
was there before; of a send that needed no receiver, if it took no longer than a copy of its bytes; else as little as
calls of its name take, at most 2 us. A collective's part takes what it took in the run from the last entry on which it
waited for. For how long a wait lasted only because another program had its core, or single ones lasted longer than their
fellows for no reason that the run shows (`held_up`), its rank computes behind it: so that stays where it was when the wait is
elsewhere. Tests in vain with long computation between them are calls of their own,
often repeated ones are one call.

A Program is never changed: changes work on a copy.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from headway.record import model
from headway.record.entries import ALL, START, TO_ROOT, UNKNOWN, Rows, entries
from headway.record.held_up import held_up
from headway.record.model import FAMILIES
from headway.record.timeline import CODE, Timeline
from headway.record.transfer_time import WHERE
from headway.record.waiting import A_CALL, Waiting

SEND, RECEIVE, ENVELOPE = range(3)
SIDES = 3
NOBODY, EVERYBODY = -1, -2  # for whose entry a part of a collective waits
MOST_TESTS = 1 << 18  # that are calls of their own, of all rows
SHORT_TEST = 1000.0  # ns, where no test was seen
FAST = 20_000  # ns that a call may take whose data were there
COPY = 1.0  # ns a byte that a send may take more that copies them: what lasts longer waits, if only for room


@dataclass
class World:
    """What no change touches."""

    line: Timeline
    ranks: int
    rank_of: list[int]  # of each lane, the rank's place
    source: list[int]  # of each message: places
    target: list[int]
    size: list[int]
    tag: list[int]
    between: list[bool]  # hosts
    wild: list[bool]  # received from any source
    need: list[int]  # ns that the shortest transfers take
    latency: list[int]  # of that, without any data
    longer: float  # share by which three of four transfers took longer at most, of those that are known
    unsure: tuple[bool, ...]  # on one host, between hosts: the run does not tell what a transfer needs, only no less
    measured: bool  # what some transfers need at least was measured outside of the run
    host: list[int]  # by place
    parts: int  # the first operation that is a part of a collective
    collective: list[int]  # of each part
    after: list[int]  # part for whose entry it waits, or NOBODY, EVERYBODY
    cost: list[int]  # ns
    duration: int
    in_calls: list[int]  # ns, by place
    at_sites: dict[tuple[int, int], int]  # of them, by place and key
    test: float  # ns that a test takes
    keys: list[tuple[int, int]]  # site and name of a key

    @property
    def operations(self) -> int:
        return self.parts + len(self.collective)

    def site(self, key: int) -> model.Site:
        return self.line.sites[self.keys[key][0]] if key >= 0 else model.Site()

    def name(self, key: int) -> str:
        return self.line.names[self.keys[key][1]] if key >= 0 else ""


@dataclass
class Program:
    world: World
    lanes: list[list[int]]  # calls in their order
    gap: list[int]  # ns
    own: list[int]  # ns
    starts: list[tuple[int, ...]]
    needs: list[tuple[int, ...]]
    family: list[str]
    key: list[int]  # call site and name, into World.keys
    asks: dict[int, tuple[int, ...]] = field(default_factory=dict)
    polls: frozenset[int] = frozenset()  # calls that stand for a row of tests, one right behind the other

    def copy(self) -> Program:
        lists = (list(getattr(self, name)) for name in ("gap", "own", "starts", "needs", "family", "key"))
        return Program(self.world, [list(lane) for lane in self.lanes], *lists, dict(self.asks), self.polls)

    def add(self, gap: int, own: int, family: str, key: int, starts: tuple = (), needs: tuple = ()) -> int:
        """A new call, in no lane yet."""
        for column, value in zip(
            (self.gap, self.own, self.starts, self.needs, self.family, self.key), (gap, own, starts, needs, family, key)
        ):
            column.append(value)
        return len(self.gap) - 1

    def receives(self, ops: tuple[int, ...]) -> bool:
        """Whether one of them is a receive."""
        return any(op < self.world.parts and op % SIDES == RECEIVE for op in ops)

    def only_sends(self, ops: tuple[int, ...]) -> bool:
        return bool(ops) and all(op < self.world.parts and op % SIDES == SEND for op in ops)


def program(waiting: Waiting) -> Program:
    line, m = waiting.line, waiting.messages
    calls = line.chain
    position = np.full(len(line.begin) + 1, -1, np.int64)  # the last one is of -1
    position[calls] = np.arange(len(calls))
    rows = entries(line)
    parts = SIDES * len(m.index)
    number = np.arange(len(m.index))
    probe, probed = _probes(waiting, number)
    entry, end = line.owner[rows.event] if len(rows.event) else rows.event, rows.end
    part = parts + np.arange(len(entry))
    starts = _by_call(
        len(calls),
        position[np.concatenate((line.owner[m.sent], line.owner[m.posted], entry))] if len(calls) else entry,
        np.concatenate((SIDES * number + SEND, SIDES * number + RECEIVE, part)),
    )
    who = position[np.concatenate((m.left, m.came, probe, end))]
    what = np.concatenate((SIDES * number + SEND, SIDES * number + RECEIVE, SIDES * probed + ENVELOPE, part))
    needs = _by_call(len(calls), who, what)
    # What a call lasted longer only for want of a core, or was held up once, is no part of it: it stands behind it.
    delayed = np.zeros(len(line.begin), np.int64)
    delayed[waiting.waits.event] = waiting.waits.delayed + held_up(waiting)
    delayed = delayed[calls]
    own = _own(waiting, calls, delayed, who, what, parts)
    thread = line.thread[calls]
    begin, length = line.begin[calls], line.end[calls] - line.begin[calls]
    first = np.concatenate(([True], thread[1:] != thread[:-1])) if len(calls) else np.zeros(0, bool)
    before = np.where(first, 0, np.concatenate(([0], line.end[calls][:-1]))) if len(calls) else begin
    gap = np.maximum(begin - before, 0)
    gap[1:] += np.where(first[1:], 0, delayed[:-1])
    pairs, key = np.unique(line.site[calls] * max(1, len(line.names)) + line.name[calls], return_inverse=True)
    keys = [divmod(pair, max(1, len(line.names))) for pair in pairs.tolist()]
    edges = np.append(np.flatnonzero(first), len(calls))
    lanes = [list(range(low, high)) for low, high in zip(edges[:-1].tolist(), edges[1:].tolist())]
    tests = np.flatnonzero((line.flags[calls] & model.IN_VAIN > 0) & ~line.often[calls])
    inside = np.where(line.often[calls], length, line.spent[calls]) - delayed
    world = _world(waiting, rows, parts, np.bincount(line.place[calls], inside, len(line.world)))
    world.at_sites = _at_sites(line.place[calls], key, inside)
    world.rank_of = line.place[calls[edges[:-1]]].tolist() if len(calls) else []
    world.keys = keys
    names = [FAMILIES[f] for f in line.family[calls].tolist()]
    found = Program(world, lanes, gap.tolist(), own.tolist(), starts, needs, names, key.tolist())
    found.polls = frozenset(np.flatnonzero((line.flags[calls] & model.IN_VAIN > 0) & line.often[calls]).tolist())
    _spread_tests(found, tests.tolist(), calls)
    return found


def _at_sites(place: np.ndarray, key: np.ndarray, ns: np.ndarray) -> dict[tuple[int, int], int]:
    """Time in calls, by place and key."""
    count = 1 + int(key.max(initial=0))
    sums = np.bincount(place * count + key, ns)
    return {divmod(at, count): round(float(sums[at])) for at in np.flatnonzero(sums).tolist()}


def _by_call(count: int, call: np.ndarray, op: np.ndarray) -> list[tuple[int, ...]]:
    good = call >= 0
    call, op = call[good], op[good]
    order = np.argsort(call, kind="stable")
    edges, ops = np.searchsorted(call[order], np.arange(count + 1)).tolist(), op[order].tolist()
    return [tuple(ops[low:high]) for low, high in zip(edges, edges[1:])]


def _probes(waiting: Waiting, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probes that wait, and the messages that they found."""
    line, waits, m = waiting.line, waiting.waits, waiting.messages
    row_of = np.full(len(line.run.messages) + 1, -1, np.int64)
    row_of[m.index] = number
    some = np.flatnonzero((line.family[waits.event] == CODE["probe"]) & (waits.message >= 0))
    return waits.event[some], row_of[waits.message[some]]


def _own(
    waiting: Waiting, calls: np.ndarray, delayed: np.ndarray, who: np.ndarray, what: np.ndarray, parts: int
) -> np.ndarray:
    line, m = waiting.line, waiting.messages
    length = np.maximum(line.end[calls] - line.begin[calls] - delayed, 0)
    own = length.copy()
    known = who >= 0
    who, what = who[known], what[known]
    waits = np.zeros(len(calls), bool)
    waits[who] = True
    usual = np.zeros(len(line.names) + 1)
    for name in np.unique(line.name[calls[waits]]).tolist():
        usual[name] = min(A_CALL, np.quantile(length[waits & (line.name[calls] == name)], 0.05))
    # Was all there before, or did a send need no receiver?
    begin, row, side = line.begin[calls[who]], what // SIDES, what % SIDES
    there = np.zeros(len(who), bool)
    of_message = np.flatnonzero(what < parts)
    row, side, begin = row[of_message], side[of_message], begin[of_message]
    if len(row):
        need = waiting.transfer.time(m.size[row], m.between[row])
        came = (m.both[row] + need <= begin) & (length[who[of_message]] <= FAST)
        free = (m.gone[row] < m.asked[row]) | (m.asked[row] <= m.begun[row])
        free &= m.size[row] <= waiting.transfer.buffered
        # Where a socket takes such a message now and not then, those that it did not take waited.
        free &= length[who[of_message]] <= FAST + np.minimum(need, COPY * m.size[row])
        there[of_message] = np.where(side == SEND, free, came)
    waited = np.zeros(len(calls), bool)
    waited[who[~there]] = True
    own[waited] = np.minimum(length, usual[line.name[calls]].astype(np.int64))[waited]
    return own


def _world(waiting: Waiting, rows: Rows, parts: int, in_calls: np.ndarray) -> World:
    line, m, run = waiting.line, waiting.messages, waiting.line.run
    need = waiting.transfer.time(m.size, m.between)
    latency = waiting.transfer.time(np.zeros(len(m.size)), m.between)
    unsure = tuple(any(where in note for note in waiting.transfer.notes) for where in WHERE)
    sure = ~np.array(unsure)[m.between.astype(np.int64)]
    spread = np.array([line_.spread for line_ in waiting.transfer.lines])[m.between.astype(np.int64)]
    longer = float((need * spread)[sure].sum()) / max(1.0, float(need[sure].sum()))
    collective, after, cost = _collectives(line, rows)
    vain = np.flatnonzero(line.call & (line.flags & model.IN_VAIN > 0))
    events = [rank.events[rank.events["flags"] & model.IN_VAIN > 0] for rank in run.ranks]
    tests = sum(int(some["tag"].clip(1).astype(np.int64).sum()) for some in events)
    quick = np.flatnonzero(line.call & line.of("isend", "irecv"))
    price = float(line.spent[vain].sum()) / tests if tests else 0.0
    if not tests:
        price = max(SHORT_TEST, float(np.median(line.spent[quick]))) if len(quick) else SHORT_TEST
    return World(
        line, len(line.world), [], m.source.tolist(), m.target.tolist(), m.size.tolist(),
        run.messages["tag"][m.index].tolist(), m.between.tolist(),
        (line.flags[m.posted] & model.ANY_SOURCE > 0).tolist() if len(m.posted) else [],
        need.tolist(), latency.tolist(), longer, unsure, any(waiting.transfer.measured), line.host.tolist(), parts,
        collective.tolist(), after.tolist(), cost.tolist(), run.duration, np.rint(in_calls).astype(np.int64).tolist(),
        {}, price, [],
    )  # fmt: skip


def _collectives(line: Timeline, rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each part: its collective, for whose entry it waits, and what it takes then."""
    count = len(rows.event)
    if not count:
        return (np.zeros(0, np.int64),) * 3
    # Starts and ends of MPI have no number: one each.
    number = rows.collective.copy()
    ends = number < 0
    number[ends] = number.max(initial=-1) + 1 + line.of("finalize")[rows.event[ends]]
    number = np.unique(number, return_inverse=True)[1]
    part_of = np.full(len(line.begin), -1, np.int64)
    part_of[rows.event] = np.arange(count)
    after = np.where(rows.late < 0, NOBODY, part_of[np.maximum(rows.late, 0)])
    after[np.isin(rows.rule, (ALL, START)) | ((rows.rule == TO_ROOT) & (rows.late >= 0))] = EVERYBODY
    after[(rows.rule == UNKNOWN) | (after == np.arange(count))] = NOBODY
    begin = line.begin[rows.event]
    end = np.where(rows.end < 0, begin, line.end[np.maximum(rows.end, 0)])
    late = np.where(rows.late < 0, begin, line.begin[np.maximum(rows.late, 0)])
    cost = np.maximum(end - np.maximum(begin, late), 0)
    later = (rows.end >= 0) & (rows.end != rows.event)
    waited = line.end[np.maximum(rows.end, 0)] - line.begin[np.maximum(rows.end, 0)] > A_CALL
    cost[later & ~waited] = 0
    return number, after, cost


def _spread_tests(found: Program, tests: list[int], calls: np.ndarray) -> None:
    """Rows of tests in vain, with computation between them, are that many calls."""
    if not tests:
        return
    line, room = found.world.line, MOST_TESTS
    after: dict[int, list[int]] = {}
    for call in tests:
        event = int(calls[call])
        place = int(line.place[event])
        told = int(line.run.ranks[place].events["tag"][event - int(line.first[place])])
        count = min(max(1, told), max(1, room))
        room -= count
        spent = int(line.spent[event])
        between = int(line.end[event] - line.begin[event]) - spent
        found.own[call] = spent // count
        if count > 1:
            gap = between // (count - 1)
            after[call] = [found.add(gap, spent // count, "test", found.key[call]) for _ in range(count - 1)]
    for number, lane in enumerate(found.lanes):
        if any(call in after for call in lane):
            found.lanes[number] = [one for call in lane for one in (call, *after.get(call, ()))]
