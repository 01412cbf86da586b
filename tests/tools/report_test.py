#!/usr/bin/env python3
"""The page of `headway advise`: it has all advice, sites and numbers that the JSON has, loads nothing, lets no name of a
recording act, and is written whole or not at all."""

import base64
import contextlib
import hashlib
import html.parser
import io
import json
import random
import re
import subprocess
import sys
import unittest
from pathlib import Path
from types import SimpleNamespace

from support import Folder, need_packages

need_packages("typer", "numpy", "rich")

import advise_made  # noqa: E402
import calibrated_made  # noqa: E402
import numpy as np  # noqa: E402
import record_made  # noqa: E402
import waiting_made  # noqa: E402
from trace_made import HOSTILE, Maker, run_of  # noqa: E402

from headway.record import (  # noqa: E402
    advise, advise_command, advise_json, by_site, classes, command, edits, library, matrix, models, page, reading, report,
    tried_words, trying, waiting, whole,
)  # fmt: skip
from headway.record.model import RECEIVE, SEND, GlobalComm, Site  # noqa: E402

# Elements that have no end.
SINGLE = ("meta", "br", "input")
# Whose end may be left out, and what ends them.
LEFT_OUT = {"td": ("td", "th", "tr"), "th": ("td", "th", "tr"), "tr": ("tr",), "li": ("li",)}


