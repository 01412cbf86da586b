// What a program may do wrong, call by call: null, freed and invented handles, negative counts,
// ranks, tags and roots out of range, wrong operations. Each gives the error class of the standard
// under MPI_ERRORS_RETURN; none crashes; afterwards the library works as before.
#include <algorithm>

#include "check.h"

namespace {

int value = 0;

template <class Handle>
Handle invented(uintptr_t bits) {
  return reinterpret_cast<Handle>(bits);
}

// Handles that were never given out: small, large, odd, looking like pointers.
const uintptr_t garbage[] = {0x7,        0x3ff,      0x1001,       0x12345,    0x7fffffff,
                             0x80000000, 0xffffffff, 0xdeadbeef00, UINTPTR_MAX};

#define REFUSED(call)                                                                         \
  do {                                                                                        \
    int code_ = (call);                                                                       \
    if (code_ == MPI_SUCCESS)                                                                 \
      ::check::fail(__FILE__, __LINE__, "%s returned MPI_SUCCESS, expected an error", #call); \
  } while (0)

MPI_Comm freed_comm() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI(MPI_Comm_dup(MPI_COMM_SELF, &comm));
  MPI_Comm old = comm;
  MPI(MPI_Comm_free(&comm));
  return old;
}
MPI_Datatype freed_type() {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI(MPI_Type_contiguous(3, MPI_INT, &type));
  MPI(MPI_Type_commit(&type));
  MPI_Datatype old = type;
  MPI(MPI_Type_free(&type));
  return old;
}

void works_still() {
  int got = -1, peer = check::rank;
  MPI(MPI_Sendrecv(&check::rank, 1, MPI_INT, peer, 5, &got, 1, MPI_INT, peer, 5, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE));
  CHECK_EQ(got, check::rank);
}

void point_to_point() {
  MPI_Comm w = MPI_COMM_WORLD;
  MPI_Request r = MPI_REQUEST_NULL;
  int n = check::size, flag = 0;
  EXPECT_CLASS(MPI_ERR_COUNT, MPI_Send(&value, -1, MPI_INT, 0, 1, w));
  EXPECT_CLASS(MPI_ERR_COUNT, MPI_Recv(&value, -5, MPI_INT, 0, 1, w, MPI_STATUS_IGNORE));
  EXPECT_CLASS(MPI_ERR_COUNT, MPI_Isend(&value, -1, MPI_INT, 0, 1, w, &r));
  EXPECT_CLASS(MPI_ERR_COUNT, MPI_Send_c(&value, -1, MPI_INT, 0, 1, w));
  EXPECT_CLASS(MPI_ERR_RANK, MPI_Send(&value, 1, MPI_INT, n, 1, w));
  EXPECT_CLASS(MPI_ERR_RANK, MPI_Send(&value, 1, MPI_INT, -9, 1, w));
  EXPECT_CLASS(MPI_ERR_RANK, MPI_Send(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1, w));
  EXPECT_CLASS(MPI_ERR_RANK, MPI_Recv(&value, 1, MPI_INT, n, 1, w, MPI_STATUS_IGNORE));
  EXPECT_CLASS(MPI_ERR_RANK, MPI_Irecv(&value, 1, MPI_INT, -77, 1, w, &r));
  EXPECT_CLASS(MPI_ERR_RANK, MPI_Iprobe(n, 1, w, &flag, MPI_STATUS_IGNORE));
  EXPECT_CLASS(MPI_ERR_TAG, MPI_Send(&value, 1, MPI_INT, 0, -1, w));
  EXPECT_CLASS(MPI_ERR_TAG, MPI_Send(&value, 1, MPI_INT, 0, MPI_ANY_TAG, w));
  EXPECT_CLASS(MPI_ERR_TAG, MPI_Recv(&value, 1, MPI_INT, 0, -99, w, MPI_STATUS_IGNORE));
  int* upper = nullptr;
  MPI(MPI_Comm_get_attr(w, MPI_TAG_UB, &upper, &flag));
  if (*upper < INT32_MAX) EXPECT_CLASS(MPI_ERR_TAG, MPI_Send(&value, 1, MPI_INT, 0, *upper + 1, w));
  EXPECT_CLASS(MPI_ERR_TYPE, MPI_Send(&value, 1, MPI_DATATYPE_NULL, 0, 1, w));
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_NULL));
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_NULL, MPI_STATUS_IGNORE));
  EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Send(nullptr, 1, MPI_INT, 0, 1, w));
  works_still();
}

