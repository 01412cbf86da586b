#!/usr/bin/env python3
"""Programs built with ThreadSanitizer on a library that is not: with the file of suppressions nothing
of the library's is taken for a race, and a race of the program is still told."""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from support import TESTS, Bench, Cases, Skip, expect  # noqa: E402

CASES = Cases()
case = CASES.case
RACE = 66  # ThreadSanitizer's exit code

# Long messages, which the library's own thread moves while the receiver computes; the sender writes
# its buffer again as soon as it may.
STREAM = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char** argv) {
  enum { length = 4 << 20, rounds = 20 };
  char* data = malloc(length);
  int rank, round;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (round = 0; round < rounds; ++round) {
    if (rank == 1) {
      memset(data, round, length);
      MPI_Send(data, length, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    } else if (rank == 0) {
      MPI_Recv(data, length, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (data[0] != round || data[length - 1] != round) return 3;
    }
  }
  MPI_Finalize();
  puts("ok stream");
  return 0;
}
"""

# Two threads count without a lock, both between MPI_Init and MPI_Finalize.
RACING = """
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
static long counted;
static void* count(void* nothing) {
  for (int i = 0; i < 100000; ++i) ++counted;
  return nothing;
}
int main(int argc, char** argv) {
  int provided;
  pthread_t other;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  pthread_create(&other, 0, count, 0);
  count(0);
  pthread_join(other, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  puts("ok racing");
  return 0;
}
"""


def built(bench, folder, text):
    """The program, made as the documentation says, and what to run it with."""
    if bench.mpi.sanitizer():
        raise Skip("the library is built with a sanitizer of its own")
    mpicc = bench.mpi.build / "bin" / "mpicc"
    source, program = pathlib.Path(folder) / "program.c", pathlib.Path(folder) / "program"
    plain = pathlib.Path(folder) / "plain.c"
    plain.write_text("int main(void) { return 0; }\n")
    probe = subprocess.run(["cc", "-fsanitize=thread", plain, "-o", program], capture_output=True,
                           check=False, timeout=60)
    if probe.returncode != 0 or subprocess.run([program], capture_output=True, check=False,
                                               timeout=60).returncode != 0:
        raise Skip("ThreadSanitizer does not work here")
    source.write_text(text)
    subprocess.run([mpicc, "-g", "-fsanitize=thread", source, "-o", program], check=True, timeout=120)
    told = subprocess.run([mpicc, "-showme:tsan"], check=True, capture_output=True, text=True,
                          timeout=60).stdout.strip()
    expect(os.path.isfile(told), f"there is no file {told}")
    # Names of functions take a minute where there is something to tell.
    os.environ["TSAN_OPTIONS"] = f"symbolize=0:suppressions={told}"
    return program


for transport in ("on", "off"):
    @case(f"long messages, shared memory {transport}: nothing is told", transport)
    def stream(bench, transport):
        with tempfile.TemporaryDirectory(prefix="headway-tsan-") as folder:
            program = built(bench, folder, STREAM)
            bench.run([bench.mpi.mpiexec, "-n", "2", program], timeout=100, SHM=transport)
            expect("ThreadSanitizer" not in bench.output, "ThreadSanitizer tells of something")
            expect(bench.output.count("ok stream") == 2, "no 'ok' of both")


@case("a race of the program is told")
def racing(bench):
    with tempfile.TemporaryDirectory(prefix="headway-tsan-") as folder:
        program = built(bench, folder, RACING)
        bench.run([bench.mpi.mpiexec, "-n", "1", program], code=RACE, timeout=100)
        bench.says("WARNING: ThreadSanitizer: data race")


if __name__ == "__main__":
    sys.exit(CASES.main(__doc__, TESTS.parent / "build", Bench))
