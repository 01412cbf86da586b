#!/usr/bin/env python3
"""Recordings that do not fit into memory: what is made of them in small parts, with columns in files, is what is made
of them whole. large_recordings_test.py [first seed]; it is printed."""

import base64
import io
import json
import random
import re
import tempfile
import types
import unittest
import zlib

from support import Folder, drawn_seed, main, need_packages

need_packages("numpy", "rich")

import numpy as np  # noqa: E402
import record_made  # noqa: E402
import waiting_made  # noqa: E402
from trace_made import Maker, run_of  # noqa: E402
from perfetto_reader import Reader  # noqa: E402

from headway.record import (  # noqa: E402
    by_site, calls, columns, cuts, detail, joining, library, matrix, model, page, perfetto, reading, summary, transfer_time, waiting,
)  # fmt: skip
from headway.record.columns import Shelves, find, map_of, put, room, take  # noqa: E402
from headway.record.cover import Cover  # noqa: E402
from headway.record.format import BadRecording  # noqa: E402
from headway.record.model import GlobalComm  # noqa: E402
from headway.record.timeline import CODE, Timeline  # noqa: E402

SEED = drawn_seed()
PROGRAMS = 3


def told(folder):
    """All that is said of a recording."""
    run = reading.read(folder)
    found = waiting.classify(run)
    s = summary.summarise(run, found.by_rank(), bins=64)
    names = np.array(s.texts.all, object)
    numbers = [n for n in s.kept.dtype.names if n not in ("name", "site", "comm")]
    kept = [(*(int(row[n]) for n in numbers), *(names[row[n]] for n in ("name", "site", "comm"))) for row in s.kept]
    sites = [
        (names[x.name], names[x.site], x.count, x.time, x.bytes, x.longest, x.row, x.begin, *x.by_class.tolist())
        for x in s.sites
    ]
    m = matrix.matrix(found)
    report = by_site.as_json(by_site.report(found))
    report["run"].pop("folder")
    return {
        "report": report,
        "waits": [getattr(found.waits, name).tolist() for name in waiting.Waits.__dataclass_fields__],
        "classes": found.classes.tolist(),
        "transfer": repr(found.transfer),
        "total": found.total().tolist(),
        "shares": [s.shares.tolist(), s.totals.tolist(), s.threads.tolist(), s.calls.tolist(), s.all_kept, s.messages],
        "kept": sorted(kept),
        "arrows": sorted(tuple(row.tolist())[:7] for row in s.arrows),
        "pairs": [column.tolist() for column in s.matrix],
        "sites": sorted(sites),
        "matrix": [np.array(getattr(m, name)).tolist() for name in matrix.Matrix.__dataclass_fields__],
    }


def slices(run, given=None, window=None):
    """What Perfetto would show: slices, and flows from one to the other."""
    file = io.BytesIO()
    perfetto.pour(perfetto.packets(run, given, window), file)
    reader = Reader(file.getvalue())

    def plain(made):
        more = {key: value for key, value in made.items() if key not in ("track", "depth")}
        return (made["track"]["parent"], made["track"]["name"], tuple(sorted((k, str(v)) for k, v in more.items())))

    ends = [(one[0], reader.ended[flow][0]) for flow, one in reader.begun.items() if flow in reader.ended]
    flows = [(plain(one), plain(other)) for one, other in ends]
    return sorted(map(plain, reader.slices)), sorted(flows), reader


class Small(Folder):
    """Small parts, and columns in files."""

    def setUp(self):
        super().setUp()
        for module, name, value in ((reading, "LARGE", 0), (columns, "CHUNK", 40)):
            self.addCleanup(setattr, module, name, getattr(module, name))
            setattr(module, name, value)

    def whole(self):
        reading.LARGE, columns.CHUNK = 1 << 40, 1 << 30

    def small(self, chunk):
        reading.LARGE, columns.CHUNK = 0, chunk


