"""`headway trace`: what is written of a run, and the words for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from headway.record import classes, otf2_export, page, whole
from headway.record import perfetto as perfetto_trace
from headway.record.model import Run
from headway.record.summary import Summary, summarise
from headway.record.whole import NotWritten
from headway.record.words import bytes_text, clean, count_text, time_text

PERFETTO, PAGE, OTF2 = "trace.pftrace", "trace.html", "otf2"
WAITS = 5  # in the terminal
NOTES = 10
MOST_EVENTS = 20_000_000  # in Perfetto's file: more are not opened by a browser


def title_of(run: Run) -> str:
    """Program and folder."""
    program = next((str(r.header.get("program", "")) for r in run.ranks if r.header.get("program")), "")
    folder = Path(run.folder).name
    return clean(f"{program.rsplit('/', 1)[-1]} ({folder})" if program else folder or "trace")


def write_trace(
    run: Run,
    folder: Path | str,
    classes: Sequence[np.ndarray] | None = None,
    perfetto: bool = True,
    html: bool = True,
    otf2: bool = False,
    summary: Summary | None = None,
    window: tuple[int, int] | None = None,
) -> list[Path]:
    """Files that were written. `classes`: for each of the run's ranks, the class of each event (see classes.py).
    `window`: the time (ns) of the run that Perfetto's file and the OTF2 archive hold."""
    folder = whole.folder(Path(folder))
    count = sum(last - first for first, last in perfetto_trace.spans(run, window)) if perfetto else 0
    if count > MOST_EVENTS:
        text = (
            f"{PERFETTO} is not written: {count_text(count)} events, and Perfetto opens {count_text(MOST_EVENTS)}; "
            "--from 10 --to 20 writes those of ten seconds."
        )
        if not html:
            raise NotWritten(text)
        summary, perfetto = summary or summarise(run, classes), False
        summary.notes.append(text)
    files = []
    if html:
        found = summary or summarise(run, classes)
        files.append(whole.whole(folder / PAGE, lambda path: page.write(found, path, title_of(run))))
    if perfetto:
        files.append(whole.whole(folder / PERFETTO, lambda path: perfetto_trace.write(run, path, classes, window=window)))
    if otf2:
        try:
            files.append(otf2_export.write(run, folder / OTF2, window))
        except otf2_export.Otf2Error as error:
            raise NotWritten(str(error)) from error
    return files


def longest(s: Summary, most: int = WAITS) -> list[list[str]]:
    """Rows: time, rank, call, where, class, from."""
    return [
        [
            time_text(w["time"]),
            str(s.ranks[w["row"]]),
            s.texts.all[w["name"]],
            s.texts.all[w["site"]],
            classes.NAMES[w["class"]] if s.told else "",
            time_text(w["begin"]),
        ]
        for w in s.waits(most)
    ]


def opening(files: Sequence[Path]) -> list[str]:
    """Each file, and what opens it."""
    lines = []
    for file in files:
        if file.name == PERFETTO:
            hint = "open it at https://ui.perfetto.dev (it stays on your machine)"
            lines.append(f"{file} ({bytes_text(file.stat().st_size)}): {hint}")
        elif file.name == PAGE:
            lines.append(f"{file} ({bytes_text(file.stat().st_size)}): open it in a browser, it needs no network")
        elif file.suffix == ".csv":
            lines.append(f"{file} ({bytes_text(file.stat().st_size)})")
        else:
            lines.append(f"{file}: for Vampir, Scalasca and other readers of OTF2")
    return lines


def tell(s: Summary, files: Sequence[Path], console: Console, said: Sequence[str] = ()) -> None:
    """Names in it are text: no markup, no codes of the terminal. `said`: notes that stand above already."""

    def line(text: str, style: str = "", fold: bool = True) -> None:
        console.print(Text(clean(text, 2000), style=style), soft_wrap=not fold)

    line(page.facts(s))
    rows = longest(s)
    if rows:
        table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
        table.add_column("longest waits" if s.told else "longest calls", justify="right")
        table.add_column("rank", justify="right")
        for head in ("call", "where", *(["waits for"] if s.told else [])):
            table.add_column(head, overflow="fold")
        table.add_column("from", justify="right")
        for row in rows:
            table.add_row(*(Text(clean(c)) for c in (row if s.told else row[:4] + row[5:])))
        console.print(table)
    above = {clean(note, 500) for note in said}
    notes = [note for note in s.notes if clean(note, 500) not in above]
    for note in notes[:NOTES]:
        line(note, "yellow")
    if len(notes) > NOTES:
        line(f"and {count_text(len(notes) - NOTES)} more notes, in the page", "yellow")
    for text in opening(files):
        line(text, fold=False)
