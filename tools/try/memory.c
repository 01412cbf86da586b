/* memory: the heap, in which each block of 16 KB or more has pages of its own, in the unchanged run
   and in the changed one alike. So the pages of a buffer hold nothing of another block, nor of
   malloc itself, which writes with its locks held. Blocks come from the C library (or from whatever
   heap stands behind us), one page larger; smaller ones are passed on.

   Thread: any. Owner: libtrying. Invariant: a block in the table is one that the program has; it
   leaves the table before it is given back. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "try.h"

enum { LARGE = 16 << 10, FIRST_TABLE = 1 << 12, EARLY = 64 << 10, CACHED = 64 };

typedef struct Block {
  uintptr_t begin; /* 0: free; 1: was taken */
  size_t room;     /* whole pages */
  void* from;      /* what the heap gave */
} Block;
enum { NEVER = 0, GONE = 1 };

static struct {
  void* (*malloc)(size_t);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  void* (*memalign)(size_t, size_t);
  void (*free)(void*);
  size_t (*usable)(void*);
  uintptr_t page;
  int state; /* 0: not looked, 1: looking, 2: found */
  Block* table;
  size_t room, used; /* `used`: slots that are not free */
  size_t last[CACHED];
  char gate;
  char early[EARLY]; /* what dlsym itself wants, while it looks for malloc */
  size_t early_used;
} self;

void* try_next(const char* name) { return dlsym(RTLD_NEXT, name); }

static bool look(void) {
  if (__builtin_expect(self.state == 2, 1)) return true;
  if (self.state == 1) return false;
  self.state = 1;
  self.page = (uintptr_t)sysconf(_SC_PAGESIZE);
  *(void**)&self.malloc = try_next("malloc");
  *(void**)&self.calloc = try_next("calloc");
  *(void**)&self.realloc = try_next("realloc");
  *(void**)&self.memalign = try_next("memalign");
  *(void**)&self.free = try_next("free");
  *(void**)&self.usable = try_next("malloc_usable_size");
  self.state = 2;
  return true;
}

static void lock(void) {
  while (__atomic_test_and_set(&self.gate, __ATOMIC_ACQUIRE)) sched_yield();
}
static void unlock(void) { __atomic_clear(&self.gate, __ATOMIC_RELEASE); }

/* Another thread may have held it. */
static void in_child(void) { __atomic_clear(&self.gate, __ATOMIC_RELEASE); }
__attribute__((constructor)) static void start_memory(void) {
  look();
  pthread_atfork(NULL, NULL, in_child);
}

static void* early(size_t bytes) {
  const size_t size = (bytes + 31) & ~(size_t)15; /* its length stands before it */
  if (self.early_used + size + 16 > sizeof self.early) return NULL;
  char* block = self.early + self.early_used + 16;
  block -= (uintptr_t)block & 15;
  memcpy(block - 8, &bytes, sizeof bytes);
  self.early_used += size;
  return block;
}

static bool is_early(const void* block) {
  return (uintptr_t)block - (uintptr_t)self.early < sizeof self.early;
}

/* ---- the table; locked ---- */

static size_t place(uintptr_t begin) {
  return (size_t)((begin * 0x9e3779b97f4a7c15u) >> 24) & (self.room - 1);
}

