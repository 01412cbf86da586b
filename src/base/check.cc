#include "base/check.h"

#if defined(HEADWAY_DEBUG)
#include <cstdlib>

#include "base/text.h"

namespace headway::base {

void check_failed(const char* what, const char* file, int line) {
  Text<400> text;
  text << "headway: this does not hold: " << what << " (" << file << ", line " << line
       << "). A fault of the library\n";
  text.write_to(2);
  abort();
}

}  // namespace headway::base
#endif
