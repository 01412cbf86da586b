"""The findings in plain words: a table, and for each MPI what was seen and what to do in a program. Pure.

Every sentence is made of what was measured; none is about an MPI by name.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.measure.statistics import human_size, short
from headway.study import memory
from headway.study.blocking import FORMS, STRATEGY_MESSAGES, TESTS, Blocking, Form
from headway.study.definitions import ARRIVED, COMPLETED, NEVER, memory_bytes
from headway.study.findings import Findings, Of
from headway.study.value import Value, near, percent

HEADLINE = 1 << 20
PEERS = (16, 256, 4096)


@dataclass
class Row:
    what: str
    cells: list[str]  # one an MPI
    bound: str = ""


@dataclass
class Saying:
    """Something seen, and what follows for a program; `do` may be empty."""

    seen: str
    do: str = ""
    missing: bool = False  # it is said what is not known
    tried: bool = False  # what to do was found by trying it beside the other ways
    at_once: bool = False  # what to do is to wait for a send where it stands
    gain: str = ""  # what came of trying it; also of what did not pay


def share(value: Value | None) -> str:
    if value is None:
        return "-"
    text = f"{max(0.0, min(value.median, 1.0)):.2f}"
    return f"{text} ±{value.half:.2f}".replace("±0.", "±.") if value.count > 2 else text


def figure(value: Value | None, unit: str) -> str:
    return "-" if value is None else f"{short(value.median)} {unit}"


def ranges(by_size: dict[int, str]) -> list[tuple[int, int, str]]:
    """Neighbouring sizes of one word together: (first, last, word)."""
    found: list[tuple[int, int, str]] = []
    for size, word in sorted(by_size.items()):
        if found and found[-1][2] == word:
            found[-1] = (found[-1][0], size, word)
        else:
            found.append((size, size, word))
    return found


def between(first: int, last: int) -> str:
    return human_size(first) if first == last else f"{human_size(first)} to {human_size(last)}"


# ---- the table ---------------------------------------------------------------------------------
def best_size(findings: Findings, place: str, measure: str) -> int:
    """The headline's size, or the largest below it that was measured."""
    sizes = {
        s
        for (_, p), of in findings.of.items()
        if p == place
        for s in (*of.curves.get(measure, {}), *(of.copied if measure == "overlap_send" else ()))
    }
    return max((s for s in sizes if s <= HEADLINE), default=max(sizes, default=0))


UNKNOWN = "not found"  # answers to the same question contradicted each other, or there are none


def needs(call: Blocking | None) -> str:
    if call and not call.held:
        return UNKNOWN
    if call is None or not call.looked_to:
        return "-"
    if not call.size:
        told = "not" if call.kind_below == "free" else "not (the transfer)"
        return f"{told} up to {human_size(call.looked_to)}"
    kind = {True: ", together", False: ", each", None: ""}[call.cumulative]
    return f"{near(call.size)}{kind}"


RELEASERS = {"test": "a test of it", "other": "a wait for another request", "timeout": "time alone"}


def lets_go(call: Blocking | None) -> str:
    if call is None or not call.size:
        return "-"
    if call.released.get("other"):
        told, asked = "any wait" + (" or a test" if call.released.get("test") else ""), ["test"]
    else:
        found = ["its receive's wait"] + (["a test of it"] if call.released.get("test") else [])
        if call.released.get("timeout"):
            found.append(f"{short(call.timeout_us / 1e3)} ms")
        told, asked = ", ".join(found), [*RELEASERS]
    if len(asked) > 1 and all(call.released.get(how) is None for how in asked):
        return f"{told} (more is not known)"
    unknown = [RELEASERS[how] for how in asked if call.released.get(how) is None]
    return told + (f" (not known: {', '.join(unknown)})" if unknown else "")


