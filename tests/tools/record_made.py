"""Recordings that were made up: a small simulation of MPI programs, on hosts whose clocks are known.

A program is a list of operations for each rank, a tuple each; `name@site` gives an operation its call site:
  ("compute", ns)
  ("send", comm, to, tag, bytes)          ("isend", comm, to, tag, bytes, request)
  ("recv", comm, source, tag)             ("irecv", comm, source, tag, request)
  ("wait", request)  ("waitall", requests)  ("testall", requests, times, ns between them)
  ("barrier", comm)  ("ibarrier", comm, request)  ("allreduce", comm, bytes)
  ("bcast", comm, root, bytes)  ("reduce", comm, root, bytes)  ("split", comm, colour or None, new comm)
Communicators and requests have names of their program's choice; ranks are those of the communicator; ANY is a wild
card. Small messages are eager, others wait for their receive; with `progress` "calls" both sides have to be in MPI
for that, with "matching" in a call that begins, completes or tests the message itself; with "pull" the receiver copies
them in its next call that completes or tests anything, and that call lasts as long, a test for `piece` bytes; with
"socket" all messages go through `room` bytes between two ranks (socket_made); with "acked" all go by themselves, one behind
the other, and a send is done when word comes back that a call of the receiver has seen them, behind what goes that way.
With "pushed" blocking sends bring them themselves, and waits for sends alone go on after `patience` (pushed_made).
No more than `together` bytes are copied for one receiver. What was copied and comes before its receive costs the call
that posts that `unexpected` ns a byte more. With `wires` each host's wire carries one message at a time in each direction.
`stalls`, (every, ns): each so-manieth long message takes so much longer.
`simulate` writes one file a rank and returns the truth, in true ns.
"""

import heapq
import itertools
import math
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np

import pushed_made
import socket_made
from headway.record import format as files
from headway.record.model import ANY, COLLECTIVE, COMPLETION, EVENT, IN_VAIN, NONE, RECEIVE, SELF, SEND, WORLD

FUNCTIONS = [
    ["MPI_Init", "init"], ["MPI_Finalize", "finalize"], ["MPI_Send", "send"], ["MPI_Recv", "recv"],
    ["MPI_Isend", "isend"], ["MPI_Irecv", "irecv"], ["MPI_Wait", "wait"], ["MPI_Waitall", "wait"],
    ["MPI_Testall", "test"], ["MPI_Barrier", "coll"], ["MPI_Ibarrier", "icoll"], ["MPI_Allreduce", "coll"],
    ["MPI_Bcast", "coll"], ["MPI_Reduce", "coll"], ["MPI_Comm_split", "comm"], ["MPI_Mprobe", "probe"],
    ["MPI_Mrecv", "recv"], ["MPI_Imrecv", "irecv"], ["MPI_Sendrecv", "sendrecv"], ["MPI_Start", "start"],
    ["MPI_Waitany", "wait"], ["MPI_Test", "test"], ["MPI_Comm_create_group", "comm"],
    ["MPI_Intercomm_create", "comm"], ["MPI_Comm_dup", "comm"], ["MPI_Startall", "start"],
    ["MPI_Bcast_init", "other"], ["MPI_Barrier_init", "other"], ["MPI_Bcast_init_c", "other"], ["MPI_Barrier_c", "coll"],
]  # fmt: skip
KIND = {name.removeprefix("MPI_").lower(): kind for kind, (name, _family) in enumerate(FUNCTIONS)}
KIND |= {"split": KIND["comm_split"], "completion": COMPLETION}
EPOCH = 1_790_000_000 * 10**9
OVERHEAD, LATENCY, BYTE, EAGER = 200, 3000, 0.1, 64 << 10  # ns a call, ns, ns a byte, bytes


@dataclass
class Clock:
    """Of a host: how far its real time is ahead at true time 0, how fast it runs, what its ticks are."""

    offset: int = 0  # ns
    drift: float = 0.0
    rate: float = 2.1  # ticks a ns; 0: ticks are ns
    uptime: int = 10**12

    def ns(self, true):
        return self.uptime + true + round(true * self.drift)

    def ticks(self, true):
        return round(self.ns(true) * self.rate) if self.rate else self.ns(true)

    def reading(self, true):
        return self.ticks(true), self.ns(true), EPOCH + self.offset + self.ns(true) - self.uptime


