#include "base/memory_file.h"

#include <sys/random.h>
#include <sys/types.h>
#include <unistd.h>

namespace headway::base {

uint64_t random_cookie() {
  uint64_t cookie = 0;
  if (getrandom(&cookie, sizeof cookie, GRND_NONBLOCK) != ssize_t(sizeof cookie)) {
    cookie = uint64_t(getpid()) << 32 ^ uint64_t(reinterpret_cast<uintptr_t>(&cookie));
  }
  return cookie | 1;
}

}  // namespace headway::base
