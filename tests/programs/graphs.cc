// Topologies by graphs: those that all ranks know and those of which each knows its own edges, in
// both forms, random with loops and repeated edges, beside a model; weights in all their ways;
// duplicates and info; what is refused, and what ranks that disagree are told.
#include <sys/resource.h>

#include "neighbours.h"

namespace {

using neighbours::Edge;
using neighbours::Lists;
using neighbours::Sides;
using neighbours::Whole;

int topology(MPI_Comm comm) {
  int kind = -1;
  MPI(MPI_Topo_test(comm, &kind));
  return kind;
}

void free_comm(MPI_Comm& comm) {
  if (comm != MPI_COMM_NULL) MPI(MPI_Comm_free(&comm));
}

// --- graphs that all ranks know ---

void expect_whole(MPI_Comm comm, const Lists& lists) {
  CHECK_EQ(topology(comm), MPI_GRAPH);
  const Whole whole(lists);
  int nodes = -1, edges = -1, size = -1;
  MPI(MPI_Graphdims_get(comm, &nodes, &edges));
  MPI(MPI_Comm_size(comm, &size));
  CHECK_EQ(nodes, whole.nodes());
  CHECK_EQ(edges, static_cast<int>(whole.edges.size()));
  CHECK_EQ(size, nodes);
  std::vector<int> index(whole.index.size() + 1, -7), all(whole.edges.size() + 1, -7);
  MPI(MPI_Graph_get(comm, nodes + 1, edges + 1, index.data(), all.data()));
  CHECK_EQ(index.back(), -7);
  CHECK_EQ(all.back(), -7);
  index.pop_back();
  all.pop_back();
  CHECK(index == whole.index && all == whole.edges);
  for (int node = 0; node < nodes; ++node) {
    int count = -1;
    MPI(MPI_Graph_neighbors_count(comm, node, &count));
    CHECK_EQ(count, static_cast<int>(lists[node].size()));
    std::vector<int> got(static_cast<size_t>(count) + 1, -7);
    MPI(MPI_Graph_neighbors(comm, node, count, got.data()));
    CHECK_EQ(got.back(), -7);
    got.pop_back();
    CHECK(got == lists[node]);
  }
}

// Those of a random graph need not name each other.
Lists random_lists(check::Random& random, int nodes) {
  Lists lists(nodes);
  for (std::vector<int>& list : lists) {
    for (int i = random.between(0, 4); i > 0; --i) list.push_back(random.between(0, nodes - 1));
  }
  return lists;
}

void whole_graphs() {
  check::Random random(check::seed);
  for (int round = 0; round < 40; ++round) {
    const int nodes = random.between(1, check::size), reorder = random.between(0, 1);
    const Lists lists =
        random.chance(50) ? random_lists(random, nodes) : neighbours::random_whole(random, nodes);
    const Whole whole(lists);
    MPI_Comm comm = MPI_COMM_NULL, copy = MPI_COMM_NULL;
    MPI(MPI_Graph_create(MPI_COMM_WORLD, nodes, whole.index.data(),
                         neighbours::list_of(whole.edges), reorder, &comm));
    int place = -5, rank = MPI_UNDEFINED;
    MPI(MPI_Graph_map(MPI_COMM_WORLD, nodes, whole.index.data(), neighbours::list_of(whole.edges),
                      &place));
    if (comm != MPI_COMM_NULL) MPI(MPI_Comm_rank(comm, &rank));
    if (reorder) CHECK_EQ(place, rank);
    if (!reorder) CHECK_EQ(rank, check::rank < nodes ? check::rank : MPI_UNDEFINED);
    if (comm == MPI_COMM_NULL) continue;
    expect_whole(comm, lists);
    MPI(MPI_Comm_dup(comm, &copy));
    free_comm(comm);
    expect_whole(copy, lists);
    free_comm(copy);
  }
}

void without_nodes() {
  MPI_Comm comm = MPI_COMM_SELF;
  const int none = 0;
  MPI(MPI_Graph_create(MPI_COMM_WORLD, 0, &none, &none, 0, &comm));
  CHECK_EQ(comm, MPI_COMM_NULL);
  int place = -5;
  MPI(MPI_Graph_map(MPI_COMM_WORLD, 0, &none, &none, &place));
  CHECK_EQ(place, MPI_UNDEFINED);
  // Nodes without an edge.
  const std::vector<int> index(check::size, 0);
  MPI(MPI_Graph_create(MPI_COMM_WORLD, check::size, index.data(), nullptr, 1, &comm));
  expect_whole(comm, Lists(check::size));
  free_comm(comm);
}

// --- graphs of which each rank knows its own edges ---

void expect_side(const std::vector<int>& got, const std::vector<int>& wanted, size_t room,
                 const char* what) {
  for (size_t i = 0; i < got.size(); ++i) {
    const int right = i < room && i < wanted.size() ? wanted[i] : -7;
    if (got[i] != right) {
      check::fail(__FILE__, __LINE__, "%s[%zu] is %d, expected %d", what, i, got[i], right);
    }
  }
}

void expect_sides(MPI_Comm comm, const Sides& sides, bool weighted) {
  CHECK_EQ(topology(comm), MPI_DIST_GRAPH);
  int rank = -1, in = -1, out = -1, has_weights = -1;
  MPI(MPI_Comm_rank(comm, &rank));
  MPI(MPI_Dist_graph_neighbors_count(comm, &in, &out, &has_weights));
  CHECK_EQ(in, static_cast<int>(sides.sources[rank].size()));
  CHECK_EQ(out, static_cast<int>(sides.targets[rank].size()));
  CHECK_EQ(has_weights != 0, weighted);
  // With room for all, for more, for fewer.
  for (int more : {0, 2, -1}) {
    const int room_in = std::max(in + more, 0), room_out = std::max(out + more, 0);
    std::vector<int> sources(in + 3, -7), targets(out + 3, -7), into = sources, away = targets;
    MPI(MPI_Dist_graph_neighbors(comm, room_in, sources.data(), into.data(), room_out,
                                 targets.data(), away.data()));
    expect_side(sources, sides.sources[rank], room_in, "sources");
    expect_side(targets, sides.targets[rank], room_out, "destinations");
    const std::vector<int> none;
    expect_side(into, weighted ? sides.source_weights[rank] : none, room_in, "sourceweights");
    expect_side(away, weighted ? sides.target_weights[rank] : none, room_out, "destweights");
  }
  std::vector<int> sources(in + 1, -7), targets(out + 1, -7);
  MPI(MPI_Dist_graph_neighbors(comm, in, sources.data(), MPI_UNWEIGHTED, out, targets.data(),
                               MPI_UNWEIGHTED));
  expect_side(sources, sides.sources[rank], in, "sources");
}

void expect_and_free(MPI_Comm comm, const Sides& sides, bool weighted) {
  MPI_Comm copy = MPI_COMM_NULL;
  expect_sides(comm, sides, weighted);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI(MPI_Comm_idup(comm, &copy, &request));
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  free_comm(comm);
  expect_sides(copy, sides, weighted);
  free_comm(copy);
}

void own_edges() {
  check::Random random(check::seed + 1);
  for (int round = 0; round < 40; ++round) {
    const std::vector<Edge> edges = neighbours::random_edges(random, 4 * check::size);
    const bool weighted = random.chance(50);
    const int reorder = random.between(0, 1);
    const Sides adjacent = neighbours::adjacent_sides(random, edges);
    // Without any edge, MPI_WEIGHTS_EMPTY on all ranks still says that there are weights.
    expect_and_free(neighbours::make_adjacent(adjacent, weighted, reorder), adjacent, weighted);
    expect_and_free(neighbours::make_general(edges, weighted, reorder),
                    neighbours::general_sides(edges), weighted);
  }
}

// Ranks without edges do not decide whether there are weights, whatever they pass.
void weights_where_there_are_none() {
  const int one = 1, zero = 0, five = 5;
  const bool has_edge = check::rank == 0;
  for (const int* passed : {static_cast<const int*>(MPI_UNWEIGHTED),
                            static_cast<const int*>(MPI_WEIGHTS_EMPTY), &zero}) {
    for (bool weighted : {false, true}) {
      const int* weights = has_edge ? (weighted ? &five : MPI_UNWEIGHTED) : passed;
      MPI_Comm comm = MPI_COMM_NULL;
      MPI(MPI_Dist_graph_create(MPI_COMM_WORLD, has_edge, &zero, &one, &zero, weights,
                                MPI_INFO_NULL, 0, &comm));
      int in = -1, out = -1, told = -1;
      MPI(MPI_Dist_graph_neighbors_count(comm, &in, &out, &told));
      CHECK_EQ(told != 0, weighted);
      CHECK_EQ(in, has_edge);
      CHECK_EQ(out, has_edge);
      free_comm(comm);
      MPI(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, has_edge, &zero, weights, has_edge, &zero,
                                         weights, MPI_INFO_NULL, 0, &comm));
      MPI(MPI_Dist_graph_neighbors_count(comm, &in, &out, &told));
      CHECK_EQ(told != 0, weighted);
      free_comm(comm);
    }
  }
}

