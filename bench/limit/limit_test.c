// The limit's pipe moves what it is given: messages of drawn lengths in both directions at once,
// many at a time and one after the other. Prints its seed; HEADWAY_TEST_SEED draws others.
#include "mpi.h"

enum { rounds = 300, most = 64, longest = 200000 };

static unsigned drawn(unsigned* state, unsigned below) {
  *state = *state * 1664525u + 1013904223u;
  return (*state >> 8) % below;
}

static char byte_of(int sender, unsigned round, unsigned message, size_t at) {
  return (char)(at * 7 + at / 4096 + round * 31 + message * 3 + (unsigned)sender);
}

int main(int argc, char** argv) {
  const char* given = getenv("HEADWAY_TEST_SEED");
  unsigned seed = given ? (unsigned)atol(given) : 1, state = seed;
  static char out[most][longest], in[most][longest];
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 2 || (rank != 0 && rank != 1)) return 2;
  for (unsigned round = 0; round < rounds; round++) {
    MPI_Request sends[most], receives[most];
    unsigned messages = 1 + drawn(&state, most), top = drawn(&state, 4) ? 200 : longest - 1;
    int lengths[most];
    for (unsigned i = 0; i < messages; i++) {
      const int bytes = lengths[i] = (int)drawn(&state, top);
      for (int at = 0; at < bytes; at++) out[i][at] = byte_of(rank, round, i, (size_t)at);
      memset(in[i], '.', (size_t)bytes + 1);
      if (messages == 1 && rank == 0) {
        MPI_Send(out[i], bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(in[i], bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else if (messages == 1) {
        MPI_Recv(in[i], bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out[i], bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
      } else {
        MPI_Irecv(in[i], bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &receives[i]);
        MPI_Isend(out[i], bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &sends[i]);
      }
    }
    if (messages > 1) {
      MPI_Waitall((int)messages, receives, MPI_STATUSES_IGNORE);
      MPI_Waitall((int)messages, sends, MPI_STATUSES_IGNORE);
    }
    for (unsigned i = 0; i < messages; i++) {
      for (int at = 0; at <= lengths[i]; at++) {
        char right = at < lengths[i] ? byte_of(1 - rank, round, i, (size_t)at) : '.';
        if (in[i][at] == right) continue;
        fprintf(stderr, "seed %u, round %u, message %u of %u: byte %d of %d is wrong\n", seed,
                round, i, messages, at, lengths[i]);
        return 1;
      }
    }
  }
  MPI_Finalize();
  return 0;
}
