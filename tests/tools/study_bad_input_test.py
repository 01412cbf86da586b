#!/usr/bin/env python3
"""`headway study`: lines that make no sense, MPIs that do not work, and machines that lack something."""

import os
import re
import shutil
import subprocess
import sys
import unittest

from support import BUILD, HEADWAY, Folder, headway, need_packages

need_packages()

from headway.study import mpis  # noqa: E402


class Named(Folder):
    """MPIs that only say who they are."""

    def prefix(self, name, says, version=""):
        self.script(f"{name}/bin/mpicc", 'exec cc "$@"')
        self.script(f"{name}/bin/mpiexec", f"echo '{says}'")
        if version:
            self.script(f"{name}/bin/mpichversion", f"echo 'MPICH Device:      {version}'")
        return self.folder / name

    def test_kinds(self):
        for says, kind in (
            ("HYDRA build details:", "mpich"),
            ("mpirun (Open MPI) 5.0.11", "openmpi"),
            ("Intel(R) MPI Library for Linux* OS, Version 2021", "intel"),
            ("mpiexec (Headway MPI) 0.1.0", "headway"),
            ("something else", ""),
        ):
            self.assertEqual(mpis.kind_of(self.prefix("x", says)), kind, says)

    def test_mpich_with_two_modules_is_two_contestants(self):
        prefix = self.prefix("m", "HYDRA", "ch4:ucx ofi")
        found = mpis.choose([f"mine={prefix}"])
        self.assertEqual(
            [(c.name, c.label, c.environment) for c in found],
            [
                ("mine-ofi", "mine ofi", {"MPIR_CVAR_CH4_NETMOD": "ofi"}),
                ("mine-ucx", "mine ucx", {"MPIR_CVAR_CH4_NETMOD": "ucx"}),
            ],
        )
        one = mpis.choose([f"mine={prefix},MPIR_CVAR_CH4_NETMOD=ofi,X=1"])
        self.assertEqual(
            [(c.name, c.environment) for c in one], [("mine", {"MPIR_CVAR_CH4_NETMOD": "ofi", "X": "1"})]
        )

    def test_bad_lines(self):
        prefix = self.prefix("m", "HYDRA")
        (self.folder / "file").write_text("")
        for words, told in (
            ((f"--mpi=a={prefix}", f"--mpi=a={prefix}"), "two MPIs are called a"),
            (("--mpi=a=/nowhere",), "there is no /nowhere/bin/mpicc"),
            ((f"--mpi=a={prefix},b",), "'b' is no VARIABLE=VALUE"),
            ((f"--mpi=a={self.prefix('o', 'something else')}",), "has no mpiexec of"),
            (("--mpi=nobody",), "no such MPI was found"),
            (("--mpi=a b=/",), "a name is made of"),
            (("--net=fast",), "a rate is 100mbit"),
            (("--only=shm/nothing",), "there are"),
            (("--resume", f"--out={self.folder}"), "--resume: there is no study in"),
            (("--again", f"--out={self.folder}"), "--again: there is no study in"),
            (("samr", "--nonsense"), "No such option: --nonsense"),
            (("samr", f"--mpi=a={prefix}", f"--mpi=a={prefix}"), "two MPIs are called a"),
            ((f"--out={self.folder / 'file'}",), "that is a file"),
            (("--nonsense",), "No such option: --nonsense"),
            (("compare", "/nowhere", "/x"), "there is no study in /nowhere"),
            (("export", "/nowhere", "x.csv"), "there is no study"),
        ):
            done = headway("study", *words, code=2, cwd=self.folder)
            self.assertIn(told, re.sub(r"\s+", " ", done.stderr), words)
            self.assertEqual(done.stdout, "", words)
        self.assertFalse((self.folder / "headway-study").exists(), "a bad line leaves nothing behind")

    def test_who_does_not_compile_is_left_out(self):
        self.script("bad/bin/mpicc", "echo cc: not found >&2; exit 127")
        self.script("bad/bin/mpiexec", "echo HYDRA")
        words = (f"--mpi=bad={self.folder / 'bad'}", "--net=none", "--quick", "--only=shm/latency")
        done = headway("study", *words, f"--out={self.folder / 's'}", code=1, timeout=120)
        self.assertIn("bad is left out: latency.c does not compile: exit code 127: cc: not found", done.stderr)
        self.assertIn("no MPI can be studied", done.stderr)

    def test_without_namespaces_the_rest_is_measured(self):
        """Root without the rights to make them; what is measured in shared memory is kept and shown."""
        less = ["setpriv", "--bounding-set=-sys_admin,-net_admin"]
        if not shutil.which("setpriv") or subprocess.run([*less, "true"], capture_output=True, check=False).returncode:
            self.skipTest("no rights can be taken away here")
        words = [*less, HEADWAY, "study", "--mpi=headway", "--quick", f"--out={self.folder / 's'}"]
        said = "2 hosts, 1 Gbit/s are left out: no simulated hosts: network namespaces are not allowed here"
        done = subprocess.run([*words, "--only=*/latency"], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(said, done.stderr)
        self.assertIn("latency, 1 B", done.stdout)
        self.assertIn(said, (self.folder / "s" / "study.md").read_text())
        words[-1] = f"--out={self.folder / 't'}"
        done = subprocess.run([*words, "--only=1gbit/latency"], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 1, "there was nothing else")
        self.assertIn(said, done.stderr)
        self.assertIn("nothing was measured", done.stderr)

    def test_who_does_not_start_is_left_out(self):
        """Of two, the study goes on with the other; of one, it says so."""
        bad = self.folder / "bad"
        self.script("bad/bin/mpicc", f'exec {BUILD}/bin/mpicc "$@"')
        self.script(
            "bad/bin/mpiexec", 'if [ "$1" = --version ]; then echo HYDRA; else echo no provider >&2; exit 9; fi'
        )
        words = (f"--mpi=bad={bad}", "--net=none", "--quick", "--only=shm/latency")
        done = headway("study", *words, f"--out={self.folder / 's'}", code=1, timeout=120)
        self.assertIn("bad is left out: it does not start: exit code 9: no provider", done.stderr)
        self.assertIn("no MPI can be studied", done.stderr)
        done = headway("study", *words, "--mpi=headway", f"--out={self.folder / 't'}", timeout=120)
        self.assertIn("latency, 1 B", done.stdout)
        self.assertNotIn("bad", done.stdout)


class Without(Folder):
    """What is missing is told in one sentence."""

    def test_no_room_on_the_disk(self):
        disk = self.disk("300k")
        done = headway(
            "study",
            "--mpi=headway",
            "--net=none",
            "--quick",
            "--only=shm/latency",
            f"--out={disk / 's'}",
            code=None,
            timeout=120,
        )
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stderr, "no room on the disk|takes no more results|No space left")
        self.assertNotIn("Traceback", done.stderr)

    def test_packages_that_are_missing(self):
        bare = self.script("python3", f'exec {sys.executable} -S "$@"')
        done = headway("study", code=1, env={**os.environ, "HEADWAY_PYTHON": str(bare)})
        self.assertRegex(done.stderr, r"has no typer, rich, numpy, matplotlib\. .*pip install typer")


if __name__ == "__main__":
    unittest.main(verbosity=1, argv=sys.argv)
