#!/usr/bin/env python3
"""What bench/wire_rules.py makes of measurements: the quickest of each cell, the choice's share, and a page that is what is kept."""

import sys
import unittest

try:
    import wire_rules as rules
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


class Made(unittest.TestCase):
    def rows(self):
        of = lambda size, form: ("4x2", 1000, "reduce", size, form)  # noqa: E731
        return {
            of(8, "binomial"): [3.0, 1.0, 2.0],
            of(8, "halving"): [4.0],
            of(8, rules.ITSELF): [5.0],
            of(512, "binomial"): [300.0],
            of(512, "halving"): [200.0],
            of(512, rules.ITSELF): [210.0],
            of(4096, "binomial"): [1.0],  # of this one nobody knows what the choice takes
            ("16x1", 1000, "reduce", 8, "binomial"): [7.0],
            ("16x1", 1000, "reduce", 8, rules.ITSELF): [7.0],
        }

    def test_cells(self):
        lines = rules.table(self.rows(), 1000, "reduce")
        cells = [cell.strip() for cell in lines[2].split("|")[1:-1]]
        self.assertEqual(cells[:4], ["4x2", "binomial 2.0; **2.50**", "halving 200; 1.05", "-"])
        self.assertTrue(lines[3].startswith("| 16x1 | binomial 7.0; 1.00 | - |"))
        self.assertEqual({line.count("|") for line in lines}, {len(rules.VECTORS) + 2})
        self.assertEqual(rules.table(self.rows(), 100, "reduce"), [])

    def test_the_page_has_what_was_measured_alone(self):
        page = rules.page(self.rows(), "Some day.")
        self.assertIn("## Reduce, 1 Gbit/s", page)
        self.assertNotIn("## Bcast", page)

    def test_the_page_is_what_is_kept(self):
        self.assertEqual(rules.PAGE.read_text(), rules.page(*rules.kept()))

    def test_every_cell_is_kept(self):
        rows, _ = rules.kept()
        some = {(key[0], key[1], key[2], key[4]) for key in rows}
        wanted = {
            (rules.name_of(shape), rate, call, form)
            for shape in rules.SHAPES for rate in rules.RATES
            for call, forms in rules.FORMS.items() for form in (rules.ITSELF, *forms)
        }  # fmt: skip
        self.assertEqual(sorted(wanted - some), [])


if __name__ == "__main__":
    unittest.main()
