/* folder: where a run's files go. All ranks of a job must find the same new folder, and may not ask
   each other: nothing of the recorder's own is sent, and perhaps not all ranks are recorded. So
   they meet at a symbolic link beside the folder, whose name all can tell: what their launcher
   calls the job. Whoever makes the link decides; the first recorded rank takes it away at the end.

   Thread: that which initializes MPI. Owner: file.c. Invariant: a folder that was there before
   is never used, but for one that was made for this job: a note in it says so. */
#define _GNU_SOURCE
#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_ANCESTORS = 16, MOST_FOLDERS = 1000000, MOST_TRIES = 100 };
static const double late_s = 600; /* ranks of one job start within that time */

/* Programs that start ranks: the nearest one above this process tells jobs apart. */
static const char* const launchers[] = {
    "hydra_pmi_proxy", "mpiexec", "mpiexec.hydra", "mpirun", "prted", "prterun",   "orted",
    "slurmstepd",      "pbs_mom", "palsd",         "jsmd",   "srun",  "flux-shell"};

static ssize_t read_file(const char* path, char* to, size_t room) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t got = file < 0 ? -1 : read(file, to, room - 1);
  if (file >= 0) close(file);
  to[got > 0 ? got : 0] = 0;
  return got;
}

/* Of a process: name, parent, when it started (in the kernel's ticks since the boot). */
static bool about_process(long pid, char* name, size_t room, long* parent,
                          unsigned long long* start) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%ld/stat", pid);
  if (read_file(path, text, sizeof text) <= 0) return false;
  char* open_mark = strchr(text, '(');
  char* close_mark = strrchr(text, ')');
  if (!open_mark || !close_mark) return false;
  snprintf(name, room, "%.*s", (int)(close_mark - open_mark - 1), open_mark + 1);
  char* at = close_mark + 1;
  *parent = 0;
  *start = 0;
  for (int field = 3; field <= 22 && at; ++field) { /* as in proc(5) */
    at = strchr(at, ' ');
    if (!at) break;
    ++at;
    if (field == 4) *parent = strtol(at, NULL, 10);
    if (field == 22) *start = strtoull(at, NULL, 10);
  }
  return true;
}

/* Hydra's proxies are told where their one mpiexec listens. */
static bool control_port(long pid, char* to, size_t room) {
  char path[64], words[8192];
  snprintf(path, sizeof path, "/proc/%ld/cmdline", pid);
  const ssize_t got = read_file(path, words, sizeof words);
  for (ssize_t i = 0; i < got; i += (ssize_t)strlen(words + i) + 1) {
    if (strcmp(words + i, "--control-port") != 0) continue;
    i += (ssize_t)strlen(words + i) + 1;
    if (i >= got) return false;
    snprintf(to, room, "hydra %s", words + i);
    return true;
  }
  return false;
}

/* Newer releases of PMIx take the variable out of the environment when a rank has joined. */
static const char* pmix_namespace;

__attribute__((constructor)) static void keep_namespace(void) {
  pmix_namespace = getenv("PMIX_NAMESPACE");
}

static bool from_environment(char* to, size_t room) {
  const char* own = getenv("HEADWAY_RECORD_JOB");
  const char* pmix = pmix_namespace;
  const char* job = getenv("SLURM_JOB_ID");
  const char* step = getenv("SLURM_STEP_ID");
  if (own && *own) {
    snprintf(to, room, "%s", own);
  } else if (pmix && *pmix) {
    snprintf(to, room, "pmix %s", pmix);
  } else if (job && *job && step && *step) {
    snprintf(to, room, "slurm %s %s", job, step);
  } else {
    return false;
  }
  return true;
}

/* A job of Flux has such a shell on each of its machines, and one name on all. */
static bool flux_job(const char* launcher, char* to, size_t room) {
  const char* job = getenv("FLUX_JOB_ID");
  if (strcmp(launcher, "flux-shell") != 0 || !job || !*job) return false;
  snprintf(to, room, "flux %s", job);
  return true;
}

/* The same text on all ranks of a job, and another one for each job. */
static void job_name(char* to, size_t room) {
  if (from_environment(to, room)) return;
  char host[256] = "", name[64];
  unsigned long long start = 0;
  gethostname(host, sizeof host - 1);
  long pid = getppid(), parent;
  const long nearest = pid;
  for (int i = 0; i < MOST_ANCESTORS && pid > 1; ++i) {
    if (!about_process(pid, name, sizeof name, &parent, &start)) break;
    for (size_t k = 0; k < sizeof launchers / sizeof *launchers; ++k) {
      if (strncmp(name, launchers[k], 15) != 0) continue; /* the kernel keeps 15 letters */
      if (control_port(pid, to, room) || flux_job(name, to, room)) return;
      snprintf(to, room, "%s %ld %llu", host, pid, start);
      return;
    }
    pid = parent;
  }
  if (!about_process(nearest, name, sizeof name, &parent, &start)) start = 0;
  snprintf(to, room, "%s %ld %llu", host, nearest, start);
}

static uint64_t hash(const char* text) {
  uint64_t value = 0xcbf29ce484222325u;
  for (; *text; ++text) value = (value ^ (unsigned char)*text) * 0x100000001b3u;
  return value;
}

