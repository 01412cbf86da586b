#include "say.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <poll.h>
#include <unistd.h>
#include <vector>

#include "color.h"

namespace headway::launcher {
namespace {

Speaker speaker_now = nullptr;
void* speaker_context = nullptr;

// Letters to insert, remove or replace, with a swap of neighbours counted as one. Case and the
// difference of '-' and '_' do not count.
size_t edit_distance(std::string_view a, std::string_view b) {
  const auto plain = [](char c) {
    return c == '-' ? '_' : char(tolower(static_cast<unsigned char>(c)));
  };
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = plain(a[i - 1]) == plain(b[j - 1]);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + !same});
      if (i > 1 && j > 1 && plain(a[i - 1]) == plain(b[j - 2]) &&
          plain(a[i - 2]) == plain(b[j - 1])) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

void route_sentences(Speaker speaker, void* context) {
  speaker_now = speaker;
  speaker_context = context;
}

void say(std::string_view sentence) {
  std::string line = paint_name(STDERR_FILENO, "mpiexec:") + " ";
  line.append(sentence).append("\n");
  if (speaker_now) return speaker_now(speaker_context, line);
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = write(STDERR_FILENO, rest.data(), rest.size());
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) {  // somebody made it non-blocking
      pollfd room = {STDERR_FILENO, POLLOUT, 0};
      poll(&room, 1, -1);
      continue;
    }
    if (written <= 0) return;  // nobody is left to tell
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

std::string format(const char* pattern, ...) {
  char small[256];  // most texts fit, and a look at thousands of ranks makes thousands of them
  va_list arguments;
  va_start(arguments, pattern);
  va_list again;
  va_copy(again, arguments);
  const int size = vsnprintf(small, sizeof small, pattern, arguments);
  va_end(arguments);
  std::string text;
  if (size > 0 && static_cast<size_t>(size) < sizeof small) {
    text.assign(small, static_cast<size_t>(size));
  } else if (size > 0) {
    text.resize(static_cast<size_t>(size));
    vsnprintf(text.data(), text.size() + 1, pattern, again);
  }
  va_end(again);
  return text;
}

void NearNames::offer(std::string_view candidate) {
  const size_t distance =
      candidate.starts_with(name_) && name_.size() >= 3 ? 1 : edit_distance(name_, candidate);
  const size_t allowed = name_.size() <= 3 ? 1 : name_.size() / 3 + 1;
  if (distance > allowed) return;
  for (const Found& found : best_) {
    if (found.text == candidate) return;
  }
  Found entry{distance, std::string(candidate)};
  for (Found& found : best_) {
    if (entry.distance < found.distance) std::swap(entry, found);
  }
}

std::string NearNames::question(const std::string& prefix) const {
  std::vector<std::string> names;
  for (const Found& found : best_) {
    if (!found.text.empty()) names.push_back(prefix + found.text);
  }
  if (names.empty()) return "";
  std::string text = "; did you mean " + names[0];
  for (size_t i = 1; i < names.size(); ++i) {
    text += (i + 1 == names.size() ? " or " : ", ") + names[i];
  }
  return text + "?";
}

}  // namespace headway::launcher
