#!/usr/bin/env python3
"""What our library does by itself: in recordings that are made by hand, and in a real one that its counters check."""

import csv
import io
import json
import re
import unittest

from support import Folder, headway, need_packages

need_packages("numpy", "rich", "typer")

import numpy as np  # noqa: E402
from recording import Recorded  # noqa: E402
from rich.console import Console  # noqa: E402
from trace_made import HOSTILE, KIND, MS, Maker, run_of  # noqa: E402

from headway.record import calls, format, library, model, page, perfetto, reading, summary, timeline  # noqa: E402
from headway.record.model import EVENT, FAULT, HELP, PREFETCH, RELEASE  # noqa: E402

OURS, HELPER = 200, 201  # numbers of the library's threads


def release(maker, begin, end, closing, thread=0, peer=1, size=4096):
    maker.call(RELEASE, begin, end, thread=OURS, site=0, peer=peer, tag=thread, request=closing, bytes=size)


def fault(maker, begin, end, closing):
    maker.call(FAULT, begin, end, thread=OURS, site=0, comm=0, request=closing, bytes=4096)


def prefetch(maker, begin, end, spared_us, size, thread=0):
    maker.call(PREFETCH, begin, end, thread=OURS, site=0, peer=1, tag=thread, request=spared_us, bytes=size)


def told(of):
    console = Console(width=160, file=io.StringIO())
    console.print(library.words(of))
    return console.file.getvalue()


