// Whereabouts: where the ranks of a job stand, told when the job is ended from outside: by its time
// limit, or by Ctrl-C. A rank of our library tells once where in its memory that is written
// (base/whereabouts.h), and we read it there, so a rank that hangs need not do anything, and no
// signal of the program is used up. Thread: the launcher's only one. Owns nothing.
#pragma once
#include <string>
#include <sys/types.h>
#include <vector>

namespace headway::launcher {

// Where one rank stands.
struct Spot {
  enum class Kind : unsigned char {
    unknown,    // not our library, or its memory may not be read
    before,     // has not called MPI_Init
    computing,  // outside MPI
    in_call,    // inside `call`
    left        // has called MPI_Finalize, and has come out of it
  } kind = Kind::unknown;
  std::string call;
  int peer = 0;  // base::nobody: none, -1: any
  int tag = 0;

  bool operator==(const Spot&) const = default;
};

struct Seen {
  int rank = 0;
  pid_t pid = -1;
  Spot spot;

  bool operator==(const Seen&) const = default;
};

// Reads the spot of a process that put `told` as its place.
Spot look_at(pid_t pid, const std::string& told);

// True if some are known, and all of those are inside MPI.
bool all_wait(const std::vector<Seen>& ranks);
// "rank 0 is in MPI_Send (destination 1, tag 3), rank 1 ...", or "" if nothing is known.
std::string picture_of(const std::vector<Seen>& ranks);
// For ranks that do not move: " Likely cause: ... Likely remedy: ...", or "".
std::string advice_for(const std::vector<Seen>& ranks);

}  // namespace headway::launcher
