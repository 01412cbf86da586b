#!/usr/bin/env python3
"""`headway where`: what it prints of what mpiexec tells, and of a job that hangs."""

import importlib.util
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from support import BUILD, ROOT, headway
from headway import where

KINDS = BUILD / "tests" / "hangs" / "kinds"
SOURCE = ROOT / "tests" / "hangs" / "kinds.c"


def group(ranks, place, waits_for=(), any_=False, dead=False):
    return {"ranks": list(ranks), "place": place, "waits_for": list(waits_for), "any": any_, "dead": dead}


class Words(unittest.TestCase):
    def test_groups(self):
        told = {
            "hangs": True, "verdict": ", and nothing has changed for 1.0 s.",
            "groups": [
                group([3], "outside MPI"), group([0, 1, 2, 7], "in MPI_Barrier", [3]),
                group([4], "in MPI_Recv (source 5, tag 1)", [5], dead=True), group([5, 6], "in MPI_Recv", [0, 1, 2], any_=True),
            ],
        }  # fmt: skip
        self.assertEqual(
            where.lines(told, "head"),
            [
                "head",
                "rank 4        in MPI_Recv (source 5, tag 1)  waits for rank 5",
                "ranks 0-2, 7  in MPI_Barrier                 wait for rank 3",
                "ranks 5-6     in MPI_Recv                    wait for any of 3 ranks",
                "rank 3        outside MPI",
                "The job hangs, and nothing has changed for 1.0 s.",
            ],
        )

    def test_twenty_lines_are_enough_for_thousands(self):
        told = {"hangs": True, "verdict": ".", "groups": [group([i], f"in MPI_Recv (source {i})", [i]) for i in range(4096)]}
        lines = where.lines(told, "head")
        self.assertLessEqual(len(lines), 20)
        self.assertIn("and 4080 ranks at 4080 other places", lines)


class Jobs(unittest.TestCase):
    def start(self, kind):
        job = subprocess.Popen([BUILD / "bin" / "mpiexec", "-n", "3", KINDS, kind, "2"], stderr=subprocess.PIPE, text=True)
        self.addCleanup(job.stderr.close)
        self.addCleanup(job.wait, 30)
        self.addCleanup(job.send_signal, signal.SIGTERM)
        return job

    def told(self, job, wanted):
        """What it says once `wanted` is true of it, within some seconds."""
        until = time.monotonic() + 15
        while True:
            done = headway("where", job.pid, "--json", code=None)
            told = json.loads(done.stdout) if done.returncode == 0 else {}
            if (told and wanted(told)) or time.monotonic() > until:
                return told
            time.sleep(0.2)

    def test_a_job_that_hangs(self):
        job = self.start("dead-ring")
        told = self.told(job, lambda t: t["hangs"])
        self.assertTrue(told["hangs"])
        self.assertEqual((told["version"], told["ranks"]), (1, 3))
        # Seed 2 turns three ranks by two: each waits for the one before it.
        self.assertEqual(sorted((g["ranks"], g["waits_for"]) for g in told["groups"]), [([0], [2]), ([1], [0]), ([2], [1])])
        self.assertTrue(all(g["module"] == str(KINDS) and g["offset"] > 0 for g in told["groups"]))
        text = headway("where", job.pid).stdout
        if importlib.util.find_spec("elftools"):
            line = next(n for n, t in enumerate(SOURCE.read_text().splitlines(), 1) if "MPI_Recv(in, count" in t)
            self.assertEqual(text.count(f" at kinds.c:{line} "), 3, text)
        self.assertIn("The job hangs, and nothing has changed for", text)
        self.assertIn(f"mpiexec {job.pid}, for 00:00:", text)

    def test_a_job_that_waits_for_a_slow_rank(self):
        os.environ["KINDS_SLOW"] = "30"
        self.addCleanup(os.environ.pop, "KINDS_SLOW")
        job = self.start("live-barrier")
        told = self.told(job, lambda t: any("MPI_Barrier" in g["place"] and len(g["ranks"]) == 2 for g in t["groups"]))
        self.assertFalse(told["hangs"])
        (waiting,) = [g for g in told["groups"] if "MPI_Barrier" in g["place"]]
        self.assertEqual(len(waiting["ranks"]), 2)
        self.assertEqual(waiting["waits_for"], sorted({0, 1, 2} - set(waiting["ranks"])))
        self.assertNotIn("The job hangs", headway("where", job.pid).stdout)

    def test_an_answer_of_megabytes(self):
        """Of thousands of ranks: more than a socket holds at once."""
        groups = [group([i], f"in MPI_Recv (source {i}, tag 1) on a communicator with a name", [i]) for i in range(20_000)]
        told = {"version": 1, "ranks": len(groups), "hangs": False, "verdict": "", "groups": groups}
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening, tempfile.TemporaryFile() as memory:
            listening.bind(f"\0headway-mpiexec-{os.getpid()}")
            listening.listen()
            memory.write(json.dumps(told).encode())
            memory.flush()

            def answer():
                asker, _ = listening.accept()
                with asker:
                    socket.send_fds(asker, [b"\0"], [memory.fileno()])

            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            self.assertEqual(where.ask(os.getpid()), told)
            thread.join(10)

    def test_a_job_of_another_user(self):
        """Is none of those of which one is looked at without a name: this folder's recording is."""
        if os.geteuid() != 0:
            self.skipTest("only root starts processes of other users")
        other = subprocess.Popen(["sleep", "60"], user=65534)
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        folder = tempfile.TemporaryDirectory(prefix="headway-tools-test-")
        self.addCleanup(folder.cleanup)
        told = {"version": 1, "ranks": 1, "hangs": False, "verdict": "", "groups": [group([0], "outside MPI")]}
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening, tempfile.TemporaryFile() as memory:
            listening.bind(f"\0headway-mpiexec-{other.pid}")  # as if its own
            listening.listen()
            memory.write(json.dumps(told).encode())
            memory.flush()
            self.assertIn(other.pid, where.jobs(everyone=True))
            self.assertNotIn(other.pid, where.jobs())
            if where.jobs():
                self.skipTest("there is a job of ours")
            done = headway("where", code=2, cwd=folder.name)
            self.assertRegex(done.stderr, f"no job of yours runs here.*other users' jobs are asked by name: .*{other.pid}")
            os.mkdir(f"{folder.name}/headway-run-1")
            self.assertIn("headway-run-1", headway("where", code=4, cwd=folder.name).stderr)

            def answer():
                asker, _ = listening.accept()
                with asker:
                    socket.send_fds(asker, [b"\0"], [memory.fileno()])

            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            self.assertIn("rank 0  outside MPI", headway("where", other.pid).stdout)
            thread.join(10)

    def test_no_job(self):
        self.assertIn("is no mpiexec of Headway", headway("where", os.getpid(), code=2).stderr)
        self.assertIn("is neither a folder of headway record nor", headway("where", "x", code=2).stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
