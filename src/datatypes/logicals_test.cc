// Logical operations on Fortran's logicals, told and not told.
#include "datatypes/logicals.h"

#include <gtest/gtest.h>

#include <cstring>

#include "datatypes/reduce.h"

namespace headway::datatypes {
namespace {

// Each test leaves what gfortran has.
class Logicals : public testing::Test {
 protected:
  ~Logicals() override {
    for (const size_t size : {1, 2, 4, 8, 16}) {
      char one[16] = {1}, zero[16] = {};
      tell_logicals(size, one, zero);
    }
  }
};

int combined(ReduceOp op, int lower, int upper) {
  int out = 77;
  find_reducer3(op, BasicType::logical)(&lower, &upper, &out, 1);
  int inout = upper;
  find_reducer(op, BasicType::logical)(&lower, &inout, 1);
  EXPECT_EQ(inout, out);
  return out;
}

TEST_F(Logicals, OfOneAndZeroAreThoseOfC) {
  for (const int a : {0, 1, 2, -1}) {
    for (const int b : {0, 1, 2, -1}) {
      EXPECT_EQ(combined(ReduceOp::land, a, b), a && b);
      EXPECT_EQ(combined(ReduceOp::lor, a, b), a || b);
      EXPECT_EQ(combined(ReduceOp::lxor, a, b), !a != !b);
    }
  }
}

TEST_F(Logicals, LeaveWhatTheCompilerHasForTrue) {
  const int truth = -1, falsehood = 0;
  tell_logicals(4, &truth, &falsehood);
  for (const int a : {0, -1}) {
    for (const int b : {0, -1}) {
      EXPECT_EQ(combined(ReduceOp::land, a, b), a && b ? -1 : 0);
      EXPECT_EQ(combined(ReduceOp::lor, a, b), a || b ? -1 : 0);
      EXPECT_EQ(combined(ReduceOp::lxor, a, b), a != b ? -1 : 0);
    }
  }
  // Integers of C and other sizes are as they were.
  int one = 1, all = -1, out = 0;
  find_reducer3(ReduceOp::land, BasicType::int_)(&one, &all, &out, 1);
  EXPECT_EQ(out, 1);
  long wide = -1, other = -1, wide_out = 0;
  find_reducer3(ReduceOp::land, BasicType::logical8)(&wide, &other, &wide_out, 1);
  EXPECT_EQ(wide_out, 1);
}

TEST_F(Logicals, OfEverySize) {
  const BasicType types[] = {BasicType::logical1, BasicType::logical2, BasicType::logical4,
                             BasicType::logical8, BasicType::logical16};
  size_t size = 1;
  for (const BasicType type : types) {
    char truth[16], falsehood[16], a[32], b[32], out[32], wanted[32];
    memset(truth, 0x5a, sizeof truth);
    memset(falsehood, 0x11, sizeof falsehood);
    tell_logicals(size, truth, falsehood);
    memcpy(a, truth, size);
    memcpy(a + size, falsehood, size);
    memcpy(b, falsehood, size);
    memcpy(b + size, falsehood, size);
    memcpy(wanted, truth, size);
    memcpy(wanted + size, falsehood, size);
    find_reducer3(ReduceOp::lor, type)(a, b, out, 2);
    EXPECT_EQ(memcmp(out, wanted, 2 * size), 0) << size;
    size *= 2;
  }
}

}  // namespace
}  // namespace headway::datatypes
