// Sessions: process sets, groups and communicators without MPI_COMM_WORLD, several at once and one
// after the other, beside MPI_Init and after MPI_Finalize ("with-world"), their error handlers.
#include "check.h"

namespace {

int called = 0;
MPI_Session last = MPI_SESSION_NULL;
int called_for_comm = 0;
void note_comm(MPI_Comm*, int*, ...) { ++called_for_comm; }
void note(MPI_Session* session, int*, ...) {
  ++called;
  last = *session;
}

MPI_Session open(MPI_Errhandler handler = MPI_ERRORS_RETURN) {
  MPI_Session session = MPI_SESSION_NULL;
  MPI(MPI_Session_init(MPI_INFO_NULL, handler, &session));
  CHECK(session != MPI_SESSION_NULL);
  return session;
}
void close(MPI_Session session) {
  MPI(MPI_Session_finalize(&session));
  CHECK_EQ(session, MPI_SESSION_NULL);
}

MPI_Comm comm_of(MPI_Session session, const char* set, const char* tag) {
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_WORLD;
  MPI(MPI_Group_from_session_pset(session, set, &group));
  MPI(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  MPI(MPI_Group_free(&group));
  return comm;
}

void expect_sum(MPI_Comm comm) {
  int rank = -1, size = 0, sum = -1;
  MPI(MPI_Comm_rank(comm, &rank));
  MPI(MPI_Comm_size(comm, &size));
  MPI(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
  CHECK_EQ(sum, size * (size - 1) / 2);
}

void sets() {
  MPI_Session session = open();
  int count = 0;
  MPI(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count));
  CHECK(count >= 2);
  bool world = false, self = false;
  for (int i = 0; i < count; ++i) {
    int length = 0;
    MPI(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, nullptr));
    std::vector<char> name(static_cast<size_t>(length), 'x');
    MPI(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, name.data()));
    world |= strcmp(name.data(), "mpi://WORLD") == 0;
    self |= strcmp(name.data(), "mpi://SELF") == 0;
    int few = 4;
    MPI(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &few, name.data()));
    CHECK_EQ(std::string(name.data()), "mpi");
    CHECK_EQ(few, length);
  }
  CHECK(world && self);
  MPI_Info info = MPI_INFO_NULL;
  MPI(MPI_Session_get_pset_info(session, "mpi://WORLD", &info));
  char text[16] = "";
  int room = sizeof text, flag = 0;
  MPI(MPI_Info_get_string(info, "mpi_size", &room, text, &flag));
  CHECK(flag != 0);
  MPI(MPI_Info_free(&info));
  MPI_Comm comm = comm_of(session, "mpi://WORLD", "sets");
  MPI(MPI_Comm_rank(comm, &check::rank));
  MPI(MPI_Comm_size(comm, &check::size));
  CHECK_EQ(atoi(text), check::size);
  expect_sum(comm);
  MPI_Comm alone = comm_of(session, "mpi://SELF", "sets");
  int size = 0;
  MPI(MPI_Comm_size(alone, &size));
  CHECK_EQ(size, 1);
  expect_sum(alone);
  MPI(MPI_Comm_free(&alone));
  MPI_Comm copy = MPI_COMM_NULL;
  MPI(MPI_Comm_dup(comm, &copy));
  expect_sum(copy);
  MPI(MPI_Comm_free(&copy));
  MPI(MPI_Comm_free(&comm));
  close(session);
}

// A name is a URI, whose scheme and host do not depend on the case of letters. Of one that does not
// exist there is no group.
void names_of_sets() {
  MPI_Session session = open();
  for (const char* name : {"mpi://world", "MPI://World", "mpi://WORLD"}) {
    MPI_Comm comm = comm_of(session, name, "names");
    int size = 0;
    MPI(MPI_Comm_size(comm, &size));
    CHECK_EQ(size, check::size);
    MPI(MPI_Comm_free(&comm));
    MPI_Info info = MPI_INFO_NULL;
    MPI(MPI_Session_get_pset_info(session, name, &info));
    MPI(MPI_Info_free(&info));
  }
  MPI_Comm alone = comm_of(session, "mpi://self", "names");
  MPI(MPI_Comm_free(&alone));
  for (const char* name : {"mpi://everybody", "mpi://WORLD/", "WORLD", "", "x://y"}) {
    MPI_Group group = MPI_GROUP_EMPTY;
    EXPECT_CLASS(MPI_ERR_ARG, MPI_Group_from_session_pset(session, name, &group));
    CHECK_EQ(group, MPI_GROUP_NULL);
  }
  close(session);
}

