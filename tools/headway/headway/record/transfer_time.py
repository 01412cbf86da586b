"""How long a transfer needs, learned from the run: a + bytes / bandwidth, apart for one host and between hosts.

Both sides of a message are there from X = max(begin of the send, posting of the receive) on. Where both were in MPI
from X until it had come, nothing but the transfer itself took that time, or others' traffic: so the lower envelope of
those times is what a transfer needs. Those count whose receive was posted first: what was sent before may have moved
before. Only where they are too few do sends count that came first and needed their receiver. For each size (quarters of
an octave) one point counts, near the shortest (one in 20 may be shorter: clocks of two hosts agree only so well); of
all lines with no point below them the one that lies closest is taken. How far transfers usually lie above it is its
spread. Where a run does not tell what a transfer needs, what was measured of its MPI outside of it counts, if anything was.

Of very many messages (LEARNED) it is learned from a part, drawn by the calls in which they came.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from headway.record import columns
from headway.record.columns import rest, room, take
from headway.record.timeline import Timeline

LEAST = 20  # messages from which a line is believed
SHORTER = 0.05  # share of the messages of a size that may be below the line
TOLERANCE = 0.02  # share of its time for which a side may be outside of MPI
TOLERANCE_NS = 1000
SPREAD = 0.75, 0.25  # how many of the messages it is of, and what it is at most
WHERE = ("on one host", "between hosts")
LEARNED = 400_000  # messages
DRAW = 0x9E3779B97F4A7C15  # odd: its multiples lie as if by chance


@dataclass
class Line:
    latency: float = 0.0  # ns
    per_byte: float = 0.0  # ns
    messages: int = 0  # it rests on
    spread: float = 0.0  # by which three of four of them took longer at most, of the time

    def time(self, size: np.ndarray) -> np.ndarray:
        ns = self.latency + self.per_byte * np.asarray(size, float)
        return np.rint(np.minimum(ns, float(1 << 60))).astype(np.int64)


@dataclass
class Measured(Line):
    """What was measured of this MPI outside of the run: straight between the sizes, and beyond the last two."""

    sizes: tuple[float, ...] = ()  # grow
    least: tuple[float, ...] = ()  # ns, never less

    @classmethod
    def of(cls, sizes: list[int], least: list[float], spread: float) -> Measured:
        slope = least[-1] / max(1.0, sizes[-1])
        if len(sizes) > 1:
            slope = (least[-1] - least[-2]) / max(1.0, sizes[-1] - sizes[-2])
        limited = float(np.clip(spread, 0, SPREAD[1]))
        return cls(least[0], slope, LEAST, limited, tuple(map(float, sizes)), tuple(least))

    def time(self, size: np.ndarray) -> np.ndarray:
        size = np.asarray(size, float)
        beyond = np.maximum(0.0, size - self.sizes[-1]) * self.per_byte
        ns = np.interp(size, self.sizes, self.least) + beyond
        return np.rint(np.minimum(ns, float(1 << 60))).astype(np.int64)


@dataclass
class Transfer:
    lines: tuple[Line, Line] = field(default_factory=lambda: (Line(), Line()))  # as WHERE
    buffered: int = -1  # bytes of the largest send that was let go before its receive was posted; -1: none was
    measured: tuple[bool, bool] = (False, False)  # not from the run
    notes: list[str] = field(default_factory=list)

    def time(self, size: np.ndarray, between: np.ndarray) -> np.ndarray:
        return np.where(between, self.lines[1].time(size), self.lines[0].time(size))

    def usual(self, need: np.ndarray, between: np.ndarray) -> np.ndarray:
        """ns by which a transfer that needs so long may take longer without any reason."""
        return np.rint(need * np.where(between, self.lines[1].spread, self.lines[0].spread)).astype(np.int64)


@dataclass
class Messages:
    """The run's messages as numbers of events of a Timeline; all that is known of both sides."""

    index: np.ndarray  # into Run.messages
    source: np.ndarray  # places
    target: np.ndarray
    sent: np.ndarray  # events
    posted: np.ndarray
    left: np.ndarray  # the call's owner, -1 unknown
    came: np.ndarray
    size: np.ndarray
    between: np.ndarray  # hosts
    begun: np.ndarray  # times: of the send
    asked: np.ndarray  # of the receive's posting
    both: np.ndarray  # the later one
    gone: np.ndarray  # the end of the call in which the send was completed; -1 unknown
    arrived: np.ndarray  # the same of the receive

    def __len__(self) -> int:
        return len(self.index)

    @property
    def columns(self) -> tuple[np.ndarray, ...]:
        return tuple(getattr(self, name) for name in self.__dataclass_fields__)

    def take(self, which: slice | np.ndarray) -> Messages:
        if isinstance(which, slice):
            return Messages(*(column[which] for column in self.columns))
        return Messages(*(take(column, which) for column in self.columns))

    def rest(self) -> None:
        rest(*self.columns)


SMALL = {"source": np.int32, "target": np.int32, "between": bool}


def messages(line: Timeline) -> Messages:
    every, count, spill = line.run.messages, 0, line.run.spill
    found = Messages(*(room(len(every), SMALL.get(name, np.int64), spill) for name in Messages.__dataclass_fields__))
    for low in range(0, len(every), columns.CHUNK):
        m = every[low : low + columns.CHUNK]
        rows = _of(line, m)
        rows.index += low
        for column, values in zip(found.columns, rows.columns):
            column[count : count + len(rows)] = values
        count += len(rows)
        found.rest()
        rest(every)
    return found.take(slice(0, count))


