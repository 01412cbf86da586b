// The table in windows: a slot is taken by one compare and swap, counted by one fetch and add. The
// owner takes no part.
#include <cstring>

#include "table/table_forms.h"

namespace table {
namespace {

class OneSided : public Table {
 public:
  OneSided(Form form, const Layout& layout) : layout_(layout) {
    const auto bytes = static_cast<MPI_Aint>(layout.slots * sizeof(Slot));
    constexpr int unit = sizeof(uint64_t);
    if (form == Form::allocated) {
      MPI_Win_allocate(bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &own_, &window_);
      std::memset(static_cast<void*>(own_), 0, static_cast<size_t>(bytes));
    } else {
      memory_.resize(layout.slots);
      own_ = memory_.data();
      MPI_Win_create(own_, bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &window_);
    }
    MPI_Win_lock_all(0, window_);
    MPI_Win_sync(window_);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ~OneSided() override {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }

  uint64_t count(uint64_t key) override {
    const int owner = layout_.owner(key);
    uint64_t slot = layout_.first_slot(key);
    for (uint64_t tried = 0; tried < layout_.slots; ++tried) {
      const auto at = static_cast<MPI_Aint>(2 * slot);
      const uint64_t nobody = 0;
      uint64_t there = 0;
      MPI_Compare_and_swap(&key, &nobody, &there, MPI_UINT64_T, owner, at, window_);
      MPI_Win_flush(owner, window_);
      if (there == nobody || there == key) {
        const uint64_t one = 1;
        uint64_t before = 0;
        MPI_Fetch_and_op(&one, &before, MPI_UINT64_T, owner, at + 1, MPI_SUM, window_);
        MPI_Win_flush(owner, window_);
        return before;
      }
      slot = (slot + 1) % layout_.slots;
    }
    return full;
  }
  void serve() override {}
  void finish() override {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(window_);
  }
  const Slot* slots() const override { return own_; }

 private:
  const Layout layout_;
  std::vector<Slot> memory_;
  Slot* own_ = nullptr;
  MPI_Win window_ = MPI_WIN_NULL;
};

}  // namespace

std::unique_ptr<Table> make_one_sided(Form form, const Layout& layout) {
  return std::make_unique<OneSided>(form, layout);
}

}  // namespace table
