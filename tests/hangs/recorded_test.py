#!/usr/bin/env python3
"""`headway where FOLDER` says of jobs of any MPI that they hang, within three seconds, and never of one that does not:
the programs of kinds.c under the recording layer. `recorded_test.py BUILD [SEED [COUNT [quick]]]`: COUNT seeds of each
kind; quick: some kinds alone."""

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = Path(sys.argv[1]).resolve()
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time()) % 100000
COUNT = int(sys.argv[3]) if len(sys.argv) > 3 else 1
QUICK = len(sys.argv) > 4
os.environ["CLUSTER_BIN"] = str(BUILD / "bin")
sys.path[:0] = [str(HERE.parents[1] / "tools" / "headway"), str(HERE.parent)]
from headway.measure.contestants import AS_ROOT, cache  # noqa: E402
from harness.tries import until_right  # noqa: E402
from headway.record import looks, needs, now  # noqa: E402

HEADWAY = BUILD / "bin" / "headway"
RANKS = 4
WITHIN = 3.0  # seconds after the last rank stands
START = 20.0  # of a start: the first one compiles the layer
SLOW = 1.8 if QUICK else 3.5  # seconds that a live job waits for something
# Who compiles, who starts: our library under another's launcher, too.
PEERS = {
    "mpich": (cache() / "mpich/bin/mpicc", [cache() / "mpich/bin/mpiexec"]),
    "openmpi": (cache() / "openmpi/bin/mpicc", [cache() / "openmpi/bin/mpiexec", "--bind-to", "none", "--map-by", ":OVERSUBSCRIBE"]),
    "ours by Hydra": (BUILD / "bin/mpicc", [cache() / "mpich/bin/mpiexec"]),
}  # fmt: skip
QUICK_KINDS = {
    "mpich": "dead-sends dead-tags dead-ibarrier live-chain",
    "openmpi": "dead-ssends dead-missing_barrier live-thread live-begun",
    "ours by Hydra": "dead-waitany live-slow_receiver",
}
COPIED = {("ours by Hydra", "dead-sends")}  # our library copies what these send
# Which of the ranks, in the seed's order, never go on; of the others all do not.
PAIR = "ssends sends receives tags communicators waitall probes persistent touch behind"
DEAD = {f"dead-{name}": (0, 1) for name in PAIR.split()} | {
    "dead-three": (0, 1, 2), "dead-sendrecv": (0, 1, 2), "dead-self": (0,),
}  # fmt: skip


def environment():
    dropped = ("PMI", "OMPI_", "PRTE_", "MPIEXEC_", "HEADWAY_RECORD", "LD_PRELOAD")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
    return kept | AS_ROOT | {"KINDS_SLOW": str(SLOW)}


