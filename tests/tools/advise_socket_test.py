#!/usr/bin/env python3
"""Advice where messages go through sockets that only the ranks' calls fill and empty (socket_made): how much fits into one
is another matter when the MPI is asked than in the run. And which models of the transport count: those that have a run's
time in the same calls. What is dropped is told. advise_socket_test.py [first seed [programs of each fault]]."""

import json
import math
import random
import unittest

from support import main, need_packages

need_packages("numpy", "rich")

import advise_made  # noqa: E402
import calibrated_made  # noqa: E402
import record_made  # noqa: E402
from advise_test import KEPT, gain_of, judged, number, shown, simulated  # noqa: E402
from headway.record import advise, advise_json, dropped, edits, models, program, replay, transport, waiting  # noqa: E402
from headway.record.facts import Facts, Seen  # noqa: E402

SEED, COUNT = random.randrange(1 << 30), 3
ROOMS = 100_000, 400_000, 3_000_000
ASKED = 64, 100_000, 300_000, 1_000_000  # sizes


def facts_of(room):
    return calibrated_made.facts_of("socket", sizes=ASKED, room=room)


def clocks():
    return [record_made.Clock(), record_made.Clock()]


def in_turns(seed, count=None):
    return advise_made.drawn(lambda draw: advise_made.in_turns(draw, count), seed)


def size_of(made):
    return next(call[4] for call in made.programs[0] if call[0].startswith(("send", "isend")))


