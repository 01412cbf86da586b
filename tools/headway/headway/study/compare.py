"""What differs between two studies: the same MPI before and after, or two machines."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headway.measure.statistics import human_size, short
from headway.measure.store import Store
from headway.study import samr
from headway.study.findings import Findings, Value
from headway.study.value import near

NAMES = {
    "latency": ("latency", "µs", False),
    "window": ("bandwidth", "MB/s", True),
    "bidir": ("both ways, receives first", "MB/s", True),
    "bidir-sends": ("both ways, sends first", "MB/s", True),
    "overlap_recv": ("receive overlap", "", True),
    "overlap_send": ("send overlap", "", True),
    "progress_recv": ("receive progress", "", True),
    "progress_send": ("send progress", "", True),
}
SHARES = ("overlap_", "progress_")


@dataclass
class Difference:
    mpi: str
    place: str
    what: str
    before: str
    after: str
    better: bool | None


def apart(a: Value, b: Value) -> bool:
    """Intervals that do not meet; of single values nothing is known but the least change."""
    return a.high < b.low or b.high < a.low


def changed(measure: str, a: Value, b: Value) -> bool:
    moved = (
        abs(b.median - a.median) if measure.startswith(SHARES) else abs(b.median / a.median - 1) if a.median else 0
    )
    return moved >= 0.1 and apart(a, b)


def of_curve(measure: str, a: dict[int, Value], b: dict[int, Value]) -> tuple[str, str, str, bool] | None:
    """One line for all sizes that changed in one direction most."""
    name, unit, more = NAMES[measure]
    sizes = [s for s in sorted(a.keys() & b.keys()) if changed(measure, a[s], b[s])]
    if not sizes:
        return None
    share = measure.startswith(SHARES)
    ratios = [b[s].median - a[s].median if share else b[s].median / a[s].median - 1 for s in sizes]
    largest = sizes[int(np.argmax(np.abs(ratios)))]
    span = (
        human_size(sizes[0])
        if len(sizes) == 1
        else f"{len(sizes)} sizes from {human_size(sizes[0])} to {human_size(sizes[-1])}, most at {human_size(largest)}"
    )
    up = float(np.median(ratios)) > 0

    def text(v: Value) -> str:
        return f"{v.median:.2f}" if share else f"{short(v.median)} {unit}"

    return f"{name}: {span}", text(a[largest]), text(b[largest]), up == more


def compare(before: Findings, after: Findings) -> list[Difference]:
    found = []
    for who in sorted(before.of.keys() & after.of.keys()):
        a, b = before.of[who], after.of[who]
        for measure in NAMES:
            line = of_curve(measure, a.curves.get(measure, {}), b.curves.get(measure, {}))
            if line:
                found.append(Difference(*who, line[0], line[1], line[2], line[3]))
        for call, name in (
            ("s", "MPI_Isend needs the receiver from"),
            ("ws", "a send's wait needs the receiver from"),
        ):
            if call not in a.calls or call not in b.calls:
                continue
            was, now = a.calls[call].size, b.calls[call].size
            if bool(was) != bool(now) or (was and abs(now / was - 1) > 0.03):
                found.append(
                    Difference(
                        *who,
                        name,
                        near(was) if was else "not seen",
                        near(now) if now else "not seen",
                        not now or bool(was and now > was),
                    )
                )
    return found + compare_meshes(before, after)


def compare_meshes(before: Findings, after: Findings) -> list[Difference]:
    """Of each case and form, time of an iteration and of its communication."""
    found = []
    was = {(r.mpi, r.case): r for r in before.samr if r.forms}
    for row in after.samr:
        old = was.get((row.mpi, row.case))
        for form in row.forms if old else ():
            if form not in old.forms:
                continue
            for what in ("execution", "communication"):
                a, b = getattr(old.forms[form], what), getattr(row.forms[form], what)
                if changed(what, a, b):
                    name = f"{what}, form {form}: {row.title}"
                    was_is = (f"{short(a.median)} s", f"{short(b.median)} s")
                    found.append(Difference(row.mpi, samr.PLACE, name, *was_is, b.median < a.median))
    return found


def only_in(one: Findings, other: Findings) -> list[str]:
    return [f"{one.label(m)}, {one.title(p)}" for m, p in sorted(one.of.keys() - other.of.keys())]


# ---- export ------------------------------------------------------------------------------------
COLUMNS = ("mpi", "place", "test", "turn", "at", "measure", "size", "unit", "value", "extra")


def rows_of(store: Store):
    """One row for each sample; a row of the kernel has its times in `extra` (JSON)."""
    when = dict(store.file.execute("select key, at from runs"))
    for key, entry in store.lines.items():
        for row in entry["rows"]:
            for value in row["samples"] or [None]:
                yield (
                    entry["mpi"],
                    entry["place"],
                    entry["test"],
                    entry["turn"],
                    when.get(key, ""),
                    row["measure"],
                    row["size"],
                    row["unit"],
                    value,
                    json.dumps(row.get("extra", {})),
                )


def write_csv(store: Store, path: Path) -> int:
    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for row in rows_of(store):
            writer.writerow(row)
            count += 1
    return count


def write_parquet(store: Store, path: Path) -> int:
    """Raises ImportError without pyarrow."""
    import pyarrow
    import pyarrow.parquet

    columns = list(zip(*rows_of(store))) or [[] for _ in COLUMNS]
    table = pyarrow.table(dict(zip(COLUMNS, map(list, columns))))
    pyarrow.parquet.write_table(table, path)
    return table.num_rows