// Groups of some ranks, with tags that cross: each process names its two in another order.
void groups_and_tags() {
  MPI_Session session = open();
  MPI_Group world = MPI_GROUP_NULL, evens = MPI_GROUP_NULL, odds = MPI_GROUP_NULL;
  MPI(MPI_Group_from_session_pset(session, "mpi://WORLD", &world));
  int range[1][3] = {{0, check::size - 1, 2}};
  MPI(MPI_Group_range_incl(world, 1, range, &evens));
  MPI(MPI_Group_difference(world, evens, &odds));
  MPI_Group mine = check::rank % 2 == 0 ? evens : odds;
  MPI_Comm first = MPI_COMM_NULL, second = MPI_COMM_NULL, none = MPI_COMM_WORLD;
  MPI(MPI_Comm_create_from_group(mine, "first", MPI_INFO_NULL, MPI_ERRORS_RETURN, &first));
  MPI(MPI_Comm_create_from_group(mine, "second", MPI_INFO_NULL, MPI_ERRORS_RETURN, &second));
  expect_sum(second);
  expect_sum(first);
  int size = 0;
  MPI(MPI_Comm_size(first, &size));
  CHECK_EQ(size, check::rank % 2 == 0 ? (check::size + 1) / 2 : check::size / 2);
  MPI(MPI_Comm_free(&first));
  MPI(MPI_Comm_free(&second));
  MPI(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "x", MPI_INFO_NULL, MPI_ERRORS_RETURN, &none));
  CHECK_EQ(none, MPI_COMM_NULL);
  MPI(MPI_Group_free(&world));
  MPI(MPI_Group_free(&evens));
  if (odds != MPI_GROUP_EMPTY) MPI(MPI_Group_free(&odds));
  close(session);
}

void several() {
  MPI_Session a = open(), b = open();
  CHECK(a != b);
  MPI_Comm of_a = comm_of(a, "mpi://WORLD", "a"), of_b = comm_of(b, "mpi://WORLD", "b");
  expect_sum(of_a);
  expect_sum(of_b);
  MPI(MPI_Comm_free(&of_a));
  close(a);
  expect_sum(of_b);
  MPI(MPI_Comm_free(&of_b));
  close(b);
  for (int i = 0; i < 5; ++i) {
    MPI_Session again = open();
    MPI_Comm comm = comm_of(again, "mpi://WORLD", "again");
    expect_sum(comm);
    MPI(MPI_Comm_free(&comm));
    close(again);
  }
}

// Of a session that did not ask for one.
const char* level_of_world = "MPI_THREAD_SINGLE";
std::string level_of(MPI_Session session) {
  MPI_Info info = MPI_INFO_NULL;
  char level[64] = "";
  int room = sizeof level, flag = 0;
  MPI(MPI_Session_get_info(session, &info));
  MPI(MPI_Info_get_string(info, "thread_level", &room, level, &flag));
  MPI(MPI_Info_free(&info));
  return level;
}

