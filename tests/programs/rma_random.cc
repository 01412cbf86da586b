// Random programs of windows against a model: every rank knows the whole plan by the seed, keeps a
// model of all windows, and compares its own memory and what it got with it after each epoch. All
// flavours, ways to synchronise, operations, and layouts on both sides. Within an epoch an origin
// has a part of each target to itself; sums into the counters come from all.
#include <deque>

#include "rma.h"

namespace {

using rma::Flavor;
using rma::Layout;
using rma::Window;

enum class Sync { fence, post_start, lock_exclusive, lock_shared, lock_all };
enum class What { put, get, rput, rget, replace, sum, fetch_sum, fetch_nothing, swap };

constexpr int counters = 8;
constexpr int untouched = -77;

struct Model {
  std::vector<int64_t> sums = std::vector<int64_t>(counters);
  std::vector<int32_t> numbers;
};

// Of one origin in one epoch, and what must be there when the epoch is over.
struct Pending {
  std::vector<int32_t> buffer, result;
  std::vector<int32_t> expected_result;
};

class Program {
 public:
  Program(Flavor flavor, uint64_t seed)
      : random_(check::key_of(seed, uint64_t(flavor))),
        room_(random_.pick<int>({8, 40, 700, 3000})),
        window_(flavor, bytes(), random_of_rank_.chance(50) ? 4 : 1),
        models_(size_t(check::size)) {
    for (Model& model : models_) model.numbers.resize(size_t(room_ * check::size));
  }

  void run(int epochs) {
    for (int epoch = 0; epoch < epochs; ++epoch) {
      const auto sync = Sync(random_.between(0, 4));
      run_epoch(sync);
      compare(epoch, sync);
    }
    MPI(MPI_Barrier(MPI_COMM_WORLD));
  }

 private:
  size_t bytes() const { return counters * 8 + size_t(room_) * 4 * size_t(check::size); }

  void run_epoch(Sync sync) {
    pending_.clear();
    requests_.clear();
    opens(sync);
    for (int origin = 0; origin < check::size; ++origin) {
      for (int target = 0; target < check::size; ++target) {
        const bool mine = origin == check::rank;
        const bool locks = sync == Sync::lock_exclusive || sync == Sync::lock_shared;
        const bool passive = locks || sync == Sync::lock_all;
        const int operations = random_.between(0, 3);
        if (mine && locks) {
          MPI(MPI_Win_lock(sync == Sync::lock_shared ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target,
                           0, window_));
        }
        // Of the origin's part of the target each operation has a piece.
        for (int i = 0; i < operations; ++i) {
          operate(origin, target, i, passive, mine);
          if (mine && passive && random_of_rank_.chance(20)) {
            MPI(random_of_rank_.chance(50) ? MPI_Win_flush(target, window_)
                                           : MPI_Win_flush_local(target, window_));
          }
        }
        add_up(target, mine);
        if (mine && locks) MPI(MPI_Win_unlock(target, window_));
      }
    }
    if (!requests_.empty()) {
      MPI(MPI_Waitall(int(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE));
    }
    closes(sync);
  }

  void opens(Sync sync) {
    MPI_Group all;
    switch (sync) {
      case Sync::fence: MPI(MPI_Win_fence(MPI_MODE_NOPRECEDE, window_)); break;
      case Sync::post_start:
        MPI(MPI_Win_get_group(window_, &all));
        MPI(MPI_Win_post(all, 0, window_));
        MPI(MPI_Win_start(all, 0, window_));
        MPI(MPI_Group_free(&all));
        break;
      case Sync::lock_all: MPI(MPI_Win_lock_all(0, window_)); break;
      default: break;
    }
  }

  void closes(Sync sync) {
    int over = 0;
    switch (sync) {
      case Sync::fence: MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, window_)); return;
      case Sync::post_start:
        MPI(MPI_Win_complete(window_));
        if (random_of_rank_.chance(50)) {
          MPI(MPI_Win_wait(window_));
        } else {
          while (!over) MPI(MPI_Win_test(window_, &over));
        }
        return;
      case Sync::lock_all:
        if (random_of_rank_.chance(50)) MPI(MPI_Win_flush_all(window_));
        if (random_of_rank_.chance(50)) MPI(MPI_Win_flush_local_all(window_));
        MPI(MPI_Win_unlock_all(window_));
        break;
      default: break;
    }
    MPI(MPI_Barrier(MPI_COMM_WORLD));
  }

