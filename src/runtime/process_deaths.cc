// A neighbour in shared memory that has ended without a goodbye. Launchers that know us end the job
// then, and say how it ended; this is for those that go on (srun without --kill-on-bad-exit).
#include <ctime>

#include "base/machine.h"
#include "base/text.h"
#include "protocols/engine.h"
#include "runtime/process.h"

namespace headway::runtime {
namespace {

// For the launcher, which knows more: ours needs 0.3 s for ranks that catch SIGTERM.
constexpr int launcher_first_ms = 1000;
constexpr int look_ms = 10;

void pause_for(int ms) {
  const timespec time{ms / 1000, ms % 1000 * 1'000'000L};
  nanosleep(&time, nullptr);
}

}  // namespace

// Without it, and where the launcher goes on, the others wait for ever: as before.
void Process::watch_neighbours() {
  // Valgrind does not know pidfd_open, and says so in many lines.
  if (base::under_valgrind() || !deaths_.start(engine_->node())) return;
  watches_.store(true, std::memory_order_release);
  if (engine_->handoff().watch_deaths(deaths_.descriptor(), notice_death) != Outcome::ok) {
    watches_.store(false, std::memory_order_relaxed);
  }
}

// What this rank still has to do needs nobody, and nobody needs it.
void Process::say_goodbye() {
  // Pairs with notice_death, on the message thread.
  watches_.store(false, std::memory_order_release);
  if (engine_->node().active()) engine_->node().say_goodbye();
}

// It is in the job again: others notice its end, and it notices theirs.
void Process::take_back_goodbye() {
  if (engine_->node().active()) engine_->node().take_back_goodbye();
  watches_.store(deaths_.descriptor() >= 0, std::memory_order_release);  // pairs with notice_death
}

// On the message thread, or on one that sleeps in MPI where there is none.
void Process::notice_death() {
  Process& self = process();
  const uint32_t dead = self.deaths_.next(self.engine_->node());
  if (dead == Deaths::nobody) return;
  // Once somebody has waited in vain there is nothing to wait for.
  const bool is_late = self.engine_->node().is_ending_by_death();
  for (int waited = 0; waited < launcher_first_ms; waited += look_ms) {
    // Pairs with say_goodbye. The descriptor must not stay readable while this rank rests.
    if (!self.watches_.load(std::memory_order_acquire)) {
      self.lost_at_rest_.store(true, std::memory_order_release);  // pairs with wake
      self.deaths_.forget(dead);
      return;
    }
    if (is_late) break;
    pause_for(look_ms);
  }
  self.end_after(dead);
}

// `local`: its number in the memory.
void Process::end_after(uint32_t local) {
  shm::Node& node = engine_->node();
  const uint32_t peer = (*node_ranks_)[local];
  const shm::Ended ended = node.tell_end({peer, 1});
  const bool is_first = node.claim_story();
  base::Text<600> text;
  text << "rank " << ended.rank;
  if (ended.rank == peer) text << " (process " << node.pid_of(local) << " on this host)";
  if (ended.is_told) {
    text << " has ended the job with code " << ended.code
         << ", which the launcher did not do for it. The job ends.";
  } else {
    text
        << " has ended without MPI_Finalize, and the launcher lets the others go on. Likely cause: "
           "it was killed, or called exit. Likely remedy: see what it said last, and how the "
           "launcher says that it ended; srun --kill-on-bad-exit=1 ends such jobs at once. The "
           "job ends.";
  }
  base::Text<80> reason;
  reason << "headway: rank " << ended.rank << " has ended without MPI_Finalize";
  abort(ended.code, is_first ? text.c_str() : nullptr, reason.c_str());
}

}  // namespace headway::runtime
