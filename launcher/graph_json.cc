#include "graph_json.h"

#include "say.h"

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
  if (!site.line.empty()) return format(",\"line\":%s", quoted(site.line).c_str());
  if (site.module.empty()) return "";
  return format(",\"module\":%s,\"offset\":%llu", quoted(site.module).c_str(),
                static_cast<unsigned long long>(site.offset));
}

}  // namespace

std::string graph_json(const Judgement& judgement, size_t ranks) {
  std::string text =
      format("{\"version\":1,\"ranks\":%zu,\"hangs\":%s,\"verdict\":%s,\"groups\":[", ranks,
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

}  // namespace headway::launcher
