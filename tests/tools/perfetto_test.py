#!/usr/bin/env python3
"""What `headway trace` writes for Perfetto, of runs that are made by hand."""

import importlib.util
import sys
import time
import unittest
import zlib
from collections import Counter

from support import need_packages

need_packages("numpy", "rich")

import numpy as np  # noqa: E402
from perfetto_reader import Reader, written  # noqa: E402
from trace_made import HOSTILE, KIND, MS, Maker, halo, run_of  # noqa: E402

from headway.record import calls, classes, model, words  # noqa: E402
from headway.record.model import Comm, Site  # noqa: E402

S, R, C = model.SEND, model.RECEIVE, model.COLLECTIVE


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

    def test_googles_schema_knows_each_field(self):
        """By the package perfetto, which has the schema of Perfetto itself."""
        if importlib.util.find_spec("perfetto") is None:
            self.skipTest("no package perfetto here")
        from google.protobuf.unknown_fields import UnknownFieldSet
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

        def parsed(text):
            trace = schema.Trace()
            trace.ParseFromString(text)
            for packet in trace.packet:
                if packet.compressed_packets:
                    yield from parsed(zlib.decompress(packet.compressed_packets))
                else:
                    yield packet

        def unknown(message, path):
            found = [f"{path}.{one.field_number}" for one in UnknownFieldSet(message)]
            for field, value in message.ListFields():
                if field.message_type is not None:
                    for one in value if hasattr(value, "append") or hasattr(value, "add") else [value]:
                        found += unknown(one, f"{path}.{field.name}")
            return found

        packets = list(parsed(written(halo())))
        self.assertEqual([one for packet in packets for one in unknown(packet, "packet")], [])
        tracks = {packet.track_descriptor.uuid for packet in packets if packet.HasField("track_descriptor")}
        begin, end = schema.TrackEvent.TYPE_SLICE_BEGIN, schema.TrackEvent.TYPE_SLICE_END
        used, open_now, track, began, ended = Counter(), Counter(), {}, [], []
        for packet in packets:
            sequence = packet.trusted_packet_sequence_id
            if packet.HasField("trace_packet_defaults"):
                track[sequence] = packet.trace_packet_defaults.track_event_defaults.track_uuid
                self.assertIn(track[sequence], tracks)
            if packet.HasField("track_event"):
                used[packet.track_event.type] += 1
                open_now[track[sequence]] += {begin: 1, end: -1}[packet.track_event.type]
                self.assertGreaterEqual(open_now[track[sequence]], 0)
                began += packet.track_event.flow_ids
                ended += packet.track_event.terminating_flow_ids
        self.assertEqual(used, {begin: 5, end: 5})
        self.assertFalse(any(open_now.values()))
        self.assertEqual((began, ended), ([1], [1]))

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


if __name__ == "__main__":
    unittest.main(verbosity=1, argv=sys.argv)
