// A rank whose work is a mailbox in memory and a socket: what the litmus tests of the handoff race
// with. Thread: as the handoff. Owner: the test. Invariant: nobody moves anything without the
// engine.
#pragma once
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <random>

#include "base/clock.h"
#include "base/spin_lock.h"
#include "progress/handoff.h"

namespace headway::progress {

inline constexpr uint64_t limit_ns = 5'000'000'000;  // a wake that takes longer is lost
inline constexpr uint64_t box_ns = 1'200'000'000;    // time for one test
constexpr uint32_t event_mail = 2, event_other = 4;

inline uint64_t base_seed() {
  const char* given = getenv("HEADWAY_TEST_SEED");
  return given ? strtoull(given, nullptr, 0) : 1;
}

inline void spin_some(std::mt19937_64& random, unsigned most) {
  for (auto spins = random() % most; spins > 0; --spins) base::cpu_relax();
}

// A rank whose work is a mailbox in memory and a socket.
class Rank final : public Work {
 public:
  explicit Rank(bool with_thread, uint32_t patrol_after = 0) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets_), 0);
    EXPECT_EQ(handoff.start(this, &armed, sockets_[0], with_thread, patrol_after), Outcome::ok);
    EXPECT_EQ(handoff.watch_faults(told_faults), Outcome::ok);
    EXPECT_EQ(handoff.watch_hosts(told_hosts), Outcome::ok);
  }
  ~Rank() {
    handoff.stop();
    for (const int fd : {sockets_[0], sockets_[1], told_faults, told_hosts}) close(fd);
  }

  bool advance() override {
    if (!handoff.is_held() || busy_.exchange(true)) ++two_owners;
    bool moved = false;
    const uint64_t published = mail_.load(std::memory_order_acquire);
    if (published != taken_mail.load(std::memory_order_relaxed)) {
      taken_mail.store(published, std::memory_order_release);
      moved = true;
    }
    char bytes[64];
    const ssize_t n = read(sockets_[0], bytes, sizeof bytes);
    if (n > 0) {
      taken_bytes.fetch_add(uint64_t(n), std::memory_order_release);
      moved = true;
    }
    moved |= unrung.exchange(0) != 0;
    busy_ = false;
    if (after_look) after_look(*this);
    return moved;
  }
  bool hand_on() override {
    ++handed_on;
    if (in_hand_on) in_hand_on(*this);
    return has_begun;
  }
  uint32_t wanted() override { return event_mail; }
  void awake() override {}
  void thread_begins() override {}
  void faults() override { take(told_faults, faults_seen); }
  void hosts() override { take(told_hosts, hosts_seen); }
  bool is_awaited() override { return false; }

  // As a peer publishes, and as shm::Node::wake rings.
  void mail(uint64_t number) {
    mail_.store(number, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (armed.load(std::memory_order_relaxed) & event_mail && armed.exchange(0)) {
      handoff.bell().ring();
    }
  }
  void byte() { EXPECT_EQ(write(sockets_[1], "x", 1), 1); }
  // As the kernel tells of a touched page, and a host's watch of one that has vanished.
  static void tell(int fd) { EXPECT_EQ(eventfd_write(fd, 1), 0); }
  static void take(int fd, std::atomic<uint64_t>& seen) {
    eventfd_t times = 0;
    if (eventfd_read(fd, &times) == 0) seen += times;
  }

  void (*after_look)(Rank&) = nullptr;  // what happens just after a look that found nothing
  void (*in_hand_on)(Rank&) = nullptr;
  std::atomic<uint32_t> armed{0};
  Handoff handoff;
  std::atomic<uint64_t> taken_mail{0}, taken_bytes{0}, faults_seen{0}, hosts_seen{0};
  const int told_faults = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  const int told_hosts = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  std::atomic<int> unrung{0};  // came while somebody looked, so that nobody rang for it
  std::atomic<int> two_owners{0};
  std::atomic<int> handed_on{0};
  bool has_begun = false;  // what hand_on() answers

 private:
  std::atomic<uint64_t> mail_{0};
  std::atomic<bool> busy_{false};
  int sockets_[2] = {-1, -1};
};

// As a rank that waits: now and then long enough for the sockets to leave the sleepers' epoll.
inline void attend(Rank& rank, std::mt19937_64& random) {
  for (auto times = random() % 40; times > 0; --times) rank.handoff.attend();
}

inline bool reaches(const std::atomic<uint64_t>& value, uint64_t wanted) {
  const uint64_t start = base::now_ns();
  for (int spins = 0; value.load(std::memory_order_acquire) < wanted; ++spins) {
    if (spins > 200) {
      sched_yield();
    } else {
      base::cpu_relax();
    }
    if (spins % 64 == 0 && base::now_ns() - start > limit_ns) return false;
  }
  return true;
}

}  // namespace headway::progress
