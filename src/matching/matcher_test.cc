// The queues against a plain list that is searched from its beginning, in every design.
#include "matching/matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <list>
#include <random>
#include <vector>

namespace headway::matching {
namespace {

const char* const design_names[designs] = {"headway",  "list",     "source", "pnp",
                                           "col_list", "list_pnp", "col_pnp"};

uint64_t base_seed() {
  const char* given = getenv("HEADWAY_TEST_SEED");
  return given ? strtoull(given, nullptr, 0) : 0;
}

struct Plan {
  int contexts, sources, tags;
  int wild_percent;        // of the receives
  int receive_percent;     // of the steps that add something
  int cancel_percent;      // of the steps
  int collective_percent;  // of the keys
};

// Both queues as MPI uses them: a receive looks at the messages, then is posted; a message looks at
// the receives, then waits. Contexts are even; collectives have the odd ones, and no wildcards.
class Model {
 public:
  Model(const Plan& plan, Design design, uint64_t seed) : plan_(plan), random_(seed) {
    Config config;
    config.design = design;
    config.processes = uint32_t(plan.sources);
    config.collective_cap = uint32_t(pick(9));
    config.partner_cap = uint32_t(pick(9));
    config.threshold = uint32_t(pick(3) ? 1 + pick(12) : 100);
    config.promises = &promises_;
    EXPECT_TRUE(posted_.prepare(config));
    EXPECT_TRUE(unexpected_.prepare(config));
    most_queues_ = config.queues(config.collective_cap) + config.queues(config.partner_cap);
    is_bounded_ = design != Design::source;
    visits_ = design == Design::headway;
  }

  void step() {
    const int dice = pick(100);
    if (dice < plan_.cancel_percent) {
      cancel();
    } else if (pick(100) < plan_.receive_percent) {
      receive();
    } else {
      arrive();
    }
    if (pick(50) == 0) look_around();
    ASSERT_EQ(posted_.size(), receives_.size());
    ASSERT_EQ(unexpected_.size(), messages_.size());
    if (!is_bounded_) return;
    ASSERT_LE(posted_.queues(true) + posted_.queues(false), most_queues_);
    ASSERT_LE(unexpected_.queues(true) + unexpected_.queues(false), most_queues_);
  }

  void drain() {
    while (!receives_.empty() && !testing::Test::HasFatalFailure()) cancel();
    while (!messages_.empty() && !testing::Test::HasFatalFailure()) cancel();
    EXPECT_EQ(posted_.size(), 0u);
    EXPECT_EQ(unexpected_.size(), 0u);
    EXPECT_EQ(unexpected_.find({2, any, any}), nullptr);
    for (int context = 0; context < 2 * plan_.contexts + 4; ++context) {
      posted_.forget(uint64_t(context));
      unexpected_.forget(uint64_t(context));
    }
    EXPECT_EQ(posted_.queues(true) + unexpected_.queues(true), 0u) << "nothing is forgotten";
  }

  size_t longest() const {
    return std::max(posted_.counters.longest, unexpected_.counters.longest);
  }
  size_t matches() const { return matches_; }
  size_t queues() const {
    return posted_.queues(true) + posted_.queues(false) + unexpected_.queues(true) +
           unexpected_.queues(false);
  }

 private:
  struct What {
    Key key;
    Traffic traffic;
  };

  Message* fresh(const What& what) {
    if (unused_.empty()) unused_.push_back(&hooks_.emplace_back());
    Message* hook = unused_.back();
    unused_.pop_back();
    hook->key = what.key;
    hook->traffic = what.traffic;
    return hook;
  }
  int pick(int of) { return int(random_() % uint64_t(of)); }

  What exact() {
    const uint64_t context = 2 + 2 * uint64_t(pick(plan_.contexts));
    const Key key{context, pick(plan_.sources), pick(plan_.tags)};
    if (pick(100) >= plan_.collective_percent) return {key, {}};
    // A tag belongs to one call; what the two sides know of its sizes need not agree.
    const Traffic traffic = Traffic::of(uint8_t(1 + key.tag % 4), uint64_t(1) << pick(24),
                                        uint32_t(plan_.sources) << 2 * pick(2));
    return {{context + 1, key.source, key.tag}, traffic};
  }

