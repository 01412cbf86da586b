// The constructors whose layout is a list of blocks: contiguous, vector, indexed, struct, ...
#include <initializer_list>

#include "datatypes/detail/builder.h"
#include "datatypes/type.h"

namespace headway::datatypes {
namespace {

// A list of blocks, each a run of elements of one type, as all constructors here describe them.
struct Blocks {
  int64_t count;
  Integers lengths;            // elements of each block ...
  int64_t common_length = -1;  // ... or this for all
  Integers displacements;
  int64_t unit = 1;  // what displacements count: the child's extent, or bytes
  const Type* const* children = nullptr;
  const Type* common_child = nullptr;

  int64_t length(int64_t i) const {
    return common_length >= 0 ? common_length : lengths[uint64_t(i)];
  }
  const Type& child(int64_t i) const { return common_child ? *common_child : *children[i]; }
};

// How many entries and nodes the layout of the blocks can need.
void reserve(Builder& builder, const Blocks& blocks) {
  Checked total;
  int64_t entries = 0;
  int64_t nodes = 0;
  for (int64_t i = 0; i < blocks.count; ++i) {
    const Type& child = blocks.child(i);
    const int64_t length = blocks.length(i);
    entries = total.add(entries, int64_t(Builder::entries_for(child, length)));
    const bool run = child.is_contiguous(uint64_t(length));
    const bool seen = i > 0 && length == blocks.length(i - 1) && &child == &blocks.child(i - 1);
    if (length > 1 && !run && !seen) ++nodes;
  }
  if (!total.ok) return builder.fail(Outcome::no_memory);
  builder.reserve_layout(uint64_t(entries), uint64_t(nodes));
}

// Lays the blocks out one after the other; gives the bounds of all of them.
Bounds lay_out(Builder& builder, const Blocks& blocks) {
  Bounds all;
  Checked& arithmetic = builder.arithmetic();
  builder.open_sequence();
  Node node;
  const Node* kept = nullptr;
  Bounds bounds;
  for (int64_t i = 0; i < blocks.count; ++i) {
    const Type& child = blocks.child(i);
    const int64_t length = blocks.length(i);
    if (length == 0) continue;
    const bool seen = i > 0 && length == blocks.length(i - 1) && &child == &blocks.child(i - 1);
    if (!seen) {
      node = builder.repeat(&child.layout(), length, child.extent());
      kept = nullptr;
      if (length == 1 && !Builder::is_inlined(node)) kept = &child.layout();
      if (length > 1 && node.kind != Node::Kind::run) kept = builder.keep(node);
      bounds = builder.repeat(Builder::bounds_of(child), length, child.extent());
    }
    const int64_t at = arithmetic.multiply(blocks.displacements[uint64_t(i)], blocks.unit);
    builder.append(node, kept, at);
    if (!bounds.empty) all = Builder::unite(all, builder.shift(bounds, at));
    if (!blocks.common_child) builder.add_elements(child, length);
  }
  builder.set_layout(builder.close_sequence());
  if (blocks.common_child) {
    int64_t elements = 0;
    for (int64_t i = 0; i < blocks.count; ++i)
      elements = arithmetic.add(elements, blocks.length(i));
    builder.add_elements(*blocks.common_child, elements);
  }
  return all;
}

bool legal(const Blocks& blocks) {
  if (blocks.count < 0) return false;
  for (int64_t i = 0; i < blocks.count; ++i) {
    if (blocks.length(i) < 0) return false;
  }
  return true;
}

Outcome finish(Builder& builder, const Blocks& blocks, Type*& out) {
  reserve(builder, blocks);
  builder.set_bounds(lay_out(builder, blocks));
  return builder.finish(out);
}

// Blocks of one type anywhere. Their displacements are numbers if they count elements, addresses if
// bytes.
Outcome finish_displaced(Builder& builder, const Blocks& list, bool in_bytes, Type*& out) {
  if (!legal(list)) return Outcome::bad_argument;
  const auto n = uint64_t(list.count);
  const uint64_t lengths = list.common_length >= 0 ? 1 : n;
  builder.reserve_contents(0, 1 + lengths + (in_bytes ? 0 : n), in_bytes ? n : 0, 1);
  builder.number(list.count);
  for (uint64_t i = 0; i < lengths; ++i) builder.number(list.length(int64_t(i)));
  for (uint64_t i = 0; i < n; ++i) {
    if (in_bytes) {
      builder.address(list.displacements[i]);
    } else {
      builder.number(list.displacements[i]);
    }
  }
  builder.child(*list.common_child);
  return finish(builder, list, out);
}

// vector and hvector: equal blocks at one distance.
Outcome finish_vector(Builder& builder, int64_t count, int64_t block, int64_t stride_bytes,
                      const Type& child, Type*& out) {
  Checked& arithmetic = builder.arithmetic();
  const Node inner = builder.repeat(&child.layout(), block, child.extent());
  const Node* body = &child.layout();
  if (block != 1 && count > 1) body = builder.keep(inner);
  builder.set_layout(count == 1 || block == 0 ? inner : builder.repeat(body, count, stride_bytes));
  Bounds bounds = builder.repeat(Builder::bounds_of(child), block, child.extent());
  builder.set_bounds(builder.repeat(bounds, count, stride_bytes));
  builder.add_elements(child, arithmetic.multiply(count, block));
  return builder.finish(out);
}

}  // namespace

Outcome make_dup(const Type& old, Type*& out) {
  Builder builder(Combiner::dup);
  builder.reserve_contents(0, 0, 0, 1);
  builder.child(old);
  builder.set_layout(old.layout());
  builder.set_bounds(Builder::bounds_of(old));
  builder.add_elements(old, 1);
  builder.set_basic(old);
  const Outcome outcome = builder.finish(out);
  if (outcome == Outcome::ok && old.committed()) out->commit();
  return outcome;
}

Outcome make_parametrized(Combiner combiner, const int* numbers, int count, BasicType basic,
                          Type*& out) {
  const Type& meant = predefined(basic);
  Builder builder(combiner);
  builder.reserve_contents(uint64_t(count), 0, 0, 0);
  for (int i = 0; i < count; ++i) builder.integer(numbers[i]);
  builder.set_layout(meant.layout());
  builder.set_bounds(Builder::bounds_of(meant));
  builder.add_elements(meant, 1);
  builder.set_basic(meant);
  const Outcome outcome = builder.finish(out);
  if (outcome == Outcome::ok) out->commit();
  return outcome;
}

Outcome make_contiguous(Form form, int64_t count, const Type& child, Type*& out) {
  if (count < 0) return Outcome::bad_argument;
  Builder builder(Combiner::contiguous, form);
  builder.reserve_contents(0, 1, 0, 1);
  builder.number(count);
  builder.child(child);
  builder.set_layout(builder.repeat(&child.layout(), count, child.extent()));
  builder.set_bounds(builder.repeat(Builder::bounds_of(child), count, child.extent()));
  builder.add_elements(child, count);
  return builder.finish(out);
}

Outcome make_vector(Form form, int64_t count, int64_t block, int64_t stride, const Type& child,
                    Type*& out) {
  if (count < 0 || block < 0) return Outcome::bad_argument;
  Builder builder(Combiner::vector, form);
  builder.reserve_contents(0, 3, 0, 1);
  for (int64_t value : {count, block, stride}) builder.number(value);
  builder.child(child);
  const int64_t stride_bytes = builder.arithmetic().multiply(stride, child.extent());
  return finish_vector(builder, count, block, stride_bytes, child, out);
}

Outcome make_hvector(Form form, int64_t count, int64_t block, int64_t stride_bytes,
                     const Type& child, Type*& out) {
  if (count < 0 || block < 0) return Outcome::bad_argument;
  Builder builder(Combiner::hvector, form);
  builder.reserve_contents(0, 2, 1, 1);
  builder.number(count);
  builder.number(block);
  builder.address(stride_bytes);
  builder.child(child);
  return finish_vector(builder, count, block, stride_bytes, child, out);
}

Outcome make_indexed(Form form, int64_t count, Integers blocks, Integers displacements,
                     const Type& child, Type*& out) {
  Builder builder(Combiner::indexed, form);
  return finish_displaced(builder,
                          {.count = count,
                           .lengths = blocks,
                           .displacements = displacements,
                           .unit = child.extent(),
                           .common_child = &child},
                          false, out);
}

Outcome make_hindexed(Form form, int64_t count, Integers blocks, Integers displacements,
                      const Type& child, Type*& out) {
  Builder builder(Combiner::hindexed, form);
  return finish_displaced(
      builder,
      {.count = count, .lengths = blocks, .displacements = displacements, .common_child = &child},
      true, out);
}

Outcome make_indexed_block(Form form, int64_t count, int64_t block, Integers displacements,
                           const Type& child, Type*& out) {
  if (block < 0) return Outcome::bad_argument;
  Builder builder(Combiner::indexed_block, form);
  return finish_displaced(builder,
                          {.count = count,
                           .lengths = {},
                           .common_length = block,
                           .displacements = displacements,
                           .unit = child.extent(),
                           .common_child = &child},
                          false, out);
}

Outcome make_hindexed_block(Form form, int64_t count, int64_t block, Integers displacements,
                            const Type& child, Type*& out) {
  if (block < 0) return Outcome::bad_argument;
  Builder builder(Combiner::hindexed_block, form);
  return finish_displaced(builder,
                          {.count = count,
                           .lengths = {},
                           .common_length = block,
                           .displacements = displacements,
                           .common_child = &child},
                          true, out);
}

Outcome make_struct(Form form, int64_t count, Integers blocks, Integers displacements,
                    const Type* const* children, Type*& out) {
  const Blocks list{
      .count = count, .lengths = blocks, .displacements = displacements, .children = children};
  if (!legal(list)) return Outcome::bad_argument;
  Builder builder(Combiner::structure, form);
  builder.reserve_contents(0, 1 + uint64_t(count), uint64_t(count), uint64_t(count));
  builder.number(count);
  for (int64_t i = 0; i < count; ++i) builder.number(blocks[uint64_t(i)]);
  for (int64_t i = 0; i < count; ++i) builder.address(displacements[uint64_t(i)]);
  for (int64_t i = 0; i < count; ++i) builder.child(*children[i]);
  reserve(builder, list);
  Bounds bounds = lay_out(builder, list);
  builder.align(bounds);
  builder.set_bounds(bounds);
  return builder.finish(out);
}

Outcome make_resized(Form form, const Type& child, int64_t lb, int64_t extent, Type*& out) {
  Builder builder(Combiner::resized, form);
  builder.reserve_contents(0, 0, 2, 1);
  builder.address(lb);
  builder.address(extent);
  builder.child(child);
  builder.set_layout(child.layout());
  Bounds bounds = Builder::bounds_of(child);
  bounds.empty = false;
  bounds.marked = true;
  bounds.lb = lb;
  bounds.ub = builder.arithmetic().add(lb, extent);
  builder.set_bounds(bounds);
  builder.add_elements(child, 1);
  return builder.finish(out);
}

}  // namespace headway::datatypes
