"""What a rank does at a moment: the classes of waiting, their names and colours, the same in all tools.

The colours are told apart by people with each of the three kinds of colour blindness (held by a test).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.record.model import Rank

(
    COMPUTING,
    IN_MPI,
    LATE_SENDER,
    LATE_RECEIVER,
    LATE_PARTICIPANT,
    LATE_ROOT,
    EARLY_ROOT,
    TRANSFER,
    MISSING_PROGRESS,
    NO_CORE,
    LOCK,
    REST,
    OFF,
) = range(13)


@dataclass(frozen=True)
class Class:
    name: str
    colour: str
    meaning: str


CLASSES = (
    Class("computing", "#dfe6ec", "outside of MPI"),
    Class("in MPI", "#b0b8bf", "in an MPI call that does not wait, or for less than half of its time"),
    Class("late sender", "#d55e00", "a receive waits: its send began later"),
    Class("late receiver", "#f2b04c", "a send waits: its receive was posted later"),
    Class("late participant", "#0072b2", "a collective waits for the rank that came last"),
    Class("late root", "#6cc3f2", "a collective waits for its root"),
    Class("early root", "#2a1a78", "the root of a collective waits for the others"),
    Class("transfer", "#1aa37a", "both sides are there, and the data move"),
    Class("missing progress", "#b42c7c", "the data could have moved before, and did not"),
    Class("core taken", "#000000", "the rank could have gone on and had no core"),
    Class("lock", "#f0e442", "another thread of the rank was in MPI"),
    Class("rest", "#7d1f45", "a wait of none of these kinds"),
    Class("not recorded", "#ffffff", "recording was off"),
)
COUNT = len(CLASSES)
NAMES = tuple(c.name for c in CLASSES)
WAITING = range(LATE_SENDER, REST + 1)


def fitting(rank: Rank, given: np.ndarray | None) -> np.ndarray | None:
    """These classes, of as many events as the rank has."""
    if given is not None and len(given) != len(rank.events):
        raise ValueError(f"rank {rank.rank}: {len(given)} classes for {len(rank.events)} events")
    return given


def class_of(rank: Rank, given: np.ndarray | None) -> np.ndarray:
    """By event; what nobody told is in MPI."""
    if given is None:
        return np.full(len(rank.events), IN_MPI, np.uint8)
    given = np.asarray(fitting(rank, given))
    return np.where((given > REST) | (given == COMPUTING), IN_MPI, given).astype(np.uint8)
