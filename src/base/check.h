// HEADWAY_CHECK(what): what always holds, looked at where HEADWAY_DEBUG is set (presets debug, asan
// and tsan): a line to standard error and an abort. Elsewhere it is compiled and never evaluated.
// Thread: any. Owner: none. Invariant: `what` has no effects.
#pragma once

#if defined(HEADWAY_DEBUG)

namespace headway::base {

[[noreturn, gnu::cold]] void check_failed(const char* what, const char* file, int line);

}  // namespace headway::base

#define HEADWAY_CHECK(what) \
  ((what) ? static_cast<void>(0) : ::headway::base::check_failed(#what, __FILE__, __LINE__))
#else
#define HEADWAY_CHECK(what) static_cast<void>(sizeof((what) ? 1 : 0))
#endif
