"""The non-blocking paper's kernel: scripts for its two ranks, and what their answers mean. Pure.

Rank 0 sends, rank 1 receives. The words of a script are those of programs/kernel.c. Times are us after
the common start; @e is the receiver's entry, which differs from run to run.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from headway.study.definitions import call_kind, is_cumulative
from headway.study.plan import M, Place, Task, wire_seconds

LATE = 30_000  # when all is over, us: late enough to be told from an entry
FIRST, APART = 1500, 2500  # entries of the tests of what releases a call
TIMEOUT_LATE = 150_000
TESTS = (0, 1, 2, 4, 8, 16)
PLACES = (0.125, 0.25, 0.75)  # of the computation: where one test stands
QUICK_TESTS, QUICK_PLACES = (0, 1, 4, 16), (0.25,)
QUICK_FIGURES = (3, 5, 8, 9, 11)  # between hosts, where each start takes longer
# What is asked, by the first part of a task's name; `find` first: all others are for the sizes that it finds.
KINDS = ("find", "three", "release", "exchange", "exchange-late", "pieces", "tests", "figure", "strategy", "memory")
CALLS = {"s": "MPI_Isend", "ws": "a send's MPI_Wait"}
RELEASES = {
    "test": "an MPI_Test of that receive",
    "other": "an MPI_Wait for another request",
    "timeout": "time alone",
}


def kernel(
    place: Place, test: str, seconds: float, *words: object, program: str = "kernel", limit: float = 0
) -> Task:
    return Task(place, test, program, tuple(map(str, words)), seconds, page=False, limit=limit)


def scale(place: Place, size: int) -> float:
    """How much later things have to happen where the wire is slow: a multiple of 30 ms."""
    return max(1.0, 4 * wire_seconds(place, (size,)) * 1e6 / LATE)


LEFT = "left"  # of a find task: not a call, but whether a message stays with its sender
FINDS = ("s", "ws", LEFT)


def find_tasks(place: Place, quick: bool, program: str = "kernel") -> list[Task]:
    """From which size each call blocks, and from which a message stays with its sender until the receiver comes.
    Order tells, and the search asks until its answers agree: so they need not be undisturbed."""
    most = 1 * M if quick and place.hosts else 4 * M
    seconds = 2 if place.hosts is None else 2 + 30 * wire_seconds(place, (most,))
    tasks = [
        kernel(
            place,
            f"find/{what}",
            seconds,
            "--find",
            1,
            "--watch",
            what,
            "--zero",
            "s k w ws" if what == LEFT else "s ws",
            "--one",
            "r @e wr",
            "--least",
            64,
            "--most",
            most,
            "--within",
            0.01,
            program=program,
            limit=40 + 10 * seconds,
        )
        for what in FINDS
    ]
    return [replace(t, timed=False) for t in tasks]


def release_words(call: str, how: str, late: float, first: float, apart: float) -> list[object]:
    """The receiver does one thing at its entry and waits much later."""
    behind = "ws" if call == "ws" else f"@{late:.0f} ws"
    zero = f"{'q ' if how == 'other' else ''}s {behind}"
    one = {"test": f"r @e t @{late:.0f} wr", "other": f"r @e o @{late:.0f} wr", "timeout": f"r @{TIMEOUT_LATE} wr"}[
        how
    ]
    entries = (
        ["--entries", 1, "--runs", 3] if how == "timeout" else ["--first", f"{first:.0f}", "--apart", f"{apart:.0f}"]
    )
    return ["--watch", call, "--zero", zero, "--one", one, *entries]


def detail_tasks(place: Place, call: str, size: int, program: str = "kernel") -> list[Task]:
    """For a call that blocks from `size` on."""
    above = int(size * 1.3) + 1
    k = scale(place, above)
    late, first, apart = LATE * k, FIRST * k, APART * k
    three = kernel(
        place,
        f"three/{call}",
        2 * k,
        "--find",
        1,
        "--watch",
        call,
        "--zero",
        "s ws",
        "--one",
        "r @e wr",
        "--count",
        3,
        "--least",
        max(1, size // 6),
        "--most",
        int(size * 1.4) + 2,
        "--within",
        0.02,
        program=program,
    )
    tasks = [three]
    for how in RELEASES:
        tasks.append(
            kernel(
                place,
                f"release/{call}/{how}",
                1.5 * k if how != "timeout" else 1.5,
                "--sizes",
                above,
                *release_words(call, how, late, first, apart),
                program=program,
                limit=25 + 10 * k,
            )
        )
    # Two that send to each other before either waits for what it receives; then the paper's T1 and T2.
    tasks.append(
        kernel(
            place,
            f"exchange/{call}",
            0.6,
            "--sizes",
            above,
            "--watch",
            "ws",
            "--entries",
            1,
            "--runs",
            3,
            "--zero",
            "r s ws wr",
            "--one",
            "r s ws wr",
            program=program,
            limit=12,
        )
    )
    tasks.append(
        kernel(
            place,
            f"exchange-late/{call}",
            1 * k,
            "--sizes",
            above,
            "--watch",
            "ws",
            "--first",
            f"{first:.0f}",
            "--apart",
            f"{apart:.0f}",
            "--zero",
            f"r s ws @{late:.0f} wr",
            "--one",
            f"r s @e ws @{late:.0f} wr",
            program=program,
            limit=25,
        )
    )
    return tasks


def pieces_tasks(place: Place, size: int) -> list[Task]:
    """One message against three and ten pieces of it."""
    k = scale(place, size)
    return [
        kernel(
            place,
            f"pieces/{n}",
            0.5 * k,
            "--sizes",
            max(1, size // n),
            "--count",
            n,
            "--watch",
            "ws",
            "--zero",
            "s ws",
            "--one",
            "r @e wr",
        )
        for n in (1, 3, 10)
    ]


def tests_script(computing: float, tests: int, place_of_one: float = 0) -> str:
    """Irecv, a computation with that many MPI_Testall in it, Waitall."""
    if tests == 0:
        return f"r c{computing:.0f} wr"
    if place_of_one:
        return f"r c{computing * place_of_one:.0f} T c{computing * (1 - place_of_one):.0f} wr"
    part = computing / (tests + 1)
    return "r " + f"c{part:.0f} T " * tests + f"c{part:.0f} wr"


def tests_tasks(place: Place, size: int, quick: bool = False) -> list[Task]:
    """What MPI_Testall costs and gains: both sides compute as long as two transfers."""
    numbers, places = (QUICK_TESTS, QUICK_PLACES) if quick else (TESTS, PLACES)
    computing = max(400.0, 2e6 * wire_seconds(place, (size,)))
    tasks = []
    for name, script in [
        *((str(n), tests_script(computing, n)) for n in numbers),
        *((f"at-{p:g}", tests_script(computing, 1, p)) for p in places),
    ]:
        tasks.append(
            kernel(
                place,
                f"tests/{name}",
                0.3 + computing * 30e-6,
                "--sizes",
                size,
                "--watch",
                "ws",
                "--entries",
                1,
                "--runs",
                15,
                "--zero",
                f"s c{computing:.0f} ws",
                "--one",
                script,
            )
        )
    return tasks


# ---- the paper's strategies ------------------------------------------------------------------
@dataclass(frozen=True)
class Form:
    """One way to write a ghost exchange. X and Y: computation before and after the sends."""

    name: str
    title: str
    of: str  # the form that it is compared with
    script: str
    do: str = ""  # as an advice
    says: str = ""  # in a sentence


FORMS = (
    Form("6", "figure 6: each Isend followed by its wait", "6", "r X p Y wr"),
    Form(
        "7",
        "figure 7: and an MPI_Testall behind the sends",
        "6",
        "r X p T Y wr",
        "Call MPI_Testall for the receives right behind the sends (figure 7).",
        "figure 7's form",
    ),
    Form(
        "6c",
        "waits for sends behind those for receives",
        "6",
        "r X s Y wr ws",
        "Put the waits for sends behind those for receives (figure 13); what you compute behind the sends stays there.",
        "collecting the waits for sends behind those for receives",
    ),
    Form(
        "6ct",
        "that, with MPI_Testall for the receives in the computation",
        "6",
        "r X s T Y/2 T Y/2 wr ws",
        "Put the waits for sends behind those for receives (figure 13), and call MPI_Testall for the receives right behind the "
        "sends (figure 7) and in the middle of what you compute there.",
        "collecting the waits for sends, with MPI_Testall for the receives in the computation,",
    ),
    Form("12", "figure 12: each Isend followed by its wait", "12", "r X p wr"),
    Form(
        "13",
        "figure 13: waits for sends behind those for receives",
        "12",
        "r X s wr ws",
        "Put the waits for sends behind those for receives (figure 13).",
        "figure 13's form",
    ),
)
STRATEGY_MESSAGES = 3
IMBALANCE = 1.5  # rank 1 computes so much longer before it sends
SHORTEST_COMPUTATION = 500.0  # us


def form_script(form: Form, computing: float, before: float) -> str:
    words = {"X": f"c{computing * before:.0f}", "Y": f"c{computing:.0f}", "Y/2": f"c{computing / 2:.0f}"}
    return " ".join(words.get(w, w) for w in form.script.split())


def strategy_tasks(place: Place, size: int, turn: int) -> list[Task]:
    """Both ranks exchange three messages under imbalance, in each form; computation lasts as long as they."""
    computing = max(SHORTEST_COMPUTATION, STRATEGY_MESSAGES * 1e6 * wire_seconds(place, (size,)))
    found = []
    for form in FORMS:
        task = kernel(
            place, f"strategy/{form.name}", 0.2 + 60e-6 * computing, "--sizes", size, "--count", STRATEGY_MESSAGES,
            "--entries", 1, "--runs", 9, "--zero", form_script(form, computing, 1),
            "--one", form_script(form, computing, IMBALANCE), limit=20 + 200e-6 * computing,
        )  # fmt: skip
        found.append(replace(task, turn=turn))
    return found


# ---- the paper's figures -----------------------------------------------------------------------
@dataclass(frozen=True)
class Figure:
    number: int
    title: str
    small: bool  # 1 KB; else a size that blocks
    count: int
    zero: str
    one: str


# T0 to T3 of the kernel are 0, 3, 6 and 9 ms (times the place's scale); in figures 8, 9 and 11 the
# receiver is late, as under load imbalance.
FIGURES = (
    Figure(2, "1 KB: Isend, Irecv, computation, waits", True, 1, "s @9000 ws", "r @9000 wr"),
    Figure(3, "large: the same", False, 1, "s @9000 ws", "r @9000 wr"),
    Figure(4, "large: an MPI_Test in the receiver's computation", False, 1, "s @9000 ws", "r @4500 t @9000 wr"),
    Figure(5, "large: both send", False, 1, "r s @9000 ws wr", "r s @12000 ws wr"),
    Figure(
        8,
        "figure 6's program: each Isend followed by its wait, then computation",
        False,
        3,
        "@1000 p @9000",
        "r @12000 wr",
    ),
    Figure(
        9,
        "figure 7's program: the same with an MPI_Testall",
        False,
        3,
        "@1000 p @9000",
        "r @3000 T @5000 T @7000 T @12000 wr",
    ),
    Figure(10, "large: the send's wait as late as the receive's", False, 1, "s @9000 ws", "r @9000 wr"),
    Figure(11, "large: the send's wait at once", False, 1, "s @100 ws @9000", "r @9000 wr"),
)


def scaled(script: str, k: float) -> str:
    return " ".join(f"@{float(w[1:]) * k:.0f}" if w[0] == "@" else w for w in script.split())


def figure_tasks(
    place: Place, size: int, program: str = "kernel", numbers: tuple[int, ...] = (), quick: bool = False
) -> list[Task]:
    k = scale(place, size)
    numbers = numbers or (QUICK_FIGURES if quick and place.hosts else ())
    return [
        kernel(
            place,
            f"figure/{f.number}",
            0.3 + 0.1 * k,
            "--sizes",
            1024 if f.small else size,
            "--count",
            f.count,
            "--entries",
            1,
            "--runs",
            5,
            "--zero",
            scaled(f.zero, k),
            "--one",
            scaled(f.one, k),
            program=program,
            limit=15 + k,
        )
        for f in FIGURES
        if not numbers or f.number in numbers
    ]


# ---- answers -----------------------------------------------------------------------------------
@dataclass
class Blocking:
    """How one call behaves."""

    call: str  # s or ws
    looked_to: int = 0  # the largest size that was looked at
    size: int = 0  # it blocks from here on; 0: not seen
    held: bool = True  # answers to the same question agreed; else no size is known
    failure: str = ""  # why there are no answers at all; then it is not held
    kind_below: str = "free"  # of the largest size that does not block
    slope: float = 0.0
    each_of_three: int = 0
    released: dict[str, bool | None] = field(default_factory=dict)
    timeout_us: float = 0.0
    deadlock: bool | None = None

    @property
    def cumulative(self) -> bool | None:
        return is_cumulative(self.size, self.each_of_three)


def events(row: dict, rank: int, op: str) -> list[dict]:
    return [e for e in row["extra"]["zero" if rank == 0 else "one"] if e["op"] == op]


def returns(row: dict, op: str) -> tuple[float, list[float]]:
    """When the last such call of rank 0 began at the first entry, and when it returned at each entry."""
    last = events(row, 0, op)[-1]
    return last["begin"][0], last["end"]


def kind_of_row(row: dict) -> str:
    """The same judgement as the C program's, from its raw times."""
    extra = row["extra"]
    watch = extra["watch"]
    begin, ends = returns(row, watch)
    if watch == "ws":
        sent = events(row, 0, "s")
        if sent and call_kind(extra["entries"], sent[-1]["end"]).kind == "blocks":
            ends = [e - s for e, s in zip(ends, sent[-1]["end"])]
            begin = 0.0
    return call_kind(extra["entries"], ends, begin, extra["transfer_us"]).kind


