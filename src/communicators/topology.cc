#include "communicators/topology.h"

#include <utility>

#include "communicators/detail/edges.h"
#include "communicators/detail/steps.h"
#include "communicators/detail/words.h"
#include "objects/placement.h"

namespace headway::communicators {

using objects::Comm;
using objects::Edges;
using objects::Graph;
using objects::Grid;
using objects::NodeMembers;
using objects::Topology;

namespace {

// Keeps graphs with more edges from being sent to all ranks, in 8 bytes an edge.
constexpr int64_t most_gathered = 1 << 24;

int places_of(const Grid& grid) { return grid.volume(); }
int places_of(const Graph& graph) { return graph.nodes(); }

void add_shape(Fingerprint& print, const Grid& grid) {
  print.add(grid.dimensions());
  for (int i = 0; i < grid.dimensions(); ++i) {
    print.add(grid.length(i));
    print.add(grid.periodic(i));
  }
}

void add_shape(Fingerprint& print, const Graph& graph) {
  print.add(graph.nodes());
  for (int i = 0; i < graph.nodes(); ++i) print.add(graph.index()[i]);
  for (int i = 0; i < graph.edges(); ++i) print.add(graph.all_neighbours()[i]);
}

// On which nodes the first `count` ranks are.
bool find_nodes(const Makers& makers, Comm* comm, int count, NodeMembers& nodes) {
  const collectives::Place place = place_of(makers, comm);
  base::Vec<uint64_t> ids;
  if (!ids.reserve(size_t(count))) return false;
  for (int rank = 0; rank < count; ++rank) {
    (void)ids.push(collectives::node_of(place.engine, comm->own.process(rank)));
  }
  return nodes.find(ids.data(), count);
}

bool place_on(const NodeMembers& nodes, const Grid& grid, base::Vec<int>& ranks) {
  return objects::place_grid(nodes, grid, ranks);
}

bool place_on(const NodeMembers& nodes, const Graph& graph, base::Vec<int>& ranks) {
  if (!nodes.leave_a_choice()) return true;
  base::Vec<objects::Link> links;
  for (int node = 0; node < graph.nodes(); ++node) {
    for (int i = 0; i < graph.degree(node); ++i) {
      if (!links.push({node, graph.neighbours_of(node)[i], 1})) return false;
    }
  }
  return objects::place_links(nodes, links, ranks);
}

// ranks[place], or nothing where every rank keeps its own place.
template <class Shape>
Outcome find_ranks(const Makers& makers, Comm* comm, const Shape& shape, base::Vec<int>& ranks) {
  NodeMembers nodes;
  if (!find_nodes(makers, comm, places_of(shape), nodes)) return Outcome::no_memory;
  return place_on(nodes, shape, ranks) ? Outcome::ok : Outcome::no_memory;
}

template <class Shape>
Outcome find_place_in(const Makers& makers, Comm* comm, const Shape& shape, int& place) {
  const int self = comm->own.self;
  place = self < places_of(shape) ? self : -1;
  base::Vec<int> ranks;
  const Outcome found = find_ranks(makers, comm, shape, ranks);
  for (size_t i = 0; found == Outcome::ok && i < ranks.size(); ++i) {
    if (ranks[i] == self) place = int(i);
  }
  return found;
}

// A communicator of the ranks that take the places; without any, of the first ones.
Outcome gather(const Makers& makers, Comm* comm, uint64_t context, int places,
               const base::Vec<int>& ranks, Comm*& made) {
  made = nullptr;
  if (ranks.empty() && places == comm->own.size) {
    return adopt(makers, *comm, context, comm->group, made);
  }
  objects::Group* group = objects::Group::make(places);
  if (!group) return Outcome::no_memory;
  for (int i = 0; i < places; ++i) {
    group->members[i] = comm->own.process(ranks.empty() ? i : ranks[size_t(i)]);
  }
  group->find_self(comm->own.process(comm->own.self));
  group->belong(comm->group->session);
  const Outcome outcome =
      group->self < 0 ? Outcome::ok : adopt(makers, *comm, context, group, made);
  group->release();
  return outcome;
}

// Null: no memory, and then the communicator goes.
Outcome give(const Makers& makers, Topology* topology, Comm*& made) {
  made->topology = topology;
  if (topology) return Outcome::ok;
  makers.registry.comms.remove(made->handle);
  objects::release(made);
  made = nullptr;
  return Outcome::no_memory;
}

// What rank 0 has chosen, and whether all had the same fingerprints. Not `ok` if a rank was not.
struct Agreement {
  uint64_t context = 0;
  bool same_shape = false;
  bool same_ranks = false;
};

Outcome agree(const Makers& makers, Comm* comm, Outcome own, uint64_t shape, uint64_t ranks,
              Agreement& agreement) {
  const uint64_t context = comm->own.self == 0 ? makers.new_context() : 0;
  uint64_t words[] = {shape, ~shape, ranks, ~ranks, context, uint64_t(own)};
  const Outcome outcome = combine_words(makers, comm, Combine::largest, words, 6);
  agreement = {words[4], words[0] == ~words[1], words[2] == ~words[3]};
  return outcome == Outcome::ok ? Outcome(words[5]) : outcome;
}

// All ranks gave the whole of it; who has none has no memory.
template <class Shape>
Outcome make_alike(const Makers& makers, Comm* comm, const Shape* shape, bool reorder,
                   Accord& accord, Comm*& made) {
  base::Vec<int> ranks;
  Fingerprint of_shape, of_ranks;
  Outcome own = shape ? Outcome::ok : Outcome::no_memory;
  if (shape && reorder) own = find_ranks(makers, comm, *shape, ranks);
  of_shape.add(reorder);
  if (shape) add_shape(of_shape, *shape);
  for (const int rank : ranks) of_ranks.add(rank);
  Agreement agreement;
  const Outcome agreed = agree(makers, comm, own, of_shape.value(), of_ranks.value(), agreement);
  if (agreed != Outcome::ok) return agreed;
  if (!agreement.same_shape) {
    accord = Accord::shapes_differ;
    return Outcome::ok;
  }
  // Ranks of several jobs do not know of the same nodes.
  if (!agreement.same_ranks) ranks.clear();
  return gather(makers, comm, agreement.context, places_of(*shape), ranks, made);
}

template <class Shape>
Outcome create_alike(const Makers& makers, Comm* comm, Shape* shape, bool reorder, Accord& accord,
                     Comm*& made) {
  made = nullptr;
  accord = Accord::alike;
  const Outcome outcome = make_alike(makers, comm, shape, reorder, accord, made);
  if (made) return give(makers, Topology::make(shape, made->own.self), made);
  if (shape) shape->release();
  return outcome;
}

// Do all ranks see the same nodes? Not `ok` if a rank was not.
Outcome compare_nodes(const Makers& makers, Comm* comm, Outcome own, const NodeMembers& nodes,
                      bool& same) {
  Fingerprint view;
  for (int rank = 0; own == Outcome::ok && rank < nodes.ranks(); ++rank) {
    view.add(nodes.node_of(rank));
  }
  uint64_t words[] = {view.value(), ~view.value(), uint64_t(own)};
  const Outcome outcome = combine_words(makers, comm, Combine::largest, words, 3);
  same = words[0] == ~words[1];
  return outcome == Outcome::ok ? Outcome(words[2]) : outcome;
}

// All edges are known to all ranks: each place gets a rank, and this one the edges of its place.
Outcome place_edges(const Makers& makers, Comm* comm, const NodeMembers& nodes, AllEdges& all,
                    Edges& edges, base::Vec<int>& ranks) {
  const Outcome gathered = all.gather(makers, comm, edges, most_gathered);
  if (gathered != Outcome::ok) return gathered;
  base::Vec<objects::Link> links;
  if (!all.list_links(links) || !objects::place_links(nodes, links, ranks)) {
    return Outcome::no_memory;
  }
  for (size_t place = 0; place < ranks.size(); ++place) {
    if (ranks[place] != comm->own.self) continue;
    return all.take(int(place), edges) ? Outcome::ok : Outcome::no_memory;
  }
  return Outcome::ok;
}

// `own`: how this rank has come so far.
Outcome reorder_edges(const Makers& makers, Comm* comm, Outcome own, Edges& edges,
                      base::Vec<int>& ranks) {
  NodeMembers nodes;
  AllEdges all;
  if (!find_nodes(makers, comm, comm->own.size, nodes) || !all.reserve(comm->own.size)) {
    own = Outcome::no_memory;
  }
  bool same = false;
  const Outcome compared = compare_nodes(makers, comm, own, nodes, same);
  if (compared != Outcome::ok || !same || !nodes.leave_a_choice()) return compared;
  return agree_on(makers, comm, place_edges(makers, comm, nodes, all, edges, ranks));
}

// The last messages, of ranks that have come so far, or have no memory.
Outcome finish(const Makers& makers, Comm* comm, uint64_t context, Outcome own, Edges& edges,
               bool reorder, Comm*& made) {
  base::Vec<int> ranks;
  const Outcome all =
      reorder ? reorder_edges(makers, comm, own, edges, ranks) : agree_on(makers, comm, own);
  if (all != Outcome::ok) return all;
  const Outcome outcome = gather(makers, comm, context, comm->own.size, ranks, made);
  return made ? give(makers, Topology::make(std::move(edges)), made) : outcome;
}

}  // namespace

Outcome create(const Makers& makers, Comm* comm, Grid* shape, bool reorder, Accord& accord,
               Comm*& made) {
  return create_alike(makers, comm, shape, reorder, accord, made);
}

Outcome create(const Makers& makers, Comm* comm, Graph* shape, bool reorder, Accord& accord,
               Comm*& made) {
  return create_alike(makers, comm, shape, reorder, accord, made);
}

Outcome find_place(const Makers& makers, Comm* comm, const Grid& shape, int& place) {
  return find_place_in(makers, comm, shape, place);
}

Outcome find_place(const Makers& makers, Comm* comm, const Graph& shape, int& place) {
  return find_place_in(makers, comm, shape, place);
}

Outcome create(const Makers& makers, Comm* comm, Edges&& edges, bool reorder, Accord& accord,
               Comm*& made) {
  made = nullptr;
  // Each edge is added where it begins and taken away where it ends: nothing is left if all have
  // both ends.
  const int self = comm->own.self;
  uint64_t balance = 0;
  for (const int target : edges.targets) balance += fingerprint_of(self, target);
  for (const int source : edges.sources) balance -= fingerprint_of(source, self);
  const Votes own = Votes::of(!edges.empty(), edges.weighted, reorder);
  const uint64_t context = self == 0 ? makers.new_context() : 0;
  uint64_t words[] = {balance, own.weighted, own.unweighted, own.empty, own.reorder, context};
  const Outcome outcome = combine_words(makers, comm, Combine::sum, words, 6);
  if (outcome != Outcome::ok) return outcome;
  const Votes all{words[1], words[2], words[3], words[4]};
  accord = all.accord(comm->own.size);
  if (accord != Accord::alike) return Outcome::ok;
  edges.match = words[0] == 0;
  const Outcome weighted =
      edges.complete && set_weighted(edges, all.are_weighted()) ? Outcome::ok : Outcome::no_memory;
  return finish(makers, comm, words[5], weighted, edges, reorder, made);
}

Outcome create(const Makers& makers, Comm* comm, const NamedEdges& named, bool reorder,
               Accord& accord, Comm*& made) {
  made = nullptr;
  Edges edges;
  uint64_t context = 0;
  Outcome own = Outcome::ok;
  const Outcome outcome =
      hand_out_edges(makers, comm, named, reorder, {accord, context, edges, own});
  if (outcome != Outcome::ok || accord != Accord::alike) return outcome;
  return finish(makers, comm, context, own, edges, reorder, made);
}

}  // namespace headway::communicators
