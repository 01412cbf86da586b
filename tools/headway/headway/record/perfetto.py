"""A run as Perfetto's protobuf trace, for ui.perfetto.dev and trace_processor.

Messages and field numbers are those of google/perfetto, protos/perfetto/: trace/trace.proto (Trace),
trace/trace_packet.proto (TracePacket), trace/trace_packet_defaults.proto (TracePacketDefaults),
trace/clock_snapshot.proto (ClockSnapshot), trace/interned_data/interned_data.proto (InternedData),
trace/profiling/profile_common.proto (InternedString), trace/track_event/track_event.proto (TrackEvent,
TrackEventDefaults, EventCategory, EventName), trace/track_event/debug_annotation.proto (DebugAnnotation,
DebugAnnotationName), trace/track_event/track_descriptor.proto, process_descriptor.proto and thread_descriptor.proto.

A rank is a process, a thread a track; each track is a packet sequence of its own, with names interned and times as
differences to the packet before. A message is a flow from the begin of its send to the end of the call that received
it, since the earlier time is a flow's source, and a receive may begin before its send. Packets are encoded by numpy, a
column of bytes at a time: rows are packets, and what a row has not is left out when they are joined. A large rank is
written part by part: a sequence goes on with what its last part left (times, names that are known).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from headway.record import calls, model
from headway.record import classes as waiting
from headway.record import columns as memory
from headway.record.calls import Calls, Ends, Track, arrange, comm_text, site_text, world_ranks
from headway.record.model import Rank, Run
from headway.record.words import clean

# Fields: number << 3 | wire type, as bytes.
VARINT, FIXED64, BYTES = 0, 1, 2
FIRST_SEQUENCE = 2  # 1 is the tracing service's
BOOTTIME, OWN_CLOCK = 6, 64  # clocks; ours counts differences
CLEARED, NEEDS_STATE = 1, 2  # sequence_flags
SLICE_BEGIN, SLICE_END = 1, 2
PEER, TAG, SIZE, COMM, SITE, CLASS, WORLD_RANK, REQUESTS, FROM, FROM_TAG, RECEIVED, NO_CORE_NS, TESTS = range(1, 14)
CLOSING, SPARED, CALLER = range(14, 17)
ANNOTATIONS = (
    "peer", "tag", "bytes", "communicator", "site", "waiting", "world rank of peer", "requests", "from", "tag received",
    "bytes received", "ns without a core", "tests", "closed pages", "µs spared", "thread of the call",
)  # fmt: skip
WIDTH = 64  # bytes of a packet's row without its annotations, at most
ROWS = 1 << 15  # encoded at once
PACKED = 1 << 22  # bytes of packets that are compressed at once


def varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def tag(number: int, wire: int) -> bytes:
    return varint(number << 3 | wire)


def number(field: int, value: int) -> bytes:
    return tag(field, VARINT) + varint(value)


def message(field: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return tag(field, BYTES) + varint(len(body)) + body


def string(field: int, text: str) -> bytes:
    return message(field, clean(text).encode())


def packet(*parts: bytes) -> bytes:
    return message(1, *parts)


class Rows:
    """A table of bytes that is filled column by column; each row has its own of them, and a length."""

    def __init__(self, count: int, width: int):
        self.bytes = np.zeros((count, width), np.uint8)
        self.there = np.zeros((count, width), bool)
        self.length = np.zeros(count, np.int64)
        self.at = 0

    def constant(self, text: bytes, rows: np.ndarray | slice = slice(None)) -> None:
        end = self.at + len(text)
        self.bytes[rows, self.at : end] = np.frombuffer(text, np.uint8)
        self.there[rows, self.at : end] = True
        self.length[rows] += len(text)
        self.at = end

    def varint(self, values: np.ndarray, rows: np.ndarray | slice = slice(None), at: int | None = None) -> None:
        """At the column `at`, or behind what is there."""
        values = values.astype(np.uint64)
        start = self.at if at is None else at
        if not len(values):
            return
        need = max(1, -(-int(values.max()).bit_length() // 7))
        for k in range(need):
            rest = values >> np.uint64(7)
            byte = (values & np.uint64(0x7F)).astype(np.uint8)
            byte[rest > 0] |= 0x80
            self.bytes[rows, start + k] = byte
            if k:
                self.there[rows, start + k] = alive
                self.length[rows] += alive
            else:
                self.there[rows, start] = True
                self.length[rows] += 1
            values, alive = rest, rest > 0
        if at is None:
            self.at = start + need

    def room(self, width: int) -> int:
        self.at += width
        return self.at - width

    def joined(self) -> bytes:
        return self.bytes[self.there].tobytes()


def lengths(values: np.ndarray) -> np.ndarray:
    """Of varints, in bytes."""
    found = np.ones(len(values), np.int64)
    values = values.astype(np.uint64)
    while (values := values >> np.uint64(7)).any():
        found += values > 0
    return found


class Column:
    """An annotation: numbers from 0, or numbers of interned strings, and which calls have one."""

    def __init__(self, name: int, values: np.ndarray, there: np.ndarray, interned: bool = False):
        self.name, self.there, self.interned = name, there, interned
        self.values = np.where(there, values, 0).astype(np.uint64)

    @property
    def width(self) -> int:
        """Bytes in a row at most, with its tags and lengths."""
        return 8 + int(self.values.max()).bit_length() // 7


class Texts:
    """Strings and the numbers under which a sequence knows them, from 1."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.told = 0  # of them

    def number(self, text: str) -> int:
        return self.numbers.setdefault(clean(text), len(self.numbers) + 1)

    def table(self, values: np.ndarray, text_of: Callable[[int], str]) -> np.ndarray:
        """The number of each value's text; `text_of` is asked once for each different value. 0 where it has none."""
        different, which = np.unique(values, return_inverse=True)
        numbers = []
        for value in different.tolist():
            text = text_of(value)
            numbers.append(self.number(text) if text else 0)
        return np.array(numbers, np.int64)[which] if len(numbers) else np.zeros(0, np.int64)

    def fields(self, field: int) -> list[bytes]:
        """Those that were not told before. EventCategory, EventName, DebugAnnotationName and InternedString alike:
        number, text."""
        new = list(self.numbers.items())[self.told :]
        self.told = len(self.numbers)
        return [message(field, number(1, n), string(2, text)) for text, n in new]


