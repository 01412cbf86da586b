// Type: a datatype as the rest of the library sees it: its bounds, how it was made, and where its
// bytes lie (a Node tree: runs, loops, sequences). Thread: any; immutable once made, apart from
// the committed flag, the name, and the reference count, which is atomic. Owner: reference
// counted; a type keeps the types it is made of. Predefined types are static and never freed.
// Invariant: every Node that a layout reaches lives as long as the type.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/address.h"
#include "base/outcome.h"
#include "datatypes/basic.h"

namespace headway::datatypes {

struct Entry;

// A part of a layout. One pass over it touches `bytes` bytes of data in typemap order.
struct Node {
  enum class Kind : uint8_t { run, loop, sequence };
  Kind kind = Kind::run;
  bool plain = false;  // sequence: every entry is one run
  uint16_t depth = 0;  // loops and sequences below and including this one
  int64_t offset = 0;  // added to the address of all that follows
  uint64_t bytes = 0;  // run: its length
  uint64_t runs = 0;   // runs in one pass, 0 if empty
  uint64_t count = 0;  // loop: passes over `body`; sequence: entries
  int64_t stride = 0;  // loop: distance between passes
  const Node* body = nullptr;
  const Entry* entries = nullptr;
};

// One item of a sequence: a run (node is null) or a node, at a displacement.
struct Entry {
  int64_t offset;
  uint64_t bytes;
  uint64_t before;  // data bytes of the entries before it
  const Node* node;
};

// Values are those of the ABI's MPI_COMBINER_x.
enum class Combiner : uint8_t {
  named = 101,
  dup,
  contiguous,
  vector,
  hvector,
  indexed,
  hindexed,
  indexed_block,
  hindexed_block,
  structure,
  subarray,
  darray,
  f90_real,
  f90_complex,
  f90_integer,
  resized,
  value_index
};

// Which C binding made a type: `int` arguments, or MPI_Count (the functions ending in _c).
// It decides where MPI_Type_get_contents shows them.
enum class Form : uint8_t { narrow, large };

// Arguments of the constructor call, in the order that MPI_Type_get_contents gives them back.
struct Contents {
  const int* integers = nullptr;
  const int64_t* addresses = nullptr;
  const int64_t* counts = nullptr;  // large form only
  const class Type* const* types = nullptr;
  uint64_t integer_count = 0, address_count = 0, count_count = 0, type_count = 0;
};

// A read-only list given as int or as MPI_Count / MPI_Aint.
class Integers {
 public:
  Integers() = default;
  Integers(const int* values) : narrow_(values) {}
  Integers(const int64_t* values) : wide_(values) {}
  int64_t operator[](uint64_t i) const { return wide_ ? wide_[i] : narrow_[i]; }

 private:
  const int* narrow_ = nullptr;
  const int64_t* wide_ = nullptr;
};

// What a message holds, for finding senders and receivers that disagree. Equal sequences of basic
// elements have equal signatures; kinds of the same class and size count as the same.
struct Signature {
  uint64_t elements = 0;
  uint64_t hash = 0;
  bool untyped = false;  // holds MPI_BYTE or MPI_PACKED, which may meet anything
};

class Type {
 public:
  Type(const Type&) = delete;
  Type& operator=(const Type&) = delete;

  uint64_t size() const { return root_.bytes; }
  int64_t lb() const { return lb_; }
  int64_t ub() const { return lb_ + extent_; }
  int64_t extent() const { return extent_; }
  int64_t true_lb() const { return true_lb_; }
  int64_t true_extent() const { return true_extent_; }
  // How many of them a message may have: no address space holds more.
  uint64_t most() const { return most_; }
  uint32_t alignment() const { return alignment_; }
  bool committed() const { return committed_.load(std::memory_order_relaxed); }
  void commit() { committed_.store(true, std::memory_order_relaxed); }
  bool predefined() const { return combiner_ == Combiner::named; }
  // Made by MPI_Type_create_f90_x: the program may not free it either.
  bool parametrized() const {
    return combiner_ >= Combiner::f90_real && combiner_ <= Combiner::f90_integer;
  }
  // The predefined type that this one is, or is a plain dup of; none for every other.
  BasicType basic() const { return basic_; }
  uint64_t elements() const { return signature_.elements; }  // basic elements, pairs count two
  uint32_t element_size() const { return element_size_; }    // 0 when they differ
  const Signature& signature() const { return signature_; }

  // `count` of them are one run that starts at base + true_lb().
  bool is_contiguous(uint64_t count) const {
    return root_.kind == Node::Kind::run && (dense_ || count <= 1);
  }
  const Node& layout() const { return root_; }

  Combiner combiner() const { return combiner_; }
  const Contents& contents() const { return contents_; }

  const char* name() const { return name_; }
  void set_name(const char* text);  // cut at max_name - 1 bytes
  static constexpr size_t max_name = 128;
  // Place for what a room above hangs to the type; not looked at here, and empty when it dies.
  std::atomic<void*>& attached() { return attached_; }

  void retain() const;
  void release() const;  // frees at zero; nothing for predefined types

