// Every send mode, blocking, immediate and persistent, at sizes around each protocol edge: in a
// ring (with one rank: to self), with the receive posted first and with the message first.
#include "check.h"

namespace {

enum class Mode { standard, buffered, synchronous, ready };
enum class Kind { blocking, immediate, persistent };

const std::vector<int> edge_sizes = {0,     1,     8,     151,   152,    153,     2047,    2048,
                                     2049,  4095,  4096,  4097,  8192,   8193,    16383,   16384,
                                     16385, 65535, 65536, 65537, 262144, 1 << 20, 16 << 20};

int send_now(Mode mode, const void* data, int bytes, int to, int tag) {
  switch (mode) {
    case Mode::standard: return MPI_Send(data, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD);
    case Mode::buffered: return MPI_Bsend(data, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD);
    case Mode::synchronous: return MPI_Ssend(data, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD);
    case Mode::ready: return MPI_Rsend(data, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD);
  }
  return MPI_ERR_OTHER;
}

int send_later(Mode mode, const void* data, int bytes, int to, int tag, MPI_Request* r) {
  switch (mode) {
    case Mode::standard: return MPI_Isend(data, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, r);
    case Mode::buffered: return MPI_Ibsend(data, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, r);
    case Mode::synchronous: return MPI_Issend(data, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, r);
    case Mode::ready: return MPI_Irsend(data, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, r);
  }
  return MPI_ERR_OTHER;
}

int send_init(Mode mode, const void* data, int bytes, int to, int tag, MPI_Request* r) {
  switch (mode) {
    case Mode::standard: return MPI_Send_init(data, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, r);
    case Mode::buffered: return MPI_Bsend_init(data, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, r);
    case Mode::synchronous:
      return MPI_Ssend_init(data, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, r);
    case Mode::ready: return MPI_Rsend_init(data, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, r);
  }
  return MPI_ERR_OTHER;
}

int right() { return (check::rank + 1) % check::size; }
int left() { return (check::rank + check::size - 1) % check::size; }

// After this the right neighbour has done everything that it did before its own call.
void token_to_left() {
  MPI(MPI_Sendrecv(nullptr, 0, MPI_BYTE, left(), 900, nullptr, 0, MPI_BYTE, right(), 900,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

class BsendBuffer {
 public:
  explicit BsendBuffer(size_t bytes) : space_(bytes + 16 * MPI_BSEND_OVERHEAD) {
    MPI(MPI_Buffer_attach(space_.data(), static_cast<int>(space_.size())));
  }
  ~BsendBuffer() {
    void* address = nullptr;
    int bytes = 0;
    MPI(MPI_Buffer_detach(&address, &bytes));
    CHECK_EQ(address, static_cast<void*>(space_.data()));
    CHECK_EQ(bytes, space_.size());
  }

 private:
  std::vector<char> space_;
};

void one_message(Mode mode, Kind kind, int bytes) {
  uint64_t key =
      check::key_of(static_cast<uint64_t>(mode) * 8 + static_cast<uint64_t>(kind), bytes);
  std::vector<uint8_t> out(bytes + 16), in(bytes + 16, 0xee);
  check::fill(out.data(), bytes, key + check::rank);
  int tag = 10 + static_cast<int>(mode);
  MPI_Request receive = MPI_REQUEST_NULL;
  MPI(MPI_Irecv(in.data(), bytes + 16, MPI_BYTE, left(), tag, MPI_COMM_WORLD, &receive));
  token_to_left();
  MPI_Request send = MPI_REQUEST_NULL;
  if (kind == Kind::blocking) MPI(send_now(mode, out.data(), bytes, right(), tag));
  if (kind == Kind::immediate) MPI(send_later(mode, out.data(), bytes, right(), tag, &send));
  if (kind == Kind::persistent) {
    MPI(send_init(mode, out.data(), bytes, right(), tag, &send));
    MPI(MPI_Start(&send));
  }
  if (kind != Kind::blocking) MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
  if (kind == Kind::persistent) MPI(MPI_Request_free(&send));
  CHECK_EQ(send, MPI_REQUEST_NULL);
  MPI_Status status;
  MPI(MPI_Wait(&receive, &status));
  CHECK_STATUS(status, left(), tag, bytes);
  CHECK_BYTES(in.data(), bytes, key + left());
  CHECK_UNTOUCHED(in.data() + bytes, 16, 0xee);
}

void posted_first(Mode mode) {
  for (int bytes : edge_sizes) {
    if (mode == Mode::buffered) {
      BsendBuffer space(bytes + 4096);
      for (Kind kind : {Kind::blocking, Kind::immediate, Kind::persistent})
        one_message(mode, kind, bytes);
    } else {
      for (Kind kind : {Kind::blocking, Kind::immediate, Kind::persistent})
        one_message(mode, kind, bytes);
    }
  }
}

void standard() { posted_first(Mode::standard); }
void buffered() { posted_first(Mode::buffered); }
void synchronous() { posted_first(Mode::synchronous); }
void ready() { posted_first(Mode::ready); }

// The message is on its way before its receive is posted.
void unexpected() {
  for (Mode mode : {Mode::standard, Mode::synchronous}) {
    for (int bytes : edge_sizes) {
      uint64_t key = check::key_of(77, static_cast<uint64_t>(mode), bytes);
      std::vector<uint8_t> out(bytes), in(bytes + 8, 0xee);
      check::fill(out.data(), bytes, key + check::rank);
      MPI_Request send = MPI_REQUEST_NULL;
      MPI(send_later(mode, out.data(), bytes, right(), 20, &send));
      token_to_left();
      if (mode == Mode::synchronous) {
        // Nobody has received it yet: the neighbour waits for our second token.
        int flag = 1;
        for (int i = 0; i < 20; ++i) {
          MPI(MPI_Request_get_status(send, &flag, MPI_STATUS_IGNORE));
          CHECK(!flag);
        }
        token_to_left();
        MPI(MPI_Sendrecv(nullptr, 0, MPI_BYTE, right(), 901, nullptr, 0, MPI_BYTE, left(), 901,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      }
      MPI_Status status;
      MPI_Request receive = MPI_REQUEST_NULL;
      MPI(MPI_Irecv(in.data(), bytes, MPI_BYTE, left(), 20, MPI_COMM_WORLD, &receive));
      MPI(MPI_Wait(&receive, &status));
      CHECK_STATUS(status, left(), 20, bytes);
      CHECK_BYTES(in.data(), bytes, key + left());
      CHECK_UNTOUCHED(in.data() + bytes, 8, 0xee);
      MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
    }
  }
}

// Several persistent requests, started again and again with new contents each time.
void persistent_reuse() {
  const std::vector<int> sizes = {0, 100, 4096, 5000, 70000, 300000};
  std::vector<std::vector<uint8_t>> out, in;
  std::vector<MPI_Request> sends(sizes.size()), receives(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    out.emplace_back(sizes[i]);
    in.emplace_back(sizes[i]);
    int tag = static_cast<int>(i);
    MPI(MPI_Recv_init(in[i].data(), sizes[i], MPI_BYTE, left(), tag, MPI_COMM_WORLD, &receives[i]));
    MPI(MPI_Send_init(out[i].data(), sizes[i], MPI_BYTE, right(), tag, MPI_COMM_WORLD, &sends[i]));
  }
  for (uint64_t round = 0; round < 8; ++round) {
    for (size_t i = 0; i < sizes.size(); ++i)
      check::fill(out[i].data(), sizes[i], check::key_of(round, i, check::rank));
    if (round % 2 == 0) MPI(MPI_Startall(static_cast<int>(sizes.size()), receives.data()));
    MPI(MPI_Startall(static_cast<int>(sizes.size()), sends.data()));
    if (round % 2 == 1) MPI(MPI_Startall(static_cast<int>(sizes.size()), receives.data()));
    std::vector<MPI_Status> statuses(sizes.size());
    MPI(MPI_Waitall(static_cast<int>(sizes.size()), receives.data(), statuses.data()));
    for (size_t i = 0; i < sizes.size(); ++i) {
      CHECK_STATUS(statuses[i], left(), i, sizes[i]);
      CHECK_BYTES(in[i].data(), sizes[i], check::key_of(round, i, left()));
      CHECK(receives[i] != MPI_REQUEST_NULL);
    }
    MPI(MPI_Waitall(static_cast<int>(sizes.size()), sends.data(), MPI_STATUSES_IGNORE));
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    MPI(MPI_Request_free(&sends[i]));
    MPI(MPI_Request_free(&receives[i]));
    CHECK_EQ(sends[i], MPI_REQUEST_NULL);
  }
}

// Messages to self of every size, receive first and send first.
void self() {
  for (int bytes : edge_sizes) {
    for (bool receive_first : {true, false}) {
      std::vector<uint8_t> out(bytes), in(bytes + 8, 0xee);
      uint64_t key = check::key_of(5, bytes, receive_first);
      check::fill(out.data(), bytes, key);
      MPI_Request requests[2];
      MPI_Status statuses[2];
      auto receive = [&] {
        MPI(MPI_Irecv(in.data(), bytes, MPI_BYTE, 0, 3, MPI_COMM_SELF, &requests[0]));
      };
      if (receive_first) receive();
      MPI(MPI_Isend(out.data(), bytes, MPI_BYTE, 0, 3, MPI_COMM_SELF, &requests[1]));
      if (!receive_first) receive();
      MPI(MPI_Waitall(2, requests, statuses));
      CHECK_STATUS(statuses[0], 0, 3, bytes);
      CHECK_BYTES(in.data(), bytes, key);
      CHECK_UNTOUCHED(in.data() + bytes, 8, 0xee);
    }
  }
}

// A ping-pong of blocking calls between every pair, small to large, as most programs start.
void pingpong() {
  for (int a = 0; a < check::size; ++a) {
    for (int b = a + 1; b < check::size; ++b) {
      if (check::rank != a && check::rank != b) continue;
      int peer = check::rank == a ? b : a;
      for (int bytes : {0, 1, 100, 152, 153, 1000, 4096, 4097, 30000, 100000, 1000000}) {
        std::vector<uint8_t> data(bytes);
        for (int round = 0; round < (bytes < 10000 ? 20 : 3); ++round) {
          uint64_t key = check::key_of(a * 100 + b, bytes, round);
          auto get = [&](uint64_t k) {
            MPI_Status status;
            MPI(MPI_Recv(data.data(), bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &status));
            CHECK_STATUS(status, peer, 1, bytes);
            CHECK_BYTES(data.data(), bytes, k);
          };
          auto put = [&](uint64_t k) {
            check::fill(data.data(), bytes, k);
            MPI(MPI_Send(data.data(), bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD));
          };
          if (check::rank == a) {
            put(key);
            get(key + 1);
          } else {
            get(key);
            put(key + 1);
          }
        }
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"pingpong", pingpong, 2},
                      {"self", self},
                      {"standard", standard},
                      {"synchronous", synchronous},
                      {"ready", ready},
                      {"buffered", buffered},
                      {"unexpected", unexpected},
                      {"persistent_reuse", persistent_reuse}});
}
