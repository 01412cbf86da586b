"""Which models of the transport explain a run.

Those that the run does not exclude at once (what was copied, and what was not, bounds the eager size) replay it as it
was: a model fits that misses its time, and each rank's time in calls, by 3 % of the run at most. How much longer than
the shortest transfers usually take is tried; where the run does not tell what a transfer needs, each model takes the
length with which its replay comes closest to the run's time. What was measured of the MPI (`facts`) decides where the
run leaves it open: a model that contradicts it is not tried. A transfer of the run may take longer than one that was
measured, as memory that is not in a cache does, so longer ones are tried, too.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from headway.record.facts import Facts
from headway.record.program import Program
from headway.record.replay import Outcome, replay as replayed
from headway.record.transport import ALWAYS, ANY, BEGUN, MATCHING, PULL, Model, Rule
from headway.record.waiting import A_CALL, Waiting

FITS = 0.03  # of the run's time, by which a replay of the unchanged run may miss
SEARCH = 9  # replays in which a length is looked for
LATENCIES = 0, 1_000, 3_000, 10_000, 30_000, 100_000  # ns, that are tried then
NEAR = 0.005  # of the run's time, by which another latency may be worse
USUAL = 0.0, 0.33, 0.67, 1.0  # of `World.longer`
# Times what was measured that transfers of the run may take: bytes that the sender has just written come from a far core's
# cache at a sixth of the rate of those that lie in the receiver's.
LONGER = 8.0


class TooLong(Exception):
    """Not all models could be tried in the time that there is: what is not known of one of them is not promised."""


@dataclass
class Fit:
    """A model, and by how much its replay of the unchanged run misses (share of the run's time)."""

    model: Model
    miss: float
    outcome: Outcome | None

    @property
    def fits(self) -> bool:
        return self.outcome is not None and self.miss <= FITS


@dataclass(frozen=True)
class Known:
    """What else is known of the transport than the run tells: of a run that was made to learn it, say."""

    moves: tuple[int, ...] = (MATCHING, ANY, BEGUN, ALWAYS, PULL)  # which are possible
    eager: int | None = None  # bytes up to which a message is copied
    rules: tuple[Rule, ...] = ()  # of sizes that were measured
    begins: bool | None = None  # calls that only begin something move data, too
    together: int = -1  # bytes that are copied before any is received, at least

    @classmethod
    def of(cls, facts: Facts) -> Known:
        return cls(facts.moves or cls.moves, None, facts.rules, facts.begins, facts.together)


def models(waiting: Waiting, known: Known = Known()) -> list[Model]:
    """Those that are not excluded at once."""
    m, line = waiting.messages, waiting.line
    if not len(m.index):
        return [Model(ALWAYS, 0)]
    copied = (m.gone >= 0) & (m.gone < m.asked)
    left = np.maximum(m.left, 0)
    waited = (m.left >= 0) & (m.asked > m.begun) & (m.gone >= m.asked) & (line.begin[left] < m.asked)
    waited &= line.end[left] - line.begin[left] > A_CALL
    low = int(m.size[copied].max(initial=-1))
    high = int(m.size[waited & (m.size > low)].min(initial=int(m.size.max()) + 1)) - 1
    sizes = [low]
    if ((m.size > low) & (m.size <= high)).any():
        sizes.append(high)
    if known.eager is not None:
        sizes = [known.eager]
    before = outstanding(waiting)
    most = max(low, known.together, int((before + m.size)[copied].max(initial=-1)))
    limits = [-1]
    if most >= 0 and (before + m.size > most)[m.size <= sizes[-1]].any():
        limits.append(most)
    wires = [False, True] if m.between.any() else [False]
    ahead = max(low, 0)
    # Between hosts nobody copies memory, unless that is what was measured.
    possible = [way for way in known.moves if way != PULL or not m.between.all()] or list(known.moves)
    found: dict[Model, None] = {}
    pairs = set(zip(m.size.tolist(), m.between.tolist()))
    for size in sizes:
        for limit in limits:
            for way in possible:
                begins = way != PULL if known.begins is None else known.begins
                some = [Model(way, size, limit, wire, ahead, rules=known.rules, begins=begins) for wire in wires]
                found |= dict.fromkeys(simplest(model, pairs) for model in some)
    return list(found)


def simplest(model: Model, pairs: set[tuple[int, bool]]) -> Model:
    """Models that treat all messages of a run alike are one."""
    ways = [(pair, model.way(*pair)) for pair in pairs]
    if model.together < 0 and all(way.copied for _, way in ways):
        return replace(model, moves=ALWAYS, begins=True)
    if all(way == replace(model, moves=-1).way(*pair) for pair, way in ways):
        model = replace(model, moves=ALWAYS)
    if all(way == replace(model, eager=-1).way(*pair) for pair, way in ways):
        model = replace(model, eager=-1)
    return model


def outstanding(waiting: Waiting) -> np.ndarray:
    """Of each message: bytes that were sent before it to the same receiver and had no receive yet."""
    m = waiting.messages
    found = np.zeros(len(m.index), np.int64)
    order = np.lexsort((m.begun, m.target, m.source))
    pair = m.source[order] * (1 + int(m.target.max(initial=0))) + m.target[order]
    edges = np.append(np.flatnonzero(np.diff(pair, prepend=-1)), len(pair))
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist()):
        some = order[low:high]
        total = np.concatenate(([0], np.cumsum(m.size[some])))
        asked = np.maximum.accumulate(m.asked[some])
        received = np.minimum(np.searchsorted(asked, m.begun[some], "right"), np.arange(len(some)))
        found[some] = total[np.arange(len(some))] - total[received]
    return found


