"""A program of each form that calls every procedure (tests/fortran): with null handles, by MPI_ and by
PMPI_, and in mpi_f08 with ierror and without. It compiles, links and runs only if all interfaces, all
entries and their arguments fit; and what takes a handle that cannot be null has to say so."""

from __future__ import annotations

from constants import wrapped
from make_f08 import callback_of
from plan import Argument, Procedure

# They start or end what the others need, read a file of the test's, or free what is not theirs.
NOT_CALLED = {"MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Abort", "MPI_Session_init",
              "MPI_Comm_join", "MPI_Free_mem", "MPI_Buffer_attach", "MPI_Buffer_detach",
              "MPI_Buffer_iflush", "MPI_Grequest_start", "MPI_Win_detach"}
# Null is an error for these wherever it comes in ...
NEVER_NULL = {"MPI_Comm", "MPI_Group", "MPI_Session", "MPI_Win"}
# ... but here, where nothing is wrong or nothing is looked at.
MAY_BE_NULL = {"MPI_Group_free", "MPI_Comm_free", "MPI_Comm_get_name", "MPI_Win_get_name"}
ELEMENTS = 40
NULLS = {"MPI_Datatype": "MPI_DATATYPE_NULL"}


def null_of(type_: str) -> str:
    return NULLS.get(type_, type_.upper() + "_NULL")


def variable(p: Procedure, a: Argument, is_f08: bool) -> list[str]:
    """Its declaration, and its first value."""
    size = f"({ELEMENTS})"
    many = size if a.is_list else ""
    if a.name == "ranges":
        many = f"(3, {ELEMENTS})"
    if a.role == "buffer" or (a.role == "detached" and not is_f08):
        return [f"integer :: {a.name}{size}", f"{a.name} = 0"]
    if a.role in ("pointer", "detached"):
        return [f"type(c_ptr) :: {a.name}" if is_f08 else f"integer(kind=MPI_ADDRESS_KIND) :: {a.name}"]
    if a.role in ("status", "statuses"):
        if is_f08:
            return [f"type(MPI_Status) :: {a.name}{size if a.role == 'statuses' else ''}"]
        return [f"integer :: {a.name}(MPI_STATUS_SIZE{', ' + str(ELEMENTS) if a.role == 'statuses' else ''})",
                f"{a.name} = 0"]
    if a.role in ("handle", "handles"):
        type_ = f"type({a.c.type})" if is_f08 else "integer"
        return [f"{type_} :: {a.name}{many}", f"{a.name} = {null_of(a.c.type)}"]
    if a.role in ("logical", "logicals"):
        return [f"logical :: {a.name}{many}", f"{a.name} = .false."]
    if a.role in ("text", "result"):
        return [f"character(len=64) :: {a.name}", f"{a.name} = 'nothing'"]
    if a.role in ("texts", "lists"):
        return [f"character(len=8) :: {a.name}({'1, 1' if a.role == 'lists' else '1'})", f"{a.name} = ' '"]
    if a.role in ("state", "value"):
        narrow = not is_f08 and p.name in ("MPI_Attr_get", "MPI_Attr_put", "MPI_Keyval_create")
        return [f"integer{'' if narrow else '(kind=MPI_ADDRESS_KIND)'} :: {a.name}", f"{a.name} = 0"]
    if a.role == "procedure":
        return []
    if a.role in ("weights", "errcodes"):
        many = size
    return [f"{a.fortran_type} :: {a.name}{many}", f"{a.name} = 0"]


def actual(p: Procedure, a: Argument, is_f08: bool) -> str:
    if a.role != "procedure":
        return a.name
    return f"own_{callback_of(p, a).removeprefix('MPI_')}" if is_f08 else "nothing"


def must_fail(p: Procedure) -> bool:
    return p.name.removesuffix("_c") not in MAY_BE_NULL and \
        any(a.role == "handle" and a.c.depth == 0 and a.c.type in NEVER_NULL for a in p.arguments)


def caller(p: Procedure, prefix: str, is_f08: bool) -> str:
    """A subroutine that calls the procedure."""
    called = prefix + p.generic.removeprefix("MPI_") if is_f08 else prefix + p.c_name
    name = f"{prefix.lower()}{p.lower}"
    variables = [variable(p, a, is_f08) for a in p.arguments]
    lines = [f"  subroutine call_{name}()"]
    lines += [f"    {lines_of[0]}" for lines_of in variables if lines_of]
    lines += ["    integer :: ierror"] if p.has_ierror else []
    lines += [f"    {line}" for lines_of in variables for line in lines_of[1:]]
    arguments = [actual(p, a, is_f08) for a in p.arguments]
    if p.is_function:
        lines.append(f"    if ({called}({', '.join(arguments)}) < -1) mistakes = mistakes + 1")
        return "\n".join([*lines, f"  end subroutine call_{name}"])
    with_code = [*arguments, "ierror"] if p.has_ierror else arguments
    lines.append(wrapped(f"call {called}({', '.join(with_code)})", "    "))
    if p.has_ierror and must_fail(p):
        lines.append(f"    call expect_error('{prefix}{p.c_name}', ierror)")
    if is_f08:
        named = [f"{a.name}={value}" for a, value in zip(p.arguments, arguments)]
        lines.append(wrapped(f"call {called}({', '.join(named)})", "    "))
    return "\n".join([*lines, f"  end subroutine call_{name}"])


