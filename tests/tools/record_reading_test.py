#!/usr/bin/env python3
"""Recordings read back: messages and collectives of programs that were drawn, clocks of which the error is known. HEADWAY_TEST_SEED is the first seed; each failure names its own."""

import sys
import unittest

from support import Folder, drawn_seed, need_packages

need_packages("numpy")

import numpy as np  # noqa: E402

import record_made as made  # noqa: E402
from headway.record import alignment, bounds, columns, entries, joining, reading  # noqa: E402
from headway.record.format import BadRecording  # noqa: E402
from headway.record.model import (  # noqa: E402
    ANY, COMPLETION, FAILED, GAP, IN_VAIN, KINDS, PARTITIONED, RECEIVE, SEND,
)  # fmt: skip
from record_rows import calls, row, write  # noqa: E402

SEED = drawn_seed()
SEEDS = 25
NONE, COLLECTIVE = -1, 4


def messages_of(run):
    names = ("source", "sent", "left", "target", "posted", "came", "bytes", "tag")
    return sorted(
        (*(int(m[name]) for name in names), tuple(run.comms[m["comm"]].members.tolist())) for m in run.messages
    )


def collectives_of(run):
    found = []
    for c in run.collectives:
        parts = tuple(zip(c.ranks.tolist(), c.events.tolist(), c.ends.tolist()))
        found.append((c.name, tuple(run.comms[c.comm].members.tolist()), parts))
    return sorted(found)


def early(run):
    """Messages that came before they were sent."""
    by = {rank.rank: rank for rank in run.ranks}
    return [m for m in run.messages if by[m["target"]].end[m["came"]] < by[m["source"]].begin[m["sent"]]]


class Drawn(Folder):
    def test_what_belongs_together_is_found(self):
        total = 0
        for seed in range(SEED, SEED + SEEDS):
            folder = self.folder / str(seed)
            folder.mkdir()
            with self.subTest(seed=seed):
                programs = made.draw(seed, 2 + seed % 5, phases=8)
                progress = ("thread", "calls")[seed % 2]
                truth = made.simulate(folder, programs, seed=seed, block=1 + seed % 40, progress=progress)
                run = reading.read(folder)
                self.assertEqual(run.notes, [])
                self.assertEqual(messages_of(run), sorted(truth.messages))
                self.assertEqual(collectives_of(run), sorted(truth.collectives))
                start = min(times[:, 0].min() for times in truth.times)
                for rank, times in zip(run.ranks, truth.times):
                    self.assertLessEqual(abs(np.stack([rank.begin, rank.end], 1) - (times - start)).max(), 1)
                    self.assertTrue(rank.finalized)
                total += len(truth.messages)
        self.assertGreater(total, SEEDS)

    def test_a_wrong_pair_would_be_seen(self):
        truth = made.simulate(self.folder, [[("send", "world", 1, 0, 8)] * 2, [("recv", "world", 0, 0)] * 2])
        run = reading.read(self.folder)
        run.messages["posted"] = run.messages["posted"][::-1].copy()
        self.assertNotEqual(messages_of(run), sorted(truth.messages))

    def test_columns_in_files_are_the_same(self):
        programs = made.draw(SEED, 4, 12)
        made.simulate(self.folder, programs, (made.Clock(), made.Clock(5_000_000, 50e-6)), seed=SEED, block=9)
        run = reading.read(self.folder)
        old, reading.LARGE = reading.LARGE, 0
        self.addCleanup(setattr, reading, "LARGE", old)
        for module, name in ((columns, "CHUNK"), (joining, "PIECE")):
            self.addCleanup(setattr, module, name, getattr(module, name))
            setattr(module, name, 7)
        other = reading.read(self.folder)
        self.assertTrue((run.messages == other.messages).all())
        for one, two in zip(run.ranks, other.ranks):
            self.assertTrue((one.events == two.events).all())
            self.assertLessEqual(max(abs(one.end - two.end).max(), abs(one.begin - two.begin).max()), 1)
        self.assertEqual(collectives_of(run), collectives_of(other))
        self.assertEqual(run.notes, other.notes)
        self.assertIsNotNone(columns.map_of(other.ranks[0].begin))
        self.assertEqual({file.suffix for file in self.folder.iterdir()}, {".hwr"})


