#!/usr/bin/env python3
"""Advice against simulated programs with one known fault each (advise_made): site, kind, and what the changed program
really gains. advise_test.py [first seed [programs of each fault]]; the seed is printed."""

import json
import random
import tempfile
import unittest
from dataclasses import replace

from support import main, need_packages

need_packages("numpy", "rich")

import advise_made  # noqa: E402
import calibrated_made  # noqa: E402
import numpy as np  # noqa: E402
import record_made  # noqa: E402
from headway.record import advise, advise_json, edits, models, program, reading, transport, waiting  # noqa: E402
from headway.record.facts import LONG, Facts  # noqa: E402
from headway.record.model import Run  # noqa: E402

SEED, COUNT = random.randrange(1 << 30), 3
KEPT = 0.8  # of a promise, what the changed program must gain
KEPT_UNKNOWN = 0.7  # where nothing was measured, of a single program
JITTER = 0.02


def simulated(programs, progress, seed, **more):
    """What was read of it, and its true time."""
    with tempfile.TemporaryDirectory() as folder:
        truth = record_made.simulate(folder, programs, seed=seed, progress=progress, jitter=JITTER, **more)
        run = reading.read(folder)
    return run, max(int(times[-1][1]) for times in truth.times)


def judged(run, known):
    """`known`: facts of the simulated MPI."""
    return advise.advise(waiting.classify(run, known.lines), models.Known.of(known), known)


def advised(made, seed, known=None, **more):
    """As with what was measured of the simulated MPI, or with what is given."""
    run, time = simulated(made.programs, made.progress, seed, **more)
    return judged(run, calibrated_made.facts_of(made.progress) if known is None else known), time


def gain_of(made, kind, count, seed, **more):
    """What the changed program gains: the mean over several worlds, since computation varies from one to the next."""
    better = made.better(kind, count)
    seeds = range(seed, seed + 5)
    some = [[simulated(p, made.progress, n, **more)[1] for n in seeds] for p in (made.programs, better)]
    return sum(some[0]) / len(seeds) - sum(some[1]) / len(seeds)


def shown(found):
    return "\n".join(line.plain for line in advise.words(found).renderables)


def number(found, key):
    """The call site as the program named it."""
    return found.program.world.site(key).offset // 16


def closest(fits):
    """By how much the best model misses, by what moves the data."""
    return {moves: min((f.miss for f in fits if f.model.moves == moves), default=1) for moves in range(6)}


class Faults(unittest.TestCase):
    def right(self, fault, known=None, seeds=None, **more):
        """Of COUNT programs: those whose advice names the fault first; each promise must be kept. Whoever is silent of a program
        of which the change takes nothing away is right, too. `more`: of the world."""
        right, wrong = 0, []
        seeds = seeds or range(SEED, SEED + COUNT)
        for seed in seeds:
            made = advise_made.drawn(fault, seed)
            found, _ = advised(made, seed, known, **more)
            self.assertEqual(found.why, "", (seed, [(f.miss, f.model) for f in found.fits]))
            first = found.advice[0] if found.advice else None
            named = first and (first.change.kind, number(found, first.change.key))
            if first is None and gain_of(made, made.kind, 0, seed, **more) < advise.WORTH * found.duration:
                right += 1
                continue
            if named not in ((made.kind, made.site), made.also or None) or first is None:
                wrong.append((seed, None if first is None else advise.sentence(found, first)))
                continue
            right += 1
            gain = gain_of(made, first.change.kind, first.change.count, seed, **more)
            self.assertGreaterEqual(gain, KEPT * first.least, (seed, advise.sentence(found, first)))
        self.assertGreaterEqual(right, 0.9 * len(seeds) - 1e-9, wrong)

    def test_put_off(self):
        self.right(advise_made.put_off)

    def test_tests(self):
        self.right(advise_made.test)

    def test_posted_early(self):
        self.right(advise_made.early)

    def test_tests_that_let_a_sender_go(self):
        self.right(advise_made.release)

    def test_tests_that_copy_a_piece_each(self):
        """As UCX between processes: a sender is let go by the last of several tests, not by the first."""
        for piece in (200_000, 500_000):

            def pulled(draw):
                made = advise_made.release(draw)
                made.progress = "pull"
                return made

            self.right(pulled, calibrated_made.facts_of("pull", piece=piece), piece=piece)

    def test_receives_that_spare_a_copy(self):
        cost = 0.4
        self.right(advise_made.unexpected, calibrated_made.facts_of("thread", cost), unexpected=cost)

    def test_pair(self):
        self.right(advise_made.pair)


