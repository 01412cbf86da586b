// Unexpected: messages that came before their receive, and what they take. Beyond
// HEADWAY_UNEXPECTED_MAX senders are asked for handshakes: then a message takes an entry here, and
// its bytes stay with a sender that waits. Thread: holder of the engine. Owner: the engine.
// Invariant: what is queued stands in the matching queue, in the order in which it came.
#pragma once
#include <cstdint>

#include "base/counter.h"
#include "base/pool.h"
#include "matching/matcher.h"
#include "protocols/messages/arrived.h"
#include "protocols/peer.h"

namespace headway::protocols {

class Core;

class Unexpected {
 public:
  explicit Unexpected(Core& core) : core_(core) {}
  // False without memory.
  [[nodiscard]] bool prepare(const matching::Config& config) { return queue_.prepare(config); }
  // The communicator with this context is gone.
  void forget(uint64_t context) { queue_.forget(context); }

  // An entry for the message of that envelope, queued; `with_data`: with room for its bytes. Null
  // without memory, which ends the job.
  Arrived* make(Peer& peer, const FrameHeader& header, uint64_t size, bool with_data);
  // One that is out of the queue goes, with its bytes.
  void give(Arrived* message);
  void remove(Arrived* message) { queue_.remove(message); }
  // The oldest one that a receive with this key takes, or null.
  Arrived* find(const matching::Key& key, matching::Traffic traffic) {
    return static_cast<Arrived*>(queue_.find(key, traffic));
  }
  // The oldest one with that (maybe wild) key; stays in the queue.
  Arrived* probe(const matching::Key& key);
  // The same, taken out of the queue for a later Messages::start_matched_receive().
  Arrived* take_message(const matching::Key& key);
  // One that a handle names, or null.
  Arrived* find_message(uint32_t index, uint32_t generation) {
    return arrived_.find(index, generation);
  }
  // The one of which that is true, or null. Looks at all: for rare calls.
  template <class Is>
  Arrived* find_where(Is&& is) {
    for (uint32_t i = 0; i < arrived_.capacity(); ++i) {
      Arrived* message = arrived_.at(i);
      if (message->taken && message->queued && is(*message)) return message;
    }
    return nullptr;
  }

  size_t count() const { return queue_.size(); }
  const matching::UnexpectedQueue& queue() const { return queue_; }
  // What they take. Fetched bytes count with them.
  uint64_t bytes() const { return bytes_; }
  // Senders are asked for handshakes.
  bool presses() const { return pressure_; }
  bool has_room(uint64_t bytes) const;
  void add_bytes(uint64_t bytes);

 private:
  static uint64_t bytes_of(const Arrived& message);
  void press(Peer& from);
  void relax();
  void tell_pressure(Peer& peer, bool on);
  void warn_of_flood();

  Core& core_;
  base::Pool<Arrived> arrived_;
  matching::UnexpectedQueue queue_;
  base::Counter bytes_;
  bool pressure_ = false;
  bool flood_told_ = false;  // warn_of_flood()
};

}  // namespace headway::protocols
