// The looks of mpiexec once a second, and what whoever asks in between is told.
#include "hang_watch.h"

#include <gtest/gtest.h>

#include "base/whereabouts.h"

namespace headway::launcher {
namespace {

// Two ranks that receive from each other; each looks in vain once in `pause_ms`.
class Ring {
 public:
  HangWatch::Look at(int64_t now_ms) const {
    return [=, this](bool) {
      std::vector<Seen> ranks;
      for (int rank = 0; rank < 2; ++rank) {
        Seen seen{rank, 100 + rank, {}};
        Spot& spot = seen.spot;
        spot.kind = Spot::Kind::in_call;
        spot.state = 'R';
        spot.signs = {1, 2};
        spot.call = "MPI_Recv";
        spot.peer = spot.awaited = 1 - rank;
        spot.tag = 3;
        spot.context = 1;
        spot.waits = now_ms < since_ms ? 1 : 2;
        spot.comms = {{1, 3, "MPI_COMM_WORLD", {0, 1}}};
        spot.vain = uint64_t(now_ms / pause_ms);
        spot.asleep = asleep;
        ranks.push_back(seen);
      }
      return ranks;
    };
  }
  int64_t since_ms = 0, pause_ms = 1;
  bool asleep = false;
};

bool hangs(const HangWatch& watch, const Ring& ring, int64_t now_ms) {
  return watch.as_json(now_ms, ring.at(now_ms)).find("\"hangs\":true") != std::string::npos;
}

TEST(HangWatch, WhoeverAsksRightAfterALookIsToldTheSame) {
  HangWatch watch;
  const Ring ring;
  watch.begin(0);
  EXPECT_FALSE(hangs(watch, ring, 500)) << "no look was there before";
  watch.look(1000, ring.at(1000));
  EXPECT_TRUE(hangs(watch, ring, 1900));
  EXPECT_NE(watch.look(2000, ring.at(2000)), "");
  for (const int64_t after : {0, 1, 2, 100, 499, 500, 999}) {
    EXPECT_TRUE(hangs(watch, ring, 2000 + after)) << after << " ms after a look";
  }
  EXPECT_EQ(watch.look(3000, ring.at(3000)), "") << "told once";
}

// A rank that sleeps may have been sent its message since, by another that was asleep when it was
// looked at in its turn: one look at each of them is none at the job.
TEST(HangWatch, OneLookProvesNothingOfRanksThatSleep) {
  HangWatch watch;
  Ring ring;
  ring.asleep = true;
  watch.begin(0);
  EXPECT_FALSE(hangs(watch, ring, 500));
  watch.look(1000, ring.at(1000));
  EXPECT_TRUE(hangs(watch, ring, 1001));
}

TEST(HangWatch, RanksWithHardlyACoreAreToldTheSame) {
  HangWatch watch;
  Ring ring;
  ring.pause_ms = 300;  // some looks a second
  watch.begin(0);
  watch.look(1000, ring.at(1000));
  EXPECT_NE(watch.look(2000, ring.at(2000)), "");
  for (const int64_t after : {0, 300, 600, 900}) {
    EXPECT_TRUE(hangs(watch, ring, 2000 + after)) << after << " ms after a look";
  }
}

TEST(HangWatch, WhoHasGoneOnSinceTheEarlierLookIsNotAccused) {
  HangWatch watch;
  Ring ring;
  ring.since_ms = 1500;  // another wait began then
  ring.pause_ms = 300;
  watch.begin(0);
  watch.look(1000, ring.at(1000));
  EXPECT_EQ(watch.look(2000, ring.at(2000)), "");
  EXPECT_FALSE(hangs(watch, ring, 2010));
  EXPECT_TRUE(hangs(watch, ring, 2950));
}

}  // namespace
}  // namespace headway::launcher
