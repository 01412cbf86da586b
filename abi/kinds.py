"""What C does not say of a function's parameters: their kinds, which way their values go, how long
lists are, and whether a null pointer may be passed. Most follows from the types, the names and the
twins for large counts; kinds.json has what does not.

A kind is one of:
  handle, status, function, state (handed to callbacks as it is)
  buffer (data, told by a count and a datatype), string, address (a location, or any pointer's value)
  count, displacement (in a list or a buffer), offset (in a file)
  rank (also root), tag, keyval, index (Fortran's begin at 1), logical, integer
A direction is in, out or inout; out of a handle is a new one. The length of a list is a number, a
parameter, or * for what else decides (the size of a group, the dimensions of a topology).
"""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import re
from pathlib import Path

KINDS = ("handle", "status", "function", "state", "buffer", "string", "address", "count",
         "displacement", "offset", "rank", "tag", "keyval", "index", "logical", "integer")
DIRECTIONS = ("in", "out", "inout")
FIELDS = {"kind", "dir", "array", "null"}
DECLARED = re.compile(r"(const )?((?:unsigned )?\w+) ?(\**)(?:const )?(\w+)((?:\[\d*\])*)")


@dataclasses.dataclass(frozen=True)
class Parameter:
    name: str
    type: str  # without const and stars
    depth: int  # pointers and lists
    kind: str
    dir: str
    array: str  # "" for no list
    null: bool  # a null pointer is right, or the body looks at it


def declared(text: str) -> tuple[bool, str, int, str, bool]:
    """Whether it is const, the type, how many pointers deep, the name, whether it is a list."""
    found = DECLARED.fullmatch(text)
    if not found:
        raise ValueError(f"cannot read the parameter {text}")
    const, type_, stars, name, lists = found.groups()
    return bool(const), type_, len(stars) + lists.count("["), name, bool(lists)


class Kinds:
    """The parameters of all functions; `problems` tells what in kinds.json cannot be."""

    def __init__(self, data: dict, abi: dict):
        self.any_time = data.get("before_init", [])
        self.names = data.get("names", {})
        self.exceptions = data.get("functions", {})
        self.functions = {function["name"]: function for function in abi["functions"]}
        self.handles = {handle["name"] for handle in abi["handle_types"]}
        self.problems: list[str] = []
        self.used: set[tuple[str, str]] = set()
        self.parameters = {
            name: [self.parameter(name, at) for at in range(len(function["params"]))
                   if function["params"][at] != "..."]
            for name, function in self.functions.items()}
        self.look_for_mistakes()

    def is_for_any_time(self, function: str) -> bool:
        """May be called before MPI is initialized (MPI 5.0, section 11.4.1) and after its end."""
        return any(fnmatch.fnmatchcase(function, pattern) for pattern in self.any_time)

    def base(self, function: str) -> str:
        """The twin with counts of int, which has the exceptions of both."""
        name = function.removesuffix("_c")
        return name if name in self.functions else function

    def own(self, function: str, parameter: str) -> dict:
        found: dict = {}
        for name in dict.fromkeys((self.base(function), function)):
            if parameter in self.exceptions.get(name, {}):
                self.used.add((name, parameter))
                found = found | self.exceptions[name][parameter]
        return found

    def parameter(self, function: str, at: int) -> Parameter:
        const, type_, depth, name, is_list = declared(self.functions[function]["params"][at])
        rule = self.names.get(name, {})
        own = self.own(function, name)
        kind = own.get("kind", self.kind(function, type_, name, rule))
        dir_ = own.get("dir", rule.get("dir", "out" if depth and not const else "in"))
        if "dir" not in own and (kind in ("state", "function") or depth == 0 or const):
            dir_ = "in"
        length = "*" if is_list and kind != "string" else ""  # a text ends with its zero
        array = str(own.get("array", rule.get("array", length) if depth else ""))
        null = kind in ("status", "state", "buffer") or dir_ == "in" and kind == "address"
        return Parameter(name, type_, depth, kind, dir_, array, own.get("null", rule.get("null", null)))

    def kind(self, function: str, type_: str, name: str, rule: dict) -> str:
        if type_ in self.handles:
            return "handle"
        if type_ == "MPI_Status":
            return "status"
        if type_.endswith("_function"):
            return "function"
        if "kind" in rule:
            return rule["kind"]
        fixed = {"void": "buffer", "char": "string", "MPI_Offset": "offset", "MPI_Aint": "displacement"}
        if type_ in fixed:
            return fixed[type_]
        return "count" if self.is_wide_in_the_twin(function, name) else "integer"

    def is_wide_in_the_twin(self, function: str, name: str) -> bool:
        twin = self.functions.get(f"{self.base(function)}_c", {"params": []})
        return any(declared(text)[1] == "MPI_Count" and declared(text)[3] == name
                   for text in twin["params"])

    def look_for_mistakes(self) -> None:
        self.problems += [f"kinds.json: no function is called {pattern}" for pattern in self.any_time
                          if not fnmatch.filter(self.functions, pattern)]
        for function, rows in self.exceptions.items():
            for parameter in rows:
                if (function, parameter) not in self.used:
                    self.problems.append(f"kinds.json: {function} has no parameter {parameter}")
        rows = [*self.names.items(), *((name, row) for rows in self.exceptions.values()
                                       for name, row in rows.items())]
        for name, row in rows:
            if (row.keys() - FIELDS or row.get("kind", KINDS[0]) not in KINDS
                    or row.get("dir", "in") not in DIRECTIONS):
                self.problems.append(f"kinds.json: {name} cannot be {json.dumps(row)}")
        for function, parameters in self.parameters.items():
            known = {parameter.name for parameter in parameters}
            for parameter in parameters:
                length = parameter.array
                if length not in ("", "*") and not length.isdigit() and length not in known \
                        and not length.startswith("MPI_MAX_"):
                    self.problems.append(f"kinds.json: {function} has no {length}, "
                                         f"the length of {parameter.name}")


def read_kinds(path: Path, abi: dict) -> Kinds:
    return Kinds(json.loads(path.read_text()) if path.exists() else {}, abi)