class Elements(html.parser.HTMLParser):
    """What a browser would see: elements in their order, each with the text and the elements in it."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.top = SimpleNamespace(tag="", given={}, words="", inside=[])
        self.open = [self.top]
        self.every = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        while self.open[-1].tag in LEFT_OUT and tag in LEFT_OUT[self.open[-1].tag]:
            self.open.pop()
            if tag != "tr":
                break
        one = SimpleNamespace(tag=tag, given=dict(attrs), words="", inside=[])
        self.open[-1].inside.append(one)
        self.every.append(one)
        if tag not in SINGLE:
            self.open.append(one)

    def handle_endtag(self, tag):
        if any(one.tag == tag for one in self.open):
            while self.open.pop().tag != tag:
                pass

    def handle_data(self, data):
        for one in self.open:
            one.words += data

    def of(self, tag, **given):
        return [one for one in self.every if one.tag == tag and given.items() <= one.given.items()]

    def table(self, head):
        """Rows of the table whose first column has that name: cells."""
        for table in self.of("table"):
            heads = [one.words for one in inside(table, "th")]
            if heads and heads[0] == head:
                return heads, [inside(row, "td") for row in inside(table, "tr") if inside(row, "td")]
        raise AssertionError(f"no table of {head}")


def inside(one, tag):
    found = []
    for child in one.inside:
        found += ([child] if child.tag == tag else []) + inside(child, tag)
    return found


def value(cell, name="v"):
    return float(cell.given[f"data-{name}"])


def told_of(run, facts=None, tried=None):
    waits = waiting.classify(run)
    given = advise.advise(waits) if facts is None else advise.advise(waits, models.Known.of(facts), facts)
    return report.Told(by_site.report(waits), given, library.report(run), tried)


def simulated(folder, made, seed=1):
    record_made.simulate(folder, made.programs, seed=seed, progress=made.progress, jitter=0.02)
    return folder


def no_advice():
    """Two ranks that do next to nothing."""
    one = [("compute", 100_000), ("barrier@55", "world")] * 5
    return SimpleNamespace(programs=[one, one], progress="thread")


def hostile():
    makers = [Maker(rank, 2, host=HOSTILE) for rank in range(2)]
    for m in makers:
        m.functions = [HOSTILE + n for n in m.functions]
        m.sites = {n: Site(file="/" + HOSTILE, line=n, function="</td></table><script>alert(2)</script>") for n in (1, 2)}
    a, b = makers
    for n in range(30):
        t = n * 1_000_000
        sent = a.call("MPI_Send", t + 500_000, t + 600_000, flags=SEND, peer=1, tag=1, bytes=5000)
        came = b.call("MPI_Recv", t, t + 600_000, flags=RECEIVE, peer=0, tag=1, bytes=5000, site=2)
    flow = [(0, 1, n, n, n, n, 5000, 1, 0) for n in range(30)]
    assert (sent, came) == (29, 29)
    run = run_of(makers, flow, notes=[HOSTILE], comms=[GlobalComm(np.arange(2), HOSTILE, "")])
    run.folder = "/tmp/" + HOSTILE.replace("/", "")
    for rank in run.ranks:
        rank.header["program"] = HOSTILE
    return run


class Numbers(unittest.TestCase):
    """Of a run in which all classes of waiting occur."""

    @classmethod
    def setUpClass(cls):
        made = waiting_made.drawn(random.Random(12), steps=80)
        cls.run_ = made.run()
        cls.run_.notes.append("1 of 3 files was cut short")
        cls.told = told_of(cls.run_)
        cls.text = report.render(cls.told)
        cls.page = Elements(cls.text)
        cls.json = json.loads(json.dumps(by_site.as_json(cls.told.report)))

    def test_each_class(self):
        heads, rows = self.page.table("class")
        found = {row[0].words: value(row[2]) for row in rows}
        self.assertEqual(found, {name: ns for name, ns in self.json["classes"].items() if ns})
        self.assertGreater(len(found), 5)
        self.assertEqual(sorted(found.values(), reverse=True), list(found.values()))
        self.assertEqual([row[3].words for row in rows], [words_share(ns, self.told.report.whole) for ns in found.values()])

    def test_the_bar(self):
        """As wide as the shares, in the classes' colours."""
        first = self.page.of("svg")[0]
        parts = {one.given["class"]: float(one.given["width"]) / 1000 for one in inside(first, "rect")}
        self.assertAlmostEqual(sum(parts.values()), 1, 2)
        for name, ns in self.json["classes"].items():
            kind = f"k{classes.NAMES.index(name)}"
            self.assertAlmostEqual(parts.get(kind, 0), ns / self.told.report.whole, 3)
        (look,) = self.page.of("style")
        self.assertIn(f".k2 {{ background: {classes.CLASSES[2].colour}; fill: {classes.CLASSES[2].colour}; }}", look.words)

    def test_hidden_and_efficiency(self):
        (table,) = self.page.of("table", **{"class": "gauges"})
        gauges = {name.words: number for name, _, number in (inside(row, "td") for row in inside(table, "tr"))}
        hidden, e = self.json["hidden"], self.json["efficiency"]
        self.assertEqual(value(gauges["hidden communication"], "least"), rounded(hidden["least"]))
        self.assertEqual(value(gauges["hidden communication"], "most"), rounded(hidden["most"]))
        self.assertLess(hidden["least"], hidden["most"])
        self.assertEqual(value(gauges["parallel efficiency"]), rounded(e["parallel"]))
        for name, of in (("= load balance", "balance"), ("× serialisation", "serialisation"), ("× transfer", "transfer")):
            self.assertEqual(value(gauges[name]), rounded(e[of]), name)
        for line in by_site.of_run(self.told.report):
            self.assertIn(line[1:], self.page.top.words)

    def test_each_site(self):
        heads, rows = self.page.table("where")
        sites = self.json["sites"]
        self.assertEqual(len(rows), len(sites))
        self.assertGreater(len(sites), 15)
        at = {head: n for n, head in enumerate(heads)}
        for cells, site, row in zip(rows, sites, self.told.report.rows):
            self.assertEqual(cells[at["where"]].words, f"{site['file'].rsplit('/', 1)[-1]}:{site['line']} {site['function']}")
            self.assertEqual(cells[at["call"]].words, site["call"])
            self.assertEqual(cells[at["because"]].words, by_site.because(row))
            for head, name in (("blocked", "blocked"), ("calls", "count"), ("time", "time")):
                self.assertEqual(value(cells[at[head]]), site[name], name)
            for name, ns in site["classes"].items():
                self.assertEqual(value(cells[at[name]]) if name in at else 0, ns, name)
            hidden = cells[at["hidden"]]
            if site["hidden"] and site["hidden"]["need"]:
                for name in ("least", "most"):
                    self.assertEqual(value(hidden, name), site["hidden"][name])
            else:
                self.assertEqual(hidden.words, "")
        self.assertTrue(any(cells[at["because"]].words for cells in rows))
        self.assertTrue(any("to" in cells[at["hidden"]].words for cells in rows))

    def test_the_matrix(self):
        found = matrix.matrix(self.told.report.waiting)
        figures = self.page.of("figure")
        captions = [inside(figure, "figcaption")[0].words for figure in figures]
        self.assertEqual([text.split(":")[0] for text in captions], ["Bytes", "Waiting"])
        for figure, column in zip(figures, (found.bytes, found.waiting)):
            cells = {(int(one.given["y"]), int(one.given["x"])): one for g in inside(figure, "g") for one in inside(g, "rect")}
            wanted = {(a, b): v for a, b, v in zip(found.source.tolist(), found.target.tolist(), column.tolist()) if v}
            self.assertEqual(set(cells), set(wanted))
            most = max(wanted.values())
            for at, one in cells.items():
                shade = int(one.given["class"][1:])
                if wanted[at] == most:
                    self.assertEqual(shade, report.SHADES)
                elif shade > 1:
                    self.assertLessEqual(2.0 ** (shade - report.SHADES), wanted[at] / most)
                    self.assertLess(wanted[at] / most, 2.0 ** (shade - report.SHADES + 1))
        heads, rows = self.page.table("from rank")
        pairs = {(value(a), value(b)): (value(n), value(size), value(waited)) for a, b, n, size, waited in rows}
        wanted = zip(found.source, found.target, zip(found.messages, found.bytes, found.waiting))
        self.assertLessEqual(pairs.items(), {(a, b): tuple(map(float, of)) for a, b, of in wanted}.items())
        self.assertEqual(len(rows), min(len(found.source), page.MOST_PAIRS))

    def test_notes(self):
        shown = [one.words for one in self.page.of("p", **{"class": "note"})]
        self.assertIn("1 of 3 files was cut short", shown)
        for note in self.json["run"]["notes"]:
            self.assertIn(note, shown)

    def test_its_parts_are_in_order(self):
        wanted = ["Where the time went", "What to change", "By call site", "Who sends to whom", "Notes"]
        self.assertEqual([one.words for one in self.page.of("h2")], wanted)
        self.assertIn("--json", self.page.top.words)

    def test_without_a_network(self):
        self.assertNotRegex(self.text, r"https?:|//|@import|url\(|<script|<link|<img|<iframe|<object")
        for one in self.page.every:
            self.assertFalse({"src", "href", "style", "srcset", "action", "data"} & set(one.given), one)
            self.assertFalse([name for name in one.given if name.startswith("on")], one)
        (policy,) = self.page.of("meta", **{"http-equiv": "Content-Security-Policy"})
        (look,) = self.page.of("style")
        digest = base64.b64encode(hashlib.sha256(look.words.encode()).digest()).decode()
        self.assertEqual(policy.given["content"], f"default-src 'none'; style-src 'sha256-{digest}'")

    def test_light_dark_and_narrow(self):
        (look,) = self.page.of("style")
        self.assertIn("@media (prefers-color-scheme: dark)", look.words)
        named = set(re.findall(r"var\((--\w+)\)", look.words))
        for scheme in re.findall(r":root \{([^}]*--[^}]*)\}", look.words):
            self.assertEqual(named - set(re.findall(r"(--\w+):", scheme)), set(), "each colour is there in both")
        self.assertEqual(len(re.findall(r":root \{[^}]*--", look.words)), 2)
        (view,) = self.page.of("meta", name="viewport")
        self.assertIn("width=device-width", view.given["content"])
        wide = [table for table in self.page.of("table") if table.given.get("class") != "gauges"]
        held = [one for div in self.page.of("div", **{"class": "table"}) for one in inside(div, "table")]
        self.assertEqual(len(wide), len(held), "a wide table scrolls by itself")


