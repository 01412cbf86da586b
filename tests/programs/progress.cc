// Progress while a rank computes. With the message thread on, a large message lands in the buffer
// of a rank that makes no library call; a sender that went away to compute lets its receiver
// finish; a collective moves on. Prints what it saw; the word "must" makes it a condition.
#include <time.h>

#include "check.h"

namespace {

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Computes without a library call and without a system call that would give the core away.
void compute(double seconds) {
  volatile double x = 1;
  for (double end = now() + seconds; now() < end;) {
    for (int i = 0; i < 1000; ++i) x = x * 1.0000001;
  }
}

bool must() {
  for (const std::string& word : check::words) {
    if (word == "must") return true;
  }
  return false;
}

// True in most of the rounds: the machine may stop us now and then.
void judge(const char* what, int good, int rounds) {
  printf("%s: %d of %d\n", what, good, rounds);
  if (must() && good * 3 < rounds * 2)
    check::fail(__FILE__, __LINE__, "%s only in %d of %d rounds", what, good, rounds);
}

const int bytes = 1 << 20;

// The receiver posts, tells the sender, and computes; it looks at the last byte, calling nothing.
void lands_while_computing() {
  const int rounds = 9;
  int good = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<uint8_t> data(bytes, 0);
    if (check::rank == 0) {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI(MPI_Irecv(data.data(), bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request));
      MPI(MPI_Send(nullptr, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD));
      volatile uint8_t* last = data.data() + bytes - 1;
      double end = now() + 0.3;
      while (*last != 7 && now() < end) compute(0.0005);
      good += *last == 7;
      MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
      for (int i = 0; i < bytes; i += 97) CHECK_EQ(data[i], i == bytes - 1 ? 7 : 9);
    } else if (check::rank == 1) {
      std::fill(data.begin(), data.end(), 9);
      data[bytes - 1] = 7;
      MPI(MPI_Recv(nullptr, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      MPI(MPI_Send(data.data(), bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD));
    }
  }
  if (check::rank == 0) judge("arrived while the receiver computed", good, rounds);
}

// The sender starts and goes away to compute for 0.3 s; the receiver need not wait for it.
void sender_is_away() {
  const int rounds = 5;
  int good = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<uint8_t> data(bytes, 5);
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (check::rank == 1) {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI(MPI_Isend(data.data(), bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request));
      compute(0.3);
      MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else if (check::rank == 0) {
      compute(0.05);
      double start = now();
      MPI(MPI_Recv(data.data(), bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      good += now() - start < 0.15;
    }
  }
  if (check::rank == 0) judge("received while the sender computed", good, rounds);
}

// Rank 0 is the only one who waits; the others have started and compute.
void collective_moves() {
  const int rounds = 5;
  int good = 0;
  for (int round = 0; round < rounds; ++round) {
    int one = 1, sum = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    MPI(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request));
    if (check::rank == 0) {
      double start = now();
      MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
      good += now() - start < 0.15;
    } else {
      compute(0.3);
      MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    CHECK_EQ(sum, check::size);
  }
  if (check::rank == 0) judge("reduced while the others computed", good, rounds);
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"lands_while_computing", lands_while_computing, 2},
                      {"sender_is_away", sender_is_away, 2},
                      {"collective_moves", collective_moves, 2}});
}
