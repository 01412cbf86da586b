#!/usr/bin/env python3
"""Classes of waiting against programs whose truth is known, and what is made of them: causes, what was hidden, the
parallel efficiency, the matrix, the table of call sites.

waiting_test.py [how many drawn programs] [first seed] [unittest's words]; both are printed.
"""

import io
import json
import random
import sys
import tempfile
import unittest
from pathlib import Path

from support import drawn_seed, need_packages

need_packages("rich", "numpy")

import numpy as np  # noqa: E402
from headway.record import by_site, causes, classes, efficiency, hidden, matrix, model, waiting  # noqa: E402
from headway.record.model import RECEIVE, SEND, Run  # noqa: E402
from headway.record.cover import Cover  # noqa: E402
from headway.record.joining import ROW, Collectives  # noqa: E402
from headway.record.transfer_time import envelope  # noqa: E402
from rich.console import Console  # noqa: E402
from waiting_made import BETWEEN, CALL, ONE_HOST, Made, drawn  # noqa: E402

PROGRAMS, SEED = 100, drawn_seed()
WITHIN = 0.05


def parts_of(found, made):
    """Found and true ns by class, of all calls that may wait, in one order."""
    ours, truth, where = [], [], []
    for place in range(made.size):
        events, rows = found.of_rank(place)
        for event, row in zip(events.tolist(), rows.tolist()):
            ours.append(found.waits.parts[row])
            truth.append(made.truth.get((place, event), np.zeros(classes.COUNT)))
            where.append((place, event, row))
    return np.array(ours), np.array(truth), where


class Drawn(unittest.TestCase):
    def test_each_class_is_within_5_percent_of_its_own_truth(self):
        """Summed over calls without their signs: what is too much here may not hide what is too little there."""
        print(f"{PROGRAMS} programs from seed {SEED}", flush=True)
        seen = np.zeros(classes.COUNT)
        for seed in range(SEED, SEED + PROGRAMS):
            made = drawn(random.Random(seed))
            found = waiting.classify(made.run())
            ours, truth, where = parts_of(found, made)
            known = truth.any(axis=1)  # start and end of MPI have no truth
            off = np.abs(ours - truth)[known].sum(axis=0)
            whole = truth.sum()
            for c in classes.WAITING:
                allowed = WITHIN * truth[:, c].sum() + (0 if truth[:, c].any() else 2e-4 * whole)
                self.assertLessEqual(off[c], allowed, (seed, classes.NAMES[c], truth[:, c].sum()))
            seen += truth.sum(axis=0) > 0
            self.check_parts(found, seed)
            self.check_blame(found, made, where, seed)
        named = [c for c in classes.WAITING if c != classes.LOCK]
        if PROGRAMS >= 20:
            self.assertTrue((seen[named] >= PROGRAMS / 2).all(), seen)

    def check_parts(self, found, seed):
        w, line = found.waits, found.line
        self.assertGreaterEqual(w.parts.min(), 0, seed)
        np.testing.assert_array_equal(w.parts.sum(axis=1), (line.end - line.begin)[w.event], f"seed {seed}")
        for place in range(len(line.world)):
            first, last = line.first[place : place + 2]
            time = np.where(line.call[first:last], line.spent[first:last], 0)
            np.testing.assert_array_equal(found.dense(place).sum(axis=1), time, f"seed {seed}")

    def check_blame(self, found, made, where, seed):
        w, line = found.waits, found.line
        right = wrong = 0
        for place, event, row in where:
            wanted = made.blame.get((place, event))
            if wanted is None:
                continue
            late = w.late_event[row]
            named = int(line.place[late]) if late >= 0 else int(w.missing_place[row])
            right += named == wanted
            wrong += named != wanted
        self.assertGreater(right, 0, seed)
        self.assertLessEqual(wrong, WITHIN * right, seed)


def as_columns(many):
    """Collectives as the reader of recordings keeps them."""
    names = sorted({c.name for c in many})
    parts = [zip(*(column.tolist() for column in (c.ranks, c.events, c.ends))) for c in many]
    rows = [(0, c.comm, c.order, *row, names.index(c.name), c.root, 0) for c, part in zip(many, parts) for row in part]
    starts = np.cumsum([0] + [len(c.ranks) for c in many])
    return Collectives(np.array(rows, ROW), starts, np.array([c.root for c in many]), names)


