// Waiting and testing in all forms: any, some, all, with null and inactive requests, status arrays,
// Request_get_status and its relatives, cancelled receives, requests freed while active.
#include <sched.h>

#include "check.h"

namespace {

int right() { return (check::rank + 1) % check::size; }
int left() { return (check::rank + check::size - 1) % check::size; }

void expect_empty(const MPI_Status& status) {
  int count = -1;
  int cancelled = -1;
  CHECK_EQ(status.MPI_SOURCE, MPI_ANY_SOURCE);
  CHECK_EQ(status.MPI_TAG, MPI_ANY_TAG);
  CHECK_EQ(status.MPI_ERROR, MPI_SUCCESS);
  MPI(MPI_Get_count(&status, MPI_INT, &count));
  CHECK_EQ(count, 0);
  MPI(MPI_Test_cancelled(&status, &cancelled));
  CHECK(!cancelled);
}

MPI_Status spoiled() {
  MPI_Status status;
  memset(&status, 0x5a, sizeof status);
  return status;
}

// Null requests and inactive persistent ones answer at once with the empty status.
void null_and_inactive() {
  MPI_Request null = MPI_REQUEST_NULL;
  MPI_Status status = spoiled();
  MPI(MPI_Wait(&null, &status));
  expect_empty(status);
  int flag = 0;
  status = spoiled();
  MPI(MPI_Test(&null, &flag, &status));
  CHECK(flag);
  expect_empty(status);
  status = spoiled();
  flag = 0;
  MPI(MPI_Request_get_status(null, &flag, &status));
  CHECK(flag);
  expect_empty(status);

  int value = 0;
  MPI_Request inactive = MPI_REQUEST_NULL;
  MPI(MPI_Recv_init(&value, 1, MPI_INT, left(), 3, MPI_COMM_WORLD, &inactive));
  status = spoiled();
  MPI(MPI_Wait(&inactive, &status));
  expect_empty(status);
  CHECK(inactive != MPI_REQUEST_NULL);
  flag = 0;
  status = spoiled();
  MPI(MPI_Test(&inactive, &flag, &status));
  CHECK(flag);
  expect_empty(status);
  flag = 0;
  MPI(MPI_Request_get_status(inactive, &flag, &status));
  CHECK(flag);

  MPI_Request mixed[4] = {MPI_REQUEST_NULL, inactive, MPI_REQUEST_NULL, inactive};
  MPI_Status statuses[4] = {spoiled(), spoiled(), spoiled(), spoiled()};
  MPI(MPI_Waitall(4, mixed, statuses));
  for (const MPI_Status& s : statuses) expect_empty(s);
  flag = 0;
  MPI(MPI_Testall(4, mixed, &flag, statuses));
  CHECK(flag);
  int index = 77, count = 77, indices[4];
  status = spoiled();
  MPI(MPI_Waitany(4, mixed, &index, &status));
  CHECK_EQ(index, MPI_UNDEFINED);
  expect_empty(status);
  index = 77;
  flag = 0;
  MPI(MPI_Testany(4, mixed, &index, &flag, &status));
  CHECK(flag);
  CHECK_EQ(index, MPI_UNDEFINED);
  MPI(MPI_Waitsome(4, mixed, &count, indices, statuses));
  CHECK_EQ(count, MPI_UNDEFINED);
  count = 77;
  MPI(MPI_Testsome(4, mixed, &count, indices, statuses));
  CHECK_EQ(count, MPI_UNDEFINED);
  MPI(MPI_Waitall(0, nullptr, nullptr));
  MPI(MPI_Waitany(0, nullptr, &index, MPI_STATUS_IGNORE));
  CHECK_EQ(index, MPI_UNDEFINED);
  MPI(MPI_Request_free(&inactive));
}

struct Batch {
  static constexpr int count = 24;
  std::vector<std::vector<uint8_t>> in, out;
  std::vector<MPI_Request> receives, sends;

