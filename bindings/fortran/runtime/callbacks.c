#include "callbacks.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- pools: 256 functions of C for each kind of procedure ---- */

#define FOR_4(DO, n) DO(n##0) DO(n##1) DO(n##2) DO(n##3)
#define FOR_16(DO, n) FOR_4(DO, n##0) FOR_4(DO, n##1) FOR_4(DO, n##2) FOR_4(DO, n##3)
#define FOR_64(DO, n) FOR_16(DO, n##0) FOR_16(DO, n##1) FOR_16(DO, n##2) FOR_16(DO, n##3)
/* Numbers of four digits of base 4. */
#define FOR_ALL(DO) FOR_64(DO, 0) FOR_64(DO, 1) FOR_64(DO, 2) FOR_64(DO, 3)
#define NUMBER(n) (0x##n % 16 + 0x##n / 16 % 16 * 4 + 0x##n / 256 % 16 * 16 + 0x##n / 4096 * 64)

/* Which of the pool the procedure has, or -1. */
static int number_of(HfFunction* pool, HfFunction procedure) {
  int found = -1;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < HF_POOL; ++i) {
    if (pool[i] && pool[i] != procedure) continue;
    pool[i] = procedure;
    found = i;
    break;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

#define POOL(name, Type)                                                 \
  static HfFunction name##_pool[HF_POOL];                                \
  FOR_ALL(name##_ONE)                                                    \
  static Type* const name##_functions[HF_POOL] = {FOR_ALL(name##_NAME)}; \
  Type* name(HfFunction procedure) {                                     \
    const int number = number_of(name##_pool, procedure);                \
    return number < 0 ? NULL : name##_functions[number];                 \
  }

static void run_operation(HfFunction procedure, void* in, void* inout, int* length,
                          MPI_Datatype* datatype) {
  MPI_Fint number = hf_to_Type(*datatype);
  ((void (*)(void*, void*, int*, MPI_Fint*))procedure)(in, inout, length, &number);
}
#define hf_operation_ONE(n)                                                              \
  static void hf_operation_##n(void* in, void* inout, int* length, MPI_Datatype* type) { \
    run_operation(hf_operation_pool[NUMBER(n)], in, inout, length, type);                \
  }
#define hf_operation_NAME(n) hf_operation_##n,
POOL(hf_operation, MPI_User_function)

static void run_operation_c(HfFunction procedure, void* in, void* inout, MPI_Count* length,
                            MPI_Datatype* datatype) {
  MPI_Fint number = hf_to_Type(*datatype);
  ((void (*)(void*, void*, MPI_Count*, MPI_Fint*))procedure)(in, inout, length, &number);
}
#define hf_operation_c_ONE(n)                                                                    \
  static void hf_operation_c_##n(void* in, void* inout, MPI_Count* length, MPI_Datatype* type) { \
    run_operation_c(hf_operation_c_pool[NUMBER(n)], in, inout, length, type);                    \
  }
#define hf_operation_c_NAME(n) hf_operation_c_##n,
POOL(hf_operation_c, MPI_User_function_c)

/* A handler of the user may change the handle as little as in C. */
static void run_errhandler(HfFunction procedure, MPI_Fint object, int* code) {
  ((void (*)(MPI_Fint*, int*))procedure)(&object, code);
}
#define hf_comm_errhandler_ONE(n)                                                \
  static void hf_comm_errhandler_##n(MPI_Comm* comm, int* code, ...) {           \
    run_errhandler(hf_comm_errhandler_pool[NUMBER(n)], hf_to_Comm(*comm), code); \
  }
#define hf_comm_errhandler_NAME(n) hf_comm_errhandler_##n,
POOL(hf_comm_errhandler, MPI_Comm_errhandler_function)
#define hf_file_errhandler_ONE(n)                                                \
  static void hf_file_errhandler_##n(MPI_File* file, int* code, ...) {           \
    run_errhandler(hf_file_errhandler_pool[NUMBER(n)], hf_to_File(*file), code); \
  }
#define hf_file_errhandler_NAME(n) hf_file_errhandler_##n,
POOL(hf_file_errhandler, MPI_File_errhandler_function)
#define hf_session_errhandler_ONE(n)                                                      \
  static void hf_session_errhandler_##n(MPI_Session* session, int* code, ...) {           \
    run_errhandler(hf_session_errhandler_pool[NUMBER(n)], hf_to_Session(*session), code); \
  }
