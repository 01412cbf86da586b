"""The communication matrix: messages, bytes and waiting, by pair of ranks and by communicator; only pairs that talk."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headway.record import classes, columns
from headway.record.columns import put, rest, room, take
from headway.record.entries import comms_of
from headway.record.waiting import Waiting, Waits
from headway.record.words import clean, ranks_text

OF_PAIRS = [classes.LATE_SENDER, classes.LATE_RECEIVER, classes.TRANSFER, classes.MISSING_PROGRESS]
OF_COLLECTIVES = [classes.LATE_PARTICIPANT, classes.LATE_ROOT, classes.EARLY_ROOT, classes.TRANSFER]


@dataclass
class Folded:
    """So few rows that they can be seen: ranks beside each other share one where there are more."""

    size: int  # of the world
    group: int  # ranks in a row
    messages: np.ndarray  # by sender and receiver
    bytes: np.ndarray
    waiting: np.ndarray

    def name(self, row: int) -> str:
        return ranks_text(row, self.group, self.size)


@dataclass
class Matrix:
    """Waiting: ns in calls for which a message (of those a call waited for, the one that counted) or a collective was
    waited for, both ranks of a pair together; without time in which a core was missing."""

    source: np.ndarray  # ranks of the world; one element a pair
    target: np.ndarray
    messages: np.ndarray
    bytes: np.ndarray
    waiting: np.ndarray
    comm_names: list[str]  # one element a communicator of the run
    comm_sizes: np.ndarray
    comm_messages: np.ndarray
    comm_bytes: np.ndarray  # of messages
    comm_collectives: np.ndarray
    comm_waiting: np.ndarray  # for messages
    comm_together: np.ndarray  # for collectives

    def folded(self, ranks: int, most: int) -> Folded:
        """Of a world of so many ranks, or more if there are messages of more, in so many rows at most."""
        size = max(ranks, 1 + int(max(self.source.max(initial=0), self.target.max(initial=0))))
        group = -(-size // most)
        pairs, wide = (self.source // group, self.target // group), -(-size // group)
        sums = np.zeros((3, wide, wide), np.int64)
        for found, column in zip(sums, (self.messages, self.bytes, self.waiting)):
            np.add.at(found, pairs, column)
        return Folded(size, group, *sums)

    def dense(self, column: np.ndarray, size: int) -> np.ndarray:
        """By sender and receiver, for a picture."""
        found = np.zeros((size, size), column.dtype)
        found[self.source, self.target] = column
        return found

    def write_pairs(self, file: Path) -> None:
        head = ("source", "target", "messages", "bytes", "waiting_ns")
        columns = self.source, self.target, self.messages, self.bytes, self.waiting
        _write(file, head, zip(*(c.tolist() for c in columns)))

    def write_comms(self, file: Path) -> None:
        head = ("communicator", "ranks", "messages", "bytes", "waiting_ns", "collectives", "waiting_for_collectives_ns")
        columns = (
            self.comm_sizes, self.comm_messages, self.comm_bytes, self.comm_waiting, self.comm_collectives,
            self.comm_together,
        )  # fmt: skip
        _write(file, head, zip(self.comm_names, *(c.tolist() for c in columns)))


def _write(file: Path, head: Iterable[str], rows: Iterable[tuple]) -> None:
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(head)
        writer.writerows(rows)


def matrix(waiting: Waiting) -> Matrix:
    run, waits = waiting.line.run, waiting.waits
    spill, count = run.spill, len(run.comms)
    waited = room(len(run.messages), np.int64, spill)
    together = room(len(run.collectives), np.int64, spill)
    _waited(waits.message, waits, OF_PAIRS, waited)
    _waited(waits.collective, waits, OF_COLLECTIVES, together)
    of_comms = np.zeros((3, count), np.int64)  # messages, bytes, waiting
    wide = 1
    for low in range(0, len(run.messages), columns.CHUNK):
        m = run.messages[low : low + columns.CHUNK]
        wide = max(wide, int(max(m["source"].max(), m["target"].max())) + 1)
        rest(run.messages)
    kept = []
    for low in range(0, len(run.messages), columns.CHUNK):
        m = run.messages[low : low + columns.CHUNK]
        good = np.flatnonzero((m["source"] >= 0) & (m["target"] >= 0) & (m["comm"] < count))
        source, target, comm = (m[name][good].astype(np.int64) for name in ("source", "target", "comm"))
        size = np.minimum(m["bytes"][good], np.uint64(1 << 60)).astype(np.int64)
        rows = np.stack((np.ones(len(good), np.int64), size, waited[low : low + len(m)][good]))
        for of_comm, row in zip(of_comms, rows):
            of_comm += _sum(comm, row, count)
        kept.append(_pairs(source * wide + target, rows))
        rest(run.messages, waited)
    nothing = np.zeros(0, np.int64), np.zeros((3, 0), np.int64)
    pairs, sums = _pairs(*(np.concatenate(some, axis=-1) for some in zip(nothing, *kept)))
    collectives = comms_of(waiting.line)
    return Matrix(
        *np.divmod(pairs, max(1, wide)),
        *sums,
        [clean(c.name).lstrip("=+-@") or f"communicator {number}" for number, c in enumerate(run.comms)],
        np.array([len(c.members) for c in run.comms], np.int64),
        *of_comms[:2],
        np.bincount(collectives, minlength=count),
        of_comms[2],
        _sum(collectives, together, count),
    )


def _waited(which: np.ndarray, waits: Waits, of: list[int], found: np.ndarray) -> None:
    """ns by message, or by collective."""
    found[:] = 0
    for low in range(0, len(which), columns.CHUNK):
        some = slice(low, low + columns.CHUNK)
        here = which[some] >= 0
        different, rows = _pairs(which[some][here], waits.parts[some][here][:, of].sum(axis=1)[None])
        put(found, different, take(found, different) + rows[0])
        waits.rest()


def _pairs(keys: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each key once, and its rows' sums."""
    different, which = np.unique(keys, return_inverse=True)
    return different, np.stack([_sum(which, row, len(different)) for row in rows])


def _sum(which: np.ndarray, column: np.ndarray, count: int) -> np.ndarray:
    found = np.zeros(count, np.int64)
    np.add.at(found, which, column)
    return found
