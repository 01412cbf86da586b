"""The module mpi: constants as INTEGERs, and an explicit interface of each procedure. Buffers are of
any type and rank: compilers are told so in comments of their own, since the language has no word for
a buffer that is handed over by its address."""

from __future__ import annotations

from constants import KINDS, Constants, head, integer_parameters, places, wrapped
from plan import Argument, Procedure

# The same for each compiler: a line that one does not know is a comment to it.
ANY_TYPE = """{0}!GCC$ ATTRIBUTES NO_ARG_CHECK :: {1}
{0}!DIR$ IGNORE_TKR {1}
{0}type(*), dimension(*) :: {1}"""
# Callbacks that may be given, and called.
PREDEFINED = ("COMM_DUP_FN", "COMM_NULL_COPY_FN", "COMM_NULL_DELETE_FN", "TYPE_DUP_FN", "TYPE_NULL_COPY_FN",
              "TYPE_NULL_DELETE_FN", "WIN_DUP_FN", "WIN_NULL_COPY_FN", "WIN_NULL_DELETE_FN",
              "DUP_FN", "NULL_COPY_FN", "NULL_DELETE_FN", "CONVERSION_FN_NULL", "CONVERSION_FN_NULL_C")


def intent(argument: Argument) -> str:
    """None where a constant may stand in the place of what comes out."""
    if argument.role in ("status", "statuses", "errcodes", "weights") and argument.c.dir != "in":
        return ""
    return f", intent({argument.c.dir})"


def declared(a: Argument, indent: str) -> str:
    """An argument of the old forms."""
    dimension = "(*)" if a.is_list else ""
    if a.name == "ranges":
        dimension = "(3, *)"
    if a.role in ("buffer", "detached"):
        return ANY_TYPE.format(indent, a.name)
    if a.role in ("status", "statuses"):
        size = "(MPI_STATUS_SIZE, *)" if a.role == "statuses" else "(MPI_STATUS_SIZE)"
        return f"{indent}integer{intent(a)} :: {a.name}{size}"
    if a.role == "procedure":
        return f"{indent}external :: {a.name}"
    if a.role in ("text", "result", "texts", "lists"):
        by_role = {"texts": "(*)", "lists": "(count, *)"}
        return f"{indent}character(len=*){intent(a)} :: {a.name}{by_role.get(a.role, '')}"
    if a.role in ("logical", "logicals"):
        return f"{indent}logical{intent(a)} :: {a.name}{dimension}"
    if a.role in ("handle", "handles"):
        return f"{indent}integer{intent(a)} :: {a.name}{dimension}"
    if a.role in ("pointer", "state", "value"):
        way = "" if a.role != "pointer" else ", intent(out)"
        return f"{indent}integer(kind=MPI_ADDRESS_KIND){way} :: {a.name}"
    if a.role == "errcodes":
        return f"{indent}integer :: {a.name}(*)"
    if a.role == "weights":
        return f"{indent}integer{intent(a)} :: {a.name}(*)"
    return f"{indent}{a.fortran_type}{intent(a)} :: {a.name}{dimension}"


def interface(p: Procedure, prefix: str, indent: str = "    ") -> str:
    name = prefix + p.c_name
    arguments = [a.name for a in p.arguments] + (["ierror"] if p.has_ierror else [])
    kind = "function" if p.is_function else "subroutine"
    result = ["  double precision :: " + name] if p.returns == "double" else \
        [f"  integer(kind=MPI_ADDRESS_KIND) :: {name}"] if p.is_function else []
    inner = indent + "  "
    lines = [wrapped(f"{kind} {name}({', '.join(arguments)})", indent),
             f"{inner}import", f"{inner}implicit none"]
    lines += [indent + line for line in result]
    lines += [narrow(p, a, inner) for a in p.arguments]
    lines += [f"{inner}integer, intent(out) :: ierror"] if p.has_ierror else []
    return "\n".join([*lines, f"{indent}end {kind} {name}"])


