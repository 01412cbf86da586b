// Messages longer than their receive: MPI_ERR_TRUNCATE where the receive completes, nothing beyond
// the buffer is written, and the messages after it arrive as ever. Exact counts in statuses.
#include "check.h"

namespace {

int right() { return (check::rank + 1) % check::size; }
int left() { return (check::rank + check::size - 1) % check::size; }

struct Fit {
  int sent, room;
};
const std::vector<Fit> fits = {{1, 0},       {8, 4},          {152, 100},       {153, 152},
                               {4096, 4095}, {5000, 100},     {16385, 16384},   {70000, 4096},
                               {70000, 10},  {1 << 20, 1000}, {1 << 20, 600000}};

enum class Form { recv_unexpected, irecv_posted, wait_unexpected, mrecv, sendrecv, persistent };

void send_pair(const Fit& fit, uint64_t key, std::vector<uint8_t>& out, MPI_Request* requests) {
  out.resize(fit.sent + 16);
  check::fill(out.data(), fit.sent, key + check::rank);
  check::fill(out.data() + fit.sent, 16, key + 100 + check::rank);
  MPI(MPI_Isend(out.data(), fit.sent, MPI_BYTE, right(), 5, MPI_COMM_WORLD, &requests[0]));
  MPI(MPI_Isend(out.data() + fit.sent, 16, MPI_BYTE, right(), 5, MPI_COMM_WORLD, &requests[1]));
}

int receive_short(Form form, void* to, int room, MPI_Request posted, MPI_Status* status) {
  switch (form) {
    case Form::recv_unexpected:
      return MPI_Recv(to, room, MPI_BYTE, left(), 5, MPI_COMM_WORLD, status);
    case Form::irecv_posted: return MPI_Wait(&posted, status);
    case Form::wait_unexpected: {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI(MPI_Irecv(to, room, MPI_BYTE, left(), 5, MPI_COMM_WORLD, &request));
      int flag = 0, code = MPI_SUCCESS;
      while (!flag && code == MPI_SUCCESS) code = MPI_Test(&request, &flag, status);
      CHECK(flag);
      return code;
    }
    case Form::mrecv: {
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI(MPI_Mprobe(left(), 5, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
      return MPI_Mrecv(to, room, MPI_BYTE, &message, status);
    }
    case Form::sendrecv:
      return MPI_Sendrecv(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 5, to, room, MPI_BYTE, left(), 5,
                          MPI_COMM_WORLD, status);
    case Form::persistent: {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI(MPI_Recv_init(to, room, MPI_BYTE, left(), 5, MPI_COMM_WORLD, &request));
      MPI(MPI_Start(&request));
      int code = MPI_Wait(&request, status);
      MPI(MPI_Request_free(&request));
      return code;
    }
  }
  return MPI_SUCCESS;
}

void one(const Fit& fit, Form form) {
  uint64_t key = check::key_of(fit.sent, fit.room, static_cast<uint64_t>(form));
  std::vector<uint8_t> out, in(fit.room + 64, 0xee);
  MPI_Request sends[2], posted = MPI_REQUEST_NULL;
  if (form == Form::irecv_posted) {
    MPI(MPI_Irecv(in.data(), fit.room, MPI_BYTE, left(), 5, MPI_COMM_WORLD, &posted));
    MPI(MPI_Barrier(MPI_COMM_WORLD));
  }
  send_pair(fit, key, out, sends);
  MPI_Status status;
  memset(&status, 0, sizeof status);
  int code = receive_short(form, in.data(), fit.room, posted, &status);
  EXPECT_CLASS(MPI_ERR_TRUNCATE, code);
  CHECK_EQ(status.MPI_SOURCE, left());
  CHECK_EQ(status.MPI_TAG, 5);
  CHECK_UNTOUCHED(in.data() + fit.room, 64, 0xee);
  uint8_t after[16];
  MPI(MPI_Recv(after, 16, MPI_BYTE, left(), 5, MPI_COMM_WORLD, &status));
  CHECK_STATUS(status, left(), 5, 16);
  CHECK_BYTES(after, 16, key + 100 + left());
  MPI(MPI_Waitall(2, sends, MPI_STATUSES_IGNORE));  // the sender's operation is not in error
}

void truncate() {
  for (const Fit& fit : fits) {
    for (Form form : {Form::recv_unexpected, Form::irecv_posted, Form::wait_unexpected, Form::mrecv,
                      Form::sendrecv, Form::persistent})
      one(fit, form);
  }
}

// Waitall says MPI_ERR_IN_STATUS; the statuses say which one was short.
void waitall() {
  for (int sent : {100, 100000}) {
    std::vector<uint8_t> out(sent), in[3];
    MPI_Request requests[6];
    MPI_Status statuses[6];
    for (int i = 0; i < 3; ++i) {
      in[i].resize(sent);
      MPI(MPI_Irecv(in[i].data(), i == 1 ? 50 : sent, MPI_BYTE, left(), i, MPI_COMM_WORLD,
                    &requests[i]));
    }
    for (int i = 0; i < 3; ++i)
      MPI(MPI_Isend(out.data(), sent, MPI_BYTE, right(), i, MPI_COMM_WORLD, &requests[3 + i]));
    int pending = 6;
    bool truncated = false;
    while (pending > 0) {
      int code = MPI_Waitall(6, requests, statuses);
      if (code == MPI_SUCCESS) break;
      EXPECT_CLASS(MPI_ERR_IN_STATUS, code);
      pending = 0;
      for (int i = 0; i < 6; ++i) {
        int error = check::class_of(statuses[i].MPI_ERROR);
        if (error == MPI_ERR_PENDING) {
          ++pending;
        } else if (i == 1 && !truncated) {
          CHECK_EQ(error, MPI_ERR_TRUNCATE);
          truncated = true;
        } else {
          CHECK_EQ(error, MPI_SUCCESS);
        }
      }
    }
    CHECK(truncated);
  }
}

// Typed counts: whole elements, partial ones (MPI_UNDEFINED), basic elements, large-count forms.
void counts() {
  MPI_Datatype pair = MPI_DATATYPE_NULL;
  MPI(MPI_Type_contiguous(2, MPI_INT, &pair));
  MPI(MPI_Type_commit(&pair));
  int out[8] = {1, 2, 3, 4, 5, 6, 7, 8}, in[8];
  for (int ints = 0; ints <= 8; ++ints) {
    MPI_Status status;
    MPI(MPI_Sendrecv(out, ints, MPI_INT, right(), 6, in, 4, pair, left(), 6, MPI_COMM_WORLD,
                     &status));
    int count = -1, elements = -1;
    MPI_Count large = -1;
    MPI(MPI_Get_count(&status, pair, &count));
    CHECK_EQ(count, ints % 2 ? MPI_UNDEFINED : ints / 2);
    MPI(MPI_Get_count_c(&status, pair, &large));
    CHECK_EQ(large, ints % 2 ? MPI_UNDEFINED : ints / 2);
    MPI(MPI_Get_elements(&status, pair, &elements));
    CHECK_EQ(elements, ints);
    MPI(MPI_Get_elements_c(&status, pair, &large));
    CHECK_EQ(large, ints);
    large = -1;
    MPI(MPI_Get_elements_x(&status, pair, &large));
    CHECK_EQ(large, ints);
    MPI(MPI_Get_count(&status, MPI_INT, &count));
    CHECK_EQ(count, ints);
    MPI(MPI_Get_count(&status, MPI_BYTE, &count));
    CHECK_EQ(count, ints * 4);
    MPI(MPI_Get_count(&status, MPI_DOUBLE, &count));
    CHECK_EQ(count, ints % 2 ? MPI_UNDEFINED : ints / 2);
    for (int i = 0; i < ints; ++i) CHECK_EQ(in[i], i + 1);
  }
  MPI(MPI_Type_free(&pair));
}

// Shorter than expected: the rest of the buffer stays as it was.
void shorter() {
  for (const Fit& fit : fits) {
    std::vector<uint8_t> out(fit.room + 1), in(fit.sent + 1, 0xee);
    check::fill(out.data(), fit.room, check::key_of(check::rank, fit.room));
    MPI_Status status;
    MPI(MPI_Sendrecv(out.data(), fit.room, MPI_BYTE, right(), 7, in.data(), fit.sent, MPI_BYTE,
                     left(), 7, MPI_COMM_WORLD, &status));
    CHECK_STATUS(status, left(), 7, fit.room);
    CHECK_BYTES(in.data(), fit.room, check::key_of(left(), fit.room));
    CHECK_UNTOUCHED(in.data() + fit.room, fit.sent - fit.room, 0xee);
  }
}

// The fields of a status can be read and written by functions too.
void status_fields() {
  MPI_Status status;
  memset(&status, 0, sizeof status);
  int value = -1;
  MPI(MPI_Status_set_source(&status, 12));
  MPI(MPI_Status_set_tag(&status, 34));
  MPI(MPI_Status_set_error(&status, MPI_ERR_TRUNCATE));
  CHECK_EQ(status.MPI_SOURCE, 12);
  CHECK_EQ(status.MPI_TAG, 34);
  CHECK_EQ(status.MPI_ERROR, MPI_ERR_TRUNCATE);
  MPI(MPI_Status_get_source(&status, &value));
  CHECK_EQ(value, 12);
  MPI(MPI_Status_get_tag(&status, &value));
  CHECK_EQ(value, 34);
  MPI(MPI_Status_get_error(&status, &value));
  CHECK_EQ(value, MPI_ERR_TRUNCATE);
  MPI(MPI_Status_set_elements(&status, MPI_INT, 5));
  MPI(MPI_Get_count(&status, MPI_INT, &value));
  CHECK_EQ(value, 5);
  MPI_Count large = MPI_Count{3} << 32, got = 0;
  MPI(MPI_Status_set_elements_c(&status, MPI_BYTE, large));
  MPI(MPI_Get_elements_c(&status, MPI_BYTE, &got));
  CHECK_EQ(got, large);
  MPI(MPI_Get_count(&status, MPI_BYTE, &value));
  CHECK_EQ(value, MPI_UNDEFINED);
  MPI(MPI_Status_set_cancelled(&status, 1));
  MPI(MPI_Test_cancelled(&status, &value));
  CHECK(value);
}

// The large-count names of the calls, with small counts.
void large_count_names() {
  std::vector<int> out(3000), in(3000, -1);
  for (int i = 0; i < 3000; ++i) out[i] = check::rank * 10000 + i;
  MPI_Count n = 3000;
  MPI_Request requests[2];
  MPI(MPI_Irecv_c(in.data(), n, MPI_INT, left(), 8, MPI_COMM_WORLD, &requests[0]));
  MPI(MPI_Isend_c(out.data(), n, MPI_INT, right(), 8, MPI_COMM_WORLD, &requests[1]));
  MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  auto verify = [&] {
    for (int i = 0; i < 3000; ++i) CHECK_EQ(in[i], left() * 10000 + i);
    std::fill(in.begin(), in.end(), -1);
  };
  verify();
  MPI(MPI_Sendrecv_c(out.data(), n, MPI_INT, right(), 8, in.data(), n, MPI_INT, left(), 8,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  verify();
  MPI(MPI_Recv_init_c(in.data(), n, MPI_INT, left(), 8, MPI_COMM_WORLD, &requests[0]));
  MPI(MPI_Ssend_init_c(out.data(), n, MPI_INT, right(), 8, MPI_COMM_WORLD, &requests[1]));
  MPI(MPI_Startall(2, requests));
  MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  verify();
  MPI(MPI_Request_free(&requests[0]));
  MPI(MPI_Request_free(&requests[1]));
  MPI(MPI_Isend_c(out.data(), n, MPI_INT, right(), 8, MPI_COMM_WORLD, &requests[0]));
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI(MPI_Mprobe(left(), 8, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
  MPI(MPI_Mrecv_c(in.data(), n, MPI_INT, &message, MPI_STATUS_IGNORE));
  MPI(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
  verify();
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"counts", counts},
                      {"shorter", shorter},
                      {"truncate", truncate},
                      {"waitall", waitall},
                      {"status_fields", status_fields},
                      {"large_count_names", large_count_names}});
}
