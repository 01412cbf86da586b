// Ways for a job to end other than well. The first word says how, rank 1 does it (rank 0 if alone);
// the others are in the middle of something. Prints "dying at SECONDS" (CLOCK_MONOTONIC) before.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace {

int rank, size;

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void say_dying() {
  printf("dying at %.3f\n", now());
  fflush(stdout);
}

bool victim() { return rank == (size > 1 ? 1 : 0); }

// In vain, for the other one of two sides: even ranks, and odd ones.
void wait_beyond() {
  MPI_Comm side, both;
  char byte;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &side);
  MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, 1 - rank % 2, 1, &both);
  MPI_Recv(&byte, 1, MPI_BYTE, 0, 99, both, MPI_STATUS_IGNORE);
}

// Of kinds "windows" and "held", which everybody makes together; plain memory, which is not mapped
// elsewhere, or such that is.
MPI_Win window;

void make_window(bool plain) {
  static char memory[200000];
  char* at = nullptr;
  if (plain) {
    MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  } else {
    MPI_Win_allocate(sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &at, &window);
  }
}

// One epoch on that rank: what others do there is kept out, so one that dies inside holds a lock.
void access(int target, std::vector<char>& out, std::vector<char>& in) {
  int64_t one = 1, before = 0;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window);
  MPI_Put(out.data(), 100000, MPI_BYTE, target, 100000, 100000, MPI_BYTE, window);
  MPI_Fetch_and_op(&one, &before, MPI_INT64_T, target, 0, MPI_SUM, window);
  MPI_Get(in.data(), 90000, MPI_BYTE, target, 8, 90000, MPI_BYTE, window);
  MPI_Win_unlock(target, window);
}

