// guard_touch: what opening pages costs in batches of 1, 4 and 16, and how long a thread that
// touches a closed page waits at least: touch, notice, a page is filled and opened, the thread runs
// again. The message thread spins on the notice, or sleeps in poll() for it.
//
//   guard_touch [ROUNDS]      one line of JSON for each, microseconds
//
// Beside guard_cost, which measures whole messages.
#include <poll.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "guard/choice.h"
#include "guard/guard.h"

namespace {

using headway::Outcome;
using headway::base::now_ns;
using namespace headway::guard;

constexpr size_t most_pages = 1024;

double at_share(std::vector<double>& values, double share) {
  const auto place = static_cast<long>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + place, values.end());
  return values[static_cast<size_t>(place)];
}

Region* close_or_end(Guard& guard, char* memory) {
  Region* region = guard.close({memory, most_pages});
  if (region) return region;
  std::fprintf(stderr, "guard_touch: the pages could not be closed\n");
  std::exit(3);
}

void measure_batches(Guard& guard, const char* name, char* memory, int rounds) {
  for (const size_t batch : {1, 4, 16}) {
    std::vector<double> pages;
    for (int round = 0; round < rounds; ++round) {
      Region* region = close_or_end(guard, memory);
      std::memset(region->view, round, region->size());
      const uint64_t start = now_ns();
      for (size_t page = 0; page < most_pages; page += batch) {
        guard.arrived(region, page * page_bytes, batch * page_bytes);
      }
      pages.push_back(static_cast<double>(now_ns() - start) / 1000.0 / most_pages);
      std::memset(memory, round, most_pages * page_bytes);  // every page is in its tables again
    }
    std::printf("{\"mechanism\": \"%s\", \"batch\": %zu, \"open_page\": %.3f}\n", name, batch,
                at_share(pages, 0.5));
  }
}

// The toucher is a thread of its own; this one is the message thread.
void measure_touch(Guard& guard, const char* name, char* memory, bool sleeps) {
  Region* region = close_or_end(guard, memory);
  std::vector<double> waits(most_pages);
  std::thread toucher([&] {
    for (size_t page = 0; page < most_pages; ++page) {
      const uint64_t start = now_ns();
      (void)*static_cast<volatile char*>(memory + page * page_bytes);
      waits[page] = static_cast<double>(now_ns() - start) / 1000.0;
    }
  });
  for (size_t page = 0; page < most_pages; ++page) {
    const uint64_t before = guard.counters.touched;
    while (guard.counters.touched == before) {
      pollfd notice{guard.descriptor(), POLLIN, 0};
      if (sleeps) poll(&notice, 1, 1000);
      guard.serve();
    }
    std::memset(region->view + page * page_bytes, int(page), page_bytes);
    guard.arrived(region, page * page_bytes, page_bytes);
  }
  toucher.join();
  const double median = at_share(waits, 0.5), p90 = at_share(waits, 0.9);
  std::printf(
      "{\"mechanism\": \"%s\", \"message_thread\": \"%s\", \"touch\": %.2f, "
      "\"touch_p90\": %.2f}\n",
      name, sleeps ? "sleeps" : "spins", median, p90);
}

bool measure(Wish wish, int rounds) {
  Choice choice;
  const char* name = name_of(Kind(static_cast<uint8_t>(wish)));
  if (choice.start(wish) != Outcome::ok) {
    std::fprintf(stderr, "guard_touch: %s: %s\n", name, choice.why());
    return false;
  }
  Guard guard;
  guard.start(choice.mechanism());
  constexpr size_t bytes = most_pages * page_bytes;
  auto* memory = static_cast<char*>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::memset(memory, 1, bytes);
  measure_batches(guard, name, memory, rounds);
  for (const bool sleeps : {false, true}) measure_touch(guard, name, memory, sleeps);
  munmap(memory, bytes);
  choice.stop();
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 21;
  if (rounds < 1 || rounds > 100'000) {
    std::fprintf(stderr, "guard_touch: ROUNDS is a number from 1 to 100000\n");
    return 2;
  }
  int there = 0;
  for (const Wish wish : {Wish::missing, Wish::minor, Wish::trap}) there += measure(wish, rounds);
  return there ? 0 : 77;
}
