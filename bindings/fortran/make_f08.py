"""The module mpi_f08. It has almost no code: its specific procedures are the entries in C, those with
buffers BIND(C) with descriptors, all others as Fortran calls what has no BIND(C), which brings
optional arguments, logicals and texts without a step between.

Compilers whose descriptors are others, or whose arrays have other bounds after such a call (gfortran
before 12), get HEADWAY_NO_SECTIONS: buffers by their addresses, as in the module mpi.

  mpi_f08_types    handles, statuses, constants, callbacks, == and /=
  mpi_f08_calls    MPI_*; the generic names stand for those with counts of both widths
  pmpi_f08_calls   PMPI_*
  mpi_f08          all of it
"""

from __future__ import annotations

from constants import HANDLES, KINDS, Constants, head, integer_parameters, places, wrapped
from make_mpi import ANY_TYPE, PREDEFINED, intent
from plan import Argument, Procedure

CALLBACK_OF = {
    "user_fn": "MPI_User_function", "query_fn": "MPI_Grequest_query_function",
    "free_fn": "MPI_Grequest_free_function", "cancel_fn": "MPI_Grequest_cancel_function",
    "read_conversion_fn": "MPI_Datarep_conversion_function",
    "write_conversion_fn": "MPI_Datarep_conversion_function",
    "dtype_file_extent_fn": "MPI_Datarep_extent_function",
}
# With counts of 64 bits, too.
WIDE_CALLBACKS = {"user_fn", "read_conversion_fn", "write_conversion_fn"}


def callback_of(p: Procedure, a: Argument) -> str:
    if a.name in CALLBACK_OF:
        return CALLBACK_OF[a.name] + ("_c" if p.is_large and a.name in WIDE_CALLBACKS else "")
    # comm_copy_attr_fn, win_errhandler_fn, ...
    kind, rest = a.name.split("_", 1)
    return f"MPI_{kind.capitalize()}_{rest.removesuffix('_fn')}_function"


def is_late(p: Procedure) -> bool:
    """Its buffers are read or written after it has returned, and no request tells."""
    ends = ("_begin", "_end", "attach", "_attach_buffer", "Free_mem", "Get_address")
    return p.name.removesuffix("_c").endswith(ends) or any(a.c.type == "MPI_Win" for a in p.arguments)


def guarded(sections: str, plain: str = "") -> str:
    other = f"#else\n{plain}\n" if plain else ""
    return f"#ifndef HEADWAY_NO_SECTIONS\n{sections}\n{other}#endif"


def declared(p: Procedure, a: Argument, indent: str, sections: bool) -> str:
    dimension = "(*)" if a.is_list else ""
    way = intent(a)
    # Read or written after the call has returned.
    late = ", asynchronous" if p.request and (a.is_list or a.role == "buffer") else ""
    if a.role == "buffer" and not sections:
        return ANY_TYPE.format(indent, a.name)
    if a.role == "buffer":
        way = ", intent(in)" if a.c.dir == "in" and a.const else ""
        if is_late(p):
            late = ", asynchronous"
        return f"{indent}type(*), dimension(..){way}{late} :: {a.name}"
    if a.role in ("status", "statuses"):
        return f"{indent}type(MPI_Status){way} :: {a.name}{'(*)' if a.role == 'statuses' else ''}"
    if a.role in ("handle", "handles"):
        return f"{indent}type({a.c.type}){way}{late if a.is_list else ''} :: {a.name}{dimension}"
    if a.role == "procedure":
        return f"{indent}procedure({callback_of(p, a)}) :: {a.name}"
    if a.role in ("text", "result", "texts", "lists"):
        by_role = {"texts": "(*)", "lists": "(count, *)"}
        return f"{indent}character(len=*){way} :: {a.name}{by_role.get(a.role, '')}"
    if a.role in ("logical", "logicals"):
        return f"{indent}logical{way} :: {a.name}{dimension}"
    if a.role in ("pointer", "detached"):
        return f"{indent}type(c_ptr), intent(out) :: {a.name}"
    if a.role in ("state", "value"):
        way = "out" if a.role == "value" and "_get_" in p.name else "in"
        return f"{indent}integer(kind=MPI_ADDRESS_KIND), intent({way}) :: {a.name}"
    if a.role in ("errcodes", "weights"):
        return f"{indent}integer{way} :: {a.name}(*)"
    if a.name == "ranges":
        dimension = "(3, *)"
    return f"{indent}{a.fortran_type}{way}{late} :: {a.name}{dimension}"


def header(p: Procedure, name: str, indent: str, bind: str) -> list[str]:
    kind = "function" if p.is_function else "subroutine"
    arguments = [a.name for a in p.arguments] + (["ierror"] if p.has_ierror else [])
    return [wrapped(f"{kind} {name}({', '.join(arguments)})", indent) + bind]


