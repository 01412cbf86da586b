"""From the results of bench/early_release.py: figures, table, JSON, pictures."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np

from clusters import COLOURS, LABELS, seconds
from gains import (
    Figure, Sampled, as_json, error_bars, figure_of, mark, ms, opening, percent, plt, sampled_figure, save_chart,
    save_report, table,
)
from plots import STYLE, size_axis
from release_plan import ASKED, RANKS_PER_HOST, Case, Stream
from headway.measure.statistics import human_size
from headway.measure.store import Store

# What the paper says of the shares at which it measured: the model's, 16 to 64 ranks.
PAPER_SHARES = (0.04, 0.81)


def paper_table(figures: list[Figure], with_model: bool) -> list[str]:
    head = ["case", "ranks", "ms off", "ms on", "share", "gain", "95 %", "bound", "hidden"]
    if with_model:
        head[5:5] = ["model: share", "ms off"]
    head += ["slowed", "run"]
    rows = []
    for f in figures:
        cells = [LABELS[f.case.program], str(f.case.ranks), ms(f.off), ms(f.on), percent(f.share),
                 f"{f.gain:.3f}", f"{f.low:.3f} to {f.high:.3f}", f"{f.model.bound:.2f}", percent(f.hidden)]
        if with_model:
            place, size = f.name.split("/")[1], f.name.split("/")[4]
            cells[0] = f"{cells[0]} {size}, {place}"
            cells[5:5] = [percent(f.model.share), ms(f.model.off)]
        else:
            cells[0] += f", {f.name.split('/')[3]} %"
        rows.append([*cells, f"{f.case.hosts.dilation:g}", f"{f.verdict}, {f.iterations} iterations"])
    return table(head, rows)


def best_lines(figures: list[Figure]) -> list[str]:
    lines = ["| program | asked | best gain | at share | ranks |", "|---|---|---|---|---|"]
    for program, asked in ASKED.items():
        mine = [f for f in figures if f.case.program == program and f.verdict == "valid"]
        if not mine:
            lines.append(f"| {LABELS[program]} | {asked:.2f} | no valid run | | |")
            continue
        best = max(mine, key=lambda f: f.gain)
        lines.append(f"| {mark(best.gain >= asked)} {LABELS[program]} | {asked:.2f} | {best.gain:.3f} | "
                     f"{percent(best.share)} | {best.case.ranks} |")
    inside = [f.gain for f in figures if f.verdict == "valid" and PAPER_SHARES[0] <= f.share <= PAPER_SHARES[1]]
    if inside:
        mean = float(np.mean(inside))
        lines.append(f"| {mark(mean >= 1.11)} mean over all valid cases | 1.11 | {mean:.3f} | | |")
    return lines


def stream_lines(figures: list[Sampled]) -> list[str]:
    lines = ["| where | size | touch | transfer µs | off µs | on µs | gain | 95 % | asked |",
             "|---|---|---|---|---|---|---|---|---|"]
    for f in figures:
        asked = stream_asked(f)
        sign = "" if asked is None else f"{mark(f.gain >= asked)} "
        place = "shared memory" if f.case.place == "shm" else f"{f.case.place} Mbit/s"
        text = "" if asked is None else f"≥ {asked:g}"
        alone = f"{f.alone:.5g}" if f.alone else "-"
        lines.append(
            f"| {place} | {human_size(f.case.size)} | {f.case.touch} | {alone} | {f.off:.5g} | "
            f"{f.on:.5g} | {sign}{f.gain:.3f} | {f.low:.3f} to {f.high:.3f} | {text} |")
    return lines


def stream_asked(f: Sampled) -> float | None:
    s = f.case
    if s.touch == "once":
        return 0.99
    if s.touch == "order" and s.place == "1000" and s.size >= 256 * 1024:
        return 1.8
    if s.touch == "order" and s.place == "shm" and s.size == 1024 * 1024:
        return 1.5
    return None


def table2_lines(store: Store) -> list[str]:
    kept = store.lines.get("table2|on|0")
    if not kept:
        return []
    paper = {4096: (3.0, 33), 16384: (3.0, 131), 65536: (3.3, 500), 262144: (4.5, 2100)}
    costs = {(r["mechanism"], r["busy"], r["bytes"]): (r["close"], r["open"]) for r in kept["rows"]}
    ways = list(dict.fromkeys((m, b) for m, b, _ in costs))
    names = [f"{m}, other core {'busy' if b else 'idle'}" for m, b in ways]
    lines = ["Closing + opening, µs; in brackets both as a part of the transfer at 1 Gbit/s.", "",
             "| size | transfer µs | " + " | ".join(names) + " | paper: cost of transfer |",
             "|---" * (len(ways) + 3) + "|"]
    for size in sorted({b for _, _, b in costs}):
        wire = seconds(size, 1000) * 1e6
        cells = []
        for way in ways:
            close, open_ = costs[(*way, size)]
            cells.append(f"{close:.1f} + {open_:.1f} ({(close + open_) / wire * 100:.1f} %)")
        theirs = paper.get(size)
        text = f"{theirs[0]} of {theirs[1]} µs ({theirs[0] / theirs[1] * 100:.1f} %)" if theirs else "-"
        lines.append(f"| {human_size(size)} | {wire:.0f} | " + " | ".join(cells) + f" | {text} |")
    return lines


# ---- pictures ---------------------------------------------------------------------------------
def sweep_plot(path: Path, figures: list[Figure]) -> Path | None:
    if not figures:
        return None
    chart, axes = plt.subplots(1, 2, figsize=(9.6, 3.8))
    for program in LABELS:
        for ranks, line in ((8, "--"), (16, "-")):
            mine = sorted((f for f in figures if f.case.program == program and f.case.ranks == ranks),
                          key=lambda f: f.share)
            if not mine:
                continue
            x = [f.share * 100 for f in mine]
            label = f"{LABELS[program]}, {ranks} ranks"
            axes[0].errorbar(x, [f.gain for f in mine], error_bars(mine), color=COLOURS[program],
                             ls=line, marker="o", ms=4, capsize=2, label=label)
            axes[1].plot(x, [100 * (f.hidden or 0) for f in mine], color=COLOURS[program], ls=line,
                         marker="o", ms=4, label=label)
    axes[0].axhline(1, color="#333333", lw=0.8)
    axes[0].set_ylabel("gain over the plain library")
    axes[1].set_ylabel("part of the lost time hidden, %")
    for axis in axes:
        axis.set_xlabel("share of time outside computation, plain library, %")
    axes[0].legend(fontsize=7)
    chart.suptitle("Early release: the papers' programs, two ranks a host, 100 Mbit/s", x=0.01, ha="left",
                   fontweight="bold")
    return save_chart(chart, path)


def physical_plot(path: Path, figures: list[Figure]) -> Path | None:
    if not figures:
        return None
    chart, axis = plt.subplots(figsize=(9.6, 0.28 * len(figures) + 1.5))
    for y, f in enumerate(reversed(figures)):
        colour = COLOURS[f.case.program] if not f.invalid else "#bbbbbb"
        axis.barh(y, f.gain - 1, left=1, color=colour, height=0.6)
        axis.plot([f.low, f.high], [y, y], color="#333333", lw=1)
        axis.plot(f.model.bound, y, "|", color="#c0392b", ms=9, mew=2)
    names = [f"{LABELS[f.case.program]} {f.name.split('/')[4]}, {f.case.ranks} ranks, {f.name.split('/')[1]}"
             + (" (INVALID)" if f.invalid else "") for f in reversed(figures)]
    axis.set_yticks(range(len(figures)), names, fontsize=7)
    axis.axvline(1, color="#333333", lw=0.8)
    axis.set_xlabel("gain; red: the model's upper bound")
    axis.set_title("Early release on the papers' clusters", loc="left", fontweight="bold")
    return save_chart(chart, path)


def stream_plot(path: Path, figures: list[Sampled]) -> Path | None:
    used = [f for f in figures if f.case.touch != "once"]
    if not used:
        return None
    chart, axis = plt.subplots(figsize=(6.4, 3.8))
    for place, colour in (("1000", "#1763c6"), ("100", "#e07b00"), ("shm", "#3c8d40")):
        for touch, line in (("order", "-"), ("random", ":"), ("reverse", "--")):
            mine = sorted((f for f in used if (f.case.place, f.case.touch) == (place, touch)),
                          key=lambda f: f.case.size)
            if mine:
                where = "shared memory" if place == "shm" else f"{place} Mbit/s"
                axis.plot([f.case.size for f in mine], [f.gain for f in mine], color=colour, ls=line,
                          marker="o", ms=4, label=f"{where}, {touch}")
    axis.axhline(2, color="#999999", lw=1, ls="--")
    axis.axhline(1, color="#333333", lw=0.8)
    size_axis(axis, sorted({f.case.size for f in used}))
    axis.set_ylabel("gain (ideal: 2)")
    axis.legend(fontsize=7)
    axis.set_title("Receive, then compute for as long as the transfer takes", loc="left", fontweight="bold")
    return save_chart(chart, path)


# ---- all of it --------------------------------------------------------------------------------
def stream_json(f: Sampled) -> dict:
    kept = asdict(f)
    return {"stream": kept.pop("case"), **kept}


def write(out: Path, store: Store, cases: list[Case], streams: list[Stream], about: dict,
          notes: list[str]) -> tuple[list[Figure], list[Sampled]]:
    plt.rcParams.update(STYLE)
    figures = [f for c in cases if (f := figure_of(c, store))]
    stream_figures = [f for s in streams if (f := sampled_figure(s, store))]
    sweep = [f for f in figures if f.case.group == "sweep"]
    physical = [f for f in figures if f.case.group == "physical"]
    pictures = [sweep_plot(out / "sweep.png", sweep), physical_plot(out / "physical.png", physical),
                stream_plot(out / "stream.png", stream_figures)]
    lines = opening("Early release", about, "EARLY_RELEASE", notes, figures)
    if sweep:
        lines += ["", "## Share sweep", "", *best_lines(sweep), "", *paper_table(sweep, False)]
    if physical:
        lines += ["", "## The papers' clusters", "", *paper_table(physical, True)]
    if stream_figures:
        lines += ["", "## Stream consumer", "", *stream_lines(stream_figures)]
    if rows := table2_lines(store):
        lines += ["", "## Cost of closing and opening pages (table 2 of the paper)", "", *rows]
    document = {"about": about, "notes": notes, "ranks_per_host": RANKS_PER_HOST,
                "cases": [as_json(f) for f in figures],
                "streams": [stream_json(f) for f in stream_figures],
                "table2": store.lines.get("table2|on|0", {}).get("rows", [])}
    save_report(out, "release", lines, pictures, document)
    return figures, stream_figures
