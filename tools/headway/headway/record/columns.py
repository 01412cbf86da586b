"""Arrays that lie in memory, or, of large recordings, in files without a name: so that they need none.

Whoever goes over a large column does so in pieces of CHUNK rows and lets it `rest` after each; who looks at places
all over it asks `take` and `find`, which hold little of it at a time. Columns in memory are taken as they are.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

CHUNK = 1 << 18  # rows that are worked on at once; tests make it small
BLOCK = 64 << 20  # bytes of a file that small arrays share
PAGE = mmap.PAGESIZE
AROUND = 21  # of a place that is looked at, the system maps up to 2^21 bytes: Linux 6.18 a file's whole large pages
MOST_BLOCKS = 16  # of these, that are looked at before a column rests: 32 MB
FEW = 8  # places that are searched for together, wherever they lie: each search looks at some blocks
SPAN = 1 << 20  # rows between the first and the last place of more than that


def room(count: int, dtype: np.dtype | type, spill: Path | None = None) -> np.ndarray:
    """A new array: in memory, or, with `spill`, in a file without a name in that folder, so that its pages need
    no memory once they are written."""
    size = count * np.dtype(dtype).itemsize
    if spill is None or count == 0:
        return np.empty(count, dtype)
    if size > BLOCK // 2:
        return _file(size, spill).view(dtype)
    # Small ones share a file: each has one open as long as it is there, and ranks may be thousands.
    block, used = _blocks.get(spill, (_NOTHING, 0))
    if used + size > len(block):
        block, used = _file(BLOCK, spill), 0
    _blocks[spill] = block, used + -(-size // PAGE) * PAGE
    return block[used : used + size].view(dtype)


def _file(size: int, spill: Path) -> np.ndarray:
    with tempfile.TemporaryFile(dir=spill) as file:
        return np.asarray(np.memmap(file, np.uint8, "w+", shape=(size,)))


_NOTHING = np.zeros(0, np.uint8)
_blocks: dict[Path, tuple[np.ndarray, int]] = {}  # the last one in each folder, and how much of it is taken


def table(count: int, wide: int, dtype: np.dtype | type, spill: Path | None = None) -> np.ndarray:
    """The same with rows of `wide` numbers."""
    return room(count * wide, dtype, spill).reshape(count, wide)


def map_of(array: np.ndarray) -> mmap.mmap | None:
    """Where it lies in a file."""
    owner: Any = array
    while isinstance(owner, np.ndarray) and owner.base is not None:
        owner = owner.base
    owner = owner.obj if isinstance(owner, memoryview) else owner
    return owner if isinstance(owner, mmap.mmap) else None


def rest(*arrays: np.ndarray) -> None:
    """They will not be used for a while: those that lie in files give their memory back."""
    for array in arrays:
        owner = map_of(array)
        if owner is not None:
            owner.madvise(mmap.MADV_DONTNEED)


def pieces(*columns: np.ndarray) -> Iterator[slice]:
    """Goes over columns of one length: which rows come next. They rest behind each piece."""
    for first in range(0, len(columns[0]), CHUNK):
        yield slice(first, first + CHUNK)
        rest(*columns)


def largest(column: np.ndarray) -> int:
    """0 of none."""
    return max((int(column[some].max()) for some in pieces(column)), default=0)


def least(column: np.ndarray) -> int | None:
    return min((int(column[some].min()) for some in pieces(column)), default=None)


def add(column: np.ndarray, more: Callable[[np.ndarray], np.ndarray | int]) -> None:
    """To each value what is made of it."""
    for some in pieces(column):
        column[some] += more(column[some])


def take(column: np.ndarray, index: np.ndarray) -> np.ndarray:
    """column[index], wherever these lie."""
    if not len(index) or map_of(column) is None:
        return column[index]
    found = np.empty((len(index), *column.shape[1:]), column.dtype)
    for some, places in _together(column, index):
        found[some] = column[places]
        rest(column)
    return found


def put(column: np.ndarray, index: np.ndarray, values: np.ndarray) -> None:
    """column[index] = values, wherever these lie; no index twice."""
    if not len(index) or map_of(column) is None:
        column[index] = values
        return
    for some, places in _together(column, index):
        column[places] = values[some]
        rest(column)


def _together(column: np.ndarray, index: np.ndarray) -> Iterator[tuple[np.ndarray | slice, np.ndarray]]:
    """The places that can be looked at before the column has to rest: which of all, and they themselves."""
    if (int(index.max()) - int(index.min())) * column.strides[0] < MOST_BLOCKS << AROUND:
        yield slice(None), index
        return
    order = np.argsort(index, kind="stable")
    places = index[order]
    block = places * column.strides[0] >> AROUND
    number = np.cumsum(np.diff(block, prepend=block[:1]) != 0)
    edges = np.searchsorted(number, np.arange(0, int(number[-1]) + MOST_BLOCKS + 1, MOST_BLOCKS))
    for first, last in zip(edges, edges[1:]):
        yield order[first:last], places[first:last]


def find(column: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """np.searchsorted(column, wanted, "right")."""
    if not len(wanted) or map_of(column) is None:
        return np.searchsorted(column, wanted, "right")
    order = np.argsort(wanted, kind="stable")
    keys, found = wanted[order], np.empty(len(wanted), np.int64)
    todo = [(0, len(keys))]
    while todo:
        first, last = todo.pop()
        low, high = np.searchsorted(column, keys[[first, last - 1]], "right").tolist()
        if high - low > SPAN and last - first > FEW:
            middle = (first + last) // 2
            todo += [(middle, last), (first, middle)]
        else:
            found[order[first:last]] = low + np.searchsorted(column[low:high], keys[first:last], "right")
        rest(column)
    return found


class Shelves:
    """Rows on numbered shelves, each in the order in which they came: for what is made in one order and used in
    another one. With `spill` they lie in a file."""

    def __init__(self, count: int, dtype: np.dtype, spill: Path | None = None) -> None:
        self.count, self.dtype = count, dtype
        self.file = tempfile.TemporaryFile(dir=spill) if spill else None
        if self.file:
            weakref.finalize(self, self.file.close)
        self.parts: list[np.ndarray] = []  # in memory
        self.starts: list[np.ndarray] = []  # of each shelf in each part, and the end
        self.before: list[int] = []  # rows before each part
        self.rows = 0

    def add(self, rows: np.ndarray, shelf: np.ndarray) -> None:
        if not len(rows):
            return
        if (shelf[1:] < shelf[:-1]).any():
            order = np.argsort(shelf, kind="stable")
            rows, shelf = rows[order], shelf[order]
        self.starts.append(np.searchsorted(shelf, np.arange(self.count + 1)))
        self.before.append(self.rows)
        self.rows += len(rows)
        if self.file is None:
            self.parts.append(rows)
        else:
            self.file.write(rows.tobytes())

    def whole(self) -> np.ndarray:
        """All rows in the order in which they came, once no more do: where they lie in a file, they stay there."""
        if self.file is None:
            return np.concatenate([np.zeros(0, self.dtype), *self.parts])
        if not self.rows:
            return np.zeros(0, self.dtype)
        self.file.flush()
        return np.asarray(np.memmap(self.file, self.dtype, "r", shape=(self.rows,)))

    def __getitem__(self, shelf: int) -> np.ndarray:
        found = [np.zeros(0, self.dtype)]
        if self.file is not None:
            self.file.flush()
        for number, starts in enumerate(self.starts):
            first, last = int(starts[shelf]), int(starts[shelf + 1])
            if first == last:
                continue
            if self.file is None:
                found.append(self.parts[number][first:last])
            else:
                size = self.dtype.itemsize
                text = os.pread(self.file.fileno(), (last - first) * size, (self.before[number] + first) * size)
                found.append(np.frombuffer(text, self.dtype))
        return np.concatenate(found)
