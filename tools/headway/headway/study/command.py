"""The command line of `headway study`."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Callable, Optional

import typer
from rich.progress import BarColumn, ProgressColumn, TaskProgressColumn, TextColumn
from rich.table import Table
from rich.text import Text

from headway.commands import script
from headway.measure.bar import Steps
from headway.measure.plan import patterns, wanted
from headway.measure.processes import NO_ROOM, Failure
from headway.measure.store import Store
from headway.shown import BAD_LINE, BadLine, Shown
from headway.study import blocking
from headway.study import compare as comparing
from headway.study import findings as finding
from headway.study import meshes, mpis, page, samr, verdicts
from headway.study.plan import SHM, Place, mbit_of, net, paper_tasks
from headway.study.run import FILE, Settings, Study
from headway.study.samr_run import Meshes

COMMAND = "headway study"
FOLDER = "headway-study"

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="What overlaps, what blocks, in any MPI: measures it, says it in words, and what to do.",
)


class TimeLeft(ProgressColumn):
    """From what was done so far; before a tenth is done, from the plan."""

    max_refresh = 1.0

    def render(self, task) -> Text:
        done = task.completed / task.total if task.total else 1
        planned = (task.total or 0) - task.completed
        left = (task.elapsed or 0) * (1 - done) / done if done > 0.1 and task.elapsed else planned
        return Text(f"{left / 60:.0f} min left" if left > 90 else f"{max(left, 1):.0f} s left")


def told(problem: Exception) -> str:
    if isinstance(problem, OSError) and problem.errno in NO_ROOM:
        return "there is no room on the disk; what was measured until then is kept, and --resume goes on"
    if isinstance(problem, OSError) and problem.filename:
        return f"{problem.filename}: {problem.strerror}"
    return str(problem)


# ---- folders -----------------------------------------------------------------------------------
def numbered(number: int) -> Path:
    return Path(FOLDER if number == 1 else f"{FOLDER}-{number}")


def folder_for(out: Optional[Path], resume: bool, option: str = "--resume") -> Path:
    """A study is never overwritten: a new one gets the next number, and --resume (or --again) takes the latest."""
    if out is None:
        there = [n for n in range(1, 1000) if (numbered(n) / FILE).exists()]
        if resume:
            if not there:
                raise BadLine(f"{option}: there is no study in {Path.cwd()}; --out names the folder of one")
            return numbered(there[-1])
        return numbered(there[-1] + 1 if there else 1)
    if resume and not (out / FILE).exists():
        raise BadLine(f"{option}: there is no study in {out}")
    if not resume and (out / FILE).exists():
        raise BadLine(f"{out} holds a study already: --resume goes on with it, another --out makes another")
    if out.exists() and not out.is_dir():
        raise BadLine(f"--out {out}: that is a file")
    return out


def open_study(folder: Path) -> Store:
    file = folder if folder.is_file() else folder / FILE
    if not file.exists():
        raise BadLine(f"there is no study in {folder}")
    return Store(file, resume=True)


def places_of(rate: str) -> list[Place]:
    if rate == "none":
        return [SHM]
    if not re.fullmatch(r"\d+(\.\d+)?[mg]bit", rate) or not 0.1 <= mbit_of(rate) <= 100_000:
        raise BadLine(f"--net {rate}: a rate is 100mbit, 1gbit or alike, or none for shared memory only")
    return [SHM, net(rate)]


def check_only(only: str, places: list[Place]) -> None:
    tests = sorted(
        {t.name for p in places for t in paper_tasks(p, True, 0)}
        | {f"{p.name}/{kind}" for p in places for kind in ("blocking", *blocking.KINDS)}
        | {"shm/imitation"}
    )
    for pattern in patterns(only):
        if not any(wanted(t, [pattern]) for t in tests):
            raise BadLine(f"--only {pattern}: there are {', '.join(tests)}")


# ---- what is shown at the end ------------------------------------------------------------------
def show(found: finding.Findings, shown: Shown) -> None:
    for place in found.places:
        view = Table(title=found.title(place), title_justify="left", title_style="bold", box=None, pad_edge=False)
        for name in ("", *map(found.label, found.mpis), "bound"):
            view.add_column(name, justify="left")
        for row in verdicts.table(found, place):
            view.add_row(row.what, *row.cells, row.bound)
        shown.out.print(view)
        for mpi in found.mpis:
            for saying in verdicts.of_calls(found.of.get((mpi, place), finding.Of())):
                shown.out.print(f"{found.label(mpi)}: {saying.seen}", highlight=False, markup=False)
                if saying.do:
                    shown.out.print(f"  In your program: {saying.do}", style="bold", highlight=False, markup=False)
        shown.out.print()
    show_meshes(found, shown)


def show_meshes(found: finding.Findings, shown: Shown) -> None:
    for row in found.samr:
        for saying in meshes.sayings(found, row):
            shown.out.print(saying.seen, highlight=False, markup=False)
        if row.invalid and row.forms:
            shown.out.print(f"  {row.way}: {row.invalid}", highlight=False, markup=False)


def as_json(found: finding.Findings) -> dict:
    every = []
    for (mpi, place), of in found.of.items():
        every.append(
            {
                "mpi": mpi,
                "place": place,
                "switch": of.switch if of.switch_is_known else None,
                "curves": {
                    m: {str(s): [v.median, v.low, v.high, v.count] for s, v in c.items()}
                    for m, c in of.curves.items()
                },
                "progress": {side: {str(s): w for s, w in by.items()} for side, by in of.verdicts.items()},
                "bound": {side: {str(s): b for s, b in by.items()} for side, by in of.bound.items()},
                "calls": {c: {**vars(b), "cumulative": b.cumulative} for c, b in of.calls.items()},
                "sayings": [vars(s) for s in verdicts.sayings(of, place)],
            }
        )
    rows = [asdict(row) for row in found.samr]
    return {"about": found.about, "of": every, "samr": rows}


def finish(store: Store, out: Path, shown: Shown, as_data: bool) -> bool:
    """Whether there was anything to show."""
    found = finding.read(store)
    if not found.of and not found.samr:
        shown.complain("nothing was measured")
        return False
    path = page.write(found, out)
    if as_data:
        print(json.dumps(as_json(found), indent=1))
    elif not shown.quiet:
        show(found, shown)
    shown.say(f"{path}, study.md, {FILE}   again: --resume   beside another: headway study compare A B")
    return True


# ---- the commands ------------------------------------------------------------------------------
def prepare(study: Study, shown: Shown) -> None:
    study.prepare()
    if not study.usable:
        raise Failure(
            "no MPI can be studied: scripts/peers.sh installs MPICH and Open MPI; --mpi NAME=PREFIX names another"
        )
    study.prepare_places()
    shown.say(", ".join(f"{c.label} {study.versions[c.name]}" for c in study.usable))


def measure(study: Study, shown: Shown) -> None:
    prepare(study, shown)
    with_bar(study.seconds(), study.run, shown)


def measure_meshes(study: Study, shown: Shown) -> None:
    all_cases = Meshes(study)
    prepare(study, shown)
    all_cases.prepare()
    if not study.usable:
        raise Failure("no MPI compiles the adaptive mesh")
    with_bar(all_cases.seconds(), all_cases.run, shown)


def with_bar(seconds: float, run: Callable[[Callable[[str, float], None]], None], shown: Shown) -> None:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(24),
        TaskProgressColumn(),
        TimeLeft(),
        TextColumn("(Ctrl-C keeps what is there)"),
    )
    steps = Steps(seconds, shown.err, 58, columns)
    steps.bar.disable = shown.quiet or not shown.err.is_terminal
    with steps.bar:
        advance = steps.of("")
        last = ""

        def step(text: str, seconds: float) -> None:
            nonlocal last
            if text and text != last:
                last = text
                steps.say(text)
                if steps.bar.disable:
                    shown.say(text)
            advance(seconds)

        run(step)


def stop(number: int, _frame) -> None:
    raise KeyboardInterrupt(number)


def carry_out(study: Study, how: Callable[[Study, Shown], None], shown: Shown) -> int:
    """Measures; whatever ends it, what was measured is kept. Returns the exit code."""
    signal.signal(signal.SIGTERM, stop)
    code = 0
    try:
        how(study, shown)
    except KeyboardInterrupt:
        again = "samr" if study.settings.adds else "--resume"
        study.note(
            f"stopped at {time.strftime('%H:%M')}: this is what was measured until then; "
            f"headway study {again} --out {study.settings.out} goes on"
        )
        code = 130
    except (Failure, OSError) as failure:
        study.note(told(failure))
        code = 1
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # what follows is short and must end
        study.end_quietly()
    return code


@app.callback(invoke_without_command=True)
def study_command(
    context: typer.Context,
    mpi: Annotated[
        Optional[list[str]],
        typer.Option(
            help="an MPI: NAME of one that was found, or NAME=PREFIX[,VARIABLE=VALUE]...; may be repeated. Default: all found",
            metavar="MPI",
        ),
    ] = None,
    rate: Annotated[
        str, typer.Option("--net", help="rate of the two simulated hosts (root), or none", metavar="RATE")
    ] = "1gbit",
    quick: Annotated[bool, typer.Option("--quick", help="fewer sizes, one turn: under 10 minutes")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="go on with the study in --out, or the latest one")
    ] = False,
    out: Annotated[
        Optional[Path], typer.Option(help=f"its folder. Default: {FOLDER}, or the next number", metavar="DIR")
    ] = None,
    only: Annotated[
        str, typer.Option(help="parts of it, by commas: shm/overlap, 1gbit, */blocking", metavar="PARTS")
    ] = "",
    again: Annotated[bool, typer.Option("--again", help="measure nothing: write the page anew")] = False,
    listing: Annotated[bool, typer.Option("--list", help="list the MPIs that are found, and stop")] = False,
    as_data: Annotated[bool, typer.Option("--json", help="the findings as JSON on standard output")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="no progress, no table")] = False,
    color: Annotated[
        Optional[bool], typer.Option("--color/--no-color", help="colours; default: on a terminal")
    ] = None,
) -> None:
    """Study the MPIs of this machine."""
    if context.invoked_subcommand is not None:
        return
    shown = Shown(COMMAND, quiet or as_data, color)
    places = places_of(rate)
    check_only(only, places)
    chosen = mpis.choose(mpi or []) if not again else []
    if listing:
        for c in chosen:
            shown.out.print(f"{c.name:<14} {c.label:<16} {c.compiler.parent.parent}", highlight=False)
        return
    folder = folder_for(out, resume or again, "--again" if again else "--resume")
    store = Store(folder / FILE, resume or again)
    code = 0
    if not again:
        settings = Settings(folder.resolve(), places, quick, only, script())
        code = carry_out(Study(settings, chosen, store, lambda text: shown.say(text, "yellow")), measure, shown)
    if not finish(store, folder, shown, as_data):
        code = code or 1
    raise typer.Exit(code)


@app.command("samr")
def samr_command(
    mpi: Annotated[Optional[list[str]], typer.Option(help="as for headway study", metavar="MPI")] = None,
    rate: Annotated[
        str, typer.Option("--net", help="rate of the two hosts of the series (root), or none", metavar="RATE")
    ] = "1gbit",
    quick: Annotated[
        bool, typer.Option("--quick", help="16 ranks, the imitations, the series; fewer turns")
    ] = False,
    out: Annotated[
        Optional[Path], typer.Option(help="a study's folder, which this is added to; else the latest", metavar="DIR")
    ] = None,
    only: Annotated[str, typer.Option(help="cases, by commas: frea-16, shm-above, ibm", metavar="CASES")] = "",
    as_data: Annotated[bool, typer.Option("--json", help="the findings as JSON on standard output")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="no progress, no table")] = False,
    color: Annotated[
        Optional[bool], typer.Option("--color/--no-color", help="colours; default: on a terminal")
    ] = None,
) -> None:
    """Run the papers' application, an adaptive mesh, in each form of its ghost exchange.

    16 to 256 ranks on simulated hosts, as the paper did; two ranks with messages below and above the size from
    which a call blocks; and the paper's MPIs, imitated. What is there already is not run again, so the same
    line goes on after Ctrl-C. All of it takes hours; --quick half an hour.
    """
    shown = Shown(COMMAND, quiet or as_data, color)
    places = places_of(rate)
    known = sorted(c.name for c in (*samr.PAPER, *samr.IMITATIONS, *(c for p in places for c in samr.series(p, 0))))
    for pattern in patterns(only):
        if not any(wanted(name, [pattern]) for name in known):
            raise BadLine(f"--only {pattern}: there are {', '.join(known)}")
    chosen = mpis.choose(mpi or [])
    latest = [n for n in range(1, 1000) if (numbered(n) / FILE).exists()]
    folder = out or numbered(latest[-1] if latest else 1)
    if folder.exists() and not folder.is_dir():
        raise BadLine(f"--out {folder}: that is a file")
    store = Store(folder / FILE, resume=True)
    settings = Settings(folder.resolve(), places, quick, only, script(), adds=True)
    study = Study(settings, chosen, store, lambda text: shown.say(text, "yellow"))
    code = carry_out(study, measure_meshes, shown)
    if not finish(store, folder, shown, as_data):
        code = code or 1
    raise typer.Exit(code)


@app.command()
def compare(
    before: Annotated[Path, typer.Argument(help="a study's folder", metavar="A")],
    after: Annotated[Path, typer.Argument(help="another one", metavar="B")],
    as_data: Annotated[bool, typer.Option("--json", help="as JSON")] = False,
) -> None:
    """What differs between two studies."""
    shown = Shown(COMMAND)
    a, b = finding.read(open_study(before)), finding.read(open_study(after))
    found = comparing.compare(a, b)
    if as_data:
        print(json.dumps([vars(d) for d in found], indent=1))
        return
    for text, lines in (
        (f"only in {before}", comparing.only_in(a, b)),
        (f"only in {after}", comparing.only_in(b, a)),
    ):
        if lines:
            shown.out.print(f"{text}: {'; '.join(lines)}", highlight=False)
    if not found:
        shown.out.print(
            "Nothing differs by a tenth or more beyond its interval."
            if a.of.keys() & b.of.keys()
            else "The two have no MPI and place in common."
        )
        return
    view = Table(box=None, pad_edge=False)
    for name in ("", "", "what", str(before), str(after)):
        view.add_column(name)
    for d in found:
        view.add_row(
            a.label(d.mpi), a.title(d.place), d.what, d.before, d.after, style={True: "green", False: "red", None: ""}[d.better]
        )
    shown.out.print(view)


@app.command()
def export(
    study: Annotated[Path, typer.Argument(help="a study's folder", metavar="STUDY")],
    to: Annotated[Path, typer.Argument(help="a file whose name ends in .csv or .parquet", metavar="FILE")],
) -> None:
    """Write every sample of a study as CSV or Parquet."""
    shown = Shown(COMMAND)
    store = open_study(study)
    if to.suffix == ".csv":
        count = comparing.write_csv(store, to)
    elif to.suffix == ".parquet":
        try:
            count = comparing.write_parquet(store, to)
        except ImportError:
            raise BadLine(
                f"{to}: Parquet needs the package pyarrow ({sys.executable} -m pip install pyarrow); CSV needs none"
            ) from None
    else:
        raise BadLine(f"{to}: the name must end in .csv or .parquet")
    shown.out.print(f"{to}: {count} samples", highlight=False)


def main(words: list[str]) -> int:
    try:
        app(args=words, prog_name="headway study", standalone_mode=True)
    except BadLine as problem:
        Shown(COMMAND).complain(str(problem))
        return BAD_LINE
    except (Failure, OSError) as problem:
        Shown(COMMAND).complain(told(problem))
        return 1
    except SystemExit as end:
        return int(end.code or 0)
    return 0
