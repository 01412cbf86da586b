"""make bench-release: what early release of blocked receives brings, off and on in one run.

The paper's three programs on simulated clusters (share sweep, and the papers' clusters as they
were), a consumer of long messages, and what closing pages costs. Every start is written down at
once: --resume goes on where a run stopped, --only measures a part.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import release_report
from contestants import execute
from release_plan import LABELS, Case, Stream, physical_cases, streams, sweep_cases
from release_runs import Failure, Runner, Setup, Store
from run import about_machine

SOURCES = Path(__file__).resolve().parent
console = Console() if Console().is_terminal else Console(width=150)


def wanted(name: str, only: list[str]) -> bool:
    """`only` names a beginning of path parts; * stands for any one."""
    if not only:
        return True
    parts = name.split("/")
    for pattern in only:
        asked = pattern.split("/")
        if len(asked) <= len(parts) and all(a in ("*", p) for a, p in zip(asked, parts)):
            return True
    return False


def compile_consumer(setup: Setup) -> str:
    folder = setup.out / "programs"
    folder.mkdir(parents=True, exist_ok=True)
    command = [str(setup.build / "bin" / "mpicc"), "-std=gnu11", "-O2", str(SOURCES / "stream_consumer.c")]
    return execute([*command, "-o", str(folder / "stream_consumer")], dict(os.environ), 120).failure


def missing(setup: Setup) -> str:
    for program in ("bin/mpiexec", "bin/cluster", "apps/pes", "apps/nbody", "apps/m3"):
        if not (setup.build / program).exists():
            return f"there is no {setup.build / program}: run make first"
    return ""


class Steps:
    """The progress bar. Starts that are in the store already count at once."""

    def __init__(self, total: int) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self.bar = Progress(*columns, console=console)
        self.task = self.bar.add_task("", total=total)

    def of(self, name: str):
        self.bar.update(self.task, description=f"{name:<32.32}")
        return lambda n: self.bar.update(self.task, advance=n)


def run_all(runner: Runner, cases: list[Case], consumers: list[Stream], table2: bool, rounds: int,
            notes: list[str]) -> None:
    total = 4 * rounds * len(cases) + sum(4 * s.rounds for s in consumers) + (1 if table2 else 0)
    steps = Steps(total)

    def attempt(name: str, action) -> None:
        try:
            action(steps.of(name))
        except Failure as failure:
            notes.append(f"{name} gave no result: {failure}")
            console.print(f"[yellow]{notes[-1]}[/]")

    try:
        with steps.bar:
            if table2:
                attempt("table2", lambda step: (runner.run_table2(), step(1)))
            for stream in consumers:
                attempt(stream.name, lambda step, s=stream: runner.run_stream(s, step))
            # One cluster after the other, not one case after the other: making one takes time.
            for case in sorted(cases, key=lambda c: (c.group, str(c.hosts))):
                attempt(case.name, lambda step, c=case: runner.run_case(c, rounds, step))
    finally:
        runner.cluster.down()


def show(figures: list[release_report.Figure], consumers: list[release_report.StreamFigure]) -> None:
    if figures:
        table = Table(title="Programs: seconds an iteration", title_justify="left")
        for name in ("case", "off", "on", "share", "gain", "95 %", "hidden", "bound", "run"):
            table.add_column(name, justify="left" if name in ("case", "run") else "right")
        for f in figures:
            label = f.name.replace(f.case.program, LABELS[f.case.program])
            row = (label, f"{f.off:.4g}", f"{f.on:.4g}", release_report.percent(f.share), f"{f.gain:.3f}",
                   f"{f.low:.2f} to {f.high:.2f}", release_report.percent(f.hidden), f"{f.model.bound:.2f}",
                   f.verdict)
            table.add_row(*row, style="red" if not f.same else "yellow" if f.invalid else "")
        console.print(table)
    if consumers:
        table = Table(title="Stream consumer: µs a message", title_justify="left")
        for name in ("case", "off", "on", "gain", "95 %"):
            table.add_column(name, justify="left" if name == "case" else "right")
        for s in consumers:
            table.add_row(s.stream.name, f"{s.off:.5g}", f"{s.on:.5g}", f"{s.gain:.3f}",
                          f"{s.low:.3f} to {s.high:.3f}")
        console.print(table)


def main(
    build: Annotated[Path, typer.Option(help="build folder of Headway MPI")] = Path("build"),
    out: Annotated[Path | None, typer.Option(help="where results go; default BUILD/bench-release")] = None,
    only: Annotated[str, typer.Option(help="beginnings of case names, by commas: sweep/pes,stream/shm")] = "",
    on: Annotated[str, typer.Option(help="the mode that is compared with off")] = "auto",
    quick: Annotated[bool, typer.Option(help="few cases, a few minutes")] = False,
    resume: Annotated[bool, typer.Option(help="keep what --out holds, measure what is missing")] = False,
    rounds: Annotated[int, typer.Option(min=1, help="times off, on, on, off for each program's case")] = 1,
    seconds: Annotated[float, typer.Option(help="about how long one run may take; 0: 12, quick 4")] = 0,
    before: Annotated[str, typer.Option(help="put before every measured command")] = "",
    with_128: Annotated[bool, typer.Option("--with-128", help="128 ranks, too")] = False,
    again: Annotated[bool, typer.Option(help="measure nothing, only write the report anew")] = False,
    list_cases: Annotated[bool, typer.Option("--list", help="list the cases and stop")] = False,
) -> None:
    """Measure early release: off against on."""
    patterns = [p for p in only.split(",") if p]
    cases = [c for c in sweep_cases(quick) + physical_cases(quick, with_128) if wanted(c.name, patterns)]
    consumers = [s for s in streams(quick) if wanted(s.name, patterns)]
    table2 = wanted("table2", patterns)
    if list_cases:
        console.print("\n".join([c.name for c in cases] + [s.name for s in consumers]))
        return
    if not cases and not consumers and not table2:
        raise typer.BadParameter(f"no case begins with {only}", param_hint="--only")
    build = build.resolve()
    out = (out or build / "bench-release").resolve()
    out.mkdir(parents=True, exist_ok=True)
    setup = Setup(build, out, on, shlex.split(before), seconds or (4 if quick else 12))
    store = Store(out / "runs.jsonl", resume or again)
    notes: list[str] = []
    about = about_machine(quick, {}) | {"on": on, "began": time.time()}
    if not again:
        problem = missing(setup) or compile_consumer(setup)
        if problem:
            console.print(f"[red]{problem}[/]")
            raise typer.Exit(1)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the cluster must go down
        if about["load_before"] > 1 and not before:
            notes.append(f"the machine was busy (load {about['load_before']:.1f}): figures are noisy")
        try:
            run_all(Runner(setup, store), cases, consumers, table2, rounds, notes)
        except KeyboardInterrupt:
            notes.append("interrupted: only what was measured until then")
    about["minutes"] = round((time.time() - about.pop("began")) / 60, 1)
    # The report is of all that the folder holds, not only of this call's part.
    figures, seen = release_report.write(out, store, sweep_cases(False) + physical_cases(False, True),
                                         streams(False), about, notes)
    show(figures, seen)
    console.print(f"\n{out / 'release.md'}, release.json and pictures beside it", soft_wrap=True)
    if any(not f.same for f in figures) or not store.lines:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
