// Counter: a number that one thread at a time changes, and that every thread may read at any time,
// a signal handler too. Thread: see there. Owner: whoever counts. Invariant: a change is one load
// and one store, which on the usual processors cost what a plain number costs; two threads that
// change it at once would lose one of the changes, so each counter belongs to a lock or a thread.
// None falls below 0.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/check.h"

namespace headway::base {

class Counter {
 public:
  constexpr Counter(uint64_t start = 0) : value_(start) {}
  Counter(const Counter& other) : value_(other.get()) {}
  Counter& operator=(const Counter& other) { return *this = other.get(); }
  Counter& operator=(uint64_t value) {
    value_.store(value, std::memory_order_relaxed);  // pairs with nothing: a number says no more
    return *this;
  }
  // In line: they stand in every message's way, and the compiler would call a function.
  [[gnu::always_inline]] Counter& operator+=(uint64_t n) { return *this = get() + n; }
  Counter& operator-=(uint64_t n) {
    HEADWAY_CHECK(n <= get());
    return *this = get() - n;
  }
  [[gnu::always_inline]] Counter& operator++() { return *this += 1; }
  Counter& operator--() { return *this -= 1; }
  // For the most that there ever was.
  void raise_to(uint64_t value) {
    if (value > get()) *this = value;
  }
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }
  operator uint64_t() const { return get(); }

 private:
  std::atomic<uint64_t> value_;
};

}  // namespace headway::base
