#include "guard/detail/calls.h"

#if defined(__x86_64__)
#include <cstddef>
#include <sys/syscall.h>

namespace headway::guard {
namespace {

// Sizes in the kernel's interface; the C library's types are larger in places.
constexpr uint16_t address_bytes = 128, stat_bytes = 144, time_bytes = 16, pair_bytes = 8;

constexpr Pointer fixed(uint8_t at, uint16_t unit) { return {at, Reach::fixed, 0, unit}; }
constexpr Pointer bytes(uint8_t at, uint8_t by, uint16_t unit = 1) {
  return {at, Reach::bytes, by, unit};
}
constexpr Pointer path(uint8_t at) { return {at, Reach::path}; }
constexpr Pointer vectors(uint8_t at, uint8_t by) { return {at, Reach::vectors, by}; }
constexpr Pointer sets(uint8_t at) { return {at, Reach::sets, 0}; }
constexpr Pointer mask(uint8_t at) { return {at, Reach::mask}; }

constexpr Call known(int number, Pointer a = {}, Pointer b = {}, Pointer c = {}, Pointer d = {},
                     Pointer e = {}) {
  return {uint16_t(number), When::known, Special::none, {a, b, c, d, e}};
}
constexpr Call unseen(int number, Pointer a = {}, Pointer b = {}) {
  return {uint16_t(number), When::unseen, Special::none, {a, b}};
}
constexpr Call special(int number, When when, Special special, Pointer a = {}, Pointer b = {}) {
  return {uint16_t(number), when, special, {a, b}};
}

// Numbers that this C library's headers may not have.
constexpr int nr_epoll_pwait2 = 441, nr_faccessat2 = 439, nr_close_range = 436, nr_openat2 = 437;

constexpr Call calls[] = {
    // Nobody outside sees these.
    unseen(SYS_sched_yield),
    unseen(SYS_getpid),
    unseen(SYS_gettid),
    unseen(SYS_getppid),
    unseen(SYS_getuid),
    unseen(SYS_geteuid),
    unseen(SYS_getgid),
    unseen(SYS_getegid),
    unseen(SYS_getpgrp),
    unseen(SYS_getpgid),
    unseen(SYS_getsid),
    unseen(SYS_restart_syscall),
    unseen(SYS_nanosleep, fixed(0, time_bytes), fixed(1, time_bytes)),
    unseen(SYS_clock_nanosleep, fixed(2, time_bytes), fixed(3, time_bytes)),
    unseen(SYS_clock_gettime, fixed(1, time_bytes)),
    unseen(SYS_clock_getres, fixed(1, time_bytes)),
    unseen(SYS_gettimeofday, fixed(0, time_bytes), fixed(1, pair_bytes)),
    unseen(SYS_time, fixed(0, 8)),
    unseen(SYS_times, fixed(0, 32)),
    unseen(SYS_getcpu, fixed(0, 4), fixed(1, 4)),
    unseen(SYS_getrandom, bytes(0, 1)),
    unseen(SYS_uname, fixed(0, 390)),
    unseen(SYS_sysinfo, fixed(0, 112)),
    unseen(SYS_getrusage, fixed(1, 144)),
    unseen(SYS_getrlimit, fixed(1, 16)),
    unseen(SYS_sched_getaffinity, bytes(2, 1)),
    unseen(SYS_getcwd, bytes(0, 1)),
    unseen(SYS_sigaltstack, fixed(0, 24), fixed(1, 24)),
    unseen(SYS_rt_sigpending, bytes(0, 1)),
    unseen(SYS_mincore, bytes(2, 1)),  // a byte for each page: fewer than this
    special(SYS_munmap, When::unseen, Special::memory),
    special(SYS_madvise, When::unseen, Special::memory),
    special(SYS_mprotect, When::unseen, Special::memory),
    special(SYS_pkey_mprotect, When::unseen, Special::memory),
    special(SYS_mremap, When::unseen, Special::move),
    special(SYS_mmap, When::unseen, Special::map),
    special(SYS_brk, When::unseen, Special::data_break),
    special(SYS_futex, When::unseen, Special::futex),
    special(SYS_rt_sigprocmask, When::unseen, Special::signal_mask),
    special(SYS_rt_sigaction, When::unseen, Special::signal_action),
    special(SYS_rt_sigreturn, When::unseen, Special::signal_return),

    // Memory, as others may see it.
    special(SYS_mlock, When::known, Special::memory),
    special(SYS_mlock2, When::known, Special::memory),
    special(SYS_munlock, When::known, Special::memory),
    special(SYS_msync, When::known, Special::memory),

    // Reading and writing.
    known(SYS_read, bytes(1, 2)),
    known(SYS_write, bytes(1, 2)),
    known(SYS_pread64, bytes(1, 2)),
    known(SYS_pwrite64, bytes(1, 2)),
    known(SYS_readv, vectors(1, 2)),
    known(SYS_writev, vectors(1, 2)),
    known(SYS_preadv, vectors(1, 2)),
    known(SYS_pwritev, vectors(1, 2)),
    known(SYS_preadv2, vectors(1, 2)),
    known(SYS_pwritev2, vectors(1, 2)),
    known(SYS_vmsplice, vectors(1, 2)),
    known(SYS_sendfile, fixed(2, 8)),
    known(SYS_splice, fixed(1, 8), fixed(3, 8)),
    known(SYS_tee),
    known(SYS_copy_file_range, fixed(1, 8), fixed(3, 8)),
    known(SYS_lseek),
    known(SYS_close),
    known(nr_close_range),
    known(SYS_dup),
    known(SYS_dup2),
    known(SYS_dup3),
    known(SYS_pipe, fixed(0, 8)),
    known(SYS_pipe2, fixed(0, 8)),
    known(SYS_fsync),
    known(SYS_fdatasync),
    known(SYS_sync),
    known(SYS_syncfs),
    known(SYS_sync_file_range),
    known(SYS_flock),
    known(SYS_ftruncate),
    known(SYS_fallocate),
    known(SYS_fadvise64),
    known(SYS_readahead),
    special(SYS_ioctl, When::known, Special::control),
    special(SYS_fcntl, When::known, Special::descriptor_control),
    special(SYS_process_vm_readv, When::known, Special::other_memory, vectors(1, 2),
            bytes(3, 4, 16)),
    special(SYS_process_vm_writev, When::known, Special::other_memory, vectors(1, 2),
            bytes(3, 4, 16)),

    // Sockets.
    known(SYS_socket),
    known(SYS_socketpair, fixed(3, 8)),
    known(SYS_listen),
    known(SYS_shutdown),
    known(SYS_bind, bytes(1, 2)),
    known(SYS_connect, bytes(1, 2)),
    known(SYS_accept, fixed(1, address_bytes), fixed(2, 4)),
    known(SYS_accept4, fixed(1, address_bytes), fixed(2, 4)),
    known(SYS_getsockname, fixed(1, address_bytes), fixed(2, 4)),
    known(SYS_getpeername, fixed(1, address_bytes), fixed(2, 4)),
    known(SYS_sendto, bytes(1, 2), bytes(4, 5)),
    known(SYS_recvfrom, bytes(1, 2), fixed(4, address_bytes), fixed(5, 4)),
    known(SYS_sendmsg, Pointer{1, Reach::message}),
    known(SYS_recvmsg, Pointer{1, Reach::message}),
    known(SYS_sendmmsg, Pointer{1, Reach::messages, 2}),
    known(SYS_recvmmsg, Pointer{1, Reach::messages, 2}, fixed(4, time_bytes)),
    special(SYS_getsockopt, When::known, Special::get_option),
    special(SYS_setsockopt, When::known, Special::set_option, bytes(3, 4)),

    // Waiting for descriptors.
    known(SYS_poll, bytes(0, 1, 8)),
    known(SYS_ppoll, bytes(0, 1, 8), fixed(2, time_bytes), mask(3)),
    known(SYS_select, sets(1), sets(2), sets(3), fixed(4, time_bytes)),
    known(SYS_pselect6, sets(1), sets(2), sets(3), fixed(4, time_bytes),
          Pointer{5, Reach::mask_pair}),
    known(SYS_epoll_create),
    known(SYS_epoll_create1),
    known(SYS_epoll_ctl, fixed(3, 12)),
    known(SYS_epoll_wait, bytes(1, 2, 12)),
    known(SYS_epoll_pwait, bytes(1, 2, 12), mask(4)),
    known(nr_epoll_pwait2, bytes(1, 2, 12), fixed(3, time_bytes), mask(4)),
    known(SYS_eventfd),
    known(SYS_eventfd2),
    known(SYS_timerfd_create),
    known(SYS_timerfd_settime, fixed(2, 32), fixed(3, 32)),
    known(SYS_timerfd_gettime, fixed(1, 32)),
    known(SYS_signalfd4, bytes(1, 2)),
    known(SYS_inotify_init1),
    known(SYS_inotify_add_watch, path(1)),
    known(SYS_inotify_rm_watch),

    // Files by name.
    known(SYS_open, path(0)),
    known(SYS_openat, path(1)),
    known(nr_openat2, path(1), bytes(2, 3)),
    known(SYS_creat, path(0)),
    known(SYS_stat, path(0), fixed(1, stat_bytes)),
    known(SYS_lstat, path(0), fixed(1, stat_bytes)),
    known(SYS_fstat, fixed(1, stat_bytes)),
    known(SYS_newfstatat, path(1), fixed(2, stat_bytes)),
    known(SYS_statx, path(1), fixed(4, 256)),
    known(SYS_statfs, path(0), fixed(1, 120)),
    known(SYS_fstatfs, fixed(1, 120)),
    known(SYS_access, path(0)),
    known(SYS_faccessat, path(1)),
    known(nr_faccessat2, path(1)),
    known(SYS_getdents, bytes(1, 2)),
    known(SYS_getdents64, bytes(1, 2)),
    known(SYS_readlink, path(0), bytes(1, 2)),
    known(SYS_readlinkat, path(1), bytes(2, 3)),
    known(SYS_mkdir, path(0)),
    known(SYS_mkdirat, path(1)),
    known(SYS_rmdir, path(0)),
    known(SYS_unlink, path(0)),
    known(SYS_unlinkat, path(1)),
    known(SYS_rename, path(0), path(1)),
    known(SYS_renameat, path(1), path(3)),
    known(SYS_renameat2, path(1), path(3)),
    known(SYS_link, path(0), path(1)),
    known(SYS_linkat, path(1), path(3)),
    known(SYS_symlink, path(0), path(1)),
    known(SYS_symlinkat, path(0), path(2)),
    known(SYS_chmod, path(0)),
    known(SYS_fchmod),
    known(SYS_fchmodat, path(1)),
    known(SYS_chown, path(0)),
    known(SYS_fchown),
    known(SYS_lchown, path(0)),
    known(SYS_fchownat, path(1)),
    known(SYS_truncate, path(0)),
    known(SYS_chdir, path(0)),
    known(SYS_fchdir),
    known(SYS_umask),
    known(SYS_mknod, path(0)),
    known(SYS_mknodat, path(1)),
    known(SYS_utime, path(0), fixed(1, 16)),
    known(SYS_utimes, path(0), fixed(1, 32)),
    known(SYS_utimensat, path(1), fixed(2, 32)),
    known(SYS_memfd_create, path(0)),
    known(SYS_getxattr, path(0), path(1), bytes(2, 3)),
    known(SYS_lgetxattr, path(0), path(1), bytes(2, 3)),
    known(SYS_fgetxattr, path(1), bytes(2, 3)),
    known(SYS_setxattr, path(0), path(1), bytes(2, 3)),
    known(SYS_listxattr, path(0), bytes(1, 2)),

    // Processes, threads, signals, timers.
    known(SYS_kill),
    known(SYS_tkill),
    known(SYS_tgkill),
    known(SYS_rt_sigqueueinfo, fixed(2, 128)),
    known(SYS_rt_tgsigqueueinfo, fixed(3, 128)),
    known(SYS_rt_sigtimedwait, fixed(0, 8), fixed(1, 128), fixed(2, time_bytes)),
    known(SYS_rt_sigsuspend, mask(0)),
    known(SYS_pause),
    known(SYS_alarm),
    known(SYS_getitimer, fixed(1, 32)),
    known(SYS_setitimer, fixed(1, 32), fixed(2, 32)),
    known(SYS_timer_create, fixed(1, 64), fixed(2, 4)),
    known(SYS_timer_settime, fixed(2, 32), fixed(3, 32)),
    known(SYS_timer_gettime, fixed(1, 32)),
    known(SYS_timer_getoverrun),
    known(SYS_timer_delete),
    known(SYS_wait4, fixed(1, 4), fixed(3, 144)),
    known(SYS_waitid, fixed(2, 128), fixed(4, 144)),
    known(SYS_setpgid),
    known(SYS_setsid),
    known(SYS_getpriority),
    known(SYS_setpriority),
    known(SYS_sched_setaffinity, bytes(2, 1)),
    known(SYS_sched_getparam, fixed(1, 4)),
    known(SYS_sched_getscheduler),
    known(SYS_sched_setscheduler, fixed(2, 4)),
    known(SYS_sched_get_priority_max),
    known(SYS_sched_get_priority_min),
    known(SYS_setrlimit, fixed(1, 16)),
    known(SYS_prlimit64, fixed(2, 16), fixed(3, 16)),
    known(SYS_getgroups, bytes(1, 0, 4)),
    known(SYS_membarrier),
    known(SYS_getresuid, fixed(0, 4), fixed(1, 4), fixed(2, 4)),
    known(SYS_getresgid, fixed(0, 4), fixed(1, 4), fixed(2, 4)),
    special(SYS_prctl, When::known, Special::process_control),

    // System V.
    known(SYS_shmget),
    known(SYS_semget),
    known(SYS_msgget),
    known(SYS_semop, bytes(1, 2, 6)),
    known(SYS_semtimedop, bytes(1, 2, 6), fixed(3, time_bytes)),
};

constexpr size_t numbers = 480;

struct Index {
  uint8_t row[numbers] = {};  // 0: not listed
};

consteval Index make_index() {
  static_assert(sizeof calls / sizeof calls[0] < 256);
  Index index;
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; ++i) {
    // A number listed twice would take the later row: none may be.
    if (index.row[calls[i].number]) __builtin_unreachable();
    index.row[calls[i].number] = uint8_t(i + 1);
  }
  return index;
}

constexpr Index index_of = make_index();
constexpr Call unknown{};

}  // namespace