static bool grow(void) {
  size_t live = 0;
  for (size_t i = 0; i < self.room; ++i) live += self.table[i].begin > GONE;
  size_t room = FIRST_TABLE;
  while (room < live * 4) room *= 2;
  Block* larger =
      mmap(NULL, room * sizeof *larger, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (larger == MAP_FAILED) return false;
  Block* old = self.table;
  const size_t was = self.room;
  self.table = larger;
  self.room = room;
  self.used = live;
  for (size_t i = 0; i < was; ++i) {
    if (old[i].begin <= GONE) continue;
    size_t at = place(old[i].begin);
    while (larger[at].begin) at = (at + 1) & (room - 1);
    larger[at] = old[i];
  }
  if (old) munmap(old, was * sizeof *old);
  return true;
}

static bool put(Block block) {
  lock();
  const bool fits = (self.used + 1) * 2 < self.room || grow();
  if (fits) {
    size_t at = place(block.begin);
    while (self.table[at].begin > GONE) at = (at + 1) & (self.room - 1);
    self.used += self.table[at].begin == NEVER;
    self.table[at] = block;
  }
  unlock();
  return fits;
}

/* `gone`: it leaves the table. */
static bool find(const void* begin, Block* found, bool gone) {
  if (!begin || (uintptr_t)begin & (self.page - 1)) return false;
  bool is_there = false;
  lock();
  for (size_t at = self.room ? place((uintptr_t)begin) : 0; self.room && self.table[at].begin;
       at = (at + 1) & (self.room - 1)) {
    if (self.table[at].begin != (uintptr_t)begin) continue;
    *found = self.table[at];
    if (gone) self.table[at].begin = GONE;
    is_there = true;
    break;
  }
  unlock();
  return is_there;
}

static bool in(size_t at, TryRange bytes) {
  const Block* one = &self.table[at];
  return one->begin > GONE && one->begin <= bytes.begin && bytes.end <= one->begin + one->room;
}

bool try_is_heap(TryRange bytes) {
  size_t* last = &self.last[(bytes.begin / LARGE) % CACHED];
  bool found = false;
  lock();
  if (*last < self.room && in(*last, bytes)) {
    found = true;
  } else {
    for (size_t at = 0; at < self.room && !found; ++at) {
      if (!in(at, bytes)) continue;
      *last = at;
      found = true;
    }
  }
  unlock();
  return found;
}

/* ---- blocks ---- */

static size_t whole_pages(size_t bytes) { return (bytes + self.page - 1) & ~(self.page - 1); }

static void* own(size_t bytes, size_t alignment, bool zero) {
  const size_t room = whole_pages(bytes);
  if (room < bytes || room + self.page < room) {
    errno = ENOMEM;
    return NULL;
  }
  void* from;
  if (alignment > self.page) {
    from = self.memalign(alignment, room);
  } else {
    from = zero ? self.calloc(1, room + self.page) : self.malloc(room + self.page);
  }
  if (!from) return NULL;
  const uintptr_t begin = whole_pages((uintptr_t)from);
  if (!put((Block){begin, room, from})) return from; /* as it is, and never watched */
  return (void*)begin;
}

static bool is_large(size_t bytes) { return bytes >= LARGE && look(); }

TRY_API void* malloc(size_t bytes) {
  if (is_large(bytes)) return own(bytes, 1, false);
  return look() ? self.malloc(bytes) : early(bytes);
}

TRY_API void* calloc(size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return NULL;
  }
  if (is_large(bytes)) return own(bytes, 1, true);
  return look() ? self.calloc(count, size) : early(bytes); /* which was never used */
}

TRY_API void free(void* block) {
  Block found;
  if (is_early(block)) return;
  if (!find(block, &found, false)) {
    if (block && look()) self.free(block);
    return;
  }
  try_before_write(block, found.room, TRY_AT_FREE);
  const int kept = errno;
  if (find(block, &found, true)) self.free(found.from);
  errno = kept;
}

static size_t length_of(void* block) {
  Block found;
  size_t length = 0;
  if (is_early(block)) {
    memcpy(&length, (char*)block - 8, sizeof length);
    return length;
  }
  return find(block, &found, false) ? found.room : self.usable(block);
}

TRY_API void* realloc(void* block, size_t bytes) {
  Block found;
  if (!block) return malloc(bytes);
  const bool was_own = find(block, &found, false);
  if (!was_own && !is_early(block) && bytes < LARGE)
    return look() ? self.realloc(block, bytes) : NULL;
  if (bytes == 0) {
    free(block);
    return NULL;
  }
  if (was_own && bytes >= LARGE && bytes <= found.room && bytes * 2 > found.room) return block;
  void* larger = malloc(bytes);
  if (!larger) return NULL;
  const size_t had = length_of(block);
  memcpy(larger, block, had < bytes ? had : bytes);
  free(block);
  return larger;
}

TRY_API void* reallocarray(void* block, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return NULL;
  }
  return realloc(block, bytes);
}

TRY_API void* memalign(size_t alignment, size_t bytes) {
  if (is_large(bytes)) return own(bytes, alignment, false);
  return look() ? self.memalign(alignment, bytes) : NULL;
}

TRY_API void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

TRY_API int posix_memalign(void** to, size_t alignment, size_t bytes) {
  if (alignment < sizeof(void*) || (alignment & (alignment - 1)) != 0) return EINVAL;
  const int kept = errno;
  void* block = memalign(alignment, bytes);
  errno = kept;
  if (!block) return ENOMEM;
  *to = block;
  return 0;
}

TRY_API void* valloc(size_t bytes) { return memalign((size_t)sysconf(_SC_PAGESIZE), bytes); }
TRY_API void* pvalloc(size_t bytes) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  return memalign(page, (bytes + page - 1) & ~(page - 1));
}

TRY_API size_t malloc_usable_size(void* block) { return block ? length_of(block) : 0; }

TRY_API void free_sized(void* block, size_t bytes);
TRY_API void free_sized(void* block, size_t bytes) {
  (void)bytes;
  free(block);
}
TRY_API void free_aligned_sized(void* block, size_t alignment, size_t bytes);
TRY_API void free_aligned_sized(void* block, size_t alignment, size_t bytes) {
  (void)alignment;
  (void)bytes;
  free(block);
}