def rounded(share):
    return float(f"{share:.12g}")


def words_share(ns, whole):
    return f"{100 * ns / whole:.1f} %"


class Advised(Folder):
    def of(self, made, tried=None):
        run = reading.read(simulated(self.folder, made))
        told = told_of(run, calibrated_made.facts_of(made.progress), tried)
        return told, Elements(report.render(told)), json.loads(json.dumps(advise_json.as_json(told.given)))

    def test_each_piece_of_advice(self):
        told, shown, data = self.of(advise_made.drawn(advise_made.put_off, 1))
        pieces = [one for ol in shown.of("ol") for one in inside(ol, "li")]
        self.assertGreater(len(data["advice"]), 0)
        self.assertEqual(len(pieces), len(data["advice"]))
        for piece, one in zip(pieces, data["advice"]):
            self.assertEqual((value(piece, "least"), value(piece, "most")), (one["least"], one["most"]))
            lines = {p.given["class"]: p.words for p in inside(piece, "p")}
            self.assertEqual(lines["do"], one["text"] + ".")
            self.assertEqual(lines["check"], f"Look first: {one['check']}.")
            self.assertIn(f"at least {advise.amount(told.given, one['least'])}, at most", lines["gain"])
            sure = next(r for r in inside(piece, "rect") if r.given["class"] == "sure")
            self.assertAlmostEqual(float(sure.given["width"]) / 1000, one["least"] / told.given.duration, 3)
        for fact in (*data["facts"]["near"], *data["facts"]["far"]):
            self.assertIn(fact["text"], shown.top.words)
        self.assertGreater(len(data["facts"]["near"]), 3)
        for line in advise.words(told.given).renderables:
            text = re.sub(r"^\d+\. |\.$", "", line.plain.strip())
            self.assertIn(text[1:], shown.top.words, "all that the terminal says")
        heads, rows = shown.table("model of the transport")
        wanted = ["yes" if model["fits"] else "no" for model in data["models"]]
        self.assertEqual([row[1].words for row in rows], wanted[: report.MOST_MODELS])

    def test_why_there_is_no_promise(self):
        """What is told without a promise is there all the same."""
        made, late = advise_made.drawn(advise_made.unequal, 3)
        told, shown, data = self.of(made)
        self.assertEqual([one["kind"] for one in data["told"]], ["balance"])
        (piece,) = shown.of("li", **{"class": "told"})
        self.assertEqual((piece.words, value(piece, "most")), (data["told"][0]["text"] + ".", data["told"][0]["most"]))
        self.assertIn(f"Rank {late} works", piece.words)
        self.assertEqual(shown.of("ol"), [])
        told.given.why = "No advice: no model of the transport explains this run."
        shown = Elements(report.render(told))
        self.assertIn(told.given.why, [one.words for one in shown.of("p", **{"class": "note"})])

    def test_what_was_tried(self):
        made = advise_made.drawn(advise_made.put_off, 1)
        told, shown, _ = self.of(made)
        self.assertNotIn("--try 1 measured", shown.top.words)
        pairs = [(200_000_000, 100_000_000), (202_000_000, 98_000_000), (198_000_000, 102_000_000)]
        told.tried = trying.Tried(1, told.given.advice[0], "MPI_Wait at x.c:1", pairs=pairs)
        shown = Elements(report.render(told))
        heads, rows = shown.table("pair")
        self.assertEqual([(value(row[1]), value(row[2])) for row in rows], pairs)
        for line in tried_words.words(told.tried):
            self.assertIn(line.rstrip("."), shown.top.words)
        self.assertIn("What --try 1 measured", [one.words for one in shown.of("h2")])
        told.tried = trying.Tried(1, told.given.advice[0], "MPI_Wait at x.c:1", why="the changed run <b>did not end</b>")
        shown = Elements(report.render(told))
        self.assertIn("--try 1 failed: the changed run <b>did not end</b>.", shown.top.words)


