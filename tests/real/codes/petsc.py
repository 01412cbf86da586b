"""PETSc from PyPI without Fortran, on Debian's OpenBLAS: `make check`, and those of its tests that are about
communication."""

import count
import fetch
from codes.code import Code
from place import Test, Timed

VERSION = "3.26.1"
ARCH = "arch-headway"
# What its tests of stars of messages, scatters, index sets, distributed arrays and matrices are called.
SEARCH = "vec_is_sf_t*,vec_vec_t*,vec_is_is_t*,dm_t*,ksp_ksp_t*,mat_t*,sys_t*"
BLAS = ("libopenblas0-serial", "libopenblas-serial-dev")


class Petsc(Code):
    name = "petsc"
    label = "PETSc"
    built = "`./configure --with-fc=0 && make`"

    def version(self, place):
        return VERSION

    def fetch(self, place):
        fetch.unpack(fetch.pypi_source(self.name, VERSION, place.downloads), place.source)
        fetch.Debian(place.root).unpacked(BLAS, place.root / "openblas")

    def build(self, place):
        blas = next((place.root / "openblas").glob("usr/lib/*/openblas-serial/libopenblas.so"))
        bin_folder = place.mpi.bin
        place.step("configure", ["./configure", f"PETSC_ARCH={ARCH}", "--with-fc=0", "--with-debugging=0", "--with-x=0",
                                 f"--with-cc={bin_folder / 'mpicc'}", f"--with-cxx={bin_folder / 'mpicxx'}",
                                 f"--with-mpiexec={' '.join(place.mpi.launcher)}", "COPTFLAGS=-O1",
                                 f"--with-blaslapack-lib={blas}", f"--with-make-np={place.jobs}"])
        place.make("make", *self.where(place), "all", limit=7200)

    def where(self, place):
        return f"PETSC_DIR={place.source}", f"PETSC_ARCH={ARCH}"

    def tests(self, place):
        launcher = f"MPIEXEC={' '.join(place.mpi.launcher)}"
        return [Test("check", ["make", *self.where(place), launcher, "check"], place.source, count.petsc_check),
                Test("tests", ["make", "-f", "gmakefile.test", *self.where(place), launcher, "test",
                               f"search={SEARCH}", "searchin="], place.source, count.tap, 3000)]
