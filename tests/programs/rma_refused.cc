// What calls on windows refuse, each with its class, on the calling rank and before anything is
// sent: so the window works afterwards, which the end of each case shows.
#include <limits.h>

#include "rma.h"

namespace {

using rma::Flavor;
using rma::Window;

constexpr size_t bytes = 64;
int number = 5;

int next() { return (check::rank + 1) % check::size; }

// The window still does its work, and no epoch is open.
void check_works(const Window& window) {
  const int64_t value = 77 + check::rank;
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next(), 0, window));
  MPI(MPI_Put(&value, 1, MPI_INT64_T, next(), window.at(next(), 8), 1, MPI_INT64_T, window));
  MPI(MPI_Win_unlock(next(), window));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  const int previous = (check::rank + check::size - 1) % check::size;
  CHECK_EQ(window.as<int64_t>()[1], 77 + previous);
  MPI(MPI_Barrier(MPI_COMM_WORLD));
}

int put(MPI_Win win, int rank, MPI_Aint at, int count = 1, MPI_Datatype type = MPI_INT) {
  return MPI_Put(&number, 1, MPI_INT, rank, at, count, type, win);
}

void no_epoch() {
  const Window window(Flavor::allocate, bytes);
  MPI_Request request = MPI_REQUEST_NULL;
  int result = 0;
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, put(window, 0, 0));
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Get(&number, 1, MPI_INT, 0, 0, 1, MPI_INT, window));
  EXPECT_CLASS(MPI_ERR_RMA_SYNC,
               MPI_Accumulate(&number, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window));
  EXPECT_CLASS(MPI_ERR_RMA_SYNC,
               MPI_Fetch_and_op(&number, &result, MPI_INT, 0, 0, MPI_SUM, window));
  EXPECT_CLASS(MPI_ERR_RMA_SYNC,
               MPI_Compare_and_swap(&number, &number, &result, MPI_INT, 0, 0, window));
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Rput(&number, 1, MPI_INT, 0, 0, 1, MPI_INT, window, &request));
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_complete(window));
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_wait(window));
  int flag = 0;
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_test(window, &flag));
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(0, window));
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_unlock_all(window));
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_flush(0, window));
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_flush_local(0, window));
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_flush_all(window));
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_flush_local_all(window));
  check_works(window);
}

// Epochs do not nest, and each ends by its own call.
void crossed_epochs() {
  const Window window(Flavor::create, bytes);
  MPI_Group own;
  MPI(MPI_Win_get_group(window, &own));
  MPI(MPI_Win_lock(MPI_LOCK_SHARED, check::rank, 0, window));
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, check::rank, 0, window));
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, window));
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_start(own, 0, window));
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, window));
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_unlock_all(window));
  if (check::size > 1) {
    EXPECT_CLASS(MPI_ERR_RMA_SYNC, put(window, next(), 0));
    EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(next(), window));
  }
  MPI_Win copy = window;
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_free(&copy));
  CHECK(copy == MPI_Win(window));
  MPI(MPI_Win_unlock(check::rank, window));
  MPI(MPI_Win_lock_all(0, window));
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window));
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(0, window));
  MPI(MPI_Win_unlock_all(window));
  MPI(MPI_Win_post(own, 0, window));
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_post(own, 0, window));
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, window));
  MPI(MPI_Win_start(own, 0, window));
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_start(own, 0, window));
  MPI(MPI_Win_complete(window));
  MPI(MPI_Win_wait(window));
  MPI(MPI_Win_fence(0, window));
  MPI(put(window, check::rank, 0));
  MPI_Request request = MPI_REQUEST_NULL;
  EXPECT_CLASS(MPI_ERR_RMA_SYNC,
               MPI_Rput(&number, 1, MPI_INT, check::rank, 0, 1, MPI_INT, window, &request));
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window));
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_fence(MPI_MODE_NOPRECEDE, window));
  MPI(MPI_Win_fence(0, window));
  MPI(MPI_Group_free(&own));
  check_works(window);  // the fence's epoch was not used
}