class Same(unittest.TestCase):
    def test_collectives_as_columns(self):
        run = drawn(random.Random(21)).run()
        first = waiting.classify(run)
        run.collectives = as_columns(run.collectives)
        second = waiting.classify(run)
        np.testing.assert_array_equal(first.waits.parts, second.waits.parts)
        for one, other in zip(*(matrix.matrix(f).__dict__.values() for f in (first, second))):
            np.testing.assert_array_equal(one, other)


class One(unittest.TestCase):
    """What drawn programs do not have."""

    def setUp(self):
        self.made = Made(random.Random(1), size=2, noise=0)
        for _ in range(30):
            self.made.together()
            self.made.late_sender()
        self.made.together()

    def parts(self, rank, event):
        found = waiting.classify(self.made.run())
        events, rows = found.of_rank(rank)
        return found, {
            classes.NAMES[c]: int(ns)
            for c, ns in enumerate(found.waits.parts[rows[list(events).index(event)]].tolist())
            if ns
        }

    def test_what_moved_while_the_sender_was_away_did_not_need_it(self):
        """It sends, computes and never comes back before the receive is complete: the wire was slow."""
        made, size = self.made, 1 << 16
        sent = made.isend(0, 1, size)
        made.compute(0, 900_000)
        came = made.put(1, "MPI_Recv", 400_000, flags=RECEIVE, peer=0, bytes=size)
        left = made.put(0, "MPI_Wait", flags=SEND, request=made.request[0])
        made.message(0, 1, size, sent, left, came, came)
        self.assertEqual(self.parts(1, came)[1], {"transfer": 400_000})

    def test_another_message_of_the_same_wait_lacked_progress(self):
        """Rank 1 waits for both directions; its own send came through, the receive needs rank 0 in MPI."""
        made, size = self.made, 1 << 16
        need = int(ONE_HOST[0] + ONE_HOST[1] * size)
        posted, sent = made.irecv(1, 0, size), made.isend(1, 0, size)
        theirs, asked = made.isend(0, 1, size), made.irecv(0, 1, size)
        made.compute(0, 300_000)
        end = made.now[0] + need
        left = made.until(0, "MPI_Waitall", end, tag=2)
        came = made.until(1, "MPI_Waitall", end, tag=2)
        made.message(0, 1, size, theirs, left, posted, came)
        made.message(1, 0, size, sent, came, asked, left)
        found, parts = self.parts(1, came)
        self.assertAlmostEqual(parts["missing progress"], 300_000, delta=1000)

    def test_another_sender_of_the_same_wait_lacked_progress(self):
        """Rank 2 sends late but all goes well; the other message moves when rank 0 is back, 200 us later."""
        self.made = made = Made(random.Random(1), size=3, noise=0)
        for _ in range(60):
            made.together()
            made.late_sender()
        made.together()
        size, t = 1 << 16, made.now[0]
        need = int(ONE_HOST[0] + ONE_HOST[1] * size)
        posted = {s: made.irecv(1, s, size) for s in (0, 2)}
        made.compute(2, 100_000)
        other = made.put(2, "MPI_Send", need, flags=SEND, peer=1, bytes=size)
        sent = made.isend(0, 1, size)
        made.compute(0, 300_000)
        left = made.put(0, "MPI_Wait", need, flags=SEND, request=made.request[0])
        begin = made.now[1]
        came = made.until(1, "MPI_Waitall", made.now[0], tag=2)
        made.message(0, 1, size, sent, left, posted[0], came)
        made.message(2, 1, size, other, other, posted[2], came)
        found, parts = self.parts(1, came)
        self.assertAlmostEqual(parts["late sender"], t + 100_000 - begin, delta=2)
        self.assertAlmostEqual(parts["transfer"], need, delta=500)
        self.assertAlmostEqual(parts["missing progress"], 200_000, delta=500)
        row = list(found.waits.event).index(found.line.first[1] + came)
        self.assertEqual(found.waits.missing_place[row], 0)

    def test_what_transfers_usually_take_longer_is_no_missing_progress(self):
        """Transfers of this run take up to 20 % longer than others, and this one 10 %; both sides were away for 8 us."""
        for took, missing in ((1.1, 0), (1.6, 8_000)):
            self.made = made = Made(random.Random(1), size=2, noise=0.2)
            for _ in range(60):
                made.together()
                made.late_sender()
            made.together()
            size, t = 1 << 18, made.now[0]
            need = int(took * (ONE_HOST[0] + ONE_HOST[1] * size))
            sent, posted = made.isend(0, 1, size), made.irecv(1, 0, size)
            for rank in (0, 1):
                made.compute(rank, 8_000)
            left = made.until(0, "MPI_Wait", t + need, flags=SEND, request=made.request[0])
            came = made.until(1, "MPI_Wait", t + need, flags=RECEIVE, request=made.request[1])
            made.message(0, 1, size, sent, left, posted, came)
            self.assertAlmostEqual(self.parts(1, came)[1].get("missing progress", 0), missing, delta=200)

    def test_a_copied_send_is_transfer(self):
        """It took long, and the receiver was not there; but it did not wait for that."""
        made = self.made
        sent = made.put(0, "MPI_Send", 60_000, flags=SEND, peer=1, bytes=128)
        for ns in (30_000, 70_000):
            made.compute(1, ns)
            made.put(1, "MPI_Test")
        came = made.put(1, "MPI_Recv", 300, flags=RECEIVE, peer=0, bytes=128)
        made.message(0, 1, 128, sent, sent, came, came)
        self.assertEqual(self.parts(0, sent)[1], {"transfer": 60_000})

    def test_what_was_complete_is_not_waited_for(self):
        made = self.made
        sent, posted = made.isend(0, 1, 1000), made.irecv(1, 0, 1000)
        left = made.put(0, "MPI_Wait", flags=SEND, request=made.request[0])
        made.compute(1, 100_000)
        came = made.put(1, "MPI_Wait", flags=RECEIVE, request=made.request[1])
        made.message(0, 1, 1000, sent, left, posted, came)
        self.assertEqual(self.parts(1, came)[1], {"in MPI": CALL})

    def test_a_core_taken_from_one_that_polls(self):
        """The sender is late by 100 us; of those the receiver had no core for 40 us. The transfer took its time."""
        made, size = self.made, 1 << 16
        t, need = made.now[1], int(ONE_HOST[0] + ONE_HOST[1] * size)
        made.compute(0, 100_000)
        sent = made.put(0, "MPI_Send", need, flags=SEND, peer=1, bytes=size)
        came = made.put(1, "MPI_Recv", 100_000 + need, flags=RECEIVE, peer=0, bytes=size)
        made.core_taken(1, t, made.now[1], 40_000)
        made.message(0, 1, size, sent, sent, came, came)
        parts = self.parts(1, came)[1]
        self.assertEqual(parts["core taken"], 40_000)
        self.assertAlmostEqual(parts["late sender"], 60_000, delta=100)
        self.assertAlmostEqual(parts["transfer"], need, delta=100)

    def test_a_lock(self):
        """Nothing explains why the receive took longer, but another thread was in a call that ended then."""
        made, size = self.made, 1024
        need = int(ONE_HOST[0] + ONE_HOST[1] * size)
        t = made.now[1]
        sent = made.put(0, "MPI_Send", need, flags=SEND, peer=1, bytes=size)
        made.put(1, "MPI_Isend", 80_000, thread=1, flags=SEND, peer=0, bytes=8)
        made.now[1] = t
        came = made.put(1, "MPI_Recv", 80_100, flags=RECEIVE, peer=0, bytes=size)
        made.message(0, 1, size, sent, sent, came, came)
        found, parts = self.parts(1, came)
        self.assertAlmostEqual(parts["lock"], 80_100 - need, delta=200)

    def test_a_thread_that_waits_elsewhere_holds_no_lock(self):
        made, size = self.made, 1024
        t = made.now[1]
        need = int(ONE_HOST[0] + ONE_HOST[1] * size)
        sent = made.put(0, "MPI_Send", need, flags=SEND, peer=1, bytes=size)
        came = made.put(1, "MPI_Recv", 80_000, flags=RECEIVE, peer=0, bytes=size)
        made.now[1] = t
        made.put(1, "MPI_Recv", 900_000, thread=1, flags=RECEIVE, peer=0, bytes=8)
        made.message(0, 1, size, sent, sent, came, came)
        self.assertEqual(self.parts(1, came)[1], {"transfer": 80_000})

    def test_progress_is_not_missing_while_tests_are_frequent(self):
        """A row of tests that found nothing, every 20 us, in which the data came slowly."""
        made, size = self.made, 1 << 16
        posted, sent = made.irecv(1, 0, size), made.isend(0, 1, size)
        made.put(1, "MPI_Test", 400_000, flags=32, tag=20, bytes=4_000)
        came = made.put(1, "MPI_Wait", 50_000, flags=RECEIVE, request=made.request[1])
        left = made.until(0, "MPI_Wait", made.now[1], flags=SEND, request=made.request[0])
        made.message(0, 1, size, sent, left, posted, came)
        self.assertEqual(self.parts(1, came)[1], {"transfer": 50_000})

    def test_who_comes_late_to_the_start(self):
        made = Made(random.Random(1), size=3)
        for rank, begin in enumerate((0, 40_000, 10_000)):
            kind, _, _, fields = made.events[rank][0]
            made.events[rank][0] = kind, begin, 50_000, fields
        made.now = [50_000] * 3
        found = waiting.classify(made.run())
        late = found.waits.parts[[found.of_rank(rank)[1][0] for rank in range(3)]]
        self.assertEqual(late[:, classes.LATE_PARTICIPANT].tolist(), [40_000, 0, 30_000])
        self.assertEqual(late[:, classes.IN_MPI].tolist(), [10_000] * 3, "MPI's own")

    def test_too_few_messages_are_a_note(self):
        made = Made(random.Random(3), size=2)
        made.together()
        made.late_sender()
        notes = waiting.classify(made.run()).notes
        self.assertEqual(len(notes), 1)
        self.assertIn("too few", notes[0])

    def test_nothing_was_recorded(self):
        found = waiting.classify(Run("nothing", []))
        self.assertEqual(found.waits.parts.sum(), 0)
        by_site.as_json(by_site.report(found))

    def test_indices_that_do_not_exist(self):
        """Messages and collectives of ranks and events that are not there do not count."""
        run = self.made.run()
        truth = waiting.classify(run).total()
        run.messages = np.append(run.messages, run.messages[:3])
        run.messages["source"][-1], run.messages["came"][-2], run.messages["sent"][-3] = 99, 10**9, -1
        np.testing.assert_array_equal(waiting.classify(run).total(), truth)


