/* Names that the ABI leaves to headers, and those that MPI-3.0 removed: each does what it did. C90
   and C++98 alike. Exit code 0: all is right. With -DANY_MPI it is what other libraries do by
   default, too. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;
static void expect(int right, const char* what, int line) {
  if (right) return;
  printf("line %d: not so: %s\n", line, what);
  ++failures;
}
#define EXPECT(right) expect((right) != 0, #right, __LINE__)

#define SAME(kind, handle) EXPECT(kind##_f2c(kind##_c2f(handle)) == (handle))
#define BOTH(kind, handle)  \
  SAME(MPI_##kind, handle); \
  SAME(PMPI_##kind, handle)

static void add(void* in, void* inout, int* len, MPI_Datatype* type) {
  int i;
  (void)type;
  for (i = 0; i < *len; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

static void handles(void) {
  MPI_Fint (*number)(MPI_Comm) = MPI_Comm_c2f; /* they are functions, too */
  MPI_Comm comm;
  MPI_Group group;
  MPI_Info info;
  MPI_Op op;
  MPI_Request request;
  MPI_Datatype type;
  MPI_Message message;
  MPI_Session session;
  int value = 5, got = 0;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  BOTH(Comm, MPI_COMM_WORLD);
  BOTH(Comm, MPI_COMM_SELF);
  BOTH(Comm, MPI_COMM_NULL);
  BOTH(Comm, comm);
  EXPECT(number(comm) == MPI_Comm_c2f(comm) && number(comm) != number(MPI_COMM_WORLD));
  MPI_Comm_group(comm, &group);
  BOTH(Group, group);
  BOTH(Group, MPI_GROUP_EMPTY);
  MPI_Info_create(&info);
  BOTH(Info, info);
  BOTH(Info, MPI_INFO_NULL);
  MPI_Op_create(add, 1, &op);
  BOTH(Op, op);
  BOTH(Op, MPI_SUM);
  MPI_Type_contiguous(3, MPI_INT, &type);
  BOTH(Type, type);
  BOTH(Type, MPI_DOUBLE);
  BOTH(Errhandler, MPI_ERRORS_RETURN);
  BOTH(Win, MPI_WIN_NULL);
  BOTH(File, MPI_FILE_NULL);
  BOTH(Request, MPI_REQUEST_NULL);
  BOTH(Message, MPI_MESSAGE_NO_PROC);
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  BOTH(Session, session);
  MPI_Session_finalize(&session);
  /* What comes back as a number is the object itself. */
  MPI_Isend(&value, 1, MPI_INT, 0, 7, MPI_COMM_SELF, &request);
  MPI_Mprobe(0, 7, MPI_COMM_SELF, &message, MPI_STATUS_IGNORE);
  BOTH(Request, request);
  BOTH(Message, message);
  message = MPI_Message_f2c(MPI_Message_c2f(message));
  MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
  request = MPI_Request_f2c(MPI_Request_c2f(request));
  EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && got == 5);
  MPI_Type_free(&type);
  MPI_Op_free(&op);
  MPI_Info_free(&info);
  MPI_Group_free(&group);
  MPI_Comm_free(&comm);
}

static void statuses(void) {
  MPI_Status status, back;
  MPI_Fint fortran[MPI_F_STATUS_SIZE], again[MPI_F_STATUS_SIZE];
  MPI_F08_status modern;
  int values[3] = {1, 2, 3}, got[5], count = 0;
  memset(&status, 0, sizeof(status));
  MPI_Sendrecv(values, 3, MPI_INT, 0, 9, got, 5, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_SELF, &status);
  status.MPI_ERROR = 12;
  EXPECT(MPI_Status_c2f(&status, fortran) == MPI_SUCCESS);
  EXPECT(fortran[MPI_F_SOURCE] == 0 && fortran[MPI_F_TAG] == 9 && fortran[MPI_F_ERROR] == 12);
  memset(&back, 0xff, sizeof(back));
  EXPECT(MPI_Status_f2c(fortran, &back) == MPI_SUCCESS);
  EXPECT(memcmp(&back, &status, sizeof(status)) == 0);
  MPI_Get_count(&back, MPI_INT, &count);
  EXPECT(count == 3);
  EXPECT(MPI_Status_c2f08(&status, &modern) == MPI_SUCCESS && modern.MPI_TAG == 9);
  EXPECT(MPI_Status_f082f(&modern, again) == MPI_SUCCESS);
  EXPECT(memcmp(fortran, again, sizeof(again)) == 0);
  memset(&modern, 0xff, sizeof(modern));
  memset(&back, 0xff, sizeof(back));
  EXPECT(MPI_Status_f2f08(fortran, &modern) == MPI_SUCCESS);
  EXPECT(PMPI_Status_f082c(&modern, &back) == MPI_SUCCESS);
  EXPECT(memcmp(&back, &status, sizeof(status)) == 0);
#ifndef ANY_MPI
  EXPECT(MPI_Status_c2f(MPI_STATUS_IGNORE, fortran) == MPI_ERR_ARG);
  EXPECT(MPI_Status_f2c(MPI_F_STATUS_IGNORE, &back) == MPI_ERR_ARG);
#endif
}