// A new communicator has no attribute and no name of the old one, but its handler and the hints of
// the call.
void with_info() {
  MPI_Info info = MPI_INFO_NULL, told = MPI_INFO_NULL;
  MPI(MPI_Info_create(&info));
  MPI(MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
  MPI_Comm comm = neighbours::make_adjacent(Sides(), false, 1, info);
  MPI(MPI_Info_free(&info));
  MPI(MPI_Comm_get_info(comm, &told));
  char value[16] = "";
  int length = sizeof value, found = 0;
  MPI(MPI_Info_get_string(told, "mpi_assert_no_any_tag", &length, value, &found));
  CHECK(found != 0 && std::string(value) == "true");
  MPI(MPI_Info_free(&told));
  char name[MPI_MAX_OBJECT_NAME] = "?";
  MPI(MPI_Comm_get_name(comm, name, &length));
  CHECK_EQ(length, 0);
  free_comm(comm);
}

// --- what is wrong ---

void refused_whole() {
  const int size = check::size;
  MPI_Comm comm = MPI_COMM_NULL, other = MPI_COMM_NULL;
  int number = 0, more = 0, list[64];
  std::vector<int> index(size + 1), edges(size + 1, 0);
  for (int i = 0; i <= size; ++i) index[i] = i + 1;
  const auto create = [&](int nodes) {
    return MPI_Graph_create(MPI_COMM_WORLD, nodes, index.data(), edges.data(), 0, &other);
  };
  EXPECT_CLASS(MPI_ERR_ARG, create(-1));
  EXPECT_CLASS(MPI_ERR_ARG, create(size + 1));
  EXPECT_CLASS(MPI_ERR_COMM,
               MPI_Graph_create(MPI_COMM_NULL, 1, index.data(), edges.data(), 0, &other));
  edges[size - 1] = size;
  EXPECT_CLASS(MPI_ERR_ARG, create(size));
  edges[size - 1] = -1;
  EXPECT_CLASS(MPI_ERR_ARG, create(size));
  EXPECT_CLASS(MPI_ERR_ARG,
               MPI_Graph_map(MPI_COMM_WORLD, size, index.data(), edges.data(), &number));
  edges[size - 1] = 0;
  index[size - 1] = size == 1 ? -1 : 0;
  EXPECT_CLASS(MPI_ERR_ARG, create(size));
  index[size - 1] = size;
  EXPECT_CLASS(MPI_ERR_ARG,
               MPI_Graph_create(MPI_COMM_WORLD, size, index.data(), nullptr, 0, &other));
  MPI(create(size));
  std::swap(comm, other);
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Graph_get(comm, size - 1, size, list, list));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Graph_get(comm, size, size - 1, list, list));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Graph_neighbors(comm, 0, 0, list));
  EXPECT_CLASS(MPI_ERR_RANK, MPI_Graph_neighbors(comm, size, 1, list));
  EXPECT_CLASS(MPI_ERR_RANK, MPI_Graph_neighbors_count(comm, -1, &number));
  EXPECT_CLASS(MPI_ERR_TOPOLOGY, MPI_Cartdim_get(comm, &number));
  EXPECT_CLASS(MPI_ERR_TOPOLOGY, MPI_Dist_graph_neighbors_count(comm, &number, &more, list));
  for (MPI_Comm plain : {MPI_COMM_WORLD, MPI_COMM_SELF}) {
    EXPECT_CLASS(MPI_ERR_TOPOLOGY, MPI_Graphdims_get(plain, &number, &more));
    EXPECT_CLASS(MPI_ERR_TOPOLOGY, MPI_Graph_get(plain, 64, 64, list, list));
    EXPECT_CLASS(MPI_ERR_TOPOLOGY, MPI_Graph_neighbors_count(plain, 0, &number));
    EXPECT_CLASS(MPI_ERR_TOPOLOGY, MPI_Graph_neighbors(plain, 0, 64, list));
  }
  free_comm(comm);
}

