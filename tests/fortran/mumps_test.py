#!/usr/bin/env python3
"""A real program: MUMPS, a direct solver of sparse systems in Fortran and C, from Debian's source package, built
with this library's mpif90 and mpicc as its users build it (double precision, its own ordering, no ScaLAPACK, of
which small problems need nothing). Its own examples, and a Poisson problem of 8000 unknowns whose solution is
known, on 1 to 4 ranks. Sources and the build lie in ~/.cache/headway/fortran-mumps; nothing of them is in this
repository, nothing is installed. Exit code 77: no compiler, or the sources cannot be had here.

usage: mumps_test.py --build BUILD
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

CACHE = pathlib.Path(os.environ.get("HEADWAY_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "headway"))
SKIPPED = 77
PACKAGES = ("libblas3", "libblas-dev", "liblapack3", "liblapack-dev")
# Of ScaLAPACK, for the last dense block of large problems.
NOT_HERE = ("blacs_gridexit", "blacs_gridinfo", "blacs_gridinit", "descinit", "numroc", "pdgetrf", "pdgetrs",
            "pdpotrf", "pdpotrs")
SETTINGS = """LPORDDIR = $(topdir)/PORD/lib/
IPORD = -I$(topdir)/PORD/include/
LPORD = -L$(LPORDDIR) -lpord
ORDERINGSF = -Dpord
ORDERINGSC = $(ORDERINGSF)
LORDERINGS = $(LPORD)
IORDERINGSC = $(IPORD)
LIBEXT_SHARED = .so
LIBEXT = .a
FPIC_OPT = -fPIC
OUTC = -o\x20
OUTF = -o\x20
RM = /bin/rm -f
CC = {bin}/mpicc
FC = {bin}/mpif90
FL = {bin}/mpif90
AR = ar vr\x20
RANLIB = ranlib
LIBPAR = {folder}/not_here.o -L{libraries}/lapack -L{libraries}/blas -llapack -Wl,-rpath,{libraries}/lapack:{libraries}/blas
LIBBLAS = -L{libraries}/blas -lblas
LIBOTHERS = -lpthread
CDEFS = -DAdd_
OPTF = -O1
OPTL = -O1
OPTC = -O1
INCS =
LIBS = $(LIBPAR)
LIBSEQNEEDED =
"""
SIDE = 20  # of the cube of the Poisson problem


class Missing(Exception):
    """Why there is nothing to test."""


def run(*words, limit=600, good=(0,), **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, errors="replace", timeout=limit,
                          check=False, **{"stdin": subprocess.DEVNULL, **more})
    if done.returncode not in good:
        raise SystemExit(f"{' '.join(map(str, words))}: code {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done


def archive(folder, *words):
    """apt-get with lists and a cache of its own, and with source packages; no root is needed."""
    lists = folder / "apt"
    options = [f"-oDir::Etc::sourcelist={lists}/all.list", "-oDir::Etc::sourceparts=/dev/null",
               f"-oDir::State::lists={lists}/lists", f"-oDir::Cache={lists}/cache", "-oAPT::Sandbox::User=",
               "-oDebug::NoLocking=1", "-qq"]
    try:
        if not (lists / "ready").exists():
            told = run("apt-get", "indextargets", "--format", "$(SITE) $(RELEASE) $(COMPONENT)", "Created-By: Packages")
            sources = sorted(set(told.stdout.split("\n")) - {""})
            for part in ("lists/partial", "cache/archives/partial"):
                (lists / part).mkdir(parents=True, exist_ok=True)
            (lists / "all.list").write_text("".join(f"deb {line}\ndeb-src {line}\n" for line in sources))
            run("apt-get", *options, "update")
            (lists / "ready").touch()
        run("apt-get", *options, *words, cwd=folder)
    except (OSError, SystemExit, subprocess.TimeoutExpired) as error:
        raise Missing(f"apt-get {' '.join(words)} does not work here: {str(error)[-300:]}") from None


def fetched():
    """The folder with MUMPS's tar file, and BLAS and LAPACK."""
    folder = CACHE / "fortran-mumps"
    folder.mkdir(parents=True, exist_ok=True)
    if not list(folder.glob("mumps_*.orig.tar.*")):
        archive(folder, "source", "--download-only", "--tar-only", "mumps")
    if not (folder / "libraries").exists():
        archive(folder, "download", *PACKAGES)
        for package in folder.glob("*.deb"):
            run("dpkg", "-x", package, folder / "libraries.new")
        (folder / "libraries.new").rename(folder / "libraries")
    return folder


