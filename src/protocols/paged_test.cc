// Programs whose pages really close, and are sent before their sends, in many settings.
#include <dlfcn.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string>

#include "base/events_test_listener.h"
#include "guard/system.h"
#include "protocols/paged_test_check.h"
#include "protocols/paged_test_program.h"
#include "protocols/seeds_test_watch.h"

// In place of the C library's: see StoppedClock.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  using Real = int (*)(clockid_t, timespec*);
  static const auto real = reinterpret_cast<Real>(dlsym(RTLD_NEXT, "clock_gettime"));
  const uint64_t ns = headway::protocols::StoppedClock::now().load(std::memory_order_relaxed);
  if (!ns || clock != CLOCK_MONOTONIC) return real(clock, time);
  time->tv_sec = time_t(ns / 1'000'000'000);
  time->tv_nsec = long(ns % 1'000'000'000);
  return 0;
}

namespace headway::protocols {
namespace {

class Paged : public testing::Test {
 protected:
  static constexpr uint64_t usual = 40;  // seeds, in which all that is expected happens

  void run(const PagedPlan& plan) {
    SeedWatch watch;
    const uint64_t first = first_seed(), count = seed_count(usual);
    for (uint64_t seed = first; seed < first + count; ++seed) {
      SCOPED_TRACE(testing::Message() << "HEADWAY_TEST_SEED=" << seed);
      watch.begin(seed);
      base::EventListener listener;
      PagedWorld world(plan, seed);
      if (!world.begin()) {
        ASSERT_EQ(seed, first) << "pages can be closed no more";
        GTEST_SKIP() << "no pages can be closed here, or no writes followed";
      }
      for (int i = 0; i < plan.steps && !HasFailure(); ++i) world.step();
      if (!HasFailure()) world.finish();
      EXPECT_EQ(world.story(), "");
      if (!HasFailure()) check_events(world);
      note(world);
      if (HasFailure()) return;
    }
    are_enough_ = count >= usual;
    expect({"receives", "truncated", "unexpected", "streams", "released", "foreseen", "opened",
            "early_looks", "given"});
    if (!plan.node) expect({"full", "started", "pieces", "withheld", "shared"});
    if (plan.cancels) expect({"cancelled_sends", "cancelled_receives"});
    if (plan.leaves) expect({"left"});
    if (plan.touches) expect({"touches", "demands", "faults"});
    if (plan.touches && !plan.node) expect({"heeded"});
    if (plan.prefetches) expect({"prefetches", "fetched"});
    // Elsewhere a program of several threads, as this one is, does not have its writes followed.
    if (plan.prefetches && guard::look_at_system().missing.sees_kernel) {
      expect({"prefetch_hits", "prefetch_used_bytes", "presend_again_bytes", "prefetch_late"});
    }
  }
  // That happened, in the sum of all worlds: else they are not what they are for.
  void expect(std::initializer_list<const char*> names) {
    for (const char* name : names) {
      EXPECT_TRUE(!are_enough_ || total_[name] > 0) << name;
    }
  }
  // For who wants to see how often (--gtest_output=xml).
  void TearDown() override {
    for (const auto& [name, count] : total_) RecordProperty(name, std::to_string(count));
  }

 private:
  // A recorder is told of each release, fault and prefetch that the counters count.
  void check_events(PagedWorld& world) {
    using base::EventListener;
    const auto releases = EventListener::events(headway_event_release);
    const auto faults = EventListener::events(headway_event_fault);
    const Release& release = world.engine(0).release();
    EXPECT_EQ(releases.size(), release.counters.released);
    EXPECT_LE(faults.size(), release.closings().touched);
    total_["faults"] += faults.size();
    std::map<uint32_t, uint64_t> ends;  // of the last release of each closing
    for (const HeadwayEvent& event : releases) {
      EXPECT_LT(event.begin, event.end);
      EXPECT_NE(event.closing, 0u);
      ends[event.closing] = std::max(ends[event.closing], event.end);
    }
    for (const HeadwayEvent& event : faults) {
      EXPECT_LT(event.begin, event.end);
      EXPECT_LT(event.end, ends[event.closing]) << "a fault outside of all releases";
    }
    uint64_t hits = 0, used = 0, spared = 0;
    for (const HeadwayEvent& event : EventListener::events(headway_event_prefetch)) {
      EXPECT_LT(event.begin, event.end);
      hits -= event.bytes != 0;
      used -= event.bytes;
      spared -= event.spared_ns;
    }
    for (int rank = 0; rank < world.ranks(); ++rank) {
      const EngineCounters& counters = world.engine(rank).counters();
      hits += counters.prefetch_hits;
      used += counters.prefetch_used_bytes;
      spared += counters.prefetch_saved_ns;
    }
    EXPECT_EQ(hits, 0u);
    EXPECT_EQ(used, 0u);
    EXPECT_EQ(spared, 0u);
  }
  void note(PagedWorld& world) {
    for (int rank = 0; rank < world.ranks(); ++rank) {
      const Engine& engine = world.engine(rank);
      const EngineCounters& counters = engine.counters();
      total_["released"] += engine.release().counters.released;
      total_["foreseen"] += engine.release().counters.foreseen;
      total_["withheld"] += counters.withheld;
      total_["demands"] += counters.demands;
      total_["heeded"] += counters.heeded;
      total_["shared"] += engine.release().counters.shared;
      total_["prefetches"] += counters.prefetches;
      total_["prefetch_hits"] += counters.prefetch_hits;
      total_["prefetch_used_bytes"] += counters.prefetch_used_bytes;
      total_["presend_again_bytes"] += counters.presend_again_bytes;
      total_["prefetch_late"] += counters.prefetch_late;
      total_["fetched"] += counters.fetched;
      total_["streams"] += counters.streams;
      total_["pulls"] += counters.pulls;
      total_["claims"] += counters.claims;
      total_["unexpected"] += counters.unexpected;
      total_["opened"] += engine.release().closings().opened;
    }
    const PagedWorld::Tally& tally = world.tally;
    total_["receives"] += tally.receives;
    total_["truncated"] += tally.truncated;
    total_["cancelled_sends"] += tally.cancelled_sends;
    total_["cancelled_receives"] += tally.cancelled_receives;
    total_["left"] += tally.left;
    total_["touches"] += tally.touches;
    total_["early_looks"] += tally.early_looks;
    total_["given"] += tally.given;
    total_["in_runs"] += tally.in_runs;
    total_["full"] += world.wires().tally.full;
    total_["started"] += world.wires().tally.started;
    total_["pieces"] += world.wires().tally.pieces;
  }

  std::map<std::string, uint64_t> total_;
  bool are_enough_ = false;
};

TEST_F(Paged, ReceivesThatAreReleased) {
  run({.cancels = true, .leaves = true});
  expect({"in_runs"});
}

TEST_F(Paged, PagesThatAreTouched) { run({.touches = true, .longest = 250'000}); }

TEST_F(Paged, ReceivesThatAreCopiedOnce) {
  run({.node = true, .touches = true, .cancels = true, .leaves = true});
  expect({"pulls", "claims"});
}

TEST_F(Paged, MessagesBeforeTheirSends) {
  run({.prefetches = true, .cancels = true, .leaves = true, .channels = 4});
}

TEST_F(Paged, AllAtOnce) {
  run({.prefetches = true, .touches = true, .cancels = true, .leaves = true, .channels = 5});
}

}  // namespace
}  // namespace headway::protocols
