// Collective access to files, in two phases and each rank for itself, blocking, nonblocking and
// split: equal bytes, whatever the way. The file is full before, so that a byte outside of the
// views that is touched is seen.
#include <memory>

#include "file_model.h"

namespace {

using namespace files;

constexpr int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;

// How the accesses of a case are made.
struct Way {
  const char* name;
  const char* buffering;  // hint collective_buffering, or null
  const char* buffer;     // hint cb_buffer_size, or null
  const char* nodes;      // hint cb_nodes, or null
};
constexpr Way ways[] = {
    {"automatic", nullptr, nullptr, nullptr},
    {"two phases", "true", nullptr, nullptr},
    {"two phases, short stretches", "true", "65536", nullptr},
    {"two phases, one rank gathers", "true", "65536", "1"},
    {"two phases, two gather", "true", "131072", "2"},
    {"alone", "false", nullptr, nullptr},
};

enum class Call { blocking, nonblocking, split };

// One collective write or read of this rank's part; gives what the status tells.
uint64_t access_all(MPI_File file, bool writes, Call call, MPI_Offset offset, Memory& memory) {
  void* buffer = memory.buffer.data();
  const int count = memory.layout.count;
  const MPI_Datatype type = memory.layout.type;
  MPI_Status status;
  MPI_Request request = MPI_REQUEST_NULL;
  switch (call) {
    case Call::blocking:
      MPI(writes ? MPI_File_write_at_all(file, offset, buffer, count, type, &status)
                 : MPI_File_read_at_all(file, offset, buffer, count, type, &status));
      break;
    case Call::nonblocking:
      MPI(writes ? MPI_File_iwrite_at_all(file, offset, buffer, count, type, &request)
                 : MPI_File_iread_at_all(file, offset, buffer, count, type, &request));
      MPI(MPI_Wait(&request, &status));
      break;
    case Call::split:
      MPI(writes ? MPI_File_write_at_all_begin(file, offset, buffer, count, type)
                 : MPI_File_read_at_all_begin(file, offset, buffer, count, type));
      MPI(writes ? MPI_File_write_at_all_end(file, buffer, &status)
                 : MPI_File_read_at_all_end(file, buffer, &status));
      break;
  }
  MPI_Count bytes = 0;
  MPI(MPI_Get_count_c(&status, MPI_BYTE, &bytes));
  return uint64_t(bytes);
}

MPI_Info info_for(const Way& way) {
  MPI_Info info;
  MPI(MPI_Info_create(&info));
  if (way.buffering) MPI(MPI_Info_set(info, "collective_buffering", way.buffering));
  if (way.buffer) MPI(MPI_Info_set(info, "cb_buffer_size", way.buffer));
  if (way.nodes) MPI(MPI_Info_set(info, "cb_nodes", way.nodes));
  return info;
}

// The first rank fills the file, so that nothing outside of the views may change.
void fill_file(const std::string& name, Model& model, size_t bytes, uint64_t key) {
  model.bytes.resize(bytes);
  check::fill(model.bytes.data(), bytes, key);
  if (check::rank == 0) {
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0);
    CHECK(write(fd, model.bytes.data(), bytes) == ssize_t(bytes));
    close(fd);
  }
  MPI(MPI_Barrier(MPI_COMM_WORLD));
}

// How many collective accesses of this rank went in two phases until now.
bool phases(unsigned long long& value) { return read_counter("headway_file_two_phase", value); }

