"""What messages and collectives tell of the hosts' clocks: what must have been before what.

A send begins before its receive ends; nobody leaves a barrier before all have entered. Of each pair of hosts this
gives bounds below and above what is to be added to the one's clock to get the other's. Only those are kept that a
line can touch, so a handful stays of any number of messages.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .clocks import Host
from .columns import pieces, rest
from .joining import Collectives, edges
from .matching import Matched
from .model import FAILED, Rank

FASTEST = 1e-3  # the largest drift between two clocks
MOST = 1 << 18  # bounds in memory, of all pairs together
# What must be before what: all enter before any leaves; the root enters before any leaves; all enter before it leaves.
RULES = {
    1: ("barrier", "allreduce", "allgather", "alltoall"),
    2: ("bcast", "scatter"),
    3: ("reduce", "gather"),
}


@dataclass
class Pair:
    """Two hosts (a < b). Bounds are rows of x, y: at the time x of b, at least (low) or at most (high) y is to be
    added to get that of a."""

    a: int
    b: int
    counts: tuple[int, int]  # of all bounds that there were, below and above
    low: np.ndarray
    high: np.ndarray


class Bounds:
    """Of all pairs of hosts, as they are gathered."""

    def __init__(self) -> None:
        self.kept: dict[tuple[int, int], tuple[list[np.ndarray], list[np.ndarray]]] = {}  # with y turned round above
        self.counts: dict[tuple[int, int], tuple[int, int]] = {}
        self.count = 0
        self.held, self.most = 0, MOST  # of those that are kept

    def add(self, before: np.ndarray) -> None:
        """Rows of host, time, host, time: the first was there before the second."""
        self.count += len(before)
        one, two = np.minimum(before[:, 0], before[:, 2]), np.maximum(before[:, 0], before[:, 2])
        order = np.lexsort((two, one))
        starts = edges((one[order], two[order]))
        for first, last in zip(starts, starts[1:]):
            rows = before[order[first:last]]
            pair = int(one[order[first]]), int(two[order[first]])
            down = rows[:, 0] == pair[0]  # from a to b
            low, high = rows[down], rows[~down]
            before_low, before_high = self.counts.get(pair, (0, 0))
            self.counts[pair] = before_low + len(low), before_high + len(high)
            sides = self.kept.setdefault(pair, ([], []))
            sides[0].append(np.stack([low[:, 3], low[:, 1] - low[:, 3]], 1).astype(float))
            sides[1].append(np.stack([high[:, 1], high[:, 1] - high[:, 3]], 1).astype(float))
        self.held += len(before)
        if self.held > self.most:
            self._thin()

    def _thin(self) -> None:
        for sides in self.kept.values():
            for side in sides:
                side[:] = [hull(np.concatenate(side))]
        self.held = sum(len(side[0]) for sides in self.kept.values() for side in sides)
        self.most = max(MOST, 2 * self.held)  # of very many pairs even a handful each is more

    def pairs(self) -> list[Pair]:
        found = []
        for pair in sorted(self.kept):
            low, high = (hull(np.concatenate(side)) for side in self.kept[pair])
            found.append(Pair(*pair, self.counts[pair], low, high * (1, -1)))
        return found


def hull(points: np.ndarray) -> np.ndarray:
    """Of lower bounds (x, y), those that touch some line of a possible drift: the upper hull, by x."""
    if len(points) < 3:
        return points
    points = points[np.lexsort((points[:, 1], points[:, 0]))]
    x, y = points.T
    steep = 2 * FASTEST
    first, last = sorted((int(np.argmax(y - steep * x)), int(np.argmax(y + steep * x))))
    kept, todo = {first, last}, [(first, last)]
    while todo:
        first, last = todo.pop()
        if last - first < 2 or x[first] == x[last]:
            continue
        slope = (y[last] - y[first]) / (x[last] - x[first])
        above = y[first + 1 : last] - y[first] - slope * (x[first + 1 : last] - x[first])
        middle = int(np.argmax(above))
        if above[middle] > 1e-3:  # ns
            middle += first + 1
            kept.add(middle)
            todo += [(first, middle), (middle, last)]
    return points[sorted(kept)]


def gather(columns: list[np.ndarray], which: np.ndarray, index: np.ndarray) -> np.ndarray:
    """columns[which][index], element by element."""
    order = np.argsort(which, kind="stable")
    starts = np.searchsorted(which[order], np.arange(len(columns) + 1))
    found = np.empty(len(which), columns[0].dtype if columns else np.int64)
    for column, first, last in zip(columns, starts, starts[1:]):
        if first < last:
            found[order[first:last]] = column[index[order[first:last]]]
            rest(column)
    return found


def all_bounds(ranks: list[Rank], hosts: list[Host], matched: Matched) -> Bounds:
    """What messages and collectives tell of the hosts' clocks."""
    bounds, host = Bounds(), np.empty(len(ranks), np.int64)
    for number, one in enumerate(hosts):
        host[one.places] = number
    for some in pieces(matched.messages):
        bounds.add(before_by_messages(ranks, matched.messages[some], host))
    between = np.array([comm.inter for comm in matched.comms], bool)
    for piece in matched.collectives.pieces():
        bounds.add(before_by_collectives(ranks, piece, between, host))
        rest(matched.collectives.rows)
    return bounds


