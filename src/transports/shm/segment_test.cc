// Memory that several mappings have in common, in one process.
#include "transports/shm/segment.h"

#include <cstring>
#include <gtest/gtest.h>

namespace headway::shm {
namespace {

constexpr uint64_t bytes = 3 * 4096;

class SegmentTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(made_.create(bytes, key_), Outcome::ok); }
  void TearDown() override {
    made_.detach();
    other_.detach();
  }

  Segment made_, other_;
  Segment::Key key_;
};

TEST_F(SegmentTest, IsOneMemoryInBoth) {
  ASSERT_EQ(other_.attach(key_, bytes), Outcome::ok);
  ASSERT_EQ(made_.reserve(0, 4096), Outcome::ok);
  ASSERT_EQ(other_.reserve(4096, bytes - 4096), Outcome::ok);
  EXPECT_NE(made_.memory(), other_.memory());
  for (uint64_t i = 0; i < bytes; ++i) ASSERT_EQ(other_.memory()[i], 0) << i;
  strcpy(made_.memory(), "first");
  strcpy(other_.memory() + bytes - 8, "last");
  EXPECT_STREQ(other_.memory(), "first");
  EXPECT_STREQ(made_.memory() + bytes - 8, "last");
}

TEST_F(SegmentTest, LivesWithoutItsDescriptor) {
  ASSERT_EQ(other_.attach(key_, bytes), Outcome::ok);
  made_.settle();
  other_.settle();
  made_.memory()[7] = 'x';
  EXPECT_EQ(other_.memory()[7], 'x');
  made_.detach();
  EXPECT_EQ(other_.memory()[7], 'x');
  EXPECT_EQ(made_.memory(), nullptr);
}

TEST_F(SegmentTest, RefusesWhatWasNotMeant) {
  Segment::Key wrong = key_;
  ++wrong.cookie;
  EXPECT_EQ(other_.attach(wrong, bytes), Outcome::refused);
  EXPECT_EQ(other_.memory(), nullptr);
  EXPECT_EQ(other_.attach(key_, bytes + 1), Outcome::refused);
  EXPECT_EQ(other_.attach(Segment::Key{}, bytes), Outcome::refused);
  made_.settle();
  EXPECT_NE(other_.attach(key_, bytes), Outcome::ok);
}

TEST_F(SegmentTest, MayBeEmpty) {
  Segment empty;
  Segment::Key key;
  ASSERT_EQ(empty.create(0, key), Outcome::ok);
  ASSERT_EQ(other_.attach(key, 0), Outcome::ok);
  EXPECT_EQ(empty.reserve(0, 0), Outcome::ok);
  EXPECT_NE(empty.memory(), nullptr);
  empty.detach();
}

}  // namespace
}  // namespace headway::shm