def table(findings: Findings, place: str) -> list[Row]:
    who = [findings.of.get((m, place), Of()) for m in findings.mpis]
    rows = []

    def add(what: str, cells: list[str], bound: str = "") -> None:
        if any(c != "-" for c in cells):
            rows.append(Row(what, cells, bound))

    for measure, name, unit in (
        ("latency", "latency", "µs"),
        ("window", "bandwidth", "MB/s"),
        ("bidir-sends", "bandwidth both ways, sends first", "MB/s"),
        ("bidir", "bandwidth both ways, receives first", "MB/s"),
    ):
        size = best_size(findings, place, measure)
        if measure == "latency":
            size = min((s for of in who for s in of.curves.get(measure, {})), default=0)
        add(f"{name}, {human_size(size)}", [figure(of.curves.get(measure, {}).get(size), unit) for of in who])
    for side, name in (("recv", "receive"), ("send", "send")):
        size = best_size(findings, place, f"overlap_{side}")
        bounds = [of.bound[side][size] for of in who if size in of.bound.get(side, {})]
        cells = [
            (
                "copied ahead"
                if side == "send" and of.copied.get(size)
                else share(of.curves.get(f"overlap_{side}", {}).get(size))
            )
            for of in who
        ]
        add(f"{name} overlap, {human_size(size)}", cells, f"{max(bounds):.2f}" if bounds else "")
    for side, name in (("recv", "receive"), ("send", "send")):
        size = best_size(findings, place, f"progress_{side}")
        add(
            f"{name} progress, {human_size(size)}",
            [share(of.curves.get(f"progress_{side}", {}).get(size)) for of in who],
            "1.00",
        )
    for call, name in (("s", "MPI_Isend needs the receiver from"), ("ws", "a send's wait needs the receiver from")):
        add(name, [needs(of.calls.get(call)) for of in who])
        add("  what lets it go", [lets_go(of.calls.get(call)) for of in who])
    return rows


# ---- all numbers -------------------------------------------------------------------------------
def overlap_numbers(of: Of, side: str) -> list[list[str]]:
    """Beside each overlap: figure 3's times, its bounds, and what it cost the computation."""
    rows = []
    for size, extra in sorted(of.extras.get(f"overlap_{side}", {}).items()):
        l0 = extra["l0_us"]
        overlap = (
            "copied ahead"
            if side == "send" and of.copied.get(size)
            else share(of.curves.get(f"overlap_{side}", {}).get(size))
        )
        if size in of.unsteady.get(f"overlap_{side}", ()):
            overlap += " ~"
        machine = of.bound.get(side, {}).get(size)
        rows.append(
            [
                human_size(size),
                short(l0),
                *(short(extra[t]) for t in ("t1_us", "t2_us", "t3_us")),
                overlap,
                f"{max(0.0, extra['t2_us']) / l0:.2f}",
                "-" if machine is None else f"{machine:.2f}",
                f"{extra['slowdown']:+.0%}" if l0 > LONG else "-",
                of.verdicts.get(side, {}).get(size, "-"),
            ]
        )
    return rows


OVERLAP_HEAD = [
    "size",
    "l0, µs",
    "t1",
    "t2",
    "t3",
    "overlap",
    "its bound, t2 / l0",
    "the machine's",
    "computation",
    "progress",
]
TESTS_HEAD = ["MPI_Testall in the computation", "in all, µs", "shorter by", "one costs, µs"]


STRATEGIES_HEAD = ["a ghost exchange", "in all, µs", "shorter by", "in calls, µs", "shorter by"]


def strategy_numbers(of: Of) -> list[list[str]]:
    rows = []
    for form in FORMS:
        found = of.strategies.get(form.name)
        if not found:
            continue
        first = form.name == form.of
        gains = ["-" if first else percent(v) for v in (found.gain, found.calls_gain)]
        rows.append([form.title, short(found.whole_us.median), gains[0], short(found.calls_us.median), gains[1]])
    return rows


def tests_numbers(of: Of) -> list[list[str]]:
    rows = []
    none = of.tests.get("0", {}).get("whole_us")
    for name, test in of.tests.items():
        told = f"1, after {float(name[3:]):.0%} of it" if name.startswith("at-") else name
        costs = short(float(np.median(test["costs_us"]))) if test["costs_us"] else "-"
        rows.append([told, short(test["whole_us"]), f"{1 - test['whole_us'] / none:.0%}" if none else "-", costs])
    return rows


# ---- sentences ---------------------------------------------------------------------------------
def not_found(of: Of) -> list[Saying]:
    """What was asked and is not known."""
    said = []
    for call, what, more in (
        (of.calls.get("s"), "From which size on MPI_Isend itself needs the receiver", ""),
        (of.calls.get("ws"), "From which size on an MPI_Wait for a send needs the receiver", ""),
        (
            of.left,
            "Up to which size a message leaves without its receiver (where eager ends)",
            " Until then small messages and large ones are not told apart here.",
        ),
    ):
        if call and not call.held:
            why = (
                f"the search gave no answer ({call.failure})"
                if call.failure
                else "answers to the same question contradicted each other, or could not be had, as where others use "
                "the machine"
            )
            said.append(Saying(f"{what} was not found: {why}. headway study --resume asks again.{more}", missing=True))
    return said