class OutOfStepOnce(unittest.TestCase):
    def test_what_another_run_would_not_gain_is_not_promised(self):
        """Ranks of this world come out of step in the run that is recorded, and in hardly any other one."""
        made = advise_made.drawn(advise_made.put_off, 5001)
        first = advised(made, 5001)[0].advice[0]
        self.assertEqual((first.change.kind, first.most > 1.25 * first.least), (made.kind, True), first)
        self.assertGreaterEqual(gain_of(made, first.change.kind, first.change.count, 5001), KEPT * first.least)


class ShortPrograms(Faults):
    """The same without the messages from which the run itself tells how data move: only what was measured does."""

    def setUp(self):
        self.addCleanup(setattr, advise_made, "LEARNED", True)
        advise_made.LEARNED = False


class FactsOfAnotherState(unittest.TestCase):
    """Long messages that were copied when the MPI was asked, as into a socket that had grown, and are not in the run."""

    def test_what_does_not_explain_the_run_is_set_aside(self):
        aside = told = 0
        for seed in range(SEED, SEED + COUNT):
            made = advise_made.drawn(advise_made.put_off, seed)
            run, _ = simulated(made.programs, made.progress, seed)
            true = calibrated_made.facts_of(made.progress)
            wrong = replace(
                true,
                seen={
                    place: tuple(replace(one, copied=True) if one.copied is False and one.size > LONG else one for one in some)
                    for place, some in true.seen.items()
                },
            )
            found = advise.by_facts(run, wrong)[1]
            if not judged(run, wrong).why:  # it explains this run as well
                self.assertEqual(found.aside, "")
                continue
            aside += 1
            self.assertRegex(found.aside, r"does not explain this run: .* So (that long messages are copied|all of it) is left out", seed)
            self.assertIn(found.aside, shown(found))
            self.assertIn("Measured of this MPI", shown(found))
            first = found.advice[0] if found.advice else None
            if first is None:
                continue  # rightly careful: it is no more than what is worth telling under some other way to move
            told += 1
            self.assertIn((first.change.kind, number(found, first.change.key)), ((made.kind, made.site), made.also), seed)
            # No more is promised than with what is true of this MPI.
            known = next((one for one in judged(run, true).advice if one.change.kind == first.change.kind), None)
            if known is None:
                continue
            self.assertLessEqual(first.least, 1.02 * known.least, (seed, advise.sentence(found, first)))
        self.assertGreater(aside, 0)
        self.assertGreaterEqual(told, 0.6 * aside)

    def test_facts_that_explain_it_stay(self):
        made = advise_made.drawn(advise_made.put_off, SEED)
        run, _ = simulated(made.programs, made.progress, SEED)
        found = advise.by_facts(run, calibrated_made.facts_of(made.progress))[1]
        self.assertEqual((found.why, found.aside), ("", ""))
        self.assertTrue(found.facts.seen)


