"""The events of a rank as calls on tracks: what stands for what, and which call lies in which.

A call is one event or more: MPI_Sendrecv and MPI_Startall write several records with one time, and a wait has its
completions behind it. Calls of one thread nest or follow each other; what does not (a damaged recording, events of the
library, a row of tests) lies on a track of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from headway.record import columns, model
from headway.record.columns import Shelves
from headway.record.cuts import cuts
from headway.record.model import Rank, Run

CALLS, CROSSING, TESTS, LIBRARY, NO_CORE, OFF, FAULTS, RELEASES, PREFETCHES, HELPS = range(10)  # of a track
TITLES = (
    "{}",
    "{}: crossing calls",
    "{}: tests",
    "{}: library",
    "{}: no core",
    "{}: not recorded",
    "{}: faults",
    "{}: releases",
    "{}: prefetches",
    "{}: helps",
)
LIBRARY_NAMES = ("fault", "release", "prefetch", "help")
OF_LIBRARY = {model.FAULT: FAULTS, model.RELEASE: RELEASES, model.PREFETCH: PREFETCHES, model.HELP: HELPS}
STRIPS = (LIBRARY, *OF_LIBRARY.values())
DEEPEST = 200
MOST_LANES = 64
LATEST = 1 << 60  # ns: 36 years


@dataclass
class Track:
    """Calls that nest or follow each other, in the order in which they begin, parents before children."""

    thread: int
    what: int
    lane: int  # among those of one thread and kind: all but the first hold what would not nest there
    index: np.ndarray  # into the events of the rank
    begin: np.ndarray  # int64, ns
    end: np.ndarray
    depth: np.ndarray  # int64
    size: np.ndarray  # int64, how many calls with all those within
    name: str  # of the thread

    @property
    def title(self) -> str:
        text = TITLES[self.what].format(self.name)
        return f"{text} {self.lane + 1}" if self.lane else text

    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Of each call: where its begin and its end stand in the row of all begins and ends."""
        at = np.arange(len(self.index))
        return 2 * at - self.depth, 2 * (at + self.size) - self.depth - 1


@dataclass
class Calls:
    tracks: list[Track]
    owner: np.ndarray  # of each event, the one that stands for its call; -1 for none
    also: np.ndarray  # of each event that is a call's first: the receive of a sendrecv, else -1
    count: np.ndarray  # of the same: records that are this call

    def of(self, events: np.ndarray) -> np.ndarray:
        """The calls of these events; -1 stays -1, and so does what is out of range."""
        good = (events >= 0) & (events < len(self.owner))
        found = np.full(len(events), -1, np.int64)
        found[good] = self.owner[events[good]]
        return found


def name(rank: Rank, kind: int) -> str:
    if kind in model.LIBRARY:
        at = kind - model.LIBRARY.start
        return LIBRARY_NAMES[at] if at < len(LIBRARY_NAMES) else f"library {at}"
    return {model.CORE_TAKEN: "no core", model.GAP: "not recorded", model.COMPLETION: "completion"}.get(
        kind
    ) or rank.name(kind)


def category(rank: Rank, kind: int) -> str:
    if kind in model.LIBRARY:
        return "library"
    return {model.CORE_TAKEN: "core", model.GAP: "recording"}.get(kind) or rank.family(kind) or "other"


def comm_text(rank: Rank, comm: int) -> str:
    if comm == 0:
        return ""
    known = rank.comms.get(comm)
    if known is not None and known.name:
        return known.name
    return {model.WORLD: "MPI_COMM_WORLD", model.SELF: "MPI_COMM_SELF"}.get(comm, f"communicator {comm}")


def site_text(rank: Rank, site: int) -> str:
    known = rank.sites.get(site) if site else None
    if known is None:
        return f"site {site}" if site else ""
    return f"{known.text} {known.function}".strip()


def world_ranks(rank: Rank, comm: np.ndarray, peer: np.ndarray) -> np.ndarray:
    """Of peers; -1 where it is not known, or is no rank."""
    found = np.full(len(peer), -1, np.int64)
    for number_ in np.unique(comm).tolist():
        known = rank.comms.get(number_)
        here = (comm == number_) & (peer >= 0)
        if known is None:
            if number_ == model.WORLD:
                found[here] = peer[here]
            continue
        remote = getattr(known, "remote", None)  # of an intercommunicator: the group in which peers are counted
        group = np.asarray(known.members if remote is None else remote)
        here &= peer < len(group)
        found[here] = group[peer[here]]
    return found


