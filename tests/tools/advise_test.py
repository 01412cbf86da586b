#!/usr/bin/env python3
"""Advice against simulated programs with one known fault each (advise_made): site, kind, and what the changed program
really gains. advise_test.py [first seed [programs of each fault]]; the seed is printed."""

import json
import random
import sys
import tempfile
import unittest

from support import need_packages

need_packages("numpy", "rich")

import advise_made  # noqa: E402
import record_made  # noqa: E402
from headway.record import advise, edits, models, program, reading, replay, waiting  # noqa: E402
from headway.record.model import Run  # noqa: E402

SEED, COUNT = random.randrange(1 << 30), 3
KEPT = 0.8  # of a promise, what the changed program must gain
JITTER = 0.02


def simulated(programs, progress, seed, **more):
    """What was read of it, and its true time."""
    with tempfile.TemporaryDirectory() as folder:
        truth = record_made.simulate(folder, programs, seed=seed, progress=progress, jitter=JITTER, **more)
        run = reading.read(folder)
    return run, max(int(times[-1][1]) for times in truth.times)


def advised(made, seed):
    run, time = simulated(made.programs, made.progress, seed)
    return advise.advise(waiting.classify(run)), time


def number(found, key):
    """The call site as the program named it."""
    return found.program.world.site(key).offset // 16


def closest(fits):
    """By how much the best model misses, by what moves the data."""
    return {moves: min((f.miss for f in fits if f.model.moves == moves), default=1) for moves in range(4)}


class Faults(unittest.TestCase):
    def right(self, fault):
        """Of COUNT programs: those whose advice names the fault first; each promise must be kept."""
        right, wrong = 0, []
        for seed in range(SEED, SEED + COUNT):
            made = advise_made.drawn(fault, seed)
            found, time = advised(made, seed)
            self.assertEqual(found.why, "", (seed, [(f.miss, f.model) for f in found.fits]))
            first = found.advice[0] if found.advice else None
            named = first and (first.change.kind, number(found, first.change.key))
            if named not in ((made.kind, made.site), made.also or None) or first is None:
                wrong.append((seed, None if first is None else advise.sentence(found, first)))
                continue
            right += 1
            better = made.better(first.change.kind, first.change.count)
            gain = time - simulated(better, made.progress, seed)[1]
            self.assertGreaterEqual(gain, KEPT * first.least, (seed, advise.sentence(found, first)))
        self.assertGreaterEqual(right, 0.9 * COUNT - 1e-9, wrong)

    def test_put_off(self):
        self.right(advise_made.put_off)

    def test_tests(self):
        self.right(advise_made.test)

    def test_posted_early(self):
        self.right(advise_made.early)

    def test_pair(self):
        self.right(advise_made.pair)


class NoFault(unittest.TestCase):
    def test_silent(self):
        for seed in range(SEED, SEED + 2 * COUNT):
            made = advise_made.drawn(advise_made.without, seed)
            found, _ = advised(made, seed)
            self.assertEqual([advise.sentence(found, one) for one in found.advice], [], seed)
            self.assertNotIn(edits.BALANCE, [one.change.kind for one in found.told], seed)

    def test_unequal_work_is_told_and_nothing_promised(self):
        for seed in range(SEED, SEED + COUNT):
            made, late = advise_made.drawn(advise_made.unequal, seed)
            found, _ = advised(made, seed)
            self.assertEqual([advise.sentence(found, one) for one in found.advice], [], seed)
            told = [one.change for one in found.told if one.change.kind == edits.BALANCE]
            self.assertEqual([(one.rank, number(found, one.key)) for one in told], [(late, made.site)], seed)


