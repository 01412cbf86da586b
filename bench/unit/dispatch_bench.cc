// dispatch_bench: what trapping system calls costs a program. One process:
//   g++ -std=c++20 -O2 -Isrc -pthread bench/unit/dispatch_bench.cc src/guard/dispatch.cc
//       src/guard/detail/{trapped_call,calls,gate}.cc src/base/{selector,signals,signals_trap}.cc
//       -o dispatch_bench
// All states take turns, round by round, because the machine changes speed. Printed: microseconds a
// call, median and quartiles over the rounds.
#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <functional>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include "base/clock.h"
#include "guard/dispatch.h"

using namespace headway;
using namespace headway::guard;

namespace {

// One closed page far from everything; waits end at once.
class OnePage final : public Pages {
 public:
  bool is_closed(const void* from, size_t n) override {
    const auto at = reinterpret_cast<uintptr_t>(from);
    return at < page_ + 4096 && page_ < at + n;
  }
  void await_open(const void*, size_t) override {}
  bool is_unmatched() override { return false; }
  void await_matched() override {}
  void await_all() override {}

 private:
  uintptr_t page_ = uintptr_t(1) << 40;
};

OnePage pages;
Dispatch dispatch;
constexpr int rounds = 61, calls = 400;

struct Series {
  const char* name;
  std::function<void()> before, once, after;
  std::vector<double> us;
};

void measure(Series& series) {
  if (series.before) series.before();
  const uint64_t start = base::now_ns();
  for (int i = 0; i < calls; ++i) series.once();
  series.us.push_back(double(base::now_ns() - start) / calls * 1e-3);
  if (series.after) series.after();
}

void print(Series& series) {
  std::sort(series.us.begin(), series.us.end());
  const size_t n = series.us.size();
  printf("%-52s %7.3f  %7.3f..%.3f\n", series.name, series.us[n / 2], series.us[n / 4],
         series.us[3 * n / 4]);
}

// As the engine does it, inside MPI.
void arm() {
  Dispatch::pass();
  if (!dispatch.arm()) {
    fprintf(stderr, "dispatch_bench: cannot arm\n");
    _exit(1);
  }
  Dispatch::resume();
}

}  // namespace

int main() {
  const auto own = [] { (void)syscall(SYS_getppid); };
  Series never{"getppid, never enrolled", nullptr, own, nullptr, {}};
  for (int i = 0; i < rounds; ++i) measure(never);
  if (dispatch.start(&pages) != Outcome::ok || !dispatch.enroll()) {
    fprintf(stderr, "dispatch_bench: no system call dispatch here\n");
    return 1;
  }
  const int null = open("/dev/null", O_WRONLY);
  char bytes[4096] = {};
  const auto disarm = [] { dispatch.disarm(); };
  Series series[] = {
      {"getppid, enrolled, not armed", nullptr, own, nullptr, {}},
      {"getppid, inside MPI while armed",
       [] {
         arm();
         Dispatch::pass();
       },
       own,
       [] {
         dispatch.disarm();
         Dispatch::resume();
       },
       {}},
      {"getppid, trapped and passed", arm, own, disarm, {}},
      {"write of 4 KB to /dev/null, not armed",
       nullptr,
       [&] { (void)!write(null, bytes, sizeof bytes); },
       nullptr,
       {}},
      {"write of 4 KB to /dev/null, trapped and passed",
       arm,
       [&] { (void)!write(null, bytes, sizeof bytes); },
       disarm,
       {}},
      // An unknown call settles; the next arming traps this thread again, as a release would.
      {"arm again (not from rest)", arm, arm, disarm, {}},
      {"unknown call, settled, and armed again",
       arm,
       [] {
         (void)syscall(470);
         arm();
       },
       disarm,
       {}},
      {"arm and disarm",
       nullptr,
       [] {
         arm();
         dispatch.disarm();
       },
       nullptr,
       {}},
      {"arm, disarm, and a call",
       nullptr,
       [] {
         arm();
         dispatch.disarm();
         (void)syscall(SYS_getppid);
       },
       nullptr,
       {}},
      {"covers_all_threads", nullptr, [] { (void)dispatch.covers_all_threads(); }, nullptr, {}},
      {"enter and leave MPI, armed",
       arm,
       [] {
         Dispatch::pass();
         Dispatch::resume();
       },
       disarm,
       {}},
  };
  for (int i = 0; i < rounds; ++i) {
    for (Series& one : series) measure(one);
  }
  printf("%-52s %7s  %s\n", "microseconds a call", "median", "quartiles");
  print(never);
  for (Series& one : series) print(one);
  const TrapCounters& counted = dispatch.counters();
  printf("in the handler, without signal delivery: %.3f us a trap (%llu traps)\n",
         double(counted.nanoseconds) / double(counted.traps) * 1e-3,
         static_cast<unsigned long long>(counted.traps));
}
