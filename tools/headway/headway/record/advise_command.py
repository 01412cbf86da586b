"""The command line of `headway advise`: where a run waits and what to change, of a recording or of a line that starts
one: headway advise -- mpirun -n 4 ./prog. With --try, also what a piece of advice gives."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.text import Text

from headway.commands import script
from headway.record import advise, advise_json, asking, by_site, library, lines, reading, report, tried_words, trying
from headway.record.command import latest, run_app
from headway.record.asking import Asked
from headway.record.format import BadRecording
from headway.record.whole import NotWritten
from headway.shown import BAD_LINE, BadLine, Shown

COMMAND = "headway advise"
RESERVED = ".reserved"  # as in tools/record/folder.c
SIGNALLED = 128  # shells' exit code of a signal, less its number

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def reserve() -> Path:
    """The first headway-run-N that is not there: made, so that no other job can have it meanwhile, with a note in it by which
    the recorder knows it for its own (tools/record/folder.c)."""
    number = 1
    while True:
        folder = Path(f"headway-run-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
            continue
        except OSError as problem:
            raise BadRecording(f"nothing was recorded: there can be no folder for it here: {problem}") from None
        try:
            (folder / RESERVED).touch()
        except OSError as problem:
            give_up(folder)
            raise BadRecording(f"nothing was recorded: {problem}") from None
        return folder


def give_up(folder: Path) -> None:
    """Takes a folder away into which nothing was recorded."""
    with contextlib.suppress(OSError):
        (folder / RESERVED).unlink(missing_ok=True)
        folder.rmdir()


def recorded_in(folder: Path) -> Path | None:
    """That folder, or, should another of the job's ranks have come between (a disk without locks), NAME-2 and so on, which
    nobody but its recorder makes. None: there is no recording."""
    number, one = 1, folder
    while one.is_dir():
        if any(one.glob("*.hwr")):
            return one
        number += 1
        one = folder.with_name(f"{folder.name}-{number}")
    return None


def record(launcher: list[str], as_data: bool, shown: Shown) -> tuple[Path, int]:
    """Runs that line; the recorder's variables reach its ranks through the launcher. What the program prints is not
    mixed with data. Where it was recorded, and the line's exit code; of a signal, that of shells."""
    folder = reserve()
    try:
        words = [str(script()), "record", "--out", str(folder.resolve()), *launcher]
        done = subprocess.run(words, check=False, stdout=sys.stderr if as_data else None)
        found = recorded_in(folder)
    finally:
        give_up(folder)  # it stays if there is something in it
    code = done.returncode if done.returncode >= 0 else SIGNALLED - done.returncode
    if found is None:
        raise BadRecording(f"nothing was recorded: {why_nothing(launcher[0], code)}")
    if code:
        shown.say(f"{launcher[0]} ended with exit code {code}; what was recorded until then follows", "yellow")
    return found, code


def why_nothing(launcher: str, code: int) -> str:
    """As far as it can be told from outside."""
    remedy = "put headway record before the program, behind the launcher"
    if code:
        return (
            f"{launcher} ended with exit code {code} before a rank had begun MPI. Does the line run without headway? If it "
            f"does, the launcher may not pass its environment on to its ranks; then {remedy}"
        )
    return f"{launcher} may not pass its environment on to its ranks; then {remedy}"


