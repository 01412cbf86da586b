#include "base/tool_events.h"

#include "base/check.h"
#include "base/clock.h"

namespace headway::base {

constinit std::atomic<uint8_t> event_listeners[most_event_kinds] = {};
constinit std::atomic<uint8_t> events_waiting{0};
constinit std::atomic<uint8_t> events_delivering{0};
constinit std::atomic<void (*)()> deliver_in_wait{nullptr};
constinit std::atomic<uint32_t> kept_from_waits{0};

namespace {

constinit EventRing rings[event_sources];  // zero at first, and without memory until they are used
constinit std::atomic<uint64_t> dropped[event_sources][most_event_kinds] = {};
constinit std::atomic<const void*> message_thread{nullptr};  // its control block

EventSource source_of(EventSource told) {
  if (told == EventSource::pages) return told;
  return message_thread.load(std::memory_order_relaxed) == __builtin_thread_pointer()
             ? EventSource::thread
             : EventSource::program;
}

}  // namespace

bool EventRing::put(const ToolEvent& event) {
  uint64_t at = all_put();
  for (;;) {
    Slot& slot = slots_[at % room];
    const uint64_t is_free = at / room * 2;
    // Pairs with take: what was there has been read.
    const uint64_t mark = slot.mark.load(std::memory_order_acquire);
    if (mark < is_free) return false;
    if (mark > is_free) {
      at = all_put();  // somebody else had it
    } else if (put_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
      slot.event = event;
      slot.mark.store(is_free + 1, std::memory_order_release);  // pairs with take
      return true;
    }
  }
}

bool EventRing::take(ToolEvent& event) {
  Slot& slot = slots_[taken_ % room];
  const uint64_t is_full = taken_ / room * 2 + 1;
  if (slot.mark.load(std::memory_order_acquire) != is_full) return false;  // pairs with put
  event = slot.event;
  slot.mark.store(is_full + 1, std::memory_order_release);  // pairs with put
  ++taken_;
  return true;
}

void put_event(uint8_t kind, EventSource source, const uint64_t* fields, size_t count) {
  HEADWAY_CHECK(kind < most_event_kinds && count <= most_event_fields);
  ToolEvent event = {};
  event.kind = kind;
  for (size_t i = 0; i < count; ++i) event.fields[i] = fields[i];
  const size_t from = size_t(source_of(source));
  event.at = now_ns();  // last: the lock or the thread that orders a source is held already
  if (!rings[from].put(event)) dropped[from][kind].fetch_add(1, std::memory_order_relaxed);
  // Pairs with begin_delivery. An exchange, for all who came before: of several stores that one
  // would see the last one alone, and what that thread did.
  events_waiting.exchange(1, std::memory_order_acq_rel);
}

void note_message_thread() {
  message_thread.store(__builtin_thread_pointer(), std::memory_order_relaxed);
}

bool begin_delivery() {
  if (events_delivering.exchange(1, std::memory_order_acquire)) return false;  // pairs with the end
  // Before the rings are looked at, so that what comes meanwhile is told of again.
  events_waiting.exchange(0, std::memory_order_acq_rel);  // pairs with put_event
  return true;
}

void end_delivery() {
  uint64_t left = 0;
  for (const EventRing& ring : rings) left += ring.count();
  if (left) events_waiting.exchange(1, std::memory_order_acq_rel);  // as in put_event
  events_delivering.store(0, std::memory_order_release);            // pairs with begin_delivery
}

uint64_t events_of(EventSource source) { return rings[size_t(source)].count(); }

bool take_event(EventSource source, ToolEvent& event) { return rings[size_t(source)].take(event); }

uint64_t events_put() {
  uint64_t sum = 0;
  for (const EventRing& ring : rings) sum += ring.all_put();
  return sum;
}

uint64_t events_dropped() {
  uint64_t sum = 0;
  for (const auto& source : dropped) {
    for (const std::atomic<uint64_t>& of_kind : source) {
      sum += of_kind.load(std::memory_order_relaxed);
    }
  }
  return sum;
}

uint64_t events_dropped(EventSource source, uint8_t kind) {
  return dropped[size_t(source)][kind].load(std::memory_order_relaxed);
}

}  // namespace headway::base
