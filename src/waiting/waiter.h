// Waiter: how a rank waits inside MPI: spin, yield, sleep. Thread: any that holds the engine.
// Owner: runtime. Invariant: the engine is held before and after every call; it is given up while
// the thread parks, sleeps or runs a user's function.
// Policy: with a core for every rank, spin a
// little, then yield; with more ranks than cores, yield at once. Yields that take as long as a time
// slice mean that somebody computes on this core: sleep, also for the next waits. Two ranks that
// wait for each other need two cores: they part where they find themselves on one, and who waits
// while strangers compute keeps its core busy for longer, or the system puts its partner there.
#pragma once
#include <cstdint>

#include "base/check.h"
#include "base/whereabouts.h"
#include "protocols/engine.h"
#include "settings/events.h"
#include "waiting/linger.h"

namespace headway::waiting {

struct Policy {
  bool crowded = false;  // more ranks than cores on this node
  uint64_t spin_ns = 50'000;
  uint64_t yield_ns = 1'000'000;  // then sleep
};

class Waiter {
 public:
  // `where`: what the launcher is told of waits.
  Waiter(protocols::Engine& engine, const Policy& policy, base::Whereabouts& where)
      : engine(engine), policy_(policy), where_(where), shares_(policy.crowded) {}

  // Waits until done() is true. `hint`: the peer whose message is awaited, or null; it may change
  // while this waits, and so may the longest time that it sleeps without a look. `awaited`: is
  // there whenever the end of a request makes done() true.
  template <class Done>
  void until(Done&& done, protocols::Peer* const& hint, const int& longest_sleep_ms = sleep_ms,
             const progress::Awaited& awaited = {}) {
    HEADWAY_CHECK(engine.handoff().is_mine());
    if (done()) return;
    progress::Handoff& handoff = engine.handoff();
    Wait wait;
    wait.sleep_ms = &longest_sleep_ms;
    wait.awaited = &awaited;
    begin(wait);
    if (settings::is_told(settings::EventKind::wait_began)) [[unlikely]]
      tell<settings::EventKind::wait_began>(hint);
    for (bool over = false; !over;) {
      // The first looks are the hot ones: nothing but the ring, no clock.
      if (wait.polling && engine.advance_for(hint)) {
        wait.idle = 0;
        handoff.admit_handlers();
        over = done();
        if (!over) handoff.stay();
        continue;
      }
      const bool woken = idle(wait, hint);
      over = done();
      if (over && !woken) [[unlikely]]
        ++handoff.counters.late_wakes;
    }
    if (settings::is_told(settings::EventKind::wait_ended)) [[unlikely]]
      tell<settings::EventKind::wait_ended>(hint);
    end(wait);
    HEADWAY_CHECK(engine.handoff().is_mine());
  }
  void request(protocols::Request* request) {
    const auto is_over = [](void* what) {
      const auto* one = static_cast<protocols::Request*>(what);
      return one->done.load(std::memory_order_relaxed) != protocols::Done::no;
    };
    until([=] { return is_over(request); }, request->peer, sleep_ms, {is_over, request});
  }
  // Several threads may call at once; so many of them have a core. Where more wait, those beyond do
  // not park: all of these poll in turns, and give their core away after each look. Engine held.
  void expect_threads(uint32_t cores) {
    threads_most_ = cores;
    shares_ = true;
  }
  // Waits until no page of this memory is closed. Nothing begins on a closed page: whoever holds
  // the engine must never wait for one. It stays open until the engine is given up, and then as
  // long as an operation is known to touch it (Core::reach). After enter_briefly() it may stay().
  template <class... Memory>
  [[gnu::always_inline]] void open(const Memory&... memory) {
    if (!engine.release().any_closed()) [[likely]]
      return;
    const protocols::UserMemory::Extent extents[] = {memory.extent()...};
    await_open(extents, sizeof...(memory));
  }
  void await_open(const protocols::UserMemory::Extent* extents, size_t count);
  // The same for whatever `open` looks at.
  template <class Open>
  void until_open(Open&& open) {
    const progress::Driver driver = engine.handoff().driver;
    engine.handoff().stay();
    engine.release().wait_begins();
    until(open, nullptr);
    engine.release().wait_ends();
    engine.handoff().driver = driver;
  }
  // One look at everything, for calls that do not wait; also runs user functions that are due.
  bool glance();
  // The call of this rank that is under way, as it is told to the launcher; null: none is.
  const char* call() const { return where_.call.load(std::memory_order_relaxed); }
  // The same for a test or a probe that has found nothing yet. Who tests in a loop waits: where
  // others want its core, it yields and looks again. `what`: a number for what it looks for.
  void test(uint64_t what) {
    const bool moved = glance();
    if (shares_) [[unlikely]]
      moved ? linger_.note_moved() : test_in_vain(what);
  }

