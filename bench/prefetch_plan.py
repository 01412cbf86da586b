"""What bench/prefetch.py runs: table 2 of the prefetching paper on its cluster, a rank a host, and a
sender that is ready early; and what the paper and a simple model say of them.

All times are seconds of the cluster that is imitated, before it is slowed (dilation).
"""

from __future__ import annotations

from dataclasses import dataclass

from clusters import CLOCK, Hosts, Model, paper_cluster, seconds
from prefetch_bounds import IS_KEYS, PARTICLE, PARTICLES, best_seconds

PACE = CLOCK["vplus"]
# Table 2: iterations (table 1), and seconds of all of them, without and with prefetching.
ITERATIONS = {"pes": 2000, "m3": 400, "nbody": 200, "ft": 20, "is": 10}
RUNTIMES = {
    "pes": {8: (737, 735), 16: (387, 385), 32: (207.5, 204.1), 64: (117.0, 114.0)},
    "m3": {8: (1491, 1339), 16: (1142, 939), 32: (793, 675), 64: (738, 593)},
    "nbody": {8: (944, 950), 16: (551, 554), 32: (483, 447), 64: (336, 312)},
    "ft": {8: (2451, 2382), 16: (1378, 1296), 32: (1475, 1305)},
    "is": {8: (130.7, 133.0), 16: (91.0, 81.2), 32: (143.9, 127.0)},
}
# What is asked for: the paper's gains (off / on - 1), and nothing lost where it lost.
ASKED = {
    "pes": {8: 0.003, 16: 0.005, 32: 0.017, 64: 0.026},
    "m3": {8: 0.11, 16: 0.22, 32: 0.18, 64: 0.24},
    "nbody": {32: 0.08, 64: 0.08},
    "ft": {8: 0.029, 16: 0.063, 32: 0.13},
    "is": {8: 0.0, 16: 0.12, 32: 0.13},
}
ASKED_HIDDEN = 0.5
NOTHING_LOST = 0.995
# Bytes that each rank sends to each other one, times the square of ranks; N-Body: times ranks.
EXCHANGED = {"nbody": PARTICLES * PARTICLE, "ft": 512**3 * 16, "is": IS_KEYS * 4}
# So much that two cores are idle for a third of the time; as with early release, where known. FT
# takes one to two minutes an iteration, with little to do meanwhile where there are few ranks: there it
# runs faster, at the price that our own costs count as many times as much.
DILATION = {
    "pes": {8: 1, 16: 2, 32: 6, 64: 32},
    "m3": {8: 1, 16: 1, 32: 3, 64: 4},
    "nbody": {32: 6, 64: 12},
    "ft": {8: 0.25, 16: 0.4, 32: 1},
    "is": {8: 1, 16: 4, 32: 4},
}
THIN = {"pes": 1, "m3": 32, "nbody": 32, "ft": 64, "is": 4}
WORDS = {
    "pes": ["--size", "5120", "--form", "collective", "--alone", "0"],
    "m3": ["--size", "1024", "--form", "collective"],
    "nbody": ["--size", "10240", "--form", "collective"],
    "ft": ["--class", "C"],
    "is": ["--class", "C"],
}
# Three messages from one buffer, then the fourth is asked for, and writes to the buffer are followed. With
# FT (class A, 8 ranks) nothing came early in the fifth time step, and first pages did in the sixth.
LEARNING = 6
# A message of N-Body with 64 ranks is two or three pages, and each page learns by itself how long it must be still:
# after six time steps each further one was still a tenth shorter than the one before.
# PES exchanges two buffers in turn, so it takes twice as many iterations until each has been asked for, and followed,
# and its pauses are known. FT with 32 ranks gained 12.0 % in the seventh time step and 13.5 in the eighth.
# Neighbours in PES wait for one another alone: what changes at one rank moves on by a rank an iteration, so with many
# it takes as many until all are in step (32 ranks: 97.5 ms after 6, 95.4 after 20, 93.8 after 60).
LEARNING_LONGER = ({("nbody", 64): 14, ("ft", 32): 10, ("pes", 8): 14, ("pes", 16): 16}
                   | {("pes", ranks): 32 for ranks in (32, 64)})
LONG = 5.0  # seconds of an iteration: then few are measured


@dataclass(frozen=True)
class Paper:
    """A row of table 2, seconds an iteration. What is lost is the time outside computation."""

    off: float
    on: float
    compute: float

    @property
    def gain(self) -> float:
        return self.off / self.on - 1

    @property
    def share(self) -> float:
        return (self.off - self.compute) / self.off

    @property
    def hidden(self) -> float:
        return (self.off - self.on) / (self.off - self.compute)


def wire_seconds(program: str, ranks: int, hosts: Hosts) -> float:
    """All bytes through the busiest link: a host's card, or an uplink."""
    if program == "pes":
        return seconds(2 * 5120 * 8, hosts.mbit)
    if program == "m3":
        return seconds(2 * 1024 * 1024 * 8 * (ranks - 1) / ranks, hosts.mbit)
    pair = EXCHANGED[program] / (ranks if program == "nbody" else ranks**2)
    inside = hosts.per_switch
    uplink = inside * max(0, ranks - inside) * pair
    return max(seconds((ranks - 1) * pair, hosts.mbit), seconds(uplink, hosts.uplink_mbit))


def compute_seconds(program: str, ranks: int) -> float:
    """On the paper's nodes: what the time of 8 of them leaves."""
    off8 = RUNTIMES[program][8][0] / ITERATIONS[program]
    return (off8 - wire_seconds(program, 8, paper_cluster("vplus", 8, 1))) * 8 / ranks


