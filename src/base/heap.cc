#include "base/heap.h"

#include <atomic>
#include <sys/mman.h>

#include "base/check.h"
#include "base/spin_lock.h"

namespace headway::base {
namespace {

// Size classes are powers of two from 32 bytes to 64 KB, cut from 256 KB regions; larger blocks
// are mappings of their own. Those up to 16 MB, the largest message that is copied aside, are of
// such sizes, too, and some stay here when they are freed: to fault new pages in costs more than
// most uses of a block (8 MB: 6 ms here, to copy them 1).
constexpr size_t smallest_shift = 5;
constexpr size_t largest_shift = 16;
constexpr size_t largest_kept_shift = 24;
constexpr size_t class_count = largest_shift - smallest_shift + 1;
constexpr size_t kept_class_count = largest_kept_shift - largest_shift;
constexpr size_t most_kept_bytes = 16 << 20;
constexpr size_t region_bytes = 256 << 10;
constexpr size_t page_bytes = 4096;
constexpr size_t huge_bytes = 2 << 20;

struct FreeBlock {
  FreeBlock* next;
};

struct SizeClass {
  SpinLock lock;
  FreeBlock* free = nullptr;
  std::atomic<FreeBlock*> freed{nullptr};  // by those who did not get the lock
  char* fresh = nullptr;                   // rest of the region being cut
  char* fresh_end = nullptr;
};

// Free mappings, by size class.
struct Kept {
  SpinLock lock;
  size_t bytes = 0;
  FreeBlock* free[kept_class_count] = {};
};

constinit SizeClass classes[class_count];
constinit Kept kept;
constinit std::atomic<size_t> in_use{0};
constinit std::atomic<size_t> reserved{0};

size_t class_of(size_t size) {
  if (size <= (1u << smallest_shift)) return 0;
  return 64 - size_t(__builtin_clzl(size - 1)) - smallest_shift;
}

// Where the mappings are. While there are more than can be told apart, nobody knows. A place that
// is not free to be removed stays: it is only said to be the heap's.
struct Places {
  static constexpr size_t room = 1024;
  struct Place {
    char* from;
    size_t bytes;
  };

  SpinLock lock;
  size_t count = 0;
  std::atomic<size_t> unknown{0};
  Place all[room] = {};

  void add(char* from, size_t bytes) {
    const SoonGuard guard(lock);
    if (!guard.holds() || count == room) {
      ++unknown;
    } else {
      all[count++] = {from, bytes};
    }
  }
  void remove(const char* from) {
    const SoonGuard guard(lock);
    if (!guard.holds()) return;
    for (size_t i = count; i-- > 0;) {  // what comes late goes early
      if (all[i].from != from) continue;
      all[i] = all[--count];
      return;
    }
    --unknown;
  }
  bool hold(const char* from, const char* to) {
    const SoonGuard guard(lock);
    if (!guard.holds()) return true;
    bool found = unknown != 0;
    for (size_t i = 0; i < count && !found; ++i) {
      found = from < all[i].from + all[i].bytes && all[i].from < to;
    }
    return found;
  }
};

constinit Places places;

void* map(size_t bytes) {
  void* block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) return nullptr;
  // Where the system has them, a fault for 2 MB costs little more than one for 4 KB.
  if (bytes >= huge_bytes) madvise(block, bytes, MADV_HUGEPAGE);
  reserved.fetch_add(bytes, std::memory_order_relaxed);
  places.add(static_cast<char*>(block), bytes);
  return block;
}

size_t round_to_pages(size_t size) { return (size + page_bytes - 1) & ~(page_bytes - 1); }
size_t bytes_of_class(size_t index) { return size_t(1) << (index + smallest_shift); }

// A block of that class begins where only such a block does: at a multiple of its size, or of a
// page.
bool may_be_block(const void* block, size_t index) {
  const size_t bytes = index < class_count ? bytes_of_class(index) : page_bytes;
  return reinterpret_cast<uintptr_t>(block) % (bytes < page_bytes ? bytes : page_bytes) == 0;
}

// A block beyond the small classes. `index`: its class, kept or not.
void* take_mapping(size_t index, size_t size) {
  if (index >= class_count + kept_class_count) return map(round_to_pages(size));
  {
    const SoonGuard guard(kept.lock);
    FreeBlock*& free = kept.free[index - class_count];
    if (FreeBlock* block = guard.holds() ? free : nullptr) {
      HEADWAY_CHECK(may_be_block(block, index) && kept.bytes >= bytes_of_class(index));
      free = block->next;
      kept.bytes -= bytes_of_class(index);
      return block;
    }
  }
  return map(bytes_of_class(index));
}

void unmap(void* block, size_t bytes) {
  places.remove(static_cast<char*>(block));  // before others may get the place
  munmap(block, bytes);
  reserved.fetch_sub(bytes, std::memory_order_relaxed);
}

// What goes back to the system so that another block may stay.
struct Dropped {
  static constexpr size_t room = 16;
  size_t count = 0;
  struct {
    void* block;
    size_t bytes;
  } all[room];

