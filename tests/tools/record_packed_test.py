#!/usr/bin/env python3
"""Events become rows of a block as they are put (tools/record/rows.c, recorder.h), and read back as they were; a damaged
block counts for nothing. HEADWAY_TEST_SEED is the first seed; each failure names its own."""

import ctypes
import shutil
import struct
import subprocess
import sys
import unittest
from random import Random

from support import ROOT, Folder, drawn_seed, need_packages

need_packages("numpy")

import numpy as np  # noqa: E402

import record_made as made  # noqa: E402
from headway.record import format, packed, reading  # noqa: E402
from headway.record.model import COMPLETION, EVENT  # noqa: E402
from record_rows import row  # noqa: E402

SEED = drawn_seed()
SEEDS = 25
MOST = 8064  # rows of a block
DRIVER = """#include "rows.c"
#include <stdlib.h>
RECORD_API __thread RecordThread* record_me __attribute__((tls_model("initial-exec")));
RECORD_API uint64_t record_next_switch = UINT64_MAX;
void record_switch(void) {}

static RecordThread thread;
static char* to;
static uint64_t rare, refused;

static void put(const void* data, size_t length) {
  memcpy(to, data, length);
  to += length;
}

static void write_block(void) {
  const RecordBlockHead head = record_head_of(&thread);
  const size_t shapes = head.shapes * sizeof *thread.shapes, rows = head.rows * sizeof *thread.rows;
  const uint64_t about[] = {sizeof head + shapes + rows, thread.last, record_last_of(&thread, &head)};
  if (!head.rows) return;
  record_me = &thread;
  const RecordBlockHead own = record_head_of(&thread);
  record_me = NULL;
  if (own.events != head.events || own.rows != head.rows) abort();
  put(about, sizeof about);
  put(&head, sizeof head);
  put(thread.shapes, shapes);
  put(thread.rows, rows);
  record_empty_rows(&thread);
}

void record_put_otherwise(RecordThread* me, const RecordEvent* event) {
  ++rare;
  if (record_add_row(me, event)) return;
  write_block();
  if (!record_add_row(me, event)) ++refused;
}

/* Each block behind its length, its last end, and the same as another thread finds it. */
size_t put_all(const RecordEvent* events, size_t count, char* out, uint64_t* told) {
  to = out;
  rare = refused = 0;
  record_empty_rows(&thread);
  for (const RecordEvent* one = events; one < events + count; ++one) {
    /* Also those with times of their own, and some that are no completions: they are put otherwise. */
    const bool more = one > events && one->end >= one[-1].end && one->request &&
                      (one->kind == RECORD_COMPLETION || one->site % 16 == 15);
    thread.number = one->thread;
    (more ? record_put_more : record_put)(&thread, one->kind, one->flags, one->site, one->begin, one->end, one->comm,
                                          one->peer, one->tag, one->request, one->bytes);
  }
  write_block();
  told[0] = rare;
  told[1] = refused;
  return (size_t)(to - out);
}
"""


def draw(random, count, kinds, far):
    """Calls one behind the other, of so many kinds, some with several records. `far`: with long calls and gaps, and
    numbers of operations that have nothing to do with each other."""
    rows, now, request = [], random.randrange(1, 1 << 62), random.randrange(1, 1 << 32)
    gaps = (1, 50, 1 << 20, *([1 << 33, 1 << 46] if far else []))
    lengths = (0, 30, 1 << 20, *([(1 << 32) - 1, 1 << 32, (1 << 47) + 5] if far else []))
    shapes = [
        (random.randrange(300), random.randrange(256), random.randrange(1, 90), random.randrange(3), random.randrange(-2, 9),
         random.randrange(-2, 1 << 31), random.choice((0, 8, 1 << 40, (1 << 64) - 1)))
        for _ in range(kinds)
    ]  # fmt: skip
    while len(rows) < count:
        now += random.choice(gaps)
        kind, flags, site, comm, peer, tag, size = random.choice(shapes)
        begin, now = now, now + random.choice(lengths)
        for part in range(random.choice((1, 1, 1, 3))):
            near = (request + random.randrange(20_000)) % (1 << 32)
            number = random.choice((0, near, random.randrange(1 << 32) if far else near))
            rows.append((COMPLETION if part else kind, 3, flags, site, begin, now, comm, peer, tag, number, size))
    return np.array(rows[:count], EVENT)


