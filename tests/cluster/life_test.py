"""Tests of a cluster's life: what is there while it is up, and that nothing stays."""

import json
import os
import subprocess
import sys
import time
import unittest

import support
from support import NAME, ClusterTest, cluster, machine


class Life(ClusterTest):
    def test_hosts_are_hosts(self):
        cluster("up", "--hosts", 3, "--rate", "100mbit")
        self.assertEqual(cluster("exec", "h1", "hostname").stdout, "h1\n")
        self.assertIn("10.73.0.2/16", cluster("exec", "1", "ip", "-4", "addr").stdout)
        self.assertIn("10.73.0.3", cluster("exec", "h0", "getent", "hosts", "h2").stdout)
        # Nothing of the machine's own network is within reach.
        routes = cluster("exec", "h0", "ip", "route").stdout.strip().splitlines()
        self.assertEqual(len(routes), 1, routes)
        # /dev/shm belongs to one host.
        cluster("exec", "h0", "sh", "-c", "echo secret > /dev/shm/headway-probe")
        self.assertEqual(cluster("exec", "h0", "cat", "/dev/shm/headway-probe").stdout, "secret\n")
        self.assertNotEqual(cluster("exec", "h1", "cat", "/dev/shm/headway-probe",
                                    check=False).returncode, 0)
        self.assertFalse(os.path.exists("/dev/shm/headway-probe"))
        # From one host into the next, as a launcher's agent goes.
        enter = os.path.join(support.BUILD, "bin", "cluster-enter")
        both = cluster("exec", "h0", enter, "--name", NAME, "--agent", "-x", "10.73.0.2",
                       "hostname;", "ls /dev/shm")
        self.assertEqual(both.stdout, "h1\n")
        self.assertEqual(cluster("exec", "h0", "sh", "-c", "exit 5", check=False).returncode, 5)
        self.assertEqual(cluster("exec", "h9", "true", check=False).returncode, 2)

    def test_links_and_settings(self):
        cluster("up", "--hosts", 5, "--rate", "100mbit", "--hosts-per-switch", 2,
                "--uplink-rate", "50mbit", "--dilation", 2)
        for name, value in machine.SETTINGS.items():
            if self.before["settings"].get(name) is not None:
                self.assertEqual(machine.read_setting(name), value, name)
        shaper = json.loads(cluster("exec", "h4", "tc", "-j", "qdisc", "show", "dev",
                                    "eth0").stdout)[0]
        self.assertEqual(shaper["kind"], "tbf")
        self.assertEqual(shaper["options"]["rate"] * 8, 50e6)
        read = cluster("exec", "h4", "cat", "/proc/sys/net/ipv4/tcp_early_retrans",
                       "/proc/sys/net/ipv4/tcp_slow_start_after_idle").stdout.split()
        self.assertEqual(read, ["0", "0"])
        if "net/ipv4/tcp_rto_min_us" in self.before["settings"]:
            read = cluster("exec", "h4", "cat", "/proc/sys/net/ipv4/tcp_rto_min_us").stdout
            self.assertEqual(read, "2000000\n")
        with support.fabric.namespaces.inside(machine.Folder(NAME).fabric):
            shapers = support.fabric.ask("tc", "-j", "qdisc", "show")
        rates = {s["dev"]: s["options"]["rate"] * 8 for s in shapers if s["kind"] == "tbf"}
        expected = {f"p{h}": 50e6 for h in range(5)}
        for switch in range(3):
            expected.update({f"up{switch}": 25e6, f"dn{switch}": 25e6})
        self.assertEqual(rates, expected)
        cluster("exec", "h0", "sh", "-c", "exec 3<>/dev/null; ping -c 1 -W 5 h4 >&3")

    def test_twice_is_refused(self):
        cluster("up", "--hosts", 2, "--rate", "100mbit")
        again = cluster("up", "--hosts", 2, "--rate", "100mbit", check=False)
        self.assertEqual(again.returncode, 1)
        self.assertIn("already up", again.stderr)
        self.assertEqual(cluster("exec", "h1", "hostname").stdout, "h1\n")

    def test_two_clusters_and_the_last_one_out(self):
        other = NAME + "b"
        backlog = "net/core/netdev_max_backlog"
        cluster("up", "--hosts", 2, "--rate", "100mbit")
        try:
            cluster("up", "--hosts", 2, "--rate", "1gbit", name=other)
            self.assertIn(NAME, cluster("status", name=None).stdout)
            self.assertIn(other, cluster("status", name=None).stdout)
            cluster("down")
            if self.before["settings"].get(backlog) is not None:
                self.assertEqual(machine.read_setting(backlog), machine.SETTINGS[backlog])
            self.assertEqual(cluster("exec", "h1", "hostname", name=other).stdout, "h1\n")
        finally:
            cluster("down", name=other)
        self.same_as_before()

    def test_down_ends_what_runs_on_the_hosts(self):
        cluster("up", "--hosts", 2, "--rate", "100mbit")
        deaf = ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]
        process = subprocess.Popen([*support.CLUSTER, "exec", "--name", NAME, "h1"] + deaf)
        bystander = subprocess.Popen(["sleep", "60"])
        try:
            time.sleep(0.5)
            self.assertIsNone(process.poll())
            self.assertIn("ended", cluster("down").stdout)
            self.assertEqual(process.wait(10), -9)
            self.assertIsNone(bystander.poll())
        finally:
            process.kill()
            bystander.kill()
            process.wait()
            bystander.wait()

    def test_what_somebody_else_changed_is_left_alone(self):
        name = "net/core/netdev_max_backlog"
        if self.original.get(name) is None or machine.folders():
            self.skipTest("no such setting here, or another cluster is up")
        cluster("up", "--hosts", 2, "--rate", "100mbit")
        try:
            machine.write_setting(name, "77777")
            down = cluster("down")
            self.assertIn("left alone", down.stderr)
            self.assertEqual(machine.read_setting(name), "77777")
        finally:
            machine.write_setting(name, self.original[name])

    def test_an_error_in_the_middle_leaves_nothing(self):
        failed = cluster("up", "--hosts", 3, "--rate", "100mbit", "--congestion", "none-such",
                         check=False)
        self.assertEqual(failed.returncode, 1)
        self.assertIn("none-such", failed.stderr)
        self.assertNotIn("Traceback", failed.stderr)
        self.same_as_before()

    def test_plain_python_is_enough(self):
        tool = os.path.join(support.ROOT, "tools", "cluster", "cluster.py")

        def plain(*words):
            return subprocess.run([sys.executable, "-S", tool, *words], check=True, timeout=60,
                                  capture_output=True, text=True).stdout

        plain("up", "--name", NAME, "--hosts", "2", "--rate", "1gbit")
        self.assertIn(NAME, plain("status"))
        self.assertEqual(plain("exec", "--name", NAME, "h1", "hostname"), "h1\n")
        self.assertIn("is down", plain("down", "--name", NAME))
        self.assertIn("no cluster", plain("down", "--name", NAME))


if __name__ == "__main__":
    support.main()
