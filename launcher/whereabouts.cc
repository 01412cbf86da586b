#include "whereabouts.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <sys/uio.h>

#include "base/whereabouts.h"
#include "say.h"

namespace headway::launcher {
namespace {

constexpr size_t longest_name = 64;
constexpr size_t most_groups = 8;

bool read_memory(pid_t pid, uint64_t address, void* out, size_t size) {
  iovec here = {out, size};
  iovec there = {reinterpret_cast<void*>(address), size};
  return process_vm_readv(pid, &here, 1, &there, 1, 0) == static_cast<ssize_t>(size);
}

// The name of a call. Its memory may end right behind it, so it is read in small pieces.
std::string read_name(pid_t pid, uint64_t address) {
  std::string name;
  while (name.size() < longest_name) {
    char piece[8];
    // A piece that does not cross into the next page can be read if its first byte can.
    const size_t size = sizeof piece - address % sizeof piece;
    if (!read_memory(pid, address, piece, size)) return "";
    for (size_t i = 0; i < size; ++i) {
      const char c = piece[i];
      if (c == '\0') return name.starts_with("MPI_") ? name : "";
      if (!isalnum(static_cast<unsigned char>(c)) && c != '_') return "";
      name += c;
    }
    address += size;
  }
  return "";
}

bool is_one_of(const std::string& call, std::initializer_list<const char*> names) {
  const std::string plain = call.ends_with("_c") ? call.substr(0, call.size() - 2) : call;
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return plain == name; });
}
bool sends(const Spot& spot) {
  return is_one_of(spot.call, {"MPI_Send", "MPI_Ssend", "MPI_Rsend", "MPI_Bsend"});
}
bool receives(const Spot& spot) {
  return is_one_of(spot.call, {"MPI_Recv", "MPI_Mrecv", "MPI_Probe", "MPI_Mprobe"});
}
bool finalizes(const Spot& spot) { return spot.call == "MPI_Finalize"; }
bool waits(const Spot& spot) { return spot.call.starts_with("MPI_Wait"); }
bool is_collective(const Spot& spot) {
  return spot.peer == base::nobody && !waits(spot) && !finalizes(spot) && !receives(spot);
}

// A receive that takes the message of that send.
bool meet(const Seen& sender, const Seen& receiver) {
  const Spot &out = sender.spot, &in = receiver.spot;
  return sends(out) && receives(in) && out.peer == receiver.rank &&
         (in.peer < 0 || in.peer == sender.rank) && (in.tag < 0 || in.tag == out.tag);
}

// "0", "0-3 and 7".
std::string numbers(const std::vector<int>& ranks) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    parts.push_back(std::to_string(ranks[i]));
    if (end - i > 1) parts.back() += (end - i > 2 ? "-" : " and ") + std::to_string(ranks[end - 1]);
    i = end;
  }
  std::string text;
  for (size_t i = 0; i < parts.size() && i < most_groups; ++i) text += (i ? ", " : "") + parts[i];
  return parts.size() > most_groups ? text + ", ..." : text;
}

std::string describe(const Spot& spot) {
  switch (spot.kind) {
    case Spot::Kind::unknown: return "at an unknown place";
    case Spot::Kind::before: return "before MPI_Init";
    case Spot::Kind::computing: return "outside MPI";
    case Spot::Kind::left: return "behind MPI_Finalize";
    case Spot::Kind::in_call: break;
  }
  if (spot.peer == base::nobody) return "in " + spot.call;
  const char* role = sends(spot) ? "destination" : receives(spot) ? "source" : "peer";
  const std::string peer = spot.peer < 0 ? "any" : std::to_string(spot.peer);
  const std::string tag = spot.tag < 0 ? "any" : std::to_string(spot.tag);
  return format("in %s (%s %s, tag %s)", spot.call.c_str(), role, peer.c_str(), tag.c_str());
}

std::string advise(const std::string& cause, const char* remedy) {
  return " Likely cause: " + cause + ". Likely remedy: " + remedy + ".";
}

}  // namespace

Spot look_at(pid_t pid, const std::string& told) {
  Spot spot;
  const std::string_view layout = base::whereabouts_layout;
  if (!told.starts_with(layout)) return spot;
  char* rest = nullptr;
  const uint64_t address = strtoull(told.c_str() + layout.size(), &rest, 16);
  base::WhereaboutsCopy there;
  if (*rest != '\0' || address == 0 || !read_memory(pid, address, &there, sizeof there))
    return spot;
  if (!there.call) {
    spot.kind = Spot::Kind::computing;
    return spot;
  }
  spot.call = read_name(pid, reinterpret_cast<uintptr_t>(there.call));
  if (spot.call.empty()) return spot;
  spot.kind = Spot::Kind::in_call;
  spot.peer = there.peer;
  spot.tag = there.tag;
  return spot;
}

