// Node: the shared segment of the ranks of one host, one page a process and a ring a pair.
// Thread: holder of the engine. Owner: the first rank of the node makes the memory (a memfd, which
// the others open through /proc, so nothing is left in /dev/shm by a kill); each process owns its
// page. Invariant: a ring is used only after its sender reserved the memory and set its bit in the
// receiver's page.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <sys/uio.h>

#include "base/counter.h"
#include "base/doorbell.h"
#include "base/outcome.h"
#include "base/text.h"
#include "transports/shm/ring.h"

namespace headway::shm {

inline constexpr uint32_t max_ranks = 1024;

// What a sleeping process waits for: bits of ProcessPage::armed.
enum Event : uint32_t {
  event_envelope = 1,    // any eager message (a schedule, a released receive, a sleeping rank)
  event_rendezvous = 2,  // a request to send
  event_control = 4,     // clear-to-send, data, acknowledgements
  event_credit = 8,      // room in a ring
  event_done = 16,       // an operation is over and starts nothing: only sleepers wait for it
  event_any = 31
};

struct ProcessPage {
  // Written by the owner when it leaves or sleeps, taken by whoever rings.
  alignas(64) std::atomic<uint32_t> armed;
  std::atomic<uint32_t> pressure;  // unexpected messages fill its memory: handshake, please
  // A thread of the owner polls in MPI at this moment. Only a hint for who copies.
  alignas(64) std::atomic<uint32_t> waiting;
  alignas(64) std::atomic<uint32_t> newcomers;  // senders that opened a ring, counted
  std::atomic<uint32_t> ready;
  std::atomic<int32_t> pid;
  std::atomic<int32_t> bell_fd;
  std::atomic<uint32_t> left;  // it may end now, and is missed by nobody
  std::atomic<uint32_t> core;  // 1 more than the one on which it last waited; a hint
  // Of the node's first rank: until when others than its ranks are said to compute here; a hint.
  std::atomic<uint64_t> strangers_until;
  alignas(64) std::atomic<uint64_t> senders[max_ranks / 64];
};
static_assert(sizeof(ProcessPage) <= 4096);

// Why the job ends, as its ranks on this node tell each other: the first word counts.
struct Ended {
  uint32_t rank = 0;     // of the job
  int code = 0;          // for all of them
  bool is_told = false;  // it said so itself, and was not found dead
};

struct Counters {
  base::Counter rings;   // pairs that talk
  base::Counter bells;   // sleepers woken
  base::Counter pulled;  // bytes read from a peer's memory
  base::Counter pushed;  // bytes written into a peer's memory
};

class Node {
 public:
  // The node's first rank: makes the segment. `key` gets text that the others need (128 bytes).
  Outcome create(uint32_t ranks, char* key, size_t room);
  // The other ranks. refused: this process may not open it (other user, container); peer_lost: the
  // first rank has ended; no_resource, no_memory: no descriptor or address space is left.
  Outcome attach(const char* key, uint32_t ranks);
  // Every rank, after create or attach: fills its page. `bell` lives as long as the node, and
  // should listen to name_of(self()): by it this rank calls, and is called, where a bell cannot be
  // opened.
  void join(uint32_t local_rank, const base::Doorbell& bell);
  // The name of a rank's bell, which no other process has: made of the segment's cookie.
  base::Text<64> name_of(uint32_t local) const;
  // Whether that rank has joined: certain once all have had their chance (a fence of the job).
  bool has_joined(uint32_t local) const {
    return pages_[local]->ready.load(std::memory_order_acquire) != 0;  // pairs with join
  }
  // Where some never joined, those who did go on without them, before any ring is open: all of
  // them call this with the same ascending list, and number i is from now on who was members[i].
  void keep(const uint32_t* members, uint32_t count);
  void detach();

  // This rank needs no other and is needed by none: its end is no death.
  void say_goodbye() { own().left.store(1, std::memory_order_release); }  // pairs with has_left
  void take_back_goodbye() { own().left.store(0, std::memory_order_release); }
  bool has_left(uint32_t local) const {
    return pages_[local]->left.load(std::memory_order_acquire) != 0;
  }
  int pid_of(uint32_t local) const { return pages_[local]->pid.load(std::memory_order_relaxed); }
  // The job ends as `ended` says, unless somebody said otherwise before. What counts is returned.
  Ended tell_end(Ended ended);
  // Somebody was found dead, and the launcher did nothing about it.
  bool is_ending_by_death() const;
  // True for the first rank of the node that asks: it tells the user.
  bool claim_story();

