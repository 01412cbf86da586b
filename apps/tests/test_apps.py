#!/usr/bin/env python3
"""Runs the example programs under build/bin/mpiexec and judges what they print and write.

--launcher replaces the launcher, so that the same tests run on another MPI library:
    LD_LIBRARY_PATH=<mpich>/lib test_apps.py --launcher <mpich>/bin/mpiexec --build build
"""
import argparse
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path("build")
LAUNCHER = None
LIMIT = 60  # seconds for one job


def run(ranks, program, *arguments):
    command = [LAUNCHER or BUILD / "bin" / "mpiexec", "-n", str(ranks), BUILD / "apps" / program]
    return subprocess.run([str(word) for word in [*command, *arguments]], capture_output=True,
                          text=True, timeout=LIMIT, stdin=subprocess.DEVNULL)


def result(program, ranks, *arguments):
    done = run(ranks, program, *arguments)
    if done.returncode != 0:
        raise AssertionError(f"{program} {arguments} on {ranks} ranks ended with "
                             f"{done.returncode}:\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def pes(ranks, *arguments):
    return result("pes", ranks, *arguments)


class Hello(unittest.TestCase):
    def test_every_rank_speaks_once(self):
        done = run(3, "hello")
        self.assertEqual(done.returncode, 0, done.stderr)
        ranks = re.findall(r"^Hello from rank (\d+) of 3 on \S+$", done.stdout, re.M)
        self.assertEqual(sorted(ranks), ["0", "1", "2"])
        self.assertEqual(len(done.stdout.splitlines()), 3)

    def test_cpp_form_prints_in_order(self):
        done = run(4, "hello_cpp")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(re.findall(r"^rank (\d) of 4 on \S+$", done.stdout, re.M), list("0123"))


class Ring(unittest.TestCase):
    def test_token(self):
        for ranks in (1, 2, 5):
            with self.subTest(ranks=ranks):
                done = run(ranks, "ring", 50)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f"token {50 * ranks * (ranks + 1) // 2},", done.stdout)

    def test_bad_number(self):
        done = run(2, "ring", 0)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("ROUNDS", done.stderr)


class Pes(unittest.TestCase):
    def test_same_bits_on_any_number_of_ranks(self):
        # 67 rows do not divide by any of these; the ranks of the last one own at most 14 rows.
        for problem in ("corners", "charges"):
            alone = pes(1, 67, 120, "--problem", problem)["checksum"]
            for ranks in (2, 3, 5):
                for order in ("paper", "overlap"):
                    with self.subTest(problem=problem, ranks=ranks, order=order):
                        got = pes(ranks, 67, 120, "--problem", problem, "--order", order)
                        self.assertEqual(got["checksum"], alone)
                        self.assertEqual(got["ranks"], ranks)

    def test_hash_tells_fields_apart(self):
        seen = {pes(1, 67, iterations)["checksum"] for iterations in (1, 2, 3)}
        self.assertEqual(len(seen), 3)

    def test_one_row_a_rank(self):
        alone = pes(1, 4, 30)["checksum"]
        for order in ("paper", "overlap"):
            self.assertEqual(pes(4, 4, 30, "--order", order)["checksum"], alone)

    def test_reaches_the_exact_solution(self):
        got = pes(2, 33, 6000, "--check")
        self.assertEqual(got["check"], "ok")
        self.assertLess(got["error_last"], 1e-9)
        self.assertGreater(got["error_first"], 0.5)
        self.assertLess(got["residual_last"], 1e-9)

    def test_large_rows_and_self_check(self):
        # Rows of 32 KB take the path of large messages.
        for order in ("paper", "overlap"):
            got = pes(2, 4096, 4, "--order", order, "--check")
            self.assertEqual(got["check"], "ok")
            self.assertIsNotNone(got["hidden"])
            self.assertGreater(got["communication_alone"], 0)
            self.assertAlmostEqual(got["computing"] + got["waiting"], got["seconds"],
                                   delta=0.2 * got["seconds"] + 0.05)

    def test_pace(self):
        # 40 iterations of 256 x 256 points, 81 cycles each, on two ranks of 100 MHz: 1.06 s.
        got = pes(2, 256, 40, "--pace", 100)
        ideal = 40 * 256 * 256 / 2 * 81 / 100e6
        self.assertGreaterEqual(got["computing"], 0.98 * ideal)
        self.assertLess(got["computing"], 1.5 * ideal + 0.5)

    def test_file(self):
        n = 50
        with tempfile.TemporaryDirectory() as folder:
            written = []
            for ranks in (1, 3):
                path = pathlib.Path(folder) / f"field{ranks}"
                pes(ranks, n, 200, "--problem", "charges", "--out", path)
                written.append(path.read_bytes())
        self.assertEqual(written[0], written[1])
        self.assertEqual(len(written[0]), 24 + 8 * n * n)
        magic, rows, columns = struct.unpack_from("<8sqq", written[0])
        self.assertEqual((magic, rows, columns), (b"PESFIELD", n, n))
        field = struct.unpack_from(f"<{n * n}d", written[0], 24)
        self.assertEqual([field[i] for i in (0, n - 1, n * (n - 1), n * n - 1)],
                         [1.0, 0.0, 0.0, 1.0])

    def test_fewer_rows(self):
        # A flat field: its exact solution is known as well, and rows are what ranks share.
        alone = pes(1, "--size", 4096, "--rows", 10, "--iterations", 40, "--check")
        self.assertEqual((alone["check"], alone["rows"]), ("ok", 10))
        for ranks in (2, 4):
            got = pes(ranks, "--size", 4096, "--rows", 10, "--iterations", 30, "--warmup", 10)
            self.assertEqual(got["checksum"], alone["checksum"])
            self.assertGreater(got["iteration"]["warmup_mean"], 0)
            self.assertAlmostEqual(got["iteration"]["mean"] * 30, got["seconds"], delta=1e-5)
        self.assertIsNone(pes(2, 50, 5, "--alone", 0)["hidden"])
        flat = pes(2, "--size", 9, "--rows", 21, "--iterations", 4000, "--check")
        self.assertLess(flat["error_last"], 1e-9)

    def test_bad_arguments(self):
        for arguments, word in (((2,), "N must be"), (("x",), "N must be"), ((8, 0), "ITERATIONS"),
                                (("--order", "up"), "--order"), (("--pace", "-3"), "--pace"),
                                (("--out",), "--out"), (("--what", "1"), "unknown option"),
                                (("--size", "D"), "--size"), (("--warmup", "-1"), "--warmup"),
                                (("--rows", 9, "--problem", "charges"), "--problem corners"),
                                ((8, 8, 8), "unexpected argument")):
            with self.subTest(arguments=arguments):
                done = run(2, "pes", *arguments)
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(done.stderr.count("pes: "), 1, done.stderr)
                self.assertIn(word, done.stderr)

    def test_more_ranks_than_rows(self):
        done = run(4, "pes", 3)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("cannot be split over 4 ranks", done.stderr)

    def test_unwritable_file(self):
        done = run(2, "pes", 20, 5, "--out", "/nonexistent/field")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("/nonexistent/field", done.stderr)


