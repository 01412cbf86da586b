"""Halves of messages and parts of collectives, of all ranks, put together.

A message's two halves are found on two ranks. They are put on shelves by time, and one stretch of time after the other
is joined; halves whose other one comes later wait. So what is in memory is what happens at once, and what is under
way. Ranks count their collectives on each communicator themselves, so those need no sorting: each rank's next one goes
to the next place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import columns
from .columns import Shelves, rest, room, take
from .model import ANY, MESSAGE, Collective, GlobalComm, Rank

PIECE = 1 << 18  # rows in memory at once
# One side of a message: who and what, as the receiver got it, and the events that began and ended it. `time`: ticks at
# which it began, for its order on its rank.
HALF = np.dtype(
    [("epoch", "<i4"), ("comm", "<i4"), ("source", "<i4"), ("target", "<i4"), ("tag", "<i4"), ("event", "<i8")]
    + [("until", "<i8"), ("bytes", "<u8"), ("time", "<u8")]
)
STREAM = "epoch", "comm", "source", "target", "tag"
# One rank in one collective. `order` counts on the communicator; behind a gap (epoch) ranks begin anew. `stream`: 0, or
# of a persistent collective its own number from 1, whose starts are counted for themselves.
ROW = np.dtype(
    [("epoch", "<i4"), ("comm", "<i4"), ("order", "<i8"), ("rank", "<i4"), ("event", "<i8"), ("end", "<i8")]
    + [("name", "<i4"), ("root", "<i4"), ("stream", "<i4")]
)


def edges(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Where, in sorted columns, groups of equal rows begin, and the end."""
    count = len(columns[0])
    if not count:
        return np.zeros(1, np.int64)
    new = np.zeros(count - 1, bool)
    for column in columns:
        new |= column[1:] != column[:-1]
    return np.concatenate([[0], np.flatnonzero(new) + 1, [count]])


def partitioned(tag: np.ndarray) -> np.ndarray:
    """A number for the tag of a partitioned message, which matches none but such: no other tag is below ANY."""
    return -3 - tag


def tag_of(tag: Any) -> np.ndarray:
    """As the program gave it."""
    return np.where(np.asarray(tag) < ANY, partitioned(np.asarray(tag)), tag)


def named(comm: GlobalComm) -> str:
    return comm.name or f"a communicator of {len(comm.members)} ranks"


