// For tests: engines of one process against a plain model of MPI's matching. Each has its own
// mapping of the segment, as separate processes would; the test drives them in turns, so that a
// seed repeats. Thread: that of the test.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/heap.h"
#include "datatypes/type.h"
#include "protocols/engine.h"
#include "protocols/engine_test_wires.h"

namespace headway::protocols {

using matching::any;

inline uint64_t base_seed() {
  const char* given = getenv("HEADWAY_TEST_SEED");
  return given ? strtoull(given, nullptr, 0) : 1;
}

inline std::string* fatal_story;
inline void on_fatal(Outcome why, uint32_t peer, const char* story) {
  *fatal_story += "outcome " + std::to_string(int(why)) + ", peer " + std::to_string(peer) + ": " +
                  story + "\n";
}

inline uint8_t byte_of(uint32_t message, uint64_t at) {
  return uint8_t(message * 167 + at * 13 + (at >> 8) * 5 + (at >> 16));
}

// One message as the model knows it.
struct Message {
  uint32_t number = 0;
  int from = 0, to = 0;
  matching::Key key;
  uint64_t bytes = 0;
  bool synchronous = false;
  Request* send = nullptr;
  std::vector<char> buffer;
  bool typed = false;
  bool taken = false;      // a receive of the model has it
  bool cancelled = false;  // asked for
  bool gone = false;       // the cancel came in time
};

struct Receive {
  matching::Key key;
  Request* request = nullptr;
  std::vector<char> buffer;
  uint64_t room = 0;  // packed bytes that fit
  bool typed = false;
  Message* message = nullptr;  // what it must have got, once the model knows
  bool cancelled = false;
};

struct Tally {
  uint64_t messages = 0, receives = 0, truncated = 0, cancelled_sends = 0, cancelled_receives = 0,
           probes = 0, matched_probes = 0, received_now = 0, received_now_beside = 0,
           received_arrived = 0, left = 0, bytes = 0;
};

struct Plan {
  uint32_t ranks = 2;
  bool one_copy = true;
  uint64_t unexpected_max = 256 << 20;
  bool away = false;     // pretend at random that ranks are outside MPI
  bool waiting = false;  // drivers wait (streams) at random
  bool cancels = false;
  bool leaves = false;  // sends that wait leave a copy of their message
  bool brief = false;   // rings are open, queues are short: receives may find their message at once
  bool lost_pid = false;     // copies into other processes fail
  bool lost_helper = false;  // only those into rank 0
  bool wires = false;        // no rank shares memory: frames go by Wires
  int steps = 1500;
  uint64_t longest = 65537;
};

// The world: engines, what was started, and what must come of it.
class World {
 public:
  World(const Plan& plan, uint64_t seed) : plan_(plan), random_(seed) {
    fatal_story = &story_;
    settings::Settings settings;
    settings.progress = 0;
    settings.one_copy = plan.one_copy;
    settings.unexpected_max = plan.unexpected_max;
    if (plan.wires)
      wires_ = std::make_unique<Wires>(plan.ranks, seed ^ 0x5eed, transports::in_place);
    std::vector<uint32_t> ranks;
    for (uint32_t i = 0; i < plan.ranks; ++i) ranks.push_back(i);
    for (uint32_t i = 0; i < plan.ranks; ++i) {
      engines_.push_back(std::make_unique<Engine>());
      Engine& engine = *engines_.back();
      EXPECT_EQ(engine.prepare(settings, i, plan.ranks, on_fatal), Outcome::ok);
      if (wires_) {
        wires_->attach(i, engine);
        continue;
      }
      EXPECT_EQ(i == 0 ? engine.node().create(plan.ranks, key_, sizeof key_)
                       : engine.node().attach(key_, plan.ranks),
                Outcome::ok);
      engine.node().join(i, engine.handoff().bell());
      EXPECT_EQ(engine.use_node(ranks.data(), plan.ranks), Outcome::ok);
    }
    if (plan.lost_pid) {
      for (auto& engine : engines_) engine->node().own().pid.store(0x3fffffff);
    }
    if (plan.lost_helper) engines_[0]->node().own().pid.store(0x3fffffff);
    const auto& word = datatypes::predefined(datatypes::BasicType::int_);
    EXPECT_EQ(datatypes::make_vector(datatypes::Form::narrow, 8, 3, 5, word, type_), Outcome::ok);
  }
  ~World() {
    for (auto& engine : engines_) {
      engine->handoff().stop();
      if (!wires_) engine->node().detach();
    }
    type_->release();
  }

