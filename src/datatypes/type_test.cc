// Types one by one: the ABI's table, bounds recorded from other libraries, what constructors
// refuse, what they tell about themselves, and that nothing is leaked or copied too deep.
#include "datatypes/type.h"

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/heap.h"
#include "datatypes/pack.h"
#include "datatypes/reduce.h"
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

// Types made in one test, released at its end; a failing constructor gives the test's failure.
class Made : public testing::Test {
 protected:
  void SetUp() override { heap_before_ = base::heap_in_use(); }
  void TearDown() override {
    for (Type* type : made_) type->release();
    EXPECT_EQ(base::heap_in_use(), heap_before_) << "a type was not freed";
  }

  template <class Make>
  const Type& make(Make&& make) {
    Type* type = nullptr;
    EXPECT_EQ(make(type), Outcome::ok);
    if (!type) return predefined(B::byte);
    made_.push_back(type);
    return *type;
  }

  const Type& of(B basic) { return predefined(basic); }
  const Type& contiguous(int64_t n, const Type& child) {
    return make([&](Type*& out) { return make_contiguous(Form::narrow, n, child, out); });
  }
  const Type& vector(int64_t n, int64_t block, int64_t stride, const Type& child) {
    return make(
        [&](Type*& out) { return make_vector(Form::narrow, n, block, stride, child, out); });
  }
  const Type& resized(const Type& child, int64_t lb, int64_t extent) {
    return make([&](Type*& out) { return make_resized(Form::narrow, child, lb, extent, out); });
  }
  const Type& indexed(std::vector<int> blocks, std::vector<int> at, const Type& child) {
    return make([&](Type*& out) {
      return make_indexed(Form::narrow, int64_t(at.size()), blocks.data(), at.data(), child, out);
    });
  }
  const Type& structure(std::vector<int> blocks, std::vector<int64_t> at,
                        std::vector<const Type*> types) {
    return make([&](Type*& out) {
      return make_struct(Form::narrow, int64_t(at.size()), blocks.data(), at.data(), types.data(),
                         out);
    });
  }
  const Type& darray(int rank, int order) {
    const int sizes[] = {10, 21}, how[] = {17, 18}, arguments[] = {19, 2}, grid[] = {2, 3};
    return make([&](Type*& out) {
      return make_darray(Form::narrow, 6, rank, 2, sizes, how, arguments, grid, order, of(B::int_),
                         out);
    });
  }

  void expect(const char* what, const Type& type, uint64_t size, int64_t lb, int64_t extent,
              int64_t true_lb, int64_t true_extent) {
    EXPECT_EQ(type.size(), size) << what;
    EXPECT_EQ(type.lb(), lb) << what;
    EXPECT_EQ(type.extent(), extent) << what;
    EXPECT_EQ(type.true_lb(), true_lb) << what;
    EXPECT_EQ(type.true_extent(), true_extent) << what;
  }

 private:
  std::vector<Type*> made_;
  size_t heap_before_ = 0;
};

