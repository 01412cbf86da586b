// The constructors that cut a part out of an array of several dimensions: subarray and darray.
#include <initializer_list>

#include "datatypes/detail/builder.h"
#include "datatypes/type.h"
#include "settings/abi_constants.h"

namespace headway::datatypes {
namespace {

// What has been built so far: the layout of one item of the dimension at hand, its true bounds,
// and the distance from one item to the next.
struct Slab {
  const Node* node;
  Bounds bounds;
  int64_t stride;
};

// The dimension that is the i-th fastest in memory.
int dimension_at(int i, int dimensions, int order) {
  return order == abi::k_ORDER_FORTRAN ? i : dimensions - 1 - i;
}

// An array's own bounds are those of the whole, wherever the part lies.
void finish_bounds(Builder& builder, Slab slab) {
  slab.bounds.empty = false;
  slab.bounds.marked = true;
  slab.bounds.lb = 0;
  slab.bounds.ub = slab.stride;
  builder.set_bounds(slab.bounds);
}

// Items [start, start + length) of a dimension of `size` items.
void cut(Builder& builder, Slab& slab, int64_t start, int64_t length, int64_t size) {
  Checked& arithmetic = builder.arithmetic();
  const int64_t offset = arithmetic.multiply(start, slab.stride);
  const Node part = builder.shift(builder.repeat(slab.node, length, slab.stride), offset);
  slab.bounds = builder.shift(builder.repeat(slab.bounds, length, slab.stride), offset);
  slab.node = builder.keep(part);
  slab.stride = arithmetic.multiply(slab.stride, size);
}

// One dimension of a darray: blocks of `block` items, every `processes`-th of them ours.
struct Share {
  int64_t size;
  int64_t block;
  int64_t processes;
  int64_t mine;  // our coordinate