def declarations(p: Procedure, name: str, indent: str, sections: bool) -> list[str]:
    lines = [declared(p, a, indent, sections) for a in p.arguments]
    if p.has_ierror:
        lines.append(f"{indent}integer, optional, intent(out) :: ierror")
    if p.is_function:
        type_ = "double precision" if p.returns == "double" else "integer(kind=MPI_ADDRESS_KIND)"
        lines.append(f"{indent}{type_} :: {name}")
    return lines


def interface(p: Procedure, prefix: str, sections: bool, indent: str = "    ") -> str:
    """The body of an interface for the entry itself; `sections`: of its buffers it gets descriptors."""
    name = f"{prefix}{p.c_name}_f08{'ts' if sections else ''}"
    bind = f' &\n{indent}    bind(C, name="{name.lower()}_")' if sections else ""
    kind = "function" if p.is_function else "subroutine"
    inner = indent + "  "
    lines = header(p, name, indent, bind) + [f"{inner}import", f"{inner}implicit none"]
    return "\n".join([*lines, *declarations(p, name, inner, sections), f"{indent}end {kind} {name}"])


def has_text_and_buffer(p: Procedure) -> bool:
    """BIND(C) and texts do not go together in all compilers: these few have a step between."""
    return p.has_choice and bool(p.of("text"))


def step(p: Procedure, prefix: str) -> tuple[str, str]:
    """The interface of the entry, where a text is characters and a length; the procedure that calls it."""
    name = f"{prefix}{p.c_name}_f08ts"
    entry = f"headway_{name.lower()}"
    text = p.of("text")[0].name
    plain = interface(p, prefix, True).replace(name, entry)
    plain = plain.replace("ierror) &", f"ierror, {text}_length) &")
    plain = plain.replace(f"character(len=*), intent(in) :: {text}",
                          f"character(kind=c_char), intent(in) :: {text}(*)")
    plain = plain.replace("      integer, optional, intent(out) :: ierror",
                          "      integer, optional, intent(out) :: ierror\n"
                          f"      integer(c_size_t), value :: {text}_length")
    arguments = [*(a.name for a in p.arguments), "ierror", f"int(len({text}), c_size_t)"]
    body = header(p, name, "  ", "") + declarations(p, name, "    ", True)
    body += [wrapped(f"call {entry}({', '.join(arguments)})", "    "), f"  end subroutine {name}"]
    return f"  interface\n{plain}\n  end interface", "\n".join(body)


SYNC = """    subroutine @F_sync_reg_f08ts(buf) bind(C, name="{lower}f_sync_reg_f08ts_")
      import
      implicit none
      type(*), dimension(..), asynchronous :: buf
    end subroutine @F_sync_reg_f08ts"""
SYNC_PLAIN = """    subroutine @F_sync_reg_f08(buf)
      import
      implicit none
{any_type}
    end subroutine @F_sync_reg_f08"""
FORTRAN_ALONE = """  interface @F_sync_reg
{sync}
  end interface @F_sync_reg
  interface @Status_f2f08
    subroutine @Status_f2f08_f08(f_status, f08_status, ierror)
      import
      implicit none
      integer, intent(in) :: f_status(MPI_STATUS_SIZE)
      type(MPI_Status), intent(out) :: f08_status
      integer, optional, intent(out) :: ierror
    end subroutine @Status_f2f08_f08
  end interface @Status_f2f08
  interface @Status_f082f
    subroutine @Status_f082f_f08(f08_status, f_status, ierror)
      import
      implicit none
      type(MPI_Status), intent(in) :: f08_status
      integer, intent(out) :: f_status(MPI_STATUS_SIZE)
      integer, optional, intent(out) :: ierror
    end subroutine @Status_f082f_f08
  end interface @Status_f082f"""


def interfaces_of(p: Procedure, prefix: str, steps: dict[str, tuple[str, str]]) -> str:
    if not p.has_choice:
        return interface(p, prefix, False)
    sections = f"    module procedure {prefix}{p.c_name}_f08ts" if p.name in steps else interface(p, prefix, True)
    return guarded(sections, interface(p, prefix, False))


