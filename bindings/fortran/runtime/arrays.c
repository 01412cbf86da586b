/* arrays: buffers that are array sections with gaps. What goes to or comes from a section in one
   piece is told to MPI by a datatype, counted out exactly to the element; what is in several
   pieces, or belongs to an operation, is copied to contiguous memory, and back when the call or its
   request is done. Datatypes of sections are kept for reuse.

   Thread: any. Owner: what is kept belongs to its thread and ends with MPI_Finalize. Invariant: no
   element outside of the section is read or written. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "arrays.h"
#include "fortran.h"

/* ---- datatypes kept ---- */

enum { KEPT = 8 };
typedef struct Shape { /* of a section, and of what is sent from it */
  MPI_Datatype type;   /* predefined: others may be freed, and their handles given again */
  MPI_Count count;
  size_t item;
  int rank;
  struct {
    intptr_t extent, stride;
  } dimensions[HF_MOST_DIMENSIONS];
} Shape;
typedef struct Kept { /* of a thread */
  struct Kept* next;
  int is_free; /* its thread has ended, and the next one takes it */
  uint64_t uses;
  struct {
    Shape shape;
    MPI_Datatype made; /* MPI_DATATYPE_NULL: none */
    uint64_t used;     /* when last: a call has two buffers, so the last used are not given up */
  } all[KEPT];
} Kept;

static struct {
  pthread_mutex_t lock;
  Kept* threads;
  int state; /* 0: MPI_Finalize does not tell us yet; 1: it does; 2: it is over */
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};
static __thread Kept* mine;
static pthread_key_t key_of_threads;
static pthread_once_t key_is_made = PTHREAD_ONCE_INIT;
static int has_key;

static void give_back(void* of) {
  mine = NULL; /* another destructor of this thread may call us once more */
  pthread_mutex_lock(&kept.lock);
  ((Kept*)of)->is_free = 1;
  pthread_mutex_unlock(&kept.lock);
}
static void make_key(void) { has_key = pthread_key_create(&key_of_threads, give_back) == 0; }

/* What this thread keeps: that of one that has ended, or a new one. Null without memory. */
static Kept* my_own(void) {
  pthread_once(&key_is_made, make_key);
  pthread_mutex_lock(&kept.lock);
  Kept* found = kept.threads;
  while (found && !found->is_free) found = found->next;
  if (found) found->is_free = 0;
  pthread_mutex_unlock(&kept.lock);
  if (!found) {
    found = calloc(1, sizeof *found);
    if (!found) return NULL;
    for (int i = 0; i < KEPT; ++i) found->all[i].made = MPI_DATATYPE_NULL;
    pthread_mutex_lock(&kept.lock);
    found->next = kept.threads;
    kept.threads = found;
    pthread_mutex_unlock(&kept.lock);
  }
  if (has_key) pthread_setspecific(key_of_threads, found);
  return found;
}

/* MPI_COMM_SELF's attributes go before all else in MPI_Finalize. */
static int end_kept(MPI_Comm comm, int keyval, void* value, void* extra_state) {
  (void)comm, (void)keyval, (void)value, (void)extra_state;
  pthread_mutex_lock(&kept.lock);
  __atomic_store_n(&kept.state, 2, __ATOMIC_RELEASE);
  for (Kept* of = kept.threads; of; of = of->next) {
    for (int i = 0; i < KEPT; ++i) {
      if (of->all[i].made != MPI_DATATYPE_NULL) PMPI_Type_free(&of->all[i].made);
    }
  }
  pthread_mutex_unlock(&kept.lock);
  return MPI_SUCCESS;
}

/* Whether what is kept would be ended in time; sessions alone do not tell. */
static int may_keep(void) {
  const int state = __atomic_load_n(&kept.state, __ATOMIC_ACQUIRE);
  if (state != 0) return state == 1;
  int is_up = 0, is_down = 0, keyval = MPI_KEYVAL_INVALID;
  PMPI_Initialized(&is_up);
  PMPI_Finalized(&is_down);
  if (!is_up || is_down) return 0;
  pthread_mutex_lock(&kept.lock);
  if (kept.state == 0 &&
      PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_kept, &keyval, NULL) == MPI_SUCCESS) {
    if (PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, &kept) == MPI_SUCCESS)
      __atomic_store_n(&kept.state, 1, __ATOMIC_RELEASE);
    PMPI_Comm_free_keyval(&keyval); /* lives on with the attribute */
  }
  const int is_told = kept.state == 1;
  pthread_mutex_unlock(&kept.lock);
  return is_told;
}

