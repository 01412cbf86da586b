// The table of aliases, and what the system says of mappings, each by itself.
#include "guard/detail/aliases.h"

#include "guard/guard_test_closed.h"

namespace headway::guard {
namespace {

class AliasTable : public testing::Test {
 protected:
  void SetUp() override {
    if (aliases_.start() != Outcome::ok) GTEST_SKIP() << "this system gives no aliases";
  }
  void TearDown() override { aliases_.stop(); }
  // Both addresses show the same.
  void take_and_give(Range range) {
    Aliases::Taken taken;
    ASSERT_EQ(aliases_.take(range, true, taken), Outcome::ok);
    for (size_t page = 0; page < range.pages; ++page) {
      char& there = range.base[page * page_bytes + 7];
      EXPECT_EQ(taken.view[page * page_bytes + 7], there) << "page " << page;
      ++taken.view[page * page_bytes + 7];
      EXPECT_EQ(taken.view[page * page_bytes + 7], there) << "page " << page;
    }
    aliases_.give(taken.view);
  }
  Aliases aliases_;
};

TEST_F(AliasTable, BlocksAreUsedAgainGrowAndAreReplaced) {
  Memory memory(64);
  for (size_t i = 0; i < 64; ++i) memory.base[i * page_bytes + 7] = char(i);
  take_and_give({memory.base, 8});
  EXPECT_EQ(aliases_.counters.made, 1u);
  take_and_give({memory.base, 8});
  take_and_give({memory.base + 2 * page_bytes, 4});
  EXPECT_EQ(aliases_.counters.reused, 2u);
  take_and_give({memory.base, 12});
  EXPECT_EQ(aliases_.counters.grown, 1u);
  take_and_give({memory.base + 4 * page_bytes, 8});
  EXPECT_EQ(aliases_.counters.made, 1u);
  take_and_give({memory.base, 20});
  EXPECT_EQ(aliases_.counters.made, 2u);
  EXPECT_EQ(aliases_.counters.replaced, 1u);
  // Nothing was lost on the way.
  EXPECT_EQ(memory.base[7], char(0 + 4));
  EXPECT_EQ(memory.base[2 * page_bytes + 7], char(2 + 5));
  EXPECT_EQ(memory.base[13 * page_bytes + 7], char(13 + 1));
}

// The oldest idle ones go; the program's memory stays.
TEST_F(AliasTable, NoMoreBlocksThanItMayHave) {
  Memory memory(2 * Aliases::most_blocks + 20);
  for (size_t i = 0; i < Aliases::most_blocks + 5; ++i) {
    take_and_give({memory.base + 2 * i * page_bytes, 1});
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(aliases_.counters.made, Aliases::most_blocks + 5);
  take_and_give({memory.base, 1});
  EXPECT_EQ(aliases_.counters.made, Aliases::most_blocks + 6);
  EXPECT_EQ(memory.base[7], char(0x5a + 2));
}

TEST(MappingsOfTheProcess, TheTextSaysTheSame) {
  Mappings asked, read;
  ASSERT_EQ(asked.open(), Outcome::ok);
  ASSERT_EQ(read.open(true), Outcome::ok);
  Memory memory(4);
  size_t seen = 0;
  Mapping a, b;
  for (const char* at = nullptr; asked.find(at, a) && read.find(at, b); at = a.to) {
    SCOPED_TRACE(testing::Message() << static_cast<const void*>(a.from));
    EXPECT_EQ(a.from, b.from);
    EXPECT_EQ(a.to, b.to);
    EXPECT_EQ(a.file.inode, b.file.inode);
    EXPECT_EQ(a.file.device, b.file.device);
    EXPECT_EQ(a.readable, b.readable);
    EXPECT_EQ(a.writable, b.writable);
    EXPECT_EQ(a.shared, b.shared);
    EXPECT_EQ(a.what, b.what);
    EXPECT_TRUE(a.offset == b.offset || a.file.inode == 0);
    if (++seen > 200 || testing::Test::HasFailure()) break;
  }
  EXPECT_GT(seen, 10u);
  asked.close();
  read.close();
}

}  // namespace
}  // namespace headway::guard