@dataclass
class Truth:
    messages: set = field(default_factory=set)  # source, sent, left, target, posted, came, bytes, tag, members
    collectives: set = field(default_factory=set)  # function, members, ((rank, event, end), ...)
    times: list = field(default_factory=list)  # of each rank: begin and end of its events
    waits: list = field(default_factory=list)  # rank, event, cause, ns


class Flag:
    """Something that happens once."""

    def __init__(self):
        self.when, self.waiters = None, []


@dataclass
class Request:
    """Of a send, a receive or a collective."""

    number: int
    flag: int
    began: int
    comm: object
    peer: int = NONE  # as asked
    tag: int = NONE
    done: Flag = field(default_factory=Flag)
    message: object = None
    event: int = -1
    until: int = -1


@dataclass
class Message:
    source: int  # of the world
    target: int
    comm: object
    peer: int  # the sender's rank in the communicator
    tag: int
    bytes: int
    send: Request = None
    receive: Request = None
    could: int = 0  # when it could have been there
    eager: bool = False
    blocking: bool = False


@dataclass
class Comm:
    members: tuple
    count: dict = field(default_factory=dict)  # collectives that each rank has begun
    started: dict = field(default_factory=dict)


class Collective:
    def __init__(self, kind, comm, root):
        self.kind, self.comm, self.root = kind, comm, root
        self.entered, self.flags, self.colours, self.requests, self.made = {}, {}, {}, {}, {}


