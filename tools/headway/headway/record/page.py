"""The page of a trace: one HTML file that opens without a network, and tells what it holds without JavaScript, too.

Arrays lie in it deflated and in base64; names are text and nothing else: the browser may run the one script whose hash
the page names, and load nothing.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headway.record import calls, classes, library
from headway.record.summary import Summary
from headway.record.words import bytes_text, clean, count_text, ranks_text, share_text, time_text

if TYPE_CHECKING:
    from headway.record.detail import Stretch

HERE = Path(__file__).resolve().parent
SCRIPTS = ("page_view.js", "page.js")  # one behind the other, as one
LIMIT = 30_000_000  # bytes of a page
DETAIL = 12_000_000  # of these, for single calls of a large run
MOST_ROWS = 200  # of a table
MOST_RANKS = 64
MOST_PAIRS = 20
MOST_NOTES = 50
LEAST_KEPT = 1000
MOST_TEXT = 2000  # characters of a sentence

HELP = (
    "A row is a rank, left to right is time. Wheel: zoom in time; Shift and wheel: other rows; Ctrl and wheel: height "
    "of rows; drag: move; Shift and drag: zoom to a stretch; double click: zoom in. Keys: arrows, Page Up and Down, + "
    "and −, Shift and Up or Down for the height of rows, Home for all."
)
TOLD = (
    "Colours say what a rank waits for; a row that is high enough is filled by the share of each. A call is of one "
    "class as a whole."
)
STRIPS = (
    "The thin strips in a row are what our library did by itself: faults above the releases that they lie in, "
    "prefetches, and its message thread. They are drawn where rows are high enough."
)
NOT_TOLD = (
    "Waits are not told apart in this page: all time in MPI has one colour. `headway advise` tells what calls wait for."
)

APP = """<div id=bar><span id=buttons></span>
<label>search <input type=search id=search placeholder="call or file:line" autocomplete=off></label>
<span id=found class=quiet role=status></span>
<label><input type=checkbox id=arrows checked> messages</label> <span id=arrowcount class=quiet></span>
<span id=window class=quiet></span></div>
<div id=legend role=group aria-label=Classes></div>
<div id=frame><canvas id=line tabindex=0 role=img
aria-label="Time line of all ranks; the tables below tell the same in numbers"></canvas></div>"""


def _array_kind(a: np.ndarray) -> tuple[str, np.ndarray]:
    for name, kind in (("u1", np.uint8), ("u4", "<u4"), ("i4", "<i4"), ("f4", "<f4"), ("f8", "<f8")):
        if a.dtype == np.dtype(kind):
            return name, a
    return "f8", a.astype("<f8")  # int64: whole up to 2^53


def packed(arrays: dict[str, np.ndarray]) -> tuple[list[list], str]:
    """Where each array lies, and all of them: in base64, deflated."""
    index, parts, at = [], [], 0
    for name, a in arrays.items():
        kind, a = _array_kind(np.ascontiguousarray(a).ravel())
        text = a.tobytes()
        index.append([name, kind, at, len(a)])
        fill = -len(text) % 8
        parts += [text, b"\0" * fill]
        at += len(text) + fill
    return index, base64.b64encode(zlib.compress(b"".join(parts), 6)).decode()


def of_rows(s: Summary) -> dict[str, np.ndarray]:
    names = {h: i for i, h in enumerate(dict.fromkeys(s.hosts))}
    return {
        "ranks": s.ranks.astype("<i4"),
        "hosts": np.array([names[h] for h in s.hosts], "<u4"),
        "threads": s.threads.astype("<i4"),
    }


def of_shares(s: Summary) -> tuple[list[int], dict[str, np.ndarray]]:
    """Classes that occur, and their planes."""
    planes = [k + 1 for k in range(classes.COUNT - 1) if s.shares[k].any()]
    return planes, {"all": s.shares[[k - 1 for k in planes]]} if planes else {}


def of_kept(s: Summary) -> dict[str, np.ndarray]:
    return {name: s.kept[name] for name in s.kept.dtype.names if name != "waits"}


def of_messages(s: Summary) -> dict[str, np.ndarray]:
    return {name: s.arrows[name] for name in s.arrows.dtype.names}


def of_detail(stretch: Stretch) -> dict[str, np.ndarray]:
    """Times from the stretch's begin, in 32 bits where they fit."""
    found = {name: stretch.rows[name] for name in stretch.rows.dtype.names if name != "waits"}
    for name, since in (("begin", stretch.begin), ("time", 0)):
        ns = found[name] - since
        fits = len(ns) and int(ns.max()) < 1 << 31 and int(ns.min()) >= -(1 << 31)
        found[name] = ns.astype("<i4") if fits else ns
    return found