  void step();
  bool drain();
  void tidy_up();
  void finish();
  const std::string& story() const { return story_; }
  const Wires* wires() const { return wires_.get(); }
  Tally tally;
  EngineCounters sum() const {
    EngineCounters sum;
    for (const auto& engine : engines_) {
      sum.eager_sent += engine->counters().eager_sent;
      sum.handshakes += engine->counters().handshakes;
      sum.unexpected += engine->counters().unexpected;
      sum.pulls += engine->counters().pulls;
      sum.pushes += engine->counters().pushes;
      sum.streams += engine->counters().streams;
      sum.claims += engine->counters().claims;
      sum.helped += engine->counters().helped;
      sum.garbage += engine->counters().garbage;
      sum.messages_received += engine->counters().messages_received;
      sum.bytes_received += engine->counters().bytes_received;
    }
    return sum;
  }

 private:
  int pick(size_t of) { return int(random_() % of); }
  uint64_t random_size();
  UserMemory memory_of(std::vector<char>& buffer, uint64_t bytes, bool typed);
  char* place(std::vector<char>& buffer, uint64_t at, bool typed);
  void send();
  void receive();
  void post(int rank, std::unique_ptr<Receive> receive, uint64_t room);
  void probe();
  void cancel();
  void drive(int rank);
  void move();
  void retire_sends();
  void check_pair(int from, int to);
  void check_receive(Receive& receive);
  void enter(int rank);
  void leave(int rank);