def narrow(p: Procedure, a: Argument, indent: str) -> str:
    """MPI-1's attributes are INTEGERs."""
    if p.name in ("MPI_Attr_get", "MPI_Attr_put", "MPI_Keyval_create") and a.role in ("value", "state"):
        return f"{indent}integer :: {a.name}"
    return declared(a, indent)


def cptr_twin(p: Procedure, prefix: str) -> str:
    """Where an address comes out: it may be a TYPE(C_PTR), too."""
    text = interface(p, prefix)
    name = prefix + p.c_name
    twin = text.replace(name, f"{name}_cptr")
    for a in p.of("pointer"):
        twin = twin.replace(f"integer(kind=MPI_ADDRESS_KIND), intent(out) :: {a.name}",
                            f"type(c_ptr), intent(out) :: {a.name}")
    return f"  interface {name}\n{text}\n{twin}\n  end interface {name}"


FORTRAN_ALONE = """  interface
    subroutine @F_sync_reg(buf)
      import
      implicit none
{any_type}
    end subroutine @F_sync_reg
    subroutine @Status_f2f08(f_status, f08_status, ierror)
      import
      implicit none
      integer, intent(in) :: f_status(MPI_STATUS_SIZE)
      type(MPI_Status), intent(out) :: f08_status
      integer, intent(out) :: ierror
    end subroutine @Status_f2f08
    subroutine @Status_f082f(f08_status, f_status, ierror)
      import
      implicit none
      type(MPI_Status), intent(in) :: f08_status
      integer, intent(out) :: f_status(MPI_STATUS_SIZE)
      integer, intent(out) :: ierror
    end subroutine @Status_f082f
  end interface"""


def make_constants(constants: Constants, notice: str) -> str:
    """The module of what both the interfaces and the programs need."""
    out = head("mpi_constants: constants of the module mpi, and variables in whose place C has constants.", notice)
    out += ["module mpi_constants", "  implicit none", "  public", KINDS]
    out += integer_parameters(constants)
    out += [f"  integer, parameter :: {name} = {value}" for _, name, value in constants.handles()]
    out += ["  logical, parameter :: MPI_SUBARRAYS_SUPPORTED = .false.",
            "  logical, parameter :: MPI_ASYNC_PROTECTS_NONBLOCKING = .false."]
    out += places("integers") + ["end module mpi_constants", ""]
    return "\n".join(out)


def make_calls(procedures: list[Procedure], prefix: str, module: str, notice: str) -> str:
    out = head(f"{module}: interfaces of the module mpi, {prefix}*.", notice)
    out += [f"module {module}", "  use, intrinsic :: iso_c_binding, only: c_ptr", "  use mpi_constants",
            "  use mpi_f08_types, only: MPI_Status", "  implicit none", "  private :: c_ptr"]
    plain = [p for p in procedures if p.in_old and not p.of("pointer")]
    out += ["  interface"] + [interface(p, prefix) for p in plain] + ["  end interface"]
    out += [cptr_twin(p, prefix) for p in procedures if p.in_old and p.of("pointer")]
    alone = FORTRAN_ALONE.format(any_type=ANY_TYPE.format("      ", "buf"))
    out += [alone.replace("@", prefix), f"end module {module}", ""]
    return "\n".join(out)


def make_module(notice: str) -> str:
    out = head("mpi: MPI for Fortran 90 (MPI 5.0, section 19.1.4).", notice)
    types = "MPI_Comm, MPI_Datatype, MPI_Errhandler, MPI_File, MPI_Group, MPI_Info, MPI_Message, MPI_Op, " \
            "MPI_Request, MPI_Session, MPI_Status, MPI_Win"
    out += ["module mpi", "  use mpi_constants", "  use mpi_calls", "  use pmpi_calls", "  use mpi_sizes",
            wrapped(f"  use mpi_f08_types, only: {types}, operator(==), operator(/=)"), "  implicit none", "  public"]
    out += [f"  external :: MPI_{name}" for name in PREDEFINED]
    return "\n".join([*out, "end module mpi", ""])
