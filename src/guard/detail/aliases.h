// Aliases: memory of the program that has a second address, the view. A block of plain memory
// becomes a shared mapping of a file of its own, which both addresses show; it stays that way, and
// the next receive into it finds it again. Source: early-release paper, sections 2.2 and 2.3 (a
// table by start address, blocks of 16 pages, replaced when too small).
// Thread: any, one at a time (Guard's lock). Owner: a mechanism. Invariants: a block is used again
// only where its mapping is proven to stand; a forked child gets copies; what the program drops
// (MADV_DONTNEED) must read as zeros, and would not, so the pages are locked and that call fails.
// File and pages live as long as somebody maps them: any idle block may be dropped at any time.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/outcome.h"
#include "base/vec.h"
#include "guard/detail/descriptor.h"
#include "guard/detail/mappings.h"
#include "guard/mechanism.h"

namespace headway::guard {

class Aliases {
 public:
  // Several mappings come with each block, and the system allows only so many.
  static constexpr size_t most_blocks = 256;
  static constexpr size_t granularity = 16;  // pages

  struct Taken {
    char* view = nullptr;
    File file;            // what both addresses show
    uint64_t offset = 0;  // of the view in it
  };
  struct Counters {
    uint64_t made = 0;
    uint64_t reused = 0;
    uint64_t grown = 0;
    uint64_t replaced = 0;  // too small, or the program has changed its memory
  };

  // refused, unsupported: this system gives no such memory. `prober` tells what is pinned, and must
  // not become an alias.
  Outcome start(const Descriptor* prober = nullptr);
  // The program keeps its memory as it is.
  void stop();

  // A view of the range, until give(). With `keep`, what the range held is still there, else it may
  // be gone. refused: it is no plain memory of the program. no_memory: a limit was reached. Nothing
  // has changed then.
  Outcome take(Range range, bool keep, Taken& out);
  void give(const char* view);

  // Where else the program sees the page at `view`, or null. Reads the whole address space.
  char* moved_to(const char* view);
  Mappings& mappings() { return mappings_; }

  Counters counters;

 private:
  struct Block {
    Range range;     // where the program sees it
    char* view;      // its whole room
    size_t room;     // pages of view and file
    uint32_t users;  // views that are taken
    uint64_t used;   // when, for the choice of what to drop
    File file;
    bool stale;  // not to be found again
  };
  Block* find(Range range);
  Block* holder(const char* view);
  bool stands(const Block& block, Range range);
  bool next_mapping(const Block& block, const char* from, Mapping& out);
  bool is_plain(Range range);
  bool grow(Block& block, Range range, bool keep);
  Outcome make(Range range, bool keep, Taken& out);
  void retire_overlapped(Range range);
  void sweep(size_t count);
  bool make_room();
  void drop(size_t index);

  const Descriptor* prober_ = nullptr;
  Mappings mappings_;
  base::Vec<Block> blocks_;
  size_t next_swept_ = 0;
  uint64_t clock_ = 0;
};

}  // namespace headway::guard
