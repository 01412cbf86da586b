"""Of record_made: messages through sockets between processes of one host, which nobody but their calls fills and empties.

What a call of the sender writes takes its core as long as the bytes need, what a call of the receiver reads takes READS of
that. So many bytes as `room` lie between two processes at most. A send is done when its last byte is written."""

from collections import deque

PIECE, READS = 8192, 0.6


class Socket:
    def __init__(self, source, target):
        self.source, self.target = source, target
        self.out, self.lying, self.full = deque(), deque(), 0  # [message, bytes], (message, bytes), bytes
        self.writing = self.reading = False


class Sockets:
    def __init__(self, world, room, byte, latency):
        self.world, self.room, self.byte, self.latency, self.all = world, room, byte, latency, {}

    def send(self, message):
        ends = message.source, message.target
        if ends not in self.all:
            self.all[ends] = Socket(*(self.world.processes[end] for end in ends))
        message.unread, message.seen = message.bytes + 1, False  # a head comes first
        self.all[ends].out.append([message, message.bytes + 1])
        self.write(self.all[ends])

    def entered(self, process):
        for one in list(self.all.values()):
            if one.source is process:
                self.write(one)
            if one.target is process:
                self.read(one)

    def busy(self, process, ns, act):
        process.copies = max(self.world.now, process.copies) + self.world.jittered(ns)
        self.world.at(process.copies, act)

    def write(self, one):
        if one.writing or not one.out or not one.source.inside:
            return
        message, left = one.out[0]
        part = min(left, PIECE)
        if one.full and one.full + part > self.room:
            return
        one.full += part
        one.writing = True
        self.busy(one.source, part * self.byte, lambda: self.written(one, message, part))

    def written(self, one, message, part):
        one.writing = False
        one.out[0][1] -= part
        if not one.out[0][1]:
            one.out.popleft()
            self.world.fire(message.send.done)
        self.world.at(self.world.now + self.latency, lambda: self.land(one, message, part))
        self.write(one)

    def land(self, one, message, part):
        one.lying.append((message, part))
        message.could = self.world.now
        self.read(one)

    def read(self, one):
        if one.reading or not one.lying or not one.target.inside:
            return
        message, part = one.lying[0]
        one.reading = True
        self.busy(one.target, part * self.byte * READS, lambda: self.was_read(one, message, part))

    def was_read(self, one, message, part):
        one.reading = False
        one.lying.popleft()
        one.full -= part
        message.unread -= part
        if not message.seen:
            message.seen = True
            self.world.arrive(message)
        if not message.unread and message.receive is not None:
            self.world.fire(message.receive.done)
        self.write(one)
        self.read(one)
