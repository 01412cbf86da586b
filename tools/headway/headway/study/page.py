"""The page of a study: one HTML file that opens without a network, and the same in Markdown.

Its curves can be pointed at: uPlot (MIT, in vendor/) lies inside the page.
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

from headway.study import memory, meshes, plots
from headway.study.blocking import SHORTEST_COMPUTATION, STRATEGY_MESSAGES
from headway.study.findings import Findings, Of
from headway.study.verdicts import (
    OVERLAP_HEAD,
    STRATEGIES_HEAD,
    TESTS_HEAD,
    Row,
    Saying,
    overlap_numbers,
    sayings,
    strategy_numbers,
    table,
    tests_numbers,
)

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 74rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; } td, th { padding: .25rem .8rem; text-align: right; border-bottom: 1px solid #ddd; }
td:first-child, th:first-child { text-align: left; } .do { margin: .1rem 0 .9rem 1.2rem; padding-left: .7rem; border-left: 3px solid #1763c6; }
.seen { margin: .2rem 0; } h2 { margin-top: 2.4rem; } svg { max-width: 100%; height: auto; } .note { color: #8a4b00; }
.charts { display: flex; flex-wrap: wrap; gap: 1rem; } pre { background: #f4f4f4; padding: .6rem .9rem; }
.words td, .words th { text-align: left; vertical-align: top; } .words td:nth-child(-n+2) { white-space: nowrap; }
"""


# What the advices mean by their figures, for who has the page and not the paper.
LISTINGS = (
    (
        "6",
        "each send is waited for at once",
        "MPI_Irecv from each neighbour\ncompute, part 1\nfor each neighbour: MPI_Isend, MPI_Wait for it\n"
        "compute, part 2\nMPI_Waitall for the receives",
    ),
    (
        "7",
        "and the receives are tested behind the sends",
        "MPI_Irecv from each neighbour\ncompute, part 1\n"
        "for each neighbour: MPI_Isend, MPI_Wait for it\nMPI_Testall for the receives\n"
        "compute, part 2\nMPI_Waitall for the receives",
    ),
    (
        "12",
        "as figure 6, with nothing to compute behind the sends",
        "MPI_Irecv from each neighbour\ncompute\nfor each neighbour: MPI_Isend, MPI_Wait for it\n"
        "MPI_Waitall for the receives",
    ),
    (
        "13",
        "the waits for sends are collected behind those for receives",
        "MPI_Irecv from each neighbour\ncompute\nfor each neighbour: MPI_Isend\nMPI_Waitall for the receives\n"
        "MPI_Waitall for the sends (until then their buffers must not be written)",
    ),
)
BEGIN = (
    "What each MPI does here while a program computes: which calls wait for the other side, how much of a transfer a "
    "computation hides, and what to change in a program. All of it was measured on this machine."
)
VENDOR = Path(__file__).resolve().parent / "vendor"
CHARTS = (
    ("latency", "latency, µs", True),
    ("window", "bandwidth, MB/s", False),
    ("bidir-sends", "both ways, sends first, MB/s", False),
    ("overlap_recv", "receive overlap", False),
    ("overlap_send", "send overlap", False),
    ("progress_recv", "receive progress", False),
    ("progress_send", "send progress", False),
)
# A chart for each element that names one: sizes by powers of two, values under the pointer in the legend.
DRAW = """
const human = v => v >= 1 << 20 ? v / (1 << 20) + ' MB' : v >= 1024 ? v / 1024 + ' KB' : v + ' B';
const value = v => v == null ? '-' : +v.toPrecision(3) + '';
for (const at of document.querySelectorAll('.chart')) {
  const c = CHARTS[+at.dataset.chart];
  new uPlot({
    title: c.title, width: 540, height: 280,
    scales: {x: {time: false, distr: 3, log: 2}, y: c.log ? {distr: 3} : {}},
    axes: [{values: (u, ticks) => ticks.map(v => v == null ? '' : human(v))}, {size: 70, values: (u, ticks) => ticks.map(value)}],
    series: [{label: 'size', value: (u, v) => v == null ? '-' : human(v)},
             ...c.series.map(s => ({label: s.label, stroke: s.colour, width: 2, spanGaps: true, points: {show: true, size: 5},
                                    value: (u, v) => value(v)}))],
  }, c.data, at);
}
"""


