// What mpiexec says of ranks that it finds at their places: the picture, and the guess at the
// cause.
#include "whereabouts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/whereabouts.h"
#include "say.h"

namespace headway::launcher {
namespace {

using Kind = Spot::Kind;

Seen in(int rank, const char* call, int peer = base::nobody, int tag = base::nobody) {
  return {rank, 100 + rank, {Kind::in_call, call, peer, tag}};
}
Seen at(int rank, Kind kind) { return {rank, 100 + rank, {kind, "", 0, 0}}; }

bool holds(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

std::string told_of(const base::Whereabouts& where) {
  return std::string(base::whereabouts_layout) +
         format("0x%llx", static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(&where)));
}

TEST(Whereabouts, AreReadOutOfAProcess) {
  base::Whereabouts where;
  EXPECT_EQ(look_at(getpid(), told_of(where)).kind, Kind::computing);
  where.call.store("MPI_Sendrecv_replace");
  where.peer.store(3);
  where.tag.store(17);
  EXPECT_EQ(look_at(getpid(), told_of(where)),
            (Spot{Kind::in_call, "MPI_Sendrecv_replace", 3, 17}));
}

TEST(Whereabouts, NothingIsTakenOnTrust) {
  base::Whereabouts where;
  EXPECT_EQ(look_at(getpid(), "").kind, Kind::unknown);
  EXPECT_EQ(look_at(getpid(), "1:").kind, Kind::unknown);
  EXPECT_EQ(look_at(getpid(), "1:0x10").kind, Kind::unknown);
  EXPECT_EQ(look_at(getpid(), "2:" + told_of(where).substr(2)).kind, Kind::unknown);
  EXPECT_EQ(look_at(getpid(), told_of(where) + "x").kind, Kind::unknown);
  for (const char* call :
       {"", "printf", "MPI_\033[31m", "MPI_Send; rm",
        "MPI_a_name_that_is_longer_than_any_function_of_the_standard_could_be_aa"}) {
    where.call.store(call);
    EXPECT_EQ(look_at(getpid(), told_of(where)).kind, Kind::unknown) << call;
  }
  where.call.store(reinterpret_cast<const char*>(8));
  EXPECT_EQ(look_at(getpid(), told_of(where)).kind, Kind::unknown);
}

TEST(Whereabouts, EqualPlacesAreTold) {
  EXPECT_EQ(picture_of({}), "");
  EXPECT_EQ(picture_of({at(0, Kind::unknown), at(1, Kind::before)}), "");
  EXPECT_EQ(picture_of({in(0, "MPI_Barrier"), in(1, "MPI_Barrier"), in(2, "MPI_Barrier"),
                        at(3, Kind::computing), in(5, "MPI_Barrier")}),
            "ranks 0-2, 5 are in MPI_Barrier, rank 3 is outside MPI");
  EXPECT_EQ(picture_of({in(0, "MPI_Recv", -1, -31), in(1, "MPI_Wait", 2, 7)}),
            "rank 0 is in MPI_Recv (source any, tag any), rank 1 is in MPI_Wait (peer 2, tag 7)");
  std::vector<Seen> many;
  for (int rank = 0; rank < 20; ++rank) many.push_back(in(rank, "MPI_Send", rank + 1, 0));
  EXPECT_TRUE(picture_of(many).ends_with(", and 12 other ranks elsewhere")) << picture_of(many);
}

TEST(Whereabouts, CausesAreGuessedOnlyWhereTheCallsDoNotFit) {
  EXPECT_TRUE(
      holds(advice_for({in(0, "MPI_Send", 1, 3), in(1, "MPI_Send_c", 0, 3)}), "MPI_Sendrecv"));
  EXPECT_TRUE(holds(advice_for({in(0, "MPI_Recv", 1, 3), in(1, "MPI_Probe", 0, 3)}), "has sent"));
  EXPECT_TRUE(
      holds(advice_for({in(0, "MPI_Bcast"), in(1, "MPI_Reduce")}), "different collectives"));
  EXPECT_TRUE(holds(advice_for({in(0, "MPI_Bcast"), in(1, "MPI_Finalize")}), "rank 1 is done"));
  EXPECT_TRUE(holds(advice_for({in(0, "MPI_Bcast"), in(1, "MPI_Recv", 0, 1)}), "a collective"));
  EXPECT_TRUE(holds(advice_for({in(0, "MPI_Init"), at(1, Kind::before)}), "come to MPI_Init"));
  EXPECT_TRUE(holds(advice_for({in(0, "MPI_Bcast"), at(1, Kind::computing)}), "gdb -p 101"));
  // A message on its way, a collective of all, ranks that compute, ranks that nothing is known of.
  EXPECT_EQ(advice_for({in(0, "MPI_Send", 1, 3), in(1, "MPI_Recv", 0, 3)}), "");
  EXPECT_EQ(advice_for({in(0, "MPI_Send", 1, 3), in(1, "MPI_Recv", -1, -31)}), "");
  EXPECT_EQ(advice_for({in(0, "MPI_Allreduce"), in(1, "MPI_Allreduce")}), "");
  EXPECT_EQ(advice_for({at(0, Kind::computing), at(1, Kind::computing)}), "");
  EXPECT_EQ(advice_for({in(0, "MPI_Send", 1, 3), at(1, Kind::unknown)}), "");
}

TEST(Whereabouts, AllWaitOnlyIfAllAreInside) {
  EXPECT_FALSE(all_wait({}));
  EXPECT_TRUE(all_wait({in(0, "MPI_Recv", 1, 3), in(1, "MPI_Recv", 0, 3)}));
  EXPECT_FALSE(all_wait({in(0, "MPI_Recv", 1, 3), at(1, Kind::computing)}));
}

}  // namespace
}  // namespace headway::launcher
