// For tests: a recorder that keeps what it is told. Its time is a number that grows with each look,
// so that what comes later is later. Thread: any may tell it something; all else is the test's own,
// when nobody does. Owner: the test. Invariant: one at a time; it takes no memory and no lock.
#pragma once
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <vector>

#include "base/event_sink.h"

namespace headway::base {

class EventListener {
 public:
  EventListener() {
    kept() = 0;
    EXPECT_EQ(headway_tell_events(headway_events_version, &sink), 0);
  }
  ~EventListener() { stop(); }
  EventListener(const EventListener&) = delete;
  EventListener& operator=(const EventListener&) = delete;

  static void stop() { EXPECT_EQ(headway_tell_events(headway_events_version, nullptr), 0); }
  // Of one kind, in the order in which they were told.
  static std::vector<HeadwayEvent> events(int kind) {
    EXPECT_LE(kept(), most) << "more came than the test keeps";
    std::vector<HeadwayEvent> found;
    for (size_t i = 0; i < kept() && i < most; ++i) {
      if (room()[i].kind == kind) found.push_back(room()[i]);
    }
    return found;
  }
  static constexpr uint8_t thread = 7;  // whoever asks

 private:
  static constexpr size_t most = 1 << 16;
  static HeadwayEvent* room() {
    static HeadwayEvent all[most];
    return all;
  }
  static std::atomic<size_t>& kept() {
    static std::atomic<size_t> count{0};
    return count;
  }
  static uint64_t now() {
    static std::atomic<uint64_t> time{0};
    return ++time;
  }
  static void put(const HeadwayEvent* event) {
    const size_t at = kept()++;
    if (at < most) room()[at] = *event;
  }
  static void lose() { ADD_FAILURE() << "there was no room to note an event's beginning"; }
  static constexpr HeadwayEventSink sink = {now, [] { return thread; }, put, lose};
};

}  // namespace headway::base
