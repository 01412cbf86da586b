"""What bench/early_release.py runs: clusters, cases, and what a simple model says of them.

All times are seconds of the cluster that is imitated, before it is slowed (dilation).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from clusters import CLOCK, Hosts, Model, paper_cluster, seconds

RANKS_PER_HOST = 2
SHARES = (0.10, 0.20, 0.30, 0.50, 0.70)
# Table 1 of the paper.
SIZES = {
    "pes": {"A": 5120, "B": 10240, "C": 20480},
    "nbody": {"A": 10240, "B": 20480, "C": 40960},
    "m3": {"A": 1024, "B": 2048, "C": 4096},
}
# As in the programs: cycles for a point, a pair, a product.
CYCLES = {"pes": 81, "nbody": 262, "m3": 12}
CYCLES_PER_NUMBER = 150  # of m3's master
# The paper's best gains (section 4.2), and what is asked for at the best share.
ASKED = {"pes": 1.10, "nbody": 1.32, "m3": 1.60}


def compute_seconds(program: str, size: int, rows: int, ranks: int, mhz: float) -> float:
    """Of a rank that computes, in one iteration."""
    items = {
        "pes": size * rows / ranks,
        "nbody": size * size / ranks,
        "m3": size**3 / max(1, ranks - 1),
    }[program]
    return items * CYCLES[program] / (mhz * 1e6)


def model(
    program: str, size: int, rows: int, ranks: int, mhz: float, hosts: Hosts, cycles: int = CYCLES_PER_NUMBER
) -> Model:
    compute = compute_seconds(program, size, rows, ranks, mhz)
    far = ranks - RANKS_PER_HOST  # ranks on other hosts
    if program == "pes":
        wire = seconds(2 * size * 8, hosts.mbit)  # a host's first row and its last, both ways
        # The upper ghost row is needed at once; the lower one may come until the end.
        return Model(compute, wire, (compute + wire) / max(compute, compute / 2 + wire), compute + wire)
    if program == "nbody":
        block = size / ranks * 56
        wire = seconds(RANKS_PER_HOST * far * block, hosts.mbit)
        inside = hosts.per_switch * RANKS_PER_HOST
        if hosts.per_switch and ranks > inside:
            wire = max(wire, seconds(inside * (ranks - inside) * block, hosts.uplink_mbit))
        return Model(compute, wire, (compute + wire) / max(compute, wire), compute + wire)
    one_way = seconds(size * size * 8 * far / (ranks - 1), hosts.mbit)
    slice_time = one_way / max(1, far)
    make = size * size * cycles / (mhz * 1e6)
    # The master goes on when the last slave begins to send; meanwhile it may make the next matrix.
    ours = make + one_way + compute + slice_time
    return Model(
        compute, 2 * one_way, ours / (one_way - slice_time + max(compute, make)), ours
    )


@dataclass
class Case:
    """One program on one cluster. `pace` 0: to be found so that the baseline has `share`."""

    name: str
    program: str
    ranks: int
    size: int
    rows: int
    thin: int
    hosts: Hosts
    pace: float = 0
    share: float = 0
    make: int = CYCLES_PER_NUMBER
    group: str = ""
    notes: list[str] = field(default_factory=list)

    def arguments(self, pace: float, iterations: int, warmup: int) -> list[str]:
        words = ["--size", str(self.size), "--pace", f"{pace:.6g}"]
        words += ["--iterations", str(iterations), "--warmup", str(warmup)]
        if self.program == "pes" and self.rows != self.size:
            words += ["--rows", str(self.rows)]
        if self.program == "pes":
            words += ["--alone", "0"]
        if self.program == "m3":
            words += ["--make", str(self.make)]
        if self.thin > 1:
            words += ["--thin", str(self.thin)]
        return words

    def settings(self) -> str:
        """What must be alike for results to stand together."""
        words = [*self.hosts.words(), *self.arguments(0, 0, 0)]
        return " ".join(words)

    def model_at(self, pace: float) -> Model:
        return model(self.program, self.size, self.rows, self.ranks, pace, self.hosts, self.make)

    def pace_for(self, compute: float) -> float:
        """The clock at which a rank computes for so long."""
        return compute_seconds(self.program, self.size, self.rows, self.ranks, 1.0) / compute

    def iteration_estimate(self, pace: float) -> float:
        """Of the slowed cluster."""
        return self.model_at(pace).off * self.hosts.dilation


# By the share of communication: so much that two cores are idle for a third of the time.
SLOWED = {
    "pes": {0.10: 2, 0.20: 4, 0.30: 4, 0.50: 8, 0.70: 12},
    "nbody": {0.10: 1, 0.20: 2, 0.30: 2, 0.50: 4, 0.70: 6},
    "m3": {0.10: 1, 0.20: 1, 0.30: 2, 0.50: 2, 0.70: 4},
}


def sweep_cases(quick: bool) -> list[Case]:
    """Way 2: the pace is chosen for the share."""
    cases = []
    for program in ("pes", "nbody", "m3"):
        for ranks in (8,) if quick else (8, 16):
            for share in (0.30, 0.50) if quick else SHARES:
                size = {"pes": 5120, "nbody": 10240, "m3": 384}[program]
                cases.append(
                    Case(
                        name=f"sweep/{program}/{ranks}/{share * 100:.0f}",
                        group="sweep",
                        program=program,
                        ranks=ranks,
                        size=size,
                        rows=16 * ranks if program == "pes" else size,
                        thin={"pes": 1, "nbody": 32, "m3": 4}[program],
                        hosts=Hosts(ranks // 2, 100, SLOWED[program][share] * ranks // 8),
                        make=0,  # the share is to be communication alone
                        share=share,
                    )
                )
    return cases


# How much each cluster is slowed, by ranks and program: until two cores are idle for a third.
DILATION = {
    ("vplus", "pes"): {16: 2, 32: 4, 64: 12, 128: 48},
    ("vplus", "nbody"): {16: 1, 32: 2, 64: 8, 128: 16},
    ("vplus", "m3"): {16: 1, 32: 2, 64: 4, 128: 8},
    ("v2", "pes"): {16: 6, 32: 12, 64: 32, 128: 96},
    ("v2", "nbody"): {16: 4, 32: 8, 64: 16, 128: 64},
    ("v2", "m3"): {16: 4, 32: 4, 64: 12, 128: 24},
}


def hosts_of(cluster: str, ranks: int, program: str) -> Hosts:
    return paper_cluster(cluster, ranks // RANKS_PER_HOST, DILATION[cluster, program][ranks])


def physical_cases(quick: bool, with_128: bool) -> list[Case]:
    """Way 1: links, uplinks and clock as they were."""
    which = [(16, "A"), (32, "A"), (64, "A"), (16, "B"), (32, "B")]
    if quick:
        which = [(16, "A")]
    elif with_128:
        which.append((128, "A"))
    cases = []
    for cluster in ("vplus",) if quick else ("vplus", "v2"):
        for program in ("pes", "nbody", "m3"):
            for ranks, letter in which:
                size = SIZES[program][letter]
                cases.append(
                    Case(
                        name=f"physical/{cluster}/{program}/{ranks}/{letter}",
                        group="physical",
                        program=program,
                        ranks=ranks,
                        size=size,
                        rows=size,
                        thin={"pes": 1, "nbody": 32, "m3": 32}[program],
                        hosts=hosts_of(cluster, ranks, program),
                        pace=CLOCK[cluster],
                    )
                )
    return cases


@dataclass
class Stream:
    """bench/stream_consumer.c with one size and one way to touch."""

    program = "stream_consumer"

    name: str
    place: str  # shm, or a rate of two simulated hosts
    size: int
    touch: str
    messages: int
    rounds: int = 1
    group: str = "stream"

    def settings(self) -> str:
        return f"{self.place} {self.size} {self.touch}"

    @property
    def wire(self) -> float:
        """Seconds; 0 where there is none."""
        return seconds(self.size, float(self.place)) if self.place != "shm" else 0.0


def streams(quick: bool) -> list[Stream]:
    found = []

    def add(place: str, kb: float, touch: str, rounds: int = 1) -> None:
        size = int(kb * 1024)
        once = seconds(size, float(place)) if place != "shm" else size / 5e9
        room = 1.5 if quick else 4.0  # seconds of messages in a run
        most = 2000 if touch == "once" else 200
        messages = int(min(most, max(12, room / (2 * once + 100e-6))))
        found.append(Stream(f"stream/{place}/{touch}/{kb:g}K", place, size, touch, messages, rounds))

    places = ("1000", "shm") if quick else ("1000", "100", "shm")
    for place in places:
        for kb in (256, 1024) if quick else (64, 128, 256, 1024, 4096):
            add(place, kb, "order")
        for kb in (1024,) if quick else (256, 1024):
            add(place, kb, "random")
            add(place, kb, "reverse")
        if place == "100":
            continue
        for kb in (1024,) if quick else (1, 8, 64, 256, 1024):
            add(place, kb, "once", 1 if quick else 3)
    return found
