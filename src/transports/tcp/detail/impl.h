// Tcp::Impl: everything behind tcp.h. Thread: holder of the engine. Owner: Tcp. Split over files:
// tcp.cc (start, reap, finish), meet.cc (dialling, timers), accept.cc, send.cc, receive.cc.
// Invariant: the Receiver is told of a loss only from inside reap(), never from inside push().
#pragma once
#include <sys/types.h>

#include "base/list.h"
#include "transports/tcp/detail/host_watch.h"
#include "transports/tcp/detail/link.h"
#include "transports/tcp/tcp.h"

namespace headway::tcp {

inline constexpr uint32_t rx_bytes = 32 << 10;
inline constexpr uint32_t block_bytes = 64 << 10;
// One read or one turn of a connection takes at most this, so that none starves the others.
inline constexpr uint64_t turn_bytes = 256 << 10;
inline constexpr uint32_t max_strangers = 64;
inline constexpr uint64_t bytes_between_measures = 256 << 10;
inline constexpr uint32_t lowat_min = 16 << 10;  // of what may lie unsent in a socket
inline constexpr uint64_t tick_us = 100'000;
inline constexpr uint8_t stranger_ticks = 50;  // 5 s of silence

void set_link_options(int fd);

struct Tcp::Impl {
  Config config;
  Receiver* receiver = nullptr;
  Counters counters;
  Line explanation;
  base::HmacKey key;
  HostWatch hosts;
  bool hosts_in_reap = false;
  bool reaping = false;
  uint64_t attempts = 0;  // Hellos said
  uint64_t nonces = 0;    // made as an acceptor

  int epoll = -1;
  int listener = -1;
  int timer = -1;
  // Kept free, so that who finds no descriptor left here can be told: an accept needs one, too. It
  // is lent to a stranger until he is heard, and carries no connection.
  int reserve = -1;
  bool timer_armed = false;
  bool listener_paused = false;  // no descriptors left; tried again at the next tick
  bool resting = false;
  uint32_t scope = 0;
  Card own;
  bool peers_elsewhere = false;  // or where that is not known

  Peer* peers = nullptr;
  Meeting* meetings = nullptr;
  Link* strangers = nullptr;  // newest first
  uint32_t stranger_count = 0;
  Link* graveyard = nullptr;
  base::List<Link> links;   // those that hang on peers, open or broken
  uint32_t busy_links = 0;  // open links with something half written
  uint32_t broken_links = 0;
  // What non-contiguous frames are packed into before they are written.
  char* scratch = nullptr;

  // tcp.cc
  Outcome open(const Config& c, Receiver* r);
  Outcome listen_on();
  void keep_to_loopback();
  bool reap(uint64_t budget);
  bool reap_peer(uint32_t peer, uint64_t budget);
  bool serve(Link& link, uint32_t events, uint64_t& budget);
  void set_interest(Link& link, uint32_t events);
  void close_link(Link& link);  // closes the descriptor, frees buffers, buries
  void bury();                  // frees what was closed
  void fail_link(Link& link, Outcome why, const char* what, int error);
  void fail_garbage(Link& link, const FrameHeader& header);
  bool collect_broken();
  void set_resting(bool on);
  bool is_delivered() const;
  void release_all();

  // meet.cc and accept.cc
  Link* make_link(int fd, LinkState state);
  Meeting* meeting_of(uint32_t peer);
  void end_meeting(Meeting& meeting);
  Pair pair_state(uint32_t peer) const;
  void want(uint32_t peer);
  void dial(Meeting& meeting);
  bool start_attempt(Meeting& meeting);
  void round_over(Meeting& meeting);
  void drop_outgoing(Meeting& meeting);
  void attempt_failed(Meeting& meeting, int error, Verdict answer);
  void give_up(Meeting& meeting);
  bool accept_all();
  int accept_one(SocketAddress& from);
  bool keep_reserve();  // false: there is no descriptor left beyond those in use
  void make_room();     // for one more stranger
  void forget_stranger(Link& link);
  bool greet(Link& link);  // connecting -> answer_wait
  bool hear_answer(Link& link);
  bool hear_hello(Link& link);
  Verdict examine(const Hello& hello);
  void welcome(Link& link);
  void hand_to_watch(Link& link);
  bool hear_confirm(Link& link);
  int hear(Link& link, size_t bytes);  // 1 whole, 0 not yet, -1 ended or failed (errno; 0: end)
  void dismiss(Link& stranger, bool garbage);
  void drop(Link& stranger);
  bool answer(Link& link, Verdict verdict);
  bool answer_sealed(Link& link, Verdict verdict);
  void lose_tentative(Link& link);
  bool promote(Link& link);
  void arm_timer();
  void tick();
  void tick_meeting(Meeting& meeting);
  void tick_attempt(Meeting& meeting);
  uint32_t tick_limit() const;

  // send.cc
  Push push(uint32_t peer, const FrameHeader& header, const void* head, size_t n, const Feed* feed,
            uint64_t cookie);
  Push push_flat(Link& link, const FrameHeader& header, const void* head, size_t n,
                 const Feed* feed, uint64_t cookie);
  Push push_packed(Link& link, const FrameHeader& header, const void* head, size_t n,
                   const Feed& feed, uint64_t cookie);
  Push half_written(Link& link, const Feed* feed, uint64_t from, uint64_t cookie);
  bool keep(Link& link, const void* data, size_t n);
  bool refill(Link& link);
  ssize_t write_more(Link& link);
  bool flush(Link& link);
  void set_busy(Link& link, bool busy);
  void note_written(Link& link, uint64_t bytes) {
    link.unmeasured += bytes;
    if (link.unmeasured >= bytes_between_measures) measure(link);
  }
  void measure(Link& link);
  void set_send_lowat(Link& link, uint32_t bytes);
  void bound_flight(Link& link);
  void break_link(Link& link, int error);
  void say_whether_resting(Link& link);

  // receive.cc
  bool read_link(Link& link, uint64_t& budget);
  ssize_t read_once(Link& link, size_t& asked);
  void parse(Link& link);
  bool take_frame(Link& link);
  void body_arrived(Link& link, uint64_t bytes);
  void read_failed(Link& link, int error);
  bool make_room(Link& link);
  bool may_end(const Link& link) const;
  void end_link(Link& link);
  void stream_ended(Link& link, const char* what, int error);
  void reset_lowat(Link& link);
};

}  // namespace headway::tcp
