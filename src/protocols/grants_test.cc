// Two engines of one process, connected by TCP: several long messages at once, whose receives may
// be released. They come one after the other, in the order in which they are needed, all of them
// come, and what no engine would send is refused.
#include <string>
#include <vector>

#include "protocols/engines_test_pair.h"

namespace headway::protocols {
namespace {

constexpr uint64_t size = 3'000'017;
constexpr uint64_t both_edges = 2 * 4096;  // a message's, at most

struct Message {
  std::vector<char> out, in;
  Request *send = nullptr, *receive = nullptr;
};

class Grants : public TwoEngines {
 protected:
  void SetUp() override {
    settings::Settings settings[2];
    settings[0].early_release = 0;  // one process can trap calls for one engine
    settings[1].early_release = 1;
    settings[1].release_threshold_us = 0;  // every long message is worth it
    start(settings);
    if (HasFatalFailure()) return;
    if (!receiver().release().may_release()) GTEST_SKIP() << "no pages can be closed here";
  }

  static Transfer transfer(Engine& engine, const Request* request) {
    return request->has(Mark::transfer) ? engine.transfer(*request) : Transfer{};
  }
  uint64_t come(const Message& message) const {
    const Transfer come = transfer(receiver(), message.receive);
    return message.receive->done ? message.in.size() : come.moved + come.partial;
  }
  uint64_t sent(const Message& message) const { return transfer(sender(), message.send).moved; }
  // For its grant, on either side.
  bool waits(const Message& message) const {
    return transfer(receiver(), message.receive).withheld;
  }
  bool send_waits(const Message& message) const {
    return transfer(sender(), message.send).withheld;
  }

  // Posts them in order, sends them the other way round.
  void begin(int count, uint64_t bytes = size) {
    messages_ = std::vector<Message>(size_t(count));
    for (int i = 0; i < count; ++i) {
      Message& message = messages_[size_t(i)];
      message.out.resize(bytes);
      for (uint64_t at = 0; at < bytes; at += 61) message.out[at] = char(random_());
      message.in.assign(bytes, 0);
      message.receive = take(1, RequestKind::receive, message.in, i);
      receiver().start_receive(message.receive);
    }
    for (int i = count; i-- > 0;) {
      Message& message = messages_[size_t(i)];
      message.send = take(0, RequestKind::send, message.out, i);
      sender().start_send(message.send);
    }
  }
  bool all_landing() const {
    for (const Message& message : messages_) {
      if (come(message) == 0) return false;
    }
    return true;
  }
  void end() {
    for (Message& message : messages_) {
      ASSERT_TRUE(run_until([&] { return message.send->done && message.receive->done; }))
          << state();
      EXPECT_EQ(message.in, message.out);
      sender().give_request(message.send);
      receiver().give_request(message.receive);
    }
    EXPECT_EQ(receiver().counters().garbage + sender().counters().garbage, 0u);
  }
  std::string state() const {
    std::string text;
    for (const Message& message : messages_) {
      text += "sent " + std::to_string(sent(message)) + ", come " + std::to_string(come(message)) +
              (send_waits(message) ? ", withheld" : "") +
              (waits(message) ? ", to be granted" : "") + "\n";
    }
    return text;
  }
  FrameHeader grant(const Message& message) const {
    FrameHeader header;
    header.kind = uint8_t(Kind::grant);
    header.word = wire_id(message.send->pool_index, message.send->generation);
    return header;
  }

