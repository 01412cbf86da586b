// Whereabouts: in which MPI call a rank is, and with whom. Thread: written by the thread that calls
// MPI, read by the state dump, and by mpiexec out of the rank's memory when a job is ended (so its
// layout is what `whereabouts_layout` says, and no text of it may move or change). Owner: runtime.
// Invariant: `call` is null outside MPI, or one of the library's own constant names.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace headway::base {

inline constexpr int nobody = INT32_MIN;  // a call on many requests, or a collective

struct Whereabouts {
  std::atomic<const char*> call{nullptr};
  std::atomic<int> peer{nobody};
  std::atomic<int> tag{nobody};
};
static_assert(sizeof(Whereabouts) == 16 && sizeof(std::atomic<int>) == sizeof(int));

// What a rank puts for its launcher under the key "headway-where-RANK": this, and the address of
// its Whereabouts in hexadecimal.
inline constexpr char whereabouts_key[] = "headway-where-";
inline constexpr char whereabouts_layout[] = "1:";

}  // namespace headway::base
