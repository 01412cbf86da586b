#include "transports/shm/ring.h"

namespace headway::shm {

bool Producer::refresh_cells(uint32_t reserve) {
  cells_limit_ = credits_->cells.load(std::memory_order_acquire) + shape_.cells;  // Consumer::pop
  return int32_t(cells_limit_ - (next_ + reserve)) > 0;
}

// Position for a body of that length, contiguous in the ring; skips the end of a lap if it must.
uint32_t Producer::place(uint32_t length) {
  const uint32_t rounded = round_line(length);
  const uint32_t at = position_ & (shape_.payload - 1);
  const uint32_t start =
      at + rounded <= shape_.payload ? position_ : position_ + (shape_.payload - at);
  if (int32_t(bytes_limit_ - (start + rounded)) < 0) {
    bytes_limit_ = credits_->bytes.load(std::memory_order_acquire) + shape_.payload;
    if (int32_t(bytes_limit_ - (start + rounded)) < 0) return no_place;
  }
  return start;
}

Push Producer::push_payload(const FrameHeader& header, const void* head, uint32_t n,
                            const Feed& feed, uint32_t reserve, bool streamed) {
  if (int32_t(cells_limit_ - (next_ + reserve)) <= 0 && !refresh_cells(reserve)) {
    return Push::full;
  }
  const uint32_t start = place(header.length);
  if (start == no_place) return Push::full;
  char* to = payload_ + (start & (shape_.payload - 1));
  if (n) memcpy(to, head, n);
  if (streamed && feed.flat && n == 0) {
    stream_copy(to, feed.flat, feed.length);
    stream_fence();
  } else {
    feed.copy(0, to + n, feed.length);
  }
  Cell& cell = cells_[next_ & (shape_.cells - 1)];
  cell.header = header;
  cell.position = start;
  position_ = start + round_line(header.length);
  publish(cell);
  return Push::done;
}

}  // namespace headway::shm