def make_calls(procedures: list[Procedure], prefix: str, module: str, notice: str) -> str:
    out = head(f"{module}: the procedures {prefix}* of mpi_f08.", notice)
    out += [f"module {module}", "  use, intrinsic :: iso_c_binding, only: c_char, c_ptr, c_size_t",
            "  use mpi_f08_types", "  implicit none", "  private :: c_char, c_ptr, c_size_t"]
    own = [p for p in procedures if p.in_f08]
    steps = {p.name: step(p, prefix) for p in own if has_text_and_buffer(p)}
    out.append(guarded("\n".join(f"  private :: headway_{prefix.lower()}{name.removeprefix('MPI_').lower()}_f08ts"
                                 for name in steps)))
    for generic in sorted({p.generic for p in own}):
        name = prefix + generic.removeprefix("MPI_")
        out.append(f"  interface {name}")
        out += [interfaces_of(p, prefix, steps) for p in own if p.generic == generic]
        out.append(f"  end interface {name}")
    sync = guarded(SYNC.replace("{lower}", prefix.lower()),
                   SYNC_PLAIN.format(any_type=ANY_TYPE.format("      ", "buf")))
    out.append(FORTRAN_ALONE.format(sync=sync).replace("@", prefix))
    out.append(guarded("\n".join([*(interfaces for interfaces, _ in steps.values()), "contains",
                                  *(body for _, body in steps.values())])))
    return "\n".join([*out, f"end module {module}", ""])


# ---- types ----

ATTRIBUTES = """    subroutine MPI_@_copy_attr_function(old#, #_keyval, extra_state, &
        attribute_val_in, attribute_val_out, flag, ierror)
      import
      implicit none
      type($) :: old#
      integer :: #_keyval, ierror
      integer(kind=MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
      logical :: flag
    end subroutine MPI_@_copy_attr_function
    subroutine MPI_@_delete_attr_function(#, #_keyval, attribute_val, extra_state, ierror)
      import
      implicit none
      type($) :: #
      integer :: #_keyval, ierror
      integer(kind=MPI_ADDRESS_KIND) :: attribute_val, extra_state
    end subroutine MPI_@_delete_attr_function"""
ERRHANDLER = """    subroutine MPI_@_errhandler_function(#, error_code)
      import
      implicit none
      type(MPI_@) :: #
      integer :: error_code
    end subroutine MPI_@_errhandler_function"""
OPERATION = """    subroutine MPI_User_function{end}(invec, inoutvec, len, datatype)
      import
      implicit none
      type(c_ptr), value :: invec, inoutvec
      {integer} :: len
      type(MPI_Datatype) :: datatype
    end subroutine MPI_User_function{end}
    subroutine MPI_Datarep_conversion_function{end}(userbuf, datatype, count, filebuf, &
        position, extra_state, ierror)
      import
      implicit none
      type(c_ptr), value :: userbuf, filebuf
      type(MPI_Datatype) :: datatype
      {integer} :: count
      integer :: ierror
      integer(kind=MPI_OFFSET_KIND) :: position
      integer(kind=MPI_ADDRESS_KIND) :: extra_state
    end subroutine MPI_Datarep_conversion_function{end}"""
OTHER_CALLBACKS = """    subroutine MPI_Datarep_extent_function(datatype, extent, extra_state, ierror)
      import
      implicit none
      type(MPI_Datatype) :: datatype
      integer(kind=MPI_ADDRESS_KIND) :: extent, extra_state
      integer :: ierror
    end subroutine MPI_Datarep_extent_function
    subroutine MPI_Grequest_query_function(extra_state, status, ierror)
      import
      implicit none
      integer(kind=MPI_ADDRESS_KIND) :: extra_state
      type(MPI_Status) :: status
      integer :: ierror
    end subroutine MPI_Grequest_query_function
    subroutine MPI_Grequest_free_function(extra_state, ierror)
      import
      implicit none
      integer(kind=MPI_ADDRESS_KIND) :: extra_state
      integer :: ierror
    end subroutine MPI_Grequest_free_function
    subroutine MPI_Grequest_cancel_function(extra_state, complete, ierror)
      import
      implicit none
      integer(kind=MPI_ADDRESS_KIND) :: extra_state
      logical :: complete
      integer :: ierror
    end subroutine MPI_Grequest_cancel_function"""
COMPARED = """  elemental logical function equal_@(one, other)
    type(MPI_@), intent(in) :: one, other
    equal_@ = one%MPI_VAL == other%MPI_VAL
  end function equal_@
  elemental logical function differ_@(one, other)
    type(MPI_@), intent(in) :: one, other
    differ_@ = one%MPI_VAL /= other%MPI_VAL
  end function differ_@"""


def callbacks() -> list[str]:
    out = ["  abstract interface"]
    for kind, type_ in (("Comm", "MPI_Comm"), ("Type", "MPI_Datatype"), ("Win", "MPI_Win")):
        dummy = kind.lower() if kind != "Type" else "datatype"
        text = ATTRIBUTES.replace("@", kind).replace("#_keyval", f"{kind.lower()}_keyval")
        out.append(text.replace("old#", f"old{kind.lower()}").replace("#", dummy).replace("$", type_))
    out += [ERRHANDLER.replace("@", kind).replace("#", kind.lower())
            for kind in ("Comm", "File", "Session", "Win")]
    out.append(OPERATION.format(end="", integer="integer"))
    out.append(OPERATION.format(end="_c", integer="integer(kind=MPI_COUNT_KIND)"))
    return [*out, OTHER_CALLBACKS, "  end interface"]


