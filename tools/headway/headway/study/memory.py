"""What a higher limit costs in memory: the non-blocking paper's "not scalable since the total buffer space grows
with the number of processes", measured. Pure.

With the limit raised to twice the size from which sends wait, rank 0 of 16 and of 64 ranks (32, where so many do not
start) sends a message of that size to each peer while none of them is in MPI (programs/memory.c). Between the two lies
the slope, by which more peers are computed; it is said which is which.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from headway.measure.contestants import Contestant
from headway.study.plan import Place, Task
from headway.study.value import near

FEW, MANY = 16, (64, 32)  # ranks; the first of MANY that this machine can start
COMPUTED = (256, 4096)  # peers
HEADER = 1024  # an MPI's own, within its limit
HEAD = [
    "peers", "how it is known", "a process's memory now", "with the limit raised", "one message to each peer under way",
]  # fmt: skip


def options(contestant: Contestant, place: Place, size: int) -> dict[str, str]:
    """By which variables messages of that size become eager; none where no such option is known."""
    limit = str(size + HEADER)
    if contestant.library == "openmpi":
        way = "sm" if place.hosts is None else "tcp"
        names = ("eager_limit", "rndv_eager_limit", "max_send_size")
        return {f"OMPI_MCA_btl_{way}_{name}": limit for name in names}
    if contestant.library == "mpich" and "I_MPI_ROOT" not in contestant.environment:
        if place.hosts is None:
            return {"MPIR_CVAR_CH4_IPC_CMA_P2P_THRESHOLD": limit}
        if contestant.environment.get("MPIR_CVAR_CH4_NETMOD") == "ucx":
            return {"UCX_RNDV_THRESH": limit}
        return {"MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD": limit, "FI_OFI_RXM_BUFFER_SIZE": limit}
    return {}


def task(place: Place, size: int, ranks: int, raised: dict[str, str]) -> Task:
    """On two hosts the peers are those on the other one."""
    first_peer = 1 if place.hosts is None else ranks // 2
    words = ("--size", str(size), "--from", str(first_peer), "--sockets", "1" if place.hosts else "0")
    return Task(
        place, f"memory/{'raised' if raised else 'now'}/{ranks}", "memory", words, 2 + ranks / 20, page=False,
        limit=60, ranks=ranks, per_host=max(1, ranks // 2), way=" ".join(f"{k}={v}" for k, v in raised.items()),
        timed=False,
    )  # fmt: skip


def held_of(row: dict) -> float:
    """Bytes that the messages under way take, in all processes together."""
    return float(np.median(row["samples"]))


def holds(rows: list[dict]) -> bool:
    """Whether sends of that size do not wait now."""
    return bool(rows) and rows[-1]["extra"]["done"] == rows[-1]["extra"]["peers"]


@dataclass
class Memory:
    """Of one MPI at one place. By number of ranks: what programs/memory.c said."""

    size: int = 0
    option: str = ""  # as the user sets it
    now: dict[int, dict] = field(default_factory=dict)
    raised: dict[int, dict] = field(default_factory=dict)

    @property
    def measured(self) -> bool:
        """Two numbers of ranks, with and without: else there is no slope."""
        return len(self.ranks) > 1

    @property
    def ranks(self) -> list[int]:
        return sorted(n for n in self.now.keys() & self.raised.keys() if holds([self.raised[n]]))

    def line(self, peers: int, which: dict[int, dict], value: str) -> float:
        """What `value` is with so many peers, on the line through what was measured."""

        def point(ranks: int) -> tuple[float, float]:
            row = which[ranks]
            held = held_of(row) if value == "held" else row["extra"][value]
            # Memory before any message grows with ranks, messages under way with peers.
            return (row["extra"]["peers"] if value == "held" else ranks - 1), held

        (x0, y0), (x1, y1) = map(point, (self.ranks[0], self.ranks[-1]))
        return max(0.0, y0 + (y1 - y0) / (x1 - x0) * (peers - x0))

    @property
    def each(self) -> float:
        """Bytes that one message under way takes."""
        few, many = (self.raised[n] for n in (self.ranks[0], self.ranks[-1]))
        return (held_of(many) - held_of(few)) / (many["extra"]["peers"] - few["extra"]["peers"])

    def at(self, peers: int) -> tuple[float, float, float]:
        """Memory now, with the limit raised, and of messages under way."""
        return (
            self.line(peers, self.now, "standing"), self.line(peers, self.raised, "standing"),
            self.line(peers, self.raised, "held"),
        )  # fmt: skip


def read(entries: dict[str, dict]) -> Memory | None:
    """`entries`: by test."""
    found = Memory()
    for test, entry in entries.items():
        _, which, ranks = test.split("/")
        found.option = entry.get("way", "") or found.option
        if entry["failure"] or not entry["rows"]:
            continue
        row = entry["rows"][-1]
        found.size = row["size"]
        getattr(found, which)[int(ranks)] = row
    return found if found.option or found.raised else None


def numbers(memory: Memory | None) -> list[list[str]]:
    if not memory or not memory.measured:
        return []
    rows = []
    for ranks in memory.ranks:
        now, raised = memory.now[ranks]["extra"], memory.raised[ranks]["extra"]
        values = (now["standing"], raised["standing"], held_of(memory.raised[ranks]))
        rows.append([f"{raised['peers']} of {ranks} ranks", "measured", *(near(round(v)) for v in values)])
    return rows + [[f"{n:,}", "computed", *(near(round(v)) for v in memory.at(n))] for n in COMPUTED]


def words(memory: Memory | None, size: int) -> str:
    """What raising the limit to `size` cost where it was tried; an empty text where it was not."""
    if not memory or memory.size != size:
        return ""
    tried = f"Raising the limit to {near(size)} ({memory.option})"
    if not memory.measured:
        few = memory.raised.get(FEW)
        if few and not holds([few]):
            done, peers = few["extra"]["done"], few["extra"]["peers"]
            return f"{tried} does not free it: {peers - done} of {peers} sends of that size still waited."
        return ""
    told = ", ".join(f"{near(round(memory.at(n)[2]))} with {n:,}" for n in COMPUTED)
    ends = [memory.raised[n] for n in (memory.ranks[0], memory.ranks[-1])]
    few, many = (near(round(held_of(row))) for row in ends)
    peers = [row["extra"]["peers"] for row in ends]
    return (
        f"{tried} frees it, and takes memory: one message to each peer under way holds {few} with {peers[0]} peers and "
        f"{many} with {peers[1]} (measured, {near(round(memory.each))} each); by that slope {told} peers (computed)."
    )
