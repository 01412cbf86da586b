#include "datatypes/detail/builder.h"

#include <cstring>
#include <initializer_list>
#include <new>

#include "base/address.h"
#include "base/heap.h"

namespace headway::datatypes {
namespace {

// A child's sequence up to this length is copied into the parent's, so that runs can join and
// walking stays flat; longer ones are shared. Deep nests are copied to keep the walk shallow.
constexpr uint64_t inline_entries = 64;
constexpr uint64_t inline_entries_deep = 1 << 20;
constexpr unsigned deep = 32;

}  // namespace

bool Builder::is_inlined(const Node& node) {
  if (node.kind != Node::Kind::sequence) return false;
  return node.count <= (node.depth > deep ? inline_entries_deep : inline_entries);
}

Builder::Builder(Combiner combiner, Form form) : form_(form) {
  void* memory = base::heap_allocate(sizeof(Type));
  type_ = memory ? new (memory) Type() : nullptr;
  if (type_) {
    type_->combiner_ = combiner;
  } else {
    fail(Outcome::no_memory);
  }
}

Builder::~Builder() {
  if (type_) type_->release();
}

void Builder::reserve_contents(uint64_t integers, uint64_t numbers, uint64_t addresses,
                               uint64_t types) {
  if (!type_) return;
  const bool large = form_ == Form::large;
  integers_room_ = large ? integers : integers + numbers;
  addresses_room_ = large ? 0 : addresses;
  counts_room_ = large ? numbers + addresses : 0;
  types_room_ = types;
  bool fits = true;
  for (const uint64_t room : {integers_room_, addresses_room_, counts_room_, types_room_}) {
    fits &= room <= base::most_bytes;
  }
  const size_t bytes = types_room_ * sizeof(Type*) +
                       (addresses_room_ + counts_room_) * sizeof(int64_t) +
                       integers_room_ * sizeof(int);
  if (fits && bytes == 0) return;
  char* block = fits ? static_cast<char*>(base::heap_allocate(bytes)) : nullptr;
  if (!block) {
    integers_room_ = addresses_room_ = counts_room_ = types_room_ = 0;
    return fail(Outcome::no_memory);
  }
  type_->contents_block_ = block;
  type_->contents_bytes_ = bytes;
  Contents& contents = type_->contents_;
  contents.types = reinterpret_cast<const Type**>(block);
  block += types_room_ * sizeof(Type*);
  contents.addresses = reinterpret_cast<int64_t*>(block);
  block += addresses_room_ * sizeof(int64_t);
  contents.counts = reinterpret_cast<int64_t*>(block);
  block += counts_room_ * sizeof(int64_t);
  contents.integers = reinterpret_cast<int*>(block);
}

void Builder::integer(int64_t value) {
  if (integers_used_ == integers_room_) return;
  const_cast<int*>(type_->contents_.integers)[integers_used_++] = int(value);
  type_->contents_.integer_count = integers_used_;
}

void Builder::number(int64_t value) {
  if (form_ == Form::narrow) return integer(value);
  if (counts_used_ == counts_room_) return;
  const_cast<int64_t*>(type_->contents_.counts)[counts_used_++] = value;
  type_->contents_.count_count = counts_used_;
}

void Builder::address(int64_t value) {
  if (form_ == Form::large) return number(value);
  if (addresses_used_ == addresses_room_) return;
  const_cast<int64_t*>(type_->contents_.addresses)[addresses_used_++] = value;
  type_->contents_.address_count = addresses_used_;
}

void Builder::child(const Type& type) {
  if (types_used_ == types_room_) return;
  type.retain();
  const_cast<const Type**>(type_->contents_.types)[types_used_++] = &type;
  type_->contents_.type_count = types_used_;
}

void Builder::reserve_layout(uint64_t entries, uint64_t nodes) {
  if (!type_) return;
  if (entries > base::most_bytes || nodes > base::most_bytes) {
    return fail(Outcome::no_memory);
  }
  const size_t bytes = entries * sizeof(Entry) + nodes * sizeof(Node);
  if (bytes == 0) return;
  char* block = static_cast<char*>(base::heap_allocate(bytes));
  if (!block) return fail(Outcome::no_memory);
  type_->layout_block_ = block;
  type_->layout_bytes_ = bytes;
  entries_ = reinterpret_cast<Entry*>(block);
  nodes_ = reinterpret_cast<Node*>(block + entries * sizeof(Entry));
  entries_room_ = entries;
  nodes_room_ = nodes;
}

const Node* Builder::keep(const Node& node) {
  static constexpr Node nothing;  // what is built on it is thrown away with the failure
  if (!type_) return &nothing;
  if (!inner_used_) {
    inner_used_ = true;
    type_->inner_ = node;
    return &type_->inner_;
  }
  if (nodes_used_ == nodes_room_) {
    fail(Outcome::no_memory);
    return &nothing;
  }
  return new (nodes_ + nodes_used_++) Node(node);
}

Node Builder::repeat(const Node* body, int64_t count, int64_t stride) {
  Node empty;
  if (count <= 0 || body->bytes == 0) return empty;
  if (count == 1) return *body;
  Node result = *body;
  result.bytes = uint64_t(arithmetic_.multiply(int64_t(body->bytes), count));
  if (body->kind == Node::Kind::run && stride == int64_t(body->bytes)) return result;
  result.runs = body->runs * uint64_t(count);  // not more than bytes, which was checked
  // Where `count` loops lie one after the other like one longer loop, make it that.
  int64_t length = 0;
  if (body->kind == Node::Kind::loop &&
      !__builtin_mul_overflow(body->stride, int64_t(body->count), &length) && stride == length) {
    result.count = uint64_t(arithmetic_.multiply(int64_t(body->count), count));
    return result;
  }
  result.kind = Node::Kind::loop;
  result.plain = false;
  result.depth = uint16_t(body->depth + 1);
  if (result.depth > max_depth) fail(Outcome::unsupported);
  result.offset = 0;
  result.count = uint64_t(count);
  result.stride = stride;
  result.body = body;
  result.entries = nullptr;
  return result;
}

Node Builder::shift(Node node, int64_t offset) {
  node.offset = arithmetic_.add(node.offset, offset);
  return node;
}

void Builder::open_sequence() { sequence_start_ = entries_used_; }

uint64_t Builder::entries_for(const Type& type, int64_t block) {
  if (block <= 0 || type.size() == 0) return 0;
  return block == 1 && is_inlined(type.layout()) ? type.layout().count : 1;
}

void Builder::push(Entry entry) {
  if (entries_used_ > sequence_start_) {
    Entry& last = entries_[entries_used_ - 1];
    entry.before = last.before + last.bytes;
    if (!last.node && !entry.node &&
        arithmetic_.add(last.offset, int64_t(last.bytes)) == entry.offset) {
      last.bytes += entry.bytes;
      return;
    }
  } else {
    entry.before = 0;
  }
  if (entries_used_ == entries_room_) return fail(Outcome::no_memory);
  entries_[entries_used_++] = entry;
}

void Builder::append(const Node& node, const Node* kept, int64_t displacement) {
  if (node.bytes == 0) return;
  if (node.kind == Node::Kind::run) {
    push({arithmetic_.add(displacement, node.offset), node.bytes, 0, nullptr});
  } else if (!kept) {
    const int64_t offset = arithmetic_.add(displacement, node.offset);
    for (uint64_t i = 0; i < node.count; ++i) {
      Entry entry = node.entries[i];
      entry.offset = arithmetic_.add(entry.offset, offset);
      push(entry);
    }
  } else {
    push({displacement, node.bytes, 0, kept});
  }
}

Node Builder::close_sequence() {
  Node result;
  const Entry* const first = entries_ + sequence_start_;
  const uint64_t count = entries_used_ - sequence_start_;
  if (count == 0 || failure_ != Outcome::ok) return result;
  // A list of equal parts at equal distances is a loop.
  const int64_t stride = count > 1 ? arithmetic_.subtract(first[1].offset, first[0].offset) : 0;
  bool regular = true;
  bool plain = true;
  uint64_t depth = 0;
  uint64_t runs = 0;
  int64_t bytes = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const Entry& entry = first[i];
    regular &= entry.bytes == first->bytes && entry.node == first->node &&
               (i == 0 || arithmetic_.subtract(entry.offset, first[i - 1].offset) == stride);
    plain &= entry.node == nullptr;
    runs += entry.node ? entry.node->runs : 1;
    bytes = arithmetic_.add(bytes, int64_t(entry.bytes));
    if (entry.node && entry.node->depth > depth) depth = entry.node->depth;
  }
  if (regular) {
    Node run;
    run.bytes = first->bytes;
    run.runs = 1;
    const int64_t offset = first->offset;
    const Node* body = first->node;
    if (!body && count > 1) body = keep(run);
    entries_used_ = sequence_start_;
    return shift(count == 1 ? (body ? *body : run) : repeat(body, int64_t(count), stride), offset);
  }
  result.kind = Node::Kind::sequence;
  result.plain = plain;
  result.depth = uint16_t(depth + 1);
  if (result.depth > max_depth) fail(Outcome::unsupported);
  result.bytes = uint64_t(bytes);
  result.runs = runs;
  result.count = count;
  result.entries = first;
  return result;
}

