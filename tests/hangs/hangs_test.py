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

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness.tries import until_right  # noqa: E402

BUILD = Path(sys.argv[1])
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time()) % 100000
COUNT = int(sys.argv[3]) if len(sys.argv) > 3 else 1
KINDS = BUILD / "tests" / "hangs" / "kinds"
RANKS = 4
WITHIN = 3.0  # seconds after the last rank stands; starting is not counted
LATEST = 5.0  # how long that is awaited, to say how long it took
START = 20.0  # of a start on a busy machine
SAID = re.compile(r"^mpiexec: the job hangs: (.*)$", re.M)


def environment():
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PMI_", "MPIEXEC_"))}
    return kept | {"KINDS_SLOW": "3.5" if COUNT == 1 else "10"}


def start(kind, seed, said, around=(), out=subprocess.DEVNULL):
    words = [BUILD / "bin" / "mpiexec", "-n", RANKS, *around, KINDS, kind, seed]
    return subprocess.Popen([*map(str, words)], stdout=out, stderr=said, env=environment())


def text_of(file):
    """Its place stays where it is: whoever writes shares it."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode()


def kinds(begin):
    names = subprocess.run([KINDS, "list"], capture_output=True, text=True, check=True).stdout.split()
    return [n for n in names if n.startswith(begin) and n != "dead-sends"]  # our library copies what these send


# Which of the ranks, in the seed's order, never go on; the others compute for ever.
ALL = "ring missing_barrier bcast two_barriers waitany any_source finalize issend ibarrier chain"
PAIR = "ssends receives tags communicators waitall probes persistent touch behind"
DEAD = {f"dead-{name}": (0, 1) for name in PAIR.split()} | {
    "dead-three": (0, 1, 2), "dead-sendrecv": (0, 1, 2), "dead-self": (0,),
    **{f"dead-{name}": range(RANKS) for name in ALL.split()},
}  # fmt: skip
# For whom each of them waits, in the seed's order, where that is a circle.
CIRCLES = {f"dead-{name}": {0: 1, 1: 0} for name in "ssends receives probes touch".split()} | {
    "dead-three": {0: 1, 1: 2, 2: 0}, "dead-ring": {0: 3, 1: 0, 2: 1, 3: 2}, "dead-chain": {0: 3, 3: 0},
}  # fmt: skip
STANDS = re.compile(r"^@(\d) ([\d.]+)$", re.M)
AT = re.compile(r"ranks? ([-\d, and]+) (?:is|are) (?:in|past) MPI_")


def told_dead(text):
    """The ranks that stand in a call, or wait for what one has not got; the others compute."""
    ranks = set()
    for found in AT.findall(text):
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", found):
            ranks |= set(range(int(first), int(last or first) + 1))
    return ranks


def told_circle(text):
    """Who waits for whom, by `ranks 0-2 wait for one another (0 for 1, 1 for 2 and 2 for 0)`."""
    found = re.search(r"wait for one another \(([^)]*)\)", text)
    return {int(a): int(b) for a, b in re.findall(r"(\d+) for (\d+)", found[1])} if found else {}


class Slow(Exception):
    """It was told, if at all, too late."""


slowest = []  # seconds from the last rank's last call to the sentence


def dead(kind, seed):
    """What is wrong with what was said of it, or an empty text."""
    try:
        return until_right(lambda: dead_once(kind, seed), Slow)
    except Slow as problem:
        return str(problem)


def dead_once(kind, seed):
    at = {place: (place - seed) % RANKS for place in range(RANKS)}
    wanted, stand = {at[place] for place in DEAD[kind]}, {}
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as out:
        job = start(kind, seed, said, out=out)
        told, until = 0.0, time.monotonic() + START
        while not told and time.monotonic() < until and job.poll() is None:
            told = time.monotonic() if SAID.search(text_of(said)) else 0.0
            stand = {int(rank): float(when) for rank, when in STANDS.findall(text_of(out))}
            if len(stand) == len(wanted):
                until = max(stand.values()) + LATEST
            time.sleep(0.02)
        ended = job.poll() is not None
        time.sleep(1.2)  # it is not told again
        job.send_signal(signal.SIGTERM)
        job.wait(30)
        text = text_of(said)
    if ended:
        return f"mpiexec ended: {text}"
    if stand.keys() != wanted:
        return f"ranks {sorted(stand)} came to their last call, not {sorted(wanted)}: {text}"
    if not told:
        raise Slow(f"not told within {LATEST} s: {text}")
    took = told - max(stand.values())
    if took > WITHIN:
        raise Slow(f"told {took:.2f} s after the last rank stood: {text}")
    slowest.append(took)
    if len(SAID.findall(text)) != 1 or text.count("nothing has changed for") != 1:
        return f"not told once: {text}"
    if told_dead(text) != wanted:
        return f"not of ranks {sorted(wanted)}: {text}"
    circle = {at[a]: at[b] for a, b in CIRCLES.get(kind, {}).items()}
    if circle and told_circle(text) != circle:
        return f"not the circle {circle}: {text}"
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
        """Of one seed a kind: every other one with receives that may be released early."""
        tries = [
            (kind, self.draw.randrange(3333) * 3 + (number % 2 if COUNT == 1 else self.draw.randrange(3)))
            for number, kind in enumerate(kinds(begin)) for _ in range(COUNT)
        ]  # fmt: skip
        with ThreadPoolExecutor(at_once) as pool:
            for (kind, seed), wrong in zip(tries, pool.map(lambda t: judge(*t), tries)):
                with self.subTest(kind=kind, seed=seed):
                    self.assertEqual(wrong, "")

    def test_each_is_told_and_told_once(self):
        self.each("dead-", dead, 2)
        print(f"told {max(slowest, default=0):.2f} s after the last rank stood, at most")

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
