// Topologies by graphs: MPI 5.0, sections 8.5.3 to 8.5.5. One that all ranks know as a whole, and
// one of which each rank knows its own edges.
#include "api/detail/results.h"
#include "api/detail/topologies.h"
#include "objects/graph.h"

using namespace headway;
using namespace headway::api;

namespace {

using objects::Graph;
using objects::Topology;

[[gnu::cold]] int raise_item(const Story& story, const char* list, int64_t at, int value,
                             const char* wrong, const char* remedy) {
  base::Text<200> why;
  why << list << "[" << at << "] is " << value << ", " << wrong;
  return raise(story, MPI_ERR_ARG, why.c_str(), remedy);
}

constexpr char no_rank[] = "which is no rank of the communicator";
constexpr char of_ranks[] = "ranks go from 0 to one less than the size of the communicator";

int check_ranks(const Story& story, const char* list, const int* ranks, int64_t count) {
  const int size = story.comm->own.size;
  for (int64_t i = 0; i < count; ++i) {
    if (ranks[i] >= 0 && ranks[i] < size) continue;
    return raise_item(story, list, i, ranks[i], no_rank, of_ranks);
  }
  return MPI_SUCCESS;
}

// Weights of so many edges. taken: null where there are none to read. weighted: the call says that
// edges have weights, also where it names none.
int take_weights(const Story& story, const char* list, const int* weights, int64_t count,
                 bool& weighted, const int*& taken) {
  weighted = weights != MPI_UNWEIGHTED;
  taken = nullptr;
  if (!weighted || count == 0) return MPI_SUCCESS;
  if (weights == MPI_WEIGHTS_EMPTY) {
    base::Text<120> why;
    why << list << " is MPI_WEIGHTS_EMPTY, but this rank names "
        << (count == 1 ? "an edge" : "edges");
    return raise(story, MPI_ERR_ARG, why.c_str(), "pass a weight for each edge");
  }
  if (const int code = check_given(story, list, weights)) return code;
  for (int64_t i = 0; i < count; ++i) {
    if (weights[i] >= 0) continue;
    return raise_item(story, list, i, weights[i], "which is negative", "weights go from 0");
  }
  taken = weights;
  return MPI_SUCCESS;
}

int take_hints_of(const Story& story, MPI_Info info, objects::Info*& hints) {
  hints = nullptr;
  return info == MPI_INFO_NULL ? MPI_SUCCESS : take_info(story, info, hints);
}

// --- a graph that all know ---

int check_graph(const Story& story, int nodes, const int* index, const int* edges) {
  if (nodes < 0) return raise(story, MPI_ERR_ARG, "the number of nodes is negative");
  if (nodes > story.comm->own.size) {
    base::Text<120> why;
    why << "the graph has " << nodes << " nodes, the communicator only " << story.comm->own.size
        << (story.comm->own.size == 1 ? " rank" : " ranks");
    return raise(story, MPI_ERR_ARG, why.c_str(), "each node is a rank of the communicator");
  }
  int before = 0;
  for (int i = 0; i < nodes; ++i) {
    if (index[i] < before) {
      return raise_item(story, "indx", i, index[i],
                        i == 0 ? "which is negative" : "which is less than the one before it",
                        "let indx[i] be the number of neighbours of the nodes from 0 to i");
    }
    before = index[i];
  }
  if (before == 0) return MPI_SUCCESS;
  if (const int code = check_given(story, "edges", edges)) return code;
  for (int i = 0; i < before; ++i) {
    if (edges[i] >= 0 && edges[i] < nodes) continue;
    return raise_item(story, "edges", i, edges[i], "which is no node of the graph",
                      "nodes go from 0 to one less than nnodes");
  }
  return MPI_SUCCESS;
}

int graph_create(const char* call, MPI_Comm comm_old, int nnodes, const int indx[],
                 const int edges[], int reorder, MPI_Comm* comm_graph) {
  Story story{.call = call};
  if (const int code = take_intra(story, comm_old)) return code;
  if (const int code = check_graph(story, nnodes, indx, edges)) return code;
  return make_with(story, Graph::make(nnodes, indx, edges), reorder != 0, comm_graph);
}

int graph_map(const char* call, MPI_Comm comm, int nnodes, const int indx[], const int edges[],
              int* newrank) {
  Story story{.call = call};
  if (const int code = take_intra(story, comm)) return code;
  if (const int code = check_graph(story, nnodes, indx, edges)) return code;
  Graph* graph = Graph::make(nnodes, indx, edges);
  if (!graph) return raise(story, Outcome::no_memory);
  int place = -1;
  const Outcome found = communicators::find_place(makers(), story.comm, *graph, place);
  graph->release();
  if (found != Outcome::ok) return raise(story, found);
  *newrank = place < 0 ? MPI_UNDEFINED : place;
  return MPI_SUCCESS;
}

int take_graph(Story& story, MPI_Comm comm, const Graph*& graph) {
  if (const int code = take_comm(story, comm)) return code;
  const Topology* topology = story.comm->topology;
  graph = topology ? topology->graph() : nullptr;
  if (graph) return MPI_SUCCESS;
  return raise_no_topology(story, "graph",
                           "pass one that MPI_Graph_create made, or a duplicate of it");
}

int graphdims_get(const char* call, MPI_Comm comm, int* nnodes, int* nedges) {
  Story story{.call = call};
  const Graph* graph;
  if (const int code = take_graph(story, comm, graph)) return code;
  *nnodes = graph->nodes();
  *nedges = graph->edges();
  return MPI_SUCCESS;
}

// Room for `needed` numbers in a list.
int check_room(const Story& story, const char* most_name, int most, int needed,
               const char* remedy) {
  if (most >= needed) return MPI_SUCCESS;
  base::Text<120> why;
  why << most_name << " is " << most << ", but there are " << needed << " numbers to give";
  return raise(story, MPI_ERR_ARG, why.c_str(), remedy);
}

int graph_get(const char* call, MPI_Comm comm, int maxindex, int maxedges, int indx[],
              int edges[]) {
  Story story{.call = call};
  const Graph* graph;
  if (const int code = take_graph(story, comm, graph)) return code;
  constexpr char remedy[] = "ask MPI_Graphdims_get how long the lists must be";
  if (const int code = check_room(story, "maxindex", maxindex, graph->nodes(), remedy)) return code;
  if (const int code = check_room(story, "maxedges", maxedges, graph->edges(), remedy)) return code;
  for (int i = 0; i < graph->nodes(); ++i) indx[i] = graph->index()[i];
  for (int i = 0; i < graph->edges(); ++i) edges[i] = graph->all_neighbours()[i];
  return MPI_SUCCESS;
}

// The graph, and a node of it.
int take_node(Story& story, MPI_Comm comm, int rank, const Graph*& graph) {
  if (const int code = take_graph(story, comm, graph)) return code;
  if (rank >= 0 && rank < graph->nodes()) return MPI_SUCCESS;
  return raise(story, MPI_ERR_RANK, "there is no such rank in the communicator");
}

int graph_neighbors_count(const char* call, MPI_Comm comm, int rank, int* nneighbors) {
  Story story{.call = call};
  const Graph* graph;
  if (const int code = take_node(story, comm, rank, graph)) return code;
  *nneighbors = graph->degree(rank);
  return MPI_SUCCESS;
}

int graph_neighbors(const char* call, MPI_Comm comm, int rank, int maxneighbors, int neighbors[]) {
  Story story{.call = call};
  const Graph* graph;
  if (const int code = take_node(story, comm, rank, graph)) return code;
  if (const int code = check_room(story, "maxneighbors", maxneighbors, graph->degree(rank),
                                  "ask MPI_Graph_neighbors_count how long the list must be")) {
    return code;
  }
  for (int i = 0; i < graph->degree(rank); ++i) neighbors[i] = graph->neighbours_of(rank)[i];
  return MPI_SUCCESS;
}

// --- a graph of which each rank knows its own edges ---

// One end of all edges of this rank, as the call gives them.
struct EdgeSide {
  const char *degree_name, *ranks_name, *weights_name;
  int degree;
  const int *ranks, *weights;
};

// A rank without memory for them is `complete` no more, and says so when all ranks talk.
int take_side(const Story& story, const EdgeSide& side, base::Vec<int>& ranks,
              base::Vec<int>& weights, bool& weighted, bool& complete) {
  if (side.degree < 0) {
    base::Text<60> why;
    why << side.degree_name << " is negative: " << side.degree;
    return raise(story, MPI_ERR_ARG, why.c_str(), "degrees go from 0");
  }
  const int* given = nullptr;
  if (const int code = check_ranks(story, side.ranks_name, side.ranks, side.degree)) return code;
  if (const int code =
          take_weights(story, side.weights_name, side.weights, side.degree, weighted, given)) {
    return code;
  }
  if (!ranks.reserve(size_t(side.degree)) || !weights.reserve(size_t(side.degree))) {
    complete = false;
    return MPI_SUCCESS;
  }
  for (int i = 0; i < side.degree; ++i) {
    (void)ranks.push(side.ranks[i]);
    if (given) (void)weights.push(given[i]);
  }
  return MPI_SUCCESS;
}

int dist_graph_create_adjacent(const char* call, MPI_Comm comm_old, int indegree,
                               const int sources[], const int sourceweights[], int outdegree,
                               const int destinations[], const int destweights[], MPI_Info info,
                               int reorder, MPI_Comm* comm_dist_graph) {
  Story story{.call = call};
  if (const int code = take_intra(story, comm_old)) return code;
  objects::Info* hints;
  if (const int code = take_hints_of(story, info, hints)) return code;
  objects::Edges edges;
  bool into = false, out = false;  // are weighted
  if (const int code = take_side(
          story, {"indegree", "sources", "sourceweights", indegree, sources, sourceweights},
          edges.sources, edges.source_weights, into, edges.complete)) {
    return code;
  }
  if (const int code = take_side(
          story, {"outdegree", "destinations", "destweights", outdegree, destinations, destweights},
          edges.targets, edges.target_weights, out, edges.complete)) {
    return code;
  }
  if (indegree > 0 && outdegree > 0 && into != out) {
    return raise(story, MPI_ERR_ARG,
                 "one of sourceweights and destweights has weights, the other none",
                 "pass MPI_UNWEIGHTED for both or for none");
  }
  // A side without edges says nothing of them, unless both are.
  edges.weighted = indegree > 0 ? into : outdegree > 0 ? out : into && out;
  return make_with(story, std::move(edges), reorder != 0, comm_dist_graph, hints);
}

int dist_graph_create(const char* call, MPI_Comm comm_old, int n, const int sources[],
                      const int degrees[], const int destinations[], const int weights[],
                      MPI_Info info, int reorder, MPI_Comm* comm_dist_graph) {
  Story story{.call = call};
  if (const int code = take_intra(story, comm_old)) return code;
  objects::Info* hints;
  if (const int code = take_hints_of(story, info, hints)) return code;
  if (n < 0) return raise(story, MPI_ERR_ARG, "n is negative", "it counts the sources given here");
  if (const int code = check_ranks(story, "sources", sources, n)) return code;
  int64_t count = 0;  // of edges
  for (int i = 0; i < n; ++i) {
    if (degrees[i] < 0) {
      return raise_item(story, "degrees", i, degrees[i], "which is negative", "degrees go from 0");
    }
    count += degrees[i];
  }
  if (count > 0) {
    if (const int code = check_given(story, "destinations", destinations)) return code;
  }
  if (const int code = check_ranks(story, "destinations", destinations, count)) return code;
  communicators::NamedEdges named{n, sources, degrees, destinations, nullptr, false};
  if (const int code =
          take_weights(story, "weights", weights, count, named.weighted, named.weights)) {
    return code;
  }
  return make_with(story, named, reorder != 0, comm_dist_graph, hints);
}

int take_edges(Story& story, MPI_Comm comm, const Topology*& topology) {
  if (const int code = take_comm(story, comm)) return code;
  topology = story.comm->topology;
  if (topology && topology->kind() == Topology::Kind::edges) return MPI_SUCCESS;
  return raise_no_topology(story, "distributed graph",
                           "pass one that MPI_Dist_graph_create or MPI_Dist_graph_create_adjacent "
                           "made, or a duplicate of it");
}

int dist_graph_neighbors_count(const char* call, MPI_Comm comm, int* indegree, int* outdegree,
                               int* weighted) {
  Story story{.call = call};
  const Topology* topology;
  if (const int code = take_edges(story, comm, topology)) return code;
  *indegree = topology->sources().count;
  *outdegree = topology->targets().count;
  *weighted = topology->is_weighted();
  return MPI_SUCCESS;
}

// As many as there is room for.
int give_side(const Story& story, const EdgeSide& side, objects::Neighbours neighbours,
              const int* weights, int* ranks_to, int* weights_to) {
  if (side.degree < 0) {
    base::Text<60> why;
    why << side.degree_name << " is negative: " << side.degree;
    return raise(story, MPI_ERR_ARG, why.c_str(),
                 "ask MPI_Dist_graph_neighbors_count how long the lists must be");
  }
  const int count = side.degree < neighbours.count ? side.degree : neighbours.count;
  const bool wanted = weights && count > 0 && weights_to != MPI_UNWEIGHTED;
  if (wanted && weights_to == MPI_WEIGHTS_EMPTY) {
    base::Text<120> why;
    why << side.weights_name << " is MPI_WEIGHTS_EMPTY, but there are weights to give";
    return raise(story, MPI_ERR_ARG, why.c_str(),
                 "pass a list, or MPI_UNWEIGHTED for weights that are not wanted");
  }
  if (wanted) {
    if (const int code = check_given(story, side.weights_name, weights_to)) return code;
  }
  for (int i = 0; i < count; ++i) {
    ranks_to[i] = neighbours[i];
    if (wanted) weights_to[i] = weights[i];
  }
  return MPI_SUCCESS;
}

int dist_graph_neighbors(const char* call, MPI_Comm comm, int maxindegree, int sources[],
                         int sourceweights[], int maxoutdegree, int destinations[],
                         int destweights[]) {
  Story story{.call = call};
  const Topology* topology;
  if (const int code = take_edges(story, comm, topology)) return code;
  const EdgeSide in{"maxindegree", "sources", "sourceweights", maxindegree, nullptr, nullptr};
  const EdgeSide out{"maxoutdegree", "destinations", "destweights", maxoutdegree, nullptr, nullptr};
  const bool weighted = topology->is_weighted();
  if (const int code =
          give_side(story, in, topology->sources(), weighted ? topology->source_weights() : nullptr,
                    sources, sourceweights)) {
    return code;
  }
  return give_side(story, out, topology->targets(), weighted ? topology->target_weights() : nullptr,
                   destinations, destweights);
}

}  // namespace

#include "api/entries/graphs.inl"