class TransferTime(unittest.TestCase):
    def test_the_line_is_found(self):
        draw = np.random.default_rng(5)
        size = 2 ** draw.integers(4, 22, 2000)
        took = (3000 + 0.25 * size) * (1 + np.maximum(0, draw.normal(0.02, 0.3, 2000)))
        latency, per_byte = envelope(size, took.astype(np.int64))
        self.assertAlmostEqual(latency, 3000, delta=60)
        self.assertAlmostEqual(per_byte, 0.25, delta=0.005)

    def test_one_size_and_none(self):
        self.assertEqual(envelope(np.array([8] * 9), np.arange(100, 109)), (100, 0))
        self.assertEqual(envelope(np.array([100_000] * 9), np.arange(50_000, 50_009))[0], 0)
        self.assertEqual(envelope(np.zeros(0), np.zeros(0)), (0, 0))

    def test_both_lines_are_learned(self):
        made = Made(random.Random(8), size=4, hosts=2, noise=0)
        for _ in range(150):
            made.together()
            made.late_receiver()
            made.together()
            made.copied()  # tells nothing
        for line, (latency, per_byte) in zip(waiting.classify(made.run()).transfer.lines, (ONE_HOST, BETWEEN)):
            self.assertAlmostEqual(line.latency, latency, delta=0.02 * latency + 2)
            self.assertAlmostEqual(line.per_byte, per_byte, delta=0.02 * per_byte)


