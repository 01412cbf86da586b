#!/usr/bin/env python3
"""Launchers that are not ours: PMIx servers of several machines, the wrong libpmix, launchers that
refuse, and those that go on when a rank dies."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from support import TESTS, Bench, Cases, Skip, expect  # noqa: E402
from harness import library  # noqa: E402

CASES = Cases()
case = CASES.case

HERE = pathlib.Path(__file__).resolve().parent
PLAIN = [sys.executable, str(HERE / "plain_launcher.py")]
PMIX = [sys.executable, str(HERE / "pmix_ranks.py")]


def peer(name, launcher):
    path = library.CACHE / name / "bin" / launcher
    if not path.exists():
        raise Skip(f"{name} is not installed (scripts/peers.sh)")
    return str(path)


def played(bench, ranks, *program, pmix="right", path="right", code=0, around=(), **variables):
    """Ranks of a played PMIx server: `pmix` is the library in its memory, `path` that which ranks
    find on their search path."""
    if bench.mpi.sanitizer():
        raise Skip("the played launcher is not built with the sanitizer")
    folder = bench.mpi.build / "tests" / "places"
    settings = [f"{name}={value}" for name, value in variables.items()]
    where = f"LD_LIBRARY_PATH={bench.mpi.library}:{folder}/{path}"
    return bench.run([*PMIX, f"{folder}/{pmix}/libpmix.so.2", ranks, "env", where, *settings,
                      *around, bench.mpi.program(program[0]), *program[1:]], code)


@case("a PMIx server that waits to be asked twice for what other machines have put")
def asked_twice(bench):
    for shm in ("on", "off"):
        result = played(bench, 3, "p2p_random", STUB_FAR=1, HEADWAY_SHM=shm)
        bench.ends_well()
        expect(result.seconds < 30, f"it took {result.seconds:.0f} s")


@case("and one rank may not open the memory: nobody waits for a key that is never put")
def never_put(bench):
    for left_out in ("1", "2"):
        result = played(bench, 3, "p2p_random", STUB_FAR=1, REFUSED=left_out, REFUSED_ERROR=13,
                        LD_PRELOAD=bench.mpi.build / "tests" / "places" / "librefuse.so")
        bench.ends_well()
        bench.says(f"says rank {left_out}")
        expect(result.seconds < 30, f"it took {result.seconds:.0f} s")


for function, told in (("put", "did not take what this rank publishes (headway-"),
                       ("get", "did not give what rank 0 has published (headway-card-0)"),
                       ("fence", "could not bring together what the ranks publish")):
    @case(f"a PMIx server that refuses {function}", function, told)
    def pmix_refuses(bench, function, told):
        played(bench, 2, "p2p_random", code=None, STUB_FAILS=function)
        word = "PLAYED-NOT-FOUND" if function == "get" else "PLAYED-ERROR"
        bench.says(f"headway: MPI_Init failed: the launcher {told}", f": {word}")

for verb, told in (("put", "did not take what this rank publishes (headway-"),
                   ("get", "did not give what rank 0 has published (headway-card-0): it does not"),
                   ("barrier_in", "could not bring together what the ranks publish: it says no")):
    @case(f"a PMI-1 launcher that refuses {verb}", verb, told)
    def pmi_refuses(bench, verb, told):
        bench.run([*PLAIN, "--refuse", verb, "-n", 2, bench.mpi.program("p2p_random")], None)
        bench.says(f"headway: MPI_Init failed: the launcher {told}")


def questions(bench, ranks, mapping, **variables):
    """How often the ranks of a job have asked the launcher for a text."""
    with tempfile.TemporaryDirectory(prefix="headway-questions-") as folder:
        said = ["--map", mapping] if mapping else []
        settings = [f"{name}={value}" for name, value in variables.items()]
        bench.run([*PLAIN, *said, "--count", f"{folder}/count", "-n", ranks, "env", *settings,
                   bench.mpi.program("p2p_order")])
        told = pathlib.Path(folder, "count").read_text(encoding="ascii").splitlines()
    return int(dict(line.split() for line in told)["get"])


@case("all cards are asked for once a machine, by its first rank")
def cards_once(bench):
    ranks = 16
    each = questions(bench, ranks, "")
    expect(each >= ranks * ranks, f"without a map each rank asks for all: {each} questions")
    once = questions(bench, ranks, f"(vector,(0,1,{ranks}))")
    expect(once <= 4 * ranks + ranks, f"one machine: {once} questions of {ranks} ranks, {each} without a map")
    two = questions(bench, ranks, f"(vector,(0,2,{ranks // 2}))")
    expect(once < two <= 4 * ranks + 2 * ranks, f"two machines in the map: {two} questions")
    # Without shared memory no fence follows, and the file is there all the same.
    apart = questions(bench, ranks, f"(vector,(0,1,{ranks}))", HEADWAY_SHM="off")
    expect(apart <= 4 * ranks + ranks, f"over TCP: {apart} questions")


@case("a map that is wrong, or a first rank whose files may not be opened: each asks for itself")
def cards_each(bench):
    for mapping in ("(vector,(0,1,3))", "(vector,(0,3,1),(7,1,1))", "(vector,(0,1,1000000))"):
        questions(bench, 9, mapping)
    ranks, one_machine = 8, "(vector,(0,1,8))"
    shared = questions(bench, ranks, one_machine)
    refused = questions(bench, ranks, one_machine, REFUSED=2, REFUSED_ERROR=13,
                        LD_PRELOAD=f"{bench.mpi.build}/tests/places/librefuse.so")
    expect(refused >= shared + ranks - 2, f"rank 2 asks for itself: {refused} questions, {shared} where it need not")


@case("another libpmix on the path than the launcher's: the launcher's is taken")
def wrong_library(bench):
    for around in ((), ("sh", "-c", '"$@"; exit $?', "sh")):
        played(bench, 2, "p2p_random", path="wrong", around=around)
        bench.ends_well()
        expect("PLAYED" not in bench.output, "the wrong one was asked")


def wrong_path(bench):
    wrong = bench.mpi.build / "tests" / "places" / "wrong"
    return ["env", f"LD_LIBRARY_PATH={bench.mpi.library}:{wrong}"]


@case("the same with PRRTE")
def wrong_library_prrte(bench):
    prterun = peer("openmpi", "prterun")
    words = [prterun, "--allow-run-as-root", "--map-by", ":oversubscribe", "-n", 4, *wrong_path(bench),
             bench.mpi.program("p2p_random")]
    bench.run(words)
    bench.ends_well()
    expect("PLAYED" not in bench.output, "the wrong one was asked")


class Cluster:
    """Simulated hosts, which go with it."""

    def __init__(self, bench, hosts):
        self.words = [str(bench.mpi.build / "bin" / "headway"), "cluster"]
        self.name = f"places{os.getpid()}"
        self.hosts = hosts

    def verb(self, name, *words):
        return [*self.words, name, "--name", self.name, *map(str, words)]

    def __enter__(self):
        done = subprocess.run(self.verb("up", "--hosts", self.hosts, "--rate", "1gbit"),
                              capture_output=True, text=True, timeout=60, check=False)
        if done.returncode == 77:
            raise Skip(done.stderr.strip() or done.stdout.strip())
        expect(done.returncode == 0, f"no cluster: {done.stdout}{done.stderr}")
        return self

    def __exit__(self, *_):
        subprocess.run(self.verb("down"), capture_output=True, timeout=60, check=False)


@case("PRRTE over four hosts: starts, and keeps exit codes")
def prrte_hosts(bench):
    peer("openmpi", "prterun")
    with Cluster(bench, 4) as cluster:
        for words, code in ((("p2p_random",), 0), (("die", "exit", "5", "coll"), 5),
                            (("die", "abort", "7", "wait"), 7)):
            program = [bench.mpi.program(words[0]), *words[1:]]
            bench.run(cluster.verb("run", "-n", 8, "--mpi", "openmpi", "--timeout", 50, "--",
                                   "env", f"LD_LIBRARY_PATH={bench.mpi.library}", *program), code)
            expect("MPI_Init failed" not in bench.output, "it did not start")
            if code == 0:
                bench.ends_well()


@case("Hydra over four hosts")
def hydra_hosts(bench):
    peer("mpich", "mpiexec.hydra")
    with Cluster(bench, 4) as cluster:
        bench.run(cluster.verb("run", "-n", 8, "--mpi", "mpich", "--timeout", 50, "--", "env",
                               f"LD_LIBRARY_PATH={bench.mpi.library}",
                               bench.mpi.program("p2p_random")))
        bench.ends_well()


# --- a rank dies, and the launcher goes on ---

DIED = re.compile(r"^headway: rank (\d+) on \S+: rank 1 \(process \d+ on this host\) has ended "
                  r"without MPI_Finalize, and the launcher lets the others go on", re.M)


def dies(bench, launcher, ranks, *words, code=None, limit=5.0, **settings):
    result = bench.run([*launcher, "-n", ranks, bench.mpi.program("die"), *words], code,
                       timeout=30, **settings)
    said = re.search(r"dying at ([0-9.]+)", result.output)
    expect(said is not None, "the rank never said that it was dying")
    late = result.ended - float(said.group(1)) - result.stood_still
    expect(late < limit, f"the job ended {late:.1f} s after the death")


for kind in ("p2p", "coll", "wait", "compute", "sleep"):
    for ranks in (2, 3, 7):
        @case(f"rank 1 of {ranks} is killed, others in {kind}, and the launcher goes on", kind, ranks)
        def killed(bench, kind, ranks):
            dies(bench, PLAIN, ranks, "kill", "-", kind, code=137)
            expect(len(DIED.findall(bench.output)) == 1, "one line tells who died")
            expect(bench.output.count("headway: ") == 1, "and nothing else is said")


for kind in ("coll", "wait"):
    @case(f"the same without a message thread, in {kind}", kind)
    def killed_without_thread(bench, kind):
        dies(bench, PLAIN, 3, "kill", "-", kind, code=137, PROGRESS="off")
        expect(len(DIED.findall(bench.output)) == 1, "one line tells who died")


@case("a rank ends without MPI_Finalize, and the launcher goes on")
def unfinished(bench):
    dies(bench, PLAIN, 4, "exit", "0", "wait", code=1)
    expect(len(DIED.findall(bench.output)) == 1, "one line tells who ended")


@case("MPI_Abort, which the launcher ignores, gives its code to all")
def aborted(bench):
    dies(bench, PLAIN, 4, "abort", "9", "wait", code=9)
    expect(bench.output.count("headway: ") == 1, "one line")
    bench.says("rank 1 on ", "MPI_Abort")


@case("ranks that have finished may end as they like, long before the others")
def orderly(bench):
    start = time.monotonic()
    # What each rank does after MPI_Finalize takes it another time.
    bench.run([*PLAIN, "-n", 5, "sh", "-c", '"$0" outside nothing && sleep $((PMI_RANK % 2 * 2))',
               bench.mpi.program("die")])
    expect(time.monotonic() - start > 2, "rank 1 slept")
    for _ in range(20):
        bench.run([*PLAIN, "-n", 5, bench.mpi.program("p2p_order")])
        expect("headway:" not in bench.output, "nothing is said")


@case("Hydra that is told not to clean up after a death")
def hydra_goes_on(bench):
    hydra = [peer("mpich", "mpiexec.hydra"), "-disable-auto-cleanup"]
    for kind in ("wait", "coll"):
        dies(bench, hydra, 3, "kill", "-", kind, limit=8)  # it tells, and kills, as its default is


@case("PRRTE that goes on after a death")
def prrte_goes_on(bench):
    # It is not always told of the ranks' ends, nor does it always end by itself: that is its own.
    prterun = ["sh", "-c", 'timeout 15 "$@"; exit 0', "sh", peer("openmpi", "prterun"),
               "--allow-run-as-root", "--map-by", ":oversubscribe", "--runtime-options",
               "continuous"]
    for kind in ("wait", "coll"):
        bench.run([*prterun, "-n", 3, "sh", "-c", '"$@"; echo "gone at" $?', "sh",
                   bench.mpi.program("die"), "kill", "-", kind])
        expect(len(DIED.findall(bench.output)) == 1, "one line tells who died")
        bench.says("gone at 1")


if __name__ == "__main__":
    sys.exit(CASES.main(__doc__, TESTS.parent / "build", Bench))
