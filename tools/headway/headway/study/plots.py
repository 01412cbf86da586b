"""Pictures of a study, each as PNG and SVG."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator  # noqa: E402

from headway.measure.statistics import human_size  # noqa: E402
from headway.study.blocking import FIGURES  # noqa: E402
from headway.study.findings import Findings, Of  # noqa: E402
from headway.study.samr import BASE, PAPER_GAIN, Row  # noqa: E402
from headway.study.value import near  # noqa: E402

COLOURS = ("#1763c6", "#c0392b", "#e07b00", "#3c8d40", "#8e44ad", "#00838f", "#6d4c41")
STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "font.size": 9,
    "svg.fonttype": "none",
    "figure.dpi": 110,
}
CALLS = {
    "s": ("MPI_Isend", "#c0392b"),
    "ws": ("MPI_Wait (send)", "#e07b00"),
    "r": ("MPI_Irecv", "#3c8d40"),
    "wr": ("MPI_Waitall (receives)", "#1763c6"),
    "t": ("MPI_Test", "#8e44ad"),
    "T": ("MPI_Testall", "#d36ac2"),
    "@": ("computation", "#dcdcdc"),
    "c": ("computation", "#dcdcdc"),
}


def size_axis(axis) -> None:
    axis.set_xscale("log", base=2)
    axis.xaxis.set_major_locator(FixedLocator([1, 32, 1 << 10, 1 << 15, 1 << 20]))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda v, _: human_size(int(v)) if v >= 1 else ""))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xlabel("message size")


def save(chart, folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    chart.savefig(folder / f"{name}.png")
    chart.savefig(folder / f"{name}.svg")
    plt.close(chart)
    return folder / f"{name}.svg"


def curve(axis, of: Of, measure: str, colour: str, label: str, **more) -> bool:
    points = sorted(of.curves.get(measure, {}).items())
    if not points:
        return False
    sizes = [s for s, _ in points]
    axis.plot(sizes, [v.median for _, v in points], "o-", color=colour, label=label, ms=3, lw=1.4, **more)
    axis.fill_between(sizes, [v.low for _, v in points], [v.high for _, v in points], color=colour, alpha=0.15, lw=0)
    return True


def many(findings: Findings, place: str, axis, measure: str) -> bool:
    drawn = False
    for i, mpi in enumerate(findings.mpis):
        of = findings.of.get((mpi, place))
        if of:
            drawn |= curve(axis, of, measure, COLOURS[i % len(COLOURS)], findings.label(mpi))
    return drawn


def basics(findings: Findings, place: str, folder: Path) -> Path | None:
    """Figure 2 of the overlap and progress paper."""
    with plt.rc_context(STYLE):
        chart, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
        drawn = False
        for axis, measure, title in zip(
            axes,
            ("latency", "window", "bidir-sends"),
            ("latency, µs", "bandwidth, MB/s", "both ways, sends first, MB/s"),
        ):
            drawn |= many(findings, place, axis, measure)
            axis.set_title(title, loc="left")
            size_axis(axis)
        axes[0].set_yscale("log")
        if not drawn:
            plt.close(chart)
            return None
        axes[0].legend(frameon=False)
        return save(chart, folder, f"{place}-basics")


def overlaps(findings: Findings, place: str, folder: Path) -> Path | None:
    """Figure 4: overlap by size, the machine's bound in grey."""
    with plt.rc_context(STYLE):
        chart, axes = plt.subplots(1, 2, figsize=(12, 3.8), layout="constrained", sharey=True)
        drawn = False
        for axis, side, title in zip(axes, ("send", "recv"), ("send overlap", "receive overlap")):
            drawn |= many(findings, place, axis, f"overlap_{side}")
            bounds: dict[int, float] = {}
            for (_, where), of in findings.of.items():
                for size, bound in (of.bound.get(side, {}) if where == place else {}).items():
                    bounds[size] = max(bounds.get(size, 0), bound)
            if bounds:
                axis.plot(*zip(*sorted(bounds.items())), "--", color="#777", lw=1, label="the machine allows")
            axis.set_ylim(-0.1, 1.15)
            axis.set_title(title, loc="left")
            size_axis(axis)
        axes[0].set_ylabel("share of the transfer that is hidden")
        if not drawn:
            plt.close(chart)
            return None
        axes[1].legend(frameon=False)
        return save(chart, folder, f"{place}-overlap")