Bounds Builder::bounds_of(const Type& type) {
  return {type.empty_,
          type.marked_,
          type.size() != 0,
          type.lb_,
          type.lb_ + type.extent_,
          type.true_lb_,
          type.true_lb_ + type.true_extent_};
}

Bounds Builder::repeat(const Bounds& bounds, int64_t count, int64_t stride) {
  Bounds result = bounds;
  if (count <= 0) return Bounds{};
  if (bounds.empty) return result;
  const int64_t last = arithmetic_.multiply(count - 1, stride);
  const int64_t low = last < 0 ? last : 0;
  const int64_t high = last > 0 ? last : 0;
  result.lb = arithmetic_.add(bounds.lb, low);
  result.ub = arithmetic_.add(bounds.ub, high);
  result.true_lb = arithmetic_.add(bounds.true_lb, low);
  result.true_ub = arithmetic_.add(bounds.true_ub, high);
  return result;
}

Bounds Builder::shift(Bounds bounds, int64_t offset) {
  for (int64_t* bound : {&bounds.lb, &bounds.ub, &bounds.true_lb, &bounds.true_ub}) {
    *bound = arithmetic_.add(*bound, offset);
  }
  return bounds;
}

Bounds Builder::unite(const Bounds& a, const Bounds& b) {
  if (a.empty) return b;
  if (b.empty) return a;
  Bounds result = a;
  if (a.marked == b.marked) {
    if (b.lb < a.lb) result.lb = b.lb;
    if (b.ub > a.ub) result.ub = b.ub;
  } else if (b.marked) {
    result.lb = b.lb;
    result.ub = b.ub;
    result.marked = true;
  }
  if (!a.data) {
    result.true_lb = b.true_lb;
    result.true_ub = b.true_ub;
  } else if (b.data) {
    if (b.true_lb < a.true_lb) result.true_lb = b.true_lb;
    if (b.true_ub > a.true_ub) result.true_ub = b.true_ub;
  }
  result.data = a.data || b.data;
  return result;
}

