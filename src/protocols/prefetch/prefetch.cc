// What is known of messages that come again and again: the tables of both sides.
#include "protocols/prefetch/prefetch.h"

#include <new>

#include "base/check.h"
#include "protocols/ways/order.h"
#include "protocols/ways/pieces.h"

namespace headway::protocols {
namespace {

using guard::page_bytes;

uint64_t mixed(uint64_t a, uint64_t b) {
  const uint64_t product = (a ^ b * 0xC2B2AE3D27D4EB4Fu) * 0x9E3779B97F4A7C15u;
  return product ^ product >> 32;
}

// Tags of collectives count up from one call to the next.
int32_t lasting_tag(const matching::Key& key, matching::Traffic traffic) {
  return traffic.collective ? -1 - int32_t(traffic.collective) : key.tag;
}

template <class T>
T* make_table(uint32_t entries) {
  auto* table = static_cast<T*>(base::heap_allocate(entries * sizeof(T)));
  for (uint32_t i = 0; table && i < entries; ++i) new (&table[i]) T{};
  return table;
}

}  // namespace

bool Predictions::prepare() {
  if (!entries_) entries_ = make_table<Prediction>(sets * ways);
  return entries_;
}

Prediction* Predictions::set_of(const char* buffer, uint64_t context, int32_t tag, uint32_t peer) {
  const uint64_t where = reinterpret_cast<uintptr_t>(buffer) >> 3;
  return entries_ +
         mixed(where, mixed(context, uint64_t(uint32_t(tag)) << 32 | peer)) % sets * ways;
}

Prediction* Predictions::find(const char* buffer, const matching::Key& key,
                              matching::Traffic traffic, uint32_t peer) {
  if (!entries_) return nullptr;
  const int32_t tag = lasting_tag(key, traffic);
  Prediction* set = set_of(buffer, key.context, tag, peer);
  for (Prediction* entry = set; entry < set + ways; ++entry) {
    if (entry->origin && entry->buffer == buffer && entry->context == key.context &&
        entry->tag == tag && entry->peer == peer) {
      return entry;
    }
  }
  return nullptr;
}

Prediction* Predictions::note(const char* buffer, const matching::Key& key,
                              matching::Traffic traffic, uint32_t peer, uint32_t origin,
                              uint64_t size) {
  if (!prepare()) return nullptr;
  Prediction* entry = find(buffer, key, traffic, peer);
  if (entry && entry->origin == origin &&
      (entry->size == size || (traffic.collective && is_near(entry->size, size)))) {
    ++entry->seen;
    entry->size = size;
    if (entry->rest) --entry->rest;
    return entry;
  }
  if (!entry) {
    const int32_t tag = lasting_tag(key, traffic);
    Prediction* set = set_of(buffer, key.context, tag, peer);
    entry = set + ++victim_ % ways;
    for (Prediction* other = set; other < set + ways; ++other) {
      if (!other->origin) entry = other;
    }
    *entry = {.buffer = buffer, .context = key.context, .peer = peer, .tag = tag};
  }
  entry->origin = origin;
  entry->size = size;
  entry->seen = 1;
  return entry;
}

bool Origins::prepare() {
  if (entries_) return true;
  entries_ = make_table<Origin>(sets * ways);
  for (uint32_t i = 0; entries_ && i < sets * ways; ++i) entries_[i].index = i;
  return entries_;
}

Origin* Origins::set_of(const char* address, uint64_t size, uint32_t peer) {
  const uint64_t where = reinterpret_cast<uintptr_t>(address) >> 3;
  return entries_ + mixed(where, mixed(size, peer)) % sets * ways;
}

Origin* Origins::find(uint32_t id, uint32_t peer) {
  Origin* origin = entries_ ? &entries_[id & ((1u << index_bits) - 1)] : nullptr;
  if (!origin || !origin->address || id_of(*origin) != id) return nullptr;
  return origin->peer == peer ? origin : nullptr;
}

Origin* Origins::find(const char* address, uint64_t size, uint32_t peer) {
  if (!entries_) return nullptr;
  Origin* set = set_of(address, size, peer);
  for (Origin* origin = set; origin < set + ways; ++origin) {
    if (origin->address == address && origin->size == size && origin->peer == peer) return origin;
  }
  return nullptr;
}

Origin* Origins::take(const char* address, uint64_t size, uint32_t peer) {
  if (!prepare()) return nullptr;
  if (Origin* known = find(address, size, peer)) return known;
  Origin* set = set_of(address, size, peer);
  Origin* origin = nullptr;
  for (uint32_t i = 0; i < ways; ++i) {
    Origin* other = set + (victim_ + i) % ways;
    if (!origin && !other->watched && !other->kept) origin = other;
    if (!other->address) {
      origin = other;
      break;
    }
  }
  if (!origin) return nullptr;
  ++victim_;
  // A number is never used twice, nor is 0: that stands for none.
  const uint32_t index = origin->index;
  const uint32_t generation = (origin->generation + 1) & ((1u << (32 - index_bits)) - 1);
  *origin = {};
  origin->peer = peer;
  origin->index = index;
  origin->generation = generation ? generation : 1;
  place(*origin, address, size);
  return origin;
}

void Origins::place(Origin& origin, const char* address, uint64_t size) {
  origin.address = address;
  origin.size = size;
  origin.grid = {uint32_t(-reinterpret_cast<uintptr_t>(address) % Grid::page), size};
  if (origin.grid.first > size) origin.grid.first = uint32_t(size);
}

bool cover(Transfer& transfer, const Grid& grid, const uint64_t* pages) {
  if (!transfer.order && !begin_order(transfer, 0)) return false;
  const uint64_t most = transfer.order->pages(), head = transfer.head;
  PageSet::for_each_run(pages, grid.pages(), [&](uint64_t begin, uint64_t end) {
    const uint64_t from = grid.begin(begin), to = grid.begin(end);
    const uint64_t first = from <= head ? 0 : (from - head + page_bytes - 1) / page_bytes;
    uint64_t last = to <= head ? 0 : (to - head) / page_bytes;
    if (last > most) last = most;
    if (first >= last) return;
    transfer.order->leave_out(first, last - first);
    transfer.covered += (last - first) * page_bytes;
  });
  transfer.moved += transfer.covered;
  HEADWAY_CHECK(transfer.moved <= transfer.total);
  return true;
}

}  // namespace headway::protocols
