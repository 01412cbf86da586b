// Buffers that share memory where a collective wants two: refused with MPI_ERR_BUFFER by every call
// in all its forms, on every rank where both mean something. And what only looks like it is right:
// blocks side by side or between one another, columns between columns, nothing to send,
// MPI_IN_PLACE.
#include "coll.h"

namespace {

int cells[4096];
int counts[64], places[64];
MPI_Count large_counts[64];
MPI_Aint large_places[64];
MPI_Datatype types[64];

// Two numbers for every rank, side by side; places in numbers, or in bytes for the calls that take
// types.
void lay_out(int unit) {
  for (int r = 0; r < check::size; ++r) {
    large_counts[r] = counts[r] = 2;
    large_places[r] = places[r] = 2 * r * unit;
    types[r] = MPI_INT;
  }
}

void no_request(MPI_Request request) { CHECK_EQ(request, MPI_REQUEST_NULL); }

// A call in its three forms, with the arguments before the communicator in both widths.
#define EACH_FORM(Name, name, suffix, ...)                                             \
  EXPECT_CLASS(MPI_ERR_BUFFER, MPI_##Name##suffix(__VA_ARGS__, comm));                 \
  EXPECT_CLASS(MPI_ERR_BUFFER, MPI_I##name##suffix(__VA_ARGS__, comm, &request));      \
  EXPECT_CLASS(MPI_ERR_BUFFER,                                                         \
               MPI_##Name##_init##suffix(__VA_ARGS__, comm, MPI_INFO_NULL, &request)); \
  no_request(request);
#define ALL_FORMS(Name, name, ...)          \
  do {                                      \
    MPI_Request request = MPI_REQUEST_NULL; \
    EACH_FORM(Name, name, , __VA_ARGS__)    \
    EACH_FORM(Name, name, _c, __VA_ARGS__)  \
  } while (0)
// The lists of counts and places have other types in the large form.
#define LIST_FORMS(Name, name, narrow, large) \
  do {                                        \
    MPI_Request request = MPI_REQUEST_NULL;   \
    EACH_FORM(Name, name, , UNWRAP narrow)    \
    EACH_FORM(Name, name, _c, UNWRAP large)   \
  } while (0)
#define UNWRAP(...) __VA_ARGS__

void rooted(MPI_Comm comm, int rank, int root) {
  if (rank != root) return;  // the other buffer means nothing there
  int* own = cells + 2 * rank;
  ALL_FORMS(Gather, gather, own, 2, MPI_INT, cells, 2, MPI_INT, root);
  ALL_FORMS(Scatter, scatter, cells, 2, MPI_INT, own, 2, MPI_INT, root);
  ALL_FORMS(Reduce, reduce, cells, cells + 1, 2, MPI_INT, MPI_SUM, root);
  LIST_FORMS(Gatherv, gatherv, (own + 1, 1, MPI_INT, cells, counts, places, MPI_INT, root),
             (own + 1, 1, MPI_INT, cells, large_counts, large_places, MPI_INT, root));
  LIST_FORMS(Scatterv, scatterv, (cells, counts, places, MPI_INT, own, 2, MPI_INT, root),
             (cells, large_counts, large_places, MPI_INT, own, 2, MPI_INT, root));
}

void to_all(MPI_Comm comm, int rank, int size) {
  int* own = cells + 2 * rank;
  int* last = cells + 2 * size - 1;
  ALL_FORMS(Allgather, allgather, own, 2, MPI_INT, cells, 2, MPI_INT);
  ALL_FORMS(Alltoall, alltoall, cells, 2, MPI_INT, cells, 2, MPI_INT);
  ALL_FORMS(Alltoall, alltoall, cells, 2, MPI_INT, last, 2, MPI_INT);
  LIST_FORMS(Allgatherv, allgatherv, (last, 2, MPI_INT, cells, counts, places, MPI_INT),
             (last, 2, MPI_INT, cells, large_counts, large_places, MPI_INT));
  LIST_FORMS(
      Alltoallv, alltoallv, (cells, counts, places, MPI_INT, last, counts, places, MPI_INT),
      (cells, large_counts, large_places, MPI_INT, last, large_counts, large_places, MPI_INT));
  lay_out(sizeof(int));
  LIST_FORMS(Alltoallw, alltoallw, (cells, counts, places, types, last, counts, places, types),
             (cells, large_counts, large_places, types, last, large_counts, large_places, types));
  lay_out(1);
}

void reductions(MPI_Comm comm, int rank) {
  int* own = cells + 2 * rank;
  ALL_FORMS(Allreduce, allreduce, cells, cells + 1, 2, MPI_INT, MPI_SUM);
  ALL_FORMS(Scan, scan, cells, cells, 2, MPI_INT, MPI_SUM);
  ALL_FORMS(Exscan, exscan, cells, cells, 2, MPI_INT, MPI_SUM);
  ALL_FORMS(Reduce_scatter_block, reduce_scatter_block, cells, own, 2, MPI_INT, MPI_SUM);
  LIST_FORMS(Reduce_scatter, reduce_scatter, (cells, own, counts, MPI_INT, MPI_SUM),
             (cells, own, large_counts, MPI_INT, MPI_SUM));
  EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Reduce_local(cells, cells + 1, 2, MPI_INT, MPI_SUM));
  EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Reduce_local_c(cells, cells, 2, MPI_INT, MPI_SUM));
}

void refused() {
  lay_out(1);
  MPI_Comm backwards = MPI_COMM_NULL;
  MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, -check::rank, &backwards));
  for (MPI_Comm comm : {MPI_COMM_WORLD, backwards}) {
    int rank = 0;
    MPI(MPI_Comm_rank(comm, &rank));
    for (int root = 0; root < check::size; ++root) rooted(comm, rank, root);
    to_all(comm, rank, check::size);
    reductions(comm, rank);
  }
  MPI(MPI_Comm_free(&backwards));
}