// Recorded from a program compiled by the wrappers of MPICH 5.0 and Open MPI 5.0, which agree here.
TEST_F(Made, BoundsAreThoseOfBothPeers) {
  const Type &d = of(B::double_), &c = of(B::char_), &i = of(B::int_), &s = of(B::short_);
  const Type& record = structure({1, 1}, {0, 8}, {&d, &c});
  expect("struct{double,char}", record, 9, 0, 16, 0, 9);
  expect("3 of it", contiguous(3, record), 27, 0, 48, 0, 41);
  expect("{long double,char}", structure({1, 1}, {0, 16}, {&of(B::long_double), &c}), 17, 0, 32, 0,
         17);
  expect("{complex,char@8}", structure({1, 1}, {0, 8}, {&of(B::c_double_complex), &c}), 17, 0, 16,
         0, 16);
  expect("{short_int,char}", structure({1, 1}, {0, 8}, {&of(B::short_int), &c}), 7, 0, 12, 0, 9);
  expect("{0 double,char@8}", structure({0, 1}, {100, 8}, {&d, &c}), 1, 8, 1, 8, 1);
  expect("{0 double,char@-7}", structure({0, 1}, {100, -7}, {&d, &c}), 1, -7, 1, -7, 1);
  expect("{int@-8,char@1}", structure({1, 1}, {-8, 1}, {&i, &c}), 5, -8, 12, -8, 10);
  expect("contiguous(0)", contiguous(0, i), 0, 0, 0, 0, 0);
  expect("resized empty", resized(contiguous(0, i), -4, 12), 0, -4, 12, 0, 0);
  expect("vector(3,2,-4)", vector(3, 2, -4, i), 24, -32, 40, -32, 40);
  expect("vector(0)", vector(0, 2, 4, i), 0, 0, 0, 0, 0);
  const Type& backwards = resized(i, 4, -8);
  expect("negative extent", backwards, 4, 4, -8, 0, 4);
  expect("3 of it", contiguous(3, backwards), 12, -12, 8, -16, 20);
  expect("vector of it", vector(3, 2, 4, backwards), 24, -68, 64, -72, 76);
  expect("indexed", indexed({2, 0, 3}, {5, 9, -1}, i), 20, -4, 32, -4, 32);
  expect("indexed, empty", indexed({0, 0}, {5, 9}, i), 0, 0, 0, 0, 0);
  const int at[] = {5, 1, 9};
  const int64_t wide[] = {5, 1, 9};
  expect("indexed_block",
         make([&](Type*& out) { return make_indexed_block(Form::narrow, 3, 2, at, s, out); }), 12,
         2, 20, 2, 20);
  expect("hindexed_block",
         make([&](Type*& out) { return make_hindexed_block(Form::narrow, 3, 2, wide, s, out); }),
         12, 1, 12, 1, 12);
  const Type& padded = resized(d, -8, 24);
  expect("resized(double)", padded, 8, -8, 24, 0, 8);
  expect("vector of it", vector(3, 2, 4, padded), 48, -8, 240, 0, 224);
  expect("2 short_int", contiguous(2, of(B::short_int)), 12, 0, 16, 0, 16);
  expect("2 double_int", contiguous(2, of(B::double_int)), 24, 0, 32, 0, 28);
}

TEST_F(Made, ArraysAreThoseOfBothPeers) {
  const int sizes[] = {10, 20}, part[] = {3, 4}, start[] = {2, 5};
  const auto subarray = [&](int order) -> const Type& {
    return make([&](Type*& out) {
      return make_subarray(Form::narrow, 2, sizes, part, start, order, of(B::double_), out);
    });
  };
  expect("subarray C", subarray(abi::k_ORDER_C), 96, 0, 1600, 360, 352);
  expect("subarray Fortran", subarray(abi::k_ORDER_FORTRAN), 96, 0, 1600, 416, 264);
  const struct {
    uint64_t size;
    int64_t c_lb, c_extent, f_lb, f_extent;
  } darrays[] = {{160, 0, 416, 0, 780},    {140, 8, 412, 80, 740},    {120, 16, 392, 160, 540},
                 {160, 420, 416, 20, 780}, {140, 428, 412, 100, 740}, {120, 436, 392, 180, 540}};
  for (int rank = 0; rank < 6; ++rank) {
    const auto& row = darrays[rank];
    expect("darray C", darray(rank, abi::k_ORDER_C), row.size, 0, 840, row.c_lb, row.c_extent);
    expect("darray F", darray(rank, abi::k_ORDER_FORTRAN), row.size, 0, 840, row.f_lb,
           row.f_extent);
  }
}

// The peers disagree here; the standard's definition of lb and ub decides (as Open MPI does).
TEST_F(Made, MarkersOfMembersSetTheBounds) {
  const Type &d = of(B::double_), &c = of(B::char_);
  const Type& marked = resized(of(B::int_), 0, 16);
  expect("{marked@0,double@24}", structure({1, 1}, {0, 24}, {&marked, &d}), 12, 0, 16, 0, 32);
  expect("{marked@8,char@24}", structure({1, 1}, {8, 24}, {&marked, &c}), 5, 8, 16, 8, 17);
  const Type& tight = resized(of(B::int_), 0, 5);
  expect("no rounding up", structure({1, 1}, {0, 5}, {&tight, &c}), 5, 0, 5, 0, 6);
}