def predefined() -> list[str]:
    """Callbacks that may be given as they are: entries of the library, with the interface of their kind."""
    out = []
    for name in PREDEFINED:
        kind = name.split("_", 1)[0].capitalize()
        if name.startswith("CONVERSION"):
            end = name.removeprefix("CONVERSION_FN_NULL").lower()
            out += [f"  procedure(MPI_Datarep_conversion_function{end}) :: MPI_{name}"]
        elif kind in ("Comm", "Type", "Win"):
            what = "delete" if "DELETE" in name else "copy"
            out += [f"  procedure(MPI_{kind}_{what}_attr_function) :: MPI_{name}"]
    return out


def make_types(constants: Constants, notice: str) -> str:
    out = head("mpi_f08_types: handles, statuses, constants and callbacks of mpi_f08.", notice)
    out += ["module mpi_f08_types", "  use, intrinsic :: iso_c_binding, only: c_ptr", "  implicit none",
            "  private :: c_ptr", KINDS]
    out += integer_parameters(constants)
    for type_ in HANDLES:
        out += [f"  type, bind(C) :: {type_}", "    integer :: MPI_VAL", f"  end type {type_}"]
    out += ["  type, bind(C) :: MPI_Status", "    integer :: MPI_SOURCE, MPI_TAG, MPI_ERROR",
            "    integer :: MPI_internal(5)", "  end type MPI_Status"]
    out += [f"  type({type_}), parameter :: {name} = {type_}({value})"
            for type_, name, value in constants.handles()]
    constant = "  logical, parameter :: MPI_{} = .{}."
    names = ("SUBARRAYS_SUPPORTED", "ASYNC_PROTECTS_NONBLOCKING")
    out.append(guarded(*("\n".join(constant.format(name, value) for name in names) for value in ("true", "false"))))
    out += places("type") + callbacks() + predefined()
    shorts = [type_.removeprefix("MPI_") for type_ in HANDLES]
    for operator, name in (("==", "equal"), ("/=", "differ")):
        out += [f"  interface operator({operator})"]
        out += [f"    module procedure {name}_{short}" for short in shorts]
        out += [f"  end interface operator({operator})"]
    out += [f"  private :: equal_{short}, differ_{short}" for short in shorts]
    out += ["contains"] + [COMPARED.replace("@", short) for short in shorts]
    return "\n".join([*out, "end module mpi_f08_types", ""])


def make_module(notice: str) -> str:
    out = head("mpi_f08: MPI for Fortran 2008 and later (MPI 5.0, section 19.1.2).", notice)
    out += ["module mpi_f08", "  use mpi_f08_types", "  use mpi_f08_calls", "  use pmpi_f08_calls",
            "  use mpi_sizes", "  implicit none", "  public"]
    return "\n".join([*out, "end module mpi_f08", ""])


SIZEOF = """  subroutine sizeof_{name}(x, size, ierror)
    {type}, dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
    size = storage_size(x) / 8
    if (present(ierror)) ierror = 0
  end subroutine sizeof_{name}"""


def make_sizes(notice: str) -> str:
    """MPI_Sizeof, of any rank; HEADWAY_QUAD is defined where the compiler has numbers of 128 bits."""
    whole, real = (8, 16, 32, 64), (32, 64, 128)
    sorts = [(f"{type_}{bits}", f"{type_}({kind}{bits})")
             for type_, kind, widths in (("integer", "int", whole), ("logical", "int", whole),
                                         ("real", "real", real), ("complex", "real", real))
             for bits in widths]
    sorts.append(("character", "character(len=1)"))

    def guarded(texts: list[tuple[str, str]]) -> list[str]:
        return [f"#ifdef HEADWAY_QUAD\n{text}\n#endif" if name.endswith("128") else text
                for name, text in texts]

    out = head("mpi_sizes: MPI_Sizeof, for the modules mpi and mpi_f08.", notice)
    out += ["module mpi_sizes", "  use, intrinsic :: iso_fortran_env", "  implicit none", "  private",
            "  public :: MPI_Sizeof, PMPI_Sizeof"]
    for name in ("MPI_Sizeof", "PMPI_Sizeof"):
        out += [f"  interface {name}"]
        out += guarded([(sort, f"    module procedure sizeof_{sort}") for sort, _ in sorts])
        out += [f"  end interface {name}"]
    out += ["contains"] + guarded([(sort, SIZEOF.format(name=sort, type=type_)) for sort, type_ in sorts])
    return "\n".join([*out, "end module mpi_sizes", ""])
