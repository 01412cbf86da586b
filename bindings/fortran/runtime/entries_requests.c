/* Waits, tests and starts: handles of requests both ways, indices from 1, and what requests have to
   do when they are done. Compiled twice (fortran.h). */
#include <stdlib.h>
#include <string.h>

#include "fortran.h"

/* Requests as C has them, as they were before the call, and what they have to do when they are
   done, if any has something. */
typedef struct Requests {
  MPI_Request *now, *before;
  HfPending** held;
  int count;
  MPI_Request few[2 * HF_FEW];
} Requests;

static int open_requests(Requests* requests, const MPI_Fint* from, int count) {
  const size_t length = count > 0 ? (size_t)count : 0;
  requests->held = NULL;
  requests->count = (int)length;
  requests->now = length <= HF_FEW ? requests->few : malloc(2 * length * sizeof(MPI_Request));
  if (!requests->now) return 0;
  requests->before = requests->now + length;
  for (size_t i = 0; i < length; ++i) requests->now[i] = hf_from_Request(from[i]);
  memcpy(requests->before, requests->now, length * sizeof(MPI_Request));
  return 1;
}

/* As open_requests(), for a call that may complete them. */
static int open_and_hold(Requests* requests, const MPI_Fint* from, int count) {
  if (!open_requests(requests, from, count)) return 0;
  if (!hf_any_attached() || requests->count == 0) return 1;
  requests->held = calloc((size_t)requests->count, sizeof(HfPending*));
  if (!requests->held) {
    if (requests->now != requests->few) free(requests->now);
    return 0;
  }
  for (int i = 0; i < requests->count; ++i) requests->held[i] = hf_hold(requests->now[i]);
  return 1;
}

/* What was done has another handle now, MPI_REQUEST_NULL, or is persistent. */
static void close_requests(Requests* requests, MPI_Fint* to) {
  for (int i = 0; to && i < requests->count; ++i) {
    if (requests->now[i] != requests->before[i]) to[i] = hf_to_Request(requests->now[i]);
  }
  for (int i = 0; requests->held && i < requests->count; ++i) hf_settle(requests->held[i], 0);
  free(requests->held);
  if (requests->now != requests->few) free(requests->now);
}

static void done(Requests* requests, int i) {
  if (!requests->held) return;
  hf_settle(requests->held[i], 1);
  requests->held[i] = NULL;
}

static void all_done(Requests* requests) {
  for (int i = 0; requests->held && i < requests->count; ++i) done(requests, i);
}

/* Where a call on many failed, some may be done; of a persistent one the handle does not tell. */
static void those_done(Requests* requests) {
  for (int i = 0; requests->held && i < requests->count; ++i) {
    int is_done = requests->before[i] != requests->now[i];
    if (requests->held[i] && !is_done)
      PMPI_Request_get_status(requests->now[i], &is_done, MPI_STATUS_IGNORE);
    if (is_done) done(requests, i);
  }
}

static void some_done(Requests* requests, int outcount, int* indices) {
  for (int i = 0; i < outcount; ++i) done(requests, indices[i]++);
}

static void one_done(Requests* requests, int* index) {
  if (*index != MPI_UNDEFINED) done(requests, (*index)++);
}

/* A persistent one keeps its handle, also where it has ended with an error. */
static int is_over(HfPending* held, int code, int is_done, MPI_Request before, MPI_Request now) {
  int over = now != before || (code == MPI_SUCCESS && is_done);
  if (held && !over && code != MPI_SUCCESS) PMPI_Request_get_status(now, &over, MPI_STATUS_IGNORE);
  return over;
}

HF_ENTRY(void, wait, WAIT, (MPI_Fint * request, MPI_Fint* status, int* ierror)) {
  HF_NOTE_SITE();
  const MPI_Request before = hf_from_Request(*request);
  MPI_Request now = before;
  HfPending* held = hf_hold(before);
  const int code = C(Wait)(&now, hf_status(status));
  hf_settle(held, is_over(held, code, code == MPI_SUCCESS, before, now));
  if (now != before) *request = hf_to_Request(now);
  hf_give(ierror, code);
}

HF_ENTRY(void, test, TEST, (MPI_Fint * request, MPI_Fint* flag, MPI_Fint* status, int* ierror)) {
  HF_NOTE_SITE();
  const MPI_Request before = hf_from_Request(*request);
  MPI_Request now = before;
  int is_done = 0;
  HfPending* held = hf_hold(before);
  const int code = C(Test)(&now, &is_done, hf_status(status));
  hf_settle(held, is_over(held, code, is_done, before, now));
  if (now != before) *request = hf_to_Request(now);
  *flag = hf_logical(is_done);
  hf_give(ierror, code);
}