const Call& find_call(uint64_t number) {
  const uint8_t row = number < numbers ? index_of.row[number] : 0;
  return row ? calls[row - 1] : unknown;
}

int control_bytes(uint64_t request) {
  switch (request) {
    case 0x5401:  // TCGETS
    case 0x5402:  // TCSETS, TCSETSW, TCSETSF
    case 0x5403:
    case 0x5404: return 36;
    case 0x5405:  // TCGETA, TCSETA, TCSETAW, TCSETAF
    case 0x5406:
    case 0x5407:
    case 0x5408: return 18;
    case 0x802c542a:  // TCGETS2, TCSETS2, TCSETSW2, TCSETSF2
    case 0x402c542b:
    case 0x402c542c:
    case 0x402c542d: return 44;
    case 0x5409:            // TCSBRK
    case 0x540a:            // TCXONC
    case 0x540b:            // TCFLSH
    case 0x5425:            // TCSBRKP
    case 0x5450:            // FIONCLEX
    case 0x5451: return 0;  // FIOCLEX
    case 0x5413:            // TIOCGWINSZ
    case 0x5414: return 8;  // TIOCSWINSZ
    case 0x540f:            // TIOCGPGRP
    case 0x5410:            // TIOCSPGRP
    case 0x5411:            // TIOCOUTQ, SIOCOUTQ
    case 0x541b:            // FIONREAD, SIOCINQ
    case 0x5421:            // FIONBIO
    case 0x5429:            // TIOCGSID
    case 0x5452:            // FIOASYNC
    case 0x80045430:        // TIOCGPTN
    case 0x40045431:        // TIOCSPTLCK
    case 0x8905: return 4;  // SIOCATMARK
    default: return -1;
  }
}

}  // namespace headway::guard
#endif
