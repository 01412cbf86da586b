// Every operation on every predefined type, in every build of the kernels, against scalar code.
#include "datatypes/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "datatypes/detail/kernel_table.h"

namespace headway::datatypes {
namespace {

template <class T>
struct Cplx {
  T re, im;
};
template <class V, class I>
struct Loc {
  V value;
  I index;
};

template <class T>
inline constexpr bool is_loc = false;
template <class V, class I>
inline constexpr bool is_loc<Loc<V, I>> = true;
template <class T>
inline constexpr bool is_cplx = false;
template <class T>
inline constexpr bool is_cplx<Cplx<T>> = true;
template <class T>
inline constexpr bool is_whole =
    std::is_integral_v<T> || std::is_same_v<T, __int128> || std::is_same_v<T, unsigned __int128>;

enum : unsigned { arithmetic = 1, order = 2, bitwise = 4, logic = 8, location = 16 };

// What the standard allows for each group of types.
constexpr unsigned c_integers = arithmetic | order | bitwise | logic;
constexpr unsigned fortran_integers = arithmetic | order | bitwise;
constexpr unsigned reals = arithmetic | order;

// What only custom allows.
constexpr unsigned customary_of(BasicType type) {
  switch (type) {
    case BasicType::char_: return c_integers;
    case BasicType::aint:
    case BasicType::count:
    case BasicType::offset: return logic;
    default: return 0;
  }
}

// Calls visit(type, T{}, what the standard defines) for each predefined type.
template <class Visit>
void for_each_type(Visit&& visit) {
  using B = BasicType;
  visit(B::aint, int64_t{}, fortran_integers);
  visit(B::count, int64_t{}, fortran_integers);
  visit(B::offset, int64_t{}, fortran_integers);
  visit(B::short_, short{}, c_integers);
  visit(B::int_, int{}, c_integers);
  visit(B::long_, long{}, c_integers);
  visit(B::long_long, (long long){}, c_integers);
  visit(B::unsigned_short, (unsigned short){}, c_integers);
  visit(B::unsigned_, unsigned{}, c_integers);
  visit(B::unsigned_long, (unsigned long){}, c_integers);
  visit(B::unsigned_long_long, (unsigned long long){}, c_integers);
  visit(B::signed_char, (signed char){}, c_integers);
  visit(B::unsigned_char, (unsigned char){}, c_integers);
  visit(B::int8_t, ::int8_t{}, c_integers);
  visit(B::uint8_t, ::uint8_t{}, c_integers);
  visit(B::int16_t, ::int16_t{}, c_integers);
  visit(B::uint16_t, ::uint16_t{}, c_integers);
  visit(B::int32_t, ::int32_t{}, c_integers);
  visit(B::uint32_t, ::uint32_t{}, c_integers);
  visit(B::int64_t, ::int64_t{}, c_integers);
  visit(B::uint64_t, ::uint64_t{}, c_integers);
  visit(B::integer, int{}, fortran_integers);
  visit(B::integer1, ::int8_t{}, fortran_integers);
  visit(B::integer2, short{}, fortran_integers);
  visit(B::integer4, int{}, fortran_integers);
  visit(B::integer8, ::int64_t{}, fortran_integers);
  visit(B::integer16, __int128{}, fortran_integers);
  visit(B::float_, float{}, reals);
  visit(B::double_, double{}, reals);
  visit(B::long_double, (long double){}, reals);
  visit(B::real, float{}, reals);
  visit(B::double_precision, double{}, reals);
  visit(B::real2, _Float16{}, reals);
  visit(B::real4, float{}, reals);
  visit(B::real8, double{}, reals);
  visit(B::real16, __float128{}, reals);
  visit(B::c_float_complex, Cplx<float>{}, arithmetic);
  visit(B::c_double_complex, Cplx<double>{}, arithmetic);
  visit(B::c_long_double_complex, Cplx<long double>{}, arithmetic);
  visit(B::cxx_float_complex, Cplx<float>{}, arithmetic);
  visit(B::cxx_double_complex, Cplx<double>{}, arithmetic);
  visit(B::cxx_long_double_complex, Cplx<long double>{}, arithmetic);
  visit(B::complex, Cplx<float>{}, arithmetic);
  visit(B::double_complex, Cplx<double>{}, arithmetic);
  visit(B::complex4, Cplx<_Float16>{}, arithmetic);
  visit(B::complex8, Cplx<float>{}, arithmetic);
  visit(B::complex16, Cplx<double>{}, arithmetic);
  visit(B::complex32, Cplx<__float128>{}, arithmetic);
  visit(B::logical, ::uint32_t{}, logic);
  visit(B::logical1, ::uint8_t{}, logic);
  visit(B::logical2, ::uint16_t{}, logic);
  visit(B::logical4, ::uint32_t{}, logic);
  visit(B::logical8, ::uint64_t{}, logic);
  visit(B::logical16, (unsigned __int128){}, logic);
  visit(B::c_bool, ::uint8_t{}, logic);
  visit(B::cxx_bool, ::uint8_t{}, logic);
  visit(B::byte, ::uint8_t{}, bitwise);
  visit(B::float_int, Loc<float, int>{}, location);
  visit(B::double_int, Loc<double, int>{}, location);
  visit(B::long_int, Loc<long, int>{}, location);
  visit(B::two_int, Loc<int, int>{}, location);
  visit(B::short_int, Loc<short, int>{}, location);
  visit(B::long_double_int, Loc<long double, int>{}, location);
  visit(B::two_real, Loc<float, float>{}, location);
  visit(B::two_double_precision, Loc<double, double>{}, location);
  visit(B::two_integer, Loc<int, int>{}, location);
  visit(B::char_, char{}, 0u);
  visit(B::character, char{}, 0u);
  visit(B::wchar, wchar_t{}, 0u);
  visit(B::packed, char{}, 0u);
}

unsigned group_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::prod: return arithmetic;
    case ReduceOp::min:
    case ReduceOp::max: return order;
    case ReduceOp::band:
    case ReduceOp::bor:
    case ReduceOp::bxor: return bitwise;
    case ReduceOp::land:
    case ReduceOp::lor:
    case ReduceOp::lxor: return logic;
    case ReduceOp::minloc:
    case ReduceOp::maxloc: return location;
    default: return 0;
  }
}

