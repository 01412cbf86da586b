// Opening and closing files: modes, hints, sizes, groups, deleting; what happens where one rank
// cannot; error handlers; atomic mode.
#include <memory>

#include "file_model.h"

namespace {

using namespace files;

constexpr int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;

bool exists(const std::string& name) { return access(name.c_str(), F_OK) == 0; }

void modes() {
  const std::string name = name_of("modes");
  remove(name);
  MPI_File file = MPI_FILE_NULL;
  EXPECT_CLASS(MPI_ERR_NO_SUCH_FILE,
               MPI_File_open(MPI_COMM_WORLD, name.c_str(), MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  CHECK(file == MPI_FILE_NULL);
  file = open(name, mode | MPI_MODE_EXCL);
  MPI(MPI_File_close(&file));
  CHECK(exists(name));
  EXPECT_CLASS(MPI_ERR_FILE_EXISTS, MPI_File_open(MPI_COMM_WORLD, name.c_str(),
                                                  mode | MPI_MODE_EXCL, MPI_INFO_NULL, &file));
  file = open(name, MPI_MODE_RDWR | MPI_MODE_UNIQUE_OPEN | MPI_MODE_DELETE_ON_CLOSE);
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  CHECK(exists(name));
  MPI(MPI_File_close(&file));
  CHECK(!exists(name));
  EXPECT_CLASS(MPI_ERR_NO_SUCH_FILE, MPI_File_delete(name.c_str(), MPI_INFO_NULL));
}

// One rank names another file, or another mode: nobody has a file then.
void differences() {
  const std::string name = name_of("differ");
  const std::string own = check::rank == check::size - 1 ? name + "-other" : name;
  MPI_File file = MPI_FILE_NULL;
  int got = check::class_of(MPI_File_open(MPI_COMM_WORLD, own.c_str(), mode, MPI_INFO_NULL, &file));
  // The last rank's file is not there, unless it is the first.
  CHECK(got == MPI_ERR_NO_SUCH_FILE || got == MPI_ERR_NOT_SAME);
  CHECK(file == MPI_FILE_NULL);
  const int other = check::rank == 1 ? MPI_MODE_RDONLY : MPI_MODE_RDWR;
  if (check::rank == 0) close(::open(name.c_str(), O_CREAT | O_RDWR, 0600));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  EXPECT_CLASS(MPI_ERR_NOT_SAME,
               MPI_File_open(MPI_COMM_WORLD, name.c_str(), other, MPI_INFO_NULL, &file));
  CHECK(file == MPI_FILE_NULL);
  // Wrong arguments on one rank.
  const int wrong = check::rank == 1 ? MPI_MODE_RDWR | MPI_MODE_WRONLY : MPI_MODE_RDWR;
  got = check::class_of(MPI_File_open(MPI_COMM_WORLD, name.c_str(), wrong, MPI_INFO_NULL, &file));
  CHECK_EQ(got, check::rank == 1 ? MPI_ERR_AMODE : MPI_ERR_ARG);
  // Another name of the same file is as good.
  const size_t slash = name.rfind('/');
  char before[4096];
  CHECK(getcwd(before, sizeof before) != nullptr);
  CHECK(chdir(name.substr(0, slash + 1).c_str()) == 0);
  const std::string as = check::rank == check::size - 1 ? name.substr(slash + 1) : name;
  file = open(as, MPI_MODE_RDWR);
  CHECK(chdir(before) == 0);
  MPI(MPI_File_close(&file));
  // And a file that is there is still another one.
  if (check::rank == 0) close(::open((name + "-other").c_str(), O_CREAT | O_RDWR, 0600));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  EXPECT_CLASS(MPI_ERR_NOT_SAME,
               MPI_File_open(MPI_COMM_WORLD, own.c_str(), MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  CHECK(file == MPI_FILE_NULL);
  remove(name + "-other");
  remove(name);
}

void sizes() {
  const std::string name = name_of("sizes");
  MPI_File file = open(name, mode);
  MPI_Offset size = -1;
  MPI(MPI_File_get_size(file, &size));
  CHECK_EQ(size, 0);
  MPI(MPI_File_set_size(file, 1000));
  MPI(MPI_File_get_size(file, &size));
  CHECK_EQ(size, 1000);
  MPI(MPI_File_preallocate(file, 500));
  MPI(MPI_File_get_size(file, &size));
  CHECK_EQ(size, 1000);
  MPI(MPI_File_preallocate(file, 100000));
  MPI(MPI_File_get_size(file, &size));
  CHECK_EQ(size, 100000);
  MPI(MPI_File_set_size(file, 10));
  MPI(MPI_File_get_size(file, &size));
  CHECK_EQ(size, 10);
  MPI(MPI_File_sync(file));
  if (check::size > 1) {
    EXPECT_CLASS(MPI_ERR_NOT_SAME, MPI_File_set_size(file, 10 + check::rank));
  }
  const int got = check::class_of(MPI_File_set_size(file, check::rank == 0 ? -1 : 5));
  CHECK_EQ(got, MPI_ERR_ARG);
  MPI(MPI_File_get_size(file, &size));
  CHECK_EQ(size, 10);
  MPI(MPI_File_close(&file));
  remove(name);
}

std::string hint(MPI_File file, const char* key) {
  MPI_Info info;
  MPI(MPI_File_get_info(file, &info));
  char value[MPI_MAX_INFO_VAL] = "";
  int length = sizeof value, flag = 0;
  MPI(MPI_Info_get_string(info, key, &length, value, &flag));
  MPI(MPI_Info_free(&info));
  return flag ? value : "(none)";
}

void hints() {
  const std::string name = name_of("hints");
  MPI_Info info = info_of({{"cb_buffer_size", "200000"},
                           {"cb_nodes", "2"},
                           {"collective_buffering", "true"},
                           {"file_perm", "0640"},
                           {"no_such_hint", "at all"}});
  const mode_t mask = umask(0);
  MPI_File file = open(name, mode, info);
  umask(mask);
  CHECK_EQ(hint(file, "cb_buffer_size"), std::string("196608"));  // whole pages
  CHECK_EQ(hint(file, "cb_nodes"), std::string("2"));
  CHECK_EQ(hint(file, "collective_buffering"), std::string("true"));
  CHECK_EQ(hint(file, "file_perm"), std::string("0640"));
  CHECK_EQ(hint(file, "filename"), name);
  CHECK_EQ(hint(file, "no_such_hint"), std::string("(none)"));
  struct stat about;
  CHECK(stat(name.c_str(), &about) == 0);
  CHECK_EQ(about.st_mode & 07777, 0640u);
  // Values that make no sense change nothing.
  MPI_Info wrong = info_of({{"cb_buffer_size", "many"},
                            {"cb_nodes", "-1"},
                            {"collective_buffering", "maybe"},
                            {"file_perm", "rw-r--r--"}});
  MPI(MPI_File_set_info(file, wrong));
  CHECK_EQ(hint(file, "cb_buffer_size"), std::string("196608"));
  CHECK_EQ(hint(file, "cb_nodes"), std::string("2"));
  CHECK_EQ(hint(file, "collective_buffering"), std::string("true"));
  MPI(MPI_Info_set(wrong, "collective_buffering", "false"));
  MPI(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", wrong));
  CHECK_EQ(hint(file, "collective_buffering"), std::string("false"));
  MPI(MPI_Info_free(&wrong));
  MPI(MPI_Info_free(&info));
  MPI(MPI_File_close(&file));
  remove(name);
}

int handler_calls;
MPI_File handler_file;
int handler_code;
void on_error(MPI_File* file, int* code, ...) {
  ++handler_calls;
  handler_file = *file;
  handler_code = *code;
}

void never_called(MPI_Comm*, int*, ...) { CHECK(false); }

void handlers() {
  const std::string name = name_of("handlers");
  MPI_File file = open(name, mode);
  MPI_Errhandler handler, found;
  MPI(MPI_File_get_errhandler(file, &found));
  CHECK(found == MPI_ERRORS_RETURN);  // the default of files
  MPI(MPI_File_create_errhandler(on_error, &handler));
  MPI(MPI_File_set_errhandler(file, handler));
  handler_calls = 0;
  char one = 0;
  EXPECT_CLASS(MPI_ERR_ARG, MPI_File_read_at(file, -1, &one, 1, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK_EQ(handler_calls, 1);
  CHECK(handler_file == file);
  CHECK_EQ(check::class_of(handler_code), MPI_ERR_ARG);
  MPI(MPI_File_call_errhandler(file, MPI_ERR_OTHER));
  CHECK_EQ(handler_calls, 2);
  CHECK_EQ(handler_code, MPI_ERR_OTHER);
  MPI(MPI_File_get_errhandler(file, &found));
  CHECK(found == handler);
  MPI(MPI_Errhandler_free(&found));
  // MPI_FILE_NULL's is that of files that are opened from now on, and of calls on none.
  MPI(MPI_File_set_errhandler(MPI_FILE_NULL, handler));
  MPI_File other = MPI_FILE_NULL;
  EXPECT_CLASS(MPI_ERR_NO_SUCH_FILE, MPI_File_open(MPI_COMM_WORLD, (name + "-none").c_str(),
                                                   MPI_MODE_RDONLY, MPI_INFO_NULL, &other));
  CHECK_EQ(handler_calls, 3);
  CHECK(handler_file == MPI_FILE_NULL);
  EXPECT_CLASS(MPI_ERR_FILE, MPI_File_sync(MPI_FILE_NULL));
  CHECK_EQ(handler_calls, 4);
  MPI(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
  EXPECT_CLASS(MPI_ERR_ERRHANDLER, MPI_File_set_errhandler(file, MPI_ERRHANDLER_NULL));
  CHECK_EQ(handler_calls, 5);
  MPI_Errhandler of_comm;
  MPI(MPI_Comm_create_errhandler(never_called, &of_comm));
  EXPECT_CLASS(MPI_ERR_ERRHANDLER, MPI_File_set_errhandler(file, of_comm));
  MPI(MPI_Errhandler_free(&of_comm));
  MPI(MPI_Errhandler_free(&handler));
  MPI_File copy = file;
  MPI(MPI_File_close(&file));
  EXPECT_CLASS(MPI_ERR_FILE, MPI_File_sync(copy));
  EXPECT_CLASS(MPI_ERR_FILE, MPI_File_close(&copy));
  remove(name);
}

// Whole blocks of one value: in atomic mode nobody sees two values in one.
void atomic() {
  const std::string name = name_of("atomic");
  MPI_File file = open(name, mode);
  int flag = -1;
  MPI(MPI_File_get_atomicity(file, &flag));
  CHECK_EQ(flag, 0);
  MPI(MPI_File_set_atomicity(file, 1));
  MPI(MPI_File_get_atomicity(file, &flag));
  CHECK_EQ(flag, 1);
  if (check::size > 1) {
    EXPECT_CLASS(MPI_ERR_NOT_SAME, MPI_File_set_atomicity(file, check::rank == 0));
  }
  // With gaps, so that one access is many calls of the system.
  constexpr int blocks = 300, block = 40;
  MPI_Datatype type;
  MPI(MPI_Type_vector(blocks, block, 2 * block, MPI_BYTE, &type));
  MPI(MPI_Type_commit(&type));
  MPI(MPI_File_set_view(file, 0, MPI_BYTE, type, "native", MPI_INFO_NULL));
  std::vector<uint8_t> data(size_t(blocks * block), 0);
  MPI(MPI_File_write_at_all(file, 0, data.data(), int(data.size()), MPI_BYTE, MPI_STATUS_IGNORE));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  Random own(check::key_of(check::seed, 900, uint64_t(check::rank)));
  for (uint64_t round = 0; round < 30 * check::scale; ++round) {
    if (own.chance(50)) {
      data.assign(data.size(), uint8_t(1 + own.below(250)));
      MPI_Request request;
      if (own.chance(30)) {
        MPI(MPI_File_iwrite_at(file, 0, data.data(), int(data.size()), MPI_BYTE, &request));
        MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
      } else {
        MPI(MPI_File_write_at(file, 0, data.data(), int(data.size()), MPI_BYTE, MPI_STATUS_IGNORE));
      }
    } else {
      MPI(MPI_File_read_at(file, 0, data.data(), int(data.size()), MPI_BYTE, MPI_STATUS_IGNORE));
      for (uint8_t one : data) CHECK_EQ(one, data[0]);
    }
  }
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  MPI(MPI_File_set_atomicity(file, 0));
  MPI(MPI_Type_free(&type));
  MPI(MPI_File_close(&file));
  remove(name);
}

// Files of several communicators at once, and one that is opened twice.
void several() {
  const std::string name = name_of("several") + "-" + std::to_string(check::rank);
  MPI_File own = open(name, mode, MPI_INFO_NULL, MPI_COMM_SELF);
  MPI_File twice = open(name, mode | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, MPI_COMM_SELF);
  MPI_Comm half;
  MPI(MPI_Comm_split(MPI_COMM_WORLD, check::rank % 2, -check::rank, &half));
  const std::string shared = name_of("half") + "-" + std::to_string(check::rank % 2);
  MPI_File of_half = open(shared, mode | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, half);
  int rank = 0, size = 0;
  MPI(MPI_Comm_rank(half, &rank));
  MPI(MPI_Comm_size(half, &size));
  MPI(MPI_Comm_free(&half));  // the file goes on without it
  MPI(MPI_File_write_at(own, 0, &check::rank, 1, MPI_INT, MPI_STATUS_IGNORE));
  int found = -1;
  MPI(MPI_File_read_at(twice, 0, &found, 1, MPI_INT, MPI_STATUS_IGNORE));
  CHECK_EQ(found, check::rank);
  MPI(MPI_File_write_ordered(of_half, &check::rank, 1, MPI_INT, MPI_STATUS_IGNORE));
  MPI(MPI_File_sync(of_half));
  MPI(MPI_File_read_at_all(of_half, 4 * rank, &found, 1, MPI_INT, MPI_STATUS_IGNORE));
  CHECK_EQ(found, check::rank);
  MPI(MPI_File_close(&of_half));
  MPI(MPI_File_close(&own));
  MPI(MPI_File_close(&twice));
  CHECK(!exists(name));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  CHECK(!exists(shared));
  // Handles as integers.
  own = open(name, mode | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, MPI_COMM_SELF);
  CHECK(MPI_File_fromint(MPI_File_toint(own)) == own);
  MPI(MPI_File_close(&own));
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"modes", modes},
                      {"differences", differences, 2},
                      {"sizes", sizes},
                      {"hints", hints},
                      {"handlers", handlers},
                      {"atomic", atomic},
                      {"several", several}});
}
