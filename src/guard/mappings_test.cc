// What the system says of mappings.
#include "guard/detail/mappings.h"

#include "guard/guard_test_closed.h"

namespace headway::guard {
namespace {

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
    EXPECT_EQ(a.executable, b.executable);
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
