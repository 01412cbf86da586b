// Reductions that the standard does not define and others' programs rely on: MPI_CHAR as a number,
// logical operations on addresses, counts and offsets. Every reduction computes them; with
// HEADWAY_STRICT on, every one refuses them with MPI_ERR_OP, and nothing else.
#include <limits.h>

#include "coll.h"

namespace {

bool strict() {
  const char* text = getenv("HEADWAY_STRICT");
  return text != nullptr && strcmp(text, "on") == 0;
}

const struct Operation {
  MPI_Op op;
  int (*apply)(int a, int b);
  bool logical;
} operations[] = {
    {MPI_SUM, [](int a, int b) { return a + b; }, false},
    {MPI_PROD, [](int a, int b) { return a * b; }, false},
    {MPI_MIN, [](int a, int b) { return a < b ? a : b; }, false},
    {MPI_MAX, [](int a, int b) { return a > b ? a : b; }, false},
    {MPI_BAND, [](int a, int b) { return a & b; }, false},
    {MPI_BOR, [](int a, int b) { return a | b; }, false},
    {MPI_BXOR, [](int a, int b) { return a ^ b; }, false},
    {MPI_LAND, [](int a, int b) { return int(a && b); }, true},
    {MPI_LOR, [](int a, int b) { return int(a || b); }, true},
    {MPI_LXOR, [](int a, int b) { return int(!a != !b); }, true},
};

// Element `i` of rank `r`: zeros, ones, and numbers on both sides of a char's sign.
int value_of(int r, int i) { return char((r + i) % 3 == 0 ? 0 : 37 * r + 101 * i + 1); }

// What ranks `first` to `last` make of element `i`.
template <class T>
T fold(const Operation& operation, int first, int last, int i) {
  T result = T(value_of(first, i));
  for (int r = first + 1; r <= last; ++r) {
    result = T(operation.apply(int(result), value_of(r, i)));
  }
  return result;
}

template <class T>
void computes(const Operation& operation, MPI_Datatype type, int n) {
  const int rank = check::rank, last = check::size - 1;
  MPI_Comm w = MPI_COMM_WORLD;
  const int all = n * check::size;
  std::vector<T> in(static_cast<size_t>(all)), out(in.size(), T(99));
  for (int i = 0; i < all; ++i) in[size_t(i)] = T(value_of(rank, i));
  const auto expect = [&](int last_rank, int first_element) {
    for (int i = 0; i < n; ++i) {
      CHECK_EQ(int(out[size_t(i)]), int(fold<T>(operation, 0, last_rank, first_element + i)));
    }
  };
  coll::allreduce(in.data(), out.data(), n, type, operation.op, w);
  expect(last, 0);
  coll::reduce(in.data(), out.data(), n, type, operation.op, last, w);
  if (rank == last) expect(last, 0);
  coll::scan(in.data(), out.data(), n, type, operation.op, w);
  expect(rank, 0);
  coll::exscan(in.data(), out.data(), n, type, operation.op, w);
  if (rank > 0) expect(rank - 1, 0);
  coll::reduce_scatter_block(in.data(), out.data(), n, type, operation.op, w);
  expect(last, n * rank);
  const std::vector<int> counts(size_t(check::size), n);
  coll::reduce_scatter(in.data(), out.data(), counts.data(), type, operation.op, w);
  expect(last, n * rank);
  const T below = T(5);
  T above = T(-3);
  MPI(MPI_Reduce_local(&below, &above, 1, type, operation.op));
  CHECK_EQ(int(above), int(T(operation.apply(5, int(T(-3))))));
}

// The type itself, and a dup of it.
void chars() {
  if (strict()) return;
  MPI_Datatype twin = MPI_DATATYPE_NULL;
  MPI(MPI_Type_dup(MPI_CHAR, &twin));
  for (coll::Form form : {coll::Form::blocking, coll::Form::immediate, coll::Form::persistent}) {
    coll::form = form;
    for (const Operation& operation : operations) {
      for (int n : {1, 7, 300}) computes<char>(operation, MPI_CHAR, n);
      computes<char>(operation, twin, 20000);
    }
  }
  MPI(MPI_Type_free(&twin));
}

void addresses() {
  if (strict()) return;
  coll::form = coll::Form::blocking;
  for (const Operation& operation : operations) {
    if (!operation.logical) continue;
    for (int n : {1, 300}) {
      computes<MPI_Aint>(operation, MPI_AINT, n);
      computes<MPI_Count>(operation, MPI_COUNT, n);
      computes<MPI_Offset>(operation, MPI_OFFSET, n);
    }
  }
}

void refused() {
  if (!strict()) return;
  MPI_Comm w = MPI_COMM_WORLD;
  MPI_Count in[16] = {1}, out[16] = {0};
  const int ones[64] = {1};
  for (const Operation& operation : operations) {
    const MPI_Op op = operation.op;
    for (MPI_Datatype type : {MPI_CHAR, MPI_AINT, MPI_COUNT, MPI_OFFSET}) {
      if (type != MPI_CHAR && !operation.logical) continue;
      MPI_Request request = MPI_REQUEST_NULL;
      EXPECT_CLASS(MPI_ERR_OP, MPI_Allreduce(in, out, 1, type, op, w));
      EXPECT_CLASS(MPI_ERR_OP, MPI_Reduce(in, out, 1, type, op, 0, w));
      EXPECT_CLASS(MPI_ERR_OP, MPI_Scan(in, out, 1, type, op, w));
      EXPECT_CLASS(MPI_ERR_OP, MPI_Exscan(in, out, 1, type, op, w));
      EXPECT_CLASS(MPI_ERR_OP, MPI_Reduce_scatter(in, out, ones, type, op, w));
      EXPECT_CLASS(MPI_ERR_OP, MPI_Reduce_local(in, out, 1, type, op));
      EXPECT_CLASS(MPI_ERR_OP, MPI_Iallreduce(in, out, 1, type, op, w, &request));
      EXPECT_CLASS(MPI_ERR_OP,
                   MPI_Allreduce_init(in, out, 1, type, op, w, MPI_INFO_NULL, &request));
    }
    coll::form = coll::Form::blocking;
    computes<signed char>(operation, MPI_SIGNED_CHAR, 3);
    if (!operation.logical) computes<MPI_Aint>(operation, MPI_AINT, 3);
  }
}

// What MPICH and Open MPI do not agree on stays refused, whatever the option.
void others() {
  char in[32] = {1}, out[32] = {0};
  EXPECT_CLASS(MPI_ERR_OP, MPI_Reduce_local(in, out, 1, MPI_BYTE, MPI_SUM));
  EXPECT_CLASS(MPI_ERR_OP, MPI_Reduce_local(in, out, 1, MPI_CHARACTER, MPI_SUM));
  EXPECT_CLASS(MPI_ERR_OP, MPI_Reduce_local(in, out, 1, MPI_WCHAR, MPI_MAX));
  EXPECT_CLASS(MPI_ERR_OP, MPI_Reduce_local(in, out, 1, MPI_PACKED, MPI_BOR));
  EXPECT_CLASS(MPI_ERR_OP, MPI_Reduce_local(in, out, 1, MPI_CHAR, MPI_MAXLOC));
  EXPECT_CLASS(MPI_ERR_OP, MPI_Reduce_local(in, out, 1, MPI_DOUBLE, MPI_LAND));
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(
      argc, argv,
      {{"chars", chars}, {"addresses", addresses}, {"refused", refused}, {"others", others}});
}
