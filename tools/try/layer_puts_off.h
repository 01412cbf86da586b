/* layer_puts_off: sends whose wait is put off, and what each call of MPI means for them. Part of
   layer.c. Thread: the program's, but for what only counts operations. Owner: the layer. Invariant:
   before MPI may write to a page of a send that is put off, that send is over. */
#ifndef HEADWAY_TRY_LAYER_PUTS_OFF_H
#define HEADWAY_TRY_LAYER_PUTS_OFF_H

#include "layer_hash.h"
#include "layer_tables.h"

_Static_assert(sizeof(MPI_Request) <= TRY_REQUEST, "a request has room");

static const char failed_send[] = "a send that was put off failed";

static int wait_for(TryRequest* request) {
  MPI_Request it;
  memcpy(&it, request, sizeof it);
  return PMPI_Wait(&it, MPI_STATUS_IGNORE) != MPI_SUCCESS;
}

static bool is_wanted(uintptr_t site) {
  return try_plan.mode == TRY_PUT_OFF && try_spot(site) & TRY_SITE;
}

static bool refuse(enum TryRefusal why) {
  ++try_counts.refused[why];
  return false;
}

static bool may_put_off(TryRange bytes) {
  enum TryRefusal why = blind_from != TRY_MAY ? blind_from
                        : unseen > 0          ? TRY_COLLECTIVE
                                              : try_why_not(bytes);
  if (why == TRY_MAY && is_received_into(bytes)) why = TRY_RECEIVING;
  return why == TRY_MAY || refuse(why);
}

/* Instead of the wait for it. The program has no request any more. */
static void put_off(MPI_Request* request, TryRange bytes, const TryEnvelope* envelope) {
  int over = 0;
  if (PMPI_Test(request, &over, MPI_STATUS_IGNORE) != MPI_SUCCESS) try_give_up(failed_send);
  if (over) {
    ++try_counts.at_once;
    return;
  }
  TryRequest kept;
  memcpy(&kept, request, sizeof *request);
  if (try_put_off(bytes, envelope, &kept)) return;
  refuse(TRY_FULL);
  if (wait_for(&kept) != 0) try_give_up(failed_send);
}

/* ---- sends ---- */

static TryEnvelope envelope_of(uintptr_t site, int dest, int tag, MPI_Comm comm) {
  return (TryEnvelope){site, try_line(site), KEY(comm), dest, tag};
}

/* Before any send. */
static void sends_again(const TryEnvelope* envelope) {
  if (try_count) try_end_same(envelope);
}

/* Whether an MPI_Send is to be an MPI_Isend now, whose wait is put off. */
static bool puts_off_send(uintptr_t site, TryRange bytes, int dest) {
  if (!is_wanted(site)) return false;
  ++try_counts.reached;
  if (dest != MPI_PROC_NULL) return may_put_off(bytes);
  ++try_counts.at_once;
  return false;
}

static void begun_send(int rc, MPI_Request request, TryRange bytes, const TryEnvelope* envelope) {
  if (rc != MPI_SUCCESS || request == MPI_REQUEST_NULL || try_plan.mode == TRY_UNCHANGED) return;
  lock();
  Operation* one = add(request, SENDS);
  one->bytes = bytes;
  one->envelope = *envelope;
  activate(one);
  unlock();
}

/* ---- receives ---- */

static void receives_into(TryRange bytes) {
  if (try_count) try_end_pages(bytes, TRY_AT_RECEIVE);
}

static void begun_receive(int rc, MPI_Request request, void* buffer, int64_t count,
                          MPI_Datatype type, TryRange bytes, int source, int tag, MPI_Comm comm) {
  if (rc != MPI_SUCCESS || request == MPI_REQUEST_NULL || source == MPI_PROC_NULL || !follows())
    return;
  lock();
  Operation* one = add(request, RECEIVES);
  one->bytes = bytes;
  note_receive(one, buffer, count, type, source, tag, comm, true);
  take_place(one);
  activate(one);
  unlock();
}

/* Of a call that has received. */
static void received(int rc, void* buffer, int64_t count, MPI_Datatype type, TryRange bytes,
                     int source, int tag, MPI_Comm comm, MPI_Status* status) {
  if (rc != MPI_SUCCESS || !try_plan.hash || source == MPI_PROC_NULL) return;
  Operation one = {.bytes = bytes};
  lock();
  note_receive(&one, buffer, count, type, source, tag, comm, false);
  take_place(&one);
  unlock();
  came(&one, status);
}

static void made_receive(int rc, MPI_Request request, void* buffer, int64_t count,
                         MPI_Datatype type, TryRange bytes, int source, int tag, MPI_Comm comm) {
  if (rc != MPI_SUCCESS || source == MPI_PROC_NULL || !follows()) return;
  lock();
  Operation* one = add(request, RECEIVES);
  one->persistent = true;
  one->bytes = bytes;
  note_receive(one, buffer, count, type, source, tag, comm, true);
  unlock();
}

static void starting(int count, const MPI_Request* requests) {
  if (!follows()) return;
  for (int i = 0; i < count; ++i) {
    lock();
    Operation* one = find(KEY(requests[i]));
    const bool receives = one && one->persistent && one->what == RECEIVES && !one->active;
    const TryRange bytes = receives ? one->bytes : (TryRange){0, 0};
    if (receives) {
      take_place(one);
      activate(one);
    }
    unlock();
    receives_into(bytes);
  }
}

static void begun_collective(int rc, MPI_Request request) {
  if (rc != MPI_SUCCESS || request == MPI_REQUEST_NULL || try_plan.mode != TRY_PUT_OFF) return;
  lock();
  activate(add(request, COLLECTIVE));
  unlock();
}