class Forms(unittest.TestCase):
    """The appendix of the prefetching paper: collective calls, the same bits."""

    def check(self, program, sizes):
        for size in sizes:
            arguments = ("--size", size, "--iterations", 3, "--warmup", 1)
            alone = result(program, 1, *arguments)["checksum"]
            for ranks in (1, 2, 3, 4, 8):
                for form in ("messages", "collective"):
                    with self.subTest(program=program, size=size, ranks=ranks, form=form):
                        got = result(program, ranks, *arguments, "--form", form)
                        self.assertEqual((got["checksum"], got["form"]), (alone, form))
                        self.assertIn(got["check"], ("ok", "not asked"))

    def test_nbody(self):
        # 24 share evenly among 2, 3, 4 and 8: Allgather; 61 among none of them: Allgatherv.
        self.check("nbody", (24, 61))

    def test_m3(self):
        # 42 rows share evenly among 1, 2, 3 and 7 slaves, 41 among one alone.
        self.check("m3", (42, 41))

    def test_pes(self):
        self.check("pes", (33,))

    def test_large_messages(self):
        for program, size, thin in (("nbody", 4096, 16), ("m3", 255, 1), ("m3", 256, 16)):
            arguments = ("--size", size, "--iterations", 2, "--thin", thin, "--check")
            got = [result(program, 4, *arguments, "--form", form)
                   for form in ("messages", "collective")]
            self.assertEqual(got[0]["checksum"], got[1]["checksum"])
            self.assertEqual(got[1]["check"], "ok")

    def test_pace(self):
        # As in PaperPrograms: the form does not change what is computed.
        for program, ranks, size, ideal in (("nbody", 2, 200, 0.0524), ("m3", 3, 120, 0.10368)):
            got = result(program, ranks, "--size", size, "--iterations", 3, "--pace", 100,
                         "--form", "collective")
            self.assertGreaterEqual(got["iteration"]["computing"], 0.98 * ideal)

    def test_bad_form(self):
        for program in ("nbody", "m3", "pes"):
            self.assertIn("--form wants messages or collective",
                          run(2, program, "--form", "gather").stderr)


