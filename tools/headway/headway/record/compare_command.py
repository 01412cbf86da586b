"""The command line of `headway compare`: what differs between recorded runs."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Optional

import typer

from headway.record import compare, compare_words, conditions, lines, parts, reading, waiting
from headway.record.command import run_app, runs_here
from headway.record.model import Run
from headway.shown import BadLine, Shown

COMMAND = "headway compare"
FAILED = 3
BETWEEN = "\0"  # stands for the first --, which typer takes away

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def sides(words: list[str]) -> tuple[list[Path], list[Path]]:
    """A B, or A1 A2 -- B1 B2, or the last two runs here."""
    if BETWEEN in words:
        at = words.index(BETWEEN)
        before, after = words[:at], words[at + 1 :]
        if not before or not after:
            raise BadLine(f"no run {'after' if before else 'before'} --: {COMMAND} A1 A2 -- B1 B2")
    elif not words:
        runs = runs_here()
        if len(runs) < 2:
            raise BadLine("there are no two headway-run-N here: name the folders of two runs")
        before, after = [str(runs[-2])], [str(runs[-1])]
    elif len(words) == 1:
        raise BadLine(f"{words[0]}, and what else? {COMMAND} A B")
    elif len(words) == 2:
        before, after = words[:1], words[1:]
    else:
        raise BadLine(f"{len(words)} runs: which are before, which after? {COMMAND} A1 A2 -- B1 B2")
    known: set[str] = set()
    for word in (*before, *after):
        if os.path.realpath(word) in known and len(before) + len(after) > 2:
            raise BadLine(f"{word} is named twice")
        known.add(os.path.realpath(word))
    return [Path(word) for word in before], [Path(word) for word in after]


def measured(folder: Path) -> parts.Measured:
    run = reading.read(folder)
    run.notes += lines.resolve(run.ranks)
    forget_lines(run)
    return parts.of_run(waiting.classify(run))


def forget_lines(run: Run) -> None:
    """A program that was built again since then has other lines now: its sites are told by their order alone."""
    started = [s for rank in run.ranks if isinstance(s := rank.header.get("started"), int) and s > 0]
    if not started:
        return
    modules = {site.module for rank in run.ranks for site in rank.sites.values() if site.module}
    for module in sorted(modules):
        try:
            if os.stat(module).st_mtime_ns <= min(started):
                continue
        except (OSError, ValueError):
            continue
        for rank in run.ranks:
            for number, site in rank.sites.items():
                if site.module == module:
                    rank.sites[number] = replace(site, file="", line=0, function="")
        run.notes.append(
            f"{module} was built again since it was recorded: its call sites are told by the order of calls alone; a "
            "build in a folder of its own keeps its lines"
        )


@app.command()
def compare_command(
    runs: Annotated[
        Optional[list[str]],
        typer.Argument(
            help="two folders of headway record, or several of each side: A1 A2 A3 -- B1 B2 B3. Default: the last two "
            "here",
            metavar="A B",
        ),
    ] = None,
    fail_if: Annotated[
        Optional[list[str]],
        typer.Option(
            help="exit code 3 if the whole interval of a change is beyond it: 'blocked > +5%', 'late sender > +20ms'; "
            f"of {', '.join(conditions.NAMES)}; may be given again",
            metavar="CONDITION",
        ),
    ] = None,
    as_data: Annotated[bool, typer.Option("--json", help="all of it as JSON, format headway-comparison")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="say nothing but which condition failed")] = False,
    color: Annotated[
        Optional[bool], typer.Option("--color/--no-color", help="colours; default: on a terminal")
    ] = None,
) -> None:
    """Compare recorded runs: what waits more, what less, and where.

    Call sites are the same if file, function, MPI call and the order of calls are: lines may have moved. Of one run a
    side, intervals are drawn from the repeats of its calls and do not know how runs differ; three or more tell that.
    """
    shown = Shown(COMMAND, quiet or as_data, color)
    asked = [conditions.read(text) for text in fail_if or []]
    before, after = ([measured(folder) for folder in side] for side in sides(runs or []))
    found = compare.compare(before, after)
    if as_data:
        print(json.dumps(compare.as_json(found, asked), indent=1))
    elif not quiet:
        shown.out.print(compare_words.words(found))
    failed = False
    for condition in asked:
        if found.fails(condition):
            failed = True
            shown.complain(compare_words.sentence(found, condition))
        else:
            shown.say(compare_words.sentence(found, condition))
    if failed:
        raise typer.Exit(FAILED)


def main(words: list[str]) -> int:
    at = words.index("--") if "--" in words else len(words)
    return run_app(app, COMMAND, [*words[:at], *([BETWEEN] if at < len(words) else []), *words[at + 1 :]])