// A type that was never committed, and one that was freed.
void types() {
  MPI_Datatype type = MPI_DATATYPE_NULL, made = MPI_DATATYPE_NULL;
  MPI(MPI_Type_contiguous(2, MPI_INT, &type));
  int pair[2] = {1, 2}, size = 0;
  EXPECT_CLASS(MPI_ERR_TYPE, MPI_Send(pair, 1, type, 0, 1, MPI_COMM_WORLD));
  MPI(MPI_Type_free(&type));
  EXPECT_CLASS(MPI_ERR_TYPE, MPI_Send(pair, 1, freed_type(), 0, 1, MPI_COMM_WORLD));
  EXPECT_CLASS(MPI_ERR_TYPE, MPI_Type_size(freed_type(), &size));
  EXPECT_CLASS(MPI_ERR_TYPE, MPI_Type_size(MPI_DATATYPE_NULL, &size));
  EXPECT_CLASS(MPI_ERR_TYPE, MPI_Type_contiguous(2, MPI_DATATYPE_NULL, &made));
  REFUSED(MPI_Type_contiguous(-2, MPI_INT, &made));
  REFUSED(MPI_Type_vector(-1, 1, 1, MPI_INT, &made));
  int lengths[2] = {1, -1}, places[2] = {0, 5};
  REFUSED(MPI_Type_indexed(2, lengths, places, MPI_INT, &made));
  MPI_Datatype predefined = MPI_INT;
  EXPECT_CLASS(MPI_ERR_TYPE, MPI_Type_free(&predefined));
  type = MPI_DATATYPE_NULL;
  EXPECT_CLASS(MPI_ERR_TYPE, MPI_Type_free(&type));
  EXPECT_CLASS(MPI_ERR_TYPE, MPI_Type_commit(&type));
  works_still();
}

