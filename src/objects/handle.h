// HandleTable: MPI handles that are neither predefined nor pointers: an index, a generation and
// the kind of object. 31 bits, so that toint needs no table. Thread: any (lookups take no lock,
// changes a spin lock). Owner: runtime. Invariant: slots are reused oldest first, so a freed or
// foreign handle is seen as far as it can be, and never followed.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/heap.h"
#include "base/spin_lock.h"
#include "base/whereabouts.h"

namespace headway::objects {

enum class HandleKind : uint32_t {
  comm = 1,
  group,
  datatype,
  op,
  errhandler,
  info,
  message,
  session,
  window,
  file,
  request,
  keyval,
  // Those of MPI_T have more than 31 bits: no call makes integers of them.
  tool_session = 16,
  tool_option,
  tool_counter,
  tool_enum,
  tool_event,    // who listens to one
  tool_instance  // an event, as long as a callback for it runs
};

inline constexpr uint32_t handle_index_bits = 18;
inline constexpr uint32_t handle_generation_bits = 9;
inline constexpr uint32_t handle_limit = 1u << handle_index_bits;

class HandleTable {
 public:
  explicit constexpr HandleTable(HandleKind kind) : kind_(kind) {}

  // A handle for `object`, or 0 when there is no room.
  [[nodiscard]] uintptr_t add(void* object);
  // The object, or null for a handle that is not (or no longer) valid.
  // In line: every call looks a handle up, and the compiler would call a function for it.
  [[gnu::always_inline]] void* find(uintptr_t handle) const {
    if (handle >> (handle_index_bits + handle_generation_bits) != uintptr_t(kind_)) return nullptr;
    const uint32_t index = uint32_t(handle) & (handle_limit - 1);
    const Slot* slab = slabs_[index >> slab_shift].load(std::memory_order_acquire);
    if (!slab) return nullptr;
    const Slot& slot = slab[index & (slab_size - 1)];
    if (slot.handle.load(std::memory_order_acquire) != handle) return nullptr;  // pairs with add
    return slot.object;
  }
  void remove(uintptr_t handle);
  // Ends the first object from slot `from` on that `ends(object)` is true of, gives it back and
  // sets `from` behind it; null: there is none. Its handle is not valid any more, and never comes
  // again: why_ended() knows it.
  template <class Ends>
  void* end_next(uint32_t& from, uint32_t why, Ends&& ends) {
    base::SpinGuard guard(lock_);
    while (from < made_) {
      Slot& slot = at(from++);
      if (!slot.object || slot.handle.load(std::memory_order_relaxed) == 0) continue;
      if (!ends(slot.object)) continue;
      void* const object = slot.object;
      slot.object = nullptr;
      slot.next_free = why;
      return object;
    }
    return nullptr;
  }
  // What end_next() was told of that handle; 0: nothing.
  uint32_t why_ended(uintptr_t handle);
  // Calls visit(void* object) for each handle in use, until it returns false. Others must not
  // change the table meanwhile.
  template <class Visit>
  void each(Visit&& visit) const {
    for (uint32_t index = 0; index < made_; ++index) {
      const Slot& slot = at(index);
      if (slot.handle.load(std::memory_order_acquire) == 0 || !slot.object) continue;
      if (!visit(slot.object)) return;
    }
  }
  uint32_t count() const { return count_; }
  // Where the table lies, for a reader in another process (base/whereabouts.h).
  void locate(base::Landmarks& marks) const;

 private:
  static constexpr uint32_t slab_shift = 8;
  static constexpr uint32_t slab_size = 1u << slab_shift;
  struct Slot {
    std::atomic<uintptr_t> handle;  // 0 while free
    void* object;
    uint32_t generation;
    uint32_t next_free;  // of one that ended: why
  };
  Slot& at(uint32_t index) const {
    return slabs_[index >> slab_shift].load(std::memory_order_relaxed)[index & (slab_size - 1)];
  }
  bool grow();

  std::atomic<Slot*> slabs_[handle_limit >> slab_shift] = {};
  base::SpinLock lock_;
  HandleKind kind_;
  uint32_t made_ = 0;   // slots that exist
  uint32_t count_ = 0;  // handles in use
  uint32_t free_first_ = ~0u;
  uint32_t free_last_ = ~0u;
};

}  // namespace headway::objects