class Process:
    def __init__(self, world, number, program):
        self.world, self.number, self.program = world, number, program
        self.events, self.times, self.vain = [], [], None
        self.comms = {"world": world.comm, "self": Comm((number,))}
        self.ids = {"world": WORLD, "self": SELF}
        self.entries, self.orders = [], {}
        self.next_id, self.next_request = 3 + world.random.randrange(5), world.random.randrange(1, 100)
        self.requests, self.posted, self.unexpected, self.pending, self.inside = {}, [], [], [], False
        self.at_hand = ()
        self.copies, self.testing = 0, False  # until when; whether its call is a test

    # ---- what it writes ----
    def record(self, kind, begin, end, site=0, flags=0, comm=0, peer=NONE, tag=NONE, request=0, size=0):
        if self.vain:
            row, self.vain = self.vain, None
            self.record("testall", *row[:2], row[2], IN_VAIN, 0, NONE, row[3], 0, row[4])
        code = KIND[kind]
        self.events.append((code, 0, flags, site, 0, 0, comm, peer, tag, request, size))
        self.times.append((begin, end))
        return len(self.events) - 1

    def new_comm(self, name, comm, parent):
        self.comms[name], self.ids[name] = comm, self.next_id
        order = self.orders[parent] = self.orders.get(parent, -1) + 1
        rank = comm.members.index(self.number)
        entry = {"id": self.next_id, "parent": self.ids[parent], "call": "MPI_Comm_split", "order": order, "rank": rank}
        self.entries.append(entry | {"members": files.ranges(comm.members)})
        self.next_id += 1 + self.world.random.randrange(3)
        return self.ids[name]

    # ---- what it does: a generator that yields times until which, and flags for which it waits ----
    def run(self):
        world = self.world
        yield world.random.randrange(2000)
        begin = yield from self.enter()
        yield world.now + 1000
        self.leave(self.record("init", begin, world.now))
        for operation in self.program:
            word, _, site = operation[0].partition("@")
            self.site = int(site) if site else KIND.get(word, 0) + 1
            yield from getattr(self, "do_" + word)(*operation[1:])
        begin = yield from self.enter()
        yield world.now + 1000
        self.leave(self.record("finalize", begin, world.now))

    def enter(self, *requests, begins=False):
        self.inside, self.at_hand, begin = not (begins and self.world.progress == "pull"), requests, self.world.now
        self.world.sockets.entered(self)
        pending, self.pending = self.pending, []
        for act, request in pending:
            self.world.when_inside(self, act, request)
        yield begin + OVERHEAD
        return begin

    def settle(self):
        """A call that copies ends when all is there."""
        while self.inside and self.copies > self.world.now:
            yield self.copies

    def leave(self, event, waits=()):
        self.inside = False
        self.world.truth.waits += [(self.number, event, cause, ns) for cause, ns in waits if ns > 0]

    def wait_for(self, flag):
        if flag.when is None:
            yield flag
        yield from self.settle()

    def do_compute(self, ns):
        yield self.world.now + self.world.jittered(ns)

    def begin_request(self, flag, comm, peer=NONE, tag=NONE):
        self.next_request += 1
        return Request(self.next_request, flag, self.world.now, self.comms[comm], peer, tag)

    def begin_send(self, comm, to, tag, size, blocking=False):
        request = self.begin_request(SEND, comm, to, tag)
        group = request.comm
        peer = group.members.index(self.number)
        message = Message(self.number, group.members[to], group, peer, tag, size, request)
        request.message, message.blocking = message, blocking
        self.world.send(message)
        return request

    def begin_receive(self, comm, source, tag):
        request = self.begin_request(RECEIVE, comm, source, tag)
        for message in self.unexpected:
            if fits(request, message):
                self.unexpected.remove(message)
                self.world.bind(request, message, True)
                return request
        self.posted.append(request)
        return request

    def do_send(self, comm, to, tag, size):
        request = self.begin_send(comm, to, tag, size, blocking=True)
        begin = yield from self.enter(request)
        self.world.waits([request])
        yield from self.wait_for(request.done)
        event = self.record("send", begin, self.world.now, self.site, SEND, self.ids[comm], to, tag, 0, size)
        request.event = request.until = event
        self.leave(event, blame(begin, self.world.now, request))

    def do_recv(self, comm, source, tag):
        request = self.begin_receive(comm, source, tag)
        begin = yield from self.enter(request)
        yield from self.wait_for(request.done)
        got = request.message
        flags = RECEIVE | (8 if source == ANY else 0) | (16 if tag == ANY else 0)
        more = (self.site, flags, self.ids[comm], got.peer, got.tag, 0, got.bytes)
        event = self.record("recv", begin, self.world.now, *more)
        request.event = request.until = event
        self.leave(event, blame(begin, self.world.now, request))

    def do_isend(self, comm, to, tag, size, name):
        request = self.requests[name] = self.begin_send(comm, to, tag, size)
        begin = yield from self.enter(request, begins=True)
        yield from self.settle()
        more = (self.site, SEND, self.ids[comm], to, tag, request.number, size)
        request.event = self.record("isend", begin, self.world.now, *more)
        self.leave(request.event)

    def do_irecv(self, comm, source, tag, name):
        request = self.requests[name] = self.begin_receive(comm, source, tag)
        begin = yield from self.enter(request, begins=True)
        yield from self.settle()
        more = (self.site, RECEIVE, self.ids[comm], source, tag, request.number, 1 << 20)
        request.event = self.record("irecv", begin, self.world.now, *more)
        self.leave(request.event)

    def told(self, request):
        """A completion's fields, from flags on."""
        got, ours = request.message, next(name for name, comm in self.comms.items() if comm is request.comm)
        envelope = (got.peer, got.tag) if request.flag == RECEIVE else (request.peer, request.tag)
        size = got.bytes if got else 0
        return request.flag, self.ids[ours], *envelope, request.number, size

    def complete(self, kind, begin, names):
        """The records of a call that completed these."""
        done = [self.requests.pop(name) for name in names]
        if kind == "wait" or len(done) == 1:
            event = self.record(kind, begin, self.world.now, self.site, *self.told(done[0]))
        else:
            event = self.record(kind, begin, self.world.now, self.site, 0, 0, NONE, len(done))
            for request in done:
                self.record("completion", begin, self.world.now, self.site, *self.told(request))
        for request in done:
            request.until = event
        last = max(done, key=lambda request: request.done.when, default=None)
        return event, blame(begin, self.world.now, last) if last else ()

    def do_wait(self, name):
        begin = yield from self.enter(self.requests[name])
        self.world.waits([self.requests[name]])
        yield from self.wait_for(self.requests[name].done)
        self.leave(*self.complete("wait", begin, [name]))

    def do_waitall(self, names):
        names = [name for name in names if name in self.requests]
        begin = yield from self.enter(*(self.requests[name] for name in names))
        self.world.waits([self.requests[name] for name in names])
        for name in names:
            yield from self.wait_for(self.requests[name].done)
        yield from self.settle()
        self.leave(*self.complete("waitall", begin, names))

    def do_testall(self, names, times, ns):
        for _ in range(times):
            names = [name for name in names if name in self.requests]
            self.testing = True
            begin = yield from self.enter(*(self.requests[name] for name in names))
            yield from self.settle()
            self.testing = False
            if all(self.requests[name].done.when is not None for name in names):
                self.leave(self.complete("testall", begin, names)[0])
                return
            spent = round((self.world.now - begin) * (self.world.clock(self.number).rate or 1))
            first, tests, all_spent = (self.vain[0], *self.vain[3:]) if self.vain else (begin, 0, 0)
            self.vain = (first, self.world.now, self.site, tests + 1, all_spent + spent)
            self.inside = False
            yield from self.do_compute(ns)

    def collective(self, kind, comm, root=NONE, size=0, colour=None, new=None, request=None):
        group = self.comms[comm]
        operation = self.world.collective(kind, group, group.members[root] if root >= 0 else NONE, self.number, colour)
        if request:
            self.requests[request] = self.begin_request(COLLECTIVE, comm)
            self.requests[request].done = operation.flags[self.number]
            self.requests[request].message = None
        begin = yield from self.enter(begins=bool(request))
        if not request:
            yield from self.wait_for(operation.flags[self.number])
        number = self.requests[request].number if request else 0
        if new and self.number in operation.made:
            number = self.new_comm(new, operation.made[self.number], comm)
        more = (self.site, COLLECTIVE, self.ids[comm], root, NONE, number, size)
        event = self.record(kind, begin, self.world.now, *more)
        own = self.requests[request] if request else Request(0, COLLECTIVE, begin, group)
        own.event, own.until = event, -1 if request else event
        own.message, operation.requests[self.number] = None, own
        own.operation = operation
        self.leave(event, () if request else blame_collective(begin, self.world.now, operation, self.number))

    def do_barrier(self, comm):
        yield from self.collective("barrier", comm)

    def do_ibarrier(self, comm, name):
        yield from self.collective("ibarrier", comm, request=name)

    def do_allreduce(self, comm, size):
        yield from self.collective("allreduce", comm, size=size)

    def do_bcast(self, comm, root, size):
        yield from self.collective("bcast", comm, root, size)

    def do_reduce(self, comm, root, size):
        yield from self.collective("reduce", comm, root, size)

    def do_split(self, comm, colour, new):
        yield from self.collective("split", comm, colour=colour, new=new)


