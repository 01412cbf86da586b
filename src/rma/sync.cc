#include "rma/sync.h"

#include <atomic>

#include "base/check.h"
#include "base/spin_lock.h"
#include "collectives/lean.h"
#include "rma/carry_out.h"
#include "rma/windows.h"
#include "waiting/holding.h"

namespace headway::rma {
namespace {

using protocols::Peer;
using waiting::Holding;
using waiting::Waiter;

// What this process has written in memory that it shares is there for whoever is told so next.
void settle_memory() { std::atomic_thread_fence(std::memory_order_seq_cst); }

template <class Done>
void wait_for(Waiter& waiter, const Target& target, Done&& done) {
  Peer* const hint = target.peer;
  waiter.until(done, hint);
}

// Calls each(Target&) for that rank, or for all; the first outcome that is not ok.
template <class Each>
Outcome for_each(Window& window, int rank, Each&& each) {
  Outcome outcome = Outcome::ok;
  const auto call = [&](Target& target) {
    const Outcome one = each(target);
    if (outcome == Outcome::ok) outcome = one;
  };
  if (rank != all_ranks) {
    call(window.target(rank));
  } else {
    for (Target& target : window.targets) call(target);
  }
  return outcome;
}

// All that it was asked for has come.
void await_requests(Waiter& waiter, const Target& target) {
  wait_for(waiter, target, [&] { return target.requests == 0; });
}

Outcome take_failure(Target& target) {
  const bool failed = target.failed;
  target.failed = false;
  return failed ? Outcome::outside : Outcome::ok;
}

void ask_to_flush(Target& target) {
  windows().send_batch(target);  // it counts
  FrameHeader header;
  header.context = target.asked = target.sent;
  windows().send(target, Kind::flush, header);
}

// What it has been asked about until now is carried out. Other threads may send more meanwhile.
void await_flushed(Waiter& waiter, const Target& target) {
  const uint64_t asked = target.asked;
  wait_for(waiter, target, [&] { return target.told >= asked; });
}

// What went by frames to a target that is near is carried out, as far as nobody sends more.
void note_quiet(Target& target) {
  if (target.framed && target.requests == 0 && target.is_quiet()) target.set_framed(false);
}

// A loop of calls that need nobody's answer may wait for what somebody does with an answer of ours,
// or with our core: so now and then it looks, and gives the core away if others want it.
bool is_look_due() {
  constexpr uint32_t every = 16;
  static constinit thread_local uint32_t calls = 0;
  return ++calls % every == 0;
}
void look_now_and_then(Waiter& waiter, const Window& window) {
  if (is_look_due()) waiter.test(reinterpret_cast<uintptr_t>(&window));
}

// Engine held. All are asked before the first answer is waited for.
Outcome flush_held(Waiter& waiter, Window& window, int rank) {
  settle_memory();
  const Outcome settled = for_each(window, rank, [&](Target& target) {
    const Outcome one = target.framed ? settle_batch(waiter, target) : Outcome::ok;
    if (!target.is_quiet()) ask_to_flush(target);
    return one;
  });
  const Outcome flushed = for_each(window, rank, [&](Target& target) {
    await_requests(waiter, target);
    await_flushed(waiter, target);
    note_quiet(target);
    return take_failure(target);
  });
  return settled != Outcome::ok ? settled : flushed;
}

// Of a group's ranks, all can be talked with. Nothing is sent before.
Outcome know_all(Window& window, const base::Vec<int>& ranks) {
  for (const int rank : ranks) {
    if (!windows().peer_of(window.target(rank))) return Outcome::no_memory;
  }
  return Outcome::ok;
}

LockWord::Kind kind_of(Hold hold) {
  return hold == Hold::exclusive ? LockWord::Kind::exclusive : LockWord::Kind::shared;
}

// By its word, if that is seen here and free; else its owner is asked.
Outcome take_lock(Waiter& waiter, Target& target, Hold hold) {
  if (!windows().peer_of(target)) return Outcome::no_memory;
  LockWord* const word = target.lock_word();
  target.hold = hold;
  target.by_word = hold != Hold::unchecked && word && word->take(kind_of(hold));
  target.given = hold == Hold::unchecked || target.by_word;
  if (!target.given) {
    FrameHeader header;
    header.flags = hold == Hold::exclusive ? flag_exclusive : 0;
    windows().send(target, Kind::lock, header);
    wait_for(waiter, target, [&] { return target.given; });
  }
  // What others have written before they let go of it is seen from here on.
  settle_memory();
  return Outcome::ok;
}

// The target may have to answer, too; the answer is not waited for.
void send_unlock(Target& target) {
  windows().send_batch(target);
  const bool answers = !target.is_quiet();
  if (target.by_word) {
    HEADWAY_CHECK(!answers);  // nobody hears of the word: frames are over before
    target.by_word = false;
    if (target.lock_word()->give_back(kind_of(target.hold))) {
      windows().send(target, Kind::look, {});
    }
  } else if (target.hold != Hold::unchecked) {
    FrameHeader header;
    header.context = target.sent;
    header.flags = answers ? flag_answer : 0;
    if (answers) target.asked = target.sent;
    windows().send(target, Kind::unlock, header);
  } else if (answers) {
    ask_to_flush(target);
  }
}

Outcome unlock_held(Waiter& waiter, Window& window, int rank) {
  look_now_and_then(waiter, window);
  settle_memory();
  (void)for_each(window, rank, [](Target& target) {
    if (target.by_word && !target.is_quiet()) ask_to_flush(target);
    return Outcome::ok;
  });
  (void)for_each(window, rank, [&](Target& target) {
    if (target.hold == Hold::none) return Outcome::ok;
    await_requests(waiter, target);
    if (target.by_word) await_flushed(waiter, target);
    send_unlock(target);
    return Outcome::ok;
  });
  return for_each(window, rank, [&](Target& target) {
    if (target.hold == Hold::none) return Outcome::ok;
    await_flushed(waiter, target);
    note_quiet(target);
    target.hold = Hold::none;
    target.given = false;
    return take_failure(target);
  });
}

}  // namespace

Outcome meet(Waiter& waiter, Window& window) {
  const collectives::Place place{waiter.engine, window.comm, collectives::nothing_forced};
  Outcome outcome = Outcome::ok;
  if (collectives::barrier_now(place, waiter, outcome)) return outcome;
  collectives::Schedule* schedule = collectives::barrier(place);
  return schedule ? schedule->run(waiter) : Outcome::no_memory;
}

Outcome fence(Waiter& waiter, Window& window, bool precedes, bool succeeds) {
  Outcome outcome = Outcome::ok;
  // A program may be wrong in saying that nothing precedes: what waits for this fence leaves.
  if (precedes || window.is_fence_used()) {
    const Holding holding(waiter.engine);
    outcome = flush_held(waiter, window, all_ranks);
  }
  settle_memory();
  const Outcome met = meet(waiter, window);
  settle_memory();
  window.epoch = succeeds ? Epoch::fence : Epoch::none;
  window.fence_used.store(false, std::memory_order_relaxed);
  return met != Outcome::ok ? met : outcome;
}

Outcome start(Waiter& waiter, Window& window, const base::Vec<int>& ranks, bool checked) {
  const Holding holding(waiter.engine);
  if (const Outcome known = know_all(window, ranks); known != Outcome::ok) return known;
  if (!window.accessed.reserve(ranks.size())) return Outcome::no_memory;
  for (const int rank : ranks) {
    Target& target = window.target(rank);
    if (checked) {
      wait_for(waiter, target, [&] { return target.posts != 0; });
      --target.posts;
    }
    target.started = true;
  }
  settle_memory();
  window.epoch = Epoch::start;
  window.unchecked = !checked;
  window.accessed.clear();
  for (const int rank : ranks) (void)window.accessed.push(rank);  // has its room
  return Outcome::ok;
}

// A target hears of the end behind the operations themselves, and so need not be asked whether they
// are carried out: only what has to come back is waited for.
Outcome complete(Waiter& waiter, Window& window) {
  const Holding holding(waiter.engine);
  Outcome outcome = Outcome::ok;
  settle_memory();
  for (const int rank : window.accessed) {
    Target& target = window.target(rank);
    await_requests(waiter, target);
    // Nobody else would ever tell that an operation did not find its memory.
    if (window.is_dynamic() && !target.is_quiet()) {
      ask_to_flush(target);
      await_flushed(waiter, target);
    }
    if (const Outcome one = take_failure(target); outcome == Outcome::ok) outcome = one;
    // Also without checks at the beginning: who waits has to know.
    windows().send(target, Kind::complete, {});
    target.started = false;
  }
  window.accessed.clear();
  window.epoch = Epoch::none;
  return outcome;
}

Outcome post(Waiter& waiter, Window& window, const base::Vec<int>& ranks, bool checked) {
  const Holding holding(waiter.engine);
  if (const Outcome known = know_all(window, ranks); known != Outcome::ok) return known;
  window.exposed.clear();
  if (!window.exposed.reserve(ranks.size())) return Outcome::no_memory;
  settle_memory();
  for (const int rank : ranks) {
    (void)window.exposed.push(rank);  // has its room
    if (checked) windows().send(window.target(rank), Kind::post, {});
  }
  window.is_exposed = true;
  return Outcome::ok;
}

bool wait(Waiter& waiter, Window& window, bool until_over) {
  const Holding holding(waiter.engine);
  const auto are_over = [&] {
    for (const int rank : window.exposed) {
      if (window.target(rank).completes == 0) return false;
    }
    return true;
  };
  if (until_over) {
    waiter.until(are_over, nullptr);
  } else if (!are_over()) {
    waiter.test(reinterpret_cast<uintptr_t>(&window));
    if (!are_over()) return false;
  }
  for (const int rank : window.exposed) --window.target(rank).completes;
  window.exposed.clear();
  window.is_exposed = false;
  settle_memory();
  return true;
}

Outcome lock(Waiter& waiter, Window& window, int rank, Hold hold) {
  const Holding holding(waiter.engine);
  const Outcome outcome = take_lock(waiter, window.target(rank), hold);
  if (outcome == Outcome::ok) {
    ++window.locked;
    window.epoch = Epoch::none;  // of a fence that was not used
  }
  return outcome;
}

Outcome unlock(Waiter& waiter, Window& window, int rank) {
  const Holding holding(waiter.engine);
  const Outcome outcome = unlock_held(waiter, window, rank);
  --window.locked;
  return outcome;
}

// Targets are locked when they are first accessed: no message for each of them here. Only those
// whose memory the program may touch itself are locked at once, since nobody sees that.
Outcome lock_all(Waiter& waiter, Window& window, bool unchecked) {
  const Holding holding(waiter.engine);
  window.epoch = Epoch::lock_all;
  window.unchecked = unchecked;
  if (unchecked) return Outcome::ok;
  return for_each(window, all_ranks, [&](Target& target) {
    const bool is_seen = target.shown || target.rank == window.self;
    return is_seen ? take_lock(waiter, target, Hold::shared) : Outcome::ok;
  });
}

Outcome unlock_all(Waiter& waiter, Window& window) {
  const Holding holding(waiter.engine);
  const Outcome outcome = unlock_held(waiter, window, all_ranks);
  window.epoch = Epoch::none;
  return outcome;
}

// A barrier alone would not do: its messages may come from others than the last frame to a rank.
Outcome part(Waiter& waiter, Window& window) {
  {
    const Holding holding(waiter.engine);
    for (Target& target : window.targets) {
      // Frames of others may make more peers known while we wait; those are not asked.
      const bool asks = target.peer && target.rank != window.self;
      target.answers = asks ? 0 : 1;
      if (asks) ask_to_flush(target);
    }
    for (const Target& target : window.targets) {
      wait_for(waiter, target, [&] { return target.answers != 0; });
    }
  }
  return meet(waiter, window);
}

Outcome approach(Waiter& waiter, Window& window, Target& target) {
  if (!windows().peer_of(target)) return Outcome::no_memory;
  if (window.epoch != Epoch::lock_all) {
    window.note_use();
    return Outcome::ok;
  }
  if (target.hold == Hold::none) {
    return take_lock(waiter, target, window.unchecked ? Hold::unchecked : Hold::shared);
  }
  // Another thread of this rank may have asked a moment ago.
  if (!target.given) wait_for(waiter, target, [&] { return target.given; });
  return Outcome::ok;
}

bool is_looking(Waiter& waiter, const Target& target) {
  protocols::Messages& engine = waiter.engine;
  return target.window->follows && !engine.is_crowded() &&
         engine.node().is_waiting(target.peer->number);
}

Outcome settle_batch(Waiter& waiter, Target& target) {
  if (!target.has_batch()) return Outcome::ok;
  // Behind frames it cannot go by another way. Who has left the last fence when we did is about to
  // wait in this one: for a part of what a copy takes we see whether it comes.
  constexpr int looks = 20;
  bool looking = target.told != target.sent;
  for (int look = 0; look < looks && !looking; ++look) {
    if (look > 0) base::cpu_relax();
    looking = is_looking(waiter, target);
  }
  if (looking) {
    windows().send_batch(target);
    return Outcome::ok;
  }
  alignas(8) char body[most_body];
  const uint32_t length = windows().take_batch(target, body);
  Places places;
  const bool sense = places.read(body, length);
  HEADWAY_CHECK(sense);
  return sense ? put(waiter.engine.node(), target.far, places) : Outcome::internal;
}

Outcome finish_frames(Waiter& waiter, Target& target) {
  if (!target.framed) return Outcome::ok;
  const Outcome settled = settle_batch(waiter, target);
  note_quiet(target);
  while (target.framed) {
    if (!target.is_quiet()) ask_to_flush(target);
    await_requests(waiter, target);
    await_flushed(waiter, target);
    note_quiet(target);
  }
  return settled;
}

Outcome flush(Waiter& waiter, Window& window, int rank) {
  // Of a target that no frames went to nothing is left to be done, and the engine is not needed.
  const Target* const one = rank != all_ranks ? &window.target(rank) : nullptr;
  if (one && one->is_near() && !one->is_framed()) {
    settle_memory();
    if (!is_look_due()) return Outcome::ok;
    const Holding holding(waiter.engine);
    waiter.test(reinterpret_cast<uintptr_t>(&window));
    return Outcome::ok;
  }
  const Holding holding(waiter.engine);
  return flush_held(waiter, window, rank);
}

// What was put has left its buffers when its call returned.
Outcome flush_local(Waiter& waiter, Window& window, int rank) {
  const Holding holding(waiter.engine);
  return for_each(window, rank, [&](Target& target) {
    await_requests(waiter, target);
    return take_failure(target);
  });
}

}  // namespace headway::rma
