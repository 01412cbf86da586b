"""Tests of truth: a good cluster passes its check, a careless one fails it.

usage: truth_test.py            quick, 4 hosts, and the traps
       truth_test.py --hosts N  the whole check with N hosts
       truth_test.py --uplinks  several switches
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

import support
import watch
from harness import tries
from support import NAME, ClusterTest, cluster, fabric, machine


def check(*words, wanted=None):
    """Exit code and report of `cluster check`."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        done = cluster("check", "--report", report.name, *words, check=False, timeout=450)
        print(done.stdout + done.stderr)
        if wanted is not None and done.returncode != wanted:
            measured = wanted == 0 and done.returncode == 1  # it went through, and was not as it should be
            raise (tries.Late if measured else AssertionError)(f"exit code {done.returncode}, not {wanted}")
        return done.returncode, json.load(report)


def check_good(*words):
    """Report of a check that must pass. Each attempt is `cluster check` whole: other users of the
    machine may disturb one for half a minute, but a cluster that lies fails all of them."""
    return tries.until_right(lambda: check(*words, wanted=0)[1], tries.Late, (10, 30))


def reshape(devices, burst, limit, packet):
    """Makes a careless cluster of a good one: other buckets and packets on its hosts' links."""
    plan = machine.Folder(NAME).plan()
    line = f"root tbf rate {int(plan.link_rate)}bit burst {burst} limit {limit}\n"
    if "switch" in devices:
        with fabric.namespaces.inside(machine.Folder(NAME).fabric):
            fabric.call("tc", "".join(f"qdisc replace dev p{h} {line}" for h in range(plan.hosts)))
    for h in range(plan.hosts):
        with fabric.namespaces.inside(machine.Folder(NAME).net(plan.host_name(h))):
            if "host" in devices:
                fabric.call("tc", f"qdisc replace dev eth0 {line}")
            fabric.call("ip", f"link set eth0 gso_max_size {packet}\n")


def out_of_order():
    """Segments that came before an earlier one, so far, on all hosts."""
    folder, found = machine.Folder(NAME), 0
    for h in range(folder.plan().hosts):
        with fabric.namespaces.inside(folder.net(folder.plan().host_name(h))):
            seen = watch.table("/proc/thread-self/net/netstat", "TcpExt")
            found += seen["TCPOFOQueue"] + seen["PAWSEstab"]
    return found


def swallow(listener):
    """Takes connections, and all that comes on them, until the listener closes."""
    def drain(connection):
        with connection:
            while connection.recv(65536):
                pass

    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=drain, args=[connection], daemon=True).start()


def listen_on(host):
    """A listener there that swallows all it gets."""
    folder = machine.Folder(NAME)
    with fabric.namespaces.inside(folder.net(folder.plan().host_name(host))):
        listener = socket.create_server((folder.plan().address(host), 0))
    threading.Thread(target=swallow, args=[listener], daemon=True).start()
    return listener


def socket_on(host):
    folder = machine.Folder(NAME)
    with fabric.namespaces.inside(folder.net(folder.plan().host_name(host))):
        made = socket.socket()
    made.settimeout(30)
    return made


def connect_from_a_busy_host():
    """Seconds that a connection from h0 takes while three others send to h0 as fast as they can:
    the answer to it waits at the switch."""
    busy, other = listen_on(0), listen_on(4)
    senders, late = [socket_on(h) for h in (1, 2, 3)], socket_on(0)
    for sender in senders:
        sender.connect(busy.getsockname())
    for sender in senders:
        sender.sendall(bytes(14000))  # what TCP sends before it hears of its receiver
    time.sleep(1)
    began = time.monotonic()
    late.connect(other.getsockname())
    took = time.monotonic() - began
    for one in (*senders, late):
        one.shutdown(socket.SHUT_WR)
        one.recv(1)  # all of it is there, and so are its acknowledgements
        one.close()
    for listener in (busy, other):
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
    return took


class Quick(ClusterTest):
    def test_a_handshake_that_waits_behind_data_is_no_loss(self):
        cluster("up", "--hosts", 5, "--rate", "100kbit")
        folder = machine.Folder(NAME)
        took, seen = watch.around(folder.plan(), folder, connect_from_a_busy_host, min_idle=0)
        self.assertGreater(took, 1.0)
        self.assertGreater(seen.late_handshakes, 0)
        self.assertTrue(seen.valid, seen.reasons)

    def test_packets_stay_in_order_on_busy_processors(self):
        cluster("up", "--hosts", 8, "--rate", "400mbit")
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
        try:
            cluster("check", "--quick", check=False, timeout=450)
        finally:
            for process in busy:
                process.kill()
                process.wait()
        self.assertEqual(out_of_order(), 0)

    def test_four_hosts_are_true(self):
        cluster("up", "--hosts", 4, "--rate", "100mbit")
        report = check_good("--quick")
        self.assertTrue(report["good"])
        self.assertEqual([r["bytes"] for r in report["rows"]], [4096, 16384, 262144, 35840])
        for row in report["rows"]:
            self.assertGreater(row["median_s"], 0)

    def test_a_large_bucket_is_caught(self):
        cluster("up", "--hosts", 2, "--rate", "100mbit")
        reshape(("host", "switch"), 131072, 4_000_000, 65536)
        _, report = check("--quick", wanted=1)
        good = {r["bytes"]: r["good"] for r in report["rows"] if r["what"] == "h0 to h1"}
        self.assertFalse(good[16384], "a message below the bucket's size came for free")

    def test_a_wrong_rate_is_caught(self):
        cluster("up", "--hosts", 2, "--rate", "100mbit")
        with fabric.namespaces.inside(machine.Folder(NAME).net("h0")):
            fabric.call("tc", "qdisc replace dev eth0 root tbf rate 80mbit burst 3900"
                        " limit 4000000\n")
        _, report = check("--quick", wanted=1)
        good = {r["bytes"]: r["good"] for r in report["rows"] if r["what"] == "h0 to h1"}
        self.assertFalse(good[262144])

    def test_lost_packets_are_caught(self):
        cluster("up", "--hosts", 4, "--rate", "100mbit")
        reshape(("switch",), 3900, 20_000, 3300)
        code, report = check("--quick")
        self.assertEqual(code, 1)
        self.assertGreater(report["lost"], 0)


class Whole(ClusterTest):
    hosts = 0

    def test_whole_check(self):
        if not self.hosts:
            self.skipTest("asked for by --hosts")
        cluster("up", "--hosts", self.hosts, "--rate", "100mbit")
        report = check_good()
        self.assertEqual(len(report["rows"]), 7)


class Uplinks(ClusterTest):
    wanted = False

    def test_uplinks_carry_what_they_should(self):
        if not self.wanted:
            self.skipTest("asked for by --uplinks")
        cluster("up", "--hosts", 8, "--rate", "100mbit", "--hosts-per-switch", 4)
        report = check_good("--quick")
        uplink = report["rows"][-1]
        self.assertIn("uplink", uplink["what"])
        self.assertGreater(uplink["wire_s"], 4 * 262144 * 8 / 100e6)


if __name__ == "__main__":
    if "--hosts" in sys.argv:
        place = sys.argv.index("--hosts")
        Whole.hosts = int(sys.argv[place + 1])
        del sys.argv[place:place + 2]
        sys.argv.append("Whole")
    elif "--uplinks" in sys.argv:
        sys.argv.remove("--uplinks")
        Uplinks.wanted = True
        sys.argv.append("Uplinks")
    else:
        sys.argv.append("Quick")
    os.environ.setdefault("COLUMNS", "120")
    support.main()
