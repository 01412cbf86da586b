"""Times of events: from ticks to ns of a host's real-time clock.

Hosts of one boot id have one clock, told by all their ranks' clock blocks together: so the order of ticks is the
order of times on a host. Between two readings time is a straight line. How the hosts' clocks become one: alignment.

Columns are made piece by piece and may lie in files: nothing else here grows with the events.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .columns import pieces, room
from .format import BadRecording, Recording

APART = 1_000_000  # ns by which clocks of one boot may differ before they are taken for two
POINTS = 4096  # of a host's clock
RATES = 0.01, 10_000.0  # ns a tick that a clock may have


@dataclass
class Host:
    """One clock, and the ranks (by place) that read it."""

    name: str
    places: list[int] = field(default_factory=list)
    real: int = 0  # CLOCK_REALTIME - CLOCK_MONOTONIC, ns
    offset: float = 0.0  # what is added to it, at time 0 of the run
    drift: float = 0.0  # and for each ns after that

    def line(self, times: np.ndarray) -> np.ndarray:
        """Its times on the clock of all."""
        return times + (self.offset + self.drift * times)


# ---- ticks -------------------------------------------------------------------------------------
def straight(points: np.ndarray, ticks: str) -> tuple[np.ndarray, np.ndarray]:
    """Ticks and ns of CLOCK_MONOTONIC that draw a clock, from all readings of it. BadRecording where they do not."""
    if not len(points):
        raise BadRecording("it has no clock")
    points = points[np.lexsort((points[:, 1], points[:, 0]))]
    x, y = points[:, 0], np.maximum.accumulate(points[:, 1])
    if (y - points[:, 1]).max() > APART:
        raise BadRecording("its clock runs backwards")
    if x[-1] > x[0]:  # the first of each small stretch, and the last of all
        stretch = (x - x[0]) // max(1, int(x[-1] - x[0]) // POINTS)
        kept = np.flatnonzero(np.diff(stretch, prepend=-1))
        if x[kept[-1]] < x[-1]:
            kept = np.append(kept, len(x) - 1)
        x, y = x[kept], y[kept]
        x, first = np.unique(x, return_index=True)
        y = y[first]
    if len(x) < 2 or y[-1] == y[0]:
        if ticks != "ns":
            raise BadRecording("its clock was read only once: what a tick is, is not known")
        x, y = np.array([x[0], x[0] + 1]), np.array([y[0], y[0] + 1])
    if not RATES[0] <= (y[-1] - y[0]) / (x[-1] - x[0]) <= RATES[1]:
        raise BadRecording("its clock has ticks of a length that no clock has")
    return x, y


def in_ns(ticks: np.ndarray, x: np.ndarray, y: np.ndarray, base: int) -> np.ndarray:
    """ns since `base`, int64. Beyond the first and the last reading the clock's mean rate holds."""
    rate = float(y[-1] - y[0]) / float(x[-1] - x[0])
    at = ticks.astype(np.int64) - x[0]
    known = (x - x[0]).astype(float)
    ns = np.interp(at, known, (y - y[0]).astype(float))
    ns += np.minimum(at, 0) * rate + np.maximum(at - known[-1], 0) * rate
    return np.rint(ns).astype(np.int64) + (int(y[0]) - base)


def set_times(recordings: list[Recording], spill: Path | None = None) -> tuple[list[Host], list[Recording], list[str]]:
    """Gives each rank its times in ns by the real-time clock of its host, since about the run's start. The hosts, and
    the recordings that have times. A file without a clock takes that of its host; where the readings of a host's ranks
    are not of one clock, each of them has its own."""
    notes: list[str] = []
    groups: dict[tuple[str, str], list[Recording]] = {}
    for recording in recordings:
        groups.setdefault((recording.rank.boot, recording.rank.header["ticks"]), []).append(recording)
    starts = sorted(int(recording.clock[0, 2]) for recording in recordings if len(recording.clock))
    base = starts[len(starts) // 2] if starts else 0
    hosts: dict[tuple[str, int], Host] = {}
    kept: list[tuple[Recording, Host]] = []
    todo = [(group, -1) for group in groups.values()]
    while todo:
        group, alone = todo.pop(0)
        points = np.concatenate([recording.clock for recording in group])
        first = group[0].rank
        try:
            x, y = straight(points, first.header["ticks"])
        except BadRecording as problem:
            numbers = ", ".join(str(recording.rank.rank) for recording in group[:5])
            if len(group) > 1 and len(points):
                notes.append(f"ranks {numbers} say that they share one clock, but do not: each has its own")
                todo += [([recording], recording.rank.rank) for recording in group]
            else:
                notes.append(f"what has no times is left out, rank {numbers}: {problem}")
            continue
        real = int(np.sort(points[:, 2] - points[:, 1])[len(points) // 2])
        host = hosts.setdefault((first.boot, alone), Host(first.host, real=real))
        for recording in group:
            rank = recording.rank
            for name in ("begin", "end"):
                column, field = room(len(rank.events), np.int64, spill), rank.events[name]
                for some in pieces(column, field):
                    column[some] = in_ns(field[some], x, y, base - host.real)
                setattr(rank, name, column)
            kept.append((recording, host))
    kept.sort(key=lambda pair: pair[0].rank.rank)
    for place, (_recording, host) in enumerate(kept):
        host.places.append(place)
    return sorted(hosts.values(), key=lambda host: host.places[0]), [recording for recording, _host in kept], notes