  Plan plan_;
  std::mt19937_64 random_;
  std::string story_;
  char key_[128];
  std::unique_ptr<Wires> wires_;
  std::vector<std::unique_ptr<Engine>> engines_;
  datatypes::Type* type_ = nullptr;
  // Per receiver: messages in the order in which each sender sent them, and receives as posted.
  std::vector<std::unique_ptr<Message>> messages_;
  std::vector<std::pair<int, std::unique_ptr<Receive>>> receives_;
  uint32_t numbers_ = 0, steps_ = 0;
};

constexpr uint64_t elements = 24;  // of type_: 8 blocks of 3

inline uint64_t World::random_size() {
  static const uint64_t edges[] = {0,    1,     8,     151,   152,   153,    4095,   4096,
                                   4097, 16384, 16385, 65536, 65537, 262145, 1 << 20};
  uint64_t size = random_() % 3 ? edges[random_() % std::size(edges)]
                                : random_() % (random_() % 4 ? 6000 : 100'000);
  return std::min(size, plan_.longest);
}

// A typed buffer holds whole elements of type_; the bytes of the message lie in its blocks.
UserMemory World::memory_of(std::vector<char>& buffer, uint64_t bytes, bool typed) {
  if (!typed) {
    buffer.assign(bytes + 1, char(0x5a));  // one more: must stay as it is
    return UserMemory(buffer.data(), bytes);
  }
  const uint64_t count = bytes / (elements * 4);
  buffer.assign(count * uint64_t(type_->extent()) + 64, char(0x5a));
  return UserMemory(buffer.data(), count, *type_);
}

inline char* World::place(std::vector<char>& buffer, uint64_t at, bool typed) {
  if (!typed) return &buffer[at];
  const uint64_t item = at / 96, inside = at % 96;
  return &buffer[item * uint64_t(type_->extent()) + inside / 12 * 20 + inside % 12];
}

inline void World::enter(int rank) {
  engines_[rank]->handoff().enter();
  if (!wires_) engines_[rank]->node().own().armed.store(0);
  if (plan_.waiting && pick(2)) {
    engines_[rank]->handoff().driver = progress::Driver::waiting;
    if (wires_) return;
    engines_[rank]->node().own().waiting.store(pick(4) != 0);
  }
}

inline void World::leave(int rank) {
  Engine& engine = *engines_[rank];
  if (pick(2)) engine.hand_on();
  engine.handoff().leave();
  if (wires_) return;
  engine.node().own().waiting.store(plan_.away && pick(4) == 0);  // a hint: it may be wrong
  if (plan_.away && pick(2)) engine.node().own().armed.store(engine.wanted());
}

inline void World::send() {
  auto message = std::make_unique<Message>();
  message->number = ++numbers_;
  message->from = pick(plan_.ranks);
  const int to = pick(plan_.ranks);
  message->key = {uint64_t(2 + 2 * pick(2)), message->from, pick(3)};
  message->synchronous = pick(4) == 0;
  message->typed = pick(4) == 0;
  message->bytes = random_size();
  if (message->typed) message->bytes -= message->bytes % 96;
  const UserMemory memory = memory_of(message->buffer, message->bytes, message->typed);
  for (uint64_t i = 0; i < message->bytes; ++i) {
    *place(message->buffer, i, message->typed) = char(byte_of(message->number, i));
  }
  Engine& engine = *engines_[message->from];
  enter(message->from);
  FrameHeader envelope;
  envelope.tag = message->key.tag;
  envelope.source = message->key.source;
  envelope.context = message->key.context;
  if (!message->synchronous && pick(2) && engine.send_now(*engine.peer(to), envelope, memory)) {
    // It has left: the buffer is the program's again.
    std::fill(message->buffer.begin(), message->buffer.end(), char(0x77));
  } else {
    Request* request = engine.take_request();
    ASSERT_NE(request, nullptr);
    request->kind = RequestKind::send;
    request->mode = message->synchronous ? Mode::synchronous : Mode::standard;
    request->held_by_user = true;
    request->notify = nullptr;
    request->memory = memory;
    request->key = message->key;
    request->peer = engine.peer(to);
    request->blocking = plan_.leaves || (plan_.away && pick(2));  // so it may claim a receive
    message->send = request;
    engine.start_send(request);
  }
  leave(message->from);
  message->to = to;
  ++tally.messages;
  messages_.push_back(std::move(message));
}

inline void World::receive() {
  int rank = pick(plan_.ranks);
  auto receive = std::make_unique<Receive>();
  receive->key = {uint64_t(2 + 2 * pick(2)), pick(3) ? pick(plan_.ranks) : any,
                  pick(3) ? pick(3) : any};
  if (plan_.brief && pick(8)) {
    const size_t back = 1 + size_t(pick(std::min<size_t>(messages_.size(), 3)));
    const Message& late = *messages_[messages_.size() - back];
    rank = late.to;
    receive->key = late.key;
  }
  post(rank, std::move(receive), pick(6) ? plan_.longest + 96 : random_size());
}

inline void World::post(int rank, std::unique_ptr<Receive> receive, uint64_t room) {
  receive->typed = pick(4) == 0;
  receive->room = room;
  if (receive->typed) receive->room -= receive->room % 96;
  Engine& engine = *engines_[rank];
  Request* request = engine.take_request();
  ASSERT_NE(request, nullptr);
  request->kind = RequestKind::receive;
  request->mode = Mode::standard;
  request->held_by_user = true;
  request->notify = nullptr;
  request->memory = memory_of(receive->buffer, receive->room, receive->typed);
  request->key = receive->key;
  const int source = receive->key.source;
  request->peer = source == any ? nullptr : engine.peer(uint32_t(source));
  receive->request = request;
  enter(rank);
  uint64_t bytes = 0;
  const auto whole = [&](int from, int tag) {
    request->status_source = from;
    request->status_tag = tag;
    request->sent_bytes = bytes;
    request->outcome = Outcome::ok;
    request->done.store(true);
  };
  int from = 0, tag = 0;
  if (request->peer && pick(2) &&
      engine.receive_now(*request->peer, request->key, request->memory, bytes)) {
    whole(source, request->key.tag);
    ++tally.received_now;
    tally.received_now_beside += engine.posted().size() != 0;
  } else if (pick(2) && engine.receive_arrived(request->key, request->memory, bytes, from, tag)) {
    whole(from, tag);
    ++tally.received_arrived;
  } else {
    engine.start_receive(request);
  }
  leave(rank);
  receives_.emplace_back(rank, std::move(receive));
}

inline void World::probe() {
  const int rank = pick(plan_.ranks);
  const matching::Key key{uint64_t(2 + 2 * pick(2)), pick(2) ? pick(plan_.ranks) : any,
                          pick(2) ? pick(3) : any};
  Engine& engine = *engines_[rank];
  enter(rank);
  Arrived* message = engine.unexpected().probe(key);
  ++tally.probes;
  if (message && pick(2)) {
    ASSERT_TRUE(key.takes(message->key));
    // A matched probe takes it, and a receive of its own gets exactly it.
    const matching::Key exact = message->key;
    const uint64_t size = message->size;
    ASSERT_EQ(engine.unexpected().take_message(exact), message) << "not the first of its kind";
    auto receive = std::make_unique<Receive>();
    receive->key = exact;
    receive->room = size;
    Request* request = engine.take_request();
    ASSERT_NE(request, nullptr);
    request->kind = RequestKind::receive;
    request->held_by_user = true;
    request->notify = nullptr;
    request->memory = memory_of(receive->buffer, receive->room, false);
    request->key = exact;
    request->peer = message->peer;
    receive->request = request;
    engine.start_matched_receive(request, message);
    ++tally.matched_probes;
    receives_.emplace_back(rank, std::move(receive));
  }
  leave(rank);
}

inline void World::cancel() {
  if (pick(2) && !receives_.empty()) {
    auto& [rank, receive] = receives_[pick(receives_.size())];
    if (receive->cancelled || receive->request->done.load()) return;
    enter(rank);
    engines_[rank]->cancel(receive->request);
    receive->cancelled = true;
    leave(rank);
  } else if (!messages_.empty()) {
    Message& message = *messages_[pick(messages_.size())];
    if (!message.send || message.cancelled || message.send->done.load()) return;
    enter(message.from);
    engines_[message.from]->cancel(message.send);
    message.cancelled = true;
    leave(message.from);
  }
}

// A rank that waits in a send goes on, and writes over its buffer.
inline void World::move() {
  if (messages_.empty()) return;
  Message& message = *messages_[pick(messages_.size())];
  if (!message.send || message.cancelled || message.send->done.load()) return;
  enter(message.from);
  engines_[message.from]->copies().move_aside(message.send);
  const bool left = message.send->done.load() == Done::released;
  EXPECT_FALSE(left && message.synchronous);
  tally.left += left;
  leave(message.from);
}

inline void World::drive(int rank) {
  enter(rank);
  for (int times = pick(4); times >= 0; --times) {
    const int hint = pick(plan_.ranks + 1);
    engines_[rank]->advance_for(hint == int(plan_.ranks) ? nullptr
                                                         : engines_[rank]->peer(uint32_t(hint)));
  }
  leave(rank);
}

// A complete receive tells which message it took: it must be the first that it may take.
inline void World::check_receive(Receive& receive) {
  const Request& request = *receive.request;
  Message& message = *receive.message;
  ASSERT_EQ(request.status_source, message.key.source);
  ASSERT_EQ(request.status_tag, message.key.tag);
  ASSERT_EQ(request.sent_bytes, message.bytes);
  const uint64_t room = receive.room;
  const uint64_t bytes = std::min(room, message.bytes);
  ASSERT_EQ(request.status_bytes(), bytes);
  ASSERT_EQ(request.outcome, message.bytes > room ? Outcome::truncated : Outcome::ok);
  tally.truncated += message.bytes > room;
  tally.bytes += bytes;
  std::vector<char> expected(receive.buffer.size(), char(0x5a));
  for (uint64_t i = 0; i < bytes; ++i) {
    *place(expected, i, receive.typed) = char(byte_of(message.number, i));
  }
  if (expected == receive.buffer) return;
  const auto at = std::mismatch(expected.begin(), expected.end(), receive.buffer.begin());
  FAIL() << "message " << message.number << " of " << message.bytes << " bytes (room " << room
         << (receive.typed ? ", typed receive" : "") << (message.typed ? ", typed send" : "")
         << ") differs at byte " << at.first - expected.begin();
}

// Sends that are complete give their buffer back: the program may overwrite it at once.
inline void World::retire_sends() {
  for (auto& message : messages_) {
    Request* send = message->send;
    if (!send || !send->done.load()) continue;
    EXPECT_EQ(send->outcome, Outcome::ok);
    EXPECT_TRUE(!send->cancelled || message->cancelled) << "cancelled by itself";
    message->gone = send->cancelled;
    tally.cancelled_sends += message->gone;
    std::fill(message->buffer.begin(), message->buffer.end(), char(0x77));
    message->send = nullptr;
    engines_[message->from]->give_request(send);
  }
}

// Between two ranks the order decides alone who gets what: each message goes to the first receive
// that takes it, among those that got one from that sender.
inline void World::check_pair(int from, int to) {
  for (auto& message : messages_) {
    if (message->from != from || message->to != to || message->gone) continue;
    for (auto& [rank, receive] : receives_) {
      if (rank != to || receive->message || receive->request->cancelled ||
          receive->request->status_source != from || !receive->key.takes(message->key)) {
        continue;
      }
      receive->message = message.get();
      message->taken = true;
      break;
    }
    ASSERT_TRUE(message->taken) << "message " << message->number << " was never received";
  }
}

inline void World::step() {
  if (plan_.brief && ++steps_ % 16 == 1) tidy_up();
  const int dice = pick(100);
  if (dice < (plan_.brief ? 40 : 30)) {
    send();
  } else if (dice < (plan_.brief ? 88 : 55)) {
    receive();
  } else if (dice < 62) {
    probe();
  } else if (dice < 68 && plan_.cancels) {
    cancel();
  } else if (dice < 75 && plan_.leaves) {
    move();
  } else {
    drive(pick(plan_.ranks));
  }
  retire_sends();
}

// Posts receives for what lies there unexpected. True if there was any.
inline bool World::drain() {
  bool found = false;
  for (int rank = 0; rank < int(plan_.ranks); ++rank) {
    drive(rank);
    for (const uint64_t context : {2, 4}) {
      const Arrived* message = engines_[rank]->unexpected().probe({context, any, any});
      if (!message) continue;
      found = true;
      auto receive = std::make_unique<Receive>();
      receive->key = {context, any, any};
      post(rank, std::move(receive), message->size + 96);
    }
  }
  retire_sends();
  return found;
}

// Opens the rings, and leaves nothing under way.
inline void World::tidy_up() {
  for (uint32_t i = 0; i < 2 * plan_.ranks * plan_.ranks; ++i) send();
  for (int still = 0; still < 30;) still = drain() ? 0 : still + 1;
  for (auto& [rank, receive] : receives_) {
    if (receive->request->done.load()) continue;
    enter(rank);
    engines_[rank]->cancel(receive->request);
    leave(rank);
  }
}

inline void World::finish() {
  const auto active = [&](const auto& message) { return message->send != nullptr; };
  int still = 0;
  for (int round = 0; round < 20'000 && still < 30 && !testing::Test::HasFatalFailure(); ++round) {
    const bool found = drain();
    if (!found && std::none_of(messages_.begin(), messages_.end(), active) &&
        (!wires_ || wires_->are_empty())) {
      ++still;  // some quiet rounds, for what is under way in the rings
    } else {
      still = 0;
    }
  }
  EXPECT_EQ(std::count_if(messages_.begin(), messages_.end(), active), 0) << "sends that hang";
  for (auto& [rank, receive] : receives_) {
    if (!receive->request->done.load()) {
      enter(rank);
      engines_[rank]->cancel(receive->request);
      leave(rank);
    }
    ASSERT_TRUE(receive->request->done.load()) << "a receive is matched and does not end";
    tally.cancelled_receives += receive->request->cancelled;
  }
  for (int from = 0; from < int(plan_.ranks); ++from) {
    for (int to = 0; to < int(plan_.ranks); ++to) check_pair(from, to);
  }
  for (auto& [rank, receive] : receives_) {
    if (testing::Test::HasFatalFailure()) break;
    if (!receive->request->cancelled) {
      ++tally.receives;
      ASSERT_NE(receive->message, nullptr) << "it got what nobody sent";
      check_receive(*receive);
    }
    engines_[rank]->give_request(receive->request);
  }
  for (auto& engine : engines_) {
    EXPECT_TRUE(engine->is_idle());
    EXPECT_EQ(engine->handoff().pending, 0);
    EXPECT_EQ(engine->posted().size(), 0u);
    EXPECT_EQ(engine->copies().aside_bytes(), 0u);
    EXPECT_EQ(engine->unexpected().count(), 0u);
    EXPECT_EQ(engine->wanted(), uint32_t(shm::event_control)) << "a count of what is awaited leaks";
    if (!wires_) {
      EXPECT_EQ(engine->node().own().pressure.load(), 0u);
    }
  }
}

}  // namespace headway::protocols
