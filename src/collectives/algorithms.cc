#include "collectives/algorithms.h"

#include <cstring>

#include "collectives/nodes.h"
#include "protocols/engine.h"

namespace headway::collectives {
namespace {

constexpr uint64_t any = UINT64_MAX;
constexpr int all = INT32_MAX;

// For each kind the first line that fits: at most so many ranks, at most so many bytes.
struct Rule {
  Kind kind;
  int ranks;
  uint64_t bytes;
  Algorithm algorithm;
};
constexpr Rule rules[] = {
    {Kind::barrier, all, any, Algorithm::dissemination},

    {Kind::bcast, 4, any, Algorithm::binomial},
    {Kind::bcast, all, 256 << 10, Algorithm::binomial},
    {Kind::bcast, all, any, Algorithm::scatter_allgather},

    {Kind::gather, 4, any, Algorithm::direct},
    {Kind::gather, all, 2 << 10, Algorithm::binomial},
    {Kind::gather, all, any, Algorithm::direct},
    {Kind::gatherv, all, any, Algorithm::direct},

    {Kind::scatter, 4, any, Algorithm::direct},
    {Kind::scatter, all, 2 << 10, Algorithm::binomial},
    {Kind::scatter, all, any, Algorithm::direct},
    {Kind::scatterv, all, any, Algorithm::direct},

    {Kind::allgather, 2, any, Algorithm::direct},
    {Kind::allgather, all, 1 << 10, Algorithm::bruck},
    {Kind::allgather, all, any, Algorithm::ring},
    {Kind::allgatherv, 4, any, Algorithm::direct},
    {Kind::allgatherv, all, any, Algorithm::ring},

    {Kind::alltoall, 4, any, Algorithm::direct},
    {Kind::alltoall, all, 256, Algorithm::bruck},
    {Kind::alltoall, 32, 32 << 10, Algorithm::direct},
    {Kind::alltoall, all, any, Algorithm::pairwise},
    {Kind::alltoallv, 32, any, Algorithm::direct},
    {Kind::alltoallv, all, any, Algorithm::pairwise},
    {Kind::alltoallw, 32, any, Algorithm::direct},
    {Kind::alltoallw, all, any, Algorithm::pairwise},

    {Kind::reduce, all, any, Algorithm::binomial},
    {Kind::allreduce, 2, 32 << 10, Algorithm::doubling},
    {Kind::allreduce, all, 16 << 10, Algorithm::doubling},
    {Kind::allreduce, all, any, Algorithm::halving},
    {Kind::reduce_scatter, all, 1 << 10, Algorithm::doubling},
    {Kind::reduce_scatter, all, any, Algorithm::halving},
    {Kind::reduce_scatter_block, all, 1 << 10, Algorithm::doubling},
    {Kind::reduce_scatter_block, all, any, Algorithm::halving},

    {Kind::scan, all, any, Algorithm::doubling},
    {Kind::exscan, all, any, Algorithm::doubling},
};

// Where ranks share cores, what counts is how often each must get a core before the call ends:
// once, if everyone sends to everyone at once; log(n) times in rounds. These lines come first
// there.
constexpr Rule crowded_rules[] = {
    {Kind::barrier, 32, any, Algorithm::direct},
    {Kind::bcast, 32, any, Algorithm::direct},
    {Kind::gather, 32, any, Algorithm::direct},
    {Kind::scatter, 32, any, Algorithm::direct},
    {Kind::allgather, 32, any, Algorithm::direct},
    {Kind::allgatherv, 32, any, Algorithm::direct},
    {Kind::alltoall, 32, any, Algorithm::direct},
    {Kind::reduce, 32, 64 << 10, Algorithm::direct},
    {Kind::allreduce, 32, 512, Algorithm::direct},
    {Kind::allreduce, all, 4 << 10, Algorithm::doubling},
    {Kind::allreduce, all, any, Algorithm::halving},
};

// Where the ranks of a node share its wire: few messages cross it. These lines,
// measured with 4 nodes of 2 ranks at 1 Gbit/s, come first there.
constexpr Rule node_rules[] = {
    {Kind::alltoall, 64, 256, Algorithm::bruck},
    {Kind::alltoall, 64, 4 << 10, Algorithm::by_node},
};

// On several nodes, measured by bench/wire_rules.py (docs/wire-rules.md): long vectors go in
// pieces, so that all wires are busy at once; a short block takes longer by every rank that it
// stops at. These lines come next there.
constexpr Rule wire_rules[] = {
    {Kind::bcast, 2, any, Algorithm::binomial},
    {Kind::bcast, 8, 16 << 10, Algorithm::binomial},
    {Kind::bcast, 8, any, Algorithm::chain},
    {Kind::bcast, 16, 32 << 10, Algorithm::binomial},
    {Kind::bcast, 16, any, Algorithm::chain},
    {Kind::bcast, 64, 128 << 10, Algorithm::binomial},
    {Kind::bcast, 64, any, Algorithm::chain},
    {Kind::bcast, 256, 256 << 10, Algorithm::binomial},
    {Kind::bcast, 256, 4 << 20, Algorithm::scatter_allgather},
    {Kind::bcast, 256, any, Algorithm::chain},

    {Kind::gather, 32, any, Algorithm::direct},
    {Kind::scatter, 32, any, Algorithm::direct},

    {Kind::reduce, 2, any, Algorithm::binomial},
    {Kind::reduce, 64, 16 << 10, Algorithm::binomial},
    {Kind::reduce, 64, any, Algorithm::halving},
    {Kind::reduce, all, 1 << 20, Algorithm::binomial},
    {Kind::reduce, all, any, Algorithm::halving},

    {Kind::allreduce, 2, 32 << 10, Algorithm::doubling},
    {Kind::allreduce, all, 8 << 10, Algorithm::doubling},
    {Kind::allreduce, all, any, Algorithm::halving},
};

// What may be forced beside what the rules name.
struct Choice {
  Kind kind;
  Algorithm algorithm;
};
constexpr Choice others[] = {
    {Kind::barrier, Algorithm::direct},    {Kind::bcast, Algorithm::direct},
    {Kind::allgatherv, Algorithm::direct}, {Kind::reduce, Algorithm::direct},
    {Kind::allreduce, Algorithm::direct},  {Kind::reduce_scatter, Algorithm::direct},
    {Kind::scan, Algorithm::direct},       {Kind::reduce_scatter_block, Algorithm::direct},
    {Kind::exscan, Algorithm::direct},     {Kind::allreduce, Algorithm::ring},
    {Kind::alltoall, Algorithm::by_node},  {Kind::bcast, Algorithm::chain},
    {Kind::reduce, Algorithm::halving},
};

constexpr const char* algorithm_names[] = {
    "automatic",         "direct",  "binomial", "dissemination",
    "scatter_allgather", "bruck",   "ring",     "pairwise",
    "doubling",          "halving", "chain",    "by_node"};
static_assert(sizeof algorithm_names / sizeof *algorithm_names == size_t(Algorithm::last));

template <size_t N>
size_t find_name(const char* const (&names)[N], const char* text, size_t length) {
  for (size_t i = 0; i < N; ++i) {
    if (strlen(names[i]) == length && memcmp(names[i], text, length) == 0) return i;
  }
  return 0;  // automatic
}

// HEADWAY_COLL names a kind as its function, in small letters and without what all have in front.
Kind find_kind(const char* text, size_t length) {
  constexpr size_t in_front = 4;  // MPI_
  for (size_t i = 1; i < size_t(Kind::last); ++i) {
    const char* name = functions[i] + in_front;
    if (length == strlen(name) && text[0] == char(name[0] - 'A' + 'a') &&
        memcmp(text + 1, name + 1, length - 1) == 0) {
      return Kind(i);
    }
  }
  return Kind::none;
}

// Where the lines of each kind begin: a small call would feel the way through all of them. N: there
// is none.
template <size_t N>
struct Starts {
  constexpr explicit Starts(const Rule (&table)[N]) {
    for (uint8_t& start : of) start = uint8_t(N);
    for (size_t i = N; i-- > 0;) of[size_t(table[i].kind)] = uint8_t(i);
  }
  uint8_t of[size_t(Kind::last)];
};
template <size_t N>
constexpr bool stand_together(const Rule (&table)[N]) {
  for (size_t i = 1; i < N; ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (table[j].kind == table[i].kind && table[i - 1].kind != table[i].kind) return false;
    }
  }
  return N < UINT8_MAX;
}
static_assert(stand_together(rules) && stand_together(crowded_rules) &&
              stand_together(node_rules) && stand_together(wire_rules));
constexpr Starts rule_starts(rules);
constexpr Starts crowded_starts(crowded_rules);
constexpr Starts node_starts(node_rules);
constexpr Starts wire_starts(wire_rules);

template <size_t N>
Algorithm first_of(const Rule (&table)[N], const Starts<N>& starts, Kind kind, int ranks,
                   uint64_t bytes) {
  for (size_t i = starts.of[size_t(kind)]; i < N && table[i].kind == kind; ++i) {
    if (ranks <= table[i].ranks && bytes <= table[i].bytes) return table[i].algorithm;
  }
  return Algorithm::automatic;
}

bool has(Kind kind, Algorithm algorithm) {
  if (algorithm == Algorithm::automatic) return true;
  for (const Rule& rule : rules) {
    if (rule.kind == kind && rule.algorithm == algorithm) return true;
  }
  for (const Choice& choice : others) {
    if (choice.kind == kind && choice.algorithm == algorithm) return true;
  }
  return false;
}

bool force(const char* part, size_t length, Forced& forced) {
  const auto* equals = static_cast<const char*>(memchr(part, '=', length));
  if (!equals) return false;
  const char* wanted = equals + 1;
  const size_t wanted_length = size_t(part + length - wanted);
  const Kind kind = find_kind(part, size_t(equals - part));
  const auto algorithm = Algorithm(find_name(algorithm_names, wanted, wanted_length));
  const bool is_automatic =
      wanted_length == strlen("automatic") && memcmp(wanted, "automatic", wanted_length) == 0;
  if (kind == Kind::none || (algorithm == Algorithm::automatic && !is_automatic) ||
      !has(kind, algorithm)) {
    return false;
  }
  forced.of[size_t(kind)] = algorithm;
  return true;
}

bool is_here(protocols::Engine& engine, Team team) {
  for (int rank = 0; rank < team.size; ++rank) {
    // Those of this host are made at the start.
    const protocols::Peer* peer = engine.find_peer(team.process(rank));
    if (!peer || !peer->on_this_host()) return false;
  }
  return true;
}

}  // namespace

