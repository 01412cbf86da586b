"""What the command lines of the measurements on simulated clusters share: options, the choice of
cases, the progress bar, and a run that notes what gave no result and goes on."""

from __future__ import annotations

import shlex
import signal
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

import shared  # noqa: F401
from gains import Figure, Sampled
from headway.measure import contestants, machine, programs
from headway.measure.bar import Steps, console
from headway.measure.plan import chosen, wanted  # noqa: F401
from headway.measure.processes import Failure
from headway.measure.store import Store
from starts import Runner, Setup

SOURCES = Path(__file__).resolve().parent

Build = Annotated[Path, typer.Option(help="build folder of Headway MPI")]
Out = Annotated[Path | None, typer.Option(help="where results go; default BUILD/bench-NAME")]
Only = Annotated[str, typer.Option(help="beginnings of case names, by commas; * is any part; --list names them")]
Quick = Annotated[bool, typer.Option(help="few cases, a few minutes")]
Resume = Annotated[bool, typer.Option(help="keep what --out holds, measure what is missing")]
Rounds = Annotated[int, typer.Option(min=1, help="times off, on, on, off for each program's case")]
Seconds = Annotated[float, typer.Option(help="about how long one run may take; 0: 12, quick 4")]
Before = Annotated[str, typer.Option(help="put before every measured command")]
Again = Annotated[bool, typer.Option(help="measure nothing, only write the report anew")]
List = Annotated[bool, typer.Option("--list", help="list the cases and stop")]


def show_names(cases: list) -> None:
    console.print("\n".join(c.name for c in cases))


def refuse_none(found: list, only: str) -> None:
    if not found:
        raise typer.BadParameter(f"no case begins with {only}", param_hint="--only")


def compile_program(setup: Setup, name: str) -> str:
    """Returns what went wrong, or an empty text."""
    ours = contestants.headway(setup.build / "bin")
    return programs.compile_programs(ours, [name], [SOURCES], setup.out / "programs")


def missing(setup: Setup, programs: tuple[str, ...]) -> str:
    for program in ("bin/mpiexec", "bin/headway", *(f"apps/{p}" for p in programs)):
        if not (setup.build / program).exists():
            return f"there is no {setup.build / program}: run make first"
    return ""


class Session:
    """One call of a benchmark: a folder with its store, and notes on what went wrong."""

    def __init__(self, name: str, build: Path, out: Path | None, on: str, before: str, seconds: float,
                 quick: bool, keep: bool) -> None:
        build = build.resolve()
        folder = (out or build / f"bench-{name}").resolve()
        folder.mkdir(parents=True, exist_ok=True)
        self.setup = Setup(build, folder, on, shlex.split(before), seconds or (4 if quick else 12))
        self.store = Store(folder / "runs.sqlite", keep)
        self.notes: list[str] = []
        self.began = time.time()
        self.about = machine.about_machine(quick, {}, SOURCES) | {"on": on}

    def check(self, programs: tuple[str, ...], compiled: str) -> None:
        """Ends with a message if something is not there."""
        problem = missing(self.setup, programs) or compile_program(self.setup, compiled)
        if problem:
            console.print(f"[red]{problem}[/]")
            raise typer.Exit(1)

    def run(self, runner: Runner, jobs: list[tuple[str, object]], total: int) -> None:
        """`jobs`: names, and what to call with a step that counts starts."""
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the cluster must go down
        if self.about["load_before"] > 1 and not self.setup.before:
            self.notes.append(f"the machine was busy (load {self.about['load_before']:.1f}): figures are noisy")
        steps = Steps(total)
        try:
            with steps.bar:
                for name, job in jobs:
                    self.attempt(name, job, steps.of(name))
        except KeyboardInterrupt:
            self.notes.append("interrupted: only what was measured until then")
        finally:
            runner.cluster.down()

    def attempt(self, name: str, job, step) -> None:
        try:
            job(step)
        except Failure as failure:
            self.notes.append(f"{name} gave no result: {failure}")
            console.print(f"[yellow]{self.notes[-1]}[/]")

    def end(self) -> None:
        self.about["minutes"] = round((time.time() - self.began) / 60, 1)


def jobs_of_cases(runner: Runner, cases: list, rounds: int) -> list[tuple[str, object]]:
    """One cluster after the other, not one case after the other: making one takes time."""
    ordered = sorted(cases, key=lambda c: (c.group, str(c.hosts)))
    return [(c.name, lambda step, c=c: runner.run_case(c, rounds, step)) for c in ordered]


def show_table(title: str, head: tuple[str, ...], rows: list[tuple], left: tuple[str, ...] = ("case", "run")) -> None:
    """Each row ends with its style."""
    table = Table(title=title, title_justify="left")
    for name in head:
        table.add_column(name, justify="left" if name in left else "right")
    for *cells, style in rows:
        table.add_row(*cells, style=style)
    console.print(table)


def style_of(f: Figure) -> str:
    return "red" if not f.same else "yellow" if f.invalid else ""


def show_sampled(title: str, figures: list[Sampled]) -> None:
    if figures:
        rows = [(f.case.name, f"{f.off:.5g}", f"{f.on:.5g}", f"{f.gain:.3f}", f"{f.low:.3f} to {f.high:.3f}", "")
                for f in figures]
        show_table(title, ("case", "off", "on", "gain", "95 %"), rows)


def finish(session: Session, name: str, figures: list[Figure]) -> None:
    """The last word; different results are an error."""
    console.print(f"\n{session.setup.out / f'{name}.md'}, {name}.json and pictures beside it", soft_wrap=True)
    if any(not f.same for f in figures) or not session.store.lines:
        raise typer.Exit(1)
