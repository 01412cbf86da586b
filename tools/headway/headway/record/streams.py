"""Of a replay: messages that go through a buffer between two ranks, as through a socket that nobody but their calls fills and
empties.

A sender's calls put its messages in, one behind the other, piece by piece, while there is room; a send is complete when its
last piece is in. Calls of the receiver take the pieces out, whether their receive is posted or not; a receive is complete
when it is posted and the last piece is out. On one host both take their rank's time, so that a call lasts as long as it finds
something to do. Between hosts a wire takes that time instead: it carries by itself what is in the sender's half, as long
as the receiver's half has room.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headway.record.program import ENVELOPE, RECEIVE, SEND, SIDES

if TYPE_CHECKING:
    from headway.record.replay import Replay

KINDS = 4
PUT, CARRIED, LANDED, TAKEN = range(KINDS)
FLOWS = 4  # what a replay's queue calls all of them: behind its first four kinds
PIECES, LEAST_PIECE = 8, 16_384  # of a message; bytes


@dataclass
class Pair:
    """What is under way from one rank to another, in its order."""

    number: int
    source: int
    target: int
    between: bool  # hosts
    waiting: deque[int] = field(default_factory=deque)  # messages that are not whole in it
    leaving: deque[tuple[int, int]] = field(default_factory=deque)  # between hosts, with the sender: message, bytes
    lying: deque[tuple[int, int, int]] = field(default_factory=deque)  # message, bytes, ns from which on they are there
    here: int = 0  # bytes with the sender
    there: int = 0  # with the receiver, or on their way to it
    putting: bool = False
    carrying: bool = False
    taking: bool = False
    called: int = -1  # ns at which is looked for what lies there then


class Streams:
    def __init__(self, replay: Replay) -> None:
        self.replay = replay
        world, model = replay.world, replay.model
        self.room, self.window, self.reads = model.room, model.window, model.reads
        self.pairs: dict[tuple[int, int], Pair] = {}
        self.every: list[Pair] = []
        self.out: list[list[Pair]] = [[] for _ in range(world.ranks)]
        self.into: list[list[Pair]] = [[] for _ in range(world.ranks)]
        self.hand = [0] * world.ranks  # until when its core copies
        self.size = [max(1, size) for size in world.size]  # a message of nothing has a head
        self.outside, self.untaken = list(self.size), list(self.size)

    def send(self, message: int, now: int) -> None:
        pair = self.of(message)
        pair.waiting.append(message)
        self.put(pair, now)

    def post(self, message: int, now: int) -> None:
        if not self.untaken[message]:
            self.replay.finish(SIDES * message + RECEIVE, now)

    def enter(self, rank: int, now: int) -> None:
        """It has come into MPI."""
        for pair in self.out[rank]:
            self.put(pair, now)
        for pair in self.into[rank]:
            self.take(pair, now)

    def happens(self, which: int, now: int) -> None:
        number, what = divmod(which, KINDS)
        pair = self.every[number]
        if what == PUT:
            pair.putting = False
            self.is_in(pair, now)
            self.put(pair, now)
        elif what == CARRIED:
            self.carried(pair, now)
        elif what == TAKEN:
            pair.taking = False
            self.is_out(pair, now)
            self.take(pair, now)
        else:
            self.take(pair, now)

    # ---- into it ---------------------------------------------------------------------------------
    def put(self, pair: Pair, now: int) -> None:
        """The next pieces, as far as there is room, if the sender is in a call."""
        while pair.waiting and not pair.putting and self.replay.inside[pair.source]:
            message = pair.waiting[0]
            part = min(self.outside[message], self.piece(message))
            full, most = (pair.here, self.room) if pair.between else (pair.there, self.room + self.window)
            if full and full + part > most:
                break
            if pair.between:
                pair.here += part
                self.is_in(pair, now)
            else:
                pair.there += part
                pair.putting = True
                self.copy(pair, pair.source, self.ns(message, part), PUT, now)
        if pair.between:
            self.carry(pair, now)

    def is_in(self, pair: Pair, now: int) -> None:
        message = pair.waiting[0]
        part = min(self.outside[message], self.piece(message))
        self.outside[message] -= part
        if pair.between:
            pair.leaving.append((message, part))
        else:
            self.land(pair, message, part, now)
        if not self.outside[message]:
            pair.waiting.popleft()
            self.replay.finish(SIDES * message + SEND, now)

    # ---- between hosts ---------------------------------------------------------------------------
    def carry(self, pair: Pair, now: int) -> None:
        if not pair.leaving or pair.carrying:
            return
        message, part = pair.leaving[0]
        if pair.there and pair.there + part > self.window:
            return
        pair.there += part
        pair.carrying = True
        ns = self.ns(message, part)
        self.replay.at(now + self.replay.wait_for_wires(message, ns, now) + ns, FLOWS, KINDS * pair.number + CARRIED)

    def carried(self, pair: Pair, now: int) -> None:
        message, part = pair.leaving.popleft()
        pair.carrying = False
        pair.here -= part
        self.land(pair, message, part, now)
        self.put(pair, now)

    # ---- out of it -------------------------------------------------------------------------------
    def land(self, pair: Pair, message: int, part: int, now: int) -> None:
        pair.lying.append((message, part, now + self.replay.latency[message]))
        self.take(pair, now)

    def take(self, pair: Pair, now: int) -> None:
        while pair.lying and not pair.taking and self.replay.inside[pair.target]:
            message, part, ready = pair.lying[0]
            if ready > now:
                if pair.called != ready:
                    pair.called = ready
                    self.replay.at(ready, FLOWS, KINDS * pair.number + LANDED)
                return
            if pair.between:
                self.is_out(pair, now)
            else:
                pair.taking = True
                self.copy(pair, pair.target, int(self.reads * self.ns(message, part)), TAKEN, now)

    def is_out(self, pair: Pair, now: int) -> None:
        message, part, _ = pair.lying.popleft()
        pair.there -= part
        self.untaken[message] -= part
        self.replay.finish(SIDES * message + ENVELOPE, now)
        if not self.untaken[message] and self.replay.posted[message]:
            self.replay.finish(SIDES * message + RECEIVE, now)
        if pair.between:
            self.carry(pair, now)
        else:
            self.put(pair, now)

    # ---- how long, and whose ---------------------------------------------------------------------
    def copy(self, pair: Pair, rank: int, ns: int, what: int, now: int) -> None:
        """By the rank's core, one piece after the other; its call lasts until then."""
        end = max(now, self.hand[rank]) + ns
        self.hand[rank] = end
        self.replay.held[rank] = max(self.replay.held[rank], end)
        self.replay.at(end, FLOWS, KINDS * pair.number + what)

    def piece(self, message: int) -> int:
        most = (self.room + self.window) // 2 if not self.replay.world.between[message] else min(self.room, self.window) // 2
        return max(1, min(most, max(LEAST_PIECE, -(-self.size[message] // PIECES))))

    def ns(self, message: int, part: int) -> int:
        return (self.replay.need[message] - self.replay.latency[message]) * part // self.size[message]

    def of(self, message: int) -> Pair:
        world = self.replay.world
        ends = world.source[message], world.target[message]
        if ends not in self.pairs:
            pair = self.pairs[ends] = Pair(len(self.every), *ends, world.between[message])
            self.every.append(pair)
            self.out[ends[0]].append(pair)
            self.into[ends[1]].append(pair)
        return self.pairs[ends]