constexpr ReduceOp reductions[] = {ReduceOp::sum,  ReduceOp::min,    ReduceOp::max,
                                   ReduceOp::prod, ReduceOp::band,   ReduceOp::bor,
                                   ReduceOp::bxor, ReduceOp::land,   ReduceOp::lor,
                                   ReduceOp::lxor, ReduceOp::minloc, ReduceOp::maxloc};

// The oracle. Volatile keeps every intermediate result in its own type: no fused operations.
template <class T>
[[gnu::noinline]] T add(T a, T b) {
  volatile T x = a, y = b;
  return T(x + y);
}
template <class T>
[[gnu::noinline]] T times(T a, T b) {
  volatile T x = a, y = b;
  return T(x * y);
}

template <class T>
T whole(ReduceOp op, T a, T b) {
  T result{};
  switch (op) {
    case ReduceOp::sum: (void)__builtin_add_overflow(a, b, &result); return result;
    case ReduceOp::prod: (void)__builtin_mul_overflow(a, b, &result); return result;
    case ReduceOp::min: return b < a ? b : a;
    case ReduceOp::max: return b > a ? b : a;
    case ReduceOp::band: return T(a & b);
    case ReduceOp::bor: return T(a | b);
    case ReduceOp::bxor: return T(a ^ b);
    case ReduceOp::land: return T(a && b);
    case ReduceOp::lor: return T(a || b);
    default: return T(!a != !b);
  }
}

template <class T>
T floating(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::sum: return add(a, b);
    case ReduceOp::prod: return times(a, b);
    case ReduceOp::min: return a < b ? a : b;
    default: return a > b ? a : b;
  }
}

template <class T>
T expect(ReduceOp op, const T& a, const T& b) {
  if constexpr (is_whole<T>) {
    return whole(op, a, b);
  } else if constexpr (is_cplx<T>) {
    using P = decltype(a.re);
    using W = std::conditional_t<std::is_same_v<P, _Float16>, float, P>;
    const W ar = a.re, ai = a.im, br = b.re, bi = b.im;
    if (op == ReduceOp::sum) return {P(add<W>(ar, br)), P(add<W>(ai, bi))};
    return {P(add<W>(times<W>(ar, br), -times<W>(ai, bi))),
            P(add<W>(times<W>(ar, bi), times<W>(ai, br)))};
  } else if constexpr (is_loc<T>) {
    if (a.value == b.value) return {b.value, a.index < b.index ? a.index : b.index};
    if (op == ReduceOp::minloc) return a.value < b.value ? a : b;
    return a.value > b.value ? a : b;
  } else if constexpr (std::is_same_v<T, _Float16>) {
    if (op == ReduceOp::sum) return T(add<float>(a, b));
    if (op == ReduceOp::prod) return T(times<float>(a, b));
    return floating<T>(op, a, b);
  } else {
    return floating(op, a, b);
  }
}

