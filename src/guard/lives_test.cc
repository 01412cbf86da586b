// What a program does with its memory beside receiving into it: it unmaps, maps anew, moves, drops,
// protects, shrinks and grows its heap, forks. Over every mechanism, with a plain model as the
// oracle. Seeds are printed and can be set.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "guard/guard_test_closed.h"

namespace headway::guard {
namespace {

class Lives : public Closed {
 protected:
  // A whole message, closed first.
  void receive(Range range, uint64_t message) {
    Region* region = guard_.close(range);
    ASSERT_NE(region, nullptr);
    EXPECT_TRUE(put_all(region, message));
  }
  // The child's answer: 0 is right. It ends within five seconds.
  template <class Child>
  int in_child(Child child) {
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(5);
      _exit(child());
    }
    int status = -1;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return status;
  }
};

bool holds_message(const char* at, uint64_t message, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    if (at[i] != byte_of(message, i)) return false;
  }
  return true;
}

TEST_P(Lives, AChildHasItsOwn) {
  Memory memory(40);
  receive({memory.base, 40}, 1);
  if (HasFatalFailure()) return;
  int to_child[2], to_parent[2];
  ASSERT_EQ(pipe(to_child) | pipe(to_parent), 0);
  const pid_t pid = fork();
  char c = 0;
  if (pid == 0) {
    alarm(5);
    // The parent writes before the child reads.
    int wrong = read(to_child[0], &c, 1) != 1;
    wrong |= !holds_message(memory.base, 1, memory.bytes) ? 2 : 0;
    memory.base[5 * page_bytes] = 'c';
    wrong |= write(to_parent[1], &c, 1) != 1;
    wrong |= read(to_child[0], &c, 1) != 1 || memory.base[5 * page_bytes] != 'c' ? 4 : 0;
    _exit(wrong);
  }
  memory.base[3 * page_bytes] = 'p';
  EXPECT_EQ(write(to_child[1], &c, 1), 1);
  EXPECT_EQ(read(to_parent[0], &c, 1), 1);
  EXPECT_EQ(memory.base[5 * page_bytes], byte_of(1, 5 * page_bytes)) << "the child's write";
  memory.base[5 * page_bytes] = 'p';
  EXPECT_EQ(write(to_child[1], &c, 1), 1);
  int status = -1;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  for (const int fd : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) close(fd);
  // And the parent goes on with what it had.
  receive({memory.base, 40}, 2);
  expect_message(memory.base, 2, memory.bytes);
}

TEST_P(Lives, AChildDoesNotWaitForPages) {
  Memory memory(8);
  Region* region = guard_.close({memory.base, 8});
  ASSERT_NE(region, nullptr);
  EXPECT_FALSE(put(region, 1, 0, 2 * page_bytes));
  EXPECT_EQ(in_child([&] {
              volatile char sum = 0;
              for (size_t i = 0; i < 8; ++i) sum = char(sum + memory.base[i * page_bytes]);
              memory.base[7 * page_bytes] = 'c';
              return holds_message(memory.base, 1, 2 * page_bytes) ? 0 : 1;
            }),
            0);
  EXPECT_TRUE(put(region, 1, 2 * page_bytes, 6 * page_bytes));
  expect_message(memory.base, 1, memory.bytes);
}