class Models(unittest.TestCase):
    """Replays of unchanged programs."""

    def fits(self, fault, progress, seed, **more):
        made = advise_made.drawn(fault, seed)
        found = waiting.classify(simulated(made.programs, progress, seed, **more)[0])
        return models.fit(program.program(found), models.models(found))

    def test_the_true_one_fits_and_others_do_not(self):
        for seed in range(SEED, SEED + COUNT):
            for fault in (advise_made.put_off, advise_made.test):
                for progress, true, others in (
                    ("calls", replay.BEGUN, (replay.ALWAYS,)),
                    ("thread", replay.ALWAYS, (replay.BEGUN, replay.ANY)),
                ):
                    some = self.fits(fault, progress, seed)
                    best = closest(some)
                    self.assertLessEqual(best[true], models.FITS, (seed, fault.__name__, progress, best))
                    for other in others:
                        if fault is advise_made.test:  # the other one's transfers are too short for more
                            self.assertGreater(best[other], models.FITS, (seed, progress, best))

    def test_a_receiver_in_another_call(self):
        for seed in range(SEED, SEED + COUNT):
            for progress, true, others in (
                ("matching", replay.MATCHING, (replay.ANY, replay.BEGUN, replay.ALWAYS)),
                ("calls", replay.BEGUN, (replay.MATCHING,)),
            ):
                some = self.fits(advise_made.elsewhere, progress, seed)
                best = closest(some)
                self.assertLessEqual(best[true], models.FITS, (seed, progress, best))
                for other in others:
                    self.assertGreater(best[other], models.FITS, (seed, progress, best))

    def test_copied_up_to_so_many_bytes_together(self):
        for seed in range(SEED, SEED + COUNT):
            for together in (64 << 10, 1 << 30):
                some = self.fits(advise_made.bursts, "calls", seed, together=together)
                limited = [f.miss for f in some if f.model.together >= 0]
                free = [f.miss for f in some if f.model.together < 0]
                if together == 64 << 10:
                    self.assertLessEqual(min(limited, default=1), models.FITS, (seed, free))
                    self.assertGreater(min(free), models.FITS, (seed, limited))
                else:
                    self.assertLessEqual(min(free), models.FITS, seed)
                    self.assertEqual(limited, [], "the run shows that there is none")

    def test_two_hosts(self):
        clocks = [record_made.Clock(), record_made.Clock(offset=3_000_000, drift=2e-5)]
        for seed in range(SEED, SEED + COUNT):
            some = self.fits(advise_made.test, "calls", seed, clocks=clocks)
            self.assertLessEqual(min(f.miss for f in some if f.model.moves == replay.BEGUN), models.FITS, seed)

    def test_wires_that_carry_one_message_at_a_time(self):
        for seed in range(SEED, SEED + COUNT):
            for wires in (False, True):
                clocks = [record_made.Clock(), record_made.Clock()]
                some = self.fits(advise_made.crowded, "calls", seed, clocks=clocks, wires=wires)
                best = {w: min(f.miss for f in some if f.model.wires == w) for w in (False, True)}
                self.assertLessEqual(best[wires], models.FITS, (seed, best))
                self.assertGreater(best[not wires], models.FITS, (seed, best))

    def test_programs_that_test(self):
        """Rows of tests in vain are calls of their own, or one, and what they take is learned."""
        for seed in range(SEED, SEED + COUNT):
            for count in (3, 20):
                made = advise_made.drawn(advise_made.test, seed)
                found = waiting.classify(simulated(made.better("test", count), "calls", seed)[0])
                built = program.program(found)
                some = models.fit(built, models.models(found))
                self.assertLessEqual(closest(some)[replay.BEGUN], models.FITS, (seed, count, closest(some)))
                tests = sum(family == "test" for family in built.family)
                rounds = sum(name == "compute" for name, *_ in made.programs[2])
                self.assertGreater(tests, (count == 3) * rounds, (seed, count))
                self.assertAlmostEqual(built.world.test, record_made.OVERHEAD, delta=2, msg=(seed, count))

    def test_no_promise_where_none_fits(self):
        made = advise_made.drawn(advise_made.put_off, SEED)
        run, _ = simulated(made.programs, "calls", SEED)
        draw = random.Random(SEED)
        for rank in run.ranks:  # as if something else had held some calls up
            late = 0
            for at in range(len(rank.begin)):
                rank.begin[at] += late
                if rank.families[min(rank.events["kind"][at], len(rank.families) - 1)] == "wait":
                    late += draw.randrange(400_000)
                rank.end[at] += late
        found = advise.advise(waiting.classify(run))
        self.assertEqual(found.advice + found.told, [])
        self.assertRegex(found.why, r"misses by \d+\.\d %|hangs")
        self.assertFalse(advise.as_json(found)["promises"])


