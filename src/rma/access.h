// Access: the operations of the origin: put, get, accumulate and its like: MPI 5.0, section 12.3.
// Thread: any application thread, without the engine. Owns nothing: requests come from the engine's
// pool. Invariants: arguments were checked by api/, and the target's memory is in the window as far
// as its size is known; what goes out has left its buffers when the call returns.
#pragma once
#include <cstdint>

#include "base/outcome.h"
#include "protocols/user_memory.h"
#include "rma/element.h"
#include "rma/window.h"

namespace headway::protocols {
struct Request;
}
namespace headway::waiting {
class Waiter;
}

namespace headway::rma {

using protocols::UserMemory;

// Where at the target: `at` in bytes from the window's beginning, in a dynamic one the address.
struct There {
  Window& window;
  int rank;
  int64_t at;
  uint64_t count;
  const datatypes::Type& type;

  Target& target() const { return window.target(rank); }
  uint64_t bytes() const { return count * type.size(); }
};

// How the user hears that his operation is over: `asked`: by a request, which is stored in `made`.
struct Handle {
  bool asked = false;
  protocols::Request* made = nullptr;
};

// The bytes of both sides are equally many. no_memory: nothing was done, or not all.
Outcome put(waiting::Waiter& waiter, const There& there, const UserMemory& origin, Handle& handle);
Outcome get(waiting::Waiter& waiter, const There& there, const UserMemory& result, Handle& handle);
Outcome accumulate(waiting::Waiter& waiter, const There& there, const Work& work,
                   const UserMemory& origin, Handle& handle);
// The same, and what was there before goes to `result`. With MPI_NO_OP `origin` means nothing.
Outcome get_accumulate(waiting::Waiter& waiter, const There& there, const Work& work,
                       const UserMemory& origin, const UserMemory& result, Handle& handle);
// One element, and all that is read lies in one piece.
Outcome compare_and_swap(waiting::Waiter& waiter, const There& there, const Work& work,
                         const UserMemory& expected, const UserMemory& fresh,
                         const UserMemory& result);

}  // namespace headway::rma
