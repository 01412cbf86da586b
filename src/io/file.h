// File: an open file as all its ranks share it: the descriptor of this rank, its view, its
// pointers. Thread: any; `lock` guards the individual pointer and the view, counters and the split
// collective are changed with the engine held or by the program's own order of calls. Owner:
// reference counted: the handle, and every access under way. Invariants: messages about it have a
// context of their own; it is open on all ranks of its communicator or on none.
#pragma once
#include <atomic>
#include <cstdint>
#include <pthread.h>

#include "base/spin_lock.h"
#include "base/vec.h"
#include "io/ahead.h"
#include "io/disk.h"
#include "io/hints.h"
#include "io/shared_pointer.h"
#include "io/view.h"
#include "objects/comm.h"
#include "objects/registry.h"

namespace headway::waiting {
class Waiter;
}

namespace headway::io {

class Operation;

// What the functions need of the process.
struct Place {
  waiting::Waiter& waiter;
  objects::Registry& registry;
  uint64_t (*new_context)();
};

// Of a split collective between its begin and its end.
struct Split {
  const char* begun = nullptr;  // the call; null: none is under way
  const void* buffer = nullptr;
  Operation* operation = nullptr;
};

struct File {
  std::atomic<uint32_t> references{1};
  uintptr_t handle = 0;
  objects::Comm* comm = nullptr;
  objects::Errhandler* errhandler = nullptr;
  Disk disk;
  Ahead ahead;
  int mode = 0;  // MPI_MODE_x
  Hints hints;
  const char* name = "";
  size_t name_bytes = 0;

  base::SpinLock lock;
  View* view = nullptr;
  int64_t position = 0;  // the individual pointer, in etypes
  SharedPointer shared;
  Split split;
  int64_t pending = 0;  // accesses that a request stands for; with the engine held
  Failure unheard;      // of one whose request the program has freed; likewise

  std::atomic<bool> atomic{false};
  std::atomic<bool> written{false};   // by this rank, since the last sync
  std::atomic<bool> no_locks{false};  // its file system has refused one
  // An access in atomic mode: locks of one descriptor do not shut each other out.
  pthread_mutex_t atomic_lock = PTHREAD_MUTEX_INITIALIZER;

  bool may_read() const;
  bool may_write() const;
  bool is_sequential() const;
  void retain() { references.fetch_add(1, std::memory_order_relaxed); }
  // With a reference for the caller.
  View* take_view();
  // Takes over the reference to `made`; all pointers but the shared one begin anew.
  void use_view(View* made);
  // Etypes of the view that lie below the end of the file; one that is cut counts.
  Failure end_of_file(int64_t& etypes);
};

void release(File* file);

struct Opening {
  objects::Comm* comm;
  const char* name;  // null: this rank's arguments are wrong, and the others are to hear it
  int mode;
  const Hints& hints;
  objects::Errhandler* errhandler;
};

// How collective calls on files end.
enum class Verdict : uint8_t {
  done,
  failed,    // the failure says where
  differ,    // the ranks have passed different arguments
  elsewhere  // another rank's arguments are wrong: that one says what
};

struct Ending {
  Verdict verdict = Verdict::done;
  Failure failure;
  Outcome outcome = Outcome::ok;  // of the messages
  bool is_good() const { return verdict == Verdict::done && outcome == Outcome::ok; }
};

// All of these are collective and wait; without the engine. `file` has its handle.
Ending open(const Place& place, const Opening& wish, File*& file);
// Gives the descriptor back, in any case. The handle is gone, and one reference.
Ending close(const Place& place, File& file);
// The word of a rank whose arguments are wrong is `good` = false: all ranks learn it. The view of a
// sequential file begins where its shared pointer is when all ranks are there.
Ending set_view(const Place& place, File& file, View* made, bool good);
Ending set_size(const Place& place, File& file, int64_t bytes, bool reserves, bool good);
Ending set_atomicity(const Place& place, File& file, bool atomic);
// `whence`: MPI_SEEK_x. All are there when the first rank looks where its pointer, or the end, is.
Ending seek_shared(const Place& place, File& file, int64_t offset, int whence, bool good);
// Where this rank's part of an ordered access begins; the shared pointer goes on by all parts.
Ending take_turn(const Place& place, File& file, int64_t etypes, int64_t& begin);
// Not collective: the shared pointer as it was before it went on by `etypes`.
Outcome move_shared(const Place& place, File& file, int64_t etypes, int64_t& before);

// Of this rank alone: what the program has written is on the disk, or seen by other machines. Tells
// also of a write that has failed, and whose request the program has freed.
Failure sync(const Place& place, File& file);
// Ends what the program has left open on communicators of that session, or of none, without the
// other ranks. How many there were.
uint32_t abandon_all(const Place& place, const objects::Session* session);

}  // namespace headway::io