class Nas(unittest.TestCase):
    """ft and is, whose small classes NAS publishes results for."""

    def check_same_bits(self, program, arguments, counts, compared):
        alone = result(program, 1, *arguments, "--check")
        self.assertEqual((alone["check"], alone["nas_compared"]), ("ok", compared))
        for ranks in counts:
            with self.subTest(program=program, arguments=arguments, ranks=ranks):
                got = result(program, ranks, *arguments)
                self.assertEqual((got["checksum"], got["check"]), (alone["checksum"], "ok"))
                self.assertEqual((got["ranks"], got["nas_compared"]), (ranks, compared))

    def test_ft(self):
        self.check_same_bits("ft", (), (2, 4, 8), 6)
        self.check_same_bits("ft", ("--thin", 8), (2, 8), 0)
        got = result("ft", 4, "--class", "W")
        self.assertEqual((got["check"], got["nas_compared"]), ("ok", 6))
        self.assertLess(got["nas_error"], 1e-12)

    def test_is(self):
        self.check_same_bits("is", (), (2, 3, 4, 8), 50)
        self.check_same_bits("is", ("--thin", 16), (2, 3, 8), 0)
        got = result("is", 4, "--class", "W")
        self.assertEqual((got["check"], got["nas_compared"]), ("ok", 50))

    def test_ft_longer_and_shorter_than_published(self):
        got = result("ft", 2, "--iterations", 7, "--warmup", 2, "--check")
        self.assertEqual((got["check"], got["nas_compared"]), ("ok", 6))
        self.assertGreater(got["iteration"]["warmup_mean"], 0)
        self.assertEqual(result("ft", 2, "--iterations", 2)["nas_compared"], 2)

    def test_is_longer_than_published(self):
        # Ten iterations change keys; all later ones rank the same.
        got = result("is", 3, "--iterations", 10, "--warmup", 3, "--check")
        self.assertEqual((got["check"], got["nas_compared"]), ("ok", 65))

    def test_thin_and_check(self):
        for thin in (2, 64):
            for program in ("ft", "is"):
                got = result(program, 4, "--thin", thin, "--iterations", 3, "--check")
                self.assertEqual((got["check"], got["thin"]), ("ok", thin))

    def test_many_ranks(self):
        # As thin as planes can be; and ranks without a bucket or a key of their own.
        self.assertEqual(result("ft", 16, "--class", "W", "--iterations", 1)["check"], "ok")
        self.assertEqual(result("is", 16, "--thin", 64, "--iterations", 2)["check"], "ok")

    def test_checksum_tells_results_apart(self):
        for program in ("ft", "is"):
            seen = {result(program, 2, "--iterations", i)["checksum"] for i in (1, 2, 3)}
            self.assertEqual(len(seen), 3, program)

    def test_pace(self):
        # 2^18 points, 4504 cycles; 2^16 keys, 358 cycles; 2 ranks of 8000 and 100 MHz.
        for program, mhz, ideal in (("ft", 8000, 0.0738), ("is", 100, 0.1173)):
            got = result(program, 2, "--iterations", 4, "--pace", mhz, "--thin", 8)
            computing = got["iteration"]["computing"]
            self.assertGreaterEqual(computing, 0.98 * ideal)
            self.assertLess(computing, 1.5 * ideal + 0.2)

    def test_bad_arguments(self):
        for program in ("ft", "is"):
            for arguments, word in ((("--class", "D"), "--class wants"), (("--class", ""), "--class"),
                                    (("--class",), "--class"), (("--size", 64), "unknown option"),
                                    (("--thin", 3), "power of two"), (("--thin", 0), "--thin"),
                                    (("--iterations", 0), "--iterations"),
                                    (("--pace", "x"), "--pace"), ((8,), "unexpected argument")):
                with self.subTest(program=program, arguments=arguments):
                    done = run(2, program, *arguments)
                    self.assertNotEqual(done.returncode, 0)
                    self.assertEqual(done.stderr.count(f"{program}: "), 1, done.stderr)
                    self.assertIn(word, done.stderr)

    def test_ranks_that_cannot_share(self):
        self.assertIn("class S cannot be split over 3 ranks: a power of two is wanted, 64 at most",
                      run(3, "ft").stderr)
        # 1024 runs of 64 keys: the first rank wants 21 of them.
        self.assertIn("cannot be split over 49 ranks: 48 at most",
                      run(49, "is", "--thin", 64).stderr)


