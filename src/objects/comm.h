// Comm: a communicator: a group and the contexts in which its messages match. Thread: any; what
// changes after creation (name, handler) is changed by the user's own calls, counters with the
// engine held. Owner: reference counted: the handle, and every operation in progress on it.
// Invariant: no other communicator that its ranks know has its context (context.h).
#pragma once
#include <atomic>
#include <cstdint>

#include "objects/attributes.h"
#include "objects/context.h"
#include "objects/errhandler.h"
#include "objects/group.h"
#include "objects/team.h"
#include "objects/topology.h"

namespace headway::objects {

inline constexpr size_t max_object_name = 128;

struct Info;

// Hints of a communicator's info: those that MPI defines. What is promised by them to matching
// stands in info.cc.
struct Hint {
  static constexpr uint32_t no_any_tag = 1, no_any_source = 2, exact_length = 4,
                            allow_overtaking = 8, strict_persistent_order = 16;
};

struct Comm {
  std::atomic<uint32_t> references{1};
  bool lasts = false;  // as long as the library: operations on it need not keep it
  uintptr_t handle = 0;
  uint64_t context = 0;
  Group* group = nullptr;  // the ranks of this side
  Group* peers = nullptr;  // those that messages go to and come from; the same group if intra
  Team own, others;        // what algorithms see of them
  bool leads = false;      // inter: its side comes first where the user does not say which does
  Topology* topology = nullptr;    // if it has one
  std::atomic<uint32_t> hints{0};  // bits of the hints that the user set to true; see Hint
  Errhandler* errhandler = nullptr;
  Attributes attributes;          // has a lock of its own
  void* buffer = nullptr;         // buffer of buffered sends attached to it
  uint32_t collective_count = 0;  // collectives started; gives each its tag. With the engine.
  uint32_t persistent_count = 0;  // persistent collectives made; likewise
  // How its ranks share cores and nodes: collectives::Sharing; and how many each node has, then.
  std::atomic<uint8_t> sharing{0};
  std::atomic<uint32_t> ranks_a_node{0};
  char name[max_object_name] = {};

  bool is_inter() const { return peers != group; }
  uint64_t collective_context() const { return context + 1; }
  // Inter: what ranks of one side tell each other within a collective. The other side has ranks of
  // the same numbers.
  uint64_t own_side_context() const { return collective_context() | objects::own_side_context; }
  void retain() { references.fetch_add(1, std::memory_order_relaxed); }
};

// Takes a reference away; at the last one frees the communicator and lets go of its parts.
void release(Comm* comm);
// Keeps `group` and `errhandler` (takes references). Null without memory.
Comm* make_comm(uint64_t context, Group* group, Errhandler* errhandler);
// Makes a new one, which nobody uses yet, an inter-communicator. Keeps `remote`.
void bridge(Comm& comm, Group* remote, bool leads);
// Takes over the hints that `info` has; others, and unknown keys, stay what they are.
void take_hints(Comm& comm, const Info& info);
// All hints with their values. False without memory.
[[nodiscard]] bool tell_hints(const Comm& comm, Info& info);

}  // namespace headway::objects
