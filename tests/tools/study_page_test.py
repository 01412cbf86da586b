#!/usr/bin/env python3
"""`headway study`: the page, the export and the manual page that it writes."""

import csv
import json
import os
import re
import subprocess
import sys
import unittest

from support import BUILD, ROOT, headway
from study_made import K, M, Made

from headway.measure.store import Store
from headway.study import compare, findings, meshes, page, samr, verdicts
from headway.study.blocking import Blocking
from headway.study.findings import Of, Strategy
from headway.study.value import Value
from headway.study.verdicts import Saying


class Written(Made):
    def test_the_page_opens_without_a_network(self):
        path = page.write(findings.read(self.store()), self.folder)
        text = path.read_text()
        self.assertNotRegex(text, r"(src|href)=\"?https?:|@import|<script src")
        made = json.loads(re.search(r"const CHARTS = (.*);\n", text)[1])
        self.assertEqual([c["title"] for c in made], ["latency, µs", "receive overlap", "receive progress"])
        self.assertEqual(made[1]["data"][0], [64 * K, M])
        self.assertEqual(text.count("class=chart "), len(made))
        self.assertIn("In your program:", text)
        self.assertIn("<svg", text)
        self.assertIn("| B | shared memory | ", (self.folder / "study.md").read_text(), "what to change, in short")
        named = set(re.findall(r"<a href=#(\w+)>", text))
        self.assertIn("figure13", named)
        for anchor in named:
            self.assertRegex(text, f"id=\"?{anchor}\\b", "what an advice names is on the page")
        self.assertLess(text.index("In short"), text.index("<h2>Shared memory"))
        ids = re.findall(r'\bid="([^"]+)"', text)
        self.assertEqual(len(ids), len(set(ids)), "no picture draws with another's shapes")
        self.assertIn("| receive overlap, 1 MB | 0.96", (self.folder / "study.md").read_text())

    def test_what_was_not_found_is_not_in_short_nothing(self):
        found = findings.read(self.store())
        of = found.of["a", "shm"]
        self.assertRegex(page.in_short(found)[0][2], r"^Isend and Wait may stand next to each other, up to \d+ .B\.$")
        of.calls = {call: Blocking(call, held=False) for call in ("s", "ws")}
        self.assertEqual(page.in_short(found)[0][2], "Not all was found: see below.")

    def test_what_was_tried_says_what_it_gained(self):
        found = findings.read(self.store())
        of = found.of["a", "shm"]
        of.strategies = {}
        self.assertEqual(page.in_short(found)[0][3], "not tried")
        value = Value(1000.0, 990.0, 1010.0, 5)
        for form, gain in (("6", 0.0), ("6c", 0.2), ("12", 0.0), ("13", 0.0)):
            of.strategies[form] = Strategy(M, value, value, Value(gain, gain, gain, 5), Value(gain, gain, gain, 5))
        gains = "20 % (20 to 20) with computation behind the sends (collecting the waits for sends behind those for "
        gains += "receives); nothing with no computation behind the sends"
        self.assertEqual(page.in_short(found)[0][3], gains)
        self.assertNotIn("Isend and Wait may stand", page.in_short(found)[0][2])
        of.strategies["6c"].gain = Value(0.01, -0.01, 0.02, 5)
        self.assertTrue(page.in_short(found)[0][3].startswith("nothing with computation behind"))
        self.assertIn("Isend and Wait may stand", page.in_short(found)[0][2])
        of.strategies["6c"].gain = Value(-0.2, -0.3, -0.1, 5)
        longer = "nothing with computation behind the sends, and 20 % (10 to 30) more by collecting the waits for sends"
        self.assertTrue(page.in_short(found)[0][3].startswith(longer), page.in_short(found)[0][3])

    def test_in_short_knows_the_meshes_of_that_place(self):
        found = findings.read(self.store())
        found.places = ["shm", "1gbit"]
        self.assertEqual(meshes.in_short(found, "a", "shm"), "not tried")

        def row(case, title, *gains, way="2 ranks", mpi="a"):
            figures = {}
            for form, gain in zip(("6", "7", "6c"), (Value(0.0, 0.0, 0.0, 9), *gains)):
                figures[form] = samr.Figures(gain, gain, gain, gain, gain)
            return samr.Row(case, title, mpi, way, figures)

        nothing, chance, less, more = (
            Value(m, low, high, 9)
            for m, low, high in ((0.01, 0.005, 0.02), (0.3, -0.1, 0.5), (0.2, 0.1, 0.3), (-0.08, -0.1, -0.02))
        )
        found.samr = [row("shm-below", "shared memory, 16x8x8: messages of 45 KB, below the 64 KB of it", nothing, chance)]
        self.assertEqual(meshes.in_short(found, "a", "shm"), "nothing in one mesh")
        self.assertEqual(meshes.in_short(found, "a", "1gbit"), "not tried")
        self.assertEqual(meshes.in_short(found, "b", "shm"), "not tried")
        found.samr += [
            row("1gbit-above", "2 hosts, 24x4x4: messages of 79.5 KB, above the 64 KB of it", more, nothing),
            row("frea-16", "figure 14: 128x32x32, 16 ranks", less, nothing, way="2 ranks instead of 16"),
            row("mpich125", "MPICH 1.2.5 imitated: 128x32x32, 16 ranks", Value(0.9, 0.9, 0.9, 9), nothing),
            row("horizon-64", "figure 15: 256x64x64, 64 ranks", Value(0.5, 0.5, 0.5, 9), nothing, mpi="b"),
        ]
        told = "up to 20 % less (128x32x32, 16 ranks, 100 Mbit/s, run with 2 ranks instead of 16: figure 7's form); "
        told += "up to 8 % more (messages of 79.5 KB: figure 7's form)"
        self.assertEqual(meshes.in_short(found, "a", "1gbit"), told)
        self.assertEqual(meshes.in_short(found, "a", "shm"), "nothing in one mesh")

    def test_an_advice_that_gained_nothing_where_it_was_tried_says_so(self):
        found = findings.read(self.store())
        found.places = ["shm"]
        change = Saying("", "Put the waits for sends as late as you can.")
        stays = Saying("", "Isend and Wait may stand next to each other, up to 1 MB.", at_once=True)
        nothing, some = Saying("", gain="nothing with computation"), Saying("", "Do (figure 13).", tried=True, gain="9 %")
        for vain, every in (
            (True, (change, nothing)),
            (True, (change, stays, nothing)),
            (False, (change,)),  # nothing was tried
            (False, (change, nothing, some)),
            (False, (stays, nothing)),  # advises no change
            (False, (nothing,)),
        ):
            self.assertEqual(page.was_in_vain([*every]), vain, every)
        of = found.of["a", "shm"]
        value, none = Value(1000.0, 990.0, 1010.0, 5), Value(0.0, -0.01, 0.01, 5)
        of.strategies = {form: Strategy(M, value, value, none, none) for form in ("6", "6c", "12", "13")}
        of.calls["ws"] = Blocking("ws", looked_to=M, kind_below="wire")
        self.assertTrue(page.in_short(found)[0][2].endswith(page.IN_VAIN), page.in_short(found)[0][2])
        gain = Value(0.2, 0.1, 0.3, 9)
        forms = {"6": samr.Figures(none, none, none, none, none), "7": samr.Figures(gain, gain, gain, gain, gain)}
        found.samr = [samr.Row("shm-below", "shared memory, 16x8x8: messages of 45 KB", "a", "2 ranks", forms)]
        self.assertNotIn(page.IN_VAIN, page.in_short(found)[0][2], "a mesh gained by a form")

    def test_a_number_of_tests_that_gains_among_others_that_lose_is_chance(self):
        def told(*times):
            names = ("0", "1", "2", "4", "8")
            tests = {n: {"whole_us": t, "costs_us": [0.5], "size": M} for n, t in zip(names, times)}
            return verdicts.testing_advice(Of(tests=tests))[0]

        self.assertEqual(told(100, 97, 101, 102, 101), "")
        self.assertIn("One MPI_Testall in the middle", told(100, 90, 95, 97, 101))

    def test_of_who_is_left_out_the_last_word_counts(self):
        found = findings.read(self.store())
        found.about["notes"] = ["A is left out on 2 hosts: 120 us", "other", "A is left out on 2 hosts: 121 us"]
        self.assertEqual(page.missing(found)[:2], ["other", "A is left out on 2 hosts: 121 us"])
        page.write(found, self.folder)
        text = (self.folder / "study.md").read_text()
        self.assertLess(text.index("## In short"), text.index("A is left out"), "first what somebody came for")

    def test_advices_that_name_the_same_figures_are_said_once(self):
        collect = Saying("", "Collect the waits (figure 13), or call MPI_Testall (figure 7).")
        isend = Saying("", "Call MPI_Testall (figure 7).")
        never = Saying("", "Call MPI_Testall (figure 7). Never let two ranks send.")
        both = Saying("", "Put the waits behind (figure 13), and call MPI_Testall (figure 7).", tried=True)
        behind = Saying("", "Put the waits behind (figure 13).", tried=True)
        late = Saying("", "Put the waits for sends as late as you can.")

        free = Saying("", "Isend and Wait may stand next to each other, up to 1 MB.", at_once=True)

        def said(*every):
            return page.without_repeats([*every])

        self.assertEqual(said(free, behind), [behind.do], "no two that contradict each other")
        self.assertEqual(said(free, late), [free.do, late.do])

        self.assertEqual(said(collect, both, behind, late), [both.do, late.do], "what was tried, and the longer one")
        self.assertEqual(said(collect, behind), [behind.do])
        self.assertEqual(said(isend, collect, late), [isend.do, collect.do, late.do], "nothing was tried")
        self.assertEqual(said(isend, both), [both.do])
        self.assertEqual(said(never, both), [never.do, both.do], "a warning stays")
        stays = Saying("", "Put the waits behind (figure 13); the rest stays there.", tried=True)
        self.assertEqual(said(behind, stays), [stays.do], "of the same figures the one that says more")
        self.assertEqual(said(late, late, Saying("seen")), [late.do])

    def test_export(self):
        store = self.store()
        count = compare.write_csv(store, self.folder / "a.csv")
        with (self.folder / "a.csv").open() as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), count)
        self.assertEqual({r["value"] for r in rows if r["measure"] == "copy"}, {"100.0"})
        self.assertEqual(json.loads(next(r["extra"] for r in rows if r["measure"] == "copy")), {"speedup": 1.6})

    def test_parquet(self):
        try:
            import pyarrow.parquet
        except ImportError:
            self.skipTest("pyarrow is not here")
        store = self.store()
        count = compare.write_parquet(store, self.folder / "a.parquet")
        compare.write_csv(store, self.folder / "a.csv")
        table = pyarrow.parquet.read_table(self.folder / "a.parquet")
        self.assertEqual(table.num_rows, count)
        with (self.folder / "a.csv").open() as file:
            same = [{k: v and float(v) if k == "value" else v for k, v in r.items()} for r in csv.DictReader(file)]
        self.assertEqual(
            [{k: "" if v is None else v if k == "value" else str(v) for k, v in r.items()} for r in table.to_pylist()],
            same,
        )
        nothing = Store(self.folder / "none.sqlite", resume=False)
        compare.write_parquet(nothing, self.folder / "none.parquet")
        self.assertEqual(pyarrow.parquet.read_table(self.folder / "none.parquet").schema, table.schema)

    def test_parquet_without_its_package(self):
        self.store("study.sqlite")
        (self.folder / "pyarrow.py").write_text("raise ImportError('no pyarrow')")
        there = {**os.environ, "PYTHONPATH": str(self.folder)}
        done = headway("study", "export", self.folder, self.folder / "a.parquet", code=2, env=there)
        self.assertRegex(done.stderr, r"a\.parquet: Parquet needs the package pyarrow \(.* -m pip install pyarrow\)")
        self.assertFalse((self.folder / "a.parquet").exists())

    def test_an_export_is_whole_or_not_there(self):
        self.store("study.sqlite")
        done = headway("study", "export", self.folder, self.folder / "no" / "a.csv", code=1)
        self.assertIn("a.csv cannot be written: No such file or directory", done.stderr)
        disk = self.disk("8k")
        (disk / "a.csv").write_text("older")
        done = headway("study", "export", self.folder, disk / "a.csv", code=1)
        self.assertIn(f"there is no room on the disk for {disk}/a.csv", done.stderr)
        self.assertEqual([(f.name, f.read_text()) for f in disk.iterdir()], [("a.csv", "older")])


class Pages(unittest.TestCase):
    def test_the_manual_page_is_of_these_options(self):
        """docs.man runs in a Python that may have no packages, and leaves this page out then."""
        script = ROOT / "scripts" / "make-man-pages.py"
        done = subprocess.run(
            [sys.executable, script, "--check", "--build", BUILD], capture_output=True, text=True, check=False
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main(verbosity=1, argv=sys.argv)
