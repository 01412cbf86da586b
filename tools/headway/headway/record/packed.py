"""Packed blocks of events (docs/recording-format.md): each shape of event once, and 12 bytes an event.

They are unpacked block by block, so that nothing but the block that is looked at needs memory.
"""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path

import numpy as np

from .fields import MOST_TICKS, BadRecording
from .model import EVENT

MAGIC = 0x31525748
BLOCK = struct.Struct("<IHHQQQ")
PACKED = 9  # the block's type
HEAD = struct.Struct("<IIQII")  # events, shapes, begin of the first, what requests are counted from, 0
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
COMMON = ("kind", "thread", "flags", "site", "comm", "peer", "tag", "bytes")
MOST_ROWS = 1 << 16  # of a block


class Block:
    """One of them, as it lies in a mapped file."""

    def __init__(self, data: mmap.mmap | bytes, start: int, length: int) -> None:
        if length < HEAD.size:
            raise BadRecording(f"a block of packed events has {length} bytes, fewer than its beginning")
        self.data, self.start = data, start
        self.count, self.shapes, self.begin, self.requests, _ = HEAD.unpack_from(data, start)
        if not 0 < self.count <= MOST_ROWS:
            raise BadRecording(f"a block of {self.count} packed events, no number of 1 to {MOST_ROWS}")
        whole = HEAD.size + self.shapes * SHAPE.itemsize + self.count * ROW.itemsize
        if length != whole + -whole % 8:
            raise BadRecording(f"a block of packed events has {length} bytes, not the {whole + -whole % 8} that it tells of")
        if self.begin > MOST_TICKS:
            raise BadRecording("an event lies outside of what its block says")

    def __len__(self) -> int:
        return self.count

    def events(self) -> np.ndarray:
        """BadRecording where a row has no shape."""
        shapes = np.frombuffer(self.data, SHAPE, self.shapes, self.start + HEAD.size)
        rows = np.frombuffer(self.data, ROW, self.count, self.start + HEAD.size + shapes.nbytes)
        which = rows["shape"]
        if int(which.max()) >= self.shapes:
            raise BadRecording("a packed event of a shape that its block does not have")
        events = np.empty(self.count, EVENT)
        for name in COMMON:
            events[name] = shapes[name][which]
        since, took = (rows[name] + (shapes[name].astype(np.uint64) << np.uint64(32))[which] for name in ("since", "took"))
        events["begin"] = np.cumsum(since) + np.uint64(self.begin)
        events["end"] = events["begin"] + took
        number = rows["request"].astype(np.uint32)
        events["request"] = np.where(number > 0, number + np.uint32(self.requests), np.uint32(0))
        return events


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
        if kind == PACKED:
            count = min(HEAD.unpack_from(start, BLOCK.size)[0], length // ROW.itemsize)
            more += max(0, count * EVENT.itemsize - length)
        at += BLOCK.size + length
    return size + more
