#include "io/view.h"

#include <new>

#include "base/check.h"
#include "base/heap.h"

namespace headway::io {

using datatypes::Type;

namespace {

// The runs of a file type, once.
struct Tile {
  bool in_order = true;  // none begins before the one before it
  bool apart = true;     // nor before that one's end
  uint64_t runs = 0;
};

Tile tile_of(const Type& laid_out) {
  Tile tile;
  int64_t end = 0, last = 0;
  const auto look = [&](int64_t at, uint64_t bytes) {
    tile.in_order = tile.in_order && at >= last;
    tile.apart = tile.apart && at >= end;
    last = at;
    end = at + int64_t(bytes);
    ++tile.runs;
    return true;
  };
  Joining joining(look);
  datatypes::for_each_run(laid_out, nullptr, 1, 0, laid_out.size(), joining);
  (void)joining.end();
  return tile;
}

}  // namespace

const char* View::refuse(const Type& laid_out, uint64_t etype_bytes, bool writes) {
  if (etype_bytes == 0) return "the etype holds no data";
  if (laid_out.size() == 0) return nullptr;  // a rank that has no part of the file
  if (laid_out.true_lb() < 0) return "the file type has a negative displacement";
  if (laid_out.extent() <= 0) return "the file type has no extent, so that it cannot be repeated";
  if (laid_out.size() % etype_bytes != 0) return "the file type is not made of whole etypes";
  const Tile tile = tile_of(laid_out);
  if (!tile.in_order) return "the displacements of the file type go back";
  if (!tile.apart && writes) return "the file type has a byte twice, and the file may be written";
  return nullptr;
}

View* View::make(int64_t displacement, const Type& etype, const Type& file_type,
                 const Representation& representation, uint64_t etype_bytes, const Type& laid_out) {
  void* memory = base::heap_allocate(sizeof(View));
  if (!memory) return nullptr;
  auto* view = new (memory) View;
  view->displacement_ = displacement;
  view->etype_bytes_ = etype_bytes;
  view->etype_ = &etype;
  view->file_type_ = &file_type;
  view->laid_out_ = &laid_out;
  view->representation_ = &representation;
  if (laid_out.size() > 0) {
    const Tile tile = tile_of(laid_out);
    view->runs_ = tile.runs;
    // Repeated at less than its own length it comes back to what lies before its end.
    view->monotone_ = tile.apart && laid_out.true_extent() <= laid_out.extent();
  }
  etype.retain();
  file_type.retain();
  laid_out.retain();
  return view;
}

void View::release() {
  const uint32_t before = references_.fetch_sub(1, std::memory_order_acq_rel);
  HEADWAY_CHECK(before != 0);
  if (before != 1) return;
  etype_->release();
  file_type_->release();
  laid_out_->release();
  this->~View();
  base::heap_free(this, sizeof *this);
}

bool View::reaches(uint64_t from, uint64_t n) const {
  if (n == 0) return true;
  uint64_t end = 0;
  if (is_empty() || __builtin_add_overflow(from, n, &end) || end > uint64_t(INT64_MAX))
    return false;
  // In the repetition that the last byte lies in, and as far as one reaches.
  const auto repetition = int64_t((end - 1) / laid_out_->size());
  int64_t start = 0, reach = 0;
  return !__builtin_mul_overflow(repetition, laid_out_->extent(), &start) &&
         !__builtin_add_overflow(start, displacement_, &start) &&
         !__builtin_add_overflow(laid_out_->true_lb(), laid_out_->true_extent(), &reach) &&
         !__builtin_add_overflow(start, reach, &start);
}

int64_t View::runs_of(uint64_t n) const {
  if (n == 0) return 0;
  if (is_plain()) return 1;
  const uint64_t tiles = n / laid_out_->size();
  const uint64_t rest = n % laid_out_->size();
  // Of one that begins within a repetition nobody needs to know more than that.
  const auto part = double(runs_) * double(rest) / double(laid_out_->size());
  const uint64_t runs = tiles * runs_ + uint64_t(part);
  return runs > 0 ? int64_t(runs) : 1;
}

int64_t View::place_of(uint64_t from) const {
  int64_t place = displacement_;
  const auto first = [&](int64_t at, uint64_t) {
    place = at;
    return false;
  };
  (void)for_each_run(from, 1, first);
  return place;
}

void View::bounds(uint64_t from, uint64_t n, int64_t& low, int64_t& high) const {
  HEADWAY_CHECK(n != 0);
  low = place_of(from);
  high = place_of(from + n - 1) + 1;
  if (monotone_) return;
  const auto widen = [&](int64_t at, uint64_t bytes) {
    if (at < low) low = at;
    if (at + int64_t(bytes) > high) high = at + int64_t(bytes);
    return true;
  };
  (void)for_each_run(from, n, widen);
}

uint64_t View::bytes_below(int64_t size) const {
  int64_t first = 0, beyond = 0;
  if (is_empty() || __builtin_add_overflow(displacement_, laid_out_->true_lb(), &first) ||
      __builtin_sub_overflow(size, first, &beyond) || beyond <= 0) {
    return 0;
  }
  if (is_plain()) return uint64_t(beyond);
  // What lies wholly below, and the repetition in which the place is. One that is interwoven with
  // others counts as if it were not.
  const uint64_t whole = uint64_t(beyond) / uint64_t(laid_out_->extent());
  uint64_t below = whole * laid_out_->size();
  const auto add = [&](int64_t at, uint64_t bytes) {
    if (at >= size) return false;
    const auto left = uint64_t(size - at);
    below += bytes < left ? bytes : left;
    return bytes <= left;
  };
  (void)for_each_run(below, laid_out_->size(), add);
  return below;
}

}  // namespace headway::io
