/* entries: Fortran's calls as a compiler makes them, from C: what a machine without a Fortran
   compiler can test of libmpifort_abi. Arguments by reference, texts with hidden lengths,
   descriptors made by hand, sections against loops, the common blocks of the program's own. Any
   number of ranks; the seed is printed. usage: entries [SEED] */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BOTTOM = 0, IN_PLACE = 1, STATUS_IGNORE = 6, STATUSES_IGNORE = 14, PLACES = 22 };
int mpi_fortran_places_[PLACES]; /* as COMMON in a program */

typedef struct Dimension {
  intptr_t lower, extent, stride;
} Dimension;
typedef struct Descriptor {
  void* base;
  size_t item;
  int version;
  signed char rank;
  unsigned char rest[3];
  Dimension dimensions[15];
} Descriptor;

void mpi_init_(int*);
void mpi_finalize_f08(int*);
void mpi_comm_rank_(const int*, int*, int*);
void MPI_COMM_SIZE(const int*, int*, int*);
void mpi_comm_set_name__(const int*, const char*, int*, size_t);
void mpi_comm_get_name_(const int*, char*, int*, int*, size_t);
void mpi_send_(const void*, const int*, const int*, const int*, const int*, const int*, int*);
void mpi_irecv_(void*, const int*, const int*, const int*, const int*, const int*, int*, int*);
void mpi_waitany_(const int*, int*, int*, int*, int*);
void mpi_wait_(int*, int*, int*);
void mpi_allreduce_(const void*, void*, const int*, const int*, const int*, const int*, int*);
void pmpi_barrier_(const int*, int*);
void mpi_send_f08ts_(const Descriptor*, const int*, const int*, const int*, const int*, const int*,
                     int*);
void mpi_send_c_f08ts_(const Descriptor*, const MPI_Count*, const int*, const int*, const int*,
                       const int*, int*);
void mpi_irecv_f08ts_(const Descriptor*, const int*, const int*, const int*, const int*, const int*,
                      int*, int*);
void mpi_iallreduce_f08ts_(const Descriptor*, const Descriptor*, const int*, const int*, const int*,
                           const int*, int*, int*);
void mpi_sendrecv_f08ts_(const Descriptor*, const int*, const int*, const int*, const int*,
                         const Descriptor*, const int*, const int*, const int*, const int*,
                         const int*, int*, int*);
void mpi_gather_f08ts_(const Descriptor*, const int*, const int*, const Descriptor*, const int*,
                       const int*, const int*, const int*, int*);
void mpi_reduce_f08ts_(const Descriptor*, const Descriptor*, const int*, const int*, const int*,
                       const int*, const int*, int*);
void mpi_allreduce_f08ts_(const Descriptor*, const Descriptor*, const int*, const int*, const int*,
                          const int*, int*);
void mpi_waitall_(const int*, int*, int*, int*);
void mpi_startall_(const int*, int*, int*);
void mpi_recv_init_(void*, const int*, const int*, const int*, const int*, const int*, int*, int*);
void mpi_allreduce_init_f08ts_(const Descriptor*, const Descriptor*, const int*, const int*,
                               const int*, const int*, const int*, int*, int*);
void mpi_request_free_(int*, int*);
void mpi_file_write_f08ts_(const int*, const Descriptor*, const int*, const int*, int*, int*);
void mpi_win_create_f08ts_(const Descriptor*, const MPI_Aint*, const int*, const int*, const int*,
                           int*, int*);
void mpi_comm_create_keyval_(void (*)(void), void (*)(void), int*, const MPI_Aint*, int*);
void mpi_comm_dup_fn_(void);
void mpi_comm_null_delete_fn_(void);
void mpi_comm_set_attr_(const int*, const int*, const MPI_Aint*, int*);
void mpi_comm_get_attr_(const int*, const int*, MPI_Aint*, int*, int*);
void mpi_op_create_(void (*)(void*, void*, int*, int*), const int*, int*, int*);
void mpi_error_class_(const int*, int*, int*);
void mpi_error_string_(const int*, char*, int*, int*, size_t);
void mpi_comm_set_errhandler_(const int*, const int*, int*);