def fits(request, message):
    same = request.comm is message.comm
    return same and request.peer in (ANY, message.peer) and request.tag in (ANY, message.tag)


def blame(begin, end, request):
    """What a call that waited for this from begin to end waited for: (cause, ns). Of several requests, the last."""
    if request.flag == COLLECTIVE:
        return blame_collective(begin, end, request.operation, None)
    message = request.message
    other = message.send if request.flag == RECEIVE else message.receive
    if other is None or (request.flag == SEND and message.eager):
        return [("transfer", end - begin)]
    late = max(0, min(end, other.began) - begin)
    missing = 0 if message.eager else max(0, end - max(begin, message.could, other.began))
    cause = "late sender" if request.flag == RECEIVE else "late receiver"
    return [(cause, late), ("missing progress", missing), ("transfer", end - begin - late - missing)]


def blame_collective(begin, end, operation, number):
    others = [time for rank, time in operation.entered.items() if rank != number]
    cause, last = "late participant", max(others, default=begin)
    if operation.kind == "bcast":
        cause, last = "late root", begin if number == operation.root else operation.entered[operation.root]
    elif operation.kind == "reduce":
        cause, last = "early root", last if number == operation.root else begin
    late = max(0, min(end, last) - begin)
    return [(cause, late), ("transfer", end - begin - late)]