def _of(line: Timeline, m: np.ndarray) -> Messages:
    sent, posted = line.number(m["source"], m["sent"]), line.number(m["target"], m["posted"])
    left, came = line.number(m["source"], m["left"]), line.number(m["target"], m["came"])
    index = np.flatnonzero((sent >= 0) & (posted >= 0) & (came >= 0))
    sent, posted, left, came = sent[index], posted[index], left[index], came[index]
    came, known = take(line.owner, came), left >= 0
    left[known] = take(line.owner, left[known])
    source, target = line.places(m["source"][index]), line.places(m["target"][index])
    begun, asked = take(line.begin, sent), take(line.begin, posted)
    size = np.minimum(m["bytes"][index], np.uint64(1 << 60)).astype(np.int64)
    gone = np.full(len(index), -1, np.int64)
    gone[known] = take(line.end, left[known])
    return Messages(
        index, source, target, sent, posted, left, came, size, line.host[source] != line.host[target],
        begun, asked, np.maximum(begun, asked), gone, take(line.end, came),
    )  # fmt: skip


def last_of(group: np.ndarray, key: np.ndarray, then: np.ndarray | None = None) -> np.ndarray:
    """Where the largest key of each group is; of equal ones, the largest `then`."""
    order = np.lexsort((key, group) if then is None else (then, key, group))
    ends = np.ones(len(order), bool)
    ends[:-1] = group[order[1:]] != group[order[:-1]]
    return order[ends]


def learn(line: Timeline, m: Messages, known: tuple[Line | None, Line | None] = (None, None)) -> Transfer:
    """`known`: what a transfer needs as WHERE, from elsewhere: where the run does not tell it."""
    found = Transfer()
    for low in range(0, len(m), columns.CHUNK):
        some = slice(low, low + columns.CHUNK)
        copied = (m.gone[some] >= 0) & (m.gone[some] < m.asked[some])
        found.buffered = max(found.buffered, int(m.size[some][copied].max(initial=-1)))
        m.rest()
    if not len(m):
        return found
    m = drawn(m)
    # Of a call that waited for several, the time is that of the one whose sides were there last.
    one = last_of(m.came, m.both)
    took = m.arrived[one] - m.both[one]
    allowed = np.maximum(TOLERANCE_NS, TOLERANCE * took)
    busy = np.where(m.gone[one] < 0, take(line.end, m.sent[one]), m.gone[one])
    sure = line.inside.without(m.target[one], m.both[one], m.arrived[one]) <= allowed
    moved = m.begun[one] < m.asked[one]
    may = ~moved | (m.size[one] > found.buffered)
    sure &= line.inside.without(m.source[one], m.both[one], np.minimum(m.arrived[one], busy)) <= allowed
    lines = []
    for between in (False, True):
        here = m.between[one] == between
        good = here & sure & ~moved
        if good.sum() < LEAST:
            good = here & sure & may
        elsewhere = known[between]
        if good.sum() < LEAST and here.any() and elsewhere is not None:
            found.measured = (found.measured[0] or not between, found.measured[1] or between)
            lines.append(elsewhere)
            continue
        if good.sum() < LEAST and here.any():
            found.notes.append(
                f"Of {int(good.sum())} messages {WHERE[between]} both sides were in MPI the whole time: too few to "
                "know what a transfer needs. Missing progress may be taken for transfer there."
            )
            good = here & may if good.sum() < LEAST // 4 else good
        size, ns = m.size[one][good], took[good]
        learned = Line(*envelope(size, ns), int(good.sum()))
        if learned.messages >= LEAST:
            need = learned.time(size)
            learned.spread = float(np.clip(np.quantile((ns - need) / np.maximum(need, 1), SPREAD[0]), 0, SPREAD[1]))
        lines.append(learned)
    found.lines = lines[0], lines[1]
    return found


def drawn(m: Messages) -> Messages:
    """A part of very many: those of one call together."""
    step = -(-len(m) // LEARNED)
    if step == 1:
        return m
    kept = []
    for low in range(0, len(m), columns.CHUNK):
        came = m.came[low : low + columns.CHUNK].astype(np.uint64)
        kept.append(low + np.flatnonzero((came * np.uint64(DRAW) >> np.uint64(32)) % np.uint64(step) == 0))
        rest(m.came)
    return m.take(np.concatenate(kept))


def envelope(size: np.ndarray, took: np.ndarray) -> tuple[float, float]:
    """ns, and ns a byte, of the closest line with no point below it; neither is negative."""
    if not len(size):
        return 0.0, 0.0
    group = np.rint(4 * np.log2(size + 1.0)).astype(np.int64)
    order = np.lexsort((took, group))
    edges = np.flatnonzero(np.diff(group[order], prepend=-1))
    count = np.diff(np.append(edges, len(order)))
    chosen = order[edges + (SHORTER * count).astype(np.int64)]
    x, y = size[chosen].astype(float), np.maximum(took[chosen].astype(float), 1.0)
    i, j = np.triu_indices(len(x), 1)
    step = x[j] - x[i]
    fits = step > 0
    slope = (y[j] - y[i])[fits] / step[fits]
    base = y[i][fits] - slope * x[i][fits]
    # Through all sizes one time, or through nothing: what is left where there is one size.
    flat = y.min()
    through = (y / np.maximum(x, 1.0)).min()
    base, slope = np.append(base, [flat, 0.0]), np.append(slope, [0.0, through])
    line = base[:, None] + slope[:, None] * x[None, :]
    good = (base >= 0) & (slope >= 0) & (line <= y * (1 + 1e-9)).all(axis=1)
    apart = np.where(good, ((y - line) / y).sum(axis=1), np.inf)
    apart[-2:] += 1e-9 * np.array([x.max() > 4096, x.max() <= 4096])  # of one size: small ones are latency
    best = int(np.argmin(apart))
    return max(0.0, float(base[best])), max(0.0, float(slope[best]))
