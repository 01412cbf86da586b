#include "hang_watch.h"

#include <utility>

#include "say.h"
#include "sites.h"

namespace headway::launcher {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + '"';
}

std::string list(const std::vector<int>& numbers) {
  std::string out = "[";
  for (size_t i = 0; i < numbers.size(); ++i) out += (i ? "," : "") + std::to_string(numbers[i]);
  return out + "]";
}

// Whoever asks makes a line of it himself.
std::string site_of(const Site& site) {
  if (site.module.empty()) return "";
  return format(",\"module\":%s,\"offset\":%llu", quoted(site.module).c_str(),
                static_cast<unsigned long long>(site.offset));
}

}  // namespace

// Without a look before, nobody is known to stand, and nothing is proven.
std::string HangWatch::as_json(int64_t now_ms, const Look& look) const {
  const double seconds = static_cast<double>(now_ms - seen_at_) / 1000;
  std::vector<Seen> now = look(true);
  find_sites(now);
  const Judgement judgement(seen_.empty() ? now : seen_, now, seen_.empty() ? 0 : seconds);
  std::string text =
      format("{\"version\":1,\"ranks\":%zu,\"hangs\":%s,\"verdict\":%s,\"groups\":[", now.size(),
             judgement.dead().empty() ? "false" : "true", quoted(judgement.verdict()).c_str());
  bool first = true;
  for (const WaitGroup& group : judgement.graph()) {
    text += format("%s{\"place\":%s,\"ranks\":%s,\"waits_for\":%s,\"any\":%s,\"dead\":%s%s}",
                   first ? "" : ",", quoted(group.place).c_str(), list(group.ranks).c_str(),
                   list(group.waits_for).c_str(), group.any ? "true" : "false",
                   group.dead ? "true" : "false", site_of(group.site).c_str());
    first = false;
  }
  return text + "]}\n";
}

std::string HangWatch::look(int64_t now_ms, const Look& look) {
  due_at_ = now_ms + period_ms;
  // The other communicators, and sites, are only needed for words.
  std::vector<Seen> now = look(false);
  if (!may_hang(now)) {
    seen_.clear();
    return "";
  }
  std::vector<Seen> before = std::move(seen_);
  const double seconds = static_cast<double>(now_ms - seen_at_) / 1000;
  seen_ = now;
  seen_at_ = now_ms;
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
