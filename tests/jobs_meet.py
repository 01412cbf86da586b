#!/usr/bin/env python3
"""Jobs that meet: two of our launcher's, or of none, by a published name; what is said where one of them
dies, where a stranger comes to the port, and while one waits for the other; and what is left behind."""

from __future__ import annotations

import concurrent.futures
import hashlib
import hmac
import os
import pathlib
import re
import socket
import struct
import sys
import time
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from harness import job, library  # noqa: E402
from harness.cases import Cases, expect  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
CASES = Cases()
case = CASES.case


class Bench:
    """Starts jobs of the program dyn_pair side by side."""

    def __init__(self, mpi: library.Headway):
        self.mpi = mpi
        self.command: list[str] = []
        self.output = ""
        self.patience = "10s"

    def start(self, ranks: int, words: list[str]) -> job.Result:
        """ranks 0: one process without a launcher."""
        program = str(self.mpi.program("dyn_pair"))
        launcher = [str(self.mpi.mpiexec), "-n", str(ranks)] if ranks else []
        self.command = [*launcher, program, *words]
        environment = {**self.mpi.environment(), "LD_LIBRARY_PATH": str(self.mpi.library)}
        environment.pop("XDG_RUNTIME_DIR", None)
        environment["HEADWAY_CONNECT_TIMEOUT"] = self.patience
        result = job.run(self.command, environment, 30, "dyn_pair")
        self.output += "".join(f"{words[0]}: {line}\n" for line in (result.output + result.story).splitlines())
        expect(result.code is not None, f"{words[0]}: no end after 30 s")
        expect(not result.left_behind, f"{words[0]}: left behind: {', '.join(result.left_behind)}")
        return result

    def side_by_side(self, *jobs: tuple[int, list[str]]) -> list[job.Result]:
        with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
            return [one.result() for one in [pool.submit(self.start, *one) for one in jobs]]


def good(result: job.Result, ranks: int) -> None:
    expect(result.code == 0, f"exit code {result.code}")
    expect(len(re.findall(r"^ok ", result.output, re.M)) == max(ranks, 1), "not all ranks said 'ok'")
    expect("hangs" not in result.output, "the launcher thinks that it hangs")


for left, right in ((1, 1), (2, 3), (4, 1), (0, 0), (0, 2)):
    @case(f"a job of {left} and one of {right} meet by a name (0: without a launcher)", left, right)
    def meet(bench, left, right):
        name = f"test {uuid.uuid4()}"
        served, called = bench.side_by_side((left, ["serve", name]), (right, ["call", name]))
        good(served, left)
        good(called, right)


@case("who connects may wait for long, and nobody is told that it hangs")
def late(bench):
    name = f"test {uuid.uuid4()}"
    served, called = bench.side_by_side((2, ["late", name]), (2, ["call", name]))
    good(served, 2)
    good(called, 2)


@case("strangers at the port are turned away, and hold nobody up for long")
def strangers(bench):
    name = f"test {uuid.uuid4()}"
    served, stranger, called = bench.side_by_side((2, ["serve", name]), (0, ["silent", name]),
                                                  (2, ["call", name]))
    good(served, 2)
    good(stranger, 0)
    good(called, 2)


@case("who has no descriptor left to accept or to connect with is told so, and does not wait for ever")
def crowded(bench):
    bench.patience = "1s"
    name = f"test {uuid.uuid4()}"
    for result in bench.side_by_side((1, ["crowded", name]), (0, ["silent", name]), (1, ["crowds", name])):
        good(result, 1)


