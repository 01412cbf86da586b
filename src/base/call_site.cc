#include "base/call_site.h"

namespace headway::base {

constinit thread_local uintptr_t call_site = 0;

}  // namespace headway::base
