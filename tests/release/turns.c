/* Several long messages at once over a slow link, sent in the reverse order of their receives, and
 * which of them is there first.
 *   turns BYTES MESSAGES first|late
 * Rank 1 prints "ms T share S": from the end of its wait until all is read, and the share of it
 * until the first message of the receives was read whole, or one page of the one whose turn is
 * last: two begin as they are announced, the others follow in the order of their receives. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(const unsigned char* data, int from, int to, int number) {
  for (int i = from; i < to; ++i) {
    if (data[i] == (unsigned char)(number + i)) continue;
    fprintf(stderr, "message %d: byte %d is wrong\n", number, i);
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 4) MPI_Abort(MPI_COMM_WORLD, 2);
  const int bytes = atoi(argv[1]), messages = atoi(argv[2]);
  const int touched = strcmp(argv[3], "late") == 0 ? messages - 3 : -1;
  unsigned char** data = malloc((size_t)messages * sizeof *data);
  MPI_Request* requests = malloc((size_t)messages * sizeof *requests);
  for (int m = 0; m < messages; ++m) {
    data[m] = malloc((size_t)bytes);
    for (int i = 0; i < bytes; ++i) data[m][i] = rank ? 0 : (unsigned char)(m + i);
  }
  /* The first message of a link is not released: it tells how fast the link is. */
  if (rank == 0) MPI_Send(data[0], bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(data[0], bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int m = 0; m < messages && rank == 1; ++m) {
    memset(data[m], 0, (size_t)bytes);
    MPI_Irecv(data[m], bytes, MPI_BYTE, 0, m, MPI_COMM_WORLD, &requests[m]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int m = messages; m-- > 0 && rank == 0;) {
    MPI_Send(data[m], bytes, MPI_BYTE, 1, m, MPI_COMM_WORLD);
  }
  if (rank == 1) {
    MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE);
    const double start = MPI_Wtime();
    if (touched >= 0) {
      check(data[touched], bytes / 2, bytes / 2 + 1, touched);
    } else {
      check(data[0], 0, bytes, 0);
    }
    const double one = MPI_Wtime() - start;
    for (int m = 0; m < messages; ++m) check(data[m], 0, bytes, m);
    const double all = MPI_Wtime() - start;
    printf("ms %.1f share %.3f\n", 1e3 * all, one / all);
  }
  MPI_Finalize();
  return 0;
}
