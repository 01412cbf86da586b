"""make bench-prefetch: what prefetching of messages brings, off and on in one run.

Table 2 of the prefetching paper on its cluster, a rank a host; N-Body at the paper's share of lost
time; and a sender that is ready early. Every start is written down at once: --resume goes on where a
run stopped, --only measures a part.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

import prefetch_report
from gains import Figure, Sampled, percent
from prefetch_plan import Case, Sender, matched_cases, physical_cases, senders
from prefetch_runs import PrefetchRunner
from session import (
    Again, Before, Build, List, Only, Out, Quick, Resume, Rounds, Seconds, Session, chosen, finish,
    jobs_of_cases, refuse_none, show_names, show_sampled, show_table, style_of,
)


class EarlyRelease(str, Enum):
    off = "off"
    auto = "auto"


def run_all(session: Session, cases: list[Case], early: list[Sender], rounds: int, early_release: str) -> None:
    runner = PrefetchRunner(session.setup, session.store, early_release)
    jobs = [(s.name, lambda step, s=s: runner.run_sender(s, rounds, step)) for s in early]
    jobs += jobs_of_cases(runner, cases, rounds)
    session.run(runner, jobs, 4 * rounds * (len(cases) + sum(s.rounds for s in early)))


def show(figures: list[Figure], early: list[Sampled]) -> None:
    rows = [(f.name, f"{f.off:.4g}", f"{f.on:.4g}", percent(f.share), f"{f.gain:.3f}",
             f"{f.low:.3f} to {f.high:.3f}", percent(f.hidden), f.verdict, style_of(f)) for f in figures]
    if rows:
        head = ("case", "off", "on", "share", "gain", "95 %", "hidden", "run")
        show_table("Programs: seconds an iteration", head, rows)
    show_sampled("A sender that is ready early: µs a message", early)


def main(
    build: Build = Path("build"),
    out: Out = None,
    only: Only = "",
    early_release: Annotated[
        EarlyRelease, typer.Option(help="of both sides; auto is measured beside off, and judged with it")
    ] = EarlyRelease.off,
    quick: Quick = False,
    resume: Resume = False,
    rounds: Rounds = 1,
    seconds: Seconds = 0,
    before: Before = "",
    again: Again = False,
    list_cases: List = False,
) -> None:
    """Measure prefetching: off against on."""
    cases = chosen(physical_cases(quick) + matched_cases(quick), only)
    early = chosen(senders(quick), only)
    if list_cases:
        show_names(cases + early)
        return
    refuse_none(cases + early, only)
    session = Session("prefetch", build, out, "auto", before, seconds, quick, resume or again)
    if not again:
        session.check(("pes", "m3", "nbody", "ft", "is"), "early_sender")
        run_all(session, cases, early, rounds, early_release.value)
    session.end()
    # The report is of all that the folder holds, not only of this call's part.
    figures, seen = prefetch_report.write(session.setup.out, session.store,
                                          physical_cases(False) + matched_cases(False), senders(False),
                                          session.about, session.notes)
    show(figures, seen)
    finish(session, "prefetch", figures)


if __name__ == "__main__":
    typer.run(main)
