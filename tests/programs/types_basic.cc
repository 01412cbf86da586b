// Derived datatypes: sizes, extents, true extents; derived to contiguous and back, different
// layouts on the two sides, gaps untouched, Pack and Unpack, and a large strided vector.
#include "check.h"

namespace {

int right() { return (check::rank + 1) % check::size; }
int left() { return (check::rank + check::size - 1) % check::size; }

struct Shape {
  MPI_Aint lower, extent, true_lower, true_extent;
  int size;
};

void expect_shape(MPI_Datatype type, const Shape& wanted, const char* name) {
  MPI_Aint lower = -9, extent = -9, true_lower = -9, true_extent = -9;
  int size = -9;
  MPI(MPI_Type_get_extent(type, &lower, &extent));
  MPI(MPI_Type_get_true_extent(type, &true_lower, &true_extent));
  MPI(MPI_Type_size(type, &size));
  if (lower != wanted.lower || extent != wanted.extent || true_lower != wanted.true_lower ||
      true_extent != wanted.true_extent || size != wanted.size)
    check::fail(__FILE__, __LINE__,
                "%s: bounds %ld %ld true %ld %ld size %d, expected %ld %ld true %ld %ld size %d",
                name, lower, extent, true_lower, true_extent, size, wanted.lower, wanted.extent,
                wanted.true_lower, wanted.true_extent, wanted.size);
  MPI_Count large_lower = -9, large_extent = -9, large_size = -9;
  MPI(MPI_Type_get_extent_c(type, &large_lower, &large_extent));
  CHECK_EQ(large_lower, wanted.lower);
  CHECK_EQ(large_extent, wanted.extent);
  MPI(MPI_Type_get_true_extent_c(type, &large_lower, &large_extent));
  CHECK_EQ(large_lower, wanted.true_lower);
  CHECK_EQ(large_extent, wanted.true_extent);
  MPI(MPI_Type_size_c(type, &large_size));
  CHECK_EQ(large_size, wanted.size);
}

void shapes() {
  MPI_Datatype t = MPI_DATATYPE_NULL, u = MPI_DATATYPE_NULL;
  auto done = [&] {
    MPI(MPI_Type_free(&t));
    CHECK_EQ(t, MPI_DATATYPE_NULL);
  };
  expect_shape(MPI_INT, {0, 4, 0, 4, 4}, "int");
  expect_shape(MPI_DOUBLE_INT, {0, 16, 0, 12, 12}, "double and int");
  MPI(MPI_Type_contiguous(7, MPI_DOUBLE, &t));
  expect_shape(t, {0, 56, 0, 56, 56}, "contiguous");
  done();
  MPI(MPI_Type_contiguous(0, MPI_DOUBLE, &t));
  expect_shape(t, {0, 0, 0, 0, 0}, "empty");
  done();
  MPI(MPI_Type_vector(3, 2, 5, MPI_INT, &t));
  expect_shape(t, {0, 48, 0, 48, 24}, "vector");
  done();
  MPI(MPI_Type_vector(3, 2, -5, MPI_INT, &t));
  expect_shape(t, {-40, 48, -40, 48, 24}, "vector backwards");
  done();
  MPI(MPI_Type_create_hvector(3, 1, 7, MPI_SHORT, &t));
  expect_shape(t, {0, 16, 0, 16, 6}, "hvector");
  done();
  int lengths[3] = {2, 0, 3}, places[3] = {4, 100, -1};
  MPI(MPI_Type_indexed(3, lengths, places, MPI_INT, &t));
  expect_shape(t, {-4, 28, -4, 28, 20}, "indexed");
  done();
  MPI_Aint byte_places[3] = {1, 1000, 20};
  MPI(MPI_Type_create_hindexed(3, lengths, byte_places, MPI_CHAR, &t));
  expect_shape(t, {1, 22, 1, 22, 5}, "hindexed");
  done();
  int blocks[3] = {8, 0, 3};
  MPI(MPI_Type_create_indexed_block(3, 2, blocks, MPI_INT, &t));
  expect_shape(t, {0, 40, 0, 40, 24}, "indexed block");
  done();
  int one[3] = {1, 1, 1};
  MPI_Aint fields[3] = {0, 8, 16};
  MPI_Datatype parts[3] = {MPI_CHAR, MPI_DOUBLE, MPI_CHAR};
  MPI(MPI_Type_create_struct(3, one, fields, parts, &t));
  expect_shape(t, {0, 24, 0, 17, 10}, "struct with padding");
  MPI(MPI_Type_contiguous(2, t, &u));
  expect_shape(u, {0, 48, 0, 41, 20}, "two structs");
  MPI(MPI_Type_free(&u));
  MPI(MPI_Type_create_resized(t, -8, 40, &u));
  expect_shape(u, {-8, 40, 0, 17, 10}, "resized");
  done();
  MPI(MPI_Type_dup(u, &t));
  expect_shape(t, {-8, 40, 0, 17, 10}, "dup");
  MPI(MPI_Type_free(&u));
  MPI(MPI_Type_vector(2, 1, 2, t, &u));
  expect_shape(u, {-8, 120, 0, 97, 20}, "vector of resized");
  MPI(MPI_Type_free(&u));
  done();
}

constexpr int guard = 0x7e7e7e7e;

// ints on one side, a vector with gaps on the other; then two different strided layouts.
void vectors() {
  for (int blocks : {0, 1, 2, 50, 400, 5000, 60000}) {
    MPI_Datatype twos = MPI_DATATYPE_NULL, threes = MPI_DATATYPE_NULL;
    MPI(MPI_Type_vector(blocks * 3, 2, 3, MPI_INT, &twos));
    MPI(MPI_Type_vector(blocks * 2, 3, 7, MPI_INT, &threes));
    MPI(MPI_Type_commit(&twos));
    MPI(MPI_Type_commit(&threes));
    int n = blocks * 6;
    std::vector<int> flat(n + 1, guard), a(blocks * 9 + 1, guard), b(blocks * 14 + 1, guard);
    auto in_twos = [&](int i) -> int& { return a[i / 2 * 3 + i % 2]; };
    auto in_threes = [&](int i) -> int& { return b[i / 3 * 7 + i % 3]; };
    for (int i = 0; i < n; ++i) in_twos(i) = check::rank * 1000000 + i;
    MPI_Status status;
    MPI(MPI_Sendrecv(a.data(), 1, twos, right(), 1, flat.data(), n, MPI_INT, left(), 1,
                     MPI_COMM_WORLD, &status));
    CHECK_STATUS(status, left(), 1, n * 4);
    for (int i = 0; i < n; ++i) CHECK_EQ(flat[i], left() * 1000000 + i);
    CHECK_EQ(flat[n], guard);
    MPI(MPI_Sendrecv(a.data(), 1, twos, right(), 1, b.data(), 1, threes, left(), 1, MPI_COMM_WORLD,
                     &status));
    CHECK_STATUS(status, left(), 1, n * 4);
    for (int i = 0; i < n; ++i) CHECK_EQ(in_threes(i), left() * 1000000 + i);
    for (int i = 0; i < blocks * 14 + 1; ++i) {
      if (i == blocks * 14 || i % 7 >= 3) CHECK_EQ(b[i], guard);
    }
    std::fill(a.begin(), a.end(), guard);
    MPI(MPI_Sendrecv(flat.data(), n, MPI_INT, right(), 1, a.data(), 1, twos, left(), 1,
                     MPI_COMM_WORLD, &status));
    int source = (left() + check::size - 1) % check::size;
    for (int i = 0; i < n; ++i) CHECK_EQ(in_twos(i), source * 1000000 + i);
    for (int i = 2; i < blocks * 9; i += 3) CHECK_EQ(a[i], guard);
    MPI(MPI_Type_free(&twos));
    MPI(MPI_Type_free(&threes));
  }
}

// 8 MB of doubles, each 24 bytes from the next, as a plane of a cube.
void large_strided() {
  const int n = 1 << 20;
  MPI_Datatype plane = MPI_DATATYPE_NULL;
  MPI(MPI_Type_vector(n, 1, 3, MPI_DOUBLE, &plane));
  MPI(MPI_Type_commit(&plane));
  std::vector<double> out(3 * n, -1), in(3 * n, -2);
  for (int i = 0; i < n; ++i) out[3 * i] = check::rank + i * 0.5;
  for (int round = 0; round < 2; ++round) {
    MPI_Request requests[2];
    MPI(MPI_Irecv(in.data(), 1, plane, left(), 1, MPI_COMM_WORLD, &requests[0]));
    MPI(MPI_Isend(out.data(), 1, plane, right(), 1, MPI_COMM_WORLD, &requests[1]));
    MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < n; ++i) {
      CHECK_EQ(in[3 * i], left() + i * 0.5);
      if (i < n - 1) CHECK_EQ(in[3 * i + 1] + in[3 * i + 2], -4.0);
    }
  }
  MPI(MPI_Type_free(&plane));
}

