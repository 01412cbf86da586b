#include "base/heap.h"

#include <atomic>
#include <sys/mman.h>

#include "base/spin_lock.h"

namespace headway::base {
namespace {

// Size classes are powers of two from 32 bytes to 64 KB, cut from 256 KB regions; larger blocks
// are mappings of their own.
constexpr size_t smallest_shift = 5;
constexpr size_t largest_shift = 16;
constexpr size_t class_count = largest_shift - smallest_shift + 1;
constexpr size_t region_bytes = 256 << 10;
constexpr size_t page_bytes = 4096;

struct FreeBlock {
  FreeBlock* next;
};

struct SizeClass {
  SpinLock lock;
  FreeBlock* free = nullptr;
  char* fresh = nullptr;  // rest of the region being cut
  char* fresh_end = nullptr;
};

constinit SizeClass classes[class_count];
constinit std::atomic<size_t> in_use{0};
constinit std::atomic<size_t> reserved{0};

size_t class_of(size_t size) {
  if (size <= (1u << smallest_shift)) return 0;
  return 64 - size_t(__builtin_clzl(size - 1)) - smallest_shift;
}

void* map(size_t bytes) {
  void* block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) return nullptr;
  reserved.fetch_add(bytes, std::memory_order_relaxed);
  return block;
}

size_t round_to_pages(size_t size) { return (size + page_bytes - 1) & ~(page_bytes - 1); }

}  // namespace

void* heap_allocate(size_t size) {
  const size_t index = class_of(size);
  if (index >= class_count) {
    void* block = map(round_to_pages(size));
    if (block) in_use.fetch_add(size, std::memory_order_relaxed);
    return block;
  }
  SizeClass& sizes = classes[index];
  const size_t block_bytes = size_t(1) << (index + smallest_shift);
  SpinGuard guard(sizes.lock);
  if (FreeBlock* block = sizes.free) {
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
  sizes.fresh += block_bytes;
  in_use.fetch_add(size, std::memory_order_relaxed);
  return block;
}

void heap_free(void* block, size_t size) {
  if (!block) return;
  in_use.fetch_sub(size, std::memory_order_relaxed);
  const size_t index = class_of(size);
  if (index >= class_count) {
    munmap(block, round_to_pages(size));
    reserved.fetch_sub(round_to_pages(size), std::memory_order_relaxed);
    return;
  }
  SizeClass& sizes = classes[index];
  SpinGuard guard(sizes.lock);
  auto* freed = static_cast<FreeBlock*>(block);
  freed->next = sizes.free;
  sizes.free = freed;
}

size_t heap_in_use() { return in_use.load(std::memory_order_relaxed); }
size_t heap_reserved() { return reserved.load(std::memory_order_relaxed); }

}  // namespace headway::base
