// Error handlers: predefined and of the user, per communicator, inherited by dup, called by hand;
// error classes, codes and strings, also those that the user adds and removes.
#include <string>

#include "check.h"

namespace {

int called = 0;
int last_code = 0;
MPI_Comm last_comm = MPI_COMM_NULL;
void note(MPI_Comm* comm, int* code, ...) {
  ++called;
  last_code = *code;
  last_comm = *comm;
}
int other_called = 0;
void note_other(MPI_Comm*, int*, ...) { ++other_called; }

int bad_send(MPI_Comm comm) { return MPI_Send(nullptr, 0, MPI_INT, 9999, 1, comm); }

void user_handler() {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL, other = MPI_ERRHANDLER_NULL;
  MPI_Comm comm = MPI_COMM_NULL, child = MPI_COMM_NULL;
  MPI(MPI_Comm_create_errhandler(note, &handler));
  MPI(MPI_Comm_create_errhandler(note_other, &other));
  MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  MPI(MPI_Comm_set_errhandler(comm, handler));
  called = 0;
  EXPECT_CLASS(MPI_ERR_RANK, bad_send(comm));
  CHECK_EQ(called, 1);
  CHECK_EQ(check::class_of(last_code), MPI_ERR_RANK);
  CHECK_EQ(last_comm, comm);
  MPI(MPI_Comm_dup(comm, &child));  // inherits
  EXPECT_CLASS(MPI_ERR_RANK, bad_send(child));
  CHECK_EQ(called, 2);
  CHECK_EQ(last_comm, child);
  MPI(MPI_Comm_set_errhandler(child, other));
  EXPECT_CLASS(MPI_ERR_RANK, bad_send(child));
  CHECK_EQ(called, 2);
  CHECK_EQ(other_called, 1);
  MPI(MPI_Errhandler_free(&handler));
  CHECK_EQ(handler, MPI_ERRHANDLER_NULL);
  EXPECT_CLASS(MPI_ERR_TAG, MPI_Send(nullptr, 0, MPI_INT, 0, -50, comm));
  CHECK_EQ(called, 3);  // still attached
  MPI_Errhandler got = MPI_ERRHANDLER_NULL;
  MPI(MPI_Comm_get_errhandler(child, &got));
  CHECK(got != MPI_ERRHANDLER_NULL);
  MPI(MPI_Comm_set_errhandler(comm, got));
  MPI(MPI_Errhandler_free(&got));
  MPI(MPI_Errhandler_free(&other));
  EXPECT_CLASS(MPI_ERR_RANK, bad_send(comm));
  CHECK_EQ(called, 3);
  CHECK_EQ(other_called, 2);
  MPI(MPI_Comm_free(&child));
  MPI(MPI_Comm_free(&comm));
}

void predefined() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Errhandler got = MPI_ERRHANDLER_NULL;
  MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  MPI(MPI_Comm_get_errhandler(comm, &got));
  CHECK_EQ(got, MPI_ERRORS_RETURN);
  MPI(MPI_Errhandler_free(&got));
  for (MPI_Errhandler h : {MPI_ERRORS_ARE_FATAL, MPI_ERRORS_ABORT, MPI_ERRORS_RETURN}) {
    MPI(MPI_Comm_set_errhandler(comm, h));
    MPI(MPI_Comm_get_errhandler(comm, &got));
    CHECK_EQ(got, h);
    MPI(MPI_Errhandler_free(&got));
  }
  EXPECT_CLASS(MPI_ERR_RANK, bad_send(comm));
  MPI(MPI_Comm_free(&comm));
}

// The program calls the handler itself.
void call_by_hand() {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI(MPI_Comm_create_errhandler(note, &handler));
  MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  MPI(MPI_Comm_set_errhandler(comm, handler));
  called = 0;
  MPI(MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER));
  CHECK_EQ(called, 1);
  CHECK_EQ(last_code, MPI_ERR_OTHER);
  MPI(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  MPI(MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER));
  CHECK_EQ(called, 1);
  MPI(MPI_Errhandler_free(&handler));
  MPI(MPI_Comm_free(&comm));
}

