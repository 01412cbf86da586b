// Events: what the library does by itself, told to a recorder (event_sink.h) if one listens. Where
// none does, which is the rule, a beginning costs one load and a branch, an end a branch. Thread:
// any. Owner: none. Invariant: an event is told once, at its end, and only if its beginning was
// noted while somebody listened.
#pragma once
#include <atomic>

#include "base/event_sink.h"

namespace headway::base {

extern constinit std::atomic<const HeadwayEventSink*> event_sink;

// Null: nobody.
inline const HeadwayEventSink* event_listener() {
  return event_sink.load(std::memory_order_acquire);  // pairs with headway_tell_events
}

// When something began, and on which thread; `at` 0: nobody listened.
struct EventBegin {
  uint64_t at = 0;
  uint8_t thread = headway_no_thread;

  explicit operator bool() const { return at != 0; }
};

[[gnu::cold]] EventBegin begin_event(const HeadwayEventSink& sink);
inline EventBegin begin_event() {
  const HeadwayEventSink* sink = event_listener();
  return sink ? begin_event(*sink) : EventBegin{};
}

// All of an event but when and where: as in HeadwayEvent.
struct Event {
  uint8_t kind = headway_event_fault;
  uint64_t bytes = 0;
  int32_t peer = headway_no_peer;
  uint32_t closing = 0;
  uint64_t spared_ns = 0;
};

// What began then is over now.
[[gnu::cold]] void end_event(const EventBegin& begin, const Event& event);
// It was over then: an end that begin_event() has noted.
[[gnu::cold]] void end_event(const EventBegin& begin, const EventBegin& end, const Event& event);
// There was no room to note its beginning.
[[gnu::cold]] void lose_event();

}  // namespace headway::base
