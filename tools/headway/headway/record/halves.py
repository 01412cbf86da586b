"""A rank's halves of messages and its parts of collectives, found part by part.

A part is a run of events that can be understood alone (see cuts), but for requests: what began in one may be completed
in a later one. So a Finder keeps what is open: begun requests until they are completed; and, as the blocks of several
threads lie one behind the other, completions of what begins in the next part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import columns
from .columns import Shelves, rest, room, take
from .joining import HALF, ROW, partitioned
from .model import COLLECTIVE, COMPLETION, FAILED, FAMILIES, IN_VAIN, KINDS, PARTITIONED, RECEIVE, SEND, Rank

CODE = {name: code for code, name in enumerate(FAMILIES)}
NO_CALL = 255
SIDES = "source", "target"

# What a request's begin and its completion tell. Times are ticks.
BEGUN = np.dtype(
    [("request", "<u4"), ("since", "<u8"), ("event", "<i8"), ("time", "<u8"), ("comm", "<u4"), ("peer", "<i4")]
    + [("tag", "<i4"), ("bytes", "<u8"), ("name", "<i4"), ("stream", "<i4"), ("partitioned", "?")]
)
DONE = np.dtype(
    [("request", "<u4"), ("time", "<u8"), ("call", "<i8"), ("failed", "?"), ("comm", "<u4"), ("peer", "<i4")]
    + [("tag", "<i4"), ("bytes", "<u8"), ("part", "<i8")]
)
PART = np.dtype([("row", ROW), ("time", "<u8")])  # of a collective


def one_name(function: str) -> str:
    """Calls with large counts match those without, and a start is one whether of one request or of several."""
    return {"MPI_Startall": "MPI_Start"}.get(function, function.removesuffix("_c"))


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


@dataclass
class Kinds:
    """What a rank did somewhere."""

    threads: int
    matched_probes: bool
    both: bool  # MPI_Isendrecv: the request of its send completes as that of a receive


def table_of(rank: Rank) -> np.ndarray:
    """Codes of families by kind."""
    table = np.full(1 << 16, NO_CALL, np.uint8)
    table[: len(rank.families)] = [CODE[family] for family in rank.families]
    return table


def kinds_of(rank: Rank) -> Kinds:
    threads, probes, both = np.zeros(0, np.uint8), False, False
    table = table_of(rank)
    for at in range(0, len(rank.events), columns.CHUNK):
        events = rank.events[at : at + columns.CHUNK]
        family = table[events["kind"]]
        threads = np.union1d(threads, events["thread"])
        probes |= bool(((family == CODE["probe"]) & (events["request"] != 0)).any())
        both |= bool(((family == CODE["isend"]) & (events["flags"] & RECEIVE != 0)).any())
        rest(rank.events)
    return Kinds(len(threads), probes, both)


def keys_of(parts: np.ndarray) -> Iterator[np.ndarray]:
    """By what parts of collectives are ordered, the first key first."""
    row = parts["row"]
    yield from (row["epoch"], row["comm"], row["stream"], parts["time"], row["event"])


def order_of(parts: np.ndarray) -> np.ndarray | None:
    """None where they come in their order, as those of one thread on one communicator do: so these need no memory.
    Else only keys that differ anywhere are copied."""
    ordered, differ, last = True, np.zeros(5, bool), parts[:1]
    for some in columns.pieces(parts):
        behind, same = False, True
        for number, key in enumerate(keys_of(np.concatenate([last, parts[some]]))):
            behind |= same & (key[1:] < key[:-1])
            equal = key[1:] == key[:-1]
            same &= equal
            differ[number] |= not equal.all()
        ordered &= not np.any(behind)
        last = parts[some][-1:].copy()
    if ordered:
        return None
    columns_of = (np.ascontiguousarray(key) for key, told in zip(keys_of(parts), differ) if told)
    found = np.lexsort(list(columns_of)[::-1])
    rest(parts)
    return found


class Open:
    """Requests of one kind that are begun and not completed, and the other way round."""

    def __init__(self, late: bool) -> None:
        self.begun, self.done = np.zeros(0, BEGUN), np.zeros(0, DONE)
        self.late = late  # completions may come before what they complete

    def match(self, begun: np.ndarray, done: np.ndarray, part: int) -> tuple[np.ndarray, np.ndarray]:
        """Of what is new and what was open, those that belong together."""
        begun, done = np.concatenate([self.begun, begun]), np.concatenate([self.done, done])
        found = pair(begun["request"], begun["since"], done["request"], done["time"])
        known = found >= 0
        self.begun = begun[~known]
        left = np.full(len(done), self.late)
        left[found[known]] = False
        self.done = done[left & (done["part"] >= part)]
        return begun[known], done[found[known]]


class Finder:
    """Of one rank. `take` its parts in their order, then `end`; what is `ready` may be fetched in between."""

    def __init__(
        self, rank: Rank, known: dict[int, int], gaps: np.ndarray, names: dict[str, int], spill: Path | None
    ) -> None:
        self.rank, self.known, self.gaps, self.spill = rank, known, gaps, spill
        self.table, self.kinds = table_of(rank), kinds_of(rank)
        self.numbers = np.array([names.setdefault(one_name(name), len(names)) for name in rank.functions] + [0], np.int32)
        self.inits = np.array([name.endswith(("_init", "_init_c")) for name in rank.functions] + [False])
        self.by_bytes = np.array([name == "MPI_Imrecv" for name in rank.functions] + [False])
        self.alone = [kind for kind, name in enumerate(rank.functions) if name.endswith("_create_group")]
        self.open = {flag: Open(self.kinds.threads > 1) for flag in (SEND, RECEIVE, COLLECTIVE)}
        self.probes = np.zeros(0, BEGUN)  # whose message nobody took yet
        self.asked = np.full(256, -1, np.int64)  # the last wait or test of each thread
        self.halves: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        self.rows = Shelves(1, PART, spill)
        self.parts = 0

    # ---- a part ------------------------------------------------------------------------------------
    def take(self, first: int, rank: Rank) -> None:
        self.first, self.events, self.flags = first, rank.events, rank.events["flags"]
        self.family = self.table[rank.events["kind"]]
        self._completions()
        self._sends()
        self._receives()
        self._collectives()
        self.parts += 1

    def of(self, *families: str) -> np.ndarray:
        table = np.zeros(256, bool)
        table[[CODE[family] for family in families]] = True
        return table[self.family]

    def _completions(self) -> None:
        """What completed, and in whose call: its own, or the last wait or test before it on its thread."""
        events = self.events
        asks = self.of("wait", "test") & (self.flags & IN_VAIN == 0)
        done = (events["kind"] == COMPLETION) | (asks & (events["request"] != 0))
        call = np.full(len(events), -1, np.int64)
        for thread in np.unique(events["thread"]).tolist():
            mine = np.flatnonzero(events["thread"] == thread)
            last = np.maximum.accumulate(np.where(asks[mine], self.first + mine, -1))
            call[mine] = last = np.where(last < 0, self.asked[thread], last)
            self.asked[thread] = last[-1]
        self.done = np.flatnonzero(done & (call >= 0) & (events["request"] != 0))
        self.call = call[self.done]

    def completed(self, flags: int) -> np.ndarray:
        right = self.flags[self.done] & flags != 0
        index = self.done[right]
        rows, events = np.empty(len(index), DONE), self.events
        rows["request"], rows["time"], rows["call"] = events["request"][index], events["end"][index], self.call[right]
        rows["failed"], rows["part"] = self.flags[index] & FAILED != 0, self.parts
        for name in ("comm", "peer", "tag", "bytes"):
            rows[name] = events[name][index]
        return rows

    def begun(self, index: np.ndarray) -> np.ndarray:
        rows, events = np.empty(len(index), BEGUN), self.events
        rows["request"], rows["event"] = events["request"][index], self.first + index
        rows["since"] = rows["time"] = events["begin"][index]
        # A persistent collective is called as it was made, and counts for itself.
        kind, tag = events["kind"][index].astype(np.int64), events["tag"][index].astype(np.int64)
        made_by = np.where(tag < 0, len(self.inits), tag % KINDS)
        known = self.of("start")[index] & self.inits[np.minimum(made_by, len(self.inits) - 1)]
        rows["name"] = self.numbers[np.minimum(np.where(known, made_by, kind), len(self.numbers) - 1)]
        rows["stream"] = np.where(known, 1 + tag // KINDS, 0)
        rows["partitioned"] = self.flags[index] & PARTITIONED != 0
        for name in ("comm", "peer", "tag", "bytes"):
            rows[name] = events[name][index]
        return rows

    def _sends(self) -> None:
        begun = self.of("send", "isend", "sendrecv", "start") & (self.flags & SEND != 0) & (self.flags & FAILED == 0)
        later = self.of("isend", "start")
        now = self.begun(np.flatnonzero(begun & ~later))
        self.add(0, now, now, now["event"])
        done = self.completed(SEND | (RECEIVE if self.kinds.both else 0))
        some, done = self.open[SEND].match(self.begun(np.flatnonzero(begun & later)), done, self.parts)
        kept = ~done["failed"]  # else it was cancelled
        self.add(0, some[kept], some[kept], done["call"][kept])

    def _receives(self) -> None:
        begun = self.flags & RECEIVE != 0
        begun &= self.of("recv", "irecv", "sendrecv", "start", "isend") & (self.flags & FAILED == 0)
        event = np.flatnonzero(begun)
        rows = self.begun(event)
        self._probed(event, rows)
        later = self.of("irecv", "start", "isend")[event]
        told = self.begun(event[~later])
        self.add(1, rows[~later], told, told["event"])
        some, done = self.open[RECEIVE].match(rows[later], self.completed(RECEIVE), self.parts)
        kept = ~done["failed"]
        self.add(1, some[kept], done[kept], done["call"][kept])

    def _probed(self, event: np.ndarray, rows: np.ndarray) -> None:
        """A matched probe chose the message: it stands for the posting."""
        by_bytes = self.by_bytes[np.minimum(self.events["kind"][event], len(self.by_bytes) - 1)]
        message = np.where(by_bytes, rows["bytes"].astype(np.uint32), rows["request"])
        matched = np.flatnonzero((by_bytes | self.of("recv")[event]) & (message != 0))
        probes = self.of("probe") & (self.flags & IN_VAIN == 0) & (self.events["request"] != 0)
        probes = np.concatenate([self.probes, self.begun(np.flatnonzero(probes))])
        found = pair(probes["request"], probes["since"], message[matched], rows["since"][matched])
        taken = matched[found[found >= 0]]
        for name in ("event", "time", "comm"):
            rows[name][taken] = probes[name][found >= 0]
        self.probes = probes[found < 0]

    def _collectives(self) -> None:
        begun = self.of("coll", "icoll", "comm", "start") & (self.flags & COLLECTIVE != 0)
        begun &= ~np.isin(self.events["kind"], self.alone)
        later = self.of("icoll", "start")
        now = self.begun(np.flatnonzero(begun & ~later))
        self.add_rows(now, now["event"])
        some, done = self.open[COLLECTIVE].match(
            self.begun(np.flatnonzero(begun & later)), self.completed(COLLECTIVE), self.parts
        )
        self.add_rows(some, done["call"])

    # ---- what was found ----------------------------------------------------------------------------
    def end(self) -> None:
        """No more parts: a send that nobody waited for is one, a receive is none."""
        left = self.open[SEND].begun
        self.add(0, left, left, np.full(len(left), -1, np.int64))
        left = self.open[COLLECTIVE].begun
        self.add_rows(left, np.full(len(left), -1, np.int64))

    def add(self, side: int, begun: np.ndarray, told: np.ndarray, until: np.ndarray) -> None:
        """Operations whose envelope stands in `told`."""
        halves, ours, theirs = np.empty(len(begun), HALF), SIDES[side], SIDES[1 - side]
        comm = np.where(told["comm"] != 0, told["comm"], begun["comm"])
        halves["comm"], halves[theirs] = self.places(comm, told["peer"])
        tag = np.where(begun["partitioned"], partitioned(told["tag"]), told["tag"])
        halves[ours], halves["tag"], halves["bytes"] = self.rank.rank, tag, told["bytes"]
        halves["time"], halves["event"], halves["until"] = begun["time"], begun["event"], until
        halves["epoch"] = np.searchsorted(self.gaps, begun["time"], "right")
        self.halves[side].append(halves[(halves["comm"] >= 0) & (halves[theirs] >= 0)])

    def ready(self) -> tuple[np.ndarray, np.ndarray]:
        """Sends and receives that were found since it was asked before."""
        found = tuple(np.concatenate([np.zeros(0, HALF), *some]) for some in self.halves)
        self.halves = [], []
        return found

    def add_rows(self, begun: np.ndarray, until: np.ndarray) -> None:
        rows = np.zeros(len(begun), PART)
        row = rows["row"]
        row["comm"], row["root"] = self.places(begun["comm"], begun["peer"])
        row["rank"], row["event"], row["end"], row["name"] = self.rank.rank, begun["event"], until, begun["name"]
        row["stream"] = begun["stream"]
        row["epoch"], rows["time"] = np.searchsorted(self.gaps, begun["time"], "right"), begun["time"]
        self.rows.add(rows[row["comm"] >= 0], np.zeros(int((row["comm"] >= 0).sum()), np.int64))

    def collectives(self) -> np.ndarray:
        """All rows, by epoch and communicator, in the order of the calls."""
        rows = self.rows.whole()
        found, order = room(len(rows), ROW, self.spill), order_of(rows)
        for some in columns.pieces(found):
            found[some] = (rows[some] if order is None else take(rows, order[some]))["row"]
            rest(rows)
        return found

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
