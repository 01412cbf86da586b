// A model of topologies for the programs about graphs and collectives of neighbours: the lists of
// all ranks, which block meets which, and random graphs with loops and repeated edges. Thread: one.
// Owner: each program. Invariant: all follows from what every rank knows alike, the seed above all.
#pragma once
#include <algorithm>
#include <vector>

#include "check.h"

namespace neighbours {

using Lists = std::vector<std::vector<int>>;

// A communicator with a topology, and the lists of each of its ranks.
struct View {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = -1;
  Lists sources, targets;
  bool is_grid = false;

  const std::vector<int>& from() const { return sources[rank]; }
  const std::vector<int>& to() const { return targets[rank]; }
  // The block of the sender that arrives as block `at` of this rank.
  int sent_as(int at) const {
    const int sender = from()[at];
    if (is_grid) {
      CHECK_EQ(targets[sender][at ^ 1], rank);
      return at ^ 1;
    }
    // As many edges of the two come before it here as there.
    auto left = std::count(from().begin(), from().begin() + at, sender);
    const std::vector<int>& theirs = targets[sender];
    for (size_t i = 0; i < theirs.size(); ++i) {
      if (theirs[i] == rank && left-- == 0) return static_cast<int>(i);
    }
    check::fail(__FILE__, __LINE__, "the model has no edge from %d for block %d", sender, at);
  }
};

inline void learn_rank(View& view) {
  if (view.comm != MPI_COMM_NULL) MPI(MPI_Comm_rank(view.comm, &view.rank));
}

inline std::vector<int> filled(size_t size, int value) { return std::vector<int>(size, value); }

// The lists of a grid, by arithmetic of its own: below and above in each dimension.
inline Lists lists_of_grid(const std::vector<int>& lengths, const std::vector<int>& periods) {
  int volume = 1;
  for (int length : lengths) volume *= length;
  Lists lists(volume);
  for (int rank = 0; rank < volume; ++rank) {
    for (size_t d = 0; d < lengths.size(); ++d) {
      int stride = 1;
      for (size_t i = d + 1; i < lengths.size(); ++i) stride *= lengths[i];
      const int at = rank / stride % lengths[d];
      for (int step : {-1, 1}) {
        int next = at + step;
        if (periods[d]) next = (next + lengths[d]) % lengths[d];
        const bool inside = next >= 0 && next < lengths[d];
        lists[rank].push_back(inside ? rank + (next - at) * stride : MPI_PROC_NULL);
      }
    }
  }
  return lists;
}

inline View make_grid(const std::vector<int>& lengths, const std::vector<int>& periods,
                      int reorder) {
  View view;
  view.is_grid = true;
  view.sources = view.targets = lists_of_grid(lengths, periods);
  MPI(MPI_Cart_create(MPI_COMM_WORLD, static_cast<int>(lengths.size()), lengths.data(),
                      periods.data(), reorder, &view.comm));
  learn_rank(view);
  return view;
}

// As MPI_Graph_create wants it.
struct Whole {
  std::vector<int> index, edges;

  explicit Whole(const Lists& lists) {
    for (const std::vector<int>& list : lists) {
      edges.insert(edges.end(), list.begin(), list.end());
      index.push_back(static_cast<int>(edges.size()));
    }
  }
  int nodes() const { return static_cast<int>(index.size()); }
};

// Two nodes name each other equally often; some name themselves.
inline Lists random_whole(check::Random& random, int nodes) {
  Lists lists(nodes);
  for (int a = 0; a < nodes; ++a) {
    for (int b = a; b < nodes; ++b) {
      for (uint64_t times = random.below(6) / 2; times > 0; --times) {
        lists[a].push_back(b);
        if (b != a) lists[b].push_back(a);
      }
    }
  }
  for (std::vector<int>& list : lists) random.shuffle(list);
  return lists;
}

inline View make_whole(const Lists& lists, int reorder) {
  const Whole whole(lists);
  View view;
  view.sources = view.targets = lists;
  MPI(MPI_Graph_create(MPI_COMM_WORLD, whole.nodes(), whole.index.data(), whole.edges.data(),
                       reorder, &view.comm));
  learn_rank(view);
  return view;
}

struct Edge {
  int source, target, weight;
  int namer;  // of the general form
};

inline std::vector<Edge> random_edges(check::Random& random, int most) {
  std::vector<Edge> edges(random.below(static_cast<uint64_t>(most) + 1));
  const int last = check::size - 1;
  for (Edge& edge : edges) {
    edge = {random.between(0, last), random.between(0, last), random.between(0, 99),
            random.between(0, last)};
    // Many of one pair, so that their order counts.
    if (random.chance(30)) edge = {0, last, edge.weight, edge.namer};
  }
  return edges;
}

// The lists of all ranks, with weights beside.
struct Sides {
  Lists sources, targets, source_weights, target_weights;