def annotations(
    rank: Rank, events: np.ndarray, of: Calls, index: np.ndarray, texts: Texts, classes: np.ndarray | None
) -> list[Column]:
    e = events
    family_waits = calls.with_family(rank, "wait", "test")[e["kind"]]
    many = family_waits & (e["request"] == 0)  # its tag says how many
    in_vain = e["flags"] & model.IN_VAIN > 0
    core = e["kind"] == model.CORE_TAKEN
    plain = ~many & ~in_vain & ~core & (e["kind"] != model.GAP)
    peer, tags = e["peer"].astype(np.int64), calls.tags(e).astype(np.int64)
    said = e["flags"] & (model.SEND | model.RECEIVE | model.COLLECTIVE) > 0  # others' numbers mean nothing
    ours = (e["kind"] >= model.LIBRARY.start) & (e["kind"] < model.LIBRARY.stop)
    any_text = texts.number("any")
    found = [Column(PEER, peer, plain & (said | ours) & (peer >= 0)), Column(TAG, tags, plain & said & (tags >= 0))]
    for name, values in ((PEER, peer), (TAG, tags)):
        wild = plain & said & (values == model.ANY)
        if wild.any():
            found.append(Column(name, np.full(len(e), any_text), wild, interned=True))
    found.append(Column(SIZE, np.minimum(e["bytes"], 1 << 62).astype(np.int64), plain & (e["bytes"] > 0)))
    comm = texts.table(e["comm"], lambda c: comm_text(rank, c))
    found.append(Column(COMM, comm, plain & (comm > 0), interned=True))
    site = texts.table(e["site"], lambda s: site_text(rank, s))
    found.append(Column(SITE, site, site > 0, interned=True))
    if classes is not None:
        numbers = np.array([texts.number(n) for n in waiting.NAMES], np.int64)
        mine = classes[index]
        found.append(Column(CLASS, numbers[mine], mine >= waiting.LATE_SENDER, interned=True))
    world = world_ranks(rank, e["comm"], peer)
    found.append(Column(WORLD_RANK, world, plain & said & (world >= 0) & (world != peer)))
    requests = np.where(many, tags, of.count[index])
    found.append(
        Column(
            REQUESTS,
            requests,
            (many & ~in_vain & (requests > 0))
            | (~calls.with_family(rank, "sendrecv")[e["kind"]] & (of.count[index] > 1)),
        )
    )
    also = of.also[index]
    pair = also >= 0
    if pair.any():
        r = rank.events[np.maximum(also, 0)]
        found += [
            Column(FROM, r["peer"].astype(np.int64), pair & (r["peer"] >= 0)),
            Column(FROM_TAG, r["tag"].astype(np.int64), pair & (r["tag"] >= 0)),
            Column(RECEIVED, np.minimum(r["bytes"], 1 << 62).astype(np.int64), pair),
        ]
    found.append(Column(NO_CORE_NS, np.minimum(e["bytes"], 1 << 62).astype(np.int64), core))
    found.append(Column(TESTS, tags, in_vain & (tags > 0)))
    number_ = e["request"].astype(np.int64)
    found.append(Column(CLOSING, number_, np.isin(e["kind"], (model.FAULT, model.RELEASE)) & (number_ > 0)))
    found.append(Column(SPARED, number_, (e["kind"] == model.PREFETCH) & (number_ > 0)))
    found.append(Column(CALLER, tags, ours & (tags >= 0)))
    return [c for c in found if c.there.any()]


