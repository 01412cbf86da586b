// HostWatch: notices that another host has vanished. Each rank has one idle connection to a rank of
// the next host in a ring of all hosts, and the systems of both ends ask each other every second
// whether they are there (TCP keepalive). The systems answer, whatever the processes do: a rank may
// compute, be stopped or sit in a debugger.
// Thread: look() on the message thread, without the engine (on the holder of the engine where there
// is no such thread); take(), stop() and go_on() on the holder of the engine; the rest before and
// after both. Owner: Impl. Invariant: silence counts only over many looks that each asked anew, so
// no jump of a clock and no pause of this process or machine looks like the end of another.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/hmac.h"
#include "base/outcome.h"
#include "transports/tcp/detail/address.h"
#include "transports/tcp/tcp.h"

namespace headway::tcp {

class HostWatch {
 public:
  Outcome start(const HostPlan& plan, const Config& config, const base::HmacKey& key,
                const Card& target, uint64_t own_host, uint32_t scope);
  // Readable when look() has something to do; -1: nothing is watched.
  int descriptor() const { return timer_; }
  void look();
  // The connection of a rank that watches this host from `remote`; it is ours from now on.
  void take(int fd, uint32_t peer, const Address& remote);
  // Nothing is told any more, until go_on().
  void stop() { stopped_.store(true, std::memory_order_release); }  // pairs with look
  void go_on();
  void close();
  // In a forked child.
  void abandon();

 private:
  enum class State : uint8_t { resting, dialling, linked };
  // Unheard: silent, with data of ours under way.
  enum class Seen : uint8_t { answered, silent, unheard, ended, dead };
  struct Taken {
    int fd;
    uint32_t peer;
    uint32_t looks;  // in a row that found no answer
    Address remote;
    Taken* next;
  };
  struct Attempt {
    int fd = -1;
    uint8_t candidate = 0;
  };
  static constexpr uint32_t most_attempts = 8;

  bool look_at_taken();
  void adopt_taken();
  bool look_at_target();
  bool look_at_attempts();
  bool look_at_attempt(Attempt& attempt);
  void dial();
  void greet(Attempt& attempt);
  void drop_attempts();
  void rest(uint32_t looks);
  Seen examine(int fd, uint32_t& looks) const;
  void tell(uint32_t peer, const Address& remote, const char* name);
  void set_pace(uint64_t us);

  HostPlan plan_;
  Config config_;
  base::HmacKey key_;
  int timer_ = -1;
  uint64_t pace_us_ = 0;
  std::atomic<bool> stopped_{false};
  std::atomic<Taken*> fresh_{nullptr};  // by take(), not yet seen by look()
  Taken* taken_ = nullptr;
  // The next host.
  State state_ = State::resting;
  bool known_ = false;  // it has answered once, so silence means something
  uint32_t rest_ = 1;   // looks until it is dialled
  uint32_t looks_ = 0;  // in a row that found no answer
  uint64_t hellos_ = 0;
  int link_ = -1;
  uint8_t best_ = 0;  // the candidate that answered
  uint8_t count_ = 0;
  uint8_t dialled_ = 0;  // attempts begun in this search
  uint16_t port_ = 0;
  uint32_t scope_ = 0;
  Attempt attempts_[most_attempts];
  Candidate candidates_[max_addresses];
};

}  // namespace headway::tcp
