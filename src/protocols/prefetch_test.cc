// Two engines of one process, connected by TCP: messages of which some comes before their send.
// Whatever is written when, a message brings what its buffer held when it was sent, and nothing
// else is touched.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/clock.h"
#include "protocols/engines_test_pair.h"

namespace headway::protocols {
namespace {

constexpr size_t page = 4096;
constexpr size_t long_size = 200'000, short_size = 10'000;

// Memory with no other data in its pages, whose writes would count.
template <class T>
struct OwnPages {
  using value_type = T;
  static size_t bytes(size_t n) { return (n * sizeof(T) + page - 1) / page * page; }
  T* allocate(size_t n) {
    return static_cast<T*>(
        mmap(nullptr, bytes(n), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  void deallocate(T* memory, size_t n) { munmap(memory, bytes(n)); }
  bool operator==(const OwnPages&) const { return true; }
};
using Buffer = std::vector<char, OwnPages<char>>;

class Prefetching : public TwoEngines {
 protected:
  void SetUp() override {
    settings::Settings settings[2];
    // The sender's shares its pages with what follows writes to them.
    settings[0].early_release = 1;
    settings[1].early_release = 0;
    settings[0].prefetch = settings[1].prefetch = 1;
    if (receivers_room()) settings[1].prefetch_max = receivers_room();
    start(settings);
    if (HasFatalFailure()) return;
    if (!sender().prefetches() || !sender().may_release()) {
      GTEST_SKIP() << "no writes can be followed here";
    }
  }

  // For what comes before its send; 0: the default.
  virtual uint64_t receivers_room() const { return 0; }

  Request* take_for(uint32_t rank, RequestKind kind, Buffer& buffer, int tag) {
    std::vector<char> nothing;
    Request* request = take(rank, kind, nothing, tag);
    request->memory = UserMemory(buffer.data(), buffer.size());
    return request;
  }
  // Writes it anew.
  void fill(Buffer& out) {
    for (size_t at = 0; at < out.size(); at += 7) out[at] = char(random_());
  }
  Request* post(Buffer& in, int tag = 1) {
    Request* receive = take_for(1, RequestKind::receive, in, tag);
    receiver().start_receive(receive);
    receiver().note_wait(receive);
    return receive;
  }
  Request* send(Buffer& out, int tag = 1, Mode mode = Mode::standard) {
    Request* request = take_for(0, RequestKind::send, out, tag);
    request->mode = mode;
    sender().start_send(request);
    return request;
  }
  void end(Request* send, Request* receive) {
    ASSERT_TRUE(run_until([&] { return send->done && receive->done; }))
        << "sent " << send->moved << " of " << send->total << ", come " << receive->moved;
    EXPECT_EQ(receive->outcome, Outcome::ok);
    sender().give_request(send);
    receiver().give_request(receive);
  }
  // One message, written before its receive waits for it.
  void exchange(Buffer& out, Buffer& in, int tag = 1) {
    fill(out);
    Request* receive = post(in, tag);
    Request* request = send(out, tag);
    end(request, receive);
    EXPECT_EQ(out, in);
  }
  // Until the receiver asks, having seen three alike, and the sender follows its buffer, from the
  // first send on that was asked for.
  void learn(Buffer& out, Buffer& in, int tag = 1) {
    const uint64_t before = receiver().counters.prefetches;
    for (int i = 0; i < 6; ++i) exchange(out, in, tag);
    EXPECT_GE(receiver().counters.prefetches - before, 1u);
  }
  void turns(uint64_t ms) {
    const uint64_t end = base::now_ns() + ms * 1'000'000;
    while (base::now_ns() < end) both();
  }
  // Until so much has come before its send.
  bool comes_early(uint64_t bytes) {
    const uint64_t from = receiver().counters.presend_received_bytes;
    const uint64_t end = base::now_ns() + 5'000'000'000;
    while (receiver().counters.presend_received_bytes - from < bytes) {
      if (base::now_ns() > end) return false;
      both();
    }
    return true;
  }
  // Of what learn() taught: all of the next message before its send. Returns its receive; null:
  // it did not come.
  Request* come_early(Buffer& out, Buffer& in) {
    Request* receive = post(in);
    both();
    fill(out);
    return comes_early(out.size()) ? receive : nullptr;
  }
  uint64_t used() { return receiver().counters.prefetch_used_bytes; }
};

TEST_F(Prefetching, AllOfAMessageComesBeforeItsSend) {
  for (const size_t size : {long_size, short_size}) {
    Buffer out(size), in(size);
    learn(out, in);
    Request* receive = come_early(out, in);
    ASSERT_NE(receive, nullptr) << size;
    EXPECT_FALSE(receive->done);
    const uint64_t before = used(), sent = sender().counters.streams;
    Request* request = send(out);
    EXPECT_TRUE(request->done);  // nothing is left to send
    end(request, receive);
    EXPECT_EQ(out, in);
    EXPECT_EQ(used() - before, size);
    EXPECT_EQ(sender().counters.streams, sent);
  }
}

// Nobody waits for the steps of a collective by themselves.
TEST_F(Prefetching, StepsOfSchedulesAskWhenTheyBegin) {
  Buffer out(long_size), in(long_size);
  learn(out, in);
  Request* receive = take_for(1, RequestKind::receive, in, 1);
  static bool over;
  over = false;
  receive->notify = [](Request*) { over = true; };
  receiver().start_receive(receive);
  both();
  fill(out);
  ASSERT_TRUE(comes_early(long_size));
  Request* request = send(out);
  ASSERT_TRUE(run_until([&] { return request->done && over; }));
  EXPECT_EQ(out, in);
  sender().give_request(request);
  receiver().give_request(receive);
}

TEST_F(Prefetching, WhatIsWrittenAgainIsSentAgain) {
  Buffer out(long_size), in(long_size);
  learn(out, in);
  for (const size_t at : {size_t(0), size_t(5000), long_size / 2, long_size - 1}) {
    Request* receive = come_early(out, in);
    ASSERT_NE(receive, nullptr) << at;
    out[at] = char(out[at] + 1);
    const uint64_t before = used(), again = sender().counters.presend_again_bytes;
    Request* request = send(out);
    end(request, receive);
    EXPECT_EQ(out, in) << at;
    EXPECT_LE(used() - before, long_size - 1);
    EXPECT_GE(used() - before, long_size - 2 * page);
    EXPECT_GE(sender().counters.presend_again_bytes - again, 1u);
  }
}

// The request made room for all of the message: a short rest needs nobody's leave.
TEST_F(Prefetching, AShortRestIsSentWithTheSend) {
  for (const size_t size : {short_size, long_size}) {
    Buffer out(size), in(size);
    learn(out, in);
    for (const size_t pages : {1, 2}) {
      Request* receive = come_early(out, in);
      ASSERT_NE(receive, nullptr) << size;
      for (size_t i = 0; i < pages; ++i) out[i * (size - 1)] = char(out[i * (size - 1)] + 1);
      const uint64_t handshakes = sender().counters.handshakes, before = used();
      Request* request = send(out);
      EXPECT_TRUE(request->done) << size;
      end(request, receive);
      EXPECT_EQ(out, in) << size;
      EXPECT_EQ(sender().counters.handshakes, handshakes);
      EXPECT_LT(used() - before, size);
      EXPECT_GE(used() - before + pages * page, size);
    }
    // A synchronous send waits for its receive, and a long rest for its place.
    for (const Mode mode : {Mode::synchronous, Mode::standard}) {
      if (mode == Mode::standard && size == short_size) continue;
      Request* receive = come_early(out, in);
      ASSERT_NE(receive, nullptr) << size;
      const size_t stale = mode == Mode::synchronous ? 1 : 20'000;
      for (size_t at = 0; at < stale; ++at) out[at] = char(out[at] + 1);
      const uint64_t handshakes = sender().counters.handshakes;
      Request* request = send(out, 1, mode);
      EXPECT_FALSE(request->done);
      end(request, receive);
      EXPECT_EQ(out, in) << size;
      EXPECT_EQ(sender().counters.handshakes, handshakes + 1);
    }
  }
}

// A buffer that fills slowly, side by side, is learnt to be waited for, at little cost: also for
// what has not been sent.
TEST_F(Prefetching, PagesThatAreWrittenNowAndThenAreNotFinal) {
  Buffer out(long_size), in(long_size);
  learn(out, in);
  const auto fill_slowly = [&] {
    Request* receive = post(in);
    both();
    for (size_t key = 0; key < 16; ++key) {
      for (size_t at = key; at < long_size; at += page) out[at] = char(random_());
      turns(8);
    }
    turns(200);
    Request* request = send(out);
    end(request, receive);
    EXPECT_EQ(out, in);
  };
  const uint64_t again = sender().counters.presend_again_bytes;
  for (int i = 0; i < 3; ++i) fill_slowly();
  EXPECT_LE(sender().counters.presend_again_bytes - again, long_size);
  const uint64_t sent = sender().counters.presend_bytes, before = used();
  for (int i = 0; i < 3; ++i) fill_slowly();
  EXPECT_LE(sender().counters.presend_bytes - sent, 3 * long_size + long_size / 4);
  EXPECT_GE(used() - before, 2 * long_size);
}

TEST_F(Prefetching, WhatHasNotBeenWrittenSinceTheLastSendIsNotSentBefore) {
  Buffer out(long_size), in(long_size);
  learn(out, in);
  const uint64_t early = sender().counters.presend_bytes;
  const uint64_t dropped = sender().counters.presend_dropped;
  Request* receive = post(in);
  turns(20);
  EXPECT_EQ(sender().counters.presend_bytes, early);
  Request* request = send(out);
  end(request, receive);
  EXPECT_EQ(out, in);
  EXPECT_EQ(sender().counters.presend_dropped - dropped, 1u);
}

// A request that its message crosses stands for the next one, and is used once.
TEST_F(Prefetching, LateRequestsStandForTheNextMessage) {
  Buffer out(long_size), in(long_size);
  learn(out, in);
  Request* receive = come_early(out, in);  // no other request stands after this one
  ASSERT_NE(receive, nullptr);
  Request* request = send(out);
  end(request, receive);
  const uint64_t requests = receiver().counters.prefetches;
  const uint64_t late = receiver().counters.prefetch_late;
  fill(out);
  request = send(out);  // on its way when the receive asks
  receive = post(in);
  end(request, receive);
  EXPECT_EQ(out, in);
  EXPECT_EQ(receiver().counters.prefetches, requests + 1);
  EXPECT_EQ(receiver().counters.prefetch_late, late + 1);
  turns(2);
  fill(out);
  ASSERT_TRUE(comes_early(long_size));
  const uint64_t before = used();
  receive = post(in);
  EXPECT_EQ(receiver().counters.prefetches, requests + 1);
  request = send(out);
  end(request, receive);
  EXPECT_EQ(out, in);
  EXPECT_EQ(used() - before, long_size);
  // Whoever is late every time would be in time every second time only: the next one has been asked
  // for at the match.
  for (uint64_t i = 2; i < 5; ++i) {
    EXPECT_EQ(receiver().counters.prefetches, requests + i);
    turns(2);
    fill(out);
    ASSERT_TRUE(comes_early(long_size));
    request = send(out);
    receive = post(in);
    end(request, receive);
    EXPECT_EQ(out, in);
    EXPECT_EQ(used() - before, i * long_size);
  }
  EXPECT_EQ(receiver().counters.prefetch_late, late + 1);
  // Until one brings nothing.
  turns(2);
  request = send(out);
  receive = post(in);
  end(request, receive);
  EXPECT_EQ(receiver().counters.prefetches, requests + 5);
  EXPECT_EQ(out, in);
  EXPECT_EQ(used() - before, 4 * long_size);
}

// Where the blocks of a collective lie may depend on the sizes of others.
TEST_F(Prefetching, ReceiveBuffersOfCollectivesMayMove) {
  const matching::Traffic alltoallv{9, 0};
  constexpr int learning = 6;
  Buffer out(long_size), in(long_size + 10'000);
  for (int i = 0; i < learning + 3; ++i) {
    if (i < learning) fill(out);
    Request* receive = take_for(1, RequestKind::receive, in, i);
    receive->traffic = alltoallv;
    receive->memory = UserMemory(in.data() + i * 256, long_size);
    receiver().start_receive(receive);
    receiver().note_wait(receive);
    both();
    if (i >= learning) {
      fill(out);
      ASSERT_TRUE(comes_early(long_size)) << i;
    }
    Request* request = take_for(0, RequestKind::send, out, i);
    request->traffic = alltoallv;
    sender().start_send(request);
    end(request, receive);
    EXPECT_EQ(0, memcmp(out.data(), in.data() + i * 256, long_size)) << i;
  }
  EXPECT_EQ(used(), 3 * long_size);
}

TEST_F(Prefetching, AMessageFromElsewhereUsesNothingOfIt) {
  Buffer out(long_size), other(long_size), in(long_size);
  learn(out, in);
  Request* receive = come_early(out, in);
  ASSERT_NE(receive, nullptr);
  fill(other);
  const uint64_t before = used();
  Request* request = send(other);
  end(request, receive);
  EXPECT_EQ(other, in);
  EXPECT_EQ(used(), before);
  // What came is still the next message's from there.
  receive = post(in);
  request = send(out);
  end(request, receive);
  EXPECT_EQ(out, in);
  EXPECT_EQ(used() - before, long_size);
}

TEST_F(Prefetching, AShorterMessageLeavesTheRestAlone) {
  Buffer out(long_size), in(long_size);
  learn(out, in);
  Request* receive = come_early(out, in);
  ASSERT_NE(receive, nullptr);
  Buffer before = in;
  Buffer part(out.begin(), out.begin() + short_size);
  Request* request = take_for(0, RequestKind::send, out, 1);
  request->memory = UserMemory(out.data(), short_size);
  sender().start_send(request);
  end(request, receive);
  memcpy(before.data(), part.data(), short_size);
  EXPECT_EQ(before, in);
}

TEST_F(Prefetching, AShorterReceiveGetsWhatItHasRoomFor) {
  Buffer out(long_size), in(long_size);
  learn(out, in);
  Request* receive = come_early(out, in);
  ASSERT_NE(receive, nullptr);
  receiver().cancel(receive);
  receiver().give_request(receive);
  for (const bool rewritten : {false, true}) {
    if (rewritten) out[20'000] = char(out[20'000] + 1);
    Buffer little(50'001);
    receive = post(little);
    Request* request = send(out);
    ASSERT_TRUE(run_until([&] { return request->done && receive->done; }));
    EXPECT_EQ(receive->outcome, Outcome::truncated);
    EXPECT_EQ(0, memcmp(out.data(), little.data(), little.size()));
    sender().give_request(request);
    receiver().give_request(receive);
    receive = post(in);
    both();
    fill(out);
    if (rewritten) {
      request = send(out);
      end(request, receive);
    } else {
      ASSERT_TRUE(comes_early(long_size));
      receiver().cancel(receive);
      receiver().give_request(receive);
    }
  }
}

TEST_F(Prefetching, SynchronousSendsEndWhenTheyAreMatched) {
  for (const size_t size : {long_size, short_size}) {
    Buffer out(size), in(size);
    learn(out, in);
    Request* receive = come_early(out, in);
    ASSERT_NE(receive, nullptr);
    receiver().cancel(receive);
    receiver().give_request(receive);
    Request* request = send(out, 1, Mode::synchronous);
    turns(5);
    EXPECT_FALSE(request->done);
    const uint64_t before = used();
    receive = post(in);
    end(request, receive);
    EXPECT_EQ(out, in);
    EXPECT_EQ(used(), before);  // counted when the envelope came
  }
}

// Memory that the program gives back is not read, and its receiver is told so.
TEST_F(Prefetching, MemoryThatIsGone) {
  const size_t bytes = 64 * page;
  auto* memory = static_cast<char*>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  Buffer in(bytes);
  const auto send_it = [&] {
    Request* request = take_for(0, RequestKind::send, in, 1);
    request->memory = UserMemory(memory, bytes);
    sender().start_send(request);
    return request;
  };
  for (int i = 0; i < 5; ++i) {
    memset(memory, i + 1, bytes);
    Request* receive = post(in);
    Request* request = send_it();
    end(request, receive);
  }
  Request* receive = post(in);
  both();
  memset(memory, 77, bytes);
  munmap(memory, bytes);
  turns(20);
  // Something else lies there now.
  ASSERT_EQ(mmap(memory, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
            memory);
  memset(memory, 99, bytes);
  turns(10);
  memset(memory + page, 100, page);
  Request* request = send_it();
  end(request, receive);
  EXPECT_EQ(0, memcmp(memory, in.data(), bytes));
  munmap(memory, bytes);
}

// Room for one message and a half.
class PrefetchingWithLittleRoom : public Prefetching {
  uint64_t receivers_room() const override { return long_size * 3 / 2; }
};

// A buffer that is never sent from again must not keep others from being asked for.
TEST_F(PrefetchingWithLittleRoom, TheOldestRequestGivesWay) {
  Buffer old_out(long_size), old_in(long_size), out(long_size), in(long_size);
  learn(old_out, old_in);
  Request* never = come_early(old_out, old_in);
  ASSERT_NE(never, nullptr);
  receiver().cancel(never);
  receiver().give_request(never);

  for (int i = 0; i < 6; ++i) exchange(out, in, 2);
  const uint64_t requests = receiver().counters.prefetches;
  turns(1100);  // it is old by now
  exchange(out, in, 2);
  EXPECT_EQ(receiver().counters.prefetches, requests);  // the next one is asked for
  turns(2);
  EXPECT_EQ(receiver().counters.prefetch_refused, 2u);  // the first request, and the old one
  learn(out, in, 2);
  Request* receive = post(in, 2);
  both();
  fill(out);
  ASSERT_TRUE(comes_early(long_size));
  const uint64_t before = used();
  Request* request = send(out, 2);
  end(request, receive);
  EXPECT_EQ(out, in);
  EXPECT_EQ(used() - before, long_size);
  // What came of it has gone, too.
  request = send(old_out);
  receive = post(old_in);
  end(request, receive);
  EXPECT_EQ(old_out, old_in);
  EXPECT_EQ(used() - before, long_size);
}

// What no engine would send.
TEST_F(Prefetching, ForgedFramesAreRefused) {
  Buffer out(long_size), in(long_size);
  learn(out, in);
  Request* receive = come_early(out, in);
  ASSERT_NE(receive, nullptr);
  const uint32_t origin = receiver().peer(0).stores.first()->origin;
  Request* request = send(out);
  end(request, receive);
  const auto frame = [](Kind kind, uint32_t word, uint64_t context = 0) {
    FrameHeader header;
    header.kind = uint8_t(kind);
    header.word = word;
    header.context = context;
    return header;
  };
  // A request for a buffer that there is not, of another size, of somebody else.
  const uint64_t refused = sender().counters.presend_refused;
  EXPECT_TRUE(sender().frame(1, frame(Kind::prefetch, 0, long_size), nullptr));
  EXPECT_TRUE(sender().frame(1, frame(Kind::prefetch, 0xfffff123, long_size), nullptr));
  EXPECT_TRUE(sender().frame(1, frame(Kind::prefetch, origin, long_size + 1), nullptr));
  EXPECT_EQ(sender().counters.presend_refused - refused, 3u);
  turns(2);  // the refusals have come
  receive = post(in);
  both();
  turns(1);
  // Answers to nothing.
  char body[16] = {};
  FrameHeader header = frame(Kind::presend, 12345, 0);
  header.length = 16;
  EXPECT_FALSE(receiver().frame(0, header, body));
  header = frame(Kind::confirm, 12345);
  header.length = sizeof(ConfirmWhole);
  EXPECT_FALSE(receiver().frame(0, header, body));
  EXPECT_TRUE(receiver().frame(0, frame(Kind::refuse, 12345), nullptr));
  header = frame(Kind::eager, 12345);
  header.flags = flag_asked;
  EXPECT_FALSE(receiver().frame(0, header, body));
  // Messages that confirm what never came, or the same page twice.
  const auto confirms = [&](PageRun first, PageRun second) {
    struct {
      RequestSend request;
      Confirmed confirmed;
      PageRun runs[2];
    } forged{{long_size, 0, 0, 0, origin, 0}, {0, 2}, {first, second}};
    FrameHeader envelope = frame(Kind::request_send, 77, 2);
    envelope.flags = flag_asked;
    envelope.tag = 1;
    envelope.length = sizeof forged;
    return receiver().frame(0, envelope, reinterpret_cast<const char*>(&forged));
  };
  EXPECT_FALSE(confirms({0, 1}, {2, 1}));
  fill(out);
  ASSERT_TRUE(comes_early(long_size));
  EXPECT_FALSE(confirms({0, 3}, {1, 1}));
  EXPECT_FALSE(confirms({0, 1}, {1, 1}));
  EXPECT_FALSE(confirms({0, 1}, {2, 1'000'000}));
  // A whole message of which nothing, or more than all, came before its send.
  for (const uint64_t early : {uint64_t(0), uint64_t(long_size + 1)}) {
    const ConfirmWhole whole{long_size, early};
    FrameHeader envelope = frame(Kind::confirm, origin, 2);
    envelope.flags = flag_asked;
    envelope.tag = 1;
    envelope.length = sizeof whole;
    EXPECT_FALSE(receiver().frame(0, envelope, reinterpret_cast<const char*>(&whole)));
  }
  EXPECT_FALSE(receive->done);
  const uint64_t before = used();
  request = send(out);
  end(request, receive);
  EXPECT_EQ(out, in);
  EXPECT_EQ(used() - before, long_size);
}

// Whoever writes a buffer over and over must not fill the link with it.
TEST_F(Prefetching, AMessageGoesTwiceAtMostBeforeItsSend) {
  Buffer out(long_size), in(long_size);
  learn(out, in);
  Request* receive = post(in);
  both();
  const uint64_t early = sender().counters.presend_bytes;
  for (int i = 0; i < 9; ++i) {
    fill(out);
    turns(i < 5 ? 4u << i : 128);  // longer than it has to be still by then
  }
  EXPECT_GE(sender().counters.presend_bytes - early, long_size);
  EXPECT_LE(sender().counters.presend_bytes - early, 2 * long_size + 32'768);
  Request* request = send(out);
  end(request, receive);
  EXPECT_EQ(out, in);
}

// Everything at random: a writer, receives before and after, other buffers, lengths and modes.
TEST_F(Prefetching, NoStaleByteIsEverReceived) {
  for (uint64_t seed = base_seed(); seed < base_seed() + 20; ++seed) {
    SCOPED_TRACE("HEADWAY_TEST_SEED=" + std::to_string(seed));
    random_.seed(seed);
    Buffer buffers[2] = {Buffer(short_size + random_() % long_size),
                         Buffer(short_size + random_() % long_size)};
    Buffer in(short_size + long_size);
    for (int round = 0; round < 60; ++round) {
      Buffer& out = buffers[random_() % 8 == 0];
      const size_t bytes = random_() % 8 ? out.size() : 1 + random_() % out.size();
      const bool before = random_() % 4;
      Request* receive = before ? post(in) : nullptr;
      const Buffer held = in;
      for (uint64_t n = random_() % 6; n-- > 0;) {
        const size_t from = random_() % out.size(), length = random_() % (out.size() - from) + 1;
        memset(out.data() + from, int(random_()), length);
        if (random_() % 2) turns(random_() % 4);
      }
      Request* request = take_for(0, RequestKind::send, out, 1);
      request->memory = UserMemory(out.data(), bytes);
      request->mode = random_() % 5 ? Mode::standard : Mode::synchronous;
      sender().start_send(request);
      for (uint64_t n = random_() % 50; n-- > 0;) both();
      if (!receive) receive = post(in);
      end(request, receive);
      if (HasFatalFailure()) return;
      ASSERT_EQ(receive->status_bytes, bytes);
      ASSERT_EQ(0, memcmp(out.data(), in.data(), bytes)) << "round " << round;
      ASSERT_EQ(0, memcmp(held.data() + bytes, in.data() + bytes, in.size() - bytes))
          << "round " << round;
    }
  }
  EXPECT_GT(used(), 0u);
  EXPECT_GT(sender().counters.presend_again_bytes, 0u);
  EXPECT_EQ(sender().counters.garbage + receiver().counters.garbage, 0u);
}

}  // namespace
}  // namespace headway::protocols
