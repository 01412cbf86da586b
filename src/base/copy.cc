#include "base/copy.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace headway::base {

std::atomic<bool> has_string_copy{false};

void find_string_copy() {
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  constexpr unsigned features = 7, enhanced = 1 << 9;  // ERMS
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool known = __get_cpuid_count(features, 0, &a, &b, &c, &d);
  has_string_copy.store(known && (b & enhanced), std::memory_order_relaxed);
#endif
}

}  // namespace headway::base
