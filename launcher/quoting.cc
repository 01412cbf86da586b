#include "quoting.h"

namespace headway::launcher {
namespace {

std::string quoted_but(const std::string& word, const std::string& plain) {
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

constexpr const char* plain_letters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@";

}  // namespace

std::string quoted(const std::string& word) {
  return quoted_but(word, std::string(plain_letters) + "%");
}

std::string quoted(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + quoted(word);
  return line;
}

std::string quoted_for_srun(const std::string& word) { return quoted_but(word, plain_letters); }

}  // namespace headway::launcher