class Report(unittest.TestCase):
    """Times in ms: a receive of 0 to 10 returned early."""

    def one(self, maker, *more):
        found = library.report(run_of([maker, *more]))
        self.assertEqual(len(found.rows), 1)
        return found.rows[0]

    def received(self, size=1):
        m = Maker(0, size)
        m.call("MPI_Recv", 0, 10 * MS, flags=model.RECEIVE, peer=0, tag=7, bytes=1 << 20)
        return m

    def test_no_event_no_report(self):
        self.assertIsNone(library.report(run_of([self.received()])))
        self.assertIsNone(library.as_json(None))
        self.assertIsNone(library.words(None))
        self.assertIsNone(library.report(run_of([])))

    def test_what_a_release_hides(self):
        m = self.received()
        release(m, 9 * MS, 20 * MS, 1, size=8000)
        m.call("MPI_Send", 13 * MS, 15 * MS, site=2)
        fault(m, 16 * MS, 17 * MS, 1)
        fault(m, 18 * MS, 18 * MS + 500, 1)
        row = self.one(m)
        self.assertEqual((row.call, row.site.text), ("MPI_Recv", "halo.c:214"))
        self.assertEqual((row.released, row.came, row.lasted), (1, 8000, 10 * MS), "from the return on")
        self.assertEqual(row.hidden, 10 * MS - 2 * MS - 1 * MS - 500)
        self.assertEqual((row.touched, row.faults, row.first_touch, row.stopped), (1, 2, 6 * MS, MS + 500))

    def test_data_that_were_whole_before_the_return_hide_nothing(self):
        m = self.received()
        release(m, 9 * MS, 9 * MS + 5, 1)
        row = self.one(m)
        self.assertEqual((row.released, row.lasted, row.hidden, row.touched, row.first_touch), (1, 0, 0, 0, None))

    def test_what_several_hide_together_is_there_once(self):
        m = Maker(0, 1)
        m.call("MPI_Waitall", 0, 10 * MS)
        release(m, 9 * MS, 20 * MS, 1)
        release(m, 9 * MS, 30 * MS, 2)
        row = self.one(m)
        self.assertEqual((row.released, row.lasted), (2, 30 * MS))
        self.assertEqual(row.hidden, 20 * MS)

    def test_receives_that_were_closed_as_one_share_its_faults(self):
        m = Maker(0, 1)
        m.call("MPI_Waitall", 0, 10 * MS)
        for _ in range(3):
            release(m, 9 * MS, 20 * MS, 5)
        fault(m, 12 * MS, 14 * MS, 5)
        row = self.one(m)
        self.assertEqual((row.released, row.touched, row.faults, row.stopped), (3, 1, 1, 2 * MS))

    def test_the_call_is_that_of_the_thread(self):
        """Another thread is in MPI for long, from another site: neither its call, nor its time."""
        m = self.received()
        m.call("MPI_Barrier" if "MPI_Barrier" in KIND else "MPI_Allreduce", 1 * MS, 40 * MS, thread=1, site=2)
        release(m, 9 * MS, 20 * MS, 1, thread=0)
        row = self.one(m)
        self.assertEqual((row.call, row.hidden), ("MPI_Recv", 10 * MS))
        other = self.received()
        other.call("MPI_Allreduce", 1 * MS, 12 * MS, thread=1, site=2)
        release(other, 9 * MS, 20 * MS, 1, thread=1)
        row = self.one(other)
        self.assertEqual((row.call, row.lasted), ("MPI_Allreduce", 8 * MS))

    def test_medians_and_sums_by_site(self):
        m = Maker(0, 1)
        for i, late in enumerate((1, 2, 9)):
            at = i * 100 * MS
            m.call("MPI_Recv", at, at + 10 * MS, flags=model.RECEIVE)
            release(m, at + 10 * MS, at + 30 * MS, i + 1, size=10)
            fault(m, at + (10 + late) * MS, at + 20 * MS, i + 1)
        m.call("MPI_Wait", 300 * MS, 310 * MS, site=2)
        release(m, 310 * MS, 400 * MS, 4)
        found = library.report(run_of([m]))
        first, second = found.rows
        self.assertEqual((first.call, first.hidden, first.first_touch), ("MPI_Wait", 90 * MS, None), "most hidden first")
        self.assertEqual((second.released, second.first_touch, second.came), (3, 2 * MS, 30))
        self.assertEqual(found.sum("released"), 4)

    def test_prefetches(self):
        m = Maker(0, 1)
        m.call("MPI_Recv", 0, 10 * MS)
        prefetch(m, 1 * MS, 9 * MS, 3000, 5000)  # 3 ms spared
        prefetch(m, 2 * MS, 4 * MS, 3000, 5000)  # no more than it stood
        prefetch(m, 3 * MS, 9 * MS, 3000, 0)  # in vain
        prefetch(m, 20 * MS, 21 * MS, 100, 100, thread=-1)  # in no call
        found = library.report(run_of([m]))
        by = {row.call: row for row in found.rows}
        recv = by["MPI_Recv"]
        self.assertEqual((recv.prefetches, recv.useful, recv.prefetched, recv.spared), (3, 2, 10000, 5 * MS))
        self.assertEqual((by[""].prefetches, by[""].spared), (1, 100_000))

    def test_asked_for_by_the_message_thread_and_received_later(self):
        m = Maker(0, 1)
        m.call("MPI_Wait", 20 * MS, 30 * MS)
        prefetch(m, 1 * MS, 25 * MS, 1000, 100, thread=-1)
        self.assertEqual(self.one(m).call, "MPI_Wait")

    def test_helps(self):
        m = self.received()
        for i in range(4):
            m.call(HELP, i * MS, i * MS + 100, thread=HELPER, site=0, comm=0)
        found = library.report(run_of([m]))
        self.assertEqual((found.helps, found.helped, found.rows), (4, 400, []))
        self.assertIn("message thread: moved data for 400 ns", told(found))

    def test_hostile_numbers(self):
        """All that a file may hold: nothing but wrong figures may come of it."""
        m = Maker(0, 2)
        m.sites[1] = model.Site(file=HOSTILE, line=1, function=HOSTILE)
        big = 2**62
        m.call("MPI_Recv", 0, big)
        for thread, closing, size in ((-5, 2**32 - 1, 2**64 - 1), (2**31 - 1, 0, 0), (255, 1, 1)):
            m.call(RELEASE, 5, big, thread=7, site=999, comm=99, peer=-9, tag=thread, request=closing, bytes=size)
            m.call(FAULT, big, big, thread=7, request=closing)
            m.call(PREFETCH, 0, big, thread=7, tag=thread, request=2**32 - 1, bytes=size)
            m.call(0x801F, 1, 2, thread=7)
        run = run_of([m])
        found = library.report(run)
        self.assertNotIn("\x1b", told(found))
        json.dumps(library.as_json(found))
        text = page.render(summary.summarise(run))
        self.assertFalse("<img" in text or "\x1b" in text)
        self.assertTrue(all(row.hidden <= row.lasted for row in found.rows))


