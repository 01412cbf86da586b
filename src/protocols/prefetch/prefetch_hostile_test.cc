// Prefetching where things go wrong: memory that goes, no room, frames that no engine would send,
// programs that write again and again.
#include <sys/mman.h>

#include "protocols/prefetch/prefetch_test_pair.h"

namespace headway::protocols {
namespace {

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
  drive(20);
  // Something else lies there now.
  ASSERT_EQ(mmap(memory, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
            memory);
  memset(memory, 99, bytes);
  drive(10);
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
  const uint64_t requests = receiver().counters().prefetches;
  drive(1100);  // it is old by now
  const uint64_t no_room = receiver().counters().prefetch_no_room;
  exchange(out, in, 2);
  EXPECT_EQ(receiver().counters().prefetches, requests);  // the next one is asked for
  EXPECT_GT(receiver().counters().prefetch_no_room, no_room);
  drive(2);
  EXPECT_EQ(receiver().counters().prefetch_refused, 1u);  // the old one
  learn(out, in, 2);
  Request* receive = post(in, 2);
  both();
  fill(out);
  ASSERT_TRUE(comes_early(long_size));
  const uint64_t before = used();
  complete(receive, out, in, 2);
  EXPECT_EQ(used() - before, long_size);
  // What came of it has gone, too.
  Request* request = send(old_out);
  receive = post(old_in);
  end(request, receive);
  EXPECT_EQ(old_out, old_in);
  EXPECT_EQ(used() - before, long_size);
}

// The same of a request whose buffer is not even followed yet.
TEST_F(PrefetchingWithLittleRoom, AKeptRequestGivesWay) {
  Buffer old_out(long_size), old_in(long_size), out(long_size), in(long_size);
  for (int i = 0; i < 3; ++i) exchange(old_out, old_in);
  Request* never = post(old_in);
  drive(2);
  EXPECT_EQ(receiver().counters().prefetches, 1u);
  for (int i = 0; i < 4; ++i) exchange(out, in, 2);
  drive(1100);
  exchange(out, in, 2);
  drive(2);
  EXPECT_EQ(receiver().counters().prefetches, 1u);
  EXPECT_EQ(receiver().counters().prefetch_refused, 1u);
  learn(out, in, 2);
  complete(never, old_out, old_in);
}

// Where all that is asked for fills the room, the next of each has room when the last one leaves.
TEST_F(PrefetchingWithLittleRoom, TheNextTakesThePlaceOfTheOneBefore) {
  Buffer out(long_size), in(long_size);
  learn_ahead(out, in);
  uint64_t requests = receiver().counters().prefetches;
  for (int i = 0; i < 4; ++i) {
    exchange_ahead(out, in, i % 2 == 0);
    EXPECT_EQ(receiver().counters().prefetches, ++requests) << i;
  }
  // Of which half has to be sent again, and its request to send comes first, or its receive.
  for (int i = 0; i < 2; ++i) {
    drive(2);
    fill(out);
    ASSERT_TRUE(comes_early(out.size()));
    for (size_t at = 0; at < out.size() / 2; at += page) ++out[at];
    Request* receive = i ? post(in) : nullptr;
    Request* request = send(out);
    drive(1);
    end(request, receive ? receive : post(in));
    EXPECT_EQ(out, in);
    EXPECT_EQ(receiver().counters().prefetches, ++requests) << i;
  }
  EXPECT_EQ(receiver().counters().prefetch_refused, 0u);
  EXPECT_EQ(receiver().counters().prefetch_no_room, 0u);
}

// What went for it is gone, and must not be told of to the next one.
TEST_F(Prefetching, ARequestThatIsWithdrawnHasBroughtNothing) {
  Buffer out(long_size), in(long_size);
  learn(out, in);
  Request* receive = come_early(out, in);
  ASSERT_NE(receive, nullptr);
  FrameHeader withdrawal;
  withdrawal.kind = uint8_t(Kind::prefetch);
  withdrawal.flags = flag_yes;
  withdrawal.word = receiver().peer(0)->early.stores.first()->origin;
  withdrawal.context = long_size;
  ASSERT_TRUE(sender().frame(1, withdrawal, nullptr));
  ASSERT_TRUE(run_until([&] { return receiver().counters().prefetch_refused == 1; }));
  const uint64_t asked = receiver().counters().prefetches;
  receiver().note_wait(receive);
  EXPECT_EQ(receiver().counters().prefetches, asked + 1);
  drive(1);
  complete(receive, out, in);
  EXPECT_EQ(receiver().counters().garbage, 0u);
}

// What no engine would send.
TEST_F(Prefetching, ForgedFramesAreRefused) {
  Buffer out(long_size), in(long_size);
  learn(out, in);
  Request* receive = come_early(out, in);
  ASSERT_NE(receive, nullptr);
  const uint32_t origin = receiver().peer(0)->early.stores.first()->origin;
  Request* request = send(out);
  end(request, receive);
  const auto frame = [](Kind kind, uint32_t word, uint64_t context = 0) {
    FrameHeader header;
    header.kind = uint8_t(kind);
    header.word = word;
    header.context = context;
    return header;
  };
  // A request for a buffer that there is not, or of another size.
  const uint64_t refused = sender().counters().presend_refused;
  EXPECT_TRUE(sender().frame(1, frame(Kind::prefetch, 0, long_size), nullptr));
  EXPECT_TRUE(sender().frame(1, frame(Kind::prefetch, 0xfffff123, long_size), nullptr));
  EXPECT_TRUE(sender().frame(1, frame(Kind::prefetch, origin, long_size + 1), nullptr));
  EXPECT_EQ(sender().counters().presend_refused - refused, 3u);
  drive(2);  // the refusals have come
  receive = post(in);
  both();
  drive(1);
  // One that stands already.
  EXPECT_FALSE(sender().frame(1, frame(Kind::prefetch, origin, long_size), nullptr));
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
  const auto last = uint32_t(long_size / page);
  uint32_t grain = 1, words = 1;
  const auto confirms = [&](std::initializer_list<uint32_t> pages, int64_t shift = 0) {
    struct {
      RequestSend request;
      Confirmed confirmed;
      uint64_t bits[most_confirmed_words + 1];
    } forged{{long_size, 0, 0, 0, origin, 0}, {0, grain, shift}, {}};
    for (const uint32_t each : pages) PageSet::set(forged.bits, each);
    FrameHeader envelope = frame(Kind::request_send, 77, 2);
    envelope.flags = flag_asked;
    envelope.tag = 1;
    envelope.length = uint32_t(sizeof forged - sizeof forged.bits + words * sizeof(uint64_t));
    return receiver().frame(0, envelope, reinterpret_cast<const char*>(&forged));
  };
  EXPECT_FALSE(confirms({0, 2}));
  fill(out);
  ASSERT_TRUE(comes_early(long_size));
  EXPECT_FALSE(confirms({0, last + 1}));
  for (const uint32_t wrong : {0u, 2u, most_confirmed_words, most_confirmed_words + 1}) {
    words = wrong;
    EXPECT_FALSE(confirms({0, 2})) << wrong;
  }
  words = 1;
  for (const uint32_t wrong : {0u, 2u, ~0u}) {
    grain = wrong;
    EXPECT_FALSE(confirms({0, 2})) << wrong;
  }
  grain = 1;
  // Pages of a message that has moved: beyond what came, between two pages, and short ones.
  EXPECT_FALSE(confirms({0, last - 1}, page));
  EXPECT_FALSE(confirms({0, 2}, -int64_t(page)));
  EXPECT_FALSE(confirms({0, 2}, 8));
  EXPECT_FALSE(confirms({0, 2}, INT64_MAX));
  EXPECT_FALSE(confirms({0, 2}, INT64_MIN));
  EXPECT_FALSE(confirms({1, last}, -int64_t(page)));
  // A whole message of which nothing, or more than all, came before its send.
  const auto confirms_all = [&](uint64_t early) {
    const ConfirmWhole whole{long_size, early};
    FrameHeader envelope = frame(Kind::confirm, origin, 2);
    envelope.flags = flag_asked;
    envelope.tag = 1;
    envelope.length = sizeof whole;
    return receiver().frame(0, envelope, reinterpret_cast<const char*>(&whole));
  };
  EXPECT_FALSE(confirms_all(0));
  EXPECT_FALSE(confirms_all(long_size + 1));
  EXPECT_FALSE(receive->done);
  const uint64_t before = used();
  complete(receive, out, in);
  EXPECT_EQ(used() - before, long_size);
  // Of what is refused nothing stays: this one tells that all but a byte left with the send.
  receive = post(in);
  both();
  EXPECT_FALSE(confirms_all(1));
  fill(out);
  ASSERT_TRUE(comes_early(long_size));
  memset(out.data(), 1, 20'000);
  complete(receive, out, in);
  EXPECT_GE(used() - before, 2 * long_size - 20'000 - 2 * page);
  EXPECT_LE(used() - before, 2 * long_size - 20'000);
}

// Whoever writes a buffer over and over must not fill the link with it.
TEST_F(Prefetching, AMessageGoesTwiceAtMostBeforeItsSend) {
  Buffer out(long_size), in(long_size);
  learn(out, in);
  Request* receive = post(in);
  both();
  const uint64_t early = sender().counters().presend_bytes;
  for (int i = 0; i < 9; ++i) {
    fill(out);
    drive(i < 5 ? 4u << i : 128);  // longer than it has to be still by then
  }
  EXPECT_GE(sender().counters().presend_bytes - early, long_size);
  EXPECT_LE(sender().counters().presend_bytes - early, 2 * long_size + 32'768);
  complete(receive, out, in);
}

}  // namespace
}  // namespace headway::protocols
