#include "base/selector.h"

namespace headway::base {

static_assert(sizeof(std::atomic<uint32_t>) == 4 && std::atomic<uint32_t>::is_always_lock_free);

constinit thread_local std::atomic<uint32_t> selector{calls_pass};
std::atomic<uint32_t> calls_armed{0};

}  // namespace headway::base