  // All ranks draw the same; the origin does it, too.
  void operate(int origin, int target, int i, bool passive, bool mine) {
    auto what = What(random_.between(0, int(What::swap)));
    if (!passive && what == What::rput) what = What::put;
    if (!passive && what == What::rget) what = What::get;
    const int piece = room_ / 4;  // three operations, and a gap behind them
    const int n = what == What::swap ? 1 : random_.between(0, piece / 2);
    const int start = origin * room_ + i * piece;
    const Layout there(random_, n, piece), here(random_, n, piece);
    const uint64_t key = random_.next();
    const bool is_equal = random_.chance(50);  // swap: it is as expected
    int32_t* model = models_[size_t(target)].numbers.data() + start;
    std::vector<int32_t> before(static_cast<size_t>(n)), given(static_cast<size_t>(n));
    for (int k = 0; k < n; ++k) {
      before[size_t(k)] = model[there.places[size_t(k)]];
      given[size_t(k)] = int32_t(check::mix(key + uint64_t(k)) % 1'000'000);
    }
    for (int k = 0; k < n; ++k) {
      int32_t& at = model[there.places[size_t(k)]];
      switch (what) {
        case What::put:
        case What::rput:
        case What::replace: at = given[size_t(k)]; break;
        case What::sum:
        case What::fetch_sum: at += given[size_t(k)]; break;
        case What::swap:
          if (is_equal) at = given[0];
          break;
        default: break;
      }
    }
    if (mine) carry(what, target, start, there, here, before, given, is_equal, piece);
  }

  MPI_Aint place_of(int target, int number) const {
    return window_.at(target, counters * 8 + size_t(number) * 4);
  }

  void carry(What what, int target, int start, const Layout& there, const Layout& here,
             const std::vector<int32_t>& before, const std::vector<int32_t>& given, bool is_equal,
             int piece) {
    pending_.emplace_back();
    Pending& pending = pending_.back();
    pending.buffer.assign(size_t(piece) + 1, untouched);
    pending.result = pending.expected_result = pending.buffer;
    const auto n = before.size();
    for (size_t k = 0; k < n; ++k) {
      pending.buffer[size_t(here.places[k])] = given[k];
      pending.expected_result[size_t(here.places[k])] = before[k];
    }
    const MPI_Aint at = place_of(target, start);
    int32_t* const out = pending.buffer.data();
    int32_t* const in = pending.result.data();
    const int32_t expected = n && !is_equal ? before[0] + 1 : n ? before[0] : 0;
    MPI_Request request = MPI_REQUEST_NULL;
    bool brings = false;
    switch (what) {
      case What::put:
        MPI(MPI_Put(out, here.count, here.type, target, at, there.count, there.type, window_));
        break;
      case What::rput:
        MPI(MPI_Rput(out, here.count, here.type, target, at, there.count, there.type, window_,
                     &request));
        break;
      case What::get:
        MPI(MPI_Get(in, here.count, here.type, target, at, there.count, there.type, window_));
        brings = true;
        break;
      case What::rget:
        MPI(MPI_Rget(in, here.count, here.type, target, at, there.count, there.type, window_,
                     &request));
        brings = true;
        break;
      case What::replace:
      case What::sum:
        MPI(MPI_Accumulate(out, here.count, here.type, target, at, there.count, there.type,
                           what == What::sum ? MPI_SUM : MPI_REPLACE, window_));
        break;
      case What::fetch_sum:
        MPI(MPI_Get_accumulate(out, here.count, here.type, in, here.count, here.type, target, at,
                               there.count, there.type, MPI_SUM, window_));
        brings = true;
        break;
      case What::fetch_nothing:
        MPI(MPI_Get_accumulate(nullptr, 0, MPI_INT, in, here.count, here.type, target, at,
                               there.count, there.type, MPI_NO_OP, window_));
        brings = true;
        break;
      case What::swap:
        swap(target, place_of(target, start + there.places[0]), given[0], expected, before[0],
             pending);
        return;
    }
    if (request != MPI_REQUEST_NULL) requests_.push_back(request);
    if (!brings) pending.expected_result.assign(size_t(piece) + 1, untouched);
  }

