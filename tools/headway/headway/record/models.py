"""Which models of the transport explain a run.

Those that the run does not exclude at once (what was copied, and what was not, bounds the eager size) replay it as it
was: a model fits that misses its time, and each rank's time in calls, by 3 % of the run at most, and has that time in the
same calls: with long enough transfers any model takes as long as the run, though its sends never wait and the run's do.
How much longer than the shortest transfers usually take is tried; where the run does not tell what a transfer needs,
each model takes the length with which its replay comes closest to the run's time. What was measured of the MPI (`facts`)
decides where the run leaves it open: a model that contradicts it is not tried. A transfer of the run may take longer than
one that was measured, as memory that is not in a cache does, so longer ones are tried, too.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from headway.record import crowding
from headway.record.facts import Facts
from headway.record.program import COPY, FAST, Program
from headway.record.replay import Outcome, replay as replayed
from headway.record.transport import ALWAYS, ANY, BEGUN, MATCHING, PULL, STREAM, Model, Rule
from headway.record.waiting import A_CALL, Waiting

FITS = 0.03  # of the run's time, by which a replay of the unchanged run may miss
# Of the run's time, by which a rank's time at one call site may differ: at most, and more than under the model that has it
# best. Calls that follow one another share a delay between them as chance has it.
ELSEWHERE, MORE = 0.1, 0.03
SEARCH = 9  # replays in which a length is looked for
LATENCIES = 0, 1_000, 3_000, 10_000, 30_000, 100_000  # ns, that are tried then
NEAR = 0.005  # of the run's time, by which another latency may be worse
USUAL = 0.0, 0.33, 0.67, 1.0  # of `World.longer`
# Times what was measured that transfers of the run may take: bytes that the sender has just written come from a far core's
# cache at a sixth of the rate of those that lie in the receiver's.
LONGER = 8.0
ROOMS = tuple(1 << at for at in range(16, 25, 2))  # bytes between two ranks, that are tried first
SMALL_ROOM, ROOM = 16, 4.0  # a part of the largest message, and times what is under way at once, between which they matter
CLOSEST = 3  # rooms that are looked at further


class TooLong(Exception):
    """Not all models could be tried in the time that there is: what is not known of one of them is not promised."""


@dataclass
class Fit:
    """A model, and by how much its replay of the unchanged run misses (shares of the run's time)."""

    model: Model
    miss: float
    outcome: Outcome | None
    elsewhere: float = 0.0  # that some rank spends less, or more, at one call site
    least: float = 0.0  # of all models that miss the run's time by no more than may be

    @property
    def lasts(self) -> bool:
        """As long as the run does."""
        return self.outcome is not None and self.miss <= FITS

    @property
    def fits(self) -> bool:
        return self.lasts and self.elsewhere <= min(ELSEWHERE, self.least + MORE)

    @property
    def distance(self) -> float:
        """Of how close it comes: 1 is what is allowed."""
        return max(self.miss / FITS, self.elsewhere / ELSEWHERE)

    @property
    def text(self) -> str:
        """How it misses the run, as what follows its name."""
        if self.outcome is None:
            return "its replay hangs"
        if not self.lasts or self.fits:
            return f"misses by {100 * self.miss:.1f} % of its time, {100 * FITS:.0f} % are allowed"
        best = f", {100 * self.least:.1f} % under another model" if self.elsewhere <= ELSEWHERE else ""
        return f"has {100 * self.elsewhere:.1f} % of its time in other calls, {100 * ELSEWHERE:.0f} % are allowed{best}"


@dataclass(frozen=True)
class Known:
    """What else is known of the transport than the run tells: of a run that was made to learn it, say."""

    moves: tuple[int, ...] = (MATCHING, ANY, BEGUN, ALWAYS, PULL, STREAM)  # which are possible
    eager: int | None = None  # bytes up to which a message is copied
    rules: tuple[Rule, ...] = ()  # of sizes that were measured
    begins: bool | None = None  # calls that only begin something move data, too
    together: int = -1  # bytes that are copied before any is received, at least
    reads: float | None = None  # of a transfer, what it takes to get out of a socket what lies there

    @classmethod
    def of(cls, facts: Facts) -> Known:
        moves = facts.moves or tuple(way for way in cls.moves if way != STREAM or facts.streams)
        return cls(moves, None, facts.rules, facts.begins, facts.together, facts.reads)


def models(waiting: Waiting, known: Known = Known()) -> list[Model]:
    """Those that are not excluded at once."""
    some = possible(waiting, known)
    return [replace(model, takes_cores=True) for model in some] if crowding.threads_share(waiting.line.run) else some


def possible(waiting: Waiting, known: Known) -> list[Model]:
    """The same, as if a thread of the MPI had a core of its own."""
    m, line = waiting.messages, waiting.line
    if not len(m.index):
        return [Model(ALWAYS, 0)]
    copied = (m.gone >= 0) & (m.gone < m.asked) & ~let_go(waiting, known)
    left = np.maximum(m.left, 0)
    waited = (m.left >= 0) & (m.asked > m.begun) & (m.gone >= m.asked) & (line.begin[left] < m.asked)
    waited &= line.end[left] - line.begin[left] > A_CALL
    low = int(m.size[copied].max(initial=-1))
    high = int(m.size[waited & (m.size > low)].min(initial=int(m.size.max()) + 1)) - 1
    sizes = [low]
    if ((m.size > low) & (m.size <= high)).any():
        sizes.append(high)
    sizes += [size for size in [held_up(waiting, low)] if size < low and size not in sizes]
    if known.eager is not None:
        sizes = [known.eager]
    before = outstanding(waiting)
    most = max(low, known.together, int((before + m.size)[copied].max(initial=-1)))
    limits = [-1]
    if most >= 0 and (before + m.size > most)[m.size <= max(sizes)].any():
        limits.append(most)
    wires = [False, True] if m.between.any() else [False]
    # Between hosts nobody copies memory, unless that is what was measured.
    ways = [way for way in known.moves if way != STREAM]
    possible = [way for way in ways if way != PULL or not m.between.all()] or ways
    found: dict[Model, None] = {}
    pairs = set(zip(m.size.tolist(), m.between.tolist()))
    for size in sizes:
        ahead = max(0, min(size, low))
        for limit in limits:
            for way in possible:
                begins = way != PULL if known.begins is None else known.begins
                some = [Model(way, size, limit, wire, ahead, rules=known.rules, begins=begins) for wire in wires]
                found |= dict.fromkeys(simplest(model, pairs) for model in some)
    if m.between.any() and any(rule.acked and rule.between for rule in known.rules):
        found |= {replace(model, behind=True): None for model in found}
    if STREAM in known.moves:
        found |= dict.fromkeys(streams(waiting, known, wires))
    return list(found)


def let_go(waiting: Waiting, known: Known) -> np.ndarray:
    """Messages that this MPI is not known to copy, though it lets go whoever waits for their send alone: such a send that was
    over before its receive tells nothing of what is copied, and of what fits between two ranks."""
    m = waiting.messages
    found = np.zeros(len(m.index), bool)
    for rule in reversed(known.rules):
        some = (m.between == rule.between) & (rule.low <= m.size) & (m.size <= rule.high)
        found[some] = rule.lets_go is not None and rule.copied is not True
    return found


def held_up(waiting: Waiting, low: int) -> int:
    """Bytes up to which no send was held up, at most `low`, if most of the longer ones were, by themselves, for longer than a
    transfer and a copy take. That some were let go before their receive does not make them all copied."""
    m, line = waiting.messages, waiting.line
    left = np.maximum(m.left, 0)
    need = waiting.transfer.time(m.size, m.between) + FAST + (COPY * m.size).astype(np.int64)
    held = (m.left >= 0) & ~np.isin(m.left, m.came) & (m.size <= low)
    held &= m.gone - np.maximum(line.begin[left], m.begun) > need
    size = int(m.size[held].min(initial=low + 1)) - 1
    longer = (m.size > size) & (m.size <= low)
    return size if 2 * np.count_nonzero(held) > np.count_nonzero(longer) else low


def streams(waiting: Waiting, known: Known, wires: list[bool]) -> list[Model]:
    """With as much room between two ranks as may matter in this run: from a part of the largest message to all bytes that
    are under way at once. Between hosts each half counts by itself."""
    m = waiting.messages
    largest, most = int(m.size.max()), int((outstanding(waiting, m.arrived) + m.size).max())
    if largest <= ROOMS[0]:
        return []
    rooms = [room for room in ROOMS if largest < SMALL_ROOM * room and room < ROOM * most] or [ROOMS[-1]]
    between = bool(m.between.any())
    halves = [(one, other) for one in rooms for other in rooms if between or one == other]
    begins = True if known.begins is None else known.begins
    base = Model(STREAM, -1, rules=known.rules, begins=begins)
    if known.reads is not None:
        base = replace(base, reads=known.reads)
    return [replace(base, room=one // 2, window=other // 2, wires=wire) for one, other in halves for wire in wires]


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


def outstanding(waiting: Waiting, until: np.ndarray | None = None) -> np.ndarray:
    """Of each message: bytes that were sent before it to the same receiver and had no receive yet; or of which it was
    earlier than `until`."""
    m = waiting.messages
    until = m.asked if until is None else until
    found = np.zeros(len(m.index), np.int64)
    order = np.lexsort((m.begun, m.target, m.source))
    pair = m.source[order] * (1 + int(m.target.max(initial=0))) + m.target[order]
    edges = np.append(np.flatnonzero(np.diff(pair, prepend=-1)), len(pair))
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist()):
        some = order[low:high]
        total = np.concatenate(([0], np.cumsum(m.size[some])))
        asked = np.maximum.accumulate(until[some])
        received = np.minimum(np.searchsorted(asked, m.begun[some], "right"), np.arange(len(some)))
        found[some] = total[np.arange(len(some))] - total[received]
    return found


def fit(program: Program, some: list[Model], until: float = math.inf) -> list[Fit]:
    """Each model against the run, the closest first: its duration, and each rank's time in calls, by site. Of a model with
    several lengths of transfers, those that are not much worse than the closest one. TooLong where this process has
    worked until then (`time.process_time`), and some are left."""
    world, found = program.world, []
    some = [one for one in some if one.moves != STREAM] + closest(program, [one for one in some if one.moves == STREAM], until)
    for model in some:
        if any(world.unsure):
            usual = replace(model, usual=1 + USUAL[1] * world.longer)
            tried = [scaled(program, replace(usual, latency=ns), until) for ns in LATENCIES]
        else:
            shares = USUAL if world.longer > 0 else USUAL[:1]
            tried = [replace(model, usual=1 + share * world.longer) for share in shares]
            longer = takes_longer(program, model)
            tried += [stretched(program, tried[-1], until)] if longer else []
        fits = sorted((judged(program, one, until) for one in tried), key=lambda f: f.miss)
        several = any(world.unsure) or takes_longer(program, model)
        found += [f for f in fits if several and f.miss <= fits[0].miss + NEAR] or fits[:1]
    least = min((f.elsewhere for f in found if f.lasts), default=0.0)
    for f in found:
        f.least = least
    return sorted(found, key=lambda f: (not f.fits, f.distance))


def takes_longer(program: Program, model: Model) -> bool:
    """Than is known: it was measured outside of the run, or learned from messages that both sides copied."""
    return program.world.measured or any(rule.by_one > 1 for rule in model.rules)


def closest(program: Program, some: list[Model], until: float) -> list[Model]:
    """Of models that differ in the room between two ranks, those that come closest to the run; if none explains it, also what
    lies beside the closest one: one message may fit into a room where two do not, and the rooms that are tried first lie
    further apart. A quarter of the time that is left is spent on that, at most."""
    if not some:
        return []
    now = time.process_time()
    found: dict[Model, float] = {}
    try:
        for model in some:
            found[model] = distance(program, model, until if len(some) > CLOSEST else now + (until - now) / 4)
        best = min(some, key=found.__getitem__)
        near = beside(best) if found[best] > 1 else []
        more = {model: distance(program, model, now + (until - now) / 4) for model in near if model not in found}
    except TooLong:
        if len(some) > CLOSEST and len(found) < len(some):
            raise
        more = {}
    kept = sorted(some, key=found.__getitem__)[:CLOSEST] if len(some) > CLOSEST else some
    return kept + [model for model in more if more[model] < found[best]]


def beside(model: Model) -> list[Model]:
    """With rooms between those that are tried first."""
    if model.room == model.window:
        return [replace(model, room=room, window=room) for room in (model.room // 2, 2 * model.room)]
    rooms = [replace(model, room=room) for room in (model.room // 2, 2 * model.room)]
    return rooms + [replace(model, window=window) for window in (model.window // 2, 2 * model.window)]


def distance(program: Program, model: Model, until: float) -> float:
    """Of the closest length of its transfers."""
    world = program.world
    if any(world.unsure):
        return judged(program, scaled(program, replace(model, usual=1 + USUAL[1] * world.longer), until), until).distance
    found = judged(program, model, until).distance
    if takes_longer(program, model):
        found = min(found, judged(program, stretched(program, model, until), until).distance)
    return found


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
    miss = max([abs(outcome.duration - world.duration), *apart]) / max(1, world.duration)
    return Fit(model, miss, outcome, elsewhere(program, outcome) / max(1, world.duration))


def elsewhere(program: Program, outcome: Outcome) -> int:
    """ns by which the time of a rank in the calls of one site differs most from the run's."""
    found = dict(program.world.at_sites)
    for rank, lane in zip(program.world.rank_of, program.lanes):
        for call in lane:
            at = rank, program.key[call]
            found[at] = found.get(at, 0) - outcome.took[call]
    return max((abs(ns) for ns in found.values()), default=0)


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
