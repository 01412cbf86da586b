// Jobs that hang, each for one cause: hang CASE. What mpiexec must say of each stands in
// reports.py.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { long_count = 8 << 20 };  // doubles: more than what a send leaves behind (SEND_AHEAD)

static int rank, size;
static double* data;
static int value;

static void await_forever(void) {
  for (;;) pause();
}

static void sends_round(void) {
  MPI_Send(data, long_count, MPI_DOUBLE, (rank + 1) % size, 3, MPI_COMM_WORLD);
  MPI_Recv(data, long_count, MPI_DOUBLE, (rank + size - 1) % size, 3, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
}

static void receives_round(void) {
  MPI_Recv(&value, 1, MPI_INT, (rank + 1) % size, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Send(&value, 1, MPI_INT, (rank + size - 1) % size, 3, MPI_COMM_WORLD);
}

// Ranks 0 and 1 wait for each other; the last is done already.
static void circle_beside_finalize(void) {
  if (rank < 2) MPI_Recv(&value, 1, MPI_INT, 1 - rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void tags(void) {
  if (rank == 0) MPI_Ssend(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(&value, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void communicators(void) {
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  if (rank == 0) MPI_Ssend(&value, 1, MPI_INT, 1, 3, other);
  if (rank == 1) MPI_Recv(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// The numbers in the sub-communicator are others than in the world.
static void circle_in_split(void) {
  MPI_Comm sub;
  MPI_Comm_split(MPI_COMM_WORLD, rank > 0, -rank, &sub);
  if (rank == 0) MPI_Recv(&value, 1, MPI_INT, size - 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  int mine, all;
  MPI_Comm_rank(sub, &mine);
  MPI_Comm_size(sub, &all);
  MPI_Recv(&value, 1, MPI_INT, (mine + 1) % all, 3, sub, MPI_STATUS_IGNORE);
}

static void from_anybody(void) {
  MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void from_itself(void) {
  if (rank == 0) MPI_Recv(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void one_in_finalize(void) {
  if (rank == 0) MPI_Recv(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void stopped(void) {
  if (rank == 1) raise(SIGSTOP);
  MPI_Recv(&value, 1, MPI_INT, (rank + 1) % size, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void stopped_in_call(void) {
  if (rank == 1 && fork() == 0) {
    sleep(1);
    kill(getppid(), SIGSTOP);
    _exit(0);
  }
  if (rank == 0) MPI_Recv(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Recv(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void polls(const char* call) {
  if (rank == 0) MPI_Recv(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Request request;
  MPI_Irecv(&value, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, &request);
  for (int flag = 0; !flag;) {
    MPI_Message message;
    if (!strcmp(call, "test")) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    if (!strcmp(call, "testall")) MPI_Testall(1, &request, &flag, MPI_STATUSES_IGNORE);
    if (!strcmp(call, "status")) MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    if (!strcmp(call, "iprobe")) MPI_Iprobe(0, 5, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    if (!strcmp(call, "improbe")) {
      MPI_Improbe(0, 5, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
    }
  }
}

// Both wait for what the other collective never sends.
static void collective_order(void) {
  int out = rank, in;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Reduce(&out, &in, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Bcast(&in, 1, MPI_INT, 0, MPI_COMM_WORLD);
  } else {
    MPI_Bcast(&in, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Reduce(&out, &in, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  }
}

// One goes on with what the other has sent for something else, and both end in the same call.
static void collective_order_reduced(void) {
  int out = rank, in;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) MPI_Reduce(&out, &in, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Allreduce(&out, &in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank != 0) MPI_Reduce(&out, &in, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void two_communicators(void) {
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Comm_set_name(other, "the other");
  MPI_Barrier(rank == 0 ? other : MPI_COMM_WORLD);
  MPI_Barrier(rank == 0 ? MPI_COMM_WORLD : other);
}

static void roots(void) {
  int out = rank, in;
  MPI_Reduce(&out, &in, 1, MPI_INT, MPI_SUM, rank, MPI_COMM_WORLD);
}

// One rank calls a collective once too often, the other goes on to Finalize, or to a receive.
static void skipped(int receives) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1 && receives) {
    MPI_Recv(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

// The last rank is on the other side of all others, who are in a collective with it.
static void beyond(void) {
  MPI_Comm side, bridge;
  int last = rank == size - 1;
  MPI_Comm_split(MPI_COMM_WORLD, last, rank, &side);
  MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, last ? 0 : size - 1, 9, &bridge);
  if (last) {
    MPI_Recv(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Barrier(bridge);
  }
}

// The sender's last session ends, and its process, or that goes on without MPI.
static void sender_gone(int stays) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "reports", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Group_free(&group);
  MPI_Comm_rank(comm, &rank);
  MPI_Barrier(comm);
  if (rank == 0) MPI_Recv(&value, 1, MPI_INT, 1, 3, comm, MPI_STATUS_IGNORE);
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
  if (stays) await_forever();
  exit(0);
}

static void computes(void) {
  if (rank == 1) {
    for (volatile long i = 0;; ++i) {
    }
  }
  MPI_Recv(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void sleeps(void) {
  if (rank == 1) await_forever();
  MPI_Barrier(MPI_COMM_WORLD);
}

// A collective call on a file, to which rank 1 does not come.
static void file_skipped(void) {
  MPI_File file;
  char name[64];
  snprintf(name, sizeof name, "/tmp/headway-hang-%d", (int)getppid());
  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                MPI_INFO_NULL, &file);
  MPI_Barrier(MPI_COMM_WORLD);
  unlink(name);
  if (rank == 1) MPI_Recv(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_File_write_at_all(file, 4 * rank, &rank, 1, MPI_INT, MPI_STATUS_IGNORE);
}

static void run(const char* name) {
  if (!strcmp(name, "sends_round")) sends_round();
  if (!strcmp(name, "receives_round")) receives_round();
  if (!strcmp(name, "circle_beside_finalize")) circle_beside_finalize();
  if (!strcmp(name, "tags")) tags();
  if (!strcmp(name, "communicators")) communicators();
  if (!strcmp(name, "circle_in_split")) circle_in_split();
  if (!strcmp(name, "from_anybody")) from_anybody();
  if (!strcmp(name, "from_itself")) from_itself();
  if (!strcmp(name, "one_in_finalize")) one_in_finalize();
  if (!strcmp(name, "stopped")) stopped();
  if (!strcmp(name, "stopped_in_call")) stopped_in_call();
  if (!strncmp(name, "polls_", 6)) polls(name + 6);
  if (!strcmp(name, "collective_order")) collective_order();
  if (!strcmp(name, "collective_order_reduced")) collective_order_reduced();
  if (!strcmp(name, "two_communicators")) two_communicators();
  if (!strcmp(name, "roots")) roots();
  if (!strcmp(name, "skipped")) skipped(0);
  if (!strcmp(name, "skipped_receive")) skipped(1);
  if (!strcmp(name, "beyond")) beyond();
  if (!strcmp(name, "computes")) computes();
  if (!strcmp(name, "sleeps")) sleeps();
  if (!strcmp(name, "file_skipped")) file_skipped();
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  if (!strcmp(argv[1], "sender_gone")) sender_gone(0);
  if (!strcmp(argv[1], "sender_left")) sender_gone(1);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  data = calloc(long_count, sizeof *data);
  run(argv[1]);
  MPI_Finalize();
  return 0;
}
