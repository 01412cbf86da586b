// Collectives of neighbours: all five, in all three forms and both widths, on every grid up to
// 3x3x3 with all periods and on random graphs with loops and repeated edges, beside a model of who
// sends which block where; blocks of nobody, degrees of 0, large blocks, addresses in the place of
// displacements, many at once; what is refused.
#include "coll.h"
#include "neighbours.h"

namespace {

using coll::Form;
using coll::guard;
using coll::value;
using neighbours::View;

// A call in the form under test; what follows the suffix are the arguments before the communicator.
// A persistent one runs twice.
#define RUN(Name, name, suffix, ...)                                                 \
  do {                                                                               \
    MPI_Request request_ = MPI_REQUEST_NULL;                                         \
    if (coll::form == Form::blocking) {                                              \
      MPI(MPI_##Name##suffix(__VA_ARGS__, v.comm));                                  \
    } else if (coll::form == Form::immediate) {                                      \
      MPI(MPI_I##name##suffix(__VA_ARGS__, v.comm, &request_));                      \
      coll::finish(request_);                                                        \
    } else {                                                                         \
      MPI(MPI_##Name##_init##suffix(__VA_ARGS__, v.comm, MPI_INFO_NULL, &request_)); \
      MPI(MPI_Start(&request_));                                                     \
      MPI(MPI_Wait(&request_, MPI_STATUS_IGNORE));                                   \
      coll::run_persistent(request_);                                                \
    }                                                                                \
  } while (0)
// In both widths, between which the receive buffer is new.
#define BOTH(Name, name, narrow, large, again) \
  do {                                         \
    RUN(Name, name, , UNWRAP narrow);          \
    again;                                     \
    RUN(Name, name, _c, UNWRAP large);         \
    again;                                     \
  } while (0)
#define UNWRAP(...) __VA_ARGS__

// What a rank sends along its edge `edge`: so many numbers, from this key on.
int count_of(int rank, int edge, int scale) {
  return (rank * 5 + edge * 3) % 4 == 0 ? 0 : (rank + 2 * edge) % 7 * scale + 1;
}
int sent(int rank, int edge, int at) { return value(rank, static_cast<size_t>(at), 10 + edge); }

// Blocks with gaps from the last to the first, in a buffer of guards.
struct Layout {
  std::vector<int> counts, places, memory;
  std::vector<MPI_Count> large_counts;
  std::vector<MPI_Aint> large_places;

  template <class Count>
  Layout(size_t blocks, Count count) : counts(blocks), places(blocks) {
    int room = 0;
    for (size_t i = blocks; i-- > 0;) {
      counts[i] = count(static_cast<int>(i));
      places[i] = room + 2;
      room += counts[i] + 2;
    }
    memory = neighbours::filled(static_cast<size_t>(room) + 1, guard);
    large_counts.assign(counts.begin(), counts.end());
    large_places.assign(places.begin(), places.end());
  }
  int* block(int i) { return memory.data() + places[static_cast<size_t>(i)]; }
  void clear() { std::fill(memory.begin(), memory.end(), guard); }
};

void expect_same(const std::vector<int>& got, const std::vector<int>& wanted, const char* call) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (got[i] == wanted[i]) continue;
    check::fail(__FILE__, __LINE__, "%s, form %d: element %zu of %zu is %08x, expected %08x", call,
                static_cast<int>(coll::form), i, wanted.size(), static_cast<unsigned>(got[i]),
                static_cast<unsigned>(wanted[i]));
  }
}

bool is_nobody(int rank) { return rank == MPI_PROC_NULL; }

void allgather(const View& v, int count) {
  const size_t degree = v.from().size();
  std::vector<int> out(static_cast<size_t>(count) + 1);
  for (int i = 0; i < count; ++i) out[static_cast<size_t>(i)] = sent(v.rank, 0, i);
  std::vector<int> in = neighbours::filled(degree * static_cast<size_t>(count) + 1, guard);
  std::vector<int> wanted = in;
  for (size_t block = 0; block < degree; ++block) {
    for (int i = 0; i < count && !is_nobody(v.from()[block]); ++i) {
      wanted[block * static_cast<size_t>(count) + static_cast<size_t>(i)] =
          sent(v.from()[block], 0, i);
    }
  }
  const auto look = [&] {
    expect_same(in, wanted, "MPI_Neighbor_allgather");
    std::fill(in.begin(), in.end(), guard);
  };
  BOTH(Neighbor_allgather, neighbor_allgather,
       (out.data(), count, MPI_INT, in.data(), count, MPI_INT),
       (out.data(), count, MPI_INT, in.data(), count, MPI_INT), look());
}

void allgatherv(const View& v, int scale) {
  const std::vector<int>& from = v.from();
  Layout in(from.size(),
            [&](int i) { return is_nobody(from[i]) ? 3 : count_of(from[i], 0, scale); });
  Layout out(1, [&](int) { return count_of(v.rank, 0, scale); });
  const int count = out.counts[0];
  for (int i = 0; i < count; ++i) out.block(0)[i] = sent(v.rank, 0, i);
  Layout wanted = in;
  for (int block = 0; block < static_cast<int>(from.size()); ++block) {
    for (int i = 0; i < in.counts[block] && !is_nobody(from[block]); ++i) {
      wanted.block(block)[i] = sent(from[block], 0, i);
    }
  }
  const auto look = [&] {
    expect_same(in.memory, wanted.memory, "MPI_Neighbor_allgatherv");
    in.clear();
  };
  BOTH(Neighbor_allgatherv, neighbor_allgatherv,
       (out.block(0), count, MPI_INT, in.memory.data(), neighbours::list_of(in.counts),
        neighbours::list_of(in.places), MPI_INT),
       (out.block(0), count, MPI_INT, in.memory.data(), in.large_counts.data(),
        in.large_places.data(), MPI_INT),
       look());
}

void alltoall(const View& v, int count) {
  const size_t to = v.to().size(), from = v.from().size(), n = static_cast<size_t>(count);
  std::vector<int> out(to * n + 1), in = neighbours::filled(from * n + 1, guard), wanted = in;
  for (size_t edge = 0; edge < to; ++edge) {
    for (size_t i = 0; i < n; ++i) {
      out[edge * n + i] = sent(v.rank, static_cast<int>(edge), static_cast<int>(i));
    }
  }
  for (size_t block = 0; block < from; ++block) {
    const int sender = v.from()[block];
    if (is_nobody(sender)) continue;
    const int edge = v.sent_as(static_cast<int>(block));
    for (size_t i = 0; i < n; ++i) {
      wanted[block * n + i] = sent(sender, edge, static_cast<int>(i));
    }
  }
  const auto look = [&] {
    expect_same(in, wanted, "MPI_Neighbor_alltoall");
    std::fill(in.begin(), in.end(), guard);
  };
  BOTH(Neighbor_alltoall, neighbor_alltoall,
       (out.data(), count, MPI_INT, in.data(), count, MPI_INT),
       (out.data(), count, MPI_INT, in.data(), count, MPI_INT), look());
}

// The sides of an alltoall with a length for each edge; nobody's blocks have a length, too.
struct Uneven {
  Layout out, in, wanted;

  Uneven(const View& v, int scale)
      : out(v.to().size(),
            [&](int i) { return is_nobody(v.to()[i]) ? 3 : 2 * count_of(v.rank, i, scale); }),
        in(v.from().size(),
           [&](int i) {
             const int sender = v.from()[i];
             return is_nobody(sender) ? 3 : 2 * count_of(sender, v.sent_as(i), scale);
           }),
        wanted(in) {
    for (int edge = 0; edge < static_cast<int>(v.to().size()); ++edge) {
      for (int i = 0; i < out.counts[edge]; ++i) out.block(edge)[i] = sent(v.rank, edge, i);
    }
    for (int block = 0; block < static_cast<int>(v.from().size()); ++block) {
      const int sender = v.from()[block];
      if (is_nobody(sender)) continue;
      const int edge = v.sent_as(block);
      for (int i = 0; i < in.counts[block]; ++i) wanted.block(block)[i] = sent(sender, edge, i);
    }
  }
  void look(const char* call) {
    expect_same(in.memory, wanted.memory, call);
    in.clear();
  }
};

void alltoallv(const View& v, int scale) {
  Uneven u(v, scale);
  BOTH(Neighbor_alltoallv, neighbor_alltoallv,
       (u.out.memory.data(), neighbours::list_of(u.out.counts), neighbours::list_of(u.out.places),
        MPI_INT, u.in.memory.data(), neighbours::list_of(u.in.counts),
        neighbours::list_of(u.in.places), MPI_INT),
       (u.out.memory.data(), u.out.large_counts.data(), u.out.large_places.data(), MPI_INT,
        u.in.memory.data(), u.in.large_counts.data(), u.in.large_places.data(), MPI_INT),
       u.look("MPI_Neighbor_alltoallv"));
}

// Pairs and single numbers, by turns other ones at both ends. Displacements in bytes of 64 bits:
// from the buffer, or from MPI_BOTTOM.
struct Typed {
  std::vector<int> counts;
  std::vector<MPI_Count> large;
  std::vector<MPI_Aint> places;
  std::vector<MPI_Datatype> types;

  Typed(Layout& layout, const std::vector<int>& ranks, int odd, MPI_Datatype pair, bool absolute) {
    for (size_t i = 0; i < ranks.size(); ++i) {
      const bool as_pairs = (i + static_cast<size_t>(odd)) % 2 == 0 && !is_nobody(ranks[i]);
      counts.push_back(as_pairs ? layout.counts[i] / 2 : layout.counts[i]);
      MPI_Aint at = 0;
      MPI(MPI_Get_address(layout.block(static_cast<int>(i)), &at));
      MPI_Aint start = 0;
      if (!absolute) MPI(MPI_Get_address(layout.memory.data(), &start));
      places.push_back(MPI_Aint_diff(at, start));
      // The type of nothing, and of nobody's block, need not be one.
      const bool empty = counts.back() == 0 || is_nobody(ranks[i]);
      types.push_back(empty ? MPI_DATATYPE_NULL : as_pairs ? pair : MPI_INT);
    }
    large.assign(counts.begin(), counts.end());
  }
};

void alltoallw(const View& v, int scale) {
  MPI_Datatype pair = MPI_DATATYPE_NULL;
  MPI(MPI_Type_contiguous(2, MPI_INT, &pair));
  MPI(MPI_Type_commit(&pair));
  for (bool absolute : {false, true}) {
    Uneven u(v, scale);
    const Typed out(u.out, v.to(), v.rank, pair, absolute);
    const Typed in(u.in, v.from(), v.rank + 1, pair, absolute);
    void* from = absolute ? MPI_BOTTOM : u.out.memory.data();
    void* to = absolute ? MPI_BOTTOM : u.in.memory.data();
    BOTH(Neighbor_alltoallw, neighbor_alltoallw,
         (from, neighbours::list_of(out.counts), out.places.data(), out.types.data(), to,
          neighbours::list_of(in.counts), in.places.data(), in.types.data()),
         (from, out.large.data(), out.places.data(), out.types.data(), to, in.large.data(),
          in.places.data(), in.types.data()),
         u.look("MPI_Neighbor_alltoallw"));
  }
  MPI(MPI_Type_free(&pair));
}

void all_kinds(const View& v, int scale) {
  allgather(v, scale);
  allgatherv(v, scale);
  alltoall(v, scale);
  alltoallv(v, scale);
  alltoallw(v, scale);
}

// In all forms, on the communicator and, now and then, on a duplicate of it; which goes then.
void everything(View v, const std::vector<int>& scales, bool copied = false) {
  if (v.comm == MPI_COMM_NULL) return;
  if (copied) {
    MPI_Comm copy = MPI_COMM_NULL;
    MPI(MPI_Comm_dup(v.comm, &copy));
    MPI(MPI_Comm_free(&v.comm));
    v.comm = copy;
  }
  for (Form form : {Form::blocking, Form::immediate, Form::persistent}) {
    coll::form = form;
    for (int scale : scales) all_kinds(v, scale);
  }
  coll::form = Form::blocking;
  MPI(MPI_Comm_free(&v.comm));
}

template <class Body>
void each_grid(Body&& body) {
  for (int dimensions = 1; dimensions <= 3; ++dimensions) {
    int shapes = 1;
    for (int i = 0; i < dimensions; ++i) shapes *= 3;
    for (int shape = 0; shape < shapes; ++shape) {
      std::vector<int> lengths;
      int volume = 1;
      for (int i = 0, rest = shape; i < dimensions; ++i, rest /= 3) {
        lengths.push_back(1 + rest % 3);
        volume *= lengths.back();
      }
      if (volume > check::size) continue;
      for (int mask = 0; mask < 1 << dimensions; ++mask) {
        std::vector<int> periods;
        for (int i = 0; i < dimensions; ++i) periods.push_back(mask >> i & 1);
        body(lengths, periods);
      }
    }
  }
}

void grids() {
  int number = 0;
  each_grid([&number](const std::vector<int>& lengths, const std::vector<int>& periods) {
    ++number;
    everything(neighbours::make_grid(lengths, periods, number % 2), {3}, number % 3 == 0);
  });
}

void whole_graphs() {
  check::Random random(check::seed + 10);
  for (int round = 0; round < 12; ++round) {
    const int nodes = random.between(1, check::size);
    everything(neighbours::make_whole(neighbours::random_whole(random, nodes), round % 2),
               {0, 1, 40}, round % 3 == 0);
  }
}

void own_edges() {
  check::Random random(check::seed + 20);
  for (int round = 0; round < 15; ++round) {
    const std::vector<neighbours::Edge> edges =
        neighbours::random_edges(random, 1 + round % 5 * check::size);
    const bool weighted = round % 2 == 0;
    const neighbours::Sides adjacent = neighbours::adjacent_sides(random, edges);
    everything(view_of(adjacent, neighbours::make_adjacent(adjacent, weighted, round % 3 == 0)),
               {1, 40}, round % 4 == 0);
    everything(view_of(neighbours::general_sides(edges),
                       neighbours::make_general(edges, weighted, round % 3 == 0)),
               {1, 40}, round % 4 == 1);
  }
}

// Blocks that ask first, in one direction round a ring and across it.
void large() {
  std::vector<neighbours::Edge> edges;
  for (int rank = 0; rank < check::size; ++rank) {
    edges.push_back({rank, (rank + 1) % check::size, 1, rank});
    edges.push_back({rank, check::size - 1 - rank, 1, 0});
  }
  const neighbours::Sides sides = neighbours::general_sides(edges);
  everything(view_of(sides, neighbours::make_general(edges, false, 1)), {30000});
  everything(neighbours::make_grid({check::size}, {1}, 1), {60000});
}

// No neighbours: no buffer, no list.
void nobody() {
  const neighbours::Sides none;
  MPI_Comm comm = neighbours::make_adjacent(none, false, 0);
  MPI(MPI_Neighbor_allgather(nullptr, 4, MPI_INT, nullptr, 4, MPI_INT, comm));
  MPI(MPI_Neighbor_allgatherv(nullptr, 4, MPI_INT, nullptr, nullptr, nullptr, MPI_INT, comm));
  MPI(MPI_Neighbor_alltoall(nullptr, 4, MPI_INT, nullptr, 4, MPI_INT, comm));
  MPI(MPI_Neighbor_alltoallv(nullptr, nullptr, nullptr, MPI_INT, nullptr, nullptr, nullptr, MPI_INT,
                             comm));
  MPI(MPI_Neighbor_alltoallw(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                             comm));
  MPI_Request request = MPI_REQUEST_NULL;
  MPI(MPI_Ineighbor_alltoall(nullptr, 4, MPI_INT, nullptr, 4, MPI_INT, comm, &request));
  coll::finish(request);
  MPI(MPI_Comm_free(&comm));
}

// Many at once on two communicators, among them other collectives; persistent ones are started in
// another order on each rank. The communicators are freed meanwhile.
void at_once() {
  constexpr int calls = 24;
  const View a = neighbours::make_grid({check::size}, {1}, 0);
  View b = a;
  MPI(MPI_Comm_dup(a.comm, &b.comm));
  std::vector<std::vector<int>> out(calls), in(calls);
  std::vector<MPI_Request> requests(calls, MPI_REQUEST_NULL), persistent;
  int sum = 0, one = 1;
  MPI_Request other = MPI_REQUEST_NULL;
  for (int call = 0; call < calls; ++call) {
    const View& v = call % 3 == 0 ? b : a;
    for (int i = 0; i < 2; ++i) out[call].push_back(sent(v.rank, i, call));
    in[call] = neighbours::filled(2, guard);
    if (call == calls / 2) MPI(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, a.comm, &other));
    if (call % 2 == 0) {
      MPI(MPI_Ineighbor_alltoall(out[call].data(), 1, MPI_INT, in[call].data(), 1, MPI_INT, v.comm,
                                 &requests[call]));
    } else {
      MPI(MPI_Neighbor_alltoall_init(out[call].data(), 1, MPI_INT, in[call].data(), 1, MPI_INT,
                                     v.comm, MPI_INFO_NULL, &requests[call]));
      persistent.push_back(requests[call]);
    }
  }
  check::Random own(check::seed + 77 + static_cast<uint64_t>(check::rank));
  own.shuffle(persistent);
  for (MPI_Request& request : persistent) MPI(MPI_Start(&request));
  MPI_Comm first = a.comm;
  MPI(MPI_Comm_free(&first));
  MPI(MPI_Comm_free(&b.comm));
  MPI(MPI_Waitall(calls, requests.data(), MPI_STATUSES_IGNORE));
  MPI(MPI_Wait(&other, MPI_STATUS_IGNORE));
  CHECK_EQ(sum, check::size);
  for (int call = 0; call < calls; ++call) {
    for (int block = 0; block < 2; ++block) {
      CHECK_EQ(in[call][block], sent(a.from()[block], block ^ 1, call));
    }
    if (call % 2 != 0) MPI(MPI_Request_free(&requests[call]));
  }
}

// --- what is wrong ---

int cells[4096];

void refuse_all(int wanted, MPI_Comm comm, const void* send, void* receive, int count,
                MPI_Datatype type) {
  const int counts[64] = {count, count}, places[64] = {0, 1};
  const MPI_Aint wide_places[64] = {0, 8};
  const MPI_Datatype types[64] = {type, type};
  MPI_Request request = MPI_REQUEST_NULL;
  EXPECT_CLASS(wanted, MPI_Neighbor_allgather(send, count, type, receive, count, type, comm));
  EXPECT_CLASS(wanted,
               MPI_Ineighbor_alltoall_c(send, count, type, receive, count, type, comm, &request));
  EXPECT_CLASS(wanted, MPI_Neighbor_allgatherv_init(send, count, type, receive, counts, places,
                                                    type, comm, MPI_INFO_NULL, &request));
  EXPECT_CLASS(wanted, MPI_Neighbor_alltoallv(send, counts, places, type, receive, counts, places,
                                              type, comm));
  EXPECT_CLASS(wanted, MPI_Ineighbor_alltoallw(send, counts, wide_places, types, receive, counts,
                                               wide_places, types, comm, &request));
  CHECK_EQ(request, MPI_REQUEST_NULL);
}

void refused() {
  const View ring = neighbours::make_grid({check::size}, {1}, 0);
  int* other = cells + 2048;
  refuse_all(MPI_ERR_TOPOLOGY, MPI_COMM_WORLD, cells, other, 1, MPI_INT);
  refuse_all(MPI_ERR_COMM, MPI_COMM_NULL, cells, other, 1, MPI_INT);
  refuse_all(MPI_ERR_BUFFER, ring.comm, MPI_IN_PLACE, other, 1, MPI_INT);
  refuse_all(MPI_ERR_BUFFER, ring.comm, cells, MPI_IN_PLACE, 1, MPI_INT);
  refuse_all(MPI_ERR_BUFFER, ring.comm, cells, cells, 1, MPI_INT);
  refuse_all(MPI_ERR_COUNT, ring.comm, cells, other, -1, MPI_INT);
  refuse_all(MPI_ERR_TYPE, ring.comm, cells, other, 1, MPI_DATATYPE_NULL);
  refuse_all(MPI_ERR_BUFFER, ring.comm, nullptr, other, 1, MPI_INT);
  MPI_Request request = MPI_REQUEST_NULL;
  const int two[] = {1, 1};
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Neighbor_alltoallv(cells, nullptr, two, MPI_INT, other, two, two,
                                                   MPI_INT, ring.comm));
  EXPECT_CLASS(MPI_ERR_ARG,
               MPI_Neighbor_allgatherv(cells, 1, MPI_INT, other, two, nullptr, MPI_INT, ring.comm));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Neighbor_alltoall_init(cells, 1, MPI_INT, other, 1, MPI_INT,
                                                       ring.comm, MPI_INFO_NULL, nullptr));
  EXPECT_CLASS(MPI_ERR_INFO,
               MPI_Neighbor_alltoall_init(cells, 1, MPI_INT, other, 1, MPI_INT, ring.comm,
                                          reinterpret_cast<MPI_Info>(uintptr_t{12345}), &request));
  const MPI_Aint far[] = {INT64_MAX, INT64_MAX};
  const MPI_Count ones[] = {1, 1};
  EXPECT_CLASS(MPI_ERR_ARG,
               MPI_Neighbor_allgatherv_c(cells, 1, MPI_INT, other, ones, far, MPI_INT, ring.comm));
  // All send two and expect one, from themselves, too.
  EXPECT_CLASS(MPI_ERR_TRUNCATE,
               MPI_Neighbor_alltoall(cells, 2, MPI_INT, other, 1, MPI_INT, ring.comm));
  MPI_Comm comm = ring.comm;
  MPI(MPI_Comm_free(&comm));
}

// Of a graph whose nodes do not name each other nothing is sent, and all ranks hear of it.
void one_way() {
  neighbours::Lists lists(check::size);
  lists[0] = {1};
  const View v = neighbours::make_whole(lists, 0);
  refuse_all(MPI_ERR_TOPOLOGY, v.comm, cells, cells + 2048, 1, MPI_INT);
  MPI_Comm comm = v.comm;
  MPI(MPI_Comm_free(&comm));
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"grids", grids},
                      {"whole_graphs", whole_graphs},
                      {"own_edges", own_edges},
                      {"large", large},
                      {"nobody", nobody},
                      {"at_once", at_once},
                      {"refused", refused},
                      {"one_way", one_way, 2}});
}
