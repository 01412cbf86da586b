// Datatypes that are found rather than built: of Fortran's kinds, of a class and size, of a value
// with its index. MPI 5.0, sections 6.9.4 and 19.1.9.
#include "api/detail/results.h"
#include "api/detail/types.h"

using namespace headway;
using namespace headway::api;

namespace {

using datatypes::BasicType;
using datatypes::Combiner;

// What gfortran's selected_real_kind and selected_int_kind know, smallest first.
struct RealKind {
  int digits, range;
  BasicType real, complex;
};
constexpr RealKind real_kinds[] = {
    {6, 37, BasicType::real4, BasicType::complex8},
    {15, 307, BasicType::real8, BasicType::complex16},
    {18, 4931, BasicType::long_double, BasicType::c_long_double_complex},
    {33, 4931, BasicType::real16, BasicType::complex32},
};
struct IntegerKind {
  int range;
  BasicType type;
};
constexpr IntegerKind integer_kinds[] = {
    {2, BasicType::integer1},  {4, BasicType::integer2},   {9, BasicType::integer4},
    {18, BasicType::integer8}, {38, BasicType::integer16},
};

int give(const Story& story, Combiner combiner, const int* numbers, int count, BasicType basic,
         MPI_Datatype* datatype) {
  Outcome outcome;
  const uintptr_t handle = registry().parametrized(combiner, numbers, count, basic, outcome);
  if (!handle) return raise(story, outcome);
  *datatype = handle_of<MPI_Datatype>(handle);
  return MPI_SUCCESS;
}

int create_real(const char* call, Combiner combiner, int p, int r, MPI_Datatype* newtype) {
  const Story story{.call = call};
  if (!is_running()) return not_running(call);
  if (p == MPI_UNDEFINED && r == MPI_UNDEFINED) {
    return raise(story, MPI_ERR_ARG, "both the digits and the range are MPI_UNDEFINED",
                 "pass at least one, as for selected_real_kind");
  }
  const int numbers[] = {p, r};
  for (const RealKind& kind : real_kinds) {
    const bool fits =
        (p == MPI_UNDEFINED || p <= kind.digits) && (r == MPI_UNDEFINED || r <= kind.range);
    if (!fits) continue;
    return give(story, combiner, numbers, 2,
                combiner == Combiner::f90_real ? kind.real : kind.complex, newtype);
  }
  return raise(story, MPI_ERR_ARG, "no kind of real has so many digits or so large a range",
               "there are at most 33 digits and exponents to 4931");
}

struct Pair {
  MPI_Datatype value, index, pair;
};

int type_create_f90_integer(const char* call, int r, MPI_Datatype* newtype) {
  const Story story{.call = call};
  if (!is_running()) return not_running(story.call);
  for (const IntegerKind& kind : integer_kinds) {
    if (r <= kind.range) return give(story, Combiner::f90_integer, &r, 1, kind.type, newtype);
  }
  return raise(story, MPI_ERR_ARG, "no kind of integer has so large a range",
               "there are at most 38 decimal digits");
}

// Pairs that no predefined datatype describes have none: MPI_MINLOC is not defined on them.
int type_get_value_index(const char* call, MPI_Datatype value_type, MPI_Datatype index_type,
                         MPI_Datatype* pair_type) {
  Story story{.call = call};
  datatypes::Type *value, *index;
  if (const int code = take_type(story, value_type, value)) return code;
  if (const int code = take_type(story, index_type, index)) return code;
  if (!value->predefined() || !index->predefined()) {
    return raise(story, MPI_ERR_TYPE, "a value and its index have predefined datatypes",
                 "pass for example MPI_DOUBLE and MPI_INT");
  }
  const Pair pairs[] = {
      {MPI_FLOAT, MPI_INT, MPI_FLOAT_INT},
      {MPI_DOUBLE, MPI_INT, MPI_DOUBLE_INT},
      {MPI_LONG, MPI_INT, MPI_LONG_INT},
      {MPI_SHORT, MPI_INT, MPI_SHORT_INT},
      {MPI_INT, MPI_INT, MPI_2INT},
      {MPI_LONG_DOUBLE, MPI_INT, MPI_LONG_DOUBLE_INT},
      {MPI_REAL, MPI_REAL, MPI_2REAL},
      {MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, MPI_2DOUBLE_PRECISION},
      {MPI_INTEGER, MPI_INTEGER, MPI_2INTEGER},
  };
  *pair_type = MPI_DATATYPE_NULL;
  for (const Pair& row : pairs) {
    if (row.value == value_type && row.index == index_type) *pair_type = row.pair;
  }
  return MPI_SUCCESS;
}

int type_match_size(const char* call, int typeclass, int size, MPI_Datatype* datatype) {
  const Story story{.call = call};
  if (!is_running()) return not_running(story.call);
  const struct {
    int typeclass, size;
    MPI_Datatype type;
  } rows[] = {
      {MPIX_TYPECLASS_LOGICAL, 1, MPI_LOGICAL1},   {MPIX_TYPECLASS_LOGICAL, 2, MPI_LOGICAL2},
      {MPIX_TYPECLASS_LOGICAL, 4, MPI_LOGICAL4},   {MPIX_TYPECLASS_LOGICAL, 8, MPI_LOGICAL8},
      {MPIX_TYPECLASS_LOGICAL, 16, MPI_LOGICAL16}, {MPI_TYPECLASS_REAL, 2, MPI_REAL2},
      {MPI_TYPECLASS_COMPLEX, 4, MPI_COMPLEX4},    {MPI_TYPECLASS_REAL, 4, MPI_REAL4},
      {MPI_TYPECLASS_REAL, 8, MPI_REAL8},          {MPI_TYPECLASS_REAL, 16, MPI_REAL16},
      {MPI_TYPECLASS_INTEGER, 1, MPI_INTEGER1},    {MPI_TYPECLASS_INTEGER, 2, MPI_INTEGER2},
      {MPI_TYPECLASS_INTEGER, 4, MPI_INTEGER4},    {MPI_TYPECLASS_INTEGER, 8, MPI_INTEGER8},
      {MPI_TYPECLASS_INTEGER, 16, MPI_INTEGER16},  {MPI_TYPECLASS_COMPLEX, 8, MPI_COMPLEX8},
      {MPI_TYPECLASS_COMPLEX, 16, MPI_COMPLEX16},  {MPI_TYPECLASS_COMPLEX, 32, MPI_COMPLEX32},
  };
  for (const auto& row : rows) {
    if (row.typeclass != typeclass || row.size != size) continue;
    *datatype = row.type;
    return MPI_SUCCESS;
  }
  return raise(
      story, MPI_ERR_ARG, "there is no datatype of that class and size",
      "classes are MPI_TYPECLASS_REAL, _INTEGER and _COMPLEX; sizes are in bytes, a power of 2");
}

}  // namespace

#include "api/entries/types_predefined.inl"
