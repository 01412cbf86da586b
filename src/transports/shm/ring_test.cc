// A ring between two threads, and alone: order, content, credits, laps, and counters that wrap.
#include "transports/shm/ring.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace headway::shm {

// Four thousand million frames take too long to send: the test sets the private counts. Explicit
// instantiation may name private members.
template <uint32_t RingEnd::*Next, uint32_t Producer::*Limit, uint32_t Consumer::*Returned>
struct Counts {
  friend void start_at(Producer& producer, Consumer& consumer, uint32_t count, uint32_t cells) {
    producer.*Next = count;
    producer.*Limit = count + cells;
    consumer.*Next = count;
    consumer.*Returned = count;
  }
};
void start_at(Producer& producer, Consumer& consumer, uint32_t count, uint32_t cells);
template struct Counts<&RingEnd::next_, &Producer::cells_limit_, &Consumer::returned_cells_>;

namespace {

struct Memory {
  explicit Memory(Shape shape) : bytes(static_cast<char*>(aligned_alloc(4096, shape.bytes()))) {
    memset(static_cast<void*>(bytes), 0, shape.bytes());
  }
  ~Memory() { free(bytes); }
  char* bytes;
};

// Both ends in one thread.
struct Ends : Memory {
  explicit Ends(Shape shape) : Memory(shape) {
    base::find_string_copy();
    producer.attach(bytes, shape);
    consumer.attach(bytes, shape);
  }
  Producer producer;
  Consumer consumer;
};

uint8_t pattern(uint32_t frame, uint64_t at) { return uint8_t(frame * 131 + at * 7 + (at >> 8)); }

FrameHeader header_of(uint32_t frame, uint32_t length) {
  FrameHeader header;
  header.kind = uint8_t(frame % 9 + 1);
  header.length = length;
  header.tag = int32_t(frame);
  header.source = -int32_t(frame);
  header.context = uint64_t(frame) << 33 | length;
  header.sequence = frame ^ 0x55555555;
  header.word = ~frame;
  return header;
}

void pack_pattern(const void* memory, uint64_t offset, void* out, size_t n) {
  const uint32_t frame = *static_cast<const uint32_t*>(memory);
  for (size_t i = 0; i < n; ++i) static_cast<uint8_t*>(out)[i] = pattern(frame, offset + i);
}

constexpr int ways = 9;

// Tries to send frame number `frame` with a body of that length, in one of the ways there are: what
// feeds it, and by which stores.
Push push(Producer& producer, uint32_t frame, uint32_t length, uint32_t reserve, int way) {
  std::vector<char> body(length);
  pack_pattern(&frame, 0, body.data(), length);
  const FrameHeader header = header_of(frame, length);
  if (length <= inline_max) {
    // As messages in a row, as messages to and fro, and as what is none.
    return reserve == reserved_cells && way % 3
               ? producer.push_message(header, body.data(), way % 3 == 1 ? 7 : frame)
               : producer.push_inline(header, body.data(), reserve);
  }
  producer.force(Stores(way / 3));
  const uint32_t head = way % 3 == 2 ? 16 : 0;
  Feed feed{.flat = body.data() + head, .length = length - head};
  if (way % 3 == 1) {
    feed = {.pack = pack_pattern, .memory = &frame, .offset = 0, .length = length};
  }
  return producer.push_payload(header, body.data(), head, feed, reserve);
}

// True if a frame was there. Fails if it is not number `frame` with that length, whole.
bool take(Consumer& consumer, uint32_t frame, uint32_t length) {
  const Cell* cell = consumer.peek();
  if (!cell) return false;
  const FrameHeader expected = header_of(frame, length);
  const char* body = consumer.body(*cell);
  if (memcmp(&cell->header, &expected, sizeof expected) != 0 || !body) {
    ADD_FAILURE() << "frame " << frame << ": header is that of frame " << cell->header.tag;
    return true;
  }
  for (uint32_t i = 0; i < length; ++i) {
    if (uint8_t(body[i]) == pattern(frame, i)) continue;
    ADD_FAILURE() << "frame " << frame << " of " << length << " bytes differs at byte " << i;
    break;
  }
  consumer.pop(*cell);
  return true;
}

uint32_t random_length(std::mt19937_64& random, const Shape& shape) {
  const uint32_t edges[] = {0,
                            1,
                            4,
                            8,
                            inline_max - 1,
                            inline_max,
                            inline_max + 1,
                            256,
                            4096,
                            4097,
                            shape.frame_max() - 1,
                            shape.frame_max()};
  if (random() % 4 == 0) {
    const uint32_t edge = edges[random() % std::size(edges)];
    return edge < shape.frame_max() ? edge : shape.frame_max();
  }
  return uint32_t(random() % (random() % 2 ? inline_max + 1 : shape.frame_max() + 1));
}

// One producer and one consumer thread, both of random pace. Every frame must come, in order,
// whole.
void run_threads(Shape shape, uint64_t seed, uint32_t frames) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  base::find_string_copy();
  Memory memory(shape);
  std::mt19937_64 lengths_random(seed);
  std::vector<uint32_t> lengths(frames);
  for (uint32_t& length : lengths) length = random_length(lengths_random, shape);
  const uint64_t deadline = base::now_ns() + 60'000'000'000;
  std::atomic<bool> give_up{false};
  uint64_t fulls = 0;

