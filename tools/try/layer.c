/* layer: what a try does at each call of MPI. Compiled with the mpicc of one MPI, so that it speaks
   that MPI's ABI; loaded by librecorder in the place of the recorder's own layer. Its entries are
   generated (try_entries.inc): each tells one of the functions here what is about to be done, makes
   the call, and tells what came of it.

   Thread: any; the tables are changed by one at a time (`lock`). Owner: librecorder, for the
   process's life. Invariant: all that is called of MPI is PMPI_; nothing is sent that the program
   does not send. */
#define _GNU_SOURCE
#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "have.h"
#include "recorder_kinds.h"
#include "try.h"
#include "try_kinds.h"

#define KEY(handle) ((uint64_t)(uintptr_t)(handle))

/* As layer.h of the recorder has it. */
typedef struct RecordLayer {
  int version;
  int functions;
  void* const* entries;
} RecordLayer;

static __thread uintptr_t site_now; /* of the call that this thread is in */

#include "layer_collectives.h"
#include "layer_hash.h"
#include "layer_puts_off.h"
#include "layer_tables.h"
#include "layer_test.h"

/* ---- each call ---- */

/* Our own library learns by where it is called, which is here for all calls. */
void headway_call_sites_from(uintptr_t (*site)(void)) __attribute__((weak));
static uintptr_t site_of_call(void) { return try_depth ? site_now : 0; }

static inline uintptr_t enter(const void* from) {
  uintptr_t site = (uintptr_t)from;
  if (__builtin_expect(record_fortran_caller != 0, 0)) site = record_fortran_from(site);
  try_depth = 1;
  site_now = site;
  if (tester.runs) stretch_ends();
  return site;
}

static inline void leave(uintptr_t site) {
  if (tester.runs && try_spot(site) & TRY_OTHER) stretch_begins();
  try_leave();
}

#define ENTER enter(__builtin_return_address(0))

/* ---- by hand ---- */

static void begun(int rc) {
  static bool begun_already;
  if (rc != MPI_SUCCESS || begun_already || !try_plan.there) return;
  begun_already = true;
  if (headway_call_sites_from) headway_call_sites_from(site_of_call);
  int rank = -1, size = 0;
  MPI_Comm parent = MPI_COMM_NULL;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  PMPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) blind(TRY_SPAWNED);
  try_start_pages(wait_for, (const void*)PMPI_Init);
  try_begin(rank, size);
  if (try_plan.mode == TRY_TEST) start_tester(); /* may fail, and tells which rank it was */
}

static int try_MPI_Init(int* argc, char*** argv) {
  if (try_depth) return PMPI_Init(argc, argv);
  const uintptr_t site = ENTER;
  int provided = MPI_THREAD_SINGLE;
  const int rc = try_plan.mode == TRY_TEST
                     ? PMPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided)
                     : PMPI_Init(argc, argv);
  begun(rc);
  leave(site);
  return rc;
}

static int try_MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  if (try_depth) return PMPI_Init_thread(argc, argv, required, provided);
  const uintptr_t site = ENTER;
  if (try_plan.mode == TRY_TEST) required = MPI_THREAD_MULTIPLE;
  const int rc = PMPI_Init_thread(argc, argv, required, provided);
  begun(rc);
  leave(site);
  return rc;
}

static int try_MPI_Finalize(void) {
  if (try_depth) return PMPI_Finalize();
  ENTER;
  try_end_all(TRY_AT_END);
  stop_tester();
  tell_result();
  const int rc = PMPI_Finalize();
  try_leave();
  return rc;
}

static int try_MPI_Comm_free(MPI_Comm* comm) {
  if (try_depth) return PMPI_Comm_free(comm);
  const uintptr_t site = ENTER;
  try_end_all(TRY_AT_OTHER);
  forget_comm(*comm);
  const int rc = PMPI_Comm_free(comm);
  leave(site);
  return rc;
}

static int try_MPI_Comm_disconnect(MPI_Comm* comm) {
  if (try_depth) return PMPI_Comm_disconnect(comm);
  const uintptr_t site = ENTER;
  try_end_all(TRY_AT_OTHER);
  forget_comm(*comm);
  const int rc = PMPI_Comm_disconnect(comm);
  leave(site);
  return rc;
}

static int try_MPI_Request_free(MPI_Request* request) {
  if (try_depth) return PMPI_Request_free(request);
  const uintptr_t site = ENTER;
  freed(*request);
  const int rc = PMPI_Request_free(request);
  leave(site);
  return rc;
}

static int try_MPI_Cancel(MPI_Request* request) {
  if (try_depth) return PMPI_Cancel(request);
  const uintptr_t site = ENTER;
  cancelled(*request);
  const int rc = PMPI_Cancel(request);
  leave(site);
  return rc;
}

static int try_MPI_Start(MPI_Request* request) {
  if (try_depth) return PMPI_Start(request);
  const uintptr_t site = ENTER;
  starting(1, request);
  const int rc = PMPI_Start(request);
  leave(site);
  return rc;
}

