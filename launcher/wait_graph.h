// Wait graph: which ranks may go on, if each goes on only when what it waits for does: one rank,
// any one of some (a wild card, a collective), anybody at all; of several such needs it has to have
// each. In plain numbers, so that thousands of ranks take no longer than their edges. Thread: the
// launcher's only one. Owner: a Judgement. Invariant: a rank is left out of those that may go on
// only if no way of its edges leads out of the ranks that wait.
#pragma once
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "whereabouts.h"

namespace headway::launcher {

class WaitGraph {
 public:
  explicit WaitGraph(size_t ranks) : needs_(ranks, 0), waiters_(ranks) {}

  void needs(size_t rank, size_t other);
  // One of those with that number and side, of which the members are those that were given first.
  // `members()`: asked for once.
  template <class MembersOf>
  void needs_one_of(size_t rank, uint64_t set, int side, MembersOf&& members) {
    ++needs_[rank];
    auto found = sets_.find({set, side});
    if (found == sets_.end())
      found = sets_.emplace(Number{set, side}, Set{members(), sets_.size(), {}}).first;
    found->second.waiters.push_back(rank);
  }
  void needs_anybody(size_t rank);

  // Of those that are marked in `live`, and of all that may go on since they do.
  void spread(std::vector<char>& live) const;

  // The circle of those with marks where each rank has the next one of its own (-1: none), that
  // holds the smallest rank of all such circles, from that one on. Empty: there is none.
  static std::vector<int> circle(const std::vector<int>& next);

 private:
  struct Set {
    Members members;
    size_t number;  // among the sets
    std::vector<size_t> waiters;
  };

  std::vector<size_t> needs_;                 // how many each rank has
  std::vector<std::vector<size_t>> waiters_;  // for each rank
  using Number = std::pair<uint64_t, int>;
  std::map<Number, Set> sets_;
  std::vector<size_t> modest_;  // wait for anybody
};

}  // namespace headway::launcher
