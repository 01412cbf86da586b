#include "wait_graph.h"

#include <algorithm>

namespace headway::launcher {

void WaitGraph::needs(size_t rank, size_t other) {
  ++needs_[rank];
  waiters_[other].push_back(rank);
}

void WaitGraph::needs_anybody(size_t rank) {
  ++needs_[rank];
  modest_.push_back(rank);
}

void WaitGraph::spread(std::vector<char>& live) const {
  std::vector<size_t> left = needs_, queue;
  std::vector<std::vector<const Set*>> sets_of(live.size());
  for (const auto& [number, set] : sets_) {
    for (const int member : set.members) {
      if (member >= 0 && size_t(member) < live.size()) sets_of[size_t(member)].push_back(&set);
    }
  }
  for (size_t i = 0; i < live.size(); ++i) {
    if (live[i]) queue.push_back(i);
  }
  const auto has_one = [&](const std::vector<size_t>& waiters) {
    for (const size_t waiter : waiters) {
      if (--left[waiter] == 0 && !live[waiter]) {
        live[waiter] = 1;
        queue.push_back(waiter);
      }
    }
  };
  if (!queue.empty()) has_one(modest_);
  std::vector<char> done(sets_.size(), 0);
  while (!queue.empty()) {
    const size_t rank = queue.back();
    queue.pop_back();
    has_one(waiters_[rank]);
    for (const Set* set : sets_of[rank]) {
      if (done[set->number]++) continue;
      has_one(set->waiters);
    }
  }
}

std::vector<int> WaitGraph::circle(const std::vector<int>& next) {
  std::vector<int> best;
  std::vector<size_t> seen_from(next.size(), 0);  // 1 and more: by the walk from rank - 1
  for (size_t start = 0; start < next.size(); ++start) {
    size_t at = start;
    while (seen_from[at] == 0 && next[at] >= 0) {
      seen_from[at] = start + 1;
      at = size_t(next[at]);
    }
    if (next[at] < 0 || seen_from[at] != start + 1) continue;
    std::vector<int> found;
    for (size_t end = at; found.empty() || at != end; at = size_t(next[at])) {
      found.push_back(int(at));
    }
    std::rotate(found.begin(), std::min_element(found.begin(), found.end()), found.end());
    if (best.empty() || found[0] < best[0]) best = std::move(found);
  }
  return best;
}

}  // namespace headway::launcher
