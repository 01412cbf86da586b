#!/usr/bin/env python3
"""What an installation consists of: its files and only those, commands that explain themselves,
pages that `man` takes, a removal that leaves nothing, and a layout that can live beside MPICH's."""

import os
import re
import shutil
import sys

import support
from support import Case, environment, install, run

COMMANDS = ("headway", "mpic++", "mpicc", "mpicxx", "mpiexec", "mpif77", "mpif90", "mpifort", "mpirun")
MODULES = {"check.f90", "logicals.f90", "make-modules.sh", "mpi.f90", "mpi_calls.f90", "mpi_constants.f90",
           "mpi_f08.f90", "mpi_f08_calls.F90", "mpi_f08_types.F90", "mpi_sizes.F90", "order", "pmpi_calls.f90",
           "pmpi_f08_calls.F90"}

FILES = {
    *(f"bin/{name}" for name in COMMANDS),
    "include/mpi.h", "include/mpif.h",
    "lib/libmpi_abi.so", "lib/libmpi_abi.so.1", "lib/libmpifort_abi.so", "lib/libmpifort_abi.so.1",
    "lib/pkgconfig/headway.pc", "lib/pkgconfig/headway-fortran.pc",
    *(f"share/headway/fortran/{name}" for name in MODULES),
    "libexec/headway/cluster-enter", "libexec/headway/cluster-probe", "libexec/headway/headway-judge", "libexec/headway/headway-record",
    "lib/headway/record/librecorder.so", "lib/headway/record/layer-abi.so", "lib/headway/record/libtrying.so",
    "lib/headway/record/try-abi.so",
    *(f"lib/headway/record/layer/{name}"
      for name in ("layer.c", "layer.h", "layer_cost.h", "layer_narrow.h", "layer_now.h", "layer_quick.h", "layer_sizes.h", "layer_tables.h", "layer_told.h", "now.h", "recorder.h", "make-layer.sh", "layer_entries.inc", "recorder_kinds.h",
                   "recorder_names.inc")),
    *(f"lib/headway/record/try/{name}"
      for name in ("layer.c", "layer_collectives.h", "layer_hash.h", "layer_puts_off.h", "layer_tables.h", "layer_test.h", "try.h", "make-layer.sh",
                   "recorder_kinds.h", "try_entries.inc", "try_kinds.h")),
    *(f"share/man/man1/{name}.1" for name in (*COMMANDS, *(f"headway-{tool}" for tool in ("advise", "cluster", "compare", "record", "study", "trace", "where")))), "share/man/man7/headway.7",
    "share/doc/headway/LICENSE", "share/doc/headway/README.md",
    "share/headway/tsan.supp",
    *(f"share/headway/cluster/{path.name}"
      for path in (support.ROOT / "tools" / "cluster").glob("*.py")),
    *(f"share/headway/python/{path.relative_to(support.ROOT / 'tools' / 'headway')}"
      for path in (support.ROOT / "tools" / "headway" / "headway").rglob("*")
      if path.suffix in (".py", ".c", ".h", ".js", ".css") or path.name.startswith("LICENSE")),
    # The study compiles the application with each MPI.
    *(f"share/headway/python/headway/programs/samr/{path.name}"
      for path in (support.ROOT / "apps" / "samr").iterdir() if path.suffix in (".c", ".h")),
}


def files_below(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*")
            if not path.is_dir() or path.is_symlink()}


