"""Runs that are made, not recorded: what each call waits for is drawn first, the events follow from it.

A Made is a run of some ranks that grows step by step. A step begins when all ranks are there (they compute until then),
draws one cause of waiting and writes what a recorder would have seen of it. Beside it stands the truth: for each call
its ns by class, and who caused them. Nothing of it is computed as the tool does.
"""

import numpy as np

from headway.record import classes as c
from headway.record.model import (
    COLLECTIVE, COMPLETION, CORE_TAKEN, EVENT, MESSAGE, RECEIVE, SEND, Collective, Comm, GlobalComm, Rank, Run, Site,
)  # fmt: skip

FUNCTIONS = [
    ("MPI_Init", "init"), ("MPI_Finalize", "finalize"), ("MPI_Send", "send"), ("MPI_Ssend", "send"),
    ("MPI_Isend", "isend"), ("MPI_Recv", "recv"), ("MPI_Irecv", "irecv"), ("MPI_Wait", "wait"),
    ("MPI_Waitall", "wait"), ("MPI_Probe", "probe"), ("MPI_Sendrecv", "sendrecv"), ("MPI_Barrier", "coll"),
    ("MPI_Allreduce", "coll"), ("MPI_Alltoallv", "coll"), ("MPI_Bcast", "coll"), ("MPI_Scatterv", "coll"),
    ("MPI_Reduce", "coll"), ("MPI_Gather", "coll"), ("MPI_Scan", "coll"), ("MPI_Exscan", "coll"),
    ("MPI_Iallreduce", "icoll"), ("MPI_Ibcast", "icoll"), ("MPI_Neighbor_alltoall", "coll"), ("MPI_Test", "test"),
    ("MPI_Comm_dup", "comm"),
]  # fmt: skip
KIND = {name: kind for kind, (name, _) in enumerate(FUNCTIONS)}
CALL = 200  # ns that a call takes which does not wait
ONE_HOST, BETWEEN = (500.0, 0.1), (20_000.0, 1.0)  # ns, ns a byte


