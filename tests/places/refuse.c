/* What a container or a security module may do: the ranks named in REFUSED ("1,3") may open nothing
   that another process holds, /proc/PID/fd/N, and get the error REFUSED_ERROR instead. Loaded
   before libc (LD_PRELOAD). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int is_refused(void) {
  const char* rank = getenv("PMI_RANK");
  if (!rank) rank = getenv("PMIX_RANK");
  const char* list = getenv("REFUSED");
  while (rank && list && *list) {
    char* rest;
    if (strtol(list, &rest, 10) == atol(rank)) return 1;
    list = *rest ? rest + 1 : rest;
  }
  return 0;
}

static int opens(const char* name, const char* path, int flags, mode_t mode) {
  int pid = 0, fd = 0;
  if (sscanf(path, "/proc/%d/fd/%d", &pid, &fd) == 2 && pid != getpid() && is_refused()) {
    const char* error = getenv("REFUSED_ERROR");
    errno = error ? atoi(error) : EACCES;
    return -1;
  }
  int (*real)(const char*, int, ...) = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, name);
  return real(path, flags, mode);
}

static mode_t mode_of(int flags, va_list list) {
  return flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
}

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return opens("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return opens("open64", path, flags, mode);
}