void garbage_handles() {
  int size = 0, flag = 0;
  MPI_Group group = MPI_GROUP_NULL;
  for (uintptr_t bits : garbage) {
    auto comm = invented<MPI_Comm>(bits);
    EXPECT_CLASS(MPI_ERR_COMM, MPI_Comm_size(comm, &size));
    EXPECT_CLASS(MPI_ERR_COMM, MPI_Send(&value, 1, MPI_INT, 0, 1, comm));
    EXPECT_CLASS(MPI_ERR_COMM, MPI_Barrier(comm));
    EXPECT_CLASS(MPI_ERR_COMM, MPI_Comm_group(comm, &group));
    EXPECT_CLASS(MPI_ERR_TYPE, MPI_Type_size(invented<MPI_Datatype>(bits), &size));
    EXPECT_CLASS(MPI_ERR_TYPE,
                 MPI_Send(&value, 1, invented<MPI_Datatype>(bits), 0, 1, MPI_COMM_WORLD));
    EXPECT_CLASS(MPI_ERR_GROUP, MPI_Group_size(invented<MPI_Group>(bits), &size));
    auto request = invented<MPI_Request>(bits);
    EXPECT_CLASS(MPI_ERR_REQUEST, MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT_CLASS(MPI_ERR_REQUEST, MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    EXPECT_CLASS(MPI_ERR_REQUEST, MPI_Request_free(&request));
    EXPECT_CLASS(MPI_ERR_REQUEST, MPI_Cancel(&request));
    auto op = invented<MPI_Op>(bits);
    EXPECT_CLASS(MPI_ERR_OP, MPI_Reduce_local(&value, &size, 1, MPI_INT, op));
    EXPECT_CLASS(MPI_ERR_OP, MPI_Op_commutative(op, &flag));
    EXPECT_CLASS(MPI_ERR_OP, MPI_Op_free(&op));
    auto message = invented<MPI_Message>(bits);
    REFUSED(MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
    auto info = invented<MPI_Info>(bits);
    EXPECT_CLASS(MPI_ERR_INFO, MPI_Info_get_nkeys(info, &flag));
    EXPECT_CLASS(MPI_ERR_INFO, MPI_Info_free(&info));
    auto handler = invented<MPI_Errhandler>(bits);
    REFUSED(MPI_Errhandler_free(&handler));
    REFUSED(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler));
  }
  works_still();
}

// A handle of one kind given as another.
void crossed_handles() {
  int size = 0;
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Comm_size(reinterpret_cast<MPI_Comm>(MPI_INT), &size));
  EXPECT_CLASS(MPI_ERR_TYPE, MPI_Type_size(reinterpret_cast<MPI_Datatype>(MPI_COMM_WORLD), &size));
  EXPECT_CLASS(MPI_ERR_GROUP, MPI_Group_size(reinterpret_cast<MPI_Group>(MPI_SUM), &size));
  EXPECT_CLASS(MPI_ERR_OP, MPI_Reduce_local(&value, &size, 1, MPI_INT,
                                            reinterpret_cast<MPI_Op>(MPI_COMM_SELF)));
}

void ignore(MPI_Comm*, int*, ...) {}

void freed_handles() {
  int size = 0;
  MPI_Comm comm = freed_comm();
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Comm_size(comm, &size));
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Comm_free(&comm));
  MPI_Comm newer = MPI_COMM_NULL;
  MPI(MPI_Comm_dup(MPI_COMM_SELF, &newer));
  comm = freed_comm();
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Send(&value, 1, MPI_INT, 0, 1, comm));
  MPI(MPI_Comm_free(&newer));
  MPI_Group group = MPI_GROUP_NULL;
  MPI(MPI_Comm_group(MPI_COMM_WORLD, &group));
  MPI_Group old = group;
  MPI(MPI_Group_free(&group));
  EXPECT_CLASS(MPI_ERR_GROUP, MPI_Group_size(old, &size));
  EXPECT_CLASS(MPI_ERR_GROUP, MPI_Group_free(&old));
  MPI_Info info = MPI_INFO_NULL;
  MPI(MPI_Info_create(&info));
  MPI_Info stale = info;
  MPI(MPI_Info_free(&info));
  EXPECT_CLASS(MPI_ERR_INFO, MPI_Info_get_nkeys(stale, &size));
  MPI_Op op = MPI_OP_NULL;
  MPI(MPI_Op_create([](void*, void*, int*, MPI_Datatype*) {}, 1, &op));
  MPI_Op gone = op;
  MPI(MPI_Op_free(&op));
  EXPECT_CLASS(MPI_ERR_OP, MPI_Reduce_local(&value, &size, 1, MPI_INT, gone));
  EXPECT_CLASS(MPI_ERR_OP, MPI_Op_free(&gone));
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI(MPI_Comm_create_errhandler(ignore, &handler));
  MPI_Errhandler late = handler;
  MPI(MPI_Errhandler_free(&handler));
  EXPECT_CLASS(MPI_ERR_ERRHANDLER, MPI_Comm_set_errhandler(MPI_COMM_SELF, late));
  MPI_Message message = MPI_MESSAGE_NULL;
  int got = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI(MPI_Isend(&value, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request));
  MPI(MPI_Mprobe(0, 1, MPI_COMM_SELF, &message, MPI_STATUS_IGNORE));
  MPI_Message taken = message;
  MPI(MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
  CHECK_EQ(message, MPI_MESSAGE_NULL);
  EXPECT_CLASS(MPI_ERR_REQUEST, MPI_Mrecv(&got, 1, MPI_INT, &taken, MPI_STATUS_IGNORE));
  EXPECT_CLASS(MPI_ERR_REQUEST, MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  works_still();
}

// The same request waited for or freed twice through a copy of its handle.
void request_twice() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI(MPI_Isend(&value, 1, MPI_INT, check::rank, 3, MPI_COMM_WORLD, &request));
  MPI_Request copy = request;
  int got = 0;
  MPI(MPI_Recv(&got, 1, MPI_INT, check::rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  EXPECT_CLASS(MPI_ERR_REQUEST, MPI_Wait(&copy, MPI_STATUS_IGNORE));
  EXPECT_CLASS(MPI_ERR_REQUEST, MPI_Request_free(&copy));
  MPI(MPI_Recv_init(&got, 1, MPI_INT, check::rank, 3, MPI_COMM_WORLD, &request));
  copy = request;
  MPI(MPI_Request_free(&request));
  EXPECT_CLASS(MPI_ERR_REQUEST, MPI_Request_free(&copy));
  EXPECT_CLASS(MPI_ERR_REQUEST, MPI_Start(&copy));
  request = MPI_REQUEST_NULL;
  EXPECT_CLASS(MPI_ERR_REQUEST, MPI_Request_free(&request));
  EXPECT_CLASS(MPI_ERR_REQUEST, MPI_Start(&request));
  EXPECT_CLASS(MPI_ERR_REQUEST, MPI_Cancel(&request));
  MPI(MPI_Irecv(&got, 1, MPI_INT, check::rank, 3, MPI_COMM_WORLD, &request));
  EXPECT_CLASS(MPI_ERR_REQUEST, MPI_Start(&request));  // not persistent
  MPI(MPI_Cancel(&request));
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  works_still();
}

void collectives() {
  int n = check::size, out = 0;
  MPI_Comm w = MPI_COMM_WORLD;
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Barrier(MPI_COMM_NULL));
  EXPECT_CLASS(MPI_ERR_ROOT, MPI_Bcast(&value, 1, MPI_INT, n, w));
  EXPECT_CLASS(MPI_ERR_ROOT, MPI_Bcast(&value, 1, MPI_INT, -1, w));
  EXPECT_CLASS(MPI_ERR_COUNT, MPI_Bcast(&value, -1, MPI_INT, 0, w));
  EXPECT_CLASS(MPI_ERR_TYPE, MPI_Bcast(&value, 1, MPI_DATATYPE_NULL, 0, w));
  EXPECT_CLASS(MPI_ERR_OP, MPI_Allreduce(&value, &out, 1, MPI_INT, MPI_OP_NULL, w));
  EXPECT_CLASS(MPI_ERR_COUNT, MPI_Allreduce(&value, &out, -1, MPI_INT, MPI_SUM, w));
  EXPECT_CLASS(MPI_ERR_ROOT, MPI_Reduce(&value, &out, 1, MPI_INT, MPI_SUM, n + 3, w));
  EXPECT_CLASS(MPI_ERR_COUNT, MPI_Gather(&value, -1, MPI_INT, &out, 1, MPI_INT, 0, w));
  EXPECT_CLASS(MPI_ERR_ROOT, MPI_Scatter(&value, 1, MPI_INT, &out, 1, MPI_INT, -7, w));
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Comm_dup(MPI_COMM_NULL, reinterpret_cast<MPI_Comm*>(&out)));
  works_still();
}