HF_ENTRY(void, waitall, WAITALL,
         (const int* count, MPI_Fint* array_of_requests, MPI_Fint* array_of_statuses,
          int* ierror)) {
  HF_NOTE_SITE();
  Requests requests;
  if (!open_and_hold(&requests, array_of_requests, *count)) {
    hf_give(ierror, hf_no_memory("MPI_Waitall", HF_SELF));
    return;
  }
  const int code = C(Waitall)(*count, requests.now, hf_status(array_of_statuses));
  if (code == MPI_SUCCESS)
    all_done(&requests);
  else
    those_done(&requests);
  close_requests(&requests, array_of_requests);
  hf_give(ierror, code);
}

HF_ENTRY(void, testall, TESTALL,
         (const int* count, MPI_Fint* array_of_requests, MPI_Fint* flag,
          MPI_Fint* array_of_statuses, int* ierror)) {
  HF_NOTE_SITE();
  Requests requests;
  int is_done = 0;
  if (!open_and_hold(&requests, array_of_requests, *count)) {
    hf_give(ierror, hf_no_memory("MPI_Testall", HF_SELF));
    return;
  }
  const int code = C(Testall)(*count, requests.now, &is_done, hf_status(array_of_statuses));
  if (code == MPI_SUCCESS && is_done)
    all_done(&requests);
  else
    those_done(&requests);
  close_requests(&requests, array_of_requests);
  *flag = hf_logical(is_done);
  hf_give(ierror, code);
}

HF_ENTRY(void, waitany, WAITANY,
         (const int* count, MPI_Fint* array_of_requests, int* index, MPI_Fint* status,
          int* ierror)) {
  HF_NOTE_SITE();
  Requests requests;
  int at = MPI_UNDEFINED;
  if (!open_and_hold(&requests, array_of_requests, *count)) {
    hf_give(ierror, hf_no_memory("MPI_Waitany", HF_SELF));
    return;
  }
  const int code = C(Waitany)(*count, requests.now, &at, hf_status(status));
  one_done(&requests, &at);
  close_requests(&requests, array_of_requests);
  *index = at;
  hf_give(ierror, code);
}

HF_ENTRY(void, testany, TESTANY,
         (const int* count, MPI_Fint* array_of_requests, int* index, MPI_Fint* flag,
          MPI_Fint* status, int* ierror)) {
  HF_NOTE_SITE();
  Requests requests;
  int at = MPI_UNDEFINED, is_done = 0;
  if (!open_and_hold(&requests, array_of_requests, *count)) {
    hf_give(ierror, hf_no_memory("MPI_Testany", HF_SELF));
    return;
  }
  const int code = C(Testany)(*count, requests.now, &at, &is_done, hf_status(status));
  if (is_done) one_done(&requests, &at);
  close_requests(&requests, array_of_requests);
  *index = at;
  *flag = hf_logical(is_done);
  hf_give(ierror, code);
}

HF_ENTRY(void, waitsome, WAITSOME,
         (const int* incount, MPI_Fint* array_of_requests, int* outcount, int* array_of_indices,
          MPI_Fint* array_of_statuses, int* ierror)) {
  HF_NOTE_SITE();
  Requests requests;
  int some = MPI_UNDEFINED;
  if (!open_and_hold(&requests, array_of_requests, *incount)) {
    hf_give(ierror, hf_no_memory("MPI_Waitsome", HF_SELF));
    return;
  }
  const int code =
      C(Waitsome)(*incount, requests.now, &some, array_of_indices, hf_status(array_of_statuses));
  some_done(&requests, some, array_of_indices);
  close_requests(&requests, array_of_requests);
  *outcount = some;
  hf_give(ierror, code);
}

HF_ENTRY(void, testsome, TESTSOME,
         (const int* incount, MPI_Fint* array_of_requests, int* outcount, int* array_of_indices,
          MPI_Fint* array_of_statuses, int* ierror)) {
  HF_NOTE_SITE();
  Requests requests;
  int some = MPI_UNDEFINED;
  if (!open_and_hold(&requests, array_of_requests, *incount)) {
    hf_give(ierror, hf_no_memory("MPI_Testsome", HF_SELF));
    return;
  }
  const int code =
      C(Testsome)(*incount, requests.now, &some, array_of_indices, hf_status(array_of_statuses));
  some_done(&requests, some, array_of_indices);
  close_requests(&requests, array_of_requests);
  *outcount = some;
  hf_give(ierror, code);
}

/* ---- that leave the requests as they are ---- */

HF_ENTRY(void, request_get_status, REQUEST_GET_STATUS,
         (const MPI_Fint* request, MPI_Fint* flag, MPI_Fint* status, int* ierror)) {
  const MPI_Request of = hf_from_Request(*request);
  int is_done = 0;
  const int code = C(Request_get_status)(of, &is_done, hf_status(status));
  if (code == MPI_SUCCESS && is_done) hf_done(of);
  *flag = hf_logical(is_done);
  hf_give(ierror, code);
}

