// external32 (bytes against the standard's table, every predefined type there and back, structs and
// gaps), Fortran's parametrized types, value-index pairs, and what must be refused.
#include <math.h>
#include <stddef.h>
#include <wchar.h>

#include "check.h"

namespace {

constexpr char external[] = "external32";

std::vector<unsigned char> packed(const void* data, int count, MPI_Datatype type) {
  MPI_Aint size = -1;
  MPI(MPI_Pack_external_size(external, count, type, &size));
  std::vector<unsigned char> bytes(size_t(size) + 8, 0xee);
  MPI_Aint position = 0;
  MPI(MPI_Pack_external(external, data, count, type, bytes.data(), size, &position));
  CHECK_EQ(position, size);
  CHECK_UNTOUCHED(bytes.data() + size, 8, 0xee);
  bytes.resize(size_t(size));
  return bytes;
}

void expect(const std::vector<unsigned char>& got, const std::vector<int>& wanted,
            const char* name) {
  bool same = got.size() == wanted.size();
  for (size_t i = 0; same && i < got.size(); ++i) same = got[i] == wanted[i];
  if (same) return;
  std::string text;
  char word[8];
  for (unsigned char byte : got) {
    snprintf(word, sizeof word, " %02x", byte);
    text += word;
  }
  check::fail(__FILE__, __LINE__, "%s in external32 is%s", name, text.c_str());
}

template <class T>
void number(T value, MPI_Datatype type, const std::vector<int>& wanted, const char* name) {
  expect(packed(&value, 1, type), wanted, name);
  T back;
  memset(&back, 0x5a, sizeof back);
  std::vector<unsigned char> bytes(wanted.begin(), wanted.end());
  MPI_Aint position = 0;
  MPI(MPI_Unpack_external(external, bytes.data(), MPI_Aint(bytes.size()), &position, &back, 1,
                          type));
  CHECK_EQ(position, bytes.size());
  CHECK(back == value);
}

void table() {
  number<short>(-2, MPI_SHORT, {0xff, 0xfe}, "a short");
  number<int>(0x01020304, MPI_INT, {1, 2, 3, 4}, "an int");
  number<long>(-3, MPI_LONG, {0xff, 0xff, 0xff, 0xfd}, "a long");
  number<unsigned long>(0xfedcba98, MPI_UNSIGNED_LONG, {0xfe, 0xdc, 0xba, 0x98},
                        "an unsigned long");
  number<long long>(-2, MPI_LONG_LONG, {255, 255, 255, 255, 255, 255, 255, 254}, "a long long");
  number<int64_t>(1, MPI_INT64_T, {0, 0, 0, 0, 0, 0, 0, 1}, "an int64_t");
  number<MPI_Aint>(258, MPI_AINT, {0, 0, 0, 0, 0, 0, 1, 2}, "an address");
  number<float>(1.5f, MPI_FLOAT, {0x3f, 0xc0, 0, 0}, "a float");
  number<double>(-2.0, MPI_DOUBLE, {0xc0, 0, 0, 0, 0, 0, 0, 0}, "a double");
  number<long double>(-1.5L, MPI_LONG_DOUBLE,
                      {0xbf, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, "a long double");
  number<wchar_t>(0x20ac, MPI_WCHAR, {0x20, 0xac}, "a wide character");
  number<char>('x', MPI_CHAR, {'x'}, "a char");
  const float complex[2] = {1.0f, -1.0f};
  expect(packed(complex, 1, MPI_C_FLOAT_COMPLEX), {0x3f, 0x80, 0, 0, 0xbf, 0x80, 0, 0},
         "a complex number");
  const struct {
    double value;
    int index;
  } pair = {2.0, 7};
  expect(packed(&pair, 1, MPI_DOUBLE_INT), {0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7},
         "a double and an int");
  const struct {
    short value;
    int index;
  } gap = {1, 2};
  expect(packed(&gap, 1, MPI_SHORT_INT), {0, 1, 0, 0, 0, 2}, "a short and an int");
}

// A number in every bit pattern that stays what it is: small ones for what external32 cuts.
void fill(void* data, size_t bytes, MPI_Datatype type, uint64_t key) {
  check::fill(data, bytes, key);
  if (type == MPI_LONG || type == MPI_UNSIGNED_LONG) {
    for (size_t i = 0; i < bytes / 8; ++i) static_cast<long*>(data)[i] = long(i * 77);
  } else if (type == MPI_WCHAR) {
    for (size_t i = 0; i < bytes / 4; ++i) static_cast<wchar_t*>(data)[i] = wchar_t(i & 0xffff);
  } else if (type == MPI_LONG_DOUBLE) {
    memset(data, 0, bytes);
    for (size_t i = 0; i < bytes / 16; ++i)
      static_cast<long double*>(data)[i] = sqrtl((long double)i) - 20;
  }
}

void there_and_back() {
  const MPI_Datatype types[] = {MPI_BYTE,        MPI_CHAR,  MPI_SHORT,         MPI_INT,
                                MPI_LONG,        MPI_FLOAT, MPI_UNSIGNED,      MPI_UINT64_T,
                                MPI_DOUBLE,      MPI_WCHAR, MPI_C_BOOL,        MPI_INT16_T,
                                MPI_LONG_DOUBLE, MPI_2INT,  MPI_UNSIGNED_LONG, MPI_COUNT};
  for (MPI_Datatype type : types) {
    MPI_Aint lower, extent;
    MPI(MPI_Type_get_extent(type, &lower, &extent));
    for (int count : {1, 3, 1000, 20000}) {
      std::vector<char> from(size_t(count * extent)), to(from.size(), 0);
      fill(from.data(), from.size(), type, check::key_of(uint64_t(count), uint64_t(check::rank)));
      const std::vector<unsigned char> bytes = packed(from.data(), count, type);
      MPI_Count position = 0;
      MPI(MPI_Unpack_external_c(external, bytes.data(), MPI_Count(bytes.size()), &position,
                                to.data(), count, type));
      CHECK_EQ(position, bytes.size());
      CHECK(from == to);
    }
  }
}

// Records with gaps, in a vector, to the next rank as bytes.
void structs() {
  struct Record {
    char letter;
    double value;
    long number[2];
    short tail;
  };
  const int lengths[] = {1, 1, 2, 1};
  const MPI_Aint places[] = {offsetof(Record, letter), offsetof(Record, value),
                             offsetof(Record, number), offsetof(Record, tail)};
  const MPI_Datatype members[] = {MPI_CHAR, MPI_DOUBLE, MPI_LONG, MPI_SHORT};
  MPI_Datatype record, every_other;
  MPI(MPI_Type_create_struct(4, lengths, places, members, &record));
  MPI(MPI_Type_vector(50, 1, 2, record, &every_other));
  MPI(MPI_Type_commit(&every_other));
  MPI_Aint size;
  MPI(MPI_Pack_external_size(external, 1, every_other, &size));
  CHECK_EQ(size, 50 * (1 + 8 + 2 * 4 + 2));
  std::vector<Record> from(100), to(100);
  memset(static_cast<void*>(from.data()), 0x11, 100 * sizeof(Record));
  memset(static_cast<void*>(to.data()), 0x11, 100 * sizeof(Record));
  for (int i = 0; i < 100; i += 2) {
    Record& one = from[size_t(i)];
    one.letter = char('a' + i % 26);
    one.value = check::rank + i * 0.25;
    one.number[0] = -i - check::rank;
    one.number[1] = i;
    one.tail = short(-i);
  }
  const std::vector<unsigned char> mine = packed(from.data(), 1, every_other);
  std::vector<unsigned char> theirs(mine.size());
  const int right = (check::rank + 1) % check::size;
  const int left = (check::rank + check::size - 1) % check::size;
  MPI(MPI_Sendrecv(mine.data(), int(mine.size()), MPI_BYTE, right, 0, theirs.data(),
                   int(theirs.size()), MPI_BYTE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  MPI_Aint position = 0;
  MPI(MPI_Unpack_external(external, theirs.data(), MPI_Aint(theirs.size()), &position, to.data(), 1,
                          every_other));
  for (int i = 0; i < 100; i += 2) {
    const Record& one = to[size_t(i)];
    CHECK_EQ(one.letter, char('a' + i % 26));
    CHECK_EQ(one.value, left + i * 0.25);
    CHECK_EQ(one.number[0], -i - left);
    CHECK_EQ(one.number[1], i);
    CHECK_EQ(one.tail, short(-i));
    CHECK_UNTOUCHED(&to[size_t(i) + 1], sizeof(Record), 0x11);
    CHECK_UNTOUCHED(&to[size_t(i)].letter + 1, 7, 0x11);
  }
  MPI(MPI_Type_free(&record));
  MPI(MPI_Type_free(&every_other));
}

void refused() {
  int number = 1;
  char bytes[16] = {};
  MPI_Aint position = 0, size = 0;
  EXPECT_CLASS(MPI_ERR_ARG,
               MPI_Pack_external("internal", &number, 1, MPI_INT, bytes, 16, &position));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Pack_external(nullptr, &number, 1, MPI_INT, bytes, 16, &position));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Pack_external(external, &number, 1, MPI_INT, bytes, 3, &position));
  EXPECT_CLASS(MPI_ERR_COUNT,
               MPI_Pack_external(external, &number, -1, MPI_INT, bytes, 16, &position));
  EXPECT_CLASS(MPI_ERR_BUFFER,
               MPI_Pack_external(external, nullptr, 1, MPI_INT, bytes, 16, &position));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Pack_external(external, &number, 1, MPI_INT, bytes, 16, nullptr));
  EXPECT_CLASS(MPI_ERR_TRUNCATE,
               MPI_Unpack_external(external, bytes, 3, &position, &number, 1, MPI_INT));
  EXPECT_CLASS(MPI_ERR_COUNT, MPI_Pack_external_size(external, -1, MPI_INT, &size));
  EXPECT_CLASS(MPI_ERR_TYPE, MPI_Pack_external_size(external, 1, MPI_DATATYPE_NULL, &size));
  const long large = 1l << 40;
  EXPECT_CLASS(MPI_ERR_VALUE_TOO_LARGE,
               MPI_Pack_external(external, &large, 1, MPI_LONG, bytes, 16, &position));
  CHECK_EQ(position, 0);
}

void expect_contents(MPI_Datatype type, int combiner, const std::vector<int>& wanted) {
  int integers, addresses, types, got;
  MPI(MPI_Type_get_envelope(type, &integers, &addresses, &types, &got));
  CHECK_EQ(got, combiner);
  CHECK_EQ(integers, wanted.size());
  CHECK_EQ(addresses, 0);
  CHECK_EQ(types, 0);
  std::vector<int> numbers(wanted.size());
  MPI_Aint no_address;
  MPI_Datatype no_type;
  MPI(MPI_Type_get_contents(type, integers, 0, 0, numbers.data(), &no_address, &no_type));
  CHECK(numbers == wanted);
}

void parametrized() {
  MPI_Datatype type = MPI_DATATYPE_NULL, again = MPI_DATATYPE_NULL, other = MPI_DATATYPE_NULL;
  const struct {
    int p, r, size;
  } reals[] = {{6, 37, 4},  {6, MPI_UNDEFINED, 4},     {7, 30, 8},    {15, 307, 8},
               {6, 300, 8}, {MPI_UNDEFINED, 4000, 16}, {33, 4931, 16}};
  for (const auto& row : reals) {
    int size = 0;
    MPI(MPI_Type_create_f90_real(row.p, row.r, &type));
    MPI(MPI_Type_size(type, &size));
    CHECK_EQ(size, row.size);
    MPI(MPI_Type_create_f90_real(row.p, row.r, &again));
    CHECK_EQ(type, again);
    expect_contents(type, MPI_COMBINER_F90_REAL, {row.p, row.r});
    MPI(MPI_Type_create_f90_complex(row.p, row.r, &other));
    MPI(MPI_Type_size(other, &size));
    CHECK_EQ(size, 2 * row.size);
    expect_contents(other, MPI_COMBINER_F90_COMPLEX, {row.p, row.r});
    CHECK(type != other);
    EXPECT_CLASS(MPI_ERR_TYPE, MPI_Type_free(&type));
  }
  const int ranges[][2] = {{1, 1}, {2, 1}, {3, 2}, {9, 4}, {10, 8}, {18, 8}, {38, 16}};
  for (const auto& row : ranges) {
    int size = 0;
    MPI(MPI_Type_create_f90_integer(row[0], &type));
    MPI(MPI_Type_size(type, &size));
    CHECK_EQ(size, row[1]);
    expect_contents(type, MPI_COMBINER_F90_INTEGER, {row[0]});
  }
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Type_create_f90_real(34, MPI_UNDEFINED, &type));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Type_create_f90_real(MPI_UNDEFINED, MPI_UNDEFINED, &type));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Type_create_f90_complex(6, 5000, &type));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Type_create_f90_integer(39, &type));
  // They are used like the type they stand for: no commit, predefined operations, inside others.
  MPI(MPI_Type_create_f90_real(15, 307, &type));
  double mine = check::rank + 0.5, sum = 0;
  MPI(MPI_Allreduce(&mine, &sum, 1, type, MPI_SUM, MPI_COMM_WORLD));
  CHECK_EQ(sum, check::size * (check::size - 1) / 2 + 0.5 * check::size);
  CHECK(packed(&mine, 1, type) == packed(&mine, 1, MPI_DOUBLE));
  MPI(MPI_Type_contiguous(3, type, &other));
  int three = 0;
  MPI_Aint no_address;
  MPI(MPI_Type_get_contents(other, 1, 0, 1, &three, &no_address, &again));
  CHECK_EQ(again, type);
  MPI(MPI_Type_free(&other));
}

