"""What to change in a program, and what that gives at least: for a terminal; as JSON: advise_json.

Each change of `edits` that `changes` finds is replayed under each model of the transport whose replay of the unchanged run
fits it (within 3 % of its time, and with that time in the same calls: `models`). Its gain is the time of the unchanged
replay less that of the changed one; promised is the lower end over all these models, and only where each gain is 1 % of
the run or more, and no less than what that model's replay of the unchanged run misses. Runs that compute a little longer
here and shorter there (`shaken`) must gain 1 %, too, and the least of all is promised. The best change is carried out,
then the others are judged again, so that gains of several may be added up. Where no model fits, nothing is promised, and
it is told by how much the best one misses. Where ranks had no cores, a change is told without a promise (`crowding`).
What was dropped is kept, with the reason (`dropped`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from headway.record import changes, classes, crowding, dropped, edits, packing
from headway.record.dropped import Dropped, Drops
from headway.record.edits import Change
from headway.record.facts import FAR, NEAR, Facts
from headway.record.model import Run
from headway.record.models import Fit, Known, TooLong, fit, models
from headway.record.program import Program, program
from headway.record.replay import Outcome, replay
from headway.record.transport import Model
from headway.record.timeline import Timeline
from headway.record.waiting import Waiting, classify
from headway.record.words import clean, count_text, time_text

WORTH = 0.01  # of the run's time
MOST = 5  # pieces of advice
SECONDS = 20.0  # of this processor, after which no further change is tried
FITTING = 60.0  # of this processor, in which all models must have replayed the run
MOST_CALLS = 2_000_000  # of a run that is replayed: each is a row of Python's objects, some 500 bytes
EVEN = 0.02  # of a gain, within which two are alike, and the simpler one is taken
# Of a gain, what counts beside others: tests depend on their moment, and clutter a program; a receive that is posted
# before computation often needs a second buffer.
COUNTS = {edits.TEST: 0.75, edits.EARLY: 0.6}
SHAKES, SHAKEN = 4, 0.02  # other runs that a promise must hold in; by what share their computation differs


@dataclass
class Advice:
    change: Change
    least: int  # ns
    most: int
    touched: float | None = None  # of unpack: ns from the receive's return to the first touch, where that is known
    model: Model | None = None  # that gives `least`
    doubt: str = ""  # why nothing of it is promised, `least` is 0 then


@dataclass
class Advices:
    line: Timeline
    recorded: Program | None  # None: the run is too large to be replayed
    fits: list[Fit]  # of all models
    advice: list[Advice] = field(default_factory=list)
    told: list[Advice] = field(default_factory=list)
    why: str = ""  # nothing is promised
    facts: Facts = field(default_factory=Facts)
    no_core: float = 0.0  # share of all ranks' time in calls that another program had their cores
    dropped: list[Dropped] = field(default_factory=list)
    cut: bool = False  # not all changes were tried
    aside: str = ""  # what was measured and does not count here
    large: str = ""  # why the run could not be replayed

    def __post_init__(self) -> None:
        if self.large:
            self.why = no_promise(self)

    @property
    def program(self) -> Program:
        """As it was recorded: of a run that could be replayed, and so of all that has advice."""
        if self.recorded is None:
            raise ValueError("a run that was not replayed has no program")
        return self.recorded

    @property
    def missing(self) -> str:
        """Where several ways in which data may move fit the run, what tells them apart was not asked."""
        ways = {(f.model.moves, f.model.eager) for f in self.fits if f.fits}
        if self.facts.seen or self.aside or len(ways) < 2:
            return ""
        folder = clean(self.line.run.folder)
        return (
            "The run does not show how its MPI moves messages, so tests and earlier receives may be missing here. "
            f"headway advise {folder} -- mpirun -n 2 asks that MPI (its own launcher, some seconds)."
        )

    @property
    def duration(self) -> int:
        return self.recorded.world.duration if self.recorded is not None else self.line.run.duration

    @property
    def miss(self) -> float:
        """Of the closest model."""
        return self.fits[0].miss if self.fits else float("inf")


@dataclass
class State:
    """A program with some changes, and its replays under the models that fit."""

    program: Program
    outcomes: dict[Model, Outcome]


def advise(waiting: Waiting, known: Known = Known(), facts: Facts = Facts()) -> Advices:
    calls = len(waiting.line.chain)
    if calls > MOST_CALLS:
        return Advices(waiting.line, None, [], facts=facts, large=f"{count_text(calls)} calls are more than are replayed")
    unchanged = program(waiting)
    found = Advices(waiting.line, unchanged, [], facts=facts)
    packed = packing.packing(unchanged, WORTH * found.duration)
    found.told += [Advice(one.change, 0, one.most, one.touched) for one in packed]
    found.no_core = float(waiting.total()[classes.NO_CORE]) / max(1, found.duration * unchanged.world.ranks)
    try:
        found.fits = fit(unchanged, models(waiting, known), time.process_time() + FITTING)
    except TooLong:
        found.large = f"not all models of the transport could replay its {count_text(calls)} calls in {FITTING:.0f} s"
    fits = [f for f in found.fits if f.fits]
    if not fits:
        found.why = no_promise(found)
        if (unequal := changes.balance(unchanged)) is not None:
            work = edits.computing(unchanged)
            most = int(max(work) - sum(work) / len(work))  # it does not take a replay to see that
            found.told += [Advice(unequal, 0, most)] * (most >= WORTH * found.duration)
        return found
    state = State(unchanged, {f.model: f.outcome for f in fits if f.outcome is not None})
    least, until = WORTH * found.duration, time.process_time() + SECONDS
    refused: set[Change] = set()
    start, drops = state, Drops()
    while len(found.advice) < MOST:
        best = best_of(state, fits, least, until, refused, drops)
        found.cut |= time.process_time() > until
        if best is None:
            break
        careful = shaken(best[0], unchanged, [one.change for one in found.advice], fits, time.process_time() + SECONDS / 4)
        if careful is None:
            found.cut = True
            break
        if careful.least < least:
            drops.add(careful.change, dropped.SHAKEN, careful.least, careful.model, careful.most)
            refused.add(careful.change)
            continue
        found.advice.append(careful)
        state = best[1]
        refused.clear()  # behind that one it may be worth more
    found.dropped = drops.without(one.change for one in found.advice)
    if not found.advice:
        most_of(found.dropped, start, fits, time.process_time() + SECONDS / 4)
    found.advice = [doubted(found, one) for one in most_first(found.advice, start, fits, least)]
    some = [c for c in possible(state, least) if c.kind == edits.COLLECTIVE]
    if (unequal := changes.balance(state.program)) is not None:
        some.append(unequal)
    for change in some:
        judged = judge(state, change, fits)
        if judged is not None and judged[0].most >= least:
            found.told.append(judged[0])
    found.told.sort(key=lambda one: -one.most)
    return found


def doubted(found: Advices, one: Advice) -> Advice:
    """Right all the same, but without a promise, where the machine may take what it gains."""
    why = crowding.doubt(found.line.run, found.no_core, one.least / max(1, found.duration))
    return replace(one, least=0, doubt=why) if why else one


def most_first(chosen: list[Advice], start: State, fits: list[Fit], least: int) -> list[Advice]:
    """The same changes, most gain first. They were chosen one behind the other, what is simple first where two gain about as
    much, and what one gains depends on those before it: so each is judged again behind those that now are. Where some
    of it is not worth telling in that order, the old one stays."""
    order = sorted(chosen, key=lambda one: -one.least)
    if order == chosen:
        return chosen
    state, again = start, []
    for one in order:
        judged = judge(state, one.change, fits, least)
        if judged is None:
            return chosen
        until, before = time.process_time() + SECONDS / 4, [earlier.change for earlier in again]
        careful = shaken(judged[0], start.program, before, fits, until)
        if careful is None or careful.least < least or (again and careful.least > again[-1].least):
            return chosen
        again.append(careful)
        state = judged[1]
    return again


def by_facts(run: Run, facts: Facts) -> tuple[Waiting, Advices]:
    """With what was measured of the MPI, as far as it explains the run: where it does not, without what may be otherwise
    in the program, and then without any of it. What was measured is not what was recorded; the run decides."""
    first: tuple[Waiting, Advices] | None = None
    waits: Waiting | None = None
    lines, less = facts.lines, facts.without_long_copies()
    for some in [facts, *[less] * (less != facts), *[Facts()] * bool(facts.seen)]:
        if waits is None or some.lines != lines:
            waits, lines = classify(run, some.lines), some.lines
        given = advise(waits, Known.of(some), some)
        if not given.why or given.large:
            break
        first = first or (waits, given)
    if first is None or given.why:
        return first or (waits, given)
    best = first[1].fits[0] if first[1].fits else None
    closest = f"the closest model {best.text}" if best and best.outcome is not None else "under every model its replay hangs"
    what = "that long messages are copied" if some.seen else "all of it"
    given.aside = f"What was measured of this MPI does not explain this run: {closest}. So {what} is left out"
    given.facts = facts  # they are told, too
    return waits, given


def possible(state: State, least: float) -> list[Change]:
    return changes.candidates(state.program, list(state.outcomes.values()), least)


def shaken(one: Advice, unchanged: Program, before: list[Change], fits: list[Fit], until: float) -> Advice | None:
    """With no more than it gives where the same run computes a little longer here and shorter there, as the next one
    will: ranks that wait for one another in turn may be out of step once, and never again. First under the model that
    gives least, then, as long as there is time, under the others; None where there was not even time for one run."""
    least, tried = one.least, False
    for fitting in sorted(fits, key=lambda fitting: fitting.model != one.model):
        for seed in range(SHAKES):
            if time.process_time() > until:
                return replace(one, least=least) if tried else None
            gain = gain_shaken(one, unchanged, before, fitting.model, seed)
            tried |= gain is not None
            least = min(least, gain if gain is not None else least)
    return replace(one, least=least)


def gain_shaken(one: Advice, unchanged: Program, before: list[Change], model: Model, seed: int) -> int | None:
    """ns; 0 where the change makes that run hang, None where it hangs without."""
    random, base = np.random.default_rng(seed), unchanged.copy()
    base.gap = np.rint(np.array(base.gap) * random.normal(1, SHAKEN, len(base.gap)).clip(0)).astype(np.int64).tolist()
    old = base
    for change in before:
        old = change.apply(old)
    start = replay(base, model)
    was = start and (replay(old, model, start) if before else start)
    if not start or not was:
        return None
    now = replay(one.change.apply(old), model, start)
    return was.duration - now.duration if now else 0


def most_of(some: list[Dropped], start: State, fits: list[Fit], until: float) -> None:
    """What they would give at most: they were dropped under the first model under which they give too little."""
    for one in some:
        if time.process_time() > until:
            return
        if one.most is None and (judged := judge(start, one.change, fits)) is not None:
            one.most = judged[0].most


def best_of(
    state: State, fits: list[Fit], least: float, until: float, refused: set[Change], drops: Drops
) -> tuple[Advice, State] | None:
    some: list[tuple[Advice, State]] = []
    for change in possible(state, least):
        if change in refused:
            continue
        if time.process_time() > until:
            break
        if change.kind in changes.PROMISED and (judged := judge(state, change, fits, least, drops)) is not None:
            some.append(judged)
    most = max((counted(advice) for advice, _ in some), default=0.0)
    alike = [one for one in some if counted(one[0]) >= (1 - EVEN) * most]
    return min(alike, key=lambda one: (edits.KINDS.index(one[0].change.kind), one[0].change.count), default=None)


def counted(one: Advice) -> float:
    return one.least * COUNTS.get(one.change.kind, 1.0)


def judge(
    state: State, change: Change, fits: list[Fit], least: float | None = None, drops: Drops | None = None
) -> tuple[Advice, State] | None:
    """None where it hangs, or gives less under some model than `least`, or than by how much that model's replay of the
    unchanged run misses its time. That model is asked first the next time, for most changes are worth nothing under
    the same one."""
    edited, duration = change.apply(state.program), state.program.world.duration
    outcomes, gains = {}, []
    drops = drops if drops is not None else Drops()
    for at, one in enumerate(fits):
        outcome = replay(edited, one.model, one.outcome)
        if outcome is None or one.outcome is None:
            drops.add(change, dropped.HANGS, None, one.model)
            return None
        gain = state.outcomes[one.model].duration - outcome.duration
        if least is not None and gain < max(least, abs(one.outcome.duration - duration)):
            drops.add(change, dropped.LESS if gain < least else dropped.MISSED, gain, one.model)
            fits.insert(0, fits.pop(at))
            return None
        outcomes[one.model] = outcome
        gains.append(gain)
    binding = min(zip(gains, range(len(gains))))[1] if gains else 0
    return Advice(change, min(gains), max(gains), model=fits[binding].model), State(edited, outcomes)


def no_promise(found: Advices) -> str:
    if found.large:
        return (
            f"No advice: the run is large: {found.large}. Record a part of it: headway record --from 10 --to 20, or --ranks."
        )
    known = [f for f in found.fits if f.outcome is not None]
    if not known:
        return "No advice: under every model of the transport the replay of this run hangs."
    best = known[0]
    agrees = " that agrees with what was measured of this MPI" if found.facts.seen else ""
    return (
        f"No advice: no model of the transport{agrees} explains this run. The closest {best.text}: {best.model.text}."
        f"{others(found)}"
    )


def others(found: Advices) -> str:
    """What nobody can replay, because it would be elsewhere the next time."""
    if found.no_core < WORTH:
        return ""
    return (
        f" For {100 * found.no_core:.0f} % of all rank time somebody else had a rank's core: run it with fewer ranks than "
        "cores, and nothing beside it, then more can be said."
    )


# ---- words ---------------------------------------------------------------------------------------
def sentence(found: Advices, one: Advice) -> str:
    world, change = found.program.world, one.change
    call = world.name(change.key)
    at, there = clean(world.site(change.key).text), clean(world.site(change.other).text)
    if change.kind in changes.PROMISED:
        if one.doubt:
            return f"{what_to_do(found, change)}: up to {amount(found, one.most)}; not promised: {one.doubt}"
        upper = f", up to {amount(found, one.most)}" if one.most >= 1.1 * one.least else ""
        return f"{what_to_do(found, change)}: at least {amount(found, one.least)}{upper}"
    if change.kind == edits.COLLECTIVE:
        begun = f"MPI_I{call.removeprefix('MPI_').lower()}"
        return (
            f"{call} at {at} as {begun}: up to {amount(found, one.most)}, if its result is not needed before the end "
            "of the computation behind it; not promised"
        )
    if change.kind in (edits.PACK, edits.UNPACK):
        return packing_sentence(found, one)
    where = f", most of it between {there} and {at}" if change.other >= 0 else ""
    return (
        f"Rank {change.rank} works {100 * change.more:.0f} % more than the mean{where}. No other call helps; equal "
        f"shares: up to {amount(found, one.most)}"
    )


def what_to_do(found: Advices, change: Change) -> str:
    """Of a change that can be promised."""
    world = found.program.world
    call, other = world.name(change.key), world.name(change.other)
    at, there = clean(world.site(change.key).text), clean(world.site(change.other).text)
    begun = f"MPI_I{call.removeprefix('MPI_').lower()}"
    if change.kind == edits.PUT_OFF and is_wait(found, change.key):
        return f"Take {call} out of {at}, into the {other} of {there}"
    if change.kind == edits.PUT_OFF:
        return f"Make {call} at {at} an {begun}, and wait for it in the {other} of {there}"
    if change.kind == edits.PAIR:
        both = f"{call} at {at} and {other} at {there}"
        return f"Make {both} non-blocking, MPI_Irecv first, with one MPI_Waitall at {there}"
    if change.kind == edits.EARLY:
        post = call if is_irecv(found, change.key) else "an MPI_Irecv"
        return f"Post {post} for {at} earlier, right behind the {other} of {there}"
    return (
        f"Call MPI_Testall {change.count} times, evenly, in the computation between {there} and {at}, for the "
        "requests under way there"
    )


def unsure(found: Advices) -> str:
    """Where nothing is promised: what would give most, if it were not for what else explains the run."""
    one = dropped.unsure(found.dropped, found.duration) if not found.advice else None
    if one is None or one.most is None or one.gain is None or one.model is None:
        return ""
    gain = amount(found, max(0, one.gain))
    but = {
        dropped.LESS: f"{gain} if {one.model.text}: this run does not tell",
        dropped.MISSED: f"{gain} if {one.model.text}, by whose replay this run is missed by more",
        dropped.SHAKEN: f"{gain} if the ranks compute a little otherwise",
    }
    return f"Not promised: {what_to_do(found, one.change)}: up to {amount(found, one.most)}, but {but[one.why]}."


def packing_sentence(found: Advices, one: Advice) -> str:
    world, change = found.program.world, one.change
    call, at = world.name(change.key), clean(world.site(change.key).text)
    pack = change.kind == edits.PACK
    where, what = ("before", "puts together what is sent") if pack else ("behind", "takes apart what came")
    do = "Write it there in the first place, or send" if pack else "Receive it where it belongs"
    why = f"grows with its bytes ({change.more:.2g} ns each)"
    if one.touched is not None:
        why = f"reads its buffer whole and at once ({time_text(one.touched)} behind the return, {change.more:.2g} ns a byte)"
    return (
        f"What is computed right {where} {call} at {at} {why}, so it probably {what}. {do} by a derived datatype: up to "
        f"{amount(found, one.most)}; not promised"
    )


def is_wait(found: Advices, key: int) -> bool:
    return family(found, key) in ("wait", "test")


def is_irecv(found: Advices, key: int) -> bool:
    return family(found, key) == "irecv"


def family(found: Advices, key: int) -> str:
    name = found.program.world.name(key)
    for rank in found.program.world.line.run.ranks:
        if name in rank.functions:
            return rank.families[rank.functions.index(name)]
    return ""


def amount(found: Advices, ns: int) -> str:
    share = 100 * ns / max(1, found.duration)
    return f"{time_text(ns)} ({share:.0f} %)" if share >= 2 else f"{time_text(ns)} ({share:.1f} %)"


def words(found: Advices) -> RenderableType:
    if found.why:
        return Group(Text(found.why), *(Text(line) for line in [*told(found), *facts_text(found.facts)]))
    lines = []
    for number, one in enumerate(found.advice, 1):
        lines += [f"{number}. {sentence(found, one)}", f"   Look first: {edits.CHECK[one.change.kind]}."]
    lines += told(found)
    lines += [unsure(found)] * bool(unsure(found))
    if found.cut:
        lines.append(f"The run is large: after {SECONDS:.0f} s of thinking not all changes were tried. Record a part of it.")
    else:
        lines.append("Nothing else is worth 1 %." if lines else "Nothing is worth 1 %.")
    lines.append(f"Replayed as it was, this run misses its time by {100 * found.miss:.1f} % (3 % are allowed).")
    lines += facts_text(found.facts) + [f"{found.aside}."] * bool(found.aside) + [found.missing] * bool(found.missing)
    return Group(*(Text(line) for line in lines))


def told(found: Advices) -> list[str]:
    return [sentence(found, one) for one in found.told]


def facts_text(facts: Facts) -> list[str]:
    where = {NEAR: "on one host", FAR: "between hosts"}
    return [
        f"Measured of this MPI ({clean(facts.source)}), {where[place]}: {'; '.join(one.text for one in facts.seen[place])}."
        for place in where
        if facts.seen.get(place)
    ]
