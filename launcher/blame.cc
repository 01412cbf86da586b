#include "blame.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace headway::launcher {
namespace {

constexpr int64_t look_ms = 20;
constexpr int64_t patience_ms = 2000;

struct Stat {
  char state = 0;
  unsigned flags = 0;
  int threads = 0;
};

// Of /proc/PID/stat, or of a thread's.
bool read_stat(const std::string& path, Stat& stat) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  const size_t end = text.rfind(')');  // of the name, which may hold anything
  return end != std::string::npos &&
         sscanf(text.c_str() + end + 1,
                " %c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d",
                &stat.state, &stat.flags, &stat.threads) == 3;
}

// By a signal; set before anything of it is closed.
bool is_dying(const Stat& stat) {
  constexpr unsigned exiting = 4, signaled = 0x400;  // PF_EXITING, PF_SIGNALED
  return (stat.flags & (exiting | signaled)) == (exiting | signaled);
}

}  // namespace

bool may_be_killed(pid_t pid) {
  const std::string place = "/proc/" + std::to_string(pid);
  Stat stat;
  if (!read_stat(place + "/stat", stat)) return false;
  if (stat.state != 'Z') return is_dying(stat);
  if (stat.threads <= 1) return true;  // how it ended is known as soon as it is waited for
  // The thread of main() has ended; the others may go on without it.
  std::error_code wrong;
  for (std::filesystem::directory_iterator task(place + "/task", wrong), none;
       !wrong && task != none; task.increment(wrong)) {
    if (read_stat(task->path() / "stat", stat) && stat.state != 'Z' && !is_dying(stat))
      return false;
  }
  return true;
}

void Blame::suspect(Failure failure, int64_t now, const std::function<std::vector<int>()>& dying) {
  if (!failure_) {
    failure_ = std::move(failure);
    since_ = now;
    if (!failure_->by_signal) dying_ = dying();
    std::erase(dying_, failure_->rank);
    return;
  }
  const auto older = std::find(dying_.begin(), dying_.end(), failure.rank);
  if (failure_->by_signal || !failure.by_signal || older == dying_.end()) return;
  failure_ = std::move(failure);
}

bool Blame::is_final(int64_t now, const std::function<bool(int)>& is_still_dying,
                     int64_t& again_at) const {
  if (failure_->by_signal || now >= since_ + patience_ms ||
      std::none_of(dying_.begin(), dying_.end(), is_still_dying)) {
    return true;
  }
  again_at = now + look_ms;
  return false;
}

}  // namespace headway::launcher