  static int bytes(int i) {
    static const int sizes[] = {0, 9, 152, 153, 3000, 5000, 20000, 100000};
    return sizes[i % 8];
  }
  // Every third receive slot stays null.
  void post() {
    in.assign(count, {});
    out.assign(count, {});
    receives.assign(count, MPI_REQUEST_NULL);
    sends.assign(count, MPI_REQUEST_NULL);
    for (int i = 0; i < count; ++i) {
      if (i % 3 == 2) continue;
      in[i].resize(bytes(i) + 1);
      MPI(MPI_Irecv(in[i].data(), bytes(i), MPI_BYTE, left(), i, MPI_COMM_WORLD, &receives[i]));
    }
  }
  void send(uint64_t round) {
    for (int i = count - 1; i >= 0; --i) {
      if (i % 3 == 2) continue;
      out[i].resize(bytes(i) + 1);
      check::fill(out[i].data(), bytes(i), check::key_of(round, i, check::rank));
      MPI(MPI_Isend(out[i].data(), bytes(i), MPI_BYTE, right(), i, MPI_COMM_WORLD, &sends[i]));
    }
  }
  void verify(uint64_t round, int i, const MPI_Status& status) {
    CHECK_STATUS(status, left(), i, bytes(i));
    CHECK_BYTES(in[i].data(), bytes(i), check::key_of(round, i, left()));
    CHECK_EQ(receives[i], MPI_REQUEST_NULL);
  }
  static int active() { return count - count / 3; }
  void end() { MPI(MPI_Waitall(count, sends.data(), MPI_STATUSES_IGNORE)); }
};

void any_form(bool test) {
  Batch b;
  b.post();
  int index = -5, flag = 7;
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  if (test) {
    MPI(MPI_Testany(Batch::count, b.receives.data(), &index, &flag, MPI_STATUS_IGNORE));
    // Nobody can have sent before this rank's barrier below.
    CHECK(!flag);
    CHECK_EQ(index, MPI_UNDEFINED);
  }
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  b.send(test);
  std::vector<int> seen(Batch::count, 0);
  for (int done = 0; done < Batch::active();) {
    MPI_Status status;
    flag = 1;
    if (test) {
      MPI(MPI_Testany(Batch::count, b.receives.data(), &index, &flag, &status));
      if (!flag) sched_yield();
    } else {
      MPI(MPI_Waitany(Batch::count, b.receives.data(), &index, &status));
    }
    if (!flag) continue;
    CHECK(index >= 0 && index < Batch::count);
    CHECK_EQ(seen[index]++, 0);
    b.verify(test, index, status);
    ++done;
  }
  b.end();
}
void waitany() { any_form(false); }
void testany() { any_form(true); }

void some_form(bool test) {
  Batch b;
  b.post();
  b.send(10 + test);
  std::vector<int> seen(Batch::count, 0), indices(Batch::count);
  std::vector<MPI_Status> statuses(Batch::count);
  for (int done = 0; done < Batch::active();) {
    int count = -1;
    if (test) {
      MPI(MPI_Testsome(Batch::count, b.receives.data(), &count, indices.data(), statuses.data()));
      if (count == 0) sched_yield();
    } else {
      MPI(MPI_Waitsome(Batch::count, b.receives.data(), &count, indices.data(), statuses.data()));
      CHECK(count > 0);
    }
    CHECK(count >= 0 && count <= Batch::active() - done);
    for (int k = 0; k < count; ++k) {
      CHECK_EQ(seen[indices[k]]++, 0);
      b.verify(10 + test, indices[k], statuses[k]);
    }
    done += count;
  }
  b.end();
}
void waitsome() { some_form(false); }
void testsome() { some_form(true); }

void all_form() {
  for (int round = 20; round < 24; ++round) {
    Batch b;
    b.post();
    if (round % 2) MPI(MPI_Barrier(MPI_COMM_WORLD));
    b.send(round);
    std::vector<MPI_Status> statuses(Batch::count);
    if (round < 22) {
      MPI(MPI_Waitall(Batch::count, b.receives.data(), statuses.data()));
    } else {
      for (int flag = 0; !flag; sched_yield())
        MPI(MPI_Testall(Batch::count, b.receives.data(), &flag, statuses.data()));
    }
    for (int i = 0; i < Batch::count; ++i) {
      if (i % 3 == 2) {
        expect_empty(statuses[i]);
      } else {
        b.verify(round, i, statuses[i]);
      }
    }
    b.end();
  }
}

// Testall changes nothing until all are complete.
void testall_keeps() {
  int values[2] = {0, 0}, flag = 1;
  MPI_Request requests[2];
  MPI_Status statuses[2];
  MPI(MPI_Irecv(&values[0], 1, MPI_INT, left(), 1, MPI_COMM_WORLD, &requests[0]));
  MPI(MPI_Irecv(&values[1], 1, MPI_INT, left(), 2, MPI_COMM_WORLD, &requests[1]));
  int one = 41;
  MPI(MPI_Send(&one, 1, MPI_INT, right(), 1, MPI_COMM_WORLD));
  for (int i = 0; i < 50; ++i) {
    MPI(MPI_Testall(2, requests, &flag, statuses));
    CHECK(!flag);
    CHECK(requests[0] != MPI_REQUEST_NULL);
  }
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  one = 42;
  MPI(MPI_Send(&one, 1, MPI_INT, right(), 2, MPI_COMM_WORLD));
  for (flag = 0; !flag;) MPI(MPI_Testall(2, requests, &flag, statuses));
  CHECK_EQ(values[0], 41);
  CHECK_EQ(values[1], 42);
  CHECK_EQ(requests[0], MPI_REQUEST_NULL);
}

// The request stays until Wait or Free, however often its status is asked for.
void get_status() {
  int value = 0, flag = 1;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI(MPI_Irecv(&value, 1, MPI_INT, left(), 1, MPI_COMM_WORLD, &request));
  MPI(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE));
  CHECK(!flag);
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  int one = check::rank + 1;
  MPI(MPI_Send(&one, 1, MPI_INT, right(), 1, MPI_COMM_WORLD));
  MPI_Status status;
  for (flag = 0; !flag;) MPI(MPI_Request_get_status(request, &flag, &status));
  CHECK_STATUS(status, left(), 1, 4);
  CHECK_EQ(value, left() + 1);
  status = spoiled();
  MPI(MPI_Request_get_status(request, &flag, &status));
  CHECK(flag);
  CHECK_STATUS(status, left(), 1, 4);
  MPI(MPI_Wait(&request, &status));
  CHECK_STATUS(status, left(), 1, 4);
}

