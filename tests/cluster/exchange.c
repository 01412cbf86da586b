// Two ranks that each have a message for the other, again and again: the time of an exchange.
// argv: bytes of a message, exchanges. Rank 0 prints the seconds that all of them took.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 3) {
    fprintf(stderr, "usage: exchange BYTES EXCHANGES\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int bytes = atoi(argv[1]), exchanges = atoi(argv[2]), other = 1 - rank;
  char* in = malloc((size_t)bytes);
  char* out = malloc((size_t)bytes);
  memset(out, 'a' + rank, (size_t)bytes);
  double began = 0;
  // The first ones open the connection and tell what the link takes.
  for (int i = -3; i < exchanges; ++i) {
    if (i == 0) began = MPI_Wtime();
    MPI_Request both[2];
    MPI_Irecv(in, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(out, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    for (int at = 0; at < bytes; at += 4096) {
      if (in[at] != 'a' + other) MPI_Abort(MPI_COMM_WORLD, 3);
    }
  }
  if (rank == 0) printf("%.6f\n", MPI_Wtime() - began);
  MPI_Finalize();
  return 0;
}
