// Windows that several threads of each rank use at a time: one epoch of all, operations, flushes
// and requests of each thread beside those of the others.
#include <pthread.h>

#include <atomic>

#include "rma.h"

namespace {

using rma::Flavor;
using rma::Window;

constexpr int workers = 4;
constexpr size_t part = 512;  // bytes of each thread of each rank in every window
constexpr size_t sums = 0;    // one number that all add to

int turns() { return int(60 * check::scale); }

struct Worker {
  Window* window;
  int number;

  size_t own_part() const { return 64 + (size_t(check::rank) * workers + size_t(number)) * part; }
};

// Puts and gets in a part of every window that nobody else has, and sums into one place.
void* work(void* argument) {
  const Worker& self = *static_cast<Worker*>(argument);
  Window& window = *self.window;
  check::Random random(check::key_of(check::seed, uint64_t(check::rank), uint64_t(self.number)));
  const int64_t one = 1;
  std::vector<char> out(part), in(part);
  for (int turn = 0; turn < turns(); ++turn) {
    const int target = random.between(0, check::size - 1);
    const auto bytes = int(random.below(part)) + 1;
    const MPI_Aint at = window.at(target, self.own_part());
    const uint64_t key = random.next();
    check::fill(out.data(), size_t(bytes), key);
    int64_t before = -1;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI(MPI_Put(out.data(), bytes, MPI_CHAR, target, at, bytes, MPI_CHAR, window));
    MPI(MPI_Fetch_and_op(&one, &before, MPI_INT64_T, target, window.at(target, sums), MPI_SUM,
                         window));
    MPI(MPI_Win_flush(target, window));
    CHECK(before >= 0);
    if (random.chance(50)) {
      MPI(MPI_Rget(in.data(), bytes, MPI_CHAR, target, at, bytes, MPI_CHAR, window, &request));
      MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
      MPI(MPI_Get(in.data(), bytes, MPI_CHAR, target, at, bytes, MPI_CHAR, window));
      MPI(random.chance(50) ? MPI_Win_flush_local(target, window) : MPI_Win_flush_all(window));
    }
    CHECK_BYTES(in.data(), size_t(bytes), key);
  }
  return nullptr;
}

template <Flavor flavor>
void all_of() {
  if (flavor == Flavor::shared && !rma::all_share()) return;
  Window window(flavor, 64 + size_t(check::size) * workers * part);
  MPI(MPI_Win_lock_all(0, window));
  Worker all[workers];
  pthread_t ids[workers];
  for (int i = 0; i < workers; ++i) {
    all[i] = {&window, i};
    CHECK_EQ(pthread_create(&ids[i], nullptr, work, &all[i]), 0);
  }
  for (pthread_t id : ids) pthread_join(id, nullptr);
  MPI(MPI_Win_unlock_all(window));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  int64_t sum = 0, mine = 0;
  MPI(MPI_Win_lock(MPI_LOCK_SHARED, check::rank, 0, window));
  mine = *window.as<int64_t>();
  MPI(MPI_Win_unlock(check::rank, window));
  MPI(MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
  CHECK_EQ(sum, int64_t(check::size) * workers * turns());
}

// Each thread has a window of its own, and makes and frees it while the others use theirs.
struct Alone {
  MPI_Comm comm;
};
void* make_and_free(void* argument) {
  MPI_Comm comm = static_cast<Alone*>(argument)->comm;
  for (int turn = 0; turn < turns() / 10; ++turn) {
    int* at = nullptr;
    MPI_Win win;
    const int value = 100 + turn;
    MPI(MPI_Win_allocate(64, 4, MPI_INFO_NULL, comm, static_cast<void*>(&at), &win));
    MPI(MPI_Win_fence(0, win));
    MPI(MPI_Put(&value, 1, MPI_INT, (check::rank + 1) % check::size, 2, 1, MPI_INT, win));
    MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK_EQ(at[2], 100 + turn);
    MPI(MPI_Win_free(&win));
  }
  return nullptr;
}

void own_windows() {
  Alone all[workers];
  pthread_t ids[workers];
  for (Alone& one : all) MPI(MPI_Comm_dup(MPI_COMM_WORLD, &one.comm));
  for (int i = 0; i < workers; ++i) {
    CHECK_EQ(pthread_create(&ids[i], nullptr, make_and_free, &all[i]), 0);
  }
  for (pthread_t id : ids) pthread_join(id, nullptr);
  for (Alone& one : all) MPI(MPI_Comm_free(&one.comm));
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"create", all_of<Flavor::create>},
                      {"allocate", all_of<Flavor::allocate>},
                      {"dynamic", all_of<Flavor::dynamic>},
                      {"shared", all_of<Flavor::shared>},
                      {"own_windows", own_windows}},
                     MPI_THREAD_MULTIPLE);
}
