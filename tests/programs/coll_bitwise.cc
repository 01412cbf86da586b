// Floating-point reductions give the same bits: on every rank, from every call, in every
// repetition, for one element as for many, however late some ranks come. The program prints a hash
// of all results; the runner compares it over transports and modes.
#include <unistd.h>

#include "coll.h"

namespace {

uint64_t hash = 14695981039346656037ull;

void add_to_hash(const void* data, size_t bytes) {
  const auto* at = static_cast<const uint8_t*>(data);
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ at[i]) * 1099511628211ull;
}

// Numbers of very different sizes and signs: any other order of adding shows.
template <class T>
std::vector<T> numbers(int rank, size_t n) {
  std::vector<T> v(n);
  for (size_t i = 0; i < n; ++i) {
    uint64_t k = check::key_of(rank, i, 55);
    double x = static_cast<double>(k >> 12) / static_cast<double>(1ull << 52) + 0.5;
    int shift = static_cast<int>(k % 60) - 30;
    for (int s = 0; s < std::abs(shift); ++s) x = shift > 0 ? x * 2 : x / 2;
    v[i] = static_cast<T>(k & 64 ? -x : x);
  }
  return v;
}

void dawdle(int round) {
  if ((round + check::rank) % 4 == 0) usleep(500 * (check::rank % 3));
}

template <class T>
void expect_same(const char* call, const T* got, const T* wanted, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    if (memcmp(&got[i], &wanted[i], sizeof(T)) != 0)
      check::fail(__FILE__, __LINE__, "%s: element %zu of %zu is %.17g, Allreduce gave %.17g", call,
                  i, n, static_cast<double>(got[i]), static_cast<double>(wanted[i]));
  }
}

template <class T>
void one_type(MPI_Datatype type, MPI_Op op, int block) {
  size_t n = static_cast<size_t>(block) * check::size;
  int count = static_cast<int>(n);
  std::vector<T> out = numbers<T>(check::rank, n), all(n), in(n), root_copy(n);
  MPI(MPI_Allreduce(out.data(), all.data(), count, type, op, MPI_COMM_WORLD));
  root_copy = all;
  MPI(MPI_Bcast(root_copy.data(), count * static_cast<int>(sizeof(T)), MPI_BYTE, 0,
                MPI_COMM_WORLD));
  expect_same("Allreduce on rank 0", root_copy.data(), all.data(), n);
  for (int round = 0; round < 4; ++round) {
    dawdle(round);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI(MPI_Iallreduce(out.data(), in.data(), count, type, op, MPI_COMM_WORLD, &request));
    dawdle(round + 1);
    MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    expect_same("a repeated Iallreduce", in.data(), all.data(), n);
  }
  for (int root = 0; root < check::size; ++root) {
    dawdle(root);
    MPI(MPI_Reduce(out.data(), in.data(), count, type, op, root, MPI_COMM_WORLD));
    if (check::rank == root) expect_same("Reduce", in.data(), all.data(), n);
  }
  MPI(MPI_Reduce_scatter_block(out.data(), in.data(), block, type, op, MPI_COMM_WORLD));
  expect_same("Reduce_scatter_block", in.data(), all.data() + block * check::rank, block);
  std::vector<int> counts(check::size, block);
  MPI(MPI_Reduce_scatter(out.data(), in.data(), counts.data(), type, op, MPI_COMM_WORLD));
  expect_same("Reduce_scatter", in.data(), all.data() + block * check::rank, block);
  in = out;
  MPI(MPI_Allreduce(MPI_IN_PLACE, in.data(), count, type, op, MPI_COMM_WORLD));
  expect_same("Allreduce in place", in.data(), all.data(), n);
  for (size_t i = 0; i < n; i += n / 3 + 1) {
    MPI(MPI_Allreduce(&out[i], &in[0], 1, type, op, MPI_COMM_WORLD));
    expect_same("Allreduce of one element", in.data(), &all[i], 1);
  }
  add_to_hash(all.data(), n * sizeof(T));
}

void reductions() {
  for (int block : {1, 5, 300, 3000, 20000}) {
    one_type<double>(MPI_DOUBLE, MPI_SUM, block);
    one_type<float>(MPI_FLOAT, MPI_SUM, block);
    one_type<double>(MPI_DOUBLE, MPI_PROD, block);
  }
  if (check::rank == 0) printf("hash %016llx\n", static_cast<unsigned long long>(hash));
}

// Scan is a left fold in every library that means to be reproducible; only repetition is asked.
void scans() {
  std::vector<double> out = numbers<double>(check::rank, 4000), first(4000), again(4000);
  MPI(MPI_Scan(out.data(), first.data(), 4000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
  for (int round = 0; round < 4; ++round) {
    dawdle(round);
    MPI(MPI_Scan(out.data(), again.data(), 4000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    expect_same("a repeated Scan", again.data(), first.data(), 4000);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv, {{"reductions", reductions}, {"scans", scans}});
}
