// Stamps: for each page of followed memory, when it was last found written, on a clock of looks; it
// is the page's version. Tables of 4 MB of addresses each, made when a page of them is first used.
// Thread: the holder of the engine; state() any, in signal context. Owner: Versions. Invariant: a
// table stays where it is until clear(), so that a signal handler may read while one is added.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "guard/mechanism.h"

namespace headway::guard {

class Stamps {
 public:
  static constexpr uint32_t none = 0;     // not followed, or not any more
  static constexpr uint32_t yielded = 1;  // the guard had it meanwhile
  static constexpr uint32_t first = 2;    // from here on it is a moment

  // Of a page, for a signal handler and whoever looks (SignalledWrites).
  using State = std::atomic<uint16_t>;

  Stamps() = default;
  ~Stamps() { clear(); }
  Stamps(const Stamps&) = delete;
  Stamps& operator=(const Stamps&) = delete;

  // False: no memory.
  [[nodiscard]] bool make_room(Range range);
  uint32_t at(const char* address) const;
  State* state(const char* address) const;  // null: no room was made for it. SIGSAFE
  // All of them; there is room.
  void set(Range range, uint32_t stamp);
  // None of these is followed. `moments`: but that the guard had them stays known.
  void forget(Range range, bool moments = false);
  // The guard gets them: those that have a moment.
  void yield(Range range);
  bool all_followed(Range range) const;
  // Pages from the range's first on that are none, yielded, or followed as that one is.
  size_t alike(Range range) const;
  void clear();

 private:
  static constexpr size_t shift = 22, pages = (size_t(1) << shift) / page_bytes;
  static constexpr size_t buckets = 256;
  struct Table {
    uintptr_t key;
    Table* next;
    uint32_t stamps[pages];
    State states[pages];
  };
  static uintptr_t key_of(const char* address) {
    return reinterpret_cast<uintptr_t>(address) >> shift;
  }
  static size_t index_of(const char* address) {
    return reinterpret_cast<uintptr_t>(address) / page_bytes % pages;
  }
  // Pages of the range from `at` on that are in one table.
  static size_t here(const char* at, Range range) {
    const size_t left = size_t(range.end() - at) / page_bytes, room = pages - index_of(at);
    return left < room ? left : room;
  }
  Table* find(const char* address) const {
    const uintptr_t key = key_of(address);
    // Acquire: pairs with make_room.
    Table* table = heads_[key % buckets].load(std::memory_order_acquire);
    while (table && table->key != key) table = table->next;
    return table;
  }
  // part(stamps, count) for each run of them; null where there is no table.
  template <class Part>
  void each(Range range, Part part) const {
    for (const char* at = range.base; at < range.end();) {
      const size_t count = here(at, range);
      Table* table = find(at);
      part(table ? table->stamps + index_of(at) : nullptr, count);
      at += count * page_bytes;
    }
  }

  std::atomic<Table*> heads_[buckets] = {};
};

}  // namespace headway::guard