class Odd(unittest.TestCase):
    def test_names_are_text(self):
        plain = Elements(report.render(told_of(waiting_made.drawn(random.Random(1)).run())))
        told = told_of(hostile())
        told.tried = trying.Tried(1, advise.Advice(edits.Change(edits.PUT_OFF, 0), 1, 2), HOSTILE, why=HOSTILE)
        text = report.render(told)
        shown = Elements(text)
        self.assertEqual({one.tag for one in shown.every} - {one.tag for one in plain.every}, set())
        given = [{name for one in some.every for name in one.given} for some in (shown, plain)]
        self.assertEqual(given[0] - given[1], set())
        self.assertNotRegex(text, r"<img|<script|<!--")
        self.assertFalse(set(text) & set("\0\x1b\u202e\u2028"))
        name = "</script><img src=x onerror=alert(1)>\"'&"
        heads, rows = shown.table("where")
        for cells in rows:
            self.assertIn("<img src=x onerror=alert(1)>", cells[0].words, "they are there, as text")
            self.assertIn(name, cells[1].words)
        self.assertIn("onerror", shown.of("title")[0].words)
        for head in ("where", "communicator"):
            heads, rows = shown.table(head)
            self.assertTrue(all(len(row) == len(heads) for row in rows), "no name ends a cell")

    def test_many_ranks_share_a_row(self):
        makers = [Maker(rank, 600) for rank in range(600)]
        for m in makers:
            m.comms = makers[0].comms
            m.call("MPI_Send", 10, 500, flags=SEND, peer=0, tag=1, bytes=10)
        told = told_of(run_of(makers, [(599, 3, 0, 0, 0, 0, 10, 1, 0), (598, 5, 0, 0, 0, 0, 20, 1, 0)]))
        shown = Elements(report.render(told))
        heads, rows = shown.table("from rank")
        self.assertEqual([cell.words for cell in rows[0][:4]], ["590 to 599", "0 to 9", "2", "30 B"])
        (cell,) = [one for g in inside(shown.of("figure")[0], "g") for one in inside(g, "rect")]
        self.assertEqual((cell.given["y"], cell.given["x"]), ("59", "0"))
        self.assertIn("A row is 10 ranks.", shown.top.words)

    def test_many_sites(self):
        m = Maker(0, 1)
        m.sites = {n: Site(file="/x/a.c", line=n, function="f") for n in range(1, 400)}
        for n in range(1, 400):
            m.call("MPI_Recv", 10_000 * n, 10_000 * n + 5000 + n, site=n)
        shown = Elements(report.render(told_of(run_of([m]))))
        heads, rows = shown.table("where")
        self.assertEqual(len(rows), report.MOST_SITES)
        self.assertIn(f"{report.MOST_SITES} of 399 call sites, most blocked first.", shown.top.words)

    def test_nothing_recorded(self):
        for run in (run_of([]), run_of([Maker(0, 3)])):
            shown = Elements(report.render(told_of(run)))
            self.assertEqual(len(shown.of("figure")), 0)
            self.assertIn("waiting 0 %"[1:], shown.top.words)

    def test_times_and_ranks_out_of_range(self):
        makers = [Maker(rank, 3) for rank in (2**31 - 1, -1, 5)]
        for m in makers:
            m.call("MPI_Recv", 2**62, 2**62 + 10)
            m.call("MPI_Send", 0, 10, flags=SEND, peer=0)
        run = run_of(makers, [(2**31 - 1, 5, 1, 1, 0, 0, 10, 1, 0)])
        shown = Elements(report.render(told_of(run)))
        self.assertEqual(len(shown.of("figure")), 2)


