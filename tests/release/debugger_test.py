"""gdb on a job whose receives are released early: it attaches while pages are closed, stops where it
is told to, looks at the data, and the job goes on and is right. The line that docs/early-release.md
gives keeps it from stopping at every trapped call."""

import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from jobs import MPIEXEC, ROOT, environment, is_refused, sleeper

QUIET = "handle SIGSYS nostop noprint pass"
ROUNDS = 40


class Debugger(unittest.TestCase):
    def start(self, **more):
        """A job; the process id of its rank 1, once that has begun."""
        self.output = tempfile.TemporaryFile("w+")
        self.addCleanup(self.output.close)
        self.job = subprocess.Popen(
            [MPIEXEC, "-n", "2", *sleeper(300_000, 40, 6, ROUNDS, "clock")],
            env=environment("always", **more), stdout=self.output, stderr=subprocess.STDOUT)
        self.addCleanup(self.job.wait)
        self.addCleanup(self.job.kill)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            found = re.search(r"^process (\d+)$", self.so_far(), re.M)
            if found:
                return found.group(1)
            time.sleep(0.01)
        raise AssertionError(f"the job did not begin: {self.so_far()}")

    def so_far(self):
        self.output.seek(0)
        return self.output.read()

    def gdb(self, process, *commands):
        words = ["gdb", "-nx", "-batch", "-p", process, "-ex", "set pagination off"]
        for command in commands:
            words += ["-ex", command]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=90, check=False)
        return done.stdout + done.stderr

    def ends_well(self):
        code = self.job.wait(timeout=60)
        output = self.so_far()
        if is_refused(output):
            self.skipTest("no receive is released early on this machine")
        self.assertEqual(code, 0, output)
        self.assertEqual(len(re.findall(r"^ms ", output, re.M)), ROUNDS, output)

    def stops_and_goes_on(self, **more):
        process = self.start(**more)
        seen = self.gdb(process, QUIET, "break after_receive", "continue", "bt 3",
                        "print round_now", "x/2xb data + 150000", "continue", "delete",
                        "print round_now", "detach")
        # Attaching stops the program wherever it is, perhaps just where a call has been trapped:
        # gdb tells of that before it can be told to be quiet.
        self.assertNotIn("SIGSYS,", seen[seen.index("Breakpoint 1 at"):], seen)
        self.assertEqual(len(re.findall(r"^Thread 1 .* hit Breakpoint", seen, re.M)), 2, seen)
        self.assertRegex(seen, r"#1 .* main \(")
        rounds = [int(word) for word in re.findall(r"^\$\d+ = (\d+)$", seen, re.M)]
        self.assertEqual(len(rounds), 2, seen)
        self.assertEqual(rounds[1], rounds[0] + 1)
        self.ends_well()

    def test_breakpoints(self):
        self.stops_and_goes_on()

    def test_breakpoints_over_tcp(self):
        self.stops_and_goes_on(HEADWAY_SHM="off")

    def test_to_the_end(self):
        seen = self.gdb(self.start(), QUIET, "continue")
        self.assertRegex(seen, r"exited normally")
        self.ends_well()

    def test_attach_and_detach_often(self):
        process = self.start()
        for _ in range(5):
            self.assertIn("detached", self.gdb(process, "bt 2", "detach"))
        self.ends_well()

    def test_without_the_line(self):
        """It stops at a trapped call, and says which signal that was."""
        process = self.start()
        seen = self.gdb(process, "continue", "detach")
        self.assertRegex(seen, r"received signal SIGSYS")
        self.ends_well()

    def test_the_line_is_documented(self):
        with open(f"{ROOT}/docs/early-release.md", encoding="utf-8") as file:
            self.assertIn(QUIET, file.read())


if __name__ == "__main__":
    if shutil.which("gdb") is None:
        print("skipped: there is no gdb")
        sys.exit(77)
    unittest.main(verbosity=2)
