// Shared file pointers: each record in one place and none lost, whoever comes when; ordered access;
// places that are asked for and set; files of MPI_MODE_SEQUENTIAL.
#include <set>

#include "file_model.h"

namespace {

using namespace files;

constexpr int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;

// A record of 16 bytes names who has written it, and when.
struct Record {
  int rank, number, mark, rest;
};
Record record_of(int rank, int number) { return {rank, number, rank * 1000003 + number, 7}; }

MPI_File open_records(const std::string& name, MPI_Datatype& type) {
  MPI_File file = open(name, mode);
  MPI(MPI_Type_contiguous(4, MPI_INT, &type));
  MPI(MPI_Type_commit(&type));
  MPI(MPI_File_set_view(file, 0, type, type, "native", MPI_INFO_NULL));
  return file;
}

// Every record is there once, and those of one rank in its own order if they were blocking.
void expect_records(const std::string& name, const std::vector<int>& counts, bool in_order = true) {
  const std::vector<uint8_t> bytes = contents(name);
  size_t wanted = 0;
  for (int count : counts) wanted += size_t(count);
  CHECK_EQ(bytes.size(), wanted * sizeof(Record));
  std::vector<int> next(size_t(check::size), 0);
  std::set<std::pair<int, int>> seen;
  for (size_t at = 0; at < wanted; ++at) {
    Record record;
    memcpy(&record, bytes.data() + at * sizeof record, sizeof record);
    CHECK(record.rank >= 0 && record.rank < check::size);
    CHECK_EQ(record.mark, record_of(record.rank, record.number).mark);
    if (in_order) CHECK_EQ(record.number, next[size_t(record.rank)]);
    ++next[size_t(record.rank)];
    CHECK(seen.insert({record.rank, record.number}).second);
  }
  for (int rank = 0; rank < check::size; ++rank) CHECK_EQ(next[size_t(rank)], counts[size_t(rank)]);
}

void writes() {
  const std::string name = name_of("shared");
  MPI_Datatype type;
  MPI_File file = open_records(name, type);
  std::vector<int> counts;
  for (int rank = 0; rank < check::size; ++rank) counts.push_back(50 + 13 * rank);
  for (int number = 0; number < counts[size_t(check::rank)]; ++number) {
    const Record record = record_of(check::rank, number);
    MPI_Status status;
    MPI(MPI_File_write_shared(file, &record, 1, type, &status));
    expect_count(status, sizeof record, __LINE__);
  }
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  expect_records(name, counts);
  MPI_Offset at = 0;
  MPI(MPI_File_get_position_shared(file, &at));
  size_t all = 0;
  for (int count : counts) all += size_t(count);
  CHECK_EQ(at, MPI_Offset(all));
  // Each is read once.
  MPI(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  int found = 0;
  for (;;) {
    Record record;
    MPI_Status status;
    MPI(MPI_File_read_shared(file, &record, 1, type, &status));
    int count = 0;
    MPI(MPI_Get_count(&status, type, &count));
    if (count == 0) break;
    CHECK_EQ(record.mark, record_of(record.rank, record.number).mark);
    ++found;
  }
  int sum = 0;
  MPI(MPI_Allreduce(&found, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK_EQ(size_t(sum), all);
  MPI(MPI_Type_free(&type));
  MPI(MPI_File_close(&file));
  remove(name);
}

void nonblocking() {
  const std::string name = name_of("ishared");
  MPI_Datatype type;
  MPI_File file = open_records(name, type);
  constexpr int many = 40;
  std::vector<Record> records;
  for (int number = 0; number < many; ++number) records.push_back(record_of(check::rank, number));
  std::vector<MPI_Request> requests(many);
  for (int number = 0; number < many; ++number) {
    MPI(MPI_File_iwrite_shared(file, &records[size_t(number)], 1, type, &requests[size_t(number)]));
  }
  MPI(MPI_Waitall(many, requests.data(), MPI_STATUSES_IGNORE));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  expect_records(name, std::vector<int>(size_t(check::size), many), false);
  MPI(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  std::vector<Record> back(many);
  for (int number = 0; number < many; ++number) {
    MPI(MPI_File_iread_shared(file, &back[size_t(number)], 1, type, &requests[size_t(number)]));
  }
  std::vector<MPI_Status> statuses(many);
  MPI(MPI_Waitall(many, requests.data(), statuses.data()));
  std::vector<int> seen(size_t(many * check::size)), all(seen.size());
  for (int number = 0; number < many; ++number) {
    expect_count(statuses[size_t(number)], sizeof(Record), __LINE__);
    const Record& record = back[size_t(number)];
    CHECK_EQ(record.mark, record_of(record.rank, record.number).mark);
    ++seen[size_t(record.rank * many + record.number)];
  }
  MPI(MPI_Allreduce(seen.data(), all.data(), int(all.size()), MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  for (int times : all) CHECK_EQ(times, 1);
  MPI(MPI_Type_free(&type));
  MPI(MPI_File_close(&file));
  remove(name);
}

// The first rank has the pointer and computes: the others go on all the same.
void first_rank_computes() {
  const std::string name = name_of("computes");
  MPI_Datatype type;
  MPI_File file = open_records(name, type);
  std::vector<int> counts(size_t(check::size), 20);
  counts[0] = 0;
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  const double begun = MPI_Wtime();
  if (check::rank == 0) {
    volatile double work = 1;
    while (MPI_Wtime() < begun + 1.0) work = work * 1.0000001;
  } else {
    for (int number = 0; number < 20; ++number) {
      const Record record = record_of(check::rank, number);
      MPI(MPI_File_write_shared(file, &record, 1, type, MPI_STATUS_IGNORE));
    }
    const double took = MPI_Wtime() - begun;
    if (!without_progress() && took > 0.8)
      check::fail(__FILE__, __LINE__, "it took %.3f s beside a rank that computed for 1 s", took);
  }
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  expect_records(name, counts);
  // Beyond what a file can have: told, and not written somewhere else.
  MPI(MPI_File_seek_shared(file, MPI_Offset(1) << 60, MPI_SEEK_SET));
  const Record record = record_of(check::rank, 0);
  MPI_Request request;
  MPI(MPI_File_iwrite_shared(file, &record, 1, type, &request));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Wait(&request, MPI_STATUS_IGNORE));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  expect_records(name, counts);
  MPI(MPI_Type_free(&type));
  MPI(MPI_File_close(&file));
  remove(name);
}

// In the order of the ranks, with different lengths, blocking and split.
void ordered() {
  const std::string name = name_of("ordered");
  MPI_File file = open(name, mode);
  MPI(MPI_File_set_view(file, 100, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  std::vector<uint8_t> wanted(100, 0);
  Random random(check::key_of(check::seed, 800));
  for (int round = 0; round < 8; ++round) {
    std::vector<int> own;
    MPI_Offset own_at = 0;
    const size_t begin = wanted.size();
    for (int rank = 0; rank < check::size; ++rank) {
      const auto length = size_t(random.below(30));
      std::vector<int> part(length);
      for (size_t i = 0; i < length; ++i) part[i] = round * 100000 + rank * 1000 + int(i);
      if (rank == check::rank) {
        own = part;
        own_at = MPI_Offset((wanted.size() - 100) / sizeof(int));
      }
      const auto* bytes = reinterpret_cast<const uint8_t*>(part.data());
      wanted.insert(wanted.end(), bytes, bytes + length * sizeof(int));
    }
    MPI_Status status;
    if (round % 2) {
      MPI(MPI_File_write_ordered_begin(file, own.data(), int(own.size()), MPI_INT));
      MPI(MPI_File_write_ordered_end(file, own.data(), &status));
    } else {
      MPI(MPI_File_write_ordered(file, own.data(), int(own.size()), MPI_INT, &status));
    }
    expect_count(status, own.size() * sizeof(int), __LINE__);
    MPI_Offset at = 0;
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    MPI(MPI_File_get_position_shared(file, &at));
    CHECK_EQ(at, MPI_Offset((wanted.size() - 100) / sizeof(int)));
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    // Back to where this round began.
    MPI(MPI_File_seek_shared(file, MPI_Offset((begin - 100) / sizeof(int)), MPI_SEEK_SET));
    std::vector<int> back(own.size() + 1, -1);
    if (round % 2) {
      MPI(MPI_File_read_ordered(file, back.data(), int(own.size()), MPI_INT, &status));
    } else {
      MPI(MPI_File_read_ordered_begin(file, back.data(), int(own.size()), MPI_INT));
      MPI(MPI_File_read_ordered_end(file, back.data(), &status));
    }
    expect_count(status, own.size() * sizeof(int), __LINE__);
    back.resize(own.size());
    CHECK(back == own);
    (void)own_at;
  }
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  expect_contents(name, wanted, __LINE__);
  MPI(MPI_File_seek_shared(file, 0, MPI_SEEK_END));
  MPI_Offset at = 0;
  MPI(MPI_File_get_position_shared(file, &at));
  CHECK_EQ(at, MPI_Offset((wanted.size() - 100) / sizeof(int)));
  MPI(MPI_File_close(&file));
  remove(name);
}

// Files that are only appended to: all pointers begin at the end.
void appended() {
  const std::string name = name_of("append");
  MPI_File file = open(name, mode);
  if (check::rank == 0)
    MPI(MPI_File_write_at(file, 0, "0123456789", 10, MPI_CHAR, MPI_STATUS_IGNORE));
  MPI(MPI_File_close(&file));
  file = open(name, mode | MPI_MODE_APPEND);
  MPI_Offset at = 0;
  MPI(MPI_File_get_position(file, &at));
  CHECK_EQ(at, 10);
  MPI(MPI_File_get_position_shared(file, &at));
  CHECK_EQ(at, 10);
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  const char letter = char('a' + check::rank);
  MPI(MPI_File_write_ordered(file, &letter, 1, MPI_CHAR, MPI_STATUS_IGNORE));
  MPI(MPI_File_close(&file));
  std::string wanted = "0123456789";
  for (int rank = 0; rank < check::size; ++rank) wanted += char('a' + rank);
  expect_contents(name, std::vector<uint8_t>(wanted.begin(), wanted.end()), __LINE__);
  remove(name);
}

// From where the pointer, or the end, is when all ranks are there.
void seeks() {
  const std::string name = name_of("seeks");
  MPI_File file = open(name, mode);
  const auto last_writes_late = [] {
    if (check::rank == check::size - 1) usleep(30000);
    return check::rank == check::size - 1;
  };
  MPI_Offset at = -1;
  if (last_writes_late())
    MPI(MPI_File_write_shared(file, "0123456789", 10, MPI_CHAR, MPI_STATUS_IGNORE));
  MPI(MPI_File_seek_shared(file, -3, MPI_SEEK_CUR));
  MPI(MPI_File_get_position_shared(file, &at));
  CHECK_EQ(at, 7);
  if (last_writes_late())
    MPI(MPI_File_write_at(file, 10, "0123456789", 10, MPI_CHAR, MPI_STATUS_IGNORE));
  MPI(MPI_File_seek_shared(file, -1, MPI_SEEK_END));
  MPI(MPI_File_get_position_shared(file, &at));
  CHECK_EQ(at, 19);
  EXPECT_CLASS(MPI_ERR_ARG, MPI_File_seek_shared(file, -20, MPI_SEEK_CUR));
  MPI(MPI_File_get_position_shared(file, &at));
  CHECK_EQ(at, 19);
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  MPI(MPI_File_close(&file));
  remove(name);
}

void sequential() {
  const std::string name = name_of("sequential");
  MPI_File file = open(name, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
  const char letter = char('a' + check::rank);
  MPI(MPI_File_write_ordered(file, &letter, 1, MPI_CHAR, MPI_STATUS_IGNORE));
  EXPECT_CLASS(MPI_ERR_UNSUPPORTED_OPERATION,
               MPI_File_write_at(file, 0, &letter, 1, MPI_CHAR, MPI_STATUS_IGNORE));
  EXPECT_CLASS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_seek(file, 0, MPI_SEEK_SET));
  // A new view begins where the file is when all are there, which is its byte 0.
  if (check::rank == check::size - 1) {
    usleep(30000);
    MPI(MPI_File_write_shared(file, "!", 1, MPI_CHAR, MPI_STATUS_IGNORE));
  }
  MPI(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_CHAR, MPI_CHAR, "native",
                        MPI_INFO_NULL));
  MPI_Offset at = -1;
  MPI(MPI_File_get_position_shared(file, &at));
  CHECK_EQ(at, 0);
  MPI_Offset byte = -1;
  MPI(MPI_File_get_byte_offset(file, 0, &byte));
  CHECK_EQ(byte, check::size + 1);
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  MPI(MPI_File_write_ordered(file, &letter, 1, MPI_CHAR, MPI_STATUS_IGNORE));
  MPI(MPI_File_close(&file));
  std::string letters;
  for (int i = 0; i < check::size; ++i) letters += char('a' + i);
  const std::string wanted = letters + "!" + letters;
  expect_contents(name, std::vector<uint8_t>(wanted.begin(), wanted.end()), __LINE__);
  remove(name);
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"writes", writes},
                      {"nonblocking", nonblocking},
                      {"first_rank_computes", first_rank_computes, 2},
                      {"ordered", ordered},
                      {"appended", appended},
                      {"seeks", seeks},
                      {"sequential", sequential}});
}