class World:
    def __init__(self, programs, clocks, seed=1, progress="thread", jitter=0.1, together=1 << 60, wires=False, unexpected=0.0, piece=1 << 60, room=1 << 60, patience=150_000, stalls=None):
        self.stalls, self.long = stalls, 0
        self.unexpected, self.piece = unexpected, piece
        self.random, self.clocks, self.progress, self.jitter = Random(seed), clocks, progress, jitter
        self.now, self.queue, self.count = 0, [], itertools.count()
        self.wires, self.taken = wires, {}  # until when, by host and direction
        self.sockets = socket_made.Sockets(self, room, BYTE, LATENCY)
        self.pushes = pushed_made.Pushes(self, patience, BYTE, EAGER, fits)
        self.together, self.lying = together, {}  # bytes that are copied for one receiver, by source and target
        self.truth, self.messages, self.collectives, self.arrived = Truth(), [], [], {}
        self.comm = Comm(tuple(range(len(programs))))
        self.processes = [Process(self, number, program) for number, program in enumerate(programs)]

    def clock(self, rank):
        return self.clocks[rank % len(self.clocks)]

    def jittered(self, ns):
        return round(ns * (1 + self.jitter * self.random.random()))

    def data(self, message):
        """ns that the bytes of a long message take."""
        self.long += 1
        every, ns = self.stalls or (1 << 60, 0)
        return self.jittered(message.bytes * BYTE) + ns * (self.long % every == 0)

    def at(self, time, act):
        heapq.heappush(self.queue, (time, next(self.count), act))

    def fire(self, flag):
        flag.when = self.now
        for process in flag.waiters:
            self.step(process)

    def step(self, process):
        wanted = next(process.going, None)
        if isinstance(wanted, Flag):
            wanted.waiters.append(process)
        elif wanted is not None:
            self.at(max(self.now, wanted), lambda: self.step(process))

    def when_inside(self, process, act, request):
        matching = self.progress != "matching" or any(one is request for one in process.at_hand)
        if (process.inside and matching) or self.progress in ("thread", "pushed"):
            act()
        else:
            process.pending.append((act, request))

    def waits(self, requests):
        if self.progress == "pushed":
            self.pushes.waits(requests)

    def send(self, message):
        self.messages.append(message)
        if self.progress == "pushed" and self.pushes.send(message):
            return
        if self.progress == "socket":
            self.sockets.send(message)
            return
        way = message.source, message.target
        if self.progress == "acked":
            self.send_acked(message, way)
            return
        lying = self.lying.get(way, 0) + message.bytes
        message.eager = message.bytes <= EAGER and lying <= self.together
        if message.eager:
            self.lying[way] = lying
        wire = LATENCY + (self.carried(message) if message.eager else 0)
        there = self.arrived[way] = max(self.now + self.jittered(wire), self.arrived.get(way, 0) + 1)
        self.at(there, lambda: self.arrive(message))
        if message.eager:
            message.send.done.when = self.now

    def send_acked(self, message, way):
        message.eager, self.lying[way] = True, self.lying.get(way, 0) + message.bytes
        self.taken[way] = max(self.now, self.taken.get(way, 0)) + self.jittered(message.bytes * BYTE)

        def seen():
            self.at(max(self.now, self.taken.get(way[::-1], 0)) + LATENCY, lambda: self.fire(message.send.done))

        def there():
            self.arrive(message)
            self.when_inside(self.processes[message.target], lambda _=None: seen(), message.send)

        self.at(self.taken[way] + LATENCY, there)

    def carried(self, message):
        """ns on the wire, with those until it is free."""
        size = message.bytes * BYTE
        source, target = (rank % len(self.clocks) for rank in (message.source, message.target))
        if not self.wires or source == target:
            return size
        ways = (source, "out"), (target, "in")
        begin = max(self.now, *(self.taken.get(way, 0) for way in ways))
        self.taken |= dict.fromkeys(ways, begin + size)
        return begin + size - self.now

    def arrive(self, message):
        target = self.processes[message.target]
        for request in target.posted:
            if fits(request, message):
                target.posted.remove(request)
                self.bind(request, message)
                return
        target.unexpected.append(message)

    def bind(self, request, message, late=False):
        request.message, message.receive = message, request
        message.could = self.now
        if self.progress == "socket":
            if late and not message.unread:
                self.fire(request.done)
            return
        if message.eager:
            self.lying[message.source, message.target] -= message.bytes
            if late and self.unexpected:
                target = self.processes[message.target]
                target.copies = max(self.now, target.copies) + round(self.unexpected * message.bytes)
                self.at(target.copies, lambda: self.fire(request.done))
            else:
                self.fire(request.done)
            return
        if self.progress == "pushed":
            self.pushes.move(message)
            return
        answer, data = self.jittered(LATENCY), self.data(message)
        message.could += answer + data
        jitter = data - message.bytes * BYTE

        def finish():
            self.fire(message.send.done)
            self.fire(request.done)

        def move():
            self.at(self.now + round(self.carried(message) + jitter), finish)

        source, target = self.processes[message.source], self.processes[message.target]
        send = message.send

        def copy(left=data):
            part = min(left, round(self.piece * BYTE)) if target.testing else left
            target.copies = max(self.now, target.copies) + part
            if part == left:
                self.at(target.copies, finish)
            else:
                target.pending.append((lambda: copy(left - part), request))

        if self.progress == "pull":
            message.could -= answer
            self.when_inside(target, copy, request)
            return

        def answered():
            self.when_inside(source, move, send)

        self.when_inside(target, lambda: self.at(self.now + answer, answered), request)

    def collective(self, kind, comm, root, rank, colour):
        number = comm.count[rank] = comm.count.get(rank, -1) + 1
        if number not in comm.started:
            comm.started[number] = Collective(kind, comm, root)
            self.collectives.append(comm.started[number])
        operation = comm.started[number]
        assert operation.kind == kind and operation.root == root, "no program may do that"
        flag = operation.flags[rank] = Flag()
        operation.entered[rank], operation.colours[rank] = self.now, colour
        whole = len(operation.entered) == len(comm.members)
        cost = self.jittered(LATENCY * max(1, math.ceil(math.log2(len(comm.members)))))
        if kind == "bcast":
            if rank == root:
                operation.there = self.now + cost
                waiting = [other for other in operation.flags if other != rank]
                flag.when = self.now
            else:
                waiting = [rank] if root in operation.entered else []
            for other in waiting:
                self.at(max(self.now, operation.there), lambda f=operation.flags[other]: self.fire(f))
        elif kind == "reduce" and rank != root:
            flag.when = self.now
        if kind not in ("bcast", "reduce") and whole:
            if kind == "split":
                self.split(operation)
            for one in operation.flags.values():
                self.at(self.now + cost, lambda f=one: self.fire(f))
        if kind == "reduce" and whole:
            self.at(self.now + cost, lambda: self.fire(operation.flags[root]))
        return operation

    def split(self, operation):
        for colour in set(operation.colours.values()) - {None}:
            made = Comm(tuple(rank for rank in operation.comm.members if operation.colours[rank] == colour))
            operation.made |= dict.fromkeys(made.members, made)

    def run(self):
        for process in self.processes:
            process.going = process.run()
            self.step(process)
        while self.queue:
            self.now, _, act = heapq.heappop(self.queue)
            act()
        assert all(process.events[-1][0] == KIND["finalize"] for process in self.processes), "the program hangs"
        truth = self.truth
        truth.times = [np.array(process.times) for process in self.processes]
        for m in self.messages:
            ends = (m.source, m.send.event, m.send.until, m.target, m.receive.event, m.receive.until)
            truth.messages.add((*ends, m.bytes, m.tag, m.comm.members))
        for c in self.collectives:
            parts = tuple(sorted((rank, own.event, own.until) for rank, own in c.requests.items()))
            truth.collectives.add((FUNCTIONS[KIND[c.kind]][0], c.comm.members, parts))
        return truth