  void swap(int target, MPI_Aint at, int32_t fresh, int32_t expected, int32_t before,
            Pending& pending) {
    pending.buffer = {fresh, expected};
    pending.result = pending.expected_result = {untouched};
    pending.expected_result[0] = before;
    MPI(MPI_Compare_and_swap(&pending.buffer[0], &pending.buffer[1], pending.result.data(), MPI_INT,
                             target, at, window_));
  }

  // Sums that come from all at the same time.
  void add_up(int target, bool mine) {
    const int counter = random_.between(0, counters - 1);
    const auto by = int64_t(random_.below(1000));
    const bool fetches = random_.chance(50);
    models_[size_t(target)].sums[size_t(counter)] += by;
    if (!mine) return;
    operands_.push_back(by);
    const MPI_Aint at = window_.at(target, size_t(counter) * 8);
    if (fetches) {
      MPI(MPI_Fetch_and_op(&operands_.back(), &fetched_[fetches_++ % fetched_.size()], MPI_INT64_T,
                           target, at, MPI_SUM, window_));
    } else {
      MPI(MPI_Accumulate(&operands_.back(), 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, MPI_SUM,
                         window_));
    }
  }

  void compare(int epoch, Sync sync) {
    MPI(MPI_Win_lock(MPI_LOCK_SHARED, check::rank, 0, window_));
    const Model& model = models_[size_t(check::rank)];
    const auto* sums = window_.as<int64_t>();
    const auto* numbers = reinterpret_cast<const int32_t*>(window_.memory() + counters * 8);
    for (int i = 0; i < counters; ++i) {
      if (sums[i] == model.sums[size_t(i)]) continue;
      check::fail(__FILE__, __LINE__, "%s, epoch %d (sync %d): counter %d is %lld, expected %lld",
                  rma::name_of(window_.flavor()), epoch, int(sync), i,
                  static_cast<long long>(sums[i]), static_cast<long long>(model.sums[size_t(i)]));
    }
    for (size_t i = 0; i < model.numbers.size(); ++i) {
      if (numbers[i] == model.numbers[i]) continue;
      check::fail(__FILE__, __LINE__, "%s, epoch %d (sync %d): number %zu is %d, expected %d",
                  rma::name_of(window_.flavor()), epoch, int(sync), i, numbers[i],
                  model.numbers[i]);
    }
    for (const Pending& pending : pending_) CHECK(pending.result == pending.expected_result);
    MPI(MPI_Win_unlock(check::rank, window_));
    MPI(MPI_Barrier(MPI_COMM_WORLD));  // nobody goes on while another one compares
  }

  check::Random random_;  // the same on all ranks
  check::Random random_of_rank_{check::key_of(check::seed, uint64_t(check::rank), 7)};
  int room_;
  Window window_;
  std::vector<Model> models_;
  std::vector<MPI_Request> requests_;
  std::deque<int64_t> operands_;  // they stay where they are
  std::vector<int64_t> fetched_ = std::vector<int64_t>(1024);
  size_t fetches_ = 0;
  std::vector<Pending> pending_;  // of this epoch
};

template <Flavor flavor>
void programs() {
  if (flavor == Flavor::shared && !rma::all_share()) return;
  for (uint64_t turn = 0; turn < 3 * check::scale; ++turn) {
    Program(flavor, check::key_of(check::seed, turn)).run(12);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"create", programs<Flavor::create>},
                      {"allocate", programs<Flavor::allocate>},
                      {"dynamic", programs<Flavor::dynamic>},
                      {"shared", programs<Flavor::shared>}});
}