// A type freed right after the call that uses it lives until the operation ends.
void freed_early() {
  std::vector<int> out(30000), in(30000, guard);
  for (int i = 0; i < 30000; ++i) out[i] = i ^ check::rank;
  MPI_Request requests[2];
  MPI_Datatype t = MPI_DATATYPE_NULL;
  MPI(MPI_Type_vector(10000, 2, 3, MPI_INT, &t));
  MPI(MPI_Type_commit(&t));
  MPI(MPI_Irecv(in.data(), 1, t, left(), 1, MPI_COMM_WORLD, &requests[0]));
  MPI(MPI_Isend(out.data(), 1, t, right(), 1, MPI_COMM_WORLD, &requests[1]));
  MPI(MPI_Type_free(&t));
  MPI(MPI_Type_contiguous(5, MPI_DOUBLE, &t));  // takes the slot, if it were free
  MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  MPI(MPI_Type_free(&t));
  for (int i = 0; i < 29999; ++i) CHECK_EQ(in[i], i % 3 == 2 ? guard : i ^ left());
}

// Absolute addresses from MPI_BOTTOM.
void bottom() {
  int a = check::rank, got_b = -1;
  double b = check::rank * 0.5, got_a = -1;
  int lengths[2] = {1, 1};
  MPI_Aint places[2];
  MPI_Datatype parts[2] = {MPI_INT, MPI_DOUBLE}, out = MPI_DATATYPE_NULL, in = MPI_DATATYPE_NULL;
  MPI(MPI_Get_address(&a, &places[0]));
  MPI(MPI_Get_address(&b, &places[1]));
  MPI(MPI_Type_create_struct(2, lengths, places, parts, &out));
  MPI(MPI_Get_address(&got_b, &places[0]));
  MPI(MPI_Get_address(&got_a, &places[1]));
  MPI(MPI_Type_create_struct(2, lengths, places, parts, &in));
  MPI(MPI_Type_commit(&out));
  MPI(MPI_Type_commit(&in));
  MPI(MPI_Sendrecv(MPI_BOTTOM, 1, out, right(), 2, MPI_BOTTOM, 1, in, left(), 2, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE));
  CHECK_EQ(got_b, left());
  CHECK_EQ(got_a, left() * 0.5);
  MPI_Aint sum = MPI_Aint_add(places[0], 16);
  CHECK_EQ(MPI_Aint_diff(sum, places[0]), 16);
  MPI(MPI_Type_free(&out));
  MPI(MPI_Type_free(&in));
}

