#!/usr/bin/env python3
"""Recordings that were damaged in every way, and headers and lists that say what cannot be."""

import json
import os
import struct
import sys
import tempfile
import unittest
from pathlib import Path
from random import Random

from support import Folder, drawn_seed, need_packages

need_packages("numpy")

import numpy as np  # noqa: E402

import record_made as made  # noqa: E402
from headway.record import format, lines, reading  # noqa: E402
from headway.record.format import BadRecording  # noqa: E402
from headway.record.model import EVENT, SEND  # noqa: E402
from record_rows import calls, row, write  # noqa: E402

SEED = drawn_seed()
SEEDS = 25
NONE, COLLECTIVE = -1, 4


class Hostile(Folder):
    """Of each damaged file what stands before the damage counts, or a sentence says why nothing does."""

    def setUp(self):
        super().setUp()
        made.simulate(self.folder, [[("send", "world", 1, 0, 8)] * 30, [("recv", "world", 0, 0)] * 30], block=8)
        self.path = self.folder / "rank-0.hwr"
        self.whole = self.path.read_bytes()
        self.events = len(format.read(self.path).rank.events)
        self.blocks = []  # where each begins, its type and length
        at = 0
        while at < len(self.whole):
            _, kind, _, length, _, _ = format.BLOCK.unpack_from(self.whole, at)
            self.blocks.append((at, kind, length))
            at += format.BLOCK.size + length

    def check(self, data, sentence, events=None, fatal=False):
        self.path.write_bytes(data)
        if fatal:
            with self.assertRaisesRegex(BadRecording, sentence):
                format.read(self.path)
            run = reading.read(self.folder)
            self.assertEqual([rank.rank for rank in run.ranks], [1])
            self.assertRegex(" ".join(run.notes), sentence)
            return
        rank = format.read(self.path).rank
        self.assertRegex(rank.problem, sentence)
        if events is not None:
            self.assertEqual(len(rank.events), events)
        self.assertRegex(" ".join(reading.read(self.folder).notes), sentence)

    def nth(self, kind, n=0):
        return [at for at, type_, _ in self.blocks if type_ == kind][n]

    def with_bytes(self, at, new):
        return self.whole[:at] + new + self.whole[at + len(new) :]

    def with_event(self, block, event, **fields):
        at = self.nth(format.EVENTS, block) + format.BLOCK.size + EVENT.itemsize * event
        changed = np.frombuffer(self.whole, EVENT, 1, at).copy()
        for name, value in fields.items():
            changed[name] = value
        return self.with_bytes(at, changed.tobytes())

    def test_the_whole_file_is_good(self):
        self.assertEqual(format.read(self.path).rank.problem, "")
        self.assertEqual(self.events, 32)
        self.assertEqual(reading.read(self.folder).notes, [])

    def test_cut_short_anywhere(self):
        random, first_end = Random(SEED), format.BLOCK.size + self.blocks[0][2]
        for cut in [1, 31, 32, *(random.randrange(1, len(self.whole)) for _ in range(40)), len(self.whole) - 1]:
            with self.subTest(cut=cut, seed=SEED):
                borders = [at for at, _, _ in self.blocks]
                if cut in borders:
                    cut += 1
                if cut < first_end:
                    self.check(self.whole[:cut], "cut short", fatal=True)
                    continue
                before = sum(
                    length // EVENT.itemsize
                    for at, kind, length in self.blocks
                    if kind == format.EVENTS and at + format.BLOCK.size + length <= cut
                )
                self.check(self.whole[:cut], "cut short", before)

    def test_an_end_at_a_block_is_no_end(self):
        self.path.write_bytes(self.whole[: self.blocks[-1][0]])
        self.assertIn("ends before MPI_Finalize", " ".join(reading.read(self.folder).notes))

    def test_headers_of_blocks(self):
        second = self.nth(format.EVENTS, 1)
        self.check(self.with_bytes(second, b"XXXX"), "no block begins there", 8)
        self.check(self.with_bytes(second + 8, struct.pack("<Q", 1 << 63)), "cut short", 8)
        self.check(self.with_bytes(second + 8, struct.pack("<Q", (1 << 64) - 8)), "cut short", 8)
        self.check(self.with_bytes(second + 8, struct.pack("<Q", 47)), "no multiple of 8", 8)
        self.check(self.with_bytes(second + 8, struct.pack("<Q", 56)), "no multiple of 48", 8)
        self.check(self.with_bytes(second + 4, struct.pack("<H", format.HEADER)), "second header", 8)
        self.check(self.with_bytes(second + 6, struct.pack("<H", 3)), "another thread", 8)
        self.check(self.with_bytes(second + 16, struct.pack("<Q", (1 << 63) - 1)), "outside of what its block says", 8)
        self.check(self.with_bytes(0, b"ELF!"), "no recording", fatal=True)
        self.check(self.with_bytes(4, struct.pack("<H", 9)), "no header", fatal=True)
        self.check(b"", "is empty", fatal=True)

    def test_unknown_blocks_are_passed_over(self):
        at = self.nth(format.EVENTS)
        unknown = format.BLOCK.pack(format.MAGIC, 99, 0, 8, 0, 0) + bytes(8)
        self.path.write_bytes(self.whole[:at] + unknown + self.whole[at:])
        rank = format.read(self.path).rank
        self.assertEqual((len(rank.events), rank.problem), (self.events, ""))

    def test_events(self):
        self.check(self.with_event(2, 1, kind=200), "kind that the header does not name", 16)
        self.check(self.with_event(2, 1, kind=0x9000), "kind that the header does not name", 16)
        self.check(self.with_event(0, 1, thread=1), "another thread", 0)
        self.check(self.with_event(1, 1, end=1), "ends before it begins", 8)
        self.check(self.with_event(1, 0, begin=1), "outside of what its block says", 8)
        self.check(self.with_event(1, 0, site=4_000_000_000), "where 1 of its call sites are", self.events)
        for field in ("comm", "peer", "tag", "request", "bytes", "flags"):
            with self.subTest(field):
                odd = -1000 if EVENT[field].kind == "i" else np.iinfo(EVENT[field]).max
                self.path.write_bytes(self.with_event(1, 0, **{field: odd}))
                self.assertEqual(len(reading.read(self.folder).ranks[0].events), self.events)

    def test_events_far_from_the_clock(self):
        self.path.unlink()
        write(self.folder, 0, 2, [row(2, 0, 1 << 60, (1 << 60) + 1)])
        self.assertRegex(" ".join(reading.read(self.folder).notes), "a day away from its clock")

    def test_clocks(self):
        at = self.nth(format.CLOCK, 2) + format.BLOCK.size
        self.check(self.with_bytes(at + 8, struct.pack("<Q", 5)), "runs backwards", 16)
        self.check(self.with_bytes(at, struct.pack("<Q", (1 << 64) - 1)), "beyond all times", 16)
        self.check(self.with_bytes(self.nth(format.CLOCK, 2) + 8, struct.pack("<Q", 16)), "no multiple of 24", 16)

    def text(self, n, value):
        """The n-th block's JSON replaced."""
        at, kind, length = self.blocks[n]
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        data += b" " * (-len(data) % 8)
        head = format.BLOCK.pack(format.MAGIC, kind, 0, len(data), 0, 0)
        return self.whole[:at] + head + data + self.whole[at + format.BLOCK.size + length :]

    def test_headers(self):
        good = made.header(0, 2) | {"version": 1}
        self.check(self.text(0, good | {"version": 4}), "format 4; this headway reads formats 1 to 3", fatal=True)
        self.check(self.text(0, b"{" * 50), "no JSON", fatal=True)
        self.check(self.text(0, b"[" * 200_000), "no JSON", fatal=True)
        self.check(self.text(0, b'{"version": ' + b"1" * 10_000 + b"}"), "no JSON", fatal=True)
        self.check(self.text(0, []), "no object", fatal=True)
        for change, sentence in (
            ({"rank": 2}, "rank is 2"), ({"rank": "0"}, "rank is 0"), ({"rank": True}, "rank is True"),
            ({"size": 1 << 60}, "size is"), ({"size": None}, "size is"), ({"boot": 5}, "boot is no text"),
            ({"ticks": "s"}, "what its ticks are"), ({"functions": 3}, "no list of functions"),
            ({"functions": [["a"]]}, "no pair"), ({"functions": [["a", "b"]] * 40_000}, "no list of functions"),
            ({"started": None}, "started is None"), ({"started": "x"}, "started is x"), ({"started": 1.5}, "started is 1.5"),
            ({"started": -1}, "started is -1"), ({"started": 1 << 62}, "started is"), ({"started": True}, "started is True"),
            ({"pid": "7"}, "pid is 7"), ({"pid": -7}, "pid is -7"), ({"host": []}, "host is no text"),
            ({"program": 3}, "program is no text"), ({"mpi": {}}, "mpi is no text"), ({"cores": 3}, "cores is no text"),
            ({"modules": 3}, "modules is no text"), ({"module": []}, "module is no text"),
            ({"arguments": None}, "arguments is no list of texts"), ({"arguments": "./p"}, "arguments is no list of texts"),
            ({"arguments": ["./p", 3]}, "arguments is no list of texts"), ({"now": None}, "now is no object"),
            ({"now": {"file": "5"}}, "file is 5"), ({"now": {"file": -2}}, "file is -2"), ({"now": {"start": -1}}, "start is -1"),
            ({"now": {"processes": 3}}, "processes is no text"),
        ):  # fmt: skip
            with self.subTest(change=str(change)[:40]):
                self.check(self.text(0, good | change), sentence, fatal=True)
        for name in ("pid", "host", "boot", "program", "mpi", "cores", "arguments", "started", "now"):
            with self.subTest(left_out=name):  # as of an older headway, or of a tool of somebody's own
                self.path.write_bytes(self.text(0, {key: value for key, value in good.items() if key != name}))
                self.assertEqual(format.read(self.path).rank.problem, "")
                run = reading.read(self.folder)
                self.assertEqual((len(run.ranks), "left out" in " ".join(run.notes)), (2, False))
                lines.resolve(run.ranks)  # looks at when the run started
        self.path.write_bytes(self.text(0, good | {"rank": 1}))
        self.assertIn("rank-0.hwr says that it is rank 1", " ".join(reading.read(self.folder).notes))
        odd = self.text(0, good | {"host": "\ud800", "functions": [["MPI_\ud800", "no family"]] * len(made.FUNCTIONS)})
        self.path.write_bytes(odd)
        run = reading.read(self.folder)
        self.assertEqual(run.ranks[0].families[0], "other")
        run.ranks[0].host.encode()

    def test_communicators(self):
        where = next(n for n, (_, kind, _) in enumerate(self.blocks) if kind == format.COMMUNICATORS)
        good = {"id": 5, "parent": 1, "rank": 0, "members": [[0, 1]], "order": 0, "call": ""}
        for change, sentence in (
            ({"members": [[0, 2]]}, "no ranks of the world"), ({"members": [[0, 1 << 60]]}, "no ranks of the world"),
            ({"members": [[0, 1], [1, 0]]}, "more members"), ({"members": [[0, 0], [0, 0]]}, "twice"),
            ({"members": None}, "without members"), ({"members": 3}, "without members"),
            ({"members": [[-1, 0]]}, "no ranks"), ({"rank": 2}, "rank is 2"),
            ({"id": 0}, "id is 0"), ({"id": 1.5}, "id is 1.5"), ({"parent": 1 << 40}, "parent is"),
            ({"remote": [["a", 1]]}, "no ranks of the world"), ({"name": []}, "name is no text"),
        ):  # fmt: skip
            with self.subTest(change=str(change)):
                self.check(self.text(where, [good | change]), sentence, 0)
        self.check(self.text(where, [3]), "no object", 0)
        self.check(self.text(where, {}), "no list", 0)
        # A name that came later, and one of a communicator that nobody knows.
        self.path.write_bytes(self.text(where, [good, {"id": 5, "name": "ring"}, {"id": 6, "name": "x"}]))
        rank = format.read(self.path).rank
        self.assertEqual([comm.name for comm in rank.comms.values()], ["ring"])
        self.assertEqual(rank.problem, "")
        # Parents that are not there, that are younger, or that are themselves.
        for parent in (77, 6, 5):
            self.path.write_bytes(self.text(where, [good | {"parent": parent}, good | {"id": 6, "parent": 5}]))
            self.assertEqual(len(reading.read(self.folder).messages), 30)

    def test_sites(self):
        where = next(n for n, (_, kind, _) in enumerate(self.blocks) if kind == format.SITES)
        for change in ({"id": -1}, {"offset": "x"}, {"line": -3}, {"file": 7}):
            with self.subTest(change=str(change)):
                self.check(self.text(where, [{"id": 1} | change]), "(number of|no text)", self.events)

    def test_files(self):
        with self.assertRaisesRegex(BadRecording, "is no folder"):
            reading.read(self.folder / "nothing")
        with tempfile.TemporaryDirectory() as empty, self.assertRaisesRegex(BadRecording, "holds no recording"):
            reading.read(empty)
        Path(self.folder, "rank-7.hwr").write_bytes(self.whole)
        Path(self.folder, "rank-8.hwr").mkdir()
        os.mkfifo(self.folder / "rank-9.hwr")
        notes = " ".join(reading.read(self.folder).notes)
        for sentence in ("rank-7.hwr says that it is rank 0", "rank-8.hwr is no file", "rank-9.hwr is no file"):
            self.assertIn(sentence, notes)
        self.path.unlink()
        for name in ("rank-7.hwr", "rank-9.hwr"):
            Path(self.folder, name).unlink()
        run = reading.read(self.folder)
        self.assertRegex(" ".join(run.notes), "30 messages went to or came from ranks that left no file")
        self.assertRegex(" ".join(run.notes), "1 of 2 ranks left no file that can be used: 0")

    def test_processes_without_a_world(self):
        write(self.folder, 0, 0, calls(("send", SEND, {"peer": 0, "tag": 0})), name="process-h-7.hwr")
        run = reading.read(self.folder)
        self.assertEqual([rank.rank for rank in run.ranks], [0, 1, 2])
        self.assertIn("have no world", " ".join(run.notes))

    def test_any_bytes(self):
        """Bytes are changed anywhere; whatever that gives, nothing but BadRecording may be raised."""
        for seed in range(SEED, SEED + 150):
            random, data = Random(seed), bytearray(self.whole)
            for _ in range(random.randrange(1, 6)):
                data[random.randrange(len(data))] = random.choice([0, 1, 127, 128, 255, random.randrange(256)])
            self.path.write_bytes(data)
            with self.subTest(seed=seed):
                run = reading.read(self.folder)
                for rank in run.ranks:
                    self.assertTrue((rank.end >= rank.begin).all())


if __name__ == "__main__":
    print(f"seed {SEED}", file=sys.stderr)
    unittest.main()