def charts(findings: Findings, place: str) -> list[dict]:
    """What the script draws: a column of sizes and one for each MPI, with gaps where there is no value."""
    found = []
    for measure, title, log in CHARTS:
        curves = [
            (i, m, findings.of[m, place].curves.get(measure, {}))
            for i, m in enumerate(findings.mpis)
            if (m, place) in findings.of
        ]
        curves = [c for c in curves if c[2]]
        sizes = sorted({s for _, _, curve in curves for s in curve})
        if sizes:
            columns = [[curve[s].median if s in curve else None for s in sizes] for _, _, curve in curves]
            found.append(
                {
                    "title": title,
                    "log": log,
                    "data": [sizes, *columns],
                    "series": [
                        {"label": findings.label(m), "colour": plots.COLOURS[i % len(plots.COLOURS)]}
                        for i, m, _ in curves
                    ],
                }
            )
    return found


def script_of(every: list[dict]) -> str:
    """Nothing that was measured may end the script."""
    data = json.dumps(every).replace("</", "<\\/")
    return f"<script>{(VENDOR / 'uPlot.iife.min.js').read_text()}\nconst CHARTS = {data};{DRAW}</script>"


def intro(findings: Findings) -> list[str]:
    about = findings.about.get("machine", {})
    names = ", ".join(
        f"{findings.label(m)} {findings.about.get('versions', {}).get(m, '')}".strip() for m in findings.mpis
    )
    lines = [
        f"{names}. {about.get('date', '')}, {about.get('cpu', '')}, {about.get('cores', '')} cores, Linux "
        f"{about.get('kernel', '')}{', quick form' if findings.about.get('quick') else ''}."
    ]
    return lines


def missing(findings: Findings) -> list[str]:
    """What could not be measured, or was disturbed. Of an MPI that is left out at a place, the last word."""
    last: dict[str, str] = {}
    for note in findings.about.get("notes", []):
        about = note.split(":")[0] if " is left out" in note else note
        last.pop(about, None)
        last[about] = note
    lines = [*last.values()]
    for (mpi, place), reasons in findings.invalid.items():
        if reasons:
            lines.append(
                f"{findings.label(mpi)}, {findings.title(place)}: some runs were disturbed ({'; '.join(reasons)}), so its "
                "figures there may be worse than on a quiet machine."
            )
    return lines


def how(findings: Findings) -> list[str]:
    return [
        "Latency: of a message one way. Receive overlap: MPI_Irecv, a computation, MPI_Wait; how much of the transfer's own "
        "time the computation hides (1: all of it, 0: nothing, so that both times add up). Send overlap: the same with "
        "a send. Progress: the share of the transfer that is done when the wait begins, behind a computation that is "
        "longer than the transfer. The bound is what this machine allows at best. ± is half of a 95 % interval; 9 % (8 to 11): "
        "the median of several turns and its 95 % interval. KB and MB are 1024 and 1048576 bytes.",
        "In the tables of overlap, l0 is the transfer's time without a computation; t1 the part of it in the call that starts "
        "it, t3 the part in the wait, t2 what is between (below 0: both calls with a computation took longer than all of it "
        "without). 'Its bound' is what may be hidden if the library works in its calls alone; a library that moves data by "
        "another thread, or whose calls become shorter, exceeds it. 'The machine's' is what two cores allow that copy and "
        "compute. 'Computation': how much longer that took than without a message. In tests of overlap and of "
        "progress the other side stands in a blocking call. Over a wire a receive may be hidden though nothing came into "
        "its buffer while it computed: the system took the message in, and the wait only copies it.",
        "Simulated hosts share this machine's cores; each has a link of its own of the rate that is named. Another machine, "
        "above all one with a network card that copies by itself, has other bounds: ask there.",
        "A call needs the receiver if its return moves with the receiver's entry into MPI (slope at least 0.9 over three "
        "entries, 20 runs or more). Each: every message by itself (three at a time were tried); together: all that the receiver "
        "has not taken. MPI_Send was not measured; it may wait as an MPI_Isend and its wait do.",
        f"{findings.dropped} searches saw the machine change by more than 15 % between their ends, and do not count; "
        "where there is no other one, ~ tells.",
        "Figures by number are those of the paper Understanding the Behavior and Performance of Non-blocking "
        "Communications in MPI, and so are the strategies, whose gains in communication time were 27 % with MPICH 1.2.5 "
        "and 44 % with IBM's MPI, in an application. Here: two ranks, three messages each way, one rank computing half as "
        f"long again before it sends. Each of both computations lasts {SHORTEST_COMPUTATION / 1000:g} ms, between "
        "hosts as long as the wire needs for the three messages if that is more; a gain is a share of all of that, so "
        "beside a shorter computation there is less time to gain, and beside a longer one the share is smaller.",
    ]