class Simulation(Folder):
    """Of the maker itself: programs whose waiting can be told in the head."""

    def waits(self, *programs, progress="thread"):
        truth = made.simulate(self.folder, programs, jitter=0, progress=progress)
        found = {}
        for rank, _event, cause, ns in truth.waits:
            found[rank, cause] = found.get((rank, cause), 0) + ns
        return found

    def about(self, value, expected):
        self.assertLess(abs(value - expected), 12_000)  # starts differ by 2 us; messages take 3

    def test_messages(self):
        late, size = ("compute", 1_000_000), 1_000_000  # 1 MB takes 100 us
        waits = self.waits([late, ("send", "world", 1, 0, 8)], [("recv", "world", 0, 0)])
        self.about(waits[1, "late sender"], 1_000_000)
        self.about(waits[1, "transfer"], 0)
        waits = self.waits([("send", "world", 1, 0, size)], [late, ("recv", "world", 0, 0)])
        self.about(waits[0, "late receiver"], 1_000_000)
        self.about(waits[0, "transfer"], 100_000)
        self.about(waits[1, "transfer"], 100_000)
        self.assertNotIn((1, "late sender"), waits)

    def test_progress(self):
        """Both computed for 1 ms; a thread would have moved the data."""
        one = [("isend", "world", 1, 0, 1_000_000, "s"), ("compute", 1_000_000), ("wait", "s")]
        two = [("irecv", "world", 0, 0, "r"), ("compute", 1_000_000), ("waitall", ["r"])]
        waits = self.waits(one, two)
        self.about(sum(waits.values()), 0)
        waits = self.waits(one, two, progress="calls")
        for rank in (0, 1):
            self.about(waits[rank, "missing progress"], 100_000)

    def test_collectives(self):
        late = ("compute", 1_000_000)
        for operation, rank, cause in (
            (("barrier", "world"), 1, "late participant"),
            (("allreduce", "world", 8), 1, "late participant"),
            (("bcast", "world", 0, 8), 1, "late root"),
            (("reduce", "world", 1, 8), 1, "early root"),
        ):
            with self.subTest(operation[0]):
                waits = self.waits([late, operation], [operation])
                self.about(waits[rank, cause], 1_000_000)
                self.about(sum(waits.values()), 1_000_000)
        both = [("ibarrier", "world", "b"), ("wait", "b")]
        waits = self.waits([late, *both], both)
        self.about(waits[1, "late participant"], 1_000_000)


def talk(rounds, compute=10_000_000, both=True):
    """Two hosts with two ranks each: a message there and one back, then computation."""
    programs = [[], [], [], []]
    for _ in range(rounds):
        for a, b in ((0, 1), (2, 3)):
            programs[a].append(("send", "world", b, 1, 100))
            programs[b].append(("recv", "world", a, 1))
            if both:
                programs[b].append(("send", "world", a, 2, 100))
                programs[a].append(("recv", "world", b, 2))
        for program in programs:
            program.append(("compute", compute))
    return programs


class Stepping(made.Clock):
    """Is set forward in the middle of the run."""

    step, when = 700_000, 10**9

    def ns(self, true):
        return super().ns(true) + (self.step if true >= self.when else 0)