@app.command()
def advise_command(
    context: typer.Context,
    run: Annotated[
        Optional[Path], typer.Argument(help="a folder of headway record. Default: the latest here", metavar="RUN")
    ] = None,
    as_data: Annotated[
        bool, typer.Option("--json", help="advice and table as JSON, formats headway-advice and headway-waiting")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="the advice alone, without the table")] = False,
    calibrate: Annotated[
        Optional[bool],
        typer.Option(
            "--calibrate/--no-calibrate",
            help="ask this MPI, with the launcher behind --, how it moves messages: some seconds, kept in RUN. Default: "
            "if there is a launcher, and RUN does not know it",
        ),
    ] = None,
    facts: Annotated[
        Optional[Path],
        typer.Option(help="how this MPI moves messages: another run's calibration.json, or a study's folder", metavar="FILE"),
    ] = None,
    mpicc: Annotated[
        Optional[Path],
        typer.Option(help="compiles the program that asks. Default: the one beside the launcher", metavar="FILE"),
    ] = None,
    html: Annotated[bool, typer.Option("--html/--no-html", help="a page with all of it and pictures, report.html")] = True,
    out: Annotated[Optional[Path], typer.Option(help="folder for the page. Default: the run's", metavar="DIR")] = None,
    number: Annotated[
        Optional[int],
        typer.Option(
            "--try",
            help="carry out advice number N in further runs, without touching the program, and measure what it gives. "
            "Needs the program's line behind --",
            metavar="N",
        ),
    ] = None,
    pairs: Annotated[
        Optional[int],
        typer.Option(
            min=2, help="of --try: how many unchanged and changed runs. Default: 2, more of short ones", metavar="N"
        ),
    ] = None,
    color: Annotated[
        Optional[bool], typer.Option("--color/--no-color", help="colours; default: on a terminal")
    ] = None,
) -> None:
    """Say where a run waits, for whom, and what to change in the program, with what that gives at least.

    Of a recording, or of a run that is recorded now: headway advise -- mpirun -n 4 ./prog, which ends with that line's exit
    code. A RUN and a launcher, headway advise RUN -- mpirun -n 2, ask that launcher's MPI how it moves messages; its
    program is not started. headway advise RUN --try 1 -- mpirun -n 4 ./prog carries out the first advice, and measures.
    """
    shown, launcher = Shown(COMMAND, as_data, color), list(context.obj or [])
    if number is not None and not launcher:
        how = f"{COMMAND} RUN --try {number} -- mpirun -n 4 ./prog"
        raise BadLine(f"--try needs the line that starts the program: {how}")
    if pairs is not None and number is None:
        raise BadLine("--pairs belongs to --try")
    now = run is None and bool(launcher)
    folder, code = record(launcher, as_data, shown) if now else (run or latest(), 0)
    asked = Asked(launcher, now or number is not None, calibrate, facts, mpicc)
    tried = show(folder, asked, as_data, quiet, shown, (number, pairs), (out or folder) if html else None)
    if tried is not None and tried.why:
        shown.complain(f"--try {tried.number}: {tried.why}")
        raise typer.Exit(1)
    if tried is None and code:
        raise typer.Exit(code)


def show(
    folder: Path,
    asked: Asked,
    as_data: bool,
    quiet: bool,
    shown: Shown,
    wanted: tuple[int | None, int | None],
    to: Path | None,
) -> trying.Tried | None:
    """`wanted`: the advice that is to be tried, and by how many pairs of runs. `to`: the folder for the page."""
    found = reading.read(folder)
    known = asking.facts_for(found, folder, asked, shown.say)
    found.notes += lines.resolve(found.ranks)
    waits, given = advise.by_facts(found, known)
    number, pairs = wanted
    if number is not None:
        trying.chosen(given, number)
    told = report.Told(by_site.report(waits), given, library.report(found))
    if not as_data:
        say(told, quiet, shown)
        if number is None and (how := trying.hint(given, folder, asked.launcher if asked.program else [])):
            shown.out.print(Text(how), soft_wrap=True)
    if number is not None:
        told.tried = trying.carry_out(given, number, asked.launcher, pairs, shown.say)
        for line in [] if as_data or told.tried.why else tried_words.words(told.tried):
            shown.out.print(line, highlight=False, markup=False)
    page = None if to is None else page_of(told, to, shown)
    if as_data:
        data = {"advice": advise_json.as_json(given) | {"tried": tried_words.as_json(told.tried)}}
        data |= {"waiting": by_site.as_json(told.report), "library": library.as_json(told.own)}
        print(json.dumps(data | {"files": [str(page)] if page else []}, indent=1))
    elif page is not None and not quiet:
        shown.out.print(Text(report.pointer(page, folder, shown.out.width)), soft_wrap=True)
    return told.tried


def say(told: report.Told, quiet: bool, shown: Shown) -> None:
    if not quiet:
        shown.out.print(by_site.words(told.report))
        if (by_itself := library.words(told.own)) is not None:
            shown.out.print(by_itself)
    shown.out.print(advise.words(told.given))


def page_of(told: report.Told, to: Path, shown: Shown) -> Path | None:
    """None where it cannot be written, which is no reason not to tell all the rest."""
    try:
        return report.write(told, to)
    except NotWritten as problem:
        shown.complain(f"{problem}; --out DIR puts it elsewhere")
        return None


def main(words: list[str]) -> int:
    if "--" not in words:
        return run_app(app, COMMAND, words)
    at = words.index("--")
    words, launcher = words[:at], words[at + 1 :]
    if not launcher:
        Shown(COMMAND).complain("which launcher? headway advise -- mpirun -n 4 ./prog")
        return BAD_LINE
    return run_app(app, COMMAND, words, launcher)