void ranges() {
  MPI_Datatype strided;
  MPI(MPI_Type_vector(2, 1, 4, MPI_INT, &strided));
  MPI(MPI_Type_commit(&strided));
  for (const Flavor flavor : {Flavor::create, Flavor::allocate}) {
    const Window window(flavor, bytes, 4);
    MPI(MPI_Win_lock_all(0, window));
    const int two[2] = {1, 2};
    EXPECT_CLASS(MPI_ERR_RMA_RANGE, put(window, next(), 16));
    EXPECT_CLASS(MPI_ERR_RMA_RANGE, put(window, next(), INT_MAX));
    EXPECT_CLASS(MPI_ERR_RMA_RANGE, put(window, next(), INT64_MAX));
    EXPECT_CLASS(MPI_ERR_DISP, put(window, next(), -1));
    EXPECT_CLASS(MPI_ERR_RMA_RANGE, MPI_Put(two, 2, MPI_INT, next(), 12, 1, strided, window));
    MPI(MPI_Put(two, 2, MPI_INT, next(), 11, 1, strided, window));
    int result = 0;
    EXPECT_CLASS(MPI_ERR_RMA_RANGE,
                 MPI_Fetch_and_op(&number, &result, MPI_INT, next(), 16, MPI_SUM, window));
    EXPECT_CLASS(MPI_ERR_RMA_RANGE,
                 MPI_Compare_and_swap(&number, &number, &result, MPI_INT, next(), 16, window));
    MPI(put(window, next(), 15));
    MPI(MPI_Win_unlock_all(window));
    check_works(window);
  }
  MPI(MPI_Type_free(&strided));
}

// The target knows what is attached, and the origin hears of it when it synchronises.
void not_attached() {
  const Window window(Flavor::dynamic, bytes);
  const MPI_Aint outside = window.at(next(), 0) + MPI_Aint(bytes) - 2;
  MPI(MPI_Win_lock(MPI_LOCK_SHARED, next(), 0, window));
  MPI(put(window, next(), outside));
  EXPECT_CLASS(MPI_ERR_RMA_RANGE, MPI_Win_flush(next(), window));
  MPI(MPI_Win_flush(next(), window));  // is told once
  int result = 123;
  MPI(MPI_Get(&result, 1, MPI_INT, next(), outside, 1, MPI_INT, window));
  EXPECT_CLASS(MPI_ERR_RMA_RANGE, MPI_Win_flush_local(next(), window));
  CHECK_EQ(result, 123);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI(MPI_Rget(&result, 1, MPI_INT, next(), outside, 1, MPI_INT, window, &request));
  EXPECT_CLASS(MPI_ERR_RMA_RANGE, MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(request == MPI_REQUEST_NULL);
  MPI(put(window, next(), outside));
  EXPECT_CLASS(MPI_ERR_RMA_RANGE, MPI_Win_unlock(next(), window));
  MPI(MPI_Win_fence(0, window));
  MPI(put(window, next(), outside));
  EXPECT_CLASS(MPI_ERR_RMA_RANGE, MPI_Win_fence(MPI_MODE_NOSUCCEED, window));
  check_works(window);
}

void attaching() {
  const Window window(Flavor::dynamic, bytes);
  const Window fixed(Flavor::create, bytes);
  char* own = window.memory();
  EXPECT_CLASS(MPI_ERR_RMA_ATTACH, MPI_Win_attach(window, own, 8));
  EXPECT_CLASS(MPI_ERR_RMA_ATTACH, MPI_Win_attach(window, own + bytes - 1, 8));
  EXPECT_CLASS(MPI_ERR_RMA_ATTACH, MPI_Win_detach(window, own + 1));
  EXPECT_CLASS(MPI_ERR_SIZE, MPI_Win_attach(window, own, -1));
  EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Win_attach(window, nullptr, 1));
  MPI(MPI_Win_attach(window, nullptr, 0));  // of nothing, anywhere
  MPI(MPI_Win_detach(window, nullptr));
  EXPECT_CLASS(MPI_ERR_RMA_FLAVOR, MPI_Win_attach(fixed, own, 8));
  EXPECT_CLASS(MPI_ERR_RMA_FLAVOR, MPI_Win_detach(fixed, own));
  MPI_Aint size = 0;
  int unit = 0;
  void* at = nullptr;
  EXPECT_CLASS(MPI_ERR_RMA_FLAVOR, MPI_Win_shared_query(window, 0, &size, &unit, &at));
  check_works(window);
  check_works(fixed);
}

