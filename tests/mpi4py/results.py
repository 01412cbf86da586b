"""What became of mpi4py's tests: reading it, and judging it by the list of known failures."""

import collections
import dataclasses
import json
import pathlib
import re

from ranks import ENDS


@dataclasses.dataclass
class Needs:
    """What `mpiexec --check` says of a module: how many functions it needs, which are missing."""

    count: int
    missing: list

    @staticmethod
    def parse(said):
        counted = re.search(r" needs (\d+) functions of MPI: ", said)
        if not counted:
            raise SystemExit(f"mpiexec --check says something else: {said[:300]}")
        missing, others = [], []
        for line in said.splitlines()[1:]:
            (missing if "not written yet" in line else others).append(line.split()[0])
        if others:
            raise SystemExit(f"mpiexec --check has other complaints: {said}")
        return Needs(int(counted[1]), sorted(missing))


def read(files, ranks, code):
    """name -> (end, story), the worst of all ranks. `code`: how the job ended."""
    ends, unfinished, begun = {}, {}, collections.Counter()
    for rank in range(ranks):
        path = pathlib.Path(f"{files}.{rank}")
        last = {}
        for line in path.read_text().splitlines() if path.exists() else []:
            try:
                name, end, story = json.loads(line)
            except ValueError:
                continue  # the rank was killed while it wrote
            last[name] = (end, story)
        begun.update(last.keys())
        for name, (end, story) in last.items():
            if end == "began":
                story = "does not end" if code == 124 else f"ends the job with code {code}"
                unfinished[name] = ("failed", story)
                continue
            if name not in ends or ENDS.index(end) > ENDS.index(ends[name][0]):
                ends[name] = (end, story)
    # The ranks that had gone on were only in the way: the tests that not all have begun come again.
    if code != 0 and any(begun[name] == ranks for name in unfinished):
        unfinished = {name: end for name, end in unfinished.items() if begun[name] == ranks}
        ends = {name: end for name, end in ends.items() if begun[name] == ranks}
    for name, failed in unfinished.items():
        # A rank waits for one that has met a missing function: that is why it does not end.
        if code != 124 or ends.get(name, ("",))[0] != "missing":
            ends[name] = failed
    return ends


@dataclasses.dataclass
class Known:
    """Failures that are known: test -> (the numbers of ranks, or none for all; the reason)."""

    tests: dict

    @staticmethod
    def read(path):
        tests = {}
        for line in path.read_text().splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            match = re.fullmatch(r"(\S+)(?: at ([\d,]+))?: (\S.*)", line)
            if not match:
                raise SystemExit(f"{path}: no such line is known: {line}")
            ranks = {int(number) for number in match[2].split(",")} if match[2] else set()
            tests[match[1]] = (ranks, match[3])
        return Known(tests)

    def has(self, name, ranks):
        return name in self.tests and (not self.tests[name][0] or ranks in self.tests[name][0])


def problems(tables, known, needs):
    """Sentences; none if all is as expected."""
    found = []
    seen = set()
    for ranks, modules in tables.items():
        for module, ends in modules.items():
            for name, (end, story) in ends.items():
                listed = known.has(name, ranks)
                seen.add(name)
                if end == "failed" and not listed:
                    found.append(f"{name} at {ranks} ranks failed: {story}")
                if end != "failed" and listed:
                    found.append(f"{name} at {ranks} ranks is listed in known.txt, and is {end}")
                if end == "missing" and not needs.missing:
                    found.append(f"{name} met a missing function, but mpiexec --check knows none")
            for name in known.tests:
                if name.startswith(module + ".") and known.has(name, ranks) and name not in ends:
                    found.append(f"{name} is listed in known.txt, and there is no such test")
    return found