// Equal bit for bit, except that one NaN is like another: which operand's payload survives is the
// processor's choice.
template <class T>
bool same(const T& a, const T& b) {
  if constexpr (is_cplx<T>) {
    return same(a.re, b.re) && same(a.im, b.im);
  } else if constexpr (is_loc<T>) {
    return same(a.value, b.value) && same(a.index, b.index);
  } else if constexpr (is_whole<T>) {
    return a == b;
  } else {
    if (a != a || b != b) return a != a && b != b;
    return memcmp(&a, &b, std::is_same_v<T, long double> ? 10 : sizeof(T)) == 0;
  }
}

class Values {
 public:
  explicit Values(uint64_t seed) : random_(seed) {}

  uint64_t bits() { return random_(); }

  template <class T>
  T draw() {
    if constexpr (is_cplx<T>) {
      return {draw<decltype(T::re)>(), draw<decltype(T::im)>()};
    } else if constexpr (is_loc<T>) {
      T pair;
      memset(&pair, 0x5a, sizeof pair);  // the gaps too, since they are compared
      pair.value = draw<decltype(T::value)>();
      pair.index = draw<decltype(T::index)>();
      return pair;
    } else if constexpr (is_whole<T>) {
      switch (bits() % 4) {
        case 0: return T(bits() % 4);  // zeros for the logical operations, ties
        case 1: return T(bits() % 2 ? ~T{0} : T{1} << (8 * sizeof(T) - 1));
        default: return T((unsigned __int128)(bits()) << 64 | bits());
      }
    } else {
      const double specials[] = {0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, NAN, 1e-40, 3e-310};
      if (bits() % 3 == 0) return T(specials[bits() % std::size(specials)]);
      return T(double(int64_t(bits())) * std::ldexp(1.0, -int(bits() % 80)));
    }
  }

 private:
  std::mt19937_64 random_;
};

// The bytes of a pair that belong to neither part.
template <class T>
std::string gaps_of(const T& pair) {
  std::string bytes(reinterpret_cast<const char*>(&pair), sizeof pair);
  const char* const start = reinterpret_cast<const char*>(&pair);
  const size_t index_at = size_t(reinterpret_cast<const char*>(&pair.index) - start);
  memset(bytes.data(), 0, sizeof pair.value);
  memset(bytes.data() + index_at, 0, sizeof pair.index);
  return bytes;
}

// One kernel on one random list, at odd addresses, in all shapes of aliasing.
template <class T>
void check_kernel(const Kernel& kernel, ReduceOp op, Values& values, size_t count) {
  constexpr size_t margin = 80;
  const size_t bytes = count * sizeof(T);
  std::vector<T> a, b, expected;
  for (size_t i = 0; i < count; ++i) {
    a.push_back(values.draw<T>());
    b.push_back(values.draw<T>());
    expected.push_back(expect(op, a.back(), b.back()));
  }
  enum { into, apart, over_lower, over_upper };
  for (int shape : {into, apart, over_lower, over_upper}) {
    std::vector<char> lower(bytes + margin, 'l'), upper(bytes + margin, 'u');
    std::vector<char> third(bytes + margin, 't');
    char* const x = lower.data() + values.bits() % 17;
    char* const y = upper.data() + values.bits() % 17;
    char* out = third.data() + values.bits() % 17;
    if (count > 0) {  // an empty vector has no address to copy from
      memcpy(x, a.data(), bytes);
      memcpy(y, b.data(), bytes);
    }
    if (shape == over_lower) out = x;
    if (shape == into || shape == over_upper) out = y;
    std::vector<char>& changed = out == x ? lower : out == y ? upper : third;
    const std::vector<char> before = changed;
    if (shape == into) {
      kernel.two(x, y, count);
    } else {
      kernel.three(x, y, out, count);
    }
    for (size_t i = 0; i < count; ++i) {
      T got;
      memcpy(&got, out + i * sizeof(T), sizeof(T));
      ASSERT_TRUE(same(got, expected[i]))
          << "element " << i << " of " << count << " shape " << shape;
      if constexpr (is_loc<T>) {  // bytes that belong to no part of the pair stay as they were
        T old;
        memcpy(&old, before.data() + (out - changed.data()) + i * sizeof(T), sizeof(T));
        EXPECT_EQ(gaps_of(got), gaps_of(old)) << "wrote into a gap";
      }
    }
    const size_t from = size_t(out - changed.data());
    EXPECT_TRUE(std::equal(before.begin(), before.begin() + long(from), changed.begin()));
    EXPECT_TRUE(std::equal(before.begin() + long(from + bytes), before.end(),
                           changed.begin() + long(from + bytes)));
  }
}