// A block for one other rank is enough, and so is one byte of it.
void one_block() {
  if (check::size < 2) return;
  const int last = check::size - 1;
  MPI_Comm comm = MPI_COMM_WORLD;
  auto* bytes = reinterpret_cast<char*>(cells);
  int into[64];
  for (int r = 0; r < check::size; ++r) {
    counts[r] = 4;
    places[r] = 8 * r;
    into[r] = 1000 + 8 * r;
  }
  into[last] = places[0] + 3;
  EXPECT_CLASS(MPI_ERR_BUFFER,
               MPI_Alltoallv(bytes, counts, places, MPI_BYTE, bytes, counts, into, MPI_BYTE, comm));
  EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Allgatherv(bytes + into[last] + 3, 1, MPI_BYTE, bytes, counts,
                                              into, MPI_BYTE, comm));
}

// The same columns: data with gaps whose bytes are the same.
void columns_refused() {
  MPI_Datatype column = MPI_DATATYPE_NULL, block = MPI_DATATYPE_NULL;
  MPI(MPI_Type_vector(100, 1, 2, MPI_INT, &column));
  MPI(MPI_Type_commit(&column));
  MPI(MPI_Type_vector(4, 3, 4, MPI_INT, &block));
  MPI(MPI_Type_commit(&block));
  MPI_Comm comm = MPI_COMM_WORLD;
  EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Allgather(cells, 1, column, cells, 1, column, comm));
  EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Alltoall(cells, 1, column, cells, 1, column, comm));
  EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Alltoall(cells, 1, block, cells + 2, 1, block, comm));
  EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Allgather(cells + 2, 1, MPI_INT, cells, 1, column, comm));
  MPI(MPI_Type_free(&column));
  MPI(MPI_Type_free(&block));
}

void in_all_forms(void (*body)()) {
  for (coll::Form form : {coll::Form::blocking, coll::Form::immediate, coll::Form::persistent}) {
    coll::form = form;
    body();
  }
}

void fill(int n, int start) {
  for (int i = 0; i < n; ++i) cells[i] = start + i;
}

