"""The matrix: reads tests/matrix.toml and expands it into cases. Knows nothing of processes."""

from __future__ import annotations

import dataclasses
import pathlib

try:
    import tomllib
except ImportError:  # before Python 3.11
    from pip._vendor import tomli as tomllib


@dataclasses.dataclass(frozen=True)
class Case:
    """One run of one program."""

    program: str
    group: str
    set: str  # quick, slow or big
    ranks: int
    transport: str
    mode: str
    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    timeout: float
    same_output: bool  # the output must be the same for all transports and modes
    returns_errors: tuple[str, ...]  # its cases that look at returned errors; "*": all

    @property
    def name(self) -> str:
        words = [self.program, *self.arguments]
        return f"{' '.join(words)} n={self.ranks} {self.transport} {self.mode}"


def _numbers(text: str) -> list[int]:
    """"1,2,4-6" is 1 2 4 5 6."""
    result: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        result += range(int(first), int(last or first) + 1)
    return result


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]


class Table:
    """The parsed file, with every name in it checked."""

    sets = ("quick", "slow", "big")

    def __init__(self, path: pathlib.Path):
        with open(path, "rb") as file:
            self.data = tomllib.load(file)
        self.transports = self.data["transports"]
        self.modes = self.data["modes"]
        self.quirks = self.data.get("quirks", {})

    def groups(self) -> dict[str, set[str]]:
        """Each group and the sets in which it has cases."""
        found: dict[str, set[str]] = {}
        for program in self.data["program"]:
            found.setdefault(program["group"], set()).update(s for s in self.sets if s in program)
        return found

    def programs(self) -> list[str]:
        return list(dict.fromkeys(program["name"] for program in self.data["program"]))

    def cases(self) -> list[Case]:
        result: list[Case] = []
        for program in self.data["program"]:
            for name in self.sets:
                for line in program.get(name, []):
                    result += self._expand(program, name, line)
        return result

    def _expand(self, program: dict, set_name: str, line: str) -> list[Case]:
        """"ranks : transports : modes" or, with seeds, "... : seeds 1-5"."""
        parts = [part.strip() for part in line.split(":")]
        if len(parts) not in (3, 4):
            raise SystemExit(f"matrix: '{line}' of {program['name']} is not ranks:transports:modes")
        seeds: list[int | None] = [None]
        if len(parts) == 4:
            seeds = list(_numbers(parts[3].removeprefix("seeds")))
        result = []
        for transport in _words(parts[1]):
            for mode in _words(parts[2]):
                for ranks in _numbers(parts[0]):
                    for seed in seeds:
                        result.append(self._case(program, set_name, ranks, transport, mode, seed))
        return result

    def _case(self, program, set_name, ranks, transport, mode, seed) -> Case:
        environment = {**self._settings(self.transports, transport), **self._settings(self.modes, mode)}
        environment.update(program.get("environment", {}))
        arguments = list(program.get("arguments", []))
        if seed is not None:
            arguments.append(f"--seed={seed}")
        returning = program.get("returns_errors", [])
        if returning and returning != ["*"] and environment.get("CHECK_ERRORS") == "fatal":
            arguments.append(f"--skip={','.join(returning)}")
        return Case(
            program=program["name"],
            group=program["group"],
            set=set_name,
            ranks=ranks,
            transport=transport,
            mode=mode,
            arguments=tuple(arguments),
            environment=tuple(sorted(environment.items())),
            timeout=float(program.get("timeout", self.data["timeout"])),
            same_output=bool(program.get("same_output", False)),
            returns_errors=tuple(program.get("returns_errors", [])),
        )

    def forced(self, cases: list[Case], modes: list[str]) -> list[Case]:
        """The default cases in other modes; not where errors end the job that a program looks at."""
        result = []
        for case in cases:
            for mode in modes if case.mode == "default" else []:
                settings = self._settings(self.modes, mode)
                arguments = case.arguments
                if case.returns_errors and settings.get("CHECK_ERRORS") == "fatal":
                    if case.returns_errors == ("*",):
                        continue
                    arguments += (f"--skip={','.join(case.returns_errors)}",)
                environment = tuple(sorted({**dict(case.environment), **settings}.items()))
                result.append(dataclasses.replace(case, mode=mode, arguments=arguments,
                                                  environment=environment))
        return result

    @staticmethod
    def _settings(table: dict, name: str) -> dict:
        if name not in table:
            raise SystemExit(f"matrix: no '{name}' among {', '.join(table)}")
        return table[name]
