// What is common to files of memory that processes of a machine share. Thread: any. Owns nothing.
#pragma once
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>

namespace headway::base {

// By which a process that opens such a file knows that it is the one that was meant. Never 0.
uint64_t random_cookie();

// A limit on the size of files (ulimit -f) counts for memory, too: its signal would kill the
// process before it could say why. `write` tells whether all was done, and errno.
template <class Write>
bool within_file_limit(Write&& write) {
  sigset_t limit, before;
  sigemptyset(&limit);
  sigaddset(&limit, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &limit, &before);
  const bool done = write();
  const timespec at_once{};
  if (!done && errno == EFBIG) sigtimedwait(&limit, nullptr, &at_once);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return done;
}

}  // namespace headway::base
