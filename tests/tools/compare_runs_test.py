#!/usr/bin/env python3
"""`headway compare`: recordings of simulated programs, equal ones and such as differ at one place by a known amount.

compare_runs_test.py [first seed] [unittest's words]; the seed is printed.
"""

import contextlib
import io
import json
import os
import random
import sys
import unittest

from support import Folder, drawn_seed, need_packages

need_packages("typer", "rich", "numpy")

import numpy as np  # noqa: E402
import record_made  # noqa: E402
from headway.record import by_site, classes, compare, compare_command, compare_words, conditions, parts  # noqa: E402
from headway.record import reading, same_sites, waiting  # noqa: E402
from headway.record.again import FEW, ONCE, Again, Change, differences, ratios, student  # noqa: E402
from headway.record.conditions import NAMES  # noqa: E402
from headway.record.model import EVENT, Rank, Run, Site  # noqa: E402
from headway.record.same_sites import Spot, pair  # noqa: E402
from headway.shown import BadLine  # noqa: E402
from rich.console import Console  # noqa: E402

SEED = drawn_seed()
SEEDS = 6
RANKS, ITERATIONS = 3, 40
WORK, JITTER = 200_000, 0.1
HALO, STEP, SUM, MEET = 1, 3, 4, 5  # sites


def programs(more=0, iterations=ITERATIONS, extra=False):
    """A ring and an allreduce, then a barrier to which rank 0 comes later by `more`; `extra`: one more barrier."""
    found = []
    for rank in range(RANKS):
        found.append(program := [])
        for n in range(iterations):
            program += [
                (f"irecv@{HALO}", "world", (rank - 1) % RANKS, 0, f"r{n}"),
                ("isend@2", "world", (rank + 1) % RANKS, 0, 1000, f"s{n}"),
                ("compute", WORK),
                (f"waitall@{STEP}", [f"r{n}", f"s{n}"]),
                (f"allreduce@{SUM}", "world", 8),
                ("compute", WORK),
                *([("compute", more)] if rank == 0 and more else []),
                *([("barrier@6", "world")] if extra else []),
                (f"barrier@{MEET}", "world"),
            ]
    return found


def lines(*shown, file="/src/ring.c", function="step"):
    """Sites 1, 2, ... at these lines."""
    return {n: {"file": file, "function": function, "line": line} for n, line in enumerate(shown, 1)}


LINES = lines(10, 11, 20, 30, 40, 35)
# What of `more` the barrier's other ranks wait more, an iteration: rank 0 is the last then, before it was one of three.
# Of n numbers drawn from 0 to 1 the largest less each is (n - 1) / 2 (n + 1) in all, times n.
GROWS = (RANKS - 1) * (1 + JITTER / 2)
BEFORE = WORK * JITTER * RANKS * (RANKS / (RANKS + 1) - 0.5)


