// Programs of the shape of the usual bandwidth benchmarks: a window of messages is started, all
// from one buffer and all into one, waited for, and answered by a short one. They break the rule
// that a buffer belongs to one operation, and every MPI library has to run them. Bytes: a few, two
// transports' limits of eager messages, and long ones. Short runs take two lengths by their seed.
#include "check.h"

namespace {

constexpr int window = 64;
constexpr int data = 100, answer = 101;

int rounds() { return check::runs ? 2 : int(uint64_t(3) * check::scale); }

// The same on all ranks: some below all limits of eager messages, all others above them.
std::vector<int> lengths() {
  if (!check::runs) return {1, 4'096, 16'384, 65'536, 262'144, 1'048'576};
  check::Random random(check::seed);
  const int blocks = random.pick<int>({2, 2, 2, 3, 4, 6});
  return {1 << random.between(0, 14), 32'768 * blocks + random.between(-1, 1)};
}

struct Pair {
  int other;
  bool sends;
  bool is_in = true;
};

// Neighbours, or each rank of the first half with one of the second.
Pair neighbours() {
  return {check::rank ^ 1, check::rank % 2 == 0, (check::rank ^ 1) < check::size};
}
Pair halves() {
  const int half = check::size / 2;
  if (check::rank < half) return {check::rank + half, true};
  return {check::rank - half, false, check::rank < 2 * half};
}

// On a page border, as benchmarks allocate; `of`: what fills it.
class Buffer {
 public:
  Buffer(size_t bytes, int of) : at_(static_cast<uint8_t*>(aligned_alloc(4096, room(bytes)))) {
    memset(at_, of, room(bytes));
  }
  ~Buffer() { free(at_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  uint8_t* operator*() const { return at_; }

 private:
  static size_t room(size_t bytes) { return (bytes + 4096) / 4096 * 4096; }
  uint8_t* at_;
};

void exchange_answers(const Pair& pair) {
  char byte[4] = "";
  if (pair.sends) {
    MPI(MPI_Recv(byte, 4, MPI_CHAR, pair.other, answer, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  } else {
    MPI(MPI_Send(byte, 4, MPI_CHAR, pair.other, answer, MPI_COMM_WORLD));
  }
}

// All messages of a round are alike, and each round's differ from the last one's.
int fill_of(int round, int rank) { return 1 + (round * 7 + rank) % 250; }

void one_way(const Pair& pair) {
  if (!pair.is_in) return;
  for (const int bytes : lengths()) {
    Buffer buffer(size_t(bytes), 0);
    MPI_Request requests[window];
    for (int round = 0; round < rounds(); ++round) {
      if (pair.sends) memset(*buffer, fill_of(round, check::rank), size_t(bytes));
      for (MPI_Request& request : requests) {
        if (pair.sends) {
          MPI(MPI_Isend(*buffer, bytes, MPI_CHAR, pair.other, data, MPI_COMM_WORLD, &request));
        } else {
          MPI(MPI_Irecv(*buffer, bytes, MPI_CHAR, pair.other, data, MPI_COMM_WORLD, &request));
        }
      }
      MPI(MPI_Waitall(window, requests, MPI_STATUSES_IGNORE));
      if (!pair.sends) {
        CHECK_UNTOUCHED(*buffer, size_t(bytes), uint8_t(fill_of(round, pair.other)));
      }
      exchange_answers(pair);
    }
  }
}

void one_pair() { one_way(neighbours()); }
void many_pairs() { one_way(halves()); }

// Both ways at once, each from one buffer and into another.
void both_ways() {
  const Pair pair = neighbours();
  if (!pair.is_in) return;
  for (const int bytes : lengths()) {
    Buffer out(size_t(bytes), 0), in(size_t(bytes), 0);
    MPI_Request receives[window], sends[window];
    for (int round = 0; round < rounds(); ++round) {
      memset(*out, fill_of(round, check::rank), size_t(bytes));
      for (MPI_Request& request : receives) {
        MPI(MPI_Irecv(*in, bytes, MPI_CHAR, pair.other, data, MPI_COMM_WORLD, &request));
      }
      for (MPI_Request& request : sends) {
        MPI(MPI_Isend(*out, bytes, MPI_CHAR, pair.other, data, MPI_COMM_WORLD, &request));
      }
      MPI(MPI_Waitall(window, sends, MPI_STATUSES_IGNORE));
      MPI(MPI_Waitall(window, receives, MPI_STATUSES_IGNORE));
      CHECK_UNTOUCHED(*in, size_t(bytes), uint8_t(fill_of(round, pair.other)));
      exchange_answers(pair);
    }
  }
}

void persistent() {
  const Pair pair = neighbours();
  if (!pair.is_in) return;
  for (const int bytes : lengths()) {
    Buffer buffer(size_t(bytes), 0);
    MPI_Request requests[window];
    for (MPI_Request& request : requests) {
      if (pair.sends) {
        MPI(MPI_Send_init(*buffer, bytes, MPI_CHAR, pair.other, data, MPI_COMM_WORLD, &request));
      } else {
        MPI(MPI_Recv_init(*buffer, bytes, MPI_CHAR, pair.other, data, MPI_COMM_WORLD, &request));
      }
    }
    for (int round = 0; round < rounds(); ++round) {
      if (pair.sends) memset(*buffer, fill_of(round, check::rank), size_t(bytes));
      for (MPI_Request& request : requests) MPI(MPI_Start(&request));
      MPI(MPI_Waitall(window, requests, MPI_STATUSES_IGNORE));
      if (!pair.sends) {
        CHECK_UNTOUCHED(*buffer, size_t(bytes), uint8_t(fill_of(round, pair.other)));
      }
      exchange_answers(pair);
    }
    for (MPI_Request& request : requests) MPI(MPI_Request_free(&request));
  }
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"one_pair", one_pair},
                      {"both_ways", both_ways},
                      {"many_pairs", many_pairs, 3},
                      {"persistent", persistent}});
}