class Parts(Small):
    def differ(self, seed, programs, **more):
        clocks = [record_made.Clock(), record_made.Clock(offset=5_000_000, drift=5e-5)]
        folder = self.folder / f"{seed}"
        folder.mkdir()
        record_made.simulate(folder, programs, clocks, seed=seed, block=9, **more)
        self.whole()
        expected = told(folder)
        run = reading.read(folder)
        expected_slices = slices(run, waiting.classify(run).by_rank())[:2]
        self.assertTrue(any(expected["report"]["sites"][0]["causes"]) and expected["kept"] and expected["arrows"])
        for chunk in (16, 60):
            self.small(chunk)
            found = told(folder)
            for name, one in expected.items():
                self.assertEqual(found[name], one, f"{name}: seed {seed}, parts of {chunk}")
            run = reading.read(folder)
            classes = waiting.classify(run)
            self.assertGreater(len(classes.line.chunks), 4 if chunk == 16 else 1)
            self.assertIsNotNone(map_of(classes.waits.parts))
            self.assertEqual(slices(run, classes.by_rank())[:2], expected_slices, f"seed {seed}, parts of {chunk}")

    def test_small_parts_give_the_same(self):
        print(f"seed {SEED}", flush=True)
        for seed in range(SEED, SEED + PROGRAMS):
            progress = ("thread", "calls")[seed % 2]  # where only matching moves data, some drawn programs hang
            self.differ(seed, record_made.draw(seed, 4, 20), progress=progress)

    def test_all_that_calls_wait_for(self):
        """Probes, missing cores, scans: what a simulation does not do."""
        for seed in range(SEED, SEED + PROGRAMS):
            run = waiting_made.drawn(random.Random(seed), 80).run()
            self.whole()
            one = waiting.classify(run)
            expected = by_site.as_json(by_site.report(one))
            self.assertTrue((one.line.family[one.waits.event] == CODE["probe"]).any())
            self.small(30)
            run.spill = self.folder
            two = waiting.classify(run)
            self.assertGreater(len(two.line.chunks), 4)
            for name in waiting.Waits.__dataclass_fields__:
                same = getattr(two.waits, name) == getattr(one.waits, name)
                self.assertTrue(np.all(same), f"{name}: seed {seed}")
            self.assertEqual(by_site.as_json(by_site.report(two)), expected, f"seed {seed}")


class Threads(Small):
    """Blocks of several threads, one behind the other: a later part begins before an earlier one ends."""

    def run_of_threads(self, draw):
        makers = [Maker(rank, 2) for rank in range(2)]
        for maker in makers:
            now = [0, 0, 0]
            for _ in range(60):
                thread = draw.randrange(3)
                for _ in range(draw.randrange(1, 12)):  # a block
                    begin = now[thread] + draw.randrange(300)
                    now[thread] = begin + draw.randrange(200, 9000)
                    if draw.random() < 0.2:
                        maker.call("MPI_Waitall", begin, now[thread], thread=thread, tag=3)
                        for _ in range(3):
                            maker.call(model.COMPLETION, begin, now[thread], thread=thread)
                    elif draw.random() < 0.2:
                        for flags in (model.SEND, model.RECEIVE):
                            maker.call("MPI_Sendrecv", begin, now[thread], thread=thread, flags=flags)
                    elif draw.random() < 0.1:
                        maker.call(model.CORE_TAKEN, begin, now[thread], thread=thread, bytes=100)
                    else:
                        maker.call("MPI_Allreduce", begin, now[thread], thread=thread, flags=model.COLLECTIVE)
        return run_of(makers)

    def test_threads(self):
        draw = random.Random(SEED)
        for _ in range(6):
            run = self.run_of_threads(draw)
            self.whole()
            one = waiting.classify(run)
            expected, of_sites, kept = one.waits.parts.copy(), by_site.as_json(by_site.report(one)), slices(run)[:2]
            chain, before = one.line.last_call(np.repeat([0, 1], 50), np.arange(100) * 1000), one.line.before
            self.assertTrue(expected.sum() > 0)
            self.small(draw.randrange(20, 90))
            two = waiting.classify(run)
            self.assertGreater(len(two.line.chunks), 4)
            np.testing.assert_array_equal(two.waits.parts, expected, f"seed {SEED}")
            np.testing.assert_array_equal(two.line.before, before)
            np.testing.assert_array_equal(two.line.owner, one.line.owner)
            np.testing.assert_array_equal(two.line.last_call(np.repeat([0, 1], 50), np.arange(100) * 1000), chain)
            self.assertEqual(by_site.as_json(by_site.report(two)), of_sites)
            self.assertEqual(slices(run)[:2], kept)

    def test_a_cut_parts_no_call(self):
        draw = random.Random(SEED)
        for rank in self.run_of_threads(draw).ranks:
            edges = cuts.cuts(rank, 30)
            self.assertGreater(len(edges), 8)
            for edge in edges[1:-1]:
                for thread in range(3):
                    mine = rank.events["thread"] == thread
                    before, after = rank.end[:edge][mine[:edge]], rank.begin[edge:][mine[edge:]]
                    self.assertLessEqual(before.max(initial=0), after.min(initial=1 << 60))
                    kinds = rank.events["kind"][edge:][mine[edge:]]
                    self.assertFalse(len(kinds) and kinds[0] == model.COMPLETION)

    def test_one_call_that_is_larger_than_a_part(self):
        maker = Maker(0, 1)
        maker.call("MPI_Waitall", 0, 100, tag=2000)
        for _ in range(2000):
            maker.call(model.COMPLETION, 0, 100)
        maker.call("MPI_Allreduce", 100, 200)
        self.assertEqual(cuts.cuts(maker.made(), 100), [0, 2001, 2002])
        self.assertEqual(waiting.classify(run_of([maker])).waits.event.tolist(), [0, 2001])


