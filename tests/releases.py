#!/usr/bin/env python3
"""Early release from outside: what it learns and counts, and systems that refuse what it needs. There
receives are plain, nothing is lost, and one line says why."""

from __future__ import annotations

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from harness.cases import Bench, Cases, Skip, expect  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
NOBODY = 65534
# Releases before the match take no bandwidth into account: what is learned does not depend on it.
TCP = {"SHM": "off", "RELEASE_THRESHOLD": "100us"}


class TcpBench(Bench):
    """Jobs of two ranks over TCP."""

    def run(self, program: str, words: list[str], **more) -> dict:
        """The counters of rank 1, which receives."""
        super().run(program, words, **{**TCP, **more})
        return self.counters[1]


def needs_release(bench: Bench) -> None:
    counters = bench.run("release_sites", ["2", "compute"], EARLY_RELEASE="always")
    if counters["released"] == 0:
        raise Skip("nothing can be released on this machine")


CASES = Cases()
case = CASES.case
# A message thread that gets no core for milliseconds hears of a touch when it is over.
learning = CASES.timed


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
    expect(1 <= got["released"] <= 8, f"{got['released']} of 60 receives were released")
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
        expect(38 <= got["released"] <= 48, f"{got['released']} of 40 + 3 were released")
        expect(got["release_given_up"] == 1, f"{got['release_given_up']} given up")


def tool(bench) -> pathlib.Path:
    return bench.mpi.build / "tests" / "release" / "librelease_tool.so"


def behind_tool(bench, program: str, around: list[str] | None = None) -> None:
    """Two places behind one wrapper are two."""
    needs_release(bench)
    got = bench.run(program, ["40", "read", "compute"], EARLY_RELEASE="auto", around_rank=around)
    expect(38 <= got["released"] <= 48, f"{got['released']} of 40 + 3 were released")


@learning("behind a PMPI tool that is preloaded")
def preloaded_tool(bench):
    behind_tool(bench, "release_sites", ["env", f"LD_PRELOAD={tool(bench)}"])


@learning("behind a PMPI tool that is linked before the library")
def linked_tool(bench):
    behind_tool(bench, "release_sites_linked")


@learning("behind a PMPI tool that is part of the program")
def inside_tool(bench):
    behind_tool(bench, "release_sites_inside")


@learning("a tool that hands the place of the call on is believed; this one tells of one place only")
def believed_tool(bench):
    needs_release(bench)
    got = bench.run("release_sites", ["40", "read", "compute"], EARLY_RELEASE="auto",
                    around_rank=["env", f"LD_PRELOAD={tool(bench)}", "TOOL_HANDS_ON=1"])
    expect(got["released"] <= 20, f"two places are one, and {got['released']} were released")


@learning("a new buffer for each message is no way around it")
def anew(bench):
    needs_release(bench)
    got = bench.run("release_sites", ["100", "anew"], EARLY_RELEASE="auto")
    expect(got["released"] <= 15, f"{got['released']} of 100 receives were released")


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
                uid=NOBODY, settings={"GUARD": "trap"})
    stays_plain(bench, "userfaultfd", around_rank=without(bench, "userfaultfd"), uid=NOBODY)
    stays_plain(bench, "userfaultfd", around_rank=without(bench, "userfaultfd"), uid=NOBODY,
                settings={"GUARD": "missing"})


@case("userfaultfd refused: signals and memory of the program stay its own")
def own_memory(bench):
    if os.geteuid() != 0:
        raise Skip("only root can become a user who has no other way")
    for shm in ("off", "on"):
        bench.run("release_memory", [], around_rank=without(bench, "container"), uid=NOBODY, SHM=shm,
                  EARLY_RELEASE="always", RELEASE_THRESHOLD="0")


@case("memfd refused")
def no_memfd(bench):
    for guard in ("minor", "trap"):
        stays_plain(bench, "memfd", around_rank=without(bench, "memfd_create"),
                    settings={"GUARD": guard})


@case("the dispatch of system calls refused")
def no_dispatch(bench):
    stays_plain(bench, "system calls", around_rank=without(bench, "dispatch"))


@case("userfaultfd refused, and prefetching asked for")
def no_versions(bench):
    if os.geteuid() != 0:
        raise Skip("only root can become a user who has no other way")
    bench.run("prefetch", ["--seed=5"], around_rank=without(bench, "userfaultfd"), uid=NOBODY,
              EARLY_RELEASE="off", PREFETCH="auto")
    expect(sum(c["presend_bytes"] for c in bench.counters) == 0, "something travelled before its send")
    expect(bench.lines("no message travels before its send") == 1, "no single line tells of it")
    expect(bench.lines("userfaultfd") == 1, "the line does not say why")


@case("userfaultfd refused, and writes followed by signals instead")
def signals(bench):
    if os.geteuid() != 0:
        raise Skip("only root can become a user who has no other way")
    bench.run("prefetch", ["--seed=5"], around_rank=without(bench, "userfaultfd"), uid=NOBODY,
              EARLY_RELEASE="off", PREFETCH="auto", PREFETCH_WRITES="signal")
    expect(sum(c["presend_bytes"] for c in bench.counters) > 0, "nothing travelled before its send")
    expect(bench.lines("headway:") == 0, "a line nobody asked for")


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
        if bench.lines("no receive is released early") == 1:
            expect(bench.lines("lock") == 0, "a limit that nothing needs is named")
        else:
            expect(sum(c["released"] for c in bench.counters) > 0, f"{guard} released nothing")
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
        expect(got["released"] <= 8, "not the default, which learns")


if __name__ == "__main__":
    sys.exit(CASES.main(__doc__, HERE.parent / "build", TcpBench))
