#!/usr/bin/env python3
"""What `headway trace` makes of runs that are made by hand: Perfetto, the summary, the page, the words."""

import base64
import hashlib
import html.parser
import io
import itertools
import json
import re
import subprocess
import sys
import unittest
import zlib
from shutil import which

from support import Folder, need_packages

need_packages("numpy", "rich")

import numpy as np  # noqa: E402
from perfetto_reader import Reader, written  # noqa: E402
from trace_made import HOSTILE, KIND, MS, Maker, halo, run_of  # noqa: E402

from headway.record import calls, classes, model, page, summary, trace, whole, words  # noqa: E402
from headway.record.model import Comm, GlobalComm, Site  # noqa: E402

S, R, C = model.SEND, model.RECEIVE, model.COLLECTIVE


class Calls(unittest.TestCase):
    def test_completions_belong_to_the_wait_before_them_in_their_thread(self):
        m = Maker(0, 1)
        w0 = m.call("MPI_Waitall", 10, 20, tag=2)
        w1 = m.call("MPI_Waitall", 5, 25, thread=1, tag=1)
        c = [m.call(model.COMPLETION, 10, 20, request=1), m.call(model.COMPLETION, 10, 20, request=2)]
        d = m.call(model.COMPLETION, 5, 25, thread=1, request=3)
        lost = m.call(model.COMPLETION, 5, 25, thread=2, request=4)
        of = calls.arrange(m.made())
        self.assertEqual(of.owner.tolist(), [w0, w1, w0, w0, w1, -1])
        self.assertEqual(of.of(np.array([c[1], d, lost, -1, 10**6])).tolist(), [w0, w1, -1, -1, -1])


