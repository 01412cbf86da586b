"""The hosts' clocks made one.

Each host's clock is that of the first host but for a straight line (offset and drift). What must have been before
what bounds that line: a send begins before its receive ends; nobody leaves a barrier before all have entered. All
bounds of two hosts say low(x) <= line(x) <= high(x); among the drifts for which a line fits, the middle one is taken
(of those that clocks usually have, if there are any), and between its bounds the middle offset. Hosts are joined
along a tree of the pairs that know most of each other; while what other pairs know is missed, one host after the
other goes into the middle of all that is known of it, and where that does not help, two at a time. What no line can satisfy is mended by moving a rank forward
from there on; the move is taken back so slowly (one part in 1000) that no interval is turned round.
"""

from __future__ import annotations

from typing import Callable

import numpy as np

from .bounds import FASTEST, Bounds, Pair, gather, places_of
from .clocks import Host
from .columns import add, pieces
from .joining import edges
from .model import Rank

USUAL = 1e-4  # the drift between most clocks
TAKEN_BACK = 1e-3  # of the time that passes
STEPS = 60  # of each search
FITS = 20_000  # of hosts one after the other, while bounds are missed
PATIENCE = 50  # fits of each host that have to make it better
AGREES, AGREES_WORK = 50_000, 50_000_000  # moves of two hosts, and all bounds that are looked at for them
ROUNDING = 2  # ns, of the times of two hosts
ROUNDS = 200  # of mending


# ---- lines -------------------------------------------------------------------------------------
def turning(low: float, high: float, above: Callable[[float], bool]) -> float:
    """Where `above` turns from true to false."""
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) else (low, middle)
    return (low + high) / 2


def fit(low: np.ndarray, high: np.ndarray) -> tuple[float, float]:
    """Offset and drift of a line above the points of `low` and below those of `high` (rows of x, y); where there is
    none, the one that misses least."""
    if not len(low) and not len(high):
        return 0.0, 0.0
    if not len(low):
        offset, drift = fit(high * (1, -1), low)
        return -offset, -drift
    x, y = low.T
    if not len(high):
        if y.max() <= 0:
            return 0.0, 0.0  # the real-time clocks do not contradict
        middle = (x.min() + x.max()) / 2
        drift = turning(-USUAL, USUAL, lambda b: x[np.argmax(y - b * x)] > middle)
        return float((y - drift * x).max()), drift
    up, top = high.T

    def gap(b: float) -> float:
        return float((top - b * up).min() - (y - b * x).max())

    def grows(b: float) -> bool:
        return bool(x[np.argmax(y - b * x)] > up[np.argmin(top - b * up)])

    drift, usual = (turning(-most, most, grows) for most in (FASTEST, USUAL))
    if gap(drift) <= 0:
        drift = usual if gap(usual) >= 2 * gap(drift) - 1000 else drift
    else:
        first = turning(drift, -FASTEST, lambda b: gap(b) >= 0)
        last = turning(drift, FASTEST, lambda b: gap(b) >= 0)
        if first <= USUAL and last >= -USUAL:
            first, last = max(first, -USUAL), min(last, USUAL)
        drift = (first + last) / 2
    return float((top - drift * up).min() + (y - drift * x).max()) / 2, drift


def missed(hosts: list[Host], pair: Pair) -> float:
    """By how much the hosts' lines miss a bound at most, ns."""
    a, b = hosts[pair.a], hosts[pair.b]
    too_early = a.line(pair.low.sum(1)) - b.line(pair.low[:, 0])
    too_late = b.line(pair.high[:, 0]) - a.line(pair.high.sum(1))
    return float(max(too_early.max(initial=0), too_late.max(initial=0)))


def worst_of(hosts: list[Host], pairs: list[Pair]) -> float:
    return max((missed(hosts, pair) for pair in pairs), default=0)


def pairs_of(pairs: list[Pair], movable: list[int]) -> dict[int, list[Pair]]:
    return {at: [pair for pair in pairs if at in (pair.a, pair.b)] for at in movable}


def centre(hosts: list[Host], own: dict[int, list[Pair]], order: list[int]) -> None:
    """Moves one host after the other into the middle of what all others tell of it. `own`: each one's pairs."""
    for at in order:
        bounds: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])  # below and above, of this host's line
        for pair in own[at]:
            for side, rows in enumerate((pair.low, pair.high)):
                b_times, a_times = rows[:, 0], rows.sum(1)
                if pair.b == at:
                    bounds[side].append(np.stack([b_times, hosts[pair.a].line(a_times) - b_times], 1))
                elif pair.a == at:
                    bounds[1 - side].append(np.stack([a_times, hosts[pair.b].line(b_times) - a_times], 1))
        hosts[at].offset, hosts[at].drift = fit(*(np.concatenate(side) for side in bounds))


