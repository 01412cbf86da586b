// Data representations: external32 byte by byte, types whose sizes differ in the file, and those
// that the program registers.
#include <limits.h>

#include "file_model.h"

namespace {

using namespace files;

constexpr int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;

void big_endian() {
  const std::string name = name_of("external");
  MPI_File file = open(name, mode);
  MPI(MPI_File_set_view(file, 16, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL));
  const int numbers[] = {check::rank, 0x01020304, -2};
  MPI_Status status;
  MPI(MPI_File_write_at_all(file, 3 * check::rank, numbers, 3, MPI_INT, &status));
  expect_count(status, sizeof numbers, __LINE__);
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  std::vector<uint8_t> wanted(16, 0);
  for (int rank = 0; rank < check::size; ++rank) {
    const uint8_t bytes[] = {0, 0, 0, uint8_t(rank), 1, 2, 3, 4, 255, 255, 255, 254};
    wanted.insert(wanted.end(), bytes, bytes + sizeof bytes);
  }
  expect_contents(name, wanted, __LINE__);
  int back[3] = {};
  MPI_Request request;
  MPI(MPI_File_iread_at(file, 3 * check::rank, back, 3, MPI_INT, &request));
  MPI(MPI_Wait(&request, &status));
  expect_count(status, sizeof back, __LINE__);
  CHECK(memcmp(back, numbers, sizeof back) == 0);
  // Beyond the end: whole elements only.
  int more[100];
  memset(more, 0x55, sizeof more);
  MPI(MPI_File_read_at(file, 3 * check::size - 1, more, 100, MPI_INT, &status));
  expect_count(status, sizeof(int), __LINE__);
  CHECK_EQ(more[0], -2);
  CHECK_UNTOUCHED(more + 1, sizeof more - sizeof(int), 0x55);
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  MPI(MPI_File_close(&file));
  remove(name);
}

// MPI_LONG has 8 bytes in memory and 4 in the file.
void other_sizes() {
  const std::string name = name_of("sizes");
  MPI_File file = open(name, mode);
  MPI_Datatype type;
  MPI(MPI_Type_vector(4, 1, check::size, MPI_LONG, &type));
  MPI_Datatype padded;
  MPI(MPI_Type_create_resized(type, 0, MPI_Aint(4 * 4) * check::size, &padded));
  MPI(MPI_Type_commit(&padded));
  MPI_Aint extent = 0;
  MPI(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "external32", MPI_INFO_NULL));
  MPI(MPI_File_get_type_extent(file, MPI_LONG, &extent));
  CHECK_EQ(extent, 4);
  MPI(MPI_File_get_type_extent(file, MPI_DOUBLE_INT, &extent));
  CHECK_EQ(extent, 12);
  MPI_Count large = 0;
  MPI(MPI_File_get_type_extent_c(file, type, &large));
  CHECK_EQ(large, 4 * (3 * check::size + 1));
  MPI(MPI_File_set_view(file, MPI_Offset(4) * check::rank, MPI_LONG, padded, "external32",
                        MPI_INFO_NULL));
  long out[8], in[8] = {};
  for (int i = 0; i < 8; ++i) out[i] = 1000 * check::rank + i - 3;
  MPI(MPI_File_write_all(file, out, 8, MPI_LONG, MPI_STATUS_IGNORE));
  MPI_Offset at = 0;
  MPI(MPI_File_get_position(file, &at));
  CHECK_EQ(at, 8);
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  MPI_Offset size = 0;
  MPI(MPI_File_get_size(file, &size));
  CHECK_EQ(size, 8 * 4 * check::size);
  MPI(MPI_File_seek(file, 2, MPI_SEEK_SET));
  MPI_Status status;
  MPI(MPI_File_read(file, in, 8, MPI_LONG, &status));
  int count = 0;
  MPI(MPI_Get_count(&status, MPI_LONG, &count));
  CHECK_EQ(count, 6);
  for (int i = 0; i < 6; ++i) CHECK_EQ(in[i], out[i + 2]);
  MPI(MPI_File_get_position(file, &at));
  CHECK_EQ(at, 8);  // where the file ends
  long wide = LONG_MAX;
  EXPECT_CLASS(MPI_ERR_VALUE_TOO_LARGE,
               MPI_File_write_at(file, 0, &wide, 1, MPI_LONG, MPI_STATUS_IGNORE));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  MPI(MPI_Type_free(&type));
  MPI(MPI_Type_free(&padded));
  MPI(MPI_File_close(&file));
  remove(name);
}

// A representation of our own: each int as two bytes, the low one first, and turned round by a key.
struct Key {
  int turn;
  int reads, writes, extents;
  bool fails;
};
Key key{0x5a, 0, 0, 0, false};

