"""One file of a recording: the blocks of docs/recording-format.md, read and written. Knows ticks, not times.

Whoever reads takes the whole blocks before the first that is wrong, and says in a sentence what was wrong with that
one. A file of which nothing can be used raises BadRecording. Events are views of the mapped file where it has one
block of them, not packed, and is small; else they are put together once (columns.room).
"""

from __future__ import annotations

import json
import mmap
import os
import stat
import struct
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Iterable

import numpy as np

from . import cost, fields, packed
from .columns import rest, room
from .fields import MOST_ID, MOST_INT, MOST_NS, MOST_RANKS, MOST_TICKS, MOST_U64, VERSION, BadRecording, check_header
from .model import COMPLETION, CORE_TAKEN, EVENT, FAMILIES, GAP, LIBRARY, Comm, Rank, Site
from .packed import BLOCK, MAGIC, NARROW, PACKED

HEADER, CLOCK, EVENTS, SITES, COMMUNICATORS, END, THREADS = range(1, 8)
SEEN = 8 << 20  # bytes of a file that are looked at before they leave memory again
MOST_JSON = 256 << 20  # bytes of one block
MOST_MEMBERS = 1 << 25  # of all lists of members of a file
DAY = 86_400 * 10**9  # ns that an event may lie beyond its file's clock


@dataclass
class Recording:
    """A file as it was read: a rank whose events have no times yet, and the clock that tells them."""

    rank: Rank
    clock: np.ndarray  # rows of ticks, ns of CLOCK_MONOTONIC, ns of CLOCK_REALTIME; int64, by ticks
    end: dict[str, Any] = field(default_factory=dict)


def read(path: Path, spill: Path | None = None) -> Recording:
    """One file. `spill`: a folder for what does not fit into memory."""
    path = Path(path)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise BadRecording(f"{path.name} is no file")
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size == 0:
                raise BadRecording(f"{path.name} is empty")
            data = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as problem:
        raise BadRecording(f"{path.name} cannot be read: {problem}") from None
    reader, at, problem, rested = _Reader(data, size), 0, "", 0
    while at < size:
        if at - rested > SEEN:
            data.madvise(mmap.MADV_DONTNEED)
            rested = at
        try:
            at = reader.block(at)
        except BadRecording as wrong:
            if reader.header is None:
                raise BadRecording(f"{path.name}: {wrong}") from None
            problem = f"{path.name} counts up to byte {at} of {size}: {wrong}"
            break
    return reader.finish(path.name, problem, spill)


