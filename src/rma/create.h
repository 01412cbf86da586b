// Create: windows are made, get memory and lose it: MPI 5.0, section 12.2. Thread: any application
// thread, without the engine. Owner: a window goes to the caller of make(), and back to dissolve().
// Invariants: all ranks of the window call make() and dissolve() in the same order; what fails on
// one of them fails on all, and each undoes what it did.
#pragma once
#include <cstdint>

#include "base/outcome.h"
#include "base/vec.h"
#include "rma/window.h"

namespace headway::waiting {
class Waiter;
}

namespace headway::rma {

struct Wish {
  int flavor = abi::k_WIN_FLAVOR_CREATE;
  void* base = nullptr;  // of a window that is made of the program's memory
  intptr_t size = 0;
  int64_t unit = 1;
  objects::WindowHints hints{};
  bool direct = true;    // ranks of one host work in one another's memory themselves
  bool follows = false;  // Window::follows
};

// A window of `comm`, which is nobody else's and becomes the window's, also on failure.
// `neighbours`: the processes that share memory with this one. unsupported: the ranks cannot share
// memory as they are to.
Outcome make(waiting::Waiter& waiter, objects::Comm* comm, const Wish& wish,
             const base::Vec<uint32_t>& neighbours, objects::Errhandler* errhandler, Window*& made);
// Waits for the other ranks. The window is gone after it.
Outcome dissolve(waiting::Waiter& waiter, Window* window);

// Dynamic windows. bad_argument: it overlaps what is attached; or it is not attached.
Outcome attach(waiting::Waiter& waiter, Window& window, void* base, uint64_t size);
Outcome detach(waiting::Waiter& waiter, Window& window, const void* base);

}  // namespace headway::rma
