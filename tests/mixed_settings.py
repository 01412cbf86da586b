#!/usr/bin/env python3
"""Ranks of one job whose settings differ: each option that changes how messages or windows move has, at one rank alone,
another value than at the others. No option may be a promise about the other side: results stay right, and the job ends.

    mixed_settings.py --build build --seed N    those of `make test`: a few drawn by the seed
    mixed_settings.py --build build --all       each of them, at the first rank and at the last one, in shared memory and by TCP"""

from __future__ import annotations

import argparse
import pathlib
import random
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from harness import job, library  # noqa: E402

OPTIONS = pathlib.Path(__file__).resolve().parent.parent / "docs" / "options.md"
RANKS, LIMIT, DRAWN = 3, 60, 8
PROGRAMS = "p2p_random", "rma_random", "coll_random"
OTHER = {
    "PROGRESS": ["off"], "SPIN": ["0"], "YIELD": ["0"], "PATROL": ["0"], "SHM": ["off"], "ONE_COPY": ["off"],
    "EAGER_MAX_SHM": ["0", "100"], "EAGER_MAX_TCP": ["0", "100"], "UNEXPECTED_MAX": ["64K"], "SEND_AHEAD": ["0"],
    "SPARE": ["off", "always"], "WINDOWS_DIRECT": ["off", "on"], "EARLY_RELEASE": ["off", "matched", "always"],
    "RELEASE_THRESHOLD": ["0"], "RELEASE_BATCH": ["1"], "GUARD": ["none", "missing", "minor", "trap"], "PREFETCH": ["off"],
    "PREFETCH_WRITES": ["userfaultfd", "signal"], "PREFETCH_THRESHOLD": ["64K"], "PREFETCH_MAX": ["64K"],
    "PREFETCH_UNEXPECTED": ["always", "off"], "MATCHER": ["list", "source", "pnp", "col+list", "list+pnp", "col+pnp"],
    "MATCHER_KC": ["0"], "MATCHER_KP": ["0"], "MATCHER_THRESHOLD": ["0"],
}  # fmt: skip
NOT = {  # why an option is not among them
    "TCP_INTERFACE": "a place, not a way", "CONNECT_TIMEOUT": "an error's", "HOST_TIMEOUT": "an error's",
    "COLL": "algorithms are chosen by all ranks together: the standard has no say in it, and they must agree",
}  # fmt: skip
CHAPTERS = "progress", "transports", "protocols", "early release", "prefetching", "matching", "collectives"


def options() -> set[str]:
    """Those of the chapters that change how data move, as the documentation has them from the library's own table."""
    chapter, found = "", set()
    for line in OPTIONS.read_text().splitlines():
        if title := re.match(r"\| \*\*(.+)\*\* \|", line):
            chapter = title[1]
        elif (name := re.match(r"\| `([A-Z_]+)` \|", line)) and chapter in CHAPTERS:
            found.add(name[1])
    return found


def run(mpi: library.Headway, program: str, setting: tuple[str, str], who: int, tcp: bool, seed: int) -> job.Result:
    name, value = setting
    command = [str(mpi.mpiexec)]
    for rank in range(RANKS):
        differs = ["env", f"HEADWAY_{name}={value}"] if rank == who else []
        command += [":"] * (rank > 0) + ["-n", "1", *differs, str(mpi.program(program)), f"--seed={seed}"]
    environment = {**mpi.environment(), "CHECK_ERRORS": "fatal"}
    if tcp:
        environment["HEADWAY_SHM"] = "off"
    return job.run(command, environment, LIMIT, program)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30), help="of what is drawn, and of the programs")
    parser.add_argument("--all", action="store_true", help="each option at two ranks, in both ways")
    given = parser.parse_args()
    known = OTHER.keys() | NOT.keys()
    if known != options():
        print(f"options without a value here, or that are gone: {', '.join(sorted(known ^ options()))}")
        return 1
    every = [
        (program, (name, value), who, tcp)
        for name, values in OTHER.items() for value in values
        for program in PROGRAMS for who in (0, RANKS - 1) for tcp in (False, True)
    ]  # fmt: skip
    draw = random.Random(given.seed)
    cases = every if given.all else draw.sample(every, DRAWN)
    print(f"seed {given.seed}, {len(cases)} jobs", flush=True)
    mpi, failed = library.Headway(given.build), 0
    for program, setting, who, tcp in cases:
        result = run(mpi, program, setting, who, tcp, given.seed)
        right = result.code == 0 and any(line.startswith("ok") for line in result.output.splitlines())
        about = f"{program}, {'='.join(setting)} at rank {who}, {'TCP' if tcp else 'shared memory'}, {result.seconds:.1f} s"
        print(f"{'ok    ' if right else 'FAILED'}  {about}", flush=True)
        if not right or result.left_behind:
            failed += 1
            print(f"exit code {result.code}\n{result.output[-3000:]}{result.story}{' '.join(result.left_behind)}", flush=True)
    print(f"{failed} of {len(cases)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