void matching() {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &type));
  CHECK_EQ(type, MPI_REAL8);
  MPI(MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 4, &type));
  CHECK_EQ(type, MPI_INTEGER4);
  MPI(MPI_Type_match_size(MPI_TYPECLASS_COMPLEX, 16, &type));
  CHECK_EQ(type, MPI_COMPLEX16);
  const MPI_Datatype logicals[] = {MPI_LOGICAL1, MPI_LOGICAL2, MPI_LOGICAL4, MPI_LOGICAL8,
                                   MPI_LOGICAL16};
  for (int i = 0; i < 5; ++i) {
    MPI(MPI_Type_match_size(MPIX_TYPECLASS_LOGICAL, 1 << i, &type));
    CHECK_EQ(type, logicals[i]);
  }
  MPI(MPI_Type_match_size(MPI_TYPECLASS_REAL, 2, &type));
  CHECK_EQ(type, MPI_REAL2);
  MPI(MPI_Type_match_size(MPI_TYPECLASS_COMPLEX, 4, &type));
  CHECK_EQ(type, MPI_COMPLEX4);
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Type_match_size(MPI_TYPECLASS_REAL, 3, &type));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Type_match_size(-1, 4, &type));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, nullptr));
}

void value_index() {
  const MPI_Datatype pairs[][3] = {
      {MPI_FLOAT, MPI_INT, MPI_FLOAT_INT}, {MPI_DOUBLE, MPI_INT, MPI_DOUBLE_INT},
      {MPI_LONG, MPI_INT, MPI_LONG_INT},   {MPI_SHORT, MPI_INT, MPI_SHORT_INT},
      {MPI_INT, MPI_INT, MPI_2INT},        {MPI_LONG_DOUBLE, MPI_INT, MPI_LONG_DOUBLE_INT}};
  MPI_Datatype type = MPI_BYTE;
  for (const auto& row : pairs) {
    MPI(MPI_Type_get_value_index(row[0], row[1], &type));
    CHECK_EQ(type, row[2]);
  }
  MPI(MPI_Type_get_value_index(MPI_BYTE, MPI_INT, &type));
  CHECK_EQ(type, MPI_DATATYPE_NULL);
  EXPECT_CLASS(MPI_ERR_TYPE, MPI_Type_get_value_index(MPI_DATATYPE_NULL, MPI_INT, &type));
  MPI_Datatype derived;
  MPI(MPI_Type_contiguous(1, MPI_DOUBLE, &derived));
  EXPECT_CLASS(MPI_ERR_TYPE, MPI_Type_get_value_index(derived, MPI_INT, &type));
  MPI(MPI_Type_free(&derived));
  MPI(MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &type));
  struct {
    double value;
    int index;
  } mine = {-1.0 * check::rank, check::rank}, least;
  MPI(MPI_Allreduce(&mine, &least, 1, type, MPI_MINLOC, MPI_COMM_WORLD));
  CHECK_EQ(least.index, check::size - 1);
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"table", table},
                      {"there_and_back", there_and_back},
                      {"structs", structs},
                      {"refused", refused},
                      {"parametrized", parametrized},
                      {"matching", matching},
                      {"value_index", value_index}});
}
