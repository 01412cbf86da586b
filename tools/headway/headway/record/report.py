"""The page of advice: one HTML file that opens without a network and without scripts, light or dark as its reader has it.

It has what the terminal and the JSON have, in the same words and from the same numbers: nothing is counted anew here.
Cells carry their number in data-v. Names come from a recording and are text, nothing else.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headway.record import advise, by_site, classes, edits, matrix, page, tried_words, whole
from headway.record.advise import Advice, Advices
from headway.record.library import Library
from headway.record.page import cell, more, paragraph, table
from headway.record.trace import title_of
from headway.record.transfer_time import WHERE
from headway.record.trying import Tried
from headway.record.words import bytes_text, clean, count_text, range_text, share_text, time_text

PAGE = "report.html"
MOST_SITES = 200  # rows of a table
MOST_COMMS = 50
MOST_MODELS = 40
ROWS = 64  # of a picture of the matrix
SIDE, LEFT, TOP = 400, 60, 24  # of it, and room for names of ranks
SHADES = 8

ABOUT = (
    "Hidden: of what the wire needed, what ran while ranks computed. From outside nobody sees when data move, so there is a "
    "lower and an upper bound. Parallel efficiency is the share of time in which ranks compute, and the product of the other "
    "three. Load balance is low if some ranks have more work, serialisation if ranks wait for each other in turn, transfer "
    "if the network takes time."
)
OF_ADVICE = (
    "In this order: what one gives it gives behind those before it. Promised is the least over all models that fit the run."
)
OF_SITES = (
    "Times are those of all ranks together. Because: who caused most of the largest class, and the stretch of code in which it "
    "was later. Hidden: of messages that began there, of what the wire needed."
)
OF_PAIRS = (
    "Senders from top to bottom, receivers from left to right. Waiting: in calls that waited for a message between the two, "
    "both ranks together."
)


@dataclass
class Told:
    """All that `headway advise` has to say of a run."""

    report: by_site.Report
    given: Advices
    own: Library | None  # what our library did by itself
    tried: Tried | None = None


# ---- parts of pages ------------------------------------------------------------------------------
def bar(parts: Iterable[tuple[float, str, str]], label: str) -> str:
    """Shares of 1 beside each other: each with a class of the style sheet and what it is."""
    at, drawn = 0.0, []
    for share, kind, what in parts:
        wide = min(max(share, 0.0), 1.0 - at)
        if wide > 0:
            title = f"<title>{html.escape(clean(what))}</title>"
            drawn.append(f'<rect class={kind} x="{1000 * at:.1f}" width="{1000 * wide:.1f}" height="10">{title}</rect>')
        at += wide
    name = html.escape(clean(label))
    return f'<svg class=bar viewBox="0 0 1000 10" preserveAspectRatio=none role=img aria-label="{name}">{"".join(drawn)}</svg>'


def from_to(least: float, most: float, whole: float) -> str:
    """A cell of two shares of something."""
    if whole <= 0:
        return cell("")
    return f'<td data-least="{least:.12g}" data-most="{most:.12g}">{range_text(least / whole, most / whole)}'


def by_class(parts: np.ndarray, whole: float) -> list[tuple[float, str, str]]:
    """Of a bar. `parts`: ns by class."""
    some = [(c, float(parts[c])) for c in classes.WAITING if parts[c] > 0 and whole > 0]
    return [(ns / whole, f"k{c}", f"{classes.NAMES[c]} {time_text(ns)}") for c, ns in some]


def key(c: int) -> str:
    return f'<td class=w><span class="key k{c}"></span>{html.escape(classes.NAMES[c])}'


# ---- what of the run -----------------------------------------------------------------------------
def run(found: by_site.Report) -> str:
    parts, whole_time = found.waiting.waited, float(found.whole)
    shares = by_class(parts, whole_time)
    other = max(0.0, whole_time - found.waited)
    if whole_time:
        shares.append((other / whole_time, f"k{classes.COMPUTING}", f"not waiting {time_text(other)}"))
    rows = [
        f"<tr>{key(c)}" + cell(classes.CLASSES[c].meaning, words=True) + cell(time_text(parts[c]), parts[c])
        + cell(share_text(parts[c], whole_time))
        for c in sorted(classes.WAITING, key=lambda c: -parts[c]) if parts[c]
    ]  # fmt: skip
    heads = [("class", True), ("meaning", True), ("time of all ranks", False), ("share", False)]
    text = by_site.waiting_text(found)
    lines = [text, *by_site.busy(found)]
    return (
        "<h2>Where the time went</h2>" + "".join(map(paragraph, lines)) + bar(shares, text) + table(heads, rows) * bool(rows)
        + gauges(found) + f"<p class=quiet>{html.escape(ABOUT)}</p>"
    )  # fmt: skip


def gauges(found: by_site.Report) -> str:
    """Hidden communication and the parallel efficiency."""
    e, hidden = found.efficiency, found.hidden
    rows, lines = [], by_site.of_run(found)
    if hidden.share is not None:
        low, high = hidden.share
        both = bar([(low, "sure", "at least"), (high - low, "maybe", "at most")], lines[0])
        rows.append(f"<tr><td class=w>hidden communication<td>{both}{from_to(low, high, 1)}")
    for name, share in (
        ("parallel efficiency", e.parallel),
        ("= load balance", e.balance),
        ("× serialisation", e.serialisation),
        ("× transfer", e.transfer),
    ):
        drawn = bar([(share, "sure", name)], name)
        rows.append(f"<tr><td class=w>{name}<td>{drawn}" + cell(f"{100 * share:.0f} %", share))
    return "".join(map(paragraph, lines)) + f"<table class=gauges>{''.join(rows)}</table>"


# ---- what to change ------------------------------------------------------------------------------
def advice(given: Advices) -> str:
    parts = ["<h2>What to change</h2>"]
    if given.why:
        parts.append(paragraph(given.why, "note"))
    if given.advice:
        parts.append(f"<p class=quiet>{OF_ADVICE}</p><ol class=advice>{''.join(piece(given, one) for one in given.advice)}</ol>")
    parts += map(paragraph, besides(given))
    if given.told:
        rows = "".join(f'<li class=told data-most="{one.most}">{sentence(given, one)}' for one in given.told)
        parts.append(f"<h3>Told, and not promised</h3><ul>{rows}</ul>")
    measured = [*advise.facts_text(given.facts), given.aside, given.missing]
    if any(measured):
        parts.append("<h3>What was measured of this MPI</h3>" + "".join(paragraph(line) for line in measured if line))
    return "".join(parts)


def piece(given: Advices, one: Advice) -> str:
    duration = max(1, given.duration)
    least, most = advise.amount(given, one.least), advise.amount(given, one.most)
    gain = f"Promised: at least {least}, at most {most} of {time_text(given.duration)}"
    if one.doubt:
        gain = f"At most {most} of {time_text(given.duration)}; not promised"
    shares = [(one.least / duration, "sure", f"at least {least}"), ((one.most - one.least) / duration, "maybe", f"up to {most}")]
    return (
        f'<li data-least="{one.least}" data-most="{one.most}"><p class=do>{sentence(given, one)}</p>{bar(shares, gain)}'
        + paragraph(gain, "gain") + paragraph(f"Look first: {edits.CHECK[one.change.kind]}", "check")
    )  # fmt: skip


def sentence(given: Advices, one: Advice) -> str:
    return html.escape(clean(advise.sentence(given, one), page.MOST_TEXT)) + "."


def besides(given: Advices) -> list[str]:
    """What the terminal says of the advice as a whole; the rest of its lines have places of their own here."""
    lines = [getattr(line, "plain", "") for line in getattr(advise.words(given), "renderables", ())]
    own = {given.why, *advise.told(given), *advise.facts_text(given.facts), f"{given.aside}.", given.missing}
    own |= {f"{number}. {advise.sentence(given, one)}" for number, one in enumerate(given.advice, 1)}
    own |= {f"   Look first: {check}." for check in edits.CHECK.values()}
    return [line for line in lines if line not in own]


# ---- by call site --------------------------------------------------------------------------------
def sites(found: by_site.Report) -> str:
    if not found.rows:
        return ""
    named = [c for c in classes.WAITING if any(row.by_class[c] for row in found.rows)]
    largest = float(max(row.blocked for row in found.rows))
    rows = []
    for row in found.rows[:MOST_SITES]:
        least, most, need = row.hidden or (0, 0, 0)
        blocked = time_text(row.blocked) if row.blocked else ""
        drawn = bar(by_class(row.by_class, largest), blocked) if row.blocked else ""
        rows.append(
            "<tr class=site>" + cell(by_site.where(row) or "unknown", words=True) + cell(row.call, words=True)
            + cell(by_site.because(row), words=True) + cell(blocked, row.blocked) + f"<td>{drawn}"
            + "".join(cell(time_text(row.by_class[c]) if row.by_class[c] else "", row.by_class[c]) for c in named)
            + from_to(least, most, need) + cell(count_text(row.count), row.count) + cell(time_text(row.time), row.time)
        )  # fmt: skip
    heads = [("where", True), ("call", True), ("because", True), ("blocked", False), ("for", True)]
    heads += [(name, False) for name in (*(classes.NAMES[c] for c in named), "hidden", "calls", "time")]
    return (
        f"<h2>By call site</h2><p class=quiet>{OF_SITES}</p>" + table(heads, rows)
        + more(len(found.rows), len(rows), "call sites, most blocked first")
    )  # fmt: skip


# ---- who sends to whom ---------------------------------------------------------------------------
def who_sends(found: by_site.Report) -> str:
    pairs = matrix.matrix(found.waiting)
    ranks = 1 + max((rank.rank for rank in found.waiting.line.run.ranks), default=0)
    small = pairs.folded(max(1, ranks), ROWS)
    parts = []
    if small.messages.any():
        drawn = picture(small, small.bytes, "Bytes", bytes_text) + picture(small, small.waiting, "Waiting", time_text)
        parts.append(
            f"<div id=pictures>{drawn}</div><p class=quiet>{OF_PAIRS}</p>"
            + page.table_of_pairs(small.messages, small.bytes, small.waiting, small.name)
        )
    texts = count_text, count_text, bytes_text, time_text, count_text, time_text
    rows = [
        "<tr>" + cell(name, words=True) + "".join(cell(text(value), value) for text, value in zip(texts, of))
        for name, *of in communicators(pairs)
    ]
    if rows:
        heads = [(h, False) for h in ("ranks", "messages", "bytes", "waiting", "collectives", "waiting for them")]
        parts.append("<h3>By communicator</h3>" + table([("communicator", True), *heads], rows[:MOST_COMMS]))
        parts.append(more(len(rows), min(len(rows), MOST_COMMS), "communicators, most waited for first"))
    return "<h2>Who sends to whom</h2>" + "".join(parts) if parts else ""


def communicators(pairs: matrix.Matrix) -> list[tuple]:
    """In which something was sent, most waiting first."""
    columns = (
        pairs.comm_sizes, pairs.comm_messages, pairs.comm_bytes, pairs.comm_waiting, pairs.comm_collectives,
        pairs.comm_together,
    )  # fmt: skip
    rows = [row for row in zip(pairs.comm_names, *(c.tolist() for c in columns)) if row[2] or row[5]]
    return sorted(rows, key=lambda row: -row[4] - row[6])


def shade(value: int, most: int) -> int:
    """1 to SHADES: the next lighter one is of half as much."""
    return max(1, SHADES + int(np.floor(np.log2(value / most))))


def picture(small: matrix.Folded, values: np.ndarray, what: str, text_of: Callable[[float], str]) -> str:
    wide, most = len(values), int(values.max())
    cells = []
    for source, target in zip(*np.nonzero(small.messages)):
        value = int(values[source, target])
        if value <= 0:
            continue
        told = (
            f"{small.name(source)} → {small.name(target)}: {bytes_text(small.bytes[source, target])}, "
            f"{count_text(int(small.messages[source, target]))} messages, waiting {time_text(small.waiting[source, target])}"
        )
        cells.append(
            f'<rect class=s{shade(value, most)} x="{target}" y="{source}" width="1" height="1"><title>{told}</title></rect>'
        )
    side = SIDE / wide
    names = []
    for row in range(0, wide, -(-wide // 8)):
        at, name = side * (row + 0.5), str(row * small.group)
        names.append(f'<text x="{LEFT - 6}" y="{TOP + at + 4:.1f}" text-anchor="end">{name}</text>')
        names.append(f'<text x="{LEFT + at:.1f}" y="{TOP - 8}" text-anchor="middle">{name}</text>')
    told, least = "none", text_of(most / 2 ** (SHADES - 2))
    if most > 0:
        told = f"the strongest is {text_of(most)}, each weaker shade half as much, the weakest all below {least}"
    shared = f" A row is {small.group} ranks." if small.group > 1 else ""
    return (
        f'<figure><svg viewBox="0 0 {LEFT + SIDE + 6} {TOP + SIDE + 6}" role=img aria-label="{what} by sender and receiver">'
        f'<rect class=field x="{LEFT}" y="{TOP}" width="{SIDE}" height="{SIDE}"></rect>{"".join(names)}'
        f'<g transform="translate({LEFT} {TOP}) scale({side:.4f})">{"".join(cells)}</g></svg>'
        f"<figcaption>{what}: {told}.{shared}</figcaption></figure>"
    )


# ---- what was tried, and notes -------------------------------------------------------------------
def of_try(tried: Tried | None) -> str:
    if tried is None:
        return ""
    rows = [
        f"<tr>{cell(number, number)}{cell(time_text(before), before)}{cell(time_text(after), after)}"
        for number, (before, after) in enumerate(tried.pairs, 1)
    ]
    shown = table([("pair", False), ("without", False), ("with it", False)], rows) if rows else ""
    return f"<h2>What --try {tried.number} measured</h2>" + "".join(map(paragraph, tried_words.words(tried))) + shown


def notes(told: Told) -> str:
    said = by_site.notes(told.report)
    shown = "".join(f"<p class=note>{html.escape(note)}</p>" for note in said[: page.MOST_NOTES])
    shown += more(len(said), min(len(said), page.MOST_NOTES), "notes")
    rests = transfers(told.report) + models(told.given)
    if rests:
        shown += f"<details><summary>What this rests on</summary>{rests}</details>"
    return f"<h2>Notes</h2>{shown}" if shown else ""


def transfers(found: by_site.Report) -> str:
    rows = [
        f"<tr>{cell(place, words=True)}{cell(time_text(line.latency), line.latency)}"
        f"{cell(f'{line.per_byte:.3g} ns', line.per_byte)}{cell(count_text(line.messages), line.messages)}"
        for place, line in zip(WHERE, found.waiting.transfer.lines)
        if line.messages
    ]
    heads = [("a transfer needs", True), ("at least", False), ("a byte", False), ("messages it was learned from", False)]
    return table(heads, rows) if rows else ""


def models(given: Advices) -> str:
    rows = [
        f"<tr>{cell(one.model.text, words=True)}{cell('yes' if one.fits else 'no')}"
        + (cell("it hangs") + 2 * cell("") if one.outcome is None else
           cell(f"{100 * one.miss:.1f} %", one.miss) + cell(f"{100 * one.elsewhere:.1f} %", one.elsewhere)
           + cell(time_text(one.outcome.duration), one.outcome.duration))
        for one in given.fits[:MOST_MODELS]
    ]  # fmt: skip
    if not rows:
        return ""
    names = "model of the transport", "fits", "its replay misses by", "in other calls", "its time"
    heads = [(name, name == names[0]) for name in names]
    return "<p></p>" + table(heads, rows) + more(len(given.fits), len(rows), "models")


# ---- the page ------------------------------------------------------------------------------------
def style() -> str:
    kinds = "".join(f".k{k} {{ background: {c.colour}; fill: {c.colour}; }}\n" for k, c in enumerate(classes.CLASSES))
    shades = "".join(f".s{k} {{ fill-opacity: {k / SHADES:.3f}; }}\n" for k in range(1, SHADES + 1))
    return (page.HERE / "report.css").read_text(encoding="utf-8") + kinds + shades


def render(told: Told) -> str:
    found, look = told.report, style()
    recorded = found.waiting.line.run
    title = html.escape(title_of(recorded))
    policy = f"default-src 'none'; style-src {page.fingerprint(look)}"
    folder = clean(recorded.folder)
    return "\n".join(
        (
            "<!doctype html><html lang=en><head><meta charset=utf-8>"
            f'<meta http-equiv=Content-Security-Policy content="{policy}">'
            '<meta name=viewport content="width=device-width, initial-scale=1"><meta name=color-scheme content="light dark">'
            f"<title>{title}: advice</title><style>{look}</style></head><body>",
            f"<h1>{title}</h1><p>{html.escape(by_site.about(found))}</p>",
            run(found),
            advice(told.given),
            sites(found),
            page.by_library(told.own),
            who_sends(found),
            of_try(told.tried),
            notes(told),
            f"<p class=quiet>The same for programs: {html.escape(f'headway advise {folder} --json')}. A time line: "
            f"{html.escape(f'headway trace {folder}')}.</p></body></html>\n",
        )
    )


def write(told: Told, folder: Path) -> Path:
    """NotWritten, a sentence, where that cannot be."""
    folder, text = whole.folder(folder), render(told)
    return whole.whole(folder / PAGE, lambda path: path.write_text(text, encoding="utf-8"))


def pointer(file: Path, recorded: Path, width: int) -> str:
    """Where the page is, and what else there is, as far as a line holds it."""
    parts: Sequence[str] = (f"{file} (pictures, matrix)", "--json", f"headway compare {recorded} headway-run-N")
    while len(parts) > 1 and len("   ".join(parts)) > width:
        parts = parts[:-1]
    return clean("   ".join(parts), page.MOST_TEXT)