#ifndef ANY_MPI
static int handled = 0;
static void handler(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  handled = *code;
}

static void removed_errhandlers(void) {
  MPI_Errhandler mine, found;
  MPI_Handler_function* function = handler;
  MPI_Comm_errhandler_fn* of_comm = handler;
  MPI_File_errhandler_fn* of_file = NULL;
  MPI_Win_errhandler_fn* of_window = NULL;
  MPI_Session_errhandler_fn* of_session = NULL;
  MPI_Comm comm;
  int place[2];
  MPI_Aint old = 0, now = 1;
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  EXPECT(MPI_Errhandler_create(function, &mine) == MPI_SUCCESS);
  EXPECT(MPI_Errhandler_set(comm, mine) == MPI_SUCCESS);
  EXPECT(MPI_Errhandler_get(comm, &found) == MPI_SUCCESS && found == mine);
  EXPECT(PMPI_Errhandler_f2c(PMPI_Errhandler_c2f(mine)) == mine);
  MPI_Send(NULL, -1, MPI_INT, 0, 0, comm);
  EXPECT(handled != 0);
  EXPECT(of_comm == function && !of_file && !of_window && !of_session);
  MPI_Errhandler_free(&found);
  MPI_Errhandler_free(&mine);
  MPI_Comm_free(&comm);
  MPI_Address(&place[1], &old);
  MPI_Get_address(&place[1], &now);
  EXPECT(old == now);
  PMPI_Address(&place[0], &old);
  EXPECT(now - old == (MPI_Aint)sizeof(int));
}

static int combiner_of(MPI_Datatype type) {
  int integers, addresses, types, combiner = 0;
  MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  switch (combiner) { /* all of them in one switch, as programs have it */
    case MPI_COMBINER_HVECTOR_INTEGER:
    case MPI_COMBINER_HINDEXED_INTEGER:
    case MPI_COMBINER_STRUCT_INTEGER: return -1;
    case MPI_COMBINER_HVECTOR:
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_STRUCT:
    default: return combiner;
  }
}

/* Looks at the bounds and frees it. */
static void check_bounds(MPI_Datatype type, long lb, long ub, int line) {
  MPI_Aint found[3] = {-99, -99, -99}, twin[3];
  MPI_Type_lb(type, &found[0]);
  MPI_Type_ub(type, &found[1]);
  MPI_Type_extent(type, &found[2]);
  PMPI_Type_lb(type, &twin[0]);
  PMPI_Type_ub(type, &twin[1]);
  PMPI_Type_extent(type, &twin[2]);
  if (found[0] != lb || found[1] != ub || found[2] != ub - lb) {
    printf("line %d: lb %ld, ub %ld, extent %ld; expected %ld, %ld\n", line, (long)found[0],
           (long)found[1], (long)found[2], lb, ub);
    ++failures;
  }
  expect(memcmp(found, twin, sizeof(twin)) == 0, "the twins agree", line);
  MPI_Type_free(&type);
}
#define BOUNDS(lb, ub) check_bounds(type, lb, ub, __LINE__)

static void structs(int count, MPI_Datatype a, long at_a, MPI_Datatype b, long at_b, MPI_Datatype c,
                    long at_c, MPI_Datatype* made) {
  MPI_Datatype types[3];
  MPI_Aint places[3];
  int blocks[3] = {1, 1, 1};
  types[0] = a, types[1] = b, types[2] = c;
  places[0] = at_a, places[1] = at_b, places[2] = at_c;
  *made = MPI_DATATYPE_NULL;
  EXPECT(MPI_Type_struct(count, blocks, places, types, made) == MPI_SUCCESS);
  EXPECT(blocks[0] == 1 && blocks[1] == 1 && blocks[2] == 1);
  EXPECT(types[0] == a && types[1] == b && types[2] == c && places[2] == at_c);
}

