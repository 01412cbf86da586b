// without CALL... -- PROGRAM ARGUMENT...: runs the program as a container would that forbids these
// system calls (seccomp): those of the table below; `dispatch`, which is Syscall User Dispatch; or
// `container`, all that common containers forbid and a library might want.
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

static const struct {
  const char* name;
  unsigned number;
  int in_containers;
} calls[] = {
    {"memfd_create", SYS_memfd_create, 0},
    {"userfaultfd", SYS_userfaultfd, 1},
    {"process_vm_readv", SYS_process_vm_readv, 1},
    {"process_vm_writev", SYS_process_vm_writev, 1},
    {"ptrace", SYS_ptrace, 1},
    {"kcmp", SYS_kcmp, 1},
    {"mbind", SYS_mbind, 1},
    {"set_mempolicy", SYS_set_mempolicy, 1},
    {"move_pages", SYS_move_pages, 1},
    {"perf_event_open", SYS_perf_event_open, 1},
    {"bpf", SYS_bpf, 1},
    {"keyctl", SYS_keyctl, 1},
};

static int forbid(const char* name) {
  const int container = strcmp(name, "container") == 0;
  int known = 0;
  if (strcmp(name, "dispatch") == 0) return refuse(SYS_prctl, 1, PR_SET_SYSCALL_USER_DISPATCH);
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    if (!(container && calls[i].in_containers) && strcmp(name, calls[i].name) != 0) continue;
    if (refuse(calls[i].number, 0, 0)) return -1;
    known = 1;
  }
  return known ? 0 : -1;
}

int main(int argc, char** argv) {
  int i = 1;
  for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
    if (forbid(argv[i])) {
      fprintf(stderr, "without: cannot forbid %s\n", argv[i]);
      return 2;
    }
  }
  if (i + 1 >= argc) return 2;
  execvp(argv[i + 1], argv + i + 1);
  perror(argv[i + 1]);
  return 2;
}
