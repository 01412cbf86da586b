"""What belongs together across ranks: communicators, messages, collectives. Needs no common clock.

Of one communicator, sender, receiver and tag the n-th send is the n-th receive, both in the order of the calls that
posted them on their rank (by ticks: a rank's threads have one clock). The n-th collective on a communicator is the
same on all members; a persistent one is the n-th start of what was made as the m-th there, since ranks may start
several in any order. Partitioned messages match among themselves alone. All is columns: here a rank's halves, one
rank after the other; `joining` puts them together. Where counts differ, what fits is matched and a note tells the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .columns import rest, room
from .joining import HALF, ROW, Collectives, Halves, partitioned, together
from .model import (
    COLLECTIVE, COMPLETION, FAILED, FAMILIES, GAP, IN_VAIN, KINDS, PARTITIONED, RECEIVE, SELF, SEND, WORLD, Comm,
    GlobalComm, Rank,
)  # fmt: skip

CODE = {name: code for code, name in enumerate(FAMILIES)}
NO_CALL = 255


@dataclass
class Matched:
    comms: list[GlobalComm]
    messages: np.ndarray
    collectives: Collectives
    notes: list[str]


def match(ranks: list[Rank], spill: Path | None = None) -> Matched:
    comms, numbers = identify(ranks)
    notes = []
    gaps = set()
    for rank in ranks:
        gaps.add(int((rank.events["kind"] == GAP).sum()))
        rest(rank.events)
    if gaps - {0}:
        notes.append(
            "recording was off for a while: messages under way when it went off or on may be paired wrongly"
        )
    there = [rank.rank for rank in ranks]
    halves = Halves(there, spill)
    parts: list[np.ndarray] = []
    names: dict[str, int] = {}
    away = 0
    for rank, known in zip(ranks, numbers):
        calls = Calls(rank, known, epochs=len(gaps) == 1)
        for side, (own, other) in enumerate(((calls.sends(), "target"), (calls.receives(), "source"))):
            known_rank = np.isin(own[other], there)
            away += len(own) - int(known_rank.sum())
            halves.add(side, own[known_rank])
        rows = calls.collectives(names)
        parts.append(room(len(rows), ROW, spill))
        parts[-1][:] = rows
        rest(rank.events, parts[-1])
    if away:
        notes.append(f"{away} messages went to or came from ranks that left no file")
    messages, unequal = halves.joined(comms)
    collectives, differ = together(parts, list(names), comms, spill)
    return Matched(comms, messages, collectives, notes + unequal + differ)


# ---- communicators -----------------------------------------------------------------------------
def identify(ranks: list[Rank]) -> tuple[list[GlobalComm], list[dict[int, int]]]:
    """All communicators, and for each rank which of them its ids are.

    On each member of a new communicator, that it is the n-th with these members from this parent is the same; the
    number among all creations on the parent is not, where a call makes communicators of a part (create_group)."""
    comms: list[GlobalComm] = []
    found: dict[tuple, int] = {}
    numbers = []
    for rank in ranks:
        size = rank.header.get("size", 0)
        if size and WORLD not in rank.comms:
            rank.comms[WORLD] = Comm(WORLD, 0, "", 0, rank.rank, np.arange(size), "MPI_COMM_WORLD")
        if SELF not in rank.comms:
            rank.comms[SELF] = Comm(SELF, 0, "", 0, 0, np.array([rank.rank]), "MPI_COMM_SELF")
        known: dict[int, int] = {}
        lists: dict[int, bytes] = {}  # each list of members is one array: see format
        counts: dict[tuple, int] = {}

        def text(members: np.ndarray) -> bytes:
            return lists.setdefault(id(members), members.astype("<i8", copy=False).tobytes())

        of_parent = sorted(rank.comms.values(), key=lambda c: (c.id in (WORLD, SELF), c.parent, c.order, c.id))
        nth: dict[int, tuple] = {}
        for comm in of_parent:
            if comm.remote is None:
                who: tuple = (text(comm.members),)
                parent = comm.parent
            else:  # its two sides come from two parents
                who, parent = tuple(sorted((text(comm.members), text(comm.remote)))), -1
            count = counts.get((parent, who), 0)
            counts[parent, who] = count + 1
            nth[comm.id] = (who, count)
        for number in sorted(rank.comms):  # parents are older
            comm = rank.comms[number]
            if number == WORLD:
                key: tuple = ("world",)
            elif number == SELF:
                key = ("self", rank.rank)
            elif comm.remote is not None:
                key = ("between", *nth[number])
            else:
                key = (known.get(comm.parent, -1), *nth[number])
            if key not in found:
                found[key] = len(comms)
                groups = [comm.members]
                if comm.remote is not None:
                    groups = sorted((comm.members, comm.remote), key=lambda group: group.tolist())
                comms.append(GlobalComm(np.concatenate(groups), comm.name, comm.call, comm.remote is not None))
            known[number] = found[key]
            comms[found[key]].name = comms[found[key]].name or comm.name
        numbers.append(known)
    return comms, numbers


# ---- one rank ----------------------------------------------------------------------------------
def pair(first: np.ndarray, first_time: np.ndarray, second: np.ndarray, second_time: np.ndarray) -> np.ndarray:
    """For each of the first, which of the second has the same number and is the next one after it; -1 for none.
    So a number may come again (it wraps), and one that never ended is not taken for its successor."""
    number = np.concatenate([first, second])
    time = np.concatenate([first_time, second_time])
    side = np.repeat(np.array([0, 1], np.uint8), (len(first), len(second)))
    order = np.lexsort((side, time, number))
    here, behind = order[:-1], order[1:]
    fits = (side[here] == 0) & (side[behind] == 1) & (number[here] == number[behind])
    found = np.full(len(first), -1, np.int64)
    found[here[fits]] = behind[fits] - len(first)
    return found


def one_name(function: str) -> str:
    """Calls with large counts match those without, and a start is one whether of one request or of several."""
    return {"MPI_Startall": "MPI_Start"}.get(function, function.removesuffix("_c"))


class Calls:
    """A rank's events, and what of them are halves of messages or parts of collectives."""

    def __init__(self, rank: Rank, known: dict[int, int], epochs: bool = False) -> None:
        self.rank, self.known, self.events = rank, known, rank.events
        events = rank.events
        table = np.full(1 << 16, NO_CALL, np.uint8)
        table[: len(rank.families)] = [CODE[family] for family in rank.families]
        self.family = table[events["kind"]]
        self.flags = events["flags"]
        self.gaps = np.sort(events["begin"][events["kind"] == GAP]) if epochs else np.zeros(0, np.uint64)
        # What completed, and in whose call: its own, or the last wait or test before it on its thread.
        asks = self.of("wait", "test") & (self.flags & IN_VAIN == 0)
        self.done = np.flatnonzero((events["kind"] == COMPLETION) | (asks & (events["request"] != 0)))
        thread = events["thread"]
        order = np.argsort(thread, kind="stable") if len(events) and thread.min() != thread.max() else None
        in_order = asks if order is None else asks[order]
        last = np.maximum.accumulate(np.where(in_order, np.arange(len(events)), -1))
        if order is not None:
            call = np.empty(len(events), np.int64)
            call[order] = np.where(last < 0, -1, order[last])
            last = call
        self.call = last[self.done]
        own = (self.call >= 0) & (thread[self.call] == thread[self.done])
        self.done, self.call = self.done[own], self.call[own]

    def of(self, *families: str) -> np.ndarray:
        table = np.zeros(256, bool)
        table[[CODE[family] for family in families]] = True
        return table[self.family]

    def completed(self, begun: np.ndarray, flag: int) -> tuple[np.ndarray, np.ndarray]:
        """Of each request begun, the event that tells its completion, and the one in whose call it was; or -1."""
        events = self.events
        right = (self.flags[self.done] & flag != 0) & (events["request"][self.done] != 0)
        done, call = self.done[right], self.call[right]
        found = pair(events["request"][begun], events["begin"][begun], events["request"][done], events["end"][done])
        if not len(done):
            return found, found
        return np.where(found < 0, -1, done[found]), np.where(found < 0, -1, call[found])

    def epoch(self, index: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.gaps, self.events["begin"][index], "right")

    def places(self, comm: np.ndarray, peer: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which communicators of all these are, and which ranks of the world; -1 for none."""
        number, world = np.full(len(comm), -1, np.int64), np.full(len(comm), -1, np.int64)
        order = np.argsort(comm, kind="stable")
        for some in np.split(order, np.flatnonzero(np.diff(comm[order])) + 1) if len(comm) else ():
            own = int(comm[some[0]])
            if own not in self.known:
                continue
            number[some] = self.known[own]
            local = self.rank.comms[own]
            group = local.members if local.remote is None else local.remote
            there = (peer[some] >= 0) & (peer[some] < len(group))
            world[some[there]] = group[peer[some[there]]]
        return number, world

    def halves(self, event: np.ndarray, told: np.ndarray, until: np.ndarray, ours: str, theirs: str) -> np.ndarray:
        """Of operations that `event` began and whose envelope stands in `told`."""
        events = self.events
        order = np.argsort(events["begin"][event], kind="stable")
        event, told, until = event[order], told[order], until[order]
        comm = np.where(events["comm"][told] != 0, events["comm"][told], events["comm"][event])
        halves = np.empty(len(event), HALF)
        halves["comm"], halves[theirs] = self.places(comm, events["peer"][told])
        halves[ours] = self.rank.rank
        tag = events["tag"][told]
        tag = np.where(self.flags[event] & PARTITIONED != 0, partitioned(tag), tag)
        halves["epoch"], halves["tag"], halves["bytes"] = self.epoch(event), tag, events["bytes"][told]
        halves["event"], halves["until"] = event, until
        return halves[(halves["comm"] >= 0) & (halves[theirs] >= 0)]

    def sends(self) -> np.ndarray:
        begun = self.of("send", "isend", "sendrecv", "start") & (self.flags & SEND != 0) & (self.flags & FAILED == 0)
        event = np.flatnonzero(begun)
        until = event.copy()
        later = self.of("isend", "start")[event]
        # The request of an MPI_Isendrecv completes as that of a receive.
        both = (self.of("isend") & (self.flags & RECEIVE != 0)).any()
        told, until[later] = self.completed(event[later], SEND | (RECEIVE if both else 0))
        kept = np.ones(len(event), bool)
        kept[later] = (told < 0) | (self.flags[told] & FAILED == 0)  # else it was cancelled
        return self.halves(event[kept], event[kept], until[kept], "source", "target")

    def receives(self) -> np.ndarray:
        events = self.events
        begun = self.flags & RECEIVE != 0
        begun &= self.of("recv", "irecv", "sendrecv", "start", "isend") & (self.flags & FAILED == 0)
        event = np.flatnonzero(begun)
        told, until, posted = event.copy(), event.copy(), event.copy()
        later = self.of("irecv", "start", "isend")[event]
        told[later], until[later] = self.completed(event[later], RECEIVE)
        # A matched probe chose the message: it stands for the posting.
        names = np.array([name == "MPI_Imrecv" for name in self.rank.functions] + [False])
        by_bytes = names[np.minimum(events["kind"][event], len(names) - 1)]
        message = np.where(by_bytes, events["bytes"][event].astype(np.uint32), events["request"][event])
        matched = np.flatnonzero((by_bytes | self.of("recv")[event]) & (message != 0))
        probes = np.flatnonzero(self.of("probe") & (self.flags & IN_VAIN == 0) & (events["request"] != 0))
        taken = event[matched]
        found = pair(events["request"][probes], events["begin"][probes], message[matched], events["begin"][taken])
        posted[matched[found[found >= 0]]] = probes[found >= 0]
        came = (told >= 0) & (self.flags[told] & FAILED == 0)  # completed, and not cancelled
        return self.halves(posted[came], told[came], until[came], "target", "source")

    def collectives(self, names: dict[str, int]) -> np.ndarray:
        events = self.events
        begun = self.of("coll", "icoll", "comm", "start") & (self.flags & COLLECTIVE != 0)
        alone = [kind for kind, name in enumerate(self.rank.functions) if name.endswith("_create_group")]
        begun &= ~np.isin(events["kind"], alone)
        event = np.flatnonzero(begun)
        event = event[np.argsort(events["begin"][event], kind="stable")]
        rows = np.empty(len(event), ROW)
        rows["comm"], rows["root"] = self.places(events["comm"][event], events["peer"][event])
        rows["epoch"], rows["rank"], rows["event"] = self.epoch(event), self.rank.rank, event
        until = event.copy()
        later = self.of("icoll", "start")[event]
        until[later] = self.completed(event[later], COLLECTIVE)[1]
        rows["end"] = until
        called, rows["stream"] = self.called(event)
        numbers = np.array([names.setdefault(one_name(name), len(names)) for name in self.rank.functions], np.int32)
        rows["name"] = numbers[called]
        rows = rows[rows["comm"] >= 0]
        return rows[np.lexsort((rows["stream"], rows["comm"], rows["epoch"]))]

    def called(self, event: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of collectives: which function each is, and a number for those whose order on their communicator counts: 0,
        or of each persistent one its own."""
        kind, tag = self.events["kind"][event].astype(np.int64), self.events["tag"][event].astype(np.int64)
        inits = np.array([name.endswith(("_init", "_init_c")) for name in self.rank.functions] + [False])
        made_by = np.where(tag < 0, len(inits), tag % KINDS)
        known = self.of("start")[event] & inits[np.minimum(made_by, len(inits) - 1)]
        return np.where(known, made_by, kind), np.where(known, 1 + tag // KINDS, 0)