def before_by_messages(ranks: list[Rank], messages: np.ndarray, host: np.ndarray) -> np.ndarray:
    """Rows of host, time, host, time: what was there before what. `host` is that of each place."""
    source, target = places_of(ranks, messages["source"]), places_of(ranks, messages["target"])
    between = host[source] != host[target]
    source, target, messages = source[between], target[between], messages[between]
    begun = gather([rank.begin for rank in ranks], source, messages["sent"])
    came = gather([rank.end for rank in ranks], target, messages["came"])
    return np.stack([host[source], begun, host[target], came], axis=1)


def places_of(ranks: list[Rank], numbers: np.ndarray) -> np.ndarray:
    return np.searchsorted(np.array([rank.rank for rank in ranks]), numbers)


def before_by_collectives(
    ranks: list[Rank], collectives: Collectives, between: np.ndarray, host: np.ndarray
) -> np.ndarray:
    """The same. To be linear in the hosts, they are bound to the root's host, or to that of the first rank.
    `between`: which communicators have two groups."""
    rule = np.zeros(len(collectives.names) + 1, np.int64)
    for number, name in enumerate(collectives.names):
        word = name.removeprefix("MPI_").removesuffix("_c").removesuffix("_init").lower()
        for code, words in RULES.items():
            if word in words or (word[:1] == "i" and word[1:] in words):
                rule[number] = code
    barriers = ("mpi_barrier", "mpi_ibarrier", "mpi_barrier_init")
    barrier = np.array([name.lower() in barriers for name in collectives.names] + [False])
    rows = collectives.rows
    number = np.repeat(np.arange(len(collectives)), np.diff(collectives.starts))
    used = (rule[rows["name"]] > 0) & ~between[rows["comm"]]
    rows, number = rows[used], number[used]
    if not len(rows):
        return np.zeros((0, 4), np.int64)
    place = places_of(ranks, rows["rank"])
    begin = gather([rank.begin for rank in ranks], place, rows["event"])
    end = gather([rank.end for rank in ranks], place, np.maximum(rows["end"], 0))
    gives = (gather([rank.events["bytes"] for rank in ranks], place, rows["event"]) > 0) | barrier[rows["name"]]
    failed = gather([rank.events["flags"] for rank in ranks], place, rows["event"]) & FAILED != 0
    code, root = rule[rows["name"]], collectives.roots[number]
    is_root = rows["rank"] == root
    enters = gives & ~failed & ((code != 2) | is_root)
    leaves = (rows["end"] >= 0) & ~failed & ((code != 3) | is_root) & ((code != 2) | ~is_root)
    # The last to enter and the first to leave, of each host in each collective.
    at = host[place]
    order = np.lexsort((at, number))
    number, at, is_root = number[order], at[order], is_root[order]
    starts = edges((number, at))[:-1]
    least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    entered = np.maximum.reduceat(np.where(enters, begin, least)[order], starts)
    left = np.minimum.reduceat(np.where(leaves, end, most)[order], starts)
    rooted = np.maximum.reduceat(is_root, starts)
    number, at = number[starts], at[starts]
    groups = edges((number,))
    size = np.diff(groups)
    middle = np.repeat(groups[:-1], size)
    found = np.flatnonzero(rooted)
    middle_of = np.full(int(number.max()) + 1, -1)
    middle_of[number[found]] = found
    middle = np.where(middle_of[number] >= 0, middle_of[number], middle)
    others = np.flatnonzero(np.arange(len(number)) != middle)
    both = np.concatenate([np.stack([others, middle[others]], 1), np.stack([middle[others], others], 1)])
    both = both[(entered[both[:, 0]] != least) & (left[both[:, 1]] != most)]
    return np.stack([at[both[:, 0]], entered[both[:, 0]], at[both[:, 1]], left[both[:, 1]]], axis=1)
