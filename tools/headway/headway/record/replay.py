"""A replay of a recorded run: what is computed keeps its length, calls wait for what a model of the transport says
(`transport`). It is a queue of what happens at which ns. A program that hangs under a model has no outcome.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from headway.record.program import ENVELOPE, EVERYBODY, NOBODY, RECEIVE, SEND, SIDES, Program
from headway.record.streams import FLOWS, Streams
from headway.record.transport import ALWAYS, BEGUN, MATCHING, PULL, PUSH, STREAM, Model

# Of what happens at one time, the first comes first: a call that finds something to do lasts.
DONE, ARRIVE, ANSWER, MOVED = range(FLOWS)
LEAVE, ENTER, PATIENCE = FLOWS + 1, FLOWS + 2, FLOWS + 3
BEGINS = frozenset(("isend", "irecv", "start", "icoll"))  # families of calls that only begin something


@dataclass
class Outcome:
    duration: int
    in_calls: list[int]  # ns, by place
    took: list[int]  # ns, by call
    beside: bytearray  # of each message, bits 1, 2: it came while its sender, its receiver computed
    late: dict[int, int]  # copied messages that came before their receive was posted: ns that this cost


def replay(program: Program, model: Model, before: Outcome | None = None) -> Outcome | None:
    """None if it hangs. `before`: of the unchanged run, under the same model, if the program is an edited one."""
    return Replay(program, model, before).run()


@dataclass
class Lane:
    rank: int
    calls: list[int]
    place: int = 0
    begun: int = 0
    pending: int = 0  # operations for which its call waits
    own: int = 0  # ns that its call takes at least
    waits: bool = False  # its call has something to wait for, or is a row of tests
    moves: bool = False  # data may move in its call
    patience: int = -1  # ns from which on a wait for sends alone may go on; -1: it may not

    @property
    def call(self) -> int:
        return self.calls[self.place]


@dataclass
class Port:
    """A host's wire: until when it is taken, in each direction."""

    out: int = 0
    into: int = 0


