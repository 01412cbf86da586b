#include "objects/placement.h"

#include <algorithm>

#include "base/check.h"

namespace headway::objects {
namespace {

// An int has at most so many prime factors, and so a grid at most so many lengths above 1.
constexpr int most_long_dimensions = 30;
// Blocks are looked at up to this number; grids with more are of hundreds of thousands of ranks.
constexpr int most_blocks = 1 << 20;
// Placing by weight looks at all places once for each: no more than these.
constexpr int most_places = 1 << 14;

// Looks for the block of `each` places that divides the grid and whose copies have the fewest links
// between them.
class BlockSearch {
 public:
  BlockSearch(const Grid& grid, int each) : grid_(grid), each_(each) {
    for (int i = 0; i < grid.dimensions(); ++i) {
      if (grid.length(i) > 1) dimensions_[count_++] = i;
    }
  }

  // sides[dimension] of the best one; false: none fits.
  bool find(base::Vec<int>& sides) {
    choose(0, each_, 0);
    if (fewest_ == INT64_MAX) return false;
    for (int i = 0; i < count_; ++i) sides[size_t(dimensions_[i])] = best_[i];
    return true;
  }

 private:
  void choose(int at, int left, int64_t links) {
    if (links >= fewest_ || looked_at_ == most_blocks) return;
    if (at == count_) {
      ++looked_at_;
      if (left != 1) return;
      fewest_ = links;
      std::copy(chosen_, chosen_ + count_, best_);
      return;
    }
    const int length = grid_.length(dimensions_[at]);
    for (int side = 1; side <= left && side <= length; ++side) {
      if (left % side != 0 || length % side != 0) continue;
      const int pieces = length / side;
      const bool closes = pieces > 1 && grid_.periodic(dimensions_[at]);
      const int64_t lines = grid_.volume() / length;
      chosen_[at] = side;
      choose(at + 1, left / side, links + lines * (pieces - (closes ? 0 : 1)));
    }
  }

  const Grid& grid_;
  const int each_;
  int dimensions_[most_long_dimensions] = {};  // those that are longer than 1
  int count_ = 0;
  int chosen_[most_long_dimensions] = {};
  int best_[most_long_dimensions] = {};
  int64_t fewest_ = INT64_MAX;
  int looked_at_ = 0;
};

// 0: they differ.
int equal_size(const NodeMembers& nodes) {
  for (int node = 1; node < nodes.count(); ++node) {
    if (nodes.size_of(node) != nodes.size_of(0)) return 0;
  }
  return nodes.size_of(0);
}

// Block after block in row-major order gets node after node, and within a block likewise.
bool fill_blocks(const NodeMembers& nodes, const Grid& grid, const base::Vec<int>& sides,
                 base::Vec<int>& ranks) {
  base::Vec<int> at;
  if (!at.resize(size_t(grid.dimensions()))) return false;
  for (int place = 0; place < grid.volume(); ++place) {
    grid.find_coordinates(place, at.data());
    int block = 0, inside = 0;
    for (int i = 0; i < grid.dimensions(); ++i) {
      const int side = sides[size_t(i)], here = at[size_t(i)];
      block = block * (grid.length(i) / side) + here / side;
      inside = inside * side + here % side;
    }
    if (!ranks.push(nodes.members_of(block)[inside])) return false;
  }
  return true;
}

bool list_links(const Grid& grid, base::Vec<Link>& links) {
  for (int place = 0; place < grid.volume(); ++place) {
    for (int i = 0; i < grid.dimensions(); ++i) {
      const int next = grid.find_neighbour(place, i, 1);
      if (next >= 0 && next != place && !links.push({place, next, 1})) return false;
    }
  }
  return true;
}

void keep_if_better(const NodeMembers& nodes, const base::Vec<Link>& links, base::Vec<int>& ranks) {
  if (weight_across(nodes, links, ranks) >= weight_across(nodes, links, {})) ranks.clear();
}

// Places with what each has to say to the others, and to which node each goes.
class Greedy {
 public:
  [[nodiscard]] bool prepare(int places, const base::Vec<Link>& links) {
    const size_t n = size_t(places);
    if (!starts_.resize(n + 1) || !ends_.resize(2 * links.size()) || !homes_.resize(n) ||
        !near_.resize(n) || !met_.resize(n)) {
      return false;
    }
    for (const Link& link : links) {
      ++starts_[size_t(link.from) + 1];
      ++starts_[size_t(link.to) + 1];
    }
    for (size_t i = 0; i < n; ++i) starts_[i + 1] += starts_[i];
    base::Vec<size_t> next;
    if (!next.resize(n)) return false;
    for (size_t i = 0; i < n; ++i) next[i] = starts_[i];
    for (const Link& link : links) {
      ends_[next[size_t(link.from)]++] = {link.to, link.weight};
      ends_[next[size_t(link.to)]++] = {link.from, link.weight};
    }
    for (int& home : homes_) home = nowhere;
    return true;
  }

  void run(const NodeMembers& nodes) {
    for (int node = 0; node < nodes.count(); ++node) {
      for (int64_t& weight : near_) weight = 0;
      for (int i = 0; i < nodes.size_of(node); ++i) take(next_place(), node);
    }
  }