OURS, HELPER, STEP = 200, 201, 60_000  # the library's threads; all times are multiples, whose sixth is whole


def with_library(draw, threads, steps=150):
    """A rank of which some calls return early. The library's records come when a thread writes a block, by their ends."""
    maker, waiting_, now, number = Maker(0, 1), [], [0] * threads, 0
    for step in range(steps):
        thread = now.index(min(now))
        for _ in range(draw.randrange(1, 6)):
            begin = now[thread] + draw.randrange(30) * STEP
            end = now[thread] = begin + draw.randrange(1, 9) * STEP
            maker.call(draw.choice(("MPI_Recv", "MPI_Wait")), begin, end, thread=thread, site=draw.randrange(1, 3))
            if draw.random() < 0.4:
                number += 1
                until = end + draw.randrange(20) * STEP
                for _ in range(draw.choice((1, 1, 2))):
                    waiting_.append((model.RELEASE, end, until, thread, number, draw.randrange(1 << 20)))
                if draw.random() < 0.5 and until > end:
                    waiting_.append((model.FAULT, end + STEP, until, -1, number, 4096))
            if draw.random() < 0.3:
                of = draw.choice((thread, -1))
                until = end + draw.randrange(90) * STEP
                waiting_.append((model.PREFETCH, begin, until, of, draw.randrange(9000), draw.choice((0, 5000))))
            if draw.random() < 0.2:
                waiting_.append((model.HELP, begin, begin + STEP, -1, 0, 0))
        waiting_.sort(key=lambda one: one[2])
        while waiting_ and (waiting_[0][2] <= now[thread] or step == steps - 1):
            kind, begin, end, of, request, size = waiting_.pop(0)
            by = HELPER if kind == model.HELP else OURS
            maker.call(kind, begin, end, thread=by, site=0, comm=0, tag=of, request=request, bytes=size)
    return maker


