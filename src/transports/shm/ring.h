// Ring: frames from one process to another through the shared segment. One producer, one consumer,
// each under its own engine's lock. Cells of 192 bytes carry the header and up to 152 bytes of
// body; longer bodies lie in a payload ring beside them. Owner: the segment owns the memory,
// Producer and Consumer hold private positions. Invariants: a cell is valid when its `number` is
// the lap-unique count of the frame; cells are never overwritten by payload (old payload could pass
// for a number); the producer stays within the credits that the consumer returned, in cells and in
// bytes.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "base/feed.h"
#include "base/frame.h"
#include "base/line.h"
#include "base/outcome.h"
#include "transports/shm/advert.h"
#include "transports/shm/copy.h"
#include "transports/shm/movers.h"
#include "transports/shm/split.h"

namespace headway::shm {

inline constexpr uint32_t inline_max = 152;
// Cells that ordinary envelopes leave free for control frames (clear-to-send, acknowledgements).
inline constexpr uint32_t reserved_cells = 8;

struct Cell {
  std::atomic<uint32_t> number;  // count of the frame, from 1; the last thing that is written
  uint32_t position;             // of the body in the payload ring, counted over all laps
  FrameHeader header;
  char body[inline_max];
};
static_assert(sizeof(Cell) == 192);

struct Credits {
  alignas(64) std::atomic<uint32_t> cells;  // frames consumed
  std::atomic<uint32_t> bytes;              // payload position up to which all is consumed
  alignas(64) std::atomic<uint32_t> opened;
  // Beside the frames: messages that are copied straight between the two processes.
  SplitBoard pushed;   // started by the producer
  SplitBoard pulled;   // started by the consumer
  AdvertBoard advert;  // a receive of the consumer
  MoverBoard movers;   // messages of the producer
};

struct Shape {
  uint32_t cells;    // power of two
  uint32_t payload;  // bytes, power of two
  size_t bytes() const {
    return (sizeof(Credits) + cells * sizeof(Cell) + payload + 4095) & ~size_t(4095);
  }
  // Longest body of one frame: a quarter of the ring, so that four are on their way at once.
  uint32_t frame_max() const { return payload / 4; }
};

// Lines of a cell that a frame with so long a body inside takes.
constexpr uint32_t lines_of(uint32_t length) {
  return (uint32_t(offsetof(Cell, body)) + length + 63) / 64;
}

constexpr uint32_t round_line(uint32_t n) { return (n + 63) & ~63u; }

constexpr bool is_power_of_two(uint32_t n) { return n != 0 && (n & (n - 1)) == 0; }

// What both ends know: where its parts lie.
class RingEnd {
 public:
  void attach(char* memory, Shape shape) {
    HEADWAY_CHECK(is_power_of_two(shape.cells) && is_power_of_two(shape.payload));
    credits_ = reinterpret_cast<Credits*>(memory);
    cells_ = reinterpret_cast<Cell*>(memory + sizeof(Credits));
    payload_ = memory + sizeof(Credits) + shape.cells * sizeof(Cell);
    shape_ = shape;
  }
  bool attached() const { return credits_ != nullptr; }
  uint32_t frames() const { return next_; }
  Split pushed() const { return Split(&credits_->pushed); }
  Split pulled() const { return Split(&credits_->pulled); }
  Advert advert() const { return Advert(&credits_->advert); }
  Movers movers() const { return Movers(&credits_->movers); }

 protected:
  Credits* credits_ = nullptr;
  Cell* cells_ = nullptr;
  char* payload_ = nullptr;
  Shape shape_{};
  uint32_t next_ = 0;  // frames sent, or consumed
};

// How the bodies of frames are written: through the cache, or past it. automatic: by what a copy
// through the cache costs between these two cores (CachedCost).
enum class Stores : uint8_t { automatic, cached, streamed };

// What it costs to write lines that the consumer has read, through the cache: that is tried now and
// then, since the machine moves its processors within seconds. Thread: the producer's. Owner:
// Producer.
class CachedCost {
 public:
  // Whether the next copy is to be timed. Where that is slow, it is asked seldom.
  bool is_due() { return samples_ < at_first || copies_++ % (is_slow_ ? seldom : often) == 0; }
  // A copy of so many bytes took so long. `strings`: by the processor's string instruction.
  void note(uint64_t ticks, uint32_t bytes, bool strings);
  // Stores past the cache are quicker.
  bool is_slow() const { return is_slow_; }

 private:
  static constexpr uint32_t often = 32, seldom = 128;
  // The quickest of so many counts as the first: in a new ring some of their pages are not there.
  static constexpr uint32_t at_first = 4;

  uint32_t copies_ = 0, samples_ = 0;
  uint32_t line_ = 0;  // 1/16 of a tick, smoothed
  bool is_slow_ = false;
};

class Producer : public RingEnd {
 public:
  void attach(char* memory, Shape shape) {
    RingEnd::attach(memory, shape);
    cells_limit_ = shape.cells;
    bytes_limit_ = shape.payload;
  }
  const Shape& shape() const { return shape_; }
  // For tests: not what suits this machine.
  void force(Stores stores) { stores_ = stores; }
  // Long bodies go past the cache: what one core writes the other gets slowly.
  bool is_slow() const { return cost_.is_slow(); }

