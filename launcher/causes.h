// Causes: what two looks at the ranks of a job prove about it: who moved, who stands, who can never
// go on. Thread: the launcher's only one. Owns nothing. Invariant: nothing is said to be a cause
// that is not proven by what was seen; where that is too little, no cause is named.
#pragma once
#include <string>
#include <vector>

#include "wait_graph.h"
#include "whereabouts.h"

namespace headway::launcher {

// How a rank has got on between the looks.
enum class Gait : unsigned char {
  unknown,
  before,  // MPI_Init
  left,    // MPI, and its process goes on
  ended,
  stopped,   // by SIGSTOP or a debugger
  moves,     // waits ended, or messages came or left
  computes,  // outside MPI
  sleeps,    // outside MPI, without processor time
  polls,     // asked again and again for what has not come
  stands,    // waits, and has looked at everything in vain
  unsure     // waits, but had no time to look, or may have other threads
};

// Ranks at one place that wait for the same ones.
struct WaitGroup {
  std::string place;  // "in MPI_Recv (source 1, tag 3)"
  std::vector<int> ranks;
  std::vector<int> waits_for;  // in the job; empty: for nobody, or nobody knows
  bool any = false;            // one of them is enough
  bool dead = false;           // they can never go on
  Site site;                   // of the call; not in `place`
};

class Judgement {
 public:
  // Both have all ranks in the same order. `after` was taken `seconds` later.
  Judgement(const std::vector<Seen>& before, std::vector<Seen> after, double seconds);

  // "rank 0 is in MPI_Send (destination 1, tag 3), rank 1 ...", or "" if nothing is known.
  std::string picture() const;
  // What the looks prove, to stand behind the picture: "; nothing has changed for 0.5 s. Likely
  // cause: ... Likely remedy: ...". At least ".".
  std::string verdict() const;
  // Who waits for whom.
  std::vector<WaitGroup> graph() const;
  // Ranks that can never go on: proven, whatever the others do.
  std::vector<int> dead() const;
  // Some rank waits, and it is not shown that the job gets on.
  bool is_stuck() const;
  // Another look, later, may tell more.
  bool is_unsure() const { return (has(Gait::unsure) && !has(Gait::moves)) || is_on_its_way(); }

 private:
  bool has(Gait gait) const;
  bool is_on_its_way() const;
  size_t size() const { return ranks_.size(); }
  const Spot& spot(size_t i) const { return ranks_[i].spot; }
  Gait gait_of(const Spot& before, const Spot& after) const;
  bool is_in_flight() const;
  bool is_shown_to_wait(const Spot& before, const Spot& after) const;
  void find_awaited(size_t i, WaitGroup& group) const;
  void find_dead();
  void add_needs(size_t i, WaitGraph& graph) const;
  void put_unmatched_first();
  std::vector<int> ranks_with(Gait gait) const;
  std::string whom(size_t i) const;
  std::string describe(size_t i) const;
  const SeenComm* comm_of(size_t i, uint64_t context) const;

  std::string cause() const;
  std::vector<int> members_of_circle() const;
  std::string circle() const;
  std::string circle_of(const std::vector<int>& members) const;
  std::string pair_of(size_t a, size_t b, bool& explained) const;
  std::string collectives() const;
  std::string collective_pair(size_t i, size_t j) const;
  std::string laggard(size_t i, size_t j, const SeenComm& here, uint32_t there) const;
  std::string gone_astray(size_t i, size_t j, const SeenComm& here, uint32_t there) const;
  std::string done() const;
  std::string left_over() const;
  std::string blockers() const;

  std::vector<Seen> ranks_;
  std::vector<uint64_t> asked_;  // polls in vain between the looks
  std::vector<Gait> gaits_;
  std::vector<char> dead_;           // can never go on
  std::vector<std::string> places_;  // in words, without the site
  bool in_flight_ = false;
  double seconds_;
};

// True if a second look may find that this job hangs.
bool may_hang(const std::vector<Seen>& ranks);

}  // namespace headway::launcher
