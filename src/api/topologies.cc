// Cartesian topologies: MPI 5.0, section 8.5. A grid's ranks are the first ones of the old
// communicator, in their order or, with reorder, so that neighbours share nodes.
#include "api/detail/topologies.h"
#include "api/detail/results.h"
#include "base/vec.h"

using namespace headway;
using namespace headway::api;

namespace {

using objects::Grid;

// Finds the communicator, and its grid; raises MPI_ERR_TOPOLOGY.
int take_grid(Story& story, MPI_Comm comm, const Grid*& grid) {
  if (const int code = take_comm(story, comm)) return code;
  const objects::Topology* topology = story.comm->topology;
  grid = topology ? topology->grid() : nullptr;
  if (grid) return MPI_SUCCESS;
  return raise_no_topology(
      story, "Cartesian",
      "pass one that MPI_Cart_create or MPI_Cart_sub made, or a duplicate of it");
}

// The number of places of a grid that is asked for; raises MPI_ERR_DIMS.
int take_lengths(const Story& story, int dimensions, const int* lengths, int& volume) {
  if (dimensions < 0) {
    return raise(story, MPI_ERR_DIMS, "the number of dimensions is negative", "it goes from 0");
  }
  volume = objects::volume_of(dimensions, lengths);
  if (volume >= 1 && volume <= story.comm->own.size) return MPI_SUCCESS;
  base::Text<200> why;
  if (volume < 1) {
    why << "the length of a dimension is below 1, or their product is above 2147483647";
  } else {
    why << "the grid has " << volume << " places, the communicator only " << story.comm->own.size
        << (story.comm->own.size == 1 ? " rank" : " ranks");
  }
  return raise(story, MPI_ERR_DIMS, why.c_str(),
               "MPI_Dims_create chooses lengths that fit, from the communicator's size");
}

// Makes the communicator of the ranks with the same color, with that grid.
int make_part(const Story& story, int color, int key, int dimensions, const int* lengths,
              const int* periods, MPI_Comm* handle) {
  Grid* grid = Grid::make(dimensions, lengths, periods);
  const Inside inside(story.call, unset, unset, story.comm);
  objects::Comm* made = nullptr;
  const Outcome outcome = communicators::split(makers(), story.comm, color, key, made);
  if (outcome != Outcome::ok) {
    if (grid) grid->release();
    return raise(story, outcome);
  }
  made->topology = objects::Topology::make(grid, made->own.self);
  if (!made->topology) {
    drop(made);
    return raise(story, Outcome::no_memory);
  }
  *handle = handle_of<MPI_Comm>(made->handle);
  return MPI_SUCCESS;
}

int topo_test(const char* call, MPI_Comm comm, int* status) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  *status = MPI_UNDEFINED;
  if (!story.comm->topology) return MPI_SUCCESS;
  switch (story.comm->topology->kind()) {
    case objects::Topology::Kind::grid: *status = MPI_CART; break;
    case objects::Topology::Kind::graph: *status = MPI_GRAPH; break;
    case objects::Topology::Kind::edges: *status = MPI_DIST_GRAPH; break;
  }
  return MPI_SUCCESS;
}

int dims_create(const char* call, int nnodes, int ndims, int dims[]) {
  const Story story{.call = call};
  if (!is_running()) return not_running(story.call);
  if (ndims < 0) return raise(story, MPI_ERR_DIMS, "the number of dimensions is negative");
  if (ndims == 0) return MPI_SUCCESS;
  if (nnodes < 1) {
    return raise(story, MPI_ERR_ARG, "there are less than 1 nodes", "pass a communicator's size");
  }
  if (objects::balance(nnodes, ndims, dims)) return MPI_SUCCESS;
  return raise(story, MPI_ERR_DIMS,
               "a length is negative, or the number of nodes is no multiple of the lengths given",
               "set dims to 0 where MPI_Dims_create shall choose",
               "dims was not set before the call");
}

int cart_create(const char* call, MPI_Comm comm_old, int ndims, const int dims[],
                const int periods[], int reorder, MPI_Comm* comm_cart) {
  Story story{.call = call};
  if (const int code = take_intra(story, comm_old)) return code;
  int volume;
  if (const int code = take_lengths(story, ndims, dims, volume)) return code;
  return make_with(story, Grid::make(ndims, dims, periods), reorder != 0, comm_cart);
}

int cart_map(const char* call, MPI_Comm comm, int ndims, const int dims[], const int periods[],
             int* newrank) {
  Story story{.call = call};
  if (const int code = take_intra(story, comm)) return code;
  int volume;
  if (const int code = take_lengths(story, ndims, dims, volume)) return code;
  Grid* grid = Grid::make(ndims, dims, periods);
  if (!grid) return raise(story, Outcome::no_memory);
  int place = -1;
  const Outcome found = communicators::find_place(makers(), story.comm, *grid, place);
  grid->release();
  if (found != Outcome::ok) return raise(story, found);
  *newrank = place < 0 ? MPI_UNDEFINED : place;
  return MPI_SUCCESS;
}

