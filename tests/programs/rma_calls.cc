// Windows as objects: their flavours and attributes, names, hints, groups, handlers, what shared
// memory looks like, memory of dynamic windows, and PMPI names.
#include "rma.h"

namespace {

using rma::Flavor;
using rma::Window;

int int_attribute(MPI_Win win, int keyval) {
  int* value = nullptr;
  int flag = 0;
  MPI(MPI_Win_get_attr(win, keyval, static_cast<void*>(&value), &flag));
  CHECK(flag && value);
  return *value;
}

void check_attributes(const Window& window, int flavor) {
  void* base = nullptr;
  MPI_Aint* size = nullptr;
  int flag = 0;
  MPI(MPI_Win_get_attr(window, MPI_WIN_BASE, static_cast<void*>(&base), &flag));
  CHECK(flag);
  CHECK_EQ(base, flavor == MPI_WIN_FLAVOR_DYNAMIC ? nullptr : static_cast<void*>(window.memory()));
  MPI(MPI_Win_get_attr(window, MPI_WIN_SIZE, static_cast<void*>(&size), &flag));
  CHECK(flag);
  CHECK_EQ(*size, flavor == MPI_WIN_FLAVOR_DYNAMIC ? 0 : MPI_Aint(window.bytes()));
  CHECK_EQ(int_attribute(window, MPI_WIN_CREATE_FLAVOR), flavor);
  CHECK_EQ(int_attribute(window, MPI_WIN_MODEL), MPI_WIN_UNIFIED);
  CHECK_EQ(int_attribute(window, MPI_WIN_DISP_UNIT), flavor == MPI_WIN_FLAVOR_DYNAMIC ? 1 : 8);
}

void attributes() {
  for (const Flavor flavor : rma::flavors()) {
    const Window window(flavor, 64, 8);
    constexpr int values[] = {MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_ALLOCATE,
                              MPI_WIN_FLAVOR_DYNAMIC, MPI_WIN_FLAVOR_SHARED};
    check_attributes(window, values[int(flavor)]);
  }
}

int deleted;
int erase(MPI_Win, int, void* value, void* extra) {
  CHECK_EQ(extra, static_cast<void*>(&deleted));
  deleted += *static_cast<int*>(value);
  return MPI_SUCCESS;
}

void keyvals() {
  int keyval = MPI_KEYVAL_INVALID, value = 5, other = 7, flag = 1;
  MPI(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, erase, &keyval, &deleted));
  deleted = 0;
  {
    const Window window(Flavor::allocate, 8);
    int* got = nullptr;
    MPI(MPI_Win_get_attr(window, keyval, static_cast<void*>(&got), &flag));
    CHECK(!flag);
    MPI(MPI_Win_set_attr(window, keyval, &value));
    MPI(MPI_Win_get_attr(window, keyval, static_cast<void*>(&got), &flag));
    CHECK(flag);
    CHECK_EQ(*got, 5);
    MPI(MPI_Win_set_attr(window, keyval, &other));  // deletes the one before
    CHECK_EQ(deleted, 5);
    MPI(MPI_Win_delete_attr(window, keyval));
    CHECK_EQ(deleted, 12);
    MPI(MPI_Win_set_attr(window, keyval, &value));
    if (!check::errors_are_fatal()) {
      EXPECT_CLASS(MPI_ERR_KEYVAL, MPI_Win_set_attr(window, MPI_WIN_BASE, &value));
      EXPECT_CLASS(MPI_ERR_KEYVAL, MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, &value));
    }
  }
  CHECK_EQ(deleted, 17);  // with the window
  MPI(MPI_Win_free_keyval(&keyval));
  CHECK_EQ(keyval, MPI_KEYVAL_INVALID);
}

void names() {
  const Window window(Flavor::create, 8);
  char name[MPI_MAX_OBJECT_NAME] = "x";
  int length = -1;
  MPI(MPI_Win_get_name(window, name, &length));
  CHECK_EQ(length, 0);
  MPI(MPI_Win_set_name(window, "halo"));
  MPI(PMPI_Win_get_name(window, name, &length));
  CHECK_EQ(std::string(name), std::string("halo"));
  CHECK_EQ(length, 4);
  MPI(MPI_Win_get_name(MPI_WIN_NULL, name, &length));
  CHECK_EQ(std::string(name), std::string("MPI_WIN_NULL"));
  CHECK(MPI_Win_fromint(MPI_Win_toint(window)) == MPI_Win(window));
}

