// What sanitizers need to be told; nothing of it is left in other builds. Thread: any. Owner: none.
// Invariant: a foreign thread runs no code of the program and touches none of its memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SANITIZE_THREAD__)
extern "C" void AnnotateIgnoreReadsBegin(const char* file, int line);
extern "C" void AnnotateIgnoreReadsEnd(const char* file, int line);
#endif

namespace headway::base {

// ThreadSanitizer makes a thread of its own, together with the first other one. Early release
// counts threads, since none of the program's may run unseen while pages are closed.
#if defined(__SANITIZE_THREAD__)
inline constexpr unsigned foreign_threads = 1;
#else
inline constexpr unsigned foreign_threads = 0;
#endif

// Accesses that are not checked. Inside a call that may block, ThreadSanitizer does not see what
// atomics order, so a signal handler that comes there would be taken for a race.
class Unchecked {
 public:
#if defined(__SANITIZE_THREAD__)
  Unchecked() { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
  ~Unchecked() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
#else
  Unchecked() {}
  ~Unchecked() {}
#endif
  Unchecked(const Unchecked&) = delete;
  Unchecked& operator=(const Unchecked&) = delete;
};

// Whole pages, with whatever the program has there beside its buffers: what an allocator keeps
// between them, and what other threads write.
[[gnu::no_sanitize("address", "thread")]] inline void copy_pages(char* to, const char* from,
                                                                 size_t n) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
    *reinterpret_cast<volatile uint64_t*>(to + i) =
        *reinterpret_cast<const volatile uint64_t*>(from + i);
  }
#else
  memcpy(to, from, n);
#endif
}

}  // namespace headway::base
