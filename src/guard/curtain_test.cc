// Curtains by themselves: the program's memory is its own before and after, whatever is closed.
#include "guard/detail/curtain.h"

#include <fcntl.h>
#include <memory>
#include <vector>

#include "guard/guard_test_closed.h"
#include "guard/guard_test_limits.h"

namespace headway::guard {
namespace {

class Curtains : public testing::Test {
 protected:
  void SetUp() override {
    if (curtain_.start(nullptr) != Outcome::ok) GTEST_SKIP() << "this system gives no curtain";
    ASSERT_EQ(mappings_.open(), Outcome::ok);
  }
  void TearDown() override {
    curtain_.stop();
    mappings_.close();
  }
  size_t open(char* base, const char* view, size_t pages) {
    bool gone;
    char* now;
    return curtain_.open(base, view, pages, gone, now);
  }
  void close_and_open(Range range, const std::vector<size_t>& order) {
    char* view = nullptr;
    ASSERT_EQ(curtain_.close(range, true, view), Outcome::ok);
    for (const size_t page : order) {
      ASSERT_EQ(open(range.base + page * page_bytes, view + page * page_bytes, 1), 1u);
    }
    curtain_.give_back(view, range.pages);
  }
  size_t count_mappings() {
    size_t n = 0;
    Mapping found;
    for (const char* at = nullptr; mappings_.find(at, found); at = found.to) ++n;
    return n;
  }

  Curtain curtain_;
  Mappings mappings_;
};

// What is closed again and again must not use up the mappings of the program.
TEST_F(Curtains, NothingIsLeftBehind) {
  Memory touched(64);
  char* fresh = map_aside(64);
  for (char* base : {touched.base, fresh}) {
    std::vector<size_t> order;
    for (size_t i = 0; i < 40; ++i) order.push_back(i * 27 % 40);
    close_and_open({base + 3 * page_bytes, 40}, order);
    const size_t before = count_mappings();
    for (int i = 0; i < 20; ++i) close_and_open({base + 3 * page_bytes, 40}, order);
    EXPECT_LE(count_mappings(), before);
    Mapping found;
    ASSERT_TRUE(mappings_.find(base, found));
    EXPECT_GE(found.to, base + 64 * page_bytes) << "one mapping, as it was";
    EXPECT_EQ(found.what, Mapping::What::plain);
  }
  munmap(fresh, 64 * page_bytes);
}

TEST_F(Curtains, ThePagesThemselvesComeHome) {
  if (geteuid() != 0) GTEST_SKIP() << "only root sees frames";
  Memory memory(16);
  const auto frames = [&] {
    std::vector<uint64_t> found(16);
    const int fd = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    const auto at = off_t(reinterpret_cast<uintptr_t>(memory.base) / page_bytes * 8);
    EXPECT_EQ(pread(fd, found.data(), 16 * 8, at), 16 * 8);
    ::close(fd);
    for (uint64_t& entry : found) entry &= (uint64_t(1) << 55) - 1;
    return found;
  };
  const auto before = frames();
  ASSERT_NE(before[0], 0u);
  close_and_open({memory.base, 16}, {3, 1, 0, 2, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4});
  EXPECT_EQ(frames(), before);
}

TEST_F(Curtains, AMappingOfTheProgramIsNotReplaced) {
  Memory memory(8);
  char* view = nullptr;
  ASSERT_EQ(curtain_.close({memory.base, 8}, false, view), Outcome::ok);
  ASSERT_EQ(mmap(memory.base + 2 * page_bytes, page_bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            memory.base + 2 * page_bytes);
  memory.base[2 * page_bytes] = 's';
  EXPECT_EQ(open(memory.base, view, 8), 2u);
  EXPECT_EQ(open(memory.base + 2 * page_bytes, view + 2 * page_bytes, 6), 0u);
  EXPECT_EQ(open(memory.base + 3 * page_bytes, view + 3 * page_bytes, 5), 5u);
  curtain_.give_back(view, 8);
  EXPECT_EQ(memory.base[2 * page_bytes], 's');
  EXPECT_EQ(memory.base[3 * page_bytes], 0x5a);
}

// A region's view ends page by page, and another may get its addresses.
TEST_F(Curtains, ViewsAreNotMistakenForOneAnother) {
  constexpr size_t n = 12;
  std::vector<std::unique_ptr<Memory>> memories;
  std::vector<char*> views;
  for (size_t i = 0; i < 8; ++i) {
    memories.push_back(std::make_unique<Memory>(n));
    char* view = nullptr;
    ASSERT_EQ(curtain_.close({memories[i]->base, n}, true, view), Outcome::ok);
    memset(view, int(i), n * page_bytes);
    // All but the last page of the one before.
    if (i > 0) {
      EXPECT_EQ(open(memories[i - 1]->base, views[i - 1], n - 1), n - 1);
    }
    views.push_back(view);
  }
  EXPECT_EQ(open(memories[7]->base, views[7], n - 1), n - 1);
  for (size_t i = 0; i < 8; ++i) {
    const size_t last = (n - 1) * page_bytes;
    EXPECT_EQ(open(memories[i]->base + last, views[i] + last, 1), 1u);
    curtain_.give_back(views[i], n);
  }
  for (size_t i = 0; i < 8; ++i) {
    for (size_t at = 0; at < n * page_bytes; at += 512) ASSERT_EQ(memories[i]->base[at], char(i));
  }
}

// As the end of the guard in a forked child.
TEST_F(Curtains, AllComesHomeAtTheEnd) {
  EXPECT_EQ(in_child([] {
              Curtain curtain;
              if (curtain.start(nullptr) != Outcome::ok) return 2;
              Memory memory(8);
              char* view = nullptr;
              if (curtain.close({memory.base, 8}, true, view) != Outcome::ok) return 3;
              view[5 * page_bytes] = 'm';
              curtain.stop();
              return memory.base[0] == 0x5a && memory.base[5 * page_bytes] == 'm' ? 0 : 4;
            }),
            0);
}

}  // namespace
}  // namespace headway::guard
