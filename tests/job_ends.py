#!/usr/bin/env python3
"""How jobs end when something is wrong: a rank dies or aborts, calls come at the wrong time, the
network brings garbage, shared memory or descriptors are short. Each job must end soon, with the right
code and one clear sentence, and leave nothing behind. Also: programs of MPICH on our library."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from harness import job, library, tries  # noqa: E402
from harness.cases import Cases, Skip, Wrong  # noqa: E402
from harness.live import Live, asked  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
TCP = {"HEADWAY_SHM": "off"}


class Bench:
    """Starts jobs of the `die` program and judges how they ended."""

    def __init__(self, mpi: library.Headway):
        self.mpi = mpi
        self.last: job.Result | None = None
        self.command: list[str] = []

    def run(self, ranks: int, words: list[str], environment: dict | None = None,
            before: list[str] | None = None, program: str = "die", timeout: float = 30,
            around_rank: list[str] | None = None) -> job.Result:
        start = [str(self.mpi.mpiexec), "-n", str(ranks)]
        self.command = [*(before or []), *start, *(around_rank or []),
                        str(self.mpi.program(program)), *words]
        self.last = job.run(self.command, {**self.mpi.environment(), **(environment or {})},
                            timeout, program)
        if self.last.code is None:
            raise Wrong(f"no end after {timeout:.0f} s")
        if self.last.left_behind:
            raise Wrong(f"processes left behind: {', '.join(self.last.left_behind)}")
        return self.last

    @property
    def output(self) -> str:
        return self.last.output + self.last.story if self.last else ""

    def soon(self, limit: float = 1.0) -> None:
        """Launcher and ranks were gone within the limit after the death. Only time in which the
        machine stood still is not counted."""
        said = re.search(r"dying at ([0-9.]+)", self.last.output)
        if said is None:
            raise Wrong("the rank never said that it was dying")
        late = self.last.ended - float(said.group(1)) - self.last.stood_still
        if late > limit:
            raise Wrong(f"the job ended {late:.1f} s after the death")

    def code(self, wanted: int | None = None) -> None:
        if wanted is not None and self.last.code != wanted:
            raise Wrong(f"exit code {self.last.code}, expected {wanted}")
        if self.last.code == 0:
            raise Wrong("exit code 0")

    def says(self, *patterns: str) -> None:
        for pattern in patterns:
            if re.search(pattern, self.last.output, re.IGNORECASE | re.MULTILINE) is None:
                raise Wrong(f"the output does not say '{pattern}'")


CASES = Cases()
case = CASES.case


for transport_name, transport in (("shm", {}), ("tcp", TCP)):
    # "held": all others wait for a lock that it holds; the windows' kinds die in the middle of their epochs.
    two_sided = [(kind, count) for kind in ("p2p", "coll", "wait", "compute", "sleep") for count in (2, 5)]
    for kind, count in [*two_sided, ("held", 3), ("windows", 3), ("plain_windows", 3), ("fences", 3)]:
        @case(f"rank 1 of {count} is killed, others in {kind}, {transport_name}", kind, count, transport)
        def killed(bench, kind, count, transport):
            bench.run(count, ["kill", "-", kind], transport)
            bench.code()
            bench.soon()
            bench.says("rank 1", "SIGKILL|signal 9")

    @case(f"MPI_Abort gives its code, {transport_name}", transport)
    def abort(bench, transport):
        bench.run(3, ["abort", "42", "coll"], transport)
        bench.code(42)
        bench.soon()
        bench.says("rank 1")

    @case(f"a rank ends without MPI_Finalize, {transport_name}", transport)
    def unfinished(bench, transport):
        bench.run(3, ["exit", "0", "wait"], transport)
        bench.code()
        bench.soon()
        bench.says("rank 1", "finalize")

    @case(f"a rank ends with a code, {transport_name}", transport)
    def code(bench, transport):
        bench.run(3, ["exit", "7", "p2p"], transport)
        bench.code(7)
        bench.soon()


@case("segmentation fault")
def segv(bench):
    # A sanitizer would turn the signal into a report of its own.
    leave_alone = {"ASAN_OPTIONS": "detect_leaks=0:handle_segv=0", "TSAN_OPTIONS": "handle_segv=0"}
    bench.run(3, ["segv", "-", "wait"], leave_alone)
    bench.code()
    bench.soon()
    bench.says("rank 1", "SIGSEGV|signal 11")


@case("ERRORS_ARE_FATAL tells call, rank, peer, tag, communicator")
def fatal(bench):
    bench.run(3, ["fatal", "-", "wait"])
    bench.code()
    bench.says("MPI_Send", "rank 1", r"\b10\b", "MPI_COMM_WORLD", "MPI_ERR_RANK")


@case("ERRORS_ABORT names the communicator")
def errors_abort(bench):
    bench.run(2, ["errors_abort", "-", "wait"])
    bench.code()
    bench.says("MPI_Send", "the small one", "MPI_ERR_TAG", "-5")


@case("truncation under ERRORS_ARE_FATAL")
def truncation(bench):
    bench.run(2, ["truncate", "-", "wait"])
    bench.code()
    bench.says("MPI_Recv", "MPI_ERR_TRUNCATE", r"\b16\b", r"\b8\b")


# What is wrong, in which call, and what the sentence must tell of it.
WRONG = {
    "null communicator": ("MPI_Send", "MPI_COMM_NULL", "destination 0, tag 3", "MPI_ERR_COMM"),
    "freed communicator": ("MPI_Send", "was freed, or never made", "MPI_ERR_COMM"),
    "null datatype": ("MPI_Send", "MPI_DATATYPE_NULL", "MPI_ERR_TYPE", "COMM_WORLD of 2 ranks"),
    "freed datatype": ("MPI_Send", "was freed, or never made", "MPI_ERR_TYPE"),
    "uncommitted datatype": ("MPI_Send", "not committed", "MPI_ERR_TYPE", "MPI_Type_commit"),
    "null buffer": ("MPI_Send", "null pointer", "count 4, datatype MPI_INT, 16 bytes",
                    "MPI_ERR_BUFFER"),
    "negative count": ("MPI_Send", "count -4", "MPI_ERR_COUNT"),
    "rank too large": ("MPI_Send", "destination 9, tag 3, count 1, datatype MPI_INT, 4 bytes, "
                       "communicator MPI_COMM_WORLD of 2 ranks", "MPI_ERR_RANK"),
    "negative tag": ("MPI_Send", "destination 0, tag -5", "MPI_ERR_TAG"),
    "source too large": ("MPI_Recv", "source 9, tag 3", "MPI_ERR_RANK"),
    "unnamed communicator": ("MPI_Send", "a communicator without a name, of 1 rank[)]"),
    "derived datatype": ("MPI_Send", "count 3, a derived datatype of 8 bytes, 24 bytes"),
    "invented request": ("MPI_Wait", "request", "MPI_ERR_REQUEST"),
    "request used twice": ("MPI_Wait", "request", "MPI_ERR_REQUEST"),
    "received message": ("MPI_Mrecv", "message handle", "MPI_ERR_REQUEST"),
    "null operation": ("MPI_Allreduce", "MPI_OP_NULL", "MPI_ERR_OP", "COMM_SELF of 1 rank"),
    "operation of another type": ("MPI_Allreduce", "MPI_BAND is not defined on this datatype", "MPI_DOUBLE",
                                  "MPI_ERR_OP"),
    "root too large": ("MPI_Bcast", "root 9", "MPI_ERR_ROOT", "COMM_WORLD of 2 ranks"),
    "freed group": ("MPI_Comm_create_group", "group", "MPI_ERR_GROUP"),
    "freed predefined communicator": ("MPI_Comm_free", "predefined", "MPI_ERR_COMM"),
    "truncated in MPI_Wait": ("MPI_Wait", "16 bytes.* 8", "source 0, tag 8", "MPI_ERR_TRUNCATE"),
    "one buffer twice": ("MPI_Gather", "same memory", "count 2, datatype MPI_INT", "MPI_ERR_BUFFER",
                         "MPI_IN_PLACE"),
    "mismatched collective": ("MPI_Gather", "disagree", "MPI_ERR_TRUNCATE"),
    "window without an epoch": ("MPI_Put", "no epoch is open", "target 0", "a window without a name, of 1 rank",
                                "MPI_ERR_RMA_SYNC", "fatal on this window"),
    "outside of a window": ("MPI_Put", "has 4 bytes: it begins at byte 4 and ends before byte 8",
                            "window halo of 1 rank", "MPI_ERR_RMA_RANGE"),
    "name of no port": ("MPI_Comm_connect", "no such port is open: the name is not that of a port of this library",
                        "MPI_ERR_PORT", "MPI_Open_port gave"),
}

for wrong, told in WRONG.items():
    @case(f"the sentence for a wrong call: {wrong}", wrong, told)
    def sentence(bench, wrong, told):
        bench.run(2, ["wrong", wrong, "wait"])
        bench.code()
        call, *patterns = told
        bench.says(rf"^headway: rank 1 on \S+: {call} failed: .* Likely remedy: \w.*The job ends",
                   *patterns)


for how in ("before_init", "send_before_init", "init_twice", "after_finalize",
            "barrier_after_finalize", "finalize_twice"):
    @case(f"calls at the wrong time: {how}", how)
    def outside(bench, how):
        result = bench.run(1, ["outside", how])
        bench.code()
        if result.code >= 128 or "signal" in result.output.lower():
            raise Wrong("it crashed")
        call = {"before_init": "MPI_Comm_size", "send_before_init": "MPI_Send",
                "init_twice": "MPI_Init", "after_finalize": "MPI_Comm_size",
                "barrier_after_finalize": "MPI_Barrier", "finalize_twice": "MPI_Finalize"}[how]
        bench.says(call, "finalize" if "finalize" in how else "init")


@case("a window that is never freed: told, and the job ends well")
def window_left(bench):
    if bench.run(2, ["outside", "window_left"]).code != 0:
        raise Wrong(f"exit code {bench.last.code}")
    bench.says(r"^headway: rank 0 on \S+: MPI_Finalize was called, and 1 window was never freed\. "
               r"Likely cause: .*Likely remedy: ")


@case("what is allowed outside")
def allowed(bench):
    if bench.run(2, ["outside", "nothing"]).code != 0:
        raise Wrong(f"exit code {bench.last.code}")


# Orders of the calls that begin and end MPI; the letters are explained in programs/ends.cc. After the
# last of them a rank may end in any way, and a session may follow.
GOOD_ORDERS = ("IF", "IFx", "IFe", "Ss", "Ssx", "Sse", "SsSsx", "ISsFx", "ISFsx", "SIFsx", "SISFssx", "IFSsx",
               "ScDsIFx", "IFScDsx", "IScDsFScDsx", "ScDsIFScDse", "ScDsScDs", "IdbFScDsx",
               "ScD1w.sIdbFx", "ScD1w.sScDsx")  # the others are ahead: their messages are no leftovers
# Rank 1 has left MPI and ends; the others are inside it, and then come back from outside.
PEACE = ("ScD1sx.ws", "ScDs1x.wSs", "ScDs1x.wSws", "IFScD1sx.ws", "ISFcD1sx.ws")
# Rank 1 ends inside MPI, also after it has left it once.
DEATHS = ("Sc1x.B", "Sc1e.B", "SsSc1x.B", "IFSc1x.B", "ISFc1e.B", "ScDsIFSc1x.B", "SsSc1k.B", "IFSc1k.B")
WAYS = (("shm", {}), ("tcp", TCP), ("tcp without a message thread", {**TCP, "HEADWAY_PROGRESS": "off"}))

for way, environment in WAYS:
    for word in (*GOOD_ORDERS, *PEACE):
        @case(f"an order of sessions and the world: {word}, {way}", word, environment)
        def good_order(bench, word, environment):
            if bench.run(3, [word], environment, program="ends").code != 0:
                raise Wrong(f"exit code {bench.last.code}")
            said = [line for line in bench.last.output.splitlines() if not line.startswith("dying")]
            if said != ["ok"] * 3:
                raise Wrong(f"it said more or less than 'ok' three times: {said}")

    for word in DEATHS:
        @case(f"an end inside a session: {word}, {way}", word, environment)
        def death_in_session(bench, word, environment):
            bench.run(3, [word], environment, program="ends")
            bench.code()
            bench.soon()
            bench.says("rank 1", "SIGKILL|signal 9" if "k" in word else "finalize")


# What was kept beyond the end of what it belongs to, and what the sentence must tell.
KEPT = {
    "IdFb": ("MPI_Barrier was called after MPI_Finalize", "Likely remedy"),
    "ScsB": ("MPI_Barrier was called after the last session was finalized", "Likely remedy"),
    "SIdFb": ("MPI_Barrier failed: .*has ended with MPI_Finalize", "MPI_ERR_COMM", "Likely remedy"),
    "IdFSb": ("MPI_Barrier failed: .*has ended with MPI_Finalize", "MPI_ERR_COMM", "Likely remedy"),
    "ScSsB": ("MPI_Barrier failed: .*belongs to a session.*has ended with MPI_Session_finalize", "MPI_ERR_COMM",
              "Likely remedy"),
}

for word, told in KEPT.items():
    @case(f"a communicator that was kept too long: {word}", word, told)
    def kept(bench, word, told):
        bench.run(1, [word], program="ends")
        bench.code()
        bench.says(*told)


GARBAGE = {
    "nothing": b"",
    "one byte": b"\0",
    "a web request": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "zeros": b"\0" * 4096,
    "huge lengths": b"\xff" * 4096,
    "random bytes": os.urandom(100000),
    "half a hello": os.urandom(20),
}


def dial(address: str, port: str) -> socket.socket:
    """The listener moves to the loopback once it is known that all ranks are on this machine."""
    for place in (address.strip("[]"), "127.0.0.1", "::1"):
        try:
            return socket.create_connection((place, int(port)), timeout=3)
        except ConnectionRefusedError:
            continue
    raise Wrong(f"nobody listens at {address}:{port}, nor at the loopback's")


@case("garbage on the TCP ports: closed, counted, nothing else")
def garbage(bench):
    folder = tempfile.TemporaryDirectory(prefix="headway-counters-")
    live = Live(bench, 3, ["run", "4"], {**TCP, "HEADWAY_VERBOSE": "2",
                                         "HEADWAY_COUNTERS": f"{folder.name}/%r.json"})
    places = live.wait_for(r"rank (\d+) listens on (\S+):(\d+)", 3)
    open_sockets = []
    told_off = []  # what no member of the job would say, so that it is closed at once
    for _, address, port in places:
        for data in GARBAGE.values():
            s = dial(address, port)
            open_sockets.append(s)
            try:
                s.sendall(data)
            except OSError:
                pass  # closed by the other side already: that is the wish
            if len(data) > 20:
                told_off.append(s)
    for s in told_off:
        s.settimeout(2)
        try:
            closed = s.recv(1) == b""
        except TimeoutError:
            closed = False
        except OSError:
            closed = True
        if not closed:
            live.finish(0)
            raise Wrong("a connection with garbage was not closed within two seconds")
    # Some connections are closed by us, some stay open and silent.
    for s in open_sockets[::2]:
        s.close()
    if live.finish(30) != 0:
        raise Wrong(f"the job ended with {bench.last.code}")
    bench.says(r"^ok")
    for rank in range(3):
        counters = json.loads(pathlib.Path(folder.name, f"{rank}.json").read_text())
        if counters["tcp_garbage"] < len(told_off) // 3:
            raise Wrong(f"rank {rank} counted {counters['tcp_garbage']} connections with garbage, "
                        f"but it got {len(told_off) // 3}")
    folder.cleanup()


@case("a stranger who sends for ever does not stop the job")
def flood(bench):
    live = Live(bench, 2, ["run", "3"], {**TCP, "HEADWAY_VERBOSE": "2"})
    places = live.wait_for(r"rank (\d+) listens on (\S+):(\d+)", 2)
    end = time.monotonic() + 2.5
    made = 0
    while time.monotonic() < end:
        _, address, port = places[made % 2]
        try:
            with socket.create_connection((address.strip("[]"), int(port)), timeout=2) as s:
                s.sendall(os.urandom(200))
        except OSError:
            pass
        made += 1
        time.sleep(0.002)
    if live.finish(30) != 0:
        raise Wrong(f"the job ended with {bench.last.code} after {made} connections")


@case("SIGUSR1: a waiting rank tells where it stands and goes on")
def state_dump(bench):
    folder = tempfile.TemporaryDirectory(prefix="headway-counters-")
    live = Live(bench, 2, ["hang", "-", "wait"], {"HEADWAY_COUNTERS": f"{folder.name}/%r.json"})
    asked(bench, live, 2, *(rf"rank {rank} on .*in MPI_Recv .*\b99\b" for rank in range(2)))
    for rank in range(2):
        counters = json.loads(pathlib.Path(folder.name, f"{rank}.json").read_text())
        if counters["rank"] != rank or counters["posted_receives"] < 1:
            raise Wrong(f"rank {rank} waits in a receive and wrote {counters}")


@CASES.timed("SIGUSR1: the file of counters is whole whenever it is read")
def counters_are_whole(bench):
    """Also where both ranks write to one."""
    with tempfile.TemporaryDirectory(prefix="headway-counters-") as folder:
        file, asked_for, read = pathlib.Path(folder, "all.json"), 0, 0
        live = Live(bench, 2, ["hang", "-", "wait"], {"HEADWAY_COUNTERS": str(file)})
        try:
            end, ranks = time.monotonic() + 10, []
            while not ranks and time.monotonic() < end:
                ranks = live.may_be_asked(2)
            end = time.monotonic() + 10
            while ranks and asked_for < 300 and time.monotonic() < end:
                for pid in ranks:
                    os.kill(pid, signal.SIGUSR1)
                    asked_for += 1
                seen = time.monotonic() + 0.003
                while file.exists() and time.monotonic() < seen:
                    read += "rank" in json.loads(file.read_text())
        except (ValueError, ProcessLookupError) as broken:
            raise Wrong(f"after {asked_for} signals and {read} reads: {broken}") from None
        finally:
            live.finish(0)
        tries.in_time(asked_for >= 300 and read >= 300, f"{asked_for} signals, {read} reads in 20 s")
        drafts = [path.name for path in pathlib.Path(folder).iterdir() if path != file]
        if len(drafts) > 2 or "could not be written" in bench.last.output:  # each rank may have died over one
            raise Wrong(f"drafts that were left: {drafts}")


@case("SIGUSR1: on an inter-communicator a waiting rank tells the sides")
def state_dump_of_sides(bench):
    live = Live(bench, 3, ["hang", "-", "beyond"], {})
    asked(bench, live, 3, *(
        rf"rank {rank} on .*in MPI_Recv \(peer 0, tag 99\) as rank {own} of {size} on its side, with {others} on the other"
        for rank, (own, size, others) in enumerate(((0, 2, 1), (0, 1, 2), (1, 2, 1)))))


def in_namespace(script: str) -> list[str]:
    probe = subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL)
    if probe.returncode != 0:
        raise Skip("mount namespaces are not allowed here")
    return ["unshare", "-m", "sh", "-c", f'{script}; exec "$@"', "sh"]


def good_or_sentence(bench: Bench, *patterns: str) -> None:
    """Works, or stops with a sentence that names the trouble; no signal, no silence."""
    if bench.last.code == 0:
        bench.says(r"^ok")
        return
    if re.search(r"SIGBUS|SIGSEGV|SIGABRT|core dumped", bench.last.output):
        raise Wrong("it crashed")
    bench.says(*patterns)


for size in ("size=0", "size=64k", "size=1m"):
    @case(f"little shared memory: /dev/shm with {size}", size)
    def small_shm(bench, size):
        # size=0 means no limit to tmpfs: one page is the least.
        options = "size=4k" if size == "size=0" else size
        bench.run(4, ["run", "1"], before=in_namespace(f"mount -t tmpfs -o {options} x /dev/shm"))
        good_or_sentence(bench, "shared memory|/dev/shm|no space")


@case("/dev/shm that cannot be written")
def no_shm(bench):
    bench.run(3, ["run", "1"], before=in_namespace("mount -t tmpfs -o ro x /dev/shm"))
    good_or_sentence(bench, "shared memory|/dev/shm")


@case("shared memory larger than a file may be")
def file_limit(bench):
    few = ["sh", "-c", 'ulimit -f 64; exec "$@"', "sh"]
    bench.run(3, ["run", "1"], around_rank=few)
    if bench.last.code != 0:
        raise Wrong(f"exit code {bench.last.code}: TCP would do")
    bench.says("^ok", "no shared memory .*ulimit -f.*over TCP.*HEADWAY_SHM=off")
    if bench.run(3, ["run", "1"], TCP, around_rank=few).code != 0:
        raise Wrong("what it tells does not help")
    if "no shared memory" in bench.last.output:
        raise Wrong("it is told although TCP was asked for")


for transport_name, transport in (("shm", {}), ("tcp", TCP)):
    for descriptors in (6, 9, 14, 20):
        @case(f"{descriptors} descriptors for a rank, {transport_name}", descriptors, transport)
        def few_descriptors(bench, descriptors, transport):
            bench.run(6, ["run", "1"], transport,
                      around_rank=["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh"])
            good_or_sentence(bench, "descriptor|open files")


for soft in (8, 16, 26):
    @case(f"a soft limit of {soft} descriptors, below a hard one: all pairs of 12 ranks, tcp", soft)
    def soft_limit(bench, soft):
        few = ["sh", "-c", f'ulimit -Sn {soft}; exec "$@"', "sh"]
        bench.run(12, [], TCP, around_rank=few, program="p2p_random", timeout=60)
        if bench.last.code != 0:
            raise Wrong(f"exit code {bench.last.code}")
        bench.says(r"^ok")


# What is left serves the dials, and then nobody can let a dial in: all wait for each other, unless they are told.
@case("each limit from 18 to 28 descriptors for a rank, tcp")
def hard_limits(bench):
    for descriptors in range(18, 29):
        bench.run(6, ["run", "0"], {**TCP, "HEADWAY_CONNECT_TIMEOUT": "1s"},
                  around_rank=["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh"])
        good_or_sentence(bench, "descriptor|open files")


# Whatever opens a descriptor may be the one that meets the limit.
@case("each soft limit from 5 to 22 descriptors, below a hard one")
def soft_limits(bench):
    for soft in range(5, 23):
        for environment in (TCP, {}):
            few = ["sh", "-c", f'ulimit -Sn {soft}; exec "$@"', "sh"]
            bench.run(2, ["run", "1"], environment, around_rank=few)
            if bench.last.code != 0:
                raise Wrong(f"exit code {bench.last.code} with {soft} descriptors")


@case("few descriptors for mpiexec itself")
def launcher_descriptors(bench):
    bench.run(16, ["run", "1"], before=["sh", "-c", 'ulimit -n 20; exec "$@"', "sh"])
    good_or_sentence(bench, "descriptor|open files")


@case("64 ranks start and end", 64)
def many(bench, count):
    bench.run(count, ["outside", "nothing"], timeout=60)
    if bench.last.code != 0:
        raise Wrong(f"exit code {bench.last.code}")


def mpich_program(mpi: library.Headway, name: str = "abi_c") -> pathlib.Path:
    if mpi.sanitizer():
        raise Skip("a sanitizer's runtime must come first, and MPICH's program is linked without it")
    try:
        return library.Mpich().program(name)
    except SystemExit as reason:
        raise Skip(str(reason)) from None


def expect_headway(bench: Bench, command: list[str], environment: dict) -> None:
    bench.command = command
    bench.last = job.run(command, {**bench.mpi.environment(), **environment}, 60, "abi_c")
    if bench.last.code != 0:
        raise Wrong(f"exit code {bench.last.code}")
    bench.says("ok .*Headway")


@case("a program built by MPICH's mpicc_abi runs unchanged under our mpiexec")
def mpich_built(bench):
    program = mpich_program(bench.mpi)
    expect_headway(bench, [str(bench.mpi.mpiexec), "-n", "3", str(program), "expect-headway"], {})


@case("a program built by MPICH's mpicc_abi runs with the library path alone")
def mpich_built_path(bench):
    program = mpich_program(bench.mpi)
    expect_headway(bench, [str(program), "expect-headway"],
                   {"LD_LIBRARY_PATH": str(bench.mpi.library)})


@case("programs for the tools interface, built by MPICH's mpicxx_abi, run unchanged")
def mpich_built_tools(bench):
    for name in ("mpi_t", "mpi_t_refused"):
        program = mpich_program(bench.mpi, name)
        bench.command = [str(bench.mpi.mpiexec), "-n", "2", str(program)]
        bench.last = job.run(bench.command, bench.mpi.environment(), 60, name)
        if bench.last.code != 0:
            raise Wrong(f"{name}: exit code {bench.last.code}")
        bench.says("ok .* 2 ranks")


@case("our library under MPICH's mpiexec.hydra")
def under_hydra(bench):
    program = mpich_program(bench.mpi)
    hydra = library.CACHE / "mpich" / "bin" / "mpiexec.hydra"
    expect_headway(bench, [str(hydra), "-n", "3", str(program), "expect-headway"],
                   {"LD_LIBRARY_PATH": str(bench.mpi.library)})


def judge_file(found: bytes, before: bytes, block: int, ranks: int) -> None:
    """Blocks of a tile: those of the ranks are old or new byte by byte, the last one is as it was."""
    if len(found) != len(before):
        raise Wrong(f"the file has {len(found)} bytes, and had {len(before)}")
    for at in range(0, len(found), block):
        rank = at // block % (ranks + 1)
        allowed = {before[0]} | ({ord("a") + rank} if rank < ranks else set())
        if not set(found[at:at + block]) <= allowed:
            raise Wrong(f"block {at // block} of the file has bytes {sorted(set(found[at:at + block]))}")


for two_phase, after in (("true", 20), ("true", 90), ("false", 20), ("false", 90)):
    @case(f"rank 1 is killed while all write a file, two phases {two_phase}, after {after} ms", two_phase, after)
    def killed_in_a_file(bench, two_phase, after):
        block, tiles, ranks = 700, 1500, 3
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "file"
            before = b"." * (block * tiles * (ranks + 1))
            file.write_bytes(before)
            bench.run(ranks, [str(file), two_phase, str(after), str(block), str(tiles)], program="file_killed")
            bench.code()
            bench.says("rank 1", "SIGKILL|signal 9")
            found = file.read_bytes()
            judge_file(found, before, block, ranks)
            # A start on a busy machine may take longer than the shorter time.
            if after > 50 and found == before:
                raise Wrong("nothing was written before rank 1 was killed")


# With a launcher that lets the others go on they notice a death themselves, and only a death.
for word, dies in (("ScD1sx.ws", False), ("ScDs1x.wSws", False), ("Sc1x.B", True), ("SsSc1x.B", True),
                   ("IFSc1x.B", True)):
    @case(f"under a launcher that goes on: {word}", word, dies)
    def launcher_goes_on(bench, word, dies):
        hydra = library.CACHE / "mpich" / "bin" / "mpiexec.hydra"
        if not hydra.exists():
            raise Skip("there is no MPICH here")
        # It sends SIGUSR1 to all whenever one has left, which kills who has no handler yet.
        deaf = ["sh", "-c", 'trap "" USR1; exec "$@"', "sh", str(bench.mpi.program("ends")), word]
        bench.command = [str(hydra), "-disable-auto-cleanup", "-n", "3", *deaf]
        bench.last = job.run(bench.command, {**bench.mpi.environment(), "LD_LIBRARY_PATH": str(bench.mpi.library)},
                             30, "ends")
        if bench.last.code is None:
            raise Wrong("no end after 30 s")
        if not dies:
            if bench.last.code != 0 or "headway:" in bench.last.output:
                raise Wrong(f"exit code {bench.last.code}")
            return
        bench.code()
        bench.says("rank 1 .*has ended without MPI_Finalize, and the launcher lets the others go on")


if __name__ == "__main__":
    sys.exit(CASES.main(__doc__, HERE.parent / "build", Bench, at_once=3))
