#include "io/representation.h"

#include "base/address.h"
#include "base/vec.h"
#include "datatypes/external32.h"

namespace headway::io {
namespace {

using datatypes::Combiner;
using datatypes::Contents;
using datatypes::Form;
using datatypes::Integers;
using datatypes::Type;

bool external32_bytes(const Representation&, const Type& basic, uint64_t& bytes) {
  return datatypes::external32_size(basic, 1, bytes) == Outcome::ok;
}

int error_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::ok: return 0;
    case Outcome::bad_argument: return value_too_large;
    default: return bad_conversion;
  }
}

int to_external32(const Representation&, const Piece& piece) {
  const char* from = base::element_at(piece.buffer, piece.first, piece.type.extent());
  return error_of(datatypes::pack_external32(piece.type, from, piece.count, piece.file));
}

int from_external32(const Representation&, const Piece& piece) {
  char* to = base::element_at(piece.buffer, piece.first, piece.type.extent());
  return error_of(datatypes::unpack_external32(piece.type, to, piece.count, piece.file));
}

// A type's arguments one after the other, as its constructor stored them: large forms keep all but
// plain integers in one list.
class Arguments {
 public:
  explicit Arguments(const Contents& from) : from_(from), large_(from.count_count > 0) {}
  int64_t number() { return large_ ? from_.counts[counts_++] : from_.integers[integers_++]; }
  int64_t address() { return large_ ? from_.counts[counts_++] : from_.addresses[addresses_++]; }
  int integer() { return from_.integers[integers_++]; }
  // False without memory.
  bool numbers(uint64_t n, base::Vec<int64_t>& out) {
    for (uint64_t i = 0; i < n; ++i) {
      if (!out.push(number())) return false;
    }
    return true;
  }
  bool addresses(uint64_t n, base::Vec<int64_t>& out) {
    for (uint64_t i = 0; i < n; ++i) {
      if (!out.push(address())) return false;
    }
    return true;
  }
  bool integers(uint64_t n, base::Vec<int>& out) {
    for (uint64_t i = 0; i < n; ++i) {
      if (!out.push(integer())) return false;
    }
    return true;
  }

 private:
  const Contents& from_;
  const bool large_;
  uint64_t integers_ = 0, addresses_ = 0, counts_ = 0;
};

// The inner types of a struct, or the one of every other type, in the file; let go at the end.
class Children {
 public:
  Children() = default;
  ~Children() {
    for (const Type* type : types_) type->release();
  }
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  Outcome make(const Contents& contents, const Representation& representation, unsigned depth);
  const Type& only() const { return *types_[0]; }
  const Type* const* all() const { return types_.data(); }

 private:
  base::Vec<const Type*> types_;
};

Outcome make_at(const Type& type, const Representation& representation, unsigned depth,
                const Type*& out);

Outcome Children::make(const Contents& contents, const Representation& representation,
                       unsigned depth) {
  for (uint64_t i = 0; i < contents.type_count; ++i) {
    const Type* child = nullptr;
    const Outcome made = make_at(*contents.types[i], representation, depth + 1, child);
    if (made != Outcome::ok) return made;
    if (types_.push(child)) continue;
    child->release();
    return Outcome::no_memory;
  }
  return Outcome::ok;
}

Outcome make_basic(const Type& type, const Representation& representation, Type*& out) {
  uint64_t bytes = 0;
  if (!representation.basic_bytes(representation, type, bytes) || bytes > base::most_bytes)
    return Outcome::unsupported;
  return datatypes::make_contiguous(Form::large, int64_t(bytes),
                                    datatypes::predefined(datatypes::BasicType::byte), out);
}

Outcome make_subarray(Arguments& arguments, const Type& child, Type*& out) {
  const int dimensions = arguments.integer();
  const auto n = uint64_t(dimensions);
  base::Vec<int64_t> sizes, parts, starts;
  if (!arguments.numbers(n, sizes) || !arguments.numbers(n, parts) ||
      !arguments.numbers(n, starts)) {
    return Outcome::no_memory;
  }
  return datatypes::make_subarray(Form::large, dimensions, Integers(sizes.data()),
                                  Integers(parts.data()), Integers(starts.data()),
                                  arguments.integer(), child, out);
}

Outcome make_darray(Arguments& arguments, const Type& child, Type*& out) {
  const int ranks = arguments.integer();
  const int rank = arguments.integer();
  const int dimensions = arguments.integer();
  const auto n = uint64_t(dimensions);
  base::Vec<int64_t> sizes;
  base::Vec<int> distributions, lengths, processes;
  if (!arguments.numbers(n, sizes) || !arguments.integers(n, distributions) ||
      !arguments.integers(n, lengths) || !arguments.integers(n, processes)) {
    return Outcome::no_memory;
  }
  return datatypes::make_darray(Form::large, ranks, rank, dimensions, Integers(sizes.data()),
                                distributions.data(), lengths.data(), processes.data(),
                                arguments.integer(), child, out);
}