TEST_P(Lives, MappedAnewAtTheSamePlace) {
  Memory memory(8);
  receive({memory.base, 8}, 1);
  if (HasFatalFailure()) return;
  munmap(memory.base, memory.bytes);
  ASSERT_EQ(mmap(memory.base, memory.bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            memory.base);
  EXPECT_EQ(memory.base[0], 0);
  receive({memory.base, 8}, 2);
  expect_message(memory.base, 2, memory.bytes);
}

// Old and new memory must not share pages from then on.
TEST_P(Lives, MovedAndMappedAnew) {
  Memory memory(8), room(8);
  receive({memory.base, 8}, 1);
  if (HasFatalFailure()) return;
  ASSERT_EQ(
      mremap(memory.base, memory.bytes, memory.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, room.base),
      room.base);
  ASSERT_EQ(mmap(memory.base, memory.bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            memory.base);
  receive({memory.base, 8}, 2);
  expect_message(memory.base, 2, memory.bytes);
  expect_message(room.base, 1, room.bytes);
  receive({room.base + page_bytes, 6}, 3);
  expect_message(room.base + page_bytes, 3, 6 * page_bytes);
  expect_message(room.base, 1, page_bytes);
  expect_message(memory.base, 2, memory.bytes);
  // Nor with a child.
  EXPECT_EQ(in_child([&] {
              room.base[0] = 'c';
              return 0;
            }),
            0);
  EXPECT_EQ(room.base[0], byte_of(1, 0));
}

TEST_P(Lives, AMappingThatGrows) {
  char* base = static_cast<char*>(
      mmap(nullptr, 8 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  receive({base, 8}, 1);
  if (HasFatalFailure()) return;
  base = static_cast<char*>(mremap(base, 8 * page_bytes, 64 * page_bytes, MREMAP_MAYMOVE));
  ASSERT_NE(base, MAP_FAILED);
  expect_message(base, 1, 8 * page_bytes);
  for (size_t i = 8; i < 64; ++i) EXPECT_EQ(base[i * page_bytes], 0);
  receive({base, 64}, 2);
  expect_message(base, 2, 64 * page_bytes);
  munmap(base, 64 * page_bytes);
}

TEST_P(Lives, AHeapThatShrinksAndGrows) {
  // The heap's own growth must not come between.
  const uintptr_t top = reinterpret_cast<uintptr_t>(sbrk(0));
  const long pad = long(-top % page_bytes);
  ASSERT_NE(sbrk(pad + long(32 * page_bytes)), reinterpret_cast<void*>(-1));
  char* base = reinterpret_cast<char*>(top) + pad;
  memset(base, 1, 32 * page_bytes);
  receive({base + page_bytes, 30}, 1);
  expect_message(base + page_bytes, 1, 30 * page_bytes);
  if (sbrk(0) == base + 32 * page_bytes) {
    ASSERT_NE(sbrk(-long(20 * page_bytes)), reinterpret_cast<void*>(-1));
    ASSERT_NE(sbrk(long(20 * page_bytes)), reinterpret_cast<void*>(-1));
    EXPECT_EQ(base[15 * page_bytes], 0);
    memset(base + 12 * page_bytes, 2, 20 * page_bytes);
    receive({base + page_bytes, 30}, 2);
    expect_message(base + page_bytes, 2, 30 * page_bytes);
    EXPECT_EQ(base[31 * page_bytes], 2);
  }
}

// What the program has protected stays so: it has a reason, and perhaps a handler.
TEST_P(Lives, MemoryThatTheProgramProtects) {
  Memory memory(8);
  receive({memory.base, 8}, 1);
  if (HasFatalFailure()) return;
  ASSERT_EQ(mprotect(memory.base + 2 * page_bytes, page_bytes, PROT_READ), 0);
  EXPECT_EQ(guard_.close({memory.base, 8}), nullptr);
  EXPECT_NE(in_child([&] {
              memory.base[2 * page_bytes] = 'x';
              return 0;
            }),
            0);
  expect_message(memory.base, 1, memory.bytes);
}

// ------------------------------------------------------------------------------- with a model

// Another thread of the program, which reads a byte when it is told to. It lives as long as the
// model: one that starts or ends maps and unmaps memory, under a sanitizer a signal stack, too, and
// that must not fall into the holes which the model makes for a moment.
class Toucher {
 public:
  Toucher() : thread_([this] { run(); }) { state_.wait(State::starts); }
  ~Toucher() {
    tell(State::ends);
    thread_.join();
  }
  void read(const char* from, char expected) {
    from_ = from;
    expected_ = expected;
    reads_ = true;
    tell(State::reads);
  }
  bool reads() const { return reads_; }
  // It has read what was expected.
  bool finish() {
    state_.wait(State::reads);
    reads_ = false;
    return right_;
  }

 private:
  enum class State { starts, rests, reads, ends };
  void tell(State state) {
    state_ = state;
    state_.notify_all();
  }
  void run() {
    for (tell(State::rests); state_ != State::ends; state_.wait(State::rests)) {
      if (state_ != State::reads) continue;
      right_ = *static_cast<const volatile char*>(from_) == expected_;
      tell(State::rests);
    }
  }

  const char* from_ = nullptr;
  char expected_ = 0;
  bool reads_ = false, right_ = true;
  std::atomic<State> state_{State::starts};
  std::thread thread_;
};

// One buffer of the program, alone in its place: what it should hold, and the message on its way.
struct Buffer {
  char* base;
  size_t pages;
  std::vector<char> bytes;   // what the program reads of its open pages
  std::vector<bool> closed;  // a page
  Region* region = nullptr;
  size_t from = 0;  // the region's first page here
  uint64_t message = 0;
  std::vector<std::pair<size_t, size_t>> pieces;
  std::vector<size_t> come;  // bytes of each page of the region
  std::unique_ptr<Toucher> toucher = std::make_unique<Toucher>();
};

class Model {
 public:
  Model(Guard& guard, Wish wish, uint64_t seed) : guard_(guard), wish_(wish), random_(seed) {
    places_ = static_cast<char*>(
        mmap(nullptr, places * place_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (size_t i = 0; i < 5; ++i) {
      Buffer buffer;
      buffer.pages = 1 + random_() % most_pages;
      buffer.base = free_place();
      map_anew(buffer);
      buffers_.push_back(std::move(buffer));
    }
  }
  ~Model() { munmap(places_, places * place_bytes); }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) step();
    for (Buffer& buffer : buffers_) {
      while (buffer.region) deliver(buffer);
      if (buffer.toucher->reads()) {
        EXPECT_TRUE(buffer.toucher->finish());
      }
      check(buffer);
    }
  }

 private:
  static constexpr size_t most_pages = 24, place_bytes = (most_pages + 1) * page_bytes, places = 12;

  void step() {
    Buffer& buffer = buffers_[random_() % buffers_.size()];
    const bool still = !buffer.toucher->reads();
    switch (random_() % 12) {
      case 0:
      case 1: return receive(buffer);
      case 2:
      case 3:
      case 4:
      case 5:
        if (buffer.region) deliver(buffer);
        return;
      case 6:
        if (still) touch(buffer);
        return;
      case 7: return write(buffer);
      case 8:
        if (still) move(buffer);
        return;
      case 9:
        if (still) drop(buffer);
        return;
      case 10:
        if (still && random_() % 4 == 0) unmap(buffer);
        return;
      default: return check(buffer);
    }
  }

  char* free_place() {
    for (;;) {
      char* place = places_ + random_() % places * place_bytes;
      bool used = false;
      for (const Buffer& buffer : buffers_) used |= buffer.base == place;
      if (!used) return place;
    }
  }
  void map_anew(Buffer& buffer) {
    ASSERT_EQ(mmap(buffer.base, buffer.pages * page_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              buffer.base);
    buffer.bytes.assign(buffer.pages * page_bytes, 0);
    buffer.closed.assign(buffer.pages, false);
  }

  void receive(Buffer& buffer) {
    if (buffer.region || buffer.toucher->reads()) return;
    buffer.from = random_() % buffer.pages;
    const size_t pages = 1 + random_() % (buffer.pages - buffer.from);
    buffer.region = guard_.close({buffer.base + buffer.from * page_bytes, pages});
    // Closed pages may have been here that have moved since; nobody told the trap.
    if (!buffer.region && wish_ == Wish::trap && moved_) return;
    ASSERT_NE(buffer.region, nullptr);
    buffer.message = random_();
    buffer.come.assign(pages, 0);
    for (size_t at = 0, size = pages * page_bytes; at < size;) {
      const size_t n = std::min<size_t>(size - at, 1 + random_() % 20'000);
      buffer.pieces.emplace_back(at, n);
      at += n;
    }
    if (random_() % 2) std::shuffle(buffer.pieces.begin(), buffer.pieces.end(), random_);
    for (size_t i = 0; i < pages; ++i) buffer.closed[buffer.from + i] = true;
  }

  void deliver(Buffer& buffer) {
    const auto [at, n] = buffer.pieces.back();
    buffer.pieces.pop_back();
    for (size_t i = at; i < at + n; ++i) buffer.region->view[i] = byte_of(buffer.message, i);
    const bool over = guard_.arrived(buffer.region, at, n);
    EXPECT_EQ(over, buffer.pieces.empty());
    for (size_t i = at; i < at + n; ++i) ++buffer.come[i / page_bytes];
    for (size_t page = at / page_bytes; page <= (at + n - 1) / page_bytes; ++page) {
      const size_t here = buffer.from + page;
      if (buffer.come[page] < page_bytes || !buffer.closed[here]) continue;
      buffer.closed[here] = false;
      for (size_t i = 0; i < page_bytes; ++i) {
        buffer.bytes[here * page_bytes + i] = byte_of(buffer.message, page * page_bytes + i);
      }
    }
    if (!over) return;
    buffer.region = nullptr;
    if (buffer.toucher->reads()) {
      EXPECT_TRUE(buffer.toucher->finish());
    }
  }

  // Somebody else reads a closed page: it waits, and gets the message's byte.
  void touch(Buffer& buffer) {
    const size_t page = random_() % buffer.pages, at = page * page_bytes + random_() % page_bytes;
    if (!buffer.closed[page]) return;
    buffer.toucher->read(buffer.base + at, byte_of(buffer.message, at - buffer.from * page_bytes));
  }

  void write(Buffer& buffer) {
    const size_t at = random_() % buffer.bytes.size();
    // Another thread may be waiting for a byte of an open page of the message: that must stay.
    if (buffer.closed[at / page_bytes] || buffer.toucher->reads()) return;
    buffer.base[at] = buffer.bytes[at] = char(random_());
  }

  void move(Buffer& buffer) {
    // Where only a part is watched, mremap stops half-way and tells only that it failed.
    const bool part = buffer.region && buffer.region->range.pages != buffer.pages;
    if (part && wish_ != Wish::trap) return;
    // A page that has been moved home is another mapping, and then a part is.
    if (buffer.region && wish_ == Wish::minor) return;
    char* place = free_place();
    const size_t n = buffer.pages * page_bytes;
    if (mremap(buffer.base, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, place) == MAP_FAILED) {
      // Several mappings: older kernels move none of them.
      EXPECT_EQ(errno, EFAULT);
      munmap(place, n);
      mmap(place, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
      return;
    }
    mmap(buffer.base, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    buffer.base = place;
    moved_ |= buffer.region != nullptr;
  }

  void drop(Buffer& buffer) {
    const size_t page = random_() % buffer.pages;
    // The dispatch would have it wait where nobody hears of it.
    if (buffer.closed[page] && wish_ != Wish::missing) return;
    EXPECT_EQ(madvise(buffer.base + page * page_bytes, page_bytes, MADV_DONTNEED), 0);
    buffer.closed[page] = false;
    std::fill_n(buffer.bytes.begin() + long(page * page_bytes), page_bytes, 0);
  }

  void unmap(Buffer& buffer) {
    munmap(buffer.base, buffer.pages * page_bytes);
    map_anew(buffer);
  }

  void check(const Buffer& buffer) {
    for (size_t page = 0; page < buffer.pages; ++page) {
      if (buffer.closed[page]) continue;
      ASSERT_EQ(
          memcmp(buffer.base + page * page_bytes, &buffer.bytes[page * page_bytes], page_bytes), 0)
          << "page " << page << " of " << buffer.pages;
    }
  }

  Guard& guard_;
  Wish wish_;
  std::mt19937_64 random_;
  char* places_;
  std::vector<Buffer> buffers_;
  bool moved_ = false;  // closed pages
};

TEST_P(Lives, RandomLives) {
  const uint64_t end = base::now_ns() + 2'000'000'000;
  for (uint64_t seed = base_seed(); base::now_ns() < end && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "HEADWAY_TEST_SEED=" << seed);
    Model(guard_, GetParam(), seed).run(400);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Lives, testing::ValuesIn(every_wish), wish_name);

}  // namespace
}  // namespace headway::guard