class ByItself(Small):
    """What our library did."""

    def test_small_parts_give_the_same(self):
        draw = random.Random(SEED)
        for threads in (1, 1, 2, 3):
            run = run_of([with_library(draw, threads)])
            self.whole()
            expected = library.as_json(library.report(run))
            self.assertTrue(min(expected[name] for name in library.TOTALS) > 0, expected)
            self.assertTrue(any(row["first_touch"] for row in expected["sites"]))
            parts = library._Parts(run.ranks[0])
            self.assertEqual((len(parts.spans), len(list(parts.releases()))), (1, 1))
            for chunk in (50, 120):
                self.small(chunk)
                parts = library._Parts(run.ranks[0])
                groups = list(parts.releases())
                self.assertTrue(len(groups) > 2 and len(parts.spans) > 4, f"seed {SEED}")
                self.assertLess(max(map(len, groups)), 3 * chunk)
                self.assertEqual(library.as_json(library.report(run)), expected, f"seed {SEED}, parts of {chunk}")

    def test_what_never_ends_is_parted(self):
        maker = Maker(0, 1)
        for at in range(2000):
            maker.call("MPI_Recv", at * 100, at * 100 + 50)
            maker.call(model.RELEASE, at * 100 + 50, at * 100 + 400, thread=OURS, tag=0, request=at + 1, bytes=9)
        run = run_of([maker])
        self.assertLess(max(map(len, library._Parts(run.ranks[0]).releases())), 3 * columns.CHUNK)
        found = library.report(run)
        self.assertEqual((found.sum("released"), found.sum("lasted")), (2000, 2000 * 350))
        self.assertTrue(100_000 <= found.sum("hidden") <= 140_000, found)

    def test_the_median_of_very_many(self):
        self.addCleanup(setattr, library, "MOST_TOUCHES", library.MOST_TOUCHES)
        library.MOST_TOUCHES = 100
        sample = library._Sample()
        for at in range(0, 9000, 7):
            sample.add(np.arange(at, at + 7))
        self.assertTrue(50 <= len(sample.values) <= 100)
        np.testing.assert_array_equal(sample.values, np.arange(len(sample.values)) * sample.step)

    def test_perfetto_has_them_with_their_times(self):
        run = run_of([with_library(random.Random(SEED), 2)])

        def times():
            found = slices(run)[0]
            return sorted((dict(s[2])["name"], int(dict(s[2])["begin"]), int(dict(s[2])["end"])) for s in found)

        self.whole()
        expected = times()
        self.assertTrue({"release", "fault", "prefetch", "help"} <= {name for name, *_ in expected})
        self.small(50)
        self.assertEqual(times(), expected, f"seed {SEED}")

    def test_the_page_has_strips_where_it_holds_each_call(self):
        for module, name, value in ((detail, "A_STRETCH", (60, 1)), (detail, "BLOCK", 8), (detail, "MARGIN", 40)):
            self.addCleanup(setattr, module, name, getattr(module, name))
            setattr(module, name, value)
        run = run_of([with_library(random.Random(SEED), 1)])
        s = summary.summarise(run, all_up_to=10, most_waits=20)
        self.assertFalse(np.isin(s.kept["what"], calls.STRIPS).any())
        self.assertEqual(page.marks(s, 0), [])
        self.assertIn("What our library did by itself", page.render(s))
        s.detail = detail.stretches(run, None, s)
        rank = run.ranks[0]
        ours = rank.events["thread"] >= OURS
        for one in s.detail:
            touches = (rank.begin <= one.end) & (rank.end >= one.begin)
            strips = np.isin(one.rows["what"], calls.STRIPS)
            self.assertEqual(int((~strips).sum()), int((touches & ~ours).sum()))
            self.assertTrue(0 < strips.sum() <= (touches & ours).sum())
        text = page.render(s)
        meta = json.loads(re.search("id=meta>(.*?)</script>", text)[1])
        self.assertEqual({what for what, *_ in meta["marks"]}, set(calls.OF_LIBRARY.values()))
        self.assertIn("thin strips", text)

    def test_one_that_lasts_long_takes_no_other_calls_along(self):
        maker = Maker(0, 1)
        for at in range(20_000):
            maker.call("MPI_Recv", at * 100, at * 100 + 50)
        maker.call(model.PREFETCH, 0, 2_000_000, thread=OURS, tag=-1)
        first, last = detail.Places(maker.made()).of(1000, 2000)
        self.assertLess(last - first, 30)