// An error found when a receive completes goes to the handler of its communicator.
void in_wait() {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI(MPI_Comm_create_errhandler(note, &handler));
  MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  MPI(MPI_Comm_set_errhandler(comm, handler));
  MPI(MPI_Errhandler_free(&handler));
  int to = (check::rank + 1) % check::size, from = (check::rank + check::size - 1) % check::size;
  for (int count : {20, 50000}) {
    std::vector<int> out(count), in(count);
    MPI_Request receive = MPI_REQUEST_NULL, send = MPI_REQUEST_NULL;
    called = 0;
    MPI(MPI_Irecv(in.data(), 10, MPI_INT, from, 1, comm, &receive));
    MPI(MPI_Isend(out.data(), count, MPI_INT, to, 1, comm, &send));
    EXPECT_CLASS(MPI_ERR_TRUNCATE, MPI_Wait(&receive, MPI_STATUS_IGNORE));
    CHECK_EQ(called, 1);
    CHECK_EQ(last_comm, comm);
    MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
  }
  MPI(MPI_Comm_free(&comm));
}

void strings() {
  for (int error_class = MPI_SUCCESS; error_class <= MPI_ERR_ABI; ++error_class) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = -1, got = -1;
    MPI(MPI_Error_string(error_class, text, &length));
    CHECK(length > 0 && length < MPI_MAX_ERROR_STRING);
    CHECK_EQ(strlen(text), length);
    MPI(MPI_Error_class(error_class, &got));
    CHECK_EQ(got, error_class);
  }
}

int last_used() {
  int* value = nullptr;
  int flag = 0;
  MPI(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag));
  CHECK(flag);
  return *value;
}

void own_classes() {
  int before = last_used(), mine = -1, code = -1, second = -1, got = -1, length = -1;
  char text[MPI_MAX_ERROR_STRING];
  CHECK(before >= MPI_ERR_LASTCODE);
  MPI(MPI_Add_error_class(&mine));
  CHECK(mine > MPI_ERR_LASTCODE);
  CHECK(last_used() >= mine);
  MPI(MPI_Add_error_code(mine, &code));
  MPI(MPI_Add_error_code(MPI_ERR_OTHER, &second));
  CHECK(code != mine && code != second && code > MPI_ERR_LASTCODE);
  MPI(MPI_Error_class(code, &got));
  CHECK_EQ(got, mine);
  MPI(MPI_Error_class(second, &got));
  CHECK_EQ(got, MPI_ERR_OTHER);
  MPI(MPI_Error_class(mine, &got));
  CHECK_EQ(got, mine);
  MPI(MPI_Error_string(code, text, &length));
  CHECK_EQ(length, 0);
  MPI(MPI_Add_error_string(code, "the tide is out"));
  MPI(MPI_Add_error_string(mine, "tides"));
  MPI(MPI_Error_string(code, text, &length));
  CHECK_EQ(std::string(text), std::string("the tide is out"));
  CHECK_EQ(length, 15);
  MPI(MPI_Add_error_string(code, "still out"));
  MPI(MPI_Error_string(code, text, &length));
  CHECK_EQ(std::string(text), std::string("still out"));
  CHECK(MPI_Add_error_string(MPI_ERR_RANK, "no") != MPI_SUCCESS);
  CHECK(last_used() >= second);
}

void removal() {
  int mine = -1, code = -1;
  MPI(MPI_Add_error_class(&mine));
  MPI(MPI_Add_error_code(mine, &code));
  MPI(MPI_Add_error_string(code, "x"));
  MPI(MPI_Add_error_string(mine, "y"));
  CHECK(MPI_Remove_error_class(mine) != MPI_SUCCESS);  // still has a code
  CHECK(MPI_Remove_error_code(code) != MPI_SUCCESS);   // still has a string
  MPI(MPI_Remove_error_string(code));
  MPI(MPI_Remove_error_code(code));
  CHECK(MPI_Remove_error_class(mine) != MPI_SUCCESS);  // likewise
  MPI(MPI_Remove_error_string(mine));
  CHECK(MPI_Remove_error_string(mine) != MPI_SUCCESS);
  MPI(MPI_Remove_error_class(mine));
  CHECK(MPI_Remove_error_code(code) != MPI_SUCCESS);
  CHECK(MPI_Remove_error_class(MPI_ERR_RANK) != MPI_SUCCESS);
}

// Many handlers made and freed.
void many() {
  for (int i = 0; i < 5000; ++i) {
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    MPI(MPI_Comm_create_errhandler(note, &handler));
    MPI(MPI_Errhandler_free(&handler));
  }
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"predefined", predefined},
                      {"user_handler", user_handler},
                      {"call_by_hand", call_by_hand},
                      {"in_wait", in_wait},
                      {"strings", strings},
                      {"own_classes", own_classes},
                      {"removal", removal},
                      {"many", many}});
}