// What everybody does until somebody dies. Never ends by itself within the test's time.
void work(const std::string& kind, double until) {
  std::vector<char> out(200000), in(200000);
  int to = (rank + 1) % size, from = (rank + size - 1) % size;
  for (int i = 0; now() < until; ++i) {
    int bytes = i % 3 == 0 ? 200000 : 100;
    if (kind == "p2p") {
      MPI_Sendrecv(out.data(), bytes, MPI_BYTE, to, 1, in.data(), bytes, MPI_BYTE, from, 1,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (kind == "coll") {
      double x = 1, y = 0;
      MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      MPI_Bcast(out.data(), bytes, MPI_BYTE, i % size, MPI_COMM_WORLD);
    } else if (kind == "windows" || kind == "plain_windows") {
      access((rank + i) % size, out, in);
    } else if (kind == "fences") {
      MPI_Win_fence(0, window);
      MPI_Put(out.data(), bytes, MPI_BYTE, to, 0, bytes, MPI_BYTE, window);
    } else if (kind == "held") {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);  // the victim has it
    } else if (kind == "wait") {
      MPI_Recv(in.data(), 1, MPI_BYTE, from, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (kind == "beyond") {
      wait_beyond();
    } else if (kind == "compute") {
      for (int k = 0; k < 1000000; ++k) {
        asm volatile("");  // or the compiler drops the loop
      }
    } else if (kind == "sleep") {
      usleep(100000);
    }
  }
}

void kill_self(int number) {
  say_dying();
  raise(number);
}

// Wrong calls, each to end the job by MPI_ERRORS_ARE_FATAL with a sentence.
struct Wrong {
  const char* name;
  void (*call)();
};

int number = 5;

MPI_Datatype pair_type(bool commit) {
  MPI_Datatype type;
  MPI_Type_contiguous(2, MPI_INT, &type);
  if (commit) MPI_Type_commit(&type);
  return type;
}
MPI_Comm own_comm() {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  return comm;
}
void send(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  MPI_Send(data, count, type, to, tag, comm);
}

const Wrong wrong_calls[] = {
    {"null communicator", [] { send(&number, 1, MPI_INT, 0, 3, MPI_COMM_NULL); }},
    {"freed communicator",
     [] {
       MPI_Comm comm = own_comm(), copy = comm;
       MPI_Comm_free(&comm);
       send(&number, 1, MPI_INT, 0, 3, copy);
     }},
    {"null datatype", [] { send(&number, 1, MPI_DATATYPE_NULL, 0, 3, MPI_COMM_WORLD); }},
    {"freed datatype",
     [] {
       MPI_Datatype type = pair_type(true), copy = type;
       MPI_Type_free(&type);
       send(&number, 1, copy, 0, 3, MPI_COMM_WORLD);
     }},
    {"uncommitted datatype", [] { send(&number, 1, pair_type(false), 0, 3, MPI_COMM_WORLD); }},
    {"null buffer", [] { send(nullptr, 4, MPI_INT, 0, 3, MPI_COMM_WORLD); }},
    {"negative count", [] { send(&number, -4, MPI_INT, 0, 3, MPI_COMM_WORLD); }},
    {"rank too large", [] { send(&number, 1, MPI_INT, size + 7, 3, MPI_COMM_WORLD); }},
    {"negative tag", [] { send(&number, 1, MPI_INT, 0, -5, MPI_COMM_WORLD); }},
    {"source too large",
     [] { MPI_Recv(&number, 1, MPI_INT, size + 7, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }},
    {"unnamed communicator", [] { send(&number, 1, MPI_INT, 0, -5, own_comm()); }},
    {"derived datatype", [] { send(&number, 3, pair_type(true), size + 7, 3, MPI_COMM_WORLD); }},
    {"invented request",
     [] {
       auto request = reinterpret_cast<MPI_Request>(0xdeadbeef00);
       MPI_Wait(&request, MPI_STATUS_IGNORE);
     }},
    {"request used twice",
     [] {
       MPI_Request request, copy;
       MPI_Isend(&number, 0, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &request);
       copy = request;
       MPI_Wait(&request, MPI_STATUS_IGNORE);
       MPI_Wait(&copy, MPI_STATUS_IGNORE);
     }},
    {"received message",
     [] {
       auto message = reinterpret_cast<MPI_Message>(0xdeadbeef00);
       MPI_Mrecv(&number, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
     }},
    {"null operation",
     [] { MPI_Allreduce(MPI_IN_PLACE, &number, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_SELF); }},
    {"operation of another type",
     [] {
       double real = 1;
       MPI_Allreduce(MPI_IN_PLACE, &real, 1, MPI_DOUBLE, MPI_BAND, MPI_COMM_SELF);
     }},
    {"root too large", [] { MPI_Bcast(&number, 1, MPI_INT, size + 7, MPI_COMM_WORLD); }},
    {"freed group",
     [] {
       MPI_Group group;
       MPI_Comm_group(MPI_COMM_SELF, &group);
       MPI_Group copy = group;
       MPI_Group_free(&group);
       MPI_Comm made;
       MPI_Comm_create_group(MPI_COMM_SELF, copy, 1, &made);
     }},
    {"freed predefined communicator",
     [] {
       MPI_Comm world = MPI_COMM_WORLD;
       MPI_Comm_free(&world);
     }},
    {"truncated in MPI_Wait",
     [] {
       int four[4] = {}, two[2];
       MPI_Request request;
       MPI_Irecv(two, 2, MPI_INT, 0, 8, MPI_COMM_SELF, &request);
       send(four, 4, MPI_INT, 0, 8, MPI_COMM_SELF);
       MPI_Wait(&request, MPI_STATUS_IGNORE);
     }},
    {"mismatched collective",
     [] {
       int block[3] = {}, blocks[2];
       MPI_Gather(block, 3, MPI_INT, blocks, 2, MPI_INT, 0, MPI_COMM_SELF);
     }},
    {"one buffer twice",
     [] {
       int blocks[4] = {};
       MPI_Gather(blocks, 2, MPI_INT, blocks, 2, MPI_INT, 0, MPI_COMM_SELF);
     }},
    {"window without an epoch",
     [] {
       MPI_Win window;
       int* at = nullptr;
       MPI_Win_allocate(4, 4, MPI_INFO_NULL, MPI_COMM_SELF, static_cast<void*>(&at), &window);
       MPI_Put(&number, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
     }},
    {"outside of a window",
     [] {
       MPI_Win window;
       int* at = nullptr;
       MPI_Win_allocate(4, 4, MPI_INFO_NULL, MPI_COMM_SELF, static_cast<void*>(&at), &window);
       MPI_Win_set_name(window, "halo");
       MPI_Win_lock_all(0, window);
       MPI_Put(&number, 1, MPI_INT, 0, 1, 1, MPI_INT, window);
     }},
    {"name of no port",
     [] {
       MPI_Comm other;
       MPI_Comm_connect("somewhere", MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
     }},
};

void call_wrongly(const std::string& name) {
  for (const Wrong& wrong : wrong_calls) {
    if (name == wrong.name) wrong.call();
  }
}

void end_badly(const std::string& how, const std::string& what) {
  if (how == "kill") kill_self(SIGKILL);
  if (how == "segv") kill_self(SIGSEGV);
  if (how == "abort") {
    say_dying();
    MPI_Abort(MPI_COMM_WORLD, atoi(what.c_str()));
  }
  if (how == "exit") {
    say_dying();
    exit(atoi(what.c_str()));
  }
  if (how == "wrong") call_wrongly(what);
  if (how == "fatal") MPI_Send(&rank, 1, MPI_INT, size + 7, 3, MPI_COMM_WORLD);
  if (how == "errors_abort") {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_name(comm, "the small one");
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_ABORT);
    MPI_Send(&rank, 1, MPI_INT, 0, -5, comm);
  }
  if (how == "truncate") {
    int four[4] = {0, 0, 0, 0};
    MPI_Request request;
    MPI_Isend(four, 4, MPI_INT, rank, 8, MPI_COMM_WORLD, &request);
    MPI_Recv(four, 2, MPI_INT, rank, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

int outside(const std::string& how) {
  int n = 0;
  if (how == "before_init") MPI_Comm_size(MPI_COMM_WORLD, &n);
  if (how == "send_before_init") MPI_Send(&n, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
  MPI_Init(nullptr, nullptr);
  if (how == "init_twice") MPI_Init(nullptr, nullptr);
  if (how == "window_left") {
    MPI_Win window;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  }
  MPI_Finalize();
  if (how == "after_finalize") MPI_Comm_size(MPI_COMM_WORLD, &n);
  if (how == "barrier_after_finalize") MPI_Barrier(MPI_COMM_WORLD);
  if (how == "finalize_twice") MPI_Finalize();
  // What is allowed outside.
  int flag = 0;
  MPI_Initialized(&flag);
  MPI_Finalized(&flag);
  MPI_Get_version(&n, &flag);
  printf("ok outside\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string how = argc > 1 ? argv[1] : "", what = argc > 2 ? argv[2] : "";
  std::string kind = argc > 3 ? argv[3] : "wait";
  if (how == "outside") return outside(what);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (kind == "windows" || kind == "plain_windows" || kind == "fences" || kind == "held") {
    make_window(kind == "plain_windows" || kind == "fences");
    if (kind == "held") {
      if (victim()) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
  if (how == "run") {  // a good job of so many seconds
    MPI_Barrier(MPI_COMM_WORLD);
    double until = now() + atof(what.c_str());
    for (int go = 1; go;) {
      work("p2p", 0);
      char c = 1;
      MPI_Sendrecv(&c, 1, MPI_BYTE, (rank + 1) % size, 1, &c, 1, MPI_BYTE, (rank + size - 1) % size,
                   1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      go = now() < until;
      MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
  } else if (victim()) {
    if (kind != "wait" && kind != "compute" && kind != "sleep" && kind != "held" &&
        (how == "kill" || how == "segv")) {
      // Dies at some point of the traffic: an alarm comes in the middle of it.
      if (how == "kill") {
        struct Dying {
          static void now_dying(int) {
            char text[64];
            int n = snprintf(text, sizeof text, "dying at %.3f\n", now());
            if (write(1, text, static_cast<size_t>(n)) == n) raise(SIGKILL);
          }
        };
        signal(SIGALRM, Dying::now_dying);
        ualarm(300000, 0);
        work(kind, now() + 60);
      }
    }
    usleep(200000);
    end_badly(how, what);
    if (how == "hang") work(kind == "beyond" ? kind : "wait", now() + 600);
  } else {
    work(kind, now() + 60);
  }
  MPI_Finalize();
  if (rank == 0) printf("ok\n");
  return 0;
}
