// Mechanism: one way to close pages of the program and to open them with what arrived. There are
// three: userfaultfd on missing pages, and what hangs in place of pages that are moved aside
// (Curtain): memory that userfaultfd watches, or memory without access and a signal. (Section 2.2
// of the early-release paper.) Thread: any, one at a time
// (Guard's lock), but for serve(). Owner: Guard. Invariant: a range is closed once at a time, and
// each of its pages opened once.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/outcome.h"

namespace headway::guard {

inline constexpr size_t page_bytes = 4096;

enum class Kind : uint8_t {
  none,     // nothing can be closed here
  missing,  // userfaultfd MISSING, data are copied into fresh pages
  minor,    // pages are moved aside, userfaultfd holds who touches their place
  trap      // the same, and SIGSEGV does: the paper's
};

// A range of whole pages of the program.
struct Range {
  char* base = nullptr;
  size_t pages = 0;

  char* end() const { return base + pages * page_bytes; }
  size_t bytes() const { return pages * page_bytes; }
};

// What somebody did to closed pages.
enum class Event : uint8_t {
  touched,   // a thread waits for this page
  dropped,   // the program gave the contents away (MADV_DONTNEED, free and trim): nobody may fill
             // them
  unmapped,  // the addresses are no longer the program's
  moved      // mremap: the pages are somewhere else, and as closed as before
};

class Listener {
 public:
  // `to`: where moved pages are now.
  virtual void heard(Event event, Range range, char* to) = 0;

 protected:
  ~Listener() = default;
};

// Who follows writes to pages of the program (Versions). A mapping, or its part, belongs to one
// userfaultfd at a time: the guard's while pages of it are closed.
class Follower {
 public:
  virtual void yield(Range range) = 0;  // it is about to be closed
  // It is open again, or was not closed. `same`: nobody has unmapped or dropped it meanwhile.
  virtual void regain(Range range, bool same) = 0;

 protected:
  ~Follower() = default;
};

class Mechanism {
 public:
  virtual Kind kind() const = 0;
  // Closes the range. `view`: where the data of its first byte are to be put, until give_back();
  // with `keep` it holds what the range held, else the contents are gone. refused, no_memory:
  // nothing is closed, and without `keep` the contents may be gone all the same. `scratch`: a byte
  // for each page.
  virtual Outcome close(Range range, bool keep, uint8_t* scratch, char*& view) = 0;
  // The view's data of these pages, at `base` in the program, are complete: lets everybody in.
  // Returns the pages opened from the first on. Fewer: the address space is changing (serve(), then
  // again), or, if `gone`, the next one is not there any more.
  virtual size_t open(char* base, const char* view, size_t pages, bool& gone) = 0;
  // A page that was dropped while it was closed, or after it had been opened: it reads as zeros.
  virtual void clear(char* page) = 0;
  // No page of these is closed any more.
  virtual void forget(Range range) = 0;
  virtual void give_back(char* view, size_t pages) = 0;
  // Reads what happened to closed pages, until there is nothing more.
  virtual void serve(Listener& listener) = 0;
  virtual int descriptor() const = 0;  // to wait on, or -1

  // Null: nobody.
  void set_follower(Follower* follower) { follower_ = follower; }
  Follower* follower() const { return follower_; }

 protected:
  ~Mechanism() = default;

 private:
  Follower* follower_ = nullptr;
};

}  // namespace headway::guard
