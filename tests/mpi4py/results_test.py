"""Is every kind of surprise in mpi4py's tests seen? Without mpi4py."""

import json
import pathlib
import tempfile
import unittest

import page
from results import Known, Needs, problems, read

NEEDS = Needs(3, ["MPI_Win_create"])


class Read(unittest.TestCase):
    """What several ranks wrote, put together."""

    def read(self, code, *ranks):
        with tempfile.TemporaryDirectory() as folder:
            files = pathlib.Path(folder) / "results"
            for rank, lines in enumerate(ranks):
                text = "".join(json.dumps([*line, "", ""][:3]) + "\n" for line in lines)
                pathlib.Path(f"{files}.{rank}").write_text(text)
            return {name: end for name, (end, _) in read(files, len(ranks), code).items()}

    def test_the_worst_rank_counts(self):
        self.assertEqual(
            self.read(0, [("a", "began"), ("a", "passed"), ("b", "began"), ("b", "skipped")],
                      [("a", "began"), ("a", "failed"), ("b", "began"), ("b", "passed")]),
            {"a": "failed", "b": "skipped"})

    def test_what_does_not_end_has_failed(self):
        self.assertEqual(self.read(124, [("a", "began"), ("a", "passed"), ("b", "began")]),
                         {"a": "passed", "b": "failed"})
        self.assertEqual(self.read(139, [("b", "began")], []), {"b": "failed"})

    def test_waiting_for_a_rank_that_met_a_missing_function(self):
        stuck = [("a", "began")]
        gone_on = [("a", "began"), ("a", "missing"), ("b", "began")]
        # b comes again, whatever it came to: only one rank has begun it.
        self.assertEqual(self.read(124, stuck, gone_on), {"a": "missing"})
        self.assertEqual(self.read(124, stuck, [*gone_on, ("b", "passed")]), {"a": "missing"})
        # A crash is no consequence.
        self.assertEqual(self.read(139, stuck, gone_on), {"a": "failed"})

    def test_a_line_that_was_cut(self):
        with tempfile.TemporaryDirectory() as folder:
            files = pathlib.Path(folder) / "results"
            pathlib.Path(f"{files}.0").write_text('["a", "passed", ""]\n["b", "pa')
            self.assertEqual(read(files, 1, 0), {"a": ("passed", "")})


class Judge(unittest.TestCase):
    """Which results are problems."""

    def known(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(text)
            file.flush()
            return Known.read(pathlib.Path(file.name))

    def judge(self, end, known="", ranks=2, needs=NEEDS):
        return problems({ranks: {"test_x": {"test_x.T.a": (end, "why")}}}, self.known(known), needs)

    def test_failures_must_be_known(self):
        self.assertEqual(self.judge("passed"), [])
        self.assertEqual(self.judge("missing"), [])
        self.assertEqual(len(self.judge("failed")), 1)
        self.assertEqual(self.judge("failed", "# a list\ntest_x.T.a: a reason\n"), [])
        self.assertEqual(self.judge("failed", "test_x.T.a at 2,3: a reason\n"), [])
        self.assertEqual(len(self.judge("failed", "test_x.T.a at 1: a reason\n")), 1)

    def test_what_is_known_must_fail(self):
        for end in ("passed", "skipped", "missing"):
            self.assertEqual(len(self.judge(end, "test_x.T.a: a reason\n")), 1)
        self.assertEqual(self.judge("passed", "test_x.T.a at 1: a reason\n"), [])
        self.assertEqual(len(self.judge("passed", "test_x.T.b: a reason\n")), 1)
        self.assertEqual(self.judge("passed", "test_y.T.b: of a module that was not run\n"), [])

    def test_nothing_is_missing_where_all_functions_are_there(self):
        self.assertEqual(len(self.judge("missing", needs=Needs(3, []))), 1)

    def test_a_reason_is_needed(self):
        for line in ("test_x.T.a", "test_x.T.a:", "test_x.T.a at two: a reason"):
            with self.assertRaises(SystemExit):
                self.known(line + "\n")


class Page(unittest.TestCase):
    """The page, and whether it is of this library."""

    def test_check_is_understood(self):
        said = ("/x/MPI.so needs 3 functions of MPI: not all is well\n"
                "  MPI_Win_create                 not written yet: a call raises\n")
        self.assertEqual(Needs.parse(said), NEEDS)
        for other in ("nothing", said + "  libmpi.so.12  is needed by x\n"):
            with self.assertRaises(SystemExit):
                Needs.parse(other)

    def test_it_lists_the_functions(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "page.md"
            self.assertFalse(page.has(path, NEEDS))
            tables = {1: {"test_x": {"test_x.T.a": ("passed", "")}},
                      2: {"test_x": {"test_x.T.a": ("failed", "why")}}}
            page.write(path, "4.1.2", NEEDS, tables, Known({"test_x.T.a": ({2}, "a reason")}))
            self.assertTrue(page.has(path, NEEDS))
            self.assertFalse(page.has(path, Needs(3, [])))
            self.assertFalse(page.has(path, Needs(3, ["MPI_Win_create", "MPI_Win_free"])))
            text = path.read_text()
            self.assertIn("| `x` | 1 / 0 / 0 / 0 | 0 / 0 / 0 / 1 |", text)
            self.assertIn("* `test_x.T.a` (at 2 ranks): a reason", text)


if __name__ == "__main__":
    unittest.main()
