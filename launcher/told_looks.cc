#include "told_looks.h"

#include <array>
#include <cstdlib>
#include <map>
#include <sstream>
#include <utility>

#include "base/whereabouts.h"
#include "say.h"

namespace headway::launcher {
namespace {

constexpr int most_ranks = 1 << 24;
constexpr const char* first_line = "headway-looks 1";

bool number(const std::string& text, int64_t& out) {
  char* end = nullptr;
  out = strtoll(text.c_str(), &end, 10);
  return !text.empty() && *end == 0;
}

bool number(const std::string& text, uint64_t& out) {
  char* end = nullptr;
  out = strtoull(text.c_str(), &end, 10);
  return !text.empty() && *end == 0;
}

std::vector<std::string> parts_of(const std::string& text, char between) {
  std::vector<std::string> parts;
  std::istringstream rest(text);
  for (std::string part; std::getline(rest, part, between);) parts.push_back(part);
  return parts;
}

bool ranks_of(const std::string& text, std::vector<int>& ranks) {
  for (const std::string& part : parts_of(text, ',')) {
    const size_t dash = part.find('-');
    int64_t first = 0, last = 0;
    if (!number(part.substr(0, dash), first)) return false;
    if (dash == std::string::npos) {
      last = first;
    } else if (!number(part.substr(dash + 1), last)) {
      return false;
    }
    if (first < 0 || last < first || last >= most_ranks) return false;
    for (int64_t rank = first; rank <= last; ++rank) ranks.push_back(int(rank));
  }
  return true;
}

class Reader {
 public:
  explicit Reader(ToldLooks& looks) : looks_(looks) {}
  bool take(const std::string& line);

 private:
  bool take_rank(std::istringstream& rest, std::vector<Seen>& look);
  bool take_word(Spot& spot, const std::string& name, const std::string& value);
  bool take_text(Spot& spot, const std::string& name, const std::string& value);
  bool take_flag(Spot& spot, const std::string& name, const std::string& value);
  bool take_kind(Spot& spot, const std::string& value) const;
  bool take_comms(Spot& spot, const std::string& value) const;
  bool take_needs(Spot& spot, const std::string& value) const;

