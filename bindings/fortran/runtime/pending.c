/* pending: requests that have something to be done when they are complete: elements to be copied
   back, lists to be freed. They are known by their handles, in a table that is empty in most
   programs, and then costs one load a call. While it is not, Headway's library of C tells of each
   request that is completed, also by a call from C. A request that is freed under way stays a
   request of ours until it is complete.

   Thread: any. Owner: the library. Invariant: a request is in the table once, and is not in the
   list of freed ones; while a call of Fortran's may complete it, it is that call's alone, since
   its handle may be given to another request before the call is back. With a library of another
   MPI a request that is completed from C is not seen; its entry goes when its handle is given
   again. */
#include <pthread.h>
#include <stdlib.h>

#include "arrays.h"
#include "fortran.h"

enum { CHAINS = 64, BUFFERS = 2 };
typedef struct HfPending {
  struct HfPending* next;
  MPI_Request request;
  int is_persistent;
  int is_under_way;
  HfMore* more[BUFFERS];
  HfLists lists;
} HfPending;

int hf_attached;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static HfPending* chains[CHAINS];
static HfPending* freed; /* by the program, while they were under way */
static void end_freed(int all);

/* Of Headway's library of C (src/api/request_ends.h); another has no such function. */
extern void headway_tell_ends(void (*ended)(MPI_Request)) __attribute__((weak));

/* How many have something has changed by `change`; with the lock. */
static void change_count(int change) {
  const int now = __atomic_add_fetch(&hf_attached, change, __ATOMIC_RELAXED);
  if (headway_tell_ends && (now == 0 || (change > 0 && now == change)))
    headway_tell_ends(now > 0 ? hf_done_slowly : NULL);
}

static HfPending** chain_of(MPI_Request request) {
  const uint64_t mixed = (uint64_t)(uintptr_t)request * 0x9e3779b97f4a7c15u;
  return &chains[mixed >> 58];
}

/* Where in the table it is, or would be linked; with the lock. */
static HfPending** find(MPI_Request request) {
  HfPending** at = chain_of(request);
  while (*at && (*at)->request != request) at = &(*at)->next;
  return at;
}

/* Out of the table, or null; with the lock. */
static HfPending* take(MPI_Request request) {
  HfPending** at = find(request);
  HfPending* found = *at;
  if (!found) return NULL;
  *at = found->next;
  change_count(-1);
  return found;
}

static void put(HfPending* pending) {
  HfPending** chain = chain_of(pending->request);
  pending->next = *chain;
  *chain = pending;
  change_count(+1);
}

static void end(HfPending* pending) {
  for (int i = 0; i < BUFFERS; ++i) {
    if (pending->more[i]) hf_free_more(pending->more[i]);
  }
  hf_end_lists(&pending->lists);
  free(pending);
}

HfPending* hf_new_pending(void) { return calloc(1, sizeof(HfPending)); }

/* The memory that was kept for it. */
static HfPending* pending_of(HfBuffer* const* buffers, int count, HfLists* lists) {
  HfPending** from = lists && lists->pending ? &lists->pending : NULL;
  for (int i = 0; !from && i < count; ++i) {
    if (buffers[i]->more && buffers[i]->more->pending) from = &buffers[i]->more->pending;
  }
  HfPending* pending = from ? *from : NULL;
  if (from) *from = NULL;
  return pending;
}

/* Whether the request is complete already. It may then have a handle that others have, too: MPICH
   gives the same one to all of them. */
static int is_done_already(MPI_Request request, int is_persistent) {
  int is_done = request == MPI_REQUEST_NULL;
  if (!is_done && !is_persistent) PMPI_Request_get_status(request, &is_done, MPI_STATUS_IGNORE);
  return is_done;
}

void hf_attach(MPI_Request request, int code, int persistent, HfBuffer* const* buffers, int count,
               HfLists* lists) {
  int needed = lists && lists->count > 0;
  for (int i = 0; i < count; ++i) {
    HfMore* more = buffers[i]->more;
    if (!more) continue;
    /* MPI keeps a datatype as long as it needs it. */
    if (more->type != MPI_DATATYPE_NULL) PMPI_Type_free(&more->type);
    if (more->copy) needed = 1;
  }
  if (code != MPI_SUCCESS || !needed || is_done_already(request, persistent)) {
    for (int i = 0; i < count; ++i) {
      if (buffers[i]->more && code == MPI_SUCCESS) hf_more_is_done(buffers[i]->more);
      if (buffers[i]->more) hf_free_more(buffers[i]->more);
    }
    if (lists) hf_end_lists(lists);
    hf_new(request, code);
    return;
  }
  HfPending* pending = pending_of(buffers, count, lists);
  pending->request = request;
  pending->is_persistent = persistent;
  pending->is_under_way = !persistent;
  for (int i = 0; i < count && i < BUFFERS; ++i) {
    HfMore* more = buffers[i]->more;
    if (more && !more->copy)
      hf_free_more(more);
    else
      pending->more[i] = more;
  }
  if (lists) pending->lists = *lists;
  pthread_mutex_lock(&lock);
  HfPending* stale = take(request);
  put(pending);
  pthread_mutex_unlock(&lock);
  if (stale) end(stale);
  if (__atomic_load_n(&freed, __ATOMIC_RELAXED)) end_freed(0);
}

