"""make bench-release: what early release of blocked receives brings, off and on in one run.

The paper's three programs on simulated clusters (share sweep, and the papers' clusters as they
were), a consumer of long messages, and what closing pages costs. Every start is written down at
once: --resume goes on where a run stopped, --only measures a part.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import release_report
from clusters import LABELS
from gains import Figure, Sampled, percent
from release_plan import Case, Stream, physical_cases, streams, sweep_cases
from release_runs import ReleaseRunner
from session import (
    Again, Before, Build, List, Only, Out, Quick, Resume, Rounds, Seconds, Session, chosen, finish,
    jobs_of_cases, refuse_none, show_names, show_sampled, show_table, style_of, wanted,
)


def run_all(session: Session, cases: list[Case], consumers: list[Stream], table2: bool, rounds: int) -> None:
    runner = ReleaseRunner(session.setup, session.store)
    jobs = [("table2", lambda step: (runner.run_table2(), step(1)))] if table2 else []
    jobs += [(s.name, lambda step, s=s: runner.run_stream(s, step)) for s in consumers]
    jobs += jobs_of_cases(runner, cases, rounds)
    total = 4 * rounds * len(cases) + sum(4 * s.rounds for s in consumers) + (1 if table2 else 0)
    session.run(runner, jobs, total)


def show(figures: list[Figure], consumers: list[Sampled]) -> None:
    rows = [(f.name.replace(f.case.program, LABELS[f.case.program]), f"{f.off:.4g}", f"{f.on:.4g}",
             percent(f.share), f"{f.gain:.3f}", f"{f.low:.2f} to {f.high:.2f}", percent(f.hidden),
             f"{f.model.bound:.2f}", f.verdict, style_of(f)) for f in figures]
    if rows:
        head = ("case", "off", "on", "share", "gain", "95 %", "hidden", "bound", "run")
        show_table("Programs: seconds an iteration", head, rows)
    show_sampled("Stream consumer: µs a message", consumers)


def main(
    build: Build = Path("build"),
    out: Out = None,
    only: Only = "",
    on: Annotated[str, typer.Option(help="the mode that is compared with off")] = "auto",
    quick: Quick = False,
    resume: Resume = False,
    rounds: Rounds = 1,
    seconds: Seconds = 0,
    before: Before = "",
    with_128: Annotated[bool, typer.Option("--with-128", help="128 ranks, too")] = False,
    again: Again = False,
    list_cases: List = False,
) -> None:
    """Measure early release: off against on."""
    cases = chosen(sweep_cases(quick) + physical_cases(quick, with_128), only)
    consumers = chosen(streams(quick), only)
    table2 = wanted("table2", [p for p in only.split(",") if p])
    if list_cases:
        show_names(cases + consumers)
        return
    refuse_none([*cases, *consumers] or ["table2"] * table2, only)
    session = Session("release", build, out, on, before, seconds, quick, resume or again)
    if not again:
        session.check(("pes", "nbody", "m3"), "stream_consumer")
        run_all(session, cases, consumers, table2, rounds)
    session.end()
    # The report is of all that the folder holds, not only of this call's part.
    figures, seen = release_report.write(session.setup.out, session.store,
                                         sweep_cases(False) + physical_cases(False, True), streams(False),
                                         session.about, session.notes)
    show(figures, seen)
    finish(session, "release", figures)


if __name__ == "__main__":
    typer.run(main)