void round_of(const std::string& name, const Way& way, Call call, uint64_t round) {
  Random random(check::key_of(check::seed, 500, round));
  Random own(check::key_of(check::seed, 600 + uint64_t(check::rank), round));
  Model model;
  fill_file(name, model, 1000 + random.below(400000), random.next());
  MPI_Info info = info_for(way);
  MPI_File file = open(name, mode, info);
  MPI(MPI_Info_free(&info));
  std::vector<View> views = random_views(random, check::size, random.chance(30));
  View& mine = views[size_t(check::rank)];
  mine.commit();
  MPI(MPI_File_set_view(file, mine.displacement, mine.etype(), mine.type, "native", MPI_INFO_NULL));
  const auto unit = uint64_t(mine.unit);
  uint64_t most = random.chance(30) ? 60000 : 3000;
  // A rank that has one byte of a long tile is not to make a file of some 100 MB.
  for (const View& view : views) {
    if (view.bytes && uint64_t(view.extent) / view.bytes > 50) most = 300;
  }
  Step step;
  bool any = false;
  size_t low = SIZE_MAX, high = 0;
  for (int rank = 0; rank < check::size; ++rank) {
    Step theirs = random_step(30000 + round, rank, 500, most);
    const View& view = views[size_t(rank)];
    if (view.bytes == 0) theirs.count = 0;
    any = any || theirs.count != 0;
    if (theirs.count) {
      low = std::min(low, view.place(theirs.etypes * unit));
      high = std::max(high, view.place((theirs.etypes + theirs.count) * unit - 1));
      model.write(view, theirs.etypes * unit, theirs.count * unit, theirs.key);
    }
    if (rank == check::rank) step = theirs;
  }
  {
    Memory memory(own, size_t(step.count * unit));
    memory.fill(step.key);
    unsigned long long before = 0, after = 0;
    const bool counts = phases(before);
    const uint64_t moved = access_all(file, true, call, MPI_Offset(step.etypes), memory);
    CHECK_EQ(moved, step.count * unit);
    // The way is the one that the hint asks for, but for ranges that may be mostly holes.
    const bool is_short = !any || high - low < (32u << 20);
    if (counts && is_short && way.buffering && phases(after))
      CHECK_EQ(after - before, any && strcmp(way.buffering, "true") == 0 ? 1u : 0u);
  }
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  expect_contents(name, model.bytes, __LINE__);
  // Some ranks read beyond the end, some nothing.
  for (int reads = 0; reads < 2; ++reads) {
    const uint64_t from = own.below(2000);
    const uint64_t count = mine.bytes == 0 || own.chance(10) ? 0 : own.below(2 * most);
    const std::vector<uint8_t> found = model.read(mine, from * unit, count * unit);
    Memory memory(own, size_t(count * unit));
    const uint64_t moved = access_all(file, false, call, MPI_Offset(from), memory);
    CHECK_EQ(moved, found.size());
    memory.expect(found, __LINE__);
  }
  mine.free();
  MPI(MPI_File_close(&file));
}

void all_ways(Call call) {
  const std::string name = name_of("collective");
  uint64_t round = uint64_t(call) * 100000;
  for (uint64_t times = 0; times < 4 * check::scale; ++times) {
    for (const Way& way : ways) {
      if (getenv("CHECK_TRACE") && check::rank == 0) fprintf(stderr, "  %s\n", way.name);
      round_of(name, way, call, round++);
    }
  }
  remove(name);
}

void blocking() { all_ways(Call::blocking); }
void nonblocking() { all_ways(Call::nonblocking); }
void split() { all_ways(Call::split); }

// Several nonblocking ones of one file, and one of another, under way at once, completed in another
// order on each rank; individual pointers go on at the call.
void many_at_once() {
  const std::string names[] = {name_of("many-0"), name_of("many-1")};
  MPI_File files_[2];
  MPI_Info info = info_for(ways[2]);
  for (int i = 0; i < 2; ++i) files_[i] = open(names[i], mode, info);
  MPI(MPI_Info_free(&info));
  constexpr int each = 64, blocks = 500;
  MPI_Datatype vector, type;
  MPI(MPI_Type_vector(blocks, each, each * check::size, MPI_BYTE, &vector));
  MPI(MPI_Type_create_resized(vector, 0, MPI_Aint(each) * blocks * check::size, &type));
  MPI(MPI_Type_commit(&type));
  MPI(MPI_Type_free(&vector));
  for (MPI_File file : files_) {
    MPI(MPI_File_set_view(file, MPI_Offset(each) * check::rank, MPI_BYTE, type, "native",
                          MPI_INFO_NULL));
  }
  constexpr int many = 5, bytes = 7000;
  const auto key = [](int one, int i) {
    return check::key_of(uint64_t(one), uint64_t(i), uint64_t(check::rank));
  };
  std::vector<std::vector<uint8_t>> out, in;
  std::vector<MPI_Request> requests;
  for (int one = 0; one < many; ++one) {
    for (int i = 0; i < 2; ++i) {
      out.emplace_back(bytes);
      check::fill(out.back().data(), bytes, key(one, i));
      requests.push_back(MPI_REQUEST_NULL);
      MPI(MPI_File_iwrite_all(files_[i], out.back().data(), bytes, MPI_BYTE, &requests.back()));
    }
  }
  std::vector<size_t> order;
  for (size_t i = 0; i < requests.size(); ++i) order.push_back(i);
  Random own(check::key_of(check::seed, 700, uint64_t(check::rank)));
  own.shuffle(order);
  for (size_t at : order) {
    MPI_Status status;
    MPI(MPI_Wait(&requests[at], &status));
    expect_count(status, bytes, __LINE__);
  }
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  for (int i = 0; i < 2; ++i) {
    MPI(MPI_File_seek(files_[i], 0, MPI_SEEK_SET));
    for (int one = 0; one < many; ++one) {
      std::vector<uint8_t> found(bytes);
      MPI(MPI_File_read_all(files_[i], found.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE));
      CHECK_BYTES(found.data(), bytes, key(one, i));
    }
    MPI(MPI_File_close(&files_[i]));
    remove(names[i]);
  }
  MPI(MPI_Type_free(&type));
}

