"""From the results of bench/prefetch.py: figures, tables beside the paper's, JSON, pictures."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from clusters import COLOURS, LABELS
from gains import (
    Figure, Sampled, as_json, error_bars, figure_of, mark, opening, percent, plt, sampled_figure, save_chart,
    save_report, table,
)
from plots import STYLE, size_axis
from prefetch_bounds import best_seconds
from prefetch_plan import ASKED, ASKED_HIDDEN, KINDS, NOTHING_LOST, Case, Paper, Sender, paper_row
from prefetch_runs import COUNTERS
from headway.measure.statistics import human_size
from headway.measure.store import Store


# ---- judgement --------------------------------------------------------------------------------
def paper_of(f: Figure) -> Paper:
    return paper_row(f.case.program, f.case.ranks)


def asked_gain(f: Figure) -> float:
    return ASKED[f.case.program][f.case.ranks]


def possible(f: Figure) -> float:
    """The largest part of the lost time that can be hidden, by the model."""
    wire = f.model.wire
    return (f.model.off - best_seconds(f.case.program, f.case.ranks, f.model.compute, wire)) / wire


def sign_of(f: Figure | Sampled, good: bool) -> str:
    """A run that does not count is neither good nor bad."""
    return mark(good) if f.verdict == "valid" else "–"


def lost_nothing(f: Figure | Sampled) -> str:
    """By the interval: surely, surely not, or not to be told."""
    if f.low < NOTHING_LOST <= f.high:
        return "–"
    return sign_of(f, f.low >= NOTHING_LOST)


def shape_lines(figures: list[Figure]) -> list[list[str]]:
    """FT and IS must be slower with 32 ranks than with 16, before any gain counts."""
    off = {(f.case.program, f.case.ranks): f.off for f in figures if f.case.group == "physical"}
    rows = []
    for program in ("ft", "is"):
        if (program, 16) in off and (program, 32) in off:
            a, b = off[program, 16], off[program, 32]
            rows.append([f"{mark(b > a)} {LABELS[program]}, off: slower with 32 ranks than with 16",
                         "yes", f"{a:.4g} s, {b:.4g} s"])
    return rows


def gain_lines(figures: list[Figure]) -> list[list[str]]:
    rows = []
    for f in figures:
        what = f"{LABELS[f.case.program]}, {f.case.ranks} ranks, {f.case.group}"
        asked, hidden = asked_gain(f), min(ASKED_HIDDEN, possible(f))
        rows.append([f"{sign_of(f, f.gain - 1 >= asked)} {what}: gain", f"{asked * 100:.1f} %",
                     f"{(f.gain - 1) * 100:.1f} %"])
        if f.hidden is not None and hidden > 0:
            rows.append([f"{sign_of(f, f.hidden >= hidden)} {what}: hidden", percent(hidden), percent(f.hidden)])
        if f.case.hosts.dilation == 1:
            rows.append([f"{lost_nothing(f)} {what}: never slower", f"{NOTHING_LOST:g}", f"{f.low:.3f} to {f.high:.3f}"])
    return rows


def sender_sign(f: Sampled) -> str:
    if f.case.asked is None:
        return ""
    return lost_nothing(f) if f.case.must_lose_nothing else sign_of(f, f.gain >= f.case.asked)


def asked_lines(figures: list[Figure], early: list[Sampled]) -> list[str]:
    rows = shape_lines(figures) + gain_lines(figures)
    for f in early:
        if f.case.asked is not None:
            rows.append([f"{sender_sign(f)} sender, {sender_words(f)}", f"{f.case.asked:g}",
                         f"{f.gain:.3f} ({f.low:.3f} to {f.high:.3f})"])
    return table(["what", "asked", "measured"], rows)


# ---- text -------------------------------------------------------------------------------------
def sender_words(f: Sampled) -> str:
    return f"{f.case.mbit:g} Mbit/s, {human_size(f.case.size)}, {KINDS[f.case.kind]}"


def program_table(figures: list[Figure]) -> list[str]:
    head = ["program", "ranks", "s off", "s on", "gain", "95 %", "paper: s off", "gain", "hidden", "paper", "possible",
            "share", "paper", "model: compute + wire", "share", "slowed", "run"]
    rows = []
    for f in figures:
        p, m = paper_of(f), f.model
        rows.append([
            LABELS[f.case.program], str(f.case.ranks), f"{f.off:.4g}", f"{f.on:.4g}",
            f"{sign_of(f, f.gain - 1 >= asked_gain(f))} {(f.gain - 1) * 100:.1f} %",
            f"{(f.low - 1) * 100:.1f} to {(f.high - 1) * 100:.1f} %", f"{p.off:.4g}", f"{p.gain * 100:.1f} %",
            percent(f.hidden), percent(p.hidden) if p.gain > 0 else "-", percent(possible(f)), percent(f.share),
            percent(p.share), f"{m.compute:.3g} + {m.wire:.3g}", percent(m.share), f"{f.case.hosts.dilation:g}",
            f"{f.verdict}, {f.iterations} iterations",
        ])
    return table(head, rows)


def sender_table(early: list[Sampled]) -> list[str]:
    rows = []
    for f in early:
        asked = "" if f.case.asked is None else f"≥ {f.case.asked:g}"
        rows.append([f"{f.case.mbit:g} Mbit/s", human_size(f.case.size), KINDS[f.case.kind], f"{f.alone:.5g}",
                     f"{f.off:.5g}", f"{f.on:.5g}", f"{sender_sign(f)} {f.gain:.3f}".strip(),
                     f"{f.low:.3f} to {f.high:.3f}", asked, f.verdict])
    return table(["link", "size", "message", "computes µs", "off µs", "on µs", "gain", "95 %", "asked", "run"], rows)


def together_table(pairs: list[tuple[Figure, Figure]]) -> list[str]:
    """Each: prefetching without, and with early release on both sides."""
    rows = []
    for alone, both in pairs:
        better = min(alone.on, both.off)
        good = better / both.on >= NOTHING_LOST
        valid = alone.verdict == both.verdict == "valid"
        rows.append([f"{mark(good) if valid else '–'} {alone.name}", f"{alone.off:.4g}", f"{alone.on:.4g}",
                     f"{both.off:.4g}", f"{both.on:.4g}", f"{better / both.on:.3f}", both.verdict])
    return table(["case", "s off", "prefetching", "early release", "both", "better of the two / both", "run"], rows)


def counted(store: Store, case: Case | Sender) -> dict[str, float]:
    """Of one run with prefetching, all ranks together; the mean of the runs."""
    runs = [run["verdict"]["counters"] for run in store.of(case, "on") if "counters" in run["verdict"]]
    return {name: float(np.mean([run[name] for run in runs])) for name in COUNTERS} if runs else {}


def counter_table(counters: dict[str, dict[str, float]]) -> list[str]:
    def shown(name: str, value: float) -> str:
        return f"{value / 2**20:.1f} MB" if name.endswith("_bytes") else f"{value:.0f}"

    rows = [[case, *(shown(name, value) for name, value in of.items())] for case, of in counters.items()]
    return table(["case", *COUNTERS], rows)


# ---- pictures ---------------------------------------------------------------------------------
def beside_paper(axis, figures: list[Figure], ours: list[float], theirs: list[float], bars=None) -> None:
    """One pair of bars a case: ours, with its interval where there is one, and the paper's."""
    places = np.arange(len(figures))
    colours = [COLOURS[f.case.program] if f.verdict == "valid" else "#bbbbbb" for f in figures]
    axis.bar(places - 0.2, ours, 0.38, color=colours, label="here (grey: does not count)")
    axis.bar(places + 0.2, theirs, 0.38, color="white", edgecolor=colours, label="the paper")
    if bars is not None:
        axis.errorbar(places - 0.2, ours, bars, color="#333333", ls="", lw=1, capsize=2)
    axis.axhline(0, color="#333333", lw=0.8)
    axis.set_xticks(places, [f"{LABELS[f.case.program]}\n{f.case.ranks}" for f in figures], fontsize=7)
    axis.grid(axis="x", visible=False)