// Sent and received blocks take turns in one array, the last byte of one beside the first of the
// other; blocks of no bytes lie where the others do.
void turns() {
  const int size = check::size, rank = check::rank;
  int into[64], some[64];
  fill(8 * size, 100 * rank);
  for (int r = 0; r < size; ++r) {
    counts[r] = 2;
    places[r] = 4 * r;
    into[r] = 4 * r + 2;
    some[r] = r == rank ? 0 : 2;
  }
  coll::alltoallv(cells, counts, places, MPI_INT, cells, counts, into, MPI_INT, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) {
    CHECK_EQ(cells[into[r]], 100 * r + places[rank]);
    CHECK_EQ(cells[into[r] + 1], 100 * r + places[rank] + 1);
    CHECK_EQ(cells[places[r]], 100 * rank + places[r]);
  }
  into[rank] = places[rank];
  fill(8 * size, 100 * rank);
  coll::alltoallv(cells, some, places, MPI_INT, cells, some, into, MPI_INT, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) {
    if (r != rank) CHECK_EQ(cells[into[r] + 1], 100 * r + places[rank] + 1);
  }
  // Halves of one array.
  fill(4 * size, 100 * rank);
  int* half = cells + 2 * size;
  coll::alltoall(cells, 2, MPI_INT, half, 2, MPI_INT, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) CHECK_EQ(half[2 * r], 100 * r + 2 * rank);
  fill(4 * size, 100 * rank);
  coll::allreduce(cells, cells + size, size, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK_EQ(cells[size], 100 * size * (size - 1) / 2);
  coll::allgather(cells + size, 1, MPI_INT, cells, 1, MPI_INT, MPI_COMM_WORLD);
  CHECK_EQ(cells[size - 1], 100 * size * (size - 1) / 2);
}

// The own block of a gather lies between those of the others, which leave room for it.
void own_block_apart() {
  const int size = check::size, rank = check::rank;
  for (int r = 0; r < size; ++r) {
    counts[r] = 1;
    places[r] = 2 * r;
  }
  cells[2 * rank + 1] = rank + 7;
  coll::gatherv(cells + 2 * rank + 1, 1, MPI_INT, cells, counts, places, MPI_INT, size - 1,
                MPI_COMM_WORLD);
  for (int r = 0; rank == size - 1 && r < size; ++r) CHECK_EQ(cells[2 * r], r + 7);
  coll::allgatherv(cells + 2 * rank + 1, 1, MPI_INT, cells, counts, places, MPI_INT,
                   MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) CHECK_EQ(cells[2 * r], r + 7);
  coll::scatterv(cells, counts, places, MPI_INT, cells + 2 * rank + 1, 1, MPI_INT, 0,
                 MPI_COMM_WORLD);
  CHECK_EQ(cells[2 * rank + 1], rank + 7);
}

// Even columns out, odd ones in; and rows of a matrix beside each other.
void columns() {
  const int rank = check::rank, size = check::size;
  MPI_Datatype column = MPI_DATATYPE_NULL, wide = MPI_DATATYPE_NULL;
  MPI(MPI_Type_vector(50, 1, 2 * size, MPI_INT, &wide));
  MPI(MPI_Type_create_resized(wide, 0, 2 * sizeof(int), &column));
  MPI(MPI_Type_commit(&column));
  MPI(MPI_Type_free(&wide));
  const int cells_used = 100 * size;
  for (int i = 0; i < cells_used; ++i) cells[i] = 1000 * rank + i;
  coll::alltoall(cells, 1, column, cells + 1, 1, column, MPI_COMM_WORLD);
  for (int i = 0; i < cells_used; ++i) {
    const int from = i % (2 * size) / 2, row = i / (2 * size);
    const int wanted = i % 2 ? 1000 * from + row * 2 * size + 2 * rank : 1000 * rank + i;
    CHECK_EQ(cells[i], wanted);
  }
  MPI(MPI_Type_free(&column));
}

// Nothing is sent, or nothing is received here: the address does not count.
void nothing() {
  const int rank = check::rank, size = check::size;
  MPI_Comm w = MPI_COMM_WORLD;
  for (int r = 0; r < size; ++r) counts[r] = places[r] = 0;
  coll::allgather(cells, 0, MPI_INT, cells, 0, MPI_INT, w);
  coll::alltoall(cells, 0, MPI_INT, cells, 0, MPI_INT, w);
  coll::alltoallv(cells, counts, places, MPI_INT, cells, counts, places, MPI_INT, w);
  coll::allgatherv(cells, 0, MPI_INT, cells, counts, places, MPI_INT, w);
  coll::gatherv(cells, 0, MPI_INT, cells, counts, places, MPI_INT, 0, w);
  coll::scatterv(cells, counts, places, MPI_INT, cells, 0, MPI_INT, 0, w);
  coll::allreduce(cells, cells, 0, MPI_INT, MPI_SUM, w);
  coll::exscan(cells, cells, 0, MPI_INT, MPI_SUM, w);
  MPI(MPI_Reduce_local(cells, cells, 0, MPI_INT, MPI_SUM));
  // One rank gives, and lies in the middle of what it gets from itself, which is nothing.
  counts[0] = 3;
  fill(3, 50);
  int got[3] = {0, 0, 0};
  coll::allgatherv(rank == 0 ? cells : got, rank == 0 ? 3 : 0, MPI_INT, got, counts, places,
                   MPI_INT, w);
  CHECK_EQ(got[2], 52);
  // Away from the root the receive buffer means nothing.
  cells[0] = rank;
  int sum = -1;
  coll::reduce(cells, rank == 0 ? &sum : cells, 1, MPI_INT, MPI_SUM, 0, w);
  if (rank == 0) CHECK_EQ(sum, size * (size - 1) / 2);
}

void in_place() {
  const int rank = check::rank, size = check::size;
  MPI_Comm w = MPI_COMM_WORLD;
  fill(size, 10 * rank);
  coll::alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, cells, 1, MPI_INT, w);
  for (int r = 0; r < size; ++r) CHECK_EQ(cells[r], 10 * r + rank);
  for (int r = 0; r < size; ++r) {
    counts[r] = 1;
    places[r] = r;
  }
  fill(size, 10 * rank);
  coll::allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, cells, counts, places, MPI_INT, w);
  for (int r = 0; r < size; ++r) CHECK_EQ(cells[r], 11 * r);
  cells[0] = 1;
  coll::allreduce(MPI_IN_PLACE, cells, 1, MPI_INT, MPI_SUM, w);
  CHECK_EQ(cells[0], size);
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"refused", refused},
                      {"one_block", one_block},
                      {"columns_refused", columns_refused},
                      {"turns", [] { in_all_forms(turns); }},
                      {"own_block_apart", [] { in_all_forms(own_block_apart); }},
                      {"columns", [] { in_all_forms(columns); }},
                      {"nothing", [] { in_all_forms(nothing); }},
                      {"in_place", [] { in_all_forms(in_place); }}});
}