void handlers() {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL, got = MPI_ERRHANDLER_NULL;
  MPI(MPI_Session_create_errhandler(note, &handler));
  MPI_Session session = open(handler);
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Info info = MPI_INFO_NULL;
  called = 0;
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Group_from_session_pset(session, "mpi://NOBODY", &group));
  CHECK_EQ(called, 1);
  CHECK_EQ(last, session);
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Session_get_pset_info(session, nullptr, &info));
  CHECK_EQ(called, 2);
  MPI(MPI_Session_call_errhandler(session, MPI_ERR_OTHER));
  CHECK_EQ(called, 3);
  MPI(MPI_Session_get_errhandler(session, &got));
  CHECK_EQ(got, handler);
  MPI(MPI_Errhandler_free(&got));
  MPI(MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN));
  int length = 0;
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 77, &length, nullptr));
  CHECK_EQ(called, 3);
  MPI(MPI_Errhandler_free(&handler));
  MPI(MPI_Session_get_info(session, &info));
  CHECK_EQ(level_of(session), level_of_world);
  MPI(MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE"));
  MPI_Session threaded = MPI_SESSION_NULL;
  MPI(MPI_Session_init(info, MPI_ERRORS_RETURN, &threaded));
  MPI(MPI_Info_free(&info));
  CHECK_EQ(level_of(threaded), "MPI_THREAD_MULTIPLE");
  close(threaded);
  close(session);
}

// What a call is given for the object that it makes hears of the call's own errors.
void handlers_of_makers() {
  MPI_Errhandler of_session = MPI_ERRHANDLER_NULL, of_comm = MPI_ERRHANDLER_NULL;
  MPI(MPI_Session_create_errhandler(note, &of_session));
  MPI(MPI_Comm_create_errhandler(note_comm, &of_comm));
  called = called_for_comm = 0;
  MPI_Info info = MPI_INFO_NULL;
  MPI(MPI_Info_create(&info));
  MPI(MPI_Info_set(info, "thread_level", "as many as you like"));
  for (MPI_Errhandler handler : {of_session, static_cast<MPI_Errhandler>(MPI_ERRORS_RETURN)}) {
    MPI_Session none = reinterpret_cast<MPI_Session>(4711);
    EXPECT_CLASS(MPI_ERR_INFO_VALUE, MPI_Session_init(info, handler, &none));
    CHECK_EQ(none, MPI_SESSION_NULL);
    EXPECT_CLASS(MPI_ERR_ARG, MPI_Session_init(MPI_INFO_NULL, handler, nullptr));
    CHECK_EQ(called, 2);
    CHECK_EQ(last, MPI_SESSION_NULL);
  }
  MPI(MPI_Info_free(&info));

  MPI_Session session = open(of_session);
  MPI_Group group = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  MPI(MPI_Group_from_session_pset(session, "mpi://SELF", &group));
  MPI(MPI_Group_from_session_pset(session, "mpi://WORLD", &world));
  const std::string long_tag(MPI_MAX_STRINGTAG_LEN, 't');
  int wanted = 0;
  for (MPI_Errhandler handler : {of_comm, static_cast<MPI_Errhandler>(MPI_ERRORS_RETURN)}) {
    MPI_Comm none = MPI_COMM_WORLD;
    const auto make = [handler](MPI_Group from, const char* tag, MPI_Comm* to) {
      return MPI_Comm_create_from_group(from, tag, MPI_INFO_NULL, handler, to);
    };
    EXPECT_CLASS(MPI_ERR_ARG, make(group, "a", nullptr));
    EXPECT_CLASS(MPI_ERR_GROUP, make(MPI_GROUP_NULL, "a", &none));
    CHECK_EQ(none, MPI_COMM_NULL);
    EXPECT_CLASS(MPI_ERR_ARG, make(group, nullptr, &none));
    EXPECT_CLASS(MPI_ERR_ARG, make(group, long_tag.c_str(), &none));
    if (wanted == 0) wanted = 4;
    CHECK_EQ(called_for_comm, wanted);
    if (check::size > 1) {
      MPI_Group others = MPI_GROUP_NULL;
      MPI(MPI_Group_difference(world, group, &others));
      EXPECT_CLASS(MPI_ERR_GROUP, make(others, "a", &none));
      MPI(MPI_Group_free(&others));
      if (wanted == 4) wanted = 5;
      CHECK_EQ(called_for_comm, wanted);
    }
  }
  CHECK_EQ(called, 2);
  MPI(MPI_Group_free(&group));
  MPI(MPI_Group_free(&world));
  close(session);
  MPI(MPI_Errhandler_free(&of_session));
  MPI(MPI_Errhandler_free(&of_comm));
}

