// Judgement, second part: what is told of it: the picture, the graph, and the likely cause.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/whereabouts.h"
#include "causes.h"
#include "say.h"
#include "sentences.h"

namespace headway::launcher {
namespace {

std::string advise(const std::string& cause, const char* remedy) {
  return " Likely cause: " + cause + ". Likely remedy: " + remedy + ".";
}

}  // namespace

std::string Judgement::describe(size_t i) const {
  const Spot& at = spot(i);
  switch (at.kind) {
    case Spot::Kind::unknown: return "at an unknown place";
    case Spot::Kind::ended: return "at its end";
    case Spot::Kind::before:
    case Spot::Kind::left:
    case Spot::Kind::computing:
    case Spot::Kind::in_call: break;
  }
  std::string place = at.kind == Spot::Kind::before      ? "before MPI_Init"
                      : at.kind == Spot::Kind::left      ? "outside MPI, which it has left"
                      : at.kind == Spot::Kind::computing ? "outside MPI"
                      : at.is_released                   ? "past " + name_of(at)
                                                         : "in " + name_of(at);
  if (gaits_[i] == Gait::stopped) {
    return (at.state == 't' ? "stopped by a debugger, " : "stopped, ") + place;
  }
  if (gaits_[i] == Gait::polls) return "calling " + name_of_poll(at) + " again and again";
  if (at.unsteady) return "calling MPI all the time";
  return place;
}

std::string Judgement::picture() const {
  struct Group {
    std::string place;
    std::vector<int> ranks;
    bool in_circle = false;
  };
  std::vector<Group> groups;
  std::unordered_map<std::string, size_t> known_places;
  std::vector<size_t> group_of(size(), 0);
  bool known = false;
  for (size_t i = 0; i < size(); ++i) {
    const Spot& at = spot(i);
    if (at.kind == Spot::Kind::ended) continue;
    known |= at.kind == Spot::Kind::in_call || at.kind == Spot::Kind::computing;
    std::string place = places_[i];
    if (at.kind == Spot::Kind::in_call && !at.site.line.empty()) place += " at " + at.site.line;
    const auto [found, is_new] = known_places.try_emplace(place, groups.size());
    if (is_new) groups.push_back({std::move(place), {}});
    group_of[i] = found->second;
    groups[found->second].ranks.push_back(ranks_[i].rank);
  }
  if (!known) return "";
  if (groups.size() > most_groups) {
    // Not all are named: those that it is about.
    for (const int i : members_of_circle()) groups[group_of[size_t(i)]].in_circle = true;
    std::stable_partition(groups.begin(), groups.end(),
                          [](const Group& group) { return group.in_circle; });
  }
  std::string text;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (i == most_groups) {
      size_t left = 0;
      for (; i < groups.size(); ++i) left += groups[i].ranks.size();
      return text + format(", and %zu other ranks elsewhere", left);
    }
    text += format("%s%s %s %s", i ? ", " : "", rank_list(groups[i].ranks).c_str(),
                   groups[i].ranks.size() == 1 ? "is" : "are", groups[i].place.c_str());
  }
  return text;
}

// Of a collective: those of its ranks that have not begun it.
void Judgement::find_awaited(size_t i, WaitGroup& group) const {
  const Spot& at = spot(i);
  if (at.kind != Spot::Kind::in_call) return;
  if (at.needs.known) {
    group.waits_for = at.needs.all.members.list();
    if (!group.waits_for.empty() || at.needs.any.empty()) return;
    group.any = true;
    for (const int member : at.needs.any[0].members) {
      if (member != ranks_[i].rank) group.waits_for.push_back(member);
    }
    return;
  }
  const SeenComm* comm = comm_of(i, at.context);
  if (is_point_to_point(at) && at.awaited >= 0) {
    group.waits_for = {at.awaited};
  } else if (receives(at) && comm) {
    group.any = true;
    for (const int member : comm->senders()) {
      if (member != ranks_[i].rank) group.waits_for.push_back(member);
    }
  } else if (is_collective(at) && comm) {
    for (const int member : comm->members) {
      if (member < 0 || size_t(member) >= size()) continue;
      const SeenComm* there = comm_of(size_t(member), at.context);
      if (!there || int32_t(comm->collectives - there->collectives) > 0)
        group.waits_for.push_back(member);
    }
  }
}