class Liar:
    """Knows the secret of the port that a job has published, and then says what no library would. Layouts: spawn/talk.cc,
    spawn/meet.cc, spawn/row.h."""

    def __init__(self, name: str):
        file = pathlib.Path(f"/tmp/headway-names-{os.geteuid()}") / hashlib.sha256(name.encode()).hexdigest()
        until = time.monotonic() + 10
        while not file.exists() and time.monotonic() < until:
            time.sleep(0.01)
        secret, card = re.search(r"headway-port-1:(\w+):(.*)", file.read_text()).groups()
        self.key = bytes.fromhex(secret)
        self.socket = socket.create_connection(("127.0.0.1", int(card.split(",")[2])), timeout=10)
        own = struct.pack("<QII16s", 0x4865616477617931, 1, 0, bytes(16))
        self.say(own)
        theirs = self.hear(64)[:32]
        self.say(hmac.new(self.key, b"connect\0" + own + theirs, "sha256").digest())

    def say(self, data: bytes) -> None:
        self.socket.sendall(data)

    def hear(self, count: int) -> bytes:
        return self.socket.recv(count, socket.MSG_WAITALL)

    def start(self, size: int) -> None:
        self.say(struct.pack("<B3xIQ16s40s", 0, size, 0, b"", b""))
        self.hear(72)


def no_trouble_known(liar: Liar) -> None:
    liar.start(1)
    liar.say(b"\xc8")


def no_row(liar: Liar) -> None:
    liar.start(1)
    liar.say(b"\0")
    liar.hear(1)
    liar.say(struct.pack("<II", 1 << 31, 1 << 31) + b"x" * (64 + 640))
    liar.say(b"\0")


for lie, told in (("no processes", lambda liar: liar.start(0)),
                  ("4 G processes", lambda liar: liar.start(0xffffffff)),
                  ("a trouble that is none", no_trouble_known),
                  ("a row of letters", no_row)):
    @case(f"whoever knows the port and tells of {lie} gets a refusal, and breaks nothing", told)
    def lied(bench, told):
        name = f"test {uuid.uuid4()}"
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            served = pool.submit(bench.start, 2, ["serve", name])
            liar = Liar(name)
            told(liar)
            served = served.result()
        liar.socket.close()
        expect("another version of the library" in served.output, "the refusal is not told")
        expect("error in MPI_Comm_accept" in served.output and 0 < served.code < 128, f"exit code {served.code}")


@case("a rank dies: the job that is connected with its job ends, too, and says with whom it was")
def dies(bench):
    name = f"test {uuid.uuid4()}"
    served, fell = bench.side_by_side((3, ["serve", name]), (2, ["fall", name]))
    expect(fell.code == 137, f"the dead one's job: exit code {fell.code}")
    expect(served.code == 1, f"the other job: exit code {served.code}")
    expect(re.search(r"lost contact with rank \d of the other job headway_", served.output) is not None,
           "it does not say with whom")
    expect("rank 1" in fell.output and "SIGKILL" in fell.output, "the launcher names no rank")


@case("a spawned rank dies: its parents' job ends, too, and the rank is named")
def spawned_dies(bench):
    result = bench.start(2, ["parents"])
    expect(result.code == 1, f"exit code {result.code}")
    expect(re.search(r"mpiexec: rank 1 .*SIGKILL", result.output) is not None, "nobody names the rank")
    expect(re.search(r"lost contact with rank \d of the other job", result.output) is not None,
           "the parents do not say why")


for way in ("disconnects", "frees"):
    @case(f"who {way} is not held up by a job that has finalized instead", way)
    def finalized(bench, way):
        result = bench.start(2, [way])
        expect(result.code == 0, f"exit code {result.code}")
        expect(len(re.findall(rf"^ok {way}", result.output, re.M)) == 2, "not all parents said 'ok'")
        expect(len(re.findall(r"^ok ends", result.output, re.M)) == 6, "not all that were spawned ended well")


@case("the launcher waits for jobs that were spawned and have parted from their parents")
def parted(bench):
    result = bench.start(2, ["leave"])
    expect(result.code == 0, f"exit code {result.code}")
    expect(len(re.findall(r"^ok leave", result.output, re.M)) == 2, "not all parents said 'ok'")
    expect(re.search(r"^ok stays", result.output, re.M) is not None, "the spawned one did not end well")


if __name__ == "__main__":
    os.environ.pop("HEADWAY_SPAWN_PORT", None)
    sys.exit(CASES.main(__doc__, HERE.parent / "build", Bench, at_once=2))
