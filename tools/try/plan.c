/* plan: what this run is to do (the file that HEADWAY_RECORD_TRY names), and what came of it (a
   file for each rank, in the folder that the plan names). Both are lines of a word and its values,
   written and read by tools/headway/headway/record/trying.py.

   Thread: any asks; the rest is the program's thread. Owner: libtrying. Invariant: a rank's file is
   there whole or not at all. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "try.h"

enum { MOST_SPOTS = 1024, KNOWN = 256, MOST_CHANNELS = 1 << 18 };

static const char* const try_end_names[TRY_ENDS] = {"wait", "write",   "beside", "free", "call",
                                                    "send", "receive", "other",  "end"};
static const char* const try_refusal_names[TRY_REFUSALS] = {
    "may",     "kind",     "small",   "stack",      "unknown",    "receiving",
    "threads", "blocked",  "windows", "persistent", "file-reads", "collective",
    "freed",   "protects", "spawned", "sessions",   "full"};

TRY_API TryPlan try_plan;
TRY_API TryCounts try_counts;

enum { GROUP_SHIFT = 8 }; /* an answer is TRY_SITE and TRY_OTHER, and above them a group */
typedef struct Spot {
  int what; /* TRY_SITE, TRY_OTHER, or a group of sends, from 1, above them */
  uintptr_t offset;
  char module[NAME_MAX + 1]; /* the last part of its path */
} Spot;

static struct {
  Spot spots[MOST_SPOTS];
  unsigned count;
  char out[PATH_MAX];
  struct {
    uintptr_t address;
    int answer;
  } known[KNOWN];
  int rank, size;
  uint64_t begin, end;  /* ns */
  uintptr_t writers[2]; /* who wrote first into a buffer, and beside one; 0: nobody */
} self = {.rank = -1};

uint64_t try_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- reading ---- */

