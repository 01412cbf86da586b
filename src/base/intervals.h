// Intervals: ranges of addresses, each with an owner, and which of them meet a given one. Thread:
// that of its owner. Owner: whoever looks for such ranges. Invariant: a search tree by where ranges
// begin, balanced by random priorities, each node of which knows how far the ranges below it reach:
// adding, removing and one hit take the logarithm of their number, as a rule.
#pragma once
#include <cstdint>

#include "base/vec.h"

namespace headway::base {

class Intervals {
 public:
  // Its number, or 0 without memory. An empty range meets nothing.
  [[nodiscard]] uint32_t add(const void* from, const void* to, uint32_t owner);
  void remove(uint32_t number);
  void clear();
  uint32_t size() const { return size_; }

  // Calls visit(number, owner) for each range that has a byte in common with [from, to), by its
  // beginning, until it returns false; false then. It must not change the ranges.
  template <class Visit>
  bool visit(const void* from, const void* to, Visit&& visit) const {
    return from >= to || look(root_, address(from), address(to), visit);
  }

 private:
  struct Node {
    uintptr_t from, to;
    uintptr_t most;  // the largest `to` of this node and those below it
    uint32_t left, right;
    uint32_t priority;
    uint32_t owner;
  };

  static uintptr_t address(const void* at) { return reinterpret_cast<uintptr_t>(at); }
  template <class Visit>
  bool look(uint32_t at, uintptr_t from, uintptr_t to, Visit& visit) const {
    if (!at || nodes_[at].most <= from) return true;
    const Node& node = nodes_[at];
    if (!look(node.left, from, to, visit)) return false;
    if (node.from >= to) return true;
    if (node.to > from && node.from < node.to && !visit(at, node.owner)) return false;
    return look(node.right, from, to, visit);
  }
  bool is_before(uint32_t a, uint32_t b) const {
    return nodes_[a].from != nodes_[b].from ? nodes_[a].from < nodes_[b].from : a < b;
  }
  void measure(uint32_t at);
  uint32_t insert(uint32_t at, uint32_t fresh);
  uint32_t take_out(uint32_t at, uint32_t gone);
  void split(uint32_t at, uint32_t by, uint32_t& before, uint32_t& after);
  uint32_t join(uint32_t before, uint32_t after);

  Vec<Node> nodes_;  // the first one stands for none
  uint32_t root_ = 0;
  uint32_t free_ = 0;  // nodes that can be used again, one behind the other by `left`
  uint32_t size_ = 0;
  uint32_t random_ = 2463534242;
};

}  // namespace headway::base
