/* calls: what of the C library lets the system write into memory of the program, or changes its
   mappings. The system does not wait for a signal's handler: it answers EFAULT for a page that is
   read-only. So a send whose pages such a call may write ends before it. What a program writes
   itself needs nothing of this.

   Beside these: handlers of SIGSEGV, new threads, and ends of the process.

   Thread: any. Owner: libtrying. Invariant: every function does what it does without us. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "try.h"

enum { SOME = 256 }; /* bytes of a structure whose size is not looked at */

/* The function behind us, asked for once. */
#define REAL(name)               \
  static __typeof__(&name) real; \
  if (!real) *(void**)&real = try_next(#name);

#define WRITES(at, bytes) try_before_write(at, bytes, TRY_AT_CALL)

/* A call of that type and name, with its parameters, and what it may write. */
#define CALL(type, name, parameters, arguments, writes) \
  TRY_API type(name) parameters {                       \
    REAL(name)                                          \
    writes;                                             \
    return real arguments;                              \
  }
/* The same where the headers of the C library do not name it: programs that are compiled with its
   checks call it. */
#define CHECKED(type, name, parameters, arguments, writes) \
  TRY_API type name parameters;                            \
  CALL(type, name, parameters, arguments, writes)

static void vector(const struct iovec* parts, int count) {
  for (int i = 0; try_count && i < count; ++i) WRITES(parts[i].iov_base, parts[i].iov_len);
}

static void message(const struct msghdr* header) {
  if (!try_count || !header) return;
  WRITES(header, sizeof *header);
  WRITES(header->msg_name, header->msg_namelen);
  WRITES(header->msg_control, header->msg_controllen);
  vector(header->msg_iov, (int)header->msg_iovlen);
}

/* ---- reading ---- */

CALL(ssize_t, read, (int file, void* to, size_t bytes), (file, to, bytes), WRITES(to, bytes))
CALL(ssize_t, pread, (int file, void* to, size_t bytes, off_t at), (file, to, bytes, at),
     WRITES(to, bytes))
CALL(ssize_t, pread64, (int file, void* to, size_t bytes, off64_t at), (file, to, bytes, at),
     WRITES(to, bytes))
CALL(ssize_t, readv, (int file, const struct iovec* to, int count), (file, to, count),
     vector(to, count))
CALL(ssize_t, preadv, (int file, const struct iovec* to, int count, off_t at),
     (file, to, count, at), vector(to, count))
CALL(ssize_t, preadv64, (int file, const struct iovec* to, int count, off64_t at),
     (file, to, count, at), vector(to, count))
CALL(ssize_t, preadv2, (int file, const struct iovec* to, int count, off_t at, int flags),
     (file, to, count, at, flags), vector(to, count))
CALL(ssize_t, preadv64v2, (int file, const struct iovec* to, int count, off64_t at, int flags),
     (file, to, count, at, flags), vector(to, count))
CALL(ssize_t, recv, (int file, void* to, size_t bytes, int flags), (file, to, bytes, flags),
     WRITES(to, bytes))
CALL(ssize_t, recvfrom,
     (int file, void* to, size_t bytes, int flags, struct sockaddr* from, socklen_t* length),
     (file, to, bytes, flags, from, length),
     (WRITES(to, bytes), WRITES(from, SOME), WRITES(length, 4)))
CALL(ssize_t, recvmsg, (int file, struct msghdr* to, int flags), (file, to, flags), message(to))
CALL(size_t, fread, (void* to, size_t size, size_t count, FILE* file), (to, size, count, file),
     WRITES(to, size* count))
CALL(size_t, fread_unlocked, (void* to, size_t size, size_t count, FILE* file),
     (to, size, count, file), WRITES(to, size* count))
CHECKED(ssize_t, __read_chk, (int file, void* to, size_t bytes, size_t room),
        (file, to, bytes, room), WRITES(to, bytes))
CHECKED(ssize_t, __pread_chk, (int file, void* to, size_t bytes, off_t at, size_t room),
        (file, to, bytes, at, room), WRITES(to, bytes))
CHECKED(ssize_t, __pread64_chk, (int file, void* to, size_t bytes, off64_t at, size_t room),
        (file, to, bytes, at, room), WRITES(to, bytes))
CHECKED(ssize_t, __recv_chk, (int file, void* to, size_t bytes, size_t room, int flags),
        (file, to, bytes, room, flags), WRITES(to, bytes))
CHECKED(ssize_t, __recvfrom_chk,
        (int file, void* to, size_t bytes, size_t room, int flags, struct sockaddr* from,
         socklen_t* length),
        (file, to, bytes, room, flags, from, length),
        (WRITES(to, bytes), WRITES(from, SOME), WRITES(length, 4)))
CHECKED(size_t, __fread_chk, (void* to, size_t room, size_t size, size_t count, FILE* file),
        (to, room, size, count, file), WRITES(to, size* count))
CHECKED(size_t, __fread_unlocked_chk,
        (void* to, size_t room, size_t size, size_t count, FILE* file),
        (to, room, size, count, file), WRITES(to, size* count))
CALL(ssize_t, getrandom, (void* to, size_t bytes, unsigned flags), (to, bytes, flags),
     WRITES(to, bytes))
CALL(int, getentropy, (void* to, size_t bytes), (to, bytes), WRITES(to, bytes))

/* ---- structures, which may stand beside a static buffer ---- */

CALL(int, stat, (const char* path, struct stat* to), (path, to), WRITES(to, sizeof *to))
CALL(int, lstat, (const char* path, struct stat* to), (path, to), WRITES(to, sizeof *to))
CALL(int, fstat, (int file, struct stat* to), (file, to), WRITES(to, sizeof *to))
CALL(int, fstatat, (int folder, const char* path, struct stat* to, int flags),
     (folder, path, to, flags), WRITES(to, sizeof *to))
CALL(int, stat64, (const char* path, struct stat64* to), (path, to), WRITES(to, sizeof *to))
CALL(int, lstat64, (const char* path, struct stat64* to), (path, to), WRITES(to, sizeof *to))
CALL(int, fstat64, (int file, struct stat64* to), (file, to), WRITES(to, sizeof *to))
CALL(int, fstatat64, (int folder, const char* path, struct stat64* to, int flags),
     (folder, path, to, flags), WRITES(to, sizeof *to))
CALL(int, pipe, (int to[2]), (to), WRITES(to, 2 * sizeof *to))
CALL(int, pipe2, (int to[2], int flags), (to, flags), WRITES(to, 2 * sizeof *to))
CALL(int, socketpair, (int domain, int type, int protocol, int to[2]), (domain, type, protocol, to),
     WRITES(to, 2 * sizeof *to))
CALL(int, accept, (int file, struct sockaddr* from, socklen_t* length), (file, from, length),
     (WRITES(from, SOME), WRITES(length, 4)))
CALL(int, getsockopt, (int file, int level, int name, void* to, socklen_t* length),
     (file, level, name, to, length), (WRITES(to, length ? *length : 0), WRITES(length, 4)))
CALL(int, poll, (struct pollfd * to, nfds_t count, int ms), (to, count, ms),
     WRITES(to, count * sizeof *to))
CALL(int, select, (int count, fd_set* in, fd_set* out, fd_set* other, struct timeval* time),
     (count, in, out, other, time),
     (WRITES(in, sizeof *in), WRITES(out, sizeof *out), WRITES(other, sizeof *other),
      WRITES(time, sizeof *time)))
CALL(int, epoll_wait, (int file, struct epoll_event* to, int count, int ms), (file, to, count, ms),
     WRITES(to, count > 0 ? sizeof *to * (size_t)count : 0))
CALL(pid_t, wait, (int* to), (to), WRITES(to, sizeof *to))
CALL(pid_t, waitpid, (pid_t child, int* to, int flags), (child, to, flags), WRITES(to, sizeof *to))
CALL(pid_t, wait4, (pid_t child, int* to, int flags, struct rusage* use), (child, to, flags, use),
     (WRITES(to, sizeof *to), WRITES(use, sizeof *use)))
CALL(int, getrusage, (__rusage_who_t who, struct rusage* to), (who, to), WRITES(to, sizeof *to))
CALL(int, getrlimit, (__rlimit_resource_t what, struct rlimit* to), (what, to),
     WRITES(to, sizeof *to))
CALL(int, getrlimit64, (__rlimit_resource_t what, struct rlimit64* to), (what, to),
     WRITES(to, sizeof *to))
CALL(int, clock_gettime, (clockid_t clock, struct timespec* to), (clock, to),
     WRITES(to, sizeof *to))
CALL(int, nanosleep, (const struct timespec* time, struct timespec* rest), (time, rest),
     WRITES(rest, sizeof *rest))
CALL(int, clock_nanosleep,
     (clockid_t clock, int flags, const struct timespec* time, struct timespec* rest),
     (clock, flags, time, rest), WRITES(rest, sizeof *rest))
CALL(char*, getcwd, (char* to, size_t bytes), (to, bytes), WRITES(to, bytes))
CALL(ssize_t, readlink, (const char* path, char* to, size_t bytes), (path, to, bytes),
     WRITES(to, bytes))
CALL(int, uname, (struct utsname * to), (to), WRITES(to, sizeof *to))

/* Where the signal is blocked, a write to a page would end the process. */
#define BLOCKS(how, set) \
  if (set && how != SIG_UNBLOCK && sigismember(set, SIGSEGV) == 1) try_before_handler()

CALL(int, sigprocmask, (int how, const sigset_t* set, sigset_t* old), (how, set, old),
     BLOCKS(how, set);
     WRITES(old, sizeof *old))
CALL(int, pthread_sigmask, (int how, const sigset_t* set, sigset_t* old), (how, set, old),
     BLOCKS(how, set);
     WRITES(old, sizeof *old))

TRY_API int ioctl(int file, unsigned long what, ...) {
  REAL(ioctl)
  va_list rest;
  va_start(rest, what);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  WRITES(argument, SOME);
  return real(file, what, argument);
}

/* ---- mappings ---- */

#define CHANGES(at, bytes) try_before_write(at, bytes, TRY_AT_FREE)

CALL(int, munmap, (void* at, size_t bytes), (at, bytes), CHANGES(at, bytes))
CALL(int, mprotect, (void* at, size_t bytes, int how), (at, bytes, how),
     (CHANGES(at, bytes), try_note_protection(at, how)))
CALL(int, madvise, (void* at, size_t bytes, int how), (at, bytes, how), CHANGES(at, bytes))

TRY_API void* mmap(void* at, size_t bytes, int how, int flags, int file, off_t from) {
  REAL(mmap)
  if (flags & MAP_FIXED) CHANGES(at, bytes);
  return real(at, bytes, how, flags, file, from);
}

#ifdef __USE_LARGEFILE64
TRY_API void* mmap64(void* at, size_t bytes, int how, int flags, int file, off64_t from) {
  REAL(mmap64)
  if (flags & MAP_FIXED) CHANGES(at, bytes);
  return real(at, bytes, how, flags, file, from);
}
#endif

TRY_API void* mremap(void* at, size_t bytes, size_t now, int flags, ...) {
  REAL(mremap)
  va_list rest;
  va_start(rest, flags);
  void* to = flags & MREMAP_FIXED ? va_arg(rest, void*) : NULL;
  va_end(rest);
  CHANGES(at, bytes);
  if (to) CHANGES(to, now);
  return real(at, bytes, now, flags, to);
}

/* ---- handlers, threads, ends ---- */

TRY_API int sigaction(int number, const struct sigaction* set, struct sigaction* old) {
  REAL(sigaction)
  if (number == SIGSEGV) try_before_handler();
  WRITES(old, sizeof *old);
  return real(number, set, old);
}

TRY_API sighandler_t signal(int number, sighandler_t handler) {
  REAL(signal)
  if (number == SIGSEGV) try_before_handler();
  return real(number, handler);
}

/* Those that MPI starts for itself do not write to memory of the program but for what it is told.
 */
TRY_API int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                           void* (*start)(void*), void* argument) {
  REAL(pthread_create)
  if ((try_is_programs && try_depth == 0) || !try_started) {
    try_before_exit(); /* from now on nothing is put off */
    try_threads = true;
  }
  return real(thread, attributes, start, argument);
}

/* A child that shares this memory would open pages of ours. */
TRY_API pid_t vfork(void) { return fork(); }

TRY_API void _exit(int code) {
  REAL(_exit)
  try_before_exit();
  real(code);
  __builtin_unreachable();
}

TRY_API void _Exit(int code) { _exit(code); }

TRY_API void quick_exit(int code) {
  REAL(quick_exit)
  try_before_exit();
  real(code);
  __builtin_unreachable();
}
