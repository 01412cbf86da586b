#!/usr/bin/env python3
"""Nobody else becomes a rank: who reads all that ranks say to each other, and says it again, as it
was or changed, delivers no message. And where all ranks are on one host, nobody on another can
reach their listeners."""

import os
import pathlib
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from support import Bench, Cases, Skip, expect, namespaces  # noqa: E402

CASES = Cases()
TRIES = 100
INSIDE = "HEADWAY_TEST_IMPOSTOR_INSIDE"
LISTENS = re.compile(r"rank (\d+) listens on \S*:(\d+)")
TO_AT = 16  # in a Hello, behind magic, version and the dialling rank
LIMIT = 60

# A network of its own: loopback, and an address that other hosts could dial.
NETWORK = """ip link set lo up
ip link add cable type veth peer name other
ip addr add 10.9.0.1/24 dev cable
ip link set cable up
ip link set other up
"""


class Wire:
    """Reads everything that crosses the loopback device: what each connection said, by its ends."""

    def __init__(self):
        try:
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
        except PermissionError as error:
            raise Skip(f"the wire cannot be read here: {error}") from error
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.socket.bind(("lo", 0))
        self.said = {}

    def read(self):
        while select.select([self.socket], [], [], 0)[0]:
            packet, where = self.socket.recvfrom(65536 + 64)
            if where[2] == socket.PACKET_OUTGOING or packet[12:14] != b"\x08\x00":
                continue
            ip = packet[14:]
            tcp = ip[(ip[0] & 15) * 4:struct.unpack(">H", ip[2:4])[0]]
            if ip[9] != 6:
                continue
            source, target, sequence = struct.unpack(">HHI", tcp[:8])
            text = tcp[(tcp[12] >> 4) * 4:]
            if text:
                self.said.setdefault((source, target), {})[sequence] = text

    def to_port(self, port):
        """What the first connection to that port said, from its beginning."""
        for (_, target), pieces in self.said.items():
            if target == port:
                return b"".join(pieces[s] for s in sorted(pieces))
        return b""