int our_extent(MPI_Datatype type, MPI_Aint* extent, void* state) {
  auto* own = static_cast<Key*>(state);
  ++own->extents;
  if (type != MPI_INT) return MPI_ERR_TYPE;
  *extent = 2;
  return MPI_SUCCESS;
}
// `count` data items, from item `position` of the buffer on: of a type of two ints each is one.
int our_write(void* user, MPI_Datatype, int count, void* file, MPI_Offset position, void* state) {
  auto* own = static_cast<Key*>(state);
  ++own->writes;
  if (own->fails) return MPI_ERR_CONVERSION;
  const int* from = static_cast<const int*>(user) + position;
  auto* to = static_cast<uint8_t*>(file);
  for (int i = 0; i < count; ++i) {
    to[2 * i] = uint8_t((from[i] & 255) ^ own->turn);
    to[2 * i + 1] = uint8_t((from[i] >> 8 & 255) ^ own->turn);
  }
  return MPI_SUCCESS;
}
int our_read(void* user, MPI_Datatype, int count, void* file, MPI_Offset position, void* state) {
  auto* own = static_cast<Key*>(state);
  ++own->reads;
  int* to = static_cast<int*>(user) + position;
  const auto* from = static_cast<const uint8_t*>(file);
  for (int i = 0; i < count; ++i) {
    to[i] = (from[2 * i] ^ own->turn) | (from[2 * i + 1] ^ own->turn) << 8;
  }
  return MPI_SUCCESS;
}

void registered() {
  MPI(MPI_Register_datarep("headway test", our_read, our_write, our_extent, &key));
  EXPECT_CLASS(MPI_ERR_DUP_DATAREP,
               MPI_Register_datarep("headway test", our_read, our_write, our_extent, &key));
  EXPECT_CLASS(MPI_ERR_DUP_DATAREP,
               MPI_Register_datarep("native", our_read, our_write, our_extent, &key));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Register_datarep(std::string(MPI_MAX_DATAREP_STRING, 'n').c_str(),
                                                 our_read, our_write, our_extent, &key));
  const std::string name = name_of("registered");
  MPI_File file = open(name, mode);
  MPI(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "headway test", MPI_INFO_NULL));
  char representation[MPI_MAX_DATAREP_STRING];
  MPI_Offset displacement;
  MPI_Datatype etype, type;
  MPI(MPI_File_get_view(file, &displacement, &etype, &type, representation));
  CHECK_EQ(std::string(representation), std::string("headway test"));
  MPI_Aint extent = 0;
  MPI(MPI_File_get_type_extent(file, MPI_INT, &extent));
  CHECK_EQ(extent, 2);
  constexpr int many = 700;
  std::vector<int> out(many), in(many);
  for (int i = 0; i < many; ++i) out[size_t(i)] = (1000 * check::rank + 3 * i) & 0xffff;
  MPI(MPI_File_write_at_all(file, many * check::rank, out.data(), many, MPI_INT,
                            MPI_STATUS_IGNORE));
  MPI_Request request;
  MPI(MPI_File_iread_at_all(file, many * check::rank, in.data(), many, MPI_INT, &request));
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(in == out);
  CHECK(key.reads > 0 && key.writes > 0 && key.extents > 0);
  MPI_Datatype pair;
  MPI(MPI_Type_contiguous(2, MPI_INT, &pair));
  MPI(MPI_Type_commit(&pair));
  in.assign(in.size(), 0);
  MPI(MPI_File_read_at(file, many * check::rank, in.data(), many / 2, pair, MPI_STATUS_IGNORE));
  CHECK(in == out);
  MPI(MPI_File_write_at_all(file, many * check::rank, out.data(), many / 2, pair,
                            MPI_STATUS_IGNORE));
  MPI(MPI_Type_free(&pair));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  std::vector<uint8_t> wanted;
  for (int rank = 0; rank < check::size; ++rank) {
    for (int i = 0; i < many; ++i) {
      const int value = (1000 * rank + 3 * i) & 0xffff;
      wanted.push_back(uint8_t((value & 255) ^ key.turn));
      wanted.push_back(uint8_t((value >> 8) ^ key.turn));
    }
  }
  expect_contents(name, wanted, __LINE__);
  // What the functions say reaches the caller.
  double number = 1;
  EXPECT_CLASS(MPI_ERR_TYPE, MPI_File_write_at(file, 0, &number, 1, MPI_DOUBLE, MPI_STATUS_IGNORE));
  key.fails = true;
  EXPECT_CLASS(MPI_ERR_CONVERSION,
               MPI_File_write_at(file, 0, out.data(), 1, MPI_INT, MPI_STATUS_IGNORE));
  MPI(MPI_File_iwrite_at(file, 0, out.data(), 1, MPI_INT, &request));
  EXPECT_CLASS(MPI_ERR_CONVERSION, MPI_Wait(&request, MPI_STATUS_IGNORE));
  key.fails = false;
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  MPI(MPI_File_close(&file));
  // Without functions: as in memory.
  MPI(MPI_Register_datarep_c("headway plain", MPI_CONVERSION_FN_NULL_C, MPI_CONVERSION_FN_NULL_C,
                             our_extent, &key));
  file = open(name, mode);
  MPI(MPI_File_set_size(file, 0));
  MPI(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "headway plain", MPI_INFO_NULL));
  MPI(MPI_File_write_ordered(file, out.data(), many, MPI_INT, MPI_STATUS_IGNORE));
  MPI(MPI_File_read_at(file, many * check::rank, in.data(), many, MPI_INT, MPI_STATUS_IGNORE));
  CHECK(in == out);
  MPI(MPI_File_close(&file));
  remove(name);
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(
      argc, argv,
      {{"big_endian", big_endian}, {"other_sizes", other_sizes}, {"registered", registered}});
}
