// Job, fourth part: where the ranks stand when the job is ended from outside: by its time limit, by
// Ctrl-C, by a batch system.
#include <utility>

#include "base/whereabouts.h"
#include "job.h"
#include "say.h"
#include "sites.h"

namespace headway::launcher {
namespace {

// Between two looks, before an interrupt is passed on to ranks some of which wait.
constexpr int64_t second_look_ms = 100;
// Where ranks had no time to look at what has come: so many more such times.
constexpr int most_looks = 4;

}  // namespace

// All ranks, in order.
std::vector<Seen> Job::look(bool with_comms) const {
  std::vector<Seen> all;
  for (int number = 0; number < size_; ++number) {
    const Rank& rank = ranks_[size_t(number)];
    Seen seen{number, rank.pid, {}};
    const std::string told = pmi_->text(number, base::whereabouts_key + std::to_string(number));
    const Stage stage = pmi_->stage(number);
    if (!rank.running) {
      seen.spot.kind = Spot::Kind::ended;
    } else if (stage == Stage::inside) {
      seen.spot = look_at(rank.pid, told, with_comms);
      seen.spot.barrier = pmi_->barrier_of(number);
    } else {
      seen.spot.kind = stage == Stage::outside ? Spot::Kind::before : Spot::Kind::left;
      look_at_process(rank.pid, seen.spot);
    }
    all.push_back(seen);
  }
  return all;
}

// A sentence about the ranks, compared with the look before; "" if nothing is known of them.
std::string Job::where() const {
  const double seconds = seen_at_ < 0 ? 0 : static_cast<double>(now_ms() - seen_at_) / 1000;
  std::vector<Seen> now = look(true);
  name_sites(now, patience_for_lines_ms);
  const Judgement judgement(seen_, std::move(now), seconds);
  if (hang_watch_.has_told(judgement.dead())) return "";
  const std::string text = judgement.picture();
  return text.empty() ? "" : text + judgement.verdict();
}

// True if a signal that asks the ranks to end is passed on a moment later, because some of them
// wait: whoever ends a job that hangs wants to know where.
bool Job::tells_before(int signal) {
  if (signal == SIGHUP) return false;  // nobody is left to read it
  seen_ = look(false);
  if (!may_hang(seen_)) return false;
  seen_at_ = now_ms();
  pass_on_at_ = seen_at_ + second_look_ms;
  more_looks_ = most_looks;
  return true;
}

void Job::pass_interrupt_on() {
  if (ending_) return;
  const double seconds = static_cast<double>(now_ms() - seen_at_) / 1000;
  std::vector<Seen> now = look(true);
  const Judgement judgement(seen_, now, seconds);
  if (judgement.is_unsure() && more_looks_-- > 0) {
    pass_on_at_ = now_ms() + second_look_ms;
    return;
  }
  if (judgement.is_stuck() && !hang_watch_.has_told(judgement.dead())) {
    name_sites(now, patience_for_lines_ms);
    const Judgement with_lines(seen_, std::move(now), seconds);
    say(with_lines.picture() + with_lines.verdict());
  }
  signal_ranks(interrupted_by_);
}

}  // namespace headway::launcher
