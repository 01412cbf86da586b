// Which way a message takes between two ranks of a node: two engines in one segment, both of which
// wait in MPI.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/clock.h"
#include "protocols/engine_test_plain.h"

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
      engine.handoff().driver = progress::Driver::waiting;
      engine.node().own().waiting.store(1);
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
    const auto over = [&] {
      for (const Request* request : all) {
        if (request->done.load() != whole) return false;
      }
      return true;
    };
    for (int round = 0; round < 100'000 && !over(); ++round) {
      for (auto& engine : engines_) engine->advance();
    }
    ASSERT_TRUE(over());
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

// Each core has a message to copy: a stream would copy both twice. Rank 0 looks first, while both
// messages are on their way; what rank 1 does when its own has gone is its choice.
TEST_F(Ways, InAnExchangeEachCopiesItsOwn) {
  exchange({0, 1});
  EXPECT_EQ(engines_[0]->counters().pulls, 1u);
  EXPECT_EQ(engines_[1]->counters().pulls, 1u);
  EXPECT_EQ(engines_[1]->counters().streams, 0u);
  EXPECT_EQ(engines_[1]->counters().helped, 0u);
}

// Rank 1 has begun to copy what rank 0 sends, and is perhaps on its way to its own send: so rank 0,
// which waits for that, does not help at once. When it has come, rank 0 copies it first.
TEST_F(Ways, WhoIsToCopyItselfDoesNotHelpBefore) {
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
  const auto waits = [](Engine& engine, bool does) {
    engine.handoff().driver = does ? progress::Driver::waiting : progress::Driver::passing;
    engine.node().own().waiting.store(does);
  };
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
  const auto over = [](Request* const(&all)[2]) {
    return all[0]->done.load() == whole && all[1]->done.load() == whole;
  };
  for (int round = 0; round < 100'000 && !(over(in) && over(out)); ++round) {
    for (auto& engine : engines_) engine->advance();
  }
  ASSERT_TRUE(over(in) && over(out));
  for (uint32_t i = 0; i < 2; ++i) EXPECT_EQ(received_[i], sent_[1 - i]);
}

}  // namespace
}  // namespace headway::protocols