// Whom rank i waits for, so short that it can be asked of each of thousands: those with one answer
// wait for the same ones. Who waits for anybody else is of one group with his like, though each
// leaves himself out.
std::string Judgement::whom(size_t i) const {
  const Spot& at = spot(i);
  if (at.kind != Spot::Kind::in_call) return "";
  if (at.needs.known) {
    std::string text = format("%llu", static_cast<unsigned long long>(at.needs.all.number));
    for (const RankSet& one : at.needs.any)
      text += format(" of %llu", static_cast<unsigned long long>(one.number));
    return text;
  }
  if (is_point_to_point(at) && at.awaited >= 0) return std::to_string(at.awaited);
  const SeenComm* comm = comm_of(i, at.context);
  if (!comm) return "";
  if (receives(at)) return format("any of %zu, %d", comm->members.size(), comm->side());
  if (!is_collective(at)) return "";
  return format("%llu:%u", static_cast<unsigned long long>(at.context), comm->collectives);
}

std::vector<WaitGroup> Judgement::graph() const {
  std::vector<WaitGroup> groups;
  std::unordered_map<std::string, size_t> known;
  for (size_t i = 0; i < size(); ++i) {
    WaitGroup group;
    group.place = places_[i];
    group.dead = dead_[i];
    if (spot(i).kind == Spot::Kind::in_call) group.site = spot(i).site;
    const Site& site = group.site;
    std::string key = whom(i);
    for (const std::string& part : {std::string(group.dead ? "dead" : ""), site.module,
                                    std::to_string(site.offset), site.line, group.place}) {
      key += '\0';
      key += part;
    }
    const auto [same, is_new] = known.try_emplace(std::move(key), groups.size());
    if (is_new) {
      find_awaited(i, group);
      groups.push_back(std::move(group));
    }
    groups[same->second].ranks.push_back(ranks_[i].rank);
  }
  return groups;
}

std::string Judgement::verdict() const {
  const bool all =
      !has(Gait::moves) && !has(Gait::unsure) && !has(Gait::unknown) && !is_on_its_way();
  if (all && (has(Gait::stands) || has(Gait::stopped))) {
    return format(", and nothing has changed for %.1f s.", seconds_) + cause();
  }
  if (const std::vector<int> ranks = dead(); !ranks.empty()) {
    return format(", and nothing has changed for %.1f s at %s.", seconds_,
                  rank_list(ranks).c_str()) +
           cause();
  }
  const std::vector<int> moving = ranks_with(Gait::moves);
  if (moving.empty()) return ".";
  return format(". The job was at work: messages came or went at %s.", rank_list(moving).c_str());
}

// Circles come first: they are proven whatever the other ranks do.
std::string Judgement::cause() const {
  std::string text = circle();
  if (text.empty()) text = collectives();
  if (text.empty()) text = done();
  if (text.empty()) text = left_over();
  return text.empty() ? blockers() : text;
}

std::vector<int> Judgement::members_of_circle() const {
  std::vector<int> next(size(), -1);
  for (size_t i = 0; i < size(); ++i) {
    const Spot& at = spot(i);
    if (dead_[i] && is_point_to_point(at) && at.awaited >= 0 && size_t(at.awaited) < size())
      next[i] = at.awaited;
  }
  return WaitGraph::circle(next);
}

std::string Judgement::circle() const {
  const std::vector<int> members = members_of_circle();
  return members.empty() ? "" : circle_of(members);
}

