"""The part of mpi.h that is no part of the ABI: names of the MPI standard that the ABI leaves to
headers (MPI_Fint and the conversions of handles and statuses), and what MPI-3.0 removed. All of it
is macros and inline functions over functions of the ABI, so a program that uses them runs with every
library of the ABI. Compiled with -DHEADWAY_NO_OLD_NAMES, mpi.h is the ABI's alone.
"""

KINDS = ("Comm", "Errhandler", "File", "Group", "Info", "Message", "Op", "Request", "Session", "Type",
         "Win")

# One signature of MPI-1 each, the function that took its place, and how to call that. @ is MPI or PMPI.
REMOVED = (
    ("Address", "void *location, MPI_Aint *address",
     "Get_address", "location, address"),
    ("Errhandler_create", "MPI_Handler_function *function, MPI_Errhandler *errhandler",
     "Comm_create_errhandler", "function, errhandler"),
    ("Errhandler_get", "MPI_Comm comm, MPI_Errhandler *errhandler",
     "Comm_get_errhandler", "comm, errhandler"),
    ("Errhandler_set", "MPI_Comm comm, MPI_Errhandler errhandler",
     "Comm_set_errhandler", "comm, errhandler"),
    ("Type_hindexed", "int count, int array_of_blocklengths[], MPI_Aint array_of_displacements[], "
     "MPI_Datatype oldtype, MPI_Datatype *newtype",
     "Type_create_hindexed",
     "count, array_of_blocklengths, array_of_displacements, oldtype, newtype"),
    ("Type_hvector", "int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, "
     "MPI_Datatype *newtype",
     "Type_create_hvector", "count, blocklength, stride, oldtype, newtype"),
)

STATUSES = """
typedef struct MPI_F08_status {
  MPI_Fint MPI_SOURCE;
  MPI_Fint MPI_TAG;
  MPI_Fint MPI_ERROR;
  MPI_Fint MPI_internal[5];
} MPI_F08_status;
/* Where a Fortran layer has its own MPI_STATUS_IGNORE, the ABI does not tell. */
#define MPI_F_STATUS_IGNORE ((MPI_Fint*)0)
#define MPI_F_STATUSES_IGNORE ((MPI_Fint*)0)
#define MPI_F08_STATUS_IGNORE ((MPI_F08_status*)0)
#define MPI_F08_STATUSES_IGNORE ((MPI_F08_status*)0)
"""

FORTRAN_STATUS = """
HEADWAY_INLINE int @_Status_c2f(const MPI_Status *c_status, MPI_Fint *f_status) {
  int i;
  if (!c_status || !f_status) return MPI_ERR_ARG;
  f_status[MPI_F_SOURCE] = c_status->MPI_SOURCE;
  f_status[MPI_F_TAG] = c_status->MPI_TAG;
  f_status[MPI_F_ERROR] = c_status->MPI_ERROR;
  for (i = 3; i < MPI_F_STATUS_SIZE; ++i) f_status[i] = c_status->MPI_internal[i - 3];
  return MPI_SUCCESS;
}
HEADWAY_INLINE int @_Status_f2c(const MPI_Fint *f_status, MPI_Status *c_status) {
  int i;
  if (!f_status || !c_status) return MPI_ERR_ARG;
  c_status->MPI_SOURCE = f_status[MPI_F_SOURCE];
  c_status->MPI_TAG = f_status[MPI_F_TAG];
  c_status->MPI_ERROR = f_status[MPI_F_ERROR];
  for (i = 3; i < MPI_F_STATUS_SIZE; ++i) c_status->MPI_internal[i - 3] = f_status[i];
  return MPI_SUCCESS;
}
HEADWAY_INLINE int @_Status_c2f08(const MPI_Status *c_status, MPI_F08_status *f08_status) {
  int i;
  if (!c_status || !f08_status) return MPI_ERR_ARG;
  f08_status->MPI_SOURCE = c_status->MPI_SOURCE;
  f08_status->MPI_TAG = c_status->MPI_TAG;
  f08_status->MPI_ERROR = c_status->MPI_ERROR;
  for (i = 0; i < 5; ++i) f08_status->MPI_internal[i] = c_status->MPI_internal[i];
  return MPI_SUCCESS;
}
HEADWAY_INLINE int @_Status_f082c(const MPI_F08_status *f08_status, MPI_Status *c_status) {
  int i;
  if (!f08_status || !c_status) return MPI_ERR_ARG;
  c_status->MPI_SOURCE = f08_status->MPI_SOURCE;
  c_status->MPI_TAG = f08_status->MPI_TAG;
  c_status->MPI_ERROR = f08_status->MPI_ERROR;
  for (i = 0; i < 5; ++i) c_status->MPI_internal[i] = f08_status->MPI_internal[i];
  return MPI_SUCCESS;
}
HEADWAY_INLINE int @_Status_f2f08(const MPI_Fint *f_status, MPI_F08_status *f08_status) {
  int i;
  if (!f_status || !f08_status) return MPI_ERR_ARG;
  f08_status->MPI_SOURCE = f_status[MPI_F_SOURCE];
  f08_status->MPI_TAG = f_status[MPI_F_TAG];
  f08_status->MPI_ERROR = f_status[MPI_F_ERROR];
  for (i = 3; i < MPI_F_STATUS_SIZE; ++i) f08_status->MPI_internal[i - 3] = f_status[i];
  return MPI_SUCCESS;
}
HEADWAY_INLINE int @_Status_f082f(const MPI_F08_status *f08_status, MPI_Fint *f_status) {
  int i;
  if (!f08_status || !f_status) return MPI_ERR_ARG;
  f_status[MPI_F_SOURCE] = f08_status->MPI_SOURCE;
  f_status[MPI_F_TAG] = f08_status->MPI_TAG;
  f_status[MPI_F_ERROR] = f08_status->MPI_ERROR;
  for (i = 3; i < MPI_F_STATUS_SIZE; ++i) f_status[i] = f08_status->MPI_internal[i - 3];
  return MPI_SUCCESS;
}
"""