class Covers(unittest.TestCase):
    def test_against_single_nanoseconds(self):
        draw = np.random.default_rng(11)
        for _ in range(10):
            begin = draw.integers(0, 180, 24)
            end = np.minimum(begin + draw.integers(0, 12, 24), 199)
            lane = draw.integers(0, 3, 24)
            so = np.zeros((3, 201), bool)
            for place, first, last in zip(lane, begin, end):
                so[place, first:last] = True
            cover = Cover(lane, begin, end, 201)
            a, length = draw.integers(0, 199, 50), draw.integers(0, 60, 50)
            b, one, other = np.minimum(a + length, 199), draw.integers(0, 3, 50), draw.integers(0, 3, 50)
            wanted = [int(so[p, x:y].sum()) for p, x, y in zip(one, a, b)]
            self.assertEqual(cover.within(one, a, b).tolist(), wanted)
            wanted = [int((~so[p, x:y] & ~so[q, x:y]).sum()) for p, q, x, y in zip(one, other, a, b)]
            self.assertEqual(cover.neither(one, other, a, b).tolist(), wanted)


class CausesOf(unittest.TestCase):
    def test_the_stretch_and_the_others(self):
        """Four ranks compute between two barriers, rank 2 longer; what is posted in between explains nothing."""
        made = Made(random.Random(2), noise=0)
        for _ in range(5):
            made.together()
            t = made.now[0]
            for rank in range(4):
                made.compute(rank, 160_000 if rank == 2 else 100_000)
                made.put(rank, "MPI_Test", site="test.c")
                made.compute(rank, 40_000)
            end = max(made.now) + 1000
            made._collective("MPI_Barrier", [end] * 4)
            self.assertEqual(end, t + 201_000 + CALL)
            made.together()
        late, missing = causes.causes(waiting.classify(made.run()))
        late_ones = late.waited == 60_000
        self.assertEqual(late_ones.sum(), 15)
        self.assertEqual(set(late.rank[late_ones].tolist()), {2})
        self.assertEqual(len(missing.row), 0)
        later = late_ones & (late.length < 220_000)  # not the first, before which is only the start
        np.testing.assert_allclose(late.length[later] - late.others[later], 60_000, atol=1)
        self.assertGreaterEqual(later.sum(), 12)

    def test_who_only_passes_it_on_is_not_the_cause(self):
        """Rank 0 computes; 1 to 3 send on what they get, at once."""
        made = Made(random.Random(2), noise=0)
        for _ in range(30):
            made.together()
            made.compute(0, 70_000)
            for s in range(3):
                if s:
                    made.compute(s, 2_000)
                sent = made.put(s, "MPI_Send", 600, flags=SEND, peer=s + 1, bytes=1000)
                came = made.until(s + 1, "MPI_Recv", made.now[s], flags=RECEIVE, peer=s, bytes=1000)
                made.message(s, s + 1, 1000, sent, sent, came, came)
        found = waiting.classify(made.run())
        late, _ = causes.causes(found)
        some = late.waited > 60_000
        self.assertEqual(some.sum(), 90)
        self.assertEqual(set(late.rank[some].tolist()), {0})
        through = found.line.place[found.waits.event[late.row]] - 1
        self.assertEqual(late.through[some].tolist(), through[some].tolist())


    def test_who_waited_before_and_then_computes_is_the_cause(self):
        """Rank 1 waits for rank 0 for long; when that is over rank 2 begins to wait for rank 1, which computes."""
        made = Made(random.Random(2), size=3, noise=0)
        for _ in range(30):
            made.together()
            for s, ns in ((0, 900_000), (1, 70_000)):
                made.compute(s, ns)
                made.now[s + 1] = made.now[0] if s else made.now[s + 1]
                sent = made.put(s, "MPI_Send", 600, flags=SEND, peer=s + 1, bytes=1000)
                came = made.until(s + 1, "MPI_Recv", made.now[s], flags=RECEIVE, peer=s, bytes=1000)
                made.message(s, s + 1, 1000, sent, sent, came, came)
        found = waiting.classify(made.run())
        late, _ = causes.causes(found)
        of_last = found.line.place[found.waits.event[late.row]] == 2
        self.assertEqual(set(late.rank[of_last].tolist()), {1})
        self.assertEqual(late.through.max(), 0)


