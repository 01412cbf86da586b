#!/usr/bin/env python3
"""CMake's FindMPI finds an installed Headway in all the ways users point it there: projects of C and
of C++ are configured, built, and run by the mpiexec that was found."""

import sys

import support
from support import Case, environment, install, run

HERE = support.ROOT / "tests" / "package"


class FindMpi(Case):
    def setUp(self):
        super().setUp()
        self.prefix = install(self.folder / "stage")

    def try_project(self, name, *definitions, **variables):
        build = self.folder / f"build-{name}"
        env = environment(**variables)
        said = run("cmake", "-S", HERE / name, "-B", build, *definitions, env=env).stdout
        self.assertRegex(said, r"MPI_C(XX)?_VERSION=5\.0 ")
        self.assertIn(f"{self.prefix}/lib/libmpi_abi.so", said)
        run("cmake", "--build", build, env=env)
        run("ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error", env=env)
        # It must have been ours that ran them.
        cache = (build / "CMakeCache.txt").read_text()
        self.assertIn(f"MPIEXEC_EXECUTABLE:FILEPATH={self.prefix}/bin/mpiexec", cache)

    def path(self):
        return f"{self.prefix}/bin:{environment()['PATH']}"

    def test_c_by_path(self):
        self.try_project("find_c", PATH=self.path())

    def test_cxx_by_path(self):
        self.try_project("find_cxx", PATH=self.path())

    def test_c_by_prefix(self):
        self.try_project("find_c", f"-DMPI_HOME={self.prefix}")

    def test_cxx_by_wrapper(self):
        """The launcher has to be named as well: FindMPI does not look beside the wrapper."""
        self.try_project("find_cxx", f"-DMPI_CXX_COMPILER={self.prefix}/bin/mpicxx",
                         f"-DMPIEXEC_EXECUTABLE={self.prefix}/bin/mpiexec")

    def test_the_wrapper_as_compiler(self):
        """CC=mpicc: MPI is then there without any flag."""
        self.try_project_with_compiler("find_c", CC=self.prefix / "bin" / "mpicc", PATH=self.path())

    def try_project_with_compiler(self, name, **variables):
        build = self.folder / f"build-{name}"
        env = environment(**variables)
        said = run("cmake", "-S", HERE / name, "-B", build, env=env).stdout
        self.assertRegex(said, r"The C compiler identification is (GNU|Clang)")
        run("cmake", "--build", build, env=env)
        run("ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error", env=env)


if __name__ == "__main__":
    sys.exit(support.main())
