/* recorder: buffers, the file, options, clocks, sites. See recorder.h. */
#define _GNU_SOURCE
#include "recorder.h"
#include "folder.h"
#include "sites.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "recorder_functions.inc" /* names, families */

enum {
  MAGIC = 0x31525748,
  EVENTS_OF_A_BLOCK = 1360, /* 64 KB with its header */
  MOST_SITES = 1 << 16,
  MOST_THREADS = 255
};
enum BlockType { HEADER = 1, CLOCK, EVENTS, SITES, COMMS, END };
static const uint64_t never = UINT64_MAX;
static const uint64_t look_again_ns = 1000000; /* at the run delay */

typedef struct Block {
  uint32_t magic;
  uint16_t type, thread;
  uint64_t length, first, last;
} Block;

typedef struct Text { /* a list of JSON, growing; `lost` once there was no memory for it */
  char* data;
  size_t length, room;
} Text;

typedef struct Reading {
  uint64_t ticks, monotonic, realtime;
} Reading;

RECORD_API __thread RecordThread* record_me __attribute__((tls_model("initial-exec")));
RECORD_API uint8_t record_wanted[RECORD_FUNCTIONS];
RECORD_API uint8_t record_live;
RECORD_API int record_clock_is_tsc;
RECORD_API uint64_t record_next_switch = UINT64_MAX;
RECORD_API double record_ticks_per_ns = 1;
RECORD_API int record_finalized;

static struct {
  pthread_mutex_t lock; /* all of this but `chosen` */
  bool enabled;         /* the program was started by `headway record` */
  bool python;          /* lines of Python are wanted */
  bool over; /* nothing is written any more: ended, no room, or these ranks are not recorded */
  uint8_t chosen[RECORD_FUNCTIONS]; /* by --calls */
  int level;                        /* MPI_Pcontrol: 0 is off */
  double from, to;                  /* seconds after the beginning; `to` 0: no end */
  uint64_t begin_ticks, off_since;
  bool on;
  Reading start;
  uint64_t test_offset;
  double test_drift;
  int file, rank;
  bool speaks; /* for all ranks */
  pid_t pid;
  RecordPlace place;
  uint64_t at; /* where the next block goes */
  uint64_t written, lost;
  const char* why; /* records were lost */
  RecordThread* threads;
  unsigned thread_count;
  RecordKnownSite* sites;
  uint32_t site_count;
  Text new_sites, new_comms;
  pthread_key_t key;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER, .file = -1, .level = 1};

static void say(const char* format, ...) {
  char text[PATH_MAX + 512];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  char line[PATH_MAX + 544];
  const int whole = snprintf(line, sizeof line, "headway record: %s\n", text);
  if (whole > 0 && write(2, line, (size_t)whole) < 0) return;
}

/* ---- text ---- */

size_t record_append_json(char* to, size_t room, const char* text) {
  size_t at = 0;
  for (const unsigned char* c = (const unsigned char*)text; *c && at + 7 < room; ++c) {
    if (*c == '"' || *c == '\\') {
      to[at++] = '\\';
      to[at++] = (char)*c;
    } else if (*c < 0x20 || *c == 0x7f) {
      at += (size_t)snprintf(to + at, room - at, "\\u%04x", *c);
    } else {
      to[at++] = (char)*c;
    }
  }
  to[at] = 0;
  return at;
}

static void add(Text* list, const char* text) {
  const size_t length = strlen(text);
  if (list->length + length + 2 > list->room) {
    const size_t room = (list->room + length + 2) * 2;
    char* larger = realloc(list->data, room);
    if (!larger) return;
    list->data = larger;
    list->room = room;
  }
  const char between = list->length ? ',' : '[';
  list->data[list->length++] = between;
  memcpy(list->data + list->length, text, length);
  list->length += length;
}

/* ---- clocks ---- */

static bool is_tsc_steady(void) {
#if defined(__x86_64__)
  unsigned a, b, c, d;
  if (__get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8))) return true;
  char name[32] = "";
  const int file = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                        O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t got = read(file, name, sizeof name - 1);
  close(file);
  return got > 0 && (!strncmp(name, "tsc", 3) || !strncmp(name, "kvm-clock", 9));
#elif defined(__aarch64__)
  return true; /* its counter never stops */
#else
  return false;
#endif
}

