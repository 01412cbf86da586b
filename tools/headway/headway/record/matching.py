"""What belongs together across ranks: communicators, messages, collectives. Needs no common clock.

Of one communicator, sender, receiver and tag the n-th send is the n-th receive, both in the order of the calls that
posted them on their rank (by ticks: a rank's threads have one clock). The n-th collective on a communicator is the
same on all members. Here a rank's halves are found, one rank after the other, and of a large one part by part
(`halves`); `joining` puts them together. Where counts differ, what fits is matched and a note tells the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import columns
from .calls import parts
from .columns import rest
from .halves import Finder
from .joining import Collectives, Messages, together
from .model import GAP, SELF, WORLD, Comm, GlobalComm, Rank

SAMPLE = 1024  # of so many events one is looked at to part the run's time


@dataclass
class Matched:
    comms: list[GlobalComm]
    messages: np.ndarray
    collectives: Collectives
    notes: list[str]


def match(ranks: list[Rank], spill: Path | None = None) -> Matched:
    comms, numbers = identify(ranks)
    notes = []
    gaps = [gaps_of(rank) for rank in ranks]
    counts = {len(gap) for gap in gaps}
    if counts - {0}:
        notes.append(
            "recording was off for a while: messages under way when it went off or on may be paired wrongly"
        )
    there = np.array([rank.rank for rank in ranks], np.int64)
    messages = Messages([len(rank.events) for rank in ranks], there, bands(ranks), spill)
    rows: list[np.ndarray] = []
    names: dict[str, int] = {}
    away = 0
    for rank, known, gap in zip(ranks, numbers, gaps):
        finder = Finder(rank, known, gap if len(counts) == 1 else gap[:0], names, spill)
        # Mprobe and what takes its message may stand in blocks of two threads, the later one first: then not in parts.
        whole = finder.kinds.matched_probes and finder.kinds.threads > 1
        for first, part in [(0, rank)] if whole else parts(rank):
            finder.take(first, part)
            away += messages.add(*finder.ready(), rank)
        finder.end()
        away += messages.add(*finder.ready(), rank)
        rows.append(finder.collectives())
        rest(rank.events, rank.begin, rows[-1])
    if away:
        notes.append(f"{away} messages went to or came from ranks that left no file")
    joined, unequal = messages.joined(comms)
    collectives, differ = together(rows, list(names), comms, spill)
    return Matched(comms, joined, collectives, notes + unequal + differ)


def gaps_of(rank: Rank) -> np.ndarray:
    """When recording was off: ticks of the beginnings, in order."""
    found = [np.zeros(0, np.uint64)]
    for some in columns.pieces(rank.events):
        events = rank.events[some]
        found.append(events["begin"][events["kind"] == GAP])
    return np.sort(np.concatenate(found))


def bands(ranks: list[Rank]) -> np.ndarray:
    """Times (ns) that part the run so that each part's halves fit into memory; none of a small run."""
    count = sum(len(rank.events) for rank in ranks) // (2 * columns.CHUNK)
    if not count:
        return np.zeros(0, np.int64)
    step = max(1, min(SAMPLE, columns.CHUNK // 8))
    sample = []
    for rank in ranks:
        sample += [rank.begin[some][::step].copy() for some in columns.pieces(rank.begin)]
    times = np.sort(np.concatenate(sample))
    return times[np.arange(1, count + 1) * len(times) // (count + 1)]


# ---- communicators -----------------------------------------------------------------------------
def identify(ranks: list[Rank]) -> tuple[list[GlobalComm], list[dict[int, int]]]:
    """All communicators, and for each rank which of them its ids are.

    On each member of a new communicator, that it is the n-th with these members from this parent is the same; the
    number among all creations on the parent is not, where a call makes communicators of a part (create_group)."""
    comms: list[GlobalComm] = []
    found: dict[tuple, int] = {}
    numbers = []
    for rank in ranks:
        size = rank.header.get("size", 0)
        if size and WORLD not in rank.comms:
            rank.comms[WORLD] = Comm(WORLD, 0, "", 0, rank.rank, np.arange(size), "MPI_COMM_WORLD")
        if SELF not in rank.comms:
            rank.comms[SELF] = Comm(SELF, 0, "", 0, 0, np.array([rank.rank]), "MPI_COMM_SELF")
        known: dict[int, int] = {}
        lists: dict[int, bytes] = {}  # each list of members is one array: see format
        counts: dict[tuple, int] = {}

        def text(members: np.ndarray) -> bytes:
            return lists.setdefault(id(members), members.astype("<i8", copy=False).tobytes())

        of_parent = sorted(rank.comms.values(), key=lambda c: (c.id in (WORLD, SELF), c.parent, c.order, c.id))
        nth: dict[int, tuple] = {}
        for comm in of_parent:
            if comm.remote is None:
                who: tuple = (text(comm.members),)
                parent = comm.parent
            else:  # its two sides come from two parents
                who, parent = tuple(sorted((text(comm.members), text(comm.remote)))), -1
            count = counts.get((parent, who), 0)
            counts[parent, who] = count + 1
            nth[comm.id] = (who, count)
        for number in sorted(rank.comms):  # parents are older
            comm = rank.comms[number]
            if number == WORLD:
                key: tuple = ("world",)
            elif number == SELF:
                key = ("self", rank.rank)
            elif comm.remote is not None:
                key = ("between", *nth[number])
            else:
                key = (known.get(comm.parent, -1), *nth[number])
            if key not in found:
                found[key] = len(comms)
                groups = [comm.members]
                if comm.remote is not None:
                    groups = sorted((comm.members, comm.remote), key=lambda group: group.tolist())
                comms.append(GlobalComm(np.concatenate(groups), comm.name, comm.call, comm.remote is not None))
            known[number] = found[key]
            comms[found[key]].name = comms[found[key]].name or comm.name
        numbers.append(known)
    return comms, numbers
