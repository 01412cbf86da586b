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
#include "datatypes/walk.h"
#include "settings/abi_constants.h"

namespace headway::datatypes {
namespace {

using B = BasicType;

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
  const int64_t ends[] = {-most - 1, most}, singles[] = {1, 1};
  EXPECT_EQ(make_struct(l, 2, singles, ends, members, out), Outcome::bad_argument);
  EXPECT_EQ(make_hindexed(l, 2, singles, ends, d, out), Outcome::bad_argument);
  EXPECT_EQ(make_struct(l, 1, singles, ends + 1, members, out), Outcome::bad_argument);
  const int64_t items[] = {most};
  const int how[] = {17}, unset[] = {19}, two[] = {2};
  EXPECT_EQ(make_darray(l, 2, 1, 1, items, how, unset, two, 0xC, of(B::byte), out),
            Outcome::bad_argument);
  EXPECT_EQ(out, nullptr);
  // An extent may be the smallest number, and a distance that nobody goes does not matter.
  EXPECT_EQ(resized(d, 0, -most - 1).extent(), -most - 1);
  const Type& far = make([&](Type*& o) { return make_hvector(l, 2, 1, most / 2 + 1, d, o); });
  EXPECT_EQ(contiguous(2, resized(far, 0, 8)).size(), 32u);
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

// More elements than these would make sums and products of the type overflow.
TEST_F(Made, NoMoreThanAnAddressSpaceHolds) {
  const int64_t smallest = std::numeric_limits<int64_t>::min();
  const uint64_t all = base::most_bytes;
  EXPECT_EQ(of(B::byte).most(), all);
  EXPECT_EQ(of(B::double_).most(), all / 8);
  EXPECT_EQ(of(B::short_int).most(), all / 8);
  EXPECT_EQ(vector(3, 1, 4, of(B::int_)).most(), all / 36);
  EXPECT_EQ(resized(of(B::int_), 0, -4096).most(), all / 4096);
  EXPECT_EQ(resized(of(B::int_), 0, 0).most(), all / 4);
  EXPECT_EQ(resized(of(B::int_), 0, smallest).most(), 1u);
  EXPECT_EQ(resized(of(B::int_), smallest, 16).most(), all / 16);
  EXPECT_EQ(contiguous(0, of(B::int_)).most(), uint64_t(INT64_MAX));
  const int64_t one = 1, last = INT64_MAX - 8;
  const Type& edge = make(
      [&](Type*& out) { return make_hindexed(Form::large, 1, &one, &last, of(B::int_), out); });
  EXPECT_EQ(edge.most(), 1u);
  EXPECT_EQ(span(edge, edge.most()).high, last + 4);
  const Type& huge = make(
      [&](Type*& out) { return make_contiguous(Form::large, INT64_MAX / 8, of(B::double_), out); });
  EXPECT_EQ(huge.most(), 0u);
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

#if defined(HEADWAY_DEBUG)
TEST(WalkDeathTest, NothingBeyondTheNode) {
  struct Sink {
    bool run(uintptr_t, uint64_t) { return true; }
    bool strided(uintptr_t, uint64_t, int64_t, uint64_t) { return true; }
  } sink;
  Node node;
  node.bytes = 8;
  EXPECT_TRUE(detail::walk(node, 0, 4, 4, sink));
  EXPECT_DEATH((void)detail::walk(node, 0, 4, 5, sink), "does not hold");
  EXPECT_DEATH((void)detail::walk(node, 0, 4, 0, sink), "does not hold");
}
#endif

}  // namespace
}  // namespace headway::datatypes
