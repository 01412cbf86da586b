#!/usr/bin/env python3
"""Builds real codes with this library's mpicc as their users build them, and runs their own tests.

Sources come from Debian's source packages and from PyPI, into ~/.cache/headway/real; nothing of them is in
this repository. Exit code 77: a source cannot be had here. A test that fails must stand in known.txt with its
reason, and what stands there must fail; else this ends with 1. --times runs one representative run of each
beside MPICH and Open MPI (scripts/peers.sh), in turns; --mpi mpich runs the tests themselves on a peer, which
is the judge of a test that fails on ours. --write makes docs/real-codes.md of what these runs left."""

import argparse
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
# pylint: disable=wrong-import-position
import fetch  # noqa: E402
import page  # noqa: E402
from codes import ALL  # noqa: E402
from place import ROOT, Ends, Failed, Mpi, Place, contestants, leave_nothing_behind  # noqa: E402
from results import Known, Results  # noqa: E402

SKIPPED = 77
PEERS = ("mpich", "mpich-abi", "openmpi")
ROUNDS = 7  # of timed runs


def options_of(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    add = parser.add_argument
    add("--build", type=pathlib.Path, default=ROOT / "build", help="a build folder of ours")
    add("--code", nargs="+", choices=list(ALL), default=list(ALL), help="only these")
    add("--mpi", choices=Mpi.NAMES, default="headway", help="whose mpicc and mpiexec")
    add("--test", nargs="+", help="only the tests of these names")
    add("--jobs", type=int, default=1, help="of make")
    add("--build-only", action="store_true", help="run no tests")
    add("--if-built", action="store_true", help="build nothing: rather skip")
    add("--again", action="store_true", help="build what is built already, too")
    add("--times", action="store_true", help="rather than the tests, the timed runs on all that are built")
    add("--rounds", type=int, default=ROUNDS, help=f"of timed runs; without it {ROUNDS}")
    add("--write", action="store_true", help="write docs/real-codes.md")
    return parser.parse_args(words)


class Run:
    """One call of this script."""

    def __init__(self, options):
        self.options = options
        self.root = contestants.cache() / "real"
        self.root.mkdir(parents=True, exist_ok=True)
        self.results = Results(self.root / "results.json")
        self.known = Known.read(HERE / "known.txt")

    def place(self, name, mpi):
        return Place(self.root, name, mpi, self.options)

    def built(self, name, mpi):
        """The place of a code that has been built, with what it needs."""
        code, place = ALL[name], self.place(name, mpi)
        for needed in code.needs:
            self.built(needed, mpi)
        if place.is_ready() and not (self.options.again and name in self.options.code):
            return place
        if self.options.if_built:
            raise fetch.Missing(f"{name} is not built yet for {mpi.label}, and --if-built asks for no build")
        print(f"{code.label}: building in {place.folder}", flush=True)
        place.fresh()
        started = time.monotonic()
        code.fetch(place)
        fetched = time.monotonic()
        code.build(place)
        seconds = time.monotonic() - fetched
        print(f"{code.label} {code.version(place)}: fetched in {fetched - started:.0f} s, built in {seconds:.0f} s",
              flush=True)
        self.results.note(name, mpi.name, version=code.version(place), built_s=round(seconds))
        place.set_ready()
        return place

    def test(self, name, mpi):
        """Problems, as sentences."""
        code, place = ALL[name], self.built(name, mpi)
        if not place.tests_ready.exists():
            code.build_tests(place)
            place.tests_ready.touch()
        if self.options.build_only:
            return []
        total = Ends()
        tests = [test for test in code.tests(place) if not self.options.test or test.name in self.options.test]
        for test in tests:
            exit_code, said, seconds = place.execute(f"test-{test.name}", test.command, test.folder, test.limit,
                                                     test.environment)
            ends = test.read(said, exit_code)
            ends.failed = [f"{name}.{test.name}: {story}" for story in ends.failed]
            total.add(ends)
            self.results.note(name, mpi.name, {test.name: [ends.passed, ends.skipped, ends.failed]})
            print(f"{code.label}, {test.name}: {ends.passed} passed, {ends.skipped} skipped, {len(ends.failed)} failed "
                  f"({sum(self.known.of(story) is not None for story in ends.failed)} of them known) in {seconds:.0f} s",
                  flush=True)
            for story in ends.failed:
                if not self.known.of(story):
                    print(f"    {story}", flush=True)
        return self.known.problems(total, [f"{name}.{test.name}" for test in tests])

    def time(self, name, mpis):
        """A representative run on every MPI, in turns, so that a change of the machine meets all."""
        runs = {}
        for mpi in mpis:
            if mpi.name == "mpich-abi" and any(other.name == "mpich" for other in runs):
                continue  # what MPICH's own mpicc has built is the better comparison
            try:
                place = self.built(name, mpi)
            except (fetch.Missing, Failed) as error:
                print(f"{ALL[name].label} on {mpi.label}: no time: {error}", flush=True)
                continue
            timed = ALL[name].timed(place)
            if timed is None:
                return
            runs[mpi] = (place, timed, [])
        for _ in range(self.options.rounds):
            for place, timed, seconds in runs.values():
                code, said, _ = place.execute("timed", timed.command, timed.folder, timed.limit, timed.environment)
                if code != 0:
                    raise Failed(f"{name} on {place.mpi.label}: its timed run ended with {code}: {said[-500:]}")
                seconds.append(timed.seconds(said))
        for mpi, (_, timed, seconds) in runs.items():
            self.results.note(name, mpi.name, timed=timed.words, seconds=seconds)
            print(f"{ALL[name].label}, {timed.words}, {mpi.label}: median {statistics.median(seconds) * 1e3:.2f} ms "
                  f"({min(seconds) * 1e3:.2f} to {max(seconds) * 1e3:.2f})", flush=True)


def main():
    options = options_of(sys.argv[1:])
    options.build = options.build.resolve()
    leave_nothing_behind()
    run = Run(options)
    mpi = Mpi(options.mpi, options.build)
    if mpi.missing:
        print(f"skipped: {mpi.missing}")
        return SKIPPED
    problems, skipped, done = [], [], 0
    for name in options.code:
        try:
            if options.times:
                run.time(name, [mpi, *(peer for peer in (Mpi(peer, options.build) for peer in PEERS) if not peer.missing)])
            else:
                problems += run.test(name, mpi)
            done += 1
        except fetch.Missing as error:
            skipped.append(name)
            print(f"{name} skipped: {error}", flush=True)
        except Failed as error:
            problems.append(f"{name}: {error}")
    for problem in problems:
        print(f"PROBLEM: {problem}")
    if options.write:
        page.write(ROOT / "docs" / "real-codes.md", run.results, run.known)
    print(f"{done} passed, {len(problems)} failed, {len(skipped)} skipped")
    if problems:
        return 1
    return SKIPPED if skipped and not done else 0


if __name__ == "__main__":
    sys.exit(main())