// Lists of blocks: lengths, then places; `in_bytes`: those are bytes of the file.
Outcome make_blocks(const Type& type, Arguments& arguments, const Children& children, bool in_bytes,
                    Type*& out) {
  const int64_t count = arguments.number();
  base::Vec<int64_t> lengths, places;
  if (!arguments.numbers(uint64_t(count), lengths)) return Outcome::no_memory;
  const bool listed = in_bytes ? arguments.addresses(uint64_t(count), places)
                               : arguments.numbers(uint64_t(count), places);
  if (!listed) return Outcome::no_memory;
  const Integers blocks(lengths.data()), at(places.data());
  switch (type.combiner()) {
    case Combiner::indexed:
      return datatypes::make_indexed(Form::large, count, blocks, at, children.only(), out);
    case Combiner::hindexed:
      return datatypes::make_hindexed(Form::large, count, blocks, at, children.only(), out);
    default: return datatypes::make_struct(Form::large, count, blocks, at, children.all(), out);
  }
}

// Blocks of one length.
Outcome make_equal_blocks(Arguments& arguments, const Type& child, bool in_bytes, Type*& out) {
  const int64_t count = arguments.number();
  const int64_t length = arguments.number();
  base::Vec<int64_t> places;
  const bool listed = in_bytes ? arguments.addresses(uint64_t(count), places)
                               : arguments.numbers(uint64_t(count), places);
  if (!listed) return Outcome::no_memory;
  const Integers at(places.data());
  return in_bytes ? datatypes::make_hindexed_block(Form::large, count, length, at, child, out)
                  : datatypes::make_indexed_block(Form::large, count, length, at, child, out);
}

Outcome make_strided(Arguments& arguments, const Type& child, bool in_bytes, Type*& out) {
  const int64_t count = arguments.number();
  const int64_t length = arguments.number();
  const int64_t stride = in_bytes ? arguments.address() : arguments.number();
  return in_bytes ? datatypes::make_hvector(Form::large, count, length, stride, child, out)
                  : datatypes::make_vector(Form::large, count, length, stride, child, out);
}

Outcome make_resized(Arguments& arguments, const Type& child, Type*& out) {
  const int64_t lb = arguments.address();
  const int64_t extent = arguments.address();
  return datatypes::make_resized(Form::large, child, lb, extent, out);
}

Outcome make_derived(const Type& type, const Children& children, Type*& out) {
  Arguments arguments(type.contents());
  switch (type.combiner()) {
    case Combiner::dup: return datatypes::make_dup(children.only(), out);
    case Combiner::contiguous:
      return datatypes::make_contiguous(Form::large, arguments.number(), children.only(), out);
    case Combiner::vector: return make_strided(arguments, children.only(), false, out);
    case Combiner::hvector: return make_strided(arguments, children.only(), true, out);
    case Combiner::indexed: return make_blocks(type, arguments, children, false, out);
    case Combiner::hindexed:
    case Combiner::structure: return make_blocks(type, arguments, children, true, out);
    case Combiner::indexed_block: return make_equal_blocks(arguments, children.only(), false, out);
    case Combiner::hindexed_block: return make_equal_blocks(arguments, children.only(), true, out);
    case Combiner::subarray: return make_subarray(arguments, children.only(), out);
    case Combiner::darray: return make_darray(arguments, children.only(), out);
    case Combiner::resized: return make_resized(arguments, children.only(), out);
    case Combiner::named:
    case Combiner::f90_real:
    case Combiner::f90_complex:
    case Combiner::f90_integer:
    case Combiner::value_index: break;
  }
  return Outcome::unsupported;
}

Outcome make_at(const Type& type, const Representation& representation, unsigned depth,
                const Type*& out) {
  if (!representation.converts()) {
    type.retain();
    out = &type;
    return Outcome::ok;
  }
  Type* made = nullptr;
  Outcome outcome = Outcome::unsupported;
  if (type.predefined() || type.parametrized() || type.combiner() == Combiner::value_index) {
    outcome = make_basic(type, representation, made);
  } else if (depth < datatypes::max_depth) {
    Children children;
    outcome = children.make(type.contents(), representation, depth);
    if (outcome == Outcome::ok) outcome = make_derived(type, children, made);
  }
  if (outcome == Outcome::ok) out = made;
  return outcome;
}

}  // namespace

constinit const Representation native{.name = "native"};
constinit const Representation internal{.name = "internal"};
constinit const Representation external32{.name = "external32",
                                          .basic_bytes = external32_bytes,
                                          .to_file = to_external32,
                                          .from_file = from_external32};

Outcome make_file_type(const Type& type, const Representation& representation, const Type*& out) {
  return make_at(type, representation, 0, out);
}

}  // namespace headway::io
