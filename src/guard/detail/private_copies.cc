#include "guard/detail/private_copies.h"

#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sanitizer.h"
#include "base/signals.h"
#include "base/text.h"
#include "guard/detail/mappings.h"

namespace headway::guard {
namespace {

constexpr int child_limit_ms = 10'000;

thread_local int copied[2] = {-1, -1};  // a pipe; its end in the child closes with the child

bool copy(const Mapping& alias) {
  const size_t n = size_t(alias.to - alias.from);
  void* fresh = mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) return false;
  if (!alias.readable && mprotect(alias.from, n, PROT_READ) != 0) return false;
  base::copy_pages(static_cast<char*>(fresh), alias.from, n);
  // Closed pages open: nobody fills them here.
  const bool read_only = alias.readable && !alias.writable;
  return (!read_only || mprotect(fresh, n, PROT_READ) == 0) &&
         mremap(fresh, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, alias.from) != MAP_FAILED;
}

void before_fork() {
  if (pipe2(copied, O_CLOEXEC) != 0) copied[0] = copied[1] = -1;
}

void after_fork_in_parent() {
  if (copied[0] < 0) return;
  close(copied[1]);
  pollfd wait{copied[0], POLLIN, 0};
  while (poll(&wait, 1, child_limit_ms) < 0 && errno == EINTR) {
  }
  close(copied[0]);
}

void after_fork_in_child() {
  Mappings mappings;
  bool done = mappings.open() == Outcome::ok;
  Mapping found;
  for (const char* from = nullptr; done && mappings.find(from, found); from = found.to) {
    if (found.what == Mapping::What::alias) done = copy(found);
  }
  mappings.close();
  if (!done) {
    base::Text<160> line;
    line << "headway: no memory for a forked child's own copy of receive buffers; it ends\n";
    line.write_to(2);
    _exit(127);
  }
  for (const int end : copied) {
    if (end >= 0) close(end);
  }
}

}  // namespace

bool copy_for_children() {
  return base::on_fork(before_fork, after_fork_in_parent, after_fork_in_child);
}

}  // namespace headway::guard
