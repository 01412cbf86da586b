#include "base/descriptors.h"

#include <algorithm>
#include <sys/resource.h>

namespace headway::base {
namespace {

// Where the hard limit is endless, programs that close "all" descriptors before they execute
// another one would take minutes.
constexpr rlim_t at_first = 65536;

}  // namespace

// Of two threads that meet the limit at once, both raise it to the same.
bool raise_descriptor_limit() {
  const int before = errno;
  rlimit limit;
  bool raised = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max;
  if (raised) {
    limit.rlim_cur = std::min(limit.rlim_max, std::max(at_first, 2 * limit.rlim_cur));
    raised = setrlimit(RLIMIT_NOFILE, &limit) == 0;
  }
  errno = before;
  return raised;
}

}  // namespace headway::base