# ---- messages ----------------------------------------------------------------------------------
class Messages:
    """The halves of all ranks, and the messages that they make."""

    def __init__(self, events: list[int], ranks: np.ndarray, edges_: np.ndarray, spill: Path | None) -> None:
        """`events`: how many each rank has; `edges_`: times that part the run."""
        self.first, self.ranks, self.edges, self.spill = np.cumsum([0, *events]), ranks, edges_, spill
        self.bands = tuple(Shelves(len(edges_) + 1, HALF, spill) for _side in (0, 1))

    def add(self, sends: np.ndarray, receives: np.ndarray, rank: Rank) -> int:
        """Of one rank, in any order. How many are of ranks that are not there."""
        away = 0
        for side, halves, other in ((0, sends, "target"), (1, receives, "source")):
            there = np.isin(halves[other], self.ranks)
            halves = halves[there]
            away += int((~there).sum())
            band = np.zeros(len(halves), np.int64)
            if len(self.edges):
                band = np.searchsorted(self.edges, take(rank.begin, halves["event"]), "right")
            self.bands[side].add(halves, band)
        return away

    def joined(self, comms: list[GlobalComm]) -> tuple[np.ndarray, list[str]]:
        """All messages, by sender and the order of its calls; what found nothing is told. Of each band, what is left
        goes on to the next one: a stream's halves are in order in both."""
        made = Shelves(int(self.first[-1]) // columns.CHUNK + 1, MESSAGE, self.spill)
        left = np.zeros(0, HALF), np.zeros(0, HALF)
        for band in range(len(self.edges) + 1):
            sides = (np.concatenate([old, new[band]]) for old, new in zip(left, self.bands))
            messages, *left = join(*sides)
            place = np.searchsorted(self.ranks, messages["source"])
            made.add(messages, (self.first[place] + messages["sent"]) // columns.CHUNK)
        found, at = room(made.rows, MESSAGE, self.spill), 0
        for number in range(made.count):
            rows = made[number]
            found[at : at + len(rows)] = rows[np.lexsort((rows["sent"], rows["source"]))]
            at += len(rows)
            rest(found)
        return found, self._unequal(comms, *left)

    def _unequal(self, comms: list[GlobalComm], sends: np.ndarray, receives: np.ndarray) -> list[str]:
        """Streams with more sends than receives, or the other way round."""
        rows = np.concatenate([sends, receives])
        if not len(rows):
            return []
        first = rows[np.lexsort([rows[name] for name in STREAM[::-1]])[0]]
        counts = []
        for bands in self.bands:
            count = 0
            for number in range(bands.count):
                one = bands[number]
                count += int(np.all([one[name] == first[name] for name in STREAM], axis=0).sum())
            counts.append(count)
        return [
            f"{len(sends)} sends found no receive and {len(receives)} receives no send; the first: from rank "
            f"{first['source']} to rank {first['target']}, tag {int(tag_of(first['tag']))}, {named(comms[first['comm']])}: "
            f"{counts[0]} sent, {counts[1]} received"
        ]


def join(sends: np.ndarray, receives: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Messages from their halves, and the halves that are left."""
    every = np.concatenate([sends, receives])
    side = np.repeat(np.array([0, 1], np.uint8), (len(sends), len(receives)))
    by = every["event"], every["time"], side, *(every[name] for name in STREAM[::-1])
    order = np.lexsort([by[0], *(column for column in by[1:] if len(column) and (column != column[0]).any())])
    every, side = every[order], side[order]
    starts = edges([every[name] for name in STREAM])
    sizes = np.diff(starts)
    sent = np.add.reduceat(side == 0, starts[:-1], dtype=np.int64) if len(order) else sizes
    group = np.repeat(np.arange(len(sizes)), sizes)
    fits = np.minimum(sent, sizes - sent)[group]
    place = np.arange(len(order)) - starts[group]  # in the stream: sends, then receives
    paired = np.flatnonzero(place < fits)
    one, two = every[paired], every[paired + sent[group[paired]]]
    messages = np.empty(len(one), MESSAGE)
    for name in ("source", "target", "comm", "bytes"):
        messages[name] = one[name]
    messages["tag"] = tag_of(one["tag"])
    messages["sent"], messages["left"] = one["event"], one["until"]
    messages["posted"], messages["came"] = two["event"], two["until"]
    left = np.where(side == 0, place, place - sent[group]) >= fits
    return messages, every[left & (side == 0)], every[left & (side == 1)]


# ---- collectives -------------------------------------------------------------------------------
class Collectives(Sequence):
    """As a list of Collective, kept as columns. `rows` are sorted; the i-th has those of starts[i] to starts[i + 1]."""

    def __init__(self, rows: np.ndarray, starts: np.ndarray, roots: np.ndarray, names: list[str]) -> None:
        self.rows, self.starts, self.roots, self.names = rows, starts, roots, names

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = index + len(self) if index < 0 else index
        if not 0 <= i < len(self):
            raise IndexError(index)
        rows = self.rows[self.starts[i] : self.starts[i + 1]]
        first, root = rows[0], int(self.roots[i])
        name = self.names[first["name"]]
        return Collective(
            int(first["comm"]), int(first["order"]), name, root, rows["rank"], rows["event"], rows["end"]
        )

    def pieces(self, most: int | None = None) -> Iterator[Collectives]:
        """The same in parts that fit into memory."""
        first = 0
        while first < len(self):
            behind = self.starts[first] + (most or PIECE)
            last = max(first + 1, int(np.searchsorted(self.starts, behind, "right")) - 1)
            starts = self.starts[first : last + 1]
            rows = self.rows[starts[0] : starts[-1]]
            yield Collectives(rows, starts - starts[0], self.roots[first:last], self.names)
            first = last


def streams(rows: np.ndarray) -> np.ndarray:
    """Where, in a rank's rows, those of one epoch, communicator and stream begin, and the end."""
    found = []
    for first in range(0, len(rows), PIECE):
        before = max(0, first - 1)
        some = rows[before : first + PIECE]
        found.append(before + edges((some["epoch"], some["comm"], some["stream"]))[1:-1])
        rest(rows)
    return np.concatenate([[0], *found, [len(rows)] if len(rows) else []]).astype(np.int64)


def together(
    parts: list[np.ndarray], names: list[str], comms: list[GlobalComm], spill: Path | None
) -> tuple[Collectives, list[str]]:
    """`parts`: the rows of each rank, by epoch, communicator and stream, in the order of its calls."""
    counts = []  # epoch, communicator, stream, place of the rank, its first row there, how many
    for place, rows in enumerate(parts):
        starts = streams(rows)
        first = take(rows, starts[:-1])
        where = first["epoch"], first["comm"], first["stream"], np.full(len(first), place)
        counts.append(np.stack([*where, starts[:-1], np.diff(starts)], 1))
    table = np.concatenate([np.zeros((0, 6), np.int64), *counts])
    table = table[np.lexsort(table[:, 3::-1].T)]
    rows = room(int(table[:, 5].sum()), ROW, spill)
    starts, roots, notes, differ = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [], 0
    # How many each communicator and stream has had in earlier epochs, -1: no longer sure.
    gone: dict[tuple[int, int], int] = {}
    groups, at = edges((table[:, 0], table[:, 1], table[:, 2])), 0
    for low, high in zip(groups, groups[1:]):
        some = table[low:high]
        comm, stream = int(some[0, 1]), int(some[0, 2])
        before, most = gone.get((comm, stream), 0), int(some[:, 5].max())
        step = max(1, PIECE // len(some))
        for first in range(0, most if before >= 0 else 0, step):
            block, sizes = piece(parts, some, first, min(most, first + step))
            block["order"] += before
            inner = np.cumsum(sizes) - sizes
            low_name, high_name, low_root, high_root = (
                f.reduceat(block[name], inner) for name in ("name", "root") for f in (np.minimum, np.maximum)
            )
            # Where ranks name different functions, nothing behind it is sure.
            wrong = np.flatnonzero(low_name != high_name)
            kept = int(wrong[0]) if len(wrong) else len(sizes)
            if len(wrong):
                called = sorted({names[n] for n in block["name"][inner[kept] : inner[kept] + sizes[kept]].tolist()})
                which = f"collective {before + first + kept} on {named(comms[comm])}"
                notes.append(f"ranks called {' and '.join(called)} as {which}: it and later ones are left out")
            size = int(sizes[:kept].sum())
            rows[at : at + size] = block[:size]
            starts.append(at + inner[:kept])
            same = (low_root == high_root)[:kept] | comms[comm].inter
            roots.append(np.where(same & (not comms[comm].inter), low_root[:kept], -1))
            differ += int((~same).sum())
            at += size
            rest(rows, *(parts[rank] for rank in some[:, 3].tolist()))
            if len(wrong):
                before = -1
                break
        gone[comm, stream] = before + most if before >= 0 else -1
    if differ:
        notes.append(f"{differ} collectives whose ranks name different roots")
    rest(rows)
    return Collectives(rows[:at], np.concatenate([*starts, [at]]), np.concatenate(roots), names), notes


def piece(parts: list[np.ndarray], some: np.ndarray, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """The first-th to last-th collectives of one communicator, and how many ranks each has."""
    counts = np.clip(some[:, 5], first, last) - first
    sizes = len(some) - np.searchsorted(np.sort(counts), np.arange(int(counts.max())), "right")
    block, place = np.empty(int(sizes.sum()), ROW), np.cumsum(sizes) - sizes
    for (_epoch, _comm, _stream, rank, start, _all), count in zip(some.tolist(), counts.tolist()):
        block[place[:count]] = parts[rank][start + first : start + first + count]
        block["order"][place[:count]] = np.arange(first, first + count)
        place[:count] += 1
    return block, sizes
