// Every message comes before the first receive: all ranks but 0 send COUNT messages of BYTES bytes
// with tag 2, by blocking calls, and rank 0 takes one with tag 3 of each before it takes those.
// floods.py runs it. flood_all COUNT BYTES [meanwhile]: with `meanwhile` rank 0 takes none of them
// for half a second, and then begins, whether all have been sent or not.
#include "check.h"

namespace {

constexpr int flood_tag = 2, end_tag = 3;

void send_all(int count, int bytes, bool end) {
  std::vector<uint8_t> data(bytes);
  for (int i = 0; i < count; ++i) {
    check::fill(data.data(), data.size(), check::key_of(check::rank, i));
    MPI(MPI_Send(data.data(), bytes, MPI_BYTE, 0, flood_tag, MPI_COMM_WORLD));
  }
  if (end) MPI(MPI_Send(nullptr, 0, MPI_BYTE, 0, end_tag, MPI_COMM_WORLD));
}

// And takes nothing.
void stay_in_mpi(double seconds) {
  for (const double until = MPI_Wtime() + seconds; MPI_Wtime() < until;) {
    int found = 0;
    MPI(MPI_Iprobe(MPI_ANY_SOURCE, end_tag, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE));
    CHECK_EQ(0, found);
  }
}

void receive_all(int count, int bytes, bool end) {
  for (int from = 1; end && from < check::size; ++from) {
    MPI(MPI_Recv(nullptr, 0, MPI_BYTE, from, end_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
  if (!end) stay_in_mpi(0.5);
  std::vector<uint8_t> in(bytes + 1);
  for (int i = 0; i < count; ++i) {
    for (int from = check::size - 1; from > 0; --from) {
      MPI_Status status;
      MPI(MPI_Recv(in.data(), bytes + 1, MPI_BYTE, from, flood_tag, MPI_COMM_WORLD, &status));
      CHECK_STATUS(status, from, flood_tag, bytes);
      CHECK_BYTES(in.data(), bytes, check::key_of(from, i));
    }
  }
}

void run() {
  const int count = std::stoi(check::words.at(0)), bytes = std::stoi(check::words.at(1));
  const bool end = check::words.size() < 3;
  check::rank == 0 ? receive_all(count, bytes, end) : send_all(count, bytes, end);
}

}  // namespace

int main(int argc, char** argv) { return check::main(argc, argv, {{"run", run, 2}}); }
