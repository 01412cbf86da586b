// Operations on plain memory that change their way under way: by frames while the target waits in
// MPI, by the system's copies while it does not, or where they are long. None may overtake another.
#include <sched.h>

#include <algorithm>
#include <cstring>

#include "mpi_t.h"
#include "rma.h"

namespace {

constexpr size_t bytes = 64 << 10;
constexpr int rounds = 400;

void compute_us(double us) {
  const double end = MPI_Wtime() + 1e-6 * us;
  while (MPI_Wtime() < end) continue;
}

bool must() {
  return std::find(check::words.begin(), check::words.end(), "must") != check::words.end();
}

// Of all ranks together: each may be bound to one of its own.
bool has_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  MPI(MPI_Allreduce(MPI_IN_PLACE, &set, int(sizeof set), MPI_BYTE, MPI_BOR, MPI_COMM_WORLD));
  return CPU_COUNT(&set) >= check::size;
}

// The target waits for a message, or computes: whichever it is, and is about to be, the last write
// to each byte counts. One epoch for all rounds.
void changes(rma::Window& window, int round, std::vector<char>& model) {
  check::Random random(check::key_of(check::seed, uint64_t(round)));
  std::vector<char> out(bytes), in(bytes);
  const int target = 1;
  for (int step = 0; step < 12; ++step) {
    const bool is_long = random.between(0, 3) == 0;
    const auto n = size_t(is_long ? random.between(2000, 8000) : random.between(1, 100));
    const auto at = size_t(random.between(0, 7999));
    if (random.between(0, 2) != 0) {
      for (size_t i = 0; i < n; ++i) out[i] = char(random.between(0, 255));
      memcpy(model.data() + at, out.data(), n);
      MPI(MPI_Put(out.data(), int(n), MPI_BYTE, target, MPI_Aint(at), int(n), MPI_BYTE, window));
      if (random.between(0, 1) == 0) continue;  // what follows may lie on it
    }
    MPI(MPI_Win_flush(target, window));
    const auto from = size_t(random.between(0, 7999));
    const auto wanted = size_t(random.between(1, random.between(0, 1) ? 64 : 6000));
    MPI(MPI_Get(in.data(), int(wanted), MPI_BYTE, target, MPI_Aint(from), int(wanted), MPI_BYTE,
                window));
    MPI(MPI_Win_flush(target, window));
    CHECK(memcmp(in.data(), model.data() + from, wanted) == 0);
  }
  MPI(MPI_Win_flush(target, window));
}

