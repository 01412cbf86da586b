#!/usr/bin/env python3
"""What a recording took of its run: as the recorder says it at the end, as `headway advise` and its page tell it, and as
it is when the same program runs without a recorder."""

import json
import re
import statistics
import subprocess
import unittest

from support import ROOT, Folder, headway, need_packages

need_packages("numpy", "rich", "typer")

import record_made as made  # noqa: E402
from headway.record import by_site, cost, format, reading, report, waiting  # noqa: E402
from headway.record.model import IN_VAIN  # noqa: E402
from recording import Recorded  # noqa: E402

CLOSING = re.compile(
    r"recorded into \S+, which took (?:less than 0\.01|\d+\.\d\d)(?: to \d+\.\d\d)? % of rank (\d+)'s time "
    r"\((\d+) calls of (\d+) to (\d+) ns, (\d+) us for files\); headway trace \S+ shows it"
)
EMPTY = """#include <mpi.h>
int main(int argc, char** argv) {
  int flag, i;
  char out[8] = "", in[8];
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Irecv(in, 8, MPI_CHAR, 0, 1, MPI_COMM_SELF, &request);
  for (i = 0; i < 10; ++i) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  MPI_Sendrecv(out, 8, MPI_CHAR, 0, 2, in, 8, MPI_CHAR, 0, 2, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  MPI_Send(out, 8, MPI_CHAR, 0, 1, MPI_COMM_SELF);
  MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
  MPI_Finalize();
  return 0;
}
"""
CALLS = 1 + 1 + 10 + 1 + 1 + 1 + 1
FIRST, RUNS = 10, 60
BESIDE = 1.15  # of what is told, by which factor the truth may lie beside it: runs differ by that
WIDE = 4  # of what is told at least, by which factor what is told at most may be above it, where nobody disturbs


class Told(Folder):
    def setUp(self):
        super().setUp()
        made.simulate(self.folder, [[("send", "world", 1, 0, 8)] * 30, [("recv", "world", 0, 0)] * 30])

    def tell(self, rank, told):
        """At the end of that rank's file."""
        text = json.dumps({"finalized": True, "cost": told}).encode()
        text += b" " * (-len(text) % 8)
        with open(self.folder / f"rank-{rank}.hwr", "ab") as file:
            file.write(format.BLOCK.pack(format.MAGIC, format.END, 0, len(text), 0, 0) + text)

    def found(self):
        return by_site.report(waiting.classify(reading.read(self.folder)))

    def test_the_rank_of_which_it_took_most(self):
        self.tell(0, {"calls": 1000, "call": 50_000, "timed": 10_000, "time": 10**9})
        self.tell(1, {"calls": 20_000, "call": 51_200, "timed": 3_000_000, "time": 10**9})
        found = self.found()
        share = (20_000 * 51.2 + 3e6) / 1e9
        line = (
            f"the recording itself took {100 * share:.2f} % of a rank's time, most of rank 1's: 20,000 calls of 51 ns, "
            "and 3 ms for its files"
        )
        self.assertIn(line, by_site.of_run(found))
        told = by_site.as_json(found)["run"]["recording"]
        self.assertEqual((told["rank"], told["calls"], told["timed"]), (1, 20_000, 3_000_000))
        self.assertAlmostEqual(told["share"], share)
        self.assertIn(line[1:].replace("'", "&#x27;"), report.run(found))
        done = headway("advise", self.folder)
        self.assertIn(line, " ".join(done.stdout.split()))
        self.assertIn(line[1:].replace("'", "&#x27;"), (self.folder / "report.html").read_text())
        done = headway("trace", "--no-perfetto", self.folder)
        self.assertIn(line, " ".join(done.stdout.split()))

    def test_at_least_and_at_most(self):
        self.tell(0, {"calls": 1000, "call": 25_000, "call_at_most": 60_000, "timed": 12_000, "time": 10**8})
        told = self.found()
        line = "the recording itself took 0.04 to 0.07 % of a rank's time, most of rank 0's: 1,000 calls of 25 to 60 ns, and 12 µs"
        self.assertIn(line, cost.words(told.waiting.line.run)[0])
        recording = by_site.as_json(told)["run"]["recording"]
        self.assertEqual((recording["call"], recording["call_at_most"]), (25, 60))
        self.assertAlmostEqual(recording["share_at_most"], 7.2e-4)

    def test_hardly_anything(self):
        self.tell(0, {"calls": 1, "call": 50_000, "timed": 0, "time": 10**9})
        told = cost.words(self.found().waiting.line.run)
        share = "less than 0.01 % of a rank's time, most of rank 0's"
        self.assertEqual(told, [f"the recording itself took {share}: 1 call of 50 ns, and 0 ns for its files"])

    def test_recordings_that_do_not_say_it(self):
        for told in (None, {}, {"calls": 5, "call": 0, "timed": 5, "time": 5}, {"calls": 5, "call": 5, "timed": 5, "time": 0}):
            self.tell(0, told)
            found = self.found()
            self.assertEqual(cost.words(found.waiting.line.run), [], told)
            self.assertNotIn("recording itself", " ".join(by_site.of_run(found)))
            self.assertIsNone(by_site.as_json(found)["run"]["recording"])

    def test_what_makes_no_sense(self):
        for told in (
            7, [], "x", {"calls": -1}, {"calls": 1.5}, {"call": "7"}, {"call": 1 << 40}, {"call_at_most": -1}, {"time": True}, {"timed": 1 << 63},
        ):  # fmt: skip
            with self.assertRaises(format.BadRecording, msg=told):
                cost.read({"cost": told})


