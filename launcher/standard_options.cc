#include "standard_options.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <sys/utsname.h>

#include "say.h"

namespace headway::launcher {
namespace {

void add_sections(const WordList& words, std::vector<WordList>& sections) {
  sections.emplace_back();
  for (const std::string& word : words) {
    if (word == ":") {
      sections.emplace_back();
    } else {
      sections.back().push_back(word);
    }
  }
}

// One of the triplets, as numbers; false if it is none.
bool read_triplet(const std::string& text, long (&numbers)[3]) {
  const char* at = text.c_str();
  for (int count = 0;; ++count) {
    char* rest = nullptr;
    errno = 0;
    const long number = strtol(at, &rest, 10);
    if (rest == at || errno != 0 || labs(number) > 1'000'000 || count == 3) return false;
    if (count == 0) numbers[1] = number;  // a alone is a:a
    numbers[count] = number;
    if (*rest == '\0') return numbers[2] != 0;
    if (*rest != ':') return false;
    at = rest + 1;
  }
}

// The largest number of begin, begin + step, ... up to or down to end that is at most `most`; 0:
// none.
long largest(long begin, long end, long step, long most) {
  long value = begin;
  if (step > 0) {
    const long last = std::min(end, most);
    if (begin > last) return 0;
    value = begin + (last - begin) / step * step;
  } else if (begin > most) {
    value = begin + (begin - most - step - 1) / -step * step;
  }
  return value >= 1 && (step > 0 || value >= end) ? value : 0;
}

}  // namespace

bool split_words(const std::string& line, WordList& words) {
  std::string word;
  bool begun = false;
  char quote = '\0';
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == '\0' && isspace(static_cast<unsigned char>(c))) {
      if (begun) words.push_back(word);
      word.clear();
      begun = false;
      continue;
    }
    begun = true;
    if (c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == '\\' && quote != '\'' && i + 1 < line.size()) {
      word += line[++i];
    } else {
      word += c;
    }
  }
  if (begun) words.push_back(word);
  return quote == '\0';
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream list(text);
  for (std::string part; std::getline(list, part, ',');) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

bool read_config_file(const std::string& path, std::vector<WordList>& sections,
                      std::string& error) {
  std::ifstream file(path);
  if (!file) {
    error = format("-configfile %s: %s", path.c_str(), strerror(errno));
    return false;
  }
  std::string whole;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const bool goes_on = !line.empty() && line.back() == '\\';
    if (goes_on) line.pop_back();
    const size_t first = line.find_first_not_of(" \t\r");
    if (whole.empty() && (first == std::string::npos || line[first] == '#')) continue;
    whole += line + " ";
    if (goes_on) continue;
    WordList words;
    if (!split_words(whole, words)) {
      error = format("-configfile %s: a quote is not closed in line %d", path.c_str(), number);
      return false;
    }
    add_sections(words, sections);
    whole.clear();
  }
  if (file.bad()) {
    error = format("-configfile %s: %s", path.c_str(), strerror(errno));
    return false;
  }
  WordList words;
  if (!split_words(whole, words)) {
    error = format("-configfile %s: a quote is not closed in line %d", path.c_str(), number);
    return false;
  }
  if (!words.empty()) add_sections(words, sections);
  if (sections.empty()) {
    error = format(
        "-configfile %s: the file has no line with a program; each line is options, a program and "
        "its arguments, as in: -n 2 ./a.out",
        path.c_str());
  }
  return !sections.empty();
}

bool soft_ranks(const std::string& list, int most, int& ranks, std::string& error) {
  long best = 0;
  const std::vector<std::string> parts = split_list(list);
  for (const std::string& part : parts) {
    long numbers[3] = {0, 0, 1};
    if (!read_triplet(part, numbers)) {
      error = format("-soft %s: '%s' is not a, a:b or a:b:c, as in 1,2:8:2", list.c_str(),
                     part.c_str());
      return false;
    }
    best = std::max(best, largest(numbers[0], numbers[1], numbers[2], most));
  }
  if (best == 0) {
    error = format("-soft %s: none of these numbers is between 1 and %d, the most that -n allows",
                   list.c_str(), most);
    return false;
  }
  ranks = static_cast<int>(best);
  return true;
}

bool check_architecture(const std::string& name, std::string& error) {
  utsname machine;
  if (uname(&machine) != 0) return true;
  const auto common = [](std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(tolower(c)); });
    std::replace(text.begin(), text.end(), '-', '_');
    return text == "amd64" ? "x86_64" : text == "arm64" ? "aarch64" : text;
  };
  if (common(name) == common(machine.machine)) return true;
  error = format("-arch %s: this machine is %s, and of others the kind is not known; leave it out",
                 name.c_str(), machine.machine);
  return false;
}

}  // namespace headway::launcher
