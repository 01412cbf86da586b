/* fortran: what the entries of Fortran's interfaces share: handles as integers, places that stand
   for constants, logicals, texts, arrays with gaps, and names in all spellings of compilers.

   An entry is compiled twice: as mpi_send_, which calls MPI_Send, so that a tool written in C sees
   the call once; and with HF_PROFILED as pmpi_send_, which calls PMPI_Send. All else is compiled
   once. Built on the public ABI alone, so it runs on every library of it.

   Thread: any. Owner: libmpifort_abi. Invariants: a Fortran INTEGER is an int, as the ABI's
   MPI_F_STATUS_SIZE says; a Fortran status is the C status, and is never copied. */
#ifndef HEADWAY_FORTRAN_H
#define HEADWAY_FORTRAN_H
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#define HF_API __attribute__((visibility("default")))
#define HF_LIKELY(condition) __builtin_expect(!!(condition), 1)

/* ---- names ---- */

#define HF_TEXT_(text) #text
#define HF_TEXT(text) HF_TEXT_(text)
#define HF_ALIAS(name, target) \
  HF_API extern __typeof__(target) name __attribute__((alias(HF_TEXT(target))))

#ifdef HF_PROFILED
#define C(name) PMPI_##name
#define HF_LOWER(name, end) pmpi_##name##end
#define HF_UPPER(NAME, END) PMPI_##NAME##END
#else
#define C(name) MPI_##name
#define HF_LOWER(name, end) mpi_##name##end
#define HF_UPPER(NAME, END) MPI_##NAME##END
#endif