// Windows are of the ranks of one communicator, not of two groups.
void inter_communicators() {
  if (check::size < 2) return;
  MPI_Comm half, inter;
  const int side = check::rank % 2;
  MPI(MPI_Comm_split(MPI_COMM_WORLD, side, check::rank, &half));
  MPI(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 5, &inter));
  MPI(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
  MPI_Win win;
  int own = 0;
  void* at = nullptr;
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Win_create(&own, 4, 4, MPI_INFO_NULL, inter, &win));
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Win_allocate(4, 4, MPI_INFO_NULL, inter, &at, &win));
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Win_allocate_shared(4, 4, MPI_INFO_NULL, inter, &at, &win));
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Win_create_dynamic(MPI_INFO_NULL, inter, &win));
  MPI(MPI_Comm_free(&inter));
  MPI(MPI_Comm_free(&half));
}

int own_sum_calls;
void own_sum(void*, void*, int*, MPI_Datatype*) { ++own_sum_calls; }

void operations() {
  const Window window(Flavor::allocate, bytes);
  MPI_Op own;
  MPI(MPI_Op_create(own_sum, 1, &own));
  MPI_Datatype mixed;
  const int lengths[] = {1, 1};
  const MPI_Aint places[] = {0, 8};
  const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
  MPI(MPI_Type_create_struct(2, lengths, places, types, &mixed));
  MPI(MPI_Type_commit(&mixed));
  double values[2] = {1, 2}, result[2];
  MPI(MPI_Win_lock_all(0, window));
  const auto accumulate = [&](MPI_Datatype here, MPI_Datatype there, MPI_Op op) {
    return MPI_Accumulate(values, 1, here, next(), 0, 1, there, op, window);
  };
  EXPECT_CLASS(MPI_ERR_OP, accumulate(MPI_INT, MPI_INT, own));
  EXPECT_CLASS(MPI_ERR_OP, accumulate(MPI_INT, MPI_INT, MPI_OP_NULL));
  EXPECT_CLASS(MPI_ERR_OP, accumulate(MPI_DOUBLE, MPI_DOUBLE, MPI_BAND));
  EXPECT_CLASS(MPI_ERR_OP, accumulate(MPI_INT, MPI_INT, MPI_MAXLOC));
  EXPECT_CLASS(MPI_ERR_TYPE, accumulate(mixed, mixed, MPI_SUM));
  EXPECT_CLASS(MPI_ERR_TYPE, accumulate(MPI_FLOAT, MPI_INT, MPI_SUM));
  EXPECT_CLASS(MPI_ERR_TYPE, MPI_Fetch_and_op(values, result, mixed, next(), 0, MPI_SUM, window));
  EXPECT_CLASS(MPI_ERR_TYPE,
               MPI_Compare_and_swap(values, values, result, MPI_DOUBLE, next(), 0, window));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Put(values, 1, MPI_INT, next(), 0, 1, MPI_DOUBLE, window));
  EXPECT_CLASS(MPI_ERR_COUNT, MPI_Put(values, -1, MPI_INT, next(), 0, 1, MPI_INT, window));
  EXPECT_CLASS(MPI_ERR_COUNT, MPI_Put(values, 1, MPI_INT, next(), 0, -1, MPI_INT, window));
  EXPECT_CLASS(MPI_ERR_TYPE, MPI_Put(values, 1, MPI_DATATYPE_NULL, next(), 0, 1, MPI_INT, window));
  EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Put(nullptr, 1, MPI_INT, next(), 0, 1, MPI_INT, window));
  EXPECT_CLASS(MPI_ERR_RANK, put(window, check::size, 0));
  EXPECT_CLASS(MPI_ERR_RANK, put(window, -1000, 0));
  MPI(MPI_Win_unlock_all(window));
  CHECK_EQ(own_sum_calls, 0);
  MPI(MPI_Op_free(&own));
  MPI(MPI_Type_free(&mixed));
  check_works(window);
}

