// Jobs that get on until they are ended: healthy KIND PHASE. KIND: ring, stream, allreduce,
// stencil. PHASE: what a rank does between its rounds: none, compute, sleep; slow: rank 1 computes
// for seconds while the others wait for it.
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static void compute(double seconds) {
  const double end = MPI_Wtime() + seconds;
  while (MPI_Wtime() < end) {
    for (volatile int i = 0; i < 10000; ++i) {
    }
  }
}

// For one second and more in a piece, and without a call of MPI.
static void compute_long(void) {
  for (volatile long i = 0; i < 4000000000L; ++i) {
  }
}

static void ring(void) {
  int token = 0;
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  if (rank == 0) MPI_Send(&token, 1, MPI_INT, right, 0, MPI_COMM_WORLD);
  MPI_Recv(&token, 1, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank) MPI_Send(&token, 1, MPI_INT, right, 0, MPI_COMM_WORLD);
}

// Pairs; each message of another length.
static void stream(unsigned round) {
  enum { longest = 1 << 20 };
  static char data[longest];
  const int peer = rank ^ 1, bytes = 1 << round % 21;
  if (peer >= size) {
    usleep(1000);
  } else if (rank & 1) {
    MPI_Recv(data, bytes, MPI_CHAR, peer, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Send(data, bytes, MPI_CHAR, peer, 7, MPI_COMM_WORLD);
  }
}

static void allreduce(unsigned round) {
  enum { most = 1 << 16 };
  static double in[most], out[most];
  MPI_Allreduce(in, out, 1 << round % 17, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void stencil(void) {
  enum { cells = 1 << 12 };
  static double edges[4][cells];
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  MPI_Request requests[4];
  MPI_Irecv(edges[0], cells, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(edges[1], cells, MPI_DOUBLE, right, 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(edges[2], cells, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(edges[3], cells, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char *kind = argv[1], *phase = argv[2];
  srand((unsigned)rank + 1);
  for (unsigned round = 0;; ++round) {
    if (!strcmp(kind, "ring")) ring();
    if (!strcmp(kind, "stream")) stream(round);
    if (!strcmp(kind, "allreduce")) allreduce(round);
    if (!strcmp(kind, "stencil")) stencil();
    if (!strcmp(phase, "compute")) compute(rand() % 100 * 1e-5);
    if (!strcmp(phase, "sleep")) usleep((unsigned)(rand() % 200) * 1000);
    if (!strcmp(phase, "slow") && rank == 1) compute_long();
  }
}
