// Algorithms: which way a collective goes, by one table over the number of ranks and bytes, or as
// HEADWAY_COLL says. Thread: any. Owner of a Forced: api/. Invariant: the choice depends only on
// what all ranks of a call know alike.
#pragma once
#include <cstdint>

#include "collectives/schedule.h"

namespace headway::collectives {

// Of each kind the blocking function; none has none.
inline constexpr const char* functions[] = {nullptr,
                                            "MPI_Barrier",
                                            "MPI_Bcast",
                                            "MPI_Gather",
                                            "MPI_Gatherv",
                                            "MPI_Scatter",
                                            "MPI_Scatterv",
                                            "MPI_Allgather",
                                            "MPI_Allgatherv",
                                            "MPI_Alltoall",
                                            "MPI_Alltoallv",
                                            "MPI_Alltoallw",
                                            "MPI_Reduce",
                                            "MPI_Allreduce",
                                            "MPI_Reduce_scatter",
                                            "MPI_Reduce_scatter_block",
                                            "MPI_Scan",
                                            "MPI_Exscan",
                                            "MPI_Neighbor_allgather",
                                            "MPI_Neighbor_allgatherv",
                                            "MPI_Neighbor_alltoall",
                                            "MPI_Neighbor_alltoallv",
                                            "MPI_Neighbor_alltoallw"};
static_assert(sizeof functions / sizeof *functions == size_t(Kind::last));
inline const char* function_of(Kind kind) { return functions[size_t(kind)]; }

enum class Algorithm : uint8_t {
  automatic,
  direct,             // everyone to everyone, the root to each: from and into the user's buffers
  binomial,           // a tree whose halves shrink by two
  dissemination,      // barrier: rounds of doubling distance
  scatter_allgather,  // bcast: pieces from the root, then round a ring
  bruck,              // log(n) rounds with growing packets
  ring,               // to the next rank, n - 1 times
  pairwise,           // one partner in each round
  doubling,           // recursive doubling, nearest first
  halving,            // recursive halving, nearest first, then doubling where all want all
  chain,              // bcast: in pieces from node to node, and in each down a tree
  by_node,            // first within each node, then one message between two ranks of two nodes
  last
};

// How the ranks of a communicator share cores: all of them come to the same answer, as every rank
// knows the cores of its whole machine, and who shares memory with it.
enum class Sharing : uint8_t {
  unknown,
  apart,    // on one node, with a core for each rank
  crowded,  // on one node that has more ranks than cores
  nodes,    // on several nodes, side by side, with equally many ranks on each, two at least
  wire      // on several nodes, in any other way
};
// Looks at the ranks once, then remembers it in the communicator.
Sharing sharing_of(protocols::Engine& engine, objects::Comm* comm);
// How many ranks each node has; 1 where they do not lie so. On one node as many as one supposes for
// algorithms that are forced.
int ranks_a_node_of(protocols::Engine& engine, objects::Comm* comm);
// By which the node of a rank is known; 0: it is not. On one node by the nodes that one supposes.
uint64_t node_of(protocols::Engine& engine, objects::Comm* comm, int rank);
// By which the node of a process is known; 0: it is not, or shares memory with nobody.
uint64_t node_of(protocols::Engine& engine, uint32_t process);

// What the user forces: an algorithm for each kind, or automatic.
struct Forced {
  Algorithm of[uint32_t(Kind::last)] = {};
};

// Reads "allreduce=halving,bcast=binomial". A part that names nothing we have is skipped, and
// `bad(part, length)` told of it.
void parse(const char* text, Forced& forced, void (*bad)(const char* part, uint64_t length));

// `bytes`: of the whole vector for bcast and reductions, of one rank's block for the others, zero
// where ranks do not know each other's (v and w forms).
Algorithm choose(const Forced& forced, Kind kind, int ranks, uint64_t bytes, Sharing sharing);

const char* name_of(Algorithm algorithm);

}  // namespace headway::collectives
