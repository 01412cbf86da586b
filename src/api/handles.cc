// Handles as integers: MPI 5.0, section 20.3.5. Works before MPI_Init. Most handles are 31-bit
// numbers and stand for themselves; requests and messages carry 64 bits and go through a table.
#include "api/detail/requests.h"
#include "base/heap.h"
#include "base/spin_lock.h"
#include "base/vec.h"

namespace headway::api {
namespace {

// Numbers below are handles that stand for themselves.
constexpr int first_number = 1 << 20;

// 64-bit handles and the numbers given for them. A number stays the same as long as its object
// lives; numbers of dead objects are given again. Open addressing by handle.
class Numbers {
 public:
  using IsAlive = bool (*)(uintptr_t handle);
  explicit constexpr Numbers(IsAlive is_alive) : is_alive_(is_alive) {}

  // -1 without memory.
  int number_of(uintptr_t handle) {
    base::SpinGuard guard(lock_);
    if (const int found = look_up(handle); found >= 0) return found + first_number;
    if (used_ == room_ && !make_room()) return -1;
    int index = 0;
    if (free_ >= 0) {
      index = free_;
      free_ = int(handles_[index]);
    } else {
      index = int(made_++);
    }
    handles_[index] = handle;
    ++used_;
    insert(handle, index);
    return index + first_number;
  }
  // 0 for a number that was not given.
  uintptr_t handle_of(int number) {
    base::SpinGuard guard(lock_);
    const int64_t index = int64_t(number) - first_number;
    if (index < 0 || index >= int64_t(made_)) return 0;
    return look_up(handles_[index]) == index ? handles_[index] : 0;
  }

 private:
  static constexpr int empty = -1;
  static size_t hash(uintptr_t handle) { return size_t(handle * 0x9e3779b97f4a7c15u >> 20); }
  size_t mask() const { return 2 * room_ - 1; }

  int look_up(uintptr_t handle) const {
    if (!room_) return -1;
    for (size_t at = hash(handle);; ++at) {
      const int index = places_[at & mask()];
      if (index == empty) return -1;
      if (handles_[index] == handle) return index;
    }
  }
  void insert(uintptr_t handle, int index) {
    size_t at = hash(handle);
    while (places_[at & mask()] != empty) ++at;
    places_[at & mask()] = index;
  }
  // Drops what has died; doubles the tables if more than half is alive.
  bool make_room() {
    size_t alive = 0;
    for (size_t i = 0; i < made_; ++i) alive += is_alive_(handles_[i]);
    const size_t room = !room_ ? 64 : alive > room_ / 2 ? 2 * room_ : room_;
    auto* handles = static_cast<uintptr_t*>(base::heap_allocate(room * sizeof(uintptr_t)));
    auto* places = static_cast<int*>(base::heap_allocate(2 * room * sizeof(int)));
    if (!handles || !places) {
      base::heap_free(handles, room * sizeof(uintptr_t));
      base::heap_free(places, 2 * room * sizeof(int));
      return false;
    }
    uintptr_t* old = handles_;
    base::heap_free(places_, 2 * room_ * sizeof(int));
    const size_t old_room = room_;
    handles_ = handles;
    places_ = places;
    room_ = room;
    used_ = 0;
    free_ = -1;
    for (size_t i = 0; i < 2 * room; ++i) places_[i] = empty;
    for (size_t i = 0; i < made_; ++i) {
      if (is_alive_(old[i])) {
        handles_[i] = old[i];
        insert(old[i], int(i));
        ++used_;
      } else {
        handles_[i] = uintptr_t(intptr_t(free_));
        free_ = int(i);
      }
    }
    base::heap_free(old, old_room * sizeof(uintptr_t));
    return true;
  }

  IsAlive is_alive_;
  base::SpinLock lock_;
  uintptr_t* handles_ = nullptr;  // by number; of free ones: the next free number
  int* places_ = nullptr;         // hash table of 2 * room_ numbers
  size_t room_ = 0;
  size_t made_ = 0;
  size_t used_ = 0;
  int free_ = -1;
};

// With the lock of their table: nothing may be called here that waits or calls the program.
bool request_lives(uintptr_t handle) {
  return process().is_running() && find_request(handle_of<MPI_Request>(handle)) != nullptr;
}
bool message_lives(uintptr_t handle) {
  return process().is_running() &&
         p2p::find_message(process().waiter(), uint32_t(handle), uint32_t(handle >> 32));
}

constinit Numbers requests{request_lives};
constinit Numbers messages{message_lives};

template <class Handle>
int to_int(const char*, Handle handle) {
  return int(value_of(handle));
}
template <class Handle>
Handle from_int(const char*, int number) {
  return handle_of<Handle>(uint32_t(number));
}

int to_number(const char* call, Numbers& numbers, uintptr_t handle) {
  if (handle < uintptr_t(first_number)) return int(handle);  // null handles and their like
  const int number = numbers.number_of(handle);
  if (number < 0) (void)raise({.call = call}, Outcome::no_memory);
  return number;
}
// A number that was not given stands for itself: no call takes it for a valid handle.
template <class Handle>
Handle from_number(const char* call, Numbers& numbers, int number) {
  const uintptr_t handle = number < first_number ? 0 : numbers.handle_of(number);
  return handle ? handle_of<Handle>(handle) : from_int<Handle>(call, number);
}

}  // namespace
}  // namespace headway::api

using namespace headway;
using namespace headway::api;

#include "api/entries/handles.inl"
