#!/usr/bin/env python3
"""Advice where cores are few: somebody else has them, there are fewer than ranks, or an MPI's threads take them from
computation. advise_cores_test.py [first seed [programs of each fault]]; the seed is printed."""

import random
import unittest

from support import main, need_packages

need_packages("numpy", "rich")

import advise_made  # noqa: E402
import calibrated_made  # noqa: E402
import numpy as np  # noqa: E402
from advise_test import KEPT, gain_of, judged, number, shown, simulated  # noqa: E402
from headway.record import advise, advise_json, crowding, edits, models, replay, transport, waiting  # noqa: E402
from headway.record.model import CORE_TAKEN  # noqa: E402

SEED, COUNT = random.randrange(1 << 30), 3


class CoreTaken(unittest.TestCase):
    """Another program takes a rank's core at the end of some waits."""

    def test_the_run_is_replayed_all_the_same(self):
        fits = 0
        for seed in range(5, 8):
            made = advise_made.drawn(advise_made.put_off, seed)
            run, _ = simulated(made.programs, made.progress, seed)
            taken(run, 1_500_000, random.Random(seed))
            found = judged(run, calibrated_made.facts_of(made.progress))
            self.assertGreater(found.no_core, 0.01)
            fits += not found.why
            self.assertTrue(not found.why or "somebody else had a rank's core" in found.why, found.why)
            for first in found.advice[:1]:
                named = first.change.kind, number(found, first.change.key)
                if named in ((made.kind, made.site), made.also):
                    gain = gain_of(made, first.change.kind, first.change.count, seed)
                    self.assertGreaterEqual(gain, KEPT * first.least, "what others took is no gain")
        self.assertGreaterEqual(fits, 1)

    def test_it_is_told_where_nothing_fits(self):
        made = advise_made.drawn(advise_made.put_off, SEED)
        run, _ = simulated(made.programs, made.progress, SEED)
        taken(run, 1_500_000, random.Random(SEED))
        found = judged(run, calibrated_made.facts_of("thread"))
        if found.why:
            self.assertIn("somebody else had a rank's core", found.why)

    def test_fewer_cores_than_ranks_promise_nothing(self):
        made = advise_made.drawn(advise_made.put_off, 5)
        run, _ = simulated(made.programs, made.progress, 5)
        ranks = len(run.ranks)
        for cores, host, promised in (("0-15", "one", True), ("7", "one", False), ("7", "each", True), ("", "one", True)):
            for rank in run.ranks:
                rank.header["cores"] = cores
                rank.boot = host if host == "one" else f"{rank.rank}"
            found = judged(run, calibrated_made.facts_of(made.progress))
            first = found.advice[0]
            self.assertEqual((first.change.kind, number(found, first.change.key)), (made.kind, made.site))
            self.assertEqual(first.least > 0, promised, (cores, host))
            self.assertEqual(f"1 core for {ranks} ranks" in shown(found), not promised)
            self.assertEqual("at least" in advise.sentence(found, first), promised)
            self.assertEqual(advise_json.as_json(found)["advice"][0]["doubt"] == "", promised)

    def test_no_promise_of_less_than_others_took(self):
        run, _ = simulated(advise_made.drawn(advise_made.put_off, 5).programs, "calls", 5)
        self.assertEqual(crowding.doubt(run, 0.05, 0.06), "")
        self.assertIn("5 % of all rank time", crowding.doubt(run, 0.05, 0.04))


