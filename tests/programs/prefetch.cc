// Messages that come again and again from the same buffers, so that some of them may travel before
// their sends: written in pieces and at random times, sent in every way, to receives before and
// after them, from memory that is freed, moved, dropped or shared with a child. What arrives is
// what the buffer held when it was sent, and nothing beyond it is touched.
#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <thread>

#include "check.h"

namespace {

constexpr int tag = 5;
constexpr size_t page = 4096;
const std::vector<int> sizes = {4'500, 17'000, 70'001, 200'000, 524'288};

void pause_us(long us) {
  const timespec span{0, us * 1000};
  nanosleep(&span, nullptr);
}

int next() { return (check::rank + 1) % check::size; }
int before() { return (check::rank + check::size - 1) % check::size; }

// Writes the pattern piece by piece, in order or not, some of it twice, with pauses.
void write_slowly(uint8_t* data, size_t bytes, uint64_t key, check::Random& random) {
  std::vector<uint8_t> whole(bytes);
  check::fill(whole.data(), bytes, key);
  const size_t pieces = 1 + random.below(6);
  std::vector<size_t> order(pieces);
  for (size_t i = 0; i < pieces; ++i) order[i] = i;
  if (random.chance(30)) random.shuffle(order);
  for (const size_t piece : order) {
    const size_t from = bytes * piece / pieces, to = bytes * (piece + 1) / pieces;
    if (random.chance(20)) memset(data + from, 0x5a, to - from);
    if (random.chance(40)) pause_us(static_cast<long>(random.below(4000)));
    memcpy(data + from, whole.data() + from, to - from);
  }
  if (random.chance(50)) pause_us(static_cast<long>(random.below(6000)));
  if (random.chance(30)) {
    const size_t at = random.below(bytes);
    data[at] = static_cast<uint8_t>(data[at] + 1);
    if (random.chance(50)) pause_us(3000);
    data[at] = whole[at];
  }
}

void send_somehow(const uint8_t* data, int bytes, int to, check::Random& random) {
  MPI_Request request;
  switch (random.below(4)) {
    case 0: MPI(MPI_Ssend(data, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD)); break;
    case 1:
      MPI(MPI_Isend(data, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request));
      pause_us(500);
      MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
      break;
    default: MPI(MPI_Send(data, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD));
  }
}

// Even ranks send first, so that a synchronous send finds its receive.
void ring() {
  check::Random random(check::seed * 77 + check::rank), common(check::seed);
  const int most = *std::max_element(sizes.begin(), sizes.end());
  std::vector<uint8_t> out(most), in(most + page);
  for (int round = 0; round < 60; ++round) {
    const int usual = sizes[round / 12 % sizes.size()];
    const int bytes = common.chance(15) ? common.pick(sizes) : usual;
    write_slowly(out.data(), bytes, check::key_of(check::rank, round), random);
    std::fill(in.begin() + bytes, in.end(), uint8_t{0x33});
    MPI_Request request;
    MPI(MPI_Irecv(in.data(), static_cast<int>(in.size()), MPI_BYTE, before(), tag, MPI_COMM_WORLD,
                  &request));
    send_somehow(out.data(), bytes, next(), random);
    MPI_Status status;
    MPI(MPI_Wait(&request, &status));
    CHECK_STATUS(status, before(), tag, bytes);
    CHECK_BYTES(in.data(), bytes, check::key_of(before(), round));
    check::expect_untouched(in.data() + bytes, in.size() - bytes, 0x33, __FILE__, __LINE__);
  }
}

// One rank waits long for what the other has ready.
void waits_long() {
  if (check::rank > 1) return;
  const int bytes = 300'000;
  std::vector<uint8_t> data(bytes);
  check::Random random(check::seed);
  for (int round = 0; round < 15; ++round) {
    if (check::rank == 0) {
      check::fill(data.data(), bytes, check::key_of(round));
      pause_us(10'000);
      if (round % 3 == 2) {
        const size_t at = random.below(bytes);
        data[at] = check::byte_of(check::key_of(round), at);
      }
      MPI(MPI_Send(data.data(), bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD));
      std::fill(data.begin(), data.end(), uint8_t{0x77});
      MPI(MPI_Recv(nullptr, 0, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    } else {
      MPI(MPI_Recv(data.data(), bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK_BYTES(data.data(), bytes, check::key_of(round));
      MPI(MPI_Send(nullptr, 0, MPI_BYTE, 0, tag, MPI_COMM_WORLD));
    }
  }
}

// Slices of one buffer, which share pages, and the same buffer to everybody.
void slices() {
  const int each = 30'011;
  std::vector<uint8_t> all(static_cast<size_t>(each) * check::size), in(all.size()), mine(each);
  check::Random random(check::seed * 3 + check::rank);
  for (int round = 0; round < 12; ++round) {
    if (check::rank == 0) write_slowly(all.data(), all.size(), check::key_of(round), random);
    std::vector<uint8_t> whole(all.size());
    check::fill(whole.data(), whole.size(), check::key_of(round));
    MPI(MPI_Scatter(all.data(), each, MPI_BYTE, mine.data(), each, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK(memcmp(mine.data(), whole.data() + static_cast<size_t>(each) * check::rank, each) == 0);
    write_slowly(mine.data(), each, check::key_of(check::rank, round), random);
    MPI(MPI_Gather(mine.data(), each, MPI_BYTE, in.data(), each, MPI_BYTE, 0, MPI_COMM_WORLD));
    for (int peer = 0; check::rank == 0 && peer < check::size; ++peer) {
      CHECK_BYTES(in.data() + static_cast<size_t>(each) * peer, each, check::key_of(peer, round));
    }
    MPI(MPI_Allgather(mine.data(), each, MPI_BYTE, in.data(), each, MPI_BYTE, MPI_COMM_WORLD));
    for (int peer = 0; peer < check::size; ++peer) {
      CHECK_BYTES(in.data() + static_cast<size_t>(each) * peer, each, check::key_of(peer, round));
    }
    MPI(MPI_Bcast(all.data(), static_cast<int>(all.size()), MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_BYTES(all.data(), all.size(), check::key_of(round));
    MPI(MPI_Alltoall(all.data(), each, MPI_BYTE, in.data(), each, MPI_BYTE, MPI_COMM_WORLD));
    for (int peer = 0; peer < check::size; ++peer) {
      CHECK(memcmp(in.data() + static_cast<size_t>(each) * peer,
                   whole.data() + static_cast<size_t>(each) * check::rank, each) == 0);
    }
  }
}

// The same as persistent requests, with a type with gaps at the receiver.
void persistent() {
  const int count = 20'000;
  std::vector<uint8_t> out(count * 4), in(count * 8);
  check::Random random(check::seed * 5 + check::rank);
  MPI_Datatype gaps;
  MPI(MPI_Type_vector(count, 4, 8, MPI_BYTE, &gaps));
  MPI(MPI_Type_commit(&gaps));
  MPI_Request requests[2];
  MPI(MPI_Recv_init(in.data(), 1, gaps, before(), tag, MPI_COMM_WORLD, &requests[0]));
  MPI(MPI_Send_init(out.data(), count * 4, MPI_BYTE, next(), tag, MPI_COMM_WORLD, &requests[1]));
  for (int round = 0; round < 15; ++round) {
    std::fill(in.begin(), in.end(), uint8_t{0x11});
    MPI(MPI_Start(&requests[0]));
    write_slowly(out.data(), out.size(), check::key_of(check::rank, round), random);
    MPI(MPI_Start(&requests[1]));
    MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    std::vector<uint8_t> packed(out.size());
    check::fill(packed.data(), packed.size(), check::key_of(before(), round));
    for (int i = 0; i < count; ++i) {
      CHECK(memcmp(in.data() + i * 8, packed.data() + i * 4, 4) == 0);
      if (i + 1 < count) CHECK(in[i * 8 + 4] == 0x11);
    }
  }
  for (MPI_Request& request : requests) MPI(MPI_Request_free(&request));
  MPI(MPI_Type_free(&gaps));
}

// Then pages that move stay read-only: programs may not do that.
bool by_signal() {
  const char* way = getenv("HEADWAY_PREFETCH_WRITES");
  return way && strcmp(way, "signal") == 0;
}

// What programs do with the memory between two sends from it.
void memory_moves() {
  check::Random random(check::seed * 7 + check::rank);
  const int bytes = 300'000;
  std::vector<uint8_t> in(bytes);
  auto* out = static_cast<uint8_t*>(malloc(bytes));
  for (int round = 0; round < 60; ++round) {
    switch (round % 12) {
      case 5:
        free(out);
        out = static_cast<uint8_t*>(malloc(bytes));
        break;
      case 7: {
        if (by_signal()) break;
        void* more = realloc(out, bytes * (1 + random.below(8)));
        out = static_cast<uint8_t*>(more);
        break;
      }
      case 9: {
        auto* from =
            reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(out) + page) / page * page);
        madvise(from, 8 * page, MADV_DONTNEED);
        break;
      }
      case 11: {
        const pid_t child = fork();
        if (child == 0) {
          memset(out, 0x99, bytes);
          _exit(0);
        }
        int state = 0;
        CHECK(waitpid(child, &state, 0) == child);
        CHECK(state == 0);
        break;
      }
      default: break;
    }
    MPI_Request request;
    MPI(MPI_Irecv(in.data(), bytes, MPI_BYTE, before(), tag, MPI_COMM_WORLD, &request));
    write_slowly(out, bytes, check::key_of(check::rank, round), random);
    MPI(MPI_Send(out, bytes, MPI_BYTE, next(), tag, MPI_COMM_WORLD));
    MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_BYTES(in.data(), bytes, check::key_of(before(), round));
  }
  free(out);
  malloc_trim(0);
}

// Another thread writes its own part of the pages that are sent, all the time.
void neighbour_writes() {
  const size_t bytes = 100'000;
  std::vector<uint8_t> shared(bytes + 2 * page), in(bytes);
  uint8_t* out = shared.data() + page / 2;
  std::atomic<bool> over{false};
  std::thread writer([&] {
    check::Random random(check::rank);
    while (!over) {
      shared[random.below(page / 2)] = 1;
      shared[page / 2 + bytes + random.below(page)] = 2;
      if (random.chance(1)) pause_us(200);
    }
  });
  check::Random random(check::seed * 9 + check::rank);
  for (int round = 0; round < 25; ++round) {
    MPI_Request request;
    MPI(MPI_Irecv(in.data(), static_cast<int>(bytes), MPI_BYTE, before(), tag, MPI_COMM_WORLD,
                  &request));
    write_slowly(out, bytes, check::key_of(check::rank, round), random);
    MPI(MPI_Send(out, static_cast<int>(bytes), MPI_BYTE, next(), tag, MPI_COMM_WORLD));
    MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_BYTES(in.data(), bytes, check::key_of(before(), round));
  }
  over = true;
  writer.join();
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"ring", ring, 2},
                      {"waits_long", waits_long, 2},
                      {"slices", slices},
                      {"persistent", persistent, 2},
                      {"memory_moves", memory_moves, 2},
                      {"neighbour_writes", neighbour_writes, 2}});
}
