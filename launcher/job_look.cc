// Job, fourth part: where the ranks stand when the job is ended from outside: by its time limit, by
// Ctrl-C, by a batch system.
#include "base/whereabouts.h"
#include "job.h"
#include "say.h"

namespace headway::launcher {
namespace {

// Between two looks at ranks that all wait, before an interrupt is passed on to them.
constexpr int64_t second_look_ms = 100;

}  // namespace

std::vector<Seen> Job::look() const {
  std::vector<Seen> all;
  for (int number = 0; number < size_; ++number) {
    const Rank& rank = ranks_[size_t(number)];
    if (!rank.running) continue;
    Seen seen{number, rank.pid, {}};
    const std::string told = pmi_->text(number, base::whereabouts_key + std::to_string(number));
    switch (pmi_->stage(number)) {
      case Stage::outside: seen.spot.kind = Spot::Kind::before; break;
      case Stage::left: seen.spot.kind = Spot::Kind::left; break;
      case Stage::inside: seen.spot = look_at(rank.pid, told); break;
    }
    all.push_back(seen);
  }
  return all;
}

// A sentence about the ranks, compared with the look before; "" if nothing is known of them.
std::string Job::where() const {
  const std::vector<Seen> now = look();
  std::string text = picture_of(now);
  if (text.empty() || !is_stuck(now)) return text;
  return text +
         format(", and nothing has changed for %.1f s.",
                static_cast<double>(now_ms() - seen_at_) / 1000) +
         advice_for(now);
}

// True if a signal that asks the ranks to end is passed on a moment later, because all of them seem
// to wait for one another: whoever ends a job that hangs wants to know where.
bool Job::tells_before(int signal) {
  if (signal == SIGHUP) return false;  // nobody is left to read it
  seen_ = look();
  if (!all_wait(seen_)) return false;
  seen_at_ = now_ms();
  pass_on_at_ = seen_at_ + second_look_ms;
  return true;
}

void Job::pass_interrupt_on() {
  if (ending_) return;
  if (is_stuck(look())) say(where());
  signal_ranks(interrupted_by_);
}

}  // namespace headway::launcher
