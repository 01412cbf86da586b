"""Packed blocks of events (docs/recording-format.md): each shape of event once, and a row of 8 bytes an event, of a
long one two; in older files one of 12.

They are unpacked block by block, so that nothing but the block that is looked at needs memory.
"""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path

import numpy as np

from .fields import MOST_TICKS, BadRecording
from .model import COMPLETION, EVENT

MAGIC = 0x31525748
BLOCK = struct.Struct("<IHHQQQ")
PACKED, NARROW = 9, 11  # types of blocks: with rows of 12 bytes, and of 8
HEAD = struct.Struct("<IIQII")  # rows, shapes, begin of the first, what requests are counted from, events (of NARROW)
SHAPE = np.dtype(
    [
        ("kind", "<u2"),
        ("thread", "u1"),
        ("flags", "u1"),
        ("site", "<u4"),
        ("comm", "<u4"),
        ("peer", "<i4"),
        ("tag", "<i4"),
        ("since", "<u2"),  # above the 32 bits of its rows
        ("took", "<u2"),
        ("bytes", "<u8"),
    ]
)
ROW = np.dtype([("since", "<u4"), ("took", "<u4"), ("shape", "<u2"), ("request", "<u2")])
NARROW_ROW = np.dtype([("since", "<u2"), ("took", "<u2"), ("shape", "<u2"), ("request", "<u2")])
FAR = (1 << 16) - 1  # a shape: what is above the 16 bits of the next row
COMMON = ("kind", "thread", "flags", "site", "comm", "peer", "tag", "bytes")
MOST_ROWS = 1 << 16  # of a block


class Block:
    """One of them, as it lies in a mapped file."""

    def __init__(self, data: mmap.mmap | bytes, start: int, length: int, kind: int = NARROW) -> None:
        if length < HEAD.size:
            raise BadRecording(f"a block of packed events has {length} bytes, fewer than its beginning")
        self.data, self.start, self.is_narrow = data, start, kind == NARROW
        self.rows, self.shapes, self.begin, self.requests, events = HEAD.unpack_from(data, start)
        self.count = events if self.is_narrow else self.rows
        if not 0 < self.count <= self.rows <= MOST_ROWS:
            raise BadRecording(f"a block of {self.count} packed events in {self.rows} rows, no number of 1 to {MOST_ROWS}")
        whole = HEAD.size + self.shapes * SHAPE.itemsize + self.rows * self.row().itemsize
        if length != whole + -whole % 8:
            raise BadRecording(f"a block of packed events has {length} bytes, not the {whole + -whole % 8} that it tells of")
        if self.begin > MOST_TICKS:
            raise BadRecording("an event lies outside of what its block says")

    def row(self) -> np.dtype:
        return NARROW_ROW if self.is_narrow else ROW

    def __len__(self) -> int:
        return self.count

    def events(self) -> np.ndarray:
        """BadRecording where a row has no shape, or is of no event that follows."""
        shapes = np.frombuffer(self.data, SHAPE, self.shapes, self.start + HEAD.size)
        rows = np.frombuffer(self.data, self.row(), self.rows, self.start + HEAD.size + shapes.nbytes)
        far = None
        if self.is_narrow and (rows["shape"] == FAR).any():
            rows, far = self.joined(rows)
        elif len(rows) != self.count:
            raise BadRecording(f"a block of packed events tells of {self.count} in {len(rows)} rows")
        which = rows["shape"]
        if int(which.max()) >= self.shapes:
            raise BadRecording("a packed event of a shape that its block does not have")
        events = np.empty(self.count, EVENT)
        for name in COMMON:
            events[name] = shapes[name][which]
        times = [rows[name] + (shapes[name].astype(np.uint64) << np.uint64(32))[which] for name in ("since", "took")]
        if far is not None:
            times = [time + (far[name].astype(np.uint64) << np.uint64(16)) for time, name in zip(times, ("since", "took"))]
        if self.is_narrow:
            alike = events["kind"] == COMPLETION
            if far is not None:
                alike &= far["shape"] != FAR
            if alike[0]:
                raise BadRecording("a packed block begins with a completion of the call before it")
            times[0][alike] = 0
            # Of the last event before it that has times of its own.
            times[1] = times[1][np.maximum.accumulate(np.where(alike, 0, np.arange(self.count)))]
        events["begin"] = np.cumsum(times[0]) + np.uint64(self.begin)
        events["end"] = events["begin"] + times[1]
        number = rows["request"].astype(np.uint32)
        events["request"] = np.where(number > 0, number + np.uint32(self.requests), np.uint32(0))
        return events

    def joined(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Those of events; and of each the one before it that is of none, or zeros."""
        is_far = rows["shape"] == FAR
        if is_far[-1] or (is_far[1:] & is_far[:-1]).any():
            raise BadRecording("a packed row of times that no event follows")
        own = np.flatnonzero(~is_far)
        if len(own) != self.count:
            raise BadRecording(f"a block of packed events tells of {self.count}, and has {len(own)}")
        far = np.zeros(self.count, NARROW_ROW)
        has = np.flatnonzero(is_far[own - 1] & (own > 0))
        far[has] = rows[own[has] - 1]
        return rows[own], far


def unpacked_size(path: Path) -> int:
    """Bytes of a file if its events were not packed; of one that is damaged somewhere, what stands before that, and what
    it has at least. 0 of one that cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:
            return _unpacked_size(file.fileno(), os.fstat(file.fileno()).st_size)
    except OSError:
        return 0


def _unpacked_size(file: int, size: int) -> int:
    at, more, wanted = 0, 0, BLOCK.size + HEAD.size
    while at + wanted <= size:
        start = os.pread(file, wanted, at)
        if len(start) < wanted:
            break
        magic, kind, _thread, length, _first, _last = BLOCK.unpack_from(start)
        if magic != MAGIC:
            break
        if kind in (PACKED, NARROW):
            head = HEAD.unpack_from(start, BLOCK.size)
            count = min(head[4], length // NARROW_ROW.itemsize) if kind == NARROW else min(head[0], length // ROW.itemsize)
            more += max(0, count * EVENT.itemsize - length)
        at += BLOCK.size + length
    return size + more
