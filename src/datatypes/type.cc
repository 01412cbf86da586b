#include "datatypes/type.h"

#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/heap.h"
#include "datatypes/detail/builder.h"

namespace headway::datatypes {
namespace {

constexpr uint64_t hash_factor = 0x9e3779b97f4a7c15;  // odd, so that powers never vanish

constexpr uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

// All integers of one size count as the same element: MPI_LONG against MPI_INT64_T, or signed
// against unsigned, is common in programs that work.
constexpr Signature element(BasicClass group, unsigned size) {
  switch (group) {
    case BasicClass::byte:
    case BasicClass::packed: return {1, mix(1), true};
    case BasicClass::real: return {1, mix(0x100 + size), false};
    case BasicClass::complex: return {1, mix(0x200 + size), false};
    case BasicClass::logical: return {1, mix(0x300 + size), false};
    default: return {1, mix(0x400 + size), false};
  }
}

struct PairParts {
  BasicClass value_group;
  uint16_t value_size;
  BasicClass index_group;
  uint16_t index_size;
  uint16_t index_offset;
};

constexpr PairParts pair_parts(Machine machine) {
  constexpr BasicClass i = BasicClass::c_integer;
  constexpr BasicClass r = BasicClass::real;
  switch (machine) {
    case Machine::f32_i32: return {r, 4, i, 4, 4};
    case Machine::f64_i32: return {r, 8, i, 4, 8};
    case Machine::i64_i32: return {i, 8, i, 4, 8};
    case Machine::i16_i32: return {i, 2, i, 4, 4};
    case Machine::f80_i32: return {r, 16, i, 4, 16};
    case Machine::f32_f32: return {r, 4, r, 4, 4};
    case Machine::f64_f64: return {r, 8, r, 8, 8};
    default: return {i, 4, i, 4, 4};
  }
}

constexpr Signature append(const Signature& a, const Signature& b, uint64_t factor) {
  return {a.elements + b.elements, a.hash * factor + b.hash, a.untyped || b.untyped};
}

// MPI_SHORT_INT is the one predefined type with a gap between its two parts.
constexpr Entry short_int_parts[] = {{0, 2, 0, nullptr}, {4, 4, 2, nullptr}};

}  // namespace

constexpr Type::Type(BasicType basic, const Entry* gap) : basic_(basic), committed_(true) {
  const BasicInfo& row = info(basic);
  root_.bytes = row.size;
  root_.runs = row.size != 0;
  signature_ = element(row.group, row.size);
  element_size_ = row.size;
  true_extent_ = row.size;
  if (row.group == BasicClass::pair) {
    const PairParts parts = pair_parts(row.machine);
    signature_ = append(element(parts.value_group, parts.value_size),
                        element(parts.index_group, parts.index_size), hash_factor);
    element_size_ = parts.value_size == parts.index_size ? parts.value_size : 0;
    true_extent_ = parts.index_offset + parts.index_size;
  }
  if (gap) {
    root_.kind = Node::Kind::sequence;
    root_.plain = true;
    root_.depth = 1;
    root_.runs = 2;
    root_.count = 2;
    root_.entries = gap;
  }
  extent_ = row.extent;
  most_ = most_elements(row.size, extent_, true_lb_, true_extent_);
  alignment_ = row.alignment;
  dense_ = !gap && row.size == row.extent;
  empty_ = row.size == 0;
  for (size_t i = 0; row.name[i]; ++i) name_[i] = row.name[i];
}

struct PredefinedTypes {
  Type types[basic_count];

