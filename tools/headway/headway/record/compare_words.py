"""The words of a comparison, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headway.record import classes
from headway.record.again import Change
from headway.record.compare import GONE, NEW, SAME, Comparison, Row
from headway.record.conditions import Condition
from headway.record.parts import BLOCKED, FIRST_CLASS, LEAST, MOST, NEED, TIME
from headway.record.words import clean, range_text, time_text


def percent_text(change: Change) -> str:
    """+5.3 % (4.1 to 6.2)"""
    if not np.isfinite(change.value):
        return "from nothing"
    digits = 1 if abs(change.value) < 0.1 else 0
    value, low, high = (round(100 * end, digits) + 0.0 for end in (change.value, change.low, change.high))
    return f"{value:+.{digits}f} % ({low:.{digits}f} to {high:.{digits}f})"


def time_change_text(change: Change) -> str:
    """-17.6 s (-18.1 to -17.0)"""
    ends = change.value, change.low, change.high
    largest = max(map(abs, ends))
    unit, size = next(((u, s) for u, s in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)) if largest >= s), ("ns", 1.0))
    digits = max(0, 2 - int(np.floor(np.log10(max(1.0, largest / size))))) if size > 1 else 0
    value, low, high = (round(end / size, digits) + 0.0 for end in ends)
    return f"{value:+.{digits}f} {unit} ({low:.{digits}f} to {high:.{digits}f})"


def style(change: Change) -> str:
    return "" if not change.clear else "red" if change.value > 0 else "green"


def where(row: Row) -> str:
    spot, before = row.spot, row.before
    text = f"{spot.site.text} {spot.site.function}".strip()
    if row.state in (NEW, GONE):
        text += f" ({row.state})"
    elif before is not None and before.lined and spot.lined and before.site.line != spot.site.line:
        text += f" (was :{before.site.line})"
    return clean(text)


def what_changed(row: Row, most: int = 3) -> str:
    """late sender -15.1 s, transfer +2.0 s: classes that are clear of nothing, or all of a site that came or went."""
    found = []
    for number, c in enumerate(classes.WAITING):
        change = row.change[FIRST_CLASS + number]
        if change.value and (change.clear or row.state in (NEW, GONE)):
            sign = "+" if change.value > 0 else ""
            found.append((abs(change.value), f"{classes.NAMES[c]} {sign}{time_text(change.value)}"))
    return ", ".join(text for _, text in sorted(found, reverse=True)[:most])


def hidden_text(row: Row) -> str:
    ends = [(v[LEAST] / v[NEED], v[MOST] / v[NEED]) if v[NEED] > 0 else None for v in row.values]
    texts = ["-" if e is None else range_text(*e) for e in ends]
    return "" if ends == [None, None] else texts[0] if texts[0] == texts[1] else f"{texts[0]} -> {texts[1]}"


def words(found: Comparison, most: int = 10) -> RenderableType:
    """For a terminal: the whole, then the sites that changed most."""
    a, b = found.before, found.after
    names = [run.program for run in (*a.runs, *b.runs)]
    first = f"{clean(names[0]) or 'run'}: {a.runs[0].ranks} ranks"
    told = [f"{clean(side.name)} ({len(side.runs)} run{'s' if side.several else ''})" for side in (a, b)]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for head, justify in (("", "left"), ("before", "right"), ("after", "right"), ("change (95 % interval)", "left")):
        table.add_column(head, justify=justify)
    for total in found.totals.values():
        known = total.name in ("duration", "time", "blocked")
        if not known and max(total.before, total.after) * 1000 < max(found.totals["blocked"].before, 1):
            continue
        name = {"time": "in MPI, all ranks", "blocked": "blocked, all ranks"}.get(total.name, total.name)
        table.add_row(
            name if known else f"  {name}",
            time_text(total.before),
            time_text(total.after),
            Text(percent_text(total.ratio), style(total.change)),
        )
    if found.hidden is not None:
        h = found.hidden
        text = "" if h.before == h.after else f"least {percent_text(h.least)}, most {percent_text(h.most)}"
        table.add_row("hidden behind computation", range_text(*h.before), range_text(*h.after), text)
    some = [row for row in found.rows if row.state != SAME]
    parts: list[RenderableType] = [Text(first), Text(f"before: {told[0]}"), Text(f"after:  {told[1]}"), table]
    if some:
        parts.append(sites_table(some[:most]))
        if len(some) > most:
            parts.append(Text(f"and {len(some) - most} more sites: --json has all"))
    same = len(found.rows) - len(some)
    rest = f"{same} other call sites do not differ." if some else f"No call site differs: {same} compared."
    parts.append(Text(rest))
    return Group(*parts, *(Text(f"Note: {clean(note, 500)}") for note in found.notes))


def sites_table(rows: Sequence[Row]) -> Table:
    table = Table(box=None, pad_edge=False)
    for head in ("#", "where", "call", "time", "blocked", "blocked: change", "by class", "hidden"):
        table.add_column(head, justify="right" if head == "#" else "left", overflow="fold")
    for number, row in enumerate(rows, 1):

        def both(column: int) -> str:
            texts = [
                "-" if spot is None else time_text(float(v[column]))
                for spot, v in zip((row.before, row.after), row.values)
            ]
            return " -> ".join(texts)

        blocked = row.change[BLOCKED]
        table.add_row(
            str(number),
            Text(where(row)),
            Text(clean(row.spot.call)),
            both(TIME),
            both(BLOCKED),
            Text(time_change_text(blocked), style(blocked)),
            what_changed(row),
            hidden_text(row),
        )
    return table


def sentence(found: Comparison, condition: Condition) -> str:
    """What a condition came to."""
    change, total = found.change(condition), found.totals[condition.name]
    text = percent_text(change) if condition.share else time_change_text(change)
    whole = f"{condition.name}: {text}, from {time_text(total.before)} to {time_text(total.after)}"
    return f"--fail-if '{clean(condition.text)}': {'so it is' if found.fails(condition) else 'it is not so'}. {whole}"