static const int world = 0x101, self = 0x102, integer = 0x219, bytes_type = 0x247, sum = 0x21,
                 returns = 0x143;
static int rank, ranks, seed = 1;
static uint64_t state;

static void check(int is_right, const char* what) {
  if (is_right) return;
  fprintf(stderr, "FAILED on rank %d: %s (seed %d)\n", rank, what, seed);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static int draw(int least, int most) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return least + (int)((state >> 33) % (uint64_t)(most - least + 1));
}

/* ---- sections ---- */

enum { ROWS = 9, COLUMNS = 8, LAYERS = 7, ALL = ROWS * COLUMNS * LAYERS };

/* A random section of an array of that shape: its places in array order. */
static int draw_section(Descriptor* section, int* base, int* places) {
  const int sizes[3] = {ROWS, COLUMNS, LAYERS};
  int first[3] = {0}, step[3] = {0}, length[3] = {0}, elements = 1, way = 1;
  memset(section, 0, sizeof *section);
  section->item = sizeof(int);
  section->version = 1;
  section->rank = (signed char)draw(1, 3);
  int place = 0;
  for (int i = 0; i < section->rank; ++i) {
    step[i] = draw(1, 3);
    length[i] = draw(draw(0, 9) > 0, (sizes[i] - 1) / step[i] + 1);
    first[i] = length[i] ? draw(0, sizes[i] - 1 - (length[i] - 1) * step[i]) : 0;
    if (length[i] && draw(0, 2) == 0) {
      first[i] += (length[i] - 1) * step[i];
      step[i] = -step[i];
    }
    section->dimensions[i].extent = length[i];
    section->dimensions[i].stride = (intptr_t)step[i] * way * (intptr_t)sizeof(int);
    place += first[i] * way;
    elements *= length[i];
    way *= sizes[i];
  }
  section->base = base + place;
  for (int n = 0; n < elements; ++n) {
    int rest = n, at = place, pace = 1;
    for (int i = 0; i < section->rank; ++i) {
      at += rest % length[i] * step[i] * pace;
      rest /= length[i];
      pace *= sizes[i];
    }
    places[n] = at;
  }
  return elements;
}

static void try_section(int trial) {
  static int from[ALL], to[ALL], wanted[ALL], got[ALL], places[ALL];
  Descriptor section;
  int code = -1, request, tag = trial % 100;
  for (int i = 0; i < ALL; ++i) from[i] = 1000 + i;
  int elements = draw_section(&section, from, places);
  int count = draw(0, elements);
  /* out of a section */
  memset(got, 0, sizeof got);
  mpi_irecv_(got, &elements, &integer, &rank, &tag, &world, &request, &code);
  if (draw(0, 1)) {
    const MPI_Count large = count;
    mpi_send_c_f08ts_(&section, &large, &integer, &rank, &tag, &world, NULL);
  } else {
    mpi_send_f08ts_(&section, &count, &integer, &rank, &tag, &world, NULL);
  }
  mpi_wait_(&request, &mpi_fortran_places_[STATUS_IGNORE], &code);
  for (int i = 0; i < count; ++i) check(got[i] == from[places[i]], "sent from a section");
  for (int i = count; i < elements; ++i) check(got[i] == 0, "sent too much");
  /* into one, by bytes as well, so that the end lies inside an element */
  elements = draw_section(&section, to, places);
  const int is_bytes = draw(0, 1);
  count = draw(0, is_bytes ? 4 * elements : elements);
  const int type = is_bytes ? bytes_type : integer;
  for (int i = 0; i < ALL; ++i) to[i] = wanted[i] = -7;
  for (int i = 0; i < (is_bytes ? count : 4 * count); ++i)
    ((char*)&wanted[places[i / 4]])[i % 4] = ((char*)from)[i];
  mpi_irecv_f08ts_(&section, &count, &type, &rank, &tag, &world, &request, &code);
  mpi_send_(from, &count, &type, &rank, &tag, &world, &code);
  mpi_wait_(&request, &mpi_fortran_places_[STATUS_IGNORE], NULL);
  check(memcmp(to, wanted, sizeof to) == 0, "received into a section");
}