std::string Judgement::circle_of(const std::vector<int>& members) const {
  if (members.size() == 2) {
    bool explained = false;
    const std::string text = pair_of(size_t(members[0]), size_t(members[1]), explained);
    if (explained) return text;
  }
  std::vector<int> sorted = members;
  std::sort(sorted.begin(), sorted.end());
  const auto all = [&](bool (*is)(const Spot&)) {
    return std::all_of(members.begin(), members.end(), [&](int i) { return is(spot(size_t(i))); });
  };
  const std::string who = rank_list(sorted);
  if (members.size() == 1) {
    return advise(format("%s waits for itself, in %s", who.c_str(),
                         name_of(spot(size_t(members[0]))).c_str()),
                  "start one of send and receive with MPI_Isend or MPI_Irecv before the other");
  }
  std::vector<std::string> steps;
  for (size_t i = 0; i < members.size() && i < most_groups; ++i) {
    steps.push_back(format("%d for %d", members[i], members[(i + 1) % members.size()]));
  }
  if (members.size() > most_groups) steps.push_back("so on");
  const std::string round =
      format("%s wait for one another (%s)", who.c_str(), list_of(steps).c_str());
  if (all(sends)) {
    return advise(round +
                      ": each of them sends before it receives, and a long MPI_Send waits until "
                      "its receive has begun",
                  "use MPI_Sendrecv, or start the receives with MPI_Irecv before the sends");
  }
  if (all(receives)) {
    return advise(round +
                      ": each waits for a message that nobody has sent, or that was sent with "
                      "another destination, tag or communicator",
                  "compare source and tag of these receives with the sends that they belong to");
  }
  return advise(round,
                "let one of them do first what another waits for, or start it before the wait "
                "with MPI_Isend or MPI_Irecv");
}

// Two that wait for each other, one of which sends: does the other receive just that?
std::string Judgement::pair_of(size_t a, size_t b, bool& explained) const {
  if (sends(spot(b)) && receives(spot(a))) std::swap(a, b);
  const Spot &out = spot(a), &in = spot(b);
  if (!sends(out) || !receives(in)) return "";
  explained = true;
  if (out.context != in.context) {
    return advise(format("rank %d sends to rank %d on another communicator than that on which rank "
                         "%d receives",
                         int(a), int(b), int(b)),
                  "use the same communicator for a message on both sides");
  }
  if (in.tag >= 0 && in.tag != out.tag) {
    return advise(format("rank %d sends to rank %d with tag %d, and rank %d receives from it with "
                         "tag %d",
                         int(a), int(b), out.tag, int(b), in.tag),
                  "use the same tag for a message on both sides, or MPI_ANY_TAG in the receive");
  }
  return "";  // they fit: we do not know
}

std::string Judgement::collectives() const {
  std::unordered_set<std::string> looked_at;  // ranks in the same call of the same number are alike
  for (size_t i = 0; i < size(); ++i) {
    if (!dead_[i] || !is_collective(spot(i))) continue;
    const SeenComm* here = comm_of(i, spot(i).context);
    if (!here || !looked_at.insert(whom(i) + name_of(spot(i))).second) continue;
    for (const int member : here->members) {
      const size_t j = member >= 0 && size_t(member) < size() ? size_t(member) : i;
      if (j == i || !dead_[j]) continue;
      const SeenComm* there = comm_of(j, here->context);
      if (!there) continue;
      std::string text;
      if (there->collectives == here->collectives && is_collective(spot(j)) &&
          spot(j).context == here->context) {
        text = collective_pair(i, j);
      } else if (int32_t(here->collectives - there->collectives) > 0) {
        text = laggard(i, j, *here, there->collectives);
        if (text.empty()) text = gone_astray(i, j, *here, there->collectives);
      }
      if (!text.empty()) return text;
    }
  }
  return "";
}