/* ---- their completion ---- */

HfPending* hf_hold_slowly(MPI_Request request) {
  pthread_mutex_lock(&lock);
  HfPending* found = *find(request);
  if (found && !found->is_persistent) take(request);
  pthread_mutex_unlock(&lock);
  return found;
}

void hf_settle_slowly(HfPending* pending, int is_done) {
  if (is_done && pending->is_under_way) {
    pending->is_under_way = 0;
    for (int i = 0; i < BUFFERS; ++i) {
      if (pending->more[i]) hf_more_is_done(pending->more[i]);
    }
  }
  if (pending->is_persistent) return;
  if (is_done) {
    end(pending);
    return;
  }
  pthread_mutex_lock(&lock);
  put(pending);
  pthread_mutex_unlock(&lock);
}

void hf_done_slowly(MPI_Request request) {
  HfPending* found = hf_hold_slowly(request);
  if (found) hf_settle_slowly(found, 1);
}

void hf_forget_slowly(MPI_Request request) {
  pthread_mutex_lock(&lock);
  HfPending* stale = take(request);
  pthread_mutex_unlock(&lock);
  if (stale) end(stale);
}

void hf_start_slowly(MPI_Request request) {
  HfPending* found = hf_hold_slowly(request);
  if (!found) return;
  found->is_under_way = 1;
  for (int i = 0; i < BUFFERS; ++i) {
    if (found->more[i]) hf_more_starts(found->more[i]);
  }
}

/* ---- requests that are freed ---- */

/* The lock is held; whether there are any is looked at without it. */
static void set_freed(HfPending* first) { __atomic_store_n(&freed, first, __ATOMIC_RELAXED); }

/* Ends those of the freed ones that are complete; or, waiting for them, all. */
static void end_freed(int all) {
  pthread_mutex_lock(&lock);
  HfPending* left = freed;
  set_freed(NULL);
  pthread_mutex_unlock(&lock);
  while (left) {
    HfPending* pending = left;
    left = pending->next;
    int is_done = 1;
    if (all)
      PMPI_Wait(&pending->request, MPI_STATUS_IGNORE);
    else
      PMPI_Test(&pending->request, &is_done, MPI_STATUS_IGNORE);
    if (is_done) {
      if (pending->request != MPI_REQUEST_NULL) PMPI_Request_free(&pending->request);
      end(pending);
    }
    pthread_mutex_lock(&lock);
    if (is_done) {
      change_count(-1);
    } else {
      pending->next = freed;
      set_freed(pending);
    }
    pthread_mutex_unlock(&lock);
  }
}

/* MPI_COMM_SELF's attributes go before all else in MPI_Finalize. */
static int at_the_end(MPI_Comm comm, int keyval, void* value, void* extra_state) {
  (void)comm, (void)keyval, (void)value, (void)extra_state;
  end_freed(1);
  return MPI_SUCCESS;
}

static void be_told_of_the_end(void) {
  static int is_told;
  int keyval = MPI_KEYVAL_INVALID, is_up = 0, is_down = 0;
  PMPI_Initialized(&is_up);
  PMPI_Finalized(&is_down);
  if (!is_up || is_down) return; /* of sessions alone: there is no MPI_COMM_SELF */
  if (__atomic_exchange_n(&is_told, 1, __ATOMIC_RELAXED)) return;
  if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_the_end, &keyval, NULL) != MPI_SUCCESS)
    return;
  PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
  PMPI_Comm_free_keyval(&keyval); /* lives on with the attribute */
}

int hf_free_slowly(MPI_Request request) {
  end_freed(0);
  pthread_mutex_lock(&lock);
  HfPending* found = *find(request);
  int comes_in = 0;
  for (int i = 0; found && i < BUFFERS; ++i)
    comes_in |= found->is_under_way && found->more[i] && found->more[i]->how & HF_OUT;
  const int stays = found && found->is_under_way && !comes_in;
  if (found && !comes_in) take(request);
  if (stays) {
    found->next = freed;
    set_freed(found);
    change_count(+1);
  }
  pthread_mutex_unlock(&lock);
  if (comes_in) return HF_CANNOT_BE_FREED;
  if (stays)
    be_told_of_the_end();
  else if (found)
    end(found);
  return stays ? HF_IS_KEPT : HF_MAY_BE_FREED;
}
