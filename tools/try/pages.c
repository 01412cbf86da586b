/* pages: the buffers of sends that are put off. Their pages are read-only; a write to one is a
   signal, and the send is waited for before the write is done.

   The signal's handler waits inside of MPI, so it does so only where the program's one thread wrote
   outside of MPI: then nobody is in MPI, and no lock of the C library is held that MPI could want,
   since blocks that are watched hold nothing of malloc's own (memory.c). What MPI itself writes
   beside a buffer (a request, a status), on a page that the buffer shares with other variables of
   the program, is let through: the page is opened, the sends whose pages it is end when that call
   does, and until then the program does not run. What would have to be written into a buffer itself
   there, or by a thread of the MPI library, ends the process (try_give_up): the layer makes
   sure that it does not come to that, and nothing is changed behind anybody's back where it does.

   The program's own handler of SIGSEGV is there again whenever nothing is put off.

   Thread: the program's. Owner: libtrying. Invariant: each page of a send that is put off is
   read-only, but for those that were opened since the call of MPI began that this thread is in. */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "try.h"

enum { MOST_PUT_OFF = 256, MOST_SEGMENTS = 256, SMALLEST = 16 << 10 };

typedef int Action(int, const struct sigaction*, struct sigaction*);
typedef int Protect(void*, size_t, int);

typedef struct PutOff {
  TryRange bytes, pages;
  TryEnvelope envelope;
  TryRequest request;
  enum TryEnd ends; /* why it is over now; TRY_ENDS: it is not */
  bool touched;     /* a page of it was opened */
} PutOff;

TRY_API __thread int try_depth __attribute__((tls_model("initial-exec")));
TRY_API int try_count;
TRY_API bool try_touched;
TRY_HIDDEN bool try_threads, try_started;
TRY_HIDDEN __thread bool try_is_programs __attribute__((tls_model("initial-exec")));

static struct {
  PutOff all[MOST_PUT_OFF]; /* the first try_count, oldest first */
  TryWait* wait;
  TryRange library; /* the code of MPI */
  TryRange program; /* that of the object that sends */
  TryRange linker;
  TryRange stack;
  TryRange segments[MOST_SEGMENTS]; /* static memory of the program and its libraries */
  unsigned segment_count;
  uintptr_t page;
  pid_t process;
  bool protects;  /* somebody made memory of the program read-only, or worse */
  Action* action; /* the C library's own two: calls.c has these names here */
  Protect* protect;
  struct sigaction before; /* the program's */
} self;

/* ---- ranges ---- */

static TryRange pages_of(TryRange bytes) {
  return (TryRange){bytes.begin & ~(self.page - 1), (bytes.end + self.page - 1) & ~(self.page - 1)};
}

static bool overlap(TryRange one, TryRange other) {
  return one.begin < other.end && other.begin < one.end;
}

static TryRange common(TryRange one, TryRange other) {
  return (TryRange){one.begin > other.begin ? one.begin : other.begin,
                    one.end < other.end ? one.end : other.end};
}

static bool holds(TryRange one, TryRange other) {
  return one.begin <= other.begin && other.end <= one.end;
}

bool try_shares_pages(TryRange one, TryRange other) {
  return one.begin < one.end && other.begin < other.end && overlap(pages_of(one), pages_of(other));
}

static bool protect(TryRange pages, int how) {
  const uint64_t begin = try_now();
  const bool done = self.protect((void*)pages.begin, pages.end - pages.begin, how) == 0;
  try_counts.watching += try_now() - begin;
  return done;
}

static void close_pages(TryRange pages) {
  if (!protect(pages, PROT_READ)) try_give_up("pages cannot be made read-only any more");
}

static void open_pages(TryRange pages) {
  if (!protect(pages, PROT_READ | PROT_WRITE)) try_give_up("pages cannot be made writable again");
}

/* ---- what may be watched ---- */

static int note_segments(struct dl_phdr_info* info, size_t size, void* unused) {
  (void)size;
  (void)unused;
  for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + part->p_vaddr, end = begin + part->p_memsz;
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_W)) continue;
    if (self.segment_count < MOST_SEGMENTS)
      self.segments[self.segment_count++] = (TryRange){begin, end};
  }
  return 0;
}

