// Meet: two groups of processes, of different jobs or of one, come together: their roots have a
// Talk, each tells its group, and there is an inter-communicator of both. Thread: any application
// thread, without the engine. Owner: the new Comm goes to the caller with one reference and its
// handle. Invariants: all ranks of a group come to the same end, with the same Trouble; whatever
// has been made for a meeting that fails is taken back; when it returns, every process has a link
// to one of the other side, by which it hears when that side's job dies.
#pragma once
#include "objects/comm.h"
#include "objects/registry.h"
#include "spawn/talk.h"

namespace headway::spawn {

// What is needed of the process.
struct Home {
  waiting::Waiter& waiter;
  objects::Registry& registry;
  uint64_t (*new_context)();
  const char* job_name;  // bootstrap::Job::job_id
  uint32_t job;          // its number in contexts
  uint32_t rank;
};

// All ranks of `local` call this. At `root`: `talk` is open, or `own` says why there is none.
// `leads`: this side has accepted. `handler` is the new communicator's.
Trouble meet(const Home& home, objects::Comm* local, int root, Talk* talk, Trouble own, bool leads,
             objects::Errhandler* handler, objects::Comm*& made);

}  // namespace headway::spawn
