#!/usr/bin/env python3
"""`headway advise` with real programs of each MPI that is here: it asks how that MPI moves messages, keeps what it was
told, and does without where it cannot ask."""

import json
import os
import subprocess
import unittest

from support import BUILD, HEADWAY, Folder, need_packages

need_packages("numpy", "rich", "typer")

import real_made  # noqa: E402
from headway.measure.contestants import cache  # noqa: E402
from headway.record import calibration, facts  # noqa: E402
from headway.record.transport import PULL  # noqa: E402

ROOT_USER = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
SEED = 7


LATE = """#include <mpi.h>
#include <time.h>
enum { LONG = 1 << 20 };
static char out[LONG], in[LONG];
static void work(double seconds) {
  double end = MPI_Wtime() + seconds;
  while (MPI_Wtime() < end) {
  }
}
int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int step = 0; step < 60; ++step) {
    MPI_Request send, receive;
    if (rank == 1) work(0.004);
    MPI_Irecv(in, LONG, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, &receive);
    MPI_Isend(out, LONG, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, &send);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    if (rank == 0) work(0.004);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
}
"""


def clean():
    dropped = ("PMI", "OMPI_", "PRTE_", "MPIR_", "HEADWAY_RECORD", "LD_PRELOAD")
    return {k: v for k, v in os.environ.items() if not k.startswith(dropped)} | ROOT_USER


class Asked(Folder):
    bin, options = BUILD / "bin", ()

    def setUp(self):
        super().setUp()
        if not (self.bin / "mpicc").exists():
            self.skipTest(f"{self.bin} has no MPI")

    def program(self, kind=real_made.put_off):
        made = real_made.drawn(kind, SEED)
        (self.folder / "program.c").write_text(made.text)
        words = [self.bin / "mpicc", "-g", "-O1", "-w", "program.c", "-o", "program"]
        subprocess.run(words, check=True, timeout=60, env=clean(), cwd=self.folder)
        return made

    @property
    def launcher(self):
        return [str(self.bin / "mpiexec"), *self.options, "-n", "2"]

    def advise(self, *words, code=0):
        done = subprocess.run(
            [HEADWAY, "advise", *words], capture_output=True, text=True, timeout=120, env=clean(), cwd=self.folder, check=False,
            stdin=subprocess.DEVNULL,
        )
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def data(self, done):
        return json.loads(done.stdout[done.stdout.index("{") :])["advice"]


class Headway(Asked):
    def test_asks_once_and_keeps_it(self):
        self.program()
        done = self.advise("--", *self.launcher, "./program")
        if "never had their cores undisturbed" in done.stderr:
            self.skipTest("others use this machine")
        self.assertIn("asked how this MPI moves messages:", done.stderr)
        self.assertIn("Measured of this MPI (", done.stdout)
        self.assertNotIn("was not asked", done.stderr)
        path = self.folder / "headway-run-1" / calibration.FILE
        kept = calibration.read(path)
        self.assertEqual(kept.launcher, self.launcher)
        seen = kept.facts("x").seen[facts.NEAR]
        self.assertGreaterEqual(len(seen), 1)
        self.assertNotIn(facts.FAR, kept.facts("x").seen)
        before = path.stat().st_mtime_ns
        again = self.advise("--json", "headway-run-1")
        self.assertEqual(path.stat().st_mtime_ns, before)
        told = self.data(again)["facts"]
        self.assertEqual([row["size"] for row in told["near"]], [one.size for one in seen])
        self.assertEqual(told["far"], [])
        other = self.advise("--json", "--facts", "headway-run-1", "headway-run-1")
        self.assertEqual(self.data(other)["facts"]["near"], told["near"])
        done = self.advise("--calibrate", "headway-run-1", "--", *self.launcher, code=None)
        if "never had their cores undisturbed" not in done.stderr:
            self.assertGreater(path.stat().st_mtime_ns, before, "asked again")
        self.check(seen)

    def check(self, seen):
        """What was asked while nobody took a core. Our message thread may be without one here: that is as it is."""
        for one in seen:
            self.assertTrue(one.copied is None or one.copied or one.moves, one)
            if one.size >= 100_000:  # that a wait goes on, with a copy left behind, does not make it one that is copied
                self.assertIsNot(one.copied, True, one)

    def test_without_asking(self):
        self.program()
        done = self.advise("--no-calibrate", "--", *self.launcher, "./program")
        self.assertFalse((self.folder / "headway-run-1" / calibration.FILE).exists())
        self.assertNotIn("Measured of this MPI", done.stdout)
        done = self.advise("headway-run-1", "--", *self.launcher)
        if "never had their cores undisturbed" not in done.stderr:
            self.assertTrue((self.folder / "headway-run-1" / calibration.FILE).exists(), "asked afterwards")

    def test_a_line_that_cannot_be_used_again(self):
        self.program()
        self.script("wrapper.sh", 'exec ./program')
        done = self.advise("--", *self.launcher, "./wrapper.sh")
        self.assertIn("was not asked: the line does not end with the program and its arguments", done.stderr)
        self.advise("--calibrate", "headway-run-1", code=2)

    def test_facts_of_another_mpi(self):
        self.program()
        self.advise("--", *self.launcher, "./program")
        path = self.folder / "headway-run-1" / calibration.FILE
        if not path.exists():
            self.skipTest("others use this machine")
        path.write_text(json.dumps(json.loads(path.read_text()) | {"mpi": "Another one"}))
        done = self.advise("headway-run-1")
        self.assertRegex(done.stderr, r"left out: .* is of another MPI: Another one")
        self.assertIn("another MPI", self.advise("--facts", str(path), "headway-run-1", code=2).stderr)


class Mpich(Headway):
    bin = cache() / "mpich" / "bin"

    def check(self, seen):
        """In shared memory the receiver copies what is long; where others took the cores, nothing is said."""
        small, large = seen[0], seen[-1]
        self.assertIn(small.copied, (None, True))
        self.assertIn(large.copied, (None, False))
        if large.copied is False:
            self.assertEqual((large.moves, large.busy), ((PULL,), True))

    test_a_line_that_cannot_be_used_again = test_facts_of_another_mpi = test_without_asking = None


class OpenMpi(Mpich):
    bin, options = cache() / "openmpi" / "bin", ("--bind-to", "none")


class Late(Asked):
    """Rank 0 waits for its send until rank 1 has computed, though it could compute meanwhile."""

    bin = cache() / "mpich" / "bin"

    def test_what_to_change(self):
        (self.folder / "late.c").write_text(LATE)
        subprocess.run(
            [self.bin / "mpicc", "-g", "-O1", "late.c", "-o", "late"], check=True, timeout=60, env=clean(), cwd=self.folder
        )
        for run in range(1, 5):  # while others take its cores nothing can be said, which is told
            done = self.advise("--", *self.launcher, "./late")
            self.assertIn("late receiver", done.stdout)
            self.assertTrue((self.folder / f"headway-run-{run}" / "rank-1.hwr").exists())
            if "somebody else had a rank's core" not in " ".join(done.stdout.split()):
                break
        else:
            self.skipTest("others use this machine: its ranks never had their cores")
        self.assertRegex(done.stdout, r"1\. .*MPI_Wait .*late\.c:19.*late\.c:21")
        self.assertIn('"headway-advice"', self.advise("--json", "headway-run-1").stdout)


class Lines(Asked):
    def test_that_cannot_be(self):
        self.assertIn("which launcher?", self.advise("--", code=2).stderr)
        self.assertIn("nothing was recorded", self.advise("--", "true", code=4).stderr)


if __name__ == "__main__":
    unittest.main(verbosity=1)
