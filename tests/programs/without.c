// without CALL... -- PROGRAM ARGUMENT...: runs the program as a container would that forbids these
// system calls (seccomp): userfaultfd, memfd_create, or `dispatch`, Syscall User Dispatch.
#include <errno.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

static int refuse(unsigned number, int checks_first, unsigned first) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
      BPF_JUMP(checks_first ? BPF_JMP | BPF_JEQ | BPF_K : BPF_JMP | BPF_JGE | BPF_K,
               checks_first ? first : 0, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char** argv) {
  int i = 1;
  for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
    int failed = -1;
    if (strcmp(argv[i], "userfaultfd") == 0) failed = refuse(SYS_userfaultfd, 0, 0);
    if (strcmp(argv[i], "memfd_create") == 0) failed = refuse(SYS_memfd_create, 0, 0);
    if (strcmp(argv[i], "dispatch") == 0)
      failed = refuse(SYS_prctl, 1, PR_SET_SYSCALL_USER_DISPATCH);
    if (failed) {
      fprintf(stderr, "without: cannot forbid %s\n", argv[i]);
      return 2;
    }
  }
  if (i + 1 >= argc) return 2;
  execvp(argv[i + 1], argv + i + 1);
  perror(argv[i + 1]);
  return 2;
}
