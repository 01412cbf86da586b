#!/usr/bin/env python3
"""Ranks of one host that may not share memory, or find none: they talk over TCP, the others go on
without them, and one line says so."""

import errno
import os
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from support import NOBODY, TESTS, Bench, Cases, Skip, expect  # noqa: E402

CASES = Cases()
case = CASES.case

SLOWER = "over TCP, which is slower"
CLOSED = "may not be opened (/proc of another process is closed"


def refusing(bench, ranks, error=errno.EACCES):
    if bench.mpi.sanitizer():
        raise Skip("a sanitizer's runtime must come first, before what refuses")
    return ["env", f"LD_PRELOAD={bench.mpi.build}/tests/places/librefuse.so", f"REFUSED={ranks}",
            f"REFUSED_ERROR={error}"]


def lines_about(bench, text):
    return [line for line in bench.output.splitlines() if text in line]


def sharing(bench):
    """With VERBOSE=1: with how many ranks, itself among them, each rank shares memory."""
    found = {}
    for line in lines_about(bench, "ranks share its memory"):
        words = line.split()
        found[int(words[2])] = int(words[words.index("ranks") - 1])
    return [found.get(rank) for rank in range(len(found))]


for left_out, together, first, more in (
        ("1", [3, 1, 3, 3], 1, ""), ("3", [3, 3, 3, 1], 3, ""),
        ("1,2", [2, 1, 1, 2], 1, " (and 1 more)"), ("1,2,3", [1, 1, 1, 1], 1, " (and 2 more)")):
    @case(f"of four ranks, {left_out} may not open the memory", left_out, together, first, more)
    def refused(bench, left_out, together, first, more):
        for name in ("p2p_modes", "p2p_random", "coll_data", "comm_make"):
            bench.run([bench.mpi.mpiexec, *bench.ranks(4, name, around=refusing(bench, left_out))],
                      VERBOSE="1")
            bench.ends_well()
            expect(sharing(bench) == together, f"memory is shared by {sharing(bench)}")
            (line,) = lines_about(bench, SLOWER)
            for text in ("rank 0 on ", CLOSED, f"says rank {first}{more}:", "HEADWAY_SHM=off"):
                expect(text in line, f"the line does not say '{text}'")


@case("a rank without a descriptor for the memory")
def no_descriptor(bench):
    around = refusing(bench, "2", errno.EMFILE)
    bench.run([bench.mpi.mpiexec, *bench.ranks(3, "p2p_modes", around=around)], VERBOSE="1")
    bench.ends_well()
    expect(sharing(bench) == [2, 2, 1], f"memory is shared by {sharing(bench)}")
    bench.says("ulimit -n?), says rank 2:", SLOWER)


@case("the memory of ranks without rank 0")
def without_rank_0(bench):
    alone = ["env", "HEADWAY_SHM=off"]
    bench.run([bench.mpi.mpiexec, *bench.ranks(2, "p2p_random", around=alone), ":",
               *bench.ranks(3, "p2p_random", around=refusing(bench, "4"))], VERBOSE="1")
    bench.ends_well()
    expect(sharing(bench) == [1, 1, 2, 2, 1], f"memory is shared by {sharing(bench)}")
    (line,) = lines_about(bench, SLOWER)
    for text in ("rank 2 on ", CLOSED, "says rank 4:"):
        expect(text in line, f"the line does not say '{text}'")


@case("no memory for the first rank of the host")
def no_segment(bench):
    few = ["sh", "-c", 'ulimit -f 64; exec "$@"', "sh"]
    for name in ("p2p_random", "coll_data"):
        bench.run([bench.mpi.mpiexec, *bench.ranks(3, name, around=few)], VERBOSE="1")
        bench.ends_well()
        expect(sharing(bench) == [1, 1, 1], f"memory is shared by {sharing(bench)}")
        (line,) = lines_about(bench, SLOWER)
        expect("rank 0 on " in line and "ulimit -f" in line, "the line tells who and why")


@case("a rank that the system lets nobody look into")
def closed(bench):
    # As a program with a setuid bit, with capabilities, or, here, one that may not be read.
    with tempfile.TemporaryDirectory(prefix="headway-places-test-") as folder:
        os.chmod(folder, 0o755)
        path = os.path.join(folder, "p2p_random")
        shutil.copy(bench.mpi.program("p2p_random"), path)
        os.chmod(path, 0o111)
        user = [] if os.geteuid() else ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}",
                                        "--clear-groups"]
        for counts, together, teller in (((1, 1), [1, 1], 1), ((2, 2), [2, 2, 1, 1], 2)):
            bench.run([*user, bench.mpi.mpiexec, *bench.ranks(counts[0], "p2p_random"), ":", "-n",
                       str(counts[1]), path], VERBOSE="1")
            bench.ends_well()
            expect(sharing(bench) == together, f"memory is shared by {sharing(bench)}")
            (line,) = lines_about(bench, SLOWER)
            for text in (f"rank {teller} on ", "no other process look into this one", "setuid"):
                expect(text in line, f"the line does not say '{text}'")
            bench.run([*user, bench.mpi.mpiexec, *bench.ranks(counts[0], "p2p_random"), ":", "-n",
                       str(counts[1]), path], SHM="off")
            bench.ends_well()
            expect(not lines_about(bench, SLOWER), "who asks for TCP is told nothing")


if __name__ == "__main__":
    sys.exit(CASES.main(__doc__, TESTS.parent / "build", Bench))