static void shape_of(Shape* shape, const HfBuffer* buffer, const HfDescriptor* array) {
  shape->type = buffer->type;
  shape->count = buffer->count;
  shape->item = array->item;
  shape->rank = array->rank;
  for (int i = 0; i < array->rank; ++i) {
    shape->dimensions[i].extent = array->dimensions[i].extent;
    shape->dimensions[i].stride = array->dimensions[i].stride;
  }
}

static int is_same(const Shape* one, const Shape* other) {
  return one->type == other->type && one->count == other->count && one->item == other->item &&
         one->rank == other->rank &&
         memcmp(one->dimensions, other->dimensions, (size_t)one->rank * sizeof *one->dimensions) ==
             0;
}

static MPI_Datatype look_up(const Shape* shape) {
  if (!mine || __atomic_load_n(&kept.state, __ATOMIC_ACQUIRE) != 1) return MPI_DATATYPE_NULL;
  for (int i = 0; i < KEPT; ++i) {
    if (mine->all[i].made != MPI_DATATYPE_NULL && is_same(&mine->all[i].shape, shape)) {
      mine->all[i].used = ++mine->uses;
      return mine->all[i].made;
    }
  }
  return MPI_DATATYPE_NULL;
}

/* Whether it is kept, in the place of the one that was used longest ago. */
static int keep(const Shape* shape, MPI_Datatype made) {
  if (!may_keep()) return 0;
  if (!mine) mine = my_own();
  if (!mine) return 0;
  int at = 0;
  for (int i = 1; i < KEPT; ++i) {
    if (mine->all[i].used < mine->all[at].used) at = i;
  }
  if (mine->all[at].made != MPI_DATATYPE_NULL) PMPI_Type_free(&mine->all[at].made);
  mine->all[at].shape = *shape;
  mine->all[at].made = made;
  mine->all[at].used = ++mine->uses;
  return 1;
}

/* ---- datatypes of sections ---- */

static MPI_Count elements_of(const HfDescriptor* array) {
  MPI_Count elements = 1;
  for (int i = 0; i < array->rank; ++i) elements *= array->dimensions[i].extent;
  return elements;
}

/* Datatypes of an element, a column, a plane, ... up to the whole; freed together. */
typedef struct Slabs {
  MPI_Datatype types[HF_MOST_DIMENSIONS + 1];
  int count; /* those that are made */
} Slabs;

static int make_slabs(Slabs* slabs, const HfDescriptor* array, MPI_Datatype type, MPI_Count items) {
  slabs->count = 0;
  int code = PMPI_Type_contiguous_c(items, type, &slabs->types[0]);
  if (code == MPI_SUCCESS) slabs->count = 1;
  for (int i = 0; code == MPI_SUCCESS && i < array->rank; ++i) {
    const HfDimension* dimension = &array->dimensions[i];
    code = PMPI_Type_create_hvector_c(dimension->extent, 1, dimension->stride, slabs->types[i],
                                      &slabs->types[i + 1]);
    if (code == MPI_SUCCESS) ++slabs->count;
  }
  return code;
}

static void free_slabs(Slabs* slabs) {
  while (slabs->count > 0) PMPI_Type_free(&slabs->types[--slabs->count]);
}

/* The first `count` items, `in_element` of which lie in an element: whole planes, then whole
   columns of the next plane, then elements of the next column, then items of the next element. */
