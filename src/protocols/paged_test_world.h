// For tests: programs of several ranks, by a seed, against a model of matching, where pages really
// close and their writes are followed. Rank 0 has the guard, which a process can have once: its
// receives are released, before their match too. All ranks may ask for messages before their sends,
// and send them so. Between them are Wires, which do all that a Transport may. Rank 0's user keeps
// to what the rooms above hold it to: it begins nothing while a receive without a match, or a page
// with other data, is closed, and nothing on closed pages. Thread: that of the test; the clock
// stands still, and moves by the seed. Invariants: every engine is held throughout, so that message
// threads tell of touches and do nothing else; a page that a released receive has open is final.
#pragma once
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "protocols/engine.h"
#include "protocols/engine_test_wires.h"
#include "protocols/paged_test_clock.h"
#include "protocols/paged_test_memory.h"
#include "protocols/paged_test_toucher.h"

namespace headway::protocols {

using matching::any;

struct PagedPlan {
  bool node = false;  // ranks share memory, and copy out of one another's; no wires
  bool prefetches = false;
  bool touches = false;  // a second thread of rank 0 touches closed pages
  bool cancels = false;
  bool leaves = false;  // sends leave a copy of their message
  int channels = 7;
  int steps = 2000;
  uint64_t longest = 150'000;
};

class PagedWorld {
 public:
  PagedWorld(const PagedPlan& plan, uint64_t seed);
  ~PagedWorld();
  PagedWorld(const PagedWorld&) = delete;
  PagedWorld& operator=(const PagedWorld&) = delete;

  // Before all others. False: no pages can be closed here, or no writes be followed.
  bool begin();
  void step();
  void finish();

  Engine& engine(int rank) { return *engines_[size_t(rank)]; }
  int ranks() const { return int(engines_.size()); }
  const Wires& wires() const { return wires_; }
  static std::string& story() {
    static std::string text;
    return text;
  }
  struct Tally {
    uint64_t messages = 0, receives = 0, truncated = 0, cancelled_sends = 0, cancelled_receives = 0,
             left = 0, touches = 0, early_looks = 0, given = 0, in_runs = 0;
  } tally;

 private:
  // Messages of one kind: they come from one buffer, and most go into one.
  struct Channel {
    int from = 0, to = 0;
    matching::Key key;
    uint64_t most = 0;    // bytes
    bool steady = false;  // most have that length
    // Blocks of a collective: they lie, and are as long, as the counts of others let them.
    matching::Traffic traffic;
    int64_t to_receive = 0;  // of a collective: sent, without a receive yet
    Place *out = nullptr, *in = nullptr;
  };
  struct Message {
    int from = 0, to = 0;
    matching::Key key;
    uint64_t bytes = 0;
    uint64_t begin = 0;  // of its first byte in the buffer
    std::vector<uint32_t> versions;
    Request* send = nullptr;  // null: it is over
    Place* out = nullptr;
    bool cancelled = false;  // asked for
    bool gone = false;       // the cancel came in time
    bool taken = false;      // a receive of the model has it
  };
  struct Receive {
    int rank = 0;
    matching::Key key;
    Request* request = nullptr;
    Place* place = nullptr;
    uint64_t room = 0;  // bytes of a message
    uint64_t span = 0;  // of memory, with a few behind it
    bool fits = false;  // whatever it may match
    bool released = false;
    bool given = false;    // its user has not kept the request
    bool is_over = false;  // and its user has it all
    // What its user has been told.
    bool knows = false;
    int source = 0, tag = 0;
    uint64_t bytes = 0;
    Outcome outcome = Outcome::ok;
    bool was_cancelled = false;
    // What its user saw in its memory, each page as soon as it is his.
    std::vector<char> seen;
    std::vector<bool> has_seen;
    Message* message = nullptr;  // what it must have got, once the model knows
  };

