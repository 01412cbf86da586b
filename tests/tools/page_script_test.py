#!/usr/bin/env python3
"""What the time line's page finds in view (page_view.js), run by a JavaScript engine and held against Python: bounds of
zooming, rows, calls under a point, the longest waits, messages, levels of detail.

    page_script_test.py [SEED]
"""

import decimal
import importlib.util
import json
import random
import sys
import unittest

import support
from support import drawn_seed, need_packages

need_packages("numpy", "rich", "typer")
if importlib.util.find_spec("quickjs") is None:
    print(f"skipped: {sys.executable} has no quickjs; `scripts/python-env.sh --dev` installs it")
    sys.exit(77)

import numpy as np  # noqa: E402
import quickjs  # noqa: E402
from headway.record import calls, page  # noqa: E402

SEED = drawn_seed()
COUNT = 200  # draws of a test
# Sets and messages as the page unpacks them: arrays of numbers.
PROLOGUE = """
const arrays = o => Object.fromEntries(Object.entries(o).map(([k, v]) => [k, Array.isArray(v) ? Float64Array.from(v) : v]));
const plain = v => ArrayBuffer.isView(v) ? [...v] : Array.isArray(v) ? v.map(plain)
  : v !== null && typeof v === "object" ? Object.fromEntries(Object.entries(v).map(([k, x]) => [k, plain(x)])) : v;
const set = (o, rows) => View.index(arrays(o), rows);
"""


