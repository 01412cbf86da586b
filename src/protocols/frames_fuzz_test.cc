// Any frame, at any time, into a real engine: sense or garbage, and never a broken check, a crash
// or a byte beside a buffer. The other ranks are no engines: they swallow whatever they get, so
// that only what is made up here comes in. Frames that were garbage do not end the connection, as
// they would, but are followed by more.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "protocols/engine.h"
#include "transports/sink_test.h"
#include "transports/tcp/tcp.h"

namespace headway::protocols {
namespace {

constexpr size_t beside = 64;  // bytes behind each receive's room that must stay
constexpr char untouched = 0x5a;

uint64_t base_seed() {
  const char* given = getenv("HEADWAY_TEST_SEED");
  return given ? strtoull(given, nullptr, 0) : 1;
}

// More in the slow runs (tests/CMakeLists.txt).
uint64_t seed_count() {
  const char* given = getenv("HEADWAY_TEST_SEEDS");
  return given ? strtoull(given, nullptr, 0) : 200;
}

class Sink final : public transports::Sink {
 public:
  tcp::Tcp tcp;
};

struct Operation {
  Request* request = nullptr;
  std::vector<char> buffer, before;
};

class Hostile {
 public:
  explicit Hostile(uint64_t seed, bool prefetch) : random_(seed) {
    settings::Settings settings;
    settings.early_release = 0;  // one process can trap calls for one engine
    settings.prefetch = settings.progress = prefetch;
    settings.prefetch_unexpected = 1;
    settings.unexpected_max = pick(2) ? 4 << 20 : 100'000;
    story() = "";
    EXPECT_EQ(engine_.prepare(settings, 0, 3, on_fatal), Outcome::ok);
    start(tcp_, 0, &engine_);
    char card[1024], own[1024];
    EXPECT_NE(tcp_.card(own, sizeof own), 0u);
    for (uint32_t i = 0; i < 2; ++i) {
      start(sinks_[i].tcp, i + 1, &sinks_[i]);
      EXPECT_NE(sinks_[i].tcp.card(card, sizeof card), 0u);
      EXPECT_EQ(tcp_.set_card(i + 1, card), Outcome::ok);
      EXPECT_EQ(sinks_[i].tcp.set_card(0, own), Outcome::ok);
    }
    EXPECT_EQ(engine_.use(tcp_), Outcome::ok);
    engine_.handoff().enter();
  }
  ~Hostile() {
    tcp_.abandon();
    for (Sink& sink : sinks_) sink.tcp.abandon();
    engine_.handoff().leave();
    engine_.handoff().stop();
    engine_.stop_guard();
  }

