#!/usr/bin/env python3
"""What `headway trace` writes beside its page and Perfetto's file: OTF2 archives and CSV."""

import contextlib
import importlib.util
import unittest

from support import Folder, headway, need_packages

need_packages("numpy", "rich", "typer")

import numpy as np  # noqa: E402
import record_made  # noqa: E402
from trace_made import MS, Maker, halo, run_of  # noqa: E402
from trace_test import C, R, S, hostile  # noqa: E402

from headway.record import model, otf2_export, trace, whole  # noqa: E402
from headway.record.model import Comm  # noqa: E402


class Otf2(Folder):
    def test_the_sentence_where_it_is_missing(self):
        there = importlib.util.find_spec
        self.addCleanup(setattr, importlib.util, "find_spec", there)
        importlib.util.find_spec = lambda name, *more: None if name == "otf2" else there(name, *more)
        with self.assertRaisesRegex(whole.NotWritten, "OTF2 needs Python's package otf2: .* -m pip install otf2"):
            trace.write_trace(halo(), self.folder, perfetto=False, html=False, otf2=True)
        self.assertEqual(list(self.folder.iterdir()), [])

    def archive(self, run, **more):
        if importlib.util.find_spec("otf2") is None:
            self.skipTest("no package otf2 here")
        import otf2

        (path,) = trace.write_trace(run, self.folder, perfetto=False, html=False, otf2=True, **more)
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

    def test_a_window_of_time(self):
        """One message before it, one that reaches into it on the sender's side, two within, one that ends behind it."""
        a, b = Maker(0, 2), Maker(1, 2)
        messages = []

        def message(tag, *times):
            """Begin and end of MPI_Isend, of its wait, and of MPI_Irecv and its wait, in this order of the calls."""
            begins = []
            names = "MPI_Isend", "MPI_Wait", "MPI_Irecv", "MPI_Wait"
            for m, name, flag, begin in zip((a, a, b, b), names, (S, S, R, R), times):
                begins.append(m.call(name, begin, begin + 5, flags=flag, peer=1 - m.rank, tag=tag, request=tag, bytes=8))
            messages.append((0, 1, *begins[:2], *begins[2:], 8, tag, 0))

        message(1, 100, 110, 100, 110)
        message(2, 200, 1010, 1000, 1010)
        message(3, 1020, 1030, 1020, 1030)
        message(4, 1040, 1050, 1040, 1050)
        message(5, 1060, 1070, 1060, 2010)
        for m in (a, b):
            m.call("MPI_Allreduce", 3000, 3010, flags=C, bytes=8)
        run = run_of([a, b], messages)
        for window, tags, times in (
            (None, [1, 2, 3, 4, 5], (100, 3010)), ((1000, 2000), [3, 4], (1000, 1075)), ((1035, 9000), [4, 5], (1030, 3010)),
            ((5000, 6000), [], None),
        ):  # fmt: skip
            with self.subTest(window=window):
                found, _ = self.archive(run, window=window)
                for group, name in (("rank 0", "MpiIsend"), ("rank 1", "MpiIrecv")):
                    events = [e for g, _, e in found if g == group and type(e).__name__ == name]
                    self.assertEqual([e.msg_tag for e in events], tags)
                for name in ("MpiIsendComplete", "MpiIrecvRequest"):
                    ids = [e.request_id for _, _, e in found if type(e).__name__ == name]
                    self.assertEqual(ids, tags, "no half of a message")
                seen = [e.time for _, _, e in found]
                self.assertEqual((min(seen), max(seen)) if seen else None, times)

    def test_too_many_events_are_refused_and_a_window_of_them_is_not(self):
        self.addCleanup(setattr, otf2_export, "MOST_EVENTS", otf2_export.MOST_EVENTS)
        otf2_export.MOST_EVENTS = 4
        with self.assertRaisesRegex(whole.NotWritten, "no OTF2 of 5 events: 4 at most; --from 10 --to 20 writes"):
            self.archive(halo())
        found, _ = self.archive(halo(), window=(15 * MS, 17 * MS))
        self.assertEqual({e.time for _, _, e in found}, {16 * MS, 20 * MS})

    def test_a_folder_of_somebody_else_stays(self):
        if importlib.util.find_spec("otf2") is None:
            self.skipTest("no package otf2 here")
        (self.folder / "otf2").mkdir()
        (self.folder / "otf2" / "mine").write_text("")
        with self.assertRaisesRegex(otf2_export.Otf2Error, "it stays as it is"):
            otf2_export.write(hostile(), self.folder / "otf2")
        self.assertEqual([f.name for f in self.folder.iterdir()], ["otf2"])


class Csv(Folder):
    def test_no_room(self):
        """Half a file must not pass for all of it."""
        size = 30
        programs = []
        for rank in range(size):
            others = [other for other in range(size) if other != rank]
            sends = [("send", "world", other, 0, 8) for other in others]
            programs.append(sends + [("recv", "world", other, 0) for other in others])
        record_made.simulate(self.folder, programs)
        words = "trace", self.folder, "--csv", "--no-html", "--no-perfetto", "--quiet", "--out"
        names = ["communicators.csv", "messages.csv"]
        headway(*words, self.folder / "out")
        self.assertEqual(sorted(file.name for file in (self.folder / "out").iterdir()), names)
        text = (self.folder / "out" / "messages.csv").read_text()
        self.assertEqual(len(text.splitlines()), 1 + size * (size - 1))
        self.assertGreater(len(text), 8192, "more than the older one's page")
        disk = self.disk("32k")
        for name in names:
            (disk / name).write_text("older")
        with contextlib.suppress(OSError), open(disk / "full", "wb", buffering=0) as full:
            while True:
                full.write(bytes(1024))
        self.assertIn("messages.csv cannot be written: No space left", headway(*words, disk, code=1).stderr)
        self.assertEqual(sorted(file.name for file in disk.iterdir()), [names[0], "full", names[1]])
        self.assertEqual([(disk / name).read_text() for name in names], ["older", "older"])


if __name__ == "__main__":
    unittest.main()
