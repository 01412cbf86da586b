/* layer: what is recorded of each call of MPI. Compiled with the mpicc of one MPI, so that it
   speaks that MPI's ABI; loaded by librecorder. Its entries are generated (layer_entries.inc): each
   makes the call, and tells one of the functions here what it was and what came of it.

   Thread: any. Owner: librecorder, for the process's life. Invariant: nothing here sends a message.
   All that is called of MPI is PMPI_. */
#define _GNU_SOURCE
#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static int clock_is_tsc;
#define RECORD_CLOCK_IS_TSC clock_is_tsc

#include "have.h"
#include "layer.h"
#include "recorder.h"
#include "recorder_kinds.h"

#define ENTRY static inline __attribute__((always_inline))
#define SITE record_site(me, me->from = __builtin_return_address(0))
#define KEY(handle) ((uint64_t)(uintptr_t)(handle))

enum { WORLD = 1, SELF = 2 };

static const char* const names[] = {
#include "recorder_names.inc"
};

#include "layer_cost.h"
#include "layer_narrow.h"
#include "layer_now.h"
#include "layer_quick.h"
#include "layer_sizes.h"
#include "layer_tables.h"
#include "layer_told.h"

/* ---- by hand ---- */

/* Our own library learns by where it is called, which is here for all calls: it asks where the
   program called us (src/base/call_site.h). Other MPIs have no such function. */
void headway_call_sites_from(uintptr_t (*site)(void)) __attribute__((weak));

static uintptr_t site_of_call(void) {
  const RecordThread* me = record_me;
  return me && me->depth ? (uintptr_t)me->from : 0;
}

static void begin_world(RecordThread* me) {
  static bool begun_already;
  if (begun_already) return;
  begun_already = true;
  if (headway_call_sites_from) headway_call_sites_from(site_of_call);
  int rank = -1, size = 0, length = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  PMPI_Comm_group(MPI_COMM_WORLD, &world_group);
  static char version[MPI_MAX_LIBRARY_VERSION_STRING];
  PMPI_Get_library_version(version, &length);
  learn_status();
  record_call_ticks = measure_call(me);
  record_begin_file(rank, size, version);
  tell_comm(MPI_COMM_WORLD, WORLD, 0, "MPI_Init", 0);
  tell_comm(MPI_COMM_SELF, SELF, 0, "MPI_Init", 0);
}

static void told_started(RecordThread* me, unsigned kind, uint32_t site, uint64_t begin, int rc,
                         int provided) {
  const uint64_t end = record_now();
  if (provided == MPI_THREAD_MULTIPLE) begin_several(); /* a session may have begun with many */
  record_put(me, kind, failed(rc), site, begin, end, 0, RECORD_NONE, RECORD_NONE, 0, 0);
  if (rc == MPI_SUCCESS) begin_world(me);
}

ENTRY int layer_MPI_Init(int* argc, char*** argv) {
  RecordThread* me = record_enter(K_MPI_Init);
  if (!me) return PMPI_Init(argc, argv);
  const uint32_t site = SITE;
  const uint64_t begin = record_now();
  const int rc = PMPI_Init(argc, argv);
  int provided = MPI_THREAD_SINGLE; /* an option of that MPI may have given more */
  if (rc == MPI_SUCCESS) PMPI_Query_thread(&provided);
  told_started(me, K_MPI_Init, site, begin, rc, provided);
  record_leave(me);
  return rc;
}

ENTRY int layer_MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  RecordThread* me = record_enter(K_MPI_Init_thread);
  if (!me) return PMPI_Init_thread(argc, argv, required, provided);
  const uint32_t site = SITE;
  const uint64_t begin = record_now();
  const int rc = PMPI_Init_thread(argc, argv, required, provided);
  told_started(me, K_MPI_Init_thread, site, begin, rc,
               rc == MPI_SUCCESS ? *provided : MPI_THREAD_SINGLE);
  record_leave(me);
  return rc;
}

