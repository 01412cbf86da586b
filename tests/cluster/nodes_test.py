"""Test of hosts with several ranks: an alltoall knows them, and fewer messages cross the wire."""

import os
import re

import support
from support import ClusterTest, cluster

HOSTS, EACH = 2, 2
BYTES, CALLS = 1024, 50  # the rules go by node there


class Nodes(ClusterTest):
    def test_ranks_of_a_host_side_by_side_are_known_as_its_own(self):
        cluster("up", "--hosts", HOSTS, "--rate", "1gbit")
        done = cluster("run", "-n", HOSTS * EACH, "--ranks-per-host", EACH, "--mpi", "headway", "--quiet",
                       "--timeout", 60, "--", os.path.join(support.BUILD, "tests", "cluster", "nodes"),
                       BYTES, CALLS, EACH)
        found = dict(re.findall(r"^(\w+) (frames=.*)$", done.stdout, re.M))
        self.assertEqual(set(found), {"side", "turns"}, done.stdout)
        frames = {}
        for name, words in found.items():
            count, wrong = re.fullmatch(r"frames=([\d.]+) wrong=(\d+)", words).groups()
            self.assertEqual(wrong, "0", name)
            frames[name] = float(count)
        # One to each other host; or one to each rank there.
        self.assertGreaterEqual(frames["side"], HOSTS - 1, frames)
        self.assertLess(frames["side"], HOSTS - 1 + 0.5, frames)
        self.assertGreaterEqual(frames["turns"], (HOSTS - 1) * EACH, frames)


if __name__ == "__main__":
    support.main()