def with_family(rank: Rank, *families: str) -> np.ndarray:
    """By kind, up to 0xffff."""
    table = np.zeros(1 << 16, bool)
    table[[k for k, f in enumerate(rank.families[: 1 << 15]) if f in families]] = True
    return table


def _stack(begin: list[int], end: list[int]) -> tuple[list[int], list[int], list[int], list[int]]:
    """Lane, depth, size and end of calls that are sorted by begin, the longer one first."""
    count = len(begin)
    lane_of, depth, size, ends = [0] * count, [0] * count, [1] * count, list(end)
    stacks: list[list[int]] = [[]]
    seen = [0]  # calls in each lane
    at = [0] * count  # among them

    def close(lane: int, until: int | None) -> None:
        stack = stacks[lane]
        while stack and (until is None or ends[stack[-1]] <= until):
            last = stack.pop()
            size[last] = seen[lane] - at[last]

    for i in range(count):
        for lane, stack in enumerate(stacks):
            close(lane, begin[i])
            if not stack or (ends[i] <= ends[stack[-1]] and len(stack) < DEEPEST):
                break
        else:
            if len(stacks) < MOST_LANES:
                stacks.append([])
                seen.append(0)
            lane = len(stacks) - 1
            stack = stacks[lane]
            if stack:  # no more lanes: cut short, so that what is written still nests
                ends[i] = min(ends[i], ends[stack[-1]])
        lane_of[i], depth[i], at[i] = lane, len(stack), seen[lane]
        seen[lane] += 1
        stack.append(i)
    for lane in range(len(stacks)):
        close(lane, None)
    return lane_of, depth, size, ends


def tags(events: np.ndarray) -> np.ndarray:
    """As users gave them: what stands there of a persistent collective is none."""
    return np.where(events["flags"] & model.COLLECTIVE > 0, model.NONE, events["tag"])


def nest(begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, ...]:
    """Order, begin, end, lane, depth and size of calls. Those that overlap nothing, nearly all, cost no loop."""
    end = np.maximum(begin, end)
    count = len(begin)
    if (begin[1:] < end[:-1]).any():
        order = np.lexsort((-end, begin))
    else:
        order = np.arange(count)
    begin, end = begin[order], end[order].copy()
    lane, depth, size = np.zeros(count, np.int64), np.zeros(count, np.int64), np.ones(count, np.int64)
    if count > 1:
        reach = np.maximum.accumulate(end)
        first = np.concatenate(([True], begin[1:] >= reach[:-1]))
        alone = first & np.concatenate((first[1:], [True]))
        some = np.flatnonzero(~alone)
        if len(some):
            found = _stack(begin[some].tolist(), end[some].tolist())
            lane[some], depth[some], size[some], end[some] = (np.array(f, np.int64) for f in found)
    return order, begin, end, lane, depth, size


def times(rank: Rank) -> tuple[np.ndarray, np.ndarray]:
    """Begin and end of each event, within what can be written and drawn."""
    begin = np.clip(rank.begin, 0, LATEST)
    return begin, np.clip(rank.end, begin, LATEST)


def arrange(rank: Rank) -> Calls:
    events = rank.events
    count = len(events)
    kind = events["kind"]
    owner = np.arange(count)
    also = np.full(count, -1, np.int64)
    records = np.ones(count, np.int64)
    waits = with_family(rank, "wait", "test")[kind]
    completion = kind == model.COMPLETION
    pairs = with_family(rank, "sendrecv")[kind]
    several = pairs | with_family(rank, "start")[kind]
    begin, end = times(rank)
    what = np.full(count, CALLS, np.uint8)
    what[events["flags"] & model.IN_VAIN > 0] = TESTS
    what[(kind >= model.LIBRARY.start) & (kind < model.LIBRARY.stop)] = LIBRARY
    for one, track in OF_LIBRARY.items():
        what[kind == one] = track
    what[kind == model.CORE_TAKEN] = NO_CORE
    what[kind == model.GAP] = OFF
    tracks: list[Track] = []
    for thread in np.unique(events["thread"]).tolist():
        mine = np.flatnonzero(events["thread"] == thread)
        if completion[mine].any():
            last = np.maximum.accumulate(np.where(waits[mine], mine, -1))
            owner[mine] = np.where(completion[mine], last, mine)
        if several[mine].any():
            _join(events, begin, end, mine, several, pairs, owner, also, records)
        own = mine[owner[mine] == mine]
        for which in np.unique(what[own]).tolist():
            index = own[what[own] == which]
            order, b, e, lane, depth, size = nest(begin[index], end[index])
            index = index[order]
            for number in range(int(lane.max()) + 1):
                here = lane == number if lane.any() else slice(None)
                title = CROSSING if which == CALLS and number else which
                tracks.append(
                    Track(
                        thread,
                        title,
                        max(number - (title == CROSSING), 0),
                        index[here],
                        b[here],
                        e[here],
                        depth[here],
                        size[here],
                        rank.threads.get(thread) or f"thread {thread}",
                    )
                )
    return Calls(tracks, owner, also, records)


