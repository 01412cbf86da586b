# Copyright (c) 2026, the Headway MPI authors
#
# SPDX-License-Identifier: BSD-3-Clause

import os

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class HeadwayMpi(CMakePackage):
    """MPI library of the MPI 5.0 standard ABI in which messages travel while the program computes:
    each process has a message thread that sleeps while there is nothing to do."""

    homepage = "https://headway-mpi.invalid"
    git = "https://headway-mpi.invalid/headway.git"

    maintainers("headway")

    license("BSD-3-Clause", checked_by="headway")

    version("main", branch="main")

    variant("tests", default=False, description="Build the tests (needs GoogleTest)")
    variant("lto", default=True, description="Optimise at link time")

    # No one-sided communication and no files yet, so `provides("mpi")` would promise
    # too much: dependents of the virtual package may ask for any of these.

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.21:", type="build")
    depends_on("ninja", type="build")
    depends_on("python@3.9:", type=("build", "run"))
    depends_on("pkgconfig", type="build")
    depends_on("cli11@2.1:", type="build")
    depends_on("hwloc@2:")
    depends_on("googletest", type="build", when="+tests")
    depends_on("benchmark", type="build", when="+tests")

    conflicts("platform=darwin", msg="Linux only")
    conflicts("platform=windows", msg="Linux only")
    conflicts("%gcc@:11", msg="C++20 of GCC 12 or newer is needed")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define_from_variant("HEADWAY_TESTS", "tests"),
            self.define_from_variant("HEADWAY_LTO", "lto"),
            self.define("CMAKE_INSTALL_LIBDIR", "lib"),
        ]

    def setup_run_environment(self, env):
        env.set("MPICC", os.path.join(self.prefix.bin, "mpicc"))
        env.set("MPICXX", os.path.join(self.prefix.bin, "mpicxx"))
        env.set("MPIFC", os.path.join(self.prefix.bin, "mpifort"))

    def setup_dependent_build_environment(self, env, dependent_spec):
        self.setup_run_environment(env)
        # The wrappers call the compilers of the dependent's own build.
        env.set("HEADWAY_CC", dependent_spec.package.module.spack_cc)
        env.set("HEADWAY_CXX", dependent_spec.package.module.spack_cxx)
        # Only those that depend on Fortran have one.
        if fortran := getattr(dependent_spec.package.module, "spack_fc", None):
            env.set("HEADWAY_FC", fortran)

    def setup_dependent_package(self, module, dependent_spec):
        self.spec.mpicc = os.path.join(self.prefix.bin, "mpicc")
        self.spec.mpicxx = os.path.join(self.prefix.bin, "mpicxx")
        self.spec.mpifc = os.path.join(self.prefix.bin, "mpifort")

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        """Compiles a program and starts two ranks of it."""
        hello = join_path(self.stage.source_path, "apps", "hello", "hello.c")
        with working_dir("spack-check", create=True):
            Executable(self.prefix.bin.mpicc)(hello, "-o", "hello")
            Executable(self.prefix.bin.mpiexec)("-n", "2", "./hello")