def built(build, folder):
    """The folder of the examples, built anew: a build of an older library would tell of that."""
    place = folder / "build"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    run("tar", "-xf", next(folder.glob("mumps_*.orig.tar.*")), "-C", place, "--strip-components=1")
    stub = '#define S(name) void name##_(void) { __builtin_trap(); }\n' + "".join(f"S({name})\n" for name in NOT_HERE)
    (place / "not_here.c").write_text(stub)
    run("gcc", "-c", "not_here.c", cwd=place)
    libraries = next((folder / "libraries").glob("usr/lib/*/blas")).parent
    (place / "Makefile.inc").write_text(SETTINGS.format(bin=build / "bin", folder=place, libraries=libraries))
    run("make", "d", limit=3000, cwd=place)
    return place / "examples"


def poisson():
    """A cube of points, each with its six neighbours; the solution is 1 everywhere."""
    number = lambda point: (point[0] * SIDE + point[1]) * SIDE + point[2] + 1  # noqa: E731
    rows, right = [], {}
    for at in ((i, j, k) for i in range(SIDE) for j in range(SIDE) for k in range(SIDE)):
        entries = {number(at): 6.5}
        for axis in range(3):
            for way in (-1, 1):
                beside = tuple(x + way * (a == axis) for a, x in enumerate(at))
                if 0 <= beside[axis] < SIDE:
                    entries[number(beside)] = -1.0
        rows += [f"{number(at)} {column} {value}" for column, value in entries.items()]
        right[number(at)] = sum(entries.values())
    return "\n".join([f"{SIDE ** 3} :N", f"{len(rows)} :NNZ", *rows, *(str(right[n]) for n in sorted(right)), ""])


def solution(launcher, ranks, program, text, folder):
    (folder / "input").write_text(text)
    with open(folder / "input", encoding="ascii") as given:
        said = run(launcher, "-n", ranks, program, limit=200, stdin=given, cwd=folder).stdout
    found = re.search(r"Solution is((?:\s+-?\d*\.\d+(?:E[-+]\d+)?)+)", said)
    return [float(value) for value in found[1].split()] if found else said[-500:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build.resolve()
    launcher = build / "bin" / "mpiexec"
    try:
        if not shutil.which("gfortran"):
            raise Missing("no gfortran is on this machine (apt-get install gfortran)")
        examples = built(build, fetched())
    except Missing as why:
        print(f"skipped: {why}")
        return SKIPPED
    wrong = 0
    problems = {"its own": ((examples / "input_simpletest_real").read_text(), [1.0, 2.0, 3.0, 4.0, 5.0]),
                "poisson": (poisson(), [1.0] * SIDE ** 3)}
    for ranks in (1, 2, 3, 4):
        for name, (text, wanted) in problems.items():
            got = solution(launcher, ranks, examples / "dsimpletest", text, examples)
            right = len(got) == len(wanted) and all(abs(a - b) < 1e-9 for a, b in zip(got, wanted))
            print(f"{'ok    ' if right else 'FAILED'} {name}, {ranks} ranks" + ("" if right else f": {got[:300]}"))
            wrong += not right
    said = run(launcher, "-n", 3, examples / "c_example", cwd=examples).stdout
    right = re.search(r"Solution is : \(\s*1\.00\s+2\.00\)", said)
    print(f"{'ok    ' if right else 'FAILED'} C's example, 3 ranks" + ("" if right else f": {said[-300:]}"))
    return 1 if wrong or not right else 0


if __name__ == "__main__":
    sys.exit(main())
