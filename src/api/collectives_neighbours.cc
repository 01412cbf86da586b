// Collectives of neighbours: MPI 5.0, section 8.6. A block for each edge of the topology, in the
// order of its lists.
#include "api/detail/collective.h"
#include "objects/topology.h"

using namespace headway;
using namespace headway::api;

namespace {

using collectives::Blocks;
using collectives::Kind;
using objects::Neighbours;
using objects::Topology;

// Finds the communicator, whose topology a collective can use.
int take_neighbours(Story& story, MPI_Comm comm, const Topology*& topology) {
  if (const int code = take_comm(story, comm)) return code;
  topology = story.comm->topology;
  if (!topology) [[unlikely]] {
    return raise(story, MPI_ERR_TOPOLOGY, "the communicator has no topology",
                 "pass one that MPI_Cart_create, MPI_Graph_create or MPI_Dist_graph_create "
                 "made, or a duplicate of it",
                 "the communicator that the topology was made from was passed instead of the new "
                 "one");
  }
  if (topology->fits_both_ways()) [[likely]]
    return MPI_SUCCESS;
  if (topology->kind() == Topology::Kind::edges) {
    return raise(
        story, MPI_ERR_TOPOLOGY,
        "an edge was named by one of its ends alone, or more often there than at the other "
        "end, when the graph was made",
        "let each rank that another one names as its source name that one as a "
        "destination, equally often",
        "sources and destinations in each other's place, or a neighbourhood that only one "
        "side sees");
  }
  return raise(story, MPI_ERR_TOPOLOGY,
               "the graph is not symmetric: a node names another one more often than that one "
               "names it",
               "let both nodes of an edge name each other equally often, or make a distributed "
               "graph, whose edges have one direction");
}

int refuse_in_place_of(const Story& story, const void* buffer) {
  if (!is_in_place(buffer)) [[likely]]
    return MPI_SUCCESS;
  return raise(story, MPI_ERR_BUFFER, "collectives of neighbours have no meaning for MPI_IN_PLACE",
               "pass a buffer with the data to send, apart from the one to receive it in");
}

// Without a block the buffer means nothing, and may be a null pointer.
const void* looked_at(const Story& story, const void* buffer, int number) {
  return number > 0 ? buffer : &story;
}

// Data that goes along every edge.
int take_same(Story& story, const void* buffer, int64_t count, MPI_Datatype datatype, int number,
              collectives::Data& data) {
  if (const int code = refuse_in_place_of(story, buffer)) return code;
  if (const int code = take_data(story, looked_at(story, buffer, number), count, datatype)) {
    return code;
  }
  data = data_of(story, buffer);
  if (number == 0) data.count = 0;
  return MPI_SUCCESS;
}

// Blocks of one length.
int take_even(Story& story, const void* buffer, int64_t count, MPI_Datatype datatype, int number,
              Blocks& blocks) {
  if (const int code = refuse_in_place_of(story, buffer)) return code;
  return take_blocks(story, looked_at(story, buffer, number), count, datatype, number, blocks);
}

[[gnu::cold]] int raise_block(const Story& story, Neighbours neighbours, int block, int64_t place) {
  base::Text<200> why;
  why << "the displacement " << place << " of the block of neighbour " << block << ", rank "
      << neighbours[block] << ", leads beyond any memory";
  return raise(story, MPI_ERR_ARG, why.c_str(),
               "displacements count in extents of the datatype, in MPI_Neighbor_alltoallw in bytes",
               "a displacement that was computed and has overflowed, or was never set");
}

// Blocks with a length and a place each. `names`: those of the two lists.
template <class Count, class Place>
int take_each(Story& story, const char* names, const void* buffer, const Count* counts,
              const Place* places, MPI_Datatype datatype, Neighbours neighbours, Blocks& blocks) {
  const int number = neighbours.count;
  if (const int code = refuse_in_place_of(story, buffer)) return code;
  if (number > 0) {
    if (const int code = check_given(story, names, counts, places)) return code;
  }
  int64_t most = 0;
  for (int i = 0; i < number && most >= 0; ++i) {
    if (counts[i] < 0 || counts[i] > most) most = counts[i];
  }
  if (const int code = take_data(story, looked_at(story, buffer, number), most, datatype)) {
    return code;
  }
  for (int i = 0; i < number; ++i) {
    if (counts[i] == 0 || neighbours[i] == objects::no_neighbour) continue;
    if (base::leads_somewhere(places[i], story.type->extent())) continue;
    return raise_block(story, neighbours, i, places[i]);
  }
  blocks = Blocks::uneven(const_cast<void*>(buffer), datatypes::Integers(counts),
                          datatypes::Integers(places), story.type);
  return MPI_SUCCESS;
}

using Types = base::Vec<const datatypes::Type*>;

// The same with types of their own. The type of an empty block, or of nobody's, means nothing.
// Displacements from MPI_BOTTOM are addresses: what counts is where the block itself lies.
template <class Count>
int take_typed(Story& story, const char* names, const void* buffer, const Count* counts,
               const MPI_Aint* places, const MPI_Datatype* datatypes, Neighbours neighbours,
               Types& types, Blocks& blocks) {
  const int number = neighbours.count;
  if (const int code = refuse_in_place_of(story, buffer)) return code;
  if (number > 0) {
    if (const int code = check_given(story, names, counts, places, datatypes)) return code;
  }
  for (int i = 0; i < number; ++i) {
    const datatypes::Type* type = nullptr;
    if (counts[i] < 0 || (counts[i] > 0 && neighbours[i] != objects::no_neighbour)) {
      if (!base::leads_somewhere(places[i], 1)) {
        return raise_block(story, neighbours, i, places[i]);
      }
      const void* block = base::moved(buffer, places[i]);
      if (const int code = take_data(story, block, counts[i], datatypes[i])) return code;
      type = story.type;
    }
    if (!types.push(type)) return raise(story, Outcome::no_memory);
  }
  blocks = Blocks::typed(const_cast<void*>(buffer), datatypes::Integers(counts),
                         datatypes::Integers(places), types.data());
  return MPI_SUCCESS;
}

constexpr char another_buffer[] = "use a second buffer: neighbours have no MPI_IN_PLACE";

int refuse_shared_by(const Story& story, const Topology& topology, const collectives::Data& in,
                     const Blocks& out) {
  return refuse_shared(story, Side(in), Side(out, topology.sources()), another_buffer);
}
int refuse_shared_by(const Story& story, const Topology& topology, const Blocks& in,
                     const Blocks& out) {
  return refuse_shared(story, Side(in, topology.targets()), Side(out, topology.sources()),
                       another_buffer);
}

int allgather(const char* call, const void* sendbuf, int64_t sendcount, MPI_Datatype sendtype,
              void* recvbuf, int64_t recvcount, MPI_Datatype recvtype, MPI_Comm comm,
              const Way& way) {
  Story story{.call = call};
  const Topology* topology;
  if (const int code = take_neighbours(story, comm, topology)) return code;
  collectives::Data in;
  Blocks out;
  if (const int code =
          take_same(story, sendbuf, sendcount, sendtype, topology->targets().count, in)) {
    return code;
  }
  if (const int code =
          take_even(story, recvbuf, recvcount, recvtype, topology->sources().count, out)) {
    return code;
  }
  if (const int code = refuse_shared_by(story, *topology, in, out)) return code;
  int ended = MPI_SUCCESS;
  if (done_now(story, way, ended, [&](const auto& place, auto& waiter, Outcome& outcome) {
        return collectives::neighbor_allgather_now(place, waiter, in, out, outcome);
      })) {
    return ended;
  }
  return launch(story,
                collectives::neighbor_allgather(place_of(story), in, out, Kind::neighbor_allgather),
                way);
}

template <class Count, class Place>
int allgatherv(const char* call, const void* sendbuf, int64_t sendcount, MPI_Datatype sendtype,
               void* recvbuf, const Count* recvcounts, const Place* displs, MPI_Datatype recvtype,
               MPI_Comm comm, const Way& way) {
  Story story{.call = call};
  const Topology* topology;
  if (const int code = take_neighbours(story, comm, topology)) return code;
  collectives::Data in;
  Blocks out;
  if (const int code =
          take_same(story, sendbuf, sendcount, sendtype, topology->targets().count, in)) {
    return code;
  }
  if (const int code = take_each(story, "recvcounts, displs", recvbuf, recvcounts, displs, recvtype,
                                 topology->sources(), out)) {
    return code;
  }
  if (const int code = refuse_shared_by(story, *topology, in, out)) return code;
  return launch(
      story, collectives::neighbor_allgather(place_of(story), in, out, Kind::neighbor_allgatherv),
      way);
}

int alltoall(const char* call, const void* sendbuf, int64_t sendcount, MPI_Datatype sendtype,
             void* recvbuf, int64_t recvcount, MPI_Datatype recvtype, MPI_Comm comm,
             const Way& way) {
  Story story{.call = call};
  const Topology* topology;
  if (const int code = take_neighbours(story, comm, topology)) return code;
  Blocks in, out;
  if (const int code =
          take_even(story, sendbuf, sendcount, sendtype, topology->targets().count, in)) {
    return code;
  }
  if (const int code =
          take_even(story, recvbuf, recvcount, recvtype, topology->sources().count, out)) {
    return code;
  }
  if (const int code = refuse_shared_by(story, *topology, in, out)) return code;
  int ended = MPI_SUCCESS;
  if (done_now(story, way, ended, [&](const auto& place, auto& waiter, Outcome& outcome) {
        return collectives::neighbor_alltoall_now(place, waiter, in, out, outcome);
      })) {
    return ended;
  }
  return launch(story,
                collectives::neighbor_alltoall(place_of(story), in, out, Kind::neighbor_alltoall),
                way);
}

template <class Count, class Place>
int alltoallv(const char* call, const void* sendbuf, const Count* sendcounts, const Place* sdispls,
              MPI_Datatype sendtype, void* recvbuf, const Count* recvcounts, const Place* rdispls,
              MPI_Datatype recvtype, MPI_Comm comm, const Way& way) {
  Story story{.call = call};
  const Topology* topology;
  if (const int code = take_neighbours(story, comm, topology)) return code;
  Blocks in, out;
  if (const int code = take_each(story, "sendcounts, sdispls", sendbuf, sendcounts, sdispls,
                                 sendtype, topology->targets(), in)) {
    return code;
  }
  if (const int code = take_each(story, "recvcounts, rdispls", recvbuf, recvcounts, rdispls,
                                 recvtype, topology->sources(), out)) {
    return code;
  }
  if (const int code = refuse_shared_by(story, *topology, in, out)) return code;
  return launch(story,
                collectives::neighbor_alltoall(place_of(story), in, out, Kind::neighbor_alltoallv),
                way);
}

// Displacements are of 64 bits in both widths.
template <class Count>
int alltoallw(const char* call, const void* sendbuf, const Count* sendcounts,
              const MPI_Aint* sdispls, const MPI_Datatype* sendtypes, void* recvbuf,
              const Count* recvcounts, const MPI_Aint* rdispls, const MPI_Datatype* recvtypes,
              MPI_Comm comm, const Way& way) {
  Story story{.call = call};
  const Topology* topology;
  if (const int code = take_neighbours(story, comm, topology)) return code;
  Types send_types, receive_types;
  Blocks in, out;
  if (const int code = take_typed(story, "sendcounts, sdispls, sendtypes", sendbuf, sendcounts,
                                  sdispls, sendtypes, topology->targets(), send_types, in)) {
    return code;
  }
  if (const int code = take_typed(story, "recvcounts, rdispls, recvtypes", recvbuf, recvcounts,
                                  rdispls, recvtypes, topology->sources(), receive_types, out)) {
    return code;
  }
  if (const int code = refuse_shared_by(story, *topology, in, out)) return code;
  return launch(story,
                collectives::neighbor_alltoall(place_of(story), in, out, Kind::neighbor_alltoallw),
                way);
}

}  // namespace

#include "api/entries/collectives_neighbours.inl"
