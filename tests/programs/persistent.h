// One persistent collective of any kind, with its buffers, what a round puts into them and what it
// must find there: for the program that runs many of them. Thread: one. Owner: each program.
// Invariant: what a rank contributes follows from operation, round, rank and index alone, so every
// rank knows what all others send.
#pragma once
#include <algorithm>
#include <vector>

#include "check.h"

namespace persistent {

inline constexpr int kinds = 17;

struct Place {
  MPI_Comm comm;
  int rank, size;
};
inline Place place_of(MPI_Comm comm) {
  Place place{comm, -1, 0};
  MPI(MPI_Comm_rank(comm, &place.rank));
  MPI(MPI_Comm_size(comm, &place.size));
  return place;
}

// What `rank` contributes at `index` in a round of an operation.
inline int value(int id, int round, int rank, size_t index) {
  return static_cast<int>(check::key_of(check::key_of(id, round), rank, index) & 0xffffff);
}

// One persistent collective: its buffers, and what a round puts into them and expects.
class Collective {
 public:
  Collective(const Place& place, int kind, int id, int count, bool large, bool in_place)
      : p_(place), kind_(kind), id_(id), n_(count), large_(large), in_place_(in_place) {
    root_ = id % p_.size;
    make();
  }
  ~Collective() { MPI(MPI_Request_free(&request)); }
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

  void load(int round) {
    round_ = round;
    std::fill(in_.begin(), in_.end(), -7);
    for (size_t i = 0; i < out_.size(); ++i) out_[i] = mine(i);
    if (placed_) std::copy(out_.begin(), out_.end(), in_.begin() + static_cast<long>(placed_at_));
  }
  void verify() const;

  MPI_Request request = MPI_REQUEST_NULL;

 private:
  void make();
  int mine(size_t i) const { return value(id_, round_, p_.rank, i); }
  int sum(int first, int last, size_t i) const {
    int total = 0;
    for (int r = first; r <= last; ++r) total += value(id_, round_, r, i);
    return total;
  }
  void expect(size_t at, int wanted) const {
    if (in_[at] == wanted) return;
    check::fail(__FILE__, __LINE__,
                "kind %d, round %d, %d elements: element %zu is %d, expected %d", kind_, round_, n_,
                at, in_[at], wanted);
  }
  // Rank r's block has n_ elements more or less, in reverse order with gaps: for the v kinds.
  void uneven() {
    int at = 0;
    for (int r = p_.size - 1; r >= 0; --r) {
      counts_.insert(counts_.begin(), n_ + r % 3);
      places_.insert(places_.begin(), at);
      at += n_ + r % 3 + 2;
    }
    total_ = static_cast<size_t>(at);
    large_counts_.assign(counts_.begin(), counts_.end());
    large_places_.assign(places_.begin(), places_.end());
  }
  void in_place_at(size_t at) {
    placed_ = true;
    placed_at_ = at;
  }

  Place p_;
  int kind_, id_, n_, root_, round_ = 0;
  bool large_, in_place_, placed_ = false;
  size_t placed_at_ = 0, total_ = 0;
  std::vector<int> out_, in_, counts_, places_;
  std::vector<MPI_Count> large_counts_;
  std::vector<MPI_Aint> large_places_;
  std::vector<MPI_Datatype> types_;
};

#define INIT(Name, ...)                                               \
  (large_ ? MPI_##Name##_init_c(__VA_ARGS__, MPI_INFO_NULL, &request) \
          : MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, &request))
// The kinds with lists of counts, whose element type differs between the two.
#define INIT_LISTS(small, big) (large_ ? (big) : (small))