class Job:
    """A kind with a seed under one MPI, and the folder in which it is recorded."""

    def __init__(self, peer, program, kind, seed):
        self.folder = tempfile.TemporaryDirectory(prefix="headway-recorded-")
        self.run = Path(self.folder.name) / "run"
        self.out = open(Path(self.folder.name) / "out", "w+", encoding="utf-8", errors="replace")
        line = [*PEERS[peer][1], "-n", RANKS, HEADWAY, "record", "--out", self.run, program, kind, seed]
        self.process = subprocess.Popen(
            [*map(str, line)], stdout=self.out, stderr=self.out, env=environment(), cwd=self.folder.name, start_new_session=True
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(10)
        self.out.close()
        self.folder.cleanup()

    def said(self):
        self.out.seek(0)
        return self.out.read()

    def look(self):
        """What is seen, or nothing yet, or any more."""
        try:
            return looks.look(self.run)
        except now.Unusable:
            return None

    def found(self):
        return looks.all_ranks(now.files_of(self.run), now.Here())

    @staticmethod
    def youngest(found, ranks):
        """Seconds since the last of these ranks began its wait; each is of the last message or collective there was."""
        at = time.monotonic_ns()
        waits = [(found[rank].page, wait) for rank in ranks if found[rank].page for wait in found[rank].waits]
        for page, wait in waits:
            for flag, peer in ((needs.COLLECTIVE, now.ITSELF), (needs.SEND, wait.to)):
                if wait.flags & flag and (last := page.channels[wait.comm << 32 | peer][1]) != wait.number:
                    raise AssertionError(f"{wait} is of {wait.number}, the last was {last}")
        return min(page.age(wait, at) for page, wait in waits)

    def stood(self, ranks):
        """As `youngest`, or nothing where one of them was not waiting all the while: its start was slow."""
        try:
            found = self.found()
            wait = all(found[rank].page and found[rank].waits for rank in ranks)
            return self.youngest(found, ranks) if wait else None
        except (now.Unusable, AssertionError, LookupError):
            return None


class Slow(Exception):
    """It was told, if at all, too late."""


def dead(peer, program, kind, seed):
    """What is wrong with what was said of it, or an empty text."""
    try:
        return until_right(lambda: dead_once(peer, program, kind, seed), Slow)
    except Slow as problem:
        return str(problem)


def dead_once(peer, program, kind, seed):
    wanted = {(at - seed) % RANKS for at in DEAD.get(kind, range(RANKS))}

    def who(told):
        return {rank for group in told["groups"] if group["dead"] for rank in group["ranks"]} if told else set()

    def is_right(ranks):
        return -seed % RANKS in ranks if kind == "dead-finalize" else ranks == wanted

    with Job(peer, program, kind, seed) as job:
        until = time.monotonic() + START + WITHIN
        told = None
        # Some of them may hang before the last one has come to its call: that is told, and then of more.
        while time.monotonic() < until and job.process.poll() is None and not is_right(who(told)):
            told = job.look() or time.sleep(0.1)
            if not who(told) <= wanted:
                return f"not of ranks {sorted(wanted)} alone: {told}"
        ranks = who(told)
        if not told or not told["hangs"] or not is_right(ranks):
            problem = f"not told of ranks {sorted(wanted)}; {told}; {job.said()}"
            stood = job.stood(wanted)
            if job.process.poll() is not None or (stood and stood > 3 * WITHIN):
                return problem  # no slow start: it has ended, or there was more than time enough
            raise Slow(problem)
        if (took := job.youngest(job.found(), ranks)) > WITHIN:
            raise Slow(f"told {took:.1f} s after the last rank stood")
        again = job.look()
        if not again or not again["hangs"]:
            return f"told, and then not: {again}"
        return ""


def live(peer, program, kind, seed):
    """A job that was over before anybody came to look is started again: four of them share the cores with who looks."""
    for _ in range(3):
        if (wrong := live_once(peer, program, kind, seed)) != "never seen":
            break
    return wrong


def live_once(peer, program, kind, seed):
    with Job(peer, program, kind, seed) as job:
        until = time.monotonic() + START + 60
        seen = 0
        while job.process.poll() is None and time.monotonic() < until:
            told = job.look() or time.sleep(0.1)
            seen += told is not None
            if told and (told["hangs"] or told["likely"]):
                return f"accused: {told}"
        if job.process.poll() != 0:
            return f"exit code {job.process.poll()}: {job.said()}"
        return "" if seen or kind == "live-before" else "never seen"


class Recorded(unittest.TestCase):
    draw = random.Random(SEED)

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="headway-recorded-")
        cls.addClassCleanup(folder.cleanup)
        cls.programs = {}
        for number, (peer, (compiler, line)) in enumerate(PEERS.items()):
            if not compiler.exists() or not line[0].exists():
                continue
            cls.programs[peer] = program = Path(folder.name) / f"kinds-{number}"
            words = [compiler, "-g", "-O1", "-w", "-pthread", HERE / "kinds.c", "-o", program]
            subprocess.run([*map(str, words)], check=True, timeout=120)

    def kinds(self, peer, begin):
        if QUICK:
            names = QUICK_KINDS[peer].split()
        else:
            text = (HERE / "kinds.c").read_text()
            names = [f"{a.lower()}-{b}" for a, b in re.findall(r"^    (DEAD|LIVE)\((\w+)\)", text, re.M)]
        return [name for name in names if name.startswith(begin) and (peer, name) not in COPIED]

    def each(self, begin, judge, at_once):
        tries = [
            (peer, program, kind, self.draw.randrange(10000))
            for peer, program in self.programs.items() for kind in self.kinds(peer, begin) for _ in range(COUNT)
        ]  # fmt: skip
        with ThreadPoolExecutor(at_once) as pool:
            for (peer, _, kind, seed), wrong in zip(tries, pool.map(lambda t: judge(*t), tries)):
                with self.subTest(peer=peer, kind=kind, seed=seed):
                    self.assertEqual(wrong, "")

    def test_each_that_hangs_is_told(self):
        self.each("dead-", dead, 2)

    def test_no_other_is_accused(self):
        self.each("live-", live, 4)

    def test_its_words(self):
        """What the user sees: the call, its line, whom it waits for, and that it hangs."""
        if "mpich" not in self.programs:
            self.skipTest("MPICH is not here")
        line = next(n for n, t in enumerate((HERE / "kinds.c").read_text().splitlines(), 1) if "MPI_Recv(in, count" in t)
        with Job("mpich", self.programs["mpich"], "dead-ring", 2) as job:
            until = time.monotonic() + START
            while time.monotonic() < until and not (job.look() or {"hangs": False})["hangs"]:
                time.sleep(0.1)
            done = subprocess.run([HEADWAY, "where", job.run], capture_output=True, text=True, check=True, timeout=60)
            self.assertIn("The job hangs, and nothing has changed for", done.stdout)
            self.assertIn("ranks 0-3 wait for one another", done.stdout)
            for rank, source in ((0, 3), (1, 0), (2, 1), (3, 2)):
                wanted = rf"rank {rank}  in MPI_Recv \(source \d, rank {source} of the job, tag \d+, on a communicator of MPI_Comm_split\)"
                at = rf" at kinds\.c:{line} +waits for rank {source}" if shutil.which("addr2line") else ""
                self.assertRegex(done.stdout, wanted + at)
            for process in looks.all_ranks(now.files_of(job.run), now.Here())[:2]:
                with contextlib.suppress(ProcessLookupError):  # the launcher may have ended it for the first one's sake
                    os.kill(process.pid, signal.SIGKILL)
            job.process.wait(30)
            done = subprocess.run([HEADWAY, "where", job.run], capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (4, ""))
            self.assertIn("is over: 0 of 4 ranks have finalized, 4 ended without MPI_Finalize", done.stderr)


if __name__ == "__main__":
    if not any(compiler.exists() and line[0].exists() for compiler, line in PEERS.values()):
        print("skipped: neither MPICH nor Open MPI is here; scripts/peers.sh installs them")
        sys.exit(77)
    print(f"seed {SEED}")
    unittest.main(argv=sys.argv[:1], verbosity=2)
