"""What differs between recorded runs before and after a change: the whole, and call site by call site, with intervals.

Of several runs a side the mean counts, and runs are drawn again (again.py); of one run, its parts (parts.py): that
tells how repeats of a call differ, not how runs do. Intervals hold in 95 of 100 comparisons: of the whole run each of
them; of the sites all together, so that a site is not called changed because there are many. A change smaller than
LEAST of the time of all ranks is no change worth a line.

JSON, format "headway-comparison", version 1. Times are ns, of all ranks, mean over a side's runs; a share is of 1; what
is not known, or infinite, is null. A reader may rely on: keys below are there; others may come without a new version.

  format, version   "headway-comparison", 1
  before, after     runs (folders), program, mpi, ranks
  notes             sentences that a reader should know
  total             by name (duration, time, blocked, each class of waiting; duration is of a run, not of all ranks):
    before, after   ns
    change          ns: value, low, high
    ratio           the same as a share of before
  hidden            null without messages, else before, after: each least, most (shares); least, most: change of each
                    (value, low, high)
  conditions        of --fail-if: text, fails, and change (value, low, high: a share or ns)
  sites             largest change of blocked first; each:
    state           "same", "changed", "new", "gone"
    call            MPI's name
    before, after   null where it is not there, else:
      file, line, function, module, offset
      count         calls
      time, blocked, classes (by name)
      hidden        null, else least, most, need (ns)
    change          time, blocked, and each class by name: value, low, high
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from headway.record import classes
from headway.record.again import FEW, LEVEL, Again, Change, Drawn, differences, ratios
from headway.record.conditions import Condition
from headway.record.parts import BLOCKED, COLUMN_OF, COLUMNS, FIRST_CLASS, LEAST, MOST, NEED, SPAN, TIME, Measured
from headway.record.same_sites import Spot, pair

FORMAT, VERSION = "headway-comparison", 1
WORTH = 0.001  # of the time of all ranks
MOST_NOTES = 10
SAME, CHANGED, NEW, GONE = "same", "changed", "new", "gone"


@dataclass
class Side:
    runs: list[Measured]
    spots: list[Spot]
    parts: list[np.ndarray]  # of each spot: rows whose sum is the side's
    whole: Drawn
    again: Again

    @property
    def several(self) -> bool:
        return len(self.runs) > 1

    @property
    def name(self) -> str:
        return ", ".join(run.folder for run in self.runs)

    def of(self, number: int | None) -> Drawn:
        """Of one site."""
        parts = np.zeros((2, COLUMNS)) if number is None else self.parts[number]
        return self.again.drawn(parts, once=False if self.several else None)


@dataclass
class Total:
    name: str
    before: float
    after: float
    change: Change
    ratio: Change


@dataclass
class Row:
    before: Spot | None
    after: Spot | None
    values: tuple[np.ndarray, np.ndarray]
    change: list[Change]  # by column
    state: str = SAME

    @property
    def spot(self) -> Spot:
        found = self.after or self.before
        assert found is not None
        return found


@dataclass
class Hidden:
    before: tuple[float, float]
    after: tuple[float, float]
    least: Change
    most: Change


@dataclass
class Comparison:
    before: Side
    after: Side
    totals: dict[str, Total]
    rows: list[Row]
    hidden: Hidden | None
    notes: list[str] = field(default_factory=list)

    def change(self, condition: Condition) -> Change:
        total = self.totals[condition.name]
        return total.ratio if condition.share else total.change

    def fails(self, condition: Condition) -> bool:
        change = self.change(condition)
        return condition.holds(change.low, change.high)


# ---- both sides ---------------------------------------------------------------------------------
def side_of(runs: Sequence[Measured], seed: int) -> Side:
    again = Again(seed)
    if len(runs) == 1:
        run = runs[0]
        return Side([run], run.spots, run.parts, _whole(run, again), again)
    spots: list[Spot] = list(runs[0].spots)
    which = [list(range(len(spots)))]
    for run in runs[1:]:
        found = pair(spots, run.spots)
        for number, spot in enumerate(run.spots):
            if found[number] < 0:
                found[number] = len(spots)
                spots.append(spot)
        which.append(found)
    every = np.zeros((len(spots), len(runs), COLUMNS))
    counts = np.zeros(len(spots))
    for number, (run, numbers) in enumerate(zip(runs, which)):
        for spot, at, parts in zip(run.spots, numbers, run.parts):
            every[at, number] += parts.sum(axis=0) / len(runs)
            counts[at] += spot.count / len(runs)
    whole = every.sum(axis=0)
    whole[:, SPAN] = np.array([run.duration for run in runs]) / len(runs)
    spots = [Spot(spot.site, spot.call, round(count)) for spot, count in zip(spots, counts.tolist())]
    return Side(list(runs), spots, list(every), again.drawn(whole, once=False), again)


def _whole(run: Measured, again: Again) -> Drawn:
    """Sites with as many parts are drawn together; those that were called a few times are each their own."""
    once = [parts for parts in run.parts if len(parts) < FEW]
    found = again.drawn(np.concatenate([np.zeros((1, COLUMNS)), *once]), once=True)
    by_count: dict[int, np.ndarray] = {}
    for parts in run.parts:
        if len(parts) >= FEW:
            by_count[len(parts)] = by_count.get(len(parts), 0) + parts
    for parts in by_count.values():
        found = found + again.drawn(parts)
    scale = np.ones(COLUMNS)
    scale[SPAN] = run.duration / found.value[SPAN] if found.value[SPAN] > 0 else 1.0
    return found.times(scale)


def compare(before: Sequence[Measured], after: Sequence[Measured]) -> Comparison:
    a, b = side_of(before, 1), side_of(after, 2)
    changes, shares = differences(a.whole, b.whole), ratios(a.whole, b.whole)
    totals = {
        name: Total(name, float(a.whole.value[c]), float(b.whole.value[c]), changes[c], shares[c])
        for name, c in (("duration", SPAN), ("time", TIME), ("blocked", BLOCKED), *COLUMN_OF.items())
    }
    return Comparison(a, b, totals, rows_of(a, b), hidden_of(a.whole, b.whole), notes_of(a, b))


def rows_of(a: Side, b: Side) -> list[Row]:
    found = pair(a.spots, b.spots)
    back = {old: new for new, old in enumerate(found) if old >= 0}
    pairs: list[tuple[int | None, int | None]] = [(old, back.get(old)) for old in range(len(a.spots))]
    pairs += [(None, new) for new, old in enumerate(found) if old < 0]
    level = 1 - (1 - LEVEL) / (2 * max(1, len(pairs)))
    worth = WORTH * max(1.0, *(run.duration * run.ranks for side in (a, b) for run in side.runs))
    rows = []
    for old, new in pairs:
        one, other = a.of(old), b.of(new)
        row = Row(
            None if old is None else a.spots[old],
            None if new is None else b.spots[new],
            (one.value, other.value),
            differences(one, other, level),
        )
        if old is None or new is None:
            row.state = NEW if old is None else GONE
        elif any(row.change[c].clear and abs(row.change[c].value) >= worth for c in (BLOCKED, TIME)):
            row.state = CHANGED
        rows.append(row)
    return sorted(rows, key=lambda r: (r.state == SAME, *(-abs(r.change[c].value) for c in (BLOCKED, TIME))))


def _share(side: Drawn, column: int) -> Drawn:
    need = np.maximum(side.draws[:, NEED], side.value[NEED] / 20)
    value = np.array([side.value[column] / side.value[NEED]])
    draws = np.clip(side.draws[:, column] / need, 0, 1)[:, None]
    variance = draws.var(axis=0)
    freedom = side.variance[column] ** 2 / side.share[column] if side.share[column] > 0 else np.inf
    return Drawn(value, draws, variance, variance**2 / freedom)


def hidden_of(a: Drawn, b: Drawn) -> Hidden | None:
    if not (a.value[NEED] > 0 and b.value[NEED] > 0):
        return None
    shares = [[_share(side, column) for column in (LEAST, MOST)] for side in (a, b)]
    ends = [(float(least.value[0]), float(most.value[0])) for least, most in shares]
    least, most = (differences(one, other)[0] for one, other in zip(*shares))
    return Hidden(ends[0], ends[1], least, most)


def notes_of(a: Side, b: Side) -> list[str]:
    found = []
    for what, values in (
        ("are of different programs", [sorted({run.program for run in side.runs}) for side in (a, b)]),
        ("ran on different MPIs", [sorted({run.mpi for run in side.runs}) for side in (a, b)]),
    ):
        if values[0] != values[1]:
            found.append(f"the runs {what}: {', '.join(values[0])}; {', '.join(values[1])}")
    ranks = {run.ranks for side in (a, b) for run in side.runs}
    if len(ranks) > 1:
        found.append(
            f"the runs have {', '.join(map(str, sorted(ranks)))} recorded ranks: times are sums of all ranks, so "
            "compare with care"
        )
    if not (a.several and b.several):
        found.append(
            "of one run an interval tells how repeats of its calls differ, not how runs do: with three or more of "
            "each, headway compare A1 A2 A3 -- B1 B2 B3, it tells that"
        )
    whose: dict[str, list[str]] = {}
    for run in (*a.runs, *b.runs):
        for note in run.notes:
            whose.setdefault(note, []).append(run.folder)
    found += [f"{', '.join(dict.fromkeys(folders))}: {note}" for note, folders in whose.items()]
    more = len(found) - MOST_NOTES
    return found if more <= 1 else [*found[:MOST_NOTES], f"and {more} more notes"]


# ---- JSON ---------------------------------------------------------------------------------------
def as_json(found: Comparison, conditions: Sequence[Condition] = ()) -> dict:
    hidden = found.hidden
    return {
        "format": FORMAT,
        "version": VERSION,
        "before": _side(found.before),
        "after": _side(found.after),
        "notes": found.notes,
        "total": {
            t.name: {
                "before": round(t.before),
                "after": round(t.after),
                "change": _change(t.change, whole=True),
                "ratio": _change(t.ratio),
            }
            for t in found.totals.values()
        },
        "hidden": None
        if hidden is None
        else {
            "before": dict(zip(("least", "most"), hidden.before)),
            "after": dict(zip(("least", "most"), hidden.after)),
            "least": _change(hidden.least),
            "most": _change(hidden.most),
        },
        "conditions": [
            {"text": c.text, "fails": found.fails(c), "change": _change(found.change(c), whole=not c.share)}
            for c in conditions
        ],
        "sites": [_row(row) for row in found.rows],
    }


def _side(side: Side) -> dict:
    return {
        "runs": [run.folder for run in side.runs],
        "program": side.runs[0].program,
        "mpi": side.runs[0].mpi,
        "ranks": side.runs[0].ranks,
    }


def _change(change: Change, whole: bool = False) -> dict[str, float | None]:
    ends = {"value": change.value, "low": change.low, "high": change.high}
    return {name: (round(end) if whole else end) if np.isfinite(end) else None for name, end in ends.items()}


def _row(row: Row) -> dict:
    named = {name: column for name, column in COLUMN_OF.items() if name != "duration"}
    return {
        "state": row.state,
        "call": row.spot.call,
        "before": _spot(row.before, row.values[0]),
        "after": _spot(row.after, row.values[1]),
        "change": {name: _change(row.change[column], whole=True) for name, column in named.items()},
    }


def _spot(spot: Spot | None, values: np.ndarray) -> dict | None:
    if spot is None:
        return None
    s = spot.site
    needs = dict(zip(("least", "most", "need"), (round(float(values[c])) for c in (LEAST, MOST, NEED))))
    return {
        "file": s.file,
        "line": s.line,
        "function": s.function,
        "module": s.module,
        "offset": s.offset,
        "count": spot.count,
        "time": round(float(values[TIME])),
        "blocked": round(float(values[BLOCKED])),
        "classes": {classes.NAMES[c]: round(float(values[FIRST_CLASS + n])) for n, c in enumerate(classes.WAITING)},
        "hidden": needs if needs["need"] else None,
    }