#define hf_session_errhandler_NAME(n) hf_session_errhandler_##n,
POOL(hf_session_errhandler, MPI_Session_errhandler_function)
#define hf_win_errhandler_ONE(n)                                              \
  static void hf_win_errhandler_##n(MPI_Win* win, int* code, ...) {           \
    run_errhandler(hf_win_errhandler_pool[NUMBER(n)], hf_to_Win(*win), code); \
  }
#define hf_win_errhandler_NAME(n) hf_win_errhandler_##n,
POOL(hf_win_errhandler, MPI_Win_errhandler_function)

/* ---- proxies ---- */

static HfProxy* proxies; /* so that none is taken for a leak */

HfProxy* hf_proxy(HfFunction first, HfFunction second, HfFunction third, MPI_Aint extra_state,
                  int narrow) {
  HfProxy* proxy = malloc(sizeof *proxy);
  if (!proxy) return NULL;
  *proxy = (HfProxy){NULL, {first, second, third}, extra_state, narrow};
  pthread_mutex_lock(&lock);
  proxy->next = proxies;
  proxies = proxy;
  pthread_mutex_unlock(&lock);
  return proxy;
}

static int copy_attribute(MPI_Fint object, int keyval, HfProxy* proxy, void* value_in,
                          void* value_out, int* flag) {
  MPI_Aint in = hf_value_from_c(value_in), out = in;
  MPI_Fint is_copied = hf_logical(0);
  int code = MPI_SUCCESS;
  if (proxy->narrow) {
    MPI_Fint from = (MPI_Fint)in, to = from, state = (MPI_Fint)proxy->extra_state;
    ((void (*)(MPI_Fint*, int*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*,
               int*))proxy->procedures[0])(&object, &keyval, &state, &from, &to, &is_copied, &code);
    if (to != from) out = to; /* else also what C has set, of which these are the lower half */
  } else {
    ((void (*)(MPI_Fint*, int*, MPI_Aint*, MPI_Aint*, MPI_Aint*, MPI_Fint*,
               int*))proxy->procedures[0])(&object, &keyval, &proxy->extra_state, &in, &out,
                                           &is_copied, &code);
  }
  *flag = hf_is_true(is_copied);
  if (code != MPI_SUCCESS || !*flag) return code;
  void* value = out == in ? value_in : hf_value_to_c(out);
  if (!value && out != in) return MPI_ERR_NO_MEM;
  *(void**)value_out = value;
  return MPI_SUCCESS;
}

static int delete_attribute(MPI_Fint object, int keyval, void* value, HfProxy* proxy) {
  MPI_Aint wide = hf_value_from_c(value);
  int code = MPI_SUCCESS;
  if (proxy->narrow) {
    MPI_Fint narrow = (MPI_Fint)wide, state = (MPI_Fint)proxy->extra_state;
    ((void (*)(MPI_Fint*, int*, MPI_Fint*, MPI_Fint*, int*))proxy->procedures[1])(
        &object, &keyval, &narrow, &state, &code);
  } else {
    ((void (*)(MPI_Fint*, int*, MPI_Aint*, MPI_Aint*, int*))proxy->procedures[1])(
        &object, &keyval, &wide, &proxy->extra_state, &code);
  }
  return code;
}