class Summaries(unittest.TestCase):
    def test_shares_of_time(self):
        s = summary.summarise(halo(), bins=40)  # of half a millisecond
        plane = s.shares[classes.IN_MPI - 1]
        self.assertEqual(np.flatnonzero(plane[0]).tolist(), [20, 21, *range(32, 40)])
        self.assertEqual(np.flatnonzero(plane[1]).tolist(), [*range(4, 26), *range(32, 40)])
        self.assertEqual(set(plane[plane > 0].tolist()), {255})
        self.assertEqual((s.duration, s.size, s.events, s.all_kept), (20 * MS, 2, 5, True))
        self.assertAlmostEqual(s.in_mpi, (5 + 15) / 40)
        self.assertEqual(s.totals[:, classes.IN_MPI].tolist(), [5 * MS, 15 * MS])

    def test_classes_take_their_part_of_a_bin(self):
        s = summary.summarise(halo(), [np.array([1, 0, 4], np.uint8), np.array([2, 4], np.uint8)], bins=2)
        self.assertEqual(s.shares[classes.LATE_SENDER - 1].tolist(), [[0, 0], [round(255 * 0.8), round(255 * 0.3)]])
        self.assertEqual(s.shares[classes.LATE_PARTICIPANT - 1].tolist(), [[0, 102], [0, 102]])
        self.assertEqual(
            s.shares[classes.IN_MPI - 1].tolist(), [[0, 26], [0, 0]], "what nobody told is in MPI, not computing"
        )

    def test_covered_time_against_its_definition(self):
        rng = np.random.default_rng(1)
        edges = np.sort(rng.integers(0, 1000, 20))
        cuts = np.unique(rng.integers(-50, 1050, 60))[:40]
        begin, end = cuts[::2], cuts[1::2]
        busy = np.zeros(2000, int)
        for b, e in zip(begin, end):
            busy[b + 500 : e + 500] = 1
        found = summary.in_bins(begin, end, edges)
        self.assertEqual(found.tolist(), [int(busy[a + 500 : b + 500].sum()) for a, b in zip(edges, edges[1:])])

    def test_threads_share_a_row_and_nested_calls_count_once(self):
        m = Maker(0, 1)
        m.call("MPI_Recv", 20, 40)
        m.call("MPI_Recv", 0, 50)
        m.call("MPI_Recv", 0, 100, thread=1)
        m.call(model.GAP, 50, 75)
        s = summary.summarise(run_of([m]), bins=4)
        self.assertEqual(s.threads.tolist(), [2])
        self.assertEqual(s.shares[classes.IN_MPI - 1].tolist(), [[255, 255, 128, 128]])
        self.assertEqual(s.shares[classes.OFF - 1].tolist(), [[0, 0, 128, 0]])

    def test_the_longest_waits_are_kept(self):
        rng = np.random.default_rng(5)
        makers, took = [], []
        for r in range(4):
            m = Maker(r, 4)
            for i in range(1000):
                t = int(rng.integers(1, 900_000))
                m.call("MPI_Recv" if i % 2 else "MPI_Init", i * MS, i * MS + t)
                took += [t] * (i % 2)
            makers.append(m)
        s = summary.summarise(run_of(makers), all_up_to=100, most_waits=50)
        self.assertFalse(s.all_kept)
        self.assertEqual(sorted(s.kept["time"].tolist()), sorted(took)[-50:])
        self.assertEqual(s.waits(3)["time"].tolist(), sorted(took)[:-4:-1])
        key = s.kept["row"].astype(np.int64) * 10**10 + s.kept["begin"]
        self.assertTrue((np.diff(key) > 0).all(), "by row and begin")

    def test_call_sites_of_all_ranks_together(self):
        run = halo()
        run.ranks[1].sites[9] = run.ranks[1].sites.pop(1)
        run.ranks[1].events["site"][run.ranks[1].events["site"] == 1] = 9
        s = summary.summarise(run, [np.array([1, 3, 4]), np.array([2, 4])])
        found = {(s.texts.all[x.name], s.texts.all[x.site]): x for x in s.sites}
        reduce = found["MPI_Allreduce", "halo.c:214 exchange"]
        self.assertEqual((reduce.count, reduce.time, reduce.longest, reduce.bytes), (2, 8 * MS, 4 * MS, 16))
        self.assertEqual(reduce.by_class[classes.LATE_PARTICIPANT], 8 * MS)
        recv = found["MPI_Recv", "halo.c:214 exchange"]
        self.assertEqual((recv.row, recv.begin, recv.longest, recv.bytes), (1, 2 * MS, 11 * MS, 0))
        self.assertEqual(s.sites[0], recv, "most time first")

    def test_messages_and_who_sends_to_whom(self):
        s = summary.summarise(halo())
        (arrow,) = s.arrows
        self.assertEqual((arrow["source"], arrow["target"], arrow["sent"], arrow["came"]), (0, 1, 10 * MS, 13 * MS))
        self.assertEqual((arrow["waited"], arrow["bytes"], arrow["tag"]), (11 * MS, 4096, 7))
        self.assertEqual(s.texts.all[arrow["comm"]], "MPI_COMM_WORLD")
        self.assertEqual(s.matrix[:, 0, 1].tolist(), [1, 4096, 11 * MS])
        self.assertEqual(np.count_nonzero(s.matrix), 3)

    def test_many_ranks_share_rows_of_the_matrix(self):
        makers = [Maker(r, 600) for r in range(600)]
        makers[0].comms = makers[1].comms
        run = run_of(
            makers, [(599, 3, 0, 0, 0, 0, 10, 1, 0), (598, 5, -1, -1, -1, -1, 20, 1, 0), (700, 5, 0, 0, 0, 0, 20, 1, 0)]
        )
        s = summary.summarise(run)
        self.assertEqual((s.group, s.matrix.shape), (3, (3, 200, 200)))
        self.assertEqual(s.matrix[:, 199, 1].tolist(), [2, 30, 0])
        self.assertEqual(page.group_name(s, 199), "597 to 599")

    def test_names_are_bounded(self):
        t = summary.Texts(room=30)
        self.assertEqual([t.number(f"name {i % 6:03}") for i in range(8)], [1, 2, 3, 4, 4, 4, 1, 2])
        self.assertEqual(t.all, ["", "name 000", "name 001", "name 002", "others"])

    def test_peers_in_the_world(self):
        m = Maker(5, 8)
        m.comms[9] = Comm(9, 1, "MPI_Comm_split", 0, 0, np.array([5, 3, 7]), "columns")
        m.call("MPI_Recv", 3, 4, flags=R, peer=2, tag=0, comm=9)
        m.call("MPI_Recv", 5, 9, flags=R, peer=-2, tag=0, comm=9)
        m.comms[10] = Comm(10, 1, "MPI_Intercomm_create", 0, 0, np.array([5, 3]), "")
        object.__setattr__(m.comms[10], "remote", np.array([6, 4]))
        m.call("MPI_Recv", 9, 10, flags=R, peer=1, tag=0, comm=10)
        s = summary.summarise(run_of([m]))
        self.assertEqual(s.kept["world"].tolist(), [7, -1, 4])
        shown = Elements(page.render(s)).words
        self.assertIn("2 (rank 7)", shown)
        self.assertIn("any", shown)

    def test_bins(self):
        self.assertEqual([summary.bins_for(n) for n in (1, 1024, 2048, 4096, 10**6)], [4096, 4096, 2048, 1024, 64])

    def test_classes_of_another_run(self):
        with self.assertRaisesRegex(ValueError, "rank 1: 3 classes for 2 events"):
            summary.summarise(halo(), [np.zeros(3), np.zeros(3)])
        with self.assertRaisesRegex(ValueError, "1 ranks for a run of 2"):
            summary.summarise(halo(), [np.zeros(3)])