// Columns of a matrix: a view that goes back, so that no range can be dealt out.
void columns() {
  const std::string name = name_of("columns");
  MPI_Info info = info_for(ways[1]);
  MPI_File file = open(name, mode, info);
  MPI(MPI_Info_free(&info));
  constexpr int rows = 40;
  const int width = 8 * check::size;
  MPI_Datatype column, type;
  MPI(MPI_Type_vector(rows, 1, width, MPI_BYTE, &column));
  MPI(MPI_Type_create_resized(column, 0, 1, &type));
  MPI(MPI_Type_commit(&type));
  MPI(MPI_File_set_view(file, 8 * check::rank, MPI_BYTE, type, "native", MPI_INFO_NULL));
  std::vector<uint8_t> out(8 * rows);
  for (int i = 0; i < 8 * rows; ++i) out[size_t(i)] = uint8_t(100 * check::rank + i);
  MPI(MPI_File_write_all(file, out.data(), 8 * rows, MPI_BYTE, MPI_STATUS_IGNORE));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  std::vector<uint8_t> wanted(size_t(rows * width));
  for (int rank = 0; rank < check::size; ++rank) {
    for (int i = 0; i < 8 * rows; ++i) {
      wanted[size_t(i % rows * width + 8 * rank + i / rows)] = uint8_t(100 * rank + i);
    }
  }
  expect_contents(name, wanted, __LINE__);
  MPI(MPI_Type_free(&type));
  MPI(MPI_Type_free(&column));
  MPI(MPI_File_close(&file));
  remove(name);
}

// Of a file that is only read, a view may have bytes twice: the last byte of it is not the last one
// in the file.
void twice() {
  const std::string name = name_of("twice");
  Model model;
  fill_file(name, model, 300000, 77);
  for (const Way& way : ways) {
    MPI_Info info = info_for(way);
    MPI_File file = open(name, MPI_MODE_RDONLY, info);
    MPI(MPI_Info_free(&info));
    const int lengths[] = {200000, 8, 500};
    const MPI_Aint places[] = {0, 100000, 100004};
    MPI_Datatype type;
    MPI(MPI_Type_create_hindexed(3, lengths, places, MPI_BYTE, &type));
    MPI(MPI_Type_commit(&type));
    MPI(MPI_File_set_view(file, check::rank, MPI_BYTE, type, "native", MPI_INFO_NULL));
    std::vector<uint8_t> wanted, in(200508);
    for (int i = 0; i < 3; ++i) {
      const auto* from = model.bytes.data() + check::rank + places[i];
      wanted.insert(wanted.end(), from, from + lengths[i]);
    }
    MPI_Status status;
    MPI(MPI_File_read_at_all(file, 0, in.data(), int(in.size()), MPI_BYTE, &status));
    expect_count(status, in.size(), __LINE__);
    CHECK(in == wanted);
    MPI(MPI_Type_free(&type));
    MPI(MPI_File_close(&file));
  }
  remove(name);
}

