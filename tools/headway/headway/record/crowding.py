"""Where the machine decides what a run takes, and not its program: a host has fewer cores than ranks, or somebody else had
the ranks' cores. What such a run would gain from a change may go to whoever gets a core next time: nothing of it is promised.
And where threads of the MPI have no cores of their own, what they copy takes those of the ranks."""

from __future__ import annotations

from collections.abc import Iterator

from headway.record import model
from headway.record.model import Rank, Run
from headway.record.words import clean


def short_of_cores(run: Run) -> str:
    """Of the first host that has fewer cores than ranks: how many; "" where none has, or where that is not known."""
    for ranks, cores in machines(run):
        if len(ranks) > len(cores):
            many = f"{len(cores)} core{'s' if len(cores) > 1 else ''}"
            return f"{clean(ranks[0].host)} has {many} for {len(ranks)} ranks"
    return ""


def threads_share(run: Run) -> bool:
    """A host has not a core for each rank and one more for a thread of each that moves messages, or a rank is bound to one; False
    where that is not known."""
    for ranks, cores in machines(run):
        if 2 * len(ranks) > len(cores) or any(len(model.cores(rank.header)) < 2 for rank in ranks):
            return True
    return False


def machines(run: Run) -> Iterator[tuple[list[Rank], set[int]]]:
    """The ranks of each host, and the cores on which they may run (a hardware thread is one); of those ranks that told."""
    found: dict[str, list[Rank]] = {}
    for rank in run.ranks:
        if model.cores(rank.header):
            found.setdefault(rank.boot, []).append(rank)
    for ranks in found.values():
        yield ranks, set().union(*(model.cores(rank.header) for rank in ranks))


def doubt(run: Run, no_core: float, gain: float) -> str:
    """Why that gain is not promised, as what follows "not promised: "; else "". Both are shares: `no_core` of all ranks' time,
    in which they could have gone on and had no core, `gain` of the run's."""
    short = short_of_cores(run)
    if short:
        return f"{short}, so which of them goes on is the system's choice"
    if gain <= no_core:
        return f"for {100 * no_core:.0f} % of all rank time somebody else had a rank's core, which is more than it gains"
    return ""
