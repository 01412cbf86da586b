// Reductions: every predefined operation on every predefined type it is defined for, against a fold
// in a plain loop, through all six calls, every root, in place, from 0 elements to 1 MB. Values
// are small whole numbers, so that floating-point results are exact in every order.
#include <algorithm>
#include <complex>

#include "coll.h"

namespace {

using coll::everywhere;
using coll::Place;

template <class T>
struct IsComplex : std::false_type {};
template <class T>
struct IsComplex<std::complex<T>> : std::true_type {};

template <class T>
T element(int rank, size_t index) {
  int small = static_cast<int>(check::key_of(rank, index) % 3) + 1;
  if constexpr (IsComplex<T>::value)
    return T(static_cast<typename T::value_type>(small),
             static_cast<typename T::value_type>(rank % 2));
  else if constexpr (std::is_same_v<T, bool>)
    return check::key_of(rank, index) % 3 == 0;
  else
    return static_cast<T>(small * (std::is_signed_v<T> && rank % 3 == 1 ? -1 : 1));
}

template <class T>
T fold(MPI_Op op, T a, T b) {
  if (op == MPI_SUM) return static_cast<T>(a + b);
  if (op == MPI_PROD) return static_cast<T>(a * b);
  if constexpr (!IsComplex<T>::value) {
    if (op == MPI_MIN) return std::min(a, b);
    if (op == MPI_MAX) return std::max(a, b);
    if (op == MPI_LAND) return static_cast<T>(a && b);
    if (op == MPI_LOR) return static_cast<T>(a || b);
    if (op == MPI_LXOR) return static_cast<T>(!a != !b);
    if constexpr (std::is_integral_v<T>) {
      if (op == MPI_BAND) return static_cast<T>(a & b);
      if (op == MPI_BOR) return static_cast<T>(a | b);
      if (op == MPI_BXOR) return static_cast<T>(a ^ b);
    }
  }
  check::fail(__FILE__, __LINE__, "no such operation");
}

template <class T>
T folded(MPI_Op op, int first, int last, size_t index) {
  T result = element<T>(first, index);
  for (int r = first + 1; r <= last; ++r) result = fold<T>(op, result, element<T>(r, index));
  return result;
}

template <class T>
struct Buffers {
  // bool has no data() in std::vector, so plain bytes hold every type.
  std::vector<unsigned char> bytes;
  explicit Buffers(size_t n) : bytes((n + 1) * sizeof(T), 0x5e) {}
  T* at() { return reinterpret_cast<T*>(bytes.data()); }
};

template <class T>
void verify(const char* call, T* got, size_t count, size_t offset, MPI_Op op, int first, int last) {
  for (size_t i = 0; i < count; ++i) {
    T wanted = folded<T>(op, first, last, offset + i);
    if (got[i] != wanted)
      check::fail(__FILE__, __LINE__, "%s: element %zu of %zu, operation %d, is wrong", call, i,
                  count, MPI_Op_toint(op));
  }
  const auto* after = reinterpret_cast<unsigned char*>(got + count);
  for (size_t i = 0; i < sizeof(T); ++i) CHECK_EQ(after[i], 0x5e);
}

template <class T>
struct Run {
  const Place& p;
  MPI_Datatype type;
  MPI_Op op;
  int count;
  bool in_place;

