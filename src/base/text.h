// Text<N>: a line of words and numbers built without stdio or malloc, for errors and state dumps,
// also on the message thread and in signal handlers. Thread: that of its owner.
// Invariant: always NUL-terminated; what does not fit is cut.
#pragma once
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <unistd.h>

#include "base/check.h"

namespace headway::base {

template <size_t N>
class Text {
 public:
  Text& operator<<(const char* words) {
    append(words ? words : "(null)", strlen(words ? words : "(null)"));
    return *this;
  }
  template <class I>
    requires std::is_integral_v<I>
  Text& operator<<(I value) {
    if constexpr (std::is_signed_v<I>) {
      if (value < 0) append("-", 1);
      return number(value < 0 ? 0 - uint64_t(value) : uint64_t(value), 10);
    } else {
      return number(uint64_t(value), 10);
    }
  }
  Text& hex(uint64_t value) {
    append("0x", 2);
    return number(value, 16);
  }
  void append(const char* bytes, size_t n) {
    HEADWAY_CHECK(size_ < N && buffer_[size_] == '\0');
    if (n > N - 1 - size_) n = N - 1 - size_;
    memcpy(buffer_ + size_, bytes, n);
    size_ += n;
    buffer_[size_] = '\0';
  }
  // True if all of it was taken.
  bool write_to(int fd) const {
    for (size_t done = 0; done < size_;) {
      const ssize_t n = ::write(fd, buffer_ + done, size_ - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      done += size_t(n);
    }
    return true;
  }
  void clear() { buffer_[size_ = 0] = '\0'; }
  const char* c_str() const { return buffer_; }
  size_t size() const { return size_; }

 private:
  Text& number(uint64_t value, unsigned radix) {
    char digits[24];
    size_t at = sizeof digits;
    do {
      digits[--at] = "0123456789abcdef"[value % radix];
      value /= radix;
    } while (value);
    append(digits + at, sizeof digits - at);
    return *this;
  }

  char buffer_[N] = {};
  size_t size_ = 0;
};

}  // namespace headway::base
