#!/usr/bin/env python3
"""Whether two runs of a program printed the same: what `headway advise --try` compares, numbers and times apart."""

import unittest

from support import need_packages

need_packages("numpy", "rich", "typer")

from headway.record import outputs  # noqa: E402


class Outputs(unittest.TestCase):
    def same(self, unchanged, *changed):
        return outputs.compare(unchanged, list(changed))

    def test_lines_in_any_order(self):
        self.assertEqual(self.same(["a 1\nb 2\n", "b 2\na 1\n"], "b 2\na 1\n").problem, "")

    def test_another_number(self):
        found = self.same(["sum 12\nend\n"] * 2, "sum 13\nend\n")
        self.assertEqual((found.problem, found.own), ("'sum 12'", False))

    def test_a_line_that_is_missing_or_new(self):
        self.assertIn("end", self.same(["sum 12\nend\n"], "sum 12\n").problem)
        self.assertIn("end", self.same(["sum 12\n"], "sum 12\nend\n").problem)
        self.assertNotEqual(self.same(["x\nx\n"], "x\n").problem, "")

    def test_times_differ(self):
        found = self.same(["sum 12\nelapsed: 0.99 s\n"] * 2, "sum 12\nelapsed: 0.5 s\n")
        self.assertEqual((found.problem, found.lines, found.loose), ("", 2, 1))

    def test_words_of_results_are_no_times(self):
        for line in ("min residual 3.2e-7", "time step 10 energy 1.25", "reaction rate 4.5", "s = 12", "date 5"):
            other = line.replace("2", "3").replace("5", "6")
            self.assertEqual(self.same([line + "\n"] * 2, other + "\n").problem, f"'{line}'")
        for line in ("12 ms a step", "0.52 s", "total 5us", "25 MB/s", "it took 52"):
            self.assertEqual(self.same([line + "\n"] * 2, line.replace("2", "3").replace("5", "6") + "\n").problem, "", line)

    def test_numbers_that_differ_by_themselves(self):
        found = self.same(["pid 17\nsum 3\n", "pid 4321\nsum 3\n"], "pid 99\nsum 3\n")
        self.assertEqual((found.problem, found.loose), ("", 1))
        self.assertNotEqual(self.same(["pid 17\nsum 3\n", "pid 4321\nsum 3\n"], "pid 99\nsum 4\n").problem, "")

    def test_results_in_lines_of_time(self):
        """Those that no time can be by chance count, once there are three unchanged runs."""
        for line, other, said in (
            ("t = 0.5 s energy 1.23457", "t = 0.5 s energy 1.23458", "t = # s energy 1.23457"),
            ("step 9 time 0.5 energy 1.23457e-3", "step 9 time 0.5 energy 1.23458e-3", "step # time # energy 1.23457e-3"),
            ("elapsed 0.5 s, checksum 123456789", "elapsed 0.4 s, checksum 123456788", "elapsed # s, checksum 123456789"),
        ):
            self.assertEqual(self.same([line] * 3, other).problem, f"'{said}'")
            self.assertEqual(self.same([line] * 2, other).problem, "", "two runs may agree by chance")
            found = self.same([line] * 3, line.replace("0.5", "0.3"))
            self.assertEqual((found.problem, found.lines, found.loose, found.partly), ("", 1, 0, 1))

    def test_times_that_unchanged_runs_print_alike(self):
        """A correct program is never called wrong because of them."""
        for line, other in (
            ("0.5 s (0.3 computing, 0.2 waiting)", "0.4 s (0.3 computing, 0.1 waiting)"),
            ("time for 100 iterations: 1", "time for 100 iterations: 0"),
            ("times: 1 2 1, mean 1.33333", "times: 1 1 0, mean 0.666667"),
            ("in 3 s, 33.3333 steps per second", "in 2 s, 50.0000 steps per second"),
            ("3 s, 333.333 MFlops", "2 s, 500.000 MFlops"), ("3 s, 41152.3 MB/s", "2 s, 61728.4 MB/s"),
            ("elapsed 3 (1.33333)", "elapsed 2 (1.66667)"), ("time 1.23456 s", "time 1.23457 s"),
            ("time 3, waits 33.3333 %", "time 2, waits 50.0001 %"), ("speed 333.333", "speed 222.222"),
        ):  # fmt: skip
            self.assertEqual(self.same([line] * 4, other, other).problem, "", line)
        ran = [f"took 0.5 s, solve {value}" for value in ("0.312345", "0.312346", "0.312345")]
        self.assertEqual(self.same(ran, "took 0.4 s, solve 0.200001").problem, "")

    def test_words_that_differ_by_themselves(self):
        found = self.same(["red\n", "blue\n"], "red\n")
        self.assertTrue(found.own)
        self.assertNotEqual(found.problem, "")


if __name__ == "__main__":
    unittest.main(verbosity=1)
