/* recorded: one call of each family that a recording knows, in an order that the test knows, on two
   ranks or more. Rank 0 and 1 talk; all take part in collectives. Each phase stands in a function
   of its own name. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static char out[1 << 16], in[1 << 16];

__attribute__((noinline)) static void blocking(void) {
  for (int i = 0; i < 3; ++i) {
    if (rank == 0) MPI_Send(out, 100 + i, MPI_CHAR, 1, 10 + i, MPI_COMM_WORLD);
    if (rank == 1)
      MPI_Recv(in, 1000, MPI_CHAR, MPI_ANY_SOURCE, i == 1 ? MPI_ANY_TAG : 10 + i, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  }
  if (rank == 0)
    MPI_Sendrecv(out, 5, MPI_INT, 1, 3, in, 50, MPI_INT, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1)
    MPI_Sendrecv(out, 6, MPI_INT, 0, 4, in, 50, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

__attribute__((noinline)) static void requests(void) {
  MPI_Request several[40];
  if (rank < 2) {
    const int other = 1 - rank;
    for (int i = 0; i < 20; ++i)
      MPI_Irecv(in + 64 * i, 64, MPI_CHAR, other, i, MPI_COMM_WORLD, &several[i]);
    for (int i = 0; i < 20; ++i)
      MPI_Isend(out + 64 * i, 32 + i, MPI_CHAR, other, i, MPI_COMM_WORLD, &several[20 + i]);
    MPI_Waitall(40, several, MPI_STATUSES_IGNORE);
    MPI_Waitall(40, several, MPI_STATUSES_IGNORE); /* all null */
    for (int i = 0; i < 3; ++i)
      MPI_Irecv(in + 64 * i, 64, MPI_CHAR, other, 30 + i, MPI_COMM_WORLD, &several[i]);
    for (int i = 0; i < 3; ++i)
      MPI_Isend(out + 64 * i, 40 + i, MPI_CHAR, other, 30 + i, MPI_COMM_WORLD, &several[3 + i]);
    for (int left = 6, index; left > 3; --left) MPI_Waitany(6, several, &index, MPI_STATUS_IGNORE);
    for (int left = 3; left > 0;) {
      int done = 0, indices[6];
      MPI_Waitsome(6, several, &done, indices, MPI_STATUSES_IGNORE);
      left -= done;
    }
    MPI_Isendrecv(out, 7, MPI_CHAR, other, 35, in, 64, MPI_CHAR, other, 35, MPI_COMM_WORLD,
                  &several[0]);
    MPI_Wait(&several[0], MPI_STATUS_IGNORE);
  }
}

__attribute__((noinline)) static void tests(void) {
  MPI_Request request;
  int flag = 0;
  if (rank == 0) {
    MPI_Irecv(in, 64, MPI_CHAR, 1, 50, MPI_COMM_WORLD, &request);
    for (int i = 0; i < 7; ++i)
      MPI_Test(&request, &flag, MPI_STATUS_IGNORE); /* nothing can be there yet */
    MPI_Send(out, 1, MPI_CHAR, 1, 51, MPI_COMM_WORLD);
    while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  } else if (rank == 1) {
    MPI_Recv(in, 1, MPI_CHAR, 0, 51, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(out, 33, MPI_CHAR, 0, 50, MPI_COMM_WORLD);
  }
}

__attribute__((noinline)) static void persistent(void) {
  MPI_Request both[2];
  if (rank < 2) {
    MPI_Recv_init(in, 64, MPI_CHAR, 1 - rank, 60, MPI_COMM_WORLD, &both[0]);
    MPI_Send_init(out, 48, MPI_CHAR, 1 - rank, 60, MPI_COMM_WORLD, &both[1]);
    for (int i = 0; i < 4; ++i) {
      MPI_Startall(2, both);
      MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&both[0]);
    MPI_Request_free(&both[1]);
  }
}

__attribute__((noinline)) static void probes(void) {
  if (rank == 0) {
    MPI_Send(out, 70, MPI_CHAR, 1, 70, MPI_COMM_WORLD);
    MPI_Send(out, 71, MPI_CHAR, 1, 71, MPI_COMM_WORLD);
    MPI_Send(out, 72, MPI_CHAR, 1, 71, MPI_COMM_WORLD);
  } else if (rank == 1) {
    MPI_Status status;
    MPI_Message message;
    MPI_Request request;
    MPI_Probe(0, 70, MPI_COMM_WORLD, &status);
    MPI_Recv(in, 100, MPI_CHAR, 0, 70, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Mprobe(MPI_ANY_SOURCE, 71, MPI_COMM_WORLD, &message, &status);
    MPI_Mrecv(in, 100, MPI_CHAR, &message, MPI_STATUS_IGNORE);
    MPI_Mprobe(0, 71, MPI_COMM_WORLD, &message, &status);
    MPI_Imrecv(in, 100, MPI_CHAR, &message, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

__attribute__((noinline)) static void collectives(void) {
  int sum = 0;
  MPI_Request request;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Bcast(out, 1000, MPI_CHAR, 1, MPI_COMM_WORLD);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Alltoall(out, 8, MPI_CHAR, in, 8, MPI_CHAR, MPI_COMM_WORLD);
}

/* Made in one order, started in different ones, unless IN_ORDER is defined. */
__attribute__((noinline)) static void persistent_collectives(void) {
  MPI_Request broadcast, barrier;
  MPI_Bcast_init(out, 500, MPI_CHAR, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &broadcast);
  MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &barrier);
  for (int i = 0; i < 3; ++i) {
    MPI_Request both[2];
#ifdef IN_ORDER
    both[0] = broadcast;
    both[1] = barrier;
#else
    both[0] = rank == 0 ? broadcast : barrier;
    both[1] = rank == 0 ? barrier : broadcast;
#endif
    if (rank == 0) {
      MPI_Startall(2, both);
    } else {
      MPI_Start(&both[0]);
      MPI_Start(&both[1]);
    }
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
  }
  MPI_Start(&broadcast);
  MPI_Wait(&broadcast, MPI_STATUS_IGNORE);
  MPI_Request_free(&broadcast);
  MPI_Request_free(&barrier);
}

__attribute__((noinline)) static void communicators(void) {
  MPI_Comm twin, half, reversed;
  MPI_Comm_dup(MPI_COMM_WORLD, &twin);
  MPI_Comm_set_name(twin, "the \"twin\"");
  MPI_Comm_split(twin, rank % 2, 0, &half);
  MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : MPI_UNDEFINED, -rank, &reversed);
  MPI_Barrier(half);
  if (rank == 0)
    MPI_Send(out, 9, MPI_CHAR, 0, 80, reversed); /* its rank 0 is rank 1 of the world */
  if (rank == 1) MPI_Recv(in, 9, MPI_CHAR, 1, 80, reversed, MPI_STATUS_IGNORE);
  if (reversed != MPI_COMM_NULL) MPI_Comm_free(&reversed);
  MPI_Comm_free(&half);
  MPI_Comm_free(&twin);
}

__attribute__((noinline)) static void cancelled(void) {
  MPI_Request request;
  MPI_Irecv(in, 10, MPI_CHAR, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

__attribute__((noinline)) static void switched(void) {
  MPI_Pcontrol(0);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Pcontrol(1);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const long barriers = argc > 1 ? atol(argv[1]) : 0;
  blocking();
  requests();
  tests();
  persistent();
  probes();
  collectives();
  persistent_collectives();
  communicators();
  cancelled();
  switched();
  for (long i = 0; i < barriers; ++i) MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return argc > 2 ? atoi(argv[2]) : 0;
}
