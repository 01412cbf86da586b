"""The adaptive mesh of the non-blocking paper (apps/samr): which runs, how each is made valid on this machine,
and what they say. Pure, but for where the sources lie.

A case is a mesh on a number of ranks; a form is how its ghost exchange is written. A run is valid if the
simulated hosts say so; where it is not, a way that is gentler is tried: the MPI's own option to give cores
away, then a slower cluster (dilation), then fewer ranks.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Iterator

from headway.measure import programs
from headway.measure.contestants import Contestant
from headway.measure.hosts import Hosts
from headway.measure.plan import rotated
from headway.measure.store import Store
from headway.measure.validity import may_count
from headway.study.blocking import FORMS
from headway.study.imitation import Behaviour
from headway.study.plan import K, Place, Task
from headway.study.value import Value, near

PLACE = "samr"  # in the store
NONE = "none"  # in the store, instead of a form: why there is no run
PROGRAM, IMITATED = "samr", "samr_imitated"
FLAGS = ("-O3", "-ffp-contract=off")
ALL = tuple(f.name for f in FORMS)
BASE = {f.name: f.of for f in FORMS}
PAPER_GAIN = {"7": 0.27, "13": 0.44}  # communication time, of figures 14 and 15
KEEPS = 0.85  # of its share of the cores: who keeps that on a slower cluster spins ...
LEAVES = 0.1  # ... unless it leaves so much of them idle: on the quicker one there was not more to take
DILATIONS = 3  # each twice the one before
LOOKING = 300  # seconds in which a way is looked for, of one case on one MPI; a run that has begun may end
LONGEST = 300  # of one start, unless it should take half of that
FAMILIES = {"frea": 16, "horizon": 64}  # and their fewest ranks
LEAST_RANKS = 2  # two that spin on two cores harm nobody

# How an MPI is told not to keep cores that others want. Ours needs no word: where ranks share cores, it sleeps.
YIELDING = {
    "mpich": {"MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1", "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "1"},
    "openmpi": {"OMPI_MCA_mpi_yield_when_idle": "1"},
    "intel": {"I_MPI_THREAD_YIELD": "3", "I_MPI_THREAD_SLEEP": "10"},
}


def sources() -> list[Path]:
    """Beside the studies' programs where it is installed, in apps/ in the source tree."""
    installed = programs.FOLDER / PROGRAM
    folder = installed if installed.exists() else Path(__file__).resolve().parents[4] / "apps" / PROGRAM
    return sorted(folder.glob("*.c"))