// A list with a number of each place made wrong, and the class that this gives.
struct Adjacent {
  int in = 1, out = 1;
  int sources[2] = {0, 0}, targets[2] = {0, 0};
  int into[2] = {1, 1}, away[2] = {1, 1};
  const int* weights_in = into;
  const int* weights_out = away;
  int operator()(MPI_Comm* made) const {
    return MPI_Dist_graph_create_adjacent(MPI_COMM_SELF, in, sources, weights_in, out, targets,
                                          weights_out, MPI_INFO_NULL, 0, made);
  }
};

void refused_adjacent() {
  MPI_Comm made = MPI_COMM_NULL;
  const auto refuse = [&made](void (*change)(Adjacent&)) {
    Adjacent call;
    change(call);
    EXPECT_CLASS(MPI_ERR_ARG, call(&made));
    CHECK_EQ(made, MPI_COMM_NULL);
  };
  refuse([](Adjacent& a) { a.in = -1; });
  refuse([](Adjacent& a) { a.out = -1; });
  refuse([](Adjacent& a) { a.sources[0] = 1; });
  refuse([](Adjacent& a) { a.sources[0] = -1; });
  refuse([](Adjacent& a) { a.sources[0] = MPI_PROC_NULL; });
  refuse([](Adjacent& a) { a.out = 2, a.targets[1] = 7; });
  refuse([](Adjacent& a) { a.into[0] = -1; });
  refuse([](Adjacent& a) { a.away[0] = -2147483647; });
  refuse([](Adjacent& a) { a.weights_in = MPI_WEIGHTS_EMPTY; });
  refuse([](Adjacent& a) { a.weights_out = MPI_WEIGHTS_EMPTY; });
  refuse([](Adjacent& a) { a.weights_in = MPI_UNWEIGHTED; });
  refuse([](Adjacent& a) { a.weights_out = nullptr; });
  // The right one, of which no more is wrong than what was changed.
  MPI(Adjacent()(&made));
  int number = 0;
  EXPECT_CLASS(MPI_ERR_ARG,
               MPI_Dist_graph_neighbors(made, -1, &number, &number, 1, &number, &number));
  EXPECT_CLASS(MPI_ERR_ARG,
               MPI_Dist_graph_neighbors(made, 1, &number, MPI_WEIGHTS_EMPTY, 1, &number, &number));
  EXPECT_CLASS(MPI_ERR_TOPOLOGY, MPI_Graphdims_get(made, &number, &number));
  free_comm(made);
}

