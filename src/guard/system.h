// System: which ways of closing pages this process may use, and which one it gets. Plain data, also
// for mpiexec --info. Thread: any, before a mechanism is started. Owner: the caller. Invariant:
// what works has been tried.
#pragma once
#include <cstdint>

#include "base/outcome.h"
#include "guard/mechanism.h"

namespace headway::guard {

// HEADWAY_GUARD, in the order of its words.
enum class Wish : uint8_t { automatic, missing, minor, trap, none };

struct Ability {
  Outcome outcome = Outcome::ok;
  bool sees_kernel = false;  // system calls on closed pages wait; else they fail
  const char* why = "";      // it does not work, or does not see the kernel
};

struct System {
  Ability missing, minor, trap;
  const Ability& of(Kind kind) const {
    return kind == Kind::missing ? missing : kind == Kind::minor ? minor : trap;
  }
};

System look_at_system();
// `why`: it is this one and no better one, or none.
Kind choose(const System& system, Wish wish, const char*& why);
const char* name_of(Kind kind);
// Why the mechanism did not start.
const char* explain(Kind kind, Outcome outcome);

}  // namespace headway::guard