class Job:
    """A job under way; `says` is what its ranks and the library have printed so far."""

    def __init__(self, bench, ranks, program, words, **settings):
        environment = {**bench.mpi.environment(),
                       **{f"HEADWAY_{name}": value for name, value in settings.items()}}
        bench.command = [str(bench.mpi.mpiexec), "-n", str(ranks),
                         str(bench.mpi.build / "tests" / "places" / program), *words]
        self.output = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(bench.command, env=environment, stdout=self.output,
                                        stderr=subprocess.STDOUT, start_new_session=True)
        self.bench = bench

    def says(self):
        self.output.seek(0)
        self.bench.output = self.output.read()
        return self.bench.output

    def wait_for(self, done, what):
        end = time.monotonic() + LIMIT
        while not (found := done()):
            expect(self.process.poll() is None, f"the job ended before {what}")
            expect(time.monotonic() < end, f"no {what} within {LIMIT} s")
            time.sleep(0.02)
        return found

    def end(self):
        try:
            code = self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            code = None
        self.stop()
        self.says()
        return code

    def stop(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def listeners(job):
    return job.wait_for(lambda: (found := dict(LISTENS.findall(job.says()))) and len(found) == 3
                        and {int(rank): int(port) for rank, port in found.items()},
                        "word of three listeners")


def say(port, text, pieces):
    """Dials that port, says the text piece by piece, each behind an answer to the one before."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as dialled:
            dialled.settimeout(0.1)
            for piece in pieces(text):
                dialled.sendall(piece)
                try:
                    if not dialled.recv(4096):
                        return
                except TimeoutError:
                    pass  # no answer is due to every piece
    except OSError:
        pass  # turned away


def split_at(*lengths):
    def pieces(text):
        for length in lengths:
            yield text[:length]
            text = text[length:]
        yield text
    return pieces


def opening(text):
    """Lengths of Hello and Confirm in this version of the protocol, which stands behind its magic."""
    version = struct.unpack("<I", text[8:12])[0]
    return {1: (40, 16), 2: (88, 40), 3: (88, 40)}[version]


def patched(text, rank):
    return text[:TO_AT] + struct.pack("<I", rank) + text[TO_AT + 4:]


@CASES.case("what was read on the wire and is said again delivers nothing, of 100 tries each")
def impostor(bench):
    wire = Wire()
    with tempfile.TemporaryDirectory(prefix="headway-impostor-") as folder:
        over = os.path.join(folder, "over")
        job = Job(bench, 3, "heard", [over], SHM="off", VERBOSE="2", PREFETCH="off")
        try:
            ports = listeners(job)
            job.wait_for(lambda: "heard 'the first'" in job.says(), "first message")

            def whole():
                wire.read()
                text = wire.to_port(ports[1])
                return text if b"the first" in text else None
            text = job.wait_for(whole, "message on the wire")
            hello, confirm = opening(text)
            ways = {
                "to rank 2, as if dialled by rank 0": (2, patched(text, 2)),
                "to rank 2, unchanged": (2, text),
                "to rank 1, unchanged": (1, text),
                "to rank 0, back to where it came from": (0, patched(text, 0)),
            }
            for what, (rank, words) in ways.items():
                for _ in range(TRIES):
                    say(ports[rank], words, split_at(hello, confirm))
                    expect("FORGED" not in job.says(), f"a forged message was delivered: {what}")
                    expect(job.process.poll() is None, f"the job has ended: {what}")
            pathlib.Path(over).touch()
            code = job.end()
        finally:
            job.stop()
            bench.output = job.says()
    expect(code == 0, f"exit code {code}")
    bench.says("heard 'the second'", "rank 0: 0 forged", "rank 1: 0 forged", "rank 2: 0 forged")


@CASES.case("the secret is not on the wire")
def secret(bench):
    """Whoever knows it from one connection could open others: so no 16 bytes of a Hello to one rank
    are in the Hello to another, but for magic and numbers."""
    wire = Wire()
    with tempfile.TemporaryDirectory(prefix="headway-impostor-") as folder:
        over = os.path.join(folder, "over")
        pathlib.Path(over).touch()
        job = Job(bench, 3, "heard", [over], SHM="off", VERBOSE="2", PREFETCH="off")
        try:
            ports = listeners(job)
            expect(job.end() == 0, "the job failed")
        finally:
            job.stop()
            bench.output = job.says()
    wire.read()
    said = [wire.to_port(ports[rank])[:88] for rank in (1, 2)]
    expect(all(len(text) == 88 for text in said), "no two connections were seen")
    # The first 40 bytes are magic and numbers, which are the same when two ranks make their first call.
    for at in range(40 - 15, 88 - 16 + 1):
        expect(said[0][at:at + 16] == bytes(16) or said[0][at:at + 16] not in said[1],
               f"both Hellos have the same bytes from {at} on")


@CASES.case("all ranks on one host: their listeners are on its loopback only")
def loopback(bench):
    with tempfile.TemporaryDirectory(prefix="headway-impostor-") as folder:
        over = os.path.join(folder, "over")
        job = Job(bench, 3, "heard", [over], SHM="off", VERBOSE="2")
        try:
            ports = listeners(job)
            job.wait_for(lambda: "heard 'the first'" in job.says(), "first message")
            for port in ports.values():
                socket.create_connection(("127.0.0.1", port), timeout=5).close()
                try:
                    socket.create_connection(("10.9.0.1", port), timeout=5).close()
                    found = True
                except ConnectionRefusedError:
                    found = False
                expect(not found, f"port {port} can be reached at 10.9.0.1")
            pathlib.Path(over).touch()
            expect(job.end() == 0, "the job failed")
        finally:
            job.stop()
            bench.output = job.says()


if __name__ == "__main__":
    if INSIDE not in os.environ:
        try:
            around = namespaces("-n", NETWORK)
            probe = subprocess.run([*around, "true"], capture_output=True, text=True, check=False)
            if probe.returncode != 0:
                raise Skip(probe.stderr.strip())
        except Skip as reason:
            print(f"skipped: {reason}")
            sys.exit(77)
        os.environ[INSIDE] = "1"
        os.execvp(around[0], [*around, sys.executable, *sys.argv])
    sys.exit(CASES.main(__doc__, pathlib.Path(__file__).resolve().parents[2] / "build", Bench))