def header(rank, size, host="a", ticks="tsc"):
    about = {"host": host, "boot": f"boot of {host}", "pid": 100 + rank, "program": "made", "arguments": []}
    return about | {"rank": rank, "size": size, "mpi": "made", "ticks": ticks, "functions": FUNCTIONS, "started": EPOCH}


def write(folder, world, block=200, sites=None):
    """One file a rank; `block` events in one block. `sites`: what stands of a number in the file, if not offsets."""
    size = len(world.processes)
    for rank, process in enumerate(world.processes):
        clock = world.clock(rank)
        events = np.array(process.events, EVENT)
        events["begin"] = [clock.ticks(begin) for begin, _end in process.times]
        events["end"] = [clock.ticks(end) for _begin, end in process.times]
        host = header(rank, size, f"host{rank % len(world.clocks)}", "tsc" if clock.rate else "ns")
        with files.Writer(Path(folder, f"rank-{rank}.hwr"), host) as file:
            file.clock(clock.reading(0))
            file.communicators(
                [
                    {"id": WORLD, "parent": 0, "rank": rank, "members": [[0, size - 1]], "name": "MPI_COMM_WORLD"},
                    {"id": SELF, "parent": 0, "rank": 0, "members": [[rank, rank]], "name": "MPI_COMM_SELF"},
                    *process.entries,
                ]
            )
            for first in range(0, len(events), block):
                file.events(events[first : first + block])
                file.clock(clock.reading(max(end for _begin, end in process.times[first : first + block])))
            numbers = [n for n in np.unique(events["site"]).tolist() if n]
            file.sites({"id": n} | (sites[n] if sites else {"module": "/made", "offset": 16 * n}) for n in numbers)
            file.end(len(events))


