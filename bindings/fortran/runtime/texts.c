/* texts: Fortran's texts as C has them and back, lists of datatypes, and errors found here.
   Thread: any. Owner: the caller. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrays.h"
#include "fortran.h"

/* ---- texts ---- */

static size_t without_blanks(const char* text, size_t length) {
  while (length > 0 && text[length - 1] == ' ') --length;
  return length;
}

int hf_text(HfText* text, const char* from, size_t length, int both) {
  length = without_blanks(from, length);
  while (both && length > 0 && *from == ' ') ++from, --length;
  text->text = length < sizeof text->few ? text->few : malloc(length + 1);
  if (!text->text) return 0;
  memcpy(text->text, from, length);
  text->text[length] = '\0';
  return 1;
}

void hf_text_end(HfText* text) {
  if (text->text != text->few) free(text->text);
}

void hf_put_text(char* to, size_t length, const char* text) {
  const size_t has = strlen(text), copied = has < length ? has : length;
  memcpy(to, text, copied);
  memset(to + copied, ' ', length - copied);
}

char** hf_texts_of(const char* from, size_t length, int count, size_t step) {
  size_t texts = 0;
  while (count < 0 ? without_blanks(from + texts * step, length) > 0 : texts < (size_t)count)
    ++texts;
  char** list = malloc((texts + 1) * sizeof *list + texts * (length + 1));
  if (!list) return NULL;
  char* to = (char*)(list + texts + 1);
  for (size_t i = 0; i < texts; ++i, to += length + 1) {
    const size_t has = without_blanks(from + i * step, length);
    memcpy(to, from + i * step, has);
    to[has] = '\0';
    list[i] = to;
  }
  list[texts] = NULL;
  return list;
}

/* ---- errors ---- */

enum { MOST_ERRORS = 64 };
static struct {
  pthread_mutex_t lock;
  int count;
  struct {
    const char *call, *what; /* texts of this library */
    int error_class, code;
  } known[MOST_ERRORS];
} errors = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A code of the class whose text names the call, so that whoever asks MPI_Error_string, or the
   handler that ends the job, says it. */
static int code_of(const char* call, int error_class, const char* what) {
  int code = error_class;
  pthread_mutex_lock(&errors.lock);
  for (int i = 0; i < errors.count; ++i) {
    if (strcmp(errors.known[i].call, call) == 0 && errors.known[i].what == what)
      code = errors.known[i].code;
  }
  if (code == error_class && errors.count < MOST_ERRORS) {
    char text[MPI_MAX_ERROR_STRING];
    snprintf(text, sizeof text, "%s (Fortran): %s", call, what);
    if (PMPI_Add_error_code(error_class, &code) == MPI_SUCCESS &&
        PMPI_Add_error_string(code, text) == MPI_SUCCESS) {
      errors.known[errors.count].call = call;
      errors.known[errors.count].what = what;
      errors.known[errors.count].error_class = error_class;
      errors.known[errors.count].code = code;
      ++errors.count;
    } else {
      code = error_class;
    }
  }
  pthread_mutex_unlock(&errors.lock);
  return code;
}

int hf_refuse(const char* call, HfObject on, int error_class, const char* what) {
  const int code = code_of(call, error_class, what);
  int is_up = 0, is_down = 0;
  PMPI_Initialized(&is_up);
  PMPI_Finalized(&is_down);
  /* In a program of sessions alone only what it has made has a handler. */
  const int has_handler = (is_up && !is_down) || on.number >= HF_FIRST_OWN_HANDLE;
  if (has_handler && on.kind == HF_OF_COMM) {
    PMPI_Comm_call_errhandler(hf_from_Comm(on.number), code);
  } else if (has_handler && on.kind == HF_OF_FILE) {
    PMPI_File_call_errhandler(hf_from_File(on.number), code);
  } else if (has_handler && on.kind == HF_OF_SESSION) {
    PMPI_Session_call_errhandler(hf_from_Session(on.number), code);
  } else if (has_handler) {
    PMPI_Win_call_errhandler(hf_from_Win(on.number), code);
  } else {
    fprintf(stderr, "headway: %s (Fortran): %s\n", call, what);
  }
  return code;
}

int hf_no_memory(const char* call, HfObject on) {
  return hf_refuse(call, on, MPI_ERR_NO_MEM, "there is no memory left for the call's arguments");
}

/* ---- lists of handles ---- */

MPI_Datatype* hf_types(HfLists* lists, const MPI_Fint* from, MPI_Count count) {
  const size_t length = count > 0 ? (size_t)count : 0;
  if (!lists->pending) lists->pending = hf_new_pending();
  MPI_Datatype* list = lists->pending ? malloc((length + 1) * sizeof *list) : NULL;
  if (!list) return NULL;
  for (size_t i = 0; i < length; ++i) list[i] = hf_from_Type(from[i]);
  list[length] = MPI_DATATYPE_NULL;
  lists->lists[lists->count++] = list;
  return list;
}

void hf_end_lists(HfLists* lists) {
  while (lists->count > 0) free(lists->lists[--lists->count]);
  free(lists->pending);
  lists->pending = NULL;
}

/* Errors of these calls are those of the call that asks: it has the same communicator. */
int hf_members(MPI_Comm comm, int whose) {
  int count = 0, other = 0, flag = 0, kind = MPI_UNDEFINED, rank = 0;
  if (comm == MPI_COMM_NULL) return 0;
  if (whose == HF_GROUP) {
    if (PMPI_Comm_test_inter(comm, &flag) != MPI_SUCCESS) return 0;
    if (flag)
      PMPI_Comm_remote_size(comm, &count);
    else
      PMPI_Comm_size(comm, &count);
    return count;
  }
  if (PMPI_Topo_test(comm, &kind) != MPI_SUCCESS) return 0;
  if (kind == MPI_CART) {
    PMPI_Cartdim_get(comm, &count);
    return 2 * count;
  }
  if (kind == MPI_GRAPH) {
    PMPI_Comm_rank(comm, &rank);
    PMPI_Graph_neighbors_count(comm, rank, &count);
    return count;
  }
  if (kind != MPI_DIST_GRAPH) return 0;
  if (whose == HF_SOURCES)
    PMPI_Dist_graph_neighbors_count(comm, &count, &other, &flag);
  else
    PMPI_Dist_graph_neighbors_count(comm, &other, &count, &flag);
  return count;
}
