// What the programs about early release share: pairs of ranks, and messages of a length that no
// transport sends without a handshake. Thread: any. Owner: each program. Invariant: odd ranks
// receive what even ones send.
#pragma once
#include "check.h"

namespace release {

constexpr int big = 200'000;  // a handshake on every transport
constexpr int data = 1, token = 2, later = 3;
constexpr int late_us = 4'000;  // the other side has gone ahead by then

inline int other() { return check::rank ^ 1; }
inline bool is_alone() { return other() >= check::size; }
inline bool receives() { return check::rank % 2 == 1; }
inline int rounds(int n) { return int(uint64_t(n) * check::scale); }

// Bytes from plain malloc between bytes of somebody else, at an address that no page begins at.
class Block {
 public:
  explicit Block(size_t bytes = big, size_t offset = 333) : bytes_(bytes), offset_(offset) {
    all_ = static_cast<uint8_t*>(malloc(offset + bytes + 777));
    memset(all_, 0xee, offset + bytes + 777);
  }
  ~Block() { free(all_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  uint8_t* operator*() const { return all_ + offset_; }
  uint8_t* before() const { return all_; }
  uint8_t* behind() const { return all_ + offset_ + bytes_; }

 private:
  size_t bytes_, offset_;
  uint8_t* all_;
};

inline uint64_t key(int round, int rank, int what = 0) {
  return check::key_of(check::seed, uint64_t(round), uint64_t(rank * 10 + what));
}

inline void send_big(int to, int tag, uint64_t with) {
  Block out;
  check::fill(*out, big, with);
  MPI(MPI_Send(*out, big, MPI_BYTE, to, tag, MPI_COMM_WORLD));
}
inline void receive_big(const Block& in, int from, int tag) {
  MPI(MPI_Recv(*in, big, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}
inline void send_token(int to) { MPI(MPI_Send(nullptr, 0, MPI_BYTE, to, token, MPI_COMM_WORLD)); }
inline void await_token(int from) {
  MPI(MPI_Recv(nullptr, 0, MPI_BYTE, from, token, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

}  // namespace release