inline void Collective::make() {
  const size_t n = static_cast<size_t>(n_), all = n * static_cast<size_t>(p_.size);
  const bool is_root = p_.rank == root_;
  const MPI_Datatype t = MPI_INT;
  const MPI_Comm c = p_.comm;
  uneven();
  const auto mine = static_cast<size_t>(counts_[p_.rank]);
  const auto my_place = static_cast<size_t>(places_[p_.rank]);
  const auto rank = static_cast<size_t>(p_.rank);
  const auto sized = [&](size_t out, size_t in) {
    out_.resize(out);
    in_.resize(in);
    if (in_.empty()) in_.reserve(1);
  };
  const auto from = [&](bool here, size_t at) -> const void* {
    if (!in_place_ || !here) return out_.data();
    in_place_at(at);
    return MPI_IN_PLACE;
  };
  switch (kind_) {
    case 0: MPI(MPI_Barrier_init(c, MPI_INFO_NULL, &request)); break;
    case 1:
      sized(is_root ? n : 0, n);
      if (is_root) in_place_at(0);
      MPI(INIT(Bcast, in_.data(), n_, t, root_, c));
      break;
    case 2: {
      sized(n, is_root ? all : 0);
      const void* s = from(is_root, n * rank);
      MPI(INIT(Gather, s, n_, t, in_.data(), n_, t, root_, c));
      break;
    }
    case 3: {
      sized(mine, is_root ? total_ : 0);
      const void* s = from(is_root, my_place);
      MPI(INIT_LISTS(
          MPI_Gatherv_init(s, counts_[p_.rank], t, in_.data(), counts_.data(), places_.data(), t,
                           root_, c, MPI_INFO_NULL, &request),
          MPI_Gatherv_init_c(s, counts_[p_.rank], t, in_.data(), large_counts_.data(),
                             large_places_.data(), t, root_, c, MPI_INFO_NULL, &request)));
      break;
    }
    case 4:
      sized(is_root ? all : 0, n);
      MPI(INIT(Scatter, out_.data(), n_, t, in_.data(), n_, t, root_, c));
      break;
    case 5:
      sized(is_root ? total_ : 0, mine);
      MPI(INIT_LISTS(
          MPI_Scatterv_init(out_.data(), counts_.data(), places_.data(), t, in_.data(),
                            counts_[p_.rank], t, root_, c, MPI_INFO_NULL, &request),
          MPI_Scatterv_init_c(out_.data(), large_counts_.data(), large_places_.data(), t,
                              in_.data(), counts_[p_.rank], t, root_, c, MPI_INFO_NULL, &request)));
      break;
    case 6: {
      sized(n, all);
      const void* s = from(true, n * rank);
      MPI(INIT(Allgather, s, n_, t, in_.data(), n_, t, c));
      break;
    }
    case 7: {
      sized(mine, total_);
      const void* s = from(true, my_place);
      MPI(INIT_LISTS(MPI_Allgatherv_init(s, counts_[p_.rank], t, in_.data(), counts_.data(),
                                         places_.data(), t, c, MPI_INFO_NULL, &request),
                     MPI_Allgatherv_init_c(s, counts_[p_.rank], t, in_.data(), large_counts_.data(),
                                           large_places_.data(), t, c, MPI_INFO_NULL, &request)));
      break;
    }
    case 8: {
      sized(all, all);
      const void* s = from(true, 0);
      MPI(INIT(Alltoall, s, n_, t, in_.data(), n_, t, c));
      break;
    }
    case 9:
    case 10: {
      // Every pair exchanges n_ elements; blocks stand in reverse order.
      counts_.assign(static_cast<size_t>(p_.size), n_);
      for (int r = 0; r < p_.size; ++r) places_[r] = n_ * (p_.size - 1 - r);
      if (kind_ == 10) {
        for (int& place : places_) place *= static_cast<int>(sizeof(int));
      }
      large_counts_.assign(counts_.begin(), counts_.end());
      large_places_.assign(places_.begin(), places_.end());
      types_.assign(static_cast<size_t>(p_.size), t);
      sized(all, all);
      const void* s = from(true, 0);
      if (kind_ == 9) {
        MPI(INIT_LISTS(
            MPI_Alltoallv_init(s, counts_.data(), places_.data(), t, in_.data(), counts_.data(),
                               places_.data(), t, c, MPI_INFO_NULL, &request),
            MPI_Alltoallv_init_c(s, large_counts_.data(), large_places_.data(), t, in_.data(),
                                 large_counts_.data(), large_places_.data(), t, c, MPI_INFO_NULL,
                                 &request)));
      } else {
        MPI(INIT_LISTS(
            MPI_Alltoallw_init(s, counts_.data(), places_.data(), types_.data(), in_.data(),
                               counts_.data(), places_.data(), types_.data(), c, MPI_INFO_NULL,
                               &request),
            MPI_Alltoallw_init_c(s, large_counts_.data(), large_places_.data(), types_.data(),
                                 in_.data(), large_counts_.data(), large_places_.data(),
                                 types_.data(), c, MPI_INFO_NULL, &request)));
      }
      break;
    }
    case 11: {
      sized(n, is_root ? n : 0);
      const void* s = from(is_root, 0);
      MPI(INIT(Reduce, s, in_.data(), n_, t, MPI_SUM, root_, c));
      break;
    }
    case 12: {
      sized(n, n);
      const void* s = from(true, 0);
      MPI(INIT(Allreduce, s, in_.data(), n_, t, MPI_SUM, c));
      break;
    }
    case 13: {
      size_t sum = 0;
      for (int count : counts_) sum += static_cast<size_t>(count);
      sized(sum, in_place_ ? sum : mine);
      const void* s = from(true, 0);
      MPI(INIT_LISTS(MPI_Reduce_scatter_init(s, in_.data(), counts_.data(), t, MPI_SUM, c,
                                             MPI_INFO_NULL, &request),
                     MPI_Reduce_scatter_init_c(s, in_.data(), large_counts_.data(), t, MPI_SUM, c,
                                               MPI_INFO_NULL, &request)));
      break;
    }
    case 14: {
      sized(all, in_place_ ? all : n);
      const void* s = from(true, 0);
      MPI(INIT(Reduce_scatter_block, s, in_.data(), n_, t, MPI_SUM, c));
      break;
    }
    case 15: {
      sized(n, n);
      const void* s = from(true, 0);
      MPI(INIT(Scan, s, in_.data(), n_, t, MPI_SUM, c));
      break;
    }
    default: {
      sized(n, n);
      const void* s = from(true, 0);
      MPI(INIT(Exscan, s, in_.data(), n_, t, MPI_SUM, c));
      break;
    }
  }
}

