// Makes the calls of table.py, one after the other, each with objects of its own: arguments FIRST
// [LAST]. Says before a call which one it is, and after it what came back, so that run.py can go on
// behind one that did not return. With FATAL in the environment errors end the program, with their
// text.
#include <limits.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct Row {
  const char* name;
  int (*call)(int wrong);
  int cases;
};

static struct {
  MPI_Comm comm, cart;
  // graph: a node with an edge to itself. edges: the same as a distributed graph.
  MPI_Comm graph, edges;
  // derived: of two parts, with integers and addresses. low, backward: one int at the start, but
  // the lower bound or the extent is the smallest number. wide: an extent of 2^40. edge: an int
  // where numbers end.
  MPI_Datatype datatype, derived, low, backward, wide, edge;
  MPI_Op op, own_op;
  MPI_Group group;
  MPI_Request request, persistent, parts_out, parts_in;
  MPI_Info info;
  MPI_Errhandler errhandler;
  MPI_Message message;
  MPI_File file;
  MPI_Session session;
  int keyval, type_keyval, win_keyval, error_class, error_code;
} f;

// Lists and buffers of one call; what lies before a buffer is ours, too.
static char memory[1 << 18];
static size_t used;

static void* list(size_t item) {
  void* at = memory + used + 4096;
  used += 8192 + 64 * item / 64 * 16;
  if (used + 8192 > sizeof memory) abort();
  return at;
}
#define FILL(list, value) \
  for (int i_ = 0; i_ < 16; ++i_) (list)[i_] = (value)

static char* text(const char* words) { return strcpy(list(64), words); }
// A file of this process; opened anew and emptied before each call.
static char file_name[64];
static void open_file(MPI_Errhandler handler) {
  MPI_File_set_errhandler(MPI_FILE_NULL, handler);
  MPI_File_open(MPI_COMM_SELF, file_name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f.file);
  MPI_File_set_size(f.file, 0);
  // Where an error ends the process nobody would take it away.
  if (getenv("FATAL")) unlink(file_name);
}
static int (*make_ranges(void))[3] {
  int(*made)[3] = list(sizeof *made);
  made[0][2] = 1;
  return made;
}
static void callback(void) {}
static void* allocated(void) {
  void* at = NULL;
  MPI_Alloc_mem(64, MPI_INFO_NULL, &at);
  return at;
}

static MPI_Datatype made_of(int lb_is_low, MPI_Aint lb, MPI_Aint extent) {
  MPI_Datatype type;
  MPI_Type_create_resized(MPI_INT, lb_is_low ? INT64_MIN : lb, extent, &type);
  MPI_Type_commit(&type);
  return type;
}

static void prepare(void) {
  memset(memory, 0, sizeof memory);
  used = 0;
  const int one = 1, zero = 0, length = 1;
  const int lengths[2] = {1, 1};
  const MPI_Aint places[2] = {0, 8}, last = INT64_MAX - 8;
  MPI_Errhandler handler = getenv("FATAL") ? MPI_ERRORS_ARE_FATAL : MPI_ERRORS_RETURN;
  MPI_Comm_dup(MPI_COMM_SELF, &f.comm);
  MPI_Cart_create(MPI_COMM_SELF, 1, &one, &zero, 0, &f.cart);
  MPI_Comm_set_errhandler(f.comm, handler);
  MPI_Comm_set_errhandler(f.cart, handler);
  MPI_Graph_create(MPI_COMM_SELF, 1, &one, &zero, 0, &f.graph);
  MPI_Dist_graph_create_adjacent(MPI_COMM_SELF, 1, &zero, &one, 1, &zero, &one, MPI_INFO_NULL, 0,
                                 &f.edges);
  MPI_Comm_set_errhandler(f.graph, handler);
  MPI_Comm_set_errhandler(f.edges, handler);
  f.datatype = MPI_INT;
  MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &f.derived);
  MPI_Type_commit(&f.derived);
  f.low = made_of(1, 0, 8);
  f.backward = made_of(0, 0, INT64_MIN);
  f.wide = made_of(0, 0, INT64_C(1) << 40);
  MPI_Type_create_hindexed(1, &length, &last, MPI_INT, &f.edge);
  MPI_Type_commit(&f.edge);
  f.op = MPI_SUM;
  MPI_Op_create((MPI_User_function*)&callback, 1, &f.own_op);
  MPI_Comm_group(MPI_COMM_SELF, &f.group);
  MPI_Irecv(memory, 0, MPI_INT, MPI_PROC_NULL, 1, f.comm, &f.request);
  MPI_Recv_init(memory, 0, MPI_INT, MPI_PROC_NULL, 1, f.comm, &f.persistent);
  MPI_Psend_init(memory, 4, 0, MPI_INT, MPI_PROC_NULL, 1, f.comm, MPI_INFO_NULL, &f.parts_out);
  MPI_Precv_init(memory, 4, 0, MPI_INT, MPI_PROC_NULL, 1, f.comm, MPI_INFO_NULL, &f.parts_in);
  MPI_Start(&f.parts_out);
  MPI_Info_create(&f.info);
  MPI_Info_set(f.info, "color", "red");
  f.errhandler = handler;
  f.message = MPI_MESSAGE_NO_PROC;
  open_file(handler);
  MPI_Session_init(MPI_INFO_NULL, handler, &f.session);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &f.keyval, NULL);
  MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &f.type_keyval, NULL);
  MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &f.win_keyval, NULL);
}

