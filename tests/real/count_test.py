#!/usr/bin/env python3
"""What is read from the tests of real codes, on outputs of which the answer is known."""

import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
# pylint: disable=wrong-import-position
import count  # noqa: E402
import fetch  # noqa: E402
from place import Ends  # noqa: E402
from results import Known  # noqa: E402

FFTW = """\
ok24hx8bx3h 3.89124e-16 1.42109e-14 3.51649e-16
obr[9x28 3.58899e-16 7.833e-16 4.16834e-16
     MPI FFTW transforms passed 10 tests, 1 CPU
"""
HYPRE = """\
    OK : TEST_struct/migrate.err
FAILED : TEST_struct/periodic.err  (213)
"""
UNITTEST = """\
.....s.
Ran 7 tests in 1.0s

OK (skipped=1)
"""
PYTEST = """\
..s
2 passed, 1 skipped in 0.52s
FAILED tests/test_pencil.py::test_pencil - AssertionError
"""
BOOST = """\
**passed** ../../../bin.v2/libs/mpi/test/ring_test-2.test/gcc-12/release/ring_test-2.test
...failed gcc.capture-output ../../../bin.v2/libs/mpi/test/ring_test-3.test/gcc-12/release/ring_test-3.run...
...failed updating 1 target...
"""
PETSC = """\
C/C++ example src/snes/tutorials/ex19 run successfully with 1 MPI process
C/C++ example src/snes/tutorials/ex19 run successfully with 2 MPI processes
"""
TAP = """\
 ok vec_is_sf_tests-ex1_1
 ok diff-vec_is_sf_tests-ex1_1
 ok vec_is_sf_tests-ex2_1
 not ok diff-vec_is_sf_tests-ex2_1 # Error code: 1
 ok vec_is_sf_tests-ex3_1 # SKIP Null requirement not met
"""


class Reading(unittest.TestCase):
    def test_fftw(self):
        ends = count.fftw(FFTW, 0)
        self.assertEqual(ends.passed, 2)
        self.assertEqual(len(ends.failed), 1, "one round of five")
        whole = FFTW + "MPI FFTW transforms passed 10 tests, k CPUs\n" * 3 + "MPI FFTW threaded transforms passed 10 tests!\n"
        self.assertEqual(count.fftw(whole, 0).failed, [])
        self.assertEqual(len(count.fftw(whole, 2).failed), 1)

    def test_hypre(self):
        self.assertEqual(count.hypre(HYPRE, 0), Ends(1, 0, ["TEST_struct/periodic.err"]))
        self.assertEqual(len(count.hypre("", 0).failed), 1, "nothing was tested")

    def test_hypre_check_reads_the_files_of_errors(self):
        said = "BoomerAMG Iterations = 12\nIterations = 5\nIterations = 7\n"
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            self.assertEqual(len(count.hypre_check(folder)(said, 0).failed), 3, "no driver left a file")
            for name in ("ij", "struct", "sstruct"):
                (folder / f"{name}.err").write_text("")
            self.assertEqual(count.hypre_check(folder)(said, 0), Ends(3))
            self.assertEqual(len(count.hypre_check(folder)(said[26:], 0).failed), 1)
            (folder / "ij.err").write_text("Error: Invalid number of processes")
            self.assertEqual(count.hypre_check(folder)(said, 0).passed, 2)

    def test_python(self):
        self.assertEqual(count.unittest(UNITTEST * 2, 0), Ends(6, 1))
        failed = count.unittest("ERROR: test_a (test_x.X)\n" * 2 + UNITTEST, 1)
        self.assertEqual(failed, Ends(5, 1, ["test_a (test_x.X)"]))
        self.assertEqual(len(count.unittest("Segmentation fault", 139).failed), 1)
        self.assertEqual(count.pytest(PYTEST, 1), Ends(2, 1, ["tests/test_pencil.py::test_pencil"]))
        self.assertEqual(len(count.pytest(PYTEST.replace("FAILED", ""), 124).failed), 1)

    def test_boost(self):
        self.assertEqual(count.boost(BOOST, 1), Ends(1, 0, ["ring_test-3"]))
        self.assertEqual(len(count.boost("", 1).failed), 1)

    def test_petsc(self):
        self.assertEqual(count.petsc_check(PETSC, 0), Ends(2))
        self.assertEqual(len(count.petsc_check(PETSC + "Possible error running C/C++ src/ex19\n", 0).failed), 1)
        self.assertEqual(count.tap(TAP, 0), Ends(1, 1, ["vec_is_sf_tests-ex2_1"]))

    def test_seconds(self):
        said = "Problem: oc128, setup: 1.0 s, time: 94.95 ms, ``mflops'': 2319.2\n"
        self.assertAlmostEqual(count.fftw_seconds(said), 0.09495)
        self.assertAlmostEqual(count.hypre_seconds("wall clock time = 0.25 seconds\nwall clock time = 0.5 seconds\n"), 0.75)
        self.assertAlmostEqual(count.petsc_seconds("KSPSolve               1 1.0 2.4558e-01 1.0 7.90e+08\n"), 0.24558)
        self.assertAlmostEqual(count.boost_seconds("# of processors: 2\nInvocation\tElapsed Time (seconds)\n"
                                                   "Raw MPI\t\t\t0.5\nMPI_INT/MPI_SUM\t\t2.5e-1\n"), 0.75)
        self.assertAlmostEqual(count.printed_seconds("seconds 1.5e-3\n"), 0.0015)


class Judging(unittest.TestCase):
    def test_known_failures_must_fail(self):
        known = Known({"hypre.struct: *periodic.err": "a reason"})
        bad = Ends(1, 0, ["hypre.struct: TEST_struct/periodic.err"])
        self.assertEqual(known.problems(bad, ["hypre.struct"]), [])
        self.assertEqual(len(known.problems(Ends(2), ["hypre.struct"])), 1)
        self.assertEqual(known.problems(Ends(2), ["hypre.ij"]), [], "that test was not run")
        self.assertEqual(len(known.problems(Ends(0, 0, ["fftw.check: code 1"]), ["fftw.check"])), 1)


class Sources(unittest.TestCase):
    def test_both_forms_of_lists(self):
        with tempfile.TemporaryDirectory() as folder:
            etc = pathlib.Path(folder)
            (etc / "sources.list.d").mkdir()
            (etc / "sources.list").write_text("# a comment\ndeb http://host/debian stable main\n")
            (etc / "sources.list.d" / "d.sources").write_text(
                "Types: deb\n# a comment\nURIs: http://host/d\nSuites: one two\nComponents: main\nSigned-By: /k.gpg\n\n"
                "Types: deb\nURIs: http://off/d\nSuites: one\nEnabled: no\n")
            self.assertEqual(fetch.one_line_sources(etc), [
                "deb http://host/debian stable main", "deb-src http://host/debian stable main",
                "deb [signed-by=/k.gpg] http://host/d one main", "deb-src [signed-by=/k.gpg] http://host/d one main",
                "deb [signed-by=/k.gpg] http://host/d two main", "deb-src [signed-by=/k.gpg] http://host/d two main"])


if __name__ == "__main__":
    unittest.main()
