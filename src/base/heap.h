// Heap: memory for the library's own state, from mmap alone. Never malloc: an application thread
// may be stopped on a guarded page inside malloc while the message thread needs memory.
// Thread: any (spin locks, held for a few instructions). Invariants: blocks are 16-byte aligned;
// the caller gives the size back when it frees; nobody waits long for a lock, since its holder may
// be in a signal handler that waits for the message thread.
#pragma once
#include <cstddef>
#include <cstdint>

namespace headway::base {

// Bytes of at least `size`, not zeroed, or null when the system has no memory.
[[nodiscard]] void* heap_allocate(size_t size);
// Gives back what heap_allocate(size) returned; null is allowed.
void heap_free(void* block, size_t size);
// Whether a byte of [from, from + n) may be the heap's, handed out or not.
bool heap_holds(const void* from, size_t n);
// Bytes handed out at this moment, and bytes taken from the system.
size_t heap_in_use();
size_t heap_reserved();

}  // namespace headway::base