 private:
  friend class Builder;
  friend struct PredefinedTypes;
  explicit constexpr Type(BasicType basic, const Entry* gap);
  Type() = default;

  Node root_;
  Node inner_;  // body of root_, where that is no node of a child
  int64_t lb_ = 0;
  int64_t extent_ = 0;
  int64_t true_lb_ = 0;
  int64_t true_extent_ = 0;
  uint64_t most_ = INT64_MAX;
  Signature signature_;
  uint32_t alignment_ = 1;
  uint32_t element_size_ = 0;
  BasicType basic_ = BasicType::none;
  Combiner combiner_ = Combiner::named;
  bool dense_ = false;   // a run as long as the extent
  bool marked_ = false;  // has bounds set by MPI_Type_create_resized somewhere inside
  bool empty_ = true;    // no element and no marker: adds nothing to anyone's bounds
  std::atomic<bool> committed_{false};
  mutable std::atomic<uint32_t> references_{1};
  Contents contents_;
  mutable const Type* next_dead_ = nullptr;  // used by release() alone
  void* layout_block_ = nullptr;             // entries and nodes of root_
  size_t layout_bytes_ = 0;
  void* contents_block_ = nullptr;
  size_t contents_bytes_ = 0;
  std::atomic<void*> attached_{nullptr};
  char name_[max_name] = {};
};

// The predefined type; not for BasicType::none.
Type& predefined(BasicType basic);
// The predefined type of an ABI handle value, or null.
Type* find_predefined(uintptr_t handle);

// Constructors. `out` gets a new type with one reference, not committed. Failures: bad_argument
// (negative count or block length, a sum that leaves 64 bits), no_memory, unsupported (nested
// deeper than max_depth). Arrays are copied. `form` tells which binding was called.
inline constexpr unsigned max_depth = 512;
Outcome make_dup(const Type& old, Type*& out);
Outcome make_contiguous(Form form, int64_t count, const Type& child, Type*& out);
Outcome make_vector(Form form, int64_t count, int64_t block, int64_t stride, const Type& child,
                    Type*& out);
Outcome make_hvector(Form form, int64_t count, int64_t block, int64_t stride_bytes,
                     const Type& child, Type*& out);
Outcome make_indexed(Form form, int64_t count, Integers blocks, Integers displacements,
                     const Type& child, Type*& out);
Outcome make_hindexed(Form form, int64_t count, Integers blocks, Integers displacements,
                      const Type& child, Type*& out);
Outcome make_indexed_block(Form form, int64_t count, int64_t block, Integers displacements,
                           const Type& child, Type*& out);
Outcome make_hindexed_block(Form form, int64_t count, int64_t block, Integers displacements,
                            const Type& child, Type*& out);
Outcome make_struct(Form form, int64_t count, Integers blocks, Integers displacements,
                    const Type* const* children, Type*& out);
Outcome make_resized(Form form, const Type& child, int64_t lb, int64_t extent, Type*& out);
// MPI_ORDER_x and MPI_DISTRIBUTE_x are passed as the ABI's integers.
Outcome make_subarray(Form form, int dimensions, Integers sizes, Integers subsizes, Integers starts,
                      int order, const Type& child, Type*& out);
Outcome make_darray(Form form, int ranks, int rank, int dimensions, Integers sizes,
                    const int* distributions, const int* arguments, const int* process_sizes,
                    int order, const Type& child, Type*& out);

// The type of Fortran numbers with `numbers` as parameters of `combiner` (f90_real, ...), which is
// `basic` under another name; committed.
Outcome make_parametrized(Combiner combiner, const int* numbers, int count, BasicType basic,
                          Type*& out);

// Type::most() of such a type. One element may lie at any place, more may not overflow: so `count`
// up to it makes all sums and products of size, extent and bounds fit 63 bits.
constexpr uint64_t most_elements(uint64_t size, int64_t extent, int64_t true_lb,
                                 int64_t true_extent) {
  constexpr auto most = int64_t(base::most_bytes);
  if (size == 0) return INT64_MAX;
  if (size > base::most_bytes) return 0;
  const auto is_far = [](int64_t place) { return place > most || place < -most; };
  if (is_far(extent) || is_far(true_lb) || is_far(true_extent)) return 1;
  uint64_t reach = uint64_t(extent < 0 ? -extent : extent);
  if (reach < size) reach = size;
  return base::most_bytes / reach;
}

// Whole elements of `type` in `bytes` of received data; false where MPI_Get_count says undefined.
bool count_in(const Type& type, uint64_t bytes, uint64_t& count);
// Basic elements in `bytes`; false where they end inside one (MPI_Get_elements: undefined).
bool elements_in(const Type& type, uint64_t bytes, uint64_t& elements);

// Signature of `count` of them one after the other.
Signature signature(const Type& type, uint64_t count);
// False only if messages of these signatures, of the same length, cannot belong together.
bool may_match(const Signature& sent, const Signature& received);

// Bytes [low, high) relative to the base address that `count` of them may touch; empty: both 0.
struct Span {
  int64_t low = 0, high = 0;
};
Span span(const Type& type, uint64_t count);

}  // namespace headway::datatypes
