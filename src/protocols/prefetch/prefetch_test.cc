// Two engines of one process, connected by TCP: messages of which some comes before their send.
// Whatever is written when, a message brings what its buffer held when it was sent, and nothing
// else is touched.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/events_test_listener.h"
#include "protocols/prefetch/prefetch_test_pair.h"

namespace headway::protocols {
namespace {

TEST_F(Prefetching, AllOfAMessageComesBeforeItsSend) {
  for (const size_t size : {long_size, short_size}) {
    Buffer out(size), in(size);
    learn(out, in);
    Request* receive = come_early(out, in);
    ASSERT_NE(receive, nullptr) << size;
    EXPECT_FALSE(receive->done);
    const uint64_t before = used(), sent = sender().counters().streams;
    Request* request = send(out);
    EXPECT_TRUE(request->done);  // nothing is left to send
    end(request, receive);
    EXPECT_EQ(out, in);
    EXPECT_EQ(used() - before, size);
    EXPECT_EQ(sender().counters().streams, sent);
  }
}

// For a recorder: from the request to the send, what it brought, and the time that this spared.
TEST_F(Prefetching, APrefetchIsToldOnce) {
  Buffer out(long_size), in(long_size);
  learn(out, in);
  base::EventListener listener;
  complete(post(in), out, in);  // ends the request that was there before anybody listened
  EXPECT_TRUE(base::EventListener::events(headway_event_prefetch).empty());
  Request* receive = come_early(out, in);
  ASSERT_NE(receive, nullptr);
  EXPECT_TRUE(base::EventListener::events(headway_event_prefetch).empty());
  const uint64_t saved = receiver().counters().prefetch_saved_ns;
  complete(receive, out, in);
  const auto told = base::EventListener::events(headway_event_prefetch);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_LT(told[0].begin, told[0].end);
  EXPECT_EQ(told[0].bytes, long_size);
  EXPECT_EQ(told[0].peer, 0);
  EXPECT_EQ(told[0].closing, 0u);
  EXPECT_EQ(told[0].spared_ns, receiver().counters().prefetch_saved_ns - saved);
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
    const uint64_t before = used(), again = sender().counters().presend_again_bytes;
    Request* request = send(out);
    end(request, receive);
    EXPECT_EQ(out, in) << at;
    EXPECT_LE(used() - before, long_size - 1);
    EXPECT_GE(used() - before, long_size - 2 * page);
    EXPECT_GE(sender().counters().presend_again_bytes - again, 1u);
  }
}

// As in the buckets of a sort: what came between is used, however often that changes, and wherever
// the pages of the receiver begin.
TEST_F(Prefetching, EverySecondPageIsSentAgain) {
  constexpr size_t pages = 300, size = pages * page;
  Buffer out(size), room(size + page);
  UserMemory moved(room.data() + 1000, size);
  const auto post_moved = [&] {
    Request* receive = take_for(1, RequestKind::receive, room, 1);
    receive->memory = moved;
    return post(receive);
  };
  for (int i = 0; i < 6; ++i) {
    fill(out);
    Request* receive = post_moved();
    drive(5);
    end(send(out), receive);
  }
  Request* receive = post_moved();
  both();
  fill(out);
  ASSERT_TRUE(comes_early(size));
  for (size_t i = 0; i < pages; i += 2) out[i * page] ^= 1;
  const uint64_t before = used(), sent = links_[0].counters().bytes_out;
  end(send(out), receive);
  EXPECT_EQ(0, memcmp(out.data(), moved.flat(), size));
  EXPECT_EQ(used() - before, size / 2);
  EXPECT_LE(links_[0].counters().bytes_out - sent, size / 2 + 20'000);
}

// A long message is told of in groups of pages.
TEST_F(Prefetching, OfALongMessageAFewPagesMoreAreSentAgain) {
  constexpr size_t pages = 2 * 64 * most_confirmed_words + 3, size = pages * page - 1;
  Buffer out(size), in(size);
  const auto round = [&](int value, bool early) {
    Request* receive = post(in);
    drive(early ? 1 : 5);
    memset(out.data(), value, size);
    if (early) {
      ASSERT_TRUE(comes_early(size));
    }
    for (const size_t at : {size_t(5), size_t(100) * page, size - 1}) out[at] ^= 1;
    complete(receive, out, in);
  };
  for (int i = 0; i < 6; ++i) round(i, false);
  const uint64_t before = used();
  round(7, true);
  EXPECT_GE(used() - before, size - size_t(3 * 3) * page);
  EXPECT_LE(used() - before, size - size_t(2 * 3) * page);
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
      const uint64_t handshakes = sender().counters().handshakes, before = used();
      Request* request = send(out);
      EXPECT_TRUE(request->done) << size;
      end(request, receive);
      EXPECT_EQ(out, in) << size;
      EXPECT_EQ(sender().counters().handshakes, handshakes);
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
      const uint64_t handshakes = sender().counters().handshakes;
      Request* request = send(out, 1, mode);
      EXPECT_FALSE(request->done);
      end(request, receive);
      EXPECT_EQ(out, in) << size;
      EXPECT_EQ(sender().counters().handshakes, handshakes + 1);
    }
  }
}

