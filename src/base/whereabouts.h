// Whereabouts: in which MPI call a rank is, and with whom. Thread: written by the thread that calls
// MPI, read by the state dump, and by mpiexec out of the rank's memory when a job is ended (so its
// layout is what `whereabouts_layout` says, and no text of it may move or change). Owner: runtime.
// Invariant: `call` is null outside MPI, or one of the library's own constant names.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace headway::base {

inline constexpr int nobody = INT32_MIN;  // a call on many requests, or a collective

// The one list of members. `Cell` is what each lies in.
template <template <class> class Cell>
struct WhereaboutsOf {
  Cell<const char*> call{nullptr};
  Cell<int> peer{nobody};
  Cell<int> tag{nobody};
};
using Whereabouts = WhereaboutsOf<std::atomic>;  // a rank's own
// The same bytes, read out of another process: `call` points into that one's memory.
using WhereaboutsCopy = WhereaboutsOf<std::type_identity_t>;

template <class T>
inline constexpr bool lies_as_in_atomic =
    sizeof(std::atomic<T>) == sizeof(T) && alignof(std::atomic<T>) == alignof(T);
// With equal cells every member has the same offset in both.
static_assert(lies_as_in_atomic<const char*> && lies_as_in_atomic<int>);
static_assert(std::is_standard_layout_v<Whereabouts> && sizeof(Whereabouts) == 16);

// What a rank puts for its launcher under the key "headway-where-RANK": this, and the address of
// its Whereabouts in hexadecimal.
inline constexpr char whereabouts_key[] = "headway-where-";
inline constexpr char whereabouts_layout[] = "1:";

}  // namespace headway::base
