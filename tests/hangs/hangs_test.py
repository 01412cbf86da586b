#!/usr/bin/env python3
"""mpiexec says by itself that a job hangs, within three seconds, and never of one that does not: programs of
kinds.c, each with a drawn seed. `hangs_test.py BUILD [SEED [COUNT]]`: COUNT seeds of each kind."""

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

BUILD = Path(sys.argv[1])
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time()) % 100000
COUNT = int(sys.argv[3]) if len(sys.argv) > 3 else 1
KINDS = BUILD / "tests" / "hangs" / "kinds"
RANKS = 4
WITHIN = 3.0  # seconds after the last rank stands; starting is not counted
START = 3.0  # of a start on a busy machine
SAID = re.compile(r"^mpiexec: the job hangs: (.*)$", re.M)


def environment():
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PMI_", "MPIEXEC_"))}
    return kept | {"KINDS_SLOW": "3.5" if COUNT == 1 else "10"}


def start(kind, seed, said, around=()):
    words = [BUILD / "bin" / "mpiexec", "-n", RANKS, *around, KINDS, kind, seed]
    return subprocess.Popen([*map(str, words)], stdout=subprocess.DEVNULL, stderr=said, env=environment())


def text_of(said):
    said.seek(0)
    return said.read().decode()


def kinds(begin):
    names = subprocess.run([KINDS, "list"], capture_output=True, text=True, check=True).stdout.split()
    return [n for n in names if n.startswith(begin) and n != "dead-sends"]  # our library copies what these send


# Which of the ranks, in the seed's order, never go on where others compute for ever.
PAIR = "ssends receives tags communicators waitall probes persistent touch behind"
DEAD = {f"dead-{name}": (0, 1) for name in PAIR.split()} | {
    "dead-three": (0, 1, 2), "dead-sendrecv": (0, 1, 2), "dead-self": (0,),
}  # fmt: skip
AT = re.compile(r"ranks? ([-\d, and]+) (?:is|are) (?:in|past) MPI_")


def told_dead(text):
    """The ranks that stand in a call, or wait for what one has not got; the others compute."""
    ranks = set()
    for found in AT.findall(text):
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", found):
            ranks |= set(range(int(first), int(last or first) + 1))
    return ranks


def dead(kind, seed):
    """What is wrong with what was said of it, or an empty text."""
    with tempfile.TemporaryFile() as said:
        job = start(kind, seed, said)
        began = time.monotonic()
        while time.monotonic() - began < START + WITHIN and job.poll() is None and not SAID.search(text_of(said)):
            time.sleep(0.02)
        took, ended = time.monotonic() - began, job.poll() is not None
        time.sleep(1.2)  # it is not told again
        job.send_signal(signal.SIGTERM)
        job.wait(30)
        text = text_of(said)
    if ended:
        return f"mpiexec ended after {took:.1f} s: {text}"
    if len(SAID.findall(text)) != 1 or text.count("nothing has changed for") != 1:
        return f"not told once within {took:.1f} s: {text}"
    wanted = {(at - seed) % RANKS for at in DEAD.get(kind, ())}
    if wanted and told_dead(text) != wanted:
        return f"not of ranks {sorted(wanted)}: {text}"
    if shutil.which("addr2line") and not re.search(r"\) at kinds\.c:\d+|MPI_\w+ at kinds\.c:\d+", text):
        return f"no line is told: {text}"
    return ""


def live(kind, seed):
    with tempfile.TemporaryFile() as said:
        code = start(kind, seed, said).wait(90)
        return "" if (code, text_of(said)) == (0, "") else f"exit code {code}: {text_of(said)}"


class Hangs(unittest.TestCase):
    draw = random.Random(SEED)

    def each(self, begin, judge, at_once):
        """Of one seed a kind: one with receives that may be released early, and one without."""
        tries = [
            (kind, self.draw.randrange(3333) * 3 + rest)
            for kind in kinds(begin) for _ in range(COUNT) for rest in ((0, 1) if COUNT == 1 else (self.draw.randrange(3),))
        ]  # fmt: skip
        with ThreadPoolExecutor(at_once) as pool:
            for (kind, seed), wrong in zip(tries, pool.map(lambda t: judge(*t), tries)):
                with self.subTest(kind=kind, seed=seed):
                    self.assertEqual(wrong, "")

    def test_each_is_told_and_told_once(self):
        self.each("dead-", dead, 2)

    def test_the_line_is_the_programs_behind_a_tool_too(self):
        source = (Path(__file__).resolve().parent / "kinds.c").read_text().splitlines()
        line = next(number for number, text in enumerate(source, 1) if "MPI_Recv(in, count" in text)
        tool = BUILD / "tests" / "release" / "librelease_tool.so"
        folder = tempfile.TemporaryDirectory(prefix="headway-hangs-")
        self.addCleanup(folder.cleanup)
        recorded = [BUILD / "bin" / "headway", "record", "--out", f"{folder.name}/run"]
        for around in ([], ["env", f"LD_PRELOAD={tool}"], recorded):
            for seed in (3, 4):  # the latter's receives are released
                with self.subTest(around=around, seed=seed), tempfile.TemporaryFile() as said:
                    job = start("dead-ring", seed, said, around)
                    until = time.monotonic() + START + WITHIN
                    while time.monotonic() < until and not SAID.search(text_of(said)):
                        time.sleep(0.02)
                    job.send_signal(signal.SIGTERM)
                    job.wait(30)
                    self.assertEqual(text_of(said).count(f" at kinds.c:{line}"), RANKS, text_of(said))

    def test_no_other_job_is_accused(self):
        self.each("live-", live, 4)


if __name__ == "__main__":
    print(f"seed {SEED}")
    unittest.main(argv=sys.argv[:1], verbosity=2)