REMOVED_NAMES = """
typedef MPI_Comm_errhandler_function MPI_Handler_function;
/* As MPI-2 called the types of error handlers; PETSc and others still do. */
typedef MPI_Comm_errhandler_function MPI_Comm_errhandler_fn;
typedef MPI_File_errhandler_function MPI_File_errhandler_fn;
typedef MPI_Win_errhandler_function MPI_Win_errhandler_fn;
typedef MPI_Session_errhandler_function MPI_Session_errhandler_fn;
/* The markers of bounds: no datatypes of the ABI, known to MPI_Type_struct alone, which makes of them
   what MPI_Type_create_resized makes. */
#define MPI_LB ((MPI_Datatype)-2)
#define MPI_UB ((MPI_Datatype)-3)
/* What Fortran's old functions left in a datatype; none is ever seen, and a switch may name both. */
enum {
  MPI_COMBINER_HVECTOR_INTEGER = -105,
  MPI_COMBINER_HINDEXED_INTEGER = -107,
  MPI_COMBINER_STRUCT_INTEGER = -110
};
"""

BOUNDS = """
HEADWAY_REMOVED("@_Type_extent was removed in MPI-3.0; use @_Type_get_extent")
HEADWAY_INLINE int @_Type_extent(MPI_Datatype datatype, MPI_Aint *extent) {
  MPI_Aint lb;
  return @_Type_get_extent(datatype, &lb, extent);
}
HEADWAY_REMOVED("@_Type_lb was removed in MPI-3.0; use @_Type_get_extent")
HEADWAY_INLINE int @_Type_lb(MPI_Datatype datatype, MPI_Aint *displacement) {
  MPI_Aint extent;
  return @_Type_get_extent(datatype, displacement, &extent);
}
HEADWAY_REMOVED("@_Type_ub was removed in MPI-3.0; use @_Type_get_extent")
HEADWAY_INLINE int @_Type_ub(MPI_Datatype datatype, MPI_Aint *displacement) {
  MPI_Aint lb = 0;
  const int code = @_Type_get_extent(datatype, &lb, displacement);
  if (code == MPI_SUCCESS) *displacement += lb;
  return code;
}
HEADWAY_REMOVED("@_Type_struct was removed in MPI-3.0; use @_Type_create_struct (and @_Type_create_resized instead of MPI_LB and MPI_UB)")
HEADWAY_INLINE int @_Type_struct(int count, int array_of_blocklengths[], MPI_Aint array_of_displacements[], MPI_Datatype array_of_types[], MPI_Datatype *newtype) {
  int i, code, lower = -1, upper = -1;
  MPI_Aint lb = 0, ub = 0, extent = 0;
  int *blocklengths;
  MPI_Datatype *types, unbounded;
  for (i = 0; array_of_types && i < count; ++i) {
    if (array_of_types[i] == MPI_LB) lower = i;
    if (array_of_types[i] == MPI_UB) upper = i;
  }
  if (lower < 0 && upper < 0) return @_Type_create_struct(count, array_of_blocklengths, array_of_displacements, array_of_types, newtype);
  /* A marker becomes an empty block, and the bounds are set afterwards. */
  code = PMPI_Alloc_mem(count * (MPI_Aint)sizeof(MPI_Datatype), MPI_INFO_NULL, &types);
  if (code != MPI_SUCCESS) return code;
  code = PMPI_Alloc_mem(count * (MPI_Aint)sizeof(int), MPI_INFO_NULL, &blocklengths);
  if (code == MPI_SUCCESS) {
    lower = upper = -1;
    for (i = 0; i < count; ++i) {
      const MPI_Aint place = array_of_displacements[i];
      types[i] = array_of_types[i];
      blocklengths[i] = array_of_blocklengths[i];
      if (types[i] != MPI_LB && types[i] != MPI_UB) continue;
      if (blocklengths[i] > 0 && types[i] == MPI_LB && (lower < 0 || place < array_of_displacements[lower])) lower = i;
      if (blocklengths[i] > 0 && types[i] == MPI_UB && (upper < 0 || place > array_of_displacements[upper])) upper = i;
      if (blocklengths[i] > 0) blocklengths[i] = 0;
      types[i] = MPI_BYTE;
    }
    code = @_Type_create_struct(count, blocklengths, array_of_displacements, types, &unbounded);
    PMPI_Free_mem(blocklengths);
  }
  PMPI_Free_mem(types);
  if (code != MPI_SUCCESS) return code;
  code = @_Type_get_extent(unbounded, &lb, &extent);
  ub = upper < 0 ? lb + extent : array_of_displacements[upper];
  if (lower >= 0) lb = array_of_displacements[lower];
  if (code == MPI_SUCCESS && (lower >= 0 || upper >= 0)) {
    code = @_Type_create_resized(unbounded, lb, ub - lb, newtype);
    @_Type_free(&unbounded);
  } else if (code == MPI_SUCCESS) {
    *newtype = unbounded;
  }
  return code;
}
"""