@unittest.skipUnless(shutil.which("cc"), "there is no compiler")
class Put(Folder):
    """The recorder's own, called as it calls it."""

    def setUp(self):
        super().setUp()
        (self.folder / "driver.c").write_text(DRIVER)
        library = self.folder / "driver.so"
        line = ["cc", "-std=gnu11", "-O2", "-shared", "-fPIC", f"-I{ROOT / 'tools' / 'record'}"]
        subprocess.run([*line, self.folder / "driver.c", "-o", library], check=True, timeout=60)
        self.library = ctypes.CDLL(str(library))
        self.library.put_all.restype = ctypes.c_size_t
        self.library.put_all.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]

    def put(self, events):
        """The payloads of the blocks; how many events were not like those before, and how many had wrong times."""
        events = np.ascontiguousarray(events)
        to, told = np.zeros(128 * len(events) + 128, np.uint8), np.zeros(2, np.uint64)
        whole = self.library.put_all(events.ctypes.data, len(events), to.ctypes.data, told.ctypes.data)
        data, at, blocks = to.tobytes(), 0, []
        while at < whole:
            length, last, found = struct.unpack_from("<QQQ", data, at)
            blocks.append(data[at + 24 :][:length])
            ends = packed.Block(blocks[-1], 0, length).events()["end"]
            self.assertEqual((last, found), (int(ends.max()),) * 2)
            at += 24 + length
        return blocks, *map(int, told)

    def read(self, blocks):
        return np.concatenate([packed.Block(data, 0, len(data)).events() for data in blocks])

    def test_what_is_put_reads_back(self):
        for seed in range(SEED, SEED + SEEDS):
            with self.subTest(seed=seed):
                random = Random(seed)
                count, kinds = random.choice((1, 2, 50, 3 * MOST)), random.choice((1, 6, 200, 2000))
                events = draw(random, count, kinds, far=seed % 2)
                blocks, _, refused = self.put(events)
                self.assertEqual(refused, 0)
                self.assertTrue((self.read(blocks) == events).all())
                if not seed % 2 and kinds <= 200:
                    # The first may begin with events without numbers, and end at the first one with a number.
                    self.assertLessEqual(len(blocks), -(-2 * count // MOST) + 1, "of a long one two rows")

    def test_a_loop_takes_a_sixth(self):
        """A row of shapes comes again and again, with new times and numbers: of calls with several events each."""
        calls = [1000 + 50 * (n // 5) for n in range(MOST)]  # of five events each
        events = np.array(
            [
                row(COMPLETION if n % 5 else 5, n % 5, at, at + 4, 1, n % 5, 7, n if n % 5 else 0, 8)
                for n, at in enumerate(calls)
            ],
            EVENT,
        )
        (data,), rare, refused = self.put(events)
        self.assertLessEqual(len(data), 24 + 5 * 32 + 8 * MOST)
        self.assertLessEqual(rare, 6)
        self.assertEqual(refused, 0)
        self.assertTrue((self.read([data]) == events).all())

    def test_long_ones_take_two_rows(self):
        """Calls that are long, or far from the one before; what they completed has their times, and takes one."""
        most = (1 << 16) - 1
        for apart, length, rows in ((most, 3, 1), (most + 1, 3, 2), (most, most - 1, 1), (1 << 20, most + 1, 2)):
            with self.subTest(apart=apart, length=length):
                calls = [(1000 + apart * n, 1000 + apart * n + length) for n in range(100)]
                events = np.array(
                    [row(COMPLETION if n else 2, 1, *times, request=n) for times in calls for n in range(3)], EVENT
                )
                (data,), _, _ = self.put(events)
                self.assertTrue((self.read([data]) == events).all())
                shapes = struct.unpack_from("<I", data, 4)[0]
                # The first has nothing before it.
                self.assertIn((len(data) - 24 - 32 * shapes) // 8, (200 + 100 * rows, 199 + 100 * rows))

    def test_a_completion_alone(self):
        """With times of its own, or behind the end of a block: nothing before it has them."""
        for events in (
            [row(COMPLETION, 1, 50, 60, request=4)],
            [row(2, 1, 10, 20), row(COMPLETION, 1, 10, 21, request=4), row(COMPLETION, 1, 11, 21, request=5)],
            [row(2, 1, 10 * n, 10 * n + 2) for n in range(MOST)] + [row(COMPLETION, 1, 10 * MOST - 10, 10 * MOST - 8, request=4)],
        ):
            events = np.array(events, EVENT)
            self.assertTrue((self.read(self.put(events)[0]) == events).all())

    def test_where_a_new_block_begins(self):
        one = np.array([row(2, 1, 1000 + 10 * n, 1004 + 10 * n, request=1 + n) for n in range(20)], EVENT)
        self.assertEqual(len(self.put(one)[0]), 1)
        for field, value, blocks in (
            ("begin", 5, 2), ("end", 1083, 2), ("request", 1 << 20, 3), ("request", (1 << 32) - (1 << 16), 3),
            ("bytes", 7, 1), ("tag", 7, 1), ("flags", 3, 1), ("site", 9, 1), ("comm", 1, 1), ("peer", 1, 1), ("kind", 3, 1),
        ):  # fmt: skip
            with self.subTest(field=field, value=value):
                changed = one.copy()
                changed[field][9] = value
                if field == "end":
                    changed["begin"][8:10], changed["end"][8] = 1080, 1084
                found, _, refused = self.put(changed)
                self.assertEqual((len(found), refused), (blocks, 0))
                self.assertTrue((self.read(found) == changed).all())

    def test_times_that_are_wrong(self):
        """They would make a reader stop there."""
        one = np.array([row(2, 1, 1000 + 10 * n, 1004 + 10 * n) for n in range(20)], EVENT)
        for end in (3, 1 << 60):
            changed = one.copy()
            changed["end"][9] = end
            blocks, _, refused = self.put(changed)
            self.assertEqual(refused, 1)
            self.assertTrue((self.read(blocks) == np.delete(changed, 9)).all())

    def test_numbers_that_are_just_near_enough(self):
        """Of the first of a block, half of 2^16 before it and half behind it; also where numbers wrap."""
        for first in (1 << 20, 5, (1 << 32) - 5):
            for away, fits in ((-(1 << 15) + 1, True), (-(1 << 15), False), ((1 << 15) - 1, True), (1 << 15, False)):
                for like in (0, 1):  # the others, or not
                    number = (first + away) % (1 << 32)
                    rows = [row(2, 1, 10, 14, request=first), row(2, like, 20, 24, request=number)]
                    events = np.array(rows, EVENT)
                    blocks, _, _ = self.put(events)
                    self.assertEqual(len(blocks), 1 if fits else 2, (first, away))
                    self.assertTrue((self.read(blocks) == events).all())


def payload(events, kind):
    """The same without the recorder: as docs/recording-format.md has it."""
    shapes, which = np.unique(events[list(packed.COMMON)], return_inverse=True)
    told = np.zeros(len(shapes), packed.SHAPE)
    for name in packed.COMMON:
        told[name] = shapes[name]
    asked = events["request"][events["request"] > 0]
    least = int(asked.min()) - 1 if len(asked) else 0
    rows, begin, end = [], int(events["begin"][0]), 0
    for at, (event, shape) in enumerate(zip(events, which.reshape(-1).tolist())):
        since, took = int(event["begin"]) - begin, int(event["end"]) - int(event["begin"])
        number = int(event["request"]) - least if event["request"] else 0
        completes = event["kind"] == COMPLETION
        if kind == packed.NARROW and completes and at and since == 0 and event["end"] == end:
            since = took = 0
        elif kind == packed.NARROW and (completes or (since | took) >> 16):
            rows.append((since >> 16, took >> 16, packed.FAR, 0))
        most = (1 << 16 if kind == packed.NARROW else 1 << 32) - 1
        rows.append((since & most, took & most, shape, number))
        begin, end = int(event["begin"]), event["end"]
    data = np.array(rows, packed.NARROW_ROW if kind == packed.NARROW else packed.ROW).tobytes()
    head = packed.HEAD.pack(
        len(rows), len(told), int(events["begin"][0]), least, len(events) if kind == packed.NARROW else 0
    )
    data = head + told.tobytes() + data
    return data + bytes(-len(data) % 8)


class Read(Folder):
    """Files of packed blocks, and what of damaged ones counts."""

    kind, row, counted = packed.NARROW, 8, 20  # where a block says how many events it has

    def setUp(self):
        super().setUp()
        programs = made.draw(SEED, 3, 6)
        made.simulate(self.folder, programs, seed=SEED, block=9)
        self.plain = reading.read(self.folder)
        for rank in self.plain.ranks:
            rank.events = rank.events.copy()  # of a rank with one block they lie in the file, which is written anew
        self.size = []
        for path in sorted(self.folder.iterdir()):
            plain, small = path.read_bytes(), 0
            for _, kind, _, given, _ in self.blocks(self.repacked(plain)):
                if kind == self.kind:
                    small += max(0, len(given) - EVENT.itemsize * struct.unpack_from("<I", given, self.counted)[0])
            self.size.append(len(plain) + small)  # nothing is smaller than it is
            path.write_bytes(self.repacked(path.read_bytes()))
        self.path = self.folder / "rank-0.hwr"
        self.whole = self.path.read_bytes()

    def blocks(self, data):
        at = 0
        while at < len(data):
            _, kind, thread, length, first, last = packed.BLOCK.unpack_from(data, at)
            yield at, kind, thread, data[at + packed.BLOCK.size :][:length], (first, last)
            at += packed.BLOCK.size + length

    def repacked(self, data):
        found = b""
        for _, kind, thread, given, span in self.blocks(data):
            if kind == format.EVENTS:
                events = np.frombuffer(given, EVENT)
                # Of the simulation's calls some begin before the one before them: these stay as they are.
                if (np.diff(events["begin"].astype(np.int64)) >= 0).all():
                    kind, given = self.kind, payload(events, self.kind)
            found += packed.BLOCK.pack(packed.MAGIC, kind, thread, len(given), *span) + given
        return found

    def test_it_is_the_same_run(self):
        for large in (reading.LARGE, 0):
            self.addCleanup(setattr, reading, "LARGE", reading.LARGE)
            reading.LARGE = large
            run = reading.read(self.folder)
            self.assertEqual(run.notes, self.plain.notes)
            self.assertTrue((run.messages == self.plain.messages).all())
            for one, two in zip(run.ranks, self.plain.ranks):
                self.assertTrue((one.events == two.events).all())

    def test_the_size_that_it_would_have(self):
        self.assertEqual([packed.unpacked_size(path) for path in sorted(self.folder.iterdir())], self.size)
        self.assertEqual(packed.unpacked_size(self.folder / "none"), 0)
        self.path.write_bytes(self.whole[:-40] + bytes(40))
        self.assertGreaterEqual(packed.unpacked_size(self.path), len(self.whole))

    def test_damaged_blocks(self):
        at, _, _, given, span = next(block for block in self.blocks(self.whole) if block[1] == self.kind)
        count, shapes = struct.unpack_from("<II", given)
        last = packed.HEAD.size + shapes * 32 + self.row * (count - 1)
        which = last + self.row - 4  # of the last row
        for changed, sentence in (
            (struct.pack("<I", count + 2) + given[4:], "not the [0-9]+ that it tells of"),
            (struct.pack("<II", count, 1 << 31) + given[8:], "not the [0-9]+ that it tells of"),
            (struct.pack("<I", 0) + given[4:], "a block of .* packed events in 0 rows"),
            (struct.pack("<I", 1 << 31) + given[4:], "a block of .* packed events in 2147483648 rows"),
            (given[:16], "fewer than its beginning"),
            (given[:8] + struct.pack("<Q", (1 << 64) - 1) + given[16:], "outside of what its block says"),
            (given[:8] + struct.pack("<Q", 5) + given[16:], "outside of what its block says"),
            (given[:which] + struct.pack("<H", shapes) + given[which + 2 :], "a shape that its block does not have"),
            (given[:24] + struct.pack("<H", 200) + given[26:], "kind that the header does not name"),
            (given[:26] + b"\7" + given[27:], "another thread"),
            *self.damages(given, shapes, which),
        ):
            with self.subTest(sentence):
                head = packed.BLOCK.pack(packed.MAGIC, self.kind, 0, len(changed), *span)
                self.path.write_bytes(self.whole[:at] + head + changed + self.whole[at + packed.BLOCK.size + len(given) :])
                rank = format.read(self.path).rank
                self.assertRegex(rank.problem, sentence)
                self.assertEqual(len(rank.events), 0)

    def damages(self, given, shapes, which):
        """Of blocks of this kind alone."""
        count, first = struct.unpack_from("<I", given, 20)[0], packed.HEAD.size + shapes * 32
        rows, far = given[first:], struct.pack("<4H", 1, 1, packed.FAR, 0)
        near = rows[8 * (struct.unpack_from("<4H", rows)[2] == packed.FAR) :]  # the first without what is far of it
        its_shape = 32 * struct.unpack_from("<4H", near)[2]
        told = given[24:first]

        def block(*parts, events=count, told=told):
            data = b"".join(parts)
            head = struct.pack("<II", len(data) // 8, shapes) + given[8:20] + struct.pack("<I", events)
            return head + told + data

        return (
            (block(rows, far), "of times that no event follows"),
            (block(far, far, near), "of times that no event follows"),
            (block(far, near, events=count - 1), "tells of [0-9]+, and has [0-9]+"),
            (block(rows, events=count - 1), "tells of"),
            (block(rows, events=0), "a block of 0 packed events"),
            (block(rows, events=len(rows) // 8 + 1), "no number of 1 to"),
            (
                block(near, told=told[:its_shape] + struct.pack("<H", COMPLETION) + told[its_shape + 2 :]),
                "begins with a completion",
            ),
        )

    def test_any_bytes(self):
        """Bytes are changed anywhere; whatever that gives, nothing but BadRecording may be raised."""
        for seed in range(SEED, SEED + 100):
            random, data = Random(seed), bytearray(self.whole)
            for _ in range(random.randrange(1, 6)):
                data[random.randrange(len(data))] = random.choice([0, 1, 127, 128, 255, random.randrange(256)])
            self.path.write_bytes(data)
            with self.subTest(seed=seed):
                for rank in reading.read(self.folder).ranks:
                    self.assertTrue((rank.end >= rank.begin).all())


class ReadOlder(Read):
    """Of format 2."""

    kind, row, counted = packed.PACKED, 12, 0

    def damages(self, given, shapes, which):
        return ()


if __name__ == "__main__":
    print(f"seed {SEED}", file=sys.stderr)
    unittest.main()
