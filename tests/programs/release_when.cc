// When a receive may return before anything has been sent: only where nobody could tell (rule 3 of
// docs/early-release-tests.md), and only into memory of which no other holds a part (rule 4). The
// sender puts into each message the time at which it began to send; a receive that returned earlier
// was released before its match.
#include <atomic>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

namespace {

constexpr int bytes = 120'000, tag = 3;
constexpr size_t room = 1 << 18;
constexpr int late_us = 20'000;

uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);  // one clock for all ranks of a machine
  return uint64_t(now.tv_sec) * 1'000'000'000 + uint64_t(now.tv_nsec);
}

void send_late(int to, MPI_Comm comm, int with_tag = tag) {
  std::vector<uint8_t> out(bytes);
  check::fill(out.data(), out.size(), check::seed);
  usleep(late_us);
  const uint64_t began = now_ns();
  memcpy(out.data(), &began, sizeof began);
  MPI(MPI_Send(out.data(), bytes, MPI_BYTE, to, with_tag, comm));
}

// What a receive tells: true if it returned before its message was sent.
bool returned_early(uint64_t at, const uint8_t* data) {
  std::vector<uint8_t> expected(bytes);
  check::fill(expected.data(), expected.size(), check::seed);
  CHECK_EQ(0, memcmp(data + 8, expected.data() + 8, bytes - 8));
  uint64_t began;
  memcpy(&began, data, sizeof began);
  return at < began;
}

using Receive = void (*)(uint8_t* data, MPI_Comm comm);

// One message from rank 0 to rank 1, received in that way.
bool is_early(Receive receive, MPI_Comm comm = MPI_COMM_WORLD, uint8_t* into = nullptr) {
  if (check::rank == 0) send_late(1, comm);
  if (check::rank != 1) return false;
  auto* block = static_cast<uint8_t*>(into ? into : malloc(room));
  memset(block, 0xee, room);
  receive(block + 100, comm);
  const uint64_t at = now_ns();
  const bool early = returned_early(at, block + 100);
  if (!into) free(block);
  return early;
}
void never(Receive receive, MPI_Comm comm = MPI_COMM_WORLD, uint8_t* into = nullptr) {
  for (int i = 0; i < 3; ++i) CHECK_EQ(false, is_early(receive, comm, into));
}

void plain(uint8_t* data, MPI_Comm comm) {
  MPI(MPI_Recv(data, bytes, MPI_BYTE, 0, tag, comm, MPI_STATUS_IGNORE));
}
void in_wait(uint8_t* data, MPI_Comm comm) {
  MPI_Request request;
  MPI(MPI_Irecv(data, bytes, MPI_BYTE, 0, tag, comm, &request));
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
}
void in_waitall(uint8_t* data, MPI_Comm comm) {
  MPI_Request request;
  MPI(MPI_Irecv(data, bytes, MPI_BYTE, 0, tag, comm, &request));
  MPI(MPI_Waitall(1, &request, MPI_STATUSES_IGNORE));
}

// Without it, the other cases would prove nothing. A busy machine may hold rank 1 up for longer
// than rank 0 waits; not every time.
void it_does_happen() {
  const char* mode = getenv("HEADWAY_EARLY_RELEASE");
  const bool wanted = mode && strcmp(mode, "always") == 0 && geteuid() == 0;
  for (Receive receive : {plain, in_wait, in_waitall}) {
    bool early = false;
    for (int i = 0; i < 25; ++i) early |= is_early(receive);
    if (check::rank == 1 && wanted) CHECK_EQ(true, early);
    if (check::rank == 1 && mode == nullptr) CHECK_EQ(false, early);
  }
}

// --- somebody would know ---

void with_status() {
  never([](uint8_t* data, MPI_Comm comm) {
    MPI_Status status;
    MPI(MPI_Recv(data, 2 * bytes, MPI_BYTE, 0, tag, comm, &status));
    CHECK_STATUS(status, 0, tag, bytes);
  });
}

void with_wildcards() {
  never([](uint8_t* data, MPI_Comm comm) {
    MPI(MPI_Recv(data, bytes, MPI_BYTE, MPI_ANY_SOURCE, tag, comm, MPI_STATUS_IGNORE));
  });
  never([](uint8_t* data, MPI_Comm comm) {
    MPI(MPI_Recv(data, bytes, MPI_BYTE, 0, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE));
  });
}

void with_returned_errors() {
  MPI_Comm comm;
  MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  MPI(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  never(plain, comm);
  never(in_wait, comm);
  never(in_waitall, comm);
  MPI(MPI_Comm_free(&comm));
}

void in_waitany_or_waitsome() {
  never([](uint8_t* data, MPI_Comm comm) {
    MPI_Request request;
    int index;
    MPI(MPI_Irecv(data, bytes, MPI_BYTE, 0, tag, comm, &request));
    MPI(MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE));
  });
  never([](uint8_t* data, MPI_Comm comm) {
    MPI_Request request;
    int index, count;
    MPI(MPI_Irecv(data, bytes, MPI_BYTE, 0, tag, comm, &request));
    MPI(MPI_Waitsome(1, &request, &count, &index, MPI_STATUSES_IGNORE));
  });
}

