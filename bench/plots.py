"""Pictures of a run."""

from __future__ import annotations

from pathlib import Path

import matplotlib

import shared  # noqa: F401

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator  # noqa: E402

from headway.measure.statistics import human_size  # noqa: E402
from headway.measure.validity import PLACEMENTS  # noqa: E402
from results import Key, Results  # noqa: E402
from targets import PEERS, Verdict, describe  # noqa: E402

COLOURS = {
    "headway": "#1763c6",
    "headway-off": "#7fb0ea",
    "mpich": "#e07b00",
    "mpich-async": "#f2bd7a",
    "openmpi": "#3c8d40",
    "limit": "#8a8a8a",
}
MARKERS = {"headway": "o", "headway-off": "o", "mpich": "s", "mpich-async": "s", "openmpi": "^", "limit": "x"}
STYLE = {
    "figure.dpi": 130,
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.grid": True,
    "grid.color": "#e3e3e3",
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


def size_axis(axis, sizes: list[int]) -> None:
    axis.set_xscale("log", base=2)
    low, high = min(sizes), max(sizes)
    axis.set_xlim(low / 1.5, high * 1.5)
    every = 1 if len(sizes) <= 7 else 2
    axis.set_xticks(sizes[::every])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda v, _: human_size(int(v))))
    axis.tick_params(axis="x", labelrotation=40, labelsize=8)


def draw_series(
    axis, results: Results, names: list[str], labels, keys: list[Key], lowest: float | None
) -> None:
    def shown(value: float) -> float:
        return value if lowest is None else max(value, lowest)

    for name in names:
        points = [(k.size, s) for k in keys if (s := results.get(k, name))]
        if not points:
            continue
        x = [p[0] for p in points]
        y = [shown(p[1].median) for p in points]
        colour = COLOURS.get(name, "#555555")
        axis.plot(x, y, marker=MARKERS.get(name, "d"), ms=4, lw=1.6, color=colour, label=labels[name])
        low, high = [shown(p[1].q25) for p in points], [shown(p[1].q75) for p in points]
        axis.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)


def legend_for_all(figure, axes, title: str) -> None:
    """Title and one legend above all panels: the contestants are the same in each."""
    handles: dict[str, object] = {}
    for axis in axes:
        for handle, text in zip(*axis.get_legend_handles_labels()):
            handles.setdefault(text, handle)
    height = figure.get_figheight()
    figure.text(0.012, 1 - 0.08 / height, title, va="top", fontsize=12, fontweight="bold")
    figure.legend(
        handles.values(), handles.keys(), loc="upper left", ncols=len(handles),
        bbox_to_anchor=(0.005, 1 - 0.3 / height), columnspacing=1.4, handletextpad=0.5,
    )
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.55 / height))


def keys_of(results: Results, transport: str, measure: str, buffers: str, placement: str) -> list[Key]:
    return sorted(
        k
        for k in results.table()
        if (k.transport, k.measure, k.buffers, k.placement) == (transport, measure, buffers, placement)
    )


def grid_plot(
    path: Path,
    results: Results,
    names: list[str],
    labels: dict[str, str],
    panels: list[tuple[str, list[Key]]],
    title: str,
    ylabel: str,
    log: bool,
    shares: bool = False,
    columns: int = 4,
) -> Path | None:
    panels = [(t, k) for t, k in panels if len({key.size for key in k}) > 1]
    if not panels:
        return None
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(3.2 * columns + 0.6, 2.8 * rows + 0.8), squeeze=False, sharey=True
    )
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for (text, keys), axis in zip(panels, axes.flat):
        draw_series(axis, results, names, labels, keys, -0.03 if shares else None)
        size_axis(axis, sorted({k.size for k in keys}))
        axis.set_title(text)
        if log:
            axis.set_yscale("log")
            axis.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
            axis.yaxis.set_minor_formatter(NullFormatter())
        if shares:
            axis.set_ylim(-0.05, 1.07)
    for row in axes:
        row[0].set_ylabel(ylabel)
    legend_for_all(figure, axes.flat, title)
    figure.savefig(path)
    plt.close(figure)
    return path


PANEL = {
    "hot": "buffers untouched",
    "many": "a buffer each, untouched",
    "dirty": "freshly written",
    "cold": "a buffer each, cold",
}


