"""FFTW with MPI: `make check` of its folder mpi."""

import count
import fetch
from codes.code import Code
from place import Test, Timed


class Fftw(Code):
    """Also what mpi4py-fft is built on: so it is installed, and has its threads and its shared libraries."""

    name = "fftw"
    label = "FFTW with MPI"
    built = "`./configure --enable-mpi && make`"

    def version(self, place):
        return self.version_of_tar(place, "fftw3")

    def fetch(self, place):
        fetch.unpack(fetch.Debian(place.root).source(["fftw3"], place.downloads), place.source)

    def build(self, place):
        bin_folder = place.mpi.bin
        place.step("configure", ["./configure", "--enable-mpi", "--enable-threads", "--enable-shared",
                                 "--disable-static", "--disable-fortran", "--disable-doc",
                                 f"--prefix={place.folder / 'installed'}", "CC=cc", "CFLAGS=-O2",
                                 f"MPICC={bin_folder / 'mpicc'}", f"MPIRUN={bin_folder / 'mpiexec'}"])
        place.make("make")
        place.make("install", "install")

    def tests(self, place):
        launcher = " ".join(place.mpi.launcher)
        return [Test("check", ["make", "check", f"MPIRUN={launcher}"], place.source / "mpi", count.fftw, 900)]

    def timed(self, place):
        command = place.mpi.run(2, place.source / "mpi" / "mpi-bench", "-oestimate", "-t", "0.5", "-s", "oc128x128x128")
        return Timed("a complex transform of 128 x 128 x 128 on 2 ranks", command, place.source / "mpi",
                     count.fftw_seconds)