def sections(findings: Findings) -> list[tuple[str, list[Row], list[tuple[str, list[Saying]]]]]:
    found = []
    for place in findings.places:
        said = [
            (findings.label(m), sayings(findings.of.get((m, place), Of()), place, findings.about.get("limits")))
            for m in findings.mpis
        ]
        found.append((place, table(findings, place), [(name, s) for name, s in said if s]))
    return found


def in_short(findings: Findings) -> list[list[str]]:
    """MPI, place, what to change, and what that gained where it was tried, in an exchange and in whole meshes: what
    somebody came for."""
    rows = []
    named = {findings.label(m): m for m in findings.mpis}
    for place, _, said in sections(findings):
        for name, every in said:
            do = without_repeats(every)
            if do and was_in_vain(every) and not meshes.has_gained(findings, named[name], place):
                do.append(IN_VAIN)
            nothing = "Not all was found: see below." if any(s.missing for s in every) else "Nothing that was found here."
            gains = "; ".join(s.gain for s in every if s.gain) or "not tried"
            mesh = meshes.in_short(findings, named[name], place)
            rows.append([name, findings.title(place), " ".join(do) or nothing, gains, mesh])
    return sorted(rows, key=lambda r: list(named).index(r[0]))


IN_VAIN = (
    "No form of the exchange that was tried here gained anything (on the right): see that a change does in your program "
    "before you keep it."
)


def was_in_vain(said: list[Saying]) -> bool:
    """A change is advised, and none that was tried paid. Waits that may stand where they are are no change."""
    return (
        any(s.do and not s.at_once for s in said)
        and any(s.gain for s in said)
        and not any(s.tried for s in said)
    )


def without_repeats(said: list[Saying]) -> list[str]:
    """The advices. Several findings lead to the same figures of the paper: of these the ones that were tried are said,
    the longest, and what warns of a deadlock."""
    every = list({s.do: s for s in said if s.do}.values())
    figures = {s.do: set(re.findall(r"figure (\d+)", s.do)) for s in every}
    tried = [figures[s.do] for s in every if s.tried]

    def is_said(s: Saying) -> bool:
        mine = figures[s.do]
        if s.tried:
            longer = any(figures[o.do] == mine and len(o.do) > len(s.do) for o in every if o.tried)
            return longer or any(mine < other for other in tried)
        return bool(mine) and "Never" not in s.do and any(other <= mine or mine <= other for other in tried)

    # Who is to collect the waits is not told as well that they may stand where they are.
    collects = any("13" in other for other in tried)
    return [s.do for s in every if not is_said(s) and not (s.at_once and collects)]


SHORT_HEAD = [
    "MPI", "where", "in your program",
    f"less time of a ghost exchange ({STRATEGY_MESSAGES} messages) and its computation together, tried",
    "time of an adaptive mesh as a whole, tried",
]  # fmt: skip


def linked(text: str) -> str:
    """An advice in HTML: the figures that it names lead to their listing."""
    known = "|".join(number for number, _, _ in LISTINGS)
    return re.sub(rf"figure ({known})\b", r"<a href=#figure\1>figure \1</a>", html.escape(text))


def html_listings() -> list[str]:
    e = html.escape
    parts = ["<h2>What figures 6, 7, 12 and 13 are</h2><p>Ways to write an exchange with neighbours.</p><div class=charts>"]
    parts += [f"<div id=figure{n}><b>Figure {n}</b>: {e(what)}<pre>{e(code)}</pre></div>" for n, what, code in LISTINGS]
    return [*parts, "</div>"]


def markdown_listings() -> list[str]:
    lines = ["", "## What figures 6, 7, 12 and 13 are", "", "Ways to write an exchange with neighbours."]
    for number, what, code in LISTINGS:
        lines += ["", f"Figure {number}: {what}", "", *(f"    {line}" for line in code.splitlines())]
    return lines


