// Two engines of one process, connected by TCP: long messages that come before their receive, and
// are fetched into the library's memory.
#include <cstring>
#include <string>
#include <vector>

#include "protocols/prefetch/prefetch_test_pair.h"

namespace headway::protocols {
namespace {

enum Wish : uint64_t { automatic, always, off };

class Fetching : public TwoEngines {
 protected:
  static constexpr size_t size = 3'000'001;

  void SetUp() override { start_with(settings::Settings{}); }
  void start_with(settings::Settings receivers) {
    settings::Settings settings[2];
    settings[0].early_release = receivers.early_release = 0;
    receivers.prefetch_unexpected = wish();
    settings[1] = receivers;
    start(settings);
  }
  virtual uint64_t wish() const { return always; }

  std::vector<char> random_bytes(size_t n) {
    std::vector<char> bytes(n);
    for (char& byte : bytes) byte = char(random_());
    return bytes;
  }
  Request* send(std::vector<char>& out, Mode mode = Mode::standard) {
    Request* request = take(0, RequestKind::send, out, 1);
    request->mode = mode;
    sender().start_send(request);
    return request;
  }
  Request* receive(std::vector<char>& in) {
    Request* request = take(1, RequestKind::receive, in, 1);
    receiver().start_receive(request);
    return request;
  }
  void drive(int n) {
    for (int i = 0; i < n; ++i) both();
  }
  // Its end, whatever `outcome` it has.
  void end(Request* send, Request* receive, Outcome outcome = Outcome::ok) {
    ASSERT_TRUE(run_until([&] { return send->done && receive->done; }))
        << "stages " << int(send->stage()) << " and " << int(receive->stage());
    EXPECT_EQ(receive->outcome, outcome);
    sender().give_request(send);
    receiver().give_request(receive);
  }
  uint64_t fetched() { return receiver().counters().fetched; }
};

TEST_F(Fetching, AMessageLeavesItsSenderWithoutAReceive) {
  std::vector<char> out = random_bytes(size), in(size);
  Request* sent = send(out);
  ASSERT_TRUE(run_until([&] { return bool(sent->done); }));
  ASSERT_TRUE(run_until([&] { return receiver().is_idle(); }));
  EXPECT_EQ(fetched(), 1u);
  EXPECT_EQ(receiver().unexpected().count(), 1u);
  EXPECT_GE(receiver().unexpected().bytes(), size);
  Request* received = receive(in);
  EXPECT_TRUE(received->done);  // nothing is left to wait for
  EXPECT_EQ(received->status_bytes(), size);
  EXPECT_EQ(received->status_tag, 1);
  end(sent, received);
  EXPECT_EQ(out, in);
  EXPECT_EQ(receiver().unexpected().bytes(), 0u);
  EXPECT_EQ(receiver().counters().messages_received, 1u);
  EXPECT_EQ(receiver().counters().bytes_received, size);
}

// In every state that a message may be in.
TEST_F(Fetching, AReceiveThatComesMeanwhileGetsAllOfIt) {
  int halfway = 0;
  for (int patience = 0; patience < 60; ++patience) {
    std::vector<char> out = random_bytes(size), in(size);
    Request* sent = send(out);
    drive(patience / 3);
    Request* received = receive(in);
    halfway += !received->done && fetched() > uint64_t(halfway);
    end(sent, received);
    ASSERT_EQ(out, in) << patience;
  }
  EXPECT_GT(fetched(), 10u);
  EXPECT_GT(halfway, 0);
  EXPECT_EQ(receiver().unexpected().bytes(), 0u);
  EXPECT_EQ(sender().counters().garbage + receiver().counters().garbage, 0u);
}

TEST_F(Fetching, MessagesComeInTheirOrder) {
  std::vector<char> outs[6], ins[6];
  Request *sent[6], *received[6];
  for (int i = 0; i < 6; ++i) {
    outs[i] = random_bytes(i % 2 ? 100 : size / 4);
    ins[i].resize(outs[i].size());
    sent[i] = send(outs[i]);
    drive(3);
  }
  for (int i = 0; i < 6; ++i) received[i] = receive(ins[i]);
  for (int i = 0; i < 6; ++i) {
    end(sent[i], received[i]);
    EXPECT_EQ(outs[i], ins[i]) << i;
  }
}

TEST_F(Fetching, AProbedMessageIsTakenWhileItComes) {
  std::vector<char> out = random_bytes(size), in(size);
  Request* sent = send(out);
  const matching::Key key{2, 0, 1};
  ASSERT_TRUE(run_until([&] { return receiver().unexpected().probe(key) != nullptr; }));
  Arrived* message = receiver().unexpected().take_message(key);
  EXPECT_EQ(message->size, size);
  EXPECT_EQ(fetched(), 1u);
  Request* received = take(1, RequestKind::receive, in, 1);
  receiver().start_matched_receive(received, message);
  end(sent, received);
  EXPECT_EQ(out, in);
}

TEST_F(Fetching, AShorterReceiveGetsWhatItHasRoomFor) {
  for (const int patience : {0, 3, 1000}) {
    std::vector<char> out = random_bytes(size), in(1'000, 7);
    Request* sent = send(out);
    drive(patience);
    Request* received = take(1, RequestKind::receive, in, 1);
    received->memory = UserMemory(in.data(), 900);
    receiver().start_receive(received);
    end(sent, received, Outcome::truncated);
    EXPECT_EQ(0, memcmp(out.data(), in.data(), 900));
    EXPECT_EQ(in[900], 7);
  }
}

TEST_F(Fetching, ASynchronousSendWaitsForItsReceive) {
  std::vector<char> out = random_bytes(size), in(size);
  Request* sent = send(out, Mode::synchronous);
  drive(2000);
  EXPECT_FALSE(sent->done);
  EXPECT_EQ(fetched(), 0u);
  end(sent, receive(in));
  EXPECT_EQ(out, in);
}

// It may be in the library's memory already: then it is too late, and it is received.
TEST_F(Fetching, ASendIsCancelledOnlyIfItWasNotFetched) {
  for (const int patience : {3000, 0, 1, 2, 5}) {  // the first one meets, too
    std::vector<char> out = random_bytes(size), in(size);
    Request* sent = send(out);
    drive(patience);
    sender().cancel(sent);
    ASSERT_TRUE(run_until([&] { return bool(sent->done); }));
    EXPECT_FALSE(sent->cancelled);
    end(sent, receive(in));
    EXPECT_EQ(out, in);
  }
}

class FetchingOff : public Fetching {
  uint64_t wish() const override { return off; }
};
TEST_F(FetchingOff, MessagesStayWithTheirSenders) {
  std::vector<char> out = random_bytes(size), in(size);
  Request* sent = send(out);
  drive(2000);
  EXPECT_FALSE(sent->done);
  EXPECT_EQ(fetched(), 0u);
  end(sent, receive(in));
  EXPECT_EQ(out, in);
}

// A link within the host is fast: a copy more would cost what it brings.
class FetchingAuto : public Fetching {
  uint64_t wish() const override { return automatic; }
};
TEST_F(FetchingAuto, WhatComesFastIsNotFetched) {
  std::vector<char> out = random_bytes(20'000), in(out.size());
  Request* sent = send(out);
  drive(2000);
  EXPECT_EQ(fetched(), 0u);
  end(sent, receive(in));
}

class FetchingWithoutPrefetch : public Fetching {
  void SetUp() override {
    settings::Settings settings;
    settings.prefetch = 0;
    start_with(settings);
  }
};
TEST_F(FetchingWithoutPrefetch, NothingIsFetched) {
  std::vector<char> out = random_bytes(size), in(size);
  Request* sent = send(out);
  drive(2000);
  EXPECT_EQ(fetched(), 0u);
  end(sent, receive(in));
}

// Room for one message, and a little: by the one bound, then by the other.
class FetchingWithLittleRoom : public Fetching, public testing::WithParamInterface<bool> {
  void SetUp() override {
    settings::Settings settings;
    (GetParam() ? settings.prefetch_max : settings.unexpected_max) = size + size / 2;
    start_with(settings);
  }
};
TEST_P(FetchingWithLittleRoom, BeyondItMessagesStayWithTheirSenders) {
  for (uint64_t round = 0; round < 3; ++round) {  // the room comes back
    std::vector<char> outs[2] = {random_bytes(size), random_bytes(size)}, in(size);
    Request* sent[2] = {send(outs[0]), send(outs[1])};
    drive(3000);
    EXPECT_EQ(fetched(), round + 1);
    EXPECT_TRUE(sent[0]->done);
    EXPECT_FALSE(sent[1]->done);
    for (int i = 0; i < 2; ++i) {
      end(sent[i], receive(in));
      EXPECT_EQ(outs[i], in) << i;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Bounds, FetchingWithLittleRoom, testing::Bool());

// Together with what comes before its send.
class PrefetchingAndFetching : public Prefetching {
 protected:
  void change(settings::Settings& receivers) override { receivers.prefetch_unexpected = always; }
};

TEST_F(PrefetchingAndFetching, TheRestOfWhatCameEarlyIsFetched) {
  Buffer out(long_size), in(long_size);
  learn(out, in);
  ASSERT_TRUE(come_early_for_nobody(out, in));
  const size_t half = long_size / 2;
  for (size_t at = 0; at < half; at += 64) out[at] = char(out[at] + 1);
  const uint64_t before = used(), fetched = receiver().counters().fetched;
  Request* request = send(out);
  ASSERT_TRUE(run_until([&] { return bool(request->done); }));
  EXPECT_EQ(receiver().counters().fetched, fetched + 1);
  EXPECT_GE(used() - before, half - page);
  end(request, post(in));
  EXPECT_EQ(out, in);
}

TEST_F(PrefetchingAndFetching, NoStaleByteIsEverReceived) {
  everything_at_random();
  EXPECT_GT(receiver().counters().fetched, 0u);
}

}  // namespace
}  // namespace headway::protocols