def settle(hosts: list[Host], pairs: list[Pair], movable: list[int]) -> None:
    """Centres the hosts until no bound is missed, or that does not help any more."""
    before, own = np.inf, pairs_of(pairs, movable)
    for sweep in range(max(20, FITS // len(hosts))):
        worst = worst_of(hosts, pairs)
        if worst <= ROUNDING or (sweep % PATIENCE == 0 and worst > 0.9 * before):
            return
        before = worst if sweep % PATIENCE == 0 else before
        centre(hosts, own, movable if sweep % 2 == 0 else movable[::-1])


def agree(hosts: list[Host], pairs: list[Pair], movable: list[int]) -> None:
    """Where one host alone cannot be moved to miss less, though lines are there that miss nothing (hosts of a ring, each
    of which waits for the next one): moves the two hosts of the bound that is missed most, until none is. Where that
    comes to no end nothing is moved: no lines satisfy all bounds. What it comes to lies at the rim of what is known, so
    the hosts are centred once more, where that misses nothing."""
    rows = [(pair.a, pair.b, pair.low.sum(1), pair.low[:, 0]) for pair in pairs]
    rows += [(pair.b, pair.a, pair.high[:, 0], pair.high.sum(1)) for pair in pairs]
    first, second = (np.concatenate([np.full(len(row[2]), row[at]) for row in rows]) for at in (0, 1))
    before, behind = (np.concatenate([row[at] for row in rows]) for at in (2, 3))  # the first host's is not later
    lines = np.array([[host.offset, host.drift] for host in hosts])
    start = before.min(initial=np.inf)
    scale = max(np.ptp(before), 1.0) / 2 if len(before) else 1.0
    # Of lines through the middle of the run, in its own unit, so that offsets and drifts weigh the same.
    one, other = ((times - start) / scale - 1 for times in (before, behind))
    middles = np.stack([lines[:, 0] + lines[:, 1] * (start + scale), lines[:, 1] * scale], 1)
    may_move = np.isin(np.arange(len(hosts)), movable)
    weight = may_move[first] * (1 + one**2) + may_move[second] * (1 + other**2)
    for _ in range(min(AGREES, AGREES_WORK // max(len(before), 1))):
        misses = before - behind + middles[first, 0] + middles[first, 1] * one - middles[second, 0] - middles[second, 1] * other
        at = int(np.argmax(misses))
        if misses[at] <= ROUNDING / 2:
            break
        if not weight[at]:
            return
        step = (misses[at] + ROUNDING) / weight[at]
        for host, sign, place in ((first[at], -1, one[at]), (second[at], 1, other[at])):
            if may_move[host]:
                middles[host] += sign * step * np.array([1, place])
                middles[host, 1] = np.clip(middles[host, 1], -FASTEST * scale, FASTEST * scale)
    else:
        return
    for at in movable:
        drift = middles[at, 1] / scale
        hosts[at].offset, hosts[at].drift = float(middles[at, 0] - drift * (start + scale)), float(drift)
    at_rim = [(host.offset, host.drift) for host in hosts]
    centre(hosts, pairs_of(pairs, movable), movable)
    if worst_of(hosts, pairs) > ROUNDING:
        for host, (offset, drift) in zip(hosts, at_rim):
            host.offset, host.drift = offset, drift


def reached(pairs: list[Pair], roots: list[int], turned: bool) -> set[int]:
    """The hosts that messages have come to, over others, from one of the roots; turned round: that they came from."""
    ways = [(pair.a, pair.b) for pair in pairs if len(pair.low)]
    ways += [(pair.b, pair.a) for pair in pairs if len(pair.high)]
    found, todo = set(roots), list(roots)
    while todo:
        at = todo.pop()
        new = {way[not turned] for way in ways if way[turned] == at} - found
        found |= new
        todo += new
    return found


def align(hosts: list[Host], ranks: list[Rank], bounds: Bounds) -> list[str]:
    """Puts all ranks on the first host's clock."""
    if len(hosts) < 2:
        return []
    pairs = sorted(bounds.pairs(), key=lambda pair: (min(pair.counts), max(pair.counts)), reverse=True)
    notes, tied = [], list(range(len(hosts)))  # tied: a host of the same part
    lines: dict[int, list[tuple[int, float, float]]] = {}
    for pair in pairs:
        a, b = pair.a, pair.b
        if tied[a] == tied[b]:
            continue
        tied = [tied[a] if part == tied[b] else part for part in tied]
        offset, drift = fit(pair.low, pair.high)
        lines.setdefault(a, []).append((b, offset, 1 + drift))
        lines.setdefault(b, []).append((a, -offset / (1 + drift), 1 / (1 + drift)))
    done: list[int] = []
    roots = list(dict.fromkeys(tied.index(part) for part in tied))
    for root in roots:
        if root:
            notes.append(f"nothing ties {hosts[root].name} to {hosts[0].name}: its real-time clock is believed")
        todo = [(root, 0.0, 1.0)]
        while todo:
            at, offset, rate = todo.pop(0)
            if at in done:
                continue
            done.append(at)
            hosts[at].offset, hosts[at].drift = offset, rate - 1
            todo += [(other, offset + rate * a, rate * b) for other, a, b in lines.get(at, [])]
    movable = [at for at in done if at not in roots]
    settle(hosts, pairs, movable)
    if worst_of(hosts, pairs) > ROUNDING:
        agree(hosts, pairs, movable)
    told = reached(pairs, roots, False) & reached(pairs, roots, True)
    for at in done:
        if at not in told:
            notes.append(f"messages of {hosts[at].name} went one way only: how long they took is not known")
    for host in hosts:
        if not host.offset and not host.drift:
            continue
        for place in host.places:
            for column in (ranks[place].begin, ranks[place].end):
                add(column, lambda times, host=host: np.rint(host.offset + host.drift * times).astype(np.int64))
    if not bounds.count:
        return notes
    worst = max(hosts[1:], key=lambda host: abs(host.offset))
    fastest = max(abs(host.drift) for host in hosts[1:])
    notes.insert(
        0,
        f"the clocks of {len(hosts)} hosts were aligned by {bounds.count} messages and collectives: "
        f"up to {abs(worst.offset) / 1e6:.3g} ms ({worst.name}) and {fastest * 1e6:.3g} ppm apart",
    )
    return notes


# ---- mending -----------------------------------------------------------------------------------
def early(ranks: list[Rank], messages: np.ndarray, own: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of messages to the sender itself, or to others, that came before they were sent: the receiver's place, when it
    was there, by how much too early."""
    found = [(np.zeros(0, np.int64),) * 3]
    for piece in pieces(messages):
        some = messages[piece]
        some = some[(some["source"] == some["target"]) == own]
        target = places_of(ranks, some["target"])
        came = gather([rank.end for rank in ranks], target, some["came"])
        late = gather([rank.begin for rank in ranks], places_of(ranks, some["source"]), some["sent"]) - came
        wrong = late > 0
        found.append((target[wrong], came[wrong], late[wrong]))
    target, came, late = map(np.concatenate, zip(*found))
    return target, came, late


def mend(ranks: list[Rank], messages: np.ndarray) -> list[str]:
    """Moves ranks forward until no message comes before it was sent. Messages to the sender itself only count: what
    moves one side moves the other."""
    rounds = 0
    target, came, late = early(ranks, messages, False)
    count, largest = len(late), int(late.max(initial=0))
    while len(late) and rounds < ROUNDS:
        rounds += 1
        order = np.lexsort((came, target))
        target, came, late = target[order], came[order], late[order]
        starts = edges((target,))
        for first, last in zip(starts, starts[1:]):
            when = came[first:last]
            # What is left of all moves up to an event: the largest of late - TAKEN_BACK * (time since then).
            most = np.maximum.accumulate(late[first:last] + TAKEN_BACK * (when - when[0]))

            def moved(times: np.ndarray, when: np.ndarray = when, most: np.ndarray = most) -> np.ndarray:
                at = np.searchsorted(when, times, "right") - 1
                by = np.rint(most[at] - TAKEN_BACK * (times - when[0])).astype(np.int64)
                return np.where(at >= 0, np.maximum(by, 0), 0)

            add(ranks[target[first]].begin, moved)
            add(ranks[target[first]].end, moved)
        target, came, late = early(ranks, messages, False)
    notes = []
    if largest > ROUNDING:
        notes.append(
            f"{count} messages came up to {largest / 1e3:.3g} us before they were sent: "
            "their receivers' times were moved forward"
        )
    left = len(late) + len(early(ranks, messages, True)[2])
    if left:
        notes.append(f"{left} messages still come before they were sent: the recording contradicts itself")
    return notes