void refused_general() {
  MPI_Comm made = MPI_COMM_NULL;
  const int zero = 0, one = 1, negative = -1, two[] = {0, 1};
  const auto create = [&](int n, const int* sources, const int* degrees, const int* targets,
                          const int* weights) {
    return MPI_Dist_graph_create(MPI_COMM_SELF, n, sources, degrees, targets, weights,
                                 MPI_INFO_NULL, 0, &made);
  };
  EXPECT_CLASS(MPI_ERR_ARG, create(-1, &zero, &one, &zero, &one));
  EXPECT_CLASS(MPI_ERR_ARG, create(1, &one, &one, &zero, &one));
  EXPECT_CLASS(MPI_ERR_ARG, create(1, &zero, &negative, &zero, &one));
  EXPECT_CLASS(MPI_ERR_ARG, create(1, &zero, &one, &negative, &one));
  EXPECT_CLASS(MPI_ERR_ARG, create(1, &zero, &one, &zero, &negative));
  EXPECT_CLASS(MPI_ERR_ARG, create(1, &zero, &one, &zero, MPI_WEIGHTS_EMPTY));
  EXPECT_CLASS(MPI_ERR_ARG, create(1, &zero, &one, &zero, nullptr));
  EXPECT_CLASS(MPI_ERR_ARG, create(1, &zero, &one, nullptr, &one));
  EXPECT_CLASS(MPI_ERR_ARG, create(2, two, two, two, MPI_UNWEIGHTED));
  EXPECT_CLASS(MPI_ERR_ARG, create(1, nullptr, &one, &zero, &one));
  EXPECT_CLASS(MPI_ERR_INFO,
               MPI_Dist_graph_create(MPI_COMM_SELF, 0, &zero, &zero, &zero, &zero,
                                     reinterpret_cast<MPI_Info>(uintptr_t{12345}), 0, &made));
  CHECK_EQ(made, MPI_COMM_NULL);
}