# ---- what is run -----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Case:
    name: str  # what --only selects
    title: str
    grid: str
    ranks: int
    forms: tuple[str, ...]
    iterations: int
    seconds: float  # of one run, about
    block: int = 8
    levels: int = 3
    per_host: int = 0  # ranks of a simulated host; 0: all in shared memory
    mbit: float = 0
    dilation: float = 1  # what this machine needs for the wire's packets alone
    pace: float = 0  # clock of the paper's processors, MHz; 0: this machine's own
    cycles: int = 2000  # of a cell
    imitation: Behaviour | None = None
    keeps_mesh: bool = False  # the first one, so that messages keep their sizes

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Forms, each with the one that it is compared with."""
        return [(f, BASE[f]) for f in self.forms if f != BASE[f]]


@dataclass(frozen=True)
class Way:
    """How a case is run so that the run is valid."""

    ranks: int
    yielding: bool = False
    dilation: float = 1

    def text(self, case: Case) -> str:
        words = [f"{self.ranks} ranks" if self.ranks == case.ranks else f"{self.ranks} ranks instead of {case.ranks}"]
        if case.pace and self.ranks != case.ranks:
            words.append(f"each as quick as {case.ranks / self.ranks:g}")
        if self.yielding:
            words.append("yielding")
        if self.dilation != 1:
            words.append(f"{self.dilation:g} times slower")
        return ", ".join(words)


FREA, HORIZON = "128x32x32", "256x64x64"
MPICH_125 = Behaviour("isend", 60 * K, True, "test+timeout", 1000, timeout_down=True)
IBM = Behaviour("wait", 100 * K, False, "any", transfer=True)

# Frea: 1.7 GHz, 100 Mbit/s, one rank a node. Blue Horizon: eight processors of 375 MHz a node; its switch is
# played by 1 Gbit/s a node.
PAPER = (
    *(
        Case(
            f"frea-{n}", f"figure 14: {FREA}, {n} ranks", FREA, n, ALL, 1, 8 + 2 * d, per_host=1, mbit=100, dilation=d,
            pace=1700,
        )
        for n, d in ((16, 4), (32, 8), (64, 16))
    ),
    *(
        Case(
            f"horizon-{n}", f"figure 15: {HORIZON}, {n} ranks", HORIZON, n, ALL, 1, 30 + 4 * d, per_host=8, mbit=1000,
            dilation=d, pace=375,
        )
        for n, d in ((64, 4), (128, 8), (256, 32))
    ),
)  # fmt: skip
IMITATIONS = (
    Case(
        "mpich125", f"MPICH 1.2.5 imitated: {FREA}, 16 ranks", FREA, 16, ("6", "7", "6c", "6ct"), 2, 8, pace=1700,
        imitation=MPICH_125,
    ),
    Case(
        "ibm", f"IBM's MPI imitated: {FREA}, 16 ranks", FREA, 16, ("6", "6c", "12", "13"), 1, 20, per_host=1, mbit=100, dilation=6,
        pace=1700, imitation=IBM,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Size:
    """A mesh on two ranks: most bytes travel in messages of about `middle`, none is longer than `largest`."""

    grid: str
    block: int
    middle: int
    largest: int
    seconds: float  # of an iteration
    levels: int = 3


# Held against the program by a test.
SERIES = (
    Size("16x4x4", 4, 5087, 5120, 0.0002, levels=1),
    Size("8x4x4", 4, 20347, 20480, 0.005),
    Size("16x8x8", 8, 46080, 46080, 0.02),
    Size("24x4x4", 4, 81386, 81920, 0.008),
    Size("32x8x8", 8, 184320, 184320, 0.03),
    Size("16x8x8", 4, 355010, 360960, 0.05),
    Size("32x16x16", 8, 675840, 675840, 0.08),
    Size("64x16x16", 8, 1194106, 1200640, 0.15),
    Size("64x32x32", 8, 1891840, 1891840, 0.6),
    Size("96x48x48", 8, 4883200, 4883200, 1.9),
)
PAPERS_SWITCH = 60 * K  # where nothing blocks, the paper's


def series(place: Place, switch: int | None) -> list[Case]:
    """Two meshes, whose messages are below and above the size from which a call blocks; as far as there are. None: that
    is not known."""
    at = switch or PAPERS_SWITCH
    none = "no call blocks" if switch is not None else "what blocks was not found"
    blocks = f"the {near(switch)} from which a call blocks" if switch else f"the paper's {near(at)}: {none}"
    below = [("below", s) for s in SERIES if s.largest < at][-1:]
    above = [("above", s) for s in SERIES if s.middle >= 1.2 * at][:1]
    found = []
    for word, size in (*below, *above):
        iterations = int(min(4000 if size.levels == 1 else 100, max(4, 1.5 / size.seconds)))
        seconds = 1 + 1.2 * size.seconds * iterations
        case = Case(
            f"{place.name}-{word}", f"{place.title}, {size.grid}: messages of {near(size.middle)}, {word} {blocks}",
            size.grid, 2, ALL, iterations, seconds, size.block, size.levels, keeps_mesh=True,
        )  # fmt: skip
        found.append(replace(case, per_host=1, mbit=place.hosts.mbit) if place.hosts else case)
    return found


def turns(case: Case, quick: bool) -> int:
    """How often each form is run."""
    if case.ranks <= 2 or not case.per_host:
        return 3 if quick else 9
    return 1 if quick else 5 if case.ranks <= 16 else 3


def chosen(quick: bool) -> list[Case]:
    """Beside the series, which depend on what blocks."""
    return [c for c in (*PAPER, *IMITATIONS) if not quick or c.name in ("frea-16", "mpich125", "ibm")]


def library_of(contestant: Contestant) -> str:
    return "intel" if "I_MPI_ROOT" in contestant.environment else contestant.library


def ways(case: Case, contestant: Contestant) -> Iterator[Way]:
    """From what the paper did to what this machine can do."""
    if not case.per_host:
        yield Way(case.ranks)
        return
    yields = library_of(contestant) in YIELDING
    ranks = case.ranks
    while ranks >= min(LEAST_RANKS, case.ranks):
        least = max(1, case.dilation * ranks / case.ranks)
        yield Way(ranks, False, least)
        if yields:
            yield Way(ranks, True, least)
        for step in range(1, DILATIONS):
            yield Way(ranks, yields, least * 2**step)
        ranks //= 2


def spins(before: dict, after: dict) -> bool:
    """Of two probes, the second one on a cluster twice as slow: the run keeps the cores as busy as before, and leaves
    nothing of them, so that slower is no help. Beside others its share says nothing."""
    verdicts = [e.get("verdict") or {} for e in (before, after)]
    was, now = (v.get("own", 0.0) for v in verdicts)
    return all(may_count(v) for v in verdicts) and now > KEEPS * was > 0 and verdicts[1].get("idle", 0.0) < LEAVES


def task_of(case: Case, way: Way, form: str, turn: int, probe: bool = False) -> Task:
    """One start. A probe is one that only says whether that way is valid."""
    words: list[object] = ["--grid", case.grid, "--block", case.block, "--levels", case.levels, "--form", form]
    words += ["--iterations", case.iterations, "--warmup", 1]
    if case.keeps_mesh:
        words += ["--regrid", 1000000]
    if case.pace:  # fewer ranks have more cells each: they compute as long as the case's ranks do
        words += ["--pace", f"{case.pace * case.ranks / way.ranks:g}", "--cycles", case.cycles]
    place = Place(PLACE)
    if case.per_host:
        place = Place(PLACE, Hosts(max(2, way.ranks // case.per_host), case.mbit, way.dilation))
    seconds = case.seconds * way.dilation / case.dilation
    return Task(
        place, f"{case.name}/{'probe' if probe else form}", IMITATED if case.imitation else PROGRAM,
        tuple(map(str, words)), seconds, turn, page=False, limit=min(60 + 5 * seconds, max(LONGEST, 2 * seconds)),
        ranks=way.ranks, per_host=max(1, min(case.per_host, way.ranks // 2)), way=way.text(case), title=case.title,
    )  # fmt: skip


def plan(case: Case, way: Way, quick: bool) -> list[Task]:
    """Paired runs: every turn has each form once, and begins with another one."""
    return [task_of(case, way, f, t) for t in range(turns(case, quick)) for f in rotated(case.forms, t)]


# ---- what it says ------------------------------------------------------------------------------------
@dataclass
class Figures:
    """Of one form: seconds of an iteration, gains over the form that it is compared with."""

    execution: Value
    communication: Value  # mean over the ranks
    most: Value  # of the rank that has most of it
    gain: Value  # less communication time
    execution_gain: Value


@dataclass
class Row:
    """One case on one MPI."""

    case: str
    title: str
    mpi: str
    way: str
    forms: dict[str, Figures] = field(default_factory=dict)
    imbalance: float = 0.0
    messages: float = 0.0  # an iteration, all ranks
    sizes: tuple[int, int, int] = (0, 0, 0)
    same: bool = True  # all forms have the same field
    invalid: str = ""  # what the simulated hosts object to in some of the runs, and those that failed; or why there is none

    def unoptimised(self, group: str) -> Value | None:
        """Execution time of the paper's first form by that of the best one."""
        forms = {f: v for f, v in self.forms.items() if BASE[f] == group}
        if group not in forms or len(forms) < 2:
            return None
        gains = [f.execution_gain for name, f in forms.items() if name != group]
        best = max(gains, key=lambda g: g.median)
        return Value(*(1 / (1 - min(0.99, max(0.0, x))) for x in (best.median, best.low, best.high)), best.count)


