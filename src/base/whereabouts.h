// Whereabouts: in which MPI call a rank is, with whom, and what shows that it gets on. Thread:
// written by the thread that calls MPI (in a wait: by the one that waits), read by the state dump,
// and by mpiexec out of the rank's memory when a job is ended (so its layout is what
// `whereabouts_layout` says, and no text of it may move or change). Owner: runtime.
// Invariants: `call` is null outside MPI, or one of the library's own constant names; it is written
// last, by a release store that pairs with the launcher's readings, which copy this memory one
// after the other. A call that need not wait counts nothing here: its messages do
// (Landmarks::signs).
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace headway::base {

inline constexpr int nobody = INT32_MIN;  // a call on many requests, or a collective
inline constexpr size_t most_signs = 16;

// Where in the rank's memory the launcher finds what it compares: addresses, and offsets in
// objects. Written once, before the rank tells its place.
struct Landmarks {
  uint64_t signs[most_signs] = {};  // counters: as long as none changes, no message moves
  uint64_t frames_out = 0;          // counters of what left by TCP and came by it; 0: none
  uint64_t frames_in = 0;
  uint64_t connecting = 0;  // of what is not 0 as long as a connection is being made; 0: none
  uint64_t everyone = 0;    // the address of the pointer to the communicator of all ranks
  uint64_t comm_slabs = 0;  // the table of the others: addresses of `comm_slab_size` slots each
  uint64_t comm_slots = 0;  // address of the 32-bit number of slots that there are
  uint32_t comm_slab_size = 0, slot_size = 0, slot_handle = 0, slot_object = 0;
  // In a communicator: 64-bit context, pointer to the group, 32-bit count of collectives, name, and
  // pointer to the group of whom it talks with: of an inter-communicator another one. 0: none.
  uint32_t context = 0, group = 0, collectives = 0, name = 0, peers = 0;
  // In a group: 32-bit size, pointer to the 32-bit ranks in the job.
  uint32_t size = 0, members = 0;
  uint64_t unmatched =
      0;  // the address of an Unmatched; 0: no receive is released before its match
  // 32-bit words: not 0 while whatever comes wakes the message thread, and that one's id.
  uint64_t armed = 0, thread = 0;
};

// The one list of members. `Cell` is what each lies in.
template <template <class> class Cell>
struct WhereaboutsOf {
  Cell<const char*> call{nullptr};
  Cell<int> peer{nobody};
  Cell<int> tag{nobody};            // of a collective: its root
  Cell<const void*> comm{nullptr};  // that the call is on
  // Of a thread that waits: waits that have ended, looks at everything that found nothing, how
  // often such looks began anew since something had moved, the rank in the job that it needs, its
  // id while it sleeps.
  Cell<uint64_t> waits{0};
  Cell<uint64_t> vain{0};
  Cell<uint64_t> moves{0};
  Cell<int> awaited{nobody};
  Cell<int> asleep{0};
  // Of calls that only look (MPI_Test, MPI_Iprobe): the last that found nothing, and how many.
  Cell<const char*> poll{nullptr};
  Cell<int> poll_peer{nobody};
  Cell<int> poll_tag{nobody};
  Cell<uint64_t> polls{0};
  Cell<int> many_threads{0};  // several threads may be in calls at once (MPI_THREAD_MULTIPLE)
  Cell<int> abroad{0};        // it is connected with other jobs, or about to be: they may wake it
  Cell<const Landmarks*> landmarks{nullptr};
  // Where in the program the call stands (base/call_site.h): of the wait that was under way when
  // `waits` had this value, once it has lasted a moment. Written before that value.
  Cell<uintptr_t> site{0};
  Cell<uint64_t> site_waits{UINT64_MAX};
};
using Whereabouts = WhereaboutsOf<std::atomic>;  // a rank's own
// The same bytes, read out of another process: the pointers point into that one's memory.
using WhereaboutsCopy = WhereaboutsOf<std::type_identity_t>;

// A receive that was released before its match and has none yet: the first of them. Until it has,
// nothing leaves the rank that was not begun before (protocols/release), whatever its threads do:
// so its process waits for that message, also where it computes, and where a thread of it is held
// in the kernel since it has touched a page, and could tell nothing. Written by the holder of the
// engine, `serial` last.
template <template <class> class Cell>
struct UnmatchedOf {
  Cell<uint64_t> serial{0};         // of each that was ever told here another one; 0: there is none
  Cell<const char*> call{nullptr};  // that released it
  Cell<int> peer{nobody};
  Cell<int> tag{nobody};
  Cell<int> awaited{nobody};  // rank in the job that the message is to come from
  Cell<int> reserved{0};
  Cell<uint64_t> context{0};  // of its communicator
  Cell<uintptr_t> site{0};    // where in the program that call stands
};
using Unmatched = UnmatchedOf<std::atomic>;
using UnmatchedCopy = UnmatchedOf<std::type_identity_t>;

template <class T>
inline constexpr bool lies_as_in_atomic =
    sizeof(std::atomic<T>) == sizeof(T) && alignof(std::atomic<T>) == alignof(T);
// With equal cells every member has the same offset in both.
static_assert(lies_as_in_atomic<const char*> && lies_as_in_atomic<int> &&
              lies_as_in_atomic<uint64_t>);
static_assert(std::is_standard_layout_v<Whereabouts> && sizeof(Whereabouts) == 112);
static_assert(std::is_standard_layout_v<Unmatched> && sizeof(Unmatched) == 48);

// One change by the only writer: a load and a store.
inline void count(std::atomic<uint64_t>& counter) {
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// What a rank puts for its launcher under the key "headway-where-RANK": this, and the address of
// its Whereabouts in hexadecimal.
inline constexpr char whereabouts_key[] = "headway-where-";
inline constexpr char whereabouts_layout[] = "4:";

}  // namespace headway::base
