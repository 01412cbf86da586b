// Many: a call waits for one request, for all of several, or for any of them; the only place that
// lets a user go on before what he waits for is over. Sends go by a copy of their message, receives
// by closed pages, with or without their match; of those that are to be over together none goes
// before all may. Thread: holder of the engine. Owner: the call. Invariant: the list and its
// requests are there until this ends.
#pragma once
#include <cstdint>

#include "waiting/waiter.h"

namespace headway::waiting {

class Many {
 public:
  using Request = protocols::Request;
  // The request at that place of the list; null: there is nothing to wait for.
  using At = Request* (*)(const void* list, uint32_t place);
  struct Rules {
    bool unmatched = false;             // receives may go before their match, too
    protocols::UserMemory memory = {};  // where the list lies, if in the program's memory
    // The schedule whose steps these are, which goes on as one; it stands itself at the place of a
    // step that cannot go.
    Request* whole = nullptr;
  };

  Many(Waiter& waiter, const void* list, uint32_t count, At at, const Rules& rules);
  Many(Waiter& waiter, Request* one, bool unmatched = false)
      : Many(waiter, one, 1, nullptr, {.unmatched = unmatched}) {}
  ~Many();
  Many(const Many&) = delete;
  Many& operator=(const Many&) = delete;

  // Whether any receive can go before its match at all: a question that saves others.
  static bool may_unmatched_go(Waiter& waiter);

  // Until all are over, or their user goes on from what is left.
  void until_all();
  // The same for one of them, of which there has to be at least one; its place.
  uint32_t until_any();

 private:
  static constexpr uint32_t none = ~0u;

  static bool is_left(const Request* request) {
    return request && request->done.load(std::memory_order_relaxed) == protocols::Done::no;
  }
  Request* at(uint32_t place) const {
    return at_ ? at_(list_, place) : static_cast<Request*>(const_cast<void*>(list_));
  }
  template <class Visit>
  bool each_left(Visit&& visit) const;
  void note_waits();
  bool are_over();
  bool may_have_ended();
  uint64_t waited_ns();
  bool is_patience_over();
  bool may_go(const Request& request);
  bool may_leave(const Request& send);
  bool leave(Request* send);
  bool close(Request* receive);
  bool could_all_go();
  bool close_all();
  bool let_all_go();
  uint32_t first_over() const;
  void let_one_go();

  Waiter& waiter_;
  protocols::Engine& engine_;
  const void* const list_;
  const uint32_t count_;
  const At at_;
  Request* const whole_;
  const bool may_any_go_;
  bool unmatched_;        // receives may go before their match, once that has been waited for
  bool alone_ = false;    // it has, and nobody else could notice
  bool stays_ = false;    // the first that is left is a receive that is too short to go
  bool sends_stay_;       // one could not be copied, or none may
  uint32_t next_ = 0;     // all before it are over
  uint32_t unready_ = 0;  // the one that kept the others, at the last look
  // The requests at both, so that a look in vain need not ask the list; null: it is to be asked.
  const Request* next_request_ = nullptr;
  const Request* unready_request_ = nullptr;
  bool all_could_go_ = false;
  uint32_t closed_ = 0;  // all before it are over or closed
  uint32_t call_ = 0;    // the number of ours, to the receives that have been told of it
  uint64_t since_ = 0;   // ns: something has been waited for that may go after a while
  int sleep_ms_ = Waiter::sleep_ms;
  protocols::Peer* hint_ = nullptr;
  protocols::Reach::Use use_;
};

}  // namespace headway::waiting
