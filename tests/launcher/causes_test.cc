// What two looks at the ranks of a job prove: who stands, and why; and what they do not prove.
#include "causes.h"

#include <gtest/gtest.h>

#include <utility>

#include "base/whereabouts.h"

namespace headway::launcher {
namespace {

using Kind = Spot::Kind;
using Ranks = std::vector<Seen>;

constexpr uint64_t world = 1;

Seen at(int rank, Kind kind, char state = 'S') {
  Seen seen{rank, 100 + rank, {}};
  seen.spot.kind = kind;
  seen.spot.state = state;
  seen.spot.signs = {1, 2};
  seen.spot.comms = {{world, 3, "MPI_COMM_WORLD", {0, 1, 2, 3}}};
  return seen;
}
// Waits in a call, for `awaited`.
Seen in(int rank, const char* call, int peer = base::nobody, int tag = base::nobody) {
  Seen seen = at(rank, Kind::in_call);
  seen.spot.call = call;
  seen.spot.peer = peer;
  seen.spot.tag = tag;
  seen.spot.context = world;
  seen.spot.awaited = peer == base::nobody ? -1 : peer;
  return seen;
}

// The same ranks a moment later: those that wait have looked in vain.
Ranks later(Ranks ranks) {
  for (Seen& seen : ranks) seen.spot.vain += 100;
  return ranks;
}
Judgement standing(const Ranks& ranks) { return {ranks, later(ranks), 0.5}; }
std::string verdict_of(const Ranks& ranks) { return standing(ranks).verdict(); }

bool holds(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

TEST(Causes, EqualPlacesAreTold) {
  EXPECT_EQ(standing({}).picture(), "");
  EXPECT_EQ(standing({at(0, Kind::unknown), at(1, Kind::before)}).picture(), "");
  EXPECT_EQ(standing({in(0, "MPI_Barrier"), in(1, "MPI_Barrier"), in(2, "MPI_Barrier"),
                      at(3, Kind::computing), in(4, "MPI_Barrier")})
                .picture(),
            "ranks 0-2, 4 are in MPI_Barrier, rank 3 is outside MPI");
  EXPECT_EQ(standing({in(0, "MPI_Recv", -1, -31), in(1, "MPI_Wait", 2, 7)}).picture(),
            "rank 0 is in MPI_Recv (source any, tag any), rank 1 is in MPI_Wait (peer 2, tag 7)");
  Ranks many;
  for (int rank = 0; rank < 20; ++rank) many.push_back(in(rank, "MPI_Send", rank + 1, 0));
  EXPECT_TRUE(standing(many).picture().ends_with(", and 12 other ranks elsewhere"));
}

TEST(Causes, CirclesComeFirst) {
  EXPECT_TRUE(holds(verdict_of({in(0, "MPI_Send", 1, 3), in(1, "MPI_Send_c", 0, 3)}),
                    "each of them sends before it receives"));
  EXPECT_TRUE(holds(verdict_of({in(0, "MPI_Recv", 1, 3), in(1, "MPI_Probe", 0, 3)}),
                    "a message that nobody has sent"));
  EXPECT_TRUE(holds(verdict_of({in(0, "MPI_Recv", 1, 3), in(1, "MPI_Recv", 2, 3),
                                in(2, "MPI_Recv", 0, 3), in(3, "MPI_Finalize")}),
                    "ranks 0-2 wait for one another (0 for 1, 1 for 2 and 2 for 0)"));
  EXPECT_TRUE(holds(verdict_of({in(0, "MPI_Send", 1, 3), in(1, "MPI_Recv", 0, 4)}),
                    "with tag 3, and rank 1 receives from it with tag 4"));
  // They hang, and we do not know why: a message on its way is not seen.
  EXPECT_FALSE(holds(verdict_of({in(0, "MPI_Send", 1, 3), in(1, "MPI_Recv", 0, 3)}), "cause"));
}

// Roots are passed in another way on each side, and who is missing is on one of them.
TEST(Causes, SidesOfInterCommunicatorsAreTold) {
  const auto on = [](Seen seen, std::vector<int> members, size_t own, uint32_t collectives) {
    seen.spot.context = 5;
    seen.spot.comms = {{5, collectives, "", std::move(members), own}};
    return seen;
  };
  const Seen root = on(in(0, "MPI_Bcast", base::nobody, -4), {0, 1, 2, 3}, 2, 4);
  const Seen beside = on(in(1, "MPI_Bcast", base::nobody, -3), {0, 1, 2, 3}, 2, 4);
  const Seen there = on(in(2, "MPI_Bcast", base::nobody, 0), {2, 3, 0, 1}, 2, 4);
  const Seen also = on(in(3, "MPI_Bcast", base::nobody, 0), {2, 3, 0, 1}, 2, 4);
  EXPECT_FALSE(holds(verdict_of({root, beside, there, also}), "with root"));
  EXPECT_TRUE(holds(standing({root, beside, there, also}).picture(), "MPI_Bcast (root MPI_ROOT)"));
  const Seen late = on(in(3, "MPI_Recv", 0, 7), {2, 3, 0, 1}, 2, 3);
  const std::string text = verdict_of({root, beside, there, late});
  EXPECT_TRUE(holds(text, "the inter-communicator of ranks 0 and 1 with ranks 2 and 3"));
  EXPECT_TRUE(holds(text, "rank 3, on the other side, has not come to"));
}

// Messages of an inter-communicator come from the other side: that a rank of its own side computes
// helps nobody who waits for any of them.
TEST(Causes, OfAnInterCommunicatorOnlyTheOtherSideCanSend) {
  const auto on = [](Seen seen, std::vector<int> members) {
    seen.spot.context = 5;
    seen.spot.comms = {{5, 0, "", std::move(members), 2}};
    return seen;
  };
  const Seen here = on(in(0, "MPI_Recv", -1, 7), {0, 1, 2, 3});
  const Seen beside = on(at(1, Kind::computing, 'R'), {0, 1, 2, 3});
  const Seen there = on(in(2, "MPI_Recv", 0, 7), {2, 3, 0, 1});
  const Seen also = on(in(3, "MPI_Recv", 0, 8), {2, 3, 0, 1});
  EXPECT_EQ(standing({here, beside, there, also}).dead(), (std::vector<int>{0, 2, 3}));
  const Seen free = on(at(3, Kind::computing, 'R'), {2, 3, 0, 1});
  EXPECT_TRUE(standing({here, beside, there, free}).dead().empty());
  // Both sides wait for any of the other one, and a rank of one side is free: that side can go on.
  const Seen any = on(in(2, "MPI_Recv", -1, 7), {2, 3, 0, 1});
  EXPECT_EQ(standing({here, on(in(1, "MPI_Recv", 0, 9), {0, 1, 2, 3}), any, free}).dead(),
            (std::vector<int>{}));
}

TEST(Causes, CollectivesAreToldByTheirNumbers) {
  EXPECT_TRUE(
      holds(verdict_of({in(0, "MPI_Bcast"), in(1, "MPI_Reduce")}), "different collectives"));
  EXPECT_TRUE(
      holds(verdict_of({in(0, "MPI_Bcast", base::nobody, 0), in(1, "MPI_Bcast", base::nobody, 1)}),
            "with root 0, and rank 1 with root 1"));
  EXPECT_FALSE(holds(verdict_of({in(0, "MPI_Allreduce"), in(1, "MPI_Allreduce")}), "cause"));
  Ranks ranks = {in(0, "MPI_Bcast"), in(1, "MPI_Finalize")};
  ranks[1].spot.comms[0].collectives = 2;
  EXPECT_TRUE(holds(verdict_of(ranks), "rank 1 is done"));
  ranks[1] = in(1, "MPI_Recv", 0, 1);
  ranks[1].spot.comms[0].collectives = 2;
  EXPECT_TRUE(holds(verdict_of(ranks), "still waits in MPI_Recv (source 0, tag 1)"));
}

TEST(Causes, WhoHasGoneOnFromAnotherCollectiveIsTold) {
  Ranks ranks = {in(0, "MPI_Allreduce"), in(1, "MPI_Allreduce")};
  for (Seen& seen : ranks) seen.spot.comms[0].members = {0, 1};
  ranks[0].spot.comms[0].collectives = 4;
  EXPECT_TRUE(
      holds(verdict_of(ranks),
            "rank 1 is in MPI_Allreduce, its collective number 3 on MPI_COMM_WORLD, and rank 0 "
            "has gone on to number 4, MPI_Allreduce, though nobody is missing"));
  // Of more ranks, one that has not begun it, or that may go on, is what the others wait for.
  ranks.push_back(in(2, "MPI_Allreduce"));
  for (Seen& seen : ranks) seen.spot.comms[0].members = {0, 1, 2};
  EXPECT_TRUE(holds(verdict_of(ranks), "though nobody is missing"));
  ranks[2].spot.comms[0].collectives = 2;
  EXPECT_FALSE(holds(verdict_of(ranks), "rank 1 is in MPI_Allreduce, its"));
  ranks[2] = at(2, Kind::computing);
  ranks[2].spot.comms[0].members = {0, 1, 2};
  EXPECT_FALSE(holds(verdict_of(ranks), "cause"));
}

TEST(Causes, WhoIsWaitedForIsNamedAndNotAccused) {
  Ranks ranks = {in(0, "MPI_Bcast"), at(1, Kind::computing, 'R')};
  Ranks after = later(ranks);
  after[1].spot.cpu_ticks = 50;
  EXPECT_TRUE(holds(Judgement(ranks, after, 1).verdict(), "rank 1, which computes outside MPI"));
  EXPECT_TRUE(holds(verdict_of(ranks), "rank 1, which computes outside MPI"));  // without a core
  ranks[1].spot.state = 'S';
  EXPECT_TRUE(holds(verdict_of(ranks), "rank 1, which sleeps outside MPI"));
  after = later(ranks);
  after[1].spot.polls = 7;
  after[1].spot.poll = "MPI_Testall";
  after[1].spot.poll_peer = base::nobody;
  EXPECT_TRUE(holds(Judgement(ranks, after, 1).verdict(), "has called MPI_Testall 7 times"));
  for (const Judgement& judgement : {standing(ranks), Judgement(ranks, after, 1)}) {
    EXPECT_FALSE(holds(judgement.verdict(), "cause"));
  }
  ranks[1].spot.state = 'T';
  EXPECT_TRUE(holds(verdict_of(ranks), "rank 1 is stopped, by SIGSTOP"));
  EXPECT_TRUE(standing(ranks).is_stuck());
}

// The launcher's own barrier of MPI_Init.
TEST(Causes, WhoIsLateAtTheStartIsNamed) {
  Ranks ranks = {in(0, "MPI_Init"), at(1, Kind::before)};
  ranks[0].spot.barrier = 1;
  EXPECT_TRUE(holds(verdict_of(ranks), "may be waiting for rank 1 in MPI_Init"));
  EXPECT_FALSE(standing(ranks).is_stuck());
  Ranks after = later(ranks);
  after[0].spot.barrier = 2;
  EXPECT_FALSE(holds(Judgement(ranks, after, 1).verdict(), "nothing has changed"));
}

// Each of these changes shows that two ranks which seem to wait for each other get on, or leaves it
// open.
TEST(Causes, WhoMovesIsNotAccused) {
  const Ranks before = {in(0, "MPI_Recv", 1, 3), in(1, "MPI_Recv", 0, 3)};
  EXPECT_TRUE(standing(before).is_stuck());
  const auto quiet = [&](auto&& change, const char* what) {
    Ranks after = later(before);
    change(after[1].spot);
    const Judgement judgement(before, after, 0.5);
    EXPECT_FALSE(judgement.is_stuck()) << what;
    EXPECT_FALSE(holds(judgement.verdict(), "nothing has changed")) << what;
    EXPECT_FALSE(holds(judgement.verdict(), "cause")) << what;
  };
  quiet([](Spot& spot) { spot.waits = 1; }, "a wait ended");
  quiet([](Spot& spot) { spot.moves = 1; }, "something came while it waited");
  quiet([](Spot& spot) { spot.signs[1] = 3; }, "a message moved");
  quiet([](Spot& spot) { spot.tag = 4; }, "it is in another call");
  quiet([](Spot& spot) { spot.unsteady = true; }, "it changed while it was read");
  quiet([](Spot& spot) { spot.vain = 2; }, "it had no time to look");
  quiet([](Spot& spot) { spot.many_threads = true; }, "another thread may move");
  quiet([](Spot& spot) { spot.abroad = true; }, "another job may move it");
  quiet([](Spot& spot) { spot.signs.clear(); }, "its counters cannot be read");
  quiet([](Spot& spot) { spot.frames_out = 1; }, "a frame is on its way");
  quiet([](Spot& spot) { spot.connecting = true; }, "a frame may wait for its connection");
}

// A session may bring back who has left MPI, and nothing brings back a process that has ended.
TEST(Causes, WhoHasLeftMayReturnAndWhoHasEndedDoesNot) {
  Ranks ranks = {in(0, "MPI_Recv", 1, 3), at(1, Kind::left)};
  EXPECT_TRUE(holds(verdict_of(ranks), "may be waiting for rank 1, which has left MPI"));
  EXPECT_FALSE(holds(verdict_of(ranks), "cause"));
  ranks[1] = at(1, Kind::ended);
  EXPECT_TRUE(holds(verdict_of(ranks), "Likely cause: rank 1 is done (its process has ended)"));
}

// Outside MPI, past a receive from `awaited` that was released before its match.
Seen past(int rank, int awaited, char state = 'R') {
  Seen seen = at(rank, Kind::computing, state);
  seen.spot.unmatched = {5, "MPI_Recv", awaited, 3, awaited, world, {}};
  seen.spot.one_thread = seen.spot.listens = true;
  return seen;
}

// It computes, or is held at a page: nothing that others need can leave it.
TEST(Causes, WhoIsPastAReceiveWithoutMessageWaitsForIt) {
  const Ranks both = {past(0, 1), past(1, 0, 'S')};
  EXPECT_EQ(standing(both).dead(), (std::vector<int>{0, 1}));
  EXPECT_EQ(standing(both).picture(),
            "rank 0 is past MPI_Recv (source 1, tag 3, released early), rank 1 is past MPI_Recv "
            "(source 0, tag 3, released early)");
  EXPECT_TRUE(holds(verdict_of(both), "ranks 0 and 1 wait for one another (0 for 1 and 1 for 0)"));
  // Beside one that waits in MPI, and one that is done.
  EXPECT_EQ(standing({past(0, 1), in(1, "MPI_Ssend", 0, 4)}).dead().size(), 2u);
  EXPECT_TRUE(holds(verdict_of({past(0, 1), in(1, "MPI_Ssend", 0, 4)}),
                    "with tag 4, and rank 0 receives from it with tag 3"));
  Seen last = in(0, "MPI_Finalize");
  last.spot.unmatched = past(0, 1).spot.unmatched;
  last.spot.one_thread = true;
  EXPECT_TRUE(holds(verdict_of({last, in(1, "MPI_Recv", 0, 1)}), "wait for one another"));
  EXPECT_TRUE(holds(verdict_of({last, in(1, "MPI_Finalize")}), "rank 1 is done"));
  EXPECT_TRUE(may_hang({at(0, Kind::computing), past(1, 0)}));
}

TEST(Causes, WhoIsPastAReceiveMayGoOnWhereItsMessageMayCome) {
  EXPECT_TRUE(standing({past(0, 1), at(1, Kind::computing, 'R')}).dead().empty());
  EXPECT_TRUE(standing({past(0, 1), past(1, 2), at(2, Kind::left)}).dead().empty());
  const auto quiet = [](auto&& change, const char* what) {
    Ranks before = {past(0, 1), in(1, "MPI_Recv", 0, 3)}, after = later(before);
    ASSERT_FALSE(Judgement(before, after, 1).dead().empty());
    before[0].spot.vain = after[0].spot.vain = 0;
    change(before[0].spot, after[0].spot);
    EXPECT_TRUE(Judgement(before, after, 1).dead().empty()) << what;
  };
  quiet([](Spot&, Spot& now) { now.listens = false; }, "what came may not have been looked at");
  quiet([](Spot&, Spot& now) { now.one_thread = false; }, "another thread may do anything");
  quiet([](Spot&, Spot& now) { now.unmatched.serial = 6; }, "that is another receive");
  quiet([](Spot&, Spot& now) { now.unmatched = {}; }, "its message has come");
  quiet([](Spot& then, Spot&) { then.unmatched = {}; }, "it has not waited long");
  quiet([](Spot&, Spot& now) { now.polls = 1; }, "it asks for something");
  quiet([](Spot&, Spot& now) { now.signs[0] = 2; }, "a message moved");
  quiet([](Spot&, Spot& now) { now.frames_in = 1; }, "a frame is on its way");
  // It waits in MPI for one that goes on, and for the message of one that never will.
  Seen both = in(0, "MPI_Wait", 2, 3);
  both.spot.unmatched = past(0, 1).spot.unmatched;
  both.spot.one_thread = true;
  const Ranks ranks = {both, in(1, "MPI_Recv", 0, 3), at(2, Kind::computing, 'R')};
  EXPECT_EQ(standing(ranks).dead(), (std::vector<int>{0, 1}));
  EXPECT_TRUE(holds(verdict_of(ranks), "ranks 0 and 1 wait for one another"));
}

// Who waits for one of some ranks, or for all of them, does not wait for the rest of the job.
TEST(Causes, OthersThanThoseOfTheCommunicatorDoNotHelp) {
  Ranks ranks = {in(0, "MPI_Recv", -1, 3), in(1, "MPI_Barrier"), at(2, Kind::computing, 'R')};
  EXPECT_TRUE(standing(ranks).dead().empty());
  for (Seen& seen : ranks) seen.spot.comms[0].members = {0, 1};
  EXPECT_EQ(standing(ranks).dead(), (std::vector<int>{0, 1}));
}

TEST(Causes, LinesStandBehindTheCalls) {
  Ranks ranks = {in(0, "MPI_Recv", 1, 3), in(1, "MPI_Recv", 0, 3), in(2, "MPI_Recv", 0, 3)};
  for (Seen& seen : ranks) seen.spot.site = {0, "/x/ring", 0x14, "ring.c:14"};
  ranks[2].spot.site.line = "";
  EXPECT_EQ(standing(ranks).picture(),
            "rank 0 is in MPI_Recv (source 1, tag 3) at ring.c:14, rank 1 is in MPI_Recv (source "
            "0, tag 3) at ring.c:14, rank 2 is in MPI_Recv (source 0, tag 3)");
  ranks[2].spot.site = {0, "/x/ring", 0x18, ""};
  const std::vector<WaitGroup> groups = standing(ranks).graph();
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[2].place, "in MPI_Recv (source 0, tag 3)");
  EXPECT_EQ(groups[2].site.offset, 0x18u);
}

TEST(Causes, OfManyPlacesThoseOfTheCircleAreNamed) {
  Ranks ranks;
  for (int rank = 0; rank < 40; ++rank) ranks.push_back(in(rank, "MPI_Recv", rank + 1, rank));
  ranks.push_back(in(40, "MPI_Recv", 39, 5));
  EXPECT_TRUE(standing(ranks).picture().starts_with(
      "rank 39 is in MPI_Recv (source 40, tag 39), rank 40 is in MPI_Recv (source 39, tag 5), rank "
      "0 is in MPI_Recv (source 1, tag 0), "));
}

TEST(Causes, WhomNothingIsKnownOfMayGoOn) {
  const Ranks ranks = {in(0, "MPI_Recv", 1, 3), at(1, Kind::unknown)};
  EXPECT_EQ(verdict_of(ranks), ".");
  EXPECT_FALSE(standing(ranks).is_stuck());
}

TEST(Causes, OneLookProvesNothing) {
  const Ranks ranks = {in(0, "MPI_Recv", 1, 3), in(1, "MPI_Recv", 0, 3)};
  const Judgement judgement({}, later(ranks), 0);
  EXPECT_FALSE(judgement.is_stuck());
  EXPECT_EQ(judgement.verdict(), ".");
}

TEST(Causes, ASecondLookIsTakenOnlyIfSomebodyWaitsOrIsStopped) {
  EXPECT_FALSE(may_hang({}));
  EXPECT_FALSE(may_hang({at(0, Kind::computing), at(1, Kind::computing)}));
  EXPECT_TRUE(may_hang({at(0, Kind::computing), in(1, "MPI_Recv", 0, 3)}));
  EXPECT_TRUE(may_hang({at(0, Kind::computing, 'T')}));
}

}  // namespace
}  // namespace headway::launcher
