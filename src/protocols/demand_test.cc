// Two engines of one process, connected by TCP: pages of a message that streams are asked for in
// any order, and what no engine would ask for or send is refused. The messages are longer than all
// that sockets hold.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "protocols/engine.h"

namespace headway::protocols {
namespace {

constexpr uint64_t page = 4096;

uint64_t base_seed() {
  const char* given = getenv("HEADWAY_TEST_SEED");
  return given ? strtoull(given, nullptr, 0) : 1;
}

std::string* fatal_story;
void on_fatal(Outcome, uint32_t, const char* story) { *fatal_story += story; }

class Demand : public ::testing::Test {
 protected:
  void SetUp() override {
    fatal_story = &story_;
    settings::Settings settings;
    settings.progress = 0;
    for (uint32_t i = 0; i < 2; ++i) {
      engines_[i] = std::make_unique<Engine>();
      Engine& engine = *engines_[i];
      ASSERT_EQ(engine.prepare(settings, i, 2, on_fatal), Outcome::ok);
      tcp::Config config;
      config.rank = i;
      config.size = 2;
      config.interface = "lo";
      ASSERT_EQ(engine.tcp.start(config, &engine), Outcome::ok) << engine.tcp.explanation();
    }
    for (uint32_t i = 0; i < 2; ++i) {
      char card[1024];
      ASSERT_NE(engines_[1 - i]->tcp.card(card, sizeof card), 0u);
      ASSERT_EQ(engines_[i]->tcp.set_card(1 - i, card), Outcome::ok);
      ASSERT_EQ(engines_[i]->use_tcp(), Outcome::ok);
      engines_[i]->handoff.enter();
    }
  }
  void TearDown() override {
    for (auto& engine : engines_) {
      engine->tcp.abandon();
      engine->handoff.leave();
      engine->handoff.stop();
    }
    EXPECT_EQ(story_, "");
  }

  Engine& sender() { return *engines_[0]; }
  Engine& receiver() { return *engines_[1]; }

  Request* take(uint32_t rank, RequestKind kind, std::vector<char>& buffer) {
    Request* request = engines_[rank]->take_request();
    request->kind = kind;
    request->mode = Mode::standard;
    request->held_by_user = true;
    request->memory = UserMemory(buffer.data(), buffer.size());
    request->key = {2, 0, 5};
    request->peer = &engines_[rank]->peer(1 - rank);
    return request;
  }

  void start(uint64_t bytes) {
    out_.resize(bytes);
    for (char& byte : out_) byte = char(random_());
    in_.assign(bytes, 0);
    receive_ = take(1, RequestKind::receive, in_);
    send_ = take(0, RequestKind::send, out_);
    receiver().start_receive(receive_);
    sender().start_send(send_);
  }
  // Starts a message and lets it run until its first bytes have left.
  void begin(uint64_t bytes) {
    start(bytes);
    for (int turn = 0; turn < 1'000'000 && send_->stage != Stage::streaming; ++turn) both();
    ASSERT_EQ(int(send_->stage), int(Stage::streaming));
  }
  void both() {
    receiver().advance();
    sender().advance();
  }
  bool is_over() const { return send_->done && receive_->done; }
  void end() {
    for (int turn = 0; turn < 10'000'000 && !is_over(); ++turn) both();
    ASSERT_TRUE(is_over());
    EXPECT_EQ(memcmp(in_.data(), out_.data(), in_.size()), 0);
    sender().give_request(send_);
    receiver().give_request(receive_);
  }
  // From now on the receiver takes frames in any order.
  void expect_any_order() {
    receive_->order = Order::make(receive_->total / page, receive_->begun / page);
  }
  FrameHeader demand(uint64_t offset, bool backwards) const {
    FrameHeader header;
    header.kind = uint8_t(Kind::demand);
    header.flags = backwards ? flag_yes : 0;
    header.word = wire_id(send_->pool_index, send_->generation);
    header.context = offset;
    return header;
  }
  FrameHeader data(uint64_t offset, uint32_t length) const {
    FrameHeader header;
    header.kind = uint8_t(Kind::data);
    header.word = wire_id(receive_->pool_index, receive_->generation);
    header.context = offset;
    header.length = length;
    return header;
  }

  std::mt19937_64 random_{base_seed()};
  std::string story_;
  std::unique_ptr<Engine> engines_[2];
  std::vector<char> out_, in_;
  Request *send_ = nullptr, *receive_ = nullptr;
};

TEST_F(Demand, AnyPageAtAnyTime) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t pages = 2000 + random_() % 3000;
    begin(pages * page);
    if (HasFatalFailure()) return;
    expect_any_order();
    while (!is_over()) {
      if (random_() % 4) receiver().advance();
      if (random_() % 4) sender().advance();
      if (random_() % 4 == 0) continue;
      ASSERT_TRUE(sender().frame(1, demand(random_() % pages * page, random_() % 2), nullptr));
    }
    end();
  }
  EXPECT_GT(sender().counters.heeded, 10u);
  EXPECT_EQ(receiver().counters.garbage, 0u);
}

