#!/usr/bin/env python3
"""Runs the many-process tests: program x ranks x transport x mode, as tests/matrix.toml lists them.

One line a case with its time; the whole output of what failed; exit code 1 if anything failed or
nothing ran. A job that hangs is asked where it stands, then killed."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from harness import job, library, many, table  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--build", type=pathlib.Path, default=HERE.parent / "build", help="build folder")
    add("--mpi", choices=("headway", "mpich"), default="headway", help="library to run on")
    add("--set", default="quick", help="quick, slow, big, or several with commas, or all")
    add("--group", action="append", help="only these groups")
    add("--program", action="append", help="only these programs")
    add("--ranks", type=int, action="append", help="only these numbers of ranks")
    add("--transport", action="append", help="only these transports")
    add("--mode", action="append", help="only these modes")
    add("--force", action="append", help="the cases of mode default in this mode instead")
    add("--only", help="only this case inside the programs")
    add("--seed", type=int, help="this seed instead of the table's")
    add("--runs", type=int, help="so many short runs of each program, number of ranks, transport and mode,\n"
        "ten in a job, with seeds from --seed or 1; for programs that know them: windows, overlaps")
    add("--repeat", type=int, default=1, help="run all so many times, with another seed each time")
    add("--timeout-factor", type=float, default=1.0, help="stretch the time limits")
    add("--as-uid", type=int, help="run the jobs as this user, for example 65534")
    add("--load", type=int, default=0, help="busy processes beside the tests")
    add("--budget", type=float, help="start no further case after so many seconds (says so)")
    add("--stop", action="store_true", help="stop at the first failure")
    add("--list", action="store_true", help="print the cases and run nothing")
    add("--list-groups", action="store_true", help="print 'group set' lines for CMake")
    return parser.parse_args()


def choose(cases: list[table.Case], args: argparse.Namespace) -> list[table.Case]:
    sets = table.Table.sets if args.set == "all" else args.set.split(",")
    wanted = [
        case for case in cases
        if case.set in sets
        and (not args.group or case.group in args.group)
        and (not args.program or case.program in args.program)
        and (not args.ranks or case.ranks in args.ranks)
        and (not args.transport or case.transport in args.transport)
        and (not args.mode or case.mode in args.mode)
    ]
    if args.mpi == "mpich":  # it has neither our transports nor our modes, and spins
        seen = {}
        for case in wanted:
            if case.ranks <= 4:
                seen.setdefault((case.program, case.arguments, case.ranks), case)
        wanted = list(seen.values())
    return wanted


class Judge:
    """Says whether a finished job was right, and compares outputs that must be the same."""

    def __init__(self) -> None:
        self.outputs: dict[tuple, tuple[str, str]] = {}

    def verdict(self, case: table.Case, result: job.Result) -> str:
        """Empty if the job was right."""
        if result.code is None:
            return f"no end after {result.seconds:.0f} s"
        if result.code != 0:
            return f"exit code {result.code}"
        lines = result.output.strip().splitlines()
        if not any(line.startswith("ok") for line in lines):
            return "no 'ok' from rank 0"
        if result.left_behind:
            return f"processes left behind: {', '.join(result.left_behind)}"
        if case.same_output:
            key = (case.program, case.arguments, case.ranks)
            hashes = "\n".join(line for line in lines if line.startswith("hash"))
            first, name = self.outputs.setdefault(key, (hashes, case.name))
            if first != hashes or not hashes:
                return f"other results than {name}: {hashes!r} and {first!r}"
        return ""


def arguments_of(case: table.Case, args, quirks: dict, repetition: int) -> list[str]:
    words = list(case.arguments)
    seeds = [word for word in words if word.startswith("--seed=")]
    if args.seed is not None or (repetition > 0 and seeds):
        words = [word for word in words if word not in seeds]
        base = args.seed if args.seed is not None else int(seeds[0].removeprefix("--seed="))
        words.append(f"--seed={base + 100000 * repetition}")
    if args.only:
        words.append(f"--only={args.only}")
    if case.program in quirks:
        words.append(f"--skip={','.join(quirks[case.program])}")
    return words


def lost_wakes(folder: pathlib.Path, ranks: int) -> str:
    """What the counters of the ranks tell about waits that only their safety net ended."""
    files = sorted(folder.iterdir())
    if len(files) != ranks:
        return f"{len(files)} of {ranks} ranks wrote their counters"
    late = {file.stem: json.loads(file.read_text())["late_wakes"] for file in files}
    told = ", ".join(f"{count} of rank {rank}" for rank, count in late.items() if count)
    return f"waits ended by their time-out alone: {told}" if told else ""


RELEASED = ("early_release", "release_waits", "release_after", "release_when")


def unreleased(folder: pathlib.Path, case: table.Case, args) -> str:
    """A run with early release in which nothing was released has tested nothing."""
    settings = dict(case.environment)
    mode = settings.get("HEADWAY_EARLY_RELEASE")
    unmatched = mode in ("always", "auto")
    wanted = unmatched or mode == "matched"
    name = "foreseen" if unmatched else "released"
    count = sum(json.loads(file.read_text())[name] for file in folder.iterdir())
    return f"no receive was {name}" if wanted and args.as_uid is None and count == 0 else ""


def run_case(case: table.Case, args, mpi, quirks: dict,
             repetition: int) -> tuple[job.Result, list[str], str]:
    """The job's result, its command, and what its counters tell against it."""
    command = mpi.command(case.ranks, case.program, arguments_of(case, args, quirks, repetition))
    factor = args.timeout_factor * (1 + args.load)
    with tempfile.TemporaryDirectory(prefix="headway-counters-") as folder:
        os.chmod(folder, 0o777)  # the job may run as another user
        environment = {"HEADWAY_COUNTERS": f"{folder}/%r.json", **dict(case.environment)}
        result = job.run(command, {**mpi.environment(), **environment}, case.timeout * factor,
                         case.program, args.as_uid)
        wrong = ""
        if mpi.name == "headway" and result.code == 0:
            wrong = lost_wakes(pathlib.Path(folder), case.ranks)
            if not wrong and case.program in RELEASED and os.geteuid() == 0 and not args.only:
                wrong = unreleased(pathlib.Path(folder), case, args)
    return result, command, wrong


