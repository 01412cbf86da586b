"""What a study runs: a task is one start of a C program with one MPI at one place. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from headway.measure.contestants import Contestant
from headway.measure.hosts import Hosts

K, M = 1 << 10, 1 << 20
ALL_SIZES = tuple(1 << n for n in range(23))  # 1 B to 4 MB
QUICK_SIZES = (1, 64, 1 * K, 8 * K, 64 * K, 256 * K, 1 * M, 4 * M)
QUICK_SECONDS = 510  # the quick form begins nothing after that, so that it ends within ten minutes
DELAYS = "0.6,1.5,2,4,100us"  # times l0; 0 is l0 itself
RATES = {"100mbit": 100.0, "1gbit": 1000.0}
PROGRAMS = ("latency", "bandwidth", "overlap", "progress", "kernel", "memory")


@dataclass(frozen=True)
class Place:
    """Where both ranks are: on this machine, or on two simulated hosts."""

    name: str  # shm, or the rate: 1gbit
    hosts: Hosts | None = None

    @property
    def title(self) -> str:
        return (
            "shared memory"
            if self.hosts is None
            else f"2 hosts, {self.name.replace('mbit', ' Mbit/s').replace('gbit', ' Gbit/s')}"
        )


SHM = Place("shm")


def net(rate: str) -> Place:
    return Place(rate, Hosts(2, mbit_of(rate)))


def mbit_of(rate: str) -> float:
    for unit, factor in (("gbit", 1000.0), ("mbit", 1.0)):
        if rate.endswith(unit):
            return float(rate.removesuffix(unit)) * factor
    raise ValueError(rate)


@dataclass(frozen=True)
class Task:
    place: Place
    test: str  # what --only selects, behind the place
    program: str
    words: tuple[str, ...]
    seconds: float  # about how long it takes
    turn: int = 0
    page: bool = True  # takes the probe's page
    limit: float = 0  # its time limit; 0: from `seconds`
    ranks: int = 2
    per_host: int = 1  # ranks of each simulated host
    way: str = ""  # how it is made valid on this machine
    title: str = ""
    timed: bool = True  # its times count, so the simulated hosts say whether they may

    @property
    def name(self) -> str:
        return f"{self.place.name}/{self.test}"

    def key(self, contestant: Contestant) -> str:
        return f"{self.name}|{contestant.name}|{self.turn}"

    @property
    def settings(self) -> str:
        return " ".join((self.program, *self.words, *((self.way,) if self.way else ())))

    @property
    def time_limit(self) -> float:
        return self.limit or 30 + 6 * self.seconds


def of_sizes(sizes: tuple[int, ...]) -> tuple[str, str]:
    return ("--sizes", ",".join(map(str, sizes)))


def sizes_of(place: Place, quick: bool) -> tuple[int, ...]:
    """In the quick form no message of 4 MB crosses a wire: a third of its time went there."""
    if not quick:
        return ALL_SIZES
    return QUICK_SIZES[:-1] if place.hosts else QUICK_SIZES


def wire_seconds(place: Place, sizes: tuple[int, ...]) -> float:
    """Of one message of each size, one way."""
    return sum(s * 8 / (place.hosts.mbit * 1e6) + 1e-4 for s in sizes) if place.hosts else sum(s / 8e9 for s in sizes)


def paper_tasks(place: Place, quick: bool, turn: int) -> list[Task]:
    """The overlap and progress paper's, all sizes of a test in one start."""
    sizes = sizes_of(place, quick)
    step = 2000 if quick else 4000
    if place.hosts:
        step *= 4
    wire = wire_seconds(place, sizes)
    least = len(sizes) * step * 1e-6
    start = 0.7
    gentle = ("--buffers", "hot", "--batches", "2", "--batch-us", str(step))
    window = ("--most-bytes", str(8 * M if place.hosts else 64 * M), *gentle)
    bandwidth = start + 8 * wire * (8 if place.hosts else 16) / 4 + 4 * least
    tasks = [
        Task(place, "latency", "latency", (*of_sizes(sizes), *gentle), start + 6 * least + 30 * wire, turn),
    ]
    for mode in ("window", "bidir-sends", "bidir"):
        tasks.append(
            Task(
                place, f"bandwidth/{mode}", "bandwidth", ("--mode", mode, *of_sizes(sizes), *window), bandwidth, turn
            )
        )
    search = ("--searches", "1", "--step-us", str(step))
    for side in ("recv", "send"):
        tasks.append(
            Task(
                place,
                f"overlap/{side}",
                "overlap",
                (*of_sizes(sizes), *search, "--sides", side),
                start + 25 * least + 90 * wire,
                turn,
            )
        )
        tasks.append(
            Task(
                place,
                f"progress/{side}",
                "progress",
                (*of_sizes(sizes), *search, "--sides", side, "--delays", DELAYS),
                start + 20 * least + 60 * wire,
                turn,
            )
        )
    return tasks


def rounds(place: Place, quick: bool) -> int:
    return 1 if quick else 3 if place.hosts is None else 2
