"""The constants of Fortran's forms, from the ABI's, and how Fortran's lines are written."""

from __future__ import annotations

HANDLES = ("MPI_Comm", "MPI_Datatype", "MPI_Errhandler", "MPI_File", "MPI_Group", "MPI_Info",
           "MPI_Message", "MPI_Op", "MPI_Request", "MPI_Session", "MPI_Win")
# Fortran's texts have no NUL at their end, so these are one less than in C.
LENGTHS = "MPI_MAX_"
# Places in statuses: C's are indices from 0 (MPI_F_SOURCE).
STATUS = {"MPI_STATUS_SIZE": 8, "MPI_SOURCE": 1, "MPI_TAG": 2, "MPI_ERROR": 3}
# In the order of runtime/fortran.h; how many INTEGERs each has.
PLACES = (("MPI_BOTTOM", 0), ("MPI_IN_PLACE", 0), ("MPI_BUFFER_AUTOMATIC", 0),
          ("MPI_ERRCODES_IGNORE", 1), ("MPI_UNWEIGHTED", 1), ("MPI_WEIGHTS_EMPTY", 1))
# Also names of functions or macros of C that Fortran does not have.
LEFT_OUT = ("MPI_T_", "MPI_F_", "MPIX_")


class Constants:
    def __init__(self, abi: dict):
        self.values: dict[str, int] = {}
        self.types: dict[str, str] = {}
        for constant in abi["constants"]:
            name, text = constant["name"], constant["value"]
            if text in self.values:
                self.values[name], self.types[name] = self.values[text], self.types[text]
            else:
                self.values[name] = int(text, 0)
                self.types[name] = constant.get("type", "int")

    def names(self, type_: str) -> list[str]:
        return [name for name, has in self.types.items()
                if has == type_ and not name.startswith(LEFT_OUT)]

    def integers(self) -> list[tuple[str, int]]:
        found = [(name, self.values[name] - name.startswith(LENGTHS)) for name in self.names("int")]
        return [*STATUS.items(), *found]

    def handles(self) -> list[tuple[str, str, int]]:
        """Type, name, value."""
        return [(type_, name, self.values[name]) for type_ in HANDLES for name in self.names(type_)]


def wrapped(text: str, indent: str = "") -> str:
    """A statement of free form in lines of at most 100 columns, broken behind commas."""
    lines, line = [], indent
    for number, piece in enumerate(text.split(", ")):
        addition = piece if number == 0 else f", {piece}"
        if len(line) + len(addition) > 96 and line.strip():
            lines.append(f"{line}, &")
            line = f"{indent}    {piece}"
        else:
            line += addition
    return "\n".join([*lines, line])


def head(what: str, notice: str) -> list[str]:
    return [f"! {what}", f"! {notice}"]


def integer_parameters(constants: Constants) -> list[str]:
    return [f"  integer, parameter :: {name} = {value}" for name, value in constants.integers()]


KINDS = """  integer, parameter :: MPI_ADDRESS_KIND = selected_int_kind(18)
  integer, parameter :: MPI_COUNT_KIND = selected_int_kind(18)
  integer, parameter :: MPI_OFFSET_KIND = selected_int_kind(18)
  integer, parameter :: MPI_INTEGER_KIND = kind(0)
  integer(kind=MPI_OFFSET_KIND), parameter :: MPI_DISPLACEMENT_CURRENT = -1"""


def places(status: str) -> list[str]:
    """The variables that stand for constants of C, known by their addresses (runtime/places.c)."""
    names = [name for name, _ in PLACES]
    out = [f"  integer :: {name}" + (f"({count})" if count else "") for name, count in PLACES]
    if status == "type":
        out += ["  type(MPI_Status) :: MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE(1)"]
    else:
        out += ["  integer :: MPI_STATUS_IGNORE(MPI_STATUS_SIZE), MPI_STATUSES_IGNORE(MPI_STATUS_SIZE, 1)"]
    out += [wrapped(f"  common /MPI_FORTRAN_PLACES/ {', '.join([*names, 'MPI_STATUS_IGNORE', 'MPI_STATUSES_IGNORE'])}")]
    out += ["  character(len=1) :: MPI_ARGV_NULL(1), MPI_ARGVS_NULL(1, 1)",
            "  common /MPI_FORTRAN_TEXTS/ MPI_ARGV_NULL, MPI_ARGVS_NULL"]
    return out