def program_plot(path: Path, figures: list[Figure]) -> Path | None:
    if not figures:
        return None
    chart, (gain, hidden, off) = plt.subplots(3, 1, figsize=(max(5.5, 0.62 * len(figures) + 1.2), 8.4))
    papers = [paper_of(f) for f in figures]
    bars = np.array(error_bars(figures)) * 100
    beside_paper(gain, figures, [(f.gain - 1) * 100 for f in figures], [p.gain * 100 for p in papers], bars)
    gain.set_ylabel("gain, %")
    gain.legend(fontsize=7)
    beside_paper(hidden, figures, [(f.hidden or 0) * 100 for f in figures], [max(0, p.hidden) * 100 for p in papers])
    for place, f in enumerate(figures):
        hidden.plot([place - 0.4, place], [possible(f) * 100] * 2, color="#333333", lw=1.5)
    hidden.set_ylabel("hidden part of the lost time, %\n(line: possible)")
    beside_paper(off, figures, [f.off for f in figures], [p.off for p in papers])
    seconds = [f.off for f in figures] + [p.off for p in papers]
    off.set_yscale("log")
    off.set_ylim(min(seconds) / 2, max(seconds) * 2)
    off.set_ylabel("without prefetching, s an iteration")
    off.set_xlabel("program, ranks")
    chart.suptitle("Prefetching beside table 2 of the paper", x=0.01, ha="left", fontweight="bold")
    return save_chart(chart, path)