TEST(Reductions, EveryLegalPairInEveryBuild) {
  const KernelTable* tables[max_tables];
  const size_t usable = usable_tables(tables);
  ASSERT_STREQ(tables[usable - 1]->name, "base");
  const uint64_t seed = 42;
  Values values(seed);
  size_t types = 0, kernels = 0;
  for_each_type([&]<class T>(BasicType type, T, unsigned standard) {
    ++types;
    const unsigned legal = standard | customary_of(type);
    ASSERT_EQ(sizeof(T), info(type).extent) << info(type).name;
    for (ReduceOp op : reductions) {
      SCOPED_TRACE(testing::Message()
                   << op_name(op) << " on " << info(type).name << ", seed " << seed);
      const bool is_legal = (legal & group_of(op)) != 0;
      EXPECT_EQ(find_reducer(op, type) != nullptr, is_legal);
      EXPECT_EQ(find_reducer3(op, type) != nullptr, is_legal);
      EXPECT_EQ(is_standard(op, type), (standard & group_of(op)) != 0);
      if (!is_legal) continue;
      for (size_t t = 0; t < usable; ++t) {
        const Kernel& kernel = tables[t]->kernels[size_t(op)][size_t(info(type).machine)];
        if (!kernel.two) {
          EXPECT_NE(t, usable - 1) << "the base table has a hole";
          continue;
        }
        ++kernels;
        SCOPED_TRACE(tables[t]->name);
        for (size_t count : {0, 1, 2, 3, 7, 16, 31, 33, 64, 67, 200}) {
          check_kernel<T>(kernel, op, values, count);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  });
  EXPECT_EQ(types, basic_count - 1) << "a predefined type is not in the list above";
  EXPECT_GT(kernels, 300u);
}

TEST(Reductions, BestTableIsUsed) {
  const KernelTable* tables[max_tables];
  usable_tables(tables);
  const Kernel& best = tables[0]->kernels[size_t(ReduceOp::sum)][size_t(Machine::f64)];
  EXPECT_EQ(find_reducer(ReduceOp::sum, BasicType::double_), best.two);
  EXPECT_EQ(find_reducer3(ReduceOp::sum, BasicType::double_), best.three);
}

TEST(Reductions, ReplaceAndNoOp) {
  Values values(7);
  for_each_type([&]<class T>(BasicType type, T, unsigned) {
    SCOPED_TRACE(info(type).name);
    std::vector<T> a, b;
    for (int i = 0; i < 33; ++i) {
      a.push_back(values.draw<T>());
      b.push_back(values.draw<T>());
    }
    const auto run = [&](ReduceOp op, const std::vector<T>& expected) {
      std::vector<T> inout = b;
      find_reducer(op, type)(a.data(), inout.data(), a.size());
      std::vector<T> out(a.size());
      find_reducer3(op, type)(a.data(), b.data(), out.data(), a.size());
      for (size_t i = 0; i < a.size(); ++i) {
        EXPECT_TRUE(same(inout[i], expected[i]));
        EXPECT_TRUE(same(out[i], expected[i]));
      }
    };
    run(ReduceOp::replace, a);
    run(ReduceOp::no_op, b);
  });
}

TEST(Reductions, ReplaceLeavesGapsAlone) {
  struct Parts {
    short value;
    int index;
  };
  char in[2 * sizeof(Parts)], out[2 * sizeof(Parts)];
  memset(in, 'i', sizeof in);
  memset(out, 'o', sizeof out);
  find_reducer(ReduceOp::replace, BasicType::short_int)(in, out, 2);
  EXPECT_EQ(std::string(out, sizeof out), "iiooiiiiiiooiiii");
}

TEST(Reductions, NothingForWhatIsNoTypeOrOperation) {
  EXPECT_EQ(find_reducer(ReduceOp::sum, BasicType::none), nullptr);
  EXPECT_EQ(find_reducer(ReduceOp::none, BasicType::int_), nullptr);
  EXPECT_EQ(find_op(0x20), ReduceOp::none);
  EXPECT_EQ(find_op(0x209), ReduceOp::none);
  EXPECT_EQ(find_op(0x21), ReduceOp::sum);
  EXPECT_EQ(find_op(0x39), ReduceOp::maxloc);
}

TEST(Reductions, Exactness) {
  EXPECT_TRUE(is_exact(ReduceOp::sum, BasicType::int_));
  EXPECT_TRUE(is_exact(ReduceOp::minloc, BasicType::two_int));
  EXPECT_TRUE(is_exact(ReduceOp::bxor, BasicType::byte));
  EXPECT_FALSE(is_exact(ReduceOp::sum, BasicType::double_));
  EXPECT_FALSE(is_exact(ReduceOp::max, BasicType::float_));
  EXPECT_FALSE(is_exact(ReduceOp::maxloc, BasicType::double_int));
  EXPECT_FALSE(is_exact(ReduceOp::replace, BasicType::int_));
}

}  // namespace
}  // namespace headway::datatypes
