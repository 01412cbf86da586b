"""Test of collectives on several hosts: what goes in pieces is right from every root, and enters each host once."""

import os
import re

import support
from support import ClusterTest, cluster

LONG = 400_000  # bytes


class Pieces(ClusterTest):
    def check(self, hosts, each):
        cluster("up", "--hosts", hosts, "--rate", "1gbit")
        done = cluster("run", "-n", hosts * each, "--ranks-per-host", each, "--mpi", "headway", "--quiet", "--timeout", 60,
                       "--", os.path.join(support.BUILD, "tests", "cluster", "pieces"), each, LONG,
                       # What is asked for ahead of its send comes twice where it was not ready yet (docs/collectives.md).
                       env=dict(os.environ, HEADWAY_PREFETCH="off"))
        found = re.findall(r"^(\w+) wrong=(\d+) sent=([\d.]+) all=([\d.]+)$", done.stdout, re.M)
        self.assertEqual([(name, wrong) for name, wrong, *_ in found], [("side", "0"), ("turns", "0")], done.stdout)
        for _, _, sent, whole in found:
            self.assertGreater(float(sent), 0.99)
            self.assertLess(float(sent), 1.1)  # by a tree the root sends it twice or more
            self.assertGreater(float(whole), hosts - 1.01)
            self.assertLess(float(whole), (hosts - 1) * 1.1)

    def test_hosts_of_one_rank(self):
        self.check(5, 1)

    def test_hosts_of_two_ranks(self):
        self.check(3, 2)


if __name__ == "__main__":
    support.main()