class Clocks(Folder):
    WRONG = (made.Clock(), made.Clock(5_000_000, 50e-6, 3.0, 5 * 10**12))

    def error(self, run, truth):
        """The largest of any event's time."""
        start = min(times[0, 0] for times in truth.times)
        off = [np.stack([rank.begin, rank.end], 1) - (times - start) for rank, times in zip(run.ranks, truth.times)]
        middle = int(np.median(off[0]))  # the run's start is that of another rank, perhaps
        return max(np.abs(one - middle).max() for one in off)

    def read_raw(self):
        """Without alignment."""
        saved = alignment.align, alignment.mend
        alignment.align = alignment.mend = lambda *_: []
        try:
            return reading.read(self.folder)
        finally:
            alignment.align, alignment.mend = saved

    def test_an_offset_of_5_ms_and_a_drift_of_50_ppm(self):
        truth = made.simulate(self.folder, talk(300), self.WRONG, seed=SEED)
        self.assertGreater(len(early(self.read_raw())), 500)
        self.assertGreater(self.error(self.read_raw(), truth), 4_900_000)
        run = reading.read(self.folder)
        self.assertEqual(early(run), [])
        self.assertLess(self.error(run, truth), 2000)
        self.assertIn("aligned by 1200 messages", run.notes[0])
        self.assertNotIn("moved forward", " ".join(run.notes))

    def test_bounds_that_do_not_matter_are_left_out(self):
        truth = made.simulate(self.folder, talk(300), self.WRONG, seed=SEED)
        all_bounds = reading.read(self.folder)
        for module, name, value in ((bounds, "MOST", 16), (columns, "CHUNK", 50)):
            self.addCleanup(setattr, module, name, getattr(module, name))
            setattr(module, name, value)
        some_bounds = reading.read(self.folder)
        self.assertLess(self.error(some_bounds, truth), 2000)
        self.assertEqual(early(some_bounds), [])
        for one, two in zip(all_bounds.ranks, some_bounds.ranks):
            self.assertLessEqual(abs(one.begin - two.begin).max(), 1)

    def test_the_hull(self):
        for seed in range(SEED, SEED + 20):
            random = np.random.default_rng(seed)
            highest = 10 ** (seed % 8)
            points = np.stack([random.integers(0, most, 500) for most in (10**10, highest)], 1).astype(float)
            some = bounds.hull(points)
            self.assertLess(len(some), 100)
            for drift in np.linspace(-1e-3, 1e-3, 101):
                with self.subTest(seed=seed, drift=drift):
                    touched = [(p[:, 1] - drift * p[:, 0]).max() for p in (points, some)]
                    self.assertAlmostEqual(*touched, delta=0.01)

    def test_a_ring_goes_round_one_way(self):
        """Each pair of hosts alone says nothing of how long a message took; all together do."""
        wrong = (0, 0, 0), (-9_000_000, -80e-6, 2), (3_000_000, 20e-6, 1), (7_000_000, 50e-6, 0)
        hosts = [made.Clock(*one) for one in wrong]
        programs = []
        for rank in range(4):
            there = [("send", "world", (rank + 1) % 4, 0, 8), ("recv", "world", (rank - 1) % 4, 0)]
            programs.append([*(there[:: -1 if rank % 2 else 1]), ("compute", 10_000_000)] * 200)
        for seed in (SEED, 709924743, 999605098):  # of the latter two no host can be moved alone
            with self.subTest(seed=seed):
                truth = made.simulate(self.folder, programs, hosts, seed=seed)
                run = reading.read(self.folder)
                self.assertEqual(early(run), [])
                # Of the last one 9 us where the hosts stay at the rim of what is known, 3 in the middle.
                self.assertLess(self.error(run, truth), 6_000 if seed == 999605098 else 200_000)
                self.assertNotIn("one way only", " ".join(run.notes))
                self.assertNotIn("moved forward", " ".join(run.notes))

    def test_four_hosts_and_behind(self):
        wrong = (0, 0, 0), (-9_000_000, -80e-6, 2), (3_000_000, 20e-6, 1), (1, 0, 0)
        hosts = [made.Clock(*one) for one in wrong]
        made.simulate(self.folder, talk(200), hosts, seed=SEED)
        run = reading.read(self.folder)
        self.assertEqual(early(run), [])
        self.assertIn("nothing ties host2 to host0", " ".join(run.notes))  # 0 and 1 talk, and 2 and 3
        ring = [[("barrier", "world"), ("compute", 10_000_000)] * 100 for _ in hosts]
        truth = made.simulate(self.folder, ring, hosts, seed=SEED)
        run = reading.read(self.folder)
        self.assertLess(self.error(run, truth), 8000)
        self.assertIn("the clocks of 4 hosts", run.notes[0])

    def test_collectives_alone_align(self):
        for word in (("barrier", "world"), ("allreduce", "world", 8)):
            with self.subTest(word[0]):
                programs = [[("compute", 10_000_000 + 500_000 * (i % 2)), word] * 200 for i in range(4)]
                truth = made.simulate(self.folder, programs, self.WRONG, seed=SEED)
                self.assertLess(self.error(reading.read(self.folder), truth), 8000)

    def test_root_collectives_bound_both_sides(self):
        step = [("compute", 9_000_000), ("bcast", "world", 0, 8), ("reduce", "world", 0, 8)]
        programs = [step * 200 for _ in range(4)]
        truth = made.simulate(self.folder, programs, self.WRONG, seed=SEED)
        run = reading.read(self.folder)
        self.assertIn("aligned by 400 ", run.notes[0])
        self.assertLess(self.error(run, truth), 8000)

    def test_one_way(self):
        truth = made.simulate(self.folder, talk(300, both=False), (self.WRONG[1], self.WRONG[0]), seed=SEED)
        self.assertGreater(len(early(self.read_raw())), 100)
        run = reading.read(self.folder)
        self.assertEqual(early(run), [])
        self.assertIn("one way only", " ".join(run.notes))
        self.assertLess(self.error(run, truth), 1_000_000)

    def test_what_no_line_can_satisfy_is_mended(self):
        truth = made.simulate(self.folder, talk(200), (made.Clock(), Stepping()), seed=SEED)
        run = reading.read(self.folder)
        self.assertEqual(early(run), [])
        self.assertIn("moved forward", " ".join(run.notes))
        for rank, times in zip(run.ranks, truth.times):
            self.assertTrue((rank.end >= rank.begin).all())
            self.assertTrue((np.diff(rank.end) >= 0).all() and (np.diff(rank.begin) >= 0).all())
            self.assertLess(np.abs(rank.end - times[:, 1]).max(), 3_000_000)

    def test_what_contradicts_itself_ends(self):
        """Each receives what the other sends only after that."""
        for rank in range(2):
            receive = row(made.KIND["recv"], RECEIVE, 100, 200, 1, 1 - rank)
            write(self.folder, rank, 2, [receive, row(made.KIND["send"], SEND, 300, 400, 1, 1 - rank)], host=f"h{rank}")
        self.assertIn("contradicts itself", " ".join(reading.read(self.folder).notes))

    def test_one_boot_is_one_clock(self):
        made.simulate(self.folder, talk(20), [self.WRONG[1]], seed=SEED)
        run = reading.read(self.folder)
        self.assertEqual(run.notes, [])
        self.assertEqual(len(run.messages), 80)

    def test_ranks_of_one_boot_that_lie(self):
        for rank in range(2):
            write(self.folder, rank, 2, [row(made.KIND["send"], SEND, 100, 200, 1, 1 - rank)], points=[
                (0, 10**9 * (1 + rank), 10**18), (1000, 10**9 * (1 + rank) + 1000, 10**18 + 1000)])  # fmt: skip
        self.assertIn("share one clock, but do not", " ".join(reading.read(self.folder).notes))

    def test_without_a_clock(self):
        write(self.folder, 0, 2, [row(made.KIND["send"], SEND, 100, 200, 1, 1)])
        write(self.folder, 1, 2, [row(made.KIND["recv"], RECEIVE, 100, 200, 1, 0)], points=[])
        self.assertEqual(len(reading.read(self.folder).messages), 1)  # that of its host
        write(self.folder, 0, 2, [], points=[])
        with self.assertRaisesRegex(BadRecording, "no clock"):
            reading.read(self.folder)