  template <size_t... I>
  explicit constexpr PredefinedTypes(std::index_sequence<I...>)
      : types{Type(BasicType(I),
                   BasicType(I) == BasicType::short_int ? short_int_parts : nullptr)...} {}
};

namespace {
constinit PredefinedTypes predefined_types{std::make_index_sequence<basic_count>{}};
}  // namespace

Type& predefined(BasicType basic) { return predefined_types.types[size_t(basic)]; }

BasicType find_basic(uintptr_t handle) {
  size_t low = 1;
  size_t high = basic_count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (basic_table[middle].handle == handle) return BasicType(middle);
    if (basic_table[middle].handle < handle) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return BasicType::none;
}

Type* find_predefined(uintptr_t handle) {
  const BasicType basic = find_basic(handle);
  return basic == BasicType::none ? nullptr : &predefined(basic);
}

void Type::set_name(const char* text) {
  const size_t length = strnlen(text, max_name - 1);
  memcpy(name_, text, length);
  name_[length] = '\0';
}

void Type::retain() const {
  if (!predefined()) references_.fetch_add(1, std::memory_order_relaxed);
}

// The list of dead types replaces recursion: chains of types can be long.
void Type::release() const {
  const Type* dead = nullptr;
  const auto drop = [&dead](const Type* type) {
    if (type->predefined()) return;
    // Release: our uses come before the free; acquire: the freeing thread sees all of them.
    const uint32_t before = type->references_.fetch_sub(1, std::memory_order_acq_rel);
    HEADWAY_CHECK(before != 0);
    if (before != 1) return;
    type->next_dead_ = dead;
    dead = type;
  };
  drop(this);
  while (dead) {
    Type* type = const_cast<Type*>(dead);
    dead = type->next_dead_;
    for (uint64_t i = 0; i < type->contents_.type_count; ++i) drop(type->contents_.types[i]);
    base::heap_free(type->contents_block_, type->contents_bytes_);
    base::heap_free(type->layout_block_, type->layout_bytes_);
    base::heap_free(type, sizeof(Type));
  }
}

bool count_in(const Type& type, uint64_t bytes, uint64_t& count) {
  count = 0;
  if (bytes == 0) return true;
  if (type.size() == 0 || bytes % type.size() != 0) return false;
  count = bytes / type.size();
  return true;
}

namespace {

// Goes from a struct to the member in which byte `rest` of an element lies; counts the elements
// of the members before it.
const Type* enter_struct(const Type& type, uint64_t& rest, uint64_t& elements) {
  const Contents& contents = type.contents();
  const Integers blocks =
      contents.count_count ? Integers(contents.counts + 1) : Integers(contents.integers + 1);
  for (uint64_t i = 0; i < contents.type_count; ++i) {
    const Type& child = *contents.types[i];
    const uint64_t bytes = uint64_t(blocks[i]) * child.size();
    if (rest < bytes) return &child;
    rest -= bytes;
    elements += uint64_t(blocks[i]) * child.elements();
  }
  return nullptr;
}

}  // namespace

bool elements_in(const Type& type, uint64_t bytes, uint64_t& elements) {
  elements = 0;
  const Type* part = &type;
  while (bytes != 0) {
    if (part->size() == 0) return false;
    if (const uint32_t size = part->element_size(); size != 0) {
      elements += bytes / size;
      return bytes % size == 0;
    }
    elements += bytes / part->size() * part->elements();
    bytes %= part->size();
    if (bytes == 0) return true;
    if (part->predefined()) {  // a pair of unlike parts, and its second part is missing
      elements += 1;
      return bytes == pair_parts(info(part->basic()).machine).value_size;
    }
    part = part->combiner() == Combiner::structure ? enter_struct(*part, bytes, elements)
                                                   : part->contents().types[0];
    if (!part) return false;
  }
  return true;
}

Signature concatenate(const Signature& a, const Signature& b) {
  uint64_t factor = 1;
  uint64_t power = hash_factor;
  for (uint64_t n = b.elements; n != 0; n >>= 1, power *= power) {
    if (n & 1) factor *= power;
  }
  return append(a, b, factor);
}

Signature repeat(const Signature& signature, uint64_t count) {
  Signature result;
  Signature doubled = signature;
  for (; count != 0; count >>= 1) {
    if (count & 1) result = concatenate(result, doubled);
    if (count > 1) doubled = concatenate(doubled, doubled);
  }
  return result;
}

Signature signature(const Type& type, uint64_t count) { return repeat(type.signature(), count); }

bool may_match(const Signature& sent, const Signature& received) {
  if (sent.untyped || received.untyped) return true;
  return sent.elements == received.elements && sent.hash == received.hash;
}

Span span(const Type& type, uint64_t count) {
  if (count == 0 || type.size() == 0) return {};
  const int64_t last = int64_t(count - 1) * type.extent();
  const int64_t low = type.true_lb();
  const int64_t high = low + type.true_extent();
  return {last < 0 ? low + last : low, last > 0 ? high + last : high};
}

}  // namespace headway::datatypes