int cart_sub(const char* call, MPI_Comm comm, const int remain_dims[], MPI_Comm* newcomm) {
  Story story{.call = call};
  const Grid* grid;
  if (const int code = take_grid(story, comm, grid)) return code;
  const int dimensions = grid->dimensions();
  if (dimensions > 0) {
    if (const int code = check_given(story, "remain_dims", remain_dims)) return code;
  }
  // Coordinates; lengths and periods of those that remain. A rank may not leave for want of memory
  // while the others go on: so few dimensions, as all programs have, need none.
  int few[3 * 32];
  base::Vec<int> many;
  const bool are_few = dimensions <= 32;
  if (!are_few && !many.resize(3 * size_t(dimensions))) return raise(story, Outcome::no_memory);
  int* const coordinates = are_few ? few : many.data();
  int* const lengths = coordinates + dimensions;
  int* const periods = lengths + dimensions;
  grid->find_coordinates(story.comm->own.self, coordinates);
  int color = 0, key = 0, remaining = 0;
  for (int i = 0; i < dimensions; ++i) {
    int& number = remain_dims[i] ? key : color;
    number = number * grid->length(i) + coordinates[i];
    if (!remain_dims[i]) continue;
    lengths[remaining] = grid->length(i);
    periods[remaining++] = grid->periodic(i);
  }
  return make_part(story, color, key, remaining, lengths, periods, newcomm);
}

int cartdim_get(const char* call, MPI_Comm comm, int* ndims) {
  Story story{.call = call};
  const Grid* grid;
  if (const int code = take_grid(story, comm, grid)) return code;
  *ndims = grid->dimensions();
  return MPI_SUCCESS;
}

int check_room(const Story& story, const Grid& grid, int maxdims) {
  if (maxdims >= grid.dimensions()) return MPI_SUCCESS;
  return raise(story, MPI_ERR_ARG, "maxdims is less than the number of dimensions",
               "MPI_Cartdim_get tells how long the arrays must be");
}

int cart_get(const char* call, MPI_Comm comm, int maxdims, int dims[], int periods[],
             int coords[]) {
  Story story{.call = call};
  const Grid* grid;
  if (const int code = take_grid(story, comm, grid)) return code;
  if (const int code = check_room(story, *grid, maxdims)) return code;
  if (grid->dimensions() == 0) return MPI_SUCCESS;
  for (int i = 0; i < grid->dimensions(); ++i) {
    dims[i] = grid->length(i);
    periods[i] = grid->periodic(i);
  }
  grid->find_coordinates(story.comm->own.self, coords);
  return MPI_SUCCESS;
}

int cart_coords(const char* call, MPI_Comm comm, int rank, int maxdims, int coords[]) {
  Story story{.call = call};
  const Grid* grid;
  if (const int code = take_grid(story, comm, grid)) return code;
  if (rank < 0 || rank >= story.comm->own.size) {
    return raise(story, MPI_ERR_RANK, "there is no such rank in the communicator");
  }
  if (const int code = check_room(story, *grid, maxdims)) return code;
  if (grid->dimensions() == 0) return MPI_SUCCESS;
  grid->find_coordinates(rank, coords);
  return MPI_SUCCESS;
}

int cart_rank(const char* call, MPI_Comm comm, const int coords[], int* rank) {
  Story story{.call = call};
  const Grid* grid;
  if (const int code = take_grid(story, comm, grid)) return code;
  if (grid->dimensions() > 0) {
    if (const int code = check_given(story, "coords", coords)) return code;
  }
  const int found = grid->find_rank(coords);
  if (found < 0) {
    return raise(story, MPI_ERR_ARG, "a coordinate is outside of a dimension that is not periodic",
                 "MPI_Cart_shift gives MPI_PROC_NULL beyond the edge");
  }
  *rank = found;
  return MPI_SUCCESS;
}

int cart_shift(const char* call, MPI_Comm comm, int direction, int disp, int* rank_source,
               int* rank_dest) {
  Story story{.call = call};
  const Grid* grid;
  if (const int code = take_grid(story, comm, grid)) return code;
  if (direction < 0 || direction >= grid->dimensions()) {
    return raise(story, MPI_ERR_DIMS, "there is no such dimension",
                 "dimensions count from 0, also in Fortran");
  }
  const auto neighbour = [&](int64_t distance) {
    const int found = grid->find_neighbour(story.comm->own.self, direction, distance);
    return found < 0 ? MPI_PROC_NULL : found;
  };
  *rank_source = neighbour(-int64_t(disp));
  *rank_dest = neighbour(disp);
  return MPI_SUCCESS;
}

}  // namespace

#include "api/entries/topologies.inl"
