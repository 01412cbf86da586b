#include "waiting/many.h"

#include "base/check.h"
#include "base/clock.h"
#include "protocols/ways/rate.h"

namespace headway::waiting {
namespace {

using protocols::RequestKind;
using protocols::Stage;

// That a send waits for its receiver before its message is copied: a copy costs less than that.
constexpr uint64_t send_patience_ns = 150'000;

}  // namespace

Many::Many(Waiter& waiter, const void* list, uint32_t count, At at, const Rules& rules)
    : waiter_(waiter),
      engine_(waiter.engine),
      list_(list),
      count_(count),
      at_(at),
      whole_(rules.whole),
      may_any_go_(engine_.release().may_release() || engine_.copies().may_send_ahead()),
      unmatched_(rules.unmatched && engine_.release().may_foresee()),
      sends_stay_(!engine_.copies().may_send_ahead()) {
  if (!rules.memory.bytes()) return;
  waiter_.open(rules.memory);
  engine_.reach().begin(use_, rules.memory.extent());
}

bool Many::may_unmatched_go(Waiter& waiter) { return waiter.engine.release().may_foresee(); }

Many::~Many() {
  if (use_.extent.from) engine_.reach().end(use_);
}

// Calls visit(Request*) for each that is left, until it returns false; false then.
template <class Visit>
bool Many::each_left(Visit&& visit) const {
  for (uint32_t place = next_; place < count_; ++place) {
    Request* request = at(place);
    if (is_left(request) && !visit(request)) return false;
  }
  return true;
}

// Prefetching heeds it without early release, too. Once for each: a call that starts what it waits
// for has noted it before.
void Many::note_waits() {
  if (!(engine_.release().may_release() || engine_.presends().is_on()) || whole_) return;
  each_left([this](Request* request) {
    if (!request->awaited) engine_.note_wait(request);
    return true;
  });
}

void Many::until_all() {
  note_waits();
  // The first look may copy for long, which is no absence.
  if (!are_over() && !stays_) engine_.handoff().stay();
  const auto is_there = [](void* self) { return static_cast<Many*>(self)->may_have_ended(); };
  waiter_.until([this] { return are_over() || (may_any_go_ && !stays_ && let_all_go()); }, hint_,
                sleep_ms_, {is_there, this});
}

// For whoever completes a request while this thread parks: the last one, or that for which the
// others, which may go, were kept. What the steps of a whole wait for is not known here.
bool Many::may_have_ended() {
  if (are_over()) return true;
  return may_any_go_ && (whole_ || !is_left(at(unready_)));
}

bool Many::are_over() {
  if (whole_) return !is_left(whole_);
  for (; next_ < count_; ++next_) {
    const Request* request = is_left(next_request_) ? next_request_ : at(next_);
    if (!is_left(request)) continue;
    next_request_ = request;
    // Read with the engine held: until then another thread may write the peer of a match.
    hint_ = request->peer;
    stays_ = request->kind == RequestKind::receive && !protocols::Release::may_have_pages(*request);
    return false;
  }
  return true;
}

uint64_t Many::waited_ns() {
  const uint64_t now = base::now_ns();
  if (since_ == 0) since_ = now;
  return now - since_;
}

// Without a match as long as closing the pages may cost, so that whoever is wrong loses no more.
bool Many::is_patience_over() {
  if (!unmatched_ || alone_) [[likely]]
    return alone_;
  if (waited_ns() >= engine_.release().patience_us() * 1000)
    unmatched_ = alone_ = engine_.release().is_alone();
  return alone_;
}

bool Many::may_go(const Request& request) {
  if (request.kind == RequestKind::send) return may_leave(request);
  return engine_.release().is_ready(&request) ||
         (engine_.release().is_foreseeable(&request) && is_patience_over());
}

bool Many::may_leave(const Request& send) {
  // Once it moves nothing is to be gained, and no clock is to be read between its pieces.
  if (sends_stay_ || !engine_.copies().may_move_aside(send)) return false;
  if (protocols::is_slow(*send.peer, send.memory.bytes())) return true;
  if (waited_ns() >= send_patience_ns) return true;
  sleep_ms_ = 1;
  return false;
}

bool Many::leave(Request* send) {
  sends_stay_ = !engine_.copies().move_aside(send);
  return !sends_stay_;
}

bool Many::close(Request* receive) {
  return engine_.release().is_ready(receive) ? engine_.release().close_rest(receive, whole_)
                                             : engine_.release().foresee(receive);
}

// All could go at a time, and copies have been made of the sends: what they are made of may lie in
// pages that are to be closed.
bool Many::could_all_go() {
  if (is_left(unready_request_) && !may_go(*unready_request_)) return false;
  uint32_t place = unready_ > next_ ? unready_ : next_;
  for (uint32_t left = count_ - next_; left > 0; --left) {
    const Request* request = at(place);
    if (is_left(request) && !may_go(*request)) {
      unready_ = place;
      if (!whole_) unready_request_ = request;
      return false;
    }
    if (++place == count_) place = next_;
  }
  return each_left(
      [this](Request* request) { return request->kind != RequestKind::send || leave(request); });
}

// Looks again at what could not be closed the last time, and goes on from there: of a list of
// thousands each is looked at once, not each time that one of them moves.
bool Many::close_all() {
  protocols::Release& release = engine_.release();
  if (closed_ < next_) closed_ = next_;
  for (; closed_ < count_; ++closed_) {
    Request* receive = at(closed_);
    if (!is_left(receive) || receive->is_redirected()) continue;
    unready_ = closed_;  // keeps the others, if this returns false
    if (!may_go(*receive)) return false;
    if (call_ != release.call()) {
      call_ = release.begin_call();
      each_left([&](Request* other) {
        release.waits_for(other);
        return true;
      });
    }
    if (!close(receive)) return false;
  }
  return true;
}

bool Many::let_all_go() {
  sleep_ms_ = unmatched_ ? 1 : Waiter::sleep_ms;
  // The steps of a schedule change.
  if (whole_) all_could_go_ = false, closed_ = 0;
  if (!all_could_go_ && !(all_could_go_ = could_all_go())) return false;
  if (!close_all()) return false;
  const bool are_closed =
      each_left([](const Request* receive) { return receive->is_redirected(); });
  HEADWAY_CHECK(are_closed);
  if (!are_closed) return false;
  if (whole_) {
    each_left([this](Request* step) {
      if (step->kind == RequestKind::receive) engine_.release().note_return(*step);
      return true;
    });
    engine_.release().let_user_go(whole_);
    return true;
  }
  return each_left([this](Request* receive) {
    engine_.release().let_user_go(receive, waiter_.call());
    return true;
  });
}

uint32_t Many::until_any() {
  uint32_t found = none;
  if (engine_.presends().is_on()) [[unlikely]] {
    each_left([this](Request* request) {
      engine_.note_wait_for_any(request);
      return true;
    });
  }
  waiter_.until(
      [&] {
        found = first_over();
        if (found == none && may_any_go_) {
          let_one_go();
          found = first_over();
        }
        return found != none;
      },
      hint_, sleep_ms_);
  return found;
}

uint32_t Many::first_over() const {
  for (uint32_t place = 0; place < count_; ++place) {
    const Request* request = at(place);
    if (request && !is_left(request)) return place;
  }
  return none;
}

// The receive that is expected first, if it is not worth waiting for, or a send. Receives that have
// no message yet are not looked at.
void Many::let_one_go() {
  sleep_ms_ = Waiter::sleep_ms;
  Request* first = nullptr;
  uint64_t soonest = 0;
  const bool has_left = !each_left([&](Request* request) {
    if (request->kind == RequestKind::send) return !(may_leave(*request) && leave(request));
    if (request->kind != RequestKind::receive || request->stage() != Stage::landing) return true;
    const uint64_t expected = protocols::expected_us(*request->peer, engine_.transfer(*request));
    if (first && expected >= soonest) return true;
    first = request;
    soonest = expected;
    return true;
  });
  if (has_left || !first || !engine_.release().is_ready(first) ||
      !engine_.release().close_rest(first))
    return;
  engine_.release().let_user_go(first);
}

}  // namespace headway::waiting