// Pack several things, send as PACKED, unpack in order; and receive packed data as its types.
void pack() {
  std::vector<int> ints(300);
  std::vector<double> doubles(90);
  MPI_Datatype every_third = MPI_DATATYPE_NULL;
  MPI(MPI_Type_vector(100, 1, 3, MPI_INT, &every_third));
  MPI(MPI_Type_commit(&every_third));
  for (int i = 0; i < 300; ++i) ints[i] = check::rank + i;
  for (int i = 0; i < 90; ++i) doubles[i] = check::rank - i * 0.25;
  int a = 0, b = 0, at = 0;
  MPI_Count large = 0;
  MPI(MPI_Pack_size(1, every_third, MPI_COMM_WORLD, &a));
  MPI(MPI_Pack_size(90, MPI_DOUBLE, MPI_COMM_WORLD, &b));
  MPI(MPI_Pack_size_c(1, every_third, MPI_COMM_WORLD, &large));
  CHECK_EQ(large, a);
  CHECK(a >= 400 && b >= 720);
  std::vector<char> packed(a + b), arrived(a + b);
  MPI(MPI_Pack(ints.data(), 1, every_third, packed.data(), a + b, &at, MPI_COMM_WORLD));
  CHECK(at >= 400 && at <= a);
  MPI(MPI_Pack(doubles.data(), 90, MPI_DOUBLE, packed.data(), a + b, &at, MPI_COMM_WORLD));
  MPI_Status status;
  int got = 0;
  MPI(MPI_Sendrecv(packed.data(), at, MPI_PACKED, right(), 3, arrived.data(), a + b, MPI_PACKED,
                   left(), 3, MPI_COMM_WORLD, &status));
  MPI(MPI_Get_count(&status, MPI_PACKED, &got));
  CHECK_EQ(got, at);
  std::vector<int> back(300, guard);
  std::vector<double> more(90);
  MPI_Count place = 0;
  MPI(MPI_Unpack_c(arrived.data(), got, &place, back.data(), 1, every_third, MPI_COMM_WORLD));
  int small_place = static_cast<int>(place);
  MPI(MPI_Unpack(arrived.data(), got, &small_place, more.data(), 90, MPI_DOUBLE, MPI_COMM_WORLD));
  CHECK_EQ(small_place, got);
  for (int i = 0; i < 300; ++i) CHECK_EQ(back[i], i % 3 ? guard : left() + i);
  for (int i = 0; i < 90; ++i) CHECK_EQ(more[i], left() - i * 0.25);
  at = 0;
  MPI(MPI_Pack(ints.data(), 1, every_third, packed.data(), a + b, &at, MPI_COMM_WORLD));
  std::vector<int> flat(100);
  MPI(MPI_Sendrecv(packed.data(), at, MPI_PACKED, right(), 3, flat.data(), 100, MPI_INT, left(), 3,
                   MPI_COMM_WORLD, &status));
  for (int i = 0; i < 100; ++i) CHECK_EQ(flat[i], left() + 3 * i);
  MPI(MPI_Type_free(&every_third));
}

