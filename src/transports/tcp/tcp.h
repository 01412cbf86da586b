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

namespace headway::tcp {

struct Config {
  uint32_t rank = 0;
  uint32_t size = 1;
  unsigned char secret[16] = {};  // proves to ranks of this job that one is of it
  const char* job = "";           // its name
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

// A body of at most this many bytes always comes whole, by Receiver::frame().
inline constexpr uint32_t always_whole = 4096;

// Where frames go. The engine implements it; calls come from inside reap() and push().
class Receiver {
 public:
  // A whole frame: the body lies in the transport's buffer until the call returns.
  // False: the frame is garbage; the connection is closed and counted.
  virtual bool frame(uint32_t peer, const FrameHeader& header, const char* body) = 0;
  // The head of a frame whose body has not wholly arrived: says where the body goes.
  virtual bool begin(uint32_t peer, const FrameHeader& header, Landing& landing) = 0;
  // Some bytes of it are in place (arrived = bytes of the body so far).
  virtual void landed(uint32_t peer, const FrameHeader& header, const Landing& landing,
                      uint64_t arrived) = 0;
  // The body is complete.
  virtual void end(uint32_t peer, const FrameHeader& header, const Landing& landing) = 0;
  // A read into [from, from + n) failed with EFAULT. True: it may succeed now.
  virtual bool make_writable(const char* from, size_t n) = 0;
  // A frame whose push() returned `started` has left; `cookie` is what push() was given.
  virtual void sent(uint32_t peer, uint64_t cookie) = 0;
  // One connection more (1) or less (-1) has something half written, which goes on only if somebody
  // reaps: frames whose push() returned `done` may be among it.
  virtual void unsent(int by) = 0;
  // The peer rests and its end of the connection is gone, while frames to it were on their way.
  // True: an operation with it is not complete, so that they matter.
  virtual bool needs(uint32_t peer) = 0;
  // A peer that rests has ended, and that is no loss.
  virtual void left(uint32_t peer) = 0;
  // The connection broke or could not be made (no_route, peer_lost, bad_data). `story` is one line
  // for the user: both addresses, what was tried, errno in words.
  virtual void lost(uint32_t peer, Outcome why, const char* story) = 0;

 protected:
  ~Receiver() = default;
};

class Tcp {
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
  void look_at_hosts();
  // Nothing is told until wake(): for a rank that rests and has delivered everything.
  void pause_watch();
  // What was watched is closed; after the last look_at_hosts().
  void end_watch();

  // Sends a frame: header, then header.length bytes of body: first `n` bytes at `head`, then the
  // Feed's (feed may be null; n + feed->length == header.length). While a connection comes up, or
  // a frame is half written, answers `full`; a later reap() makes room.
  Push push(uint32_t peer, const FrameHeader& header, const void* head, size_t n, const Feed* feed,
            uint64_t cookie);
  // True if push() to that peer may succeed now.
  bool writable(uint32_t peer) const;
  // Bytes a second that the link to this peer carries, as measured when it last held us up; 0: it
  // never has. For choosing the length of chunks.
  uint64_t rate(uint32_t peer) const;
  // Bytes of pushed frames that the peer's system has not acknowledged yet, those that wait here
  // with them.
  uint64_t in_flight(uint32_t peer) const;

  // Reads what has arrived on all connections (at most `budget` bytes) and hands it on; accepts
  // and completes connections; goes on with half-written frames. True if anything moved.
  bool reap(uint64_t budget);
  // The same for one peer only, without epoll: for a rank that waits for this peer.
  bool reap_peer(uint32_t peer, uint64_t budget);
  // True when a call to reap() makes sense at all (a connection or a listener exists).
  bool active() const;
  // True while something is half done that a sleeper must wake for being writable.
  bool writing() const;

  // Before a long sleep: the peer's next `rest` bytes are all awaited; wake when min(rest, 256 KB)
  // are there (SO_RCVLOWAT). Reset by the next read.
  void expect(uint32_t peer, uint64_t rest);
  // Frames to that peer shall wait for little that the socket holds already, at the price of more
  // wake-ups; false: for what its rate makes good.
  void hurry(uint32_t peer, bool on);
  // What still comes of the body that lands for `token` goes `by` bytes further on.
  void redirect(uint32_t peer, const void* token, ptrdiff_t by);

  // Readable when reap() has something to do. Level-triggered.
  int epoll_fd() const;

  // Tells every peer that the end of its connection is no loss from now on, for this rank has
  // nothing left to say or to hear; those that connect later are told, too. wake(): not any more.
  void rest();
  void wake();
  // After rest(): all that was pushed, and that word, is with the peers' systems. What this process
  // has sent is not lost when it ends now.
  bool is_delivered() const;
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
