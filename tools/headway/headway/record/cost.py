"""What a recording took of the run that it tells of, as each rank's file says at its end (docs/recording-format.md).

A rank's share is its calls, times what recording one of them takes, and what was timed when it was done (blocks for the
file, looks at the run delay), of its time from MPI_Init to its end. The layer measures what a call takes when MPI has begun,
in calls without MPI: one behind the other, whose warm caches make that the least that it takes, and behind a walk through
other memory, which is told as the most, though no bound (older recordings have the least alone). A rank that was killed says nothing. Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headway.record import fields
from headway.record.words import count_text, time_text

if TYPE_CHECKING:
    from headway.record.model import Run

MOST_CALL = 10**9  # ps
LEAST_SHARE = 0.0001  # that is told in digits


@dataclass(frozen=True)
class Cost:
    """Of one rank."""

    calls: int
    call: float  # ns of one, at least
    timed: int  # ns beside
    time: int  # ns of which it is
    call_at_most: float

    @property
    def share(self) -> float:
        return (self.calls * self.call + self.timed) / self.time

    @property
    def share_at_most(self) -> float:
        return (self.calls * self.call_at_most + self.timed) / self.time


def read(end: dict[str, Any]) -> Cost | None:
    """Of a file's last block; None where it says nothing of it. BadRecording if that cannot be."""
    told = end.get("cost")
    if told is None:
        return None
    told = fields.object_of(told)
    calls, timed, time = (fields.integer(told, name, 0, fields.MOST_NS, 0) for name in ("calls", "timed", "time"))
    call = fields.integer(told, "call", 0, MOST_CALL, 0)
    most_of_call = max(call, fields.integer(told, "call_at_most", 0, MOST_CALL, 0))
    return Cost(calls, call / 1000, timed, time, most_of_call / 1000) if call and time else None


def between(least: str, most: str, unit: str) -> str:
    return f"{least} {unit}" if least == most else f"{least} to {most} {unit}"


def percent(share: float) -> str:
    return f"{100 * share:.2f}" if share >= LEAST_SHARE else "less than 0.01"


def most(run: Run) -> tuple[int, Cost] | None:
    """The rank of which it took the largest share, and what it took there; None where no rank says it."""
    known = [(rank.rank, rank.cost) for rank in run.ranks if rank.cost is not None]
    return max(known, key=lambda one: one[1].share) if known else None


def words(run: Run) -> list[str]:
    found = most(run)
    if found is None:
        return []
    rank, cost = found
    share = between(percent(cost.share), percent(cost.share_at_most), "%")
    alone = "of its time" if len(run.ranks) == 1 else f"of a rank's time, most of rank {rank}'s"
    calls = "1 call" if cost.calls == 1 else f"{count_text(cost.calls)} calls"
    call = between(f"{cost.call:.0f}", f"{cost.call_at_most:.0f}", "ns")
    parts = f"{calls} of {call}, and {time_text(cost.timed)} for its files"
    return [f"the recording itself took {share} {alone}: {parts}"]


def as_json(run: Run) -> dict[str, Any] | None:
    found = most(run)
    if found is None:
        return None
    rank, cost = found
    return {
        "rank": rank, "share": cost.share, "share_at_most": cost.share_at_most, "calls": cost.calls, "call": cost.call,
        "call_at_most": cost.call_at_most, "timed": cost.timed, "time": cost.time,
    }  # fmt: skip
