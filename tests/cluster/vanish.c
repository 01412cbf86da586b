/* Ranks of two hosts in one of the states in which a host may vanish: argv[1]. Each says when it is
 * there; what then goes on has no end of its own, but for `busy`, `alive` and `leave`, which take
 * argv[2] seconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STREAM (4 << 20)

static int rank, size, other;

static void ready(void) {
  printf("ready %d %d\n", rank, (int)getpid());
  fflush(stdout);
}

static void exchange(char* a, char* b, int n) {
  MPI_Sendrecv(a, n, MPI_CHAR, other, 1, b, n, MPI_CHAR, other, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
}

/* A rank that leaves MPI with a message on its way to the host that is gone. */
static int leave(double seconds) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  char buffer[8] = {0};
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "leave", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  other = (rank + size / 2) % size;
  MPI_Sendrecv(buffer, 4, MPI_CHAR, other, 1, buffer + 4, 4, MPI_CHAR, other, 1, comm,
               MPI_STATUS_IGNORE);
  ready();
  usleep((unsigned)(seconds * 1e6));
  MPI_Send(buffer, 8, MPI_CHAR, other, 2, comm);
  MPI_Session_finalize(&session);
  printf("well %d\n", rank);
  return 0;
}

int main(int argc, char** argv) {
  const char* state = argc > 1 ? argv[1] : "idle";
  const double seconds = argc > 2 ? atof(argv[2]) : 0;
  if (strcmp(state, "leave") == 0) return leave(seconds);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  other = (rank + size / 2) % size;
  char* a = calloc(2, STREAM);
  char* b = a + STREAM;
  if (strcmp(state, "never") != 0) exchange(a, b, 8);
  ready();
  if (strcmp(state, "idle") == 0 || strcmp(state, "never") == 0) {
    MPI_Recv(b, 8, MPI_CHAR, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (strcmp(state, "wild") == 0) {
    MPI_Recv(b, 8, MPI_CHAR, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (strcmp(state, "compute") == 0) {
    for (volatile unsigned i = 0;; ++i) usleep(1000);
  } else if (strcmp(state, "allreduce") == 0) {
    for (int one = 1, sum;;) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  } else if (strcmp(state, "exchange") == 0) {
    for (;;) exchange(a, b, 8);
  } else if (strcmp(state, "stream") == 0) {
    for (;;) {
      if (rank < size / 2) {
        MPI_Send(a, STREAM, MPI_CHAR, other, 3, MPI_COMM_WORLD);
      } else {
        MPI_Recv(b, STREAM, MPI_CHAR, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
    }
  } else if (strcmp(state, "busy") == 0) {
    /* The second half computes, and answers nobody: a short message and a long one wait for it. */
    if (rank >= size / 2) {
      for (const double end = MPI_Wtime() + seconds; MPI_Wtime() < end;) usleep(1000);
      MPI_Recv(b, STREAM, MPI_CHAR, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Send(a, STREAM, MPI_CHAR, other, 3, MPI_COMM_WORLD);
    }
    exchange(a, b, 8);
  } else { /* alive: as much as the network carries, both ways, and then one agreed end */
    int going = 1;
    for (const double end = MPI_Wtime() + seconds; going;) {
      exchange(a, b, 1 << 18);
      int mine = MPI_Wtime() < end;
      MPI_Allreduce(&mine, &going, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    }
  }
  printf("well %d\n", rank);
  fflush(stdout);
  free(a);
  return MPI_Finalize();
}
