"""Tests of crashes: `up` is killed at many points; `down`, or the next `up`, cleans all of it."""

import glob
import os
import random
import signal
import subprocess
import time

import support
from support import NAME, ClusterTest, cluster, machine

HOSTS = 24
FOLDER = f"{machine.BASE}/{NAME}"
SEED = int(os.environ.get("CLUSTER_SEED", time.time_ns() % 1_000_000))


def start():
    return subprocess.Popen([*support.CLUSTER, "up", "--name", NAME, "--hosts", str(HOSTS),
                             "--rate", "100mbit", "--hosts-per-switch", "8"],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def kill(process):
    """SIGKILL to the maker alone: its children (ip, tc) live on for a moment, as in a crash."""
    process.send_signal(signal.SIGKILL)
    return process.wait(20)


class Crash(ClusterTest):
    def killed_when(self, reached, limit=20):
        process = start()
        deadline = time.monotonic() + limit
        while not reached() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.0002)
        code = kill(process)
        self.assertIn(code, (0, -9), "up failed by itself")
        # What was changed must be on disk by now.
        backlog = "net/core/netdev_max_backlog"
        with machine.lock():
            if self.original.get(backlog) != machine.read_setting(backlog):
                saved = machine.load(machine.saved_file())
                self.assertEqual(saved["before"][backlog], self.original[backlog])
        return code

    def test_down_cleans_after_a_crash_at_each_stage(self):
        stages = [
            lambda: os.path.exists(FOLDER),
            lambda: os.path.exists(f"{FOLDER}/state.json"),
            lambda: os.path.exists(machine.saved_file()),
            lambda: os.path.exists(f"{FOLDER}/shm"),
            lambda: os.path.exists(f"{FOLDER}/fabric.net"),
            lambda: len(glob.glob(f"{FOLDER}/h*.net")) >= 1,
            lambda: len(glob.glob(f"{FOLDER}/h*.uts")) >= HOSTS // 2,
            lambda: len(glob.glob(f"{FOLDER}/h*.net")) >= HOSTS,
        ]
        killed = 0
        for number, stage in enumerate(stages):
            with self.subTest(stage=number):
                killed += self.killed_when(stage) == -9
                cluster("down")
                self.same_as_before()
        self.assertGreaterEqual(killed, len(stages) - 2, "hardly any kill came in time")

    def test_down_cleans_after_a_crash_at_any_moment(self):
        began = time.monotonic()
        self.assertEqual(start().wait(60), 0)
        whole = time.monotonic() - began
        cluster("down")
        random.seed(SEED)
        print(f"CLUSTER_SEED={SEED}")
        for _ in range(12):
            moment = random.uniform(0, whole)
            with self.subTest(seed=SEED, moment=moment):
                until = time.monotonic() + moment
                self.killed_when(lambda until=until: time.monotonic() >= until)
                cluster("down")
                self.same_as_before()

    def test_the_next_up_cleans_too(self):
        self.assertEqual(-9, self.killed_when(lambda: len(glob.glob(f"{FOLDER}/h*.net")) >= 5))
        status = cluster("status", name=None).stdout
        self.assertIn("making", status)
        second = cluster("up", "--hosts", 2, "--rate", "1gbit")
        self.assertIn("unfinished", second.stderr)
        self.assertEqual(cluster("exec", "h1", "hostname").stdout, "h1\n")
        self.assertEqual(len(glob.glob(f"{FOLDER}/h*.net")), 2)

    def test_a_crash_of_down_is_no_end(self):
        cluster("up", "--hosts", 12, "--rate", "100mbit")
        process = subprocess.Popen([*support.CLUSTER, "down", "--name", NAME],
                                   stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while len(glob.glob(f"{FOLDER}/h*.net")) > 8 and time.monotonic() < deadline:
            time.sleep(0.0002)
        kill(process)
        cluster("down")
        self.same_as_before()


if __name__ == "__main__":
    support.main()
