// When an operation is complete: proven by the target's own memory or by a third rank, never by
// time. And targets that compute for 300 ms without a call of MPI hold nobody up (with the argument
// "must": where the library promises that).
#include <time.h>

#include "rma.h"

namespace {

using rma::Flavor;
using rma::Window;

constexpr double computes_s = 0.3;

bool must() {
  return std::find(check::words.begin(), check::words.end(), "must") != check::words.end();
}

int rounds() { return int(30 * check::scale); }

// Rank 0 puts into rank 1, flushes, and tells rank 2, which gets: it must see the new value. With
// two ranks the origin itself reads, over the same way, and the target looks at its own memory.
void flushed_is_there(Window& window) {
  const int third = check::size > 2 ? 2 : 0;
  MPI(MPI_Win_lock_all(0, window));
  for (int64_t round = 1; round <= rounds(); ++round) {
    if (check::rank == 0) {
      MPI(MPI_Put(&round, 1, MPI_INT64_T, 1, window.at(1, 0), 1, MPI_INT64_T, window));
      MPI(MPI_Win_flush(1, window));
      if (third != 0) MPI(MPI_Send(&round, 1, MPI_INT64_T, third, 1, MPI_COMM_WORLD));
    }
    if (check::rank == third) {
      int64_t told = round, seen = -1;
      if (third != 0) {
        MPI(MPI_Recv(&told, 1, MPI_INT64_T, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      }
      MPI(MPI_Get(&seen, 1, MPI_INT64_T, 1, window.at(1, 0), 1, MPI_INT64_T, window));
      MPI(MPI_Win_flush(1, window));
      CHECK_EQ(seen, told);
      if (third != 0) MPI(MPI_Send(&seen, 1, MPI_INT64_T, 0, 2, MPI_COMM_WORLD));
    }
    if (check::rank == 0 && third != 0) {
      int64_t seen = -1;
      MPI(MPI_Recv(&seen, 1, MPI_INT64_T, third, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK_EQ(seen, round);
    }
  }
  MPI(MPI_Win_unlock_all(window));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
}

// The target itself, told by a message behind the flush, finds the value in its memory.
void target_sees(Window& window) {
  MPI(MPI_Win_lock_all(0, window));
  for (int64_t round = 1; round <= rounds(); ++round) {
    const int64_t value = 1000 + round;
    char token = 0;
    if (check::rank == 0) {
      MPI(MPI_Put(&value, 1, MPI_INT64_T, 1, window.at(1, 8), 1, MPI_INT64_T, window));
      MPI(MPI_Win_flush(1, window));
      MPI(MPI_Send(&token, 1, MPI_CHAR, 1, 3, MPI_COMM_WORLD));
      MPI(MPI_Recv(&token, 1, MPI_CHAR, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    } else if (check::rank == 1) {
      MPI(MPI_Recv(&token, 1, MPI_CHAR, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      MPI(MPI_Win_sync(window));
      CHECK_EQ(*static_cast<volatile int64_t*>(window.as<int64_t>() + 1), value);
      MPI(MPI_Send(&token, 1, MPI_CHAR, 0, 4, MPI_COMM_WORLD));
    }
  }
  MPI(MPI_Win_unlock_all(window));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
}

// Operations of one origin to one place are carried out in their order.
void accumulates_keep_order(Window& window) {
  MPI(MPI_Win_lock_all(0, window));
  if (check::rank == 0) {
    std::vector<int64_t> values(64), before(64, -1);
    for (size_t i = 0; i < values.size(); ++i) values[i] = int64_t(i) + 1;
    int64_t zero = 0;
    MPI(MPI_Accumulate(&zero, 1, MPI_INT64_T, 1, window.at(1, 16), 1, MPI_INT64_T, MPI_REPLACE,
                       window));
    for (size_t i = 0; i < values.size(); ++i) {
      MPI(MPI_Fetch_and_op(&values[i], &before[i], MPI_INT64_T, 1, window.at(1, 16), MPI_REPLACE,
                           window));
    }
    MPI(MPI_Win_flush(1, window));
    for (size_t i = 0; i < values.size(); ++i) CHECK_EQ(before[i], int64_t(i));
  }
  MPI(MPI_Win_unlock_all(window));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
}

void compute(double seconds) {
  const double end = MPI_Wtime() + seconds;
  volatile double sum = 0;
  while (MPI_Wtime() < end) {
    for (int i = 0; i < 1000; ++i) sum = sum + 1;
  }
}

// The target computes; the origin's operations are over long before it ends. Whether they were.
bool target_computes_once(Window& window) {
  const int64_t one = 1, nothing = 0;
  int64_t number = -1, was = -1;
  char token = 0;
  int good = 1;
  std::vector<char> block(100'000, 'b'), back(block.size());
  MPI(MPI_Win_lock_all(0, window));
  if (check::rank == 1) {
    MPI(MPI_Send(&token, 1, MPI_CHAR, 0, 5, MPI_COMM_WORLD));
    const double begun = MPI_Wtime();
    compute(computes_s);
    double took = 0;
    MPI(MPI_Recv(&took, 1, MPI_DOUBLE, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    // The origin has to have been done when less than all of that time had passed.
    good = took < (MPI_Wtime() - begun) * 0.9 && took < computes_s * 0.9;
  } else if (check::rank == 0) {
    MPI(MPI_Recv(&token, 1, MPI_CHAR, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    const double begun = MPI_Wtime();
    number = was = -1;
    MPI(MPI_Put(&nothing, 1, MPI_INT64_T, 1, window.at(1, 24), 1, MPI_INT64_T, window));
    MPI(MPI_Win_flush(1, window));
    MPI(MPI_Put(&one, 1, MPI_INT64_T, 1, window.at(1, 24), 1, MPI_INT64_T, window));
    MPI(MPI_Win_flush(1, window));
    MPI(MPI_Fetch_and_op(&one, &number, MPI_INT64_T, 1, window.at(1, 24), MPI_SUM, window));
    MPI(MPI_Win_flush(1, window));
    CHECK_EQ(number, 1);
    MPI(MPI_Compare_and_swap(&one, &number, &was, MPI_INT64_T, 1, window.at(1, 24), window));
    MPI(MPI_Win_flush(1, window));
    CHECK_EQ(was, 2);
    MPI(MPI_Put(block.data(), int(block.size()), MPI_CHAR, 1, window.at(1, 64), int(block.size()),
                MPI_CHAR, window));
    MPI(MPI_Get(back.data(), int(back.size()), MPI_CHAR, 1, window.at(1, 64), int(back.size()),
                MPI_CHAR, window));
    MPI(MPI_Win_flush(1, window));
    CHECK(back == block);
    const double took = MPI_Wtime() - begun;
    MPI(MPI_Send(&took, 1, MPI_DOUBLE, 1, 6, MPI_COMM_WORLD));
  }
  MPI(MPI_Win_unlock_all(window));
  MPI(MPI_Bcast(&good, 1, MPI_INT, 1, MPI_COMM_WORLD));
  return good != 0;
}

// On a machine that others use as well the target's thread may get no core for as long as that.
void target_computes(Window& window) {
  constexpr int tries = 10;
  int failed = 0;
  while (!target_computes_once(window) && must()) CHECK(++failed < tries);
}

// Between an unlock and a lock of another rank the memory is as the first one left it.
void locks_hand_on(Window& window) {
  const int rounds_here = rounds();
  for (int round = 0; round < rounds_here; ++round) {
    int64_t both[2] = {-1, -2};
    MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window));
    MPI(MPI_Get(both, 2, MPI_INT64_T, 1, window.at(1, 32), 2, MPI_INT64_T, window));
    MPI(MPI_Win_flush_local(1, window));
    CHECK_EQ(both[0], both[1]);
    ++both[0];
    ++both[1];
    MPI(MPI_Put(both, 2, MPI_INT64_T, 1, window.at(1, 32), 2, MPI_INT64_T, window));
    MPI(MPI_Win_unlock(1, window));
  }
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  if (check::rank == 1) {
    MPI(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window));
    CHECK_EQ(window.as<int64_t>()[4], int64_t(rounds_here) * check::size);
    MPI(MPI_Win_unlock(1, window));
  }
  MPI(MPI_Barrier(MPI_COMM_WORLD));
}

template <Flavor flavor>
void all_of() {
  if (flavor == Flavor::shared && !rma::all_share()) return;
  Window window(flavor, 64 + 100'000);
  flushed_is_there(window);
  target_sees(window);
  accumulates_keep_order(window);
  target_computes(window);
  locks_hand_on(window);
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"create", all_of<Flavor::create>, 2},
                      {"allocate", all_of<Flavor::allocate>, 2},
                      {"dynamic", all_of<Flavor::dynamic>, 2},
                      {"shared", all_of<Flavor::shared>, 2}});
}