static void removed_types(void) {
  MPI_Datatype type, inner;
  int blocks[2] = {2, 1};
  MPI_Aint places[2] = {8, 40};
  MPI_Datatype byte_and_marker[2];
  EXPECT(MPI_Type_hindexed(2, blocks, places, MPI_INT, &type) == MPI_SUCCESS);
  EXPECT(combiner_of(type) == MPI_COMBINER_HINDEXED);
  BOUNDS(8, 44);
  EXPECT(MPI_Type_hvector(3, 1, 10, MPI_SHORT, &type) == MPI_SUCCESS);
  EXPECT(combiner_of(type) == MPI_COMBINER_HVECTOR);
  BOUNDS(0, 22);
  structs(2, MPI_DOUBLE, 0, MPI_CHAR, 8, MPI_DATATYPE_NULL, 0, &type);
  EXPECT(combiner_of(type) == MPI_COMBINER_STRUCT);
  BOUNDS(0, 16); /* rounded to the double's alignment */
  /* The figures with markers are those of MPICH 5.0.2. */
  structs(3, MPI_LB, -4, MPI_INT, 0, MPI_UB, 32, &inner);
  EXPECT(combiner_of(inner) == MPI_COMBINER_RESIZED);
  structs(3, inner, 0, MPI_DOUBLE, 8, MPI_UB, 200, &type);
  BOUNDS(-4, 200);
  type = inner;
  BOUNDS(-4, 32);
  structs(3, MPI_INT, 0, MPI_DOUBLE, 8, MPI_UB, 20,
          &type); /* above the data's end is not asked for */
  BOUNDS(0, 20);
  structs(3, MPI_DOUBLE, 0, MPI_CHAR, 8, MPI_LB, 3, &type);
  BOUNDS(3, 16);
  structs(1, MPI_UB, 20, MPI_INT, 0, MPI_INT, 0, &type);
  BOUNDS(0, 20);
  structs(3, MPI_UB, 8, MPI_INT, 0, MPI_UB, 24, &type); /* the outermost counts */
  BOUNDS(0, 24);
  structs(3, MPI_LB, 0, MPI_INT, 4, MPI_LB, -8, &type);
  BOUNDS(-8, 8);
  byte_and_marker[0] = MPI_INT, byte_and_marker[1] = MPI_UB;
  blocks[1] = 0; /* a marker that is not there */
  places[0] = 0;
  EXPECT(PMPI_Type_struct(2, blocks, places, byte_and_marker, &type) == MPI_SUCCESS);
  BOUNDS(0, 8);
}

/* What the markers were for: the stride of an array of structures in a message. */
static void strides(void) {
  struct {
    int number;
    char gap[28];
  } sent[3];
  int got[3] = {0, 0, 0}, i;
  MPI_Datatype type;
  for (i = 0; i < 3; ++i) sent[i].number = 10 + i;
  structs(2, MPI_INT, 0, MPI_UB, (long)sizeof(sent[0]), MPI_INT, 0, &type);
  MPI_Type_commit(&type);
  MPI_Sendrecv(sent, 3, type, 0, 1, got, 3, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  EXPECT(got[0] == 10 && got[1] == 11 && got[2] == 12);
  MPI_Type_free(&type);
}

/* Elsewhere a marker is an error as any wrong datatype is, and so are bad arguments. */
static void refusals(void) {
  MPI_Datatype types[2], type = MPI_DATATYPE_NULL;
  int blocks[2] = {1, -1}, code, kind = 0;
  MPI_Aint places[2] = {0, 8}, ub = -7;
  types[0] = MPI_UB, types[1] = MPI_INT;
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  EXPECT(MPI_Type_struct(2, blocks, places, types, &type) != MPI_SUCCESS);
  EXPECT(type == MPI_DATATYPE_NULL);
  EXPECT(MPI_Type_struct(-1, blocks, places, types, &type) != MPI_SUCCESS);
  code = MPI_Type_contiguous(2, MPI_UB, &type);
  MPI_Error_class(code, &kind);
  EXPECT(kind == MPI_ERR_TYPE);
  EXPECT(MPI_Type_ub(MPI_DATATYPE_NULL, &ub) != MPI_SUCCESS && ub == -7);
}
#endif

int main(int argc, char** argv) {
#ifndef ANY_MPI /* before and after all else, as toint and fromint */
  EXPECT(MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_WORLD)) == MPI_COMM_WORLD);
#endif
  if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return 2;
  handles();
  statuses();
#ifndef ANY_MPI
  removed_errhandlers();
  removed_types();
  strides();
  refusals();
#endif
  MPI_Finalize();
#ifndef ANY_MPI
  EXPECT(MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_SELF)) == MPI_COMM_SELF);
#endif
  if (!failures) puts("right");
  return failures ? 1 : 0;
}
