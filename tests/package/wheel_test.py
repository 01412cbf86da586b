#!/usr/bin/env python3
"""The wheel, built by pip as a user would, installed in a fresh environment and used there."""

import email
import os
import re
import subprocess
import sys
import tempfile
import zipfile

import support
from support import Case, environment, run

HELLO = """
#include <mpi.h>
#include <stdio.h>
int main(void) {
  int rank, size;
  MPI_Init(0, 0);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  printf("rank %d of %d\\n", rank, size);
  return MPI_Finalize();
}
"""


class Wheel(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.scratch = tempfile.TemporaryDirectory(prefix="headway-wheel-test-")
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.dist = os.path.join(cls.scratch.name, "dist")
        cls.venv = os.path.join(cls.scratch.name, "venv")
        # No index: whatever wants to download something fails.
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps",
            "--disable-pip-version-check", "--config-settings", f"build-dir={support.BUILD}",
            "-w", cls.dist, support.ROOT, limit=600)
        (name,) = os.listdir(cls.dist)
        cls.wheel = os.path.join(cls.dist, name)
        run(sys.executable, "-m", "venv", cls.venv)
        run(os.path.join(cls.venv, "bin", "pip"), "install", "--quiet", "--no-index",
            "--disable-pip-version-check", cls.wheel)

    def bin(self, name):
        return os.path.join(self.venv, "bin", name)

    def activated(self, **more):
        return environment(PATH=f"{self.venv}/bin:/usr/bin:/bin", VIRTUAL_ENV=self.venv, **more)

    def test_its_name_is_true(self):
        found = re.fullmatch(r"headway_mpi-0\.[\d.]+-py3-none-manylinux_2_(\d+)_\w+\.whl",
                             os.path.basename(self.wheel))
        self.assertTrue(found, self.wheel)
        newest = 0
        for path in (self.bin("mpiexec"), f"{self.venv}/lib/libmpi_abi.so.1"):
            versions = re.findall(r"Name: GLIBC_2\.(\d+)", run("readelf", "-VW", path).stdout)
            newest = max(newest, *map(int, versions))
        self.assertLessEqual(newest, int(found[1]))

    def test_it_brings_what_a_bare_machine_lacks(self):
        needs = re.findall(r"\(NEEDED\).*\[(.*)\]",
                           run("readelf", "-dW", self.bin("mpiexec")).stdout)
        self.assertFalse([name for name in needs if "stdc++" in name], needs)
        places = run("ldd", self.bin("mpiexec")).stdout
        inside = os.path.realpath(f"{self.venv}/lib/headway")
        for line in places.splitlines():
            if "hwloc" in line or "udev" in line:
                self.assertIn(inside, os.path.realpath(line.split("=>")[1].split()[0]), line)
        self.assertIn("libhwloc", places)

    def test_the_suppressions_of_thread_sanitizer_come_along(self):
        told = run(self.bin("mpicc"), "-showme:tsan", env=self.activated()).stdout.strip()
        with open(told, encoding="utf-8") as file:
            self.assertIn("called_from_lib:libmpi_abi.so\n", file.read())

    def test_the_tools_run_with_the_environments_own_python(self):
        self.assertRegex(run(self.bin("headway"), "--version", env=self.activated()).stdout, r"\(Headway MPI\) 0\.")
        self.assertIn("VERB", run(self.bin("headway"), "cluster", "--help", env=self.activated()).stdout)
        # It has none of the packages of studies, whatever other Python there is.
        done = run(self.bin("headway"), "study", env=self.activated(), code=1)
        self.assertIn(f"{os.path.realpath(self.venv)}/bin/", os.path.realpath(os.path.dirname(done.stderr.split()[2])) + "/")
        self.assertIn("pip install typer", done.stderr)

    def test_the_extra_of_studies_names_its_packages(self):
        archive = zipfile.ZipFile(self.wheel)
        (name,) = [n for n in archive.namelist() if n.endswith("dist-info/METADATA")]
        told = email.message_from_bytes(archive.read(name)).get_all("Requires-Dist")
        names = {"typer", "rich", "numpy", "matplotlib", "pyelftools"}
        self.assertEqual({re.match(r"\w+", line)[0] for line in told}, names)
        self.assertTrue(all('extra == "study"' in line for line in told), told)

    def test_licences_come_along(self):
        names = zipfile.ZipFile(self.wheel).namelist()
        self.assertTrue([n for n in names if n.endswith("licenses/LICENSE")], names)

    def test_old_and_new_readers_find_the_licence(self):
        """Debian's pip and others before 25 show one field, what came later reads another."""
        shown = run(self.bin("pip"), "show", "--disable-pip-version-check", "headway-mpi").stdout
        told = re.findall(r"^License(?:-Expression)?: (.*)$", shown, re.M)
        self.assertEqual(set(told), {"BSD-3-Clause"}, shown)
        with zipfile.ZipFile(self.wheel) as archive:
            names = archive.namelist()
            (path,) = [name for name in names if name.endswith(".dist-info/METADATA")]
            fields = email.message_from_bytes(archive.read(path))
        self.assertEqual(fields.get_all("License"), ["BSD-3-Clause"])
        self.assertEqual(fields.get_all("License-Expression"), ["BSD-3-Clause"])
        files = [f"{os.path.dirname(path)}/licenses/{name}" for name in fields.get_all("License-File")]
        self.assertEqual(sorted(files), sorted(name for name in names if "/licenses/" in name))

    def test_an_index_gets_the_new_fields_alone(self):
        code = "import backend; print(backend.metadata(['LICENSE'], for_index=True))"
        told = run(sys.executable, "-B", "-c", code, cwd=support.ROOT / "packaging" / "wheel").stdout
        fields = email.message_from_string(told)
        self.assertIsNone(fields["License"])
        self.assertEqual(fields["License-Expression"], "BSD-3-Clause")
        self.assertEqual(fields.get_all("License-File"), ["LICENSE"])

    def test_programs_compile_and_run(self):
        source = self.folder / "hello.c"
        source.write_text(HELLO)
        (self.folder / "hello.cc").write_text(HELLO)
        for compiler, text in (("mpicc", "hello.c"), ("mpicxx", "hello.cc"), ("mpic++", "hello.cc")):
            run(compiler, text, "-o", "hello", cwd=self.folder, env=self.activated())
            for launcher in ("mpiexec", "mpirun"):
                done = run(launcher, "-n", "2", "./hello", cwd=self.folder, env=self.activated())
                self.assertEqual(sorted(done.stdout.splitlines()), ["rank 0 of 2", "rank 1 of 2"])
            self.assertEqual(run(self.folder / "hello").stdout, "rank 0 of 1\n", "its RUNPATH")

    def test_one_library_in_a_process(self):
        """The name for the linker is no second library: loading both must not give two MPIs."""
        path = f"{self.venv}/lib/libmpi_abi.so"
        with open(path, "rb") as file:
            self.assertNotEqual(file.read(4), b"\x7fELF")

    def test_find_mpi(self):
        build = self.folder / "build"
        source = support.ROOT / "tests" / "package" / "find_c"
        run("cmake", "-S", source, "-B", build, env=self.activated())
        run("cmake", "--build", build, env=self.activated())
        run("ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error",
            env=self.activated())

    def test_python_loads_it(self):
        code = ("import ctypes, sys; mpi = ctypes.CDLL(sys.prefix + '/lib/libmpi_abi.so.1'); "
                "assert mpi.MPI_Init(None, None) == 0 and mpi.MPI_Finalize() == 0")
        run(self.bin("mpiexec"), "-n", "2", self.bin("python"), "-c", code)

    def test_uninstall_leaves_nothing(self):
        copy = os.path.join(self.folder, "venv")
        run(sys.executable, "-m", "venv", copy)
        before = set(os.listdir(copy + "/bin"))
        for verb in (["install", "--no-index", self.wheel], ["uninstall", "-y", "headway-mpi"]):
            run(copy + "/bin/pip", verb[0], "--quiet", "--disable-pip-version-check", *verb[1:])
        self.assertEqual(set(os.listdir(copy + "/bin")), before)
        left = subprocess.run(["find", copy, "-name", "*mpi_abi*"], capture_output=True, text=True,
                              check=True).stdout
        self.assertEqual(left, "")


if __name__ == "__main__":
    sys.exit(support.main())
