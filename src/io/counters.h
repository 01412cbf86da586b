// Counters of files: settings/counters.h tells the user what each means. Thread: any adds, any
// reads: application threads and the disk worker count side by side. Owner: this room. Invariant:
// none goes down.
#pragma once
#include <atomic>
#include <cstdint>

namespace headway::io {

struct Counters {
  std::atomic<uint64_t> opens{0};
  std::atomic<uint64_t> bytes_read{0}, bytes_written{0};
  std::atomic<uint64_t> reads{0}, writes{0};  // system calls
  std::atomic<uint64_t> sieved_bytes{0};      // read for the sake of others between them
  std::atomic<uint64_t> collectives{0}, two_phase{0};
  std::atomic<uint64_t> stretches{0};     // of two-phase accesses, by this rank
  std::atomic<uint64_t> passed_bytes{0};  // to other ranks that write them, or wanted them
  std::atomic<uint64_t> jobs{0};          // of the disk worker
  std::atomic<uint64_t> waits{0}, wait_ns{0};
  std::atomic<uint64_t> locks{0};
  std::atomic<uint64_t> shared_asks{0};
};

extern constinit Counters counters;

inline void count(std::atomic<uint64_t>& counter, uint64_t n = 1) {
  counter.fetch_add(n, std::memory_order_relaxed);  // pairs with nothing: a number says no more
}

}  // namespace headway::io
