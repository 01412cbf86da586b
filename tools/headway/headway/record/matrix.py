"""The communication matrix: messages, bytes and waiting, by pair of ranks and by communicator; only pairs that talk."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headway.record import classes
from headway.record.entries import comms_of
from headway.record.waiting import Waiting
from headway.record.words import clean

OF_PAIRS = [classes.LATE_SENDER, classes.LATE_RECEIVER, classes.TRANSFER, classes.MISSING_PROGRESS]
OF_COLLECTIVES = [classes.LATE_PARTICIPANT, classes.LATE_ROOT, classes.EARLY_ROOT, classes.TRANSFER]


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

    def dense(self, column: np.ndarray, size: int) -> np.ndarray:
        """By sender and receiver, for a picture."""
        found = np.zeros((size, size), column.dtype)
        found[self.source, self.target] = column
        return found

    def write_csv(self, pairs: Path, comms: Path) -> None:
        head = ("source", "target", "messages", "bytes", "waiting_ns")
        columns = self.source, self.target, self.messages, self.bytes, self.waiting
        _write(pairs, head, zip(*(c.tolist() for c in columns)))
        head = ("communicator", "ranks", "messages", "bytes", "waiting_ns", "collectives", "waiting_for_collectives_ns")
        columns = (
            self.comm_sizes, self.comm_messages, self.comm_bytes, self.comm_waiting, self.comm_collectives,
            self.comm_together,
        )  # fmt: skip
        _write(comms, head, zip(self.comm_names, *(c.tolist() for c in columns)))


def _write(file: Path, head: Iterable[str], rows: Iterable[tuple]) -> None:
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(head)
        writer.writerows(rows)


def matrix(waiting: Waiting) -> Matrix:
    run, waits = waiting.line.run, waiting.waits
    m = run.messages
    good = np.flatnonzero((m["source"] >= 0) & (m["target"] >= 0) & (m["comm"] < len(run.comms)))
    source, target, comm = (m[name][good].astype(np.int64) for name in ("source", "target", "comm"))
    size = np.minimum(m["bytes"][good], np.uint64(1 << 60)).astype(np.int64)
    waited = np.zeros(len(m), np.int64)
    some = waits.message >= 0
    np.add.at(waited, waits.message[some], waits.parts[some][:, OF_PAIRS].sum(axis=1))
    waited = waited[good]
    wide = int(max(source.max(initial=0), target.max(initial=0))) + 1
    pairs, which = np.unique(source * wide + target, return_inverse=True)
    count = len(run.comms)
    collectives = comms_of(waiting.line)
    together = np.zeros(len(collectives), np.int64)
    some = waits.collective >= 0
    np.add.at(together, waits.collective[some], waits.parts[some][:, OF_COLLECTIVES].sum(axis=1))
    return Matrix(
        *np.divmod(pairs, wide),
        np.bincount(which, minlength=len(pairs)),
        _sum(which, size, len(pairs)),
        _sum(which, waited, len(pairs)),
        [clean(c.name).lstrip("=+-@") or f"communicator {number}" for number, c in enumerate(run.comms)],
        np.array([len(c.members) for c in run.comms], np.int64),
        np.bincount(comm, minlength=count),
        _sum(comm, size, count),
        np.bincount(collectives, minlength=count),
        _sum(comm, waited, count),
        _sum(collectives, together, count),
    )


def _sum(which: np.ndarray, column: np.ndarray, count: int) -> np.ndarray:
    found = np.zeros(count, np.int64)
    np.add.at(found, which, column)
    return found
