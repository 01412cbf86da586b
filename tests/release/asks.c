/* Two messages that are ready long before they are sent, to a receiver that waits for them in one
 * of the ways. asks BYTES MS ROUNDS WAY Rank 0 writes both, sleeps MS, sends them and is answered.
 * Rank 1 prints "ok" at the end. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BOTH = 2 };

static int bytes;
static unsigned char* data[BOTH];
static MPI_Request requests[BOTH];

static void receive_now(int i) {
  MPI_Recv(data[i], bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void begin(int i) {
  MPI_Irecv(data[i], bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, &requests[i]);
}

static void receive(const char* way, int round) {
  int index, indices[BOTH];
  if (!strcmp(way, "recv") || !strcmp(way, "sendrecv")) {
    for (int i = 0; i < BOTH; ++i) {
      if (*way == 'r') {
        receive_now(i);
      } else {
        MPI_Sendrecv(NULL, 0, MPI_BYTE, 0, 9, data[i], bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
      }
    }
    return;
  }
  const int persists = !strncmp(way, "start", 5);
  if (persists) {
    for (int i = 0; i < BOTH && round == 0; ++i) {
      MPI_Recv_init(data[i], bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Startall(BOTH, requests);
    way += strlen("start");
  } else {
    for (int i = 0; i < BOTH; ++i) begin(i);
  }
  if (!strcmp(way, "wait")) {
    for (int i = 0; i < BOTH; ++i) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
  } else if (!strcmp(way, "waitall")) {
    MPI_Waitall(BOTH, requests, MPI_STATUSES_IGNORE);
  } else if (!strcmp(way, "waitany")) {
    for (int i = 0; i < BOTH; ++i) MPI_Waitany(BOTH, requests, &index, MPI_STATUS_IGNORE);
  } else if (!strcmp(way, "waitsome")) {
    for (int i = 0, done; i < BOTH; i += done) {
      MPI_Waitsome(BOTH, requests, &done, indices, MPI_STATUSES_IGNORE);
    }
  } else {
    MPI_Abort(MPI_COMM_WORLD, 4);
  }
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 5) MPI_Abort(MPI_COMM_WORLD, 2);
  bytes = atoi(argv[1]);
  const int ms = atoi(argv[2]), rounds = atoi(argv[3]);
  for (int i = 0; i < BOTH; ++i) data[i] = malloc((size_t)bytes);
  for (int round = 0; round < rounds; ++round) {
    if (rank == 0) {
      const struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};
      for (int i = 0; i < BOTH; ++i) memset(data[i], round + i + 1, (size_t)bytes);
      nanosleep(&pause, NULL);
      for (int i = 0; i < BOTH; ++i) {
        MPI_Send(data[i], bytes, MPI_BYTE, 1, i, MPI_COMM_WORLD);
        if (!strcmp(argv[4], "sendrecv")) {
          MPI_Recv(NULL, 0, MPI_BYTE, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
      }
      MPI_Recv(NULL, 0, MPI_BYTE, 1, BOTH, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      receive(argv[4], round);
      for (int i = 0; i < BOTH; ++i) {
        for (int at = 0; at < bytes; ++at) {
          if (data[i][at] != (unsigned char)(round + i + 1)) MPI_Abort(MPI_COMM_WORLD, 3);
        }
      }
      MPI_Send(NULL, 0, MPI_BYTE, 0, BOTH, MPI_COMM_WORLD);
    }
  }
  for (int i = 0; i < BOTH; ++i) {
    if (requests[i] && requests[i] != MPI_REQUEST_NULL) MPI_Request_free(&requests[i]);
    free(data[i]);
  }
  if (rank == 1) puts("ok");
  MPI_Finalize();
  return 0;
}
