"""mpiexec --check: which MPI functions a program needs that are not there."""

import os
import re
import shutil
import subprocess

from harness import Paths, Skipped, cache, case, environment, equal, expect, folder, run

CC = os.environ.get("CC", "cc")


def prefix():
    found = os.path.dirname(os.path.dirname(Paths.mpiexec))
    if not os.path.exists(f"{found}/lib/libmpi_abi.so.1"):
        raise Skipped(f"there is no library in {found}/lib")
    return found


def build(target, text, *flags):
    """Makes a program or library of C, linked to ours."""
    with open(f"{prefix()}/lib/libmpi_abi.so.1", "rb") as file:
        if re.search(rb"__[at]san_init", file.read()):
            raise Skipped("a program cannot be linked to a library that wants a sanitizer's runtime")
    source = target + ".c"
    with open(source, "w", encoding="ascii") as file:
        file.write(text)
    subprocess.run([CC, source, "-o", target, f"-I{prefix()}/include", f"-L{prefix()}/lib", *flags],
                   check=True)
    return target


def unsupported():
    """A function of the ABI that is not written yet, or none."""
    table = os.path.join(prefix(), "generated", "settings", "abi_functions.h")
    with open(table, encoding="ascii") as file:
        return re.findall(r'\{"(\w+)", false\}', file.read())


@case
def check_of_a_complete_program():
    with folder() as path:
        program = build(path + "/a", "#include <mpi.h>\nint main(void) { MPI_Init(0, 0); "
                        "PMPI_Barrier(MPI_COMM_WORLD); return MPI_Finalize(); }\n", "-lmpi_abi")
        result = run("--check", program)
        equal(result.code, 0, "exit code", result)
        equal(result.out, f"{program} needs 3 functions of MPI: all are there\n", "the answer", result)
        result = run("--check", "-wdir", path, "a")
        equal(result.code, 0, "seen from its folder", result)


@case
def check_of_functions_that_are_never_called():
    """A program that links what is not written yet runs, which the answer and its code say."""
    missing = unsupported()
    if len(missing) < 2:
        raise Skipped("all functions are there")
    with folder() as path:
        for number in (1, 2):
            names = missing[:number]
            text = ("#include <mpi.h>\nstatic void never(void) { "
                    + " ".join(f"((void (*)(void)){name})();" for name in names)
                    + " }\nint main(int n, char **v) { MPI_Init(&n, &v); if (n > 1) never(); "
                    "return MPI_Finalize(); }\n")
            # Bound at the start, so that a function that is found nowhere would end it.
            program = build(path + f"/a{number}", text, "-w", "-lmpi_abi", "-Wl,-z,now")
            equal(run("-n", "2", program).code, 0, "the program runs")
            result = run("--check", program)
            equal(result.code, 0, "exit code", result)
            expect(f"needs {number + 2} functions of MPI: {number} of them" in result.out
                   and "as long as it does not call" in result.out, "the answer", result)
            for name in names:
                expect(re.search(rf"  {name} .*MPI_ERR_UNSUPPORTED_OPERATION$", result.out, re.M),
                       f"{name} in the answer", result)


@case
def check_of_missing_functions():
    """Of a program, and of a library that it loads; and what it has itself is not missing."""
    with folder() as path:
        build(path + "/libinner.so", "void MPIX_Of_inner(void);\nvoid inner(void) { MPIX_Of_inner(); }\n",
              "-shared", "-fPIC", "-Wl,-soname,libinner.so")
        program = build(
            path + "/a", "#include <mpi.h>\nvoid inner(void), MPIX_Of_others(void), mpi_send_(void);\n"
            "void MPIX_Own(void) {}\nextern void MPIX_Weak(void) __attribute__((weak));\n"
            "int main(void) { MPIX_Own(); inner(); MPIX_Of_others(); mpi_send_(); if (MPIX_Weak) "
            "MPIX_Weak(); return MPI_Finalize(); }\n",
            f"-L{path}", "-linner", "-lmpi_abi", f"-Wl,-rpath,{path}",
            "-Wl,--unresolved-symbols=ignore-all", "-Wl,--export-dynamic")
        result = run("--check", program)
        equal(result.code, 1, "exit code", result)
        for text in (r"MPIX_Of_inner .*no function of the standard ABI.* \(needed by .*/libinner.so\)",
                     "MPIX_Of_others .*no function of the standard ABI",
                     "mpi_send_ .*of Fortran"):
            expect(re.search(text, result.out), f"/{text}/ in the answer", result)
        for name in ("MPIX_Own", "MPIX_Weak", "MPI_Finalize"):
            expect(name not in result.out, f"nothing about {name}", result)
        os.chmod(path + "/libinner.so", 0o644)  # a library by itself, which is no program
        result = run("--check", path + "/libinner.so")
        equal(result.code, 1, "exit code of the library", result)
        expect("  MPIX_Of_inner " in result.out, "its function", result)
        os.unlink(path + "/libinner.so")
        result = run("--check", program)
        equal(result.code, 1, "exit code without the library", result)
        expect("libinner.so  is found nowhere" in result.out, "the library", result)


@case
def check_of_another_library_behind_an_rpath():
    """An RPATH, also of a library that the program needs, is stronger than mpiexec."""
    with folder() as path:
        os.mkdir(path + "/other")
        shutil.copy(f"{prefix()}/lib/libmpi_abi.so.1", path + "/other/")
        build(path + "/libinner.so", "#include <mpi.h>\nint inner(void) { return MPI_Init(0, 0); }\n",
              "-shared", "-fPIC", "-Wl,-soname,libinner.so", "-lmpi_abi",
              "-Wl,--disable-new-dtags", f"-Wl,-rpath,{path}/other")
        text = "int inner(void);\nint main(void) { return inner(); }\n"
        flags = (f"-L{path}", "-linner", f"-Wl,-rpath,{path}", f"-Wl,-rpath-link,{prefix()}/lib")
        program = build(path + "/a", text, *flags)
        result = run("--check", program)
        equal(result.code, 1, "exit code", result)
        expect(f"{path}/other/libmpi_abi.so.1  would be loaded in the place of Headway's" in result.out,
               "the library", result)
        result = run("--library", "program", "--check", program)
        equal(result.code, 0, "if the program's own library is wanted", result)


@case
def check_of_programs_without_mpi():
    with folder() as path:
        script = path + "/script"
        with open(script, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\n")
        os.chmod(script, 0o755)
        for program, text in ((script, "a script's needs"), ("/bin/true", "by itself")):
            result = run("--check", program)
            equal(result.code, 0, f"exit code of {program}", result)
            expect(text in result.out, f"{text!r} in the answer", result)
        result = run("--check", path + "/none")
        equal(result.code, 127, "a file that is not there", result)


@case
def check_of_a_program_of_open_mpi():
    open_mpi = cache("openmpi")
    with folder() as path:
        with open(path + "/a.c", "w", encoding="ascii") as file:
            file.write("#include <mpi.h>\nint main(void) { return MPI_Finalize(); }\n")
        done = subprocess.run([f"{open_mpi}/bin/mpicc", path + "/a.c", "-o", path + "/a"],
                              env=environment(OPAL_PREFIX=open_mpi), capture_output=True, text=True)
        equal(done.returncode, 0, f"Open MPI's mpicc: {done.stderr}")
        result = run("--check", path + "/a")
        equal(result.code, 1, "exit code", result)
        expect("Open MPI's own ABI and has to be built again" in result.out, "the answer", result)