std::string hint(MPI_Win win, const char* key) {
  MPI_Info info;
  char value[64] = "";
  int room = sizeof value, flag = 0;
  MPI(MPI_Win_get_info(win, &info));
  MPI(MPI_Info_get_string(info, key, &room, value, &flag));
  MPI(MPI_Info_free(&info));
  return flag ? value : "(none)";
}

void hints() {
  MPI_Info info;
  MPI(MPI_Info_create(&info));
  MPI(MPI_Info_set(info, "accumulate_ordering", "none"));
  MPI(MPI_Info_set(info, "same_disp_unit", "true"));
  MPI(MPI_Info_set(info, "nonsense", "7"));
  {
    const Window window(Flavor::allocate, 64, 1, info);
    CHECK_EQ(hint(window, "accumulate_ordering"), std::string("none"));
    CHECK_EQ(hint(window, "same_disp_unit"), std::string("true"));
    CHECK_EQ(hint(window, "no_locks"), std::string("false"));
    CHECK_EQ(hint(window, "nonsense"), std::string("(none)"));
    MPI(MPI_Info_set(info, "accumulate_ops", "same_op"));
    MPI(MPI_Win_set_info(window, info));
    CHECK_EQ(hint(window, "accumulate_ops"), std::string("same_op"));
  }
  MPI(MPI_Info_free(&info));
}

void groups() {
  const Window window(Flavor::create, 8);
  MPI_Group own, world;
  int result = -1;
  MPI(MPI_Win_get_group(window, &own));
  MPI(MPI_Comm_group(MPI_COMM_WORLD, &world));
  MPI(MPI_Group_compare(own, world, &result));
  CHECK_EQ(result, MPI_IDENT);
  MPI(MPI_Group_free(&own));
  MPI(MPI_Group_free(&world));
}

int heard;
void hear(MPI_Win* win, int* code, ...) {
  CHECK(*win != MPI_WIN_NULL);
  heard = check::class_of(*code);
}

void ignore(MPI_Comm*, int*, ...) {}

void handlers() {
  const Window window(Flavor::allocate, 8);
  MPI_Errhandler own, held;
  MPI(MPI_Win_create_errhandler(hear, &own));
  MPI(MPI_Win_set_errhandler(window, own));
  MPI(MPI_Win_get_errhandler(window, &held));
  CHECK(held == own);
  MPI(MPI_Errhandler_free(&held));
  heard = 0;
  MPI(MPI_Win_call_errhandler(window, MPI_ERR_OTHER));
  CHECK_EQ(heard, MPI_ERR_OTHER);
  EXPECT_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(0, window));
  CHECK_EQ(heard, MPI_ERR_RMA_SYNC);
  MPI(MPI_Errhandler_free(&own));
  // Those of communicators are none of windows.
  MPI(MPI_Comm_create_errhandler(ignore, &own));
  EXPECT_CLASS(MPI_ERR_ERRHANDLER, MPI_Win_set_errhandler(window, own));
  MPI(MPI_Errhandler_free(&own));
}

