"""What the ranks of a recording do now: what their files name, and what they tell in memory that others may read
(docs/recording-format.md). A look reads all of it, of the ranks on this host; nobody stops for it. Standard library only.
"""

from __future__ import annotations

import json
import os
import re
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .fields import MOST_ID, MOST_INT, MOST_RANKS, MOST_U64, BadRecording, check_header, integer, object_of, printable, text

MAGIC, NOW_MAGIC = 0x31525748, 0x31574F4E52574848
VERSION = 2
BLOCK = struct.Struct("<IHHQQQ")
HEADER, SITES, COMMUNICATORS, END, COUNTS = 1, 4, 5, 6, 8
MOST_JSON = 256 << 20
PAGE = struct.Struct("<QIIQiiiIII6QIIQQd")
PAGE_BYTES, OWN_AT, OWN, WAITS_AT, WAIT_BYTES, WAITS, KEYS = 25088, 128, 32, 512, 384, 64, 32
WAIT = struct.Struct("<QQQHBBIIiiiiIiIHHI")
CHANNEL, SLOT, OPERATION = struct.Struct("<8Q"), struct.Struct("<QII"), struct.Struct("<IIHBBB3xIiiIQ24x")
ITSELF = 0xFFFFFFFF  # in place of a process: the communicator's own row
MOST_TABLE = 1 << 28
NAME = "/memfd:headway-now"
TRIES = 5
# Why a rank is not seen.
OLDER = "recorded by an older headway, which tells nothing of ranks that run"
CLOSED = "its program has closed the descriptor by which one sees what it does"
RANK_FILE = re.compile(r"rank-(\d+)\.hwr")


class Unusable(Exception):
    """Why nothing can be told, in a sentence."""


@dataclass(frozen=True)
class Comm:
    """As one rank told it; members as ranges of world ranks."""

    id: int
    parent: int
    order: int
    call: str
    members: tuple[tuple[int, int], ...]
    remote: tuple[tuple[int, int], ...] | None
    name: str