void parse(const char* text, Forced& forced, void (*bad)(const char* part, uint64_t length)) {
  while (text && *text) {
    const size_t length = strcspn(text, ", ");
    if (length > 0 && !force(text, length, forced)) bad(text, length);
    text += length;
    if (*text) ++text;
  }
}

Sharing sharing_of(protocols::Engine& engine, objects::Comm* comm) {
  const auto known = Sharing(comm->sharing.load(std::memory_order_acquire));
  if (known != Sharing::unknown) [[likely]]
    return known;
  Sharing sharing = engine.is_crowded() ? Sharing::crowded : Sharing::apart;
  const Team team = comm->own;
  const bool one_node =
      is_here(engine, team) && (!comm->is_inter() || is_here(engine, comm->others));
  if (!one_node) {
    const protocols::Peers& peers = engine.links().peers();
    const int each =
        ranks_a_node(team.size, [&](int rank) { return peers.node_of(team.process(rank)); });
    sharing = each > 1 && each < team.size ? Sharing::nodes : Sharing::wire;
    comm->ranks_a_node.store(uint32_t(each), std::memory_order_relaxed);
  }
  comm->sharing.store(uint8_t(sharing), std::memory_order_release);  // pairs with its load above
  return sharing;
}

int ranks_a_node_of(protocols::Engine& engine, objects::Comm* comm) {
  const Sharing sharing = sharing_of(engine, comm);
  if (sharing == Sharing::wire) return 1;
  if (sharing != Sharing::nodes) return supposed_ranks_a_node(comm->own.size);
  return int(comm->ranks_a_node.load(std::memory_order_relaxed));
}