  // Places of a node go to its ranks in rising order.
  [[nodiscard]] bool tell(const NodeMembers& nodes, base::Vec<int>& ranks) const {
    base::Vec<int> used;
    if (!used.resize(size_t(nodes.count())) || !ranks.reserve(homes_.size())) return false;
    for (const int home : homes_) {
      if (!ranks.push(nodes.members_of(home)[used[size_t(home)]++])) return false;
    }
    return true;
  }

 private:
  static constexpr int nowhere = -1;
  struct End {
    int other;
    int64_t weight;
  };

  // The one with the most to say to this node, then to all that have a node, then the first.
  size_t next_place() const {
    size_t best = homes_.size();
    for (size_t i = 0; i < homes_.size(); ++i) {
      if (homes_[i] != nowhere) continue;
      if (best == homes_.size() || near_[i] > near_[best] ||
          (near_[i] == near_[best] && met_[i] > met_[best])) {
        best = i;
      }
    }
    HEADWAY_CHECK(best < homes_.size());  // nodes have as many ranks as there are places
    return best;
  }

  void take(size_t place, int node) {
    homes_[place] = node;
    for (size_t i = starts_[place]; i < starts_[place + 1]; ++i) {
      near_[size_t(ends_[i].other)] += ends_[i].weight;
      met_[size_t(ends_[i].other)] += ends_[i].weight;
    }
  }

  base::Vec<size_t> starts_;  // of each place's ends, and the end of all
  base::Vec<End> ends_;
  base::Vec<int> homes_;
  base::Vec<int64_t> near_;  // to the node that is being filled
  base::Vec<int64_t> met_;   // to all that have a node
};

}  // namespace

bool NodeMembers::find(const uint64_t* ids, int ranks) {
  HEADWAY_CHECK(nodes_.empty() && starts_.empty());
  struct Named {
    uint64_t id;
    int rank;
  };
  const size_t n = size_t(ranks);
  base::Vec<Named> sorted;
  base::Vec<int> first;  // rank of each rank's node
  if (!sorted.reserve(n) || !first.resize(n) || !nodes_.resize(n) || !members_.resize(n)) {
    return false;
  }
  for (int rank = 0; rank < ranks; ++rank) (void)sorted.push({ids[rank], rank});
  std::sort(sorted.begin(), sorted.end(), [](const Named& a, const Named& b) {
    return a.id != b.id ? a.id < b.id : a.rank < b.rank;
  });
  for (size_t i = 0; i < n; ++i) {
    const bool again = i > 0 && sorted[i].id != 0 && sorted[i].id == sorted[i - 1].id;
    first[size_t(sorted[i].rank)] = again ? first[size_t(sorted[i - 1].rank)] : sorted[i].rank;
  }
  int count = 0;
  for (size_t i = 0; i < n; ++i) {
    nodes_[i] = size_t(first[i]) == i ? count++ : nodes_[size_t(first[i])];
  }
  base::Vec<int> next;
  if (!starts_.resize(size_t(count) + 1) || !next.resize(size_t(count))) return false;
  for (const int node : nodes_) ++starts_[size_t(node) + 1];
  for (size_t i = 0; i < size_t(count); ++i) {
    next[i] = starts_[i];
    starts_[i + 1] += starts_[i];
  }
  for (int rank = 0; rank < ranks; ++rank) {
    members_[size_t(next[size_t(nodes_[size_t(rank)])]++)] = rank;
  }
  return true;
}

int64_t weight_across(const NodeMembers& nodes, const base::Vec<Link>& links,
                      const base::Vec<int>& ranks) {
  const auto node_at = [&](int place) {
    return nodes.node_of(ranks.empty() ? place : ranks[size_t(place)]);
  };
  int64_t weight = 0;
  for (const Link& link : links) {
    if (node_at(link.from) != node_at(link.to)) weight += link.weight;
  }
  return weight;
}

bool place_grid(const NodeMembers& nodes, const Grid& grid, base::Vec<int>& ranks) {
  HEADWAY_CHECK(nodes.ranks() == grid.volume());
  ranks.clear();
  if (!nodes.leave_a_choice()) return true;
  base::Vec<Link> links;
  if (!list_links(grid, links)) return false;
  base::Vec<int> sides;
  if (!sides.resize(size_t(grid.dimensions()))) return false;
  for (int& side : sides) side = 1;
  const int each = equal_size(nodes);
  if (each == 0 || !BlockSearch(grid, each).find(sides)) return place_links(nodes, links, ranks);
  if (!fill_blocks(nodes, grid, sides, ranks)) return false;
  keep_if_better(nodes, links, ranks);
  return true;
}

bool place_links(const NodeMembers& nodes, const base::Vec<Link>& links, base::Vec<int>& ranks) {
  ranks.clear();
  if (!nodes.leave_a_choice() || nodes.ranks() > most_places) return true;
  Greedy greedy;
  if (!greedy.prepare(nodes.ranks(), links)) return false;
  greedy.run(nodes);
  if (!greedy.tell(nodes, ranks)) return false;
  keep_if_better(nodes, links, ranks);
  return true;
}

}  // namespace headway::objects
