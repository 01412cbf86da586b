// Time of a halo exchange, four blocks a rank, in four ways: sends and receives by hand, the same
// persistent, MPI_Neighbor_alltoall, the same persistent. The ranks are a periodic grid of two
// dimensions, as square as they can be. Any MPI of the standard, by hand:
//   mpicc -O2 bench/halo.c -o halo && mpiexec -n 2 ./halo [ROUNDS]
// The ways take turns in each round. Rank 0 prints microseconds an exchange: the median of the
// rounds, and the least and the most; and each way's median as a multiple of that by hand.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ways = 4, sides = 4, most_bytes = 64 << 10, most_rounds = 1000 };
static const char* const names[ways] = {"by hand", "persistent", "neighbor", "neighbor_init"};
static MPI_Comm grid;
static int neighbours[sides];
static char out[sides * most_bytes], in[sides * most_bytes];  // of all ways: blocks side by side

// Block s of the sender is block s ^ 1 of the receiver: the tag of a message is its sender's block.
static void by_hand(int bytes) {
  MPI_Request all[2 * sides];
  for (int s = 0; s < sides; s++)
    MPI_Irecv(in + s * bytes, bytes, MPI_BYTE, neighbours[s], s ^ 1, grid, &all[s]);
  for (int s = 0; s < sides; s++)
    MPI_Isend(out + s * bytes, bytes, MPI_BYTE, neighbours[s], s, grid, &all[sides + s]);
  MPI_Waitall(2 * sides, all, MPI_STATUSES_IGNORE);
}

static int by_time(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// What the way before this has left.
static void look(int bytes) {
  for (int s = 0; s < sides; s++) {
    for (int i = 0; i < bytes; i++) {
      const char wanted = (char)(1 + 10 * (neighbours[s] % 10) + (s ^ 1));
      if (in[s * bytes + i] == wanted) continue;
      fprintf(stderr, "halo: block %d has a wrong byte %d\n", s, i);
      MPI_Abort(MPI_COMM_WORLD, 3);
    }
  }
}

static void measure(int bytes, int rounds, int rank) {
  static double times[ways][most_rounds];
  const int calls = bytes <= 8192 ? 500 : 100;
  MPI_Request persistent[2 * sides], neighbor;
  for (int s = 0; s < sides; s++) {
    char* const sent = out + s * bytes;
    memset(sent, 1 + 10 * (rank % 10) + s, (size_t)bytes);
    MPI_Recv_init(in + s * bytes, bytes, MPI_BYTE, neighbours[s], s ^ 1, grid, &persistent[s]);
    MPI_Send_init(sent, bytes, MPI_BYTE, neighbours[s], s, grid, &persistent[sides + s]);
  }
  MPI_Neighbor_alltoall_init(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, grid, MPI_INFO_NULL,
                             &neighbor);
  for (int round = -1; round < rounds; round++) {  // the first one warms up
    for (int way = 0; way < ways; way++) {
      MPI_Barrier(grid);
      const double start = MPI_Wtime();
      for (int i = 0; i < calls; i++) {
        if (way == 0) {
          by_hand(bytes);
        } else if (way == 1) {
          MPI_Startall(2 * sides, persistent);
          MPI_Waitall(2 * sides, persistent, MPI_STATUSES_IGNORE);
        } else if (way == 2) {
          MPI_Neighbor_alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, grid);
        } else {
          MPI_Start(&neighbor);
          MPI_Wait(&neighbor, MPI_STATUS_IGNORE);
        }
      }
      if (round >= 0) times[way][round] = (MPI_Wtime() - start) * 1e6 / calls;
      look(bytes);
      memset(in, 0, sizeof in);
    }
  }
  for (int i = 0; i < 2 * sides; i++) MPI_Request_free(&persistent[i]);
  MPI_Request_free(&neighbor);
  if (rank != 0) return;
  for (int way = 0; way < ways; way++) {
    qsort(times[way], (size_t)rounds, sizeof **times, by_time);
    printf("%6d B  %-14s %9.2f us (%.2f to %.2f), %.2f of by hand\n", bytes, names[way],
           times[way][rounds / 2], times[way][0], times[way][rounds - 1],
           times[way][rounds / 2] / times[0][rounds / 2]);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rounds = argc > 1 ? atoi(argv[1]) : 21, size, rank, lengths[2] = {0, 0};
  const int periods[2] = {1, 1};
  if (rounds < 1 || rounds > most_rounds) rounds = 21;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, 2, lengths);
  MPI_Cart_create(MPI_COMM_WORLD, 2, lengths, periods, 1, &grid);
  MPI_Comm_rank(grid, &rank);
  for (int d = 0; d < 2; d++)
    MPI_Cart_shift(grid, d, 1, &neighbours[2 * d], &neighbours[2 * d + 1]);
  const int sizes[] = {8, 1024, 8192, 65536};
  for (int i = 0; i < 4; i++) measure(sizes[i], rounds, rank);
  MPI_Comm_free(&grid);
  MPI_Finalize();
  return 0;
}
