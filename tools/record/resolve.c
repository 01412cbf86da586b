/* resolve: which MPI this program runs on, and the layer for it. At the first call of MPI each
   entry that librecorder has in MPI's place (entries.S) asks here where it leads from then on: into
   the layer that was compiled for the MPI that is loaded, or, where there is none, into that MPI
   itself: then the program runs unrecorded, and is told why. A run of `headway advise --try` has
   another layer, tools/try, in the same place.

   Thread: any; the first one that asks does the work. Owner: librecorder.
   Invariant: an entry that was answered leads there for ever. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "library_events.h"
#include "recorder_functions.inc"
#include "resolve.h"
#include "switches.h"
#include "text.h"
#include "try_kinds.h"

extern char** environ;
/* Of entries.S: where each entry leads. */
extern void* record_slots[] __attribute__((visibility("hidden")));

static struct {
  pthread_mutex_t lock;
  int looked, tries; /* tries: the layer is the one of tools/try */
  int is_ours;       /* the layer: compiled for the standard ABI, not for the MPI that is here */
  char library[PATH_MAX]; /* the MPI that is loaded */
  void* mpi;
  const RecordLayer* layer;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

const char* record_last_part(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static int note_name(struct dl_phdr_info* info, size_t size, void* names) {
  (void)size;
  RecordNames* to = names;
  if (info->dlpi_name && strncmp(record_last_part(info->dlpi_name), "libmpi", 6) == 0 &&
      to->count < RECORD_MOST_NAMES)
    to->all[to->count++] = info->dlpi_name;
  return 0;
}

void record_names_of_mpi(RecordNames* names) {
  names->count = 0;
  dl_iterate_phdr(note_name, names);
}

/* The first object whose name begins with libmpi and that has MPI's own entries. */
static int look_at(const char* name) {
  void* handle = dlopen(name, RTLD_NOLOAD | RTLD_LAZY);
  if (!handle) return 0;
  Dl_info where;
  void* entry = dlsym(handle, "PMPI_Init");
  if (!entry || !dladdr(entry, &where) ||
      strcmp(record_last_part(where.dli_fname), record_last_part(name)) != 0) {
    dlclose(handle);
    return 0;
  }
  self.mpi = handle;
  snprintf(self.library, sizeof self.library, "%s", name);
  return 1;
}

/* Where the layers of other MPIs are kept, each under what tells one build of an MPI from another.
 */
static int layer_path(char* to, size_t room) {
  struct stat about;
  const char* cache = getenv("HEADWAY_RECORD_CACHE");
  if (!cache || !*cache || stat(self.library, &about) != 0) return 0;
  const int length =
      snprintf(to, room, "%s/%s-%x-%llx-%llx-%llx.so", cache, self.tries ? "try" : "layer",
               self.tries ? (unsigned)TRY_LAYER_VERSION : (unsigned)RECORD_LAYER_VERSION,
               (unsigned long long)about.st_ino, (unsigned long long)about.st_size,
               (unsigned long long)about.st_mtim.tv_sec * 1000000000u +
                   (unsigned long long)about.st_mtim.tv_nsec);
  return length > 0 && (size_t)length < room;
}

/* Compiles the layer with the mpicc beside that library. Every rank of a node may come here at
   once: one does it, the others wait for the result. The kernel gives a dead one's lock back. */
static void make_layer(const char* path) {
  const char* sources = getenv("HEADWAY_RECORD_SOURCES");
  if (!sources || !*sources) return;
  char script[PATH_MAX], lock[PATH_MAX + 8];
  snprintf(script, sizeof script, "%s/%smake-layer.sh", sources, self.tries ? "../try/" : "");
  snprintf(lock, sizeof lock, "%s.lock", path);
  const int held = open(lock, O_CREAT | O_RDWR | O_CLOEXEC, 0666);
  if (held >= 0) {
    while (flock(held, LOCK_EX) != 0 && errno == EINTR) {
    }
    if (access(path, R_OK) == 0) {
      close(held);
      return;
    }
  }
  /* The compiler is not to be recorded. */
  char* clean[4096];
  size_t count = 0;
  for (char** word = environ; *word && count + 1 < 4096; ++word) {
    if (strncmp(*word, "LD_PRELOAD=", 11) != 0 && strncmp(*word, "HEADWAY_RECORD=", 15) != 0)
      clean[count++] = *word;
  }
  clean[count] = NULL;
  char* words[] = {"sh", script, self.library, (char*)path, NULL};
  pid_t child;
  const int failed = posix_spawn(&child, "/bin/sh", NULL, NULL, words, clean);
  int status = 0;
  if (failed == 0) {
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  if (held >= 0) close(held);
}

static const RecordLayer* load(const char* path) {
  void* object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!object) {
    record_say("the layer cannot be loaded: %s", dlerror());
    return NULL;
  }
  const RecordLayer* layer = dlsym(object, "record_layer");
  const int version = self.tries ? TRY_LAYER_VERSION : RECORD_LAYER_VERSION;
  const int count = self.tries ? RECORD_ENTRIES : RECORD_FUNCTIONS;
  if (!layer || layer->version != version || layer->functions != count) {
    record_say("this layer is not of this version; remove it: %s", path);
    dlclose(object);
    return NULL;
  }
  return layer;
}

/* Functions of MPI are called, and no library of the name libmpi is there. */
static const char* where_mpi_is(void) {
  static char text[PATH_MAX + 128];
  Dl_info where;
  void* entry = dlsym(RTLD_NEXT, "MPI_Init");
  if (!entry || !dladdr(entry, &where)) return "no MPI library is loaded as a shared object";
  snprintf(text, sizeof text, "its MPI is inside %s, and no library of its own", where.dli_fname);
  return text;
}

/* The lock is held. */
static void look(void) {
  self.looked = 1;
  RecordNames names;
  record_names_of_mpi(&names);
  for (unsigned i = 0; i < names.count && !look_at(names.all[i]); ++i) {
  }
  if (!self.mpi) {
    if (record_enabled) record_say("the program runs unrecorded: %s", where_mpi_is());
    return;
  }
  const char* plan = getenv("HEADWAY_RECORD_TRY");
  self.tries = plan && *plan;
  if (!record_enabled && !self.tries) return; /* everything leads to MPI */
  char path[PATH_MAX];
  /* A layer takes MPI's entries from what is loaded, whatever name it was built against. */
  dlopen(self.library, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  if (strncmp(record_last_part(self.library), "libmpi_abi", 10) == 0) {
    const char* own = getenv(self.tries ? "HEADWAY_RECORD_TRY_LAYER" : "HEADWAY_RECORD_LAYER");
    if (own && *own) self.layer = load(own);
    self.is_ours = 1;
  } else if (layer_path(path, sizeof path)) {
    if (access(path, R_OK) != 0) make_layer(path);
    if (access(path, R_OK) == 0) self.layer = load(path);
  }
  if (self.layer && !self.tries) record_find_library(self.mpi);
  if (!self.layer)
    record_say("the program runs unrecorded: there is no layer for: %s", self.library);
}

/* For a function that this MPI has not: a program may have found our entry and taken it for MPI's.
 */
static int is_missing(void) { return 16; /* of the class "other", or near it */ }

const RecordLayer* record_find_layer(void) {
  pthread_mutex_lock(&self.lock);
  if (!self.looked) look();
  const RecordLayer* layer = self.layer;
  pthread_mutex_unlock(&self.lock);
  return layer;
}

static void* own_of_mpi(unsigned function) {
  char name[128];
  snprintf(name, sizeof name, "P%s", functions[function].name);
  return self.mpi ? dlsym(self.mpi, name) : NULL;
}

/* Of entries.S: of a function that is called for the first time. */
__attribute__((visibility("hidden"))) void* record_resolve(unsigned function);
void* record_resolve(unsigned function) {
  const RecordLayer* layer = record_find_layer();
  void* found = layer && (int)function < layer->functions ? layer->entries[function] : NULL;
  /* Our layer has a wrapper also of what this MPI lacks; one that was compiled for it does without.
   */
  if (!found || self.is_ours) {
    void* own = own_of_mpi(function);
    if (!found || !own) found = own;
  }
  /* An MPI inside a library of another name. */
  if (!found && !self.mpi) found = dlsym(RTLD_NEXT, functions[function].name);
  if (!found) {
    record_say("%s was called, and no MPI that has it is loaded", functions[function].name);
    found = (void*)is_missing;
  }
  __atomic_store_n(&record_slots[function], found, __ATOMIC_RELEASE);
  return found;
}
