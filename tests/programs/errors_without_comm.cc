// Errors of calls that have no communicator: while nobody has set a handler of MPI_COMM_SELF, those
// of older programs, who set MPI_COMM_WORLD's alone, hear of them. Then MPI_COMM_SELF's does.
#include "check.h"

namespace {

int of_world = 0, of_self = 0;
MPI_Comm last = MPI_COMM_NULL;
void note_world(MPI_Comm* comm, int*, ...) {
  ++of_world;
  last = *comm;
}
void note_self(MPI_Comm* comm, int*, ...) {
  ++of_self;
  last = *comm;
}

// One call of each kind of object.
int make_mistakes() {
  int number = 0;
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Request request;
  memset(&request, 0x5a, sizeof request);
  MPI_Info info = MPI_INFO_NULL;
  EXPECT_CLASS(MPI_ERR_GROUP, MPI_Group_size(MPI_GROUP_NULL, &number));
  EXPECT_CLASS(MPI_ERR_TYPE, MPI_Type_size(MPI_DATATYPE_NULL, &number));
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Comm_size(MPI_COMM_NULL, &number));
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Comm_group(MPI_COMM_NULL, &group));
  EXPECT_CLASS(MPI_ERR_INFO, MPI_Info_set(info, "key", "value"));
  EXPECT_CLASS(MPI_ERR_REQUEST, MPI_Wait(&request, MPI_STATUS_IGNORE));
  return 6;
}

}  // namespace

int main(int argc, char** argv) {
  MPI(MPI_Init(&argc, &argv));
  MPI(MPI_Comm_rank(MPI_COMM_WORLD, &check::rank));
  MPI(MPI_Comm_size(MPI_COMM_WORLD, &check::size));
  MPI_Errhandler world = MPI_ERRHANDLER_NULL, self = MPI_ERRHANDLER_NULL;
  MPI(MPI_Comm_create_errhandler(note_world, &world));
  MPI(MPI_Comm_create_errhandler(note_self, &self));
  MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, world));
  int count = make_mistakes();
  CHECK_EQ(of_world, count);
  CHECK_EQ(last, MPI_COMM_WORLD);

  MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  make_mistakes();
  CHECK_EQ(of_world, count);

  MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, world));
  MPI(MPI_Comm_set_errhandler(MPI_COMM_SELF, self));
  make_mistakes();
  CHECK_EQ(of_self, count);
  CHECK_EQ(of_world, count);
  CHECK_EQ(last, MPI_COMM_SELF);
  EXPECT_CLASS(MPI_ERR_TAG, MPI_Send(nullptr, 0, MPI_INT, 0, -5, MPI_COMM_WORLD));
  CHECK_EQ(of_world, count + 1);

  MPI(MPI_Errhandler_free(&world));
  MPI(MPI_Errhandler_free(&self));
  MPI(MPI_Finalize());
  if (check::rank == 0) printf("ok errors without a communicator\n");
  return 0;
}