class Shown(Folder):
    def made(self):
        m = Maker(0, 2)
        m.call("MPI_Recv", 0, 10 * MS, flags=model.RECEIVE, peer=1, tag=7)
        release(m, 10 * MS, 20 * MS, 3)
        fault(m, 12 * MS, 14 * MS, 3)
        prefetch(m, 1 * MS, 9 * MS, 1234, 5000)
        m.call(HELP, 11 * MS, 12 * MS, thread=HELPER, site=0, comm=0)
        one = m.made()
        one.threads = {OURS: "library", HELPER: "message thread"}
        run = run_of([Maker(1, 2)])
        run.ranks = [one, *run.ranks]
        return run

    def test_tracks_have_the_names_of_the_file(self):
        titles = [track.title for track in calls.arrange(self.made().ranks[0]).tracks]
        self.assertEqual(
            titles,
            ["thread 0", "library: faults", "library: releases", "library: prefetches", "message thread: helps"],
        )

    def test_threads_of_the_library_call_nothing(self):
        """They would count as threads that compute all the time."""
        line = timeline.Timeline(self.made())
        self.assertEqual(line.threads.tolist(), [1, 0])

    def test_what_perfetto_is_told(self):
        text = b"".join(perfetto.packets(self.made()))
        for word in (b"library: faults", b"message thread: helps", b"closed pages", "µs spared".encode(), b"thread of the call"):
            self.assertIn(word, text)

    def test_the_page(self):
        found = summary.summarise(self.made())
        text = page.render(found)
        meta = json.loads(re.search(r'<script type="application/json" id=meta>(.*?)</script>', text, re.DOTALL)[1])
        self.assertEqual([(what, name) for what, name, *_ in meta["marks"]], [
            (calls.RELEASES, "released"), (calls.FAULTS, "fault"), (calls.PREFETCHES, "prefetch"), (calls.HELPS, "message thread"),
        ])  # fmt: skip
        for words in ("<h2>What our library did by itself", "thin strips", "halo.c:214 exchange"):
            self.assertTrue(words in text, words)
        script = (page.HERE / "page.js").read_text()
        self.assertTrue(f"FAULTS = {calls.FAULTS}, RELEASES = {calls.RELEASES};" in script, "numbers of tracks, twice")
        self.assertFalse("<h2>What our library" in page.render(summary.summarise(run_of([Maker(0, 1)]))))

    def test_csv_json_and_words_agree(self):
        found = library.report(self.made())
        data = library.as_json(found)
        library.write_csv(found, self.folder / "library.csv")
        (row,) = csv.DictReader(io.StringIO((self.folder / "library.csv").read_text()))
        (site,) = data["sites"]
        for name in library.NUMBERS:
            self.assertEqual(int(row[name]), site[name], name)
        self.assertEqual((site["hidden"], site["spared"], data["helped"], data["faults"]), (8 * MS, 1_234_000, MS, 1))
        text = told(found)
        for word in ("1 receive returned", "80.0 %", "1 of 1", "2 ms", "1.234 ms", "halo.c:214 exchange"):
            self.assertIn(word, text)


