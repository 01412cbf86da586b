/* Rank 0 sends one message to rank 1, then all look for messages until the file argv[1] is there:
 * none may come. Then rank 0 sends to rank 2, and each rank says what it has heard. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

#define SECONDS 120.0

static int forged;

static void look(void) {
  int there = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status);
  if (!there) return;
  char text[64] = "";
  MPI_Recv(text, sizeof text - 1, MPI_CHAR, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
  printf("FORGED: '%s' from %d\n", text, status.MPI_SOURCE);
  fflush(stdout);
  ++forged;
}

static void hear(void) {
  char text[64] = "";
  MPI_Recv(text, sizeof text - 1, MPI_CHAR, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  printf("heard '%s'\n", text);
  fflush(stdout);
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) MPI_Send("the first", 10, MPI_CHAR, 1, 7, MPI_COMM_WORLD);
  if (rank == 1) hear();
  const double end = MPI_Wtime() + SECONDS;
  while (access(argv[1], F_OK) != 0 && MPI_Wtime() < end) {
    look();
    usleep(1000);
  }
  if (rank == 0) MPI_Send("the second", 11, MPI_CHAR, 2, 7, MPI_COMM_WORLD);
  if (rank == 2 && !forged) hear();
  printf("rank %d: %d forged\n", rank, forged);
  MPI_Finalize();
  return forged != 0;
}