OPEN = """
#ifndef HEADWAY_NO_OLD_NAMES
/* What follows is no part of the ABI: names of the MPI standard that the ABI leaves to headers, and what
   MPI-3.0 removed (a compiler warns of those; -Wno-deprecated-declarations keeps it silent). All of it
   stands on functions above. -DHEADWAY_NO_OLD_NAMES leaves it out. */
#ifdef __GNUC__
#define HEADWAY_INLINE static __inline__
#define HEADWAY_REMOVED(text) __attribute__((__deprecated__(text)))
#else
#define HEADWAY_INLINE static inline
#define HEADWAY_REMOVED(text)
#endif
#if defined(__GNUC__) && defined(__cplusplus)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif

typedef int MPI_Fint;
"""

CLOSE = """
#if defined(__GNUC__) && defined(__cplusplus)
#pragma GCC diagnostic pop
#endif
#undef HEADWAY_INLINE
#undef HEADWAY_REMOVED
#endif /* HEADWAY_NO_OLD_NAMES */
"""


def renamed(prefix: str) -> str:
    out = []
    for name, parameters, now, arguments in REMOVED:
        out += [
            f'HEADWAY_REMOVED("{prefix}_{name} was removed in MPI-3.0; use {prefix}_{now}")',
            f"HEADWAY_INLINE int {prefix}_{name}({parameters}) {{",
            f"  return {prefix}_{now}({arguments});",
            "}",
        ]
    return "\n".join(out)


def conversions(prefix: str) -> str:
    """The standard lets these be macros; so a tool that wraps one wraps the ABI's function."""
    return "\n".join(
        f"#define {prefix}_{kind}_{old} {prefix}_{kind}_{new}"
        for kind in KINDS
        for old, new in (("c2f", "toint"), ("f2c", "fromint"))
    )


def make_old_names() -> str:
    out = [OPEN.strip()]
    out += [conversions(prefix) for prefix in ("MPI", "PMPI")]
    out += ["", STATUSES.strip()]
    out += [FORTRAN_STATUS.strip().replace("@", prefix) for prefix in ("MPI", "PMPI")]
    out += ["", REMOVED_NAMES.strip()]
    for prefix in ("MPI", "PMPI"):
        out += [renamed(prefix), BOUNDS.strip().replace("@", prefix)]
    out += ["", CLOSE.strip()]
    return "\n".join(out)