def read_find(rows: list[dict], call: str) -> Blocking:
    looked = [r for r in rows if r["measure"] in ("kernel", "stays")]
    found = next((r for r in rows if r["measure"] == "blocks_from"), None)
    answer = Blocking(call, held=bool(found and found["extra"].get("held", 1)))
    if not looked:
        return answer
    answer.looked_to = max(r["size"] for r in looked)
    answer.size = int(found["samples"][0]) if found else 0
    answer.slope = max((r["samples"][0] for r in looked), default=0.0)
    below = [r for r in looked if r["measure"] == "kernel" and not r["extra"]["blocks"]]
    if below:
        answer.kind_below = kind_of_row(max(below, key=lambda r: r["size"]))
    return answer


def read_entry(entry: dict, call: str) -> Blocking:
    """What failed is no answer."""
    if entry["failure"]:
        return Blocking(call, held=False, failure=entry["failure"])
    return read_find(entry["rows"], call)


def read_release(row: dict, how: str, late: float) -> tuple[bool, float]:
    """Whether that lets the call go, and, of a time-out, after how long."""
    _, ends = returns(row, row["extra"]["watch"])
    if how == "timeout":
        sent = events(row, 0, "s")[0]["begin"][0]
        gone = ends[0] < TIMEOUT_LATE * 0.9
        return gone, ends[0] - sent if gone else 0.0
    # Released well before the end, and by the entry.
    return call_kind(row["extra"]["entries"], ends).kind == "blocks" and max(ends) < 0.95 * late, 0.0


def read_detail(answer: Blocking, test: str, rows: list[dict]) -> None:
    """What a task of detail_tasks says of a call."""
    kind, _, *how = test.split("/")
    if kind == "three":
        answer.each_of_three = next((int(r["samples"][0]) for r in rows if r["measure"] == "blocks_from"), 0)
    elif kind == "release":
        gone, after = read_release(rows[-1], how[0], late_of(rows[-1]))
        answer.released[how[0]] = gone
        if how[0] == "timeout":
            answer.timeout_us = after


def late_of(row: dict) -> float:
    """The end of the waiting in a release test: where the receiver's last computation ended."""
    return max(e["end"][0] for e in events(row, 1, "@"))


def test_costs(row: dict) -> list[float]:
    return [e["end"][0] - e["begin"][0] for e in events(row, 1, "T")]


def communication_time(row: dict) -> float:
    """Time in calls, of the rank that spends more."""
    return max(
        sum(e["end"][0] - e["begin"][0] for e in row["extra"][side] if e["op"] not in ("c", "@"))
        for side in ("zero", "one")
    )


def whole_time(row: dict) -> float:
    return max(e["end"][0] for side in ("zero", "one") for e in row["extra"][side])
