// Predefined datatypes as a table: what the ABI calls them, how large they are, and which machine
// format their elements have. Thread: any, constant data. Invariant: row i describes BasicType i;
// rows are sorted by handle. Fortran types have the sizes of gfortran's defaults.
#pragma once
#include <cstddef>
#include <cstdint>

namespace headway::datatypes {

enum class BasicType : uint8_t {
  none,
  aint,
  count,
  offset,
  packed,
  short_,
  int_,
  long_,
  long_long,
  unsigned_short,
  unsigned_,
  unsigned_long,
  unsigned_long_long,
  float_,
  c_float_complex,
  cxx_float_complex,
  double_,
  c_double_complex,
  cxx_double_complex,
  logical,
  integer,
  real,
  complex,
  double_precision,
  double_complex,
  character,
  long_double,
  c_long_double_complex,
  cxx_long_double_complex,
  float_int,
  double_int,
  long_int,
  two_int,
  short_int,
  long_double_int,
  two_real,
  two_double_precision,
  two_integer,
  c_bool,
  cxx_bool,
  wchar,
  int8_t,
  uint8_t,
  char_,
  signed_char,
  unsigned_char,
  byte,
  int16_t,
  uint16_t,
  int32_t,
  uint32_t,
  int64_t,
  uint64_t,
  logical1,
  integer1,
  logical2,
  integer2,
  real2,
  logical4,
  integer4,
  real4,
  complex4,
  logical8,
  integer8,
  real8,
  complex8,
  logical16,
  integer16,
  real16,
  complex16,
  complex32
};

// The groups by which the standard says which operation takes which datatype.
enum class BasicClass : uint8_t {
  none,
  c_integer,
  fortran_integer,
  real,
  logical,
  complex,
  byte,
  multi_language,
  packed,
  text,
  pair
};

// What an element is to the processor. cN is two fN; the pairs are a value and a location.
enum class Machine : uint8_t {
  none,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  i128,
  u128,
  f16,
  f32,
  f64,
  f80,
  f128,
  c16,
  c32,
  c64,
  c80,
  c128,
  f32_i32,
  f64_i32,
  i64_i32,
  i32_i32,
  i16_i32,
  f80_i32,
  f32_f32,
  f64_f64
};

struct BasicInfo {
  uint16_t handle;  // the ABI's handle value
  const char* name;
  BasicClass group;
  Machine machine;
  uint16_t size;  // bytes of data
  uint16_t extent;
  uint16_t alignment;
};

// Whether a char has a sign is the processor's custom.
inline constexpr Machine char_machine = char(-1) < 0 ? Machine::i8 : Machine::u8;

inline constexpr BasicInfo basic_table[] = {
    {0x200, "MPI_DATATYPE_NULL", BasicClass::none, Machine::none, 0, 0, 1},
    {0x201, "MPI_AINT", BasicClass::multi_language, Machine::i64, 8, 8, 8},
    {0x202, "MPI_COUNT", BasicClass::multi_language, Machine::i64, 8, 8, 8},
    {0x203, "MPI_OFFSET", BasicClass::multi_language, Machine::i64, 8, 8, 8},
    {0x207, "MPI_PACKED", BasicClass::packed, Machine::none, 1, 1, 1},
    {0x208, "MPI_SHORT", BasicClass::c_integer, Machine::i16, 2, 2, 2},
    {0x209, "MPI_INT", BasicClass::c_integer, Machine::i32, 4, 4, 4},
    {0x20a, "MPI_LONG", BasicClass::c_integer, Machine::i64, 8, 8, 8},
    {0x20b, "MPI_LONG_LONG", BasicClass::c_integer, Machine::i64, 8, 8, 8},
    {0x20c, "MPI_UNSIGNED_SHORT", BasicClass::c_integer, Machine::u16, 2, 2, 2},
    {0x20d, "MPI_UNSIGNED", BasicClass::c_integer, Machine::u32, 4, 4, 4},
    {0x20e, "MPI_UNSIGNED_LONG", BasicClass::c_integer, Machine::u64, 8, 8, 8},
    {0x20f, "MPI_UNSIGNED_LONG_LONG", BasicClass::c_integer, Machine::u64, 8, 8, 8},
    {0x210, "MPI_FLOAT", BasicClass::real, Machine::f32, 4, 4, 4},
    {0x212, "MPI_C_FLOAT_COMPLEX", BasicClass::complex, Machine::c32, 8, 8, 4},
    {0x213, "MPI_CXX_FLOAT_COMPLEX", BasicClass::complex, Machine::c32, 8, 8, 4},
    {0x214, "MPI_DOUBLE", BasicClass::real, Machine::f64, 8, 8, 8},
    {0x216, "MPI_C_DOUBLE_COMPLEX", BasicClass::complex, Machine::c64, 16, 16, 8},
    {0x217, "MPI_CXX_DOUBLE_COMPLEX", BasicClass::complex, Machine::c64, 16, 16, 8},
    {0x218, "MPI_LOGICAL", BasicClass::logical, Machine::u32, 4, 4, 4},
    {0x219, "MPI_INTEGER", BasicClass::fortran_integer, Machine::i32, 4, 4, 4},
    {0x21a, "MPI_REAL", BasicClass::real, Machine::f32, 4, 4, 4},
    {0x21b, "MPI_COMPLEX", BasicClass::complex, Machine::c32, 8, 8, 4},
    {0x21c, "MPI_DOUBLE_PRECISION", BasicClass::real, Machine::f64, 8, 8, 8},
    {0x21d, "MPI_DOUBLE_COMPLEX", BasicClass::complex, Machine::c64, 16, 16, 8},
    {0x21e, "MPI_CHARACTER", BasicClass::text, Machine::none, 1, 1, 1},
    {0x220, "MPI_LONG_DOUBLE", BasicClass::real, Machine::f80, 16, 16, 16},
    {0x224, "MPI_C_LONG_DOUBLE_COMPLEX", BasicClass::complex, Machine::c80, 32, 32, 16},
    {0x225, "MPI_CXX_LONG_DOUBLE_COMPLEX", BasicClass::complex, Machine::c80, 32, 32, 16},
    {0x228, "MPI_FLOAT_INT", BasicClass::pair, Machine::f32_i32, 8, 8, 4},
    {0x229, "MPI_DOUBLE_INT", BasicClass::pair, Machine::f64_i32, 12, 16, 8},
    {0x22a, "MPI_LONG_INT", BasicClass::pair, Machine::i64_i32, 12, 16, 8},
    {0x22b, "MPI_2INT", BasicClass::pair, Machine::i32_i32, 8, 8, 4},
    {0x22c, "MPI_SHORT_INT", BasicClass::pair, Machine::i16_i32, 6, 8, 4},
    {0x22d, "MPI_LONG_DOUBLE_INT", BasicClass::pair, Machine::f80_i32, 20, 32, 16},
    {0x230, "MPI_2REAL", BasicClass::pair, Machine::f32_f32, 8, 8, 4},
    {0x231, "MPI_2DOUBLE_PRECISION", BasicClass::pair, Machine::f64_f64, 16, 16, 8},
    {0x232, "MPI_2INTEGER", BasicClass::pair, Machine::i32_i32, 8, 8, 4},
    {0x238, "MPI_C_BOOL", BasicClass::logical, Machine::u8, 1, 1, 1},
    {0x239, "MPI_CXX_BOOL", BasicClass::logical, Machine::u8, 1, 1, 1},
    {0x23c, "MPI_WCHAR", BasicClass::text, Machine::none, 4, 4, 4},
    {0x240, "MPI_INT8_T", BasicClass::c_integer, Machine::i8, 1, 1, 1},
    {0x241, "MPI_UINT8_T", BasicClass::c_integer, Machine::u8, 1, 1, 1},
    {0x243, "MPI_CHAR", BasicClass::text, char_machine, 1, 1, 1},
    {0x244, "MPI_SIGNED_CHAR", BasicClass::c_integer, Machine::i8, 1, 1, 1},
    {0x245, "MPI_UNSIGNED_CHAR", BasicClass::c_integer, Machine::u8, 1, 1, 1},
    {0x247, "MPI_BYTE", BasicClass::byte, Machine::u8, 1, 1, 1},
    {0x248, "MPI_INT16_T", BasicClass::c_integer, Machine::i16, 2, 2, 2},
    {0x249, "MPI_UINT16_T", BasicClass::c_integer, Machine::u16, 2, 2, 2},
    {0x250, "MPI_INT32_T", BasicClass::c_integer, Machine::i32, 4, 4, 4},
    {0x251, "MPI_UINT32_T", BasicClass::c_integer, Machine::u32, 4, 4, 4},
    {0x258, "MPI_INT64_T", BasicClass::c_integer, Machine::i64, 8, 8, 8},
    {0x259, "MPI_UINT64_T", BasicClass::c_integer, Machine::u64, 8, 8, 8},
    {0x2c0, "MPI_LOGICAL1", BasicClass::logical, Machine::u8, 1, 1, 1},
    {0x2c1, "MPI_INTEGER1", BasicClass::fortran_integer, Machine::i8, 1, 1, 1},
    {0x2c8, "MPI_LOGICAL2", BasicClass::logical, Machine::u16, 2, 2, 2},
    {0x2c9, "MPI_INTEGER2", BasicClass::fortran_integer, Machine::i16, 2, 2, 2},
    {0x2ca, "MPI_REAL2", BasicClass::real, Machine::f16, 2, 2, 2},
    {0x2d0, "MPI_LOGICAL4", BasicClass::logical, Machine::u32, 4, 4, 4},
    {0x2d1, "MPI_INTEGER4", BasicClass::fortran_integer, Machine::i32, 4, 4, 4},
    {0x2d2, "MPI_REAL4", BasicClass::real, Machine::f32, 4, 4, 4},
    {0x2d3, "MPI_COMPLEX4", BasicClass::complex, Machine::c16, 4, 4, 2},
    {0x2d8, "MPI_LOGICAL8", BasicClass::logical, Machine::u64, 8, 8, 8},
    {0x2d9, "MPI_INTEGER8", BasicClass::fortran_integer, Machine::i64, 8, 8, 8},
    {0x2da, "MPI_REAL8", BasicClass::real, Machine::f64, 8, 8, 8},
    {0x2db, "MPI_COMPLEX8", BasicClass::complex, Machine::c32, 8, 8, 4},
    {0x2e0, "MPI_LOGICAL16", BasicClass::logical, Machine::u128, 16, 16, 16},
    {0x2e1, "MPI_INTEGER16", BasicClass::fortran_integer, Machine::i128, 16, 16, 16},
    {0x2e2, "MPI_REAL16", BasicClass::real, Machine::f128, 16, 16, 16},
    {0x2e3, "MPI_COMPLEX16", BasicClass::complex, Machine::c64, 16, 16, 8},
    {0x2eb, "MPI_COMPLEX32", BasicClass::complex, Machine::c128, 32, 32, 16},
};
inline constexpr size_t basic_count = sizeof(basic_table) / sizeof(basic_table[0]);
static_assert([] {
  for (size_t i = 0; i + 1 < basic_count; ++i) {
    if (basic_table[i].handle >= basic_table[i + 1].handle) return false;
  }
  return true;
}());

constexpr const BasicInfo& info(BasicType type) { return basic_table[size_t(type)]; }

// The type of that ABI handle, or none. Not for hot paths: those hold a Type*.
BasicType find_basic(uintptr_t handle);

}  // namespace headway::datatypes
