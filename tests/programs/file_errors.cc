// What calls on files must refuse, and what the system refuses: each has its class, nothing is lost
// without a word, and the file goes on to be usable.
#include <signal.h>
#include <sys/resource.h>

#include "file_model.h"

namespace {

using namespace files;

constexpr int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;

int open_class(const std::string& name, int amode) {
  MPI_File file = MPI_FILE_NULL;
  const int code = MPI_File_open(MPI_COMM_WORLD, name.c_str(), amode, MPI_INFO_NULL, &file);
  if (code == MPI_SUCCESS) MPI(MPI_File_close(&file));
  CHECK(file == MPI_FILE_NULL);
  return check::class_of(code);
}

void wrong_modes() {
  const std::string name = name_of("wrong");
  const int wrong[] = {0,
                       MPI_MODE_CREATE,
                       MPI_MODE_RDONLY | MPI_MODE_RDWR,
                       MPI_MODE_RDONLY | MPI_MODE_CREATE,
                       MPI_MODE_RDONLY | MPI_MODE_EXCL,
                       MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL,
                       MPI_MODE_RDWR | MPI_MODE_NOCHECK,
                       -1};
  for (const int amode : wrong) CHECK_EQ(open_class(name, amode), MPI_ERR_AMODE);
  CHECK(access(name.c_str(), F_OK) != 0);
}

void wrong_names() {
  CHECK_EQ(open_class("", mode), MPI_ERR_BAD_FILE);
  CHECK_EQ(open_class("/tmp", MPI_MODE_RDONLY), MPI_ERR_BAD_FILE);
  CHECK_EQ(open_class("/tmp", mode), MPI_ERR_BAD_FILE);
  CHECK_EQ(open_class("/dev/null/file", mode), MPI_ERR_BAD_FILE);
  CHECK_EQ(open_class("/tmp/" + std::string(300, 'n'), mode), MPI_ERR_BAD_FILE);
  CHECK_EQ(open_class(name_of("none") + "/below", mode), MPI_ERR_NO_SUCH_FILE);
  const std::string pipe = name_of("pipe");
  if (check::rank == 0) CHECK(mkfifo(pipe.c_str(), 0600) == 0);
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  CHECK_EQ(open_class(pipe, MPI_MODE_RDONLY), MPI_ERR_BAD_FILE);
  CHECK_EQ(open_class(pipe, MPI_MODE_WRONLY), MPI_ERR_BAD_FILE);
  remove(pipe);
  EXPECT_CLASS(MPI_ERR_NO_SUCH_FILE,
               MPI_File_delete((name_of("none") + "-x").c_str(), MPI_INFO_NULL));
}

void permissions() {
  const std::string name = name_of("permissions");
  if (check::rank == 0) close(::open(name.c_str(), O_CREAT | O_RDWR, 0400));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  MPI_File file = open(name, MPI_MODE_RDONLY);
  char one = 'x';
  EXPECT_CLASS(MPI_ERR_READ_ONLY, MPI_File_write_at(file, 0, &one, 1, MPI_CHAR, MPI_STATUS_IGNORE));
  EXPECT_CLASS(MPI_ERR_READ_ONLY,
               MPI_File_write_at_all(file, 0, &one, 1, MPI_CHAR, MPI_STATUS_IGNORE));
  EXPECT_CLASS(MPI_ERR_READ_ONLY,
               MPI_File_write_shared(file, &one, 1, MPI_CHAR, MPI_STATUS_IGNORE));
  EXPECT_CLASS(MPI_ERR_READ_ONLY, MPI_File_set_size(file, 10));
  EXPECT_CLASS(MPI_ERR_READ_ONLY, MPI_File_preallocate(file, 10));
  MPI(MPI_File_close(&file));
  // Who may do everything is refused nothing.
  if (geteuid() != 0) CHECK_EQ(open_class(name, MPI_MODE_RDWR), MPI_ERR_ACCESS);
  if (check::rank == 0) chmod(name.c_str(), 0600);
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  file = open(name, MPI_MODE_WRONLY);
  EXPECT_CLASS(MPI_ERR_ACCESS, MPI_File_read_at(file, 0, &one, 1, MPI_CHAR, MPI_STATUS_IGNORE));
  MPI(MPI_File_close(&file));
  remove(name);
}

// One data access with one argument wrong, in every form.
void wrong_arguments() {
  const std::string name = name_of("arguments");
  MPI_File file = open(name, mode);
  int data[4] = {};
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status;
  const MPI_File none = MPI_FILE_NULL;
  EXPECT_CLASS(MPI_ERR_FILE, MPI_File_read_at(none, 0, data, 1, MPI_INT, &status));
  EXPECT_CLASS(MPI_ERR_FILE, MPI_File_iwrite(none, data, 1, MPI_INT, &request));
  EXPECT_CLASS(MPI_ERR_FILE, MPI_File_write_all(none, data, 1, MPI_INT, &status));
  EXPECT_CLASS(MPI_ERR_COUNT, MPI_File_read_at(file, 0, data, -1, MPI_INT, &status));
  EXPECT_CLASS(MPI_ERR_COUNT, MPI_File_write(file, data, -1, MPI_INT, &status));
  EXPECT_CLASS(MPI_ERR_COUNT, MPI_File_iread_shared(file, data, -1, MPI_INT, &request));
  EXPECT_CLASS(MPI_ERR_COUNT,
               MPI_File_write_at_c(file, 0, data, MPI_Count(1) << 62, MPI_INT, &status));
  EXPECT_CLASS(MPI_ERR_TYPE, MPI_File_read_at(file, 0, data, 1, MPI_DATATYPE_NULL, &status));
  EXPECT_CLASS(MPI_ERR_BUFFER, MPI_File_write_at(file, 0, nullptr, 1, MPI_INT, &status));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_File_write_at(file, -1, data, 1, MPI_INT, &status));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_File_iwrite_at(file, -5, data, 1, MPI_INT, &request));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_File_write_at_all(file, -5, data, 1, MPI_INT, &status));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_File_write_at(file, INT64_MAX, data, 1, MPI_INT, &status));
  CHECK(request == MPI_REQUEST_NULL);
  MPI_Datatype uncommitted;
  MPI(MPI_Type_contiguous(2, MPI_INT, &uncommitted));
  EXPECT_CLASS(MPI_ERR_TYPE, MPI_File_write_at(file, 0, data, 1, uncommitted, &status));
  EXPECT_CLASS(MPI_ERR_TYPE,
               MPI_File_set_view(file, 0, MPI_INT, uncommitted, "native", MPI_INFO_NULL));
  MPI(MPI_Type_free(&uncommitted));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_File_seek(file, 0, 17));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_File_seek(file, -1, MPI_SEEK_SET));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_File_seek(file, -1, MPI_SEEK_CUR));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_File_seek(file, INT64_MIN, MPI_SEEK_END));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_File_seek_shared(file, -1, MPI_SEEK_SET));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_File_seek_shared(file, 0, -17));
  MPI_Offset offset = 0;
  EXPECT_CLASS(MPI_ERR_ARG, MPI_File_get_byte_offset(file, -1, &offset));
  if (check::size > 1) {
    EXPECT_CLASS(MPI_ERR_NOT_SAME, MPI_File_seek_shared(file, check::rank, MPI_SEEK_SET));
  }
  MPI(MPI_File_get_size(file, &offset));
  CHECK_EQ(offset, 0);  // nothing was written
  MPI(MPI_File_close(&file));
  remove(name);
}