class TrackWriter:
    """A track's packets, part by part."""

    def __init__(self, number_: int, uuid: int) -> None:
        self.uuid, self.head = uuid, number(10, number_)
        self.names, self.categories, self.texts = Texts(), Texts(), Texts()
        self.used: set[int] = set()  # annotations whose names are told
        self.clock = -1  # time of the last packet

    def write(
        self,
        rank: Rank,
        of: Calls,
        track: Track,
        sends: tuple[np.ndarray, np.ndarray],
        receives: tuple[np.ndarray, np.ndarray],
        classes: np.ndarray | None,
    ) -> Iterator[bytes]:
        """`sends` and `receives`: calls of this part, sorted, and the flow that begins or ends in each."""
        events = rank.events[track.index]
        kind = events["kind"]
        name = self.names.table(kind, lambda k: calls.name(rank, k))
        category = self.categories.table(kind, lambda k: calls.category(rank, k))
        columns = annotations(rank, events, of, track.index, self.texts, classes)
        yield from self._names({c.name for c in columns})
        count = len(track.index)
        at_begin, at_end = track.places()
        time = np.empty(2 * count, np.int64)
        time[at_begin], time[at_end] = track.begin, track.end
        time = np.maximum(time, self.clock)  # where no place was found to part this track
        call = np.empty(2 * count, np.int64)
        call[at_begin] = call[at_end] = np.arange(count)
        begins = np.zeros(2 * count, bool)
        begins[at_begin] = True
        ids = np.empty(2 * count, np.int64)  # first flow of each packet, and how many
        many = np.empty(2 * count, np.int64)
        for places, (owners, _) in ((at_begin, sends), (at_end, receives)):
            first = np.searchsorted(owners, track.index, "left")
            ids[places], many[places] = first, np.searchsorted(owners, track.index, "right") - first
        step = np.diff(time, prepend=max(self.clock, 0))
        self.clock = int(time[-1])
        # Rows: a packet, then its flows.
        rows = np.cumsum(1 + many)
        start = 0
        while start < 2 * count:
            done = int(rows[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(rows, done + ROWS, "right")))
            part = slice(start, stop)
            yield _encode(
                self.head,
                step[part],
                begins[part],
                call[part],
                ids[part],
                many[part],
                name,
                category,
                columns,
                sends[1],
                receives[1],
            )
            start = stop

    def _names(self, used: set[int]) -> Iterator[bytes]:
        """What the next packets name and no earlier one did; before the first, what holds for all."""
        new, first = sorted(used - self.used), self.clock < 0
        self.used |= used
        names = [
            *self.categories.fields(1),
            *self.names.fields(2),
            *(message(3, number(1, n), string(2, ANNOTATIONS[n - 1])) for n in new),
            *self.texts.fields(29),
        ]
        if not first:
            if names:
                yield packet(self.head, number(13, NEEDS_STATE), message(12, *names))
            return
        yield packet(
            self.head,
            number(13, CLEARED),
            number(87, 1),
            message(59, number(58, OWN_CLOCK), message(11, number(11, self.uuid))),
            message(12, *names),
        )
        yield packet(
            self.head,
            message(
                6,
                message(1, number(1, BOOTTIME), number(2, 0)),
                message(1, number(1, OWN_CLOCK), number(2, 0), number(3, 1)),
            ),
        )


