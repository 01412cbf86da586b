"""Where `headway advise` has its facts from, how this run's MPI moves messages: a file that is named, what was asked
before and lies in the run's folder, the launcher line that is given now, or a study that lies here."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from headway.record import calibration, study_facts
from headway.record.facts import Facts
from headway.record.format import BadRecording
from headway.record.model import Run
from headway.record.whole import NotWritten
from headway.shown import BadLine

STUDY = Path("headway-study") / study_facts.FILE  # where `headway study` leaves it
HOW = "headway advise {run} -- mpirun -n 2"  # how the MPI is asked afterwards
Say = Callable[[str, str], None]  # text, style


@dataclass
class Asked:
    """What the command's line says."""

    launcher: list[str] = field(default_factory=list)
    program: bool = False  # the line starts the program, too: now, or for --try. Else it is named for the asking alone
    calibrate: bool | None = None  # None: if there is a launcher, and nothing is known yet
    named: Path | None = None  # a file, or a folder
    mpicc: Path | None = None


def facts_for(run: Run, folder: Path, asked: Asked, say: Say) -> Facts:
    """BadLine if what was asked for by name cannot be had; else what cannot be is told, and does without."""
    if asked.named is not None:
        try:
            return calibration.load(asked.named, run)
        except BadRecording as problem:
            raise BadLine(f"--facts: {problem}") from None
    if asked.calibrate and not asked.launcher:
        raise BadLine(f"--calibrate needs the launcher of that MPI: {HOW.format(run=folder)}")
    kept = folder / calibration.FILE
    if kept.exists() and not asked.calibrate:
        try:
            return calibration.load(kept, run)
        except BadRecording as problem:
            say(f"left out: {problem}", "yellow")
    if asked.calibrate and not calibration.sizes_of(run):
        raise BadLine("--calibrate: this run has no message of a size that is worth asking about")
    if asked.launcher and asked.calibrate is not False and calibration.sizes_of(run):
        launcher = asked.launcher if asked.program else launcher_alone(asked.launcher, run, folder)
        try:
            return ask(run, folder, launcher, asked, say)
        except (BadRecording, OSError) as problem:
            if asked.calibrate:
                raise BadLine(f"--calibrate: {problem}") from None
            say(f"how this MPI moves messages was not asked: {problem}", "yellow")
    if STUDY.exists():
        try:
            about = calibration.mpi_of(run), "", calibration.module_of(run), calibration.words_of(run)
            return study_facts.read(STUDY, *about)
        except study_facts.OtherWords as problem:
            say(f"left out: {problem}", "yellow")
        except BadRecording:  # of other MPIs
            pass
    return Facts()


def launcher_alone(line: list[str], run: Run, folder: Path) -> list[str]:
    """Of a line that comes with a recording: nothing but the asking program may be started by it."""
    try:
        return calibration.launcher_alone(line, run)
    except BadRecording as problem:
        raise BadLine(f"{problem}. Name the launcher alone, as in {HOW.format(run=folder)}") from None


def ask(run: Run, folder: Path, launcher: list[str], asked: Asked, say: Say) -> Facts:
    if asked.program:
        launcher = calibration.without_program(launcher, run)
    began = time.monotonic()
    found = calibration.ask(launcher, calibration.compiler(launcher, asked.mpicc), run, folder)
    told = f"asked how this MPI moves messages: {time.monotonic() - began:.1f} s"
    path = folder / calibration.FILE
    try:
        calibration.write(found, folder)
    except NotWritten as problem:  # a recording that may only be read, a full disk: this once it is known anyway
        say(f"{told}; the answers are used, but cannot be kept in {path}: {problem.why}", "yellow")
        return found.facts("not kept")
    say(f"{told}; kept in {path}", "")
    return found.facts(str(path))