def figures(base: dict[int, dict], mine: dict[int, dict]) -> Figures | None:
    """By turn; gains are formed within one."""
    both = sorted(base.keys() & mine.keys())
    if not both:
        return None

    def of(entries: dict[int, dict], what: str, which: int = 0) -> dict[int, float]:
        found = {}
        for turn in both:
            value = entries[turn]["extra"][what]
            found[turn] = (value if what == "execution" else value[which]) / entries[turn]["extra"]["iterations"]
        return found

    times, calls, was_times, was_calls = (
        of(mine, "execution"),
        of(mine, "communication", 1),
        of(base, "execution"),
        of(base, "communication", 1),
    )
    return Figures(
        Value.of([*times.values()]),
        Value.of([*calls.values()]),
        Value.of([*of(mine, "communication", 0).values()]),
        Value.of([1 - calls[t] / max(1e-9, was_calls[t]) for t in both]),
        Value.of([1 - times[t] / max(1e-9, was_times[t]) for t in both]),
    )


def row_of(name: str, mpi: str, entries: list[dict]) -> Row:
    row = Row(name, entries[-1].get("title", name), mpi, entries[-1].get("way", ""))
    entries = [e for e in entries if e.get("way", "") == row.way]
    runs: dict[str, dict[int, dict]] = defaultdict(dict)
    reasons: list[str] = []
    failures = [e["failure"] or "no result" for e in entries if e["failure"] or not e["rows"]]
    for entry in entries:
        if entry["failure"] or not entry["rows"]:
            continue
        runs[entry["test"].split("/")[1]][entry["turn"]] = entry["rows"][0]
        verdict = entry.get("verdict") or {}
        if verdict and not verdict["valid"]:
            reasons.append(verdict.get("reasons", ["not valid"])[0].split(" (")[0])
    every = [r["extra"] for by_turn in runs.values() for r in by_turn.values()]
    if not every:
        row.invalid = entries[-1]["failure"] or "no run"
        return row
    row.same = len({e["checksum"] for e in every}) == 1
    row.imbalance, row.messages = every[0]["imbalance"], every[0]["messages"]
    row.sizes = tuple(every[0]["sizes"])
    told = [f"{len(reasons)} of {len(every)} runs: {max(set(reasons), key=reasons.count)}"] if reasons else []
    if failures:
        told.append(f"{len(failures)} of {len(entries)} runs failed: {max(set(failures), key=failures.count)}")
    row.invalid = "; ".join(told)
    for form in ALL:
        found = figures(runs.get(BASE[form], {}), runs.get(form, {}))
        if found:
            row.forms[form] = found
    return row


def read(store: Store) -> list[Row]:
    """Rows in the order in which cases were run. Of a case that was run in several ways, the latest counts."""
    runs: dict[tuple[str, str], list[dict]] = defaultdict(list)
    for entry in store.lines.values():
        if entry.get("place") == PLACE and not entry["test"].endswith("/probe"):
            runs[entry["test"].split("/")[0], entry["mpi"]].append(entry)
    known = [c.name for c in (*IMITATIONS, *PAPER)]
    order = sorted(runs, key=lambda w: known.index(w[0]) if w[0] in known else -1)
    return [row_of(case, mpi, of_runs(runs[case, mpi])) for case, mpi in order]


def of_runs(entries: list[dict]) -> list[dict]:
    """A case has runs, or says why it has none: of what was tried on another day the last word counts."""
    last = entries[-1]["test"].endswith(f"/{NONE}")
    return [e for e in entries if e["test"].endswith(f"/{NONE}") == last]