class Elements(html.parser.HTMLParser):
    """What a browser would see."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.inside, self.open = [], {}, None
        self.words = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag in ("script", "style"):
            self.open = (tag, dict(attributes).get("id"))
            self.inside[self.open] = ""

    def handle_endtag(self, tag):
        if self.open and tag == self.open[0]:
            self.open = None

    def handle_data(self, data):
        if self.open:
            self.inside[self.open] += data
        else:
            self.words.append(data)

    def meta(self):
        return json.loads(self.inside["script", "meta"])

    def arrays(self, name):
        text = zlib.decompress(base64.b64decode(self.inside["script", f"data-{name}"]))
        return {
            n: np.frombuffer(text, {"u1": "u1", "u4": "<u4", "i4": "<i4", "f4": "<f4", "f8": "<f8"}[kind], count, at)
            for n, kind, at, count in self.meta()["arrays"][name]
        }


def hostile():
    m = Maker(0, 2, host=HOSTILE)
    m.functions = [HOSTILE + n for n in m.functions]
    m.sites[1] = Site(file="/" + HOSTILE, line=1, function="</td></table><script>alert(2)</script>")
    m.comms[3] = Comm(3, 1, "", 0, 0, np.arange(2), HOSTILE)
    m.call("MPI_Send", 10, 500, flags=S, peer=1, tag=1, bytes=5, comm=3)
    m.call("MPI_Recv", 600, 900, flags=R, peer=1, tag=1, bytes=5)
    run = run_of(
        [m, Maker(1, 2)], [(0, 0, 0, 0, 1, 1, 5, 1, 0)], notes=[HOSTILE], comms=[GlobalComm(np.arange(2), HOSTILE, "")]
    )
    run.folder = "/tmp/" + HOSTILE.replace("/", "")
    run.ranks[0].header["program"] = HOSTILE
    return run


class Pages(unittest.TestCase):
    def test_what_is_in_it(self):
        run = halo()
        given = [np.array([1, 3, 4]), np.array([2, 4])]
        s = summary.summarise(run, given, bins=64)
        text = page.render(s, "solver")
        e = Elements(text)
        meta = e.meta()
        self.assertEqual((meta["duration"], meta["rows"], meta["bins"], meta["allKept"]), (20 * MS, 2, 64, True))
        self.assertEqual(meta["planes"], [1, 2, 3, 4])
        shares = e.arrays("shares")["all"].reshape(4, 2, 64)
        np.testing.assert_array_equal(shares, s.shares[:4])
        kept = e.arrays("kept")
        self.assertEqual(
            [meta["texts"][n] for n in kept["name"]],
            ["MPI_Isend", "MPI_Wait", "MPI_Allreduce", "MPI_Recv", "MPI_Allreduce"],
        )
        self.assertEqual(kept["begin"].tolist(), [10 * MS, 10.5 * MS, 16 * MS, 2 * MS, 16 * MS])
        self.assertEqual(kept["class"].tolist(), [1, 3, 4, 2, 4])
        self.assertEqual(e.arrays("messages")["came"].tolist(), [13 * MS])
        self.assertEqual(e.arrays("matrix")["bytes"].tolist(), [0, 4096, 0, 0])
        self.assertEqual(e.arrays("rows")["ranks"].tolist(), [0, 1])
        ids = [a["id"] for _, a in e.tags if "id" in a]
        self.assertEqual(len(ids), len(set(ids)))
        wanted = set(re.findall(r'byId\("(\w+)"\)', e.inside["script", None]))
        self.assertEqual(wanted - set(ids), set(), "what the script looks for is there")
        self.assertEqual({f"data-{name}" for name in meta["arrays"]} - set(ids), set())

    def test_without_a_network(self):
        """Nothing is loaded, and the browser may run the page's own script only."""
        text = page.render(summary.summarise(halo()))
        e = Elements(text)
        self.assertNotRegex(
            text.replace("https://ui.perfetto.dev", ""), r"https?://|@import|url\(|import\(|fetch\(|XMLHttp"
        )
        self.assertEqual(
            [
                t
                for t, a in e.tags
                if t in ("link", "img", "iframe", "object") or "src" in a or "href" in a or "style" in a
            ],
            [],
        )
        policy = next(a["content"] for t, a in e.tags if t == "meta" and "http-equiv" in a)
        self.assertIn("default-src 'none'", policy)
        for tag, source in (("script", "script-src"), ("style", "style-src")):
            digest = base64.b64encode(hashlib.sha256(e.inside[tag, None].encode()).digest()).decode()
            self.assertRegex(policy, rf"{source} 'sha256-{re.escape(digest)}'(;|$)")
        self.assertNotIn("innerHTML", text)
        self.assertFalse(any(a.startswith("on") for _, attributes in e.tags for a in attributes))

    def test_names_are_text(self):
        plain = Elements(page.render(summary.summarise(halo()), "x"))
        s = summary.summarise(hostile())
        text = page.render(s, trace.title_of(hostile()))
        e = Elements(text)
        self.assertEqual({t for t, _ in e.tags} - {t for t, _ in plain.tags}, set())
        self.assertEqual(sum(t == "script" for t, _ in e.tags), sum(t == "script" for t, _ in plain.tags))
        self.assertNotIn("<img", text)
        self.assertNotIn("<!--", text)
        self.assertFalse(set(text) & set("\0\x1b\u202e\u2028"))
        shown = "</script><img src=x onerror=alert(1)>\"'&"
        self.assertTrue(any(shown in w for w in e.words), "the name is there, as text")
        self.assertTrue(any(shown in t for t in e.meta()["texts"]))
        self.assertTrue(all(len(t) <= words.MOST for t in e.meta()["texts"]))

    def test_whole_without_javascript(self):
        e = Elements(page.render(summary.summarise(halo(), [np.array([1, 3, 4]), np.array([2, 4])])))
        shown = " | ".join(e.words)
        for expected in (
            "2 ranks on 2 hosts, 20 ms, 5 calls, 50.0 % of all time in MPI.", "late sender", "11 ms",
            "halo.c:214 exchange", "late participant", "4.1 KB", "prog+0x1234", "27.5 %", "node1",
        ):  # fmt: skip
            self.assertIn(expected, shown)
        rows = [a for t, a in e.tags if t == "tr" and "data-row" in a]
        self.assertEqual(
            (rows[0]["data-row"], rows[0]["data-begin"], rows[0]["data-time"]), ("1", str(2 * MS), str(11 * MS))
        )

    def test_its_size_is_bounded_and_told(self):
        rng = np.random.default_rng(2)
        makers = []
        for r in range(8):
            m = Maker(r, 8)
            m.rows = np.zeros(4000, model.EVENT)
            m.rows["kind"], m.rows["site"] = rng.integers(2, 9, 4000), rng.integers(0, 3, 4000)
            m.rows["begin"] = np.sort(rng.integers(0, 10**9, 4000))
            m.rows["end"] = m.rows["begin"] + rng.integers(1, 10**6, 4000)
            makers.append(m)
        s = summary.summarise(run_of(makers))
        whole = page.render(s)
        self.assertIn(f"all {len(s.kept):,} calls and marks", whole)
        small = page.render(s, limit=150_000)
        self.assertLess(len(small.encode()), 150_000)
        e = Elements(small)
        held = len(e.arrays("kept")["begin"])
        self.assertGreaterEqual(held, 500)
        self.assertLess(held, len(s.kept))
        self.assertIn(f"the {held:,} longest waits of 32,000 events", small)
        self.assertFalse(e.meta()["allKept"])
        self.assertEqual(len(e.arrays("shares")["all"]), len(e.meta()["planes"]) * 8 * e.meta()["bins"])
        self.assertGreaterEqual(e.arrays("kept")["time"].min(), np.median(s.kept["time"]), "the longest stay")

    def test_nothing_recorded(self):
        for run in (run_of([]), run_of([Maker(0, 3)])):
            e = Elements(page.render(summary.summarise(run)))
            self.assertEqual(e.meta()["rows"], len(run.ranks))

    def test_ranks_and_times_out_of_range(self):
        makers = [Maker(r, 3) for r in (2**31 - 1, -1, 5)]
        for m in makers:
            m.call("MPI_Recv", 2**63 - 5, 2**63 - 2)
            m.call("MPI_Send", 0, 10, flags=S, peer=0)
        run = run_of(makers, [(2**31 - 1, 5, 1, 1, 0, 0, 10, 1, 0)])
        s = summary.summarise(run)
        self.assertEqual((s.arrows["source"][0], s.arrows["target"][0]), (0, 2))
        self.assertEqual(Elements(page.render(s)).meta()["rows"], 3)
        r = Reader(written(run))
        self.assertEqual({t["name"] for t in r.tracks.values() if "parent" in t and t["parent"] is None and "pid" in t},
                         {"rank 2147483647 (node0)", "process  (node0)", "rank 0000000005 (node0)"})  # fmt: skip

    def test_its_script_is_one(self):
        node = which("node")
        if node is None:
            self.skipTest("no node here")
        for path in (page.HERE / name for name in page.SCRIPTS):
            done = subprocess.run([node, "--check", path], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertNotIn("</", path.read_text())
            self.assertNotIn("<!--", path.read_text())

    def test_colours_are_told_apart(self):
        """Distances in CIELAB, as people with each colour blindness see them (Machado, Oliveira, Fernandes 2009)."""
        sight = {
            "all": np.eye(3),
            "no red": np.array(
                [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
            ),
            "no green": np.array(
                [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
            ),
            "no blue": np.array(
                [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]]
            ),
        }
        to_xyz = np.array(
            [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]]
        )

        def lab(colour, eyes):
            v = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
            v = np.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4)
            f = to_xyz @ np.clip(eyes @ v, 0, 1) / np.array([0.95047, 1, 1.08883])
            f = np.where(f > 0.008856, np.cbrt(f), 7.787 * f + 16 / 116)
            return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])

        for who, eyes in sight.items():
            seen = {c.name: lab(c.colour, eyes) for c in classes.CLASSES}
            for a, b in itertools.combinations(seen, 2):
                quiet = {a, b} == {"computing", "not recorded"}
                self.assertGreater(np.linalg.norm(seen[a] - seen[b]), 9 if quiet else 14, f"{a} and {b}, {who}")


