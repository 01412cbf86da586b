/* python: lines of Python instead of lines of mpi4py's C. A call of MPI that comes from an
   extension module of Python belongs to the line of Python that called that module.

   The program has mostly given Python's lock away by then, so nothing of Python may be called:
   which code object runs where is read out of Python's own memory, at places that differ from
   version to version. They are proven once against Python's public functions; where that fails,
   sites are the module's. A new site is resolved with the lock held, once.

   Thread: any that Python knows. Owner: librecorder. Invariant: a code object that has a site is
   never freed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recorder.h"
#include "sites.h"

typedef struct Object Object; /* of Python */

/* Where Python keeps the running frame: in its thread (one step, or through a pointer in between),
   and in the frame its code and its instruction. */
typedef struct Places {
  size_t in_thread, between; /* `between` is used if `through` */
  int through;
  size_t code, instruction;
} Places;

static const Places known[] = {
    {56, 8, 1, 32, 56}, /* 3.11 */
    {56, 0, 1, 0, 56},  /* 3.12 */
    {72, 0, 0, 0, 56},  /* 3.13 and 3.14 */
};

static struct {
  pthread_mutex_t lock;
  int state; /* 0: not looked yet, 1: works, -1: does not */
  const Places* places;
  void* (*this_thread)(void);
  int (*ensure)(void);
  void (*release)(int);
  Object* (*frame)(void*);
  Object* (*code_of)(Object*);
  int (*line_of)(Object*);
  Object* (*attribute)(Object*, const char*);
  const char* (*text)(Object*);
  void (*drop)(Object*);
  void (*forget_error)(void);
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

int record_is_python_module(const char* module) {
  const char* slash = strrchr(module, '/');
  const char* name = slash ? slash + 1 : module;
  return strstr(name, ".cpython-") != NULL || strstr(name, ".abi3.") != NULL ||
         strstr(module, "/mpi4py/") != NULL;
}

static int find_functions(void) {
  *(void**)&self.this_thread = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
  *(void**)&self.ensure = dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
  *(void**)&self.release = dlsym(RTLD_DEFAULT, "PyGILState_Release");
  *(void**)&self.frame = dlsym(RTLD_DEFAULT, "PyThreadState_GetFrame");
  *(void**)&self.code_of = dlsym(RTLD_DEFAULT, "PyFrame_GetCode");
  *(void**)&self.line_of = dlsym(RTLD_DEFAULT, "PyFrame_GetLineNumber");
  *(void**)&self.attribute = dlsym(RTLD_DEFAULT, "PyObject_GetAttrString");
  *(void**)&self.text = dlsym(RTLD_DEFAULT, "PyUnicode_AsUTF8");
  *(void**)&self.drop = dlsym(RTLD_DEFAULT, "Py_DecRef");
  *(void**)&self.forget_error = dlsym(RTLD_DEFAULT, "PyErr_Clear");
  return self.this_thread && self.ensure && self.release && self.frame && self.code_of &&
         self.line_of && self.attribute && self.text && self.drop && self.forget_error;
}

static const char* running(const char* thread, const Places* places) {
  const char* at = *(const char* const*)(thread + places->in_thread);
  return at && places->through ? *(const char* const*)(at + places->between) : at;
}

static uintptr_t word(const char* at, size_t offset) { return *(const uintptr_t*)(at + offset); }
static uintptr_t untagged(uintptr_t pointer) { return pointer & ~(uintptr_t)7; }

/* Python's lock is held. The version says which places; the comparison proves them. */
static void prove(char* thread, Object* code) {
  const char* version = (const char*)dlsym(RTLD_DEFAULT, "Py_Version");
  const unsigned long number = version ? *(const unsigned long*)version >> 16 : 0; /* since 3.11 */
  const int which = number == 0x030b                       ? 0
                    : number == 0x030c                     ? 1
                    : number == 0x030d || number == 0x030e ? 2
                                                           : -1;
  if (which < 0) return;
  const char* frame = running(thread, &known[which]);
  if (frame && untagged(word(frame, known[which].code)) == (uintptr_t)code)
    self.places = &known[which];
}

static void text_of(Object* code, const char* name, char* to, size_t room) {
  Object* value = self.attribute(code, name);
  const char* text = value ? self.text(value) : NULL;
  record_append_json(to, room, text ? text : "");
  if (value) self.drop(value);
  self.forget_error();
}

/* Once: whether the places are where this version should have them. Two threads may do it at once,
 * and find the same. */
static void learn(char* thread) {
  const int held = self.ensure();
  Object* frame = self.frame(thread);
  if (frame) {
    Object* code = self.code_of(frame);
    prove(thread, code);
    self.drop(code);
    self.drop(frame);
    self.state = self.places ? 1 : -1;
  }
  self.release(held);
}

/* 0: the thread runs nothing of Python. */
static uint32_t new_site(char* thread, uint64_t key) {
  char file[8192], function[2048];
  uint32_t id = 0;
  const int held = self.ensure();
  Object* frame = self.frame(thread);
  if (frame) {
    Object* code = self.code_of(frame); /* kept */
    text_of(code, "co_filename", file, sizeof file);
    text_of(code, "co_name", function, sizeof function);
    id = record_tell_python_site(key, file, function, self.line_of(frame));
    self.drop(frame);
  }
  self.release(held);
  return id;
}

/* Whether it works, where that is not known yet. */
__attribute__((noinline)) static int is_there(void) {
  if (self.state < 0) return 0;
  pthread_mutex_lock(&self.lock);
  if (!self.this_thread && !find_functions()) self.state = -1;
  pthread_mutex_unlock(&self.lock);
  if (self.state < 0) return 0;
  char* thread = self.this_thread();
  if (thread && self.state == 0) learn(thread);
  return self.state > 0;
}

__attribute__((noinline)) static uint32_t other_site(char* thread, uint64_t key,
                                                     RecordKnownSite* site) {
  uint32_t id = record_find_site(key);
  if (!id) id = new_site(thread, key);
  if (id) *site = (RecordKnownSite){key, id};
  return id;
}

uint32_t record_python_site(RecordThread* me) {
  if (__builtin_expect(self.state != 1, 0) && !is_there()) return 0;
  char* thread = self.this_thread();
  if (!thread) return 0; /* it is not Python's */
  const char* frame = running(thread, self.places);
  if (!frame) return 0;
  const uint64_t key = untagged(word(frame, self.places->code)) * 0x9e3779b97f4a7c15u ^
                       word(frame, self.places->instruction);
  RecordKnownSite* site = &me->python_sites[(key ^ (key >> 9)) % RECORD_SITE_CACHE];
  return __builtin_expect(site->address == key, 1) ? site->id : other_site(thread, key, site);
}
