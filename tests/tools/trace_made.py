"""Runs made by hand, whose answers are known: a maker of events, of ranks and of what belongs together."""

import numpy as np

from headway.record import model
from headway.record.model import Collective, Comm, GlobalComm, Rank, Run, Site

FUNCTIONS = [
    ("MPI_Init", "init"), ("MPI_Finalize", "finalize"), ("MPI_Send", "send"), ("MPI_Recv", "recv"),
    ("MPI_Isend", "isend"), ("MPI_Irecv", "irecv"), ("MPI_Wait", "wait"), ("MPI_Waitall", "wait"), ("MPI_Test", "test"),
    ("MPI_Sendrecv", "sendrecv"), ("MPI_Startall", "start"), ("MPI_Allreduce", "coll"), ("MPI_Ibarrier", "icoll"),
    ("MPI_Comm_dup", "comm"), ("MPI_Bcast", "coll"),
]  # fmt: skip
KIND = {name: k for k, (name, _) in enumerate(FUNCTIONS)}
MS = 1_000_000
HOSTILE = "</script><img src=x onerror=alert(1)>\"'&\0\x1b[31m\u202e\u2028{{}}<!--"


class Maker:
    """Of one rank. Times in ns."""

    def __init__(self, rank, size, host="node0"):
        self.rank, self.size, self.host = rank, size, host
        self.rows = []
        self.sites = {
            1: Site(file="/src/halo.c", line=214, function="exchange"),
            2: Site(module="/bin/prog", offset=0x1234),
        }
        members = np.arange(size)
        self.comms = {
            1: Comm(1, 0, "", 0, rank, members, "MPI_COMM_WORLD"),
            2: Comm(2, 0, "", 0, 0, np.array([rank]), "MPI_COMM_SELF"),
        }
        self.functions = [n for n, _ in FUNCTIONS]
        self.families = [f for _, f in FUNCTIONS]

    def call(self, name, begin, end, thread=0, flags=0, site=1, comm=1, peer=-1, tag=-1, request=0, bytes=0):
        kind = KIND[name] if isinstance(name, str) else name
        self.rows.append((kind, thread, flags, site, begin, end, comm, peer, tag, request, bytes))
        return len(self.rows) - 1

    def made(self):
        events = np.array(self.rows, model.EVENT) if len(self.rows) else np.zeros(0, model.EVENT)
        begin, end = events["begin"].astype(np.int64), events["end"].astype(np.int64)
        header = {"size": self.size, "program": "prog"}
        return Rank(
            self.rank, self.host, "boot", header, events, begin, end, self.functions, self.families, self.sites,
            self.comms, True,
        )  # fmt: skip


def run_of(makers, messages=(), collectives=(), notes=(), comms=None):
    size = makers[0].size if makers else 0
    comms = comms or [GlobalComm(np.arange(size), "MPI_COMM_WORLD", "")]
    made = np.array(list(messages), model.MESSAGE) if messages else np.zeros(0, model.MESSAGE)
    return Run("headway-run-1", [m.made() for m in makers], comms, made, list(collectives), list(notes))


def halo():
    """Two ranks. 0 computes 10 ms, sends to 1, and waits; 1 has waited in Recv since 2 ms. Then both Allreduce.

    In all: 0 is 1 + 4 ms in MPI of 20, 1 is 11 + 4."""
    a, b = Maker(0, 2, "node0"), Maker(1, 2, "node1")
    s, r, c = model.SEND, model.RECEIVE, model.COLLECTIVE
    sent = a.call("MPI_Isend", 10 * MS, 10 * MS + MS // 2, flags=s, peer=1, tag=7, request=1, bytes=4096)
    left = a.call("MPI_Wait", 10 * MS + MS // 2, 11 * MS, flags=s, peer=1, tag=7, request=1, bytes=4096, site=2)
    a0 = a.call("MPI_Allreduce", 16 * MS, 20 * MS, flags=c, bytes=8)
    posted = b.call("MPI_Recv", 2 * MS, 13 * MS, flags=r, peer=0, tag=7, bytes=4096)
    b0 = b.call("MPI_Allreduce", 16 * MS, 20 * MS, flags=c, bytes=8)
    message = (0, 1, sent, left, posted, posted, 4096, 7, 0)
    one = Collective(0, 0, "MPI_Allreduce", -1, np.array([0, 1]), np.array([a0, b0]), np.array([a0, b0]))
    return run_of([a, b], [message], [one])