/* As gfortran, flang and ifx write a name; as others do, or these with an option; as g77 did. */
#define HF_SPELLINGS(name, NAME, end, END)                   \
  HF_ALIAS(HF_LOWER(name, end), HF_LOWER(name, end##_));     \
  HF_ALIAS(HF_LOWER(name, end##__), HF_LOWER(name, end##_)); \
  HF_ALIAS(HF_UPPER(NAME, END), HF_LOWER(name, end##_))
/* For both old forms. */
#define HF_ENTRY_OLD(returns, name, NAME, parameters) \
  HF_API returns HF_LOWER(name, _) parameters;        \
  HF_SPELLINGS(name, NAME, , );                       \
  returns HF_LOWER(name, _) parameters
/* For mpi_f08, where its procedure differs from the old one. */
#define HF_ENTRY_F08(returns, name, NAME, parameters) \
  HF_API returns HF_LOWER(name, _f08_) parameters;    \
  HF_SPELLINGS(name, NAME, _f08, _F08);               \
  returns HF_LOWER(name, _f08_) parameters
/* For all forms: a handle of mpi_f08 is an INTEGER in a type, and an argument that is absent a null
   pointer. */
#define HF_ENTRY(returns, name, NAME, parameters)      \
  HF_API returns HF_LOWER(name, _) parameters;         \
  HF_SPELLINGS(name, NAME, , );                        \
  HF_ALIAS(HF_LOWER(name, _f08_), HF_LOWER(name, _));  \
  HF_ALIAS(HF_LOWER(name, _f08), HF_LOWER(name, _));   \
  HF_ALIAS(HF_LOWER(name, _f08__), HF_LOWER(name, _)); \
  HF_ALIAS(HF_UPPER(NAME, _F08), HF_LOWER(name, _));   \
  returns HF_LOWER(name, _) parameters
/* With descriptors of buffers; the interface in mpi_f08 has BIND(C), and so one spelling. */
#define HF_ENTRY_F08TS(name, parameters)          \
  HF_API void HF_LOWER(name, _f08ts_) parameters; \
  void HF_LOWER(name, _f08ts_) parameters

/* ---- handles ---- */

/* The ABI's constants have 10 bits, and are the same numbers as handles and as integers. */
enum { HF_FIRST_OWN_HANDLE = 1024 };
#define HF_HANDLE(short_name, type)                                                            \
  static inline type hf_from_##short_name(MPI_Fint number) {                                   \
    if (HF_LIKELY(number >= 0 && number < HF_FIRST_OWN_HANDLE)) return (type)(intptr_t)number; \
    return PMPI_##short_name##_fromint(number);                                                \
  }                                                                                            \
  static inline MPI_Fint hf_to_##short_name(type handle) {                                     \
    if ((uintptr_t)handle < HF_FIRST_OWN_HANDLE) return (MPI_Fint)(intptr_t)handle;            \
    return PMPI_##short_name##_toint(handle);                                                  \
  }
HF_HANDLE(Comm, MPI_Comm)
HF_HANDLE(Errhandler, MPI_Errhandler)
HF_HANDLE(File, MPI_File)
HF_HANDLE(Group, MPI_Group)
HF_HANDLE(Info, MPI_Info)
HF_HANDLE(Message, MPI_Message)
HF_HANDLE(Op, MPI_Op)
HF_HANDLE(Request, MPI_Request)
HF_HANDLE(Session, MPI_Session)
HF_HANDLE(Type, MPI_Datatype)
HF_HANDLE(Win, MPI_Win)
#undef HF_HANDLE

/* ---- the program's own place ---- */

/* Where in the program this thread's call stands. Headway learns from the places of calls, and
   would see one place of this library for all calls of a function; it asks for this one (start.c).
 */
extern __thread uintptr_t hf_site __attribute__((tls_model("initial-exec")));
#define HF_NOTE_SITE() (hf_site = (uintptr_t)__builtin_return_address(0))

/* What comes behind MPI_Init (start.c). */
void hf_initialized(int code);

/* ---- places that stand for constants ---- */

/* Two common blocks, known by their addresses; the program's own definitions take the place of the
   library's. Of the numbers, in order: */
enum {
  HF_BOTTOM,
  HF_IN_PLACE,
  HF_BUFFER_AUTOMATIC,
  HF_ERRCODES_IGNORE,
  HF_UNWEIGHTED,
  HF_WEIGHTS_EMPTY,
  HF_STATUS_IGNORE,
  HF_STATUSES_IGNORE = HF_STATUS_IGNORE + MPI_F_STATUS_SIZE,
  HF_PLACES = HF_STATUSES_IGNORE + MPI_F_STATUS_SIZE,
  HF_SPELLED = 4, /* spellings of a name */
};
/* Of the texts: */
enum { HF_ARGV_NULL, HF_ARGVS_NULL, HF_TEXTS };
extern int* const hf_places[HF_SPELLED];
extern char* const hf_texts[HF_SPELLED];

/* Which place it is, or -1. */
static inline int hf_which(const void* address) {
  for (int i = 0; i < HF_SPELLED; ++i) {
    const uintptr_t at = (uintptr_t)address - (uintptr_t)hf_places[i];
    if (at < HF_PLACES * sizeof(int)) return (int)(at / sizeof(int));
  }
  return -1;
}
static inline int hf_which_text(const void* address) {
  for (int i = 0; i < HF_SPELLED; ++i) {
    const uintptr_t at = (uintptr_t)address - (uintptr_t)hf_texts[i];
    if (at < HF_TEXTS) return (int)at;
  }
  return -1;
}

/* The variable of the program's, in its compiler's spelling, that stands for a constant. */
void* hf_program_place(int which);

/* A buffer as C has it. */
static inline void* hf_place(const void* address) {
  const int which = hf_which(address);
  if (HF_LIKELY(which < 0)) return (void*)(uintptr_t)address;
  switch (which) {
    case HF_BOTTOM: return MPI_BOTTOM;
    case HF_IN_PLACE: return MPI_IN_PLACE;
    case HF_BUFFER_AUTOMATIC: return MPI_BUFFER_AUTOMATIC;
    default: return (void*)(uintptr_t)address;
  }
}
static inline MPI_Status* hf_status(const MPI_Fint* status) {
  const int which = hf_which(status);
  if (which >= HF_STATUS_IGNORE) return MPI_STATUS_IGNORE;
  return (MPI_Status*)(uintptr_t)status;
}
static inline int* hf_weights(const int* weights) {
  const int which = hf_which(weights);
  if (which == HF_UNWEIGHTED) return MPI_UNWEIGHTED;
  if (which == HF_WEIGHTS_EMPTY) return MPI_WEIGHTS_EMPTY;
  return (int*)(uintptr_t)weights;
}
static inline int* hf_errcodes(int* codes) {
  return hf_which(codes) == HF_ERRCODES_IGNORE ? MPI_ERRCODES_IGNORE : codes;
}

/* ---- small values ---- */

/* .TRUE. and .FALSE. as the program's compiler has them; modules/logicals.f90 replaces it where
   they are others than these, 1 and 0. */
HF_API extern int headway_fortran_logical[2];

static inline int hf_is_true(MPI_Fint logical) { return logical != headway_fortran_logical[1]; }
static inline MPI_Fint hf_logical(int is_true) { return headway_fortran_logical[!is_true]; }
/* What a function of C left in a list of logicals. */
static inline void hf_logicals(MPI_Fint* list, int count) {
  for (int i = 0; i < count; ++i) list[i] = hf_logical(list[i] != 0);
}
static inline void hf_give(int* ierror, int code) {
  if (ierror) *ierror = code;
}

/* ---- texts ---- */

typedef struct HfText {
  char* text; /* ends with NUL */
  char few[256];
} HfText;
/* Without the blanks at its end, with `both` without those at its begin as well. False without
   memory. */
int hf_text(HfText* text, const char* from, size_t length, int both);
void hf_text_end(HfText* text);
/* Cut, or filled up with blanks. */
void hf_put_text(char* to, size_t length, const char* text);
/* `count` texts, or as many as stand before a blank one if it is negative; they end with a null
   pointer. One block, to be freed. Null without memory. `step` is the way from one to the next. */
char** hf_texts_of(const char* from, size_t length, int count, size_t step);

/* ---- errors found here ---- */

/* Whose handler hears of an error: a communicator, file, session or window. */
typedef struct HfObject {
  enum { HF_OF_COMM, HF_OF_FILE, HF_OF_SESSION, HF_OF_WIN } kind;
  MPI_Fint number;
} HfObject;
#define HF_COMM(of) ((HfObject){HF_OF_COMM, of})
#define HF_FILE(of) ((HfObject){HF_OF_FILE, of})
#define HF_SESSION(of) ((HfObject){HF_OF_SESSION, of})
#define HF_WIN(of) ((HfObject){HF_OF_WIN, of})
/* MPI_COMM_SELF, where the call has no object. */
#define HF_SELF HF_COMM(0x102)
/* Meets the handler of that object, as an error of the call. Returns the code. */
__attribute__((cold)) int hf_refuse(const char* call, HfObject on, int error_class,
                                    const char* what);
int hf_no_memory(const char* call, HfObject on);

/* ---- lists of handles ---- */

enum { HF_FEW = 64, HF_LISTS = 2 };
typedef struct HfLists {
  void* lists[HF_LISTS];
  int count;
  struct HfPending* pending; /* memory for their request's, so that none is missing later */
} HfLists;
/* Datatypes for C, which live until hf_end_lists() or, handed to hf_attach(), until the request is
   done. Null without memory. */
MPI_Datatype* hf_types(HfLists* lists, const MPI_Fint* from, MPI_Count count);
void hf_end_lists(HfLists* lists);
/* How many datatypes belong to a collective call: of the group, or of the topology's sources or
   destinations. */
enum { HF_GROUP, HF_SOURCES, HF_DESTINATIONS };
int hf_members(MPI_Comm comm, int whose);

/* ---- arrays ---- */

/* The part of a C descriptor (ISO_Fortran_binding.h) that gfortran and flang have alike; mpifort
   checks it with each compiler before it keeps modules. */
enum { HF_MOST_DIMENSIONS = 15 };
typedef struct HfDimension {
  intptr_t lower;
  intptr_t extent; /* -1 in the last dimension of an assumed-size array */
  intptr_t stride; /* in bytes */
} HfDimension;
typedef struct HfDescriptor {
  void* base;
  size_t item; /* bytes of an element */
  int version;
  signed char rank;
  unsigned char rest[3];
  HfDimension dimensions[HF_MOST_DIMENSIONS];
} HfDescriptor;

enum {                  /* what a call does with a buffer */
       HF_IN = 1,       /* it is sent from */
       HF_OUT = 2,      /* it is written to */
       HF_COPIED = 4,   /* may be copied: somebody is there when the call is done */
       HF_SPREAD = 8,   /* in pieces, or an operation's: no other datatype will do */
       HF_OPERAND = 16, /* an operation's, told by a count and a datatype */
};
typedef struct HfMore HfMore; /* of an array with gaps */
typedef struct HfBuffer {
  void* address;
  MPI_Count count;
  MPI_Datatype type;
  HfMore* more;
} HfBuffer;

static inline int hf_is_contiguous(const HfDescriptor* array) {
  intptr_t next = (intptr_t)array->item;
  for (int i = 0; i < array->rank; ++i) {
    const HfDimension* dimension = &array->dimensions[i];
    if (dimension->extent == 0) return 1;
    if (dimension->extent != 1 && dimension->stride != next) return 0;
    next *= dimension->extent;
  }
  return 1;
}

/* Without elements, or without memory, as an array that is not allocated: C is handed what is
   there. Extents of the latter may mean nothing. */
__attribute__((cold)) int hf_is_nothing(const HfDescriptor* array);
/* Out of line, for arrays with gaps. */
__attribute__((cold)) int hf_gaps(HfBuffer* buffer, const HfDescriptor* array, unsigned how,
                                  const char* call, HfObject on);
__attribute__((cold)) int hf_copies(HfBuffer* buffer, const HfDescriptor* array, unsigned how,
                                    const char* call, HfObject on);
__attribute__((cold)) void hf_end_more(HfMore* more);

/* `count` items of `type` in array order. */
static inline int hf_section(HfBuffer* buffer, const HfDescriptor* array, MPI_Count count,
                             MPI_Datatype type, unsigned how, const char* call, HfObject on) {
  buffer->address = hf_place(array->base);
  buffer->count = count;
  buffer->type = type;
  buffer->more = NULL;
  if (HF_LIKELY(hf_is_contiguous(array)) || buffer->address != array->base) return MPI_SUCCESS;
  return hf_gaps(buffer, array, how, call, on);
}
/* An operand of an operation: `count` items of `type`, which no other datatype may replace. */
static inline int hf_operand(HfBuffer* buffer, const HfDescriptor* array, MPI_Count count,
                             MPI_Datatype type, unsigned how, const char* call, HfObject on) {
  buffer->address = hf_place(array->base);
  buffer->count = count;
  buffer->type = type;
  buffer->more = NULL;
  if (HF_LIKELY(hf_is_contiguous(array)) || buffer->address != array->base) return MPI_SUCCESS;
  return hf_copies(buffer, array, how | HF_SPREAD | HF_OPERAND, call, on);
}
/* What no single datatype tells. */
static inline int hf_spread(HfBuffer* buffer, const HfDescriptor* array, unsigned how,
                            const char* call, HfObject on) {
  buffer->address = hf_place(array->base);
  buffer->more = NULL;
  if (HF_LIKELY(hf_is_contiguous(array)) || buffer->address != array->base) return MPI_SUCCESS;
  return hf_copies(buffer, array, how, call, on);
}
/* What cannot have gaps. */
static inline int hf_whole(HfBuffer* buffer, const HfDescriptor* array, const char* call,
                           HfObject on) {
  buffer->address = hf_place(array->base);
  buffer->more = NULL;
  if (HF_LIKELY(hf_is_contiguous(array)) || buffer->address != array->base) return MPI_SUCCESS;
  if (hf_is_nothing(array)) return MPI_SUCCESS;
  return hf_refuse(call, on, MPI_ERR_BUFFER,
                   "the buffer is an array section with gaps, which this call cannot take. Likely "
                   "remedy: pass a contiguous array");
}
/* When the call is done. */
static inline void hf_close(HfBuffer* buffer) {
  if (buffer->more) hf_end_more(buffer->more);
}

/* ---- requests with something to do when they are done ---- */

enum { HF_ONCE, HF_EACH_START }; /* EACH_START: of a persistent request */
/* Takes over what the buffers and the lists have; frees it at once if `code` is an error. */
void hf_attach(MPI_Request request, int code, int persistent, HfBuffer* const* buffers, int count,
               HfLists* lists);
extern int hf_attached; /* how many requests have something; read without a lock */
static inline int hf_any_attached(void) { return __atomic_load_n(&hf_attached, __ATOMIC_RELAXED); }
/* What the request has, or null, before a call that may complete it; and behind the call. */
typedef struct HfPending HfPending;
__attribute__((cold)) HfPending* hf_hold_slowly(MPI_Request request);
__attribute__((cold)) void hf_settle_slowly(HfPending* pending, int is_done);
__attribute__((cold)) void hf_done_slowly(MPI_Request request);
__attribute__((cold)) void hf_start_slowly(MPI_Request request);
__attribute__((cold)) void hf_forget_slowly(MPI_Request request);
/* What MPI_Request_free is to do with a request: free it; nothing, since it is kept until it is
   complete; or refuse, since nobody would know when its data have come. */
enum { HF_MAY_BE_FREED, HF_IS_KEPT, HF_CANNOT_BE_FREED };
__attribute__((cold)) int hf_free_slowly(MPI_Request request);
static inline HfPending* hf_hold(MPI_Request request) {
  return hf_any_attached() ? hf_hold_slowly(request) : NULL;
}
static inline void hf_settle(HfPending* pending, int is_done) {
  if (pending) hf_settle_slowly(pending, is_done);
}
/* A request is new: what one before it had, that had the same handle, is nobody's. */
static inline void hf_new(MPI_Request request, int code) {
  if (hf_any_attached() && code == MPI_SUCCESS) hf_forget_slowly(request);
}
/* The operation of the request is complete, and it stays a request. */
static inline void hf_done(MPI_Request request) {
  if (hf_any_attached()) hf_done_slowly(request);
}
static inline void hf_start(MPI_Request request) {
  if (hf_any_attached()) hf_start_slowly(request);
}
static inline int hf_free(MPI_Request request) {
  return hf_any_attached() ? hf_free_slowly(request) : HF_MAY_BE_FREED;
}

#endif /* HEADWAY_FORTRAN_H */
