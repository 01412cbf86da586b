/* sites: see sites.h. */
#define _GNU_SOURCE
#include "sites.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "lock.h"
#include "text.h"

enum { MOST_SITES = 1 << 16 };

static struct {
  bool python; /* lines of Python are wanted */
  RecordKnownSite* sites;
  uint32_t count;
  RecordText new_sites, new_comms;
} self;

/* Others may ask where this thread waits: what is new is in the file before its next wait. Where
   there is no file yet, it comes with the first block. */
static void hurry(void) {
  if (record_me && record_may_write()) record_me->last_block = record_me->until = 0;
}

void record_start_sites(void) {
  const char* python = getenv("HEADWAY_RECORD_PYTHON");
  self.python = !python || strcmp(python, "0") != 0;
}

/* The lock is held. The slot of that key: its own, or an empty one; null if there is no memory or
 * no room. */
static RecordKnownSite* site_slot(uint64_t key) {
  if (!self.sites) self.sites = calloc(MOST_SITES * 2, sizeof *self.sites);
  if (!self.sites) return NULL;
  size_t at = (key * 0x9e3779b97f4a7c15u) >> (64 - 17);
  while (self.sites[at].id && self.sites[at].address != key) at = (at + 1) % (MOST_SITES * 2);
  return self.sites[at].id || self.count < MOST_SITES ? &self.sites[at] : NULL;
}

uint32_t record_find_site(uint64_t key) {
  record_lock();
  const RecordKnownSite* slot = site_slot(key);
  const uint32_t id = slot ? slot->id : 0;
  record_unlock();
  return id;
}

uint32_t record_tell_python_site(uint64_t key, const char* file, const char* function, int line) {
  const size_t room = strlen(file) + strlen(function) + 96;
  char* text = malloc(room);
  if (!text) return 0;
  record_lock();
  RecordKnownSite* slot = site_slot(key);
  if (slot && !slot->id) {
    *slot = (RecordKnownSite){key, ++self.count};
    snprintf(text, room, "{\"id\":%u,\"file\":\"%s\",\"function\":\"%s\",\"line\":%d}", slot->id,
             file, function, line);
    record_add_text(&self.new_sites, text);
    hurry();
  }
  const uint32_t id = slot ? slot->id : 0;
  record_unlock();
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
  const uint32_t id = ++self.count;
  snprintf(text, sizeof text, "{\"id\":%u,\"address\":%llu,\"module\":\"%s\",\"offset\":%llu}", id,
           (unsigned long long)address, module, (unsigned long long)(address - base));
  record_add_text(&self.new_sites, text);
  hurry();
  return id;
}

uint32_t record_other_site(RecordThread* me, uintptr_t address) {
  record_lock();
  RecordKnownSite* slot = site_slot(address);
  if (slot && !slot->id) {
    slot->address = address;
    slot->id = tell_site(address);
  }
  const uint32_t id = slot ? slot->id : 0;
  record_unlock();
  me->sites[(address ^ (address >> 8)) % RECORD_SITE_CACHE] = (RecordKnownSite){address, id};
  return id;
}

void record_tell_comm(const char* text) {
  record_lock();
  record_add_text(&self.new_comms, text);
  hurry();
  record_unlock();
}

void record_put_names(void) {
  record_put_list(RECORD_SITES, &self.new_sites);
  record_put_list(RECORD_COMMS, &self.new_comms);
}