class HiddenBounds(unittest.TestCase):
    def made(self, compute, moves_meanwhile):
        """Irecv, Isend, both compute, both wait; the data move meanwhile, or in the waits."""
        made = Made(random.Random(4), size=2, noise=0)
        for _ in range(30):
            made.together()
            made.late_receiver()
        first = len(made.messages)
        size = 1 << 16
        need = int(ONE_HOST[0] + ONE_HOST[1] * size)
        for _ in range(10):
            made.together()
            sent, posted = made.isend(0, 1, size), made.irecv(1, 0, size)
            t = made.now[0]
            for rank in (0, 1):
                made.compute(rank, compute)
            end = max(made.now[0] + 100, t + need if moves_meanwhile else made.now[0] + need)
            left = made.until(0, "MPI_Wait", end, flags=SEND, request=made.request[0])
            came = made.until(1, "MPI_Wait", end, flags=RECEIVE, request=made.request[1])
            made.message(0, 1, size, sent, left, posted, came)
        found = waiting.classify(made.run())
        _, needs, least, most = (c.reshape(2, -1)[:, first:] for c in hidden.bounds(found))
        self.assertTrue((least <= most).all())
        return need, needs, least, most

    def test_all_is_hidden(self):
        need, needs, least, most = self.made(50_000, True)
        np.testing.assert_allclose(needs, need, rtol=0.02)
        np.testing.assert_allclose(least, need, rtol=0.06)
        np.testing.assert_allclose(most, need, rtol=0.02)

    def test_half_is_hidden(self):
        need, _, least, most = self.made(3_000, True)
        for bound in (least, most):
            np.testing.assert_allclose(bound, 3_000, atol=2 * CALL)

    def test_nothing_moved_meanwhile(self):
        """Both could have been: it took as long, and there was computation. The lower bound says nothing."""
        need, _, least, most = self.made(50_000, False)
        self.assertEqual(least.max(), 0)
        np.testing.assert_allclose(most, need, rtol=0.02)

    def test_before_the_posting_only_what_needs_no_receiver_can_move(self):
        """Both sizes are sent long before their receives are posted; the small one was let go before."""
        made = Made(random.Random(4), size=2, noise=0)
        for _ in range(30):
            made.together()
            made.late_sender()
        made.together()
        for size, waits in ((100, False), (1 << 16, True)):
            sent, need = made.isend(0, 1, size), int(ONE_HOST[0] + ONE_HOST[1] * size)
            left = None if waits else made.put(0, "MPI_Wait", flags=SEND, request=made.request[0])
            made.compute(1, 500_000)
            made.compute(0, 400_000)
            came = made.put(1, "MPI_Recv", need, flags=RECEIVE, peer=0, bytes=size)
            if waits:
                left = made.until(0, "MPI_Wait", made.now[1], flags=SEND, request=made.request[0])
            made.message(0, 1, size, sent, left, came, came)
            made.together()
        _, need, least, most = (c.reshape(2, -1)[:, -2:] for c in hidden.bounds(waiting.classify(made.run())))
        self.assertEqual(most[1].tolist(), [need[1][0], 0])
        self.assertLessEqual(least[1][1], 0)

    def test_blocking_calls_hide_nothing(self):
        made = Made(random.Random(4), size=2, noise=0)
        for _ in range(30):
            made.together()
            made.congestion()
        self.assertEqual(hidden.hidden(waiting.classify(made.run())).share, (0, 0))

    def test_by_site_adds_up(self):
        found = waiting.classify(drawn(random.Random(6)).run())
        _, need, least, most = hidden.bounds(found)
        of = hidden.hidden(found)
        self.assertEqual([c.sum() for c in (of.need, of.least, of.most)], [c.sum() for c in (need, least, most)])
        self.assertLess(0, of.share[0])
        self.assertLess(of.share[0], of.share[1])


