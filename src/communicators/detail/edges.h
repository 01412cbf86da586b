// Edges of graphs of which each rank names some: sent to both of their ends, or to all ranks.
// Thread: any application thread, without the engine. Owner: the caller. Invariant: both ends of an
// edge have those between them in one order: by the rank that named them, then as it named them.
#pragma once
#include <cstdint>

#include "base/vec.h"
#include "communicators/topology.h"
#include "objects/placement.h"

namespace headway::communicators {

// How many ranks said what. Who has no edge says nothing of weights that others could not say
// better.
struct Votes {
  uint64_t weighted = 0, unweighted = 0;  // with edges
  uint64_t empty = 0;                     // without any, but weighted
  uint64_t reorder = 0;

  static Votes of(bool has_edges, bool weighted, bool reorder) {
    return {has_edges && weighted, has_edges && !weighted, !has_edges && weighted, reorder};
  }
  bool are_weighted() const { return weighted > 0 || (unweighted == 0 && empty > 0); }
  Accord accord(int ranks) const {
    if (weighted > 0 && unweighted > 0) return Accord::weights_differ;
    return reorder == 0 || reorder == uint64_t(ranks) ? Accord::alike : Accord::reorder_differs;
  }
};

// As all ranks do it. False without memory.
[[nodiscard]] bool set_weighted(objects::Edges& edges, bool weighted);

// What the ranks agree on, and this one's edges.
struct HandedOut {
  Accord& accord;
  uint64_t& context;  // that rank 0 has chosen
  objects::Edges& edges;
  Outcome& own;  // of this rank alone, who has still to tell the others
};
// Sends each edge to its ends. What it returns is the same on all ranks.
Outcome hand_out_edges(const Makers& makers, objects::Comm* comm, const NamedEdges& named,
                       bool reorder, const HandedOut& to);

// The edges of all ranks.
class AllEdges {
 public:
  // Before gather(), and without a message. False without memory.
  [[nodiscard]] bool reserve(int ranks);
  // More than `most` stay where they are: then nothing is here, on all ranks. What it returns is
  // the same on all of them.
  Outcome gather(const Makers& makers, objects::Comm* comm, const objects::Edges& own,
                 int64_t most);
  [[nodiscard]] bool list_links(base::Vec<objects::Link>& links) const;
  // Replaces `edges` by those of that rank.
  [[nodiscard]] bool take(int rank, objects::Edges& edges) const;

 private:
  // How many lead to a rank and away from it.
  int64_t sources_of(int rank) const { return degrees_[2 * size_t(rank)]; }
  int64_t targets_of(int rank) const { return degrees_[2 * size_t(rank) + 1]; }
  bool lay_out(int ranks, int64_t most);

  base::Vec<int64_t> degrees_;
  base::Vec<int64_t> counts_, places_;  // in numbers, of each rank's part of pairs_
  base::Vec<int> pairs_;                // the other end and the weight; sources, then targets
};

}  // namespace headway::communicators