class Special(Folder):
    """What the drawn programs do not do."""

    def pairs(self, *rows_of_ranks, comms=None):
        for rank, rows in enumerate(rows_of_ranks):
            own = comms[rank] if comms else ()
            write(self.folder, rank, len(rows_of_ranks), rows, comms=own)
        self.run_ = reading.read(self.folder)
        names = ("source", "sent", "left", "target", "posted", "came")
        return [tuple(int(m[name]) for name in names) for m in self.run_.messages]

    def to(self, peer, tag=0, **more):
        return {"peer": peer, "tag": tag} | more

    def test_matched_probes(self):
        """The message probed first is received last."""
        to = self.to
        sends = calls(*[("send", SEND, to(1))] * 3)
        receives = calls(
            ("mprobe", RECEIVE, to(0, request=5)),
            ("recv", RECEIVE, to(0)),
            ("mprobe", RECEIVE, to(0, request=6)),
            ("imrecv", RECEIVE, to(0, request=9, size=6)),
            ("wait", RECEIVE, to(0, request=9)),
            ("mrecv", RECEIVE, to(0, request=5)),
        )
        self.assertEqual(self.pairs(sends, receives), [(0, 0, 0, 1, 0, 5), (0, 1, 1, 1, 1, 1), (0, 2, 2, 1, 2, 4)])
        self.assertEqual(self.run_.notes, [])

    def test_persistent_requests_and_sendrecv(self):
        to = self.to
        one = calls(
            ("start", SEND, to(1, request=1)),
            ("start", SEND, to(1, request=2)),
            ("waitall", 0, {"tag": 2, "comm": 0}),
            ("completion", SEND, to(1, request=2)),
            ("completion", SEND, to(1, request=1)),
            ("sendrecv", SEND, to(1)),
            ("sendrecv", RECEIVE, to(1)),
        )
        two = calls(
            ("start", RECEIVE, to(ANY, ANY, request=7)),
            ("recv", RECEIVE, to(0)),
            ("wait", RECEIVE, to(0, request=7)),
            ("sendrecv", SEND, to(0)),
            ("sendrecv", RECEIVE, to(0)),
        )
        pairs = [(0, 0, 2, 1, 0, 2), (0, 1, 2, 1, 1, 1), (0, 5, 5, 1, 4, 4), (1, 3, 3, 0, 6, 6)]
        self.assertEqual(self.pairs(one, two), pairs)

    def test_persistent_collectives(self):
        """One rank starts the second one first; a plain barrier between the starts counts for itself. MPI_Startall is
        as good as MPI_Start, and large counts as small ones."""

        def start(which, number, request, peer=NONE, how="start"):
            tag = made.KIND[which] + number * KINDS
            return how, COLLECTIVE, {"peer": peer, "tag": tag, "request": request}

        one = calls(
            start("bcast_init", 0, 1, 1),
            ("wait", COLLECTIVE, {"request": 1}),
            ("barrier", COLLECTIVE),
            start("barrier_init", 1, 2),
            start("bcast_init", 0, 3, 1),
            ("wait", COLLECTIVE, {"request": 3}),
            ("wait", COLLECTIVE, {"request": 2}),
        )
        two = calls(
            start("barrier_init", 1, 1, how="startall"),
            start("bcast_init_c", 0, 2, 1, how="startall"),
            ("wait", COLLECTIVE, {"request": 2}),
            ("barrier_c", COLLECTIVE),
            ("wait", COLLECTIVE, {"request": 1}),
            start("bcast_init_c", 0, 4, 1),
            ("wait", COLLECTIVE, {"request": 4}),
        )
        self.pairs(one, two)
        self.assertEqual(self.run_.notes, [])
        found = [(c.name, c.root, c.order, c.events.tolist(), c.ends.tolist()) for c in self.run_.collectives]
        self.assertEqual(
            sorted(found),
            [
                ("MPI_Barrier", -1, 0, [2, 3], [2, 3]),
                ("MPI_Barrier_init", -1, 0, [3, 0], [6, 4]),
                ("MPI_Bcast_init", 1, 0, [0, 1], [1, 2]),
                ("MPI_Bcast_init", 1, 1, [4, 5], [5, 6]),
            ],
        )
        rules = [entries.rule_of(name) for name in ("MPI_Bcast_init", "MPI_Barrier_init_c", "MPI_Init")]
        self.assertEqual(rules, [entries.FROM_ROOT, entries.ALL, entries.UNKNOWN])

    def test_starts_that_do_not_say_of_what(self):
        """Tags that are no init function: whatever they are, starts match each other."""
        for tag in (NONE, 9999, made.KIND["send"], (1 << 31) - 1):
            with self.subTest(tag=tag):
                start = ("start", COLLECTIVE, {"tag": tag, "request": 1})
                self.pairs(calls(start), calls(start))
                self.assertEqual([(c.name, len(c.ranks)) for c in self.run_.collectives], [("MPI_Start", 2)])

    def test_partitioned_messages_match_among_themselves(self):
        """Of one tag with a plain message; the receiver begins them in the other order."""
        to = self.to
        sends = calls(("send", SEND, to(1, 5)), ("start", SEND | PARTITIONED, to(1, 5, request=1, size=64)))
        receives = calls(
            ("start", RECEIVE | PARTITIONED, to(0, 5, request=2, size=64)),
            ("wait", RECEIVE | PARTITIONED, to(0, 5, request=2, size=64)),
            ("recv", RECEIVE, to(0, 5)),
        )
        self.assertEqual(self.pairs(sends, receives), [(0, 0, 0, 1, 2, 2), (0, 1, -1, 1, 0, 1)])
        self.assertEqual(self.run_.messages["tag"].tolist(), [5, 5])
        self.pairs(sends[1:], receives[2:])
        self.assertIn("1 sends found no receive", " ".join(self.run_.notes))
        self.assertIn("tag 5", " ".join(self.run_.notes))

    def test_cancelled_and_never_completed_receives_do_not_count(self):
        to = self.to
        sends = calls(
            ("isend", SEND, to(1, request=1)),
            ("waitall", 0, {"comm": 0, "tag": 1}),
            ("completion", SEND | FAILED, to(1, request=1)),  # cancelled
            *[("send", SEND, to(1))] * 2,
        )
        receives = calls(
            ("irecv", RECEIVE, to(0, request=1)),
            ("irecv", RECEIVE, to(0, request=2)),
            ("wait", RECEIVE | FAILED, to(0, request=1)),  # cancelled
            ("irecv", RECEIVE, to(0, request=3)),
            ("irecv", RECEIVE, to(0, request=4)),
            ("wait", RECEIVE, to(0, request=4)),
            ("waitany", RECEIVE, to(0, request=3)),
        )
        self.assertEqual(self.pairs(sends, receives), [(0, 3, 3, 1, 3, 6), (0, 4, 4, 1, 4, 5)])
        self.assertEqual(self.run_.notes, [])

    def test_one_request_for_a_send_and_a_receive(self):
        to = self.to
        ranks = []
        for rank in range(2):
            other = to(1 - rank, request=4)
            ranks.append(calls(("isend", SEND, other), ("isend", RECEIVE, other), ("wait", RECEIVE, other)))
        self.assertEqual(self.pairs(*ranks), [(0, 0, 2, 1, 1, 2), (1, 0, 2, 0, 1, 2)])

    def test_numbers_of_requests_come_again(self):
        to = self.to
        sends = calls(*[("send", SEND, to(1))] * 2)
        receives = calls(
            ("irecv", RECEIVE, to(0, request=1)),
            ("wait", RECEIVE, to(0, request=1)),
            ("irecv", RECEIVE, to(0, request=1)),
            ("test", IN_VAIN, to(NONE, 3, comm=0)),
            ("test", RECEIVE, to(0, request=1)),
            ("irecv", RECEIVE, to(0, request=1)),  # never completed
            ("wait", RECEIVE, to(0, request=2)),  # of one that was not recorded
        )
        self.assertEqual(self.pairs(sends, receives), [(0, 0, 0, 1, 0, 1), (0, 1, 1, 1, 2, 4)])
        self.assertEqual(self.run_.notes, [])

    def test_threads(self):
        """One thread posts, another one completes, in a Waitall whose records another thread's block divides."""
        to = self.to
        sends = calls(*[("send", SEND, to(1))] * 3)
        k = made.KIND
        receives = [
            row(k["irecv"], RECEIVE, 110, 120, 1, 0, 0, 1, thread=1),
            row(k["irecv"], RECEIVE, 130, 140, 1, 0, 0, 2, thread=1),
            row(k["waitall"], 0, 150, 400, tag=2, thread=0),
            row(COMPLETION, RECEIVE, 150, 400, 1, 0, 0, 2, thread=0),
            row(k["wait"], RECEIVE, 300, 310, 1, 0, 0, 3, thread=1),
            row(COMPLETION, RECEIVE, 150, 400, 1, 0, 0, 1, thread=0),
            row(k["irecv"], RECEIVE, 100, 105, 1, 0, 0, 3, thread=2),
        ]
        pairs = [(0, 0, 0, 1, 6, 4), (0, 1, 1, 1, 0, 2), (0, 2, 2, 1, 1, 2)]
        self.assertEqual(self.pairs(sends, receives), pairs)

    def test_counts_that_differ_are_told(self):
        to = self.to
        pairs = self.pairs(calls(*[("send", SEND, to(1, 3))] * 3), calls(("recv", RECEIVE, to(0, 3))))
        self.assertEqual(pairs, [(0, 0, 0, 1, 0, 0)])
        note = "2 sends found no receive and 0 receives no send; the first: from rank 0 to rank 1, tag 3"
        self.assertIn(note, " ".join(self.run_.notes))

    def test_failed_calls_and_nobodys_ranks(self):
        to = self.to
        sends = calls(("send", SEND | FAILED, to(1)), *[("send", SEND, to(peer)) for peer in (7, NONE, 1)])
        receives = calls(("recv", RECEIVE, to(NONE)), ("recv", RECEIVE, to(0)), ("recv", RECEIVE, to(0, comm=77)))
        self.assertEqual(self.pairs(sends, receives), [(0, 3, 3, 1, 1, 1)])

    def test_communicators_of_a_part_do_not_shift_the_others(self):
        """Ranks 0 and 1 make one more, by a group, before all make theirs."""
        to, world = self.to, [[0, 2]]
        part = {"id": 9, "parent": 1, "call": "MPI_Comm_create_group", "order": 0, "members": [[0, 1]]}
        whole = {"parent": 1, "call": "MPI_Comm_dup", "members": world}
        comms = [
            [part | {"rank": 0}, whole | {"id": 12, "order": 1, "rank": 0}],
            [part | {"rank": 1}, whole | {"id": 10, "order": 1, "rank": 1}],
            [whole | {"id": 4, "order": 0, "rank": 2}],
        ]
        makes = ("comm_create_group", COLLECTIVE), ("comm_dup", COLLECTIVE)
        pairs = self.pairs(
            calls(*makes, ("send", SEND, to(2, comm=12)), ("barrier", COLLECTIVE, {"comm": 12})),
            calls(*makes, ("send", SEND, to(0, comm=9)), ("barrier", COLLECTIVE, {"comm": 10})),
            calls(makes[1], ("recv", RECEIVE, to(0, comm=4)), ("barrier", COLLECTIVE, {"comm": 4})),
            comms=comms,
        )
        self.assertEqual(pairs, [(0, 2, 2, 2, 1, 1)])
        found = [(c.name, len(c.ranks)) for c in self.run_.collectives]
        self.assertEqual(found, [("MPI_Comm_dup", 3), ("MPI_Barrier", 3)])

    def test_communicators_of_the_same_members(self):
        """Received in the other order than sent; one rank learns of them in the other order, too."""
        to, comms = self.to, []
        for rank in range(2):
            one = {"parent": 1, "call": "MPI_Comm_dup", "rank": rank, "members": [[0, 1]]}
            pair = [one | {"id": 5 + rank, "order": 0}, one | {"id": 9 - rank, "order": 1}]
            comms.append(pair[:: 1 - 2 * rank])
        sends = calls(("send", SEND, to(1, comm=5)), ("send", SEND, to(1, comm=9)))
        receives = calls(("recv", RECEIVE, to(0, comm=8)), ("recv", RECEIVE, to(0, comm=6)))
        self.assertEqual(self.pairs(sends, receives, comms=comms), [(0, 0, 0, 1, 1, 1), (0, 1, 1, 1, 0, 0)])

    def test_intercommunicators(self):
        """Ranks 0 and 1 talk to 2 and 3; the two sides number it by other parents."""
        to, sides = self.to, ([[0, 1]], [[2, 3]])
        comms = []
        for rank in range(4):
            own, other = sides if rank < 2 else sides[::-1]
            half = {"id": 5, "parent": 1, "call": "MPI_Comm_split", "order": 0, "rank": rank % 2, "members": own}
            between = {"id": 6 + rank, "parent": 5, "call": "MPI_Intercomm_create", "order": rank // 2}
            comms.append([half, between | {"rank": rank % 2, "members": own, "remote": other}])
        pairs = self.pairs(
            calls(("send", SEND, to(1, comm=6))),
            calls(("recv", RECEIVE, to(0, comm=7))),
            calls(("send", SEND, to(1, comm=8))),
            calls(("recv", RECEIVE, to(0, comm=9))),
            comms=comms,
        )
        self.assertEqual(pairs, [(0, 0, 0, 3, 0, 0), (2, 0, 0, 1, 0, 0)])

    def test_collectives_that_differ_are_left_out(self):
        one = calls(("barrier", COLLECTIVE), ("bcast", COLLECTIVE, {"peer": 0}), ("barrier", COLLECTIVE))
        two = calls(("barrier", COLLECTIVE), ("barrier", COLLECTIVE), ("barrier", COLLECTIVE))
        self.pairs(one, two)
        self.assertEqual(len(self.run_.collectives), 1)
        self.assertIn("MPI_Barrier and MPI_Bcast as collective 1 on MPI_COMM_WORLD", " ".join(self.run_.notes))

    def test_behind_a_gap_counting_begins_anew(self):
        to = self.to
        gap = (GAP, 0, 500, 600)
        last = row(made.KIND["send"], SEND, 700, 710, 1, 1, 0)
        sends = [*calls(*[("send", SEND, to(1))] * 2), row(*gap), last]
        receives = [*calls(("recv", RECEIVE, to(0))), row(*gap), row(made.KIND["recv"], RECEIVE, 700, 710, 1, 0, 0)]
        self.assertEqual(self.pairs(sends, receives), [(0, 0, 0, 1, 0, 0), (0, 3, 3, 1, 2, 2)])
        self.assertIn("recording was off", " ".join(self.run_.notes))

    def test_collectives_are_a_list(self):
        made.simulate(self.folder, [[("barrier", "world"), ("bcast", "world", 1, 8)]] * 2)
        some = reading.read(self.folder).collectives
        self.assertEqual([c.root for c in some], [-1, 1])
        self.assertEqual(len(some[:1]), 1)
        self.assertEqual(some[-1].name, "MPI_Bcast")
        with self.assertRaises(IndexError):
            some[2]


if __name__ == "__main__":
    print(f"seed {SEED}", file=sys.stderr)
    unittest.main()
