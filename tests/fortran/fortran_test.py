#!/usr/bin/env python3
"""Fortran, with each compiler that is on this machine: the programs of programs/ and those that call
every procedure in each form; mpifort, its modules and their folder; CMake, pkg-config; tools in C.

usage: fortran_test.py --build BUILD [unittest's arguments]
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
APPS = HERE.parents[1] / "apps"
BUILD = HERE.parents[1] / "build"
SKIPPED = 77
MPICH = pathlib.Path(os.environ.get("HEADWAY_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "headway")) / "mpich"
COMPILERS = [name for name in ("gfortran", *(f"gfortran-{n}" for n in range(9, 20)), "flang", "flang-new",
                               *(f"flang-{n}" for n in range(17, 25)),
                               *(f"flang-new-{n}" for n in range(17, 20))) if shutil.which(name)]


def versions():
    """Each version once: gfortran is one of gfortran-N, too."""
    found = {}
    for name in COMPILERS:
        told = subprocess.run([name, "--version"], capture_output=True, text=True, check=False).stdout
        found.setdefault(told.split("\n")[0].replace(name, "").strip(), name)
    return list(found.values())


def run(*words, code=0, limit=300, cwd=None, **variables):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HEADWAY_", "PMI"))}
    env.update({name: str(value) for name, value in variables.items()})
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=limit, cwd=cwd,
                          env=env, check=False, stdin=subprocess.DEVNULL)
    if code is not None and done.returncode != code:
        raise AssertionError(f"{' '.join(map(str, words))}: code {done.returncode}\n{done.stdout[-3000:]}\n"
                             f"{done.stderr[-3000:]}")
    return done


class Case(unittest.TestCase):
    kept = None  # the modules of all tests

    @classmethod
    def setUpClass(cls):
        if Case.kept is None:
            Case.kept = tempfile.TemporaryDirectory()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.mpifort = BUILD / "bin" / "mpifort"

    def compile(self, compiler, *words, **more):
        more.setdefault("HEADWAY_FORTRAN_MODULES", Case.kept.name)
        return run(self.mpifort, *words, HEADWAY_FC=compiler, cwd=self.folder, **more)

    def ranks(self, count, *words, **more):
        return run(BUILD / "bin" / "mpiexec", "-n", count, *words, cwd=self.folder, **more).stdout


class Programs(Case):
    def with_sections(self):
        """The compilers whose array sections reach the library as they are: of newer ones each has to."""
        found = []
        for compiler in versions():
            folder = pathlib.Path(self.compile(compiler, "-showme:modules").stdout.strip())
            if "array sections are copied" not in (folder / "log").read_text():
                found.append(compiler)
                continue
            told = run(compiler, "--version").stdout.split("\n")[0]
            number = int(re.search(r" (\d+)\.\d+\.\d+", told)[1])
            self.assertLess(number, 20 if "flang" in told else 12, f"{told}: {(folder / 'log').read_text()}")
        if not found:
            self.skipTest("no compiler here hands array sections over as they are")
        return found

    def try_all(self, source, *counts, words=(), options=(), wanted="ok", sections=False, compilers=None):
        for compiler in compilers or (self.with_sections() if sections else versions()):
            with self.subTest(compiler=compiler):
                program = self.folder / f"{pathlib.Path(source).stem}-{compiler}"
                self.compile(compiler, "-g", *options, source, "-o", program)
                for count in counts:
                    self.assertIn(wanted, self.ranks(count, program, *words))

    def test_sections(self):
        seed = int.from_bytes(os.urandom(2), "little")
        print(f"seed {seed}")
        self.try_all(PROGRAMS / "sections.f90", 1, words=(seed, 300), sections=True)

    def test_sections_optimised(self):
        self.try_all(PROGRAMS / "sections.f90", 1, words=(1, 300), options=("-O2",), sections=True)

    def test_reductions(self):
        self.try_all(PROGRAMS / "reductions.f90", 1, 3, 4, sections=True)

    def test_modern(self):
        self.try_all(PROGRAMS / "modern.f90", 2, 3, sections=True)

    def test_files(self):
        self.try_all(PROGRAMS / "files.f90", 1, 2, 3, sections=True)

    def test_modules_for_a_compiler_without_sections(self):
        """As older ones get them, made with a newer one."""
        source = BUILD / "generated" / "fortran-tests" / "calls_f08.f90"
        for compiler in versions():
            with self.subTest(compiler=compiler):
                for program, ranks, wanted in ((source, 1, "ok "), (HERE / "find_fortran" / "ring.f90", 3, "ring of 3")):
                    out = self.folder / f"plain-{program.stem}-{compiler}"
                    self.compile(compiler, "-g", program, "-o", out, HEADWAY_FORTRAN_SECTIONS="no")
                    self.assertIn(wanted, self.ranks(ranks, out))

    def test_components(self):
        self.try_all(PROGRAMS / "components.f90", 1, 3, sections=True)

    def test_threads(self):
        empty = self.folder / "empty.f90"
        empty.write_text("end program\n")
        compilers = [compiler for compiler in self.with_sections()  # a package of its own with some
                     if run(compiler, "-fopenmp", empty, "-o", "empty", code=None, cwd=self.folder).returncode == 0]
        if not compilers:
            self.skipTest("no compiler here has OpenMP")
        self.try_all(PROGRAMS / "threads.f90", 1, 2, options=("-O1", "-fopenmp"), compilers=compilers)

    def test_requests_that_c_completes(self):
        run(BUILD / "bin" / "mpicc", "-c", PROGRAMS / "complete_in_c.c", cwd=self.folder)
        self.try_all(PROGRAMS / "shared_requests.f90", 2, options=("complete_in_c.o",), sections=True)

    def test_what_calls_cost(self):
        """That it runs in all forms; its figures, which a busy machine spoils, are for people (docs/fortran.md)."""
        run(BUILD / "bin" / "mpicc", "-O2", "-c", PROGRAMS / "costs_of_c.c", cwd=self.folder)
        for form in ("-DMODULE=mpi_f08", "-DMODULE=mpi", "-DOLD"):
            with self.subTest(form=form):
                self.try_all(PROGRAMS / "costs.F90", 1, options=("-O2", form, "costs_of_c.o"), wanted="section")

    def test_old(self):
        self.try_all(PROGRAMS / "old.f", 1, 3)

    def test_old_mpi(self):
        self.try_all(PROGRAMS / "old_mpi.f90", 1, 3)

    def test_every_procedure(self):
        for form in ("mpif", "mpi", "f08"):
            with self.subTest(form=form):
                self.try_all(BUILD / "generated" / "fortran-tests" / f"calls_{form}.f90", 1,
                             wanted="ok ")

    def test_the_demo_has_the_same_field(self):
        """The demo in Fortran 2018, whose ghost rows are sections with gaps, against that in C++."""
        for compiler in self.with_sections():
            program = self.folder / f"pes-{compiler}"
            self.compile(compiler, "-O2", "-ffp-contract=off", APPS / "pes" / "pes_2018.f90", "-o", program)
            for problem in ("corners", "charges"):
                words = (67, 120, "--problem", problem, "--out")
                self.ranks(1, BUILD / "apps" / "pes", *words, "of_c")
                for ranks, order in ((1, "paper"), (3, "paper"), (4, "overlap")):
                    with self.subTest(compiler=compiler, problem=problem, ranks=ranks):
                        self.ranks(ranks, program, *words, "of_fortran", "--order", order)
                        self.assertEqual((self.folder / "of_fortran").read_bytes(),
                                         (self.folder / "of_c").read_bytes())

    def test_a_tool_in_c_sees_each_call_once(self):
        run(BUILD / "bin" / "mpicc", "-shared", "-fPIC", PROGRAMS / "tool.c", "-o", self.folder / "tool.so")
        for compiler in versions():
            program = self.folder / f"seen-{compiler}"
            self.compile(compiler, PROGRAMS / "seen.f90", "-o", program)
            told = self.ranks(1, "env", f"LD_PRELOAD={self.folder}/tool.so", program)
            self.assertIn("tool: 2 sends, 1 ranks, 0 types", told)

    def test_main_in_c(self):
        for compiler in versions():
            run(BUILD / "bin" / "mpicc", "-c", PROGRAMS / "main_in_c.c", cwd=self.folder)
            options = ("-Mnomain",) if "nvfortran" in compiler else ()
            self.compile(compiler, *options, "main_in_c.o", PROGRAMS / "part.f90", "-o", "both")
            self.assertIn("ok", self.ranks(1, self.folder / "both"))


@unittest.skipUnless((MPICH / "bin" / "mpiexec").exists(), "no MPICH is here (scripts/peers.sh)")
class OnMpich(Programs):
    """The same program files with MPICH's library of the standard ABI in the place of ours. Not all: null handles
    end it in MPI_File_close and MPI_Parrived, and it is told of no tool's or Fortran's values before MPI_Init."""

    def ranks(self, count, *words, **more):
        return run(MPICH / "bin" / "mpiexec", "-n", count, *words, cwd=self.folder, LD_LIBRARY_PATH=MPICH / "lib",
                   **more).stdout

    test_every_procedure = test_main_in_c = test_the_demo_has_the_same_field = None
    test_a_tool_in_c_sees_each_call_once = test_what_calls_cost = None
    test_modules_for_a_compiler_without_sections = test_files = None

    def test_requests_that_c_completes(self):
        """Which it does not tell of: they are completed by Fortran here."""
        run(BUILD / "bin" / "mpicc", "-c", PROGRAMS / "complete_in_c.c", cwd=self.folder)
        self.try_all(PROGRAMS / "shared_requests.f90", 2, words=("fortran",), options=("complete_in_c.o",), sections=True)

    def test_entries(self):
        self.assertIn("ok", self.ranks(2, BUILD / "tests" / "fortran" / "entries"))

    def test_it_is_bound_at_once(self):
        """Linkers of some systems ask for that; we may need nothing that only our own library has."""
        entries = BUILD / "tests" / "fortran" / "entries"
        self.assertIn("ok", self.ranks(1, entries, LD_BIND_NOW=1))


class Mpifort(Case):
    def setUp(self):
        super().setUp()
        self.compiler = versions()[0]
        self.modules = self.folder / "modules"
        self.source = self.folder / "hello.f90"
        self.source.write_text("program hello\n  use mpi_f08\n  call MPI_Init()\n  call MPI_Finalize()\nend program\n")

    def mpifort_says(self, *words, **more):
        more.setdefault("HEADWAY_FORTRAN_MODULES", self.modules)
        return run(self.mpifort, *words, code=None, HEADWAY_FC=self.compiler, cwd=self.folder, **more)

    def test_a_parallel_build_makes_them_once(self):
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            done = list(pool.map(lambda n: self.mpifort_says("-c", self.source, "-o", f"{n}.o"), range(6)))
        self.assertEqual([d.returncode for d in done], [0] * 6, done)
        made = [path for path in self.modules.iterdir() if path.is_dir()]
        self.assertEqual(len(made), 1, made)
        self.assertTrue((made[0] / "complete").exists())
        before = (made[0] / "mpi_f08.mod").stat().st_mtime_ns
        self.assertEqual(self.mpifort_says("-c", self.source).returncode, 0)
        self.assertEqual((made[0] / "mpi_f08.mod").stat().st_mtime_ns, before, "they are kept")

    def test_a_home_that_cannot_be_written(self):
        closed = self.folder / "closed"
        closed.write_text("")  # no folder, also for root
        said = self.mpifort_says("-c", self.source, HEADWAY_FORTRAN_MODULES=closed / "modules")
        self.assertEqual(said.returncode, 1)
        self.assertRegex(said.stderr, r"^mpifort: the modules mpi and mpi_f08 have to be made for .* and .*closed/modules "
                                      r"cannot be written\. Likely remedy: HEADWAY_FORTRAN_MODULES=FOLDER .*\n$")

    def compiler_whose(self, programs, **more):
        """A compiler whose programs end like that; the answer of mpifort."""
        wrapper = self.folder / "wrapped"
        wrapper.write_text(f"""#!/bin/sh
{self.compiler} "$@" || exit
while [ $# -gt 0 ]; do
  [ "$1" = -o ] && [ "$2" = check ] && printf '#!/bin/sh\\n{programs}\\n' >"$2"
  shift
done
exit 0
""")
        wrapper.chmod(0o755)
        return run(self.mpifort, "-c", self.source, code=None, cwd=self.folder, HEADWAY_FC=wrapper,
                   HEADWAY_FORTRAN_MODULES=self.modules, **more)

    def test_a_check_that_does_not_run_decides_nothing(self):
        said = self.compiler_whose("exit 126")
        self.assertEqual((said.returncode, said.stderr.count("\n")), (1, 1), said)
        self.assertRegex(said.stderr, r"^mpifort: a program that checks what the calls of .*wrapped .* does not run in .*"
                                      r"Likely remedy: .*HEADWAY_FORTRAN_SECTIONS=yes")
        self.assertEqual([path for path in self.modules.iterdir() if path.is_dir()], [])
        self.assertEqual(self.compiler_whose("exit 126", HEADWAY_FORTRAN_SECTIONS="no").returncode, 0)
        self.assertEqual(self.compiler_whose("echo addresses 1 0").returncode, 0)
        logs = [(path / "log").read_text() for path in self.modules.iterdir() if path.is_dir()]
        self.assertEqual([log.count("array sections are copied") for log in logs], [1, 1])

    def test_locks_that_are_not_there(self):
        tools = self.folder / "tools"
        tools.mkdir()
        (tools / "flock").write_text("#!/bin/sh\necho 'flock: 9: No locks available' >&2\nexit 1\n")
        (tools / "flock").chmod(0o755)
        path = f"{tools}:{os.environ['PATH']}"
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            done = list(pool.map(lambda n: self.mpifort_says("-c", self.source, "-o", f"{n}.o", PATH=path), range(3)))
        self.assertEqual([(d.returncode, d.stderr) for d in done], [(0, "")] * 3)
        made = [path.name for path in self.modules.iterdir() if path.is_dir()]
        self.assertEqual(len(made), 1, made)

    def test_one_compiler_by_several_names(self):
        place = shutil.which(self.compiler)
        link = self.folder / "bin" / pathlib.Path(place).name
        link.parent.mkdir()
        link.symlink_to(place)
        folders = {run(self.mpifort, "-showme:modules", HEADWAY_FC=name, HEADWAY_FORTRAN_MODULES=self.modules,
                       cwd=self.folder).stdout for name in (self.compiler, place, link, f"bin/{link.name}")}
        self.assertEqual(len(folders), 1, folders)

    def test_integers_of_8_bytes(self):
        for option in ("-fdefault-integer-8", "-finteger-4-integer-8", "-i8"):
            said = self.mpifort_says(option, "-c", self.source)
            self.assertEqual((said.returncode, said.stderr.count("\n")), (1, 1), said)
            self.assertRegex(said.stderr, rf"^mpifort: {option} makes INTEGERs of 8 bytes, .* Likely remedy: ")

    def test_modules_of_another_compiler(self):
        (self.folder / "mpi_f08.mod").write_text("of another compiler\n")
        for when in ("while they are made", "when they are there"):
            with self.subTest(when):
                said = self.mpifort_says("-c", self.source)
                self.assertEqual((said.returncode, said.stderr.count("\n")), (1, 1), said)
                self.assertRegex(said.stderr, r"^mpifort: \./mpi_f08\.mod, which is of another compiler or another MPI, "
                                              r".*Likely remedy: ")

    def test_no_such_compiler(self):
        said = run(self.mpifort, "-c", self.source, code=127, HEADWAY_FC="no-such-compiler", cwd=self.folder)
        self.assertRegex(said.stderr, r"^mpifort: there is no compiler no-such-compiler .*HEADWAY_FC=NAME\n$")

    def test_what_it_shows(self):
        folder = self.mpifort_says("-showme:modules").stdout.strip()
        self.assertTrue((pathlib.Path(folder) / "mpi.mod").exists())
        shown = self.mpifort_says("-show", "hello.f90").stdout
        self.assertRegex(shown, rf"-I{BUILD}/include -I{folder} hello\.f90 -L{folder} .*-lheadway_fortran "
                                rf"-L{BUILD}/lib .*-lmpifort_abi -lmpi_abi\n$")
        self.assertNotIn("-lmpi", self.mpifort_says("-show", "-c", "hello.f90").stdout)
        self.assertEqual(self.mpifort_says("-showme:libs").stdout, "headway_fortran mpifort_abi mpi_abi\n")
        self.assertIn(folder, self.mpifort_says("-showme:incdirs").stdout)
        self.assertIn("-lmpifort_abi", self.mpifort_says("-showme:link").stdout)
        self.assertNotIn("-showme:modules", run(BUILD / "bin" / "mpicc", "--help").stdout)

    def test_cmake_finds_it(self):
        project = self.folder / "project"
        shutil.copytree(HERE / "find_fortran", project)
        told = run("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_Fortran_COMPILER={self.compiler}",
                   f"-DMPI_Fortran_COMPILER={self.mpifort}", f"-DMPIEXEC_EXECUTABLE={BUILD}/bin/mpiexec",
                   HEADWAY_FC=self.compiler, HEADWAY_FORTRAN_MODULES=self.modules).stdout
        self.assertIn("MPI_Fortran_HAVE_F08_MODULE=TRUE", told)
        run("cmake", "--build", project / "build", HEADWAY_FORTRAN_MODULES=self.modules)
        run("ctest", "--test-dir", project / "build", "--output-on-failure", "--no-tests=error")

    def test_pkg_config_finds_it(self):
        folder = self.mpifort_says("-showme:modules").stdout.strip()
        flags = run("pkg-config", f"--define-variable=modules={folder}", "--cflags", "--libs", "headway-fortran",
                    PKG_CONFIG_PATH=BUILD / "lib" / "pkgconfig").stdout.split()
        run(self.compiler, self.source, "-o", self.folder / "hello", *flags, cwd=self.folder)
        self.ranks(1, self.folder / "hello")

    def test_meson_finds_it(self):
        if not shutil.which("meson"):
            self.skipTest("meson is not here")
        shutil.copytree(HERE / "find_fortran", self.folder / "project")
        run("meson", "setup", "build", cwd=self.folder / "project", FC=self.compiler, HEADWAY_FC=self.compiler,
            PATH=f"{BUILD}/bin:{os.environ['PATH']}", HEADWAY_FORTRAN_MODULES=self.modules)
        run("meson", "compile", "-C", "build", cwd=self.folder / "project", HEADWAY_FORTRAN_MODULES=self.modules)


def main():
    global BUILD
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=BUILD)
    options, rest = parser.parse_known_args()
    BUILD = options.build.resolve()
    if not COMPILERS:
        print("no Fortran compiler is on this machine (apt-get install gfortran)")
        return SKIPPED
    print(f"compilers: {', '.join(versions())}")
    return 0 if unittest.main(argv=[sys.argv[0], *rest], exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
