// Failure: what went wrong with a file: the system's number for it, what was done, and where. The
// story of an Outcome::file_failed; api/ makes a class and a sentence of it. Thread: any, a plain
// value. Owner: none. Invariant: an error of 0 is no failure.
#pragma once
#include <cerrno>
#include <cstdint>

namespace headway::io {

// Beside the system's numbers, which are positive.
inline constexpr int bad_conversion = -1;   // a function of the program says so, or the data does
inline constexpr int value_too_large = -2;  // a value that the data representation has no room for
inline constexpr int beyond_view = -3;      // the view ends, or has no byte at all
inline constexpr int before_view = -6;      // a place before the first byte of the view
inline constexpr int not_the_same = -5;     // some ranks write, others read
inline constexpr int peer_failed = -4;      // the other ranks' messages did not come through

inline constexpr int this_rank = -1;
inline constexpr int64_t no_place = -1;

struct Failure {
  int error = 0;
  const char* act = "access";  // as in "could not write"
  int64_t offset = no_place;   // byte of the file
  int rank = this_rank;        // that met it, of the file's communicator

  explicit operator bool() const { return error != 0; }
};

}  // namespace headway::io
