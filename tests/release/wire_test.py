"""Programs that sleep, allocate, read clocks or print between a receive and the first look at its
data keep the gain of a release at the match: none of that waits for pages that it does not reach.
Over a simulated link, and stderr is a pipe."""

from jobs import environment, judge, sleeper  # sets the paths that the next import needs

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


if __name__ == "__main__":
    support.main()
