// Probes: blocking and not, matched and not; what a matched probe took is invisible to others; the
// status tells the exact size; the message of a matched probe arrives in any order of receiving.
#include <sched.h>

#include "check.h"

namespace {

const std::vector<int> sizes = {0, 1, 152, 153, 2048, 4096, 4097, 16384, 65536, 1 << 20};
int right() { return (check::rank + 1) % check::size; }
int left() { return (check::rank + check::size - 1) % check::size; }

struct Outgoing {
  std::vector<std::vector<uint8_t>> data;
  std::vector<MPI_Request> requests;
  void send(int bytes, int to, int tag, uint64_t key) {
    data.emplace_back(bytes + 1);
    check::fill(data.back().data(), bytes, key);
    requests.emplace_back();
    MPI(MPI_Isend(data.back().data(), bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &requests.back()));
  }
  ~Outgoing() {
    MPI(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
  }
};

// Probe tells source, tag and size; the same message is then received, several probes agree.
void probe() {
  Outgoing out;
  for (int bytes : sizes) {
    out.send(bytes, right(), 30, check::key_of(check::rank, bytes));
    for (int source : {left(), static_cast<int>(MPI_ANY_SOURCE)}) {
      for (int tag : {30, static_cast<int>(MPI_ANY_TAG)}) {
        MPI_Status status;
        MPI(MPI_Probe(source, tag, MPI_COMM_WORLD, &status));
        CHECK_STATUS(status, left(), 30, bytes);
      }
    }
    std::vector<uint8_t> in(bytes + 1);
    MPI(MPI_Recv(in.data(), bytes, MPI_BYTE, left(), 30, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_BYTES(in.data(), bytes, check::key_of(left(), bytes));
  }
}

// Iprobe makes progress by itself: no other call is needed until the flag is set.
void iprobe() {
  for (int bytes : sizes) {
    int flag = 1;
    MPI(MPI_Iprobe(left(), 31, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    Outgoing out;
    out.send(bytes, right(), 31, check::key_of(check::rank, bytes));
    MPI_Status status;
    for (flag = 0; !flag; sched_yield())
      MPI(MPI_Iprobe(left(), 31, MPI_COMM_WORLD, &flag, &status));
    CHECK_STATUS(status, left(), 31, bytes);
    flag = 1;
    MPI(MPI_Iprobe(left(), 32, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    std::vector<uint8_t> in(bytes + 1);
    MPI(MPI_Recv(in.data(), bytes, MPI_BYTE, left(), 31, MPI_COMM_WORLD, &status));
    CHECK_BYTES(in.data(), bytes, check::key_of(left(), bytes));
    MPI(MPI_Barrier(MPI_COMM_WORLD));
  }
}

// Matched messages are kept aside, received last to first; Mrecv and Imrecv in turn.
void mprobe() {
  Outgoing out;
  int n = static_cast<int>(sizes.size());
  for (int i = 0; i < n; ++i) out.send(sizes[i], right(), 33, check::key_of(check::rank, i));
  std::vector<MPI_Message> messages(n, MPI_MESSAGE_NULL);
  for (int i = 0; i < n; ++i) {
    MPI_Status status;
    MPI(MPI_Mprobe(i % 2 ? MPI_ANY_SOURCE : left(), 33, MPI_COMM_WORLD, &messages[i], &status));
    CHECK_STATUS(status, left(), 33, sizes[i]);
    CHECK(messages[i] != MPI_MESSAGE_NULL && messages[i] != MPI_MESSAGE_NO_PROC);
  }
  int flag = 1;
  MPI(MPI_Iprobe(MPI_ANY_SOURCE, 33, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
  CHECK(!flag);
  for (int i = n - 1; i >= 0; --i) {
    std::vector<uint8_t> in(sizes[i] + 9, 0xee);
    MPI_Status status;
    if (i % 2) {
      MPI(MPI_Mrecv(in.data(), sizes[i] + 9, MPI_BYTE, &messages[i], &status));
    } else {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI(MPI_Imrecv(in.data(), sizes[i] + 9, MPI_BYTE, &messages[i], &request));
      MPI(MPI_Wait(&request, &status));
    }
    CHECK_EQ(messages[i], MPI_MESSAGE_NULL);
    CHECK_STATUS(status, left(), 33, sizes[i]);
    CHECK_BYTES(in.data(), sizes[i], check::key_of(left(), i));
    CHECK_UNTOUCHED(in.data() + sizes[i], 9, 0xee);
  }
}

int heard_errors = 0;
void hear(MPI_Comm*, int* code, ...) {
  CHECK_EQ(check::class_of(*code), MPI_ERR_TRUNCATE);
  ++heard_errors;
}

// The communicator is freed between the matched probe and the receive, whose error still goes to
// its handler.
void freed_between() {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI(MPI_Comm_create_errhandler(hear, &handler));
  for (bool immediate : {false, true}) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MPI(MPI_Comm_set_errhandler(comm, handler));
    const int out[4] = {check::rank, 1, 2, 3};
    int in[4] = {-1, -1, -1, -1};
    MPI_Request sends[2], request = MPI_REQUEST_NULL;
    MPI_Message messages[2];
    for (int i = 0; i < 2; ++i) {
      MPI(MPI_Isend(out, 4, MPI_INT, right(), i, comm, &sends[i]));
      MPI(MPI_Mprobe(left(), i, comm, &messages[i], MPI_STATUS_IGNORE));
    }
    MPI(MPI_Waitall(2, sends, MPI_STATUSES_IGNORE));
    MPI(MPI_Comm_free(&comm));
    heard_errors = 0;
    if (immediate) {
      MPI(MPI_Imrecv(in, 4, MPI_INT, &messages[0], &request));
      MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
      CHECK_EQ(in[0], left());
      MPI(MPI_Imrecv(in, 2, MPI_INT, &messages[1], &request));
      EXPECT_CLASS(MPI_ERR_TRUNCATE, MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
      MPI(MPI_Mrecv(in, 4, MPI_INT, &messages[0], MPI_STATUS_IGNORE));
      CHECK_EQ(in[0], left());
      EXPECT_CLASS(MPI_ERR_TRUNCATE, MPI_Mrecv(in, 2, MPI_INT, &messages[1], MPI_STATUS_IGNORE));
    }
    CHECK_EQ(heard_errors, 1);
  }
  MPI(MPI_Errhandler_free(&handler));
}

// Improbe answers "nothing" and then takes; a normal receive gets the next message, not that one.
void improbe() {
  for (int bytes : sizes) {
    int flag = 1;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    MPI(MPI_Improbe(left(), 34, MPI_COMM_WORLD, &flag, &message, &status));
    CHECK(!flag);
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    Outgoing out;
    out.send(bytes, right(), 34, check::key_of(check::rank, bytes, 1));
    out.send(7, right(), 34, check::key_of(check::rank, bytes, 2));
    for (flag = 0; !flag; sched_yield())
      MPI(MPI_Improbe(MPI_ANY_SOURCE, 34, MPI_COMM_WORLD, &flag, &message, &status));
    CHECK_STATUS(status, left(), 34, bytes);
    std::vector<uint8_t> in(bytes + 8);
    MPI(MPI_Recv(in.data(), bytes + 8, MPI_BYTE, left(), 34, MPI_COMM_WORLD, &status));
    CHECK_STATUS(status, left(), 34, 7);
    CHECK_BYTES(in.data(), 7, check::key_of(left(), bytes, 2));
    MPI(MPI_Mrecv(in.data(), bytes, MPI_BYTE, &message, &status));
    CHECK_STATUS(status, left(), 34, bytes);
    CHECK_BYTES(in.data(), bytes, check::key_of(left(), bytes, 1));
    MPI(MPI_Barrier(MPI_COMM_WORLD));
  }
}

void proc_null() {
  MPI_Status status;
  MPI(MPI_Send("x", 1, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
  MPI(MPI_Ssend("x", 1, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
  MPI(MPI_Rsend("x", 1, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
  MPI(MPI_Bsend("x", 1, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
  char kept = 'k';
  auto expect_null_status = [&] { CHECK_STATUS(status, MPI_PROC_NULL, MPI_ANY_TAG, 0); };
  MPI(MPI_Recv(&kept, 1, MPI_BYTE, MPI_PROC_NULL, 5, MPI_COMM_WORLD, &status));
  expect_null_status();
  MPI(MPI_Probe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &status));
  expect_null_status();
  int flag = 0;
  MPI(MPI_Iprobe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &flag, &status));
  CHECK(flag);
  expect_null_status();
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI(MPI_Mprobe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &message, &status));
  CHECK_EQ(message, MPI_MESSAGE_NO_PROC);
  MPI(MPI_Mrecv(&kept, 1, MPI_BYTE, &message, &status));
  CHECK_EQ(message, MPI_MESSAGE_NULL);
  expect_null_status();
  MPI(MPI_Improbe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &flag, &message, &status));
  CHECK(flag);
  CHECK_EQ(message, MPI_MESSAGE_NO_PROC);
  MPI_Request requests[4];
  MPI(MPI_Imrecv(&kept, 1, MPI_BYTE, &message, &requests[0]));
  MPI(MPI_Irecv(&kept, 1, MPI_BYTE, MPI_PROC_NULL, 5, MPI_COMM_WORLD, &requests[1]));
  MPI(MPI_Isend("x", 1, MPI_BYTE, MPI_PROC_NULL, 5, MPI_COMM_WORLD, &requests[2]));
  MPI(MPI_Issend("x", 1, MPI_BYTE, MPI_PROC_NULL, 5, MPI_COMM_WORLD, &requests[3]));
  MPI_Status statuses[4];
  MPI(MPI_Waitall(4, requests, statuses));
  for (int i = 0; i < 2; ++i) {
    status = statuses[i];
    expect_null_status();
  }
  MPI_Request persistent[2];
  MPI(MPI_Send_init("x", 1, MPI_BYTE, MPI_PROC_NULL, 5, MPI_COMM_WORLD, &persistent[0]));
  MPI(MPI_Recv_init(&kept, 1, MPI_BYTE, MPI_PROC_NULL, 5, MPI_COMM_WORLD, &persistent[1]));
  for (int round = 0; round < 3; ++round) {
    MPI(MPI_Startall(2, persistent));
    MPI(MPI_Waitall(2, persistent, statuses));
    status = statuses[1];
    expect_null_status();
  }
  for (MPI_Request& r : persistent) MPI(MPI_Request_free(&r));
  CHECK_EQ(kept, 'k');
}

// Sendrecv and its kin in a ring, with different sizes each way. `shared`: what comes lies partly
// over what goes, which the standard forbids and programs do; it works as if it did not.
void exchange(bool immediate, bool shared) {
  for (int bytes : sizes) {
    int my_bytes = bytes + check::rank, your_bytes = bytes + left();
    std::vector<uint8_t> room(my_bytes + your_bytes + 9, 0xee);
    uint8_t *out = room.data(), *in = out + (shared ? my_bytes / 2 : my_bytes + 1);
    check::fill(out, my_bytes, check::key_of(check::rank, bytes, immediate));
    MPI_Status status;
    if (!immediate) {
      MPI(MPI_Sendrecv(out, my_bytes, MPI_BYTE, right(), 40, in, your_bytes, MPI_BYTE, left(), 40,
                       MPI_COMM_WORLD, &status));
    } else {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI(MPI_Isendrecv(out, my_bytes, MPI_BYTE, right(), 40, in, your_bytes, MPI_BYTE, left(), 40,
                        MPI_COMM_WORLD, &request));
      MPI(MPI_Wait(&request, &status));
    }
    CHECK_STATUS(status, left(), 40, your_bytes);
    CHECK_BYTES(in, your_bytes, check::key_of(left(), bytes, immediate));
    if (!shared) CHECK_UNTOUCHED(in + your_bytes, 8, 0xee);
  }
}
void sendrecv() { exchange(false, false); }
void isendrecv() { exchange(true, false); }
void sendrecv_shared() { exchange(false, true); }
void isendrecv_shared() { exchange(true, true); }

void exchange_in_place(bool immediate) {
  for (int bytes : sizes) {
    std::vector<uint8_t> data(bytes + 8, 0xee);
    check::fill(data.data(), bytes, check::key_of(check::rank, bytes, immediate));
    MPI_Status status;
    if (!immediate) {
      MPI(MPI_Sendrecv_replace(data.data(), bytes, MPI_BYTE, right(), 41, left(), 41,
                               MPI_COMM_WORLD, &status));
    } else {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI(MPI_Isendrecv_replace(data.data(), bytes, MPI_BYTE, right(), 41, left(), 41,
                                MPI_COMM_WORLD, &request));
      MPI(MPI_Wait(&request, &status));
    }
    CHECK_STATUS(status, left(), 41, bytes);
    CHECK_BYTES(data.data(), bytes, check::key_of(left(), bytes, immediate));
    CHECK_UNTOUCHED(data.data() + bytes, 8, 0xee);
  }
}
void sendrecv_replace() { exchange_in_place(false); }
void isendrecv_replace() {
  exchange_in_place(true);
  int mine = check::rank;
  MPI_Status status;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI(MPI_Isendrecv_replace(&mine, 1, MPI_INT, MPI_PROC_NULL, 43, MPI_PROC_NULL, 43, MPI_COMM_WORLD,
                            &request));
  MPI(MPI_Wait(&request, &status));
  CHECK_EQ(mine, check::rank);
  CHECK_STATUS(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
}

// A line with open ends: PROC_NULL beyond them, as a stencil program does.
void sendrecv_line() {
  int up = check::rank > 0 ? check::rank - 1 : MPI_PROC_NULL;
  int down = check::rank + 1 < check::size ? check::rank + 1 : MPI_PROC_NULL;
  for (int round = 0; round < 10; ++round) {
    int mine = check::rank * 100 + round, from_up = -7;
    MPI_Status status;
    MPI(MPI_Sendrecv(&mine, 1, MPI_INT, down, 42, &from_up, 1, MPI_INT, up, 42, MPI_COMM_WORLD,
                     &status));
    CHECK_EQ(from_up, up == MPI_PROC_NULL ? -7 : up * 100 + round);
    CHECK_EQ(status.MPI_SOURCE, up);
    int moving = mine;
    MPI(MPI_Sendrecv_replace(&moving, 1, MPI_INT, up, 43, down, 43, MPI_COMM_WORLD, &status));
    CHECK_EQ(moving, down == MPI_PROC_NULL ? mine : down * 100 + round);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"probe", probe},
                      {"iprobe", iprobe},
                      {"mprobe", mprobe},
                      {"freed_between", freed_between},
                      {"improbe", improbe},
                      {"proc_null", proc_null},
                      {"sendrecv", sendrecv},
                      {"isendrecv", isendrecv},
                      {"sendrecv_shared", sendrecv_shared},
                      {"isendrecv_shared", isendrecv_shared},
                      {"sendrecv_replace", sendrecv_replace},
                      {"isendrecv_replace", isendrecv_replace},
                      {"sendrecv_line", sendrecv_line}});
}