def fit(program: Program, some: list[Model], until: float = math.inf) -> list[Fit]:
    """Each model against the run, the closest first: its duration, and each rank's time in calls. Of a model with
    several lengths of transfers, those that are not much worse than the closest one. TooLong where this process has
    worked until then (`time.process_time`), and some are left."""
    world, found = program.world, []
    for model in some:
        if any(world.unsure):
            usual = replace(model, usual=1 + USUAL[1] * world.longer)
            tried = [scaled(program, replace(usual, latency=ns), until) for ns in LATENCIES]
        else:
            shares = USUAL if world.longer > 0 else USUAL[:1]
            tried = [replace(model, usual=1 + share * world.longer) for share in shares]
            tried += [stretched(program, tried[-1], until)] if world.measured else []
        fits = sorted((judged(program, one, until) for one in tried), key=lambda f: f.miss)
        several = any(world.unsure) or world.measured
        found += [f for f in fits if several and f.miss <= fits[0].miss + NEAR] or fits[:1]
    return sorted(found, key=lambda f: f.miss)


def in_time(program: Program, model: Model, until: float) -> Outcome | None:
    if time.process_time() > until:
        raise TooLong
    return replayed(program, model)


def judged(program: Program, model: Model, until: float = math.inf) -> Fit:
    world = program.world
    outcome = in_time(program, model, until)
    if outcome is None:
        return Fit(model, float("inf"), None)
    apart = [abs(a - b) for a, b in zip(outcome.in_calls, world.in_calls)]
    return Fit(model, max([abs(outcome.duration - world.duration), *apart]) / max(1, world.duration), outcome)


def scaled(program: Program, model: Model, until: float = math.inf) -> Model:
    """With the transfers' length at which the replay takes as long as the run."""
    return searched(program, model, "scale", 0.0, 1.0, until)  # what is known is no less than the truth


def stretched(program: Program, model: Model, until: float = math.inf) -> Model:
    """The same where what is known is no more than the truth."""
    return searched(program, model, "usual", model.usual, LONGER, until)


def searched(program: Program, model: Model, name: str, low: float, high: float, until: float) -> Model:
    for _ in range(SEARCH):
        middle = (low + high) / 2
        model = replace(model, **{name: middle})
        outcome = in_time(program, model, until)
        if outcome is None:
            break
        if outcome.duration < program.world.duration:
            low = middle
        else:
            high = middle
    return model