class Columns(Folder):
    """Of columns in files, against the same in memory."""

    def setUp(self):
        super().setUp()
        self.draw = np.random.default_rng(SEED)

    def in_file(self, values):
        found = room(len(values), values.dtype, self.folder)
        found[:] = values
        self.assertIsNotNone(map_of(found))
        return found

    def test_take_put_and_find(self):
        values = np.sort(self.draw.integers(0, 10**7, 400_000))
        column, index = self.in_file(values), self.draw.integers(0, len(values), 30_000)
        np.testing.assert_array_equal(take(column, index), values[index])
        wanted = self.draw.integers(-5, 10**7 + 5, 30_000)
        np.testing.assert_array_equal(find(column, wanted), np.searchsorted(values, wanted, "right"))
        some = np.unique(index)
        put(column, some, some * 3)
        values[some] = some * 3
        np.testing.assert_array_equal(column, values)
        self.assertEqual(len(take(column, index[:0])), 0)

    def test_fields_and_rows(self):
        rows = np.zeros(5000, model.MESSAGE)
        rows["tag"], rows["bytes"] = np.arange(5000), 3
        column, index = self.in_file(rows), self.draw.integers(0, 5000, 999)
        self.assertTrue((take(column, index) == rows[index]).all())
        np.testing.assert_array_equal(take(column["tag"], index), index)
        wide = columns.table(100, 7, np.int64, self.folder)
        wide[:] = np.arange(700).reshape(100, 7)
        np.testing.assert_array_equal(take(wide, np.array([99, 0, 50])), wide[[99, 0, 50]])

    def test_shelves(self):
        for spill in (None, self.folder):
            shelves, expected = Shelves(5, np.dtype([("a", "<i8")]), spill), {n: [] for n in range(5)}
            for _ in range(7):
                rows = np.zeros(self.draw.integers(0, 50), [("a", "<i8")])
                rows["a"], shelf = self.draw.integers(0, 999, len(rows)), self.draw.integers(0, 4, len(rows))
                shelves.add(rows, shelf)
                for one, a in zip(shelf.tolist(), rows["a"].tolist()):
                    expected[one].append(a)
            for number, rows in expected.items():
                self.assertEqual(shelves[number]["a"].tolist(), rows)

    def test_cover(self):
        lane, begin = np.sort(self.draw.integers(0, 3, 400)), self.draw.integers(0, 10_000, 400)
        end = begin + self.draw.integers(0, 60, 400)
        whole = Cover(lane, begin, end, 20_000)
        order = np.lexsort((begin, lane))
        first, last = (lane * 20_000 + begin)[order], (lane * 20_000 + end)[order]
        parts = [(first[at : at + 37], last[at : at + 37]) for at in range(0, 400, 37)]
        for spill in (None, self.folder):
            self.addCleanup(setattr, columns, "CHUNK", columns.CHUNK)
            columns.CHUNK = 11
            cover = Cover.of(parts, 400, 20_000, spill)
            for name in ("begin", "end", "before"):
                np.testing.assert_array_equal(getattr(cover, name), getattr(whole, name))
            one, two = self.draw.integers(0, 3, (2, 300))
            low = self.draw.integers(0, 9000, 300)
            high = low + self.draw.integers(0, 900, 300)
            for ask in ("within", "without"):
                np.testing.assert_array_equal(getattr(cover, ask)(one, low, high), getattr(whole, ask)(one, low, high))
            np.testing.assert_array_equal(cover.neither(one, two, low, high), whole.neither(one, two, low, high))
            np.testing.assert_array_equal(cover.stop(one, high), whole.stop(one, high))

    def most_held(self, module):
        """Asks for the most that was held, from now on, when that module let columns rest."""
        before, most, old = held(), 0, module.rest

        def look(*some):
            nonlocal most
            most = max(most, held() - before)
            old(*some)

        module.rest = look
        self.addCleanup(setattr, module, "rest", old)
        return lambda: most

    def test_memory_is_given_back(self):
        """What is held of a column of 200 MB while its places are looked at by chance."""
        column = room(25_000_000, np.int64, self.folder)
        for at in range(0, len(column), 1 << 20):
            column[at : at + (1 << 20)] = at
            columns.rest(column)
        index = self.draw.integers(0, len(column), 100_000)
        most = self.most_held(columns)
        # Also by a few places far apart, of which each may bring much of the file with it.
        for some in (index, np.linspace(0, len(column) - 1, 400, dtype=np.int64)):
            take(column, some)
            find(column, column[:1] + np.sort(some))
        self.assertLess(most(), 110e6)
        self.assertGreater(most(), 1e6)

    def test_collectives_give_back_memory_rank_by_rank(self):
        """Four ranks have 34 MB of them each."""
        count, ranks = 700_000, 4
        parts = []
        for rank in range(ranks):
            rows = room(count, joining.ROW, self.folder)
            self.assertIsNotNone(map_of(rows))
            rows[:] = np.zeros(1, joining.ROW)
            rows["order"], rows["rank"], rows["root"] = np.arange(count), rank, -1
            columns.rest(rows)
            parts.append(rows)
        most = self.most_held(joining)
        world = GlobalComm(np.arange(ranks), "MPI_COMM_WORLD", "")
        found, notes = joining.together(parts, ["MPI_Barrier"], [world], self.folder)
        self.assertEqual((len(found), notes), (count, []))
        np.testing.assert_array_equal(np.diff(found.starts), ranks)
        self.assertLess(most(), 80e6)
        self.assertGreater(most(), 10e6)

    def test_calls_in_time_look_at_little_of_a_column(self):
        """Of what tells the rank of each part, 100 MB."""
        count = 25_000_000
        columns_of = {name: room(count, kind, self.folder) for name, kind in (("place", np.int32), ("begin", np.int64))}
        for column in columns_of.values():
            for at in range(0, count, columns.CHUNK):
                column[at : at + columns.CHUNK] = at
                columns.rest(column)
        chunks = [(low, min(low + columns.CHUNK, count)) for low in range(0, count, columns.CHUNK)]
        before, held_then = held(), []
        line = types.SimpleNamespace(
            chunks=chunks, call=np.zeros(count, bool), rest=lambda: held_then.append(held() - before), **columns_of
        )
        self.assertEqual(sum(map(len, Timeline.in_time(line))), 0)
        self.assertEqual(len(held_then), len(chunks))
        self.assertLess(held_then[0], 30e6)

    def test_streams_of_a_rank_in_pieces(self):
        self.addCleanup(setattr, joining, "PIECE", joining.PIECE)
        for count in (0, 1, 2, 63, 64, 65, 1000):
            rows = np.zeros(count, joining.ROW)
            for name in ("epoch", "comm", "stream"):
                rows[name] = self.draw.integers(0, 3, count)
            rows = rows[np.lexsort((rows["stream"], rows["comm"], rows["epoch"]))]
            whole = joining.edges((rows["epoch"], rows["comm"], rows["stream"]))
            for joining.PIECE in (1, 2, 64, 10_000):
                np.testing.assert_array_equal(joining.streams(rows), whole)