// Operations on types they are not defined for.
void op_and_type() {
  double a = 1, b = 2, complex[2] = {1, 1}, other_complex[2] = {2, 2};
  struct {
    double v;
    int i;
  } pair = {1, 1}, other = {2, 2};
  EXPECT_CLASS(MPI_ERR_OP, MPI_Reduce_local(&a, &b, 1, MPI_DOUBLE, MPI_BAND));
  EXPECT_CLASS(MPI_ERR_OP,
               MPI_Reduce_local(complex, other_complex, 1, MPI_C_DOUBLE_COMPLEX, MPI_MAX));
  EXPECT_CLASS(MPI_ERR_OP, MPI_Reduce_local(&a, &b, 1, MPI_DOUBLE, MPI_MINLOC));
  EXPECT_CLASS(MPI_ERR_OP, MPI_Reduce_local(&pair, &other, 1, MPI_DOUBLE_INT, MPI_SUM));
  EXPECT_CLASS(MPI_ERR_OP, MPI_Allreduce(&a, &b, 1, MPI_BYTE, MPI_SUM, MPI_COMM_SELF));
  MPI_Op predefined = MPI_SUM, null = MPI_OP_NULL;
  EXPECT_CLASS(MPI_ERR_OP, MPI_Op_free(&predefined));
  EXPECT_CLASS(MPI_ERR_OP, MPI_Op_free(&null));
  CHECK_EQ(b, 2.0);
}

