// Order: which pages of one message have moved, and which go next, once a page was asked for out of
// turn. The sender keeps one of what it has sent, the receiver one of what has come or is coming.
// Thread: holder of the engine. Owner: the request. Invariants: each page is taken once; as long as
// one is left, next() finds one.
#pragma once
#include <cstdint>
#include <new>

#include "base/check.h"
#include "base/heap.h"

namespace headway::protocols {

class Order {
 public:
  struct Run {
    uint64_t first, pages;
  };
  // Of a message with `pages` pages, of which the first `done` have moved. Null without memory.
  static Order* make(uint64_t pages, uint64_t done) {
    void* block = base::heap_allocate(bytes_of(pages));
    if (!block) return nullptr;
    auto* order = new (block) Order(pages);
    uint64_t* words = order->words();
    for (uint64_t i = 0; i < words_of(pages); ++i) {
      const uint64_t from = i * 64;
      words[i] = done >= from + 64 ? ~0ull : done > from ? (1ull << (done - from)) - 1 : 0;
    }
    order->cursor_ = done;
    return order;
  }
  static void drop(Order* order) { base::heap_free(order, bytes_of(order->pages_)); }

  uint64_t pages() const { return pages_; }
  bool is_taken(uint64_t page) const {
    HEADWAY_CHECK(page < pages_);
    return words()[page / 64] >> (page % 64) & 1;
  }

  // The page is awaited: it goes next and alone, then those behind it (backwards: before it), a few
  // more each time.
  void ask(uint64_t page, bool backwards) {
    HEADWAY_CHECK(page < pages_);
    cursor_ = page;
    backwards_ = backwards;
    burst_ = 1;
  }

  // What goes next; no pages: all have gone.
  Run next() const {
    uint64_t page;
    if (backwards_) {
      page = last_left(cursor_);
      if (page == pages_) page = last_left(pages_ - 1);
    } else {
      page = first_left(cursor_);
      if (page == pages_) page = first_left(0);
    }
    HEADWAY_CHECK(page == pages_ ? first_left(0) == pages_ : !is_taken(page));
    if (page == pages_) return {0, 0};
    uint64_t n = 1;
    if (backwards_) {
      while (n < burst_ && page > 0 && !is_taken(page - 1)) --page, ++n;
    } else {
      while (n < burst_ && page + n < pages_ && !is_taken(page + n)) ++n;
    }
    return {page, n};
  }

  // These move now. False: there are no such pages, or one has moved before.
  bool take(uint64_t first, uint64_t n) {
    if (n == 0 || first >= pages_ || n > pages_ - first) return false;
    for (uint64_t i = first; i < first + n; ++i) {
      if (is_taken(i)) return false;
    }
    for (uint64_t i = first; i < first + n; ++i) words()[i / 64] |= 1ull << (i % 64);
    cursor_ = !backwards_ ? first + n : first > 0 ? first - 1 : 0;
    if (burst_ < most_burst) burst_ *= 2;
    return true;
  }

  // These have moved in another way.
  void leave_out(uint64_t first, uint64_t n) {
    HEADWAY_CHECK(first <= pages_ && n <= pages_ - first);
    for (uint64_t i = first; i < first + n; ++i) words()[i / 64] |= 1ull << (i % 64);
  }

  // It has moved, or is among the next `soon` that do by themselves.
  bool comes_soon(uint64_t page, uint64_t soon) const {
    if (is_taken(page)) return true;
    return backwards_ ? page <= cursor_ && cursor_ - page < soon
                      : page >= cursor_ && page - cursor_ < soon;
  }

  // At once: what is asked for next has to wait for them.
  static constexpr uint64_t most_burst = 4;

 private:
  explicit Order(uint64_t pages) : pages_(pages) {}
  static uint64_t words_of(uint64_t pages) { return (pages + 63) / 64; }
  static size_t bytes_of(uint64_t pages) {
    return sizeof(Order) + words_of(pages) * sizeof(uint64_t);
  }
  uint64_t* words() { return reinterpret_cast<uint64_t*>(this + 1); }
  const uint64_t* words() const { return reinterpret_cast<const uint64_t*>(this + 1); }

  // The first one from `from` on, or the last one up to it, that has not moved; pages(): none.
  uint64_t first_left(uint64_t from) const {
    for (uint64_t i = from / 64; i < words_of(pages_); ++i) {
      uint64_t left = ~words()[i];
      if (i == from / 64) left &= ~0ull << (from % 64);
      if (!left) continue;
      const uint64_t page = i * 64 + uint64_t(__builtin_ctzl(left));
      return page < pages_ ? page : pages_;
    }
    return pages_;
  }
  uint64_t last_left(uint64_t to) const {
    for (uint64_t i = to / 64 + 1; i-- > 0;) {
      uint64_t left = ~words()[i];
      if (i == to / 64) left &= ~0ull >> (63 - to % 64);
      if (left) return i * 64 + 63 - uint64_t(__builtin_clzl(left));
    }
    return pages_;
  }

  uint64_t pages_;
  uint64_t cursor_ = 0;
  uint64_t burst_ = 1;
  bool backwards_ = false;
};

}  // namespace headway::protocols
