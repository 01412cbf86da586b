// Blocking sends whose receiver is late, or whose link is slow, return with their message copied:
// how long they take, what arrives though the buffer is written over at once, and that nothing else
// changes: order, synchronous sends, the limit of memory.
#include <time.h>

#include <algorithm>

#include "check.h"

namespace {

constexpr int late_ms = 400;
constexpr int tag = 3;
const std::vector<int> sizes = {70'000, 5'000, 300'000, 66'000, 16'385, 1'000'000};

bool sends_ahead() {
  const char* memory = getenv("HEADWAY_SEND_AHEAD");
  const char* progress = getenv("HEADWAY_PROGRESS");
  return (memory == nullptr || strcmp(memory, "0") != 0) &&
         (progress == nullptr || strcmp(progress, "off") != 0);
}

void pause_ms(int ms) {
  const timespec span{ms / 1000, ms % 1000 * 1'000'000L};
  nanosleep(&span, nullptr);
}

// Rank 1 computes outside of MPI, rank 0 sends meanwhile and writes over its buffer.
void late_receiver() {
  std::vector<uint8_t> data(*std::max_element(sizes.begin(), sizes.end()));
  for (int round = 0; round < 2; ++round) {
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (check::rank == 0) {
      const double start = MPI_Wtime();
      for (size_t i = 0; i < sizes.size(); ++i) {
        check::fill(data.data(), sizes[i], check::key_of(round, static_cast<int>(i)));
        MPI(MPI_Send(data.data(), sizes[i], MPI_BYTE, 1, tag, MPI_COMM_WORLD));
        std::fill(data.begin(), data.end(), uint8_t{0x77});
      }
      const double took = MPI_Wtime() - start;
      // One process may have more messages that may move than there are slots for: then it waits.
      if (!sends_ahead()) CHECK(took > late_ms * 0.5e-3);
    }
    if (check::rank == 1) {
      pause_ms(late_ms);
      for (size_t i = 0; i < sizes.size(); ++i) {
        MPI_Status status;
        MPI(MPI_Recv(data.data(), static_cast<int>(data.size()), MPI_BYTE, 0, tag, MPI_COMM_WORLD,
                     &status));
        CHECK_STATUS(status, 0, tag, sizes[i]);
        CHECK_BYTES(data.data(), sizes[i], check::key_of(round, static_cast<int>(i)));
      }
    }
  }
}

// One message alone: its send is back long before the receiver is.
void returns_early() {
  std::vector<uint8_t> data(200'000);
  const int bytes = static_cast<int>(data.size());
  for (const bool synchronous : {false, true}) {
    double shortest = 1e9;
    for (int round = 0; round < 3; ++round) {
      MPI(MPI_Barrier(MPI_COMM_WORLD));
      const double start = MPI_Wtime();
      if (check::rank == 0) {
        check::fill(data.data(), bytes, check::key_of(round, 1));
        if (synchronous) {
          MPI(MPI_Ssend(data.data(), bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD));
        } else {
          MPI(MPI_Send(data.data(), bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD));
        }
        shortest = std::min(shortest, MPI_Wtime() - start);
        std::fill(data.begin(), data.end(), uint8_t{0x77});
      }
      if (check::rank == 1) {
        pause_ms(late_ms);
        MPI(MPI_Recv(data.data(), bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_BYTES(data.data(), bytes, check::key_of(round, 1));
      }
    }
    if (check::rank != 0) continue;
    if (synchronous || !sends_ahead()) {
      CHECK(shortest > late_ms * 0.8e-3);
    } else {
      CHECK(shortest < late_ms * 0.5e-3);
    }
  }
}

// Both send before they receive: a program that waits for ever without copies, so it is not right,
// but it runs.
void head_to_head() {
  if (!sends_ahead() || check::rank > 1) return;
  std::vector<uint8_t> out(100'000), in(100'000);
  const int bytes = static_cast<int>(out.size()), other = 1 - check::rank;
  check::fill(out.data(), bytes, check::key_of(check::rank, 9));
  MPI(MPI_Send(out.data(), bytes, MPI_BYTE, other, tag, MPI_COMM_WORLD));
  MPI(MPI_Recv(in.data(), bytes, MPI_BYTE, other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK_BYTES(in.data(), bytes, check::key_of(other, 9));
}

// Messages to everybody, receivers that come at random, sends of both kinds and exchanges between
// them: all arrive, in order.
void random_times() {
  check::Random random(check::seed), mine(check::seed * 1000 + check::rank);
  const int messages = 12;
  std::vector<std::vector<int>> length(check::size, std::vector<int>(messages));
  for (auto& row : length) {
    for (int& bytes : row) bytes = random.pick(sizes) / random.between(1, 4);
  }
  std::vector<uint8_t> data(1'000'000), out(1'000'000);
  for (int round = 0; round < messages; ++round) {
    std::vector<MPI_Request> requests(check::size);
    std::vector<std::vector<uint8_t>> in(check::size, std::vector<uint8_t>(1'000'000));
    const bool posted = mine.chance(50);
    const auto post = [&] {
      for (int peer = 0; peer < check::size; ++peer) {
        MPI(MPI_Irecv(in[peer].data(), 1'000'000, MPI_BYTE, peer, tag, MPI_COMM_WORLD,
                      &requests[peer]));
      }
    };
    if (posted) post();
    if (mine.chance(50)) pause_ms(mine.between(0, 3));
    for (int step = 1; step < check::size; ++step) {
      const int peer = (check::rank + step) % check::size;
      const int bytes = length[check::rank][round];
      check::fill(out.data(), bytes, check::key_of(check::rank * 100 + peer, round));
      if (!posted) {  // or everybody might wait in a send
        MPI_Request request;
        MPI(MPI_Isend(out.data(), bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &request));
        if (step == 1) post();
        MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
      } else {
        MPI(MPI_Send(out.data(), bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD));
      }
      std::fill(out.begin(), out.begin() + bytes, uint8_t{0x77});
    }
    const int own = length[check::rank][round];
    check::fill(out.data(), own, check::key_of(check::rank * 101, round));
    if (!posted && check::size == 1) post();
    MPI_Request self;
    MPI(MPI_Isend(out.data(), own, MPI_BYTE, check::rank, tag, MPI_COMM_WORLD, &self));
    MPI(MPI_Waitall(check::size, requests.data(), MPI_STATUSES_IGNORE));
    MPI(MPI_Wait(&self, MPI_STATUS_IGNORE));
    for (int peer = 0; peer < check::size; ++peer) {
      CHECK_BYTES(in[peer].data(), length[peer][round],
                  check::key_of(peer * 100 + check::rank, round));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"late_receiver", late_receiver},
                      {"returns_early", returns_early},
                      {"head_to_head", head_to_head},
                      {"random_times", random_times}});
}
