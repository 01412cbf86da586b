// versions_cost: what it costs to learn which pages of a send buffer have been written, by way and
// size; section 2.2 of the prefetching paper. The other core is idle, or runs a second thread of
// the process: then a change of the page table has to reach it as well.
//
//   versions_cost [REPETITIONS]      one line of JSON for each, microseconds, medians
//
// "use": the buffer is followed, and it is found out that nothing of it is pinned. "first_look":
// all of it counts as written and is protected. "clean", "look10", "look100": a look at it when
// none, a tenth, all of its pages were written. "write": the first write to a page after a look,
// "again": a later one.
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
#include "guard/versions.h"

namespace {

using headway::Outcome;
using headway::guard::page_bytes;
using headway::guard::Versions;

struct Cost {
  double use, first_look, clean, look10, look100, write, again;
};

double us_since(uint64_t start) {
  return static_cast<double>(headway::base::now_ns() - start) / 1000.0;
}

double look(Versions& versions, const char* memory, size_t bytes) {
  const uint64_t start = headway::base::now_ns();
  if (!versions.look(memory, bytes)) {
    std::fprintf(stderr, "versions_cost: the memory is not followed any more\n");
    std::exit(3);
  }
  return us_since(start);
}

// For each page.
double write(char* memory, size_t bytes, size_t step) {
  const uint64_t start = headway::base::now_ns();
  for (size_t at = 0; at < bytes; at += step * page_bytes) {
    *static_cast<volatile char*>(memory + at) = 1;
  }
  const size_t pages = (bytes / page_bytes + step - 1) / step;
  return us_since(start) / static_cast<double>(pages);
}

Cost once(Versions& versions, char* memory, size_t bytes) {
  Cost cost{};
  const uint64_t start = headway::base::now_ns();
  if (!versions.use(memory, bytes)) {
    std::fprintf(stderr, "versions_cost: the memory cannot be followed\n");
    std::exit(3);
  }
  cost.use = us_since(start);
  cost.first_look = look(versions, memory, bytes);
  cost.clean = look(versions, memory, bytes);
  write(memory, bytes, 10);
  cost.look10 = look(versions, memory, bytes);
  cost.write = write(memory, bytes, 1);
  cost.again = write(memory, bytes, 1);
  cost.look100 = look(versions, memory, bytes);
  versions.drop(memory, bytes);
  return cost;
}

double median(const std::vector<Cost>& costs, double Cost::*which) {
  std::vector<double> values;
  values.reserve(costs.size());
  for (const Cost& cost : costs) values.push_back(cost.*which);
  const auto middle = values.begin() + static_cast<long>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// One way, `busy`: while the other core runs this process too.
bool measure(Versions::Wish wish, bool busy, int repetitions) {
  Versions versions;
  if (versions.start(nullptr, wish) != Outcome::ok) return false;
  constexpr size_t most = 16u << 20;
  auto* memory = static_cast<char*>(
      mmap(nullptr, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::memset(memory, 'y', most);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (busy && !stop.load(std::memory_order_relaxed)) headway::base::cpu_relax();
  });
  for (const size_t kb : {64, 256, 1024, 4096, 16384}) {
    std::vector<Cost> costs;
    costs.reserve(static_cast<size_t>(repetitions));
    for (int i = 0; i < repetitions; ++i) costs.push_back(once(versions, memory, kb * 1024));
    std::printf(
        "{\"way\": \"%s\", \"busy\": %s, \"bytes\": %zu, \"use\": %.2f, \"first_look\": %.2f, "
        "\"clean\": %.2f, \"look10\": %.2f, \"look100\": %.2f, \"write\": %.3f, \"again\": "
        "%.3f}\n",
        wish == Versions::Wish::signal ? "signal" : "watch", busy ? "true" : "false", kb * 1024,
        median(costs, &Cost::use), median(costs, &Cost::first_look), median(costs, &Cost::clean),
        median(costs, &Cost::look10), median(costs, &Cost::look100), median(costs, &Cost::write),
        median(costs, &Cost::again));
  }
  stop = true;
  other.join();
  versions.stop();
  munmap(memory, most);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 41;
  if (repetitions < 1 || repetitions > 100'000) {
    std::fprintf(stderr, "versions_cost: REPETITIONS is a number from 1 to 100000\n");
    return 2;
  }
  int there = 0;
  for (const bool busy : {false, true}) {
    there += measure(Versions::Wish::watch, busy, repetitions);
    there += measure(Versions::Wish::signal, busy, repetitions);
  }
  if (there == 0) std::printf("versions_cost: this system tells nobody what was written\n");
  return there ? 0 : 77;
}