// Ranks that do not give the same, or ends that do not fit: all of them hear of it, and the
// communicator is as good as before.
void disagreeing() {
  const int rank = check::rank, size = check::size, last = size - 1;
  MPI_Comm made = MPI_COMM_NULL;
  const int lengths[] = {size}, period = rank == last;
  EXPECT_CLASS(MPI_ERR_TOPOLOGY, MPI_Cart_create(MPI_COMM_WORLD, 1, lengths, &period, 0, &made));
  const int zero = 0, one = 1, shorter = rank == last ? last : size;
  EXPECT_CLASS(MPI_ERR_TOPOLOGY, MPI_Cart_create(MPI_COMM_WORLD, 1, &shorter, &zero, 0, &made));
  EXPECT_CLASS(MPI_ERR_TOPOLOGY,
               MPI_Cart_create(MPI_COMM_WORLD, 1, lengths, &zero, rank == 0, &made));
  std::vector<int> index(size), edges(size, 0);
  for (int i = 0; i < size; ++i) index[i] = i + 1;
  edges[0] = rank == last;
  EXPECT_CLASS(MPI_ERR_TOPOLOGY,
               MPI_Graph_create(MPI_COMM_WORLD, size, index.data(), edges.data(), 0, &made));
  // An edge to rank 0 that it does not know of; one that it expects in vain; one too many.
  const auto adjacent = [&](int in, const int* sources, int out, const int* targets,
                            const int* weights, int reorder) {
    return MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, sources, weights, out, targets,
                                          weights, MPI_INFO_NULL, reorder, &made);
  };
  // Such a graph can be made and asked, but its edges carry nothing, on any rank.
  const auto unmatched = [&](int in, const int* sources, int out, const int* targets) {
    for (int reorder : {0, 1}) {
      MPI(adjacent(in, sources, out, targets, MPI_UNWEIGHTED, reorder));
      int number_in = -1, number_out = -1, weighted = -1, sent = 0, heard[2] = {};
      MPI(MPI_Dist_graph_neighbors_count(made, &number_in, &number_out, &weighted));
      if (!reorder) CHECK(number_in == in && number_out == out && weighted == 0);
      MPI_Comm copy = MPI_COMM_NULL;
      MPI(MPI_Comm_dup(made, &copy));
      for (MPI_Comm comm : {made, copy}) {
        EXPECT_CLASS(MPI_ERR_TOPOLOGY,
                     MPI_Neighbor_allgather(&sent, 1, MPI_INT, heard, 1, MPI_INT, comm));
      }
      free_comm(copy);
      free_comm(made);
    }
  };
  const int zeros[] = {0, 0}, lasts[] = {last, last};
  unmatched(0, zeros, rank == last, zeros);
  unmatched(rank == 0, lasts, 0, zeros);
  unmatched(rank == 0 ? 2 : 0, lasts, rank == last ? 1 : 0, zeros);
  unmatched(rank == 0, zeros, rank == last, zeros);
  const int* some = rank == 0 ? &one : MPI_UNWEIGHTED;
  const int itself = rank;
  EXPECT_CLASS(MPI_ERR_ARG, adjacent(1, &itself, 1, &itself, some, 0));
  EXPECT_CLASS(MPI_ERR_ARG, adjacent(1, &itself, 1, &itself, MPI_UNWEIGHTED, rank == 0));
  const auto general = [&](const int* weights, int reorder) {
    return MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &itself, &one, &zero, weights, MPI_INFO_NULL,
                                 reorder, &made);
  };
  EXPECT_CLASS(MPI_ERR_ARG, general(some, 0));
  EXPECT_CLASS(MPI_ERR_ARG, general(MPI_UNWEIGHTED, rank == 0));
  CHECK_EQ(made, MPI_COMM_NULL);
  MPI(general(MPI_UNWEIGHTED, 1));
  free_comm(made);
}