static int try_MPI_Startall(int count, MPI_Request requests[]) {
  if (try_depth) return PMPI_Startall(count, requests);
  const uintptr_t site = ENTER;
  starting(count, requests);
  const int rc = PMPI_Startall(count, requests);
  leave(site);
  return rc;
}

/* ---- waits and tests ---- */

static int try_MPI_Wait(MPI_Request* request, MPI_Status* status) {
  if (try_depth) return PMPI_Wait(request, status);
  const uintptr_t site = ENTER;
  int rc = MPI_SUCCESS;
  if (!puts_off(site, 1, request, status, status != MPI_STATUS_IGNORE)) {
    Many many;
    MPI_Status* const st = before_many(&many, 1, request, status, status != MPI_STATUS_IGNORE);
    rc = PMPI_Wait(request, st == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : st);
    after_many(&many, rc, request);
    if (many.receives) try_end_all(TRY_AT_WAIT);
  }
  leave(site);
  return rc;
}

static int try_MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  if (try_depth) return PMPI_Waitall(count, requests, statuses);
  const uintptr_t site = ENTER;
  int rc = MPI_SUCCESS;
  if (!puts_off(site, count, requests, statuses, statuses != MPI_STATUSES_IGNORE)) {
    Many many;
    MPI_Status* const st =
        before_many(&many, count, requests, statuses, statuses != MPI_STATUSES_IGNORE);
    rc = PMPI_Waitall(count, requests, st);
    after_many(&many, rc, requests);
    if (many.receives) try_end_all(TRY_AT_WAIT);
  }
  leave(site);
  return rc;
}

/* Who takes any of some receives may go on without the sends: the advice does not put waits here,
   and they end before. */
static int try_MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  if (try_depth) return PMPI_Waitany(count, requests, index, status);
  const uintptr_t site = ENTER;
  Many many;
  MPI_Status own, *const st = status == MPI_STATUS_IGNORE && try_plan.hash ? &own : status;
  before_many(&many, count, requests, NULL, false);
  if (many.receives) try_end_all(TRY_AT_WAIT);
  const int rc = PMPI_Waitany(count, requests, index, st);
  after_one(&many, rc, *index, st);
  leave(site);
  return rc;
}

static int try_MPI_Waitsome(int count, MPI_Request requests[], int* over, int indices[],
                            MPI_Status statuses[]) {
  if (try_depth) return PMPI_Waitsome(count, requests, over, indices, statuses);
  const uintptr_t site = ENTER;
  Many many;
  MPI_Status* const st =
      before_many(&many, count, requests, statuses, statuses != MPI_STATUSES_IGNORE);
  if (many.receives) try_end_all(TRY_AT_WAIT);
  const int rc = PMPI_Waitsome(count, requests, over, indices, st);
  after_some(&many, rc, *over, indices);
  leave(site);
  return rc;
}

static int try_MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  if (try_depth) return PMPI_Test(request, flag, status);
  const uintptr_t site = ENTER;
  Many many;
  MPI_Status* const st = before_many(&many, 1, request, status, status != MPI_STATUS_IGNORE);
  const int rc = PMPI_Test(request, flag, st == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : st);
  if (rc != MPI_SUCCESS || *flag) {
    after_many(&many, rc, request);
  } else {
    free_many(&many);
  }
  leave(site);
  return rc;
}

static int try_MPI_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  if (try_depth) return PMPI_Testall(count, requests, flag, statuses);
  const uintptr_t site = ENTER;
  Many many;
  MPI_Status* const st =
      before_many(&many, count, requests, statuses, statuses != MPI_STATUSES_IGNORE);
  const int rc = PMPI_Testall(count, requests, flag, st);
  if (rc != MPI_SUCCESS || *flag) {
    after_many(&many, rc, requests);
  } else {
    free_many(&many);
  }
  leave(site);
  return rc;
}

static int try_MPI_Testany(int count, MPI_Request requests[], int* index, int* flag,
                           MPI_Status* status) {
  if (try_depth) return PMPI_Testany(count, requests, index, flag, status);
  const uintptr_t site = ENTER;
  Many many;
  MPI_Status own, *const st = status == MPI_STATUS_IGNORE && try_plan.hash ? &own : status;
  before_many(&many, count, requests, NULL, false);
  const int rc = PMPI_Testany(count, requests, index, flag, st);
  after_one(&many, rc, rc == MPI_SUCCESS && *flag ? *index : MPI_UNDEFINED, st);
  leave(site);
  return rc;
}

static int try_MPI_Testsome(int count, MPI_Request requests[], int* over, int indices[],
                            MPI_Status statuses[]) {
  if (try_depth) return PMPI_Testsome(count, requests, over, indices, statuses);
  const uintptr_t site = ENTER;
  Many many;
  MPI_Status* const st =
      before_many(&many, count, requests, statuses, statuses != MPI_STATUSES_IGNORE);
  const int rc = PMPI_Testsome(count, requests, over, indices, st);
  after_some(&many, rc, *over, indices);
  leave(site);
  return rc;
}

#include "try_entries.inc"

__attribute__((visibility("default")))
const RecordLayer record_layer = {TRY_LAYER_VERSION, RECORD_ENTRIES, layer_entries};
