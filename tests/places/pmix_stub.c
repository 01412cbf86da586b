/* A libpmix of a few functions, whose ranks meet in a folder (STUB_FOLDER): plays what servers do.
   STUB_FAR: what another rank has put is not found at once, only by who is ready to wait, as PRRTE
   does with ranks of other machines; a key that is never put is then waited for until the time
   limit. STUB_FAILS: that function fails. With -DWRONG: a library of another version than the
   server, which prints a line and fails. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ok = 0, failed = -1, not_found = -46, poll_us = 2000 };
enum { type_string = 3, type_int = 6, type_uint32 = 14 };

struct process {
  char space[256];
  uint32_t rank;
};
struct value {
  uint16_t type;
  union {
    bool flag;
    char* string;
    int integer;
    uint32_t uint32;
    void* widest[3];
  } data;
};
struct info {
  char key[512];
  uint32_t flags;
  struct value value;
};

static uint32_t rank, size;
static int fences;

static bool fails(const char* function) {
  const char* wanted = getenv("STUB_FAILS");
  return wanted && strcmp(wanted, function) == 0;
}

static void name_of(char* path, size_t room, const char* kind, const char* name, uint32_t owner) {
  snprintf(path, room, "%s/%s.%s.%u", getenv("STUB_FOLDER"), kind, name, owner);
}

/* Written at once or not at all. */
static int write_file(const char* path, const char* text) {
  char draft[600];
  snprintf(draft, sizeof draft, "%s.draft", path);
  FILE* file = fopen(draft, "w");
  if (!file) return failed;
  fputs(text, file);
  return fclose(file) == 0 && rename(draft, path) == 0 ? ok : failed;
}

int PMIx_Init(struct process* self, struct info* info, size_t count) {
  (void)info, (void)count;
#ifdef WRONG
  fprintf(stderr, "PLAYED: the wrong libpmix\n");
  return failed;
#endif
  if (fails("init")) return failed;
  rank = (uint32_t)atoi(getenv("PMIX_RANK"));
  size = (uint32_t)atoi(getenv("STUB_SIZE"));
  snprintf(self->space, sizeof self->space, "%s", getenv("PMIX_NAMESPACE"));
  self->rank = rank;
  return ok;
}

int PMIx_Finalize(const struct info* info, size_t count) {
  (void)info, (void)count;
  return ok;
}

int PMIx_Abort(int status, const char* text, struct process* whom, size_t count) {
  (void)status, (void)text, (void)whom, (void)count;
  return ok;
}

int PMIx_Put(uint8_t scope, const char* key, struct value* value) {
  (void)scope;
  if (fails("put")) return failed;
  char path[512];
  name_of(path, sizeof path, "key", key, rank);
  return write_file(path, value->data.string);
}

int PMIx_Commit(void) { return ok; }

int PMIx_Fence(const struct process* who, size_t count, const struct info* info, size_t infos) {
  (void)who, (void)count, (void)info, (void)infos;
  if (fails("fence")) return failed;
  char number[20], path[512];
  snprintf(number, sizeof number, "%d", fences++);
  name_of(path, sizeof path, "fence", number, rank);
  if (write_file(path, "") != ok) return failed;
  for (uint32_t other = 0; other < size; ++other) {
    name_of(path, sizeof path, "fence", number, other);
    while (access(path, F_OK) != 0) usleep(poll_us);
  }
  return ok;
}

static int read_key(const char* key, uint32_t owner, struct value* value) {
  char path[512], text[2000];
  name_of(path, sizeof path, "key", key, owner);
  FILE* file = fopen(path, "r");
  if (!file) return not_found;
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  value->type = type_string;
  value->data.string = strdup(text);
  return ok;
}

int PMIx_Get(const struct process* whose, const char* key, const struct info* info, size_t count,
             struct value** out) {
  struct value* value = calloc(1, sizeof *value);
  *out = value;
  value->type = type_uint32;
  if (strcmp(key, "pmix.job.size") == 0) return value->data.uint32 = size, ok;
  if (strncmp(key, "pmix.", 5) == 0) return *out = NULL, free(value), not_found;
  int limit_us = 0, found = not_found;
  for (size_t i = 0; i < count; ++i) {
    if (strcmp(info[i].key, "pmix.timeout") == 0) limit_us = info[i].value.data.integer * 1000000;
  }
  bool at_once = false;
  for (size_t i = 0; i < count; ++i) at_once |= strcmp(info[i].key, "pmix.immediate") == 0;
  const bool is_far = getenv("STUB_FAR") && whose->rank != rank;
  if (!(fails("get") || (is_far && at_once))) {
    do {
      found = read_key(key, whose->rank, value);
      if (found == ok || at_once) break;
      usleep(poll_us);
    } while ((limit_us -= poll_us) > 0);
  }
  if (found != ok) *out = NULL, free(value);
  return found;
}

const char* PMIx_Error_string(int status) {
  return status == not_found ? "PLAYED-NOT-FOUND" : "PLAYED-ERROR";
}