  What wanted() {
    What what = exact();
    if (!what.traffic.collective && pick(100) < plan_.wild_percent) {
      what.key = blur(what.key, pick(wild_kinds));
    }
    return what;
  }
  // Probes take nothing; promises change, and are kept or not; a communicator goes.
  void look_around() {
    const What what = wanted();
    EXPECT_EQ(unexpected_.find(what.key, what.traffic), oldest_message(what));
    std::vector<const Hook*> visited;
    unexpected_.each([&](const Hook* message) { visited.push_back(message); });
    std::vector<const Hook*> all(messages_.begin(), messages_.end());
    std::sort(visited.begin(), visited.end());
    std::sort(all.begin(), all.end());
    if (visits_) {
      EXPECT_EQ(visited, all);
    } else {
      EXPECT_TRUE(visited.empty());
    }
    const What message = exact();
    const bool has_taker = std::any_of(receives_.begin(), receives_.end(), [&](Message* receive) {
      return receive->key.takes(message.key);
    });
    EXPECT_EQ(posted_.takes(message.key, message.traffic), has_taker);
    const uint64_t context = 2 + 2 * uint64_t(pick(plan_.contexts));
    if (pick(4) == 0) {
      posted_.forget(context + 1);
      unexpected_.forget(context + 1);
    }
    // A wildcard receive that stands already was there before the promise.
    const bool has_wild = std::any_of(receives_.begin(), receives_.end(), [&](Message* receive) {
      return receive->key.is_wild() && receive->key.context == context;
    });
    if (!has_wild) promises_.note(context, pick(2), pick(2));
  }

  Message* oldest_message(const What& what) {
    const auto found = std::find_if(messages_.begin(), messages_.end(),
                                    [&](Message* message) { return what.key.takes(message->key); });
    return found == messages_.end() ? nullptr : *found;
  }

  void receive() {
    const What what = wanted();
    Message* const expected = oldest_message(what);
    Message* found = unexpected_.find(what.key, what.traffic);
    ASSERT_EQ(found, expected);
    if (found) {
      ASSERT_TRUE(found->queued);
      unexpected_.remove(found);
      ASSERT_FALSE(found->queued);
      unused_.push_back(found);
      messages_.remove(found);
      ++matches_;
    } else {
      Message* hook = fresh(what);
      posted_.post(hook);
      receives_.push_back(hook);
    }
  }

  void arrive() {
    const What what = exact();
    const auto expected = std::find_if(receives_.begin(), receives_.end(), [&](Message* receive) {
      return receive->key.takes(what.key);
    });
    Hook* found = posted_.match(what.key, what.traffic);
    ASSERT_EQ(found, expected == receives_.end() ? nullptr : *expected);
    if (found) {
      ASSERT_FALSE(found->queued);
      unused_.push_back(*expected);
      receives_.erase(expected);
      ++matches_;
    } else {
      Message* hook = fresh(what);
      unexpected_.add(hook);
      messages_.push_back(hook);
    }
  }

  void cancel() {
    const bool of_receives = !receives_.empty() && (messages_.empty() || pick(2));
    auto& list = of_receives ? receives_ : messages_;
    if (list.empty()) return;
    // Mostly near an end, so that a long list costs the model little.
    auto at = list.begin();
    std::advance(at, std::min<long>(pick(8), long(list.size()) - 1));
    of_receives ? posted_.remove(*at) : unexpected_.remove(*at);
    ASSERT_FALSE((*at)->queued);
    unused_.push_back(*at);
    list.erase(at);
  }

