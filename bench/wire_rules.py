#!/usr/bin/env python3
"""Which algorithm of a collective is the quickest on several hosts: every one that can be forced, and the one that the library
takes by itself, on simulated clusters (docs/cluster.md). The limits in src/collectives/algorithms.cc, `node_rules` and
`wire_rules`, are read off what this finds.

    bench/wire_rules.py [--build build] [--rounds 2] [--only bcast,reduce] [--shapes 4x2,8x1]    measures, and prints
    bench/wire_rules.py --write     keeps it in bench/wire_rules.json, too, and makes docs/wire-rules.md (17 minutes a round)
    bench/wire_rules.py --page      makes the page anew of what is kept
    bench/wire_rules.py --check     ends with 1 where the page is not what is kept

Ranks sleep at once instead of looking again (HEADWAY_SPIN=0, HEADWAY_YIELD=0): all hosts share this machine's cores, and whoever
looks takes them from the wire. So small messages take longer here than on a cluster, for every algorithm."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

import shared  # noqa: F401
from contestants import all_contestants
from headway.measure.bar import Steps
from headway.measure.hosts import Cluster, Hosts
from headway.measure.processes import Failure, execute
from headway.measure.programs import compile_program, parse_lines

ROOT = Path(__file__).resolve().parents[1]
DATA, PAGE = ROOT / "bench" / "wire_rules.json", ROOT / "docs" / "wire-rules.md"
SHAPES = (2, 1), (4, 1), (8, 1), (16, 1), (2, 2), (4, 2), (8, 2), (16, 2), (2, 8), (4, 8)  # hosts, ranks of each
RATES = 100, 1000  # Mbit/s of a host's link
ITSELF = "automatic"
FORMS = {
    "bcast": ("binomial", "scatter_allgather", "chain"),
    "reduce": ("binomial", "halving"),
    "allreduce": ("doubling", "halving"),
    "allgather": ("bruck", "ring", "direct"),
    "alltoall": ("bruck", "direct", "pairwise", "by_node"),
    "gather": ("binomial", "direct"),
    "scatter": ("binomial", "direct"),
}
VECTORS = 8, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20
BLOCKS = 8, 512, 4 << 10, 16 << 10, 64 << 10
SAMPLES, LIMIT = 8, 60  # calls of each start; seconds
LOOKS = {"HEADWAY_SPIN": "0", "HEADWAY_YIELD": "0"}

# shape, Mbit/s, call, bytes, algorithm: us of each call
Rows = dict[tuple[str, int, str, int, str], list[float]]


def name_of(shape: tuple[int, int]) -> str:
    return f"{shape[0]}x{shape[1]}"


def sizes(call: str) -> tuple[int, ...]:
    return VECTORS if call in ("bcast", "reduce", "allreduce") else BLOCKS


def measure(build: Path, shapes: list[tuple[int, int]], calls: list[str], rounds: int) -> Rows:
    ours = all_contestants(build)["headway"]
    rows: Rows = {}
    starts = len(shapes) * len(RATES) * rounds * sum(len(FORMS[call]) + 1 for call in calls)
    with tempfile.TemporaryDirectory() as folder:
        program, cluster = Path(folder) / "collective", Cluster(build / "bin" / "headway", "wire-rules", Path(folder) / "report")
        if failure := compile_program(ours, [ROOT / "bench" / "collective.c"], program):
            raise SystemExit(failure)
        steps = Steps(starts)
        with steps.bar:
            try:
                for shape in shapes:
                    for rate in RATES:
                        cluster.use(Hosts(shape[0], rate))
                        for call in calls:
                            advance = steps.of(f"{name_of(shape)}, {rate} Mbit/s, {call}")
                            for number in range(rounds):
                                forms = (ITSELF, *FORMS[call])
                                for form in forms if number % 2 == 0 else forms[::-1]:
                                    for size, samples in start(cluster, ours, program, shape, call, form):
                                        rows.setdefault((name_of(shape), rate, call, size, form), []).extend(samples)
                                    advance(1)
            finally:
                cluster.down()
    return rows


def start(cluster: Cluster, ours, program: Path, shape: tuple[int, int], call: str, form: str):
    words = ["--call", call, "--sizes", ",".join(map(str, sizes(call))), "--alone", str(SAMPLES)]
    command = [*cluster.run_words(shape[0] * shape[1], shape[1], "--launcher", str(ours.launcher)), str(program), *words]
    environment = ours.full_environment() | LOOKS | ({} if form == ITSELF else {"HEADWAY_COLL": f"{call}={form}"})
    done = execute(command, environment, LIMIT)
    found = parse_lines(done.out)
    if "HEADWAY_COLL has no" in done.err:
        raise Failure(f"{call}={form} is not known to this library: {done.err.strip()}")
    if not found:
        print(f"{name_of(shape)}, {call}={form}: {done.failure or 'no result'}", file=sys.stderr)
    return [(row["size"], row["samples"]) for row in found]


def us(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def bytes_of(size: int) -> str:
    for unit, name in ((1 << 20, "MB"), (1 << 10, "KB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def table(rows: Rows, rate: int, call: str) -> list[str]:
    """A line for each shape: of each size the quickest algorithm and its time, and what the library's own choice takes of it."""
    of = sorted({key[0] for key in rows if key[1:3] == (rate, call)}, key=lambda name: [int(part) for part in name.split("x")])
    if not of:
        return []
    lines = ["| hosts x ranks | " + " | ".join(map(bytes_of, sizes(call))) + " |", "|---|" + "---|" * len(sizes(call))]
    for shape in of:
        cells = []
        for size in sizes(call):
            middle = {key[4]: statistics.median(v) for key, v in rows.items() if key[:4] == (shape, rate, call, size)}
            own = middle.pop(ITSELF, None)
            if not middle or own is None:
                cells.append("-")
                continue
            best = min(middle, key=lambda form: middle[form])
            ratio = own / middle[best]
            cells.append(f"{best} {us(middle[best])}; " + (f"**{ratio:.2f}**" if ratio > 1.25 else f"{ratio:.2f}"))
        lines.append(f"| {shape} | " + " | ".join(cells) + " |")
    return lines


