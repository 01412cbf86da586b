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

// Of the ways in which the kernel itself finds a closed page closed.
inline constexpr const char* user_mode =
    "user mode: system calls are trapped before they meet a closed page (full mode takes root, "
    "vm.unprivileged_userfaultfd=1, or access to /dev/userfaultfd)";

struct Ability {
  Outcome outcome = Outcome::ok;
  bool sees_kernel = false;  // system calls wait for closed pages; else they fail
  const char* why = "";      // it does not work, or does not see the kernel
};

struct System {
  Ability missing, minor, trap;
  const Ability& of(Kind kind) const {
    return kind == Kind::missing ? missing : kind == Kind::minor ? minor : trap;
  }
};

System look_at_system();
// `why`: what the chosen one cannot do, or why there is none. For `automatic` that is what is not
// chosen by itself; why missing does not work is told of missing.
Kind choose(const System& system, Wish wish, const char*& why);
const char* name_of(Kind kind);
// Why the mechanism did not start.
const char* explain(Kind kind, Outcome outcome);

}  // namespace headway::guard