// Packing more than fits is an error and leaves the position alone.
void pack_too_small() {
  char space[10];
  int values[5] = {1, 2, 3, 4, 5}, at = 0;
  CHECK(MPI_Pack(values, 5, MPI_INT, space, 10, &at, MPI_COMM_WORLD) != MPI_SUCCESS);
  CHECK_EQ(at, 0);
  MPI(MPI_Pack(values, 2, MPI_INT, space, 10, &at, MPI_COMM_WORLD));
  CHECK(MPI_Pack(values, 1, MPI_INT, space, 10, &at, MPI_COMM_WORLD) != MPI_SUCCESS);
  int from = 0;
  CHECK(MPI_Unpack(space, 8, &from, values, 3, MPI_INT, MPI_COMM_WORLD) != MPI_SUCCESS);
}

void names() {
  char name[MPI_MAX_OBJECT_NAME];
  int length = 0;
  MPI(MPI_Type_get_name(MPI_DOUBLE, name, &length));
  CHECK_EQ(std::string(name), std::string("MPI_DOUBLE"));
  CHECK_EQ(length, 10);
  MPI_Datatype t = MPI_DATATYPE_NULL;
  MPI(MPI_Type_contiguous(3, MPI_INT, &t));
  MPI(MPI_Type_get_name(t, name, &length));
  CHECK_EQ(length, 0);
  MPI(MPI_Type_set_name(t, "three ints"));
  MPI(MPI_Type_get_name(t, name, &length));
  CHECK_EQ(std::string(name), std::string("three ints"));
  MPI(MPI_Type_free(&t));
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"shapes", shapes},
                      {"vectors", vectors},
                      {"large_strided", large_strided},
                      {"freed_early", freed_early},
                      {"bottom", bottom},
                      {"pack", pack},
                      {"pack_too_small", pack_too_small},
                      {"names", names}});
}