TEST_F(Made, LayoutsAreSimplified) {
  const Type& d = of(B::double_);
  EXPECT_TRUE(contiguous(5, contiguous(7, d)).is_contiguous(100));
  EXPECT_TRUE(vector(4, 3, 3, d).is_contiguous(100));
  EXPECT_TRUE(indexed({2, 3, 1}, {0, 2, 5}, d).is_contiguous(9));
  EXPECT_FALSE(vector(4, 1, 2, d).is_contiguous(1));
  EXPECT_TRUE(resized(d, 0, 16).is_contiguous(1));
  EXPECT_FALSE(resized(d, 0, 16).is_contiguous(2));
  // An index list that is in truth a vector, and loops that run into each other, are one loop.
  const Type& regular = indexed({2, 2, 2, 2}, {0, 5, 10, 15}, d);
  EXPECT_EQ(regular.layout().kind, Node::Kind::loop);
  EXPECT_EQ(regular.layout().count, 4u);
  const Type& column = resized(vector(4, 1, 10, d), 0, 4 * 80);
  const Type& longer = contiguous(6, column);
  EXPECT_EQ(longer.layout().depth, 1);
  EXPECT_EQ(longer.layout().count, 24u);
  // A struct whose members touch is one run.
  const Type& i = of(B::int_);
  const Type& packed = structure({1, 2, 1}, {0, 4, 12}, {&i, &i, &i});
  EXPECT_TRUE(packed.is_contiguous(3));
  EXPECT_EQ(runs(packed, 3), 1u);
  EXPECT_EQ(runs(regular, 3), 12u);
  EXPECT_EQ(runs(contiguous(0, d), 3), 0u);
}

TEST_F(Made, TellHowTheyWereMade) {
  const Type& i = of(B::int_);
  const Type& narrow = indexed({2, 1}, {4, 0}, i);
  const Contents& contents = narrow.contents();
  EXPECT_EQ(narrow.combiner(), Combiner::indexed);
  EXPECT_EQ(std::vector<int>(contents.integers, contents.integers + contents.integer_count),
            (std::vector<int>{2, 2, 1, 4, 0}));
  EXPECT_EQ(contents.count_count, 0u);
  EXPECT_EQ(contents.address_count, 0u);
  ASSERT_EQ(contents.type_count, 1u);
  EXPECT_EQ(contents.types[0], &i);

  const int64_t blocks[] = {1, 3}, at[] = {-8, 1ll << 40};
  const Type* members[] = {&narrow, &i};
  const Type& large =
      make([&](Type*& out) { return make_struct(Form::large, 2, blocks, at, members, out); });
  const Contents& wide = large.contents();
  EXPECT_EQ(std::vector<int64_t>(wide.counts, wide.counts + wide.count_count),
            (std::vector<int64_t>{2, 1, 3, -8, 1ll << 40}));
  EXPECT_EQ(wide.integer_count, 0u);
  EXPECT_EQ(wide.address_count, 0u);
  ASSERT_EQ(wide.type_count, 2u);
  EXPECT_EQ(wide.types[0], &narrow);

  const Type& bounds = resized(i, -4, 12);
  ASSERT_EQ(bounds.contents().address_count, 2u);
  EXPECT_EQ(bounds.contents().addresses[0], -4);
  EXPECT_EQ(bounds.contents().addresses[1], 12);
  const Contents& array = darray(4, abi::k_ORDER_FORTRAN).contents();
  EXPECT_EQ(std::vector<int>(array.integers, array.integers + array.integer_count),
            (std::vector<int>{6, 4, 2, 10, 21, 17, 18, 19, 2, 2, 3, 0xF}));
}

