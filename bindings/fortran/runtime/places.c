/* places: what a Fortran program knows by its address: the common blocks whose variables stand for
   constants of C, and the predefined callbacks of attributes and data representations, which may be
   called, too. Each has the four spellings of names; a program defines or takes one of them.

   Thread: any. Owner: the program's own definitions of the blocks take the place of these, so all
   that is here is looked at by address alone. Invariant: never written. */
#include "callbacks.h"
#include "fortran.h"

/* Aligned at least as any compiler aligns its own: the linker warns of less. */
#define BLOCK HF_API __attribute__((aligned(64)))
BLOCK int mpi_fortran_places_[HF_PLACES];
BLOCK int mpi_fortran_places[HF_PLACES];
BLOCK int mpi_fortran_places__[HF_PLACES];
BLOCK int MPI_FORTRAN_PLACES[HF_PLACES];
int* const hf_places[HF_SPELLED] = {mpi_fortran_places_, mpi_fortran_places, mpi_fortran_places__,
                                    MPI_FORTRAN_PLACES};

/* The library's own, whoever takes their place. */
#define OWN(name) \
  extern int own_##name[HF_PLACES] __attribute__((alias(#name), visibility("hidden")))
OWN(mpi_fortran_places_);
OWN(mpi_fortran_places);
OWN(mpi_fortran_places__);
OWN(MPI_FORTRAN_PLACES);
static int* const own_places[HF_SPELLED] = {own_mpi_fortran_places_, own_mpi_fortran_places,
                                            own_mpi_fortran_places__, own_MPI_FORTRAN_PLACES};

void* hf_program_place(int which) {
  for (int i = 0; i < HF_SPELLED; ++i) {
    if (hf_places[i] != own_places[i]) return hf_places[i] + which;
  }
  return hf_places[0] + which;
}

BLOCK char mpi_fortran_texts_[HF_TEXTS];
BLOCK char mpi_fortran_texts[HF_TEXTS];
BLOCK char mpi_fortran_texts__[HF_TEXTS];
BLOCK char MPI_FORTRAN_TEXTS[HF_TEXTS];
char* const hf_texts[HF_SPELLED] = {mpi_fortran_texts_, mpi_fortran_texts, mpi_fortran_texts__,
                                    MPI_FORTRAN_TEXTS};

HF_API int headway_fortran_logical[2] = {1, 0};

/* ---- predefined callbacks ---- */

