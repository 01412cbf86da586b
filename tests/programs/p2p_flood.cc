// Floods: thousands of messages before any receive is posted, small and rendezvous-sized, from one
// and from all; the receiver's memory and the sender's credits must hold, and the order too.
#include <unistd.h>

#include "check.h"

namespace {

// Every rank but 0 sends `count` messages before rank 0 takes the first.
void flood(int count, int bytes, bool blocking) {
  count = static_cast<int>(count * check::scale);
  if (check::rank == 0) {
    int all = check::size - 1;
    std::vector<int> next(check::size, 0);
    std::vector<uint8_t> in(bytes + 1);
    usleep(100000);
    for (int n = 0; n < all * count; ++n) {
      MPI_Status status;
      int source = n % 2 ? MPI_ANY_SOURCE : 1 + n / 2 % all;
      if (source != MPI_ANY_SOURCE && next[source] == count) source = MPI_ANY_SOURCE;
      MPI(MPI_Recv(in.data(), bytes, MPI_BYTE, source, 2, MPI_COMM_WORLD, &status));
      int from = status.MPI_SOURCE;
      CHECK_STATUS(status, from, 2, bytes);
      CHECK_BYTES(in.data(), bytes, check::key_of(from, next[from]));
      ++next[from];
    }
    for (int from = 1; from < check::size; ++from) CHECK_EQ(next[from], count);
    return;
  }
  std::vector<MPI_Request> requests(blocking ? 0 : count);
  std::vector<uint8_t> data(static_cast<size_t>(bytes) * (blocking ? 1 : count) + 1);
  for (int i = 0; i < count; ++i) {
    uint8_t* at = data.data() + (blocking ? 0 : static_cast<size_t>(i) * bytes);
    check::fill(at, bytes, check::key_of(check::rank, i));
    if (blocking) {
      MPI(MPI_Send(at, bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD));
    } else {
      MPI(MPI_Isend(at, bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &requests[i]));
    }
  }
  MPI(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
}

void small() { flood(20000, 8, false); }
void small_blocking() { flood(20000, 40, true); }
void medium() { flood(3000, 4000, false); }
void rendezvous() { flood(1500, 40000, false); }

// All to all of small messages, sends first: everybody is flooded and floods.
void everybody() {
  const int each = static_cast<int>(500 * check::scale);
  std::vector<int> out(static_cast<size_t>(each) * check::size);
  std::vector<MPI_Request> requests(out.size());
  for (int i = 0; i < each; ++i) {
    for (int to = 0; to < check::size; ++to) {
      size_t k = static_cast<size_t>(i) * check::size + to;
      out[k] = check::rank * 100000 + to * 1000 + i;
      MPI(MPI_Isend(&out[k], 1, MPI_INT, to, 3, MPI_COMM_WORLD, &requests[k]));
    }
  }
  for (int from = check::size - 1; from >= 0; --from) {
    for (int i = 0; i < each; ++i) {
      int in = -1;
      MPI(MPI_Recv(&in, 1, MPI_INT, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK_EQ(in, from * 100000 + check::rank * 1000 + i);
    }
  }
  MPI(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
}

// Rank 0 is away computing; its small messages come first, an urgent one is looked for by tag.
void search_behind() {
  const int count = static_cast<int>(5000 * check::scale);
  if (check::rank == 1) {
    for (int i = 0; i < count; ++i) MPI(MPI_Send(&i, 1, MPI_INT, 0, 4, MPI_COMM_WORLD));
    int urgent = -5;
    MPI(MPI_Send(&urgent, 1, MPI_INT, 0, 5, MPI_COMM_WORLD));
  } else if (check::rank == 0) {
    int value = 0;
    MPI(MPI_Recv(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_EQ(value, -5);
    for (int i = 0; i < count; ++i) {
      MPI(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK_EQ(value, i);
    }
  }
}

// Thousands of receives are waiting before the first message.
void many_posted() {
  const int count = static_cast<int>(4000 * check::scale);
  if (check::rank == 0) {
    std::vector<int> in(count, -1);
    std::vector<MPI_Request> requests(count);
    for (int i = 0; i < count; ++i)
      MPI(MPI_Irecv(&in[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &requests[i]));
    MPI(MPI_Send(nullptr, 0, MPI_INT, 1, 6, MPI_COMM_WORLD));
    MPI(MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE));
    for (int i = 0; i < count; ++i) CHECK_EQ(in[i], i * 3);
  } else if (check::rank == 1) {
    MPI(MPI_Recv(nullptr, 0, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = count - 1; i >= 0; --i) {
      int value = i * 3;
      MPI(MPI_Send(&value, 1, MPI_INT, 0, i, MPI_COMM_WORLD));
    }
  }
}

// The receiver is away, and the sockets fill up: what was half written must not be written again.
void while_away() {
  constexpr int count = 300, bytes = 60'000;
  std::vector<uint8_t> data(bytes);
  if (check::rank == 0) {
    for (int i = 0; i < count; ++i) {
      check::fill(data.data(), data.size(), uint64_t(i));
      MPI(MPI_Send(data.data(), bytes, MPI_BYTE, 1, 3, MPI_COMM_WORLD));
      memset(data.data(), 0xee, data.size());
    }
  } else if (check::rank == 1) {
    usleep(200'000);
    for (int i = 0; i < count; ++i) {
      MPI(MPI_Recv(data.data(), bytes, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK_BYTES(data.data(), data.size(), uint64_t(i));
    }
    int more = 1;
    MPI(MPI_Iprobe(0, 3, MPI_COMM_WORLD, &more, MPI_STATUS_IGNORE));
    CHECK_EQ(0, more);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"small", small, 2},
                      {"small_blocking", small_blocking, 2},
                      {"medium", medium, 2},
                      {"rendezvous", rendezvous, 2},
                      {"everybody", everybody},
                      {"search_behind", search_behind, 2},
                      {"many_posted", many_posted, 2},
                      {"while_away", while_away, 2}});
}
