// Memory: what of a rank's memory a window shows, as far as this process can touch it, and the
// locks that keep accumulates apart there. Thread: holder of the engine; the stripes are for those
// who do not have the same one. Owner: the window. Invariants: place() never gives a byte that is
// not in the window; whoever changes memory with stripes by an accumulate holds those of all
// elements that he is at.
#pragma once
#include <atomic>
#include <cstdint>
#include <sched.h>

#include "base/list.h"
#include "base/spin_lock.h"
#include "protocols/reach.h"
#include "rma/locks.h"

namespace headway::rma {

// Locks in memory that several processes share, which is zero at first: one for each of a rank's
// blocks in turns, and its lock word.
struct Stripes {
  static constexpr uint32_t count = 16;
  static constexpr uint64_t block = 4096;  // bytes of the window

  struct alignas(64) Stripe {
    std::atomic<uint32_t> held;

    void lock() {
      for (int tries = 0; held.exchange(1, std::memory_order_acquire) != 0; ++tries) {
        // Pairs with unlock(). Its holder may be on this very core.
        if (tries < 64) {
          base::cpu_relax();
        } else {
          sched_yield();
        }
      }
    }
    void unlock() { held.store(0, std::memory_order_release); }
  };
  Stripe stripes[count];
  alignas(64) LockWord lock;  // of MPI_Win_lock, on all of the rank's memory

  // Calls work(i, n) for `elements` in order, `extent` bytes from one to the next and the first at
  // `offset` in the window, so that the stripe of each is held meanwhile: the one of its first
  // byte.
  template <class Each>
  void each(uint64_t offset, uint64_t elements, uint64_t extent, Each&& work) {
    for (uint64_t i = 0; i < elements;) {
      const uint64_t at = offset + i * extent;
      const uint64_t left = block - at % block;
      uint64_t n = (left + extent - 1) / extent;
      if (n > elements - i) n = elements - i;
      Stripe& stripe = stripes[at / block % count];
      stripe.lock();
      work(i, n);
      stripe.unlock();
      i += n;
    }
  }
};

// Attached to a dynamic window.
struct Attached {
  Attached* list_next = nullptr;
  Attached* list_prev = nullptr;
  char* base = nullptr;
  uint64_t size = 0;
  protocols::Reach::Use use;  // no page of it is closed: others may be at it at any time
};

using AttachedList = base::List<Attached>;

struct Memory {
  char* base = nullptr;
  uint64_t size = 0;
  const AttachedList* attached = nullptr;  // of a dynamic window, whose places are addresses
  Stripes* stripes = nullptr;              // null: only holders of our engine come here

  // Where these bytes lie; null: they are not all in the window.
  char* place(int64_t at, uint64_t bytes) const {
    if (attached) [[unlikely]]
      return attached_place(at, bytes);
    const bool is_inside = at >= 0 && uint64_t(at) <= size && bytes <= size - uint64_t(at);
    return is_inside ? base + at : nullptr;
  }

  // The same from `first` on, and at once where there are no stripes.
  template <class Each>
  void by_stripes(const char* first, uint64_t elements, uint64_t extent, Each&& work) const {
    if (!stripes) {
      work(uint64_t(0), elements);
      return;
    }
    stripes->each(uint64_t(first - base), elements, extent, work);
  }

 private:
  char* attached_place(int64_t at, uint64_t bytes) const {
    uint64_t next = uint64_t(at);
    while (const Attached* one = attached_at(next)) {
      const uint64_t there = one->size - (next - reinterpret_cast<uintptr_t>(one->base));
      if (bytes <= there) return reinterpret_cast<char*>(uintptr_t(at));
      next += there;  // goes on in a piece that touches this one
      bytes -= there;
    }
    return nullptr;
  }
  const Attached* attached_at(uint64_t address) const {
    for (const Attached* one = attached->first(); one; one = one->list_next) {
      const uint64_t from = reinterpret_cast<uintptr_t>(one->base);
      if (address >= from && address - from < one->size) return one;
    }
    return nullptr;
  }
};

}  // namespace headway::rma
