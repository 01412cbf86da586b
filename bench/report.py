"""The result file (JSON) and the table (Markdown)."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import shared  # noqa: F401
from headway.measure.statistics import human_size
from results import Key, Results, more_is_better
from targets import BESIDE, BUFFERS, ENOUGH, LIMIT, LOOPS, PEERS, Verdict, describe

BEYOND = 1.05  # times the limit; below that, noise

# What the size is of.
CALLS = {
    "bcast": "",
    "reduce": " (sum of doubles)",
    "allreduce": " (sum of doubles)",
    "allgather": ", bytes of each rank",
    "alltoall": ", bytes to each rank",
    "gather": ", bytes of each rank",
    "scatter": ", bytes to each rank",
}
UNITS = {"bidir": "window of 16, MB/s of all", "rate": "million messages a second of all"}
TITLES = {
    "latency": "One-way latency, µs",
    "window": "Bandwidth, window of 64, MB/s",
    "stream": "Bandwidth, one blocking send after the other, MB/s",
    "bidir": "Bandwidth, both ways at once, MB/s of both directions",
    "window16": "Bandwidth, window of 16, MB/s",
    "bidir16": "Bandwidth, both ways at once, window of 16, MB/s of both directions",
    "rate": "Message rate, window of 64, million messages a second",
    "rate32": "Message rate, window of 32, million messages a second",
    "latency_steps": "One-way latency over all sizes, µs",
    "window_steps": "Bandwidth over all sizes, window of 16, MB/s",
    "overlap_recv": "Receive overlap (equation 4)",
    "overlap_send": "Send overlap (equation 4)",
    "progress_recv": "Receive progress (1 - post-delay work)",
    "progress_send": "Send progress (1 - post-delay work)",
    "slowdown_recv": "Receiver computes beside the transfer: time in all over the computation alone, minus 1",
    "slowdown_send": "Sender computes beside the transfer: the same",
    "slowdown_both": "Both compute beside transfers in both directions: the same",
    "stretch_recv": "Receiver's computation itself beside the transfer, over alone, minus 1",
    "stretch_send": "Sender's computation itself: the same",
    "stretch_both": "Computation itself, both compute: the same",
    "latency_onoff": "1 KB latency with the progress thread on and off, µs",
    "latency_pending": "1 KB latency with an unrelated receive pending, µs",
    **{
        f"{call}_{ranks}": f"{call.capitalize()}{what}, {ranks} ranks{on}, µs a call"
        for ranks, on in ((2, ""), (4, " on 2 cores"), (8, " on 2 cores"))
        for call, what in CALLS.items()
    },
    **{
        f"{call}_4x2": f"{call.capitalize()}{what}, 4 hosts of 2 ranks, µs a call" for call, what in CALLS.items()
    },
    **{name: f"{words[0].upper()}{words[1:]}, {UNITS[name.split('_')[0]]}" for name, words in PEERS.items()},
    "numa_latency": "One-way latency, two NUMA nodes, µs",
    "numa_window": "Bandwidth, window of 16, two NUMA nodes, MB/s",
    "numa_rate": "Message rate, window of 32, two NUMA nodes, million messages a second",
    **{f"exchange_{kind}": f"Exchange beside {what}, median, µs" for kind, what in BESIDE.items()},
    **{
        f"exchange_mean_{kind}": f"The same beside {what}, mean with all turns of others, µs"
        for kind, what in BESIDE.items()
    },
    **{loop: f"{what[0].upper()}{what[1:]}, mean, µs" for loop, what in LOOPS.items()},
    "start_64": "Start and end of 64 ranks, s",
    "private_memory_64": "Private memory of a rank among 64, KB",
}
MARKS = {"pass": "✅", "fail": "❌", "no data": "–"}


def verdict_table(verdicts: list[Verdict]) -> list[str]:
    lines = [
        "| | measure | of what | asked | ours | best peer | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for v in verdicts:
        where = f"{v.key.transport}, {describe(v.key)}".rstrip(", ")
        lines.append(
            f"| {MARKS[v.state]} | {v.what} | {where} | {v.asked} | {v.ours} | {v.against} | {v.ratio} |"
        )
    return lines


def full_tables(results: Results, order: list[str], labels: dict[str, str]) -> list[str]:
    """Every figure: one table a measure, one column a contestant."""
    lines: list[str] = []
    groups: dict[tuple[str, str], list[Key]] = {}
    for key in results.table():
        groups.setdefault((key.measure, key.transport), []).append(key)
    known = list(TITLES)
    ranked = sorted(groups, key=lambda g: (known.index(g[0]) if g[0] in known else 99, g[1]))
    for measure, transport in ranked:
        keys = groups[measure, transport]
        names = [n for n in order if any(results.get(k, n) for k in keys)]
        place = "shared memory" if transport == "shm" else "TCP, 1 Gbit/s hosts"
        lines += ["", f"### {TITLES.get(measure, measure)} ({place})", ""]
        lines.append("| size | buffers | cores | " + " | ".join(labels[n] for n in names) + " |")
        lines.append("|---" * (3 + len(names)) + "|")
        for key in keys:
            cells = []
            for name in names:
                stats = results.get(key, name)
                cells.append(f"{stats.text()} n={stats.count}" if stats else "-")
            size = human_size(key.size) if key.size else "-"
            lines.append(f"| {size} | {BUFFERS[key.buffers]} | {key.placement} | " + " | ".join(cells) + " |")
    return lines


def beyond_limit(results: Results) -> list[tuple[Key, str, float]]:
    """Who does better than the limit, by how much: one copy by the system may, where two are slow; or the measure errs."""
    found = []
    for key, by in results.table().items():
        limit = by.get(LIMIT)
        for name, stats in by.items():
            if not limit or name == LIMIT or min(stats.median, limit.median) <= 0:
                continue
            share = stats.median / limit.median
            gain = share if more_is_better(key.measure) else 1 / share
            if gain > BEYOND and min(stats.count, limit.count) >= ENOUGH:
                found.append((key, name, gain))
    return found


def beyond_limit_table(results: Results, labels: dict[str, str]) -> list[str]:
    found = beyond_limit(results)
    if not found:
        return []
    lines = ["", "### Better than the limit", "", "| measure | of what | who | times the limit |", "|---|---|---|---|"]
    return lines + [
        f"| {TITLES.get(key.measure, key.measure)} | {describe(key)} | {labels[name]} | {gain:.2f} |"
        for key, name, gain in found
    ]


def left_out_table(results: Results) -> list[str]:
    """What could not be measured here, and why."""
    if not results.not_measured:
        return []
    lines = ["", "### Not measured", "", "| | why |", "|---|---|"]
    return lines + [f"| {j['title']} | not measured: {j['why']} |" for j in results.not_measured]


def arrived_table(results: Results, order: list[str], labels: dict[str, str]) -> list[str]:
    """Data that arrived during the delay without being completed, and data that never moved."""
    cells: dict[tuple[str, int], dict[str, list[float]]] = {}
    for s in results.samples:
        if s.measure == "progress_recv" and s.placement != "mixed":
            row = cells.setdefault((s.transport, s.size), {})
            row.setdefault(s.contestant, []).append(s.extra["arrived_share"])
    if not cells:
        return []
    names = [n for n in order if any(n in row for row in cells.values())]
    lines = ["", "### Receives whose last byte was seen during the delay, share", ""]
    lines.append("| transport | size | " + " | ".join(labels[n] for n in names) + " |")
    lines.append("|---" * (2 + len(names)) + "|")
    for (transport, size), row in sorted(cells.items()):
        shares = [f"{sum(row[n]) / len(row[n]):.2f}" if n in row else "-" for n in names]
        lines.append(f"| {transport} | {human_size(size)} | " + " | ".join(shares) + " |")
    return lines


def slowdown_table(results: Results, order: list[str], labels: dict[str, str]) -> list[str]:
    """How much longer the inserted computation took, beside each overlap of 20 µs or more."""
    cells: dict[tuple[str, str, int], dict[str, list[float]]] = {}
    for s in results.samples:
        if s.measure.startswith("overlap_") and s.placement != "mixed":
            if max(s.extra["c_us"], s.extra["l0_us"] / 10) < 20:
                continue  # the call of the clock would show
            row = cells.setdefault((s.transport, s.measure, s.size), {})
            row.setdefault(s.contestant, []).append(s.extra["slowdown"])
    if not cells:
        return []
    names = [n for n in order if any(n in row for row in cells.values())]
    lines = ["", "### Slow-down of the computation inside the overlap test, median", ""]
    lines.append("| transport | test | size | " + " | ".join(labels[n] for n in names) + " |")
    lines.append("|---" * (3 + len(names)) + "|")
    for (transport, measure, size), row in sorted(cells.items()):
        texts = []
        for n in names:
            ordered = sorted(row.get(n, []))
            texts.append(f"{ordered[len(ordered) // 2] * 100:+.1f} %" if ordered else "-")
        test = measure.removeprefix("overlap_")
        lines.append(f"| {transport} | {test} | {human_size(size)} | " + " | ".join(texts) + " |")
    return lines


def write_markdown(
    path: Path,
    results: Results,
    verdicts: list[Verdict],
    order: list[str],
    labels: dict[str, str],
    about: dict,
    notes: list[str],
    pictures: list[Path],
) -> None:
    met = sum(v.state == "pass" for v in verdicts)
    judged = sum(v.state != "no data" for v in verdicts)
    dropped = results.discarded()
    lines = [
        "# Benchmarks",
        "",
        f"{about['date']}, {about['cpu']}, {about['cores']} cores, Linux {about['kernel']}, "
        f"commit {about['commit']}{', quick run' if about['quick'] else ''}.",
        "",
        f"**{met} of {judged} asked figures met** ({len(verdicts) - judged} without data). "
        f"{dropped['all']} results; {dropped['mixed placement']} dropped because the cores changed "
        f"between close, near and far, {dropped['l0 moved during an overlap search']} because the "
        "machine changed during an overlap search. "
        f"{dropped['send over at once, copied ahead']} sends were over at once, copied ahead: they have "
        "no overlap to measure.",
    ]
    lines += [f"- {note}" for note in notes]
    lines += ["", "## Asked and reached", "", *verdict_table(verdicts)]
    lines += [f"\n![{p.stem}]({p.name})" for p in pictures]
    lines += ["", "## All figures", "", "Median [quartiles], n = number of samples."]
    lines += full_tables(results, order, labels)
    lines += arrived_table(results, order, labels)
    lines += slowdown_table(results, order, labels)
    lines += beyond_limit_table(results, labels)
    lines += left_out_table(results)
    path.write_text("\n".join(lines) + "\n")


def write_json(path: Path, results: Results, verdicts: list[Verdict], about: dict, notes: list[str]) -> None:
    table = [
        {**key._asdict(), "contestants": {n: s._asdict() for n, s in by.items()}}
        for key, by in results.table().items()
    ]
    document = {
        "about": about,
        "notes": notes,
        "verdicts": [asdict(v) | {"key": v.key._asdict()} for v in verdicts],
        "table": table,
        "failures": results.failures,
        "not_measured": results.not_measured,
        "discarded": results.discarded(),
        "samples": [asdict(s) for s in results.samples],
    }
    partial = path.with_suffix(".json.new")
    partial.write_text(json.dumps(document, indent=1))
    partial.replace(path)
