// Curtain: what the program sees in place of closed pages. The pages themselves are moved aside
// (mremap), with their frames, and a mapping of a file of ours hangs where they were: not
// accessible, or watched by userfaultfd. A page opens by being moved home over it. So the memory of
// the program is its own before and after: private, and whatever it does with it has the meaning it
// had; pinned pages keep their frames. Thread: close, open, forget and give_back one at a time
// (Guard's lock), but for look() and open_in_child(), which are SIGSAFE and on any. Owner: a
// mechanism. Invariants: a page is accessible to the program only when its data are complete; one
// is moved home only where the curtain is proven to hang; each offset of the file is of one closed
// page.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/outcome.h"
#include "base/spin_lock.h"
#include "base/vec.h"
#include "guard/detail/descriptor.h"
#include "guard/detail/mappings.h"
#include "guard/mechanism.h"

namespace headway::guard {

class Curtain {
 public:
  // `holds`: whoever touches it waits there. Null: it is not accessible, and the touch is a signal.
  // refused, unsupported: this system gives no such thing.
  Outcome start(const Descriptor* holds);
  // All that is still closed is moved home.
  void stop();

  // As Mechanism's. `keep`: nobody who touches the range meanwhile sees anything but what it held,
  // or a closed page.
  Outcome close(Range range, bool keep, char*& view);
  // `now`: where the program has moved the first page to, if not all can be opened.
  size_t open(char* base, const char* view, size_t pages, bool& gone, char*& now);
  void forget(Range range);
  void give_back(const char* view, size_t pages);

  enum class Found : uint8_t { stranger, closed, open };
  // Of a page that was touched. `home`: where it was closed, if that is elsewhere, else null.
  Found look(char* page, char*& home);
  // In a forked child, where nobody fills it: it gets what has come.
  bool open_in_child(char* page);

 private:
  static constexpr size_t most_parts = 8;
  // `arrived`: complete, but there was no mapping left to move it with; `lost`: the program has
  // unmapped its curtain.
  enum class State : uint8_t { closed, arrived, open, lost };
  struct Closed {
    Range range;
    char* view;
    char* front;      // one page before the view, and whatever else is reserved there
    uint64_t offset;  // of the curtain in its file
    State* states;
    size_t parts;             // mappings that it was made of: each is moved by itself
    size_t ends[most_parts];  // pages from the view's begin
    bool over;                // given back, but for pages that could not be moved
  };

  Outcome probe();
  Outcome add(Range range, Closed& closed);
  const Closed* shares_offsets(uint64_t offset, uint64_t bytes) const;
  bool find_offset(Closed& closed);
  Outcome draw(const Closed& closed, bool keep);
  Outcome hang(const Closed& closed, bool keep, size_t& moved);
  bool find_parts(Closed& closed);
  bool reserve(Closed& closed);
  void release(const Closed& closed);
  size_t move(const Closed& closed, size_t first, size_t count, char* to);
  bool put_back(Closed& closed, size_t first, size_t count, char* to);
  bool open_around(Closed& closed, size_t page);
  bool bring_home(Closed& closed);
  void bring_leftovers_home();
  void remove(Closed* closed);
  Closed* owner_of(const char* view);
  Found look_in(char* page, uint64_t offset, char*& home);
  char* where_is(uint64_t offset);
  bool stock();
  void use_stock();

  const Descriptor* holds_ = nullptr;
  int fd_ = -1;
  File file_;
  uint64_t size_ = 0, next_ = 0;  // of the file, and what has been given out
  Mappings mappings_;
  base::SpinLock lock_;  // what follows
  base::Vec<Closed> closed_;
  Range closing_{};         // is being closed, and may be inaccessible without a curtain
  bool leftovers_ = false;  // pages have arrived that could not be moved
  char* stock_ = nullptr;   // mappings that are given up where none is left
};

}  // namespace headway::guard
