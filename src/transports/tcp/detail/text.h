// Line: one line of text built in place, for what the user is told when a connection fails.
// Thread: its holder. Owner: whoever has it on the stack. Invariant: always ends in NUL; what does
// not fit is cut off. No stdio: the message thread builds these too.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/check.h"

namespace headway::tcp {

struct Line {
  char text[1024] = "";
  size_t length = 0;

  Line& add(const char* more) { return add(more, strlen(more)); }
  Line& add(const char* more, size_t n) {
    HEADWAY_CHECK(length < sizeof text && text[length] == 0);
    if (n > sizeof text - 1 - length) n = sizeof text - 1 - length;
    memcpy(text + length, more, n);
    length += n;
    text[length] = 0;
    return *this;
  }
  Line& number(uint64_t value) {
    char digits[20];
    size_t n = 0;
    do {
      digits[sizeof digits - ++n] = char('0' + value % 10);
      value /= 10;
    } while (value);
    return add(digits + sizeof digits - n, n);
  }
  Line& hex(uint64_t value, int digits) {
    for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4) {
      const char digit = "0123456789abcdef"[(value >> shift) & 15];
      add(&digit, 1);
    }
    return *this;
  }
};

// The system's words for an errno; never allocates.
const char* error_words(int error);

}  // namespace headway::tcp