class RankFile:
    """What a rank's file names. `read` goes on where the last one ended: the file may still grow."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.at = 0
        self.header: dict[str, Any] = {}
        self.sites: dict[int, dict[str, Any]] = {}
        self.comms: dict[int, Comm] = {}
        self.end: dict[str, Any] | None = None
        self.counts: dict[int, tuple[int, ...]] | None = None

    def read(self) -> None:
        try:
            with open(self.path, "rb", buffering=0) as file:
                self._read(file.fileno(), os.fstat(file.fileno()).st_size)
        except OSError as problem:
            raise Unusable(f"{self.path.name} cannot be read: {problem.strerror}") from None
        if not self.header:
            raise Unusable(f"{self.path.name} is no recording")

    def _read(self, file: int, size: int) -> None:
        while self.at + BLOCK.size <= size:
            magic, kind, _thread, length, _first, _last = BLOCK.unpack(os.pread(file, BLOCK.size, self.at))
            if magic != MAGIC or (not self.header and kind != HEADER):
                return
            if self.at + BLOCK.size + length > size:
                return  # it is being written
            if kind in (HEADER, SITES, COMMUNICATORS, END, COUNTS) and length <= MOST_JSON:
                try:
                    self._take(kind, os.pread(file, length, self.at + BLOCK.size))
                except BadRecording as problem:
                    raise Unusable(f"{self.path.name}: {problem}") from None
                except (ValueError, KeyError, TypeError, AttributeError, struct.error) as problem:
                    raise Unusable(f"{self.path.name} has a block that makes no sense: {problem}") from None
            self.at += BLOCK.size + length

    def _take(self, kind: int, data: bytes) -> None:
        if kind == COUNTS:
            self.counts = {row[0]: row for row in CHANNEL.iter_unpack(data)}
            return
        told = json.loads(data.decode("utf-8", "replace"))
        if kind == HEADER:
            self.header = check_header(told)
        elif kind == END:
            self.end = object_of(told)
        elif kind == SITES:
            for site in map(object_of, told):
                self._take_site(site)
        else:
            for entry in map(object_of, told):
                self._take_comm(entry)

    def _take_site(self, site: dict[str, Any]) -> None:
        self.sites[integer(site, "id", 1, MOST_ID)] = {
            "file": text(site, "file"),
            "line": integer(site, "line", 0, MOST_INT, 0),
            "module": text(site, "module"),
            "offset": integer(site, "offset", 0, MOST_U64, 0),
        }

    def _take_comm(self, entry: dict[str, Any]) -> None:
        number = integer(entry, "id", 1, MOST_ID)
        known = self.comms.get(number)
        if "members" in entry:
            ranges = [entry["members"], entry.get("remote")]
            members, remote = (None if some is None else tuple((int(a), int(b)) for a, b in some) for some in ranges)
            if any(not 0 <= end < MOST_RANKS for some in (members, remote) for pair in some or () for end in pair):
                raise ValueError("a communicator has ranks that cannot be")
            self.comms[number] = Comm(
                number, integer(entry, "parent", 0, MOST_ID, 0), integer(entry, "order", 0, MOST_ID, 0), text(entry, "call"),
                members or (), remote, text(entry, "name"),
            )  # fmt: skip
        elif known:
            self.comms[number] = Comm(**(vars(known) | {"name": text(entry, "name")}))

    def name_of(self, kind: int) -> str:
        functions = self.header["functions"]
        return printable(functions[kind][0]) if kind < len(functions) else "MPI_?"

    def family_of(self, kind: int) -> str:
        functions = self.header["functions"]
        return functions[kind][1] if kind < len(functions) else "other"


# ---- memory ------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Operation:
    """What was begun and is not over; or a persistent one."""

    id: int
    kind: int
    flags: int
    persistent: bool
    active: bool
    comm: int
    peer: int
    tag: int
    number: int


@dataclass(frozen=True)
class Wait:
    """Of one thread; it is in it if `serial` is odd."""

    serial: int
    begin: int
    polls: int
    kind: int
    flags: int
    site: int
    comm: int
    peer: int
    tag: int
    to: int
    to_tag: int
    number: int
    thread: int
    requests: int
    poll_kind: int
    keys: tuple[int, ...]


@dataclass
class Page:
    """What a process told of itself at one moment."""

    several: bool
    odd: bool
    unseen: int
    own: list[int]
    ticks: int
    ns: int
    rate: float
    waits: list[Wait]
    channels: dict[int, tuple[int, ...]] | None  # None: it could not be kept where others see it
    slots: bytes | None
    table: bytes | None
    started: int = 0
    pid: int = 0

    def operation(self, key: int) -> Operation | None:
        """The oldest of that handle."""
        if not self.slots or self.table is None or not key:
            return None
        mask = len(self.slots) // SLOT.size - 1
        at = ((key & 0xFFFFFFFF) * 0x61C88647 >> 20) & mask
        for _ in range(mask + 1):
            found, first, last = SLOT.unpack_from(self.slots, at * SLOT.size)
            if not first:
                return None
            if found == key:
                return self._at(first) if last else None
            at = at + 1 & mask
        return None

    def operations(self) -> list[Operation] | None:
        """All; None: they are not known."""
        if self.slots is None or self.table is None:
            return None
        found = []
        for _key, first, last in SLOT.iter_unpack(self.slots):
            if not last:  # it is over
                continue
            seen = 0
            while first and seen < len(self.table) // OPERATION.size:
                one = self._at(first)
                if one is None:
                    return None
                found.append(one)
                first, seen = OPERATION.unpack_from(self.table, first * OPERATION.size)[1], seen + 1
        return found

    def _at(self, index: int) -> Operation | None:
        assert self.table is not None
        if (index + 1) * OPERATION.size > len(self.table):
            return None
        number, _next, kind, flags, persistent, active, comm, peer, tag, which, _bytes = OPERATION.unpack_from(
            self.table, index * OPERATION.size
        )
        return Operation(number, kind, flags, bool(persistent), bool(active), comm, peer, tag, which)

    def age(self, wait: Wait, now: int) -> float:
        """Seconds since it began; `now`: ns of CLOCK_MONOTONIC."""
        return max(0.0, (now - self.ns - (wait.begin - self.ticks) / (self.rate or 1.0)) / 1e9)


def read_page(file: int) -> Page | None:
    """None: it changed all the time while it was read."""
    for _ in range(TRIES):
        data = os.pread(file, PAGE_BYTES, 0)
        if len(data) < PAGE_BYTES:
            raise Unusable("its page is too short")
        fields = PAGE.unpack_from(data)
        if fields[0] != NOW_MAGIC:
            raise Unusable("what it tells of itself is of another headway")
        if fields[1] != VERSION:
            raise Unusable(f"what it tells of itself has version {fields[1]}; this headway reads version {VERSION}")
        tables = [read_table(file, fields[10 + 2 * i], fields[11 + 2 * i], size) for i, size in enumerate((64, 16, 64))]
        if is_same(data, os.pread(file, PAGE_BYTES, 0)):
            return page_of(data, fields, tables)
    return None


def read_table(file: int, at: int, count: int, size: int) -> bytes | None:
    if not count:
        return b""
    if not at or count * size > MOST_TABLE:
        return None
    data = os.pread(file, count * size, at)
    return data if len(data) == count * size else None


def is_same(a: bytes, b: bytes) -> bool:
    """No table has moved, and no wait has begun or ended."""
    places = all(a[at : at + 8] == b[at : at + 8] for at in range(WAITS_AT, PAGE_BYTES, WAIT_BYTES))
    return places and a[40:104] == b[40:104]


def page_of(data: bytes, fields: tuple, tables: list[bytes | None]) -> Page:
    waits = []
    for at in range(WAITS_AT, PAGE_BYTES, WAIT_BYTES):
        serial, begin, polls, kind, flags, _, site, comm, peer, tag, to, to_tag, number, thread, requests, poll, _, _ = (
            WAIT.unpack_from(data, at)
        )
        if thread:
            keys = struct.unpack_from(f"<{min(requests, KEYS)}Q", data, at + WAIT.size) if requests else ()
            waits.append(
                Wait(serial, begin, polls, kind, flags, site, comm, peer, tag, to, to_tag, number, thread, requests, poll, keys)
            )
    operations, slots, channels = tables
    return Page(
        several=bool(fields[8]),
        odd=bool(fields[9]),
        unseen=fields[16],
        own=list(struct.unpack_from(f"<{min(fields[17], OWN)}i", data, OWN_AT)),
        ticks=fields[18],
        ns=fields[19],
        rate=fields[20],
        waits=waits,
        channels=None if channels is None else {row[0]: row for row in CHANNEL.iter_unpack(channels) if row[0]},
        slots=slots,
        table=operations,
        started=fields[3],
        pid=fields[4],
    )


# ---- a look ------------------------------------------------------------------------------------
@dataclass
class Thread:
    state: str = "?"  # as in /proc/PID/stat
    ticks: int = 0  # of processor time
    start: int = 0  # ticks since the boot
    slices: int = 0  # how often it was put on a core


@dataclass
class Look:
    """What was seen of one rank."""

    kind: str = "unknown"  # as launcher/told_looks.h has it
    why: str = ""  # of what is not known
    file: RankFile | None = None
    page: Page | None = None
    unsteady: bool = False
    state: str = "?"
    ticks: int = 0
    threads: dict[int, Thread] = field(default_factory=dict)

    @property
    def pid(self) -> int:
        return int(self.file.header.get("pid", 0)) if self.file else 0

    @property
    def waits(self) -> list[Wait]:
        return [wait for wait in self.page.waits if wait.serial % 2] if self.page else []

    @property
    def channels(self) -> dict[int, tuple[int, ...]] | None:
        """Also of one that has ended."""
        if self.page:
            return self.page.channels
        end = self.file.end if self.file else None
        return self.file.counts if self.file and end is not None and not end.get("odd") else None  # odd: they miss something

    def has_others(self) -> bool:
        """Threads that may call MPI at any time, beside those that are in a wait."""
        if not self.page or not self.page.several:
            return False
        known = set(self.page.own) | {wait.thread for wait in self.waits}
        return bool(self.page.unseen or len(self.page.own) >= OWN or self.threads.keys() - known)


def stat_of(path: str) -> Thread | None:
    try:
        words = Path(path).read_text(errors="replace").rpartition(")")[2].split()
        return Thread(words[0], int(words[11]) + int(words[12]), int(words[19]))
    except (OSError, ValueError, IndexError):
        return None


def read_text(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def read_link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


class Here:
    """This host, as far as ranks are looked for on it."""

    def __init__(self) -> None:
        self.boot = read_text("/proc/sys/kernel/random/boot_id")
        self.processes = read_link("/proc/self/ns/pid")

    def why_not(self, header: dict[str, Any]) -> str:
        """Why a rank cannot be seen from here."""
        if header.get("boot") != self.boot:
            return f"on another host, {text(header, 'host') or '?'}: ask there"
        processes = (header.get("now") or {}).get("processes", "")
        if processes and self.processes and processes != self.processes:
            return f"in another container of {text(header, 'host') or 'this host'}: ask there"
        return ""


def look_at(file: RankFile, here: Here) -> Look:
    """Reads a rank's file on, and its page."""
    look = Look(file=file)
    file.read()
    header = file.header
    if "now" not in header:
        look.why = OLDER
        return look
    look.why = here.why_not(header)
    if look.why:
        return look
    pid = look.pid
    process = stat_of(f"/proc/{pid}/stat")
    if process is None or process.state in "ZX" or process.start != header["now"].get("start", process.start):
        look.kind = "ended"
        return look
    look.state, look.ticks = process.state, process.ticks
    if file.end is not None:
        look.kind = "left"
        return look
    opened = open_page(pid, header["now"].get("file", -1), look)
    if opened is None:
        return look
    try:
        look.page = read_page(opened)
    except Unusable as problem:
        look.why = str(problem)
        return look
    finally:
        os.close(opened)
    if look.page and look.page.started != header.get("started", look.page.started):
        look.page, look.why = None, "its process records another program by now"
        return look
    look.unsteady = look.page is None
    look_at_threads(pid, look)
    look.kind = "in_call" if look.waits else "computing"
    return look


