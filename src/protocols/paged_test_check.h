// For tests: what must come of a PagedWorld: each message to the receive that the model of matching
// says, each of its bytes, nothing left under way. Thread: that of the test. Owner: the world.
// Invariant: a page is looked at as soon as its user may, and once.
#pragma once
#include "protocols/paged_test_world.h"

namespace headway::protocols {

// --- what comes of it ---

// The launcher is told of one receive that was released and has no match, as long as there is one.
inline void PagedWorld::check_unmatched() {
  const base::Unmatched& told = release().unseen().told;
  ASSERT_EQ(told.serial != 0, release().unseen().count() != 0);
  if (told.serial == 0) return;
  EXPECT_TRUE(std::any_of(receiving_.begin(), receiving_.end(),
                          [&](const Receive* receive) {
                            const Request* request = receive->request;
                            return receive->released && request &&
                                   request->stage() == Stage::posted &&
                                   told.tag == request->key.tag &&
                                   told.peer == request->key.source &&
                                   told.context == request->key.context &&
                                   told.awaited == int(request->peer->rank);
                          }))
      << "tag " << told.tag;
}

// Operations that are over give their buffers back: the program may use them at once.
inline void PagedWorld::retire() {
  check_unmatched();
  std::erase_if(sending_, [this](Message* message) {
    Request* send = message->send;
    if (!send->done) return false;
    EXPECT_EQ(send->outcome, Outcome::ok);
    EXPECT_TRUE(!send->cancelled || message->cancelled) << "cancelled by itself";
    message->gone = send->cancelled;
    tally.cancelled_sends += message->gone;
    message->send = nullptr;
    message->out->busy = false;
    engine(message->from).give_request(send);
    return true;
  });
  for (Receive* receive : receiving_) retire(*receive);
  std::erase_if(receiving_, [](const Receive* receive) { return receive->is_over; });
}

inline void PagedWorld::retire(Receive& receive) {
  Request* request = receive.request;
  const bool is_whole = request && request->done == Done::whole;
  if (is_whole) {
    learn(receive);
    engine(receive.rank).give_request(request);
    receive.request = nullptr;
  }
  if (!is_whole && !receive.released && request) return;
  receive.is_over = look(receive, !receive.request) && !receive.request;
  if (receive.is_over) receive.place->busy = false;
}

// What its user is told now stays so.
inline void PagedWorld::learn(Receive& receive) {
  const Request& request = *receive.request;
  if (receive.knows) {
    EXPECT_EQ(receive.source, request.status_source);
    EXPECT_EQ(receive.tag, request.status_tag);
    EXPECT_EQ(receive.bytes, request.sent_bytes);
  }
  receive.knows = true;
  receive.source = request.status_source;
  receive.tag = request.status_tag;
  receive.bytes = request.sent_bytes;
  receive.outcome = request.outcome;
  receive.was_cancelled = request.cancelled;
}

// Its user looks at pages that it has not seen. True: it has seen all now.
inline bool PagedWorld::look(Receive& receive, bool all) {
  if (!all && !one_in(4)) return false;
  bool complete = true;
  const char *from = receive.place->from, *end = from + receive.span;
  const char* page = from - reinterpret_cast<uintptr_t>(from) % page_size;
  for (size_t i = 0; page < end; ++i, page += page_size) {
    if (receive.has_seen[i]) continue;
    const char* at = std::max(from, page);
    const uint64_t n = uint64_t(std::min(end, page + page_size) - at);
    if (!is_open(receive.rank, at, n)) {
      complete = false;
      continue;
    }
    memcpy(receive.seen.data() + (at - from), at, n);
    receive.has_seen[i] = true;
    tally.early_looks += receive.request != nullptr;
  }
  return complete;
}

// Receives that nobody sends for make room for others.
inline void PagedWorld::give_up(int rank) {
  for (const Receive* receive : receiving_) {
    Request* request = receive->request;
    const bool waits = receive->rank == rank && !receive->released && request;
    if (waits && request->stage() == Stage::posted && !request->is_redirected() &&
        may_begin(rank) && !is_collective(receive->key)) {
      engine(rank).cancel(request);
    }
  }
  retire();
}

// Posts receives for what lies there unexpected. True if there was any.
inline bool PagedWorld::drain() {
  bool found = false;
  for (int rank = 0; rank < ranks(); ++rank) {
    drive(rank);
    for (const uint64_t context : {2, 4}) {
      const matching::Key key{context, any, any};
      if (!engine(rank).unexpected().probe(key)) continue;
      found = true;
      Place* place = spare(rank);
      if (place) {
        post(rank, key, place, most_for(rank, key));
      } else {
        give_up(rank);
      }
    }
  }
  // No probe finds these.
  for (Channel& channel : channels_) {
    if (!is_collective(channel.key) || channel.to_receive <= 0) continue;
    found = true;
    receive(channel, true);
  }
  return found;
}

inline bool PagedWorld::is_quiet() {
  const auto waits = [](const Receive* receive) {
    return !receive->released && receive->request && receive->request->stage() == Stage::posted &&
           !receive->request->is_redirected();
  };
  const auto is_at_rest = [](const auto& engine) { return engine->only_receives_left(); };
  return sending_.empty() && awaited_.empty() && wires_.are_empty() &&
         std::all_of(receiving_.begin(), receiving_.end(), waits) &&
         std::all_of(engines_.begin(), engines_.end(), is_at_rest);
}

// Until nothing is under way but receives that nobody sends for.
inline void PagedWorld::settle() {
  int still = 0;
  for (int round = 0; round < 50'000 && still < 30 && !testing::Test::HasFailure(); ++round) {
    const bool found = drain();
    if (round % 16 == 15) serve_unmatched();
    still = !found && is_quiet() ? still + 1 : 0;
  }
  EXPECT_EQ(still, 30) << "it does not come to rest\n" << state();
}

inline std::string PagedWorld::state() {
  std::string text;
  const auto tell = [&](const char* what, int rank, const Request* request) {
    text += std::string(what) + " of rank " + std::to_string(rank);
    if (request) {
      const bool moves = request->has(Mark::transfer);
      const Transfer transfer = moves ? engine(rank).transfer(*request) : Transfer{};
      text += ", stage " + std::to_string(int(request->stage())) + ", moved " +
              std::to_string(transfer.moved) + " of " + std::to_string(transfer.total) +
              (request->is_redirected() ? ", closed" : "") +
              (transfer.withheld ? ", withheld" : "");
    }
  };
  for (const Message* message : sending_) {
    tell("send", message->from, message->send);
    text += ", to " + std::to_string(message->to) + "\n";
  }
  for (const Receive* receive : receiving_) {
    tell("receive", receive->rank, receive->request);
    text += receive->released ? ", released\n" : "\n";
  }
  for (int rank = 0; rank < ranks(); ++rank) {
    text += "rank " + std::to_string(rank) + ": unexpected " +
            std::to_string(engine(rank).unexpected().count()) + ", pending " +
            std::to_string(engine(rank).handoff().pending) + "\n";
  }
  text += "unseen " + std::to_string(release().unseen().count()) + ", regions closed " +
          std::to_string(release().closed_regions()) + (release().any_mixed() ? ", mixed" : "") +
          ", awaited by its user " + std::to_string(awaited_.size()) +
          (wires_.are_empty() ? "" : ", frames under way") + "\n";
  return text;
}

inline void PagedWorld::finish() {
  settle();
  for (auto& engine : engines_) engine->stop_prefetching();
  settle();
  EXPECT_TRUE(sending_.empty()) << "sends that hang\n" << state();
  for (const Receive* receive : receiving_) {
    if (receive->request && !receive->request->done) engine(receive->rank).cancel(receive->request);
  }
  retire();
  EXPECT_TRUE(receiving_.empty()) << "receives that are matched and do not end\n" << state();
  for (int from = 0; from < ranks(); ++from) {
    for (int to = 0; to < ranks(); ++to) check_pair(from, to);
  }
  for (const auto& receive : receives_) {
    if (testing::Test::HasFailure()) return;
    check_receive(*receive);
  }
  for (int rank = 0; rank < ranks(); ++rank) check_engine(rank);
}

// Between two ranks the order decides alone who gets what: each message goes to the first receive
// that takes it, among those that got one from that sender.
inline void PagedWorld::check_pair(int from, int to) {
  for (auto& message : messages_) {
    if (message->from != from || message->to != to || message->gone) continue;
    for (auto& receive : receives_) {
      if (receive->rank != to || receive->message || receive->was_cancelled || !receive->knows ||
          receive->source != from || !receive->key.takes(message->key)) {
        continue;
      }
      receive->message = message.get();
      message->taken = true;
      break;
    }
    ASSERT_TRUE(message->taken) << "a message of " << message->bytes << " bytes was never received";
  }
}

inline void PagedWorld::check_receive(const Receive& receive) {
  if (receive.was_cancelled) {
    ++tally.cancelled_receives;
    return;
  }
  ++tally.receives;
  ASSERT_NE(receive.message, nullptr) << "it got what nobody sent";
  const Message& message = *receive.message;
  ASSERT_EQ(receive.source, message.key.source);
  ASSERT_EQ(receive.tag, message.key.tag);
  ASSERT_EQ(receive.bytes, message.bytes);
  const uint64_t bytes = std::min(receive.room, message.bytes);
  ASSERT_EQ(receive.outcome, message.bytes > receive.room ? Outcome::truncated : Outcome::ok);
  tally.truncated += message.bytes > receive.room;
  const uint64_t chunks = chunks_of(message.begin + bytes);
  std::string packed(chunks * chunk_size, 0);
  for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
    make_chunk(&packed[chunk * chunk_size], message.versions[chunk], chunk, chunk_size);
  }
  std::vector<char> expected(receive.span, untouched);
  layouts_.memory(receive.place->layout, expected.data(), receive.room)
      .write(0, packed.data() + message.begin, bytes);
  if (expected == receive.seen) return;
  const auto at = std::mismatch(expected.begin(), expected.end(), receive.seen.begin());
  FAIL() << "a message of " << message.bytes << " bytes from " << message.from << " to "
         << message.to << " (room " << receive.room << ", layout " << int(receive.place->layout)
         << (receive.released ? ", released" : "") << ") differs at byte "
         << at.first - expected.begin();
}

inline void PagedWorld::check_engine(int rank) {
  Engine& engine = this->engine(rank);
  EXPECT_TRUE(engine.is_idle());
  EXPECT_EQ(engine.handoff().pending, 0);
  EXPECT_EQ(engine.posted().size(), 0u);
  EXPECT_EQ(engine.copies().aside_bytes(), 0u);
  EXPECT_EQ(engine.unexpected().count(), 0u);
  EXPECT_EQ(engine.counters().garbage, 0u);
  EXPECT_FALSE(engine.release().any_closed());
  EXPECT_FALSE(engine.release().any_mixed());
  EXPECT_EQ(engine.release().unseen().count(), 0u);
  EXPECT_EQ(engine.wanted(), uint32_t(shm::event_control)) << "a count of what is awaited leaks";
  for (int peer = 0; peer < ranks(); ++peer) {
    const Peer* known = engine.find_peer(uint32_t(peer));
    EXPECT_TRUE(!known || known->early.stores.empty()) << "requests that nobody has answered";
  }
  EXPECT_TRUE(arenas_[size_t(rank)]->are_gaps_untouched());
}

}  // namespace headway::protocols
