#!/usr/bin/env python3
"""Calls that come again and again, now and then with other arguments: what the recording tells of each is what the
program did, by its own word, with each MPI that is here. The recorder has a quick way for calls that are as they were
last time (tools/record/layer_quick.h), and nobody may see which one a call went. HEADWAY_TEST_SEED is the first seed."""

import struct
import sys
import unittest
from collections import Counter

from support import drawn_seed, need_packages

need_packages("numpy")

from headway.record import packed, reading  # noqa: E402
from headway.record.model import COMPLETION  # noqa: E402
from recording import HERE, Recorded  # noqa: E402

SEED = drawn_seed()
ROUNDS = 20000
NONE, RECEIVE, SEND, IN_VAIN, SELF = -1, 2, 1, 32, 2
COUNTS = 8  # a block's type


def told_of(line):
    """(name, number of the operation, communicator, tag, bytes) of a line; 0 where there is none."""
    word, *numbers = line.split()
    numbers = [int(n) for n in numbers]
    if word in ("send", "recv"):
        return ("MPI_Isend" if word == "send" else "MPI_Irecv", *numbers)
    return (word, *numbers)


class Repeated(Recorded):
    def test_each_call_is_told_as_it_was(self):
        program = self.compile(HERE / "programs" / "repeated.c", "repeated")
        for seed in (SEED, SEED + 1):
            with self.subTest(seed=seed):
                folder, log = self.folder / f"run-{seed}", self.folder / f"log-{seed}"
                self.run_it(1, program, log, seed, ROUNDS, options=("--out", folder))
                (rank,) = reading.read(folder).ranks
                self.compare(rank, [told_of(line) for line in log.read_text().splitlines()])
                self.counts(folder / "rank-0.hwr", rank)

    def test_nothing_is_told_beyond_the_end(self):
        """The first call beyond it goes the slow way, and those behind it are not told from memory."""
        source = self.folder / "goes_on.c"
        source.write_text(
            "#include <mpi.h>\n#include <stdlib.h>\n#include <unistd.h>\nint main(int c, char** v) { MPI_Init(&c, &v);"
            " int late = atoi(v[1]); double begin = MPI_Wtime(); while (MPI_Wtime() - begin < 0.8) { int in, out = 1;"
            " MPI_Request r[2]; if (late == 0) usleep(1000); MPI_Irecv(&in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &r[0]);"
            " if (late == 1) usleep(1000); MPI_Isend(&out, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &r[1]);"
            " if (late == 2) usleep(1000); MPI_Waitall(2, r, MPI_STATUSES_IGNORE); } MPI_Finalize(); }\n"
        )
        program = self.compile(source, "goes_on")
        for late in range(3):  # which of the calls is the first one beyond it
            folder = self.folder / f"goes-on-{late}"
            self.run_it(1, program, late, options=("--to", "0.3", "--out", folder))
            (rank,) = reading.read(folder).ranks
            names = [rank.name(kind) if kind < 0x8000 else kind for kind in rank.events["kind"].tolist()]
            init = rank.end[names.index("MPI_Init")]
            after = Counter(name for name, begin in zip(names, rank.begin.tolist()) if begin > init + 350_000_000)
            self.assertEqual(after - Counter({"MPI_Finalize": 1}), Counter(), late)
            self.assertGreater(names.count("MPI_Isend"), 10, "a nap takes longer on a busy machine")

    def compare(self, rank, expected):
        waits = {"all": "MPI_Waitall", "some": "MPI_Waitsome"}
        single = ("MPI_Wait", "MPI_Waitall", "MPI_Waitsome")
        named = ("MPI_Isend", "MPI_Irecv", *single)
        numbers, comms, lines, begun = {}, {0: SELF}, iter(expected), {}
        last = 0
        for event in rank.events.tolist():
            kind, _, flags, _, begin, end, comm, peer, tag, request, size = event
            self.assertLessEqual(begin, end)
            self.assertLessEqual(last, end)
            last = end
            name = rank.name(kind) if kind < 0x8000 else kind
            if (name not in named and name != COMPLETION) or flags & IN_VAIN:
                continue
            word, *more = next(lines)
            if word in ("MPI_Isend", "MPI_Irecv"):
                number, where, wanted_tag, wanted = more
                self.assertEqual((name, tag, size), (word, wanted_tag, wanted))
                self.assertEqual(comms.setdefault(where, comm), comm)
                self.assertNotIn(request, numbers.values())
                numbers[number] = request
                begun[number] = (SEND if word == "MPI_Isend" else RECEIVE, comm)
                if word == "MPI_Isend":
                    self.assertEqual(peer, 0)
                continue
            if word in waits:
                self.assertEqual((name, request, tag), (waits[word], 0, more[0]))
                continue
            if word == "one":  # with its operation in one record
                self.assertIn(name, single)
                word, *more = next(lines)
            else:
                self.assertEqual(name, COMPLETION)
            self.assertEqual(word, "over")
            number, wanted_tag, wanted = more
            way, where = begun.pop(number)
            self.assertEqual((request, tag, size, peer, comm), (numbers.pop(number), wanted_tag, wanted, 0, where))
            self.assertEqual(flags & (SEND | RECEIVE), way)
        self.assertIsNone(next(lines, None), "and nothing is missing")
        self.assertEqual(len(set(comms.values())), len(comms), "each communicator has its own number")

    def counts(self, path, rank):
        """What was sent and what came, by communicator and process, with the sums of its tags."""
        data, at, found = path.read_bytes(), 0, {}
        while at < len(data):
            _, kind, _, length, _, _ = packed.BLOCK.unpack_from(data, at)
            at += packed.BLOCK.size
            if kind == COUNTS:
                found = {row[0]: row[1:7] for row in struct.iter_unpack("<8Q", data[at : at + length])}
            at += length
        out, into = Counter(), Counter()
        for event in rank.events.tolist():
            name = rank.name(event[0]) if event[0] < 0x8000 else ""
            if name in ("MPI_Isend", "MPI_Send"):
                out[event[6], event[8]] += 1
            elif event[2] & RECEIVE and name != "MPI_Irecv":
                into[event[6], event[8]] += 1
        for comm in {comm for comm, _ in out}:
            for place, told in ((0, out), (3, into)):
                tags = [(tag, many) for (of, tag), many in told.items() if of == comm]
                sums = tuple(sum(many * tag**power for tag, many in tags) for power in (0, 1, 2))
                row = found.get(comm << 32)
                if row:  # of one that was freed it may be gone
                    self.assertEqual(row[place : place + 3], sums, comm)
        self.assertIn(SELF << 32, found)


class RepeatedMpich(Repeated):
    mpi = "mpich"


class RepeatedOpenmpi(Repeated):
    mpi = "openmpi"


if __name__ == "__main__":
    print(f"seed {SEED}", file=sys.stderr)
    unittest.main()
