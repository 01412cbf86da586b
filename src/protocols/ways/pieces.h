// Pieces: which bytes of a message move next. A message that may be released has edges, the bytes
// beside its whole pages, which come first; what is between comes in order, or as it was asked for.
// Both sides reckon alike. Thread: holder of the engine. Owner: the request, on either side.
// Invariant: what has moved is what stretch() told of, in that order.
#pragma once
#include <cstdint>

#include "protocols/peer.h"
#include "protocols/request.h"
#include "protocols/transfer.h"

namespace headway::protocols {

struct Stretch {
  uint64_t offset, length;
};
inline uint64_t edges_of(const Transfer& transfer) {
  return uint64_t(transfer.head) + transfer.tail;
}
// That went over the wire since the clear-to-send.
inline uint64_t streamed(const Transfer& transfer) { return transfer.moved - transfer.covered; }
inline bool has_sent_edges(const Transfer& transfer) {
  return streamed(transfer) >= edges_of(transfer);
}
// Copies that go over the network stand in a line (line.cc).
inline bool takes_turns(const Request& send) {
  return send.is_redirected() && !send.peer->on_this_host();
}

// The next bytes of a message that lies in one, after `at` bytes: its edges first.
Stretch stretch(const Transfer& transfer, uint64_t at);
// These bytes have gone; they are those that stretch() told of, or the first of them.
void note_moved(Transfer& transfer, uint64_t offset, uint64_t n);
// From now on its pages go as they are asked for. `moved`: bytes of it that have gone in order.
// False without memory.
[[nodiscard]] bool begin_order(Transfer& transfer, uint64_t moved);
void end_order(Transfer& transfer);

}  // namespace headway::protocols
