"""One SQLite file holds every result of a measurement, written as soon as it is there, so that a run
that was cut short goes on where it stopped.

Owner: one process at a time. Invariant: a key stands for one start; what stands under it was written
whole or not at all. The view `samples` has one row for each line that a program printed:

    sqlite3 study.sqlite "select key, measure, size, value from samples"
"""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path

from .processes import Failure

SCHEMA = """
create table if not exists about (name text primary key, value text not null);
create table if not exists runs (
  key text primary key, settings text not null, at text not null, entry text not null);
create view if not exists samples as
  select runs.key as key, runs.at as at, json_extract(line.value, '$.measure') as measure,
         json_extract(line.value, '$.size') as size, json_extract(line.value, '$.unit') as unit,
         sample.value as value, json_extract(line.value, '$.extra') as extra
  from runs, json_each(runs.entry, '$.rows') as line, json_each(line.value, '$.samples') as sample;
"""


class Store:
    """Starts and what they gave, found again by their key."""

    def __init__(self, path: Path, resume: bool, only_read: bool = False) -> None:
        """`only_read`: somebody's results, in which nothing is written."""
        self.path = path
        if only_read:
            self.lines = self.read(f"{path.absolute().as_uri()}?mode=ro")
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = not path.exists()
        if not resume:
            path.unlink(missing_ok=True)
            Path(f"{path}-journal").unlink(missing_ok=True)
        self.lines = self.read(path.absolute().as_uri(), SCHEMA)
        if resume and fresh:
            self.take_over(path.with_suffix(".jsonl"))

    def read(self, address: str, schema: str = "") -> dict[str, dict]:
        try:
            self.file = sqlite3.connect(address, uri=True)
            self.file.executescript(schema)
            kept = self.file.execute("select key, settings, entry from runs order by rowid").fetchall()
        except sqlite3.Error as problem:
            raise Failure(f"{self.path} cannot be used: {problem}") from None
        return {key: json.loads(entry) | {"key": key, "settings": settings} for key, settings, entry in kept}

    def take_over(self, older: Path) -> None:
        """Results of before the store was a database: a line of JSON each, the last one perhaps cut short."""
        for line in older.read_text().splitlines() if older.exists() else []:
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if "key" in entry:
                Store.add(self, entry.pop("key"), entry)

    def write(self, statement: str, values: tuple) -> None:
        try:
            with self.file:
                self.file.execute(statement, values)
        except sqlite3.Error as problem:
            raise Failure(f"{self.path} takes no more results: {problem}; what it has is kept") from None

    def add(self, key: str, entry: dict) -> dict:
        settings = str(entry.get("settings", ""))
        self.write(
            "insert or replace into runs values (?, ?, ?, ?)",
            (key, settings, time.strftime("%Y-%m-%d %H:%M:%S"), json.dumps(entry)),
        )
        self.lines.pop(key, None)  # in the order of writing, as in the file
        self.lines[key] = {"key": key, "settings": settings} | entry
        return self.lines[key]

    def find(self, key: str, settings: str) -> dict | None:
        kept = self.lines.get(key)
        return kept if kept and kept["settings"] == settings else None

    def of(self, case, side: str) -> list[dict]:
        """Finished runs of a case as it is now, in the order of their turns."""
        found = [
            e
            for k, e in self.lines.items()
            if k.startswith(f"{case.name}|{side}|") and e["settings"] == case.settings()
        ]
        return sorted(found, key=lambda e: e["turn"])

    def about(self) -> dict:
        return {name: json.loads(value) for name, value in self.file.execute("select name, value from about")}

    def tell(self, **facts) -> None:
        """About the measurement as a whole: machine, versions, what was asked."""
        for name, value in facts.items():
            self.write("insert or replace into about values (?, ?)", (name, json.dumps(value)))

    def close(self) -> None:
        self.file.close()
