"""Collectives as columns, and for each rank in one the entry for which it had to wait.

Which ranks wait for which follows from what a collective does: nobody leaves an Allreduce before all have entered it;
after a Scan, before all lower ranks have; a Bcast gives what its root has; a Reduce needs all at its root only. Others
need no one else's entry, or whose is not known (neighbours).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headway.record import classes, columns
from headway.record.columns import rest, room, take
from headway.record.model import Run
from headway.record.timeline import CODE, Timeline

UNKNOWN, ALL, LOWER, FROM_ROOT, TO_ROOT, START = range(6)
RULES = {
    ALL: "Barrier Allreduce Allgather Allgatherv Alltoall Alltoallv Alltoallw Reduce_scatter Reduce_scatter_block",
    LOWER: "Scan Exscan",
    FROM_ROOT: "Bcast Scatter Scatterv",
    TO_ROOT: "Reduce Gather Gatherv",
}
RULE = {name.lower(): rule for rule, names in RULES.items() for name in names.split()}


def rule_of(name: str, family: str = "") -> int:
    if family == "comm":
        return ALL
    bare = name.removeprefix("MPI_").removesuffix("_c").removesuffix("_init").lower()
    return RULE.get(bare, RULE.get(bare[1:], UNKNOWN) if bare.startswith("i") else UNKNOWN)


@dataclass
class Rows:
    """One a rank and collective, by collective."""

    collective: np.ndarray  # into Run.collectives; -1: start or end of MPI
    event: np.ndarray  # that entered
    end: np.ndarray  # the call in which it was completed, -1 unknown
    rule: np.ndarray
    late: np.ndarray  # the event that entered last of those it had to wait for, -1: none
    reason: np.ndarray  # class of waiting for it

    def __len__(self) -> int:
        return len(self.event)

    @property
    def columns(self) -> tuple[np.ndarray, ...]:
        return tuple(getattr(self, name) for name in self.__dataclass_fields__)

    def take(self, which: slice | np.ndarray) -> Rows:
        return Rows(*(column[which] for column in self.columns))

    def rest(self) -> None:
        rest(*self.columns)


@dataclass
class Piece:
    """Some collectives, whole: of each rank in each of them, its number here, event and end; then by collective."""

    before: int  # collectives
    collective: np.ndarray
    event: np.ndarray
    end: np.ndarray
    roots: np.ndarray
    rules: np.ndarray
    comms: np.ndarray


def pieces(line: Timeline) -> Iterator[Piece]:
    run, many = line.run, line.run.collectives
    of_comm = communicator_calls(run)

    def rules(names: list[str]) -> np.ndarray:
        return np.array([rule_of(name, "comm" if name in of_comm else "") for name in names] or [0], np.int8)

    if not hasattr(many, "starts"):
        names = sorted({c.name for c in many})
        columns_of = (
            np.concatenate([np.asarray(getattr(c, column), np.int64) for c in many] or [np.zeros(0, np.int64)])
            for column in ("ranks", "events", "ends")
        )
        count = np.array([len(c.ranks) for c in many], np.int64)
        which = np.array([names.index(c.name) for c in many], np.int64)
        roots, comms = (np.array([getattr(c, name) for c in many], np.int64) for name in ("root", "comm"))
        yield _piece(line, 0, count, *columns_of, roots, rules(names)[which], comms)
        return
    known, before = rules(many.names), 0  # columns already: see joining.Collectives
    for part in many.pieces(columns.CHUNK):
        rows, first = part.rows, part.rows[part.starts[:-1]]
        of_rows = rows["rank"], rows["event"], rows["end"]
        roots = np.asarray(part.roots, np.int64)
        yield _piece(
            line, before, np.diff(part.starts), *of_rows, roots, known[first["name"]], first["comm"].astype(np.int64)
        )
        before += len(part)
        rest(many.rows)


def _piece(
    line: Timeline, before: int, count: np.ndarray, ranks: np.ndarray, events: np.ndarray, ends: np.ndarray,
    roots: np.ndarray, rules: np.ndarray, comms: np.ndarray,
) -> Piece:  # fmt: skip
    collective = np.repeat(np.arange(len(count)), count)
    event, end = line.number(ranks, events), line.number(ranks, ends)
    good = event >= 0
    return Piece(before, collective[good], event[good], end[good], roots, rules, comms)


def communicator_calls(run: Run) -> set[str]:
    return {n for rank in run.ranks for n, family in zip(rank.functions, rank.families) if family == "comm"}


def latest(group: np.ndarray, time: np.ndarray) -> np.ndarray:
    """By group, from 0: where its latest one is; of several the first. -1 for a group without any."""
    found = np.full(int(group.max(initial=-1)) + 1, -1, np.int64)
    order = np.lexsort((-np.arange(len(group)), time, group))
    found[group[order]] = order
    return found


def comm_ranks(line: Timeline, comm: np.ndarray, place: np.ndarray) -> np.ndarray:
    """The rank in that communicator of the run."""
    found = np.zeros(len(comm), np.int64)
    world = line.world[place]
    for number in np.unique(comm).tolist():
        here = np.flatnonzero(comm == number)
        members = np.asarray(line.run.comms[number].members) if number < len(line.run.comms) else np.zeros(0, np.int64)
        order = np.argsort(members, kind="stable")
        at = np.searchsorted(members[order], world[here])
        found[here] = order[np.minimum(at, len(order) - 1)] if len(order) else world[here]
    return found


def comms_of(line: Timeline) -> np.ndarray:
    """By collective."""
    many = line.run.collectives
    if hasattr(many, "starts"):
        return many.rows["comm"][many.starts[:-1]].astype(np.int64)
    return np.array([c.comm for c in many], np.int64)


def entries(line: Timeline) -> Rows:
    many, spill = line.run.collectives, line.run.spill
    most = len(many.rows) if hasattr(many, "starts") else sum(len(c.ranks) for c in many)
    ends = at_the_ends(line)
    dtypes = np.int64, np.int64, np.int64, np.int8, np.int64, np.int8
    found, count = Rows(*(room(most + len(ends), dtype, spill) for dtype in dtypes)), 0
    for rows in _all(line, ends):
        for column, values in zip(found.columns, rows.columns):
            column[count : count + len(rows)] = values
        count += len(rows)
        found.rest()
        line.rest()
    return found.take(slice(0, count))


def _all(line: Timeline, ends: Rows) -> Iterator[Rows]:
    for piece in pieces(line):
        yield _entries(line, piece)
    yield ends


def _entries(line: Timeline, piece: Piece) -> Rows:
    collective, event, end = piece.collective, piece.event, piece.end
    rule = piece.rules[collective] if len(collective) else collective
    place, time = take(line.place, event), take(line.begin, event)
    late = np.full(len(event), -1, np.int64)
    reason = np.full(len(event), classes.LATE_PARTICIPANT, np.int64)
    if len(event):
        last = event[latest(collective, time)][collective]
        # An index of -1 is of no collective here: each that stands in `collective` has one.
        late[rule == ALL] = last[rule == ALL]
        is_root = line.world[place] == piece.roots[collective]
        wanted = (rule == TO_ROOT) & is_root
        late[wanted], reason[wanted] = last[wanted], classes.EARLY_ROOT
        root_event = np.full(len(piece.rules), -1, np.int64)
        root_event[collective[is_root]] = event[is_root]
        wanted = (rule == FROM_ROOT) & ~is_root
        late[wanted], reason[wanted] = root_event[collective][wanted], classes.LATE_ROOT
        some = np.flatnonzero(rule == LOWER)
        if len(some):
            number = comm_ranks(line, piece.comms[collective[some]], place[some])
            some = some[np.lexsort((number, collective[some]))]
            key = collective[some] * line.span + time[some]
            higher = np.maximum.accumulate(key)
            new = np.concatenate(([True], key[1:] > higher[:-1]))
            top = np.maximum.accumulate(np.where(new, np.arange(len(some)), 0))
            before = np.concatenate(([0], top[:-1]))
            same = np.concatenate(([False], collective[some][1:] == collective[some][:-1]))
            late[some[same]] = event[some[before[same]]]
    known = end >= 0
    end[known] = take(line.owner, end[known])
    return Rows(collective + piece.before, event, end, rule, late, reason)


def at_the_ends(line: Timeline) -> Rows:
    """MPI_Init and MPI_Finalize, where nobody left before all had entered."""
    found = Rows(*(np.zeros(0, np.int64) for _ in range(6)))
    codes = CODE["init"], CODE["finalize"]
    calls: list[list[np.ndarray]] = [[np.zeros(0, np.int64)] for _ in codes]
    for low, high in line.chunks:
        for one, code in zip(calls, codes):
            one.append(low + np.flatnonzero(line.call[low:high] & (line.family[low:high] == code)))
        line.rest()
    for some in map(np.concatenate, calls):
        if not len(some):
            continue
        first = some[np.unique(take(line.place, some), return_index=True)[1]]
        begin = take(line.begin, first)
        if len(first) < 2 or take(line.end, first).min() < begin.max():
            continue
        last = first[np.argmax(begin)]
        ones = np.ones(len(first), np.int64)
        more = Rows(-ones, first, first, START * ones, last * ones, classes.LATE_PARTICIPANT * ones)
        found = joined(found, more)
    return found


def joined(one: Rows, other: Rows) -> Rows:
    return Rows(*map(np.concatenate, zip(one.columns, other.columns)))
