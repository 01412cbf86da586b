"""A run as its recording tells it: ranks with their events, on one clock, and what belongs together across ranks.

Plain data: `reading` fills it in, everything else only reads. Times are ns (int64) since the run's start on one clock
for all ranks. Invariant: all arrays of a rank have the length of its `events` and their order (the order in which
calls ended, thread by thread mixed as the blocks were).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Sequence

import numpy as np

from headway.record.columns import largest
from headway.record.cost import Cost

EVENT = np.dtype(
    [
        ("kind", "<u2"),
        ("thread", "u1"),
        ("flags", "u1"),
        ("site", "<u4"),
        ("begin", "<u8"),
        ("end", "<u8"),
        ("comm", "<u4"),
        ("peer", "<i4"),
        ("tag", "<i4"),
        ("request", "<u4"),
        ("bytes", "<u8"),
    ]
)  # docs/recording-format.md

# Flags.
SEND, RECEIVE, COLLECTIVE, ANY_SOURCE, ANY_TAG, IN_VAIN, FAILED, PARTITIONED = 1, 2, 4, 8, 16, 32, 64, 128
# Kinds that are no function.
COMPLETION, CORE_TAKEN, GAP = 0x8000, 0x8001, 0x8002
LIBRARY = range(0x8010, 0x8020)  # what our library does by itself
FAULT, RELEASE, PREFETCH, HELP = LIBRARY[:4]
WORLD, SELF = 1, 2
NONE, ANY = -1, -2  # of peer and tag
KINDS = 1 << 12  # the tag of a persistent collective's start: its init function, and which one it is times this

FAMILIES = (
    "init", "finalize", "send", "isend", "recv", "irecv", "sendrecv", "start", "wait", "test", "probe", "coll", "icoll",
    "comm", "rma", "file", "other",
)  # fmt: skip


@dataclass(frozen=True)
class Site:
    """Where a call stands: a line where it is known, else an offset in a file."""

    module: str = ""
    offset: int = 0
    file: str = ""
    line: int = 0
    function: str = ""

    @property
    def text(self) -> str:
        if self.file:
            return f"{self.file.rsplit('/', 1)[-1]}:{self.line}"
        return f"{self.module.rsplit('/', 1)[-1] or 'unknown'}+0x{self.offset:x}"


@dataclass(frozen=True)
class Comm:
    """A communicator as one rank numbers it."""

    id: int
    parent: int
    call: str
    order: int  # of its creation on the parent
    rank: int  # of this process
    members: np.ndarray  # world ranks, by its own ranks
    name: str = ""
    remote: np.ndarray | None = None  # of an intercommunicator: the other group, in which peers are counted


@dataclass
class Rank:
    rank: int  # of the world
    host: str
    boot: str  # ranks with the same one have one clock
    header: dict
    events: np.ndarray  # of EVENT
    begin: np.ndarray  # int64, ns on the run's clock
    end: np.ndarray
    functions: list[str]  # by kind
    families: list[str]  # by kind
    sites: dict[int, Site] = field(default_factory=dict)
    comms: dict[int, Comm] = field(default_factory=dict)
    finalized: bool = False
    problem: str = ""  # what of the file could not be read
    threads: dict[int, str] = field(default_factory=dict)  # names of those that are not the program's
    cost: Cost | None = None  # what recording took of it, where its file says that

    def family(self, kind: int) -> str:
        return self.families[kind] if kind < len(self.families) else ""

    def name(self, kind: int) -> str:
        return self.functions[kind] if kind < len(self.functions) else f"0x{kind:x}"


MOST_CORES = 1 << 16


def cores(header: dict) -> set[int]:
    """On which a rank might run, by its header; empty where that says nothing, or what nobody can mean."""
    found: set[int] = set()
    for part in str(header.get("cores", "")).split(","):
        first, _, last = part.partition("-")
        last = last or first
        if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last) < MOST_CORES):
            return set()
        found.update(range(int(first), int(last) + 1))
    return found


# One a message that was received; ranks of the world, indices into events. Only `left` may be -1: a send that nobody
# waited for.
MESSAGE = np.dtype(
    [
        ("source", "<i4"),
        ("target", "<i4"),
        ("sent", "<i8"),  # event of the send (Send, Isend, Start) at the source
        ("left", "<i8"),  # event at the source in whose call the send was completed: the send itself if it blocks
        ("posted", "<i8"),  # event of the receive at the target
        ("came", "<i8"),  # event at the target in whose call it was completed
        ("bytes", "<u8"),
        ("tag", "<i4"),
        ("comm", "<u4"),  # into Run.comms
    ]
)


@dataclass
class Collective:
    """One collective operation, of all ranks that were seen in it."""

    comm: int  # into Run.comms
    order: int  # on that communicator
    name: str
    root: int  # world rank, -1 for none
    ranks: np.ndarray  # world ranks
    events: np.ndarray  # of each rank, the call that begins it
    ends: np.ndarray  # of each rank, the event in whose call it was completed: the same for blocking ones; -1 unknown


@dataclass
class GlobalComm:
    members: np.ndarray  # world ranks, by its own ranks; of an intercommunicator: first one group, then the other
    name: str
    call: str
    inter: bool = False


@dataclass
class Run:
    folder: str
    ranks: list[Rank]  # by world rank; ranks whose file is missing are not there
    comms: list[GlobalComm] = field(default_factory=list)
    messages: np.ndarray = field(default_factory=lambda: np.zeros(0, MESSAGE))
    collectives: Sequence[Collective] = field(default_factory=list)  # columns, in truth: see joining.Collectives
    notes: list[str] = field(default_factory=list)  # what a user must know of it: cut short, unmatched, clocks
    spill: Path | None = None  # a folder for what does not fit into memory: columns lie in files there

    @property
    def duration(self) -> int:
        """ns, from the first begin to the last end."""
        return max((largest(r.end) for r in self.ranks), default=0)

    @property
    def events(self) -> int:
        return sum(len(rank.events) for rank in self.ranks)


def places(ranks: list[Rank], numbers: np.ndarray) -> np.ndarray:
    """Where these ranks of the world stand among those that are there; -1 for others."""
    world = np.array([rank.rank for rank in ranks], np.int64)
    order = np.argsort(world, kind="stable")
    numbers = np.asarray(numbers, np.int64)
    if not len(world):
        return np.full(len(numbers), -1, np.int64)
    at = np.minimum(np.searchsorted(world[order], numbers), len(world) - 1)
    return np.where(world[order][at] == numbers, order[at], -1)