static void try_reduction(void) {
  static int from[ALL], to[ALL], wanted[ALL], places[ALL], more[ALL];
  Descriptor a, b;
  int request, code = -1;
  const int elements = draw_section(&a, from, places);
  int others = draw_section(&b, to, more);
  while (others < elements) others = draw_section(&b, to, more);
  for (int i = 0; i < ALL; ++i) from[i] = i, to[i] = wanted[i] = -7;
  for (int i = 0; i < elements; ++i) wanted[more[i]] = from[places[i]];
  mpi_iallreduce_f08ts_(&a, &b, &elements, &integer, &sum, &self, &request, &code);
  mpi_wait_(&request, &mpi_fortran_places_[STATUS_IGNORE], &code);
  check(code == MPI_SUCCESS && memcmp(to, wanted, sizeof to) == 0, "reduced with different gaps");
}

/* A row of a matrix of that many rows: so many shapes, so many datatypes. */
static Descriptor row_of(int* base, int rows, int length) {
  Descriptor row = {.base = base, .item = sizeof(int), .version = 1, .rank = 1};
  row.dimensions[0].extent = length;
  row.dimensions[0].stride = (intptr_t)rows * (intptr_t)sizeof(int);
  return row;
}

/* A call with two sections, of which the thread keeps the datatype of one, and the other is new,
   keeps both until it is over; whichever of the eight that it keeps the one is. */
static void try_kept(void) {
  static int from[2000], to[2000];
  const int length = 9, tag = 5, nobody = MPI_PROC_NULL;
  int code = -1;
  for (int trial = 0; trial < 64; ++trial) {
    for (int i = 0; i < 8; ++i) {
      const Descriptor known = row_of(from, 2 + i, length);
      mpi_send_f08ts_(&known, &length, &integer, &nobody, &tag, &world, &code);
    }
    const Descriptor known = row_of(from, 2 + trial % 8, length);
    const Descriptor fresh = row_of(to, 20 + trial, length);
    for (int i = 0; i < 2000; ++i) from[i] = trial + i, to[i] = -1;
    mpi_sendrecv_f08ts_(&known, &length, &integer, &rank, &tag, &fresh, &length, &integer, &rank,
                        &tag, &world, &mpi_fortran_places_[STATUS_IGNORE], &code);
    for (int i = 0; i < length; ++i)
      check(to[i * (20 + trial)] == from[i * (2 + trial % 8)], "two sections, one of them new");
  }
}

/* Arrays that are not allocated, whose extents mean nothing, and sections without elements. */
static void try_nothing(void) {
  Descriptor none, mine, empty;
  int root = 0, one = 1, zero = 0, code = -1, values[2] = {rank, -1};
  int* all = calloc((size_t)ranks, sizeof *all);
  memset(&none, 0x5a, sizeof none);
  none.base = NULL;
  none.item = sizeof(int);
  none.version = 1;
  none.rank = 2;
  mine = row_of(values, 2, 1);
  Descriptor whole = row_of(all, 1, ranks);
  mpi_gather_f08ts_(&mine, &one, &integer, rank == root ? &whole : &none, &one, &integer, &root,
                    &world, &code);
  for (int i = 0; rank == root && i < ranks; ++i) check(all[i] == i, "gathered by the root");
  mpi_reduce_f08ts_(&mine, rank == root ? &whole : &none, &one, &integer, &sum, &root, &world,
                    &code);
  check(rank != root || all[0] == ranks * (ranks - 1) / 2, "reduced to the root");
  free(all);
  /* of 200 bytes each, in memory of its own, so that a checker of memory sees one that is copied */
  char* memory = malloc(1);
  empty = (Descriptor){.base = memory, .item = 200, .version = 1, .rank = 2};
  empty.dimensions[0] = (Dimension){0, 3, 400};
  empty.dimensions[1] = (Dimension){0, 0, 4000};
  *memory = 7;
  for (int i = 0; i < 2; ++i) {
    code = -1;
    mpi_allreduce_f08ts_(&empty, &empty, &zero, &integer, &sum, &world, &code);
    check(code == MPI_SUCCESS && *memory == 7, "sections without elements");
    empty.base = i == 0 ? NULL : memory;
  }
  free(memory);
}

