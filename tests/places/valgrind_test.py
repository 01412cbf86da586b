#!/usr/bin/env python3
"""Jobs under valgrind's memcheck: no error, no leak, no warning of the library's own making."""

import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from support import TESTS, Bench, Cases, Skip, expect  # noqa: E402

CASES = Cases()
case = CASES.case
SLOW = "--slow" in sys.argv
if SLOW:
    sys.argv.remove("--slow")

FOUND = 99
VALGRIND = ["valgrind", "-q", f"--error-exitcode={FOUND}", "--leak-check=full",
            "--show-leak-kinds=definite,indirect,possible",
            "--errors-for-leak-kinds=definite,indirect,possible", "--fair-sched=try"]


def clean(bench):
    """valgrind starts each of its lines with ==PID== or --PID--."""
    told = [line for line in bench.output.splitlines() if line.startswith(("==", "--"))]
    expect(not told, f"valgrind says: {told[0] if told else ''}")


def run(bench, *words, **settings):
    if bench.mpi.sanitizer():
        raise Skip("valgrind and sanitizers exclude each other")
    bench.run([bench.mpi.mpiexec, *words], timeout=100, **settings)
    clean(bench)
    bench.ends_well()


# --slow runs all of them with shared memory and without.
QUICK = (("p2p_modes", "on"), ("coll_data", "off"), ("sessions", "on"))
for name, ranks in (("p2p_modes", 2), ("p2p_random", 2), ("coll_data", 3), ("types_basic", 2),
                    ("comm_groups", 2), ("sessions", 2)):
    for transport in ("on", "off"):
        if (name, transport) in QUICK or SLOW:
            @case(f"{name}, {ranks} ranks, shared memory {transport}", name, ranks, transport)
            def program(bench, name, ranks, transport):
                run(bench, *bench.ranks(ranks, name, around=VALGRIND), SHM=transport)


@case("alone")
def alone(bench):
    bench.run([*VALGRIND, bench.mpi.program("abi_c")], timeout=100)
    clean(bench)


@case("one rank of three in valgrind; the others copy nothing into it behind its back")
def one_of_three(bench):
    run(bench, *bench.ranks(1, "p2p_modes", around=VALGRIND), ":", *bench.ranks(2, "p2p_modes"))


@case("early release that was asked for: told, and nothing breaks")
def early_release(bench):
    if bench.mpi.sanitizer():
        raise Skip("valgrind and sanitizers exclude each other")
    bench.run([bench.mpi.mpiexec, *bench.ranks(2, "comm_groups", around=VALGRIND)], timeout=100,
              EARLY_RELEASE="always", RELEASE_THRESHOLD="0", PREFETCH="auto")
    clean(bench)
    bench.ends_well()
    expect(bench.output.count("runs in valgrind: without early release") == 2, "each rank tells it")


@case("an error of the program is found")
def errors_are_found(bench):
    """Else the other cases prove nothing."""
    ticks = bench.mpi.build / "tests" / "places" / "ticks"
    bench.run([bench.mpi.mpiexec, "-n", "1", *VALGRIND, ticks, "wrong"], code=FOUND, timeout=100)
    bench.says("as sent", "uninitialised")
    expect(bench.output.count("Conditional jump") == 1, "what was sent is known")


if __name__ == "__main__":
    if shutil.which("valgrind") is None:
        print("skipped: there is no valgrind")
        sys.exit(77)
    sys.exit(CASES.main(__doc__, TESTS.parent / "build", Bench))