def of_calls(of: Of) -> list[Saying]:
    said = not_found(of)
    isend, wait = of.calls.get("s"), of.calls.get("ws")
    if isend and isend.size:
        said.append(
            of_call(isend, "MPI_Isend itself", "Call MPI_Testall for the receives while you compute (figure 7).")
        )
    if wait and wait.size:
        said.append(
            of_call(
                wait,
                "An MPI_Wait for a send",
                "Collect the waits for sends behind those for receives (figure 13)"
                + (
                    ", or leave them there and call MPI_Testall for the receives while you compute (figure 7)."
                    if wait.released.get("test") or wait.released.get("other")
                    else "."
                ),
            )
        )
    if wait and wait.looked_to and wait.held and not wait.size and not (isend and (isend.size or not isend.held)):
        told = (
            "its wait may last as long as the transfer itself"
            if wait.kind_below == "wire"
            else "neither does its wait"
        )
        said.append(
            Saying(
                f"MPI_Isend does not wait for the receiver up to {human_size(wait.looked_to)}, and {told}.",
                (
                    f"Isend and Wait may stand next to each other, up to {human_size(wait.looked_to)}."
                    if wait.kind_below == "free"
                    else "Put the waits for sends as late as you can: they wait for the transfer, not for the receiver."
                ),
                at_once=wait.kind_below == "free",
            )
        )
    return said


def of_call(call: Blocking, name: str, do: str) -> Saying:
    seen = f"{name} returns only when the receiver comes, for messages of {near(call.size)} or more"
    if call.cumulative:
        seen += ", all together that the receiver has not taken (three of a third each do, too)"
    elif call.cumulative is False:
        seen += f", each (three of {near(call.each_of_three // 2)} do not)"
    else:
        seen += " (whether what several take counts together is not known)"
    seen += f". What lets it go: {lets_go(call)}."
    if call.deadlock:
        seen += " Two ranks that send to each other so before they receive wait for ever."
        do += " Never let two ranks send such messages to each other before one of them receives."
    elif call.deadlock is False:
        seen += " Two ranks that have posted their receives and send to each other so do get on."
    return Saying(seen, do)


def of_progress(of: Of) -> list[Saying]:
    said = []
    words = {
        COMPLETED: "is complete when you call MPI again",
        ARRIVED: "has arrived, but is completed only in the next MPI call",
        NEVER: "does not move while you compute: it starts at the next MPI call",
    }
    for side, name in (("recv", "A receive"), ("send", "A send")):
        found = ranges(of.verdicts.get(side, {}))
        if not found:
            continue
        seen = "; ".join(f"{between(a, b)} {words[w]}" for a, b, w in found)
        never = [r for r in found if r[2] == NEVER and r[1] >= 16384]
        do, told = "", ""
        if never and side == "recv":
            do, told = testing_advice(of)
        elif never:
            do = (
                "The data of a send goes only while the sender is in MPI: call MPI_Test for it in the middle of what you "
                "compute behind it."
            )
        said.append(Saying(f"{name} of {seen}.{told}", do))
    return said


def best_tests(of: Of) -> tuple[str, float, float] | None:
    """The number of tests that is best, its gain over none, and what one costs in us."""
    if "0" not in of.tests:
        return None
    none = of.tests["0"]["whole_us"]
    counted = [str(n) for n in TESTS[1:] if str(n) in of.tests] + [n for n in of.tests if n.startswith("at-")]
    if not counted:
        return None
    best = min(counted, key=lambda n: of.tests[n]["whole_us"])
    costs = [c for n in counted for c in of.tests[n]["costs_us"]]
    return best, 1 - of.tests[best]["whole_us"] / none, float(np.median(costs))


def is_a_trend(of: Of) -> bool:
    """Whether most numbers and places of tests gain: one that does among others that do not is chance."""
    none = of.tests["0"]["whole_us"]
    gains = [1 - test["whole_us"] / none for name, test in of.tests.items() if name != "0"]
    return sum(g > 0 for g in gains) * 2 > len(gains)


