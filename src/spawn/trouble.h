// Trouble: why two groups did not come together: what all their ranks hear alike. Thread: any.
// Owner: none. Invariant: api/ has a sentence for each.
#pragma once
#include <cstdint>

namespace headway::spawn {

enum class [[nodiscard]] Trouble : uint8_t {
  none,
  bad_port,   // no such port, or one that is closed
  no_socket,  // the system gives none, or no addresses
  gone,       // the other side's root has left while they met
  refused,    // the root's own arguments were wrong, of which it tells itself
  version,    // another version of the library
  clash,      // two jobs have drawn the same number
  shared,     // a process is in both groups
  no_memory,
  not_started,  // the launcher says no, or the program has ended before MPI_Init
  no_launcher   // there is none that could start anything
};

// What the other side says, which may be another version.
constexpr Trouble read_trouble(uint8_t said) {
  return said <= uint8_t(Trouble::no_launcher) ? Trouble(said) : Trouble::version;
}

}  // namespace headway::spawn
