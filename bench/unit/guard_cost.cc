// guard_cost: what it costs to close the pages of a receive buffer and to open them again as data
// arrives, by mechanism and size; table 2 of the early-release paper. The other core is idle, or
// runs a second thread of the process, as a message thread may: then a change of the page table
// has to reach it as well.
//
//   guard_cost [REPETITIONS]      one line of JSON for each, microseconds, medians
//
// "close": the pages are closed. "open": they are opened, a batch at a time, after the data was put
// beside them; with the mechanism "missing" it includes a copy. "copy": a memcpy of that size.
#include <poll.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/spin_lock.h"
#include "guard/guard.h"
#include "guard/minor.h"
#include "guard/missing.h"
#include "guard/trap.h"

namespace {

using headway::Outcome;
using headway::guard::Guard;
using headway::guard::Minor;
using headway::guard::Missing;
using headway::guard::page_bytes;
using headway::guard::Region;
using headway::guard::Trap;

struct Cost {
  double close, open, copy;
};

double us_since(uint64_t start) {
  return static_cast<double>(headway::base::now_ns() - start) / 1000.0;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

Cost once(Guard& guard, char* memory, const char* data, size_t pages) {
  const size_t bytes = pages * page_bytes, batch = (pages <= 64 ? 4 : 16) * page_bytes;
  Cost cost{};
  uint64_t start = headway::base::now_ns();
  Region* region = guard.close({memory, pages});
  cost.close = us_since(start);
  if (region == nullptr) {
    std::fprintf(stderr, "guard_cost: the pages could not be closed\n");
    std::exit(3);
  }
  for (size_t at = 0; at < bytes; at += batch) {
    const size_t n = std::min(batch, bytes - at);
    std::memcpy(region->view + at, data + at, n);
    start = headway::base::now_ns();
    guard.arrived(region, at, n);
    cost.open += us_since(start);
  }
  start = headway::base::now_ns();
  std::memcpy(memory, data, bytes);
  cost.copy = us_since(start);
  return cost;
}

// Closing and opening with one mechanism, `busy`: while the other core runs this process too.
template <class M>
bool measure(const char* name, bool busy, int repetitions) {
  M mechanism;
  if (mechanism.start() != Outcome::ok) return false;
  Guard guard;
  guard.start(&mechanism);
  constexpr size_t most = 4u << 20;
  auto* memory = static_cast<char*>(
      mmap(nullptr, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::vector<char> data(most, 'x');
  std::memset(memory, 'y', most);

  std::atomic<bool> stop{false};
  std::thread server([&] {
    pollfd waits{guard.descriptor(), POLLIN, 0};
    while (!stop.load(std::memory_order_relaxed)) {
      if (poll(&waits, 1, 20) > 0) guard.serve();
    }
  });
  std::thread other([&] {
    while (busy && !stop.load(std::memory_order_relaxed)) headway::base::cpu_relax();
  });
  for (const size_t kb : {4, 16, 64, 256, 1024, 4096}) {
    std::vector<double> close, open, copy;
    for (int i = 0; i < repetitions + 3; ++i) {
      const Cost cost = once(guard, memory, data.data(), kb * 1024 / page_bytes);
      if (i < 3) continue;  // the first ones make tables
      close.push_back(cost.close);
      open.push_back(cost.open);
      copy.push_back(cost.copy);
    }
    std::printf(
        "{\"mechanism\": \"%s\", \"busy\": %s, \"bytes\": %zu, \"close\": %.3f, \"open\": %.3f, "
        "\"copy\": %.3f}\n",
        name, busy ? "true" : "false", kb * 1024, median(close), median(open), median(copy));
  }
  stop = true;
  other.join();
  server.join();
  mechanism.stop();
  munmap(memory, most);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 41;
  if (repetitions < 1 || repetitions > 100'000) {
    std::fprintf(stderr, "guard_cost: REPETITIONS is a number from 1 to 100000\n");
    return 2;
  }
  int there = 0;
  for (const bool busy : {false, true}) {
    there += measure<Missing>("missing", busy, repetitions);
    there += measure<Minor>("minor", busy, repetitions);
    there += measure<Trap>("trap", busy, repetitions);
  }
  if (there == 0) std::printf("guard_cost: this system lets nobody close pages\n");
  return there ? 0 : 77;
}