static int make_begin(MPI_Datatype* made, const HfDescriptor* array, const Slabs* slabs,
                      MPI_Datatype type, MPI_Count count, MPI_Count in_element) {
  MPI_Count lengths[HF_MOST_DIMENSIONS + 1], places[HF_MOST_DIMENSIONS + 1], at = 0;
  MPI_Datatype types[HF_MOST_DIMENSIONS + 1];
  MPI_Count left = count / in_element, below = elements_of(array);
  int pieces = 0, rows = 0, code = MPI_SUCCESS;
  MPI_Datatype own[HF_MOST_DIMENSIONS];
  for (int i = array->rank - 1; i >= 0; --i) {
    const HfDimension* dimension = &array->dimensions[i];
    below /= dimension->extent;
    const MPI_Count whole = left / below;
    left %= below;
    if (whole == 0) continue;
    code = PMPI_Type_create_hvector_c(whole, 1, dimension->stride, slabs->types[i], &own[rows]);
    if (code != MPI_SUCCESS) break;
    lengths[pieces] = 1;
    places[pieces] = at;
    types[pieces++] = own[rows++];
    at += whole * dimension->stride;
  }
  if (code == MPI_SUCCESS && count % in_element > 0) {
    lengths[pieces] = count % in_element;
    places[pieces] = at;
    types[pieces++] = type;
  }
  if (code == MPI_SUCCESS) code = PMPI_Type_create_struct_c(pieces, lengths, places, types, made);
  while (rows > 0) PMPI_Type_free(&own[--rows]);
  return code;
}

/* How many items of the datatype lie in each element, each wholly; 0 where they do not. */
static int items_of(MPI_Count* items, const HfDescriptor* array, MPI_Datatype type) {
  MPI_Count lb, extent, true_lb, true_extent;
  *items = 0;
  int code = PMPI_Type_get_extent_c(type, &lb, &extent);
  if (code == MPI_SUCCESS) code = PMPI_Type_get_true_extent_c(type, &true_lb, &true_extent);
  if (code != MPI_SUCCESS) return code;
  const MPI_Count element = (MPI_Count)array->item;
  if (extent > 0 && lb == 0 && true_lb >= 0 && true_lb + true_extent <= extent &&
      element % extent == 0)
    *items = element / extent;
  return code;
}

static const char* const too_long =
    "the count goes beyond the end of the array section. Likely remedy: count no more elements "
    "than the section has";

int hf_is_nothing(const HfDescriptor* array) { return !array->base || elements_of(array) == 0; }

static HfMore* more_of(const HfDescriptor* array, unsigned how) {
  HfMore* more = malloc(sizeof *more);
  if (!more) return NULL;
  *more = (HfMore){.type = MPI_DATATYPE_NULL, .how = how};
  memcpy(&more->array, array,
         offsetof(HfDescriptor, dimensions) + (size_t)array->rank * sizeof(HfDimension));
  return more;
}

int hf_gaps(HfBuffer* buffer, const HfDescriptor* array, unsigned how, const char* call,
            HfObject on) {
  if (buffer->count <= 0 || buffer->type == MPI_DATATYPE_NULL) return MPI_SUCCESS; /* C tells */
  if (!array->base) return MPI_SUCCESS;                                            /* it, too */
  Shape shape;
  shape_of(&shape, buffer, array);
  const int is_predefined = (uintptr_t)buffer->type < HF_FIRST_OWN_HANDLE;
  if (is_predefined) {
    const MPI_Datatype found = look_up(&shape);
    if (found != MPI_DATATYPE_NULL) {
      buffer->type = found;
      buffer->count = 1;
      return MPI_SUCCESS;
    }
  }
  MPI_Count items;
  int code = items_of(&items, array, buffer->type);
  if (code != MPI_SUCCESS) return code;
  if (items == 0) {
    if (how & HF_COPIED) return hf_copies(buffer, array, how, call, on);
    return hf_refuse(call, on, MPI_ERR_TYPE,
                     "the datatype is no part of an element of the array section. Likely remedy: "
                     "pass a contiguous array");
  }
  const MPI_Count elements = elements_of(array);
  if ((buffer->count - 1) / items >= elements) return hf_refuse(call, on, MPI_ERR_COUNT, too_long);
  Slabs slabs;
  MPI_Datatype made = MPI_DATATYPE_NULL;
  code = make_slabs(&slabs, array, buffer->type, items);
  if (code == MPI_SUCCESS && buffer->count == elements * items) {
    made = slabs.types[--slabs.count];
  } else if (code == MPI_SUCCESS) {
    code = make_begin(&made, array, &slabs, buffer->type, buffer->count, items);
  }
  free_slabs(&slabs);
  if (code == MPI_SUCCESS) code = PMPI_Type_commit(&made);
  if (code != MPI_SUCCESS) {
    if (made != MPI_DATATYPE_NULL) PMPI_Type_free(&made);
    return code;
  }
  if (!is_predefined || !keep(&shape, made)) {
    buffer->more = more_of(array, how);
    if (!buffer->more) {
      PMPI_Type_free(&made);
      return hf_no_memory(call, on);
    }
    buffer->more->type = made;
  }
  buffer->type = made;
  buffer->count = 1;
  return MPI_SUCCESS;
}