// A few bytes at both ends of a range that no memory holds.
void far_apart() {
  const std::string name = name_of("far");
  MPI_File file = open(name, mode);
  MPI_Info info = info_for(ways[2]);
  MPI(MPI_File_set_info(file, info));
  MPI(MPI_Info_free(&info));
  constexpr MPI_Aint far = MPI_Aint(1) << 35;  // 32 GB: a file system may have no longer files
  constexpr int block = 4096;
  MPI_Datatype type;
  MPI(MPI_Type_create_hvector(2, block, far, MPI_BYTE, &type));
  MPI(MPI_Type_commit(&type));
  MPI(MPI_File_set_view(file, MPI_Offset(block) * check::rank, MPI_BYTE, type, "native",
                        MPI_INFO_NULL));
  std::vector<uint8_t> out(2 * block), in(2 * block);
  check::fill(out.data(), out.size(), uint64_t(check::rank));
  MPI_Request request;
  MPI(MPI_File_iwrite_at_all(file, 0, out.data(), 2 * block, MPI_BYTE, &request));
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  MPI(MPI_File_read_at_all(file, 0, in.data(), 2 * block, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK(in == out);
  MPI(MPI_Type_free(&type));
  MPI(MPI_File_close(&file));
  remove(name);
}

// Stretches in which some ranks have nothing, in no order: between two ranks rounds are left out.
void sparse() {
  const std::string name = name_of("sparse");
  constexpr size_t stretch = 65536, stretches = 90;
  for (uint64_t times = 0; times < 3 * check::scale; ++times) {
    Random random(check::key_of(check::seed, 1000, times));
    const int chance = random.between(10, 90);
    std::vector<View> views(static_cast<size_t>(check::size));
    for (int rank = 0; rank < check::size; ++rank) {
      View& view = views[size_t(rank)];
      view.extent = MPI_Aint(stretch * stretches);
      for (size_t at = 0; at < stretches; ++at) {
        if (at > 0 && !random.chance(chance)) continue;
        for (size_t run = 0; run < 5; ++run) {
          const size_t place = at * stretch + run * 600 * views.size() + size_t(rank) * 600;
          view.add(place, 1 + random.below(600));
        }
      }
    }
    View& mine = views[size_t(check::rank)];
    mine.commit();
    Model model;
    for (int rank = 0; rank < check::size; ++rank) {
      const View& view = views[size_t(rank)];
      model.write(view, 0, view.bytes, check::key_of(times, uint64_t(rank)));
    }
    MPI_Info info = info_for(ways[2 + times % 3]);
    MPI_File file = open(name, mode, info);
    MPI(MPI_Info_free(&info));
    MPI(MPI_File_set_view(file, 0, MPI_BYTE, mine.type, "native", MPI_INFO_NULL));
    std::vector<uint8_t> out(mine.bytes), in(mine.bytes);
    check::fill(out.data(), out.size(), check::key_of(times, uint64_t(check::rank)));
    MPI(MPI_File_write_all(file, out.data(), int(out.size()), MPI_BYTE, MPI_STATUS_IGNORE));
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    expect_contents(name, model.bytes, __LINE__);
    MPI_Request request;
    MPI(MPI_File_iread_at_all(file, 0, in.data(), int(in.size()), MPI_BYTE, &request));
    MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(in == out);
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    mine.free();
    MPI(MPI_File_close(&file));
    remove(name);
  }
}

// A rank that computes after its nonblocking access does not hold the others up: its part is done
// by its message thread and its disk worker.
void beside_computing() {
  const std::string name = name_of("computing");
  MPI_Info info = info_for(ways[2]);
  MPI_File file = open(name, mode, info);
  MPI(MPI_Info_free(&info));
  MPI_Datatype type;
  MPI(MPI_Type_vector(2000, 32, 32 * check::size, MPI_BYTE, &type));
  MPI(MPI_Type_commit(&type));
  MPI(MPI_File_set_view(file, 32 * check::rank, MPI_BYTE, type, "native", MPI_INFO_NULL));
  std::vector<uint8_t> out(64000, uint8_t(check::rank + 1));
  MPI_Request request;
  MPI(MPI_File_iwrite_at_all(file, 0, out.data(), 64000, MPI_BYTE, &request));
  const double begun = MPI_Wtime(), until = begun + (check::rank == 0 ? 1.0 : 0);
  volatile double work = 1;
  while (MPI_Wtime() < until) work = work * 1.0000001;
  MPI_Status status;
  MPI(MPI_Wait(&request, &status));
  const double took = MPI_Wtime() - begun;
  expect_count(status, 64000, __LINE__);
  if (check::rank > 0 && !without_progress() && took > 0.8)
    check::fail(__FILE__, __LINE__, "it took %.3f s beside a rank that computed for 1 s", took);
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  std::vector<uint8_t> wanted(size_t(64000 * check::size));
  for (size_t i = 0; i < wanted.size(); ++i) {
    wanted[i] = uint8_t(1 + i / 32 % size_t(check::size));
  }
  expect_contents(name, wanted, __LINE__);
  MPI(MPI_Type_free(&type));
  MPI(MPI_File_close(&file));
  remove(name);
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"blocking", blocking},
                      {"nonblocking", nonblocking},
                      {"split", split},
                      {"many_at_once", many_at_once},
                      {"columns", columns},
                      {"twice", twice},
                      {"far_apart", far_apart},
                      {"sparse", sparse},
                      {"beside_computing", beside_computing}});
}
