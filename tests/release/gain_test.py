"""Programs that sleep, allocate or read clocks between a receive and the first look at its data keep
the gain of a release before the match: none of that waits for the message. (What is printed waits
for the match, and may gain nothing.)"""

import subprocess
import unittest

from jobs import MPIEXEC, environment, judge, sleeper


class BeforeTheMatch(unittest.TestCase):
    """The sender begins 100 ms late; the receiver has 100 ms of work."""

    def check(self, deed, **more):
        def run(mode):
            done = subprocess.run(
                [MPIEXEC, "-n", "2", *sleeper(200_000, 100, 20, 5, deed)],
                env=environment("always" if mode == "on" else "off", **more),
                capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout, done.stderr

        judge(self, run)

    def test_computing(self):
        self.check("none")

    def test_sleeping(self):
        self.check("sleep")

    def test_allocating(self):
        self.check("allocate")

    def test_reading_clocks(self):
        self.check("clock")

    def test_sleeping_over_tcp(self):
        self.check("sleep", HEADWAY_SHM="off")

    def test_allocating_over_tcp(self):
        self.check("allocate", HEADWAY_SHM="off")


if __name__ == "__main__":
    unittest.main(verbosity=2)
