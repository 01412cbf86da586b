"""Tests of hosts that vanish: the job ends in ten seconds, whatever was under way, on the side that
is cut off too, and says which host it was. And of all that only looks like it: no job may end."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import support
from support import BUILD, NAME, ClusterTest, cluster

PROGRAM = os.path.join(BUILD, "tests", "cluster", "vanish")
MPIEXEC = os.path.join(BUILD, "bin", "mpiexec")
STATES = ("idle", "allreduce", "stream", "exchange", "never")
ROUNDS = 10  # of two tries each
LIMIT = 10.0
WATCHED_AFTER = 2.5  # seconds after which ranks watch each other
READY = re.compile(r"^ready (\d+) (\d+)$", re.M)
DROP = "1,6 0 0 2"
DROP_FIFTH = "4,32 0 0 4294963256,53 1 0 858993459,6 0 0 2,6 0 0 0"  # by the kernel's dice
MUST_SAY = ("lost contact with another host", "has not answered for 8 s", "Under way here: ")


def folder():
    return f"/run/headway-cluster/{NAME}"


def on_host(host):
    return ["nsenter", f"--net={folder()}/{host}.net", f"--uts={folder()}/{host}.uts"]


def tool(host, *words):
    """A command in the network of a host, or of the switches."""
    subprocess.run(["nsenter", f"--net={folder()}/{host}.net", *words], check=True, timeout=30)


class Job:
    """A job of as many ranks on h0 as on h1."""

    def __init__(self, state, *words, ranks=1, **settings):
        self.state, self.watched, self.stopped = state, None, None
        self.output = tempfile.TemporaryFile("w+")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("HEADWAY_")}
        environment.update({f"HEADWAY_{k}": v for k, v in settings.items()})
        each = ["-n", str(ranks)]
        self.process = subprocess.Popen(
            [MPIEXEC, *each, *on_host("h0"), PROGRAM, state, *map(str, words), ":",
             *each, *on_host("h1"), PROGRAM, state, *map(str, words)],
            env=environment, stdout=self.output, stderr=subprocess.STDOUT, start_new_session=True)
        self.ranks = 2 * ranks
        self.ended = None

    def says(self):
        return os.pread(self.output.fileno(), 1 << 20, 0).decode()

    def wait_until_ready(self, limit=60):
        end = time.monotonic() + limit
        while len(READY.findall(self.says())) < self.ranks:
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"{self.state}: not ready\n{self.says()}")
            time.sleep(0.02)

    def pids(self):
        return {int(rank): int(pid) for rank, pid in READY.findall(self.says())}

    def stop(self, rank):
        os.kill(self.pids()[rank], signal.SIGSTOP)
        self.stopped = rank

    def poll(self):
        if self.ended is None and self.process.poll() is not None:
            self.ended = time.monotonic()
        return self.ended is not None

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            for pid in self.pids().values():
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            self.process.wait(30)
        self.output.close()


class Vanish(ClusterTest):
    rate = "1gbit"
    rounds = 1

    def setUp(self):
        super().setUp()
        self.jobs = []
        self.cut_since = None

    def tearDown(self):
        for job in self.jobs:
            job.kill()
        super().tearDown()

    def start(self, *words, **settings):
        self.jobs.append(Job(*words, **settings))
        return self.jobs[-1]

    def drop(self, host, what):
        tool(host, "tc", "qdisc", "add", "dev", "eth0", "clsact")
        for way in ("egress", "ingress"):
            tool(host, "tc", "filter", "add", "dev", "eth0", way, "bpf", "da", "bytecode", what)

    def restore(self, host):
        tool(host, "tc", "qdisc", "del", "dev", "eth0", "clsact")

    def cut(self, how):
        """Cuts h1 off. Packets that are dropped, or a cable that is pulled."""
        self.cut_since = time.monotonic()
        if how == "drop":
            self.drop("h1", DROP)
        else:
            tool("fabric", "ip", "link", "set", "p1", "down")

    def mend(self, how):
        if how == "drop":
            self.restore("h1")
        else:
            tool("fabric", "ip", "link", "set", "p1", "up")

    def all_end(self, jobs):
        while time.monotonic() < self.cut_since + LIMIT + 20 and not all([j.poll() for j in jobs]):
            time.sleep(0.02)
        slow = []
        for job in jobs:
            took = job.ended - self.cut_since if job.ended else None
            told = job.says()
            about = f"{job.state}, rank {job.stopped} stopped: "
            # Whoever was not stopped is the one who noticed; with nobody stopped either may be.
            names = {0: "h0 (10.73.0.1)", 1: "h1 (10.73.0.2)", None: "h"}[job.stopped]
            missing = [text for text in (*MUST_SAY, f"the system of host {names}")
                       if text not in told]
            if took is None or took > LIMIT or missing or job.process.returncode == 0:
                slow.append(f"{about}{took} s, exit code {job.process.poll()}, does not say "
                            f"{missing}\n{told}")
            else:
                print(f"{about}ended after {took:.2f} s", file=sys.stderr)
        self.assertEqual([], slow, "\n".join(slow))

    def nobody_ends(self, jobs, limit):
        end = time.monotonic() + limit
        while time.monotonic() < end and not all([j.poll() for j in jobs]):
            time.sleep(0.05)
        for job in jobs:
            self.assertEqual(job.process.poll(), 0, f"{job.state}\n{job.says()}")
            self.assertEqual(job.says().count("well "), job.ranks, job.says())

    def one_round(self, how, states=STATES):
        jobs = []
        for state in states:
            for stopped in (0, 1):
                job = self.start(state)
                job.wait_until_ready()
                job.watched = stopped
                jobs.append(job)
        time.sleep(WATCHED_AFTER)
        self.cut(how)
        # One side alone must notice: the other is stopped, so that its word does not end the job.
        for job in jobs:
            job.stop(job.watched)
        try:
            self.all_end(jobs)
        finally:
            self.mend(how)
            for job in jobs:
                job.kill()
                self.jobs.remove(job)

    def test_a_host_vanishes(self):
        cluster("up", "--hosts", 2, "--rate", self.rate)
        for number in range(self.rounds):
            self.one_round("cable" if number % 2 else "drop")

    def test_other_waits(self):
        """A wildcard receive; several ranks a host; a rank that computes; no message thread; a rank
        that leaves MPI."""
        cluster("up", "--hosts", 2, "--rate", self.rate)
        jobs = [self.start("wild"), self.start("idle", ranks=3), self.start("compute"),
                self.start("idle", PROGRESS="off"), self.start("stream", PROGRESS="off"),
                self.start("allreduce", ranks=2, SHM="off"), self.start("leave", WATCHED_AFTER + 3)]
        for job in jobs:
            job.wait_until_ready()
        time.sleep(WATCHED_AFTER)
        self.cut("drop")
        self.all_end(jobs)

    def test_what_only_looks_like_it(self):
        """Three seconds without the network; ranks that are stopped, and that compute without a
        message thread, for longer than a host may be silent, with messages waiting for them."""
        cluster("up", "--hosts", 2, "--rate", self.rate)
        jobs = [self.start("alive", 14), self.start("alive", 14, ranks=2, SHM="off"),
                self.start("busy", 14, PROGRESS="off"), self.start("busy", 14, ranks=2),
                self.start("alive", 4)]
        for job in jobs:
            job.wait_until_ready()
        time.sleep(WATCHED_AFTER)
        stopped = jobs[-1]
        stopped.stop(1)
        for _ in range(2):
            self.cut("drop")
            time.sleep(3)
            self.mend("drop")
            time.sleep(2)
        time.sleep(3)
        os.kill(stopped.pids()[1], signal.SIGCONT)
        self.nobody_ends(jobs, 60)


class Slow(Vanish):
    rounds = ROUNDS

    def test_a_bad_network(self):
        """A fifth of all packets lost, both ways."""
        cluster("up", "--hosts", 2, "--rate", "100mbit")
        jobs = [self.start("busy", 20, ranks=2, PROGRESS="off"), self.start("busy", 20)]
        for job in jobs:
            job.wait_until_ready()
        self.drop("h1", DROP_FIFTH)
        time.sleep(20)
        self.restore("h1")
        self.nobody_ends(jobs, 90)

    def test_a_full_network(self):
        """Ten megabits a second, both ways, of which four jobs want all: its queues are full."""
        cluster("up", "--hosts", 2, "--rate", "10mbit")
        jobs = [self.start("alive", 20, ranks=2) for _ in range(4)]
        self.nobody_ends(jobs, 120)

    def test_what_only_looks_like_it(self):
        for _ in range(3):
            super().test_what_only_looks_like_it()
            cluster("down")


if __name__ == "__main__":
    slow = "--slow" in sys.argv
    if slow:
        sys.argv.remove("--slow")
        del Vanish
    else:
        del Slow
    support.main()
