#include "runtime/landmarks.h"

#include <iterator>

#include "io/counters.h"
#include "protocols/engine.h"

namespace headway::runtime {
namespace {

template <class T>
uint64_t address_of(const T& object) {
  return uint64_t(reinterpret_cast<uintptr_t>(&object));
}

}  // namespace

// A launcher that finds all signs unchanged says that nothing has: so whatever moves data or
// completes something must change one of them, in the rank that does it or in its peer. What
// only looks, or says again that nothing is there, must not.
void note_landmarks(base::Landmarks& marks, const protocols::Engine& engine,
                    const tcp::Tcp* network, const objects::Registry& registry) {
  const protocols::EngineCounters& messages = engine.counters();
  const progress::Handoff& handoff = engine.handoff();
  const base::Counter* signs[] = {
      &messages.messages_sent,
      &messages.messages_received,
      &messages.bytes_received,
      &messages.collectives,
      &messages.unexpected,
      &messages.helped,
      &engine.copies().sent_aside(),
      &messages.presend_bytes,
      &handoff.counters.thread_useful,
      &engine.node().counters.pulled,
      &engine.node().counters.pushed,
      network ? &network->counters().frames_in : nullptr,
      network ? &network->counters().frames_out : nullptr,
  };
  // What disks move shows, too, piece by piece.
  constexpr size_t of_files = 2;
  static_assert(std::size(signs) + of_files <= base::most_signs);
  for (size_t i = 0; i < std::size(signs); ++i)
    marks.signs[i] = signs[i] ? address_of(*signs[i]) : 0;
  marks.signs[std::size(signs)] = address_of(io::counters.bytes_read);
  marks.signs[std::size(signs) + 1] = address_of(io::counters.bytes_written);
  if (network) {
    marks.frames_out = address_of(network->counters().frames_out);
    marks.frames_in = address_of(network->counters().frames_in);
    marks.connecting = uint64_t(reinterpret_cast<uintptr_t>(network->first_meeting()));
  }
  marks.unmatched = address_of(engine.release().unseen().told);
  marks.armed = address_of(handoff.armed());
  marks.thread = address_of(handoff.thread_id());
  marks.everyone = address_of(registry.everyone);
  registry.comms.locate(marks);
  using objects::Comm;
  marks.context = offsetof(Comm, context);
  marks.group = offsetof(Comm, group);
  marks.peers = offsetof(Comm, peers);
  marks.collectives = offsetof(Comm, collective_count);
  marks.name = offsetof(Comm, name);
  marks.size = offsetof(objects::Group, size);
  marks.members = offsetof(objects::Group, members);
}

}  // namespace headway::runtime