static bool is_static(TryRange bytes) {
  for (unsigned i = 0; i < self.segment_count; ++i) {
    if (holds(self.segments[i], bytes)) return true;
  }
  return false;
}

static bool is_known(TryRange bytes) {
  if (is_static(bytes) || try_is_heap(bytes)) return true;
  self.segment_count = 0; /* it may have been loaded since */
  dl_iterate_phdr(note_segments, NULL);
  return is_static(bytes);
}

/* We would make those pages writable behind their back. */
void try_note_protection(const void* at, int how) {
  const TryRange first = {(uintptr_t)at, (uintptr_t)at + 1};
  if (try_started && !(how & PROT_WRITE) && (is_static(first) || try_is_heap(first)))
    self.protects = true;
}

static bool blocks_signal(void) {
  sigset_t blocked;
  return pthread_sigmask(SIG_BLOCK, NULL, &blocked) != 0 || sigismember(&blocked, SIGSEGV);
}

enum TryRefusal try_why_not(TryRange bytes) {
  if (try_threads || !try_is_programs) return TRY_THREADS;
  if (!self.wait) return TRY_SESSIONS;
  if (bytes.end - bytes.begin < SMALLEST) return TRY_SMALL;
  if (overlap(bytes, self.stack)) return TRY_STACK;
  if (self.protects) return TRY_PROTECTS;
  if (!is_known(bytes)) return TRY_UNKNOWN;
  if (try_count == MOST_PUT_OFF) return TRY_FULL;
  return blocks_signal() ? TRY_BLOCKED : TRY_MAY;
}

/* ---- ending ---- */

/* In a forked child there is no MPI: what it has are copies of the pages. */
static bool is_child(void) {
  if (getpid() == self.process) return false;
  for (int i = 0; i < try_count; ++i) open_pages(self.all[i].pages);
  if (try_count) self.action(SIGSEGV, &self.before, NULL);
  try_count = 0;
  return true;
}

/* Those that are marked: all are waited for before the first page is opened. A peer that still
   reads another one would be held up by each change of this process's mappings. */
static void end_marked(void) {
  static PutOff over[MOST_PUT_OFF];
  int over_count = 0, kept = 0, marked = 0;
  for (int i = 0; i < try_count; ++i) {
    if (self.all[i].ends == TRY_ENDS) continue;
    ++marked;
    if (self.wait(&self.all[i].request) != 0) try_give_up("a send that was put off failed");
  }
  if (marked == 0) return;
  for (int i = 0; i < try_count; ++i) {
    if (self.all[i].ends != TRY_ENDS) {
      over[over_count++] = self.all[i];
    } else if (kept++ != i) {
      self.all[kept - 1] = self.all[i];
    }
  }
  try_count = kept;
  for (int i = 0; i < over_count; ++i) {
    open_pages(over[i].pages);
    ++try_counts.ended[over[i].ends];
  }
  for (int i = 0; i < over_count; ++i) { /* those of others stay closed */
    for (int k = 0; k < kept; ++k) {
      const TryRange both = common(self.all[k].pages, over[i].pages);
      if (both.begin < both.end) close_pages(both);
    }
  }
  if (kept == 0) self.action(SIGSEGV, &self.before, NULL);
}

void try_end_all(enum TryEnd why) {
  if (try_count == 0 || is_child()) return;
  for (int i = 0; i < try_count; ++i) self.all[i].ends = why;
  end_marked();
  try_touched = false;
}

/* `exact`: what is written, on these pages; it tells by which of both a send ends. */
static void end_on(TryRange pages, TryRange exact, enum TryEnd why) {
  if (try_count == 0 || is_child()) return;
  for (int i = 0; i < try_count; ++i) {
    PutOff* one = &self.all[i];
    if (!overlap(one->pages, pages)) continue;
    one->ends = why == TRY_AT_WRITE && !overlap(one->bytes, exact) ? TRY_AT_BESIDE : why;
  }
  end_marked();
}

void try_end_pages(TryRange bytes, enum TryEnd why) {
  if (bytes.begin < bytes.end) end_on(pages_of(bytes), bytes, why);
}

