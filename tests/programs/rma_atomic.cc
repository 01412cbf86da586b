// What several ranks do to one place at the same time: numbers that are fetched and added to are
// given once each, a value that is compared and swapped is a lock, sums of all operations add up,
// and an exclusive lock keeps all others out. Every rank works on every target, in all flavours.
#include <set>

#include "rma.h"

namespace {

using rma::Flavor;
using rma::Window;

int turns() { return int(200 * check::scale); }

// Linearisable: of each target's counter every number comes once, and to each rank in its order.
void counted_once(Window& window, size_t word, bool all) {
  const int64_t one = 1;
  std::vector<int64_t> got;
  if (all) MPI(MPI_Win_lock_all(0, window));
  std::vector<int64_t> last(size_t(check::size), -1);
  for (int turn = 0; turn < turns(); ++turn) {
    const int target = (turn + check::rank) % check::size;
    int64_t number = -1;
    if (!all) MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window));
    MPI(MPI_Fetch_and_op(&one, &number, MPI_INT64_T, target, window.at(target, word), MPI_SUM,
                         window));
    MPI(all ? MPI_Win_flush(target, window) : MPI_Win_unlock(target, window));
    CHECK(number > last[size_t(target)]);
    last[size_t(target)] = number;
    got.push_back(int64_t(target) << 32 | number);
  }
  if (all) MPI(MPI_Win_unlock_all(window));
  std::vector<int64_t> everything(got.size() * size_t(check::size));
  MPI(MPI_Allgather(got.data(), int(got.size()), MPI_INT64_T, everything.data(), int(got.size()),
                    MPI_INT64_T, MPI_COMM_WORLD));
  const std::set<int64_t> different(everything.begin(), everything.end());
  CHECK_EQ(different.size(), everything.size());
  // Without gaps: as many were given as the counter says.
  std::vector<int64_t> most(size_t(check::size), -1);
  for (const int64_t one_of : everything) {
    int64_t& number = most[size_t(one_of >> 32)];
    number = std::max(number, one_of & 0xffffffff);
  }
  int64_t sum = 0;
  for (const int64_t number : most) sum += number + 1;
  CHECK_EQ(sum, int64_t(everything.size()));
}

// A lock of the program's own: whoever swaps 0 for its number has it, and changes two words that
// have to stay equal by plain puts and gets.
void swapped_by_one(Window& window) {
  const int64_t free_word = 0, mine = check::rank + 1;
  const int target = check::size - 1;
  MPI(MPI_Win_lock_all(0, window));
  for (int turn = 0; turn < turns() / 4; ++turn) {
    int64_t was = -1;
    do {
      MPI(MPI_Compare_and_swap(&mine, &free_word, &was, MPI_INT64_T, target, window.at(target, 8),
                               window));
      MPI(MPI_Win_flush(target, window));
    } while (was != 0);
    int64_t both[2] = {-1, -2};
    MPI(MPI_Get(both, 2, MPI_INT64_T, target, window.at(target, 16), 2, MPI_INT64_T, window));
    MPI(MPI_Win_flush(target, window));
    CHECK_EQ(both[0], both[1]);
    ++both[0];
    ++both[1];
    MPI(MPI_Put(&both[0], 1, MPI_INT64_T, target, window.at(target, 16), 1, MPI_INT64_T, window));
    MPI(MPI_Put(&both[1], 1, MPI_INT64_T, target, window.at(target, 24), 1, MPI_INT64_T, window));
    MPI(MPI_Win_flush(target, window));
    int64_t had = -1;
    MPI(MPI_Compare_and_swap(&free_word, &mine, &had, MPI_INT64_T, target, window.at(target, 8),
                             window));
    MPI(MPI_Win_flush(target, window));
    CHECK_EQ(had, mine);
  }
  MPI(MPI_Win_unlock_all(window));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  int64_t both[2] = {-1, -2};
  MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window));
  MPI(MPI_Get(both, 2, MPI_INT64_T, target, window.at(target, 16), 2, MPI_INT64_T, window));
  MPI(MPI_Win_unlock(target, window));
  CHECK_EQ(both[0], int64_t(turns() / 4) * check::size);
  CHECK_EQ(both[1], both[0]);
}

