"""Known behaviours, played over any MPI by programs/imitate.c: for the paper's figures, which today's MPIs
do not show any more, and to prove that a study finds what is there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable

import numpy as np

from headway.study import blocking
from headway.study.blocking import Blocking
from headway.study.plan import K, SHM, Task

PROGRAM = "kernel_imitated"
FREE = ("wait", "any", "test", "timeout")


@dataclass(frozen=True)
class Behaviour:
    """What blocks from which size on, and what lets it go beside the receiver's own wait."""

    call: str  # isend or wait
    bytes: int
    cumulative: bool = False
    free: str = "wait"
    timeout_us: int = 30_000
    timeout_of: int | None = None  # the only rank whose patience ends
    timeout_down: bool = False  # of two that wait for each other the higher one's ends
    transfer: bool = False  # the call lasts until its message has arrived, too
    noise: int = 0  # of a hundred calls so many lose their core for up to 3 ms
    late_us: int = 0  # each MPI_Recv of rank 1 lasts so much longer

    def text(self) -> str:
        words = [
            f"call={self.call}",
            f"bytes={self.bytes}",
            f"cumulative={int(self.cumulative)}",
            f"free={self.free}",
            f"timeout_us={self.timeout_us}",
        ]
        words += [f"timeout_of={self.timeout_of}"] if self.timeout_of is not None else []
        words += ["timeout_down=1"] if self.timeout_down else []
        words += [f"noise={self.noise}"] if self.noise else []
        words += [f"late_us={self.late_us}"] if self.late_us else []
        return ",".join(words + (["transfer=1"] if self.transfer else []))


# As the paper found them. Of MPICH's two senders, one goes on after a time that is not always the same.
MPICH_125 = Behaviour("isend", 60 * K, True, "test")
MPICH_125_BOTH = Behaviour("isend", 60 * K, True, "timeout", 5000, 1)
IBM = Behaviour("wait", 100 * K, False, "any")
FIGURES = (("mpich125", MPICH_125, (2, 3, 4, 8, 9)), ("mpich125", MPICH_125_BOTH, (5,)), ("ibm", IBM, (10, 11)))


def environment(what: Behaviour, page: Path) -> dict[str, str]:
    return {"IMITATE": what.text(), "IMITATE_PAGE": str(page)}


def figure_tasks() -> list[tuple[Task, Behaviour]]:
    found = []
    for name, what, numbers in FIGURES:
        for task in blocking.figure_tasks(SHM, what.bytes * 4 // 3, PROGRAM, numbers):
            number = task.test.split("/")[1]
            found.append((replace(task, test=f"imitation/{name}/{number}", limit=20), what))
    return found


def drawn(count: int, seed: int) -> list[Behaviour]:
    """Combinations by chance: every way of letting go comes about equally often."""
    random = np.random.default_rng(seed)
    found = []
    for i in range(count):
        size = int(np.exp(random.uniform(np.log(8 * K), np.log(1024 * K))))
        found.append(
            Behaviour(
                str(random.choice(("isend", "wait"))),
                size,
                bool(random.integers(2)),
                FREE[i % 4],
                int(random.integers(20_000, 60_000)),
            )
        )
    return found


def recover(take: Callable[[Task], dict]) -> Behaviour | None:
    """What a study finds of a behaviour that it does not know; None if nothing blocks. `take` makes one
    start and returns its entry."""
    for task in blocking.find_tasks(SHM, False, PROGRAM):
        call = task.test.split("/")[1]
        if call == blocking.LEFT:  # the layer copies every send
            continue
        found = blocking.read_find(take(task)["rows"], call)
        if found.size:
            return details(found, take)
    return None


def details(found: Blocking, take: Callable[[Task], dict]) -> Behaviour:
    for task in blocking.detail_tasks(SHM, found.call, found.size, PROGRAM):
        if not task.test.startswith("exchange"):
            blocking.read_detail(found, task.test, take(task)["rows"])
    free = next(
        (
            ours
            for ours, how in (("any", "other"), ("test", "test"), ("timeout", "timeout"))
            if found.released.get(how)
        ),
        "wait",
    )
    return Behaviour(
        {"s": "isend", "ws": "wait"}[found.call], found.size, bool(found.cumulative), free, int(found.timeout_us)
    )