@dataclass
class Replay:
    program: Program
    model: Model
    before: Outcome | None = None
    queue: list[tuple[int, int, int, int]] = field(default_factory=list)  # ns, what, of which, version

    def __post_init__(self) -> None:
        program, world = self.program, self.program.world
        count = len(world.size)
        self.world = world
        self.lanes = [Lane(rank, calls) for rank, calls in zip(world.rank_of, program.lanes)]
        self.lanes_of: list[list[Lane]] = [[] for _ in range(world.ranks)]
        for lane in self.lanes:
            self.lanes_of[lane.rank].append(lane)
        self.inside = [0] * world.ranks  # lanes in calls
        self.in_calls = [0] * world.ranks
        self.took = [0] * len(program.gap)
        self.done = bytearray(world.operations)
        self.waiter = [-1] * world.operations  # lane
        # Messages.
        self.posted, self.eager = bytearray(count), bytearray(count)
        model = self.model
        scale = [model.scale if unsure else model.usual for unsure in world.unsure]
        more = [model.latency if unsure else 0 for unsure in world.unsure]
        self.need, self.latency = (
            [int(ns * scale[between]) + more[between] for ns, between in zip(column, world.between)]
            for column in (world.need, world.latency)
        )
        ways = {pair: model.way(*pair) for pair in set(zip(world.size, world.between))}
        self.way = [ways[pair] for pair in zip(world.size, world.between)]
        self.held = [0] * world.ranks  # until when the rank's calls copy
        self.beside = bytearray(count)
        self.late: dict[int, int] = {}
        self.spared: set[int] = set()  # messages that cost so before, and do not now
        self.stolen = [0] * world.ranks  # ns by which its computation takes longer
        self.carried: dict[tuple[int, int], int] = {}  # from one rank to another: until when messages are on the wire
        self.unacked: list[list[int]] = [[] for _ in range(world.ranks)]  # came there; its send does not know
        self.left = list(self.need)  # ns that it still has to move
        self.since = [-1] * count  # moving; it may be from later on
        self.resume = [0] * count  # until when it moved on
        self.version = [0] * count
        self.hands = bytearray(count)  # of the handshake: 1 asked, 2 answered, 3 moves by itself
        self.full = bytearray(count)  # what fits between the ranks lies there
        self.began = [0] * count  # when what goes by itself began to
        self.aside = bytearray(count)  # its sender was let go, with a copy left behind
        self.pushed = bytearray(count)  # by a blocking send
        matching = any(way.moves == MATCHING and (not way.copied or model.together >= 0) for way in ways.values())
        self.near = [[0, 0] for _ in range(count)] if matching else []
        self.active: list[dict[int, None]] = [{} for _ in range(world.ranks)]  # both sides there, and not moved
        self.lying: dict[tuple[int, int], int] = {}  # bytes copied and not received, by pair
        self.ports = [Port() for _ in range(1 + max(world.host, default=0))]
        self.streams = Streams(self) if any(way.moves == STREAM for way in ways.values()) else None
        # Collectives.
        total = 1 + max(world.collective, default=-1)
        self.missing = [0] * total
        self.members: list[list[int]] = [[] for _ in range(total)]  # parts that have begun and need all
        for number in world.collective:
            self.missing[number] += 1
        self.entered = bytearray(len(world.collective))
        self.followers: dict[int, list[int]] = {}

    def at(self, time: int, what: int, which: int, version: int = 0) -> None:
        heapq.heappush(self.queue, (time, what, which, version))

    def run(self) -> Outcome | None:
        gap, queue = self.program.gap, self.queue
        for number, lane in enumerate(self.lanes):
            if lane.calls:
                self.at(gap[lane.call], ENTER, number)
        now = 0
        while queue:
            now, what, which, version = heapq.heappop(queue)
            if what == ENTER:
                rank = self.lanes[which].rank
                stolen, self.stolen[rank] = self.stolen[rank], 0
                if stolen:
                    self.at(now + stolen, ENTER, which)
                else:
                    self.enter(which, now)
            elif what == LEAVE:
                held = self.held[self.lanes[which].rank] if self.lanes[which].moves else 0
                if held > now:
                    self.at(held, LEAVE, which)
                else:
                    self.leave(which, now)
            elif what == DONE:
                self.finish(which, now)
            elif what == ARRIVE:
                self.arrive(which, now)
            elif what == FLOWS and self.streams is not None:
                self.streams.happens(which, now)
            elif what == PATIENCE:
                self.let_go(which, version, now)
            elif what == ANSWER:
                self.hands[which] = 2
                self.go(which, now)
            elif version == self.version[which]:
                self.moved(which, now)
        if any(lane.place < len(lane.calls) for lane in self.lanes):
            return None
        return Outcome(now, self.in_calls, self.took, self.beside, self.late)

    # ---- calls -----------------------------------------------------------------------------------
    def enter(self, number: int, now: int) -> None:
        lane, program = self.lanes[number], self.program
        call, rank = lane.call, lane.rank
        lane.begun = now
        lane.moves = self.model.begins or program.family[call] not in BEGINS
        self.inside[rank] += lane.moves
        needs = program.needs[call]
        lane.waits = self.waits(call)  # also for what it starts
        for op in program.starts[call]:
            self.start(op, now, program.family[call] == "send")
        lane.waits = self.waits(call)
        if self.near:
            self.come(call, now)
        if lane.moves and (self.inside[rank] == 1 or lane.waits):  # a test of another thread may have left a piece
            self.look(rank, now)
        lane.pending = 0
        for op in needs:
            if not self.done[op]:
                self.waiter[op] = number
                lane.pending += 1
        lane.own = program.own[call]
        if self.before is not None and self.before.late:
            lane.own = max(0, lane.own - self.saved((*program.starts[call], *needs)))
        lane.patience = -1
        if not lane.pending:
            self.at(now + lane.own, LEAVE, number)
        elif (patience := self.patience(call)) >= 0:
            lane.patience = now + patience
            self.at(lane.patience, PATIENCE, number, lane.place)

    def waits(self, call: int) -> bool:
        return call in self.program.polls or any(not self.done[op] for op in self.program.needs[call])

    def saved(self, ops: tuple[int, ...]) -> int:
        """ns that a call took in the run for copies that it has not to make now; each message counts once."""
        before = self.before.late if self.before is not None else {}
        found = 0
        for op in ops:
            message, side = divmod(op, SIDES)
            if op >= self.world.parts or side != RECEIVE or message not in before:
                continue
            if self.posted[message] and message not in self.late and message not in self.spared:
                self.spared.add(message)
                found += before[message]
        return found

    def finish(self, op: int, now: int) -> None:
        """An operation is complete."""
        if self.done[op]:
            return
        self.done[op] = 1
        number = self.waiter[op]
        if number >= 0:
            lane = self.lanes[number]
            lane.pending -= 1
            if not lane.pending:
                self.at(max(now, lane.begun + lane.own), LEAVE, number)
            elif 0 <= lane.patience <= now:
                self.at(now, PATIENCE, number, lane.place)

    def patience(self, call: int) -> int:
        """ns after which its wait may go on though its messages have not moved; -1 if it may not."""
        left = [op for op in self.program.needs[call] if not self.done[op]]
        if not self.program.only_sends(tuple(left)):
            return -1
        found = [self.way[op // SIDES].lets_go for op in left]
        return max((ns for ns in found if ns is not None), default=-1) if None not in found else -1

    def let_go(self, number: int, place: int, now: int) -> None:
        """Unless one of them moves at this moment: then when that is over. The copies move as others do, without their sender."""
        lane = self.lanes[number]
        if lane.place != place or not lane.pending:
            return
        left = [op for op in self.program.needs[lane.call] if not self.done[op]]
        if any(self.hands[op // SIDES] for op in left):
            return
        for op in left:
            message = op // SIDES
            self.aside[message] = 1
            active = self.active[self.world.source[message]], self.active[self.world.target[message]]
            if message in active[0] and self.way[message].moves != PULL:
                for one in active:
                    one.pop(message, None)
                self.meet(message, now)
            self.finish(op, now)

    def leave(self, number: int, now: int) -> None:
        lane = self.lanes[number]
        call, rank = lane.call, lane.rank
        self.took[call] = now - lane.begun
        self.in_calls[rank] += now - lane.begun
        self.inside[rank] -= lane.moves
        lane.waits = False
        if self.near:
            self.go_away(call, now)
        if lane.moves and not self.inside[rank]:
            for message in self.active[rank]:
                if self.way[message].moves != MATCHING:
                    self.stop(message, now)
        lane.place += 1
        if lane.place < len(lane.calls):
            self.at(now + self.program.gap[lane.call], ENTER, number)

    def look(self, rank: int, now: int) -> None:
        """A rank has come into MPI: what was waiting for that?"""
        if self.active[rank]:
            for message in list(self.active[rank]):
                if self.way[message].moves != MATCHING:
                    self.go(message, now)
        if self.unacked[rank]:
            for message in self.unacked[rank]:
                self.ack(message, now)
            self.unacked[rank] = []
        if self.streams is not None:
            self.streams.enter(rank, now)

    def sides(self, call: int) -> set[int]:
        program = self.program
        every = (*program.starts[call], *program.needs[call], *program.asks.get(call, ()))
        return {op for op in every if op < self.world.parts and op % SIDES != ENVELOPE}

    def come(self, call: int, now: int) -> None:
        for op in self.sides(call):
            message, side = divmod(op, SIDES)
            self.near[message][side] += 1
            if self.way[message].moves == MATCHING and message in self.active[self.world.source[message]]:
                self.go(message, now)

    def go_away(self, call: int, now: int) -> None:
        for op in self.sides(call):
            message, side = divmod(op, SIDES)
            self.near[message][side] -= 1
            if self.near[message][side] or self.way[message].moves != MATCHING:
                continue
            if message in self.active[self.world.source[message]]:
                self.stop(message, now)

    # ---- messages --------------------------------------------------------------------------------
    def start(self, op: int, now: int, blocking: bool) -> None:
        world = self.world
        if op >= world.parts:
            self.begin_part(op - world.parts, now)
            return
        message, side = divmod(op, SIDES)
        if self.streams is not None and self.way[message].moves == STREAM:
            if side == SEND:
                self.streams.send(message, now)
            else:
                self.posted[message] = 1
                self.streams.post(message, now)
            return
        if side == SEND:
            if self.is_copied(message):
                self.eager[message] = 1
                if not self.way[message].acked:
                    self.finish(op, now)
                self.at(self.carry(message, now), ARRIVE, message)
            elif blocking and self.way[message].pushed and self.posted[message]:
                self.push(message, now)
            else:
                self.at(now + self.latency[message], ARRIVE, message)  # its request, not its data
        else:
            self.posted[message] = 1
            if self.done[SIDES * message + ENVELOPE]:
                if self.eager[message] and self.way[message].saves:
                    self.late[message] = int(self.way[message].saves * self.world.size[message])
                self.both_there(message, now)

    def is_copied(self, message: int) -> bool:
        size = self.world.size[message]
        if not self.way[message].copied:
            return False
        if self.model.together < 0:
            return True
        pair = self.world.source[message], self.world.target[message]
        lying = self.lying.get(pair, 0)
        if lying + size > self.model.together:
            return False
        self.lying[pair] = lying + size
        return True

    def delay(self, message: int, now: int) -> int:
        """ns until the wires are free; they are taken then."""
        return self.wait_for_wires(message, self.need[message] - self.latency[message], now)

    def wait_for_wires(self, message: int, ns: int, now: int) -> int:
        """The same, for a part of it that needs so long."""
        world = self.world
        if not (self.model.wires and world.between[message]):
            return 0
        out, into = self.ports[world.host[world.source[message]]], self.ports[world.host[world.target[message]]]
        begin = max(now, out.out, into.into)
        out.out = into.into = begin + ns
        return begin - now

    def arrive(self, message: int, now: int) -> None:
        self.finish(SIDES * message + ENVELOPE, now)
        if self.eager[message]:
            self.came(message, now)
        if self.posted[message]:
            self.both_there(message, now)

    def both_there(self, message: int, now: int) -> None:
        if self.eager[message]:
            self.received(message, now)
        else:
            self.meet(message, now)

    def received(self, message: int, now: int) -> None:
        if self.model.together >= 0:
            self.lying[self.world.source[message], self.world.target[message]] -= self.world.size[message]
        self.finish(SIDES * message + RECEIVE, now)

    def came(self, message: int, now: int) -> None:
        """The data are where they have to be: is the send complete?"""
        self.steal(message, now)
        if not self.way[message].acked:
            self.finish(SIDES * message + SEND, now)
        elif self.inside[self.world.target[message]]:
            self.ack(message, now)
        else:
            self.unacked[self.world.target[message]].append(message)

    def ack(self, message: int, now: int) -> None:
        """Its receiver says that the data are there."""
        world = self.world
        if self.model.behind and world.between[message]:
            now = max(now, self.carried.get((world.target[message], world.source[message]), 0))
        self.at(now + self.latency[message], DONE, SIDES * message + SEND)

    def carry(self, message: int, now: int) -> int:
        """When all of a message that goes by itself is there."""
        world = self.world
        self.began[message] = now
        there = now + self.copying(message) + self.delay(message, now)
        ends = world.source[message], world.target[message]
        self.carried[ends] = max(there, self.carried.get(ends, 0))
        return there

    def copying(self, message: int) -> int:
        """ns, by both of its ranks if both are in calls."""
        way, world = self.way[message], self.world
        both = self.inside[world.source[message]] and self.inside[world.target[message]]
        return self.need[message] if both or way.by_one == 1 else int(self.need[message] * way.by_one)

    def away(self, message: int, rank: int, now: int) -> bool:
        """Whether it came beside that rank's computation: of what cores copy, the most of it."""
        if not self.inside[rank]:
            return True
        begun = min((lane.begun for lane in self.lanes_of[rank] if lane.pending), default=0)
        return self.way[message].pushed and 2 * (begun - self.began[message]) > now - self.began[message]

    def steal(self, message: int, now: int) -> None:
        """What came beside computation takes time from it: more than it took before, if it came so then."""
        if self.pushed[message]:
            return
        world = self.world
        ranks = world.source[message], world.target[message]
        beside = sum(bit for bit, rank in zip((1, 2), ranks) if self.away(message, rank, now))
        self.beside[message] = beside
        if not beside or self.before is None:
            return
        for side, rank in enumerate(ranks):
            more = self.takes(message, side, beside) - self.takes(message, side, self.before.beside[message])
            self.stolen[rank] += max(0, more)

    def takes(self, message: int, side: int, beside: int) -> int:
        """ns from the computation of its sender (0) or its receiver (1): see `Outcome.beside`."""
        if not beside & 1 << side:
            return 0
        world, way = self.world, self.way[message]
        rates = way.steals if beside == 3 or way.helped is None else way.helped
        # What cores copy takes as much longer than measured as the run's transfers do; on one host that is all that steals.
        copies = way.pushed or not world.between[message]
        longer = max(1.0, self.model.usual / way.by_one) if copies else 1.0
        ns = int(rates[side] * longer * world.size[message])
        if self.model.takes_cores and not world.between[message] and self.by_itself(message, side):
            ns = max(ns, int(way.by_one * (self.need[message] - self.latency[message])))
        return ns

    def by_itself(self, message: int, side: int) -> bool:
        """Whether that rank's part of it is copied outside of its calls."""
        way = self.way[message]
        if self.eager[message]:
            return False
        if way.moves in (PULL, PUSH):
            return not way.busy and side == (way.moves == PULL)
        return way.moves in (ALWAYS, BEGUN)

    def meet(self, message: int, now: int) -> None:
        """The receive is posted, and the send's request has come."""
        world = self.world
        if self.way[message].moves == ALWAYS or (self.aside[message] and self.way[message].moves != PULL):
            self.hands[message] = 3
            self.at(self.carry(message, now), MOVED, message, self.version[message])
            return
        self.left[message] = self.need[message] - self.latency[message]
        self.active[world.source[message]][message] = self.active[world.target[message]][message] = None
        self.go(message, now)

    def go(self, message: int, now: int) -> None:
        """A rank has come into a call, or the handshake got further: what may happen now?"""
        source, target = self.there(message)
        hands, way = self.hands[message], self.way[message]
        if way.moves in (PULL, PUSH):
            if not hands and (target if way.moves == PULL else source):
                self.copy(message, now)
            return
        if not hands and target:
            self.hands[message] = 1
            self.at(now + self.latency[message], ANSWER, message)
        elif hands == 2 and source:
            self.hands[message] = 3
            self.left[message] += self.delay(message, now)
            if way.moves == BEGUN:
                self.at(now + self.left[message], MOVED, message)
            else:
                self.move(message, now, True, target > 0)
        elif hands == 3 and way.moves != BEGUN:
            self.move(message, now, source > 0, target > 0)

    def copy(self, message: int, now: int) -> None:
        """One side copies it, or lets it be copied; a piece of it in a call that does not wait."""
        world, way = self.world, self.way[message]
        rank = world.target[message] if way.moves == PULL else world.source[message]
        whole, left = self.need[message] - self.latency[message], self.left[message]
        part = left
        if way.piece is not None and not any(lane.waits for lane in self.lanes_of[rank]):
            part = min(left, whole * way.piece // max(1, world.size[message]))
        self.left[message] = left - part
        end = now + part + (self.delay(message, now) if left == whole else 0)
        if way.busy:
            end = self.held[rank] = end + max(0, self.held[rank] - now)
        if not self.left[message]:
            self.hands[message] = 3
            self.at(end, MOVED, message)

    def push(self, message: int, now: int) -> None:
        """Its sender copies it, in its call."""
        rank = self.world.source[message]
        self.pushed[message], self.hands[message] = 1, 3
        self.held[rank] = max(now, self.held[rank]) + self.copying(message)
        self.at(self.held[rank], MOVED, message)

    def move(self, message: int, now: int, source: bool, target: bool) -> None:
        """While both sides are there; what fits between the ranks, while one is."""
        if self.since[message] >= 0:
            return
        if target:
            self.full[message] = 0
        if source and target:
            self.since[message] = max(now, self.resume[message])
            self.at(self.since[message] + self.left[message], MOVED, message, self.version[message])
        elif source and not self.full[message]:
            self.full[message] = 1
            part = min(self.ahead(message), self.left[message])
            self.left[message] -= part
            self.resume[message] = max(now, self.resume[message]) + part
            if not self.world.between[message]:
                rank = self.world.source[message]
                self.held[rank] = max(self.held[rank], self.resume[message])
            if not self.left[message]:
                self.at(self.resume[message], MOVED, message, self.version[message])

    def there(self, message: int) -> tuple[int, int]:
        """Whether the sender, and the receiver, are in calls that move this message."""
        if self.way[message].moves == MATCHING:
            return self.near[message][SEND], self.near[message][RECEIVE]
        return self.inside[self.world.source[message]], self.inside[self.world.target[message]]

    def ahead(self, message: int) -> int:
        """ns of its data that fit between the ranks."""
        size = self.world.size[message]
        wire = self.need[message] - self.latency[message]
        return wire * min(self.way[message].ahead or 0, size) // max(1, size)

    def stop(self, message: int, now: int) -> None:
        """A side has left. What fits between the ranks still moves."""
        if self.since[message] < 0:
            return
        until = now + self.ahead(message)
        moved = until - self.since[message]
        if moved >= self.left[message]:
            return
        self.left[message] -= max(0, moved)
        self.resume[message] = max(until, self.since[message])
        self.since[message] = -1
        self.version[message] += 1
        self.full[message] = not self.there(message)[1]

    def moved(self, message: int, now: int) -> None:
        world = self.world
        self.active[world.source[message]].pop(message, None)
        self.active[world.target[message]].pop(message, None)
        for side in (RECEIVE, ENVELOPE):
            self.finish(SIDES * message + side, now)
        self.came(message, now)

    # ---- collectives -----------------------------------------------------------------------------
    def begin_part(self, part: int, now: int) -> None:
        world = self.world
        number, after = world.collective[part], world.after[part]
        self.entered[part] = 1
        self.missing[number] -= 1
        ready = self.followers.pop(part, [])
        if after == EVERYBODY:
            self.members[number].append(part)
        elif after == NOBODY or self.entered[after]:
            ready.append(part)
        else:
            self.followers.setdefault(after, []).append(part)
        if not self.missing[number]:
            ready, self.members[number] = ready + self.members[number], []
        for one in ready:
            self.at(now + world.cost[one], DONE, world.parts + one)
