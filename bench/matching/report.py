"""From the results of bench/matching/run.py: tables, JSON, pictures beside the paper's."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter  # noqa: E402

import paper  # noqa: E402
import real  # noqa: E402
from plots import STYLE  # noqa: E402

COLOURS = {"list": "#777777", "source": "#3c8d40", "pnp": "#b58900", "col+list": "#e07b00",
           "list+pnp": "#8e5bb5", "col+pnp": "#c0392b", "headway": "#1763c6"}
SHORT = {"point": "point to point", "collective": "collective", "all": "all"}
# Figure 5: what a message costs beside its matching, on the paper's cluster A (QDR InfiniBand).
WIRE_NS, WIRE_BYTES_PER_NS = 400, 3.2
SIZES = [4**i for i in range(9)]

Rows = list[dict]


def parts(kind: str) -> tuple[str, ...]:
    return ("point", "collective") if kind == "all" else (kind,)


def median_of(rows: Rows, design: str, value) -> float | None:
    values = [value(row) for row in rows if row["design"] == design]
    return statistics.median(values) if values else None


def search_ns(rows: Rows, design: str, queue: str, kind: str) -> float | None:
    """Nanoseconds of all searches of a run: the median over its rounds."""
    return median_of(rows, design, lambda row: sum(row[queue][k]["search_ns"] for k in parts(kind)))


def per_search(rows: Rows, design: str, queue: str, kind: str, what: str) -> float | None:
    def value(row: dict) -> float:
        searches = sum(row[queue][k]["searches"] for k in parts(kind))
        return sum(row[queue][k][what] for k in parts(kind)) / max(searches, 1)

    return median_of(rows, design, value)


def gain(rows: Rows, design: str, queue: str, kind: str) -> float | None:
    one, other = search_ns(rows, "list", queue, kind), search_ns(rows, design, queue, kind)
    return one / other if one and other else None


def lists(rows: Rows, design: str, queue: str, kind: str) -> float:
    return median_of(rows, design, lambda row: sum(row[queue][k]["queues"] for k in parts(kind))) or 0


def overhead(rows: Rows) -> float | None:
    """Making lists and deciding how many, over the search time of one list."""
    spent = median_of(rows, "col+pnp", lambda row: sum(row[q]["overhead_ns"] for q in paper.QUEUES))
    searching = sum(search_ns(rows, "list", q, "all") or 0 for q in paper.QUEUES)
    return spent / searching if spent is not None and searching else None


def table(head: list[str], lines: list[list[str]]) -> list[str]:
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*out, *("| " + " | ".join(line) + " |" for line in lines), ""]


def figure(value: float | None, digits: int = 3) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 10**digits else f"{value:.{digits}g}"


# ---- text -------------------------------------------------------------------------------------
def gains_text(done: dict[str, Rows]) -> list[str]:
    out = ["## Gains over one list (figures 7 and 8, kC = kP = 8, threshold 100)", "",
           "Search time of `list` over that of the design: unexpected / posted.", ""]
    lines = []
    for program, counts in paper.PROCESSES.items():
        for n in counts:
            rows = done.get(f"program/{program}/{n}")
            if not rows:
                continue
            for kind in paper.KINDS:
                cells = [f"{paper.PROGRAMS[program]}, {n}", SHORT[kind]]
                for design in paper.DESIGNS[1:]:
                    cells.append(" / ".join(figure(gain(rows, design, q, kind)) for q in paper.QUEUES))
                lines.append(cells)
    return out + table(["program, processes", "elements", *paper.DESIGNS[1:]], lines)


def best(done: dict[str, Rows], program: str, design: str, kind: str, queue: str, pick=max) -> float | None:
    values = [gain(done[f"program/{program}/{n}"], design, queue, kind)
              for n in paper.PROCESSES[program] if f"program/{program}/{n}" in done]
    known = [v for v in values if v]
    return pick(known) if known else None


def paper_text(done: dict[str, Rows]) -> list[str]:
    out = ["## Beside the paper's gains", "", "The paper says \"up to\"; ours: the least and the most over "
           "the process counts.", ""]
    lines = []
    for (program, design, kind), theirs in paper.GAINS.items():
        for queue, value in zip(paper.QUEUES, theirs):
            low, high = (best(done, program, design, kind, queue, pick) for pick in (min, max))
            lines.append([paper.PROGRAMS[program], design, SHORT[kind], queue, f"{value:g}",
                          f"{figure(low)} to {figure(high)}"])
    out += table(["program", "design", "elements", "queue", "paper", "here"], lines)
    out += ["## Asked and reached", ""]
    lines = []
    for (program, design, kind), asked in paper.ASKED.items():
        for queue, value in zip(paper.QUEUES, asked):
            low = best(done, program, design, kind, queue, min)
            mark = "–" if low is None else "✅" if low >= value else "❌"
            lines.append([mark, f"{paper.PROGRAMS[program]}, {SHORT[kind]} elements, {queue}, {design}",
                          f"{value:g}", figure(low)])
    return out + table(["", "at every process count", "asked", "least"], lines) + ours_text(done)


def ours_text(done: dict[str, Rows]) -> list[str]:
    lines = []
    for n in paper.PROCESSES["fds"]:
        rows = done.get(f"program/fds/{n}")
        if not rows:
            continue
        times, memory = {}, {}
        for design in ("col+pnp", "headway"):
            times[design] = sum(search_ns(rows, design, q, "all") or 0 for q in paper.QUEUES)
            memory[design] = median_of(rows, design, lambda row: row["memory"]) or 0
        good = times["headway"] <= times["col+pnp"] and memory["headway"] <= memory["col+pnp"]
        lines.append(["✅" if good else "❌", str(n), figure(times["col+pnp"] / times["headway"]),
                      f"{memory['headway'] / 1024:.1f} KB", f"{memory['col+pnp'] / 1024:.1f} KB"])
    head = ["", "FDS, processes", "headway faster than col+pnp by", "memory of headway", "of col+pnp"]
    return table(head, lines)


def short_text(done: dict[str, Rows]) -> list[str]:
    rows = done.get("short/short/512")
    if not rows:
        return []
    out = ["## Short queues (Radix bursts of up to 10, 512 processes)", "",
           "The whole run without a clock inside: receives and arrivals, searches and additions; the least "
           "of all rounds. Asked: no design slower than `list` by more than 5 %.", ""]
    least = {d: min(r["total_ns"] / r["messages"] for r in rows if r["design"] == d) for d in paper.DESIGNS}
    lines = []
    for design in paper.DESIGNS:
        ratio = least[design] / least["list"]
        searches = " / ".join(figure(per_search(rows, design, q, "all", "search_ns")) for q in paper.QUEUES)
        lines.append(["✅" if ratio <= 1.05 else "❌", design, f"{least[design]:.1f}", f"{ratio:.3f}", searches])
    return out + table(["", "design", "ns a message", "over list", "ns a search, unexpected / posted"], lines)


def length_text(done: dict[str, Rows]) -> list[str]:
    out = ["## One source, many tags: ns a match", "", "Worst order for a list: the last first. "
           "Asked of headway: under 150 at every length. In random order every match misses the caches.", ""]
    rows = [row for name, all_rows in done.items() if name.startswith("length/") for row in all_rows]
    lines = []
    for length in sorted({row["length"] for row in rows}):
        for queue in paper.QUEUES:
            cells = [f"{length:,}", queue]
            for design in paper.DESIGNS:
                found = {r["order"]: r["ns"] for r in rows
                         if (r["length"], r["queue"], r["design"]) == (length, queue, design)}
                cells.append(" / ".join(figure(found.get(order)) for order in ("worst", "random")))
            lines.append(cells)
    return out + table(["entries", "queue (worst / random)", *paper.DESIGNS], lines)


def wild_text(done: dict[str, Rows]) -> list[str]:
    out = ["## Wildcards, and all in reverse: ns a search, unexpected / posted", "",
           "Up to 16,384 entries, one from each rank.", ""]
    lines = []
    for name, rows in done.items():
        if not name.startswith("wild/"):
            continue
        _, what, n = name.split("/")
        cells = [what, f"{int(n):,}"]
        for design in paper.DESIGNS:
            cells.append(" / ".join(figure(per_search(rows, design, q, "all", "search_ns")) for q in paper.QUEUES))
        lines.append(cells)
    return out + table(["receives", "processes", *paper.DESIGNS], lines)


def overhead_text(done: dict[str, Rows]) -> list[str]:
    out = ["## Overhead of profiling and allocation (table 2)", "",
           "Of col+pnp, over the whole run with its first calls, divided by the search time of `list`; the "
           "paper divides by its own, faster, searches. And the same for each step more: nothing.", ""]
    lines = []
    for (program, n), theirs in paper.OVERHEAD.items():
        rows = done.get(f"program/{program}/{n}")
        if rows:
            spent = median_of(rows, "col+pnp", lambda row: sum(row[q]["overhead_ns"] for q in paper.QUEUES))
            lines.append([paper.PROGRAMS[program], str(n), f"{theirs:g}", figure(overhead(rows)),
                          f"{(spent or 0) / 1000:.1f}", str(rows[0]["steps"])])
    return out + table(["program", "processes", "paper", "here", "µs in all", "steps"], lines)


def lists_text(done: dict[str, Rows]) -> list[str]:
    out = ["## Lists made by col+pnp, and by source (figures 9 and 10)", "",
           "Unexpected / posted; the cap of each kind is 8 square roots of the processes.", ""]
    lines = []
    for program, counts in paper.PROCESSES.items():
        for n in counts:
            rows = done.get(f"program/{program}/{n}")
            if not rows:
                continue
            cells = [paper.PROGRAMS[program], str(n), str(int(8 * n**0.5))]
            for design, kind in (("col+pnp", "collective"), ("col+pnp", "point"), ("source", "all")):
                cells.append(" / ".join(f"{lists(rows, design, q, kind):.0f}" for q in paper.QUEUES))
            theirs = paper.LISTS.get((program, n), (None, None))
            cells.append(", ".join(f"{v} {k}" for v, k in zip(theirs, ("collective", "point to point")) if v) or "-")
            lines.append(cells)
    head = ["program", "processes", "cap", "collective", "point to point", "source", "paper"]
    return out + table(head, lines)


# ---- pictures ---------------------------------------------------------------------------------
def save(figure_, path: Path, title: str) -> None:
    figure_.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    figure_.tight_layout()
    figure_.savefig(path)
    plt.close(figure_)


def legend(axis, size: int = 7) -> None:
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=size)


def plain(axis, log: bool) -> None:
    if log:
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))


def figure1(out: Path, done: dict[str, Rows]) -> None:
    drawn, axes = plt.subplots(1, 4, figsize=(12, 3))
    for axis, (program, counts) in zip(axes, paper.PROCESSES.items()):
        rows = done.get(f"program/{program}/512") or done.get(f"program/{program}/{counts[0]}") or []
        for i, kind in enumerate(("point", "collective")):
            values = [median_of(rows, "list", lambda r, q=q, k=kind: r[q][k]["entries"] / r["steps"]) or 0
                      for q in paper.QUEUES]
            axis.bar([x + i * 0.4 for x in range(2)], values, 0.38, label=SHORT[kind])
        axis.set_xticks([0.2, 1.2], ["unexpected", "posted"])
        axis.set_title(paper.PROGRAMS[program])
    axes[0].set_ylabel("entries a step")
    legend(axes[0], 8)
    save(drawn, out / "figure-1.png", "Entries by kind, 512 processes (the paper's figure 1)")


def wire_ns(call: str, n: int, size: int) -> tuple[float, int]:
    """A model of a call without matching: ns, and the messages that this process matches."""
    messages = n - 1 if call == "gather" else 40 if call == "allreduce" else 64
    return messages * (WIRE_NS + size / WIRE_BYTES_PER_NS), messages


def latency_gain(rows: Rows, call: str, n: int, size: int, design: str) -> float | None:
    wire, messages = wire_ns(call, n, size)
    one, other = (per_search(rows, d, "posted", "all", "search_ns") for d in ("list", design))
    return (wire + messages * one) / (wire + messages * other) if one and other else None


def figure5(out: Path, done: dict[str, Rows]) -> list[str]:
    drawn, axes = plt.subplots(1, 3, figsize=(11, 3.2))
    lines = []
    for axis, call in zip(axes, ("gather", "allreduce", "iallgather")):
        for n in (1024, 2048, 4096):
            rows = done.get(f"call/{call}/{n}")
            if not rows:
                continue
            values = [latency_gain(rows, call, n, size, "col+pnp") for size in SIZES]
            axis.plot(SIZES, values, marker="o", ms=3, label=f"{n} processes")
            matched = gain(rows, "col+pnp", "posted", "all")
            theirs = paper.LATENCY.get((call, n))
            lines.append([call, str(n), f"{theirs:g}" if theirs else "-", figure(values[0]), figure(values[-2]),
                          figure(matched), figure(gain(rows, "headway", "posted", "all")),
                          f"{lists(rows, 'col+pnp', 'posted', 'collective'):.0f}"])
        axis.set_xscale("log", base=4)
        axis.set_title(call)
    axes[0].set_ylabel("latency, list over col+pnp")
    legend(axes[0], 8)
    save(drawn, out / "figure-5.png", "Collectives at k = 1, matching as measured, wire as modelled (figure 5)")
    text = ["## Collectives at k = 1 (figure 5)", "",
            f"Search time is measured, the rest is a model of a wire: {WIRE_NS} ns and "
            f"{WIRE_BYTES_PER_NS} bytes a ns for each message.", ""]
    head = ["call", "processes", "paper", "model, 1 B", f"model, {SIZES[-2] // 1024} KB",
            "search alone, col+pnp", "search alone, headway", "lists"]
    return text + table(head, lines)


def figure6(out: Path, done: dict[str, Rows]) -> None:
    drawn, axes = plt.subplots(2, 4, figsize=(13, 5.4))
    for column, (program, counts) in enumerate(paper.PROCESSES.items()):
        for axis, queue in zip(axes[:, column], paper.QUEUES):
            for n in counts:
                points = []
                for kc in (1, 2, 4, 8, 16):
                    rows = done.get(f"kc/{program}/{n}/{kc}", [])
                    if not any(r["design"] == "list" for r in rows):  # measured once: it takes long
                        rows = rows + [r for r in done.get(f"program/{program}/{n}", []) if r["design"] == "list"]
                    value = gain(rows, "col+pnp", queue, "collective")
                    if value:
                        points.append((kc, value))
                if points:
                    axis.plot(*zip(*points), marker="o", ms=3, label=str(n))
            axis.set_xscale("log", base=2)
            axis.set_xticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
            axis.set_title(f"{paper.PROGRAMS[program]}, {queue}")
            legend(axis)
    for row in axes:
        row[0].set_ylabel("gain over list")
    save(drawn, out / "figure-6.png", "Search of collective elements by kC, col+pnp, kP = 8 (figure 6)")


def figure78(out: Path, done: dict[str, Rows]) -> None:
    for number, programs in (("7", ("radix", "nbody")), ("8", ("miniamr", "fds"))):
        drawn, axes = plt.subplots(2, 2, figsize=(13, 6))
        for row, program in zip(axes, programs):
            n = paper.PROCESSES[program][-1]
            while n > 2 and f"program/{program}/{n}" not in done:
                n //= 2
            rows = done.get(f"program/{program}/{n}") or []
            for axis, queue in zip(row, paper.QUEUES):
                for i, design in enumerate(paper.DESIGNS[1:]):
                    values = [gain(rows, design, queue, kind) or 0 for kind in paper.KINDS]
                    at = [x + i * 0.13 for x in range(3)]
                    axis.bar(at, values, 0.12, color=COLOURS[design], label=design)
                    for x, kind in zip(at, paper.KINDS):
                        theirs = paper.GAINS.get((program, design, kind))
                        if theirs:
                            axis.plot(x, theirs[paper.QUEUES.index(queue)], "k_", ms=9)
                axis.set_xticks([x + 0.33 for x in range(3)], [SHORT[k] for k in paper.KINDS])
                axis.set_title(f"{paper.PROGRAMS[program]}, {n} processes, {queue}")
                plain(axis, program == "fds")
        legend(axes[0][0], 7)
        save(drawn, out / f"figure-{number}.png",
             f"Search time of list over that of each design (figure {number}; black: what the paper's text says)")


def figure910(out: Path, done: dict[str, Rows]) -> None:
    nine, axes9 = plt.subplots(1, 4, figsize=(13, 3.2))
    ten, axes10 = plt.subplots(1, 4, figsize=(13, 3.2))
    for axis9, axis10, (program, counts) in zip(axes9, axes10, paper.PROCESSES.items()):
        known = [n for n in counts if f"program/{program}/{n}" in done]
        for i, (queue, kind) in enumerate((q, k) for q in paper.QUEUES for k in ("collective", "point")):
            values = [lists(done[f"program/{program}/{n}"], "col+pnp", queue, kind) for n in known]
            axis9.bar([x + i * 0.2 for x in range(len(known))], values, 0.18, label=f"{queue}, {SHORT[kind]}")
        axis9.plot([x + 0.3 for x in range(len(known))], [int(8 * n**0.5) for n in known], "k_", ms=16)
        for i, design in enumerate(("col+pnp", "source")):
            values = [lists(done[f"program/{program}/{n}"], design, "posted", "all") for n in known]
            axis10.bar([x + i * 0.4 for x in range(len(known))], values, 0.38, color=COLOURS[design], label=design)
        plain(axis10, True)
        for axis in (axis9, axis10):
            axis.set_xticks([x + 0.3 for x in range(len(known))], [str(n) for n in known])
            axis.set_title(paper.PROGRAMS[program])
    legend(axes9[0], 6)
    legend(axes10[0], 8)
    save(nine, out / "figure-9.png", "Lists of their own, col+pnp (figure 9; black: the cap of each kind)")
    save(ten, out / "figure-10.png", "Lists of the posted queue, col+pnp and source (figure 10)")


def length_plot(out: Path, done: dict[str, Rows]) -> None:
    drawn, axes = plt.subplots(1, 2, figsize=(10, 3.6), sharey=True)
    for axis, queue in zip(axes, paper.QUEUES):
        for design in paper.DESIGNS:
            points = sorted((r["length"], r["ns"]) for name, rows in done.items()
                            if name.startswith(f"length/{design}/") for r in rows
                            if r["queue"] == queue and r["order"] == "worst")
            if points:
                axis.plot(*zip(*points), marker="o", ms=3, color=COLOURS[design], label=design)
        axis.axhline(150, color="#999999", lw=1, ls="--")
        axis.set_xscale("log", base=2)
        axis.set_title(queue)
        axis.set_xlabel("entries")
        plain(axis, True)
    axes[0].set_ylabel("ns a match")
    legend(axes[0], 7)
    save(drawn, out / "length.png", "One source, many tags, worst order")


def write(out: Path, done: dict[str, Rows], machine: dict) -> None:
    with plt.rc_context(STYLE):
        figure1(out, done)
        five = figure5(out, done)
        figure6(out, done)
        figure78(out, done)
        figure910(out, done)
        length_plot(out, done)
        real.picture(out, done)
    text = ["# Matching of virtual ranks", "", f"{machine['processor']}, {machine['date']}, load "
            f"{machine['load_before']:.1f} before.", ""]
    for part in (paper_text, gains_text, short_text, length_text, wild_text, overhead_text, lists_text,
                 real.pair_text, real.threads_text, real.call_text):
        text += part(done)
    (out / "matching.md").write_text("\n".join(text + five) + "\n")
    (out / "matching.json").write_text(json.dumps({"machine": machine, "jobs": done}, indent=1) + "\n")