def delays(findings: Findings, place: str, folder: Path) -> Path | None:
    """Figures 5 and 6: latency at the receiver by size, a line for each delay."""
    present = [m for m in findings.mpis if findings.of.get((m, place), Of()).delayed]
    if not present:
        return None
    order = ("none", "0.6 l0", "1.5 l0", "2 l0", "4 l0", "100 µs")
    with plt.rc_context(STYLE):
        chart, axes = plt.subplots(
            2,
            len(present),
            figsize=(3.4 * len(present) + 1, 6),
            layout="constrained",
            squeeze=False,
            sharex=True,
            sharey=True,
        )
        for row, side in enumerate(("send", "recv")):
            for axis, mpi in zip(axes[row], present):
                found = findings.of[mpi, place].delayed.get(side, {})
                for i, delay in enumerate(order):
                    points = [(s, by[delay].median) for s, by in sorted(found.items()) if delay in by]
                    if points:
                        axis.plot(*zip(*points), "-", color=plt.cm.viridis(i / len(order)), lw=1.4, label=delay)
                axis.set_yscale("log")
                size_axis(axis)
                axis.set_title(
                    f"{findings.label(mpi)}: delay behind {'MPI_Isend' if side == 'send' else 'MPI_Irecv'}", loc="left"
                )
            axes[row][0].set_ylabel("latency at the receiver, µs")
        with_lines = next((a for a in axes[:, -1] if a.get_lines()), None)
        if with_lines is not None:
            with_lines.legend(frameon=False, title="delay")
        return save(chart, folder, f"{place}-progress")


def time_lines(rows: dict[int, dict], title: str, folder: Path, name: str) -> Path | None:
    """Figures 2 to 5 and 8 to 11 of the non-blocking paper: what both ranks did when."""
    numbers = sorted(rows)
    if not numbers:
        return None
    titles = {f.number: f.title for f in FIGURES}
    with plt.rc_context(STYLE | {"axes.grid": False}):
        chart, axes = plt.subplots(
            len(numbers), 1, figsize=(10, 1.25 * len(numbers) + 0.9), layout="constrained", squeeze=False, sharex=True
        )
        # What takes no time is a mark of its own, or it would not be seen; all panels have the same time.
        sides = [rows[n]["extra"][side] for n in numbers for side in ("zero", "one")]
        least = max((e["end"][0] for side in sides for e in side), default=0) / 1e3 * 0.004
        used: dict[str, str] = {}
        for axis, number in zip(axes[:, 0], numbers):
            extra = rows[number]["extra"]
            for y, side in ((1, "zero"), (0, "one")):
                for event in extra[side]:
                    if event["op"] not in CALLS:
                        continue
                    label, colour = CALLS[event["op"]]
                    begin, end = event["begin"][0] / 1e3, event["end"][0] / 1e3
                    height = 0.5 if label != "computation" else 0.3
                    axis.barh(y, max(end - begin, least), left=begin, height=height, color=colour, lw=0, zorder=2 + (label != "computation"))
                    used[label] = colour
            axis.set_yticks([1, 0], ["sender", "receiver"] if not number == 5 else ["process 0", "process 1"])
            axis.set_ylim(-0.5, 1.5)
            axis.set_title(
                f"figure {number}, {titles.get(number, '')} ({near(rows[number]['size'])})", loc="left", fontsize=8
            )
        axes[-1, 0].set_xlabel("ms")
        chart.suptitle(title, x=0.01, ha="left", fontweight="bold")
        handles = [plt.Rectangle((0, 0), 1, 1, color=c) for c in used.values()]
        chart.legend(handles, list(used), loc="outside lower center", ncols=len(used), frameon=False)
        return save(chart, folder, name)


