#include "datatypes/external32.h"

#include <cstring>

#include "base/check.h"
#include "datatypes/detail/floats.h"
#include "datatypes/pack.h"

namespace headway::datatypes {
namespace {

// How one number changes: its bytes here and there, and what else than their order is different.
struct Part {
  enum class Kind : uint8_t { plain, signed_cut, unsigned_cut, extended };
  uint8_t here = 0;
  uint8_t there = 0;
  Kind kind = Kind::plain;
};

// An element of a predefined type: one number, or two (complex numbers, pairs).
struct Parts {
  Part part[2];
  uint64_t here() const { return uint64_t(part[0].here) + part[1].here; }
  uint64_t there() const { return uint64_t(part[0].there) + part[1].there; }
};

Parts parts_of(BasicType basic) {
  constexpr Part i32{4, 4};
  constexpr Part long_here{8, 4, Part::Kind::signed_cut};
  // On x86-64 the x87's 80 bits, which become the 128 of IEEE.
  constexpr Part long_double_here{16, 16, Part::Kind::extended};
  const BasicInfo& row = info(basic);
  const auto size = uint8_t(row.size);
  const auto half = uint8_t(row.size / 2);
  switch (basic) {
    case BasicType::long_: return {{long_here, {}}};
    case BasicType::unsigned_long: return {{{8, 4, Part::Kind::unsigned_cut}, {}}};
    case BasicType::wchar: return {{{4, 2, Part::Kind::unsigned_cut}, {}}};
    case BasicType::long_double: return {{long_double_here, {}}};
    case BasicType::c_long_double_complex:
    case BasicType::cxx_long_double_complex: return {{long_double_here, long_double_here}};
    case BasicType::double_int: return {{{8, 8}, i32}};
    case BasicType::long_int: return {{long_here, i32}};
    case BasicType::short_int: return {{{2, 2}, i32}};
    case BasicType::long_double_int: return {{long_double_here, i32}};
    default: break;
  }
  const bool two = row.group == BasicClass::complex || row.group == BasicClass::pair;
  return two ? Parts{{{half, half}, {half, half}}} : Parts{{{size, size}, {}}};
}

void reverse(const char* from, char* to, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) to[i] = from[bytes - 1 - i];
}

// False: the number does not fit.
bool put(const Part& part, const char* from, char* to) {
  if (part.kind == Part::Kind::extended) {
    long double extended;
    memcpy(&extended, from, sizeof extended);
    const Quad value = extended;
    reverse(reinterpret_cast<const char*>(&value), to, part.there);
    return true;
  }
  reverse(from, to, part.there);  // the low bytes come first here
  if (part.kind == Part::Kind::plain) return true;
  const bool negative = part.kind == Part::Kind::signed_cut && (to[0] & 0x80) != 0;
  bool fits = true;
  for (unsigned i = part.there; i < part.here; ++i) fits &= from[i] == (negative ? '\xff' : '\0');
  return fits;
}

void take(const Part& part, const char* from, char* to) {
  if (part.kind == Part::Kind::extended) {
    Quad value;
    reverse(from, reinterpret_cast<char*>(&value), part.there);
    const auto extended = static_cast<long double>(value);
    memset(to, 0, sizeof extended);
    memcpy(to, &extended, long_double_bytes);  // the rest is padding
    return;
  }
  reverse(from, to, part.there);
  const bool negative = part.kind == Part::Kind::signed_cut && (from[0] & 0x80) != 0;
  memset(to + part.there, negative ? 0xff : 0, size_t(part.here - part.there));
}

// Calls visit(basic, n) for each stretch of n equal basic elements, in typemap order; stops when
// it returns false.
template <class Visit>
Outcome for_each_stretch(const Type& whole, uint64_t count, unsigned depth, Visit& visit) {
  const Type* type = &whole;
  while (type->basic() == BasicType::none && type->combiner() != Combiner::structure) {
    if (type->size() == 0 || count == 0) return Outcome::ok;
    // All other constructors place copies of one type, and their places do not matter here.
    const Type& child = *type->contents().types[0];
    count *= type->size() / child.size();
    type = &child;
  }
  if (type->size() == 0 || count == 0) return Outcome::ok;
  if (type->basic() != BasicType::none) {
    return visit(type->basic(), count) ? Outcome::ok : Outcome::bad_argument;
  }
  if (depth == max_depth) return Outcome::unsupported;
  const Contents& contents = type->contents();
  const Integers blocks =
      contents.count_count ? Integers(contents.counts + 1) : Integers(contents.integers + 1);
  for (uint64_t i = 0; i < count; ++i) {
    for (uint64_t member = 0; member < contents.type_count; ++member) {
      const Outcome outcome =
          for_each_stretch(*contents.types[member], uint64_t(blocks[member]), depth + 1, visit);
      if (outcome != Outcome::ok) return outcome;
    }
  }
  return Outcome::ok;
}

constexpr size_t piece = 4096;

// Calls convert(parts, n) for n elements of equal parts at a time, which fit a piece.
template <class Convert>
Outcome for_each_piece(const Type& type, uint64_t count, Convert&& convert) {
  const auto visit = [&](BasicType basic, uint64_t n) {
    const Parts parts = parts_of(basic);
    for (uint64_t now; n > 0; n -= now) {
      now = n < piece / parts.here() ? n : piece / parts.here();
      if (!convert(parts, now)) return false;
    }
    return true;
  };
  return for_each_stretch(type, count, 0, visit);
}

}  // namespace

Outcome external32_size(const Type& type, uint64_t count, uint64_t& bytes) {
  uint64_t one = 0;
  const auto add = [&](BasicType basic, uint64_t n) {
    one += n * parts_of(basic).there();
    return true;
  };
  const Outcome outcome = for_each_stretch(type, count ? 1 : 0, 0, add);
  HEADWAY_CHECK(count == 0 || one <= UINT64_MAX / count);
  bytes = one * count;
  return outcome;
}

Outcome pack_external32(const Type& type, const void* base, uint64_t count, char* out) {
  uint64_t at = 0;
  char native[piece];
  return for_each_piece(type, count, [&](const Parts& parts, uint64_t n) {
    at += pack(type, base, count, at, native, n * parts.here());
    const char* from = native;
    for (uint64_t i = 0; i < n; ++i) {
      for (const Part& part : parts.part) {
        if (part.here && !put(part, from, out)) return false;
        from += part.here;
        out += part.there;
      }
    }
    return true;
  });
}

Outcome unpack_external32(const Type& type, void* base, uint64_t count, const char* in) {
  uint64_t at = 0;
  char native[piece];
  return for_each_piece(type, count, [&](const Parts& parts, uint64_t n) {
    char* to = native;
    for (uint64_t i = 0; i < n; ++i) {
      for (const Part& part : parts.part) {
        if (part.here) take(part, in, to);
        in += part.there;
        to += part.here;
      }
    }
    at += unpack(type, base, count, at, native, n * parts.here());
    return true;
  });
}

}  // namespace headway::datatypes