static const char* last_part(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* trying.py writes no more than there is room for. */
static void add_spot(int what, const char* value) {
  if (self.count == MOST_SPOTS) return;
  Spot* spot = &self.spots[self.count];
  char* rest;
  spot->what = what;
  spot->offset = (uintptr_t)strtoull(value, &rest, 10);
  if (*rest == ' ') snprintf(spot->module, sizeof spot->module, "%s", last_part(rest + 1));
  ++self.count;
}

static void add_send(char* value) {
  char* rest;
  const long group = strtol(value, &rest, 10);
  if (group > 0 && group <= MOST_SPOTS && *rest == ' ')
    add_spot((int)group << GROUP_SHIFT, rest + 1);
}

static void read_line(char* line) {
  char* value = strchr(line, ' ');
  if (!value) return;
  *value++ = 0;
  value[strcspn(value, "\n")] = 0;
  if (strcmp(line, "mode") == 0) {
    try_plan.mode = strcmp(value, "put-off") == 0 ? TRY_PUT_OFF
                    : strcmp(value, "test") == 0  ? TRY_TEST
                                                  : TRY_UNCHANGED;
  } else if (strcmp(line, "hash") == 0) {
    try_plan.hash = *value == '1';
  } else if (strcmp(line, "out") == 0) {
    snprintf(self.out, sizeof self.out, "%s", value);
  } else if (strcmp(line, "site") == 0) {
    add_spot(TRY_SITE, value);
  } else if (strcmp(line, "other") == 0) {
    add_spot(TRY_OTHER, value);
  } else if (strcmp(line, "send") == 0) {
    add_send(value);
  } else if (strcmp(line, "period") == 0) {
    try_plan.period = strtoull(value, NULL, 10);
  } else if (strcmp(line, "count") == 0) {
    try_plan.count = atoi(value);
  }
}

__attribute__((constructor)) static void start_plan(void) {
  const char* path = getenv("HEADWAY_RECORD_TRY");
  FILE* file = path && *path ? fopen(path, "re") : NULL;
  if (!file) return;
  static char line[PATH_MAX + 64];
  while (fgets(line, sizeof line, file)) read_line(line);
  fclose(file);
  try_plan.there = self.out[0] != 0;
}

/* ---- sites ---- */

/* As sites.c of the recorder tells a site: the file that is mapped there, and the offset in it. */
static uintptr_t place_of(uintptr_t address, char* module, size_t room) {
  Dl_info info = {0};
  struct link_map* map = NULL;
  *module = 0;
  if (!dladdr1((const void*)address, &info, (void**)&map, RTLD_DL_LINKMAP) || !map) return 0;
  if (map->l_name && *map->l_name) {
    snprintf(module, room, "%s", map->l_name);
  } else {
    const ssize_t got = readlink("/proc/self/exe", module, room - 1);
    module[got > 0 ? got : 0] = 0;
  }
  return address - map->l_addr;
}

static int look_up(uintptr_t address) {
  char module[PATH_MAX];
  const uintptr_t offset = place_of(address, module, sizeof module);
  int found = 0;
  for (unsigned i = 0; i < self.count; ++i) {
    const Spot* spot = &self.spots[i];
    if (spot->offset == offset && strcmp(spot->module, last_part(module)) == 0) found |= spot->what;
  }
  return found;
}

static int answer_of(uintptr_t address) {
  if (self.count == 0) return 0;
  const size_t at = (address ^ (address >> 8)) % KNOWN;
  /* Threads of one program may write it at once: then one of them looks again. */
  if (self.known[at].address != address) {
    const int answer = look_up(address);
    self.known[at].address = 0;
    self.known[at].answer = answer;
    self.known[at].address = address;
    return answer;
  }
  return self.known[at].answer;
}

int try_spot(uintptr_t address) { return answer_of(address) & (TRY_SITE | TRY_OTHER); }

uintptr_t try_line(uintptr_t address) {
  const int group = answer_of(address) >> GROUP_SHIFT;
  return group ? (uintptr_t)group : address;
}

/* ---- telling ---- */

void try_begin(int rank, int size) {
  self.rank = rank;
  self.size = size;
  self.begin = try_now();
}

void try_note_write(uintptr_t from, bool beside) {
  if (!self.writers[beside]) self.writers[beside] = from;
}

static int open_result(char* path, size_t room) {
  snprintf(path, room, "%s/.rank-%d-%d", self.out, self.rank, (int)getpid());
  return open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
}

static void close_result(int file, const char* path) {
  char name[PATH_MAX + 64];
  snprintf(name, sizeof name, "%s/rank-%d-%d.txt", self.out, self.rank, (int)getpid());
  if (close(file) == 0) rename(path, name);
}

static void put_counts(int file) {
  dprintf(file, "rank %d\nsize %d\n", self.rank, self.size);
  dprintf(file, "reached %llu\nat-once %llu\nput-off %llu\nstretches %llu\ntests %llu\n",
          (unsigned long long)try_counts.reached, (unsigned long long)try_counts.at_once,
          (unsigned long long)try_counts.put_off, (unsigned long long)try_counts.stretches,
          (unsigned long long)try_counts.tests);
  dprintf(file, "watching %llu\n", (unsigned long long)try_counts.watching);
  for (int i = 0; i < TRY_ENDS; ++i) {
    if (try_counts.ended[i])
      dprintf(file, "ended %s %llu\n", try_end_names[i], (unsigned long long)try_counts.ended[i]);
  }
  for (int i = 0; i < TRY_REFUSALS; ++i) {
    if (try_counts.refused[i])
      dprintf(file, "refused %s %llu\n", try_refusal_names[i],
              (unsigned long long)try_counts.refused[i]);
  }
  for (int beside = 0; beside < 2; ++beside) {
    char module[PATH_MAX];
    if (!self.writers[beside]) continue;
    const uintptr_t offset = place_of(self.writers[beside], module, sizeof module);
    dprintf(file, "%s %llu %s\n", beside ? "writer-beside" : "writer", (unsigned long long)offset,
            module);
  }
}

/* Through a stream: there may be many. */
static void put_channels(int file, const TryChannel* channels, size_t count) {
  FILE* stream = fdopen(dup(file), "w");
  if (!stream) return;
  size_t told = 0;
  for (size_t i = 0; i < count; ++i) {
    const TryChannel* one = &channels[i];
    if (!one->taken || !one->count || ++told > MOST_CHANNELS) continue;
    if (one->source == TRY_COLLECTIVES) {
      fprintf(stream, "collectives %u %llu %llu\n", one->comm, (unsigned long long)one->count,
              (unsigned long long)one->sum);
      continue;
    }
    fprintf(stream, "channel %u %d %d %llu %llu\n", one->comm, one->source, one->tag,
            (unsigned long long)one->count, (unsigned long long)one->sum);
  }
  fclose(stream);
}

void try_finish(const TryChannel* channels, size_t count) {
  if (!try_plan.there || self.end || !self.begin) return;
  self.end = try_now();
  char path[PATH_MAX + 64];
  const int file = open_result(path, sizeof path);
  if (file < 0) return;
  put_counts(file);
  dprintf(file, "time %llu\n", (unsigned long long)(self.end - self.begin));
  put_channels(file, channels, count);
  dprintf(file, "whole 1\n");
  close_result(file, path);
}

/* Perhaps in a handler: nothing of the heap is used. */
void try_give_up(const char* why) {
  char path[PATH_MAX + 64];
  const int file = try_plan.there ? open_result(path, sizeof path) : -1;
  if (file >= 0) {
    put_counts(file);
    dprintf(file, "failed %s\n", why);
    close_result(file, path);
  }
  enum { GIVEN_UP = 86 };
  void (*leave)(int) = (void (*)(int))try_next("_exit");
  leave(GIVEN_UP);
  __builtin_unreachable();
}