  bool active() const { return memory_ != nullptr; }
  bool owns(const void* address) const { return address >= memory_ && address < memory_ + bytes_; }
  uint32_t ranks() const { return ranks_; }
  uint32_t self() const { return self_; }
  ProcessPage& page(uint32_t local) { return *pages_[local]; }
  ProcessPage& own() { return *pages_[self_]; }
  Shape shape() const { return shape_; }

  // Opens the ring to a peer: reserves its memory, so that a full machine is an error here and not
  // a SIGBUS later. no_memory when it is full.
  Outcome open_to(uint32_t local, Producer& producer);
  // The ring that `local` opened to us.
  void attach_from(uint32_t local, Consumer& consumer);
  bool has_newcomers() const {
    return pages_[self_]->newcomers.load(std::memory_order_relaxed) != newcomers_seen_;
  }
  // Senders that appeared since the last call: sets their bits in `fresh`. True if there are any.
  bool take_newcomers(uint64_t (&fresh)[max_ranks / 64]);

  // After a frame of that kind was published to a peer: rings if it sleeps and waits for it.
  // Both sides need their fence; one missing loses hundreds of rings in a million (measured).
  void wake(uint32_t local, uint32_t event) {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with arm_and_unlock
    ProcessPage& page = *pages_[local];
    if (page.armed.load(std::memory_order_relaxed) & event) [[unlikely]]
      ring(local);
  }
  void ring(uint32_t local);
  // So long a rank that is outside MPI is waited for before its bell is rung; else what that costs.
  void set_bell_cost(uint64_t ns) { bell_ns_ = ns; }
  // False while the peer is outside MPI, in a call that does not wait, or asleep.
  bool is_waiting(uint32_t local) const {
    return pages_[local]->waiting.load(std::memory_order_relaxed) != 0;
  }

  // This rank waits on that core: a hint, so nothing hangs on its order.
  void waits_on(uint32_t core) {
    if (own().core.load(std::memory_order_relaxed) != core + 1)
      own().core.store(core + 1, std::memory_order_relaxed);
  }
  // The core where that peer last waited, or no_core.
  uint32_t core_of(uint32_t local) const {
    return pages_[local]->core.load(std::memory_order_relaxed) - 1;
  }
  static constexpr uint32_t no_core = ~0u;
  // Others than the ranks of this node compute on its cores, and will for a while: until that time
  // of the monotonic clock, ns.
  void tell_strangers(uint64_t until) {
    pages_[0]->strangers_until.store(until, std::memory_order_relaxed);
  }
  uint64_t strangers_until() const {
    return pages_[0]->strangers_until.load(std::memory_order_relaxed);
  }

  // One-copy: reads from (or writes to) another process's contiguous memory at `remote`, through
  // `vectors` of our own. `done` counts the bytes that were copied, also when it ends early.
  // refused where the system forbids it or the memory is not there.
  Outcome pull(uint32_t local, uint64_t remote, iovec* vectors, size_t count, uint64_t& done);
  Outcome push(uint32_t local, uint64_t remote, iovec* vectors, size_t count, uint64_t& done);

  Counters counters;

 private:
  using VmCall = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                             unsigned long);
  Outcome transfer(uint32_t local, uint64_t remote, iovec* vectors, size_t count, uint64_t& done,
                   VmCall call);
  void plan(uint32_t ranks);
  Outcome map(uint32_t ranks, int fd);
  size_t ring_offset(uint32_t from, uint32_t to) const;

  char* memory_ = nullptr;
  size_t bytes_ = 0;
  int fd_ = -1;
  uint32_t places_ = 0;  // pages in the segment, which lie before all rings
  uint32_t ranks_ = 0;   // those in use
  uint32_t self_ = 0;
  Shape shape_{64, 128 << 10};
  uint32_t newcomers_seen_ = 0;
  uint64_t senders_seen_[max_ranks / 64] = {};
  const base::Doorbell* bell_ = nullptr;
  ProcessPage* pages_[max_ranks] = {};
  // How this rank calls another one.
  struct Caller {
    int bell = -1;
    uint8_t vain = 0;   // how often it was waited for in vain before the bell was rung, lately
    uint8_t skips = 0;  // so many times it is not waited for
  };
  bool comes_back(uint32_t local);
  uint64_t bell_ns_ = 1000;  // about; whom it wakes costs several times that
  Caller callers_[max_ranks];
};

}  // namespace headway::shm