HF_ENTRY(void, request_get_status_all, REQUEST_GET_STATUS_ALL,
         (const int* count, const MPI_Fint* array_of_requests, MPI_Fint* flag,
          MPI_Fint* array_of_statuses, int* ierror)) {
  HF_NOTE_SITE();
  Requests requests;
  int is_done = 0;
  if (!open_and_hold(&requests, array_of_requests, *count)) {
    hf_give(ierror, hf_no_memory("MPI_Request_get_status_all", HF_SELF));
    return;
  }
  const int code =
      C(Request_get_status_all)(*count, requests.now, &is_done, hf_status(array_of_statuses));
  if (code == MPI_SUCCESS && is_done) all_done(&requests);
  close_requests(&requests, NULL);
  *flag = hf_logical(is_done);
  hf_give(ierror, code);
}

HF_ENTRY(void, request_get_status_any, REQUEST_GET_STATUS_ANY,
         (const int* count, const MPI_Fint* array_of_requests, int* index, MPI_Fint* flag,
          MPI_Fint* status, int* ierror)) {
  HF_NOTE_SITE();
  Requests requests;
  int at = MPI_UNDEFINED, is_done = 0;
  if (!open_and_hold(&requests, array_of_requests, *count)) {
    hf_give(ierror, hf_no_memory("MPI_Request_get_status_any", HF_SELF));
    return;
  }
  const int code =
      C(Request_get_status_any)(*count, requests.now, &at, &is_done, hf_status(status));
  if (is_done) one_done(&requests, &at);
  close_requests(&requests, NULL);
  *index = at;
  *flag = hf_logical(is_done);
  hf_give(ierror, code);
}

HF_ENTRY(void, request_get_status_some, REQUEST_GET_STATUS_SOME,
         (const int* incount, const MPI_Fint* array_of_requests, int* outcount,
          int* array_of_indices, MPI_Fint* array_of_statuses, int* ierror)) {
  HF_NOTE_SITE();
  Requests requests;
  int some = MPI_UNDEFINED;
  if (!open_and_hold(&requests, array_of_requests, *incount)) {
    hf_give(ierror, hf_no_memory("MPI_Request_get_status_some", HF_SELF));
    return;
  }
  const int code = C(Request_get_status_some)(*incount, requests.now, &some, array_of_indices,
                                              hf_status(array_of_statuses));
  some_done(&requests, some, array_of_indices);
  close_requests(&requests, NULL);
  *outcount = some;
  hf_give(ierror, code);
}

/* ---- starts and ends ---- */

HF_ENTRY(void, start, START, (MPI_Fint * request, int* ierror)) {
  HF_NOTE_SITE();
  const MPI_Request before = hf_from_Request(*request);
  MPI_Request now = before;
  hf_start(before);
  const int code = C(Start)(&now);
  if (now != before) *request = hf_to_Request(now);
  hf_give(ierror, code);
}

HF_ENTRY(void, startall, STARTALL, (const int* count, MPI_Fint* array_of_requests, int* ierror)) {
  HF_NOTE_SITE();
  Requests requests;
  if (!open_requests(&requests, array_of_requests, *count)) {
    hf_give(ierror, hf_no_memory("MPI_Startall", HF_SELF));
    return;
  }
  for (int i = 0; hf_any_attached() && i < *count; ++i) hf_start(requests.now[i]);
  const int code = C(Startall)(*count, requests.now);
  close_requests(&requests, array_of_requests);
  hf_give(ierror, code);
}

HF_ENTRY(void, request_free, REQUEST_FREE, (MPI_Fint * request, int* ierror)) {
  MPI_Request now = hf_from_Request(*request);
  const int way = hf_free(now);
  int code = MPI_SUCCESS;
  if (way == HF_CANNOT_BE_FREED) {
    code = hf_refuse("MPI_Request_free", HF_SELF, MPI_ERR_REQUEST,
                     "the request's data come into a copy of an array section with gaps, and go to "
                     "the section when it is completed. Likely remedy: call MPI_Wait, or receive "
                     "into a contiguous array");
  } else {
    if (way == HF_MAY_BE_FREED) code = C(Request_free)(&now);
    if (code == MPI_SUCCESS) *request = hf_to_Request(MPI_REQUEST_NULL);
  }
  hf_give(ierror, code);
}

HF_ENTRY(void, cancel, CANCEL, (const MPI_Fint* request, int* ierror)) {
  MPI_Request of = hf_from_Request(*request);
  hf_give(ierror, C(Cancel)(&of));
}