def said(*words):
    """Exit code, standard output and error of the command, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = compare_command.main([str(word) for word in words])
    return code, out.getvalue(), err.getvalue()


class Made(Folder):
    def setUp(self):
        super().setUp()
        self.count = 0

    def made(self, seed, more=0, sites=LINES, **shape):
        self.count += 1
        folder = self.folder / f"headway-run-{self.count}"
        folder.mkdir()
        record_made.simulate(folder, programs(more, **shape), sites=sites, seed=seed, jitter=JITTER)
        return folder

    def several(self, seed, count, more=0):
        return [self.made(1000 * seed + n, more) for n in range(count)]

    def compared(self, before, after):
        return compare.compare(*([compare_command.measured(folder) for folder in side] for side in (before, after)))


def row_of(found, call, line=None):
    rows = [r for r in found.rows if r.spot.call == call and line in (None, r.spot.site.line)]
    assert len(rows) == 1, rows
    return rows[0]


class Runs(Made):
    def test_a_run_does_not_differ_from_itself(self):
        folder = self.made(SEED)
        found = self.compared([folder], [folder])
        for row in found.rows:
            self.assertEqual(row.state, compare.SAME)
            self.assertTrue(all(c.value == 0 and c.low <= 0 <= c.high for c in row.change), row)
        for total in found.totals.values():
            self.assertEqual((total.change.value, total.ratio.value), (0, 0))

    def test_runs_that_differ_by_noise_alone_differ_in_nothing(self):
        for count in (1, 3):
            wrong = []
            for seed in range(SEED, SEED + SEEDS // count):
                found = self.compared(self.several(2 * seed, count), self.several(2 * seed + 1, count))
                wrong += [(seed, row.spot) for row in found.rows if row.state != compare.SAME]
                wrong += [(seed, name) for name in ("duration", "blocked") if found.totals[name].ratio.low > 0.05]
            self.assertLessEqual(len(wrong), 1, f"{count} a side, seed {SEED}: {wrong}")

    def test_a_change_at_one_site_is_found_there_with_its_amount(self):
        more, missed = 150_000, []
        truth = ITERATIONS * (GROWS * more - BEFORE)
        for count in (1, 3):
            for seed in range(SEED, SEED + SEEDS // count):
                sides = self.several(2 * seed, count), self.several(2 * seed + 1, count, more)
                for sign, (before, after) in ((1, sides), (-1, sides[::-1])):
                    found = self.compared(before, after)
                    told = f"seed {seed}, {count} a side, sign {sign}"
                    row = found.rows[0]
                    self.assertEqual((row.spot.call, row.spot.site.line), ("MPI_Barrier", 40), told)
                    self.assertEqual(row.state, compare.CHANGED, told)
                    for column in (parts.BLOCKED, parts.COLUMN_OF["late participant"]):
                        change = row.change[column]
                        self.assertGreater(sign * change.value, 0, told)
                        self.assertTrue(change.clear, told)
                        self.assertAlmostEqual(change.value, sign * truth, delta=0.2 * truth, msg=told)
                        self.assertLess(change.high - change.low, truth, f"{told}: it says nothing")
                    blocked = row.change[parts.BLOCKED]
                    missed += [told] * (sign > 0 and not blocked.low <= truth <= blocked.high)
                    others = [r for r in found.rows[1:] if r.state != compare.SAME]
                    self.assertLessEqual(len(others), 1, (told, others))
                    self.assertTrue(found.totals["blocked"].change.clear, told)
                    self.assertTrue(found.totals["duration"].change.clear, told)
        self.assertLessEqual(len(missed), 1, missed)

    def test_a_longer_run_is_told_by_its_whole_duration(self):
        found = self.compared([self.made(SEED)], [self.made(SEED + 1, iterations=2 * ITERATIONS)])
        duration, change = found.totals["duration"], found.totals["duration"].ratio
        for told, side in ((duration.before, found.before), (duration.after, found.after)):
            self.assertAlmostEqual(told, side.runs[0].duration, delta=1)
        self.assertAlmostEqual(change.value, 1, delta=0.05)
        self.assertTrue(0.9 < change.low < change.value < change.high < 1.1, change)

    def test_lines_that_moved(self):
        """By an edit of the file: all of them by 7, the last ones by 3 more, and a call before the last."""
        moved = lines(17, 18, 27, 40, 50, 45)
        found = self.compared([self.made(SEED)], [self.made(SEED + 1, sites=moved, extra=True)])
        old = {(r.spot.call, r.spot.site.line): r.before and r.before.site.line for r in found.rows}
        wanted = {("MPI_Irecv", 17): 10, ("MPI_Isend", 18): 11, ("MPI_Waitall", 27): 20, ("MPI_Allreduce", 40): 30}
        wanted |= {("MPI_Barrier", 50): 40, ("MPI_Barrier", 45): None, ("MPI_Init", 0): 0, ("MPI_Finalize", 0): 0}
        self.assertEqual(old, wanted)
        self.assertEqual([r.spot.site.line for r in found.rows if r.state == compare.NEW], [45])

    def test_a_site_that_went(self):
        found = self.compared([self.made(SEED, extra=True)], [self.made(SEED + 1)])
        row = row_of(found, "MPI_Barrier", 35)
        self.assertEqual((row.state, row.after), (compare.GONE, None))
        self.assertEqual(row.change[parts.TIME].value, -row.values[0][parts.TIME])
        self.assertEqual(row_of(found, "MPI_Barrier", 40).before.site.line, 40)

    def test_a_site_that_only_one_run_of_a_side_has_counts_by_the_mean(self):
        one, other = self.made(SEED, extra=True), self.made(SEED + 1)
        alone = row_of(self.compared([one], [one]), "MPI_Barrier", 35)
        for before in ([one, other], [other, one]):
            row = row_of(self.compared(before, [other]), "MPI_Barrier", 35)
            self.assertEqual((row.state, row.before.count), (compare.GONE, alone.before.count / 2))
            self.assertAlmostEqual(row.values[0][parts.TIME], alone.values[0][parts.TIME] / 2)

    def test_runs_of_several_sizes_are_told(self):
        small = self.folder / "small"
        small.mkdir()
        record_made.simulate(small, [[("barrier", "world")]] * 2, seed=SEED)
        found = self.compared([self.made(SEED)], [small])
        self.assertTrue(any("2, 3 recorded ranks" in note for note in found.notes), found.notes)

    def test_nothing_in_it(self):
        rank = Rank(0, "h", "b", {}, np.zeros(0, EVENT), *(np.zeros(0, np.int64),) * 2, ["MPI_Send"], ["send"])
        empty = parts.of_run(waiting.classify(Run("empty", [rank])))
        self.assertEqual((empty.spots, empty.parts), ([], []))
        some = compare_command.measured(self.made(SEED))
        for before, after, states in (
            ([empty], [empty], set()),
            ([empty], [some], {"new"}),
            ([some] * 2, [empty] * 2, {"gone"}),
        ):
            found = compare.compare(before, after)
            self.assertEqual({row.state for row in found.rows}, states)
            json.dumps(compare.as_json(found), allow_nan=False)
            Console(file=io.StringIO()).print(compare_words.words(found))
        self.assertEqual(compare.compare([empty], [some]).totals["blocked"].ratio.value, np.inf)

    def test_parts_add_up_to_the_run(self):
        run = compare_command.measured(self.made(SEED))
        waits = [p.sum(axis=0) for p in run.parts]
        sums = np.sum(waits, axis=0)
        np.testing.assert_allclose(sums[parts.BLOCKED], sums[parts.FIRST_CLASS :].sum())
        # All of a rank's time lies before, or in, one of its calls.
        self.assertAlmostEqual(sums[parts.SPAN] / RANKS, run.duration, delta=0.02 * run.duration)
        # The same as trace's table, site by site.
        run_again = reading.read(run.folder)
        rows = {(r.site.line, r.call): r for r in by_site.report(waiting.classify(run_again)).rows}
        self.assertEqual(len(rows), len(run.spots))
        for spot, values in zip(run.spots, waits):
            row = rows[spot.site.line, spot.call]
            ours = values[[parts.TIME, parts.BLOCKED, *range(parts.FIRST_CLASS, parts.COLUMNS)]]
            np.testing.assert_allclose(ours, [row.time, row.blocked, *row.by_class[list(classes.WAITING)]], atol=1)
            least_most_need = values[[parts.LEAST, parts.MOST, parts.NEED]]
            np.testing.assert_allclose(least_most_need, row.hidden or (0, 0, 0), atol=RANKS * ITERATIONS)
        self.assertTrue(any(row.hidden for row in rows.values()))
        for spot, some in zip(run.spots, run.parts):
            self.assertEqual(len(some), min(parts.MOST_PARTS, spot.count // RANKS), spot)


class Words(Made):
    def shown(self, found):
        out = io.StringIO()
        Console(file=out, width=220).print(compare_words.words(found))
        return out.getvalue()

    def test_what_is_said(self):
        moved = lines(10, 11, 20, 30, 48, 35)
        found = self.compared([self.made(SEED)], [self.made(SEED + 1, 150_000, sites=moved)])
        text = self.shown(found)
        self.assertRegex(text, r"made: 3 ranks")
        self.assertRegex(text, r"duration .* ms .*\+\d+ % \(\d+ to \d+\)")
        row = r"1 +ring\.c:48 step \(was :40\) +MPI_Barrier .* ms +\+1\d\.\d ms \(.*late participant \+"
        self.assertRegex(text, row)
        self.assertIn("other call sites do not differ.", text)
        self.assertIn("Note: of one run an interval tells how repeats", text)

    def test_nothing_differs(self):
        folder = self.made(SEED)
        self.assertIn("No call site differs: 7 compared.", self.shown(self.compared([folder], [folder])))

    def test_numbers(self):
        self.assertEqual(compare_words.percent_text(Change(0.0123, 0.005, 0.02)), "+1.2 % (0.5 to 2.0)")
        self.assertEqual(compare_words.percent_text(Change(1.5, 1.0, 2.0)), "+150 % (100 to 200)")
        self.assertEqual(compare_words.percent_text(Change(np.inf, -1, np.inf)), "from nothing")
        self.assertEqual(compare_words.percent_text(Change(-0.0001, -0.001, 0.0)), "+0.0 % (-0.1 to 0.0)")
        self.assertEqual(compare_words.time_change_text(Change(-17.6e9, -18.1e9, -17e9)), "-17.6 s (-18.1 to -17.0)")
        self.assertEqual(compare_words.time_change_text(Change(15, -2, 30)), "+15 ns (-2 to 30)")
        self.assertEqual(compare_words.time_change_text(Change(0, 0, 0)), "+0 ns (0 to 0)")

    def test_hostile_names_act_on_nothing(self):
        bad = lines(10, 11, 20, 30, 40, file="/src/\x1b[31m\u202ering.c", function="[bold]x[/nonsense]\n")
        text = self.shown(self.compared([self.made(SEED, sites=bad)], [self.made(SEED + 1, 150_000, sites=bad)]))
        self.assertNotIn("\x1b", text)
        self.assertNotIn("\u202e", text)
        self.assertIn("[bold]x[/nonsense]", text)


class Command(Made):
    def setUp(self):
        super().setUp()
        self.was, self.now = self.made(SEED), self.made(SEED + 1, 150_000)

    def test_each_form_of_fail_if(self):
        grown = self.was, self.now
        for text, code in (
            ("blocked > +5%", 3),
            ("blocked>+5%", 3),
            ("BLOCKED > +5 %", 3),
            ("blocked > +100000%", 0),
            ("time > +5%", 3),
            ("duration > +5%", 3),
            ("duration > +90%", 0),
            ("late participant > +5%", 3),
            ("late-participant > +1ms", 3),
            ("late_participant > +1000us", 3),
            ("late participant > +0.001s", 3),
            ("late participant > +1s", 0),
            ("late sender > +1s", 0),
            ("blocked > +1ms", 3),
            ("blocked > +1min", 0),
            ("blocked > 0%", 3),
            ("blocked < -5%", 0),
            ("blocked < +100000%", 3),
        ):
            got, _, err = said("--quiet", "--fail-if", text, *grown)
            self.assertEqual(got, code, (text, err))
            self.assertEqual("so it is" in err, code == 3, (text, err))
        for text, code in (("blocked < -5%", 3), ("duration < -1ms", 3), ("blocked > +5%", 0), ("blocked > -99%", 3)):
            self.assertEqual(said("-q", "--fail-if", text, *grown[::-1])[0], code, text)

    def test_several_conditions(self):
        first, second = ("--fail-if", "blocked > +5%"), ("--fail-if", "duration > +90%")
        code, out, err = said(*first, *second, self.was, self.now)
        self.assertEqual(code, 3)
        said_of_it = r"--fail-if 'blocked > \+5%': so it is\. blocked: \+\d+ % \(\d+ to \d+\), from .* ms to .* ms"
        self.assertRegex(err, said_of_it)
        self.assertIn("'duration > +90%': it is not so", err)
        self.assertIn("made: 3 ranks", out)
        self.assertEqual(said(*second, self.was, self.now)[0], 0)

    def test_lines_that_are_wrong(self):
        for words, why in (
            (["--fail-if", "blocked"], "a condition is a name"),
            (["--fail-if", ""], "a condition is a name"),
            (["--fail-if", "blocked > 5%"], r"a change has a sign: \+5%"),
            (["--fail-if", "blocked > +5"], "a change is in %"),
            (["--fail-if", "blocked > +5 parsecs"], "a change is in %"),
            (["--fail-if", "blocked > +1e9%"], "a change is in %"),
            (["--fail-if", "blocked > nan%"], "a condition is a name"),
            (["--fail-if", "blocked >= +5%"], "a condition is a name"),
            (["--fail-if", "bloked > +5%"], "did you mean 'blocked'"),
            (["--fail-if", "weather > +5%"], "there are duration, time, blocked, late sender"),
            (["--fail-if", "computing > +5%"], "there are duration"),
        ):
            code, out, err = said(*words, self.was, self.now)
            self.assertEqual((code, out), (2, ""), words)
            self.assertRegex(err, why)
        for words, why in (
            ([self.was], "and what else"),
            ([self.was, self.now, self.now], "which are before"),
            ([self.was, "--"], "no run after --"),
            (["--", self.was], "no run before --"),
            ([self.was, self.was, "--", self.now], "named twice"),
            ([self.was, self.now, "--", self.now], "named twice"),
            (["--nonsense", self.was, self.now], "nonsense"),
        ):
            code, out, err = said(*words)
            self.assertEqual(code, 2, (words, out, err))
            self.assertRegex(err, why)

    def test_sides(self):
        more = self.made(SEED + 2)
        for words in (
            [self.was, more, "--", self.now],
            ["--json", self.was, more, "--", self.now],
            [self.was, more, "--", self.now, "--json"],
        ):
            code, out, err = said(*words)
            self.assertEqual((code, err), (0, ""), words)
            if "--json" in words:
                data = json.loads(out)
                self.assertEqual(data["before"]["runs"], [str(self.was), str(more)])
                self.assertEqual(data["after"]["runs"], [str(self.now)])

    def test_the_last_two_here(self):
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        (self.folder / "headway-run-10").symlink_to(self.now)
        os.chdir(self.folder)
        data = json.loads(said("--json")[1])
        self.assertEqual((data["before"]["runs"], data["after"]["runs"]), (["headway-run-2"], ["headway-run-10"]))
        (self.folder / "empty").mkdir()
        os.chdir(self.folder / "empty")
        code, _, err = said()
        self.assertEqual(code, 2)
        self.assertIn("there are no two", err)

    def test_nothing_recorded(self):
        bad = self.folder / "bad"
        bad.mkdir()
        for folder in (self.folder / "none", bad):
            code, out, err = said(self.was, folder)
            self.assertEqual((code, out), (4, ""))
            self.assertIn(str(folder), err)
        (bad / "rank-0.hwr").write_bytes(random.Random(SEED).randbytes(1000))
        self.assertEqual(said(self.was, bad)[0], 4)

    def test_quiet_says_nothing(self):
        self.assertEqual(said("--quiet", self.was, self.now), (0, "", ""))
        code, out, err = said("--quiet", "--fail-if", "blocked > +5%", self.was, self.now)
        self.assertEqual((code, out, len(err.splitlines())), (3, "", 1))

    def test_color(self):
        self.assertIn("\x1b[", said("--color", self.was, self.now)[1])
        self.assertNotIn("\x1b[", said("--no-color", self.was, self.now)[1])

    def test_json_says_all_that_its_description_names(self):
        code, out, _ = said("--json", "--fail-if", "blocked > +5%", self.was, self.now)
        data = json.loads(out, parse_constant=self.fail)  # no NaN, no Infinity
        self.assertEqual((code, data["format"], data["version"]), (3, "headway-comparison", 1))
        for word in ("before", "after", "notes", "total", "hidden", "conditions", "sites"):
            self.assertIn(word, data)
        self.assertEqual(set(data["total"]), set(NAMES))
        self.assertEqual(data["total"]["late root"]["before"], 0)
        site = data["sites"][0]
        self.assertEqual((site["state"], site["call"], site["after"]["line"]), ("changed", "MPI_Barrier", 40))
        self.assertEqual(site["after"]["time"] - site["before"]["time"], site["change"]["time"]["value"])
        self.assertTrue(data["conditions"][0]["fails"])
        self.assertGreater(data["conditions"][0]["change"]["low"], 0.05)
        sums = sum(s["after"]["blocked"] for s in data["sites"])
        self.assertAlmostEqual(sums, data["total"]["blocked"]["after"], delta=10)
        halo = next(s for s in data["sites"] if s["call"] == "MPI_Irecv")
        self.assertLessEqual(halo["after"]["hidden"]["least"], halo["after"]["hidden"]["most"])


class Again_(unittest.TestCase):
    def test_student(self):
        """From tables."""
        table = (0.95, 1, 12.706), (0.95, 2, 4.303), (0.95, 10, 2.228), (0.99, 4, 4.604), (0.999, 4, 8.610)
        for level, n, wanted in table:
            self.assertAlmostEqual(student(level, n), wanted, delta=1e-3 * wanted)
        self.assertAlmostEqual(student(0.95, 1000), 1.9623, places=3)

    def test_intervals_hold_the_truth_as_often_as_they_say(self):
        """Each column is an experiment; runs of one kind, and of two."""
        trials, truth = 500, 2.0
        for n, m in ((3, 3), (5, 3), (20, 20)):
            random = np.random.default_rng(SEED)
            one = random.normal(10, 1, (n, trials)) / n
            other = random.normal(10 + truth, 1, (m, trials)) / m
            found = differences(Again(1).drawn(one, once=False), Again(2).drawn(other, once=False))
            hits = sum(change.low <= truth <= change.high for change in found)
            self.assertGreaterEqual(hits, 0.91 * trials, (n, m, SEED))
            self.assertLess(hits, trials, "an interval that is never wrong says nothing")

    def test_what_was_made_once_is_known_roughly(self):
        once = Again(1).drawn(np.full((1, 1), 100.0))
        more = Again(2).drawn(np.full((1, 1), 120.0))
        much = Again(2).drawn(np.full((1, 1), 300.0))
        self.assertFalse(differences(once, more)[0].clear)
        self.assertTrue(differences(once, much)[0].clear)
        self.assertAlmostEqual(float(once.draws.std()), 100 * ONCE, delta=5)
        often = (Again(seed).drawn(np.full((FEW, 1), each)) for seed, each in ((1, 20.0), (2, 24.0)))
        self.assertTrue(differences(*often)[0].clear)

    def test_from_nothing(self):
        nothing = Again(1).drawn(np.zeros((20, 1)))
        some = Again(2).drawn(np.full((20, 1), 5.0))
        self.assertEqual(ratios(nothing, some), [Change(np.inf, np.inf, np.inf)])
        self.assertEqual(ratios(nothing, nothing), [Change(0, 0, 0)])
        self.assertEqual(ratios(some, nothing)[0].value, -1)
        self.assertTrue(conditions.read("rest > +900%").holds(np.inf, np.inf))


class Sites(unittest.TestCase):
    def spots(self, *rows, file="/a/src/halo.c", function="exchange", module="/a/prog", count=1):
        return [Spot(Site(module, 100 * line, file, line, function), call, count) for call, line in rows]

    def unlined(self, *rows, function="", module="/a/prog"):
        return [Spot(Site(module, offset, "", 0, function), call, 1) for call, offset in rows]

    def test_the_same_sites(self):
        some = self.spots(("MPI_Wait", 10), ("MPI_Send", 20))
        self.assertEqual(pair(some, some), [0, 1])
        self.assertEqual(pair(some, some[::-1]), [1, 0])
        self.assertEqual(pair([], some), [-1, -1])
        self.assertEqual(pair(some, []), [])

    def test_all_moved(self):
        rows = [("MPI_Irecv", 10), ("MPI_Isend", 11), ("MPI_Wait", 15), ("MPI_Wait", 16)]
        self.assertEqual(pair(self.spots(*rows), self.spots(*((c, n + 40) for c, n in rows))), [0, 1, 2, 3])

    def test_a_call_of_the_same_kind_before_it(self):
        """The old one stands where it stood between its neighbours."""
        before = self.spots(("MPI_Irecv", 10), ("MPI_Wait", 20), ("MPI_Send", 25))
        after = self.spots(("MPI_Irecv", 10), ("MPI_Wait", 12), ("MPI_Wait", 22), ("MPI_Send", 27))
        self.assertEqual(pair(before, after), [0, -1, 1, 2])

    def test_a_call_that_went(self):
        before = self.spots(("MPI_Irecv", 10), ("MPI_Wait", 12), ("MPI_Wait", 22), ("MPI_Send", 27))
        after = self.spots(("MPI_Irecv", 10), ("MPI_Wait", 20), ("MPI_Send", 25))
        self.assertEqual(pair(before, after), [0, 2, 3])

    def test_another_function_or_file_is_another_site(self):
        before = self.spots(("MPI_Wait", 10))
        self.assertEqual(pair(before, self.spots(("MPI_Wait", 10), function="other")), [-1])
        self.assertEqual(pair(before, self.spots(("MPI_Wait", 10), file="/a/src/other.c")), [-1])
        self.assertEqual(pair(before, self.spots(("MPI_Test", 10))), [-1])

    def test_built_in_another_folder(self):
        before = self.spots(("MPI_Wait", 10)) + self.spots(("MPI_Wait", 10), file="/a/lib/halo.c")
        after = self.spots(("MPI_Wait", 11), file="/b/lib/halo.c") + self.spots(("MPI_Wait", 12), file="/b/src/halo.c")
        self.assertEqual(pair(before, after), [1, 0])

    def test_without_lines_the_order_counts(self):
        rows = [("MPI_Irecv", 0x100), ("MPI_Wait", 0x180), ("MPI_Send", 0x200)]
        moved = self.unlined(*((c, n + 64) for c, n in rows), module="/b/prog")
        self.assertEqual(pair(self.unlined(*rows), moved), [0, 1, 2])
        # Functions are known, though no lines: the second one is new.
        before = self.unlined(("MPI_Wait", 0x100), function="one+0x10")
        after = self.unlined(("MPI_Wait", 0x80), function="two+0x8")
        after += self.unlined(("MPI_Wait", 0x190), function="one+0x24")
        self.assertEqual(pair(before, after), [-1, 0])

    def test_lines_on_one_side_alone(self):
        before = self.unlined(("MPI_Irecv", 1000), ("MPI_Wait", 1500))
        after = self.spots(("MPI_Irecv", 11), ("MPI_Wait", 16))
        self.assertEqual(pair(before, after), [0, 1])

    def test_very_many(self):
        rows = [("MPI_Wait" if n % 2 else "MPI_Isend", n) for n in range(1, 1200)]
        self.assertGreater(len(rows) ** 2, same_sites.MOST_PAIRS)
        self.assertEqual(pair(self.spots(*rows), self.spots(*((c, n + 5) for c, n in rows))), list(range(len(rows))))


class BuiltAgain(Folder):
    def run_of(self, module, started):
        site = Site(str(module), 16, "/src/a.c", 3, "main")
        rank = Rank(0, "h", "b", {"started": started}, np.zeros(0), np.zeros(0), np.zeros(0), [], [], {1: site})
        return Run("headway-run-1", [rank])

    def test_a_program_that_is_younger_than_its_recording_has_no_lines(self):
        module = self.folder / "prog"
        module.write_text("")
        now = module.stat().st_mtime_ns
        kept, lost = self.run_of(module, now + 1), self.run_of(module, now - 1)
        for run in (kept, lost):
            compare_command.forget_lines(run)
        self.assertEqual((kept.ranks[0].sites[1].line, kept.notes), (3, []))
        self.assertEqual(lost.ranks[0].sites[1], Site(str(module), 16))
        self.assertIn("was built again since it was recorded", lost.notes[0])
        for started in (None, "x", -1, 0):
            run = self.run_of(module, started)
            compare_command.forget_lines(run)
            self.assertEqual(run.notes, [])
        run = self.run_of("/not/there\0", 1)
        compare_command.forget_lines(run)
        self.assertEqual(run.notes, [])


class Conditions(unittest.TestCase):
    def test_what_is_read(self):
        one = conditions.read("  Late-Sender  >  + 20 ms ")
        self.assertEqual((one.name, one.more, one.limit, one.share), ("late sender", True, 20e6, False))
        one = conditions.read("duration < -2.5%")
        self.assertEqual((one.name, one.more, one.share), ("duration", False, True))
        self.assertAlmostEqual(one.limit, -0.025)
        self.assertEqual(conditions.read("rest > +1µs").limit, 1000)
        for name in NAMES:
            self.assertEqual(conditions.read(f"{name} > +1%").name, name)

    def test_the_end_that_counts(self):
        more, less = conditions.read("blocked > +5%"), conditions.read("blocked < -5%")
        for low, high, grew, fell in ((0.06, 0.2, 1, 0), (0.04, 0.2, 0, 0), (-0.2, -0.06, 0, 1), (-0.2, -0.04, 0, 0)):
            self.assertEqual((more.holds(low, high), less.holds(low, high)), (grew, fell))

    def test_control_codes_of_a_bad_one_are_not_printed(self):
        with self.assertRaises(BadLine) as caught:
            conditions.read("\x1b[31m > +5%")
        self.assertNotIn("\x1b", str(caught.exception))


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        SEED = int(sys.argv.pop(1))
    print(f"from seed {SEED}", flush=True)
    unittest.main(verbosity=2)
