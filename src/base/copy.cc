#include "base/copy.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace headway::base {
namespace {

bool has_enhanced_strings() {
#if defined(__x86_64__)
  constexpr unsigned features = 7, enhanced = 1 << 9;  // ERMS
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(features, 0, &a, &b, &c, &d) && (b & enhanced);
#else
  return false;
#endif
}

}  // namespace

const bool has_string_copy = has_enhanced_strings();

}  // namespace headway::base
