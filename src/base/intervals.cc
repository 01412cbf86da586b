#include "base/intervals.h"

#include <initializer_list>

#include "base/check.h"

namespace headway::base {

uint32_t Intervals::add(const void* from, const void* to, uint32_t owner) {
  uint32_t fresh = free_;
  if (fresh) {
    free_ = nodes_[fresh].left;
  } else {
    if (nodes_.empty() && !nodes_.push({})) return 0;
    if (!nodes_.push({})) return 0;
    fresh = uint32_t(nodes_.size() - 1);
  }
  // Marsaglia's xorshift: the shape of the tree must not follow the program's addresses.
  random_ ^= random_ << 13;
  random_ ^= random_ >> 17;
  random_ ^= random_ << 5;
  nodes_[fresh] = {address(from), address(to), address(to), 0, 0, random_, owner};
  root_ = insert(root_, fresh);
  ++size_;
  return fresh;
}

void Intervals::remove(uint32_t number) {
  HEADWAY_CHECK(size_ != 0 && number != 0 && number < nodes_.size());
  root_ = take_out(root_, number);
  nodes_[number].left = free_;
  free_ = number;
  --size_;
}

void Intervals::clear() {
  nodes_.clear();
  root_ = free_ = size_ = 0;
}

void Intervals::measure(uint32_t at) {
  Node& node = nodes_[at];
  HEADWAY_CHECK(!node.left ||
                (is_before(node.left, at) && nodes_[node.left].priority <= node.priority));
  HEADWAY_CHECK(!node.right ||
                (is_before(at, node.right) && nodes_[node.right].priority <= node.priority));
  node.most = node.to;
  for (const uint32_t below : {node.left, node.right}) {
    if (below && nodes_[below].most > node.most) node.most = nodes_[below].most;
  }
}

// Each of these returns the root of what it has made of a tree.

uint32_t Intervals::insert(uint32_t at, uint32_t fresh) {
  if (!at) return fresh;
  if (nodes_[fresh].priority > nodes_[at].priority) {
    split(at, fresh, nodes_[fresh].left, nodes_[fresh].right);
    measure(fresh);
    return fresh;
  }
  uint32_t& side = is_before(fresh, at) ? nodes_[at].left : nodes_[at].right;
  side = insert(side, fresh);
  measure(at);
  return at;
}

uint32_t Intervals::take_out(uint32_t at, uint32_t gone) {
  HEADWAY_CHECK(at);  // the way down leads to it
  if (!at) return 0;
  if (at == gone) return join(nodes_[at].left, nodes_[at].right);
  uint32_t& side = is_before(gone, at) ? nodes_[at].left : nodes_[at].right;
  side = take_out(side, gone);
  measure(at);
  return at;
}

void Intervals::split(uint32_t at, uint32_t by, uint32_t& before, uint32_t& after) {
  if (!at) {
    before = after = 0;
    return;
  }
  // Local: the caller's places may be members of nodes that this changes.
  uint32_t inner = 0;
  if (is_before(at, by)) {
    split(nodes_[at].right, by, inner, after);
    nodes_[at].right = inner;
    before = at;
  } else {
    split(nodes_[at].left, by, before, inner);
    nodes_[at].left = inner;
    after = at;
  }
  measure(at);
}

uint32_t Intervals::join(uint32_t before, uint32_t after) {
  if (!before) return after;
  if (!after) return before;
  if (nodes_[before].priority > nodes_[after].priority) {
    nodes_[before].right = join(nodes_[before].right, after);
    measure(before);
    return before;
  }
  nodes_[after].left = join(before, nodes_[after].left);
  measure(after);
  return after;
}

}  // namespace headway::base