// A window of its own, in the epoch that the call wants: none, locked (the one target), all (of
// them), posted, started, completed; or a dynamic one.
enum Epoch { none, locked, all, posted, started, completed, dynamic };
static MPI_Win window(enum Epoch epoch) {
  MPI_Win win = MPI_WIN_NULL;
  void* at = NULL;
  if (epoch == dynamic) {
    MPI_Win_create_dynamic(MPI_INFO_NULL, f.comm, &win);
  } else {
    MPI_Win_allocate(4096, 1, MPI_INFO_NULL, f.comm, &at, &win);
  }
  MPI_Win_set_errhandler(win, f.errhandler);
  if (epoch == locked) MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  if (epoch == all) MPI_Win_lock_all(0, win);
  if (epoch >= posted && epoch <= completed) MPI_Win_post(f.group, 0, win);
  if (epoch >= started && epoch <= completed) MPI_Win_start(f.group, 0, win);
  if (epoch == completed) MPI_Win_complete(win);
  return win;
}

// What the call may have left; the objects of the call go with the process.
static void clean(void) {
  void* at;
  int size;
  if (getenv("FATAL")) return;
  MPI_Buffer_detach(&at, &size);
  MPI_File_close(&f.file);
}

// Kept over all calls: there are few of them.
static void make_codes(void) {
  MPI_Add_error_class(&f.error_class);
  MPI_Add_error_code(f.error_class, &f.error_code);
}

#include "calls.inc"

int main(int argc, char** argv) {
  const int first = argc > 1 ? atoi(argv[1]) : 0, last = argc > 2 ? atoi(argv[2]) : INT_MAX;
  MPI_Init(&argc, &argv);
  if (!getenv("FATAL")) {
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  int required, number = 0;
  snprintf(file_name, sizeof file_name, "/tmp/headway-arguments-%d", (int)getpid());
  MPI_T_init_thread(MPI_THREAD_SINGLE, &required);
  make_codes();
  for (size_t row = 0; row < sizeof rows / sizeof *rows; ++row) {
    for (int wrong = 0; wrong < rows[row].cases; ++wrong, ++number) {
      if (number < first || number > last) continue;
      prepare();
      printf("call %d\n", number);
      fflush(stdout);
      alarm(10);
      int class = rows[row].call(wrong);
      alarm(0);
      // Of MPI_T and of nothing known: as they are.
      if (class != MPI_SUCCESS) MPI_Error_class(class, &class);
      printf("back %d %d\n", number, class);
      clean();
      // The library is as it was.
      int size = 0;
      MPI_Comm_size(MPI_COMM_WORLD, &size);
      if (size != 1) printf("broken %d\n", number);
    }
  }
  unlink(file_name);
  puts("end");
  fflush(stdout);
  _exit(0);
}
