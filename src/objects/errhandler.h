// Errhandler: what happens when a call fails. Thread: any; immutable. Owner: reference counted.
#pragma once
#include <atomic>
#include <cstdint>

namespace headway::objects {

enum class ErrhandlerKind : uint8_t { fatal, abort, returning, user };
enum class ErrhandlerTarget : uint8_t { comm, window, file, session };

struct Errhandler {
  std::atomic<uint32_t> references{1};
  std::atomic<uint32_t> handles_given{0};
  uintptr_t handle = 0;
  ErrhandlerKind kind = ErrhandlerKind::fatal;
  ErrhandlerTarget target = ErrhandlerTarget::comm;
  void* function = nullptr;  // of the MPI_x_errhandler_function type of its target

  void retain() { references.fetch_add(1, std::memory_order_relaxed); }
};

// Takes a reference away; a user handler is freed at the last one.
void release(Errhandler* errhandler);

}  // namespace headway::objects
