// Many requests of one call: how often each of them is looked at.
#include "waiting/many.h"

#include <vector>

#include "waiting/waiting_test_line.h"

namespace headway::waiting {
namespace {

class ManyOverALine : public testing::Test, public OverALine {
 protected:
  void TearDown() override { stop(); }

  struct List {
    std::vector<Request*> requests;
    mutable uint64_t looks = 0;
  };
  static Request* at(const void* list, uint32_t place) {
    const auto* of = static_cast<const List*>(list);
    ++of->looks;
    return of->requests[place];
  }
};

// Half of a list lies in closed pages. Something else works in the pages of the rest, which are
// over one after the other, at each look one: those that are closed are not looked at again.
TEST_F(ManyOverALine, LooksAtEachOnceHoweverOftenTheRestKeepsIt) {
  constexpr uint32_t count = 128;
  constexpr uint64_t size = 4 * page;
  start(1);
  if (IsSkipped()) return;
  if (!can_close()) GTEST_SKIP() << "no calls can be trapped here";
  const Memory memory(count * size);
  char* const used = memory.base + count / 2 * size;
  List list;
  for (uint32_t i = 0; i < count; ++i) {
    list.requests.push_back(post(memory.base + i * size, int(i), size));
  }
  engine_.handoff().enter();
  for (uint32_t i = 0; i < count; ++i) announce(nullptr, int(i), size);
  protocols::Reach::Use use;
  engine_.reach().begin(use, protocols::UserMemory(used, count / 2 * size).extent());
  uint32_t next = count / 2;
  const std::function<void()> comes = [&] {
    come_all(list.requests[next], 0, size);
    if (++next < count) line_.arrives = comes;
  };
  line_.arrives = comes;

  Many(waiter_, &list, count, at, {}).until_all();

  EXPECT_EQ(next, count);
  EXPECT_EQ(engine_.release().counters.shared, count / 2);
  EXPECT_EQ(engine_.release().counters.released, count / 2);
  EXPECT_LT(list.looks, 16 * count);  // 898; it was 7,010 with each look from the front
  engine_.reach().end(use);
  for (uint32_t i = 0; i < count / 2; ++i) come_all(list.requests[i], 0, size);
  engine_.handoff().leave();
  for (Request* receive : list.requests) end(receive);
}

}  // namespace
}  // namespace headway::waiting
