"""Reads how the tests of a real code ended from what they printed: text and exit code -> Ends."""

import re

from place import Ends


def fftw(said, code):
    """check.pl prints a line with three errors for every transform that it has verified, and stops at the
    first that is wrong."""
    ends = Ends(passed=len(re.findall(r"^[a-z]+[\[\d]\S* \S+e[+-]\d+ \S+ \S+$", said, re.MULTILINE)))
    rounds = len(re.findall(r"MPI FFTW (?:threaded )?transforms passed \d+ tests", said))
    if code != 0 or rounds != 5:
        ends.failed.append(f"{rounds} of 5 rounds passed: {last_line(said)}")
    return ends


def fftw_seconds(said):
    """The time of one transform."""
    found = re.search(r"time: ([\d.]+) (s|ms|us),", said)
    return float(found[1]) * {"s": 1, "ms": 1e-3, "us": 1e-6}[found[2]]


def hypre(said, code):
    """checktest.sh has a line for each test; it ends with 0, whatever they say."""
    ends = Ends(passed=len(re.findall(r"^ +OK : TEST", said, re.MULTILINE)),
                failed=re.findall(r"^FAILED : (\S+\.err)", said, re.MULTILINE))
    return complete(ends, code, said)


def hypre_check(folder):
    """`make check` runs three drivers, and says nothing of how they ended but in their files of errors."""
    def read(said, code):
        ends = Ends()
        for name in ("ij", "struct", "sstruct"):
            file = folder / f"{name}.err"
            errors = file.read_text(errors="replace").strip() if file.exists() else "did not run"
            if errors:
                ends.failed.append(f"{name}: {errors[-200:]}")
            else:
                ends.passed += 1
        found = len(re.findall(r"^(?:BoomerAMG Iterations|Iterations) = \d+", said, re.MULTILINE))
        if found < 3:
            ends.failed.append(f"{found} of 3 drivers printed their iterations")
        return complete(ends, code, said)
    return read


def hypre_seconds(said):
    """The setup and the solution: the wall clocks of both phases."""
    found = re.findall(r"wall clock time = ([\d.]+) seconds", said)
    return sum(map(float, found[-2:]))


def printed_seconds(said):
    """Of a run that says them itself."""
    return float(re.search(r"^seconds ([\d.e-]+)$", said, re.MULTILINE)[1])


def unittest(said, code):
    """Python's unittest, once a rank: the first of the tallies, and the failures of all."""
    tally = re.search(r"^Ran (\d+) tests? in", said, re.MULTILINE)
    if not tally:
        return complete(Ends(), code or 1, said)
    failed = sorted(set(re.findall(r"^(?:ERROR|FAIL): (\S+(?: \(\S+\))?)", said, re.MULTILINE)))
    skipped = re.search(r"skipped=(\d+)", said)
    skipped = int(skipped[1]) if skipped else 0
    return complete(Ends(int(tally[1]) - skipped - len(failed), skipped, failed), code, said)


def pytest(said, code):
    """pytest, once a rank: the first rank that ended, and the failures of all."""
    tally = re.search(r"^=* ?(?=.*(?:passed|skipped|failed))(.*) in [\d.]+s", said, re.MULTILINE)
    count = {word: int(number) for number, word in re.findall(r"(\d+) (passed|skipped|xfailed)", tally[1])} if tally else {}
    failed = sorted(set(re.findall(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)))
    return complete(Ends(count.get("passed", 0) + count.get("xfailed", 0), count.get("skipped", 0), failed), code, said)


def boost(said, code):
    """b2 prints a line for each test that passed or failed."""
    ends = Ends(passed=len(re.findall(r"^\*\*passed\*\* ", said, re.MULTILINE)),
                failed=re.findall(r"^\.\.\.failed \S+ \S*?([\w-]+)\.test/", said, re.MULTILINE))
    return complete(ends, code, said)


def boost_seconds(said):
    """A table: five kinds of reduce with the seconds of each."""
    return sum(float(number) for number in re.findall(r"^\S[^\t]*\t+([\d.e-]+)$", said, re.MULTILINE))


def petsc_check(said, code):
    """`make check` ends with 0, whatever its examples do."""
    ends = Ends(passed=len(re.findall(r"run successfully with \d+ MPI process", said)))
    if re.search(r"Possible error running|Error detected|Error [12]$", said, re.MULTILINE):
        ends.failed.append(last_line(said))
    return complete(ends, code, said)


def petsc_seconds(said):
    """The linear solution, as -log_view reports it: the slowest rank's seconds."""
    return float(re.search(r"^KSPSolve +\d+ +[\d.]+ +(\S+)", said, re.MULTILINE)[1])


def tap(said, code):
    """PETSc's harness of tests: lines `ok` or `not ok`, one for a test's end and, where it has an output to compare
    with, one for that (diff-...)."""
    skipped = len(re.findall(r"^ *ok .*# SKIP", said, re.MULTILINE))
    passed = set(re.findall(r"^ *ok (?!.*# SKIP)(?!diff-)(\S+)", said, re.MULTILINE))
    failed = sorted({name.removeprefix("diff-") for name in re.findall(r"^ *not ok (\S+)", said, re.MULTILINE)})
    return complete(Ends(len(passed - set(failed)), skipped, failed), code, said)


def complete(ends, code, said):
    """A run that ended badly has a failure, and one that tested nothing has, too."""
    if code != 0 and not ends.failed:
        ends.failed.append(f"ended with code {code}{' after its time was over' * (code == 124)}: {last_line(said)}")
    if ends.passed == 0 and not ends.failed:
        ends.failed.append(f"no test was run: {last_line(said)}")
    return ends


def last_line(said):
    return (said.strip().splitlines() or [""])[-1][:200]