def simulate(folder, programs, clocks=None, block=200, sites=None, **more):
    """Runs the programs, rank R on the host of clock R modulo their number, and writes the files."""
    world = World(programs, clocks or [Clock()], **more)
    truth = world.run()
    write(folder, world, block, sites)
    return truth


def draw(seed, ranks, phases=6):
    """Programs that cannot hang, of all operations."""
    random = Random(seed)
    programs = [[] for _ in range(ranks)]
    names = itertools.count()
    groups = {"world": [tuple(range(ranks))]}
    for _ in range(phases):
        for program in programs:
            program.append(("compute", random.randrange(1000, 200_000)))
        comm = random.choice(list(groups))
        kind = random.choice(["exchange", "exchange", "ordered", "wild", "barrier", "all", "root", "split", "ibarrier"])
        new = f"comm{next(names)}"
        parts = max(2, random.randrange(4))
        for members in groups[comm]:
            own = [programs[rank] for rank in members]
            pairs = [random.sample(range(len(own)), 2) for _ in range(random.randrange(1, 12)) if len(own) > 1]
            if kind == "exchange":
                exchange(random, own, comm, pairs, names)
            elif kind == "ordered":
                for a, b in pairs:
                    tag, size = random.randrange(3), drawn_size(random)
                    own[a].append(("send", comm, b, tag, size))
                    own[b].append(("recv", comm, a, tag))
            elif kind == "wild":
                wild(random, own, comm, names)
            elif kind == "split":
                for place, program in enumerate(own):
                    program += [("split", comm, place % parts, new), ("split", comm, place % parts, f"{new} again")]
            else:
                root, size = random.randrange(len(own)), random.randrange(1, 10_000)
                word = random.choice(["bcast", "reduce"])
                name = f"r{next(names)}"
                for program in own:
                    if kind == "barrier":
                        program.append(("barrier", comm))
                    elif kind == "all":
                        program.append(("allreduce", comm, size))
                    elif kind == "root":
                        program.append((word, comm, root, size))
                    else:
                        program += [("ibarrier", comm, name), ("compute", random.randrange(20_000)), ("wait", name)]
        if kind == "split":
            made = [members[part::parts] for members in groups[comm] for part in range(parts)]
            groups[new] = groups[f"{new} again"] = [members for members in made if members]
    return programs


def drawn_size(random):
    return random.choice([0, 8, 1000, 30_000, 100_000, 1_000_000])


def exchange(random, own, comm, pairs, names):
    """All post first, then wait in some way."""
    calls = [[] for _ in own]
    for a, b in pairs:
        tag = random.randrange(2)
        calls[a].append(("isend", comm, b, tag, drawn_size(random), f"r{next(names)}"))
        calls[b].append(("irecv", comm, a, tag, f"r{next(names)}"))
    for program, some in zip(own, calls):
        random.shuffle(some)
        program += some
        requests = [call[-1] for call in some]
        random.shuffle(requests)
        if not requests:
            continue
        how = random.choice(["wait", "waitall", "testall"])
        if how == "wait":
            program += [("wait", request) for request in requests]
        else:
            if how == "testall":
                program.append(("testall", requests, random.randrange(1, 9), 4000))
            program.append(("waitall", requests))


def wild(random, own, comm, names):
    """One takes whatever comes; a barrier keeps what comes later out."""
    root, each, later = random.randrange(len(own)), random.randrange(1, 4), random.random() < 0.5
    requests = []
    for place, program in enumerate(own):
        for _ in range(each if place != root else 0):
            program.append(("compute", random.randrange(1, 30_000)))
            program.append(("send", comm, root, random.randrange(3), drawn_size(random)))
            if later:
                requests.append(f"r{next(names)}")
                own[root].append(("irecv", comm, ANY, ANY, requests[-1]))
            else:
                own[root].append(("recv", comm, ANY, ANY))
    if requests:
        own[root].append(("waitall", requests))
    for program in own:
        program.append(("barrier", comm))