  void load(T* to, size_t n) {
    for (size_t i = 0; i < n; ++i) to[i] = element<T>(p.rank, i);
  }
  // What was sent is read, not folded into.
  void is_kept(const char* call, const T* sent, size_t n) {
    for (size_t i = 0; i < n; ++i) {
      if (sent[i] != element<T>(p.rank, i))
        check::fail(__FILE__, __LINE__, "%s changed element %zu of what was sent", call, i);
    }
  }
  void rooted() {
    for (int root : coll::roots(p.size, count)) {
      Buffers<T> in(count), out(count);
      bool here = p.rank == root;
      load(here && in_place ? in.at() : out.at(), count);
      coll::reduce(here && in_place ? MPI_IN_PLACE : out.at(), here ? in.at() : nullptr, count,
                   type, op, root, p.comm);
      if (here) verify("Reduce", in.at(), count, 0, op, 0, p.size - 1);
      if (!here || !in_place) is_kept("Reduce", out.at(), count);
    }
  }
  template <class Call>
  void flat(const char* name, Call call, int first, int last) {
    Buffers<T> in(count), out(count);
    load(in_place ? in.at() : out.at(), count);
    call(in_place ? MPI_IN_PLACE : static_cast<const void*>(out.at()), in.at(), count, type, op,
         p.comm);
    if (first <= last) verify(name, in.at(), count, 0, op, first, last);
    if (!in_place) is_kept(name, out.at(), count);
  }
  void scatter_block() {
    Buffers<T> in(in_place ? static_cast<size_t>(count) * p.size : count);
    Buffers<T> out(static_cast<size_t>(count) * p.size);
    load(in_place ? in.at() : out.at(), static_cast<size_t>(count) * p.size);
    coll::reduce_scatter_block(in_place ? MPI_IN_PLACE : static_cast<const void*>(out.at()),
                               in.at(), count, type, op, p.comm);
    if (in_place) memset(static_cast<void*>(in.at() + count), 0x5e, sizeof(T));
    verify("Reduce_scatter_block", in.at(), count, static_cast<size_t>(count) * p.rank, op, 0,
           p.size - 1);
    if (!in_place) is_kept("Reduce_scatter_block", out.at(), size_t(count) * size_t(p.size));
  }
  void scatter_uneven() {
    std::vector<int> counts(p.size);
    size_t total = 0, before = 0;
    for (int r = 0; r < p.size; ++r) {
      counts[r] = r % 3 == 1 ? 0 : count + r;
      if (r < p.rank) before += counts[r];
      total += counts[r];
    }
    Buffers<T> in(in_place ? total : counts[p.rank]), out(total);
    load(in_place ? in.at() : out.at(), total);
    coll::reduce_scatter(in_place ? MPI_IN_PLACE : static_cast<const void*>(out.at()), in.at(),
                         counts.data(), type, op, p.comm);
    if (in_place) memset(static_cast<void*>(in.at() + counts[p.rank]), 0x5e, sizeof(T));
    verify("Reduce_scatter", in.at(), counts[p.rank], before, op, 0, p.size - 1);
    if (!in_place) is_kept("Reduce_scatter", out.at(), total);
  }
  void all() {
    rooted();
    flat("Allreduce", coll::allreduce, 0, p.size - 1);
    flat("Scan", coll::scan, 0, p.rank);
    flat("Exscan", coll::exscan, 0, p.rank - 1);
    scatter_block();
    scatter_uneven();
  }
};

const std::vector<MPI_Op> arithmetic = {MPI_SUM, MPI_PROD};
const std::vector<MPI_Op> order = {MPI_MIN, MPI_MAX};
const std::vector<MPI_Op> logical = {MPI_LAND, MPI_LOR, MPI_LXOR};
const std::vector<MPI_Op> bitwise = {MPI_BAND, MPI_BOR, MPI_BXOR};

template <class T>
void try_type(MPI_Datatype type, std::vector<std::vector<MPI_Op>> groups, bool must = true) {
  int bytes = 0;
  int code = MPI_Type_size(type, &bytes);
  if (!must && (code != MPI_SUCCESS || bytes != static_cast<int>(sizeof(T)))) return;
  MPI(code);
  CHECK_EQ(bytes, sizeof(T));
  everywhere([&](const Place& p) {
    for (const auto& group : groups) {
      for (MPI_Op op : group) {
        for (bool in_place : {false, true}) Run<T>{p, type, op, in_place ? 33 : 5, in_place}.all();
      }
    }
  });
}

template <class T>
void integer(MPI_Datatype type, bool must = true) {
  try_type<T>(type, {arithmetic, order, logical, bitwise}, must);
}

void integers() {
  integer<int>(MPI_INT);
  integer<long>(MPI_LONG);
  integer<short>(MPI_SHORT);
  integer<long long>(MPI_LONG_LONG);
  integer<unsigned short>(MPI_UNSIGNED_SHORT);
  integer<unsigned>(MPI_UNSIGNED);
  integer<unsigned long>(MPI_UNSIGNED_LONG);
  integer<unsigned long long>(MPI_UNSIGNED_LONG_LONG);
  integer<signed char>(MPI_SIGNED_CHAR);
  integer<unsigned char>(MPI_UNSIGNED_CHAR);
}

void fixed_integers() {
  integer<int8_t>(MPI_INT8_T);
  integer<int16_t>(MPI_INT16_T);
  integer<int32_t>(MPI_INT32_T);
  integer<int64_t>(MPI_INT64_T);
  integer<uint8_t>(MPI_UINT8_T);
  integer<uint16_t>(MPI_UINT16_T);
  integer<uint32_t>(MPI_UINT32_T);
  integer<uint64_t>(MPI_UINT64_T);
  // The types of all languages have no logical operations.
  try_type<MPI_Aint>(MPI_AINT, {arithmetic, order, bitwise});
  try_type<MPI_Offset>(MPI_OFFSET, {arithmetic, order, bitwise});
  try_type<MPI_Count>(MPI_COUNT, {arithmetic, order, bitwise});
}

void floats() {
  try_type<float>(MPI_FLOAT, {arithmetic, order});
  try_type<double>(MPI_DOUBLE, {arithmetic, order});
  try_type<long double>(MPI_LONG_DOUBLE, {arithmetic, order});
  try_type<std::complex<float>>(MPI_C_FLOAT_COMPLEX, {arithmetic});
  try_type<std::complex<double>>(MPI_C_DOUBLE_COMPLEX, {arithmetic});
  try_type<std::complex<long double>>(MPI_C_LONG_DOUBLE_COMPLEX, {arithmetic});
  try_type<std::complex<float>>(MPI_CXX_FLOAT_COMPLEX, {arithmetic});
  try_type<std::complex<double>>(MPI_CXX_DOUBLE_COMPLEX, {arithmetic});
}

void truth_and_bytes() {
  try_type<bool>(MPI_C_BOOL, {logical});
  try_type<bool>(MPI_CXX_BOOL, {logical});
  try_type<unsigned char>(MPI_BYTE, {bitwise});
}

// Fortran's types, where the library has them with the usual sizes.
void fortran_types() {
  try_type<int32_t>(MPI_INTEGER, {arithmetic, order, bitwise}, false);
  try_type<float>(MPI_REAL, {arithmetic, order}, false);
  try_type<double>(MPI_DOUBLE_PRECISION, {arithmetic, order}, false);
  try_type<int64_t>(MPI_INTEGER8, {arithmetic, order, bitwise}, false);
  try_type<double>(MPI_REAL8, {arithmetic, order}, false);
}

template <class T>
struct Pair {
  T value;
  int index;
};

// The least or greatest value and the lowest index that has it.
template <class T>
void try_pair(MPI_Datatype type) {
  everywhere([&](const Place& p) {
    const int count = 50;
    for (MPI_Op op : {MPI_MINLOC, MPI_MAXLOC}) {
      std::vector<Pair<T>> out(count), in(count);
      auto make = [](int rank, int i) {
        return Pair<T>{static_cast<T>(check::key_of(rank, i) % 4), 1000 - rank * (i % 2 ? 1 : -1)};
      };
      for (int i = 0; i < count; ++i) out[i] = make(p.rank, i);
      coll::allreduce(out.data(), in.data(), count, type, op, p.comm);
      for (int i = 0; i < count; ++i) {
        Pair<T> best = make(0, i);
        for (int r = 1; r < p.size; ++r) {
          Pair<T> other = make(r, i);
          bool better = op == MPI_MINLOC ? other.value < best.value : other.value > best.value;
          if (better) best = other;
          if (other.value == best.value) best.index = std::min(best.index, other.index);
        }
        CHECK_EQ(in[i].value, best.value);
        CHECK_EQ(in[i].index, best.index);
      }
    }
  });
}

void pairs() {
  try_pair<int>(MPI_2INT);
  try_pair<float>(MPI_FLOAT_INT);
  try_pair<double>(MPI_DOUBLE_INT);
  try_pair<long>(MPI_LONG_INT);
  try_pair<short>(MPI_SHORT_INT);
  try_pair<long double>(MPI_LONG_DOUBLE_INT);
}

// Sizes around the limits of algorithms and protocols.
void sizes() {
  everywhere([](const Place& p) {
    for (int count : {0, 1, 2, 19, 38, 255, 256, 257, 1000, 2049, 9000, 32768, 131072}) {
      for (bool in_place : {false, true}) {
        if (count > 10000 && in_place) continue;
        Run<double> run{p, MPI_DOUBLE, MPI_SUM, count, in_place};
        run.rooted();
        run.flat("Allreduce", coll::allreduce, 0, p.size - 1);
        run.flat("Scan", coll::scan, 0, p.rank);
        run.flat("Exscan", coll::exscan, 0, p.rank - 1);
        if (count > 10000) continue;
        run.scatter_block();
        run.scatter_uneven();
      }
    }
  });
}

// A contiguous type of a predefined one is no argument for a predefined operation; but
// Reduce_local works on any that Reduce does.
void local() {
  std::vector<int> a(1000), b(1000), wanted(1000);
  for (int i = 0; i < 1000; ++i) {
    a[i] = i;
    b[i] = 3 * i;
    wanted[i] = 4 * i;
  }
  MPI(MPI_Reduce_local(a.data(), b.data(), 1000, MPI_INT, MPI_SUM));
  CHECK(b == wanted);
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"integers", integers},
                      {"fixed_integers", fixed_integers},
                      {"floats", floats},
                      {"truth_and_bytes", truth_and_bytes},
                      {"fortran_types", fortran_types},
                      {"pairs", pairs},
                      {"sizes", sizes},
                      {"local", local}});
}
