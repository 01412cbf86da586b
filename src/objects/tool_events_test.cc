// Events on their way to the callbacks of tools: who hears of what, at which level, and what goes
// on inside of a callback. The rings are those of the process, so each test empties them.
#include "objects/tool_events.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "base/heap.h"

namespace headway::objects {
namespace {

using base::EventSource;
using settings::EventKind;

struct Called {
  enum class What { event, dropped, freed } what;
  uintptr_t registration;
  void* user_data;
  Safety level;
  uint64_t number;  // event: its first field; dropped: how many
  EventSource source;
};

class ToolEventsTest : public testing::Test {
 protected:
  ToolEventsTest() {
    self = this;
    events.open();
    events.deliver(Safety::none);  // what earlier tests have left
    called.clear();
  }
  ~ToolEventsTest() override {
    inside = {};
    events.close();
    events.deliver(Safety::none);
    self = nullptr;
  }

  static void function() {}
  static void in_wait() { self->events.deliver(Safety::restricted); }
  static void event(const ToolCallback& callback, uintptr_t instance, uintptr_t registration,
                    Safety level) {
    EXPECT_NE(callback.function, nullptr);
    base::ToolEvent read = {};
    EventSource source = {};
    EXPECT_EQ(self->events.read(instance, read, source), ToolOutcome::ok);
    EXPECT_EQ(self->events.read(instance + 1, read, source), ToolOutcome::bad_handle);
    EXPECT_EQ(self->events.read(registration, read, source), ToolOutcome::bad_handle);
    self->called.push_back(
        {Called::What::event, registration, callback.user_data, level, read.fields[0], source});
    self->instance = instance;
    if (self->inside) self->inside();
  }
  static void dropped(const ToolCallback& handler, uint64_t count, uintptr_t registration,
                      EventSource source, Safety level) {
    self->called.push_back(
        {Called::What::dropped, registration, handler.user_data, level, count, source});
  }
  static void freed(const ToolCallback& callback, uintptr_t registration, Safety level) {
    self->called.push_back(
        {Called::What::freed, registration, callback.user_data, level, 0, EventSource::program});
  }
  static constexpr ToolCaller caller = {event, dropped, freed, in_wait};

  uintptr_t listen(EventKind kind, Safety level, void* user_data = nullptr) {
    uintptr_t handle = 0;
    EXPECT_EQ(events.add(kind, caller, handle), ToolOutcome::ok);
    EXPECT_EQ(events.set_callback(handle, level, {function, user_data}), ToolOutcome::ok);
    return handle;
  }
  static void tell(int64_t number) {
    settings::tell<EventKind::receive_posted>(number, 0, uint64_t(0));
  }
  std::vector<uint64_t> numbers() const {
    std::vector<uint64_t> found;
    for (const Called& one : called) {
      if (one.what == Called::What::event) found.push_back(one.number);
    }
    return found;
  }
  size_t count(Called::What what) const {
    size_t found = 0;
    for (const Called& one : called) found += one.what == what;
    return found;
  }

