#include "host_list.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "say.h"

namespace headway::launcher {
namespace {

constexpr long most_slots = 1'000'000;

// A number of ranks, or 0 for "*", which leaves it open; -1: neither.
int slots_of(const std::string& text) {
  if (text == "*") return 0;
  char* rest = nullptr;
  errno = 0;
  const long number = strtol(text.c_str(), &rest, 10);
  const bool good =
      !text.empty() && *rest == '\0' && errno == 0 && number >= 1 && number <= most_slots;
  return good ? static_cast<int>(number) : -1;
}

// What may stand behind a name without a meaning for us: it limits what others would do.
bool is_limit(const std::string& word) {
  return word.starts_with("max_slots=") || word.starts_with("max-slots=");
}

}  // namespace

void HostList::add(const std::string& name, int slots) {
  counted_ |= slots > 0;
  const auto known = std::find_if(hosts_.begin(), hosts_.end(),
                                  [&](const Host& host) { return host.name == name; });
  if (known == hosts_.end()) {
    hosts_.push_back({name, slots});
    return;
  }
  counted_ = true;  // twice is two ranks
  const int sum = std::max(known->slots, 1) + std::max(slots, 1);
  known->slots = std::min(sum, static_cast<int>(most_slots));
}

// `slots`: those that stand in a word of their own; 0 for none.
bool HostList::add_entry(const std::string& entry, int slots) {
  std::string name = entry, number;
  if (entry.starts_with("[")) {
    const size_t end = entry.find(']');
    if (end == std::string::npos) {
      error_ = format("host %s: a bracket is not closed", entry.c_str());
      return false;
    }
    name = entry.substr(1, end - 1);
    if (end + 1 < entry.size()) number = entry.substr(end + 1);
  } else if (std::count(entry.begin(), entry.end(), ':') == 1) {
    name = entry.substr(0, entry.find(':'));
    number = entry.substr(entry.find(':'));
  }
  if (name.find_first_of("[]") != std::string::npos) {
    error_ = format("host %s: name the machines one by one, as in node1,node2", entry.c_str());
    return false;
  }
  // It stands on lines of engines and of ssh, where other signs would say something else.
  constexpr const char* signs =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_@:%";
  if (name.starts_with("-") || name.find_first_not_of(signs) != std::string::npos) {
    error_ = format("host %s: a machine's name has letters, digits, dots, hyphens", entry.c_str());
    return false;
  }
  if (!number.empty()) slots = number[0] == ':' ? slots_of(number.substr(1)) : -1;
  if (name.empty() || slots < 0) {
    error_ = format("host %s: a name, and behind a colon how many ranks it takes, as in node1:4",
                    entry.c_str());
    return false;
  }
  add(name, slots);
  return true;
}

bool HostList::add_list(const std::string& text) {
  std::istringstream list(text);
  for (std::string entry; std::getline(list, entry, ',');) {
    if (!entry.empty() && !add_entry(entry, 0)) return false;
  }
  return true;
}

bool HostList::add_file(const std::string& path, bool second_is_slots) {
  std::ifstream file(path);
  if (!file) {
    error_ = format("cannot read the host file %s: %s", path.c_str(), strerror(errno));
    return false;
  }
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string entry, word;
    if (!(words >> entry)) continue;
    int slots = 0;
    if (second_is_slots) {
      // The queue and the processors that stand behind it are the batch system's own business.
      if (words >> word) slots = std::max(slots_of(word), 0);
    } else {
      while (words >> word) {
        if (word.starts_with("slots=")) {
          slots = slots_of(word.substr(6));
          if (slots < 0) {
            error_ = format("host file %s: %s of %s is no number of ranks", path.c_str(),
                            word.c_str(), entry.c_str());
            return false;
          }
        } else if (!is_limit(word) && unknown_.empty()) {
          unknown_ = format("%s (%s)", word.c_str(), entry.c_str());
        }
      }
    }
    if (!add_entry(entry, slots)) return false;
  }
  if (file.bad()) {
    error_ = format("cannot read the host file %s: %s", path.c_str(), strerror(errno));
    return false;
  }
  return true;
}

std::vector<Host> HostList::hosts() const {
  std::vector<Host> all = hosts_;
  for (Host& host : all) {
    if (counted_) host.slots = std::max(host.slots, 1);
  }
  return all;
}

}  // namespace headway::launcher
