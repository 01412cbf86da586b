/* switches: see switches.h. */
#define _GNU_SOURCE
#include "switches.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "library_events.h"
#include "lock.h"
#include "recorder_functions.inc" /* names, families */
#include "threads.h"

RECORD_API uint8_t record_wanted[RECORD_FUNCTIONS];
RECORD_API uint8_t record_live;
RECORD_API uint64_t record_next_switch = UINT64_MAX;

bool record_enabled;

static const uint64_t never = UINT64_MAX;

static struct {
  uint8_t chosen[RECORD_FUNCTIONS]; /* by --calls */
  int level;                        /* MPI_Pcontrol: 0 is off */
  double from, to;                  /* seconds after the beginning; `to` 0: no end */
  uint64_t begin_ticks, off_since;
  bool on;
} self = {.level = 1};

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

void record_start_switches(void) {
  const char* from = getenv("HEADWAY_RECORD_FROM");
  const char* to = getenv("HEADWAY_RECORD_TO");
  record_enabled = true;
  self.from = from ? atof(from) : 0;
  self.to = to ? atof(to) : 0;
  choose(getenv("HEADWAY_RECORD_CALLS"));
  record_decide();
}

/* ---- which ranks ---- */

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

bool record_wants_rank(int rank, int size) {
  const char* ranks = getenv("HEADWAY_RECORD_RANKS");
  return !ranks || !*ranks || size <= 0 || names_rank(ranks, rank);
}

int record_first_rank(int size) {
  int first = 0;
  while (first < size && !record_wants_rank(first, size)) ++first;
  return first;
}

/* ---- on and off ---- */

static uint64_t ticks_at(double seconds) {
  return self.begin_ticks + (uint64_t)(seconds * 1e9 * record_ticks_per_ns);
}

void record_begin_time(void) { self.begin_ticks = record_now(); }

/* Where from and to begin to count is known when MPI is initialized. */
void record_decide(void) {
  const uint64_t now = record_now();
  bool on = record_enabled && !record_over && self.level > 0;
  record_live = record_enabled && !record_over;
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
  if (!self.on && on && self.off_since) record_put_gap(self.off_since, now);
  if (self.on != on) {
    record_want_library(on);
    record_forget_memos_locked();
  }
  self.on = on;
}

void record_switch_off(void) {
  record_over = true;
  record_live = 0;
  record_want_library(false);
  memset(record_wanted, 0, sizeof record_wanted);
  record_forget_memos_locked();
}

void record_switch(void) {
  record_lock();
  if (record_may_write()) record_put_library();
  record_decide();
  record_unlock();
}

void record_level(int level) {
  if (level >= 2) record_flush();
  record_lock();
  self.level = level;
  record_decide();
  record_unlock();
}