  Sides() : sources(check::size), targets(check::size) {
    source_weights = target_weights = Lists(check::size);
  }
  void add(const Edge& edge) {
    targets[edge.source].push_back(edge.target);
    target_weights[edge.source].push_back(edge.weight);
    sources[edge.target].push_back(edge.source);
    source_weights[edge.target].push_back(edge.weight);
  }
};

// MPI wants an address where there is no number.
inline const int* list_of(const std::vector<int>& numbers) {
  static const int none = -1;
  return numbers.empty() ? &none : numbers.data();
}
inline const int* weights_of(const std::vector<int>& numbers, bool weighted) {
  if (!weighted) return MPI_UNWEIGHTED;
  return numbers.empty() ? MPI_WEIGHTS_EMPTY : numbers.data();
}

inline View view_of(const Sides& sides, MPI_Comm comm) {
  View view;
  view.comm = comm;
  view.sources = sides.sources;
  view.targets = sides.targets;
  learn_rank(view);
  return view;
}

// Every rank names both sides of its own, each in an order of its own.
inline Sides adjacent_sides(check::Random& random, const std::vector<Edge>& edges) {
  Sides sides;
  std::vector<Edge> order = edges;
  random.shuffle(order);
  for (const Edge& edge : order) sides.add(edge);
  // The sources of a rank may come in another order than their targets, but not those of one pair.
  for (int rank = 0; rank < check::size; ++rank) {
    std::vector<int> firsts;
    for (int source = 0; source < check::size; ++source) firsts.push_back(source);
    random.shuffle(firsts);
    std::vector<int> ranks, weights;
    for (int source : firsts) {
      for (size_t i = 0; i < sides.sources[rank].size(); ++i) {
        if (sides.sources[rank][i] != source) continue;
        ranks.push_back(source);
        weights.push_back(sides.source_weights[rank][i]);
      }
    }
    sides.sources[rank] = ranks;
    sides.source_weights[rank] = weights;
  }
  return sides;
}

inline MPI_Comm make_adjacent(const Sides& sides, bool weighted, int reorder,
                              MPI_Info info = MPI_INFO_NULL) {
  const int rank = check::rank;
  MPI_Comm made = MPI_COMM_NULL;
  MPI(MPI_Dist_graph_create_adjacent(
      MPI_COMM_WORLD, static_cast<int>(sides.sources[rank].size()), list_of(sides.sources[rank]),
      weights_of(sides.source_weights[rank], weighted),
      static_cast<int>(sides.targets[rank].size()), list_of(sides.targets[rank]),
      weights_of(sides.target_weights[rank], weighted), info, reorder, &made));
  return made;
}

// The order that the general form gives: by the rank that named an edge, then as it named it.
inline Sides general_sides(std::vector<Edge> edges) {
  std::stable_sort(edges.begin(), edges.end(),
                   [](const Edge& a, const Edge& b) { return a.namer < b.namer; });
  Sides sides;
  for (const Edge& edge : edges) sides.add(edge);
  return sides;
}

inline MPI_Comm make_general(const std::vector<Edge>& edges, bool weighted, int reorder) {
  std::vector<int> sources, degrees, targets, weights;
  if (check::rank % 2 != 0) {  // a source without an edge
    sources.push_back(0);
    degrees.push_back(0);
  }
  for (const Edge& edge : edges) {
    if (edge.namer != check::rank) continue;
    // Edges that follow one another from one source are one item, and others of it another one.
    if (sources.empty() || sources.back() != edge.source) {
      sources.push_back(edge.source);
      degrees.push_back(0);
    }
    ++degrees.back();
    targets.push_back(edge.target);
    weights.push_back(edge.weight);
  }
  MPI_Comm made = MPI_COMM_NULL;
  MPI(MPI_Dist_graph_create(MPI_COMM_WORLD, static_cast<int>(sources.size()), list_of(sources),
                            list_of(degrees), list_of(targets), weights_of(weights, weighted),
                            MPI_INFO_NULL, reorder, &made));
  return made;
}

}  // namespace neighbours
