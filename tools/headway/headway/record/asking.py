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
from headway.shown import BadLine

STUDY = Path("headway-study") / study_facts.FILE  # where `headway study` leaves it
HOW = "headway advise {run} -- mpirun -n 2"  # how the MPI is asked afterwards
Say = Callable[[str, str], None]  # text, style


@dataclass
class Asked:
    """What the command's line says."""

    launcher: list[str] = field(default_factory=list)
    program: bool = False  # the launcher line has the program, too: the run was started with it just now
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
        try:
            return ask(run, folder, asked, say)
        except (BadRecording, OSError) as problem:
            if asked.calibrate:
                raise BadLine(f"--calibrate: {problem}") from None
            say(f"how this MPI moves messages was not asked: {problem}", "yellow")
    if STUDY.exists():
        try:
            return study_facts.read(STUDY, calibration.mpi_of(run))
        except BadRecording:  # of other MPIs
            pass
    return Facts()


def ask(run: Run, folder: Path, asked: Asked, say: Say) -> Facts:
    launcher = calibration.without_program(asked.launcher, run) if asked.program else asked.launcher
    began = time.monotonic()
    found = calibration.ask(launcher, calibration.compiler(launcher, asked.mpicc), run, folder)
    calibration.write(found, folder)
    path = folder / calibration.FILE
    say(f"asked how this MPI moves messages: {time.monotonic() - began:.1f} s; kept in {path}", "")
    return found.facts(str(path))
