#!/usr/bin/env python3
"""Early release from outside: what it learns and counts, and systems that refuse what it needs. There
receives are plain, nothing is lost, and one line says why."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from harness import job, library  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
NOBODY = 65534
# Releases before the match take no bandwidth into account: what is learned does not depend on it.
TCP = {"HEADWAY_SHM": "off", "HEADWAY_RELEASE_THRESHOLD": "100us", "CHECK_ERRORS": "fatal"}
GIVEN_UP = ("touched_at_once", "next_call", "traps", "closing")


class Skip(Exception):
    """The case cannot run here; the text says why."""


class Wrong(Exception):
    """The case found something wrong."""


def expect(right: bool, text: str) -> None:
    if not right:
        raise Wrong(text)


class Bench:
    """Starts jobs of two ranks; keeps what they said and counted."""

    def __init__(self, mpi: library.Headway):
        self.mpi = mpi
        self.command: list[str] = []
        self.output = ""
        self.counters: list[dict] = []

    def run(self, program: str, words: list[str], around_rank: list[str] | None = None,
            uid: int | None = None, **settings: str) -> dict:
        """The counters of rank 1, which receives."""
        mpi = self.mpi.readable_by_all() if uid is not None else self.mpi
        self.command = [str(mpi.mpiexec), "-n", "2", *(around_rank or []),
                        str(mpi.program(program)), *words]
        with tempfile.TemporaryDirectory(prefix="headway-releases-") as folder:
            os.chmod(folder, 0o777)
            environment = {**mpi.environment(), **TCP, "HEADWAY_COUNTERS": f"{folder}/%r.json",
                           **{f"HEADWAY_{name}": value for name, value in settings.items()}}
            result = job.run(self.command, environment, 60, program, uid)
            self.output = result.output + result.story
            expect(result.code == 0, f"exit code {result.code}")
            expect(any(line.startswith("ok") for line in result.output.splitlines()), "no 'ok'")
            self.counters = [json.loads(pathlib.Path(folder, f"{rank}.json").read_text())
                             for rank in range(2)]
        return self.counters[1]

    def lines(self, text: str) -> int:
        return sum(text in line for line in self.output.splitlines())


def needs_release(bench: Bench) -> None:
    counters = bench.run("release_sites", ["2", "compute"], EARLY_RELEASE="always")
    if counters["released"] == 0:
        raise Skip("nothing can be released on this machine")


def at_most(got: dict, gaining: int, most: int) -> None:
    """Of receives that are read at once no more than `most` were released, beside `gaining` that
    gain. But where the data is faster than the program, which it is on some machines at some times,
    nobody waits for a page, and there is no loss to learn from."""
    reads = got["released"] - gaining
    if reads > most and got["page_wait_ns"] < reads * 100_000:
        raise Skip(f"{reads} were released, and nobody had to wait for their data")
    expect(reads <= most, f"{got['released']} receives were released")


CASES: list[tuple[str, object]] = []


def case(name: str):
    def add(function):
        CASES.append((name, function))
        return function
    return add


def learning(name: str):
    """A case that is about times: a message thread that gets no core for milliseconds hears of a
    touch when it is over. One of four times it must be right; the pauses outlast a busy moment of
    a machine that others use, too."""
    def add(function):
        def patient(bench):
            for pause in (1, 5, 20, None):
                try:
                    return function(bench)
                except Wrong as found:
                    if pause is None:
                        raise
                    print(f"     again in {pause} s  {name}  <- {found}", flush=True)
                    time.sleep(pause)
        CASES.append((name, patient))
        return function
    return add


# ----------------------------------------------------------------------------- what it learns


@learning("where the program computes, every receive is released")
def computes(bench):
    needs_release(bench)
    got = bench.run("release_sites", ["40", "compute", "wait_compute"], EARLY_RELEASE="auto")
    expect(got["released"] >= 76, f"{got['released']} of 80 receives were released")
    expect(got["release_given_up"] == 0, f"{got['release_given_up']} buffers given up")
    expect(got["hidden_ns"] > 80 * 3_000_000, f"only {got['hidden_ns']} ns hidden")


@learning("where it reads at once, three receives are, and the reason is told")
def reads(bench):
    needs_release(bench)
    got = bench.run("release_sites", ["60", "read"], EARLY_RELEASE="auto", VERBOSE="1")
    expect(got["released"] >= 1, "nothing was released")
    at_most(got, 0, 25)
    expect(got["release_given_up_touched_at_once"] >= 1, "the reason is not counted")
    expect(got["page_wait_ns"] > 3_000_000, "nobody waited for a page")
    expect(bench.lines("rank 1: early release: ") == 1, "no summary")
    expect(bench.lines("1 touched at once") == 1, "the summary does not tell the reason")
    all_of_it = bench.run("release_sites", ["60", "read"], EARLY_RELEASE="always")
    expect(all_of_it["released"] >= 57, "`always` does not learn")


@learning("the same buffer at another place is judged anew, and the other way round")
def sites(bench):
    needs_release(bench)
    for first, second in (("read", "compute"), ("wait_read", "wait_compute")):
        got = bench.run("release_sites", ["40", first, second], EARLY_RELEASE="auto")
        expect(got["released"] >= 38, f"{got['released']} of 40 + 3 were released")
        at_most(got, 40, 20)
        expect(got["release_given_up"] == 1, f"{got['release_given_up']} given up")


@learning("a new buffer for each message is no way around it")
def anew(bench):
    needs_release(bench)
    got = bench.run("release_sites", ["100", "anew"], EARLY_RELEASE="auto")
    at_most(got, 0, 40)


@learning("a place that makes many system calls settles at the first")
def traps(bench):
    needs_release(bench)
    got = bench.run("release_sites", ["40", "ask"], EARLY_RELEASE="auto")
    expect(got["release_settled_sites"] == 1, "no site settles")
    expect(got["traps"] < 1000, f"{got['traps']} calls were trapped")
    all_of_it = bench.run("release_sites", ["40", "ask"], EARLY_RELEASE="always")
    expect(all_of_it["traps"] > 2000, f"only {all_of_it['traps']} without learning")


@learning("the batch is what the option says")
def batch(bench):
    needs_release(bench)
    for pages in ("1", "256"):
        got = bench.run("early_release", ["--seed=3", "--only=pairs"], EARLY_RELEASE="matched",
                        RELEASE_THRESHOLD="0", RELEASE_BATCH=pages)
        expect(got["released"] > 0, "nothing was released")


@learning("data with gaps is released, too, if it is made of few large runs")
def gaps(bench):
    needs_release(bench)
    got = bench.run("early_release", ["--seed=8", "--only=gaps"], EARLY_RELEASE="matched",
                    RELEASE_THRESHOLD="0")
    expect(got["released"] >= 5, f"{got['released']} receives were released")


# --------------------------------------------------------------------------------- bad input


def stays_plain(bench, why: str, **how) -> None:
    """Everything arrives, nothing is released, and one line says why."""
    settings = {"EARLY_RELEASE": "auto", "RELEASE_THRESHOLD": "0", **how.pop("settings", {})}
    bench.run("early_release", ["--seed=5"], **how, **settings)
    expect(sum(c["released"] for c in bench.counters) == 0, "receives were released")
    expect(bench.lines("no receive is released early") == 1,
           f"{bench.lines('no receive is released early')} lines tell of it")
    expect(bench.lines(why) >= 1, f"the line does not say '{why}'")


def without(bench, *calls: str) -> list[str]:
    return [str(bench.mpi.program("without")), *calls, "--"]


@case("userfaultfd refused")
def no_userfaultfd(bench):
    if os.geteuid() != 0:
        raise Skip("only root can become a user who has no other way")
    stays_plain(bench, "memfd", around_rank=without(bench, "userfaultfd", "memfd_create"),
                uid=NOBODY)
    stays_plain(bench, "userfaultfd", around_rank=without(bench, "userfaultfd"), uid=NOBODY,
                settings={"GUARD": "missing"})


@case("memfd refused")
def no_memfd(bench):
    for guard in ("minor", "trap"):
        stays_plain(bench, "memfd", around_rank=without(bench, "memfd_create"),
                    settings={"GUARD": guard})


@case("the dispatch of system calls refused")
def no_dispatch(bench):
    stays_plain(bench, "system calls", around_rank=without(bench, "dispatch"))


@case("who asked for nothing is told nothing")
def silence(bench):
    bench.run("early_release", ["--seed=5"], around_rank=without(bench, "dispatch"))
    expect(sum(c["released"] for c in bench.counters) == 0, "receives were released")
    expect(bench.lines("headway:") == 0, "a line nobody asked for")


@case("no guard wanted")
def no_guard(bench):
    stays_plain(bench, "", settings={"GUARD": "none"})


@learning("an ordinary user gets it all the same")
def user(bench):
    if os.geteuid() != 0:
        raise Skip("only root can become somebody else")
    needs_release(bench)
    got = bench.run("release_sites", ["10", "compute"], uid=NOBODY, EARLY_RELEASE="always")
    expect(got["released"] >= 5, f"{got['released']} of 10 were released")


@case("no memory may be locked")
def no_locked_memory(bench):
    limit = ["prlimit", "--memlock=0:0"]
    uid = NOBODY if os.geteuid() == 0 else None
    for guard in ("auto", "minor", "trap"):
        bench.run("early_release", ["--seed=6"], around_rank=limit, uid=uid, EARLY_RELEASE="always",
                  RELEASE_THRESHOLD="0", GUARD=guard)
        expect(bench.lines("headway:") <= 1, "more than one line")


@learning("all mappings taken: refused, counted, nothing lost")
def no_mappings(bench):
    needs_release(bench)
    got = bench.run("release_sites", ["10", "compute", "full", "compute", "read"], EARLY_RELEASE="always")
    expect(got["close_refused_system"] > 0, "nothing was refused")
    expect(got["close_refused"] >= got["close_refused_system"], "the sum is wrong")
    expect(bench.lines("headway:") <= 1, "more than one line")


@learning("options out of range: one line, and the default stays")
def options(bench):
    bad = {"EARLY_RELEASE": "sometimes", "RELEASE_BATCH": "257", "RELEASE_THRESHOLD": "11s",
           "GUARD": "fence"}
    for name, value in bad.items():
        got = bench.run("release_sites", ["30", "read"], **{name: value})
        expect(bench.lines(f"HEADWAY_{name}={value}") == 1, f"no single line about {name}")
        at_most(got, 0, 20)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build")
    parser.add_argument("--only", help="only cases whose name holds this text")
    args = parser.parse_args()
    failed, ran = [], 0
    for name, function in CASES:
        if args.only and args.only not in name:
            continue
        bench = Bench(library.Headway(args.build))
        start = time.monotonic()
        try:
            function(bench)
            problem = ""
        except Skip as reason:
            print(f"skip             {name}: {reason}", flush=True)
            continue
        except Wrong as found:
            problem = str(found)
        ran += 1
        print(f"{'FAIL' if problem else 'ok  '} {time.monotonic() - start:7.2f} s  {name}"
              f"{'  <- ' + problem if problem else ''}", flush=True)
        if problem:
            failed.append(name)
            print(f"    command: {' '.join(bench.command)}")
            for line in bench.output.splitlines():
                print(f"    | {line}")
    print(f"{ran} cases, {len(failed)} failed")
    return 77 if ran == 0 else 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
