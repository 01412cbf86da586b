// The line of copies: sends to several peers over links which take what the test lets them, and
// what receivers tell about who else sends to them. One engine; the peers are the test's.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "protocols/engine.h"

namespace headway::protocols {
namespace {

constexpr uint64_t bytes = 256 << 10;
constexpr uint64_t piece = 16 << 10;  // of a copy
constexpr uint32_t ranks = 7;

struct Links : transports::Transport {
  std::array<uint64_t, ranks> data{}, room{};  // by peer: bytes that went, and may go
  std::vector<uint32_t> order;                 // of data frames: their peers
  std::vector<int32_t> told;                   // with what asks for messages

  uint32_t caps() const override { return transports::in_place; }
  Outcome connect(uint32_t, uint32_t& frame_max) override {
    frame_max = 64 << 10;
    return Outcome::ok;
  }
  Push push(uint32_t peer, const FrameHeader& header, const void*, uint32_t, const Feed*, uint64_t,
            transports::Urgency) override {
    if (Kind(header.kind) == Kind::clear_send) told.push_back(header.source);
    if (Kind(header.kind) != Kind::data) return Push::done;
    if (room[peer] < header.length) return Push::full;
    room[peer] -= header.length;
    data[peer] += header.length;
    order.push_back(peer);
    return Push::done;
  }
  bool writable(uint32_t) const override { return true; }
  bool reap(uint64_t) override { return false; }
  bool reap_peer(uint32_t, uint64_t) override { return false; }
  uint64_t rate(uint32_t) const override { return 12'500'000; }  // slow: sends are copied at once
};

class Line : public testing::Test {
 protected:
  void SetUp() override {
    settings::Settings settings;
    settings.early_release = settings.prefetch = 0;
    settings.progress = false;
    ASSERT_EQ(engine_.prepare(settings, 0, ranks, [](Outcome, uint32_t, const char*) {}),
              Outcome::ok);
    ASSERT_EQ(engine_.use(links_), Outcome::ok);
    engine_.handoff().enter();
    engine_.handoff().driver = progress::Driver::passing;
    buffer_.assign(bytes, 'o');
  }
  // All that was sent goes, whatever stood before.
  void TearDown() override {
    links_.room.fill(1 << 30);
    for (int i = 0; i < 100; ++i) engine_.advance();
    uint64_t sent = 0;
    for (uint64_t one : links_.data) sent += one;
    EXPECT_EQ(sent, sent_ * bytes);
    EXPECT_EQ(engine_.copies().aside_bytes(), 0u);
    engine_.handoff().leave();
    engine_.handoff().stop();
  }

  // A send that is copied.
  Request* copy(uint32_t peer) {
    Request* send = engine_.take_request();
    send->kind = RequestKind::send;
    send->held_by_user = true;
    send->blocking = true;
    send->memory = UserMemory(buffer_.data(), bytes);
    send->key = {2, 0, int(peer)};
    send->peer = engine_.peer(int(peer));
    EXPECT_TRUE(engine_.copies().copy_aside(send));
    engine_.start_send(send);
    ++sent_;
    return send;
  }
  // Its receiver asks for it; so many send to that one.
  void ask_for(const Request* send, int32_t sharers) {
    ClearSend clear{};
    clear.length = bytes;
    clear.receive = id_of(send);
    FrameHeader header;
    header.kind = uint8_t(Kind::clear_send);
    header.length = sizeof clear;
    header.word = id_of(send);
    header.source = sharers;
    ASSERT_TRUE(engine_.frame(send->peer->number, header, reinterpret_cast<const char*>(&clear)));
  }
  void send_copy(uint32_t peer, int32_t sharers) { ask_for(copy(peer), sharers); }
  // Each link takes that much; all have their turn.
  void take(uint64_t room) {
    links_.room.fill(room);
    for (uint32_t i = 0; i < ranks; ++i) engine_.advance();
  }
  uint32_t served() const {
    return uint32_t(std::count_if(links_.data.begin(), links_.data.end(),
                                  [](uint64_t went) { return went != 0; }));
  }

