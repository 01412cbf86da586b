// For tests: what the ranks of a PagedWorld do, step by step, and how rank 0's user goes on from
// receives. Thread: that of the test. Owner: the world. Invariant: what a buffer holds is written
// down with it.
#pragma once
#include "protocols/paged_test_world.h"

namespace headway::protocols {

// --- rank 0's user ---

inline bool PagedWorld::may_begin(int rank) {
  if (rank != 0) return true;
  if (!awaited_.empty()) return false;  // it waits
  return !release().any_closed() || (release().unseen().count() == 0 && !release().any_mixed());
}

// What it is about to touch is open, or comes soon.
inline bool PagedWorld::is_ready_for(int rank, const char* from, uint64_t n) {
  if (!may_begin(rank)) return false;
  for (int i = 0; i < 20 && !is_open(rank, from, n); ++i) drive_all();
  return may_begin(rank) && is_open(rank, from, n);
}

inline void PagedWorld::begin_wait() {
  if (!may_begin(0)) return;
  unmatched_ = one_in(2);
  std::vector<Receive*> candidates;
  for (Receive* receive : receiving_) {
    const bool is_his = receive->rank == 0 && !receive->released;
    if (is_his && receive->request && !receive->request->done) candidates.push_back(receive);
  }
  for (uint64_t left = 1 + pick(4); left > 0 && !candidates.empty(); --left) {
    const auto at = candidates.begin() + ptrdiff_t(pick(candidates.size()));
    awaited_.push_back(*at);
    candidates.erase(at);
    unmatched_ &= awaited_.back()->fits;
    engine(0).note_wait(awaited_.back()->request);
  }
  patience_ = longest_patience;
}

inline void PagedWorld::go_on() {
  std::erase_if(awaited_, [](const Receive* receive) {
    return !receive->request || receive->request->done == Done::whole;
  });
  if (awaited_.empty()) return;
  if (let_go()) {
    awaited_.clear();
    return;
  }
  if (--patience_ > 0) return;
  patience_ = longest_patience;
  // Another call takes its place, unless some of it is closed.
  const auto stays = [](const Receive* receive) { return receive->request->is_redirected(); };
  std::erase_if(awaited_, [&](const Receive* receive) { return !stays(receive); });
  for (const Receive* receive : awaited_) serve(*receive);
}

// As waiting::Many lets a call go on.
inline bool PagedWorld::let_go() {
  for (const Receive* receive : awaited_) {
    const bool unmatched = unmatched_ && release().is_foreseeable(receive->request);
    if (!release().is_ready(receive->request) && !unmatched) return false;
  }
  if (one_in(3)) return false;  // it looks later
  release().begin_call();
  for (const Receive* receive : awaited_) release().waits_for(receive->request);
  for (const Receive* receive : awaited_) {
    Request* request = receive->request;
    if (!(release().is_ready(request) ? release().close_rest(request)
                                      : release().foresee(request))) {
      return false;
    }
  }
  for (Receive* receive : awaited_) {
    Request* request = receive->request;
    receive->released = true;
    const bool is_matched = request->stage() != Stage::posted;
    release().let_user_go(request, "MPI_Wait");
    if (is_matched) {
      learn(*receive);
      receive->given = one_in(4);
      if (receive->given) {
        engine(0).give_request(request);
        receive->request = nullptr;
        ++tally.given;
      }
    }
    tally.in_runs += receive->place->layout == Layout::runs;
    look(*receive, false);
  }
  return true;
}

inline void PagedWorld::touch() {
  if (!toucher_ || receiving_.empty()) return;
  if (touched_ && release().is_closed(touched_, 1)) return;
  toucher_->wait();  // it goes on when its core lets it
  const Receive& receive = *receiving_[pick(receiving_.size())];
  if (!receive.released) return;
  const char* at = receive.place->from + pick(receive.span);
  if (!release().is_closed(at, 1)) return;
  touched_ = at;
  toucher_->touch(at);
  ++tally.touches;
  for (int i = 0; i < 200'000 && !release().is_awaited(); ++i) usleep(5);
  EXPECT_TRUE(release().is_awaited());
}

// --- what the programs do ---

inline void PagedWorld::write_all(Place& place, uint64_t bytes) {
  const UserMemory memory = layouts_.memory(place.layout, place.from, bytes);
  ++versions_;
  for (uint64_t chunk = 0; chunk < chunks_of(bytes); ++chunk) {
    place.versions[chunk] = versions_;
    write_chunk(memory, chunk, versions_);
  }
}

// All of its next message, most of it, or a little.
inline void PagedWorld::write(Channel& channel) {
  Place& place = *channel.out;
  if (place.busy || (channel.from == 0 && !awaited_.empty()) ||
      !is_open(channel.from, place.from, place.room)) {
    return;
  }
  if (one_in(2)) {
    write_all(place, channel.most);
    return;
  }
  const UserMemory memory = layouts_.memory(place.layout, place.from, channel.most);
  const uint64_t rare = 1 + pick(5);
  ++versions_;
  for (uint64_t chunk = 0; chunk < place.versions.size(); ++chunk) {
    if (!one_in(rare)) continue;
    place.versions[chunk] = versions_;
    write_chunk(memory, chunk, versions_);
  }
}

// False: not now.
inline bool PagedWorld::send(Channel& channel) {
  Place& place = *channel.out;
  if (place.busy || !is_ready_for(channel.from, place.from, place.room) || place.busy) return false;
  if (!channel.steady && one_in(2)) write(channel);
  auto message = std::make_unique<Message>();
  message->from = channel.from;
  message->to = channel.to;
  message->key = channel.key;
  const bool shorter = channel.steady ? one_in(16) : one_in(2);
  message->bytes =
      layouts_.round_down(place.layout, shorter ? pick(channel.most + 1) : channel.most);
  if (is_collective(channel.key)) {
    message->begin = one_in(2) ? 0 : one_in(2) ? page_size : pick(moves);
    message->bytes = channel.most - moves - (one_in(3) ? pick(moves) : 0);
  }
  message->versions = place.versions;
  const UserMemory memory =
      layouts_.memory(place.layout, place.from + message->begin, message->bytes);
  Engine& engine = this->engine(channel.from);
  engine.handoff().driver = progress::Driver::passing;
  const bool synchronous = one_in(5);
  FrameHeader envelope;
  envelope.tag = message->key.tag;
  envelope.source = message->key.source;
  envelope.context = message->key.context;
  if (synchronous || is_collective(channel.key) || one_in(2) ||
      !engine.send_now(*engine.peer(uint32_t(channel.to)), envelope, memory)) {
    Request* request =
        make(channel.from, RequestKind::send, memory, message->key, channel.to, channel.traffic);
    request->mode = synchronous ? Mode::synchronous : Mode::standard;
    request->blocking = one_in(2);
    if (plan_.leaves && one_in(3) && engine.copies().copy_aside(request)) {
      ++tally.left;  // the buffer is the program's again
    } else {
      message->send = request;
      message->out = &place;
      place.busy = true;
      sending_.push_back(message.get());
    }
    engine.start_send(request);
  }
  ++tally.messages;
  ++channel.to_receive;
  messages_.push_back(std::move(message));
  retire();
  return true;
}

// Of all messages that may match it.
inline uint64_t PagedWorld::most_for(int rank, const matching::Key& key) const {
  uint64_t most = 0;
  for (const Channel& channel : channels_) {
    if (channel.to == rank && key.takes(channel.key)) most = std::max(most, channel.most);
  }
  return most;
}

inline Place* PagedWorld::spare(int rank) {
  for (Place* place : spares_[size_t(rank)]) {
    if (!place->busy) return place;
  }
  return nullptr;
}

inline void PagedWorld::receive(Channel& channel, bool alike) {
  alike |= is_collective(channel.key);
  matching::Key key = channel.key;
  if (!alike && one_in(8)) key.source = any;
  if (!alike && one_in(8)) key.tag = any;
  Place* place = key == channel.key && !channel.in->busy ? channel.in
                 : is_collective(key)                    ? nullptr
                                                         : spare(channel.to);
  if (!place) return;
  const bool fits = alike || !one_in(10);
  const uint64_t most = most_for(channel.to, key);
  const uint64_t room = layouts_.round_up(place->layout, fits ? most : pick(most + 1));
  const size_t before = receives_.size();
  Request* request = post(channel.to, key, place, room, channel.traffic);
  channel.to_receive -= receives_.size() > before;
  if (request && !request->done && alike) engine(channel.to).note_wait(request);
}

// Null: not now, or it is over.
inline Request* PagedWorld::post(int rank, const matching::Key& key, Place* place, uint64_t room,
                                 matching::Traffic traffic) {
  const uint64_t span = layouts_.span(place->layout, room) + behind;
  EXPECT_LE(span, place->room);
  if (!is_ready_for(rank, place->from, span) || place->busy) return nullptr;
  // A thread that has touched a page which is open by now may not have gone on yet.
  if (toucher_ && touched_ && !release().is_closed(touched_, 1)) toucher_->wait();
  memset(place->from, untouched, span);
  auto receive = std::make_unique<Receive>();
  receive->rank = rank;
  receive->key = key;
  receive->place = place;
  receive->room = room;
  receive->span = span;
  receive->fits = room >= most_for(rank, key);
  receive->seen.resize(span);
  receive->has_seen.resize(pages_of(*receive));
  place->busy = true;
  const UserMemory memory = layouts_.memory(place->layout, place->from, room);
  Request* request = make(rank, RequestKind::receive, memory, key, key.source, traffic);
  receive->request = request;
  receiving_.push_back(receive.get());
  Engine& engine = this->engine(rank);
  engine.handoff().driver = progress::Driver::passing;
  uint64_t bytes = 0;
  int source = 0, tag = 0;
  if (!is_collective(key) && one_in(4) && engine.receive_arrived(key, memory, bytes, source, tag)) {
    request->status_source = source;
    request->status_tag = tag;
    request->sent_bytes = bytes;
    request->outcome = Outcome::ok;
    request->cancelled = false;
    request->done.store(Done::whole);
  } else {
    engine.start_receive(request);
    if (!request->done && one_in(2)) engine.note_wait(request);
  }
  receives_.push_back(std::move(receive));
  retire();
  return receives_.back()->request;
}

// One message of many that are alike: its receive waits, or comes late; it is written, time goes
// by, some of it is written again, and it is sent.
inline void PagedWorld::exchange(Channel& channel) {
  const auto drive_a_while = [this](uint64_t most) {
    for (uint64_t times = pick(most); times > 0; --times) drive_all();
  };
  const bool waits = !one_in(3);
  if (waits) receive(channel, true);
  drive_a_while(4);
  write(channel);
  drive_a_while(one_in(2) ? 20 : 3);
  if (one_in(3)) write(channel);
  send(channel);
  drive_a_while(8);
  if (!waits) receive(channel, true);
}

inline void PagedWorld::cancel() {
  if (one_in(2) && !receiving_.empty()) {
    const Receive& receive = *receiving_[pick(receiving_.size())];
    Request* request = receive.request;
    if (!request || request->done || request->is_redirected() || is_collective(receive.key)) return;
    if (!may_begin(receive.rank)) return;
    engine(receive.rank).cancel(request);
  } else if (!sending_.empty()) {
    Message& message = *sending_[pick(sending_.size())];
    if (message.send->done || is_collective(message.key) || !may_begin(message.from)) return;
    message.cancelled = true;
    engine(message.from).cancel(message.send);
  }
  retire();
}

// A rank that waits in a send goes on, and writes over its buffer.
inline void PagedWorld::leave_copy() {
  if (sending_.empty()) return;
  Message& message = *sending_[pick(sending_.size())];
  if (message.cancelled || message.send->done || (message.from == 0 && !awaited_.empty())) return;
  engine(message.from).copies().move_aside(message.send);
  tally.left += message.send->done == Done::released;
  retire();
}

// Somebody sends what it may match.
inline bool PagedWorld::serve(const Receive& receive) {
  for (Channel& channel : channels_) {
    if (channel.to == receive.rank && receive.key.takes(channel.key) && send(channel)) return true;
  }
  return false;
}

// Of which rank 0's user has been told that it may go on: it will wait for it.
inline void PagedWorld::serve_unmatched() {
  for (const Receive* receive : receiving_) {
    if (receive->request && receive->request->stage() == Stage::posted &&
        (receive->released || receive->request->is_redirected())) {
      serve(*receive);
      return;
    }
  }
}

inline void PagedWorld::step() {
  if (one_in(10)) serve_unmatched();
  const uint64_t dice = pick(100);
  if (dice < 12) {
    send(channels_[pick(channels_.size())]);
  } else if (dice < 22) {
    write(channels_[pick(channels_.size())]);
  } else if (dice < 36) {
    receive(channels_[pick(channels_.size())], false);
  } else if (dice < 44) {
    if (awaited_.empty()) begin_wait();
  } else if (dice < 48) {
    touch();
  } else if (dice < 50) {
    if (may_begin(0)) engine(0).note_look();
  } else if (dice < 53) {
    if (plan_.cancels) cancel();
  } else if (dice < 56) {
    if (plan_.leaves) leave_copy();
  } else if (dice < 65 && plan_.prefetches) {
    Channel& channel = channels_[pick(channels_.size())];
    if (channel.steady) exchange(channel);
  } else {
    drive(int(pick(uint64_t(ranks()))));
  }
}

inline void PagedWorld::drive(int rank) {
  static constexpr uint64_t pauses_us[] = {0, 1, 20, 100, 300}, long_pause_us = 1'100'000;
  Engine& engine = this->engine(rank);
  if (plan_.node) engine.node().own().armed.store(0);
  for (uint64_t times = 1 + pick(4); times > 0; --times) {
    clock_->move(1000 * (one_in(1000) ? long_pause_us : pauses_us[pick(5)]));
    const bool waits = one_in(2);
    engine.handoff().driver = waits ? progress::Driver::waiting : progress::Driver::passing;
    if (plan_.node) engine.node().own().waiting.store(waits && !one_in(4));
    const uint64_t hint = pick(uint64_t(ranks()));
    engine.advance_for(int(hint) == rank ? nullptr : engine.peer(uint32_t(hint)));
  }
  if (one_in(8)) engine.hand_on();
  retire();
  if (rank == 0) go_on();
  if (!plan_.node) return;
  engine.node().own().waiting.store(one_in(4));  // a hint: it may be wrong
  if (one_in(2)) engine.node().own().armed.store(engine.wanted());
}

}  // namespace headway::protocols