class NoFault(unittest.TestCase):
    def test_silent(self):
        for seed in range(SEED, SEED + 2 * COUNT):
            for known in (None, Facts()):
                made = advise_made.drawn(advise_made.without, seed)
                found, _ = advised(made, seed, known)
                self.assertEqual([advise.sentence(found, one) for one in found.advice], [], (seed, known))
                self.assertNotIn(edits.BALANCE, [one.change.kind for one in found.told], seed)

    def test_a_copy_by_the_receivers_own_core_is_not_hidden_by_tests(self):
        for seed in range(SEED, SEED + COUNT):
            made = advise_made.drawn(advise_made.test, seed)
            made.progress = "pull"
            found, _ = advised(made, seed)
            self.assertEqual([advise.sentence(found, one) for one in found.advice], [], seed)

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
                    ("calls", transport.BEGUN, (transport.ALWAYS,)),
                    ("thread", transport.ALWAYS, (transport.BEGUN, transport.ANY)),
                ):
                    some = self.fits(fault, progress, seed)
                    best = closest(some)
                    self.assertLessEqual(best[true], models.FITS, (seed, fault.__name__, progress, best))
                    for other in others:
                        if fault is advise_made.test:  # the other one's transfers are too short for more
                            self.assertGreater(best[other], models.FITS, (seed, progress, best))

    def test_a_receiver_that_copies(self):
        for seed in range(SEED, SEED + COUNT):
            best = closest(self.fits(advise_made.release, "pull", seed))
            self.assertLessEqual(best[transport.PULL], models.FITS, (seed, best))
            self.assertGreater(best[transport.ALWAYS], models.FITS, (seed, best))

    def test_what_moves_by_itself_takes_time_from_computation(self):
        """A promise is less by that, and the run itself fits all the same: what came beside it is in it."""
        for seed in range(SEED, SEED + COUNT):
            made = advise_made.drawn(advise_made.early, seed)
            run, _ = simulated(made.programs, made.progress, seed)
            known = calibrated_made.facts_of(made.progress)
            least, missed = [], []
            for rate in (0.0, 0.03):
                seen = tuple(replace(one, steals=(0.0, rate)) for one in known.seen["near"])
                found = judged(run, Facts({"near": seen}))
                some = [one.least for one in found.advice if one.change.kind == edits.EARLY]
                least.append(max(some, default=0))
                missed.append(found.miss)
            self.assertAlmostEqual(missed[1], missed[0], delta=0.005)
            rounds = sum(name.startswith("wait@54") for name, *_ in made.programs[0])
            size = next(call[4] for call in made.programs[0] if call[0] == "isend@51")
            self.assertAlmostEqual(least[0] - least[1], 0.03 * size * rounds, delta=0.2 * 0.03 * size * rounds)

    def test_a_receiver_in_another_call(self):
        for seed in range(SEED, SEED + COUNT):
            for progress, true, others in (
                ("matching", transport.MATCHING, (transport.ANY, transport.BEGUN, transport.ALWAYS)),
                ("calls", transport.BEGUN, (transport.MATCHING,)),
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
                free = [f.miss for f in some if f.model.together < 0 and f.model.moves != transport.STREAM]
                if together == 64 << 10:
                    self.assertLessEqual(min(limited, default=1), models.FITS, (seed, free))
                    self.assertGreater(min(free), models.FITS, (seed, limited))
                else:
                    self.assertLessEqual(min(free), models.FITS, seed)
                    self.assertEqual(limited, [], "the run shows that there is none")

    def test_two_hosts(self):
        clocks = [record_made.Clock(), record_made.Clock(offset=3_000_000, drift=2e-5)]
        for seed in (*range(SEED, SEED + COUNT), 9032, 394992321):  # of the last two, transfers are learned a quarter too short
            some = self.fits(advise_made.test, "calls", seed, clocks=clocks)
            self.assertLessEqual(min(f.miss for f in some if f.model.moves == transport.BEGUN), models.FITS, seed)

    def test_wires_that_carry_one_message_at_a_time(self):
        """Where messages seldom meet on a wire, longer transfers explain the run as well: then both models count."""
        for seed in (*range(SEED, SEED + COUNT), 7, 199576630):  # of the last one the wires add 20 %
            made = advise_made.drawn(advise_made.crowded, seed)
            worlds = [{"clocks": [record_made.Clock(), record_made.Clock()], "wires": wires} for wires in (False, True)]
            free, one = (simulated(made.programs, "calls", seed, **world)[1] for world in worlds)
            for wires, world in enumerate(worlds):
                some = self.fits(advise_made.crowded, "calls", seed, **world)
                best = {w: min(f.miss for f in some if f.model.wires == w) for w in (False, True)}
                self.assertLessEqual(best[bool(wires)], models.FITS, (seed, best))
                if not wires or one >= 1.25 * free or seed == 7:
                    self.assertGreater(best[not wires], models.FITS, (seed, best))

    def test_programs_that_test(self):
        """Rows of tests in vain are calls of their own, or one, and what they take is learned."""
        for seed in range(SEED, SEED + COUNT):
            for count in (3, 20):
                made = advise_made.drawn(advise_made.test, seed)
                found = waiting.classify(simulated(made.better("test", count), "calls", seed)[0])
                built = program.program(found)
                some = models.fit(built, models.models(found))
                self.assertLessEqual(closest(some)[transport.BEGUN], models.FITS, (seed, count, closest(some)))
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
        self.assertEqual(found.advice, [])
        self.assertLessEqual({one.change.kind for one in found.told}, {edits.BALANCE})
        self.assertRegex(found.why, r"misses by \d+\.\d % of its time|has \d+\.\d % of its time in other calls|hangs")
        self.assertFalse(advise_json.as_json(found)["promises"])


class NotKnown(unittest.TestCase):
    """Programs that do not tell themselves how their data move, and nothing was measured."""

    def setUp(self):
        self.addCleanup(setattr, advise_made, "LEARNED", True)
        advise_made.LEARNED = False

    def test_silent_and_it_is_told_why(self):
        for seed in range(SEED, SEED + COUNT):
            for fault in (advise_made.early, advise_made.test):
                found, _ = advised(advise_made.drawn(fault, seed), seed, Facts())
                self.assertEqual(found.advice, [], (seed, fault.__name__))
                self.assertIn("does not show how its MPI moves messages", found.missing)
                self.assertIn(found.missing, shown(found))

    def test_waits_are_put_off_all_the_same(self):
        for seed in range(SEED, SEED + COUNT):
            made = advise_made.drawn(advise_made.put_off, seed)
            found, _ = advised(made, seed, Facts())
            for first in found.advice[:1]:
                named = first.change.kind, number(found, first.change.key)
                self.assertIn(named, ((made.kind, made.site), made.also), seed)
                gain = gain_of(made, first.change.kind, first.change.count, seed)
                self.assertGreaterEqual(gain, KEPT_UNKNOWN * first.least, (seed, advise.sentence(found, first)))


class Contradicted(unittest.TestCase):
    def test_facts_of_another_mpi_promise_nothing(self):
        """Of an MPI in which a thread moves the data; in this one they wait for the receiver."""
        advise_made.LEARNED = False
        self.addCleanup(setattr, advise_made, "LEARNED", True)
        kept = 0
        for seed in range(SEED, SEED + COUNT):
            made = advise_made.drawn(advise_made.release, seed)
            found, _ = advised(made, seed, calibrated_made.facts_of("thread"))
            kept += any(one.change.kind == edits.TEST for one in found.advice)
            if found.why:
                self.assertIn("what was measured", found.why)
        self.assertEqual(kept, 0)


class NothingFits(unittest.TestCase):
    def test_unequal_work_is_told_all_the_same(self):
        self.addCleanup(setattr, models, "FITS", models.FITS)
        models.FITS = -1.0
        for seed in range(SEED, SEED + COUNT):
            made, late = advise_made.drawn(advise_made.unequal, seed)
            run, _ = simulated(made.programs, made.progress, seed)
            found = judged(run, Facts())
            self.assertRegex(found.why, "misses by|in other calls|hangs")
            told = [one for one in found.told if one.change.kind == edits.BALANCE]
            self.assertEqual([one.change.rank for one in told], [late], seed)
            self.assertIn(f"Rank {late} works", shown(found))


class Odd(unittest.TestCase):
    def test_nothing_there(self):
        found = advise.advise(waiting.classify(Run("nothing", [])))
        self.assertEqual((found.advice, found.told), ([], []))
        json.dumps(advise_json.as_json(found))

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
            json.dumps(advise_json.as_json(found))


class OneLine(unittest.TestCase):
    def test_places_that_a_compiler_made_of_one_line_are_one(self):
        """As of an unrolled loop: every second wait returns elsewhere."""
        for seed in range(SEED, SEED + COUNT):
            made = advise_made.drawn(advise_made.put_off, seed)
            run, _ = simulated(made.programs, made.progress, seed)
            plain = judged(run, calibrated_made.facts_of(made.progress)).advice[0]
            for rank in run.ranks:
                number_of = {site.offset // 16: n for n, site in rank.sites.items()}
                if made.site not in number_of:
                    continue
                old = number_of[made.site]
                rank.sites[old] = replace(rank.sites[old], file="a.c", line=7, function="f")
                rank.sites[10_000] = replace(rank.sites[old], offset=1 << 20)
                rank.events = rank.events.copy()
                rank.events["site"][np.flatnonzero(rank.events["site"] == old)[1::2]] = 10_000
            found = judged(run, calibrated_made.facts_of(made.progress)).advice[0]
            self.assertEqual((found.change.kind, found.least), (plain.change.kind, plain.least), seed)


class Large(unittest.TestCase):
    def test_it_ends_and_says_so(self):
        self.addCleanup(setattr, advise, "SECONDS", advise.SECONDS)
        advise.SECONDS = -1.0
        found, _ = advised(advise_made.drawn(advise_made.put_off, SEED), SEED)
        self.assertEqual((found.advice, found.cut), ([], True))
        self.assertIn("not all changes were tried", shown(found))


    def test_a_run_with_too_many_calls_is_not_replayed(self):
        self.addCleanup(setattr, advise, "MOST_CALLS", advise.MOST_CALLS)
        made = advise_made.drawn(advise_made.put_off, SEED)
        whole, _ = advised(made, SEED)
        advise.MOST_CALLS = 10
        found, _ = advised(made, SEED)
        self.assertEqual((found.advice, found.fits, found.duration), ([], [], whole.duration))
        said = r"No advice: the run is large: [\d,]+ calls are more than are replayed\. Record a part of it"
        self.assertRegex(shown(found), said)
        self.assertEqual((advise_json.as_json(found)["promises"], advise_json.as_json(found)["models"]), (False, []))

    def test_nothing_is_promised_where_some_models_were_not_tried(self):
        self.addCleanup(setattr, advise, "FITTING", advise.FITTING)
        advise.FITTING = -1.0
        found, _ = advised(advise_made.drawn(advise_made.put_off, SEED), SEED)
        self.assertEqual((found.advice, found.fits), ([], []))
        self.assertIn("not all models of the transport could replay its", shown(found))


class Order(unittest.TestCase):
    """Of several pieces of advice: most gain first, each behind those that then stand before it."""

    def order(self, chosen, gains, least=10):
        """`gains`: by change and how many stand before it."""
        made = [edits.Change(kind, key, 0) for key, kind in enumerate(chosen)]
        for name in ("judge", "shaken"):
            self.addCleanup(setattr, advise, name, getattr(advise, name))

        def judge(state, change, fits, least):
            gain = gains[change.kind][len(state)]
            return (advise.Advice(change, gain, gain), [*state, change]) if gain >= least else None

        class Start(list):
            program = None

        advise.judge, advise.shaken = judge, lambda one, *more: one
        before = [advise.Advice(change, gains[change.kind][at], 0) for at, change in enumerate(made)]
        return [(one.change.kind, one.least) for one in advise.most_first(before, Start(), [], least)]

    def test_most_gain_first(self):
        gains = {edits.PUT_OFF: (70, 60), edits.EARLY: (100, 90)}
        self.assertEqual(self.order((edits.PUT_OFF, edits.EARLY), gains), [(edits.EARLY, 100), (edits.PUT_OFF, 60)])
        self.assertEqual(self.order((edits.EARLY, edits.PUT_OFF), gains), [(edits.EARLY, 100), (edits.PUT_OFF, 60)])

    def test_the_old_order_where_the_other_one_is_worth_less(self):
        for gain in (5, 101):  # not worth telling; more than what then stands before it
            gains = {edits.PUT_OFF: (70, gain), edits.EARLY: (100, 90)}
            self.assertEqual(self.order((edits.PUT_OFF, edits.EARLY), gains), [(edits.PUT_OFF, 70), (edits.EARLY, 90)])


class Shown(unittest.TestCase):
    def test_words_and_data(self):
        made = advise_made.drawn(advise_made.put_off, 1)
        found, time = advised(made, 1)
        data = json.loads(json.dumps(advise_json.as_json(found)))
        self.assertEqual((data["format"], data["version"], data["run"]["time"]), ("headway-advice", 1, found.duration))
        one = data["advice"][0]
        self.assertEqual((one["kind"], one["call"]["offset"] // 16, one["other"]["offset"] // 16), ("put off", 52, 53))
        self.assertLessEqual(one["least"], one["most"])
        text = shown(found)
        self.assertIn(f"1. {one['text']}", text)
        self.assertRegex(one["text"], r"^(Take MPI_Wait out of|Make MPI_Send at) made\+0x340")
        self.assertIn("the MPI_Waitall of made+0x350: at least ", one["text"])
        self.assertIn("Nothing else is worth 1 %.", text)
        self.assertIn(f"Replayed as it was, this run misses its time by {100 * found.miss:.1f} % (3 % are allowed).", text)
        self.assertIn("Measured of this MPI (simulated, calls), on one host: 64 B are copied", text)
        self.assertEqual([row["size"] for row in data["facts"]["near"]], list(calibrated_made.SIZES))
        self.assertEqual(data["missing"], "")


if __name__ == "__main__":
    main(globals())
