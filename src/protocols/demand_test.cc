// Two engines of one process, connected by TCP: pages of a message that streams are asked for in
// any order, and what no engine would ask for or send is refused. The messages are longer than all
// that sockets hold.
#include <cstring>
#include <string>
#include <vector>

#include "protocols/engines_test_pair.h"
#include "protocols/ways/order.h"

namespace headway::protocols {
namespace {

constexpr uint64_t page = 4096;

class Demand : public TwoEngines {
 protected:
  void SetUp() override {
    settings::Settings settings[2];
    for (auto& one : settings) one.progress = 0;
    start(settings);
  }

  void post(uint64_t bytes) {
    out_.resize(bytes);
    for (char& byte : out_) byte = char(random_());
    in_.assign(bytes, 0);
    receive_ = take(1, RequestKind::receive, in_, 5);
    send_ = take(0, RequestKind::send, out_, 5);
    receiver().start_receive(receive_);
    sender().start_send(send_);
  }
  // Starts a message and lets it run until its first bytes have left.
  void begin(uint64_t bytes) {
    post(bytes);
    for (int round = 0; round < 1'000'000 && send_->stage() != Stage::streaming; ++round) both();
    ASSERT_EQ(int(send_->stage()), int(Stage::streaming));
  }
  bool is_over() const { return send_->done && receive_->done; }
  void end() {
    for (int round = 0; round < 10'000'000 && !is_over(); ++round) both();
    ASSERT_TRUE(is_over());
    EXPECT_EQ(memcmp(in_.data(), out_.data(), in_.size()), 0);
    sender().give_request(send_);
    receiver().give_request(receive_);
  }
  // From now on the receiver takes frames in any order.
  void expect_any_order() {
    Transfer& coming = receiver().transfer(*receive_);
    coming.order = Order::make(coming.total / page, coming.begun / page);
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

  Transfer& going() const { return sender().transfer(*send_); }

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
  EXPECT_GT(sender().counters().heeded, 10u);
  EXPECT_EQ(receiver().counters().garbage, 0u);
}

TEST_F(Demand, ThePageComesNext) {
  begin(5000 * page);
  expect_any_order();
  const uint64_t gone = going().moved / page;
  ASSERT_LT(gone, 4990u) << "all has left before it can be asked for";
  ASSERT_TRUE(sender().frame(1, demand(4990 * page, false), nullptr));
  ASSERT_NE(going().order, nullptr);
  EXPECT_EQ(going().order->next().first, 4990u);
  EXPECT_EQ(going().order->next().pages, 1u);
  end();
}

// Then those on the way that the program goes, in pieces that can be overtaken.
TEST_F(Demand, AndThoseBeforeIt) {
  begin(5000 * page);
  expect_any_order();
  ASSERT_TRUE(sender().frame(1, demand(4990 * page, true), nullptr));
  EXPECT_GT(sender().peer(1)->flow.impatient, 0u);
  // A page that has gone is on its way: nothing changes for it.
  ASSERT_TRUE(sender().frame(1, demand(0, false), nullptr));
  EXPECT_EQ(going().order->next().first, 4990u);
  for (int round = 0; round < 1'000'000 && !going().order->is_taken(4990); ++round) both();
  ASSERT_TRUE(going().order->is_taken(4990));
  EXPECT_FALSE(going().order->is_taken(4991));
  EXPECT_LT(going().order->next().first, 4990u);
  EXPECT_GT(going().order->next().first, 4000u);
  end();
}

TEST_F(Demand, ItsMessageGoesFirst) {
  post(4000 * page);
  Request *first_send = send_, *first_receive = receive_;
  std::vector<char> first_out, first_in;
  first_out.swap(out_);
  first_in.swap(in_);
  begin(4000 * page);
  expect_any_order();
  Peer& peer = *sender().peer(1);
  ASSERT_EQ(peer.backlog.streams.first(), first_send);
  ASSERT_TRUE(sender().frame(1, demand(3990 * page, false), nullptr));
  EXPECT_EQ(peer.backlog.streams.first(), send_);
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
  receive_ = take(1, RequestKind::receive, in_, 5);
  send_ = take(0, RequestKind::send, out_, 5);
  sender().start_send(send_);
  ASSERT_NE(int(send_->stage()), int(Stage::streaming));
  EXPECT_TRUE(sender().frame(1, demand(100 * page, false), nullptr));
  EXPECT_FALSE(send_->has(Mark::transfer));
  EXPECT_EQ(sender().counters().heeded, 0u);
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
  EXPECT_EQ(sender().counters().heeded, 0u);
  end();
  begin(4000 * page + 7);
  EXPECT_FALSE(sender().frame(1, demand(0, false), nullptr)) << "no whole pages between its edges";
  end();
}

TEST_F(Demand, WhatHasNotBeenAskedForIsRefused) {
  begin(4000 * page);
  const std::string body(4000 * page + 1, 'x');
  for (int round = 0; round < 1'000'000 && receiver().transfer(*receive_).begun < page; ++round)
    receiver().advance();
  // It comes in order, until it is asked for in another one; never twice, never beyond the end.
  EXPECT_FALSE(receiver().frame(0, data(3900 * page, page), body.data()));
  const uint64_t next = receiver().transfer(*receive_).begun;
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