// While it lives this process gets little more memory from the system: what messages need, but not
// what the graphs below do.
class Scarcity {
 public:
  explicit Scarcity(bool here) {
    CHECK_EQ(getrlimit(RLIMIT_AS, &before_), 0);
    unsigned long long pages = 0;
    FILE* file = fopen("/proc/self/statm", "r");
    CHECK(file != nullptr && fscanf(file, "%llu", &pages) == 1);
    fclose(file);
    const rlimit little = {pages * 4096 + (6 << 20), before_.rlim_max};
    if (here) CHECK_EQ(setrlimit(RLIMIT_AS, &little), 0);
  }
  ~Scarcity() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_;
};

// One rank has no memory for the graph: all hear of it, and none waits for it.
void scarce() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need memory themselves
  constexpr int edges = 1 << 20;  // a graph looks at itself with 16 bytes for each
  const int size = check::size;
  const std::vector<int> index(size, edges), targets(edges, 0);
  MPI_Comm made = MPI_COMM_NULL;
  const int poor = size - 1;  // and never another one, which would have what it was given back
  for (int reorder : {0, 1}) {
    // Rank 0 names the edges, and the poor one is at their other end.
    const std::vector<int> ends(check::rank == 0 ? edges / 2 : 0, poor);
    const int zero = 0, degree = static_cast<int>(ends.size());
    const Scarcity scarcity(check::rank == poor);
    EXPECT_CLASS(MPI_ERR_NO_MEM, MPI_Graph_create(MPI_COMM_WORLD, size, index.data(),
                                                  targets.data(), reorder, &made));
    EXPECT_CLASS(MPI_ERR_NO_MEM,
                 MPI_Dist_graph_create(MPI_COMM_WORLD, check::rank == 0, &zero, &degree,
                                       neighbours::list_of(ends), MPI_UNWEIGHTED, MPI_INFO_NULL,
                                       reorder, &made));
    CHECK_EQ(made, MPI_COMM_NULL);
  }
#endif
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"whole_graphs", whole_graphs},
                      {"without_nodes", without_nodes},
                      {"own_edges", own_edges},
                      {"weights_where_there_are_none", weights_where_there_are_none},
                      {"with_info", with_info},
                      {"refused_whole", refused_whole},
                      {"refused_adjacent", refused_adjacent},
                      {"refused_general", refused_general},
                      {"disagreeing", disagreeing, 2},
                      {"scarce", scarce, 2}});
}
