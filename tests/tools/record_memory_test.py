#!/usr/bin/env python3
"""What reading a recording holds in memory: of a rank of very many events no more than of the pieces that it is worked on in.
record_memory_test.py [first seed]; it is printed."""

import sys
import tracemalloc
import unittest.mock

from support import Folder, drawn_seed, main, need_packages

need_packages("numpy", "rich")

import numpy as np  # noqa: E402
import record_made  # noqa: E402

from headway.record import bounds, columns, cuts, halves, joining, matching, model, reading  # noqa: E402
from headway.record.format import Writer  # noqa: E402

SEED = drawn_seed()
EVENTS, BLOCK = 1_000_000, 1360  # 48 MB
PIECE = 1 << 16
STEP, START, REAL = 1000, 10**9, 10**18  # ns: of each barrier, and of the clocks


class InFiles:
    """The most bytes of files that this process holds in memory, beyond what it held before. It falls only when columns
    rest, so that is when it is looked at."""

    def __enter__(self):
        self.modules = [
            module
            for name, module in sys.modules.items()
            if name.startswith("headway.record") and getattr(module, "rest", None) is columns.rest
        ]
        self.before, self.most, self.old = self.held(), 0, columns.rest
        for module in self.modules:
            module.rest = self.rest
        return self

    def rest(self, *some):
        self.most = max(self.most, self.held() - self.before)
        self.old(*some)

    def __exit__(self, *_problem):
        self.rest()
        for module in self.modules:
            module.rest = self.old

    @staticmethod
    def held():
        with open("/proc/self/status") as file:
            line = next(line for line in file if line.startswith("RssFile"))
        return int(line.split()[1]) * 1024


class Pieces(Folder):
    def setUp(self):
        super().setUp()
        for module, name in ((columns, "CHUNK"), (joining, "PIECE")):
            self.addCleanup(setattr, module, name, getattr(module, name))
            setattr(module, name, PIECE)

    def record(self, rank, count, host, late):
        """A rank that enters so many barriers."""
        header = record_made.header(rank, 2, host, "ns")
        world = {"id": model.WORLD, "parent": 0, "rank": rank, "members": [[0, 1]], "name": "MPI_COMM_WORLD"}
        events = np.zeros(count, model.EVENT)
        events["kind"], events["flags"], events["comm"] = record_made.KIND["barrier"], model.COLLECTIVE, model.WORLD
        events["peer"] = events["tag"] = model.NONE
        events["begin"] = START + late + STEP * np.arange(count)
        events["end"] = events["begin"] + STEP // 2
        with Writer(self.folder / f"rank-{rank}.hwr", header) as file:
            file.clock((START, START, REAL))
            file.communicators([world])
            for first in range(0, count, BLOCK):
                file.events(events[first : first + BLOCK])
            last = int(events["end"][-1])
            file.clock((last, last, REAL + last - START))
            file.end(count)

    def test_a_rank_of_very_many_events(self):
        self.record(0, 10, "a", 0)
        self.record(1, EVENTS, "b", 5_000_000)
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        with InFiles() as files:
            run = reading.read(self.folder)
        if run.spill is None:
            self.skipTest("there is no room on the disk")
        self.assertEqual([len(rank.events) for rank in run.ranks], [10, EVENTS])
        self.assertEqual(len(run.collectives), EVENTS)
        self.assertIn("the clocks of 2 hosts were aligned", " ".join(run.notes))
        self.assertLess(tracemalloc.get_traced_memory()[1], 60 * EVENTS)
        self.assertLess(files.most, 40e6)
        # What is looked at here and there is not held, either.
        with InFiles() as files:
            found = cuts.cuts(run.ranks[1], 4096)
        self.assertGreater(len(found), EVENTS // 5000)
        self.assertLess(files.most, 20e6)

    def test_columns_are_gone_over_in_pieces(self):
        count = 10_000_000
        column = columns.room(count, np.int64, self.folder)
        self.assertIsNotNone(columns.map_of(column))
        with InFiles() as files:
            for some in columns.pieces(column):
                column[some] = some.start + np.arange(len(column[some]))
            columns.add(column, lambda values: 5 + values)
            self.assertEqual((columns.least(column), columns.largest(column)), (5, 2 * count + 3))
            rank = unittest.mock.Mock(events=range(count), begin=column)
            self.assertEqual(len(matching.bands([rank])), count // (2 * PIECE))
        self.assertLess(files.most, 20e6)
        self.assertIsNone(columns.least(column[:0]))

    def test_bounds_of_many_hosts(self):
        """All pairs together have no more than two would."""
        draw, hosts = np.random.default_rng(SEED), 12
        whole, some = bounds.Bounds(), bounds.Bounds()
        self.addCleanup(setattr, bounds, "MOST", bounds.MOST)
        bounds.MOST = 4000
        some.most, held = bounds.MOST, []
        for _ in range(60):
            one, two = draw.integers(0, hosts, (2, 1000))
            times = draw.integers(0, 10**10, (1000, 2))
            rows = np.stack([one, times[:, 0], two, times[:, 1]], 1)[one != two]
            for of in (whole, some):
                of.add(rows)
            held.append(sum(len(part) for sides in some.kept.values() for side in sides for part in side))
        self.assertLess(max(held), 2 * bounds.MOST)
        self.assertEqual((some.count, some.counts), (whole.count, whole.counts))
        for a, b in zip(whole.pairs(), some.pairs()):
            self.assertEqual((a.a, a.b), (b.a, b.b))
            for side, of in (("low", 1), ("high", -1)):
                for drift in np.linspace(-1e-3, 1e-3, 21):
                    touched = [(of * (p[:, 1] - drift * p[:, 0])).max() for p in (getattr(a, side), getattr(b, side))]
                    self.assertAlmostEqual(*touched, delta=0.01, msg=f"seed {SEED}")

    def test_collectives_in_order(self):
        columns.CHUNK = 7
        draw, ordered = np.random.default_rng(SEED), 0
        for turn in range(60):
            parts = np.zeros(draw.integers(0, 40), halves.PART)
            row = parts["row"]
            for name in ("epoch", "comm", "stream"):
                row[name] = draw.integers(0, 1 + turn % 3, len(parts))
            parts["time"], row["event"] = draw.integers(0, 9, len(parts)), draw.permutation(len(parts))
            order = np.lexsort((row["event"], parts["time"], row["stream"], row["comm"], row["epoch"]))
            if turn % 2:
                parts, order = parts[order], np.arange(len(parts))
            found = halves.order_of(parts)
            ordered += found is None
            self.assertEqual(found is None, bool((order == np.arange(len(parts))).all()), f"seed {SEED}")
            np.testing.assert_array_equal(order if found is None else found, order, f"seed {SEED}")
            for spill in (None, self.folder):
                shelves = columns.Shelves(1, halves.PART, spill)
                for first in range(0, len(parts), 11):
                    some = parts[first : first + 11]
                    shelves.add(some, np.zeros(len(some), np.int64))
                self.assertTrue((shelves.whole() == parts).all())
        self.assertTrue(30 <= ordered < 60)


if __name__ == "__main__":
    main(globals())