ENTRY int layer_MPI_Finalize(void) {
  RecordThread* me = record_me ? record_me : record_first_call();
  if (!me || me->depth) return PMPI_Finalize();
  me->depth = 1;
  const uint32_t site = SITE;
  const uint64_t begin = begin_blocking(me);
  if (world_group != MPI_GROUP_NULL) PMPI_Group_free(&world_group);
  wait_otherwise(me, K_MPI_Finalize, site);
  const int rc = PMPI_Finalize();
  wait_is_over(me);
  me->off = !record_wanted[K_MPI_Finalize];
  me->calls += !me->off;
  told_other(me, K_MPI_Finalize, site, begin, record_now(), rc, 0);
  record_end_file(1);
  record_leave(me);
  return rc;
}

#ifdef HAVE_MPI_Session_init
ENTRY int layer_MPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) {
  RecordThread* me = record_enter(K_MPI_Session_init);
  if (!me) return PMPI_Session_init(info, errhandler, session);
  const uint32_t site = SITE;
  const uint64_t begin = record_now();
  const int rc = PMPI_Session_init(info, errhandler, session);
  begin_several(); /* whatever threads it was asked for */
  told_other(me, K_MPI_Session_init, site, begin, record_now(), rc, 0);
  record_leave(me);
  return rc;
}

ENTRY int layer_MPI_Session_finalize(MPI_Session* session) {
  RecordThread* me = record_enter(K_MPI_Session_finalize);
  if (!me) return PMPI_Session_finalize(session);
  const uint32_t site = SITE;
  const uint64_t begin = record_now();
  const int rc = PMPI_Session_finalize(session);
  told_other(me, K_MPI_Session_finalize, site, begin, record_now(), rc, 0);
  record_finalized = rc == MPI_SUCCESS;
  record_leave(me);
  return rc;
}
#endif

ENTRY int layer_MPI_Comm_free(MPI_Comm* comm) {
  RecordThread* me = record_enter(K_MPI_Comm_free);
  if (!me) return PMPI_Comm_free(comm);
  const uint32_t site = SITE, id = id_of(*comm);
  forget_comm(*comm);
  const uint64_t begin = begin_blocking(me);
  wait_otherwise(me, K_MPI_Comm_free, site);
  const int rc = PMPI_Comm_free(comm);
  const uint64_t end = record_now();
  wait_is_over(me);
  record_put(me, K_MPI_Comm_free, failed(rc), site, begin, end, id, RECORD_NONE, RECORD_NONE, 0, 0);
  end_blocking(me, begin, end);
  record_leave(me);
  return rc;
}

ENTRY int layer_MPI_Comm_disconnect(MPI_Comm* comm) {
  RecordThread* me = record_enter(K_MPI_Comm_disconnect);
  if (!me) return PMPI_Comm_disconnect(comm);
  const uint32_t site = SITE, id = id_of(*comm);
  forget_comm(*comm);
  const uint64_t begin = begin_blocking(me);
  wait_otherwise(me, K_MPI_Comm_disconnect, site);
  const int rc = PMPI_Comm_disconnect(comm);
  const uint64_t end = record_now();
  wait_is_over(me);
  record_put(me, K_MPI_Comm_disconnect, failed(rc), site, begin, end, id, RECORD_NONE, RECORD_NONE,
             0, 0);
  end_blocking(me, begin, end);
  record_leave(me);
  return rc;
}

ENTRY int layer_MPI_Comm_set_name(MPI_Comm comm, const char* name) {
  RecordThread* me = record_enter(K_MPI_Comm_set_name);
  if (!me) return PMPI_Comm_set_name(comm, name);
  const int rc = PMPI_Comm_set_name(comm, name);
  const uint32_t id = id_of(comm);
  if (rc == MPI_SUCCESS && id) {
    char text[MPI_MAX_OBJECT_NAME * 6 + 64], told[MPI_MAX_OBJECT_NAME * 6 + 8];
    record_append_json(told, sizeof told, name);
    snprintf(text, sizeof text, "{\"id\":%u,\"name\":\"%s\"}", id, told);
    record_tell_comm(text);
  }
  record_leave(me);
  return rc;
}

