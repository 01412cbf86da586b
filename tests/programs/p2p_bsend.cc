// Buffered sends: a process buffer, a communicator's buffer, the automatic buffer; detach and flush
// wait for what is inside; a full buffer is an error; the user's data may change at once.
#include "check.h"

namespace {

int right() { return (check::rank + 1) % check::size; }
int left() { return (check::rank + check::size - 1) % check::size; }

// More than eager sizes, sent before any receive, then the user's buffer is overwritten.
void send_and_spoil(MPI_Comm comm, const std::vector<int>& sizes, uint64_t salt) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::vector<uint8_t> data(sizes[i] + 1);
    check::fill(data.data(), sizes[i], check::key_of(check::rank, i, salt));
    MPI(MPI_Bsend(data.data(), sizes[i], MPI_BYTE, right(), 3, comm));
    memset(data.data(), 0x11, data.size());
  }
}

void receive_all(MPI_Comm comm, const std::vector<int>& sizes, uint64_t salt) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::vector<uint8_t> data(sizes[i] + 1);
    MPI_Status status;
    MPI(MPI_Recv(data.data(), sizes[i], MPI_BYTE, left(), 3, comm, &status));
    CHECK_STATUS(status, left(), 3, sizes[i]);
    CHECK_BYTES(data.data(), sizes[i], check::key_of(left(), i, salt));
  }
}

const std::vector<int> mixed = {0, 1, 152, 5000, 100000, 4096, 4097, 300000, 20};

size_t room_for(const std::vector<int>& sizes) {
  size_t total = 0;
  for (int bytes : sizes) {
    int packed = 0;
    MPI(MPI_Pack_size(bytes, MPI_BYTE, MPI_COMM_WORLD, &packed));
    total += packed + MPI_BSEND_OVERHEAD;
  }
  return total;
}

void attached() {
  std::vector<char> space(room_for(mixed));
  for (int round = 0; round < 3; ++round) {
    MPI(MPI_Buffer_attach(space.data(), static_cast<int>(space.size())));
    send_and_spoil(MPI_COMM_WORLD, mixed, round);
    receive_all(MPI_COMM_WORLD, mixed, round);
    void* address = nullptr;
    int bytes = -1;
    MPI(MPI_Buffer_detach(&address, &bytes));
    CHECK_EQ(address, static_cast<void*>(space.data()));
    CHECK_EQ(bytes, space.size());
    memset(space.data(), 0x22, space.size());
  }
}

// Space is used again and again as messages leave it.
void reuse() {
  std::vector<char> space(room_for({3000}));
  MPI(MPI_Buffer_attach(space.data(), static_cast<int>(space.size())));
  for (int round = 0; round < 200; ++round) {
    send_and_spoil(MPI_COMM_WORLD, {round * 15}, round);
    receive_all(MPI_COMM_WORLD, {round * 15}, round);
    MPI(MPI_Buffer_flush());
  }
  void* address = nullptr;
  int bytes = -1;
  MPI(MPI_Buffer_detach(&address, &bytes));
}

// Detach returns only when the message has left, so the receiver is asked for it meanwhile.
void detach_waits() {
  std::vector<char> space(room_for({200000}));
  MPI(MPI_Buffer_attach(space.data(), static_cast<int>(space.size())));
  std::vector<uint8_t> in(200000);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI(MPI_Irecv(in.data(), 200000, MPI_BYTE, left(), 3, MPI_COMM_WORLD, &request));
  send_and_spoil(MPI_COMM_WORLD, {200000}, 9);
  void* address = nullptr;
  int bytes = -1;
  MPI(MPI_Buffer_detach(&address, &bytes));
  memset(space.data(), 0x33, space.size());
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK_BYTES(in.data(), 200000, check::key_of(left(), 0, 9));
}

// What does not fit is refused with an error, and what was sent before still arrives.
void too_small() {
  std::vector<char> space(room_for({1000}));
  MPI(MPI_Buffer_attach(space.data(), static_cast<int>(space.size())));
  std::vector<uint8_t> large(space.size() + 100000);
  send_and_spoil(MPI_COMM_WORLD, {1000}, 4);
  EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Bsend(large.data(), static_cast<int>(large.size()), MPI_BYTE,
                                         right(), 3, MPI_COMM_WORLD));
  receive_all(MPI_COMM_WORLD, {1000}, 4);
  CHECK(MPI_Buffer_attach(large.data(), static_cast<int>(large.size())) != MPI_SUCCESS);
  void* address = nullptr;
  int bytes = -1;
  MPI(MPI_Buffer_detach(&address, &bytes));
}

void none_attached() {
  char byte = 1;
  EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Bsend(&byte, 1, MPI_BYTE, right(), 3, MPI_COMM_WORLD));
}

// A communicator's own buffer is used for it and not for others.
void on_communicator() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  MPI(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  std::vector<char> space(room_for(mixed));
  MPI(MPI_Comm_attach_buffer(comm, space.data(), static_cast<int>(space.size())));
  char byte = 1;
  EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Bsend(&byte, 1, MPI_BYTE, right(), 3, MPI_COMM_WORLD));
  send_and_spoil(comm, mixed, 6);
  receive_all(comm, mixed, 6);
  MPI(MPI_Comm_flush_buffer(comm));
  send_and_spoil(comm, {10}, 7);
  receive_all(comm, {10}, 7);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI(MPI_Comm_iflush_buffer(comm, &request));
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  void* address = nullptr;
  int bytes = -1;
  MPI(MPI_Comm_detach_buffer(comm, &address, &bytes));
  CHECK_EQ(address, static_cast<void*>(space.data()));
  CHECK_EQ(bytes, space.size());
  MPI(MPI_Comm_free(&comm));
}

void automatic() {
  MPI(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
  send_and_spoil(MPI_COMM_WORLD, mixed, 8);
  receive_all(MPI_COMM_WORLD, mixed, 8);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI(MPI_Buffer_iflush(&request));
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  std::vector<int> many(300, 5000);
  send_and_spoil(MPI_COMM_WORLD, many, 9);
  receive_all(MPI_COMM_WORLD, many, 9);
  void* address = nullptr;
  int bytes = -1;
  MPI(MPI_Buffer_detach(&address, &bytes));
  CHECK_EQ(address, MPI_BUFFER_AUTOMATIC);
}

// A persistent buffered send, started again before its earlier message was received.
void persistent() {
  std::vector<char> space(room_for({600, 600, 600}));
  MPI(MPI_Buffer_attach(space.data(), static_cast<int>(space.size())));
  uint8_t data[600];
  MPI_Request request = MPI_REQUEST_NULL;
  MPI(MPI_Bsend_init(data, 600, MPI_BYTE, right(), 3, MPI_COMM_WORLD, &request));
  for (int round = 0; round < 3; ++round) {
    check::fill(data, 600, check::key_of(check::rank, round, 10));
    MPI(MPI_Start(&request));
    MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  receive_all(MPI_COMM_WORLD, {600, 600, 600}, 10);
  MPI(MPI_Request_free(&request));
  void* address = nullptr;
  int bytes = -1;
  MPI(MPI_Buffer_detach(&address, &bytes));
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"attached", attached},
                      {"reuse", reuse},
                      {"detach_waits", detach_waits},
                      {"too_small", too_small},
                      {"none_attached", none_attached},
                      {"on_communicator", on_communicator},
                      {"automatic", automatic},
                      {"persistent", persistent}});
}