  std::vector<Message> messages_;
};

TEST_F(Grants, OneAfterTheOtherInTheOrderOfTheirReceives) {
  begin(6);
  // All edges come at once; beyond them no more than two come at a time, those posted last first
  // here, since they were announced first, then in order.
  ASSERT_TRUE(run_until([&] { return all_landing(); }));
  std::vector<size_t> order;
  std::vector<bool> seen(messages_.size());
  size_t most = 0;
  ASSERT_TRUE(run_until([&] {
    size_t now = 0, over = 0;
    for (size_t i = 0; i < messages_.size(); ++i) {
      const uint64_t there = come(messages_[i]);
      over += there == size;
      now += there > both_edges && there + (16 << 10) < size;
      if (there <= both_edges || seen[i]) continue;
      seen[i] = true;
      order.push_back(i);
    }
    most = now > most ? now : most;
    return over == messages_.size();
  }));
  EXPECT_LE(most, 3u) << "the two, and one that has all but its last pages";
  EXPECT_EQ(receiver().counters().withheld, 4u);
  EXPECT_EQ(std::vector<size_t>(order.begin() + 2, order.end()), (std::vector<size_t>{0, 1, 2, 3}));
  end();
}

TEST_F(Grants, WhoIsWaitedForComesAtOnce) {
  begin(5);
  ASSERT_TRUE(run_until([&] { return all_landing(); }));
  Message& last = messages_[2];
  ASSERT_TRUE(waits(last));
  receiver().note_wait(last.receive);
  EXPECT_FALSE(waits(last));
  EXPECT_TRUE(waits(messages_[1]));  // later one of the first may be over, and tell a rate
  ASSERT_TRUE(run_until([&] { return come(last) > both_edges; }));
  end();
}

TEST_F(Grants, WhoLooksMayLookAtAny) {
  begin(5);
  ASSERT_TRUE(run_until([&] { return all_landing(); }));
  receiver().note_look();
  for (const Message& message : messages_) EXPECT_FALSE(waits(message));
  end();
}

TEST_F(Grants, OfManyAtOnceAllCome) {
  for (int round = 0; round < 10; ++round) {
    begin(2 + int(random_() % 20), 20'000 + random_() % 400'000);
    const auto all = [&] {
      for (const Message& message : messages_) {
        if (!message.send->done || !message.receive->done) return false;
      }
      return true;
    };
    ASSERT_TRUE(run_until([&] {
      if (random_() % 50 == 0) receiver().note_look();
      Request* receive = messages_[random_() % messages_.size()].receive;
      if (random_() % 20 == 0 && !receive->done) receiver().note_wait(receive);
      return all();
    }));
    end();
  }
}

TEST_F(Grants, WhatWasNotWithheldIsNotGranted) {
  begin(4);
  ASSERT_TRUE(run_until([&] { return all_landing(); }));
  const Message *withheld = nullptr, *streams = nullptr;
  for (const Message& message : messages_) {
    (waits(message) ? withheld : streams) = &message;
  }
  ASSERT_TRUE(withheld && streams);
  FrameHeader long_one = grant(*withheld);
  char body[8] = {};
  long_one.length = sizeof body;
  EXPECT_FALSE(sender().frame(1, long_one, body));
  EXPECT_FALSE(sender().frame(1, grant(*streams), nullptr));
  FrameHeader stranger = grant(*withheld);
  stranger.word += 1u << id_index_bits;
  EXPECT_FALSE(sender().frame(1, stranger, nullptr));
  // A demand does not open it either.
  FrameHeader demand = grant(*withheld);
  demand.kind = uint8_t(Kind::demand);
  demand.context = sender().transfer(*withheld->send).head;
  EXPECT_TRUE(sender().frame(1, demand, nullptr));
  EXPECT_TRUE(send_waits(*withheld));
  sender().counters().garbage = 0;
  end();
}

// A wait finds that one may be closed at its edges, and then, closing others, that pages cost more
// than it is worth. What has come of it is told to nobody again: it would stay closed for ever.
TEST_F(Grants, WhatHasBegunToComeIsNotForeseen) {
  begin(1);
  Request* receive = messages_[0].receive;
  ASSERT_TRUE(run_until([&] { return receiver().release().is_ready(receive); }));
  ASSERT_FALSE(receiver().release().foresee(receive));
  // Closed it would be, where calls can be trapped; here, where they may not be, nobody tried.
  EXPECT_EQ(receiver().release().closings().closed + receiver().release().counters.untrapped, 0u);
  end();
}

}  // namespace
}  // namespace headway::protocols
