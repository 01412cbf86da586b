// Which way a message takes between two ranks of a node: two engines in one segment, both of which
// wait in MPI.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/copy.h"
#include "protocols/engine_test_plain.h"
#include "protocols/seeds_test_watch.h"

namespace headway::protocols {
namespace {

class Ways : public testing::Test {
 protected:
  static constexpr uint64_t bytes = 300'000;

  void SetUp() override {
    const uint32_t ranks[] = {0, 1};
    for (uint32_t i = 0; i < 2; ++i) {
      engines_[i] = std::make_unique<Engine>();
      Engine& engine = *engines_[i];
      ASSERT_EQ(prepare_plain(engine, i, 2), Outcome::ok);
      ASSERT_EQ(i == 0 ? engine.node().create(2, key_, sizeof key_) : engine.node().attach(key_, 2),
                Outcome::ok);
      engine.node().join(i, engine.handoff().bell());
      ASSERT_EQ(engine.use_node(ranks, 2), Outcome::ok);
      engine.handoff().enter();
      waits(engine, true);
      sent_[i].assign(bytes, char('a' + i));
      received_[i].assign(bytes, '.');
    }
  }
  void TearDown() override {
    for (auto& engine : engines_) {
      engine->handoff().leave();
      engine->handoff().stop();
      engine->node().detach();
    }
  }
  static void waits(Engine& engine, bool does) {
    engine.handoff().driver = does ? progress::Driver::waiting : progress::Driver::passing;
    engine.node().own().waiting.store(does);
  }
  static bool is_over(const std::vector<Request*>& all) {
    return std::all_of(all.begin(), all.end(), [](const Request* r) { return r->done == whole; });
  }
  void advance_until_over(const std::vector<Request*>& all) {
    for (int round = 0; round < 100'000 && !is_over(all); ++round) {
      for (auto& engine : engines_) engine->advance();
    }
    ASSERT_TRUE(is_over(all));
  }
  Request* take(uint32_t rank, RequestKind kind, std::vector<char>& buffer) {
    Request* request = engines_[rank]->take_request();
    request->kind = kind;
    request->mode = Mode::standard;
    request->held_by_user = true;
    request->memory = UserMemory(buffer.data(), buffer.size());
    request->key = {2, int(kind == RequestKind::send ? rank : 1 - rank), 7};
    request->peer = engines_[rank]->peer(1 - rank);
    return request;
  }
  // Each of `senders` has a message for the other rank; all are received.
  void exchange(std::vector<uint32_t> senders) {
    std::vector<Request*> all;
    for (const uint32_t rank : senders) {
      all.push_back(take(1 - rank, RequestKind::receive, received_[1 - rank]));
      engines_[1 - rank]->start_receive(all.back());
    }
    for (const uint32_t rank : senders) {
      all.push_back(take(rank, RequestKind::send, sent_[rank]));
      engines_[rank]->start_send(all.back());
    }
    ASSERT_NO_FATAL_FAILURE(advance_until_over(all));
    for (const uint32_t rank : senders) EXPECT_EQ(received_[1 - rank], sent_[rank]);
  }