void get_status_families() {
  int values[3] = {0, 0, 0}, flag = 1, index = 0, count = -1, indices[3];
  MPI_Request requests[3];
  MPI_Status statuses[3];
  for (int i = 0; i < 3; ++i)
    MPI(MPI_Irecv(&values[i], 1, MPI_INT, left(), i, MPI_COMM_WORLD, &requests[i]));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  MPI(MPI_Request_get_status_any(3, requests, &index, &flag, &statuses[0]));
  CHECK(!flag);
  MPI(MPI_Request_get_status_all(3, requests, &flag, statuses));
  CHECK(!flag);
  MPI(MPI_Request_get_status_some(3, requests, &count, indices, statuses));
  CHECK_EQ(count, 0);
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  int one = 7;
  MPI(MPI_Send(&one, 1, MPI_INT, right(), 1, MPI_COMM_WORLD));
  for (flag = 0; !flag;) MPI(MPI_Request_get_status_any(3, requests, &index, &flag, &statuses[0]));
  CHECK_EQ(index, 1);
  CHECK_STATUS(statuses[0], left(), 1, 4);
  MPI(MPI_Request_get_status_some(3, requests, &count, indices, statuses));
  CHECK_EQ(count, 1);
  CHECK_EQ(indices[0], 1);
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  MPI(MPI_Send(&one, 1, MPI_INT, right(), 0, MPI_COMM_WORLD));
  MPI(MPI_Send(&one, 1, MPI_INT, right(), 2, MPI_COMM_WORLD));
  for (flag = 0; !flag;) MPI(MPI_Request_get_status_all(3, requests, &flag, statuses));
  for (int i = 0; i < 3; ++i) {
    CHECK_STATUS(statuses[i], left(), i, 4);
    CHECK(requests[i] != MPI_REQUEST_NULL);
  }
  MPI(MPI_Waitall(3, requests, statuses));
}