#undef INIT
#undef INIT_LISTS

inline void Collective::verify() const {
  const size_t n = static_cast<size_t>(n_), rank = static_cast<size_t>(p_.rank);
  const auto ranks = static_cast<size_t>(p_.size);
  const bool is_root = p_.rank == root_;
  const auto from = [&](size_t who, size_t i) {
    return value(id_, round_, static_cast<int>(who), i);
  };
  switch (kind_) {
    case 0: return;
    case 1:
      for (size_t i = 0; i < n; ++i) expect(i, from(static_cast<size_t>(root_), i));
      return;
    case 2:
    case 6:
      for (size_t i = 0; (is_root || kind_ == 6) && i < n * ranks; ++i)
        expect(i, from(i / n, i % n));
      return;
    case 3:
    case 7:
      for (size_t r = 0; (is_root || kind_ == 7) && r < ranks; ++r) {
        const auto at = static_cast<size_t>(places_[r]), count = static_cast<size_t>(counts_[r]);
        for (size_t i = 0; i < count; ++i) expect(at + i, from(r, i));
        expect(at + count, -7);  // the gap
      }
      return;
    case 4:
      for (size_t i = 0; i < n; ++i) expect(i, from(static_cast<size_t>(root_), n * rank + i));
      return;
    case 5:
      for (size_t i = 0; i < in_.size(); ++i) {
        expect(i, from(static_cast<size_t>(root_), static_cast<size_t>(places_[rank]) + i));
      }
      return;
    case 8:
      for (size_t i = 0; i < n * ranks; ++i) expect(i, from(i / n, n * rank + i % n));
      return;
    case 9:
    case 10:
      for (size_t r = 0; r < ranks; ++r) {
        for (size_t i = 0; i < n; ++i) {
          expect(n * (ranks - 1 - r) + i, from(r, n * (ranks - 1 - rank) + i));
        }
      }
      return;
    case 11:
    case 12:
      for (size_t i = 0; i < in_.size(); ++i) expect(i, sum(0, p_.size - 1, i));
      return;
    case 13:
    case 14: {
      size_t before = 0;
      for (size_t r = 0; r < rank; ++r) {
        before += kind_ == 14 ? n : static_cast<size_t>(counts_[r]);
      }
      const size_t mine = kind_ == 14 ? n : static_cast<size_t>(counts_[rank]);
      for (size_t i = 0; i < mine; ++i) expect(i, sum(0, p_.size - 1, before + i));
      return;
    }
    case 15:
      for (size_t i = 0; i < n; ++i) expect(i, sum(0, p_.rank, i));
      return;
    default:
      for (size_t i = 0; p_.rank > 0 && i < n; ++i) expect(i, sum(0, p_.rank - 1, i));
      return;
  }
}

}  // namespace persistent
