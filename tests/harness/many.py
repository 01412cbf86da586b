"""Many short runs: a hang that shows in one run of a thousand needs a thousand, each with its own seed.

A job makes ten of them, so that its start costs little; what starts a run, what it allocates and what
it draws is new each time. Early release learns within a job: without that some hangs never show."""

from __future__ import annotations

import dataclasses

from harness import table

RUNS_A_JOB = 10
SECONDS_A_RUN = 3.0  # at most, on top of a job's own limit


def _cell(case: table.Case) -> str:
    """What is counted together."""
    return f"{case.program} n={case.ranks} {case.transport} {case.mode}"


def spread(cases: list[table.Case], runs: int, first: int) -> list[table.Case]:
    """Jobs with `runs` runs of each program, number of ranks, transport and mode. They take turns, so
    that a part of them is about as much of each."""
    cells: dict[str, table.Case] = {}
    for case in cases:
        cells.setdefault(_cell(case), case)
    jobs = []
    for done in range(0, runs, RUNS_A_JOB):
        count = min(RUNS_A_JOB, runs - done)
        for case in cells.values():
            words = [word for word in case.arguments if not word.startswith("--seed=")]
            jobs.append(dataclasses.replace(
                case, arguments=(*words, f"--seed={first + done}", f"--runs={count}"),
                timeout=case.timeout + SECONDS_A_RUN * count))
    return jobs


class Tally:
    """How many runs of each ended well."""

    def __init__(self) -> None:
        self.counts: dict[str, tuple[int, int]] = {}  # runs that ended well, jobs that did not

    def add(self, case: table.Case, is_right: bool) -> None:
        runs = next((int(word.removeprefix("--runs=")) for word in case.arguments
                     if word.startswith("--runs=")), 0)
        good, failed = self.counts.get(_cell(case), (0, 0))
        self.counts[_cell(case)] = (good + runs, failed) if is_right else (good, failed + 1)

    def lines(self) -> list[str]:
        return [f"{good:6} runs ended well, {failed} jobs did not: {cell}"
                for cell, (good, failed) in self.counts.items()]