def placements_panels(results: Results, transport: str, measure: str) -> list[tuple[str, list[Key]]]:
    panels = []
    for placement in (*PLACEMENTS, "any"):
        for buffers, text in PANEL.items():
            where = f", cores {placement}" if placement != "any" else ""
            words = f"{text}{where}" if transport == "shm" else f"TCP{where}"
            panels.append((words, keys_of(results, transport, measure, buffers, placement)))
    return panels


def by_placement(results: Results, transport: str, measures) -> list[tuple[str, str, list[Key]]]:
    """Panels, each with its unit: of each measure one for each placement of the cores that was seen."""
    panels = []
    for measure, words, unit in measures:
        for placement in PLACEMENTS:
            keys = keys_of(results, transport, measure, "hot", placement)
            if len({k.size for k in keys}) > 1:
                panels.append((f"{words}, cores {placement}", unit, keys))
    return panels


def steps_plot(path: Path, results: Results, names: list[str], labels: dict[str, str]) -> Path | None:
    """Latency and bandwidth over all sizes, where a size changes the way of a message."""
    words = (("latency_steps", "one-way latency", "µs"), ("window_steps", "window of 16", "MB/s"))
    panels = by_placement(results, "shm", words)
    if not panels:
        return None
    figure, axes = plt.subplots(len(panels), 1, figsize=(8.5, 2.6 * len(panels) + 0.8), squeeze=False)
    for (text, unit, keys), axis in zip(panels, axes.flat):
        draw_series(axis, results, names, labels, keys, None)
        size_axis(axis, [1 << n for n in range(0, 25, 2)])
        axis.set_title(text)
        axis.set_ylabel(unit)
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    legend_for_all(figure, axes.flat, "All sizes in steps of √2, shared memory, buffers untouched")
    figure.savefig(path)
    plt.close(figure)
    return path


def wire_plot(path: Path, results: Results, names: list[str], labels: dict[str, str]) -> Path | None:
    """Latency and bandwidth over TCP, side by side, each with its own scale."""
    panels = by_placement(results, "tcp", (("latency", "one-way latency", "µs"), ("window", "bandwidth", "MB/s")))
    if not panels:
        return None
    figure, axes = plt.subplots(
        1, len(panels), figsize=(max(3.4 * len(panels) + 0.4, 4.6), 3.6), squeeze=False
    )
    for (text, unit, keys), axis in zip(panels, axes.flat):
        draw_series(axis, results, names, labels, keys, None)
        size_axis(axis, sorted({k.size for k in keys}))
        axis.set_title(text)
        axis.set_ylabel(unit)
        axis.set_ylim(0, 140 if unit == "MB/s" else None)
        if unit == "MB/s":
            axis.axhline(125, color="#999999", lw=1, ls="--")
            axis.text(min(k.size for k in keys), 126, "1 Gbit/s", fontsize=7, color="#777777", va="bottom")
    legend_for_all(figure, axes.flat, "TCP between simulated hosts, 1 Gbit/s")
    figure.savefig(path)
    plt.close(figure)
    return path


def scoreboard(path: Path, verdicts: list[Verdict]) -> Path | None:
    """How far above or below the asked figure each one is: 1 = exactly as asked."""
    judged = [v for v in verdicts if v.score is not None]
    if not judged:
        return None
    judged.reverse()
    figure, axis = plt.subplots(figsize=(9.5, 0.22 * len(judged) + 1.4))
    for y, v in enumerate(judged):
        score = min(max(v.score or 0, 0.1), 10)
        good = v.state == "pass"
        colour = "#2e8b57" if good else "#c0392b"
        axis.plot([1, score], [y, y], color=colour, lw=2, solid_capstyle="round")
        axis.plot(score, y, "o", color=colour, ms=5)
    axis.axvline(1, color="#333333", lw=1)
    axis.set_xscale("log")
    axis.set_xlim(min(0.3, min(max(v.score or 0, 0.1) for v in judged) * 0.9), None)
    ticks = [t for t in (0.1, 0.2, 0.5, 1, 2, 5, 10) if axis.get_xlim()[0] <= t <= axis.get_xlim()[1]]
    axis.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axis.xaxis.set_minor_formatter(NullFormatter())
    names = [f"{v.key.transport}  {v.what}, {describe(v.key)}".rstrip(", ") for v in judged]
    axis.set_yticks(range(len(judged)), names, fontsize=7)
    axis.set_ylim(-0.8, len(judged) - 0.2)
    axis.set_xlabel("reached / asked (right of 1 is better than asked)")
    met = sum(v.state == "pass" for v in judged)
    axis.set_title(f"Asked figures: {met} of {len(judged)} met", loc="left", fontweight="bold")
    axis.grid(axis="y", visible=False)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)
    return path


