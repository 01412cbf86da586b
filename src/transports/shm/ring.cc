#include "transports/shm/ring.h"

#include <algorithm>

#include "base/clock.h"

namespace headway::shm {
namespace {

constexpr uint32_t streamed_from = 2048;
constexpr uint32_t short_body = 8 << 10, short_lap = 64 << 10;
constexpr uint32_t sample_every = 32;
// In 1/16 ticks a line. A line costs 1.3 ns near and 3.6 ns far (measured), a tick is about 0.4 ns.
constexpr uint64_t far_line_cost = 16 * 6;
constexpr uint64_t sample_limit = 16 * 200;

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

// The string instruction is as fast as the others or faster, near and far.
void Producer::copy_body(char* to, const Feed& feed) {
  const bool strings = base::has_string_copy.load(std::memory_order_relaxed);
  if (strings && stores_ == Stores::automatic && feed.length >= base::strings_from) {
    base::copy_piece(to, feed.flat, feed.length);
  } else {
    copy_by_distance(to, feed);
  }
}

// All but a small body goes through the cache while the cores are near (twice as fast), and past it
// while they are far (twice as fast there). The machine changes between the two within seconds, so
// a cached copy is timed now and then.
void Producer::copy_by_distance(char* to, const Feed& feed) {
  const bool large = feed.length > streamed_from;
  const bool asked = stores_ == Stores::automatic;
  const bool sample = large && asked && copies_++ % sample_every == 0;
  if (large && !sample && (asked ? far_ : stores_ == Stores::streamed)) {
    stream_copy(to, feed.flat, feed.length);
    stream_fence();
    return;
  }
  const uint64_t start = sample ? base::ticks() : 0;
  memcpy(to, feed.flat, feed.length);
  if (!sample) return;
  const uint64_t cost = (base::ticks() - start) * 16 / (feed.length / 64);
  if (cost > sample_limit) return;  // interrupted
  line_cost_ = line_cost_ == 0 ? cost : (3 * line_cost_ + cost) / 4;
  far_ = line_cost_ > far_line_cost;
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