void communicators() {
  MPI_Comm w = MPI_COMM_WORLD, null = MPI_COMM_NULL, made = MPI_COMM_NULL;
  int size = 0;
  REFUSED(MPI_Comm_free(&w));
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Comm_free(&null));
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Comm_size(MPI_COMM_NULL, &size));
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_NULL, &size));
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Comm_set_name(MPI_COMM_NULL, "x"));
  REFUSED(MPI_Comm_split(MPI_COMM_SELF, -5, 0, &made));
  REFUSED(MPI_Comm_remote_size(MPI_COMM_WORLD, &size));
  REFUSED(MPI_Comm_size(MPI_COMM_WORLD, nullptr));
  works_still();
}

// Senders of more than a rooted collective expects: seen as truncation, nobody hangs or crashes.
void truncated_collective() {
  if (check::size < 2) return;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  std::vector<int> data(100, check::rank), guard(4, 0x77);
  int code = MPI_Bcast(data.data(), check::rank == 0 ? 100 : 60, MPI_INT, 0, comm);
  // A rank further down the tree gets no more than those above it kept.
  if (check::rank == 0) {
    MPI(code);
  } else if (code != MPI_SUCCESS || check::size <= 3) {
    EXPECT_CLASS(MPI_ERR_TRUNCATE, code);
  }
  for (int i = 60; i < 100; ++i) CHECK_EQ(data[i], check::rank);
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  MPI(MPI_Comm_free(&comm));
  works_still();
}

