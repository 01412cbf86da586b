// For tests: memory of the ranks of one process. Each rank has its own mapping, as a process would,
// in which buffers lie close together, so that they share pages. Contents tell which write made
// them. Thread: that of the test. Owner: the world. Invariant: what lies between the buffers is
// never written.
#pragma once
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "datatypes/type.h"
#include "protocols/user_memory.h"

namespace headway::protocols {

inline constexpr uint64_t page_size = 4096;
inline constexpr char untouched = 0x5a;

// Contents are written, and told apart, in chunks of a message: each has the number of the write
// that made it.
inline constexpr uint64_t chunk_size = 4096;
inline uint64_t chunks_of(uint64_t bytes) { return (bytes + chunk_size - 1) / chunk_size; }
inline void make_chunk(char* to, uint32_t version, uint64_t chunk, uint64_t n) {
  uint64_t word = version * 0x9E3779B97F4A7C15u ^ chunk * 0xC2B2AE3D27D4EB4Fu;
  for (uint64_t i = 0; i < n; i += sizeof word) {
    word = word * 6364136223846793005u + 1442695040888963407u;
    memcpy(to + i, &word, std::min<uint64_t>(sizeof word, n - i));
  }
}
inline void write_chunk(const UserMemory& memory, uint64_t chunk, uint32_t version) {
  char made[chunk_size];
  const uint64_t from = chunk * chunk_size, n = std::min(chunk_size, memory.bytes() - from);
  make_chunk(made, version, chunk, n);
  memory.write(from, made, n);
}

// How a buffer's bytes lie. Small gaps keep a receive from being closed, large runs do not.
enum class Layout : uint8_t { flat, gaps, runs };

class Layouts {
 public:
  Layouts() {
    const auto& word = datatypes::predefined(datatypes::BasicType::int_);
    constexpr auto narrow = datatypes::Form::narrow;
    EXPECT_EQ(datatypes::make_vector(narrow, 8, 3, 5, word, gaps_), Outcome::ok);
    EXPECT_EQ(datatypes::make_vector(narrow, 2, 3200, 3400, word, runs_), Outcome::ok);
  }
  ~Layouts() {
    gaps_->release();
    runs_->release();
  }
  Layouts(const Layouts&) = delete;
  Layouts& operator=(const Layouts&) = delete;

  uint64_t round_down(Layout layout, uint64_t bytes) const {
    return bytes / item(layout) * item(layout);
  }
  uint64_t round_up(Layout layout, uint64_t bytes) const {
    return round_down(layout, bytes + item(layout) - 1);
  }
  // Bytes of memory that so many bytes of a message take.
  uint64_t span(Layout layout, uint64_t bytes) const {
    const datatypes::Type* type = type_of(layout);
    return type ? bytes / item(layout) * uint64_t(type->extent()) : bytes;
  }
  UserMemory memory(Layout layout, char* from, uint64_t bytes) const {
    const datatypes::Type* type = type_of(layout);
    return type ? UserMemory(from, bytes / item(layout), *type) : UserMemory(from, bytes);
  }

 private:
  const datatypes::Type* type_of(Layout layout) const {
    return layout == Layout::flat ? nullptr : layout == Layout::gaps ? gaps_ : runs_;
  }
  uint64_t item(Layout layout) const {
    const datatypes::Type* type = type_of(layout);
    return type ? uint64_t(type->size()) : 1;
  }
  datatypes::Type *gaps_ = nullptr, *runs_ = nullptr;
};

// A buffer of the program.
struct Place {
  char* from = nullptr;
  uint64_t room = 0;
  Layout layout = Layout::flat;
  bool busy = false;               // an operation has it
  std::vector<uint32_t> versions;  // of a send's: who wrote each chunk last
};

class Arena {
 public:
  explicit Arena(uint64_t bytes) : bytes_(bytes) {
    base_ = static_cast<char*>(mmap(nullptr, bytes + 2 * page_size, PROT_NONE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    next_ = begin_ = base_ + page_size;  // neighbours would be one mapping
    EXPECT_EQ(mprotect(begin_, bytes, PROT_READ | PROT_WRITE), 0);
  }
  ~Arena() { munmap(base_, bytes_ + 2 * page_size); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Behind the last one.
  Place* add(uint64_t room, uint64_t gap, Layout layout) {
    next_ += gap;
    auto place = std::make_unique<Place>();
    place->from = next_;
    place->room = room;
    place->layout = layout;
    next_ += room;
    EXPECT_LE(next_, begin_ + bytes_);
    memset(place->from - gap, untouched, gap + room);
    places_.push_back(std::move(place));
    return places_.back().get();
  }
  bool are_gaps_untouched() const {
    const char* at = begin_;
    for (const auto& place : places_) {
      if (std::any_of(at, const_cast<const char*>(place->from),
                      [](char byte) { return byte != untouched; })) {
        return false;
      }
      at = place->from + place->room;
    }
    return true;
  }

 private:
  const uint64_t bytes_;
  char *base_ = nullptr, *begin_ = nullptr, *next_ = nullptr;
  std::vector<std::unique_ptr<Place>> places_;
};

}  // namespace headway::protocols
