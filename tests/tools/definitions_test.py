#!/usr/bin/env python3
"""The definitions of a study on curves of which the answer is known. The searches for the overlap and for
the size from which a call blocks are C: they are compiled into a library and driven from here."""

import ctypes
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from random import Random

from support import need_packages

need_packages()

from headway.measure import programs  # noqa: E402
from headway.study import definitions as d  # noqa: E402


class Overlap(ctypes.Structure):
    _fields_ = [(name, ctypes.c_double) for name in ("l0", "c", "l", "overlap", "stop_c", "stop_l")]
    _fields_ += [("steps", ctypes.c_int)]


class Threshold(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("found", "below", "above")]
    _fields_ += [(name, ctypes.c_int) for name in ("doubts", "held")]


ASK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
STEP = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, ctypes.c_double, ctypes.c_int)


def library(test, text):
    """Of C, for the tests of a class."""
    scratch = tempfile.TemporaryDirectory()
    test.addClassCleanup(scratch.cleanup)
    source, made = Path(scratch.name, "a.c"), Path(scratch.name, "a.so")
    source.write_text(text)
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", f"-I{programs.FOLDER}", source, "-o", made, "-lm"], check=True
    )
    return ctypes.CDLL(str(made))


class Search(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.search = library(
            cls,
            '#include "search.h"\nstruct Overlap search(OverlapStep step, double l0) '
            "{ return find_overlap(step, 0, l0); }\n",
        ).search
        cls.search.restype = Overlap
        cls.search.argtypes = [STEP, ctypes.c_double]

    def found(self, curve, l0=100.0):
        """`curve(c)` is l."""
        return self.search(STEP(lambda _with, c, _sure: curve(c)), l0)

    def test_all_is_hidden(self):
        f = self.found(lambda c: max(100, c))
        self.assertEqual((f.steps, f.stop_c), (10, 0))
        self.assertAlmostEqual(f.overlap, 1)

    def test_the_end_of_the_search_is_equation_4_and_not_1(self):
        """l never exceeds 1.1 l0, but computation costs 7 %."""
        f = self.found(lambda c: 100 + 0.07 * c)
        self.assertEqual((f.steps, f.stop_c), (10, 0))
        self.assertAlmostEqual(f.overlap, 0.93)

    def test_a_delay_that_makes_the_transfer_faster(self):
        self.assertAlmostEqual(self.found(lambda c: 100 - 0.2 * c).overlap, 1.2)

    def test_nothing_is_hidden(self):
        f = self.found(lambda c: 100 + c)
        self.assertAlmostEqual(f.overlap, 0, places=6)
        self.assertLessEqual(f.l, 110 + 1e-9)

    def test_the_end_is_bisected(self):
        """t1 + t3 = 37: exceeds from c = 73 on; tenths alone would say 70."""
        f = self.found(lambda c: max(100, c + 37))
        self.assertEqual(f.steps, 7)
        self.assertTrue(72.3 < f.c <= 73 < f.stop_c < 73.7, (f.c, f.stop_c))
        self.assertAlmostEqual(f.overlap, d.equation4(100, f.c, f.l))
        self.assertAlmostEqual(f.overlap, 0.63, places=6)

    def test_below_the_first_tenth(self):
        f = self.found(lambda c: 100 + 2.5 * c)
        self.assertEqual(f.steps, 0)
        self.assertTrue(3 < f.c <= 4 < f.stop_c, (f.c, f.stop_c))

    def test_one_time_slice_does_not_end_it(self):
        hit = []

        def curve(c):
            if 45 < c < 55 and not hit:
                hit.append(c)
                return 500
            return max(100, c)

        self.assertAlmostEqual(self.found(curve).overlap, 1)
        self.assertTrue(hit)


class FromWhichSize(unittest.TestCase):
    """The search for the size from which a call blocks. Answers may be wrong, or in doubt."""

    BLOCKS, DOUBT = 1, 2
    THREE = (10922, 91752)  # least and most of three/*, for 64 KB

    @classmethod
    def setUpClass(cls):
        cls.search = library(
            cls,
            """#include "threshold.h"
            struct Found { size_t found, below, above; int doubts, held; };
            struct Found search(ThresholdAsk ask, size_t least, size_t most, double within) {
              struct Threshold t = {.ask = ask, .most = most, .within = within};
              struct Found f = {.found = find_threshold(&t, least)};
              f.below = t.below, f.above = t.above, f.doubts = t.doubts, f.held = t.held;
              return f;
            }
            """,
        ).search
        cls.search.restype = Threshold
        cls.search.argtypes = [ASK, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_double]

    def found(self, truth, least=64, most=4 << 20, within=0.01, twist=lambda size, answer: answer):
        """`twist` may change the answer to a question, which is noted in `asked`."""
        self.asked = []

        def ask(_with, size):
            self.assertLessEqual(size, most)
            self.asked.append(size)
            return twist(size, int(truth > 0 and size >= truth))

        f = self.search(ASK(ask), least, most, within)
        self.assertEqual(bool(f.found), bool(f.found and f.held))
        return f

    def test_what_blocks(self):
        for truth in (1, 2, 3, 63, 64, 65, 257, 4028, 65536, 100_000, 3 << 20, 4 << 20):
            f = self.found(truth)
            self.assertTrue(f.held, truth)
            self.assertTrue(truth <= f.found <= 1.02 * truth + 1, (truth, f.found))

    def test_nothing_blocks(self):
        f = self.found(0)
        self.assertEqual((f.found, f.held, f.below), (0, 1, 4 << 20))

    def test_the_largest_size_is_asked(self):
        """No size that is the least one doubled: thresholds in the last octave."""
        for most in (91752, 1_000_000):
            for truth in (most, most - 1, int(0.8 * most)):
                f = self.found(truth, 10922, most)
                self.assertTrue(f.held and truth <= f.found <= 1.02 * truth, (most, truth, f.found))

    def test_one_wrong_answer_in_the_last_octave(self):
        """It says that a size blocks that does not; the ends say that it does not hold."""
        least, most = self.THREE
        wrong = []

        def twist(size, answer):
            if 61_000 < size < 65_000 and not wrong:
                wrong.append(size)
                return self.BLOCKS
            return answer

        f = self.found(65536, least, most, 0.02, twist)
        self.assertTrue(wrong)
        self.assertTrue(f.held and 65536 <= f.found < 1.03 * 65536, f.found)

    def test_wrong_answers_by_chance(self):
        """One in 25 is: a size is seldom taken for another one, and never is nothing found without a word."""
        held = wrong = 0
        for seed in range(300):
            random = Random(seed)
            truth = random.randrange(12_000, 91_000)
            f = self.found(truth, *self.THREE, 0.02, lambda _, answer: answer ^ (random.random() < 0.04))
            held += f.held
            wrong += f.held and abs(f.found / truth - 1) > 0.06
        self.assertGreater(held, 250)
        self.assertLess(wrong, 6)

    def test_what_cannot_be_asked_is_no_answer(self):
        f = self.found(65536, twist=lambda size, answer: self.DOUBT)
        self.assertEqual((f.found, f.held), (0, 0))
        f = self.found(0, twist=lambda size, answer: self.DOUBT if size == 1024 else answer)
        self.assertEqual((f.found, f.held), (0, 0), "1 KB may be one that blocks")

    def test_doubts_count_that_the_answer_rests_on(self):
        f = self.found(65536, twist=lambda size, answer: answer | self.DOUBT * (size < 10_000 or size > 100_000))
        self.assertTrue(f.held and 65536 <= f.found < 1.02 * 65536, f.found)
        f = self.found(65536, twist=lambda size, answer: answer | self.DOUBT * (size > 65536))
        self.assertEqual((f.found, f.held), (0, 0))
        self.assertGreater(f.doubts, 0)
        self.assertLess(len(self.asked), 50)


class Bounds(unittest.TestCase):
    def test_figure_3(self):
        self.assertAlmostEqual(d.upper_bound(100, 5, 25), 0.7)
        self.assertEqual(d.upper_bound(100, 40, 90), 0)

    def test_who_copies_with_one_core_can_hide_all(self):
        self.assertAlmostEqual(d.machine_bound(100, 100, 1.6), 1)
        self.assertAlmostEqual(d.machine_bound(150, 100, 1.6), 1)

    def test_who_copies_with_both_has_little_left(self):
        """l0 = one / speedup: 0.1 / (speedup - 1), as the formula's text says."""
        for s in (1.3, 1.65, 2.0):
            self.assertAlmostEqual(d.machine_bound(100 / s, 100, s), min(1 / s, 0.1 / (s - 1)), places=6)
        self.assertAlmostEqual(d.machine_bound(100, 100, 1.0), 1)

    def test_the_bound_is_what_a_machine_of_that_kind_gives(self):
        """Against a machine that is stepped through in small times."""

        def l_of(c, one, s):
            left, t = float(one), 0.0
            while left > 0 or t < c:
                left -= 0.01 * (1 if t < c else s)
                t += 0.01
            return t

        for one, s, l0 in ((100, 1.65, 100 / 1.65), (100, 1.4, 80), (100, 1.2, 90)):
            best = max(
                d.equation4(l0, c, max(l0, l_of(c, one, s)))
                for c in (l0 * k / 200 for k in range(201))
                if l_of(c, one, s) <= 1.1 * l0 + 0.02
            )
            self.assertAlmostEqual(d.machine_bound(l0, one, s), best, delta=0.01)

    def test_over_a_wire_the_own_copy_is_left(self):
        """Against curves that are stepped through."""
        for l0, one in ((100, 5), (100, 20), (100, 60)):
            best = max(
                d.equation4(l0, c, max(l0, c + one))
                for c in (l0 * k / 1000 for k in range(1001))
                if max(l0, c + one) <= 1.1 * l0
            )
            self.assertAlmostEqual(d.wire_bound(l0, one), best, delta=0.002)

    def test_both_compute(self):
        self.assertAlmostEqual(d.both_bound(100, 100), 0.5)
        self.assertAlmostEqual(d.both_bound(50, 100), 0)


class Words(unittest.TestCase):
    def test_progress(self):
        self.assertEqual(d.progress_verdict(0.97), d.COMPLETED)
        self.assertEqual(d.progress_verdict(0.3, arrived_share=1.0), d.ARRIVED)
        self.assertEqual(d.progress_verdict(0.7, arrived_share=0.0), d.ARRIVED)  # eager: copied in the wait
        self.assertEqual(d.progress_verdict(0.16, arrived_share=0.0), d.NEVER)  # the paper's 84 %
        self.assertEqual(d.progress_verdict(0.4, left_us=0.3), d.ARRIVED)  # what a call costs
        self.assertEqual(d.progress_verdict(-0.1), d.NEVER)

    def test_calls(self):
        entries = [1000, 3000, 5000]
        self.assertEqual(d.call_kind(entries, [1020, 3020, 5021]).kind, "blocks")
        self.assertEqual(d.call_kind(entries, [8, 9, 8]).kind, "free")
        self.assertEqual(d.call_kind(entries, [900, 905, 903], transfer=950).kind, "wire")
        self.assertEqual(d.call_kind(entries, [900, 1900, 2900]).kind, "wire")  # slope 0.5
        self.assertEqual(d.call_kind([1, 2, 3, 4, 5], [11, 12, 99, 14, 15]).kind, "blocks")  # one was hit

    def test_cumulative(self):
        self.assertIs(d.is_cumulative(60_000, 20_100), True)
        self.assertIs(d.is_cumulative(60_000, 59_500), False)
        self.assertIsNone(d.is_cumulative(60_000, 38_000))
        self.assertIsNone(d.is_cumulative(0, 38_000))

    def test_memory(self):
        self.assertEqual(d.memory_bytes(64 << 10, 4096), 256 << 20)


if __name__ == "__main__":
    unittest.main(verbosity=1, argv=sys.argv)
