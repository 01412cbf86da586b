"""From the results of bench/early_release.py: figures, table, JSON, pictures."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402

from plots import STYLE, size_axis  # noqa: E402
from release_plan import ASKED, LABELS, RANKS_PER_HOST, Case, Model, Stream, seconds  # noqa: E402
from release_runs import OTHERS_HARM, Store  # noqa: E402
from results import human_size  # noqa: E402

COLOURS = {"pes": "#1763c6", "nbody": "#e07b00", "m3": "#3c8d40"}
# What the paper says of the shares at which it measured: the model's, 16 to 64 ranks.
PAPER_SHARES = (0.04, 0.81)


@dataclass
class Figure:
    """What one case gave."""

    name: str
    case: Case
    model: Model
    pace: float
    iterations: int
    off: float  # seconds of an iteration, of the cluster that is imitated
    on: float
    compute: float
    gain: float
    low: float  # of the gain: 95 % of resampled runs lie between
    high: float
    hidden: float | None  # part of the lost time
    warmup_off: float
    warmup_on: float
    same: bool
    invalid: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        return (self.off - self.compute) / self.off

    @property
    def verdict(self) -> str:
        if not self.same:
            return "DIFFERENT RESULTS"
        return f"INVALID: {'; '.join(self.invalid)}" if self.invalid else "valid"


def interval(pairs: list[tuple[list[float], list[float]]], middle) -> tuple[float, float]:
    """95 % interval of the median over pairs of middle(off) / middle(on): every run is drawn again
    from its own samples."""
    random = np.random.default_rng(1)
    ratios = []
    for off, on in pairs:
        a, b = np.array(off), np.array(on)
        ratios.append(middle(random.choice(a, (1000, a.size)), 1) / middle(random.choice(b, (1000, b.size)), 1))
    low, high = np.percentile(np.median(np.array(ratios), 0), (2.5, 97.5))
    return float(low), float(high)


def figure_of(case: Case, store: Store) -> Figure | None:
    off, on = store.of(case, "off"), store.of(case, "on")
    if not off or not on:
        return None
    d = case.hosts.dilation

    def each(runs: list[dict], key: str) -> list[float]:
        return [r["result"]["iteration"][key] / d for r in runs]

    gains = [a / b for a, b in zip(each(off, "mean"), each(on, "mean"))]
    mean_off, mean_on = float(np.mean(each(off, "mean"))), float(np.mean(each(on, "mean")))
    compute = float(np.mean(each(off, "computing")))
    lost = mean_off - compute
    parts = [(a["result"]["iteration"]["parts"], b["result"]["iteration"]["parts"]) for a, b in zip(off, on)]
    low, high = interval(parts, np.mean)
    runs = off + on
    reasons: list[str] = []
    for run in runs:
        for reason in run["verdict"].get("reasons", []):
            short = reason.split(" (")[0]
            if run["verdict"].get("others", 0) >= OTHERS_HARM and "saturated" in short:
                short = "others used this machine"
            if short not in reasons:
                reasons.append(short)
    late = max(r["result"]["late"] / r["result"]["iterations"] / d for r in runs)
    if late > 0.1 * compute:
        reasons.append("this machine was too slow for the pace")
    sums = {(r["result"]["checksum"], r["result"]["check"] in ("ok", "not asked")) for r in runs}
    pace = off[0]["pace"]
    return Figure(
        case.name, case, case.model_at(pace), pace, off[0]["result"]["iterations"], mean_off, mean_on,
        compute, float(np.median(gains)), low, high,
        (mean_off - mean_on) / lost if lost > 0.005 * mean_off else None,
        float(np.mean(each(off, "warmup_mean"))), float(np.mean(each(on, "warmup_mean"))),
        len(sums) == 1 and all(good for _, good in sums), reasons,
    )


@dataclass
class StreamFigure:
    stream: Stream
    alone: float  # us: the transfer by itself
    off: float
    on: float
    gain: float
    low: float
    high: float
    lost: int  # packets


def stream_figure(stream: Stream, store: Store) -> StreamFigure | None:
    off, on = store.of(stream, "off"), store.of(stream, "on")
    if not off or not on:
        return None

    def middle(runs: list[dict]) -> np.ndarray:
        return np.array([s for r in runs for s in r["samples"]])

    a, b = middle(off), middle(on)
    low, high = interval([(x["samples"], y["samples"]) for x, y in zip(off, on)], np.median)
    gains = [np.median(x["samples"]) / np.median(y["samples"]) for x, y in zip(off, on)]
    lost = sum(r["verdict"].get("backlog_drops", 0) + r["verdict"].get("shaper_drops", 0) for r in off + on)
    return StreamFigure(stream, off[0]["consume_us"], float(np.median(a)), float(np.median(b)),
                        float(np.median(gains)), float(low), float(high), lost)


# ---- text -------------------------------------------------------------------------------------
def ms(value: float) -> str:
    return f"{value * 1e3:.4g}"


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value * 100:.0f} %"


def paper_table(figures: list[Figure], with_model: bool) -> list[str]:
    head = ["case", "ranks", "ms off", "ms on", "share", "gain", "95 %", "bound", "hidden"]
    if with_model:
        head[5:5] = ["model: share", "ms off"]
    head += ["slowed", "run"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for f in figures:
        cells = [LABELS[f.case.program], str(f.case.ranks), ms(f.off), ms(f.on), percent(f.share),
                 f"{f.gain:.3f}", f"{f.low:.3f} to {f.high:.3f}", f"{f.model.bound:.2f}", percent(f.hidden)]
        if with_model:
            place, size = f.name.split("/")[1], f.name.split("/")[4]
            cells[0] = f"{cells[0]} {size}, {place}"
            cells[5:5] = [percent(f.model.share), ms(f.model.off)]
        else:
            cells[0] += f", {f.name.split('/')[3]} %"
        cells += [f"{f.case.hosts.dilation:g}", f"{f.verdict}, {f.iterations} iterations"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def best_lines(figures: list[Figure]) -> list[str]:
    lines = ["| program | asked | best gain | at share | ranks |", "|---|---|---|---|---|"]
    for program, asked in ASKED.items():
        mine = [f for f in figures if f.case.program == program and f.verdict == "valid"]
        if not mine:
            lines.append(f"| {LABELS[program]} | {asked:.2f} | no valid run | | |")
            continue
        best = max(mine, key=lambda f: f.gain)
        mark = "✅" if best.gain >= asked else "❌"
        lines.append(f"| {mark} {LABELS[program]} | {asked:.2f} | {best.gain:.3f} | "
                     f"{percent(best.share)} | {best.case.ranks} |")
    inside = [f.gain for f in figures if f.verdict == "valid" and PAPER_SHARES[0] <= f.share <= PAPER_SHARES[1]]
    if inside:
        mean = float(np.mean(inside))
        mark = "✅" if mean >= 1.11 else "❌"
        lines.append(f"| {mark} mean over all valid cases | 1.11 | {mean:.3f} | | |")
    return lines


def stream_lines(figures: list[StreamFigure]) -> list[str]:
    lines = ["| where | size | touch | transfer µs | off µs | on µs | gain | 95 % | asked |",
             "|---|---|---|---|---|---|---|---|---|"]
    for f in figures:
        asked = stream_asked(f)
        mark = "" if asked is None else ("✅ " if f.gain >= asked else "❌ ")
        place = "shared memory" if f.stream.place == "shm" else f"{f.stream.place} Mbit/s"
        text = "" if asked is None else f"≥ {asked:g}"
        alone = f"{f.alone:.5g}" if f.alone else "-"
        lines.append(
            f"| {place} | {human_size(f.stream.size)} | {f.stream.touch} | {alone} | {f.off:.5g} | "
            f"{f.on:.5g} | {mark}{f.gain:.3f} | {f.low:.3f} to {f.high:.3f} | {text} |")
    return lines


def stream_asked(f: StreamFigure) -> float | None:
    s = f.stream
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
            axes[0].errorbar(x, [f.gain for f in mine],
                             [[max(0, f.gain - f.low) for f in mine], [max(0, f.high - f.gain) for f in mine]],
                             color=COLOURS[program], ls=line, marker="o", ms=4, capsize=2, label=label)
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
    chart.tight_layout()
    chart.savefig(path)
    plt.close(chart)
    return path


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
    chart.tight_layout()
    chart.savefig(path)
    plt.close(chart)
    return path


def stream_plot(path: Path, figures: list[StreamFigure]) -> Path | None:
    used = [f for f in figures if f.stream.touch != "once"]
    if not used:
        return None
    chart, axis = plt.subplots(figsize=(6.4, 3.8))
    for place, colour in (("1000", "#1763c6"), ("100", "#e07b00"), ("shm", "#3c8d40")):
        for touch, line in (("order", "-"), ("random", ":"), ("reverse", "--")):
            mine = sorted((f for f in used if (f.stream.place, f.stream.touch) == (place, touch)),
                          key=lambda f: f.stream.size)
            if mine:
                where = "shared memory" if place == "shm" else f"{place} Mbit/s"
                axis.plot([f.stream.size for f in mine], [f.gain for f in mine], color=colour, ls=line,
                          marker="o", ms=4, label=f"{where}, {touch}")
    axis.axhline(2, color="#999999", lw=1, ls="--")
    axis.axhline(1, color="#333333", lw=0.8)
    size_axis(axis, sorted({f.stream.size for f in used}))
    axis.set_ylabel("gain (ideal: 2)")
    axis.legend(fontsize=7)
    axis.set_title("Receive, then compute for as long as the transfer takes", loc="left", fontweight="bold")
    chart.tight_layout()
    chart.savefig(path)
    plt.close(chart)
    return path


# ---- all of it --------------------------------------------------------------------------------
def as_json(f: Figure) -> dict:
    kept = asdict(f)
    kept["share"], kept["verdict"] = f.share, f.verdict
    return kept


def write(out: Path, store: Store, cases: list[Case], streams: list[Stream], about: dict,
          notes: list[str]) -> tuple[list[Figure], list[StreamFigure]]:
    plt.rcParams.update(STYLE)
    figures = [f for c in cases if (f := figure_of(c, store))]
    stream_figures = [f for s in streams if (f := stream_figure(s, store))]
    sweep = [f for f in figures if f.case.group == "sweep"]
    physical = [f for f in figures if f.case.group == "physical"]
    pictures = [sweep_plot(out / "sweep.png", sweep), physical_plot(out / "physical.png", physical),
                stream_plot(out / "stream.png", stream_figures)]
    lines = ["# Early release, measured", "",
             f"{about['date']}, {about['cpu']}, {about['cores']} cores, Linux {about['kernel']}, commit "
             f"{about['commit']}; on = `EARLY_RELEASE={about['on']}`"
             f"{', quick run' if about['quick'] else ''}.", ""]
    lines += [f"- {note}" for note in notes]
    if any(not f.same for f in figures):
        lines += ["", "**Some runs gave different results.**"]
    elif figures:
        lines += ["", f"All results of all {len(figures)} cases agree bit for bit, off and on."]
    if sweep:
        lines += ["", "## Share sweep", "", *best_lines(sweep), "", *paper_table(sweep, False)]
    if physical:
        lines += ["", "## The papers' clusters", "", *paper_table(physical, True)]
    if stream_figures:
        lines += ["", "## Stream consumer", "", *stream_lines(stream_figures)]
    if rows := table2_lines(store):
        lines += ["", "## Cost of closing and opening pages (table 2 of the paper)", "", *rows]
    lines += [f"\n![{p.stem}]({p.name})" for p in pictures if p]
    (out / "release.md").write_text("\n".join(lines) + "\n")
    document = {"about": about, "notes": notes, "ranks_per_host": RANKS_PER_HOST,
                "cases": [as_json(f) for f in figures],
                "streams": [asdict(f) for f in stream_figures],
                "table2": store.lines.get("table2|on|0", {}).get("rows", [])}
    (out / "release.json").write_text(json.dumps(document, indent=1))
    return figures, stream_figures