def slowdown_plot(path: Path, results: Results, names: list[str], labels: dict[str, str]) -> Path | None:
    groups = [
        (f"{'shared memory' if t == 'shm' else 'TCP'}\n{words}", Key(t, f"slowdown_{side}", size, "hot", "any"))
        for t in ("shm", "tcp")
        for side, words in (("recv", "receiver"), ("send", "sender"), ("both", "both"))
        for size in (1 << 20,)
    ]
    groups = [g for g in groups if g[1] in results.table()]
    names = [n for n in names if any(results.get(k, n) for _, k in groups)]
    if not groups or not names:
        return None
    figure, axis = plt.subplots(figsize=(1.6 * len(groups) + 1.5, 3.6))
    width = 0.8 / len(names)
    for i, name in enumerate(names):
        for x, (_, key) in enumerate(groups):
            stats = results.get(key, name)
            if not stats:
                continue
            at = x - 0.4 + width * (i + 0.5)
            value = stats.median * 100
            error = [[max(0, value - stats.q25 * 100)], [max(0, stats.q75 * 100 - value)]]
            axis.bar(at, value, width * 0.92, color=COLOURS.get(name, "#555555"), label=labels[name] if x == 0 else None)
            axis.errorbar(at, value, error, color="#333333", lw=1, capsize=2)
    axis.axhline(0, color="#333333", lw=0.8)
    axis.set_xticks(range(len(groups)), [g[0] for g in groups])
    axis.set_ylabel("time added to a fixed computation, %")
    axis.set_title("Computation with a 1 MB transfer beside it: who computes", loc="left", fontweight="bold")
    axis.legend()
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)
    return path


def draw_all(
    folder: Path, results: Results, verdicts: list[Verdict], names: list[str], labels: dict[str, str]
) -> list[Path]:
    plt.rcParams.update(STYLE)
    shares = [
        (f"{'shared memory' if t == 'shm' else 'TCP'}: {words}", keys_of(results, t, m, "hot", "any"))
        for t in ("shm", "tcp")
        for m, words in (
            ("overlap_recv", "receive overlap"),
            ("progress_recv", "receive progress"),
            ("overlap_send", "send overlap"),
            ("progress_send", "send progress"),
        )
    ]
    both = [(m, t) for m in ("window", "stream", "bidir") for t in ("shm",)]
    bandwidth = [
        (f"{'window of 64' if m == 'window' else 'single stream' if m == 'stream' else 'both ways'}\n{words}", keys)
        for m, t in both
        for words, keys in placements_panels(results, t, m)
    ]
    window16 = [
        (f"{text}\n{words}", keys)
        for m, text in (("window16", "window of 16"), ("bidir16", "both ways, window of 16"))
        for words, keys in placements_panels(results, "shm", m)
    ]
    peers = [
        (f"{PEERS[m].removeprefix('bandwidth, both ways, ')}\n{words}", keys)
        for m in PEERS
        if m.startswith("bidir")
        for words, keys in placements_panels(results, "shm", m)
    ]
    main = [n for n in names if n in ("headway", "mpich", "openmpi", "limit")]
    made = [
        scoreboard(folder / "scoreboard.png", verdicts),
        grid_plot(
            folder / "latency.png", results, main, labels, placements_panels(results, "shm", "latency"),
            "One-way latency, shared memory", "µs", log=True,
        ),
        grid_plot(
            folder / "bandwidth.png", results, main, labels, bandwidth,
            "Bandwidth, shared memory", "MB/s", log=False,
        ),
        grid_plot(
            folder / "window16.png", results, main, labels, window16,
            "Bandwidth and its limit, shared memory", "MB/s", log=False,
        ),
        grid_plot(
            folder / "peers.png", results, main, labels, peers,
            "Windows of one rank with several others, and of several pairs: all of them together", "MB/s", log=True,
        ),
        steps_plot(folder / "steps.png", results, [n for n in main if n in ("headway", "limit")], labels),
        wire_plot(folder / "tcp.png", results, main, labels),
        grid_plot(
            folder / "overlap.png", results, main, labels, shares,
            "Overlap and independent progress", "share", log=False, shares=True,
        ),
        slowdown_plot(folder / "slowdown.png", results, main, labels),
    ]
    return [p for p in made if p]
