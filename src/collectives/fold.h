// Fold: the one tree over rank numbers that all reductions follow. Where the number of ranks is no
// power of two, the first ranks form pairs (2i, 2i+1) that act as one; then neighbours at distance
// 1, 2, 4 ... combine. Every subtree covers ranks side by side, so rank order holds, and every
// element meets the same operands in the same order in any algorithm and for any root.
#pragma once

namespace headway::collectives {

struct Fold {
  int size;
  int power;  // largest power of two that is not above size: positions after the pairs formed
  int pairs;  // size - power

  explicit Fold(int ranks) : size(ranks), power(1) {
    while (power * 2 <= ranks) power *= 2;
    pairs = size - power;
  }
  // Position of a rank, or -1 for the second of a pair, whose part the first takes over.
  int position(int rank) const {
    if (rank >= 2 * pairs) return rank - pairs;
    return rank % 2 == 0 ? rank / 2 : -1;
  }
  // The rank that acts for a position.
  int rank(int position) const { return position < pairs ? 2 * position : position + pairs; }
  bool is_first_of_pair(int rank) const { return rank < 2 * pairs && rank % 2 == 0; }
  bool is_second_of_pair(int rank) const { return rank < 2 * pairs && rank % 2 == 1; }
};

}  // namespace headway::collectives