// Buffered sends in a session's communicators use its buffer, until one of their own is attached.
void buffers() {
  MPI_Session session = open();
  MPI_Comm comm = comm_of(session, "mpi://SELF", "buffers"), part = MPI_COMM_NULL;
  MPI(MPI_Comm_split(comm, 0, 0, &part));
  int number = 7, got = 0;
  EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Bsend(&number, 1, MPI_INT, 0, 1, comm));
  std::vector<char> memory(1000 + MPI_BSEND_OVERHEAD);
  MPI(MPI_Session_attach_buffer(session, memory.data(), static_cast<int>(memory.size())));
  EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Session_attach_buffer(session, memory.data(), 10));
  for (MPI_Comm on : {comm, part}) {
    MPI(MPI_Bsend(&number, 1, MPI_INT, 0, 1, on));
    MPI(MPI_Recv(&got, 1, MPI_INT, 0, 1, on, MPI_STATUS_IGNORE));
    CHECK_EQ(got, 7);
  }
  MPI(MPI_Session_flush_buffer(session));
  MPI_Request request = MPI_REQUEST_NULL;
  MPI(MPI_Session_iflush_buffer(session, &request));
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  void* back = nullptr;
  MPI_Count size = 0;
  MPI(MPI_Session_detach_buffer_c(session, &back, &size));
  CHECK_EQ(back, static_cast<void*>(memory.data()));
  CHECK_EQ(size, memory.size());
  EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Session_detach_buffer_c(session, &back, &size));
  MPI(MPI_Session_attach_buffer_c(session, MPI_BUFFER_AUTOMATIC, 0));
  MPI(MPI_Bsend(&number, 1, MPI_INT, 0, 2, part));
  MPI(MPI_Recv(&got, 1, MPI_INT, 0, 2, part, MPI_STATUS_IGNORE));
  MPI(MPI_Comm_free(&part));
  MPI(MPI_Comm_free(&comm));
  close(session);  // detaches
}

void expect_flags(int initialized, int finalized) {
  int flag = -1;
  MPI(MPI_Initialized(&flag));
  CHECK_EQ(flag, initialized);
  MPI(MPI_Finalized(&flag));
  CHECK_EQ(flag, finalized);
}

void all_cases() {
  sets();
  names_of_sets();
  groups_and_tags();
  several();
  handlers();
  handlers_of_makers();
  buffers();
}

}  // namespace

int main(int argc, char** argv) {
  std::string only;
  bool list = false;
  check::parse(argc, argv, only, list);
  const bool with_world = !check::words.empty() && check::words[0] == "with-world";
  expect_flags(0, 0);
  all_cases();
  expect_flags(0, 0);
  if (with_world) {
    MPI_Session session = open();
    MPI_Comm comm = comm_of(session, "mpi://WORLD", "around");
    int level = -1;
    MPI(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level));
    CHECK_EQ(level, MPI_THREAD_SERIALIZED);
    MPI_Session beside = open();
    CHECK_EQ(level_of(beside), "MPI_THREAD_SERIALIZED");
    close(beside);
    CHECK_EQ(level_of(session), "MPI_THREAD_SINGLE");
    expect_flags(1, 0);
    expect_sum(MPI_COMM_WORLD);
    expect_sum(comm);
    level_of_world = "MPI_THREAD_SERIALIZED";
    all_cases();
    level_of_world = "MPI_THREAD_SINGLE";
    MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MPI_Session null = MPI_SESSION_NULL;
    MPI(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    EXPECT_CLASS(MPI_ERR_SESSION, MPI_Session_finalize(&null));
    MPI_Session stale = session;
    MPI(MPI_Finalize());
    expect_flags(1, 1);
    expect_sum(comm);
    MPI(MPI_Comm_free(&comm));
    close(stale);
    all_cases();
  }
  if (check::rank == 0) printf("ok sessions%s\n", with_world ? " with a world" : "");
  return 0;
}