class Written(Folder):
    def test_files(self):
        out = self.folder / "run" / "made"
        files = trace.write_trace(halo(), out)
        self.assertEqual([f.name for f in files], ["trace.html", "trace.pftrace"])
        self.assertEqual(sorted(f.name for f in out.iterdir()), ["trace.html", "trace.pftrace"])
        self.assertEqual(len(Reader(files[1].read_bytes()).slices), 5)
        self.assertEqual([f.name for f in trace.write_trace(halo(), out, perfetto=False)], ["trace.html"])

    def test_more_than_a_browser_opens(self):
        self.addCleanup(setattr, trace, "MOST_EVENTS", trace.MOST_EVENTS)
        trace.MOST_EVENTS = 4
        found = summary.summarise(halo())
        self.assertEqual([f.name for f in trace.write_trace(halo(), self.folder, summary=found)], ["trace.html"])
        self.assertRegex(found.notes[0], "trace.pftrace is not written: 5 events, and Perfetto opens 4; --from 10")
        self.assertIn(found.notes[0], (self.folder / "trace.html").read_text())
        with self.assertRaisesRegex(whole.NotWritten, "Perfetto opens 4;"):
            trace.write_trace(halo(), self.folder, html=False)

    def test_what_cannot_be_written(self):
        (self.folder / "file").write_text("")
        with self.assertRaisesRegex(whole.NotWritten, "file cannot be made: "):
            trace.write_trace(halo(), self.folder / "file")
        (self.folder / "out" / "trace.html").mkdir(parents=True)
        with self.assertRaisesRegex(whole.NotWritten, r"trace\.html cannot be written: "):
            trace.write_trace(halo(), self.folder / "out")
        self.assertEqual([f.name for f in (self.folder / "out").iterdir()], ["trace.html"])

    def test_no_room(self):
        disk = self.disk("16k")
        (disk / "trace.html").write_text("older")
        with self.assertRaisesRegex(whole.NotWritten, r"trace\.html cannot be written: No space left"):
            trace.write_trace(halo(), disk)
        self.assertEqual([(f.name, f.read_text()) for f in disk.iterdir()], [("trace.html", "older")])

    def said(self, run, given=None, width=140):
        from rich.console import Console

        files = trace.write_trace(run, self.folder / "made", given)
        out = io.StringIO()
        trace.tell(summary.summarise(run, given), files, Console(file=out, width=width, force_terminal=False))
        return out.getvalue()

    def test_words(self):
        run = halo()
        run.notes.append("1 of 3 files was cut short")
        text = self.said(run, [np.array([1, 3, 4]), np.array([2, 4])])
        self.assertIn("2 ranks on 2 hosts, 20 ms, 5 calls, 50.0 % of all time in MPI.", text)
        self.assertRegex(text, r"11 ms +1 +MPI_Recv +halo\.c:214 exchange +late sender +2 ms")
        self.assertIn("1 of 3 files was cut short", text)
        self.assertRegex(text, r"trace\.html \(\d.* KB\): open it in a browser")
        self.assertIn("https://ui.perfetto.dev", text)

    def test_notes_are_said_once(self):
        from rich.console import Console

        run, out = halo(), io.StringIO()
        run.notes += ["said above", "new here"]
        trace.tell(summary.summarise(run), [], Console(file=out, width=140), said=["said above"])
        self.assertNotIn("said above", out.getvalue())
        self.assertIn("new here", out.getvalue())

    def test_words_without_classes(self):
        text = self.said(halo())
        self.assertRegex(text, r"longest calls +rank +call +where +from")
        self.assertNotIn("Waiting", text)

    def test_names_do_nothing_to_a_terminal(self):
        run = hostile()
        run.ranks[0].functions[KIND["MPI_Send"]] = "[bold red]Send[/] :smile: \x1b[2J"
        text = self.said(run, width=400)
        self.assertIn("[bold red]Send[/] :smile: \ufffd[2J", text)
        self.assertFalse(set(text) & set("\0\x1b\u202e\u2028"))


class Words(unittest.TestCase):
    def test_numbers(self):
        self.assertEqual(
            [words.time_text(t) for t in (0, 999, 1500, 2.5e6, 1e9, 5e12)],
            ["0 ns", "999 ns", "1.5 µs", "2.5 ms", "1 s", "5000 s"],
        )
        self.assertEqual(
            [words.bytes_text(b) for b in (0, 999, 4096, 2.5e6, 1e12)], ["0 B", "999 B", "4.1 KB", "2.5 MB", "1 TB"]
        )

    def test_clean(self):
        self.assertEqual(words.clean("a\0b\n\x1b\u202e\ud800"), "a\ufffdb" + "\ufffd" * 4)
        self.assertEqual(words.clean("x" * 1000), "x" * 199 + "…")


if __name__ == "__main__":
    unittest.main(verbosity=1, argv=sys.argv)
