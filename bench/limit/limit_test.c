// The limit's pipes move what they are given: messages of drawn lengths between all ranks, in both
// directions at once, many at a time and one after the other; and its collectives give the right
// answers. Prints its seed; HEADWAY_TEST_SEED draws others. --limit-ranks N: so many processes.
#include "mpi.h"

enum { rounds = 300, most = 64, longest = 200000, most_doubles = 20000 };

static int rank, ranks;
static unsigned seed;

static unsigned drawn(unsigned* state, unsigned below) {
  *state = *state * 1664525u + 1013904223u;
  return (*state >> 8) % below;
}

static char byte_of(int sender, int receiver, unsigned round, unsigned message, size_t at) {
  return (char)(at * 7 + at / 4096 + round * 31 + message * 3 + (unsigned)(sender + 5 * receiver));
}

static int partner_of(unsigned message) {
  int p = (int)message % (ranks - 1);
  return p < rank ? p : p + 1;
}

// Message m goes to and comes from partner_of(m); it has the length of its row, so that both know.
static void test_messages(void) {
  static char out[most][longest], in[most][longest];
  unsigned state = seed, others = (unsigned)ranks - 1, some = ranks == 2 ? rounds : rounds / 5;
  for (unsigned round = 0; round < some; round++) {
    MPI_Request sends[most], receives[most];
    unsigned rows = 1 + drawn(&state, most / others), top = drawn(&state, 4) ? 200 : longest - 1;
    unsigned messages = rows * others;
    int lengths[most], one_by_one = ranks == 2 && messages == 1;
    for (unsigned i = 0; i < messages; i++) {
      const int other = partner_of(i);
      const int bytes = lengths[i] = i % others ? lengths[i - 1] : (int)drawn(&state, top);
      for (int at = 0; at < bytes; at++)
        out[i][at] = byte_of(rank, other, round, i / others, (size_t)at);
      memset(in[i], '.', (size_t)bytes + 1);
      if (one_by_one && rank == 0) {
        MPI_Send(out[i], bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(in[i], bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else if (one_by_one) {
        MPI_Recv(in[i], bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out[i], bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
      } else {
        MPI_Irecv(in[i], bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &receives[i]);
        MPI_Isend(out[i], bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &sends[i]);
      }
    }
    if (!one_by_one) {
      MPI_Waitall((int)messages, receives, MPI_STATUSES_IGNORE);
      MPI_Waitall((int)messages, sends, MPI_STATUSES_IGNORE);
    }
    for (unsigned i = 0; i < messages; i++) {
      const int other = partner_of(i);
      for (int at = 0; at <= lengths[i]; at++) {
        char right = at < lengths[i] ? byte_of(other, rank, round, i / others, (size_t)at) : '.';
        if (in[i][at] == right) continue;
        fprintf(stderr, "seed %u, round %u, message %u of %u, from rank %d: byte %d of %d is bad\n",
                seed, round, i, messages, other, at, lengths[i]);
        exit(1);
      }
    }
  }
}

static double number_of(int who, int block, int at) { return who * 1000 + block * 100 + at % 97; }

static void is_right(const char* call, int count, const double* got, int at, double right) {
  if (got[at] == right) return;
  fprintf(stderr, "%s of %d doubles, rank %d: number %d is %g, not %g\n", call, count, rank, at,
          got[at], right);
  exit(1);
}

// One number, few that lie beside a word, an odd number of them, several cells.
static void test_collectives(int count, int root) {
  static double out[2 * most_doubles], in[2 * most_doubles];
  for (int i = 0; i < 2 * count; i++) out[i] = number_of(rank, i / count, i);
  MPI_Allreduce(out, in, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < count; i++)
    is_right("allreduce", count, in, i, number_of(0, 0, i) + number_of(1, 0, i));
  memset(in, 0, sizeof in);
  MPI_Reduce(out, in, count, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
  for (int i = 0; rank == root && i < count; i++)
    is_right("reduce", count, in, i, number_of(0, 0, i) + number_of(1, 0, i));
  int b = count * (int)sizeof(double);
  MPI_Alltoall(out, b, MPI_BYTE, in, b, MPI_BYTE, MPI_COMM_WORLD);
  for (int i = 0; i < 2 * count; i++)
    is_right("alltoall", count, in, i, number_of(i / count, rank, rank * count + i % count));
  MPI_Allgather(out, b, MPI_BYTE, in, b, MPI_BYTE, MPI_COMM_WORLD);
  for (int i = 0; i < 2 * count; i++)
    is_right("allgather", count, in, i, number_of(i / count, 0, i % count));
  memset(in, 0, sizeof in);
  MPI_Gather(out, b, MPI_BYTE, in, b, MPI_BYTE, root, MPI_COMM_WORLD);
  for (int i = 0; rank == root && i < 2 * count; i++)
    is_right("gather", count, in, i, number_of(i / count, 0, i % count));
  MPI_Scatter(out, b, MPI_BYTE, in, b, MPI_BYTE, root, MPI_COMM_WORLD);
  for (int i = 0; i < count; i++)
    is_right("scatter", count, in, i, number_of(root, rank, rank * count + i));
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Bcast(out, b, MPI_BYTE, root, MPI_COMM_WORLD);
  for (int i = 0; i < count; i++) is_right("bcast", count, out, i, number_of(root, 0, i));
  if (rank != root)
    for (int i = count; i < 2 * count; i++) is_right("bcast", count, out, i, number_of(rank, 1, i));
}

int main(int argc, char** argv) {
  const char* given = getenv("HEADWAY_TEST_SEED");
  seed = given ? (unsigned)atol(given) : 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != (argc > 2 ? atoi(argv[2]) : 2) || rank < 0 || rank >= ranks) return 2;
  test_messages();
  static const int counts[] = {1, 7, 8, 4096, 4097, most_doubles};
  for (int i = 0; ranks == 2 && i < 6; i++)
    for (int root = 0; root < 2; root++) test_collectives(counts[i], root);
  MPI_Finalize();
  return 0;
}
