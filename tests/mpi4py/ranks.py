"""Executed by every rank: runs tests of mpi4py in this process and writes what became of each.

usage: ranks.py FOLDER_OF_TESTS RESULTS MODULE [FINISHED]

RESULTS.<rank> gets a line of JSON for each news: [test, end, story], where end is "began" or one of
ENDS. What was written stays when a test takes the job with it. FINISHED: a file that names tests
that are not to be run again, one a line."""

import ast
import json
import os
import pathlib
import sys
import types
import unittest

ENDS = ("passed", "skipped", "missing", "failed")  # the worst one of all ranks counts
MISSING = "a function is not there"


def is_missing(error):
    """Does an exception come from a function of MPI that this library does not have?"""
    from mpi4py import MPI  # pylint: disable=import-outside-toplevel
    while error is not None:
        if isinstance(error, MPI.Exception) and \
                error.Get_error_class() == MPI.ERR_UNSUPPORTED_OPERATION:
            return True
        error = error.__context__
    return False


def tell_skips_apart():
    """mpi4py skips what meets an error while it prepares. Why, is known only at that moment."""
    plain_skip = unittest.skip

    def reason_now(reason):
        return MISSING if is_missing(sys.exc_info()[1]) else reason

    def skip_test(_, reason):
        raise unittest.SkipTest(reason_now(reason))

    unittest.TestCase.skipTest = skip_test
    unittest.skip = lambda reason: plain_skip(reason_now(reason))


class Result(unittest.TestResult):
    """Writes each test's end."""

    def __init__(self, file):
        super().__init__()
        self.file = file
        self.ends = {}

    def note(self, test, end, story=""):
        name = test.id()
        # A test of several parts has failed if one of them has.
        before = self.ends.get(name, "passed")
        if ENDS.index(end) < ENDS.index(before):
            return
        self.ends[name] = end
        self.write(name, end, story)

    def write(self, *news):
        self.file.write(json.dumps(news) + "\n")
        self.file.flush()

    def note_error(self, test, error):
        lines = str(error[1]).strip().splitlines() or [""]
        if is_missing(error[1]):
            self.note(test, "missing", MISSING)
        else:
            self.note(test, "failed", f"{error[0].__name__}: {lines[0]}")

    def startTest(self, test):
        super().startTest(test)
        self.write(test.id(), "began", "")

    def addSuccess(self, test):
        self.note(test, "passed")

    def addSkip(self, test, reason):
        missing = reason == MISSING or (reason == "mpi-spawn" and "MPI4PY_TEST_SPAWN" in os.environ)
        self.note(test, "missing" if missing else "skipped", reason)

    def addError(self, test, err):
        self.note_error(test, err)

    def addFailure(self, test, err):
        self.note_error(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.note_error(test, err)

    def addExpectedFailure(self, test, err):
        self.note(test, "passed")

    def addUnexpectedSuccess(self, test):
        self.note(test, "failed", "it was expected to fail, and passed")


def load(folder, name):
    """The tests of a module. mpi4py's modules try at their top level whether a function is there, and
    some of them do not expect an error of MPI: such a statement ends there, the others are executed,
    and each test meets the function by itself."""
    path = pathlib.Path(folder) / f"{name}.py"
    module = types.ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    lost = set()  # names that such statements would have defined
    try:
        for statement in ast.parse(path.read_text(encoding="utf-8"), path).body:
            code = compile(ast.Module([statement], []), path, "exec")
            try:
                exec(code, module.__dict__)  # pylint: disable=exec-used
            except Exception as error:  # pylint: disable=broad-exception-caught
                if not is_missing(error) and getattr(error, "name", None) not in lost:
                    raise
                lost.add(getattr(statement, "name", "-"))
    except unittest.SkipTest as skip:
        return ModuleItself.suite(name, str(skip))
    tests = unittest.defaultTestLoader.loadTestsFromModule(module)
    if lost and tests.countTestCases() == 0:
        return ModuleItself.suite(name, MISSING)
    return tests


class ModuleItself(unittest.TestCase):
    """Stands for all tests of a module that is left out."""

    def __init__(self, name, reason):
        super().__init__()
        self.name = name
        self.reason = reason

    def id(self):
        return f"{self.name} as a whole"

    def runTest(self):
        raise unittest.SkipTest(self.reason)

    @staticmethod
    def suite(name, reason):
        return unittest.TestSuite([ModuleItself(name, reason)])


def flat(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flat(item)
        else:
            yield item


def main():
    folder, results, module, *finished = sys.argv[1:]
    sys.path.insert(0, folder)
    done = set()
    if finished:
        with open(finished[0], encoding="utf-8") as file:
            done = set(file.read().split("\n"))
    tell_skips_apart()
    from mpi4py import MPI  # pylint: disable=import-outside-toplevel
    loaded = load(folder, module)
    # A suite keeps the tests of a class together, for setUpClass and tearDownClass.
    suite = unittest.TestSuite(test for test in flat(loaded) if test.id() not in done)
    with open(f"{results}.{MPI.COMM_WORLD.Get_rank()}", "w", encoding="utf-8") as file:
        suite.run(Result(file))
    # What failed was told; the job itself has ended well.
    return 0


if __name__ == "__main__":
    sys.exit(main())