def report_failure(case: table.Case, command: list[str], result: job.Result) -> None:
    settings = " ".join(f"{key}={value}" for key, value in case.environment)
    print(f"    command: {settings} {' '.join(command)}")
    for line in result.output.splitlines():
        print(f"    | {line}")
    for line in result.story.splitlines():
        print(f"    > {line}")


def main() -> int:
    args = parse()
    matrix = table.Table(HERE / "matrix.toml")
    if args.list_groups:
        for group, sets in matrix.groups().items():
            for name in sorted(sets):
                print(group, name)
        return 0
    cases = choose(matrix.cases(), args)
    if args.force:
        cases = matrix.forced(cases, args.force)
    if args.runs:
        cases = many.spread(cases, args.runs, 1 if args.seed is None else args.seed)
        args.seed = None  # each job has its own
    if args.list:
        for case in cases:
            print(f"{case.set:6} {case.group:12} {case.name}")
        return 0
    mpi = library.Mpich() if args.mpi == "mpich" else library.Headway(args.build)
    if args.as_uid is not None:
        if os.geteuid() != 0 and args.as_uid != os.geteuid():
            print(f"skipped: only root can run the jobs as user {args.as_uid}")
            return 77
        mpi = mpi.readable_by_all()
    quirks = matrix.quirks.get(mpi.name, {})
    judge, tally = Judge(), many.Tally()
    failed: list[str] = []
    ran = left_out = 0
    start = time.monotonic()
    with job.Load(args.load) if args.load else contextlib.nullcontext():
        for repetition in range(args.repeat):
            for case in cases:
                if quirks.get(case.program) == ["*"]:
                    continue
                if args.budget and time.monotonic() - start > args.budget:
                    left_out += 1
                    continue
                result, command, wrong = run_case(case, args, mpi, quirks, repetition)
                problem = judge.verdict(case, result) or wrong
                ran += 1
                tally.add(case, not problem)
                print(f"{'FAIL' if problem else 'ok  '} {result.seconds:7.2f} s  {case.name}"
                      f"{'  <- ' + problem if problem else ''}", flush=True)
                if problem:
                    failed.append(case.name)
                    report_failure(case, command, result)
                    if args.stop:
                        break
            if args.stop and failed:
                break
    seconds = time.monotonic() - start
    if args.runs:
        print("\n".join(tally.lines()))
    print(f"{ran} cases in {seconds:.0f} s on {mpi.name}, {len(failed)} failed"
          + (f", {left_out} left out (--budget)" if left_out else ""))
    for name in failed:
        print(f"  failed: {name}")
    if ran == 0:
        print("nothing ran: no case fits the choice")
    return 1 if failed or ran == 0 else 0


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
