"""Halves of messages and parts of collectives, of all ranks, put together.

A message's two halves have the same sender, so they are kept and joined by ranges of senders: where columns lie in
files, one range after the other is in memory. Ranks count their collectives on each communicator themselves, so those
need no sorting: each rank's next one goes to the next place.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .columns import mapped, rest, room
from .model import ANY, MESSAGE, Collective, GlobalComm

PIECE = 1 << 20  # rows in memory at once
PARTS = 64  # of the senders
# One side of a message: who and what, as the receiver got it, and the events that began and ended it.
HALF = np.dtype(
    [("epoch", "<i4"), ("comm", "<i4"), ("source", "<i4"), ("target", "<i4"), ("tag", "<i4"), ("event", "<i8")]
    + [("until", "<i8"), ("bytes", "<u8")]
)
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
class Halves:
    """Those of all ranks. Each rank adds its own, in the order of its calls."""

    def __init__(self, ranks: list[int], spill: Path | None) -> None:
        self.ranks = np.array(ranks)
        self.spill = spill
        self.parts = min(len(ranks), PARTS) if spill else 1
        self.kept: list[list[Any]] = [[[] if spill is None else None for _ in range(self.parts)] for _side in (0, 1)]

    def add(self, side: int, halves: np.ndarray) -> None:
        """0: sends, 1: receives."""
        if self.spill is None:
            self.kept[side][0].append(halves)
            return
        part = np.searchsorted(self.ranks, halves["source"]) * self.parts // len(self.ranks)
        order = np.argsort(part, kind="stable")
        starts = np.searchsorted(part[order], np.arange(self.parts + 1))
        for number, (first, last) in enumerate(zip(starts, starts[1:])):
            if first < last:
                if self.kept[side][number] is None:
                    self.kept[side][number] = tempfile.TemporaryFile(dir=self.spill)
                self.kept[side][number].write(halves[order[first:last]].tobytes())

    def joined(self, comms: list[GlobalComm]) -> tuple[np.ndarray, list[str]]:
        """All messages, by sender and the order of its calls."""
        notes = Unequal(comms)
        if self.spill is None:
            return join(*(np.concatenate([np.zeros(0, HALF), *side[0]]) for side in self.kept), notes), notes.told()
        with tempfile.TemporaryFile(dir=self.spill) as file:
            for part in range(self.parts):
                sides = [self.kept[side][part] for side in (0, 1)]
                halves = [mapped(one, HALF) if one else np.zeros(0, HALF) for one in sides]
                file.write(join(*halves, notes).tobytes())
                for one in sides:
                    if one:
                        one.close()
            return mapped(file, MESSAGE), notes.told()


class Unequal:
    """Streams with more sends than receives, or the other way round."""

    def __init__(self, comms: list[GlobalComm]) -> None:
        self.comms, self.lost, self.extra, self.first = comms, 0, 0, ""

    def add(self, sent: np.ndarray, received: np.ndarray, first: tuple[int, int, int, int]) -> None:
        self.lost += int(np.maximum(sent - received, 0).sum())
        self.extra += int(np.maximum(received - sent, 0).sum())
        comm, source, target, tag = first
        self.first = self.first or (
            f"from rank {source} to rank {target}, tag {tag}, {named(self.comms[comm])}: "
            f"{sent[0]} sent, {received[0]} received"
        )

    def told(self) -> list[str]:
        if not self.first:
            return []
        return [f"{self.lost} sends found no receive and {self.extra} receives no send; the first: {self.first}"]


def join(sends: np.ndarray, receives: np.ndarray, notes: Unequal) -> np.ndarray:
    """Messages from their halves, each side in the order of the calls of its rank."""
    side = np.repeat(np.array([0, 1], np.uint8), (len(sends), len(receives)))
    by = [np.concatenate([sends[name], receives[name]]) for name in ("epoch", "comm", "source", "target", "tag")]
    order = np.lexsort((side, *by[::-1]))
    by = [column[order] for column in by]
    starts = edges(by)
    sizes = np.diff(starts)
    sent = np.add.reduceat(side[order] == 0, starts[:-1], dtype=np.int64) if len(order) else sizes
    received = sizes - sent
    group = np.repeat(np.arange(len(sizes)), sizes)
    paired = np.flatnonzero(np.arange(len(order)) - starts[group] < np.minimum(sent, received)[group])
    one, two = sends[order[paired]], receives[order[paired + sent[group[paired]]] - len(sends)]
    messages = np.empty(len(one), MESSAGE)
    for name in ("source", "target", "comm", "bytes"):
        messages[name] = one[name]
    messages["tag"] = tag_of(one["tag"])
    messages["sent"], messages["left"] = one["event"], one["until"]
    messages["posted"], messages["came"] = two["event"], two["until"]
    wrong = np.flatnonzero(sent != received)
    if len(wrong):
        comm, source, target, tag = (int(column[starts[wrong[0]]]) for column in by[1:])
        notes.add(sent[wrong], received[wrong], (comm, source, target, int(tag_of(tag))))
    return messages[np.lexsort((messages["sent"], messages["source"]))]


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

    def pieces(self) -> Iterator[Collectives]:
        """The same in parts that fit into memory."""
        first = 0
        while first < len(self):
            last = max(first + 1, int(np.searchsorted(self.starts, self.starts[first] + PIECE, "right")) - 1)
            starts = self.starts[first : last + 1]
            rows = self.rows[starts[0] : starts[-1]]
            yield Collectives(rows, starts - starts[0], self.roots[first:last], self.names)
            first = last


def together(
    parts: list[np.ndarray], names: list[str], comms: list[GlobalComm], spill: Path | None
) -> tuple[Collectives, list[str]]:
    """`parts`: the rows of each rank, by epoch, communicator and stream, in the order of its calls."""
    counts = []  # epoch, communicator, stream, place of the rank, its first row there, how many
    for place, rows in enumerate(parts):
        starts = edges((rows["epoch"], rows["comm"], rows["stream"]))
        first = rows[starts[:-1]]
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
