// How a target's datatype is cut into runs: all cuts together are the type's bytes in order, no
// element is torn, and every body fits its frame.
#include "rma/layout.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <random>
#include <vector>

#include "datatypes/pack.h"

namespace headway::rma {
namespace {

using datatypes::BasicType;
using datatypes::Form;
using datatypes::ReduceOp;
using datatypes::Type;

uint64_t seed() {
  const char* given = getenv("HEADWAY_TEST_SEED");
  return given ? strtoull(given, nullptr, 0) : 1;
}

// Cuts it all, and puts what lies in `memory` at the runs' places one behind the other.
std::vector<char> cut_all(const Layout& layout, const std::vector<char>& memory,
                          const Layout::Room& room, const Work* work) {
  std::vector<char> out;
  rma::Run runs[most_runs];
  for (uint64_t from = 0; from < layout.bytes();) {
    uint32_t n = 0;
    const uint64_t bytes = layout.cut(from, room, runs, n);
    EXPECT_NE(bytes, 0u);
    if (bytes == 0) break;
    EXPECT_LE(n * sizeof(rma::Run) + (room.has_data ? bytes : 0), room.body);
    EXPECT_LE(bytes, room.bytes);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; ++i) {
      sum += runs[i].bytes;
      const char* at = memory.data() + runs[i].at;
      if (!work) {
        out.insert(out.end(), at, at + runs[i].bytes);
        continue;
      }
      EXPECT_EQ(runs[i].bytes % work->size(), 0u);
      const uint64_t elements = runs[i].bytes / work->size(), before = out.size();
      out.resize(before + runs[i].bytes);
      (void)datatypes::pack(datatypes::predefined(work->basic), at, elements, 0,
                            out.data() + before, runs[i].bytes);
    }
    EXPECT_EQ(sum, bytes);
    from += bytes;
  }
  return out;
}

std::vector<char> packed(const Type& type, const char* base, uint64_t count) {
  std::vector<char> out(type.size() * count);
  (void)datatypes::pack(type, base, count, 0, out.data(), out.size());
  return out;
}

TEST(Layout, CutsRandomTypes) {
  printf("seed %llu\n", static_cast<unsigned long long>(seed()));
  std::mt19937_64 random(seed());
  constexpr BasicType basics[] = {BasicType::char_,     BasicType::int_,
                                  BasicType::double_,   BasicType::double_int,
                                  BasicType::short_int, BasicType::long_double_int,
                                  BasicType::float_int, BasicType::c_double_complex};
  for (int turn = 0; turn < 400; ++turn) {
    const BasicType basic = basics[random() % std::size(basics)];
    const bool is_pair = datatypes::info(basic).group == datatypes::BasicClass::pair;
    const Type& element = datatypes::predefined(basic);
    Type* type = nullptr;
    const auto blocks = int64_t(1 + random() % 9), length = int64_t(1 + random() % 40);
    const auto stride = length + int64_t(random() % 7);
    ASSERT_EQ(datatypes::make_vector(Form::narrow, blocks, length, stride, element, type),
              Outcome::ok);
    const uint64_t count = 1 + random() % 20;
    const int64_t at = int64_t(random() % 100);
    std::vector<char> memory(size_t(at) + size_t(type->extent()) * count + 64);
    for (char& byte : memory) byte = char(random());
    Work work;
    ASSERT_TRUE(find_work(is_pair ? ReduceOp::maxloc : ReduceOp::replace, basic, work));
    const std::vector<char> expected = packed(*type, memory.data() + at, count);
    const Layout::Room data{most_body - sizeof(Head), true};
    const Layout::Room no_data{most_body - sizeof(Head), false};
    for (const Layout::Room& room : {data, no_data}) {
      ASSERT_EQ(cut_all({at, count, *type, &work}, memory, room, &work), expected) << turn;
      ASSERT_EQ(cut_all({at, count, *type, nullptr}, memory, room, nullptr), expected) << turn;
    }
    EXPECT_EQ(element_of(*type), basic);
    type->release();
  }
}

TEST(Layout, TouchingRunsAreOne) {
  rma::Run runs[most_runs];
  uint32_t n = 0;
  const Layout layout(8, 100, datatypes::predefined(BasicType::int_), nullptr);
  EXPECT_EQ(layout.cut(0, {most_body - sizeof(Head), true}, runs, n), 400u);
  ASSERT_EQ(n, 1u);
  EXPECT_EQ(runs[0].at, 8);
  EXPECT_EQ(runs[0].bytes, 400u);
  Work work;
  ASSERT_TRUE(find_work(ReduceOp::minloc, BasicType::double_int, work));
  const Layout pairs(0, 5, datatypes::predefined(BasicType::double_int), &work);
  EXPECT_EQ(pairs.cut(0, {most_body - sizeof(Head), true}, runs, n), 60u);
  ASSERT_EQ(n, 1u);
  EXPECT_EQ(runs[0].bytes, 60u);
}

TEST(Element, IsThatOfAllParts) {
  const Type& number = datatypes::predefined(BasicType::int_);
  const Type& real = datatypes::predefined(BasicType::double_);
  Type *vector = nullptr, *same = nullptr, *mixed = nullptr;
  ASSERT_EQ(datatypes::make_vector(Form::narrow, 2, 1, 2, number, vector), Outcome::ok);
  const int lengths[] = {1, 2};
  const int64_t places[] = {0, 64};
  const Type* const alike[] = {vector, &number};
  const Type* const unlike[] = {vector, &real};
  ASSERT_EQ(datatypes::make_struct(Form::narrow, 2, lengths, places, alike, same), Outcome::ok);
  ASSERT_EQ(datatypes::make_struct(Form::narrow, 2, lengths, places, unlike, mixed), Outcome::ok);
  EXPECT_EQ(element_of(*same), BasicType::int_);
  EXPECT_EQ(element_of(*mixed), BasicType::none);
  EXPECT_TRUE(is_same(BasicType::int_, BasicType::int32_t));
  EXPECT_FALSE(is_same(BasicType::int_, BasicType::unsigned_));
  EXPECT_FALSE(is_same(BasicType::int_, BasicType::float_));
  for (Type* type : {vector, same, mixed}) type->release();
}

TEST(Element, IsWorkedOnWithoutItsGaps) {
  struct Pair {
    double value;
    int place, gap;
  };
  Pair there[2] = {{1.0, 7, 111}, {5.0, 8, 222}};
  char operands[24], before[24];
  const double values[2] = {3.0, 4.0};
  const int places[2] = {70, 80};
  for (int i = 0; i < 2; ++i) {
    memcpy(operands + 12 * i, &values[i], 8);
    memcpy(operands + 12 * i + 8, &places[i], 4);
  }
  Work work;
  ASSERT_TRUE(find_work(ReduceOp::maxloc, BasicType::double_int, work));
  apply(work, reinterpret_cast<char*>(there), operands, before, 2);
  EXPECT_EQ(there[0].value, 3.0);
  EXPECT_EQ(there[0].place, 70);
  EXPECT_EQ(there[0].gap, 111);
  EXPECT_EQ(there[1].value, 5.0);
  EXPECT_EQ(there[1].place, 8);
  EXPECT_EQ(there[1].gap, 222);
  double was;
  memcpy(&was, before + 12, 8);
  EXPECT_EQ(was, 5.0);
}

TEST(Element, IsReadFromAFrame) {
  Work work;
  EXPECT_FALSE(read_work(0, work));
  EXPECT_FALSE(read_work(-1, work));
  EXPECT_FALSE(read_work(int32_t(ReduceOp::sum), work));  // of no datatype
  EXPECT_FALSE(read_work(int32_t(ReduceOp::sum) | int32_t(datatypes::basic_count) << 8, work));
  EXPECT_FALSE(read_work(int32_t(ReduceOp::band) | int32_t(BasicType::double_) << 8, work));
  ASSERT_TRUE(find_work(ReduceOp::sum, BasicType::double_, work));
  Work read;
  ASSERT_TRUE(read_work(work.tag(), read));
  EXPECT_EQ(read.op, ReduceOp::sum);
  EXPECT_EQ(read.basic, BasicType::double_);
}

TEST(Element, IsSwappedIfItIsAsExpected) {
  Work work;
  ASSERT_TRUE(find_work(ReduceOp::replace, BasicType::int_, work));
  int there = 5, before = 0;
  const auto swap_in = [&](int expected, int fresh) {
    swap(work, reinterpret_cast<char*>(&there), reinterpret_cast<const char*>(&expected),
         reinterpret_cast<const char*>(&fresh), reinterpret_cast<char*>(&before));
  };
  swap_in(4, 9);
  EXPECT_EQ(there, 5);
  EXPECT_EQ(before, 5);
  swap_in(5, 9);
  EXPECT_EQ(there, 9);
  EXPECT_EQ(before, 5);
}

}  // namespace
}  // namespace headway::rma