  char key_[64];
  std::unique_ptr<Engine> engines_[2];
  std::vector<char> sent_[2], received_[2];
};

TEST_F(Ways, TwoThatWaitForOneMessageStreamIt) {
  exchange({0});
  EXPECT_EQ(engines_[0]->counters().streams, 1u);
  EXPECT_EQ(engines_[1]->counters().pulls, 0u);
}

// What fits one frame asks nobody; the next byte does.
TEST_F(Ways, AMessageOfOneFrameGoesWithoutAHandshake) {
  constexpr size_t longest = 32 << 10;
  for (const size_t size : {longest, longest + 1}) {
    sent_[0].assign(size, 'a');
    received_[1].assign(size, '.');
    exchange({0});
    EXPECT_EQ(engines_[0]->counters().handshakes, size > longest ? 1u : 0u) << size;
  }
}

// A message that is taken straight from the ring counts among those that came before: else the
// sender of the next one would not believe the receive that it sees, and need its rank.
TEST_F(Ways, AReceiveIsClaimedBehindAMessageThatWasTakenFromTheRing) {
  exchange({1});  // they have met
  Request* receive = take(0, RequestKind::receive, received_[0]);
  engines_[0]->start_receive(receive);
  std::vector<char> small(8, 's'), got(8, '.');
  Request* first = take(1, RequestKind::send, small);
  first->key.tag = 8;
  engines_[1]->start_send(first);
  uint64_t length = 0;
  Peer& sender = *engines_[0]->peer(1);
  ASSERT_TRUE(
      engines_[0]->receive_now(sender, {2, 1, 8}, UserMemory(got.data(), got.size()), length));
  EXPECT_EQ(got, small);
  waits(*engines_[0], false);
  Request* send = take(1, RequestKind::send, sent_[1]);
  send->blocking = true;
  engines_[1]->start_send(send);
  EXPECT_EQ(engines_[1]->counters().claims, 1u);
  waits(*engines_[0], true);
  ASSERT_NO_FATAL_FAILURE(advance_until_over({receive, send}));
  EXPECT_EQ(received_[0], sent_[1]);
}

// A receive that may come at once looks for long, but not while another thread of its rank is at
// the door.
TEST_F(Ways, ALookForAMessageIsShortWhereAnotherThreadWantsTheEngine) {
  exchange({0});  // they have met
  Engine& engine = *engines_[1];
  Peer& sender = *engine.peer(0);
  std::vector<char> got(8, '.');
  uint64_t length = 0;
  const auto shortest = [&] {
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 500; ++i) {
      const uint64_t began = base::ticks();
      EXPECT_FALSE(
          engine.receive_now(sender, {2, 0, 7}, UserMemory(got.data(), got.size()), length));
      least = std::min(least, base::ticks() - began);
    }
    return least;
  };
  const uint64_t alone = shortest();
  std::thread other([&] {
    engine.handoff().enter();
    engine.handoff().leave();
  });
  const uint64_t end = base::now_ns() + 5'000'000'000;
  while (!engine.handoff().is_wanted() && base::now_ns() < end) sched_yield();
  EXPECT_TRUE(engine.handoff().is_wanted());
  const uint64_t beside = shortest();
  engine.handoff().leave();
  other.join();
  engine.handoff().enter();
  EXPECT_FALSE(engine.handoff().is_wanted());
  EXPECT_LT(3 * beside, alone);  // an eighth of the looks
}

// Each core has a message to copy: a stream would copy both twice, which is slow where there is no
// string instruction. Rank 0 looks first, while both messages are on their way; what rank 1 does
// when its own has gone is its choice.
TEST_F(Ways, InAnExchangeEachCopiesItsOwn) {
  base::has_string_copy = false;
  exchange({0, 1});
  EXPECT_EQ(engines_[0]->counters().pulls, 1u);
  EXPECT_EQ(engines_[1]->counters().pulls, 1u);
  EXPECT_EQ(engines_[1]->counters().streams, 0u);
  EXPECT_EQ(engines_[1]->counters().helped, 0u);
}

// Where there is one, two streams are faster.
TEST_F(Ways, InAnExchangeBothStreamWhereStringsAreQuick) {
  base::has_string_copy = true;
  exchange({0, 1});
  for (const auto& engine : engines_) {
    EXPECT_EQ(engine->counters().pulls, 0u);
    EXPECT_EQ(engine->counters().streams, 1u);
  }
}

// Rank 1 has begun to copy what rank 0 sends, and is perhaps on its way to its own send: so rank 0,
// which waits for that, does not help at once. When it has come, rank 0 copies it first.
TEST_F(Ways, WhoIsToCopyItselfDoesNotHelpBefore) {
  base::has_string_copy = false;
  constexpr uint64_t long_ones = 2 << 20;
  for (uint32_t i = 0; i < 2; ++i) {
    sent_[i].assign(long_ones, char('a' + i));
    received_[i].assign(long_ones, '.');
  }
  Engine &zero = *engines_[0], &one = *engines_[1];
  Request* const in[] = {take(0, RequestKind::receive, received_[0]),
                         take(1, RequestKind::receive, received_[1])};
  Request* const out[] = {take(0, RequestKind::send, sent_[0]),
                          take(1, RequestKind::send, sent_[1])};
  waits(zero, false);
  waits(one, false);
  zero.start_receive(in[0]);
  one.start_receive(in[1]);
  zero.start_send(out[0]);
  one.advance();
  ASSERT_EQ(one.counters().pulls, 1u);
  waits(zero, true);
  zero.advance();
  EXPECT_EQ(zero.counters().helped, 0u) << "at once";
  // Perhaps rank 1 computes.
  const uint64_t start = base::now_ns();
  while (zero.counters().helped == 0 && base::now_ns() - start < 1'000'000'000) zero.advance();
  EXPECT_EQ(zero.counters().helped, 1u);
  one.start_send(out[1]);
  waits(one, true);
  const uint64_t helped = zero.counters().helped;
  for (int round = 0; round < 1000 && in[0]->done.load() != whole; ++round) {
    zero.advance();
    if (in[0]->done.load() != whole) {
      ASSERT_EQ(zero.counters().helped, helped) << "in the midst of its own";
    }
  }
  ASSERT_NO_FATAL_FAILURE(advance_until_over({in[0], in[1], out[0], out[1]}));
  for (uint32_t i = 0; i < 2; ++i) EXPECT_EQ(received_[i], sent_[1 - i]);
}

// Rank 1 waits first, so rank 0 asks it to push. By the time rank 0 waits, too, rank 1 has a
// message of its own to copy: what it has not begun to push goes back to rank 0.
TEST_F(Ways, WhoComesToWaitCopiesItsOwn) {
  base::has_string_copy = false;
  Engine &zero = *engines_[0], &one = *engines_[1];
  std::vector<char> long_one(2 << 20, 'L'), there(2 << 20, '.'), second(bytes, '.');
  waits(zero, false);
  std::vector<Request*> all = {
      take(0, RequestKind::receive, received_[0]), take(0, RequestKind::receive, second),
      take(1, RequestKind::receive, there),        take(1, RequestKind::send, sent_[1]),
      take(1, RequestKind::send, sent_[1]),        take(0, RequestKind::send, long_one)};
  for (Request* request : all) {
    const bool sends = request->kind == RequestKind::send;
    Engine& engine = *engines_[uint32_t(sends ? request->key.source : 1 - request->key.source)];
    if (request == all.back()) zero.advance();  // it asks
    sends ? engine.start_send(request) : engine.start_receive(request);
  }
  waits(zero, true);
  ASSERT_NO_FATAL_FAILURE(advance_until_over(all));
  EXPECT_EQ(one.counters().pushes, 2u);
  EXPECT_EQ(zero.counters().pulls, 1u) << "the second one";
  EXPECT_EQ(one.counters().streams + zero.counters().streams, 0u);
  EXPECT_EQ(received_[0], sent_[1]);
  EXPECT_EQ(second, sent_[1]);
  EXPECT_EQ(there, long_one);
}

// Whatever a peer says of a receive that it was not asked to push, or says twice, changes nothing.
TEST_F(Ways, OnlyWhatWasToBePushedIsHandedOver) {
  Engine &zero = *engines_[0], &one = *engines_[1];
  std::vector<char> streamed(bytes, '.');
  Request* const in = take(0, RequestKind::receive, received_[0]);
  Request* const other = take(0, RequestKind::receive, streamed);
  const auto pull = [&](const Request* receive, uint64_t there) {
    FrameHeader header;
    header.kind = uint8_t(Kind::pull);
    header.word = id_of(receive);
    header.context = there;
    return zero.frame(1, header, nullptr);
  };
  waits(zero, false);
  zero.start_receive(in);
  EXPECT_FALSE(pull(in, 0)) << "it is only posted";
  Request* const out = take(1, RequestKind::send, sent_[1]);
  one.start_send(out);
  zero.advance();  // it asks
  ASSERT_EQ(in->stage(), Stage::landing);
  EXPECT_FALSE(pull(in, bytes)) << "all of it";
  EXPECT_FALSE(pull(in, ~0ull));
  EXPECT_EQ(in->stage(), Stage::landing);
  EXPECT_TRUE(pull(in, 0));
  EXPECT_FALSE(pull(in, 0)) << "again";
  EXPECT_EQ(in->stage(), Stage::pulling);
  waits(zero, true);
  zero.start_receive(other);
  Request* const second = take(1, RequestKind::send, sent_[1]);
  one.start_send(second);
  zero.advance();
  ASSERT_EQ(other->stage(), Stage::landing);
  EXPECT_FALSE(pull(other, 0)) << "a stream";
  EXPECT_EQ(zero.counters().garbage, 5u);
}

// Both ranks send and receive, wait and compute as they like: whatever ways the messages take, and
// however often that changes, they come.
TEST_F(Ways, AnyMessagesAtAnyTime) {
  constexpr uint64_t sizes[] = {1000, 40'000, 65'536, 100'001, 300'000, 1 << 20, 2'500'000};
  constexpr uint64_t most_messages = 12;
  uint64_t streams = 0, pulls = 0, pushes = 0, helped = 0;
  SeedWatch watch;
  for (uint64_t seed = first_seed(); seed < first_seed() + seed_count(200); ++seed) {
    SCOPED_TRACE(testing::Message() << "HEADWAY_TEST_SEED=" << seed);
    watch.begin(seed);
    TearDown();
    ASSERT_NO_FATAL_FAILURE(SetUp());
    std::mt19937_64 random(seed);
    base::has_string_copy = random() % 2;
    std::vector<std::vector<char>> out[2], in[2];
    std::vector<std::pair<uint32_t, Request*>> sends[2], receives[2];
    std::vector<Request*> all;
    for (uint32_t rank = 0; rank < 2; ++rank) {
      const uint64_t messages = 1 + random() % most_messages;
      for (uint64_t i = 0; i < messages; ++i) {
        const uint64_t size = sizes[random() % std::size(sizes)];
        out[rank].emplace_back(size);
        for (uint64_t at = 0; at < size; at += 97) out[rank].back()[at] = char(random());
        in[1 - rank].emplace_back(size, '.');
      }
      for (uint64_t i = 0; i < messages; ++i) {
        for (Request* request : {take(rank, RequestKind::send, out[rank][i]),
                                 take(1 - rank, RequestKind::receive, in[1 - rank][i])}) {
          const bool is_send = request->kind == RequestKind::send;
          request->key.tag = int(i);
          all.push_back(request);
          (is_send ? sends[rank] : receives[1 - rank]).emplace_back(rank, request);
        }
      }
    }
    for (auto& some : receives) std::shuffle(some.begin(), some.end(), random);
    const auto begin_one = [](auto& some, const auto& begin) {
      if (some.empty()) return;
      begin(some.back().second);
      some.pop_back();
    };
    const auto left = [&] {
      return sends[0].size() + sends[1].size() + receives[0].size() + receives[1].size();
    };
    while (left() != 0) {
      const auto rank = uint32_t(random() % 2);
      Engine& engine = *engines_[rank];
      switch (random() % 5) {
        case 0: begin_one(sends[rank], [&](Request* r) { engine.start_send(r); }); break;
        case 1: begin_one(receives[rank], [&](Request* r) { engine.start_receive(r); }); break;
        case 2: waits(engine, random() % 3 != 0); break;
        default:
          for (uint64_t i = random() % 4; i > 0; --i) engine.advance();
      }
    }
    for (int i = 0; i < 60; ++i) {
      Engine& engine = *engines_[random() % 2];
      if (random() % 3 == 0) waits(engine, random() % 3 != 0);
      for (uint64_t turns = random() % 12; turns > 0; --turns) engine.advance();
    }
    for (auto& engine : engines_) waits(*engine, true);
    ASSERT_NO_FATAL_FAILURE(advance_until_over(all));
    for (uint32_t rank = 0; rank < 2; ++rank) EXPECT_TRUE(in[1 - rank] == out[rank]);
    for (auto& engine : engines_) {
      streams += engine->counters().streams;
      pulls += engine->counters().pulls;
      pushes += engine->counters().pushes;
      helped += engine->counters().helped;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(streams, 0u);
  EXPECT_GT(pulls, 0u);
  EXPECT_GT(pushes, 0u);
  EXPECT_GT(helped, 0u);
  RecordProperty("ways", std::to_string(streams) + " streams, " + std::to_string(pulls) +
                             " pulls, " + std::to_string(pushes) + " pushes");
}

}  // namespace
}  // namespace headway::protocols
