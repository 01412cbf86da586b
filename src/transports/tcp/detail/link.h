// Link: one TCP connection from its first byte to its last. Peer: what is kept for every rank of
// the job, small because there may be thousands. Meeting: the search for a connection to one peer,
// alive only while there is none. Thread: holder of the engine. Owner: Impl. Invariant: a Link in
// state `open` hangs on exactly one Peer; a Link that was closed stays readable until the end of
// the reap() that closed it.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/feed.h"
#include "base/frame.h"
#include "transports/tcp/detail/address.h"
#include "transports/tcp/detail/handshake.h"

namespace headway::tcp {

enum class LinkState : uint8_t {
  connecting,    // ours: connect() under way
  answer_wait,   // ours: Hello sent
  hello_wait,    // a stranger's
  confirm_wait,  // a peer's: Answer sent
  open,
  broken,  // a write failed inside push(); the next reap() buries it and tells
  closed   // only waits to be freed
};

struct Link {
  int fd = -1;
  LinkState state = LinkState::closed;
  bool counted_busy = false;  // in Impl::busy_links
  bool in_flush = false;      // flush() sets the interest in epoll itself
  bool peer_rests = false;    // the peer has said that it rests: it may end
  bool said_rest = false;     // so have we
  bool hurried = false;       // keeps its send_lowat at the least
  uint32_t peer = 0;
  uint32_t interest = 0;  // events registered with epoll; 0: not registered
  int error = 0;          // errno that broke it

  // Writing: first what lies in the block, then the rest of the feed.
  char* block = nullptr;
  uint32_t block_size = 0, block_head = 0, block_tail = 0;
  bool feeding = false;  // `feed` is held, its end will be reported with `cookie`
  Feed feed;
  uint64_t feed_from = 0;
  uint64_t cookie = 0;
  uint64_t rate = 0;        // bytes a second, as the kernel saw it last; 0: not yet
  uint64_t unmeasured = 0;  // bytes written since
  uint32_t send_lowat = 0;
  uint64_t best_rate = 0;  // of late: one look may fall into a pause
  uint32_t least_rtt_us = 0;

  // Reading.
  char* rx = nullptr;
  uint32_t rx_head = 0, rx_tail = 0;
  bool in_body = false;
  FrameHeader header;
  Landing landing;
  uint64_t arrived = 0;
  uint32_t receive_lowat = 1;

  // Handshake.
  Hello hello;     // said, or heard and found right
  Nonce answered;  // the acceptor's
  unsigned char greeting[sizeof(Hello)] = {};
  uint8_t greeting_have = 0;
  uint8_t ticks = 0;
  Link* next = nullptr;  // among the strangers, or in the graveyard
  Link* previous = nullptr;
  Link* list_next = nullptr;  // among those of peers
  Link* list_prev = nullptr;

  Address local, remote;
  uint16_t remote_port = 0;

  bool busy() const { return feeding || block_head != block_tail; }
};

struct Meeting {
  uint32_t peer = 0;
  Meeting* next = nullptr;
  Meeting* previous = nullptr;
  Link* outgoing = nullptr;
  Link* incoming = nullptr;   // accepted, not confirmed
  bool wanted = false;        // a frame waits here; without it nobody dials
  bool patient = false;       // somebody took our Hello and may be computing: wait without limit
  uint8_t count = 0;          // candidates
  uint8_t index = 0;          // the one being tried
  uint8_t silent = 0xff;      // one that took our Hello and did not answer
  uint8_t futile_rounds = 0;  // rounds in which every candidate failed for good
  uint8_t hangups = 0;        // times that somebody took our Hello and closed
  uint16_t pause = 0;         // ticks until the next round
  uint32_t attempt_ticks = 0;
  uint32_t ticks = 0;
  uint16_t port = 0;
  Candidate candidates[max_addresses];
};

struct Peer {
  Link* link = nullptr;  // only when open
  Meeting* meeting = nullptr;
  char* card = nullptr;
  uint16_t card_size = 0;
  bool lost = false;
  uint64_t heard[purposes] = {};  // the last attempt of its Hellos
};

}  // namespace headway::tcp
