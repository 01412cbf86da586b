"""mpif.h, for fixed and for free form: each statement on one line, from column 7 to 72."""

from __future__ import annotations

from constants import PLACES, Constants
from make_mpi import PREDEFINED

LAST_COLUMN = 72
# Options that make a DOUBLE PRECISION something else leave a kind as it is.
FUNCTIONS = (("REAL(KIND=SELECTED_REAL_KIND(15,307))", ("WTIME", "WTICK")),
             ("INTEGER(KIND=MPI_ADDRESS_KIND)", ("AINT_ADD", "AINT_DIFF")))


def statement(text: str) -> str:
    line = f"      {text}"
    if len(line) > LAST_COLUMN:
        raise ValueError(f"too long for fixed form: {line}")
    return line


def parameter(type_: str, name: str, value: str) -> list[str]:
    return [statement(f"{type_} {name}"), statement(f"PARAMETER ({name}={value})")]


def make_mpif(constants: Constants, notice: str) -> str:
    out = ["! mpif.h: MPI for Fortran 77 and later, in fixed and in free form.", f"! {notice}"]
    for kind in ("ADDRESS", "COUNT", "OFFSET"):
        out += parameter("INTEGER", f"MPI_{kind}_KIND", "SELECTED_INT_KIND(18)")
    out += parameter("INTEGER", "MPI_INTEGER_KIND", "KIND(0)")
    for name, value in constants.integers():
        out += parameter("INTEGER", name, str(value))
    for _, name, value in constants.handles():
        out += parameter("INTEGER", name, str(value))
    out += parameter("INTEGER(KIND=MPI_OFFSET_KIND)", "MPI_DISPLACEMENT_CURRENT", "-1")
    for name in ("MPI_SUBARRAYS_SUPPORTED", "MPI_ASYNC_PROTECTS_NONBLOCKING"):
        out += parameter("LOGICAL", name, ".FALSE.")
    for name, count in PLACES:
        out += [statement(f"INTEGER {name}" + (f"({count})" if count else ""))]
    out += [statement("INTEGER MPI_STATUS_IGNORE(MPI_STATUS_SIZE)"),
            statement("INTEGER MPI_STATUSES_IGNORE(MPI_STATUS_SIZE,1)")]
    # One block may be named in several statements, each of which adds to it.
    for name in (*(name for name, _ in PLACES), "MPI_STATUS_IGNORE", "MPI_STATUSES_IGNORE"):
        out += [statement(f"COMMON /MPI_FORTRAN_PLACES/ {name}")]
    out += [statement("CHARACTER(LEN=1) MPI_ARGV_NULL(1), MPI_ARGVS_NULL(1,1)"),
            statement("COMMON /MPI_FORTRAN_TEXTS/ MPI_ARGV_NULL"),
            statement("COMMON /MPI_FORTRAN_TEXTS/ MPI_ARGVS_NULL")]
    for type_, names in FUNCTIONS:
        for name in names:
            for prefix in ("MPI_", "PMPI_"):
                out += [statement(f"{type_} {prefix}{name}"), statement(f"EXTERNAL {prefix}{name}")]
    out += [statement(f"EXTERNAL MPI_{name}") for name in PREDEFINED]
    return "\n".join([*out, ""])
