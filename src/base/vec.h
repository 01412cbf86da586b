// Vec<T>: a growing array of plain values on the library's own heap. Thread: that of its owner.
// Invariant: T is trivially copyable and destructible.
#pragma once
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "base/check.h"
#include "base/heap.h"

namespace headway::base {

template <class T>
class Vec {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  Vec() = default;
  ~Vec() { heap_free(items_, room_ * sizeof(T)); }
  Vec(const Vec&) = delete;
  Vec& operator=(const Vec&) = delete;
  Vec(Vec&& other) noexcept : items_(other.items_), size_(other.size_), room_(other.room_) {
    other.items_ = nullptr;
    other.size_ = other.room_ = 0;
  }

  [[nodiscard]] bool reserve(size_t room) {
    if (room <= room_) return true;
    T* grown = static_cast<T*>(heap_allocate(room * sizeof(T)));
    if (!grown) return false;
    if (size_) memcpy(static_cast<void*>(grown), items_, size_ * sizeof(T));
    heap_free(items_, room_ * sizeof(T));
    items_ = grown;
    room_ = room;
    return true;
  }
  [[nodiscard]] bool push(const T& item) {
    if (size_ == room_) {
      const T copy = item;  // `item` may lie in the array that moves
      if (!reserve(room_ ? room_ * 2 : 8)) return false;
      items_[size_++] = copy;
      return true;
    }
    items_[size_++] = item;
    return true;
  }
  // Grows or shrinks; new items are zero bytes.
  [[nodiscard]] bool resize(size_t size) {
    if (!reserve(size)) return false;
    if (size > size_) memset(static_cast<void*>(items_ + size_), 0, (size - size_) * sizeof(T));
    size_ = size;
    return true;
  }
  void pop() {
    HEADWAY_CHECK(size_ != 0);
    --size_;
  }
  void clear() { size_ = 0; }
  void remove_unordered(size_t index) {
    HEADWAY_CHECK(index < size_);
    items_[index] = items_[--size_];
  }

  T& operator[](size_t i) { return items_[i]; }
  const T& operator[](size_t i) const { return items_[i]; }
  T* data() { return items_; }
  const T* data() const { return items_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return items_; }
  T* end() { return items_ + size_; }
  const T* begin() const { return items_; }
  const T* end() const { return items_ + size_; }
  T& back() {
    HEADWAY_CHECK(size_ != 0);
    return items_[size_ - 1];
  }

 private:
  T* items_ = nullptr;
  size_t size_ = 0;
  size_t room_ = 0;
};

}  // namespace headway::base
