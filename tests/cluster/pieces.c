/* Broadcasts and reductions of many lengths from every root, on two communicators of all ranks: in
 * one those of a host stand side by side, in the other the hosts take turns. argv: ranks of a host,
 * bytes of a long message. Rank 0 prints for each communicator how many elements were wrong, and
 * how many times a long broadcast went over TCP: out of the rank that sent most, and of all. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "counter.h"

static int32_t number(int root, int count, int i) {
  return (int32_t)((uint32_t)root * 2654435761u ^ (uint32_t)count * 40503u ^ (uint32_t)i * 7919u);
}

/* Odd ranks have every second element. */
static long broadcast(MPI_Comm comm, int rank, int root, int count) {
  const int step = rank % 2 ? 2 : 1;
  int32_t* data = malloc(sizeof *data * (size_t)(count * step + 1));
  MPI_Datatype type;
  long wrong = 0;
  for (int i = 0; i < count * step; ++i) data[i] = -1;
  for (int i = 0; rank == root && i < count; ++i) data[i * step] = number(root, count, i);
  MPI_Type_vector(count, 1, step, MPI_INT32_T, &type);
  MPI_Type_commit(&type);
  MPI_Bcast(data, 1, type, root, comm);
  for (int i = 0; i < count; ++i) {
    wrong += data[i * step] != number(root, count, i);
    wrong += step == 2 && data[i * 2 + 1] != -1;
  }
  MPI_Type_free(&type);
  free(data);
  return wrong;
}

/* Of each root as of all, in their bits. */
static long reduction(MPI_Comm comm, int rank, int root, int count) {
  double* mine = malloc(sizeof *mine * (size_t)(count + 1));
  double* all = malloc(sizeof *all * (size_t)(count + 1));
  double* one = malloc(sizeof *one * (size_t)(count + 1));
  long wrong = 0;
  for (int i = 0; i < count; ++i) one[i] = mine[i] = 1.0 / (3 * rank + i % 101 + 1);
  MPI_Allreduce(mine, all, count, MPI_DOUBLE, MPI_SUM, comm);
  const int in_place = rank == root && count % 2;
  MPI_Reduce(in_place ? MPI_IN_PLACE : mine, one, count, MPI_DOUBLE, MPI_SUM, root, comm);
  for (int i = 0; rank == root && i < count; ++i)
    wrong += memcmp(&one[i], &all[i], sizeof *one) != 0;
  free(mine);
  free(all);
  free(one);
  return wrong;
}

/* What a rank has sent may still be on its way out when everybody has come. */
static void settle(MPI_Comm comm) {
  MPI_Barrier(comm);
  usleep(40000);
}

static void measure(const char* name, MPI_Comm comm, Counter sent, int bytes) {
  static const int counts[] = {0, 1, 1000, 4096, 4097, 8200, 40000};
  int rank, size;
  long wrong = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int root = 0; root < size; ++root) {
    for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i) {
      wrong += broadcast(comm, rank, root, counts[i]);
      wrong += reduction(comm, rank, root, counts[i]);
    }
  }
  char* data = calloc((size_t)bytes, 1);
  double most = 0, all = 0;
  for (int root = 0; root < size; ++root) {
    settle(comm);
    const unsigned long long before = value(sent);
    MPI_Bcast(data, bytes, MPI_BYTE, root, comm);
    settle(comm);
    const double times = (double)(value(sent) - before) / bytes;
    double whole = 0;
    MPI_Allreduce(&times, &whole, 1, MPI_DOUBLE, MPI_SUM, comm);
    if (times > most) most = times;
    if (whole > all) all = whole;
  }
  free(data);
  MPI_Reduce(rank ? &most : MPI_IN_PLACE, &most, 1, MPI_DOUBLE, MPI_MAX, 0, comm);
  MPI_Reduce(rank ? &wrong : MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, 0, comm);
  if (rank == 0) printf("%s wrong=%ld sent=%.3f all=%.3f\n", name, wrong, most, all);
}

int main(int argc, char** argv) {
  int provided, rank;
  MPI_Init(&argc, &argv);
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 3) {
    fprintf(stderr, "usage: pieces RANKS_OF_A_HOST BYTES\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int each = atoi(argv[1]), bytes = atoi(argv[2]);
  const Counter sent = counter("headway_tcp_bytes_out", MPI_T_PVAR_CLASS_AGGREGATE);
  MPI_Comm turns;
  MPI_Comm_split(MPI_COMM_WORLD, 0, rank % each, &turns); /* of one key the ranks' order counts */
  measure("side", MPI_COMM_WORLD, sent, bytes);
  measure("turns", turns, sent, bytes);
  MPI_Comm_free(&turns);
  MPI_T_finalize();
  MPI_Finalize();
  return 0;
}
