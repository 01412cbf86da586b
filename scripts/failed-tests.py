#!/usr/bin/env python3
"""What the tests that failed in ctest's last run said, for a log of which somebody keeps little: of each the lines that
tell a failure, and its last ones.

usage: failed-tests.py build/Testing/Temporary
       failed-tests.py --self-test
"""

import contextlib
import io
import pathlib
import re
import sys
import tempfile

TELLS = re.compile(r"^(again, by itself: )?FAIL|^  failed: |^\[  FAILED  \]|: Failure$|FAILED|Error\b|  <- |Sanitizer")
TOLD, LAST = 12, 15  # lines of each test
WIDE = 200
TESTS = 12


def shortened(lines: list[str]) -> list[str]:
    told = [line for line in lines[:-LAST] if TELLS.search(line)]
    more = [f"... and {len(told) - TOLD} such lines more"] if len(told) > TOLD else []
    gap = ["..."] if len(lines) > LAST else []
    return [line[:WIDE] for line in [*told[:TOLD], *more, *gap, *lines[-LAST:]]]


def self_test() -> int:
    """On a log as ctest writes it: 14 failed tests, a name with blanks, and one of which nothing is said."""
    names = ["unit.Each/Pairs.Meet/3  # GetParam() = (1, 2)", *(f"t{i}" for i in range(2, 14)), "unsaid"]
    said = [f"FAIL case {i}" if i % 2 == 0 else f"line {i}" for i in range(60)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if told_of(folder):
            return 1
        (folder / "LastTestsFailed.log").write_text("".join(f"{i}:{one}\n" for i, one in enumerate(names)))
        parts = (f"{i}/99 Testing: {one}\nCommand: x\nOutput:\n----\n" + "".join(f"{line}\n" for line in said)
                 + "<end of output>\nTest time = 1\n" for i, one in enumerate(["passed", *names[:-1]]))
        (folder / "LastTest.log").write_text("".join(parts))
        told = told_of(folder).splitlines()
        (folder / "LastTestsFailed.log").write_text("1:unsaid\n")
        unsaid = told_of(folder)
    wanted = [f"-- {names[0]}", *(f"   FAIL case {i}" for i in range(0, 24, 2)), "   ... and 11 such lines more", "   ...",
              *(f"   {line}" for line in said[-LAST:]), "-- t2"]
    right = told[: len(wanted)] == wanted and told[-1] == "-- and 2 more" and "passed" not in str(told)
    right = right and unsaid == "-- unsaid\n   its output is not in LastTest.log\n"
    print("ok" if right else "\n".join(["not as wanted:", *told]))
    return 0 if right else 1


def told_of(folder: pathlib.Path) -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        tell(folder)
    return text.getvalue()


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    tell(pathlib.Path(sys.argv[1]))
    return 0


def tell(folder: pathlib.Path) -> None:
    failed = folder / "LastTestsFailed.log"
    if not failed.exists():
        return
    names = [line.partition(":")[2] for line in failed.read_text().splitlines()]
    whole = (folder / "LastTest.log").read_text(errors="replace")
    said = {}
    for part in re.split(r"^\d+/\d+ Testing: ", whole, flags=re.M)[1:]:
        output = part.partition("Output:\n")[2].partition("<end of output>")[0]
        said[part.partition("\n")[0].strip()] = output.splitlines()[1:]  # a name may have spaces: "...  # GetParam()"
    for name in names[:TESTS]:
        print(f"-- {name}")
        for line in shortened(said.get(name.strip(), ["its output is not in LastTest.log"])):
            print(f"   {line}")
    if len(names) > TESTS:
        print(f"-- and {len(names) - TESTS} more")


if __name__ == "__main__":
    sys.exit(main())
