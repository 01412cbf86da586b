// Where ranks stand, as mpiexec reads it out of their memory.
#include "whereabouts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>

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
  EXPECT_EQ(look_at(getpid(), base::whereabouts_layout).kind, Kind::unknown);
  EXPECT_EQ(look_at(getpid(), "4:0x10").kind, Kind::unknown);
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
  const FakeGroup* peers;
};

TEST(Whereabouts, SignsAndCommunicatorsAreFound) {
  const int members[] = {2, 0};
  const FakeGroup group = {2, members};
  FakeComm comm = {77, &group, 9, "mine", &group};
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
  marks.peers = offsetof(FakeComm, peers);
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
  EXPECT_EQ(spot.comms[0].members.list(), (std::vector<int>{2, 0}));
  EXPECT_EQ(spot.comms[0].own, 0u);
  // Of two sides: the own one first.
  const int remote_members[] = {3, 1, 4};
  const FakeGroup remote = {3, remote_members};
  comm.peers = &remote;
  spot = look_at(getpid(), told_of(where));
  ASSERT_EQ(spot.comms.size(), 1u);
  EXPECT_EQ(spot.comms[0].members.list(), (std::vector<int>{2, 0, 3, 1, 4}));
  EXPECT_EQ(spot.comms[0].own, 2u);
  EXPECT_TRUE(spot.comms[0].is_beyond(1));
  EXPECT_FALSE(spot.comms[0].is_beyond(2));
  EXPECT_FALSE(spot.comms[0].is_beyond(7));
  comm.peers = &group;
  // Which ranks a collective waits for depends on its own one.
  ASSERT_EQ(look_at(getpid(), told_of(where), false).comms.size(), 1u);
  where.peer.store(0);
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

TEST(Whereabouts, AReceiveWithoutItsMatchIsFound) {
  base::Unmatched unmatched;
  uint32_t armed = 1, thread = uint32_t(getpid());
  base::Landmarks marks;
  marks.unmatched = address_of(unmatched);
  marks.armed = address_of(armed);
  marks.thread = address_of(thread);
  base::Whereabouts where;
  where.landmarks.store(&marks);
  EXPECT_EQ(look_at(getpid(), told_of(where)).unmatched.serial, 0u);
  unmatched.call.store("MPI_Wait");
  unmatched.peer.store(2);
  unmatched.tag.store(5);
  unmatched.awaited.store(9);
  unmatched.context.store(77);
  unmatched.site.store(0x1234);
  unmatched.serial.store(3);
  const Spot spot = look_at(getpid(), told_of(where));
  EXPECT_EQ(spot.kind, Kind::computing);
  EXPECT_EQ(spot.unmatched.serial, 3u);
  EXPECT_EQ(spot.unmatched.call, "MPI_Wait");
  EXPECT_EQ(spot.unmatched.peer, 2);
  EXPECT_EQ(spot.unmatched.tag, 5);
  EXPECT_EQ(spot.unmatched.awaited, 9);
  EXPECT_EQ(spot.unmatched.context, 77u);
  EXPECT_EQ(spot.unmatched.site.address, 0x1234u);
  EXPECT_TRUE(spot.one_thread);
  EXPECT_FALSE(spot.listens);  // its "message thread" runs this test
  unmatched.call.store("printf");
  EXPECT_EQ(look_at(getpid(), told_of(where)).unmatched.serial, 0u);
}

TEST(Whereabouts, WhoListensSleepsAndIsArmed) {
  std::atomic<uint32_t> thread{0};
  std::atomic<bool> ends{false};
  std::mutex lock;
  std::condition_variable changed;
  std::thread sleeper([&] {
    std::unique_lock<std::mutex> held(lock);
    thread.store(uint32_t(gettid()));
    changed.wait(held, [&] { return ends.load(); });
  });
  base::Unmatched unmatched;
  unmatched.call.store("MPI_Recv");
  unmatched.serial.store(1);
  std::atomic<uint32_t> armed{1};
  base::Landmarks marks;
  marks.unmatched = address_of(unmatched);
  marks.armed = address_of(armed);
  marks.thread = address_of(thread);
  base::Whereabouts where;
  where.landmarks.store(&marks);
  bool listens = false;
  for (int i = 0; i < 1000 && !listens; ++i) {
    listens = look_at(getpid(), told_of(where)).listens;
    usleep(1000);
  }
  EXPECT_TRUE(listens);
  EXPECT_FALSE(look_at(getpid(), told_of(where)).one_thread);
  armed.store(0);  // somebody rings
  EXPECT_FALSE(look_at(getpid(), told_of(where)).listens);
  {
    const std::lock_guard<std::mutex> held(lock);
    ends.store(true);
  }
  changed.notify_one();
  sleeper.join();
}

// Of a wait that is over it says nothing.
TEST(Whereabouts, ASiteIsThatOfItsWait) {
  base::Whereabouts where;
  where.call.store("MPI_Recv");
  where.site.store(0x77);
  where.waits.store(4);
  EXPECT_EQ(look_at(getpid(), told_of(where)).site.address, 0u);
  where.site_waits.store(4);
  EXPECT_EQ(look_at(getpid(), told_of(where)).site.address, 0x77u);
}

}  // namespace
}  // namespace headway::launcher
