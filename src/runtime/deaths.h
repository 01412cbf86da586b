// Deaths: neighbours in shared memory whose processes this rank watches, by descriptors that the
// kernel makes readable when they end: some launchers go on when a rank dies, and nobody would ever
// hear of it. Thread: init; then who is told by Handoff::watch_deaths. Owner: Process. Invariant:
// each rank watches the next, the second, the fourth, ... behind it, so nobody is unwatched, and a
// rank that ends because of a death is seen by others in turn.
#pragma once
#include <cstdint>

#include "transports/shm/node.h"

namespace headway::runtime {

class Deaths {
 public:
  static constexpr uint32_t nobody = UINT32_MAX;

  // False where the kernel has no such descriptors, forbids them, or has none left.
  [[nodiscard]] bool start(const shm::Node& node);
  // Readable while somebody has ended; -1 before start.
  int descriptor() const { return epoll_; }
  // A watched rank, by its number in the memory, that has ended and has not said goodbye.
  uint32_t next(const shm::Node& node);
  // Enough has been told of that one.
  void forget(uint32_t local);
  // In the process itself, and in a forked child.
  void stop();

 private:
  static constexpr uint32_t most = 10;  // powers of two below shm::max_ranks
  struct Watched {
    uint32_t local;
    int fd;
  };
  bool watch(const shm::Node& node, uint32_t local);

  int epoll_ = -1;
  uint32_t count_ = 0;
  Watched watched_[most] = {};
};

}  // namespace headway::runtime
