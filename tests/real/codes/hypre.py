"""hypre: `make check`, and the regression tests that its developers run (AUTOTEST/runtests-*)."""

import count
import fetch
from codes.code import Code
from place import Test, Timed

SETS = ("struct", "sstruct", "ij", "lobpcg", "ams")


class Hypre(Code):
    name = "hypre"
    label = "hypre"
    built = "`./configure && make && make test`"

    def version(self, place):
        return self.version_of_tar(place, "hypre")

    def fetch(self, place):
        fetch.unpack(fetch.Debian(place.root).source(["hypre"], place.downloads), place.source)

    def build(self, place):
        src, bin_folder = place.source / "src", place.mpi.bin
        place.step("configure", ["./configure", "--disable-fortran", f"CC={bin_folder / 'mpicc'}",
                                 f"CXX={bin_folder / 'mpicxx'}"], src)
        place.make("make", folder=src)
        place.make("make-ij", "ij", folder=src / "test")

    def build_tests(self, place):
        place.make("make-test", "test", folder=place.source / "src")

    def tests(self, place):
        src, launcher = place.source / "src", " ".join(place.mpi.launcher)
        out = [Test("check", ["make", "check", f"CHECKRUN={launcher} -n 1"], src, count.hypre_check(src / "test"))]
        for name in SETS:
            # Their scripts say sh, and are written for bash.
            script = (f'rm -f TEST_{name}/*.err TEST_{name}/*.out*; for test in TEST_{name}/*.sh; do '
                      f'bash ./runtest.sh -rtol 1e-6 -atol 1e-6 -mpi "{launcher} -n" "$test"; done; '
                      f'bash ./checktest.sh TEST_{name}')
            out.append(Test(name, ["bash", "-c", script], src / "test", count.hypre, 900))
        return out

    def timed(self, place):
        command = place.mpi.run(2, "./ij", "-n", "48", "48", "48", "-P", "2", "1", "1", "-solver", "1")
        return Timed("AMG-PCG, Laplace, 48 x 48 x 48, on 2 ranks: setup and solve", command,
                     place.source / "src" / "test", count.hypre_seconds)
