#!/usr/bin/env python3
"""`headway where FOLDER`: what a rank needs to go on, from counts of which the answer is known; and folders in which
there is nothing to look at. With real programs: tests/hangs/recorded_test.py."""

import json
import os
import subprocess
import sys
import time
import unittest
from pathlib import Path
from random import Random

from support import BUILD, HEADWAY, Folder, drawn_seed, headway

from headway import where
from headway.record import looks, needs, now
from headway.record.needs import ANY, COLLECTIVE, NONE, OPEN, RECEIVE, SEND, Need, Needs, tags_of
from headway.record.now import BLOCK, ITSELF, OPERATION, SLOT, Comm, Look, Page, RankFile, Thread, Wait

os.environ["CLUSTER_BIN"] = str(BUILD / "bin")
SEED = drawn_seed()
FUNCTIONS = [
    ("MPI_Recv", "recv"), ("MPI_Ssend", "send"), ("MPI_Send", "send"), ("MPI_Wait", "wait"), ("MPI_Waitall", "wait"),
    ("MPI_Waitany", "wait"), ("MPI_Barrier", "coll"), ("MPI_Bcast", "coll"), ("MPI_Reduce", "coll"), ("MPI_Scan", "coll"),
    ("MPI_Alltoallv", "coll"), ("MPI_Finalize", "finalize"), ("MPI_Issend", "isend"), ("MPI_Irecv", "irecv"),
    ("MPI_Isend", "isend"), ("MPI_Ibarrier", "icoll"), ("MPI_Probe", "probe"), ("MPI_Win_fence", "rma"),
    ("MPI_Sendrecv", "sendrecv"), ("MPI_Bsend", "send"),
]  # fmt: skip
KIND = {name: number for number, (name, _) in enumerate(FUNCTIONS)}
WORLD, TWIN = 1, 3
S = 1_000_000_000  # ns