class Installation(Case):
    def setUp(self):
        super().setUp()
        self.stage = self.folder / "stage"
        self.prefix = install(self.stage)

    def test_exactly_these_files(self):
        self.assertEqual(files_below(self.prefix), FILES)
        self.assertEqual([path.name for path in self.stage.iterdir()], ["opt"], "DESTDIR is kept to")

    def test_no_trace_of_the_build(self):
        """Nothing names the build folder, the source or the stage: it can be moved, and rebuilt
        elsewhere with the same text."""
        for name in FILES:
            path = self.prefix / name
            if path.read_bytes()[:4] == b"\x7fELF":
                dynamic = run("readelf", "-dW", path).stdout
                if "libmpifort_abi" in name:  # finds its neighbour
                    dynamic = re.sub(r"\(RUNPATH\)\s+Library runpath: \[\$ORIGIN\]", "", dynamic)
                self.assertNotRegex(dynamic, r"\((RPATH|RUNPATH)\)", name)
                continue
            text = path.read_text()
            for place in (support.BUILD, support.ROOT, self.stage, "/opt/headway"):
                self.assertNotIn(str(place), text, name)

    def test_runs_on_any_processor_of_the_family(self):
        """No file is compiled for the machine that builds; newer instructions are chosen at run
        time."""
        commands = (support.BUILD / "compile_commands.json").read_text()
        self.assertNotRegex(commands, r"-m(arch|cpu|tune)=")

    def test_every_command_explains_itself(self):
        for name in COMMANDS:
            for option, wanted in (("--help", r"(?i)usage: *" + re.escape(name)),
                                   ("--version", r"Headway MPI.* 0\.\d+\.\d+")):
                # mpirun is mpiexec by another name, and says so.
                wanted = wanted.replace("mpirun", "mpiexec")
                done = run(self.prefix / "bin" / name, option)
                self.assertRegex(done.stdout, wanted, f"{name} {option}")
                self.assertEqual(done.stderr, "", f"{name} {option}")

    def test_manual_pages(self):
        if not shutil.which("groff"):
            self.skipTest("groff is not installed")
        for path in sorted((self.prefix / "share" / "man").rglob("*.[17]")):
            done = run("groff", "-man", "-Tutf8", "-ww", "-P-cbou", path.name, cwd=path.parent) \
                if not path.read_text().startswith(".so ") else None
            if done is None:
                target = path.read_text().split()[1]
                self.assertTrue((self.prefix / "share" / "man" / target).exists(), path.name)
                continue
            self.assertEqual(done.stderr, "", path.name)
            self.assertIn("NAME", done.stdout)
            self.assertNotIn("@", done.stdout, f"{path.name} is filled in")
        page = run("groff", "-man", "-Tascii", "-P-cbou", "mpiexec.1",
                   cwd=self.prefix / "share" / "man" / "man1").stdout
        for option in re.findall(r"--[a-z-]+",
                                 run(self.prefix / "bin" / "mpiexec", "--help").stdout):
            self.assertIn(option, page)

    def test_the_cluster_command_finds_its_parts(self):
        done = run(self.prefix / "bin" / "headway", "cluster", "status", code=None)
        self.assertIn(done.returncode, (0, 77), done)
        self.assertFalse(list(self.prefix.rglob("__pycache__")), "it leaves nothing behind")

    def test_uninstall(self):
        manifest = support.BUILD / "install_manifest.txt"
        kept = self.prefix / "bin" / "of-somebody-else"
        kept.write_text("")
        run("cmake", f"-DMANIFEST={manifest}", "-P", support.ROOT / "cmake" / "uninstall.cmake",
            env=environment(DESTDIR=self.stage))
        self.assertEqual(files_below(self.stage), {"opt/headway/bin/of-somebody-else"})
        folders = {path.name for path in self.stage.rglob("*") if path.is_dir()}
        self.assertEqual(folders, {"opt", "headway", "bin"}, "folders of our own are gone")