/* ---- copies ---- */

/* The body for each element of a section, in array order, with its place. None is empty. */
#define FOR_EACH_ELEMENT(array, place, body)                \
  do {                                                      \
    MPI_Count index_[HF_MOST_DIMENSIONS] = {0};             \
    char* place = (array)->base;                            \
    for (int at_ = 0; at_ < (array)->rank;) {               \
      body;                                                 \
      for (at_ = 0; at_ < (array)->rank; ++at_) {           \
        const HfDimension* of_ = &(array)->dimensions[at_]; \
        place += of_->stride;                               \
        if (++index_[at_] < of_->extent) break;             \
        place -= index_[at_] * of_->stride;                 \
        index_[at_] = 0;                                    \
      }                                                     \
    }                                                       \
  } while (0)

static void copy_in(HfMore* more) {
  const size_t item = more->array.item;
  char* to = more->copy;
  FOR_EACH_ELEMENT(&more->array, from, {
    memcpy(to, from, item);
    to += item;
  });
  if (more->as_it_was) memcpy(more->as_it_was, more->copy, more->bytes);
}

/* Only what has changed: the program may write to the rest while a request is under way. */
static void copy_out(HfMore* more) {
  const size_t item = more->array.item;
  const char* from = more->copy;
  const char* was = more->as_it_was;
  FOR_EACH_ELEMENT(&more->array, to, {
    if (!was || memcmp(from, was, item) != 0) memcpy(to, from, item);
    from += item;
    if (was) was += item;
  });
}

/* Whether all that the datatype tells lies in the section, as if it were contiguous. */
static int fits(const HfBuffer* buffer, MPI_Count bytes, const char* call, HfObject on) {
  MPI_Count lb, extent, true_lb, true_extent;
  int code = PMPI_Type_get_extent_c(buffer->type, &lb, &extent);
  if (code == MPI_SUCCESS) code = PMPI_Type_get_true_extent_c(buffer->type, &true_lb, &true_extent);
  if (code != MPI_SUCCESS) return code;
  const MPI_Count end = true_lb + true_extent;
  if (buffer->count <= 0) return MPI_SUCCESS; /* C tells */
  const int is_outside = true_lb < 0 || extent < 0 || end > bytes ||
                         (extent > 0 && buffer->count - 1 > (bytes - end) / extent);
  return is_outside ? hf_refuse(call, on, MPI_ERR_COUNT, too_long) : MPI_SUCCESS;
}

int hf_copies(HfBuffer* buffer, const HfDescriptor* array, unsigned how, const char* call,
              HfObject on) {
  if (hf_is_nothing(array)) return MPI_SUCCESS;
  HfMore* more = more_of(array, how);
  if (!more) return hf_no_memory(call, on);
  more->bytes = (size_t)elements_of(array) * array->item;
  if (!(how & HF_SPREAD) || how & HF_OPERAND) {
    const int code = fits(buffer, (MPI_Count)more->bytes, call, on);
    if (code != MPI_SUCCESS) {
      free(more);
      return code;
    }
  }
  more->pending = hf_new_pending();
  more->copy = more->pending ? malloc(more->bytes) : NULL;
  if (more->copy && how & HF_OUT) more->as_it_was = malloc(more->bytes);
  if (!more->copy || (how & HF_OUT && !more->as_it_was)) {
    hf_free_more(more);
    return hf_no_memory(call, on);
  }
  copy_in(more);
  buffer->address = more->copy;
  buffer->more = more;
  return MPI_SUCCESS;
}

void hf_more_starts(HfMore* more) {
  if (more->copy) copy_in(more);
}

void hf_more_is_done(HfMore* more) {
  if (more->copy && more->how & HF_OUT) copy_out(more);
}

void hf_free_more(HfMore* more) {
  if (more->type != MPI_DATATYPE_NULL) PMPI_Type_free(&more->type);
  free(more->pending);
  free(more->as_it_was);
  free(more->copy);
  free(more);
}

void hf_end_more(HfMore* more) {
  hf_more_is_done(more);
  hf_free_more(more);
}