def _encode(
    head: bytes,
    step: np.ndarray,
    begins: np.ndarray,
    call: np.ndarray,
    ids: np.ndarray,
    many: np.ndarray,
    name: np.ndarray,
    category: np.ndarray,
    columns: list[Column],
    sent: np.ndarray,
    received: np.ndarray,
) -> bytes:
    count, flows = len(step), int(many.sum())
    rows = Rows(count + flows, WIDTH + sum(c.width for c in columns))
    own = np.arange(count) + np.concatenate(([0], np.cumsum(many)[:-1]))  # the row of each packet
    every = own if flows else slice(0, count)
    rows.constant(b"\x0a", every)
    packet_length = rows.room(5)
    before = int(rows.length[0])
    rows.constant(tag(8, VARINT), every)
    rows.varint(step, every)
    rows.constant(head + number(13, NEEDS_STATE) + tag(11, BYTES), every)
    outer = rows.length[every] - before
    event_length = rows.room(5)
    after = rows.length[every].copy()
    opens, closes = own[begins], own[~begins]
    rows.constant(number(9, SLICE_END), closes)
    rows.at -= 2
    rows.constant(number(9, SLICE_BEGIN) + tag(3, VARINT), opens)
    of = call[begins]
    rows.varint(category[of], opens)
    rows.constant(tag(10, VARINT), opens)
    rows.varint(name[of], opens)
    for column in columns:
        here = column.there[of]
        if not here.any():
            continue
        where = opens[here]
        values = column.values[of[here]]
        field = number(1, column.name) + (tag(17, VARINT) if column.interned else tag(4, VARINT))
        rows.constant(tag(4, BYTES), where)
        rows.varint(len(field) + lengths(values), where)
        rows.constant(field, where)
        rows.varint(values, where)
    inner = rows.length[every] - after + 10 * many
    rows.varint(inner, every, at=event_length)
    rows.varint(outer + lengths(inner) + inner, every, at=packet_length)
    if flows:
        row = np.ones(count + flows, bool)
        row[own] = False
        row = np.flatnonzero(row)
        of = np.repeat(np.arange(count), many)
        which = np.arange(flows) - np.repeat(np.cumsum(many) - many, many) + ids[of]
        opening = begins[of]
        flow = np.empty(flows, np.uint64)
        flow[opening], flow[~opening] = sent[which[opening]], received[which[~opening]]
        rows.bytes[row, 0] = np.where(opening, tag(47, FIXED64)[0], tag(48, FIXED64)[0])
        rows.bytes[row, 1] = np.where(opening, tag(47, FIXED64)[1], tag(48, FIXED64)[1])
        rows.bytes[row, 2:10] = flow.astype("<u8").view(np.uint8).reshape(-1, 8)
        rows.there[row, :10] = True
    return rows.joined()


