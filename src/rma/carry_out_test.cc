// What frames ask of a window's memory: right ones do it, all others do nothing.
#include "rma/carry_out.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace headway::rma {
namespace {

using datatypes::BasicType;
using datatypes::ReduceOp;

// A body as an origin makes it.
struct Body {
  Body& run(int64_t at, uint64_t bytes) {
    runs.push_back({at, bytes});
    return *this;
  }
  std::vector<char> bytes(const void* data = nullptr, size_t n = 0) const {
    const Head head{request, uint32_t(runs.size()), 0};
    std::vector<char> out(sizeof head + runs.size() * sizeof(Run) + n);
    memcpy(out.data(), &head, sizeof head);
    memcpy(out.data() + sizeof head, runs.data(), runs.size() * sizeof(Run));
    if (n) memcpy(out.data() + out.size() - n, data, n);
    return out;
  }
  std::vector<Run> runs;
  uint32_t request = 0;
};

bool read(Places& places, const std::vector<char>& body) {
  return places.read(body.data(), uint32_t(body.size()));
}

Work work_of(ReduceOp op, BasicType basic) {
  Work work;
  EXPECT_TRUE(find_work(op, basic, work));
  return work;
}

TEST(CarryOut, PutsAndGets) {
  char memory[64] = {};
  const Memory window{memory, sizeof memory};
  Places places;
  const std::vector<char> body = Body().run(3, 4).run(60, 4).bytes("abcdefgh", 8);
  ASSERT_TRUE(read(places, body));
  ASSERT_EQ(put(window, places), Carried::done);
  EXPECT_EQ(memcmp(memory + 3, "abcd", 4), 0);
  EXPECT_EQ(memcmp(memory + 60, "efgh", 4), 0);
  EXPECT_EQ(memory[2] + memory[7], 0);
  const std::vector<char> asked = Body().run(60, 4).run(3, 4).bytes();
  ASSERT_TRUE(read(places, asked));
  char out[8];
  ASSERT_EQ(get(window, places, out), Carried::done);
  EXPECT_EQ(memcmp(out, "efghabcd", 8), 0);
}

TEST(CarryOut, AccumulatesAndTellsWhatWasThere) {
  int memory[4] = {1, 2, 3, 4};
  const Memory window{reinterpret_cast<char*>(memory), sizeof memory};
  Places places;
  const int operands[] = {10, 20}, before_expected[] = {2, 3};
  int before[2];
  const std::vector<char> body = Body().run(4, 8).bytes(operands, 8);
  ASSERT_TRUE(read(places, body));
  const Work sum = work_of(ReduceOp::sum, BasicType::int_);
  ASSERT_EQ(accumulate(window, places, sum, reinterpret_cast<char*>(before)), Carried::done);
  EXPECT_EQ(memory[0], 1);
  EXPECT_EQ(memory[1], 12);
  EXPECT_EQ(memory[2], 23);
  EXPECT_EQ(memory[3], 4);
  EXPECT_EQ(memcmp(before, before_expected, 8), 0);
  const Work none = work_of(ReduceOp::no_op, BasicType::int_);
  const std::vector<char> asked = Body().run(4, 8).bytes();
  ASSERT_TRUE(read(places, asked));
  ASSERT_EQ(accumulate(window, places, none, reinterpret_cast<char*>(before)), Carried::done);
  EXPECT_EQ(before[0], 12);
  EXPECT_EQ(before[1], 23);
  EXPECT_EQ(accumulate(window, places, sum, nullptr), Carried::garbage);  // no operands
}

TEST(CarryOut, NothingOfWhatIsPartlyOutside) {
  char memory[64] = {};
  const Memory window{memory, sizeof memory};
  Places places;
  const std::vector<char> body = Body().run(0, 4).run(61, 4).bytes("abcdefgh", 8);
  ASSERT_TRUE(read(places, body));
  EXPECT_EQ(put(window, places), Carried::garbage);
  EXPECT_EQ(accumulate(window, places, work_of(ReduceOp::sum, BasicType::int_), nullptr),
            Carried::garbage);
  for (const char byte : memory) ASSERT_EQ(byte, 0);
}

TEST(CarryOut, RefusesWhatIsNotAttached) {
  char memory[64] = {};
  Attached attached;
  attached.base = memory + 16;
  attached.size = 16;
  base::List<Attached> list;
  list.push_back(&attached);
  const Memory window{nullptr, 0, &list};
  const auto address = int64_t(reinterpret_cast<uintptr_t>(memory));
  Places places;
  std::vector<char> body = Body().run(address + 16, 16).bytes("abcdefghijklmnop", 16);
  ASSERT_TRUE(read(places, body));
  EXPECT_EQ(put(window, places), Carried::done);
  for (const int64_t at : {address + 15, address + 17, int64_t(0), int64_t(-1)}) {
    body = Body().run(at, 16).bytes("ABCDEFGHIJKLMNOP", 16);
    ASSERT_TRUE(read(places, body));
    EXPECT_EQ(put(window, places), Carried::refused);
  }
  EXPECT_EQ(memcmp(memory + 16, "abcdefghijklmnop", 16), 0);
  EXPECT_EQ(memory[15] + memory[32], 0);
  list.remove(&attached);
}

TEST(CarryOut, SwapsOneElement) {
  int64_t memory[2] = {7, 8};
  const Memory window{reinterpret_cast<char*>(memory), sizeof memory};
  const Work work = work_of(ReduceOp::replace, BasicType::int64_t);
  const int64_t both[] = {8, 80};
  int64_t before = 0;
  Places places;
  const std::vector<char> body = Body().run(8, 8).bytes(both, 16);
  ASSERT_TRUE(read(places, body));
  ASSERT_EQ(swap(window, places, work, reinterpret_cast<char*>(&before)), Carried::done);
  EXPECT_EQ(before, 8);
  EXPECT_EQ(memory[1], 80);
  EXPECT_EQ(swap(window, places, work_of(ReduceOp::replace, BasicType::double_),
                 reinterpret_cast<char*>(&before)),
            Carried::garbage);
  const std::vector<char> two = Body().run(0, 8).run(8, 8).bytes(both, 16);
  ASSERT_TRUE(read(places, two));
  EXPECT_EQ(swap(window, places, work, reinterpret_cast<char*>(&before)), Carried::garbage);
}

// Any bytes: sense or garbage, and never a byte outside of the window.
TEST(CarryOut, SurvivesAnyBody) {
  const char* given = getenv("HEADWAY_TEST_SEED");
  const uint64_t seed = given ? strtoull(given, nullptr, 0) : 1;
  printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  constexpr size_t size = 512, edge = 64;
  uint64_t sensible = 0;
  for (int turn = 0; turn < 50'000; ++turn) {
    std::vector<char> memory(size + 2 * edge, 'm');
    const Memory window{memory.data() + edge, size};
    Body made;
    made.request = uint32_t(random() % 2);
    const uint64_t runs = 1 + random() % 4;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < runs; ++i) {
      const uint64_t bytes = random() % 8 ? 8 * (1 + random() % 8) : random();
      const auto at = int64_t(random() % 8 ? random() % (size + 16) : random());
      made.run(at, bytes);
      sum += bytes;
    }
    std::vector<char> data(random() % 4 ? sum % most_body : random() % 300, 'd');
    std::vector<char> body = made.bytes(data.data(), data.size());
    if (random() % 4 == 0) body.resize(random() % (body.size() + 1));
    if (random() % 4 == 0 && !body.empty()) body[random() % body.size()] = char(random());
    if (body.size() > most_body) body.resize(most_body);
    Places places;
    if (!read(places, body)) continue;
    std::vector<char> out(places.bytes() + 1, 'o');
    Work work;
    Carried carried = Carried::garbage;
    switch (random() % 4) {
      case 0: carried = put(window, places); break;
      case 1: carried = get(window, places, out.data()); break;
      case 2:
        if (read_work(int32_t(1 + random() % 14) | int32_t(random() % 72) << 8, work)) {
          carried = accumulate(window, places, work, random() % 2 ? out.data() : nullptr);
        }
        break;
      default:
        if (read_work(int32_t(ReduceOp::replace) | int32_t(random() % 72) << 8, work)) {
          carried = swap(window, places, work, out.data());
        }
    }
    sensible += carried == Carried::done;
    for (size_t i = 0; i < edge; ++i) {
      ASSERT_EQ(memory[i], 'm') << "turn " << turn;
      ASSERT_EQ(memory[edge + size + i], 'm') << "turn " << turn;
    }
    ASSERT_EQ(out.back(), 'o') << "turn " << turn;
  }
  EXPECT_GT(sensible, 1000u);  // or it tests nothing
}

// Two threads, as two processes would, in memory that has stripes: no sum is lost.
TEST(CarryOut, StripesKeepAccumulatesApart) {
  constexpr int numbers = 3000, turns = 300;  // over several blocks
  auto stripes = std::vector<Stripes>(1);
  std::vector<int64_t> memory(numbers);
  const Memory window{reinterpret_cast<char*>(memory.data()), numbers * 8, nullptr, stripes.data()};
  const Work sum = work_of(ReduceOp::sum, BasicType::int64_t);
  const auto add = [&] {
    const std::vector<int64_t> ones(500, 1);
    for (int turn = 0; turn < turns; ++turn) {
      for (int first = 0; first < numbers; first += 500) {
        const std::vector<char> body = Body().run(first * 8, 4000).bytes(ones.data(), 4000);
        Places places;
        ASSERT_TRUE(read(places, body));
        ASSERT_EQ(accumulate(window, places, sum, nullptr), Carried::done);
      }
    }
  };
  std::thread other(add);
  add();
  other.join();
  for (const int64_t number : memory) ASSERT_EQ(number, 2 * turns);
}

}  // namespace
}  // namespace headway::rma
