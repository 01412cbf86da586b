#include "protocols/messages/unexpected.h"

#include <algorithm>

#include "base/check.h"
#include "base/heap.h"
#include "base/text.h"
#include "protocols/core.h"
#include "settings/events.h"

namespace headway::protocols {
namespace {

// Which values are most among many, in fixed memory: a value that makes more than one part in
// `room` of all is never lost (Misra and Gries, 1982).
class Frequent {
 public:
  static constexpr int room = 16;
  struct One {
    int64_t value;
    uint64_t count;
  };

  void see(int64_t value) {
    One* free = nullptr;
    for (One& one : ones_) {
      if (one.count && one.value == value) {
        ++one.count;
        return;
      }
      if (!one.count) free = &one;
    }
    if (free) {
      *free = {value, 1};
    } else {
      for (One& one : ones_) --one.count;
    }
  }
  // Then all are seen again, and counted exactly.
  void begin_count() {
    for (One& one : ones_) one = {one.value, one.count ? 1u : 0u};
  }
  void count(int64_t value) {
    for (One& one : ones_) one.count += one.count && one.value == value;
  }
  // " 3 (90 %), 5 (8 %)", the three with most.
  template <class Line>
  void tell(Line& line, uint64_t all) {
    std::sort(ones_, ones_ + room, [](const One& a, const One& b) { return a.count > b.count; });
    for (int i = 0; i < 3 && ones_[i].count > 1; ++i) {
      line << (i ? ", " : " ") << ones_[i].value << " (" << (ones_[i].count - 1) * 100 / all
           << " %)";
    }
  }

 private:
  One ones_[room] = {};
};

}  // namespace

Arrived* Unexpected::make(Peer& peer, const FrameHeader& header, uint64_t size, bool with_data) {
  Arrived* message = arrived_.take();
  char* data = nullptr;
  if (message && with_data) {
    data = size <= sizeof message->in_place ? message->in_place
                                            : static_cast<char*>(base::heap_allocate(size));
  }
  if (!message || (with_data && !data)) {
    if (message) arrived_.give(message);
    core_.links().fail(Outcome::no_memory, peer,
                       "no memory for a message that no receive waits for");
    return nullptr;
  }
  message->key = key_of(header);
  message->synchronous = header.flags & flag_synchronous;
  message->handshake = false;
  message->fetched = nullptr;
  message->traffic = traffic_of(header);
  message->peer = &peer;
  message->size = size;
  message->have = 0;
  message->remote = header.word;
  message->asked = {};
  message->store = nullptr;
  message->own_send = nullptr;
  message->claimed = nullptr;
  message->data = data;
  queue_.add(message);
  core_.handoff().came();  // a parked thread may probe for it
  ++core_.counters().unexpected;
  settings::tell<settings::EventKind::message_unexpected>(message->key.source, message->key.tag,
                                                          size);
  add_bytes(bytes_of(*message));
  if (pressure_ | (bytes_ > core_.settings().unexpected_max)) [[unlikely]]
    press(peer);
  return message;
}

void Unexpected::give(Arrived* message) {
  HEADWAY_CHECK(!message->queued && queue_.size() < arrived_.in_use());
  bytes_ -= bytes_of(*message);
  if (message->fetched || message->store) [[unlikely]]
    core_.note_given(*message);
  if (message->data && message->data != message->in_place) {
    base::heap_free(message->data, message->size);
  }
  arrived_.give(message);
  HEADWAY_CHECK((bytes_ == 0) == (arrived_.in_use() == 0));
  if (pressure_ && bytes_ <= core_.settings().unexpected_max / 2) [[unlikely]]
    relax();
}

uint64_t Unexpected::bytes_of(const Arrived& message) {
  const bool apart = message.data && message.data != message.in_place;
  return sizeof message + (apart ? message.size : 0);
}

// The memory of unexpected messages has a limit. Beyond it senders are asked for handshakes: then a
// message takes an entry here, and its bytes stay with a sender that waits. (Entries must be let
// in: behind those of a tag nobody asks for may stand the one that is waited for.)
void Unexpected::press(Peer& from) {
  if (!pressure_) {
    pressure_ = true;
    ++core_.counters().pressures;
    core_.links().rings().press(true);
    core_.links().peers().for_each([this](Peer& peer) {
      if (!peer.on_this_host() && peer.connected) tell_pressure(peer, true);
    });
  }
  if (!flood_told_) warn_of_flood();
  if (!from.on_this_host() && !from.pressure.by_us) tell_pressure(from, true);  // a newcomer
}

void Unexpected::relax() {
  pressure_ = false;
  if (!flood_told_) warn_of_flood();
  core_.links().rings().press(false);
  core_.links().peers().for_each([this](Peer& peer) {
    if (peer.pressure.by_us) tell_pressure(peer, false);
  });
}

void Unexpected::tell_pressure(Peer& peer, bool on) {
  peer.pressure.by_us = on;
  FrameHeader header;
  header.kind = uint8_t(Kind::pressure);
  header.flags = on ? flag_yes : 0;
  core_.links().control(peer, header, nullptr);
}

// One line, once in a process: who sends what nobody receives. The message thread leaves it to the
// program's next message: it must not stand still at a pipe that nobody reads.
void Unexpected::warn_of_flood() {
  if (core_.handoff().driver == progress::Driver::thread) return;
  flood_told_ = true;
  if (core_.settings().unexpected_max == 0) return;  // it was asked for
  Frequent ranks, tags;
  uint64_t all = 0, of_collectives = 0;
  const auto each = [this](auto&& see) {
    for (uint32_t i = 0; i < arrived_.capacity(); ++i) {
      const Arrived* message = arrived_.at(i);
      if (message->taken && message->queued) see(*message);
    }
  };
  each([&](const Arrived& message) {
    ++all;
    ranks.see(message.peer->rank);
    if (message.key.context & 1) {
      ++of_collectives;
    } else {
      tags.see(message.key.tag);
    }
  });
  ranks.begin_count();
  tags.begin_count();
  each([&](const Arrived& message) {
    ranks.count(message.peer->rank);
    if (!(message.key.context & 1)) tags.count(message.key.tag);
  });
  if (all == 0) return;
  base::Text<600> line;
  line << "headway: rank " << core_.rank() << ": " << all
       << " messages that no receive waits for take " << (bytes_ >> 10)
       << " KB, more than HEADWAY_UNEXPECTED_MAX: most from ranks";
  ranks.tell(line, all);
  if (of_collectives < all) {
    line << ", most with tags";
    tags.tell(line, all);
  }
  if (of_collectives) line << ", " << of_collectives * 100 / all << " % of collectives";
  line << ". From now on their senders wait for receives. Post receives earlier, or raise that "
          "limit (mpiexec --set UNEXPECTED_MAX=SIZE)\n";
  line.write_to(2);
}

bool Unexpected::has_room(uint64_t bytes) const {
  const uint64_t most = core_.settings().unexpected_max;
  return bytes_ <= most && bytes <= most - bytes_;
}

void Unexpected::add_bytes(uint64_t bytes) {
  bytes_ += bytes;
  core_.counters().unexpected_bytes_most.raise_to(bytes_);
}

Arrived* Unexpected::probe(const matching::Key& key) { return find(key, {}); }

Arrived* Unexpected::take_message(const matching::Key& key) {
  Arrived* message = probe(key);
  if (message) queue_.remove(message);
  return message;
}

}  // namespace headway::protocols
