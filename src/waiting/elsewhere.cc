#include "waiting/elsewhere.h"

#include <cerrno>
#include <cstring>

namespace headway::waiting {

bool Elsewhere::leave(uint32_t core) {
  if (is_off_ || core >= CPU_SETSIZE) return false;
  const int before = errno;
  if (sched_getaffinity(0, sizeof allowed_, &allowed_) == 0 && CPU_ISSET(core, &allowed_) &&
      CPU_COUNT(&allowed_) > 1) {
    others_ = allowed_;
    CPU_CLR(core, &others_);
    is_off_ = sched_setaffinity(0, sizeof others_, &others_) == 0;
  }
  errno = before;
  return is_off_;
}

// A thread whose cores nobody chose follows those of its container, also when they are changed
// later. So all cores are asked for, and the old ones only where that gave others.
void Elsewhere::come_back() {
  const int before = errno;
  cpu_set_t now;
  if (sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, &others_)) {
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    if (sched_setaffinity(0, sizeof all, &all) != 0 ||
        sched_getaffinity(0, sizeof now, &now) != 0 || !CPU_EQUAL(&now, &allowed_)) {
      sched_setaffinity(0, sizeof allowed_, &allowed_);
    }
  }
  errno = before;
}

}  // namespace headway::waiting
