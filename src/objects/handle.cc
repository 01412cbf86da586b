#include "objects/handle.h"

#include <cstring>

#include "base/check.h"

namespace headway::objects {
namespace {

constexpr uint32_t none = ~0u;
// A slot rests until this many others were freed after it, so stale handles stay recognisable.
constexpr uint32_t rest_slots = 64;

}  // namespace

bool HandleTable::grow() {
  HEADWAY_CHECK(made_ % slab_size == 0 && (free_first_ == none) == (made_ == count_));
  if (made_ == handle_limit) return false;
  auto* slab = static_cast<Slot*>(base::heap_allocate(slab_size * sizeof(Slot)));
  if (!slab) return false;
  memset(static_cast<void*>(slab), 0, slab_size * sizeof(Slot));
  slabs_[made_ >> slab_shift].store(slab, std::memory_order_release);  // pairs with find
  for (uint32_t i = 0; i < slab_size; ++i) {
    const uint32_t index = made_ + i;
    slab[i].next_free = none;
    if (free_last_ != none) {
      at(free_last_).next_free = index;
    } else {
      free_first_ = index;
    }
    free_last_ = index;
  }
  made_ += slab_size;
  return true;
}

uintptr_t HandleTable::add(void* object) {
  base::SpinGuard guard(lock_);
  if (made_ - count_ <= rest_slots && !grow() && free_first_ == none) return 0;
  const uint32_t index = free_first_;
  Slot& slot = at(index);
  HEADWAY_CHECK(slot.handle.load(std::memory_order_relaxed) == 0);
  free_first_ = slot.next_free;
  if (free_first_ == none) free_last_ = none;
  slot.generation = (slot.generation + 1) & ((1u << handle_generation_bits) - 1);
  slot.object = object;
  const uintptr_t handle = uintptr_t(kind_) << (handle_index_bits + handle_generation_bits) |
                           uintptr_t(slot.generation) << handle_index_bits | index;
  slot.handle.store(handle, std::memory_order_release);  // pairs with find
  ++count_;
  HEADWAY_CHECK((free_first_ == none) == (made_ == count_));
  return handle;
}

uint32_t HandleTable::why_ended(uintptr_t handle) {
  base::SpinGuard guard(lock_);
  const uint32_t index = uint32_t(handle) & (handle_limit - 1);
  if (handle == 0 || index >= made_) return 0;
  const Slot& slot = at(index);
  return slot.handle.load(std::memory_order_relaxed) == handle && !slot.object ? slot.next_free : 0;
}

void HandleTable::remove(uintptr_t handle) {
  base::SpinGuard guard(lock_);
  const uint32_t index = uint32_t(handle) & (handle_limit - 1);
  if (index >= made_) return;
  Slot& slot = at(index);
  if (slot.handle.load(std::memory_order_relaxed) != handle || !slot.object) return;
  HEADWAY_CHECK(count_ != 0);
  slot.handle.store(0, std::memory_order_release);
  slot.next_free = none;
  if (free_last_ != none) {
    at(free_last_).next_free = index;
  } else {
    free_first_ = index;
  }
  free_last_ = index;
  --count_;
}

void HandleTable::locate(base::Landmarks& marks) const {
  marks.comm_slabs = uint64_t(reinterpret_cast<uintptr_t>(slabs_));
  marks.comm_slots = uint64_t(reinterpret_cast<uintptr_t>(&made_));
  marks.comm_slab_size = slab_size;
  marks.slot_size = sizeof(Slot);
  marks.slot_handle = offsetof(Slot, handle);
  marks.slot_object = offsetof(Slot, object);
}

}  // namespace headway::objects
