#!/usr/bin/env python3
"""The last lines of each test that failed in ctest's last run, for a log that is read from its end.

usage: failed-tests.py build/Testing/Temporary
"""

import pathlib
import re
import sys

LINES = 40  # of each test
TESTS = 12


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
        said[part.split(None, 1)[0]] = output.splitlines()[1:]
    for name in names[:TESTS]:
        print(f"-- {name}")
        for line in said.get(name, ["its output is not in LastTest.log"])[-LINES:]:
            print(f"   {line}")
    if len(names) > TESTS:
        print(f"-- and {len(names) - TESTS} more")
    return 0


if __name__ == "__main__":
    sys.exit(main())
