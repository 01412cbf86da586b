#include "io/counters.h"

namespace headway::io {

constinit Counters counters;

}  // namespace headway::io
