// List<T>: intrusive double list through T::list_next and T::list_prev. Thread: that of its owner.
// Owns nothing. Invariant: an item is in at most one list at a time.
#pragma once
#include <cstddef>

#include "base/check.h"

namespace headway::base {

template <class T>
class List {
 public:
  bool empty() const { return !first_; }
  T* first() const { return first_; }
  T* last() const { return last_; }
  size_t size() const { return size_; }

  void push_back(T* item) { insert(last_, item, nullptr); }
  void push_front(T* item) { insert(nullptr, item, first_); }
  // `next` is in this list.
  void insert_before(T* next, T* item) {
    HEADWAY_CHECK(has_ends(next));
    insert(next->list_prev, item, next);
  }
  void remove(T* item) {
    HEADWAY_CHECK(size_ != 0 && has_ends(item));
    (item->list_prev ? item->list_prev->list_next : first_) = item->list_next;
    (item->list_next ? item->list_next->list_prev : last_) = item->list_prev;
    item->list_next = item->list_prev = nullptr;
    --size_;
  }
  T* pop_front() {
    T* item = first_;
    if (item) remove(item);
    return item;
  }

 private:
  // Between two neighbours; null: none.
  void insert(T* prev, T* item, T* next) {
    HEADWAY_CHECK(is_free(item));
    item->list_prev = prev;
    item->list_next = next;
    (prev ? prev->list_next : first_) = item;
    (next ? next->list_prev : last_) = item;
    ++size_;
  }
  bool is_free(const T* item) const {
    return item != first_ && !item->list_next && !item->list_prev;
  }
  // Its neighbours, or the ends of the list, know it.
  bool has_ends(const T* item) const {
    return (item->list_prev ? item->list_prev->list_next : first_) == item &&
           (item->list_next ? item->list_next->list_prev : last_) == item;
  }

  T* first_ = nullptr;
  T* last_ = nullptr;
  size_t size_ = 0;
};

}  // namespace headway::base