def spans(run: Run, window: tuple[int, int] | None) -> list[tuple[int, int]]:
    """Of each rank, the events from the first that ends in that time (ns) to the last that begins in it."""
    found = []
    for rank in run.ranks:
        count = len(rank.events)
        low, high = (0, count) if window is None else (count, 0)
        for at in range(0, count if window else 0, memory.CHUNK):
            some = slice(at, at + memory.CHUNK)
            inside = np.flatnonzero((rank.end[some] >= window[0]) & (rank.begin[some] <= window[1]))
            if len(inside):
                low, high = min(low, at + int(inside[0])), at + int(inside[-1]) + 1
            memory.rest(rank.begin, rank.end)
        found.append((min(low, high), high))
    return found


def packets(
    run: Run, classes: Sequence[np.ndarray] | None = None, window: tuple[int, int] | None = None
) -> Iterator[bytes]:
    """In the order of the file: a rank's descriptors, then its tracks. Of a large rank that again, part by part."""
    of_ranks = spans(run, window)
    some = of_ranks if window else None
    sent, received = (Ends(run, run.messages, *of, some) for of in (("source", "sent"), ("target", "came")))
    sequence = FIRST_SEQUENCE
    wide = len(str(max((r.rank for r in run.ranks), default=0)))
    for at, whole in enumerate(run.ranks):
        process = (at + 1) << 20
        pid = (at + 1) << 9  # of its own: pids of two hosts may be the same
        title = f"rank {whole.rank:0{wide}}" if whole.rank >= 0 else f"process {whole.header.get('pid', '')}"
        title += f" ({whole.host})" if whole.host else ""
        yield packet(message(60, number(1, process), message(3, number(1, pid), string(6, title))))
        tracks: dict[tuple[int, int, int], TrackWriter] = {}
        for first, rank in calls.parts(whole, *of_ranks[at]):
            of = arrange(rank)
            given = None if classes is None else waiting.fitting(whole, classes[at])[first : first + len(rank.events)]
            mine = None if classes is None else waiting.class_of(rank, given)
            sends, receives = sent.of(at, of, first), received.of(at, of, first)
            for track in of.tracks:
                key = track.thread, track.what, track.lane
                while track.what in calls.STRIPS and key in tracks and tracks[key].clock > track.begin[0]:
                    # What the library does lasts over the place where calls are parted.
                    track = replace(track, lane=track.lane + 1)
                    key = track.thread, track.what, track.lane
                if key not in tracks:
                    tracks[key] = TrackWriter(sequence, process + 1 + len(tracks))
                    yield described(track, tracks[key].uuid, process, pid)
                    sequence += 1
                yield from tracks[key].write(rank, of, track, sends, receives, mine)
            if classes is not None:
                memory.rest(classes[at])


def described(track: Track, uuid: int, process: int, pid: int) -> bytes:
    if track.what == calls.CALLS and track.lane == 0:
        kind = message(4, number(1, pid), number(2, pid + track.thread), string(5, track.title))
        return packet(message(60, number(1, uuid), number(5, process), kind))
    return packet(message(60, number(1, uuid), number(5, process), string(2, track.title)))


def pour(parts: Iterator[bytes], file: BinaryIO, compress: bool = True) -> int:
    """Writes the packets; as compressed_packets, which all readers of Perfetto know, a few MB at a time."""
    written = 0

    def put(text: bytes) -> None:
        nonlocal written
        file.write(text)
        written += len(text)

    if not compress:
        for part in parts:
            put(part)
        return written
    held: list[bytes] = []
    size = 0
    for part in parts:
        held.append(part)
        size += len(part)
        if size >= PACKED:
            put(packet(message(50, zlib.compress(b"".join(held), 1))))
            held, size = [], 0
    if held:
        put(packet(message(50, zlib.compress(b"".join(held), 1))))
    return written


def write(
    run: Run,
    path: Path,
    classes: Sequence[np.ndarray] | None = None,
    compress: bool = True,
    window: tuple[int, int] | None = None,
) -> int:
    """Returns the size of the file. `window`: the time (ns) of the run that is written."""
    with path.open("wb") as file:
        return pour(packets(run, classes, window), file, compress)
