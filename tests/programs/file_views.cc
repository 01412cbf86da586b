// Independent access to files through random views, against a model: explicit offsets, individual
// pointers, nonblocking; ends of files, large counts, messages beside it.
#include "file_model.h"

#include <memory>

namespace {

using namespace files;

constexpr int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
uint64_t rounds() { return 12 * check::scale; }

// The file, a view for each rank, and the model of both.
struct World {
  explicit World(const char* what, uint64_t salt)
      : name(name_of(what)), random(check::key_of(check::seed, salt)) {
    remove(name);
    file = open(name, mode);
    renew();
  }
  ~World() {
    for (View& view : views) view.free();
    MPI(MPI_File_close(&file));
    expect_contents(name, model.bytes, __LINE__);
    remove(name);
  }
  void renew() {
    for (View& view : views) view.free();
    views = random_views(random, check::size);
    mine().commit();
    MPI(MPI_File_set_view(file, mine().displacement, mine().etype(), mine().type, "native",
                          MPI_INFO_NULL));
  }
  View& mine() { return views[size_t(check::rank)]; }
  // What all ranks write in a round; gives this rank's own.
  Step write_all(uint64_t round, uint64_t most_from, uint64_t most_count) {
    for (int rank = 0; rank < check::size; ++rank) {
      const Step step = random_step(round, rank, most_from, most_count);
      const View& view = views[size_t(rank)];
      const auto unit = uint64_t(view.unit);
      model.write(view, step.etypes * unit, step.count * unit, step.key);
    }
    return random_step(round, check::rank, most_from, most_count);
  }

  std::string name;
  Random random;
  MPI_File file;
  std::vector<View> views;
  Model model;
};

void explicit_offsets() {
  World world("views", 1);
  Random own(check::key_of(check::seed, 101, uint64_t(check::rank)));
  for (uint64_t round = 0; round < rounds(); ++round) {
    if (round % 3 == 2) world.renew();
    const Step step = world.write_all(round, 300, 900);
    const auto unit = uint64_t(world.mine().unit);
    {
      Memory memory(own, size_t(step.count * unit));
      memory.fill(step.key);
      MPI_Status status;
      MPI(MPI_File_write_at(world.file, MPI_Offset(step.etypes), memory.buffer.data(),
                            memory.layout.count, memory.layout.type, &status));
      expect_count(status, step.count * unit, __LINE__);
    }
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int reads = 0; reads < 4; ++reads) {
      const uint64_t from = own.below(1500), count = own.below(1200);
      Memory memory(own, size_t(count * unit));
      const std::vector<uint8_t> found = world.model.read(world.mine(), from * unit, count * unit);
      MPI_Status status;
      MPI(MPI_File_read_at(world.file, MPI_Offset(from), memory.buffer.data(), memory.layout.count,
                           memory.layout.type, &status));
      expect_count(status, found.size(), __LINE__);
      memory.expect(found, __LINE__);
    }
    MPI(MPI_Barrier(MPI_COMM_WORLD));
  }
}

MPI_Offset position(MPI_File file) {
  MPI_Offset at = -1;
  MPI(MPI_File_get_position(file, &at));
  return at;
}

void own_pointers() {
  World world("pointers", 2);
  Random own(check::key_of(check::seed, 102, uint64_t(check::rank)));
  for (uint64_t round = 0; round < rounds(); ++round) {
    if (round % 4 == 3) world.renew();
    const Step step = world.write_all(1000 + round, 300, 900);
    const auto unit = uint64_t(world.mine().unit);
    MPI(MPI_File_seek(world.file, MPI_Offset(step.etypes), MPI_SEEK_SET));
    CHECK_EQ(position(world.file), MPI_Offset(step.etypes));
    {
      // In two calls, one behind the other.
      Memory memory(own, size_t(step.count * unit));
      memory.fill(step.key);
      if (memory.layout.type == MPI_BYTE) {
        const int first = int(step.count / 2 * unit);
        MPI(MPI_File_write(world.file, memory.buffer.data(), first, MPI_BYTE, MPI_STATUS_IGNORE));
        CHECK_EQ(position(world.file), MPI_Offset(step.etypes + step.count / 2));
        MPI(MPI_File_write(world.file, memory.buffer.data() + first, memory.layout.count - first,
                           MPI_BYTE, MPI_STATUS_IGNORE));
      } else {
        MPI(MPI_File_write(world.file, memory.buffer.data(), memory.layout.count,
                           memory.layout.type, MPI_STATUS_IGNORE));
      }
    }
    CHECK_EQ(position(world.file), MPI_Offset(step.etypes + step.count));
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    // Until the end: the pointer stops where the bytes do.
    const uint64_t from = own.below(800);
    MPI(MPI_File_seek(world.file, MPI_Offset(from) - position(world.file), MPI_SEEK_CUR));
    const std::vector<uint8_t> found = world.model.read(world.mine(), from * unit, 4000 * unit);
    Memory memory(own, size_t(4000 * unit));
    MPI_Status status;
    MPI(MPI_File_read(world.file, memory.buffer.data(), memory.layout.count, memory.layout.type,
                      &status));
    expect_count(status, found.size(), __LINE__);
    memory.expect(found, __LINE__);
    CHECK_EQ(position(world.file), MPI_Offset(from + found.size() / unit));
    MPI(MPI_Barrier(MPI_COMM_WORLD));
  }
}

