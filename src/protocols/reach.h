// Reach: what operations under way may touch of the program's memory, at its own address: messages,
// whoever copies them, a peer too; the later steps of collectives; what a call looks at between its
// waits. A page must not be closed while any of them may touch it, since it would wait for the page
// with the engine held, and the page for the engine. Thread: holder of the engine. Owner: the
// engine. Invariant: while it is kept, every operation that has begun stands in it. One that is
// over may stand in it still, and counts no more. It is kept from the first question on, until much
// has begun and nothing was asked.
#pragma once
#include "base/intervals.h"
#include "base/list.h"
#include "base/pool.h"
#include "base/vec.h"
#include "guard/mechanism.h"
#include "protocols/request.h"

namespace headway::protocols {

class Reach {
 public:
  explicit Reach(const base::Pool<Request>& requests) : requests_(requests) {}

  // An operation begins. To be called while it is kept; else it is found at the next question.
  bool is_kept() const { return kept_; }
  void note(const Request& request);

  // Overlaps of messages that are over at once are to be told, too.
  bool tells() const { return tells_; }
  // From now on it is always kept, and one line tells of the first message whose buffer another one
  // under way has, if one of the two writes it. `rank`: ours in the job, for that line.
  void tell_overlaps(uint32_t rank) {
    tells_ = kept_ = true;
    rank_ = rank;
  }

  // What the steps of a schedule touch before and after their messages: calls touch() for each.
  using Steps = void (*)(const Request& schedule, Reach& reach);
  void ask_schedules(Steps steps) { steps_ = steps; }
  void touch(UserMemory::Extent extent);

  // Memory that a call touches with the engine held, between its waits. Engine held at both ends.
  struct Use {
    Use* list_next = nullptr;
    Use* list_prev = nullptr;
    UserMemory::Extent extent;
  };
  void begin(Use& use, UserMemory::Extent extent) {
    use.extent = extent;
    uses_.push_back(&use);
  }
  void end(Use& use) { uses_.remove(&use); }

  // Whether no operation touches these pages but `self`, and the schedule `whole` whose step that
  // is.
  bool is_free(guard::Range pages, const Request* self, const Request* whole);
  // Calls visit(Request*) for each operation that touches these pages, until it returns false;
  // false then. Also false if a call does, or if that cannot be told.
  template <class Visit>
  bool visit(guard::Range pages, Visit&& visit);

 private:
  static constexpr size_t most_over = 64;  // that are taken out after one look

  // It may still touch its memory where its user has it.
  static bool is_at_home(const Request& request) {
    if (!request.taken || request.stage() == Stage::idle) return false;
    switch (request.kind) {
      case RequestKind::file: return request.done.load(std::memory_order_relaxed) == Done::no;
      case RequestKind::schedule:
        // What is left of a released one are receives, and their pages are closed.
        return request.done.load(std::memory_order_relaxed) == Done::no;
      case RequestKind::send:
      case RequestKind::receive:
        // Running: two messages as one, which stand here themselves.
        return request.stage() != Stage::running && !request.is_redirected();
      case RequestKind::access:
      case RequestKind::partitioned: return true;
      default: return false;
    }
  }
  bool keep();
  void stop();
  void forget(uint32_t owner);
  bool is_used(guard::Range pages) const;
  void look_for_overlap(const Request& begun);
  bool is_noted(const Request& request) const {
    return request.pool_index < first_.size() && first_[request.pool_index] != 0;
  }

  // An owner's ranges, one behind the other.
  struct Link {
    uint32_t number, next;
  };

  const base::Pool<Request>& requests_;
  Steps steps_ = nullptr;
  bool kept_ = false;
  bool tells_ = false;   // tell_overlaps(), and nothing has been told yet
  bool failed_ = false;  // no memory while a request was noted
  uint32_t rank_ = 0;
  uint32_t noted_ = 0;         // since the last question
  uint32_t noting_ = 0;        // by number: the one whose memory touch() is told of
  base::Intervals ranges_;     // owners: numbers of requests
  base::Vec<uint32_t> first_;  // of a request's links; 0: none
  base::Vec<Link> links_;      // the first one stands for none
  uint32_t free_links_ = 0;
  base::List<Use> uses_;
};

template <class Visit>
bool Reach::visit(guard::Range pages, Visit&& visit) {
  if (is_used(pages) || !keep()) return false;
  noted_ = 0;
  uint32_t over[most_over];
  size_t count = 0;
  const bool all = ranges_.visit(pages.base, pages.end(), [&](uint32_t, uint32_t owner) {
    Request* request = requests_.at(owner);
    if (is_at_home(*request)) return visit(request);
    if (count < most_over) over[count++] = owner;
    return true;
  });
  while (count > 0) forget(over[--count]);
  return all;
}

}  // namespace headway::protocols
