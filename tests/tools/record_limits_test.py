#!/usr/bin/env python3
"""What a recording promises, measured with real programs: clocks of several hosts that become one, memory that does not
grow with the run, and what of a killed rank is in its file."""

import os
import re
import shutil
import signal
import subprocess
import time
import unittest

from support import HEADWAY, need_packages

need_packages("numpy", "rich", "typer")

import numpy as np  # noqa: E402
from headway.record import alignment, format, reading  # noqa: E402
from recording import Recorded  # noqa: E402

EXCHANGE = """#include <mpi.h>
#include <unistd.h>
enum { ROUNDS = 400 };
static void exchange(int first, int other) { /* a message there and one back */
  int word = 0;
  if (first) MPI_Send(&word, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
  MPI_Recv(&word, 1, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (!first) MPI_Send(&word, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
}
int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < ROUNDS; ++i) {
    exchange(rank % 2 == 0, rank ^ 1);
    exchange(rank % 2 == 0, 3 - rank);
    usleep(4000);
  }
  MPI_Finalize();
}
"""


class Clocks(Recorded):
    """Four ranks as of three hosts: ranks 0 and 2 have the machine's clock, 1 and 3 one that is wrong. Ticks are the
    same on all, so that they tell the truth."""

    WRONG = {1: (5_000_000, 50), 3: (-5_000_000, -50)}  # ns, ppm
    PARTS = 10  # of the run, each of which has messages there and back

    def setUp(self):
        super().setUp()
        (self.folder / "exchange.c").write_text(EXCHANGE)
        program = self.compile(self.folder / "exchange.c", "exchange")
        words = []
        for rank in range(4):
            clock = self.WRONG.get(rank)
            set_ = ["env", "HEADWAY_RECORD_TEST_CLOCK={},{}".format(*clock)] if clock else []
            words += [":"] * bool(rank) + ["-n", 1, *set_, HEADWAY, "record", "--out", self.folder / "run", program]
        line = [*map(str, [self.bin / "mpiexec", *words])]
        subprocess.run(line, check=True, timeout=60, cwd=self.folder, env=self.environment(), stderr=subprocess.DEVNULL)
        clock = format.read(self.folder / "run" / "rank-0.hwr").clock
        self.first, self.tick = int(clock[0, 0]), (clock[-1, 1] - clock[0, 1]) / (clock[-1, 0] - clock[0, 0])

    def true(self, ticks):
        return (ticks.astype(np.int64) - self.first) * self.tick

    def errors(self, run):
        """Of each rank: how far its calls' begins are from the truth, ns."""
        off = [rank.begin - self.true(rank.events["begin"]) for rank in run.ranks]
        return [one - np.median(off[0]) for one in off]

    def read_raw(self):
        saved = alignment.align, alignment.mend
        alignment.align = alignment.mend = lambda *_: []
        try:
            return reading.read(self.folder / "run")
        finally:
            alignment.align, alignment.mend = saved

    def early(self, run):
        m = run.messages
        ends = [run.ranks[target].end[came] for target, came in zip(m["target"], m["came"])]
        return int((np.array(ends) < [run.ranks[source].begin[sent] for source, sent in zip(m["source"], m["sent"])]).sum())

    def took(self, run, source, target):
        """When messages of a host that is right were sent, and how long each took, in truth."""
        some = run.messages[np.isin(run.messages["source"], source) & np.isin(run.messages["target"], target)]
        sent = [self.true(run.ranks[m["source"]].events["begin"][m["sent"] : m["sent"] + 1])[0] for m in some]
        came = [self.true(run.ranks[m["target"]].events["end"][m["came"] : m["came"] + 1])[0] for m in some]
        return np.array(sent), np.array(came) - sent

    def test_an_offset_of_5_ms_and_a_drift_of_50_ppm(self):
        raw, run = self.read_raw(), reading.read(self.folder / "run")
        self.assertEqual([len(one.messages) for one in (raw, run)], [4 * 2 * 400] * 2)
        self.assertGreater(self.early(raw), 1000)
        self.assertEqual(self.early(run), 0)
        notes = " ".join(run.notes)
        told = re.search(r"the clocks of 3 hosts were aligned by (\d+) messages", notes)
        self.assertTrue(told and int(told[1]) >= 4 * 2 * 400, notes)
        self.assertNotIn("moved forward", notes)
        for rank, (offset, drift) in self.WRONG.items():
            with self.subTest(rank=rank):
                wrong = self.errors(raw)[rank]
                spent = self.true(raw.ranks[rank].events["begin"])
                self.assertGreater(spent[-1] - spent[0], 1e9)
                self.assertLess(abs(wrong[0] - offset), 100_000)
                self.assertLess(abs((wrong[-1] - wrong[0]) / (spent[-1] - spent[0]) * 1e6 - drift), 5)
                # No message allows an error beyond the time that it took. A straight line that is within that in the
                # first and the last part is within twice that everywhere.
                allowed = 1000.0  # of two readings of a clock
                for there in (([0, 2], [rank]), ([rank], [0, 2])):
                    sent, long = self.took(run, *there)
                    part = np.minimum((sent - sent.min()) * self.PARTS // np.ptp(sent), self.PARTS - 1)
                    allowed = max(allowed, 1000 + 2 * max(long[part == one].min() for one in range(self.PARTS)))
                inside = (spent >= sent.min()) & (spent <= sent.max())
                error = np.abs(self.errors(run)[rank][inside]).max()
                print(f"rank {rank}, {offset / 1e6:g} ms, {drift} ppm: wrong by {error:.0f} ns; messages allow {allowed:.0f}")
                self.assertLess(error, allowed)
                self.assertLess(allowed, 500_000, "the messages say too little")


MEMORY = """#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static long rounds;
static int rank;
static void tell(void) { /* what the process has, and had at most, in KB */
  char line[256];
  FILE* status = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, status))
    if (!strncmp(line, "VmHWM:", 6) || !strncmp(line, "RssAnon:", 8) || !strncmp(line, "RssShmem:", 9))
      printf("@%d %s", rank, line);
  fclose(status);
}
static void* talk(void* number) {
  const int tag = (int)(long)number;
  char out[8] = "", in[8];
  for (long i = 0; i < rounds; ++i) {
    MPI_Request both[2];
    int flag;
    MPI_Irecv(in, 8, MPI_CHAR, 1 - rank, tag, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(out, 8, MPI_CHAR, 1 - rank, tag, MPI_COMM_WORLD, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    if (i % 100 == 0) MPI_Iprobe(MPI_ANY_SOURCE, 98, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
  }
  return number;
}
int main(int argc, char** argv) {
  int provided;
  const int threads = atoi(argv[1]);
  pthread_t others[16];
  rounds = atol(argv[2]);
  MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (long i = 1; i < threads; ++i) pthread_create(&others[i], 0, talk, (void*)i);
  talk(0);
  for (int i = 1; i < threads; ++i) pthread_join(others[i], 0);
  tell();
  MPI_Finalize();
}
"""


class Memory(Recorded):
    """That of a process, with a recording and without one, of 10^6 calls and of twice as many: what is its own at its
    end, and all that it had at most (VmHWM), with the code that was read from files. Which pages of code are there
    differs from run to run by some 200 KB."""

    CALLS = 1_000_000
    A_PROCESS, A_THREAD, CODE = 400 << 10, 80 << 10, 2 << 20  # bytes, as docs/recording.md says
    NOISE, NOISE_OF_CODE = 256 << 10, 512 << 10

    def setUp(self):
        super().setUp()
        (self.folder / "memory.c").write_text(MEMORY)
        self.program = self.compile(self.folder / "memory.c", "memory", "-pthread")

    def most(self, recorded, calls, threads=1):
        """Bytes of its own, and with all code at most; the least of two runs, of both ranks the larger one."""
        words = [self.program, threads, calls // 4 // threads]
        found = []
        for _ in range(2):
            if recorded:
                text = self.run_it(2, *words, options=("--out", self.folder / "run")).stdout
                size = sum(file.stat().st_size for file in (self.folder / "run").iterdir())
                self.assertGreater(size, 2 * calls * 12, "all of the calls were recorded")
                shutil.rmtree(self.folder / "run")
            else:
                line = [*map(str, [self.bin / "mpiexec", "-n", 2, *words])]
                done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=60, env=self.environment())
                text = done.stdout
            told = {(rank, name): int(kb) << 10 for rank, name, kb in re.findall(r"@(\d) (\w+):\s*(\d+) kB", text)}
            self.assertEqual(len(told), 6, text)
            own = max(told[rank, "RssAnon"] + told[rank, "RssShmem"] for rank in "01")
            found.append((own, max(told[rank, "VmHWM"] for rank in "01")))
        return np.array(found).min(axis=0)

    def check(self, more, threads=1):
        own, all_ = more.tolist()
        print(f"{self.mpi}, threads: {threads}: recorded {own >> 10} KB more of its own, {all_ >> 10} KB more at most with code")
        self.assertLess(own, self.A_PROCESS + threads * self.A_THREAD)
        self.assertLess(all_, self.A_PROCESS + threads * self.A_THREAD + self.CODE)

    def test_it_does_not_grow_with_the_calls(self):
        self.most(True, 4000)  # another MPI's layer is compiled
        without, once, twice = (self.most(*one) for one in ((False, self.CALLS), (True, self.CALLS), (True, 2 * self.CALLS)))
        self.check(once - without)
        own, all_ = (twice - once).tolist()
        print(f"{self.mpi}: of twice the calls {own >> 10} KB more again, {all_ >> 10} KB with code")
        self.assertLess(own, self.NOISE)
        self.assertLess(all_, self.NOISE_OF_CODE)


class MemoryMpich(Memory):
    mpi = "mpich"


class MemoryOfThreads(Memory):
    """With eight of them, of ours."""

    def test_it_does_not_grow_with_the_calls(self):
        self.check(self.most(True, 100_000, 8) - self.most(False, 100_000, 8), 8)


STEPS = """#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}
static volatile long long* counter(int rank) { /* in a file, so that it outlives the process */
  char name[32];
  snprintf(name, sizeof name, "steps-of-%d", rank);
  const int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (ftruncate(file, 8)) exit(1);
  return mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}
int main(int argc, char** argv) {
  int rank;
  const int nap = atoi(argv[1]);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  volatile long long* const steps = counter(rank);
  printf("start %d %d %lld\\n", rank, (int)getpid(), now());
  fflush(stdout);
  for (;;) {
    MPI_Barrier(MPI_COMM_WORLD);
    ++*steps;
    if (nap) {
      printf("step %d %lld\\n", rank, now());
      fflush(stdout);
      usleep((unsigned)nap);
    }
  }
}
"""


class Killed(Recorded):
    BLOCK = 1.0  # s: record_spans.block of tools/record/clocks.c; where a block is not full before
    ROWS = 8064  # of a full block: RECORD_ROWS of tools/record/recorder.h
    RANKS = 2
    LONGER = 1, 4, 12  # blocks, until there is enough to look at on a machine that others use

    def killed(self, nap, seconds):
        """Runs it so long after its start, and kills it. Of each rank its file; when they were killed, at first and at last
        (ns); of each rank when it was through with its steps, where it naps."""
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        (self.folder / "steps.c").write_text(STEPS)
        program = self.compile(self.folder / "steps.c", "steps")
        with open(self.folder / "said", "w+", encoding="utf-8") as said:
            line = [self.bin / "mpiexec", "-n", self.RANKS, HEADWAY, "record", "--out", self.folder / "run", program, nap]
            job = subprocess.Popen(
                [*map(str, line)], cwd=self.folder, env=self.environment(), stdout=said, stderr=subprocess.DEVNULL
            )
            try:
                starts, until = {}, time.monotonic() + 30
                while len(starts) < self.RANKS and time.monotonic() < until:
                    time.sleep(0.01)
                    found = re.findall(r"^start (\d) (\d+) (\d+)$", (self.folder / "said").read_text(), re.M)
                    starts = {int(rank): (int(pid), int(ns)) for rank, pid, ns in found}
                self.assertEqual(len(starts), self.RANKS)
                last = max(ns for _, ns in starts.values())
                time.sleep(max(0, last / 1e9 + seconds - time.monotonic()))
                first = time.monotonic_ns()
                for pid, _ in starts.values():
                    os.kill(pid, signal.SIGKILL)
                last = time.monotonic_ns()
            finally:
                job.kill()
                job.wait(30)
            steps = re.findall(r"^step (\d) (\d+)$", (self.folder / "said").read_text(), re.M)
        files = [format.read(self.folder / "run" / f"rank-{rank}.hwr") for rank in range(self.RANKS)]
        return files, (first, last), [[int(ns) for of, ns in steps if int(of) == rank] for rank in range(self.RANKS)]

    def ends(self, file):
        """Of its barriers, ns of CLOCK_MONOTONIC."""
        rank, clock = file.rank, file.clock
        self.assertFalse(rank.finalized)
        self.assertRegex(rank.problem, "^$|cut short")  # in the middle of a write
        kinds = [rank.name(int(kind)) == "MPI_Barrier" for kind in range(len(rank.functions))]
        ends = rank.events["end"][np.array(kinds)[rank.events["kind"] & 0x7FFF] & (rank.events["kind"] < 0x8000)]
        rate = (clock[-1, 1] - clock[0, 1]) / (clock[-1, 0] - clock[0, 0])
        return clock[-1, 1] + (ends.astype(np.int64) - clock[-1, 0]) * rate

    def test_of_a_slow_program_all_up_to_a_second_before(self):
        """A block is nearly empty when its second is over. It is written by the next call: a rank that had no core just then
        is late by as much as its steps lie apart."""
        nap = 0.02
        for blocks in self.LONGER:
            files, (first, last), steps = self.killed(round(nap * 1e6), (blocks + 0.95) * self.BLOCK)
            late = [max(np.diff([*of_rank, last]), default=0) for of_rank in steps]
            safe = [first - (self.BLOCK + nap) * 1e9 - one for one in late]
            counts = [sum(ns < of for ns in of_rank) for of_rank, of in zip(steps, safe)]
            if min(counts) > 10:
                break
        self.assertGreater(min(counts), 10)
        for file, count, of in zip(files, counts, safe):
            ends = self.ends(file)
            self.assertGreaterEqual(len(ends), count, "what was over by then is there")
            self.assertGreater(ends.max(), of)
            self.assertLess(ends.max(), last + 1e8)

    def test_of_a_busy_program_all_up_to_the_last_full_block(self):
        for blocks in self.LONGER:
            files, _, _ = self.killed(0, (blocks - 0.3) * self.BLOCK)
            every = [len(self.ends(file)) for file in files]
            if min(every) > 10_000:
                break
        for rank, there in enumerate(every):
            self.assertGreater(there, 10_000)
            steps = int.from_bytes((self.folder / f"steps-of-{rank}").read_bytes(), "little")
            self.assertLessEqual(steps - there, self.ROWS)


if __name__ == "__main__":
    unittest.main(verbosity=2)