void nonblocking() {
  World world("nonblocking", 3);
  Random own(check::key_of(check::seed, 103, uint64_t(check::rank)));
  constexpr uint64_t most = 6;
  for (uint64_t round = 0; round < rounds(); ++round) {
    // Places that do not meet: what is begun together may be done in any order.
    std::vector<MPI_Request> requests;
    std::vector<std::unique_ptr<Memory>> memories;
    for (uint64_t one = 0; one < most; ++one) {
      for (int rank = 0; rank < check::size; ++rank) {
        const View& view = world.views[size_t(rank)];
        const auto unit = uint64_t(view.unit);
        Step step = random_step(2000 + round * most + one, rank, 100, 900);
        step.etypes += one * 1000;
        world.model.write(view, step.etypes * unit, step.count * unit, step.key);
        if (rank != check::rank) continue;
        memories.push_back(std::make_unique<Memory>(own, size_t(step.count * unit)));
        Memory& memory = *memories.back();
        memory.fill(step.key);
        requests.push_back(MPI_REQUEST_NULL);
        if (one % 2) {
          MPI(MPI_File_iwrite_at(world.file, MPI_Offset(step.etypes), memory.buffer.data(),
                                 memory.layout.count, memory.layout.type, &requests.back()));
        } else {
          MPI(MPI_File_seek(world.file, MPI_Offset(step.etypes), MPI_SEEK_SET));
          MPI(MPI_File_iwrite(world.file, memory.buffer.data(), memory.layout.count,
                              memory.layout.type, &requests.back()));
          CHECK_EQ(position(world.file), MPI_Offset(step.etypes + step.count));
        }
      }
    }
    // A message beside it, completed together with it.
    const int next = (check::rank + 1) % check::size;
    const int before = (check::rank + check::size - 1) % check::size;
    int out = check::rank, in = -1;
    requests.resize(requests.size() + 2, MPI_REQUEST_NULL);
    MPI(MPI_Irecv(&in, 1, MPI_INT, before, 7, MPI_COMM_WORLD, &requests[most]));
    MPI(MPI_Isend(&out, 1, MPI_INT, next, 7, MPI_COMM_WORLD, &requests[most + 1]));
    std::vector<MPI_Status> statuses(requests.size());
    if (own.chance(50)) {
      MPI(MPI_Waitall(int(requests.size()), requests.data(), statuses.data()));
      for (uint64_t one = 0; one < most; ++one)
        expect_count(statuses[one], memories[one]->layout.bytes, __LINE__);
    } else {
      for (size_t left = requests.size(); left > 0; --left) {
        int index = -1;
        MPI(MPI_Waitany(int(requests.size()), requests.data(), &index, &statuses[0]));
        if (uint64_t(index) < most)
          expect_count(statuses[0], memories[size_t(index)]->layout.bytes, __LINE__);
      }
    }
    CHECK_EQ(in, before);
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    const auto unit = uint64_t(world.mine().unit);
    const uint64_t from = own.below(6000), count = own.below(2000);
    Memory memory(own, size_t(count * unit));
    const std::vector<uint8_t> found = world.model.read(world.mine(), from * unit, count * unit);
    MPI_Request request;
    MPI(MPI_File_iread_at(world.file, MPI_Offset(from), memory.buffer.data(), memory.layout.count,
                          memory.layout.type, &request));
    int flag = 0;
    MPI_Status status;
    while (!flag) MPI(MPI_Test(&request, &flag, &status));
    CHECK(request == MPI_REQUEST_NULL);
    expect_count(status, found.size(), __LINE__);
    memory.expect(found, __LINE__);
    MPI(MPI_Barrier(MPI_COMM_WORLD));
  }
}

