// What early release learns: rank 1 receives messages that come late, at places in this program
// after which it computes, reads at once, or makes system calls. releases.py reads the counters.
// release_sites COUNT PLACE...: each place is one of the functions below, COUNT messages each, one
// after the other into the same buffer; `full` instead of a place takes all mappings that the
// system allows but one.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "check.h"

namespace {

constexpr int bytes = 300'000, late_us = 4000;
uint8_t* buffer;

int64_t now_us() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1'000'000 + t.tv_nsec / 1000;
}

void compute(int us) {
  for (const int64_t end = now_us() + us; now_us() < end;) {
  }
}

void receive_and_compute() {
  MPI(MPI_Recv(buffer, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  compute(2 * late_us);
}

// Faster than any data comes: there is nothing to win.
void read_all() {
  uint8_t sum = 0;
  for (int at = 0; at < bytes; at += 4096) sum ^= *static_cast<volatile uint8_t*>(buffer + at);
  asm volatile("" ::"r"(sum));
}

void receive_and_read() {
  MPI(MPI_Recv(buffer, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  read_all();
}

void receive_and_ask() {
  MPI(MPI_Recv(buffer, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  for (int i = 0; i < 200; ++i) {
    (void)syscall(SYS_getppid);
    compute(20);
  }
}

// A release for each buffer would be a first one each time.
void receive_anew() {
  auto* fresh = static_cast<uint8_t*>(malloc(bytes + 8192 + size_t(rand() % 4000)));
  MPI(MPI_Recv(fresh, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  memcpy(buffer, fresh, bytes);
  free(fresh);
}

void wait_and_compute() {
  MPI_Request request;
  MPI(MPI_Irecv(buffer, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request));
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  compute(2 * late_us);
}

void wait_and_read() {
  MPI_Request request;
  MPI(MPI_Irecv(buffer, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request));
  MPI(MPI_Waitall(1, &request, MPI_STATUSES_IGNORE));
  read_all();
}

struct Place {
  const char* name;
  void (*receive)();
};
constexpr Place places[] = {{"compute", receive_and_compute},   {"read", receive_and_read},
                            {"ask", receive_and_ask},           {"anew", receive_anew},
                            {"wait_compute", wait_and_compute}, {"wait_read", wait_and_read}};

// Every second page another protection: each page is a mapping of its own.
void fill_mappings() {
  constexpr size_t pages = 200'000, page = 4096;
  auto* from = static_cast<char*>(
      mmap(nullptr, pages * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  CHECK_EQ(true, from != MAP_FAILED);
  size_t i = 0;
  while (i < pages && mprotect(from + i * page, page, PROT_NONE) == 0) i += 2;
  CHECK_EQ(true, i < pages);
  CHECK_EQ(0, munmap(from + (i - 2) * page, page));
}

void take_mappings() {
  if (check::rank == 0) {
    for (int tag : {2, 3}) MPI(MPI_Send(nullptr, 0, MPI_BYTE, 1, tag, MPI_COMM_WORLD));
  } else if (check::rank == 1) {
    // The second first: from now on the library has room for what nobody waits for.
    for (int tag : {3, 2}) {
      MPI(MPI_Recv(nullptr, 0, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    fill_mappings();
  }
}

void messages(const Place& place, int count) {
  for (int i = 0; i < count; ++i) {
    const uint64_t key = check::key_of(check::seed, uint64_t(i));
    if (check::rank == 0) {
      std::vector<uint8_t> out(bytes);
      check::fill(out.data(), out.size(), key);
      MPI(MPI_Recv(nullptr, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      usleep(late_us);
      MPI(MPI_Send(out.data(), bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
    } else if (check::rank == 1) {
      MPI(MPI_Send(nullptr, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD));
      place.receive();
      CHECK_BYTES(buffer, bytes, key);
    }
  }
}

void run() {
  static std::vector<uint8_t> room(bytes + 4096);
  buffer = room.data() + 100;
  const int count = std::stoi(check::words.at(0));
  for (size_t word = 1; word < check::words.size(); ++word) {
    bool found = check::words[word] == "full";
    if (found) take_mappings();
    for (const Place& place : places) {
      if (check::words[word] != place.name) continue;
      found = true;
      messages(place, count);
    }
    CHECK_EQ(true, found);
  }
}

}  // namespace

int main(int argc, char** argv) { return check::main(argc, argv, {{"run", run, 2}}); }
