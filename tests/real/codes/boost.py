"""Boost.MPI: built by b2, its own tests run by b2, on 1 to 48 ranks."""

import re

import count
import fetch
from codes.code import Code
from place import Test, Timed

PACKAGES = ("boost1.88", "boost1.83", "boost1.81", "boost1.74")  # one a release of Debian
CONFIG = "user-config.jam"


class Boost(Code):
    name = "boost"
    label = "Boost.MPI"
    built = "`using mpi : mpicxx ;` and `b2 --with-mpi`"

    def version(self, place):
        text = (place.source / "Jamroot").read_text()
        return re.search(r"constant BOOST_VERSION : ([\d.]+)", text)[1]

    def fetch(self, place):
        debian = fetch.Debian(place.root)
        tar = debian.source(PACKAGES, place.downloads)
        fetch.unpack(tar, place.source, ["--exclude=*/libs/*/doc", "--exclude=*/libs/math/test"])
        # Debian's sources come without what its own b2 is generated from.
        package = tar.name.partition("_")[0]
        debian.unpacked([f"lib{package}-tools-dev"], place.root / "boost" / f"{package}-tools")

    def b2(self, place, *words, launcher="mpiexec -n"):
        tar = fetch.Debian(place.root).source(PACKAGES, place.downloads).name.partition("_")[0]
        tool = place.root / "boost" / f"{tar}-tools" / "usr" / "bin" / "b2"
        config = place.source / CONFIG
        config.write_text(f"using gcc : : c++ ;\nusing mpi : {place.mpi.bin / 'mpicxx'} : : {launcher} ;\n")
        return [tool, f"-j{place.jobs}", f"--user-config={config}", "link=shared", *words]

    def build(self, place):
        place.step("headers", self.b2(place, "headers"))
        place.step("build", self.b2(place, "variant=release", "--with-mpi", "--with-serialization", "stage"))
        stage = place.source / "stage" / "lib"
        place.step("build-timed", [place.mpi.bin / "mpicxx", "-O2", "-I", place.source, "-o", place.folder / "timed",
                                   place.source / "libs" / "mpi" / "example" / "reduce_performance_test.cpp",
                                   f"-L{stage}", f"-Wl,-rpath,{stage}", "-lboost_mpi", "-lboost_serialization"])

    def build_tests(self, place):
        place.step("build-tests", self.b2(place, "testing.execute=off"), place.source / "libs" / "mpi" / "test", limit=7200)

    def tests(self, place):
        launcher = " ".join([*place.mpi.launcher, "-n"])
        # Made again even if they passed before: that is what -a asks for, and it would compile all again.
        script = 'find ../../../bin.v2/libs/mpi/test -name "*-run*" -delete; find ../../../bin.v2/libs/mpi/test -name "*.test" ' \
            '-type f -delete; exec "$@"'
        command = ["bash", "-c", script, "b2", *self.b2(place, launcher=launcher)]
        return [Test("test", command, place.source / "libs" / "mpi" / "test", count.boost, 900)]

    def timed(self, place):
        return Timed("its reduce_performance_test: 5 kinds of reduce of an int on 2 ranks, each 50,000 times",
                     place.mpi.run(2, place.folder / "timed", 50000, 1), place.folder, count.boost_seconds)