def testing_advice(of: Of) -> tuple[str, str]:
    """What to do, and what else was seen."""
    best = best_tests(of)
    if best is None:
        return "Call MPI_Testall a few times while you compute.", ""
    name, gain, cost = best
    if gain < 0.02 or not is_a_trend(of):
        return "", (
            " MPI_Testall in the receiver's computation did not make that and the transfer of one message shorter (half of "
            f"these calls took {short(cost)} µs or less)."
        )
    where = (
        "one MPI_Testall in the middle of the computation"
        if name == "1"
        else (
            f"one MPI_Testall after {float(name[3:]):.0%} of the computation"
            if name.startswith("at-")
            else f"{name} calls of MPI_Testall, evenly spread over the computation,"
        )
    )
    told = (
        f"{where} made computation and transfer together {gain:.0%} shorter ({near(of.tests[name]['size'])}); a "
        f"call costs {short(cost)} µs. Try that."
    ).replace("one", "One", 1 if where.startswith("one") else 0)
    return told, ""


TELLS = 2.0  # us: of a shorter communication the calls themselves are most
LONG = 200.0  # us: a shorter computation is slowed by anything


def of_overlap(of: Of, place: str) -> list[Saying]:
    """Below and from the switch on apart."""
    said = []
    for side, name, call in (("recv", "Receives", "MPI_Irecv"), ("send", "Sends", "MPI_Issend")):
        for eager in (True, False):
            sizes = {
                s: v.median
                for s, v in of.curves.get(f"overlap_{side}", {}).items()
                if (s < of.switch) == eager and of.extras[f"overlap_{side}"][s]["l0_us"] >= TELLS
            }
            if sizes:
                kind = "" if not of.switch else "Eager " if eager else "Rendezvous "
                said.append(of_overlaps(of, place, side, (kind + name.lower()).capitalize(), call, sizes))
    size = max((s for s in of.both if s <= HEADLINE), default=0)
    if size:
        said.append(
            Saying(
                f"Where both sides compute all the time, no more than {of.both[size]:.2f} of {human_size(size)} can be "
                "hidden on this machine: without a network card the copy takes core time from them."
            )
        )
    if of.copied:
        sizes = sorted(of.copied)
        said.append(
            Saying(
                f"Sends of {between(sizes[0], sizes[-1])} are over at once, because they are copied ahead: "
                "there is nothing to hide at the sender."
            )
        )
    return said


def of_overlaps(of: Of, place: str, side: str, name: str, call: str, large: dict[int, float]) -> Saying:
    words = {s: "hide" if v >= 0.8 else "hide partly" if v >= 0.3 else "do not hide" for s, v in large.items()}
    told = {
        "hide": "can be hidden behind computation",
        "hide partly": "can be hidden in part",
        "do not hide": "cannot be hidden",
    }
    seen = "; ".join(
        f"{between(a, b)} {told[w]} ({max(0.0, np.median([large[s] for s in large if a <= s <= b])):.2f})"
        for a, b, w in ranges(words)
    )
    return Saying(f"{name} of {seen}.{because(of, side, call, large, place)}")


def because(of: Of, side: str, call: str, large: dict[int, float], place: str) -> str:
    low = [s for s, v in large.items() if v < 0.8]
    if not low:
        return ""
    size = min(low, key=lambda s: large[s])
    extra = of.extras[f"overlap_{side}"][size]
    l0, bound = extra["l0_us"], of.bound.get(side, {}).get(size)
    parts = {f"the call itself ({call})": extra["t1_us"], "the wait behind it": extra["t3_us"]}
    name, longest = max(parts.items(), key=lambda p: p[1])
    if longest > 0.4 * l0:
        return f" At {human_size(size)} {min(1.0, longest / l0):.0%} of the work is done in {name}."
    if bound is not None and bound < large[size] + 0.15 and bound < 0.8:
        what = (
            "two cores copy faster than one, and one computes" if place == "shm" else "its core must copy the message"
        )
        return f" At {human_size(size)} this machine allows {bound:.2f}: {what}."
    if extra.get("slowdown", 0) > 0.05 and l0 > LONG:
        return f" At {human_size(size)} the computation itself became {extra['slowdown']:.0%} slower."
    return ""


# What the paper's two pairs of forms do, by the form that others are compared with.
BEHIND = {"6": "computation behind the sends", "12": "no computation behind the sends"}


