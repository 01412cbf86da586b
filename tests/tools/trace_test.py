#!/usr/bin/env python3
"""What `headway trace` makes of runs that are made by hand: Perfetto, the summary, the page, OTF2, the words."""

import base64
import hashlib
import html.parser
import importlib.util
import io
import itertools
import json
import re
import struct
import subprocess
import sys
import time
import unittest
import zlib
from shutil import which

from support import Folder, need_packages

need_packages("numpy", "rich")

import numpy as np  # noqa: E402
from trace_made import HOSTILE, KIND, MS, Maker, halo, run_of  # noqa: E402

from headway.record import calls, classes, model, otf2_export, page, perfetto, summary, trace, words  # noqa: E402
from headway.record.model import Comm, GlobalComm, Site  # noqa: E402

S, R, C = model.SEND, model.RECEIVE, model.COLLECTIVE


# A decoder of protobuf that knows nothing of what was written.
def fields(text):
    at, found = 0, []

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = text[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(text):
        key = number()
        wire = key & 7
        if wire == 0:
            value = number()
        elif wire == 1:
            value = struct.unpack_from("<Q", text, at)[0]
            at += 8
        elif wire == 2:
            length = number()
            value = text[at : at + length]
            if len(value) != length:
                raise AssertionError(f"field {key >> 3} ends behind its message")
            at += length
        else:
            raise AssertionError(f"wire type {wire}")
        found.append((key >> 3, value))
    return found


def first(found, field, default=None):
    return next((v for f, v in found if f == field), default)


def every(found, field):
    return [v for f, v in found if f == field]


class Reader:
    """Slices as trace_processor would show them; fails where it would complain."""

    def __init__(self, text):
        self.tracks, self.sequences = {}, {}
        self.slices, self.begun, self.ended = [], {}, {}
        self.packets = 0
        self.read(text)
        for s in self.sequences.values():
            if s["stack"]:
                raise AssertionError("slices that do not end")

    def read(self, text):
        for field, packet in fields(text):
            assert field == 1, field
            packet = fields(packet)
            packed = first(packet, 50)
            if packed is not None:
                self.read(zlib.decompress(packed))
            else:
                self.packets += 1
                self.packet(packet)

    def packet(self, packet):
        descriptor = first(packet, 60)
        if descriptor is not None:
            d = fields(descriptor)
            process, thread = first(d, 3), first(d, 4)
            known = {"name": first(d, 2, b"").decode(), "parent": first(d, 5)}
            if process is not None:
                known |= {"pid": first(fields(process), 1), "name": first(fields(process), 6).decode()}
            if thread is not None:
                t = fields(thread)
                known |= {"pid": first(t, 1), "tid": first(t, 2), "name": first(t, 5).decode(), "thread": True}
            assert first(d, 1) not in self.tracks, "a track twice"
            self.tracks[first(d, 1)] = known
            return
        number = first(packet, 10)
        flags = first(packet, 13, 0)
        if flags & 1:
            assert number not in self.sequences, "one sequence, one track"
            self.sequences[number] = {
                "names": {},
                "categories": {},
                "keys": {},
                "texts": {},
                "stack": [],
                "clock": None,
            }
        s = self.sequences[number]
        defaults = first(packet, 59)
        if defaults is not None:
            d = fields(defaults)
            s["clock_id"], s["track"] = first(d, 58), first(fields(first(d, 11)), 11)
        interned = first(packet, 12)
        if interned is not None:
            for field, table in ((1, "categories"), (2, "names"), (3, "keys"), (29, "texts")):
                for entry in every(fields(interned), field):
                    e = fields(entry)
                    assert first(e, 1) not in s[table], "a number twice"
                    s[table][first(e, 1)] = first(e, 2).decode()
        snapshot = first(packet, 6)
        if snapshot is not None:
            clocks = {first(c, 1): (first(c, 2), first(c, 3, 0)) for c in map(fields, every(fields(snapshot), 1))}
            assert clocks[s["clock_id"]][1] == 1 and clocks[6][0] == clocks[s["clock_id"]][0]
            s["clock"] = clocks[6][0]
        event = first(packet, 11)
        if event is None:
            return
        assert flags & 2
        s["clock"] += first(packet, 8)
        event = fields(event)
        kind = first(event, 9)
        if kind == 1:
            made = {
                "name": s["names"][first(event, 10)],
                "category": s["categories"][first(event, 3)],
                "track": self.tracks[s["track"]],
                "begin": s["clock"],
                "depth": len(s["stack"]),
            }
            for a in map(fields, every(event, 4)):
                text = first(a, 17)
                made[s["keys"][first(a, 1)]] = s["texts"][text] if text is not None else first(a, 4)
            s["stack"].append(made)
            self.slices.append(made)
        else:
            assert kind == 2
            made = s["stack"].pop()
            made["end"] = s["clock"]
            assert made["end"] >= made["begin"]
        for field, table in ((47, self.begun), (48, self.ended)):
            for flow in every(event, field):
                assert (field == 47) == (kind == 1)
                assert flow not in table
                table[flow] = (made, s["clock"])

    def of(self, name):
        return [s for s in self.slices if s["name"] == name]


def written(run, given=None, compress=True):
    file = io.BytesIO()
    perfetto.pour(perfetto.packets(run, given), file, compress)
    return file.getvalue()


class Perfetto(unittest.TestCase):
    def test_slices_and_annotations(self):
        run = halo()
        run.ranks[0].comms[1] = Comm(1, 0, "", 0, 0, np.arange(2), "")
        for compress in (True, False):
            r = Reader(written(run, compress=compress))
            self.assertEqual(
                [t["name"] for t in r.tracks.values() if "pid" in t and "tid" not in t],
                ["rank 0 (node0)", "rank 1 (node1)"],
            )
            isend = r.of("MPI_Isend")[0]
            self.assertEqual((isend["begin"], isend["end"]), (10 * MS, 10 * MS + MS // 2))
            expected = {
                "peer": 1,
                "tag": 7,
                "bytes": 4096,
                "communicator": "MPI_COMM_WORLD",
                "site": "halo.c:214 exchange",
            }
            self.assertEqual({k: isend[k] for k in expected}, expected)
            self.assertEqual((isend["category"], isend["track"]["name"]), ("isend", "thread 0"))
            self.assertEqual(r.of("MPI_Wait")[0]["site"], "prog+0x1234")
            self.assertNotIn("peer", r.of("MPI_Allreduce")[0])
            self.assertEqual(len(r.slices), 5)
            self.assertEqual(len({(t["pid"], t["tid"]) for t in r.tracks.values() if "tid" in t}), 2)

    def test_a_flow_from_the_send_to_the_end_of_the_receive(self):
        r = Reader(written(halo()))
        self.assertEqual(list(r.begun), list(r.ended))
        (sent, at), (came, then) = r.begun[1], r.ended[1]
        self.assertEqual((sent["name"], at, came["name"], then), ("MPI_Isend", 10 * MS, "MPI_Recv", 13 * MS))
        self.assertLess(came["begin"], at, "this receive began before its send: its begin would be the flow's source")

    def test_names_are_written_once(self):
        m = Maker(0, 2)
        for i in range(1000):
            m.call("MPI_Send", 10 * i, 10 * i + 5, flags=S, peer=1, tag=i % 3, bytes=i)
        text = written(run_of([m]), compress=False)
        self.assertEqual(text.count(b"MPI_Send"), 1)
        self.assertEqual(text.count(b"halo.c"), 1)
        self.assertEqual([s["bytes"] for s in Reader(text).slices[1:]], list(range(1, 1000)))

    def test_a_wait_for_many(self):
        """One slice for the wait and its completions; all their messages end in it: its length needs two bytes."""
        count = 50
        a, b = Maker(0, 2), Maker(1, 2)
        messages = []
        for i in range(count):
            sent = a.call("MPI_Isend", i, i + 1, flags=S, peer=1, tag=i, request=i + 1, bytes=8)
            posted = b.call("MPI_Irecv", i, i + 1, flags=R, peer=0, tag=i, request=i + 1, bytes=8)
            messages.append([0, 1, sent, -1, posted, -1, 8, i, 0])
        b.call("MPI_Waitall", 100, 200, tag=count, request=0)
        for i in range(count):
            messages[i][5] = b.call(model.COMPLETION, 100, 200, flags=R, peer=0, tag=i, request=i + 1, bytes=8)
        r = Reader(written(run_of([a, b], [tuple(m) for m in messages])))
        self.assertEqual(len(r.slices), 2 * count + 1)
        self.assertEqual(len(r.ended), count)
        self.assertEqual({made["name"] for made, _ in r.ended.values()}, {"MPI_Waitall"})
        self.assertEqual([r.begun[i + 1][0]["tag"] for i in range(count)], list(range(count)))
        self.assertEqual(r.of("MPI_Waitall")[0]["requests"], count)
        self.assertNotIn("tag", r.of("MPI_Waitall")[0])

    def test_records_of_one_call_are_one_slice(self):
        m = Maker(0, 2)
        m.call("MPI_Sendrecv", 10, 20, flags=S, peer=1, tag=3, bytes=100)
        m.call("MPI_Sendrecv", 10, 20, flags=R, peer=0, tag=4, bytes=200)
        for tag in (5, 7):  # two calls that the clock cannot tell apart
            m.call("MPI_Sendrecv", 20, 20, flags=S, peer=1, tag=tag, bytes=1)
            m.call("MPI_Sendrecv", 20, 20, flags=R, peer=0, tag=tag + 1, bytes=2)
        for i in range(300):
            m.call("MPI_Startall", 30, 40, flags=S, peer=1, tag=i, request=i + 1)
        m.call("MPI_Startall", 40, 50, flags=S, peer=1, tag=1, request=400)
        r = Reader(written(run_of([m])))
        self.assertEqual([s["name"] for s in r.slices], ["MPI_Sendrecv"] * 3 + ["MPI_Startall"] * 2)
        pair, _, second, start, one = r.slices
        self.assertEqual((second["tag"], second["tag received"]), (7, 8))
        got = {k: pair[k] for k in ("peer", "tag", "bytes", "from", "tag received", "bytes received")}
        self.assertEqual(list(got.values()), [1, 3, 100, 0, 4, 200])
        self.assertEqual(start["requests"], 300)
        self.assertNotIn("requests", one)

    def test_what_a_persistent_collective_is_is_no_tag(self):
        m = Maker(0, 2)
        m.call("MPI_Startall", 30, 40, flags=4, peer=1, tag=5 + model.KINDS, request=1, bytes=8)
        (start,) = Reader(written(run_of([m]))).slices
        self.assertEqual((start["peer"], start["bytes"]), (1, 8))
        self.assertNotIn("tag", start)

    def test_calls_that_do_not_nest_lie_on_another_track(self):
        m = Maker(0, 1)
        for begin, end in ((0, 100), (10, 50), (20, 30), (50, 100), (90, 120), (120, 120), (120, 130), (95, 125)):
            m.call("MPI_Allreduce", begin, end)
        r = Reader(written(run_of([m])))
        by = {}
        for s in r.slices:
            by.setdefault(s["track"]["name"], []).append((s["begin"], s["end"], s["depth"]))
        self.assertEqual(
            by,
            {
                "thread 0": [(0, 100, 0), (10, 50, 1), (20, 30, 2), (50, 100, 1), (120, 130, 0), (120, 120, 1)],
                "thread 0: crossing calls": [(90, 120, 0)],
                "thread 0: crossing calls 2": [(95, 125, 0)],
            },
        )

    def test_the_library_and_threads_have_tracks_of_their_own(self):
        m = Maker(0, 1)
        m.call("MPI_Allreduce", 10, 20)
        m.call(0x8010, 15, 25, bytes=4096)
        m.call(0x8013, 12, 18, thread=1)
        m.call(model.CORE_TAKEN, 5, 17, bytes=3)
        m.call(model.GAP, 30, 40)
        m.call("MPI_Test", 0, 28, flags=model.IN_VAIN, tag=12, bytes=5)
        m.call("MPI_Allreduce", 11, 19, thread=1)
        r = Reader(written(run_of([m])))
        self.assertEqual(
            sorted((s["track"]["name"], s["name"]) for s in r.slices),
            [
                ("thread 0", "MPI_Allreduce"), ("thread 0: faults", "fault"), ("thread 0: no core", "no core"),
                ("thread 0: not recorded", "not recorded"), ("thread 0: tests", "MPI_Test"),
                ("thread 1", "MPI_Allreduce"), ("thread 1: helps", "help"),
            ],
        )  # fmt: skip
        self.assertEqual(r.of("no core")[0]["ns without a core"], 3)
        self.assertEqual(r.of("MPI_Test")[0]["tests"], 12)
        process = next(u for u, t in r.tracks.items() if "tid" not in t and "pid" in t)
        self.assertTrue(all(t["parent"] == process for u, t in r.tracks.items() if u != process))

    def test_any_world_ranks_and_classes(self):
        m = Maker(5, 8)
        m.comms[9] = Comm(9, 1, "MPI_Comm_split", 0, 0, np.array([5, 3, 7]), "columns")
        m.call("MPI_Irecv", 1, 2, flags=R | model.ANY_SOURCE | model.ANY_TAG, peer=-2, tag=-2, request=1, comm=9)
        m.call("MPI_Recv", 3, 4, flags=R, peer=2, tag=0, comm=9)
        m.call("MPI_Recv", 5, 6, flags=R, peer=99, tag=0, comm=77)
        r = Reader(written(run_of([m]), [np.array([1, classes.LATE_SENDER, 200])]))
        wild, one, lost = r.slices
        self.assertEqual((wild["peer"], wild["tag"], wild["communicator"]), ("any", "any", "columns"))
        self.assertEqual((one["peer"], one["world rank of peer"], one["waiting"]), (2, 7, "late sender"))
        self.assertEqual((lost["communicator"], lost["peer"]), ("communicator 77", 99))
        self.assertNotIn("world rank of peer", lost)
        self.assertNotIn("waiting", wild)

    def test_what_is_hostile(self):
        """Long and broken names, numbers out of range, times that run backwards, nesting without an end."""
        m = Maker(0, 2, host=HOSTILE)
        m.functions[KIND["MPI_Send"]] = HOSTILE + "x" * 5000 + "\ud800"
        m.sites[1] = Site(file=HOSTILE, line=-4, function="\ud800")
        m.call(
            "MPI_Send",
            2**63 - 2,
            5,
            flags=S | R | C,
            peer=2**31 - 1,
            tag=2**31 - 1,
            bytes=2**64 - 1,
            comm=2**32 - 1,
            site=2**32 - 1,
        )
        m.call(0x7FFF, 1, 2)
        m.call("MPI_Send", 3, 4)
        for i in range(1000):
            m.call("MPI_Recv", 10 + i, 5000 - i)
        for i in range(200):
            m.call("MPI_Recv", 6000 + i, 7000 + i)
        run = run_of([m], [(0, 1, 10**9, 0, 0, 10**9, 1, 1, 99), (-5, 7, 0, 0, 0, 0, 1, 1, 99)])
        r = Reader(written(run))
        self.assertEqual(len(r.slices), 1203)
        self.assertTrue(all(len(s["name"]) <= words.MOST and "\0" not in s["name"] for s in r.slices))
        self.assertLessEqual(max(s["depth"] for s in r.slices), calls.DEEPEST)

    def test_nothing(self):
        self.assertEqual(Reader(written(run_of([Maker(0, 1)]))).slices, [])
        self.assertEqual(written(run_of([])), b"")

    def test_drawn_calls_of_two_threads(self):
        """Against the plain definition: what was put in comes out, and a child lies in its parent."""
        rng = np.random.default_rng(7)
        m = Maker(0, 1)
        put = []
        for thread in (0, 1):

            def draw(begin, end, deep, thread=thread):
                while begin < end and rng.random() < 0.9:
                    b = int(rng.integers(begin, end))
                    e = int(rng.integers(b, end)) + 1
                    if deep < 4:
                        draw(b, e, deep + 1)
                    m.call("MPI_Allreduce", b, e, thread=thread, site=int(rng.integers(0, 3)))
                    put.append((thread, b, e))
                    begin = e

            for i in range(50):
                draw(1000 * i, 1000 * i + 1000, 0)
        r = Reader(written(run_of([m])))
        self.assertEqual(
            sorted((s["track"]["tid"] & 1, s["begin"], s["end"]) for s in r.slices if "tid" in s["track"]), sorted(put)
        )
        self.assertTrue(any(s["depth"] > 2 for s in r.slices))

    def test_size_and_speed(self):
        """A tenth of a million events, of which each is a message's: 60 MB and 10 s a million are asked."""
        count = 50_000
        a, b = Maker(0, 2), Maker(1, 2)
        rng = np.random.default_rng(3)
        at = np.cumsum(rng.integers(1000, 200_000, count))
        for m, kind, flag, peer in ((a, KIND["MPI_Send"], S, 1), (b, KIND["MPI_Recv"], R, 0)):
            m.rows = np.zeros(count, model.EVENT)
            m.rows["kind"], m.rows["flags"], m.rows["site"], m.rows["comm"], m.rows["peer"] = kind, flag, 1, 1, peer
            m.rows["begin"], m.rows["end"] = at, at + rng.integers(100, 900, count)
            m.rows["tag"], m.rows["bytes"] = rng.integers(0, 100, count), rng.integers(1, 1 << 20, count)
        run = run_of([a, b])
        run.messages = np.zeros(count, model.MESSAGE)
        for name in ("sent", "left", "posted", "came"):
            run.messages[name] = np.arange(count)
        run.messages["target"] = 1
        for compress, most in ((True, 60e6 / 10), (False, 90e6 / 10)):
            start = time.process_time()
            text = written(run, compress=compress)
            self.assertLess(time.process_time() - start, 1)
            self.assertLess(len(text), most)
        self.assertEqual(len(run.messages), count)


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
        done = subprocess.run([node, "--check", page.HERE / "page.js"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotIn("</", (page.HERE / "page.js").read_text())
        self.assertNotIn("<!--", (page.HERE / "page.js").read_text())

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
        with self.assertRaisesRegex(trace.TraceError, "Perfetto opens 4;"):
            trace.write_trace(halo(), self.folder, html=False)

    def test_what_cannot_be_written(self):
        (self.folder / "file").write_text("")
        with self.assertRaisesRegex(trace.TraceError, "file cannot be made: "):
            trace.write_trace(halo(), self.folder / "file")
        (self.folder / "out" / "trace.html").mkdir(parents=True)
        with self.assertRaisesRegex(trace.TraceError, r"trace\.html cannot be written: "):
            trace.write_trace(halo(), self.folder / "out")
        self.assertEqual([f.name for f in (self.folder / "out").iterdir()], ["trace.html"])

    def test_no_room(self):
        disk = self.disk("16k")
        (disk / "trace.html").write_text("older")
        with self.assertRaisesRegex(trace.TraceError, r"trace\.html cannot be written: No space left"):
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


class Otf2(Folder):
    def test_the_sentence_where_it_is_missing(self):
        there = importlib.util.find_spec
        self.addCleanup(setattr, importlib.util, "find_spec", there)
        importlib.util.find_spec = lambda name, *more: None if name == "otf2" else there(name, *more)
        with self.assertRaisesRegex(trace.TraceError, "OTF2 needs Python's package otf2: .* -m pip install otf2"):
            trace.write_trace(halo(), self.folder, perfetto=False, html=False, otf2=True)
        self.assertEqual(list(self.folder.iterdir()), [])

    def archive(self, run):
        if importlib.util.find_spec("otf2") is None:
            self.skipTest("no package otf2 here")
        import otf2

        path = otf2_export.write(run, self.folder / "otf2")
        with otf2.reader.open(str(path)) as archive:
            return [
                (location.group.name, location.name, event) for location, event in archive.events
            ], archive.definitions

    def test_an_archive(self):
        a, b = Maker(0, 2, "n0"), Maker(1, 2, "n1")
        for m, other in ((a, 1), (b, 0)):
            m.comms[3] = Comm(3, 1, "MPI_Comm_dup", 0, m.rank, np.arange(2), "ring")
            m.call("MPI_Irecv", 0, 5, flags=R, peer=other, tag=9, request=1, bytes=64, comm=3)
            m.call("MPI_Isend", 5, 10, flags=S, peer=other, tag=9, request=2, bytes=32, comm=3)
            m.call("MPI_Waitall", 20, 40, tag=2)
            m.call(model.COMPLETION, 20, 40, flags=R, peer=other, tag=9, request=1, bytes=32, comm=3)
            m.call(model.COMPLETION, 20, 40, flags=S, peer=other, tag=9, request=2, bytes=32, comm=3)
            m.call("MPI_Allreduce", 50, 60, flags=C, bytes=8)
            m.call("MPI_Bcast", 60, 70, flags=C, peer=1, bytes=8)
            m.call("MPI_Sendrecv", 70, 80, flags=S, peer=other, tag=1, bytes=3)
            m.call("MPI_Sendrecv", 70, 80, flags=R, peer=other, tag=1, bytes=4)
            m.call("MPI_Allreduce", 0, 1, thread=1, flags=C, comm=77)
        found, definitions = self.archive(run_of([a, b]))
        names = [(type(e).__name__, e.time) for group, thread, e in found if (group, thread) == ("rank 0", "thread 0")]
        self.assertEqual(
            names,
            [
                ("Enter", 0), ("MpiIrecvRequest", 0), ("Leave", 5), ("Enter", 5), ("MpiIsend", 5), ("Leave", 10),
                ("Enter", 20), ("MpiIrecv", 40), ("MpiIsendComplete", 40), ("Leave", 40),
                ("Enter", 50), ("MpiCollectiveBegin", 50), ("MpiCollectiveEnd", 60), ("Leave", 60),
                ("Enter", 60), ("MpiCollectiveBegin", 60), ("MpiCollectiveEnd", 70), ("Leave", 70),
                ("Enter", 70), ("MpiSend", 70), ("MpiRecv", 80), ("Leave", 80),
            ],
        )  # fmt: skip
        sent = next(e for g, _, e in found if g == "rank 0" and type(e).__name__ == "MpiIsend")
        came = next(e for g, _, e in found if g == "rank 1" and type(e).__name__ == "MpiIrecv")
        self.assertEqual(
            (sent.receiver, sent.msg_tag, sent.msg_length, sent.communicator.name), (1, 9, 32, came.communicator.name)
        )
        self.assertEqual(came.sender, 0)
        root = [
            e.root for g, t, e in found if type(e).__name__ == "MpiCollectiveEnd" and (g, t) == ("rank 0", "thread 0")
        ]
        self.assertEqual((root[1], root[0]), (1, 0xFFFFFFFF))
        self.assertEqual(sum(t == "thread 1" for _, t, _ in found), 4)
        self.assertIn("MPI_Sendrecv", {r.name for r in definitions.regions})
        again = trace.write_trace(run_of([a]), self.folder, perfetto=False, html=False, otf2=True)
        self.assertEqual([f.name for f in again], ["traces.otf2"])
        self.assertEqual(sorted(f.name for f in self.folder.iterdir()), ["otf2"])

    def test_a_folder_of_somebody_else_stays(self):
        if importlib.util.find_spec("otf2") is None:
            self.skipTest("no package otf2 here")
        (self.folder / "otf2").mkdir()
        (self.folder / "otf2" / "mine").write_text("")
        with self.assertRaisesRegex(otf2_export.Otf2Error, "it stays as it is"):
            otf2_export.write(hostile(), self.folder / "otf2")
        self.assertEqual([f.name for f in self.folder.iterdir()], ["otf2"])


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
