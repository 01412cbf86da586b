// Poller: what the launcher's loop waits for. Thread: the launcher's only one. Owns its epoll.
#pragma once
#include <cstdint>
#include <span>
#include <sys/epoll.h>

namespace headway::launcher {

enum class Source : uint32_t {
  signals,
  output,      // of a rank
  errors,      // of a rank
  pmi,         // of a rank
  terminal,    // typed input
  input_pipe,  // towards the rank that gets it
  our_output,  // our stdout or stderr takes more
  inquiry,     // somebody asks where the job stands
};

struct Ready {
  Source source;
  int rank;
  uint32_t events;
};

class Poller {
 public:
  Poller() : fd_(epoll_create1(EPOLL_CLOEXEC)) {}
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Regular files are always ready and cannot be added; that is no error.
  void add(int fd, uint32_t events, Source source, int rank = 0) {
    epoll_event event = {};
    event.events = events;
    event.data.u64 = uint64_t(source) << 32 | uint32_t(rank);
    if (epoll_ctl(fd_, EPOLL_CTL_ADD, fd, &event) != 0) {
      epoll_ctl(fd_, EPOLL_CTL_MOD, fd, &event);
    }
  }
  void remove(int fd) { epoll_ctl(fd_, EPOLL_CTL_DEL, fd, nullptr); }

  // Fills `out`; returns how many. `timeout_ms` may be -1.
  int wait(std::span<Ready> out, int timeout_ms) {
    epoll_event events[64];
    const int most = static_cast<int>(out.size() < 64 ? out.size() : 64);
    const int count = epoll_wait(fd_, events, most, timeout_ms);
    for (int i = 0; i < count; ++i) {
      out[size_t(i)] = {Source(events[i].data.u64 >> 32), int(uint32_t(events[i].data.u64)),
                        events[i].events};
    }
    return count < 0 ? 0 : count;
  }

 private:
  int fd_;
};

}  // namespace headway::launcher
