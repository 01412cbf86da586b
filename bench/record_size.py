#!/usr/bin/env python3
"""Large recordings: makes one of as many events as asked, lets `headway trace` read it, and prints what that takes
beside what is asked: 10^6 events a file under 60 MB; 10^8 events merged in 500 MB of memory; a page that opens in 3 s.
Exit code 1 where something is missed.

What is recorded here never ran: a stencil of so many ranks on some hosts, whose clocks differ. In each step a rank
posts two receives, computes for a drawn time, sends to both neighbours, waits for all, and enters a barrier of all: 10
events.

  python bench/record_size.py                                         # 10^6 events
  python bench/record_size.py --events 1e8 --keep /data/large         # 4.8 GB, and seven times as much while it is read
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools" / "headway"))
from headway.record import format as files  # noqa: E402
from headway.record.model import COLLECTIVE, COMPLETION, EVENT, RECEIVE, SEND  # noqa: E402

FUNCTIONS = [
    ["MPI_Init", "init"], ["MPI_Finalize", "finalize"], ["MPI_Irecv", "irecv"], ["MPI_Isend", "isend"],
    ["MPI_Waitall", "wait"], ["MPI_Barrier", "coll"],
]  # fmt: skip
A_STEP = 10  # events
BLOCK = 136  # steps in a block of events, as the layer writes them
AT_ONCE = 1 << 19  # rank-steps that are made at once
CALL, WIRE, WORK, LATE = 400, 3000, 40_000, 120_000  # ns
REAL, APART = 1_790_000_000 * 10**9, 3_000_000  # of the clocks
MOST_MEMORY, MOST_FILE, MOST_OPENING = 500e6, 60e6, 3.0


class Ranks:
    """The files, and where their ranks stand."""

    def __init__(self, folder: Path, size: int, hosts: int) -> None:
        self.size, self.hosts = size, hosts
        self.now, self.request = 10**9, 1
        self.written = np.zeros(size, np.int64)
        self.files = []
        for rank in range(size):
            header = {
                "rank": rank, "size": size, "host": f"node{rank % hosts}", "boot": f"boot {rank % hosts}",
                "pid": 1000 + rank, "program": "/made/stencil", "arguments": [], "mpi": "made", "ticks": "ns",
                "functions": FUNCTIONS, "started": REAL,
            }  # fmt: skip
            file = files.Writer(folder / f"rank-{rank}.hwr", header)
            self.files.append(file)
            self.clock(rank, self.now)
            file.communicators(
                [
                    {"id": 1, "parent": 0, "rank": rank, "members": [[0, size - 1]], "name": "MPI_COMM_WORLD"},
                    {"id": 2, "parent": 0, "rank": 0, "members": [[rank, rank]], "name": "MPI_COMM_SELF"},
                ]
            )
        self.all(0, 50_000)

    def clock(self, rank: int, ns: int) -> None:
        self.files[rank].clock((ns, ns, REAL + APART * (rank % self.hosts) + ns))

    def all(self, kind: int, ns: int) -> None:
        """A call of all ranks at once."""
        for rank, file in enumerate(self.files):
            event = np.zeros(1, EVENT)
            event["kind"], event["begin"], event["end"], event["site"] = kind, self.now, self.now + ns, 1 + kind
            event["peer"] = event["tag"] = -1
            file.events(event)
            self.written[rank] += 1
        self.now += ns

    def steps(self, count: int, draw: np.random.Generator) -> None:
        """So many of them, of all ranks."""
        # Most ranks work alike; now and then one is late, and every 16th has more to do.
        work = WORK * (1 + 0.2 * draw.random((count, self.size)))
        work += LATE * (draw.random((count, self.size)) < 0.01)
        work *= 1 + 0.3 * (np.arange(self.size) % 16 == 5)
        work = work.astype(np.int64)
        posted = 2 * CALL
        sent = posted + work  # since the step began
        waits = sent + 2 * CALL
        left, right = np.roll(sent, 1, axis=1), np.roll(sent, -1, axis=1) + CALL
        done = np.maximum(np.maximum(left, right), waits) + WIRE
        leaves = done.max(axis=1) + WIRE
        begins = self.now + np.concatenate(([0], np.cumsum(leaves + CALL)[:-1]))
        for rank in range(self.size):
            self.write(rank, begins, sent[:, rank], waits[:, rank], done[:, rank], leaves)
        self.now = int(begins[-1] + leaves[-1] + CALL)
        self.request += 4 * count

    def write(
        self, rank: int, begins: np.ndarray, sent: np.ndarray, waits: np.ndarray, done: np.ndarray, leaves: np.ndarray
    ) -> None:
        count = len(begins)
        e = np.zeros((count, A_STEP), EVENT)
        e["comm"], e["tag"], e["bytes"] = 1, 7, 8192
        before, behind = (rank - 1) % self.size, (rank + 1) % self.size
        request = self.request + 4 * np.arange(count)

        def put(
            at: int, kind: int, begin: np.ndarray, end: np.ndarray, site: int, peer: int, flags: int, number: int
        ) -> None:
            e["kind"][:, at], e["begin"][:, at], e["end"][:, at] = kind, begins + begin, begins + end
            e["site"][:, at], e["peer"][:, at], e["flags"][:, at] = site, peer, flags
            e["request"][:, at] = request + number if number >= 0 else 0

        zero = np.zeros(count, np.int64)
        put(0, 2, zero, zero + CALL, 3, before, RECEIVE, 0)
        put(1, 2, zero + CALL, zero + 2 * CALL, 4, behind, RECEIVE, 1)
        put(2, 3, sent, sent + CALL, 5, behind, SEND, 2)
        put(3, 3, sent + CALL, sent + 2 * CALL, 6, before, SEND, 3)
        put(4, 4, waits, done, 7, -1, 0, -1)
        e["tag"][:, 4] = 4
        for at, (peer, flag, number) in enumerate(
            ((before, RECEIVE, 0), (behind, RECEIVE, 1), (behind, SEND, 2), (before, SEND, 3)), start=5
        ):
            put(at, COMPLETION, waits, done, 7, peer, flag, number)
        put(9, 5, done, leaves, 8, -1, COLLECTIVE, -1)
        e["tag"][:, 9], e["bytes"][:, 9] = -1, 0
        for first in range(0, count, BLOCK):
            some = e[first : first + BLOCK].reshape(-1)
            self.files[rank].events(some)
            self.clock(rank, int(some["end"][-1]))
            self.written[rank] += len(some)

    def close(self) -> None:
        self.all(1, 50_000)
        for rank, file in enumerate(self.files):
            self.clock(rank, self.now)
            file.sites({"id": n, "module": "/made/stencil", "offset": 64 * n} for n in range(1, 9))
            file.end(int(self.written[rank]))
            file.file.close()


def make(folder: Path, events: int, size: int, hosts: int, seed: int) -> int:
    """How many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    ranks, draw = Ranks(folder, size, hosts), np.random.default_rng(seed)
    left = max(1, round((events / size - 2) / A_STEP))
    while left:
        count = min(left, max(BLOCK, AT_ONCE // size))
        ranks.steps(count, draw)
        left -= count
    ranks.close()
    return int(ranks.written.sum())


# The kernel's ru_maxrss of a child is at least what its parent had when it was started, which made the recording: so the
# command reads its own.
COMMAND = """
import atexit, re, resource, sys
from headway.record.command import main
def tell():
    found = re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())
    print("@@most", found[1] if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
atexit.register(tell)
sys.exit(main(sys.argv[1:]))
"""


def trace(folder: Path, words: list[str]) -> tuple[float, float, float, str]:
    """Seconds, those of the processor, bytes of memory at most, and what it said."""
    paths = os.pathsep.join(filter(None, (str(ROOT / "tools" / "headway"), os.environ.get("PYTHONPATH"))))
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words, str(folder)], capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": paths},
    )  # fmt: skip
    took = time.monotonic() - begin
    if done.returncode:
        raise SystemExit(f"headway trace {folder}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, used.ru_utime + used.ru_stime, most_memory(done.stderr), done.stdout


def most_memory(said: str) -> float:
    return 1024.0 * float(said.rpartition("@@most ")[2].split()[0])


def row(name: str, value: str, asked: str = "", good: bool = True) -> bool:
    print(f"{name:<34}{value:>14}   {asked:<14}{'' if good else 'MISSED'}".rstrip(), flush=True)
    return good


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    words.add_argument("--events", type=float, default=1e6, help="of all ranks (default 1e6)")
    words.add_argument("--ranks", type=int, default=0, help="default: one for each 1.5e6 events, at least 4")
    words.add_argument("--hosts", type=int, default=2)
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--keep", type=Path, help="make it here, and leave it; what is there is read again")
    words.add_argument("--browser", help="a Chromium or Chrome: how long its page takes to open")
    words.add_argument("--trace", default="", help="more options of headway trace, as one word")
    line = words.parse_args()
    size = line.ranks or max(4, round(line.events / 1.5e6))
    print(f"{'':<34}{'measured':>14}   asked", flush=True)
    with tempfile.TemporaryDirectory(prefix="headway-size-") as scratch:
        folder = line.keep or Path(scratch)
        if not list(folder.glob("*.hwr")):
            begin = time.monotonic()
            make(folder, int(line.events), size, line.hosts, line.seed)
            row("made in", f"{time.monotonic() - begin:.1f} s")
        return measure(folder, line.trace.split(), line.browser)


def measure(folder: Path, words: list[str], browser: str | None) -> int:
    recorded = list(folder.glob("*.hwr"))
    whole = sum(file.stat().st_size for file in recorded)
    events = sum(events_of(file) for file in recorded)
    row("events", f"{events:,}")
    row("ranks", f"{len(recorded):,}")
    a_million = whole / events * 1e6
    good = row("files, of 10^6 events", f"{a_million / 1e6:.1f} MB", "60 MB", a_million <= MOST_FILE)
    took, busy, memory, said = trace(folder, words)
    row("headway trace", f"{took:.1f} s")
    row("of the processor", f"{busy:.1f} s")
    good &= row("its memory", f"{memory / 1e6:.0f} MB", "500 MB", memory <= MOST_MEMORY)
    for name in ("trace.html", "trace.pftrace"):
        if (folder / name).exists():
            row(name, f"{(folder / name).stat().st_size / 1e6:.1f} MB")
    if browser:
        from page_opening import opening

        first, ready = opening(browser, folder / "trace.html")
        good &= row("the page: first picture", f"{first:.2f} s", "3 s", first <= MOST_OPENING)
        row("the page: all of it", f"{ready:.2f} s")
    print(said)
    return 0 if good else 1


def events_of(file: Path) -> int:
    """By its last block."""
    with file.open("rb") as data:
        data.seek(-256, os.SEEK_END)
        text = data.read().decode("utf-8", "replace")
    return int(text.split('"events": ')[1].split(",")[0])


if __name__ == "__main__":
    sys.exit(main())