class PaperPrograms(unittest.TestCase):
    """What nbody and m3 have in common."""

    def check_same_bits(self, program, size, thin):
        alone = result(program, 1, "--size", size, "--iterations", 6, "--thin", thin, "--check")
        self.assertEqual(alone["check"], "ok")
        for ranks in (2, 3, 4):
            with self.subTest(program=program, ranks=ranks, thin=thin):
                # Iterations count alike, warmed up or measured.
                got = result(program, ranks, "--size", size, "--iterations", 4, "--warmup", 2,
                             "--thin", thin, "--check")
                self.assertEqual((got["checksum"], got["check"]), (alone["checksum"], "ok"))
                self.assertEqual((got["ranks"], got["size"]), (ranks, size))
                self.assertGreater(got["iteration"]["warmup_mean"], 0)

    def test_nbody(self):
        self.check_same_bits("nbody", 301, 1)
        self.check_same_bits("nbody", 302, 5)

    def test_m3(self):
        self.check_same_bits("m3", 83, 1)
        self.check_same_bits("m3", 81, 8)

    def test_checksum_tells_results_apart(self):
        for program in ("nbody", "m3"):
            seen = {result(program, 2, "--size", 40, "--iterations", i)["checksum"]
                    for i in (1, 2, 3)}
            self.assertEqual(len(seen), 3, program)

    def test_large_messages(self):
        # 56 KB from each of four ranks, 170 KB to each of three slaves.
        for program, size in (("nbody", 4096), ("m3", 256)):
            got = result(program, 4, "--size", size, "--iterations", 2, "--thin", 16, "--check")
            self.assertEqual(got["check"], "ok")

    def test_pace(self):
        # 200 x 100 pairs, 262 cycles; 60 x 120 x 120 products, 12 cycles; 100 MHz.
        for program, ranks, size, ideal in (("nbody", 2, 200, 0.0524), ("m3", 3, 120, 0.10368)):
            got = result(program, ranks, "--size", size, "--iterations", 5, "--pace", 100)
            computing = got["iteration"]["computing"]
            self.assertGreaterEqual(computing, 0.98 * ideal)
            self.assertLess(computing, 1.5 * ideal + 0.1)

    def test_bad_arguments(self):
        for program in ("nbody", "m3"):
            for arguments, word in ((("--size", "D"), "--size"), (("--size", 0), "--size"),
                                    (("--iterations", 0), "--iterations"),
                                    (("--warmup", "x"), "--warmup"), (("--thin", 65), "--thin"),
                                    (("--pace", "-3"), "--pace"), (("--pace",), "--pace"),
                                    (("--what", "1"), "unknown option"),
                                    ((8,), "unexpected argument"),
                                    (("--size", 1), "cannot be split")):
                with self.subTest(program=program, arguments=arguments):
                    done = run(3, program, *arguments)
                    self.assertNotEqual(done.returncode, 0)
                    self.assertEqual(done.stderr.count(f"{program}: "), 1, done.stderr)
                    self.assertIn(word, done.stderr)
        self.assertIn("--make wants", run(2, "m3", "--make", "x").stderr)
        self.assertIn("unknown option --make", run(2, "nbody", "--make", 5).stderr)


class Table(unittest.TestCase):
    FORMS = "allocated", "created", "messages"

    def test_the_same_table_in_every_form(self):
        alone = result("table", 1, "--size", 3000, "--work", 0, "--check")["checksum"]
        for ranks in (2, 3, 5):
            for form in self.FORMS:
                with self.subTest(ranks=ranks, form=form):
                    got = result("table", ranks, "--size", 3000, "--work", 1, "--form", form, "--check")
                    self.assertEqual((got["checksum"], got["check"]), (alone, "ok"))

    def test_few_keys_that_all_ranks_count(self):
        alone = result("table", 1, "--size", 2000, "--distinct", 3, "--work", 0)["checksum"]
        other = result("table", 1, "--size", 2001, "--distinct", 3, "--work", 0)["checksum"]
        self.assertNotEqual(alone, other)
        for form in self.FORMS:
            got = result("table", 4, "--size", 2000, "--distinct", 3, "--work", 0, "--form", form, "--check")
            self.assertEqual(got["checksum"], alone, form)

    def test_only_messages_wait_for_the_work_of_the_owner(self):
        if LAUNCHER:
            self.skipTest("of another library nothing is promised")
        waits = {form: result("table", 2, "--size", 100, "--work", 4000, "--form", form)["wait_us"] for form in self.FORMS}
        self.assertGreater(waits["messages"], 500)
        for form in ("allocated", "created"):
            self.assertLess(waits[form], waits["messages"] / 4, waits)

    def test_bad_arguments(self):
        for arguments, word in ((("--form", "shared"), "allocated, created or messages"), (("--size", 0), "--size"),
                                (("--work", -1), "--work"), (("--distinct", "x"), "--distinct"), (("--size",), "--size"),
                                (("--what", "1"), "unknown option"), ((8,), "unexpected argument")):
            with self.subTest(arguments=arguments):
                done = run(3, "table", *arguments)
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(done.stderr.count("table: "), 1, done.stderr)
                self.assertIn(word, done.stderr)


def main():
    global BUILD, LAUNCHER
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=BUILD)
    parser.add_argument("--launcher", type=pathlib.Path)
    known, rest = parser.parse_known_args()
    BUILD, LAUNCHER = known.build.resolve(), known.launcher
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)


if __name__ == "__main__":
    main()
