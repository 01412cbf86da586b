#!/usr/bin/env python3
"""Classes of waiting against recordings of simulated programs (record_made), whose truth the simulation tells: files,
reading, matching and classes together. A table says how far off each class is.

    waiting_simulated_test.py [first seed [how many times 12 programs]]"""

import random
import sys
import tempfile
import unittest
from collections import defaultdict

from support import drawn_seed, main, need_packages

need_packages("numpy")

import numpy as np  # noqa: E402

try:
    import record_made  # noqa: E402
    from headway.record import reading  # noqa: E402
except ImportError:
    print("skipped: no reader of recordings here")
    sys.exit(77)
from headway.record import classes, efficiency, hidden, waiting  # noqa: E402

SEED = drawn_seed()
COUNT = 1
NUMBER = {name: number for number, name in enumerate(classes.NAMES)}


def with_computation(seed, rounds=60, ranks=4):
    """Messages whose sides compute between posting and wait, behind barriers: progress is missing."""
    draw = random.Random(seed)
    programs = [[] for _ in range(ranks)]
    for number in range(rounds):
        (a, b), size = draw.sample(range(ranks), 2), draw.choice((100_000, 300_000, 1_000_000))
        for program in programs:
            program.append(("barrier", "world"))
        form = draw.choice(("blocking", "sender", "receiver", "both"))
        if form == "blocking":
            programs[a] += [("compute", draw.randrange(200_000)), ("send", "world", b, 1, size)]
            programs[b] += [("compute", draw.randrange(200_000)), ("recv", "world", a, 1)]
            continue
        work = [("compute", draw.randrange(20_000, 600_000)) for _ in range(2)]
        programs[a].append(("isend", "world", b, 1, size, f"s{number}"))
        programs[b].append(("irecv", "world", a, 1, f"r{number}"))
        programs[a] += work[: form != "receiver"] + [("wait", f"s{number}")]
        programs[b] += work[1:] * (form != "sender") + [("wait", f"r{number}")]
    return programs


def ping(place, number):
    """Rank 0 sends to the one that waits already."""
    size = (8, 1000, 30_000, 100_000, 1_000_000)[number % 5]
    if place == 0:
        return ("compute", 300_000), ("send", "world", 1, 0, size)
    return (("recv", "world", 0, 0),) if place == 1 else ()


class Simulated(unittest.TestCase):
    def off(self, programs, one_lateness=False, **more):
        """True ns by class, and by how much what was found differs from it, call by call."""
        into = classes.LATE_SENDER
        truth, off = np.zeros((2, classes.COUNT))
        for number, program in enumerate(programs):
            with tempfile.TemporaryDirectory() as folder:
                told = record_made.simulate(folder, program, seed=number, **more)
                found = waiting.classify(reading.read(folder))
            calls = defaultdict(lambda: np.zeros(classes.COUNT))
            for rank, event, cause, ns in told.waits:
                calls[rank, event][NUMBER[cause]] += ns
            for place in range(len(found.line.world)):
                for event, row in zip(*(column.tolist() for column in found.of_rank(place))):
                    if (place, event) in calls:
                        true, parts = calls[place, event], found.waits.parts[row].astype(float)
                        for some in (true, parts) if one_lateness else ():
                            some[into] += some[classes.LATE_RECEIVER]
                            some[classes.LATE_RECEIVER] = 0
                        truth += true
                        off += np.abs(parts - true)
            e, share = efficiency.efficiency(found), hidden.hidden(found).share
            self.assertLessEqual(e.ideal, e.time)
            self.assertLessEqual(e.useful.max(), e.ideal + 1)
            self.assertLessEqual(share[0], share[1])
        return truth, off

    def within(self, truth, off, share, of_all):
        for c in classes.WAITING:
            if truth[c]:
                print(f"{classes.NAMES[c]:17}{truth[c] / 1e6:12.3f} ms, off by {100 * off[c] / truth[c]:.2f} %")
        for c in classes.WAITING:
            self.assertLessEqual(off[c], share * truth[c] + of_all * truth.sum(), (SEED, classes.NAMES[c], truth[c]))

    def test_missing_progress(self):
        programs = [with_computation(seed) for seed in range(SEED, SEED + 4 * COUNT)]
        truth, off = self.off(programs, progress="calls")
        self.assertGreater(truth[classes.MISSING_PROGRESS], truth.sum() / 10)
        self.within(truth, off, 0.05, 0)

    def test_programs_of_all_operations(self):
        """Times of one transfer differ by a tenth, and a Waitall tells no order: whether it waited for a send or for a
        receive of a rank that came late with both is a guess. So here the two are one class."""
        programs = []
        for seed in range(SEED, SEED + 8 * COUNT):
            program = record_made.draw(seed, 4, 10)
            for place, own in enumerate(program):
                own[:0] = [one for n in range(40) for one in ping(place, n)]  # from which transfers are learned
            programs.append(program)
        truth, off = self.off(programs, True, progress="thread")
        self.within(truth, off, 0.05, 0.005)


if __name__ == "__main__":
    main(globals())