static Reading read_clocks(void) {
  struct timespec real;
  Reading now;
  /* The reading that was least disturbed of three: both clocks within the same few ns. */
  uint64_t best = UINT64_MAX;
  for (int i = 0; i < 3; ++i) {
    const uint64_t before = record_now();
    const uint64_t ns = record_ns();
    const uint64_t after = record_now();
    if (after - before < best) {
      best = after - before;
      now.ticks = before + (after - before) / 2;
      now.monotonic = ns;
    }
  }
  clock_gettime(CLOCK_REALTIME, &real);
  now.realtime = (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec;
  return now;
}

/* A test may give this process another clock (HEADWAY_RECORD_TEST_CLOCK). */
static Reading told_clocks(void) {
  Reading now = read_clocks();
  const double since = (double)(now.monotonic - self.start.monotonic);
  now.monotonic += self.test_offset + (uint64_t)(int64_t)(since * self.test_drift);
  return now;
}

static void learn_rate(void) {
  const Reading now = read_clocks();
  const uint64_t ns = now.monotonic - self.start.monotonic;
  if (ns > 100000) record_ticks_per_ns = (double)(now.ticks - self.start.ticks) / (double)ns;
}

/* ---- the file ---- */

/* One block, whole or not at all. The lock is held. */
static bool put_block(enum BlockType type, unsigned thread, const void* data, size_t length,
                      uint64_t first, uint64_t last) {
  static const char spaces[8] = "        ";
  const size_t more = (8 - length % 8) % 8;
  Block block = {MAGIC, (uint16_t)type, (uint16_t)thread, length + more, first, last};
  struct iovec parts[3] = {{&block, sizeof block}, {(void*)data, length}, {(void*)spaces, more}};
  const size_t whole = sizeof block + length + more;
  struct iovec* part = parts;
  size_t done = 0;
  while (done < whole) {
    const ssize_t wrote =
        pwritev(self.file, part, (int)(parts + 3 - part), (off_t)(self.at + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      self.why = wrote < 0 ? strerror(errno) : "nothing could be written";
      if (ftruncate(self.file, (off_t)self.at) != 0)
        self.over = true; /* half a block stays at the end */
      return false;
    }
    done += (size_t)wrote;
    size_t left = (size_t)wrote;
    while (part < parts + 3 && left >= part->iov_len) left -= (part++)->iov_len;
    if (part < parts + 3) {
      part->iov_base = (char*)part->iov_base + left;
      part->iov_len -= left;
    }
  }
  self.at += whole;
  return true;
}

static void put_clock(void) {
  const Reading now = told_clocks();
  put_block(CLOCK, 0, &now, sizeof now, 0, 0);
}

static void put_list(enum BlockType type, Text* list) {
  if (list->length == 0) return;
  list->data[list->length] = ']';
  if (put_block(type, 0, list->data, list->length + 1, 0, 0)) list->length = 0;
}

static bool may_write(void) { return self.file >= 0 && !self.over && getpid() == self.pid; }

/* The lock is held. Before the file is there (MPI_Init has not returned) what does not fit is lost.
 */
static void put_events(RecordThread* me) {
  const size_t count = (size_t)(me->next - me->buffer);
  if (count == 0) return;
  put_list(SITES, &self.new_sites);
  put_list(COMMS, &self.new_comms);
  uint64_t first = me->buffer[0].begin, last = me->buffer[0].end;
  for (size_t i = 1; i < count; ++i) {
    if (me->buffer[i].begin < first) first = me->buffer[i].begin;
    if (me->buffer[i].end > last) last = me->buffer[i].end;
  }
  if (put_block(EVENTS, me->number, me->buffer, count * sizeof(RecordEvent), first, last)) {
    self.written += count;
  } else {
    if (self.lost == 0) {
      say("rank %d loses records: %s: %s. What was written before stays", self.rank,
          self.place.path, self.why);
    }
    self.lost += count;
  }
  put_clock();
}

void record_write(RecordThread* me) {
  pthread_mutex_lock(&self.lock);
  if (may_write()) {
    put_events(me);
  } else if (!self.over) {
    self.lost += (uint64_t)(me->next - me->buffer);
  }
  me->next = me->buffer;
  me->last_block = record_now();
  pthread_mutex_unlock(&self.lock);
}

void record_write_vain(RecordThread* me) {
  const RecordVain vain = me->vain;
  me->vain.count = 0;
  if (me->next == me->limit) record_write(me);
  RecordEvent* event = me->next++;
  *event = (RecordEvent){.kind = vain.kind,
                         .thread = me->number,
                         .flags = RECORD_IN_VAIN,
                         .site = vain.site,
                         .begin = vain.begin,
                         .end = vain.end,
                         .peer = RECORD_NONE,
                         .tag = (int32_t)vain.count,
                         .bytes = vain.inside};
}

void record_flush(void) {
  RecordThread* me = record_me;
  if (!me) return;
  if (me->vain.count) record_write_vain(me);
  record_write(me);
}

void record_end_file(int finalized) {
  /* A forked child ends, and whoever held the lock at the fork is not there to give it up. */
  if (self.pid != 0 && getpid() != self.pid) return;
  pthread_mutex_lock(&self.lock);
  if (may_write()) {
    /* Others may still be in a call: their buffers are read, and never written again. */
    for (RecordThread* thread = self.threads; thread; thread = thread->other) {
      if (thread->vain.count && thread->next != thread->limit) record_write_vain(thread);
      put_events(thread);
    }
    put_list(SITES, &self.new_sites);
    put_list(COMMS, &self.new_comms);
    put_clock();
    char why[512] = "", text[768];
    if (self.why) record_append_json(why, sizeof why, self.why);
    const int length = snprintf(text, sizeof text,
                                "{\"finalized\":%s,\"events\":%llu,\"lost\":%llu,\"why\":\"%s\"}",
                                finalized ? "true" : "false", (unsigned long long)self.written,
                                (unsigned long long)self.lost, why);
    put_block(END, 0, text, (size_t)length, 0, 0);
    if (self.lost) {
      say("rank %d lost %llu of %llu records: %s", self.rank, (unsigned long long)self.lost,
          (unsigned long long)(self.lost + self.written),
          self.why ? self.why : "MPI was not initialized");
    }
    if (self.speaks) {
      say("recorded into %s; headway trace %s shows it", self.place.folder, self.place.folder);
      record_close(&self.place);
    }
    close(self.file);
    self.file = -1;
  }
  self.over = true;
  record_live = 0;
  memset(record_wanted, 0, sizeof record_wanted);
  pthread_mutex_unlock(&self.lock);
}

/* ---- the beginning of the file ---- */

static size_t put_cmdline(char* to, size_t room) {
  char words[8192];
  const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  const ssize_t got = file < 0 ? 0 : read(file, words, sizeof words - 1);
  if (file >= 0) close(file);
  size_t at = 0;
  for (ssize_t i = 0; i < got && at + 64 < room;) {
    words[got] = 0;
    if (at) to[at++] = ',';
    to[at++] = '"';
    at += record_append_json(to + at, room - at - 2, words + i);
    to[at++] = '"';
    i += (ssize_t)strlen(words + i) + 1;
  }
  to[at] = 0;
  return at;
}

static void read_line(const char* path, char* to, size_t room) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t got = file < 0 ? 0 : read(file, to, room - 1);
  if (file >= 0) close(file);
  to[got > 0 ? got : 0] = 0;
  to[strcspn(to, "\n")] = 0;
}

static void put_header(int rank, int size, const char* mpi) {
  const size_t room = 1 << 17;
  char* text = malloc(room);
  if (!text) return;
  char host[256] = "", boot[80] = "", exe[PATH_MAX] = "", name[PATH_MAX * 2], library[1024],
       arguments[16384];
  gethostname(host, sizeof host - 1);
  read_line("/proc/sys/kernel/random/boot_id", boot, sizeof boot - 8);
  if (self.test_offset || self.test_drift != 0)
    snprintf(boot + strlen(boot), 8, "-%d", rank % 1000);
  const ssize_t got = readlink("/proc/self/exe", exe, sizeof exe - 1);
  exe[got > 0 ? got : 0] = 0;
  record_append_json(name, sizeof name, exe);
  record_append_json(library, sizeof library, mpi);
  put_cmdline(arguments, sizeof arguments);
  size_t at = (size_t)snprintf(
      text, room,
      "{\"version\":%d,\"rank\":%d,\"size\":%d,\"host\":\"%s\",\"boot\":\"%s\",\"pid\":%d,"
      "\"program\":\"%s\","
      "\"arguments\":[%s],\"mpi\":\"%s\",\"ticks\":\"%s\",\"started\":%llu,\"functions\":[",
      RECORD_VERSION, rank, size, host, boot, (int)getpid(), name, arguments, library,
      record_clock_is_tsc ? "tsc" : "ns", (unsigned long long)self.start.realtime);
  for (int i = 0; i < RECORD_FUNCTIONS && at + 128 < room; ++i) {
    at += (size_t)snprintf(text + at, room - at, "%s[\"%s\",\"%s\"]", i ? "," : "",
                           functions[i].name, functions[i].family);
  }
  at += (size_t)snprintf(text + at, room - at, "]}");
  put_block(HEADER, 0, text, at, 0, 0);
  free(text);
}

/* "0-3,7": whether it names that rank. */
static bool names_rank(const char* list, int rank) {
  while (*list) {
    char* end;
    const long first = strtol(list, &end, 10);
    long last = first;
    if (end == list) return false;
    if (*end == '-') {
      list = end + 1;
      last = strtol(list, &end, 10);
      if (end == list) last = LONG_MAX;
    }
    if (rank >= first && rank <= last) return true;
    list = *end == ',' ? end + 1 : "";
  }
  return false;
}

static void decide(void); /* on or off */

void record_begin_file(int rank, int size, const char* mpi) {
  pthread_mutex_lock(&self.lock);
  if (self.file >= 0 || self.over) {
    pthread_mutex_unlock(&self.lock);
    return;
  }
  const char* ranks = getenv("HEADWAY_RECORD_RANKS");
  self.rank = rank;
  const bool all = !ranks || !*ranks || size <= 0;
  self.over = !all && !names_rank(ranks, rank);
  int first = 0; /* of the recorded ones: speaks for all, and tidies up */
  while (!all && first < size && !names_rank(ranks, first)) ++first;
  self.speaks = size <= 0 || rank == first;
  if (!self.over) {
    self.file = record_open(&self.place, rank, size);
    if (self.file < 0) {
      say("rank %d runs unrecorded: %s cannot be made: %s", rank,
          self.place.folder[0] ? self.place.path : "its folder", strerror(errno));
      self.over = true;
    } else {
      self.pid = getpid();
      learn_rate();
      put_header(rank, size, mpi);
      const Reading start = {self.start.ticks, self.start.monotonic + self.test_offset,
                             self.start.realtime};
      put_block(CLOCK, 0, &start, sizeof start, 0, 0);
      put_clock();
      self.begin_ticks = record_now();
    }
  }
  decide();
  pthread_mutex_unlock(&self.lock);
}

/* ---- on and off ---- */

static uint64_t ticks_at(double seconds) {
  return self.begin_ticks + (uint64_t)(seconds * 1e9 * record_ticks_per_ns);
}

/* The lock is held. Where from and to begin to count is known when MPI is initialized. */
static void decide(void) {
  const uint64_t now = record_now();
  bool on = self.enabled && !self.over && self.level > 0;
  record_live = self.enabled && !self.over;
  record_next_switch = never;
  if (self.begin_ticks && (self.from > 0 || self.to > 0)) {
    const bool early = self.from > 0 && now < ticks_at(self.from);
    const bool late = self.to > 0 && now >= ticks_at(self.to);
    if (early) {
      record_next_switch = ticks_at(self.from);
    } else if (!late && self.to > 0) {
      record_next_switch = ticks_at(self.to);
    }
    on = on && !early && !late;
  }
  for (int i = 0; i < RECORD_FUNCTIONS; ++i) record_wanted[i] = on && self.chosen[i];
  if (self.on && !on) self.off_since = now;
  RecordThread* me = record_me;
  if (!self.on && on && self.off_since && me) {
    if (me->next == me->limit) {
      if (may_write()) put_events(me);
      me->next = me->buffer;
    }
    *me->next++ = (RecordEvent){.kind = RECORD_GAP,
                                .thread = me->number,
                                .begin = self.off_since,
                                .end = now,
                                .peer = RECORD_NONE,
                                .tag = RECORD_NONE};
  }
  self.on = on;
}

void record_switch(void) {
  pthread_mutex_lock(&self.lock);
  decide();
  pthread_mutex_unlock(&self.lock);
}

void record_level(int level) {
  if (level >= 2) record_flush();
  pthread_mutex_lock(&self.lock);
  self.level = level;
  decide();
  pthread_mutex_unlock(&self.lock);
}

static void choose(const char* patterns) {
  if (!patterns || !*patterns) {
    memset(self.chosen, 1, sizeof self.chosen);
    return;
  }
  char* copy = strdup(patterns);
  for (char* word = copy ? strtok(copy, ",") : NULL; word; word = strtok(NULL, ",")) {
    for (int i = 0; i < RECORD_FUNCTIONS; ++i) {
      if (fnmatch(word, functions[i].name, 0) == 0) self.chosen[i] = 1;
    }
  }
  free(copy);
  for (int i = 0; i < RECORD_FUNCTIONS; ++i) { /* without these nothing can be understood */
    const char* family = functions[i].family;
    if (!strcmp(family, "init") || !strcmp(family, "finalize") || !strcmp(family, "comm"))
      self.chosen[i] = 1;
  }
}

/* ---- threads ---- */

static void thread_ends(void* thread) {
  RecordThread* me = thread;
  if (me->vain.count) record_write_vain(me);
  record_write(me);
  if (me->schedstat >= 0) close(me->schedstat);
  me->schedstat = -1;
  pthread_mutex_lock(&self.lock);
  RecordThread** link = &self.threads;
  while (*link && *link != me) link = &(*link)->other;
  if (*link) *link = me->other;
  pthread_mutex_unlock(&self.lock);
  record_me = NULL;
  free(me->buffer);
  free(me);
}

RecordThread* record_first_call(void) {
  if (!self.enabled) return NULL;
  RecordThread* me = calloc(1, sizeof *me);
  RecordEvent* buffer = malloc(EVENTS_OF_A_BLOCK * sizeof *buffer);
  if (!me || !buffer) {
    free(me);
    free(buffer);
    return NULL;
  }
  me->buffer = me->next = buffer;
  me->limit = buffer + EVENTS_OF_A_BLOCK;
  me->last_block = record_now();
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%ld/schedstat", (long)syscall(SYS_gettid));
  me->schedstat = open(path, O_RDONLY | O_CLOEXEC);
  pthread_mutex_lock(&self.lock);
  if (self.threads == NULL && self.thread_count == 0) pthread_key_create(&self.key, thread_ends);
  me->number = (uint8_t)(self.thread_count < MOST_THREADS ? self.thread_count : MOST_THREADS);
  ++self.thread_count;
  me->other = self.threads;
  self.threads = me;
  pthread_mutex_unlock(&self.lock);
  pthread_setspecific(self.key, me);
  record_me = me;
  return me;
}

/* ns in which this thread wanted a core and had none: the second number of its schedstat. */
static bool read_delay(const RecordThread* me, uint64_t* delay) {
  char text[96];
  if (me->schedstat < 0) return false;
  const ssize_t got = pread(me->schedstat, text, sizeof text - 1, 0);
  if (got <= 0) return false;
  text[got] = 0;
  char* at;
  strtoull(text, &at, 10);
  *delay = strtoull(at, NULL, 10);
  return true;
}

void record_look_at_delay(RecordThread* me, uint64_t begin, uint64_t end, int is_wait) {
  const uint64_t apart = (uint64_t)(look_again_ns * record_ticks_per_ns);
  if (!is_wait && me->delay_read && end - me->delay_read < apart) return;
  uint64_t delay;
  if (!read_delay(me, &delay)) return;
  const uint64_t was = me->delay_ns;
  const bool known = me->delay_read != 0;
  me->delay_ns = delay;
  me->delay_read = end;
  if (!is_wait || !known || delay <= was) return;
  const uint64_t most = (uint64_t)((double)(end - begin) / record_ticks_per_ns);
  const uint64_t taken = delay - was < most ? delay - was : most;
  if (taken >= 1000) {
    record_put(me, RECORD_CORE_TAKEN, 0, 0, begin, end, 0, RECORD_NONE, RECORD_NONE, 0, taken);
  }
}

/* ---- sites ---- */

/* The lock is held. The slot of that key: its own, or an empty one; null if there is no memory or
 * no room. */
static RecordKnownSite* site_slot(uint64_t key) {
  if (!self.sites) self.sites = calloc(MOST_SITES * 2, sizeof *self.sites);
  if (!self.sites) return NULL;
  size_t at = (key * 0x9e3779b97f4a7c15u) >> (64 - 17);
  while (self.sites[at].id && self.sites[at].address != key) at = (at + 1) % (MOST_SITES * 2);
  return self.sites[at].id || self.site_count < MOST_SITES ? &self.sites[at] : NULL;
}

uint32_t record_find_site(uint64_t key) {
  pthread_mutex_lock(&self.lock);
  const RecordKnownSite* slot = site_slot(key);
  const uint32_t id = slot ? slot->id : 0;
  pthread_mutex_unlock(&self.lock);
  return id;
}

uint32_t record_tell_python_site(uint64_t key, const char* file, const char* function, int line) {
  const size_t room = strlen(file) + strlen(function) + 96;
  char* text = malloc(room);
  if (!text) return 0;
  pthread_mutex_lock(&self.lock);
  RecordKnownSite* slot = site_slot(key);
  if (slot && !slot->id) {
    *slot = (RecordKnownSite){key, ++self.site_count};
    snprintf(text, room, "{\"id\":%u,\"file\":\"%s\",\"function\":\"%s\",\"line\":%d}", slot->id,
             file, function, line);
    add(&self.new_sites, text);
  }
  const uint32_t id = slot ? slot->id : 0;
  pthread_mutex_unlock(&self.lock);
  free(text);
  return id;
}

/* The lock is held. Its id: of the address in the file that is mapped there, or that it is to be
 * asked of Python. */
static uint32_t tell_site(uintptr_t address) {
  Dl_info info = {0};
  struct link_map* map = NULL;
  char module[PATH_MAX * 2] = "", exe[PATH_MAX] = "", text[PATH_MAX * 2 + 160];
  uintptr_t base = 0;
  if (dladdr1((const void*)address, &info, (void**)&map, RTLD_DL_LINKMAP) && map) {
    base = map->l_addr;
    const char* name = map->l_name;
    if (!name || !*name) {
      const ssize_t got = readlink("/proc/self/exe", exe, sizeof exe - 1);
      exe[got > 0 ? got : 0] = 0;
      name = exe;
    }
    if (self.python && record_is_python_module(name)) return RECORD_ASK_PYTHON;
    record_append_json(module, sizeof module, name);
  }
  const uint32_t id = ++self.site_count;
  snprintf(text, sizeof text, "{\"id\":%u,\"address\":%llu,\"module\":\"%s\",\"offset\":%llu}", id,
           (unsigned long long)address, module, (unsigned long long)(address - base));
  add(&self.new_sites, text);
  return id;
}

uint32_t record_other_site(RecordThread* me, uintptr_t address) {
  pthread_mutex_lock(&self.lock);
  RecordKnownSite* slot = site_slot(address);
  if (slot && !slot->id) {
    slot->address = address;
    slot->id = tell_site(address);
  }
  const uint32_t id = slot ? slot->id : 0;
  pthread_mutex_unlock(&self.lock);
  me->sites[(address ^ (address >> 8)) % RECORD_SITE_CACHE] = (RecordKnownSite){address, id};
  return id;
}

void record_tell_comm(const char* text) {
  pthread_mutex_lock(&self.lock);
  add(&self.new_comms, text);
  pthread_mutex_unlock(&self.lock);
}

/* ---- start and end ---- */

__attribute__((constructor)) static void record_start(void) {
  const char* on = getenv("HEADWAY_RECORD");
  if (!on || strcmp(on, "1") != 0) return;
  self.enabled = true;
  record_clock_is_tsc = is_tsc_steady();
  self.start = read_clocks();
  const char* clock = getenv("HEADWAY_RECORD_TEST_CLOCK"); /* ns, ppm */
  if (clock) {
    char* at;
    self.test_offset = (uint64_t)strtoll(clock, &at, 10);
    self.test_drift = *at == ',' ? strtod(at + 1, NULL) * 1e-6 : 0;
  }
  const char* python = getenv("HEADWAY_RECORD_PYTHON");
  self.python = !python || strcmp(python, "0") != 0;
  const char* from = getenv("HEADWAY_RECORD_FROM");
  const char* to = getenv("HEADWAY_RECORD_TO");
  self.from = from ? atof(from) : 0;
  self.to = to ? atof(to) : 0;
  choose(getenv("HEADWAY_RECORD_CALLS"));
  decide();
}

__attribute__((destructor)) static void record_stop(void) {
  if (self.enabled) record_end_file(record_finalized);
}
