// Masks of cores as texts.
#include "runtime/core_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

namespace headway::runtime {
namespace {

struct Mask {
  uint64_t words[mask_words] = {};
  Mask& add(unsigned first, unsigned last) {
    for (unsigned core = first; core <= last; ++core) {
      words[core / 64] |= uint64_t(1) << (core % 64);
    }
    return *this;
  }
};

std::string text_of(const Mask& mask) {
  char text[core_list_max];
  write_cores(mask.words, text);
  return text;
}

void goes_both_ways(const Mask& mask) {
  const std::string text = text_of(mask) + ",rest";
  Mask back;
  back.add(0, 511);  // what was there goes
  const char* rest = read_cores(text.c_str(), back.words);
  ASSERT_NE(rest, nullptr) << text;
  EXPECT_STREQ(rest, ",rest") << text;
  EXPECT_EQ(memcmp(back.words, mask.words, sizeof mask.words), 0) << text;
}

TEST(CoreList, Ranges) {
  EXPECT_EQ(text_of(Mask()), "-");
  EXPECT_EQ(text_of(Mask().add(0, 0)), "0");
  EXPECT_EQ(text_of(Mask().add(0, 63)), "0-63");
  EXPECT_EQ(text_of(Mask().add(60, 70)), "60-70");
  EXPECT_EQ(text_of(Mask().add(0, 15).add(32, 32).add(40, 41)), "0-15+32+40-41");
  EXPECT_EQ(text_of(Mask().add(0, 511)), "0-511");
  EXPECT_EQ(text_of(Mask().add(511, 511)), "511");
}

TEST(CoreList, MasksWithManyGapsAreWords) {
  Mask every_second;
  for (unsigned core = 0; core < 128; core += 2) every_second.add(core, core);
  EXPECT_EQ(text_of(every_second), "x5555555555555555.5555555555555555");
  goes_both_ways(every_second);
  Mask all;
  for (unsigned core = 0; core < 512; core += 2) all.add(core, core);
  EXPECT_LT(text_of(all).size(), core_list_max);
  goes_both_ways(all);
}

TEST(CoreList, GoesBothWays) {
  for (const Mask& mask : {Mask(), Mask().add(0, 0), Mask().add(0, 511), Mask().add(63, 64),
                           Mask().add(5, 5).add(7, 9).add(500, 511)}) {
    goes_both_ways(mask);
  }
  const char* given = getenv("HEADWAY_TEST_SEED");
  const unsigned seed = given ? unsigned(atoi(given)) : std::random_device()();
  SCOPED_TRACE("HEADWAY_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 2000; ++i) {
    Mask mask;
    const int parts = int(random() % 40);
    for (int part = 0; part < parts; ++part) {
      const unsigned first = unsigned(random() % 512);
      mask.add(first, std::min(511u, first + unsigned(random() % 30)));
    }
    goes_both_ways(mask);
    if (HasFatalFailure()) return;
  }
}

TEST(CoreList, WhatIsNoListIsRefused) {
  Mask mask;
  for (const char* text : {"", ",", "a", "+1", "1+", "1-", "3-1", "512", "0-512", "99999999999",
                           "1--2", "x", "xg", "x1.", "x11111111111111111", "x1.1.1.1.1.1.1.1.1"}) {
    EXPECT_EQ(read_cores(text, mask.words), nullptr) << text;
  }
}

}  // namespace
}  // namespace headway::runtime
