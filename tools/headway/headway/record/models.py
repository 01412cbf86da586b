"""Which models of the transport explain a run.

Those that the run does not exclude at once (what was copied, and what was not, bounds the eager size) replay it as it
was: a model fits that misses its time, and each rank's time in calls, by 3 % of the run at most. How much longer than
the shortest transfers usually take is tried; where the run does not tell what a transfer needs, each model takes the
length with which its replay comes closest to the run's time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headway.record.program import Program
from headway.record.replay import ALWAYS, ANY, BEGUN, MATCHING, Model, Outcome, replay as replayed
from headway.record.waiting import A_CALL, Waiting

FITS = 0.03  # of the run's time, by which a replay of the unchanged run may miss
SEARCH = 8  # replays in which a length is looked for
LATENCIES = 0, 1_000, 3_000, 10_000, 30_000, 100_000  # ns, that are tried then
NEAR = 0.005  # of the run's time, by which another latency may be worse
USUAL = 0.0, 0.33, 0.67  # of `World.longer`


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

    moves: tuple[int, ...] = (MATCHING, ANY, BEGUN, ALWAYS)  # which are possible
    eager: int | None = None  # bytes up to which a message is copied


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
    most = max(low, int((before + m.size)[copied].max(initial=-1)))
    limits = [-1]
    if most >= 0 and (before + m.size > most)[m.size <= sizes[-1]].any():
        limits.append(most)
    wires = [False, True] if m.between.any() else [False]
    ahead = max(low, 0)
    found = []
    for size in sizes:
        for limit in limits:
            whole = limit < 0 and int(m.size.max()) <= size
            for way in (ALWAYS,) if whole else known.moves:
                found += [Model(way, size, limit, wire, ahead) for wire in wires]
    return found


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


def fit(program: Program, some: list[Model]) -> list[Fit]:
    """Each model against the run, the closest first: its duration, and each rank's time in calls. Of a model with
    several lengths of transfers, those that are not much worse than the closest one."""
    world, found = program.world, []
    for model in some:
        if any(world.unsure):
            usual = replace(model, usual=1 + USUAL[1] * world.longer)
            tried = [scaled(program, replace(usual, latency=ns)) for ns in LATENCIES]
        else:
            shares = USUAL if world.longer > 0 else USUAL[:1]
            tried = [replace(model, usual=1 + share * world.longer) for share in shares]
        fits = sorted((judged(program, one) for one in tried), key=lambda f: f.miss)
        found += [f for f in fits if any(world.unsure) and f.miss <= fits[0].miss + NEAR] or fits[:1]
    return sorted(found, key=lambda f: f.miss)


def judged(program: Program, model: Model) -> Fit:
    world = program.world
    outcome = replayed(program, model)
    if outcome is None:
        return Fit(model, float("inf"), None)
    apart = [abs(a - b) for a, b in zip(outcome.in_calls, world.in_calls)]
    return Fit(model, max([abs(outcome.duration - world.duration), *apart]) / max(1, world.duration), outcome)


def scaled(program: Program, model: Model) -> Model:
    """With the transfers' length at which the replay takes as long as the run."""
    low, high = 0.0, 1.0  # what is known is no less than the truth
    for _ in range(SEARCH):
        model = replace(model, scale=(low + high) / 2)
        outcome = replayed(program, model)
        if outcome is None:
            break
        if outcome.duration < program.world.duration:
            low = model.scale
        else:
            high = model.scale
    return model