def held():
    """Bytes of this process in memory that lie in files."""
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith("RssFile"))
    return int(line.split()[1]) * 1024


class Learned(Small):
    def test_of_very_many_messages_a_part(self):
        sends = [("send", "world", 1, 0, size) for size in (8, 1000, 30_000) * 100]
        programs = [sends, [("recv", "world", 0, 0)] * 300]
        for number, program in enumerate(programs):
            program[:] = [step for one in program for step in (("compute", 9000 if number == 0 else 100), one)]
        record_made.simulate(self.folder, programs)
        self.whole()
        run = reading.read(self.folder)
        line = waiting.Timeline(run)
        m = transfer_time.messages(line)
        whole = transfer_time.learn(line, m)
        self.addCleanup(setattr, transfer_time, "LEARNED", transfer_time.LEARNED)
        transfer_time.LEARNED = 100
        part = transfer_time.learn(line, m)
        self.assertTrue(20 < part.lines[0].messages < 200 < whole.lines[0].messages, part)
        size = np.array([8, 1000, 30_000])
        np.testing.assert_allclose(part.lines[0].time(size), whole.lines[0].time(size), rtol=0.15)
        kept = transfer_time.drawn(m)
        self.assertEqual(len(np.unique(kept.came)), len(kept.came))


class Window(Small):
    def test_only_some_time_is_written(self):
        record_made.simulate(self.folder, record_made.draw(SEED, 4, 8), seed=SEED)
        run = reading.read(self.folder)
        every, _, _ = slices(run)
        first, last = run.duration // 4, run.duration // 2
        some, _, reader = slices(run, None, (first, last))
        self.assertTrue(0 < len(some) < len(every))
        self.assertTrue(set(some) <= set(every))
        expected = [s for s in every if int(dict(s[2])["end"]) >= first and int(dict(s[2])["begin"]) <= last]
        self.assertEqual(some, expected)
        self.assertEqual(set(reader.begun), set(reader.ended))
        self.assertEqual(slices(run, None, (run.duration + 5, run.duration + 9))[0], [])


class Disk(Small):
    def test_columns_must_fit_on_the_disk(self):
        record_made.simulate(self.folder, record_made.draw(SEED, 2, 2), seed=SEED)
        usage, need = reading.shutil.disk_usage, 7 * sum(f.stat().st_size for f in self.folder.iterdir())
        self.addCleanup(setattr, reading.shutil, "disk_usage", usage)
        free = {str(self.folder): need, tempfile.gettempdir(): 0}
        reading.shutil.disk_usage = lambda place: types.SimpleNamespace(free=free[str(place)])
        self.assertEqual(reading.read(self.folder).spill, self.folder)
        free[str(self.folder)] = need - 1
        self.assertIsNone(reading.read(self.folder).spill, "it is small enough for memory")
        self.addCleanup(setattr, reading, "BEARABLE", reading.BEARABLE)
        reading.BEARABLE = 0
        with self.assertRaisesRegex(BadRecording, "of disk for a while; there are .* and 0 B in .*TMPDIR names"):
            reading.read(self.folder)
        free[tempfile.gettempdir()] = need
        self.assertEqual(str(reading.read(self.folder).spill), tempfile.gettempdir())