// Each rank has a file of its own.
void ends_of_files() {
  const std::string name = name_of("ends") + "-" + std::to_string(check::rank);
  MPI_File file = open(name, mode | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, MPI_COMM_SELF);
  char buffer[100];
  MPI_Status status;
  MPI(MPI_File_read_at(file, 0, buffer, 100, MPI_BYTE, &status));
  expect_count(status, 0, __LINE__);
  MPI(MPI_File_write_at(file, 50, "0123456789", 10, MPI_CHAR, &status));
  expect_count(status, 10, __LINE__);
  memset(buffer, 'x', sizeof buffer);
  MPI(MPI_File_read_at(file, 40, buffer, 100, MPI_BYTE, &status));
  expect_count(status, 20, __LINE__);
  for (int i = 0; i < 10; ++i) CHECK_EQ(buffer[i], '\0');  // a hole
  CHECK(memcmp(buffer + 10, "0123456789", 10) == 0);
  CHECK_UNTOUCHED(buffer + 20, 80, 'x');
  MPI_Offset size = 0;
  MPI(MPI_File_get_size(file, &size));
  CHECK_EQ(size, 60);
  MPI(MPI_File_seek(file, -10, MPI_SEEK_END));
  MPI(MPI_File_read(file, buffer, 100, MPI_BYTE, &status));
  expect_count(status, 10, __LINE__);
  CHECK_EQ(position(file), 60);
  // Etypes of 8 bytes: one that is cut counts for the end, and is not whole for a read.
  MPI(MPI_File_set_size(file, 61));
  MPI(MPI_File_set_view(file, 0, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL));
  MPI(MPI_File_seek(file, 0, MPI_SEEK_END));
  CHECK_EQ(position(file), 8);
  MPI(MPI_File_seek(file, 7, MPI_SEEK_SET));
  double numbers[4];
  MPI(MPI_File_read(file, numbers, 4, MPI_DOUBLE, &status));
  int count = 0;
  MPI(MPI_Get_count(&status, MPI_DOUBLE, &count));
  CHECK_EQ(count, MPI_UNDEFINED);  // 5 bytes
  expect_count(status, 5, __LINE__);
  MPI_Offset byte = 0;
  MPI(MPI_File_get_byte_offset(file, 5, &byte));
  CHECK_EQ(byte, 40);
  // Zero elements, and no buffer.
  MPI(MPI_File_write_at(file, 1000, nullptr, 0, MPI_DOUBLE, &status));
  expect_count(status, 0, __LINE__);
  MPI(MPI_File_close(&file));
  CHECK(file == MPI_FILE_NULL);
  CHECK(access(name.c_str(), F_OK) != 0);
}

void large_counts() {
  const std::string name = name_of("large") + "-" + std::to_string(check::rank);
  MPI_File file = open(name, mode | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, MPI_COMM_SELF);
  std::vector<uint8_t> out(5000), in(5000);
  check::fill(out.data(), out.size(), 9);
  const MPI_Offset far = (MPI_Offset(1) << 33) + 5;
  MPI_Status status;
  MPI(MPI_File_write_at_c(file, far, out.data(), MPI_Count(out.size()), MPI_BYTE, &status));
  expect_count(status, out.size(), __LINE__);
  MPI(MPI_File_seek(file, far, MPI_SEEK_SET));
  MPI(MPI_File_read_c(file, in.data(), MPI_Count(in.size()), MPI_BYTE, &status));
  CHECK(in == out);
  MPI_Request request;
  in.assign(in.size(), 0);
  MPI(MPI_File_iread_at_c(file, far, in.data(), MPI_Count(in.size()), MPI_BYTE, &request));
  MPI(MPI_Wait(&request, &status));
  CHECK(in == out);
  MPI_Offset size = 0;
  MPI(MPI_File_get_size(file, &size));
  CHECK_EQ(size, far + 5000);
  MPI(MPI_File_close(&file));
}

// A view that was asked for comes back as it was given.
void views_told() {
  World world("told", 4);
  MPI_Offset displacement = -1;
  MPI_Datatype etype, type;
  char representation[MPI_MAX_DATAREP_STRING];
  MPI(MPI_File_get_view(world.file, &displacement, &etype, &type, representation));
  CHECK_EQ(displacement, world.mine().displacement);
  CHECK(etype == world.mine().etype());
  CHECK_EQ(std::string(representation), std::string("native"));
  int size = 0, wanted = 0;
  MPI(MPI_Type_size(type, &size));
  MPI(MPI_Type_size(world.mine().type, &wanted));
  CHECK_EQ(size, wanted);
  MPI(MPI_Type_free(&type));
  MPI_Group group, all;
  MPI(MPI_File_get_group(world.file, &group));
  MPI(MPI_Comm_group(MPI_COMM_WORLD, &all));
  int same = 0;
  MPI(MPI_Group_compare(group, all, &same));
  CHECK_EQ(same, MPI_IDENT);
  MPI(MPI_Group_free(&group));
  MPI(MPI_Group_free(&all));
  int amode = 0;
  MPI(MPI_File_get_amode(world.file, &amode));
  CHECK_EQ(amode, mode);
  // A rank that has no part of the file: nothing to read, and a write would be lost.
  MPI_Datatype nothing;
  MPI(MPI_Type_contiguous(0, MPI_BYTE, &nothing));
  MPI(MPI_Type_commit(&nothing));
  MPI(MPI_File_set_view(world.file, 0, MPI_BYTE, nothing, "native", MPI_INFO_NULL));
  char one = 'x';
  MPI_Status status;
  MPI(MPI_File_read_at(world.file, 0, &one, 1, MPI_BYTE, &status));
  expect_count(status, 0, __LINE__);
  EXPECT_CLASS(MPI_ERR_ARG, MPI_File_write_at(world.file, 0, &one, 1, MPI_BYTE, &status));
  MPI(MPI_Type_free(&nothing));
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"explicit_offsets", explicit_offsets},
                      {"own_pointers", own_pointers},
                      {"nonblocking", nonblocking},
                      {"ends_of_files", ends_of_files},
                      {"large_counts", large_counts},
                      {"views_told", views_told}});
}
