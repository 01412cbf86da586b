#include "engine_layout.h"

#include <algorithm>

#include "say.h"

namespace headway::launcher {
namespace {

int divided_up(int a, int b) { return (a + b - 1) / b; }

// At most `most` on each, as --ppn says.
void fill_limited(Layout& layout, int most, int there) {
  layout.most = most;
  layout.machines = divided_up(layout.ranks, most);
  if (layout.machines > there) {
    layout.refusal = format("--ppn %d: %d ranks need %d machines then, and there %s %d", most,
                            layout.ranks, layout.machines, there == 1 ? "is" : "are", there);
    return;
  }
  if (layout.hosts.empty()) return;
  layout.hosts.resize(static_cast<size_t>(layout.machines));
  for (Host& host : layout.hosts) host.slots = most;
}

// Equal shares; the first machines take one more where that does not come out even.
void share(Layout& layout) {
  const int machines = std::min(layout.ranks, static_cast<int>(layout.hosts.size()));
  layout.hosts.resize(static_cast<size_t>(machines));
  for (int i = 0; i < machines; ++i) {
    layout.hosts[static_cast<size_t>(i)].slots =
        layout.ranks / machines + (i < layout.ranks % machines ? 1 : 0);
  }
  layout.machines = machines;
}

// As many as the user said of each, one machine after the other; where that is too few for all
// ranks, as many times as needed.
void fill_counted(Layout& layout) {
  long long sum = 0;
  for (const Host& host : layout.hosts) sum += host.slots;
  sum = std::max(sum, 1LL);  // each has a number
  const int times = static_cast<int>((layout.ranks + sum - 1) / sum);
  int placed = 0;
  size_t used = 0;
  while (placed < layout.ranks) {
    Host& host = layout.hosts[used++];
    const long long slots = static_cast<long long>(host.slots) * times;
    host.slots = static_cast<int>(std::min<long long>(slots, layout.ranks));
    placed += host.slots;
  }
  layout.hosts.resize(used);
  layout.machines = static_cast<int>(used);
  layout.most = layout.hosts[0].slots;
  // The last one may have room for more than come to it.
  layout.unequal = std::any_of(layout.hosts.begin(), layout.hosts.end(),
                               [&](const Host& host) { return host.slots != layout.most; });
}

}  // namespace

Layout lay_out(const Plan& plan) {
  Layout layout;
  layout.ranks = plan.ranks();
  layout.hosts = plan.place.hosts;
  const int there =
      layout.hosts.empty() ? plan.place.machines : static_cast<int>(layout.hosts.size());
  if (plan.per_machine > 0) {
    fill_limited(layout, plan.per_machine, there);
  } else if (layout.hosts.empty()) {
    layout.machines = std::min(there, layout.ranks);
  } else if (layout.hosts[0].slots == 0) {
    share(layout);
  } else {
    fill_counted(layout);
  }
  return layout;
}

}  // namespace headway::launcher
