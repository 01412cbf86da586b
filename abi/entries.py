"""The entries that are one call of their body. abi/entries.json has a row a family:

  in      the file of src/api, without its ending, that includes api/entries/<in>.inl at its end: so
          bodies are inlined, and a call's return address is the program's
  family  a function, or several, each with its twin for large counts (MPI_x_c) if the ABI has one
  of      functions without their twins, where those have another body
  ends    for a collective: "wait", "request" (MPI_Ix), "persistent" (MPI_x_init). The body gets a Way
          in place of the info object and the request
  body    what is called: with the function's name, then args. {returns} is the type of the result,
          {form} is large in a twin, else narrow
  args    expressions of the parameters as the ABI names them; without it, all of them
  site    the call waits: it notes where in the program it stands

An entry refuses null pointers that kinds.json does not allow before it calls the body.
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

from kinds import Kinds, Parameter

KEYS = {"in", "family", "of", "ends", "body", "args", "site"}
# How a call ends: its name, what it has for that behind its other parameters, and the body's Way.
ENDS = {
    "wait": (lambda name: name, [], "Way{}"),
    "request": (lambda name: f"MPI_I{name[4].lower()}{name[5:]}", ["request"], "Way{request}"),
    "persistent": (lambda name: f"{name}_init", ["info", "request"], "Way{request, info}"),
}


def null_check(parameter: Parameter, parameters: list[Parameter]) -> str:
    """When it is a mistake that this is a null pointer; "" if that is for the body to say, which alone
    knows how long a list is that no parameter tells of."""
    if parameter.depth == 0 or parameter.null or parameter.array == "*":
        return ""
    length = next((one for one in parameters if one.name == parameter.array), None)
    return f"{'*' * length.depth}{length.name} > 0 && !{parameter.name}" if length else f"!{parameter.name}"


def story(name: str, parameters: list[Parameter]) -> str:
    """What an error tells of the call, as the members of api::Missing behind the argument's name."""
    last = {parameter.name: parameter for parameter in parameters if parameter.depth == 0}
    members = [f'.call = "{name}"']
    peer = next((way for way in ("source", "dest") if way in last), "")
    members += [f".peer = {peer}"] if peer else []
    members += [f".tag = {tag}" for tag in ("recvtag", "tag") if tag in last]
    members += [f".count = {count}" for count in ("recvcount", "incount", "outcount", "count")
                if count in last and last[count].kind == "count"][:1]
    members += [".receives = true"] if peer == "source" else []
    members += [".has_root = true", ".root = root"] if "root" in last else []
    out = [f".story = {{{', '.join(members)}}}"]
    for member, type_ in (("comm", "MPI_Comm"), ("session", "MPI_Session"), ("datatype", "MPI_Datatype"),
                          ("errhandler", "MPI_Errhandler"), ("win", "MPI_Win"),
                          ("file", "MPI_File")):
        named = [parameter.name for parameter in parameters
                 if parameter.type == type_ and parameter.depth == 0]
        out += [f".{member} = {named[-1 if member == 'datatype' else 0]}"] if named else []
    if name.startswith("MPI_File_") and ".file = " not in out[-1] and "errhandler" not in name:
        out += [".of_files = true"]
    return ", ".join(out)


@dataclasses.dataclass(frozen=True)
class Entry:
    function: dict
    file: str
    body: str
    arguments: list[str]
    site: bool
    parameters: list[Parameter]
    any_time: bool

    @property
    def name(self) -> str:
        return self.function["name"]

    def checks(self) -> list[str]:
        """Raises for a null pointer; the tools' functions have codes of their own, and no handler."""
        if self.name.startswith("MPI_T_"):
            return []
        told = story(self.name, self.parameters) + (", .any_time = true" if self.any_time else "")
        return [f'  if ({check}) [[unlikely]] return raise_missing({{.argument = "{parameter.name}", {told}}});'
                for parameter in self.parameters if (check := null_check(parameter, self.parameters))]

    def text(self) -> str:
        returns = self.function["returns"]
        opening = "HEADWAY_ENTRY(" if returns == "int" else f"HEADWAY_ENTRY_R({returns}, "
        arguments = ", ".join([f'"{self.name}"', *self.arguments])
        lines = [f"{opening}{self.name})({', '.join(self.function['params']) or 'void'}) {{"]
        lines += ["  note_site();"] if self.site else []
        lines += self.checks()
        lines += [f"  return {self.body}({arguments});", "}"]
        return "\n".join(lines) + "\n"


def as_list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


class Rows:
    """The rows of entries.json, in their order; `problems` tells which say what cannot be."""

    def __init__(self, rows: list[dict], kinds: Kinds):
        self.kinds = kinds
        self.functions = kinds.functions
        self.entries: dict[str, Entry] = {}
        self.problems = list(kinds.problems)
        self.count = len(rows)
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
        parameters = self.kinds.parameters[name]
        arguments = row.get("args", [parameter.name for parameter in parameters])
        if end:
            own, way = ENDS[end][1:]
            kept = len(arguments) - len(own)
            if arguments[kept:] != own:
                self.problems.append(f"entries.json: {name} does not end with {', '.join(own)}")
            arguments = [*arguments[:kept], way]
        meant = {"{returns}": function["returns"], "{form}": "large" if name.endswith("_c") else "narrow"}
        body, *arguments = [re.sub("|".join(meant), lambda found: meant[found[0]], text)
                            for text in (row["body"], *arguments)]
        self.entries[name] = Entry(function, row["in"], body, arguments, row.get("site", False),
                                   parameters, self.kinds.is_for_any_time(name))

    def files(self) -> list[str]:
        return list(dict.fromkeys(entry.file for entry in self.entries.values()))

    def make(self, file: str, notice: str) -> str:
        """What that file of src/api includes."""
        out = [f"// The entries of src/api/{file}.cc that are one call each.", f"// {notice}",
               "#pragma GCC diagnostic push",
               '#pragma GCC diagnostic ignored "-Wunused-parameter"  // not every body wants all', ""]
        out += [entry.text() for entry in self.entries.values() if entry.file == file]
        return "\n".join([*out, "#pragma GCC diagnostic pop", ""])


def read_rows(path: Path, kinds: Kinds) -> Rows:
    return Rows(json.loads(path.read_text()) if path.exists() else [], kinds)