void in_one_epoch() {
  if (check::size < 2) return;
  rma::Window window(rma::Flavor::create, bytes);
  std::vector<char> model(bytes);
  MPI(MPI_Win_lock_all(0, window));
  for (int round = 0; round < rounds; ++round) {
    if (check::rank == 0) {
      changes(window, round, model);
      MPI(MPI_Send(nullptr, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
    } else if (check::rank == 1) {
      if (round % 3 == 0) compute_us(100);
      MPI(MPI_Recv(nullptr, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
  }
  MPI(MPI_Win_unlock_all(window));
}

// Epochs of all kinds, whose ends find frames under way, or writes that have not left.
void at_the_end_of_epochs() {
  if (check::size < 2) return;
  rma::Window window(rma::Flavor::create, bytes, 8);
  const int target = check::rank == 0 ? 1 : 0;
  int64_t sum = 0;
  for (int round = 0; round < rounds; ++round) {
    const bool fences = round % 2 == 0;
    if (fences) MPI(MPI_Win_fence(0, window));
    if (check::rank < 2) {
      if (round % 5 == 0 && check::rank == 1) compute_us(50);
      if (!fences) MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window));
      // More than leave together, in a fence's epoch.
      const int count = round % 7 == 0 ? 150 : 3;
      std::vector<int64_t> values(size_t(count), round + 1);
      for (int i = 0; i < count; ++i) {
        MPI(MPI_Put(&values[size_t(i)], 1, MPI_INT64_T, target, i, 1, MPI_INT64_T, window));
      }
      const int64_t one = 1;
      MPI(MPI_Accumulate(&one, 1, MPI_INT64_T, target, 500, 1, MPI_INT64_T, MPI_SUM, window));
      ++sum;
      if (!fences) MPI(MPI_Win_unlock(target, window));
    }
    if (fences) {
      MPI(MPI_Win_fence(0, window));
    } else {
      MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
    if (check::rank < 2) {
      MPI(MPI_Win_lock(MPI_LOCK_SHARED, check::rank, 0, window));
      const int64_t* own = reinterpret_cast<const int64_t*>(window.memory());
      for (int i = 0; i < 3; ++i) CHECK_EQ(own[i], round + 1);
      if (round % 7 == 0) CHECK_EQ(own[149], round + 1);
      CHECK_EQ(own[500], sum);
      MPI(MPI_Win_unlock(check::rank, window));
    }
    MPI(MPI_Barrier(MPI_COMM_WORLD));
  }
}

// Many short ones that the target has yet to take, and a long one over them all.
void a_burst_before_a_long_one() {
  if (check::size < 2) return;
  constexpr size_t each = 900, count = 60, all = each * count;
  rma::Window window(rma::Flavor::create, bytes);
  std::vector<char> ours(each, 'a'), over(all), in(all);
  MPI(MPI_Win_lock_all(0, window));
  for (int round = 0; round < rounds; ++round) {
    if (check::rank == 0) {
      memset(over.data(), 'b' + round % 20, all);
      for (size_t i = 0; i < count; ++i) {
        MPI(MPI_Put(ours.data(), int(each), MPI_BYTE, 1, MPI_Aint(i * each), int(each), MPI_BYTE,
                    window));
      }
      MPI(MPI_Put(over.data(), int(all), MPI_BYTE, 1, 0, int(all), MPI_BYTE, window));
      MPI(MPI_Win_flush(1, window));
      MPI(MPI_Get(in.data(), int(all), MPI_BYTE, 1, 0, int(all), MPI_BYTE, window));
      MPI(MPI_Win_flush(1, window));
      CHECK(in == over);
      MPI(MPI_Send(nullptr, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
      MPI(MPI_Recv(nullptr, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    } else if (check::rank == 1) {
      MPI(MPI_Recv(nullptr, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      const auto is_over = [&](char c) { return c == char('b' + round % 20); };
      MPI(MPI_Win_sync(window));
      CHECK(std::all_of(window.memory(), window.memory() + all, is_over));
      MPI(MPI_Send(nullptr, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD));
    }
  }
  MPI(MPI_Win_unlock_all(window));
}

// A number that is read, and written one more, under a lock: whoever waits for that lock waits in
// MPI, so the other one's writes come by frames, and have to be there before the lock is free.
void under_a_lock() {
  if (check::size < 2) return;
  constexpr int filler = 40;  // writes that are under way with the one that counts
  rma::Window window(rma::Flavor::create, bytes, 8);
  for (int i = 0; i < 5 * rounds; ++i) {
    int64_t value = -1;
    MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window));
    MPI(MPI_Get(&value, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, window));
    MPI(MPI_Win_flush(1, window));
    ++value;
    for (int k = filler; k >= 0; --k) {
      MPI(MPI_Put(&value, 1, MPI_INT64_T, 1, k, 1, MPI_INT64_T, window));
    }
    MPI(MPI_Win_unlock(1, window));
  }
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  if (check::rank == 1) {
    MPI(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window));
    CHECK_EQ(*window.as<int64_t>(), int64_t(check::size) * 5 * rounds);
    MPI(MPI_Win_unlock(1, window));
  }
}

void see_both_ways(mpi_t::Counters& tool) {
  rma::Window window(rma::Flavor::create, bytes);
  MPI(MPI_Win_lock_all(0, window));
  const auto counted = [&] { return tool.read("window_operations") - tool.read("window_direct"); };
  for (const bool waits : {true, false}) {
    // Somebody may take the target's core, so that it sleeps, or ours, so that its work is over.
    int seen = 0, over = 0;
    const double end = MPI_Wtime() + 15;
    while (!seen && !over) {
      MPI(MPI_Barrier(MPI_COMM_WORLD));
      if (check::rank == 1) {
        if (!waits) compute_us(30000);
        MPI(MPI_Recv(&seen, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MPI(MPI_Recv(&over, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        continue;
      }
      compute_us(300);
      const auto before = counted();
      const int64_t value = 7;
      for (int i = 0; i < 100; ++i) {
        MPI(MPI_Put(&value, 1, MPI_INT64_T, 1, 8 * i, 1, MPI_INT64_T, window));
        MPI(MPI_Win_flush(1, window));
      }
      const auto framed = counted() - before;
      seen = waits ? framed > 50 : framed < 50;
      over = MPI_Wtime() > end;
      MPI(MPI_Send(&seen, 1, MPI_INT, 1, 1, MPI_COMM_WORLD));
      MPI(MPI_Send(&over, 1, MPI_INT, 1, 1, MPI_COMM_WORLD));
    }
    CHECK(seen);
  }
  MPI(MPI_Win_unlock_all(window));
}

// In a fence's epoch short puts wait for its end, whatever the target does; long ones do not.
void wait_for_the_fence(mpi_t::Counters& tool) {
  rma::Window window(rma::Flavor::create, bytes);
  const auto counted = [&] { return tool.read("window_operations") - tool.read("window_direct"); };
  MPI(MPI_Win_fence(0, window));
  if (check::rank == 0) {
    const auto before = counted();
    std::vector<int64_t> values(1000, 9);
    for (int i = 0; i < 100; ++i) {
      MPI(MPI_Put(&values[0], 1, MPI_INT64_T, 1, 8 * i, 1, MPI_INT64_T, window));
    }
    CHECK_EQ(counted() - before, mpi_t::Value(100));
    MPI(MPI_Put(values.data(), 1000, MPI_INT64_T, 1, 8 * 100, 1000, MPI_INT64_T, window));
    CHECK_EQ(counted() - before, mpi_t::Value(100));
  }
  MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, window));
  const int64_t* const own = window.as<int64_t>();
  if (check::rank == 1) CHECK(std::count(own, own + 1100, int64_t{9}) == 1100);
}

// With the word "must": both ways were gone.
void both_ways() {
  if (check::size != 2 || !must() || !has_cores()) return;
  int provided = 0;
  MPI(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
  {
    mpi_t::Counters tool;
    see_both_ways(tool);
    wait_for_the_fence(tool);
  }
  MPI(MPI_T_finalize());
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"in one epoch", in_one_epoch},
                      {"at the end of epochs", at_the_end_of_epochs},
                      {"a burst before a long one", a_burst_before_a_long_one},
                      {"under a lock", under_a_lock},
                      {"both ways", both_ways}});
}
