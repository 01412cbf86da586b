// Inter-communicators for the programs about them: two sides out of MPI_COMM_WORLD, in whose order
// and size anything may go wrong. Thread: one. Owner: the case that asks for them. Invariant: every
// rank knows both sides' lists, so that it can tell what anybody has.
#pragma once
#include <algorithm>
#include <functional>

#include "check.h"

namespace inter {

struct Sides {
  std::vector<int> ranks[2];  // in MPI_COMM_WORLD
  int side = -1;              // this rank's, -1: it is on none
  int rank = -1;              // its rank there
  MPI_Comm local = MPI_COMM_NULL;
  MPI_Comm comm = MPI_COMM_NULL;  // from join() on

  int size(int of) const { return static_cast<int>(ranks[of].size()); }
  const std::vector<int>& own() const { return ranks[side]; }
  const std::vector<int>& others() const { return ranks[1 - side]; }
};

// All of MPI_COMM_WORLD call this.
inline Sides place(const std::vector<int>& first, const std::vector<int>& second) {
  Sides sides;
  sides.ranks[0] = first;
  sides.ranks[1] = second;
  for (int side = 0; side < 2; ++side) {
    for (int rank = 0; rank < sides.size(side); ++rank) {
      if (sides.ranks[side][rank] != check::rank) continue;
      sides.side = side;
      sides.rank = rank;
    }
  }
  MPI(MPI_Comm_split(MPI_COMM_WORLD, sides.side < 0 ? MPI_UNDEFINED : sides.side, sides.rank,
                     &sides.local));
  return sides;
}

// The ranks of both sides call this. What means something at the leader alone is wrong elsewhere.
inline MPI_Comm join(const Sides& sides, int first_leader = 0, int second_leader = 0,
                     int tag = 77) {
  const int leaders[] = {first_leader, second_leader};
  MPI_Comm made = MPI_COMM_NULL;
  if (sides.side < 0) return made;
  const bool leads = sides.rank == leaders[sides.side];
  MPI(MPI_Intercomm_create(sides.local, leaders[sides.side], leads ? MPI_COMM_WORLD : MPI_COMM_NULL,
                           leads ? sides.others()[leaders[1 - sides.side]] : -5, tag, &made));
  return made;
}

inline void release(Sides& sides) {
  if (sides.comm != MPI_COMM_NULL) MPI(MPI_Comm_free(&sides.comm));
  if (sides.local != MPI_COMM_NULL) MPI(MPI_Comm_free(&sides.local));
}

// Runs `body` on the ranks of both sides of 1+1, 1+3, 2+5, and of halves of all ranks, as far as
// there are enough; in both directions.
inline void everywhere(const std::function<void(const Sides&)>& body) {
  std::vector<std::pair<std::vector<int>, std::vector<int>>> shapes = {
      {{1}, {0}}, {{2}, {0, 1, 3}}, {{5, 1}, {0, 6, 2, 4, 3}}};
  std::vector<int> halves[2];
  for (int rank = 0; rank < check::size; ++rank) halves[rank < check::size / 2].push_back(rank);
  shapes.emplace_back(halves[0], halves[1]);
  for (const auto& [first, second] : shapes) {
    int most = 0;
    for (const auto* list : {&first, &second}) {
      for (const int rank : *list) most = std::max(most, rank);
    }
    if (most >= check::size || first.empty() || second.empty()) continue;
    for (int turned = 0; turned < 2; ++turned) {
      Sides sides = turned ? place(second, first) : place(first, second);
      sides.comm = join(sides, sides.size(0) - 1, turned ? 0 : sides.size(1) / 2);
      if (sides.side >= 0) body(sides);
      release(sides);
    }
  }
}

}  // namespace inter