// Both in their collective of the same number on one communicator.
std::string Judgement::collective_pair(size_t i, size_t j) const {
  const Spot &one = spot(i), &other = spot(j);
  const SeenComm& comm = *comm_of(i, one.context);
  if (plain_name(one.call) != plain_name(other.call)) {
    return advise(format("as collective number %u on %s rank %d has called %s, and rank %d %s: "
                         "different collectives",
                         comm.collectives, name_of(comm).c_str(), int(i), one.call.c_str(), int(j),
                         other.call.c_str()),
                  "let all ranks of a communicator call the same collectives in the same order; "
                  "none may stand in a branch that only some ranks take");
  }
  if (one.tag != other.tag && comm.own == 0) {
    return advise(format("rank %d calls %s with root %d, and rank %d with root %d", int(i),
                         one.call.c_str(), one.tag, int(j), other.tag),
                  "pass the same root on all ranks of the communicator");
  }
  return "";
}

// Rank i is in a collective that rank j has not begun.
std::string Judgement::laggard(size_t i, size_t j, const SeenComm& here, uint32_t there) const {
  const Spot &at = spot(i), &other = spot(j);
  const std::string missing = format(
      "%s (number %u on %s), which rank %d%s has not come to: it has called %u collective%s "
      "there, and",
      at.call.c_str(), here.collectives, name_of(here).c_str(), int(j),
      here.own == 0            ? ""
      : here.is_beyond(int(j)) ? ", on the other side,"
                               : ", on the same side,",
      there, there == 1 ? "" : "s");
  if (finalizes(other)) {
    return advise(format("rank %d is in %s rank %d is done and will take part in no communication "
                         "any more",
                         int(i), missing.c_str(), int(j)),
                  "look whether all ranks call the collective: it may not stand in a branch that "
                  "only some ranks take");
  }
  if (is_collective(other) && other.context != at.context) {
    const SeenComm* elsewhere = comm_of(j, other.context);
    return advise(
        format("rank %d is in %s is in %s on %s", int(i), missing.c_str(), other.call.c_str(),
               elsewhere ? name_of(*elsewhere).c_str() : "another one"),
        "let ranks that share several communicators call the collectives of all of them "
        "in the same order");
  }
  if (!is_point_to_point(other)) return "";
  return advise(
      format("rank %d is in %s still waits in %s", int(i), missing.c_str(), name_of(other).c_str()),
      "look whether a send is missing, and whether all ranks call the collective");
}

// Rank j stays in the collective of this number for ever, though each of its ranks has begun one of
// that number, and rank i has gone on to a later one: theirs were not the same.
std::string Judgement::gone_astray(size_t i, size_t j, const SeenComm& here, uint32_t there) const {
  const Spot &at = spot(i), &other = spot(j);
  if (!is_collective(other) || other.context != at.context) return "";
  for (const int member : here.members) {
    if (member < 0 || size_t(member) >= size() || !dead_[size_t(member)]) return "";
    const SeenComm* its = comm_of(size_t(member), here.context);
    if (!its || int32_t(its->collectives - there) < 0) return "";
  }
  return advise(format("rank %d is in %s, its collective number %u on %s, and rank %d has gone on "
                       "to number %u, %s, though nobody is missing: as number %u they have called "
                       "different collectives, or one with different roots",
                       int(j), other.call.c_str(), there, name_of(here).c_str(), int(i),
                       here.collectives, at.call.c_str(), there),
                "let all ranks of a communicator call the same collectives in the same order, with "
                "the same roots");
}

// A rank waits for one that takes part in nothing any more.
std::string Judgement::done() const {
  for (size_t i = 0; i < size(); ++i) {
    const Spot& at = spot(i);
    if (!dead_[i] || !is_point_to_point(at) || at.awaited < 0 || size_t(at.awaited) >= size()) {
      continue;
    }
    const size_t j = size_t(at.awaited);
    const bool finalizing = dead_[j] && finalizes(spot(j));
    const bool has_left = spot(j).done && gaits_[j] != Gait::ended;
    if (!finalizing && !has_left && gaits_[j] != Gait::ended) continue;
    return advise(format("rank %d is done (%s) and will take part in no communication any more, "
                         "while rank %d still waits for it in %s",
                         int(j),
                         finalizing ? ("it is in " + spot(j).call).c_str()
                         : has_left ? "it has left MPI"
                                    : "its process has ended",
                         int(i), name_of(at).c_str()),
                  "look whether all ranks make the same number of rounds, and whether each receive "
                  "has a send");
  }
  return "";
}

