// Several threads of each rank at files: one file at places of its own for each, the shared pointer
// of all, a file of the thread's own with collective calls beside those of the others.
#include <pthread.h>

#include "file_model.h"

namespace {

using namespace files;

constexpr int workers = 3;
constexpr int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
constexpr size_t part = 3000;  // bytes of each thread of each rank
constexpr int records = 40;

struct Worker {
  int number;
  MPI_File file, shared;
  MPI_Comm comm;  // of the threads of that number
  std::string own_name;
};

uint64_t key_of(int number, int what) {
  return check::key_of(uint64_t(number), uint64_t(check::rank), uint64_t(what));
}

// Its part of the common file, each time by another call.
void independent(const Worker& self, int turn) {
  std::vector<uint8_t> out(part), in(part);
  check::fill(out.data(), part, key_of(self.number, turn));
  const MPI_Offset at = MPI_Offset(part) * (check::rank * workers + self.number);
  MPI_Request request;
  MPI_Status status;
  if (turn % 2) {
    MPI(MPI_File_iwrite_at(self.file, at, out.data(), int(part), MPI_BYTE, &request));
    MPI(MPI_Wait(&request, &status));
  } else {
    MPI(MPI_File_write_at(self.file, at, out.data(), int(part), MPI_BYTE, &status));
  }
  expect_count(status, part, __LINE__);
  MPI(MPI_File_iread_at(self.file, at, in.data(), int(part), MPI_BYTE, &request));
  for (int done = 0; !done;) MPI(MPI_Test(&request, &done, &status));
  CHECK(in == out);
}

// With the threads of the other ranks that have the same number.
void collective(const Worker& self) {
  MPI_Info info = info_of({{"collective_buffering", "true"}, {"cb_buffer_size", "65536"}});
  MPI_File file = open(self.own_name, mode, info, self.comm);
  MPI(MPI_Info_free(&info));
  constexpr int blocks = 2000, block = 50;
  MPI_Datatype type;
  MPI(MPI_Type_vector(blocks, block, block * check::size, MPI_BYTE, &type));
  MPI(MPI_Type_commit(&type));
  MPI(MPI_File_set_view(file, MPI_Offset(block) * check::rank, MPI_BYTE, type, "native",
                        MPI_INFO_NULL));
  std::vector<uint8_t> out(size_t(blocks) * block), in(out.size());
  for (int turn = 0; turn < 4; ++turn) {
    check::fill(out.data(), out.size(), key_of(self.number, 100 + turn));
    MPI(MPI_File_write_at_all(file, 0, out.data(), int(out.size()), MPI_BYTE, MPI_STATUS_IGNORE));
    MPI(MPI_File_read_at_all(file, 0, in.data(), int(in.size()), MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(in == out);
  }
  MPI(MPI_Type_free(&type));
  MPI(MPI_File_close(&file));
}

void* work(void* argument) {
  const Worker& self = *static_cast<Worker*>(argument);
  for (int turn = 0; turn < int(20 * check::scale); ++turn) independent(self, turn);
  for (int i = 0; i < records; ++i) {
    const int record = (check::rank * workers + self.number) * records + i;
    MPI_Request request;
    if (i % 2) {
      MPI(MPI_File_write_shared(self.shared, &record, 1, MPI_INT, MPI_STATUS_IGNORE));
    } else {
      MPI(MPI_File_iwrite_shared(self.shared, &record, 1, MPI_INT, &request));
      MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
  }
  collective(self);
  return nullptr;
}

void together() {
  const std::string name = name_of("threads"), shared_name = name_of("threads-shared");
  MPI_File file = open(name, mode), shared = open(shared_name, mode);
  MPI(MPI_File_set_view(shared, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  Worker all[workers];
  pthread_t threads[workers];
  for (int number = 0; number < workers; ++number) {
    all[number] = {number, file, shared, MPI_COMM_NULL,
                   name_of("threads-own") + std::to_string(number)};
    MPI(MPI_Comm_dup(MPI_COMM_WORLD, &all[number].comm));
  }
  for (int number = 0; number < workers; ++number)
    CHECK(pthread_create(&threads[number], nullptr, work, &all[number]) == 0);
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  // Every record is there once.
  const std::vector<uint8_t> bytes = contents(shared_name);
  const size_t many = size_t(records * workers * check::size);
  CHECK_EQ(bytes.size(), many * sizeof(int));
  std::vector<int> seen(many);
  for (size_t i = 0; i < many; ++i) {
    int record = -1;
    memcpy(&record, bytes.data() + i * sizeof record, sizeof record);
    CHECK(record >= 0 && size_t(record) < many);
    CHECK_EQ(seen[size_t(record)]++, 0);
  }
  for (Worker& one : all) {
    MPI(MPI_Comm_free(&one.comm));
    remove(one.own_name);
  }
  MPI(MPI_File_close(&file));
  MPI(MPI_File_close(&shared));
  remove(name);
  remove(shared_name);
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv, {{"together", together}}, MPI_THREAD_MULTIPLE);
}