uint64_t node_of(protocols::Engine& engine, objects::Comm* comm, int rank) {
  if (sharing_of(engine, comm) == Sharing::wire) return node_of(engine, comm->own.process(rank));
  return uint64_t(rank / ranks_a_node_of(engine, comm)) + 1;
}

uint64_t node_of(protocols::Engine& engine, uint32_t process) {
  return engine.links().peers().node_of(process);
}

Algorithm choose(const Forced& forced, Kind kind, int ranks, uint64_t bytes, Sharing sharing) {
  const Algorithm wanted = forced.of[size_t(kind)];
  if (wanted != Algorithm::automatic) [[unlikely]]
    return wanted;
  Algorithm found = Algorithm::automatic;
  if (sharing == Sharing::crowded) {
    found = first_of(crowded_rules, crowded_starts, kind, ranks, bytes);
  } else if (sharing != Sharing::apart) {
    if (sharing == Sharing::nodes) found = first_of(node_rules, node_starts, kind, ranks, bytes);
    if (found == Algorithm::automatic)
      found = first_of(wire_rules, wire_starts, kind, ranks, bytes);
  }
  if (found == Algorithm::automatic) found = first_of(rules, rule_starts, kind, ranks, bytes);
  return found == Algorithm::automatic ? Algorithm::direct : found;
}

const char* name_of(Algorithm algorithm) { return algorithm_names[size_t(algorithm)]; }

}  // namespace headway::collectives
