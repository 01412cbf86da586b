"""Test of topologies over several hosts: with reorder, neighbours share hosts, and what they send arrives."""

import os

import support
from support import ClusterTest, cluster


class Topology(ClusterTest):
    def counts(self):
        """For each topology: ends of edges that lead to another host, without reorder and with it."""
        done = cluster("run", "-n", 8, "--ranks-per-host", 2, "--mpi", "headway", "--quiet", "--timeout", 60,
                       "--", os.path.join(support.BUILD, "tests", "cluster", "topology"))
        rows = [line.split() for line in done.stdout.splitlines()]
        return {name: (int(before), int(after)) for name, before, after in rows}

    def test_neighbours_share_hosts(self):
        cluster("up", "--hosts", 4, "--rate", "1gbit")
        # A ring of 8: 4 of its 8 links cross at least, seen from both ends. A grid of 4 x 2 whose ranks
        # are dealt out down its columns: blocks of 1 x 2 leave 6 links, as many as there must be.
        self.assertEqual(self.counts(), {"ring": (16, 8), "grid": (20, 12), "graph": (8, 0),
                                         "adjacent": (8, 0), "general": (8, 0)})


if __name__ == "__main__":
    support.main()
