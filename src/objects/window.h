// Window: what the handle of a window for one-sided communication shows: its ranks, its own memory,
// its name, hints, attributes and handler. How its memory is accessed is in rma/, whose windows are
// made of this. Thread: any; what changes after creation is changed by the user's own calls. Owner:
// reference counted; the handle has the only reference as a rule. Invariant: `comm` is the window's
// own, and nobody else has a handle of it.
#pragma once
#include <atomic>
#include <cstdint>

#include "objects/attributes.h"
#include "objects/comm.h"
#include "objects/errhandler.h"
#include "settings/abi_constants.h"

namespace headway::objects {

// Hints of a window's info, as MPI 5.0, section 12.2.1, has them.
struct WindowHints {
  static constexpr uint32_t rar = 1, raw = 2, war = 4, waw = 8;  // orders of accumulates

  bool no_locks = false;
  bool same_size = false, same_disp_unit = false;
  bool noncontig = false;  // alloc_shared_noncontig
  bool same_op = false;    // accumulate_ops: without MPI_NO_OP beside it
  uint32_t ordering = rar | raw | war | waw;
  int64_t granularity = 0;  // mpi_accumulate_granularity, bytes
};

struct Window {
  std::atomic<uint32_t> references{1};
  uintptr_t handle = 0;
  Comm* comm = nullptr;
  Errhandler* errhandler = nullptr;
  Attributes attributes;  // has a lock of its own
  WindowHints hints;
  // What the predefined attributes point to.
  void* base = nullptr;
  intptr_t size = 0;
  int disp_unit = 1;
  int flavor = abi::k_WIN_FLAVOR_CREATE;
  int model = abi::k_WIN_UNIFIED;
  char name[max_object_name] = {};

  bool is_dynamic() const { return flavor == abi::k_WIN_FLAVOR_DYNAMIC; }
};

// Takes over the hints that `info` has; others, and unknown keys, stay what they are.
void take_hints(WindowHints& hints, const Info& info);
// All hints with their values. False without memory.
[[nodiscard]] bool tell_hints(const WindowHints& hints, Info& info);

}  // namespace headway::objects
