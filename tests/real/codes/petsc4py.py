"""petsc4py from PyPI, on the PETSc and the mpi4py that were built before: its own tests on 1 to 4 ranks."""

import count
import fetch
from codes import petsc, python
from codes.code import Code
from place import Test

VERSION = petsc.VERSION


class Petsc4py(Code):
    name = "petsc4py"
    label = "petsc4py"
    built = "`pip install` of its source package"
    needs = ("petsc",)

    def version(self, place):
        return VERSION

    def fetch(self, place):
        # With a PETSC_DIR it does not ask for PyPI's petsc, which would be built a second time.
        tar = fetch.pypi_source(self.name, VERSION, place.downloads, PETSC_DIR=str(place.downloads))
        fetch.unpack(tar, place.source)

    def build(self, place):
        of_petsc = place.root / "petsc" / place.mpi.key() / "source"
        python.environment(place, "setuptools", "wheel", "cython>=3,<4")
        # Unoptimized: its one file takes a quarter of an hour else.
        python.pip(place, "install", place.folder / "venv", "--no-build-isolation", "--no-deps", place.source,
                   PETSC_DIR=str(of_petsc), PETSC_ARCH=petsc.ARCH, CFLAGS="-O0 -g0")

    def tests(self, place):
        words = [place.folder / "venv" / "bin" / "python", "-B", "runtests.py", "--no-builddir"]
        return [Test(f"{ranks}-ranks", place.mpi.run(ranks, *words), place.source / "test", count.unittest, 900)
                for ranks in (1, 2, 3, 4)]
