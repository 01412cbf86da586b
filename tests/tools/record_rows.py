"""Recordings row by row, for tests that need one of a certain kind."""

from pathlib import Path

import numpy as np

import record_made as made
from headway.record.format import Writer
from headway.record.model import EVENT

NONE = -1


def row(kind, flags, begin, end, comm=0, peer=NONE, tag=NONE, request=0, size=0, thread=0):
    return (kind, thread, flags, 0, begin, end, comm, peer, tag, request, size)


def write(folder, rank, size, rows, host="h", comms=(), points=None, name=None):
    """A file of these rows; a new block whenever the thread changes."""
    points = [(0, 10**9, 10**18), (10**6, 10**9 + 10**6, 10**18 + 10**6)] if points is None else points
    with Writer(Path(folder, name or f"rank-{rank}.hwr"), made.header(rank, size, host, "ns")) as file:
        file.clock(*points)
        file.communicators(comms)
        events = np.array(rows, EVENT)
        for block in np.split(events, np.flatnonzero(np.diff(events["thread"])) + 1):
            file.events(block)
        file.end(len(events))


def calls(*rows):
    """Rows of (name, flags, more): each takes its own 10 ns."""
    made_of = []
    for place, (name, flags, *more) in enumerate(rows):
        more = more or [{}]
        begin = 100 + 20 * place
        made_of.append(row(made.KIND[name], flags, begin, begin + 10, **({"comm": 1} | more[0])))
    return made_of
