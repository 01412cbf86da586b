// What a recorder is told of touches: one fault for each, from the touch to the page's opening.
#include <unistd.h>

#include <thread>

#include "base/events_test_listener.h"
#include "guard/guard_test_closed.h"

namespace headway::guard {
namespace {

using base::EventListener;

class Touched : public Closed {
 protected:
  std::thread touch(const Memory& memory, size_t page) {
    const uint64_t before = guard_.counters.touched;
    std::thread toucher([&memory, page] {
      (void)*static_cast<const volatile char*>(memory.base + page * page_bytes);
    });
    for (int i = 0; i < 5000 && guard_.counters.touched == before; ++i) usleep(1000);
    EXPECT_GT(guard_.counters.touched, before) << "nobody heard of the touch";
    return toucher;
  }
};

TEST_P(Touched, AFaultLastsUntilItsPageIsOpen) {
  Memory memory(8);
  EventListener listener;
  Region* region = guard_.close({memory.base, 8});
  ASSERT_NE(region, nullptr);
  const uint32_t closing = region->closing;
  std::thread first = touch(memory, 5);
  std::thread second = touch(memory, 1);
  EXPECT_FALSE(put(region, 3, 0, page_bytes));
  EXPECT_TRUE(EventListener::events(headway_event_fault).empty()) << "another page was opened";
  EXPECT_FALSE(put(region, 3, page_bytes, page_bytes));
  second.join();
  const size_t of_second = EventListener::events(headway_event_fault).size();
  EXPECT_GE(of_second, 1u);
  EXPECT_FALSE(put(region, 3, 5 * page_bytes, page_bytes));
  first.join();
  EXPECT_FALSE(put(region, 3, 2 * page_bytes, 3 * page_bytes));
  EXPECT_TRUE(put(region, 3, 6 * page_bytes, 2 * page_bytes));
  const auto faults = EventListener::events(headway_event_fault);
  ASSERT_GT(faults.size(), of_second);
  EXPECT_EQ(faults.size(), guard_.counters.touched);
  for (const HeadwayEvent& fault : faults) {
    EXPECT_LT(fault.begin, fault.end);
    EXPECT_EQ(fault.bytes, page_bytes);
    EXPECT_EQ(fault.peer, headway_no_peer);
    EXPECT_EQ(fault.closing, closing);
  }
  EXPECT_GT(faults[0].begin, faults.back().begin) << "the page that was touched last came first";
}

// Each closing has a number of its own, though its region is used again.
TEST_P(Touched, ClosingsAreToldApart) {
  Memory memory(2);
  EventListener listener;
  for (int i = 0; i < 2; ++i) {
    Region* region = guard_.close({memory.base, 2});
    ASSERT_NE(region, nullptr);
    std::thread toucher = touch(memory, 1);
    EXPECT_TRUE(put_all(region, 4));
    toucher.join();
  }
  const auto faults = EventListener::events(headway_event_fault);
  ASSERT_GE(faults.size(), 2u);
  EXPECT_NE(faults[0].closing, faults.back().closing);
  EXPECT_NE(faults[0].closing, 0u);
}

// A page that the program drops is waited for by nobody.
TEST_P(Touched, AFaultEndsWhereThePageIsDropped) {
  if (!hears_of_drops()) GTEST_SKIP() << "drops are not heard of here";
  Memory memory(2);
  EventListener listener;
  Region* region = guard_.close({memory.base, 2});
  ASSERT_NE(region, nullptr);
  std::thread toucher = touch(memory, 1);
  EXPECT_EQ(madvise(memory.base + page_bytes, page_bytes, MADV_DONTNEED), 0);
  toucher.join();
  for (int i = 0; i < 1000 && EventListener::events(headway_event_fault).empty(); ++i) usleep(1000);
  EXPECT_GE(EventListener::events(headway_event_fault).size(), 1u);
  EXPECT_TRUE(put_all(region, 4));
}

TEST_P(Touched, NobodyListens) {
  Memory memory(2);
  Region* region = guard_.close({memory.base, 2});
  ASSERT_NE(region, nullptr);
  std::thread toucher = touch(memory, 0);
  EventListener listener;  // it came too late for this one
  EXPECT_TRUE(put_all(region, 4));
  toucher.join();
  EXPECT_TRUE(EventListener::events(headway_event_fault).empty());
}

INSTANTIATE_TEST_SUITE_P(Mechanisms, Touched, testing::ValuesIn(every_wish), wish_name);

}  // namespace
}  // namespace headway::guard
