#!/usr/bin/env python3
"""Runs the calls of table.py and judges them: no call crashes or hangs, a null pointer where the call
needs one gives an error that names the argument, and numbers that no memory has are refused. A
library with sanitizers ends at what they find."""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))
from harness import library  # noqa: E402
from table import Case, read  # noqa: E402

ABI = HERE.parent.parent / "abi" / "mpi-5.0-abi.json"
ERRORS = {int(row["value"]): row["name"] for row in json.loads(ABI.read_text())["constants"]
          if "_ERR_" in row["name"] and row["name"] != "MPI_ERR_LASTCODE"}
SUCCESS = "MPI_SUCCESS"
UNWRITTEN = "MPI_ERR_UNSUPPORTED_OPERATION"  # functions that only have their names
# What a null pointer gives; buffers and texts of info objects have classes of their own.
NULL = {"MPI_ERR_ARG", "MPI_ERR_BUFFER", "MPI_ERR_INFO_KEY", "MPI_ERR_INFO_VALUE"}
# Calls that fail in this table all the same: there is nothing to detach, no handle of the tools, and
# what is to be removed is in use; no split access has begun, and external32 is there already. No port
# or name of those words is known, no descriptor is a socket, and no such program is there.
FAILS = re.compile(r"MPI_T_|MPI_Grequest_complete$|MPI_(Buffer|Comm|Session)_detach|MPI_Remove_error_"
                   r"|MPI_Comm_remote_|MPI_Intercomm_|MPI_Win_detach$|MPI_File_\w+_end$|MPI_Register_datarep"
                   r"|MPI_Close_port$|MPI_Comm_(accept|connect|join|spawn|spawn_multiple)$|MPI_Lookup_name$")
LIMIT = 300


class Program:
    def __init__(self, path: pathlib.Path, environment: dict[str, str]):
        self.path = path
        self.environment = environment

    def run(self, first: int, last: int, **settings: str) -> subprocess.CompletedProcess:
        return subprocess.run([str(self.path), str(first), str(last)], timeout=LIMIT, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, errors="replace", check=False,
                              env={**self.environment, **settings})

    def returned(self, count: int) -> dict[int, str]:
        """What each call gave: the name of a class, or how it ended the program."""
        results: dict[int, str] = {}
        first = 0
        while first < count:
            done = self.run(first, count)
            started = first
            for line in done.stdout.splitlines():
                word, *numbers = line.split()
                if word == "call":
                    started = int(numbers[0])
                elif word == "back":
                    code = int(numbers[1])
                    results[int(numbers[0])] = ERRORS.get(code, str(code)) if code else SUCCESS
                elif word == "broken":
                    results[int(numbers[0])] = "the library is broken after it"
            if started in results and done.returncode == 0:
                break
            found = done.stderr.strip().splitlines()[:6]
            results[started] = " / ".join([how_it_ended(done.returncode), *found])
            first = started + 1
        return results


def how_it_ended(code: int) -> str:
    if code == -signal.SIGALRM:
        return "hangs"
    return f"ends by {signal.Signals(-code).name}" if code < 0 else f"ends with code {code}"


def judge(case: Case, result: str) -> str:
    """What is wrong with it, or ""."""
    if result != SUCCESS and not result.startswith("MPI_"):
        return result
    if result == UNWRITTEN:
        return ""
    if case.wanted == "right" and result != SUCCESS and not FAILS.match(case.function):
        return f"{result} from a call that is right"
    if case.wanted == "null" and result not in NULL and not result.startswith("MPI_T_ERR_"):
        return f"{result}, expected MPI_ERR_ARG"
    if case.wanted == "error" and result == SUCCESS:
        return f"{SUCCESS}, expected an error"
    return ""


def unnamed(program: Program, number: int, case: Case) -> str:
    """What is wrong with the text of an error that ends the program."""
    text = program.run(number, number, FATAL="1").stderr
    wanted = f"{case.function} failed: the argument {case.argument} is a null pointer"
    return "" if wanted in text and "Likely remedy: " in text else f"it says: {text.strip()!r}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder")
    parser.add_argument("--library", type=pathlib.Path, help="folder of another libmpi_abi.so.1")
    parser.add_argument("--names", type=int, default=1, metavar="N",
                        help="looks at the text of every N-th null pointer (0: of none)")
    args = parser.parse_args()
    functions, _ = read(ABI)
    cases = [case for function in functions for case in function.cases]
    environment = library.Headway(args.build).environment()
    if args.library:
        environment["LD_LIBRARY_PATH"] = str(args.library)
    program = Program(args.build / "tests" / "arguments" / "arguments", environment)
    results = program.returned(len(cases))
    wrong = [f"{case.function}, {case.argument} {case.value}: {problem}"
             for number, case in enumerate(cases)
             if (problem := judge(case, results.get(number, "never ran")))]
    nulls = [(number, case) for number, case in enumerate(cases)
             if case.wanted == "null" and results.get(number) == "MPI_ERR_ARG"]
    looked = nulls[::args.names] if args.names else []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        texts = pool.map(lambda one: unnamed(program, *one), looked)
        wrong += [f"{case.function}, {case.argument} {case.value}: {problem}"
                  for (_, case), problem in zip(looked, texts) if problem]
    for line in wrong:
        print(line)
    written = sum(results.get(number) != UNWRITTEN for number in range(len(cases)))
    print(f"{len(cases)} calls of {len(functions)} functions, {written} of them of functions that are "
          f"written; {len(nulls)} null pointers, the texts of {len(looked)}; {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
