// The memory that the ranks of one host share, as far as the system lets them: whoever finds none
// talks with everybody over TCP, and the others go on without it. Slower, but no end of the job;
// so one rank of the host tells of it.
#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "protocols/engine.h"
#include "runtime/neighbours.h"
#include "runtime/process.h"

namespace headway::runtime {
namespace {

constexpr const char* no_segment =
    "no shared memory for this host's ranks (is the machine or the container full, or is there a "
    "limit on file sizes, ulimit -f?)";
constexpr const char* closed_segment =
    "the shared memory of this host's ranks may not be opened (/proc of another process is closed "
    "here)";
constexpr const char* no_room =
    "no room for the shared memory of this host's ranks (is there a limit on address space, ulimit "
    "-v, or on descriptors, ulimit -n?)";
constexpr char refused_key[] = "headway-shm-not-";
constexpr char refused_word[] = "refused";

}  // namespace

Outcome Process::share_memory() {
  if (!some_node_shares_) return Outcome::ok;
  const Outcome opened = open_memory();
  if (opened == Outcome::peer_lost) {
    return fail(opened, "the first rank of this host ended while the others were still starting");
  }
  if (opened == Outcome::no_route) return opened;
  // Behind this fence the segment itself tells who is in it.
  if (bootstrap.fence() != bootstrap::Outcome::ok) {
    return fail(Outcome::no_route, bootstrap.explanation());
  }
  return beside_ == 1 ? Outcome::ok : agree_on_memory(opened);
}

// The first rank of the host makes the segment, the others open it. Those who cannot put why.
// no_route: the launcher failed, and the story is told.
Outcome Process::open_memory() {
  base::Text<bootstrap::key_max> key;
  key << "headway-shm-" << (*node_ranks_)[0];
  char text[bootstrap::value_max] = "-";
  Outcome opened = Outcome::ok;
  if (beside_ > 1 && node_place_ == 0) {
    opened = engine_->node().create(beside_, text, sizeof text);
    if (opened != Outcome::ok) memcpy(text, "-", 2);
    if (bootstrap.put(key.c_str(), text) != bootstrap::Outcome::ok) {
      return fail(Outcome::no_route, bootstrap.explanation());
    }
  }
  if (bootstrap.fence() != bootstrap::Outcome::ok) {
    return fail(Outcome::no_route, bootstrap.explanation());
  }
  if (beside_ == 1) return Outcome::ok;
  if (node_place_ != 0) {
    if (bootstrap.get(key.c_str(), text, sizeof text, int((*node_ranks_)[0])) !=
        bootstrap::Outcome::ok) {
      return fail(Outcome::no_route, bootstrap.explanation());
    }
    if (text[0] == '-') return Outcome::no_resource;  // the first one tells
    opened = engine_->node().attach(text, beside_);
  }
  if (opened == Outcome::ok) {
    shm::Node& node = engine_->node();
    node.join(node_place_, engine_->handoff().bell());
    (void)engine_->handoff().listen(
        node.name_of(node_place_).c_str());  // without it: the pipe alone
    return opened;
  }
  // Whoever is not in the memory has put this: the first rank asks for it, and some launchers wait
  // for a key that is not there.
  if (node_place_ != 0 && opened != Outcome::peer_lost) {
    base::Text<bootstrap::key_max> own;
    own << refused_key << rank();
    const char* why = opened == Outcome::refused ? refused_word : "no_memory";
    if (bootstrap.put(own.c_str(), why) != bootstrap::Outcome::ok) {
      return fail(Outcome::no_route, bootstrap.explanation());
    }
  }
  return opened;
}

// Who shares the memory, and who is reached over TCP.
Outcome Process::agree_on_memory(Outcome opened) {
  base::Vec<uint32_t> members;  // numbers on this host
  if (!members.reserve(beside_)) return fail(Outcome::no_memory, "no memory at the start");
  const auto is_here = [&](uint32_t i) {
    return opened == Outcome::ok ? engine_->node().has_joined(i) : i == node_place_;
  };
  uint32_t first_missing = beside_;
  for (uint32_t i = 0; i < beside_; ++i) {
    if (is_here(i)) {
      (void)members.push(i);  // has its room
    } else if (first_missing == beside_) {
      first_missing = i;
    }
  }
  const uint32_t count = uint32_t(members.size());
  if (node_place_ == 0 && count < beside_) {
    tell_missing(opened == Outcome::ok ? beside_ - count : 0, first_missing);
  }
  for (uint32_t i = first_missing; i < beside_; ++i) {
    if (is_here(i)) continue;
    if (const Outcome done = go_on_without(i); done != Outcome::ok) return done;
  }
  if (count < beside_ && opened == Outcome::ok) {
    if (count > 1) {
      engine_->node().keep(members.data(), count);
    } else {
      engine_->node().detach();
    }
  }
  const auto own = std::find(members.begin(), members.end(), node_place_);
  node_place_ = uint32_t(own - members.begin());
  for (uint32_t i = 0; i < count; ++i) (*node_ranks_)[i] = (*node_ranks_)[members[i]];
  if (!node_ranks_->resize(count)) return fail(Outcome::no_memory, "no memory at the start");
  if (count == 1) return Outcome::ok;
  if (const Outcome used = engine_->use_node(node_ranks_->data(), count); used != Outcome::ok) {
    return fail(used, "no memory at the start");
  }
  watch_neighbours();
  return Outcome::ok;
}

// Number `local` of this host becomes a peer like those on other hosts.
Outcome Process::go_on_without(uint32_t local) {
  const int peer = int((*node_ranks_)[local]);
  base::Text<bootstrap::key_max> key;
  key << "headway-card-" << peer;
  char text[bootstrap::value_max];
  Card card;
  if (bootstrap.get(key.c_str(), text, sizeof text, peer) != bootstrap::Outcome::ok) {
    return fail(Outcome::no_route, bootstrap.explanation());
  }
  if (!read_card(text, card)) return fail(Outcome::bad_data, "a rank published a broken card");
  return reach_by_network(peer, card.network);
}

// `missing` ranks of this host are not in the memory that this rank made, `first` is the first of
// them; 0: there is no such memory.
void Process::tell_missing(uint32_t missing, uint32_t first) {
  base::Text<700> line;
  line << "headway: rank " << rank() << " on " << host_ << ": ";
  if (missing == 0) {
    line << no_segment << ": their";
  } else {
    const int peer = int((*node_ranks_)[first]);
    base::Text<bootstrap::key_max> key;
    key << refused_key << peer;
    char why[bootstrap::value_max] = "";
    const bool told = bootstrap.get(key.c_str(), why, sizeof why, peer) == bootstrap::Outcome::ok;
    line << (told && strcmp(why, refused_word) == 0 ? closed_segment : no_room) << ", says rank "
         << peer;
    if (missing > 1) line << " (and " << missing - 1 << " more)";
    line << ": its";
  }
  line << " messages go over TCP, which is slower. HEADWAY_SHM=off uses TCP without this line.\n";
  line.write_to(2);
}

}  // namespace headway::runtime