  // Sends a frame whose body (header.length bytes) fits a cell. `reserve` cells stay free.
  [[gnu::always_inline]] Push push_inline(const FrameHeader& header, const void* body,
                                          uint32_t reserve) {
    if (int32_t(cells_limit_ - next_ - reserve) <= 0) [[unlikely]] {
      if (!refresh_cells(reserve)) return Push::full;
    }
    HEADWAY_CHECK(header.length <= inline_max);
    Cell& cell = cells_[next_ & (shape_.cells - 1)];
    cell.header = header;
    copy_small(cell.body, body, header.length);
    publish(cell);
    return Push::done;
  }
  // The same of a message. `heard`: how many frames have come from its receiver so far.
  [[gnu::always_inline]] Push push_message(const FrameHeader& header, const void* body,
                                           uint32_t heard) {
    const Push pushed = push_inline(header, body, reserved_cells);
    if (pushed == Push::full) [[unlikely]]
      return pushed;
    if (heard == heard_) {
      claim_later(header.length);
    } else {
      heard_ = heard;
    }
    return Push::done;
  }

  // Sends a frame with `n` bytes at `head` and then the Feed as body.
  Push push_payload(const FrameHeader& header, const void* head, uint32_t n, const Feed& feed,
                    uint32_t reserve);

  // True if a frame of that length would be taken now.
  bool has_room(uint32_t length, uint32_t reserve) {
    return (int32_t(cells_limit_ - next_ - reserve) > 0 || refresh_cells(reserve)) &&
           (length <= inline_max || place(length) != no_place);
  }

 private:
  static constexpr uint32_t no_place = ~0u;
  static constexpr uint32_t claimed_ahead = 8;  // cells

  static void copy_small(char* to, const void* from, uint32_t n) {
    if (n <= base::few_bytes) {
      base::copy_few(to, static_cast<const char*>(from), n);
    } else {
      memcpy(to, from, n);
    }
  }

  void publish(Cell& cell) {
    HEADWAY_CHECK(int32_t(cells_limit_ - next_) > 0);
    ++next_;
    cell.number.store(next_, std::memory_order_release);  // pairs with Consumer::peek
  }

  // Stores leave the core one after the other, and each line of a cell is with the consumer since
  // the last lap: in a row of messages every one would wait for its own. So a later cell is claimed
  // meanwhile: not one of the next, at which the consumer may be looking, or which it fetches
  // (Consumer::fetch_ahead). Where messages go to and fro that only takes a line from it that it
  // looks at next.
  void claim_later(uint32_t length) const {
    const char* line =
        reinterpret_cast<const char*>(&cells_[(next_ + claimed_ahead) & (shape_.cells - 1)]);
    for (const char* const end = line + 64 * lines_of(length); line != end; line += 64)
      base::claim_line(line);
  }
  bool refresh_cells(uint32_t reserve);
  uint32_t place(uint32_t length);
  void copy_body(char* to, const Feed& feed);

  uint32_t cells_limit_ = 0;  // next_ may not reach it
  uint32_t position_ = 0;     // payload bytes used, over all laps
  uint32_t bytes_limit_ = 0;
  Stores stores_ = Stores::automatic;
  CachedCost cost_;
  uint32_t heard_ = 0;  // from the consumer, when the last message left
};

class Consumer : public RingEnd {
 public:
  // The next frame's cell, or null. Its body stays until pop().
  const Cell* peek() const {
    const Cell& cell = cells_[next_ & (shape_.cells - 1)];
    return cell.number.load(std::memory_order_acquire) == next_ + 1 ? &cell : nullptr;
  }
  // The next frame, this one, lay there already: its sender is ahead, and the one after the next is
  // fetched meanwhile. Longer bodies have more lines of their own to wait for.
  void fetch_ahead(const Cell& cell) const {
    if (cell.header.length <= inline_max)
      base::fetch_line(&cells_[(next_ + 2) & (shape_.cells - 1)]);
  }
  // Null if the header's length cannot be true.
  const char* body(const Cell& cell) const {
    if (cell.header.length <= inline_max) return cell.body;
    if (cell.header.length > shape_.payload) return nullptr;
    const uint32_t at = cell.position & (shape_.payload - 1);
    return at + cell.header.length <= shape_.payload ? payload_ + at : nullptr;
  }
  // Drops the frame. True if credits went back to the producer, who may be waiting for them.
  bool pop(const Cell& cell) {
    if (cell.header.length > inline_max) {
      position_ = cell.position + round_line(cell.header.length);
    }
    ++next_;
    HEADWAY_CHECK(next_ - returned_cells_ <= shape_.cells);
    if (next_ - returned_cells_ < shape_.cells / 4 &&
        position_ - returned_bytes_ < shape_.payload / 4) [[likely]] {
      return false;
    }
    return_credits();
    return true;
  }
  void return_credits() {
    returned_cells_ = next_;
    returned_bytes_ = position_;
    credits_->bytes.store(position_, std::memory_order_release);  // pairs with Producer::place
    credits_->cells.store(next_, std::memory_order_release);  // pairs with Producer::refresh_cells
  }

 private:
  uint32_t returned_cells_ = 0;
  uint32_t position_ = 0;
  uint32_t returned_bytes_ = 0;
};

}  // namespace headway::shm