def look_at_threads(pid: int, look: Look) -> None:
    """All of a rank where several may call MPI, else those that wait."""
    wanted = [wait.thread for wait in look.waits]
    if look.page and look.page.several:
        try:
            wanted = [int(name) for name in os.listdir(f"/proc/{pid}/task")]
        except (OSError, ValueError):
            pass
    for thread in wanted:
        found = stat_of(f"/proc/{pid}/task/{thread}/stat")
        if found:
            times = read_text(f"/proc/{pid}/task/{thread}/schedstat").split()
            found.slices = int(times[2]) if len(times) > 2 and times[2].isdigit() else 0
            look.threads[thread] = found


def open_page(pid: int, number: int, look: Look) -> int | None:
    """Its descriptor; or why there is none."""
    path = f"/proc/{pid}/fd/{number}"
    if number < 0:
        look.why = "it could not make the memory in which it tells what it does (memfd_create)"
        return None
    try:
        if not os.readlink(path).startswith(NAME):
            look.why = CLOSED
            return None
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        look.why = CLOSED
    except PermissionError:
        look.why = "of another user, or not to be looked into: ask as its user"
    except OSError as problem:
        look.why = f"not to be looked into: {problem.strerror}"
    return None


def files_of(folder: Path) -> dict[int, RankFile]:
    """By rank."""
    if not folder.is_dir():
        raise Unusable(f"{folder} is no folder")
    try:
        found = {int(m[1]): RankFile(path) for path in folder.iterdir() if (m := RANK_FILE.fullmatch(path.name))}
    except OSError as problem:
        raise Unusable(f"{folder} cannot be read: {problem.strerror}") from None
    if not found:
        sessions = any(folder.glob("process-*.hwr"))
        why = "its processes have no world (sessions only), and so no ranks" if sessions else "there is no file rank-*.hwr"
        raise Unusable(f"{folder} holds no recording of ranks: {why}")
    return found