bool cancelled(const MPI_Status& status) {
  int flag = -1;
  MPI(MPI_Test_cancelled(&status, &flag));
  return flag != 0;
}

// A receive that nothing matches can be cancelled; its buffer stays; later messages pass it by.
void cancel_receive() {
  int value = -1, other = -1;
  MPI_Request doomed = MPI_REQUEST_NULL;
  MPI_Status status;
  for (int source : {left(), static_cast<int>(MPI_ANY_SOURCE)}) {
    for (int tag : {9, static_cast<int>(MPI_ANY_TAG)}) {
      MPI(MPI_Irecv(&value, 1, MPI_INT, source, tag, MPI_COMM_WORLD, &doomed));
      MPI(MPI_Cancel(&doomed));
      MPI(MPI_Wait(&doomed, &status));
      CHECK(cancelled(status));
      CHECK_EQ(doomed, MPI_REQUEST_NULL);
    }
  }
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  int one = 5;
  MPI(MPI_Sendrecv(&one, 1, MPI_INT, right(), 9, &other, 1, MPI_INT, left(), 9, MPI_COMM_WORLD,
                   &status));
  CHECK_EQ(other, 5);
  CHECK_EQ(value, -1);
  CHECK(!cancelled(status));
}

// Cancel comes too late: the receive is matched and completes as ever. Also a persistent one.
void cancel_matched() {
  int value = -1, flag = 0, one = 6;
  MPI_Status status;
  MPI_Request receive = MPI_REQUEST_NULL;
  MPI(MPI_Irecv(&value, 1, MPI_INT, left(), 4, MPI_COMM_WORLD, &receive));
  MPI(MPI_Send(&one, 1, MPI_INT, right(), 4, MPI_COMM_WORLD));
  while (!flag) MPI(MPI_Request_get_status(receive, &flag, MPI_STATUS_IGNORE));
  MPI(MPI_Cancel(&receive));
  MPI(MPI_Wait(&receive, &status));
  CHECK(!cancelled(status));
  CHECK_EQ(value, 6);

  MPI_Request persistent = MPI_REQUEST_NULL;
  MPI(MPI_Recv_init(&value, 1, MPI_INT, left(), 4, MPI_COMM_WORLD, &persistent));
  MPI(MPI_Start(&persistent));
  MPI(MPI_Cancel(&persistent));
  MPI(MPI_Wait(&persistent, &status));
  CHECK(cancelled(status));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  MPI(MPI_Start(&persistent));
  one = 8;
  MPI(MPI_Send(&one, 1, MPI_INT, right(), 4, MPI_COMM_WORLD));
  MPI(MPI_Wait(&persistent, &status));
  CHECK(!cancelled(status));
  CHECK_EQ(value, 8);
  MPI(MPI_Request_free(&persistent));
}

// Each of many receives is cancelled while its message may be on the way: either it was
// cancelled and the message is still there, or it was not and the message is in the buffer.
void cancel_race() {
  for (int round = 0; round < 100; ++round) {
    int bytes = round % 3 == 0 ? 50000 : 40;
    std::vector<uint8_t> in(bytes), out(bytes);
    check::fill(out.data(), bytes, check::key_of(check::rank, round));
    MPI_Request receive = MPI_REQUEST_NULL, send = MPI_REQUEST_NULL;
    MPI_Status status;
    MPI(MPI_Irecv(in.data(), bytes, MPI_BYTE, left(), 4, MPI_COMM_WORLD, &receive));
    MPI(MPI_Isend(out.data(), bytes, MPI_BYTE, right(), 4, MPI_COMM_WORLD, &send));
    if (round % 2) sched_yield();
    MPI(MPI_Cancel(&receive));
    MPI(MPI_Wait(&receive, &status));
    if (cancelled(status)) {
      MPI(MPI_Recv(in.data(), bytes, MPI_BYTE, left(), 4, MPI_COMM_WORLD, &status));
    }
    CHECK_STATUS(status, left(), 4, bytes);
    CHECK_BYTES(in.data(), bytes, check::key_of(left(), round));
    MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
  }
}

