// Tool events: what happens in the library, kept for tools that listen by MPI_T until a thread of
// the program hands it over (objects/tool_events). Where nobody listens, which is the rule, an
// event costs one load and a branch. Thread: any may put one, with any lock held and in a signal
// handler; one at a time takes (begin_delivery). Owner: none, they lie here as long as the process.
// Invariants: who puts an event neither waits, allocates nor calls the program; the events of a
// source come out as they went in, by the time of one clock; what finds no room is counted.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace headway::base {

inline constexpr size_t most_event_fields = 4;
inline constexpr size_t most_event_kinds = 32;

struct ToolEvent {
  uint64_t at = 0;  // now_ns()
  uint64_t fields[most_event_fields] = {};
  uint8_t kind = 0;  // a settings::EventKind
};

// Who sees an event: each source has a lock or a thread of its own, so its events have an order.
enum class EventSource : uint8_t {
  program,  // a thread of the program in MPI, which holds the engine
  thread,   // the message thread
  pages     // whoever hears of closed pages, with the guard's lock
};
inline constexpr size_t event_sources = 3;

// Events on their way. A mark is 2n where its slot is free for the n-th lap, 2n + 1 where it was
// filled in it: so nobody waits, also if the one who fills a slot is interrupted.
class EventRing {
 public:
  static constexpr uint64_t room = 1 << 12;
  // False: full.
  bool put(const ToolEvent& event);
  // The oldest one, by one thread at a time. False: none is there whole.
  bool take(ToolEvent& event);
  uint64_t all_put() const { return put_.load(std::memory_order_relaxed); }
  // By the one who takes.
  uint64_t count() const { return all_put() - taken_; }

 private:
  struct Slot {
    std::atomic<uint64_t> mark{0};
    ToolEvent event;
  };
  Slot slots_[room];
  alignas(64) std::atomic<uint64_t> put_{0};
  alignas(64) uint64_t taken_ = 0;
};

// Not 0: somebody listens to that kind.
extern constinit std::atomic<uint8_t> event_listeners[most_event_kinds];

inline bool is_listened(uint8_t kind) {
  return event_listeners[kind].load(std::memory_order_relaxed) != 0;
}
// `source`: program and thread stand for whichever of the two the calling thread is.
[[gnu::noinline]] void put_event(uint8_t kind, EventSource source, const uint64_t* fields,
                                 size_t count);
// The calling thread is the message thread.
void note_message_thread();

// --- delivery ---

extern constinit std::atomic<uint8_t> events_waiting;     // some are there, or were dropped
extern constinit std::atomic<uint8_t> events_delivering;  // somebody hands them over
// Not null: all who listen may be called in the midst of a wait, by this.
extern constinit std::atomic<void (*)()> deliver_in_wait;
extern constinit std::atomic<uint32_t> kept_from_waits;  // KeptFromWaits that there are

inline bool any_events() { return events_waiting.load(std::memory_order_relaxed) != 0; }
// There is something to hand over, and nobody does.
inline bool events_wait() {
  return any_events() && events_delivering.load(std::memory_order_relaxed) == 0;
}
// The same in the midst of a wait, where not all may be called.
inline bool events_wait_in_wait() {
  return events_wait() && kept_from_waits.load(std::memory_order_relaxed) == 0 &&
         deliver_in_wait.load(std::memory_order_relaxed) != nullptr;
}
// As long as there is one, nothing is handed over in the midst of waits: for who may wait with a
// lock that others wait for. A callback may wait for one of those.
class KeptFromWaits {
 public:
  KeptFromWaits() { kept_from_waits.fetch_add(1, std::memory_order_relaxed); }
  ~KeptFromWaits() { kept_from_waits.fetch_sub(1, std::memory_order_relaxed); }
  KeptFromWaits(const KeptFromWaits&) = delete;
  KeptFromWaits& operator=(const KeptFromWaits&) = delete;
};
// False: somebody hands over. Else it is this thread, until end_delivery().
bool begin_delivery();
void end_delivery();
// Between the two.
uint64_t events_of(EventSource source);
bool take_event(EventSource source, ToolEvent& event);

// How many there were, all together; dropped ones are not among them.
uint64_t events_put();
uint64_t events_dropped();
uint64_t events_dropped(EventSource source, uint8_t kind);

}  // namespace headway::base