def sender_plot(path: Path, early: list[Sampled]) -> Path | None:
    used = [f for f in early if not f.case.must_lose_nothing]
    if not used:
        return None
    chart, axis = plt.subplots(figsize=(8.4, 3.8))
    for mbit, colour in ((100, "#e07b00"), (1000, "#1763c6")):
        for kind, line in (("rewrite-0", "-"), ("rewrite-10", "--"), ("rewrite-100", ":")):
            mine = [f for f in used if (f.case.mbit, f.case.kind) == (mbit, kind)]
            if mine:
                axis.errorbar([f.case.size for f in mine], [f.gain for f in mine], error_bars(mine), color=colour,
                              ls=line, marker="o", ms=4, capsize=2, label=f"{mbit} Mbit/s, {KINDS[kind]}")
    axis.axhline(2, color="#999999", lw=1, ls="--")
    axis.axhline(1, color="#333333", lw=0.8)
    size_axis(axis, sorted({f.case.size for f in used}))
    axis.set_ylabel("gain (ideal: 2)")
    axis.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    axis.set_title("Ready, then computing for as long as the transfer takes", loc="left", fontweight="bold")
    return save_chart(chart, path)


# ---- all of it --------------------------------------------------------------------------------
def sections(physical: list[Figure], matched: list[Figure], early: list[Sampled],
             together: list[tuple[Figure, Figure]], counters: dict[str, dict[str, float]]) -> list[str]:
    parts = [
        ("Asked and measured", asked_lines(physical + matched, early)),
        ("Table 2 of the paper, on its cluster", program_table(physical)),
        ("At the paper's share of lost time", program_table(matched)),
        ("A sender that is ready early", sender_table(early)),
        ("Together with early release", together_table(together)),
        ("Counters of one run with prefetching, all ranks", counter_table(counters)),
    ]
    return [line for title, lines in parts if len(lines) > 2 for line in ("", f"## {title}", "", *lines)]


def write(out: Path, store: Store, cases: list[Case], senders: list[Sender], about: dict,
          notes: list[str]) -> tuple[list[Figure], list[Sampled]]:
    plt.rcParams.update(STYLE)
    figures = [f for c in cases if (f := figure_of(c, store))]
    released = {c.name: f for c in cases if (f := figure_of(c, store, ("release", "both")))}
    early = [f for s in senders if (f := sampled_figure(s, store))]
    physical = [f for f in figures if f.case.group == "physical"]
    matched = [f for f in figures if f.case.group == "matched"]
    together = [(f, released[f.name]) for f in figures if f.name in released]
    counters = {c.name: found for c in [*cases, *senders] if (found := counted(store, c))}
    pictures = [program_plot(out / "programs.png", figures), sender_plot(out / "sender.png", early)]
    lines = opening("Prefetching", about, "PREFETCH", notes, figures + list(released.values()))
    lines += sections(physical, matched, early, together, counters)
    document = {"about": about, "notes": notes, "cases": [as_json(f) for f in figures],
                "with_early_release": [as_json(f) for f in released.values()],
                "senders": [asdict(f) for f in early], "counters": counters}
    save_report(out, "prefetch", lines, pictures, document)
    return figures + [replace(f, name=f"{f.name}, early release on both") for f in released.values()], early
