// For tests: the ranks of a communicator in one process. Their schedules are played without an
// engine: what is ready is launched in the order of Schedule::work(), ranks begin and messages come
// when a seed says so, and a message is taken by the first receive that was posted for it, which
// may be over later than that of the next one. Thread: that of the test.
#pragma once
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "collectives/inter.h"
#include "objects/errhandler.h"
#include "protocols/engine.h"

namespace headway::collectives {

// For seeds.
inline uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* given = getenv(name);
  return given ? strtoull(given, nullptr, 0) : otherwise;
}

// x -> p x + q: which comes first matters.
struct Line {
  uint32_t p, q;
  bool operator==(const Line&) const = default;
};
inline Line then(const Line& first, const Line& second) {
  return {first.p * second.p, first.q * second.p + second.q};
}

// One rank's schedule.
class TestSchedule {
 public:
  struct Message {
    size_t from;
    bool own_side;
    int source;
    StepId step;
    bool is_copied;
    std::vector<char> bytes;
  };
  using Key = std::pair<bool, int>;  // own side or not, the sender's rank

  explicit TestSchedule(Schedule* schedule) : schedule_(schedule) {}
  ~TestSchedule() { schedule_->destroy(); }
  TestSchedule(const TestSchedule&) = delete;
  TestSchedule& operator=(const TestSchedule&) = delete;

  bool failed() const { return schedule_->failed(); }
  bool is_over() const { return begun_ && left_ == 0; }
  bool has_begun() const { return begun_; }
  Step& at(StepId id) { return schedule_->steps_[id]; }
  void begin() {
    begun_ = true;
    left_ = schedule_->steps_.size();
    for (StepId id = 0; id < left_; ++id) {
      at(id).waits = at(id).needs;
      if (at(id).waits == 0) ready_.push_back(id);
    }
  }
  void done(StepId id) {
    --left_;
    for (uint32_t next = at(id).first_dependent; next != ~0u;
         next = schedule_->dependents_[next].next) {
      const StepId to = schedule_->dependents_[next].to;
      if (--at(to).waits == 0) ready_.push_back(to);
    }
  }
  bool take_ready(StepId& id) {
    if (ready_.empty()) return false;
    id = ready_.front();
    ready_.pop_front();
    return true;
  }
  void reduce(const Step& step) const {
    auto* in = reinterpret_cast<Line*>(step.from.flat());
    auto* inout = reinterpret_cast<Line*>(step.to.flat());
    for (uint64_t i = 0; i < step.count; ++i) {
      inout[i] = step.swapped ? then(inout[i], in[i]) : then(in[i], inout[i]);
    }
  }

  std::map<Key, std::deque<StepId>> posted;
  std::map<Key, std::deque<Message>> unexpected;

 private:
  Schedule* schedule_;
  bool begun_ = false;
  size_t left_ = 0;
  std::deque<StepId> ready_;
};