class Measured(Recorded):
    def closing(self, done):
        found = CLOSING.search(done.stderr)
        self.assertIsNotNone(found, done.stderr)
        return found

    def test_its_closing_line_and_its_file(self):
        (self.folder / "empty.c").write_text(EMPTY)
        done = self.run_it(1, self.compile(self.folder / "empty.c", "empty"))
        who, calls, each, at_most, _files = self.closing(done).groups()
        run = reading.read(self.folder / "headway-run-1")
        told = run.ranks[0].cost
        self.assertEqual((who, int(calls)), ("0", CALLS))
        self.assertEqual((told.calls, round(told.call), round(told.call_at_most)), (CALLS, int(each), int(at_most)))
        self.assertTrue(5 < told.call < 5000 and told.call <= told.call_at_most < 50_000, told)
        self.assertTrue(0 < told.timed < told.time < run.duration, told)
        self.assertIn("the recording itself took", headway("advise", self.folder / "headway-run-1").stdout)
        # Measuring it has left nothing.
        rank, names = run.ranks[0], self.names(run.ranks[0])
        vain = rank.events[(rank.events["flags"] & IN_VAIN) != 0]
        self.assertEqual(int(vain["tag"].sum()), 10)
        self.assertEqual(names, {
            "MPI_Init": 1, "MPI_Irecv": 1, "MPI_Test": 1, "MPI_Sendrecv": 2, "MPI_Send": 1, "MPI_Waitall": 1, "MPI_Finalize": 1,
        })  # fmt: skip
        self.assertEqual(int(rank.events["request"].max()), 1, "numbers of operations begin at 1")

    def test_what_is_not_wanted_is_measured_too(self):
        (self.folder / "empty.c").write_text(EMPTY)
        program = self.compile(self.folder / "empty.c", "empty")
        calls = int(self.closing(self.run_it(1, program, options=("--calls", "MPI_Send"))).group(2))
        self.assertEqual(calls, 3, "with MPI_Init and MPI_Finalize")

    def seconds(self, program, recorded):
        words = [program, "--rounds", 30_000]
        if recorded:
            done = self.run_it(1, *words)
        else:
            line = [self.bin / "mpiexec", "-n", 1, *words]
            done = subprocess.run(
                [*map(str, line)], capture_output=True, text=True, check=True, timeout=60, env=self.environment()
            )
        row = json.loads(done.stdout[done.stdout.index("@@") + 2 :])
        return row["seconds"] / row["calls"] * 1e9, done

    def test_it_is_what_a_recording_takes(self):
        """A call without and with the recorder, of a program that does nothing else: it lies in what is told. Of each the
        least of all runs counts, which are so short that some have a core for themselves on a machine that others use."""
        program = self.compile(ROOT / "bench" / "record_cost.c", "cost", "-O2")
        plain, recorded, least, most = [], [], [], []
        for runs in range(1, RUNS + 1):
            plain.append(self.seconds(program, False)[0])
            took, done = self.seconds(program, True)
            recorded.append(took)
            _, calls, each, at_most, files = map(int, self.closing(done).groups())
            least.append(each + 1e3 * files / calls)
            most.append(at_most + 1e3 * files / calls)
            true, low, high = min(recorded) - min(plain), min(least), statistics.median(most)
            if runs >= FIRST and low / BESIDE < true < high * BESIDE and min(most) < WIDE * low:
                return
        self.fail(f"ns a call, as told at least, in truth, and as told at most: {low}, {true}, {high}; least of these {min(most)}")


class MeasuredMpich(Measured):
    mpi = "mpich"


class MeasuredOpenMpi(Measured):
    mpi = "openmpi"


if __name__ == "__main__":
    unittest.main(verbosity=1)