// Wrong on one rank of a collective access: that one is told, and the others' data is written.
void wrong_on_one() {
  const std::string name = name_of("wrong-on-one");
  MPI_File file = open(name, mode);
  const bool wrong = check::rank == 0;
  const MPI_Datatype type = wrong ? MPI_DATATYPE_NULL : MPI_INT;
  const int number = 1000 + check::rank;
  const auto expect = [&](int code) {
    CHECK_EQ(check::class_of(code), wrong ? MPI_ERR_TYPE : MPI_SUCCESS);
  };
  for (int turn = 0; turn < 3; ++turn) {
    const MPI_Offset at = MPI_Offset(4) * (turn * check::size + check::rank);
    MPI_Request request = MPI_REQUEST_NULL;
    if (turn == 0) {
      expect(MPI_File_write_at_all(file, at, &number, 1, type, MPI_STATUS_IGNORE));
    } else if (turn == 1) {
      expect(MPI_File_iwrite_at_all(file, at, &number, 1, type, &request));
      if (!wrong) MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
      expect(MPI_File_write_at_all_begin(file, at, &number, 1, type));
      if (!wrong) MPI(MPI_File_write_at_all_end(file, &number, MPI_STATUS_IGNORE));
    }
    int found = 0;
    if (!wrong) {
      MPI(MPI_File_read_at(file, at, &found, 1, MPI_INT, MPI_STATUS_IGNORE));
      CHECK_EQ(found, number);
    }
  }
  // In an ordered one it has no part.
  MPI(MPI_File_seek_shared(file, 10000, MPI_SEEK_SET));
  expect(MPI_File_write_ordered(file, &number, 1, type, MPI_STATUS_IGNORE));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  MPI_Offset at = 0;
  MPI(MPI_File_get_position_shared(file, &at));
  CHECK_EQ(at, 10000 + 4 * (check::size - 1));
  MPI(MPI_File_close(&file));
  remove(name);
}

