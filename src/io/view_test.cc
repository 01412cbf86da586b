// Views against a dumb model: the places of all bytes, one after the other. The seed of a failure
// is in its message; HEADWAY_TEST_SEED starts there.
#include "io/view.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <utility>
#include <vector>

#include "datatypes/type.h"

namespace headway::io {
namespace {

using datatypes::BasicType;
using datatypes::Form;
using datatypes::Integers;
using datatypes::Type;

// What a type or a view is held by.
template <class Thing>
class Held {
 public:
  explicit Held(Thing* thing) : thing_(thing) {}
  Held(Held&& other) noexcept : thing_(std::exchange(other.thing_, nullptr)) {}
  Held& operator=(Held&&) = delete;
  ~Held() {
    if (thing_) thing_->release();
  }
  Thing& operator*() const { return *thing_; }
  Thing* operator->() const { return thing_; }

 private:
  Thing* thing_;
};

const Type& byte() { return datatypes::predefined(BasicType::byte); }
const Type& integer() { return datatypes::predefined(BasicType::int32_t); }

Held<Type> blocks(const std::vector<int64_t>& lengths, const std::vector<int64_t>& places,
                  const Type& child) {
  Type* made = nullptr;
  EXPECT_EQ(datatypes::make_hindexed(Form::large, int64_t(lengths.size()), Integers(lengths.data()),
                                     Integers(places.data()), child, made),
            Outcome::ok);
  return Held<Type>(made);
}

Held<Type> resized(const Type& child, int64_t extent) {
  Type* made = nullptr;
  EXPECT_EQ(datatypes::make_resized(Form::large, child, 0, extent, made), Outcome::ok);
  return Held<Type>(made);
}

Held<View> view_of(int64_t displacement, const Type& type) {
  return Held<View>(View::make(displacement, byte(), type, native, 1, type));
}

uint64_t first_seed() {
  const char* given = getenv("HEADWAY_TEST_SEED");
  return given ? strtoull(given, nullptr, 0) : 1;
}

struct Random {
  explicit Random(uint64_t seed) : engine(seed) {}
  uint64_t below(uint64_t n) { return engine() % n; }
  std::mt19937_64 engine;
};

// A random file type whose runs go forward, and the places of its bytes in one repetition.
struct Pattern {
  std::vector<int64_t> lengths, places, bytes;
  int64_t extent = 0;
};

Pattern random_pattern(Random& random) {
  Pattern pattern;
  int64_t at = int64_t(random.below(5));
  const uint64_t runs = 1 + random.below(6);
  for (uint64_t i = 0; i < runs; ++i) {
    const auto length = int64_t(1 + random.below(9));
    pattern.lengths.push_back(length);
    pattern.places.push_back(at);
    for (int64_t k = 0; k < length; ++k) pattern.bytes.push_back(at + k);
    at += length + int64_t(random.below(3) ? random.below(12) : 0);
  }
  pattern.extent = at - pattern.places[0] + int64_t(random.below(20));
  return pattern;
}

struct Model {
  const Pattern& pattern;
  int64_t displacement;
  int64_t place(uint64_t byte) const {
    const uint64_t each = pattern.bytes.size();
    return displacement + int64_t(byte / each) * pattern.extent + pattern.bytes[byte % each];
  }
};

TEST(View, RunsAreThoseOfTheModel) {
  for (uint64_t seed = first_seed(), end = seed + 300; seed < end; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Pattern pattern = random_pattern(random);
    const Model model{pattern, int64_t(random.below(1000))};
    const auto inner = blocks(pattern.lengths, pattern.places, byte());
    const auto type = resized(*inner, pattern.extent);
    ASSERT_EQ(View::refuse(*type, 1, true), nullptr);
    const auto view = view_of(model.displacement, *type);
    EXPECT_TRUE(view->is_monotone());
    for (int round = 0; round < 20; ++round) {
      const uint64_t from = random.below(200), n = 1 + random.below(200);
      uint64_t byte_now = from;
      int64_t end_before = -1;
      const bool all = view->for_each_run(from, n, [&](int64_t at, uint64_t bytes) {
        EXPECT_NE(at, end_before) << "two runs that touch";
        for (uint64_t k = 0; k < bytes; ++k, ++byte_now) {
          EXPECT_EQ(at + int64_t(k), model.place(byte_now)) << "byte " << byte_now;
        }
        end_before = at + int64_t(bytes);
        return true;
      });
      EXPECT_TRUE(all);
      EXPECT_EQ(byte_now, from + n);
      int64_t low = 0, high = 0;
      view->bounds(from, n, low, high);
      EXPECT_EQ(low, model.place(from));
      EXPECT_EQ(high, model.place(from + n - 1) + 1);
      EXPECT_EQ(view->place_of(from), model.place(from));
    }
  }
}

TEST(View, BytesBelowASize) {
  for (uint64_t seed = first_seed(), end = seed + 300; seed < end; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Pattern pattern = random_pattern(random);
    const Model model{pattern, int64_t(random.below(50))};
    const auto inner = blocks(pattern.lengths, pattern.places, byte());
    const auto type = resized(*inner, pattern.extent);
    const auto view = view_of(model.displacement, *type);
    for (int64_t size = 0; size < 300; ++size) {
      uint64_t below = 0;
      while (model.place(below) < size) ++below;
      EXPECT_EQ(view->bytes_below(size), below) << "size " << size;
    }
  }
}

TEST(View, APlainOneIsOneRun) {
  const auto view = view_of(100, byte());
  EXPECT_TRUE(view->is_plain());
  EXPECT_EQ(view->bytes_below(90), 0u);
  EXPECT_EQ(view->bytes_below(1000), 900u);
  int runs = 0;
  EXPECT_TRUE(view->for_each_run(5, uint64_t(1) << 40, [&](int64_t at, uint64_t bytes) {
    EXPECT_EQ(at, 105);
    EXPECT_EQ(bytes, uint64_t(1) << 40);
    return ++runs > 0;
  }));
  EXPECT_EQ(runs, 1);
}

TEST(View, AVisitorThatStopsIsNotAskedAgain) {
  const auto inner = blocks({2, 2, 2}, {0, 4, 8}, byte());
  const auto type = resized(*inner, 12);
  const auto view = view_of(0, *type);
  int runs = 0;
  EXPECT_FALSE(view->for_each_run(0, 60, [&](int64_t, uint64_t) { return ++runs < 2; }));
  EXPECT_EQ(runs, 2);
}

TEST(View, PlacesBeyondAnyFileAreNotReached) {
  const auto type = resized(byte(), int64_t(1) << 40);
  const auto view = view_of(0, *type);
  EXPECT_TRUE(view->reaches(1 << 20, 10));
  EXPECT_FALSE(view->reaches(uint64_t(1) << 23, 1));
  EXPECT_FALSE(view->reaches(UINT64_MAX, 2));
  EXPECT_FALSE(view->reaches(uint64_t(INT64_MAX), 5));
  const auto far = view_of(INT64_MAX - 4, byte());
  EXPECT_TRUE(far->reaches(0, 3));
  EXPECT_FALSE(far->reaches(0, 10));
}

TEST(View, WrongFileTypesAreRefused) {
  const auto back = blocks({4, 4}, {8, 0}, byte());
  EXPECT_NE(View::refuse(*back, 1, false), nullptr);
  const auto twice = blocks({4, 4}, {0, 2}, byte());
  EXPECT_NE(View::refuse(*twice, 1, true), nullptr);
  EXPECT_EQ(View::refuse(*twice, 1, false), nullptr) << "a file that is read may have it twice";
  const auto negative = blocks({4}, {-4}, byte());
  EXPECT_NE(View::refuse(*negative, 1, false), nullptr);
  const auto halves = blocks({6}, {0}, byte());
  EXPECT_NE(View::refuse(*halves, 4, false), nullptr);
  const auto nothing = blocks({}, {}, byte());
  EXPECT_EQ(View::refuse(*nothing, 4, true), nullptr) << "a rank may have no part of the file";
  EXPECT_NE(View::refuse(byte(), 0, true), nullptr);
  const auto fixed = resized(integer(), 0);
  EXPECT_NE(View::refuse(*fixed, 4, true), nullptr);
}

TEST(View, OneThatGoesBackIsKnown) {
  // Columns of a matrix: repeated at less than their own length.
  const auto column = blocks({1, 1, 1}, {0, 10, 20}, byte());
  const auto type = resized(*column, 1);
  const auto view = view_of(0, *type);
  EXPECT_FALSE(view->is_monotone());
  int64_t low = 0, high = 0;
  view->bounds(2, 2, low, high);  // byte 20, then byte 1
  EXPECT_EQ(low, 1);
  EXPECT_EQ(high, 21);
}

// Such a type may be read through: the last byte of the view is not the last one in the file.
TEST(View, OneThatHasBytesTwiceIsKnown) {
  const auto type = blocks({200'000, 8}, {0, 100'000}, byte());
  const auto view = view_of(0, *type);
  EXPECT_FALSE(view->is_monotone());
  int64_t low = 0, high = 0;
  view->bounds(0, 200'008, low, high);
  EXPECT_EQ(low, 0);
  EXPECT_EQ(high, 200'000);
  const auto apart = blocks({200'000, 8}, {0, 200'000}, byte());
  EXPECT_TRUE(view_of(0, *apart)->is_monotone()) << "what touches has no byte twice";
}

TEST(View, RunsAreAboutAsManyAsThereAre) {
  const auto inner = blocks({2, 2, 2}, {0, 4, 8}, byte());
  const auto type = resized(*inner, 12);
  const auto view = view_of(0, *type);
  EXPECT_EQ(view->runs_of(0), 0);
  EXPECT_EQ(view->runs_of(1), 1);
  EXPECT_EQ(view->runs_of(600), 300);
  EXPECT_EQ(view_of(0, byte())->runs_of(uint64_t(1) << 40), 1);
}

}  // namespace
}  // namespace headway::io
