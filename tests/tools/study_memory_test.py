#!/usr/bin/env python3
"""`headway study`: the memory that a raised limit takes, and whether raising it helps at all."""

import sys
import unittest
from pathlib import Path

from study_made import K, Made

from headway.measure import contestants
from headway.study import findings, memory, plan, verdicts


class Memory(Made):
    def test_memory_and_the_systems_limit(self):
        of = findings.read(self.store()).of["b", "shm"]
        (said,) = verdicts.of_memory(of, "1gbit", {"tcp_wmem": 4 << 20, "wmem_max": 212992})
        self.assertIn("a socket 4 MB to send from at most", said.seen)
        self.assertIn("208 KB if a program asks", said.seen)
        self.assertIn("computed, not tried", said.seen)

    def memory_rows(self, held, done, standing=1 << 20, size=128 * K, option="LIMIT=1"):
        """Of 16 and 64 ranks; `held` bytes a peer, and 10 KB more memory for each further rank where it is raised."""
        entries = {}
        for which in ("now", "raised"):
            for ranks in (16, 64) if done else (16,):
                peers = ranks - 1
                extra = {
                    "ranks": ranks,
                    "peers": peers,
                    "done": peers if done else 3,
                    "standing": standing + (10 * K * peers if which == "raised" else 0),
                    "most": 0,
                }
                row = {"measure": "memory", "size": size, "samples": [held * peers], "extra": extra}
                entry = {"failure": "", "rows": [row], "way": option if which == "raised" else ""}
                entries[f"memory/{which}/{ranks}"] = entry
        return memory.read(entries)

    def test_memory_that_was_measured(self):
        of = findings.read(self.store()).of["b", "shm"]
        of.memory = self.memory_rows(200 * K, True, size=2 * of.switch)
        (said,) = verdicts.of_memory(of, "shm", {})
        self.assertIn("(LIMIT=1) frees it", said.seen)
        self.assertIn("2.9 MB with 15 peers and 12 MB with 63 (measured, 200 KB each)", said.seen)
        self.assertIn("by that slope 50 MB with 256, 0.8 GB with 4,096 peers (computed)", said.seen)
        rows = memory.numbers(of.memory)
        self.assertEqual([r[:2] for r in rows[1:3]], [["63 of 64 ranks", "measured"], ["256", "computed"]])
        self.assertEqual(rows[2][2:4], ["1 MB", "3.5 MB"])

    def test_memory_where_the_option_does_not_help(self):
        of = findings.read(self.store()).of["b", "shm"]
        of.memory = self.memory_rows(200 * K, False, size=2 * of.switch)
        (said,) = verdicts.of_memory(of, "shm", {})
        self.assertIn("(LIMIT=1) does not free it: 12 of 15 sends of that size still waited", said.seen)
        self.assertEqual(memory.numbers(of.memory), [])
        of.memory.size = 1
        self.assertIn("computed, not tried", verdicts.of_memory(of, "shm", {})[0].seen, "of another limit")

    def test_memory_that_could_not_be_tried(self):
        of = findings.read(self.store()).of["b", "shm"]
        failed = {"failure": "ended at its time limit", "rows": [], "way": "LIMIT=1"}
        of.memory = memory.read({"memory/raised/16": failed})
        (said,) = verdicts.of_memory(of, "shm", {})
        self.assertIn("(computed: LIMIT=1 was tried and gave too few results)", said.seen)
        self.assertEqual(memory.numbers(of.memory), [])

    def test_limits_are_raised_by_each_mpis_own_option(self):
        opened, ours_ = contestants.openmpi(Path("/o")), contestants.headway(Path("/h"))
        self.assertEqual(memory.options(opened, plan.net("1gbit"), 64 * K)["OMPI_MCA_btl_tcp_eager_limit"], "66560")
        self.assertEqual(memory.options(ours_, plan.SHM, 64 * K), {})
        task = memory.task(plan.net("1gbit"), 64 * K, 64, {"A": "1"})
        self.assertEqual((task.per_host, task.words[3], task.settings[-3:], task.timed), (32, "32", "A=1", False))


if __name__ == "__main__":
    unittest.main(verbosity=1, argv=sys.argv)
