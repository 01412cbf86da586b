// Costs: what closed pages have cost lately: closing and opening one, and the time that the
// program's own threads spent in opening them, and in copying into them out of another rank's
// memory. Thread: holder of the engine. Owner: Release.
// Invariant: bounded; one time slice that somebody else had changes neither by much.
#pragma once
#include <cstddef>
#include <cstdint>

#include "guard/mechanism.h"

namespace headway::protocols {

class Costs {
 public:
  // Nanoseconds of closing and opening one page.
  uint64_t page_ns() const { return page_ns_; }
  // Nanoseconds of all such work until now.
  uint64_t working_ns() const { return working_ns_; }

  // Opening takes three times as long as closing, whatever the mechanism (Table 2 of the results).
  void note_closing(size_t pages, uint64_t ns) {
    if (pages < many_pages) return;
    const uint64_t cost = 4 * ns / pages;
    const uint64_t most = 2 * page_ns_;  // somebody else had the core
    page_ns_ = (7 * page_ns_ + (cost < most ? cost : most)) / 8;
  }
  // A thread of the program has copied so many bytes, or opened their pages.
  void note_work(uint64_t ns, uint64_t bytes) {
    // Of what took longer somebody else had the core.
    const uint64_t most = slack_ns + 2 * page_ns_ * (bytes / guard::page_bytes);
    working_ns_ += ns < most ? ns : most;
  }

 private:
  static constexpr size_t many_pages = 64;  // of fewer, most does not depend on how many they are
  static constexpr uint64_t slack_ns = 50'000;

  uint64_t page_ns_ = 1700;  // a first guess is what MISSING takes
  uint64_t working_ns_ = 0;
};

}  // namespace headway::protocols
