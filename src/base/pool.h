// Pool<T>: fixed-size objects with small numbers. An object keeps its number and its memory for
// the life of the process; each take raises its generation, so that a stale id is seen.
// Beside each object there may be room for more, in the same block of memory.
// Thread: holder of the engine; at() and find() any, for objects that the caller owns, also while
// another thread makes the pool grow. Owner: the engine. Invariant: find(id) is null unless the
// object is taken and its generation is the id's.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "base/check.h"
#include "base/heap.h"

namespace headway::base {

// T needs the members `uint32_t pool_index; uint32_t generation; T* list_next; bool taken`. The
// third one links those that are free; it is null in one that is taken.
template <class T>
class Pool {
 public:
  static constexpr uint32_t slab_shift = 8;
  static constexpr uint32_t slab_size = 1u << slab_shift;
  static constexpr uint32_t max_slabs = 1u << 14;  // four million objects

  [[nodiscard]] T* take() {
    T* object = free_;
    if (!object) [[unlikely]] {
      if (!grow()) return nullptr;
      object = free_;
    }
    HEADWAY_CHECK(!object->taken);
    free_ = object->list_next;
    object->list_next = nullptr;
    object->taken = true;
    ++object->generation;
    ++in_use_;
    return object;
  }

  void give(T* object) {
    HEADWAY_CHECK(object->taken && !object->list_next && at(object->pool_index) == object);
    object->taken = false;
    object->list_next = free_;
    free_ = object;
    --in_use_;
  }

  T* at(uint32_t index) const {
    const uint32_t slab = index >> slab_shift;
    // Acquire: pairs with grow.
    return slab < slab_count_.load(std::memory_order_acquire)
               ? &slabs_[slab][index & (slab_size - 1)]
               : nullptr;
  }

  T* find(uint32_t index, uint32_t generation) const {
    T* object = at(index);
    return object && object->taken && object->generation == generation ? object : nullptr;
  }

  // Room for so many bytes beside each object, which are there when it is, and are not touched.
  // Before the first take(). Returns what beside() wants.
  size_t reserve(size_t bytes) {
    HEADWAY_CHECK(!slabs_);
    const size_t at = slab_bytes_;
    slab_bytes_ += slab_size * whole_words(bytes);
    return at;
  }
  static void* beside(const T& object, size_t reserved, size_t bytes) {
    const uint32_t place = object.pool_index & (slab_size - 1);
    char* slab = reinterpret_cast<char*>(const_cast<T*>(&object) - place);
    return slab + reserved + place * whole_words(bytes);
  }

  uint32_t in_use() const { return in_use_; }
  uint32_t capacity() const { return slab_count_.load(std::memory_order_relaxed) * slab_size; }

 private:
  static constexpr size_t whole_words(size_t bytes) { return (bytes + 7) / 8 * 8; }

  [[gnu::noinline]] bool grow() {
    if (!slabs_) {
      slabs_ = static_cast<T**>(heap_allocate(max_slabs * sizeof(T*)));
      if (!slabs_) return false;
    }
    const uint32_t count = slab_count_.load(std::memory_order_relaxed);
    if (count == max_slabs) return false;
    T* slab = static_cast<T*>(heap_allocate(slab_bytes_));
    if (!slab) return false;
    // Lowest number first out, so that small programs stay within few cache lines.
    for (uint32_t i = slab_size; i-- > 0;) {
      T* object = new (&slab[i]) T{};
      object->pool_index = count * slab_size + i;
      object->list_next = free_;
      free_ = object;
    }
    slabs_[count] = slab;
    slab_count_.store(count + 1, std::memory_order_release);  // pairs with at
    return true;
  }

  T** slabs_ = nullptr;
  size_t slab_bytes_ = slab_size * sizeof(T);
  std::atomic<uint32_t> slab_count_{0};
  T* free_ = nullptr;
  uint32_t in_use_ = 0;
};

}  // namespace headway::base