// A send that finds no room leaves a copy, and its program goes on, and writes: what is missing of
// what came early is then the copy's.
TEST_F(Prefetching, AShortRestOfACopyIsSentFromTheCopy) {
  Buffer out(long_size), in(long_size), flood(short_size);
  learn(out, in);
  Request* receive = come_early(out, in);
  ASSERT_NE(receive, nullptr);
  out[0] = char(out[0] + 1);
  fill(flood);
  std::vector<Request*> before;  // that fill the link
  do {
    before.push_back(send(flood, 2));
  } while (before.back()->stage() != Stage::held);
  const Buffer sent = out;
  Request* request = send(out);
  ASSERT_EQ(int(request->stage()), int(Stage::held));
  ASSERT_TRUE(sender().copies().move_aside(request));
  memset(out.data(), 'w', out.size());
  const uint64_t used_before = used();
  end(request, receive);
  EXPECT_EQ(sent, in);
  EXPECT_GE(used() - used_before + page, long_size);
  for (Request* one : before) end(one, post(flood, 2));
}

// Whoever gets nothing thinks that there is nothing: one piece goes to each in turn.
TEST_F(Prefetching, RequestsAreServedInTurn) {
  constexpr size_t size = 16 << 20;
  Buffer outs[2] = {Buffer(size), Buffer(size)}, ins[2] = {Buffer(size), Buffer(size)};
  for (const int i : {0, 1}) learn(outs[i], ins[i], i);
  Request* receives[2] = {post(ins[0], 0), post(ins[1], 1)};
  both();
  for (Buffer& out : outs) fill(out);
  ASSERT_TRUE(comes_early(size));
  for (const Store* store = receiver().peer(0)->early.stores.first(); store;
       store = store->list_next) {
    EXPECT_GE(store->come, size / 8);
  }
  for (const int i : {0, 1}) complete(receives[i], outs[i], ins[i], i);
}

TEST_F(Prefetching, WhatHasNotBeenWrittenSinceTheLastSendIsNotSentBefore) {
  Buffer out(long_size), in(long_size);
  learn(out, in);
  const uint64_t early = sender().counters().presend_bytes;
  const uint64_t dropped = sender().counters().presend_dropped;
  Request* receive = post(in);
  drive(20);
  EXPECT_EQ(sender().counters().presend_bytes, early);
  complete(receive, out, in);
  EXPECT_EQ(sender().counters().presend_dropped - dropped, 1u);
}

// A request that its message crosses stands for the next one, and is used once.
TEST_F(Prefetching, LateRequestsStandForTheNextMessage) {
  Buffer out(long_size), in(long_size);
  learn(out, in);
  Request* receive = come_early(out, in);  // no other request stands after this one
  ASSERT_NE(receive, nullptr);
  Request* request = send(out);
  end(request, receive);
  const uint64_t requests = receiver().counters().prefetches;
  const uint64_t late = receiver().counters().prefetch_late;
  drive(50);  // beside that time the message comes shortly after the request, on a busy machine too
  fill(out);
  request = send(out);  // on its way when the receive asks
  receive = post(in);
  end(request, receive);
  EXPECT_EQ(out, in);
  EXPECT_EQ(receiver().counters().prefetches, requests + 1);
  EXPECT_EQ(receiver().counters().prefetch_late, late + 1);
  drive(2);
  fill(out);
  ASSERT_TRUE(comes_early(long_size));
  const uint64_t before = used();
  receive = post(in);
  EXPECT_EQ(receiver().counters().prefetches, requests + 1);
  complete(receive, out, in);
  EXPECT_EQ(used() - before, long_size);
  // Whoever is late every time would be in time every second time only: the next one has been asked
  // for at the match.
  for (uint64_t i = 2; i < 5; ++i) {
    EXPECT_EQ(receiver().counters().prefetches, requests + i);
    exchange_ahead(out, in, true);
  }
  EXPECT_EQ(receiver().counters().prefetch_late, late + 1);
  // Until they bring nothing, again and again: one may have found the link taken by others.
  for (int i = 0; i < 6; ++i) {
    drive(2);
    request = send(out);
    receive = post(in);
    end(request, receive);
    EXPECT_EQ(receiver().counters().prefetches, requests + (i < 3 ? 6 + i : 8));
    EXPECT_EQ(out, in);
  }
  EXPECT_EQ(used() - before, 4 * long_size);
}

