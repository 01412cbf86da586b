#include "hang_watch.h"

#include <utility>

#include "graph_json.h"
#include "sites.h"

namespace headway::launcher {

// Without a look before, nobody is known to stand, and nothing is proven.
std::string HangWatch::as_json(int64_t now_ms, const Look& look) const {
  std::vector<Seen> now = look(true);
  find_sites(now);
  const size_t size = now.size();
  if (last_.ranks.empty()) return graph_json(Judgement({}, std::move(now), 0), size);
  const auto since = [&](const Looked& before) {
    return Judgement(before.ranks, now, static_cast<double>(now_ms - before.at_ms) / 1000);
  };
  // Any two looks prove it; a rank that was given no core since the last one has looked at nothing.
  Judgement judgement = since(last_);
  if (!judgement.is_stuck() && !earlier_.ranks.empty()) {
    if (Judgement longer = since(earlier_); longer.is_stuck()) judgement = std::move(longer);
  }
  return graph_json(judgement, size);
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
