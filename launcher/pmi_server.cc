#include "pmi_server.h"

#include <cstring>

#include "say.h"

namespace headway::launcher {

namespace pmi = bootstrap::pmi;

namespace {

constexpr size_t key_max = 64;
constexpr size_t value_max = 1024;

std::string text_of(const pmi::Line& line, std::string_view key) {
  std::string_view value;
  return line.get(key, value) ? std::string(value) : std::string();
}

// What a stray line looked like, short and printable.
std::string printable(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, 60)) {
    result += c >= 0x20 && c < 0x7f ? std::string(1, c)
                                    : format("\\x%02x", static_cast<unsigned char>(c));
  }
  return text.size() > 60 ? result + "..." : result;
}

}  // namespace

PmiServer::PmiServer(std::string job_name, std::vector<int> appnums, Send send)
    : job_name_(std::move(job_name)), appnums_(std::move(appnums)), send_(std::move(send)) {
  for (size_t i = 0; i < appnums_.size(); ++i) ranks_.push_back(std::make_unique<Rank>());
}

std::string PmiServer::round_name(int round) const {
  return round <= 1 ? job_name_ : job_name_ + "_" + std::to_string(round);
}

std::optional<PmiEvent> PmiServer::receive(int rank, std::string_view bytes) {
  Rank& state = *ranks_[size_t(rank)];
  while (!bytes.empty() && !state.silenced) {
    char* const space = state.in.space();
    const size_t size = std::min(bytes.size(), state.in.space_size());
    memcpy(space, bytes.data(), size);
    state.in.added(size);
    bytes.remove_prefix(size);
    while (true) {
      std::string_view text;
      const auto next = state.in.next(text);
      if (next == pmi::LineBuffer::Next::incomplete) break;
      if (next == pmi::LineBuffer::Next::too_long) {
        return garbage(rank, "a line without an end");
      }
      std::optional<PmiEvent> event = line(rank, text);
      if (event) return event;
    }
  }
  return std::nullopt;
}

PmiEvent PmiServer::garbage(int rank, std::string_view text) {
  ranks_[size_t(rank)]->silenced = true;
  return {PmiEvent::Kind::garbage, 1, printable(text)};
}

std::optional<PmiEvent> PmiServer::line(int rank, std::string_view text) {
  Rank& state = *ranks_[size_t(rank)];
  // A spawn request has several lines. Its answer is a plain no, so their content is not read.
  if (state.in_spawn) {
    if (text == "endcmd") {
      state.in_spawn = false;
      answer(rank, "cmd=spawn_result rc=-1 msg=this_mpiexec_starts_no_further_processes");
    }
    return std::nullopt;
  }
  if (text.starts_with("mcmd=")) {
    state.in_spawn = true;
    return std::nullopt;
  }
  pmi::Line parsed;
  std::string_view name;
  if (!parsed.parse(text) || !parsed.get("cmd", name)) return garbage(rank, text);
  return command(rank, parsed, name);
}

std::optional<PmiEvent> PmiServer::command(int rank, const pmi::Line& line, std::string_view name) {
  Rank& state = *ranks_[size_t(rank)];
  if (name == "abort") {
    PmiEvent event{PmiEvent::Kind::abort, 1, text_of(line, "message")};
    if (event.text.empty()) event.text = text_of(line, "error_msg");
    if (!line.get_number("exitcode", event.code)) event.code = 1;
    return event;
  }
  if (name == "init") return init(rank, line), std::nullopt;
  if (state.stage == Stage::outside) return garbage(rank, "a command before cmd=init");
  if (name == "get_maxes") {
    answer(rank, format("cmd=maxes rc=0 kvsname_max=256 keylen_max=%zu vallen_max=%zu", key_max,
                        value_max));
  } else if (name == "get_appnum") {
    answer(rank, format("cmd=appnum rc=0 appnum=%d", appnums_[size_t(rank)]));
  } else if (name == "get_my_kvsname") {
    answer(rank, "cmd=my_kvsname rc=0 kvsname=" + round_name(state.round));
  } else if (name == "get_universe_size") {
    answer(rank, format("cmd=universe_size rc=0 size=%zu", ranks_.size()));
  } else if (name == "barrier_in") {
    barrier(rank);
  } else if (name == "put") {
    put(rank, line);
  } else if (name == "get") {
    get(rank, line);
  } else if (name == "finalize") {
    state.stage = Stage::left;
    answer(rank, "cmd=finalize_ack rc=0");
  } else if (name == "headway_leave") {
    state.stage = Stage::left;
  } else if (name == "headway_return") {
    state.stage = Stage::inside;
  } else if (name == "publish_name" || name == "lookup_name" || name == "unpublish_name") {
    name_service(rank, line, name);
  } else if (name == "spawn") {
    answer(rank, "cmd=spawn_result rc=-1 msg=this_mpiexec_starts_no_further_processes");
  } else {
    return garbage(rank, "the unknown command " + std::string(name));
  }
  return std::nullopt;
}

