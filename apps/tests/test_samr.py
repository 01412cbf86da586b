#!/usr/bin/env python3
"""Runs apps/samr under build/bin/mpiexec: what the gas must do, and the same bits in every form and on every
number of ranks.

--launcher replaces the launcher, so that the same tests run on another MPI library, as for test_apps.py.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import unittest

BUILD = pathlib.Path("build")
LAUNCHER = None
LIMIT = 60  # seconds for one job
FORMS = ("6", "7", "6c", "6ct", "12", "13")
# Three sheets that are refined: the shock, the foot of its rarefaction, the border of the gases.
SMALL = ("--grid", "24x8x8", "--block", 4, "--iterations", 9, "--regrid", 3)


def run(ranks, *arguments):
    command = [LAUNCHER or BUILD / "bin" / "mpiexec", "-n", str(ranks), BUILD / "apps" / "samr"]
    return subprocess.run([str(word) for word in [*command, *arguments]], capture_output=True, text=True,
                          timeout=LIMIT, stdin=subprocess.DEVNULL)


def result(ranks, *arguments):
    done = run(ranks, *arguments)
    if done.returncode != 0:
        raise AssertionError(f"samr {arguments} on {ranks} ranks ended with {done.returncode}:\n"
                             f"{done.stdout}{done.stderr}")
    line = json.loads(done.stdout.removeprefix("@@"))
    return line["extra"] | {"samples": line["samples"]}


def tube(cells, levels, ranks=1):
    """The shock alone, until shock and rarefaction have spread over a quarter of the tube."""
    return result(ranks, "--problem", "tube", "--block", 4, "--grid", f"{cells}x4x4", "--levels", levels,
                  "--until", 0.1 * cells, "--iterations", 1000)


class Gas(unittest.TestCase):
    def test_conserved_and_symmetric(self):
        # Y and z are alike, and so are both halves of each: to the last bit, in all cells.
        for arguments in (SMALL, ("--grid", "32x8x16", "--iterations", 5, "--levels", 2),
                          ("--grid", "16x8x8", "--block", 4, "--levels", 4, "--iterations", 2),
                          ("--grid", "32x16x16", "--block", 16, "--iterations", 2)):
            with self.subTest(arguments=arguments):
                got = result(2, *arguments)
                self.assertLess(abs(got["mass_drift"]), 1e-13)
                self.assertLess(abs(got["energy_drift"]), 1e-13)
                self.assertIs(got["symmetric"], True)
                self.assertTrue(all(got["blocks"]), "every level is there")

    def test_converges_to_the_exact_shock(self):
        errors = {(n, l): tube(n, l)["error"] for n in (32, 64, 128) for l in (1, 2, 3) if n << l <= 256}
        # Of first order, as all that have a shock in them: finer by two, at most 0.7 of the error.
        for n, l in ((32, 1), (64, 1), (32, 2)):
            self.assertLess(errors[2 * n, l], 0.7 * errors[n, l], (n, l))
        # A refined mesh is about as good as a mesh that is as fine everywhere.
        for n in (32, 64):
            self.assertLess(errors[n, 2], 1.1 * errors[2 * n, 1])
            self.assertLess(errors[n, 2], 0.7 * errors[n, 1])
        self.assertLess(errors[128, 1], 0.021)

    def test_borders_of_levels_are_exact_where_density_is_linear(self):
        """In place and in time: a step of the coarse level is two of the finer one. (With its neighbour's state of
        before that step beside the second one the error is 3e-4.)"""
        for ranks, levels, regrid in ((1, 2, 100), (1, 3, 100), (2, 3, 2)):
            with self.subTest(ranks=ranks, levels=levels, regrid=regrid):
                got = result(ranks, "--problem", "ramp", "--block", 4, "--grid", "4x64x4", "--iterations", 6,
                             "--levels", levels, "--jump", 15 / 64 / 11, "--regrid", regrid)
                self.assertLess(got["error"], 1e-13)
                for level, blocks in enumerate(got["blocks"][1:], 1):
                    self.assertTrue(0 < blocks < 16 << 3 * level, "a part of the tube is refined")

    def test_the_mesh_follows_the_shock(self):
        got = tube(64, 3)
        self.assertLess(got["blocks"][2], 4 * 4 * 16, "not all of it is refined")
        self.assertGreater(got["blocks"][2], 0)
        self.assertEqual(result(1, *SMALL, "--jump", 50)["blocks"][1:], [0, 0])


class SameBits(unittest.TestCase):
    def test_in_all_forms_and_on_all_numbers_of_ranks(self):
        alone = result(1, *SMALL)
        self.assertEqual((alone["messages"], alone["imbalance"]), (0, 1))
        for ranks in range(2, 9):
            for form in FORMS if ranks in (2, 5, 8) else FORMS[ranks % 2::2]:
                with self.subTest(ranks=ranks, form=form):
                    got = result(ranks, *SMALL, "--form", form)
                    for what in ("checksum", "mass", "energy", "blocks", "time"):
                        self.assertEqual(got[what], alone[what], what)
                    self.assertEqual((got["ranks"], got["form"]), (ranks, form))
                    self.assertGreaterEqual(got["imbalance"], 1)

    def test_more_ranks_than_blocks(self):
        arguments = ("--grid", "16x8x8", "--iterations", 5, "--regrid", 2)
        self.assertEqual(result(5, *arguments)["checksum"], result(1, *arguments)["checksum"])

    def test_hash_tells_fields_apart(self):
        seen = {result(1, "--grid", "16x8x8", "--iterations", i)["checksum"] for i in (1, 2, 3)}
        seen.add(result(1, "--grid", "16x8x8", "--iterations", 3, "--step", 3.0000001)["checksum"])
        self.assertEqual(len(seen), 4)


class Told(unittest.TestCase):
    def test_messages_and_times(self):
        got = result(2, *SMALL, "--warmup", 2)
        # 2 steps of level 1 and 4 of level 2; ghosts behind each step and each correction, fluxes between.
        self.assertLessEqual(got["messages"], 2 * (1 + 2 + 4 + 2 * (1 + 2)))
        self.assertGreater(got["messages"], 2 * 7)
        least, middle, most = got["sizes"]
        self.assertTrue(0 < least <= middle <= 1.05 * most, got["sizes"])
        self.assertGreater(got["bytes"], most)
        self.assertEqual(len(got["samples"]), 9)
        self.assertAlmostEqual(sum(got["samples"]), got["execution"], places=6)
        for what in ("communication", "reducing", "regridding"):
            most, mean = got[what]
            self.assertTrue(0 < mean <= most <= got["execution"], what)

    def test_pace(self):
        # 2 ranks of 100 MHz: the slower one's cells at 100 cycles.
        got = result(2, *SMALL, "--pace", 100, "--cycles", 100)
        self.assertGreaterEqual(got["execution"], got["cells"][0] * 100 / 100e6)
        self.assertEqual(got["checksum"], result(1, *SMALL)["checksum"])

    def test_bad_arguments(self):
        for arguments, word in ((("--form", "8"), "--form wants 6, 7"), (("--grid", "16x8"), "--grid wants"),
                                (("--grid", "20x8x8"), "multiples of the block's edge"), (("--levels", 5), "1 to 4"),
                                (("--block", 6), "4, 8 or 16"), (("--iterations", 0), "--iterations wants"),
                                (("--what", 1), "is no option"), (("--problem", "x"), "rm, tube or ramp"),
                                (("--mach",), "--mach wants")):
            with self.subTest(arguments=arguments):
                done = run(2, *arguments)
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(done.stderr.count("samr: "), 1, done.stderr)
                self.assertIn(word, done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=BUILD)
    parser.add_argument("--launcher")
    given, rest = parser.parse_known_args()
    BUILD, LAUNCHER = given.build, given.launcher
    unittest.main(argv=[sys.argv[0], *rest], verbosity=1)
