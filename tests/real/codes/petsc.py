"""PETSc from PyPI without Fortran, on Debian's OpenBLAS: `make check`, and one set of its own tests."""

import shutil

import count
import fetch
from codes.code import Code
from place import Test, Timed

VERSION = "3.26.1"
ARCH = "arch-headway"
# Its tests of stars of messages ("SF"), in all their forms: they are what carries its vectors' and matrices' messages.
SEARCH = "vec_is_sf_t*"
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
        # A copy for the timed run: `make check` removes its examples.
        tutorials = place.source / "src" / "snes" / "tutorials"
        place.make("make-ex19", *self.where(place), "ex19", folder=tutorials)
        shutil.copy(tutorials / "ex19", place.folder / "timed")

    def where(self, place):
        return f"PETSC_DIR={place.source}", f"PETSC_ARCH={ARCH}"

    def tests(self, place):
        launcher = f"MPIEXEC={' '.join(place.mpi.launcher)}"
        return [Test("check", ["make", *self.where(place), launcher, "check"], place.source, count.petsc_check),
                Test("tests", ["make", "-f", "gmakefile.test", *self.where(place), launcher, "test",
                               f"search={SEARCH}"], place.source, count.tap, 3000)]

    def timed(self, place):
        words = ["-da_grid_x", "96", "-da_grid_y", "96", "-pc_type", "jacobi", "-snes_max_it", "1", "-ksp_max_it", "400",
                 "-ksp_rtol", "1e-12", "-snes_max_linear_solve_fail", "9", "-log_view"]
        return Timed("its ex19 (a driven cavity, 96 x 96): 400 steps of GMRES on 2 ranks",
                     place.mpi.run(2, place.folder / "timed", *words), place.folder, count.petsc_seconds)
