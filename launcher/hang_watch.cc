#include "hang_watch.h"

#include <utility>

#include "graph_json.h"
#include "sites.h"

namespace headway::launcher {

// Without a look before, nobody is known to stand, and nothing is proven.
std::string HangWatch::as_json(int64_t now_ms, const Look& look) const {
  std::vector<Seen> now = look(true);
  find_sites(now);
  const bool too_near = now_ms - last_.at_ms < apart_ms && !earlier_.ranks.empty();
  const Looked& before = too_near ? earlier_ : last_;
  if (before.ranks.empty()) return graph_json(Judgement(now, now, 0), now.size());
  const double seconds = static_cast<double>(now_ms - before.at_ms) / 1000;
  return graph_json(Judgement(before.ranks, now, seconds), now.size());
}

std::string HangWatch::look(int64_t now_ms, const Look& look) {
  due_at_ = now_ms + period_ms;
  // The other communicators, and sites, are only needed for words.
  std::vector<Seen> now = look(false);
  if (!may_hang(now)) {
    last_.ranks.clear();
    earlier_.ranks.clear();
    return "";
  }
  earlier_ = std::move(last_);
  last_ = {now, now_ms};
  const std::vector<Seen>& before = earlier_.ranks;
  const double seconds = static_cast<double>(now_ms - earlier_.at_ms) / 1000;
  if (before.empty() || Judgement(before, now, seconds).dead().empty()) return "";
  std::vector<Seen> with_comms = look(true);
  const std::vector<int> dead = Judgement(before, with_comms, seconds).dead();
  if (dead.empty() || has_told(dead)) return "";
  told_ = dead;
  name_sites(with_comms, patience_for_lines_ms);
  due_at_ +=
      patience_for_lines_ms;  // that may have taken so long: the job has its second in between
  const Judgement judgement(before, std::move(with_comms), seconds);
  return "the job hangs: " + judgement.picture() + judgement.verdict() +
         " mpiexec does not end it: Ctrl-C does, or --timeout SECONDS.";
}

}  // namespace headway::launcher
