"""mpi4py-fft from PyPI, on the FFTW and the mpi4py that were built before: its own tests on 1 to 4 ranks."""

import count
import fetch
from codes import python
from codes.code import Code
from place import Test, Timed

VERSION = "2.0.6"
TIMED = """\
import time
import numpy
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray
fft = PFFT(MPI.COMM_WORLD, (96, 96, 96), dtype=float, grid=(-1,))
real = newDistArray(fft, False)
real[:] = numpy.random.random(real.shape)
times = []
for _ in range(20):
    MPI.COMM_WORLD.Barrier()
    started = time.perf_counter()
    fft.backward(fft.forward(real), real)
    times.append(time.perf_counter() - started)
if MPI.COMM_WORLD.Get_rank() == 0:
    print("seconds", sorted(times)[10])
"""


class Mpi4pyFft(Code):
    name = "mpi4py-fft"
    label = "mpi4py-fft"
    built = "`pip install` of its source package"
    needs = ("fftw",)

    def version(self, place):
        return VERSION

    def fetch(self, place):
        tar = fetch.pypi_source(self.name, VERSION, place.downloads, FFTW_ROOT=self.fftw(place))
        fetch.unpack(tar, place.source)

    def fftw(self, place):
        return str(place.root / "fftw" / place.mpi.key() / "installed")

    def build(self, place):
        python.environment(place, "setuptools", "wheel", "cython>=3,<4", "pytest", "scipy", "pyfftw")
        python.pip(place, "install", place.folder / "venv", "--no-build-isolation", "--no-deps", place.source,
                   FFTW_ROOT=self.fftw(place), CC=str(place.mpi.bin / "mpicc"))
        (place.folder / "timed.py").write_text(TIMED)

    def tests(self, place):
        """Those that know of ranks, on 1 to 4 of them; those of FFTW alone, once. test_timelimit is left out: it wants a
        plan to take 10 to 20 ms. test_io has nothing without HDF5 or NetCDF, and test_speed tests nothing."""
        libraries = {"LD_LIBRARY_PATH": f"{self.fftw(place)}/lib"}
        pytest = [place.folder / "venv" / "bin" / "python", "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider",
                  "-k", "not timelimit"]

        def test(name, ranks, *modules):
            words = [*pytest, *(f"test_{module}.py" for module in modules)]
            return Test(name, place.mpi.run(ranks, *words), place.source / "tests", count.pytest, 900, libraries)

        return [test("serial", 1, "fftw", "libfft"),
                *(test(f"{ranks}-ranks", ranks, "darray", "pencil", "mpifft") for ranks in (1, 2, 3, 4))]

    def timed(self, place):
        command = place.mpi.run(2, place.folder / "venv" / "bin" / "python", place.folder / "timed.py")
        return Timed("a real transform of 96 x 96 x 96 and back on 2 ranks", command, place.folder, count.printed_seconds,
                     environment={"LD_LIBRARY_PATH": f"{self.fftw(place)}/lib"})