  static ToolEventsTest* self;
  ToolEvents events;
  std::vector<Called> called;
  std::function<void()> inside;  // a callback
  uintptr_t instance = 0;        // the last one
};
ToolEventsTest* ToolEventsTest::self = nullptr;

TEST_F(ToolEventsTest, AnEventGoesToWhoListens) {
  int data = 0;
  EXPECT_FALSE(settings::is_told(EventKind::receive_posted));
  tell(1);  // nobody listens
  const uintptr_t handle = listen(EventKind::receive_posted, Safety::none, &data);
  EXPECT_TRUE(settings::is_told(EventKind::receive_posted));
  EXPECT_FALSE(settings::is_told(EventKind::message_matched));
  listen(EventKind::message_matched, Safety::none);
  tell(2);
  tell(3);
  EXPECT_TRUE(called.empty()) << "nothing is called where it happens";
  EXPECT_TRUE(base::events_wait());
  events.deliver(Safety::none);
  EXPECT_EQ(numbers(), (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(called[0].registration, handle);
  EXPECT_EQ(called[0].user_data, &data);
  EXPECT_EQ(called[0].level, Safety::none);
  EXPECT_EQ(called[0].source, EventSource::program);
  EXPECT_FALSE(base::events_wait());
  base::ToolEvent event = {};
  EventSource source = {};
  EXPECT_EQ(events.read(instance, event, source), ToolOutcome::bad_handle) << "it has returned";
  EXPECT_EQ(events.set_callback(handle, Safety::none, {}), ToolOutcome::ok);
  EXPECT_FALSE(settings::is_told(EventKind::receive_posted));
}

TEST_F(ToolEventsTest, WhoComesLaterHearsOfNothingBefore) {
  int first = 0, second = 0;
  listen(EventKind::receive_posted, Safety::none, &first);
  uintptr_t waits = 0;
  ASSERT_EQ(events.add(EventKind::receive_posted, caller, waits), ToolOutcome::ok);
  tell(1);
  ASSERT_EQ(events.set_callback(waits, Safety::none, {function, &second}), ToolOutcome::ok);
  tell(2);
  events.deliver(Safety::none);
  ASSERT_EQ(numbers(), (std::vector<uint64_t>{1, 2, 2}));
  EXPECT_EQ(called[0].user_data, &first);
  EXPECT_EQ(called[1].user_data, &first) << "in the order in which they were made";
  EXPECT_EQ(called[2].user_data, &second);
}

// The callback of the lowest level that is enough.
TEST_F(ToolEventsTest, LevelsOfSafety) {
  int none = 0, restricted = 0, signal = 0;
  const uintptr_t handle = listen(EventKind::receive_posted, Safety::signal_safe, &signal);
  EXPECT_NE(base::deliver_in_wait.load(), nullptr);
  ASSERT_EQ(events.set_callback(handle, Safety::none, {function, &none}), ToolOutcome::ok);
  tell(1);
  events.deliver(Safety::none);
  tell(2);
  EXPECT_TRUE(base::events_wait_in_wait());
  base::deliver_in_wait.load()();
  ASSERT_EQ(events.set_callback(handle, Safety::restricted, {function, &restricted}),
            ToolOutcome::ok);
  tell(3);
  events.deliver(Safety::restricted);
  ASSERT_EQ(numbers(), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(called[0].user_data, &none);
  EXPECT_EQ(called[1].user_data, &signal);
  EXPECT_EQ(called[1].level, Safety::restricted);
  EXPECT_EQ(called[2].user_data, &restricted);
  bool has = true;
  EXPECT_EQ(events.has_callback(handle, Safety::thread_safe, has), ToolOutcome::ok);
  EXPECT_FALSE(has);
  EXPECT_EQ(events.has_callback(handle, Safety::none, has), ToolOutcome::ok);
  EXPECT_TRUE(has);
}

// In the midst of a wait only where all may be called: none is passed over.
TEST_F(ToolEventsTest, OneThatMayNotBeCalledInAWaitKeepsAllOut) {
  listen(EventKind::receive_posted, Safety::restricted);
  EXPECT_NE(base::deliver_in_wait.load(), nullptr);
  const uintptr_t other = listen(EventKind::message_matched, Safety::none);
  EXPECT_EQ(base::deliver_in_wait.load(), nullptr);
  tell(1);
  EXPECT_TRUE(base::events_wait());
  EXPECT_FALSE(base::events_wait_in_wait());
  EXPECT_EQ(events.remove(other, {}), ToolOutcome::ok);
  EXPECT_TRUE(base::events_wait_in_wait());
}

TEST_F(ToolEventsTest, ACallbackFreesItself) {
  int data = 0;
  const uintptr_t handle = listen(EventKind::receive_posted, Safety::none);
  inside = [&] {
    EXPECT_EQ(events.remove(handle, {function, &data}), ToolOutcome::ok);
    EXPECT_EQ(events.remove(handle, {function, &data}), ToolOutcome::bad_handle);
    EXPECT_EQ(count(Called::What::freed), 0u) << "its callback runs";
    base::ToolEvent event = {};
    EventSource source = {};
    EXPECT_EQ(events.read(instance, event, source), ToolOutcome::ok) << "it can still be read";
  };
  tell(1);
  tell(2);
  events.deliver(Safety::none);
  EXPECT_EQ(numbers(), std::vector<uint64_t>{1});
  ASSERT_EQ(count(Called::What::freed), 1u);
  EXPECT_EQ(called.back().what, Called::What::freed);
  EXPECT_EQ(called.back().registration, handle);
  EXPECT_EQ(called.back().user_data, &data);
  EXPECT_FALSE(settings::is_told(EventKind::receive_posted));
}

TEST_F(ToolEventsTest, ACallbackFreesOthersAndMakesNewOnes) {
  const uintptr_t first = listen(EventKind::receive_posted, Safety::none);
  const uintptr_t second = listen(EventKind::receive_posted, Safety::none);
  const uintptr_t third = listen(EventKind::receive_posted, Safety::none);
  uintptr_t late = 0;
  inside = [&] {
    if (late) return;
    EXPECT_EQ(events.remove(second, {function, nullptr}), ToolOutcome::ok);
    EXPECT_EQ(count(Called::What::freed), 1u) << "its callback does not run: at once";
    late = listen(EventKind::receive_posted, Safety::none);
  };
  tell(1);
  events.deliver(Safety::none);
  EXPECT_EQ(count(Called::What::event), 2u);
  EXPECT_EQ(called.front().registration, first);
  EXPECT_EQ(called.back().registration, third);
  tell(2);
  events.deliver(Safety::none);
  EXPECT_EQ(count(Called::What::event), 5u);
  EXPECT_EQ(called.back().registration, late);
}

// In the midst of a wait nobody is told that it may call MPI, whoever frees.
TEST_F(ToolEventsTest, WhoIsFreedInAWaitIsToldSo) {
  listen(EventKind::receive_posted, Safety::restricted);
  const uintptr_t second = listen(EventKind::receive_posted, Safety::restricted);
  const uintptr_t third = listen(EventKind::receive_posted, Safety::restricted);
  const uintptr_t fourth = listen(EventKind::receive_posted, Safety::restricted);
  inside = [&] {
    if (count(Called::What::freed) > 0) return;
    EXPECT_EQ(events.remove(second, {function, nullptr}), ToolOutcome::ok);
    EXPECT_EQ(called.back().what, Called::What::freed) << "its callback does not run: at once";
    EXPECT_EQ(called.back().level, Safety::restricted);
    // Another thread is in no wait.
    std::thread([&] {
      EXPECT_EQ(events.remove(third, {function, nullptr}), ToolOutcome::ok);
    }).join();
    EXPECT_EQ(called.back().level, Safety::none);
  };
  tell(1);
  events.deliver(Safety::restricted);
  EXPECT_EQ(count(Called::What::freed), 2u);
  EXPECT_EQ(count(Called::What::event), 2u);
  // And it is over with the delivery.
  EXPECT_EQ(events.remove(fourth, {function, nullptr}), ToolOutcome::ok);
  EXPECT_EQ(called.back().what, Called::What::freed);
  EXPECT_EQ(called.back().level, Safety::none);
}

// As if it called MPI: it is not entered again, and what it does is told the next time.
TEST_F(ToolEventsTest, ACallbackThatMakesEvents) {
  listen(EventKind::receive_posted, Safety::none);
  inside = [&] {
    EXPECT_FALSE(base::events_wait()) << "somebody delivers";
    tell(10);
    events.deliver(Safety::none);
  };
  tell(1);
  events.deliver(Safety::none);
  EXPECT_EQ(numbers(), std::vector<uint64_t>{1});
  EXPECT_TRUE(base::events_wait());
  inside = {};
  events.deliver(Safety::none);
  EXPECT_EQ(numbers(), (std::vector<uint64_t>{1, 10}));
}

TEST_F(ToolEventsTest, TheToolEndsInACallback) {
  listen(EventKind::receive_posted, Safety::none);  // the table of handles is there
  events.close();
  events.open();
  const size_t before = base::heap_in_use();
  const uintptr_t handle = listen(EventKind::receive_posted, Safety::none);
  listen(EventKind::receive_posted, Safety::none);
  inside = [&] { events.close(); };
  tell(1);
  events.deliver(Safety::none);
  EXPECT_EQ(called.size(), 1u) << "no other one is called, nobody is told";
  EXPECT_EQ(base::heap_in_use(), before) << "each is freed once";
  inside = {};
  EXPECT_EQ(events.find(handle), ToolOutcome::closed);
  events.open();
  EXPECT_EQ(events.find(handle), ToolOutcome::bad_handle);
}

TEST_F(ToolEventsTest, WhatFindsNoRoomIsToldToItsHandler) {
  int data = 0;
  const uintptr_t handle = listen(EventKind::receive_posted, Safety::none, &data);
  const uintptr_t other = listen(EventKind::message_matched, Safety::none);
  for (const uintptr_t one : {handle, other}) {
    ASSERT_EQ(events.set_dropped(one, function), ToolOutcome::ok);
  }
  for (uint64_t i = 0; i < base::EventRing::room + 7; ++i) tell(int64_t(i));
  events.deliver(Safety::none);
  EXPECT_EQ(count(Called::What::event), base::EventRing::room);
  ASSERT_EQ(count(Called::What::dropped), 1u);
  EXPECT_EQ(called.back().registration, handle);
  EXPECT_EQ(called.back().number, 7u);
  EXPECT_EQ(called.back().user_data, &data);
  EXPECT_EQ(called.back().source, EventSource::program);
  called.clear();
  tell(1);
  events.deliver(Safety::none);
  EXPECT_EQ(count(Called::What::dropped), 0u) << "once";
}

// What was dropped before it listened is not its own.
TEST_F(ToolEventsTest, WhoComesLaterHearsOfNothingDroppedBefore) {
  listen(EventKind::receive_posted, Safety::none);
  uintptr_t late = 0;
  ASSERT_EQ(events.add(EventKind::receive_posted, caller, late), ToolOutcome::ok);
  ASSERT_EQ(events.set_dropped(late, function), ToolOutcome::ok);
  for (uint64_t i = 0; i < base::EventRing::room + 7; ++i) tell(int64_t(i));
  ASSERT_EQ(events.set_callback(late, Safety::none, {function, nullptr}), ToolOutcome::ok);
  events.deliver(Safety::none);
  EXPECT_EQ(count(Called::What::dropped), 0u);
}

// As if another thread had registered it while this one delivers in a wait.
TEST_F(ToolEventsTest, WhatMayNotBeCalledInAWaitIsToldWhatItMissed) {
  listen(EventKind::receive_posted, Safety::restricted);
  const uintptr_t other = listen(EventKind::receive_posted, Safety::none);
  ASSERT_EQ(events.set_dropped(other, function), ToolOutcome::ok);
  tell(1);
  events.deliver(Safety::restricted);
  EXPECT_EQ(count(Called::What::event), 1u);
  EXPECT_EQ(count(Called::What::dropped), 0u);
  tell(2);
  events.deliver(Safety::none);
  EXPECT_EQ(count(Called::What::event), 3u);
  ASSERT_EQ(count(Called::What::dropped), 1u);
  EXPECT_EQ(called.back().registration, other);
  EXPECT_EQ(called.back().number, 1u);
}

// Whoever frees it from another thread does not wait, and its memory stays until it has returned.
TEST_F(ToolEventsTest, AnotherThreadFreesWhileItRuns) {
  const uintptr_t handle = listen(EventKind::receive_posted, Safety::none);
  inside = [&] {
    std::thread([&] {
      EXPECT_EQ(events.remove(handle, {function, nullptr}), ToolOutcome::ok);
      events.deliver(Safety::none);  // somebody does
    }).join();
    EXPECT_EQ(count(Called::What::freed), 0u);
  };
  tell(1);
  events.deliver(Safety::none);
  EXPECT_EQ(count(Called::What::freed), 1u);
}

TEST_F(ToolEventsTest, NothingIsLeft) {
  listen(EventKind::receive_posted, Safety::none);
  events.close();
  events.open();
  const size_t before = base::heap_in_use();
  for (int i = 0; i < 100; ++i) {
    const uintptr_t handle = listen(EventKind::receive_posted, Safety::none);
    listen(EventKind::wait_ended, Safety::none);
    if (i % 2) {
      EXPECT_EQ(events.remove(handle, {}), ToolOutcome::ok);
    }
    events.close();
    events.open();
  }
  EXPECT_EQ(base::heap_in_use(), before);
  events.close();
  uintptr_t handle = 0;
  EXPECT_EQ(events.add(EventKind::wait_began, caller, handle), ToolOutcome::closed);
  EXPECT_EQ(events.remove(handle, {}), ToolOutcome::closed);
  EXPECT_EQ(handle, 0u);
}

}  // namespace
}  // namespace headway::objects
