// Map<V>: plain values by a 64-bit key, on the library's own heap; linear probing. Thread: that of
// its owner. Invariant: at most three quarters full; V is trivially copyable; a pointer to a value
// lasts until the next insert or erase.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/check.h"
#include "base/heap.h"

namespace headway::matching {

template <class V>
class Map {
  static_assert(std::is_trivially_copyable_v<V>);

 public:
  Map() = default;
  ~Map() { base::heap_free(slots_, memory()); }
  Map(const Map&) = delete;
  Map& operator=(const Map&) = delete;

  V* find(uint64_t key) const {
    if (count_ == 0) return nullptr;
    for (size_t i = home(key); slots_[i].used; i = (i + 1) & mask_) {
      if (slots_[i].key == key) return &slots_[i].value;
    }
    return nullptr;
  }
  // The key is not there yet. Null without memory.
  V* insert(uint64_t key, const V& value) {
    if ((count_ + 1) * 4 > room() * 3 && !grow()) return nullptr;
    HEADWAY_CHECK(!find(key));
    Slot& slot = slots_[free_slot(key)];
    slot = {key, true, value};
    ++count_;
    HEADWAY_CHECK(count_ * 4 <= room() * 3);
    return &slot.value;
  }
  void erase(uint64_t key) {
    if (count_ == 0) return;
    for (size_t i = home(key); slots_[i].used; i = (i + 1) & mask_) {
      if (slots_[i].key != key) continue;
      close_gap(i);
      return;
    }
  }
  // Erases all for which drop(value) is true.
  template <class Drop>
  void erase_if(Drop&& drop) {
    for (size_t i = 0; count_ && i <= mask_;) {
      if (slots_[i].used && drop(slots_[i].value)) {
        close_gap(i);  // and look again: another one may have come here
      } else {
        ++i;
      }
    }
  }
  template <class Visit>
  void each(Visit&& visit) const {
    for (size_t i = 0; count_ && i <= mask_; ++i) {
      if (slots_[i].used) visit(slots_[i].value);
    }
  }
  size_t count() const { return count_; }
  size_t memory() const { return room() * sizeof(Slot); }

 private:
  struct Slot {
    uint64_t key;
    bool used;
    V value;
  };
  size_t room() const { return slots_ ? mask_ + 1 : 0; }
  size_t home(uint64_t key) const {
    const uint64_t mixed = key * 0x9E3779B97F4A7C15u;
    return (mixed ^ mixed >> 32) & mask_;
  }
  size_t free_slot(uint64_t key) const {
    size_t i = home(key);
    while (slots_[i].used) i = (i + 1) & mask_;
    return i;
  }
  // Takes slot `i` out, and moves those after it that were pushed away from their homes.
  void close_gap(size_t i) {
    for (size_t j = (i + 1) & mask_; slots_[j].used; j = (j + 1) & mask_) {
      if (((j - home(slots_[j].key)) & mask_) < ((j - i) & mask_)) continue;
      slots_[i] = slots_[j];
      i = j;
    }
    slots_[i].used = false;
    --count_;
  }
  bool grow() {
    const size_t old = room();
    const size_t wider = old ? old * 2 : 16;
    auto* grown = static_cast<Slot*>(base::heap_allocate(wider * sizeof(Slot)));
    if (!grown) return false;
    memset(static_cast<void*>(grown), 0, wider * sizeof(Slot));
    Slot* before = slots_;
    slots_ = grown;
    mask_ = wider - 1;
    for (size_t i = 0; i < old; ++i) {
      if (before[i].used) slots_[free_slot(before[i].key)] = before[i];
    }
    base::heap_free(before, old * sizeof(Slot));
    return true;
  }

  Slot* slots_ = nullptr;
  size_t mask_ = 0;
  size_t count_ = 0;
};

}  // namespace headway::matching