// Test calls never release: the program has something better to do meanwhile.
void in_test() {
  never([](uint8_t* data, MPI_Comm comm) {
    MPI_Request request;
    MPI(MPI_Irecv(data, bytes, MPI_BYTE, 0, tag, comm, &request));
    for (int done = 0; !done;) MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
  });
}

// The other half of the call is not done before its receive is.
void in_sendrecv() {
  if (check::rank > 1) return;
  for (int i = 0; i < 3; ++i) {
    if (check::rank == 0) {
      send_late(1, MPI_COMM_WORLD);
      MPI(MPI_Recv(nullptr, 0, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      continue;
    }
    std::vector<uint8_t> in(room);
    MPI(MPI_Sendrecv(nullptr, 0, MPI_BYTE, 0, tag, in.data() + 100, bytes, MPI_BYTE, 0, tag,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    const uint64_t at = now_ns();
    CHECK_EQ(false, returned_early(at, in.data() + 100));
  }
}

// A thread that never calls MPI may look at what this one writes.
void beside_a_thread() {
  static std::atomic<bool> over{false};
  over = false;
  pthread_t thread;
  const auto idle = [](void*) -> void* {
    while (!over) usleep(500);
    return nullptr;
  };
  CHECK_EQ(0, pthread_create(&thread, nullptr, idle, nullptr));
  never(plain);
  never(in_waitall);
  over = true;
  CHECK_EQ(0, pthread_join(thread, nullptr));
}

// So may a process that shares memory.
void with_shared_memory() {
  void* shared = mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK_EQ(true, shared != MAP_FAILED);
  never(plain);
  never(in_wait);
  CHECK_EQ(0, munmap(shared, 1 << 16));
}

// An operation that needs this thread is not finished.
void beside_a_reduction() {
  MPI_Op last;
  MPI(MPI_Op_create([](void*, void*, int*, MPI_Datatype*) {}, 1, &last));
  int one = 1, two = 0;
  MPI_Request reduction;
  if (check::rank != 0) {
    MPI(MPI_Iallreduce(&one, &two, 1, MPI_INT, last, MPI_COMM_WORLD, &reduction));
  }
  never(plain);  // rank 0 joins the reduction after its send
  if (check::rank == 0) {
    MPI(MPI_Iallreduce(&one, &two, 1, MPI_INT, last, MPI_COMM_WORLD, &reduction));
  }
  MPI(MPI_Wait(&reduction, MPI_STATUS_IGNORE));
  MPI(MPI_Op_free(&last));
}

// --- memory that cannot be closed ---

void onto_the_stack() {
  uint8_t block[room];
  never(plain, MPI_COMM_WORLD, block);
}

void into_shared_memory() {
  void* shared = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK_EQ(true, shared != MAP_FAILED);
  never(plain, MPI_COMM_WORLD, static_cast<uint8_t*>(shared));
  CHECK_EQ(0, munmap(shared, room));
}

void into_a_file() {
  FILE* file = tmpfile();
  CHECK_EQ(true, file != nullptr);
  CHECK_EQ(0, ftruncate(fileno(file), room));
  void* pages = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
  CHECK_EQ(true, pages != MAP_FAILED);
  never(plain, MPI_COMM_WORLD, static_cast<uint8_t*>(pages));
  CHECK_EQ(0, munmap(pages, room));
  fclose(file);
}

void into_locked_memory() {
  void* pages = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK_EQ(true, pages != MAP_FAILED);
  // Not by mlock(), which the sanitizers make do nothing.
  if (syscall(SYS_mlock, pages, room) == 0)
    never(plain, MPI_COMM_WORLD, static_cast<uint8_t*>(pages));
  // One locked page in the middle: closing gets half-way, and must put back what it took.
  CHECK_EQ(0, syscall(SYS_munlock, pages, room));
  if (syscall(SYS_mlock, static_cast<char*>(pages) + 65536, 4096) == 0) {
    never(plain, MPI_COMM_WORLD, static_cast<uint8_t*>(pages));
  }
  CHECK_EQ(0, munmap(pages, room));
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"it_does_happen", it_does_happen, 2},
                      {"with_status", with_status, 2},
                      {"with_wildcards", with_wildcards, 2},
                      {"with_returned_errors", with_returned_errors, 2},
                      {"in_waitany_or_waitsome", in_waitany_or_waitsome, 2},
                      {"in_test", in_test, 2},
                      {"in_sendrecv", in_sendrecv, 2},
                      {"beside_a_thread", beside_a_thread, 2},
                      {"with_shared_memory", with_shared_memory, 2},
                      {"beside_a_reduction", beside_a_reduction, 2},
                      {"onto_the_stack", onto_the_stack, 2},
                      {"into_shared_memory", into_shared_memory, 2},
                      {"into_a_file", into_a_file, 2},
                      {"into_locked_memory", into_locked_memory, 2}});
}