TEST_F(Made, DupKeepsWhatTheOldOneIs) {
  const Type& plain = make([&](Type*& out) { return make_dup(of(B::double_), out); });
  EXPECT_TRUE(plain.committed());
  EXPECT_FALSE(plain.predefined());
  EXPECT_EQ(plain.basic(), B::double_);
  EXPECT_EQ(contiguous(1, plain).basic(), B::none);
  EXPECT_FALSE(make([&](Type*& out) { return make_dup(contiguous(2, plain), out); }).committed());
  const Type& pair = make([&](Type*& out) { return make_dup(of(B::short_int), out); });
  expect("dup(short_int)", pair, 6, 0, 8, 0, 8);
}

// A program may free a type while others that use it live on, and in any order.
TEST_F(Made, MembersOutliveTheirHandles) {
  Type *inner = nullptr, *outer = nullptr;
  ASSERT_EQ(make_vector(Form::narrow, 3, 1, 2, of(B::int_), inner), Outcome::ok);
  ASSERT_EQ(make_vector(Form::narrow, 2, 1, 2, *inner, outer), Outcome::ok);
  inner->release();
  int from[32], to[6];
  for (int i = 0; i < 32; ++i) from[i] = i;
  EXPECT_EQ(pack(*outer, from, 1, 0, to, sizeof to), sizeof to);
  EXPECT_EQ(std::vector<int>(to, to + 6), (std::vector<int>{0, 2, 4, 10, 12, 14}));
  outer->release();
}

TEST_F(Made, RefuseWhatMakesNoSense) {
  Type* out = nullptr;
  const Type& i = of(B::int_);
  const Form n = Form::narrow;
  const int minus[] = {1, -1}, zero[] = {0, 0}, one[] = {1, 1}, two[] = {2, 2}, four[] = {4, 4};
  const auto bad = Outcome::bad_argument;
  EXPECT_EQ(make_contiguous(n, -1, i, out), bad);
  EXPECT_EQ(make_vector(n, -1, 1, 1, i, out), bad);
  EXPECT_EQ(make_vector(n, 1, -1, 1, i, out), bad);
  EXPECT_EQ(make_hvector(n, 2, -1, 1, i, out), bad);
  EXPECT_EQ(make_indexed(n, 2, minus, zero, i, out), bad);
  EXPECT_EQ(make_hindexed(n, 2, minus, zero, i, out), bad);
  EXPECT_EQ(make_indexed_block(n, 2, -3, zero, i, out), bad);
  EXPECT_EQ(make_hindexed_block(n, -2, 3, zero, i, out), bad);
  const Type* members[] = {&i, &i};
  EXPECT_EQ(make_struct(n, 2, minus, zero, members, out), bad);
  EXPECT_EQ(make_struct(n, -2, one, zero, members, out), bad);
  const auto subarray = [&](int dims, const int* sizes, const int* part, const int* start,
                            int ord) {
    return make_subarray(n, dims, sizes, part, start, ord, i, out);
  };
  EXPECT_EQ(subarray(0, four, two, one, 0xC), bad);
  EXPECT_EQ(subarray(2, four, zero, one, 0xC), bad);
  EXPECT_EQ(subarray(2, two, four, zero, 0xC), bad);
  EXPECT_EQ(subarray(2, four, four, one, 0xC), bad);
  EXPECT_EQ(subarray(2, four, two, minus, 0xC), bad);
  EXPECT_EQ(subarray(2, four, two, one, 0xD), bad);
  const int cyclic[] = {18, 18}, unset[] = {19, 19}, none[] = {16, 16}, block[] = {17, 17};
  const auto darray = [&](int ranks, int rank, const int* how, const int* arg, const int* grid) {
    return make_darray(n, ranks, rank, 2, four, how, arg, grid, 0xC, i, out);
  };
  EXPECT_EQ(darray(4, 4, cyclic, unset, two), bad);  // no such rank
  EXPECT_EQ(darray(5, 0, cyclic, unset, two), bad);  // the grid has 4 processes
  EXPECT_EQ(darray(4, 0, none, unset, two), bad);    // not distributed over two
  EXPECT_EQ(darray(4, 0, block, one, two), bad);     // blocks too short for the array
  EXPECT_EQ(darray(4, 0, cyclic, zero, two), bad);
  EXPECT_EQ(darray(4, 0, four, unset, two), bad);  // no such distribution
  EXPECT_EQ(out, nullptr);
}

