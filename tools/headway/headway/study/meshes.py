"""The adaptive mesh in words and tables, for terminal and page. Pure."""

from __future__ import annotations

from headway.measure.statistics import human_size, short
from headway.study.blocking import FORMS
from headway.study.findings import Findings
from headway.study.samr import BASE, FAMILIES, PAPER, PAPER_GAIN, Figures, Row
from headway.study.value import Value, near, percent
from headway.study.verdicts import Saying

TITLES = {f.name: f.title for f in FORMS}
DO = {f.name: f.do for f in FORMS}
SAYS = {f.name: f.says for f in FORMS}
SHARED = "shm"
LEAST_GAIN = 0.02  # of a run: less is not worth a word
LEAST_OF_ONE = 0.05  # of one run or two, which have no interval
HEAD = [
    "", "MPI", "how it was run", "form", "execution, s", "communication, s", "most, s", "less communication", "the paper",
    "less execution",
]  # fmt: skip


def seconds(value: Value) -> str:
    return f"{value.median:.3g}" if value.median < 0.1 else short(value.median)


def saved(value: Value) -> str:
    """20 % less, or 3 % more; with its interval."""
    if value.median >= 0:
        return f"{percent(value)} less"
    return f"{percent(Value(-value.median, -value.high, -value.low, value.count))} more"


def figures_cells(form: str, f: Figures) -> list[str]:
    first = BASE[form] == form
    paper = PAPER_GAIN.get(form)
    return [
        TITLES[form],
        seconds(f.execution),
        seconds(f.communication),
        seconds(f.most),
        "-" if first else percent(f.gain),
        f"{paper * 100:.0f} %" if paper else "-",
        "-" if first else percent(f.execution_gain),
    ]


def numbers(found: Findings) -> list[list[str]]:
    rows = []
    for row in found.samr:
        who = [row.title, found.label(row.mpi), row.way + (f" ({row.invalid})" if row.invalid else "")]
        rows += [[*who, *figures_cells(form, f)] for form, f in row.forms.items()]
        if not row.forms:
            rows.append([*who, *["-"] * (len(HEAD) - len(who))])
    return rows


ABOUT_HEAD = [
    "", "MPI", "imbalance", "messages an iteration", "smallest", "half of all bytes below", "largest", "same field",
]  # fmt: skip


def about(found: Findings) -> list[list[str]]:
    return [
        [
            row.title, found.label(row.mpi), f"{row.imbalance:.2f}", short(row.messages), *map(size, row.sizes),
            "yes" if row.same else "NO",
        ]
        for row in found.samr
        if row.forms
    ]  # fmt: skip


def size(bytes_: int) -> str:
    return f"{bytes_} B" if bytes_ < 1024 else near(bytes_) if bytes_ < 1 << 20 else human_size(bytes_ >> 10 << 10)


def sayings(found: Findings, row: Row) -> list[Saying]:
    """Of each pair of the paper's: what its strategy gains here, and what the first form costs."""
    said = []
    who = f"{found.label(row.mpi)}, {row.title}" + (f" (run with {row.way})" if " instead of " in row.way else "")
    if not row.forms:
        return [Saying(f"{found.label(row.mpi)}, {row.title}: {row.invalid}.")]
    for base, after in (("6", "7"), ("12", "13")):
        forms = {f: v for f, v in row.forms.items() if BASE[f] == base and f != base}
        if base not in row.forms or not forms:
            continue
        best = max(forms, key=lambda f: forms[f].gain.median)
        told = []
        if after in forms:
            told.append(
                f"figure {after}'s form spends {saved(forms[after].gain)} time in communication than figure {base}'s "
                f"(the paper: {PAPER_GAIN[after] * 100:.0f} % less)"
            )
        if best != after:
            told.append(f"'{TITLES[best]}' {saved(forms[best].gain)}")
        cost = row.unoptimised(base)
        if cost:
            told.append(f"figure {base}'s run as a whole takes {cost.median:.2f} of the best form's time")
        sure = forms[best].gain.median > 0.05 and (forms[best].gain.count < 3 or forms[best].gain.low > 0)
        said.append(Saying(f"{who}: {'; '.join(told)}.", DO[best] if sure else ""))
    if not row.same:
        said.append(Saying(f"{found.label(row.mpi)}, {row.title}: forms differ in their results."))
    return said


def place_of(row: Row, places: list[str]) -> str:
    """Where a case runs, among a study's places; imitations nowhere. The paper's meshes run between hosts."""
    family = row.case.split("-")[0]
    if family in FAMILIES:
        return next((p for p in places if p != SHARED), "")
    return family if family in places else ""


def rows_of(found: Findings, mpi: str, place: str) -> list[Row]:
    """All meshes of one MPI at one place."""
    return [r for r in found.samr if r.mpi == mpi and r.forms and place_of(r, found.places) == place]


def gains_of(rows: list[Row]) -> list[tuple[Value, str, Row]]:
    """What each of the paper's forms gained of a whole run."""
    return [(f.execution_gain, form, row) for row in rows for form, f in row.forms.items() if BASE[form] != form]


def has_gained(found: Findings, mpi: str, place: str) -> bool:
    """Whether a form did in one of them."""
    return any(is_sure(gain, 1) for gain, _, _ in gains_of(rows_of(found, mpi, place)))


def in_short(found: Findings, mpi: str, place: str) -> str:
    """What the paper's forms gained, and cost, of a whole run, over all meshes of one MPI at one place."""
    mine = rows_of(found, mpi, place)
    if not mine:
        return "not tried"
    told = []
    for sign, word in ((1, "less"), (-1, "more")):
        sure = [(sign * g.median, form, row) for g, form, row in gains_of(mine) if is_sure(g, sign)]
        if sure:
            most, form, row = max(sure, key=lambda s: s[0])
            told.append(f"up to {100 * most:.0f} % {word} ({which(row)}: {SAYS[form].rstrip(',')})")
    count = f"{len(mine)} meshes" if len(mine) > 1 else "one mesh"
    return "; ".join(told) or f"nothing in {count}"


def is_sure(gain: Value, sign: int) -> bool:
    if gain.count < 3:
        return sign * gain.median > LEAST_OF_ONE
    return sign * gain.median > LEAST_GAIN and (gain.low if sign > 0 else -gain.high) > 0


def which(row: Row) -> str:
    """The mesh, without where it ran and why it was chosen; and what is not as it says."""
    words = row.title.split(": ", 1)[-1].split(", above ")[0].split(", below ")[0]
    rate = next((c.mbit for c in PAPER if c.name == row.case), 0)  # the paper's, not the place's
    words += f", {rate:g} Mbit/s" if rate else ""
    words += f", run with {row.way}" if " instead of " in row.way else ""
    return words + (", some runs disturbed or failed" if row.invalid else "")


HOW = (
    "The adaptive mesh is an application as the paper's was: a shock through the wavy border between two gases, "
    "three levels, blocks along a Hilbert curve. Communication is time in calls of ghost exchanges, the mean over "
    "ranks, of one iteration; gains are formed within a turn, in which each form is run once.",
    "Where a run was not valid at first, the MPI was told to give cores away (yielding), then the simulated cluster "
    "was slowed, then there were fewer ranks, in this order; 'times slower' begins at what the wire's packets alone "
    "need of this machine. Processors of the paper's clock are played by sleeping. '2 ranks instead of 16, each as quick "
    "as 8': two ranks share the whole mesh, and their processors are played 8 times quicker, so that they compute as long "
    "as the 16 would.",
)
