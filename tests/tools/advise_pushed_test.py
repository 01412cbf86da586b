#!/usr/bin/env python3
"""Advice against simulated programs under an MPI whose blocking sends bring long messages themselves, and whose waits for sends
alone go on after a while (pushed_made): with what was measured of it its runs are explained, and promises are kept.
advise_pushed_test.py [first seed [programs of each fault]]; the seed is printed."""

import random
import unittest
from dataclasses import replace

from support import main, need_packages

need_packages("numpy", "rich")

import advise_made  # noqa: E402
import advise_test  # noqa: E402
import calibrated_made  # noqa: E402
from headway.record import edits, held_up, models, program, transport, waiting  # noqa: E402
from headway.record.facts import Facts  # noqa: E402

SEED, COUNT = random.randrange(1 << 30), 2
KNOWN = calibrated_made.facts_of("pushed")


def changed(**more):
    """What is known, but of long messages."""
    return Facts({"near": tuple(one if one.copied else replace(one, **more) for one in KNOWN.seen["near"])})


def late(seed, form="send"):
    """A send whose receiver comes long after its sender has gone on, and computed on the copy's account."""
    draw = random.Random(seed)
    size, work, behind = draw.randrange(500_000, 1_500_000), draw.randrange(1_500_000, 2_500_000), draw.randrange(700_000, 1_000_000)
    out, into = [], []
    for n in range(40):
        send = [("send@51", "world", 1, 0, size)]
        if form == "wait":
            send = [("isend@51", "world", 1, 0, size, f"s{n}"), ("wait@52", f"s{n}")]
        out += [("compute", 100_000), *send, ("compute", behind), ("allreduce@54", "world", 8)]
        into += [("compute", work), ("recv@53", "world", 0, 0), ("allreduce@54", "world", 8)]
    return [out, into], size


def fits(run, known):
    waits = waiting.classify(run, known.lines)
    return models.fit(program.program(waits), models.models(waits, models.Known.of(known)))


class Explained(unittest.TestCase):
    def test_senders_that_were_let_go(self):
        """If they were not, they would have waited until their receiver came; if they were copied, they would have gone on."""
        for seed in range(SEED, SEED + COUNT):
            for form in ("send", "wait"):
                run, _ = advise_test.simulated(late(seed, form)[0], "pushed", seed)
                best = fits(run, KNOWN)[0]
                self.assertTrue(best.fits, (seed, form))
                # By themselves the others may explain a run of long computation well enough, but not beside this one.
                bound = best.elsewhere + models.MORE
                for other in ({"lets_go": None}, {"copied": True, "lets_go": None, "moves": (transport.ALWAYS,)}):
                    some = [f for f in fits(run, changed(**other)) if f.fits and f.elsewhere <= bound]
                    self.assertEqual(some, [], (seed, form, other))

    def test_who_was_let_go_tells_nothing_of_what_fits_between_two_ranks(self):
        """A copy aside is no buffer: else, by a receive posted earlier, all of a message would move without its other side."""
        for seed in range(SEED, SEED + COUNT):
            programs, size = late(seed)
            waits = waiting.classify(advise_test.simulated(programs, "pushed", seed)[0], KNOWN.lines)
            gone, asked = waits.messages.gone, waits.messages.asked
            self.assertGreater(sum((gone >= 0) & (gone < asked)), 0, "some were let go")
            known = models.Known.of(changed(moves=(transport.ANY, transport.PULL, transport.PUSH), pushed=False))
            some = models.models(waits, known)
            self.assertTrue(some)
            for one in some:
                self.assertLess(max(one.ahead, one.eager, one.together), size, (seed, one))

    def test_a_receive_that_is_posted_before_spares_its_wait(self):
        for seed in range(SEED, SEED + COUNT):
            programs, _ = late(seed)
            better = [programs[0], []]
            for call in programs[1]:
                if call[0] == "compute":
                    name = f"r{len(better[1])}"
                    better[1] += [("irecv@53", "world", 0, 0, name), call]
                else:
                    better[1].append(("wait", name) if call[0] == "recv@53" else call)
            found = advise_test.judged(advise_test.simulated(programs, "pushed", seed)[0], KNOWN)
            times = [advise_test.simulated(p, "pushed", n)[1] for n in range(seed, seed + 5) for p in (programs, better)]
            gain = (sum(times[::2]) - sum(times[1::2])) / 5
            first = found.advice[0]
            self.assertEqual((first.change.kind, advise_test.number(found, first.change.key)), (edits.EARLY, 53))
            self.assertGreaterEqual(gain, advise_test.KEPT * first.least, seed)


class HeldUp(unittest.TestCase):
    def test_single_messages_that_took_long_once_promise_nothing(self):
        """Some other program had the memory then: a receive that is posted before does not spare that, and the others are no
        longer than they were."""
        for seed in range(SEED, SEED + COUNT):
            programs, _ = late(seed)
            least = []
            for stalls in (None, (37, 3_000_000)):
                found = advise_test.judged(advise_test.simulated(programs, "pushed", seed, stalls=stalls)[0], KNOWN)
                self.assertEqual(found.why, "", (seed, stalls))
                least.append(sum(one.least for one in found.advice if one.change.kind == edits.EARLY))
            self.assertGreater(least[0], 0, seed)
            self.assertAlmostEqual(least[1], least[0], delta=0.1 * least[0], msg=seed)

    def test_what_several_of_ten_wait_for_belongs_to_the_program(self):
        for seed in range(SEED, SEED + COUNT):
            run, _ = advise_test.simulated(late(seed)[0], "pushed", seed, stalls=(5, 3_000_000))
            self.assertEqual(held_up.held_up(waiting.classify(run, KNOWN.lines)).sum(), 0, seed)


class Faults(unittest.TestCase):
    right = advise_test.Faults.right

    def faults(self, fault):
        def pushed(draw):
            made = fault(draw)
            made.progress = "pushed"
            return made

        self.right(pushed, KNOWN, seeds=range(SEED, SEED + COUNT))

    def test_put_off(self):
        self.faults(advise_made.in_turns)

    def test_put_off_of_several(self):
        self.faults(advise_made.put_off)

    def test_what_was_pushed_takes_time_from_computation_when_it_is_put_off(self):
        """A blocking send spares its receiver the copy; what goes by itself then does not."""
        for seed in range(SEED, SEED + 20):
            made = advise_made.drawn(advise_made.in_turns, seed)
            if any(call[0] == "send@52" for call in made.programs[0]):
                break
        rate = 0.02
        run, _ = advise_test.simulated(made.programs, "pushed", seed)
        least = []
        for pushed in (True, False):
            found = advise_test.judged(run, changed(steals=(0.0, rate), helped=None, pushed=pushed))
            least.append(max((one.least for one in found.advice if one.change.kind == edits.PUT_OFF), default=0))
        size, count = next((call[4], len(made.programs[0])) for call in made.programs[0] if call[0] == "send@52")
        sends = sum(call[0] == "send@52" for call in made.programs[0])
        self.assertGreater(count, sends)
        self.assertLess(least[0], least[1] - 0.5 * rate * size * sends, seed)


if __name__ == "__main__":
    main(globals())