class Known(unittest.TestCase):
    """Programs that do not tell themselves how their data move."""

    def setUp(self):
        self.whole = advise_made.whole
        self.addCleanup(setattr, advise_made, "whole", self.whole)
        advise_made.whole = lambda *words: self.whole(*words, learned=False)

    def test_silent_until_it_is_known(self):
        for seed in range(SEED, SEED + COUNT):
            for fault, moves in ((advise_made.early, replay.ALWAYS), (advise_made.test, replay.BEGUN)):
                made = advise_made.drawn(fault, seed)
                made.progress = "calls" if moves == replay.BEGUN else made.progress
                run, time = simulated(made.programs, made.progress, seed)
                found = waiting.classify(run)
                self.assertEqual(advise.advise(found).advice, [], (seed, fault.__name__))
                known = advise.advise(found, models.Known((moves,), record_made.EAGER))
                self.assertTrue(known.advice, (seed, fault.__name__, [(f.miss, f.model) for f in known.fits]))
                first = known.advice[0]
                self.assertEqual(first.change.kind, made.kind, seed)
                gain = time - simulated(made.better(made.kind, first.change.count), made.progress, seed)[1]
                self.assertGreaterEqual(gain, KEPT * first.least, seed)

    def test_waits_are_put_off_all_the_same(self):
        for seed in range(SEED, SEED + COUNT):
            made = advise_made.drawn(advise_made.put_off, seed)
            found, time = advised(made, seed)
            for first in found.advice[:1]:
                named = first.change.kind, number(found, first.change.key)
                self.assertIn(named, ((made.kind, made.site), made.also), seed)
                gain = time - simulated(made.better(*named[:1], first.change.count), made.progress, seed)[1]
                self.assertGreaterEqual(gain, KEPT * first.least, (seed, advise.sentence(found, first)))


class Odd(unittest.TestCase):
    def test_nothing_there(self):
        found = advise.advise(waiting.classify(Run("nothing", [])))
        self.assertEqual((found.advice, found.told), ([], []))
        json.dumps(advise.as_json(found))

    def test_one_rank(self):
        run, _ = simulated([[("compute", 1000), ("barrier", "world")]], "thread", 1)
        found = advise.advise(waiting.classify(run))
        self.assertEqual((found.advice, found.told, found.why), ([], [], ""))

    def test_times_that_make_no_sense(self):
        draw = random.Random(SEED)
        for _ in range(COUNT):
            made = advise_made.drawn(draw.choice(advise_made.FAULTS), SEED)
            run, _ = simulated(made.programs, made.progress, SEED)
            for rank in run.ranks:
                for _ in range(20):
                    at = draw.randrange(len(rank.begin))
                    rank.begin[at], rank.end[at] = (draw.choice((0, -5, 10**6, 1 << 61)) for _ in range(2))
            found = advise.advise(waiting.classify(run))
            self.assertEqual(bool(found.why), not any(f.fits for f in found.fits))
            json.dumps(advise.as_json(found))


class Shown(unittest.TestCase):
    def test_words_and_data(self):
        made = advise_made.drawn(advise_made.put_off, 1)
        found, time = advised(made, 1)
        data = json.loads(json.dumps(advise.as_json(found)))
        self.assertEqual((data["format"], data["version"], data["run"]["time"]), ("headway-advice", 1, found.duration))
        one = data["advice"][0]
        self.assertEqual((one["kind"], one["call"]["offset"] // 16, one["other"]["offset"] // 16), ("put off", 52, 53))
        self.assertLessEqual(one["least"], one["most"])
        text = "\n".join(line.plain for line in advise.words(found).renderables)
        self.assertIn(f"1. {one['text']}", text)
        self.assertRegex(one["text"], r"^(Take MPI_Wait out of|Make MPI_Send at) made\+0x340")
        self.assertIn("the MPI_Waitall of made+0x350: at least ", one["text"])
        self.assertTrue(text.endswith("Nothing else is worth 1 %."))


if __name__ == "__main__":
    words = sys.argv[1:]
    if words and words[0].isdigit():
        SEED = int(words.pop(0))
    if words and words[0].isdigit():
        COUNT = int(words.pop(0))
    print(f"seed {SEED}", flush=True)
    unittest.main(verbosity=1, argv=[sys.argv[0], *words])
