// Several threads of one program wait at once: one polls, the others park, and whoever polls runs
// the user's functions. A single engine that sends to itself is enough for that.
#include "waiting/many.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace headway::waiting {
namespace {

using protocols::Engine;
using protocols::Mode;
using protocols::Request;
using protocols::RequestKind;
using protocols::UserMemory;

constexpr uint64_t limit_ns = 20'000'000'000;

void on_fatal(Outcome, uint32_t, const char* story) {
  ADD_FAILURE() << story;
  abort();
}

struct Rank {
  Rank(bool with_thread, const Policy& policy) {
    settings::Settings settings;
    settings.progress = with_thread;
    EXPECT_EQ(engine.prepare(settings, 0, 1, on_fatal), Outcome::ok);
    char key[128];
    EXPECT_EQ(engine.node().create(1, key, sizeof key), Outcome::ok);
    engine.node().join(0, engine.handoff().bell());
    const uint32_t own = 0;
    EXPECT_EQ(engine.use_node(&own, 1), Outcome::ok);
    waiter = std::make_unique<Waiter>(engine, policy, where);
  }
  ~Rank() {
    engine.handoff().stop();
    engine.stop_guard();
    engine.node().detach();
  }

  Request* make(RequestKind kind, const UserMemory& memory, int tag) {
    Request* request = engine.take_request();
    request->kind = kind;
    request->mode = Mode::synchronous;
    request->held_by_user = true;
    request->memory = memory;
    request->key = {2, 0, tag};
    request->peer = engine.peer(0);
    return request;
  }
  Outcome move(RequestKind kind, void* buffer, uint64_t bytes, int tag) {
    engine.handoff().enter();
    Request* request = make(kind, UserMemory(buffer, bytes), tag);
    kind == RequestKind::send ? engine.start_send(request) : engine.start_receive(request);
    waiter->request(request);
    const Outcome outcome = request->outcome;
    engine.give_request(request);
    engine.handoff().leave();
    return outcome;
  }

  Engine engine;
  base::Whereabouts where;
  std::unique_ptr<Waiter> waiter;
};

// Two ranks of one node, a thread each.
struct Pair {
  explicit Pair(const Policy& policy) {
    settings::Settings settings;
    settings.progress = false;
    const uint32_t both[] = {0, 1};
    char key[128];
    for (uint32_t i : both) {
      EXPECT_EQ(engines[i].prepare(settings, i, 2, on_fatal), Outcome::ok);
      shm::Node& node = engines[i].node();
      EXPECT_EQ(i == 0 ? node.create(2, key, sizeof key) : node.attach(key, 2), Outcome::ok);
      node.join(i, engines[i].handoff().bell());
    }
    for (uint32_t i : both) {
      EXPECT_EQ(engines[i].use_node(both, 2), Outcome::ok);
      waiters[i] = std::make_unique<Waiter>(engines[i], policy, wheres[i]);
    }
  }
  ~Pair() {
    for (Engine& engine : engines) {
      engine.handoff().stop();
      engine.stop_guard();
      engine.node().detach();
    }
  }
  Outcome move(uint32_t self, RequestKind kind, int* value) {
    Engine& engine = engines[self];
    engine.handoff().enter();
    Request* request = engine.take_request();
    request->kind = kind;
    request->held_by_user = true;
    request->memory = UserMemory(value, sizeof *value);
    request->key = {2, int32_t(kind == RequestKind::send ? self : 1 - self), 1};
    request->peer = engine.peer(1 - self);
    kind == RequestKind::send ? engine.start_send(request) : engine.start_receive(request);
    waiters[self]->request(request);
    const Outcome outcome = request->outcome;
    engine.give_request(request);
    engine.handoff().leave();
    return outcome;
  }