class Detail(Small):
    def setUp(self):
        super().setUp()
        sizes = (detail, "A_STRETCH", (60, 1)), (detail, "BLOCK", 8), (page, "DETAIL", page.DETAIL)
        for module, name, value in sizes:
            self.addCleanup(setattr, module, name, getattr(module, name))
            setattr(module, name, value)
        record_made.simulate(self.folder, record_made.draw(SEED, 4, 20), seed=SEED, block=20)
        self.run_ = reading.read(self.folder)
        self.given = waiting.classify(self.run_).by_rank()
        self.whole = summary.summarise(self.run_, self.given)
        self.s = summary.summarise(self.run_, self.given, all_up_to=10, most_waits=20)

    def calls(self, rows, texts):
        names = [n for n in rows.dtype.names if n not in ("name", "site", "comm")]
        return sorted((*(int(r[n]) for n in names), *(texts[r[n]] for n in ("name", "site", "comm"))) for r in rows)

    def test_a_stretch_holds_each_call_that_touches_it(self):
        self.assertTrue(self.whole.all_kept and not self.s.all_kept)
        self.assertEqual(detail.stretches(self.run_, self.given, self.whole), [])
        found = detail.stretches(self.run_, self.given, self.s)
        self.assertGreater(len(found), 1, f"seed {SEED}")
        kept = self.whole.kept
        for one in found:
            touches = (kept["begin"] <= one.end) & (kept["begin"] + kept["time"] >= one.begin)
            self.assertEqual(self.calls(one.rows, self.s.texts.all), self.calls(kept[touches], self.whole.texts.all))
            self.assertTrue((np.diff(one.rows["row"]) >= 0).all())
        longest = self.s.waits(1)[0]
        self.assertTrue(found[0].begin < longest["begin"] + longest["time"] <= found[0].end)

    def test_what_is_asked_for_comes_first(self):
        middle = self.run_.duration // 2
        found = detail.stretches(self.run_, self.given, self.s, (middle, middle + 1))
        self.assertTrue(found[0].begin <= middle <= found[0].end)

    def test_the_page_holds_what_fits(self):
        self.s.detail = detail.stretches(self.run_, self.given, self.s)
        text = page.render(self.s)
        meta = json.loads(re.search("id=meta>(.*?)</script>", text)[1])
        self.assertEqual(len(meta["detail"]), len(self.s.detail))
        self.assertRegex(text, "Zoom in where the line above the rows is blue|Zoomed in, it shows each call")
        for number, one in enumerate(self.s.detail):
            packed = re.search(f"id=data-detail-{number}>(.*?)</script>", text)[1]
            packed = zlib.decompress(base64.b64decode(packed))
            arrays = {n: np.frombuffer(packed, KINDS[k], c, at) for n, k, at, c in meta["arrays"][f"detail-{number}"]}
            np.testing.assert_array_equal(arrays["begin"] + meta["detail"][number]["from"], one.rows["begin"])
            np.testing.assert_array_equal(arrays["time"], one.rows["time"])
            np.testing.assert_array_equal(arrays["class"], one.rows["class"])
        page.DETAIL = 10
        text = page.render(self.s)
        self.assertEqual(json.loads(re.search("id=meta>(.*?)</script>", text)[1])["detail"], [])
        self.assertNotIn("is blue", text)

    def test_long_stretches_keep_their_times(self):
        rows = np.zeros(2, summary.KEPT)
        rows["begin"], rows["time"] = (5, 1 << 40), (1 << 40, 7)
        found = page.of_detail(detail.Stretch(3, 1 << 41, rows))
        self.assertEqual([found["begin"].tolist(), found["time"].tolist()], [[2, (1 << 40) - 3], [1 << 40, 7]])


KINDS = {"u1": "u1", "u4": "<u4", "i4": "<i4", "f4": "<f4", "f8": "<f8"}


if __name__ == "__main__":
    main(globals())