def of_strategies(of: Of) -> list[Saying]:
    """Which of the papers' forms pays here, by measurement."""
    said = []
    for base, behind in BEHIND.items():
        forms = {f.name: f for f in FORMS if f.of == base and f.name in of.strategies}
        if base not in forms or len(forms) < 2:
            continue
        others = [n for n in forms if n != base]
        best = max(others, key=lambda n: of.strategies[n].gain.median)
        found = of.strategies[best]
        what = f"A ghost exchange of {STRATEGY_MESSAGES} messages of {near(found.size)} each way, under imbalance, and {behind}"
        sure = found.gain.median > 0.02 and (found.gain.count < 3 or found.gain.low > 0)
        lost = losses(of, forms, others)
        if sure:
            seen = f"{what}, took {percent(found.gain)} less time"
            if found.calls_gain.median > 0:
                seen += f" ({percent(found.calls_gain)} less in calls)"
            seen += f" than with each Isend followed by its wait.{lost}"
            gain = f"{percent(found.gain)} with {behind} ({forms[best].says.rstrip(',')})"
            said.append(Saying(seen, forms[best].do, tried=True, gain=gain))
        else:
            seen = f"{what}, is in no other form quicker than with each Isend followed by its wait.{lost}"
            longest = max(longer(of, others), key=lambda name: -of.strategies[name].gain.median, default="")
            more = f", and {more_time(of, longest)} more by {forms[longest].says.rstrip(',')}" if longest else ""
            said.append(Saying(seen, gain=f"nothing with {behind}{more}"))
    return said


def longer(of: Of, others: list[str]) -> list[str]:
    """Forms that took longer: whoever writes one of them, perhaps by another MPI's advice, is to know."""
    gains = {name: of.strategies[name].gain for name in others}
    return [n for n, gain in gains.items() if gain.median < -0.05 and (gain.count < 3 or gain.high < 0)]


def more_time(of: Of, name: str) -> str:
    gain = of.strategies[name].gain
    return percent(Value(-gain.median, -gain.high, -gain.low, gain.count))


def losses(of: Of, forms: dict[str, Form], others: list[str]) -> str:
    found = [f"{forms[name].says} took {more_time(of, name)} more" for name in longer(of, others)]
    return f" But {', '.join(found)}." if found else ""


def of_pieces(of: Of) -> list[Saying]:
    if set(of.pieces) < {1, 3, 10} or not of.blocks:
        return []
    kinds = {n: of.pieces[n]["kind"] for n in (1, 3, 10)}
    blocked = [n for n in (3, 10) if kinds[n] == "blocks"]
    if kinds[1] != "blocks":
        return []
    size = human_size(of.pieces[1]["size"]) if of.pieces[1]["size"] % 1024 == 0 else near(of.pieces[1]["size"])
    if len(blocked) == 2:
        return [
            Saying(f"Breaking a message of {size} into 3 or 10 pieces does not help: the last of them waits, too.")
        ]
    free = [str(n) for n in (3, 10) if n not in blocked]
    return [Saying(f"A message of {size} needs its receiver; the same in {' or '.join(free)} pieces does not.")]


def of_memory(of: Of, place: str, limits: dict) -> list[Saying]:
    if not of.blocks:
        return []
    size = 2 * of.blocks
    measured = memory.words(of.memory, size)
    text = ", ".join(f"{near(memory_bytes(size, n))} with {n:,}" for n in PEERS)
    told = ""
    if place != "shm" and limits:
        told = (
            f" Linux gives a socket {near(limits['tcp_wmem'])} to send from at most (net.ipv4.tcp_wmem), "
            f"{near(limits['wmem_max'])} if a program asks for it (net.core.wmem_max)."
        )
    if measured:
        return [Saying(measured + told)]
    vain = of.memory and of.memory.option and of.memory.size in (0, size)
    how = f"computed: {of.memory.option} was tried and gave too few results" if vain else "computed, not tried"
    return [
        Saying(
            f"Raising the limit to {near(size)} instead takes memory for one such message to each peer: {text} "
            f"peers ({how}).{told}"
        )
    ]


def of_switch(of: Of) -> list[Saying]:
    """Where eager ends, and that a call may need the receiver before."""
    if not of.switch:
        return []
    said = (
        "Small messages go at once (eager), larger ones only with their receiver (rendezvous): the switch lies at "
        f"{near(of.switch)}."
    )
    if of.blocks and of.blocks < 0.9 * of.switch:
        said += (
            f" From {near(of.blocks)} on a send completes only when its receiver calls MPI, although its message has "
            "left: it can be written over, but its wait cannot end."
        )
    return [Saying(said)]


def sayings(of: Of, place: str, limits: dict | None = None) -> list[Saying]:
    return [
        *(of_switch(of) if place else []),
        *of_calls(of),
        *of_strategies(of),
        *of_pieces(of),
        *of_progress(of),
        *of_overlap(of, place),
        *of_memory(of, place, limits or {}),
    ]
