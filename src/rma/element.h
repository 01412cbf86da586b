// Element: what an accumulate works on, and what it does there. Thread: any, plain values. Owner:
// none. Invariant: one that was found has a reducer, and at most `most_element` bytes.
#pragma once
#include <cstdint>

#include "datatypes/reduce.h"
#include "datatypes/type.h"

namespace headway::rma {

inline constexpr uint32_t most_element = 32;

// An operation on elements of one predefined datatype.
struct Work {
  datatypes::ReduceOp op = datatypes::ReduceOp::none;
  datatypes::BasicType basic = datatypes::BasicType::none;
  datatypes::Reducer reduce = nullptr;

  uint32_t size() const { return datatypes::info(basic).size; }      // as in a message
  uint32_t extent() const { return datatypes::info(basic).extent; }  // from one to the next
  bool has_gaps() const { return size() != extent(); }
  // From the first byte to behind the last one.
  uint32_t span() const {
    return has_gaps() ? uint32_t(datatypes::predefined(basic).true_extent()) : size();
  }
  // MPI_NO_OP has no operand.
  bool has_operand() const { return op != datatypes::ReduceOp::no_op; }

  // As a frame has it.
  int32_t tag() const { return int32_t(op) | int32_t(basic) << 8; }
};

// False: there is no such operation on such elements.
bool find_work(datatypes::ReduceOp op, datatypes::BasicType basic, Work& work);
bool read_work(int32_t tag, Work& work);
// May be compared and swapped: integers, logicals, addresses, bytes.
bool may_swap(datatypes::BasicType basic);

// The predefined datatype that all elements of a type have; none: they differ, or there are none.
datatypes::BasicType element_of(const datatypes::Type& type);
// An element of one is one of the other.
bool is_same(datatypes::BasicType a, datatypes::BasicType b);

// target = target OP operand for n elements; what was there goes to `before`, unless it is null.
// Operands and `before` are as in a message. The three do not overlap.
void apply(const Work& work, char* target, const char* operands, char* before, uint64_t n);
// target = fresh, if it is `expected`; what was there goes to `before`.
void swap(const Work& work, char* target, const char* expected, const char* fresh, char* before);

}  // namespace headway::rma
