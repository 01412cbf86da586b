"""Cases of whole jobs that are judged by what they say and by what their ranks count."""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import tempfile
import time
import traceback

from harness import job, library, tries


class Skip(Exception):
    """The case cannot run here; the text says why."""


class Wrong(Exception):
    """The case found something wrong."""


def expect(right: bool, text: str) -> None:
    if not right:
        raise Wrong(text)


class Bench:
    """Starts jobs; keeps what they said and counted."""

    def __init__(self, mpi: library.Headway):
        self.mpi = mpi
        self.command: list[str] = []
        self.output = ""
        self.counters: list[dict] = []  # by rank

    def run(self, program: str, words: list[str], ranks: int = 2,
            around_rank: list[str] | None = None, uid: int | None = None, **settings: str) -> None:
        """`settings`: options of the library, without HEADWAY_."""
        mpi = self.mpi.readable_by_all() if uid is not None else self.mpi
        self.command = [str(mpi.mpiexec), "-n", str(ranks), *(around_rank or []),
                        str(mpi.program(program)), *words]
        with tempfile.TemporaryDirectory(prefix="headway-cases-") as folder:
            os.chmod(folder, 0o777)
            environment = {**mpi.environment(), "CHECK_ERRORS": "fatal",
                           "HEADWAY_COUNTERS": f"{folder}/%r.json",
                           **{f"HEADWAY_{name}": value for name, value in settings.items()}}
            result = job.run(self.command, environment, 60, program, uid)
            self.output = result.output + result.story
            expect(result.code == 0, f"exit code {result.code}")
            expect(any(line.startswith("ok") for line in result.output.splitlines()), "no 'ok'")
            self.counters = [json.loads(pathlib.Path(folder, f"{rank}.json").read_text())
                             for rank in range(ranks)]

    def lines(self, text: str) -> int:
        return sum(text in line for line in self.output.splitlines())


@dataclasses.dataclass
class Tried:
    """How a case ended."""

    name: str
    text: str = ""
    problem: str = ""
    skipped: bool = False


def tried(name: str, function, bench) -> Tried:
    start, found, told = time.monotonic(), Tried(name), []
    try:
        function(bench)
    except Skip as reason:
        return Tried(name, f"skip             {name}: {reason}", skipped=True)
    except (Wrong, tries.Late) as wrong:
        found.problem = str(wrong) or "wrong"
    except Exception as broken:  # the test's own fault, perhaps: told as a failure of this case, and the others go on
        found.problem = f"{type(broken).__name__}: {broken}"
        told = traceback.format_exc().splitlines()
    lines = [f"{'FAIL' if found.problem else 'ok  '} {time.monotonic() - start:7.2f} s  {name}"
             f"{'  <- ' + found.problem if found.problem else ''}"]
    if found.problem:
        lines += [f"    command: {' '.join(bench.command)}", *(f"    | {line}" for line in [*told, *bench.output.splitlines()])]
    found.text = "\n".join(lines)
    return found


def judged(some: list, make, at_once: int):
    """Each case as soon as it is over, in order."""
    if at_once == 1:
        yield from (tried(name, function, make()) for name, function in some)
        return
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        running = [pool.submit(tried, name, function, make()) for name, function in some]
        again = []
        for one, (name, function) in zip(running, some):
            found = one.result()
            if found.problem:
                print(f"again, by itself: {found.text}", flush=True)
                again.append((name, function))
            else:
                yield found
    yield from (tried(name, function, make()) for name, function in again)


class Cases:
    """The cases of one test, in order; each is a function of a Bench."""

    def __init__(self):
        self.all: list[tuple[str, object]] = []

    def case(self, name: str, *arguments):
        def add(function):
            self.all.append((name, lambda bench: function(bench, *arguments)))
            return function
        return add

    def timed(self, name: str):
        """A case that is about times: one of four times they must be right (`tries.in_time`)."""
        def add(function):
            self.all.append(
                (name, lambda bench: tries.until_right(lambda: function(bench), tries.Late)))
            return function
        return add

    def main(self, about: str, build: pathlib.Path, make=Bench, at_once: int = 1) -> int:
        """`at_once`: so many cases run side by side, where they mostly wait. One that fails then is tried again by itself:
        that decides."""
        parser = argparse.ArgumentParser(description=about)
        parser.add_argument("--build", type=pathlib.Path, default=build)
        parser.add_argument("--only", help="only cases whose name holds this text")
        parser.add_argument("--list", action="store_true", help="list the cases and stop")
        args = parser.parse_args()
        if args.list:
            print("\n".join(name for name, _ in self.all))
            return 0
        some = [one for one in self.all if not args.only or args.only in one[0]]
        failed, ran, skipped = [], 0, 0
        for tried in judged(some, lambda: make(library.Headway(args.build)), at_once):
            skipped += tried.skipped
            ran += not tried.skipped
            print(tried.text, flush=True)
            if tried.problem:
                failed.append(tried.name)
        print(f"{ran} cases, {len(failed)} failed, {skipped} skipped")
        for name in failed:
            print(f"  failed: {name}")
        if ran == 0:
            return 77 if skipped else 1
        return 1 if failed else 0