class File(Folder):
    HEADER = {
        "rank": 0, "size": 1, "host": "h", "boot": "b", "pid": 1, "program": "/p", "arguments": [], "mpi": "Headway MPI",
        "ticks": "ns", "started": 0, "functions": [["MPI_Recv", "recv"]],
    }  # fmt: skip

    def write(self, threads=None, lost=0, kind=RELEASE):
        path = self.folder / "rank-0.hwr"
        with format.Writer(path, self.HEADER) as file:
            file.clock((0, 0, 0), (1000, 1000, 1000))
            for number, kinds in ((0, [0]), (1, [kind, FAULT, 0x801F]), (2, [HELP])):
                events = np.zeros(len(kinds), EVENT)
                events["kind"], events["thread"], events["begin"], events["end"] = kinds, number, 10, 20
                file.events(events)
            if threads is not None:
                file.json(format.THREADS, threads)
            file.end(5, library_lost=lost)
        return path

    def test_names_of_threads(self):
        names = [{"thread": 1, "name": "library"}, {"thread": 2, "name": "message\ud800 thread"}]
        rank = format.read(self.write(names)).rank
        self.assertEqual((rank.problem, rank.threads), ("", {1: "library", 2: "message? thread"}))
        self.assertEqual(format.read(self.write()).rank.threads, {})
        self.assertEqual(len(rank.events), 5)

    def test_bad_names_of_threads(self):
        for entries in ({"thread": 1}, [7], [{"thread": 256, "name": "x"}], [{"thread": -1}], [{"thread": 1, "name": 5}], [{}]):
            rank = format.read(self.write(entries)).rank
            self.assertIn("counts up to byte", rank.problem, entries)
            self.assertEqual(len(rank.events), 5, "what stands before it counts")

    def test_events_that_found_no_room_are_told(self):
        self.write(lost=3)
        self.assertTrue(any("lost 3 of the library's own events" in note for note in reading.read(self.folder).notes))

    def test_a_release_is_no_message(self):
        """Its fields are its own: a number that is a request's elsewhere, a thread where the tag is."""
        self.write()
        run = reading.read(self.folder)
        self.assertEqual((len(run.messages), len(run.collectives)), (0, 0))


PROGRAM = """#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { HUGE = 1 << 26, LONG = 1 << 24, STEPS = 12, SHORT = 1 << 19, ROUNDS = 16 };
static volatile char seen;
static void early(int rank, char* data) {
  for (int step = 0; step < STEPS; ++step) {
    if (rank == 0) {
      usleep(3000);
      MPI_Send(data, HUGE, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
    } else {
      MPI_Recv(data, HUGE, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      seen = data[HUGE - 3 * 4096]; /* the last page of a buffer comes first */
    }
  }
}
static void ahead(int rank, char* data) {
  for (int round = 0; round < ROUNDS; ++round) {
    if (rank == 0) {
      memset(data, round, SHORT);
      usleep(20000);
      MPI_Send(data, SHORT, MPI_CHAR, 1, 2, MPI_COMM_WORLD);
    } else {
      MPI_Recv(data, SHORT, MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      seen = data[0];
    }
  }
}
static void beside(int rank, char* data) {
  MPI_Request request;
  if (rank == 0) {
    MPI_Isend(data, LONG, MPI_CHAR, 1, 3, MPI_COMM_WORLD, &request);
  } else {
    MPI_Irecv(data, LONG, MPI_CHAR, 0, 3, MPI_COMM_WORLD, &request);
  }
  const double until = MPI_Wtime() + 0.2;
  while (MPI_Wtime() < until) {
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}
int main(int argc, char** argv) {
  int rank;
  char *one = malloc(HUGE), *other = malloc(SHORT), *third = malloc(LONG);
  memset(one, 1, HUGE);
  memset(other, 1, SHORT);
  memset(third, 1, LONG);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  early(rank, one);
  MPI_Barrier(MPI_COMM_WORLD);
  ahead(rank, other);
  MPI_Barrier(MPI_COMM_WORLD);
  beside(rank, third);
  MPI_Finalize();
  return 0;
}
"""