def _join(
    events: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    mine: np.ndarray,
    several: np.ndarray,
    pairs: np.ndarray,
    owner: np.ndarray,
    also: np.ndarray,
    records: np.ndarray,
) -> None:
    """Records of one call: the second of a sendrecv, and all but the first of a start."""
    before, after = mine[:-1], mine[1:]
    same = (
        several[after]
        & (events["kind"][before] == events["kind"][after])
        & (events["site"][before] == events["site"][after])
    )
    same &= (begin[before] == begin[after]) & (end[before] == end[after])
    receives = events["flags"] & model.RECEIVE > 0
    same &= ~pairs[after] | (~receives[before] & receives[after])
    first = np.concatenate(([True], ~same))
    head = mine[np.maximum.accumulate(np.where(first, np.arange(len(mine)), 0))]
    owner[mine] = np.where(several[mine], head, owner[mine])
    joined = after[same]
    np.add.at(records, owner[joined], 1)
    second = joined[pairs[joined]]
    also[owner[second]] = second


def parts(rank: Rank, first: int = 0, last: int | None = None) -> Iterator[tuple[int, Rank]]:
    """The rank's events from one to another in parts that fit into memory: the first event of each, and the part."""
    last = len(rank.events) if last is None else last
    edges = cuts(rank, columns.CHUNK)
    for low, high in zip(edges, edges[1:]):
        low, high = max(low, first), min(high, last)
        if low < high or not len(rank.events):
            some = slice(low, high)
            yield low, replace(rank, events=rank.events[some], begin=rank.begin[some], end=rank.end[some])
            columns.rest(rank.events, rank.begin, rank.end)


END = np.dtype([("event", "<i8"), ("flow", "<i8")])


class Ends:
    """Messages by the rank in which they begin or end, of those with a known send and receive. `spans`: by place, the
    events that are looked at; messages of which one side lies elsewhere are left out."""

    def __init__(
        self, run: Run, messages: np.ndarray, side: str, event: str, spans: list[tuple[int, int]] | None = None
    ) -> None:
        low, high = (np.array(edge, np.int64) for edge in zip(*spans)) if spans else (None, None)
        self.shelves = Shelves(len(run.ranks), END, run.spill)
        self.held: tuple[int, np.ndarray] = (-1, np.zeros(0, END))
        for at in range(0, len(messages), columns.CHUNK):
            m = messages[at : at + columns.CHUNK]
            known = (m["sent"] >= 0) & (m["came"] >= 0)
            for one, of in (("source", "sent"), ("target", "came")):
                where = model.places(run.ranks, m[one])
                if one == side:
                    mine = where
                    known &= where >= 0
                if spans:
                    known &= (where >= 0) & (m[of] >= low[where]) & (m[of] < high[where])
            some = np.flatnonzero(known)
            rows = np.empty(len(some), END)
            rows["event"], rows["flow"] = m[event][some], at + some + 1
            self.shelves.add(rows, mine[some])
            columns.rest(messages)

    def of(self, place: int, calls: Calls, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Calls of a part of the rank, which begins with its event `first`: sorted, and the flow of each: the
        message's number, from 1."""
        if self.held[0] != place:
            rows = self.shelves[place]
            self.held = place, rows[np.argsort(rows["event"], kind="stable")]
        rows = self.held[1]
        low, high = np.searchsorted(rows["event"], (first, first + len(calls.owner)))
        owners, flow = calls.of(rows["event"][low:high] - first), rows["flow"][low:high]
        order = np.lexsort((flow, owners))
        order = order[owners[order] >= 0]
        return owners[order], flow[order].astype(np.uint64)