TEST_F(Made, RefuseWhatLeaves64Bits) {
  Type* out = nullptr;
  const int64_t most = std::numeric_limits<int64_t>::max();
  const Type& d = of(B::double_);
  const Form l = Form::large;
  EXPECT_EQ(make_contiguous(l, most / 4, d, out), Outcome::bad_argument);
  EXPECT_EQ(make_vector(l, 3, 1, most / 8, d, out), Outcome::bad_argument);
  EXPECT_EQ(make_hvector(l, 3, 1, most / 2 + 1, d, out), Outcome::bad_argument);
  EXPECT_EQ(make_resized(l, d, most, 1, out), Outcome::bad_argument);
  const int64_t blocks[] = {most / 8, most / 8}, at[] = {0, 8};
  EXPECT_EQ(make_hindexed(l, 2, blocks, at, d, out), Outcome::bad_argument);
  const Type* members[] = {&d, &d};
  EXPECT_EQ(make_struct(l, 2, blocks, at, members, out), Outcome::bad_argument);
  const int64_t sizes[] = {1ll << 40, 1ll << 40}, one[] = {1, 1}, zero[] = {0, 0};
  EXPECT_EQ(make_subarray(l, 2, sizes, one, zero, 0xC, d, out), Outcome::bad_argument);
  EXPECT_EQ(out, nullptr);
  // The largest that fits is no error.
  const Type& huge = make([&](Type*& o) { return make_contiguous(l, most / 8, d, o); });
  EXPECT_EQ(huge.size(), uint64_t(most / 8) * 8);
  EXPECT_EQ(packed_size(huge, 8), UINT64_MAX);
}

TEST_F(Made, DeepNestsEndWellOneWayOrTheOther) {
  const Type& byte = of(B::byte);
  const Type* last = &byte;
  for (int i = 0; i < 100'000; ++i) {  // a chain that is released without recursion
    Type* next = nullptr;
    ASSERT_EQ(make_dup(*last, next), Outcome::ok);
    if (!last->predefined()) last->release();
    last = next;
  }
  last->release();
  // Structs of the one before and a byte further on: flattened, whatever the depth.
  last = &byte;
  for (int i = 1; i < 2000; ++i) {
    Type* next = nullptr;
    const int64_t blocks[] = {1, 1}, at[] = {0, 2 * i};
    const Type* members[] = {last, &byte};
    ASSERT_EQ(make_struct(Form::large, 2, blocks, at, members, next), Outcome::ok) << i;
    if (!last->predefined()) last->release();
    last = next;
  }
  EXPECT_EQ(last->size(), 2000u);
  EXPECT_LE(last->layout().depth, 40);
  last->release();
}

// Loops in loops double the size each time: the 63rd leaves 64 bits, and any byte of the 62nd can
// be found at once.
TEST_F(Made, LoopsInLoops) {
  const Type* nest = &of(B::byte);
  int levels = 0;
  for (;; ++levels) {
    Type* next = nullptr;
    const Outcome outcome = make_hvector(Form::large, 2, 1, 3 + levels, *nest, next);
    if (outcome != Outcome::ok) {
      EXPECT_EQ(outcome, Outcome::bad_argument);
      break;
    }
    if (!nest->predefined()) nest->release();
    nest = next;
  }
  EXPECT_EQ(levels, 62);
  std::vector<char> memory(size_t(nest->true_extent()));
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = char(i * 37 + i / 256);
  for (uint64_t offset : {0ull, 1ull, 12345678901ull, (1ull << 61) + 7, (1ull << 62) - 16}) {
    char got[16];
    ASSERT_EQ(pack(*nest, memory.data(), 1, offset, got, sizeof got), sizeof got);
    for (uint64_t i = 0; i < sizeof got; ++i) {
      size_t at = 0;
      for (int level = 0; level < levels; ++level) {
        if ((offset + i) >> level & 1) at += size_t(3 + level);
      }
      EXPECT_EQ(got[i], memory[at]) << offset << " + " << i;
    }
  }
  nest->release();
}