// Memory that all ranks see: where the query says, with what each has written there.
void shared_memory() {
  if (!rma::all_share()) return;
  for (const bool noncontig : {false, true}) {
    MPI_Info info;
    MPI(MPI_Info_create(&info));
    MPI(MPI_Info_set(info, "alloc_shared_noncontig", noncontig ? "true" : "false"));
    const MPI_Aint own_bytes = 8 * (check::rank + 1);
    int64_t* own = nullptr;
    MPI_Win win;
    MPI(MPI_Win_allocate_shared(own_bytes, 8, info, MPI_COMM_WORLD, static_cast<void*>(&own),
                                &win));
    MPI(MPI_Info_free(&info));
    for (int i = 0; i <= check::rank; ++i) CHECK_EQ(own[i], 0);
    MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    for (int i = 0; i <= check::rank; ++i) own[i] = 100 * check::rank + i;
    MPI(MPI_Win_sync(win));
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    MPI(MPI_Win_sync(win));
    const char* end = nullptr;
    for (int rank = 0; rank < check::size; ++rank) {
      MPI_Aint size = -1;
      int unit = -1;
      int64_t* at = nullptr;
      MPI(MPI_Win_shared_query(win, rank, &size, &unit, static_cast<void*>(&at)));
      CHECK_EQ(size, MPI_Aint(8 * (rank + 1)));
      CHECK_EQ(unit, 8);
      for (int i = 0; i <= rank; ++i) CHECK_EQ(at[i], 100 * rank + i);
      if (rank == check::rank) CHECK(at == own);
      if (end && !noncontig) CHECK(reinterpret_cast<char*>(at) == end);
      end = reinterpret_cast<char*>(at) + size;
    }
    MPI_Aint size = -1, unit = -1;
    int64_t* first = nullptr;
    MPI(MPI_Win_shared_query_c(win, MPI_PROC_NULL, &size, &unit, static_cast<void*>(&first)));
    CHECK_EQ(size, 8);
    CHECK_EQ(first[0], 0);
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    // What one stores another one gets, and what one puts another one loads.
    if (check::rank == 0) {
      const int64_t value = 4711;
      const int last = check::size - 1;
      MPI(MPI_Put(&value, 1, MPI_INT64_T, last, 0, 1, MPI_INT64_T, win));
      MPI(MPI_Win_flush(last, win));
    }
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    MPI(MPI_Win_sync(win));
    if (check::rank == check::size - 1) CHECK_EQ(own[0], 4711);
    MPI(MPI_Win_unlock_all(win));
    MPI(MPI_Win_free(&win));
  }
}