// What is left where nobody waits for somebody in particular.
std::string Judgement::left_over() const {
  size_t finalizing = 0, open = 0, all = 0, dead = 0;
  for (size_t i = 0; i < size(); ++i) {
    if (gaits_[i] == Gait::ended) continue;
    ++all;
    if (!dead_[i]) continue;
    ++dead;
    finalizing += finalizes(spot(i));
    open += receives(spot(i)) && spot(i).awaited < 0;
  }
  if (dead == 0 || dead != all) return "";
  if (finalizing == all) {
    return advise("a long message was sent that nobody receives",
                  "receive every message, before MPI_Finalize");
  }
  if (open > 0 && open + finalizing == all) {
    return advise(
        "the ranks in a receive wait for a message of anybody, and nobody is left who "
        "could send one: all others wait too, or are done",
        "look whether each receive has a send, or whether a message that tells the end is "
        "missing");
  }
  return "";
}

// Those that the others wait for. Nothing is wrong with them as far as we know.
std::string Judgement::blockers() const {
  if (std::find(dead_.begin(), dead_.end(), 1) != dead_.end()) return "";
  const auto pid_of = [&](const std::vector<int>& ranks) { return ranks_[size_t(ranks[0])].pid; };
  if (const std::vector<int> stopped = ranks_with(Gait::stopped); !stopped.empty()) {
    const bool traced = spot(size_t(stopped[0])).state == 't';
    const bool one = stopped.size() == 1;
    return advise(format("%s %s stopped, by %s", rank_list(stopped).c_str(), one ? "is" : "are",
                         traced ? "a debugger" : "SIGSTOP or a terminal"),
                  format("let %s go on, with %s", one ? "it" : "them",
                         traced ? "the debugger's continue"
                                : format("kill -CONT %d", pid_of(stopped)).c_str())
                      .c_str());
  }
  if (!has(Gait::stands)) return "";
  if (const std::vector<int> asking = ranks_with(Gait::polls); !asking.empty()) {
    const size_t i = size_t(asking[0]);
    return format(
        " The others may be waiting for rank %d, which has called %s %llu times in this "
        "time, in vain. Likely remedy: look whether what it asks for was sent to it, and "
        "with that tag and communicator.",
        asking[0], name_of_poll(spot(i)).c_str(), static_cast<unsigned long long>(asked_[i]));
  }
  if (const std::vector<int> before = ranks_with(Gait::before); !before.empty()) {
    return format(
        " The others may be waiting for %s in MPI_Init. Likely remedy: look what it does "
        "before, and whether it is an MPI program at all.",
        rank_list(before).c_str());
  }
  if (const std::vector<int> left = ranks_with(Gait::left); !left.empty()) {
    return format(
        " The others may be waiting for %s, which %s left MPI and go%s on. Likely remedy: look "
        "whether what they wait for was sent before that.",
        rank_list(left).c_str(), left.size() == 1 ? "has" : "have", left.size() == 1 ? "es" : "");
  }
  std::vector<int> busy = ranks_with(Gait::computes);
  const bool computes = !busy.empty();
  if (!computes) busy = ranks_with(Gait::sleeps);
  if (busy.empty()) return "";
  return format(
      " The others may be waiting for %s, which %s outside MPI. Likely remedy: if it "
      "should not, look what it does there, with gdb -p %d.",
      rank_list(busy).c_str(),
      busy.size() == 1 ? (computes ? "computes" : "sleeps") : (computes ? "compute" : "sleep"),
      pid_of(busy));
}

}  // namespace headway::launcher