def numbers(of: Of) -> list[tuple[str, list[str], list[list[str]]]]:
    """Title, head and rows of what one MPI's figures are at one place."""
    every = [
        ("Receive overlap", OVERLAP_HEAD, overlap_numbers(of, "recv")),
        ("Send overlap", OVERLAP_HEAD, overlap_numbers(of, "send")),
        ("The paper's strategies", STRATEGIES_HEAD, strategy_numbers(of)),
        ("Tests in the receiver's computation", TESTS_HEAD, tests_numbers(of)),
        ("Memory with a higher limit", memory.HEAD, memory.numbers(of.memory)),
    ]
    return [e for e in every if e[2]]


def of_meshes(findings: Findings) -> list[tuple[str, list[str], list[list[str]]]]:
    every = [
        ("Times and gains", meshes.HEAD, meshes.numbers(findings)),
        ("Meshes and messages", meshes.ABOUT_HEAD, meshes.about(findings)),
    ]
    return [e for e in every if e[2]]


def headline(findings: Findings, place: str) -> str:
    title = findings.title(place)
    return title[:1].upper() + title[1:]


def html_table(head: list[str], rows: list[list[str]]) -> str:
    e = html.escape
    cells = "".join("<tr>" + "".join(f"<td>{e(c)}" for c in row) for row in rows)
    return "<table><tr>" + "".join(f"<th>{e(h)}" for h in head) + cells + "</table>"


def markdown_table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [
        "| " + " | ".join(head) + " |",
        "|---" * len(head) + "|",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]


def html_sayings(said: list[Saying]) -> list[str]:
    e = html.escape
    return [
        f"<p class=seen>{e(s.seen)}</p>" + (f"<p class=do>In your program: {linked(s.do)}</p>" if s.do else "")
        for s in said
    ]


def markdown_sayings(said: list[Saying]) -> list[str]:
    return [f"- {s.seen}" + (f" **In your program:** {s.do}" if s.do else "") for s in said]


def html_meshes(findings: Findings, pictures: list[Path]) -> list[str]:
    if not findings.samr:
        return []
    parts = ["<h2>An adaptive mesh in the paper's forms</h2>"]
    for row in findings.samr:
        parts += html_sayings(meshes.sayings(findings, row))
    parts += [unique(inline(picture), f"samr{i}") for i, picture in enumerate(pictures)]
    for title, head, rows in of_meshes(findings):
        parts.append(f"<details open><summary>{html.escape(title)}</summary>{html_table(head, rows)}</details>")
    return parts + [f"<p>{html.escape(line)}</p>" for line in meshes.HOW]


def markdown_meshes(findings: Findings, pictures: list[Path], out: Path) -> list[str]:
    if not findings.samr:
        return []
    lines = ["", "## An adaptive mesh in the paper's forms", ""]
    for row in findings.samr:
        lines += markdown_sayings(meshes.sayings(findings, row))
    lines += ["", *(f"![{p.stem}]({p.relative_to(out).with_suffix('.png')})" for p in pictures)]
    for title, head, rows in of_meshes(findings):
        lines += ["", f"### {title}", "", *markdown_table(head, rows)]
    return lines + sum((["", line] for line in meshes.HOW), [])


def inline(picture: Path) -> str:
    text = picture.read_text()
    return text[text.index("<svg") :]


def unique(svg: str, mark: str) -> str:
    """Names inside a picture are its own, or one picture on the page would draw with another's shapes."""
    return svg.replace('id="', f'id="{mark}').replace("url(#", f"url(#{mark}").replace('href="#', f'href="#{mark}')