bool all_wait(const std::vector<Seen>& ranks) {
  return !ranks.empty() && std::all_of(ranks.begin(), ranks.end(), [](const Seen& seen) {
    return seen.spot.kind == Spot::Kind::in_call;
  });
}

std::string picture_of(const std::vector<Seen>& ranks) {
  struct Group {
    const Spot* spot;
    std::vector<int> ranks;
  };
  std::vector<Group> groups;
  bool known = false;
  for (const Seen& seen : ranks) {
    known |= seen.spot.kind == Spot::Kind::in_call || seen.spot.kind == Spot::Kind::computing;
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&](const Group& group) { return *group.spot == seen.spot; });
    if (same == groups.end()) {
      groups.push_back({&seen.spot, {seen.rank}});
    } else {
      same->ranks.push_back(seen.rank);
    }
  }
  if (!known) return "";
  std::string text;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (i == most_groups) {
      size_t left = 0;
      for (; i < groups.size(); ++i) left += groups[i].ranks.size();
      return text + format(", and %zu other ranks elsewhere", left);
    }
    const bool one = groups[i].ranks.size() == 1;
    text += format("%s%s %s %s %s", i ? ", " : "", one ? "rank" : "ranks",
                   numbers(groups[i].ranks).c_str(), one ? "is" : "are",
                   describe(*groups[i].spot).c_str());
  }
  return text;
}

std::string advice_for(const std::vector<Seen>& ranks) {
  std::vector<int> before, busy, finalizing, collective, sending, receiving;
  std::vector<std::string> collectives;
  pid_t busy_pid = -1;
  for (const Seen& seen : ranks) {
    const Spot& spot = seen.spot;
    if (spot.kind == Spot::Kind::before) {
      before.push_back(seen.rank);
    } else if (spot.kind != Spot::Kind::in_call) {
      if (spot.kind != Spot::Kind::computing) return "";
      if (busy.empty()) busy_pid = seen.pid;
      busy.push_back(seen.rank);
    } else if (finalizes(spot)) {
      finalizing.push_back(seen.rank);
    } else if (sends(spot)) {
      sending.push_back(seen.rank);
    } else if (receives(spot)) {
      receiving.push_back(seen.rank);
    } else if (is_collective(spot)) {
      collective.push_back(seen.rank);
      if (std::find(collectives.begin(), collectives.end(), spot.call) == collectives.end()) {
        collectives.push_back(spot.call);
      }
    }
    for (const Seen& other : ranks) {
      if (meet(seen, other)) return "";  // this message may just be long
    }
  }
  const size_t all = ranks.size();
  if (before.size() + busy.size() == all) return "";
  if (!before.empty()) {
    return advise(format("rank%s %s do%s not come to MPI_Init, where the others wait",
                         before.size() == 1 ? "" : "s", numbers(before).c_str(),
                         before.size() == 1 ? "es" : ""),
                  "look what it does before, and whether it is an MPI program at all");
  }
  if (!busy.empty()) {
    return format(
        " The others may be waiting for rank%s %s. Likely remedy: look what it does there, with "
        "gdb -p %d.",
        busy.size() == 1 ? "" : "s", numbers(busy).c_str(), busy_pid);
  }
  if (sending.size() == all) {
    return advise(
        "each of them sends before it receives, and a long MPI_Send waits until its receive has "
        "begun",
        "use MPI_Sendrecv, or start the receives with MPI_Irecv before the sends");
  }
  if (receiving.size() == all) {
    return advise(
        "each of them waits for a message that nobody has sent, or that was sent with another "
        "destination, tag or communicator",
        "compare source and tag of these receives with the sends that they belong to");
  }
  if (finalizing.size() == all) {
    return advise("a long message was sent that nobody receives",
                  "receive every message, before MPI_Finalize");
  }
  if (!finalizing.empty()) {
    return advise(
        format("rank%s %s %s done and will take part in no communication any more, while the "
               "others still wait for some",
               finalizing.size() == 1 ? "" : "s", numbers(finalizing).c_str(),
               finalizing.size() == 1 ? "is" : "are"),
        "look whether all ranks make the same number of rounds, and whether each receive has a "
        "send");
  }
  if (collective.size() == all && collectives.size() > 1) {
    return advise(
        "the ranks have called different collectives",
        "let all ranks of a communicator call the same collectives in the same order; none may "
        "stand in a branch that only some ranks take");
  }
  if (!collective.empty() && collective.size() < all) {
    return advise(
        "some ranks have gone on to a collective, while others still wait for a message, or have "
        "not come to that collective",
        "look whether a send is missing, and whether all ranks call the collective");
  }
  return "";
}

}  // namespace headway::launcher
