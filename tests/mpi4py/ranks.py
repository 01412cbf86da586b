"""Executed by every rank: runs some of mpi4py's test modules and writes what became of each test.

usage: ranks.py FOLDER_OF_TESTS RESULTS MODULE...     (RESULTS.<rank> is written as JSON)"""

import json
import os
import sys
import unittest


class Result(unittest.TestResult):
    """Each test's end: passed, skipped, missing (it met a function that is not there) or failed."""

    def __init__(self, file):
        super().__init__()
        self.file = file
        self.ends = {}

    def note(self, test, end, story=""):
        # A test of several parts has failed if one of them has.
        if self.ends.get(test.id(), ["passed"])[0] in ("passed", "skipped"):
            self.ends[test.id()] = [end, story]
        # After each: what was written stays when the next one aborts the job.
        with open(self.file + ".new", "w", encoding="utf-8") as file:
            json.dump(self.ends, file)
        os.replace(self.file + ".new", self.file)

    def startTest(self, test):
        super().startTest(test)
        self.note(test, "began")

    def trouble(self, test, error):
        self.ends.pop(test.id(), None)
        self.note(test, *judge(error))

    def addSuccess(self, test):
        if self.ends.get(test.id(), [""])[0] == "began":
            self.ends.pop(test.id())
            self.note(test, "passed")

    def addSkip(self, test, reason):
        self.ends.pop(test.id(), None)
        self.note(test, "skipped", reason)

    def addError(self, test, err):
        self.trouble(test, err)

    def addFailure(self, test, err):
        self.trouble(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.trouble(test, err)

    def addExpectedFailure(self, test, err):
        self.addSuccess(test)

    def addUnexpectedSuccess(self, test):
        self.ends.pop(test.id(), None)
        self.note(test, "failed", "unexpected success")


def judge(error):
    """Of an exception: did it come from a function that is not there?"""
    from mpi4py import MPI  # pylint: disable=import-outside-toplevel
    one = error[1]
    while one is not None:
        if isinstance(one, NotImplementedError):  # mpi4py's own word for it
            return "missing", ""
        if isinstance(one, MPI.Exception) and \
                one.Get_error_class() == MPI.ERR_UNSUPPORTED_OPERATION:
            return "missing", ""
        one = one.__context__
    lines = str(error[1]).strip().splitlines() or [""]
    return "failed", f"{error[0].__name__}: {lines[0]}"


def main():
    folder, results, *modules = sys.argv[1:]
    sys.path.insert(0, folder)
    from mpi4py import MPI  # pylint: disable=import-outside-toplevel
    result = Result(f"{results}.{MPI.COMM_WORLD.Get_rank()}")
    suite = unittest.defaultTestLoader.loadTestsFromNames(modules)
    suite.run(result)
    # What failed was told; the job itself has ended well.
    return 0


if __name__ == "__main__":
    sys.exit(main())
