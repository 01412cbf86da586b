#include "guard/minor.h"

#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

namespace headway::guard {

Outcome Minor::start() {
  Outcome started = descriptor_.start_to_hold();
  if (started == Outcome::ok) started = curtain_.start(&descriptor_);
  if (started != Outcome::ok) descriptor_.stop();
  return started;
}

void Minor::stop() {
  curtain_.stop();
  descriptor_.stop();
}

Outcome Minor::close(Range range, bool keep, uint8_t* /*scratch*/, char*& view) {
  const Outcome closed = curtain_.close(range, keep, view);
  if (closed != Outcome::ok) wake(range);
  return closed;
}

// `now` is known already: the descriptor tells of moves.
size_t Minor::open(char* base, const char* view, size_t pages, bool& gone) {
  char* now;
  const size_t opened = curtain_.open(base, view, pages, gone, now);
  if (opened) wake({base, opened});
  return opened;
}

// Whoever waits there looks again.
void Minor::wake(Range range) const {
  uffdio_range which = {reinterpret_cast<uint64_t>(range.base), range.bytes()};
  (void)ioctl(descriptor_.fd(), UFFDIO_WAKE, &which);
}

void Minor::clear(char* page) {
  char* home;
  (void)curtain_.look(page, home);
  wake({page, 1});
}

void Minor::forget(Range range) {
  curtain_.forget(range);
  wake(range);
}

void Minor::give_back(char* view, size_t pages) { curtain_.give_back(view, pages); }

}  // namespace headway::guard
