"""What differs between two studies: the same MPI before and after, or two machines."""

from __future__ import annotations

import csv
import io
import json
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Iterator

import numpy as np

from headway.measure.processes import NO_ROOM, Failure
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
    better: bool | None  # None: one of the two is not known


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
            held = [c.calls[call].held for c in (a, b)]
            if not all(held):
                if any(held):
                    cells = [near(c.size) if c.size else "not seen" if c.held else "not found" for c in (a.calls[call], b.calls[call])]
                    found.append(Difference(*who, name, *cells, None))
                continue
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
# Names, and Parquet's types: the same in each file, also where a column has nothing in it.
COLUMNS = {
    "mpi": "string", "place": "string", "test": "string", "turn": "int64", "at": "string", "measure": "string",
    "size": "int64", "unit": "string", "value": "float64", "extra": "string",
}  # fmt: skip


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
    with whole_file(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        writer = csv.writer(text)
        writer.writerow(COLUMNS)
        for row in rows_of(store):
            writer.writerow(row)
            count += 1
        text.detach()
    return count


def write_parquet(store: Store, path: Path) -> int:
    """Raises ImportError without pyarrow."""
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema([(name, getattr(pyarrow, kind)()) for name, kind in COLUMNS.items()])
    table = pyarrow.Table.from_pylist([dict(zip(COLUMNS, row)) for row in rows_of(store)], schema=schema)
    with whole_file(path) as file:
        pyarrow.parquet.write_table(table, file)
    return table.num_rows


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file that is there whole or not at all; what was there before stays until then."""
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    except OSError as problem:
        if problem.errno in NO_ROOM:
            raise Failure(f"there is no room on the disk for {path}") from None
        raise Failure(f"{path} cannot be written: {problem.strerror or problem}") from None
    finally:
        part.unlink(missing_ok=True)