class Threads(unittest.TestCase):
    """Whether a thread of the MPI has a core of its own, or copies on one of those that compute."""

    def test_how_many_cores_are_enough(self):
        run, _ = simulated(advise_made.drawn(advise_made.in_turns, SEED).programs, "thread", SEED)
        self.assertEqual(len(run.ranks), 2)
        for first, other, hosts, few in (
            ("0-3", "0-3", 1, False), ("0-2", "0-2", 1, True), ("0-1", "0-1", 2, False), ("5", "5", 2, True), ("", "", 1, False),
            ("0", "1-31", 1, True), ("", "0-1", 1, False), ("", "0-15", 1, False), ("0-1", "2-3", 1, False),
        ):  # fmt: skip
            cores = first, other
            for rank in run.ranks:
                rank.header["cores"], rank.boot = cores[rank.rank], f"{rank.rank % hosts}"
            self.assertEqual(crowding.threads_share(run), few, (cores, hosts))
            known = models.Known.of(calibrated_made.facts_of("thread"))
            some = models.models(waiting.classify(run), known)
            self.assertEqual({one.takes_cores for one in some}, {few})
            self.assertEqual({"takes a core from its ranks" in one.text for one in some if one.moves != transport.STREAM}, {few})

    def judged(self, fault, seed, progress, times):
        """So many cores a rank, all of one host."""
        made = advise_made.drawn(fault, seed)
        run, _ = simulated(made.programs, progress, seed)
        for rank in run.ranks:
            rank.header["cores"], rank.boot = f"0-{times * len(run.ranks) - 1}", "one"
        found = judged(run, calibrated_made.facts_of(progress))
        self.assertEqual(found.why, "", (seed, progress, times))
        return made, found

    def early(self, seed, times):
        """Promised of a receive that is posted earlier; per round, and what a transfer needs."""
        made, found = self.judged(advise_made.early, seed, "thread", times)
        some = [one for one in found.advice if one.change.kind == edits.EARLY]
        rounds = sum(name.startswith("wait@54") for name, *_ in made.programs[0])
        size = next(call[4] for call in made.programs[0] if call[0] == "isend@51")
        need = found.program.world.need[found.program.world.size.index(size)]
        return max((one.least for one in some), default=0) / rounds, need

    def test_what_comes_by_itself_takes_a_core_from_both_of_its_ranks(self):
        """Of a ring each rank sends and receives: both copies are its own. The unchanged run is explained all the same."""
        for seed in range(SEED, SEED + COUNT):
            free, need = self.early(seed, 2)
            few, _ = self.early(seed, 1)
            self.assertGreater(free, 0.5 * need, seed)
            self.assertLessEqual(few, max(0.0, free - 0.9 * need), seed)

    def test_longer_transfers_take_more_from_computation(self):
        """Than was measured: a core copies them on one host, and takes as much longer for it."""
        for seed in range(SEED, SEED + COUNT):
            made = advise_made.drawn(advise_made.early, seed)
            run, _ = simulated(made.programs, made.progress, seed)
            found = judged(run, calibrated_made.facts_of(made.progress))
            change = next(one.change for one in found.advice if one.change.kind == edits.EARLY)
            for between, more in ((False, 1.2), (True, 1.0)):  # on a wire they take longer for other reasons
                found.program.world.between[:] = [between] * len(found.program.world.size)
                lost = [self.lost(found.program, change, between, usual) for usual in (1.0, 1.2)]
                self.assertGreater(lost[0], 0, seed)
                self.assertAlmostEqual(lost[1] / lost[0], more, delta=0.05, msg=(seed, between))

    def lost(self, built, change, between, usual):
        """ns of the change's gain, to what its messages take from computation."""
        gains = []
        for rate in (0.0, 0.003):
            rule = transport.Rule(between, 0, 1 << 40, copied=False, moves=transport.ALWAYS, steals=(0.0, rate))
            model = transport.Model(transport.ALWAYS, -1, usual=usual, rules=(rule,))
            before = replay.replay(built, model)
            gains.append(before.duration - replay.replay(change.apply(built), model, before).duration)
        return gains[0] - gains[1]

    def test_who_copies_outside_of_calls(self):
        """A call that lasts as long as its copy needs nobody else; one that only begins it does, on its own side."""
        found = self.judged(advise_made.early, SEED, "thread", 1)[1]
        need = found.program.world.need[0]
        for moves, busy, sides in (
            (transport.ALWAYS, False, (1, 1)), (transport.BEGUN, False, (1, 1)), (transport.ANY, False, (0, 0)),
            (transport.MATCHING, False, (0, 0)), (transport.PULL, True, (0, 0)), (transport.PULL, False, (0, 1)),
            (transport.PUSH, True, (0, 0)), (transport.PUSH, False, (1, 0)),
        ):  # fmt: skip
            for few, alone in ((False, 1.0), (True, 1.0), (True, 1.5)):  # who copies alone takes longer
                rule = transport.Rule(False, 0, 1 << 40, copied=False, moves=moves, busy=busy, by_one=alone)
                one = replay.Replay(found.program, transport.Model(moves, -1, rules=(rule,), takes_cores=few))
                least = int(alone * (need - one.latency[0]))
                told = tuple(one.takes(0, side, 3) for side in (0, 1))
                self.assertEqual(told, tuple(few * least * some for some in sides), (moves, busy, few))
                self.assertEqual([one.takes(0, side, 2 - side) for side in (0, 1)], [0, 0], "of who is in a call")
            one.eager[0] = 1
            self.assertEqual([one.takes(0, side, 3) for side in (0, 1)], [0, 0], "calls copy what is short")
        found.program.world.between[0] = True
        one = replay.Replay(found.program, transport.Model(transport.ALWAYS, -1, takes_cores=True))
        self.assertEqual([one.takes(0, side, 3) for side in (0, 1)], [0, 0], "a wire carries it")


def taken(run, ns, draw):
    """Every third wait of rank 0 lasts longer by up to `ns`, and all ranks' later events come later: in the run of these
    programs everybody waits for everybody each round."""
    rank = run.ranks[0]
    waits = [at for at, kind in enumerate(rank.events["kind"]) if rank.family(int(kind)) == "wait"][2::3]
    rows = []
    for at in waits:
        more, end = draw.randrange(ns // 3, ns), int(rank.end[at])
        for one in run.ranks:
            one.begin[one.begin >= end] += more
            one.end[one.end >= end] += more
        row = np.zeros(1, rank.events.dtype)
        row["kind"], row["bytes"] = CORE_TAKEN, more
        rows.append((row, int(rank.begin[at]), at))
    for row, begin, at in rows:
        rank.events = np.concatenate((rank.events, row))
        rank.begin, rank.end = np.append(rank.begin, begin), np.append(rank.end, rank.end[at])


if __name__ == "__main__":
    main(globals())