void wrong_views() {
  const std::string name = name_of("wrong-views");
  MPI_File file = open(name, mode);
  const auto set = [&](MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype type,
                       const char* representation) {
    return check::class_of(
        MPI_File_set_view(file, displacement, etype, type, representation, MPI_INFO_NULL));
  };
  CHECK_EQ(set(-2, MPI_BYTE, MPI_BYTE, "native"), MPI_ERR_ARG);
  CHECK_EQ(set(MPI_DISPLACEMENT_CURRENT, MPI_BYTE, MPI_BYTE, "native"), MPI_ERR_ARG);
  CHECK_EQ(set(0, MPI_DATATYPE_NULL, MPI_BYTE, "native"), MPI_ERR_TYPE);
  CHECK_EQ(set(0, MPI_BYTE, MPI_DATATYPE_NULL, "native"), MPI_ERR_TYPE);
  CHECK_EQ(set(0, MPI_BYTE, MPI_BYTE, "upside down"), MPI_ERR_UNSUPPORTED_DATAREP);
  CHECK_EQ(set(0, MPI_INT, MPI_SHORT, "native"), MPI_ERR_TYPE);  // no whole etype
  const auto indexed = [](std::vector<int> lengths, std::vector<int> places) {
    MPI_Datatype type;
    MPI(MPI_Type_indexed(int(lengths.size()), lengths.data(), places.data(), MPI_INT, &type));
    MPI(MPI_Type_commit(&type));
    return type;
  };
  MPI_Datatype back = indexed({1, 1}, {4, 0}), twice = indexed({2, 2}, {0, 1}),
               before = indexed({1}, {-1});
  CHECK_EQ(set(0, MPI_INT, back, "native"), MPI_ERR_TYPE);
  CHECK_EQ(set(0, MPI_INT, twice, "native"), MPI_ERR_TYPE);
  CHECK_EQ(set(0, MPI_INT, before, "native"), MPI_ERR_TYPE);
  // Wrong on one rank: nobody's view changes.
  const int got = set(8, MPI_INT, check::rank == 0 ? back : MPI_INT, "native");
  CHECK_EQ(got, check::rank == 0 ? MPI_ERR_TYPE : MPI_ERR_ARG);
  if (check::size > 1) {
    CHECK_EQ(set(0, check::rank ? MPI_INT : MPI_SHORT, check::rank ? MPI_INT : MPI_SHORT, "native"),
             MPI_ERR_NOT_SAME);
  }
  MPI_Offset displacement = -1;
  MPI_Datatype etype, type;
  char representation[MPI_MAX_DATAREP_STRING];
  MPI(MPI_File_get_view(file, &displacement, &etype, &type, representation));
  CHECK_EQ(displacement, 0);
  CHECK(etype == MPI_BYTE && type == MPI_BYTE);
  // Half an etype.
  MPI(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  char bytes[6] = {};
  EXPECT_CLASS(MPI_ERR_ARG, MPI_File_write_at(file, 0, bytes, 6, MPI_BYTE, MPI_STATUS_IGNORE));
  for (MPI_Datatype* one : {&back, &twice, &before}) MPI(MPI_Type_free(one));
  MPI(MPI_File_close(&file));
  remove(name);
}

void split_calls() {
  const std::string name = name_of("split");
  MPI_File file = open(name, mode);
  int data[2] = {1, 2}, other[2];
  MPI_Status status;
  EXPECT_CLASS(MPI_ERR_OTHER, MPI_File_write_all_end(file, data, &status));
  MPI(MPI_File_write_all_begin(file, data, 2, MPI_INT));
  EXPECT_CLASS(MPI_ERR_OTHER, MPI_File_write_all_begin(file, data, 2, MPI_INT));
  EXPECT_CLASS(MPI_ERR_OTHER, MPI_File_read_at_all(file, 0, other, 2, MPI_INT, &status));
  EXPECT_CLASS(MPI_ERR_OTHER, MPI_File_write_at_all_end(file, data, &status));
  EXPECT_CLASS(MPI_ERR_OTHER, MPI_File_read_all_end(file, data, &status));
  EXPECT_CLASS(MPI_ERR_BUFFER, MPI_File_write_all_end(file, other, &status));
  EXPECT_CLASS(MPI_ERR_OTHER, MPI_File_set_size(file, 10));
  MPI_File copy = file;
  EXPECT_CLASS(MPI_ERR_OTHER, MPI_File_close(&copy));
  // What is not collective goes on beside it.
  MPI(MPI_File_write_at(file, 1000 + 8 * check::rank, data, 2, MPI_INT, &status));
  MPI(MPI_File_write_all_end(file, data, &status));
  expect_count(status, sizeof data, __LINE__);
  EXPECT_CLASS(MPI_ERR_OTHER, MPI_File_write_all_end(file, data, &status));
  // Begun in one form, ended in the other.
  MPI(MPI_File_seek(file, 0, MPI_SEEK_SET));
  MPI(MPI_File_read_all_begin_c(file, other, 2, MPI_INT));
  MPI(MPI_File_read_all_end(file, other, &status));
  CHECK_EQ(other[1], 2);
  MPI(MPI_File_close(&file));
  remove(name);
}

// No file is longer than that, while this lives: a disk that is full.
struct Limit {
  explicit Limit(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    rlimit now = before;
    now.rlim_cur = bytes;
    CHECK(setrlimit(RLIMIT_FSIZE, &now) == 0);
  }
  ~Limit() { setrlimit(RLIMIT_FSIZE, &before); }
  rlimit before;
};

// Whoever has data that was not written hears of it, whichever rank found out.
void full() {
  const std::string name = name_of("full");
  for (const char* buffering : {"false", "true"}) {
    MPI_Info info = info_of({{"collective_buffering", buffering}, {"cb_buffer_size", "65536"}});
    MPI_File file = open(name, mode, info);
    MPI(MPI_Info_free(&info));
    std::vector<char> data(100000, 'x');
    MPI_Datatype type;
    MPI(MPI_Type_vector(1000, 100, 100 * check::size, MPI_BYTE, &type));
    MPI(MPI_Type_commit(&type));
    MPI(MPI_File_set_view(file, 100 * check::rank, MPI_BYTE, type, "native", MPI_INFO_NULL));
    {
      const Limit limit(20000);
      MPI_Request request;
      EXPECT_CLASS(MPI_ERR_NO_SPACE, MPI_File_write_at_all(file, 0, data.data(), 100000, MPI_BYTE,
                                                           MPI_STATUS_IGNORE));
      MPI(MPI_File_iwrite_at_all(file, 0, data.data(), 100000, MPI_BYTE, &request));
      EXPECT_CLASS(MPI_ERR_NO_SPACE, MPI_Wait(&request, MPI_STATUS_IGNORE));
      MPI(MPI_File_write_at_all_begin(file, 0, data.data(), 100000, MPI_BYTE));
      EXPECT_CLASS(MPI_ERR_NO_SPACE,
                   MPI_File_write_at_all_end(file, data.data(), MPI_STATUS_IGNORE));
      EXPECT_CLASS(MPI_ERR_NO_SPACE,
                   MPI_File_write_at(file, 0, data.data(), 100000, MPI_BYTE, MPI_STATUS_IGNORE));
      MPI(MPI_File_iwrite_at(file, 0, data.data(), 100000, MPI_BYTE, &request));
      MPI_Status status;
      EXPECT_CLASS(MPI_ERR_NO_SPACE, MPI_Wait(&request, &status));
      MPI(MPI_File_iwrite_at(file, 0, data.data(), 100000, MPI_BYTE, &request));
      EXPECT_CLASS(MPI_ERR_IN_STATUS, MPI_Waitall(1, &request, &status));
      CHECK_EQ(check::class_of(status.MPI_ERROR), MPI_ERR_NO_SPACE);
      // Of a request that is freed the next sync tells.
      MPI(MPI_File_iwrite_at(file, 0, data.data(), 100000, MPI_BYTE, &request));
      if (buffering[0] == 't') {
        // Who only looks has not been told.
        for (int flag = 0; !flag;) MPI(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE));
      }
      MPI(MPI_Request_free(&request));
      int told = MPI_ERR_NO_SPACE - 1;
      const double until = MPI_Wtime() + 10;
      while (told != MPI_ERR_NO_SPACE && MPI_Wtime() < until)
        told = check::class_of(MPI_File_sync(file));
      CHECK_EQ(told, MPI_ERR_NO_SPACE);
      MPI(MPI_Barrier(MPI_COMM_WORLD));
      // What has room is written as if nothing had been.
      MPI(MPI_File_write_at_all(file, 0, data.data(), 100, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    MPI(MPI_File_write_at_all(file, 0, data.data(), 100000, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI(MPI_File_close(&file));
    expect_contents(name, std::vector<uint8_t>(size_t(100000 * check::size), 'x'), __LINE__);
    remove(name);
    MPI(MPI_Type_free(&type));
  }
}

// A device that is always full.
void full_device() {
  MPI_File file = files::open("/dev/full", MPI_MODE_WRONLY);
  char data[100] = {};
  MPI_Request request;
  EXPECT_CLASS(MPI_ERR_NO_SPACE,
               MPI_File_write_at(file, 0, data, 100, MPI_BYTE, MPI_STATUS_IGNORE));
  EXPECT_CLASS(MPI_ERR_NO_SPACE,
               MPI_File_write_at_all(file, 0, data, 100, MPI_BYTE, MPI_STATUS_IGNORE));
  MPI(MPI_File_iwrite_at(file, 0, data, 100, MPI_BYTE, &request));
  EXPECT_CLASS(MPI_ERR_NO_SPACE, MPI_Wait(&request, MPI_STATUS_IGNORE));
  MPI(MPI_File_close(&file));
}

// Taken away while it is open: it goes on, without a name, and a delete at the close finds none.
void removed_under_way() {
  const std::string name = name_of("removed");
  MPI_File file = open(name, mode | MPI_MODE_DELETE_ON_CLOSE);
  remove(name);
  const int number = 17 + check::rank;
  int found = 0;
  MPI(MPI_File_write_at_all(file, 4 * check::rank, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
  MPI(MPI_File_read_at_all(file, 4 * check::rank, &found, 1, MPI_INT, MPI_STATUS_IGNORE));
  CHECK_EQ(found, number);
  EXPECT_CLASS(MPI_ERR_NO_SUCH_FILE, MPI_File_close(&file));
  CHECK(file == MPI_FILE_NULL);
}

// One rank writes, the others read, in what should be one collective call: nothing is written.
void crossed() {
  const std::string name = name_of("crossed");
  MPI_Info info = info_of({{"collective_buffering", "true"}});
  MPI_File file = open(name, mode, info);
  MPI(MPI_Info_free(&info));
  MPI_Datatype type;
  MPI(MPI_Type_vector(100, 10, 10 * check::size, MPI_BYTE, &type));
  MPI(MPI_Type_commit(&type));
  MPI(MPI_File_set_view(file, 10 * check::rank, MPI_BYTE, type, "native", MPI_INFO_NULL));
  char data[1000] = {};
  EXPECT_CLASS(MPI_ERR_NOT_SAME,
               check::rank == 0
                   ? MPI_File_write_at_all(file, 0, data, 1000, MPI_BYTE, MPI_STATUS_IGNORE)
                   : MPI_File_read_at_all(file, 0, data, 1000, MPI_BYTE, MPI_STATUS_IGNORE));
  MPI_Offset size = -1;
  MPI(MPI_File_get_size(file, &size));
  CHECK_EQ(size, 0);
  MPI(MPI_Type_free(&type));
  MPI(MPI_File_close(&file));
  remove(name);
}

// A handler that says to go on is asked once for each error, with requests too.
int asked;
void on_error(MPI_File*, int*, ...) { ++asked; }

void told_once() {
  const std::string name = name_of("once");
  MPI_File file = open(name, mode);
  MPI_Errhandler handler;
  MPI(MPI_File_create_errhandler(on_error, &handler));
  MPI(MPI_File_set_errhandler(file, handler));
  MPI(MPI_Errhandler_free(&handler));
  std::vector<char> data(100000, 'x');
  {
    const Limit limit(10);
    MPI_Request requests[2];
    asked = 0;
    EXPECT_CLASS(MPI_ERR_NO_SPACE,
                 MPI_File_write_at(file, 0, data.data(), 100000, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK_EQ(asked, 1);
    MPI(MPI_File_iwrite_at(file, 0, data.data(), 100000, MPI_BYTE, &requests[0]));
    EXPECT_CLASS(MPI_ERR_NO_SPACE, MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    CHECK_EQ(asked, 2);
    for (MPI_Request& request : requests)
      MPI(MPI_File_iwrite_at(file, 0, data.data(), 100000, MPI_BYTE, &request));
    EXPECT_CLASS(MPI_ERR_IN_STATUS, MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK_EQ(asked, 3);
  }
  MPI(MPI_File_close(&file));
  remove(name);
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"wrong_modes", wrong_modes},
                      {"wrong_names", wrong_names},
                      {"permissions", permissions},
                      {"wrong_arguments", wrong_arguments},
                      {"wrong_on_one", wrong_on_one, 2},
                      {"wrong_views", wrong_views},
                      {"split_calls", split_calls},
                      {"full", full},
                      {"full_device", full_device},
                      {"removed_under_way", removed_under_way},
                      {"crossed", crossed, 2},
                      {"told_once", told_once}});
}
