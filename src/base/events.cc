#include "base/events.h"

namespace headway::base {

constinit std::atomic<const HeadwayEventSink*> event_sink{nullptr};

EventBegin begin_event(const HeadwayEventSink& sink) {
  return {.at = sink.now(), .thread = sink.thread()};
}

void end_event(const EventBegin& begin, const Event& event) {
  if (begin) end_event(begin, begin_event(), event);
}

void end_event(const EventBegin& begin, const EventBegin& end, const Event& event) {
  const HeadwayEventSink* sink = event_listener();
  if (!sink || !begin || !end) return;
  const HeadwayEvent told = {.begin = begin.at,
                             // Counters of two cores may differ by some steps.
                             .end = end.at > begin.at ? end.at : begin.at,
                             .bytes = event.bytes,
                             .spared_ns = event.spared_ns,
                             .peer = event.peer,
                             .closing = event.closing,
                             .kind = event.kind,
                             .thread = begin.thread};
  sink->put(&told);
}

void lose_event() {
  if (const HeadwayEventSink* sink = event_listener()) sink->lose();
}

}  // namespace headway::base

extern "C" int headway_tell_events(uint32_t version, const HeadwayEventSink* sink) {
  if (version != headway_events_version) return 1;
  headway::base::event_sink.store(sink, std::memory_order_release);  // pairs with event_listener
  return 0;
}