  // Locked. The smallest first: they cost least when they are needed again.
  void make_room(size_t bytes) {
    for (size_t index = 0; index < kept_class_count; ++index) {
      FreeBlock*& free = kept.free[index];
      while (free && count < room && kept.bytes + bytes > most_kept_bytes) {
        const size_t less = bytes_of_class(class_count + index);
        all[count++] = {free, less};
        free = free->next;
        kept.bytes -= less;
      }
    }
  }
  void unmap_all() const {
    for (size_t i = 0; i < count; ++i) unmap(all[i].block, all[i].bytes);
  }
};

void give_mapping(void* block, size_t index, size_t size) {
  if (index >= class_count + kept_class_count) {
    unmap(block, round_to_pages(size));
    return;
  }
  const size_t bytes = bytes_of_class(index);
  Dropped dropped;
  bool stays = false;
  {
    const SoonGuard guard(kept.lock);
    if (guard.holds()) {
      dropped.make_room(bytes);  // the last one to be freed is the likeliest to be needed
      stays = kept.bytes + bytes <= most_kept_bytes;
    }
    if (stays) {
      kept.bytes += bytes;
      auto* freed = static_cast<FreeBlock*>(block);
      freed->next = kept.free[index - class_count];
      kept.free[index - class_count] = freed;
    }
  }
  dropped.unmap_all();
  if (!stays) unmap(block, bytes);
}

}  // namespace

void* heap_allocate(size_t size) {
  const size_t index = class_of(size);
  if (index >= class_count) {
    void* block = take_mapping(index, size);
    if (block) in_use.fetch_add(size, std::memory_order_relaxed);
    return block;
  }
  SizeClass& sizes = classes[index];
  const size_t block_bytes = bytes_of_class(index);
  const SoonGuard guard(sizes.lock);
  if (!guard.holds()) {
    void* block = map(round_to_pages(block_bytes));
    if (block) in_use.fetch_add(size, std::memory_order_relaxed);
    return block;
  }
  // Pairs with heap_free().
  if (!sizes.free) sizes.free = sizes.freed.exchange(nullptr, std::memory_order_acquire);
  if (FreeBlock* block = sizes.free) {
    HEADWAY_CHECK(may_be_block(block, index));
    sizes.free = block->next;
    in_use.fetch_add(size, std::memory_order_relaxed);
    return block;
  }
  if (size_t(sizes.fresh_end - sizes.fresh) < block_bytes) {
    char* region = static_cast<char*>(map(region_bytes));
    if (!region) return nullptr;
    sizes.fresh = region;
    sizes.fresh_end = region + region_bytes;
  }
  void* block = sizes.fresh;
  HEADWAY_CHECK(may_be_block(block, index));
  sizes.fresh += block_bytes;
  in_use.fetch_add(size, std::memory_order_relaxed);
  return block;
}

void heap_free(void* block, size_t size) {
  if (!block) return;
  const size_t index = class_of(size);
  HEADWAY_CHECK(heap_in_use() >= size && may_be_block(block, index));
  in_use.fetch_sub(size, std::memory_order_relaxed);
  if (index >= class_count) {
    give_mapping(block, index, size);
    return;
  }
  SizeClass& sizes = classes[index];
  const SoonGuard guard(sizes.lock);
  auto* freed = static_cast<FreeBlock*>(block);
  if (guard.holds()) {
    freed->next = sizes.free;
    sizes.free = freed;
    return;
  }
  freed->next = sizes.freed.load(std::memory_order_relaxed);
  while (!sizes.freed.compare_exchange_weak(freed->next, freed,
                                            std::memory_order_release,  // pairs with heap_allocate
                                            std::memory_order_relaxed)) {
  }
}

bool heap_holds(const void* from, size_t n) {
  const char* begin = static_cast<const char*>(from);
  return places.hold(begin, begin + n);
}

size_t heap_in_use() { return in_use.load(std::memory_order_relaxed); }
size_t heap_reserved() { return reserved.load(std::memory_order_relaxed); }

}  // namespace headway::base