void Builder::align(Bounds& bounds) {
  if (!type_ || bounds.empty || bounds.marked) return;
  const int64_t extent = arithmetic_.subtract(bounds.ub, bounds.lb);
  const int64_t over = extent % int64_t(type_->alignment_);
  if (over > 0) bounds.ub = arithmetic_.add(bounds.ub, int64_t(type_->alignment_) - over);
}

void Builder::set_bounds(const Bounds& bounds) {
  if (!type_) return;
  type_->empty_ = bounds.empty;
  type_->marked_ = bounds.marked;
  if (bounds.empty) return;
  type_->lb_ = bounds.lb;
  type_->extent_ = arithmetic_.subtract(bounds.ub, bounds.lb);
  if (!bounds.data) return;
  type_->true_lb_ = bounds.true_lb;
  type_->true_extent_ = arithmetic_.subtract(bounds.true_ub, bounds.true_lb);
}

void Builder::add_elements(const Type& type, int64_t count) {
  if (!type_ || count <= 0 || type.empty_) return;
  if (type.alignment_ > type_->alignment_) type_->alignment_ = type.alignment_;
  if (type.size() == 0) return;
  type_->element_size_ =
      type_->signature_.elements == 0 || type_->element_size_ == type.element_size_
          ? type.element_size_
          : 0;
  type_->signature_ = concatenate(type_->signature_, datatypes::repeat(type.signature_, count));
}

void Builder::set_basic(const Type& old) {
  if (type_) type_->basic_ = old.basic_;
}

// Gives back room that joining runs left unused.
void Builder::shrink() {
  if (nodes_room_ != 0 || entries_used_ * 2 > entries_room_ || entries_room_ <= 16) return;
  Node& root = type_->root_;
  void* const old = type_->layout_block_;
  const size_t old_bytes = type_->layout_bytes_;
  const size_t bytes = entries_used_ * sizeof(Entry);
  Entry* block = nullptr;
  if (bytes != 0) {
    block = static_cast<Entry*>(base::heap_allocate(bytes));
    if (!block) return;  // the larger block serves as well
    memcpy(block, entries_, bytes);
  }
  if (root.entries == entries_) root.entries = block;
  type_->layout_block_ = block;
  type_->layout_bytes_ = bytes;
  base::heap_free(old, old_bytes);
}

Outcome Builder::finish(Type*& out) {
  if (!arithmetic_.ok) fail(Outcome::bad_argument);
  if (failure_ != Outcome::ok) return failure_;
  shrink();
  const Node& root = type_->root_;
  type_->dense_ =
      root.kind == Node::Kind::run && (root.bytes == 0 || int64_t(root.bytes) == type_->extent_);
  type_->most_ = most_elements(root.bytes, type_->extent_, type_->true_lb_, type_->true_extent_);
  out = type_;
  type_ = nullptr;
  return Outcome::ok;
}

}  // namespace headway::datatypes
