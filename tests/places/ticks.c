/* For debuggers: a ring of messages that goes on until somebody sets `stop`, one call of
   take_tick() for each round. With an argument: a branch on what no message has brought, for
   memcheck to find. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

volatile int stop = 0;
int ticks = 0;

static void take_tick(int value) { ticks += value; }

static void wrong(void) {
  int sent[2] = {1, 2};
  int* received = malloc(sizeof sent);
  MPI_Sendrecv(sent, 1, MPI_INT, 0, 0, received, 2, MPI_INT, 0, 0, MPI_COMM_SELF,
               MPI_STATUS_IGNORE);
  printf("%s\n", received[0] == 1 ? "as sent" : "not as sent");
  printf("%s\n", received[1] == 2 ? "by chance" : "never sent");
  free(received);
}

int main(int argc, char** argv) {
  int rank, size, one = 1, in, everywhere = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  printf("rank %d of %d is ready\n", rank, size);
  fflush(stdout);
  if (argc > 1) {
    wrong();
    return MPI_Finalize();
  }
  while (!everywhere) {
    const struct timespec pause = {0, 1000000};
    MPI_Sendrecv(&one, 1, MPI_INT, (rank + 1) % size, 0, &in, 1, MPI_INT, (rank + size - 1) % size,
                 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    take_tick(in);
    MPI_Allreduce((const void*)&stop, &everywhere, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    nanosleep(&pause, NULL);
  }
  printf("rank %d has ticked %s\n", rank, ticks > 0 ? "well" : "never");
  return MPI_Finalize();
}
