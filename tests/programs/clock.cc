// MPI_Wtime: monotonic within a thread, between threads, and also before MPI_Init and after
// MPI_Finalize; and it makes no system call, which a process finds out that may make none.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <atomic>
#include <thread>
#include <vector>

#include "check.h"

namespace {

void one_thread(int calls) {
  const double tick = MPI_Wtick();
  CHECK(tick > 0 && tick <= 1e-6);
  double last = MPI_Wtime();
  const double first = last;
  for (int i = 0; i < calls; ++i) {
    const double now = MPI_Wtime();
    if (now < last) CHECK(now >= last);
    last = now;
  }
  CHECK(last > first);
  CHECK(PMPI_Wtime() >= last);
}

// Whoever sees a time that another thread has read reads no smaller one itself.
void several_threads() {
  std::atomic<double> latest{MPI_Wtime()};
  std::atomic<int> backwards{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 100000; ++k) {
        double seen = latest.load(std::memory_order_acquire);
        const double now = MPI_Wtime();
        if (now < seen) backwards.fetch_add(1);
        while (seen < now && !latest.compare_exchange_weak(seen, now)) {
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(backwards.load(), 0);
}

// It passes while nobody looks, at the speed of the system's clock.
void passes_while_asleep() {
  timespec before, after;
  clock_gettime(CLOCK_MONOTONIC, &before);
  const double inner_before = MPI_Wtime();
  usleep(20000);
  const double inner = MPI_Wtime() - inner_before;
  clock_gettime(CLOCK_MONOTONIC, &after);
  const double outer =
      double(after.tv_sec - before.tv_sec) + double(after.tv_nsec - before.tv_nsec) * 1e-9;
  CHECK(inner >= 0.02);
  CHECK(inner <= outer);
}

// From here on every system call but the one that ends this thread kills the process.
bool forbid_system_calls() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  sock_fprog program = {sizeof filter / sizeof filter[0], filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// True if a child that may make no system call comes to its end.
template <class Deed>
bool lives_without_system_calls(Deed deed) {
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (!forbid_system_calls()) _exit(4);
    deed();
    syscall(SYS_exit, 0);
  }
  int status = 0;
  CHECK_EQ(waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status)) CHECK_EQ(WTERMSIG(status), SIGSYS);
  if (WIFEXITED(status)) CHECK_EQ(WEXITSTATUS(status), 0);
  return WIFEXITED(status);
}

void no_system_calls() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their runtimes make some
  CHECK(!lives_without_system_calls([] { syscall(SYS_getppid); }));  // the test can fail
  const bool cheap_clock = lives_without_system_calls([] {
    timespec now;
    for (int i = 0; i < 1000; ++i) clock_gettime(CLOCK_MONOTONIC, &now);
  });
  if (!cheap_clock) {
    printf("note: this machine's clock itself takes a system call (clocksource)\n");
    return;
  }
  CHECK(lives_without_system_calls([] {
    double sum = 0;
    for (int i = 0; i < 100000; ++i) sum += MPI_Wtime() + PMPI_Wtime() + MPI_Wtick();
    if (!(sum > 0)) syscall(SYS_getppid);
  }));
#endif
}

}  // namespace

int main(int argc, char** argv) {
  one_thread(1000);
  no_system_calls();
  const int code = check::main(argc, argv,
                               {{"one thread", [] { one_thread(300000); }},
                                {"several threads", several_threads},
                                {"asleep", passes_while_asleep},
                                {"no system calls", no_system_calls}},
                               MPI_THREAD_FUNNELED);
  one_thread(1000);
  return code;
}