def write_html(findings: Findings, out: Path, pictures: dict[str, list[Path]]) -> Path:
    e = html.escape
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>headway study</title><style>"
        f"{(VENDOR / 'uPlot.min.css').read_text()}{STYLE}</style>",
        "<h1>What overlaps, what blocks</h1>",
        f"<p>{e(BEGIN)} <a href=#how>How to read the numbers</a>.</p>",
        f"<p>{e(intro(findings)[0])}</p>",
    ]
    if missing(findings):
        parts.append("<p class=note><a href=#missing>Some of it is missing or was disturbed</a>.</p>")
    if findings.of:
        rows = "".join(
            f"<tr><td>{e(m)}<td>{e(where)}<td>{linked(do)}<td>{e(gain)}<td>{linked(mesh)}"
            for m, where, do, gain, mesh in in_short(findings)
        )
        parts.append(f"<h2>In short</h2><table class=words><tr>{''.join(f'<th>{h}' for h in SHORT_HEAD)}{rows}</table>")
    shown = 0
    drawn: list[dict] = []
    for place, rows, said in sections(findings):
        parts.append(f"<h2>{e(headline(findings, place))}</h2>")
        head = "".join(f"<th>{e(findings.label(m))}" for m in findings.mpis)
        parts.append(f"<table><tr><th>{head}<th>bound")
        parts += [f"<tr><td>{e(r.what)}{''.join(f'<td>{e(c)}' for c in r.cells)}<td>{e(r.bound)}" for r in rows]
        parts.append("</table>")
        for name, sayings_of in said:
            parts.append(f"<h3>{e(name)}</h3>")
            parts += html_sayings(sayings_of)
        for picture in pictures.get(place, []):
            shown += 1
            parts.append(unique(inline(picture), f"p{shown}"))
        here = charts(findings, place)
        parts.append(
            "<details open><summary>Curves to point at</summary><div class=charts>"
            + "".join(f'<div class=chart data-chart="{len(drawn) + i}"></div>' for i in range(len(here)))
            + "</div></details>"
        )
        drawn += here
        for mpi in findings.mpis:
            for title, head, rows in numbers(findings.of.get((mpi, place), Of())):
                parts.append(
                    f"<details><summary>{e(title)}, {e(findings.label(mpi))}: all numbers</summary>"
                    f"{html_table(head, rows)}</details>"
                )
    parts += html_meshes(findings, pictures.get("samr", []))
    if pictures.get("imitated"):
        parts.append("<h2>The paper's figures under the behaviours it found</h2>")
        for picture in pictures["imitated"]:
            shown += 1
            parts.append(unique(inline(picture), f"p{shown}"))
    parts += html_listings()
    if missing(findings):
        parts.append("<h2 id=missing>What is missing or was disturbed</h2>")
        parts += [f"<p class=note>{e(line)}</p>" for line in missing(findings)]
    parts.append("<h2 id=how>How to read this</h2>" + "".join(f"<p>{e(line)}</p>" for line in how(findings)))
    parts.append(script_of(drawn))
    path = out / "study.html"
    path.write_text("\n".join(parts))
    return path


def markdown(findings: Findings, pictures: dict[str, list[Path]], out: Path) -> str:
    lines = ["# What overlaps, what blocks", "", BEGIN, "", *sum(([line, ""] for line in intro(findings)), [])]
    if findings.of:
        lines += ["## In short", "", *markdown_table(SHORT_HEAD, in_short(findings)), ""]
    for place, rows, said in sections(findings):
        lines += [
            f"## {headline(findings, place)}",
            "",
            "| | " + " | ".join(map(findings.label, findings.mpis)) + " | bound |",
            "|---" * (len(findings.mpis) + 2) + "|",
        ]
        lines += ["| " + " | ".join((r.what.strip(), *r.cells, r.bound)) + " |" for r in rows]
        for name, sayings_of in said:
            lines += ["", f"### {name}, {findings.title(place)}", ""]
            lines += markdown_sayings(sayings_of)
        for mpi in findings.mpis:
            for title, head, rows in numbers(findings.of.get((mpi, place), Of())):
                lines += [
                    "",
                    f"#### {title}, {findings.label(mpi)}, {findings.title(place)}",
                    "",
                    *markdown_table(head, rows),
                ]
        lines += [
            "",
            *(f"![{p.stem}]({p.relative_to(out).with_suffix('.png')})" for p in pictures.get(place, [])),
            "",
        ]
    lines += markdown_meshes(findings, pictures.get("samr", []), out)
    lines += [f"![{p.stem}]({p.relative_to(out).with_suffix('.png')})" for p in pictures.get("imitated", [])]
    lines += markdown_listings()
    if missing(findings):
        lines += ["", "## What is missing or was disturbed", "", *sum(([line, ""] for line in missing(findings)), [])]
    return "\n".join([*lines, "", "## How to read this", "", *sum(([line, ""] for line in how(findings)), [])])


def write(findings: Findings, out: Path) -> Path:
    pictures = plots.draw(findings, out / "pictures")
    (out / "study.md").write_text(markdown(findings, pictures, out))
    return write_html(findings, out, pictures)
