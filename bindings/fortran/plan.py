"""Fortran's procedures, made from the table of C's functions (abi/): which there are in which form,
and in what role each argument is handed over. Facts that C's table does not have stand here as
lists, each with the reason.

A role is one of:
  number (scalar or list; rank, tag, count, key, ... in INTEGERs of some kind)
  handle, handles (a list), status, statuses
  logical, logicals
  buffer (choice; told by how it is handed over, below)
  text (in), result (a text that comes out), texts (a list), lists (of texts, for each command)
  weights, errcodes (lists in whose place a constant may stand)
  pointer (an address that comes out: TYPE(C_PTR), or an INTEGER in the old forms)
  detached (the same; the old forms have a choice buffer there that means nothing)
  value (of an attribute), state (extra state), procedure
"""

from __future__ import annotations

import dataclasses
import re

from kinds import Kinds, Parameter

# No Fortran: conversions between C's handles and numbers; tools' interface.
C_ALONE = re.compile(r"MPI_\w+_(?:toint|fromint)|MPI_T_\w+")
# Removed from mpi_f08 (MPI 5.0, chapter 16): of the old forms alone.
OLD_ALONE = {"MPI_Attr_delete", "MPI_Attr_get", "MPI_Attr_put", "MPI_Keyval_create", "MPI_Keyval_free"}
# C's own arguments, which Fortran does not have.
WITHOUT = {"MPI_Init": {"argc", "argv"}, "MPI_Init_thread": {"argc", "argv"},
           "MPI_Info_create_env": {"argc", "argv"}}
# Their names in Fortran.
NAMES = {"indx": "index"}
# Written by hand (runtime/entries_*.c): requests, callbacks, attributes, texts whose lengths are told.
BY_HAND = {
    "MPI_Wait", "MPI_Test", "MPI_Waitall", "MPI_Testall", "MPI_Waitany", "MPI_Testany", "MPI_Waitsome",
    "MPI_Testsome", "MPI_Request_get_status", "MPI_Request_get_status_all",
    "MPI_Request_get_status_any", "MPI_Request_get_status_some", "MPI_Start", "MPI_Startall",
    "MPI_Request_free", "MPI_Cancel", "MPI_Op_create", "MPI_Op_create_c",
    "MPI_Comm_create_errhandler", "MPI_File_create_errhandler", "MPI_Session_create_errhandler",
    "MPI_Win_create_errhandler", "MPI_Comm_create_keyval", "MPI_Type_create_keyval",
    "MPI_Win_create_keyval", "MPI_Keyval_create", "MPI_Comm_set_attr", "MPI_Type_set_attr",
    "MPI_Win_set_attr", "MPI_Attr_put", "MPI_Comm_get_attr", "MPI_Type_get_attr", "MPI_Win_get_attr",
    "MPI_Attr_get", "MPI_Grequest_start", "MPI_Register_datarep", "MPI_Register_datarep_c",
    "MPI_Info_get", "MPI_Info_get_string", "MPI_Session_get_nth_pset", "MPI_Info_create_env",
    "MPI_Comm_spawn", "MPI_Comm_spawn_multiple", "MPI_Init", "MPI_Init_thread", "MPI_Pcontrol",
    "MPI_Wtime", "MPI_Wtick", "MPI_Aint_add", "MPI_Aint_diff", "MPI_Abi_set_fortran_booleans",
    "MPI_Abi_get_fortran_booleans",
}
# Texts of a fixed length that come out, by the name of the argument.
RESULTS = {
    "comm_name": "MPI_MAX_OBJECT_NAME", "type_name": "MPI_MAX_OBJECT_NAME",
    "win_name": "MPI_MAX_OBJECT_NAME", "string": "MPI_MAX_ERROR_STRING",
    "version": "MPI_MAX_LIBRARY_VERSION_STRING", "name": "MPI_MAX_PROCESSOR_NAME",
    "key": "MPI_MAX_INFO_KEY", "port_name": "MPI_MAX_PORT_NAME", "datarep": "MPI_MAX_DATAREP_STRING",
}
# Blanks at the begin of these are no part of them, either (MPI 5.0, chapter 10).
STRIPPED = {"key", "value"}
WEIGHTS = {"weights", "sourceweights", "destweights"}
POINTERS = {"baseptr"}
# How a buffer is handed over (Argument.how):
#   section  one piece, told by a count and a datatype; may have gaps
#   operand  an operation's, told by a count and a datatype: copied where it has gaps
#   spread   several pieces, or an operation's whose length is told otherwise: copied where it has gaps
#   whole    may have no gaps
#   base     its first element alone counts
# Collective calls of which a buffer has a piece for each process, by the end of their names.
PIECES = {"gather": {"recvbuf"}, "gatherv": {"recvbuf"}, "scatter": {"sendbuf"}, "scatterv": {"sendbuf"},
          "allgather": {"recvbuf"}, "allgatherv": {"recvbuf"},
          "alltoall": {"sendbuf", "recvbuf"}, "alltoallv": {"sendbuf", "recvbuf"},
          "alltoallw": {"sendbuf", "recvbuf"}}