void arguments() {
  const Window window(Flavor::create, bytes);
  MPI_Win win = MPI_WIN_NULL;
  void* at = nullptr;
  EXPECT_CLASS(MPI_ERR_WIN, MPI_Win_fence(0, MPI_WIN_NULL));
  EXPECT_CLASS(MPI_ERR_WIN, MPI_Win_free(&win));
  EXPECT_CLASS(MPI_ERR_WIN, put(MPI_WIN_NULL, 0, 0));
  EXPECT_CLASS(MPI_ERR_SIZE, MPI_Win_create(&number, -4, 4, MPI_INFO_NULL, MPI_COMM_SELF, &win));
  EXPECT_CLASS(MPI_ERR_DISP, MPI_Win_create(&number, 4, 0, MPI_INFO_NULL, MPI_COMM_SELF, &win));
  EXPECT_CLASS(MPI_ERR_DISP, MPI_Win_allocate(4, -1, MPI_INFO_NULL, MPI_COMM_SELF, &at, &win));
  EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Win_create(nullptr, 4, 4, MPI_INFO_NULL, MPI_COMM_SELF, &win));
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_NULL, &win));
  EXPECT_CLASS(MPI_ERR_ASSERT, MPI_Win_fence(1 << 30, window));
  EXPECT_CLASS(MPI_ERR_ASSERT, MPI_Win_lock_all(MPI_MODE_NOPUT, window));
  EXPECT_CLASS(MPI_ERR_ASSERT, MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOSTORE, window));
  EXPECT_CLASS(MPI_ERR_LOCKTYPE, MPI_Win_lock(12345, 0, 0, window));
  EXPECT_CLASS(MPI_ERR_RANK, MPI_Win_lock(MPI_LOCK_SHARED, check::size, 0, window));
  MPI(MPI_Win_lock(MPI_LOCK_SHARED, MPI_PROC_NULL, 0, window));
  MPI(MPI_Win_unlock(MPI_PROC_NULL, window));
  EXPECT_CLASS(MPI_ERR_GROUP, MPI_Win_start(MPI_GROUP_NULL, 0, window));
  check_works(window);
  if (check::size == 1) return;
  // Of one rank alone, a group of others is none of it.
  MPI_Group world;
  MPI(MPI_Comm_group(MPI_COMM_WORLD, &world));
  MPI(MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_SELF, &at, &win));
  MPI(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  EXPECT_CLASS(MPI_ERR_GROUP, MPI_Win_post(world, 0, win));
  MPI(MPI_Win_free(&win));
  MPI(MPI_Group_free(&world));
}

// Where not all ranks share memory, all of them hear so.
void not_shared() {
  MPI_Win win = MPI_WIN_NULL;
  void* at = nullptr;
  if (rma::all_share()) return;
  EXPECT_CLASS(MPI_ERR_RMA_SHARED,
               MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &at, &win));
  MPI(MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, MPI_COMM_SELF, &at, &win));
  MPI(MPI_Win_free(&win));
}

void no_locks() {
  MPI_Info info;
  MPI(MPI_Info_create(&info));
  MPI(MPI_Info_set(info, "no_locks", "true"));
  {
    const Window window(Flavor::allocate, bytes, 1, info);
    EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window));
    EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, window));
    MPI(MPI_Win_fence(0, window));
    MPI(put(window, next(), 0));
    MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, window));
    CHECK_EQ(*window.as<int>(), number);
  }
  MPI(MPI_Info_free(&info));
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"no_epoch", no_epoch},
                      {"crossed_epochs", crossed_epochs},
                      {"ranges", ranges},
                      {"not_attached", not_attached},
                      {"attaching", attaching},
                      {"inter_communicators", inter_communicators},
                      {"operations", operations},
                      {"arguments", arguments},
                      {"not_shared", not_shared},
                      {"no_locks", no_locks}});
}
