// User-defined operations: commutative and not, on predefined and derived datatypes, through every
// reduction. Products of 2x2 matrices modulo a prime show any wrong order of ranks.
#include <numeric>

#include "coll.h"

namespace {

using coll::everywhere;
using coll::Place;

constexpr uint64_t prime = 1000003;

struct Matrix {
  int64_t a, b, c, d;
  bool operator==(const Matrix&) const = default;
};
Matrix times(const Matrix& x, const Matrix& y) {
  auto m = [](uint64_t v) { return static_cast<int64_t>(v % prime); };
  return {m(x.a * y.a + x.b * y.c), m(x.a * y.b + x.b * y.d), m(x.c * y.a + x.d * y.c),
          m(x.c * y.b + x.d * y.d)};
}
Matrix matrix_of(int rank, size_t index) {
  auto e = [&](uint64_t k) { return static_cast<int64_t>(check::key_of(rank, index, k) % prime); };
  return {e(1), e(2), e(3), e(4)};
}

int calls = 0;
// inout = in op inout, where `in` comes from lower ranks.
void multiply(void* in, void* inout, int* count, MPI_Datatype* type) {
  ++calls;
  int bytes = 0;
  MPI(MPI_Type_size(*type, &bytes));  // a user function may ask about its datatype
  CHECK_EQ(bytes, sizeof(Matrix));
  auto* x = static_cast<Matrix*>(in);
  auto* y = static_cast<Matrix*>(inout);
  for (int i = 0; i < *count; ++i) y[i] = times(x[i], y[i]);
}
void multiply_large(void* in, void* inout, MPI_Count* count, MPI_Datatype*) {
  auto* x = static_cast<Matrix*>(in);
  auto* y = static_cast<Matrix*>(inout);
  for (MPI_Count i = 0; i < *count; ++i) y[i] = times(x[i], y[i]);
}
// Commutative: the greatest common divisor of ints.
void divide(void* in, void* inout, int* count, MPI_Datatype* type) {
  CHECK_EQ(*type, MPI_INT);
  auto* x = static_cast<int*>(in);
  auto* y = static_cast<int*>(inout);
  for (int i = 0; i < *count; ++i) y[i] = std::gcd(x[i], y[i]);
}

Matrix product(int first, int last, size_t index) {
  Matrix m = matrix_of(first, index);
  for (int r = first + 1; r <= last; ++r) m = times(m, matrix_of(r, index));
  return m;
}

std::vector<Matrix> load(const Place& p, size_t n) {
  std::vector<Matrix> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = matrix_of(p.rank, i);
  return v;
}
void verify(const char* call, const Matrix* got, size_t n, size_t offset, int first, int last) {
  for (size_t i = 0; i < n; ++i) {
    if (!(got[i] == product(first, last, offset + i)))
      check::fail(__FILE__, __LINE__, "%s: product %zu of %zu is wrong", call, i, n);
  }
}

void all_calls(const Place& p, MPI_Datatype type, MPI_Op op, int count) {
  size_t n = count;
  for (int root : coll::roots(p.size, n)) {
    std::vector<Matrix> out = load(p, n), in(n);
    coll::reduce(out.data(), in.data(), count, type, op, root, p.comm);
    if (p.rank == root) verify("Reduce", in.data(), n, 0, 0, p.size - 1);
    CHECK(out == load(p, n));
    in = load(p, n);
    coll::reduce(p.rank == root ? MPI_IN_PLACE : in.data(), in.data(), count, type, op, root,
                 p.comm);
    if (p.rank == root) verify("Reduce in place", in.data(), n, 0, 0, p.size - 1);
  }
  std::vector<Matrix> out = load(p, n), in(n);
  coll::allreduce(out.data(), in.data(), count, type, op, p.comm);
  verify("Allreduce", in.data(), n, 0, 0, p.size - 1);
  in = out;
  coll::allreduce(MPI_IN_PLACE, in.data(), count, type, op, p.comm);
  verify("Allreduce in place", in.data(), n, 0, 0, p.size - 1);
  coll::scan(out.data(), in.data(), count, type, op, p.comm);
  verify("Scan", in.data(), n, 0, 0, p.rank);
  in = out;
  coll::exscan(MPI_IN_PLACE, in.data(), count, type, op, p.comm);
  if (p.rank > 0) verify("Exscan in place", in.data(), n, 0, 0, p.rank - 1);
  out = load(p, n * p.size);
  coll::reduce_scatter_block(out.data(), in.data(), count, type, op, p.comm);
  verify("Reduce_scatter_block", in.data(), n, n * p.rank, 0, p.size - 1);
  std::vector<int> counts(p.size);
  size_t total = 0, before = 0;
  for (int r = 0; r < p.size; ++r) {
    counts[r] = r % 2 ? 0 : count + r;
    before += r < p.rank ? counts[r] : 0;
    total += counts[r];
  }
  out = load(p, total);
  in.resize(counts[p.rank] + 1);
  coll::reduce_scatter(out.data(), in.data(), counts.data(), type, op, p.comm);
  verify("Reduce_scatter", in.data(), counts[p.rank], before, 0, p.size - 1);
}

MPI_Datatype matrix_type() {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI(MPI_Type_contiguous(4, MPI_INT64_T, &type));
  MPI(MPI_Type_commit(&type));
  return type;
}

void in_rank_order() {
  MPI_Op op = MPI_OP_NULL;
  MPI_Datatype type = matrix_type();
  MPI(MPI_Op_create(multiply, 0, &op));
  int flag = 1;
  MPI(MPI_Op_commutative(op, &flag));
  CHECK(!flag);
  everywhere([&](const Place& p) {
    for (int count : {1, 7, 130, 3000}) all_calls(p, type, op, count);
  });
  if (check::size > 1) CHECK(calls > 0);
  MPI(MPI_Op_free(&op));
  CHECK_EQ(op, MPI_OP_NULL);
  MPI(MPI_Type_free(&type));
}

void large_count_function() {
  MPI_Op op = MPI_OP_NULL;
  MPI_Datatype type = matrix_type();
  MPI(MPI_Op_create_c(multiply_large, 0, &op));
  everywhere([&](const Place& p) { all_calls(p, type, op, 60); });
  MPI(MPI_Op_free(&op));
  MPI(MPI_Type_free(&type));
}

void commutative() {
  MPI_Op op = MPI_OP_NULL;
  MPI(MPI_Op_create(divide, 1, &op));
  int flag = 0;
  MPI(MPI_Op_commutative(op, &flag));
  CHECK(flag);
  MPI(MPI_Op_commutative(MPI_SUM, &flag));
  CHECK(flag);
  everywhere([&](const Place& p) {
    for (int count : {1, 500, 20000}) {
      std::vector<int> out(count), in(count);
      auto number = [](int rank, int i) { return 12 * (1 + (rank * 5 + i) % 30); };
      for (int i = 0; i < count; ++i) out[i] = number(p.rank, i);
      coll::allreduce(out.data(), in.data(), count, MPI_INT, op, p.comm);
      for (int i = 0; i < count; ++i) {
        int wanted = 0;
        for (int r = 0; r < p.size; ++r) wanted = std::gcd(wanted, number(r, i));
        CHECK_EQ(in[i], wanted);
      }
    }
  });
  MPI(MPI_Op_free(&op));
}

// A record with a hole, as programs build for MAXLOC of their own; the hole is never written.
struct Record {
  double value;
  int where;
  int hole;
};
void greater(void* in, void* inout, int* count, MPI_Datatype*) {
  auto* x = static_cast<Record*>(in);
  auto* y = static_cast<Record*>(inout);
  for (int i = 0; i < *count; ++i) {
    if (x[i].value >= y[i].value) {
      y[i].value = x[i].value;
      y[i].where = x[i].where;
    }
  }
}
void records() {
  int lengths[2] = {1, 1};
  MPI_Aint places[2] = {0, 8};
  MPI_Datatype parts[2] = {MPI_DOUBLE, MPI_INT}, record = MPI_DATATYPE_NULL;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  MPI(MPI_Type_create_struct(2, lengths, places, parts, &record));
  MPI(MPI_Type_create_resized(record, 0, sizeof(Record), &type));
  MPI(MPI_Type_commit(&type));
  MPI(MPI_Op_create(greater, 1, &op));
  everywhere([&](const Place& p) {
    const int count = 300;
    std::vector<Record> out(count), in(count);
    for (int i = 0; i < count; ++i) {
      out[i] = {static_cast<double>((p.rank * 7 + i) % (2 * p.size)), p.rank, -1};
      in[i].hole = 99;
    }
    coll::allreduce(out.data(), in.data(), count, type, op, p.comm);
    for (int i = 0; i < count; ++i) {
      double best = -1;
      for (int r = 0; r < p.size; ++r)
        best = std::max(best, static_cast<double>((r * 7 + i) % (2 * p.size)));
      CHECK_EQ(in[i].value, best);
      CHECK_EQ((in[i].where * 7 + i) % (2 * p.size), static_cast<int>(best));
      CHECK_EQ(in[i].hole, 99);
    }
  });
  MPI(MPI_Op_free(&op));
  MPI(MPI_Type_free(&record));
  MPI(MPI_Type_free(&type));
}

// The operation and the datatype are freed while the reductions run.
void freed_early() {
  MPI_Op op = MPI_OP_NULL;
  MPI_Datatype type = matrix_type();
  MPI(MPI_Op_create(multiply, 0, &op));
  std::vector<Matrix> out(50), in[4];
  MPI_Request requests[4];
  for (size_t i = 0; i < 50; ++i) out[i] = matrix_of(check::rank, i);
  for (int k = 0; k < 4; ++k) {
    in[k].resize(50);
    MPI(MPI_Iallreduce(out.data(), in[k].data(), 50, type, op, MPI_COMM_WORLD, &requests[k]));
  }
  MPI(MPI_Op_free(&op));
  MPI(MPI_Type_free(&type));
  MPI(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
  for (auto& v : in) verify("Iallreduce", v.data(), 50, 0, 0, check::size - 1);
}

void local() {
  MPI_Op op = MPI_OP_NULL;
  MPI_Datatype type = matrix_type();
  MPI(MPI_Op_create(multiply, 0, &op));
  Matrix a = matrix_of(1, 1), b = matrix_of(2, 1);
  MPI(MPI_Reduce_local(&a, &b, 1, type, op));
  CHECK(b == times(a, matrix_of(2, 1)));
  MPI(MPI_Op_free(&op));
  MPI(MPI_Type_free(&type));
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"in_rank_order", in_rank_order},
                      {"large_count_function", large_count_function},
                      {"commutative", commutative},
                      {"records", records},
                      {"freed_early", freed_early},
                      {"local", local}});
}