void try_end_same(const TryEnvelope* envelope) {
  if (try_count == 0 || is_child()) return;
  for (int i = 0; i < try_count; ++i) {
    const TryEnvelope* one = &self.all[i].envelope;
    if (one->line == envelope->line && one->comm == envelope->comm && one->dest == envelope->dest &&
        one->tag == envelope->tag)
      self.all[i].ends = TRY_AT_SEND;
  }
  end_marked();
}

void try_end_touched(void) {
  if (is_child()) {
    try_touched = false;
    return;
  }
  while (try_touched) { /* the waits may touch more of them */
    try_touched = false;
    for (int i = 0; i < try_count; ++i) {
      if (self.all[i].touched) self.all[i].ends = TRY_AT_BESIDE;
    }
    end_marked();
  }
}

/* ---- somebody writes ---- */

static bool reaches(TryRange range, bool bytes) {
  for (int i = 0; i < try_count; ++i) {
    if (overlap(bytes ? self.all[i].bytes : self.all[i].pages, range)) return true;
  }
  return false;
}

/* Inside MPI, which waits for nobody. */
static void let_through(TryRange exact) {
  const TryRange pages = pages_of(exact);
  if (reaches(exact, true)) try_give_up("a buffer that is being sent was written inside of MPI");
  for (int i = 0; i < try_count; ++i) {
    if (overlap(self.all[i].pages, pages)) self.all[i].touched = try_touched = true;
  }
  for (uintptr_t at = pages.begin; at < pages.end; at += self.page) {
    const TryRange page = {at, at + self.page};
    if (reaches(page, false)) open_pages(page);
  }
}

static void write_comes(TryRange exact, enum TryEnd why, bool inside) {
  if (!try_is_programs)
    try_give_up("another thread wrote to a page of a buffer that is being sent");
  if (inside) {
    let_through(exact);
    return;
  }
  try_depth = 1;
  end_on(pages_of(exact), exact, why);
  try_leave();
}

void try_before_write(const void* at, size_t bytes, enum TryEnd why) {
  if (__builtin_expect(try_count == 0, 1) || !try_is_programs || !at || bytes == 0) return;
  const TryRange exact = {(uintptr_t)at, (uintptr_t)at + bytes};
  if (exact.end < exact.begin || !reaches(pages_of(exact), false) || is_child()) return;
  const int kept = errno;
  write_comes(exact, why, try_depth != 0);
  errno = kept;
}

void try_before_exit(void) {
  if (try_count == 0 || !try_is_programs || try_depth != 0) return;
  try_depth = 1;
  try_end_all(TRY_AT_END);
  try_leave();
}

void try_before_handler(void) {
  if (try_count == 0 || !try_is_programs || is_child()) return;
  if (try_depth != 0) try_give_up("a handler of SIGSEGV was set inside of MPI");
  try_depth = 1;
  try_end_all(TRY_AT_CALL);
  try_leave();
}

static bool is_in(TryRange code, uintptr_t at) { return at >= code.begin && at < code.end; }

typedef struct Registers {
  uintptr_t code, link; /* `link`: where a function returns to that called none; 0: not kept so */
  const uintptr_t* stack;
} Registers;

static Registers registers_of(const void* context) {
  const ucontext_t* at = context;
#if defined(__x86_64__)
  return (Registers){(uintptr_t)at->uc_mcontext.gregs[REG_RIP], 0,
                     (const uintptr_t*)at->uc_mcontext.gregs[REG_RSP]};
#elif defined(__aarch64__)
  return (Registers){(uintptr_t)at->uc_mcontext.pc, (uintptr_t)at->uc_mcontext.regs[30],
                     (const uintptr_t*)at->uc_mcontext.sp};
#else
  return (Registers){0, 0, NULL};
#endif
}

/* Which place of the program wrote, as a return address: its own, or who called a function as
   memset; 0 if it is the linker, which notes where a function is that is called for the first time.
   The caller is a guess, for the user's eyes alone: the first word on the stack that could be. */
static uintptr_t writer(Registers at) {
  enum { WORDS = 64 };
  if (is_in(self.linker, at.code)) return 0;
  if (is_in(self.program, at.code)) return at.code + 1;
  if (is_in(self.program, at.link)) return at.link;
  for (int i = 0; at.stack && i < WORDS && is_in(self.stack, (uintptr_t)(at.stack + i)); ++i) {
    if (is_in(self.program, at.stack[i])) return at.stack[i];
  }
  return at.code + 1;
}