class World {
 public:
  // The two sides of an inter-communicator; or one of `first` ranks, if there is no second: on
  // nodes of so many each. `forced`: what every collective is forced to, so that nobody asks how
  // ranks share cores.
  World(int first, int second, Algorithm forced, uint64_t seed, int ranks_a_node = 1)
      : random_(seed), ranks_a_node_(ranks_a_node) {
    for (Algorithm& one : forced_.of) one = forced;
    errhandler_.kind = objects::ErrhandlerKind::abort;
    sizes_[0] = first;
    sizes_[1] = second;
    for (size_t one = 0; one < ranks(); ++one) comms_.push_back(make(one));
  }
  ~World() {
    for (objects::Comm* comm : comms_) objects::release(comm);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Ranks are counted through both sides.
  size_t ranks() const { return size_t(sizes_[0] + sizes_[1]); }
  int side(size_t one) const { return one < size_t(sizes_[0]) ? 0 : 1; }
  int rank(size_t one) const { return int(one) - (side(one) ? sizes_[0] : 0); }
  int size(int of) const { return sizes_[of]; }
  size_t number(int of, int place) const { return size_t(of ? sizes_[0] + place : place); }
  Place place(size_t one) { return {nobody(), comms_[one], forced_}; }
  // Roots as that rank passes them.
  int root_for(size_t one, int root_side, int root) const {
    if (side(one) != root_side) return root;
    return rank(one) == root ? inter::root_itself : inter::beside_root;
  }
  Reduction reduction() {
    Reduction made;
    made.op = &op_;
    made.type = type();
    return made;
  }
  static const datatypes::Type* type() {
    return &datatypes::predefined(datatypes::BasicType::int64_t);
  }

  // Plays a call; build(one) gives that rank's schedule. `meets`: nobody may be over before all of
  // the other side have begun.
  template <class Build>
  void play(Build&& build, bool meets = false) {
    players_.clear();
    channels_.clear();
    late_.clear();
    for (size_t one = 0; one < ranks(); ++one) {
      Schedule* schedule = build(one);
      ASSERT_NE(schedule, nullptr);
      players_.push_back(std::make_unique<TestSchedule>(schedule));
      ASSERT_FALSE(players_[one]->failed());
    }
    while (happens()) {
      settle();
      if (meets) check_meeting();
      if (testing::Test::HasFatalFailure()) return;
    }
    for (size_t one = 0; one < ranks(); ++one) {
      EXPECT_TRUE(players_[one]->is_over()) << "rank " << one << " waits for ever";
      for (const auto& [key, steps] : players_[one]->posted) EXPECT_TRUE(steps.empty());
      for (const auto& [key, messages] : players_[one]->unexpected) EXPECT_TRUE(messages.empty());
    }
  }

 private:
  using Message = TestSchedule::Message;

  static protocols::Engine& nobody() {
    static auto* engine = new protocols::Engine;  // nothing is asked of it
    return *engine;
  }
  objects::Comm* make(size_t one) {
    objects::Group* groups[2];
    for (int of = 0; of < 2; ++of) {
      groups[of] = objects::Group::make(sizes_[of]);
      for (int r = 0; r < sizes_[of]; ++r) groups[of]->members[r] = process(number(of, r));
      groups[of]->find_self(process(one));
    }
    objects::Comm* comm = objects::make_comm(64, groups[side(one)], &errhandler_);
    if (is_inter()) {
      objects::bridge(*comm, groups[1 - side(one)], side(one) == 0);
    } else {
      comm->ranks_a_node = uint32_t(ranks_a_node_);
      comm->sharing = uint8_t(Sharing::nodes);
    }
    for (objects::Group* group : groups) group->release();
    return comm;
  }
  bool is_inter() const { return sizes_[1] > 0; }
  bool is_own_side(size_t one, size_t other) const {
    return is_inter() && side(one) == side(other);
  }
  static uint32_t process(size_t one) { return uint32_t(7 * one + 3); }
  static size_t number_of(uint32_t process) { return (process - 3) / 7; }

  // Something happens; false: nothing is left that can.
  bool happens() {
    std::vector<size_t> waiting;
    for (size_t one = 0; one < ranks(); ++one) {
      if (!players_[one]->has_begun()) waiting.push_back(one);
    }
    std::vector<std::pair<size_t, size_t>> full;
    for (const auto& [ends, messages] : channels_) {
      if (!messages.empty()) full.push_back(ends);
    }
    const size_t choices = waiting.size() + full.size() + late_.size();
    if (choices == 0) return false;
    const size_t choice = random_() % choices;
    if (choice < waiting.size()) {
      players_[waiting[choice]]->begin();
    } else if (choice < waiting.size() + full.size()) {
      deliver(full[choice - waiting.size()]);
    } else {
      const auto [one, id] = late_[choice - waiting.size() - full.size()];
      late_.erase(late_.begin() + std::ptrdiff_t(choice - waiting.size() - full.size()));
      players_[one]->done(id);
    }
    return true;
  }
  void settle() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t one = 0; one < ranks(); ++one) {
        for (StepId id = 0; players_[one]->take_ready(id); moved = true) launch(one, id);
      }
    }
  }
  void check_meeting() {
    for (size_t one = 0; one < ranks(); ++one) {
      if (!players_[one]->is_over()) continue;
      for (int r = 0; r < sizes_[1 - side(one)]; ++r) {
        ASSERT_TRUE(players_[number(1 - side(one), r)]->has_begun());
      }
    }
  }
  void launch(size_t one, StepId id) {
    Step& step = players_[one]->at(id);
    switch (step.kind) {
      case Step::Kind::send: send(one, id); return;
      case Step::Kind::receive: receive(one, id); return;
      case Step::Kind::copy:
        ASSERT_EQ(step.from.bytes(), step.to.bytes());
        if (step.from.flat() != step.to.flat()) {
          UserMemory::copy(step.from, step.to, step.from.bytes());
        }
        break;
      case Step::Kind::reduce: players_[one]->reduce(step); break;
      case Step::Kind::act: ADD_FAILURE() << "a step of a room above"; break;
      case Step::Kind::nothing: break;
    }
    players_[one]->done(id);
  }
  // Either its bytes leave at once, or they are read when the message is taken.
  void send(size_t one, StepId id) {
    const Step& step = players_[one]->at(id);
    const size_t to = number_of(step.process);
    ASSERT_EQ(step.own_side, is_own_side(one, to));
    ASSERT_EQ(step.source, rank(one));
    ASSERT_NE(to, one);
    Message message{one, step.own_side, step.source, id, random_() % 2 == 0, {}};
    if (message.is_copied) {
      message.bytes = bytes_of(step);
      if (random_() % 2) {
        players_[one]->done(id);
      } else {
        late_.emplace_back(one, id);
      }
    }
    channels_[{one, to}].push_back(std::move(message));
  }
  void receive(size_t one, StepId id) {
    const Step& step = players_[one]->at(id);
    const size_t from = number_of(step.process);
    ASSERT_EQ(step.own_side, is_own_side(one, from));
    ASSERT_EQ(step.source, rank(from));
    std::deque<Message>& waiting = players_[one]->unexpected[{step.own_side, step.source}];
    if (waiting.empty()) {
      players_[one]->posted[{step.own_side, step.source}].push_back(id);
      return;
    }
    Message message = std::move(waiting.front());
    waiting.pop_front();
    take(one, id, message);
  }
  void deliver(std::pair<size_t, size_t> ends) {
    Message message = std::move(channels_[ends].front());
    channels_[ends].pop_front();
    const TestSchedule::Key key{message.own_side, message.source};
    std::deque<StepId>& posted = players_[ends.second]->posted[key];
    if (posted.empty()) {
      players_[ends.second]->unexpected[key].push_back(std::move(message));
      return;
    }
    const StepId id = posted.front();
    posted.pop_front();
    take(ends.second, id, message);
  }
  void take(size_t one, StepId id, Message& message) {
    Step& step = players_[one]->at(id);
    if (!message.is_copied) message.bytes = bytes_of(players_[message.from]->at(message.step));
    ASSERT_EQ(message.bytes.size(), step.to.bytes())
        << "rank " << one << " from " << message.from << ": it is another message";
    step.to.write(0, message.bytes.data(), message.bytes.size());
    if (random_() % 4) {
      players_[one]->done(id);
    } else {
      late_.emplace_back(one, id);
    }
    if (!message.is_copied) players_[message.from]->done(message.step);
  }
  static std::vector<char> bytes_of(const Step& step) {
    std::vector<char> bytes(step.from.bytes());
    step.from.read(0, bytes.data(), bytes.size());
    return bytes;
  }

  std::mt19937_64 random_;
  int sizes_[2], ranks_a_node_;
  objects::Errhandler errhandler_;
  objects::Op op_{.builtin = datatypes::ReduceOp::sum};
  Forced forced_;
  std::vector<objects::Comm*> comms_;
  std::vector<std::unique_ptr<TestSchedule>> players_;
  std::map<std::pair<size_t, size_t>, std::deque<Message>> channels_;
  std::vector<std::pair<size_t, StepId>> late_;  // moved, and not over for their rank
};

}  // namespace headway::collectives