// Memory comes and goes while the window is open; each piece is found by its address.
void dynamic_memory() {
  MPI_Win win;
  MPI(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  std::vector<std::vector<int>> pieces;
  for (int turn = 0; turn < 5; ++turn) pieces.emplace_back(size_t(100 * (turn + 1)), 0);
  const int next = (check::rank + 1) % check::size;
  const int previous = (check::rank + check::size - 1) % check::size;
  for (std::vector<int>& piece : pieces) {
    MPI(MPI_Win_attach(win, piece.data(), MPI_Aint(piece.size() * sizeof(int))));
    MPI_Aint here = 0, there = 0;
    MPI(MPI_Get_address(&piece[1], &here));
    MPI(MPI_Sendrecv(&here, 1, MPI_AINT, previous, 1, &there, 1, MPI_AINT, next, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE));
    MPI(MPI_Win_fence(0, win));
    const int value = 1000 + check::rank;
    MPI(MPI_Put(&value, 1, MPI_INT, next, there, 1, MPI_INT, win));
    MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK_EQ(piece[0], 0);
    CHECK_EQ(piece[1], 1000 + previous);
    CHECK_EQ(piece[2], 0);
  }
  for (const std::vector<int>& piece : pieces) MPI(MPI_Win_detach(win, piece.data()));
  // Two pieces that touch, written as one.
  std::vector<int> whole(10, 0);
  MPI(MPI_Win_attach(win, whole.data() + 4, 6 * sizeof(int)));
  MPI(MPI_Win_attach(win, whole.data(), 4 * sizeof(int)));
  MPI_Aint here = 0, there = 0;
  MPI(MPI_Get_address(whole.data(), &here));
  MPI(MPI_Sendrecv(&here, 1, MPI_AINT, previous, 1, &there, 1, MPI_AINT, next, 1, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE));
  const std::vector<int> put(10, 7);
  MPI(MPI_Win_fence(0, win));
  MPI(MPI_Put(put.data(), 10, MPI_INT, next, there, 10, MPI_INT, win));
  MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  CHECK(whole == put);
  MPI(MPI_Win_detach(win, whole.data() + 4));
  MPI(MPI_Win_detach(win, whole.data()));
  MPI(MPI_Win_free(&win));
}

// Ranks with nothing, ranks with different units, operations of nothing and on nobody.
void nothing() {
  std::vector<int> memory(check::rank % 2 ? 10 : 0);
  const int unit = check::rank % 2 ? 4 : 2;
  MPI_Win win;
  MPI(MPI_Win_create(memory.data(), MPI_Aint(memory.size() * 4), unit, MPI_INFO_NULL,
                     MPI_COMM_WORLD, &win));
  MPI(MPI_Win_fence(0, win));
  const int value = 42;
  for (int rank = 0; rank < check::size; ++rank) {
    MPI(MPI_Put(nullptr, 0, MPI_INT, rank, 0, 0, MPI_INT, win));
    // No element: so it does not matter that bytes have no sum.
    MPI(MPI_Accumulate(nullptr, 0, MPI_BYTE, rank, 0, 0, MPI_BYTE, MPI_SUM, win));
    MPI(MPI_Get_accumulate(nullptr, 0, MPI_BYTE, nullptr, 0, MPI_BYTE, rank, 0, 0, MPI_BYTE,
                           MPI_SUM, win));
    if (rank % 2 && rank == (check::rank + 1) % check::size) {
      MPI(MPI_Put(&value, 1, MPI_INT, rank, 9, 1, MPI_INT, win));
    }
  }
  MPI(MPI_Put(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
  MPI(MPI_Win_fence(0, win));
  if (check::rank % 2 && check::size > 1) CHECK_EQ(memory[9], 42);
  MPI(MPI_Win_free(&win));
}

// Several windows at a time, freed in another order than they were made.
void several() {
  std::vector<MPI_Win> all(12, MPI_WIN_NULL);
  std::vector<int*> at(all.size(), nullptr);
  for (size_t i = 0; i < all.size(); ++i) {
    MPI(MPI_Win_allocate(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&at[i]),
                         &all[i]));
  }
  const int next = (check::rank + 1) % check::size;
  for (size_t i = 0; i < all.size(); ++i) {
    const int value = int(i) + 1;
    MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, all[i]));
    MPI(MPI_Put(&value, 1, MPI_INT, next, 3, 1, MPI_INT, all[i]));
    MPI(MPI_Win_unlock(next, all[i]));
  }
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  for (size_t i = 0; i < all.size(); ++i) CHECK_EQ(at[i][3], int(i) + 1);
  for (size_t i = 0; i < all.size(); i += 2) MPI(MPI_Win_free(&all[i]));
  for (size_t i = 1; i < all.size(); i += 2) MPI(MPI_Win_free(&all[i]));
}

void delay(check::Random& random) {
  if (random.chance(50)) usleep(unsigned(random.between(0, 300)));
}

// Made, used and freed at once, with ranks that are late: nobody sends before all can answer, and
// nobody waits at the end for ranks that it never talked with.
template <Flavor flavor>
void short_lives() {
  check::Random random(check::key_of(check::seed, uint64_t(check::rank), uint64_t(flavor)));
  const int next = (check::rank + 1) % check::size;
  for (int turn = 0; turn < int(60 * check::scale); ++turn) {
    MPI_Win win;
    int own = 0;
    void* memory = nullptr;
    delay(random);
    if (flavor == Flavor::create) {
      MPI(MPI_Win_create(&own, sizeof own, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    } else if (flavor == Flavor::allocate) {
      MPI(MPI_Win_allocate(4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&memory), &win));
    } else {
      MPI(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    }
    if (random.chance(80)) {
      MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win));
      MPI(MPI_Win_unlock(next, win));
    }
    delay(random);
    MPI(MPI_Win_free(&win));
  }
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"attributes", attributes},
                      {"keyvals", keyvals},
                      {"names", names},
                      {"hints", hints},
                      {"groups", groups},
                      {"handlers", handlers},
                      {"shared_memory", shared_memory},
                      {"dynamic_memory", dynamic_memory},
                      {"nothing", nothing},
                      {"several", several},
                      {"short_lives_create", short_lives<Flavor::create>},
                      {"short_lives_allocate", short_lives<Flavor::allocate>},
                      {"short_lives_dynamic", short_lives<Flavor::dynamic>}});
}