class Written(Folder):
    """By the command, of a recording."""

    def setUp(self):
        super().setUp()
        self.run_ = self.folder / "headway-run-1"
        self.run_.mkdir()
        simulated(self.run_, no_advice())
        self.recorded = sorted(path.name for path in self.run_.iterdir())

    def advise(self, *words, code=0):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            ended = advise_command.main(["--no-color", *map(str, words)])
        self.assertEqual(ended, code, out.getvalue() + err.getvalue())
        return out.getvalue(), err.getvalue()

    def made(self):
        return sorted(path.name for path in self.run_.iterdir() if path.name not in self.recorded)

    def test_beside_the_recording(self):
        out, err = self.advise(self.run_)
        self.assertEqual((self.made(), err), (["report.html"], ""))
        last = out.splitlines()[-1]
        self.assertEqual(last.split("   ")[0], f"{self.run_}/report.html (pictures, matrix)")
        self.assertIn("Nothing else is worth 1 %.", out)
        shown = Elements((self.run_ / "report.html").read_text())
        self.assertIn("Nothing else is worth 1 %.", shown.top.words)
        self.assertTrue((self.run_ / "report.html").read_text().endswith("</html>\n"))

    def test_the_last_line_is_as_long_as_fits(self):
        file, run = Path("headway-run-7/report.html"), Path("headway-run-7")
        whole = "headway-run-7/report.html (pictures, matrix)   --json   headway compare headway-run-7 headway-run-N"
        self.assertEqual(report.pointer(file, run, len(whole)), whole)
        self.assertEqual(report.pointer(file, run, len(whole) - 1), "headway-run-7/report.html (pictures, matrix)   --json")
        self.assertEqual(report.pointer(file, run, 20), "headway-run-7/report.html (pictures, matrix)")

    def test_elsewhere_and_not_at_all(self):
        there = self.folder / "a" / "b"
        out, _ = self.advise(self.run_, "--out", there)
        self.assertEqual((self.made(), [path.name for path in there.iterdir()]), ([], ["report.html"]))
        self.assertIn(f"{there}/report.html", out)
        out, err = self.advise(self.run_, "--no-html")
        self.assertEqual((self.made(), err), ([], ""))
        self.assertNotIn("report.html", out)
        self.assertIn("Nothing else is worth 1 %.", out)
        out, _ = self.advise(self.run_, "--quiet")
        self.assertEqual(self.made(), ["report.html"])
        self.assertNotIn("report.html", out)

    def test_as_data(self):
        out, err = self.advise(self.run_, "--json")
        data = json.loads(out)
        self.assertEqual((data["files"], err), ([f"{self.run_}/report.html"], ""))
        self.assertEqual(data["advice"]["format"], "headway-advice")
        shown = Elements((self.run_ / "report.html").read_text())
        heads, rows = shown.table("where")
        times = [site["time"] for site in data["waiting"]["sites"]]
        self.assertEqual([value(row[heads.index("time")]) for row in rows], times)
        self.assertEqual(json.loads(self.advise(self.run_, "--json", "--no-html")[0])["files"], [])

    def cannot(self, *words, code=0):
        """All the rest is done, and it is said."""
        for more in ((), ("--json",)):
            out, err = self.advise(*words, *more, code=code)
            why = r"headway advise: \S+ cannot be (written|made): [A-Z][\w\- ]+; --out DIR puts it elsewhere"
            self.assertRegex(" ".join(err.split()), why)
            if more:
                self.assertEqual(json.loads(out)["files"], [])
            else:
                self.assertIn("Nothing else is worth 1 %.", out)
                self.assertNotIn("pictures, matrix", out)

    def test_where_it_cannot_be(self):
        (self.run_ / "report.html").mkdir()
        self.cannot(self.run_)
        self.assertEqual(self.made(), ["report.html"], "nothing else is left there")
        (self.folder / "file").write_text("")
        self.cannot(self.run_, "--out", self.folder / "file")

    def test_a_disk_that_cannot_be_written(self):
        disk = self.disk("1m")
        for path in self.run_.iterdir():
            (disk / path.name).write_bytes(path.read_bytes())
        if subprocess.run(["mount", "-o", "remount,ro", disk], capture_output=True, check=False).returncode:
            self.skipTest("no disk can be made read-only here")
        self.cannot(disk)
        self.assertEqual(sorted(path.name for path in disk.iterdir()), self.recorded)

    def test_never_half(self):
        disk = self.disk("8k")
        (disk / "report.html").write_text("older")
        self.cannot(self.run_, "--out", disk)
        self.assertEqual([(path.name, path.read_text()) for path in disk.iterdir()], [("report.html", "older")])