TEST_F(Demand, ThePageComesNext) {
  begin(5000 * page);
  expect_any_order();
  const uint64_t gone = send_->moved / page;
  ASSERT_LT(gone, 4990u) << "all has left before it can be asked for";
  ASSERT_TRUE(sender().frame(1, demand(4990 * page, false), nullptr));
  ASSERT_NE(send_->order, nullptr);
  EXPECT_EQ(send_->order->next().first, 4990u);
  EXPECT_EQ(send_->order->next().pages, 1u);
  end();
}

// Then those on the way that the program goes, in pieces that can be overtaken.
TEST_F(Demand, AndThoseBeforeIt) {
  begin(5000 * page);
  expect_any_order();
  ASSERT_TRUE(sender().frame(1, demand(4990 * page, true), nullptr));
  EXPECT_GT(sender().peer(1).impatient, 0u);
  // A page that has gone is on its way: nothing changes for it.
  ASSERT_TRUE(sender().frame(1, demand(0, false), nullptr));
  EXPECT_EQ(send_->order->next().first, 4990u);
  for (int turn = 0; turn < 1'000'000 && !send_->order->is_taken(4990); ++turn) both();
  ASSERT_TRUE(send_->order->is_taken(4990));
  EXPECT_FALSE(send_->order->is_taken(4991));
  EXPECT_LT(send_->order->next().first, 4990u);
  EXPECT_GT(send_->order->next().first, 4000u);
  end();
}

TEST_F(Demand, ItsMessageGoesFirst) {
  start(4000 * page);
  Request *first_send = send_, *first_receive = receive_;
  std::vector<char> first_out, first_in;
  first_out.swap(out_);
  first_in.swap(in_);
  begin(4000 * page);
  expect_any_order();
  Peer& peer = sender().peer(1);
  ASSERT_EQ(peer.streams.first(), first_send);
  ASSERT_TRUE(sender().frame(1, demand(3990 * page, false), nullptr));
  EXPECT_EQ(peer.streams.first(), send_);
  end();
  send_ = first_send;
  receive_ = first_receive;
  in_.swap(first_in);
  out_.swap(first_out);
  end();
}

TEST_F(Demand, NotBeforeItStreams) {
  out_.assign(4000 * page, 'o');
  in_.assign(4000 * page, 0);
  receive_ = take(1, RequestKind::receive, in_);
  send_ = take(0, RequestKind::send, out_);
  sender().start_send(send_);
  ASSERT_NE(int(send_->stage), int(Stage::streaming));
  EXPECT_TRUE(sender().frame(1, demand(100 * page, false), nullptr));
  EXPECT_EQ(send_->order, nullptr);
  EXPECT_EQ(sender().counters.heeded, 0u);
  receiver().start_receive(receive_);
  end();
}

TEST_F(Demand, WhatTheMessageDoesNotHaveIsRefused) {
  begin(4000 * page);
  EXPECT_FALSE(sender().frame(1, demand(page + 1, false), nullptr));
  EXPECT_FALSE(sender().frame(1, demand(4000 * page, false), nullptr));
  EXPECT_FALSE(sender().frame(1, demand(~0ull - 4095, false), nullptr));
  FrameHeader long_one = demand(0, false);
  char body[8] = {};
  long_one.length = sizeof body;
  EXPECT_FALSE(sender().frame(1, long_one, body));
  FrameHeader stranger = demand(0, false);
  stranger.word = wire_id(send_->pool_index, send_->generation + 1);
  EXPECT_TRUE(sender().frame(1, stranger, nullptr)) << "it may have come too late";
  EXPECT_EQ(sender().counters.heeded, 0u);
  end();
  begin(4000 * page + 7);
  EXPECT_FALSE(sender().frame(1, demand(0, false), nullptr)) << "no whole pages between its edges";
  end();
}

TEST_F(Demand, WhatHasNotBeenAskedForIsRefused) {
  begin(4000 * page);
  const std::string body(4000 * page + 1, 'x');
  for (int turn = 0; turn < 1'000'000 && receive_->begun < page; ++turn) receiver().advance();
  // It comes in order, until it is asked for in another one; never twice, never beyond the end.
  EXPECT_FALSE(receiver().frame(0, data(3900 * page, page), body.data()));
  const uint64_t next = receive_->begun;
  EXPECT_FALSE(receiver().frame(0, data(next, 0), body.data()));
  EXPECT_FALSE(receiver().frame(0, data(next, uint32_t(4000 * page - next + 1)), body.data()));
  expect_any_order();
  EXPECT_FALSE(receiver().frame(0, data(3900 * page + 8, page), body.data()));
  EXPECT_FALSE(receiver().frame(0, data(3900 * page, 100), body.data()));
  EXPECT_FALSE(receiver().frame(0, data(3900 * page, page + 1), body.data()));
  EXPECT_FALSE(receiver().frame(0, data(4000 * page, page), body.data()));
  EXPECT_FALSE(receiver().frame(0, data(0, page), body.data()));
  EXPECT_FALSE(receiver().frame(0, data(0, 0), body.data()));
  end();
}

}  // namespace
}  // namespace headway::protocols
