// What a program does with its signals and its memory while receives are released early, and after:
// it must be as without, however pages are closed. Signals blocked by a thread, by a handler, for
// the time of a call; memory that is dropped, moved, made longer, shared with a child. Each case is
// several rounds, since the first messages of a link may be waited for.
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "check.h"

namespace {

constexpr size_t page = 4096, bytes = 1 << 20;
constexpr int tag = 5, rounds = 4, late_us = 3'000;
constexpr int madv_dontneed_locked = 24;

uint64_t key(int round) { return check::key_of(check::seed, uint64_t(round)); }

class Memory {
 public:
  explicit Memory(size_t n = bytes) : n_(n) {
    at_ = static_cast<uint8_t*>(
        mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK(at_ != MAP_FAILED);
    memset(at_, 0xee, n);
  }
  ~Memory() { munmap(at_, n_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  uint8_t* operator*() const { return at_; }
  void grow(size_t n) {
    void* now = mremap(at_, n_, n, MREMAP_MAYMOVE);
    CHECK(now != MAP_FAILED);
    at_ = static_cast<uint8_t*>(now);
    n_ = n;
  }

 private:
  uint8_t* at_;
  size_t n_;
};

void send(int round) {
  std::vector<uint8_t> out(bytes);
  check::fill(out.data(), bytes, key(round));
  usleep(late_us);
  MPI(MPI_Send(out.data(), int(bytes), MPI_BYTE, 1, tag, MPI_COMM_WORLD));
}
void receive(uint8_t* into) {
  MPI(MPI_Recv(into, int(bytes), MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}
bool is_zero(const uint8_t* at, size_t n) {
  return std::all_of(at, at + n, [](uint8_t byte) { return byte == 0; });
}

// Rank 0 sends, rank 1 does `then` with each.
template <class Then>
void each(Then then) {
  for (int round = 0; round < rounds; ++round) {
    if (check::rank == 0) send(round);
    if (check::rank != 1) continue;
    Memory memory;
    receive(*memory);
    then(memory, round);
  }
}

// ------------------------------------------------------------------------------- signals

sigset_t all_signals() {
  sigset_t all;
  sigfillset(&all);
  return all;
}

void blocked() {
  const sigset_t all = all_signals();
  sigset_t before;
  CHECK_EQ(sigprocmask(SIG_SETMASK, &all, &before), 0);
  each([](Memory& memory, int round) { CHECK_BYTES(*memory, bytes, key(round)); });
  sigset_t now;
  CHECK_EQ(sigprocmask(SIG_SETMASK, &before, &now), 0);
  CHECK_EQ(sigismember(&now, SIGSEGV), 1);
}

void blocked_after_the_receive() {
  each([](Memory& memory, int round) {
    const sigset_t all = all_signals();
    sigset_t before;
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &all, &before), 0);
    CHECK_BYTES(*memory, bytes, key(round));
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
  });
}

const volatile uint8_t* read_by_handler = nullptr;
volatile int handled = 0;
volatile uint8_t handler_saw = 0;

void on_signal(int) {
  if (read_by_handler) handler_saw = *read_by_handler;
  handled = handled + 1;
}

void handle(int number, bool full_mask) {
  struct sigaction action {};
  action.sa_handler = on_signal;
  if (full_mask) sigfillset(&action.sa_mask);
  CHECK_EQ(sigaction(number, &action, nullptr), 0);
}
void handle_no_more(int number) {
  read_by_handler = nullptr;
  signal(number, SIG_DFL);
}

void in_a_handler_that_blocks_all() {
  handle(SIGUSR2, true);
  each([](Memory& memory, int round) {
    read_by_handler = *memory + bytes - 1;
    handled = 0;
    raise(SIGUSR2);
    CHECK_EQ(int(handled), 1);
    CHECK_EQ(uint8_t(handler_saw), check::byte_of(key(round), bytes - 1));
    CHECK_BYTES(*memory, bytes, key(round));
  });
  handle_no_more(SIGUSR2);
}

// The handler runs with the mask of the call.
void in_a_call_that_blocks_all() {
  handle(SIGUSR2, false);
  each([](Memory& memory, int round) {
    sigset_t one, before, others = all_signals();
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    sigdelset(&others, SIGUSR2);
    CHECK_EQ(sigprocmask(SIG_BLOCK, &one, &before), 0);
    read_by_handler = *memory + bytes - 1;
    handled = 0;
    raise(SIGUSR2);
    if (round % 2) {
      CHECK_EQ(ppoll(nullptr, 0, nullptr, &others), -1);
    } else {
      CHECK_EQ(sigsuspend(&others), -1);
    }
    CHECK_EQ(int(handled), 1);
    CHECK_EQ(uint8_t(handler_saw), check::byte_of(key(round), bytes - 1));
    CHECK_EQ(sigprocmask(SIG_SETMASK, &before, nullptr), 0);
    CHECK_BYTES(*memory, bytes, key(round));
  });
  handle_no_more(SIGUSR2);
}

// It interrupts the wait for one page, and touches another.
void in_a_handler_beside_a_touch() {
  handle(SIGALRM, false);
  each([](Memory& memory, int round) {
    read_by_handler = *memory + bytes - 1;
    handled = 0;
    const itimerval often{{0, 500}, {0, 500}}, never{};
    setitimer(ITIMER_REAL, &often, nullptr);
    CHECK_BYTES(*memory, bytes, key(round));
    while (handled == 0) usleep(100);
    setitimer(ITIMER_REAL, &never, nullptr);
    CHECK_EQ(uint8_t(handler_saw), check::byte_of(key(round), bytes - 1));
  });
  handle_no_more(SIGALRM);
}

// Its calls get the page's bytes, and no EFAULT.
int handler_pipe[2];
volatile int handler_failed = 0;
void on_alarm(int) {
  const int error = errno;
  char got;
  handler_failed =
      handler_failed + (write(handler_pipe[1], const_cast<uint8_t*>(read_by_handler), 1) != 1 ||
                        read(handler_pipe[0], &got, 1) != 1);
  handled = handled + 1;
  errno = error;
}

void in_a_handler_that_calls_beside_a_touch() {
  CHECK_EQ(pipe(handler_pipe), 0);
  struct sigaction action {};
  action.sa_handler = on_alarm;
  CHECK_EQ(sigaction(SIGALRM, &action, nullptr), 0);
  each([](Memory& memory, int round) {
    read_by_handler = *memory + bytes - 1;
    handled = 0;
    const itimerval often{{0, 500}, {0, 500}}, never{};
    setitimer(ITIMER_REAL, &often, nullptr);
    CHECK_BYTES(*memory, bytes, key(round));
    while (handled == 0) usleep(100);
    setitimer(ITIMER_REAL, &never, nullptr);
    CHECK_EQ(int(handler_failed), 0);
  });
  handle_no_more(SIGALRM);
  close(handler_pipe[0]);
  close(handler_pipe[1]);
}

// A thread that never called MPI, with all signals blocked, reads what the receive brings.
void in_a_thread_that_blocks_all() {
  struct Shared {
    sem_t go, done;
    const uint8_t* at;
    int round;
  } shared{};
  if (check::rank == 1) {
    sem_init(&shared.go, 0, 0);
    sem_init(&shared.done, 0, 0);
  }
  pthread_t thread{};
  const auto run = [](void* pointer) -> void* {
    auto* mine = static_cast<Shared*>(pointer);
    const sigset_t all = all_signals();
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    for (int i = 0; i < rounds; ++i) {
      while (sem_wait(&mine->go) != 0) {
      }
      CHECK_BYTES(mine->at, bytes, key(mine->round));
      sem_post(&mine->done);
    }
    return nullptr;
  };
  if (check::rank == 1) CHECK_EQ(pthread_create(&thread, nullptr, run, &shared), 0);
  each([&](Memory& memory, int round) {
    shared.at = *memory;
    shared.round = round;
    sem_post(&shared.go);
    while (sem_wait(&shared.done) != 0) {
    }
  });
  if (check::rank == 1) pthread_join(thread, nullptr);
}

// ------------------------------------------------------------------------------- memory

// Allocators rely on it, and ignore what it returns.
void dropped() {
  each([](Memory& memory, int round) {
    if (round % 2) CHECK_BYTES(*memory, bytes, key(round));
    CHECK_EQ(madvise(*memory, bytes, MADV_DONTNEED), 0);
    CHECK(is_zero(*memory, bytes));
    memset(*memory, 3, bytes);
    CHECK_UNTOUCHED(*memory, bytes, 3);
  });
}

void dropped_though_it_was_locked() {
  each([](Memory& memory, int round) {
    CHECK_BYTES(*memory, bytes, key(round));
    // Not by mlock(), which the sanitizers make do nothing. A limit may be in its way.
    const bool locked = syscall(SYS_mlock, *memory, bytes) == 0;
    if (locked && madvise(*memory, bytes / 2, madv_dontneed_locked) == 0) {
      CHECK(is_zero(*memory, bytes / 2));
    }
    CHECK_EQ(syscall(SYS_munlockall), 0);
    CHECK_EQ(madvise(*memory, bytes, MADV_DONTNEED), 0);
    CHECK(is_zero(*memory, bytes));
  });
}

void freed_lazily() {
  each([](Memory& memory, int round) {
    CHECK_BYTES(*memory, bytes, key(round));
    CHECK_EQ(madvise(*memory, bytes, MADV_FREE), 0);
    for (size_t i = 0; i < bytes; ++i) {
      CHECK((*memory)[i] == 0 || (*memory)[i] == check::byte_of(key(round), i));
    }
  });
}

// A random number generator does, so that a child never has its state.
void wiped_in_children() {
  each([](Memory& memory, int round) {
    CHECK_BYTES(*memory, bytes, key(round));
    CHECK_EQ(madvise(*memory, bytes, MADV_WIPEONFORK), 0);
    const pid_t child = fork();
    if (child == 0) _exit(is_zero(*memory, bytes) ? 0 : 1);
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
  });
}

void shorter_and_longer() {
  each([](Memory& memory, int round) {
    CHECK_BYTES(*memory, bytes, key(round));
    memory.grow(bytes / 2);
    memory.grow(2 * bytes);
    CHECK_BYTES(*memory, bytes / 2, key(round));
    CHECK(is_zero(*memory + bytes / 2, 3 * bytes / 2));
  });
}

// The buffer is a part of what is made longer.
void longer_around_the_buffer() {
  for (int round = 0; round < rounds; ++round) {
    if (check::rank == 0) send(round);
    if (check::rank != 1) continue;
    Memory memory(4 * bytes);
    receive(*memory + bytes);
    if (round % 2) CHECK_BYTES(*memory + bytes, bytes, key(round));
    memory.grow(8 * bytes);
    CHECK_UNTOUCHED(*memory, bytes, 0xee);
    CHECK_BYTES(*memory + bytes, bytes, key(round));
    CHECK_UNTOUCHED(*memory + 2 * bytes, 2 * bytes, 0xee);
  }
}

// By a bare call, of which the C library knows nothing.
void a_child_of_its_own() {
  each([](Memory& memory, int round) {
    if (round % 2) CHECK_BYTES(*memory, bytes, key(round));
    const auto child = pid_t(syscall(SYS_fork));
    if (child == 0) {
      const bool right = check::first_wrong(*memory, bytes, key(round)) == bytes;
      memset(*memory, 'c', bytes);
      syscall(SYS_exit_group, right ? 0 : 1);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_BYTES(*memory, bytes, key(round));
  });
}

void protected_parts() {
  each([](Memory& memory, int round) {
    CHECK_EQ(mprotect(*memory + page, page, PROT_READ), 0);
    CHECK_BYTES(*memory, bytes, key(round));
    CHECK_EQ(mprotect(*memory + page, page, PROT_READ | PROT_WRITE), 0);
    memset(*memory, 1, bytes);
  });
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(
      argc, argv,
      {{"blocked", blocked, 2},
       {"blocked_after_the_receive", blocked_after_the_receive, 2},
       {"in_a_handler_that_blocks_all", in_a_handler_that_blocks_all, 2},
       {"in_a_call_that_blocks_all", in_a_call_that_blocks_all, 2},
       {"in_a_handler_beside_a_touch", in_a_handler_beside_a_touch, 2},
       {"in_a_handler_that_calls_beside_a_touch", in_a_handler_that_calls_beside_a_touch, 2},
       {"in_a_thread_that_blocks_all", in_a_thread_that_blocks_all, 2},
       {"dropped", dropped, 2},
       {"dropped_though_it_was_locked", dropped_though_it_was_locked, 2},
       {"freed_lazily", freed_lazily, 2},
       {"wiped_in_children", wiped_in_children, 2},
       {"shorter_and_longer", shorter_and_longer, 2},
       {"longer_around_the_buffer", longer_around_the_buffer, 2},
       {"a_child_of_its_own", a_child_of_its_own, 2},
       {"protected_parts", protected_parts, 2}});
}
