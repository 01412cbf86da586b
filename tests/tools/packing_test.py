#!/usr/bin/env python3
"""Packing and unpacking, against simulated programs that do it, and programs that compute something else there."""

import random
import tempfile
import unittest

from support import drawn_seed, main, need_packages

need_packages("numpy", "rich")

import numpy as np  # noqa: E402
import record_made  # noqa: E402
from headway.record import advise, advise_json, edits, packing, program, reading, waiting  # noqa: E402

SEED, COUNT = drawn_seed(), 5
SEND, WAIT = 61, 62  # call sites


def drawn_sizes(draw):
    """Bytes; the largest is always at least twice the smallest, below which nothing is told (packing.APART)."""
    smallest = draw.randrange(20_000, 200_000)
    return [smallest, 2 * smallest, *(draw.randrange(20_000, 400_000) for _ in range(6))]


def programs(draw, before=0.0, behind=0.0, sizes=None, work=300_000, rounds=40):
    """Ring of ranks; `before` and `behind`: ns a byte computed right before the send, right behind the wait."""
    ranks = draw.randrange(2, 5)
    sizes = sizes or drawn_sizes(draw)
    found = [[] for _ in range(ranks)]
    for n in range(rounds):
        size = sizes[n % len(sizes)]
        for rank in range(ranks):
            right, left = (rank + 1) % ranks, (rank - 1) % ranks
            found[rank] += [
                ("irecv@60", "world", left, 0, "r"),
                ("compute", max(1, round(before * size)) if before else work),
                (f"isend@{SEND}", "world", right, 0, size, "s"),
                (f"waitall@{WAIT}", ["r", "s"]),
                ("compute", max(1, round(behind * size)) if behind else work),
                ("barrier@63", "world"),
                ("compute", work),
            ]
    return found


def read(some, seed, **more):
    with tempfile.TemporaryDirectory() as folder:
        record_made.simulate(folder, some, seed=seed, jitter=0.05, progress="thread", **more)
        return reading.read(folder)


def told(run, least=1):
    built = program.program(waiting.classify(run))
    return {(one.change.kind, built.world.site(one.change.key).offset // 16): one for one in packing.packing(built, least)}


def released(run, fault_after, until, share=1.0):
    """As our library would tell: the wait's receive came back early, and its pages were touched."""
    random_of = random.Random(1)
    for rank in run.ranks:
        waits = [at for at, site in enumerate(rank.events["site"]) if rank.sites[int(site)].offset == 16 * WAIT] if rank.sites else []
        waits = [at for at in waits if rank.family(int(rank.events["kind"][at])) == "wait"]
        some = np.zeros(2 * len(waits), rank.events.dtype)
        begin, end = np.zeros(len(some), np.int64), np.zeros(len(some), np.int64)
        for number, at in enumerate(waits):
            left = int(rank.end[at])
            some["kind"][2 * number : 2 * number + 2] = packing.RELEASE, packing.FAULT
            some["request"][2 * number : 2 * number + 2] = number + 1
            whole = random_of.random() < share
            begin[2 * number], end[2 * number] = left - 10, left + 100_000
            begin[2 * number + 1] = left + (fault_after if whole else 90_000)
            end[2 * number + 1] = left + (until if whole else 91_000)
        rank.events = np.concatenate((rank.events, some))
        rank.begin, rank.end = np.concatenate((rank.begin, begin)), np.concatenate((rank.end, end))
    return run


class Packed(unittest.TestCase):
    def test_before_a_send_and_behind_a_receive(self):
        for seed in range(SEED, SEED + COUNT):
            draw = random.Random(seed)
            rate = draw.uniform(0.1, 1.5)
            for before, behind, wanted in (
                (rate, 0, {(edits.PACK, SEND)}), (0, rate, {(edits.UNPACK, WAIT)}),
                (rate, rate, {(edits.PACK, SEND), (edits.UNPACK, WAIT)}),
            ):  # fmt: skip
                found = told(read(programs(draw, before, behind), seed))
                self.assertEqual(set(found), wanted, seed)
                for one in found.values():
                    self.assertAlmostEqual(one.change.more, rate, delta=0.1 * rate)

    def test_how_much_that_is(self):
        sizes = [100_000, 200_000, 300_000, 400_000]
        found = told(read(programs(random.Random(1), 0.5, 0, sizes), 1))
        self.assertAlmostEqual(found[edits.PACK, SEND].most, 0.5 * sum(sizes) * 10, delta=0.1 * 5e6)
        self.assertEqual(told(read(programs(random.Random(1), 0.5, 0, sizes), 1), least=10**9), {})

    def test_other_computation(self):
        """The same time for all sizes, one size alone, what no copy is as slow as, work beside the copy."""
        for seed in range(SEED, SEED + COUNT):
            draw = random.Random(seed)
            for some in (
                programs(draw), programs(draw, 0.5, 0.5, [200_000]), programs(draw, 0.5, 0.5, [200_000, 200_008, 200_016]),
                programs(draw, 0.5, 0.5, [200_000, 250_000, 300_000, 390_000]),
                programs(draw, 20.0), programs(draw, 0.001, 0.001), programs(draw, 0.5, 0.5, rounds=4),
            ):  # fmt: skip
                self.assertEqual(told(read(some, seed)), {}, seed)
            mixed = programs(draw, 0.5)
            for rank in mixed:
                rank[1::7] = [("compute", ns + 400_000) for _, ns in rank[1::7]]
            self.assertEqual(told(read(mixed, seed)), {}, seed)

    def test_what_our_library_tells_of_early_receives(self):
        one_size = [200_000]
        for share, after, until, wanted in (
            (1.0, 500, 95_000, {(edits.UNPACK, WAIT)}), (1.0, 60_000, 95_000, set()), (1.0, 500, 30_000, set()),
            (0.4, 500, 95_000, set()),
        ):  # fmt: skip
            run = released(read(programs(random.Random(2), 0, 0.5, one_size), 2), after, until, share)
            found = told(run)
            self.assertEqual(set(found), wanted, (share, after, until))
            for one in found.values():
                self.assertAlmostEqual(one.touched, after, delta=20)
                self.assertAlmostEqual(one.change.more, 0.5, delta=0.05)

    def test_it_is_said(self):
        given = advise.advise(waiting.classify(read(programs(random.Random(3), 0.8, 0.8), 3)))
        text = "\n".join(line.plain for line in advise.words(given).renderables)
        self.assertRegex(text, r"right before MPI_Isend at made\+0x3d0 grows with its bytes \(0\.\d+ ns each\), so it probably puts")
        self.assertRegex(text, r"right behind MPI_Waitall at made\+0x3e0 .* takes apart .*; not promised")
        kinds = [one["kind"] for one in advise_json.as_json(given)["told"]]
        self.assertEqual(sorted(kinds), [edits.PACK, edits.UNPACK])


if __name__ == "__main__":
    main(globals())