class Efficiencies(unittest.TestCase):
    def made(self, work, wire):
        """Rounds of work by rank, each before a barrier that takes `wire`."""
        made = Made(random.Random(9), size=len(work[0]), noise=0)
        for shares in work:
            for rank, ns in enumerate(shares):
                made.compute(rank, ns)
            made._collective("MPI_Barrier", [max(made.now) + wire] * made.size)
        made.together = lambda: None  # nothing behind the last
        return efficiency.efficiency(waiting.classify(made.run()))

    def test_balance(self):
        e = self.made([(100_000, 50_000)] * 10, 0)
        self.assertAlmostEqual(e.balance, 0.75, places=3)
        self.assertAlmostEqual(e.serialisation, 1, places=3)
        self.assertAlmostEqual(e.transfer, 1, places=3)

    def test_serialisation(self):
        """Shares are equal, but never at once."""
        e = self.made([(100_000, 50_000), (50_000, 100_000)] * 5, 0)
        self.assertAlmostEqual(e.balance, 1, places=3)
        self.assertAlmostEqual(e.serialisation, 0.75, places=3)
        self.assertAlmostEqual(e.transfer, 1, places=3)

    def test_transfer(self):
        e = self.made([(80_000, 80_000)] * 10, 20_000)
        self.assertAlmostEqual(e.balance, 1, places=3)
        self.assertAlmostEqual(e.serialisation, 1, places=3)
        self.assertAlmostEqual(e.transfer, 0.8, places=3)

    def test_a_chain_of_messages(self):
        """Each computes when the one before has sent: two ranks, never at once; a wire of 10 us in between."""
        made = Made(random.Random(9), size=2, noise=0)
        for _ in range(10):
            for s, r in ((0, 1), (1, 0)):
                made.compute(s, 90_000)
                sent = made.put(s, "MPI_Send", 10_000, flags=SEND, peer=r, bytes=100_000)
                came = made.until(r, "MPI_Recv", made.now[s], flags=RECEIVE, peer=s, bytes=100_000)
                made.message(s, r, 100_000, sent, sent, came, came)
        made.together = lambda: None
        e = efficiency.efficiency(waiting.classify(made.run()))
        self.assertAlmostEqual(e.transfer, 0.9, places=3)
        self.assertAlmostEqual(e.serialisation, 0.5, places=3)
        self.assertAlmostEqual(e.balance, 1, places=3)

    def test_the_product(self):
        for seed in range(5):
            e = efficiency.efficiency(waiting.classify(drawn(random.Random(seed)).run()))
            self.assertAlmostEqual(e.balance * e.serialisation * e.transfer, e.parallel, places=6)
            self.assertLessEqual(e.useful.max(), e.ideal, "the ideal run holds what each rank computes")
            self.assertLess(e.ideal, e.time)


