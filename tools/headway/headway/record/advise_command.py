"""The command line of `headway advise`: where a run waits and what to change, of a recording or of a line that starts
one: headway advise -- mpirun -n 4 ./prog."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Annotated, Optional

import typer

from headway.commands import script
from headway.record import advise, asking, by_site, library, lines, reading
from headway.record.command import latest, run_app
from headway.record.asking import Asked
from headway.record.format import BadRecording
from headway.shown import BAD_LINE, Shown

COMMAND = "headway advise"

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def free_folder() -> Path:
    """The first headway-run-N that is not there."""
    number = 1
    while (folder := Path(f"headway-run-{number}")).exists():
        number += 1
    return folder


def record(launcher: list[str], shown: Shown) -> Path:
    """Runs that line; the recorder's variables reach its ranks through the launcher."""
    folder = free_folder()
    done = subprocess.run([str(script()), "record", "--out", str(folder.resolve()), *launcher], check=False)
    if not any(folder.glob("*.hwr")):
        raise BadRecording(
            f"nothing was recorded (exit code {done.returncode} of {launcher[0]}): it may not pass its environment on to its "
            "ranks; then put headway record before the program, behind the launcher"
        )
    if done.returncode:
        shown.say(f"{launcher[0]} ended with {done.returncode}; what was recorded until then follows", "yellow")
    return folder


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
    color: Annotated[
        Optional[bool], typer.Option("--color/--no-color", help="colours; default: on a terminal")
    ] = None,
) -> None:
    """Say where a run waits, for whom, and what to change in the program, with what that gives at least.

    Of a recording, or of a run that is recorded now: headway advise -- mpirun -n 4 ./prog. A RUN and a launcher without a
    program, headway advise RUN -- mpirun -n 2, ask that launcher's MPI how it moves messages.
    """
    shown, launcher = Shown(COMMAND, as_data, color), list(context.obj or [])
    now = run is None and bool(launcher)
    folder = record(launcher, shown) if now else run or latest()
    show(folder, Asked(launcher, now, calibrate, facts, mpicc), as_data, quiet, shown)


def show(folder: Path, asked: Asked, as_data: bool, quiet: bool, shown: Shown) -> None:
    found = reading.read(folder)
    known = asking.facts_for(found, folder, asked, shown.say)
    found.notes += lines.resolve(found.ranks)
    waits, given = advise.by_facts(found, known)
    if as_data:
        told = {"advice": advise.as_json(given), "waiting": by_site.as_json(by_site.report(waits))}
        print(json.dumps(told | {"library": library.as_json(library.report(found))}, indent=1))
        return
    if not quiet:
        shown.out.print(by_site.words(by_site.report(waits)))
        if (by_itself := library.words(library.report(found))) is not None:
            shown.out.print(by_itself)
    shown.out.print(advise.words(given))


def main(words: list[str]) -> int:
    if "--" not in words:
        return run_app(app, COMMAND, words)
    at = words.index("--")
    words, launcher = words[:at], words[at + 1 :]
    if not launcher:
        Shown(COMMAND).complain("which launcher? headway advise -- mpirun -n 4 ./prog")
        return BAD_LINE
    return run_app(app, COMMAND, words, launcher)