// Active sends whose request is freed still deliver; the buffers live until the answer is here.
void free_active() {
  const std::vector<int> sizes = {0, 1, 152, 4096, 5000, 100000, 1 << 20};
  std::vector<std::vector<uint8_t>> out;
  for (size_t i = 0; i < sizes.size(); ++i) {
    out.emplace_back(sizes[i] + 1);
    check::fill(out[i].data(), sizes[i], check::key_of(i, check::rank));
    MPI_Request request = MPI_REQUEST_NULL;
    MPI(MPI_Isend(out[i].data(), sizes[i], MPI_BYTE, right(), 8, MPI_COMM_WORLD, &request));
    MPI(MPI_Request_free(&request));
    CHECK_EQ(request, MPI_REQUEST_NULL);
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::vector<uint8_t> in(sizes[i] + 1);
    MPI(MPI_Recv(in.data(), sizes[i], MPI_BYTE, left(), 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_BYTES(in.data(), sizes[i], check::key_of(i, left()));
  }
  // A persistent send freed while active, and a receive freed while active.
  int value = check::rank, got = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI(MPI_Irecv(&got, 1, MPI_INT, left(), 8, MPI_COMM_WORLD, &request));
  MPI(MPI_Request_free(&request));
  MPI(MPI_Send_init(&value, 1, MPI_INT, right(), 8, MPI_COMM_WORLD, &request));
  MPI(MPI_Start(&request));
  MPI(MPI_Request_free(&request));
  MPI(MPI_Sendrecv(nullptr, 0, MPI_INT, right(), 10, nullptr, 0, MPI_INT, left(), 10,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  // The token came after the message of the same sender, so that one has been received.
  for (int i = 0; i < 10000 && *static_cast<volatile int*>(&got) != left(); ++i) {
    int flag = 0;
    MPI(MPI_Iprobe(MPI_ANY_SOURCE, 12345, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
  }
  CHECK_EQ(got, left());
  MPI(MPI_Barrier(MPI_COMM_WORLD));  // the answer: all buffers may go
}

// Erroneous, and it happens: a handle stands twice in a list. It is completed once, and whatever is
// begun afterwards has requests of its own.
void same_twice() {
  for (int entries : {2, 60, 70}) {
    std::vector<MPI_Request> list(size_t(entries), MPI_REQUEST_NULL);
    std::vector<MPI_Status> statuses(list.size(), spoiled());
    int in = -1;
    MPI(MPI_Irecv(&in, 1, MPI_INT, left(), 11, MPI_COMM_WORLD, &list.front()));
    list.back() = list.front();
    MPI(MPI_Send(&check::rank, 1, MPI_INT, right(), 11, MPI_COMM_WORLD));
    MPI(MPI_Waitall(entries, list.data(), statuses.data()));
    CHECK_EQ(in, left());
    CHECK_EQ(statuses.front().MPI_SOURCE, left());
    expect_empty(statuses.back());
    for (MPI_Request handle : list) CHECK(handle == MPI_REQUEST_NULL);

    constexpr int many = 8;
    int got[many];
    MPI_Request later[2 * many];
    for (int i = 0; i < many; ++i)
      MPI(MPI_Irecv(&got[i], 1, MPI_INT, left(), 20 + i, MPI_COMM_WORLD, &later[i]));
    int values[many];
    for (int i = many - 1; i >= 0; --i) {
      values[i] = 100 * check::rank + i;
      MPI(MPI_Isend(&values[i], 1, MPI_INT, right(), 20 + i, MPI_COMM_WORLD, &later[many + i]));
    }
    MPI(MPI_Waitall(2 * many, later, MPI_STATUSES_IGNORE));
    for (int i = 0; i < many; ++i) CHECK_EQ(got[i], 100 * left() + i);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"null_and_inactive", null_and_inactive},
                      {"waitany", waitany},
                      {"testany", testany},
                      {"waitsome", waitsome},
                      {"testsome", testsome},
                      {"all_form", all_form},
                      {"testall_keeps", testall_keeps},
                      {"get_status", get_status},
                      {"get_status_families", get_status_families},
                      {"cancel_receive", cancel_receive},
                      {"cancel_matched", cancel_matched},
                      {"cancel_race", cancel_race},
                      {"free_active", free_active},
                      {"same_twice", same_twice}});
}
