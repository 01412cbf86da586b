#include "srun_codes.h"

#include <csignal>
#include <cstdlib>
#include <cstring>

namespace headway::launcher {
namespace {

constexpr size_t longest_line = 4096;  // of what is kept of one
constexpr int last_signal = 31;

// "Exited with exit code 5", "Segmentation fault (core dumped)"; 0: neither.
int code_in(std::string_view story) {
  constexpr std::string_view exited = "Exited with exit code ";
  if (story.starts_with(exited)) return atoi(std::string(story.substr(exited.size())).c_str());
  for (int number = 1; number <= last_signal; ++number) {
    const char* name = strsignal(number);
    if (name && (story == name || story.starts_with(std::string(name) + " ("))) return 128 + number;
  }
  return 0;
}

}  // namespace

void SrunCodes::take_line(std::string_view line) {
  // The end of a rank's line that has no end may stand before it.
  const size_t begin = line.rfind("srun: error: ");
  if (code_ != 0 || begin == std::string_view::npos) return;
  line.remove_prefix(begin);
  const size_t task = line.find(": task");  // "task 7: " or "tasks 1-3,5: "
  if (task == std::string_view::npos) return;
  const size_t colon = line.find(": ", task + 2);
  if (colon == std::string_view::npos) return;
  const int code = code_in(line.substr(colon + 2));
  if (code == 128 + SIGKILL || code == 128 + SIGTERM) return;
  code_ = code;
}

void SrunCodes::take(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view piece = text.substr(0, end);
    line_.append(piece);
    if (line_.size() > 2 * longest_line) line_.erase(0, line_.size() - longest_line);
    if (end == std::string_view::npos) return;
    take_line(line_);
    line_.clear();
    text.remove_prefix(end + 1);
  }
}

}  // namespace headway::launcher