class Script(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.engine = quickjs.Context()
        cls.engine.eval((page.HERE / "page_view.js").read_text())
        cls.engine.eval(PROLOGUE)

    def setUp(self):
        self.draw = random.Random(SEED)

    def js(self, text, **given):
        """What that function's body returns; `given` are its names."""
        names = ",".join(given)
        values = ",".join(json.dumps(value) for value in given.values())
        return json.loads(self.engine.eval(f"JSON.stringify(plain((({names}) => {{ {text} }})({values})))"))

    def view(self, duration=10**6, rows=8, **more):
        t0, t1 = sorted(self.draw.uniform(-0.2 * duration, 1.2 * duration) for _ in range(2))
        seen = self.draw.uniform(0, 1.5 * rows)
        return {"t0": t0, "t1": t1, "top": self.draw.uniform(-rows, rows), "seen": seen} | more

    def made(self, rows, count, deep=True):
        """A set: events by row and begin, some inside others, of one or several threads."""
        events = []
        for row in range(rows):
            for _ in range(self.draw.randrange(count)):
                begin = self.draw.randrange(1000)
                what = self.draw.choice([0, 0, 0, 1, 2, 3, 6])
                long = self.draw.choice([0, 1, 5, 40, 300 if deep else 40])
                events.append((row, begin, long, what, self.draw.randrange(3), self.draw.randrange(3)))
        events.sort(key=lambda event: event[:2])
        names = ("row", "begin", "time", "what", "thread", "depth")
        found = {name: [event[at] for event in events] for at, name in enumerate(names)}
        return found | {name: [self.draw.randrange(6) for _ in events] for name in ("name", "site")}


class Views(Script):
    def test_bounds(self):
        """As near to what was asked for as there can be."""
        for _ in range(COUNT):
            duration, rows = self.draw.choice([0, 20, 1000, 10**9]), self.draw.choice([1, 3, 40, 4096])
            asked = self.view(duration, rows)
            got = self.js("View.bound(v, d, r); return v;", v=asked, d=duration, r=rows)
            wide = min(max(asked["t1"] - asked["t0"], min(duration, 50)), duration)
            self.assertAlmostEqual(got["t1"] - got["t0"], wide, 3)
            self.assertAlmostEqual(got["t0"], min(max(asked["t0"], 0), duration - wide), 3)
            seen = min(max(asked["seen"], 1), rows)
            self.assertEqual((got["seen"], got["top"]), (seen, min(max(asked["top"], 0), rows - seen)), asked)
            again = self.js("View.bound(v, d, r); return v;", v=got, d=duration, r=rows)
            for name in got:
                self.assertAlmostEqual(again[name], got[name], 3)

    def test_no_rows(self):
        got = self.js("View.bound(v, d, r); return v;", v=self.view(rows=0), d=1000, r=0)
        self.assertEqual((got["seen"], got["top"]), (1, 0))

    def test_zooming_keeps_what_is_under_the_pointer(self):
        for _ in range(COUNT):
            view, factor = self.view(), self.draw.uniform(0.1, 4)
            at = self.draw.uniform(view["t0"], view["t1"])
            got = self.js("View.zoom(v, f, at); return v;", v=view, f=factor, at=at)
            before, after = (x["t1"] - x["t0"] for x in (view, got))
            self.assertAlmostEqual(after, before * factor, 3)
            self.assertAlmostEqual((at - got["t0"]) * before, (at - view["t0"]) * after, delta=1e-6 * before * after)

    def test_zooming_rows(self):
        for _ in range(COUNT):
            rows, factor = self.draw.choice([1, 5, 300]), self.draw.uniform(0.1, 4)
            view = self.view(rows=rows, seen=self.draw.uniform(1, rows))
            at = self.draw.uniform(view["top"], view["top"] + view["seen"])
            got = self.js("View.zoomRows(v, f, at, r); return v;", v=view, f=factor, at=at, r=rows)
            self.assertEqual(got["seen"], max(1, min(rows, view["seen"] * factor)))
            self.assertAlmostEqual((at - got["top"]) / got["seen"], (at - view["top"]) / view["seen"], 6)

    def test_going_to_a_call(self):
        """It is whole in view, and in the middle where the run goes on long enough."""
        for _ in range(COUNT):
            rows, duration = self.draw.choice([1, 30, 500]), 10**6
            begin, row = self.draw.randrange(duration), self.draw.randrange(rows)
            long = self.draw.randrange(1, max(2, duration - begin))
            view = self.view(rows=rows, seen=self.draw.uniform(1, rows))
            text = "View.go(v, rows, row, begin, long); const asked = {...v}; View.bound(v, d, rows); return [asked, v];"
            asked, got = self.js(text, v=view, rows=rows, row=row, begin=begin, long=long, d=duration)
            self.assertAlmostEqual((asked["t0"] + asked["t1"]) / 2, begin + long / 2, 6)
            self.assertEqual(asked["t1"] - asked["t0"], max(1000, 2 * long))
            self.assertTrue(got["t0"] <= begin and begin + long <= got["t1"], (begin, long, got))
            self.assertTrue(got["top"] <= row and row + 1 <= got["top"] + got["seen"] + 1e-9, (row, got))
            self.assertLessEqual(got["seen"], max(24, min(rows, 40)))

    def test_rows_in_view(self):
        for _ in range(COUNT):
            rows = self.draw.choice([1, 7, 1000])
            view = self.js("View.bound(v, 1000, r); return v;", v=self.view(1000, rows), r=rows)
            first, last = self.js("return View.rowsIn(v, r);", v=view, r=rows)
            seen = [r for r in range(rows) if r + 1 > view["top"] and r < view["top"] + view["seen"]]
            self.assertTrue(first <= seen[0] and seen[-1] <= last, (view, first, last))
            self.assertTrue(seen[0] - first <= 1 and last - seen[-1] <= 1 and last < rows)


class Sets(Script):
    def test_what_lies_in_a_stretch_is_found_by_halving(self):
        for _ in range(COUNT):
            rows = self.draw.randrange(1, 5)
            events = self.made(rows, 30)
            t0, t1 = sorted(self.draw.randrange(-50, 1400) for _ in range(2))
            text = "const s = set(e, r); return [...Array(r).keys()].map(row => View.range(s, row, t0, t1));"
            for row, (a, b) in enumerate(self.js(text, e=events, r=rows, t0=t0, t1=t1)):
                own = [i for i, r in enumerate(events["row"]) if r == row]
                meant = [i for i in own if events["begin"][i] <= t1 and events["begin"][i] + events["time"][i] >= t0]
                self.assertEqual([i for i in meant if not a <= i < b], [], "none is missed")
                if a < b:  # and both ends are as near as they can be
                    self.assertIn(a, meant)
                    self.assertLessEqual(events["begin"][b - 1], t1)

    def test_threads_have_lanes(self):
        for _ in range(COUNT // 4):
            rows = self.draw.randrange(1, 5)
            events = self.made(rows, 12)
            got = self.js("const s = set(e, r); return [s.lanes, s.lane];", e=events, r=rows)
            for row in range(rows):
                own = [i for i, r in enumerate(events["row"]) if r == row]
                threads = sorted({events["thread"][i] for i in own if events["what"][i] <= calls.CROSSING})
                self.assertEqual(got[0][row], max(1, len(threads)))
                for i in own:
                    here = threads.index(events["thread"][i]) if events["thread"][i] in threads and len(threads) > 1 else 0
                    self.assertEqual(got[1][i], here)

    def test_numbers_of_tracks(self):
        for name in page.SCRIPTS:
            self.assertIn(f"CROSSING = {calls.CROSSING}", (page.HERE / name).read_text())

    def test_few_enough_to_be_drawn_one_by_one(self):
        seen = set()
        for _ in range(COUNT):
            events, most = self.made(4, 20, deep=False), self.draw.randrange(0, 50)
            view = self.js("View.bound(v, 1040, 4); return v;", v=self.view(1040, 4))
            first, last = self.js("return View.rowsIn(v, 4);", v=view)
            text = "const s = set(e, 4); const n = []; for (let r = first; r <= last; r++) n.push(View.range(s, r, v.t0, v.t1));"
            text += "return [View.fewEnough(s, v, 4, most), n];"
            got, ranges = self.js(text, e=events, v=view, most=most, first=first, last=last)
            self.assertEqual(got, sum(b - a for a, b in ranges) <= most)
            seen.add(got)
        self.assertEqual(seen, {False, True})

    def test_calls_of_stretches_in_view(self):
        for _ in range(COUNT):
            view, stretches = self.view(1000, 8, seen=4), []
            for _ in range(self.draw.randrange(4)):
                a, b = sorted(self.draw.sample(range(1000), 2))
                stretches.append({"from": a, "to": b, "calls": self.draw.randrange(1, 10**6)})
            wanted = 0.0
            for one in stretches:
                part = min(one["to"], view["t1"]) - max(one["from"], view["t0"])
                self.assertEqual(self.js("return View.isIn(v, s);", v=view, s=one), part > 0)
                wanted += max(0.0, part) / (one["to"] - one["from"]) * one["calls"] / 2
            got = self.js("return View.callsIn(s, v, 8);", s=stretches, v=view)
            self.assertAlmostEqual(got, wanted, delta=1e-6 * (1 + wanted))

    def test_the_call_under_a_point(self):
        none = 0
        for _ in range(COUNT):
            several = [self.made(3, 15) for _ in range(2)]
            row, t, near, hidden = self.draw.randrange(3), self.draw.randrange(1200), self.draw.choice([0, 2, 30]), 6
            text = "const all = es.map(e => set(e, 3)); const f = View.nearest(all, row, t, near, (s, i) => s.what[i] !== hidden,"
            text += " (s, i) => s.depth[i] === 1); return f && [all.indexOf(f.set), f.i];"
            got = self.js(text, es=several, row=row, t=t, near=near, hidden=hidden)
            best = []
            for number, events in enumerate(several):
                for i, begin in enumerate(events["begin"]):
                    end = begin + events["time"][i]
                    if events["row"][i] == row and end >= t - near and begin <= t + near and events["what"][i] != hidden:
                        depth = events["depth"][i]
                        worth = 4 * (depth == 1) + 2 * (begin <= t <= end) + depth / 256
                        best.append((-worth, number, i))
            self.assertEqual(got, list(min(best)[1:]) if best else None)
            none += not best
        self.assertTrue(0 < none < COUNT)

    def test_what_is_looked_for_the_longest_first(self):
        texts = ["", "MPI_Wait", "MPI_Waitall", "halo.c:12 exchange", "MPI_Send", "HALO.c:9"]
        for search in ("wait", "mpi_", "halo.c", "nothing", "c:9"):
            events = self.made(4, 30)
            text = "const s = set(e, 4), m = View.matchingTexts(texts, search); return [m, View.longest(s, m)];"
            matching, got = self.js(text, e=events, texts=texts, search=search)
            self.assertEqual(matching, [int(bool(one) and search in one.lower()) for one in texts])
            wanted = [i for i in range(len(events["name"])) if matching[events["name"][i]] or matching[events["site"][i]]]
            self.assertEqual(got, sorted(wanted, key=lambda i: -events["time"][i]), "equal ones stay in their order")


class Messages(Script):
    # Pixels: 100 to 500 are 0 to 1000 ns of time, 10 to 90 are the rows in view.
    TO = (
        "{x: t => 100 + (t - v.t0) * 400 / (v.t1 - v.t0), y: r => 10 + (r - v.top) * 80 / v.seen, "
        "box: {x: 100, y: 10, w: 400, h: 80}, least}"
    )

    def drawn(self, count=60, rows=8):
        sent = [self.draw.randrange(1000) for _ in range(count)]
        return {
            "sent": sent, "came": [s + self.draw.choice([0, 1, 3, 200]) for s in sent],
            "source": [self.draw.randrange(rows) for _ in sent], "target": [self.draw.randrange(rows) for _ in sent],
        }  # fmt: skip

    def test_those_in_view(self):
        for _ in range(COUNT):
            m, view = self.drawn(), self.js("View.bound(v, 1000, 8); return v;", v=self.view(1000))
            most, least = self.draw.choice([5, 1000]), self.draw.choice([0, 4])
            text = f"return View.arrowsIn(arrays(m), v, {self.TO}, most, null);"
            got = self.js(text, m=m, v=view, most=most, least=least)
            wanted = []
            for sent, came, source, target in zip(m["sent"], m["came"], m["source"], m["target"]):
                x0, x1 = (100 + (t - view["t0"]) * 400 / (view["t1"] - view["t0"]) for t in (sent, came))
                y0, y1 = (10 + (r + 0.5 - view["top"]) * 80 / view["seen"] for r in (source, target))
                if came < view["t0"] or sent > view["t1"] or max(y0, y1) < 10 or min(y0, y1) > 90:
                    continue
                if abs(x1 - x0) + abs(y1 - y0) >= least:
                    wanted.append([x0, y0, x1, y1, False])
            self.assertEqual(len(got), min(most, len(wanted)))
            for one, other in zip(got, wanted):
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-6)

    def test_those_of_a_call(self):
        """Sent where it begins, or come where it ends; by row, too."""
        for _ in range(COUNT):
            m = self.drawn(rows=2)
            call = {"row": self.draw.randrange(2), "begin": self.draw.choice(m["sent"]), "time": self.draw.choice([0, 1, 3, 200])}
            got = self.js("const a = arrays(m); return m.sent.map((_, i) => View.isOf(a, i, call));", m=m, call=call)
            end = call["begin"] + call["time"]
            wanted = [
                (source == call["row"] and sent == call["begin"]) or (target == call["row"] and came == end)
                for sent, came, source, target in zip(m["sent"], m["came"], m["source"], m["target"])
            ]
            self.assertEqual(got, wanted)
            self.assertEqual(self.js("const a = arrays(m); return View.isOf(a, 0, null);", m=m), False)

    def test_a_curtain_is_not_drawn(self):
        seen = [[0, 0, self.draw.choice([0, 2, -2, 3, -3, 50]), 9, self.draw.random() < 0.2] for _ in range(40)]
        self.assertEqual(self.js("return View.withoutCurtain(s, 40, 3);", s=seen), seen)
        got = self.js("return View.withoutCurtain(s, 39, 3);", s=seen)
        self.assertEqual(got, [one for one in seen if one[4] or abs(one[2]) >= 3])
        self.assertTrue(0 < len(got) < 40)


class Levels(Script):
    def test_halves(self):
        for bins, rows in ((8, 4), (2, 1), (6, 5), (16, 7)):
            plane = np.array([self.draw.randrange(256) for _ in range(bins * rows)]).reshape(rows, bins)
            of = {"bins": bins, "rows": rows, "plane": plane.ravel().tolist()}
            text = "const from = {bins: of.bins, rows: of.rows, planes: [[3, Uint8Array.from(of.plane)]]};"
            narrow, low = self.js(text + "return [View.halfOfBins(from), View.halfOfRows(from)];", of=of)
            wanted = (plane[:, ::2] + plane[:, 1::2] + 1) // 2
            self.assertEqual(narrow, {"bins": bins // 2, "rows": rows, "planes": [[3, wanted.ravel().tolist()]]})
            both = np.concatenate([plane, plane[-1:]]) if rows % 2 else plane  # the last one alone stays
            wanted = (both[::2] + both[1::2] + 1) // 2
            self.assertEqual(low, {"bins": bins, "rows": len(wanted), "planes": [[3, wanted.ravel().tolist()]]})

    def test_which_level(self):
        for per_pixel, most, wanted in ((0.1, 9, 0), (1, 9, 0), (1.9, 9, 0), (2, 9, 1), (7, 9, 2), (1000, 3, 3)):
            self.assertEqual(self.js("return View.levelFor(p, m);", p=per_pixel, m=most), wanted)

    def test_bins_of_pixels(self):
        for _ in range(COUNT // 4):
            view = self.js("View.bound(v, 1000, 8); return v;", v=self.view(1000))
            wide, bins = self.draw.randrange(1, 50), self.draw.choice([1, 16, 256])
            got = self.js("return View.binsOf(v, 1000, b, w);", v=view, b=bins, w=wide)
            middle = view["t0"] + (np.arange(wide) + 0.5) * (view["t1"] - view["t0"]) / wide
            self.assertEqual(got, np.minimum(bins - 1, np.floor(middle / 1000 * bins)).astype(int).tolist())


class Texts(Script):
    def digits(self, value, count):
        """As JavaScript rounds: ties away from zero, of the exact value."""
        exact = decimal.Context(prec=count, rounding=decimal.ROUND_HALF_UP).create_decimal(decimal.Decimal(value))
        return f"{float(exact):.15g}"

    def test_times_and_sizes(self):
        for _ in range(COUNT):
            value = round(10 ** self.draw.uniform(0, 13)) + 0.25
            unit, size = next(((u, s) for u, s in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)) if value >= s), ("ns", 1))
            wanted = f"{self.digits(value / size, 5)} {unit}" if size > 1 else f"{round(value)} ns"
            self.assertEqual(self.js("return View.time(t);", t=value), wanted)
            number = round(10 ** self.draw.uniform(0, 14))
            pairs = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3))
            unit, size = next(((u, s) for u, s in pairs if number >= s), ("B", 1))
            wanted = f"{self.digits(number / size, 3)} {unit}" if size > 1 else f"{number} B"
            self.assertEqual(self.js("return View.bytes(n);", n=number), wanted)


if __name__ == "__main__":
    support.main(globals())