BASES = {"MPI_Get_address", "MPI_Free_mem", "MPI_Win_detach", "MPI_Fetch_and_op",
         "MPI_Compare_and_swap"}
# Each start of these has pieces of its own, which are sent one by one.
PARTITIONED = {"MPI_Psend_init", "MPI_Precv_init"}
FORTRAN_TYPES = {"int": "INTEGER", "MPI_Aint": "INTEGER(KIND=MPI_ADDRESS_KIND)",
                 "MPI_Count": "INTEGER(KIND=MPI_COUNT_KIND)",
                 "MPI_Offset": "INTEGER(KIND=MPI_OFFSET_KIND)", "double": "DOUBLE PRECISION"}
HANDLE_NAMES = {"MPI_Datatype": "Type"}


@dataclasses.dataclass(frozen=True)
class Argument:
    name: str  # in Fortran
    c: Parameter
    role: str
    const: bool
    how: str = ""  # of a buffer
    count: str = ""  # the arguments that tell a section
    type: str = ""

    @property
    def short(self) -> str:
        """Of a handle: Comm, Type, ..."""
        return HANDLE_NAMES.get(self.c.type, self.c.type.removeprefix("MPI_"))

    @property
    def is_list(self) -> bool:
        return self.c.array != ""

    @property
    def fortran_type(self) -> str:
        return FORTRAN_TYPES[self.c.type]


@dataclasses.dataclass(frozen=True)
class Procedure:
    name: str  # of C: MPI_Send, MPI_Send_c
    generic: str  # in mpi_f08
    returns: str  # "int": it is a subroutine with ierror
    arguments: tuple[Argument, ...]
    is_large: bool
    in_old: bool
    in_f08: bool
    persistent: bool  # makes a request that is started, again and again

    @property
    def lower(self) -> str:
        return self.name.removeprefix("MPI_").lower()

    @property
    def upper(self) -> str:
        return self.lower.upper()

    @property
    def c_name(self) -> str:
        return self.name.removeprefix("MPI_")

    @property
    def is_function(self) -> bool:
        return self.returns != "int"

    @property
    def has_ierror(self) -> bool:
        return not self.is_function and self.name != "MPI_Pcontrol"

    @property
    def by_hand(self) -> bool:
        return self.name in BY_HAND

    def of(self, *roles: str) -> list[Argument]:
        return [argument for argument in self.arguments if argument.role in roles]

    @property
    def has_choice(self) -> bool:
        """Buffers: in mpi_f08 they come with descriptors."""
        return bool(self.of("buffer"))

    @property
    def teller(self) -> str:
        """The argument whose handler hears of errors, or "": a file or window before a communicator."""
        return self._teller.name if self._teller else ""

    @property
    def told(self) -> str:
        """COMM, FILE, SESSION or WIN."""
        return self._teller.c.type.removeprefix("MPI_").upper() if self._teller else ""

    @property
    def _teller(self) -> Argument | None:
        for type_ in ("MPI_File", "MPI_Win", "MPI_Comm", "MPI_Session"):
            for argument in self.of("handle"):
                # In place of a new one's handle there is nothing yet; one that is freed is still there.
                if argument.c.type == type_ and argument.c.dir != "out":
                    return argument
        return None

    @property
    def request(self) -> Argument | None:
        found = [a for a in self.of("handle") if a.c.type == "MPI_Request" and a.c.dir == "out"]
        return found[0] if found else None


def role_of(function: str, parameter: Parameter) -> str:
    name, kind = parameter.name, parameter.kind
    if kind in ("handle", "status", "logical"):
        plural = {"handle": "handles", "status": "statuses", "logical": "logicals"}
        return plural[kind] if parameter.array else kind
    if kind == "function":
        return "procedure"
    if kind == "state":
        return kind
    if kind == "string":
        if parameter.depth > 1:
            return "texts" if parameter.depth == 2 else "lists"
        return "result" if parameter.dir == "out" else "text"
    if name in POINTERS:
        return "pointer"
    if name == "buffer_addr":
        return "detached"
    if name == "attribute_val":
        return "value"
    if name in ("logical_true", "logical_false"):
        return "logical"
    if parameter.type == "void":
        return "buffer"
    if name in WEIGHTS:
        return "weights"
    return "errcodes" if name == "array_of_errcodes" else "number"