class InTrace(Folder):
    """The head of trace.html has what was hidden, and the efficiency, too."""

    def setUp(self):
        super().setUp()
        simulated(self.folder, advise_made.drawn(advise_made.put_off, 1))

    def head(self, *words):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(command.main([str(self.folder), "--no-perfetto", *words]), 0)
        text = (self.folder / "trace.html").read_text()
        return Elements(text[: text.index("<h2>")]).top.words

    def test_it_is_there(self):
        found = by_site.report(waiting.classify(reading.read(self.folder)))
        lines = by_site.of_run(found)
        self.assertEqual(len(lines), 2)
        for words in ((), ("--quiet",)):
            head = self.head(*words)
            for line in lines:
                self.assertIn(line[1:] + ".", head)

    def test_not_made_for_it_of_a_large_run(self):
        self.addCleanup(setattr, command, "MANY", command.MANY)
        command.MANY = 10
        self.assertNotIn("load balance", self.head("--quiet"))
        self.assertIn("load balance", self.head())


class Whole(Folder):
    def test_what_went_wrong_is_said_though_nothing_can_be_taken_away(self):
        disk = self.disk("1m")
        if subprocess.run(["mount", "-o", "remount,ro", disk], capture_output=True, check=False).returncode:
            self.skipTest("no disk can be made read-only here")
        with self.assertRaisesRegex(whole.NotWritten, r"trace\.html cannot be written: Read-only file system"):
            whole.whole(disk / "trace.html", lambda path: path.write_text("x"))


if __name__ == "__main__":
    unittest.main(verbosity=1, argv=sys.argv)