// Its buffer is not followed before the next send from it. A fifth message may be early.
TEST_F(Prefetching, TheFirstRequestStandsForTheMessageAfterTheNext) {
  Buffer out(long_size), in(long_size);
  for (int i = 0; i < 4; ++i) exchange(out, in);
  EXPECT_EQ(receiver().counters().prefetches, 1u);
  EXPECT_EQ(receiver().counters().prefetch_late, 1u);
  exchange_ahead(out, in);
  EXPECT_EQ(receiver().counters().prefetches, 1u);
  EXPECT_EQ(receiver().counters().prefetch_refused, 0u);
}

// Whoever never waits for a message asks for the next one when it has got this one.
TEST_F(Prefetching, WhoComesAfterTheMessagesAsksWhenItHasMatchedOne) {
  Buffer out(long_size), in(long_size);
  learn_ahead(out, in);
  for (int i = 0; i < 3; ++i) {
    exchange_ahead(out, in, true);
    EXPECT_EQ(receiver().counters().prefetches, uint64_t(2 + i));
  }
}

// All ranks come to a collective at the same moment: whoever asks then is in time, and gets
// nothing.
TEST_F(Prefetching, RequestsShortlyBeforeTheSendAreMadeEarlier) {
  Buffer out(long_size), in(long_size);
  learn(out, in);
  const uint64_t requests = receiver().counters().prefetches;
  drive(100);
  fill(out);
  Request* receive = post(in);
  both();
  complete(receive, out, in);
  EXPECT_EQ(receiver().counters().prefetches, requests + 2);
  for (uint64_t i = 1; i <= 3; ++i) {
    exchange_ahead(out, in);
    EXPECT_EQ(receiver().counters().prefetches, requests + 2 + i);
  }
}

