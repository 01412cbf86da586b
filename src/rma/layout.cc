#include "rma/layout.h"

#include "base/check.h"
#include "datatypes/pack.h"

namespace headway::rma {
namespace {

constexpr uint64_t grain = 64;  // runs of bytes are cut at such places

const void* as_base(int64_t at) { return reinterpret_cast<const void*>(uintptr_t(at)); }

}  // namespace

// Runs are added until one does not fit.
class Layout::Filling {
 public:
  Filling(const Room& room, Run (&runs)[most_runs], uint64_t unit)
      : room_(room), runs_(runs), unit_(unit) {}

  // `reach`: from the run's first byte to behind its last one, where the next would join it. False:
  // it did not fit, or not all of it.
  bool add(int64_t at, uint64_t bytes, uint64_t reach) {
    const bool joins = n_ != 0 && end_ == at;
    const uint64_t used = (n_ + !joins) * sizeof(Run) + (room_.has_data ? bytes_ : 0);
    if (used > room_.body || (!joins && n_ == most_runs)) return false;
    uint64_t left = room_.bytes - bytes_;
    if (room_.has_data && room_.body - used < left) left = room_.body - used;
    const uint64_t taken = bytes <= left ? bytes : left / unit_ * unit_;
    if (taken == 0) return false;
    if (joins) {
      runs_[n_ - 1].bytes += taken;
    } else {
      runs_[n_++] = {at, taken};
    }
    bytes_ += taken;
    end_ = at + int64_t(taken == bytes ? reach : taken);
    return taken == bytes;
  }
  uint64_t bytes() const { return bytes_; }
  uint32_t n() const { return n_; }

 private:
  const Room& room_;
  Run (&runs_)[most_runs];
  const uint64_t unit_;
  uint32_t n_ = 0;
  uint64_t bytes_ = 0;
  int64_t end_ = 0;
};

uint64_t Layout::cut(uint64_t from, const Room& room, Run (&runs)[most_runs], uint32_t& n) const {
  HEADWAY_CHECK(from <= bytes());
  Filling filling(room, runs, work_ ? work_->size() : grain);
  if (work_ && work_->has_gaps()) {
    // Element by element: where its first byte lies, all of it does.
    const uint64_t size = work_->size();
    bool goes_on = true;
    for (uint64_t at = from; goes_on && at < bytes(); at += size) {
      datatypes::for_each_run(type_, as_base(at_), count_, at, 1, [&](char* first, size_t) {
        goes_on = filling.add(int64_t(reinterpret_cast<uintptr_t>(first)), size, work_->extent());
        return false;
      });
    }
  } else {
    datatypes::for_each_run(
        type_, as_base(at_), count_, from, bytes() - from, [&](char* first, size_t length) {
          return filling.add(int64_t(reinterpret_cast<uintptr_t>(first)), length, length);
        });
  }
  n = filling.n();
  return filling.bytes();
}

}  // namespace headway::rma
