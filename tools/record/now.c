/* now: the memory in which others see what this process does now. See now.h, and shared_now.h. */
#define _GNU_SOURCE
#include "now.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clocks.h"
#include "file.h"
#include "lock.h"
#include "same_file.h"
#include "shared_now.h"
#include "switches.h"

#define MAGIC 0x31574f4e52574848u /* HHWRNOW1 */
enum { MOST_THREADS = 1024 };     /* that there are before MPI_Init */

static RecordNow nowhere; /* what nobody else sees */
RECORD_API RecordNow* record_now_page = &nowhere;

static struct {
  bool tried;
  int file; /* -1: nobody else can see it */
  RecordSameFile is;
  uint64_t size;
  int before[MOST_THREADS]; /* threads that were there before MPI_Init */
  unsigned before_count;
} self = {.file = -1};

/* ---- memory ---- */

/* Not if the program has closed it, and perhaps has a file of its own there. */
static bool has_file(void) { return self.file >= 0 && record_is_same(self.file, self.is); }

/* `at`: where it lies in the file; 0: it does not. Locked. */
static void* more(size_t bytes, uint64_t* at) {
  *at = 0;
  if (has_file() && ftruncate(self.file, (off_t)(self.size + bytes)) == 0) {
    void* found =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, self.file, (off_t)self.size);
    if (found != MAP_FAILED) {
      *at = self.size;
      self.size += bytes;
      return found;
    }
  }
  void* alone = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return alone == MAP_FAILED ? NULL : alone;
}

static size_t whole_pages(size_t bytes) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  return (bytes + page - 1) / page * page;
}

/* Locked. */
static void start(void) {
  if (self.tried) return;
  self.tried = true;
  self.file = (int)syscall(SYS_memfd_create, RECORD_NOW_NAME, 1u /* MFD_CLOEXEC */);
  self.is = record_file_now(self.file);
  uint64_t at = 0;
  RecordNow* page = self.file >= 0 ? more(whole_pages(sizeof *page), &at) : NULL;
  if (!page) {
    if (self.file >= 0) close(self.file);
    self.file = -1;
    return;
  }
  record_now_page = page;
}

void* record_now_room(size_t bytes, uint64_t* at) {
  record_lock();
  start();
  void* found = more(whole_pages(bytes), at);
  record_unlock();
  return found;
}

void record_now_give_back(void* memory, size_t bytes, uint64_t at) {
  if (!memory) return;
  const size_t whole = whole_pages(bytes);
  munmap(memory, whole);
  record_lock();
  if (at && has_file())
    fallocate(self.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)whole);
  record_unlock();
}

int record_now_file(void) { return self.file; }

/* ---- the process's life ---- */

/* Calls `each` for every thread that there is. */
static void every_thread(void (*each)(int thread)) {
  DIR* all = opendir("/proc/self/task");
  struct dirent* entry;
  while (all && (entry = readdir(all)) != NULL) {
    if (entry->d_name[0] != '.') each(atoi(entry->d_name));
  }
  if (all) closedir(all);
}

static void note_before(int thread) {
  if (self.before_count < MOST_THREADS) self.before[self.before_count++] = thread;
}

static void note_own(int thread) {
  for (unsigned i = 0; i < self.before_count; ++i) {
    if (self.before[i] == thread) return;
  }
  RecordNow* page = record_now_page;
  if (page->own_threads < RECORD_NOW_OWN) page->own[page->own_threads++] = thread;
}

/* A child that ends as MPI programs do would change what is its parent's. */
static void forget_in_child(void) {
  record_now_page = &nowhere;
  if (record_me) record_me->now = &record_me->alone;
  record_live = 0;
  record_enabled = false;
  record_me = NULL;
}

void record_start_now(void) {
  start();
  every_thread(note_before);
  pthread_atfork(NULL, NULL, forget_in_child);
}

void record_begin_now(int rank, int size) {
  RecordNow* page = record_now_page;
  if (self.before_count < MOST_THREADS) every_thread(note_own);
  page->version = RECORD_NOW_VERSION;
  page->bytes = (uint32_t)sizeof *page;
  page->started = record_first_reading().realtime;
  page->pid = getpid();
  page->rank = rank;
  page->size = size;
  page->state = RECORD_NOW_INSIDE;
  page->ticks = record_now();
  page->ns = record_ns();
  page->ticks_per_ns = record_ticks_per_ns;
  __atomic_store_n(&page->magic, MAGIC, __ATOMIC_RELEASE);
}

/* Those of the channels (layer_now.h) that were used: of 64 bytes, the first word is not 0. */
void record_end_now(void) {
  typedef struct Used {
    uint64_t words[8];
  } Used;
  RecordNow* page = record_now_page;
  page->state = RECORD_NOW_OVER;
  const size_t bytes = page->channels * sizeof(Used);
  Used* all = page->channels_at && record_may_write() ? malloc(bytes) : NULL;
  size_t used = 0;
  if (all && has_file() &&
      pread(self.file, all, bytes, (off_t)page->channels_at) == (ssize_t)bytes) {
    for (size_t i = 0; i < page->channels; ++i) {
      if (all[i].words[0]) all[used++] = all[i];
    }
    record_put_block(RECORD_COUNTS, 0, all, used * sizeof *all, 0, 0);
  }
  free(all);
}

RecordWait* record_take_wait(RecordWait* alone) {
  RecordNow* page = record_now_page;
  RecordWait* found = NULL;
  for (int i = 0; i < RECORD_NOW_WAITS && !found; ++i) {
    if (page->waits[i].thread == 0) found = &page->waits[i];
  }
  if (!found) {
    ++page->unseen;
    found = alone;
  }
  found->thread = (int32_t)syscall(SYS_gettid);
  return found;
}

void record_give_wait(RecordWait* wait) {
  RecordNow* page = record_now_page;
  wait->thread = 0;
  wait->serial += wait->serial & 1; /* a thread that was cancelled in a wait */
  if (wait < page->waits || wait >= page->waits + RECORD_NOW_WAITS) --page->unseen;
}