def paper_row(program: str, ranks: int) -> Paper:
    off, on = (runtime / ITERATIONS[program] for runtime in RUNTIMES[program][ranks])
    return Paper(off, on, compute_seconds(program, ranks))


@dataclass(frozen=True)
class Case:
    """One program on vplus. `pace` 0: to be found so that the baseline has `share`."""

    name: str
    program: str
    ranks: int
    hosts: Hosts
    pace: float = PACE
    share: float = 0

    @property
    def group(self) -> str:
        return self.name.split("/")[0]

    @property
    def learning(self) -> int:
        """Iterations before those that are measured."""
        return LEARNING_LONGER.get((self.program, self.ranks), LEARNING)

    def arguments(self, pace: float, iterations: int, warmup: int) -> list[str]:
        words = [*WORDS[self.program], "--pace", f"{pace:.6g}"]
        words += ["--iterations", str(iterations), "--warmup", str(warmup)]
        return words + (["--thin", str(THIN[self.program])] if THIN[self.program] > 1 else [])

    def settings(self) -> str:
        """What must be alike for results to stand together."""
        return " ".join([*self.hosts.words(), *self.arguments(0, 0, 0)])

    def model_at(self, pace: float) -> Model:
        compute = compute_seconds(self.program, self.ranks) * PACE / pace
        wire = wire_seconds(self.program, self.ranks, self.hosts)
        best = best_seconds(self.program, self.ranks, compute, wire)
        return Model(compute, wire, (compute + wire) / best, compute + wire)

    def pace_for(self, compute: float) -> float:
        """The clock at which a rank computes for so long."""
        return PACE * compute_seconds(self.program, self.ranks) / compute

    def iteration_estimate(self, pace: float) -> float:
        """Of the slowed cluster."""
        return self.model_at(pace).off * self.hosts.dilation


def hosts_of(program: str, ranks: int) -> Hosts:
    return paper_cluster("vplus", ranks, DILATION[program][ranks])


def physical_cases(quick: bool) -> list[Case]:
    """Links, uplinks and clock as they were, a rank a host."""
    programs = ("pes", "m3") if quick else ("pes", "m3", "ft", "is")
    return [
        Case(f"physical/{program}/{ranks}", program, ranks, hosts_of(program, ranks))
        for program in programs
        for ranks in RUNTIMES[program]
        if ranks == 8 or not quick
    ]


def matched_cases(quick: bool) -> list[Case]:
    """The baseline is to lose the same share of its time as the paper's, whose TCP lost more."""
    return [
        Case(f"matched/nbody/{ranks}", "nbody", ranks, hosts_of("nbody", ranks), 0, share)
        for ranks, share in (() if quick else ((32, 0.516), (64, 0.652)))
    ]


KINDS = {
    "rewrite-0": "ready early",
    "rewrite-10": "a tenth written again",
    "rewrite-100": "all written again",
    "at-once": "sent at once",
    "elsewhere": "never from the same place",
}


# Nothing can come early in these. Two runs differ by 2 percent, more than they may lose: three rounds are measured.
NOTHING_TO_GAIN = ("rewrite-100", "at-once", "elsewhere")


@dataclass(frozen=True)
class Sender:
    """bench/early_sender.c on two hosts. `ready`: it computes for as long as its message needs."""

    name: str
    mbit: float
    size: int
    kind: str
    messages: int
    rounds: int

    program = "early_sender"
    warmup = 10

    @property
    def wire(self) -> float:
        return seconds(self.size, self.mbit)

    @property
    def must_lose_nothing(self) -> bool:
        return self.kind in NOTHING_TO_GAIN

    @property
    def compute_us(self) -> float:
        return self.wire * 1e6 if self.kind.startswith("rewrite-") else 0.0

    @property
    def asked(self) -> float | None:
        if self.must_lose_nothing:
            return NOTHING_LOST
        return 1.6 if (self.kind, self.mbit, self.size) == ("rewrite-0", 100, 1 << 20) else None

    @property
    def hosts(self) -> Hosts:
        return Hosts(2, self.mbit)

    def words(self) -> list[str]:
        words = ["--size", str(self.size), "--compute-us", f"{self.compute_us:.1f}"]
        words += ["--messages", str(self.messages), "--warmup", str(self.warmup)]
        if self.kind.startswith("rewrite-"):
            words += ["--rewrite", self.kind.removeprefix("rewrite-")]
        if self.kind == "elsewhere":
            words += ["--buffers", str(self.messages + self.warmup)]
        return words

    def settings(self) -> str:
        return f"{self.mbit:g} {self.size} {self.kind}"


def messages_of(wire: float, quick: bool, kind: str) -> int:
    """Of one run, by the time that they may take."""
    room = 1.5 if quick else 4.0
    most = 200 if kind == "elsewhere" else 400  # each in memory of its own
    return int(min(most, max(12, room / (2 * wire + 200e-6))))


def senders(quick: bool) -> list[Sender]:
    found = []
    for mbit in (100, 1000):
        for kb in (256, 1024) if quick else (64, 256, 1024):
            for kind in ("rewrite-0", "at-once") if quick else KINDS:
                size = kb * 1024
                messages = messages_of(seconds(size, mbit), quick, kind)
                rounds = 3 if kind in NOTHING_TO_GAIN and not quick else 1
                found.append(Sender(f"sender/{mbit}/{kb}K/{kind}", mbit, size, kind, messages, rounds))
    return found