CALLBACKS = {
    "User_function": ("invec, inoutvec, len, datatype", ["type(c_ptr), value :: invec, inoutvec", "integer :: len",
                                                         "type(MPI_Datatype) :: datatype"]),
    "User_function_c": ("invec, inoutvec, len, datatype",
                        ["type(c_ptr), value :: invec, inoutvec", "integer(kind=MPI_COUNT_KIND) :: len",
                         "type(MPI_Datatype) :: datatype"]),
    "Grequest_query_function": ("extra_state, status, ierror",
                                ["integer(kind=MPI_ADDRESS_KIND) :: extra_state", "type(MPI_Status) :: status",
                                 "integer :: ierror"]),
    "Grequest_free_function": ("extra_state, ierror",
                               ["integer(kind=MPI_ADDRESS_KIND) :: extra_state", "integer :: ierror"]),
    "Grequest_cancel_function": ("extra_state, complete, ierror",
                                 ["integer(kind=MPI_ADDRESS_KIND) :: extra_state", "logical :: complete",
                                  "integer :: ierror"]),
    "Datarep_extent_function": ("datatype, extent, extra_state, ierror",
                                ["type(MPI_Datatype) :: datatype",
                                 "integer(kind=MPI_ADDRESS_KIND) :: extent, extra_state", "integer :: ierror"]),
}
for _end, _type in (("", "integer"), ("_c", "integer(kind=MPI_COUNT_KIND)")):
    CALLBACKS[f"Datarep_conversion_function{_end}"] = (
        "userbuf, datatype, count, filebuf, position, extra_state, ierror",
        ["type(c_ptr), value :: userbuf, filebuf", "type(MPI_Datatype) :: datatype", f"{_type} :: count",
         "integer(kind=MPI_OFFSET_KIND) :: position", "integer(kind=MPI_ADDRESS_KIND) :: extra_state",
         "integer :: ierror"])
for _kind, _type, _dummy in (("Comm", "Comm", "comm"), ("Type", "Datatype", "datatype"), ("Win", "Win", "win")):
    _keyval = f"{_kind.lower()}_keyval"
    CALLBACKS[f"{_kind}_copy_attr_function"] = (
        f"old{_kind.lower()}, {_keyval}, extra_state, attribute_val_in, attribute_val_out, flag, ierror",
        [f"type(MPI_{_type}) :: old{_kind.lower()}", f"integer :: {_keyval}, ierror",
         "integer(kind=MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out", "logical :: flag"])
    CALLBACKS[f"{_kind}_delete_attr_function"] = (
        f"{_dummy}, {_keyval}, attribute_val, extra_state, ierror",
        [f"type(MPI_{_type}) :: {_dummy}", f"integer :: {_keyval}, ierror",
         "integer(kind=MPI_ADDRESS_KIND) :: attribute_val, extra_state"])
for _kind in ("Comm", "File", "Session", "Win"):
    CALLBACKS[f"{_kind}_errhandler_function"] = (
        f"{_kind.lower()}, error_code", [f"type(MPI_{_kind}) :: {_kind.lower()}", "integer :: error_code"])


def own_callbacks() -> list[str]:
    """One of each kind; nobody calls them."""
    out = []
    for name, (dummies, lines) in CALLBACKS.items():
        out += [wrapped(f"subroutine own_{name}({dummies})", "  "), *(f"    {line}" for line in lines),
                f"  end subroutine own_{name}"]
    return out


COMMON = """  subroutine expect_error(name, code)
    character(len=*), intent(in) :: name
    integer, intent(in) :: code
    if (code == MPI_SUCCESS) then
      print '(2a)', name, ' takes null handles without an error'
      mistakes = mistakes + 1
    end if
  end subroutine expect_error"""
PROGRAM = """program calls_@
  use all_@
  implicit none
  integer :: code
  call MPI_Init(code)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, code)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, code)
"""
END = """  call MPI_Finalize(code)
  if (mistakes > 0) stop 1
  print '(a, i0, a)', 'ok ', {count}, ' procedures'
end program calls_@
"""


def make_test(procedures: list[Procedure], form: str, notice: str) -> str:
    is_f08 = form == "f08"
    mine = [p for p in procedures if (p.in_f08 if is_f08 else p.in_old)]
    callers = [(prefix, p) for prefix in ("MPI_", "PMPI_") for p in mine]
    out = [f"! calls_{form}: calls every procedure of this form once or twice.", f"! {notice}", f"module all_{form}"]
    out += ["  use, intrinsic :: iso_c_binding, only: c_ptr"] if is_f08 else []
    out += ["  implicit none", "  include 'mpif.h'"] if form == "mpif" else \
        [f"  use {'mpi_f08' if is_f08 else 'mpi'}", "  implicit none"]
    out += ["  integer, save :: mistakes = 0", "contains", COMMON]
    out += own_callbacks() if is_f08 else ["  subroutine nothing()", "  end subroutine nothing"]
    out += [caller(p, prefix, is_f08) for prefix, p in callers]
    out += [f"end module all_{form}", PROGRAM.replace("@", form).rstrip("\n")]
    out += [f"  call call_{prefix.lower()}{p.lower}()" for prefix, p in callers if p.name.removesuffix("_c") not in NOT_CALLED]
    return "\n".join([*out, END.replace("@", form).format(count=len(mine))])


def make_tests(procedures: list[Procedure], notice: str) -> dict[str, str]:
    return {f"calls_{form}.f90": make_test(procedures, form, notice) for form in ("mpif", "mpi", "f08")}