/* Not ours. Outside of MPI nothing is put off any more, so that the program's own handling is in
   its place again when the instruction is tried once more. */
static void hand_on(int number, siginfo_t* info, void* context) {
  const struct sigaction before = self.before;
  if (try_depth == 0 && try_is_programs) try_before_handler();
  if (info->si_code > 0 && try_count == 0) return;
  if (before.sa_flags & SA_SIGINFO) {
    before.sa_sigaction(number, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(number);
  } else if (before.sa_handler == SIG_DFL || info->si_code > 0) {
    const struct sigaction plain = {.sa_handler = SIG_DFL};
    self.action(SIGSEGV, &plain, NULL);
    raise(SIGSEGV);
  }
}

static void on_fault(int number, siginfo_t* info, void* context) {
  const int kept = errno;
  const uintptr_t at = (uintptr_t)info->si_addr;
  const TryRange exact = {at, at + 1};
  if (info->si_code != SEGV_ACCERR || !reaches(exact, false)) {
    hand_on(number, info, context);
  } else if (!is_child()) {
    const Registers registers = registers_of(context);
    const bool inside = is_in(self.library, registers.code);
    try_note_write(writer(registers), !reaches(exact, true));
    /* In a function of MPI that the layer does not know nothing may be waited for, nor may a
       page be left open behind it. */
    if (inside && try_depth == 0)
      try_give_up("MPI wrote beside a buffer that is being sent, in a call that is not watched");
    write_comes(exact, TRY_AT_WRITE, try_depth != 0);
  }
  errno = kept;
}

/* ---- putting off ---- */

typedef struct Object {
  uintptr_t at;
  TryRange code;
} Object;

static int look_for_code(struct dl_phdr_info* info, size_t size, void* object) {
  (void)size;
  Object* wanted = object;
  TryRange code = {UINTPTR_MAX, 0};
  for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + part->p_vaddr;
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
    if (begin < code.begin) code.begin = begin;
    if (begin + part->p_memsz > code.end) code.end = begin + part->p_memsz;
  }
  if (!is_in(code, wanted->at)) return 0;
  wanted->code = code;
  return 1;
}

static TryRange code_around(uintptr_t at) {
  Object wanted = {at, {0, 0}};
  dl_iterate_phdr(look_for_code, &wanted);
  return wanted.code;
}

bool try_put_off(TryRange bytes, const TryEnvelope* envelope, const TryRequest* request) {
  if (try_count == MOST_PUT_OFF || !self.wait) return false; /* a Waitall of more sends than that */
  const TryRange pages = pages_of(bytes);
  if (!is_in(self.program, envelope->site)) self.program = code_around(envelope->site);
  if (try_count == 0) {
    struct sigaction mine = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigemptyset(&mine.sa_mask);
    if (self.action(SIGSEGV, &mine, &self.before) != 0) return false;
  }
  if (!protect(pages, PROT_READ)) {
    /* A part of them may be read-only now, others of them for another send. */
    protect(pages, PROT_READ | PROT_WRITE);
    for (int i = 0; i < try_count; ++i) close_pages(self.all[i].pages);
    if (try_count == 0) self.action(SIGSEGV, &self.before, NULL);
    return false;
  }
  self.all[try_count++] = (PutOff){bytes, pages, *envelope, *request, TRY_ENDS, false};
  ++try_counts.put_off;
  return true;
}

void try_start_pages(TryWait* wait, const void* library) {
  self.wait = wait;
  self.process = getpid();
  self.library = code_around((uintptr_t)library);
  if (_r_debug.r_brk) self.linker = code_around(_r_debug.r_brk);
  pthread_attr_t attributes;
  void* low = NULL;
  size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
  }
  self.stack = (TryRange){(uintptr_t)low, (uintptr_t)low + size};
  atexit(try_before_exit);
}

__attribute__((constructor)) static void start_pages(void) {
  self.page = (uintptr_t)sysconf(_SC_PAGESIZE);
  self.action = (Action*)try_next("sigaction");
  self.protect = (Protect*)try_next("mprotect");
  dl_iterate_phdr(note_segments, NULL);
  try_is_programs = true;
  try_started = true;
}
