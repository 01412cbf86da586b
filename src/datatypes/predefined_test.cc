// The predefined types against the ABI's constants, and against another library's answers.
#include <gtest/gtest.h>

#include "datatypes/reduce.h"
#include "datatypes/type.h"
#include "settings/abi_constants.h"

namespace headway::datatypes {
namespace {

using B = BasicType;

TEST(Predefined, HandlesAreTheAbis) {
  const struct {
    BasicType type;
    uintptr_t handle;
    const char* name;
  } rows[] = {
      {B::aint, abi::k_AINT, "MPI_AINT"},
      {B::count, abi::k_COUNT, "MPI_COUNT"},
      {B::offset, abi::k_OFFSET, "MPI_OFFSET"},
      {B::packed, abi::k_PACKED, "MPI_PACKED"},
      {B::short_, abi::k_SHORT, "MPI_SHORT"},
      {B::int_, abi::k_INT, "MPI_INT"},
      {B::long_, abi::k_LONG, "MPI_LONG"},
      {B::long_long, abi::k_LONG_LONG, "MPI_LONG_LONG"},
      {B::unsigned_short, abi::k_UNSIGNED_SHORT, "MPI_UNSIGNED_SHORT"},
      {B::unsigned_, abi::k_UNSIGNED, "MPI_UNSIGNED"},
      {B::unsigned_long, abi::k_UNSIGNED_LONG, "MPI_UNSIGNED_LONG"},
      {B::unsigned_long_long, abi::k_UNSIGNED_LONG_LONG, "MPI_UNSIGNED_LONG_LONG"},
      {B::float_, abi::k_FLOAT, "MPI_FLOAT"},
      {B::c_float_complex, abi::k_C_FLOAT_COMPLEX, "MPI_C_FLOAT_COMPLEX"},
      {B::cxx_float_complex, abi::k_CXX_FLOAT_COMPLEX, "MPI_CXX_FLOAT_COMPLEX"},
      {B::double_, abi::k_DOUBLE, "MPI_DOUBLE"},
      {B::c_double_complex, abi::k_C_DOUBLE_COMPLEX, "MPI_C_DOUBLE_COMPLEX"},
      {B::cxx_double_complex, abi::k_CXX_DOUBLE_COMPLEX, "MPI_CXX_DOUBLE_COMPLEX"},
      {B::logical, abi::k_LOGICAL, "MPI_LOGICAL"},
      {B::integer, abi::k_INTEGER, "MPI_INTEGER"},
      {B::real, abi::k_REAL, "MPI_REAL"},
      {B::complex, abi::k_COMPLEX, "MPI_COMPLEX"},
      {B::double_precision, abi::k_DOUBLE_PRECISION, "MPI_DOUBLE_PRECISION"},
      {B::double_complex, abi::k_DOUBLE_COMPLEX, "MPI_DOUBLE_COMPLEX"},
      {B::character, abi::k_CHARACTER, "MPI_CHARACTER"},
      {B::long_double, abi::k_LONG_DOUBLE, "MPI_LONG_DOUBLE"},
      {B::c_long_double_complex, abi::k_C_LONG_DOUBLE_COMPLEX, "MPI_C_LONG_DOUBLE_COMPLEX"},
      {B::cxx_long_double_complex, abi::k_CXX_LONG_DOUBLE_COMPLEX, "MPI_CXX_LONG_DOUBLE_COMPLEX"},
      {B::float_int, abi::k_FLOAT_INT, "MPI_FLOAT_INT"},
      {B::double_int, abi::k_DOUBLE_INT, "MPI_DOUBLE_INT"},
      {B::long_int, abi::k_LONG_INT, "MPI_LONG_INT"},
      {B::two_int, abi::k_2INT, "MPI_2INT"},
      {B::short_int, abi::k_SHORT_INT, "MPI_SHORT_INT"},
      {B::long_double_int, abi::k_LONG_DOUBLE_INT, "MPI_LONG_DOUBLE_INT"},
      {B::two_real, abi::k_2REAL, "MPI_2REAL"},
      {B::two_double_precision, abi::k_2DOUBLE_PRECISION, "MPI_2DOUBLE_PRECISION"},
      {B::two_integer, abi::k_2INTEGER, "MPI_2INTEGER"},
      {B::c_bool, abi::k_C_BOOL, "MPI_C_BOOL"},
      {B::cxx_bool, abi::k_CXX_BOOL, "MPI_CXX_BOOL"},
      {B::wchar, abi::k_WCHAR, "MPI_WCHAR"},
      {B::int8_t, abi::k_INT8_T, "MPI_INT8_T"},
      {B::uint8_t, abi::k_UINT8_T, "MPI_UINT8_T"},
      {B::char_, abi::k_CHAR, "MPI_CHAR"},
      {B::signed_char, abi::k_SIGNED_CHAR, "MPI_SIGNED_CHAR"},
      {B::unsigned_char, abi::k_UNSIGNED_CHAR, "MPI_UNSIGNED_CHAR"},
      {B::byte, abi::k_BYTE, "MPI_BYTE"},
      {B::int16_t, abi::k_INT16_T, "MPI_INT16_T"},
      {B::uint16_t, abi::k_UINT16_T, "MPI_UINT16_T"},
      {B::int32_t, abi::k_INT32_T, "MPI_INT32_T"},
      {B::uint32_t, abi::k_UINT32_T, "MPI_UINT32_T"},
      {B::int64_t, abi::k_INT64_T, "MPI_INT64_T"},
      {B::uint64_t, abi::k_UINT64_T, "MPI_UINT64_T"},
      {B::logical1, abi::k_LOGICAL1, "MPI_LOGICAL1"},
      {B::integer1, abi::k_INTEGER1, "MPI_INTEGER1"},
      {B::logical2, abi::k_LOGICAL2, "MPI_LOGICAL2"},
      {B::integer2, abi::k_INTEGER2, "MPI_INTEGER2"},
      {B::real2, abi::k_REAL2, "MPI_REAL2"},
      {B::logical4, abi::k_LOGICAL4, "MPI_LOGICAL4"},
      {B::integer4, abi::k_INTEGER4, "MPI_INTEGER4"},
      {B::real4, abi::k_REAL4, "MPI_REAL4"},
      {B::complex4, abi::k_COMPLEX4, "MPI_COMPLEX4"},
      {B::logical8, abi::k_LOGICAL8, "MPI_LOGICAL8"},
      {B::integer8, abi::k_INTEGER8, "MPI_INTEGER8"},
      {B::real8, abi::k_REAL8, "MPI_REAL8"},
      {B::complex8, abi::k_COMPLEX8, "MPI_COMPLEX8"},
      {B::logical16, abi::k_LOGICAL16, "MPI_LOGICAL16"},
      {B::integer16, abi::k_INTEGER16, "MPI_INTEGER16"},
      {B::real16, abi::k_REAL16, "MPI_REAL16"},
      {B::complex16, abi::k_COMPLEX16, "MPI_COMPLEX16"},
      {B::complex32, abi::k_COMPLEX32, "MPI_COMPLEX32"},
  };
  ASSERT_EQ(std::size(rows), basic_count - 1);
  for (const auto& row : rows) {
    EXPECT_EQ(info(row.type).handle, row.handle) << row.name;
    EXPECT_STREQ(predefined(row.type).name(), row.name);
    EXPECT_EQ(find_predefined(row.handle), &predefined(row.type)) << row.name;
    EXPECT_TRUE(predefined(row.type).committed());
    EXPECT_EQ(predefined(row.type).combiner(), Combiner::named);
  }
  for (uintptr_t handle : {0u, 0x1ffu, 0x200u, 0x204u, 0x2ecu, 0x300u, 0x1000u}) {
    EXPECT_EQ(find_predefined(handle), nullptr) << handle;
  }
  EXPECT_EQ(info(B::none).handle, abi::k_DATATYPE_NULL);
  EXPECT_EQ(find_op(abi::k_SUM), ReduceOp::sum);
  EXPECT_EQ(find_op(abi::k_NO_OP), ReduceOp::no_op);
  EXPECT_EQ(find_op(abi::k_LXOR), ReduceOp::lxor);
  EXPECT_EQ(int(Combiner::dup), abi::k_COMBINER_DUP);
  EXPECT_EQ(int(Combiner::structure), abi::k_COMBINER_STRUCT);
  EXPECT_EQ(int(Combiner::resized), abi::k_COMBINER_RESIZED);
  EXPECT_EQ(int(Combiner::value_index), abi::k_COMBINER_VALUE_INDEX);
}

// Recorded from MPICH 5.0 (mpicc_abi) on x86-64: size, extent, true extent; every lower bound is 0.
TEST(Predefined, SizesAreThoseOfMpich) {
  const struct {
    const char* name;
    uint64_t size;
    int64_t extent, true_extent;
  } rows[] = {
      {"MPI_AINT", 8, 8, 8},
      {"MPI_COUNT", 8, 8, 8},
      {"MPI_OFFSET", 8, 8, 8},
      {"MPI_PACKED", 1, 1, 1},
      {"MPI_SHORT", 2, 2, 2},
      {"MPI_INT", 4, 4, 4},
      {"MPI_LONG", 8, 8, 8},
      {"MPI_LONG_LONG", 8, 8, 8},
      {"MPI_UNSIGNED_SHORT", 2, 2, 2},
      {"MPI_UNSIGNED", 4, 4, 4},
      {"MPI_UNSIGNED_LONG", 8, 8, 8},
      {"MPI_UNSIGNED_LONG_LONG", 8, 8, 8},
      {"MPI_FLOAT", 4, 4, 4},
      {"MPI_C_FLOAT_COMPLEX", 8, 8, 8},
      {"MPI_CXX_FLOAT_COMPLEX", 8, 8, 8},
      {"MPI_DOUBLE", 8, 8, 8},
      {"MPI_C_DOUBLE_COMPLEX", 16, 16, 16},
      {"MPI_CXX_DOUBLE_COMPLEX", 16, 16, 16},
      {"MPI_LOGICAL", 4, 4, 4},
      {"MPI_INTEGER", 4, 4, 4},
      {"MPI_REAL", 4, 4, 4},
      {"MPI_COMPLEX", 8, 8, 8},
      {"MPI_DOUBLE_PRECISION", 8, 8, 8},
      {"MPI_DOUBLE_COMPLEX", 16, 16, 16},
      {"MPI_CHARACTER", 1, 1, 1},
      {"MPI_LONG_DOUBLE", 16, 16, 16},
      {"MPI_C_LONG_DOUBLE_COMPLEX", 32, 32, 32},
      {"MPI_CXX_LONG_DOUBLE_COMPLEX", 32, 32, 32},
      {"MPI_FLOAT_INT", 8, 8, 8},
      {"MPI_DOUBLE_INT", 12, 16, 12},
      {"MPI_LONG_INT", 12, 16, 12},
      {"MPI_2INT", 8, 8, 8},
      {"MPI_SHORT_INT", 6, 8, 8},
      {"MPI_LONG_DOUBLE_INT", 20, 32, 20},
      {"MPI_2REAL", 8, 8, 8},
      {"MPI_2DOUBLE_PRECISION", 16, 16, 16},
      {"MPI_2INTEGER", 8, 8, 8},
      {"MPI_C_BOOL", 1, 1, 1},
      {"MPI_CXX_BOOL", 1, 1, 1},
      {"MPI_WCHAR", 4, 4, 4},
      {"MPI_INT8_T", 1, 1, 1},
      {"MPI_UINT8_T", 1, 1, 1},
      {"MPI_CHAR", 1, 1, 1},
      {"MPI_SIGNED_CHAR", 1, 1, 1},
      {"MPI_UNSIGNED_CHAR", 1, 1, 1},
      {"MPI_BYTE", 1, 1, 1},
      {"MPI_INT16_T", 2, 2, 2},
      {"MPI_UINT16_T", 2, 2, 2},
      {"MPI_INT32_T", 4, 4, 4},
      {"MPI_UINT32_T", 4, 4, 4},
      {"MPI_INT64_T", 8, 8, 8},
      {"MPI_UINT64_T", 8, 8, 8},
      {"MPI_LOGICAL1", 1, 1, 1},
      {"MPI_INTEGER1", 1, 1, 1},
      {"MPI_LOGICAL2", 2, 2, 2},
      {"MPI_INTEGER2", 2, 2, 2},
      {"MPI_REAL2", 2, 2, 2},
      {"MPI_LOGICAL4", 4, 4, 4},
      {"MPI_INTEGER4", 4, 4, 4},
      {"MPI_REAL4", 4, 4, 4},
      {"MPI_COMPLEX4", 4, 4, 4},
      {"MPI_LOGICAL8", 8, 8, 8},
      {"MPI_INTEGER8", 8, 8, 8},
      {"MPI_REAL8", 8, 8, 8},
      {"MPI_COMPLEX8", 8, 8, 8},
      {"MPI_LOGICAL16", 16, 16, 16},
      {"MPI_INTEGER16", 16, 16, 16},
      {"MPI_REAL16", 16, 16, 16},
      {"MPI_COMPLEX16", 16, 16, 16},
      {"MPI_COMPLEX32", 32, 32, 32},
  };
  ASSERT_EQ(std::size(rows), basic_count - 1);
  for (size_t i = 0; i < std::size(rows); ++i) {
    const Type& type = predefined(BasicType(i + 1));
    ASSERT_STREQ(type.name(), rows[i].name);
    EXPECT_EQ(type.size(), rows[i].size) << rows[i].name;
    EXPECT_EQ(type.extent(), rows[i].extent) << rows[i].name;
    EXPECT_EQ(type.true_extent(), rows[i].true_extent) << rows[i].name;
    EXPECT_EQ(type.lb(), 0) << rows[i].name;
    EXPECT_EQ(type.true_lb(), 0) << rows[i].name;
  }
}

}  // namespace
}  // namespace headway::datatypes