  // A receive, and its message is announced.
  Request* receive(uint32_t peer) {
    Request* receive = engine_.take_request();
    receive->kind = RequestKind::receive;
    receive->held_by_user = true;
    receive->memory = UserMemory(buffer_.data(), bytes);
    receive->key = {2, int(peer), 1};
    receive->peer = engine_.peer(int(peer));
    engine_.start_receive(receive);
    RequestSend body{};
    body.size = bytes;
    FrameHeader header;
    header.kind = uint8_t(Kind::request_send);
    header.length = sizeof body;
    header.tag = 1;
    header.source = int(peer);
    header.context = 2;
    EXPECT_TRUE(engine_.frame(peer, header, reinterpret_cast<const char*>(&body)));
    return receive;
  }
  void come(Request* receive) {
    for (uint64_t at = 0; at < bytes; at += 64 << 10) {
      FrameHeader header;
      header.kind = uint8_t(Kind::data);
      header.word = id_of(receive);
      header.context = at;
      header.length = 64 << 10;
      ASSERT_TRUE(engine_.frame(receive->peer->number, header, buffer_.data()));
    }
    EXPECT_TRUE(receive->done.load());
    engine_.give_request(receive);
  }

  Links links_;
  mutable Engine engine_;
  std::vector<char> buffer_;
  uint64_t sent_ = 0;
};

// A master hands out slices: the first of them is not to come as late as the last.
TEST_F(Line, OneAfterTheOtherWhereReceiversHaveOneSender) {
  for (uint32_t peer = 1; peer < ranks; ++peer) send_copy(peer, 1);
  for (int i = 0; i < 16; ++i) take(piece);
  EXPECT_EQ(links_.data[1], bytes);
  EXPECT_TRUE(std::is_sorted(links_.order.begin(), links_.order.end()));
}

// A neighbour's link is shared: what is for others goes meanwhile, as much as it leaves.
TEST_F(Line, TheNextGoBesideOneWhoseReceiverIsShared) {
  send_copy(1, 2);
  for (uint32_t peer = 2; peer < ranks; ++peer) send_copy(peer, 4);
  take(piece);
  EXPECT_EQ(served(), 3u);  // a half and two quarters
  for (uint32_t peer = 1; peer <= 3; ++peer) EXPECT_EQ(links_.data[peer], piece);
}

// And one that does not get on at all holds the others no longer.
TEST_F(Line, OneThatStandsStillHoldsNobody) {
  send_copy(1, 2);
  send_copy(2, 1);
  send_copy(3, 1);
  links_.room.fill(1 << 20);
  links_.room[1] = 0;
  for (int i = 0; i < 20; ++i) engine_.advance();
  EXPECT_EQ(links_.data[1], 0u);
  EXPECT_EQ(links_.data[2], bytes);
  EXPECT_EQ(links_.data[3], bytes);
}

TEST_F(Line, NoMoreThanFourWhateverIsTold) {
  for (uint32_t peer = 1; peer < ranks; ++peer) send_copy(peer, 2'000'000'000);
  take(piece);
  EXPECT_EQ(served(), 4u);
}

// All that a message has are its edges, or some of it has come: then there is nothing to withhold,
// and a grant of it would find it in a list.
TEST_F(Line, WhatCannotBeWithheldIsGarbage) {
  Request* send = copy(1);
  const ClearSend wrong[] = {{0, bytes, 0, id_of(send), Way::stream, uint32_t(bytes), 0},
                             {piece, bytes, 0, id_of(send), Way::stream, 0, 0}};
  for (const ClearSend& clear : wrong) {
    FrameHeader header;
    header.kind = uint8_t(Kind::clear_send);
    header.flags = flag_yes;
    header.length = sizeof clear;
    header.word = id_of(send);
    const uint64_t before = engine_.counters().garbage;
    ASSERT_TRUE(engine_.frame(1, header, reinterpret_cast<const char*>(&clear)));
    EXPECT_EQ(engine_.counters().garbage, before + 1);
    EXPECT_EQ(send->stage(), Stage::requested);
  }
  ask_for(send, 1);
}

// What is no number of ranks is taken for a link that is not shared.
TEST_F(Line, NonsenseIsOne) {
  send_copy(1, -5);
  send_copy(2, 0);
  take(piece);
  EXPECT_EQ(served(), 1u);
}

// Those to one peer share its link in any case.
TEST_F(Line, OneAtATimeToOnePeer) {
  send_copy(1, 2);
  send_copy(1, 2);
  send_copy(2, 2);
  take(piece);
  EXPECT_EQ(links_.data[1], piece);
  EXPECT_EQ(links_.data[2], piece) << "two of the shares are not those to rank 1";
}

// Those to one peer go in the order in which it asks: it may need the last one first.
TEST_F(Line, OfOnePeerWhatItAskedForFirstGoesFirst) {
  Request* first = copy(1);
  Request* second = copy(1);
  Request* third = copy(1);
  Request* other = copy(2);
  ask_for(third, 2);
  take(piece);
  links_.room = {};
  ask_for(first, 2);
  ask_for(other, 2);  // the line decides anew
  ask_for(second, 2);
  take(8 * piece);
  EXPECT_EQ(engine_.transfer(*third).moved, 9 * piece);
  EXPECT_EQ(engine_.transfer(*other).moved, 8 * piece);
  EXPECT_EQ(engine_.transfer(*first).moved, 0u);
  take(8 * piece);
  EXPECT_EQ(third->done.load(), Done::whole);
  EXPECT_EQ(engine_.transfer(*first).moved, 1 * piece);
  EXPECT_EQ(engine_.transfer(*second).moved, 0u);
}

// A long line to a peer that has one keeps nobody else's from going.
TEST_F(Line, ManyToOnePeerHoldNobody) {
  constexpr int many = 40;
  std::vector<Request*> copies;
  for (int i = 0; i < many; ++i) copies.push_back(copy(1));
  Request* other = copy(2);
  links_.room.fill(piece);
  links_.room[1] = 0;
  ask_for(copies[0], 2);
  ask_for(other, 2);
  for (int i = 1; i < many; ++i) {
    ask_for(copies[size_t(i)], 2);
    links_.room[2] = piece;
    engine_.advance();
  }
  links_.room[2] = bytes;
  for (int i = 0; i < 20; ++i) engine_.advance();
  EXPECT_EQ(links_.data[1], 0u);
  EXPECT_EQ(links_.data[2], bytes);
}

// One that has the whole link to itself sends back all that are later, not the last alone.
TEST_F(Line, BesideAWholeShareNothingGoes) {
  Request* first = copy(3);
  send_copy(1, 2);
  send_copy(2, 2);
  take(piece);
  links_.room = {};
  ask_for(first, 1);
  take(piece);
  EXPECT_EQ(links_.data[3], piece);
  EXPECT_EQ(links_.data[1], piece);
  EXPECT_EQ(links_.data[2], piece);
}

// The order of the sends, also where receivers ask in another one.
TEST_F(Line, WhatWasSentSoonerGoesFirst) {
  Request* first = copy(1);
  send_copy(2, 1);
  take(piece);
  EXPECT_EQ(links_.data[2], piece);
  links_.room = {};
  ask_for(first, 1);
  take(2 * piece);
  EXPECT_EQ(links_.data[1], 2 * piece);
  EXPECT_EQ(links_.data[2], piece);
}

TEST_F(Line, ReceiversCountWhoSendsToThem) {
  Request* first = receive(1);
  Request* again = receive(1);
  Request* second = receive(2);
  Request* third = receive(3);
  EXPECT_EQ(links_.told, (std::vector<int32_t>{1, 1, 2, 3}));  // two messages of one rank are one
  come(first);
  come(again);
  come(third);
  Request* fourth = receive(4);
  EXPECT_EQ(links_.told.back(), 2);
  come(second);
  come(fourth);
  come(receive(5));
  EXPECT_EQ(links_.told.back(), 1);
}

// Whatever is asked for in whatever order, all of it goes.
TEST_F(Line, AllOfItGoes) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<Request*> copied;
  for (int step = 0; step < 400; ++step) {
    if (random() % 3 == 0 && sent_ < 40)
      copied.push_back(copy(1 + uint32_t(random() % (ranks - 1))));
    if (random() % 3 == 0 && !copied.empty()) {
      const size_t one = random() % copied.size();
      ask_for(copied[one], int32_t(random() % 6));
      copied.erase(copied.begin() + ptrdiff_t(one));
    }
    links_.room[random() % ranks] += random() % (4 * piece);
    engine_.advance();
  }
  for (const Request* send : copied) ask_for(send, int32_t(random() % 6));
}

}  // namespace
}  // namespace headway::protocols