// Ranks that pass different sizes to the same collective: some rank sees it, all get out of it, and
// nobody's memory beyond the own count is written.
void mismatched_collectives() {
  if (check::size < 2) return;
  const int n = check::size;
  const struct {
    const char* name;
    int (*call)(int* out, int* in, int count, MPI_Comm comm);
  } calls[] = {
      {"Bcast", [](int* out, int*, int count,
                   MPI_Comm comm) { return MPI_Bcast(out, count, MPI_INT, 0, comm); }},
      {"Ibcast",
       [](int* out, int*, int count, MPI_Comm comm) {
         MPI_Request request;
         MPI(MPI_Ibcast(out, count, MPI_INT, 0, comm, &request));
         return MPI_Wait(&request, MPI_STATUS_IGNORE);
       }},
      {"Gather",
       [](int* out, int* in, int count, MPI_Comm comm) {
         return MPI_Gather(out, count, MPI_INT, in, count, MPI_INT, 0, comm);
       }},
      {"Scatter",
       [](int* out, int* in, int count, MPI_Comm comm) {
         return MPI_Scatter(out, count, MPI_INT, in, count, MPI_INT, 0, comm);
       }},
      {"Allgather",
       [](int* out, int* in, int count, MPI_Comm comm) {
         return MPI_Allgather(out, count, MPI_INT, in, count, MPI_INT, comm);
       }},
      {"Alltoall",
       [](int* out, int* in, int count, MPI_Comm comm) {
         return MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, comm);
       }},
      {"Reduce",
       [](int* out, int* in, int count, MPI_Comm comm) {
         return MPI_Reduce(out, in, count, MPI_INT, MPI_SUM, 0, comm);
       }},
      {"Allreduce",
       [](int* out, int* in, int count, MPI_Comm comm) {
         return MPI_Allreduce(out, in, count, MPI_INT, MPI_SUM, comm);
       }},
      {"Scan", [](int* out, int* in, int count,
                  MPI_Comm comm) { return MPI_Scan(out, in, count, MPI_INT, MPI_SUM, comm); }},
  };
  // The last rank passes more, or less, than the others; short messages and long ones. Not so much
  // more or less that the ranks choose different algorithms: those could wait for ever.
  for (const auto& one : calls) {
    for (const int size : {4, 5000}) {
      for (const int other : {size - 2, size + 3}) {
        const int count = check::rank == n - 1 ? other : size;
        const size_t room = size_t(count) * size_t(n);
        std::vector<int> out(room + 16, check::rank), in(room + 16, 0x77);
        for (size_t i = room; i < room + 16; ++i) out[i] = 0x77;
        MPI_Comm comm = MPI_COMM_NULL;
        MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        const int code = one.call(out.data(), in.data(), count, comm);
        if (code != MPI_SUCCESS) EXPECT_CLASS(MPI_ERR_TRUNCATE, code);
        int seen = code != MPI_SUCCESS, all = 0;
        MPI(MPI_Allreduce(&seen, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        if (all == 0) {
          check::fail(__FILE__, __LINE__, "nobody saw that %s had %d numbers here and %d there",
                      one.name, size, other);
        }
        for (size_t i = room; i < room + 16; ++i) {
          CHECK_EQ(in[i], 0x77);
          CHECK_EQ(out[i], 0x77);
        }
        MPI(MPI_Comm_free(&comm));
      }
    }
  }
  works_still();
}

// A pair of arrays of requests in which one is bad: an error, not a crash.
void bad_among_good() {
  MPI_Request requests[3] = {MPI_REQUEST_NULL, invented<MPI_Request>(0xdeadbeef00),
                             MPI_REQUEST_NULL};
  int index = 0, count = 0, indices[3], flag = 0;
  REFUSED(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
  REFUSED(MPI_Waitany(3, requests, &index, MPI_STATUS_IGNORE));
  REFUSED(MPI_Testsome(3, requests, &count, indices, MPI_STATUSES_IGNORE));
  REFUSED(MPI_Testall(3, requests, &flag, MPI_STATUSES_IGNORE));
  REFUSED(MPI_Waitall(-1, requests, MPI_STATUSES_IGNORE));
  works_still();
}

// What one rank's memory could hold, and that of all ranks cannot; sums of counts that overflow.
// The requests are never started: without the error the test goes on.
void larger_than_memory() {
  MPI_Comm w = MPI_COMM_WORLD;
  MPI_Info none = MPI_INFO_NULL;
  MPI_Request r = MPI_REQUEST_NULL;
  const MPI_Count most = (MPI_Count(1) << 54) - 1;  // of MPI_INT
  int* out = &value + 1;
  std::vector<MPI_Count> counts(check::size, INT64_MAX / 2 + 1);
  std::vector<MPI_Aint> places(check::size, 0);
  EXPECT_CLASS(MPI_ERR_COUNT,
               MPI_Allgather_init_c(&value, 1, MPI_INT, out, most, MPI_INT, w, none, &r));
  EXPECT_CLASS(MPI_ERR_COUNT,
               MPI_Alltoall_init_c(&value, most, MPI_INT, out, 1, MPI_INT, w, none, &r));
  EXPECT_CLASS(MPI_ERR_COUNT, MPI_Reduce_scatter_init_c(&value, out, counts.data(), MPI_INT,
                                                        MPI_SUM, w, none, &r));
  EXPECT_CLASS(MPI_ERR_COUNT, MPI_Reduce_scatter_block_init_c(&value, out, INT64_MAX / 2 + 1,
                                                              MPI_INT, MPI_SUM, w, none, &r));
  std::fill(counts.begin(), counts.end(), 1);
  places.back() = INT64_MAX / 2 + 1;  // times four bytes: 0 in 64 bits
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Allgatherv_init_c(&value, 1, MPI_INT, out, counts.data(),
                                                  places.data(), MPI_INT, w, none, &r));
  // The place of an empty block means nothing.
  counts.back() = 0;
  MPI(MPI_Allgatherv_init_c(&value, check::rank + 1 < check::size, MPI_INT, out, counts.data(),
                            places.data(), MPI_INT, w, none, &r));
  MPI(MPI_Request_free(&r));
  works_still();
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"point_to_point", point_to_point},
                      {"types", types},
                      {"freed_handles", freed_handles},
                      {"garbage_handles", garbage_handles},
                      {"crossed_handles", crossed_handles},
                      {"request_twice", request_twice},
                      {"collectives", collectives},
                      {"op_and_type", op_and_type},
                      {"communicators", communicators},
                      {"truncated_collective", truncated_collective},
                      {"mismatched_collectives", mismatched_collectives},
                      {"larger_than_memory", larger_than_memory, 2},
                      {"bad_among_good", bad_among_good}});
}
