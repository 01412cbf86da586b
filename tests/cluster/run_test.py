"""Tests of `cluster run`: ranks lie where they should, and what they send crosses the wire."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest

import support
from support import NAME, ClusterTest, cluster

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = os.path.join(os.environ.get("HEADWAY_CACHE", os.path.join(os.environ.get(
    "XDG_CACHE_HOME", os.path.join(os.environ.get("HOME", "/root"), ".cache")), "headway")))
BYTES, STEPS = 200_000, 10
FIELDS = re.compile(r"rank=(\d+) size=(\d+) host=(\S+) node=(\d+) wrong=(\d+)")


class Run(ClusterTest):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="headway-cluster-")
        self.addCleanup(shutil.rmtree, self.folder, True)

    def ring(self, mpi, program, ranks, per_host):
        """Runs the ring; returns (host, node size) by rank and the report."""
        report = os.path.join(self.folder, "report.json")
        done = cluster("run", "-n", ranks, "--ranks-per-host", per_host, "--mpi", mpi,
                       "--timeout", 60, "--report", report, "--", program, BYTES, STEPS)
        self.assertRegex(done.stderr, r"cluster: (valid|INVALID because) ")
        found = {}
        for rank, size, host, node, wrong in FIELDS.findall(done.stdout):
            self.assertEqual((int(size), int(wrong)), (ranks, 0), done.stdout)
            found[int(rank)] = (host, int(node))
        self.assertEqual(sorted(found), list(range(ranks)), done.stdout + done.stderr)
        with open(report, encoding="utf-8") as file:
            return [found[r] for r in range(ranks)], json.load(file)

    def check_ring(self, mpi, program):
        cluster("up", "--hosts", 3, "--rate", "1gbit")
        for per_host in (1, 2):
            with self.subTest(mpi=mpi, ranks_per_host=per_host):
                ranks = 3 * per_host
                places, report = self.ring(mpi, program, ranks, per_host)
                self.assertEqual(places, [(f"h{r // per_host}", per_host) for r in range(ranks)])
                # One rank of each host sends to the next host: its payload, headers, a little for
                # the launcher, and not what ranks on one host tell each other.
                for sent in report["sent_bytes"]:
                    self.assertGreater(sent, BYTES * STEPS)
                    self.assertLess(sent, BYTES * STEPS * 1.15 + 100_000)
                self.assertEqual(report["backlog_drops"] + report["shaper_drops"], 0)
                self.assertEqual(report["ranks"], ranks)
                self.assertEqual(report["awake"], os.access("/dev/cpu_dma_latency", os.W_OK))

    def check_peer(self, mpi):
        compiler = os.path.join(PEERS, mpi, "bin", "mpicc")
        if not os.access(compiler, os.X_OK):
            self.skipTest(f"{mpi} is not installed (scripts/peers.sh)")
        program = os.path.join(self.folder, "ring")
        subprocess.run([compiler, os.path.join(HERE, "ring.c"), "-o", program], check=True,
                       timeout=60)
        self.check_ring(mpi, program)

    def test_mpich(self):
        self.check_peer("mpich")

    def test_openmpi(self):
        self.check_peer("openmpi")

    def test_headway(self):
        program = os.path.join(support.BUILD, "tests", "cluster", "ring")
        if not os.access(program, os.X_OK):
            self.skipTest("the library is not built")
        self.check_ring("headway", program)

    def test_processors_stay_awake_for_as_long_as_something_runs(self):
        if not os.access("/dev/cpu_dma_latency", os.W_OK):
            self.skipTest("this machine has no /dev/cpu_dma_latency")
        cluster("up", "--hosts", 2, "--rate", "1gbit")
        inside = cluster("exec", 0, "--", "sh", "-c", "ls -l /proc/$$/fd").stdout
        self.assertIn("/dev/cpu_dma_latency", inside)

    def test_our_launcher_places_ranks(self):
        if not os.access(os.path.join(support.BUILD, "bin", "mpiexec"), os.X_OK):
            self.skipTest("mpiexec is not built")
        cluster("up", "--hosts", 2, "--rate", "1gbit")
        done = cluster("run", "-n", 4, "--", "sh", "-c", "echo $PMI_RANK $(hostname)")
        self.assertEqual(sorted(done.stdout.splitlines()), ["0 h0", "1 h0", "2 h1", "3 h1"])
        failed = cluster("run", "-n", 2, "--", "sh", "-c", "exit 7", check=False)
        self.assertEqual(failed.returncode, 7)
        missing = cluster("run", "-n", 2, "--", "/no/such/program", check=False)
        self.assertNotEqual(missing.returncode, 0)
        self.assertIn("/no/such/program", missing.stderr)


class Ends(ClusterTest):
    def setUp(self):
        super().setUp()
        cluster("up", "--hosts", 2, "--rate", "1gbit")

    def launch(self, *words, **more):
        """`env` in the place of a launcher: it drops our words and runs the program on the machine
        itself, which then enters the hosts."""
        return cluster("run", "-n", 2, "--launcher", os.path.join(HERE, "launcher.sh"), *words,
                       **more)

    def test_too_many_ranks(self):
        done = self.launch("--ranks-per-host", 1, "-n", 3, "--", "true", check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("do not fit", done.stderr)

    def test_environment_and_exit_code(self):
        done = self.launch("--", "sh", "-c", "echo $CLUSTER_DILATION $COLOUR",
                           env=dict(os.environ, COLOUR="green"))
        self.assertEqual(done.stdout, "1 green\n" * 2)
        self.assertEqual(self.launch("--", "sh", "-c", "exit 9", check=False).returncode, 9)

    def test_time_out_ends_all_ranks(self):
        mark = f"61.{os.getpid()}"
        began = time.monotonic()
        done = self.launch("--timeout", 1, "--", "sh", "-c", f"trap '' TERM; sleep {mark}; :",
                           check=False)
        self.assertEqual(done.returncode, 124)
        self.assertLess(time.monotonic() - began, 20)
        left = subprocess.run(["pgrep", "-f", f"sleep {mark}"], capture_output=True, check=False)
        self.assertEqual(left.stdout, b"", "a rank lives on")

    def test_strict(self):
        # All processors busy and waited for: such a run cannot be true.
        burn = "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done"
        load = f"for k in 1 2 3 4; do ({burn}) & done; wait"
        done = self.launch("--strict", "--", "sh", "-c", load, check=False)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("INVALID because the processors were saturated", done.stderr)

    def test_name_of_the_cluster_is_kept_apart(self):
        self.assertEqual(cluster("run", "-n", 2, "--", "true", name=NAME + "x",
                                 check=False).returncode, 1)


if __name__ == "__main__":
    support.main()
