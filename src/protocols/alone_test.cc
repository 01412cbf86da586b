// One engine whose transport swallows whatever it sends: frames that make no sense, and what the
// engine checks of itself, broken on purpose.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "protocols/engine_test_plain.h"
#include "protocols/release/profit.h"
#include "protocols/ways/order.h"
#include "protocols/ways/pieces.h"

namespace headway::protocols {
namespace {

// Can do nothing but send and receive frames.
class Swallower final : public transports::Transport {
 public:
  bool is_full = false;

  uint32_t caps() const override { return 0; }
  Outcome connect(uint32_t, uint32_t& frame_max) override {
    frame_max = 64 << 10;
    return Outcome::ok;
  }
  Push push(uint32_t, const FrameHeader&, const void*, uint32_t, const Feed*, uint64_t,
            transports::Urgency) override {
    return is_full ? Push::full : Push::done;
  }
  bool writable(uint32_t) const override { return !is_full; }
  bool reap(uint64_t) override { return false; }
  bool reap_peer(uint32_t, uint64_t) override { return false; }
};

class Alone : public testing::Test {
 protected:
  static constexpr uint64_t bytes = 100'000;

  void SetUp() override {
    ASSERT_EQ(prepare_plain(engine_, 0, 2), Outcome::ok);
    ASSERT_EQ(engine_.use(transport_), Outcome::ok);
    engine_.handoff().enter();
  }
  void TearDown() override {
    engine_.handoff().leave();
    engine_.handoff().stop();
    engine_.stop_guard();
  }

  static FrameHeader header_of(Kind kind, uint64_t length) {
    FrameHeader header;
    header.kind = uint8_t(kind);
    header.context = 2;
    header.source = 1;
    header.tag = 7;
    header.length = uint32_t(length);
    return header;
  }
  Request* receive(int source, int tag) {
    buffer_.assign(bytes, 'b');
    Request* request = engine_.take_request();
    request->kind = RequestKind::receive;
    request->held_by_user = true;
    request->memory = UserMemory(buffer_.data(), bytes);
    request->key = {2, source, tag};
    request->peer = source == matching::any ? nullptr : engine_.peer(1);
    engine_.start_receive(request);
    return request;
  }
  // Until its data may come.
  Request* landing() {
    Request* request = receive(1, 7);
    const RequestSend body{bytes, 0, 0, 0, 0, 0};
    EXPECT_TRUE(frame(header_of(Kind::request_send, sizeof body), &body));
    EXPECT_EQ(int(request->stage()), int(Stage::landing));
    return request;
  }
  bool frame(const FrameHeader& header, const void* body) {
    return engine_.frame(1, header, static_cast<const char*>(body));
  }

