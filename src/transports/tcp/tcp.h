// Tcp: frames to peers on other hosts. One connection a pair, made on first use; both sides may
// race. Thread: holder of the engine for everything. Owner: the engine; it holds no user pointer
// beyond the Feed of the one frame a connection is writing and the Landing of the one it reads.
// Invariant: frames to one peer leave in the order of push(); a frame is never torn.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/counter.h"
#include "base/feed.h"
#include "base/frame.h"
#include "base/outcome.h"
#include "transports/transport.h"

namespace headway::tcp {

struct Config {
  uint32_t rank = 0;
  uint32_t size = 1;
  unsigned char secret[16] = {};  // proves to ranks of this job that one is of it
  const char* job = "";           // its name
  const char* whom = "rank ";     // before the numbers of its peers, in stories
  const char* interface = "";     // HEADWAY_TCP_INTERFACE
  uint64_t connect_timeout_us = 10'000'000;
  uint32_t max_body = 1u << 20;  // a longer body in a frame is garbage
  int verbose = 0;
};

// Which host is watched, and who is told that one has vanished.
struct HostPlan {
  uint32_t target = 0;  // a rank of the next host
  uint64_t silence_us = 8'000'000;
  char next_name[65] = "";      // of its host
  char previous_name[65] = "";  // of the host whose ranks watch this one
  // `story`: which host, where, since when. On the thread that looks, once.
  void (*silent)(uint32_t peer, const char* story) = nullptr;
};

// Which host a card is of: equal where 127.0.0.1 means the same thing; 0 where that is not known.
uint64_t host_of(const char* card);

struct Counters {
  base::Counter frames_out, frames_in, bytes_out, bytes_in;
  base::Counter connections, rejected, garbage, reads, writes;
};

using transports::always_whole;
using transports::Receiver;

class Tcp final : public transports::Transport {
 public:
  // Listens; fills what card() gives. Errors: no_resource, no_route.
  Outcome start(const Config& config, Receiver* receiver);
  // Why start() failed: one sentence for the user.
  const char* explanation() const;
  // Text that other ranks need to reach this one (addresses as numbers and port), NUL-terminated.
  size_t card(char* out, size_t room) const;
  // The job's secret, if it came after start(); before the first reap() and push().
  void set_secret(const unsigned char (&secret)[16], const char* job);
  // The card of a peer, known before the first push to it. Copied.
  Outcome set_card(uint32_t peer, const char* card);
  // All cards are set. Where every peer is on this host, nobody else can reach the listener from
  // now on.
  void all_cards_set();
  // From now on a vanished host is noticed. `in_reap`: reap() looks; else somebody calls
  // look_at_hosts() when hosts_fd() is readable, on any one thread, without the engine.
  Outcome watch_hosts(const HostPlan& plan, bool in_reap);
  int hosts_fd() const;
  void look_at_hosts() override;
  // Nothing is told until wake(): for a rank that rests and has delivered everything.
  void pause_watch();
  // What was watched is closed; after the last look_at_hosts().
  void end_watch();

  uint32_t caps() const override { return transports::in_place | transports::early; }
  // The connection itself is made by the first push().
  Outcome connect(uint32_t peer, uint32_t& frame_max) override;
  // While a connection comes up, or a frame is half written, answers `full`.
  Push push(uint32_t peer, const FrameHeader& header, const void* head, uint32_t n,
            const Feed* feed, uint64_t cookie, transports::Urgency urgency) override;
  bool writable(uint32_t peer) const override;
  // As the system saw it last while it was the link that held us up; 0: it never has.
  uint64_t rate(uint32_t peer) const override;
  uint64_t enough(uint32_t peer, uint64_t us, uint64_t fastest) const override;
  // Not acknowledged by the peer's system yet, with those that wait here.
  uint64_t in_flight(uint32_t peer) const override;

  // Accepts and completes connections, too.
  bool reap(uint64_t budget) override;
  // Without epoll, and no other peer.
  bool reap_peer(uint32_t peer, uint64_t budget) override;
  // True when a call to reap() makes sense at all (a connection or a listener exists).
  bool active() const;
  // True while something is half done that a sleeper must wake for being writable.
  bool writing() const;

  // Wakes when min(rest, 256 KB) are there (SO_RCVLOWAT).
  void expect(uint32_t peer, uint64_t rest) override;
  void hurry(uint32_t peer, bool on) override;
  void redirect(uint32_t peer, const void* token, ptrdiff_t by) override;

  // The epoll instance, level-triggered.
  int descriptor() const override;

  // Tells every peer that the end of its connection is no loss from now on, for this rank has
  // nothing left to say or to hear; those that connect later are told, too. wake(): not any more.
  void rest() override;
  void wake() override;
  // After rest(): all that was pushed, and that word, is with the peers' systems. What this process
  // has sent is not lost when it ends now.
  bool is_delivered() const override;
  // Closes everything at once.
  void finish();
  // In a forked child: close descriptors without saying anything to peers.
  void abandon();

  const Counters& counters() const;
  // Where the address of the first connection that is being made stands, 0: none is. Written under
  // the engine; for readers in another process.
  const void* first_meeting() const;

 private:
  struct Impl;
  Impl* impl_ = nullptr;
};

}  // namespace headway::tcp