def page(rows: Rows, about: str) -> str:
    parts = [
        "<!-- Made by bench/wire_rules.py of bench/wire_rules.json. Do not edit. -->",
        "# Algorithms of collectives on several hosts",
        "",
        "Of each size the quickest algorithm that can be forced and its µs a call (median), then what the library's own choice took,",
        "measured as another start in the same rounds, divided by that. Bold: more than 1.25. Simulated clusters; each call stands alone,",
        "from when the last rank has come until the last one has what it gets; the root changes from call to call; bytes of the vector",
        "for bcast, reduce and allreduce, of one block for the others. Data that is there before the last rank has come took no time, and",
        "a simulated link lets some KB pass at once: a figure may lie below what the bytes need on the wire, and flatters who sends early.",
        f"{about} `python bench/wire_rules.py --write` measures it anew; how, and why small messages take longer here than on",
        "a cluster, is in its head.",
    ]
    for call in FORMS:
        for rate in RATES:
            lines = table(rows, rate, call)
            if lines:
                parts += ["", f"## {call.capitalize()}, {'100 Mbit/s' if rate == 100 else '1 Gbit/s'}", "", *lines]
    return "\n".join(parts) + "\n"


def kept() -> tuple[Rows, str]:
    data = json.loads(DATA.read_text())
    return {tuple(row[:-1]): row[-1] for row in data["rows"]}, data["about"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="a build folder of ours")
    parser.add_argument("--rounds", type=int, default=2, help="starts of each algorithm")
    parser.add_argument("--only", default=",".join(FORMS), help="calls, separated by commas")
    parser.add_argument("--shapes", default=",".join(map(name_of, SHAPES)), help="hosts x ranks of each, separated by commas")
    parser.add_argument("--about", default="", help="a sentence about the day, for the page")
    parser.add_argument("--write", action="store_true", help="keep what is measured beside what was kept, and make the page")
    parser.add_argument("--page", action="store_true", help="make the page of what is kept")
    parser.add_argument("--check", action="store_true", help="only compare the page with what is kept")
    given = parser.parse_args()
    if given.page or given.check:
        text = page(*kept())
        if given.page:
            PAGE.write_text(text)
        elif PAGE.read_text() != text:
            print("docs/wire-rules.md is not what bench/wire_rules.json has: run bench/wire_rules.py --page", file=sys.stderr)
            return 1
        return 0
    calls = given.only.split(",")
    shapes = [(int(one.partition("x")[0]), int(one.partition("x")[2])) for one in given.shapes.split(",")]
    if given.rounds < 1 or not set(calls) <= set(FORMS):
        parser.error(f"--rounds wants a number above 0, --only some of {', '.join(FORMS)}")
    try:
        rows = measure(given.build.resolve(), shapes, calls, given.rounds)
    except Failure as why:
        raise SystemExit(str(why)) from None
    if given.write:
        before, about = kept() if DATA.exists() else ({}, "")
        rows, about = before | rows, given.about or about
        lines = ",\n".join(json.dumps([*key, [round(v, 2) for v in rows[key]]]) for key in sorted(rows))
        DATA.write_text(f'{{"about": {json.dumps(about)}, "rows": [\n{lines}\n]}}\n')
        PAGE.write_text(page(*kept()))
    else:
        print(page(rows, given.about))
    return 0


if __name__ == "__main__":
    sys.exit(main())
