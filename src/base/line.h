// Line: what the processor is told about a cache line that another core has. Thread: any. Changes
// nothing but time.
#pragma once

namespace headway::base {

// This core will write there soon: the line is fetched, and taken from other cores, meanwhile.
inline void claim_line(const char* at) {
#if defined(__x86_64__)
  // The compiler's own hint only reads, unless it may count on newer processors.
  __asm__ volatile("prefetchw %0" : : "m"(*at));
#else
  __builtin_prefetch(at, 1);
#endif
}

// This core will read there soon.
inline void fetch_line(const void* at) { __builtin_prefetch(at); }

}  // namespace headway::base