def mesh_times(findings: Findings, folder: Path) -> Path | None:
    """Figures 14 and 15: execution and communication of the paper's forms, by ranks."""
    rows = [r for r in findings.samr if r.case.startswith(("frea-", "horizon-")) and r.forms]
    there = {(r.case.split("-")[0], r.mpi) for r in rows}
    groups = [(n, mpi) for n in ("frea", "horizon") for mpi in findings.mpis if (n, mpi) in there]
    if not groups:
        return None
    with plt.rc_context(STYLE):
        wide = 3.4 * len(groups) + 0.6
        chart, axes = plt.subplots(1, len(groups), figsize=(wide, 3.8), layout="constrained", squeeze=False)
        for axis, (name, mpi) in zip(axes[0], groups):
            mine = [r for r in rows if r.case.startswith(name) and r.mpi == mpi]
            pair = ("6", "7") if name == "frea" else ("12", "13")
            for i, (what, form) in enumerate((w, f) for w in ("execution", "communication") for f in pair):
                values = [(x, getattr(r.forms[form], what)) for x, r in enumerate(mine) if form in r.forms]
                if values:
                    axis.bar(
                        [x + 0.2 * (i - 1.5) for x, _ in values], [v.median for _, v in values], 0.18,
                        color=COLOURS[i // 2], alpha=1 if i % 2 else 0.45, label=f"{what}, figure {form}",
                        yerr=[[v.median - v.low for _, v in values], [v.high - v.median for _, v in values]],
                        error_kw={"lw": 0.8},
                    )  # fmt: skip
            axis.set_xticks(range(len(mine)), [r.way.replace(", ", "\n") for r in mine], fontsize=7)
            axis.set_title(f"{findings.label(mpi)}, figure {14 if name == 'frea' else 15}", loc="left")
            axis.grid(axis="x", visible=False)
        axes[0][0].set_ylabel("seconds an iteration")
        for axis in axes[0]:
            axis.legend(frameon=False, fontsize=6)
        return save(chart, folder, "samr-times")


def short_title(row: Row) -> str:
    """Without what the page tells of its messages; how many ranks there were instead."""
    title = row.title.split(", below ")[0].split(", above ")[0]
    return title + (f", run with {row.way.split(' ranks')[0]}" if " instead of " in row.way else "")


def mesh_gains(findings: Findings, folder: Path) -> Path | None:
    """What the paper's strategies save of the communication time, with intervals, beside the paper's."""
    rows = [r for r in findings.samr if any(f in r.forms for f in PAPER_GAIN)]
    if not rows:
        return None
    with plt.rc_context(STYLE):
        chart, axes = plt.subplots(
            1, 2, figsize=(11, 1.1 + 0.27 * len(rows)), layout="constrained", sharey=True, squeeze=False
        )
        for axis, (form, gain) in zip(axes[0], PAPER_GAIN.items()):
            for y, row in enumerate(rows):
                colour = COLOURS[findings.mpis.index(row.mpi) % len(COLOURS)]
                beside = [f for f in row.forms if BASE[f] == BASE[form] and f not in (form, BASE[f])]
                best = max(beside, key=lambda f: row.forms[f].gain.median, default="")
                for name, how in ((form, {"mfc": colour}), (best, {"mfc": "white"})):
                    if name in row.forms:
                        v = row.forms[name].gain
                        sides = [[100 * (v.median - v.low)], [100 * (v.high - v.median)]]
                        axis.errorbar(100 * v.median, -y, xerr=sides, fmt="o", ms=4, color=colour, lw=1.2, **how)
            axis.axvline(0, color="#777", lw=0.8)
            axis.axvline(100 * gain, color="#777", ls="--", lw=1)
            hollow = " (hollow: best of the others)" if form == "7" else ""
            axis.set_title(f"figure {form}: saved in communication, %{hollow}", loc="left", fontsize=8)
            left, right = axis.get_xlim()
            axis.set_xlim(max(left, -60), min(max(right, 100 * gain + 5), 100))  # short runs have wide intervals
            axis.annotate(" the paper", (100 * gain, 0.4), fontsize=7, color="#555", va="top")
            axis.set_ylim(0.5 - len(rows), 0.5)
        axes[0][0].set_yticks(
            [-y for y in range(len(rows))], [f"{findings.label(r.mpi)}, {short_title(r)}" for r in rows], fontsize=7
        )
        return save(chart, folder, "samr-gains")


def draw(findings: Findings, folder: Path) -> dict[str, list[Path]]:
    """Pictures by place; those of the imitations under `imitated`."""
    names = {
        "mpich125": "MPICH 1.2.5 as the paper found it: Isend blocks from 60 KB together",
        "ibm": "IBM's MPI as the paper found it: a send's wait blocks from 100 KB",
    }
    found: dict[str, list[Path]] = {"imitated": []}
    for name, rows in findings.imitated.items():
        found["imitated"].append(time_lines(rows, f"Imitated: {names.get(name, name)}", folder, f"imitated-{name}"))
    found["samr"] = [mesh_gains(findings, folder), mesh_times(findings, folder)]
    for place in findings.places:
        found[place] = [
            basics(findings, place, folder),
            overlaps(findings, place, folder),
            delays(findings, place, folder),
        ]
        for mpi in findings.mpis:
            rows = findings.of.get((mpi, place), Of()).figures
            found[place].append(
                time_lines(rows, f"{findings.label(mpi)}, {findings.title(place)}", folder, f"{place}-lines-{mpi}")
            )
    return {place: [p for p in pictures if p] for place, pictures in found.items()}
