// Binomial: the tree of bcast, gather and scatter over ranks counted from the root. Thread: any.
// Owns nothing. Invariant: the subtree of a rank is the ranks side by side from itself on.
#pragma once
#include "base/check.h"
#include "objects/team.h"

namespace headway::collectives {

struct Binomial {
  int size, root;
  int self;       // rank counted from the root
  int reach = 1;  // twice the distance to the farthest child that may be there

  Binomial(objects::Team team, int root)
      : size(team.size), root(root), self((team.self - root + team.size) % team.size) {
    HEADWAY_CHECK(root >= 0 && root < size && self >= 0 && self < size);
    while (reach < size && !(self & reach)) reach *= 2;
  }
  bool is_root() const { return self == 0; }
  int parent() const {
    HEADWAY_CHECK(!is_root() && self >= reach);
    return rank_of(self - reach);
  }
  bool has_child(int distance) const { return self + distance < size; }
  int child(int distance) const {
    HEADWAY_CHECK(distance < reach && has_child(distance));
    return rank_of(self + distance);
  }
  // Ranks in the subtree, itself among them.
  int subtree() const { return self + reach < size ? reach : size - self; }
  int rank_of(int number) const { return (number + root) % size; }
};

}  // namespace headway::collectives