  std::thread producing([&] {
    std::mt19937_64 random(seed + 1);
    Producer producer;
    producer.attach(memory.bytes, shape);
    for (uint32_t i = 0; i < frames && !give_up; ++i) {
      // Envelopes leave some cells free, control frames may take the last one.
      const uint32_t reserve = random() % 3 ? reserved_cells : 0;
      while (push(producer, i, lengths[i], reserve, int(random() % ways)) == Push::full) {
        ++fulls;
        if (base::now_ns() > deadline) give_up = true;
        if (give_up) return;
        std::this_thread::yield();
      }
      if (random() % 512 == 0) std::this_thread::yield();
    }
  });
  std::mt19937_64 random(seed + 2);
  Consumer consumer;
  consumer.attach(memory.bytes, shape);
  uint32_t taken = 0;
  while (taken < frames && !give_up && !testing::Test::HasFailure()) {
    if (take(consumer, taken, lengths[taken])) {
      ++taken;
      if (random() % 256 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
    } else {
      if (base::now_ns() > deadline) give_up = true;
      std::this_thread::yield();
    }
  }
  if (taken < frames) give_up = true;
  producing.join();
  EXPECT_EQ(taken, frames) << "the ring stands still";
  EXPECT_GT(fulls, 0u) << "the ring was never full";
}

constexpr uint32_t timed_bytes = 16 << 10;
void note(CachedCost& cost, uint64_t ticks_a_line, bool strings, int times = 1) {
  for (int i = 0; i < times; ++i)
    cost.note(ticks_a_line * (timed_bytes / 64), timed_bytes, strings);
}

// Ticks of 0.4 ns a line, as they were measured.
TEST(CachedCost, WhereLinesComeSlowlyBodiesGoPastTheCache) {
  for (const uint64_t quick : {3, 8, 13}) {  // Zen 3 near, far, and from a source just written
    CachedCost cost;
    note(cost, quick, true, 5);
    EXPECT_FALSE(cost.is_slow()) << quick;
  }
  for (const uint64_t slow : {20, 75}) {  // Zen 4
    CachedCost cost;
    note(cost, slow, true, 4);
    EXPECT_TRUE(cost.is_slow()) << slow;
    note(cost, 3, true, 20);
    EXPECT_FALSE(cost.is_slow()) << "the cores came near";
  }
  CachedCost stores;
  note(stores, 3, false, 5);
  EXPECT_FALSE(stores.is_slow());
  note(stores, 9, false, 20);
  EXPECT_TRUE(stores.is_slow());
}

TEST(CachedCost, PagesThatAreNotThereTellNothing) {
  CachedCost cost;
  for (const uint64_t ticks : {60, 40, 3, 50}) {  // faults, and a copy without
    EXPECT_TRUE(cost.is_due());
    note(cost, ticks, true);
    EXPECT_FALSE(cost.is_slow()) << ticks;
  }
}

TEST(CachedCost, AnInterruptedCopyTellsNothing) {
  CachedCost cost;
  note(cost, 3, true, 4);
  note(cost, 5000, true, 20);
  EXPECT_FALSE(cost.is_slow());
}

TEST(CachedCost, IsAskedNowAndThenAndSeldomWhereItIsSlow) {
  CachedCost cost;
  const auto due_of = [&cost](int copies) {
    int due = 0;
    for (int i = 0; i < copies; ++i) due += cost.is_due();
    return due;
  };
  EXPECT_EQ(due_of(10), 10) << "the first ones, until they told";
  note(cost, 3, true, 4);
  const int quick = due_of(1024);
  note(cost, 100, true, 2);
  const int slow = due_of(1024);
  EXPECT_EQ(quick, 32);
  EXPECT_EQ(slow, 8);
}

TEST(Ring, TwoThreadsAllShapes) {
  run_threads({64, 128 << 10}, 4, 40000);
  run_threads({64, 64 << 10}, 1, 40000);
  run_threads({32, 16 << 10}, 2, 40000);
  run_threads({16, 16 << 10}, 3, 40000);
}

// All lengths of a frame, one after the other through one ring, each in one of the ways.
TEST(Ring, EveryLength) {
  const Shape shape{16, 16 << 10};
  Ends ring(shape);
  uint32_t frame = 0;
  for (uint32_t length = 0; length <= shape.frame_max(); ++length) {
    ASSERT_EQ(push(ring.producer, frame, length, 0, int(length % ways)), Push::done);
    ASSERT_TRUE(take(ring.consumer, frame++, length));
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_EQ(ring.consumer.peek(), nullptr);
}

TEST(Ring, FullInCellsKeepsAReserveForControlFrames) {
  const Shape shape{16, 16 << 10};
  Ends ring(shape);
  uint32_t sent = 0;
  while (push(ring.producer, sent, 8, reserved_cells, 0) == Push::done) ++sent;
  EXPECT_EQ(sent, shape.cells - reserved_cells);
  EXPECT_FALSE(ring.producer.has_room(8, reserved_cells));
  EXPECT_TRUE(ring.producer.has_room(8, 0));
  while (push(ring.producer, sent, 8, 0, 0) == Push::done) ++sent;
  EXPECT_EQ(sent, shape.cells);
  EXPECT_FALSE(ring.producer.has_room(0, 0));
  for (uint32_t i = 0; i < sent; ++i) ASSERT_TRUE(take(ring.consumer, i, 8));
  EXPECT_TRUE(ring.producer.has_room(8, reserved_cells));
  EXPECT_EQ(push(ring.producer, sent, 8, reserved_cells, 0), Push::done);
  EXPECT_TRUE(take(ring.consumer, sent, 8));
}

// Four frames of the greatest length fill the payload; a control frame still goes.
TEST(Ring, FullInBytesStillTakesShortFrames) {
  const Shape shape{64, 64 << 10};
  Ends ring(shape);
  uint32_t sent = 0;
  while (push(ring.producer, sent, shape.frame_max(), 0, 4) == Push::done) ++sent;
  EXPECT_EQ(sent, 4u);
  EXPECT_FALSE(ring.producer.has_room(inline_max + 1, 0));
  EXPECT_TRUE(ring.producer.has_room(inline_max, 0));
  EXPECT_EQ(push(ring.producer, sent, 32, 0, 0), Push::done);
  ASSERT_TRUE(take(ring.consumer, 0, shape.frame_max()));
  EXPECT_EQ(push(ring.producer, sent + 1, shape.frame_max(), 0, 4), Push::done);
  for (uint32_t i = 1; i < sent; ++i) ASSERT_TRUE(take(ring.consumer, i, shape.frame_max()));
  ASSERT_TRUE(take(ring.consumer, sent, 32));
  ASSERT_TRUE(take(ring.consumer, sent + 1, shape.frame_max()));
  EXPECT_EQ(ring.consumer.peek(), nullptr);
}

// A consumer that has taken everything must leave room for any frame, wherever the lap stands:
// credits that it still owes must never add up to a standstill.
TEST(Ring, AnEmptyRingTakesAnyFrame) {
  for (const Shape shape :
       {Shape{64, 128 << 10}, Shape{64, 64 << 10}, Shape{32, 16 << 10}, Shape{16, 16 << 10}}) {
    Ends ring(shape);
    std::mt19937_64 random(shape.cells);
    for (uint32_t i = 0; i < 30000; ++i) {
      const uint32_t length = random_length(random, shape);
      ASSERT_TRUE(ring.producer.has_room(length, reserved_cells)) << "frame " << i;
      ASSERT_EQ(push(ring.producer, i, length, reserved_cells, int(random() % ways)), Push::done);
      ASSERT_TRUE(take(ring.consumer, i, length));
      ASSERT_FALSE(HasFailure());
    }
  }
}

// The fewer lines they go round in, the quicker: twice as many made windows of 4 KB a quarter
// slower.
TEST(Ring, ShortBodiesStayAtItsBeginning) {
  const Shape shape{64, 128 << 10};
  Ends ring(shape);
  const char* lowest = nullptr;
  std::mt19937_64 random(11);
  for (uint32_t i = 0; i < 2000; ++i) {
    const uint32_t length = i ? uint32_t(200 + random() % (8192 - 200)) : 8192;
    ASSERT_EQ(push(ring.producer, i, length, reserved_cells, 0), Push::done);
    const char* body = ring.consumer.body(*ring.consumer.peek());
    if (!lowest) lowest = body;
    EXPECT_GE(body, lowest);
    EXPECT_LE(body + length, lowest + shape.payload / 2);
    ASSERT_TRUE(take(ring.consumer, i, length));
  }
}

// A length that cannot be true gives no body, so that nothing outside the ring is read.
TEST(Ring, ABodyNeverLiesOutsideTheRing) {
  const Shape shape{16, 16 << 10};
  Ends ring(shape);
  ASSERT_EQ(push(ring.producer, 0, 4096, 0, 0), Push::done);
  auto* cell = const_cast<Cell*>(ring.consumer.peek());
  ASSERT_NE(cell, nullptr);
  EXPECT_NE(ring.consumer.body(*cell), nullptr);
  for (const uint32_t lie : {shape.payload + 1, ~0u, 0x80000000u}) {
    cell->header.length = lie;
    EXPECT_EQ(ring.consumer.body(*cell), nullptr) << lie;
  }
  cell->header.length = shape.payload;
  cell->position = 64;
  EXPECT_EQ(ring.consumer.body(*cell), nullptr);
}

// The counts of bytes and frames are 32 bits wide and wrap. Bytes wrap for real here: 4 GiB of
// payload without the copies, by frames whose Feed packs nothing.
void pack_nothing(const void*, uint64_t, void*, size_t) {}

TEST(Ring, ThePayloadPositionWraps) {
  const Shape shape{64, 64 << 10};
  Ends ring(shape);
  const uint32_t length = shape.frame_max();
  const uint64_t near = (uint64_t(1) << 32) - (uint64_t(1) << 20);
  uint64_t moved = 0;
  const Feed feed{.pack = pack_nothing, .memory = &shape, .offset = 0, .length = length};
  FrameHeader header;
  header.length = length;
  for (; moved < near; moved += length) {
    ASSERT_EQ(ring.producer.push_payload(header, nullptr, 0, feed, 0), Push::done);
    const Cell* cell = ring.consumer.peek();
    ASSERT_NE(cell, nullptr);
    ring.consumer.pop(*cell);
  }
  // Now in earnest, with several frames under way, across the edge and for some laps.
  std::mt19937_64 random(7);
  std::vector<uint32_t> lengths;
  uint32_t taken = 0;
  for (uint32_t i = 0; i < 4000; ++i) {
    lengths.push_back(random_length(random, shape));
    while (push(ring.producer, i, lengths[i], reserved_cells, int(random() % ways)) == Push::full) {
      ASSERT_TRUE(take(ring.consumer, taken, lengths[taken])) << "full, and nothing to take";
      ++taken;
      ASSERT_FALSE(HasFailure());
    }
  }
  for (; taken < lengths.size(); ++taken) ASSERT_TRUE(take(ring.consumer, taken, lengths[taken]));
}

TEST(Ring, TheCountOfFramesWraps) {
  for (const Shape shape : {Shape{64, 64 << 10}, Shape{16, 16 << 10}}) {
    Ends ring(shape);
    const uint32_t start = ~0u - 3 * shape.cells - 5;
    reinterpret_cast<Credits*>(ring.bytes)->cells.store(start);
    start_at(ring.producer, ring.consumer, start, shape.cells);
    std::mt19937_64 random(shape.cells);
    std::vector<uint32_t> lengths;
    uint32_t taken = 0, fulls = 0;
    for (uint32_t i = 0; i < 20 * shape.cells; ++i) {
      lengths.push_back(random_length(random, shape) & 255);
      while (push(ring.producer, i, lengths[i], i % 2 ? reserved_cells : 0, int(i % ways)) ==
             Push::full) {
        ++fulls;
        ASSERT_LE(i - taken, shape.cells) << "more frames under way than there are cells";
        for (auto some = random() % shape.cells + 1; some > 0 && taken < i; --some, ++taken) {
          ASSERT_TRUE(take(ring.consumer, taken, lengths[taken]));
        }
        ASSERT_FALSE(HasFailure());
      }
    }
    for (; taken < lengths.size(); ++taken) ASSERT_TRUE(take(ring.consumer, taken, lengths[taken]));
    EXPECT_EQ(ring.consumer.peek(), nullptr);
    EXPECT_EQ(ring.producer.frames(), start + uint32_t(lengths.size()));
    EXPECT_GT(fulls, 10u);
  }
}

}  // namespace
}  // namespace headway::shm
