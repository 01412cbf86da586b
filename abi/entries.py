"""The entries that are one call of their body. abi/entries.json has a row a family:

  in      the file of src/api, without its ending, that includes api/entries/<in>.inl at its end: so
          bodies are inlined, and a call's return address is the program's
  family  a function, or several, each with its twin for large counts (MPI_x_c) if the ABI has one
  of      functions without their twins, where those have another body
  ends    for a collective: "wait", "request" (MPI_Ix), "persistent" (MPI_x_init). The body gets a Way
          in place of the info object and the request
  body    what is called: with the function's name, then args. {returns} is the type of the result
  args    expressions of the parameters as the ABI names them; without it, all of them
  site    the call waits: it notes where in the program it stands
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

KEYS = {"in", "family", "of", "ends", "body", "args", "site"}
# How a call ends: its name, what it has for that behind its other parameters, and the body's Way.
ENDS = {
    "wait": (lambda name: name, [], "Way{}"),
    "request": (lambda name: f"MPI_I{name[4].lower()}{name[5:]}", ["request"], "Way{request}"),
    "persistent": (lambda name: f"{name}_init", ["info", "request"], "Way{request, info}"),
}


@dataclasses.dataclass(frozen=True)
class Entry:
    function: dict
    file: str
    body: str
    arguments: list[str]
    site: bool

    @property
    def name(self) -> str:
        return self.function["name"]

    def text(self) -> str:
        returns = self.function["returns"]
        opening = "HEADWAY_ENTRY(" if returns == "int" else f"HEADWAY_ENTRY_R({returns}, "
        arguments = ", ".join([f'"{self.name}"', *self.arguments])
        lines = [f"{opening}{self.name})({', '.join(self.function['params']) or 'void'}) {{"]
        lines += ["  note_site();"] if self.site else []
        lines += [f"  return {self.body}({arguments});", "}"]
        return "\n".join(lines) + "\n"


def parameter_names(function: dict) -> list[str]:
    return [re.search(r"(\w+)(?:\[\d*\])*$", text)[1] for text in function["params"]]


def as_list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


class Rows:
    """The rows of entries.json, in their order; `problems` tells which say what cannot be."""

    def __init__(self, rows: list[dict], abi: dict):
        self.functions = {function["name"]: function for function in abi["functions"]}
        self.entries: dict[str, Entry] = {}
        self.problems: list[str] = []
        for row in rows:
            if problem := self.refuse(row):
                self.problems.append(f"entries.json: {json.dumps(row)}: {problem}")
            else:
                self.read(row)

    @staticmethod
    def refuse(row: dict) -> str:
        if unknown := row.keys() - KEYS:
            return f"there is no key {', '.join(sorted(unknown))}"
        if missing := {"in", "body"} - row.keys():
            return f"{', '.join(sorted(missing))} is missing"
        if ("family" in row) == ("of" in row):
            return "one of family and of says which functions"
        if unknown := set(row.get("ends", ())) - ENDS.keys():
            return f"no call ends by {', '.join(sorted(unknown))}"
        if "ends" in row and "args" in row:
            return "a row with ends has all parameters"
        return ""

    def read(self, row: dict) -> None:
        for name in as_list(row.get("of", ())):
            self.add(row, name, None)
        for family in as_list(row.get("family", ())):
            for end in row.get("ends", [None]):
                name = ENDS[end][0](family) if end else family
                self.add(row, name, end)
                if f"{name}_c" in self.functions:
                    self.add(row, f"{name}_c", end)

    def add(self, row: dict, name: str, end: str | None) -> None:
        if name not in self.functions:
            self.problems.append(f"entries.json: {name} is not a function of the ABI")
            return
        if name in self.entries:
            self.problems.append(f"entries.json: {name} stands in two rows")
            return
        function = self.functions[name]
        arguments = row.get("args", parameter_names(function))
        if end:
            own, way = ENDS[end][1:]
            kept = len(arguments) - len(own)
            if arguments[kept:] != own:
                self.problems.append(f"entries.json: {name} does not end with {', '.join(own)}")
            arguments = [*arguments[:kept], way]
        body = row["body"].replace("{returns}", function["returns"])
        self.entries[name] = Entry(function, row["in"], body, arguments, row.get("site", False))

    def files(self) -> list[str]:
        return list(dict.fromkeys(entry.file for entry in self.entries.values()))

    def make(self, file: str, notice: str) -> str:
        """What that file of src/api includes."""
        out = [f"// The entries of src/api/{file}.cc that are one call each.", f"// {notice}",
               "#pragma GCC diagnostic push",
               '#pragma GCC diagnostic ignored "-Wunused-parameter"  // not every body wants all', ""]
        out += [entry.text() for entry in self.entries.values() if entry.file == file]
        return "\n".join([*out, "#pragma GCC diagnostic pop", ""])


def read_rows(path: Path, abi: dict) -> Rows:
    return Rows(json.loads(path.read_text()) if path.exists() else [], abi)