class Made:
    def __init__(self, draw, size=4, hosts=1, noise=0.01):
        self.draw, self.size, self.noise = draw, size, noise
        self.host = [rank * hosts // size for rank in range(size)]
        self.now = [0] * size
        self.events = [[] for _ in range(size)]
        self.messages, self.collectives, self.request = [], [], [0] * size
        self.truth = {}  # (rank, event): ns by class
        self.blame = {}  # (rank, event): rank
        self.hidden = []  # (sender or receiver, message, ns of it hidden)
        self.sites = {}
        for rank in range(size):
            self.put(rank, "MPI_Init", 1000)

    # ---- what a recorder writes --------------------------------------------------------------------
    def add(self, rank, kind, begin, end, **fields):
        self.events[rank].append((kind, begin, end, fields))
        return len(self.events[rank]) - 1

    def put(self, rank, name, ns=CALL, site=None, thread=0, **fields):
        """A call that takes so long; the rank's clock is at its end."""
        begin = self.now[rank]
        self.now[rank] = begin + ns
        site = self.sites.setdefault(site or f"{name}.c", len(self.sites) + 1)
        return self.add(rank, KIND[name], begin, begin + ns, site=site, thread=thread, **fields)

    def isend(self, rank, peer, size, **more):
        self.request[rank] += 1
        return self.put(rank, "MPI_Isend", flags=SEND, peer=peer, bytes=size, request=self.request[rank], **more)

    def irecv(self, rank, peer, size, **more):
        self.request[rank] += 1
        return self.put(rank, "MPI_Irecv", flags=RECEIVE, peer=peer, bytes=size, request=self.request[rank], **more)

    def until(self, rank, name, end, **fields):
        return self.put(rank, name, end - self.now[rank], **fields)

    def message(self, source, target, size, sent, left, posted, came, tag=0):
        self.messages.append((source, target, sent, left, posted, came, size, tag, 0))
        return len(self.messages) - 1

    def is_true(self, rank, event, blame=None, **parts):
        """`parts`: class's name in small letters, ns."""
        row = self.truth.setdefault((rank, event), np.zeros(c.COUNT))
        for name, ns in parts.items():
            row[getattr(c, name.upper())] += ns
        if blame is not None:
            self.blame[rank, event] = blame

    def core_taken(self, rank, begin, end, ns, thread=0):
        self.add(rank, CORE_TAKEN, begin, end, bytes=ns, peer=-1, tag=-1, thread=thread)

    def compute(self, rank, ns):
        self.now[rank] += ns

    def together(self, rest=5000):
        self.now = [max(self.now) + rest] * self.size

    def pair(self):
        return self.draw.sample(range(self.size), 2)

    def some(self, low=50_000, high=500_000):
        return self.draw.randrange(low, high)

    def bytes(self):
        return 1 << self.draw.randrange(8, 17)

    def need(self, source, target, size):
        """What the transfer takes; others' traffic now and then."""
        latency, per_byte = ONE_HOST if self.host[source] == self.host[target] else BETWEEN
        return int((latency + per_byte * size) * (1 + self.draw.random() * self.noise))

    # ---- steps: one cause each ---------------------------------------------------------------------
    def late_sender(self):
        (s, r), d, size = self.pair(), self.some(), self.bytes()
        t, need = self.now[r], self.need(s, r, size)
        form = self.draw.choice(("recv", "wait", "waitall"))
        self.compute(s, d)
        sent = self.put(s, "MPI_Send", need, site="late.c", flags=SEND, peer=r, bytes=size)
        self.is_true(s, sent, transfer=need)
        if form == "recv":
            posted = came = self.until(r, "MPI_Recv", t + d + need, flags=RECEIVE, peer=s, bytes=size)
            waits = d
        else:
            posted = self.irecv(r, s, size)
            waits = d - CALL
            came = self.until(r, "MPI_Wait" if form == "wait" else "MPI_Waitall", t + d + need, request=0, tag=1)
            self.add(r, COMPLETION, t + CALL, t + d + need, flags=RECEIVE, peer=s, bytes=size, request=self.request[r])
        self.is_true(r, came, blame=s, late_sender=waits, transfer=need)
        self.message(s, r, size, sent, sent, posted, came)

    def late_receiver(self):
        (s, r), d, size = self.pair(), self.some(), self.bytes()
        t, need = self.now[s], self.need(s, r, size)
        if self.draw.random() < 0.5:
            sent = left = self.put(s, "MPI_Ssend", d + need, flags=SEND, peer=r, bytes=size)
            waits = d
        else:
            sent = self.isend(s, r, size)
            left = self.until(s, "MPI_Wait", t + d + need, flags=SEND, request=self.request[s])
            waits = d - CALL
        self.compute(r, d)
        came = self.put(r, "MPI_Recv", need, site="late.c", flags=RECEIVE, peer=s, bytes=size)
        self.is_true(s, left, blame=r, late_receiver=waits, transfer=need)
        self.is_true(r, came, transfer=need)
        self.message(s, r, size, sent, left, came, came)

    def copied(self):
        """A send that needs no receiver; the receive comes later and finds the data."""
        (s, r), d = self.pair(), self.some()
        sent = self.put(s, "MPI_Send", 700, flags=SEND, peer=r, bytes=128)
        self.is_true(s, sent, transfer=700)
        self.compute(r, d)
        came = self.put(r, "MPI_Recv", 300, flags=RECEIVE, peer=s, bytes=128)
        self.is_true(r, came, transfer=300)
        self.message(s, r, 128, sent, sent, came, came)

    def no_progress(self):
        """Irecv or Isend, then computation, in which nothing moves."""
        (s, r), d, size = self.pair(), self.some(), 1 << self.draw.randrange(15, 18)
        who = self.draw.choice((s, r))
        t, need = self.now[s], self.need(s, r, size)
        sent, posted = self.isend(s, r, size), self.irecv(r, s, size)
        other = r if who == s else s
        self.compute(who, d)
        done = self.now[who] + need
        ends = {}
        for rank in (s, r):
            begin = self.now[rank]
            flag = SEND if rank == s else RECEIVE
            ends[rank] = self.until(rank, "MPI_Wait", done, flags=flag, request=self.request[rank])
            ideal = max(0, t + need - begin)
            self.is_true(rank, ends[rank], blame=who, transfer=ideal, missing_progress=done - begin - ideal)
        assert other != who
        self.message(s, r, size, sent, ends[s], posted, ends[r])

    def neither_progresses(self):
        """Both compute, the sender longer, and nothing moves before both are in their waits."""
        (s, r), d, size = self.pair(), self.some(), 1 << self.draw.randrange(15, 18)
        t, need = self.now[s], self.need(s, r, size)
        sent, posted = self.isend(s, r, size), self.irecv(r, s, size)
        self.compute(s, 2 * d)
        self.compute(r, d)
        done = self.now[s] + need
        ends = {}
        for rank in (s, r):
            begin = self.now[rank]
            flag = SEND if rank == s else RECEIVE
            ends[rank] = self.until(rank, "MPI_Wait", done, flags=flag, request=self.request[rank])
            ideal = max(0, t + need - begin)
            self.is_true(rank, ends[rank], blame=s, transfer=ideal, missing_progress=done - begin - ideal)
        self.message(s, r, size, sent, ends[s], posted, ends[r])

    def hides(self):
        """Irecv and Isend, and all moves while both compute: nobody waits."""
        (s, r), size = self.pair(), self.bytes()
        need, t = self.need(s, r, size), self.now[0]
        sent, posted = self.isend(s, r, size), self.irecv(r, s, size)
        ends = {}
        for rank in (s, r):
            self.compute(rank, need + self.some())
            flag = SEND if rank == s else RECEIVE
            ends[rank] = self.put(rank, "MPI_Wait", flags=flag, request=self.request[rank])
            self.is_true(rank, ends[rank], in_mpi=CALL)
        self.message(s, r, size, sent, ends[s], posted, ends[r])
        assert t + need < min(self.now[s], self.now[r])

    def congestion(self):
        """Both are there all the time, and it takes long."""
        (s, r), size = self.pair(), self.bytes()
        need = self.need(s, r, size) + self.some()
        sent = self.put(s, "MPI_Ssend", need, flags=SEND, peer=r, bytes=size)
        came = self.put(r, "MPI_Recv", need, flags=RECEIVE, peer=s, bytes=size)
        self.is_true(s, sent, transfer=need)
        self.is_true(r, came, transfer=need)
        self.message(s, r, size, sent, sent, came, came)

    def exchange(self):
        """Sendrecv, both ways; one side comes later. Two records a call."""
        (s, r), d, size = self.pair(), self.some(), self.bytes()
        need = self.need(s, r, size)
        self.compute(s, d)
        done = self.now[s] + need
        both = {}
        for one, other in ((s, r), (r, s)):
            begin = self.now[one]
            first = self.until(one, "MPI_Sendrecv", done, flags=SEND, peer=other, bytes=size)
            site = self.events[one][first][3]["site"]
            self.add(one, KIND["MPI_Sendrecv"], begin, done, flags=RECEIVE, peer=other, bytes=size, site=site)
            both[one] = first
        self.is_true(r, both[r], blame=s, late_sender=d, transfer=need)
        self.is_true(s, both[s], transfer=need)
        self.message(s, r, size, both[s], both[s], both[r] + 1, both[r] + 1)
        self.message(r, s, size, both[r], both[r], both[s] + 1, both[s] + 1)

    def two_at_once(self):
        """A wait for two receives, of which the second sender is late; the last of both counts."""
        if self.size < 3:
            return self.late_sender()
        (a, b, r), d, size = self.draw.sample(range(self.size), 3), self.some(), self.bytes()
        t, posted = self.now[r], {}
        for rank, late in ((a, d // 3), (b, d)):
            posted[rank] = self.irecv(r, rank, size)
        need = self.need(b, r, size)
        done = t + d + max(need, self.need(a, r, size))
        begin = self.now[r]
        came = self.until(r, "MPI_Waitall", done, tag=2)
        for rank, late in ((a, d // 3), (b, d)):
            self.compute(rank, late)
            own = done - self.now[rank] if rank == b else self.need(a, r, size)
            sent = self.put(rank, "MPI_Send", own, flags=SEND, peer=r, bytes=size)
            self.is_true(rank, sent, transfer=own)
            self.message(rank, r, size, sent, sent, posted[rank], came)
            self.add(r, COMPLETION, begin, done, flags=RECEIVE, peer=rank, bytes=size, request=0)
        self.is_true(r, came, blame=b, late_sender=t + d - begin, transfer=done - t - d)

    def probe(self):
        (s, r), d = self.pair(), self.some()
        latency, need = self.need(s, r, 0), self.need(s, r, 4096)
        self.compute(s, d)
        sent = self.put(s, "MPI_Send", latency + need, flags=SEND, peer=r, bytes=4096, tag=3)
        asked = self.put(r, "MPI_Probe", d + latency, flags=RECEIVE, peer=s, tag=3, bytes=4096)
        came = self.put(r, "MPI_Recv", need, flags=RECEIVE, peer=s, tag=3, bytes=4096)
        self.is_true(r, asked, blame=s, late_sender=d, transfer=latency)
        self.is_true(r, came, transfer=need)
        self.is_true(s, sent, blame=r, late_receiver=latency, transfer=need)  # probed is not posted
        self.message(s, r, 4096, sent, sent, came, came, tag=3)

    def no_core(self):
        """The receiver is awake and has no core: behind the arrival, or while it polls for a late sender."""
        (s, r), d, size = self.pair(), self.some(), self.bytes()
        t, need, taken = self.now[r], self.need(s, r, size), self.some(10_000, 40_000)
        behind = self.draw.random() < 0.5
        self.compute(s, d)
        sent = self.put(s, "MPI_Send", need, flags=SEND, peer=r, bytes=size)
        end = t + d + need + taken * behind
        came = self.until(r, "MPI_Recv", end, flags=RECEIVE, peer=s, bytes=size)
        self.core_taken(r, t, end, taken)
        self.is_true(s, sent, transfer=need)
        self.is_true(r, came, blame=s, late_sender=d - taken * (not behind), transfer=need, no_core=taken)
        self.message(s, r, size, sent, sent, came, came)

    def unknown(self):
        """A wait for something that is no message."""
        rank, ns = self.draw.randrange(self.size), self.some()
        self.is_true(rank, self.put(rank, "MPI_Wait", ns, tag=0), rest=ns)

    def _collective(self, name, ends, root=-1, through=None):
        ranks = list(range(self.size))
        entered = through or {}
        events = {}
        for rank in ranks:
            events[rank] = self.until(rank, name, ends[rank], flags=COLLECTIVE, peer=root, bytes=8)
        begun = [entered.get(rank, events[rank]) for rank in ranks]
        number = len(self.collectives)
        kind = self.events[0][begun[0]][0]
        columns = (np.array(column) for column in (ranks, begun, list(events.values())))
        self.collectives.append(Collective(0, number, FUNCTIONS[kind][0], root, *columns))
        return events

    def late_participant(self):
        name = self.draw.choice(("MPI_Barrier", "MPI_Allreduce", "MPI_Alltoallv", "MPI_Comm_dup"))
        late, d, wire = self.draw.randrange(self.size), self.some(), self.some(1000, 30_000)
        t = self.now[0]
        self.compute(late, d)
        for rank, event in self._collective(name, [t + d + wire] * self.size).items():
            waited = 0 if rank == late else d
            self.is_true(rank, event, blame=None if rank == late else late, late_participant=waited, transfer=wire)

    def late_in_nonblocking(self):
        """All compute between the start and the wait; the late one starts later."""
        late, d, wire, more = self.draw.randrange(self.size), self.some(200_000), 20_000, 50_000
        t = self.now[0]
        self.compute(late, d)
        begun = {r: self.put(r, "MPI_Iallreduce", flags=COLLECTIVE, bytes=8, request=1) for r in range(self.size)}
        for rank in range(self.size):
            self.compute(rank, more)
        end = t + d + more + CALL + wire
        for rank, event in self._collective("MPI_Wait", [end] * self.size, through=begun).items():
            waited = 0 if rank == late else d - more - CALL
            transfer = wire if rank == late else end - t - d
            self.is_true(rank, event, blame=None if rank == late else late, late_participant=waited, transfer=transfer)

    def scan(self):
        name = self.draw.choice(("MPI_Scan", "MPI_Exscan"))
        late, d, wire, t = self.draw.randrange(self.size), self.some(), 5000, self.now[0]
        self.compute(late, d)
        ends = [t + wire + (d if rank >= late else 0) for rank in range(self.size)]
        for rank, event in self._collective(name, ends).items():
            waited = d if rank > late else 0
            self.is_true(rank, event, blame=late if rank > late else None, late_participant=waited, transfer=wire)

    def late_root(self):
        name = self.draw.choice(("MPI_Bcast", "MPI_Scatterv"))
        root, d, wire, t = self.draw.randrange(self.size), self.some(), self.some(1000, 30_000), self.now[0]
        self.compute(root, d)
        for rank, event in self._collective(name, [t + d + wire] * self.size, root).items():
            waited = 0 if rank == root else d
            self.is_true(rank, event, blame=None if rank == root else root, late_root=waited, transfer=wire)

    def early_root(self):
        name = self.draw.choice(("MPI_Reduce", "MPI_Gather"))
        (root, late), d, wire, t = self.pair(), self.some(), self.some(1000, 30_000), self.now[0]
        self.compute(late, d)
        ends = [t + wire + (d if rank in (root, late) else 0) for rank in range(self.size)]
        for rank, event in self._collective(name, ends, root).items():
            waited = d if rank == root else 0
            self.is_true(rank, event, blame=late if rank == root else None, early_root=waited, transfer=wire)

    def neighbours(self):
        """Who needs whom is not known."""
        ns = self.some()
        for rank, event in self._collective("MPI_Neighbor_alltoall", [self.now[0] + ns] * self.size).items():
            self.is_true(rank, event, rest=ns)

    STEPS = (
        late_sender, late_receiver, copied, no_progress, neither_progresses, hides, congestion, exchange, two_at_once,
        probe, no_core, unknown, late_participant, late_in_nonblocking, scan, late_root, early_root, neighbours,
    )  # fmt: skip

    # ---- the run -----------------------------------------------------------------------------------
    def run(self, folder="headway-run-1"):
        self.together()
        for rank in range(self.size):
            self.put(rank, "MPI_Finalize", 1000)
        sites = {number: Site("prog", 0, f"/src/{file}", 10 + number, "main") for file, number in self.sites.items()}
        world = np.arange(self.size)
        ranks = []
        for rank, rows in enumerate(self.events):
            e = np.zeros(len(rows), EVENT)
            for at, (kind, begin, end, fields) in enumerate(rows):
                e[at]["kind"], e[at]["begin"], e[at]["end"] = kind, begin, end
                e[at]["comm"] = 1
                for name, value in fields.items():
                    e[at][name] = value
            begin, end = e["begin"].astype(np.int64), e["end"].astype(np.int64)
            names, families = (list(column) for column in zip(*FUNCTIONS))
            comms = {1: Comm(1, 0, "", 0, rank, world, "MPI_COMM_WORLD")}
            boot = f"boot{self.host[rank]}"
            header = {"program": "./solver", "size": self.size}
            ranks.append(Rank(rank, boot, boot, header, e, begin, end, names, families, sites, comms, True))
        messages = np.array(self.messages, MESSAGE) if self.messages else np.zeros(0, MESSAGE)
        return Run(folder, ranks, [GlobalComm(world, "MPI_COMM_WORLD", "")], messages, self.collectives)


def drawn(draw, steps=60):
    """A program of all causes in an order and of amounts that are drawn."""
    made = Made(draw, size=draw.randrange(2, 9), hosts=draw.choice((1, 1, 2)))
    for _ in range(25):  # from which the tool learns what a transfer needs
        made.together()
        draw.choice((Made.late_sender, Made.late_receiver))(made)
    order = list(Made.STEPS) * (1 + steps // len(Made.STEPS))
    draw.shuffle(order)
    for step in order[:steps]:
        made.together()
        step(made)
    return made
