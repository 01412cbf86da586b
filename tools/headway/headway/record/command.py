"""The command line of `headway trace`, and what all commands on recordings share."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Optional

import typer

from headway.record import by_site, detail, library, lines, matrix, reading, trace, waiting, whole
from headway.record.format import BadRecording
from headway.record.summary import summarise
from headway.record.words import count_text
from headway.shown import BAD_LINE, BadLine, Shown

NOTHING_RECORDED = 4
LONGEST = 1e9  # s
MANY = 5_000_000  # events
RUN = re.compile(r"headway-run-(\d+)")

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def runs_here() -> list[Path]:
    """Each headway-run-N of this folder, the latest last."""
    found = [(int(m[1]), p) for p in Path().iterdir() if p.is_dir() and (m := RUN.fullmatch(p.name))]
    return [p for _, p in sorted(found)]


def latest() -> Path:
    runs = runs_here()
    if not runs:
        raise BadLine("there is no headway-run-N here; record one: mpirun -n 4 headway record ./prog, or name a folder")
    return runs[-1]


@app.command()
def trace_command(
    run: Annotated[
        Optional[Path], typer.Argument(help="a folder of headway record. Default: the latest here", metavar="RUN")
    ] = None,
    out: Annotated[
        Optional[Path], typer.Option(help="folder for what is made. Default: the run's", metavar="DIR")
    ] = None,
    html: Annotated[bool, typer.Option("--html/--no-html", help="a page with the time line, trace.html")] = True,
    perfetto: Annotated[
        bool, typer.Option("--perfetto/--no-perfetto", help="trace.pftrace, for https://ui.perfetto.dev")
    ] = True,
    since: Annotated[
        Optional[float],
        typer.Option(
            "--from",
            help="from this second of the run on: what trace.pftrace and --otf2 hold, and of a large run the page's single calls",
            metavar="S",
        ),
    ] = None,
    until: Annotated[
        Optional[float], typer.Option("--to", help="up to this second of the run", metavar="S")
    ] = None,
    otf2: Annotated[bool, typer.Option("--otf2", help="a folder for Vampir and Scalasca (needs PyPI's otf2)")] = False,
    csv: Annotated[
        bool,
        typer.Option(
            "--csv", help="who sends to whom: messages.csv by pair of ranks, communicators.csv; library.csv of our library"
        ),
    ] = False,
    as_data: Annotated[bool, typer.Option("--json", help="the table by call site as JSON, format headway-waiting")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="write the files and say nothing")] = False,
    color: Annotated[
        Optional[bool], typer.Option("--color/--no-color", help="colours; default: on a terminal")
    ] = None,
) -> None:
    """Draw what a recorded run did: a time line of every rank, its calls and messages.

    Record one first: mpirun -n 4 headway record ./prog
    """
    shown = Shown("headway trace", quiet or as_data, color)
    window = window_of(since, until)
    folder = run or latest()
    found = reading.read(folder)
    found.notes += lines.resolve(found.ranks)
    if found.events > MANY:
        shown.say(f"{count_text(found.events)} events: this takes some minutes")
    waits = waiting.classify(found)
    # For the page alone it is made where that takes little time. First: what a page holds is large.
    report = by_site.report(waits) if as_data or not quiet or (html and found.events <= MANY) else None
    of_events = waits.by_rank()
    summary = summarise(found, of_events)
    summary.detail = detail.stretches(found, of_events, summary, window) if html else []
    summary.of_run = by_site.of_run(report) if report is not None else []
    to = out or folder
    files = trace.write_trace(found, to, of_events, perfetto, html, otf2, summary, window) if html or perfetto or otf2 else []
    if csv:
        files += write_csv(to, waits, summary.library)
    if as_data:
        more = {"library": library.as_json(summary.library), "files": [str(f) for f in files]}
        print(json.dumps(by_site.as_json(report) | more, indent=1))
    elif not quiet:
        shown.out.print(by_site.words(report))
        if (told := library.words(summary.library)) is not None:
            shown.out.print(told)
        trace.tell(summary, files, shown.out, said=found.notes)


def write_csv(folder: Path, waits: waiting.Waiting, of_library: library.Library | None) -> list[Path]:
    """Each of them whole, or not at all."""
    whole.folder(folder)
    found = matrix.matrix(waits)
    files = [
        whole.whole(folder / "messages.csv", found.write_pairs),
        whole.whole(folder / "communicators.csv", found.write_comms),
    ]
    if of_library:
        files.append(whole.whole(folder / "library.csv", lambda path: library.write_csv(of_library, path)))
    return files


def window_of(since: float | None, until: float | None) -> tuple[int, int] | None:
    """ns, of seconds."""
    if since is None and until is None:
        return None
    first, last = since or 0.0, LONGEST if until is None else until
    if not 0 <= first < last <= LONGEST:
        raise BadLine(f"--from {first:g} --to {last:g}: no stretch of a run; seconds since its start are meant")
    return int(first * 1e9), int(last * 1e9)


def run_app(app: typer.Typer, name: str, words: list[str], launcher: list[str] | None = None) -> int:
    """The exit code of a command on recordings; `launcher`: the words behind --, its context's object."""
    shown = Shown(name)
    try:
        app(args=words, prog_name=name, standalone_mode=True, obj=launcher)
    except BadLine as problem:
        shown.complain(str(problem))
        return BAD_LINE
    except BadRecording as problem:
        shown.complain(str(problem))
        return NOTHING_RECORDED
    except (whole.NotWritten, OSError) as problem:
        shown.complain(str(problem))
        return 1
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def main(words: list[str]) -> int:
    return run_app(app, "headway trace", words)