class Sockets(unittest.TestCase):
    def right(self, fault, asked):
        """`asked`: the room that there was when the MPI was asked, of that of the run."""
        right, every, wrong = 0, 0, []
        for seed in range(SEED, SEED + COUNT):
            for room in ROOMS:
                made = advise_made.drawn(fault, seed)
                made.progress = "socket"
                run, time = simulated(made.programs, "socket", seed, room=room)
                given = advise.by_facts(run, facts_of(asked(room)) if asked else Facts())[1]
                first = given.advice[0] if given.advice else None
                if first is None:
                    # What is there to gain, if not by tests, which only some of these need.
                    gain = gain_of(made, made.kind, 10, seed, room=room)
                    every += gain > 0.05 * time
                    if gain > 0.05 * time:
                        wrong.append((seed, room, gain / time, given.why, [(f.distance, f.model) for f in given.fits[:3]]))
                    continue
                every += 1
                named = first.change.kind, number(given, first.change.key)
                self.assertIn(named, ((made.kind, made.site), made.also), (seed, room))
                right += 1
                gain = gain_of(made, first.change.kind, first.change.count, seed, room=room)
                self.assertGreaterEqual(gain, KEPT * first.least, (seed, room, advise.sentence(given, first)))
        self.assertGreaterEqual(right, 0.75 * every, wrong)
        self.assertGreater(every, 0)

    def test_waits_that_are_put_off(self):
        self.right(advise_made.in_turns, lambda room: room)

    def test_a_socket_that_had_grown_when_it_was_asked(self):
        self.right(advise_made.in_turns, lambda room: 8 * room)

    def test_where_nothing_was_asked(self):
        self.right(advise_made.in_turns, None)

    def test_tests_that_let_a_sender_go(self):
        self.right(advise_made.release, lambda room: room)

    def test_silent_without_a_fault(self):
        for seed in range(SEED, SEED + 2 * COUNT):
            for room in ROOMS:
                made = advise_made.drawn(advise_made.without, seed)
                if made.progress != "calls":
                    continue  # these may have computation in which tests would help here
                run, _ = simulated(made.programs, "socket", seed, room=room)
                given = advise.by_facts(run, facts_of(room))[1]
                self.assertEqual([advise.sentence(given, one) for one in given.advice], [], (seed, room))

    def test_only_a_stream_explains_it(self):
        """At least where half of a message fits."""
        for seed in range(SEED, SEED + COUNT):
            made = in_turns(seed)
            run, _ = simulated(made.programs, "socket", seed, room=size_of(made) // 2)
            known = facts_of(4 * size_of(made))
            found = waiting.classify(run, known.lines)
            fits = models.fit(program.program(found), models.models(found, models.Known.of(known)))
            self.assertEqual({f.model.moves for f in fits if f.fits}, {transport.STREAM}, (seed, fits[0].text))


class NowAndThen(unittest.TestCase):
    """Messages of one size that are let go before their receive if nothing lies in the socket, and else wait: their waiting is
    no work of their calls."""

    def test_waits_of_what_was_copied_once_are_put_off(self):
        # Of the last one no room that is tried first holds one message, but not two.
        for seed in (*range(SEED, SEED + COUNT), 239017018):
            made = in_turns(seed, 2)
            size = size_of(made)
            before = [[("send@60", "world", 1, 9, size)], [("compute", 3_000_000), ("recv@61", "world", 0, 9)]]
            programs = [[*some, ("barrier@62", "world"), *one] for some, one in zip(before, made.programs)]
            run, _ = simulated(programs, "socket", seed, room=size * 5 // 4)
            waits, given = advise.by_facts(run, facts_of(size * 5 // 4))
            self.assertEqual(waits.transfer.buffered, size, "one was let go")
            built = given.program
            long = [call for call in range(len(built.own)) if built.own[call] > 500_000 and built.needs[call]]
            self.assertEqual([built.world.site(built.key[call]).offset // 16 for call in long], [], "a wait is no work")
            self.assertTrue(given.advice, (seed, given.why, [one.change for one in given.dropped]))
            first = given.advice[0]
            self.assertIn((first.change.kind, number(given, first.change.key)), ((made.kind, made.site), made.also), seed)
            gain = gain_of(made, first.change.kind, first.change.count, seed, room=size * 5 // 4)
            self.assertGreaterEqual(gain, KEPT * first.least, (seed, advise.sentence(given, first)))


class Acked(unittest.TestCase):
    """Between hosts: messages go by themselves, and their sends wait for word that comes behind the receiver's own."""

    SIZE, ROUNDS = 8_000_000, 25  # 0.8 ms on the wire

    def programs(self, seed, better):
        draw = random.Random(seed)
        found = [[], []]
        for n in range(self.ROUNDS):
            for rank in range(2):
                names = [f"r{n}", f"s{n}"]
                found[rank] += [("irecv@50", "world", 1 - rank, 0, names[0]), ("compute", draw.randrange(50_000, 900_000))]
                found[rank] += [("isend@51", "world", 1 - rank, 0, self.SIZE, names[1])]
                found[rank] += [] if better else [("wait@52", names.pop())]
                found[rank] += [("compute", 1_500_000), ("waitall@53", names)]
        return found

    def time(self, seed, better):
        return sum(simulated(self.programs(seed, better), "acked", n, clocks=clocks())[1] for n in range(3)) / 3

    def test_waits_are_put_off(self):
        need = 3000 + 0.1 * self.SIZE
        far = Seen(64, 3000, 3000, copied=True), Seen(self.SIZE, need, need, copied=True, acked=True, moves=(transport.ALWAYS,))
        for seed in range(SEED, SEED + COUNT):
            run, _ = simulated(self.programs(seed, False), "acked", seed, clocks=clocks())
            given = advise.by_facts(run, Facts({"far": far}, "made"))[1]
            self.assertEqual((given.why, given.aside), ("", ""), seed)
            self.assertTrue(given.fits[0].model.behind, (seed, given.fits[0]))
            first = given.advice[0]
            self.assertEqual((first.change.kind, number(given, first.change.key)), ("put off", 52), seed)
            gain = self.time(seed, False) - self.time(seed, True)
            self.assertGreaterEqual(gain, KEPT * first.least, (seed, advise.sentence(given, first)))
            self.assertGreaterEqual(first.least, 0.5 * gain, (seed, advise.sentence(given, first)))


class InOrder(unittest.TestCase):
    """A stream itself, replayed."""

    def test_what_does_not_fit_waits_for_its_receiver(self):
        """Two messages of 400 KB, whose receiver computes: with room for both, for one, for none."""
        late, need = 2_000_000, 40_000
        programs = [
            [("barrier", "world"), ("isend@50", "world", 1, 0, 400_000, "a"), ("isend@51", "world", 1, 0, 400_000, "b"),
             ("wait@52", "a"), ("wait@53", "b")],
            [("barrier", "world"), ("irecv", "world", 0, 0, "a"), ("irecv", "world", 0, 0, "b"), ("compute", late),
             ("waitall@54", ["a", "b"])],
        ]  # fmt: skip
        run, _ = simulated(programs, "socket", SEED, room=1 << 20)
        found = waiting.classify(run)
        built = program.program(found)
        built.world.need, built.world.latency = [need + 3000] * 2, [3000] * 2
        for room, first, second in ((1 << 20, False, False), (600_000, False, True), (200_000, True, True)):
            model = transport.Model(transport.STREAM, -1, room=room // 2, window=room // 2)
            outcome = replay.replay(built, model)
            took = {built.world.site(built.key[call]).offset // 16: outcome.took[call] for call in built.lanes[0]}
            waits = [ns > late // 2 for ns in (took[52], took[53])]
            self.assertEqual(waits, [first, second and not first], (room, took))
            self.assertLess(max(took[50] + took[51], 1), 20 * need, (room, took))


class Elsewhere(unittest.TestCase):
    """Transfers that are long enough take as long as a run whose sends wait, and are no explanation of it."""

    def test_sends_that_never_wait_do_not_explain_sends_that_do(self):
        met = 0
        for seed in range(SEED, SEED + COUNT):
            made = in_turns(seed)
            run, _ = simulated(made.programs, "calls", seed)
            found = waiting.classify(run, calibrated_made.facts_of("calls").lines)
            built = program.program(found)
            size = max(built.world.size)
            copied = transport.Model(transport.ALWAYS, size)
            long = models.searched(built, copied, "usual", 1.0, 200.0, math.inf)
            one = models.judged(built, long)
            met += one.lasts
            if one.lasts:
                self.assertGreater(one.elsewhere, models.ELSEWHERE, (seed, one.text))
                self.assertFalse(one.fits)
                self.assertRegex(one.text, r"^has \d+\.\d % of its time in other calls, 10 % are allowed$")
            true = models.judged(built, transport.Model(transport.BEGUN, -1))
            self.assertLessEqual(true.elsewhere, models.ELSEWHERE / 2, (seed, true))
        self.assertGreater(met, 0, "there is such a model")


class Dropped(unittest.TestCase):
    def test_why_and_what_it_might_give(self):
        """Two models, of which one gives nothing."""
        made = in_turns(SEED)
        run, _ = simulated(made.programs, made.progress, SEED)
        found = waiting.classify(run, calibrated_made.facts_of("calls").lines)
        built = program.program(found)
        true = models.judged(built, transport.Model(transport.BEGUN, -1))
        free = models.judged(built, transport.Model(transport.ALWAYS, max(built.world.size)))
        self.addCleanup(setattr, advise, "fit", advise.fit)
        for one in (true, free):  # both are said to fit
            one.miss = one.elsewhere = 0.0
        advise.fit = lambda *_: [true, free]
        given = advise.advise(found)
        self.assertEqual(given.advice, [])
        data = json.loads(json.dumps(advise_json.as_json(given)))
        reasons = {(one["kind"], one["call"]["offset"] // 16): one for one in data["dropped"]}
        one = reasons[made.kind, made.site]
        self.assertEqual(one["why"], dropped.LESS)
        self.assertLess(one["gain"], 0.01 * given.duration)
        self.assertGreater(one["most"], 0.05 * given.duration)
        self.assertEqual(one["model"], free.model.text)
        self.assertRegex(data["unsure"], r"^Not promised: .*: up to [^,]+, but .* if messages up to .*: this run does not tell\.$")
        self.assertIn(data["unsure"], shown(given))

    def test_nothing_is_told_beside_advice(self):
        given = judged(simulated(in_turns(SEED).programs, "calls", SEED)[0], calibrated_made.facts_of("calls"))
        self.assertEqual(given.advice[0].change.kind, edits.PUT_OFF)
        self.assertEqual(advise.unsure(given), "")
        self.assertNotIn(given.advice[0].change, [one.change for one in given.dropped])


if __name__ == "__main__":
    main(globals())