class Real(Recorded):
    """A late sender; a receiver that touches the last page at once; a message with much computation before it."""

    def setUp(self):
        super().setUp()
        source = self.folder / "early.c"
        source.write_text(PROGRAM)
        self.program = self.compile(source, "early")

    def record(self, *sets, options=()):
        words = [w for one in (*sets, "SHM=off", "COUNTERS=counters-%r.json") for w in ("--set", one)]
        done = self.run_it(2, self.program, before=words, options=options)
        counters = [json.loads((self.folder / f"counters-{rank}.json").read_text()) for rank in (0, 1)]
        return done, reading.read(self.folder / "headway-run-1"), counters

    def count(self, rank, kind):
        return int((rank.events["kind"] == kind).sum())

    def test_events_are_those_that_the_counters_count(self):
        _done, run, counters = self.record("EARLY_RELEASE=matched", "RELEASE_THRESHOLD=0", "SEND_AHEAD=0")
        self.assertEqual([(r.problem, r.finalized) for r in run.ranks], [("", True)] * 2)
        for rank, counter in zip(run.ranks, counters):
            self.assertEqual(self.count(rank, RELEASE), counter["released"])
            self.assertLessEqual(self.count(rank, FAULT), counter["page_faults"])
            some = rank.events[rank.events["kind"] == PREFETCH]
            self.assertEqual(int((some["bytes"] > 0).sum()), counter["prefetch_hits"])
            self.assertEqual(int(some["bytes"].sum()), counter["prefetch_used_bytes"])
            spared = int(some["request"].sum()) * 1000
            self.assertLessEqual(abs(spared - counter["prefetch_saved_ns"]), 1000 * len(some))
            self.assertLessEqual(self.count(rank, HELP), counter["thread_useful"])
            self.assertEqual(bool(self.count(rank, HELP)), bool(counter["thread_useful"]))
            self.assertTrue((rank.end >= rank.begin).all())
            self.assertEqual(sorted(rank.threads.values()), ["library", "message thread"])
        if not counters[1]["released"]:
            self.skipTest("no pages can be closed here")
        self.check_release(run)

    def check_release(self, run):
        one = run.ranks[1]
        releases = np.flatnonzero(one.events["kind"] == RELEASE)
        faults = np.flatnonzero(one.events["kind"] == FAULT)
        self.assertGreater(len(faults), 0, "the last page was touched at once")
        for at in faults:
            (same,) = releases[one.events["request"][releases] == one.events["request"][at]]
            self.assertLessEqual(one.begin[same], one.begin[at])
            self.assertLessEqual(one.end[at], one.end[same])
        self.assertEqual(set(one.events["peer"][releases].tolist()), {0})
        found = library.report(run)
        row = next(row for row in found.rows if row.touched)
        self.assertEqual(row.call, "MPI_Recv")
        self.assertLess(row.hidden, row.lasted)
        done = headway("trace", cwd=self.folder)
        self.assertIn("returned before their data", done.stdout)
        self.assertRegex(done.stdout, r"early\.c:\d+ early +MPI_Recv")

    def test_what_is_off_tells_nothing(self):
        _done, run, _counters = self.record("EARLY_RELEASE=off", "PREFETCH=off", "PROGRESS=off")
        for rank in run.ranks:
            self.assertEqual([self.count(rank, kind) for kind in model.LIBRARY], [0] * 16)
            self.assertEqual(rank.threads, {})
        self.assertIsNone(library.report(run))

    def test_ranks_that_are_not_recorded_are_not_asked(self):
        done = self.record("EARLY_RELEASE=matched", "RELEASE_THRESHOLD=0", options=("--ranks", "0"))[0]
        self.assertEqual([p.name for p in (self.folder / "headway-run-1").iterdir()], ["rank-0.hwr"], done.stderr)


class RealMpich(Recorded):
    """Under another MPI there is nobody to tell of such events."""

    mpi = "mpich"

    def test_it_has_none(self):
        source = self.folder / "early.c"
        source.write_text(PROGRAM.replace("ROUNDS = 16", "ROUNDS = 1"))
        self.run_it(2, self.compile(source, "early"))
        run = reading.read(self.folder / "headway-run-1")
        self.assertEqual([rank.threads for rank in run.ranks], [{}, {}])
        self.assertIsNone(library.report(run))


if __name__ == "__main__":
    unittest.main(verbosity=2)
