// Builder: puts one Type together. Thread: the caller's; lives inside one constructor call. Owner
// of the new type until finish(). Invariant: arithmetic that left 64 bits and memory that was
// refused are remembered and reported by finish(), so that the steps between need no checks.
#pragma once
#include <cstddef>
#include <cstdint>

#include "datatypes/type.h"

namespace headway::datatypes {

// 64-bit arithmetic that remembers whether it ever overflowed.
struct Checked {
  bool ok = true;
  int64_t add(int64_t a, int64_t b) {
    int64_t sum = 0;
    ok &= !__builtin_add_overflow(a, b, &sum);
    return sum;
  }
  int64_t subtract(int64_t a, int64_t b) {
    int64_t difference = 0;
    ok &= !__builtin_sub_overflow(a, b, &difference);
    return difference;
  }
  int64_t multiply(int64_t a, int64_t b) {
    int64_t product = 0;
    ok &= !__builtin_mul_overflow(a, b, &product);
    return product;
  }
};

// The bounds of a part of a typemap. Where some parts have markers (MPI_Type_create_resized),
// theirs alone count, as the standard's definition of lb and ub says.
struct Bounds {
  bool empty = true;    // nothing there: the numbers mean nothing
  bool marked = false;  // lb and ub come from markers
  bool data = false;    // has bytes: the true bounds mean something
  int64_t lb = 0, ub = 0;
  int64_t true_lb = 0, true_ub = 0;
};

class Builder {
 public:
  explicit Builder(Combiner combiner, Form form = Form::narrow);
  ~Builder();

  // Room for the call's arguments. `numbers` and `addresses` become MPI_Count in the large form.
  void reserve_contents(uint64_t integers, uint64_t numbers, uint64_t addresses, uint64_t types);
  void integer(int64_t value);
  void number(int64_t value);
  void address(int64_t value);
  void child(const Type& type);

  // Room for parts of the layout.
  void reserve_layout(uint64_t entries, uint64_t nodes);
  // A copy of `node` that lives as long as the type.
  const Node* keep(const Node& node);
  // `count` passes over `body`, which must live as long as the type.
  Node repeat(const Node* body, int64_t count, int64_t stride);
  Node shift(Node node, int64_t offset);
  // Sequences: open, append in typemap order, close. Runs that touch are joined, and sequences
  // that are in truth regular become loops. `kept` is a lasting copy of `node`; null for a run, and
  // for a sequence whose entries are to be copied into this one.
  void open_sequence();
  void append(const Node& node, const Node* kept, int64_t displacement);
  Node close_sequence();
  static bool is_inlined(const Node& node);
  // Entries that append() will need for `type` with this block length.
  static uint64_t entries_for(const Type& type, int64_t block);

  static Bounds bounds_of(const Type& type);
  Bounds repeat(const Bounds& bounds, int64_t count, int64_t stride);
  Bounds shift(Bounds bounds, int64_t offset);
  static Bounds unite(const Bounds& a, const Bounds& b);

  void set_layout(const Node& root) {
    if (type_) type_->root_ = root;
  }
  void set_bounds(const Bounds& bounds);
  // Rounds the extent up to the alignment, as the struct constructor does.
  void align(Bounds& bounds);
  void add_elements(const Type& type, int64_t count);
  void set_basic(const Type& old);
  void fail(Outcome why) {
    if (failure_ == Outcome::ok) failure_ = why;
  }

  Checked& arithmetic() { return arithmetic_; }
  Outcome finish(Type*& out);

 private:
  void push(Entry entry);
  void shrink();

  Type* type_;
  Form form_;
  Outcome failure_ = Outcome::ok;
  Checked arithmetic_;
  uint64_t integers_used_ = 0, addresses_used_ = 0, counts_used_ = 0, types_used_ = 0;
  uint64_t integers_room_ = 0, addresses_room_ = 0, counts_room_ = 0, types_room_ = 0;
  Entry* entries_ = nullptr;
  Node* nodes_ = nullptr;
  uint64_t entries_room_ = 0, entries_used_ = 0, sequence_start_ = 0;
  uint64_t nodes_room_ = 0, nodes_used_ = 0;
  bool inner_used_ = false;
};

// Signature of `count` repetitions, and of one list after another.
Signature repeat(const Signature& signature, uint64_t count);
Signature concatenate(const Signature& a, const Signature& b);

}  // namespace headway::datatypes