  int64_t first() const { return mine * block; }
  int64_t round() const { return processes * block; }
  int64_t whole_blocks() const {
    const int64_t left = size - first();
    return left < block ? 0 : (left - block) / round() + 1;
  }
  // Items of the last, shorter block.
  int64_t rest() const {
    const int64_t left = size - first() - whole_blocks() * round();
    return left <= 0 ? 0 : (left < block ? left : block);
  }
  int64_t items() const { return whole_blocks() * block + rest(); }
};

void distribute(Builder& builder, Slab& slab, const Share& share) {
  Checked& arithmetic = builder.arithmetic();
  const int64_t item = slab.stride;
  const int64_t round = arithmetic.multiply(share.round(), item);
  const int64_t whole = share.whole_blocks();
  const Node* block = builder.keep(builder.repeat(slab.node, share.block, item));
  const Node blocks = builder.repeat(block, whole, round);
  const Node rest = builder.repeat(slab.node, share.rest(), item);
  const int64_t rest_at = arithmetic.multiply(whole, round);

  Bounds bounds = builder.repeat(builder.repeat(slab.bounds, share.block, item), whole, round);
  const Bounds tail = builder.repeat(slab.bounds, share.rest(), item);
  if (!tail.empty) bounds = Builder::unite(bounds, builder.shift(tail, rest_at));

  builder.open_sequence();
  builder.append(blocks, builder.keep(blocks), 0);
  builder.append(rest, builder.keep(rest), rest_at);
  const int64_t first = arithmetic.multiply(share.first(), item);
  slab.node = builder.keep(builder.shift(builder.close_sequence(), first));
  slab.bounds = bounds.empty ? bounds : builder.shift(bounds, first);
  slab.stride = arithmetic.multiply(item, share.size);
}

// The block length that a distribution asks for; 0 if the arguments contradict each other.
int64_t block_length(int distribution, int argument, int64_t size, int64_t processes) {
  const bool unset = argument == abi::k_DISTRIBUTE_DFLT_DARG;
  switch (distribution) {
    case abi::k_DISTRIBUTE_NONE: return processes == 1 ? size : 0;
    case abi::k_DISTRIBUTE_BLOCK: {
      if (unset) return size / processes + (size % processes != 0);
      return argument > 0 && argument * processes >= size ? argument : 0;
    }
    case abi::k_DISTRIBUTE_CYCLIC: return unset ? 1 : (argument > 0 ? argument : 0);
    default: return 0;
  }
}

}  // namespace

Outcome make_subarray(Form form, int dimensions, Integers sizes, Integers subsizes, Integers starts,
                      int order, const Type& child, Type*& out) {
  if (dimensions < 1 || (order != abi::k_ORDER_C && order != abi::k_ORDER_FORTRAN))
    return Outcome::bad_argument;
  const uint64_t n = uint64_t(dimensions);
  for (uint64_t d = 0; d < n; ++d) {
    if (sizes[d] < 1 || subsizes[d] < 1 || subsizes[d] > sizes[d]) return Outcome::bad_argument;
    if (starts[d] < 0 || starts[d] > sizes[d] - subsizes[d]) return Outcome::bad_argument;
  }
  Builder builder(Combiner::subarray, form);
  builder.reserve_contents(2, 3 * n, 0, 1);
  builder.integer(dimensions);
  for (const Integers& list : {sizes, subsizes, starts}) {
    for (uint64_t d = 0; d < n; ++d) builder.number(list[d]);
  }
  builder.integer(order);
  builder.child(child);
  builder.reserve_layout(0, n);

  Slab slab{&child.layout(), Builder::bounds_of(child), child.extent()};
  int64_t items = 1;
  for (int i = 0; i < dimensions; ++i) {
    const uint64_t d = uint64_t(dimension_at(i, dimensions, order));
    cut(builder, slab, starts[d], subsizes[d], sizes[d]);
    items = builder.arithmetic().multiply(items, subsizes[d]);
  }
  builder.set_layout(*slab.node);
  finish_bounds(builder, slab);
  builder.add_elements(child, items);
  return builder.finish(out);
}

Outcome make_darray(Form form, int ranks, int rank, int dimensions, Integers sizes,
                    const int* distributions, const int* arguments, const int* process_sizes,
                    int order, const Type& child, Type*& out) {
  if (dimensions < 1 || (order != abi::k_ORDER_C && order != abi::k_ORDER_FORTRAN))
    return Outcome::bad_argument;
  if (ranks < 1 || rank < 0 || rank >= ranks) return Outcome::bad_argument;
  const uint64_t n = uint64_t(dimensions);
  int64_t grid = 1;
  for (uint64_t d = 0; d < n; ++d) {
    // A round over all processes, which may go beyond the last item, is below 2^62, too.
    if (sizes[d] < 1 || sizes[d] > INT64_MAX / 2 || process_sizes[d] < 1) {
      return Outcome::bad_argument;
    }
    if (!block_length(distributions[d], arguments[d], sizes[d], process_sizes[d]) ||
        (grid *= process_sizes[d]) > ranks) {
      return Outcome::bad_argument;
    }
  }
  if (grid != ranks) return Outcome::bad_argument;

  Builder builder(Combiner::darray, form);
  builder.reserve_contents(4 + 3 * n, n, 0, 1);
  for (int value : {ranks, rank, dimensions}) builder.integer(value);
  for (uint64_t d = 0; d < n; ++d) builder.number(sizes[d]);
  for (const int* list : {distributions, arguments, process_sizes}) {
    for (uint64_t d = 0; d < n; ++d) builder.integer(list[d]);
  }
  builder.integer(order);
  builder.child(child);
  builder.reserve_layout(2 * n, 4 * n);

  Slab slab{&child.layout(), Builder::bounds_of(child), child.extent()};
  int64_t items = 1;
  for (int i = 0; i < dimensions; ++i) {
    const int d = dimension_at(i, dimensions, order);
    // Ranks fill the process grid with its last dimension fastest, in both orders.
    int64_t below = 1;
    for (int later = d + 1; later < dimensions; ++later) below *= process_sizes[later];
    const int64_t processes = process_sizes[d];
    const uint64_t at = uint64_t(d);
    const Share share{sizes[at], block_length(distributions[d], arguments[d], sizes[at], processes),
                      processes, rank / below % processes};
    distribute(builder, slab, share);
    items = builder.arithmetic().multiply(items, share.items());
  }
  builder.set_layout(*slab.node);
  finish_bounds(builder, slab);
  builder.add_elements(child, items);
  return builder.finish(out);
}

}  // namespace headway::datatypes