// Read, add, write: right only if nobody else is in between.
void locked_out(Window& window) {
  for (int turn = 0; turn < turns() / 4; ++turn) {
    const int target = turn % check::size;
    int64_t number = -1;
    MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window));
    MPI(MPI_Get(&number, 1, MPI_INT64_T, target, window.at(target, 32), 1, MPI_INT64_T, window));
    MPI(MPI_Win_flush(target, window));
    ++number;
    MPI(MPI_Put(&number, 1, MPI_INT64_T, target, window.at(target, 32), 1, MPI_INT64_T, window));
    MPI(MPI_Win_unlock(target, window));
  }
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  int64_t sum = 0, number = -1;
  for (int target = 0; target < check::size; ++target) {
    MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window));
    MPI(MPI_Get(&number, 1, MPI_INT64_T, target, window.at(target, 32), 1, MPI_INT64_T, window));
    MPI(MPI_Win_unlock(target, window));
    sum += number;
  }
  CHECK_EQ(sum, int64_t(turns() / 4) * check::size);
}

// Long sums from all, over more than one frame and more than one block of memory.
void sums_add_up(Window& window) {
  constexpr int numbers = 3000;
  std::vector<int64_t> ones(numbers, 1), before(numbers, -1);
  MPI(MPI_Win_lock_all(0, window));
  const int rounds = std::max(1, turns() / 40);
  for (int turn = 0; turn < rounds; ++turn) {
    for (int target = 0; target < check::size; ++target) {
      const MPI_Aint at = window.at(target, 64);
      if (turn % 2) {
        MPI(MPI_Accumulate(ones.data(), numbers, MPI_INT64_T, target, at, numbers, MPI_INT64_T,
                           MPI_SUM, window));
      } else {
        MPI(MPI_Get_accumulate(ones.data(), numbers, MPI_INT64_T, before.data(), numbers,
                               MPI_INT64_T, target, at, numbers, MPI_INT64_T, MPI_SUM, window));
        MPI(MPI_Win_flush(target, window));
        for (const int64_t number : before) {
          CHECK(number >= 0 && number < int64_t(rounds) * check::size);
        }
      }
    }
  }
  MPI(MPI_Win_unlock_all(window));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  MPI(MPI_Win_lock(MPI_LOCK_SHARED, check::rank, 0, window));
  const auto* own = reinterpret_cast<const int64_t*>(window.memory() + 64);
  for (int i = 0; i < numbers; ++i) CHECK_EQ(own[i], int64_t(rounds) * check::size);
  MPI(MPI_Win_unlock(check::rank, window));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
}

// Pairs have gaps, and the largest of all stays with its place.
void largest_pair(Window& window) {
  struct Pair {
    double value;
    int place;
  };
  constexpr size_t at_byte = 64 + 3000 * 8;
  const Pair mine{double((check::rank * 7) % check::size), check::rank};
  MPI(MPI_Win_fence(0, window));
  for (int target = 0; target < check::size; ++target) {
    MPI(MPI_Accumulate(&mine, 1, MPI_DOUBLE_INT, target, window.at(target, at_byte), 1,
                       MPI_DOUBLE_INT, MPI_MAXLOC, window));
  }
  MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, window));
  double most = 0.0;
  int place = 0;  // zero is there at first, from rank 0
  for (int rank = 0; rank < check::size; ++rank) {
    const auto value = double((rank * 7) % check::size);
    if (value > most) {
      most = value;
      place = rank;
    }
  }
  Pair there;
  memcpy(&there.value, window.memory() + at_byte, sizeof there.value);
  memcpy(&there.place, window.memory() + at_byte + 8, sizeof there.place);
  CHECK_EQ(there.value, most);
  CHECK_EQ(there.place, place);
  MPI(MPI_Barrier(MPI_COMM_WORLD));
}

template <Flavor flavor>
void all_of() {
  if (flavor == Flavor::shared && !rma::all_share()) return;
  Window window(flavor, 64 + 3000 * 8 + 16);
  counted_once(window, 0, true);
  counted_once(window, 40, false);
  swapped_by_one(window);
  locked_out(window);
  sums_add_up(window);
  largest_pair(window);
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"create", all_of<Flavor::create>},
                      {"allocate", all_of<Flavor::allocate>},
                      {"dynamic", all_of<Flavor::dynamic>},
                      {"shared", all_of<Flavor::shared>}});
}
