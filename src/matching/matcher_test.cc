// The queues against a plain list that is searched from its beginning.
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

uint64_t base_seed() {
  const char* given = getenv("HEADWAY_TEST_SEED");
  return given ? strtoull(given, nullptr, 0) : 0;
}

struct Plan {
  int contexts, sources, tags;
  int wild_percent;     // of the receives
  int receive_percent;  // of the steps that add something
  int cancel_percent;
};

// Both queues as MPI uses them: a receive looks at the messages, then is posted; a message looks at
// the receives, then waits.
class Model {
 public:
  Model(const Plan& plan, uint64_t seed) : plan_(plan), random_(seed) {
    EXPECT_TRUE(posted_.prepare());
    EXPECT_TRUE(unexpected_.prepare());
  }

  void step() {
    const int dice = int(random_() % 100);
    if (dice < plan_.cancel_percent) {
      cancel();
    } else if (int(random_() % 100) < plan_.receive_percent) {
      receive();
    } else {
      arrive();
    }
    ASSERT_EQ(posted_.size(), receives_.size());
    ASSERT_EQ(unexpected_.size(), messages_.size());
  }

  void drain() {
    while (!receives_.empty() && !testing::Test::HasFatalFailure()) cancel();
    while (!messages_.empty() && !testing::Test::HasFatalFailure()) cancel();
    EXPECT_EQ(posted_.size(), 0u);
    EXPECT_EQ(unexpected_.size(), 0u);
    EXPECT_EQ(unexpected_.first(), nullptr);
    EXPECT_EQ(posted_.first_wild(), nullptr);
  }

  size_t longest() const {
    return std::max(posted_.counters.longest, unexpected_.counters.longest);
  }
  size_t matches() const { return matches_; }

 private:
  Hook* fresh(const Key& key) {
    if (unused_.empty()) unused_.push_back(&hooks_.emplace_back());
    Hook* hook = unused_.back();
    unused_.pop_back();
    hook->key = key;
    return hook;
  }
  int pick(int of) { return int(random_() % uint64_t(of)); }

  Key wanted() {
    Key key{uint64_t(pick(plan_.contexts)), pick(plan_.sources), pick(plan_.tags)};
    if (pick(100) < plan_.wild_percent) {
      const int kind = pick(3);
      if (kind != 0) key.source = any;
      if (kind != 1) key.tag = any;
    }
    return key;
  }

  void receive() {
    const Key key = wanted();
    const auto expected = std::find_if(messages_.begin(), messages_.end(),
                                       [&](Hook* message) { return key.takes(message->key); });
    Hook* found = unexpected_.find(key);
    ASSERT_EQ(found, expected == messages_.end() ? nullptr : *expected);
    if (found) {
      ASSERT_TRUE(found->queued);
      unexpected_.remove(found);
      ASSERT_FALSE(found->queued);
      unused_.push_back(found);
      messages_.erase(expected);
      ++matches_;
    } else {
      Hook* hook = fresh(key);
      posted_.post(hook);
      receives_.push_back(hook);
    }
  }

  void arrive() {
    const Key key{uint64_t(pick(plan_.contexts)), pick(plan_.sources), pick(plan_.tags)};
    const auto expected = std::find_if(receives_.begin(), receives_.end(),
                                       [&](Hook* receive) { return receive->key.takes(key); });
    Hook* found = posted_.match(key);
    ASSERT_EQ(found, expected == receives_.end() ? nullptr : *expected);
    if (found) {
      ASSERT_FALSE(found->queued);
      unused_.push_back(found);
      receives_.erase(expected);
      ++matches_;
    } else {
      Hook* hook = fresh(key);
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
  std::deque<Hook> hooks_;
  std::vector<Hook*> unused_;
  std::list<Hook*> receives_, messages_;
  PostedQueue posted_;
  UnexpectedQueue unexpected_;
  size_t matches_ = 0;
};

void run(const Plan& plan, int seeds, int steps, size_t at_least_long) {
  size_t longest = 0, matches = 0;
  for (uint64_t seed = base_seed(); seed < base_seed() + uint64_t(seeds); ++seed) {
    SCOPED_TRACE(testing::Message() << "HEADWAY_TEST_SEED=" << seed);
    Model model(plan, seed);
    for (int i = 0; i < steps; ++i) {
      model.step();
      if (testing::Test::HasFatalFailure()) return;
    }
    longest = std::max(longest, model.longest());
    matches += model.matches();
    model.drain();
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GE(longest, at_least_long) << "the plan did not exercise what it is for";
  EXPECT_GT(matches, size_t(seeds));
}

TEST(Matching, FewKeysManyWildcards) { run({2, 3, 3, 50, 50, 5}, 200, 2000, 5); }
TEST(Matching, WildcardsAlone) { run({1, 2, 2, 100, 50, 10}, 100, 2000, 5); }
TEST(Matching, ManyKeys) { run({4, 40, 40, 5, 50, 2}, 40, 4000, 100); }
// The table starts with 256 buckets and grows beyond 511 hooks.
TEST(Matching, MessagesPileUpAndTheTableGrows) { run({3, 30, 100, 2, 25, 1}, 4, 8000, 2500); }
TEST(Matching, ReceivesPileUpAndTheTableGrows) { run({3, 30, 100, 2, 75, 1}, 4, 8000, 2500); }

// Order among equal keys survives growth: one key, thousands of hooks, among others.
TEST(Matching, GrowthKeepsTheOrderOfEqualKeys) {
  UnexpectedQueue queue;
  ASSERT_TRUE(queue.prepare());
  std::deque<Hook> hooks(6000);
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

// An exact search must not walk the queue: that is what the table is for.
TEST(Matching, ExactSearchesDoNotWalkTheQueue) {
  PostedQueue queue;
  ASSERT_TRUE(queue.prepare());
  std::deque<Hook> hooks(20000);
  for (size_t i = 0; i < hooks.size(); ++i) {
    hooks[i].key = {2, int32_t(i % 200), int32_t(i / 200)};
    queue.post(&hooks[i]);
  }
  queue.counters = {};
  for (size_t i = hooks.size(); i-- > 0;) ASSERT_EQ(queue.match(hooks[i].key), &hooks[i]);
  EXPECT_EQ(queue.counters.searches, hooks.size());
  EXPECT_LT(queue.counters.traversed, 8 * hooks.size());
}

TEST(Matching, ExtremeTagsAndContextsAreKeysLikeOthers) {
  PostedQueue queue;
  ASSERT_TRUE(queue.prepare());
  Hook top{.key = {~uint64_t(0), INT32_MAX, INT32_MAX}}, zero{.key = {0, 0, 0}};
  Hook wild{.key = {~uint64_t(0), any, INT32_MAX}};
  queue.post(&top);
  queue.post(&zero);
  queue.post(&wild);
  EXPECT_EQ(queue.match({~uint64_t(0), INT32_MAX, INT32_MAX - 1}), nullptr);
  EXPECT_EQ(queue.match({~uint64_t(0), INT32_MAX, INT32_MAX}), &top);
  EXPECT_EQ(queue.match({~uint64_t(0), INT32_MAX, INT32_MAX}), &wild);
  EXPECT_EQ(queue.match({0, 0, 0}), &zero);
  EXPECT_EQ(queue.size(), 0u);
}

}  // namespace
}  // namespace headway::matching
