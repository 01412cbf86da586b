// How fast messages come from a peer, and go to it. Thread: holder of the engine. Owner: the peer,
// whose estimate this is. Invariant: 0 bytes a second: nothing is known yet.
#pragma once
#include <cstdint>

#include "protocols/peer.h"
#include "protocols/transfer.h"

namespace headway::protocols {

// Bytes a second of a link; a faster one is not ten times slower than the copy, and has sent 64 KB
// in 160 us.
inline constexpr uint64_t slow_link = 400'000'000;

// A message of that peer has come whole: if its `asked_at` is set, what this tells of the peer.
void rate(Peer& peer, Transfer& transfer);
// Bytes a second.
uint64_t arrival_rate(const Peer& peer);
// Microseconds until the rest of a matched receive will have come. 0 of a link that nothing is
// known of: its first message is waited for, and tells.
uint64_t expected_us(const Peer& peer, const Transfer& transfer);
// Over that peer's link so many bytes take much longer than their copy.
bool is_slow(const Peer& peer, uint64_t bytes);

}  // namespace headway::protocols
