// Peer: a process that this one may talk with, as the engine sees it. Thread: holder of the engine.
// Owner: the engine's table of peers (peers.h), where it stays in its place. Invariant: what stands
// in `controls` and `held` has not left and keeps its order; nothing overtakes the former, and no
// envelope the latter.
#pragma once
#include <cstdint>

#include "base/frame.h"
#include "base/list.h"
#include "protocols/request.h"
#include "protocols/wire.h"
#include "transports/shm/ring.h"
#include "transports/transport.h"

namespace headway::protocols {

struct Store;

// A control frame that found no room. Its body lies behind it, in the same block.
struct ControlFrame {
  ControlFrame* list_next = nullptr;
  ControlFrame* list_prev = nullptr;
  FrameHeader header;

  char* body() { return reinterpret_cast<char*>(this + 1); }
  size_t block_bytes() const { return sizeof(ControlFrame) + header.length; }
};

// How long frames to it may be: decided at connect.
struct Limits {
  uint64_t eager = 0;  // bytes of a message in one
  uint32_t chunk = 0;  // of one of several
};

// What has not left yet (Links).
struct Backlog {
  base::List<ControlFrame> controls;
  base::List<Request> held;     // whose envelopes wait
  base::List<Request> streams;  // that have been asked for
  bool listed = false;          // its peer stands in the list of those with something to flush

  bool is_empty() const { return controls.empty() && held.empty() && streams.empty(); }
};

// By frames: handshakes are asked for, since unexpected messages fill memory (Unexpected).
struct Pressure {
  bool by_it = false;
  bool by_us = false;
};

// Of its streams (Streams, rate.h).
struct Flow {
  uint64_t arrival_rate = 0;  // of long messages from it, bytes a second; 0: not known
  uint32_t impatient = 0;  // streams to it that are to be cut small: it has asked for pages lately
  uint32_t expect_round = 0;  // Streams' own, when its next stream was last looked for
  // Spare's own, ns: when a thread that waits looked last, and spared its link (0: it did not); and
  // until when its link is not spared so.
  uint64_t spared_at = 0, dry_until = 0;
  uint32_t landing = 0;   // Spare's: streams from it that are under way
  uint16_t one_way = 0;   // Spare's: streams to it, one after the other, that met none from it
  bool ends_row = false;  // Spare's: others waited behind the last stream to it that left
};

// Of what is copied between its memory and ours (OneCopy, Copies).
struct Direct {
  // Transfers that the other rank may help with, at most one each way, and the receive that it may
  // claim.
  Request* push_split = nullptr;
  Request* pull_split = nullptr;
  Request* advertised = nullptr;
  Request* movers[shm::mover_slots] = {};  // sends that have one of its slots
};

// Of messages that come before their sends (Fetches, Presends).
struct Early {
  base::List<Store> stores;  // of messages from it that were asked for
  // By kinds of collectives: the buffers that the last ones sent to it from (Origins).
  static constexpr uint32_t collective_kinds = 16;  // those beyond share a place
  uint32_t collective_origins[collective_kinds] = {};
  // Messages on their way out by its link (leaving.cc).
  bool draining = false;         // the link stands in the list of such
  uint64_t unacknowledged = 0;   // bytes, at the last look
  uint64_t acknowledged_at = 0;  // ns; when that last became less
  uint64_t answer_until = 0;     // ns; so long the answer to a handshake is waited for
};

struct Peer {
  uint32_t process = 0;                        // its number in the table
  uint32_t rank = 0;                           // in its job
  uint32_t number = 0;                         // by which its transport knows it
  uint32_t caps = 0;                           // of its transport
  transports::Transport* transport = nullptr;  // null: this process itself
  bool connected = false;                      // its ring is open, or its card is set
  bool lost = false;
  bool left = false;  // it had finished, and its process has ended
  Limits limits;
  uint32_t sequence = 0;  // envelopes that have left
  uint32_t seen = 0;      // envelopes that came
  shm::Producer out;
  shm::Consumer in;
  Backlog backlog;
  Pressure pressure;
  Flow flow;
  Direct direct;
  Early early;

  bool can(transports::Cap cap) const { return caps & cap; }
  bool on_this_host() const { return can(transports::same_host); }
};
static_assert(sizeof(Peer) <= 480, "a mechanism that few peers meet keeps its part elsewhere");

}  // namespace headway::protocols