/* Where it is to be: a folder that was asked for, or headway-run in this one. */
static bool split(char* parent, char* base, size_t room) {
  const char* asked = getenv("HEADWAY_RECORD_OUT");
  char here[PATH_MAX];
  if (!getcwd(here, sizeof here)) here[0] = 0;
  char path[PATH_MAX * 2];
  if (!asked || !*asked) {
    snprintf(path, sizeof path, "%s/headway-run", here);
  } else {
    snprintf(path, sizeof path, "%s%s%s", asked[0] == '/' ? "" : here, asked[0] == '/' ? "" : "/",
             asked);
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') path[--end] = 0;
  }
  char* slash = strrchr(path, '/');
  *slash = 0;
  const int a = snprintf(parent, room, "%s", path), b = snprintf(base, room, "%s", slash + 1);
  return a >= 0 && (size_t)a < room && b > 0 && (size_t)b < room;
}

/* Whether it was made for this job beforehand (headway advise, which reads it afterwards: so no
   other job can have the name meanwhile). Whoever takes the note away has the folder. */
static bool take_reserved(const char* folder) {
  char note[PATH_MAX];
  const int length = snprintf(note, sizeof note, "%s/.reserved", folder);
  return length > 0 && (size_t)length < sizeof note && unlink(note) == 0;
}

/* A new folder: NAME-1, NAME-2, ..., or, if it was named, NAME, NAME-2, ... */
static bool make_new(const char* parent, const char* base, char* folder, size_t room) {
  const char* asked = getenv("HEADWAY_RECORD_OUT");
  const bool named = asked && *asked;
  for (int number = 1; number < MOST_FOLDERS; ++number) {
    int length;
    if (named && number == 1) {
      length = snprintf(folder, room, "%s/%s", parent, base);
    } else {
      length = snprintf(folder, room, "%s/%s-%d", parent, base, number);
    }
    if (length < 0 || (size_t)length >= room) break;
    if (mkdir(folder, 0777) == 0) return true;
    if (errno != EEXIST) return false;
    if (named && number == 1 && take_reserved(folder)) return true;
  }
  errno = ENAMETOOLONG;
  return false;
}

static bool is_old(const char* link) {
  struct stat about;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return lstat(link, &about) == 0 && difftime(now.tv_sec, about.st_mtim.tv_sec) > late_s;
}

/* The folder that the link names, or a new one that it names from now on. */
static bool meet(const char* link, const char* parent, const char* base, char* folder,
                 size_t room) {
  for (int i = 0; i < MOST_TRIES; ++i) {
    const ssize_t got = readlink(link, folder, room - 1);
    if (got > 0) {
      folder[got] = 0;
      if (!is_old(link)) return true;
      unlink(link); /* of a job that was killed, and whose name came again */
      continue;
    }
    /* One after the other, so that no number is made and given up again. Where that lock is not to
       be had (a network's disk) the link alone decides. */
    const int lock = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock >= 0) flock(lock, LOCK_EX);
    int why = EEXIST;
    if (readlink(link, folder, room - 1) < 0) {
      why = make_new(parent, base, folder, room) ? 0 : errno;
      if (why == 0 && symlink(folder, link) != 0) {
        why = errno;
        rmdir(folder);
      }
    }
    if (lock >= 0) close(lock);
    if (why == 0) return true;
    if (why != EEXIST) {
      errno = why;
      return false;
    }
  }
  errno = EBUSY;
  return false;
}

int record_open(RecordPlace* place, int rank, int size) {
  char parent[PATH_MAX], base[PATH_MAX], job[1024], file[NAME_MAX + 1], host[65] = "";
  place->folder[0] = place->link[0] = 0;
  errno = ENAMETOOLONG;
  if (!split(parent, base, PATH_MAX)) return -1;
  gethostname(host, sizeof host - 1);
  if (size > 0) {
    snprintf(file, sizeof file, "rank-%d.hwr", rank);
  } else {
    snprintf(file, sizeof file, "process-%s-%d.hwr", host, (int)getpid());
  }
  if (mkdir(parent, 0777) != 0 && errno != EEXIST && errno != EROFS && errno != EACCES) return -1;
  job_name(job, sizeof job);
  for (int again = 0; again < MOST_TRIES; ++again) {
    if (size == 1) {
      if (!make_new(parent, base, place->folder, PATH_MAX)) return -1;
    } else {
      const int long_name = snprintf(place->link, sizeof place->link, "%s/.headway-run-%016llx-%d",
                                     parent, (unsigned long long)hash(job), again);
      if (long_name < 0 || (size_t)long_name >= sizeof place->link) return -1;
      if (!meet(place->link, parent, base, place->folder, PATH_MAX)) return -1;
      mkdir(place->folder, 0777); /* another host may not see it */
    }
    const int length = snprintf(place->path, sizeof place->path, "%s/%s", place->folder, file);
    if (length < 0 || (size_t)length >= sizeof place->path) return -1;
    const int opened = open(place->path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    /* This job's second program finds the first one's file there. */
    if (opened >= 0 || errno != EEXIST) return opened;
  }
  return -1;
}

void record_close(const RecordPlace* place) {
  if (place->link[0]) unlink(place->link);
}
