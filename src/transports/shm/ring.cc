#include "transports/shm/ring.h"

#include <algorithm>

#include "base/clock.h"

namespace headway::shm {
namespace {

constexpr uint32_t streamed_from = 2048;
constexpr uint32_t short_body = 8 << 10, short_lap = 64 << 10;
// In 1/16 ticks a line; a tick is about 0.4 ns. Stores of 16 bytes cost 1.3 ns near and 3.6 ns far.
constexpr uint64_t slow_line = 16 * 6;
// The string instruction mostly takes lines without reading them first: 1 ns near and 3 ns far on
// Zen 3, which is quicker than past the cache (3 ns). On Zen 4, and on Zen 3 at times, it takes 10
// to 30 ns.
constexpr uint64_t slow_line_of_strings = 16 * 15;
constexpr uint64_t longest_line = 16 * 200;  // else it was interrupted

}  // namespace

bool Producer::refresh_cells(uint32_t reserve) {
  cells_limit_ = credits_->cells.load(std::memory_order_acquire) + shape_.cells;  // Consumer::pop
  return int32_t(cells_limit_ - (next_ + reserve)) > 0;
}

// Position for a body of that length, contiguous in the ring; skips the end of a lap if it must.
// Short bodies stay at its beginning: the fewer lines they go round in, the quicker.
uint32_t Producer::place(uint32_t length) {
  const uint32_t rounded = round_line(length);
  const uint32_t at = position_ & (shape_.payload - 1);
  const uint32_t lap = rounded <= short_body ? std::min(shape_.payload, short_lap) : shape_.payload;
  const uint32_t start = at + rounded <= lap ? position_ : position_ + (shape_.payload - at);
  if (int32_t(bytes_limit_ - (start + rounded)) < 0) {
    bytes_limit_ = credits_->bytes.load(std::memory_order_acquire) + shape_.payload;
    if (int32_t(bytes_limit_ - (start + rounded)) < 0) return no_place;
  }
  return start;
}

void CachedCost::note(uint64_t ticks, uint32_t bytes, bool strings) {
  const uint64_t line = ticks * 16 / std::max(bytes / 64, 1u);
  if (line > longest_line) return;
  if (samples_ < at_first) {
    line_ = samples_ == 0 ? uint32_t(line) : std::min(line_, uint32_t(line));
    if (++samples_ < at_first) return;
  } else {
    line_ = uint32_t((3 * line_ + line) / 4);
  }
  is_slow_ = line_ > (strings ? slow_line_of_strings : slow_line);
}

// Past the cache where a copy through it is slow: 12 GB/s beside 2 to 8 between two cores of a Zen
// 4; else through it, which is up to three times as fast.
void Producer::copy_body(char* to, const Feed& feed) {
  const bool asked = stores_ == Stores::automatic;
  const bool strings = asked && base::has_string_copy.load(std::memory_order_relaxed) &&
                       feed.length >= base::strings_from;
  const bool large = feed.length > streamed_from;
  const bool timed = large && asked && cost_.is_due();
  if (large && !timed && (asked ? cost_.is_slow() : stores_ == Stores::streamed)) {
    stream_copy(to, feed.flat, feed.length);
    stream_fence();
    return;
  }
  const uint64_t start = timed ? base::ticks() : 0;
  if (strings) {
    base::copy_piece(to, feed.flat, feed.length);
  } else {
    memcpy(to, feed.flat, feed.length);
  }
  if (timed) cost_.note(base::ticks() - start, feed.length, strings);
}

Push Producer::push_payload(const FrameHeader& header, const void* head, uint32_t n,
                            const Feed& feed, uint32_t reserve) {
  if (int32_t(cells_limit_ - (next_ + reserve)) <= 0 && !refresh_cells(reserve)) {
    return Push::full;
  }
  const uint32_t start = place(header.length);
  if (start == no_place) return Push::full;
  char* to = payload_ + (start & (shape_.payload - 1));
  if (n) memcpy(to, head, n);
  if (n == 0 && feed.flat) {
    copy_body(to, feed);
  } else {
    feed.copy(0, to + n, feed.length);
  }
  Cell& cell = cells_[next_ & (shape_.cells - 1)];
  cell.header = header;
  cell.position = start;
  position_ = start + round_line(header.length);
  HEADWAY_CHECK(int32_t(bytes_limit_ - position_) >= 0);
  publish(cell);
  return Push::done;
}

}  // namespace headway::shm
