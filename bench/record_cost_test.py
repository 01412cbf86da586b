"""The judgement of bench/record_cost.py on figures made up for it: no MPI runs here."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

try:
    import numpy as np
except ImportError:
    print("skipped: numpy is missing (make python)")
    sys.exit(77)

from record_cost import OF_PYTHON, OFTEN, RATE, RATE_OF_PYTHON, judged  # noqa: E402


class Judged(unittest.TestCase):
    def verdict(self, kind, ns, share):
        line, good = judged(kind, np.array(ns), np.array(share))
        self.assertEqual(line.endswith("MISSED"), not good)
        return good

    def test_ns_a_call_by_their_median(self):
        for kind, most in ((OFTEN, 30), (OF_PYTHON, 120)):
            self.assertTrue(self.verdict(kind, [most - 1] * 11 + [most + 50] * 9, [0.5] * 20))
            self.assertFalse(self.verdict(kind, [most + 1] * 11 + [most - 20] * 9, [0.0] * 20))

    def test_the_share_by_the_upper_end_of_its_interval(self):
        self.assertTrue(self.verdict(RATE, [99] * 20, [0.009] * 20))
        self.assertFalse(self.verdict(RATE_OF_PYTHON, [10] * 20, [0.012] * 20))
        self.assertFalse(self.verdict(RATE, [10] * 20, [0.012] * 20))
        noisy = [0.001, 0.03] * 10
        noisy[0] = noisy[2] = 0.03
        self.assertFalse(self.verdict(RATE, [10] * 20, noisy))
        self.assertFalse(self.verdict(RATE, [10] * 20, [0.005] * 11 + [0.02] * 9), "its median may be worse")


if __name__ == "__main__":
    unittest.main()
