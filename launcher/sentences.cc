#include "sentences.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string_view>

#include "base/whereabouts.h"
#include "say.h"

namespace headway::launcher {
namespace {

bool is_one_of(const std::string& call, std::initializer_list<std::string_view> names) {
  std::string_view plain = call;
  if (plain.ends_with("_c")) plain.remove_suffix(2);
  return std::find(names.begin(), names.end(), plain) != names.end();
}

// What the ranks of the root's side pass on an inter-communicator, in the standard ABI.
constexpr int root_itself = -4, beside_root = -3;

std::string root_name(int root) {
  return root == root_itself   ? "MPI_ROOT"
         : root == beside_root ? "MPI_PROC_NULL"
                               : std::to_string(root);
}

// `world`: its rank in the job, or -1.
std::string with_peer(const std::string& call, const char* role, int peer, int tag, int world,
                      const std::string& more = "") {
  std::string who = peer < 0 ? "any" : std::to_string(peer);
  if (peer >= 0 && world >= 0 && world != peer) who += format(", rank %d of the job", world);
  const std::string which = tag < 0 ? "any" : std::to_string(tag);
  // Asked of each of thousands of ranks.
  std::string text;
  text.reserve(call.size() + who.size() + which.size() + more.size() + 24);
  text.append(call).append(" (").append(role).append(" ").append(who);
  return text.append(", tag ").append(which).append(more).append(")");
}

}  // namespace

std::string plain_name(const std::string& call) {
  return call.ends_with("_c") ? call.substr(0, call.size() - 2) : call;
}
bool sends(const Spot& spot) {
  return is_one_of(spot.call, {"MPI_Send", "MPI_Ssend", "MPI_Rsend", "MPI_Bsend"});
}
bool receives(const Spot& spot) {
  return is_one_of(spot.call, {"MPI_Recv", "MPI_Mrecv", "MPI_Probe", "MPI_Mprobe"});
}
bool finalizes(const Spot& spot) {
  return is_one_of(spot.call, {"MPI_Finalize", "MPI_Session_finalize"});
}
bool is_point_to_point(const Spot& spot) {
  return sends(spot) || receives(spot) ||
         is_one_of(spot.call, {"MPI_Sendrecv", "MPI_Sendrecv_replace", "MPI_Wait", "MPI_Waitall"});
}
bool is_collective(const Spot& spot) {
  return spot.context != 0 && spot.peer == base::nobody && !is_point_to_point(spot);
}

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

std::string rank_list(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + numbers(ranks);
}

std::string list_of(const std::vector<std::string>& parts) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

std::string name_of(const Spot& spot) {
  const std::string on = spot.on.empty() ? "" : ", on " + spot.on;
  if (spot.peer == base::nobody) {
    if (spot.tag != base::nobody) {
      return format("%s (root %s%s)", spot.call.c_str(), root_name(spot.tag).c_str(), on.c_str());
    }
    return on.empty() ? spot.call : format("%s (%s)", spot.call.c_str(), on.c_str() + 2);
  }
  return with_peer(spot.call,
                   sends(spot)      ? "destination"
                   : receives(spot) ? "source"
                                    : "peer",
                   spot.peer, spot.tag, spot.awaited, spot.is_released ? ", released early" : on);
}

std::string name_of_poll(const Spot& spot) {
  if (spot.poll_peer == base::nobody) return spot.poll;
  const bool probes = spot.poll.ends_with("probe");
  return with_peer(spot.poll, probes ? "source" : "peer", spot.poll_peer, spot.poll_tag, -1);
}

std::string name_of(const SeenComm& comm) {
  if (!comm.name.empty()) return comm.name;
  std::vector<int> members = comm.members.list();
  const auto beyond = members.begin() + std::ptrdiff_t(comm.own);
  std::sort(members.begin(), beyond);
  std::sort(beyond, members.end());
  if (comm.own == 0) {
    return "the communicator of " + rank_list(members) + " of MPI_COMM_WORLD";
  }
  return "the inter-communicator of " + rank_list({members.begin(), beyond}) + " with " +
         rank_list({beyond, members.end()}) + " of MPI_COMM_WORLD";
}

}  // namespace headway::launcher