/* Names in upper case are macros of mpi.h, so they are given as texts. */
#define OTHER_NAME(name, way, other)                                        \
  HF_API extern __typeof__(mpi_##name##_) mpi_##name##_##way __asm__(other) \
      __attribute__((alias("mpi_" #name "_")))
#define OTHER_NAMES(name, UPPER)              \
  OTHER_NAME(name, plain, "mpi_" #name);      \
  OTHER_NAME(name, twice, "mpi_" #name "__"); \
  OTHER_NAME(name, upper, "MPI_" UPPER)

#define COPIES(name, UPPER, Value, is_copied)                                                      \
  HF_API void mpi_##name##_(const MPI_Fint* object, const int* keyval, const Value* extra_state,   \
                            const Value* value_in, Value* value_out, MPI_Fint* flag, int* ierror); \
  OTHER_NAMES(name, UPPER);                                                                        \
  void mpi_##name##_(const MPI_Fint* object, const int* keyval, const Value* extra_state,          \
                     const Value* value_in, Value* value_out, MPI_Fint* flag, int* ierror) {       \
    (void)object, (void)keyval, (void)extra_state;                                                 \
    if (is_copied) *value_out = *value_in;                                                         \
    *flag = hf_logical(is_copied);                                                                 \
    hf_give(ierror, MPI_SUCCESS);                                                                  \
  }
#define DELETES(name, UPPER, Value)                                                        \
  HF_API void mpi_##name##_(const MPI_Fint* object, const int* keyval, const Value* value, \
                            const Value* extra_state, int* ierror);                        \
  OTHER_NAMES(name, UPPER);                                                                \
  void mpi_##name##_(const MPI_Fint* object, const int* keyval, const Value* value,        \
                     const Value* extra_state, int* ierror) {                              \
    (void)object, (void)keyval, (void)value, (void)extra_state;                            \
    hf_give(ierror, MPI_SUCCESS);                                                          \
  }

COPIES(comm_dup_fn, "COMM_DUP_FN", MPI_Aint, 1)
COPIES(comm_null_copy_fn, "COMM_NULL_COPY_FN", MPI_Aint, 0)
DELETES(comm_null_delete_fn, "COMM_NULL_DELETE_FN", MPI_Aint)
COPIES(type_dup_fn, "TYPE_DUP_FN", MPI_Aint, 1)
COPIES(type_null_copy_fn, "TYPE_NULL_COPY_FN", MPI_Aint, 0)
DELETES(type_null_delete_fn, "TYPE_NULL_DELETE_FN", MPI_Aint)
COPIES(win_dup_fn, "WIN_DUP_FN", MPI_Aint, 1)
COPIES(win_null_copy_fn, "WIN_NULL_COPY_FN", MPI_Aint, 0)
DELETES(win_null_delete_fn, "WIN_NULL_DELETE_FN", MPI_Aint)
COPIES(dup_fn, "DUP_FN", MPI_Fint, 1)
COPIES(null_copy_fn, "NULL_COPY_FN", MPI_Fint, 0)
DELETES(null_delete_fn, "NULL_DELETE_FN", MPI_Fint)

/* Stand for "no conversion"; nobody calls them. */
#define CONVERTS(name, NAME, Count)                                                              \
  HF_API void mpi_##name##_(void* userbuf, const MPI_Fint* datatype, const Count* count,         \
                            void* filebuf, const MPI_Offset* position,                           \
                            const MPI_Aint* extra_state, int* ierror);                           \
  OTHER_NAMES(name, NAME);                                                                       \
  void mpi_##name##_(void* userbuf, const MPI_Fint* datatype, const Count* count, void* filebuf, \
                     const MPI_Offset* position, const MPI_Aint* extra_state, int* ierror) {     \
    (void)userbuf, (void)datatype, (void)count, (void)filebuf, (void)position;                   \
    (void)extra_state;                                                                           \
    hf_give(ierror, MPI_ERR_CONVERSION);                                                         \
  }
CONVERTS(conversion_fn_null, "CONVERSION_FN_NULL", int)
CONVERTS(conversion_fn_null_c, "CONVERSION_FN_NULL_C", MPI_Count)

#define ALL_NAMES(name)                                                                       \
  (HfFunction) mpi_##name##_, (HfFunction)mpi_##name##_plain, (HfFunction)mpi_##name##_twice, \
      (HfFunction)mpi_##name##_upper

static int is_among(HfFunction function, const HfFunction* list, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (function == list[i]) return 1;
  }
  return 0;
}

HfPredefined hf_predefined(HfFunction function) {
  static const HfFunction dups[] = {ALL_NAMES(comm_dup_fn), ALL_NAMES(type_dup_fn),
                                    ALL_NAMES(win_dup_fn), ALL_NAMES(dup_fn)};
  static const HfFunction copies[] = {ALL_NAMES(comm_null_copy_fn), ALL_NAMES(type_null_copy_fn),
                                      ALL_NAMES(win_null_copy_fn), ALL_NAMES(null_copy_fn)};
  static const HfFunction deletes[] = {ALL_NAMES(comm_null_delete_fn),
                                       ALL_NAMES(type_null_delete_fn),
                                       ALL_NAMES(win_null_delete_fn), ALL_NAMES(null_delete_fn)};
  static const HfFunction conversions[] = {ALL_NAMES(conversion_fn_null),
                                           ALL_NAMES(conversion_fn_null_c)};
#define AMONG(list) is_among(function, list, sizeof list / sizeof *list)
  if (AMONG(dups)) return HF_PREDEFINED_DUP;
  if (AMONG(copies) || AMONG(deletes) || AMONG(conversions)) return HF_PREDEFINED_NULL;
#undef AMONG
  return HF_OWN;
}