static void freed(MPI_Request request) {
  if (request == MPI_REQUEST_NULL || !follows()) return;
  lock();
  Operation* one = find(KEY(request));
  const bool writes = one && one->active && one->what != SENDS;
  if (one) forget(one);
  unlock();
  if (writes) blind(TRY_FREED);
}

static void cancelled(MPI_Request request) {
  cancels = true;
  lock();
  Operation* one = find(KEY(request));
  if (one) one->cancelled = true;
  unlock();
}

/* ---- waits ---- */

enum { FEW = 32 };
typedef struct Many {
  int64_t count;
  bool receives; /* one of them is a receive that is under way */
  uint64_t* keys;
  MPI_Status *statuses, *own; /* `own`: more than a few, of ours */
  uint64_t few[FEW];
  MPI_Status few_statuses[FEW];
} Many;

/* What a call waits or tests for. The statuses that it is to fill in; MPI_STATUSES_IGNORE if none
   are wanted. */
static MPI_Status* before_many(Many* many, int64_t count, const MPI_Request* requests,
                               MPI_Status* given, bool is_given) {
  many->count = 0;
  many->receives = false;
  many->keys = many->few;
  many->own = NULL;
  many->statuses = is_given ? given : many->few_statuses;
  if (!follows() || count <= 0) return is_given ? given : MPI_STATUSES_IGNORE;
  if (count > FEW) {
    many->keys = malloc(sizeof *many->keys * (size_t)count);
    if (!is_given) many->statuses = many->own = malloc(sizeof *many->statuses * (size_t)count);
    if (!many->keys || !many->statuses) try_give_up("no memory");
  }
  many->count = count;
  lock();
  for (int64_t i = 0; i < count; ++i) {
    const bool is_null = requests[i] == MPI_REQUEST_NULL;
    many->keys[i] = is_null ? 0 : KEY(requests[i]);
    const Operation* one = is_null ? NULL : find(KEY(requests[i]));
    many->receives |= one && one->active && one->what == RECEIVES;
  }
  unlock();
  return is_given || try_plan.hash ? many->statuses : MPI_STATUSES_IGNORE;
}

static void free_many(Many* many) {
  if (many->count > FEW) free(many->keys);
  free(many->own);
}

static void over(uint64_t key, int rc, MPI_Status* status) {
  if (!key) return;
  lock();
  Operation* one = find(key);
  Operation copy = {.what = SENDS};
  if (one && one->active) {
    copy = *one;
    one->own_type = one->own_type && one->persistent;
    if (one->persistent) {
      end(one);
    } else {
      forget(one);
    }
  }
  unlock();
  if (copy.what == RECEIVES && rc == MPI_SUCCESS) came(&copy, status);
  if (copy.own_type && !copy.persistent) PMPI_Type_free(&copy.type);
}

/* All are over, or, with an error, those that have no request any more. */
static void after_many(Many* many, int rc, const MPI_Request* requests) {
  for (int64_t i = 0; i < many->count; ++i) {
    if (rc == MPI_SUCCESS || requests[i] == MPI_REQUEST_NULL)
      over(many->keys[i], rc, &many->statuses[i]);
  }
  free_many(many);
}

static void after_one(Many* many, int rc, int index, MPI_Status* status) {
  if (rc == MPI_SUCCESS && index != MPI_UNDEFINED && index >= 0 && index < many->count)
    over(many->keys[index], rc, status);
  free_many(many);
}

static void after_some(Many* many, int rc, int count, const int* indices) {
  for (int i = 0; rc == MPI_SUCCESS && count != MPI_UNDEFINED && i < count; ++i) {
    if (indices[i] < many->count) over(many->keys[indices[i]], rc, &many->statuses[i]);
  }
  free_many(many);
}

/* ---- waits that are put off ---- */

static bool is_over(MPI_Request request) {
  int flag = 0;
  return PMPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag;
}

/* Each of them is an MPI_Isend, and is over or may be put off. */
static bool all_may(int64_t count, const MPI_Request* requests) {
  unsigned sends = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (requests[i] == MPI_REQUEST_NULL) continue;
    lock();
    const Operation* one = find(KEY(requests[i]));
    const bool is_send = one && one->what == SENDS && !one->cancelled;
    const TryRange bytes = is_send ? one->bytes : (TryRange){0, 0};
    unlock();
    ++try_counts.reached;
    ++sends;
    if (!is_send) return refuse(TRY_KIND);
    if (!is_over(requests[i]) && !may_put_off(bytes)) return false;
  }
  return sends > 0;
}

/* Whether that was done instead of the wait. */
static bool puts_off(uintptr_t site, int64_t count, MPI_Request* requests, MPI_Status* statuses,
                     bool has_statuses) {
  if (!is_wanted(site) || !all_may(count, requests)) return false;
  for (int64_t i = 0; i < count; ++i) {
    MPI_Request request = requests[i], none = MPI_REQUEST_NULL;
    if (request != MPI_REQUEST_NULL) {
      lock();
      Operation* one = find(KEY(request)); /* those that are over may have one handle together */
      const Operation copy = one ? *one : (Operation){.what = SENDS};
      if (one) forget(one);
      unlock();
      if (one) {
        requests[i] = MPI_REQUEST_NULL;
        put_off(&request, copy.bytes, &copy.envelope);
      } else if (PMPI_Wait(&requests[i], MPI_STATUS_IGNORE) != MPI_SUCCESS) {
        try_give_up(failed_send);
      }
    }
    if (has_statuses) PMPI_Wait(&none, &statuses[i]); /* an empty one */
  }
  return true;
}

#endif
