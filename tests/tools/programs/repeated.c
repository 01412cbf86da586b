/* repeated: calls that come again and again from a few places, mostly with the arguments of last
   time, and now and then with others: what the recorder remembers of them may never be what it
   tells of another call. Arguments: a file, a seed, rounds. One rank, which sends to itself; what
   it did stands in the file, a line a call or a completion, in their order: send|recv NUMBER COMM
   TAG BYTES     an operation begins all COUNT | one | some              MPI_Waitall and so on are
   over; the operations, behind it: over NUMBER TAG BYTES COMM counts the communicators that were
   made, from 1; 0 is MPI_COMM_SELF. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 40, ROOM = 64 };
static unsigned long long state;
static FILE* told;
static int numbers, comm_number;
static MPI_Comm comm = MPI_COMM_SELF;
static MPI_Datatype derived;
static int derived_bytes;

static unsigned draw(unsigned below) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)(state >> 33) % below;
}

typedef struct Message {
  int number, tag, bytes, is_send;
} Message;
static MPI_Request requests[MOST + 1];
static Message messages[MOST + 1];
static int first, count; /* those before `first` are left for later waits */
static char out[MOST][ROOM], in[MOST][ROOM];

static void note(int is_send, int tag, int bytes) {
  messages[count] = (Message){++numbers, tag, bytes, is_send};
  fprintf(told, "%s %d %d %d %d\n", is_send ? "send" : "recv", numbers,
          comm == MPI_COMM_SELF ? 0 : comm_number, tag, bytes);
  ++count;
}

static void over(int i) {
  fprintf(told, "over %d %d %d\n", messages[i].number, messages[i].tag, messages[i].bytes);
}

/* `way`: which arguments; 0 are those of most calls. Receives have the room that is asked for, and
   are of the next send. */
static void pair(int way, int tag) {
  const int sizes[] = {8, 12, 0, 8, 8, 4};
  MPI_Datatype type = way == 4 ? derived : way == 5 ? MPI_INT : MPI_CHAR;
  const int bytes = way == 4 ? derived_bytes : sizes[way];
  const int many = way == 4 || way == 5 ? 1 : bytes;
  const int room = way < 3 ? ROOM : many; /* the same one for messages of several sizes */
  if (count + 2 > MOST) return;
  const int at = count;
  if (draw(8)) {
    MPI_Irecv(in[at], room, type, 0, tag, comm, &requests[at]);
  } else {
    MPI_Irecv(in[at], room, type, MPI_ANY_SOURCE, tag, comm, &requests[at]);
  }
  note(0, tag, way < 3 ? ROOM : bytes);
  messages[at].bytes = bytes;
  MPI_Isend(out[at], many, type, 0, tag, comm, &requests[at + 1]);
  note(1, tag, bytes);
}

static void wait_all(void) {
  MPI_Status statuses[MOST];
  const int many = count - first;
  MPI_Waitall(many, requests + first, draw(2) ? MPI_STATUSES_IGNORE : statuses);
  fprintf(told, many == 1 ? "one\n" : "all %d\n", many);
  for (int i = first; i < count; ++i) over(i);
}

static void wait_each(void) {
  for (int i = first; i < count; ++i) {
    MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    fprintf(told, "one\n");
    over(i);
  }
}

static void wait_some(void) {
  int left = count - first;
  while (left > 0) {
    int indices[MOST], some = 0;
    MPI_Waitsome(count - first, requests + first, &some, indices, MPI_STATUSES_IGNORE);
    fprintf(told, some == 1 ? "one\n" : "some %d\n", some);
    for (int i = 0; i < some; ++i) over(first + indices[i]);
    left -= some;
  }
}

/* Tests of what cannot be over, and then the wait. */
static void test_first(void) {
  MPI_Request never;
  char room[8];
  int flag = 0;
  MPI_Irecv(room, 8, MPI_CHAR, 0, 1000, comm, &never);
  note(0, 1000, 8);
  --count;
  const Message message = messages[count];
  for (int i = 0; i < 3; ++i) MPI_Test(&never, &flag, MPI_STATUS_IGNORE);
  wait_all();
  count = first;
  MPI_Send(out[0], 8, MPI_CHAR, 0, 1000, comm);
  MPI_Wait(&never, MPI_STATUS_IGNORE);
  messages[count] = message;
  fprintf(told, "one\n");
  over(count);
}

static void pause_for(long ns) {
  struct timespec from, now;
  clock_gettime(CLOCK_MONOTONIC, &from);
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while ((now.tv_sec - from.tv_sec) * 1000000000l + now.tv_nsec - from.tv_nsec < ns);
}

static void make_type(int bytes) {
  if (derived_bytes) MPI_Type_free(&derived);
  MPI_Type_contiguous(bytes, MPI_CHAR, &derived);
  MPI_Type_commit(&derived);
  derived_bytes = bytes;
}

static void make_comm(void) {
  if (comm != MPI_COMM_SELF) MPI_Comm_free(&comm);
  if (draw(3)) {
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    ++comm_number;
  } else {
    comm = MPI_COMM_SELF;
  }
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  told = fopen(argv[1], "w");
  state = strtoull(argv[2], NULL, 10);
  MPI_Init(&argc, &argv);
  make_type(16);
  for (long i = 0, rounds = atol(argv[3]); i < rounds; ++i) {
    const int is_as_most = draw(8) != 0;
    const int many = is_as_most ? 1 : (int)draw(MOST / 2 + 1);
    count = first;
    for (int k = 0; k < many; ++k)
      pair(is_as_most ? draw(16) ? 0 : 2 : (int)draw(6), is_as_most ? 1 : (int)draw(3));
    if (first == 0 && count == 2 && !draw(12)) {
      /* A receive alone: several sends that are over at once may have one handle, and nobody can
         tell which of them a wait is for. */
      first = 1;
      wait_each();
      count = 1;
    } else if (!draw(6)) {
      first = 0;
    }
    const unsigned way = draw(24);
    if (way < 16) {
      wait_all();
    } else if (way < 20) {
      wait_each();
    } else if (way < 22) {
      wait_some();
    } else {
      test_first();
    }
    count = first;
    if (!draw(300)) make_comm();
    if (!draw(300)) make_type(1 + (int)draw(ROOM));
    if (!draw(12)) pause_for(40000);
    if (!draw(2000)) pause_for(2000000);
  }
  first = 0;
  wait_all();
  if (comm != MPI_COMM_SELF) MPI_Comm_free(&comm);
  MPI_Type_free(&derived);
  fclose(told);
  MPI_Finalize();
  return 0;
}