class Tables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = drawn(random.Random(12), steps=80)
        cls.found = waiting.classify(cls.made.run())
        cls.report = by_site.report(cls.found)

    def test_the_matrix(self):
        m = matrix.matrix(self.found)
        run = self.found.line.run
        self.assertEqual(m.messages.sum(), len(run.messages))
        self.assertEqual(m.bytes.sum(), run.messages["bytes"].sum())
        pair = m.dense(m.bytes, self.made.size)
        for source, target in ((0, 1), (1, 0)):
            here = (run.messages["source"] == source) & (run.messages["target"] == target)
            self.assertEqual(pair[source, target], run.messages["bytes"][here].sum())
        self.assertEqual(m.comm_waiting.sum(), m.waiting.sum())
        self.assertEqual(m.comm_collectives.tolist(), [len(run.collectives)])
        late = sum(row[classes.LATE_SENDER] for row in self.made.truth.values())
        self.assertGreater(m.waiting.sum(), late)
        with tempfile.TemporaryDirectory() as folder:
            files = Path(folder, "pairs.csv"), Path(folder, "comms.csv")
            m.write_pairs(files[0])
            m.write_comms(files[1])
            lines = files[0].read_text().splitlines()
            self.assertEqual(lines[0], "source,target,messages,bytes,waiting_ns")
            self.assertEqual(sum(int(row.split(",")[4]) for row in lines[1:]), m.waiting.sum())
            self.assertIn("MPI_COMM_WORLD,", files[1].read_text())

    def test_json(self):
        told = json.loads(json.dumps(by_site.as_json(self.report)))
        self.assertEqual((told["format"], told["version"]), ("headway-waiting", 1))
        sites = told["sites"]
        blocked = [site["blocked"] for site in sites]
        self.assertEqual(blocked, sorted(blocked, reverse=True))
        for name, ns in told["classes"].items():
            self.assertEqual(sum(site["classes"][name] for site in sites), ns)
        self.assertEqual(sum(site["count"] for site in sites), self.found.line.call.sum())
        self.assertEqual(sum(site["time"] for site in sites), self.found.total().sum())
        barriers = [s for s in sites if s["class"] == "late participant"]
        self.assertTrue(barriers and all(s["causes"] for s in barriers))
        for site in sites:
            for cause in site["causes"]:
                self.assertLessEqual(cause["ns"], site["blocked"])

    def test_words(self):
        out = io.StringIO()
        Console(file=out, width=160).print(by_site.words(self.report))
        text = out.getvalue()
        for word in ("solver:", "waiting ", "hidden behind", "parallel efficiency", "because", "late participant"):
            self.assertIn(word, text)

    def test_cores_that_were_missing_are_told_with_their_host(self):
        found = by_site.report(waiting.classify(self.made.run()))
        ranks, waited = found.waiting.line.run.ranks, found.waiting.waited
        for share, cores, words in (
            (0.5, "0-1", r"for 50 % of all rank time .* had no core: \S+ has 2 cores for \d+ ranks. Start fewer there"),
            (0.5, "0", "has 1 core for"),
            (0.5, "0-63", "Give each rank a core of its own"),
            (0.5, "", "Give each rank a core of its own"),
            (0.01, "0", None),
        ):
            waited[classes.NO_CORE] = share * found.whole
            for rank in ranks:
                rank.header["cores"] = cores
            told = by_site.crowded(found)
            if words is None:
                self.assertEqual(told, [])
            else:
                self.assertRegex(told[0], words)

    def test_time_in_calls_that_did_not_wait_is_told(self):
        found = by_site.report(waiting.classify(self.made.run()))
        self.assertEqual(by_site.busy(found), [])
        row = found.rows[-1]
        row.time += found.whole // 4
        row.count, row.call = 1000, "MPI_Iprobe"
        self.assertRegex(
            by_site.busy(found)[0], r"in MPI without waiting 2[5-9] %: \S+ calls in all; \d+ % of it is MPI_Iprobe at \S+.*, 1,000 calls of \d"
        )
        row.call = "MPI_Init"
        self.assertRegex(by_site.busy(found)[0], r"starting and ending MPI 2[5-9] %: \S+ .?s a rank")
        self.assertEqual(len(by_site.busy(found)), 1)

    def test_lists_of_cores(self):
        for text, wanted in (("0-2,5", {0, 1, 2, 5}), ("", set()), ("3-1", set()), ("0-99999999", set()), ("x", set())):
            self.assertEqual(model.cores({"cores": text}), wanted, text)
        self.assertEqual(model.cores({}), set())

    def test_a_call_waits_if_most_of_its_time_is_waiting(self):
        """A long call that waited a little is no wait: its whole length would stand among the longest."""
        found = waiting.classify(self.made.run())
        some = np.flatnonzero(found.waits.parts[:, classes.LATE_PARTICIPANT] > 0)
        self.assertGreater(len(some), 1)
        row = found.waits.parts[some[0]]
        for in_mpi, wanted in ((0, classes.LATE_PARTICIPANT), (1000 * row.sum(), classes.IN_MPI)):
            row[classes.IN_MPI] = in_mpi
            self.assertEqual(waiting.largest(found.line, found.waits)[found.waits.event[some[0]]], wanted)

    def test_hostile_names_do_nothing(self):
        run = self.made.run()
        for rank in run.ranks:
            rank.sites = {n: type(s)("", 0, "/a/\x1b[2J[red]x", s.line, "\u202emain[/]") for n, s in rank.sites.items()}
        out = io.StringIO()
        Console(file=out, width=160).print(by_site.words(by_site.report(waiting.classify(run))))
        self.assertNotIn("\x1b", out.getvalue())
        self.assertNotIn("\u202e", out.getvalue())
        self.assertIn("[red]x", out.getvalue())


if __name__ == "__main__":
    words = sys.argv[1:]
    if words and words[0].isdigit():
        PROGRAMS = int(words.pop(0))
        if words and words[0].isdigit():
            SEED = int(words.pop(0))
    unittest.main(verbosity=1, argv=[sys.argv[0], *words])
