"""Programs that sleep, allocate, read clocks or print between a receive and the first look at its
data keep the gain of a release at the match: none of that waits for pages that it does not reach.
And a page that is awaited is asked for. Over a simulated link, and stderr is a pipe."""

import json
import os
import pathlib
import tempfile

from jobs import BUILD, environment, greater, is_refused, judge, less, patient, sleeper  # sets paths for the next import

import support
from support import ClusterTest, cluster


class AtTheMatch(ClusterTest):
    """2.4 MB take 200 ms at 100 Mbit/s; the receiver has 200 ms of work."""

    def check(self, deed):
        def run(mode):
            done = cluster("run", "-n", 2, "--ranks-per-host", 1, "--timeout", 60, "--",
                           *sleeper(2_400_000, 0, 40, 4, deed),
                           env=environment("matched" if mode == "on" else "off"))
            return done.stdout, done.stderr

        judge(self, run)

    def test_all(self):
        cluster("up", "--hosts", 2, "--rate", "100mbit")
        for deed in ("none", "sleep", "allocate", "clock", "print"):
            with self.subTest(deed=deed):
                self.check(deed)


class OutOfTurn(ClusterTest):
    """32 MB in 270 ms, read from their end."""

    def test_demand(self):
        cluster("up", "--hosts", 2, "--rate", "1000mbit")
        self.demand()

    @patient
    def demand(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(BUILD, "tests", "programs", "early_release")
            env = environment("matched", HEADWAY_COUNTERS=os.path.join(folder, "%r"))
            done = cluster("run", "-n", 2, "--ranks-per-host", 1, "--timeout", 60, "--", program,
                           "--only=from_the_end", env=env)
            self.assertIn("ok 1 case", done.stdout)
            if is_refused(done.stderr):
                self.skipTest("no receive is released early on this machine")
            ranks = [json.loads(path.read_text()) for path in pathlib.Path(folder).iterdir()]
            for counter in ("demands", "demands_heeded"):
                greater(sum(rank[counter] for rank in ranks), 0, counter)
                # Once the direction is known, the rest comes without being asked for.
                less(sum(rank[counter] for rank in ranks), 30, counter)


if __name__ == "__main__":
    support.main()