class Private(Case):
    """Beside another MPI: suffixed commands, the library in a folder of its own. Configured anew, and
    given what this build has made, since none of it depends on the layout but mpiexec's idea of
    where the library is (package.private_build, a slow test, builds that too)."""

    LAYOUT = ("-DHEADWAY_SUFFIX=.headway", "-DCMAKE_INSTALL_PREFIX=/usr",
              "-DCMAKE_INSTALL_LIBDIR=lib/somewhere/headway",
              "-DCMAKE_INSTALL_INCLUDEDIR=include/somewhere/headway",
              "-DHEADWAY_PKGCONFIGDIR=lib/somewhere/pkgconfig", "-DHEADWAY_TESTS=OFF")

    def offline(self):
        """What makes a command run without a network, where that can be had."""
        words = ["unshare", "--net"]
        done = run(*words, "true", code=None)
        return words if done.returncode == 0 else []

    def configure(self, *more):
        build = self.folder / "build"
        run(*self.offline(), "cmake", "-S", support.ROOT, "-B", build, *self.LAYOUT, *more,
            "-G", support.cached("CMAKE_GENERATOR"),
            f"-DCMAKE_BUILD_TYPE={support.cached('CMAKE_BUILD_TYPE')}")
        return build

    def install(self, build):
        stage = self.folder / "stage"
        run("cmake", "--install", build, env=environment(DESTDIR=stage))
        return stage / "usr"

    def check(self, prefix, runs):
        names = {path.name for path in (prefix / "bin").iterdir()}
        self.assertEqual(names, {f"{name}.headway" for name in COMMANDS})
        self.assertTrue((prefix / "lib/somewhere/headway/libmpi_abi.so.1").exists())
        self.assertEqual([p.name for p in (prefix / "lib/somewhere").iterdir() if p.is_file()], [])
        self.assertTrue((prefix / "share/man/man1/mpicc.headway.1").exists())
        self.assertEqual(os.readlink(prefix / "bin/mpirun.headway"), "mpiexec.headway")
        # Moved as a whole, as a package's files are before they are unpacked.
        moved = self.folder / "moved"
        prefix.rename(moved)
        source = self.folder / "hello.c"
        source.write_text('#include <mpi.h>\n#include <stdio.h>\nint main(void) { char text['
                          'MPI_MAX_LIBRARY_VERSION_STRING]; int n; MPI_Init(0, 0); '
                          'MPI_Get_library_version(text, &n); puts(text); return MPI_Finalize(); }\n')
        program = self.folder / "hello"
        run(moved / "bin/mpicc.headway", source, "-o", program)
        self.assertIn("Headway", run(program).stdout)
        flags = run("pkg-config", "--cflags", "--libs", "headway",
                    env=environment(PKG_CONFIG_PATH=moved / "lib/somewhere/pkgconfig")).stdout.split()
        run("cc", source, "-o", program, *flags)
        folder = moved / "lib/somewhere/headway"
        self.assertIn("Headway", run(program, env=environment(LD_LIBRARY_PATH=folder)).stdout)
        if runs:
            done = run(moved / "bin/mpiexec.headway", "-n", "2", program)
            self.assertEqual(len(done.stdout.split("Headway")), 3, done)
            done = run(moved / "bin/mpiexec.headway", "--info")
            self.assertIn(f"library        {folder}/libmpi_abi.so.1", done.stdout)
            run(moved / "bin/headway.headway", "cluster", "--version")
            self.assertIn("headway record", run(moved / "bin/headway.headway", "record", "--help").stdout)

    def test_layout(self):
        build = self.configure()
        for name in ("lib/libmpi_abi.so.1", "lib/libmpi_abi.so", "include/mpi.h", "bin/cluster-enter",
                     "lib/libmpifort_abi.so.1", "lib/libmpifort_abi.so", "include/mpif.h",
                     *(f"share/headway/fortran/{name}" for name in MODULES),
                     "bin/cluster-probe", "bin/headway-record", "bin/headway-judge", "lib/headway/record/librecorder.so",
                     "lib/headway/record/layer-abi.so", "lib/headway/record/libtrying.so", "lib/headway/record/try-abi.so",
                     *(f"generated/record/{name}" for name in ("layer_entries.inc", "recorder_kinds.h", "recorder_names.inc",
                                                               "try_entries.inc", "try_kinds.h"))):
            (build / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(support.BUILD / name, build / name, follow_symlinks=False)
        shutil.copy2(support.BUILD / "bin/mpiexec", build / "bin/mpiexec.headway")
        (build / "bin/mpirun.headway").symlink_to("mpiexec.headway")
        self.check(self.install(build), runs=False)

    def test_whole_build(self):
        if "HEADWAY_SLOW_TESTS" not in os.environ:
            self.skipTest("it builds everything again: a slow test (package.private_build)")
        build = self.configure("-DHEADWAY_LTO=OFF")
        run(*self.offline(), "cmake", "--build", build, "-j", str(os.cpu_count()),
            "--target", "headway_installed", limit=3600)
        self.check(self.install(build), runs=True)


if __name__ == "__main__":
    sys.exit(support.main())
