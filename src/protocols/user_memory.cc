#include "protocols/user_memory.h"

#include "base/check.h"

namespace headway::protocols {

#if defined(HEADWAY_DEBUG)
namespace {
IsShut checked = nullptr;
void* checked_engine = nullptr;
}  // namespace

void check_touches(IsShut is_shut, void* engine) {
  checked = is_shut;
  checked_engine = engine;
}

void check_open(const char* from, size_t n) {
  HEADWAY_CHECK(!checked || !checked(checked_engine, from, n));
}
#endif

void UserMemory::copy(const UserMemory& from, UserMemory& to, uint64_t n) {
  if (n == 0) return;
  from.check(0, n);
  to.check(0, n);
  if (from.is_flat() && to.is_flat()) {
    memmove(to.base_, from.base_, n);  // a program may send to itself within one buffer
    return;
  }
  if (from.is_flat()) {
    to.write(0, from.base_, n);
    return;
  }
  if (to.is_flat()) {
    from.read(0, to.base_, n);
    return;
  }
  char piece[8192];
  for (uint64_t at = 0; at < n; at += sizeof piece) {
    const size_t some = n - at < sizeof piece ? size_t(n - at) : sizeof piece;
    from.read(at, piece, some);
    to.write(at, piece, some);
  }
}

UserMemory::Extent UserMemory::extent() const {
  if (!type_) return {base_, base_ + bytes_};
  const int64_t step = count_ ? type_->extent() * int64_t(count_ - 1) : 0;
  const char* first = base::moved(base_, type_->true_lb());
  const char* last = base::moved(first, type_->true_extent());
  return {step < 0 ? base::moved(first, step) : first, step > 0 ? base::moved(last, step) : last};
}

size_t UserMemory::vectors(uint64_t offset, uint64_t n, iovec* out, size_t max,
                           uint64_t& covered) const {
  check(offset, n);
  if (!type_) {
    out[0] = {base_ + offset, n};
    covered = n;
    return 1;
  }
  const datatypes::Filled filled = datatypes::fill_iovecs(*type_, base_, count_, offset, out, max);
  size_t vectors = 0;
  covered = 0;
  while (vectors < filled.vectors && covered < n) {
    if (out[vectors].iov_len > n - covered) out[vectors].iov_len = n - covered;
    covered += out[vectors++].iov_len;
  }
  return vectors;
}

}  // namespace headway::protocols
