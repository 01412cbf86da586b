#include "guard/detail/stamps.h"

#include <new>

#include "base/heap.h"

namespace headway::guard {
namespace {

// What a page is, whatever its moment.
uint32_t sort_of(uint32_t stamp) { return stamp < Stamps::first ? stamp : Stamps::first; }

}  // namespace

bool Stamps::make_room(Range range) {
  for (const char* at = range.base; at < range.end(); at += here(at, range) * page_bytes) {
    if (find(at)) continue;
    void* memory = base::heap_allocate(sizeof(Table));
    if (!memory) return false;
    auto* table = new (memory) Table{};
    table->key = key_of(at);
    std::atomic<Table*>& head = heads_[table->key % buckets];
    table->next = head.load(std::memory_order_relaxed);
    head.store(table, std::memory_order_release);  // pairs with find
  }
  return true;
}

uint32_t Stamps::at(const char* address) const {
  const Table* table = find(address);
  return table ? table->stamps[index_of(address)] : none;
}

Stamps::State* Stamps::state(const char* address) const {
  Table* table = find(address);
  return table ? &table->states[index_of(address)] : nullptr;
}

void Stamps::set(Range range, uint32_t stamp) {
  each(range, [stamp](uint32_t* stamps, size_t count) {
    for (size_t i = 0; stamps && i < count; ++i) stamps[i] = stamp;
  });
}

void Stamps::yield(Range range) {
  each(range, [](uint32_t* stamps, size_t count) {
    for (size_t i = 0; stamps && i < count; ++i) {
      if (stamps[i] >= first) stamps[i] = yielded;
    }
  });
}

// Table by table, not page by page: a mapping may be far larger than what is used of it.
void Stamps::forget(Range range, bool moments) {
  const uint32_t from = moments ? first : yielded;
  for (std::atomic<Table*>& head : heads_) {
    for (Table* table = head.load(std::memory_order_relaxed); table; table = table->next) {
      const char* base = reinterpret_cast<const char*>(table->key << shift);
      for (size_t i = 0; i < pages; ++i) {
        const char* page = base + i * page_bytes;
        if (page >= range.base && page < range.end() && table->stamps[i] >= from) {
          table->stamps[i] = none;
        }
      }
    }
  }
}

bool Stamps::all_followed(Range range) const {
  bool all = true;
  each(range, [&all](const uint32_t* stamps, size_t count) {
    bool here = stamps != nullptr;
    for (size_t i = 0; stamps && i < count; ++i) here &= stamps[i] >= first;
    all &= here;
  });
  return all;
}

size_t Stamps::alike(Range range) const {
  const uint32_t sort = sort_of(at(range.base));
  size_t count = 1;
  while (count < range.pages && sort_of(at(range.base + count * page_bytes)) == sort) ++count;
  return count;
}

void Stamps::clear() {
  for (std::atomic<Table*>& head : heads_) {
    for (Table* table = head.load(std::memory_order_relaxed); table;) {
      Table* next = table->next;
      base::heap_free(table, sizeof(Table));
      table = next;
    }
    head.store(nullptr, std::memory_order_relaxed);
  }
}

}  // namespace headway::guard
