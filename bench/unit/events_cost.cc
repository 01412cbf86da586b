// What an event for tools costs where it is told: with nobody who listens (to be 1 ns), with
// somebody (60 ns), and what taking it out of its ring costs. Best and median of many rounds, less
// those of an empty loop of as many turns. `cmake --build build --target events_cost`.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/clock.h"
#include "settings/events.h"

using namespace headway;
using settings::EventKind;

namespace {

constexpr int turns = 2000;  // fewer than a ring has room
constexpr int rounds = 2000;

template <class Work>
void measure(const char* what, Work&& work) {
  std::vector<double> empty, full;
  for (int round = 0; round < rounds; ++round) {
    const uint64_t start = base::now_ns();
    for (int i = 0; i < turns; ++i) {
      asm volatile("" : : "r"(i) : "memory");
    }
    const uint64_t middle = base::now_ns();
    for (int i = 0; i < turns; ++i) {
      work(i);
      asm volatile("" : : "r"(i) : "memory");
    }
    const uint64_t end = base::now_ns();
    empty.push_back(double(middle - start) / turns);
    full.push_back(double(end - middle) / turns);
    (void)base::begin_delivery();
    base::ToolEvent event;
    while (base::take_event(base::EventSource::program, event)) {
    }
    base::end_delivery();
  }
  std::sort(empty.begin(), empty.end());
  std::sort(full.begin(), full.end());
  printf("%-24s best %6.2f ns, median %6.2f ns\n", what, full[0] - empty[0],
         full[rounds / 2] - empty[rounds / 2]);
}

void listen(bool on) { base::event_listeners[size_t(EventKind::message_matched)].store(on); }

}  // namespace

int main() {
  const auto tell = [](int i) { settings::tell<EventKind::message_matched>(i, 7, uint64_t(8)); };
  measure("nobody listens", tell);
  listen(true);
  measure("somebody listens", tell);
  measure("and it is taken out", [&](int i) {
    tell(i);
    base::ToolEvent event;
    (void)base::take_event(base::EventSource::program, event);
  });
  return 0;
}