// Where the blocks of a collective lie may depend on the sizes of others.
TEST_F(Prefetching, ReceiveBuffersOfCollectivesMayMove) {
  constexpr int learning = 6;
  Buffer out(long_size), in(long_size + 10'000);
  uint64_t before = 0;
  for (int i = 0; i < learning + 3; ++i) {
    if (i < learning) fill(out);
    if (i == learning) before = used();
    Request* receive = post(take_block(1, in, i * 256, long_size, i));
    both();
    if (i >= learning) {
      fill(out);
      ASSERT_TRUE(comes_early(long_size)) << i;
    }
    Request* request = take_block(0, out, 0, long_size, i);
    sender().start_send(request);
    end(request, receive);
    EXPECT_EQ(0, memcmp(out.data(), in.data() + i * 256, long_size)) << i;
  }
  EXPECT_EQ(used() - before, 3 * long_size);
}

// Once a collective has been in a hurry, its messages are asked for at the match, wherever they go.
TEST_F(Prefetching, TheHurryOfACollectiveOutlivesItsBuffers) {
  constexpr int learning = 6, rounds = 12;
  Buffer out(long_size), in(long_size + 10'000);
  uint64_t before = 0;
  for (int i = 0; i < learning + rounds; ++i) {
    const bool early = i >= learning;
    if (early) {
      if (i == learning) before = used();
      drive(2);
      fill(out);
      ASSERT_TRUE(comes_early(long_size)) << i;  // before the receive, so it was asked for ahead
    } else {
      drive(30);
      fill(out);
    }
    // Four messages to each place: more than make its own prediction sure.
    Request* receive = post(take_block(1, in, early ? size_t(i) / 4 * 256 : 0, long_size, i));
    if (!early) both();
    Request* request = take_block(0, out, 0, long_size, i);
    sender().start_send(request);
    end(request, receive);
  }
  EXPECT_EQ(used() - before, rounds * long_size);
}

// As with MPI_Alltoallv, when a count changes a little: all blocks behind it move.
TEST_F(Prefetching, SendBuffersOfCollectivesMayMoveALittle) {
  constexpr int learning = 6, rounds = 60;
  constexpr size_t before = 10'000, most = 2'000;
  Buffer out(long_size + 2 * before), in(out.size());
  uint64_t last = long_size, asked = 0;
  for (int i = 0; i < learning + rounds; ++i) {
    // By few bytes, by pages, by nothing.
    const bool moves = i >= learning && i % 4 != 3;
    const size_t step = i % 3 == 0 ? 4 : i % 3 == 1 ? 4096 : 1;
    const size_t at = before + (moves ? random_() % most / step * step : 0);
    const size_t size = long_size - (moves ? random_() % most / step * step : 0);
    Request* receive = post(take_block(1, in, i * 4, size, i));
    both();
    fill(out);
    if (i >= learning) {
      ASSERT_TRUE(comes_early(last)) << i;
    }
    if (i % 5 == 0) out[at + random_() % size] ^= 1;
    Request* request = take_block(0, out, at, size, i);
    sender().start_send(request);
    end(request, receive);
    ASSERT_EQ(0, memcmp(out.data() + at, in.data() + i * 4, size)) << i;
    last = size;
    asked += i >= learning ? size : 0;
  }
  EXPECT_GE(used(), asked - rounds * 4 * page);
  EXPECT_EQ(receiver().counters().prefetch_refused, 0u);
}

// A request waits for the sender to follow the buffer. If the block has another length by then, it
// is refused.
TEST_F(Prefetching, ARequestThatWaitsIsForItsLengthOnly) {
  Buffer out(long_size), in(long_size);
  for (int i = 0; i < 4; ++i) {
    Request* receive = post(take_block(1, in, 0, long_size, i));
    drive(5);
    fill(out);
    const size_t size = i < 3 ? long_size : long_size - page;
    Request* request = take_block(0, out, 0, size, i);
    sender().start_send(request);
    end(request, receive);
    ASSERT_EQ(0, memcmp(out.data(), in.data(), size)) << i;
  }
  EXPECT_EQ(receiver().counters().prefetches, 1u);
  EXPECT_EQ(sender().counters().presend_refused, 1u);
}

// While it is followed the message thread listens, which costs a program of short messages.
TEST_F(Prefetching, ABufferThatBroughtNothingIsSoonLeftAlone) {
  Buffer out(long_size), in(long_size);
  learn(out, in);
  Request* asked = post(in);
  both();
  fill(out);
  complete(asked, out, in);  // no time for a page to look final
  ASSERT_EQ(sender().handoff().pending, 1);
  int sends = 0;
  for (; sends < 40 && sender().handoff().pending; ++sends) {
    Request* receive = take_for(1, RequestKind::receive, in, matching::any);  // asks for nothing
    receiver().start_receive(receive);
    fill(out);
    end(send(out), receive);
  }
  EXPECT_GE(sends, 5);
  EXPECT_LE(sends, 6);  // the first one may have been asked for at the last match
}

TEST_F(Prefetching, AMessageFromElsewhereUsesNothingOfIt) {
  Buffer out(long_size), other(long_size), in(long_size);
  learn(out, in);
  Request* receive = come_early(out, in);
  ASSERT_NE(receive, nullptr);
  fill(other);
  const uint64_t before = used();
  complete(receive, other, in);
  EXPECT_EQ(used(), before);
  // What came is still the next message's from there.
  receive = post(in);
  complete(receive, out, in);
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
  ASSERT_TRUE(come_early_for_nobody(out, in));
  for (const bool rewritten : {false, true}) {
    if (rewritten) out[20'000] = char(out[20'000] + 1);
    Buffer little(50'001);
    Request* receive = post(little);
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
    ASSERT_TRUE(come_early_for_nobody(out, in));
    Request* request = send(out, 1, Mode::synchronous);
    drive(5);
    EXPECT_FALSE(request->done);
    const uint64_t before = used();
    Request* receive = post(in);
    end(request, receive);
    EXPECT_EQ(out, in);
    EXPECT_EQ(used(), before);  // counted when the envelope came
  }
}

TEST_F(Prefetching, NoStaleByteIsEverReceived) { everything_at_random(); }

}  // namespace
}  // namespace headway::protocols
