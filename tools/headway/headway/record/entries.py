"""Collectives as columns, and for each rank in one the entry for which it had to wait.

Which ranks wait for which follows from what a collective does: nobody leaves an Allreduce before all have entered it;
after a Scan, before all lower ranks have; a Bcast gives what its root has; a Reduce needs all at its root only. Others
need no one else's entry, or whose is not known (neighbours).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.record import classes
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


def flat(line: Timeline) -> tuple[np.ndarray, ...]:
    """Collective, event and end of each rank in each of them, then by collective: root and rule."""
    run, many = line.run, line.run.collectives
    if hasattr(many, "starts"):  # columns already: see matching.Collectives
        count = np.diff(many.starts)
        ranks, events, ends = many.rows["rank"], many.rows["event"], many.rows["end"]
        first = many.rows["name"][many.starts[:-1]]
        which, roots = first, np.asarray(many.roots, np.int64)
        names = list(many.names)
    else:
        count = np.array([len(c.ranks) for c in many], np.int64)
        empty = [np.zeros(0, np.int64)]
        ranks, events, ends = (
            np.concatenate([np.asarray(getattr(c, column), np.int64) for c in many] or empty)
            for column in ("ranks", "events", "ends")
        )
        names = sorted({c.name for c in many})
        numbers = {name: number for number, name in enumerate(names)}
        which = np.array([numbers[c.name] for c in many], np.int64)
        roots = np.array([c.root for c in many], np.int64)
    of_comm = communicator_calls(run)
    rules = np.array([rule_of(name, "comm" if name in of_comm else "") for name in names] or [0])
    collective = np.repeat(np.arange(len(count)), count)
    event, end = line.number(ranks, events), line.number(ranks, ends)
    good = event >= 0
    return collective[good], event[good], end[good], roots, rules[which] if len(which) else np.zeros(0, np.int64)


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
    collective, event, end, roots, rules = flat(line)
    rule = rules[collective] if len(collective) else collective
    place, time = line.place[event], line.begin[event]
    late = np.full(len(event), -1, np.int64)
    reason = np.full(len(event), classes.LATE_PARTICIPANT, np.int64)
    if len(event):
        last = event[latest(collective, time)][collective]
        # An index of -1 is of no collective here: each that stands in `collective` has one.
        late[rule == ALL] = last[rule == ALL]
        is_root = line.world[place] == roots[collective]
        wanted = (rule == TO_ROOT) & is_root
        late[wanted], reason[wanted] = last[wanted], classes.EARLY_ROOT
        root_event = np.full(len(rules), -1, np.int64)
        root_event[collective[is_root]] = event[is_root]
        wanted = (rule == FROM_ROOT) & ~is_root
        late[wanted], reason[wanted] = root_event[collective][wanted], classes.LATE_ROOT
        some = np.flatnonzero(rule == LOWER)
        if len(some):
            number = comm_ranks(line, comms_of(line)[collective[some]], place[some])
            some = some[np.lexsort((number, collective[some]))]
            key = collective[some] * line.span + time[some]
            higher = np.maximum.accumulate(key)
            new = np.concatenate(([True], key[1:] > higher[:-1]))
            top = np.maximum.accumulate(np.where(new, np.arange(len(some)), 0))
            before = np.concatenate(([0], top[:-1]))
            same = np.concatenate(([False], collective[some][1:] == collective[some][:-1]))
            late[some[same]] = event[some[before[same]]]
    owner = np.where(end < 0, -1, line.owner[end]) if len(end) else end
    rows = Rows(collective, event, owner, rule, late, reason)
    return joined(rows, at_the_ends(line))


def at_the_ends(line: Timeline) -> Rows:
    """MPI_Init and MPI_Finalize, where nobody left before all had entered."""
    found = Rows(*(np.zeros(0, np.int64) for _ in range(6)))
    for family in ("init", "finalize"):
        some = np.flatnonzero(line.call & (line.family == CODE[family]))
        if not len(some):
            continue
        first = some[np.unique(line.place[some], return_index=True)[1]]
        if len(first) < 2 or line.end[first].min() < line.begin[first].max():
            continue
        last = first[np.argmax(line.begin[first])]
        ones = np.ones(len(first), np.int64)
        more = Rows(-ones, first, first, START * ones, last * ones, classes.LATE_PARTICIPANT * ones)
        found = joined(found, more)
    return found


def joined(one: Rows, other: Rows) -> Rows:
    return Rows(*(np.concatenate((getattr(one, name), getattr(other, name))) for name in Rows.__dataclass_fields__))