/* A persistent request that is complete where another one of the same wait has failed. */
static void try_failures(void) {
  static int from[20], to[20], small[1], three[3] = {1, 2, 3};
  const Descriptor a = row_of(from, 2, 10), b = row_of(to, 2, 10);
  const int ten = 10, one = 1, two = 2, count_of_three = 3, tag = 8, info = 0x130;
  int requests[2], code = MPI_SUCCESS, statuses[16];
  for (int i = 0; i < 20; ++i) from[i] = i, to[i] = -1;
  mpi_allreduce_init_f08ts_(&a, &b, &ten, &integer, &sum, &self, &info, &requests[0], &code);
  mpi_recv_init_(small, &one, &integer, &rank, &tag, &world, &requests[1], &code);
  mpi_startall_(&two, requests, &code);
  mpi_send_(three, &count_of_three, &integer, &rank, &tag, &world, &code);
  mpi_waitall_(&two, requests, statuses, &code);
  check(code != MPI_SUCCESS, "a message that is too long");
  for (int i = 0; i < 20; i += 2)
    check(to[i] == i && to[i + 1] == -1, "what is complete comes back");
  mpi_request_free_(&requests[0], &code);
  mpi_request_free_(&requests[1], &code);
}

/* ---- the rest ---- */

static void add(void* in, void* inout, int* length, int* type) {
  check(*type == 0x219, "the datatype that an operation gets");
  for (int i = 0; i < *length; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

static void try_texts(void) {
  char name[20];
  int length = 0, code = -1;
  mpi_comm_set_name__(&world, "of all      ", &code, 12);
  mpi_comm_get_name_(&world, name, &length, &code, sizeof name);
  check(length == 6 && memcmp(name, "of all              ", 20) == 0, "name");
  mpi_comm_get_name_(&world, name, &length, &code, 3);
  check(memcmp(name, "of all", 6) == 0, "name that is cut");
}

static void try_requests(void) {
  int requests[3], values[3] = {0}, index = -1, code = -1, status[8], value = 5, one = 1, three = 3;
  for (int tag = 1; tag <= 3; ++tag)
    mpi_irecv_(&values[tag - 1], &one, &integer, &rank, &tag, &world, &requests[tag - 1], &code);
  for (int tag = 3; tag >= 1; --tag) {
    mpi_send_(&value, &one, &integer, &rank, &tag, &world, &code);
    mpi_waitany_(&three, requests, &index, status, &code);
    check(index == tag && values[tag - 1] == 5 && status[1] == tag && status[0] == rank, "waitany");
  }
  mpi_waitany_(&three, requests, &index, &mpi_fortran_places_[STATUS_IGNORE], &code);
  check(index == MPI_UNDEFINED && requests[0] == 0x180, "waitany of none");
}

static void try_places_and_callbacks(void) {
  int value = rank + 1, one = 1, op = 0, commutes = 1, code = -1, keyval = 0, flag = 0;
  MPI_Aint extra_state = 3, set = -9, got = 0, *of_c = NULL;
  mpi_op_create_(add, &commutes, &op, &code);
  mpi_allreduce_(&mpi_fortran_places_[IN_PLACE], &value, &one, &integer, &op, &world, &code);
  check(value == ranks * (ranks + 1) / 2, "an operation of Fortran, in place");
  mpi_comm_create_keyval_(mpi_comm_dup_fn_, mpi_comm_null_delete_fn_, &keyval, &extra_state, &code);
  mpi_comm_set_attr_(&world, &keyval, &set, &code);
  mpi_comm_get_attr_(&world, &keyval, &got, &flag, &code);
  check(flag == 1 && got == -9, "attribute");
  MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, &of_c, &flag);
  check(flag && *of_c == -9, "an attribute of Fortran, in C");
  MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, &value);
  mpi_comm_get_attr_(&world, &keyval, &got, &flag, &code);
  check(flag && got == (MPI_Aint)&value, "an attribute of C, in Fortran");
  int tag_ub = MPI_TAG_UB;
  mpi_comm_get_attr_(&world, &tag_ub, &got, &flag, &code);
  check(flag && got >= 32767, "a predefined attribute");
}

