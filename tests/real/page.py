"""docs/real-codes.md, made of what runs have left."""

import statistics

from codes import ALL

HEAD = """\
<!-- Made by tests/real/run.py --write. Do not edit. -->
# Real codes

Programs and libraries that others have written, fetched from Debian's source packages and from PyPI, built with
our `mpicc` and `mpicxx` as their users build them, without a change to their sources, and tested by their own
tests under our `mpiexec`:

    make test-all                                  # among all others; or, after a build,
    ctest --test-dir build -R '^real\\.'            # these alone
    tests/real/run.py --code fftw hypre            # some of them
    tests/real/run.py --times --write              # the times, and this page

A source is kept in `~/.cache/headway/real`, where it is built, too; where it cannot be had, its test is skipped.
*Skipped* is what a code leaves out by itself. A failure has to be listed with its reason
(`tests/real/known.txt`), and what is listed has to fail.

| code | how it is built | builds | its own tests: passed / skipped / failed (which were run) |
|---|---|---|---|
"""
ABSENT = """
SuperLU_DIST is not among them: Debian's archive lists its source package, and answers that it does not have it.
"""
TIMES = """
## Beside MPICH and Open MPI

One run of each, built with each MPI's own compiler scripts on the same machine: the median of {rounds} runs taken in
turns, and their range. Times are those that the program reports of its own work, without start and end. Where it
says *ABI*, MPICH ran what our `mpicc` had built, over its own library of the standard ABI; `-` is not measured.

| code | run | Headway | MPICH | Open MPI |
|---|---|---|---|---|
"""


def tests_of(result):
    tests = result.get("tests", {}).values()
    if not tests:
        return "not run"
    passed, skipped, failed = zip(*tests)
    names = ", ".join(f"`{name}`" for name in result["tests"])
    return f"{sum(passed)} / {sum(skipped)} / {sum(map(len, failed))} ({names})"


def time_of(result):
    seconds = result.get("seconds")
    if not seconds:
        return "-"
    return f"{milliseconds(statistics.median(seconds))} ({milliseconds(min(seconds))} to {milliseconds(max(seconds))})"


def milliseconds(seconds):
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.2f} s"


def text(results, known):
    out, table = [HEAD], results.table
    for name, code in ALL.items():
        ours = table.get(name, {}).get("headway", {})
        if ours:
            out.append(f"| {code.label} {ours['version']} | {code.built} | yes | {tests_of(ours)} |\n")
    if known.reasons:
        out.append("\nKnown failures:\n\n")
        out += [f"* `{start}`: {reason}\n" for start, reason in known.reasons.items()]
    out.append(ABSENT)
    rows, rounds = [], set()
    for name, code in ALL.items():
        of_mpi = table.get(name, {})
        timed = next((result["timed"] for result in of_mpi.values() if "timed" in result), None)
        if timed:
            mpich = time_of(of_mpi.get("mpich", {}))
            if mpich == "-" and "seconds" in of_mpi.get("mpich-abi", {}):
                mpich = "ABI: " + time_of(of_mpi["mpich-abi"])
            times = " | ".join((time_of(of_mpi.get("headway", {})), mpich, time_of(of_mpi.get("openmpi", {}))))
            rows.append(f"| {code.label} | {timed} | {times} |\n")
            rounds.update(len(result["seconds"]) for result in of_mpi.values() if "seconds" in result)
    if rows:
        out.append(TIMES.format(rounds=" or ".join(map(str, sorted(rounds)))))
        out += rows
    return "".join(out)


def write(path, results, known):
    path.write_text(text(results, known))