  protocols::Engine& engine;
  static constexpr int sleep_ms = 500;  // a safety net: Counters::late_wakes tells if it was needed

 private:
  struct Wait {
    bool polling = false;
    uint32_t idle = 0;
    uint64_t since = 0;  // it waits; time that others had the core while it spun is left out
    uint64_t last = 0;   // look at the clock
    uint32_t partner = shm::Node::no_core;  // the core where whom it waits for last waited
    const int* sleep_ms = nullptr;
    const progress::Awaited* awaited = nullptr;
    bool placed = false;  // the launcher has been told where in the program it stands
  };
  void begin(Wait& wait) {
    progress::Handoff& handoff = engine.handoff();
    handoff.driver = progress::Driver::waiting;
    // Beside another that polls: only if fewer have a core than wait.
    if (!handoff.is_polled() || handoff.waits() >= int(threads_most_)) {
      handoff.set_poller(true);
      wait.polling = true;
    }
  }
  void stop_polling(Wait& wait) {
    if (wait.polling) engine.handoff().set_poller(false);
    wait.polling = false;
  }
  void end(Wait& wait) {
    base::count(where_.waits);
    stop_polling(wait);
    engine.end_wait();
    engine.handoff().driver = progress::Driver::passing;
  }
  template <settings::EventKind kind>
  [[gnu::cold, gnu::noinline]] void tell(const protocols::Peer* hint) {
    settings::tell<kind>(call(), hint ? int64_t(hint->process) : -1);
  }
  // False: it dozed, and only its safety net ended that.
  bool idle(Wait& wait, protocols::Peer* hint);
  bool run_user_functions(Wait& wait, progress::Handoff& handoff);
  bool has_spun(Wait& wait, const protocols::Peer* hint);
  bool shares_core(Wait& wait, const protocols::Peer* hint);
  bool part(uint32_t core);
  bool rest(Wait& wait);
  void place(Wait& wait);
  bool sleep(Wait& wait, bool beside_strangers);
  void note_strangers(uint64_t now);
  uint64_t patience(uint64_t now) const;
  void note_vain(const Wait& wait, const protocols::Peer* hint);
  void judge_yield(uint64_t before, uint64_t after);
  void test_in_vain(uint64_t what);
  bool many_threads_test(uint64_t now);

  Policy policy_;
  base::Whereabouts& where_;
  bool shares_;  // tests may have to yield
  static constexpr uint32_t not_counted = INT32_MAX;
  uint32_t threads_most_ = not_counted;  // that have a core
  // Looks in vain, one soon after the other: since when, and the last one.
  uint64_t vain_since_ = 0, vain_last_ = 0;
  uint64_t vain_what_ = 0;  // what it was for
  Linger linger_;
  // Threads that test, by the addresses of their control blocks: those of this period, and how many
  // there were in the last one.
  static constexpr uint32_t most_testers = 64;
  const void* testers_[most_testers] = {};
  uint32_t testers_now_ = 0, testers_before_ = 0;
  uint64_t testers_since_ = 0;
  // Somebody who is no rank of this job wanted this core not long ago.
  uint64_t strangers_until_ = 0;
  uint64_t parted_ = 0, part_ns_ = 0;  // when this rank last left its partner's core; 0: never
  // While naps_ > 0 or until nap_until_, waits sleep at once.
  uint32_t naps_ = 0;
  uint64_t nap_until_ = 0;
  uint64_t nap_ns_ = 0;               // length of the last nap, 0: none lately
  uint64_t short_yields_ = 1u << 20;  // since the last long one
};

}  // namespace headway::waiting