  Engine engine_;
  Swallower transport_;
  std::vector<char> buffer_;
};

// A message has a source and a tag, or nobody could be told whose it was.
TEST_F(Alone, AnEnvelopeWithAWildcardIsGarbage) {
  const RequestSend announced{bytes, 0, 0, 0, 0, 0};
  for (const bool posted : {false, true}) {
    Request* request = posted ? receive(matching::any, matching::any) : nullptr;
    for (const bool source : {false, true}) {
      FrameHeader header = header_of(Kind::eager, 4);
      (source ? header.source : header.tag) = matching::any;
      EXPECT_FALSE(frame(header, "abcd"));
      header.kind = uint8_t(Kind::request_send);
      header.length = sizeof announced;
      EXPECT_FALSE(frame(header, &announced));
      header.kind = uint8_t(Kind::eager);
      header.length = 8000;
      Landing landing;
      EXPECT_FALSE(engine_.begin(1, header, landing));
    }
    EXPECT_EQ(engine_.unexpected().count(), 0u);
    if (request) {
      EXPECT_FALSE(request->done.load());
      EXPECT_TRUE(frame(header_of(Kind::eager, 4), "abcd"));
      EXPECT_TRUE(request->done.load());
      EXPECT_EQ(request->status_source, 1);
      engine_.give_request(request);
    }
  }
}

// Or the receive would count past its end, and never be complete.
TEST_F(Alone, MoreDataThanAreLeftIsGarbage) {
  Request* request = landing();
  const std::vector<char> data(bytes, 'd');
  FrameHeader header = header_of(Kind::data, bytes - 10);
  header.context = 0;
  header.word = id_of(request);
  EXPECT_TRUE(frame(header, data.data()));
  header.length = 11;
  EXPECT_FALSE(frame(header, data.data()));
  EXPECT_FALSE(request->done.load());
  header.length = 10;
  header.context = bytes - 10;
  EXPECT_TRUE(frame(header, data.data()));
  EXPECT_TRUE(request->done.load());
  EXPECT_EQ(buffer_, data);
  engine_.give_request(request);
}

// Frames of other rooms wait until what was held back has left.
TEST_F(Alone, NothingOvertakesControlFrames) {
  transport_.is_full = true;
  Peer& peer = *engine_.peer(1);
  engine_.links().control(peer, header_of(Kind::acknowledge, 0), nullptr);
  ASSERT_FALSE(peer.backlog.controls.empty());
  transport_.is_full = false;
  const FrameHeader other = header_of(Kind::finished, 0);
  EXPECT_EQ(engine_.links().push(peer, other, nullptr, transports::Urgency::control), Push::full);
  engine_.advance();
  EXPECT_TRUE(peer.backlog.controls.empty());
  EXPECT_EQ(engine_.links().push(peer, other, nullptr, transports::Urgency::control), Push::done);
}

// A frame of another room may be as long as comes whole: what waits is a copy of all of it.
TEST_F(Alone, ALongControlFrameWaitsWithItsBody) {
  Peer& peer = *engine_.peer(1);
  std::vector<char> body(transports::always_whole, 'w');
  transport_.is_full = true;
  engine_.links().control(peer, header_of(Kind::acknowledge, body.size()), body.data());
  ASSERT_FALSE(peer.backlog.controls.empty());
  std::fill(body.begin(), body.end(), 'x');  // the caller's again at once
  const char* kept = peer.backlog.controls.first()->body();
  EXPECT_EQ(std::count(kept, kept + transports::always_whole, 'w'), transports::always_whole);
  transport_.is_full = false;
  EXPECT_TRUE(engine_.advance());
  EXPECT_TRUE(peer.backlog.controls.empty());
}

// A window is open: whatever comes is to wake the message thread, and nobody waits for an end.
TEST_F(Alone, WhoListensIsIdle) {
  const int64_t before = engine_.handoff().pending;
  engine_.listen(1);
  EXPECT_EQ(engine_.handoff().pending, before + 1);
  EXPECT_TRUE(engine_.is_idle());
  engine_.listen(-1);
  EXPECT_EQ(engine_.handoff().pending, before);
}

// Who waits until nobody is busy, as MPI_Finalize does, sleeps after a look that moved nothing.
TEST_F(Alone, ALookAfterWhichNobodyIsBusyHasMovedSomething) {
  transport_.is_full = true;
  engine_.links().control(*engine_.peer(1), header_of(Kind::acknowledge, 0), nullptr);
  ASSERT_FALSE(engine_.is_idle());
  engine_.left(1);  // what it has not heard is dropped
  ASSERT_FALSE(engine_.is_idle());
  EXPECT_TRUE(engine_.advance());
  EXPECT_TRUE(engine_.is_idle());
  EXPECT_FALSE(engine_.advance());
}

#if defined(HEADWAY_DEBUG)
using AloneDeathTest = Alone;

TEST_F(AloneDeathTest, AQueuedMessageIsNotGivenBack) {
  ASSERT_TRUE(frame(header_of(Kind::eager, 4), "abcd"));
  Arrived* message = engine_.unexpected().probe({2, 1, 7});
  ASSERT_NE(message, nullptr);
  EXPECT_DEATH(engine_.unexpected().give(message), "does not hold");
  engine_.unexpected().remove(message);
  engine_.unexpected().give(message);
}

TEST_F(AloneDeathTest, AnEagerMessageHasItsBytes) {
  ASSERT_TRUE(frame(header_of(Kind::eager, 4), "abcd"));
  Arrived* message = engine_.unexpected().probe({2, 1, 7});
  ASSERT_NE(message, nullptr);
  message->handshake = true;
  EXPECT_DEATH(receive(1, 7), "does not hold");
  message->handshake = false;
  engine_.give_request(receive(1, 7));
}

TEST_F(AloneDeathTest, ARequestThatIsLetGoIsClosed) {
  Request* request = landing();
  EXPECT_DEATH(engine_.release().let_user_go(request), "does not hold");
}

TEST_F(AloneDeathTest, WhatATransportCannotDoIsNotAskedFor) {
  EXPECT_DEATH(transport_.expect(1, 100), "does not hold");
  EXPECT_DEATH((void)transport_.is_pressed(1), "does not hold");
}

TEST(OrderDeathTest, OnlyPagesOfTheMessageAreAskedFor) {
  Order* order = Order::make(10, 0);
  ASSERT_NE(order, nullptr);
  EXPECT_DEATH(order->ask(10, false), "does not hold");
  EXPECT_DEATH((void)order->is_taken(10), "does not hold");
  Order::drop(order);
}

TEST(PiecesDeathTest, WhatMovesIsWhatComesNext) {
  Transfer transfer;
  transfer.total = 1000;
  transfer.head = 10;
  EXPECT_DEATH(note_moved(transfer, 10, 20), "does not hold");  // the edge first
  note_moved(transfer, 0, 10);
  EXPECT_DEATH(note_moved(transfer, 10, 991), "does not hold");
  EXPECT_DEATH(note_moved(transfer, 30, 20), "does not hold");
  note_moved(transfer, 10, 990);
  EXPECT_EQ(transfer.moved, transfer.total);
}

TEST(UserMemoryDeathTest, HasSoManyBytes) {
  char bytes[10] = {}, out[10];
  const UserMemory memory(bytes, sizeof bytes);
  memory.read(2, out, 8);
  EXPECT_DEATH(memory.read(2, out, 9), "does not hold");
  EXPECT_DEATH((void)memory.feed(11, 0), "does not hold");
}

TEST(ProfitDeathTest, WhatIsLearntIsOfARelease) {
  const auto profit = std::make_unique<Profit>();
  EXPECT_DEATH(profit->learn(0, {}), "does not hold");
}

TEST(ReachDeathTest, WhoeverAsksStandsInIt) {
  base::Pool<Request> pool;
  Reach reach(pool);
  char memory[100];
  Request* request = pool.take();
  request->memory = UserMemory(memory, sizeof memory);
  const guard::Range pages = guard::Guard::around(memory, sizeof memory);
  EXPECT_DEATH((void)reach.is_free(pages, request, nullptr), "does not hold");
}
#endif

}  // namespace
}  // namespace headway::protocols