  Engine engines[2];
  base::Whereabouts wheres[2];
  std::unique_ptr<Waiter> waiters[2];
};

// Pairs of threads play ping-pong with synchronous messages, all over one engine.
void ping_pong(bool with_thread, const Policy& policy, int pairs, int rounds) {
  Rank rank(with_thread, policy);
  std::atomic<int> ended{0}, wrong{0};
  std::vector<std::thread> threads;
  std::atomic<bool> stop{false};
  for (int i = 0; i < 2 * pairs; ++i) {
    threads.emplace_back([&, i] {
      const bool serves = i % 2;
      const int out = 10 * (i / 2) + serves, in = 10 * (i / 2) + !serves;
      std::mt19937_64 random(i);
      for (int round = 0; round < rounds && !stop; ++round) {
        uint64_t value = uint64_t(i / 2) << 32 | unsigned(round), got = ~value;
        const auto send = [&] {
          wrong += rank.move(RequestKind::send, &value, sizeof value, out) != Outcome::ok;
        };
        const auto receive = [&] {
          wrong += rank.move(RequestKind::receive, &got, sizeof got, in) != Outcome::ok;
          wrong += got != value;
        };
        if (serves) {
          receive();
          send();
        } else {
          send();
          receive();
        }
        if (random() % 64 == 0) usleep(useconds_t(random() % 300));
      }
      ++ended;
    });
  }
  const uint64_t start = base::now_ns();
  while (ended < 2 * pairs && base::now_ns() - start < limit_ns) usleep(1000);
  if (ended < 2 * pairs) {
    ADD_FAILURE() << ended << " of " << 2 * pairs << " threads ended";
    fflush(nullptr);
    _exit(1);  // the others hang: there is no way to end them
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_TRUE(rank.engine.is_idle());
  EXPECT_FALSE(rank.engine.handoff().is_polled());
  EXPECT_EQ(rank.engine.handoff().counters.late_wakes, 0u);
  // Parked and sleeping threads are woken by events, not by their safety nets: those take 100 ms
  // and more each time.
  EXPECT_LT(base::now_ns() - start, uint64_t(rounds) * 10'000'000);
}

TEST(Waiter, OnePairCrowded) { ping_pong(true, {.crowded = true}, 1, 1000); }
TEST(Waiter, OnePairSpinning) { ping_pong(true, {.spin_ns = 20'000}, 1, 500); }
TEST(Waiter, FourPairsCrowded) { ping_pong(true, {.crowded = true}, 4, 300); }
TEST(Waiter, FourPairsSpinning) { ping_pong(true, {.spin_ns = 20'000}, 4, 200); }
TEST(Waiter, FourPairsWithoutAThread) { ping_pong(false, {.crowded = true}, 4, 300); }

// The thread that polls gets its message and leaves; the others wait for more.
TEST(Waiter, ThePollerChanges) {
  Rank rank(true, {.crowded = true});
  constexpr int waiters = 4;
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> ready{0}, ended{0};
    std::vector<int> got(waiters, -1);
    std::vector<std::thread> threads;
    for (int i = 0; i < waiters; ++i) {
      threads.emplace_back([&, i] {
        ++ready;
        EXPECT_EQ(rank.move(RequestKind::receive, &got[size_t(i)], sizeof(int), i), Outcome::ok);
        ++ended;
      });
    }
    while (ready < waiters) usleep(100);
    std::mt19937_64 random(round);
    std::vector<int> order{0, 1, 2, 3};
    std::shuffle(order.begin(), order.end(), random);
    const uint64_t start = base::now_ns();
    for (const int tag : order) {
      if (random() % 2) usleep(useconds_t(random() % 3000));
      int value = 100 * round + tag;
      ASSERT_EQ(rank.move(RequestKind::send, &value, sizeof value, tag), Outcome::ok);
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_LT(base::now_ns() - start, 2'000'000'000u);
    for (int i = 0; i < waiters; ++i) EXPECT_EQ(got[size_t(i)], 100 * round + i);
  }
  EXPECT_FALSE(rank.engine.handoff().is_polled());
}

// A list with gaps: one by one, whichever is there first, and all that is left in one wait.
TEST(Many, AnyAndAllOfAList) {
  constexpr int places = 6;
  std::mt19937_64 random(17);
  Rank rank(true, {.crowded = true});
  for (int round = 0; round < 30; ++round) {
    Request* list[places] = {};
    int got[places], order[places], n = 0;
    rank.engine.handoff().enter();
    for (int i = 0; i < places; ++i) {
      got[i] = -1;
      if (random() % 4 == 0) continue;  // nothing to wait for
      list[i] = rank.make(RequestKind::receive, UserMemory(&got[i], sizeof got[i]), i);
      rank.engine.start_receive(list[i]);
      order[n++] = i;
    }
    rank.engine.handoff().leave();
    std::shuffle(order, order + n, random);
    std::thread other([&] {
      for (int i = 0; i < n; ++i) {
        if (i % 2) usleep(useconds_t(random() % 500));
        int value = 100 * round + order[i];
        EXPECT_EQ(rank.move(RequestKind::send, &value, sizeof value, order[i]), Outcome::ok);
      }
    });
    const auto at = [](const void* all, uint32_t place) {
      return static_cast<Request* const*>(all)[place];
    };
    rank.engine.handoff().enter();
    for (int i = 0; i < n / 2; ++i) {
      const uint32_t found = Many(*rank.waiter, list, places, at, {}).until_any();
      ASSERT_LT(found, uint32_t(places));
      EXPECT_EQ(got[found], 100 * round + int(found));
      rank.engine.give_request(list[found]);
      list[found] = nullptr;
    }
    Many(*rank.waiter, list, places, at, {}).until_all();
    for (int i = 0; i < places; ++i) {
      if (!list[i]) continue;
      EXPECT_EQ(got[i], 100 * round + i);
      rank.engine.give_request(list[i]);
    }
    rank.engine.handoff().leave();
    other.join();
  }
  EXPECT_TRUE(rank.engine.is_idle());
}

// A function of the user completes what its waiter waits for, runs in a thread of the program and
// without the engine: here it sends a message itself.
struct Call : progress::UserCall {
  Rank* rank = nullptr;
  Request* request = nullptr;
  std::thread::id runner;
  int value = 0;
};

TEST(Waiter, UserFunctionsRunWhileThreadsWait) {
  Rank rank(true, {.crowded = true});
  constexpr int threads = 3, calls_each = 30;
  std::vector<std::thread> all;
  std::atomic<int> ran{0}, finished{0};
  static std::atomic<int>*ran_here, *finished_here;
  ran_here = &ran;
  finished_here = &finished;
  std::atomic<int> foreign{0};
  std::vector<std::thread::id> ids(threads);
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      ids[size_t(i)] = std::this_thread::get_id();
      for (int n = 0; n < calls_each; ++n) {
        Call call;
        call.rank = &rank;
        call.run = [](progress::UserCall* base) {
          auto* self = static_cast<Call*>(base);
          self->runner = std::this_thread::get_id();
          self->value = 42;
          usleep(200);
          ++*ran_here;
        };
        call.finished = [](progress::UserCall* base) {
          auto* self = static_cast<Call*>(base);
          ++*finished_here;
          self->rank->engine.complete(self->request, Outcome::ok);
        };
        rank.engine.handoff().enter();
        call.request = rank.make(RequestKind::schedule, {}, 0);
        call.request->peer = nullptr;
        call.request->done.store(0);
        ++rank.engine.handoff().pending;
        rank.engine.handoff().user_calls.push_back(&call);
        rank.waiter->request(call.request);
        EXPECT_EQ(call.value, 42);
        rank.engine.give_request(call.request);
        rank.engine.handoff().leave();
        if (call.runner == std::thread::id()) ++foreign;
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(ran.load(), threads * calls_each);
  EXPECT_EQ(finished.load(), threads * calls_each);
  EXPECT_EQ(foreign.load(), 0);
  EXPECT_EQ(rank.engine.handoff().pending, 0);
}

// A wait that nothing will end soon sleeps instead of burning a core.
TEST(Waiter, ALongWaitSleeps) {
  Rank rank(true, {.spin_ns = 20'000});
  int value = 7, got = 0;
  std::thread other([&] {
    usleep(400'000);
    EXPECT_EQ(rank.move(RequestKind::send, &value, sizeof value, 1), Outcome::ok);
  });
  timespec before, after;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  EXPECT_EQ(rank.move(RequestKind::receive, &got, sizeof got, 1), Outcome::ok);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  other.join();
  EXPECT_EQ(got, 7);
  const double seconds =
      double(after.tv_sec - before.tv_sec) + 1e-9 * double(after.tv_nsec - before.tv_nsec);
  EXPECT_LT(seconds, 0.1);
  EXPECT_GT(rank.engine.handoff().counters.sleeps, 0u);
  EXPECT_EQ(rank.engine.handoff().counters.late_wakes, 0u);
}

// Sleeps during short waits, each shorter than a waiter yields if nobody says otherwise.
uint64_t sleeps_in_short_waits(const Policy& policy) {
  constexpr int waits = 40;
  Rank rank(true, policy);
  std::thread other([&] {
    for (int i = 0; i < waits; ++i) {
      usleep(300);
      EXPECT_EQ(rank.move(RequestKind::send, &i, sizeof i, 1), Outcome::ok);
    }
  });
  int got = 0;
  for (int i = 0; i < waits; ++i) {
    EXPECT_EQ(rank.move(RequestKind::receive, &got, sizeof got, 1), Outcome::ok);
    EXPECT_EQ(got, i);
  }
  other.join();
  EXPECT_EQ(rank.engine.handoff().counters.late_wakes, 0u);
  return rank.engine.handoff().counters.sleeps;
}

TEST(Waiter, YieldsAsLongAsItIsTold) {
  constexpr uint64_t a_while = 20'000'000'000;
  // Beside somebody who computes on this core it sleeps all the same: not in every round.
  uint64_t fewest = 1;
  for (int round = 0; round < 50 && fewest > 0; ++round) {
    fewest = std::min(fewest, sleeps_in_short_waits({.spin_ns = 0, .yield_ns = a_while}));
  }
  EXPECT_EQ(fewest, 0u);
  EXPECT_GE(sleeps_in_short_waits({.spin_ns = 0, .yield_ns = 0}), 20u);
}

// Sleeps of rank 0 in waits of 3 ms each, while its node says that strangers compute or not.
uint64_t sleeps_beside(bool strangers, bool crowded) {
  constexpr int waits = 10;
  Pair pair({.crowded = crowded, .spin_ns = 0, .yield_ns = 1'000'000});
  shm::Node& node = pair.engines[0].node();
  node.tell_strangers(0);
  std::thread other([&] {
    for (int i = 0; i < waits; ++i) {
      usleep(3'000);
      EXPECT_EQ(pair.move(1, RequestKind::send, &i), Outcome::ok);
    }
  });
  for (int i = 0, got; i < waits; ++i) {
    if (strangers) node.tell_strangers(base::now_ns() + 1'000'000'000);
    EXPECT_EQ(pair.move(0, RequestKind::receive, &got), Outcome::ok);
    EXPECT_EQ(got, i);
  }
  other.join();
  return pair.engines[0].handoff().counters.sleeps;
}

// Where it sleeps, its core is idle, and the system moves there whom it waits for.
TEST(Waiter, BesideStrangersItYieldsForLonger) {
  // Who has this core now and then makes it nap: not in every round.
  uint64_t fewest = 1;
  for (int round = 0; round < 20 && fewest > 0; ++round) {
    fewest = std::min(fewest, sleeps_beside(true, false));
  }
  EXPECT_EQ(fewest, 0u);
  EXPECT_GT(sleeps_beside(true, true), 0u) << "its core is wanted by other ranks";
}

// The calling thread, and those that it starts, on the first core that there is.
void stay_on_a_core() {
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0) return;
  }
}

// Two ranks of a node play ping-pong on one core, where each would spin for long if it could.
uint64_t spent_on_one_core(int rounds) {
  const Policy policy{.spin_ns = 1'000'000'000, .yield_ns = 20'000'000'000};
  Pair pair(policy);
  std::atomic<uint64_t> spent{0};
  const auto play = [&](uint32_t self) {
    stay_on_a_core();
    for (int i = 0; i < rounds; ++i) {
      int got = -1;
      if (self == 0) {
        EXPECT_EQ(pair.move(self, RequestKind::send, &i), Outcome::ok);
      }
      EXPECT_EQ(pair.move(self, RequestKind::receive, &got), Outcome::ok);
      EXPECT_EQ(got, i);
      if (self == 1) {
        EXPECT_EQ(pair.move(self, RequestKind::send, &i), Outcome::ok);
      }
    }
    timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    spent += uint64_t(used.tv_sec) * 1'000'000'000 + uint64_t(used.tv_nsec);
  };
  std::thread first(play, 0u), second(play, 1u);
  first.join();
  second.join();
  return spent;
}

// Who waits where its partner has to run does not spin until its time slice is over: that is 3 ms
// a message. Time of the processor is counted, so whoever else wants the core does not matter.
TEST(Waiter, GivesTheCoreToAPartnerThatIsOnIt) {
  constexpr int rounds = 300;
  EXPECT_LT(spent_on_one_core(rounds), uint64_t(rounds) * 1'000'000);
}

}  // namespace
}  // namespace headway::waiting
