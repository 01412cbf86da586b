#include "protocols/user_memory.h"

namespace headway::protocols {

void UserMemory::copy(const UserMemory& from, UserMemory& to, uint64_t n) {
  if (n == 0) return;
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
  const char* first = base_ + type_->true_lb();
  const char* last = first + type_->true_extent();
  return {step < 0 ? first + step : first, step > 0 ? last + step : last};
}

size_t UserMemory::vectors(uint64_t offset, uint64_t n, iovec* out, size_t max,
                           uint64_t& covered) const {
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