static void try_errors(void) {
  static int values[20];
  Descriptor section = {
      .base = values, .item = 4, .version = 1, .rank = 1, .dimensions = {{0, 10, 8}}};
  int code = MPI_SUCCESS, class = -1, count = 11, zero = 0, length = 0, unit = 1, win = 0;
  const int info = 0x130;
  MPI_Aint size = 40;
  char text[MPI_MAX_ERROR_STRING] = "";
  mpi_comm_set_errhandler_(&self, &returns, &code);
  mpi_comm_set_errhandler_(&world, &returns, &code);
  mpi_send_f08ts_(&section, &count, &integer, &zero, &zero, &self, &code);
  mpi_error_class_(&code, &class, &zero);
  zero = 0;
  check(class == MPI_ERR_COUNT, "a count beyond the section");
  mpi_error_string_(&code, text, &length, &unit, sizeof text);
  check(strncmp(text, "MPI_Send (Fortran): the count goes beyond", 41) == 0, "its text");
  mpi_allreduce_f08ts_(&section, &section, &count, &integer, &sum, &self, &code);
  mpi_error_class_(&code, &class, &zero);
  zero = 0;
  check(class == MPI_ERR_COUNT, "operands beyond their sections");
  unit = 1;
  mpi_win_create_f08ts_(&section, &size, &unit, &info, &self, &win, &code);
  mpi_error_class_(&code, &class, &zero);
  check(class == MPI_ERR_BUFFER, "a window with gaps");
}

/* Errors that are found before C is called meet the handler of the call's own object: a file's is
   MPI_ERRORS_RETURN, whatever MPI_COMM_SELF has. */
static void try_a_file(void) {
  static int values[20];
  const Descriptor section = row_of(values, 2, 10);
  int count = 11, code = MPI_SUCCESS, class = -1, zero = 0;
  MPI_File file = MPI_FILE_NULL;
  if (MPI_File_open(MPI_COMM_SELF, "/tmp/headway-fortran-entries",
                    MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                    &file) != MPI_SUCCESS)
    return; /* a library without files */
  const int number = MPI_File_toint(file);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  mpi_file_write_f08ts_(&number, &section, &count, &integer, &mpi_fortran_places_[STATUS_IGNORE],
                        &code);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  mpi_error_class_(&code, &class, &zero);
  check(class == MPI_ERR_COUNT, "an error of a file");
  MPI_File_close(&file);
}

int main(int argc, char** argv) {
  int code = -1;
  if (argc > 1) seed = atoi(argv[1]);
  state = (uint64_t)seed;
  mpi_init_(&code);
  mpi_comm_rank_(&world, &rank, &code);
  MPI_COMM_SIZE(&world, &ranks, &code);
  check(code == MPI_SUCCESS && ranks > 0, "start");
  if (rank == 0) printf("seed %d\n", seed);
  try_texts();
  for (int trial = 0; trial < 3000; ++trial) try_section(trial);
  for (int trial = 0; trial < 300; ++trial) try_reduction();
  try_kept();
  try_nothing();
  try_requests();
  try_places_and_callbacks();
  try_errors();
  try_failures();
  if (rank == 0) try_a_file();
  pmpi_barrier_(&world, &code);
  mpi_finalize_f08(&code);
  if (rank == 0) printf("ok\n");
  return code;
}