TEST_F(Made, SignaturesFollowTheElements) {
  const Type &i = of(B::int_), &d = of(B::double_), &b = of(B::byte);
  const Type& record = structure({1, 2}, {0, 8}, {&i, &d});
  const auto agree = [](const Type& a, uint64_t m, const Type& c, uint64_t n) {
    return may_match(signature(a, m), signature(c, n));
  };
  EXPECT_TRUE(agree(i, 12, vector(3, 4, 9, i), 1));
  EXPECT_TRUE(agree(record, 6, contiguous(3, record), 2));
  EXPECT_TRUE(agree(of(B::long_), 5, of(B::int64_t), 5));
  EXPECT_FALSE(agree(i, 12, i, 11));
  EXPECT_FALSE(agree(i, 2, d, 1));
  EXPECT_FALSE(agree(of(B::long_), 1, d, 1));
  EXPECT_FALSE(agree(record, 2, structure({2, 1}, {0, 16}, {&d, &i}), 2));  // another order
  EXPECT_TRUE(agree(record, 2, b, 40));
  EXPECT_EQ(signature(record, 1000).elements, 3000u);
  EXPECT_EQ(signature(record, 0).elements, 0u);
}

TEST_F(Made, Names) {
  Type* type = nullptr;
  ASSERT_EQ(make_contiguous(Form::narrow, 2, of(B::int_), type), Outcome::ok);
  EXPECT_STREQ(type->name(), "");
  type->set_name("ghost row");
  EXPECT_STREQ(type->name(), "ghost row");
  type->set_name(std::string(500, 'x').c_str());
  EXPECT_EQ(strlen(type->name()), size_t(abi::k_MAX_OBJECT_NAME) - 1);
  type->release();
}

TEST_F(Made, SpanCoversWhatIsTouched) {
  const Type& column = vector(3, 1, 4, of(B::int_));
  EXPECT_EQ(span(column, 2).low, 0);
  EXPECT_EQ(span(column, 2).high, 36 + 36);
  const Type& backwards = resized(of(B::int_), 0, -8);
  EXPECT_EQ(span(backwards, 3).low, -16);
  EXPECT_EQ(span(backwards, 3).high, 4);
  EXPECT_EQ(span(column, 0).high, 0);
  EXPECT_EQ(span(contiguous(0, column), 5).high, 0);
}

// Costs: packing allocates nothing, and a type with a million blocks keeps no more than it needs.
TEST_F(Made, MemoryOfTypes) {
  std::vector<int> blocks(1 << 20, 1), at(1 << 20);
  for (size_t i = 0; i < at.size(); ++i) at[i] = int(i);
  const size_t before = base::heap_in_use();
  const Type& dense = indexed(blocks, at, of(B::int_));
  EXPECT_TRUE(dense.is_contiguous(4));
  // The arguments have to be kept for MPI_Type_get_contents; the layout needs nothing.
  EXPECT_LT(base::heap_in_use() - before, 2 * sizeof(int) * at.size() + 4096);
  for (size_t i = 0; i < at.size(); ++i) at[i] = int(i * 2 + i % 3);
  const Type& sparse = indexed(blocks, at, of(B::int_));
  const size_t in_use = base::heap_in_use();
  std::vector<char> memory(size_t(sparse.true_extent())), out(1 << 16);
  EXPECT_EQ(pack(sparse, memory.data(), 1, 54321, out.data(), out.size()), out.size());
  EXPECT_EQ(base::heap_in_use(), in_use);
}

}  // namespace
}  // namespace headway::datatypes
