// Schedule: a collective as steps (send, receive, reduce, copy, or what a room above does) with
// dependencies, run by whoever drives the engine. One description serves blocking and non-blocking
// calls, and may be a part of another operation. Thread: built by an
// application thread, run with the engine held; user reductions run without it.
// Owner: its Request, which frees it. Invariants: steps and what depends on what do not change once
// it has started; the tag is the same on all ranks because collectives on a communicator start, and
// persistent ones are made, in the same order everywhere.
#pragma once
#include <cstdint>

#include "base/vec.h"
#include "objects/comm.h"
#include "objects/op.h"
#include "objects/registry.h"
#include "objects/team.h"
#include "progress/user_calls.h"
#include "protocols/request.h"

namespace headway::protocols {
class Engine;
class Reach;
}  // namespace headway::protocols
namespace headway::waiting {
class Waiter;
}

namespace headway::collectives {

using objects::Team;
using protocols::Request;
using protocols::UserMemory;

// What a collective message carries in its header, for the matching of collectives.
enum class Kind : uint8_t {
  none,
  barrier,
  bcast,
  gather,
  gatherv,
  scatter,
  scatterv,
  allgather,
  allgatherv,
  alltoall,
  alltoallv,
  alltoallw,
  reduce,
  allreduce,
  reduce_scatter,
  reduce_scatter_block,
  scan,
  exscan,
  neighbor_allgather,
  neighbor_allgatherv,
  neighbor_alltoall,
  neighbor_alltoallv,
  neighbor_alltoallw,
  last
};

using StepId = uint32_t;
inline constexpr StepId no_step = ~0u;

class Schedule;

// A reduction of `count` elements, ready to run: inout = in OP inout, `in` from the lower ranks.
struct Reduction {
  const objects::Op* op = nullptr;
  datatypes::Reducer kernel = nullptr;  // null: the user's function
  const datatypes::Type* type = nullptr;
  uintptr_t type_handle = 0;              // what the user's function is told
  objects::Registry* registry = nullptr;  // for a function whose type is freed meanwhile
};

// inout = in OP inout, by the kernel or the user's function; without the engine for the latter.
void apply(const Reduction& reduction, void* in, void* inout, uint64_t count);

// What a step of a room above does when all before it are done, with the engine held. True: it is
// over. False: end_act() is called of that step, later. `what`: as the step was made.
using Act = bool (*)(Schedule& schedule, StepId step, uint64_t what);

struct Step {
  // As the event of a step tells them (settings/events.h).
  enum class Kind : uint8_t { send, receive, copy, reduce, nothing, act };
  Kind kind = Kind::nothing;
  bool swapped = false;   // reduce: inout OP in, the result still in inout
  bool own_side = false;  // send, receive: within one side of an inter-communicator
  uint8_t lane = 0;       // send, receive: messages of one lane keep their order among themselves
  uint32_t needs = 0;     // steps before it
  uint32_t waits = 0;     // those of them that are not done
  uint32_t first_dependent = ~0u;
  uint32_t process = 0;  // send, receive: the other one's number
  int source = 0;        // send, receive: the sender, as its receiver names it
  Schedule* schedule = nullptr;
  Request* request = nullptr;  // send, receive: while it runs
  UserMemory from;             // send, copy; reduce: in (flat)
  UserMemory to;               // receive, copy; reduce: inout (flat)
  uint64_t count = 0;          // reduce: elements; act: what
  Act act = nullptr;
  progress::UserCall call;
};

class Schedule {
 public:
  // A schedule on `comm` whose messages carry `kind`; null without memory.
  static Schedule* make(protocols::Engine& engine, objects::Comm* comm, Kind kind);
  void destroy();

