// Junction: what leads from the processes of one group to those of another whose jobs differ: a
// transport of its own, in which each process of both has a seat. Junctions: all of this process,
// which are one transport to the engine. Thread: holder of the engine. Owner: the room; there is
// one Junctions. Invariants: the seats are the same in all processes of a junction; a process of
// another job has a number of its own for each junction that it is met by, which is never given
// again; what comes from a seat without a number is garbage; a junction is closed when no
// communicator of this process has anybody behind it.
#pragma once
#include <cstdint>

#include "base/vec.h"
#include "protocols/core.h"
#include "spawn/row.h"
#include "transports/tcp/tcp.h"
#include "transports/transport.h"

namespace headway::objects {
class Registry;
struct Comm;
}  // namespace headway::objects

namespace headway::spawn {

// What a junction's transport is made with.
struct JunctionPlan {
  uint32_t seat = 0;  // of this process
  uint32_t size = 0;  // seats
  unsigned char secret[16] = {};
  char name[40] = "";  // the same in all its processes, and of no other junction
};

// A process of another job is gone, and its job not disconnected. Does not return.
using LostHandler = void (*)(Outcome why, const Row& who, const char* story);

class Junction final : public transports::Receiver {
 public:
  Outcome open(const tcp::Config& config, const JunctionPlan& plan, protocols::Core& core,
               transports::Receiver& receiver);
  size_t card(char* out, size_t room) const { return tcp_.card(out, room); }
  // The other side is that: its processes get numbers, those of this job have theirs (its name).
  // `first_seat`: the seat of rows[0]. `members[i]`: the number of rows[i].
  Outcome meet(const Row* rows, uint32_t count, uint32_t first_seat, const char* own_job,
               uint32_t* members);
  // Somebody behind it is of another job than this process.
  bool leads_away() const { return away_ != 0; }
  bool is_open() const { return open_; }
  // There is a communicator for it; before, it is nobody's to close but its maker's.
  void settle() { settled_ = true; }
  bool is_settled() const { return settled_ && !kept_; }
  // Operations that nobody can be told of may be under way: it stays open to the end.
  void keep() { kept_ = true; }
  bool has(uint32_t process) const { return process - first_ < away_; }
  const Row* row_of(uint32_t process) const;
  // Whether one behind it is of a job of that number but another name.
  bool clashes(uint32_t job, const char* name) const;
  tcp::Tcp& transport() { return tcp_; }
  // Everything that was said has arrived (say_goodbye, is_delivered): those behind it are gone. It
  // is then for whoever has said so to close it: another thread does not find it unused.
  void say_goodbye() {
    settled_ = false;
    tcp_.rest();
  }
  bool is_delivered() const { return tcp_.is_delivered(); }
  void close();
  void abandon() { tcp_.abandon(); }

  // transports::Receiver: in the engine's numbers.
  bool frame(uint32_t seat, const FrameHeader& header, const char* body) override;
  bool begin(uint32_t seat, const FrameHeader& header, Landing& landing) override;
  void landed(uint32_t seat, const FrameHeader& header, const Landing& landing,
              uint64_t arrived) override;
  void end(uint32_t seat, const FrameHeader& header, const Landing& landing) override;
  bool make_writable(const char* from, size_t n) override;
  void sent(uint32_t seat, uint64_t cookie) override;
  void unsent(int by) override;
  bool needs(uint32_t seat) override;
  void left(uint32_t seat) override;
  void lost(uint32_t seat, Outcome why, const char* story) override;
  const char* kind_name(uint8_t kind) const override;

  Junction* next = nullptr;  // in Junctions

 private:
  struct Behind {
    uint32_t seat;
    Row row;
  };
  // The number of the process on that seat, or nobody.
  uint32_t process_on(uint32_t seat) const {
    return seat < numbers_.size() ? numbers_[seat] : protocols::Peers::nobody;
  }

  protocols::Core* core_ = nullptr;
  transports::Receiver* receiver_ = nullptr;  // the engine, too
  tcp::Tcp tcp_;
  char name_[40] = "";
  bool open_ = false;
  bool settled_ = false;
  bool kept_ = false;
  uint32_t first_ = 0, away_ = 0;  // numbers of those of other jobs
  base::Vec<uint32_t> numbers_;    // by seat
  base::Vec<Behind> behind_;       // by number, from first_ on
};

class Junctions final : public transports::Transport {
 public:
  // `config`: what is common to all junctions.
  void prepare(protocols::Core& core, transports::Receiver& receiver, const tcp::Config& config,
               LostHandler lost);
  // A new one, opened; null: `outcome` tells why.
  Junction* open(const JunctionPlan& plan, Outcome& outcome);
  bool any() const { return open_ != 0; }
  // Who sleeps in MPI wakes when a socket of its own is ready, too; until unwatch(). For the time
  // of a wait: nobody else takes from it what is there. False: it has to look by itself.
  bool watch(int fd, uint32_t events);
  void unwatch(int fd);
  // Whether a process of another job is among those of the communicator.
  bool is_crossed_by(const objects::Comm& comm) const;
  // Those that lead to its processes stay open.
  void keep_for(const objects::Comm& comm);
  // The first junction that nobody in the registry's communicators is behind; null: there is none.
  Junction* unused(const objects::Registry& registry) const;
  void close(Junction& junction);
  bool clashes(uint32_t job, const char* name) const;
  void lost(Outcome why, const Row& who, const char* story) const { lost_(why, who, story); }

  // The end of the process, and of a forked child's share.
  void finish();
  void abandon();

  // transports::Transport
  uint32_t caps() const override { return 0; }
  Outcome connect(uint32_t peer, uint32_t& frame_max) override;
  Push push(uint32_t peer, const FrameHeader& header, const void* head, uint32_t n,
            const Feed* feed, uint64_t cookie, transports::Urgency urgency) override;
  bool writable(uint32_t) const override { return false; }
  bool reap(uint64_t budget) override;
  bool reap_peer(uint32_t, uint64_t budget) override { return reap(budget); }
  int descriptor() const override { return epoll_; }
  void rest() override;
  void wake() override;
  bool is_delivered() const override;

 private:
  bool start();
  template <class Each>
  void for_each(Each&& each) const {
    for (Junction *junction = first_, *next; junction; junction = next) {
      next = junction->next;
      if (junction->is_open()) each(*junction);
    }
  }

  protocols::Core* core_ = nullptr;
  transports::Receiver* receiver_ = nullptr;
  tcp::Config config_;
  LostHandler lost_ = nullptr;
  Junction* first_ = nullptr;  // also those that are closed, which come back
  uint32_t open_ = 0;
  int epoll_ = -1;
};

Junctions& junctions();

}  // namespace headway::spawn
