// Where ranks stand, as mpiexec reads it out of their memory.
#include "whereabouts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>

#include "base/whereabouts.h"
#include "say.h"

namespace headway::launcher {
namespace {

using Kind = Spot::Kind;

template <class T>
uint64_t address_of(const T& object) {
  return uint64_t(reinterpret_cast<uintptr_t>(&object));
}

std::string told_of(const base::Whereabouts& where) {
  return std::string(base::whereabouts_layout) +
         format("0x%llx", static_cast<unsigned long long>(address_of(where)));
}

TEST(Whereabouts, AreReadOutOfAProcess) {
  base::Whereabouts where;
  EXPECT_EQ(look_at(getpid(), told_of(where)).kind, Kind::computing);
  where.peer.store(3);
  where.tag.store(17);
  where.waits.store(4);
  where.vain.store(5);
  where.moves.store(6);
  where.awaited.store(7);
  where.polls.store(8);
  where.poll.store("MPI_Iprobe");
  where.poll_peer.store(-1);
  where.call.store("MPI_Sendrecv_replace");
  const Spot spot = look_at(getpid(), told_of(where));
  EXPECT_EQ(spot.kind, Kind::in_call);
  EXPECT_EQ(spot.call, "MPI_Sendrecv_replace");
  EXPECT_EQ(spot.peer, 3);
  EXPECT_EQ(spot.tag, 17);
  EXPECT_EQ(spot.waits, 4u);
  EXPECT_EQ(spot.vain, 5u);
  EXPECT_EQ(spot.moves, 6u);
  EXPECT_EQ(spot.awaited, 7);
  EXPECT_EQ(spot.polls, 8u);
  EXPECT_EQ(spot.poll, "MPI_Iprobe");
  EXPECT_EQ(spot.poll_peer, -1);
  EXPECT_FALSE(spot.unsteady);
  EXPECT_FALSE(spot.asleep);
  EXPECT_EQ(spot.state, 'R');
  EXPECT_TRUE(spot.signs.empty());
}

TEST(Whereabouts, NothingIsTakenOnTrust) {
  base::Whereabouts where;
  EXPECT_EQ(look_at(getpid(), "").kind, Kind::unknown);
  EXPECT_EQ(look_at(getpid(), "2:").kind, Kind::unknown);
  EXPECT_EQ(look_at(getpid(), "2:0x10").kind, Kind::unknown);
  EXPECT_EQ(look_at(getpid(), "1:" + told_of(where).substr(2)).kind, Kind::unknown);
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

// A rank's communicator and what lies beside it, as Landmarks describe them.
struct FakeGroup {
  int size;
  const int* members;
};
struct FakeComm {
  uint64_t context;
  const FakeGroup* group;
  uint32_t collectives;
  char name[32];
};

TEST(Whereabouts, SignsAndCommunicatorsAreFound) {
  const int members[] = {2, 0};
  const FakeGroup group = {2, members};
  FakeComm comm = {77, &group, 9, "mine"};
  const FakeComm* everyone = &comm;
  const uint64_t messages = 12345, out = 6, in = 7;
  base::Landmarks marks;
  marks.signs[0] = address_of(messages);
  marks.frames_out = address_of(out);
  marks.frames_in = address_of(in);
  marks.everyone = address_of(everyone);
  marks.context = offsetof(FakeComm, context);
  marks.group = offsetof(FakeComm, group);
  marks.collectives = offsetof(FakeComm, collectives);
  marks.name = offsetof(FakeComm, name);
  marks.size = offsetof(FakeGroup, size);
  marks.members = offsetof(FakeGroup, members);
  base::Whereabouts where;
  where.landmarks.store(&marks);
  where.comm.store(&comm);
  where.call.store("MPI_Barrier");
  Spot spot = look_at(getpid(), told_of(where));
  ASSERT_FALSE(spot.signs.empty());
  EXPECT_EQ(spot.signs[0], messages);
  EXPECT_EQ(spot.frames_out, out);
  EXPECT_EQ(spot.frames_in, in);
  EXPECT_EQ(spot.context, 77u);
  ASSERT_EQ(spot.comms.size(), 1u);
  EXPECT_EQ(spot.comms[0].name, "mine");
  EXPECT_EQ(spot.comms[0].collectives, 9u);
  EXPECT_EQ(spot.comms[0].members, (std::vector<int>{2, 0}));
  EXPECT_TRUE(look_at(getpid(), told_of(where), false).comms.empty());
  // What makes no sense is left out.
  comm.name[1] = '\033';
  spot = look_at(getpid(), told_of(where));
  ASSERT_EQ(spot.comms.size(), 1u);
  EXPECT_EQ(spot.comms[0].name, "");
  const FakeGroup broken = {1 << 30, members};
  comm.group = &broken;
  EXPECT_TRUE(look_at(getpid(), told_of(where)).comms.empty());
}

}  // namespace
}  // namespace headway::launcher
