#!/usr/bin/env python3
"""What the tests that failed in ctest's last run said, for a log of which somebody keeps little: of each the lines that
tell a failure, and its last ones.

usage: failed-tests.py build/Testing/Temporary
"""

import pathlib
import re
import sys

TELLS = re.compile(r"^(again, by itself: )?FAIL|^  failed: |^\[  FAILED  \]|: Failure$|FAILED|Error\b|  <- |Sanitizer")
TOLD, LAST = 12, 15  # lines of each test
WIDE = 200
TESTS = 12


def shortened(lines: list[str]) -> list[str]:
    told = [line for line in lines[:-LAST] if TELLS.search(line)]
    more = [f"... and {len(told) - TOLD} such lines more"] if len(told) > TOLD else []
    gap = ["..."] if len(lines) > LAST else []
    return [line[:WIDE] for line in [*told[:TOLD], *more, *gap, *lines[-LAST:]]]


def main() -> int:
    folder = pathlib.Path(sys.argv[1])
    failed = folder / "LastTestsFailed.log"
    if not failed.exists():
        return 0
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
    return 0


if __name__ == "__main__":
    sys.exit(main())