  void step() {
    const int dice = pick(100);
    if (dice < 8) {
      begin(RequestKind::send);
    } else if (dice < 16) {
      begin(RequestKind::receive);
    } else if (dice < 18 && !operations_.empty()) {
      engine_.cancel(any_one().request);
    } else if (dice < 21) {
      receive_matched();
    } else if (dice < 24) {
      engine_.note_look();
    } else if (dice < 34) {
      engine_.advance();
      for (Sink& sink : sinks_) sink.tcp.reap(1 << 20);
    } else {
      frame();
    }
    give_back();
  }
  // A send that is being taken back is ended by its receiver's word, and by nobody else's.
  void answer_to_a_cancel() {
    Request* send = make(RequestKind::send, 200'000).request;
    engine_.start_send(send);
    for (int round = 0; round < 1'000'000 && send->stage() != Stage::requested; ++round) {
      engine_.advance();
      for (Sink& sink : sinks_) sink.tcp.reap(1 << 20);
    }
    ASSERT_EQ(int(send->stage()), int(Stage::requested));
    engine_.cancel(send);
    FrameHeader answer;
    answer.kind = uint8_t(Kind::cancel_answer);
    answer.flags = flag_yes;
    answer.word = wire_id(send->pool_index, send->generation);
    EXPECT_FALSE(engine_.frame(2, answer, nullptr));
    EXPECT_FALSE(send->done.load());
    EXPECT_TRUE(engine_.frame(1, answer, nullptr));
    EXPECT_TRUE(send->done.load() && send->cancelled);
  }
  uint64_t sense = 0, garbage = 0, ended = 0;
  uint64_t kinds_with_sense() const { return kinds_; }
  static std::string& story() {
    static std::string text;
    return text;
  }

 private:
  static void on_fatal(Outcome, uint32_t, const char* what) { story() += what; }
  static void start(tcp::Tcp& tcp, uint32_t rank, transports::Receiver* receiver) {
    tcp::Config config;
    config.rank = rank;
    config.size = 3;
    config.interface = "lo";
    EXPECT_EQ(tcp.start(config, receiver), Outcome::ok) << tcp.explanation();
  }
  int pick(size_t of) { return int(random_() % of); }
  uint64_t pick_size() {
    static const uint64_t sizes[] = {0, 1, 8, 4096, 4097, 16384, 20'000, 65'536, 200'000};
    return pick(3) ? sizes[pick(std::size(sizes))] : random_() % 100'000;
  }
  Operation& any_one() { return *operations_[size_t(pick(operations_.size()))]; }

  Operation& make(RequestKind kind, uint64_t bytes) {
    auto operation = std::make_unique<Operation>();
    const bool send = kind == RequestKind::send;
    operation->buffer.assign(bytes + beside, send ? 's' : untouched);
    if (send) operation->before = operation->buffer;
    Request* request = engine_.take_request();
    request->kind = kind;
    request->mode = send && pick(4) == 0 ? Mode::synchronous : Mode::standard;
    request->held_by_user = true;
    request->sent_bytes = 0;
    request->notify = nullptr;
    request->memory = UserMemory(operation->buffer.data(), bytes);
    request->traffic = {uint8_t(pick(8) ? 0 : pick(20)), 0};
    request->key = {uint64_t(2 + 2 * pick(2)), 1, pick(3)};
    request->peer = engine_.peer(1);
    operation->request = request;
    operations_.push_back(std::move(operation));
    return *operations_.back();
  }
  void begin(RequestKind kind) {
    if (operations_.size() > 40) return;
    Request* request = make(kind, pick_size()).request;
    if (kind == RequestKind::send) {
      engine_.start_send(request);
      return;
    }
    const bool may_be_wild = !request->traffic.collective;
    if (pick(5) == 0 && may_be_wild) request->key.source = matching::any;
    if (pick(5) == 0 && may_be_wild) request->key.tag = matching::any;
    if (request->key.source == matching::any) request->peer = nullptr;
    engine_.start_receive(request);
    if (pick(2)) engine_.note_wait(request);
  }
  void receive_matched() {
    const matching::Key all{uint64_t(2 + 2 * pick(2)), matching::any, matching::any};
    Arrived* message = engine_.unexpected().take_message(all);
    if (!message) return;
    const matching::Key key = message->key;
    Request* request = make(RequestKind::receive, pick_size()).request;
    request->key = key;
    request->peer = message->peer;
    engine_.start_matched_receive(request, message);
  }
  void give_back() {
    for (size_t i = 0; i < operations_.size();) {
      Operation& one = *operations_[i];
      const bool send = one.request->kind == RequestKind::send;
      const size_t room = one.buffer.size() - beside;
      for (size_t at = room; !send && at < one.buffer.size(); ++at) {
        ASSERT_EQ(one.buffer[at], untouched) << "a byte beside a receive's buffer";
      }
      if (!one.request->done.load()) {
        ++i;
        continue;
      }
      if (send) {
        ASSERT_EQ(one.buffer, one.before) << "a send's buffer was written";
      } else {
        ASSERT_LE(one.request->status_bytes(), room);
      }
      engine_.give_request(one.request);
      std::swap(operations_[i], operations_.back());
      operations_.pop_back();
      ++ended;
    }
  }

  uint32_t id() {
    if (pick(6) == 0 || operations_.empty()) return uint32_t(random_());
    const Request& request = *any_one().request;
    return wire_id(request.pool_index, request.generation - (pick(10) == 0));
  }
  uint32_t origin() {
    const auto& stores = engine_.peer(1)->early.stores;
    if (pick(2) && !stores.empty()) return stores.first()->origin;
    return pick(3) ? uint32_t(pick(3)) << 12 | uint32_t(pick(8)) : uint32_t(random_());
  }
  uint64_t number() {
    switch (pick(6)) {
      case 0: return 0;
      case 1: return uint64_t(pick(60)) * 4096;
      case 2: return pick_size();
      case 3: return random_();
      case 4: return ~uint64_t(0) - uint64_t(pick(5000));
      default: return uint64_t(pick(300'000));
    }
  }

  // What the frame's kind could have, with each field wrong now and then.
  void frame() {
    FrameHeader header;
    const auto kind = Kind(pick(int(Kind::last) + 2));
    header.kind = uint8_t(pick(50) ? int(kind) : pick(256));
    header.flags = uint8_t(pick(3) ? 0 : 1 << pick(5) | (pick(4) ? 0 : pick(256)));
    header.collective = uint8_t(pick(8) ? 0 : pick(20));
    header.tag = pick(40) ? pick(3) : matching::any;
    header.source = pick(40) ? 1 : matching::any;
    header.context = uint64_t(2 + 2 * pick(2));
    header.sequence = uint32_t(random_());
    header.word = pick(3) ? id() : origin();
    std::vector<char> body;
    const auto add = [&](const auto& part) {
      const char* from = reinterpret_cast<const char*>(&part);
      body.insert(body.end(), from, from + sizeof part);
    };
    switch (kind) {
      case Kind::eager: body.resize(pick_size(), 'e'); break;
      case Kind::request_send:
        add(RequestSend{number(), number(), uint32_t(pick(3)), uint32_t(pick(70)),
                        pick(2) ? origin() : 0, 0});
        if (pick(4) == 0) {
          add(Confirmed{uint32_t(pick(5000)), uint32_t(pick(3)), int64_t(number())});
          for (int n = pick(pick(8) ? 4 : 300); n > 0; --n) add(random_());
        }
        break;
      case Kind::clear_send:
        add(ClearSend{number(), number(), number(), id(), Way(pick(3)), uint32_t(number() % 9000),
                      uint32_t(number() % 9000)});
        if (pick(2)) std::fill(body.begin(), body.begin() + 8, 0);  // from its beginning
        break;
      case Kind::data:
      case Kind::presend:
        header.context = number();
        header.source = pick(4) ? 0 : pick(5000);
        body.resize(pick(3) ? uint64_t(pick(16)) * 4096 : pick_size(), 'd');
        break;
      case Kind::confirm: add(ConfirmWhole{number(), number()}); break;
      default: header.context = number();
    }
    if (pick(20) == 0) body.resize(size_t(pick(200)), 'x');
    header.length = uint32_t(body.size());
    body.reserve(1);  // an empty one lies somewhere, too
    // Another process may say anything; that it is rank 2 that says it is the transport's word.
    const uint32_t from = pick(10) ? 1 : 2;
    const bool makes_sense = body.size() > transports::always_whole && pick(2)
                                 ? arrives_in_parts(from, header, body)
                                 : engine_.frame(from, header, body.data());
    ++(makes_sense ? sense : garbage);
    if (makes_sense && header.kind < 64) kinds_ |= uint64_t(1) << header.kind;
  }
  bool arrives_in_parts(uint32_t from, const FrameHeader& header, const std::vector<char>& body) {
    Landing landing;
    if (!engine_.begin(from, header, landing)) return false;
    for (uint64_t at = 0; at < body.size();) {
      const uint64_t rest = body.size() - at;
      const uint64_t n = 1 + random_() % (pick(2) ? rest : std::min<uint64_t>(rest, 5000));
      landing.store(at, body.data() + at, n);
      at += n;
      engine_.landed(from, header, landing, at);
    }
    engine_.end(from, header, landing);
    return true;
  }

  std::mt19937_64 random_;
  Engine engine_;
  tcp::Tcp tcp_;
  Sink sinks_[2];
  std::vector<std::unique_ptr<Operation>> operations_;
  uint64_t kinds_ = 0;
};

void run(bool prefetch, uint64_t seeds) {
  uint64_t sense = 0, garbage = 0, ended = 0, kinds = 0;
  for (uint64_t seed = base_seed(); seed < base_seed() + seeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "HEADWAY_TEST_SEED=" << seed);
    auto hostile = std::make_unique<Hostile>(seed, prefetch);
    for (int i = 0; i < 1500 && !testing::Test::HasFailure(); ++i) hostile->step();
    EXPECT_EQ(Hostile::story(), "");
    sense += hostile->sense;
    garbage += hostile->garbage;
    ended += hostile->ended;
    kinds |= hostile->kinds_with_sense();
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(sense, garbage / 50);
  EXPECT_GT(garbage, sense / 50);
  EXPECT_GT(ended, seeds * 10);
  for (auto kind = int(Kind::eager); kind < int(Kind::last); ++kind) {
    const bool rare = Kind(kind) == Kind::presend || Kind(kind) == Kind::confirm ||
                      Kind(kind) == Kind::data || Kind(kind) == Kind::grant ||
                      Kind(kind) == Kind::pull;  // between ranks of a node
    EXPECT_TRUE(rare || kinds >> kind & 1) << "no frame of kind " << kind << " made sense";
  }
}

TEST(FramesFuzz, AnythingAtAnyTime) { run(false, seed_count()); }

TEST(FramesFuzz, WithPrefetching) { run(true, seed_count()); }

TEST(FramesFuzz, AStrangersAnswerToACancel) {
  auto hostile = std::make_unique<Hostile>(1, false);
  hostile->answer_to_a_cancel();
  EXPECT_EQ(Hostile::story(), "");
}

}  // namespace
}  // namespace headway::protocols