  ToldLooks& looks_;
  std::map<uint64_t, std::string> texts_;
  std::map<uint64_t, Members> sets_;
  std::map<uint64_t, SeenComm> comms_;
};

bool Reader::take(const std::string& line) {
  std::istringstream rest(line);
  std::string what;
  uint64_t id = 0;
  rest >> what;
  if (what == "before") return take_rank(rest, looks_.before);
  if (what == "rank") return take_rank(rest, looks_.after);
  if (what == "seconds") return bool(rest >> looks_.seconds);
  if (!(rest >> id)) return false;
  if (what == "ranks") {
    if (id > most_ranks) return false;
    for (auto* look : {&looks_.before, &looks_.after}) {
      look->resize(id);
      for (size_t i = 0; i < id; ++i) (*look)[i].rank = int(i);
    }
    return true;
  }
  if (what == "text") {
    rest.get();
    std::getline(rest, texts_[id]);
    return true;
  }
  if (what == "set") {
    std::string list;
    std::vector<int> ranks;
    rest >> list;
    if (!ranks_of(list, ranks)) return false;
    sets_[id] = Members(std::move(ranks));
    return true;
  }
  uint64_t set = 0, name = 0;
  if (what != "comm" || !(rest >> set >> name) || !sets_.contains(set)) return false;
  comms_[id] = {.context = id, .collectives = 0, .name = texts_[name], .members = sets_[set]};
  return true;
}

bool Reader::take_rank(std::istringstream& rest, std::vector<Seen>& look) {
  size_t rank = 0;
  if (!(rest >> rank) || rank >= look.size()) return false;
  Spot& spot = look[rank].spot;
  spot.peer = spot.tag = base::nobody;
  for (std::string word; rest >> word;) {
    const size_t is = word.find('=');
    if (is == std::string::npos) return false;
    const std::string name = word.substr(0, is), value = word.substr(is + 1);
    int64_t pid = 0;
    if (name == "pid") {
      if (!number(value, pid)) return false;
      look[rank].pid = pid_t(pid);
    } else if (!take_word(spot, name, value)) {
      return false;
    }
  }
  return true;
}

bool Reader::take_word(Spot& spot, const std::string& name, const std::string& value) {
  const std::array<std::pair<const char*, uint64_t*>, 7> counts = {{{"waits", &spot.waits},
                                                                    {"vain", &spot.vain},
                                                                    {"cpu", &spot.cpu_ticks},
                                                                    {"polls", &spot.polls},
                                                                    {"comm", &spot.context},
                                                                    {"offset", &spot.site.offset},
                                                                    {"moves", &spot.moves}}};
  for (const auto& [known, place] : counts) {
    if (name == known) return number(value, *place);
  }
  const std::array<std::pair<const char*, int*>, 3> ranks = {
      {{"peer", &spot.peer}, {"tag", &spot.tag}, {"awaited", &spot.awaited}}};
  for (const auto& [known, place] : ranks) {
    int64_t found = 0;
    if (name != known) continue;
    if (!number(value, found)) return false;
    *place = int(found);
    return true;
  }
  return take_flag(spot, name, value) || take_text(spot, name, value);
}

bool Reader::take_flag(Spot& spot, const std::string& name, const std::string& value) {
  const std::array<std::pair<const char*, bool*>, 3> flags = {
      {{"asleep", &spot.asleep}, {"threads", &spot.many_threads}, {"done", &spot.done}}};
  for (const auto& [known, place] : flags) {
    if (name != known) continue;
    *place = value == "1";
    return value == "0" || value == "1";
  }
  return false;
}

bool Reader::take_text(Spot& spot, const std::string& name, const std::string& value) {
  if (name == "kind") return take_kind(spot, value);
  if (name == "has") return take_comms(spot, value);
  if (name == "needs") return take_needs(spot, value);
  if (name == "call") return spot.call = value, true;
  if (name == "poll") return spot.poll = value, true;
  if (name == "state") return spot.state = value.empty() ? '?' : value[0], true;
  uint64_t id = 0;
  if (name == "signs") {
    for (const std::string& part : parts_of(value, ',')) {
      if (!number(part, id)) return false;
      spot.signs.push_back(id);
    }
    return true;
  }
  const std::array<std::pair<const char*, std::string*>, 3> texts = {
      {{"module", &spot.site.module}, {"line", &spot.site.line}, {"on", &spot.on}}};
  for (const auto& [known, place] : texts) {
    if (name != known) continue;
    if (!number(value, id) || !texts_.contains(id)) return false;
    *place = texts_[id];
    return true;
  }
  return false;
}

bool Reader::take_kind(Spot& spot, const std::string& value) const {
  using Kind = Spot::Kind;
  const std::array<std::pair<const char*, Kind>, 6> kinds = {{{"unknown", Kind::unknown},
                                                              {"before", Kind::before},
                                                              {"computing", Kind::computing},
                                                              {"in_call", Kind::in_call},
                                                              {"left", Kind::left},
                                                              {"ended", Kind::ended}}};
  for (const auto& [known, kind] : kinds) {
    if (value != known) continue;
    spot.kind = kind;
    return true;
  }
  return false;
}

bool Reader::take_comms(Spot& spot, const std::string& value) const {
  for (const std::string& part : parts_of(value, ',')) {
    const size_t colon = part.find(':');
    uint64_t id = 0, count = 0;
    if (colon == std::string::npos || !number(part.substr(0, colon), id) ||
        !number(part.substr(colon + 1), count)) {
      return false;
    }
    const auto found = comms_.find(id);
    if (found == comms_.end()) return false;
    spot.comms.push_back(found->second);
    spot.comms.back().collectives = uint32_t(count);
  }
  return true;
}

bool Reader::take_needs(Spot& spot, const std::string& value) const {
  spot.needs.known = true;
  for (const std::string& part : parts_of(value, ',')) {
    uint64_t id = 0;
    if (part == "open") {
      spot.needs.open = true;
      continue;
    }
    if (part.size() < 5 || !number(part.substr(4), id)) return false;
    const auto found = sets_.find(id);
    if (found == sets_.end()) return false;
    const RankSet set{.number = id, .members = found->second};
    if (part.starts_with("all:")) {
      spot.needs.all = set;
    } else if (part.starts_with("any:")) {
      spot.needs.any.push_back(set);
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string read_looks(std::istream& from, ToldLooks& looks) {
  Reader reader(looks);
  std::string line;
  if (!std::getline(from, line) || line != first_line) return "these are no looks at ranks";
  while (std::getline(from, line)) {
    if (!reader.take(line)) return "not understood: " + line.substr(0, 200);
  }
  return "";
}

}  // namespace headway::launcher