def how_of(function: str, parameters: list[Parameter], at: int) -> tuple[str, str, str]:
    """Of a buffer: how it is handed over, its count, its datatype."""
    base = function.removesuffix("_c")
    name = parameters[at].name
    if base in BASES or base.endswith("_end"):
        return "base", "", ""
    if base in PARTITIONED:
        return "whole", "", ""
    bare = base.removeprefix("MPI_").removesuffix("_init").removeprefix("Neighbor_")
    bare = bare.removeprefix("Ineighbor_").lower()
    plain = bare if bare in PIECES else bare.removeprefix("i")
    rest = parameters[at + 1:]
    known = {parameter.name for parameter in parameters}
    operates = "op" in known and "win" not in known
    if operates:
        # What is received at the root alone means nothing to the others.
        counted = {"count", "datatype"} <= known and not (name == "recvbuf" and "root" in known)
        return ("operand", "count", "datatype") if counted else ("spread", "", "")
    if name in PIECES.get(plain, set()):
        return "spread", "", ""
    # The other buffer's arguments may come first: sendbuf, recvbuf, count, datatype.
    if len(rest) >= 2 and rest[0].kind == "count" and rest[0].depth == 0 \
            and rest[1].type == "MPI_Datatype":
        return "section", rest[0].name, rest[1].name
    return "whole", "", ""


def arguments_of(function: str, kinds: Kinds) -> tuple[Argument, ...]:
    parameters = kinds.parameters[function]
    texts = kinds.functions[function]["params"]
    found = []
    for at, parameter in enumerate(parameters):
        if parameter.name in WITHOUT.get(function, ()):
            continue
        role = role_of(function, parameter)
        how, count, type_ = how_of(function, parameters, at) if role == "buffer" else ("", "", "")
        found.append(Argument(NAMES.get(parameter.name, parameter.name), parameter, role,
                              texts[at].startswith("const "), how, count, type_))
    return tuple(found)


def shape(arguments: tuple[Argument, ...]) -> list[tuple[str, str]]:
    """What tells two procedures of one name apart."""
    return [(a.role, FORTRAN_TYPES.get(a.c.type, a.c.type)) for a in arguments]


def same_to_fortran(one: tuple[Argument, ...], other: tuple[Argument, ...]) -> bool:
    """No compiler could tell them apart: MPI_ADDRESS_KIND and MPI_COUNT_KIND are the same number, and
    so are all procedures."""
    def key(arguments: tuple[Argument, ...]) -> list[tuple[str, str]]:
        return [(role, "" if role == "procedure" else re.sub("ADDRESS|OFFSET", "COUNT", type_))
                for role, type_ in shape(arguments)]

    return key(one) == key(other)


def make_procedures(kinds: Kinds) -> list[Procedure]:
    found = []
    for name, function in sorted(kinds.functions.items()):
        if C_ALONE.fullmatch(name):
            continue
        base = kinds.base(name)
        is_large = base != name
        arguments = arguments_of(name, kinds)
        generic = name
        if is_large and not same_to_fortran(arguments, arguments_of(base, kinds)):
            generic = base
        has_request = any(a.c.type == "MPI_Request" and a.c.dir == "out" for a in arguments)
        persistent = name.removesuffix("_c").endswith("_init") and has_request
        found.append(Procedure(
            name, generic, function["returns"], arguments, is_large,
            in_old=not is_large, in_f08=base not in OLD_ALONE, persistent=persistent))
    return found


def check(procedures: list[Procedure], kinds: Kinds) -> list[str]:
    """What the table says and this file cannot do; empty when all is well."""
    problems = []
    names = {procedure.name for procedure in procedures}
    for listed in (BY_HAND, OLD_ALONE, WITHOUT, BASES, PARTITIONED):
        problems += [f"plan.py: no function is called {name}" for name in sorted(listed)
                     if name not in names]
    for procedure in procedures:
        if procedure.by_hand:
            continue
        if procedure.is_function:
            problems.append(f"plan.py: {procedure.name} is a function, and not written by hand")
        for argument in procedure.arguments:
            if argument.role in ("procedure", "state", "value", "texts", "lists", "errcodes"):
                problems.append(f"plan.py: {procedure.name}.{argument.name}, a {argument.role}, "
                                "needs an entry by hand")
            if argument.role == "result" and argument.name not in RESULTS:
                problems.append(f"plan.py: how long is {procedure.name}.{argument.name}?")
    problems += kinds.problems
    return problems