  static constexpr uint64_t behind = 64;  // bytes behind a receive's room
  static constexpr int longest_patience = 40;
  static constexpr uint64_t moves = 2 * page_size;  // bytes by which blocks of collectives move

  static void on_fatal(Outcome why, uint32_t peer, const char* what) {
    story() += "outcome " + std::to_string(int(why)) + ", peer " + std::to_string(peer) + ": " +
               what + "\n";
  }
  uint64_t pick(uint64_t of) { return random_() % of; }
  bool one_in(uint64_t of) { return pick(of) == 0; }
  Release& release() { return engines_[0]->release(); }
  settings::Settings settings_of(int rank);
  void use_node(int rank, int count);
  void exempt_threads();
  bool can_close();
  Request* make(int rank, RequestKind kind, const UserMemory& memory, const matching::Key& key,
                int peer, matching::Traffic traffic = {});
  static uint64_t pages_of(const Receive& receive) {
    const uint64_t in_page = reinterpret_cast<uintptr_t>(receive.place->from) % page_size;
    return (in_page + receive.span + page_size - 1) / page_size;
  }
  void make_channels();

  // rank 0's user
  bool may_begin(int rank);
  bool is_open(int rank, const char* from, uint64_t n) {
    return rank != 0 || !release().is_closed(from, n);
  }
  bool is_ready_for(int rank, const char* from, uint64_t n);
  void begin_wait();
  void go_on();
  bool let_go();
  void touch();

  void write_all(Place& place, uint64_t bytes);
  void write(Channel& channel);
  bool send(Channel& channel);
  void receive(Channel& channel, bool alike);
  void exchange(Channel& channel);
  Request* post(int rank, const matching::Key& key, Place* place, uint64_t room,
                matching::Traffic traffic = {});
  static bool is_collective(const matching::Key& key) { return key.context & 1; }
  uint64_t most_for(int rank, const matching::Key& key) const;
  Place* spare(int rank);
  void cancel();
  void leave_copy();
  bool serve(const Receive& receive);
  void serve_unmatched();

  void drive(int rank);
  void drive_all() {
    for (int rank = 0; rank < ranks(); ++rank) drive(rank);
  }
  void retire();
  void retire(Receive& receive);
  void learn(Receive& receive);
  bool look(Receive& receive, bool all);
  void give_up(int rank);
  bool drain();
  bool is_quiet();
  std::string state();
  void settle();
  void check_pair(int from, int to);
  void check_receive(const Receive& receive);
  void check_engine(int rank);
  void check_unmatched();

