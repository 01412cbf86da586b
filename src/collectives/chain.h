// Chain: nodes one after the other, the root's first; of each the rank that is met first from the
// root on is its head, which hears from the head before and tells the next one and, down a
// binomial tree, the ranks beside it. Thread: any. Owner: who builds a schedule. Invariants: all
// ranks make the same chain of one root, since what they know of the nodes is alike; each rank but
// the root hears from one.
#pragma once
#include <cstdint>

#include "base/check.h"
#include "base/vec.h"
#include "collectives/tree.h"
#include "objects/team.h"

namespace headway::collectives {

class Chain {
 public:
  static constexpr int nobody = -1;

  // node_of(rank): by which its node is known. Where it is 0, not known, of one rank, each rank is
  // a node of its own: ranks of two jobs know the nodes of their own job alone. False without
  // memory.
  template <class NodeOf>
  [[nodiscard]] bool make(objects::Team team, int root, NodeOf&& node_of) {
    bool are_known = true;
    for (int rank = 0; rank < team.size; ++rank) are_known &= node_of(rank) != 0;
    const auto are_beside = [&](int one, int other) {
      return one == other || (are_known && node_of(one) == node_of(other));
    };
    base::Vec<int> heads;
    size_t own_head = 0;
    for (int step = 0; step < team.size; ++step) {
      const int rank = (root + step) % team.size;
      if (rank == team.self) self_ = int(beside_.size());
      if (are_beside(rank, team.self) && !beside_.push(rank)) return false;
      bool has_head = false;
      for (const int head : heads) has_head |= are_beside(rank, head);
      if (has_head) continue;
      if (are_beside(rank, team.self)) own_head = heads.size();
      if (!heads.push(rank)) return false;
    }
    if (self_ == 0) {
      if (own_head > 0) from_ = heads[own_head - 1];
      if (own_head + 1 < heads.size()) next_ = heads[own_head + 1];
    } else {
      from_ = beside_[size_t(tree().parent())];
    }
    HEADWAY_CHECK((from_ == nobody) == (team.self == root));
    return true;
  }

  // Whom this rank hears from; the root nobody.
  int from() const { return from_; }
  // The next node's head, if this is one and there is a next node.
  int next() const { return next_; }
  // The ranks beside it that it tells; farthest first.
  template <class Tell>
  void each_beside(Tell&& tell) const {
    const Binomial places = tree();
    for (int distance = places.reach / 2; distance > 0; distance /= 2) {
      if (places.has_child(distance)) tell(beside_[size_t(places.child(distance))]);
    }
  }
  bool passes_on() const {
    bool does = next_ != nobody;
    each_beside([&](int) { does = true; });
    return does;
  }

 private:
  // Of the places in `beside_`.
  Binomial tree() const {
    objects::Team places;
    places.size = int(beside_.size());
    places.self = self_;
    return {places, 0};
  }

  base::Vec<int> beside_;  // the ranks of this node, its head first
  int self_ = 0;           // this rank's place among them
  int from_ = nobody, next_ = nobody;
};

}  // namespace headway::collectives