ENTRY int layer_MPI_Request_free(MPI_Request* request) {
  RecordThread* me = record_enter(K_MPI_Request_free);
  if (!me) return PMPI_Request_free(request);
  const uint32_t site = SITE;
  Operation found = {0};
  const uint64_t key = key_of_request(*request);
  if (key && look_up(key, &found)) forget(key);
  if (found.active && found.flags & RECORD_RECEIVE) note_odd(); /* nobody hears of its end */
  const uint64_t begin = record_now();
  const int rc = PMPI_Request_free(request);
  record_put(me, K_MPI_Request_free, failed(rc), site, begin, record_now(), found.comm, RECORD_NONE,
             RECORD_NONE, found.active || !found.persistent ? found.id : 0, 0);
  record_leave(me);
  return rc;
}

ENTRY int layer_MPI_Cancel(MPI_Request* request) {
  RecordThread* me = record_enter(K_MPI_Cancel);
  if (!me) return PMPI_Cancel(request);
  const uint32_t site = SITE;
  const uint64_t begin = record_now();
  Operation found = {0};
  look_up(key_of_request(*request), &found);
  const int rc = PMPI_Cancel(request);
  if (!cancels) record_forget_memos();
  cancels = true;
  note_odd();
  record_put(me, K_MPI_Cancel, failed(rc), site, begin, record_now(), 0, RECORD_NONE, RECORD_NONE,
             found.id, 0);
  record_leave(me);
  return rc;
}

ENTRY int layer_MPI_Pcontrol(const int level, ...) {
  record_level(level);
  return PMPI_Pcontrol(level);
}

ENTRY int layer_MPI_Abort(MPI_Comm comm, int code) {
  RecordThread* me = record_enter(K_MPI_Abort);
  if (me) {
    const uint32_t site = SITE;
    const uint64_t now = record_now();
    record_put(me, K_MPI_Abort, 0, site, now, now, id_of(comm), RECORD_NONE, RECORD_NONE, 0, 0);
    record_leave(me);
    record_flush();
  }
  return PMPI_Abort(comm, code);
}

#define PLAIN(name, parameters, arguments)             \
  ENTRY int layer_##name parameters {                  \
    RecordThread* me = record_enter(K_##name);         \
    if (!me) return P##name arguments;                 \
    const uint32_t site = SITE;                        \
    const uint64_t begin = begin_blocking(me);         \
    wait_otherwise(me, K_##name, site);                \
    const int rc = P##name arguments;                  \
    const uint64_t end = record_now();                 \
    wait_is_over(me);                                  \
    told_other(me, K_##name, site, begin, end, rc, 0); \
    end_blocking(me, begin, end);                      \
    record_leave(me);                                  \
    return rc;                                         \
  }

PLAIN(MPI_Buffer_detach, (void* buffer, int* size), (buffer, size))
#ifdef HAVE_MPI_Buffer_detach_c
PLAIN(MPI_Buffer_detach_c, (void* buffer, MPI_Count* size), (buffer, size))
#else
#define HAVE_MPI_Buffer_detach_c 1
ENTRY int layer_MPI_Buffer_detach_c(void* buffer, MPI_Count* size) {
  int narrow_size = 0;
  const int rc = layer_MPI_Buffer_detach(buffer, &narrow_size);
  *size = narrow_size;
  return rc;
}
#endif
#ifdef HAVE_MPI_Pready
PLAIN(MPI_Pready, (int partition, MPI_Request request), (partition, request))
PLAIN(MPI_Pready_range, (int low, int high, MPI_Request request), (low, high, request))
PLAIN(MPI_Pready_list, (int length, const int* partitions, MPI_Request request),
      (length, partitions, request))
#endif

#include "layer_entries.inc"

__attribute__((visibility("default")))
const RecordLayer record_layer = {RECORD_LAYER_VERSION, RECORD_FUNCTIONS, layer_entries};

/* Long after librecorder's own. */
__attribute__((constructor)) static void layer_start(void) {
  clock_is_tsc = record_clock_is_tsc;
  world_group = MPI_GROUP_NULL;
}
