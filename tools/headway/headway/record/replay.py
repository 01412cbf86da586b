"""A replay of a recorded run: what is computed keeps its length, calls wait for what a model of the transport says.

A model says when the data of a message move:
  eager          a send of up to so many bytes is copied and let go at once; its data need no one's help
  together       such a send is copied only as long as no more than so many bytes lie with that receiver
  moves          a longer one moves from when both its sides are there, for as long as a transfer needs,
    MATCHING     while both ranks are in calls that begin, complete or test this very message
    ANY          while both are in any call
    BEGUN        by itself after the handshake: the receiver, then the sender has been in a call
    ALWAYS       by itself (a thread, or the network)
  wires          the hosts' wires carry one message at a time
All but ALWAYS begin with a handshake. Under MATCHING and ANY what the run shows to fit between two ranks (the largest
send that was let go before its receive) may move while one side alone is there: so a test is worth something.

It is a queue of what happens at which ns. A program that hangs under a model has no outcome. Of which models to
believe see `models`.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from headway.record.program import ENVELOPE, EVERYBODY, NOBODY, RECEIVE, SEND, SIDES, Program
from headway.record.words import bytes_text

MATCHING, ANY, BEGUN, ALWAYS = range(4)
MOVES = (
    "while both sides are in the matching calls",
    "while both sides are in any call",
    "by themselves once both sides have been in a call",
    "by themselves",
)
DONE, ARRIVE, ANSWER, MOVED, LEAVE, ENTER = range(6)


@dataclass(frozen=True)
class Model:
    moves: int
    eager: int  # bytes; -1: none
    together: int = -1  # bytes; -1: no limit
    wires: bool = False
    ahead: int = 0  # bytes that fit between two ranks
    usual: float = 1.0  # of the time that a transfer needs at least, where that is known
    scale: float = 1.0  # where it is not: of the least time that was seen,
    latency: int = 0  # and ns before any data

    @property
    def text(self) -> str:
        first = f"messages up to {bytes_text(self.eager)} are copied" if self.eager >= 0 else "none is copied"
        if self.together >= 0:
            first += f" (up to {bytes_text(self.together)} to one receiver)"
        wires = ", one at a time on each host's wire" if self.wires else ""
        return f"{first}, others move {MOVES[self.moves]}{wires}"


@dataclass
class Outcome:
    duration: int
    in_calls: list[int]  # ns, by place
    took: list[int]  # ns, by call


def replay(program: Program, model: Model) -> Outcome | None:
    """None if it hangs."""
    return Replay(program, model).run()


@dataclass
class Lane:
    rank: int
    calls: list[int]
    place: int = 0
    begun: int = 0
    pending: int = 0  # operations for which its call waits

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
    queue: list[tuple[int, int, int, int]] = field(default_factory=list)  # ns, what, of which, version

    def __post_init__(self) -> None:
        program, world = self.program, self.program.world
        count = len(world.size)
        self.world = world
        self.lanes = [Lane(rank, calls) for rank, calls in zip(world.rank_of, program.lanes)]
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
        self.left = list(self.need)  # ns that it still has to move
        self.since = [-1] * count  # moving; it may be from later on
        self.resume = [0] * count  # until when it moved on
        self.version = [0] * count
        self.hands = bytearray(count)  # of the handshake: 1 asked, 2 answered, 3 moves by itself
        self.full = bytearray(count)  # what fits between the ranks lies there
        self.near = [[0, 0] for _ in range(count)] if self.model.moves == MATCHING else []
        self.active: list[dict[int, None]] = [{} for _ in range(world.ranks)]  # both sides there, and not moved
        self.lying: dict[tuple[int, int], int] = {}  # bytes copied and not received, by pair
        self.ports = [Port() for _ in range(1 + max(world.host, default=0))]
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
                self.enter(which, now)
            elif what == LEAVE:
                self.leave(which, now)
            elif what == DONE:
                self.finish(which, now)
            elif what == ARRIVE:
                self.arrive(which, now)
            elif what == ANSWER:
                self.hands[which] = 2
                self.go(which, now)
            elif version == self.version[which]:
                self.moved(which, now)
        if any(lane.place < len(lane.calls) for lane in self.lanes):
            return None
        return Outcome(now, self.in_calls, self.took)

    # ---- calls -----------------------------------------------------------------------------------
    def enter(self, number: int, now: int) -> None:
        lane, program = self.lanes[number], self.program
        call, rank = lane.call, lane.rank
        lane.begun = now
        self.inside[rank] += 1
        needs = program.needs[call]
        for op in program.starts[call]:
            self.start(op, now)
        if self.near:
            self.come(call, now)
        elif self.inside[rank] == 1 and self.active[rank]:
            for message in list(self.active[rank]):
                self.go(message, now)
        lane.pending = 0
        for op in needs:
            if not self.done[op]:
                self.waiter[op] = number
                lane.pending += 1
        if not lane.pending:
            self.at(now + program.own[call], LEAVE, number)

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
                self.at(max(now, lane.begun + self.program.own[lane.call]), LEAVE, number)

    def leave(self, number: int, now: int) -> None:
        lane = self.lanes[number]
        call, rank = lane.call, lane.rank
        self.took[call] = now - lane.begun
        self.in_calls[rank] += now - lane.begun
        self.inside[rank] -= 1
        if self.near:
            self.go_away(call, now)
        elif not self.inside[rank]:
            for message in self.active[rank]:
                self.stop(message, now)
        lane.place += 1
        if lane.place < len(lane.calls):
            self.at(now + self.program.gap[lane.call], ENTER, number)

    def sides(self, call: int) -> set[int]:
        program = self.program
        every = (*program.starts[call], *program.needs[call], *program.asks.get(call, ()))
        return {op for op in every if op < self.world.parts and op % SIDES != ENVELOPE}

    def come(self, call: int, now: int) -> None:
        for op in self.sides(call):
            message, side = divmod(op, SIDES)
            self.near[message][side] += 1
            if message in self.active[self.world.source[message]]:
                self.go(message, now)

    def go_away(self, call: int, now: int) -> None:
        for op in self.sides(call):
            message, side = divmod(op, SIDES)
            self.near[message][side] -= 1
            if not self.near[message][side] and message in self.active[self.world.source[message]]:
                self.stop(message, now)

    # ---- messages --------------------------------------------------------------------------------
    def start(self, op: int, now: int) -> None:
        world = self.world
        if op >= world.parts:
            self.begin_part(op - world.parts, now)
            return
        message, side = divmod(op, SIDES)
        if side == SEND:
            if self.is_copied(message):
                self.eager[message] = 1
                self.finish(op, now)
                self.at(now + self.need[message] + self.delay(message, now), ARRIVE, message)
            else:
                self.at(now + self.latency[message], ARRIVE, message)  # its request, not its data
        else:
            self.posted[message] = 1
            if self.done[SIDES * message + ENVELOPE]:
                self.both_there(message, now)

    def is_copied(self, message: int) -> bool:
        size = self.world.size[message]
        if size > self.model.eager:
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
        world = self.world
        if not (self.model.wires and world.between[message]):
            return 0
        out, into = self.ports[world.host[world.source[message]]], self.ports[world.host[world.target[message]]]
        begin = max(now, out.out, into.into)
        out.out = into.into = begin + self.need[message] - self.latency[message]
        return begin - now

    def arrive(self, message: int, now: int) -> None:
        self.finish(SIDES * message + ENVELOPE, now)
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

    def meet(self, message: int, now: int) -> None:
        """The receive is posted, and the send's request has come."""
        world = self.world
        if self.model.moves == ALWAYS:
            self.at(now + self.need[message] + self.delay(message, now), MOVED, message)
            return
        self.left[message] = self.need[message] - self.latency[message]
        self.active[world.source[message]][message] = self.active[world.target[message]][message] = None
        self.go(message, now)

    def go(self, message: int, now: int) -> None:
        """A rank has come into a call, or the handshake got further: what may happen now?"""
        source, target = self.there(message)
        hands = self.hands[message]
        if not hands and target:
            self.hands[message] = 1
            self.at(now + self.latency[message], ANSWER, message)
        elif hands == 2 and source:
            self.hands[message] = 3
            self.left[message] += self.delay(message, now)
            if self.model.moves == BEGUN:
                self.at(now + self.left[message], MOVED, message)
            else:
                self.move(message, now, True, target > 0)
        elif hands == 3 and self.model.moves != BEGUN:
            self.move(message, now, source > 0, target > 0)

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
            if not self.left[message]:
                self.at(self.resume[message], MOVED, message, self.version[message])

    def there(self, message: int) -> tuple[int, int]:
        """Whether the sender, and the receiver, are in calls that move this message."""
        if self.near:
            return self.near[message][SEND], self.near[message][RECEIVE]
        return self.inside[self.world.source[message]], self.inside[self.world.target[message]]

    def ahead(self, message: int) -> int:
        """ns of its data that fit between the ranks."""
        size = self.world.size[message]
        wire = self.need[message] - self.latency[message]
        return wire * min(self.model.ahead, size) // max(1, size)

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
        for side in (SEND, RECEIVE, ENVELOPE):
            self.finish(SIDES * message + side, now)

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