#define ATTRIBUTES(kind, Short, Handle)                                                        \
  static int copy_of_##kind(Handle object, int keyval, void* extra_state, void* in, void* out, \
                            int* flag) {                                                       \
    return copy_attribute(hf_to_##Short(object), keyval, extra_state, in, out, flag);          \
  }                                                                                            \
  static int delete_of_##kind(Handle object, int keyval, void* value, void* extra_state) {     \
    return delete_attribute(hf_to_##Short(object), keyval, value, extra_state);                \
  }                                                                                            \
  MPI_##Short##_copy_attr_function* hf_##kind##_copy(HfFunction procedure) {                   \
    switch (hf_predefined(procedure)) {                                                        \
      case HF_PREDEFINED_NULL: return (MPI_##Short##_copy_attr_function*)0x0;                  \
      case HF_PREDEFINED_DUP: return (MPI_##Short##_copy_attr_function*)0x1;                   \
      case HF_OWN: break;                                                                      \
    }                                                                                          \
    return copy_of_##kind;                                                                     \
  }                                                                                            \
  MPI_##Short##_delete_attr_function* hf_##kind##_delete(HfFunction procedure) {               \
    if (hf_predefined(procedure) != HF_OWN) return (MPI_##Short##_delete_attr_function*)0x0;   \
    return delete_of_##kind;                                                                   \
  }
ATTRIBUTES(comm, Comm, MPI_Comm)
ATTRIBUTES(type, Type, MPI_Datatype)
ATTRIBUTES(win, Win, MPI_Win)

int hf_grequest_query(void* extra_state, MPI_Status* status) {
  HfProxy* proxy = extra_state;
  int code = MPI_SUCCESS;
  ((void (*)(MPI_Aint*, MPI_Fint*, int*))proxy->procedures[0])(&proxy->extra_state,
                                                               (MPI_Fint*)status, &code);
  return code;
}

int hf_grequest_free(void* extra_state) {
  HfProxy* proxy = extra_state;
  int code = MPI_SUCCESS;
  ((void (*)(MPI_Aint*, int*))proxy->procedures[1])(&proxy->extra_state, &code);
  hf_free_proxy(proxy); /* it is the last that is called of a request */
  return code;
}

void hf_free_proxy(HfProxy* proxy) {
  if (!proxy) return;
  pthread_mutex_lock(&lock);
  HfProxy** at = &proxies;
  while (*at && *at != proxy) at = &(*at)->next;
  if (*at) *at = proxy->next;
  pthread_mutex_unlock(&lock);
  free(proxy);
}

int hf_grequest_cancel(void* extra_state, int complete) {
  HfProxy* proxy = extra_state;
  MPI_Fint is_complete = hf_logical(complete);
  int code = MPI_SUCCESS;
  ((void (*)(MPI_Aint*, MPI_Fint*, int*))proxy->procedures[2])(&proxy->extra_state, &is_complete,
                                                               &code);
  return code;
}

int hf_datarep_extent(MPI_Datatype datatype, MPI_Aint* extent, void* extra_state) {
  HfProxy* proxy = extra_state;
  MPI_Fint number = hf_to_Type(datatype);
  int code = MPI_SUCCESS;
  ((void (*)(MPI_Fint*, MPI_Aint*, MPI_Aint*, int*))proxy->procedures[0])(
      &number, extent, &proxy->extra_state, &code);
  return code;
}

#define CONVERSION(name, Count, which)                                                            \
  int name(void* userbuf, MPI_Datatype datatype, Count count, void* filebuf, MPI_Offset position, \
           void* extra_state) {                                                                   \
    HfProxy* proxy = extra_state;                                                                 \
    MPI_Fint number = hf_to_Type(datatype);                                                       \
    int code = MPI_SUCCESS;                                                                       \
    ((void (*)(void*, MPI_Fint*, Count*, void*, MPI_Offset*, MPI_Aint*,                           \
               int*))proxy->procedures[which])(userbuf, &number, &count, filebuf, &position,      \
                                               &proxy->extra_state, &code);                       \
    return code;                                                                                  \
  }
CONVERSION(hf_datarep_read, int, 1)
CONVERSION(hf_datarep_write, int, 2)
CONVERSION(hf_datarep_read_c, MPI_Count, 1)
CONVERSION(hf_datarep_write_c, MPI_Count, 2)

/* ---- values of attributes ---- */

/* One cell a value, however often it is set: a copy of an attribute has the same address, so nobody
   could tell when a cell of its own is not used any more. */
enum { CELLS = 255 };
typedef struct Chunk {
  struct Chunk* next;
  MPI_Aint cells[CELLS];
} Chunk;
static Chunk* chunks;
static int used = CELLS; /* of the first chunk */

/* The cell of a value, or null; with the lock. */
static MPI_Aint* find_cell(MPI_Aint value) {
  int count = used;
  for (Chunk* chunk = chunks; chunk; chunk = chunk->next, count = CELLS) {
    for (int i = 0; i < count; ++i) {
      if (chunk->cells[i] == value) return &chunk->cells[i];
    }
  }
  return NULL;
}

void* hf_value_to_c(MPI_Aint value) {
  pthread_mutex_lock(&lock);
  MPI_Aint* cell = find_cell(value);
  if (!cell && used == CELLS) {
    Chunk* chunk = malloc(sizeof *chunk);
    if (chunk) {
      chunk->next = chunks;
      chunks = chunk;
      used = 0;
    }
  }
  if (!cell && used < CELLS) {
    cell = &chunks->cells[used++];
    *cell = value;
  }
  pthread_mutex_unlock(&lock);
  return cell;
}

MPI_Aint hf_value_from_c(void* value) {
  MPI_Aint found = (MPI_Aint)value;
  pthread_mutex_lock(&lock);
  for (Chunk* chunk = chunks; chunk; chunk = chunk->next) {
    const uintptr_t at = (uintptr_t)value - (uintptr_t)chunk->cells;
    if (at < sizeof chunk->cells) found = chunk->cells[at / sizeof(MPI_Aint)];
  }
  pthread_mutex_unlock(&lock);
  return found;
}
