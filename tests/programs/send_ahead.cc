// Sends whose receiver is late, or whose link is slow, return with their message copied, and so do
// the waits for them: how long they take, what arrives though the buffer is written over at once,
// and that nothing else changes: order, synchronous sends, the limit of memory.
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

// One message, in each form that waits for its send.
enum Form { blocking, wait, wait_all, wait_any, wait_some, persistent, forms };

void send_by(int form, const uint8_t* data, int bytes, int peer) {
  MPI_Request requests[] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  int index = -1, indices[2];
  if (form == blocking) {
    MPI(MPI_Send(data, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD));
    return;
  }
  if (form == persistent) {
    MPI(MPI_Send_init(data, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[1]));
    MPI(MPI_Start(&requests[1]));
    MPI(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    MPI(MPI_Request_free(&requests[1]));
    return;
  }
  MPI(MPI_Isend(data, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[1]));
  if (form == wait) MPI(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
  if (form == wait_all) MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  if (form == wait_any) {
    MPI(MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE));
    CHECK(index == 1);
  }
  if (form == wait_some) {
    MPI(MPI_Waitsome(2, requests, &index, indices, MPI_STATUSES_IGNORE));
    CHECK(index == 1 && indices[0] == 1);
  }
  CHECK(requests[1] == MPI_REQUEST_NULL);
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
  const int bytes = static_cast<int>(data.size()), synchronous = forms;
  for (int form = blocking; form <= synchronous; ++form) {
    double shortest = 1e9;
    for (int round = 0; round < 3; ++round) {
      MPI(MPI_Barrier(MPI_COMM_WORLD));
      const double start = MPI_Wtime();
      if (check::rank == 0) {
        check::fill(data.data(), bytes, check::key_of(round, form));
        if (form == synchronous) {
          MPI(MPI_Ssend(data.data(), bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD));
        } else {
          send_by(form, data.data(), bytes, 1);
        }
        shortest = std::min(shortest, MPI_Wtime() - start);
        std::fill(data.begin(), data.end(), uint8_t{0x77});
      }
      if (check::rank == 1) {
        pause_ms(late_ms);
        MPI(MPI_Recv(data.data(), bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_BYTES(data.data(), bytes, check::key_of(round, form));
      }
    }
    if (check::rank != 0) continue;
    if (form == synchronous || !sends_ahead()) {
      CHECK(shortest > late_ms * 0.8e-3);
    } else {
      CHECK(shortest < late_ms * 0.5e-3);
    }
  }
}

// A persistent send goes on early each time that it is started, from the same buffer.
void persistent_again() {
  std::vector<uint8_t> data(150'000);
  const int bytes = static_cast<int>(data.size());
  MPI_Request request = MPI_REQUEST_NULL;
  if (check::rank == 0) {
    MPI(MPI_Send_init(data.data(), bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &request));
  }
  for (int round = 0; round < 6; ++round) {
    if (check::rank == 0) {
      check::fill(data.data(), bytes, check::key_of(round, 21));
      MPI(MPI_Start(&request));
      MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
      std::fill(data.begin(), data.end(), uint8_t{0x77});
    }
    if (check::rank == 1) {
      pause_ms(round % 3);
      MPI(MPI_Recv(data.data(), bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK_BYTES(data.data(), bytes, check::key_of(round, 21));
    }
  }
  if (check::rank == 0) MPI(MPI_Request_free(&request));
}

// The same of data with gaps, whose type the program frees as soon as its send has begun.
void with_gaps() {
  constexpr int blocks = 150, block = 1000, stride = 1500;
  std::vector<uint8_t> data(blocks * stride), in(blocks * block);
  for (int round = 0; round < 4; ++round) {
    const bool again = round % 2 == 1;  // started a second time
    const uint64_t key = check::key_of(round, 22);
    for (int start = 0; start <= int{again}; ++start) {
      static MPI_Request request;
      MPI(MPI_Barrier(MPI_COMM_WORLD));
      const double began = MPI_Wtime();
      if (check::rank == 0) {
        if (start == 0) {
          MPI_Datatype type;
          MPI(MPI_Type_vector(blocks, block, stride, MPI_BYTE, &type));
          MPI(MPI_Type_commit(&type));
          check::fill(data.data(), static_cast<int>(data.size()), key);
          if (again) {
            MPI(MPI_Send_init(data.data(), 1, type, 1, tag, MPI_COMM_WORLD, &request));
          } else {
            MPI(MPI_Isend(data.data(), 1, type, 1, tag, MPI_COMM_WORLD, &request));
          }
          MPI(MPI_Type_free(&type));
        }
        if (again) {
          check::fill(data.data(), static_cast<int>(data.size()), key + start);
          MPI(MPI_Start(&request));
        }
        MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        if (sends_ahead()) CHECK(MPI_Wtime() - began < late_ms * 0.5e-3);
        std::fill(data.begin(), data.end(), uint8_t{0x77});
        if (again && start == 1) MPI(MPI_Request_free(&request));
      }
      if (check::rank == 1) {
        pause_ms(late_ms);
        MPI(MPI_Recv(in.data(), blocks * block, MPI_BYTE, 0, tag, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE));
        check::fill(data.data(), static_cast<int>(data.size()), key + start);
        for (int i = 0; i < blocks; ++i) {
          CHECK(memcmp(in.data() + i * block, data.data() + i * stride, block) == 0);
        }
      }
    }
  }
}

// A send and a receive in one wait, with the other rank late or not.
void beside_receives() {
  std::vector<uint8_t> out(120'000), in(90'000);
  for (int round = 0; round < 4; ++round) {
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (check::rank > 1) continue;
    const int other = 1 - check::rank,
              sent = static_cast<int>(check::rank ? in.size() : out.size());
    const int got = static_cast<int>(check::rank ? out.size() : in.size());
    std::vector<uint8_t>& from = check::rank ? in : out;
    std::vector<uint8_t>& to = check::rank ? out : in;
    check::fill(from.data(), sent, check::key_of(check::rank, round));
    if (check::rank == 1) pause_ms(round % 2 ? 20 : 0);
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI(MPI_Isend(from.data(), sent, MPI_BYTE, other, tag, MPI_COMM_WORLD, &requests[0]));
    MPI(MPI_Irecv(to.data(), got, MPI_BYTE, other, tag, MPI_COMM_WORLD, &requests[1]));
    MPI(MPI_Waitall(2, requests, statuses));
    std::fill(from.begin(), from.end(), uint8_t{0x77});
    CHECK_STATUS(statuses[1], other, tag, static_cast<size_t>(got));
    CHECK_BYTES(to.data(), got, check::key_of(other, round));
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
        send_by(mine.between(0, forms - 1), out.data(), bytes, peer);
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
                      {"persistent_again", persistent_again},
                      {"with_gaps", with_gaps},
                      {"beside_receives", beside_receives},
                      {"head_to_head", head_to_head},
                      {"random_times", random_times}});
}
