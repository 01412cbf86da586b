/* header: see header.h. */
#define _GNU_SOURCE
#include "header.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clocks.h"
#include "file.h"
#include "recorder_functions.inc" /* names, families */
#include "shared_now.h"
#include "transport_words.h"

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

/* Those on which this process may run: `0-3,8`; nothing where nobody says. */
static void read_cores(char* to, size_t room) {
  char all[8192];
  const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  const ssize_t got = file < 0 ? 0 : read(file, all, sizeof all - 1);
  if (file >= 0) close(file);
  all[got > 0 ? got : 0] = 0;
  static const char name[] = "Cpus_allowed_list:\t";
  const char* from = strstr(all, name);
  from = from ? from + sizeof name - 1 : "";
  const size_t n = strspn(from, "0123456789,-");
  snprintf(to, room, "%.*s", (int)(n < room ? n : 0), from);
}

/* Of MPICH: the network modules that it was built with, the default first. */
static void put_modules(char* to, size_t room, const char* mpi) {
  static const char device[] = "ch4:";
  const char* from = strstr(mpi, device);
  from = from ? from + sizeof device - 1 : "";
  char line[256];
  snprintf(line, sizeof line, "%.*s", (int)strcspn(from, "\r\n"), from);
  record_append_json(to, room, line);
}

/* Those of the environment by which its MPI chooses how messages move. */
static void put_words(char* to, size_t room) {
  size_t at = 0;
  unsigned count = 0;
  for (char** word = environ; *word && count < most_transport_words; ++word) {
    char some[transport_word_room];
    if (!is_transport_word(*word)) continue;
    snprintf(some, sizeof some, "%s", *word);
    if (at + 6 * sizeof some + 8 > room) break; /* if each letter is to be escaped */
    if (count++) to[at++] = ',';
    to[at++] = '"';
    at += record_append_json(to + at, room - at - 2, some);
    to[at++] = '"';
  }
  to[at] = 0;
}

/* When this process started, in the kernel's ticks since the boot: its number may come again. */
static unsigned long long started_at(void) {
  char text[1024];
  read_line("/proc/self/stat", text, sizeof text);
  const char* at = strrchr(text, ')');
  for (int field = 2; at && field < 22; ++field) at = strchr(at + 1, ' '); /* as in proc(5) */
  return at ? strtoull(at, NULL, 10) : 0;
}

void record_put_header(int rank, int size, const char* mpi) {
  const size_t room = 1 << 17;
  char* text = malloc(room);
  if (!text) return;
  char host[256] = "", boot[80] = "", exe[PATH_MAX] = "", name[PATH_MAX * 2], library[1024],
       arguments[16384], cores[1024], processes[64] = "", modules[1024], module[1024], first[1024],
       words[8192];
  read_cores(cores, sizeof cores);
  gethostname(host, sizeof host - 1);
  read_line("/proc/sys/kernel/random/boot_id", boot, sizeof boot - 8);
  if (record_has_test_clock()) snprintf(boot + strlen(boot), 8, "-%d", rank % 1000);
  const ssize_t got = readlink("/proc/self/exe", exe, sizeof exe - 1);
  exe[got > 0 ? got : 0] = 0;
  const ssize_t known = readlink("/proc/self/ns/pid", processes, sizeof processes - 1);
  processes[known > 0 ? known : 0] = 0;
  record_append_json(name, sizeof name, exe);
  snprintf(first, sizeof first, "%.*s", (int)strcspn(mpi, "\n"), mpi);
  record_append_json(library, sizeof library, first);
  put_modules(modules, sizeof modules, mpi);
  const char* asked = getenv("MPIR_CVAR_CH4_NETMOD");
  record_append_json(module, sizeof module, asked ? asked : "");
  put_cmdline(arguments, sizeof arguments);
  put_words(words, sizeof words);
  size_t at = (size_t)snprintf(
      text, room,
      "{\"version\":%d,\"rank\":%d,\"size\":%d,\"host\":\"%s\",\"boot\":\"%s\",\"pid\":%d,"
      "\"now\":{\"file\":%d,\"start\":%llu,\"processes\":\"%s\"},"
      "\"program\":\"%s\","
      "\"arguments\":[%s],\"mpi\":\"%s\",\"modules\":\"%s\",\"module\":\"%s\","
      "\"words\":[%s],"
      "\"cores\":\"%s\",\"ticks\":\"%s\",\"started\":%llu,"
      "\"functions\":[",
      RECORD_VERSION, rank, size, host, boot, (int)getpid(), record_now_file(), started_at(),
      processes, name, arguments, library, modules, module, words, cores,
      record_clock_is_tsc ? "tsc" : "ns", (unsigned long long)record_first_reading().realtime);
  for (int i = 0; i < RECORD_FUNCTIONS && at + 128 < room; ++i) {
    at += (size_t)snprintf(text + at, room - at, "%s[\"%s\",\"%s\"]", i ? "," : "",
                           functions[i].name, functions[i].family);
  }
  at += (size_t)snprintf(text + at, room - at, "]}");
  record_put_block(RECORD_HEADER, 0, text, at, 0, 0);
  free(text);
}
