/* Sends BYTES round a ring of ranks, STEPS times, checks what arrives, and says on which host each
 * rank is and how many ranks share its memory. The first rank of each host sends to the next host,
 * so the bytes on the network cards are known. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, node_size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &node_size);
  int bytes = argc > 1 ? atoi(argv[1]) : 100000;
  int steps = argc > 2 ? atoi(argv[2]) : 10;
  unsigned char* out = malloc((size_t)bytes);
  unsigned char* in = malloc((size_t)bytes);
  int left = (rank + size - 1) % size;
  int right = (rank + 1) % size;
  long wrong = 0;
  double start = MPI_Wtime();
  for (int step = 0; step < steps; ++step) {
    memset(out, rank * 7 + step, (size_t)bytes);
    memset(in, 255, (size_t)bytes);
    MPI_Sendrecv(out, bytes, MPI_BYTE, right, 1, in, bytes, MPI_BYTE, left, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < bytes; ++i) wrong += in[i] != (unsigned char)(left * 7 + step);
  }
  double each = (MPI_Wtime() - start) / steps;
  char host[64];
  gethostname(host, sizeof host);
  printf("rank=%d size=%d host=%s node=%d wrong=%ld step_ms=%.2f\n", rank, size, host, node_size,
         wrong, each * 1e3);
  free(out);
  free(in);
  MPI_Comm_free(&node);
  MPI_Finalize();
  return wrong != 0;
}