  // Building. Each returns the new step's number. `after`: a step that it waits for, or no_step.
  // `rank` is of `team`, which is asked here and not kept: that of the communicator, or one side of
  // an inter-communicator.
  StepId send(Team team, int rank, const UserMemory& memory, StepId after = no_step);
  StepId receive(Team team, int rank, const UserMemory& memory, StepId after = no_step);
  StepId copy(const UserMemory& from, const UserMemory& to, StepId after = no_step);
  // inout = in OP inout, or inout OP in if `swapped` (then `in` is from the higher ranks).
  StepId reduce(const void* in, void* inout, uint64_t count, bool swapped, StepId after = no_step);
  StepId act(Act does, uint64_t what, StepId after = no_step);
  // Waits for everything that is attached to it.
  StepId join();
  // Of a message that may pass those of other lanes.
  void use_lane(StepId step, uint8_t lane) {
    if (step != no_step) steps_[step].lane = lane;
  }
  void depends(StepId step, StepId on);

  // Memory that lives as long as the schedule; null without memory (the schedule is then failed).
  char* scratch(uint64_t bytes, int times = 1);
  void keep(const datatypes::Type* type);
  void keep(objects::Op* op);

  bool failed() const { return failed_; }
  void fail() { failed_ = true; }
  Reduction reduction;
  Outcome outcome = Outcome::ok;

  // The tag of the next collective on `comm` that is not persistent. Engine held.
  static int next_tag(objects::Comm* comm) {
    return int(comm->collective_count++ & (persistent_tag - 1));
  }
  // Starts it as a request that its user holds. Takes the engine itself.
  Request* start(waiting::Waiter& waiter);
  // A persistent request for it, not started. Takes the engine itself.
  Request* prepare();
  // Starts the schedule of a persistent request (again); engine held.
  static void restart(waiting::Waiter& waiter, Request* request);
  // Starts it, waits, and frees it. Takes the engine itself.
  Outcome run(waiting::Waiter& waiter);
  // Starts it as a part of another operation, which hears by `notify` that it is over, and gives
  // the request back. Engine held, by whomever; its steps touch memory of ours alone. `tag`: one of
  // next_tag()'s, and as many behind it as it has lanes. False without memory: it is freed then.
  bool start_inside(int tag, void (*notify)(Request*), void* operation);
  // The operation that it is a part of.
  void* part_of = nullptr;
  static Schedule& of(const Request* request) { return *static_cast<Schedule*>(request->owner); }
  // A step that answered false is over. Engine held.
  void end_act(StepId step);
  // For Reach: all memory that its steps touch, now or later.
  static void reach(const Request& request, protocols::Reach& reach);

 private:
  friend class TestSchedule;  // plays it without an engine

  // Tags of persistent collectives have this bit, those of others count up below it. Messages of
  // the runs of one persistent collective keep their order, so that all its runs can have one tag.
  static constexpr uint32_t persistent_tag = 1u << 30;

  struct Dependent {
    StepId to;
    uint32_t next;
  };
  struct Block {
    void* memory;
    uint64_t size;
  };

  StepId add(const Step& step, StepId after);
  bool is_own_side(Team team) const;
  Request* make_request();
  template <class Visit>
  bool each_extent(Visit&& visit) const;
  void await_open(waiting::Waiter& waiter) const;
  void begin(waiting::Waiter& waiter);
  void set_off();
  void work();
  void launch(StepId id);
  void launch_message(Step& step);
  void launch_reduce(StepId id);
  void done(StepId id);
  static Request* left_at(const void* self, uint32_t place);
  static void message_done(Request* request);
  static void run_user_function(progress::UserCall* call);
  static void user_function_done(progress::UserCall* call);
  static void destroy_of(Request* request);

  protocols::Engine* engine_ = nullptr;
  objects::Comm* comm_ = nullptr;
  Kind kind_ = Kind::none;
  int tag_ = 0;
  bool failed_ = false;
  bool working_ = false;
  bool is_running_ = false;
  uint32_t left_ = 0;  // steps that are not done
  Request* request_ = nullptr;
  base::Vec<Step> steps_;
  base::Vec<Dependent> dependents_;
  base::Vec<StepId> ready_;
  base::Vec<Block> blocks_;
  base::Vec<const datatypes::Type*> types_;
  objects::Op* op_ = nullptr;
};

}  // namespace headway::collectives
