"""What the words of a study mean. Pure: figures in, figures and words out.

The search for the overlap itself is programs/search.h, which the C programs share.
"""

from __future__ import annotations

from typing import NamedTuple, Sequence

from headway.measure.statistics import slope

EXCEEDED = 1.1  # of l0: where the search for the overlap ends
BLOCKS, FREE = 0.9, 0.1  # slopes of a call's return over the other side's entry


def equation4(l0: float, c: float, l: float) -> float:
    return (c - (l - l0)) / l0


def upper_bound(l0: float, t1: float, t3: float) -> float:
    """Figure 3: only t2 = l0 - t1 - t3 is left to compute in; as a share of l0."""
    return max(0.0, l0 - t1 - t3) / l0


def machine_bound(l0: float, one: float, speedup: float) -> float:
    """The largest overlap that this machine allows while one side computes, where no card moves data, but
    cores do. `one`: time in which one core alone copies the message. `speedup`: how much faster two cores
    are together (1 to 2). While one side computes, the other core copies alone; in the wait both can:

        l(c) >= c + max(0, one - c) / speedup

    The overlap is equation 4 at the largest c up to l0 with l(c) <= 1.1 l0. An MPI whose l0 is as long as
    one core's copy can reach 1; the better it copies with both cores while nobody computes, the less is
    left to win: with l0 = one / speedup that is 0.1 / (speedup - 1), at most 1 / speedup."""
    speedup = min(2.0, max(1.0, speedup))
    at_l0 = max(l0, l0 + max(0.0, one - l0) / speedup)
    if at_l0 <= EXCEEDED * l0:
        return equation4(l0, l0, at_l0)
    # l grows by 1 - 1 / speedup for each us of computation while the message is not through.
    c = (EXCEEDED * l0 - one / speedup) / (1 - 1 / speedup) if speedup > 1 else 0.0
    c = max(0.0, min(c, l0))
    l = max(l0, c + max(0.0, one - c) / speedup)
    return max(0.0, equation4(l0, c, l))


def wire_bound(l0: float, one: float) -> float:
    """The same over a wire without a card that moves data into the program's memory: the side that computes
    has to copy the message between the kernel and its buffer, with its own core: l >= c + one, so that
    equation 4 gives 1 - one / l0 wherever the search ends."""
    return min(1.0, max(0.0, 1 - one / l0))


def both_bound(l0: float, one: float) -> float:
    """Where both sides compute all the time, the copy takes core time from them: 2 c + one of two cores,
    so l >= c + one / 2, and at most this share of l0 is hidden."""
    return max(0.0, 1 - one / 2 / l0)


# ---- progress ----------------------------------------------------------------------------------
COMPLETED, ARRIVED, NEVER = "completed", "arrived but not completed", "never moved"


def progress_verdict(progress: float, arrived_share: float | None = None, left_us: float = 1e9) -> str:
    """Of a delay longer than l0. Completed: a tenth of the communication or less is left after it.
    Arrived: its last byte was seen in the buffer during the delay, or less than half of the work is left
    (an eager message lies in the library's memory and is copied in the wait), or less than a microsecond,
    which the call itself costs. Else nothing moved."""
    if progress >= 0.9:
        return COMPLETED
    if (arrived_share or 0) > 0.5 or progress >= 0.5 or left_us < 1:
        return ARRIVED
    return NEVER


# ---- blocking ----------------------------------------------------------------------------------
class Call(NamedTuple):
    """How a call's return moves with the other side's entry."""

    slope: float
    duration: float  # us, at the first entry
    kind: str  # blocks, free, wire


def call_kind(entries: Sequence[float], returns: Sequence[float], begin: float = 0.0, transfer: float = 0.0) -> Call:
    """Blocks: slope at least 0.9; free: at most 0.1, and the call did not last as long as the transfer
    itself; else it waits for the wire."""
    moved = slope(list(zip(entries, returns)))
    duration = returns[0] - begin
    if moved >= BLOCKS:
        return Call(moved, duration, "blocks")
    if moved <= FREE and duration < 0.5 * max(transfer, 50):
        return Call(moved, duration, "free")
    return Call(moved, duration, "wire")


def is_cumulative(one: float, each_of_three: float) -> bool | None:
    """`one`: the size from which one message blocks; `each_of_three`: the size of each from which the last
    of three does. None if it is neither a third nor the whole."""
    if not one or not each_of_three:
        return None
    ratio = each_of_three / one
    return True if ratio < 0.45 else False if ratio > 0.8 else None


def memory_bytes(size: int, peers: int) -> int:
    """What it takes to hold one message of that size on its way to each peer, so that no send waits: the
    paper's point that a larger buffer does not scale."""
    return size * peers