  const PagedPlan plan_;
  std::mt19937_64 random_;
  Layouts layouts_;
  Wires wires_;
  char key_[128];
  std::vector<std::unique_ptr<Arena>> arenas_;
  std::vector<std::unique_ptr<Engine>> engines_;
  std::unique_ptr<Toucher> toucher_;
  std::unique_ptr<StoppedClock> clock_;
  std::vector<Channel> channels_;
  std::vector<std::vector<Place*>> spares_;
  Place *warm_out_ = nullptr, *warm_in_ = nullptr;
  std::vector<std::unique_ptr<Message>> messages_;
  std::vector<std::unique_ptr<Receive>> receives_;
  std::vector<Message*> sending_;
  std::vector<Receive*> receiving_;
  const char* touched_ = nullptr;
  std::vector<Receive*> awaited_;  // by rank 0's user, in one call
  bool unmatched_ = false;         // that call may go on before their match
  int patience_ = 0;
  uint32_t versions_ = 0;
  std::vector<int> bells_;  // by which the message threads of others are called once
};

inline settings::Settings PagedWorld::settings_of(int rank) {
  settings::Settings settings;
  settings.progress = rank == 0 || plan_.prefetches;
  settings.early_release = rank == 0 ? 2 : 0;  // one process can trap calls for one engine
  settings.release_threshold_us = 0;           // every long message is worth it
  settings.release_batch = pick(3) * 2;
  settings.prefetch = plan_.prefetches;
  settings.prefetch_unexpected = 1 + pick(2);
  // The best one, missing; minor needs a program of one thread.
  settings.guard = pick(plan_.touches || plan_.prefetches ? 2 : 3);
  if (one_in(4)) settings.prefetch_max = 300'000;
  if (one_in(4)) settings.unexpected_max = 100'000;
  return settings;
}

inline PagedWorld::PagedWorld(const PagedPlan& plan, uint64_t seed)
    : plan_(plan),
      random_(seed),
      wires_(uint32_t(2 + seed % 2), seed ^ 0x5eed, transports::in_place | transports::early) {
  story().clear();
  const int count = int(2 + seed % 2);
  for (int rank = 0; rank < count; ++rank) {
    arenas_.push_back(std::make_unique<Arena>(16 << 20));
    engines_.push_back(std::make_unique<Engine>());
    EXPECT_EQ(engine(rank).prepare(settings_of(rank), uint32_t(rank), uint32_t(count), on_fatal),
              Outcome::ok);
    plan.node ? use_node(rank, count) : wires_.attach(uint32_t(rank), engine(rank));
    engine(rank).handoff().enter();
  }
  make_channels();
}

// Each engine maps the segment by itself, as a process would.
inline void PagedWorld::use_node(int rank, int count) {
  shm::Node& node = engine(rank).node();
  EXPECT_EQ(rank == 0 ? node.create(uint32_t(count), key_, sizeof key_)
                      : node.attach(key_, uint32_t(count)),
            Outcome::ok);
  node.join(uint32_t(rank), engine(rank).handoff().bell());
  static constexpr uint32_t all[] = {0, 1, 2};
  EXPECT_EQ(engine(rank).use_node(all, uint32_t(count)), Outcome::ok);
}

inline PagedWorld::~PagedWorld() {
  for (auto& engine : engines_) {
    if (testing::Test::HasFailure()) engine->stop_guard();  // what waits for a page goes on
  }
  toucher_.reset();
  for (auto& engine : engines_) {
    engine->handoff().leave();
    engine->handoff().stop();
    engine->stop_guard();
    if (plan_.node) engine->node().detach();
  }
  for (const int fd : bells_) {
    if (fd >= 0) close(fd);
  }
}

inline bool PagedWorld::begin() {
  if (!release().may_release()) return false;
  for (auto& engine : engines_) {
    if (plan_.prefetches && !engine->presends().is_on()) return false;
  }
  if (plan_.prefetches) exempt_threads();
  if (plan_.touches) toucher_ = std::make_unique<Toucher>(release());
  if (!can_close()) return false;
  clock_ = std::make_unique<StoppedClock>();
  return true;
}

// The message threads of the others are no threads of rank 0's program: each says so itself.
inline void PagedWorld::exempt_threads() {
  std::atomic<int> told{0};
  wires_.on_hosts = [&](uint32_t rank) {
    uint64_t rings;
    EXPECT_EQ(read(bells_[rank], &rings, sizeof rings), ssize_t(sizeof rings));
    release().exempt_thread();
    ++told;
  };
  bells_.assign(size_t(ranks()), -1);
  for (int rank = 1; rank < ranks(); ++rank) {
    bells_[size_t(rank)] = eventfd(1, EFD_CLOEXEC);
    EXPECT_EQ(engine(rank).handoff().watch_hosts(bells_[size_t(rank)]), Outcome::ok);
  }
  for (int i = 0; i < 100'000 && told < ranks() - 1; ++i) usleep(10);
  EXPECT_EQ(told, ranks() - 1);
}

// Threads come, and those of the last world go, at their own time.
inline bool PagedWorld::can_close() {
  UserMemory memory(warm_in_->from, warm_in_->room);
  Request* receive = make(0, RequestKind::receive, memory, {6, 1, 0}, 1);
  engine(0).start_receive(receive);
  bool closed = false;
  for (int i = 0; i < 20'000 && !closed; ++i) {
    engine(0).note_arrival(receive, 0, 0);  // it may be asked again
    closed = release().foresee(receive);
    if (!closed) usleep(50);
  }
  Request* send = make(1, RequestKind::send, {warm_out_->from, warm_out_->room}, {6, 1, 0}, 0);
  engine(1).start_send(send);
  for (int i = 0; i < 10'000 && !(send->done && receive->done); ++i) {
    for (auto& engine : engines_) {
      engine->handoff().driver = progress::Driver::waiting;
      engine->advance();
    }
  }
  EXPECT_TRUE(send->done && receive->done);
  EXPECT_EQ(memcmp(warm_in_->from, warm_out_->from, warm_in_->room), 0);
  engine(0).give_request(receive);
  engine(1).give_request(send);
  return closed;
}

inline Request* PagedWorld::make(int rank, RequestKind kind, const UserMemory& memory,
                                 const matching::Key& key, int peer, matching::Traffic traffic) {
  Request* request = engine(rank).take_request();
  request->kind = kind;
  request->mode = Mode::standard;
  request->held_by_user = true;
  request->notify = nullptr;
  request->memory = memory;
  request->key = key;
  request->traffic = traffic;
  request->peer = peer == any ? nullptr : engine(rank).peer(uint32_t(peer));
  return request;
}

inline void PagedWorld::make_channels() {
  static constexpr uint64_t usual[] = {100, 5000, 16'384, 30'000, 60'000};
  const auto gap = [this] { return one_in(4) ? pick(2 * page_size) : pick(200); };
  const auto layout = [this] {
    return !one_in(4) ? Layout::flat : one_in(2) ? Layout::gaps : Layout::runs;
  };
  for (int i = 0; i < plan_.channels; ++i) {
    Channel channel;
    const int other = int(1 + pick(uint64_t(ranks() - 1)));
    const bool to_others = one_in(3);
    channel.from = to_others ? int(pick(uint64_t(other))) : other;
    channel.to = to_others ? other : 0;
    channel.key = {2 + 2 * pick(2), channel.from, int(pick(3))};
    channel.steady = plan_.prefetches && !one_in(3);
    const bool is_collective = channel.steady && one_in(3);
    if (is_collective) {
      channel.traffic = {uint8_t(1 + pick(4)), 0};
      channel.key = {uint64_t(101 + 2 * i), channel.from, 0};
    }
    const uint64_t most =
        is_collective || one_in(2) ? plan_.longest - pick(2 * page_size) : usual[pick(5)];
    const Layout out = channel.steady ? Layout::flat : layout();
    channel.most = layouts_.round_up(out, most);
    channel.out = arenas_[size_t(channel.from)]->add(layouts_.span(out, channel.most), gap(), out);
    channel.out->versions.assign(chunks_of(channel.most), 0);
    write_all(*channel.out, channel.most);
    channels_.push_back(channel);
  }
  for (Channel& channel : channels_) {
    const Layout in = layout();
    const uint64_t room = layouts_.round_up(in, most_for(channel.to, channel.key));
    channel.in = arenas_[size_t(channel.to)]->add(layouts_.span(in, room) + behind, gap(), in);
  }
  const uint64_t longest = layouts_.round_up(Layout::runs, plan_.longest) + behind;
  spares_.resize(size_t(ranks()));
  for (int rank = 0; rank < ranks(); ++rank) {
    for (int i = 0; i < 4; ++i) {
      spares_[size_t(rank)].push_back(arenas_[size_t(rank)]->add(longest, gap(), Layout::flat));
    }
  }
  warm_in_ = arenas_[0]->add(20'000, gap(), Layout::flat);
  warm_out_ = arenas_[1]->add(20'000, gap(), Layout::flat);
}

}  // namespace headway::protocols