void PmiServer::init(int rank, const pmi::Line& line) {
  int version = 0;
  if (!line.get_number("pmi_version", version) || version != 1) {
    answer(rank, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1");
    return;
  }
  Rank& state = *ranks_[size_t(rank)];
  ++state.round;
  state.stage = Stage::inside;
  state.in_barrier = false;
  int oldest = state.round;
  for (const auto& other : ranks_) {
    if (other->round > 0) oldest = std::min(oldest, other->round);
  }
  rounds_.erase(rounds_.begin(), rounds_.lower_bound(oldest));
  // The last word tells our own library that it may use the two commands that only we know.
  answer(rank, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0 headway=1");
}

void PmiServer::barrier(int rank) {
  Rank& state = *ranks_[size_t(rank)];
  if (state.in_barrier) return;
  state.in_barrier = true;
  ++state.barriers;
  Round& round = round_of(rank);
  if (++round.waiting != static_cast<int>(ranks_.size())) return;
  round.waiting = 0;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    ranks_[i]->in_barrier = false;
    answer(static_cast<int>(i), "cmd=barrier_out rc=0");
  }
}

void PmiServer::put(int rank, const pmi::Line& line) {
  const std::string key = text_of(line, "key");
  std::string_view value;
  if (text_of(line, "kvsname") != round_name(ranks_[size_t(rank)]->round)) {
    return answer(rank, "cmd=put_result rc=-1 msg=unknown_kvsname");
  }
  if (key.empty() || key.size() >= key_max || !line.get("value", value) ||
      value.size() >= value_max) {
    return answer(rank, "cmd=put_result rc=-1 msg=key_or_value_too_long_or_missing");
  }
  const bool fresh = round_of(rank).texts.emplace(key, std::string(value)).second;
  answer(rank,
         fresh ? "cmd=put_result rc=0 msg=success" : "cmd=put_result rc=-1 msg=duplicate_key");
}

void PmiServer::get(int rank, const pmi::Line& line) {
  const std::string key = text_of(line, "key");
  const Round& round = round_of(rank);
  const auto found = round.texts.find(key);
  if (text_of(line, "kvsname") != round_name(ranks_[size_t(rank)]->round)) {
    answer(rank, "cmd=get_result rc=-1 msg=unknown_kvsname");
  } else if (found != round.texts.end()) {
    answer(rank, "cmd=get_result rc=0 msg=success value=" + found->second);
  } else if (key == "PMI_process_mapping") {
    answer(rank, format("cmd=get_result rc=0 msg=success value=(vector,(0,1,%zu))", ranks_.size()));
  } else {
    answer(rank, "cmd=get_result rc=-1 msg=key_not_found");
  }
}

std::string PmiServer::text(int rank, const std::string& key) const {
  const auto round = rounds_.find(ranks_[size_t(rank)]->round);
  if (round == rounds_.end()) return "";
  const auto found = round->second.texts.find(key);
  return found == round->second.texts.end() ? "" : found->second;
}

void PmiServer::name_service(int rank, const pmi::Line& line, std::string_view name) {
  const std::string service = text_of(line, "service");
  const auto found = services_.find(service);
  if (name == "publish_name") {
    const bool fresh = found == services_.end() && !service.empty();
    if (fresh) services_.emplace(service, text_of(line, "port"));
    answer(rank, fresh ? "cmd=publish_result rc=0 info=ok"
                       : "cmd=publish_result rc=-1 info=already_published");
  } else if (name == "lookup_name") {
    answer(rank, found != services_.end() ? "cmd=lookup_result rc=0 info=ok port=" + found->second
                                          : "cmd=lookup_result rc=-1 info=not_published");
  } else {
    answer(rank, found != services_.end() ? "cmd=unpublish_result rc=0 info=ok"
                                          : "cmd=unpublish_result rc=-1 info=not_published");
    if (found != services_.end()) services_.erase(found);
  }
}

std::optional<int> PmiServer::missing() const {
  for (const auto& waiting : ranks_) {
    if (!waiting->in_barrier || waiting->ended) continue;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      const Rank& other = *ranks_[i];
      const bool there = other.round == waiting->round && other.in_barrier;
      if (other.ended && !there && other.round <= waiting->round) return static_cast<int>(i);
    }
  }
  return std::nullopt;
}

}  // namespace headway::launcher