class _Reader:
    """What the blocks up to here have told. A method for each type of block; what is wrong raises BadRecording
    before anything of that block was taken."""

    def __init__(self, data: mmap.mmap, size: int) -> None:
        self.data, self.size = data, size
        self.header: dict[str, Any] | None = None
        self.functions: list[str] = []
        self.families: list[str] = []
        self.clock: list[tuple[int, int, int]] = []
        self.events: list[np.ndarray | packed.Block] = []
        self.spans: list[tuple[int, int]] = []  # first and last ticks of each of them
        self.named: set[int] = set()  # sites that events name
        self.sites: dict[int, Site] = {}
        self.comms: dict[int, Comm] = {}
        self.members: dict[tuple, np.ndarray] = {}  # each list of members once
        self.total = 0  # of their lengths
        self.end: dict[str, Any] = {}
        self.cost: cost.Cost | None = None
        self.threads: dict[int, str] = {}

    def block(self, at: int) -> int:
        """Takes the block at `at`; where the next one begins."""
        start = at + BLOCK.size
        if start > self.size:
            raise BadRecording("it was cut short in a block's header")
        magic, kind, thread, length, first, last = BLOCK.unpack_from(self.data, at)
        if magic != MAGIC:
            raise BadRecording("no block begins there" if at else "it is no recording (its first bytes are others)")
        if length > self.size - start:
            raise BadRecording(f"it was cut short in a block of {length} bytes, of which {self.size - start} are there")
        if length % 8:
            raise BadRecording(f"a block has {length} bytes, no multiple of 8")
        if (self.header is None) != (kind == HEADER):
            raise BadRecording("its first block is no header" if self.header is None else "a second header")
        if kind == EVENTS:
            self.take_events(start, length, thread, first, last)
        elif kind in (PACKED, NARROW):
            block = packed.Block(self.data, start, length, kind)
            self.check_events(block.events(), thread, first, last)
            self.events.append(block)
        elif kind == CLOCK:
            self.take_clock(start, length)
        elif kind in (HEADER, SITES, COMMUNICATORS, END, THREADS):
            value = self.json(start, length, list if kind in (SITES, COMMUNICATORS, THREADS) else dict)
            takes = {
                HEADER: self.take_header,
                SITES: self.take_sites,
                COMMUNICATORS: self.take_comms,
                THREADS: self.take_threads,
            }
            takes.get(kind, self.take_end)(value)
        return start + length

    def json(self, start: int, length: int, wanted: type) -> Any:
        if length > MOST_JSON:
            raise BadRecording(f"a block of JSON has {length} bytes, more than {MOST_JSON}")
        try:
            value = json.loads(self.data[start : start + length].decode("utf-8", "replace"))
        except (ValueError, RecursionError) as problem:
            raise BadRecording(f"a block is no JSON: {str(problem)[:100]}") from None
        if not isinstance(value, wanted):
            raise BadRecording(f"a block of JSON is no {'list' if wanted is list else 'object'}")
        return value

    def take_header(self, header: dict[str, Any]) -> None:
        functions = check_header(header)["functions"]
        self.functions = [fields.printable(name) for name, _family in functions]
        self.families = [family if family in FAMILIES else "other" for _name, family in functions]
        self.known = np.zeros(1 << 16, bool)
        self.known[: len(functions)] = True
        self.known[[COMPLETION, CORE_TAKEN, GAP, *LIBRARY]] = True
        self.header = header

    def take_clock(self, start: int, length: int) -> None:
        if length % 24:
            raise BadRecording(f"a block of clocks has {length} bytes, no multiple of 24")
        taken = list(self.clock)
        for point in struct.iter_unpack("<QQQ", self.data[start : start + length]):
            if point[0] > MOST_TICKS or max(point[1:]) > MOST_NS:
                raise BadRecording("a clock beyond all times")
            place = bisect_left(taken, point)
            before, behind = taken[place - 1 : place], taken[place : place + 1]
            if any(other[1] > point[1] for other in before) or any(other[1] < point[1] for other in behind):
                raise BadRecording("its clock runs backwards")
            if [point] != behind:
                taken.insert(place, point)
        self.clock = taken

    def take_events(self, start: int, length: int, thread: int, first: int, last: int) -> None:
        if length % EVENT.itemsize:
            raise BadRecording(f"a block of events has {length} bytes, no multiple of {EVENT.itemsize}")
        events = np.frombuffer(self.data, EVENT, length // EVENT.itemsize, start)
        if len(events):
            self.check_events(events, thread, first, last)
            self.events.append(events)

    def check_events(self, events: np.ndarray, thread: int, first: int, last: int) -> None:
        """Of one block, at least one; what they span and which sites they name is kept."""
        if not self.known[events["kind"]].all():
            raise BadRecording("an event of a kind that the header does not name")
        if (events["thread"] != thread).any():
            raise BadRecording(f"an event of another thread in a block of thread {thread}")
        if (events["end"] < events["begin"]).any():
            raise BadRecording("an event ends before it begins")
        low, high = int(events["begin"].min()), int(events["end"].max())
        if low < first or high > last or high > MOST_TICKS:
            raise BadRecording("an event lies outside of what its block says")
        self.spans.append((low, high))
        self.named.update(np.unique(events["site"]).tolist())

    def take_sites(self, entries: list) -> None:
        taken = {}
        for entry in map(fields.object_of, entries):
            taken[fields.integer(entry, "id", 1, MOST_ID)] = Site(
                module=fields.text(entry, "module"),
                offset=fields.integer(entry, "offset", 0, MOST_U64, 0),
                file=fields.text(entry, "file"),
                line=fields.integer(entry, "line", 0, MOST_INT, 0),
                function=fields.text(entry, "function"),
            )
        self.sites |= taken

    def take_comms(self, entries: list) -> None:
        taken: dict[int, Comm] = {}
        for entry in map(fields.object_of, entries):
            number = fields.integer(entry, "id", 1, MOST_ID)
            if "members" not in entry:  # a name that came later; of one with processes of another world nothing else
                known = taken.get(number, self.comms.get(number))
                if known:
                    taken[number] = replace(known, name=fields.text(entry, "name"))
                continue
            members = self.ranges(entry, "members")
            assert members is not None
            taken[number] = Comm(
                id=number,
                parent=fields.integer(entry, "parent", 0, MOST_ID, 0),
                call=fields.text(entry, "call"),
                order=fields.integer(entry, "order", 0, MOST_ID, 0),
                rank=fields.integer(entry, "rank", 0, max(0, len(members) - 1)),
                members=members,
                name=fields.text(entry, "name"),
                remote=self.ranges(entry, "remote"),
            )
        self.comms |= taken

    def ranges(self, entry: dict[str, Any], name: str) -> np.ndarray | None:
        """World ranks, from their ranges."""
        if name == "remote" and name not in entry:
            return None
        pairs = entry.get(name)
        size = self.header["size"] or MOST_RANKS if self.header else 0
        if not isinstance(pairs, list):
            raise BadRecording(f"a communicator without {name}")
        total = 0
        for pair in pairs:
            if not (isinstance(pair, list) and len(pair) == 2 and all(type(n) is int and 0 <= n < size for n in pair)):
                raise BadRecording("a communicator with members that are no ranks of the world")
            total += abs(pair[1] - pair[0]) + 1
            if total > size:
                raise BadRecording("a communicator with more members than the world")
        key = tuple(map(tuple, pairs))
        if key not in self.members:
            self.total += total
            if self.total > MOST_MEMBERS:
                raise BadRecording("its communicators have too many members in all")
            runs = [np.arange(a, b + (1 if b >= a else -1), 1 if b >= a else -1, dtype=np.int64) for a, b in key]
            members = np.concatenate(runs) if runs else np.zeros(0, np.int64)
            if len(np.unique(members)) != len(members):
                raise BadRecording("a communicator with one rank twice")
            self.members[key] = members
        return self.members[key]

    def take_threads(self, entries: list) -> None:
        taken = {}
        for entry in map(fields.object_of, entries):
            taken[fields.integer(entry, "thread", 0, 255)] = fields.text(entry, "name")
        self.threads |= taken

    def take_end(self, end: dict[str, Any]) -> None:
        fields.integer(end, "lost", 0, MOST_TICKS, 0)
        fields.integer(end, "library_lost", 0, MOST_TICKS, 0)
        fields.text(end, "why")
        self.cost = cost.read(end)
        self.end = end

    def finish(self, name: str, problem: str, spill: Path | None) -> Recording:
        header = self.header
        assert header is not None
        clock = np.array(self.clock, np.int64).reshape(-1, 3)
        kept = self.within_clock(clock)
        if kept < len(self.events):
            problem = problem or f"{name} has events a day away from its clock: what stands before them counts"
            self.events = self.events[:kept]
        if len(self.events) == 1 and spill is None:
            events = as_array(self.events[0])
        else:
            events, at, rested = room(sum(map(len, self.events)), EVENT, spill), 0, 0
            for block in self.events:
                events[at : at + len(block)] = as_array(block)
                at += len(block)
                if at - rested > SEEN // EVENT.itemsize:
                    rest(events)
                    self.data.madvise(mmap.MADV_DONTNEED)
                    rested = at
        rest(events)
        self.data.madvise(mmap.MADV_DONTNEED)
        unknown = self.named - self.sites.keys() - {0}
        if unknown:
            problem = problem or f"{name} does not tell where {len(unknown)} of its call sites are"
        none = np.zeros(0, np.int64)
        rank = Rank(
            rank=header["rank"],
            host=fields.text(header, "host"),
            boot=fields.text(header, "boot") or fields.text(header, "host"),
            header=header,
            events=events,
            begin=none,
            end=none,
            functions=self.functions,
            families=self.families,
            sites={0: Site()} | self.sites | dict.fromkeys(unknown, Site()),
            comms=self.comms,
            finalized=self.end.get("finalized") is True,
            problem=problem,
            threads=self.threads,
            cost=self.cost,
        )
        return Recording(rank, clock, self.end)

    def within_clock(self, clock: np.ndarray) -> int:
        """How many blocks of events there are before the first that lies a day away from the clock, or more."""
        if not len(clock):
            return len(self.spans)
        (first, ns, _), (last, end, _) = clock[0].tolist(), clock[-1].tolist()
        rate = 1.0 if self.header["ticks"] == "ns" else 10.0  # ticks a ns; known where it was read twice
        if end > ns and last > first:
            rate = (last - first) / (end - ns)
        reach = int(DAY * rate)
        away = (i for i, (low, high) in enumerate(self.spans) if low < first - reach or high > last + reach)
        return next(away, len(self.spans))


def as_array(block: np.ndarray | packed.Block) -> np.ndarray:
    return block.events() if isinstance(block, packed.Block) else block


class Writer:
    """Writes one file, for tests and for cut-outs. The caller gives the blocks in their order, the header first."""

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        self.file = open(path, "wb")
        self.json(HEADER, {"version": VERSION} | header)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_problem: object) -> None:
        self.file.close()

    def block(self, kind: int, payload: bytes, thread: int = 0, first: int = 0, last: int = 0) -> None:
        self.file.write(BLOCK.pack(MAGIC, kind, thread, len(payload), first, last) + payload)

    def json(self, kind: int, value: Any) -> None:
        text = json.dumps(value).encode()
        self.block(kind, text + b" " * (-len(text) % 8))

    def clock(self, *points: tuple[int, int, int]) -> None:
        self.block(CLOCK, b"".join(struct.pack("<QQQ", *point) for point in points))

    def events(self, events: np.ndarray) -> None:
        """Of one thread."""
        if len(events):
            span = int(events["begin"].min()), int(events["end"].max())
            self.block(EVENTS, events.astype(EVENT, copy=False).tobytes(), int(events["thread"][0]), *span)

    def sites(self, entries: Iterable[dict[str, Any]]) -> None:
        self.json(SITES, list(entries))

    def communicators(self, entries: Iterable[dict[str, Any]]) -> None:
        self.json(COMMUNICATORS, list(entries))

    def threads(self, names: dict[int, str]) -> None:
        self.json(THREADS, [{"thread": thread, "name": name} for thread, name in names.items()])

    def end(
        self, events: int, finalized: bool = True, lost: int = 0, why: str = "", library_lost: int = 0, **more: Any
    ) -> None:
        told = {"finalized": finalized, "events": events, "lost": lost, "library_lost": library_lost, "why": why}
        self.json(END, told | more)


def ranges(ranks: Iterable[int]) -> list[list[int]]:
    """World ranks as a communicator's entry has them."""
    found: list[list[int]] = []
    for rank in ranks:
        if found:
            first, last = found[-1]
            step = (last > first) - (last < first)
            if rank - last in ((step,) if step else (1, -1)):
                found[-1][1] = rank
                continue
        found.append([rank, rank])
    return found
