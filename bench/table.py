#!/usr/bin/env python3
"""A program that is why one-sided communication is there: apps/table under this library and its peers, for pieces of work of several
lengths. Writes docs/table-results.md and its picture.

    bench/table.py [--build build] [--rounds 5] [--write]      some two minutes; nothing else may run

Each round runs every library and form once; told is the median of the rounds, and their least and most."""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import shared  # noqa: F401
from contestants import all_contestants
from headway.measure.contestants import Contestant
from headway.measure.processes import execute
from plots import COLOURS, STYLE, plt

ROOT = Path(__file__).resolve().parents[1]
PAGE, PICTURE = ROOT / "docs" / "table-results.md", ROOT / "docs" / "pictures" / "table.svg"
WORK = 3, 30, 300, 3000  # us
FORMS = {"messages": "messages", "created": "one-sided, plain memory", "allocated": "one-sided, MPI's memory"}
RANKS, LIMIT, LASTS = 2, 60, 0.3  # seconds of computation in a run
NAMES = "headway", "mpich", "openmpi"

Rows = dict[tuple[str, str, int], list[float]]  # library, form, work: us that a key of another rank waited


def size(work: int) -> int:
    """Keys of both ranks."""
    return max(100, min(20_000, int(RANKS * LASTS * 1e6 / (work + 20))))


def compiled(contestant: Contestant, folder: Path) -> Path:
    program = folder / f"table-{contestant.name}"
    sources = [*sorted((ROOT / "apps" / "table").glob("*.cc")), ROOT / "apps" / "common" / "options.cc"]
    words = [contestant.compiler.with_name("mpicxx"), "-std=c++20", "-O3", f"-I{ROOT / 'apps'}", *sources, "-o", program]
    subprocess.run(list(map(str, words)), check=True, env=contestant.full_environment())
    return program


def measure(some: list[Contestant], rounds: int) -> Rows:
    rows: Rows = {}
    with tempfile.TemporaryDirectory() as folder:
        programs = {one.name: compiled(one, Path(folder)) for one in some}
        for number in range(rounds):
            for work in WORK:
                for form in FORMS:
                    for one in some:
                        words = ["--size", str(size(work)), "--work", str(work), "--form", form]
                        done = execute(one.local_command(RANKS, programs[one.name], words), one.full_environment(), LIMIT)
                        if done.failure:
                            raise SystemExit(f"{one.label}, {form}, {work} us: {done.failure}")
                        said = json.loads(done.out)
                        rows.setdefault((one.name, form, work), []).append(said["wait_us"])
            print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return rows


def us(value: float) -> str:
    return f"{value:,.2f}" if value < 10 else f"{value:,.0f}"


def cell(values: list[float]) -> str:
    return f"{us(statistics.median(values))} ({us(min(values))} to {us(max(values))})"


def table(rows: Rows, some: list[Contestant]) -> str:
    lines = ["| form | library | " + " | ".join(f"{work:,} µs" for work in WORK) + " |", "|---|---|" + "---|" * len(WORK)]
    for form, name in FORMS.items():
        for one in some:
            lines.append(f"| {name} | {one.label} | " + " | ".join(cell(rows[one.name, form, work]) for work in WORK) + " |")
    return "\n".join(lines)


def draw(rows: Rows, some: list[Contestant], path: Path) -> None:
    with plt.rc_context(STYLE | {"svg.hashsalt": "table"}):
        figure, axes = plt.subplots(1, len(FORMS), figsize=(9.6, 3.4), sharey=True)
        for axis, (form, name) in zip(axes, FORMS.items()):
            axis.plot(WORK, WORK, color="#9a9a9a", linewidth=1, linestyle=":", label="the owner's work")
            for one in some:
                middle = [statistics.median(rows[one.name, form, work]) for work in WORK]
                axis.plot(WORK, middle, color=COLOURS[one.name], marker="o", markersize=4, label=one.label)
            axis.set(xscale="log", yscale="log", title=name, xlabel="work for each key, µs")
        axes[0].set_ylabel("wait for a key of another rank, µs")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        figure.set_layout_engine("constrained")
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def page(rows: Rows, some: list[Contestant], rounds: int) -> str:
    return f"""<!-- Made by bench/table.py --write. Do not edit. -->
# What a table spread over the ranks waits

[`apps/table`](apps.md#the-table): two ranks compute for each key and count it in a table that lies half with each. Told is the mean
time in µs to count a key that lies with the other rank, by how long a piece of its owner's work takes: median of {rounds} runs, in
brackets the least and the most. One host, {platform.machine()}, two cores; `bench/table.py --rounds {rounds} --write`.

![wait for a key, by the length of the work, for three forms and three libraries](pictures/table.svg)

{table(rows, some)}

By messages a key waits for its owner's work, whatever the library: the owner answers when it gets to it. One-sided it need not, where
nobody has to take part: in memory that MPI allocates no library needs the owner; in the program's own memory the peers do, and then a key
waits as long as by messages, or longer. Ours asks the system to copy. How short a wait can be there: a key takes two operations, and the
system's copy of 8 bytes takes more than 1 µs, of which a compare and swap needs one or two and a fetch and add two.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="a build folder of ours")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each library, form and length of work")
    parser.add_argument("--write", action="store_true", help="write docs/table-results.md and its picture")
    given = parser.parse_args()
    if given.rounds < 1:
        parser.error("--rounds wants a number above 0")
    every = all_contestants(given.build.resolve())
    some = [every[name] for name in NAMES]
    for one in some:
        if missing := one.missing():
            raise SystemExit(f"{one.label}: {missing}; make peers installs the peers")
    rows = measure(some, given.rounds)
    print(table(rows, some))
    if given.write:
        draw(rows, some, PICTURE)
        PAGE.write_text(page(rows, some, given.rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
