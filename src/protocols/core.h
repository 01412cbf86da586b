// Core: what all parts of the engine work with: the requests and their stages, the links to the
// peers, the handoff, the counters; and the moments of a message, of which its mechanisms are told
// without the teller knowing them. Thread: holder of the engine, except where it says otherwise.
// Owner: the engine, whose lowest part it is. Invariants: a request is under way from begin() to
// complete(), which are the only ways; each change of a stage is counted.
#pragma once
#include <cstdint>

#include "base/check.h"
#include "progress/handoff.h"
#include "protocols/engine_counters.h"
#include "protocols/links.h"
#include "protocols/reach.h"
#include "protocols/requests.h"
#include "settings/options.h"

namespace headway::protocols {

class Engine;
struct Arrived;

// The work of its handoff is the whole engine's.
class Core : public progress::Work {
 public:
  progress::Handoff& handoff() { return handoff_; }
  const progress::Handoff& handoff() const { return handoff_; }
  Links& links() { return links_; }
  shm::Node& node() { return links_.node(); }
  const shm::Node& node() const { return links_.node(); }
  // By its number: made if need be (null: no memory); or null if it has not been made.
  Peer* peer(uint32_t process) { return links_.peers().get(process); }
  Peer* find_peer(uint32_t process) { return links_.peers().find(process); }
  // What may not be closed. Whoever begins an operation has looked, with the engine held, that its
  // memory is open (waiting::Waiter::open).
  Reach& reach() { return reach_; }
  EngineCounters& counters() { return counters_; }
  const EngineCounters& counters() const { return counters_; }
  const settings::Settings& settings() const { return settings_; }
  uint32_t rank() const { return rank_; }
  // This machine has more ranks than cores.
  bool is_crowded() const { return is_crowded_; }
  void set_crowded(bool is) { is_crowded_ = is; }

  // --- requests ---
  Requests& requests() { return requests_; }
  Request* take_request() { return requests_.take(); }  // null without memory
  void give_request(Request* request);
  Request* find_request(uint32_t index, uint32_t generation) {
    return requests_.find(index, generation);
  }
  // Of one whose bytes are on their way, or about to be.
  Transfer& transfer(const Request& request) const { return requests_.transfers[request]; }

  void begin(Request& request) {
    HEADWAY_CHECK(request.taken && request.stage() == Stage::idle && !request.has(Mark::transfer));
    ++handoff_.pending;
    request.done.store(Done::no, std::memory_order_relaxed);
    request.outcome = Outcome::ok;
  }
  void complete(Request* request, Outcome outcome);
  void set_stage(Request& request, Stage next) {
    HEADWAY_CHECK(may_follow(request.stage_, next));
    --stages_[size_t(request.stage_)];
    ++stages_[size_t(next)];
    request.stage_ = next;
  }
  uint32_t in_stage(Stage stage) const { return stages_[size_t(stage)]; }

  // Others may ask this process for something at any time, so that whatever comes has to wake the
  // message thread: counts as an operation under way that nobody waits for.
  void listen(int by) {
    handoff_.pending += by;
    listening_ += by;
    HEADWAY_CHECK(listening_ >= 0);
  }

  // Schedules that want every message to wake the message thread.
  void schedule_begins() { ++schedules_; }
  void schedule_ends() { --schedules_; }
  bool has_schedules() const { return schedules_ != 0; }

  // A function that a thread of the program is to run while it waits, without the engine.
  void call_user(progress::UserCall& call) {
    handoff_.user_calls.push_back(&call);
    handoff_.came_far();
  }

  // --- moments ---
  // This thread begins to wait for that receive, at base::call_site.
  void note_wait(Request* receive);
  // Its user has gone on without it.
  void note_gone(Request* receive);
  // n bytes of it were copied into its closed pages, for so long.
  void note_copying(uint64_t ns, uint64_t n);
  // Bytes [offset, offset + n) of its message are in their place.
  void note_arrival(Request* receive, uint64_t offset, uint64_t n) {
    changes_ += !receive->is_redirected();
    if (receive->is_redirected() || handoff_.has_dozers()) [[unlikely]]
      tell_arrival(receive, offset, n);
  }
  // It may be that its user can be let go.
  void note_progress(Request* receive) {
    if (handoff_.has_dozers()) tell_dozers(receive);
  }
  // An unexpected message is received, or thrown away: so is what came before its time.
  void note_given(const Arrived& message);
  // Our own system calls write there.
  bool make_writable(const char* from, size_t n);
  // What is to come there has not come: whoever touches it waits.
  bool is_closed(const char* from, size_t n);
  // Grows whenever a request is over or its memory may have become its user's.
  uint64_t changes() const { return changes_; }

  void note_received(uint64_t bytes) {
    ++counters_.messages_received;
    counters_.bytes_received += bytes;
  }
  void note_sent(uint64_t bytes) {
    ++counters_.messages_sent;
    counters_.bytes_sent += bytes;
  }

 protected:
  Core() = default;
  ~Core() = default;
  // All of it, for the parts whose work is to ask the mechanisms; for others there are the moments.
  inline Engine& engine();

  settings::Settings settings_;
  uint32_t rank_ = 0;
  progress::Handoff handoff_;
  EngineCounters counters_;
  Requests requests_;
  Links links_{settings_};
  Reach reach_{requests_};
  int64_t listening_ = 0;  // of handoff_.pending

 private:
  void tell_arrival(Request* receive, uint64_t offset, uint64_t n);
  void tell_dozers(Request* receive);
  void end_marked(Request* request);

  uint32_t stages_[stage_count] = {};  // requests in each; idle: how many less than at first
  uint32_t schedules_ = 0;
  bool is_crowded_ = false;
  uint64_t changes_ = 1;
};

}  // namespace headway::protocols