class World:
    """Ranks of which each is told what it has done; all in the world, and in a copy of it."""

    def __init__(self, size, comms=(Comm(TWIN, WORLD, 0, "MPI_Comm_dup", (), None, "twin"),)):
        self.size = size
        self.looks = []
        for rank in range(size):
            file = RankFile(Path(f"rank-{rank}.hwr"))
            file.header = {"functions": FUNCTIONS, "rank": rank, "size": size, "pid": os.getpid()}
            file.comms = {c.id: Comm(**(vars(c) | {"members": c.members or ((0, size - 1),)})) for c in comms}
            channels = {number << 32 | ITSELF: (number << 32 | ITSELF,) + (0,) * 7 for number in (1, 2, *file.comms)}
            page = Page(False, False, 0, [], 0, 0, 1.0, [], channels, b"", b"")
            self.looks.append(Look(kind="computing", file=file, page=page, state="S"))

    def count(self, rank, peer, comm, at, tags):
        """`at`: 1 of what it sent, 4 of what it received."""
        channels, key = self.looks[rank].page.channels, comm << 32 | peer
        row = list(channels.get(key, (key,) + (0,) * 7))
        for tag in tags:
            row[at : at + 3] = [row[at] + 1, row[at + 1] + tag, row[at + 2] + tag * tag]
        channels[key] = tuple(row)

    def message(self, source, target, tag, received=False, comm=WORLD):
        self.count(source, target, comm, 1, [tag])
        if received:
            self.count(target, source, comm, 4, [tag])

    def begin(self, rank, name, comm=WORLD, root=NONE):
        """Of a collective: which one it is."""
        channels, key = self.looks[rank].page.channels, comm << 32 | ITSELF
        number = channels[key][1] + 1
        channels[key] = (key, number, KIND[name], root % needs.WORD, 0, 0, 0, 0)
        return number

    def operations(self, rank, rows, over=()):
        """(kind, flags, comm, peer, tag, number) with handles 10, 11, ...; active ones, but those of `over`, which are
        still there."""
        table = OPERATION.pack(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        slots = [(0, 0, 0)] * 64
        for i, (name, flags, comm, peer, tag, number) in enumerate(rows):
            table += OPERATION.pack(i + 1, 0, KIND[name], flags, 0, 1, comm, peer, tag, number, 0)
            at = ((10 + i) * 0x61C88647 >> 20) & 63
            while slots[at][1]:
                at = at + 1 & 63
            slots[at] = (10 + i, i + 1, 0 if i in over else i + 1)
        page = self.looks[rank].page
        page.table, page.slots = table, b"".join(SLOT.pack(*slot) for slot in slots)

    def wait(self, rank, name, flags=0, comm=WORLD, peer=NONE, tag=0, to=NONE, to_tag=0, number=0, keys=(), requests=None):
        look = self.looks[rank]
        look.kind = "in_call"
        look.page.waits = [
            Wait(1, 0, 0, KIND[name], flags, 0, comm, peer, tag, to, to_tag, number, 100 + rank,
                 len(keys) if requests is None else requests, 0, tuple(keys))
        ]  # fmt: skip
        look.threads = {100 + rank: Thread("S")}

    def recv(self, rank, peer, tag, comm=WORLD, name="MPI_Recv"):
        self.wait(rank, name, RECEIVE, comm, peer, tag)

    def send(self, rank, to, tag, comm=WORLD, name="MPI_Ssend"):
        self.message(rank, to, tag, comm=comm)
        number = self.looks[rank].page.channels[comm << 32 | to][1]
        self.wait(rank, name, SEND, comm, to=to, to_tag=tag, number=number)

    def coll(self, rank, name, comm=WORLD, root=NONE):
        self.wait(rank, name, COLLECTIVE, comm, root, number=self.begin(rank, name, comm, root))

    def need(self, rank, likely=False, age=60.0, quiet=True):
        return Needs(self.looks, int(age * S), lambda _: quiet, likely).of_rank(rank)


def all_of(*ranks):
    return Need(all=frozenset(ranks))


def any_of(*ranks):
    return Need(any=(frozenset(ranks),))


class Tags(unittest.TestCase):
    def test_drawn(self):
        draw = Random(SEED)
        for _ in range(3000):
            few = draw.choice([0, 1, 2])
            tags = sorted(draw.randrange(1 << draw.randrange(1, 31)) for _ in range(few))
            self.assertEqual(tags_of(few, sum(tags), sum(t * t for t in tags)), tags, SEED)
            tag, many = draw.randrange(1 << 20), draw.randrange(1, 50)
            self.assertEqual(tags_of(many, tag * many, tag * tag * many), [tag] * many, SEED)
            tags = [draw.randrange(40) for _ in range(draw.randrange(3, 9))]
            found = tags_of(len(tags), sum(tags), sum(t * t for t in tags))
            self.assertIn(found, (None, tags), "never others")

    def test_what_cannot_be(self):
        for one in ((0, 1, 1), (1, 3, 10), (2, 3, 100), (2, 0, 2), (1, 1 << 33, 0)):
            self.assertIsNone(tags_of(*one), one)


class Receives(unittest.TestCase):
    def test_nothing_is_under_way(self):
        world = World(3)
        world.recv(0, 1, 5)
        self.assertEqual(world.need(0), all_of(1))
        world.message(1, 0, 5, received=True)
        self.assertEqual(world.need(0), all_of(1))

    def test_what_is_under_way_may_come(self):
        for tag in (5, ANY):
            world = World(3)
            world.recv(0, 1, tag)
            world.message(1, 0, 5)
            self.assertEqual(world.need(0), OPEN)

    def test_another_tag_or_communicator_or_receiver(self):
        world = World(3)
        world.recv(0, 1, 5)
        world.message(1, 0, 6)
        world.message(1, 0, 7)
        world.message(1, 0, 5, comm=TWIN)
        world.message(1, 2, 5)
        world.message(2, 0, 5)
        self.assertEqual(world.need(0), all_of(1))

    def test_tags_that_cannot_be_told(self):
        world = World(2)
        world.recv(0, 1, 5)
        for tag in (1, 2, 4):
            world.message(1, 0, tag)
        self.assertEqual(world.need(0), OPEN)

    def test_any_source(self):
        world = World(3)
        world.recv(0, ANY, 5)
        world.message(1, 0, 6)
        self.assertEqual(world.need(0), any_of(0, 1, 2))
        world.message(2, 0, 5)
        self.assertEqual(world.need(0), OPEN)

    def test_many_of_one_sort(self):
        world = World(2)
        world.operations(0, [("MPI_Irecv", RECEIVE, WORLD, 1, 5, 0)] * 2 + [("MPI_Irecv", RECEIVE, WORLD, NONE, 0, 0)])
        world.wait(0, "MPI_Waitall", keys=(10, 11, 12))
        world.message(1, 0, 5)
        self.assertEqual(world.need(0), all_of(1), "one message cannot end two")
        world.message(1, 0, 5)
        self.assertEqual(world.need(0), OPEN)

    def test_one_of_some(self):
        world = World(3)
        world.operations(0, [("MPI_Irecv", RECEIVE, WORLD, 1, 5, 0), ("MPI_Irecv", RECEIVE, WORLD, 2, 5, 0)])
        world.wait(0, "MPI_Waitany", keys=(10, 11))
        self.assertEqual(world.need(0), any_of(1, 2))
        world.wait(0, "MPI_Waitany", keys=(10, 11), requests=40)
        self.assertEqual(world.need(0), OPEN, "of the others nothing is known")
        world.wait(0, "MPI_Waitany", keys=(10, 11, 99))
        self.assertEqual(world.need(0), OPEN, "nor of that one")
        self.assertEqual(len(world.looks[0].page.operations()), 2)
        rows = [("MPI_Irecv", RECEIVE, WORLD, 1, 5, 0), ("MPI_Irecv", RECEIVE, WORLD, 2, 5, 0)]
        world.operations(0, rows, over=(1,))
        world.wait(0, "MPI_Waitany", keys=(10, 11))
        self.assertEqual(world.need(0), OPEN, "what its handle stood for before is not what it stands for now")
        self.assertEqual([one.peer for one in world.looks[0].page.operations()], [1])
        world.operations(0, rows)
        world.message(2, 0, 5)
        world.wait(0, "MPI_Waitany", keys=(10, 11))
        self.assertEqual(world.need(0), OPEN)

    def test_drawn(self):
        """Ranks with messages under way: a receive that one of them may end is never said to need anybody."""
        draw = Random(SEED)
        for _ in range(400):
            world, size = World(3), 3
            open_ones = []
            for _ in range(draw.randrange(12)):
                source, target, tag, comm = draw.randrange(size), draw.randrange(size), draw.randrange(4), draw.choice((WORLD, TWIN))
                received = draw.random() < 0.6
                world.message(source, target, tag, received, comm)
                open_ones += [] if received else [(source, target, tag, comm)]
            peer, tag, comm = draw.choice((0, 1, 2, ANY)), draw.choice((0, 1, 2, 3, ANY)), draw.choice((WORLD, TWIN))
            world.recv(0, peer, tag, comm)
            fits = [m for m in open_ones if m[1] == 0 and m[3] == comm and peer in (m[0], ANY) and tag in (m[2], ANY)]
            need = world.need(0)
            if fits:
                self.assertEqual(need, OPEN, (SEED, fits))
            elif not any(m[1] == 0 for m in open_ones):
                self.assertNotEqual(need, OPEN, SEED)

    def test_something_was_not_counted(self):
        for spoil in ("odd", "unseen", "freed", "more came"):
            world = World(2)
            world.recv(0, 1, 5)
            if spoil == "odd":
                world.looks[1].page.odd = True
            elif spoil == "unseen":
                world.looks[1] = Look()
            elif spoil == "freed":
                key = WORLD << 32 | ITSELF
                world.looks[1].page.channels[key] = (key, 0, 0, 0, 0, 0, 0, 1)
            else:
                world.count(0, 1, WORLD, 4, [5])
            self.assertEqual(world.need(0), OPEN, spoil)

    def test_of_one_that_has_ended(self):
        world = World(2)
        world.recv(0, 1, 5)
        ended = world.looks[1]
        ended.kind, ended.file.counts, ended.page = "ended", ended.page.channels, None
        self.assertEqual(world.need(0), OPEN, "killed: nobody knows what it had sent")
        ended.file.end = {"finalized": True}
        self.assertEqual(world.need(0), all_of(1))


class Sends(unittest.TestCase):
    def test_nobody_receives_it(self):
        world = World(2)
        world.send(0, 1, 5)
        self.assertEqual(world.need(0), all_of(1))
        world.recv(1, 0, 6)
        self.assertEqual(world.need(0), all_of(1), "another tag")
        world.recv(1, 0, 5, TWIN)
        self.assertEqual(world.need(0), all_of(1), "another communicator")
        world.recv(1, 0, 5, name="MPI_Probe")
        self.assertEqual(world.need(0), all_of(1), "a probe takes nothing")

    def test_a_receive_fits(self):
        for peer, tag in ((0, 5), (ANY, 5), (0, ANY), (ANY, ANY)):
            world = World(2)
            world.send(0, 1, 5)
            world.recv(1, peer, tag)
            self.assertEqual(world.need(0), OPEN)
            world = World(2)
            world.send(0, 1, 5)
            world.operations(1, [("MPI_Irecv", RECEIVE, WORLD, peer, tag, 0)])
            self.assertEqual(world.need(0), OPEN)

    def test_it_was_received(self):
        world = World(2)
        world.send(0, 1, 5)
        world.count(1, 0, WORLD, 4, [5])
        self.assertEqual(world.need(0), OPEN)

    def test_another_one_behind_it_is_under_way(self):
        """The oldest is received first: what is under way may be the later one alone."""
        world = World(2)
        world.message(0, 1, 5)
        world.message(0, 1, 5)
        world.operations(0, [("MPI_Issend", SEND, WORLD, 1, 5, 1)])
        world.wait(0, "MPI_Wait", keys=(10,))
        self.assertEqual(world.need(0), all_of(1))
        world.count(1, 0, WORLD, 4, [5])
        self.assertEqual(world.need(0), OPEN)

    def test_a_standard_send_may_be_copied(self):
        world = World(2)
        for a, b in ((0, 1), (1, 0)):
            world.send(a, b, 5, name="MPI_Send")
        self.assertEqual(world.need(0, age=0.5), OPEN, "it began just now")
        self.assertEqual(world.need(0, quiet=False), OPEN, "bytes are in the kernel, or nobody had time to look")
        self.assertEqual(world.need(0), all_of(1))
        world.wait(0, "MPI_Bsend", SEND, to=1, to_tag=5, number=1)
        self.assertEqual(world.need(0), OPEN)

    def test_exchange(self):
        world = World(3)
        world.message(0, 1, 5)
        world.wait(0, "MPI_Sendrecv", SEND | RECEIVE, peer=2, tag=7, to=1, to_tag=5, number=1)
        self.assertEqual(world.need(0, quiet=False), all_of(2), "whatever becomes of the send")


class Collectives(unittest.TestCase):
    def test_who_is_missing(self):
        world = World(4)
        for rank in (0, 1):
            world.coll(rank, "MPI_Barrier")
        self.assertEqual(world.need(0), all_of(2, 3))
        world.begin(2, "MPI_Barrier")
        self.assertEqual(world.need(0), all_of(3))
        world.begin(3, "MPI_Barrier")
        self.assertEqual(world.need(0), OPEN, "all are there: it may only be slow")

    def test_of_one_that_is_waited_for(self):
        world = World(3)
        number = world.begin(0, "MPI_Ibarrier", TWIN)
        world.operations(0, [("MPI_Ibarrier", COLLECTIVE, TWIN, NONE, 0, number)])
        world.wait(0, "MPI_Wait", keys=(10,))
        world.begin(1, "MPI_Barrier")
        self.assertEqual(world.need(0), all_of(1, 2), "the world's barrier is another one")

    def test_roots(self):
        world = World(3)
        world.coll(1, "MPI_Bcast", root=0)
        self.assertEqual((world.need(1), world.need(1, likely=True)), (all_of(0), all_of(0)))
        world.coll(0, "MPI_Bcast", root=0)
        self.assertEqual((world.need(1), world.need(1, likely=True)), (OPEN, any_of(2)))
        self.assertEqual(world.need(0), OPEN, "the root gives, and needs nobody")
        world = World(3)
        world.coll(0, "MPI_Reduce", root=0)
        world.coll(1, "MPI_Reduce", root=0)
        self.assertEqual((world.need(0), world.need(1)), (all_of(2), OPEN))

    def test_order_of_ranks(self):
        world = World(4)
        world.coll(1, "MPI_Scan")
        world.coll(3, "MPI_Scan")
        self.assertEqual((world.need(1), world.need(3)), (all_of(0), all_of(0, 2)))

    def test_nothing_may_be_given(self):
        world = World(3)
        world.coll(0, "MPI_Alltoallv")
        self.assertEqual((world.need(0), world.need(0, likely=True)), (OPEN, any_of(1, 2)))

    def test_who_may_have_begun_it_and_freed_its_communicator(self):
        """Rank 1 gave its part, and is done with that communicator; the root still computes with it."""
        key = TWIN << 32 | ITSELF
        for state in ("here", "ended", "left"):
            for name, root in (("MPI_Reduce", 0), ("MPI_Barrier", NONE)):
                world = World(2)
                world.coll(0, name, TWIN, root)
                other = world.looks[1]
                other.page.channels[key] = (key, 1, KIND[name], 0, 0, 0, 0, 1)
                if state == "left":
                    other.file.counts, other.page = None, None  # they could not be written
                elif state == "ended":
                    other.file.counts, other.page = other.page.channels, None
                    other.file.end = {"finalized": True}
                other.kind = "computing" if state == "here" else state
                self.assertEqual(world.need(0), OPEN, (state, name))

    def test_different_ones_of_one_number(self):
        world = World(2)
        world.coll(0, "MPI_Barrier")
        world.coll(1, "MPI_Reduce", root=0)
        self.assertEqual((world.need(0), world.need(0, likely=True)), (OPEN, any_of(1)))

    def test_the_end(self):
        world = World(3)
        for rank in (0, 1):
            world.wait(rank, "MPI_Finalize")
        self.assertEqual(world.need(0), any_of(2))
        world.wait(2, "MPI_Finalize")
        self.assertEqual(world.need(0), OPEN)

    def test_what_nobody_can_tell(self):
        world = World(2)
        world.wait(0, "MPI_Win_fence")
        self.assertEqual(world.need(0), OPEN)


class Communicators(unittest.TestCase):
    def test_its_ranks_have_other_numbers(self):
        turned = Comm(4, WORLD, 0, "MPI_Comm_split", ((2, 2), (0, 1)), None, "")
        world = World(3, (turned,))
        world.recv(0, 0, 5, comm=4)  # from rank 2
        self.assertEqual(world.need(0), all_of(2))
        world.count(2, 1, 4, 1, [5])  # to rank 0
        self.assertEqual(world.need(0), OPEN)

    def test_two_groups(self):
        world = World(4, ())
        for rank, sides in enumerate([(((0, 1),), ((2, 3),))] * 2 + [(((2, 3),), ((0, 1),))] * 2):
            comm = Comm(5 + rank, WORLD, 0, "MPI_Intercomm_create", sides[0], sides[1], "")
            world.looks[rank].file.comms = {comm.id: comm}
            world.looks[rank].page.channels[comm.id << 32 | ITSELF] = (comm.id << 32 | ITSELF,) + (0,) * 7
        world.recv(0, 1, 5, comm=5)  # from rank 3
        self.assertEqual(world.need(0), all_of(3))
        world.count(3, 0, 8, 1, [5])
        self.assertEqual(world.need(0), OPEN)

    def test_which_one_it_is_may_be_unknown(self):
        made = [Comm(number, WORLD, 0, "MPI_Comm_create_group", (), None, "") for number in (4, 5)]
        world = World(2, made[:1])
        world.recv(0, 1, 5, comm=4)
        self.assertEqual(world.need(0), all_of(1))
        world = World(2, made)
        world.recv(0, 1, 5, comm=4)
        self.assertEqual(world.need(0), OPEN)


class Judged(unittest.TestCase):
    """With the program that judges."""

    def told(self, world, likely=False, before=None):
        return looks.judged(before or world.looks, world.looks, 0.5, likely)[0]

    def ring(self, size):
        world = World(size)
        for rank in range(size):
            world.recv(rank, (rank + 1) % size, 7)
        return world

    def test_a_circle(self):
        told = self.told(self.ring(3))
        self.assertTrue(told["hangs"])
        self.assertIn("ranks 0-2 wait for one another (0 for 1, 1 for 2 and 2 for 0)", told["verdict"])
        self.assertEqual({(tuple(g["ranks"]), tuple(g["waits_for"])) for g in told["groups"]}, {((0,), (1,)), ((1,), (2,)), ((2,), (0,))})
        self.assertIn("MPI_Recv (source 1, tag 7)", {g["place"].removeprefix("in ") for g in told["groups"]})

    def test_one_of_it_may_go_on(self):
        for change in ("computes", "message", "moved", "unseen", "threads", "stopped"):
            world, before = self.ring(3), None
            two = world.looks[2]
            if change == "computes":
                two.kind, two.page.waits = "computing", []
            elif change == "message":
                world.message(0, 2, 7)
            elif change == "moved":
                before = self.ring(3)
                before.message(2, 0, 1, received=True)
                before = before.looks
            elif change == "unseen":
                world.looks[2] = Look(why="on another host")
            elif change == "threads":
                two.page.several, two.threads = True, {102: Thread("S"), 103: Thread("S")}
            else:
                two.state = "T"
            told = self.told(world, before=before)
            self.assertFalse(told["hangs"], change)
            self.assertFalse(any(group["dead"] for group in told["groups"]))

    def test_all_threads_wait(self):
        world = self.ring(3)
        for rank, look in enumerate(world.looks):
            look.page.several, look.page.own = True, [7]
            look.threads = {100 + rank: Thread("S"), 7: Thread("R")}
        self.assertTrue(self.told(world)["hangs"], "the other one is MPI's own")

    def test_words(self):
        world = World(3)
        world.send(0, 1, 5, comm=TWIN)
        world.recv(1, 0, 6, comm=TWIN)
        told = self.told(world)
        self.assertIn("rank 0 sends to rank 1 with tag 5, and rank 1 receives from it with tag 6", told["verdict"])
        self.assertEqual(told["groups"][0]["place"], "in MPI_Ssend (destination 1, tag 5, on twin)")
        world = World(3)
        world.coll(0, "MPI_Bcast", root=2)
        world.coll(1, "MPI_Bcast", root=2)
        world.recv(2, 1, 0)
        told = self.told(world)
        self.assertIn("rank 2 has not come to: it has called 0 collectives there", told["verdict"])
        self.assertIn("in MPI_Bcast (root 2)", {group["place"] for group in told["groups"]})

    def test_likely(self):
        world = World(2)
        world.coll(0, "MPI_Alltoallv")
        world.recv(1, 0, 5)
        self.assertFalse(self.told(world)["hangs"])
        told = self.told(world, likely=True)
        self.assertTrue(told["hangs"])
        lines = where.lines(told | {"hangs": False, "likely": True, "notes": []}, "head")
        self.assertIn("The job hangs, likely, which is not proven, and nothing has changed for 0.5 s.", lines[-1])

    def test_many_ranks(self):
        world = World(1024)
        for rank in range(1023):
            world.coll(rank, "MPI_Barrier")
        world.recv(1023, 5, 1)
        begin = time.process_time()
        told = self.told(world)
        self.assertTrue(told["hangs"])
        self.assertLess(time.process_time() - begin, 5)
        self.assertEqual(sorted(len(group["ranks"]) for group in told["groups"]), [1, 1023])
        self.assertLessEqual(len(where.lines(told, "head")), 20)

    def test_what_it_does_not_understand(self):
        for text in ("", "headway-looks 2\n", "headway-looks 1\nranks x\n", "headway-looks 1\nranks 1\nrank 1 kind=before\n",
                     "headway-looks 1\nranks 1\nrank 0 kind=there\n", "headway-looks 1\nranks 1\nrank 0 needs=all:3\n"):  # fmt: skip
            with self.assertRaisesRegex(now.Unusable, "headway-judge ended with 2"):
                looks.judge(text)


class Refused(Folder):
    """Folders in which there is nothing to look at."""

    def file(self, rank=0, end=None, name=None, more=(), **header):
        given = {
            "version": 1, "rank": rank, "size": 2, "host": "far", "boot": now.Here().boot, "pid": 1 << 30, "started": 1,
            "now": {"file": 5, "start": 1, "processes": now.Here().processes}, "functions": FUNCTIONS, "mpi": "MPI 1, x",
            "ticks": "ns",
        }  # fmt: skip
        blocks = [(1, {k: v for k, v in (given | header).items() if v is not None})]
        blocks += [*more, *([(6, end)] if end is not None else [])]
        data = b""
        for kind, value in blocks:
            text = json.dumps(value).encode()
            text += b" " * (-len(text) % 8)
            data += BLOCK.pack(now.MAGIC, kind, 0, len(text), 0, 0) + text
        (self.folder / (name or f"rank-{rank}.hwr")).write_bytes(data)

    def refused(self, code, *parts):
        done = headway("where", self.folder, code=code)
        self.assertEqual(done.stdout, "")
        for part in parts:
            self.assertIn(part, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_no_recording(self):
        self.refused(4, "holds no recording of ranks: there is no file rank-*.hwr")
        self.file(name="process-far-7.hwr", size=0, rank=-1)
        self.refused(4, "its processes have no world (sessions only)")
        (self.folder / "rank-0.hwr").write_text("no recording at all, but of some length")
        self.refused(4, "rank-0.hwr is no recording")

    def test_files_that_make_no_sense(self):
        file = RankFile(Path("rank-0.hwr"))
        for members in ([[0, 10**12]], [[-1, 3]], ["x"], [[1]], 7):
            with self.assertRaises((ValueError, TypeError)):
                file._take_comm({"id": 1, "members": members})

    def test_fields_that_make_no_sense(self):
        """A sentence, whatever stands in the file."""
        for change, said in (
            ({"started": "x"}, "started is x, no number"), ({"size": "2"}, "size is 2, no number"),
            ({"now": 3}, "now is no object"), ({"now": {"file": "5"}}, "file is 5, no number"), ({"functions": 3}, "no list of functions"),
            ({"functions": [["MPI_Send"]]}, "no pair of a name"), ({"arguments": 7}, "arguments is no list of texts"),
            ({"pid": "x"}, "pid is x, no number"), ({"mpi": 7}, "mpi is no text"), ({"boot": []}, "boot is no text"),
        ):  # fmt: skip
            with self.subTest(change=change):
                self.file(**change)
                self.refused(4, "can be seen from here: rank-0.hwr: ", said)
        for kind, value, said in (
            (4, [{"id": 1, "file": 3}], "file is no text"), (4, [{"id": 1, "line": "x"}], "line is x"), (4, [3], "no object"),
            (5, [{"id": 1, "members": [[0, 1]], "parent": []}], "parent is []"), (5, [{"id": {}, "name": ""}], "id is {}"),
            (6, [], "no object"),
        ):  # fmt: skip
            with self.subTest(value=value):
                self.file(more=[(kind, value)])
                self.refused(4, "can be seen from here: rank-0.hwr: ", said)

    def test_half_a_pair_of_surrogates(self):
        self.file(boot="another", host="node\ud800")
        self.refused(4, "on another host, node?: ask there")

    def test_no_folder(self):
        self.assertIn("is neither a folder of headway record nor", headway("where", self.folder / "none", code=2).stderr)
        text = self.folder / "text"
        text.write_text("x")
        self.assertIn("text is no folder", headway("where", text, code=4).stderr)

    def test_no_job_and_no_recording(self):
        """Jobs are found by sockets of this machine's network: in one of its own there are none."""
        alone = ["unshare", "-n" if os.geteuid() == 0 else "-rn"]
        if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
            self.skipTest("no network of its own here, and others may run jobs")
        done = subprocess.run([*alone, HEADWAY, "where"], capture_output=True, text=True, timeout=60, check=False, cwd=self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no recording is being made in this folder", done.stderr)

    def test_of_an_older_headway(self):
        self.file(now=None)
        self.refused(4, "recorded by an older headway, which tells nothing of ranks that run")

    def test_of_a_newer_one(self):
        self.file(version=4)
        self.refused(4, "rank-0.hwr: it has format 4; this headway reads formats 1 to 3")

    def test_elsewhere(self):
        self.file(boot="another", host="node7")
        self.refused(4, "can be seen from here: on another host, node7: ask there")
        self.file(now={"file": 5, "processes": "pid:[1]"})
        self.refused(4, "in another container of far: ask there")

    def test_it_is_over(self):
        self.file(0, {"finalized": True})
        self.file(1)
        self.refused(4, "is over: 1 of 2 ranks have finalized, 1 ended without MPI_Finalize; headway trace")

    def test_its_descriptor_is_closed(self):
        start = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        self.file(pid=os.getpid(), now={"file": 999, "start": start, "processes": now.Here().processes})
        self.refused(4, "its program has closed the descriptor by which one sees what it does")

    def test_the_number_is_another_process_now(self):
        self.file(pid=os.getpid())
        self.refused(4, "is over: 0 of 2 ranks have finalized, 1 ended without MPI_Finalize")

    def test_help(self):
        self.assertIn("[JOB | RUN]", headway("where", "--help").stdout)


if __name__ == "__main__":
    print(f"seed {SEED}", file=sys.stderr)
    unittest.main(verbosity=1)
