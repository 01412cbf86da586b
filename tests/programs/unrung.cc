// Ranks of one host that can no longer open each other's bells, since no descriptor is left or the
// system lets nobody look into them any more: whoever sleeps is woken all the same, not by the end
// of its safety net (the matrix counts late_wakes), and data that cannot be copied in one go comes.
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <vector>

#include "check.h"

namespace {

constexpr int rounds = 12;
constexpr useconds_t until_asleep_us = 3000;  // a rank yields for a millisecond before it sleeps

// Root looks into every process, unless it gives that up: before threads come.
void give_up_looking() {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &head, sets) != 0) return;
  auto& set = sets[CAP_TO_INDEX(CAP_SYS_PTRACE)];
  set.effective &= ~CAP_TO_MASK(CAP_SYS_PTRACE);
  set.permitted &= ~CAP_TO_MASK(CAP_SYS_PTRACE);
  syscall(SYS_capset, &head, sets);
}

// Rank `from` sends to its neighbour, which has gone to sleep, and hears back when it sleeps
// itself.
void ask_and_answer(int from, int bytes, uint64_t key) {
  const int to = (from + 1) % check::size;
  std::vector<char> data(size_t(bytes), 0);
  if (check::rank == from) {
    usleep(until_asleep_us);
    check::fill(data.data(), data.size(), key);
    MPI(MPI_Ssend(data.data(), bytes, MPI_BYTE, to, 1, MPI_COMM_WORLD));
    MPI(MPI_Recv(data.data(), bytes, MPI_BYTE, to, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_BYTES(data.data(), data.size(), key + 1);
  } else if (check::rank == to) {
    MPI(MPI_Recv(data.data(), bytes, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_BYTES(data.data(), data.size(), key);
    usleep(until_asleep_us);
    check::fill(data.data(), data.size(), key + 1);
    MPI(MPI_Send(data.data(), bytes, MPI_BYTE, from, 2, MPI_COMM_WORLD));
  }
}

// The same where the receiver computes, and its message thread is to be woken. (That it was is seen
// where receives are released early: who touches the buffer waits for that thread alone.)
void while_computing(int from, int bytes, uint64_t key) {
  const int to = (from + 1) % check::size;
  std::vector<char> data(size_t(bytes), 0);
  MPI_Request request = MPI_REQUEST_NULL;
  if (check::rank == from) {
    check::fill(data.data(), data.size(), key);
    MPI(MPI_Isend(data.data(), bytes, MPI_BYTE, to, 3, MPI_COMM_WORLD, &request));
  } else if (check::rank == to) {
    MPI(MPI_Irecv(data.data(), bytes, MPI_BYTE, from, 3, MPI_COMM_WORLD, &request));
  }
  usleep(until_asleep_us);
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  if (check::rank == to) CHECK_BYTES(data.data(), data.size(), key);
}

void talk(uint64_t key) {
  for (int round = 0; round < rounds; ++round) {
    for (const int bytes : {8, 3000, 70'000, 1'500'000}) {
      key += 2;
      ask_and_answer(round % check::size, bytes, key);
      key += 2;
      while_computing(round % check::size, bytes, key);
    }
    int mine = check::rank, sum = 0;
    MPI(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK_EQ(sum, check::size * (check::size - 1) / 2);
  }
}

rlim_t first_free_descriptor() {
  const int fd = dup(2);
  CHECK(fd >= 0);
  close(fd);
  return rlim_t(fd);
}

// In one case, so that no bell is opened between the two.
void bells_that_cannot_be_opened() {
  rlimit before;
  CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {first_free_descriptor(), before.rlim_max};
  CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  talk(check::seed);
  CHECK_EQ(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), 0);
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  talk(check::seed + 1000);
}

}  // namespace

int main(int argc, char** argv) {
  give_up_looking();
  return check::main(argc, argv, {{"bells_that_cannot_be_opened", bells_that_cannot_be_opened, 2}});
}
