#!/usr/bin/env python3
"""Names beyond the ABI in mpi.h (abi/old_names.py): they compile under every standard without a
warning, do what they did, warn by name where MPI-3.0 removed them, and leave when asked to.

usage: old_names_test.py BUILD [SANITIZERS]
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent / "abi")]
sys.dont_write_bytecode = True
from harness import job, library  # noqa: E402
from old_names import KINDS  # noqa: E402

COMPILERS = {"c": os.environ.get("CC", "cc"), "c++": os.environ.get("CXX", "c++")}
STRICT = ["-Wall", "-Wextra", "-pedantic", "-pedantic-errors", "-Werror", "-Wshadow", "-Wconversion"]
CXX_STRICT = ["-Wold-style-cast", "-Wmissing-declarations"]
STANDARDS = {"c": ("c90", "c99", "c11", "gnu17"), "c++": ("c++98", "c++11", "c++20")}
# The list of MPI-3.0, appendix "Removed interfaces", and what it names instead.
REMOVED = {
    "Address": "Get_address", "Errhandler_create": "Comm_create_errhandler",
    "Errhandler_get": "Comm_get_errhandler", "Errhandler_set": "Comm_set_errhandler",
    "Type_extent": "Type_get_extent", "Type_hindexed": "Type_create_hindexed",
    "Type_hvector": "Type_create_hvector", "Type_lb": "Type_get_extent",
    "Type_struct": "Type_create_struct", "Type_ub": "Type_get_extent",
}
CONVERSIONS = [f"{kind}_{way}" for kind in (*KINDS, "Status") for way in ("c2f", "f2c")]
problems: list[str] = []


def compile_text(folder: Path, language: str, text: str, *flags: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [COMPILERS[language], "-x", language, *flags, "-c", "-", "-o", str(folder / "text.o")],
        input=text, capture_output=True, text=True, timeout=120)


def expect(condition: bool, story: str) -> None:
    if not condition:
        problems.append(story)


def uses(names: list[str], prefix: str) -> str:
    """Takes the address of each: a macro that takes arguments, or a name that is not there, fails."""
    lines = [f"  use[{i}] = (place)&{prefix}_{name};" for i, name in enumerate(names)]
    return "\n".join(["#include <mpi.h>", "typedef void (*place)(void);", "extern place use[];",
                      "void fill(void);", "void fill(void) {", *lines, "}", ""])


def check_names(folder: Path, include: str) -> None:
    for language, standards in STANDARDS.items():
        flags = [*STRICT, *(CXX_STRICT if language == "c++" else ["-Wmissing-prototypes"])]
        for standard in standards:
            done = compile_text(folder, language, "#include <mpi.h>\nextern MPI_Fint headway_x;\n",
                                f"-std={standard}", include, *flags)
            expect(done.returncode == 0, f"{standard}, nothing used: {done.stderr}")
    for prefix in ("MPI", "PMPI"):
        done = compile_text(folder, "c", uses(CONVERSIONS, prefix), include, "-Wall", "-Werror")
        expect(done.returncode == 0, f"conversions: {done.stderr}")
        done = compile_text(folder, "c", uses(list(REMOVED), prefix), include, "-Wall",
                            "-Wno-cast-function-type")
        expect(done.returncode == 0, f"removed names: {done.stderr}")
        for old, new in REMOVED.items():
            expect(re.search(rf"{prefix}_{old} was removed in MPI-3\.0; use {prefix}_{new}\b",
                             done.stderr) is not None, f"no warning of {prefix}_{old}: {done.stderr}")
    for name in ("MPI_Comm_f2c", "MPI_Status_c2f", "MPI_Address", "MPI_Type_struct"):
        text = f"#include <mpi.h>\nint {name};\ntypedef long MPI_Fint;\nint MPI_UB;\n"
        done = compile_text(folder, "c++", text, include, "-DHEADWAY_NO_OLD_NAMES")
        expect(done.returncode == 0, f"-DHEADWAY_NO_OLD_NAMES keeps {name}: {done.stderr}")


def check_program(folder: Path, mpi: library.Headway, include: str, sanitizers: str) -> None:
    source = HERE / "old_names.c"
    sanitized = [f"-fsanitize={sanitizers}"] if sanitizers else []
    for language, standards in STANDARDS.items():
        for standard in standards:
            program = folder / f"old_names_{standard}"
            done = subprocess.run(
                [COMPILERS[language], "-x", language, f"-std={standard}", *STRICT, *sanitized, "-g",
                 "-Wno-deprecated-declarations", include, str(source), "-o", str(program),
                 f"-L{mpi.library}", f"-Wl,-rpath,{mpi.library}", "-lmpi_abi"],
                capture_output=True, text=True, timeout=120)
            expect(done.returncode == 0, f"{standard}: {done.stderr}")
            if done.returncode != 0:
                continue
            ran = job.run([str(mpi.mpiexec), "-n", "2", str(program)], mpi.environment(), 60, standard)
            expect(ran.code == 0 and ran.output.count("right") == 2, f"{standard}: code {ran.code}, {ran.output}{ran.story}")


def main() -> int:
    mpi = library.Headway(Path(sys.argv[1]))
    include = f"-I{mpi.build / 'include'}"
    with tempfile.TemporaryDirectory(prefix="headway-old-names-") as folder:
        check_names(Path(folder), include)
        check_program(Path(folder), mpi, include, sys.argv[2] if len(sys.argv) > 2 else "")
    for problem in problems:
        print(problem, file=sys.stderr)
    print("FAILED" if problems else "the old names are right")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
