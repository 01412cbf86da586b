// Ranks that are dealt out over the hosts, against the order of their neighbours, and topologies of
// them: with reorder, neighbours share hosts. Rank 0 prints for each topology how many ends of
// edges lead to another host, without reorder and with it. What neighbours send is looked at, too.
#include <mpi.h>
#include <stdio.h>

static MPI_Comm dealt; /* the first rank of each host, then the second of each, ... */
static int size, node; /* node: the lowest rank of this host */

static void fail(const char* what, int got, int wanted) {
  fprintf(stderr, "%s is %d, expected %d\n", what, got, wanted);
  MPI_Abort(MPI_COMM_WORLD, 3);
}
static void expect(const char* what, int got, int wanted) {
  if (got != wanted) fail(what, got, wanted);
}

static void deal_out(void) {
  MPI_Comm host;
  int rank, place;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Comm_rank(host, &place);
  MPI_Allreduce(&rank, &node, 1, MPI_INT, MPI_MIN, host);
  MPI_Comm_free(&host);
  MPI_Comm_split(MPI_COMM_WORLD, 0, place * size + rank, &dealt);
}

/* How many of the first `looked_at` neighbours of all ranks are on another host. */
static int crossing(MPI_Comm comm, int looked_at) {
  int nodes[8], own = 0, all = 0;
  for (int i = 0; i < 8; ++i) nodes[i] = node; /* beyond the edge of a grid is nobody */
  MPI_Neighbor_allgather(&node, 1, MPI_INT, nodes, 1, MPI_INT, comm);
  for (int i = 0; i < looked_at; ++i) own += nodes[i] != node;
  MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_SUM, comm);
  return all;
}

static int grid(int dimensions, const int* lengths, const int* periods, int reorder) {
  MPI_Comm comm;
  int rank, found, out[8], in[8];
  MPI_Cart_create(dealt, dimensions, lengths, periods, reorder, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Cart_map(dealt, dimensions, lengths, periods, &found);
  if (reorder) expect("the place of MPI_Cart_map", found, rank);
  for (int i = 0; i < 8; ++i) {
    out[i] = 10 * rank + i;
    in[i] = -1;
  }
  MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, comm);
  for (int d = 0; d < dimensions; ++d) {
    int below, above;
    MPI_Cart_shift(comm, d, 1, &below, &above);
    expect("what comes from below", in[2 * d], below < 0 ? -1 : 10 * below + 2 * d + 1);
    expect("what comes from above", in[2 * d + 1], above < 0 ? -1 : 10 * above + 2 * d);
  }
  const int result = crossing(comm, 2 * dimensions);
  MPI_Comm_free(&comm);
  return result;
}

/* Pairs of ranks side by side. */
static int graph(int reorder) {
  MPI_Comm comm;
  int index[64], edges[64], rank, neighbour;
  for (int i = 0; i < size; ++i) {
    index[i] = i + 1;
    edges[i] = i ^ 1;
  }
  MPI_Graph_create(dealt, size, index, edges, reorder, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Graph_neighbors(comm, rank, 1, &neighbour);
  expect("the neighbour in a graph", neighbour, rank ^ 1);
  const int result = crossing(comm, 1);
  MPI_Comm_free(&comm);
  return result;
}

/* The same pairs with much to say, on a ring with little. */
static int edges_of_own(int reorder, int general) {
  MPI_Comm comm;
  int rank, sources[2], weights[2], targets[2], away[2];
  MPI_Comm_rank(dealt, &rank);
  const int to[] = {rank ^ 1, (rank + 1) % size}, from[] = {rank ^ 1, (rank + size - 1) % size};
  const int weight[] = {100, 1}, two = 2;
  if (general) {
    MPI_Dist_graph_create(dealt, 1, &rank, &two, to, weight, MPI_INFO_NULL, reorder, &comm);
  } else {
    MPI_Dist_graph_create_adjacent(dealt, 2, from, weight, 2, to, weight, MPI_INFO_NULL, reorder,
                                   &comm);
  }
  MPI_Comm_rank(comm, &rank);
  MPI_Dist_graph_neighbors(comm, 2, sources, weights, 2, targets, away);
  expect("the target in a pair", targets[0], rank ^ 1);
  expect("the target on the ring", targets[1], (rank + 1) % size);
  expect("the weight in a pair", away[0], 100);
  int pair = -1;
  for (int i = 0; i < 2; ++i) {
    if (sources[i] == (rank ^ 1) && weights[i] == 100) pair = i;
  }
  if (pair < 0) fail("the source of a pair", sources[0], rank ^ 1);
  int nodes[2] = {node, node}, own, all;
  MPI_Neighbor_allgather(&node, 1, MPI_INT, nodes, 1, MPI_INT, comm);
  own = nodes[pair] != node;
  MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_SUM, comm);
  MPI_Comm_free(&comm);
  return all;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  deal_out();
  const int ring[] = {size}, closed[] = {1}, not_closed[] = {0, 0}, flat[] = {size / 2, 2};
  int counts[5][2];
  for (int reorder = 0; reorder < 2; ++reorder) {
    counts[0][reorder] = grid(1, ring, closed, reorder);
    counts[1][reorder] = grid(2, flat, not_closed, reorder);
    counts[2][reorder] = graph(reorder);
    counts[3][reorder] = edges_of_own(reorder, 0);
    counts[4][reorder] = edges_of_own(reorder, 1);
  }
  const char* const names[] = {"ring", "grid", "graph", "adjacent", "general"};
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; rank == 0 && i < 5; ++i)
    printf("%s %d %d\n", names[i], counts[i][0], counts[i][1]);
  MPI_Comm_free(&dealt);
  MPI_Finalize();
  return 0;
}