  Plan plan_;
  std::mt19937_64 random_;
  std::deque<Message> hooks_;
  std::vector<Message*> unused_;
  std::list<Message*> receives_, messages_;
  Promises promises_;
  PostedQueue posted_;
  UnexpectedQueue unexpected_;
  size_t matches_ = 0;
  size_t most_queues_ = 0;
  bool is_bounded_ = true;
  bool visits_ = true;
};

class EveryDesign : public testing::TestWithParam<int> {
 protected:
  void run(const Plan& plan, int seeds, int steps, size_t at_least_long) {
    const auto design = Design(GetParam());
    size_t longest = 0, matches = 0, queues = 0;
    if (design != Design::headway) seeds = (seeds + 3) / 4;
    for (uint64_t seed = base_seed(); seed < base_seed() + uint64_t(seeds); ++seed) {
      SCOPED_TRACE(testing::Message() << "HEADWAY_TEST_SEED=" << seed);
      Model model(plan, design, seed);
      for (int i = 0; i < steps; ++i) {
        model.step();
        if (HasFailure()) return;
      }
      longest = std::max(longest, model.longest());
      matches += model.matches();
      queues += model.queues();
      model.drain();
      if (HasFailure()) return;
    }
    EXPECT_GE(longest, at_least_long) << "the plan did not exercise what it is for";
    EXPECT_GT(matches, size_t(seeds));
    const bool has_queues = design != Design::headway && design != Design::list;
    if (at_least_long >= 100 && plan.collective_percent > 0) {
      EXPECT_EQ(queues > 0, has_queues) << "lists of their own";
    }
  }
};

TEST_P(EveryDesign, FewKeysManyWildcards) { run({2, 3, 3, 50, 50, 5, 0}, 60, 2000, 5); }
TEST_P(EveryDesign, WildcardsAlone) { run({1, 2, 2, 100, 50, 10, 0}, 40, 2000, 5); }
TEST_P(EveryDesign, ManyKeys) { run({4, 40, 40, 5, 50, 2, 20}, 20, 4000, 100); }
TEST_P(EveryDesign, Collectives) { run({3, 12, 6, 5, 50, 2, 70}, 60, 2000, 20); }
TEST_P(EveryDesign, CollectivesOfManyRanks) { run({2, 60, 8, 5, 48, 1, 80}, 40, 4000, 100); }
// The table starts with 256 buckets and grows beyond 1,024 hooks.
TEST_P(EveryDesign, MessagesPileUp) { run({3, 30, 100, 2, 25, 1, 30}, 4, 8000, 2500); }
TEST_P(EveryDesign, ReceivesPileUp) { run({3, 30, 100, 2, 75, 1, 30}, 4, 8000, 2500); }

INSTANTIATE_TEST_SUITE_P(Matching, EveryDesign, testing::Range(0, designs),
                         [](const auto& design) { return design_names[design.param]; });

// Order among equal keys survives growth: one key, thousands of hooks, among others.
TEST(Matching, GrowthKeepsTheOrderOfEqualKeys) {
  UnexpectedQueue queue;
  ASSERT_TRUE(queue.prepare());
  std::deque<Message> hooks(6000);
  for (size_t i = 0; i < hooks.size(); ++i) {
    hooks[i].key = {7, i % 3 ? int32_t(i) : 1, i % 3 ? 5 : 0};
    queue.add(&hooks[i]);
  }
  for (size_t i = 0; i < hooks.size(); i += 3) {
    ASSERT_EQ(queue.find({7, 1, 0}), &hooks[i]);
    queue.remove(&hooks[i]);
  }
  EXPECT_EQ(queue.find({7, 1, 0}), nullptr);
  EXPECT_EQ(queue.find({7, any, any}), &hooks[1]);
  EXPECT_EQ(queue.find({8, any, any}), nullptr);
}

// A row of one key is posted while the table grows: at every length that it may have then.
TEST(Matching, ARowOfOneKeyIsFoundWhereItIsAfterGrowth) {
  constexpr int32_t row = 8;
  std::deque<Hook> others(3000), ours(row);
  for (size_t before = 1010; before < 1030; ++before) {  // 1,024 fill the first table
    PostedQueue queue;
    ASSERT_TRUE(queue.prepare());
    for (size_t i = 0; i < before; ++i) {
      others[i] = {};
      others[i].key = {7, int32_t(i), 5};
      queue.post(&others[i]);
    }
    for (Hook& hook : ours) {
      hook = {};
      hook.key = {9, 1, 2};
      queue.post(&hook);
    }
    for (Hook& hook : ours) ASSERT_EQ(queue.match({9, 1, 2}), &hook) << "behind " << before;
    EXPECT_EQ(queue.match({9, 1, 2}), nullptr) << "behind " << before;
    for (size_t i = 0; i < before; ++i) ASSERT_EQ(queue.match({7, int32_t(i), 5}), &others[i]);
  }
}

// What a choice of tags and contexts could do to a hash: strides of all powers of two, and both
// ends of the range.
struct Pattern {
  const char* name;
  Key (*key)(uint32_t i);
};
const Pattern patterns[] = {
    {"one source, tags from 0", [](uint32_t i) { return Key{2, 1, int32_t(i)}; }},
    {"tags from the top", [](uint32_t i) { return Key{2, 1, INT32_MAX - int32_t(i)}; }},
    {"tags by 256", [](uint32_t i) { return Key{2, 1, int32_t(i << 8 & INT32_MAX)}; }},
    {"tags by 32768", [](uint32_t i) { return Key{2, 1, int32_t(i << 15 & INT32_MAX)}; }},
    {"tags with few bits",
     [](uint32_t i) { return Key{2, 1, int32_t((i & 0xff) << 23 | (i >> 8 & 0xff))}; }},
    {"sources alone", [](uint32_t i) { return Key{2, int32_t(i), 7}; }},
    {"source and tag alike", [](uint32_t i) { return Key{2, int32_t(i), int32_t(i)}; }},
    {"contexts", [](uint32_t i) { return Key{uint64_t(i) << 1, 1, 7}; }},
    {"contexts of many makers", [](uint32_t i) { return Key{uint64_t(i) << 40, 1, 7}; }},
    {"sources by tags", [](uint32_t i) { return Key{2, int32_t(i & 255), int32_t(i >> 8 << 16)}; }},
};

TEST(Matching, NoChoiceOfKeysMakesSearchesWalkTheQueue) {
  constexpr size_t n = 65536;
  std::deque<Message> hooks(n);
  for (const Pattern& pattern : patterns) {
    SCOPED_TRACE(pattern.name);
    PostedQueue posted;
    UnexpectedQueue unexpected;
    ASSERT_TRUE(posted.prepare() && unexpected.prepare());
    for (size_t i = 0; i < n; ++i) {
      hooks[i].key = pattern.key(uint32_t(i));
      posted.post(&hooks[i]);
    }
    for (size_t i = n; i-- > 0;) ASSERT_EQ(posted.match(hooks[i].key), &hooks[i]);
    EXPECT_EQ(posted.counters.searches(), n);
    EXPECT_LT(posted.counters.traversed(), 4 * n);
    for (Message& hook : hooks) unexpected.add(&hook);
    for (size_t i = n; i-- > 0;) {
      ASSERT_EQ(unexpected.find(hooks[i].key), &hooks[i]);
      unexpected.remove(&hooks[i]);
    }
    EXPECT_LT(unexpected.counters.traversed(), 4 * n);
  }
}

// Many receives with one key do not hide the others of their bucket.
TEST(Matching, EqualKeysDoNotMakeABucketLong) {
  PostedQueue queue;
  ASSERT_TRUE(queue.prepare());
  std::deque<Message> hooks(40000);
  for (size_t i = 0; i < hooks.size(); ++i) {
    hooks[i].key = {2, 3, i % 2 ? int32_t(i) : 0};
    queue.post(&hooks[i]);
  }
  for (size_t i = hooks.size() - 1; i < hooks.size(); i -= 2) {
    ASSERT_EQ(queue.match(hooks[i].key), &hooks[i]);
  }
  EXPECT_LT(queue.counters.traversed(), 2 * hooks.size());
  for (size_t i = 0; i < hooks.size(); i += 2) ASSERT_EQ(queue.match({2, 3, 0}), &hooks[i]);
  EXPECT_EQ(queue.size(), 0u);
}

TEST(Matching, WildcardsDoNotWalkTheQueueEither) {
  constexpr size_t n = 20000;
  std::deque<Message> hooks(n);
  for (int kind = 0; kind < wild_kinds; ++kind) {
    SCOPED_TRACE(kind);
    PostedQueue posted;
    UnexpectedQueue unexpected;
    ASSERT_TRUE(posted.prepare() && unexpected.prepare());
    for (size_t i = 0; i < n; ++i) {
      hooks[i].key = blur({2, int32_t(i), int32_t(i)}, kind);
      posted.post(&hooks[i]);
    }
    for (size_t i = 0; i < n; ++i) {
      const Key message{2, int32_t(i), int32_t(i)};
      const size_t oldest = kind == 2 ? i : n - 1 - i;
      const Key own{2, int32_t(oldest), int32_t(oldest)};
      ASSERT_EQ(posted.match(kind == 2 ? message : own), &hooks[oldest]);
    }
    EXPECT_LT(posted.counters.traversed(), 8 * n);
    for (size_t i = 0; i < n; ++i) {
      hooks[i].key = {2, int32_t(i), int32_t(i)};
      unexpected.add(&hooks[i]);
    }
    for (size_t i = n; i-- > 0;) {
      const size_t expected = kind == 2 ? n - 1 - i : i;
      ASSERT_EQ(unexpected.find(blur(hooks[i].key, kind)), &hooks[expected]);
      unexpected.remove(&hooks[expected]);
    }
    EXPECT_LT(unexpected.counters.traversed(), 8 * n);
  }
}

// With the promise not to use wildcards, none of the work for them is done.
TEST(Matching, PromisesSkipTheWorkForWildcards) {
  for (const Design design : {Design::headway, Design::pnp, Design::source}) {
    SCOPED_TRACE(design_names[int(design)]);
    Promises promises;
    Config config;
    config.design = design;
    config.promises = &promises;
    PostedQueue posted;
    UnexpectedQueue unexpected;
    ASSERT_TRUE(posted.prepare(config) && unexpected.prepare(config));
    promises.note(4, true, true);
    Message wild, first, second;
    wild.key = {2, any, 9};
    posted.post(&wild);
    // One message may by chance have the wildcard's bucket.
    uint64_t fewest = ~uint64_t(0);
    for (int tag = 1; tag <= 4; ++tag) {
      const uint64_t before = posted.counters.traversed();
      EXPECT_EQ(posted.match({4, 1, tag}), nullptr);
      fewest = std::min(fewest, posted.counters.traversed() - before);
    }
    EXPECT_EQ(fewest, 0u) << "looked at another communicator's wildcard";
    ASSERT_EQ(posted.match({2, 1, 9}), &wild);
    first.key = {2, 1, 9};
    second.key = {4, 1, 9};
    unexpected.add(&first);
    ASSERT_EQ(unexpected.find({2, any, 9}), &first);
    unexpected.add(&second);
    EXPECT_EQ(second.indexed, 0);
    // A promise that is broken, or taken back, loses nothing.
    ASSERT_EQ(unexpected.find({4, any, 9}), &second);
    promises.note(4, false, false);
    ASSERT_EQ(unexpected.find({4, any, any}), &second);
    promises.note(4, true, true);
    wild.key = {4, any, any};
    posted.post(&wild);
    ASSERT_EQ(posted.match({4, 5, 5}), &wild);
  }
}

TEST(Matching, ExtremeTagsAndContextsAreKeysLikeOthers) {
  for (int design = 0; design < designs; ++design) {
    Config config;
    config.design = Design(design);
    PostedQueue queue;
    ASSERT_TRUE(queue.prepare(config));
    Message top, zero, wild;
    top.key = {~uint64_t(0), INT32_MAX, INT32_MAX};
    zero.key = {0, 0, 0};
    wild.key = {~uint64_t(0), any, INT32_MAX};
    queue.post(&top);
    queue.post(&zero);
    queue.post(&wild);
    EXPECT_EQ(queue.match({~uint64_t(0), INT32_MAX, INT32_MAX - 1}), nullptr);
    EXPECT_EQ(queue.match({~uint64_t(0), INT32_MAX, INT32_MAX}), &top);
    EXPECT_EQ(queue.match({~uint64_t(0), INT32_MAX, INT32_MAX}), &wild);
    EXPECT_EQ(queue.match({0, 0, 0}), &zero);
    EXPECT_EQ(queue.size(), 0u);
  }
}

#if defined(HEADWAY_DEBUG)
TEST(MatchingDeathTest, AMessageHasNoWildcards) {
  UnexpectedQueue queue;
  ASSERT_TRUE(queue.prepare());
  Message message;
  message.key = {2, any, 9};
  EXPECT_DEATH(queue.add(&message), "does not hold");
  message.key = {2, 1, any};
  EXPECT_DEATH(queue.add(&message), "does not hold");
}

TEST(MatchingDeathTest, ACollectiveHasNoWildcards) {
  PostedQueue queue;
  ASSERT_TRUE(queue.prepare());
  Hook receive;
  receive.key = {3, any, 9};
  receive.traffic.collective = 1;
  EXPECT_DEATH(queue.post(&receive), "does not hold");
}

TEST(MatchingDeathTest, AHookIsInOneQueueOnce) {
  for (int design = 0; design < designs; ++design) {
    Config config;
    config.design = Design(design);
    PostedQueue queue;
    ASSERT_TRUE(queue.prepare(config));
    Hook receive;
    receive.key = {2, 1, 9};
    EXPECT_DEATH(queue.remove(&receive), "does not hold");
    queue.post(&receive);
    EXPECT_DEATH(queue.post(&receive), "does not hold");
    queue.remove(&receive);
    EXPECT_DEATH(queue.remove(&receive), "does not hold");
  }
}

// With a key that has changed, too, it could not be found any more.
TEST(MatchingDeathTest, TheHeadOfARingIsTheOldest) {
  PostedQueue queue;
  ASSERT_TRUE(queue.prepare());
  Hook first, second;
  first.key = second.key = {2, 1, 9};
  queue.post(&first);
  queue.post(&second);
  first.order = second.order + 1;
  EXPECT_DEATH((void)queue.match(first.key), "does not hold");
}

TEST(MatchingDeathTest, AChainKnowsItsHooks) {
  Chain chain{}, other{};
  Hook first, second;
  chain.append(&first);
  chain.append(&second);
  EXPECT_DEATH(other.remove(&first), "does not hold");
  second.links.before = nullptr;
  EXPECT_DEATH(chain.remove(&second), "does not hold");
}
#endif

}  // namespace
}  // namespace headway::matching