def details(s: Summary) -> tuple[list[dict], dict[str, tuple[list[list], str]]]:
    """Stretches, the most wanted first, as far as they fit; and their arrays."""
    told, made, left = [], {}, DETAIL
    for number, stretch in enumerate(s.detail):
        index, text = packed(of_detail(stretch))
        left -= len(text)
        if left < 0:
            break
        made[f"detail-{number}"] = index, text
        told.append({"from": stretch.begin, "to": stretch.end, "calls": len(stretch.rows)})
    return told, made


def of_matrix(s: Summary) -> dict[str, np.ndarray]:
    return dict(zip(("messages", "bytes", "waited"), s.matrix))


def fit(s: Summary, limit: int) -> tuple[Summary, list[int], dict[str, tuple[list[list], str]]]:
    """As much as fits: the largest part is halved until all do."""
    made: dict[str, tuple[list[list], str]] = {}
    while True:
        planes, shares = of_shares(s)
        for name, arrays in (
            ("rows", lambda: of_rows(s)),
            ("shares", lambda: shares),
            ("kept", lambda: of_kept(s)),
            ("messages", lambda: of_messages(s)),
            ("matrix", lambda: of_matrix(s)),
        ):
            if name not in made:
                made[name] = packed(arrays())
        size = {name: len(text) for name, (_, text) in made.items()}
        if sum(size.values()) <= limit:
            return s, planes, made
        choices = []
        if s.bins % 2 == 0 and s.bins > 16:
            choices.append("shares")
        if len(s.kept) > LEAST_KEPT:
            choices.append("kept")
        if len(s.arrows) > LEAST_KEPT:
            choices.append("messages")
        if not choices:
            return s, planes, made
        largest = max(choices, key=lambda name: size[name])
        del made[largest]
        if largest == "shares":
            halves = s.shares.reshape(*s.shares.shape[:2], -1, 2).astype(np.uint16)
            s = replace(s, bins=s.bins // 2, shares=((halves.sum(axis=3) + 1) // 2).astype(np.uint8))
        elif largest == "kept":
            longest = np.argpartition(-s.kept["time"], len(s.kept) // 2)[: len(s.kept) // 2]
            s = replace(s, kept=s.kept[np.sort(longest)], all_kept=False)
        else:
            s = replace(s, arrows=s.arrows[: len(s.arrows) // 2])


def cell(text: object, value: float | None = None, words: bool = False) -> str:
    mark = (" class=w" if words else "") + ("" if value is None else f' data-v="{value:.12g}"')
    return f"<td{mark}>{html.escape(clean(text))}"


def paragraph(text: str, kind: str = "") -> str:
    """A sentence, as the terminal has it without its ends."""
    text = clean(text, MOST_TEXT).rstrip(".")
    return f"<p{kind and f' class={kind}'}>{html.escape(text[:1].upper() + text[1:])}.</p>"


def table(heads: list[tuple[str, bool]], rows: list[str]) -> str:
    head = "".join(f"<th{' class=w' if words else ''}>{html.escape(text)}" for text, words in heads)
    body = "".join(rows)
    return f"<div class=table tabindex=0><table class=sort><thead><tr>{head}</thead><tbody>{body}</tbody></table></div>"


def more(count: int, shown: int, what: str) -> str:
    return f"<p class=quiet>{count_text(shown)} of {count_text(count)} {what}.</p>" if count > shown else ""


def where_the_time_went(s: Summary) -> str:
    total = s.by_class()
    whole = float(s.threads.sum()) * s.duration
    total[classes.COMPUTING] = max(0.0, whole - total[1:].sum())
    rows = []
    for k, c in enumerate(classes.CLASSES):
        if total[k] or k == classes.COMPUTING:
            key = f'<td class=w><span class="key k{k}"></span>{html.escape(c.name)}'
            share = total[k] / whole if whole else 0
            rows.append(
                "<tr>"
                + key
                + cell(c.meaning, words=True)
                + cell(time_text(total[k]), total[k])
                + cell(share_text(total[k], whole), share)
            )
    heads = [("what", True), ("meaning", True), ("time of all ranks", False), ("share", False)]
    return "<h2>Where the time went</h2>" + table(heads, rows)


def longest_waits(s: Summary) -> str:
    found = s.waits()
    if not len(found):
        return ""
    rows = []
    for w in found:
        peer, tag, world = int(w["peer"]), int(w["tag"]), int(w["world"])
        to = {-1: "", -2: "any"}.get(peer, f"{peer} (rank {world})" if world not in (-1, peer) else peer)
        rows.append(
            f'<tr data-row={w["row"]} data-begin={w["begin"]} data-time={max(1, w["time"])}>'
            + cell(time_text(w["time"]), w["time"])
            + cell(s.ranks[w["row"]], s.ranks[w["row"]])
            + cell(s.texts.all[w["name"]], words=True)
            + cell(s.texts.all[w["site"]], words=True)
            + cell(classes.NAMES[w["class"]] if s.told else "", words=True)
            + cell(to, peer)
            + cell({-1: "", -2: "any"}.get(tag, tag), tag)
            + cell(bytes_text(w["bytes"]) if w["bytes"] else "", w["bytes"])
            + cell(time_text(w["begin"]), w["begin"])
        )
    heads = [
        ("time", False),
        ("rank", False),
        ("call", True),
        ("where", True),
        ("waits for", True),
        ("peer", False),
        ("tag", False),
    ]
    title = "The longest waits" if s.told else "The longest calls that may wait"
    return f"<h2>{title}</h2>" + table([*heads, ("bytes", False), ("from", False)], rows)


def group_name(s: Summary, k: int) -> str:
    return ranks_text(k, s.group, s.size)


def table_of_pairs(count: np.ndarray, size: np.ndarray, waited: np.ndarray, name: Callable[[int], str]) -> str:
    """Those that send most bytes; all by sender and receiver."""
    pairs = np.argsort(-size, axis=None, kind="stable")[:MOST_PAIRS]
    rows = []
    for a, b in zip(*np.unravel_index(pairs, count.shape)):
        if count[a, b]:
            rows.append(
                "<tr>" + cell(name(a), a) + cell(name(b), b)
                + cell(count_text(int(count[a, b])), count[a, b]) + cell(bytes_text(size[a, b]), size[a, b])
                + cell(time_text(waited[a, b]), waited[a, b])
            )  # fmt: skip
    heads = [("from rank", False), ("to rank", False), ("messages", False), ("bytes", False), ("waited", False)]
    return table(heads, rows) + more(int(np.count_nonzero(count)), len(rows), "pairs, most bytes first")


def who_sends(s: Summary) -> str:
    if not s.matrix[0].any():
        return ""
    return (
        "<h2>Who sends to whom</h2><div id=who><div id=picture hidden><p><label>Colour by <select id=measure>"
        "<option value=bytes>bytes<option value=messages>messages<option value=waited>time waited</select></label> "
        "<span id=scale class=quiet></span></p><canvas id=matrix role=img "
        'aria-label="Matrix: senders from top to bottom, receivers from left to right"></canvas>'
        "<p class=quiet>Senders from top to bottom, receivers from left to right.</p></div><div>"
        f"{table_of_pairs(*s.matrix, lambda k: group_name(s, k))}</div></div>"
    )


def by_site(s: Summary) -> str:
    if not s.sites:
        return ""
    named = [k for k in classes.WAITING if any(site.by_class[k] for site in s.sites)] if s.told else []
    rows = []
    for site in s.sites[:MOST_ROWS]:
        rows.append(
            f"<tr data-row={site.row} data-begin={site.begin} data-time={max(1, site.longest)}>"
            + cell(s.texts.all[site.site] or "unknown", words=True)
            + cell(s.texts.all[site.name], words=True)
            + cell(count_text(site.count), site.count)
            + cell(time_text(site.time), site.time)
            + cell(time_text(site.time / max(1, site.count)), site.time / max(1, site.count))
            + cell(time_text(site.longest), site.longest)
            + cell(bytes_text(site.bytes) if site.bytes else "", site.bytes)
            + "".join(cell(time_text(site.by_class[k]) if site.by_class[k] else "", site.by_class[k]) for k in named)
        )
    heads = [("where", True), ("call", True)]
    heads += [
        (h, False) for h in ("calls", "time", "mean", "longest", "bytes given", *(classes.NAMES[k] for k in named))
    ]
    return "<h2>By call site</h2>" + table(heads, rows) + more(len(s.sites), len(rows), "call sites, most time first")


def by_library(found: library.Library | None) -> str:
    """What ours did by itself."""
    if found is None:
        return ""
    told = "".join(paragraph(line) for line in library.lines(found))
    rows = [
        "<tr>" + "".join(cell(text, value, value is None) for text, value in zip(library.cells(row), library.numbers(row)))
        for row in found.rows[:MOST_ROWS]
    ]
    heads = [(head, number < 2) for number, head in enumerate(library.HEADS)]
    shown = table(heads, rows) + more(len(found.rows), len(rows), "call sites, most hidden first") if rows else ""
    return f"<h2>What our library did by itself</h2>{told}{shown}"


def marks(s: Summary, details: int) -> list[list]:
    """Of what our library did: the track's kind, name, colour and meaning, of those that are in the page, which holds so
    many stretches."""
    there = np.unique(np.concatenate([s.kept["what"], *(one.rows["what"] for one in s.detail[:details])]))
    found = ((calls.OF_LIBRARY[kind], mark) for kind, mark in library.MARKS.items())
    return [[what, mark.name, mark.colour, mark.meaning] for what, mark in found if what in there]


def by_rank(s: Summary) -> str:
    if not len(s.ranks):
        return ""
    waits = s.totals[:, classes.LATE_SENDER : classes.REST + 1].sum(axis=1)
    mpi = waits + s.totals[:, classes.IN_MPI]
    order = np.arange(len(s.ranks))
    if len(order) > MOST_RANKS:
        order = np.argsort(-mpi, kind="stable")[:MOST_RANKS]
    rows = []
    for r in order:
        whole = float(s.threads[r]) * s.duration
        rows.append(
            f"<tr>{cell(s.ranks[r], s.ranks[r])}{cell(s.hosts[r], words=True)}{cell(s.threads[r], s.threads[r])}"
            + cell(count_text(int(s.calls[r])), s.calls[r])
            + cell(share_text(mpi[r], whole), mpi[r] / whole)
            + (cell(share_text(waits[r], whole), waits[r] / whole) if s.told else "")
        )
    heads = [("rank", False), ("host", True), ("threads in MPI", False), ("calls", False), ("in MPI", False)]
    heads += [("waiting", False)] if s.told else []
    return "<h2>By rank</h2>" + table(heads, rows) + more(len(s.ranks), len(rows), "ranks, most time in MPI first")


def holds(s: Summary, detail: list[dict]) -> str:
    """What of the run is in the page."""
    what = (
        f"all {count_text(len(s.kept))} calls and marks of the run"
        if s.all_kept
        else f"each rank's shares of time in {count_text(s.bins)} steps, and the {count_text(len(s.kept))} longest "
        f"waits of {count_text(s.events)} events"
    )
    arrows = f"{count_text(len(s.arrows))} of {count_text(s.messages)} messages" if s.messages else "no messages"
    if s.messages and len(s.arrows) < s.messages:
        arrows = f"the {count_text(len(s.arrows))} longest-waiting of {count_text(s.messages)} messages"
    text = f"This page holds {what}; arrows are of {arrows}."
    if detail:
        share = 100 * sum(d["to"] - d["from"] for d in detail) / max(1, s.duration)
        if share > 99.9:
            return f"{text} Zoomed in, it shows each call."
        text += (
            f" Zoom in where the line above the rows is blue: there it holds each call, in all {share:.1f} % of the time, "
            "where the longest waits end; headway trace --from S --to S asks for other seconds."
        )
    return text


def facts(s: Summary) -> str:
    ranks = "1 rank" if len(s.ranks) == 1 else f"{count_text(len(s.ranks))} ranks"
    missing = s.size - int((s.ranks >= 0).sum())
    gone = f" ({count_text(missing)} more left no recording)" if missing > 0 else ""
    hosts = len(set(s.hosts))
    return (
        f"{ranks}{gone} on {hosts} host{'s' if hosts != 1 else ''}, {time_text(s.duration)}, "
        f"{count_text(int(s.calls.sum()))} calls, {100 * s.in_mpi:.1f} % of all time in MPI."
    )


def json_text(value: object) -> str:
    """Nothing in it may end the element that it stands in."""
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def fingerprint(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def render(s: Summary, title: str = "trace", limit: int = LIMIT) -> str:
    style = (HERE / "page.css").read_text() + "".join(
        f".k{k} {{ background: {c.colour}; }}\n" for k, c in enumerate(classes.CLASSES)
    )
    script = "".join((HERE / name).read_text() for name in SCRIPTS)
    tables = "".join(
        (where_the_time_went(s), longest_waits(s), by_library(s.library), who_sends(s), by_site(s), by_rank(s))
    )
    texts = json_text(s.texts.all)
    detail, of_details = details(s)
    fixed = sum(len(text) for text in (style, script, texts, *(text for _, text in of_details.values())))
    s, planes, made = fit(s, limit - fixed - len(tables.encode()) - 20_000)
    made |= of_details
    title = clean(title)
    meta = {
        "title": title,
        "duration": s.duration,
        "rows": len(s.ranks),
        "size": s.size,
        "bins": s.bins,
        "told": s.told,
        "allKept": s.all_kept,
        "detail": detail,
        "planes": planes,
        "classes": [[c.name, c.colour, c.meaning] for c in classes.CLASSES],
        "marks": marks(s, len(detail)),
        "hosts": list(dict.fromkeys(s.hosts)),
        "group": s.group,
        "wide": s.matrix.shape[1] if s.messages and s.matrix[0].any() else 0,
        "arrays": {name: index for name, (index, _) in made.items()},
        "texts": s.texts.all,
    }
    e = html.escape
    policy = f"default-src 'none'; img-src data:; style-src {fingerprint(style)}; script-src {fingerprint(script)}"
    head = (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        f'<meta http-equiv=Content-Security-Policy content="{policy}"><meta name=viewport content="width=device-width">'
        f"<title>{e(title)}: time line</title><style>{style}</style></head><body>"
    )
    parts = [
        head,
        f"<h1>{e(title)}</h1><p>{e(facts(s))}</p>",
        *(paragraph(line) for line in s.of_run),
        *(f"<p class=note>{e(clean(n, 500))}</p>" for n in s.notes[:MOST_NOTES]),
        f"<p class=note>And {count_text(len(s.notes) - MOST_NOTES)} more.</p>" if len(s.notes) > MOST_NOTES else "",
        "<p id=problem hidden></p>",
        "<noscript><p class=note>The time line needs JavaScript; the tables below are complete without.</p></noscript>",
        "<div id=app hidden>",
        APP,
        *(f"<p class=quiet>{e(text)}</p>" for text in (HELP, TOLD if s.told else NOT_TOLD, holds(s, detail))),
        f"<p class=quiet>{e(STRIPS)}</p>" if meta["marks"] else "",
        "</div><div id=tip role=tooltip hidden></div>",
        tables,
        f'<script type="application/json" id=meta>{json_text(meta)}</script>',
        *(f'<script type="text/plain" id=data-{name}>{text}</script>' for name, (_, text) in made.items()),
        f"<script>{script}</script></body></html>\n",
    ]
    return "\n".join(parts)


def write(s: Summary, path: Path, title: str = "trace", limit: int = LIMIT) -> int:
    """Returns the size of the file."""
    text = render(s, title, limit).encode()
    path.write_bytes(text)
    return len(text)
